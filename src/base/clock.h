/* SPDX-License-Identifier: MIT */
/* clock.h - the monotonic clock, and sums that saturate. */
#ifndef PX_BASE_CLOCK_H
#define PX_BASE_CLOCK_H

#include <parataxis/clock.h>

/* The time now. Not the coarse clock, which is cheaper: it lags by any number
 * of ticks, so a deadline that counts from it is early. */
px_nsec px__clock_precise(void);

/* a + b, for b of any sign; past the end it is PX_FOREVER. */
static inline px_nsec px__clock_add(px_nsec a, px_nsec b)
{
    px_nsec sum;

    if (__builtin_add_overflow(a, b, &sum))
        return b > 0 ? PX_FOREVER : INT64_MIN;
    return sum;
}

#endif
