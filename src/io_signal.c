/* SPDX-License-Identifier: MIT */
/*
 * io_signal.c - waiting for a signal: signalfd says that one is there,
 * sigtimedwait() takes it, or finds that another fiber was quicker.
 */
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "cancel.h"
#include "io.h"

/* A pending one: its number, 0 if there is none, or -errno. */
static int take(const sigset_t *set)
{
    static const struct timespec now;
    int number;

    do {
        number = sigtimedwait(set, NULL, &now);
    } while (number < 0 && errno == EINTR);
    if (number < 0)
        return errno == EAGAIN ? 0 : -errno;
    return number;
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
    number = take(set);
    if (number)
        return number;
    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    fd = signalfd(-1, set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    while (number == 0) {
        err = px__io_wait_signal(self, fd);
        number = err < 0 ? err : take(set);
    }
    px__io_forget(self->loop, fd);
    (void)close(fd);
    return number;
}
