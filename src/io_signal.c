/* SPDX-License-Identifier: MIT */
/*
 * io_signal.c - waiting for a signal: a signalfd of each waiter's own says that
 * one is there, sigtimedwait() takes it.
 *
 * Whoever runs first takes what is pending for all who wait, in the order of
 * their arrival: which descriptor the poller reports first says nothing.
 */
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "cancel.h"
#include "io.h"

/* A pending one: its number, or 0 if there is none. */
static int take(const sigset_t *set)
{
    static const struct timespec now;
    int number;

    do {
        number = sigtimedwait(set, NULL, &now);
    } while (number < 0 && errno == EINTR);
    return number < 0 ? 0 : number; /* -1 is EAGAIN */
}

/* It lies on the waiter's stack. */
struct px_signal_wait {
    struct px_signal_wait *next;
    const sigset_t *set;
    px_fiber *fiber;
    int number; /* what it was given, or 0 */
};

/* It has been served; or its call has failed, before or while it was parked,
 * and it has not run since: it stays in the list until it does, and what comes
 * later is not for it. */
static bool is_over(const struct px_signal_wait *wait)
{
    const px_fiber *fiber = wait->fiber;

    return wait->number ||
           (fiber->state == PX_STATE_READY && fiber->verdict != 0);
}

/* Give what is pending to those who wait, the first first. */
static void serve(px_loop *loop)
{
    for (struct px_signal_wait *w = loop->signal_waits; w; w = w->next) {
        int number = is_over(w) ? 0 : take(w->set);

        if (number <= 0)
            continue;
        w->number = number;
        (void)px__interrupt(w->fiber, 0);
    }
}

static void join(px_loop *loop, struct px_signal_wait *wait)
{
    struct px_signal_wait **end = &loop->signal_waits;

    while (*end)
        end = &(*end)->next;
    *end = wait;
}

static void leave(px_loop *loop, const struct px_signal_wait *wait)
{
    struct px_signal_wait **at = &loop->signal_waits;

    while (*at != wait)
        at = &(*at)->next;
    *at = wait->next;
}

/* In turn: the signal's number, or a code. What was given is not given back. */
static int wait_in_turn(px_fiber *self, const sigset_t *set, int fd)
{
    struct px_signal_wait wait = {.set = set, .fiber = self};
    int err = 0;

    join(self->loop, &wait);
    serve(self->loop);
    while (wait.number == 0 && err == 0) {
        err = px__io_park_for_signal(self, fd);
        if (err == 0)
            serve(self->loop);
    }
    leave(self->loop, &wait);
    return wait.number ? wait.number : err;
}

int px_wait_signal(const sigset_t *set)
{
    px_fiber *self = px__self;
    int err, fd, number;

    if (!set)
        return PX_EINVAL;
    err = px__cancellation_point(self);
    if (err)
        return err;
    if (!px__is_fiber(self)) {
        number = take(set);
        return number ? number : PX_ENOFIBER;
    }
    if (!self->loop->signal_waits) {
        number = take(set);
        if (number)
            return number;
    }
    fd = signalfd(-1, set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    number = wait_in_turn(self, set, fd);
    px__io_forget(self->loop, fd, PX_EBADF);
    (void)close(fd);
    return number;
}
