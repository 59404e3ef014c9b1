/* SPDX-License-Identifier: MIT */
/*
 * harness.h - between the workloads and the program that measures them.
 *
 * Each library has an executable of its own: an adaptor (parataxis.c,
 * boost_fiber.cpp, ...), the workloads compiled against it (workloads.h), and
 * harness.c, which has the main function. Readable as C and as C++.
 */
#ifndef PX_BENCH_HARNESS_H
#define PX_BENCH_HARNESS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A second figure of the same measurement. */
struct extra {
    const char *name; /* NULL: none */
    double value;
};

/* One measurement: how many operations to do, what was seen. */
struct sample {
    long n;     /* in: at least so many operations */
    long ops;   /* out: so many it was */
    int64_t ns; /* out: and so long they took */
    struct extra more[2];
    const char *broken;  /* out: the first check that failed, or NULL */
    const char *instead; /* out: the library is known not to do what the row
                          * asks: no figure, these words; or NULL */
    char note[96];       /* out: what a reader of the figure must know */
};

/* What a row is like. */
enum {
    ROW_ONCE = 1,   /* only the first time counts */
    ROW_SLOW = 2,   /* takes seconds: left out of a quick look */
    ROW_SLACK = 4,  /* runs with timers that may be 1 ms late */
    ROW_CPU_MS = 8, /* the figure is the CPU time of all, not ns each */
    ROW_DENSE = 16, /* memory counts, more than time */
    ROW_LIMIT = 32, /* what the machine costs, below every library */
};

/* One row of the table. */
struct row {
    const char *name;
    const char *what;
    void (*work)(struct sample *s); /* called in the main fiber */
    long least;                     /* the smallest n that makes sense */
    int flags;                      /* ROW_... */
};

/* What an executable offers. */
struct bench {
    const char *library;
    const char *(*version)(void);
    /* fn as the main fiber, for a row of these flags */
    int (*run)(int (*fn)(void *arg), void *arg, int flags);
    const struct row *rows;
    size_t n_rows;
};

/* Defined by the adaptor's file. */
extern const struct bench bench;

/* What rows are timed by: the CPU time of the process. On an idle machine that
 * is the time that passes; on a busy one it leaves out the others' turns. */
int64_t bench_clock(void);
/* CLOCK_MONOTONIC, for rows in which time has to pass. */
int64_t bench_now(void);

/* Note that a check failed: the measurement is no result. */
void bench_broken(struct sample *s, const char *text);

/* Add a second figure, or a third. */
void bench_extra(struct sample *s, const char *name, double value);

/* A number of /proc/self/status, such as VmRSS, in bytes; 0 if it is not there.
 */
double bench_memory(const char *name);

/* The value that 99 % of the n in `values` do not exceed. Sorts them. */
int64_t bench_p99(int64_t *values, size_t n);

#define CHECK(s, condition)                                                    \
    do {                                                                       \
        if (!(condition))                                                      \
            bench_broken(s, #condition);                                       \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
