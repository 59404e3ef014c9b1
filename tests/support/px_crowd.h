/* SPDX-License-Identifier: MIT */
/*
 * px_crowd.h - fibers that park in one queue until there is room for no more,
 * and what a process has of what they take.
 */
#ifndef PX_CROWD_H
#define PX_CROWD_H

#include <parataxis/parataxis.h>

/* What this process has, in KiB; 0 where that cannot be known. */
long mapped_kib(void);   /* address space */
long resident_kib(void); /* memory */
long data_kib(void);     /* what RLIMIT_DATA counts */
int mappings(void);
/* vm.max_map_count; 0 where that cannot be known. */
long most_mappings(void);

struct crowd {
    px_sem gate;
    int gathered;
    int ended;
    int out_of_order;
};

/* Start fibers, `n` at most, that park in the crowd's queue. Returns 0 or the
 * code of the spawn that failed. */
int crowd_gather(struct crowd *crowd, int n);

/* Wake `n` of them, one after the other; each ends before the next is woken,
 * and finds that it is its turn. */
void crowd_release(struct crowd *crowd, int n);

/* The same all at once. */
void crowd_release_all(struct crowd *crowd);

/* What a crowd is to do at a limit. */
struct crowd_limit {
    void (*set)(void);
    void (*lift)(void); /* NULL: it cannot be */
    int at_least;       /* so many fit */
    int at_most;
};

/* Run a crowd as large as the limit lets it be, and see that spawns are refused
 * with PX_ENOMEM, that those that exist are woken in order and end, that others
 * take their places, and that all of it is given back. Off-fiber. */
void crowd_meets(const struct crowd_limit *limit);

#endif
