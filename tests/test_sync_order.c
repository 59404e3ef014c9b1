/* SPDX-License-Identifier: MIT */
/*
 * test_sync_order.c - in which order those run whom a semaphore, a mutex or a
 * waitgroup has woken. This rests on the run queue being first in, first out,
 * so it is not run shuffled.
 */
#include "support/sync_jobs.h"

static px_sem sem;
static px_mutex mutex;
static px_waitgroup wg;

static int down_and_note(void *arg)
{
    int code = px_sem_down_n(&sem, 1);

    note("%s%s ", (const char *)arg, code == 0 ? "" : err(code));
    return code;
}

static int available_and_note(void *arg)
{
    int code = px_sem_wait_available(&sem);

    note("%s%s ", (const char *)arg, code == 0 ? "" : err(code));
    return code;
}

static int wait_and_note(void *arg)
{
    int code = px_waitgroup_wait(&wg);

    note("%s%s ", (const char *)arg, code == 0 ? "" : err(code));
    return code;
}

static char *letters[] = {"a", "b", "c", "d"};

static void start_four(px_fn fn)
{
    for (int i = 0; i < 4; i++)
        start(fn, letters[i]);
}

IN_RUN(S_sem_12_those_released_together_run_in_the_order_of_arrival)
{
    EXPECT_EQ(px_sem_init(&sem, 0), 0);
    start_four(down_and_note);
    EXPECT_EQ(px_sem_adjust(&sem, 3), 0);
    settle();
    EXPECT_LOG("a b c ");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_LOG("d ");
}

IN_RUN(those_woken_go_behind_whoever_was_ready_before)
{
    EXPECT_EQ(px_sem_init(&sem, 0), 0);
    start(down_and_note, letters[0]);
    watch_others();
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_yield(), 0);
    EXPECT(!nobody_ran_since());
    EXPECT_LOG("a ");
}

IN_RUN(a_wait_without_taking_runs_in_its_place)
{
    EXPECT_EQ(px_sem_init(&sem, 0), 0);
    start(down_and_note, letters[0]);
    start(available_and_note, letters[1]);
    start(down_and_note, letters[2]);
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    settle();
    EXPECT_LOG("a b c ");
}

IN_RUN(those_sent_away_by_a_close_run_in_the_order_of_arrival)
{
    EXPECT_EQ(px_sem_init_bounded(&sem, 1), 0);
    EXPECT_EQ(px_sem_down(&sem), 0);
    start_four(down_and_note);
    EXPECT_EQ(px_sem_close(&sem), 0);
    settle();
    EXPECT_LOG("aclosed bclosed cclosed dclosed ");
}

static int down_5_and_note(void *arg)
{
    int code = px_sem_down_n(&sem, 5);

    note("%s%s ", (const char *)arg, code == 0 ? "" : err(code));
    return code;
}

IN_RUN(a_close_sends_the_passed_over_away_in_their_place)
{
    EXPECT_EQ(px_sem_init_bounded(&sem, 1), 0);
    EXPECT_EQ(px_sem_down(&sem), 0);
    start(down_5_and_note, letters[0]);
    start(down_and_note, letters[1]);
    start(down_5_and_note, letters[2]);
    start(down_and_note, letters[3]);
    EXPECT_EQ(px_sem_close(&sem), 0);
    settle();
    EXPECT_LOG("aclosed bclosed cclosed dclosed ");
}

IN_RUN(S_wg_25_all_are_woken_at_once_in_the_order_of_arrival)
{
    EXPECT_EQ(px_waitgroup_init(&wg, 1), 0);
    start_four(wait_and_note);
    EXPECT_EQ(px_waitgroup_done(&wg), 0);
    EXPECT_LOG("");
    settle();
    EXPECT_LOG("a b c d ");
}

IN_RUN(below_zero_all_are_woken_in_the_order_of_arrival)
{
    EXPECT_EQ(px_waitgroup_init(&wg, 1), 0);
    start_four(wait_and_note);
    EXPECT_CODE(px_waitgroup_add(&wg, -2), PX_ENEGATIVE);
    settle();
    EXPECT_LOG("anegative bnegative cnegative dnegative ");
}

IN_RUN(an_interrupted_head_runs_before_those_it_held_back)
{
    px_fiber *head;

    EXPECT_EQ(px_sem_init(&sem, 1), 0);
    head = start_handle(down_5_and_note, letters[0]);
    start(down_and_note, letters[1]);
    EXPECT_EQ(px_cancel(head), 0);
    settle();
    EXPECT_LOG("acanceled b ");
}

static int lock_note_unlock(void *arg)
{
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(px_mutex_lock(&mutex), 0);
        note("%s", (const char *)arg);
        EXPECT_EQ(px_yield(), 0);
        EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    }
    return 0;
}

IN_RUN(four_that_yield_inside_the_lock_take_strict_turns)
{
    EXPECT_EQ(px_mutex_init(&mutex), 0);
    start_four(lock_note_unlock);
    settle();
    EXPECT_LOG("abcdabcdabcd");
}

IN_RUN(the_64th_failing_wait_in_a_row_goes_to_the_tail)
{
    px_scope scope;
    int failures[3] = {0, 0, 0};

    EXPECT_EQ(px_sem_init(&sem, 0), 0);
    EXPECT_EQ(px_mutex_init(&mutex), 0);
    EXPECT_EQ(px_waitgroup_init(&wg, 1), 0);
    for (int call = 0; call < 3; call++) {
        watch_others();
        EXPECT_EQ(px_scope_enter(&scope, 0), 0);
        while (nobody_ran_since() && failures[call] < 1000) {
            EXPECT_CODE(call == 0   ? px_sem_down(&sem)
                        : call == 1 ? px_mutex_lock(&mutex)
                                    : px_waitgroup_wait(&wg),
                        PX_ETIMEDOUT);
            failures[call]++;
        }
        EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
        EXPECT_EQ(failures[call], 64);
        /* A success ends the row. */
        EXPECT_EQ(px_check(), 0);
    }
}

static const struct CMUnitTest sync_order_tests[] = {
    PX_TEST(S_sem_12_those_released_together_run_in_the_order_of_arrival),
    PX_TEST(those_woken_go_behind_whoever_was_ready_before),
    PX_TEST(a_wait_without_taking_runs_in_its_place),
    PX_TEST(those_sent_away_by_a_close_run_in_the_order_of_arrival),
    PX_TEST(a_close_sends_the_passed_over_away_in_their_place),
    PX_TEST(S_wg_25_all_are_woken_at_once_in_the_order_of_arrival),
    PX_TEST(below_zero_all_are_woken_in_the_order_of_arrival),
    PX_TEST(an_interrupted_head_runs_before_those_it_held_back),
    PX_TEST(four_that_yield_inside_the_lock_take_strict_turns),
    PX_TEST(the_64th_failing_wait_in_a_row_goes_to_the_tail),
};

PX_TEST_MAIN(sync_order_tests)
