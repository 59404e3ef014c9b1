/* SPDX-License-Identifier: MIT */
/*
 * test_scheduler_order.c - the order of the run queue: first in, first out.
 *
 * These tests pin what a shuffled queue changes, so they are not run so.
 */
#include <unistd.h>

#include "support/px_test.h"

static px_spawn_options queued_options(void)
{
    px_spawn_options options;

    memset(&options, 0, sizeof(options));
    options.queued = true;
    return options;
}

static void start_queued(px_fn fn, void *arg)
{
    px_spawn_options options = queued_options();

    EXPECT_EQ(px_spawn_with(NULL, &options, fn, arg), 0);
}

static int three_turns(void *arg)
{
    for (int i = 1; i <= 3; i++) {
        note("%s%d ", (const char *)arg, i);
        EXPECT_EQ(px_yield(), 0);
    }
    return 0;
}

static int take_turns(void *arg)
{
    (void)arg;
    start(three_turns, "a");
    start(three_turns, "b");
    return three_turns("m");
}

static void S_run_5_fibers_that_yield_take_turns(void **state)
{
    (void)state;
    run_fibers(take_turns, NULL);
    assert_log("a1 b1 m1 a2 b2 m2 a3 b3 m3 ");
}

static int note_it(void *arg)
{
    note("%s ", (const char *)arg);
    return 0;
}

static int queue_some(void *arg)
{
    (void)arg;
    start_queued(note_it, "q1");
    start(three_turns, "e");
    start_queued(note_it, "q2");
    note("m ");
    EXPECT_EQ(px_yield(), 0);
    note("m ");
    return 0;
}

static void a_queued_fiber_starts_at_the_tail(void **state)
{
    (void)state;
    run_fibers(queue_some, NULL);
    assert_log("e1 m q1 e2 q2 m e3 ");
}

static int note_and_spawn(void *arg)
{
    note("%s ", (const char *)arg);
    start(note_it, "child");
    note("%s ", (const char *)arg);
    EXPECT_EQ(px_yield(), 0);
    note("%s ", (const char *)arg);
    return 0;
}

static int spawn_amid_others(void *arg)
{
    (void)arg;
    start_queued(note_and_spawn, "a");
    start_queued(note_and_spawn, "b");
    return px_yield();
}

static void an_eager_start_goes_ahead_of_everyone_queued(void **state)
{
    (void)state;
    run_fibers(spawn_amid_others, NULL);
    assert_log("a child a b child b a b ");
}

static int park_and_note(void *arg)
{
    EXPECT_EQ(px_sem_down(arg), 0);
    note("%lld ", (long long)px_current_id());
    return 0;
}

static int wake_five(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    for (int i = 0; i < 5; i++)
        start(park_and_note, &sem);
    start_queued(note_it, "queued");
    EXPECT_EQ(px_sem_up_n(&sem, 3), 0);
    start_queued(note_it, "later");
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    note("up ");
    return px_yield();
}

static void woken_fibers_go_to_the_tail_in_their_order(void **state)
{
    (void)state;
    run_fibers(wake_five, NULL);
    assert_log("up queued 1 2 3 later 4 5 ");
}

/* With two that stay busy: nothing but the run queue leads back here. */
static int sleep_nothing(void *arg)
{
    start(three_turns, "b");
    start(three_turns, "c");
    note("0 ");
    EXPECT_EQ(px_sleep(*(px_nsec *)arg), 0);
    note("1 ");
    return 0;
}

static int sleep_until_past(void *arg)
{
    start(three_turns, "b");
    start(three_turns, "c");
    note("0 ");
    EXPECT_EQ(px_sleep_until(*(px_nsec *)arg), 0);
    note("1 ");
    return 0;
}

static void R70_a_sleep_of_0_or_less_yields_once(void **state)
{
    static px_nsec naps[] = {0, -1, -PX_SEC, INT64_MIN};

    (void)state;
    for (size_t i = 0; i < sizeof(naps) / sizeof(naps[0]); i++) {
        log_clear();
        run_fibers(sleep_nothing, &naps[i]);
        assert_log("b1 c1 0 b2 c2 1 b3 c3 ");
        log_clear();
        run_fibers(sleep_until_past, &naps[i]);
        assert_log("b1 c1 0 b2 c2 1 b3 c3 ");
    }
}

static int sleep_and_note(void *arg)
{
    const int *self = arg;

    EXPECT_EQ(px_sleep_until(100 + self[1]), 0);
    note("%d@%lld ", self[0], (long long)px_now());
    return 0;
}

static int arm_equal_deadlines(void *arg)
{
    static int sleepers[][2] = {{5, 0}, {1, 0}, {9, 1}, {3, 0},
                                {7, 1}, {2, 0}, {8, 1}};

    (void)arg;
    for (size_t i = 0; i < sizeof(sleepers) / sizeof(sleepers[0]); i++)
        start(sleep_and_note, sleepers[i]);
    return 0;
}

static void equal_deadlines_fire_in_arming_order(void **state)
{
    (void)state;
    run_fibers(arm_equal_deadlines, NULL);
    assert_log("5@100 1@100 3@100 2@100 9@101 7@101 8@101 ");
}

static int woken[500];
static int n_woken;

static int sleep_and_record(void *arg)
{
    EXPECT_EQ(px_sleep_until(PX_SEC), 0);
    woken[n_woken++] = (int)(intptr_t)arg;
    return 0;
}

static int cancelled_sleeper(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sleep_until(PX_SEC), PX_ECANCELED);
    return 0;
}

static int arm_many_equal_deadlines(void *arg)
{
    px_fiber *others[500];

    (void)arg;
    for (int i = 0; i < 500; i++) {
        start(sleep_and_record, (void *)(intptr_t)i);
        others[i] = start_handle(cancelled_sleeper, NULL);
    }
    for (int i = 0; i < 500; i++)
        EXPECT_EQ(px_cancel(others[(i * 77) % 500]), 0);
    return 0;
}

static void
equal_deadlines_keep_their_order_when_others_are_disarmed(void **state)
{
    (void)state;
    n_woken = 0;
    run_fibers(arm_many_equal_deadlines, NULL);
    assert_int_equal(n_woken, 500);
    for (int i = 0; i < 500; i++)
        assert_int_equal(woken[i], i);
    assert_log("");
}

static int time_out_and_note(void *arg)
{
    px_scope scope;

    EXPECT_EQ(px_scope_enter_until(&scope, 100), 0);
    EXPECT_EQ(px_sem_down(arg), PX_ETIMEDOUT);
    note("%lld ", (long long)px_current_id());
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

static int time_out_together(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    for (int i = 0; i < 5; i++)
        start(time_out_and_note, &sem);
    return px_sleep(200);
}

static void equal_deadlines_of_scopes_fire_in_arming_order(void **state)
{
    (void)state;
    run_fibers(time_out_together, NULL);
    assert_log("1 2 3 4 5 ");
}

static int be_cancelled_and_note(void *arg)
{
    EXPECT_EQ(px_sleep(*(px_nsec *)arg), PX_ECANCELED);
    note("%lld ", (long long)px_current_id());
    return 0;
}

static int cancel_a_group(void *arg)
{
    static px_nsec naps[] = {50, 10, 40, 20, 30};
    px_group group;

    (void)arg;
    EXPECT_EQ(px_group_open(&group), 0);
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(px_group_spawn(&group, be_cancelled_and_note, &naps[i]), 0);
    EXPECT_EQ(px_group_cancel(&group), 0);
    return px_group_wait(&group);
}

static void a_scopes_fibers_are_interrupted_in_id_order(void **state)
{
    (void)state;
    run_fibers(cancel_a_group, NULL);
    assert_log("1 2 3 4 5 ");
}

static int stop_five(void *arg)
{
    static px_nsec naps[] = {50, 10, 40, 20, 30};

    (void)arg;
    for (int i = 0; i < 5; i++)
        start(be_cancelled_and_note, &naps[i]);
    return px_stop();
}

static void stop_interrupts_in_id_order(void **state)
{
    (void)state;
    run_fibers(stop_five, NULL);
    assert_log("1 2 3 4 5 ");
}

static int failures;

static int ignore_every_code(void *arg)
{
    int *others_ran = arg;
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    failures = 0;
    while (!*others_ran && failures < 1000) {
        EXPECT_EQ(px_sleep(1), PX_ETIMEDOUT);
        failures++;
    }
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

static int set(void *arg)
{
    *(int *)arg = 1;
    return 0;
}

static int start_ignorer(void *arg)
{
    int ran = 0;

    (void)arg;
    start_queued(set, &ran);
    EXPECT_EQ(ignore_every_code(&ran), 0);
    EXPECT(ran);
    return 0;
}

static void every_64th_failure_in_a_row_yields(void **state)
{
    (void)state;
    run_fibers(start_ignorer, NULL);
    assert_log("");
    assert_int_equal(failures, 64);
}

static int check_for_ever(void *arg)
{
    int ran = 0;
    px_scope scope;

    (void)arg;
    start_queued(set, &ran);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    for (int i = 0; i < 1000; i++)
        EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return px_sleep(1);
}

static void a_check_that_fails_never_yields(void **state)
{
    (void)state;
    run_fibers(check_for_ever, NULL);
    assert_log("");
}

static int fail_and_succeed(px_sem *sem)
{
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    for (int i = 0; i < 40; i++)
        EXPECT_EQ(px_sem_down(sem), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_sem_up(sem), 0);
    return px_sem_down(sem); /* needs no wait, and succeeds */
}

static int a_success_in_between(void *arg)
{
    int ran = 0;
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    start_queued(set, &ran);
    for (int i = 0; i < 20; i++) {
        EXPECT_EQ(fail_and_succeed(&sem), 0);
        EXPECT_EQ(ran, 0);
    }
    return px_sleep(1);
}

static int successes_that_never_wait(void *arg)
{
    int ran = 0;
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    start_queued(set, &ran);
    for (int i = 0; i < 1000 && !ran; i++)
        EXPECT_EQ(fail_and_succeed(&sem), 0);
    EXPECT_EQ(ran, 1);
    return px_sleep(1);
}

static void failures_do_not_go_on_for_ever_for_successes_between(void **state)
{
    (void)state;
    run_fibers(successes_that_never_wait, NULL);
    assert_log("");
}

static void failures_are_counted_in_a_row(void **state)
{
    (void)state;
    run_fibers(a_success_in_between, NULL);
    assert_log("");
}

static int hold_and_requeue(void *arg)
{
    px_mutex *lock = arg;

    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(px_mutex_lock(lock), 0);
        note("%lld", (long long)px_current_id());
        EXPECT_EQ(px_yield(), 0);
        EXPECT_EQ(px_mutex_unlock(lock), 0);
    }
    return 0;
}

static int contend(void *arg)
{
    px_mutex lock = PX_MUTEX_INIT;
    px_fiber *all[3];

    (void)arg;
    for (int i = 0; i < 3; i++)
        all[i] = start_handle(hold_and_requeue, &lock);
    EXPECT_EQ(px_await_all(all, 3, NULL), 0);
    return 0;
}

static void R64_the_old_owner_comes_after_those_who_wait(void **state)
{
    (void)state;
    run_fibers(contend, NULL);
    assert_log("123123123");
}

static int end_and_note(void *arg)
{
    (void)arg;
    settle();
    note("end%lld ", (long long)px_current_id());
    return 0;
}

static int await_and_note(void *arg)
{
    EXPECT_EQ(px_await(arg, NULL), 0);
    note("got%lld ", (long long)px_current_id());
    return 0;
}

static int end_two(void *arg)
{
    px_fiber *first = start_handle(end_and_note, NULL);
    px_fiber *second = start_handle(end_and_note, NULL);

    (void)arg;
    start(await_and_note, second);
    start(await_and_note, first);
    return 0;
}

static void an_ended_fibers_awaiter_goes_to_the_tail(void **state)
{
    (void)state;
    run_fibers(end_two, NULL);
    assert_log("end1 end2 got4 got3 ");
}

static int down(void *arg)
{
    return px_sem_down(arg);
}

static int await_handle(void *arg)
{
    int value = 1;

    EXPECT_EQ(px_await(arg, &value), 0);
    EXPECT_EQ(value, 0);
    note("consumed");
    return 0;
}

static int use_an_awaited_handle(void *arg)
{
    px_sem gate = PX_SEM_INIT(0);
    px_fiber *target = start_handle(down, &gate);
    px_fiber *awaiter = start_handle(await_handle, target);

    (void)arg;
    EXPECT_EQ(px_sem_up(&gate), 0);
    EXPECT_EQ(px_yield(), 0);
    /* it has ended, and whoever awaits it has not run yet */
    EXPECT(px_is_done(target));
    EXPECT_EQ(px_id(target), 1);
    EXPECT_EQ(px_cancel(target), 0);
    EXPECT_EQ(px_set_name(target, "ended"), 0);
    EXPECT(strcmp(px_name(target), "ended") == 0);
    EXPECT_EQ(px_await(target, NULL), PX_EBUSY);
    EXPECT_EQ(px_await_all(&target, 1, NULL), PX_EBUSY);
    EXPECT_EQ(px_cancel_and_await(target, NULL), PX_EBUSY);
    EXPECT_EQ(px_detach(target), PX_EBUSY);
    EXPECT(strcmp(log_text(), "") == 0);
    return px_await(awaiter, NULL);
}

static void R96_a_handle_is_good_until_its_await_has_returned(void **state)
{
    (void)state;
    run_fibers(use_an_awaited_handle, NULL);
    assert_log("consumed");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(S_run_5_fibers_that_yield_take_turns),
    PX_TEST(a_queued_fiber_starts_at_the_tail),
    PX_TEST(an_eager_start_goes_ahead_of_everyone_queued),
    PX_TEST(woken_fibers_go_to_the_tail_in_their_order),
    PX_TEST(R70_a_sleep_of_0_or_less_yields_once),
    PX_TEST(equal_deadlines_fire_in_arming_order),
    PX_TEST(equal_deadlines_keep_their_order_when_others_are_disarmed),
    PX_TEST(equal_deadlines_of_scopes_fire_in_arming_order),
    PX_TEST(a_scopes_fibers_are_interrupted_in_id_order),
    PX_TEST(stop_interrupts_in_id_order),
    PX_TEST(every_64th_failure_in_a_row_yields),
    PX_TEST(a_check_that_fails_never_yields),
    PX_TEST(failures_are_counted_in_a_row),
    PX_TEST(failures_do_not_go_on_for_ever_for_successes_between),
    PX_TEST(R64_the_old_owner_comes_after_those_who_wait),
    PX_TEST(an_ended_fibers_awaiter_goes_to_the_tail),
    PX_TEST(R96_a_handle_is_good_until_its_await_has_returned),
};

PX_TEST_MAIN(tests)
