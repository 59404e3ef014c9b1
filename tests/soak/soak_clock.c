/* SPDX-License-Identifier: MIT */
/*
 * soak_clock.c - a system's clock that stands still, leaps ten years, or goes
 * back by an hour: nobody wakes early, and everybody wakes once it is time.
 *
 * The clock is ours: ld puts __wrap_px__clock_precise() in the place of the
 * library's. The processor's counter is not asked, as it moves on by itself.
 * The main fiber never sleeps here, or the poller would wait for a time that
 * does not come.
 */
#include "soak.h"

#include "loop.h"

#define HOUR (60 * PX_MINUTE)
#define YEAR (365 * 24 * HOUR)

static px_nsec time_now;

px_nsec __wrap_px__clock_precise(void);

px_nsec __wrap_px__clock_precise(void)
{
    return time_now;
}

static struct {
    int woke, early;
} seen;

static int sleeps_a_second(void *arg)
{
    px_nsec due = px_now() + PX_SEC;

    (void)arg;
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    seen.woke++;
    seen.early += time_now < due;
    return 0;
}

static int takes_for_ever(void *arg)
{
    return px_sem_down(arg);
}

static int times_out_after_a_second(void *arg)
{
    px_nsec due = px_now() + PX_SEC;
    int code = px_with_timeout(PX_SEC, takes_for_ever, arg);

    EXPECT_EQ(code, PX_ETIMEDOUT);
    seen.woke++;
    seen.early += time_now < due;
    return 0;
}

static void turns_of_the_loop(int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        EXPECT_EQ(px_yield(), 0);
}

/* Timers are looked at every 61 switches. */
static int go_through_it(void *arg)
{
    static px_sem never = PX_SEM_INIT(0);
    int64_t still = soak(1000000);

    (void)arg;
    px__loop->quick_clock.refused = true;
    for (int i = 0; i < 100; i++) {
        start(sleeps_a_second, NULL);
        start(times_out_after_a_second, &never);
    }
    turns_of_the_loop(still); /* it stands still, */
    EXPECT_EQ(seen.woke, 0);
    time_now += PX_SEC - 1; /* is a nanosecond short, */
    turns_of_the_loop(1000);
    EXPECT_EQ(seen.woke, 0);
    time_now -= HOUR; /* goes back, */
    turns_of_the_loop(1000);
    EXPECT_EQ(seen.woke, 0);
    time_now += HOUR + 10 * YEAR; /* and leaps. */
    turns_of_the_loop(1000);
    EXPECT_EQ(seen.woke, 200);
    EXPECT_EQ(seen.early, 0);

    /* From there on, as if nothing had been. */
    start(sleeps_a_second, NULL);
    turns_of_the_loop(1000);
    EXPECT_EQ(seen.woke, 200);
    time_now += PX_SEC;
    turns_of_the_loop(1000);
    EXPECT_EQ(seen.woke, 201);
    EXPECT_EQ(seen.early, 0);
    return 0;
}

static void nobody_wakes_early_by_a_clock_that_misbehaves(void **state)
{
    px_run_options options = {.clock = PX_CLOCK_REAL};

    (void)state;
    time_now = 100 * YEAR;
    memset(&seen, 0, sizeof(seen));
    assert_int_equal(run_fibers_with(options, 1, go_through_it, NULL), 0);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(nobody_wakes_early_by_a_clock_that_misbehaves),
};

PX_TEST_MAIN(tests)
