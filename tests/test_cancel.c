/* SPDX-License-Identifier: MIT */
/*
 * test_cancel.c - px_cancel, px_cancel_and_await, px_stop, px_check.
 *
 * What a cancellation does to each parking call: test_cancel_points.c.
 */
#include "fiber_test.h"

/* A fiber that parks and tells what became of it. */
struct worker {
    px_nsec length;   /* of its sleep */
    px_nsec clean_up; /* slept in a shield afterwards */
    int code;
    bool began, ended;
    px_nsec woke;
};

static int works(void *arg)
{
    struct worker *self = arg;

    self->began = true;
    self->code = px_sleep(self->length);
    self->woke = px_now();
    if (self->clean_up)
        EXPECT_EQ(px_with_shield(PX_FOREVER, sleeps, &self->clean_up), 0);
    self->ended = true;
    return self->code ? self->code : 11;
}

/* ---- px_cancel ---- */

FIBER_TEST(cancel_interrupts_a_parked_fiber)
{
    struct worker w = {.length = PX_SEC};
    px_fiber *fiber = start_handle(works, &w);
    int value = 0;

    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT(!w.ended); /* cancel switches to nobody */
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, PX_ECANCELED);
    EXPECT_EQ(w.woke, 10 * PX_MSEC);
    return 0;
}

static int ignores_everything(void *arg)
{
    const px_sem *sem = arg;

    for (int i = 0; i < 200; i++)
        note("%s", px_sleep(PX_SEC) == PX_ECANCELED ? "" : "?");
    EXPECT_EQ(px_sem_count(sem), 1);
    EXPECT_EQ(px_sem_down(arg), PX_ECANCELED);
    EXPECT_EQ(px_sem_count(sem), 1);
    return 6;
}

FIBER_TEST(a_cancelled_fiber_stays_cancelled)
{
    px_sem sem = PX_SEM_INIT(1);
    px_fiber *fiber = start_handle(ignores_everything, &sem);
    int value = 0;

    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, 6); /* its own value, not a code */
    EXPECT_EQ(px_now(), 0);
    EXPECT_LOG("");
    return 0;
}

FIBER_TEST(a_fiber_cancelled_before_it_began_still_runs_its_body)
{
    struct worker w = {.length = PX_SEC};
    px_spawn_options options = {.queued = true};
    px_fiber *fiber;
    int value = 0;

    EXPECT_EQ(px_spawn_with(&fiber, &options, works, &w), 0);
    EXPECT(!w.began);
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT(w.began);
    EXPECT_EQ(value, PX_ECANCELED);
    EXPECT_EQ(px_now(), 0);
    return 0;
}

static int ignores_its_cancellation(void *arg UNUSED)
{
    return 13;
}

FIBER_TEST(a_body_without_a_cancellation_point_is_not_touched)
{
    px_spawn_options options = {.queued = true};
    px_fiber *fiber;
    int value = 0;

    EXPECT_EQ(px_spawn_with(&fiber, &options, ignores_its_cancellation, NULL),
              0);
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, 13);
    return 0;
}

FIBER_TEST(cancelling_a_fiber_that_has_ended_does_nothing)
{
    struct worker w = {.length = PX_MSEC};
    px_fiber *fiber = start_handle(works, &w), *other;
    int value = 0;

    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT(px_is_done(fiber));
    other = start_handle(works, &w); /* in its place, as it may be */
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_await(other, &value), 0);
    EXPECT_EQ(value, 11);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, 11);
    return 0;
}

FIBER_TEST(cancelling_null_is_refused)
{
    int value = 0;

    EXPECT_EQ(px_cancel(NULL), PX_EINVAL);
    EXPECT_EQ(px_cancel_and_await(NULL, &value), PX_EINVAL);
    EXPECT_EQ(px_check(), 0);
    return 0;
}

static int cancels_itself(void *arg UNUSED)
{
    EXPECT_EQ(px_cancel(px_self()), 0);
    note("on "); /* cancel is no cancellation point */
    note("%s ", err(px_yield()));
    note("%s ", err(px_check()));
    return 0;
}

FIBER_TEST(a_fiber_may_cancel_itself)
{
    EXPECT_EQ(px_await(start_handle(cancels_itself, NULL), NULL), 0);
    EXPECT_LOG("on canceled canceled ");
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(cancels_itself(NULL), 0); /* the main fiber too */
    EXPECT_LOG("on canceled canceled ");
    return 0;
}

static int keeps_its_handle(void *arg)
{
    px_fiber **self = arg;

    *self = px_self();
    note("%s ", err(px_sleep(PX_SEC)));
    return 0;
}

FIBER_TEST(a_detached_fiber_can_be_cancelled_by_what_px_self_said)
{
    px_fiber *self = NULL;

    start(keeps_its_handle, &self);
    EXPECT_EQ(px_cancel(self), 0);
    settle();
    EXPECT_LOG("canceled ");
    return 0;
}

static int cancels_main(void *arg)
{
    return px_cancel(arg);
}

FIBER_TEST(the_main_fiber_can_be_cancelled)
{
    px_spawn_options options = {.queued = true};

    EXPECT_EQ(px_spawn_with(NULL, &options, cancels_main, px_self()), 0);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ECANCELED);
    EXPECT_EQ(px_now(), 0);
    return 0;
}

/* All of its own scopes have fired by their deadlines. */
static int times_out_inside(void *arg UNUSED)
{
    px_scope outer, inner;

    EXPECT_EQ(px_scope_enter(&outer, 0), 0);
    EXPECT_EQ(px_scope_enter(&inner, 0), 0);
    note("%s ", err(px_check()));
    EXPECT_EQ(px_cancel(px_self()), 0);
    note("%s ", err(px_check()));
    note("%s ", err(px_scope_leave(&inner)));
    note("%s ", err(px_scope_leave(&outer)));
    note("%s ", err(px_check()));
    return 0;
}

FIBER_TEST(the_scope_that_px_cancel_fires_is_the_outermost)
{
    EXPECT_EQ(px_await(start_handle(times_out_inside, NULL), NULL), 0);
    EXPECT_LOG("timedout canceled timedout timedout canceled ");
    return 0;
}

static int spawns_though_cancelled(void *arg)
{
    px_fiber *fiber;

    EXPECT_EQ(px_cancel(px_self()), 0);
    EXPECT_EQ(px_spawn(&fiber, works, arg), 0);
    EXPECT_EQ(px_await(fiber, NULL), PX_ECANCELED);
    EXPECT_EQ(px_detach(fiber), 0);
    return 0;
}

FIBER_TEST(a_fiber_spawned_by_a_cancelled_one_is_not_cancelled)
{
    struct worker w = {.length = PX_SEC};

    EXPECT_EQ(px_await(start_handle(spawns_though_cancelled, &w), NULL), 0);
    EXPECT(!w.ended);
    EXPECT_EQ(px_sleep(2 * PX_SEC), 0);
    EXPECT(w.ended);
    EXPECT_EQ(w.code, 0);
    EXPECT_EQ(w.woke, PX_SEC);
    return 0;
}

static void cancel_from_the_callback(void *ctx)
{
    EXPECT(px_self() == NULL);
    EXPECT_EQ(px_cancel(ctx), 0);
}

static int fiber_of_main_sleeps(void *arg)
{
    px_fiber **self = arg;

    *self = px_self();
    EXPECT_EQ(px_sleep(PX_FOREVER), PX_ECANCELED);
    return 17;
}

static px_fiber *main_fiber;

static void cancel_main_from_the_callback(void *ctx)
{
    EXPECT(ctx == &main_fiber);
    cancel_from_the_callback(main_fiber);
}

static void cancel_works_off_fiber_in_on_deadlock(void **state)
{
    px_run_options options = {.on_deadlock = cancel_main_from_the_callback,
                              .ctx = &main_fiber};

    (void)state;
    assert_int_equal(
        run_fibers_with(options, 0, fiber_of_main_sleeps, &main_fiber), 17);
}

/* ---- px_cancel_and_await ---- */

FIBER_TEST(cancel_and_await_waits_for_the_end)
{
    struct worker w = {.length = PX_SEC, .clean_up = 30 * PX_MSEC};
    px_fiber *fiber = start_handle(works, &w);
    int value = 0;

    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_cancel_and_await(fiber, &value), 0);
    EXPECT(w.ended);
    EXPECT_EQ(value, PX_ECANCELED);
    EXPECT_EQ(w.woke, 10 * PX_MSEC);
    EXPECT_EQ(px_now(), 40 * PX_MSEC);
    return 0;
}

FIBER_TEST(cancel_and_await_of_an_ended_fiber_takes_its_value)
{
    struct worker w = {.length = 0};
    px_fiber *fiber = start_handle(works, &w);
    int value = 0;

    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    EXPECT_EQ(px_cancel_and_await(fiber, &value), 0);
    EXPECT_EQ(value, 11);
    fiber = start_handle(works, &w);
    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    EXPECT_EQ(px_cancel_and_await(fiber, NULL), 0);
    return 0;
}

FIBER_TEST(cancel_and_await_fails_for_no_cancellation)
{
    struct worker w = {.length = PX_SEC, .clean_up = 30 * PX_MSEC};
    px_scope scope;
    px_fiber *fiber = start_handle(works, &w);
    int value = 0;

    /* Fired before it is called ... */
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_EQ(px_cancel_and_await(fiber, &value), 0);
    EXPECT_EQ(value, PX_ECANCELED);
    EXPECT_EQ(px_now(), 30 * PX_MSEC);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    /* ... and while it waits. */
    fiber = start_handle(works, &w);
    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_cancel_and_await(fiber, NULL), 0);
    EXPECT_EQ(px_now(), 60 * PX_MSEC);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_check(), 0);
    return 0;
}

static int cancels_and_awaits(void *arg)
{
    int value = 0;

    EXPECT_EQ(px_cancel_and_await(arg, &value), 0);
    note("%s:%d ", err(value), (int)(px_now() / PX_MSEC));
    note("%s ", err(px_check()));
    return 0;
}

FIBER_TEST(cancel_and_await_is_not_cut_short_by_px_cancel)
{
    struct worker w = {.length = PX_SEC, .clean_up = 30 * PX_MSEC};
    px_fiber *fiber = start_handle(works, &w);
    px_fiber *waiter = start_handle(cancels_and_awaits, fiber);

    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_cancel(waiter), 0);
    EXPECT_EQ(px_await(waiter, NULL), 0);
    EXPECT_LOG("canceled:30 canceled ");
    return 0;
}

static int cancels_the_main_fiber_and_waits(void *arg)
{
    EXPECT_EQ(px_cancel_and_await(arg, NULL), PX_EINVAL);
    return 0;
}

static int cancels_one_it_may_not_await(void *arg)
{
    EXPECT_EQ(px_cancel_and_await(arg, NULL), PX_EBUSY);
    return 0;
}

static int awaits_it(void *arg)
{
    int value = 0;

    note("%s ", err(px_await(arg, &value)));
    note("%d ", value);
    return 0;
}

FIBER_TEST(where_cancel_and_await_refuses_nothing_was_cancelled)
{
    struct worker w = {.length = 10 * PX_MSEC};
    px_fiber *fiber, *waiter, *self = NULL;

    EXPECT_EQ(px_cancel_and_await(px_self(), NULL), PX_EDEADLK);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(
        px_await(start_handle(cancels_the_main_fiber_and_waits, px_self()),
                 NULL),
        0);
    EXPECT_EQ(px_check(), 0);

    fiber = start_handle(works, &w);
    waiter = start_handle(awaits_it, fiber);
    EXPECT_EQ(px_await(start_handle(cancels_one_it_may_not_await, fiber), NULL),
              0);
    EXPECT_EQ(px_await(waiter, NULL), 0);
    EXPECT_LOG("ok 11 ");
    EXPECT_EQ(w.code, 0);

    start(keeps_its_handle, &self);
    EXPECT_EQ(px_cancel_and_await(self, NULL), PX_EINVAL);
    EXPECT_EQ(px_sleep(2 * PX_SEC), 0);
    EXPECT_LOG("ok ");
    return 0;
}

static px_fiber *outlived;

static int leaves_a_handle(void *arg)
{
    outlived = arg;
    return 0;
}

/* The handle is good until the run ends; off-fiber it cannot be awaited. */
static void look_from_the_callback(void *ctx)
{
    EXPECT_EQ(px_cancel_and_await(outlived, NULL), PX_ENOFIBER);
    EXPECT_EQ(px_cancel_and_await(NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_stop(), PX_ENOFIBER);
    EXPECT_EQ(px_sem_up(ctx), 0);
}

static int waits_for_the_look(void *arg)
{
    px_fiber *fiber = start_handle(takes_a_permit, arg);
    int value = -1;

    EXPECT_EQ(leaves_a_handle(fiber), 0);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, 0); /* not cancelled */
    return 0;
}

static void cancel_and_await_and_stop_are_refused_off_fiber(void **state)
{
    px_sem sem = PX_SEM_INIT(0);
    px_run_options options = {.on_deadlock = look_from_the_callback,
                              .ctx = &sem};

    (void)state;
    assert_int_equal(px_stop(), PX_ENOFIBER);
    assert_int_equal(run_fibers_with(options, 0, waits_for_the_look, &sem), 0);
}

static int waits_in_a_shield(void *arg)
{
    return px_with_shield(PX_FOREVER, sleeps_for_ever, arg);
}

static int stalls_in_cancel_and_await(void *arg UNUSED)
{
    px_fiber *fiber = start_handle(waits_in_a_shield, NULL);
    int value = 0;

    EXPECT_EQ(px_cancel_and_await(fiber, &value), PX_ESTALLED);
    EXPECT_EQ(px_await(fiber, &value), 0); /* the handle stays good */
    EXPECT_EQ(value, PX_ESTALLED);
    return 0;
}

static void cancel_and_await_can_stall(void **state)
{
    int deadlocks = 0;
    px_run_options options = {.on_deadlock = count_deadlocks,
                              .ctx = &deadlocks};

    (void)state;
    assert_int_equal(
        run_fibers_with(options, 0, stalls_in_cancel_and_await, NULL),
        PX_ESTALLED);
    assert_int_equal(deadlocks, 1);
}

/* ---- px_stop ---- */

static int stops_the_run(void *arg)
{
    struct worker *workers = arg;
    struct worker late = {.length = PX_SEC};
    px_scope scope;
    px_fiber *fiber;

    for (int i = 0; i < 3; i++)
        start(works, &workers[i]);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(px_stop(), 0);
    EXPECT(!workers[0].ended);
    EXPECT_EQ(px_check(), PX_ECANCELED); /* the caller too, from outermost */
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_yield(), PX_ECANCELED);
    EXPECT_EQ(px_stop(), 0);
    /* Those spawned later too. */
    EXPECT_EQ(px_spawn(&fiber, works, &late), 0);
    EXPECT(late.ended);
    EXPECT_EQ(late.code, PX_ECANCELED);
    return 23;
}

static void stop_cancels_every_fiber_and_keeps_the_value(void **state)
{
    struct worker workers[3] = {{.length = PX_SEC},
                                {.length = PX_FOREVER},
                                {.length = PX_SEC, .clean_up = PX_MSEC}};
    px_run_options options = {0};

    (void)state;
    assert_int_equal(run_fibers_with(options, 0, stops_the_run, workers), 23);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(workers[i].code, PX_ECANCELED);
        assert_true(workers[i].ended);
        assert_true(workers[i].woke == 0);
    }
    /* The next run is another one. */
    workers[0] = (struct worker){.length = PX_SEC};
    assert_int_equal(run_fibers_with(options, 0, works, &workers[0]), 11);
}

static int stops_as_a_child(void *arg UNUSED)
{
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    return px_stop();
}

FIBER_TEST(any_fiber_may_stop_the_run)
{
    struct worker w = {.length = PX_SEC};
    px_nsec a_little = PX_MSEC;

    start(works, &w);
    start(stops_as_a_child, NULL);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ECANCELED);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(px_with_shield(PX_SEC, sleeps, &a_little), 0);
    EXPECT_EQ(w.code, PX_ECANCELED);
    return 0;
}

FIBER_TEST(a_queued_fiber_is_stopped_with_the_others)
{
    struct worker w = {.length = PX_SEC};
    px_nsec a_little = 1;
    px_spawn_options options = {.queued = true};

    EXPECT_EQ(px_spawn_with(NULL, &options, works, &w), 0);
    EXPECT_EQ(px_stop(), 0);
    EXPECT_EQ(px_with_shield(PX_SEC, sleeps, &a_little), 0);
    EXPECT(w.began);
    EXPECT_EQ(w.code, PX_ECANCELED);
    return 0;
}

/* ---- px_check, and loops that ignore the code ---- */

static int sets_the_flag(void *arg)
{
    *(bool *)arg = true;
    return 0;
}

FIBER_TEST(check_never_parks)
{
    px_spawn_options options = {.queued = true};
    bool flag = false;
    px_scope scope;

    EXPECT_EQ(px_spawn_with(NULL, &options, sets_the_flag, &flag), 0);
    for (int i = 0; i < 1000; i++)
        EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    for (int i = 0; i < 1000; i++)
        EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT(!flag); /* not even at the 64th */
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    settle();
    EXPECT(flag);
    return 0;
}

FIBER_TEST(a_loop_that_ignores_the_code_cannot_stop_the_others)
{
    px_spawn_options options = {.queued = true};
    px_sem sem = PX_SEM_INIT(0);
    bool flag = false;
    px_scope scope;
    int turns = 0;

    EXPECT_EQ(px_spawn_with(NULL, &options, sets_the_flag, &flag), 0);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    while (!flag && turns < 1000000) {
        EXPECT_EQ(px_sem_down(&sem), PX_ETIMEDOUT);
        turns++;
    }
    EXPECT(flag);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(nor_can_a_loop_that_also_checks)
{
    px_spawn_options options = {.queued = true};
    px_sem sem = PX_SEM_INIT(0);
    bool flag = false;
    px_scope scope;
    int turns = 0;

    /* Whichever of the calls is the 64th. */
    for (int checks = 1; checks < 5; checks++) {
        flag = false;
        turns = 0;
        EXPECT_EQ(px_spawn_with(NULL, &options, sets_the_flag, &flag), 0);
        EXPECT_EQ(px_scope_enter(&scope, 0), 0);
        while (!flag && turns < 100000) {
            EXPECT_EQ(px_sem_down(&sem), PX_ETIMEDOUT);
            for (int i = 0; i < checks; i++)
                EXPECT_EQ(px_check(), PX_ETIMEDOUT);
            turns++;
        }
        EXPECT(flag);
        EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    }
    return 0;
}

FIBER_TEST(nor_can_a_loop_that_polls_with_a_timeout_of_zero)
{
    px_spawn_options options = {.queued = true};
    px_sem sem = PX_SEM_INIT(0);
    bool flag = false;
    int turns = 0;

    EXPECT_EQ(px_spawn_with(NULL, &options, sets_the_flag, &flag), 0);
    while (!flag && turns < 100000) {
        EXPECT_EQ(px_with_timeout(0, takes_a_permit, &sem), PX_ETIMEDOUT);
        turns++;
    }
    EXPECT(flag);
    settle();
    return 0;
}

FIBER_TEST(what_never_parks_never_fails_for_a_cancellation)
{
    px_sem sem = PX_SEM_INIT(2);
    px_mutex mutex = PX_MUTEX_INIT;
    px_waitgroup wg = PX_WAITGROUP_INIT(1);
    px_scope scope;

    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_EQ(px_sem_try_down(&sem), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_adjust(&sem, -1), 0);
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    EXPECT_EQ(px_mutex_try_lock(&mutex), 0);
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    EXPECT_EQ(px_waitgroup_add(&wg, 1), 0);
    EXPECT_EQ(px_waitgroup_done(&wg), 0);
    EXPECT_EQ(px_waitgroup_count(&wg), 1);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(a_bad_argument_comes_before_a_fired_scope_and_the_state_after)
{
    px_sem closed = PX_SEM_INIT(1);
    px_mutex mutex = PX_MUTEX_INIT;
    px_waitgroup broken = PX_WAITGROUP_INIT(0);
    px_scope scope;

    EXPECT_EQ(px_sem_close(&closed), 0);
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    EXPECT_EQ(px_waitgroup_done(&broken), PX_ENEGATIVE);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_EQ(px_sem_down(NULL), PX_EINVAL);
    EXPECT_EQ(px_sem_down_n(&closed, -1), PX_EINVAL);
    EXPECT_EQ(px_mutex_lock(NULL), PX_EINVAL);
    EXPECT_EQ(px_waitgroup_wait(NULL), PX_EINVAL);
    EXPECT_EQ(px_await(NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_wait_fd(0, 0), PX_EINVAL);
    EXPECT_EQ(px_wait_signal(NULL), PX_EINVAL);
    EXPECT_EQ(px_offload(NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_map_concurrent(1, 1, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_group_spawn(NULL, works, NULL), PX_EINVAL);
    EXPECT_EQ(px_group_wait(NULL), PX_EINVAL);
    EXPECT_EQ(px_sem_down(&closed), PX_ETIMEDOUT);
    EXPECT_EQ(px_mutex_lock(&mutex), PX_ETIMEDOUT);
    EXPECT_EQ(px_waitgroup_wait(&broken), PX_ETIMEDOUT);
    EXPECT_EQ(px_sem_down_n(&closed, 0), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_sem_down(&closed), PX_ECLOSED);
    EXPECT_EQ(px_mutex_lock(&mutex), PX_EDEADLK);
    EXPECT_EQ(px_waitgroup_wait(&broken), PX_ENEGATIVE);
    return 0;
}

static const struct CMUnitTest tests[] = {
    PX_TEST(cancel_interrupts_a_parked_fiber),
    PX_TEST(a_cancelled_fiber_stays_cancelled),
    PX_TEST(a_fiber_cancelled_before_it_began_still_runs_its_body),
    PX_TEST(a_body_without_a_cancellation_point_is_not_touched),
    PX_TEST(cancelling_a_fiber_that_has_ended_does_nothing),
    PX_TEST(cancelling_null_is_refused),
    PX_TEST(a_fiber_may_cancel_itself),
    PX_TEST(a_detached_fiber_can_be_cancelled_by_what_px_self_said),
    PX_TEST(the_main_fiber_can_be_cancelled),
    PX_TEST(the_scope_that_px_cancel_fires_is_the_outermost),
    PX_TEST(a_fiber_spawned_by_a_cancelled_one_is_not_cancelled),
    PX_TEST(cancel_works_off_fiber_in_on_deadlock),
    PX_TEST(cancel_and_await_waits_for_the_end),
    PX_TEST(cancel_and_await_of_an_ended_fiber_takes_its_value),
    PX_TEST(cancel_and_await_fails_for_no_cancellation),
    PX_TEST(cancel_and_await_is_not_cut_short_by_px_cancel),
    PX_TEST(where_cancel_and_await_refuses_nothing_was_cancelled),
    PX_TEST(cancel_and_await_and_stop_are_refused_off_fiber),
    PX_TEST(cancel_and_await_can_stall),
    PX_TEST(stop_cancels_every_fiber_and_keeps_the_value),
    PX_TEST(any_fiber_may_stop_the_run),
    PX_TEST(a_queued_fiber_is_stopped_with_the_others),
    PX_TEST(check_never_parks),
    PX_TEST(a_loop_that_ignores_the_code_cannot_stop_the_others),
    PX_TEST(nor_can_a_loop_that_also_checks),
    PX_TEST(nor_can_a_loop_that_polls_with_a_timeout_of_zero),
    PX_TEST(what_never_parks_never_fails_for_a_cancellation),
    PX_TEST(a_bad_argument_comes_before_a_fired_scope_and_the_state_after),
};

PX_TEST_MAIN(tests)
