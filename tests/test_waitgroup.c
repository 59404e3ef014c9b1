/* SPDX-License-Identifier: MIT */
/*
 * test_waitgroup.c - the waitgroup: a counter, those who wait for its zero,
 * and what happens below zero.
 */
#include "support/sync_jobs.h"

static px_waitgroup wg;

static void fresh(int64_t count)
{
    EXPECT_EQ(px_waitgroup_init(&wg, count), 0);
}

static void done(void)
{
    EXPECT_EQ(px_waitgroup_done(&wg), 0);
}

/* Making one. */

static void S_wg_1_a_new_group_counts_0_and_a_primed_one_3(void **state)
{
    static px_waitgroup fixed = PX_WAITGROUP_INIT(3);

    (void)state;
    assert_int_equal(px_waitgroup_init(&wg, 0), 0);
    note("a new group: count %d, waiters %d; ", (int)px_waitgroup_count(&wg),
         (int)px_waitgroup_waiters(&wg));
    assert_int_equal(px_waitgroup_init(&wg, 3), 0);
    note("a primed one: count %d", (int)px_waitgroup_count(&wg));
    assert_log("a new group: count 0, waiters 0; a primed one: count 3");
    assert_int_equal(px_waitgroup_count(&fixed), 3);
}

IN_RUN(all_zero_bytes_are_a_group_of_zero)
{
    static px_waitgroup zero;

    memset(&zero, 0, sizeof(zero));
    EXPECT_WG(&zero, "0:");
    EXPECT_EQ(px_waitgroup_wait(&zero), 0);
    EXPECT_EQ(px_waitgroup_add(&zero, 1), 0);
    wait_in_fiber('a', &zero);
    EXPECT_EQ(px_waitgroup_done(&zero), 0);
    settle();
    EXPECT_WG(&zero, "0: a=ok");
    EXPECT_EQ(px_waitgroup_destroy(&zero), 0);
}

static void init_refuses_a_negative_count_and_changes_nothing(void **state)
{
    (void)state;
    memset(&wg, 0xa5, sizeof(wg));
    assert_int_equal(px_waitgroup_init(&wg, 5), 0);
    assert_int_equal(px_waitgroup_init(&wg, -1), PX_EINVAL);
    assert_int_equal(px_waitgroup_init(&wg, INT64_MIN), PX_EINVAL);
    assert_int_equal(px_waitgroup_count(&wg), 5);
    assert_int_equal(px_waitgroup_init(&wg, INT64_MAX), 0);
    assert_true(px_waitgroup_count(&wg) == INT64_MAX);
}

/* The counter. */

static void S_wg_8_9_add_3_counts_3_and_add_0_still_3(void **state)
{
    (void)state;
    assert_int_equal(px_waitgroup_init(&wg, 0), 0);
    assert_int_equal(px_waitgroup_add(&wg, 3), 0);
    assert_int_equal(px_waitgroup_count(&wg), 3);
    assert_int_equal(px_waitgroup_add(&wg, 0), 0);
    assert_int_equal(px_waitgroup_count(&wg), 3);
}

static void S_wg_12_add_takes_a_negative_number(void **state)
{
    (void)state;
    assert_int_equal(px_waitgroup_init(&wg, 5), 0);
    assert_int_equal(px_waitgroup_add(&wg, -3), 0);
    assert_int_equal(px_waitgroup_count(&wg), 2);
    assert_int_equal(px_waitgroup_add(&wg, -2), 0);
    assert_int_equal(px_waitgroup_count(&wg), 0);
}

static void S_wg_14_15_done_to_0_and_one_too_many_is_told(void **state)
{
    (void)state;
    assert_int_equal(px_waitgroup_init(&wg, 0), 0);
    assert_int_equal(px_waitgroup_add(&wg, 1), 0);
    assert_int_equal(px_waitgroup_done(&wg), 0);
    assert_int_equal(px_waitgroup_count(&wg), 0);
    assert_int_equal(px_waitgroup_done(&wg), PX_ENEGATIVE);
}

static void S_wg_21_22_count_and_remaining_are_the_same_number(void **state)
{
    (void)state;
    assert_int_equal(px_waitgroup_init(&wg, 2), 0);
    note("count: %d, remaining: %d; ", (int)px_waitgroup_count(&wg),
         (int)px_waitgroup_remaining(&wg));
    assert_int_equal(px_waitgroup_done(&wg), 0);
    note("after one done: count %d, remaining %d", (int)px_waitgroup_count(&wg),
         (int)px_waitgroup_remaining(&wg));
    assert_log("count: 2, remaining: 2; after one done: count 1, remaining 1");
    assert_int_equal(px_waitgroup_add(&wg, -4), PX_ENEGATIVE);
    assert_int_equal(px_waitgroup_count(&wg), -3);
    assert_int_equal(px_waitgroup_remaining(&wg), -3);
}

static void
S_wg_43_45_the_second_done_moves_the_counter_to_minus_1(void **state)
{
    (void)state;
    assert_int_equal(px_waitgroup_init(&wg, 1), 0);
    assert_int_equal(px_waitgroup_done(&wg), 0);
    assert_int_equal(px_waitgroup_done(&wg), PX_ENEGATIVE);
    assert_int_equal(px_waitgroup_count(&wg), -1);
    assert_true(px_waitgroup_remaining(&wg) < 0);
}

static void an_add_whose_result_is_below_zero_says_so_even_upwards(void **state)
{
    (void)state;
    assert_int_equal(px_waitgroup_init(&wg, 0), 0);
    assert_int_equal(px_waitgroup_add(&wg, -3), PX_ENEGATIVE);
    assert_int_equal(px_waitgroup_add(&wg, 1), PX_ENEGATIVE);
    assert_int_equal(px_waitgroup_count(&wg), -2);
    assert_int_equal(px_waitgroup_add(&wg, 0), PX_ENEGATIVE);
    assert_int_equal(px_waitgroup_count(&wg), -2);
    assert_int_equal(px_waitgroup_add(&wg, 2), 0);
    assert_int_equal(px_waitgroup_count(&wg), 0);
}

static void an_overflow_moves_nothing(void **state)
{
    (void)state;
    assert_int_equal(px_waitgroup_init(&wg, INT64_MAX - 1), 0);
    assert_int_equal(px_waitgroup_add(&wg, 2), PX_EOVERFLOW);
    assert_true(px_waitgroup_count(&wg) == INT64_MAX - 1);
    assert_int_equal(px_waitgroup_add(&wg, 1), 0);
    assert_int_equal(px_waitgroup_add(&wg, 1), PX_EOVERFLOW);
    assert_int_equal(px_waitgroup_add(&wg, INT64_MAX), PX_EOVERFLOW);
    assert_true(px_waitgroup_count(&wg) == INT64_MAX);
    assert_int_equal(px_waitgroup_init(&wg, 0), 0);
    assert_int_equal(px_waitgroup_add(&wg, INT64_MIN), PX_ENEGATIVE);
    assert_true(px_waitgroup_count(&wg) == INT64_MIN);
    assert_int_equal(px_waitgroup_done(&wg), PX_EOVERFLOW);
    assert_int_equal(px_waitgroup_add(&wg, INT64_MIN), PX_EOVERFLOW);
    assert_true(px_waitgroup_count(&wg) == INT64_MIN);
}

/* Waiting. */

static int report(void *arg)
{
    note("job %d running\n", *(int *)arg);
    done();
    return 0;
}

IN_RUN(S_wg_4_three_jobs_report_and_the_count_is_0)
{
    static int numbers[3] = {1, 2, 3};

    fresh(0);
    EXPECT_EQ(px_waitgroup_add(&wg, 3), 0);
    for (int i = 0; i < 3; i++)
        start(report, &numbers[i]);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    note("every job has reported, count is %d", (int)px_waitgroup_count(&wg));
    EXPECT_LOG("job 1 running\njob 2 running\njob 3 running\n"
               "every job has reported, count is 0");
}

static int sleep_50_and_done(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sleep(50 * PX_MSEC), 0);
    done();
    return 0;
}

IN_RUN(S_wg_16_parking_on_a_count_of_1_woken_and_it_reads_0)
{
    int value;
    px_fiber *slow;

    fresh(1);
    slow = start_handle(sleep_50_and_done, NULL);
    note("parking on a count of %d, ", (int)px_waitgroup_count(&wg));
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    note("woken, and the count reads %d", (int)px_waitgroup_count(&wg));
    EXPECT_EQ(px_await(slow, &value), 0);
    EXPECT_LOG("parking on a count of 1, woken, and the count reads 0");
    EXPECT_EQ(px_now(), 50 * PX_MSEC);
}

IN_RUN(S_wg_17_wait_at_zero_does_not_park)
{
    fresh(0);
    watch_others();
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    EXPECT(nobody_ran_since());
}

IN_RUN(S_wg_23_24_three_wait_and_0_the_moment_the_last_unit_is_off)
{
    int value;

    fresh(1);
    for (char name = 'a'; name <= 'c'; name++)
        wait_in_fiber(name, &wg);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_WG(&wg, "1:abc a=- b=- c=-");
    EXPECT_EQ(px_waitgroup_waiters(&wg), 3);
    watch_others();
    done();
    EXPECT_EQ(px_waitgroup_waiters(&wg), 0);
    EXPECT(nobody_ran_since());
    EXPECT_WG(&wg, "0: a=- b=- c=-");
    for (size_t i = 0; i < 3; i++)
        EXPECT_EQ(px_await(job_pool()->jobs[i].fiber, &value), 0);
    EXPECT_WG(&wg, "0: a=ok b=ok c=ok");
}

IN_RUN(S_wg_26_a_woken_waiter_that_finds_the_count_above_zero_parks_again)
{
    fresh(1);
    wait_in_fiber('a', &wg);
    done();
    EXPECT_EQ(px_waitgroup_add(&wg, 2), 0);
    EXPECT_WG(&wg, "2: a=-");
    settle();
    EXPECT_WG(&wg, "2:a a=-");
    done();
    settle();
    EXPECT_WG(&wg, "1:a a=-");
    done();
    settle();
    EXPECT_WG(&wg, "0: a=ok");
}

IN_RUN(a_woken_waiter_that_finds_the_count_below_zero_returns_0)
{
    fresh(1);
    wait_in_fiber('a', &wg);
    done();
    EXPECT_CODE(px_waitgroup_done(&wg), PX_ENEGATIVE);
    settle();
    EXPECT_WG(&wg, "-1: a=ok");
}

IN_RUN(S_wg_27_back_to_1_but_still_parked_and_through_at_0)
{
    int value;
    struct job *w;

    fresh(1);
    w = wait_in_fiber('w', &wg);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    note("parked, and the count is %d, ", (int)px_waitgroup_count(&wg));
    EXPECT_EQ(px_waitgroup_add(&wg, 2), 0);
    done();
    done();
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    note("back to %d, but the waiter is still parked: %d, ",
         (int)px_waitgroup_count(&wg), (int)px_waitgroup_waiters(&wg));
    done();
    EXPECT_EQ(px_await(w->fiber, &value), 0);
    note("and now it is through, at %d", (int)px_waitgroup_count(&wg));
    EXPECT_LOG("parked, and the count is 1, back to 1, but the waiter is still "
               "parked: 1, and now it is through, at 0");
}

IN_RUN(S_wg_44_on_a_negative_counter_wait_returns_negative_at_once)
{
    fresh(2);
    done();
    done();
    EXPECT_CODE(px_waitgroup_done(&wg), PX_ENEGATIVE);
    note("the counter now reads %d", (int)px_waitgroup_count(&wg));
    EXPECT_LOG("the counter now reads -1");
    watch_others();
    EXPECT_CODE(px_waitgroup_wait(&wg), PX_ENEGATIVE);
    EXPECT(nobody_ran_since());
    EXPECT_WG(&wg, "-1:");
}

IN_RUN(S_wg_46_going_below_zero_wakes_everyone_with_negative)
{
    fresh(1);
    wait_in_fiber('a', &wg);
    wait_in_fiber('b', &wg);
    EXPECT_CODE(px_waitgroup_add(&wg, -2), PX_ENEGATIVE);
    EXPECT_WG(&wg, "-1: a=- b=-");
    settle();
    EXPECT_WG(&wg, "-1: a=negative b=negative");
}

IN_RUN(a_wake_below_zero_stands_when_the_count_comes_back_to_zero)
{
    fresh(1);
    wait_in_fiber('a', &wg);
    EXPECT_CODE(px_waitgroup_add(&wg, -2), PX_ENEGATIVE);
    EXPECT_EQ(px_waitgroup_add(&wg, 1), 0);
    settle();
    EXPECT_WG(&wg, "0: a=negative");
}

IN_RUN(the_group_can_be_used_again_after_zero)
{
    fresh(1);
    for (int round = 0; round < 3; round++) {
        struct job *w;
        int value;

        clear_jobs();
        w = wait_in_fiber('w', &wg);
        EXPECT_WG(&wg, "1:w w=-");
        done();
        EXPECT_EQ(px_await(w->fiber, &value), 0);
        EXPECT_WG(&wg, "0: w=ok");
        EXPECT_EQ(px_waitgroup_add(&wg, 1), 0);
    }
}

/* Off a fiber, NULL, and the order of the checks. */

static void S_wg_19_off_a_fiber_wait_is_refused_whatever_the_count(void **state)
{
    (void)state;
    assert_int_equal(px_waitgroup_init(&wg, 0), 0);
    assert_int_equal(px_waitgroup_wait(&wg), PX_ENOFIBER);
    assert_int_equal(px_waitgroup_add(&wg, 1), 0);
    assert_int_equal(px_waitgroup_wait(&wg), PX_ENOFIBER);
    assert_int_equal(px_waitgroup_add(&wg, -2), PX_ENEGATIVE);
    assert_int_equal(px_waitgroup_wait(&wg), PX_ENOFIBER);
    assert_int_equal(px_waitgroup_waiters(&wg), 0);
}

static int return_0(void *arg)
{
    (void)arg;
    return 0;
}

static void a_null_group_is_invalid(void **state)
{
    px_fid ids[1] = {7};

    (void)state;
    assert_int_equal(px_waitgroup_init(NULL, 0), PX_EINVAL);
    assert_int_equal(px_waitgroup_destroy(NULL), PX_EINVAL);
    assert_int_equal(px_waitgroup_add(NULL, 1), PX_EINVAL);
    assert_int_equal(px_waitgroup_done(NULL), PX_EINVAL);
    assert_int_equal(px_waitgroup_go(NULL, return_0, NULL), PX_EINVAL);
    assert_int_equal(px_waitgroup_wait(NULL), PX_EINVAL);
    assert_int_equal(px_waitgroup_count(NULL), 0);
    assert_int_equal(px_waitgroup_remaining(NULL), 0);
    assert_int_equal(px_waitgroup_waiters(NULL), 0);
    assert_int_equal(px_waitgroup_waiter_ids(NULL, ids, 1), 0);
    assert_int_equal(px_waitgroup_remove_waiter(NULL, 0), 0);
    assert_int_equal(ids[0], 7);
}

IN_RUN(a_fired_scope_fails_every_wait_whatever_the_count)
{
    px_scope scope;

    fresh(0);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_CODE(px_waitgroup_wait(NULL), PX_EINVAL);
    EXPECT_CODE(px_waitgroup_wait(&wg), PX_ETIMEDOUT);
    EXPECT_EQ(px_waitgroup_add(&wg, 1), 0);
    EXPECT_CODE(px_waitgroup_wait(&wg), PX_ETIMEDOUT);
    EXPECT_CODE(px_waitgroup_add(&wg, -2), PX_ENEGATIVE);
    EXPECT_CODE(px_waitgroup_wait(&wg), PX_ETIMEDOUT);
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_WG(&wg, "-1:");
}

static void add_from_on_deadlock(void *ctx)
{
    (void)ctx;
    note("wait:%s ", err(px_waitgroup_wait(&wg)));
    note("go:%s ", err(px_waitgroup_go(&wg, return_0, NULL)));
    note("count:%d ", (int)px_waitgroup_count(&wg));
    note("done:%s", err(px_waitgroup_done(&wg)));
}

static int wait_for_on_deadlock(void *arg)
{
    (void)arg;
    fresh(1);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    return 5;
}

static void
on_deadlock_is_off_fiber_and_its_done_ends_the_deadlock(void **state)
{
    px_run_options options;

    (void)state;
    memset(&options, 0, sizeof(options));
    options.on_deadlock = add_from_on_deadlock;
    assert_int_equal(run_fibers_with(options, 0, wait_for_on_deadlock, NULL),
                     5);
    assert_log("wait:nofiber go:nofiber count:1 done:ok");
    assert_int_equal(px_waitgroup_count(&wg), 0);
}

/* Interrupts. */

static int sleep_300_and_done(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sleep(300 * PX_MSEC), 0);
    done();
    return 0;
}

static int wait_for_wg(void *arg)
{
    (void)arg;
    return px_waitgroup_wait(&wg);
}

IN_RUN(S_wg_34_the_fan_in_gave_up_at_30_and_the_count_reads_1)
{
    int code;

    fresh(0);
    EXPECT_EQ(px_waitgroup_add(&wg, 1), 0);
    start(sleep_300_and_done, NULL);
    code = px_with_timeout(30 * PX_MSEC, wait_for_wg, NULL);
    note("the fan-in gave up: %s, the count reads %d", px_strerror(code),
         (int)px_waitgroup_count(&wg));
    EXPECT_LOG(
        "the fan-in gave up: The operation timed out, the count reads 1");
    EXPECT_EQ(px_now(), 30 * PX_MSEC);
    EXPECT_WG(&wg, "1:");
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    EXPECT_EQ(px_now(), 300 * PX_MSEC);
}

IN_RUN(S_wg_20_28_an_interrupted_wait_gives_up_its_place)
{
    struct job *b;

    fresh(1);
    wait_in_fiber('a', &wg);
    b = wait_in_fiber('b', &wg);
    wait_within('c', &wg, 10 * PX_MSEC);
    EXPECT_EQ(px_cancel(b->fiber), 0);
    EXPECT_WG(&wg, "1:ac a=- b=- c=-");
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_WG(&wg, "1:a a=- b=canceled c=timedout");
    done();
    settle();
    EXPECT_WG(&wg, "0: a=ok b=canceled c=timedout");
}

IN_RUN(a_released_waiter_stays_released_when_it_is_then_cancelled)
{
    struct job *a;

    fresh(1);
    a = wait_in_fiber('a', &wg);
    done();
    EXPECT_EQ(px_cancel(a->fiber), 0);
    settle();
    EXPECT_WG(&wg, "0: a=ok");
    EXPECT_CODE(a->next, PX_ECANCELED);
}

IN_RUN(a_released_waiter_that_must_park_again_sees_its_cancellation)
{
    struct job *a;

    fresh(1);
    a = wait_in_fiber('a', &wg);
    done();
    EXPECT_EQ(px_waitgroup_add(&wg, 1), 0);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    settle();
    EXPECT_WG(&wg, "1: a=canceled");
    done();
}

IN_RUN(a_released_waiter_that_parks_again_still_has_its_deadline)
{
    struct job *a;

    fresh(1);
    a = wait_within('a', &wg, 30 * PX_MSEC);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    done();
    EXPECT_EQ(px_waitgroup_add(&wg, 1), 0);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_WG(&wg, "1:a a=-");
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_WG(&wg, "1: a=timedout");
    EXPECT_EQ(a->at, 30 * PX_MSEC);
    done();
}

/* A run that deadlocks. */

IN_STALLED_RUN(S_wg_48_a_wait_for_a_report_that_never_comes_stalls)
{
    fresh(1);
    EXPECT_CODE(px_waitgroup_wait(&wg), PX_ESTALLED);
    EXPECT_WG(&wg, "1:");
}

IN_STALLED_RUN(a_released_waiter_that_parks_again_stalls_too)
{
    int value;
    struct job *a;

    fresh(1);
    a = wait_in_fiber('a', &wg);
    done();
    EXPECT_EQ(px_waitgroup_add(&wg, 1), 0);
    EXPECT_CODE(px_await(a->fiber, &value), PX_ESTALLED);
    settle();
    EXPECT_WG(&wg, "1: a=stalled");
}

/* Waiters, their ids, taking one out, destroy. */

IN_RUN(waiter_ids_are_oldest_first_and_cut_by_cap)
{
    px_fid ids[3] = {-7, -7, -7};

    fresh(1);
    EXPECT_EQ(px_waitgroup_waiter_ids(&wg, ids, 3), 0);
    EXPECT_EQ(ids[0], -7);
    for (char name = 'a'; name <= 'c'; name++)
        wait_in_fiber(name, &wg);
    EXPECT_EQ(px_waitgroup_waiter_ids(&wg, ids, 2), 3);
    EXPECT_EQ(ids[0], 1);
    EXPECT_EQ(ids[1], 2);
    EXPECT_EQ(ids[2], -7);
    EXPECT_EQ(px_waitgroup_waiter_ids(&wg, NULL, 0), 3);
    EXPECT_EQ(px_waitgroup_waiter_ids(&wg, NULL, 3), 3);
    done();
    settle();
}

IN_RUN(a_removed_waiter_is_not_woken_at_zero)
{
    struct job *a;

    fresh(1);
    a = wait_in_fiber('a', &wg);
    wait_in_fiber('b', &wg);
    EXPECT_EQ(px_waitgroup_remove_waiter(&wg, 0), 0);
    EXPECT_EQ(px_waitgroup_remove_waiter(&wg, PX_NO_FIBER), 0);
    EXPECT_EQ(px_waitgroup_remove_waiter(&wg, 99), 0);
    EXPECT_EQ(px_waitgroup_remove_waiter(&wg, a->id), 1);
    EXPECT_EQ(px_waitgroup_remove_waiter(&wg, a->id), 0);
    EXPECT_WG(&wg, "1:b a=- b=-");
    done();
    settle();
    EXPECT_WG(&wg, "0: a=- b=ok");
    EXPECT_EQ(px_cancel(a->fiber), 0);
    settle();
    EXPECT_WG(&wg, "0: a=canceled b=ok");
}

IN_RUN(destroy_with_a_waiter_is_busy_and_changes_nothing)
{
    fresh(1);
    wait_in_fiber('a', &wg);
    EXPECT_CODE(px_waitgroup_destroy(&wg), PX_EBUSY);
    EXPECT_WG(&wg, "1:a a=-");
    done();
    settle();
    EXPECT_WG(&wg, "0: a=ok");
    EXPECT_EQ(px_waitgroup_destroy(&wg), 0);
    fresh(4);
    EXPECT_EQ(px_waitgroup_destroy(&wg), 0);
    fresh(0);
}

/* go. */

static int say_and_sleep(void *arg)
{
    note("%d runs on a count of %d; ", (int)px_current_id(),
         (int)px_waitgroup_count(&wg));
    return px_sleep(*(px_nsec *)arg);
}

IN_RUN(go_adds_1_starts_at_once_and_reports_at_the_end)
{
    static px_nsec naps[2] = {20 * PX_MSEC, 10 * PX_MSEC};

    fresh(0);
    EXPECT_EQ(px_waitgroup_go(&wg, say_and_sleep, &naps[0]), 0);
    EXPECT_LOG("1 runs on a count of 1; ");
    EXPECT_EQ(px_waitgroup_count(&wg), 1);
    EXPECT_EQ(px_waitgroup_go(&wg, say_and_sleep, &naps[1]), 0);
    EXPECT_LOG("2 runs on a count of 2; ");
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    EXPECT_EQ(px_now(), 20 * PX_MSEC);
    EXPECT_WG(&wg, "0:");
}

IN_RUN(go_of_what_never_parks_is_back_to_the_count_before)
{
    fresh(0);
    watch_others();
    EXPECT_EQ(px_waitgroup_go(&wg, return_0, NULL), 0);
    EXPECT(nobody_ran_since());
    EXPECT_WG(&wg, "0:");
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
}

static int end_badly(void *arg)
{
    (void)arg;
    return PX_EPERM;
}

static int sleep_for_ever(void *arg)
{
    (void)arg;
    return px_sleep(PX_FOREVER);
}

static int go_twice_and_stop(void *arg)
{
    (void)arg;
    fresh(0);
    EXPECT_EQ(px_waitgroup_go(&wg, end_badly, NULL), 0);
    EXPECT_EQ(px_waitgroup_count(&wg), 0);
    EXPECT_EQ(px_waitgroup_go(&wg, sleep_for_ever, NULL), 0);
    EXPECT_EQ(px_waitgroup_count(&wg), 1);
    EXPECT_EQ(px_stop(), 0);
    return 0;
}

static void S_wg_49_go_reports_however_the_job_ends(void **state)
{
    (void)state;
    run_fibers(go_twice_and_stop, NULL);
    assert_int_equal(px_waitgroup_count(&wg), 0);
    assert_log("");
}

static int go_from_inside(void *arg)
{
    int depth = *(int *)arg;
    static int deeper[3] = {0, 1, 2};

    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    if (depth > 0)
        EXPECT_EQ(px_waitgroup_go(&wg, go_from_inside, &deeper[depth - 1]), 0);
    return 0;
}

IN_RUN(a_job_may_go_further_while_somebody_waits)
{
    static int depth = 3;

    fresh(0);
    EXPECT_EQ(px_waitgroup_go(&wg, go_from_inside, &depth), 0);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    EXPECT_EQ(px_now(), 4 * PX_MSEC);
}

static px_fiber *gone;

static int remember_itself(void *arg)
{
    (void)arg;
    gone = px_self();
    return px_sleep(PX_MSEC);
}

IN_RUN(what_go_starts_is_detached)
{
    int value;

    fresh(0);
    EXPECT_EQ(px_waitgroup_go(&wg, remember_itself, NULL), 0);
    EXPECT_CODE(px_await(gone, &value), PX_EINVAL);
    EXPECT_CODE(px_detach(gone), PX_EINVAL);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
}

static int go_beyond_one_fiber(void *arg)
{
    (void)arg;
    fresh(3);
    EXPECT_CODE(px_waitgroup_go(&wg, return_0, NULL), PX_ENOMEM);
    EXPECT_EQ(px_waitgroup_count(&wg), 3);
    return 0;
}

static void a_go_that_cannot_spawn_puts_the_count_back(void **state)
{
    px_run_options options;

    (void)state;
    memset(&options, 0, sizeof(options));
    options.max_fibers = 1;
    assert_int_equal(run_fibers_with(options, 0, go_beyond_one_fiber, NULL), 0);
    assert_int_equal(px_waitgroup_count(&wg), 3);
    assert_log("");
}

static void a_go_off_a_fiber_or_of_nothing_is_refused(void **state)
{
    (void)state;
    assert_int_equal(px_waitgroup_init(&wg, 2), 0);
    assert_int_equal(px_waitgroup_go(&wg, return_0, NULL), PX_ENOFIBER);
    assert_int_equal(px_waitgroup_go(&wg, NULL, NULL), PX_EINVAL);
    assert_int_equal(px_waitgroup_count(&wg), 2);
}

IN_RUN(a_go_that_would_overflow_or_is_below_zero_starts_nothing)
{
    static px_nsec nap = 0;

    fresh(INT64_MAX);
    EXPECT_CODE(px_waitgroup_go(&wg, say_and_sleep, &nap), PX_EOVERFLOW);
    EXPECT(px_waitgroup_count(&wg) == INT64_MAX);
    fresh(0);
    EXPECT_CODE(px_waitgroup_add(&wg, -2), PX_ENEGATIVE);
    EXPECT_CODE(px_waitgroup_go(&wg, say_and_sleep, &nap), PX_ENEGATIVE);
    settle();
    EXPECT_WG(&wg, "-2:");
}

IN_RUN(go_brings_a_count_of_minus_1_to_zero_and_none_below)
{
    static px_nsec nap = PX_MSEC;

    fresh(0);
    EXPECT_CODE(px_waitgroup_done(&wg), PX_ENEGATIVE);
    EXPECT_EQ(px_waitgroup_go(&wg, say_and_sleep, &nap), 0);
    EXPECT_LOG("1 runs on a count of 0; ");
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    EXPECT_EQ(px_sleep(2 * PX_MSEC), 0);
    EXPECT_WG(&wg, "-1:"); /* its report is one too many, as before */
    EXPECT_CODE(px_waitgroup_add(&wg, -1), PX_ENEGATIVE);
    EXPECT_CODE(px_waitgroup_go(&wg, say_and_sleep, &nap), PX_ENEGATIVE);
    EXPECT_WG(&wg, "-2:");
}

IN_RUN(go_works_in_a_fired_scope)
{
    static px_nsec nap = PX_MSEC;
    px_scope scope;

    fresh(0);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_EQ(px_waitgroup_go(&wg, say_and_sleep, &nap), 0);
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    EXPECT_EQ(px_now(), PX_MSEC);
    EXPECT_LOG("1 runs on a count of 1; ");
}

/* The document's recipes. */

static int squares[5];

static int square(void *arg)
{
    int n = *(int *)arg;

    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    squares[n] = n * n;
    done();
    return 0;
}

IN_RUN(S_wg_29_the_squares_came_back_1_4_9_16)
{
    static int numbers[4] = {1, 2, 3, 4};

    fresh(0);
    memset(squares, 0, sizeof(squares));
    EXPECT_EQ(px_waitgroup_add(&wg, 4), 0);
    for (int i = 0; i < 4; i++)
        start(square, &numbers[i]);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    for (int i = 1; i <= 4; i++)
        note("%s%d", i > 1 ? ", " : "", squares[i]);
    EXPECT_LOG("1, 4, 9, 16");
}

static int register_itself(void *arg)
{
    int n = *(int *)arg;

    EXPECT_EQ(px_waitgroup_add(&wg, 1), 0);
    done();
    note("%d %s, ", n, n == 3 ? "failed" : "ok");
    return 0;
}

IN_RUN(S_wg_32_33_1_ok_2_ok_3_failed_4_ok_and_the_count_is_back_to_0)
{
    static int numbers[4] = {1, 2, 3, 4};

    fresh(0);
    for (int i = 0; i < 4; i++)
        start(register_itself, &numbers[i]);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    note("and the count is back to %d", (int)px_waitgroup_count(&wg));
    EXPECT_LOG("1 ok, 2 ok, 3 failed, 4 ok, and the count is back to 0");
}

static int done_too_early(void *arg)
{
    (void)arg;
    note("%s, ", px_waitgroup_done(&wg) == 0 ? "ok" : "croaked");
    return 0;
}

IN_RUN(S_wg_41_42_counted_after_spawning_croaked_croaked_ending_at_0)
{
    fresh(0);
    start(done_too_early, NULL);
    start(done_too_early, NULL);
    EXPECT_EQ(px_waitgroup_add(&wg, 2), 0);
    note("ending at %d", (int)px_waitgroup_count(&wg));
    EXPECT_LOG("croaked, croaked, ending at 0");
}

static int done_at_once(void *arg)
{
    (void)arg;
    done();
    return 0;
}

IN_RUN(S_wg_47_a_job_that_ends_without_done_leaves_1_and_waiting_times_out)
{
    int code;

    fresh(0);
    EXPECT_EQ(px_waitgroup_add(&wg, 2), 0);
    start(done_at_once, NULL);
    start(end_badly, NULL);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    note("the count is %d, ", (int)px_waitgroup_count(&wg));
    code = px_with_timeout(20 * PX_MSEC, wait_for_wg, NULL);
    note("so waiting gives: %s", px_strerror(code));
    EXPECT_LOG("the count is 1, so waiting gives: The operation timed out");
}

/* errno. */

static int spoil_errno_and_done(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    errno = ENOENT;
    done();
    EXPECT_CODE(px_waitgroup_done(&wg), PX_ENEGATIVE);
    EXPECT_EQ(errno, ENOENT);
    return 0;
}

IN_RUN(errno_is_left_as_it_was_across_parking_and_failing)
{
    fresh(1);
    start(spoil_errno_and_done, NULL);
    errno = ERANGE;
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    EXPECT_CODE(px_waitgroup_wait(&wg), PX_ENEGATIVE);
    EXPECT_EQ(px_waitgroup_init(&wg, 0), 0);
    EXPECT_EQ(px_waitgroup_go(&wg, return_0, NULL), 0);
    EXPECT_EQ(errno, ERANGE);
}

/* Load. */

static int yield_and_return(void *arg)
{
    (void)arg;
    return px_yield();
}

IN_BARE_RUN(ten_thousand_jobs_report)
{
    int jobs = times(10000, 500);

    fresh(0);
    for (int i = 0; i < jobs; i++)
        EXPECT_EQ(px_waitgroup_go(&wg, yield_and_return, NULL), 0);
    EXPECT_EQ(px_waitgroup_count(&wg), jobs);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    EXPECT_WG(&wg, "0:");
}

static const struct CMUnitTest waitgroup_tests[] = {
    PX_TEST(S_wg_1_a_new_group_counts_0_and_a_primed_one_3),
    PX_TEST(all_zero_bytes_are_a_group_of_zero),
    PX_TEST(init_refuses_a_negative_count_and_changes_nothing),
    PX_TEST(S_wg_8_9_add_3_counts_3_and_add_0_still_3),
    PX_TEST(S_wg_12_add_takes_a_negative_number),
    PX_TEST(S_wg_14_15_done_to_0_and_one_too_many_is_told),
    PX_TEST(S_wg_21_22_count_and_remaining_are_the_same_number),
    PX_TEST(S_wg_43_45_the_second_done_moves_the_counter_to_minus_1),
    PX_TEST(an_add_whose_result_is_below_zero_says_so_even_upwards),
    PX_TEST(an_overflow_moves_nothing),
    PX_TEST(S_wg_4_three_jobs_report_and_the_count_is_0),
    PX_TEST(S_wg_16_parking_on_a_count_of_1_woken_and_it_reads_0),
    PX_TEST(S_wg_17_wait_at_zero_does_not_park),
    PX_TEST(S_wg_23_24_three_wait_and_0_the_moment_the_last_unit_is_off),
    PX_TEST(S_wg_26_a_woken_waiter_that_finds_the_count_above_zero_parks_again),
    PX_TEST(a_woken_waiter_that_finds_the_count_below_zero_returns_0),
    PX_TEST(S_wg_27_back_to_1_but_still_parked_and_through_at_0),
    PX_TEST(S_wg_44_on_a_negative_counter_wait_returns_negative_at_once),
    PX_TEST(S_wg_46_going_below_zero_wakes_everyone_with_negative),
    PX_TEST(a_wake_below_zero_stands_when_the_count_comes_back_to_zero),
    PX_TEST(the_group_can_be_used_again_after_zero),
    PX_TEST(S_wg_19_off_a_fiber_wait_is_refused_whatever_the_count),
    PX_TEST(a_null_group_is_invalid),
    PX_TEST(a_fired_scope_fails_every_wait_whatever_the_count),
    PX_TEST(on_deadlock_is_off_fiber_and_its_done_ends_the_deadlock),
    PX_TEST(S_wg_34_the_fan_in_gave_up_at_30_and_the_count_reads_1),
    PX_TEST(S_wg_20_28_an_interrupted_wait_gives_up_its_place),
    PX_TEST(a_released_waiter_stays_released_when_it_is_then_cancelled),
    PX_TEST(a_released_waiter_that_must_park_again_sees_its_cancellation),
    PX_TEST(a_released_waiter_that_parks_again_still_has_its_deadline),
    PX_TEST(S_wg_48_a_wait_for_a_report_that_never_comes_stalls),
    PX_TEST(a_released_waiter_that_parks_again_stalls_too),
    PX_TEST(waiter_ids_are_oldest_first_and_cut_by_cap),
    PX_TEST(a_removed_waiter_is_not_woken_at_zero),
    PX_TEST(destroy_with_a_waiter_is_busy_and_changes_nothing),
    PX_TEST(go_adds_1_starts_at_once_and_reports_at_the_end),
    PX_TEST(go_of_what_never_parks_is_back_to_the_count_before),
    PX_TEST(S_wg_49_go_reports_however_the_job_ends),
    PX_TEST(a_job_may_go_further_while_somebody_waits),
    PX_TEST(what_go_starts_is_detached),
    PX_TEST(a_go_that_cannot_spawn_puts_the_count_back),
    PX_TEST(a_go_off_a_fiber_or_of_nothing_is_refused),
    PX_TEST(a_go_that_would_overflow_or_is_below_zero_starts_nothing),
    PX_TEST(go_brings_a_count_of_minus_1_to_zero_and_none_below),
    PX_TEST(go_works_in_a_fired_scope),
    PX_TEST(S_wg_29_the_squares_came_back_1_4_9_16),
    PX_TEST(S_wg_32_33_1_ok_2_ok_3_failed_4_ok_and_the_count_is_back_to_0),
    PX_TEST(S_wg_41_42_counted_after_spawning_croaked_croaked_ending_at_0),
    PX_TEST(
        S_wg_47_a_job_that_ends_without_done_leaves_1_and_waiting_times_out),
    PX_TEST(errno_is_left_as_it_was_across_parking_and_failing),
    PX_TEST(ten_thousand_jobs_report),
};

PX_TEST_MAIN(waitgroup_tests)
