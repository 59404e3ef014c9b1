/* SPDX-License-Identifier: MIT */
/*
 * check.h - checks targets, a bounded number at a time.
 */
#ifndef PROBE_CHECK_H
#define PROBE_CHECK_H

#include <stddef.h>

#include <parataxis/semaphore.h>
#include <parataxis/waitgroup.h>

#include "targets.h"

struct checker {
    px_nsec timeout;  /* for one target, from when it has its place */
    px_nsec deadline; /* for all of them */
    px_sem places;
    px_waitgroup all; /* the checks that are under way */
    size_t done;
    size_t in_flight;
    size_t lookups; /* calls of getaddrinfo, their fibers have not ended */
    size_t unasked; /* of those, the calls that were taken back */
    bool short_of_sockets, short_of_fibers; /* it was said already */
};

void checker_init(struct checker *checker, size_t at_once, px_nsec timeout,
                  px_nsec deadline);

/* Wait for a place and start the check of `target`. Cancellation point.
 * Returns 0, or a code with nothing started. */
int checker_start(struct checker *checker, struct target *target);

#endif
