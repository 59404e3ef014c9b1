/* SPDX-License-Identifier: MIT */
/*
 * test_semaphore_bounded.c - the semaphore's limit: what it refuses, how it is
 * moved, which requests it passes over; and closing.
 */
#include "support/sync_jobs.h"

static px_sem sem;

static void fresh(int64_t permits)
{
    EXPECT_EQ(px_sem_init_bounded(&sem, permits), 0);
}

/* A bounded semaphore whose permits are all out. */
static void fresh_and_taken(int64_t permits)
{
    fresh(permits);
    EXPECT_EQ(px_sem_try_down_n(&sem, permits), 0);
}

/* Making one. */

static void S_go_40_a_bounded_one_starts_with_all_permits_free(void **state)
{
    static px_sem fixed = PX_SEM_INIT_BOUNDED(3);

    (void)state;
    assert_int_equal(px_sem_init_bounded(&sem, 4), 0);
    assert_int_equal(px_sem_count(&sem), 4);
    assert_int_equal(px_sem_limit(&sem), 4);
    assert_int_equal(px_sem_waiters(&sem), 0);
    assert_int_equal(px_sem_count(&fixed), 3);
    assert_int_equal(px_sem_limit(&fixed), 3);
    assert_int_equal(px_sem_up(&fixed), PX_EOVERFLOW);
}

static void S_php_9_permits_below_1_are_raised_to_1(void **state)
{
    static const int64_t below[] = {0, -1, -3, INT64_MIN};
    static px_sem zero = PX_SEM_INIT_BOUNDED(0);
    static px_sem negative = PX_SEM_INIT_BOUNDED(-3);

    (void)state;
    for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
        assert_int_equal(px_sem_init_bounded(&sem, below[i]), 0);
        assert_int_equal(px_sem_count(&sem), 1);
        assert_int_equal(px_sem_limit(&sem), 1);
    }
    assert_int_equal(px_sem_count(&zero), 1);
    assert_int_equal(px_sem_limit(&zero), 1);
    assert_int_equal(px_sem_count(&negative), 1);
    assert_int_equal(px_sem_limit(&negative), 1);
}

static void the_largest_limit_works(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init_bounded(&sem, INT64_MAX), 0);
    assert_true(px_sem_limit(&sem) == INT64_MAX);
    assert_true(px_sem_count(&sem) == INT64_MAX);
    assert_int_equal(px_sem_up(&sem), PX_EOVERFLOW);
    assert_int_equal(px_sem_try_down_n(&sem, INT64_MAX), 0);
    assert_int_equal(px_sem_count(&sem), 0);
    assert_int_equal(px_sem_up_n(&sem, INT64_MAX), 0);
    assert_true(px_sem_count(&sem) == INT64_MAX);
}

/* PHP's document. */

static int inside, most_inside;

static int hold_for_10_ms(void *arg)
{
    (void)arg;
    inside++;
    if (inside > most_inside)
        most_inside = inside;
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    inside--;
    return 0;
}

static int with_permit(void *arg)
{
    EXPECT_EQ(px_sem_with(&sem, hold_for_10_ms, NULL), 0);
    return *(int *)arg;
}

IN_RUN(S_php_7_five_tasks_over_2_permits_peak_2_free_2)
{
    static int numbers[5] = {1, 2, 3, 4, 5};
    px_fiber *tasks[5];
    int results[5];

    fresh(2);
    inside = most_inside = 0;
    for (int i = 0; i < 5; i++)
        tasks[i] = start_handle(with_permit, &numbers[i]);
    EXPECT_EQ(px_await_all(tasks, 5, results), 0);
    for (int i = 0; i < 5; i++)
        note("%s%d", i ? "," : "", results[i]);
    EXPECT_LOG("1,2,3,4,5");
    note("peak: %d, free: %d", most_inside, (int)px_sem_count(&sem));
    EXPECT_LOG("peak: 2, free: 2");
    EXPECT_EQ(px_now(), 30 * PX_MSEC);
}

IN_RUN(S_php_10_while_somebody_waits_nothing_is_free)
{
    fresh_and_taken(1);
    take('a', &sem, 1);
    EXPECT_EQ(px_sem_count(&sem), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_count(&sem), 0);
    settle();
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_SEM(&sem, "1: a=ok");
}

IN_RUN(S_php_12_a_cancelled_acquire_takes_no_permit)
{
    struct job *a;

    fresh_and_taken(2);
    a = take('a', &sem, 2);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=canceled");
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    EXPECT_SEM(&sem, "2: a=canceled");
}

static void S_php_14_a_release_with_every_permit_free_is_refused(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init_bounded(&sem, 2), 0);
    assert_int_equal(px_sem_up(&sem), PX_EOVERFLOW);
    assert_int_equal(px_sem_count(&sem), 2);
    assert_int_equal(px_sem_try_down(&sem), 0);
    assert_int_equal(px_sem_up(&sem), 0);
    assert_int_equal(px_sem_up(&sem), PX_EOVERFLOW);
    assert_int_equal(px_sem_count(&sem), 2);
}

/* Giving too much. */

static void S_go_14_44_an_up_above_the_limit_is_refused_as_a_whole(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init_bounded(&sem, 5), 0);
    assert_int_equal(px_sem_try_down_n(&sem, 3), 0);
    assert_int_equal(px_sem_up_n(&sem, 4), PX_EOVERFLOW);
    assert_int_equal(px_sem_up_n(&sem, INT64_MAX), PX_EOVERFLOW);
    assert_int_equal(px_sem_count(&sem), 2);
    assert_int_equal(px_sem_up_n(&sem, 3), 0);
    assert_int_equal(px_sem_count(&sem), 5);
    assert_int_equal(px_sem_up_n(&sem, 0), 0);
}

static void S_go_25_a_release_on_a_fresh_one_is_refused(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init_bounded(&sem, 1), 0);
    assert_int_equal(px_sem_up(&sem), PX_EOVERFLOW);
    assert_int_equal(px_sem_count(&sem), 1);
}

static void an_adjust_above_the_limit_is_refused(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init_bounded(&sem, 3), 0);
    assert_int_equal(px_sem_adjust(&sem, 1), PX_EOVERFLOW);
    assert_int_equal(px_sem_count(&sem), 3);
    assert_int_equal(px_sem_adjust(&sem, -5), 0);
    assert_int_equal(px_sem_count(&sem), -2);
    assert_int_equal(px_sem_adjust(&sem, 6), PX_EOVERFLOW);
    assert_int_equal(px_sem_adjust(&sem, INT64_MAX), PX_EOVERFLOW);
    assert_int_equal(px_sem_count(&sem), -2);
    assert_int_equal(px_sem_adjust(&sem, 5), 0);
    assert_int_equal(px_sem_count(&sem), 3);
    assert_int_equal(px_sem_limit(&sem), 3);
}

static void an_adjust_past_the_smallest_count_is_refused(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init_bounded(&sem, 1), 0);
    assert_int_equal(px_sem_adjust(&sem, INT64_MIN), 0);
    assert_true(px_sem_count(&sem) == INT64_MIN + 1);
    assert_int_equal(px_sem_adjust(&sem, -2), PX_EOVERFLOW);
    assert_true(px_sem_count(&sem) == INT64_MIN + 1);
}

IN_RUN(the_limit_counts_before_any_waiter_is_served)
{
    fresh_and_taken(2);
    take('a', &sem, 2);
    take('b', &sem, 1);
    EXPECT_CODE(px_sem_up_n(&sem, 3), PX_EOVERFLOW);
    EXPECT_CODE(px_sem_adjust(&sem, 3), PX_EOVERFLOW);
    settle();
    EXPECT_SEM(&sem, "0:ab a=- b=-");
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    settle();
    EXPECT_SEM(&sem, "0:b a=ok b=-");
    EXPECT_EQ(px_sem_adjust(&sem, 2), 0);
    settle();
    EXPECT_SEM(&sem, "1: a=ok b=ok");
}

/* Go's x/sync. */

IN_RUN(S_go_8_a_cancelled_acquire_leaves_the_semaphore_unchanged)
{
    struct job *a;

    fresh(3);
    EXPECT_EQ(px_sem_try_down(&sem), 0);
    a = take_within('a', &sem, 3, PX_FOREVER);
    EXPECT_EQ(px_scope_cancel(&a->scope), 0);
    settle();
    EXPECT_SEM(&sem, "2: a=canceled");
}

static void S_go_9_try_takes_all_n_or_none(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init_bounded(&sem, 3), 0);
    assert_int_equal(px_sem_try_down_n(&sem, 2), 0);
    assert_int_equal(px_sem_try_down_n(&sem, 2), PX_EAGAIN);
    assert_int_equal(px_sem_count(&sem), 1);
    assert_int_equal(px_sem_try_down_n(&sem, 4), PX_EAGAIN);
    assert_int_equal(px_sem_try_down_n(&sem, 1), 0);
}

static int task[16];

static int work_100_ms(void *arg)
{
    int *place = arg;

    EXPECT_EQ(px_sleep(100 * PX_MSEC), 0);
    *place = (int)(place - task) + 1;
    EXPECT_EQ(px_sem_up(&sem), 0);
    return 0;
}

IN_RUN(S_go_10_a_worker_pool_of_4_fills_1_to_16_in_four_rounds)
{
    fresh(4);
    memset(task, 0, sizeof(task));
    for (int i = 0; i < 16; i++) {
        EXPECT_EQ(px_sem_down(&sem), 0);
        start(work_100_ms, &task[i]);
    }
    EXPECT_EQ(px_sem_down_n(&sem, 4), 0);
    for (int i = 0; i < 16; i++)
        note("%s%d", i ? " " : "[", task[i]);
    EXPECT_LOG("[1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16");
    EXPECT_EQ(px_now(), 400 * PX_MSEC);
}

IN_RUN(S_go_12_a_request_above_the_limit_waits_until_its_scope_fires)
{
    struct job *a;

    fresh(2);
    a = take_within('a', &sem, 3, 25 * PX_MSEC);
    EXPECT_EQ(px_sleep(30 * PX_MSEC), 0);
    EXPECT_SEM(&sem, "2: a=timedout");
    EXPECT_EQ(a->at, 25 * PX_MSEC);
}

IN_RUN(S_go_13_a_cancelled_front_waiter_lets_those_behind_it_go)
{
    struct job *a;

    fresh(3);
    EXPECT_EQ(px_sem_try_down(&sem), 0);
    a = take('a', &sem, 3);
    take('b', &sem, 2);
    EXPECT_SEM(&sem, "2:ab a=- b=-");
    EXPECT_EQ(px_cancel(a->fiber), 0);
    EXPECT_SEM(&sem, "0: a=- b=-");
    settle();
    EXPECT_SEM(&sem, "0: a=canceled b=ok");
}

IN_RUN(S_go_15_a_release_of_100_wakes_nobody_behind_a_request_for_101)
{
    fresh_and_taken(200);
    take('a', &sem, 101);
    take('b', &sem, 1);
    EXPECT_EQ(px_sem_up_n(&sem, 100), 0);
    settle();
    EXPECT_SEM(&sem, "100:ab a=- b=-");
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=ok");
}

IN_RUN(S_go_21_a_done_scope_fails_with_permits_free)
{
    px_scope scope;

    fresh(1);
    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    EXPECT_CODE(px_sem_down(&sem), PX_ECANCELED);
    EXPECT_CODE(px_scope_leave(&scope), PX_ECANCELED);
    EXPECT_SEM(&sem, "1:");
}

IN_RUN(S_go_22_a_grant_stands_when_its_scope_fires_before_it_runs)
{
    struct job *a;

    fresh_and_taken(1);
    a = take_within('a', &sem, 1, PX_FOREVER);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_scope_cancel(&a->scope), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok");
    EXPECT_CODE(a->next, PX_ECANCELED);
}

IN_RUN(S_go_23_nobody_barges_in_while_somebody_waits)
{
    fresh(5);
    EXPECT_EQ(px_sem_try_down(&sem), 0);
    take('a', &sem, 5);
    EXPECT_CODE(px_sem_try_down(&sem), PX_EAGAIN);
    take('b', &sem, 1);
    EXPECT_SEM(&sem, "4:ab a=- b=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0:b a=ok b=-");
    EXPECT_EQ(px_sem_up_n(&sem, 5), 0);
    settle();
    EXPECT_SEM(&sem, "4: a=ok b=ok");
}

IN_RUN(S_go_24_tries_read_true_false_true_false)
{
    bool tries[4];

    fresh(2);
    EXPECT_EQ(px_sem_down(&sem), 0);
    tries[0] = px_sem_try_down(&sem) == 0;
    tries[1] = px_sem_try_down(&sem) == 0;
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    tries[2] = px_sem_try_down(&sem) == 0;
    EXPECT_EQ(px_sem_down(&sem), 0);
    tries[3] = px_sem_try_down(&sem) == 0;
    for (int i = 0; i < 4; i++)
        note("%s ", tries[i] ? "true" : "false");
    EXPECT_LOG("true false true false ");
}

static int down_one(void *arg)
{
    (void)arg;
    return px_sem_down(&sem);
}

static int within_10_ms(void)
{
    return px_with_timeout(10 * PX_MSEC, down_one, NULL);
}

IN_RUN(S_go_24_the_same_with_acquires_of_10_ms)
{
    fresh(2);
    EXPECT_EQ(px_sem_down(&sem), 0);
    note("%s ", err(within_10_ms()));
    note("%s ", err(within_10_ms()));
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    note("%s ", err(within_10_ms()));
    EXPECT_EQ(px_sem_down(&sem), 0);
    note("%s ", err(within_10_ms()));
    EXPECT_LOG("ok timedout ok timedout ");
    EXPECT_EQ(px_now(), 20 * PX_MSEC);
}

IN_RUN(S_go_26_a_pending_request_above_the_limit_does_not_block_others)
{
    struct job *a;

    fresh(2);
    a = take('a', &sem, 3);
    take('b', &sem, 1);
    take('c', &sem, 1);
    EXPECT_SEM(&sem, "0:a a=- b=ok c=ok");
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    EXPECT_SEM(&sem, "2:a a=- b=ok c=ok");
    EXPECT_EQ(px_sem_try_down_n(&sem, 2), 0);
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    settle();
    EXPECT_SEM(&sem, "2: a=canceled b=ok c=ok");
}

static bool streaming;

static int stream_of_ones(void *arg)
{
    (void)arg;
    while (streaming) {
        EXPECT_EQ(px_sem_down(&sem), 0);
        EXPECT_EQ(px_sleep(PX_MSEC), 0);
        EXPECT_EQ(px_sem_up(&sem), 0);
        if (px_now() > PX_SEC)
            break;
    }
    return 0;
}

IN_RUN(S_go_27_a_large_request_is_not_starved_by_a_stream_of_ones)
{
    px_fiber *fibers[20];

    fresh(10);
    streaming = true;
    for (int i = 0; i < 20; i++)
        fibers[i] = start_handle(stream_of_ones, NULL);
    EXPECT_EQ(px_sem_down_n(&sem, 10), 0);
    streaming = false;
    /* Ten were ahead of it, and the ten that wait are served before it. */
    EXPECT_EQ(px_now(), 2 * PX_MSEC);
    EXPECT_EQ(px_sem_up_n(&sem, 10), 0);
    EXPECT_EQ(px_await_all(fibers, 20, NULL), 0);
    EXPECT_SEM(&sem, "10:");
}

IN_RUN(S_go_28_cancelling_the_big_one_lets_the_small_one_go)
{
    struct job *a;

    fresh(10);
    EXPECT_EQ(px_sem_down(&sem), 0);
    a = take_within('a', &sem, 10, PX_FOREVER);
    take('b', &sem, 1);
    EXPECT_SEM(&sem, "9:ab a=- b=-");
    EXPECT_EQ(px_scope_cancel(&a->scope), 0);
    settle();
    EXPECT_SEM(&sem, "8: a=canceled b=ok");
}

IN_RUN(S_go_29_after_a_cancelled_acquire_everything_can_be_taken)
{
    struct job *a;

    fresh(2);
    EXPECT_EQ(px_sem_down(&sem), 0);
    a = take('a', &sem, 2);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_try_down_n(&sem, 2), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=canceled");
}

static void S_go_17_30_zero_is_a_no_op_and_below_zero_is_invalid(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init_bounded(&sem, 2), 0);
    assert_int_equal(px_sem_up_n(&sem, 0), 0);
    assert_int_equal(px_sem_up_n(&sem, -1), PX_EINVAL);
    assert_int_equal(px_sem_try_down_n(&sem, 2), 0);
    assert_int_equal(px_sem_try_down_n(&sem, 0), 0);
    assert_int_equal(px_sem_try_down_n(&sem, -1), PX_EINVAL);
    assert_int_equal(px_sem_count(&sem), 0);
    assert_int_equal(px_sem_up_n(&sem, 2), 0);
    assert_int_equal(px_sem_try_down_n(&sem, 2), 0);
    assert_int_equal(px_sem_try_down(&sem), PX_EAGAIN);
}

static int collatz[32];

static int collatz_steps(void *arg)
{
    int *place = arg;
    long n = (place - collatz) + 1;
    int steps = 0;

    while (n > 1) {
        n = n % 2 ? 3 * n + 1 : n / 2;
        steps++;
        EXPECT_EQ(px_yield(), 0);
    }
    *place = steps;
    EXPECT_EQ(px_sem_up(&sem), 0);
    return 0;
}

IN_RUN(S_go_31_collatz_steps_of_1_to_32_by_three_workers)
{
    fresh(3);
    for (int i = 0; i < 32; i++) {
        EXPECT_EQ(px_sem_down(&sem), 0);
        start(collatz_steps, &collatz[i]);
    }
    EXPECT_EQ(px_sem_down_n(&sem, 3), 0);
    for (int i = 0; i < 32; i++)
        note("%d ", collatz[i]);
    EXPECT_LOG("0 1 7 2 5 8 16 3 19 6 14 9 9 17 17 4 12 20 20 7 7 15 15 10 23 "
               "10 111 18 18 18 106 5 ");
}

/* Moving the limit. */

static void set_limit_moves_the_count_with_it(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init_bounded(&sem, 5), 0);
    assert_int_equal(px_sem_try_down_n(&sem, 2), 0);
    assert_int_equal(px_sem_set_limit(&sem, 8), 0);
    assert_int_equal(px_sem_limit(&sem), 8);
    assert_int_equal(px_sem_count(&sem), 6);
    assert_int_equal(px_sem_set_limit(&sem, 2), 0);
    assert_int_equal(px_sem_count(&sem), 0);
    assert_int_equal(px_sem_set_limit(&sem, 1), 0);
    assert_int_equal(px_sem_count(&sem), -1);
    assert_int_equal(px_sem_set_limit(&sem, 1), 0);
    assert_int_equal(px_sem_count(&sem), -1);
    assert_int_equal(px_sem_limit(&sem), 1);
    assert_int_equal(px_sem_up_n(&sem, 2), 0);
    assert_int_equal(px_sem_count(&sem), 1);
    assert_int_equal(px_sem_up(&sem), PX_EOVERFLOW);
}

static void S_go_50_a_limit_below_zero_is_invalid(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init_bounded(&sem, 2), 0);
    assert_int_equal(px_sem_set_limit(&sem, -1), PX_EINVAL);
    assert_int_equal(px_sem_set_limit(&sem, INT64_MIN), PX_EINVAL);
    assert_int_equal(px_sem_limit(&sem), 2);
    assert_int_equal(px_sem_count(&sem), 2);
}

static void an_unbounded_one_has_no_limit_to_set(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init(&sem, 2), 0);
    assert_int_equal(px_sem_set_limit(&sem, 2), PX_EINVAL);
    assert_int_equal(px_sem_set_limit(&sem, 0), PX_EINVAL);
    assert_int_equal(px_sem_set_limit(&sem, -1), PX_EINVAL);
    assert_true(px_sem_limit(&sem) == PX_SEM_UNBOUNDED);
    assert_int_equal(px_sem_count(&sem), 2);
}

static void set_limit_past_either_end_is_refused(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init_bounded(&sem, 10), 0);
    assert_int_equal(px_sem_try_down_n(&sem, 10), 0);
    assert_int_equal(px_sem_adjust(&sem, INT64_MIN), 0);
    assert_int_equal(px_sem_set_limit(&sem, 9), PX_EOVERFLOW);
    assert_int_equal(px_sem_limit(&sem), 10);
    assert_true(px_sem_count(&sem) == INT64_MIN);
    assert_int_equal(px_sem_set_limit(&sem, INT64_MAX), 0);
    assert_true(px_sem_limit(&sem) == INT64_MAX);
    assert_true(px_sem_count(&sem) == -11);
}

IN_RUN(S_go_47_raising_the_limit_lets_a_waiter_in)
{
    fresh_and_taken(1);
    take('a', &sem, 1);
    EXPECT_EQ(px_sem_set_limit(&sem, 2), 0);
    EXPECT_SEM(&sem, "0: a=-");
    settle();
    EXPECT_SEM(&sem, "0: a=ok");
}

static void S_go_48_holders_keep_what_they_hold_when_it_shrinks(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init_bounded(&sem, 2), 0);
    assert_int_equal(px_sem_try_down_n(&sem, 2), 0);
    assert_int_equal(px_sem_set_limit(&sem, 1), 0);
    assert_int_equal(px_sem_count(&sem), -1);
    assert_int_equal(px_sem_try_down(&sem), PX_EAGAIN);
    assert_int_equal(px_sem_up(&sem), 0);
    assert_int_equal(px_sem_try_down(&sem), PX_EAGAIN);
    assert_int_equal(px_sem_up(&sem), 0);
    assert_int_equal(px_sem_count(&sem), 1);
    assert_int_equal(px_sem_try_down(&sem), 0);
}

IN_RUN(S_go_49_a_request_for_3_of_2_is_let_in_by_a_limit_of_3)
{
    fresh(2);
    take('a', &sem, 3);
    settle();
    EXPECT_SEM(&sem, "2:a a=-");
    EXPECT_EQ(px_sem_set_limit(&sem, 3), 0);
    EXPECT_SEM(&sem, "0: a=-");
    settle();
    EXPECT_SEM(&sem, "0: a=ok");
}

IN_RUN(S_go_50_a_limit_of_0_pauses_the_pool)
{
    fresh(2);
    EXPECT_EQ(px_sem_down(&sem), 0);
    EXPECT_EQ(px_sem_set_limit(&sem, 0), 0);
    EXPECT_EQ(px_sem_limit(&sem), 0);
    EXPECT_EQ(px_sem_count(&sem), -1);
    EXPECT_CODE(px_sem_try_down(&sem), PX_EAGAIN);
    take('a', &sem, 1);
    watch_sem('w', &sem);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_CODE(px_sem_up(&sem), PX_EOVERFLOW);
    settle();
    EXPECT_SEM(&sem, "0:aw a=- w=-");
    EXPECT_EQ(px_sem_down_n(&sem, 0), 0);
    EXPECT_EQ(px_sem_set_limit(&sem, 2), 0);
    settle();
    EXPECT_SEM(&sem, "1: a=ok w=ok");
}

IN_RUN(shrinking_revokes_nothing_and_newcomers_wait)
{
    fresh(5);
    EXPECT_EQ(px_sem_down_n(&sem, 4), 0);
    EXPECT_EQ(px_sem_set_limit(&sem, 2), 0);
    take('a', &sem, 1);
    EXPECT_SEM(&sem, "-2:a a=-");
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    settle();
    EXPECT_SEM(&sem, "0:a a=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok");
}

IN_RUN(set_limit_never_parks)
{
    fresh_and_taken(1);
    take('a', &sem, 1);
    watch_others();
    EXPECT_EQ(px_sem_set_limit(&sem, 4), 0);
    EXPECT(nobody_ran_since());
    EXPECT_SEM(&sem, "2: a=-");
    settle();
}

/* Passed over. */

IN_RUN(a_passed_over_request_holds_back_nobody)
{
    fresh(2);
    take('a', &sem, 3);
    take('b', &sem, 2);
    EXPECT_SEM(&sem, "0:a a=- b=ok");
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    EXPECT_EQ(px_sem_try_down(&sem), 0);
    watch_others();
    EXPECT_EQ(px_sem_down(&sem), 0);
    EXPECT(nobody_ran_since());
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_wait_available(&sem), 0);
    EXPECT(nobody_ran_since());
    EXPECT_SEM(&sem, "1:a a=- b=ok");
    EXPECT_EQ(px_sem_set_limit(&sem, 4), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=ok");
}

IN_RUN(a_passed_over_request_is_back_in_its_own_place)
{
    fresh_and_taken(2);
    take('a', &sem, 1);
    take('b', &sem, 3);
    take('c', &sem, 1);
    EXPECT_SEM(&sem, "0:abc a=- b=- c=-");
    EXPECT_EQ(px_sem_set_limit(&sem, 3), 0);
    settle();
    EXPECT_SEM(&sem, "0:bc a=ok b=- c=-");
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    settle();
    EXPECT_SEM(&sem, "2:bc a=ok b=- c=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0:c a=ok b=ok c=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=ok c=ok");
}

IN_RUN(a_request_is_passed_over_when_the_limit_shrinks_under_it)
{
    fresh_and_taken(4);
    take('a', &sem, 3);
    take('b', &sem, 1);
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    settle();
    EXPECT_SEM(&sem, "2:ab a=- b=-");
    EXPECT_EQ(px_sem_set_limit(&sem, 3), 0);
    settle();
    EXPECT_SEM(&sem, "1:ab a=- b=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "2:ab a=- b=-");
    EXPECT_EQ(px_sem_set_limit(&sem, 2), 0);
    settle();
    EXPECT_SEM(&sem, "0:a a=- b=ok");
    EXPECT_EQ(px_sem_set_limit(&sem, 9), 0);
    settle();
    EXPECT_SEM(&sem, "4: a=ok b=ok");
}

IN_RUN(places_survive_any_number_of_moves)
{
    fresh_and_taken(9);
    take('a', &sem, 2);
    take('b', &sem, 5);
    take('c', &sem, 1);
    take('d', &sem, 7);
    take('e', &sem, 3);
    for (int limit = 0; limit <= 9; limit++) {
        char expected[64];

        EXPECT_EQ(px_sem_set_limit(&sem, limit), 0);
        (void)snprintf(expected, sizeof(expected),
                       "%d:abcde a=- b=- c=- d=- e=-", limit - 9);
        EXPECT_SEM(&sem, expected);
    }
    EXPECT_EQ(px_sem_set_limit(&sem, 3), 0);
    /* Now b and d are passed over; a, c and e take turns. */
    EXPECT_EQ(px_sem_up_n(&sem, 8), 0);
    settle();
    EXPECT_SEM(&sem, "0:bcde a=ok b=- c=- d=- e=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0:bde a=ok b=- c=ok d=- e=-");
    EXPECT_EQ(px_sem_set_limit(&sem, 6), 0);
    settle();
    /* b is back ahead of e, which would fit. */
    EXPECT_SEM(&sem, "3:bde a=ok b=- c=ok d=- e=-");
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    settle();
    EXPECT_SEM(&sem, "0:de a=ok b=ok c=ok d=- e=-");
    EXPECT_EQ(px_sem_up_n(&sem, 3), 0);
    settle();
    EXPECT_SEM(&sem, "0:d a=ok b=ok c=ok d=- e=ok");
    EXPECT_EQ(px_sem_up_n(&sem, 6), 0);
    EXPECT_SEM(&sem, "6:d a=ok b=ok c=ok d=- e=ok");
    EXPECT_EQ(px_sem_set_limit(&sem, 7), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=ok c=ok d=ok e=ok");
}

IN_RUN(a_request_that_joins_the_passed_over_keeps_its_place_among_them)
{
    fresh_and_taken(5);
    take('a', &sem, 4);
    take('b', &sem, 9);
    take('c', &sem, 1);
    EXPECT_EQ(px_sem_set_limit(&sem, 3), 0);
    EXPECT_SEM(&sem, "-2:abc a=- b=- c=-");
    EXPECT_EQ(px_sem_set_limit(&sem, 0), 0);
    EXPECT_SEM(&sem, "-5:abc a=- b=- c=-");
    EXPECT_EQ(px_sem_set_limit(&sem, 9), 0);
    EXPECT_SEM(&sem, "0:bc a=- b=- c=-");
    EXPECT_EQ(px_sem_close(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=closed c=closed");
}

IN_RUN(a_newcomer_goes_behind_a_request_that_came_back)
{
    fresh(3);
    take('a', &sem, 4);
    EXPECT_EQ(px_sem_down(&sem), 0);
    EXPECT_EQ(px_sem_set_limit(&sem, 4), 0);
    EXPECT_SEM(&sem, "3:a a=-");
    EXPECT_CODE(px_sem_try_down(&sem), PX_EAGAIN);
    take('b', &sem, 1);
    EXPECT_SEM(&sem, "3:ab a=- b=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0:b a=ok b=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
}

IN_RUN(wait_available_keeps_its_place_through_a_limit_of_0)
{
    fresh_and_taken(1);
    watch_sem('w', &sem);
    take('a', &sem, 1);
    EXPECT_EQ(px_sem_set_limit(&sem, 0), 0);
    EXPECT_SEM(&sem, "-1:wa w=- a=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0:wa w=- a=-");
    EXPECT_EQ(px_sem_set_limit(&sem, 1), 0);
    settle();
    EXPECT_SEM(&sem, "0: w=ok a=ok");
}

IN_RUN(wait_available_behind_a_request_that_came_back_waits_its_turn)
{
    fresh_and_taken(1);
    EXPECT_EQ(px_sem_set_limit(&sem, 0), 0);
    take('a', &sem, 1);
    watch_sem('w', &sem);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_set_limit(&sem, 1), 0);
    settle();
    EXPECT_SEM(&sem, "0:w a=ok w=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "1: a=ok w=ok");
}

IN_RUN(a_passed_over_waiter_can_be_cancelled_timed_out_and_removed)
{
    struct job *a, *b, *c;

    fresh(1);
    a = take('a', &sem, 2);
    b = take_within('b', &sem, 3, 10 * PX_MSEC);
    c = take('c', &sem, 4);
    take('d', &sem, 5);
    EXPECT_EQ(px_sem_waiters(&sem), 4);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    EXPECT_SEM(&sem, "1:bcd a=- b=- c=- d=-");
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_SEM(&sem, "1:cd a=canceled b=timedout c=- d=-");
    EXPECT_EQ(b->at, 10 * PX_MSEC);
    EXPECT_EQ(px_sem_remove_waiter(&sem, c->id), 1);
    EXPECT_EQ(px_sem_remove_waiter(&sem, c->id), 0);
    EXPECT_SEM(&sem, "1:d a=canceled b=timedout c=- d=-");
    EXPECT_EQ(px_sem_set_limit(&sem, 5), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=canceled b=timedout c=- d=ok");
    EXPECT_EQ(px_cancel(c->fiber), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=canceled b=timedout c=canceled d=ok");
}

IN_RUN(waiter_ids_cut_by_cap_keep_the_order_of_arrival)
{
    px_fid ids[3] = {-7, -7, -7};

    fresh_and_taken(2);
    take('a', &sem, 5);
    take('b', &sem, 1);
    take('c', &sem, 6);
    take('d', &sem, 2);
    EXPECT_EQ(px_sem_waiter_ids(&sem, ids, 2), 4);
    EXPECT_EQ(ids[0], 1);
    EXPECT_EQ(ids[1], 2);
    EXPECT_EQ(ids[2], -7);
    EXPECT_EQ(px_sem_waiter_ids(&sem, ids, 3), 4);
    EXPECT_EQ(ids[2], 3);
    EXPECT_EQ(px_sem_waiter_ids(&sem, NULL, 0), 4);
    EXPECT_EQ(px_sem_close(&sem), 0);
    settle();
}

IN_RUN(destroy_with_a_passed_over_waiter_is_busy)
{
    fresh(1);
    take('a', &sem, 2);
    EXPECT_CODE(px_sem_destroy(&sem), PX_EBUSY);
    EXPECT_SEM(&sem, "1:a a=-");
    EXPECT_EQ(px_sem_set_limit(&sem, 2), 0);
    settle();
    EXPECT_EQ(px_sem_destroy(&sem), 0);
}

IN_STALLED_RUN(a_passed_over_request_alone_stalls)
{
    fresh(4);
    EXPECT_CODE(px_sem_down_n(&sem, 5), PX_ESTALLED);
    EXPECT_SEM(&sem, "4:");
}

IN_RUN(on_an_unbounded_one_nothing_is_passed_over)
{
    EXPECT_EQ(px_sem_init(&sem, 1), 0);
    take('a', &sem, INT64_MAX);
    take('b', &sem, 1);
    settle();
    EXPECT_SEM(&sem, "1:ab a=- b=-");
    EXPECT_EQ(px_sem_up_n(&sem, INT64_MAX - 1), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=ok");
}

/* Closing. */

IN_RUN(close_sends_every_waiter_away_at_that_moment)
{
    fresh_and_taken(2);
    take('a', &sem, 1);
    take('b', &sem, 2);
    take('c', &sem, 7);
    watch_sem('w', &sem);
    EXPECT_EQ(px_sem_close(&sem), 0);
    EXPECT_SEM(&sem, "0: a=- b=- c=- w=-");
    settle();
    EXPECT_SEM(&sem, "0: a=closed b=closed c=closed w=closed");
}

static void after_close_nothing_is_given_out(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init_bounded(&sem, 3), 0);
    assert_int_equal(px_sem_close(&sem), 0);
    assert_int_equal(px_sem_down(&sem), PX_ECLOSED);
    assert_int_equal(px_sem_down_n(&sem, 2), PX_ECLOSED);
    assert_int_equal(px_sem_try_down(&sem), PX_ECLOSED);
    assert_int_equal(px_sem_try_down_n(&sem, 2), PX_ECLOSED);
    assert_int_equal(px_sem_wait_available(&sem), PX_ECLOSED);
    assert_int_equal(px_sem_count(&sem), 3);
    assert_int_equal(px_sem_limit(&sem), 3);
    assert_int_equal(px_sem_close(&sem), 0);
    assert_int_equal(px_sem_destroy(&sem), 0);
}

static void after_close_holders_still_give_back(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init_bounded(&sem, 3), 0);
    assert_int_equal(px_sem_try_down_n(&sem, 3), 0);
    assert_int_equal(px_sem_close(&sem), 0);
    assert_int_equal(px_sem_up(&sem), 0);
    assert_int_equal(px_sem_up_n(&sem, 2), 0);
    assert_int_equal(px_sem_count(&sem), 3);
    assert_int_equal(px_sem_up(&sem), PX_EOVERFLOW);
    assert_int_equal(px_sem_try_down(&sem), PX_ECLOSED);
    assert_int_equal(px_sem_init_bounded(&sem, 1), 0);
    assert_int_equal(px_sem_try_down(&sem), 0);
}

IN_RUN(close_works_on_an_unbounded_one_too)
{
    EXPECT_EQ(px_sem_init(&sem, 0), 0);
    take('a', &sem, 1);
    EXPECT_EQ(px_sem_close(&sem), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "1: a=closed");
    EXPECT_CODE(px_sem_down(&sem), PX_ECLOSED);
}

IN_RUN(a_grant_stands_when_the_semaphore_is_closed_before_it_runs)
{
    fresh_and_taken(1);
    take('a', &sem, 1);
    take('b', &sem, 1);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_close(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=closed");
}

IN_RUN(a_closed_wait_stands_when_it_is_then_cancelled)
{
    struct job *a;

    fresh_and_taken(1);
    a = take('a', &sem, 1);
    EXPECT_EQ(px_sem_close(&sem), 0);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=closed");
    EXPECT_CODE(a->next, PX_ECANCELED);
}

IN_RUN(a_fired_scope_comes_before_being_closed)
{
    px_scope scope;

    fresh(1);
    EXPECT_EQ(px_sem_close(&sem), 0);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_CODE(px_sem_down(&sem), PX_ETIMEDOUT);
    EXPECT_CODE(px_sem_wait_available(&sem), PX_ETIMEDOUT);
    EXPECT_CODE(px_sem_try_down(&sem), PX_ECLOSED);
    EXPECT_CODE(px_sem_down_n(&sem, -1), PX_EINVAL);
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
}

IN_RUN(a_closed_down_does_not_park)
{
    fresh_and_taken(1);
    EXPECT_EQ(px_sem_close(&sem), 0);
    watch_others();
    EXPECT_CODE(px_sem_down(&sem), PX_ECLOSED);
    EXPECT_EQ(px_sem_down_n(&sem, 0), 0);
    EXPECT_EQ(px_sem_try_down_n(&sem, 0), 0);
    EXPECT(nobody_ran_since());
}

IN_RUN(a_removed_waiter_is_not_told_of_the_close)
{
    struct job *a;

    fresh_and_taken(1);
    a = take('a', &sem, 1);
    EXPECT_EQ(px_sem_remove_waiter(&sem, a->id), 1);
    EXPECT_EQ(px_sem_close(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=-");
    EXPECT_EQ(px_cancel(a->fiber), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=canceled");
}

/* Go's marusama: limits that move under load. */

static bool loading;

static int load(void *arg)
{
    int turns = times(200, 20);
    int64_t n = 1 + (int64_t)(intptr_t)arg % 3;

    for (int i = 0; i < turns; i++) {
        EXPECT_EQ(px_sem_down_n(&sem, n), 0);
        inside += (int)n;
        EXPECT_EQ(px_yield(), 0);
        EXPECT(inside <= 200);
        inside -= (int)n;
        EXPECT_EQ(px_sem_up_n(&sem, n), 0);
    }
    return 0;
}

static int move_the_limit(void *arg)
{
    uint32_t seed = 1;

    (void)arg;
    while (loading) {
        seed = seed * 1664525u + 1013904223u;
        EXPECT_EQ(px_sem_set_limit(&sem, (int64_t)(seed >> 16) % 200 + 1), 0);
        if (px_yield() != 0)
            break;
    }
    return 0;
}

IN_RUN(S_go_51_random_limits_under_load_end_as_they_should)
{
    px_fiber *fibers[100], *mover;
    int value;

    fresh(10);
    inside = 0;
    loading = true;
    mover = start_handle(move_the_limit, NULL);
    for (int i = 0; i < 100; i++)
        fibers[i] = start_handle(load, (void *)(intptr_t)i);
    EXPECT_EQ(px_await_all(fibers, 100, NULL), 0);
    loading = false;
    EXPECT_EQ(px_await(mover, &value), 0);
    EXPECT_EQ(inside, 0);
    EXPECT_EQ(px_sem_count(&sem), px_sem_limit(&sem));
    EXPECT_EQ(px_sem_set_limit(&sem, 10), 0);
    EXPECT_SEM(&sem, "10:");
}

static int try_often(void *arg)
{
    int turns = times(10000, 200);

    (void)arg;
    for (int i = 0; i < turns; i++) {
        if (px_sem_try_down(&sem) != 0) {
            EXPECT_EQ(px_yield(), 0);
            continue;
        }
        inside++;
        EXPECT(inside <= 3);
        if (i % 3 == 0)
            EXPECT_EQ(px_yield(), 0);
        inside--;
        EXPECT_EQ(px_sem_up(&sem), 0);
    }
    return 0;
}

IN_RUN(S_go_51_ten_fibers_that_try_ten_thousand_times_lose_nothing)
{
    px_fiber *fibers[10];

    fresh(3);
    inside = 0;
    for (int i = 0; i < 10; i++)
        fibers[i] = start_handle(try_often, NULL);
    EXPECT_EQ(px_await_all(fibers, 10, NULL), 0);
    EXPECT_SEM(&sem, "3:");
}

static const struct CMUnitTest semaphore_bounded_tests[] = {
    PX_TEST(S_go_40_a_bounded_one_starts_with_all_permits_free),
    PX_TEST(S_php_9_permits_below_1_are_raised_to_1),
    PX_TEST(the_largest_limit_works),
    PX_TEST(S_php_7_five_tasks_over_2_permits_peak_2_free_2),
    PX_TEST(S_php_10_while_somebody_waits_nothing_is_free),
    PX_TEST(S_php_12_a_cancelled_acquire_takes_no_permit),
    PX_TEST(S_php_14_a_release_with_every_permit_free_is_refused),
    PX_TEST(S_go_14_44_an_up_above_the_limit_is_refused_as_a_whole),
    PX_TEST(S_go_25_a_release_on_a_fresh_one_is_refused),
    PX_TEST(an_adjust_above_the_limit_is_refused),
    PX_TEST(an_adjust_past_the_smallest_count_is_refused),
    PX_TEST(the_limit_counts_before_any_waiter_is_served),
    PX_TEST(S_go_8_a_cancelled_acquire_leaves_the_semaphore_unchanged),
    PX_TEST(S_go_9_try_takes_all_n_or_none),
    PX_TEST(S_go_10_a_worker_pool_of_4_fills_1_to_16_in_four_rounds),
    PX_TEST(S_go_12_a_request_above_the_limit_waits_until_its_scope_fires),
    PX_TEST(S_go_13_a_cancelled_front_waiter_lets_those_behind_it_go),
    PX_TEST(S_go_15_a_release_of_100_wakes_nobody_behind_a_request_for_101),
    PX_TEST(S_go_21_a_done_scope_fails_with_permits_free),
    PX_TEST(S_go_22_a_grant_stands_when_its_scope_fires_before_it_runs),
    PX_TEST(S_go_23_nobody_barges_in_while_somebody_waits),
    PX_TEST(S_go_24_tries_read_true_false_true_false),
    PX_TEST(S_go_24_the_same_with_acquires_of_10_ms),
    PX_TEST(S_go_26_a_pending_request_above_the_limit_does_not_block_others),
    PX_TEST(S_go_27_a_large_request_is_not_starved_by_a_stream_of_ones),
    PX_TEST(S_go_28_cancelling_the_big_one_lets_the_small_one_go),
    PX_TEST(S_go_29_after_a_cancelled_acquire_everything_can_be_taken),
    PX_TEST(S_go_17_30_zero_is_a_no_op_and_below_zero_is_invalid),
    PX_TEST(S_go_31_collatz_steps_of_1_to_32_by_three_workers),
    PX_TEST(set_limit_moves_the_count_with_it),
    PX_TEST(S_go_50_a_limit_below_zero_is_invalid),
    PX_TEST(an_unbounded_one_has_no_limit_to_set),
    PX_TEST(set_limit_past_either_end_is_refused),
    PX_TEST(S_go_47_raising_the_limit_lets_a_waiter_in),
    PX_TEST(S_go_48_holders_keep_what_they_hold_when_it_shrinks),
    PX_TEST(S_go_49_a_request_for_3_of_2_is_let_in_by_a_limit_of_3),
    PX_TEST(S_go_50_a_limit_of_0_pauses_the_pool),
    PX_TEST(shrinking_revokes_nothing_and_newcomers_wait),
    PX_TEST(set_limit_never_parks),
    PX_TEST(a_passed_over_request_holds_back_nobody),
    PX_TEST(a_passed_over_request_is_back_in_its_own_place),
    PX_TEST(a_request_is_passed_over_when_the_limit_shrinks_under_it),
    PX_TEST(places_survive_any_number_of_moves),
    PX_TEST(a_request_that_joins_the_passed_over_keeps_its_place_among_them),
    PX_TEST(a_newcomer_goes_behind_a_request_that_came_back),
    PX_TEST(wait_available_keeps_its_place_through_a_limit_of_0),
    PX_TEST(wait_available_behind_a_request_that_came_back_waits_its_turn),
    PX_TEST(a_passed_over_waiter_can_be_cancelled_timed_out_and_removed),
    PX_TEST(waiter_ids_cut_by_cap_keep_the_order_of_arrival),
    PX_TEST(destroy_with_a_passed_over_waiter_is_busy),
    PX_TEST(a_passed_over_request_alone_stalls),
    PX_TEST(on_an_unbounded_one_nothing_is_passed_over),
    PX_TEST(close_sends_every_waiter_away_at_that_moment),
    PX_TEST(after_close_nothing_is_given_out),
    PX_TEST(after_close_holders_still_give_back),
    PX_TEST(close_works_on_an_unbounded_one_too),
    PX_TEST(a_grant_stands_when_the_semaphore_is_closed_before_it_runs),
    PX_TEST(a_closed_wait_stands_when_it_is_then_cancelled),
    PX_TEST(a_fired_scope_comes_before_being_closed),
    PX_TEST(a_closed_down_does_not_park),
    PX_TEST(a_removed_waiter_is_not_told_of_the_close),
    PX_TEST(S_go_51_random_limits_under_load_end_as_they_should),
    PX_TEST(S_go_51_ten_fibers_that_try_ten_thousand_times_lose_nothing),
};

PX_TEST_MAIN(semaphore_bounded_tests)
