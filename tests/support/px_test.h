/* SPDX-License-Identifier: MIT */
/*
 * px_test.h - how a test of this library is written.
 *
 * A cmocka assertion that fails inside a fiber would longjmp off the fiber's
 * stack and leave the scheduler in ruins. So fibers note() what happened, or
 * EXPECT() it, and the test asserts on the main stack, after the run:
 *
 *     static int body(void *arg) { ...; note("a:%s ", err(code)); return 0; }
 *
 *     static void a_permit_is_handed_over(void **state)
 *     {
 *         (void)state;
 *         run_fibers(body, NULL);
 *         assert_log("a:ok ");
 *     }
 *
 *     static const struct CMUnitTest tests[] = { PX_TEST(a_permit_is_...) };
 *     PX_TEST_MAIN(tests)
 *
 * Runs use the virtual clock, so nothing sleeps. With PX_TEST_SEED in the
 * environment every run_fibers() shuffles its run queue by that seed; a test
 * file whose order is a promise of the run queue is labelled "order" in
 * tests/CMakeLists.txt and left out there.
 */
#ifndef PX_TEST_H
#define PX_TEST_H

#ifdef NDEBUG
#error "the tests need their assertions: do not define NDEBUG"
#endif

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <parataxis/parataxis.h>

/* Append to the test's log; printf's format. From anywhere on one thread. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *log_text(void);
void log_clear(void);

/* A code in a word: "ok", "timedout", "canceled", "stalled", "again", "busy",
 * "invalid", "closed", "nofiber", ... or the number. */
const char *err(int code);

/* Assert, on the main stack, that the log reads so and no EXPECT failed. */
#define assert_log(expected) assert_log_at(expected, __FILE__, __LINE__)
void assert_log_at(const char *expected, const char *file, int line);

/* Check inside a fiber. A failure is printed at once and fails the test when
 * it ends. Both are evaluated once; EXPECT_EQ compares as long long. */
#define EXPECT(condition)                                                      \
    expect_at((condition) ? 1 : 0, #condition, __FILE__, __LINE__)
#define EXPECT_EQ(actual, expected)                                            \
    expect_eq_at((long long)(actual), (long long)(expected), #actual,          \
                 __FILE__, __LINE__)
void expect_at(int holds, const char *text, const char *file, int line);
void expect_eq_at(long long actual, long long expected, const char *text,
                  const char *file, int line);

/* Run `fn(arg)` by the virtual clock, and expect that px_run returns 0. */
void run_fibers(px_fn fn, void *arg);

/* The same with options (clock and seed are set as above unless the clock is
 * said otherwise: pass real = 1 for the real clock). Returns px_run's value. */
int run_fibers_with(px_run_options options, int real, px_fn fn, void *arg);

/* Start a fiber that is not awaited; fails the test if that fails. */
void start(px_fn fn, void *arg);
/* Start a fiber and return its handle. */
px_fiber *start_handle(px_fn fn, void *arg);

/* Let the others run until all of them are parked: a sleep of 1 ns on the
 * virtual clock, which moves only when nobody can run. */
void settle(void);

/* Let real time pass on this thread, whatever the fibers' clock is. */
void really_sleep(px_nsec duration);

/* How many descriptors this process has open. */
int open_descriptors(void);

/* Run `fn` in a child process with its stderr captured into `output`. Returns
 * waitpid's status. For tests of aborts and other ends of a process. */
int in_child(void (*fn)(void *), void *arg, char *output, size_t size);

/* Set-up and tear-down of every test: the log is empty, no EXPECT has failed,
 * and as many descriptors are open after it as before. */
int px_test_setup(void **state);
int px_test_teardown(void **state);

#define PX_TEST(name)                                                          \
    cmocka_unit_test_setup_teardown(name, px_test_setup, px_test_teardown)

#define PX_TEST_MAIN(tests)                                                    \
    int main(void)                                                             \
    {                                                                          \
        return px_test_main(#tests, tests,                                     \
                            sizeof(tests) / sizeof((tests)[0]));               \
    }
int px_test_main(const char *name, const struct CMUnitTest *tests, size_t n);

#endif
