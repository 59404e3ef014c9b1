/* SPDX-License-Identifier: MIT */
/*
 * clock.h - time in nanoseconds.
 *
 * One type serves for durations and for points on px_now()'s clock. Sums
 * saturate: a duration too long for the type is PX_FOREVER, a negative one
 * is already over.
 */
#ifndef PARATAXIS_CLOCK_H
#define PARATAXIS_CLOCK_H

#include <stdint.h>

#include <parataxis/export.h>

typedef int64_t px_nsec;

#define PX_NSEC ((px_nsec)1)
#define PX_USEC (1000 * PX_NSEC)
#define PX_MSEC (1000 * PX_USEC)
#define PX_SEC (1000 * PX_MSEC)
#define PX_MINUTE (60 * PX_SEC)

#define PX_FOREVER INT64_MAX

/** Which clock a run lives by (see px_run_options). */
typedef enum px_clock {
    PX_CLOCK_REAL = 0,   /* CLOCK_MONOTONIC */
    PX_CLOCK_VIRTUAL = 1 /* starts at 0, jumps to the next timer when idle */
} px_clock;

PX_BEGIN_DECLS

/** The time by the clock of the run this thread is in, for deadlines and for
 *  measuring; under PX_CLOCK_VIRTUAL the virtual time. Off a fiber, the real
 *  monotonic clock. Never parks. */
PX_API px_nsec px_now(void);

PX_END_DECLS

#endif
