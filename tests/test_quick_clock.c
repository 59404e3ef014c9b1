/* SPDX-License-Identifier: MIT */
/*
 * test_quick_clock.c - the cheap clock that deadlines count from.
 *
 * It is tested against the system's own, read before: it may never be behind
 * that. How far it is ahead is not tested, for whatever interrupts a test
 * counts as that.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/quick_clock.h"
#include "support/px_scale.h"
#include "support/px_test.h"

/* Read both for so long; how often the quick one was behind. */
static int times_behind(struct px_quick_clock *clock, px_nsec duration)
{
    px_nsec end = px__clock_precise() + duration;
    int behind = 0;

    for (px_nsec before = 0; before < end;) {
        before = px__clock_precise();
        behind += px__quick_clock(clock) < before;
    }
    return behind;
}

static void it_is_never_behind(void **state)
{
    struct px_quick_clock clock = {.count = 0};

    (void)state;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(times_behind(&clock, 25 * PX_MSEC), 0);
        really_sleep(i * 3 * PX_MSEC); /* what it knows gets old */
    }
}

static void it_asks_the_system_until_it_has_measured(void **state)
{
    struct px_quick_clock clock = {.count = 0};
    px_nsec before = px__clock_precise(), time = px__quick_clock(&clock);

    (void)state;
    assert_true(time >= before);
    assert_true(time <= px__clock_precise());
    assert_int_equal(clock.good, 0);
}

static void measure(struct px_quick_clock *clock)
{
    for (int i = 0; i < 100 && !clock->good && !clock->refused; i++) {
        (void)px__quick_clock(clock);
        really_sleep(PX_MSEC);
    }
}

/* Only where there is one. */
static void require_counter(const struct px_quick_clock *clock)
{
    if (clock->refused) {
        print_message("skipped: no counter here that could be trusted\n");
        skip();
    }
}

/* Between the counter and the clock, anything may come in between. */
static void an_interrupted_reading_makes_it_no_slower(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct px_quick_clock clock = {.count = 0};

        (void)px__quick_clock(&clock);
        require_counter(&clock);
        /* as if its first reading had taken until now */
        really_sleep((late ? 4000 : 100) * PX_USEC);
        clock.first_time = px__clock_precise();
        clock.first_gap += px__counter() - clock.first_count;
        clock.first_count = px__counter();
        assert_int_equal(times_behind(&clock, 20 * PX_MSEC), 0);
    }
}

static void a_counter_that_was_seen_to_be_slow_is_refused(void **state)
{
    struct px_quick_clock clock = {.count = 0};
    px_nsec before;

    (void)state;
    measure(&clock);
    require_counter(&clock);
    (void)px__quick_clock_ask(&clock);
    for (int i = 0; i < 100 && !clock.refused; i++) {
        clock.rate /= 2; /* as if the system's clock ran twice as fast */
        clock.good = UINT64_MAX / 4;
        really_sleep(100 * PX_USEC);
        (void)px__quick_clock_ask(&clock);
    }
    assert_true(clock.refused);
    before = px__clock_precise();
    assert_true(px__quick_clock(&clock) >= before);
    assert_true(px__quick_clock(&clock) <= px__clock_precise());
}

/* It starts again somewhere else: a machine that slept, another processor. */
static void a_counter_that_jumped_is_not_believed(void **state)
{
    struct px_quick_clock clock = {.count = 0};

    (void)state;
    measure(&clock);
    require_counter(&clock);
    for (int back = 0; back < 2; back++) {
        const uint64_t far = UINT64_C(1) << 40;

        clock.count += back ? far : 0 - far;
        assert_int_equal(times_behind(&clock, 5 * PX_MSEC), 0);
        assert_true(px__quick_clock(&clock) < px__clock_precise() + PX_SEC);
    }
}

/* What it was measured from lies ahead of the counter: another processor's. */
static void a_beginning_that_is_not_past_is_given_up(void **state)
{
    struct px_quick_clock clock = {.count = 0};
    px_nsec before;

    (void)state;
    (void)px__quick_clock(&clock);
    require_counter(&clock);
    clock.first_count += UINT64_C(1) << 40;
    before = px__clock_precise();
    (void)px__quick_clock_ask(&clock);
    assert_true(clock.first_count <= px__counter());
    assert_true(clock.first_time >= before);
    assert_int_equal(clock.good, 0);
}

/* Nor is one from so long ago that the rate may have changed. */
static void a_beginning_of_long_ago_is_given_up(void **state)
{
    struct px_quick_clock clock = {.count = 0};
    px_nsec before;

    (void)state;
    (void)px__quick_clock(&clock);
    require_counter(&clock);
    clock.first_time -= 10 * PX_SEC;
    before = px__clock_precise();
    (void)px__quick_clock_ask(&clock);
    assert_true(clock.first_time >= before);
    assert_int_equal(clock.good, 0);
}

static bool is_interrupted, is_held_up; /* after its reading, or before */

/* What the library calls instead (LINKER:--wrap). */
px_nsec __real_px__clock_precise(void);
px_nsec __wrap_px__clock_precise(void);

px_nsec __wrap_px__clock_precise(void)
{
    px_nsec time;

    if (is_held_up)
        really_sleep(300 * PX_USEC);
    time = __real_px__clock_precise();
    if (is_interrupted)
        really_sleep(100 * PX_USEC);
    return time;
}

/* Between the two readings of the counter too much has happened: the time is
 * right, but nothing is learnt from it. */
static void a_reading_that_was_interrupted_is_not_kept(void **state)
{
    struct px_quick_clock clock = {.count = 0}, was;
    px_nsec before, time;

    (void)state;
    measure(&clock);
    require_counter(&clock);
    was = clock;
    before = px__clock_precise();
    is_interrupted = true;
    time = px__quick_clock_ask(&clock);
    is_interrupted = false;
    assert_true(time >= before);
    assert_true(time <= px__clock_precise());
    assert_memory_equal(&clock, &was, sizeof(clock));
}

/* Nor from one that tells the rate, before which there was none. */
static void a_first_reading_that_was_interrupted_is_not_kept(void **state)
{
    struct px_quick_clock clock = {.count = 0};
    px_nsec ahead;

    (void)state;
    (void)px__quick_clock(&clock);
    require_counter(&clock);
    really_sleep(400 * PX_MSEC); /* so that such a gap is a small one */
    is_held_up = true;
    (void)px__quick_clock_ask(&clock);
    is_held_up = false;
    ahead = px__quick_clock(&clock) - px__clock_precise();
    assert_true(ahead < 50 * PX_USEC);
}

/* --- Whether there is a counter that may be trusted ----------------------- */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
ssize_t __real_read(int fd, void *buf, size_t n);
ssize_t __wrap_read(int fd, void *buf, size_t n);
int __real_prctl(int option, ...);
int __wrap_prctl(int option, ...);

/* What the kernel says of itself; NULL: the truth. */
static const struct kernel {
    const char *clock;
    int refuses; /* to tell what the process may do */
    int may;     /* what it may do with the counter */
} * kernel;

int __wrap_open(const char *path, int flags, ...)
{
    return kernel && !kernel->clock ? -1 : __real_open(path, flags);
}

ssize_t __wrap_read(int fd, void *buf, size_t n)
{
    size_t length;

    if (!kernel)
        return __real_read(fd, buf, n);
    length = strlen(kernel->clock);
    memcpy(buf, kernel->clock, length < n ? length : n);
    return (ssize_t)(length < n ? length : n);
}

int __wrap_prctl(int option, ...)
{
    va_list args;
    int *out;

    va_start(args, option);
    out = va_arg(args, int *);
    va_end(args);
    if (!kernel)
        return __real_prctl(option, out);
    *out = kernel->may;
    return kernel->refuses ? -1 : 0;
}

/* In a process that has not looked yet. */
static void look(void *arg)
{
    struct px_quick_clock clock = {.count = 0};
    px_nsec before = px__clock_precise(), time;

    kernel = arg;
    time = px__quick_clock(&clock);
    kernel = NULL;
    if (time < before || time > px__clock_precise())
        _exit(2);
    _exit(clock.refused ? 1 : 0);
}

static int says(const char *clock, int refuses, int may)
{
    struct kernel faked = {clock, refuses, may};
    char output[256];
    int status = in_child(look, &faked, output, sizeof(output));

    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#if defined(__x86_64__)
#define KERNEL_IS_ASKED true
#else
#define KERNEL_IS_ASKED false
#endif

static void only_a_counter_that_the_kernel_trusts_is_used(void **state)
{
    enum { USED, REFUSED };

    (void)state;
    if (!KERNEL_IS_ASKED) {
        print_message("skipped: here the counter is looked at itself\n");
        skip();
    }
    assert_int_equal(says("tsc\n", 0, PR_TSC_ENABLE), USED);
    assert_int_equal(says("tsc\n", 0, PR_TSC_SIGSEGV), REFUSED);
    assert_int_equal(says("tsc\n", 1, PR_TSC_ENABLE), REFUSED);
    assert_int_equal(says("pit\n", 0, PR_TSC_ENABLE), REFUSED);
    assert_int_equal(says("kvm-clock\n", 0, PR_TSC_ENABLE), REFUSED);
    assert_int_equal(says("", 0, PR_TSC_ENABLE), REFUSED);
    assert_int_equal(says(NULL, 0, PR_TSC_ENABLE), REFUSED);
}

static const struct CMUnitTest tests[] = {
    /* first: each process looks once */
    PX_TEST(only_a_counter_that_the_kernel_trusts_is_used),
    PX_TEST(it_is_never_behind),
    PX_TEST(it_asks_the_system_until_it_has_measured),
    PX_TEST(an_interrupted_reading_makes_it_no_slower),
    PX_TEST(a_counter_that_was_seen_to_be_slow_is_refused),
    PX_TEST(a_counter_that_jumped_is_not_believed),
    PX_TEST(a_beginning_that_is_not_past_is_given_up),
    PX_TEST(a_beginning_of_long_ago_is_given_up),
    PX_TEST(a_reading_that_was_interrupted_is_not_kept),
    PX_TEST(a_first_reading_that_was_interrupted_is_not_kept),
};

PX_TEST_MAIN(tests)
