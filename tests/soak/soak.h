/* SPDX-License-Identifier: MIT */
/*
 * soak.h - tests that look for what shows only after a long time: memory that
 * grows by a page in a million calls, an order that is broken once.
 *
 * How much they do is set for some minutes in all. PX_SOAK_TIMES in the
 * environment says how many times that, for hours of it; under a tool it is a
 * hundredth. Nothing is said about how long anything takes.
 */
#ifndef SOAK_H
#define SOAK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "px_crowd.h"
#include "px_scale.h"
#include "px_test.h"

static inline int64_t soak(int64_t n)
{
    const char *times = getenv("PX_SOAK_TIMES");

    if (is_small())
        return n >= 100 ? n / 100 : n;
    return times ? n * strtoll(times, NULL, 10) : n;
}

/* Pseudo-random numbers below n, the same in every run. */
static inline uint64_t random_below(uint64_t *state, uint64_t n)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % n;
}

/* Resident memory and mappings, to be compared with what they were. */
struct footprint {
    long kib;
    int maps;
};

/* Looks twice: the first look may itself take a page. */
static inline struct footprint footprint(void)
{
    struct footprint now = {0, 0};

    for (int i = 0; i < 2; i++) {
        now.kib = resident_kib();
        now.maps = mappings();
    }
    return now;
}

/* A tool's own memory grows with what the program does. */
static inline void expect_as_flat_as(struct footprint before)
{
    struct footprint now = footprint();

    print_message("    memory %ld KiB, then %ld; mappings %d, then %d\n",
                  before.kib, now.kib, before.maps, now.maps);
    if (has_shadow())
        return;
    EXPECT_EQ(now.kib > before.kib ? now.kib - before.kib : 0, 0);
    EXPECT_EQ(now.maps > before.maps ? now.maps - before.maps : 0, 0);
}

#endif
