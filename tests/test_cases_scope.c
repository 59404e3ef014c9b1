/* SPDX-License-Identifier: MIT */
/*
 * test_cases_scope.c - field cases of timeouts, cancellation and groups: what
 * went wrong elsewhere, with the value that is right here. R and a number name
 * a case.
 */
#include <pthread.h>

#include "fiber_test.h"
#include "px_scale.h"

/* A fiber that takes n permits within a time, and what came of it. */
struct taker {
    px_sem *sem;
    int64_t n;
    px_nsec timeout;
    px_scope scope;
    int code;
    bool returned;
    px_nsec at;
};

static int takes(void *arg)
{
    struct taker *self = arg;

    EXPECT_EQ(px_scope_enter(&self->scope, self->timeout), 0);
    self->code = px_sem_down_n(self->sem, self->n);
    self->at = px_now();
    self->returned = true;
    (void)px_scope_leave(&self->scope);
    return self->code;
}

static px_fiber *start_taker(struct taker *t, px_sem *sem, int64_t n,
                             px_nsec timeout)
{
    *t = (struct taker){.sem = sem, .n = n, .timeout = timeout};
    return start_handle(takes, t);
}

/* ---- Semaphores under timeouts ---- */

enum way { BY_TIMEOUT, BY_SCOPE_CANCEL, BY_PX_CANCEL, BY_SET_DEADLINE, WAYS };

FIBER_TEST(R2_a_head_that_gives_up_lets_those_behind_it_through)
{
    struct taker large, small;
    px_fiber *fiber;

    for (enum way way = BY_TIMEOUT; way < WAYS; way++) {
        px_sem sem = PX_SEM_INIT_BOUNDED(3);
        px_nsec begin = px_now();

        EXPECT_EQ(px_sem_down_n(&sem, 2), 0);
        fiber = start_taker(&large, &sem, 3,
                            way == BY_TIMEOUT ? 20 * PX_MSEC : PX_FOREVER);
        (void)start_taker(&small, &sem, 1, PX_FOREVER);
        EXPECT_EQ(px_sem_waiters(&sem), 2);
        EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
        EXPECT(!small.returned);
        if (way == BY_SCOPE_CANCEL)
            EXPECT_EQ(px_scope_cancel(&large.scope), 0);
        else if (way == BY_PX_CANCEL)
            EXPECT_EQ(px_cancel(fiber), 0);
        else if (way == BY_SET_DEADLINE)
            EXPECT_EQ(px_scope_set_deadline(&large.scope, 0), 0);
        if (way != BY_TIMEOUT) {
            EXPECT_EQ(px_sem_waiters(&sem), 0); /* granted in that call */
            EXPECT_EQ(px_sem_count(&sem), 0);
        }
        EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
        EXPECT_EQ(large.code, way == BY_TIMEOUT || way == BY_SET_DEADLINE
                                  ? PX_ETIMEDOUT
                                  : PX_ECANCELED);
        EXPECT(small.returned);
        EXPECT_EQ(small.code, 0);
        EXPECT_EQ(small.at - begin,
                  way == BY_TIMEOUT ? 20 * PX_MSEC : 10 * PX_MSEC);
    }
    return 0;
}

FIBER_TEST(R9_a_fired_scope_takes_nothing_though_permits_are_free)
{
    px_sem sem = PX_SEM_INIT_BOUNDED(1);
    px_scope scope;

    PX_WITHIN(limit, 0) {
        EXPECT_EQ(px_sem_down(&sem), PX_ETIMEDOUT);
    }
    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    EXPECT_EQ(px_sem_down(&sem), PX_ECANCELED);
    EXPECT_EQ(px_scope_leave(&scope), PX_ECANCELED);
    EXPECT_EQ(px_sem_count(&sem), 1);
    return 0;
}

static int takes_and_holds(void *arg)
{
    px_sem *sem = arg;
    int code = 0;

    PX_WITHIN(limit, 25 * PX_MSEC) {
        code = px_sem_down(sem);
    }
    if (code == 0) {
        EXPECT_EQ(px_sleep(50 * PX_MSEC), 0);
        EXPECT_EQ(px_sem_up(sem), 0);
    }
    note("%s", code && code != PX_ETIMEDOUT ? "?" : "");
    return 0;
}

FIBER_TEST(R10_no_permit_is_lost_between_the_grant_and_the_deadline)
{
    px_sem sem = PX_SEM_INIT_BOUNDED(10);
    px_waitgroup wg = PX_WAITGROUP_INIT(0);

    for (int i = 0; i < fibers(5000); i++)
        EXPECT_EQ(px_waitgroup_go(&wg, takes_and_holds, &sem), 0);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    EXPECT_EQ(px_sem_count(&sem), 10);
    EXPECT_EQ(px_sem_waiters(&sem), 0);
    EXPECT_EQ(px_now(), 50 * PX_MSEC);
    EXPECT_LOG("");
    return 0;
}

/* The release and the deadline come at the same moment. */
static int gives_at_25ms(void *arg)
{
    EXPECT_EQ(px_sleep_until(25 * PX_MSEC), 0);
    return px_sem_up(arg);
}

FIBER_TEST(R10_a_release_at_the_moment_of_the_deadline_loses_nothing)
{
    px_sem sem = PX_SEM_INIT_BOUNDED(1);
    struct taker before, after;

    EXPECT_EQ(px_sem_down(&sem), 0);
    (void)start_taker(&before, &sem, 1, 25 * PX_MSEC);
    start(gives_at_25ms, &sem);
    (void)start_taker(&after, &sem, 1, 25 * PX_MSEC);
    EXPECT_EQ(px_sleep(50 * PX_MSEC), 0);
    EXPECT(before.code == 0 || before.code == PX_ETIMEDOUT);
    EXPECT(after.code == 0 || after.code == PX_ETIMEDOUT);
    EXPECT_EQ(px_sem_count(&sem), before.code && after.code ? 1 : 0);
    EXPECT(before.code || after.code); /* never both */
    return 0;
}

FIBER_TEST(R15_no_node_of_an_ended_wait_stays_behind)
{
    px_sem sem = PX_SEM_INIT_BOUNDED(1);
    int n = turns(100000);

    EXPECT_EQ(px_sem_down(&sem), 0);
    for (int i = 0; i < n; i++) {
        EXPECT_EQ(px_with_timeout(i % 2, takes_a_permit, &sem), PX_ETIMEDOUT);
        EXPECT_EQ(px_sem_waiters(&sem), 0);
    }
    EXPECT_EQ(px_now(), n / 2);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_count(&sem), 1);
    return 0;
}

static int is_closed_on_and_sleeps(void *arg)
{
    PX_WITHIN(limit, 100 * PX_MSEC) {
        EXPECT_EQ(px_sem_down(arg), PX_ECLOSED);
        EXPECT_EQ(px_now(), 10 * PX_MSEC);
    }
    EXPECT_EQ(px_sleep(500 * PX_MSEC), 0);
    return px_now() == 510 * PX_MSEC ? 1 : 2;
}

FIBER_TEST(R16_a_timer_of_an_ended_wait_wakes_nobody)
{
    px_sem sem = PX_SEM_INIT(0);
    px_fiber *fiber = start_handle(is_closed_on_and_sleeps, &sem);
    int value = 0;

    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_sem_close(&sem), 0);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, 1);
    return 0;
}

/* First s within 50 ms, then t without a deadline. */
struct two_waits {
    px_sem s, t;
    bool inside; /* still in the scope when it waits for t */
    int first, second;
    px_nsec first_at, second_at;
    int left;
};

static int waits_twice(void *arg)
{
    struct two_waits *self = arg;
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 50 * PX_MSEC), 0);
    self->first = px_sem_down(&self->s);
    self->first_at = px_now();
    if (!self->inside)
        self->left = px_scope_leave(&scope);
    self->second = px_sem_down(&self->t);
    self->second_at = px_now();
    if (self->inside)
        self->left = px_scope_leave(&scope);
    return 0;
}

FIBER_TEST(R17_a_deadline_that_was_met_does_not_wake_the_next_wait)
{
    struct two_waits w = {.inside = false};

    start(waits_twice, &w);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_sem_up(&w.s), 0);
    EXPECT_EQ(px_sleep(90 * PX_MSEC), 0);
    EXPECT_EQ(w.first_at, 10 * PX_MSEC);
    EXPECT_EQ(w.second_at, 0);
    EXPECT_EQ(px_sem_waiters(&w.t), 1);
    EXPECT_EQ(px_sem_up(&w.t), 0);
    settle();
    EXPECT_EQ(w.second, 0);
    EXPECT_EQ(w.second_at, 100 * PX_MSEC);
    EXPECT_EQ(w.left, 0);
    /* And one that is still in force does. */
    w = (struct two_waits){.inside = true};
    start(waits_twice, &w);
    EXPECT_EQ(px_sem_up(&w.s), 0);
    EXPECT_EQ(px_sleep(90 * PX_MSEC), 0);
    EXPECT_EQ(w.first, 0);
    EXPECT_EQ(w.second, PX_ETIMEDOUT);
    EXPECT_EQ(w.second_at, w.first_at + 50 * PX_MSEC);
    EXPECT_EQ(w.left, PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(R17_a_deadline_and_a_release_in_one_turn_resume_once)
{
    px_sem sem = PX_SEM_INIT(0);
    struct taker t;

    (void)start_taker(&t, &sem, 1, PX_FOREVER);
    EXPECT_EQ(px_scope_set_deadline(&t.scope, px_now()), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_EQ(t.code, PX_ETIMEDOUT);
    EXPECT_EQ(px_sem_count(&sem), 1);
    (void)start_taker(&t, &sem, 2, PX_FOREVER);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_scope_set_deadline(&t.scope, px_now()), 0);
    settle();
    EXPECT_EQ(t.code, 0);
    EXPECT_EQ(px_sem_count(&sem), 0);
    return 0;
}

FIBER_TEST(R19_a_past_deadline_takes_nothing_though_a_permit_is_free)
{
    px_sem sem = PX_SEM_INIT(1);

    EXPECT_EQ(px_sleep(2 * PX_SEC), 0);
    EXPECT_EQ(px_with_deadline(px_now() - PX_SEC, takes_a_permit, &sem),
              PX_ETIMEDOUT);
    EXPECT_EQ(px_sem_count(&sem), 1);
    return 0;
}

FIBER_TEST(R20_waits_that_time_out_do_not_move_the_count)
{
    px_sem sem = PX_SEM_INIT_BOUNDED(1);

    EXPECT_EQ(px_sem_set_limit(&sem, 0), 0);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(px_with_timeout(5 * PX_MSEC, takes_a_permit, &sem),
                  PX_ETIMEDOUT);
        EXPECT_EQ(px_sem_count(&sem), 0);
    }
    EXPECT_EQ(px_now(), 15 * PX_MSEC);
    EXPECT_EQ(px_sem_set_limit(&sem, 1), 0);
    EXPECT_EQ(px_sem_try_down(&sem), 0);
    EXPECT_EQ(px_sem_try_down(&sem), PX_EAGAIN);
    return 0;
}

static int times_out_as_a_child(void *arg)
{
    return px_with_timeout(10 * PX_MSEC, takes_a_permit, arg);
}

FIBER_TEST(R21_main_and_child_time_out_alike)
{
    px_sem sem = PX_SEM_INIT_BOUNDED(1);
    int value = 0;

    EXPECT_EQ(px_sem_down(&sem), 0);
    EXPECT_EQ(times_out_as_a_child(&sem), PX_ETIMEDOUT);
    EXPECT_EQ(px_await(start_handle(times_out_as_a_child, &sem), &value), 0);
    EXPECT_EQ(value, PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 20 * PX_MSEC);
    return 0;
}

/* ---- Values of timeouts ---- */

/* Every way to say how long. */
static int by_with_timeout(px_nsec timeout, px_sem *sem)
{
    return px_with_timeout(timeout, takes_a_permit, sem);
}

static int by_with_deadline(px_nsec timeout, px_sem *sem)
{
    px_nsec now = px_now();
    px_nsec when = timeout < PX_FOREVER - now ? now + timeout : PX_FOREVER;

    return px_with_deadline(when, takes_a_permit, sem);
}

static int by_with_shield(px_nsec timeout, px_sem *sem)
{
    return px_with_shield(timeout, takes_a_permit, sem);
}

static int by_a_scope(px_nsec timeout, px_sem *sem)
{
    px_scope scope;
    int code;

    EXPECT_EQ(px_scope_enter(&scope, timeout), 0);
    code = px_sem_down(sem);
    (void)px_scope_leave(&scope);
    return code;
}

static int by_a_block(px_nsec timeout, px_sem *sem)
{
    int code = 1;

    PX_WITHIN(limit, timeout)
        code = px_sem_down(sem);
    return code;
}

static int (*const timed[])(px_nsec timeout, px_sem *sem) = {
    by_with_timeout, by_with_deadline, by_with_shield, by_a_scope, by_a_block};

FIBER_TEST(R69_one_table_of_timeouts_for_every_call)
{
    static const struct {
        px_nsec timeout;
        int free, busy; /* what down returns with a permit, and without */
        px_nsec takes;  /* how long, without */
    } rows[] = {
        {0, PX_ETIMEDOUT, PX_ETIMEDOUT, 0},
        {-1, PX_ETIMEDOUT, PX_ETIMEDOUT, 0},
        {INT64_MIN, PX_ETIMEDOUT, PX_ETIMEDOUT, 0},
        {1, 0, PX_ETIMEDOUT, 1},
        {PX_SEC, 0, PX_ETIMEDOUT, PX_SEC},
    };
    static const px_nsec endless[] = {PX_FOREVER, PX_FOREVER - 1};
    px_sem one = PX_SEM_INIT(1), none = PX_SEM_INIT(0);
    px_nsec begin;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t way = 0; way < sizeof(timed) / sizeof(timed[0]); way++) {
            EXPECT_EQ(timed[way](rows[i].timeout, &one), rows[i].free);
            EXPECT_EQ(px_sem_count(&one), rows[i].free ? 1 : 0);
            if (rows[i].free == 0)
                EXPECT_EQ(px_sem_up(&one), 0);
            begin = px_now();
            EXPECT_EQ(timed[way](rows[i].timeout, &none), rows[i].busy);
            EXPECT_EQ(px_now() - begin, rows[i].takes);
        }
    }
    for (int i = 0; i < 2; i++) {
        struct taker t;

        for (size_t way = 0; way < sizeof(timed) / sizeof(timed[0]); way++) {
            EXPECT_EQ(timed[way](endless[i], &one), 0);
            EXPECT_EQ(px_sem_up(&one), 0);
        }
        (void)start_taker(&t, &none, 1, endless[i]);
        EXPECT_EQ(px_sleep(100L * 365 * 24 * 60 * PX_MINUTE), 0);
        EXPECT(!t.returned);
        EXPECT_EQ(px_sem_up(&none), 0);
        settle();
        EXPECT_EQ(t.code, 0);
    }
    return 0;
}

static int sleeps_25_days(void *arg)
{
    int *code = arg;

    *code = px_sleep(2147484 * PX_SEC);
    return 0;
}

static int works_meanwhile(void *arg UNUSED)
{
    int code = 1;
    px_fiber *fiber = start_handle(sleeps_25_days, &code);

    for (int i = 0; i < 5; i++)
        EXPECT_EQ(px_sleep(PX_USEC), 0);
    EXPECT_EQ(code, 1);
    EXPECT_EQ(px_cancel_and_await(fiber, NULL), 0);
    EXPECT_EQ(code, PX_ECANCELED);
    return 0;
}

static void R72_a_sleep_too_long_for_the_poller_disturbs_nobody(void **state)
{
    px_run_options options = {0};

    (void)state;
    assert_int_equal(run_fibers_with(options, 1, works_meanwhile, NULL), 0);
}

static int stops_from_a_post(void *arg UNUSED)
{
    return px_stop();
}

static void *posts_a_stop(void *loop)
{
    assert_int_equal(px_post(loop, stops_from_a_post, NULL), 0);
    return NULL;
}

/* Without a timer or a descriptor: the loop waits for the post alone. */
static int waits_for_a_stop(void *arg UNUSED)
{
    px_loop *loop = px_current_loop();
    pthread_t thread;

    EXPECT_EQ(px_loop_hold(loop), 0);
    EXPECT_EQ(pthread_create(&thread, NULL, posts_a_stop, loop), 0);
    EXPECT_EQ(px_sleep(PX_FOREVER), PX_ECANCELED);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    return px_loop_unhold(loop);
}

static void R73_a_loop_without_timers_wakes_for_a_stop(void **state)
{
    px_run_options options = {0};

    (void)state;
    assert_int_equal(run_fibers_with(options, 1, waits_for_a_stop, NULL), 0);
    assert_int_equal(run_fibers_with(options, 0, waits_for_a_stop, NULL), 0);
}

static int times_out_very_soon(void *arg UNUSED)
{
    px_sem sem = PX_SEM_INIT(0);

    for (int i = 0; i < turns(5000); i++) {
        px_nsec timeout = i * 7 % 2001;

        EXPECT_EQ(px_with_timeout(timeout, takes_a_permit, &sem), PX_ETIMEDOUT);
    }
    EXPECT_EQ(px_sem_waiters(&sem), 0);
    return 0;
}

static void R77_a_timer_never_fires_before_its_fiber_is_parked(void **state)
{
    px_run_options options = {0};

    (void)state;
    assert_int_equal(run_fibers_with(options, 0, times_out_very_soon, NULL), 0);
    assert_int_equal(run_fibers_with(options, 1, times_out_very_soon, NULL), 0);
}

/* ---- Cancellation ---- */

static int takes_then_sleeps(void *arg)
{
    EXPECT_EQ(px_with_timeout(PX_SEC, takes_a_permit, arg), 0);
    for (int i = 0; i < 3; i++)
        note("%s ", err(px_sleep(10 * PX_MSEC)));
    return 0;
}

FIBER_TEST(R81_a_success_does_not_swallow_a_cancellation)
{
    px_sem sem = PX_SEM_INIT(0);
    px_fiber *fiber = start_handle(takes_then_sleeps, &sem);

    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_LOG("canceled canceled canceled ");
    EXPECT_EQ(px_now(), 0);
    return 0;
}

static int locks_and_cleans_up(void *arg)
{
    px_mutex *mutex = arg;
    px_nsec clean_up = 30 * PX_MSEC;
    int code;

    EXPECT_EQ(px_mutex_lock(mutex), 0);
    code = px_sleep(PX_SEC);
    EXPECT_EQ(px_with_shield(PX_FOREVER, sleeps, &clean_up), 0);
    EXPECT_EQ(px_mutex_unlock(mutex), 0);
    return code;
}

static int has_a_child_with_a_lock(void *arg)
{
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, locks_and_cleans_up, arg), 0);
    return px_group_wait(&group);
}

FIBER_TEST(R82_a_timeout_returns_when_the_work_inside_has_ended)
{
    px_mutex mutex = PX_MUTEX_INIT;

    EXPECT_EQ(px_with_timeout(20 * PX_MSEC, has_a_child_with_a_lock, &mutex),
              PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 50 * PX_MSEC);
    EXPECT_EQ(px_mutex_try_lock(&mutex), 0);
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    return 0;
}

FIBER_TEST(R83_a_timeout_entered_while_another_unwinds)
{
    px_scope outer, inner;

    EXPECT_EQ(px_scope_enter(&outer, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_enter(&inner, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT); /* the outer's */
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(px_scope_leave(&inner), 0); /* not the inner's */
    EXPECT_EQ(px_scope_enter(&inner, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_shield(&inner, true), 0);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT); /* now it is the inner's */
    EXPECT_EQ(px_now(), 20 * PX_MSEC);
    EXPECT_EQ(px_scope_leave(&inner), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&outer), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(R83_two_scopes_with_one_deadline_fire_both)
{
    px_scope outer, inner;

    EXPECT_EQ(px_scope_enter(&outer, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_enter(&inner, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_status(&outer), PX_ETIMEDOUT);
    (void)px_scope_leave(&inner);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&outer), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    return 0;
}

struct nest {
    px_scope outer, inner;
    px_nsec inner_timeout;
    int in_inner, in_outer, outside;
    int left_inner, left_outer;
};

static int goes_on_after_each(void *arg)
{
    struct nest *n = arg;

    EXPECT_EQ(px_scope_enter(&n->outer, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_enter(&n->inner, n->inner_timeout), 0);
    n->in_inner = px_sleep(PX_SEC);
    n->left_inner = px_scope_leave(&n->inner);
    n->in_outer = px_sleep(PX_MSEC);
    n->left_outer = px_scope_leave(&n->outer);
    n->outside = px_sleep(PX_MSEC);
    return 0;
}

FIBER_TEST(R85_a_cancellation_ends_at_its_own_scope)
{
    static const px_nsec timeouts[] = {PX_FOREVER, PX_SEC};
    struct nest n;
    px_fiber *fiber;

    for (int i = 0; i < 2; i++) {
        n = (struct nest){.inner_timeout = timeouts[i]};
        fiber = start_handle(goes_on_after_each, &n);
        EXPECT_EQ(px_sleep(PX_MSEC), 0);
        EXPECT_EQ(px_scope_cancel(&n.outer), 0);
        EXPECT_EQ(px_await(fiber, NULL), 0);
        EXPECT_EQ(n.in_inner, PX_ECANCELED);
        EXPECT_EQ(n.left_inner, 0);
        EXPECT_EQ(n.in_outer, PX_ECANCELED);
        EXPECT_EQ(n.left_outer, PX_ECANCELED);
        EXPECT_EQ(n.outside, 0);
    }
    return 0;
}

/* INT64_MIN, for ever, cancel and leave, in every order of the first three. */
FIBER_TEST(R88_deadlines_at_the_ends_of_time_in_every_order)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    px_scope scope;

    for (int i = 0; i < 6; i++) {
        int first = orders[i][0] == 1 ? orders[i][1] : orders[i][0];
        int code = first == 0 ? PX_ETIMEDOUT : PX_ECANCELED;

        EXPECT_EQ(px_scope_enter(&scope, PX_MSEC), 0);
        for (int j = 0; j < 3; j++) {
            if (orders[i][j] == 0)
                EXPECT_EQ(px_scope_set_deadline(&scope, INT64_MIN), 0);
            else if (orders[i][j] == 1)
                EXPECT_EQ(px_scope_set_deadline(&scope, PX_FOREVER), 0);
            else
                EXPECT_EQ(px_scope_cancel(&scope), 0);
        }
        EXPECT_EQ(px_check(), code);
        EXPECT_EQ(px_scope_leave(&scope), code);
        EXPECT_EQ(px_sleep(PX_MSEC), 0);
        EXPECT_EQ(px_deadline(), PX_FOREVER);
    }
    return 0;
}

FIBER_TEST(R89_leaving_in_the_wrong_order_is_told_at_once)
{
    px_scope a, b;

    EXPECT_EQ(px_scope_enter(&a, PX_SEC), 0);
    EXPECT_EQ(px_scope_enter(&b, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_leave(&a), PX_EINVAL);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT); /* b is still good */
    EXPECT_EQ(px_scope_leave(&b), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&a), 0);
    return 0;
}

static int ignores_it_once(void *arg)
{
    int *codes = arg;

    codes[0] = px_sleep(PX_SEC);
    codes[1] = px_sleep(PX_SEC);
    codes[2] = px_yield();
    return 0;
}

FIBER_TEST(R92_code_that_eats_a_cancellation_meets_it_again)
{
    int codes[3] = {0};
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 20 * PX_MSEC), 0);
    EXPECT_EQ(ignores_it_once(codes), 0);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(codes[i], PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_status(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 20 * PX_MSEC);
    return 0;
}

static int notes_its_turn(void *arg UNUSED)
{
    note("another ran; ");
    return 0;
}

FIBER_TEST(R93_cancelling_ones_own_scope_is_met_at_the_next_point)
{
    px_spawn_options queued = {.queued = true};
    px_scope scope;
    int x = 0;

    EXPECT_EQ(px_spawn_with(NULL, &queued, notes_its_turn, NULL), 0);
    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    x = 1;
    EXPECT_LOG(""); /* it never switches */
    if (px_yield() == 0)
        x = 2;
    EXPECT_EQ(x, 1);
    EXPECT_EQ(px_scope_leave(&scope), PX_ECANCELED);
    EXPECT_EQ(px_sleep(1), 0); /* whoever is ready runs before */
    EXPECT_LOG("another ran; ");
    return 0;
}

static int kills_the_group(void *arg)
{
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_group_wait(arg), PX_EPERM);
    return px_group_cancel(arg);
}

FIBER_TEST(R94_a_group_that_is_cancelled_while_waited_for_can_be_freed)
{
    px_group *group = malloc(sizeof(*group));

    EXPECT_EQ(px_group_open(group), 0);
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(px_group_spawn(group, sleeps_for_ever, NULL), 0);
    start(kills_the_group, group);
    EXPECT_EQ(px_group_wait(group), 0);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    free(group);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    return 0;
}

/* Awaits the fiber in its argument until it is interrupted. */
static int gives_up_awaiting(void *arg)
{
    return px_await(arg, NULL);
}

static int gives_up_after_300ms(void *arg)
{
    return px_with_timeout(300 * PX_MSEC, gives_up_awaiting, arg);
}

FIBER_TEST(R95_a_fiber_that_gave_up_awaiting_is_not_resumed)
{
    px_nsec length = PX_SEC;
    px_fiber *t = start_handle(sleeps, &length);
    px_fiber *w = start_handle(gives_up_awaiting, t);
    int value = 0;

    EXPECT_EQ(px_sleep(200 * PX_MSEC), 0);
    EXPECT_EQ(px_cancel(w), 0);
    EXPECT_EQ(px_await(w, &value), 0);
    EXPECT_EQ(value, PX_ECANCELED);
    EXPECT_EQ(px_await(start_handle(gives_up_after_300ms, t), &value), 0);
    EXPECT_EQ(value, PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 500 * PX_MSEC);
    EXPECT_EQ(px_await(t, &value), 0);
    EXPECT_EQ(value, 0);
    EXPECT_EQ(px_now(), PX_SEC);
    return 0;
}

FIBER_TEST(R96_cancelling_the_ended_and_oneself)
{
    px_nsec length = PX_MSEC;
    px_fiber *ended = start_handle(sleeps, &length), *other;
    int value = -1;

    EXPECT_EQ(px_sleep(2 * PX_MSEC), 0);
    EXPECT_EQ(px_cancel(ended), 0);
    EXPECT_EQ(px_cancel(ended), 0);
    for (int i = 0; i < 100; i++) { /* a handle never hits another fiber */
        other = start_handle(sleeps, &length);
        EXPECT_EQ(px_cancel(ended), 0);
        EXPECT_EQ(px_await(other, &value), 0);
        EXPECT_EQ(value, 0);
    }
    EXPECT_EQ(px_await(ended, &value), 0);
    EXPECT_EQ(value, 0);
    EXPECT_EQ(px_cancel(px_self()), 0);
    EXPECT_EQ(px_cancel(px_self()), 0);
    EXPECT_EQ(px_yield(), PX_ECANCELED);
    return 0;
}

/* Some end before the run does, some with it. */
static int spawns_and_forgets(void *arg UNUSED)
{
    static const px_nsec lengths[] = {0, PX_MSEC, PX_SEC};
    px_fiber *fiber;

    for (int i = 0; i < fibers(1000); i++)
        EXPECT_EQ(px_spawn(i % 2 ? NULL : &fiber, sleeps,
                           (void *)(uintptr_t)&lengths[i % 3]),
                  0);
    return px_sleep(10 * PX_MSEC);
}

static void R98_fibers_that_nobody_awaits_are_reclaimed(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        run_fibers(spawns_and_forgets, NULL);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(R2_a_head_that_gives_up_lets_those_behind_it_through),
    PX_TEST(R9_a_fired_scope_takes_nothing_though_permits_are_free),
    PX_TEST(R10_no_permit_is_lost_between_the_grant_and_the_deadline),
    PX_TEST(R10_a_release_at_the_moment_of_the_deadline_loses_nothing),
    PX_TEST(R15_no_node_of_an_ended_wait_stays_behind),
    PX_TEST(R16_a_timer_of_an_ended_wait_wakes_nobody),
    PX_TEST(R17_a_deadline_that_was_met_does_not_wake_the_next_wait),
    PX_TEST(R17_a_deadline_and_a_release_in_one_turn_resume_once),
    PX_TEST(R19_a_past_deadline_takes_nothing_though_a_permit_is_free),
    PX_TEST(R20_waits_that_time_out_do_not_move_the_count),
    PX_TEST(R21_main_and_child_time_out_alike),
    PX_TEST(R69_one_table_of_timeouts_for_every_call),
    PX_TEST(R72_a_sleep_too_long_for_the_poller_disturbs_nobody),
    PX_TEST(R73_a_loop_without_timers_wakes_for_a_stop),
    PX_TEST(R77_a_timer_never_fires_before_its_fiber_is_parked),
    PX_TEST(R81_a_success_does_not_swallow_a_cancellation),
    PX_TEST(R82_a_timeout_returns_when_the_work_inside_has_ended),
    PX_TEST(R83_a_timeout_entered_while_another_unwinds),
    PX_TEST(R83_two_scopes_with_one_deadline_fire_both),
    PX_TEST(R85_a_cancellation_ends_at_its_own_scope),
    PX_TEST(R88_deadlines_at_the_ends_of_time_in_every_order),
    PX_TEST(R89_leaving_in_the_wrong_order_is_told_at_once),
    PX_TEST(R92_code_that_eats_a_cancellation_meets_it_again),
    PX_TEST(R93_cancelling_ones_own_scope_is_met_at_the_next_point),
    PX_TEST(R94_a_group_that_is_cancelled_while_waited_for_can_be_freed),
    PX_TEST(R95_a_fiber_that_gave_up_awaiting_is_not_resumed),
    PX_TEST(R96_cancelling_the_ended_and_oneself),
    PX_TEST(R98_fibers_that_nobody_awaits_are_reclaimed),
};

PX_TEST_MAIN(tests)
