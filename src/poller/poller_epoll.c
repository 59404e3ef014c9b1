/* SPDX-License-Identifier: MIT */
/*
 * poller_epoll.c - Linux: one epoll set, descriptors registered while in use.
 *
 * Mode once is EPOLLONESHOT, re-armed by EPOLL_CTL_MOD; mode keep is edge
 * triggered, and registered once. A report carries the descriptor number and
 * the generation of the watch, so one for a descriptor that has since been
 * closed and opened anew is told apart. A registration can outlive its number
 * (a duplicate keeps the file open); one-shot makes that harmless, too.
 */
#include "poller/poller.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <parataxis/io.h>

#include "loop.h"
#include "poller/wake.h"

#define BATCH 64
#define WAKE_KEY UINT64_MAX

int px__poller_open(struct px_poller *poller)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = WAKE_KEY};
    int err;

    if (poller->is_open)
        return 0;
    poller->fd = epoll_create1(EPOLL_CLOEXEC);
    if (poller->fd < 0)
        return -errno;
    err = px__wake_open(poller);
    if (err == 0 && epoll_ctl(poller->fd, EPOLL_CTL_ADD, px__wake_fd(poller),
                              &event) != 0) {
        err = -errno;
        px__wake_close(poller);
    }
    if (err) {
        (void)close(poller->fd);
        return err;
    }
    poller->is_open = true;
    return 0;
}

void px__poller_close(struct px_poller *poller)
{
    if (!poller->is_open)
        return;
    px__wake_close(poller);
    (void)close(poller->fd);
    poller->is_open = false;
}

static struct epoll_event as_event(const struct px_watch *watch)
{
    struct epoll_event event;

    if (watch->keep)
        event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    else
        event.events =
            (watch->events & PX_READABLE ? EPOLLIN | EPOLLRDHUP : 0u) |
            (watch->events & PX_WRITABLE ? EPOLLOUT : 0u) | EPOLLONESHOT;
    event.data.u64 = (uint64_t)watch->generation << 32 | (uint32_t)watch->fd;
    return event;
}

int px__poller_arm(struct px_poller *poller, struct px_watch *watch, bool force)
{
    struct epoll_event event = as_event(watch);
    int op = watch->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    if (watch->registered && watch->keep && !force)
        return 0;
    if (epoll_ctl(poller->fd, op, watch->fd, &event) == 0) {
        watch->registered = true;
        return 0;
    }
    if (errno == EEXIST &&
        epoll_ctl(poller->fd, EPOLL_CTL_MOD, watch->fd, &event) == 0) {
        watch->registered = true;
        return 0;
    }
    if (errno == ENOENT)
        watch->registered = false;
    return -errno;
}

void px__poller_forget(struct px_poller *poller, struct px_watch *watch)
{
    if (watch->registered)
        (void)epoll_ctl(poller->fd, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->registered = false;
}

static int as_milliseconds(px_nsec timeout)
{
    px_nsec rounded = timeout / PX_MSEC + (timeout % PX_MSEC != 0);

    return rounded > INT_MAX ? INT_MAX : (int)rounded;
}

/* epoll_wait() counts in milliseconds: a timeout it can not hold exactly is
 * first waited for by ppoll() on the set itself. */
static int wait_exactly(int fd, struct epoll_event *events, px_nsec timeout)
{
    if (timeout == PX_FOREVER)
        return epoll_wait(fd, events, BATCH, -1);
    if (timeout % PX_MSEC != 0 && timeout < 100 * PX_SEC) {
        struct pollfd set = {.fd = fd, .events = POLLIN};
        struct timespec time = {.tv_sec = (time_t)(timeout / PX_SEC),
                                .tv_nsec = (long)(timeout % PX_SEC)};

        if (ppoll(&set, 1, &time, NULL) <= 0)
            return 0;
        timeout = 0;
    }
    return epoll_wait(fd, events, BATCH, as_milliseconds(timeout));
}

/* Nothing to watch: only time passes. So there is a timer; what wakes a loop
 * without one has opened the poller. */
static void sleep_only(px_nsec timeout)
{
    struct timespec time = {.tv_sec = (time_t)(timeout / PX_SEC),
                            .tv_nsec = (long)(timeout % PX_SEC)};

    (void)ppoll(NULL, 0, &time, NULL);
}

void px__poller_wait(struct px_poller *poller, px_loop *loop, px_nsec timeout)
{
    struct epoll_event events[BATCH];
    int count;

    if (!poller->is_open) {
        sleep_only(timeout);
        return;
    }
    count = wait_exactly(poller->fd, events, timeout);
    for (int i = 0; i < count; i++) {
        uint32_t bits = events[i].events;
        uint64_t key = events[i].data.u64;
        int ready = 0;

        if (key == WAKE_KEY) {
            px__wake_clear(poller);
            continue;
        }
        if (bits & (EPOLLIN | EPOLLRDHUP | EPOLLPRI | EPOLLHUP | EPOLLERR))
            ready |= PX_READABLE;
        if (bits & (EPOLLOUT | EPOLLHUP | EPOLLERR))
            ready |= PX_WRITABLE;
        loop->on_ready(loop, (int)(uint32_t)key, (uint32_t)(key >> 32), ready);
    }
}
