/* SPDX-License-Identifier: MIT */
/*
 * quick_clock.h - the time, or a little later, for half the price.
 *
 * What a deadline counts from must not be behind the time, or it is early. The
 * coarse clock is behind by any number of ticks. The processor's own counter
 * costs less than half of a call of clock_gettime(), which reads it too, behind
 * a fence and a lock: here the time is the last one that the system told, plus
 * what the counter has moved since, counted 0.2 % too fast. Corrections of the
 * system's clock are slower than that (500 ppm for NTP), so it is never behind;
 * and after a millisecond the system is asked again, so it is ahead by some
 * four microseconds at most.
 *
 * Where the counter can not be trusted (the kernel itself prefers another
 * clock, it was seen to be behind, or there is none) the system is asked every
 * time.
 */
#ifndef PX_BASE_QUICK_CLOCK_H
#define PX_BASE_QUICK_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/macros.h"

/* Nanoseconds for the counter's own steps, and for a processor that reads it
 * before what stands before. */
#define PX_COUNTER_SLACK 200

/* Of one thread. Zero is one that has not been asked yet. */
struct px_quick_clock {
    uint64_t count; /* the counter, */
    px_nsec time;   /* and not before what time that was */
    uint64_t rate;  /* nanoseconds in 2^32 counts, rounded up generously */
    uint64_t good;  /* for so many counts after `count`; 0: not at all */

    uint64_t first_count; /* what the rate is measured from, */
    uint64_t first_gap;   /* how far that may be off, in counts, */
    px_nsec first_time;   /* and when it was */
    bool measures;
    bool refused; /* do not try again */
};

#if defined(__x86_64__)
static inline uint64_t px__counter(void)
{
    return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
static inline uint64_t px__counter(void)
{
    uint64_t count;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
}
#else
static inline uint64_t px__counter(void)
{
    return 0;
}
#endif

/* Ask the system, and note what the counter says. */
px_nsec px__quick_clock_ask(struct px_quick_clock *clock);

/* Not before now. */
static inline px_nsec px__quick_clock(struct px_quick_clock *clock)
{
    uint64_t counts = px__counter() - clock->count;

    if (PX_UNLIKELY(counts >= clock->good))
        return px__quick_clock_ask(clock);
    return clock->time + (px_nsec)(counts * clock->rate >> 32) +
           PX_COUNTER_SLACK;
}

#endif
