/* SPDX-License-Identifier: MIT */
/*
 * test_sleep.c - sleeping, yielding, and the timers and descriptors that busy
 * fibers must not starve.
 */
#include <unistd.h>

#include "support/px_scale.h"
#include "support/px_test.h"

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int down(void *arg)
{
    return px_sem_down(arg);
}

/* on_deadlock for runs that are meant to end so: counts, prints nothing. */
static int deadlocks;

static void count_deadlock(void *ctx)
{
    (void)ctx;
    deadlocks++;
}

static px_run_options quiet_options(void)
{
    px_run_options options;

    memset(&options, 0, sizeof(options));
    options.on_deadlock = count_deadlock;
    deadlocks = 0;
    return options;
}

/* --- Sleeping and yielding ------------------------------------------------ */

static int sleep_exactly(void *arg)
{
    static const px_nsec naps[] = {1, 999, PX_USEC, 3 * PX_MSEC, PX_MINUTE};
    px_nsec now = 0;

    (void)arg;
    for (size_t i = 0; i < sizeof(naps) / sizeof(naps[0]); i++) {
        EXPECT_EQ(px_now(), now);
        EXPECT_EQ(px_sleep(naps[i]), 0);
        now += naps[i];
        EXPECT_EQ(px_now(), now);
    }
    EXPECT_EQ(px_sleep_until(now + 5), 0);
    EXPECT_EQ(px_now(), now + 5);
    return 0;
}

static void a_sleep_lasts_as_long_as_it_says(void **state)
{
    (void)state;
    run_fibers(sleep_exactly, NULL);
    assert_log("");
}

static int sleep_for_nothing(void *arg)
{
    static const px_nsec naps[] = {0, -1, -PX_SEC, INT64_MIN + 1, INT64_MIN};

    (void)arg;
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    for (size_t i = 0; i < sizeof(naps) / sizeof(naps[0]); i++) {
        EXPECT_EQ(px_sleep(naps[i]), 0);
        EXPECT_EQ(px_sleep_until(naps[i]), 0);
        EXPECT_EQ(px_sleep_until(px_now() + (naps[i] < -5 ? -5 : naps[i])), 0);
        EXPECT_EQ(px_now(), PX_SEC);
    }
    return 0;
}

static void R70_a_sleep_that_is_over_already_does_not_wait(void **state)
{
    (void)state;
    run_fibers(sleep_for_nothing, NULL);
    assert_log("");
}

static int sleep_very_long(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sleep(INT64_MAX - 1), 0);
    EXPECT_EQ(px_now(), INT64_MAX - 1);
    /* from here on every sum is past the type, and so is for ever */
    note("%s ", err(px_sleep(PX_SEC)));
    note("%s ", err(px_sleep_until(PX_FOREVER)));
    EXPECT_EQ(px_now(), INT64_MAX - 1);
    return 0;
}

static void
R72_the_longest_sleep_ends_and_a_longer_one_is_for_ever(void **state)
{
    (void)state;
    assert_int_equal(run_fibers_with(quiet_options(), 0, sleep_very_long, NULL),
                     PX_ESTALLED);
    assert_int_equal(deadlocks, 1);
    assert_log("stalled stalled ");
}

static int sleep_within(void *arg)
{
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 5 * PX_MSEC), 0);
    EXPECT_EQ(px_sleep(*(px_nsec *)arg), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

static int sleep_huge_by_the_real_clock(void *arg)
{
    static px_nsec naps[] = {2147484 * PX_SEC, 4294968 * PX_SEC, INT64_MAX / 2,
                             INT64_MAX - 1, PX_FOREVER};

    (void)arg;
    for (size_t i = 0; i < sizeof(naps) / sizeof(naps[0]); i++)
        start(sleep_within, &naps[i]);
    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    note("others work; ");
    return 0;
}

static void R72_a_huge_sleep_disturbs_nobody(void **state)
{
    px_run_options options;

    (void)state;
    memset(&options, 0, sizeof(options));
    assert_int_equal(
        run_fibers_with(options, 1, sleep_huge_by_the_real_clock, NULL), 0);
    assert_log("others work; ");
}

static int sleep_for_ever(void *arg)
{
    (void)arg;
    note("%s", err(px_sleep(PX_FOREVER)));
    return 6;
}

static void R123_sleeping_for_ever_alone_is_a_deadlock(void **state)
{
    int result = 0;
    px_run_options options = quiet_options();

    (void)state;
    options.result = &result;
    assert_int_equal(run_fibers_with(options, 0, sleep_for_ever, NULL),
                     PX_ESTALLED);
    assert_int_equal(deadlocks, 1);
    assert_int_equal(result, 6);
    assert_log("stalled");
}

struct sleeper {
    px_nsec until;
    px_nsec woke;
};

static int sleep_until(void *arg)
{
    struct sleeper *self = arg;

    EXPECT_EQ(px_sleep_until(self->until), 0);
    self->woke = px_now();
    return 0;
}

static int sleep_by_the_thousand(void *arg)
{
    struct sleeper *sleepers = arg;
    uint32_t random = 12345;

    for (int i = 0; i < 1000; i++) {
        random = random * 1664525u + 1013904223u;
        sleepers[i].until = 1 + random % 100000;
        start(sleep_until, &sleepers[i]);
    }
    return 0;
}

static void a_thousand_sleepers_each_wake_at_their_own_time(void **state)
{
    static struct sleeper sleepers[1000];

    (void)state;
    run_fibers(sleep_by_the_thousand, sleepers);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(sleepers[i].woke, sleepers[i].until);
    assert_log("");
}

struct napper {
    px_nsec until;
    px_nsec woke;
    int result;
    px_fiber *fiber;
};

static int nap_until(void *arg)
{
    struct napper *self = arg;

    self->result = px_sleep_until(self->until);
    self->woke = px_now();
    return 0;
}

/* While time passes, sleepers come, are cancelled, and wake in between. */
static int nap_at_random(void *arg)
{
    struct napper *nappers = arg;
    uint32_t random = 7;

    for (int i = 0; i < 3000; i++) {
        struct napper *one;

        random = random * 1664525u + 1013904223u;
        one = &nappers[(random >> 8) % 300];
        if (!one->fiber) {
            one->until = px_now() + 1 + (random >> 4) % 500;
            one->fiber = start_handle(nap_until, one);
        } else if (!px_is_done(one->fiber) && (random >> 30) == 0) {
            px_nsec now = px_now();

            EXPECT_EQ(px_cancel_and_await(one->fiber, NULL), 0);
            /* it may have been woken already, and then that stands */
            EXPECT_EQ(one->result,
                      one->until == now ? one->result : PX_ECANCELED);
            EXPECT_EQ(one->woke, now);
            one->fiber = NULL;
        } else if (px_is_done(one->fiber)) {
            EXPECT_EQ(px_await(one->fiber, NULL), 0);
            EXPECT_EQ(one->result, 0);
            EXPECT_EQ(one->woke, one->until);
            one->fiber = NULL;
        }
        if ((random >> 28) % 4 == 0)
            EXPECT_EQ(px_sleep((random >> 16) % 8), 0);
    }
    for (int i = 0; i < 300; i++) {
        if (!nappers[i].fiber)
            continue;
        EXPECT_EQ(px_await(nappers[i].fiber, NULL), 0);
        EXPECT_EQ(nappers[i].result, 0);
        EXPECT_EQ(nappers[i].woke, nappers[i].until);
    }
    return 0;
}

static void sleepers_come_and_go_and_none_is_lost_or_late(void **state)
{
    static struct napper nappers[300];

    (void)state;
    run_fibers(nap_at_random, nappers);
    assert_log("");
}

static int yield_alone(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++)
        EXPECT_EQ(px_yield(), 0);
    EXPECT_EQ(px_now(), 0);
    return 0;
}

static void a_fiber_that_yields_alone_goes_on(void **state)
{
    (void)state;
    run_fibers(yield_alone, NULL);
    assert_log("");
}

static int yield_until(void *arg)
{
    int *flag = arg;
    int yields = 0;

    while (!*flag && ++yields < 100000)
        EXPECT_EQ(px_yield(), 0);
    EXPECT(*flag);
    return 0;
}

static int set_after_yields(void *arg)
{
    for (int i = 0; i < 100; i++)
        EXPECT_EQ(px_yield(), 0);
    *(int *)arg = 1;
    return 0;
}

static int yield_together(void *arg)
{
    for (int i = 0; i < 5; i++)
        start(yield_until, arg);
    start(set_after_yields, arg);
    return yield_until(arg);
}

static void a_yield_lets_the_others_run(void **state)
{
    int flag = 0;

    (void)state;
    run_fibers(yield_together, &flag);
    assert_log("");
}

static int sleep_an_hour(void *arg)
{
    (void)arg;
    return px_sleep(60 * PX_MINUTE);
}

static int down_within_an_hour(void *arg)
{
    return px_with_timeout(60 * PX_MINUTE, down, arg);
}

static int end_waits_early(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_fiber *sleeper = start_handle(sleep_an_hour, NULL);
    px_fiber *waiter = start_handle(down_within_an_hour, &sem);
    px_sem *never = arg;

    EXPECT_EQ(px_cancel_and_await(sleeper, NULL), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_await(waiter, NULL), 0);
    /* were a timer left, time would go on to it before this is hopeless */
    EXPECT_EQ(px_sem_down(never), PX_ESTALLED);
    EXPECT_EQ(px_now(), 0);
    return 0;
}

static void R16_R17_a_wait_that_is_over_leaves_no_timer(void **state)
{
    px_sem never = PX_SEM_INIT(0);

    (void)state;
    assert_int_equal(
        run_fibers_with(quiet_options(), 0, end_waits_early, &never),
        PX_ESTALLED);
    assert_int_equal(deadlocks, 1);
    assert_log("");
}

static int wait_in_time_then_long(void *arg)
{
    px_sem *sems = arg;
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 50), 0);
    EXPECT_EQ(px_sem_down(&sems[0]), 0);
    EXPECT_EQ(px_scope_leave(&scope), 0);
    EXPECT_EQ(px_sem_down(&sems[1]), 0); /* nothing is due at 50 */
    EXPECT_EQ(px_now(), 100);
    EXPECT_EQ(px_sleep(500), 0);
    EXPECT_EQ(px_now(), 600);
    return 0;
}

static int up_in_time(void *arg)
{
    px_sem *sems = arg;

    start(wait_in_time_then_long, sems);
    EXPECT_EQ(px_sleep(10), 0);
    EXPECT_EQ(px_sem_up(&sems[0]), 0);
    EXPECT_EQ(px_sleep(90), 0);
    EXPECT_EQ(px_sem_waiters(&sems[1]), 1);
    EXPECT_EQ(px_sem_up(&sems[1]), 0);
    return 0;
}

static void R17_a_satisfied_waits_deadline_disturbs_no_later_wait(void **state)
{
    px_sem sems[2] = {PX_SEM_INIT(0), PX_SEM_INIT(0)};

    (void)state;
    run_fibers(up_in_time, sems);
    assert_log("");
}

/* --- Timers and descriptors while fibers are busy ------------------------- */

#define ROUNDS 20

static int most_yields;
static int is_ready;
static int is_over;

static int read_repeatedly(void *arg)
{
    const int *ends = arg;
    char byte;

    for (int i = 0; i < ROUNDS; i++) {
        EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_READABLE);
        EXPECT_EQ(read(ends[0], &byte, 1), 1);
        is_ready = 1;
    }
    return 0;
}

/* Write a byte to whoever reads them, and count the yields until it is read. */
static int write_and_yield(void *arg)
{
    const int *ends = arg;

    most_yields = 0;
    is_over = 0;
    start(read_repeatedly, arg);
    for (int i = 0; i < ROUNDS; i++) {
        int yields = 0;

        is_ready = 0;
        EXPECT_EQ(write(ends[1], "x", 1), 1);
        while (!is_ready && yields++ < 10000)
            EXPECT_EQ(px_yield(), 0);
        if (yields > most_yields)
            most_yields = yields;
    }
    is_over = 1;
    return 0;
}

static int keep_yielding(void *arg)
{
    (void)arg;
    for (int yields = 0; !is_over && yields < 1000000; yields++)
        EXPECT_EQ(px_yield(), 0);
    return 0;
}

static int write_and_yield_in_company(void *arg)
{
    is_over = 0;
    for (int i = 0; i < 3; i++)
        start(keep_yielding, NULL);
    return write_and_yield(arg);
}

static void R78_a_yield_that_finds_nobody_looks_at_descriptors(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    run_fibers(write_and_yield, ends);
    assert_in_range(most_yields, 1, getenv("PX_TEST_SEED") ? 200 : 2);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void R78_busy_fibers_do_not_starve_descriptors(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    run_fibers(write_and_yield_in_company, ends);
    /* looked at every 61 switches, of which this fiber makes a quarter; in a
     * shuffled queue the waiter then comes some time */
    assert_in_range(most_yields, 1, getenv("PX_TEST_SEED") ? 300 : 20);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static int down_within_2ms(void *arg)
{
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 2 * PX_MSEC), 0);
    EXPECT_EQ(px_sem_down(arg), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

/* sems[2] is what somebody waits on; hand off over the others until then. */
static int pong(void *arg)
{
    px_sem *sems = arg;

    while (px_sem_waiters(&sems[2]) > 0) {
        EXPECT_EQ(px_sem_down(&sems[1]), 0);
        EXPECT_EQ(px_sem_up(&sems[0]), 0);
    }
    return px_sem_up(&sems[0]);
}

static int ping_pong_past_a_deadline(void *arg)
{
    px_sem *sems = arg;
    px_nsec begun = px_now();

    start(down_within_2ms, &sems[2]);
    start(pong, sems);
    while (px_sem_waiters(&sems[2]) > 0 && px_now() - begun < 5 * PX_SEC) {
        EXPECT_EQ(px_sem_up(&sems[1]), 0);
        EXPECT_EQ(px_sem_down(&sems[0]), 0);
    }
    EXPECT_EQ(px_sem_waiters(&sems[2]), 0);
    return px_sem_up(&sems[1]);
}

static void R78_hand_offs_do_not_starve_timers(void **state)
{
    px_sem sems[3] = {PX_SEM_INIT(0), PX_SEM_INIT(0), PX_SEM_INIT(0)};
    px_run_options options;

    (void)state;
    memset(&options, 0, sizeof(options));
    assert_int_equal(
        run_fibers_with(options, 1, ping_pong_past_a_deadline, sems), 0);
    assert_log("");
}

static int spawn_past_a_deadline(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_nsec begun = px_now();

    (void)arg;
    start(down_within_2ms, &sem);
    while (px_sem_waiters(&sem) > 0 && px_now() - begun < 5 * PX_SEC)
        start(nothing, NULL);
    EXPECT_EQ(px_sem_waiters(&sem), 0);
    settle();
    return 0;
}

static void R78_eager_starts_do_not_starve_timers(void **state)
{
    px_run_options options;

    (void)state;
    memset(&options, 0, sizeof(options));
    assert_int_equal(run_fibers_with(options, 1, spawn_past_a_deadline, NULL),
                     0);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_sleep_lasts_as_long_as_it_says),
    PX_TEST(R70_a_sleep_that_is_over_already_does_not_wait),
    PX_TEST(R72_the_longest_sleep_ends_and_a_longer_one_is_for_ever),
    PX_TEST(R72_a_huge_sleep_disturbs_nobody),
    PX_TEST(R123_sleeping_for_ever_alone_is_a_deadlock),
    PX_TEST(a_thousand_sleepers_each_wake_at_their_own_time),
    PX_TEST(sleepers_come_and_go_and_none_is_lost_or_late),
    PX_TEST(a_fiber_that_yields_alone_goes_on),
    PX_TEST(a_yield_lets_the_others_run),
    PX_TEST(R16_R17_a_wait_that_is_over_leaves_no_timer),
    PX_TEST(R17_a_satisfied_waits_deadline_disturbs_no_later_wait),
    PX_TEST(R78_a_yield_that_finds_nobody_looks_at_descriptors),
    PX_TEST(R78_busy_fibers_do_not_starve_descriptors),
    PX_TEST(R78_hand_offs_do_not_starve_timers),
    PX_TEST(R78_eager_starts_do_not_starve_timers),
};

PX_TEST_MAIN(tests)
