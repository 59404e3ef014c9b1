/* SPDX-License-Identifier: MIT */
/* clock.c - reads CLOCK_MONOTONIC, which no one can set. */
#include "base/clock.h"

#include <time.h>

#ifdef CLOCK_MONOTONIC_COARSE
#define COARSE_CLOCK CLOCK_MONOTONIC_COARSE
#else
#define COARSE_CLOCK CLOCK_MONOTONIC
#endif

static px_nsec as_nsec(struct timespec time)
{
    return (px_nsec)time.tv_sec * PX_SEC + (px_nsec)time.tv_nsec;
}

px_nsec px__clock_precise(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return as_nsec(time);
}

px_nsec px__clock_coarse(void)
{
    struct timespec time;

    (void)clock_gettime(COARSE_CLOCK, &time);
    return as_nsec(time);
}
