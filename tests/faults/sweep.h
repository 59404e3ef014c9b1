/* SPDX-License-Identifier: MIT */
/*
 * sweep.h - runs a workload again and again, another call failing each time.
 *
 * The first call of a kind fails, then the second, and so on until a pass makes
 * fewer calls than that; each once, and each with all that follow it. A pass
 * may be refused what it asks for, with a code that the headers name and its
 * objects as they were. It asks again, and must get it once the fault is over:
 *
 *     UNTIL_OK(err, px_spawn(&fiber, fn, &gate), NOMEM, fiber == NULL);
 *
 * After each pass nothing may be left: memory, mappings, descriptors, threads.
 */
#ifndef SWEEP_H
#define SWEEP_H

#include <errno.h>

#include "inject.h"
#include "px_scale.h"
#include "px_test.h"

struct workload {
    /* Before and after each pass, off-fiber; nothing fails there. */
    void (*set_up)(void);
    void (*tear_down)(void);
    /* The main fiber; or, without a run, what to do. */
    px_fn body;
    bool off_fiber;
    bool real;  /* by the real clock */
    bool wakes; /* other threads wake the loop: read and write are its own */
    px_run_options options;
};

/* Every fault there is, in turn; then each two, if the calls are few. */
void sweep(const struct workload *workload);
/* One pass under the faults given. */
void sweep_pass(const struct workload *workload, const struct fault *faults,
                size_t n);
/* Every way in which the calls that a process makes only once can fail, each in
 * a child process. */
void sweep_first_runs(const struct workload *workload);

/* Codes that a call may be refused with. */
enum {
    NOMEM = 1,     /* PX_ENOMEM */
    SYSTEM = 2,    /* what the system said; PX_EBADF for ENOENT */
    NO_THREAD = 4, /* PX_EAGAIN */
    SETS_ERRNO = 8
};

/* Try until it succeeds. Refused, `unchanged` must hold. */
#define UNTIL_OK(result, call, allowed, unchanged)                             \
    for (int tries_ = 1;                                                       \
         (errno = KEPT_ERRNO, (result) = (call),                               \
         sweep_came_back((allowed), #call, __FILE__, __LINE__)),               \
             (result) < 0 &&                                                   \
                 sweep_refused((int)(result), (allowed), (unchanged), tries_,  \
                               #call, __FILE__, __LINE__);                     \
         tries_++)                                                             \
    continue

/* EXPECT, and say which fault it was. */
#define HOLDS(condition)                                                       \
    sweep_holds((condition) ? true : false, #condition, __FILE__, __LINE__)

#define KEPT_ERRNO 4242
void sweep_came_back(int allowed, const char *text, const char *file, int line);
bool sweep_refused(int code, int allowed, bool unchanged, int tries,
                   const char *text, const char *file, int line);
void sweep_holds(bool holds, const char *text, const char *file, int line);

/* Whether the kernel refuses to read there. */
bool sweep_is_guarded(const char *at);

#endif
