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

/* Nothing more is for it: it was served, interrupted, or ends. */
static void leave(const px_fiber *fiber)
{
    struct px_signal_wait **at = &fiber->loop->signal_waits;

    while (*at && (*at)->fiber != fiber)
        at = &(*at)->next;
    if (*at)
        *at = (*at)->next;
}

static bool signal_interrupt(px_fiber *fiber, int code)
{
    leave(fiber);
    return px__io_interrupt(fiber, code);
}

static const struct px_wait_class signal_class = {
    .kind = PX_WAIT_SIGNAL,
    .interrupt = signal_interrupt,
};

/* Give what is pending to those who wait, the first first. */
static void serve(px_loop *loop)
{
    struct px_signal_wait *next;

    for (struct px_signal_wait *w = loop->signal_waits; w; w = next) {
        int number = take(w->set);

        next = w->next;
        if (number == 0)
            continue;
        w->number = number;
        leave(w->fiber);
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

/* In turn: the signal's number, or a code. What was given is not given back. */
static int wait_in_turn(px_fiber *self, const sigset_t *set, int fd)
{
    struct px_signal_wait wait = {.set = set, .fiber = self};
    int err = 0;

    join(self->loop, &wait);
    serve(self->loop);
    while (wait.number == 0 && err == 0) {
        err = px__io_park_for_signal(self, fd, &signal_class);
        if (err == 0)
            serve(self->loop);
    }
    leave(self);
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
    px__io_forget(self->loop, fd);
    (void)close(fd);
    return number;
}
