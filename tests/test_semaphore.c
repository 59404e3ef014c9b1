/* SPDX-License-Identifier: MIT */
/*
 * test_semaphore.c - the semaphore as a counter with a queue: taking, giving,
 * trying, adjusting, waiting without taking, weights, interrupts, waiters.
 * Limits, passed-over requests and closing: test_semaphore_bounded.c.
 */
#include "support/sync_jobs.h"

static px_sem sem;

static void fresh(int64_t count)
{
    EXPECT_EQ(px_sem_init(&sem, count), 0);
}

/* Making one. */

static void S_sem_1_a_new_one_has_its_count_and_no_waiters(void **state)
{
    static px_sem fixed = PX_SEM_INIT(3);

    (void)state;
    assert_int_equal(px_sem_init(&sem, 3), 0);
    assert_int_equal(px_sem_count(&sem), 3);
    assert_int_equal(px_sem_waiters(&sem), 0);
    assert_int_equal(px_sem_count(&fixed), 3);
    assert_int_equal(px_sem_waiters(&fixed), 0);
    assert_true(px_sem_limit(&sem) == PX_SEM_UNBOUNDED);
    assert_true(px_sem_limit(&fixed) == PX_SEM_UNBOUNDED);
    assert_true(PX_SEM_UNBOUNDED == -1);
}

static void all_zero_bytes_are_a_semaphore_without_permits(void **state)
{
    static px_sem zero;

    (void)state;
    memset(&zero, 0, sizeof(zero));
    assert_int_equal(px_sem_count(&zero), 0);
    assert_int_equal(px_sem_waiters(&zero), 0);
    assert_true(px_sem_limit(&zero) == PX_SEM_UNBOUNDED);
    assert_int_equal(px_sem_try_down(&zero), PX_EAGAIN);
    assert_int_equal(px_sem_up(&zero), 0);
    assert_int_equal(px_sem_down(&zero), 0);
    assert_int_equal(px_sem_count(&zero), 0);
    assert_int_equal(px_sem_destroy(&zero), 0);
}

static void init_makes_any_memory_a_semaphore(void **state)
{
    (void)state;
    memset(&sem, 0xa5, sizeof(sem));
    assert_int_equal(px_sem_init(&sem, 2), 0);
    assert_int_equal(px_sem_count(&sem), 2);
    assert_int_equal(px_sem_waiters(&sem), 0);
    assert_int_equal(px_sem_try_down_n(&sem, 2), 0);
    assert_int_equal(px_sem_try_down(&sem), PX_EAGAIN);
}

static void any_count_will_do_to_begin_with(void **state)
{
    static px_sem below = PX_SEM_INIT(-2);

    (void)state;
    assert_int_equal(px_sem_init(&sem, INT64_MAX), 0);
    assert_true(px_sem_count(&sem) == INT64_MAX);
    assert_int_equal(px_sem_init(&sem, INT64_MIN), 0);
    assert_true(px_sem_count(&sem) == INT64_MIN);
    assert_true(px_sem_count(&below) == -2);
}

IN_RUN(S_sem_6_below_zero_every_down_parks_until_it_rises_above_zero)
{
    fresh(-5);
    EXPECT_CODE(px_sem_try_down(&sem), PX_EAGAIN);
    take('a', &sem, 1);
    EXPECT_EQ(px_sem_adjust(&sem, 5), 0);
    settle();
    EXPECT_SEM(&sem, "0:a a=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok");
}

IN_RUN(S_sem_7_from_minus_2_only_the_third_up_wakes_somebody)
{
    fresh(-2);
    take('a', &sem, 1);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_SEM(&sem, "-1:a a=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_SEM(&sem, "0:a a=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_SEM(&sem, "0: a=-");
    settle();
    EXPECT_SEM(&sem, "0: a=ok");
}

/* Down and up. */

IN_RUN(S_sem_9_one_fiber_takes_and_another_gives_back)
{
    fresh(1);
    take('a', &sem, 1);
    EXPECT_SEM(&sem, "0: a=ok");
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_SEM(&sem, "1: a=ok");
}

IN_RUN(S_sem_10_up_comes_before_any_down)
{
    fresh(0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_count(&sem), 1);
    watch_others();
    EXPECT_EQ(px_sem_down(&sem), 0);
    EXPECT(nobody_ran_since());
    EXPECT_EQ(px_sem_count(&sem), 0);
}

static int sleep_20_then_up(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    note("%s ", job_pool()->others_ran ? "others ran," : "nobody ran,");
    EXPECT_EQ(px_sem_up(&sem), 0);
    return 0;
}

IN_RUN(S_sem_11_a_waiter_parks_and_the_others_run)
{
    fresh(0);
    start(sleep_20_then_up, NULL);
    watch_others();
    EXPECT_EQ(px_sem_down(&sem), 0);
    note("at %lld", (long long)(px_now() / PX_MSEC));
    EXPECT_LOG("others ran, at 20");
}

IN_RUN(S_sem_12_waiters_are_released_in_the_order_of_arrival)
{
    fresh(0);
    take('a', &sem, 1);
    take('b', &sem, 1);
    take('c', &sem, 1);
    EXPECT_SEM(&sem, "0:abc a=- b=- c=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_SEM(&sem, "0:bc a=- b=- c=-");
    settle();
    EXPECT_SEM(&sem, "0:bc a=ok b=- c=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0:c a=ok b=ok c=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=ok c=ok");
}

IN_RUN(S_sem_13_down_with_a_permit_free_does_not_park)
{
    fresh(3);
    watch_others();
    EXPECT_EQ(px_sem_down(&sem), 0);
    EXPECT_EQ(px_sem_count(&sem), 2);
    EXPECT_EQ(px_sem_down_n(&sem, 2), 0);
    EXPECT_EQ(px_sem_count(&sem), 0);
    EXPECT(nobody_ran_since());
}

IN_RUN(S_sem_14_down_at_zero_parks_and_later_has_taken_one)
{
    fresh(0);
    take('a', &sem, 1);
    settle();
    EXPECT_SEM(&sem, "0:a a=-");
    EXPECT_EQ(px_sem_up_n(&sem, 3), 0);
    settle();
    EXPECT_SEM(&sem, "2: a=ok");
}

IN_RUN(S_sem_15_each_up_releases_one_waiter)
{
    fresh(0);
    take('a', &sem, 1);
    take('b', &sem, 1);
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    settle();
    EXPECT_SEM(&sem, "0:b a=ok b=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
}

IN_RUN(S_sem_16_a_released_permit_cannot_be_snatched_before_the_waiter_runs)
{
    fresh(0);
    take('a', &sem, 1);
    take('b', &sem, 1);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_CODE(px_sem_try_down(&sem), PX_EAGAIN);
    EXPECT_SEM(&sem, "0:b a=- b=-");
    take('c', &sem, 1);
    EXPECT_SEM(&sem, "0:bc a=- b=- c=-");
    settle();
    EXPECT_SEM(&sem, "0:bc a=ok b=- c=-");
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=ok c=ok");
}

IN_RUN(S_sem_18_up_gives_a_permit_or_hands_it_to_a_waiter)
{
    fresh(0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_EQ(px_sem_down(&sem), 0);
    take('a', &sem, 1);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_SEM(&sem, "0: a=-");
    settle();
}

static void S_sem_19_try_takes_a_permit_or_leaves_the_count(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init(&sem, 1), 0);
    assert_int_equal(px_sem_try_down(&sem), 0);
    assert_int_equal(px_sem_count(&sem), 0);
    assert_int_equal(px_sem_try_down(&sem), PX_EAGAIN);
    assert_int_equal(px_sem_count(&sem), 0);
    assert_int_equal(px_sem_init(&sem, -1), 0);
    assert_int_equal(px_sem_try_down(&sem), PX_EAGAIN);
    assert_int_equal(px_sem_count(&sem), -1);
}

IN_RUN(try_never_parks)
{
    fresh(1);
    watch_others();
    EXPECT_EQ(px_sem_try_down(&sem), 0);
    EXPECT_CODE(px_sem_try_down(&sem), PX_EAGAIN);
    EXPECT_CODE(px_sem_try_down_n(&sem, 7), PX_EAGAIN);
    EXPECT(nobody_ran_since());
}

IN_RUN(up_and_adjust_never_park_and_the_waiters_run_later)
{
    fresh(0);
    take('a', &sem, 1);
    take('b', &sem, 1);
    watch_others();
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_adjust(&sem, 1), 0);
    EXPECT(nobody_ran_since());
    EXPECT_SEM(&sem, "0: a=- b=-");
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=ok");
}

/* Off a fiber. */

static void S_sem_46_off_a_fiber_down_works_until_it_would_wait(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init(&sem, 1), 0);
    assert_int_equal(px_sem_down(&sem), 0);
    assert_int_equal(px_sem_down(&sem), PX_ENOFIBER);
    assert_int_equal(px_sem_count(&sem), 0);
    assert_int_equal(px_sem_waiters(&sem), 0);
}

static void S_sem_47_up_try_and_adjust_need_no_fiber(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init(&sem, 0), 0);
    assert_int_equal(px_sem_up(&sem), 0);
    assert_int_equal(px_sem_up_n(&sem, 2), 0);
    assert_int_equal(px_sem_adjust(&sem, 4), 0);
    assert_int_equal(px_sem_try_down(&sem), 0);
    assert_int_equal(px_sem_try_down_n(&sem, 6), 0);
    assert_int_equal(px_sem_try_down(&sem), PX_EAGAIN);
    assert_int_equal(px_sem_count(&sem), 0);
}

static void off_a_fiber_a_weighted_or_empty_wait_is_refused(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init(&sem, 2), 0);
    assert_int_equal(px_sem_down_n(&sem, 3), PX_ENOFIBER);
    assert_int_equal(px_sem_wait_available(&sem), 0);
    assert_int_equal(px_sem_down_n(&sem, 2), 0);
    assert_int_equal(px_sem_down_n(&sem, 0), 0);
    assert_int_equal(px_sem_wait_available(&sem), PX_ENOFIBER);
    assert_int_equal(px_sem_count(&sem), 0);
    assert_int_equal(px_sem_waiters(&sem), 0);
}

static int take_two_of_three(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sem_down_n(&sem, 2), 0);
    return 0;
}

static void a_count_outlives_the_run_that_left_it(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init(&sem, 3), 0);
    run_fibers(take_two_of_three, NULL);
    assert_int_equal(px_sem_count(&sem), 1);
    assert_int_equal(px_sem_up(&sem), 0);
    run_fibers(take_two_of_three, NULL);
    assert_int_equal(px_sem_count(&sem), 0);
    assert_log("");
}

/* adjust. */

static void S_sem_20_adjust_adds_5_or_takes_2_away(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init(&sem, 0), 0);
    assert_int_equal(px_sem_adjust(&sem, 5), 0);
    assert_int_equal(px_sem_count(&sem), 5);
    assert_int_equal(px_sem_adjust(&sem, -2), 0);
    assert_int_equal(px_sem_count(&sem), 3);
    assert_int_equal(px_sem_adjust(&sem, 0), 0);
    assert_int_equal(px_sem_count(&sem), 3);
}

IN_RUN(S_sem_21_from_minus_3_with_six_waiters_adjust_5_releases_2)
{
    fresh(-3);
    for (char name = 'a'; name <= 'f'; name++)
        take(name, &sem, 1);
    EXPECT_EQ(px_sem_adjust(&sem, 5), 0);
    settle();
    EXPECT_SEM(&sem, "0:cdef a=ok b=ok c=- d=- e=- f=-");
    EXPECT_EQ(px_sem_adjust(&sem, 4), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=ok c=ok d=ok e=ok f=ok");
}

IN_RUN(S_sem_22_four_waiters_adjust_5_leaves_1)
{
    fresh(0);
    for (char name = 'a'; name <= 'd'; name++)
        take(name, &sem, 1);
    EXPECT_EQ(px_sem_adjust(&sem, 5), 0);
    EXPECT_SEM(&sem, "1: a=- b=- c=- d=-");
    settle();
    EXPECT_SEM(&sem, "1: a=ok b=ok c=ok d=ok");
}

IN_RUN(S_sem_23_24_a_negative_adjust_releases_nobody_and_may_go_below_zero)
{
    fresh(0);
    take('a', &sem, 1);
    EXPECT_EQ(px_sem_adjust(&sem, -3), 0);
    settle();
    EXPECT_SEM(&sem, "-3:a a=-");
    EXPECT_EQ(px_sem_adjust(&sem, 4), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok");
}

IN_RUN(S_sem_52_the_walk_of_adjust_2_then_minus_1_then_9)
{
    fresh(0);
    for (char name = 'a'; name <= 'd'; name++)
        take(name, &sem, 1);
    EXPECT_EQ(px_sleep(30 * PX_MSEC), 0);
    EXPECT_EQ(px_sem_adjust(&sem, 2), 0);
    EXPECT_EQ(px_sem_count(&sem), 0);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_SEM(&sem, "0:cd a=ok b=ok c=- d=-");
    EXPECT_EQ(px_sem_adjust(&sem, -1), 0);
    EXPECT_EQ(px_sem_count(&sem), -1);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_SEM(&sem, "-1:cd a=ok b=ok c=- d=-");
    EXPECT_EQ(px_sem_adjust(&sem, 9), 0);
    EXPECT_EQ(px_sem_count(&sem), 6);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_SEM(&sem, "6: a=ok b=ok c=ok d=ok");
}

IN_RUN(adjust_stops_at_the_first_waiter_that_does_not_fit)
{
    fresh(0);
    take('a', &sem, 2);
    take('b', &sem, 3);
    take('c', &sem, 1);
    EXPECT_EQ(px_sem_adjust(&sem, 4), 0);
    settle();
    EXPECT_SEM(&sem, "2:bc a=ok b=- c=-");
    EXPECT_EQ(px_sem_adjust(&sem, 2), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=ok c=ok");
}

/* Waiting without taking. */

IN_RUN(S_sem_25_wait_available_leaves_the_count)
{
    fresh(0);
    watch_sem('w', &sem);
    settle();
    EXPECT_SEM(&sem, "0:w w=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_SEM(&sem, "1: w=-");
    settle();
    EXPECT_SEM(&sem, "1: w=ok");
}

IN_RUN(S_sem_27_two_waits_on_one_permit_both_return_and_one_is_left)
{
    fresh(1);
    EXPECT_EQ(px_sem_wait_available(&sem), 0);
    EXPECT_EQ(px_sem_wait_available(&sem), 0);
    EXPECT_EQ(px_sem_count(&sem), 1);
    watch_sem('v', &sem);
    watch_sem('w', &sem);
    EXPECT_SEM(&sem, "1: v=ok w=ok");
}

IN_RUN(S_sem_28_wait_available_with_a_permit_free_does_not_park)
{
    fresh(1);
    watch_others();
    for (int i = 0; i < 10; i++)
        EXPECT_EQ(px_sem_wait_available(&sem), 0);
    EXPECT(nobody_ran_since());
}

IN_RUN(S_sem_29_the_permit_goes_on_to_the_next_in_the_queue)
{
    fresh(0);
    watch_sem('w', &sem);
    take('a', &sem, 1);
    EXPECT_SEM(&sem, "0:wa w=- a=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_SEM(&sem, "0: w=- a=-");
    settle();
    EXPECT_SEM(&sem, "0: w=ok a=ok");
}

IN_RUN(all_waits_at_the_head_return_with_one_permit)
{
    fresh(0);
    watch_sem('u', &sem);
    watch_sem('v', &sem);
    take('a', &sem, 1);
    watch_sem('w', &sem);
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0:w u=ok v=ok a=ok w=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "1: u=ok v=ok a=ok w=ok");
}

IN_RUN(wait_available_is_queued_like_any_other)
{
    fresh(2);
    take('a', &sem, 5);
    watch_sem('w', &sem);
    EXPECT_SEM(&sem, "2:aw a=- w=-");
    EXPECT_EQ(px_sem_up_n(&sem, 3), 0);
    settle();
    EXPECT_SEM(&sem, "0:w a=ok w=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "1: a=ok w=ok");
}

IN_RUN(wait_available_below_zero_waits_for_more_than_zero)
{
    fresh(-1);
    watch_sem('w', &sem);
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0:w w=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "1: w=ok");
}

/* Weights. */

IN_RUN(down_n_takes_all_or_none)
{
    fresh(2);
    take('a', &sem, 3);
    EXPECT_SEM(&sem, "2:a a=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok");
}

IN_RUN(a_large_request_at_the_head_holds_back_the_small_ones)
{
    fresh(1);
    take('a', &sem, 3);
    take('b', &sem, 1);
    take('c', &sem, 1);
    EXPECT_SEM(&sem, "1:abc a=- b=- c=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "2:abc a=- b=- c=-");
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    settle();
    EXPECT_SEM(&sem, "0:c a=ok b=ok c=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=ok c=ok");
}

IN_RUN(a_try_does_not_overtake_the_queue)
{
    fresh(4);
    take('a', &sem, 5);
    EXPECT_CODE(px_sem_try_down(&sem), PX_EAGAIN);
    EXPECT_CODE(px_sem_try_down_n(&sem, 4), PX_EAGAIN);
    EXPECT_SEM(&sem, "4:a a=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_try_down(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok");
}

IN_RUN(a_down_does_not_overtake_the_queue)
{
    fresh(4);
    take('a', &sem, 5);
    take('b', &sem, 1);
    EXPECT_SEM(&sem, "4:ab a=- b=-");
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=ok");
}

IN_RUN(up_n_serves_as_many_as_it_satisfies)
{
    fresh(0);
    for (char name = 'a'; name <= 'e'; name++)
        take(name, &sem, 1);
    EXPECT_EQ(px_sem_up_n(&sem, 3), 0);
    EXPECT_SEM(&sem, "0:de a=- b=- c=- d=- e=-");
    settle();
    EXPECT_SEM(&sem, "0:de a=ok b=ok c=ok d=- e=-");
    EXPECT_EQ(px_sem_up_n(&sem, 3), 0);
    settle();
    EXPECT_SEM(&sem, "1: a=ok b=ok c=ok d=ok e=ok");
}

static void zero_permits_are_taken_and_given_without_effect(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init(&sem, -4), 0);
    assert_int_equal(px_sem_down_n(&sem, 0), 0);
    assert_int_equal(px_sem_try_down_n(&sem, 0), 0);
    assert_int_equal(px_sem_up_n(&sem, 0), 0);
    assert_int_equal(px_sem_count(&sem), -4);
}

IN_RUN(zero_permits_wait_for_nobody_even_behind_a_queue)
{
    fresh(1);
    take('a', &sem, 2);
    watch_others();
    EXPECT_EQ(px_sem_down_n(&sem, 0), 0);
    EXPECT_EQ(px_sem_try_down_n(&sem, 0), 0);
    EXPECT_EQ(px_sem_up_n(&sem, 0), 0);
    EXPECT(nobody_ran_since());
    EXPECT_SEM(&sem, "1:a a=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
}

/* Arguments, and the order in which they are looked at. */

static void negative_permits_are_invalid_and_change_nothing(void **state)
{
    static const int64_t below[] = {-1, -2, INT32_MIN, INT64_MIN};

    (void)state;
    assert_int_equal(px_sem_init(&sem, 2), 0);
    for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
        assert_int_equal(px_sem_down_n(&sem, below[i]), PX_EINVAL);
        assert_int_equal(px_sem_try_down_n(&sem, below[i]), PX_EINVAL);
        assert_int_equal(px_sem_up_n(&sem, below[i]), PX_EINVAL);
    }
    assert_int_equal(px_sem_count(&sem), 2);
}

static void a_null_semaphore_is_invalid(void **state)
{
    px_fid ids[2] = {7, 7};

    (void)state;
    assert_int_equal(px_sem_init(NULL, 1), PX_EINVAL);
    assert_int_equal(px_sem_init_bounded(NULL, 1), PX_EINVAL);
    assert_int_equal(px_sem_destroy(NULL), PX_EINVAL);
    assert_int_equal(px_sem_down(NULL), PX_EINVAL);
    assert_int_equal(px_sem_down_n(NULL, 1), PX_EINVAL);
    assert_int_equal(px_sem_down_n(NULL, 0), PX_EINVAL);
    assert_int_equal(px_sem_up(NULL), PX_EINVAL);
    assert_int_equal(px_sem_up_n(NULL, 1), PX_EINVAL);
    assert_int_equal(px_sem_up_n(NULL, 0), PX_EINVAL);
    assert_int_equal(px_sem_try_down(NULL), PX_EINVAL);
    assert_int_equal(px_sem_try_down_n(NULL, 1), PX_EINVAL);
    assert_int_equal(px_sem_try_down_n(NULL, 0), PX_EINVAL);
    assert_int_equal(px_sem_adjust(NULL, 1), PX_EINVAL);
    assert_int_equal(px_sem_wait_available(NULL), PX_EINVAL);
    assert_int_equal(px_sem_set_limit(NULL, 1), PX_EINVAL);
    assert_int_equal(px_sem_close(NULL), PX_EINVAL);
    assert_int_equal(px_sem_count(NULL), 0);
    assert_int_equal(px_sem_limit(NULL), 0);
    assert_int_equal(px_sem_waiters(NULL), 0);
    assert_int_equal(px_sem_waiter_ids(NULL, ids, 2), 0);
    assert_int_equal(px_sem_remove_waiter(NULL, 1), 0);
    assert_int_equal(ids[0], 7);
}

static void a_bad_argument_comes_before_being_off_a_fiber(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init(&sem, 0), 0);
    assert_int_equal(px_sem_down_n(&sem, -1), PX_EINVAL);
    assert_int_equal(px_sem_down(NULL), PX_EINVAL);
}

IN_RUN(a_bad_argument_comes_before_a_fired_scope)
{
    px_scope scope;

    fresh(1);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_CODE(px_sem_down_n(&sem, -1), PX_EINVAL);
    EXPECT_CODE(px_sem_down(NULL), PX_EINVAL);
    EXPECT_CODE(px_sem_wait_available(NULL), PX_EINVAL);
    EXPECT_CODE(px_sem_down(&sem), PX_ETIMEDOUT);
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_SEM(&sem, "1:");
}

/* A fired scope. */

IN_RUN(a_fired_scope_fails_every_down_with_permits_free)
{
    px_scope scope;

    fresh(3);
    watch_others();
    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    EXPECT_CODE(px_sem_down(&sem), PX_ECANCELED);
    EXPECT_CODE(px_sem_down_n(&sem, 2), PX_ECANCELED);
    EXPECT_CODE(px_sem_down_n(&sem, 0), PX_ECANCELED);
    EXPECT_CODE(px_sem_wait_available(&sem), PX_ECANCELED);
    EXPECT_CODE(px_scope_leave(&scope), PX_ECANCELED);
    EXPECT(nobody_ran_since());
    EXPECT_SEM(&sem, "3:");
}

IN_RUN(a_fired_scope_fails_a_down_before_it_queues)
{
    px_scope scope;

    fresh(0);
    EXPECT_EQ(px_scope_enter(&scope, -1), 0);
    EXPECT_CODE(px_sem_down(&sem), PX_ETIMEDOUT);
    EXPECT_CODE(px_sem_wait_available(&sem), PX_ETIMEDOUT);
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_SEM(&sem, "0:");
}

IN_RUN(a_fired_scope_does_not_reach_try_up_and_adjust)
{
    px_scope scope;

    fresh(1);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_EQ(px_sem_try_down(&sem), 0);
    EXPECT_CODE(px_sem_try_down(&sem), PX_EAGAIN);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    EXPECT_EQ(px_sem_adjust(&sem, -1), 0);
    EXPECT_EQ(px_sem_try_down_n(&sem, 2), 0);
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_SEM(&sem, "0:");
}

IN_RUN(every_64th_failing_down_in_a_row_lets_the_others_run)
{
    px_scope scope;
    int failures = 0;

    fresh(0);
    watch_others();
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    while (nobody_ran_since() && failures < 1000) {
        EXPECT_CODE(px_sem_down(&sem), PX_ETIMEDOUT);
        failures++;
    }
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
    /* A shuffled run may pick this fiber again. */
    EXPECT(failures > 0 && failures % 64 == 0);
}

/* Overflow. */

static void up_past_the_largest_count_is_refused(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init(&sem, INT64_MAX - 1), 0);
    assert_int_equal(px_sem_up_n(&sem, 2), PX_EOVERFLOW);
    assert_true(px_sem_count(&sem) == INT64_MAX - 1);
    assert_int_equal(px_sem_up(&sem), 0);
    assert_true(px_sem_count(&sem) == INT64_MAX);
    assert_int_equal(px_sem_up(&sem), PX_EOVERFLOW);
    assert_int_equal(px_sem_up_n(&sem, INT64_MAX), PX_EOVERFLOW);
    assert_int_equal(px_sem_adjust(&sem, 1), PX_EOVERFLOW);
    assert_int_equal(px_sem_up_n(&sem, 0), 0);
    assert_true(px_sem_count(&sem) == INT64_MAX);
}

static void adjust_past_either_end_is_refused(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init(&sem, INT64_MIN + 1), 0);
    assert_int_equal(px_sem_adjust(&sem, -2), PX_EOVERFLOW);
    assert_true(px_sem_count(&sem) == INT64_MIN + 1);
    assert_int_equal(px_sem_adjust(&sem, -1), 0);
    assert_true(px_sem_count(&sem) == INT64_MIN);
    assert_int_equal(px_sem_adjust(&sem, -1), PX_EOVERFLOW);
    assert_int_equal(px_sem_adjust(&sem, INT64_MIN), PX_EOVERFLOW);
    assert_int_equal(px_sem_adjust(&sem, INT64_MAX), 0);
    assert_true(px_sem_count(&sem) == -1);
    assert_int_equal(px_sem_adjust(&sem, INT64_MAX), 0);
    assert_true(px_sem_count(&sem) == INT64_MAX - 1);
}

static void a_try_at_the_smallest_count_takes_nothing(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init(&sem, INT64_MIN), 0);
    assert_int_equal(px_sem_try_down_n(&sem, INT64_MAX), PX_EAGAIN);
    assert_int_equal(px_sem_try_down(&sem), PX_EAGAIN);
    assert_true(px_sem_count(&sem) == INT64_MIN);
}

IN_RUN(an_overflow_is_counted_before_any_waiter_is_served)
{
    fresh(INT64_MAX - 1);
    take('a', &sem, INT64_MAX);
    EXPECT_CODE(px_sem_up_n(&sem, 2), PX_EOVERFLOW);
    settle();
    EXPECT_SEM(&sem, "9223372036854775806:a a=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok");
}

/* Interrupts. */

IN_RUN(S_sem_49_a_cancelled_down_leaves_the_queue_at_that_moment)
{
    struct job *b;

    fresh(0);
    take('a', &sem, 1);
    b = take('b', &sem, 1);
    take('c', &sem, 1);
    EXPECT_EQ(px_cancel(b->fiber), 0);
    EXPECT_SEM(&sem, "0:ac a=- b=- c=-");
    settle();
    EXPECT_SEM(&sem, "0:ac a=- b=canceled c=-");
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=canceled c=ok");
}

IN_RUN(S_sem_50_a_waiter_timed_out_at_60_so_an_up_just_sits_there)
{
    struct job *a;

    fresh(0);
    a = take_within('a', &sem, 1, 60 * PX_MSEC);
    EXPECT_EQ(px_sleep(120 * PX_MSEC), 0);
    EXPECT_SEM(&sem, "0: a=timedout");
    EXPECT_EQ(a->at, 60 * PX_MSEC);
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "1: a=timedout");
}

IN_RUN(S_sem_51_a_granted_waiter_keeps_its_permit_when_it_is_then_cancelled)
{
    struct job *a;

    fresh(0);
    a = take('a', &sem, 1);
    take('b', &sem, 1);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    EXPECT_SEM(&sem, "0:b a=- b=-");
    settle();
    EXPECT_SEM(&sem, "0:b a=ok b=-");
    EXPECT_CODE(a->next, PX_ECANCELED);
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=ok");
}

IN_RUN(a_waiter_cancelled_first_is_not_counted_by_a_later_up)
{
    struct job *a;

    fresh(0);
    a = take('a', &sem, 1);
    take('b', &sem, 1);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_SEM(&sem, "0: a=- b=-");
    settle();
    EXPECT_SEM(&sem, "0: a=canceled b=ok");
}

IN_RUN(a_cancelled_head_lets_the_smaller_ones_behind_it_go_in_the_same_step)
{
    struct job *a;

    fresh(2);
    a = take('a', &sem, 3);
    take('b', &sem, 1);
    take('c', &sem, 1);
    take('d', &sem, 1);
    EXPECT_SEM(&sem, "2:abcd a=- b=- c=- d=-");
    EXPECT_EQ(px_cancel(a->fiber), 0);
    EXPECT_SEM(&sem, "0:d a=- b=- c=- d=-");
    settle();
    EXPECT_SEM(&sem, "0:d a=canceled b=ok c=ok d=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
}

IN_RUN(a_timed_out_head_lets_the_smaller_ones_behind_it_go)
{
    struct job *b;

    fresh(1);
    take_within('a', &sem, 2, 20 * PX_MSEC);
    b = take('b', &sem, 1);
    EXPECT_EQ(px_sleep(30 * PX_MSEC), 0);
    EXPECT_SEM(&sem, "0: a=timedout b=ok");
    EXPECT_EQ(b->at, 20 * PX_MSEC);
}

IN_RUN(a_head_whose_scope_is_cancelled_lets_those_behind_it_go)
{
    struct job *a;

    fresh(1);
    a = take_within('a', &sem, 2, PX_FOREVER);
    watch_sem('w', &sem);
    take('b', &sem, 1);
    EXPECT_EQ(px_scope_cancel(&a->scope), 0);
    EXPECT_SEM(&sem, "0: a=- w=- b=-");
    settle();
    EXPECT_SEM(&sem, "0: a=canceled w=ok b=ok");
}

IN_RUN(a_cancelled_waiter_in_the_middle_releases_nobody)
{
    struct job *b;

    fresh(1);
    take('a', &sem, 2);
    b = take('b', &sem, 1);
    take('c', &sem, 1);
    EXPECT_EQ(px_cancel(b->fiber), 0);
    EXPECT_SEM(&sem, "1:ac a=- b=- c=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0:c a=ok b=canceled c=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
}

IN_RUN(an_interrupted_wait_available_leaves_the_queue_to_the_next)
{
    struct job *w;

    fresh(0);
    w = watch_sem('w', &sem);
    take('a', &sem, 1);
    EXPECT_EQ(px_cancel(w->fiber), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: w=canceled a=ok");
}

IN_RUN(several_interrupted_in_one_step_are_all_out_and_the_rest_is_served)
{
    struct job *a, *b;

    fresh(2);
    a = take('a', &sem, 4);
    b = take('b', &sem, 3);
    take('c', &sem, 2);
    EXPECT_EQ(px_cancel(b->fiber), 0);
    EXPECT_SEM(&sem, "2:ac a=- b=- c=-");
    EXPECT_EQ(px_cancel(a->fiber), 0);
    EXPECT_SEM(&sem, "0: a=- b=- c=-");
    settle();
    EXPECT_SEM(&sem, "0: a=canceled b=canceled c=ok");
}

IN_RUN(a_shielded_waiter_is_not_interrupted)
{
    struct job *a;

    fresh(0);
    a = take_within('a', &sem, 1, PX_FOREVER);
    EXPECT_EQ(px_scope_shield(&a->scope, true), 0);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    settle();
    EXPECT_SEM(&sem, "0:a a=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok");
}

/* A run that deadlocks. */

IN_STALLED_RUN(a_down_that_nothing_can_wake_returns_stalled)
{
    fresh(-2);
    EXPECT_CODE(px_sem_down(&sem), PX_ESTALLED);
    EXPECT_SEM(&sem, "-2:");
}

IN_STALLED_RUN(what_a_stalled_waiter_held_back_is_granted)
{
    int value;
    struct job *a;

    fresh(1);
    a = take('a', &sem, 2);
    take('b', &sem, 1);
    EXPECT_CODE(px_await(a->fiber, &value), PX_ESTALLED);
    settle();
    EXPECT_SEM(&sem, "0: a=stalled b=ok");
}

IN_STALLED_RUN(a_shielded_waiter_stalls_too)
{
    px_scope shield;

    fresh(0);
    EXPECT_EQ(px_scope_enter(&shield, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_shield(&shield, true), 0);
    EXPECT_CODE(px_sem_down(&sem), PX_ESTALLED);
    EXPECT_EQ(px_scope_leave(&shield), 0);
    EXPECT_SEM(&sem, "0:");
}

IN_STALLED_RUN(wait_available_stalls_too)
{
    fresh(0);
    EXPECT_CODE(px_sem_wait_available(&sem), PX_ESTALLED);
    EXPECT_SEM(&sem, "0:");
}

static void rescue(void *ctx)
{
    (void)ctx;
    note("down:%s ", err(px_sem_down(&sem)));
    note("available:%s ", err(px_sem_wait_available(&sem)));
    note("try:%s ", err(px_sem_try_down(&sem)));
    note("waiters:%d ", (int)px_sem_waiters(&sem));
    note("up:%s", err(px_sem_up_n(&sem, 2)));
}

static int wait_for_the_rescue(void *arg)
{
    (void)arg;
    fresh(0);
    EXPECT_EQ(px_sem_down_n(&sem, 2), 0);
    return 7;
}

static void on_deadlock_is_off_fiber_and_its_up_ends_the_deadlock(void **state)
{
    px_run_options options;

    (void)state;
    memset(&options, 0, sizeof(options));
    options.on_deadlock = rescue;
    assert_int_equal(run_fibers_with(options, 0, wait_for_the_rescue, NULL), 7);
    assert_log("down:nofiber available:nofiber try:again waiters:1 up:ok");
    assert_int_equal(px_sem_count(&sem), 0);
}

static void adjust_the_count(void *ctx)
{
    (void)ctx;
    EXPECT_EQ(px_sem_adjust(&sem, 2), 0);
}

static void set_the_limit(void *ctx)
{
    (void)ctx;
    EXPECT_EQ(px_sem_set_limit(&sem, 2), 0);
}

static void close_it(void *ctx)
{
    (void)ctx;
    EXPECT_EQ(px_sem_close(&sem), 0);
}

static int down_1_of_0(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sem_init_bounded(&sem, 2), 0);
    EXPECT_EQ(px_sem_adjust(&sem, -1), 0);
    EXPECT_EQ(px_sem_set_limit(&sem, 1), 0);
    return px_sem_down_n(&sem, 1);
}

static int down_2(void *arg)
{
    (void)arg;
    fresh(0);
    return px_sem_down_n(&sem, 2);
}

static void adjust_set_limit_and_close_end_a_deadlock_too(void **state)
{
    px_run_options options;

    (void)state;
    memset(&options, 0, sizeof(options));
    options.on_deadlock = adjust_the_count;
    assert_int_equal(run_fibers_with(options, 0, down_2, NULL), 0);
    options.on_deadlock = set_the_limit;
    assert_int_equal(run_fibers_with(options, 0, down_1_of_0, NULL), 0);
    options.on_deadlock = close_it;
    assert_int_equal(run_fibers_with(options, 0, down_1_of_0, NULL),
                     PX_ECLOSED);
    assert_log("");
}

/* Waiters, their ids, taking one out. */

IN_RUN(S_sem_35_waiters_and_their_ids_in_the_order_of_release)
{
    px_fid ids[4] = {-7, -7, -7, -7};

    fresh(0);
    EXPECT_EQ(px_sem_waiter_ids(&sem, ids, 4), 0);
    EXPECT_EQ(ids[0], -7);
    take('a', &sem, 1);
    take('b', &sem, 4);
    watch_sem('c', &sem);
    EXPECT_EQ(px_sem_waiters(&sem), 3);
    EXPECT_EQ(px_sem_waiter_ids(&sem, ids, 4), 3);
    EXPECT_EQ(ids[0], 1);
    EXPECT_EQ(ids[1], 2);
    EXPECT_EQ(ids[2], 3);
    EXPECT_EQ(ids[3], -7);
    EXPECT_EQ(px_sem_up_n(&sem, 6), 0);
    settle();
}

IN_RUN(waiter_ids_writes_no_more_than_cap_and_says_how_many_there_are)
{
    px_fid ids[3] = {-7, -7, -7};

    fresh(0);
    for (char name = 'a'; name <= 'd'; name++)
        take(name, &sem, 1);
    EXPECT_EQ(px_sem_waiter_ids(&sem, ids, 2), 4);
    EXPECT_EQ(ids[0], 1);
    EXPECT_EQ(ids[1], 2);
    EXPECT_EQ(ids[2], -7);
    EXPECT_EQ(px_sem_waiter_ids(&sem, ids, 0), 4);
    EXPECT_EQ(px_sem_waiter_ids(&sem, NULL, 0), 4);
    EXPECT_EQ(px_sem_waiter_ids(&sem, NULL, 4), 4);
    EXPECT_EQ(ids[0], 1);
    EXPECT_EQ(px_sem_up_n(&sem, 4), 0);
    settle();
}

IN_RUN(S_sem_37_a_removed_waiter_is_never_woken_by_up_or_adjust)
{
    struct job *a;

    fresh(0);
    a = take('a', &sem, 1);
    take('b', &sem, 1);
    EXPECT_EQ(px_sem_remove_waiter(&sem, a->id), 1);
    EXPECT_SEM(&sem, "0:b a=- b=-");
    EXPECT_EQ(px_sem_remove_waiter(&sem, a->id), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=- b=ok");
    EXPECT_EQ(px_sem_adjust(&sem, 2), 0);
    settle();
    EXPECT_SEM(&sem, "2: a=- b=ok");
    EXPECT_EQ(px_cancel(a->fiber), 0);
    settle();
    EXPECT_SEM(&sem, "2: a=canceled b=ok");
}

IN_RUN(remove_waiter_of_somebody_who_does_not_wait_is_0)
{
    struct job *a;

    fresh(0);
    EXPECT_EQ(px_sem_remove_waiter(&sem, 0), 0);
    EXPECT_EQ(px_sem_remove_waiter(&sem, PX_NO_FIBER), 0);
    EXPECT_EQ(px_sem_remove_waiter(&sem, 99), 0);
    a = take('a', &sem, 1);
    EXPECT_EQ(px_sem_remove_waiter(&sem, 0), 0);
    EXPECT_EQ(px_sem_remove_waiter(&sem, INT64_MAX), 0);
    EXPECT_EQ(px_sem_remove_waiter(&sem, INT64_MIN), 0);
    EXPECT_SEM(&sem, "0:a a=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_remove_waiter(&sem, a->id), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok");
}

IN_RUN(removing_the_head_serves_the_queue)
{
    struct job *a;

    fresh(2);
    a = take('a', &sem, 3);
    take('b', &sem, 1);
    take('c', &sem, 2);
    EXPECT_EQ(px_sem_remove_waiter(&sem, a->id), 1);
    EXPECT_SEM(&sem, "1:c a=- b=- c=-");
    settle();
    EXPECT_SEM(&sem, "1:c a=- b=ok c=-");
    EXPECT_EQ(px_cancel(a->fiber), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=canceled b=ok c=ok");
}

IN_RUN(S_sem_38_a_removed_waiter_stays_parked_until_it_times_out)
{
    struct job *a;

    fresh(0);
    a = take_within('a', &sem, 1, 50 * PX_MSEC);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_sem_remove_waiter(&sem, a->id), 1);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_SEM(&sem, "0: a=-");
    EXPECT_EQ(px_sleep(30 * PX_MSEC), 0);
    EXPECT_SEM(&sem, "0: a=timedout");
    EXPECT_EQ(a->at, 50 * PX_MSEC);
}

IN_STALLED_RUN(a_removed_waiter_stalls_when_nothing_else_is_left)
{
    int value;
    struct job *a;

    fresh(0);
    a = take('a', &sem, 1);
    EXPECT_EQ(px_sem_remove_waiter(&sem, a->id), 1);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_CODE(px_await(a->fiber, &value), PX_ESTALLED);
    settle();
    EXPECT_SEM(&sem, "1: a=stalled");
}

IN_RUN(a_removed_waiter_no_longer_touches_the_semaphore)
{
    px_sem *heap = malloc(sizeof(*heap));
    FILE *nowhere = fopen("/dev/null", "w");
    struct job *a;

    EXPECT(heap && nowhere);
    if (!heap || !nowhere)
        return;
    EXPECT_EQ(px_sem_init(heap, 0), 0);
    a = take('a', heap, 1);
    EXPECT_EQ(px_sem_remove_waiter(heap, a->id), 1);
    EXPECT_EQ(px_sem_destroy(heap), 0);
    spoil(heap, sizeof(*heap));
    EXPECT_EQ(px_dump(nowhere), 0);
    free(heap);
    EXPECT_EQ(px_dump(nowhere), 0);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    settle();
    EXPECT_CODE(a->code, PX_ECANCELED);
    EXPECT_EQ(fclose(nowhere), 0);
}

IN_RUN(a_waiter_removed_and_then_cancelled_serves_nobody)
{
    static px_sem gone;
    struct job *a;

    EXPECT_EQ(px_sem_init(&gone, 0), 0);
    a = take('a', &gone, 1);
    EXPECT_EQ(px_sem_remove_waiter(&gone, a->id), 1);
    spoil(&gone, sizeof(gone));
    EXPECT_EQ(px_cancel(a->fiber), 0);
    settle();
    EXPECT_CODE(a->code, PX_ECANCELED);
}

/* destroy. */

IN_RUN(destroy_with_a_waiter_is_busy_and_changes_nothing)
{
    fresh(1);
    take('a', &sem, 2);
    EXPECT_CODE(px_sem_destroy(&sem), PX_EBUSY);
    EXPECT_SEM(&sem, "1:a a=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok");
    EXPECT_EQ(px_sem_destroy(&sem), 0);
}

IN_RUN(destroy_with_a_granted_waiter_that_has_not_run_is_fine)
{
    static px_sem other;

    EXPECT_EQ(px_sem_init(&other, 0), 0);
    take('a', &other, 1);
    EXPECT_EQ(px_sem_up(&other), 0);
    EXPECT_EQ(px_sem_destroy(&other), 0);
    spoil(&other, sizeof(other));
    settle();
    fresh(0);
    EXPECT_SEM(&sem, "0: a=ok");
}

static void destroy_with_permits_out_or_free_is_fine(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init(&sem, 2), 0);
    assert_int_equal(px_sem_try_down(&sem), 0);
    assert_int_equal(px_sem_destroy(&sem), 0);
    assert_int_equal(px_sem_init(&sem, -3), 0);
    assert_int_equal(px_sem_destroy(&sem), 0);
    assert_int_equal(px_sem_init(&sem, 1), 0);
    assert_int_equal(px_sem_down(&sem), 0);
}

/* errno. */

static int spoil_errno_and_up(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    errno = ENOENT;
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(errno, ENOENT);
    return 0;
}

IN_RUN(errno_is_left_as_it_was_across_parking_and_failing)
{
    px_scope scope;

    fresh(0);
    start(spoil_errno_and_up, NULL);
    errno = ERANGE;
    EXPECT_EQ(px_sem_down(&sem), 0);
    EXPECT_EQ(errno, ERANGE);
    EXPECT_CODE(px_sem_try_down(&sem), PX_EAGAIN);
    EXPECT_CODE(px_sem_down_n(&sem, -1), PX_EINVAL);
    EXPECT_EQ(errno, ERANGE);
    EXPECT_EQ(px_scope_enter(&scope, PX_MSEC), 0);
    EXPECT_CODE(px_sem_down(&sem), PX_ETIMEDOUT);
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(errno, ERANGE);
}

/* The documents' recipes. */

struct pool_job {
    int item;
    int result;
};

static int inside, most_inside;

static int process(void *arg)
{
    struct pool_job *job = arg;

    EXPECT_EQ(px_sem_down(&sem), 0);
    inside++;
    if (inside > most_inside)
        most_inside = inside;
    EXPECT_EQ(px_sleep((1 + job->item % 3) * PX_MSEC), 0);
    job->result = job->item * 10;
    inside--;
    EXPECT_EQ(px_sem_up(&sem), 0);
    return job->result;
}

IN_RUN(S_sem_40_a_pool_of_4_never_has_more_than_4_inside)
{
    static struct pool_job work[12];
    px_fiber *fibers[12];
    int results[12];

    fresh(4);
    inside = most_inside = 0;
    for (int i = 0; i < 12; i++) {
        work[i].item = i;
        fibers[i] = start_handle(process, &work[i]);
    }
    EXPECT_EQ(px_await_all(fibers, 12, results), 0);
    for (int i = 0; i < 12; i++)
        EXPECT_EQ(results[i], i * 10);
    EXPECT_EQ(most_inside, 4);
    EXPECT_EQ(px_sem_count(&sem), 4);
}

IN_RUN(S_sem_41_at_a_gate_each_up_admits_exactly_one)
{
    int through;

    fresh(0);
    for (char name = 'a'; name <= 'c'; name++)
        take(name, &sem, 1);
    for (int ups = 1; ups <= 3; ups++) {
        EXPECT_EQ(px_sem_up(&sem), 0);
        settle();
        through = 0;
        for (size_t i = 0; i < 3; i++)
            through += job_pool()->jobs[i].ended;
        EXPECT_EQ(through, ups);
    }
    EXPECT_SEM(&sem, "0: a=ok b=ok c=ok");
}

IN_RUN(S_sem_42_a_gate_adjusted_by_3_lets_all_three_through)
{
    int value;

    fresh(0);
    for (char name = 'a'; name <= 'c'; name++)
        take(name, &sem, 1);
    EXPECT_EQ(px_sleep(50 * PX_MSEC), 0);
    EXPECT_EQ(px_sem_waiters(&sem), 3);
    EXPECT_EQ(px_sem_adjust(&sem, 3), 0);
    for (size_t i = 0; i < 3; i++)
        EXPECT_EQ(px_await(job_pool()->jobs[i].fiber, &value), 0);
    EXPECT_SEM(&sem, "0: a=ok b=ok c=ok");
}

static int process_and_up(void *arg)
{
    (void)arg;
    inside++;
    if (inside > most_inside)
        most_inside = inside;
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    inside--;
    EXPECT_EQ(px_sem_up(&sem), 0);
    return 0;
}

IN_RUN(S_sem_43_optional_work_is_skipped_when_both_permits_are_taken)
{
    int done = 0, skipped = 0;

    fresh(2);
    inside = most_inside = 0;
    for (int i = 0; i < 6; i++) {
        if (px_sem_try_down(&sem) != 0) {
            skipped++;
            continue;
        }
        start(process_and_up, NULL);
        done++;
    }
    EXPECT_EQ(px_sem_waiters(&sem), 0);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_EQ(done, 2);
    EXPECT_EQ(skipped, 4);
    EXPECT_EQ(most_inside, 2);
    EXPECT_EQ(px_sem_count(&sem), 2);
}

static int up_at_once(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sem_up(&sem), 0);
    return 0;
}

IN_RUN(S_sem_43_work_that_never_parks_is_never_skipped)
{
    fresh(2);
    for (int i = 0; i < 6; i++) {
        EXPECT_EQ(px_sem_try_down(&sem), 0);
        start(up_at_once, NULL);
    }
    EXPECT_EQ(px_sem_count(&sem), 2);
}

static int down_and_return(void *arg)
{
    EXPECT_EQ(px_sem_down(&sem), 0);
    return *(int *)arg;
}

IN_RUN(S_sem_44_adjust_by_the_waiters_at_shutdown_leaves_0)
{
    static int values[5] = {11, 22, 33, 44, 55};
    px_fiber *fibers[5];
    int results[5];

    fresh(0);
    for (int i = 0; i < 5; i++)
        fibers[i] = start_handle(down_and_return, &values[i]);
    settle();
    EXPECT_EQ(px_sem_waiters(&sem), 5);
    EXPECT_EQ(px_sem_adjust(&sem, (int64_t)px_sem_waiters(&sem)), 0);
    EXPECT_EQ(px_await_all(fibers, 5, results), 0);
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(results[i], values[i]);
    EXPECT_SEM(&sem, "0:");
}

/* Load. */

static int hand_around(void *arg)
{
    int turns = *(int *)arg;

    for (int i = 0; i < turns; i++) {
        EXPECT_EQ(px_sem_down(&sem), 0);
        inside++;
        EXPECT_EQ(inside, 1);
        EXPECT_EQ(px_yield(), 0);
        inside--;
        EXPECT_EQ(px_sem_up(&sem), 0);
    }
    return 0;
}

IN_RUN(a_hundred_fibers_over_one_permit_are_never_two_inside)
{
    static int turns;
    px_fiber *fibers[100];

    turns = times(1000, 20);
    fresh(1);
    inside = 0;
    for (int i = 0; i < 100; i++)
        fibers[i] = start_handle(hand_around, &turns);
    EXPECT_EQ(px_await_all(fibers, 100, NULL), 0);
    EXPECT_SEM(&sem, "1:");
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

static int take_some_and_give_up_sometimes(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    int turns = times(200, 20);

    for (int i = 0; i < turns; i++) {
        int64_t n = next_random(&seed) % 5;
        px_scope scope;
        int code;

        EXPECT_EQ(px_scope_enter(&scope, next_random(&seed) % 7), 0);
        code = px_sem_down_n(&sem, n);
        (void)px_scope_leave(&scope);
        if (code != 0)
            continue;
        inside += (int)n;
        EXPECT(inside <= 7);
        EXPECT_EQ(px_sleep(next_random(&seed) % 3), 0);
        inside -= (int)n;
        EXPECT_EQ(px_sem_up_n(&sem, n), 0);
    }
    return 0;
}

IN_RUN(weights_and_deadlines_at_random_lose_no_permit)
{
    px_fiber *fibers[50];

    fresh(7);
    inside = 0;
    for (int i = 0; i < 50; i++)
        fibers[i] = start_handle(take_some_and_give_up_sometimes,
                                 (void *)(uintptr_t)(i + 1));
    EXPECT_EQ(px_await_all(fibers, 50, NULL), 0);
    EXPECT_EQ(inside, 0);
    EXPECT_SEM(&sem, "7:");
}

static const struct CMUnitTest semaphore_tests[] = {
    PX_TEST(S_sem_1_a_new_one_has_its_count_and_no_waiters),
    PX_TEST(all_zero_bytes_are_a_semaphore_without_permits),
    PX_TEST(init_makes_any_memory_a_semaphore),
    PX_TEST(any_count_will_do_to_begin_with),
    PX_TEST(S_sem_6_below_zero_every_down_parks_until_it_rises_above_zero),
    PX_TEST(S_sem_7_from_minus_2_only_the_third_up_wakes_somebody),
    PX_TEST(S_sem_9_one_fiber_takes_and_another_gives_back),
    PX_TEST(S_sem_10_up_comes_before_any_down),
    PX_TEST(S_sem_11_a_waiter_parks_and_the_others_run),
    PX_TEST(S_sem_12_waiters_are_released_in_the_order_of_arrival),
    PX_TEST(S_sem_13_down_with_a_permit_free_does_not_park),
    PX_TEST(S_sem_14_down_at_zero_parks_and_later_has_taken_one),
    PX_TEST(S_sem_15_each_up_releases_one_waiter),
    PX_TEST(
        S_sem_16_a_released_permit_cannot_be_snatched_before_the_waiter_runs),
    PX_TEST(S_sem_18_up_gives_a_permit_or_hands_it_to_a_waiter),
    PX_TEST(S_sem_19_try_takes_a_permit_or_leaves_the_count),
    PX_TEST(try_never_parks),
    PX_TEST(up_and_adjust_never_park_and_the_waiters_run_later),
    PX_TEST(S_sem_46_off_a_fiber_down_works_until_it_would_wait),
    PX_TEST(S_sem_47_up_try_and_adjust_need_no_fiber),
    PX_TEST(off_a_fiber_a_weighted_or_empty_wait_is_refused),
    PX_TEST(a_count_outlives_the_run_that_left_it),
    PX_TEST(S_sem_20_adjust_adds_5_or_takes_2_away),
    PX_TEST(S_sem_21_from_minus_3_with_six_waiters_adjust_5_releases_2),
    PX_TEST(S_sem_22_four_waiters_adjust_5_leaves_1),
    PX_TEST(
        S_sem_23_24_a_negative_adjust_releases_nobody_and_may_go_below_zero),
    PX_TEST(S_sem_52_the_walk_of_adjust_2_then_minus_1_then_9),
    PX_TEST(adjust_stops_at_the_first_waiter_that_does_not_fit),
    PX_TEST(S_sem_25_wait_available_leaves_the_count),
    PX_TEST(S_sem_27_two_waits_on_one_permit_both_return_and_one_is_left),
    PX_TEST(S_sem_28_wait_available_with_a_permit_free_does_not_park),
    PX_TEST(S_sem_29_the_permit_goes_on_to_the_next_in_the_queue),
    PX_TEST(all_waits_at_the_head_return_with_one_permit),
    PX_TEST(wait_available_is_queued_like_any_other),
    PX_TEST(wait_available_below_zero_waits_for_more_than_zero),
    PX_TEST(down_n_takes_all_or_none),
    PX_TEST(a_large_request_at_the_head_holds_back_the_small_ones),
    PX_TEST(a_try_does_not_overtake_the_queue),
    PX_TEST(a_down_does_not_overtake_the_queue),
    PX_TEST(up_n_serves_as_many_as_it_satisfies),
    PX_TEST(zero_permits_are_taken_and_given_without_effect),
    PX_TEST(zero_permits_wait_for_nobody_even_behind_a_queue),
    PX_TEST(negative_permits_are_invalid_and_change_nothing),
    PX_TEST(a_null_semaphore_is_invalid),
    PX_TEST(a_bad_argument_comes_before_being_off_a_fiber),
    PX_TEST(a_bad_argument_comes_before_a_fired_scope),
    PX_TEST(a_fired_scope_fails_every_down_with_permits_free),
    PX_TEST(a_fired_scope_fails_a_down_before_it_queues),
    PX_TEST(a_fired_scope_does_not_reach_try_up_and_adjust),
    PX_TEST(every_64th_failing_down_in_a_row_lets_the_others_run),
    PX_TEST(up_past_the_largest_count_is_refused),
    PX_TEST(adjust_past_either_end_is_refused),
    PX_TEST(a_try_at_the_smallest_count_takes_nothing),
    PX_TEST(an_overflow_is_counted_before_any_waiter_is_served),
    PX_TEST(S_sem_49_a_cancelled_down_leaves_the_queue_at_that_moment),
    PX_TEST(S_sem_50_a_waiter_timed_out_at_60_so_an_up_just_sits_there),
    PX_TEST(
        S_sem_51_a_granted_waiter_keeps_its_permit_when_it_is_then_cancelled),
    PX_TEST(a_waiter_cancelled_first_is_not_counted_by_a_later_up),
    PX_TEST(
        a_cancelled_head_lets_the_smaller_ones_behind_it_go_in_the_same_step),
    PX_TEST(a_timed_out_head_lets_the_smaller_ones_behind_it_go),
    PX_TEST(a_head_whose_scope_is_cancelled_lets_those_behind_it_go),
    PX_TEST(a_cancelled_waiter_in_the_middle_releases_nobody),
    PX_TEST(an_interrupted_wait_available_leaves_the_queue_to_the_next),
    PX_TEST(several_interrupted_in_one_step_are_all_out_and_the_rest_is_served),
    PX_TEST(a_shielded_waiter_is_not_interrupted),
    PX_TEST(a_down_that_nothing_can_wake_returns_stalled),
    PX_TEST(what_a_stalled_waiter_held_back_is_granted),
    PX_TEST(a_shielded_waiter_stalls_too),
    PX_TEST(wait_available_stalls_too),
    PX_TEST(on_deadlock_is_off_fiber_and_its_up_ends_the_deadlock),
    PX_TEST(adjust_set_limit_and_close_end_a_deadlock_too),
    PX_TEST(S_sem_35_waiters_and_their_ids_in_the_order_of_release),
    PX_TEST(waiter_ids_writes_no_more_than_cap_and_says_how_many_there_are),
    PX_TEST(S_sem_37_a_removed_waiter_is_never_woken_by_up_or_adjust),
    PX_TEST(remove_waiter_of_somebody_who_does_not_wait_is_0),
    PX_TEST(removing_the_head_serves_the_queue),
    PX_TEST(S_sem_38_a_removed_waiter_stays_parked_until_it_times_out),
    PX_TEST(a_removed_waiter_stalls_when_nothing_else_is_left),
    PX_TEST(a_removed_waiter_no_longer_touches_the_semaphore),
    PX_TEST(a_waiter_removed_and_then_cancelled_serves_nobody),
    PX_TEST(destroy_with_a_waiter_is_busy_and_changes_nothing),
    PX_TEST(destroy_with_a_granted_waiter_that_has_not_run_is_fine),
    PX_TEST(destroy_with_permits_out_or_free_is_fine),
    PX_TEST(errno_is_left_as_it_was_across_parking_and_failing),
    PX_TEST(S_sem_40_a_pool_of_4_never_has_more_than_4_inside),
    PX_TEST(S_sem_41_at_a_gate_each_up_admits_exactly_one),
    PX_TEST(S_sem_42_a_gate_adjusted_by_3_lets_all_three_through),
    PX_TEST(S_sem_43_optional_work_is_skipped_when_both_permits_are_taken),
    PX_TEST(S_sem_43_work_that_never_parks_is_never_skipped),
    PX_TEST(S_sem_44_adjust_by_the_waiters_at_shutdown_leaves_0),
    PX_TEST(a_hundred_fibers_over_one_permit_are_never_two_inside),
    PX_TEST(weights_and_deadlines_at_random_lose_no_permit),
};

PX_TEST_MAIN(semaphore_tests)
