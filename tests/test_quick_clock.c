/* SPDX-License-Identifier: MIT */
/*
 * test_quick_clock.c - the cheap clock that deadlines count from.
 *
 * It is tested against the system's own, read before: it may never be behind
 * that. How far it is ahead is not tested, for whatever interrupts a test counts
 * as that.
 */
#include <time.h>

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

static const struct CMUnitTest tests[] = {
    PX_TEST(it_is_never_behind),
    PX_TEST(it_asks_the_system_until_it_has_measured),
    PX_TEST(an_interrupted_reading_makes_it_no_slower),
    PX_TEST(a_counter_that_was_seen_to_be_slow_is_refused),
    PX_TEST(a_counter_that_jumped_is_not_believed),
};

PX_TEST_MAIN(tests)
