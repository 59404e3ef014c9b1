/* SPDX-License-Identifier: MIT */
/* clock.c - reads CLOCK_MONOTONIC, which no one can set. */
#include "base/clock.h"

#include <time.h>

px_nsec px__clock_precise(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (px_nsec)time.tv_sec * PX_SEC + (px_nsec)time.tv_nsec;
}
