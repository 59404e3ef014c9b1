/* SPDX-License-Identifier: MIT */
/*
 * test_timeout.c - px_with_timeout and its kin, PX_WITHIN, and when a deadline
 * is noticed.
 */
#include "fiber_test.h"

/* ---- px_with_timeout, px_with_deadline, px_with_cancel ---- */

struct story {
    px_nsec length;
    int value;
    int code;      /* what the sleep returned */
    px_nsec ended; /* when it did */
    px_nsec deadline;
    px_fid id;
    px_mutex *mutex;
};

static int sleeps_and_tells(void *arg)
{
    struct story *self = arg;

    self->id = px_current_id();
    self->deadline = px_deadline();
    self->code = px_sleep(self->length);
    self->ended = px_now();
    return self->code ? self->code : self->value;
}

FIBER_TEST(with_timeout_returns_what_fn_returns)
{
    static const int values[] = {0,  1,  12345,     INT32_MAX,
                                 -1, -7, INT32_MIN, PX_ECANCELED};
    struct story s = {.length = PX_MSEC};

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        s.value = values[i];
        EXPECT_EQ(px_with_timeout(PX_SEC, sleeps_and_tells, &s), values[i]);
        EXPECT_EQ(px_with_deadline(PX_SEC, sleeps_and_tells, &s), values[i]);
        EXPECT_EQ(px_with_timeout(PX_FOREVER, sleeps_and_tells, &s), values[i]);
        EXPECT_EQ(px_with_shield(PX_SEC, sleeps_and_tells, &s), values[i]);
    }
    return 0;
}

FIBER_TEST(a_call_in_with_timeout_is_cut_short)
{
    struct story s = {.length = PX_SEC, .value = 1};

    EXPECT_EQ(px_sleep(5 * PX_MSEC), 0);
    EXPECT_EQ(px_with_timeout(20 * PX_MSEC, sleeps_and_tells, &s),
              PX_ETIMEDOUT);
    EXPECT_EQ(s.ended, 25 * PX_MSEC);
    EXPECT_EQ(s.deadline, 25 * PX_MSEC);
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    return 0;
}

FIBER_TEST(a_call_in_with_deadline_is_cut_short)
{
    struct story s = {.length = PX_SEC, .value = 1};

    EXPECT_EQ(px_sleep(5 * PX_MSEC), 0);
    EXPECT_EQ(px_with_deadline(20 * PX_MSEC, sleeps_and_tells, &s),
              PX_ETIMEDOUT);
    EXPECT_EQ(s.ended, 20 * PX_MSEC);
    EXPECT_EQ(px_with_deadline(20 * PX_MSEC - 1, sleeps_and_tells, &s),
              PX_ETIMEDOUT);
    EXPECT_EQ(px_with_deadline(INT64_MIN, sleeps_and_tells, &s), PX_ETIMEDOUT);
    EXPECT_EQ(s.ended, 20 * PX_MSEC);
    EXPECT_EQ(px_with_deadline(PX_FOREVER, sleeps_and_tells, &s), 1);
    EXPECT_EQ(s.deadline, PX_FOREVER);
    EXPECT_EQ(s.ended, 20 * PX_MSEC + PX_SEC);
    return 0;
}

/* Ignores the code. */
static int sleeps_and_shrugs(void *arg)
{
    (void)sleeps_and_tells(arg);
    return 4;
}

FIBER_TEST(a_fn_that_does_not_hand_the_code_on_is_believed)
{
    struct story s = {.length = PX_SEC};

    EXPECT_EQ(px_with_timeout(20 * PX_MSEC, sleeps_and_shrugs, &s), 4);
    EXPECT_EQ(s.code, PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 20 * PX_MSEC);
    EXPECT_EQ(px_check(), 0);
    return 0;
}

static int returns_42(void *arg UNUSED)
{
    return 42;
}

FIBER_TEST(a_fn_without_a_cancellation_point_is_not_interrupted)
{
    px_scope scope;

    EXPECT_EQ(px_with_timeout(0, returns_42, NULL), 42);
    EXPECT_EQ(px_with_timeout(INT64_MIN, returns_42, NULL), 42);
    EXPECT_EQ(px_with_deadline(-1, returns_42, NULL), 42);
    EXPECT_EQ(px_with_shield(0, returns_42, NULL), 42);
    /* They are no cancellation points themselves. */
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_EQ(px_with_timeout(PX_SEC, returns_42, NULL), 42);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(a_timeout_of_zero_or_less_lets_nothing_through)
{
    static const px_nsec due[] = {0, -1, -PX_SEC, INT64_MIN};
    px_sem sem = PX_SEM_INIT(1);

    for (size_t i = 0; i < sizeof(due) / sizeof(due[0]); i++) {
        EXPECT_EQ(px_with_timeout(due[i], takes_a_permit, &sem), PX_ETIMEDOUT);
        EXPECT_EQ(px_sem_count(&sem), 1);
    }
    EXPECT_EQ(px_with_timeout(1, takes_a_permit, &sem), 0);
    EXPECT_EQ(px_with_timeout(1, takes_a_permit, &sem), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 1);
    return 0;
}

static int locks(void *arg)
{
    struct story *self = arg;

    self->id = px_current_id();
    return px_mutex_lock(self->mutex);
}

FIBER_TEST(fn_runs_on_the_calling_fiber)
{
    px_mutex mutex = PX_MUTEX_INIT;
    struct story s = {.mutex = &mutex, .id = PX_NO_FIBER};

    EXPECT_EQ(px_with_timeout(PX_SEC, locks, &s), 0);
    EXPECT_EQ(s.id, px_current_id());
    EXPECT_EQ(px_mutex_owner(&mutex), px_current_id());
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    return 0;
}

static int sleeps_in_20ms_too(void *arg)
{
    return px_with_timeout(20 * PX_MSEC, sleeps_and_tells, arg);
}

static int sleeps_in_90ms_too(void *arg)
{
    return px_with_timeout(90 * PX_MSEC, sleeps_and_tells, arg);
}

FIBER_TEST(of_nested_timeouts_the_nearest_is_in_force)
{
    struct story s = {.length = PX_SEC};

    EXPECT_EQ(px_with_timeout(50 * PX_MSEC, sleeps_in_20ms_too, &s),
              PX_ETIMEDOUT);
    EXPECT_EQ(s.ended, 20 * PX_MSEC);
    EXPECT_EQ(px_with_timeout(50 * PX_MSEC, sleeps_in_90ms_too, &s),
              PX_ETIMEDOUT);
    EXPECT_EQ(s.ended, 70 * PX_MSEC);
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    return 0;
}

static int spawns_a_sleeper(void *arg)
{
    start(sleeps_and_shrugs, arg);
    return px_sleep(PX_SEC);
}

FIBER_TEST(what_is_spawned_inside_a_timeout_is_outside_it)
{
    struct story s = {.length = 50 * PX_MSEC};

    EXPECT_EQ(px_with_timeout(20 * PX_MSEC, spawns_a_sleeper, &s),
              PX_ETIMEDOUT);
    EXPECT_EQ(s.deadline, PX_FOREVER);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT_EQ(s.code, 0);
    EXPECT_EQ(s.ended, 50 * PX_MSEC);
    return 0;
}

static px_scope left_behind;

static int leaves_a_scope_behind(void *arg UNUSED)
{
    EXPECT_EQ(px_scope_enter(&left_behind, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_shield(&left_behind, true), 0);
    return 3;
}

static int leaves_a_scope_behind_too(px_scope *token UNUSED, void *arg)
{
    return leaves_a_scope_behind(arg);
}

static void expect_nothing_left_behind(int value)
{
    EXPECT_EQ(value, 3);
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    EXPECT_EQ(px_scope_leave(&left_behind), PX_EINVAL);
    memset(&left_behind, 0xa5, sizeof(left_behind));
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
}

FIBER_TEST(a_scope_that_fn_has_not_left_is_forgotten)
{
    px_scope scope;

    expect_nothing_left_behind(
        px_with_timeout(PX_SEC, leaves_a_scope_behind, NULL));
    expect_nothing_left_behind(
        px_with_deadline(PX_SEC, leaves_a_scope_behind, NULL));
    expect_nothing_left_behind(
        px_with_shield(PX_SEC, leaves_a_scope_behind, NULL));
    expect_nothing_left_behind(px_with_cancel(leaves_a_scope_behind_too, NULL));
    /* What is around is as it was. */
    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    expect_nothing_left_behind(
        px_with_timeout(PX_SEC, leaves_a_scope_behind, NULL));
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    EXPECT_EQ(px_check(), PX_ECANCELED); /* left_behind's shield is gone */
    EXPECT_EQ(px_scope_leave(&scope), PX_ECANCELED);
    return 0;
}

static int is_cancelled_by_a_sleeper(px_scope *token, void *arg)
{
    px_scope **shared = arg;
    int code;

    EXPECT_EQ(px_deadline(), PX_FOREVER);
    *shared = token;
    code = px_sleep(PX_SEC);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(px_check(), PX_ECANCELED);
    EXPECT_EQ(px_scope_status(token), PX_ECANCELED);
    return code;
}

static int cancels_the_token(void *arg)
{
    px_scope **shared = arg;

    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    return px_scope_cancel(*shared);
}

static int cancels_itself(px_scope *token, void *arg UNUSED)
{
    EXPECT_EQ(px_scope_cancel(token), 0);
    return px_yield();
}

FIBER_TEST(with_cancel_hands_out_a_token)
{
    px_scope *token = NULL;

    start(cancels_the_token, &token);
    EXPECT_EQ(px_with_cancel(is_cancelled_by_a_sleeper, &token), PX_ECANCELED);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_with_cancel(cancels_itself, NULL), PX_ECANCELED);
    EXPECT_EQ(px_check(), 0);
    return 0;
}

/* ---- PX_WITHIN ---- */

FIBER_TEST(within_is_a_scope_around_a_block)
{
    int code = 0;

    PX_WITHIN(limit, 20 * PX_MSEC) {
        EXPECT_EQ(px_deadline(), 20 * PX_MSEC);
        EXPECT_EQ(px_scope_status(&limit), 0);
        code = px_sleep(PX_SEC);
        EXPECT_EQ(px_scope_status(&limit), PX_ETIMEDOUT);
        EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    }
    EXPECT_EQ(code, PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 20 * PX_MSEC);
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    EXPECT_EQ(px_check(), 0);
    return 0;
}

FIBER_TEST(within_runs_its_block_once_even_when_it_has_fired)
{
    int blocks = 0;

    PX_WITHIN(limit, 0) {
        blocks++;
        EXPECT_EQ(px_yield(), PX_ETIMEDOUT);
        EXPECT_EQ(px_scope_status(&limit), PX_ETIMEDOUT);
    }
    EXPECT_EQ(blocks, 1);
    EXPECT_EQ(px_yield(), 0);
    return 0;
}

FIBER_TEST(break_and_continue_end_the_block)
{
    int turns = 0;

    for (int i = 0; i < 3; i++) {
        turns++;
        PX_WITHIN(limit, PX_SEC) {
            if (i == 0)
                break;
            if (i == 1)
                continue;
            EXPECT_EQ(px_deadline(), PX_SEC);
        }
        EXPECT_EQ(px_deadline(), PX_FOREVER);
    }
    EXPECT_EQ(turns, 3);
    return 0;
}

static int returns_from_a_block(int value)
{
    PX_WITHIN(outer, PX_SEC) {
        PX_WITHIN(inner, PX_MSEC) {
            EXPECT_EQ(px_deadline(), PX_MSEC);
            return value;
        }
    }
    return -1;
}

FIBER_TEST(return_and_goto_leave_the_block)
{
    EXPECT_EQ(returns_from_a_block(7), 7);
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    PX_WITHIN(outer, PX_SEC) {
        PX_WITHIN(inner, PX_MSEC) {
            goto out;
        }
        EXPECT(false);
    }
out:
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    return 0;
}

FIBER_TEST(blocks_nest_and_follow_each_other)
{
    PX_WITHIN(a, 30) {
        PX_WITHIN(b, 20) {
            EXPECT_EQ(px_deadline(), 20);
        }
        EXPECT_EQ(px_deadline(), 30);
        PX_WITHIN(b, 10) {
            EXPECT_EQ(px_scope_cancel(&a), 0);
            EXPECT_EQ(px_check(), PX_ECANCELED);
            EXPECT_EQ(px_scope_status(&b), 0);
        }
        EXPECT_EQ(px_check(), PX_ECANCELED);
    }
    EXPECT_EQ(px_check(), 0);
    return 0;
}

FIBER_TEST(a_block_may_leave_its_scope_itself)
{
    px_scope forgotten;

    PX_WITHIN(limit, 0) {
        EXPECT_EQ(px_scope_leave(&limit), PX_ETIMEDOUT);
        EXPECT_EQ(px_yield(), 0);
    }
    EXPECT_EQ(px_yield(), 0);
    PX_WITHIN(limit, 20) {
        EXPECT_EQ(px_scope_enter(&forgotten, 10), 0);
    }
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    EXPECT_EQ(px_scope_leave(&forgotten), PX_EINVAL);
    return 0;
}

static void off_a_fiber_the_block_is_skipped(void **state)
{
    int blocks = 0;

    (void)state;
    PX_WITHIN(limit, PX_SEC) {
        blocks++;
    }
    assert_int_equal(blocks, 0);
}

/* ---- Noticing, by the real clock ---- */

static void spin_until(px_nsec when)
{
    while (px_now() < when)
        ;
}

/* Run `fn` by the real clock. */
static void run_real(px_fn fn)
{
    px_run_options options = {0};

    assert_int_equal(run_fibers_with(options, 1, fn, NULL), 0);
}

/* Enter a scope of `timeout`, and keep running until twice that has gone. */
static void enter_and_overrun(px_scope *scope, px_nsec timeout)
{
    EXPECT_EQ(px_scope_enter(scope, timeout), 0);
    spin_until(px_now() + 2 * timeout); /* counted from after the entry */
}

static int parks_and_yields_late(void *arg UNUSED)
{
    static const px_nsec timeouts[] = {1, PX_USEC, PX_MSEC, 5 * PX_MSEC,
                                       20 * PX_MSEC};
    px_sem none = PX_SEM_INIT(0);
    px_scope scope;

    for (size_t i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
        enter_and_overrun(&scope, timeouts[i]);
        EXPECT_EQ(px_yield(), PX_ETIMEDOUT);
        EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);

        enter_and_overrun(&scope, timeouts[i]);
        EXPECT_EQ(px_sem_down(&none), PX_ETIMEDOUT);
        EXPECT_EQ(px_sem_waiters(&none), 0);
        EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);

        enter_and_overrun(&scope, timeouts[i]);
        EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
        EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);

        enter_and_overrun(&scope, timeouts[i]);
        EXPECT_EQ(px_sleep(0), PX_ETIMEDOUT);
        EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    }
    return 0;
}

static void R91_a_passed_deadline_is_noticed_by_a_call_that_parks(void **state)
{
    (void)state;
    run_real(parks_and_yields_late);
}

/* How many of at most `most` calls succeeded before one failed. */
static int successes(int (*call)(px_sem *sem), int most)
{
    px_sem sem = PX_SEM_INIT(most);
    px_scope scope;
    int n = 0, code = 0;

    enter_and_overrun(&scope, 200 * PX_USEC);
    while (n < most && (code = call(&sem)) == 0)
        n++;
    EXPECT_EQ(code, PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return n;
}

static px_mutex lock = PX_MUTEX_INIT;
static px_waitgroup zero = PX_WAITGROUP_INIT(0);

static int only_locks(px_sem *sem UNUSED)
{
    int err = px_mutex_lock(&lock);

    return err ? err : px_mutex_unlock(&lock);
}

static int only_waits_for_zero(px_sem *sem UNUSED)
{
    return px_waitgroup_wait(&zero);
}

static int only_checks(px_sem *sem UNUSED)
{
    return px_check();
}

static int passes_points_that_need_no_wait(void *arg UNUSED)
{
    /* Wherever in its count of 64 the fiber is. */
    for (int i = 0; i < 70; i++) {
        EXPECT(successes(px_sem_down, 1000) < 64);
        EXPECT(successes(px_sem_wait_available, 1000) < 64);
        EXPECT(successes(only_locks, 1000) < 64);
        EXPECT(successes(only_waits_for_zero, 1000) < 64);
        EXPECT(successes(only_checks, 1000) < 64);
        EXPECT_EQ(px_check(), 0);
    }
    return 0;
}

static void a_passed_deadline_is_noticed_at_the_64th_point_at_last(void **state)
{
    (void)state;
    run_real(passes_points_that_need_no_wait);
}

/* An inner scope was cancelled, and then an outer one's time runs out. */
struct nested {
    px_scope outer, inner;
};

static void cancel_and_overrun(struct nested *n)
{
    px_nsec timeout = 200 * PX_USEC;

    EXPECT_EQ(px_scope_enter(&n->outer, timeout), 0);
    EXPECT_EQ(px_scope_enter(&n->inner, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_cancel(&n->inner), 0);
    spin_until(px_now() + 2 * timeout);
}

static void expect_both_fired(struct nested *n)
{
    EXPECT_EQ(px_scope_status(&n->outer), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&n->inner), PX_ECANCELED);
    EXPECT_EQ(px_scope_leave(&n->outer), PX_ETIMEDOUT);
}

/* How many of at most `most` calls had the inner code before one had the outer
 * one's. */
static int inner_codes(int (*call)(px_sem *sem), int most)
{
    px_sem sem = PX_SEM_INIT(0);
    struct nested n;
    int calls = 0, code = 0;

    cancel_and_overrun(&n);
    while (calls < most && (code = call(&sem)) == PX_ECANCELED)
        calls++;
    EXPECT_EQ(code, PX_ETIMEDOUT);
    expect_both_fired(&n);
    return calls;
}

static int only_yields(px_sem *sem UNUSED)
{
    return px_yield();
}

static int only_sleeps(px_sem *sem UNUSED)
{
    return px_sleep(PX_SEC);
}

static int only_waits_for_a_group(px_sem *sem UNUSED)
{
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    return px_group_wait(&group);
}

static int fails_in_an_inner_scope(void *arg UNUSED)
{
    EXPECT_EQ(inner_codes(only_yields, 1000), 0);
    EXPECT_EQ(inner_codes(only_sleeps, 1000), 0);
    EXPECT_EQ(inner_codes(only_waits_for_a_group, 1000), 0);
    for (int i = 0; i < 70; i++) {
        EXPECT(inner_codes(px_sem_down, 1000) < 64);
        EXPECT(inner_codes(only_locks, 1000) < 64);
        EXPECT(inner_codes(only_waits_for_zero, 1000) < 64);
        EXPECT(inner_codes(only_checks, 1000) < 64);
        EXPECT_EQ(px_check(), 0);
    }
    return 0;
}

static void an_outer_deadline_is_noticed_in_a_fired_inner_scope(void **state)
{
    (void)state;
    run_real(fails_in_an_inner_scope);
}

static int overruns_in_a_cancelled_scope(void *arg UNUSED)
{
    px_scope outer, inner;

    EXPECT_EQ(px_scope_enter(&outer, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_cancel(&outer), 0);
    enter_and_overrun(&inner, 200 * PX_USEC);
    EXPECT_EQ(px_yield(), PX_ECANCELED);
    EXPECT_EQ(px_scope_leave(&inner), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&outer), PX_ECANCELED);
    return 0;
}

static void an_inner_deadline_leaves_the_outer_code(void **state)
{
    (void)state;
    run_real(overruns_in_a_cancelled_scope);
}

static int never_starts(void *arg UNUSED)
{
    EXPECT(false);
    return 0;
}

/* How many spawns were refused with the group's code before one that told of
 * the time that was up: around the group, or around the spawner, who is
 * shielded from both. */
static int refusals(px_nsec around, px_nsec own)
{
    px_scope outer, shield;
    px_group group;
    int calls = 0, code = 0;

    EXPECT_EQ(px_scope_enter(&outer, around), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_scope_enter(&shield, own), 0);
    EXPECT_EQ(px_scope_shield(&shield, true), 0);
    EXPECT_EQ(px_group_cancel(&group), 0);
    spin_until(px_now() + 400 * PX_USEC);
    while (calls < 1000 &&
           (code = px_group_spawn(&group, never_starts, NULL)) == PX_ECANCELED)
        calls++;
    EXPECT_EQ(code, PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&shield), own < PX_SEC ? PX_ETIMEDOUT : 0);
    EXPECT_EQ(px_group_wait(&group), around < PX_SEC ? PX_ETIMEDOUT : 0);
    EXPECT_EQ(px_scope_leave(&outer), around < PX_SEC ? PX_ETIMEDOUT : 0);
    return calls;
}

static int spawns_into_a_fired_group(void *arg UNUSED)
{
    for (int i = 0; i < 70; i++) {
        EXPECT(refusals(200 * PX_USEC, PX_FOREVER) < 64);
        EXPECT(refusals(PX_FOREVER, 200 * PX_USEC) < 64);
        EXPECT_EQ(px_check(), 0);
    }
    return 0;
}

static void a_spawn_that_is_refused_notices_a_deadline(void **state)
{
    (void)state;
    run_real(spawns_into_a_fired_group);
}

static int passes_points_until_time_is_up(void *arg UNUSED)
{
    static const px_nsec timeouts[] = {50 * PX_USEC, PX_MSEC, 3 * PX_MSEC,
                                       9 * PX_MSEC, 30 * PX_MSEC};
    px_sem sem = PX_SEM_INIT(1);
    px_nsec begin;
    px_scope scope;

    for (size_t i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
        begin = px_now();
        EXPECT_EQ(px_scope_enter(&scope, timeouts[i]), 0);
        while (px_yield() == 0 && px_sem_wait_available(&sem) == 0 &&
               px_check() == 0)
            ;
        EXPECT(px_now() - begin >= timeouts[i]);
        EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    }
    return 0;
}

static void a_deadline_is_not_noticed_before_its_time(void **state)
{
    (void)state;
    run_real(passes_points_until_time_is_up);
}

static int leaves_late(void *arg UNUSED)
{
    px_scope scope;

    enter_and_overrun(&scope, PX_MSEC);
    EXPECT_EQ(px_scope_remaining(&scope), 0);
    EXPECT_EQ(px_scope_status(&scope), 0);
    EXPECT_EQ(px_scope_leave(&scope), 0);
    EXPECT_EQ(px_scope_status(&scope), 0);
    EXPECT_EQ(px_yield(), 0);
    return 0;
}

static void a_deadline_that_no_call_noticed_did_not_fire(void **state)
{
    (void)state;
    run_real(leaves_late);
}

static int looks_at_the_time_left(void *arg UNUSED)
{
    static const px_nsec timeouts[] = {PX_MSEC, 10 * PX_MSEC, 100 * PX_MSEC,
                                       PX_SEC,  PX_MINUTE,    600 * PX_MINUTE};
    px_scope scope;
    px_nsec before, left;

    for (size_t i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
        before = px_now();
        EXPECT_EQ(px_scope_enter(&scope, timeouts[i]), 0);
        left = px_scope_remaining(&scope);
        EXPECT(left <= timeouts[i] + timeouts[i] / 64);
        EXPECT(px_deadline() >= before + timeouts[i]); /* never early */
        EXPECT(px_deadline() <= px_now() + timeouts[i] + timeouts[i] / 64);
        EXPECT_EQ(px_scope_leave(&scope), 0);
    }
    return 0;
}

static void a_deadline_is_late_by_a_64th_at_most(void **state)
{
    (void)state;
    run_real(looks_at_the_time_left);
}

/* However quick the clock is that they count from. */
static int looks_at_short_timeouts(void *arg UNUSED)
{
    px_nsec worst = 0;
    px_scope scope;

    for (px_nsec end = px_now() + 20 * PX_MSEC; px_now() < end;) {
        for (px_nsec timeout = 1; timeout < 500 * PX_USEC; timeout *= 2) {
            px_nsec above = -timeout - timeout / 64;

            EXPECT_EQ(px_scope_enter(&scope, timeout), 0);
            above += px_scope_remaining(&scope);
            EXPECT_EQ(px_scope_leave(&scope), 0);
            if (above > worst)
                worst = above;
        }
    }
    EXPECT_EQ(worst, 0);
    return 0;
}

static void short_timeouts_are_late_by_no_more(void **state)
{
    (void)state;
    run_real(looks_at_short_timeouts);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(with_timeout_returns_what_fn_returns),
    PX_TEST(a_call_in_with_timeout_is_cut_short),
    PX_TEST(a_call_in_with_deadline_is_cut_short),
    PX_TEST(a_fn_that_does_not_hand_the_code_on_is_believed),
    PX_TEST(a_fn_without_a_cancellation_point_is_not_interrupted),
    PX_TEST(a_timeout_of_zero_or_less_lets_nothing_through),
    PX_TEST(fn_runs_on_the_calling_fiber),
    PX_TEST(of_nested_timeouts_the_nearest_is_in_force),
    PX_TEST(what_is_spawned_inside_a_timeout_is_outside_it),
    PX_TEST(a_scope_that_fn_has_not_left_is_forgotten),
    PX_TEST(with_cancel_hands_out_a_token),
    PX_TEST(within_is_a_scope_around_a_block),
    PX_TEST(within_runs_its_block_once_even_when_it_has_fired),
    PX_TEST(break_and_continue_end_the_block),
    PX_TEST(return_and_goto_leave_the_block),
    PX_TEST(blocks_nest_and_follow_each_other),
    PX_TEST(a_block_may_leave_its_scope_itself),
    PX_TEST(off_a_fiber_the_block_is_skipped),
    PX_TEST(R91_a_passed_deadline_is_noticed_by_a_call_that_parks),
    PX_TEST(a_passed_deadline_is_noticed_at_the_64th_point_at_last),
    PX_TEST(an_outer_deadline_is_noticed_in_a_fired_inner_scope),
    PX_TEST(an_inner_deadline_leaves_the_outer_code),
    PX_TEST(a_spawn_that_is_refused_notices_a_deadline),
    PX_TEST(a_deadline_is_not_noticed_before_its_time),
    PX_TEST(a_deadline_that_no_call_noticed_did_not_fire),
    PX_TEST(a_deadline_is_late_by_a_64th_at_most),
    PX_TEST(short_timeouts_are_late_by_no_more),
};

PX_TEST_MAIN(tests)
