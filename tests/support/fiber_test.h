/* SPDX-License-Identifier: MIT */
/*
 * fiber_test.h - short forms for tests of scopes and groups.
 *
 * Most of them are one fiber's story, checked where it happens:
 *
 *     FIBER_TEST(a_left_scope_is_harmless)
 *     {
 *         px_scope scope;
 *
 *         EXPECT_EQ(px_scope_enter(&scope, PX_SEC), 0);
 *         ...
 *         return 0;
 *     }
 *
 * It runs as the main fiber by the virtual clock. Times are compared exactly.
 */
#ifndef FIBER_TEST_H
#define FIBER_TEST_H

#include "px_test.h"

#define UNUSED __attribute__((unused))

/* A test whose body is the main fiber of a run that returns 0. */
#define FIBER_TEST(name)                                                       \
    static int name##_body(void *arg);                                         \
    static void name(void **state)                                             \
    {                                                                          \
        (void)state;                                                           \
        run_fibers(name##_body, NULL);                                         \
    }                                                                          \
    static int name##_body(void *arg UNUSED)

/* Compare the log inside a fiber, and begin a new one. */
#define EXPECT_LOG(expected) expect_log_at(expected, __FILE__, __LINE__)
static inline void expect_log_at(const char *expected, const char *file,
                                 int line)
{
    if (strcmp(log_text(), expected) != 0) {
        (void)fprintf(stderr, "%s:%d: the log reads \"%s\"\n", file, line,
                      log_text());
        expect_at(0, expected, file, line);
    }
    log_clear();
}

/* A fiber that sleeps inside a scope, and what became of it. */
struct sleeper {
    px_nsec timeout; /* of the scope */
    px_nsec length;  /* of the sleep */
    px_scope scope;
    int slept;    /* what px_sleep returned */
    int left;     /* what px_scope_leave returned */
    px_nsec woke; /* when px_sleep returned; 0: not yet */
};

static inline int sleeps_in_a_scope(void *arg)
{
    struct sleeper *self = arg;

    EXPECT_EQ(px_scope_enter(&self->scope, self->timeout), 0);
    self->slept = px_sleep(self->length);
    self->woke = px_now();
    self->left = px_scope_leave(&self->scope);
    return self->slept;
}

/* Sleep for *(px_nsec *)arg and return the code. */
static inline int sleeps(void *arg)
{
    return px_sleep(*(const px_nsec *)arg);
}

/* Sleep until something fires. */
static inline int sleeps_for_ever(void *arg UNUSED)
{
    return px_sleep(PX_FOREVER);
}

/* Take a permit of the semaphore at arg. */
static inline int takes_a_permit(void *arg)
{
    return px_sem_down(arg);
}

/* An on_deadlock that counts its calls in the int at ctx. */
static inline void count_deadlocks(void *ctx)
{
    ++*(int *)ctx;
}

#endif
