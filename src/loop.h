/* SPDX-License-Identifier: MIT */
/*
 * loop.h - the state of a run. Each layer has its share of it; who may touch a
 * field is said beside it.
 */
#ifndef PX_LOOP_H
#define PX_LOOP_H

#include <errno.h>
#include <stdatomic.h>

#include <parataxis/offload.h>
#include <parataxis/scheduler.h>

#include "base/clock.h"
#include "base/macros.h"
#include "base/panic.h"
#include "base/quick_clock.h"
#include "fiber.h"
#include "poller/poller.h"

/* Descriptors and timers are looked at every so many switches, yields and
 * eager starts, while fibers stay ready. */
#define PX_LOOK_AROUND 61

#define PX_QUEUES 16 /* when shuffling; one otherwise */

struct px_queue {
    px_fiber *head;
    px_fiber *tail;
};

/* What upper layers handed down: the scheduler calls them, and knows nothing
 * of them. */
struct px_hooks {
    /* A parked fiber's timer has come due (and is out of the heap). */
    void (*on_timer)(px_fiber *fiber);
    /* Nothing can run and nothing can wake anything. Off-fiber. */
    void (*on_stall)(px_loop *loop);
    /* Run a fiber's body; the first thing on its stack. Does not return. */
    void (*body)(void *fiber);
};

/* Something another thread hands to the loop (inbox.h). */
struct px_remote {
    struct px_remote *next;
    void (*deliver)(px_loop *loop, struct px_remote *remote);
};

struct px_loop {
    /* Hot. */
    int countdown; /* to the next look around */
    bool shuffles;
    bool virtual;
    struct px_queue queues[PX_QUEUES];
    int *errno_at;     /* the thread's errno */
    void **exceptions; /* the thread's, NULL without a C++ runtime */
    px_fiber *zombie;  /* ended, its stack not yet given back */
    struct px_stack_pool stacks;
    struct px_fiber_arena arena;
    /* Ended fibers that nobody needs, with their stacks, of the usual size: a
     * fiber that ends and one that begins are soon done with. */
    px_fiber *spare;
    struct px_stack_class *usual; /* NULL: none are kept */

    px_fiber host; /* the thread's own context, as a record */
    px_scope root; /* around every fiber: px_stop() fires it */
    uint64_t run;  /* a number no other run of the process has */
    uint64_t random;
    struct px_heap timers;
    px_nsec now; /* the last reading; the time itself if virtual */
    struct px_quick_clock quick_clock;
    size_t alive; /* begun or to begin, not ended */
    size_t room;  /* for so many there is room, as far as is known */
    px_fid next_id;
    struct px_run_options options;
    const struct px_hooks *hooks;
    int main_result;
    const void *thread; /* whose: the address of its px__loop */

    /* What may still wake something. */
    struct px_poller poller;
    size_t io_waits; /* fibers parked on descriptors and signals */
    size_t offloads; /* calls given to the pool and not come back */
    void (*on_ready)(px_loop *loop, int fd, uint32_t generation, int events);
    void *io;                            /* io.c's table of descriptors */
    struct px_signal_wait *signal_waits; /* io_signal.c's, as they arrived */
    void *pool;                          /* offload.c's threads */

    /* The one thread-safe door: inbox.c, post.c. */
    _Atomic(struct px_remote *) inbox;
    atomic_long holds;
    atomic_long visitors;
    unsigned forks;             /* px__forks, where it began */
    void *posts;                /* post.c's fibers, */
    const struct px_home *home; /* and where they go */

    /* The deadlock report: deadlock.c. */
    bool reported;
    bool stalled;
    uint64_t stall_rounds; /* since a fiber ended */
    uint64_t ended_at_stall;
};

/* The loop of this thread, also off-fiber in a callback; NULL outside a run,
 * and in a forked child. */
extern _Thread_local px_loop *px__loop
    __attribute__((tls_model("initial-exec")));

/* Counts up in every forked child. */
extern unsigned px__forks;

/* In a checked build a call that reaches into another thread's loop aborts. A
 * forked child goes on as the thread that forked, so it is told apart by where
 * that has its thread-locals and not by what they hold. */
#define PX_CHECK_THREAD(its_loop, function, what, object)                      \
    PX_CHECK_THAT((its_loop)->thread == (const void *)&px__loop, function,     \
                  what " %p is another thread's", (const void *)(object))

#endif
