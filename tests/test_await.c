/* SPDX-License-Identifier: MIT */
/* test_await.c - waiting for the end of a fiber, or of many. */
#include <limits.h>

#include "support/px_scale.h"
#include "support/px_test.h"

static int deadlocks;

static void count_deadlock(void *ctx)
{
    (void)ctx;
    deadlocks++;
}

/* Run by the virtual clock; a deadlock is expected, and prints nothing. */
static void run_into_deadlock(px_fn fn, void *arg)
{
    px_run_options options;

    memset(&options, 0, sizeof(options));
    options.on_deadlock = count_deadlock;
    deadlocks = 0;
    assert_int_equal(run_fibers_with(options, 0, fn, arg), PX_ESTALLED);
    assert_int_equal(deadlocks, 1);
}

static int give(void *arg)
{
    return *(int *)arg;
}

static int sleep_ms(void *arg)
{
    int ms = (int)(intptr_t)arg;
    int error = px_sleep(ms * PX_MSEC);

    return error ? error : ms;
}

static px_fiber *sleeper(int ms)
{
    return start_handle(sleep_ms, (void *)(intptr_t)ms);
}

static int down(void *arg)
{
    return px_sem_down(arg);
}

/* --- One ------------------------------------------------------------------ */

static int await_values(void *arg)
{
    static int values[] = {0, 1, -1, INT_MAX, INT_MIN, PX_ECANCELED};

    (void)arg;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        px_fiber *fiber = start_handle(give, &values[i]);
        int value = 77;

        EXPECT(px_is_done(fiber));
        EXPECT_EQ(px_await(fiber, &value), 0);
        EXPECT_EQ(value, values[i]);
    }
    return 0;
}

static void await_gives_the_bodys_value(void **state)
{
    (void)state;
    run_fibers(await_values, NULL);
    assert_log("");
}

static int await_sleeper(void *arg)
{
    px_fiber *fiber = sleeper(30);
    int value = 0;

    (void)arg;
    EXPECT(!px_is_done(fiber));
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, 30);
    EXPECT_EQ(px_now(), 30 * PX_MSEC);
    EXPECT_EQ(px_await(sleeper(5), NULL), 0);
    EXPECT_EQ(px_now(), 35 * PX_MSEC);
    return 0;
}

static void await_waits_for_the_end_and_needs_no_result(void **state)
{
    (void)state;
    run_fibers(await_sleeper, NULL);
    assert_log("");
}

static int mark(void *arg)
{
    *(int *)arg = 1;
    return 0;
}

static int await_ended(void *arg)
{
    px_spawn_options queued;
    int other_ran = 0;
    int value = 9;
    px_fiber *fiber = start_handle(give, &value);

    (void)arg;
    memset(&queued, 0, sizeof(queued));
    queued.queued = true;
    EXPECT_EQ(px_spawn_with(NULL, &queued, mark, &other_ran), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(other_ran, 0);
    return px_sleep(1);
}

static void awaiting_a_fiber_that_has_ended_does_not_switch(void **state)
{
    (void)state;
    run_fibers(await_ended, NULL);
    assert_log("");
}

static int await_myself(void *arg)
{
    px_fiber **handle = arg;

    EXPECT_EQ(px_await(px_self(), NULL), PX_EDEADLK);
    EXPECT_EQ(px_cancel_and_await(px_self(), NULL), PX_EDEADLK);
    if (handle && *handle)
        EXPECT_EQ(px_await(*handle, NULL), PX_EDEADLK);
    EXPECT_EQ(px_check(), 0); /* and nothing was cancelled */
    return 0;
}

static int await_self_everywhere(void *arg)
{
    px_fiber *handle = NULL;
    px_group group;

    EXPECT_EQ(await_myself(arg), 0);
    EXPECT_EQ(px_spawn(&handle, await_myself, &handle), 0);
    EXPECT_EQ(px_await(handle, NULL), 0);
    start(await_myself, NULL);
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, await_myself, NULL), 0);
    EXPECT_EQ(px_group_wait(&group), 0);
    return 0;
}

static void awaiting_oneself_is_a_deadlock_at_once(void **state)
{
    (void)state;
    run_fibers(await_self_everywhere, NULL);
    assert_log("");
}

static px_fiber *self_of_child;

static int publish_self(void *arg)
{
    int error;

    (void)arg;
    self_of_child = px_self();
    error = px_sleep(PX_SEC);
    EXPECT_EQ(error, 0); /* nobody has cancelled this one */
    return error;
}

static void expect_not_awaitable(px_fiber *fiber)
{
    int value = 55;
    px_fiber *both[1] = {fiber};

    EXPECT(!px_is_done(fiber));
    EXPECT_EQ(px_await(fiber, &value), PX_EINVAL);
    EXPECT_EQ(px_await_all(both, 1, &value), PX_EINVAL);
    EXPECT_EQ(px_detach(fiber), PX_EINVAL);
    EXPECT_EQ(px_cancel_and_await(fiber, &value), PX_EINVAL);
    EXPECT_EQ(value, 55);
}

static int await_main(void *arg)
{
    expect_not_awaitable(arg);
    return 0;
}

static int await_what_cannot_be(void *arg)
{
    px_fiber *fiber;
    px_group group;

    (void)arg;
    start(publish_self, NULL); /* detached from the start */
    expect_not_awaitable(self_of_child);
    fiber = start_handle(publish_self, NULL);
    EXPECT_EQ(px_detach(fiber), 0);
    expect_not_awaitable(fiber);
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, publish_self, NULL), 0);
    expect_not_awaitable(self_of_child);
    EXPECT_EQ(px_group_wait(&group), 0);
    start(await_main, px_self());
    EXPECT_EQ(px_check(), 0);
    return 0;
}

static void detached_grouped_and_main_fibers_are_not_awaited(void **state)
{
    (void)state;
    run_fibers(await_what_cannot_be, NULL);
    assert_log("");
}

static int await_it(void *arg)
{
    int value = 0;

    note("%s ", err(px_await(arg, &value)));
    note("%d ", value);
    return 0;
}

static int await_twice(void *arg)
{
    px_fiber *fiber = sleeper(10);
    px_fiber *one[1] = {fiber};

    (void)arg;
    start(await_it, fiber);
    EXPECT_EQ(px_await(fiber, NULL), PX_EBUSY);
    EXPECT_EQ(px_await_all(one, 1, NULL), PX_EBUSY);
    EXPECT_EQ(px_detach(fiber), PX_EBUSY);
    EXPECT_EQ(px_cancel_and_await(fiber, NULL), PX_EBUSY);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    return 0;
}

static void a_second_waiter_is_turned_away(void **state)
{
    (void)state;
    run_fibers(await_twice, NULL);
    assert_log("ok 10 "); /* and nothing was cancelled */
}

static int await_within(void *arg)
{
    px_fiber *fiber = sleeper(100);
    int value = 5;
    px_scope scope;

    (void)arg;
    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_await(fiber, &value), PX_ETIMEDOUT);
    EXPECT_EQ(px_await(fiber, &value), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(value, 5);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT(!px_is_done(fiber));
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, 100);
    EXPECT_EQ(px_now(), 100 * PX_MSEC);
    return 0;
}

static void R95_the_handle_survives_an_interrupted_await(void **state)
{
    (void)state;
    run_fibers(await_within, NULL);
    assert_log("");
}

static int await_ended_in_fired_scope(void *arg)
{
    int value = 4;
    px_fiber *fiber = start_handle(give, &value);
    px_scope scope;

    (void)arg;
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_EQ(px_await(fiber, &value), PX_ETIMEDOUT);
    EXPECT_EQ(px_await_all(&fiber, 1, &value), PX_ETIMEDOUT);
    EXPECT_EQ(px_await(NULL, &value), PX_EINVAL); /* an argument comes first */
    EXPECT_EQ(px_await_all(NULL, 1, &value), PX_EINVAL);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, 4);
    return 0;
}

static void a_fired_scope_fails_an_await_that_need_not_wait(void **state)
{
    (void)state;
    run_fibers(await_ended_in_fired_scope, NULL);
    assert_log("");
}

static int cancel_the_awaiter(void *arg)
{
    px_fiber *target = sleeper(100);
    px_fiber *awaiter = start_handle(await_it, target);

    (void)arg;
    EXPECT_EQ(px_cancel(awaiter), 0);
    EXPECT_EQ(px_detach(target), 0); /* at this moment nobody awaits it */
    EXPECT_EQ(px_await(awaiter, NULL), 0);
    return 0;
}

static void R95_a_cancelled_awaiter_is_forgotten_at_that_moment(void **state)
{
    (void)state;
    run_fibers(cancel_the_awaiter, NULL);
    assert_log("canceled 0 ");
}

struct closing_door {
    px_sem gate;
    bool passed;
};

static int pass(void *arg)
{
    struct closing_door *door = arg;
    int err = px_sem_down(&door->gate);

    door->passed = true;
    return err;
}

static int end_while_awaiter_is_cancelled(void *arg)
{
    struct closing_door door = {.gate = PX_SEM_INIT(0)};
    px_fiber *target = start_handle(pass, &door);
    px_fiber *awaiter = start_handle(await_it, target);

    (void)arg;
    EXPECT_EQ(px_sem_up(&door.gate), 0);
    while (!door.passed) /* the handle is the awaiter's to use */
        EXPECT_EQ(px_yield(), 0);
    /* the target's end has woken the awaiter: that stands */
    EXPECT_EQ(px_cancel(awaiter), 0);
    EXPECT_EQ(px_await(awaiter, NULL), 0);
    return 0;
}

static void an_await_that_was_granted_stands(void **state)
{
    (void)state;
    run_fibers(end_while_awaiter_is_cancelled, NULL);
    assert_log("ok 0 ");
}

static int await_for_ever(void *arg)
{
    px_sem gate = PX_SEM_INIT(0);
    px_fiber *target = start_handle(down, &gate);
    int value = 0;

    (void)arg;
    EXPECT_EQ(px_await(target, &value), PX_ESTALLED);
    EXPECT_EQ(px_await(target, &value), 0); /* it was interrupted as well */
    EXPECT_EQ(value, PX_ESTALLED);
    return 0;
}

static void a_stalled_await_keeps_its_handle(void **state)
{
    (void)state;
    run_into_deadlock(await_for_ever, NULL);
    assert_log("");
}

static int await_each_other_b(void *arg)
{
    note("b:%s ", err(px_await(*(px_fiber **)arg, NULL)));
    return 0;
}

static px_fiber *fiber_a;
static px_fiber *fiber_b;

static int await_each_other_a(void *arg)
{
    (void)arg;
    settle();
    note("a:%s ", err(px_await(fiber_b, NULL)));
    return 0;
}

static int await_in_a_circle(void *arg)
{
    (void)arg;
    fiber_a = start_handle(await_each_other_a, NULL);
    fiber_b = start_handle(await_each_other_b, &fiber_a);
    EXPECT_EQ(px_sleep(10), 0);
    return 0;
}

static void awaiting_in_a_circle_stalls_and_goes_on(void **state)
{
    (void)state;
    /* a is interrupted first, and ends; b's await, interrupted in the same
     * round, has had its code by then */
    run_into_deadlock(await_in_a_circle, NULL);
    assert_non_null(strstr(log_text(), "a:stalled "));
    assert_non_null(strstr(log_text(), "b:stalled "));
}

/* --- Many ----------------------------------------------------------------- */

static int await_none(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_await_all(NULL, 0, NULL), 0);
    EXPECT_EQ(px_now(), 0);
    return 0;
}

static void awaiting_no_fibers_is_done_at_once(void **state)
{
    (void)state;
    run_fibers(await_none, NULL);
    assert_log("");
}

static int await_five(void *arg)
{
    px_fiber *all[5];
    int values[5] = {0};
    int ended = 3;

    (void)arg;
    all[0] = sleeper(30);
    all[1] = sleeper(10);
    all[2] = start_handle(give, &ended);
    all[3] = sleeper(20);
    all[4] = sleeper(5);
    EXPECT_EQ(px_await_all(all, 5, values), 0);
    EXPECT_EQ(px_now(), 30 * PX_MSEC);
    for (int i = 0; i < 5; i++)
        note("%d ", values[i]);
    return 0;
}

static void S_php_8_await_all_gives_values_in_the_arrays_order(void **state)
{
    (void)state;
    run_fibers(await_five, NULL);
    assert_log("30 10 3 20 5 ");
}

static int await_without_results(void *arg)
{
    px_fiber *all[3] = {sleeper(1), sleeper(3), sleeper(2)};

    (void)arg;
    EXPECT_EQ(px_await_all(all, 3, NULL), 0);
    EXPECT_EQ(px_now(), 3 * PX_MSEC);
    EXPECT_EQ(px_await_all(all, 0, NULL), 0);
    return 0;
}

static void await_all_needs_no_results(void **state)
{
    (void)state;
    run_fibers(await_without_results, NULL);
    assert_log("");
}

static int await_ended_ones(void *arg)
{
    px_spawn_options queued;
    px_fiber *all[3];
    static int values[3] = {1, -2, 3};
    int results[3] = {0};
    int other_ran = 0;

    (void)arg;
    memset(&queued, 0, sizeof(queued));
    queued.queued = true;
    for (int i = 0; i < 3; i++)
        all[i] = start_handle(give, &values[i]);
    EXPECT_EQ(px_spawn_with(NULL, &queued, mark, &other_ran), 0);
    EXPECT_EQ(px_await_all(all, 3, results), 0);
    EXPECT_EQ(other_ran, 0);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(results[i], values[i]);
    return px_sleep(1);
}

static void await_all_of_ended_fibers_does_not_switch(void **state)
{
    (void)state;
    run_fibers(await_ended_ones, NULL);
    assert_log("");
}

/* None of the five is consumed, and results are untouched. */
static void expect_refused(px_fiber **all, int expected)
{
    int values[5] = {7, 7, 7, 7, 7};

    EXPECT_EQ(px_await_all(all, 5, values), expected);
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(values[i], 7);
}

static int refuse_to_await(void *arg)
{
    px_fiber *all[5];
    px_fiber *good[5];
    int ended = 10;

    (void)arg;
    for (int i = 0; i < 5; i++)
        good[i] = i == 1 ? start_handle(give, &ended) : sleeper(10);
    for (int i = 0; i < 5; i++) {
        memcpy(all, good, sizeof(all));
        all[i] = NULL;
        expect_refused(all, PX_EINVAL);
        all[i] = px_self();
        expect_refused(all, PX_EDEADLK);
        memcpy(all, good, sizeof(all));
        all[i] = good[(i + 1) % 5];
        expect_refused(all, PX_EINVAL);
        all[i] = good[(i + 3) % 5];
        expect_refused(all, PX_EINVAL);
    }
    memcpy(all, good, sizeof(all));
    start(publish_self, NULL);
    all[4] = self_of_child;
    expect_refused(all, PX_EINVAL);
    EXPECT_EQ(px_now(), 0);
    /* nothing of this has consumed, or kept hold of, any */
    for (int i = 0; i < 5; i++) {
        int value = 0;

        EXPECT_EQ(px_await(good[i], &value), 0);
        EXPECT_EQ(value, 10);
    }
    return 0;
}

static void await_all_refuses_as_a_whole(void **state)
{
    (void)state;
    run_fibers(refuse_to_await, NULL);
    assert_log("");
}

/* A bad argument comes before a handle that somebody else waits for, and before
 * a scope that has fired. */
static int refuse_one_in_use(void *arg)
{
    px_fiber *fiber = sleeper(10), *other = sleeper(20);
    px_fiber *bad[] = {NULL, fiber, px_self(), other, NULL};
    const int codes[] = {PX_EINVAL, PX_EINVAL, PX_EDEADLK, PX_EBUSY, PX_EINVAL};
    px_scope scope;

    (void)arg;
    start(publish_self, NULL);
    bad[4] = self_of_child; /* detached, and alive */
    start(await_it, fiber);
    for (int i = 0; i < 5; i++) {
        px_fiber *all[2] = {fiber, bad[i]};
        int fired = codes[i] == PX_EBUSY ? PX_ETIMEDOUT : codes[i];

        EXPECT_EQ(px_await_all(all, 2, NULL), codes[i]);
        EXPECT_EQ(px_scope_enter(&scope, 0), 0);
        EXPECT_EQ(px_await_all(all, 2, NULL), fired);
        EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    }
    EXPECT_EQ(px_await(other, NULL), 0);
    return 0;
}

static void await_all_sees_what_is_bad_behind_what_is_in_use(void **state)
{
    (void)state;
    run_fibers(refuse_one_in_use, NULL);
    assert_log("ok 10 ");
}

struct array {
    px_fiber **fibers;
    size_t n;
};

static int await_array(void *arg)
{
    const struct array *array = arg;
    int *values = calloc(array->n, sizeof(int));
    int error;

    error = px_await_all(array->fibers, array->n, values);
    note("%s:", err(error));
    for (size_t i = 0; i < array->n; i++)
        note(" %d", values[i]);
    note("; ");
    free(values);
    return error;
}

static int await_elsewhere(void *arg)
{
    px_fiber *all[3] = {sleeper(10), sleeper(20), sleeper(30)};
    struct array array = {all, 3};
    px_fiber *others[2] = {sleeper(10), all[2]};
    px_fiber *awaiter = start_handle(await_array, &array);

    (void)arg;
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(px_await(all[i], NULL), PX_EBUSY);
        EXPECT_EQ(px_detach(all[i]), PX_EBUSY);
        EXPECT_EQ(px_cancel_and_await(all[i], NULL), PX_EBUSY);
    }
    EXPECT_EQ(px_await_all(others, 2, NULL), PX_EBUSY);
    /* 15 ms: the first has ended, and is still spoken for */
    EXPECT_EQ(px_sleep(15 * PX_MSEC), 0);
    EXPECT(px_is_done(all[0]));
    EXPECT_EQ(px_await(all[0], NULL), PX_EBUSY);
    EXPECT_EQ(px_detach(all[0]), PX_EBUSY);
    EXPECT_EQ(px_await(awaiter, NULL), 0);
    EXPECT_EQ(px_await(others[0], NULL), 0);
    return 0;
}

static void what_is_awaited_together_is_not_awaited_elsewhere(void **state)
{
    (void)state;
    run_fibers(await_elsewhere, NULL);
    assert_log("ok: 10 20 30; ");
}

static int interrupt_await_all(void *arg)
{
    px_fiber *all[3] = {sleeper(10), sleeper(20), sleeper(30)};
    int values[3] = {7, 7, 7};
    px_scope scope;

    (void)arg;
    EXPECT_EQ(px_scope_enter(&scope, 15 * PX_MSEC), 0);
    EXPECT_EQ(px_await_all(all, 3, values), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 15 * PX_MSEC);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(values[i], 7);
    EXPECT_EQ(px_await(all[1], &values[1]), 0);
    EXPECT_EQ(px_await(all[0], &values[0]), 0);
    EXPECT_EQ(px_detach(all[2]), 0);
    note("%d %d", values[0], values[1]);
    return 0;
}

static void an_interrupted_await_all_consumes_none(void **state)
{
    (void)state;
    run_fibers(interrupt_await_all, NULL);
    assert_log("10 20");
}

static int cancel_await_all(void *arg)
{
    px_fiber *all[3] = {sleeper(10), sleeper(20), sleeper(30)};
    struct array array = {all, 3};
    px_fiber *awaiter = start_handle(await_array, &array);
    int value = 0;

    (void)arg;
    EXPECT_EQ(px_sleep(15 * PX_MSEC), 0);
    EXPECT_EQ(px_cancel(awaiter), 0);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(px_await(all[i], &value), 0); /* free at that moment */
        EXPECT_EQ(value, 10 * (i + 1));
    }
    EXPECT_EQ(px_await(awaiter, &value), 0);
    EXPECT_EQ(value, PX_ECANCELED);
    return 0;
}

static void a_cancelled_await_all_lets_go_at_that_moment(void **state)
{
    (void)state;
    run_fibers(cancel_await_all, NULL);
    assert_log("canceled: 0 0 0; ");
}

struct gated {
    px_sem gate;
    px_fiber *target;
    int turns;
};

static int await_gated(void *arg)
{
    struct gated *gated = arg;
    int error = px_await_all(&gated->target, 1, NULL);

    for (int i = 0; i < 5; i++) {
        EXPECT_EQ(px_yield(), PX_ECANCELED);
        gated->turns++;
    }
    return error;
}

/* The target is ready, and ends after the awaiter was cancelled, before that
 * one has run. */
static int end_after_cancel(void *arg)
{
    struct gated *gated = arg;
    px_fiber *awaiter;
    int value = 0;

    gated->target = start_handle(down, &gated->gate);
    awaiter = start_handle(await_gated, gated);
    EXPECT_EQ(px_sem_up(&gated->gate), 0);
    EXPECT_EQ(px_cancel(awaiter), 0);
    EXPECT_EQ(px_await(awaiter, &value), 0);
    EXPECT_EQ(value, PX_ECANCELED);
    EXPECT_EQ(px_await(gated->target, &value), 0);
    EXPECT_EQ(value, 0);
    return 0;
}

static void R17_an_interrupted_await_all_is_not_woken_again(void **state)
{
    struct gated gated = {.gate = PX_SEM_INIT(0)};

    (void)state;
    run_fibers(end_after_cancel, &gated);
    assert_int_equal(gated.turns, 5);
    assert_log("");
}

static int await_all_until(void *arg)
{
    px_fiber *all[3] = {sleeper(5), sleeper(10), sleeper(10)};
    px_scope scope;
    int error;

    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC + *(px_nsec *)arg), 0);
    error = px_await_all(all, 3, NULL);
    EXPECT_EQ(px_sleep(1), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 10 * PX_MSEC + *(px_nsec *)arg);
    if (error == 0)
        return 0;
    EXPECT_EQ(error, PX_ETIMEDOUT);
    EXPECT_EQ(px_await_all(all, 3, NULL), 0);
    return 0;
}

static void a_deadline_and_the_last_end_at_once_give_one_outcome(void **state)
{
    px_nsec at_once = 0;
    px_nsec before = -1;

    (void)state;
    run_fibers(await_all_until, &at_once);
    run_fibers(await_all_until, &before);
    assert_log("");
}

/* A deadline that passes while the fiber is busy is noticed on the way into the
 * wait, and lets the others run: of those one that is awaited ends. */
static int await_all_too_late(void *arg)
{
    px_sem *sems = arg;
    px_fiber *target = start_handle(down, &sems[0]);
    px_scope scope;
    px_nsec until;
    int turns_taken = 0;

    EXPECT_EQ(px_sem_down(&sems[1]), 0); /* parks, and is granted */
    EXPECT_EQ(px_scope_enter(&scope, PX_MSEC), 0);
    until = px_now() + 2 * PX_MSEC;
    EXPECT_EQ(px_sem_up(&sems[0]), 0); /* the target is ready to end */
    while (px_now() < until)
        continue;
    EXPECT_EQ(px_await_all(&target, 1, NULL), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    for (int i = 0; i < 10; i++) {
        EXPECT_EQ(px_yield(), 0);
        turns_taken++;
    }
    EXPECT_EQ(turns_taken, 10);
    EXPECT_EQ(px_await_all(&target, 1, NULL), 0);
    return 0;
}

static int up_and_yield(void *arg)
{
    px_sem *sems = arg;
    px_fiber *late = start_handle(await_all_too_late, sems);

    EXPECT_EQ(px_sem_up(&sems[1]), 0);
    while (!px_is_done(late))
        EXPECT_EQ(px_yield(), 0);
    return px_await(late, NULL);
}

static void R17_a_deadline_noticed_on_the_way_in_claims_nobody(void **state)
{
    px_run_options options;

    (void)state;
    memset(&options, 0, sizeof(options));
    for (int i = 0; i < 5; i++) {
        px_sem sems[2] = {PX_SEM_INIT(0), PX_SEM_INIT(0)};

        assert_int_equal(run_fibers_with(options, 1, up_and_yield, sems), 0);
    }
    assert_log("");
}

static px_fiber *ended_one;
static px_fiber *parked_one;

static void await_off_fiber(void *ctx)
{
    int value = 0;
    px_fiber *both[2] = {ended_one, parked_one};

    deadlocks++;
    EXPECT_EQ(px_await(parked_one, &value), PX_ENOFIBER);
    EXPECT_EQ(px_cancel_and_await(parked_one, &value), PX_ENOFIBER);
    EXPECT_EQ(px_await_all(both, 2, NULL), PX_ENOFIBER);
    EXPECT_EQ(value, 0);
    /* what need not wait works */
    EXPECT_EQ(px_await(ended_one, &value), 0);
    EXPECT_EQ(value, 12);
    EXPECT_EQ(px_detach(parked_one), 0);
    EXPECT_EQ(px_set_name(parked_one, "detached"), 0);
    EXPECT_EQ(px_cancel(parked_one), 0);
    EXPECT_EQ(px_sem_up(ctx), 0);
}

static int leave_to_callback(void *arg)
{
    px_sem *sems = arg;
    int value = 12;

    ended_one = start_handle(give, &value);
    parked_one = start_handle(down, &sems[1]);
    return px_sem_down(&sems[0]);
}

static void a_callback_may_use_handles_but_not_wait(void **state)
{
    px_sem sems[2] = {PX_SEM_INIT(0), PX_SEM_INIT(0)};
    px_run_options options;

    (void)state;
    memset(&options, 0, sizeof(options));
    options.on_deadlock = await_off_fiber;
    options.ctx = &sems[0];
    deadlocks = 0;
    assert_int_equal(run_fibers_with(options, 0, leave_to_callback, sems), 0);
    assert_int_equal(deadlocks, 1);
    assert_int_equal(px_sem_waiters(&sems[1]), 0);
    assert_log("");
}

static int stall_await_all(void *arg)
{
    px_sem gate = PX_SEM_INIT(0);
    px_fiber *all[3];
    int values[3] = {0};

    (void)arg;
    for (int i = 0; i < 3; i++)
        all[i] = start_handle(down, &gate);
    EXPECT_EQ(px_await_all(all, 3, values), PX_ESTALLED);
    EXPECT_EQ(px_await_all(all, 3, values), 0);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(values[i], PX_ESTALLED);
    return 0;
}

static void a_stalled_await_all_keeps_its_handles(void **state)
{
    (void)state;
    run_into_deadlock(stall_await_all, NULL);
    assert_log("");
}

static int await_a_thousand(void *arg)
{
    static px_fiber *all[1000];
    static int values[1000];
    int n = fibers(1000);

    (void)arg;
    for (int i = 0; i < n; i++)
        all[i] = sleeper((i * 7919) % n);
    EXPECT_EQ(px_await_all(all, (size_t)n, values), 0);
    EXPECT_EQ(px_now(), (n - 1) * PX_MSEC);
    for (int i = 0; i < n; i++)
        EXPECT_EQ(values[i], (i * 7919) % n);
    /* and twice the same among a thousand is found */
    for (int i = 0; i < n; i++)
        all[i] = sleeper(1);
    px_fiber *last = all[n - 1];
    all[n - 1] = all[n / 2];
    EXPECT_EQ(px_await_all(all, (size_t)n, NULL), PX_EINVAL);
    all[n - 1] = last;
    EXPECT_EQ(px_await_all(all, (size_t)n, NULL), 0);
    return 0;
}

static void a_thousand_are_awaited_together(void **state)
{
    (void)state;
    run_fibers(await_a_thousand, NULL);
    assert_log("");
}

static int await_all_in_turn(void *arg)
{
    px_fiber *all[2] = {sleeper(10), sleeper(20)};
    struct array array = {all, 2};
    px_fiber *first;
    px_fiber *second;

    (void)arg;
    first = start_handle(await_array, &array);
    EXPECT_EQ(px_cancel_and_await(first, NULL), 0);
    second = start_handle(await_array, &array);
    EXPECT_EQ(px_await(second, NULL), 0);
    return 0;
}

static void after_an_interrupted_await_all_another_may_come(void **state)
{
    (void)state;
    run_fibers(await_all_in_turn, NULL);
    assert_log("canceled: 0 0; ok: 10 20; ");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(await_gives_the_bodys_value),
    PX_TEST(await_waits_for_the_end_and_needs_no_result),
    PX_TEST(awaiting_a_fiber_that_has_ended_does_not_switch),
    PX_TEST(awaiting_oneself_is_a_deadlock_at_once),
    PX_TEST(detached_grouped_and_main_fibers_are_not_awaited),
    PX_TEST(a_second_waiter_is_turned_away),
    PX_TEST(R95_the_handle_survives_an_interrupted_await),
    PX_TEST(a_fired_scope_fails_an_await_that_need_not_wait),
    PX_TEST(R95_a_cancelled_awaiter_is_forgotten_at_that_moment),
    PX_TEST(an_await_that_was_granted_stands),
    PX_TEST(a_stalled_await_keeps_its_handle),
    PX_TEST(awaiting_in_a_circle_stalls_and_goes_on),
    PX_TEST(awaiting_no_fibers_is_done_at_once),
    PX_TEST(S_php_8_await_all_gives_values_in_the_arrays_order),
    PX_TEST(await_all_needs_no_results),
    PX_TEST(await_all_of_ended_fibers_does_not_switch),
    PX_TEST(await_all_refuses_as_a_whole),
    PX_TEST(await_all_sees_what_is_bad_behind_what_is_in_use),
    PX_TEST(what_is_awaited_together_is_not_awaited_elsewhere),
    PX_TEST(an_interrupted_await_all_consumes_none),
    PX_TEST(a_cancelled_await_all_lets_go_at_that_moment),
    PX_TEST(R17_an_interrupted_await_all_is_not_woken_again),
    PX_TEST(a_deadline_and_the_last_end_at_once_give_one_outcome),
    PX_TEST(R17_a_deadline_noticed_on_the_way_in_claims_nobody),
    PX_TEST(a_callback_may_use_handles_but_not_wait),
    PX_TEST(a_stalled_await_all_keeps_its_handles),
    PX_TEST(a_thousand_are_awaited_together),
    PX_TEST(after_an_interrupted_await_all_another_may_come),
};

PX_TEST_MAIN(tests)
