/* SPDX-License-Identifier: MIT */
/* wake.h - a descriptor that another thread makes readable (both pollers). */
#ifndef PX_POLLER_WAKE_H
#define PX_POLLER_WAKE_H

#include "poller/poller.h"

/* 0 or -errno. */
int px__wake_open(struct px_poller *poller);
void px__wake_close(struct px_poller *poller);
/* The descriptor to wait for. */
static inline int px__wake_fd(const struct px_poller *poller)
{
    return poller->wake[0];
}
/* Take the wake-ups that have come. */
void px__wake_clear(struct px_poller *poller);

#endif
