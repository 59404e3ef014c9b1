/* SPDX-License-Identifier: MIT */
/*
 * wake.c - a non-blocking pipe: portable, and as fast as it needs to be, for
 * only the first of a burst of posts writes to it.
 */
#include "poller/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int px__wake_open(struct px_poller *poller)
{
    if (pipe2(poller->wake, O_NONBLOCK | O_CLOEXEC) != 0)
        return -errno;
    return 0;
}

void px__wake_close(struct px_poller *poller)
{
    (void)close(poller->wake[0]);
    (void)close(poller->wake[1]);
}

void px__poller_wake(struct px_poller *poller)
{
    ssize_t written;

    /* A full pipe is a wake-up too. */
    do {
        written = write(poller->wake[1], "", 1);
    } while (written < 0 && errno == EINTR);
}

void px__wake_clear(struct px_poller *poller)
{
    char bytes[64];
    ssize_t got;

    do {
        got = read(poller->wake[0], bytes, sizeof(bytes));
    } while (got == (ssize_t)sizeof(bytes) || (got < 0 && errno == EINTR));
}
