/* SPDX-License-Identifier: MIT */
/*
 * poller.h - the port: waiting for descriptors, in one of two ways.
 *
 * A watch is the caller's record of one descriptor number. It is armed in one
 * of two modes:
 *
 *   once  reports one of `events`, level, and is then disarmed;
 *   keep  reports both directions whenever they become ready (it may report
 *         too often, never too rarely after a call that said EAGAIN), until
 *         it is forgotten.
 *
 * px__poller_arm(poller, watch, force)
 *   does  (re)arms the watch as its fields say. In mode keep it does nothing
 *         if it is armed already, unless `force` asks for a fresh report of
 *         what is ready now.
 *   gives 0; -ENOENT if the watch was registered but the system no longer
 *         knows it: the descriptor was closed in between (the watch is then
 *         forgotten, and may be armed anew); or another -errno.
 * px__poller_wait(poller, loop, timeout)
 *   does  waits at most `timeout` (PX_FOREVER: until something happens) and
 *         calls loop->on_ready for what is ready. A signal may end it early.
 *         Returns at once if px__poller_wake() has been called since.
 * px__poller_wake(poller) is the only call for other threads.
 */
#ifndef PX_POLLER_POLLER_H
#define PX_POLLER_POLLER_H

#include <stdbool.h>
#include <stdint.h>

#include <parataxis/clock.h>
#include <parataxis/offload.h>

struct px_watch {
    int fd;
    uint32_t generation; /* handed back, so that old reports are told apart */
    int events;          /* PX_READABLE | PX_WRITABLE, for mode once */
    bool keep;
    bool registered; /* the poller's */
    int slot;        /* the poller's */
};

struct px_poller {
    bool is_open;
    int fd;        /* epoll's */
    int wake[2];   /* to write to, to read from; the same if it is an eventfd */
    void *watched; /* poll's */
};

/* Opened on demand: 0 or -errno. Opening it again does nothing. */
int px__poller_open(struct px_poller *poller);
void px__poller_close(struct px_poller *poller);

int px__poller_arm(struct px_poller *poller, struct px_watch *watch,
                   bool force);
void px__poller_forget(struct px_poller *poller, struct px_watch *watch);
void px__poller_wait(struct px_poller *poller, px_loop *loop, px_nsec timeout);
void px__poller_wake(struct px_poller *poller);

#endif
