/* SPDX-License-Identifier: MIT */
/* clock.h - the monotonic clock, and sums that saturate. */
#ifndef PX_BASE_CLOCK_H
#define PX_BASE_CLOCK_H

#include <parataxis/clock.h>

/* The time now. */
px_nsec px__clock_precise(void);
/* A time that is some ticks old: cheaper to read. */
px_nsec px__clock_coarse(void);

/* a + b, for b of any sign; past the end it is PX_FOREVER. */
static inline px_nsec px__clock_add(px_nsec a, px_nsec b)
{
    px_nsec sum;

    if (__builtin_add_overflow(a, b, &sum))
        return b > 0 ? PX_FOREVER : INT64_MIN;
    return sum;
}

#endif
