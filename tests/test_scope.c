/* SPDX-License-Identifier: MIT */
/* test_scope.c - entering, nesting, firing and leaving scopes. */
#include "fiber_test.h"

#include <sys/mman.h>
#include <unistd.h>

/* ---- Entering ---- */

FIBER_TEST(a_scope_that_does_not_fire_changes_nothing)
{
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_status(&scope), 0);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_yield(), 0);
    EXPECT_EQ(px_sleep(9 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_leave(&scope), 0);
    EXPECT_EQ(px_scope_status(&scope), 0);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_now(), 19 * PX_MSEC);
    return 0;
}

FIBER_TEST(a_scope_needs_no_initialisation)
{
    px_scope scope;

    memset(&scope, 0xa5, sizeof(scope));
    EXPECT_EQ(px_scope_enter(&scope, PX_SEC), 0);
    EXPECT_EQ(px_scope_status(&scope), 0);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_scope_leave(&scope), 0);
    return 0;
}

FIBER_TEST(a_scope_can_be_entered_again_after_it_was_left)
{
    px_scope scope;

    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(px_scope_enter(&scope, 0), 0);
        EXPECT_EQ(px_check(), PX_ETIMEDOUT);
        EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
        EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
        EXPECT_EQ(px_scope_status(&scope), 0);
        EXPECT_EQ(px_check(), 0);
        EXPECT_EQ(px_scope_leave(&scope), 0);
    }
    return 0;
}

/* Inside `scope`, which has fired with a timeout: nothing is taken. */
static void expect_timed_out(px_scope *scope)
{
    px_sem sem = PX_SEM_INIT(1);
    px_nsec before = px_now();

    EXPECT_EQ(px_scope_status(scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_remaining(scope), 0);
    EXPECT_EQ(px_sem_down(&sem), PX_ETIMEDOUT);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_status(scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), before);
    EXPECT_EQ(px_sem_down(&sem), 0);
}

FIBER_TEST(a_timeout_of_zero_or_less_has_fired_on_entry)
{
    static const px_nsec due[] = {0, -1, -PX_SEC, INT64_MIN + 1, INT64_MIN};
    px_scope scope;

    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof(due) / sizeof(due[0]); i++) {
            EXPECT_EQ(px_scope_enter(&scope, due[i]), 0);
            expect_timed_out(&scope);
        }
        EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    }
    return 0;
}

FIBER_TEST(a_deadline_in_the_past_has_fired_on_entry)
{
    static const px_nsec past[] = {10 * PX_MSEC - 1, 0, -1, -PX_SEC, INT64_MIN};
    px_scope scope;

    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    for (size_t i = 0; i < sizeof(past) / sizeof(past[0]); i++) {
        EXPECT_EQ(px_scope_enter_until(&scope, past[i]), 0);
        expect_timed_out(&scope);
    }
    return 0;
}

FIBER_TEST(a_deadline_at_this_moment_lets_nothing_park)
{
    px_sem sem = PX_SEM_INIT(0);
    px_scope scope;

    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_enter_until(&scope, px_now()), 0);
    EXPECT_EQ(px_sem_down(&sem), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(a_timeout_past_the_end_of_time_is_for_ever)
{
    static const px_nsec beyond[] = {PX_FOREVER, PX_FOREVER - 1,
                                     PX_FOREVER - 10 * PX_MSEC + 1};
    px_scope scope;

    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
        EXPECT_EQ(px_scope_enter(&scope, beyond[i]), 0);
        EXPECT_EQ(px_deadline(), PX_FOREVER);
        EXPECT_EQ(px_scope_remaining(&scope), PX_FOREVER);
        EXPECT_EQ(px_sleep(10), 0);
        EXPECT_EQ(px_scope_leave(&scope), 0);
    }
    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER - PX_SEC), 0);
    EXPECT_EQ(px_deadline(), px_now() + (PX_FOREVER - PX_SEC));
    EXPECT_EQ(px_scope_remaining(&scope), PX_FOREVER - PX_SEC);
    EXPECT_EQ(px_scope_leave(&scope), 0);
    return 0;
}

FIBER_TEST(enter_until_takes_a_point_in_time)
{
    px_scope scope;

    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_enter_until(&scope, 25 * PX_MSEC), 0);
    EXPECT_EQ(px_deadline(), 25 * PX_MSEC);
    EXPECT_EQ(px_scope_remaining(&scope), 15 * PX_MSEC);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 25 * PX_MSEC);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_enter_until(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    EXPECT_EQ(px_scope_leave(&scope), 0);
    return 0;
}

FIBER_TEST(null_is_refused)
{
    EXPECT_EQ(px_scope_enter(NULL, 0), PX_EINVAL);
    EXPECT_EQ(px_scope_enter_until(NULL, 0), PX_EINVAL);
    EXPECT_EQ(px_scope_leave(NULL), PX_EINVAL);
    EXPECT_EQ(px_scope_cancel(NULL), PX_EINVAL);
    EXPECT_EQ(px_scope_set_deadline(NULL, 0), PX_EINVAL);
    EXPECT_EQ(px_scope_shield(NULL, true), PX_EINVAL);
    EXPECT_EQ(px_scope_status(NULL), PX_EINVAL);
    EXPECT_EQ(px_scope_remaining(NULL), 0);
    EXPECT_EQ(px_with_timeout(PX_SEC, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_with_deadline(PX_SEC, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_with_shield(PX_SEC, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_with_cancel(NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_check(), 0);
    return 0;
}

static int never_called(void *arg UNUSED)
{
    EXPECT(false);
    return 0;
}

static int never_called_with_token(px_scope *token UNUSED, void *arg UNUSED)
{
    EXPECT(false);
    return 0;
}

static void expect_no_scopes_here(void)
{
    px_scope scope;

    memset(&scope, 0, sizeof(scope));
    EXPECT_EQ(px_scope_enter(&scope, PX_SEC), PX_ENOFIBER);
    EXPECT_EQ(px_scope_enter(&scope, 0), PX_ENOFIBER);
    EXPECT_EQ(px_scope_enter_until(&scope, 0), PX_ENOFIBER);
    EXPECT_EQ(px_scope_leave(&scope), PX_EINVAL); /* nobody is inside */
    EXPECT_EQ(px_with_timeout(PX_SEC, never_called, NULL), PX_ENOFIBER);
    EXPECT_EQ(px_with_deadline(PX_SEC, never_called, NULL), PX_ENOFIBER);
    EXPECT_EQ(px_with_shield(PX_SEC, never_called, NULL), PX_ENOFIBER);
    EXPECT_EQ(px_with_cancel(never_called_with_token, NULL), PX_ENOFIBER);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    /* A bad argument comes before that. */
    EXPECT_EQ(px_scope_enter(NULL, 0), PX_EINVAL);
    EXPECT_EQ(px_with_timeout(PX_SEC, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_with_cancel(NULL, NULL), PX_EINVAL);
}

static void off_a_fiber_there_are_no_scopes(void **state)
{
    (void)state;
    expect_no_scopes_here();
}

/* The main fiber, which on_deadlock frees after its own checks. */
static void look_and_cancel(void *ctx)
{
    expect_no_scopes_here();
    EXPECT_EQ(px_scope_leave(ctx), PX_EPERM);
    EXPECT_EQ(px_scope_cancel(ctx), 0);
    EXPECT_EQ(px_scope_status(ctx), PX_ECANCELED);
}

static int waits_for_the_callback(void *arg)
{
    px_scope *scope = arg;

    EXPECT_EQ(px_scope_enter(scope, PX_FOREVER), 0);
    EXPECT_EQ(px_sleep(PX_FOREVER), PX_ECANCELED);
    EXPECT_EQ(px_scope_leave(scope), PX_ECANCELED);
    EXPECT_EQ(px_yield(), 0);
    return 7;
}

static void a_scope_can_be_cancelled_off_fiber_in_on_deadlock(void **state)
{
    px_scope scope;
    px_run_options options = {.on_deadlock = look_and_cancel, .ctx = &scope};

    (void)state;
    assert_int_equal(
        run_fibers_with(options, 0, waits_for_the_callback, &scope), 7);
}

/* ---- Firing ---- */

FIBER_TEST(a_deadline_fires_at_its_moment)
{
    static const px_nsec lengths[] = {
        1, 2, 63, 64, 65, PX_USEC, PX_MSEC + 1, PX_SEC, 24 * 60 * PX_MINUTE};
    px_nsec start_time;
    px_scope scope;

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        start_time = px_now();
        EXPECT_EQ(px_scope_enter(&scope, lengths[i]), 0);
        EXPECT_EQ(px_deadline(), start_time + lengths[i]);
        EXPECT_EQ(px_scope_remaining(&scope), lengths[i]);
        EXPECT_EQ(px_sleep(PX_FOREVER), PX_ETIMEDOUT);
        EXPECT_EQ(px_now(), start_time + lengths[i]);
        EXPECT_EQ(px_scope_remaining(&scope), 0);
        EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    }
    return 0;
}

FIBER_TEST(a_fired_scope_stays_fired_until_it_is_left)
{
    px_sem sem = PX_SEM_INIT(1);
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    for (int i = 0; i < 1000; i++) {
        EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
        EXPECT_EQ(px_yield(), PX_ETIMEDOUT);
        EXPECT_EQ(px_sem_down(&sem), PX_ETIMEDOUT);
        EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    }
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_sem_down(&sem), 0);
    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    return 0;
}

FIBER_TEST(what_fires_first_decides_the_status)
{
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    EXPECT_EQ(px_scope_status(&scope), PX_ECANCELED);
    EXPECT_EQ(px_scope_set_deadline(&scope, -1), 0);
    EXPECT_EQ(px_check(), PX_ECANCELED);
    EXPECT_EQ(px_scope_leave(&scope), PX_ECANCELED);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_status(&scope), PX_ECANCELED);

    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    EXPECT_EQ(px_scope_status(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(cancel_interrupts_the_fiber_that_is_parked_inside)
{
    struct sleeper s = {.timeout = PX_FOREVER, .length = PX_SEC};

    start(sleeps_in_a_scope, &s);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_cancel(&s.scope), 0);
    EXPECT_EQ(px_scope_status(&s.scope), PX_ECANCELED);
    EXPECT_EQ(s.woke, 0); /* cancel switches to nobody */
    EXPECT_EQ(px_scope_cancel(&s.scope), 0);
    settle();
    EXPECT_EQ(s.woke, 10 * PX_MSEC);
    EXPECT_EQ(s.slept, PX_ECANCELED);
    EXPECT_EQ(s.left, PX_ECANCELED);
    return 0;
}

FIBER_TEST(a_fiber_may_cancel_a_scope_it_is_in)
{
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    EXPECT_EQ(px_yield(), PX_ECANCELED);
    EXPECT_EQ(px_scope_leave(&scope), PX_ECANCELED);
    EXPECT_EQ(px_yield(), 0);
    return 0;
}

FIBER_TEST(cancel_and_set_deadline_do_nothing_after_leave)
{
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_leave(&scope), 0);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    EXPECT_EQ(px_scope_set_deadline(&scope, -1), 0);
    EXPECT_EQ(px_scope_status(&scope), 0);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT_EQ(px_scope_status(&scope), 0);
    return 0;
}

/* Waits for a permit in a scope; keeps the codes of both and of the next
 * cancellation point. */
struct taker {
    px_sem *sem;
    px_scope scope;
    int took, next, left;
};

static int takes_in_a_scope(void *arg)
{
    struct taker *self = arg;

    EXPECT_EQ(px_scope_enter(&self->scope, PX_FOREVER), 0);
    self->took = px_sem_down(self->sem);
    self->next = px_check();
    self->left = px_scope_leave(&self->scope);
    return 0;
}

FIBER_TEST(a_grant_stands_and_the_next_point_fails)
{
    px_sem sem = PX_SEM_INIT(0);
    struct taker a = {.sem = &sem}, b = {.sem = &sem};

    start(takes_in_a_scope, &a);
    start(takes_in_a_scope, &b);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_scope_cancel(&a.scope), 0);
    EXPECT_EQ(px_sem_waiters(&sem), 1);
    settle();
    EXPECT_EQ(a.took, 0);
    EXPECT_EQ(a.next, PX_ECANCELED);
    EXPECT_EQ(a.left, PX_ECANCELED); /* though all its calls succeeded */
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_scope_set_deadline(&b.scope, px_now()), 0);
    settle();
    EXPECT_EQ(b.took, 0);
    EXPECT_EQ(b.next, PX_ETIMEDOUT);
    EXPECT_EQ(b.left, PX_ETIMEDOUT);
    EXPECT_EQ(px_sem_count(&sem), 0);
    return 0;
}

FIBER_TEST(an_interrupted_waiter_is_never_counted_by_a_release)
{
    px_sem sem = PX_SEM_INIT(0);
    struct taker a = {.sem = &sem};

    start(takes_in_a_scope, &a);
    EXPECT_EQ(px_sem_waiters(&sem), 1);
    EXPECT_EQ(px_scope_cancel(&a.scope), 0);
    EXPECT_EQ(px_sem_waiters(&sem), 0); /* at that moment */
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_EQ(a.took, PX_ECANCELED);
    EXPECT_EQ(px_sem_count(&sem), 1);
    return 0;
}

/* Sleeps exactly as long as its scope allows. */
FIBER_TEST(a_deadline_that_falls_on_a_wake_is_met_by_the_next_call)
{
    px_scope scope;
    int err;

    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    err = px_sleep(10 * PX_MSEC);
    EXPECT(err == 0 || err == PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(px_yield(), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

/* ---- Nesting ---- */

FIBER_TEST(with_several_fired_the_outermost_decides_the_code)
{
    px_scope outer, middle, inner;

    EXPECT_EQ(px_scope_enter(&outer, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_enter(&middle, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_enter(&inner, 0), 0);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_cancel(&middle), 0);
    EXPECT_EQ(px_check(), PX_ECANCELED);
    EXPECT_EQ(px_scope_set_deadline(&outer, -1), 0);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&inner), PX_ETIMEDOUT);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&middle), PX_ECANCELED);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&outer), PX_ETIMEDOUT);
    EXPECT_EQ(px_check(), 0);
    return 0;
}

FIBER_TEST(an_inner_scope_that_fires_leaves_the_outer_alone)
{
    px_scope outer, inner;

    EXPECT_EQ(px_scope_enter(&outer, 50 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_enter(&inner, 20 * PX_MSEC), 0);
    EXPECT_EQ(px_deadline(), 20 * PX_MSEC);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 20 * PX_MSEC);
    EXPECT_EQ(px_scope_leave(&inner), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_status(&outer), 0);
    EXPECT_EQ(px_deadline(), 50 * PX_MSEC);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 50 * PX_MSEC);
    EXPECT_EQ(px_scope_leave(&outer), PX_ETIMEDOUT);
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    return 0;
}

FIBER_TEST(an_outer_deadline_reaches_in_and_is_not_the_inners)
{
    px_scope outer, inner;

    EXPECT_EQ(px_scope_enter(&outer, 20 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_enter(&inner, 50 * PX_MSEC), 0);
    EXPECT_EQ(px_deadline(), 20 * PX_MSEC);
    EXPECT_EQ(px_scope_remaining(&inner), 50 * PX_MSEC);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 20 * PX_MSEC);
    EXPECT_EQ(px_scope_status(&inner), 0);
    EXPECT_EQ(px_scope_status(&outer), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&inner), 0);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&outer), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(a_scope_entered_inside_a_fired_one_is_inside_it)
{
    px_scope outer, inner;

    EXPECT_EQ(px_scope_enter(&outer, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_cancel(&outer), 0);
    EXPECT_EQ(px_scope_enter(&inner, PX_SEC), 0);
    EXPECT_EQ(px_sleep(1), PX_ECANCELED);
    EXPECT_EQ(px_scope_status(&inner), 0);
    EXPECT_EQ(px_scope_leave(&inner), 0);
    EXPECT_EQ(px_scope_enter(&inner, 0), 0);
    EXPECT_EQ(px_sleep(1), PX_ECANCELED);
    EXPECT_EQ(px_scope_leave(&inner), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&outer), PX_ECANCELED);
    return 0;
}

FIBER_TEST(px_deadline_is_the_nearest)
{
    static const px_nsec timeouts[] = {50, PX_FOREVER, 30, 40, 20};
    static const px_nsec nearest[] = {50, 50, 30, 30, 20};
    px_scope scopes[5];

    EXPECT_EQ(px_deadline(), PX_FOREVER);
    for (int i = 0; i < 5; i++) {
        EXPECT_EQ(px_scope_enter(&scopes[i], timeouts[i]), 0);
        EXPECT_EQ(px_deadline(), nearest[i]);
    }
    for (int i = 4; i >= 0; i--) {
        EXPECT_EQ(px_deadline(), nearest[i]);
        EXPECT_EQ(px_scope_leave(&scopes[i]), 0);
    }
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    return 0;
}

enum { DEEP = 100000 };

/* At the bottom of many scopes, on the smallest stack there is. */
static int parks_deep_inside(void *arg)
{
    px_scope *scopes = arg;

    for (int i = 0; i < DEEP; i++)
        EXPECT_EQ(px_scope_enter(&scopes[i], PX_FOREVER), 0);
    note("%s ", err(px_sleep(PX_FOREVER)));
    EXPECT_EQ(px_scope_shield(&scopes[DEEP / 2], true), 0);
    note("%s ", err(px_check()));
    EXPECT_EQ(px_scope_shield(&scopes[DEEP / 2], false), 0);
    note("%s ", err(px_check()));
    for (int i = DEEP - 1; i >= 0; i--)
        EXPECT_EQ(px_scope_leave(&scopes[i]), i ? 0 : PX_ECANCELED);
    note("%s ", err(px_check()));
    return 0;
}

FIBER_TEST(R90_a_hundred_thousand_nested_scopes_need_no_stack)
{
    px_scope *scopes = calloc(DEEP, sizeof(*scopes));
    px_spawn_options options = {.stack_size = 1};
    px_fiber *fiber;

    EXPECT_EQ(px_spawn_with(&fiber, &options, parks_deep_inside, scopes), 0);
    EXPECT_EQ(px_scope_cancel(&scopes[0]), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_LOG("canceled ok canceled ok ");
    free(scopes);
    return 0;
}

static int waits_deep_inside(void *arg)
{
    px_scope *scopes = arg;

    for (int i = 0; i < DEEP; i++)
        EXPECT_EQ(px_scope_enter(&scopes[i], PX_SEC + i), 0);
    EXPECT_EQ(px_deadline(), PX_SEC);
    note("%s ", err(px_sleep(PX_FOREVER)));
    note("%d ", (int)(px_now() / PX_MSEC));
    for (int i = DEEP - 1; i >= 0; i--)
        EXPECT_EQ(px_scope_leave(&scopes[i]), i ? 0 : PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(a_deadline_moves_above_a_hundred_thousand_nested_scopes)
{
    px_scope *scopes = calloc(DEEP, sizeof(*scopes));
    px_spawn_options options = {.stack_size = 1};
    px_fiber *fiber;

    EXPECT_EQ(px_spawn_with(&fiber, &options, waits_deep_inside, scopes), 0);
    EXPECT_EQ(px_scope_set_deadline(&scopes[0], 5 * PX_MSEC), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_LOG("timedout 5 ");
    free(scopes);
    return 0;
}

/* ---- Leaving ---- */

FIBER_TEST(scopes_are_left_in_reverse_order)
{
    px_scope outer, inner, never;

    memset(&never, 0, sizeof(never));
    EXPECT_EQ(px_scope_leave(&never), PX_EINVAL);
    EXPECT_EQ(px_scope_enter(&outer, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_enter(&inner, PX_SEC), 0);
    EXPECT_EQ(px_scope_leave(&never), PX_EINVAL);
    EXPECT_EQ(px_scope_leave(&outer), PX_EINVAL);
    EXPECT_EQ(px_deadline(), 10 * PX_MSEC); /* both are still entered */
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(px_scope_leave(&inner), 0);
    EXPECT_EQ(px_scope_leave(&inner), PX_EINVAL);
    EXPECT_EQ(px_scope_leave(&outer), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&outer), PX_EINVAL);
    EXPECT_EQ(px_check(), 0);
    return 0;
}

static int leaves_anothers(void *arg)
{
    px_scope own;

    EXPECT_EQ(px_scope_leave(arg), PX_EPERM);
    EXPECT_EQ(px_scope_enter(&own, PX_SEC), 0);
    EXPECT_EQ(px_scope_leave(arg), PX_EPERM);
    EXPECT_EQ(px_scope_leave(&own), 0);
    return 0;
}

FIBER_TEST(a_scope_is_left_by_its_own_fiber)
{
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_await(start_handle(leaves_anothers, &scope), NULL), 0);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

/* Two scopes, one with a deadline that is armed, and no leave. */
static int returns_inside(void *arg)
{
    px_scope *scopes = arg;

    EXPECT_EQ(px_scope_enter(&scopes[0], 10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_enter(&scopes[1], PX_FOREVER), 0);
    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    return 5;
}

FIBER_TEST(scopes_that_a_body_returns_inside_are_forgotten)
{
    px_scope *scopes = malloc(2 * sizeof(*scopes));
    px_fiber *fiber = start_handle(returns_inside, scopes);
    int value = 0;

    EXPECT_EQ(px_sleep(2 * PX_MSEC), 0);
    EXPECT(px_is_done(fiber));
    memset(scopes, 0xa5, 2 * sizeof(*scopes));
    free(scopes);
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_sleep(50 * PX_MSEC), 0);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, 5);
    return 0;
}

static int enters_and_returns(void *arg)
{
    return px_scope_enter(arg, PX_SEC);
}

static int sleeps_a_second(void *arg UNUSED)
{
    return px_sleep(PX_SEC);
}

/* It has the stack, and may have the record, of one that left a scope behind:
 * whatever cancels it must not go there. */
FIBER_TEST(a_scope_that_was_forgotten_is_not_the_next_fibers)
{
    px_scope forgotten, blank;
    px_fiber *fiber;
    int value = 0;

    memset(&blank, 0xa5, sizeof(blank));
    for (int i = 0; i < 3; i++) {
        start(enters_and_returns, &forgotten);
        memcpy(&forgotten, &blank, sizeof(blank));
        fiber = start_handle(sleeps_a_second, NULL);
        EXPECT_EQ(px_cancel(fiber), 0);
        EXPECT_EQ(px_await(fiber, &value), 0);
        EXPECT_EQ(value, PX_ECANCELED);
        EXPECT(memcmp(&forgotten, &blank, sizeof(blank)) == 0);
    }
    return 0;
}

static int releases_anothers(void *arg)
{
    px_scope own;

    EXPECT_EQ(px_scope_enter(&own, PX_SEC), 0);
    px_scope_guard_release(arg);
    EXPECT(px_deadline() != PX_FOREVER);
    EXPECT_EQ(px_scope_leave(&own), 0);
    return 0;
}

FIBER_TEST(a_guard_does_nothing_to_the_next_fiber_of_a_record)
{
    px_scope forgotten;

    for (int i = 0; i < 3; i++) {
        start(enters_and_returns, &forgotten);
        start(releases_anothers, &forgotten);
    }
    return 0;
}

static int does_nothing(void *arg UNUSED)
{
    return 0;
}

FIBER_TEST(nothing_becomes_of_a_scope_whose_fiber_has_ended)
{
    px_scope forgotten;
    px_fiber *fiber = start_handle(enters_and_returns, &forgotten);

    start(does_nothing, NULL); /* by now the stack has gone back */
    EXPECT_EQ(px_scope_cancel(&forgotten), 0);
    EXPECT_EQ(px_scope_set_deadline(&forgotten, 1), 0);
    EXPECT_EQ(px_scope_shield(&forgotten, true), PX_EINVAL);
    EXPECT_EQ(px_scope_status(&forgotten), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(px_scope_cancel(&forgotten), 0);
    return 0;
}

/* Each guard ends once, whatever those around it have done. */
FIBER_TEST(a_guard_of_a_forgotten_scope_leaves_nothing)
{
    PX_WITHIN(outer, PX_FOREVER) {
        PX_WITHIN(middle, PX_FOREVER) {
            PX_WITHIN(inner, 10 * PX_MSEC) {
                EXPECT_EQ(px_scope_cancel(&outer), 0);
                px_scope_guard_release(&outer);
                EXPECT_EQ(px_check(), 0);
                EXPECT_EQ(px_deadline(), PX_FOREVER);
            }
            EXPECT_EQ(px_check(), 0);
            EXPECT_EQ(px_deadline(), PX_FOREVER);
        }
        EXPECT_EQ(px_check(), 0);
    }
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    return 0;
}

/* A guard inside is not disturbed by what was forgotten beside it. */
FIBER_TEST(a_forgotten_scope_can_be_entered_again)
{
    px_scope outer, forgotten;

    EXPECT_EQ(px_scope_enter(&outer, PX_SEC), 0);
    EXPECT_EQ(px_scope_enter(&forgotten, PX_FOREVER), 0);
    px_scope_guard_release(&outer);
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    PX_WITHIN(other, 2 * PX_SEC) {
        px_scope_guard_release(&forgotten);
        EXPECT_EQ(px_deadline(), px_now() + 2 * PX_SEC);
        EXPECT_EQ(px_scope_enter(&forgotten, 10 * PX_MSEC), 0);
        EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
        px_scope_guard_release(&forgotten);
        EXPECT_EQ(px_check(), 0);
    }
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    return 0;
}

/* Its scopes lie where the next call's frame will be. */
static int returns_inside_its_frame(void *arg UNUSED)
{
    px_scope outer, inner;

    EXPECT_EQ(px_scope_enter(&outer, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_enter(&inner, PX_FOREVER), 0);
    EXPECT_EQ(px_yield(), 0);
    return 6;
}

static int returns_inside_one(void *arg UNUSED)
{
    px_scope only;

    return px_scope_enter(&only, 10 * PX_MSEC);
}

FIBER_TEST(scopes_in_the_frame_that_a_return_frees_are_forgotten)
{
    static const px_fn bodies[] = {returns_inside_its_frame,
                                   returns_inside_one};
    static const int values[] = {6, 0};
    int value = -1;

    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(px_await(start_handle(bodies[i], NULL), &value), 0);
        EXPECT_EQ(value, values[i]);
        EXPECT_EQ(px_with_timeout(PX_SEC, bodies[i], NULL), values[i]);
        EXPECT_EQ(px_deadline(), PX_FOREVER);
        EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    }
    return 0;
}

/* Its memory says nothing: what is looked at is the chain. */
FIBER_TEST(a_scope_that_is_entered_is_not_entered_again)
{
    px_scope outer, inner;
    px_group group;

    EXPECT_EQ(px_scope_enter(&outer, PX_SEC), 0);
    EXPECT_EQ(px_scope_enter(&inner, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_enter(&inner, PX_MSEC), PX_EINVAL);
    EXPECT_EQ(px_scope_enter(&outer, PX_MSEC), PX_EINVAL);
    EXPECT_EQ(px_scope_enter_until(&outer, PX_MSEC), PX_EINVAL);
    EXPECT_EQ(px_deadline(), PX_SEC);
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_open(&group), PX_EINVAL);
    EXPECT_EQ(px_group_wait(&group), 0);
    EXPECT_EQ(px_scope_leave(&inner), 0);
    EXPECT_EQ(px_scope_leave(&outer), 0);
    return 0;
}

static int enters_inside(void *arg)
{
    return px_scope_enter(arg, 10 * PX_MSEC);
}

static px_scope left_by_an_earlier_run;

static void expect_not_entered(px_scope *scope)
{
    EXPECT_EQ(px_scope_set_deadline(scope, 1), 0);
    EXPECT_EQ(px_scope_cancel(scope), 0);
    EXPECT_EQ(px_scope_status(scope), 0);
}

/* The fiber goes on, but not inside it. */
FIBER_TEST(a_scope_inside_one_that_was_left_is_forgotten)
{
    EXPECT_EQ(px_with_timeout(PX_SEC, enters_inside, &left_by_an_earlier_run),
              0);
    expect_not_entered(&left_by_an_earlier_run);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    return 0;
}

static int meets_it_again(void *arg UNUSED)
{
    expect_not_entered(&left_by_an_earlier_run);
    return px_sleep(PX_SEC);
}

static void a_scope_of_an_earlier_run_is_forgotten(void **state)
{
    a_scope_inside_one_that_was_left_is_forgotten(state);
    expect_not_entered(&left_by_an_earlier_run);
    run_fibers(meets_it_again, NULL);
}

/* In a page that is no more by the next run. */
static px_scope *around;

static int enters_inside_a_page(void *arg UNUSED)
{
    EXPECT_EQ(px_scope_enter(around, PX_FOREVER), 0);
    return px_scope_enter(&left_by_an_earlier_run, PX_FOREVER);
}

static int releases_what_was_left(void *arg UNUSED)
{
    px_scope own;

    EXPECT_EQ(px_scope_enter(&own, PX_SEC), 0);
    px_scope_guard_release(&left_by_an_earlier_run);
    EXPECT_EQ(px_deadline(), PX_SEC);
    EXPECT_EQ(px_scope_leave(&own), 0);
    return 0;
}

static void a_guard_of_an_earlier_run_does_nothing(void **state UNUSED)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    around = mmap(NULL, page, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(around != MAP_FAILED);
    run_fibers(enters_inside_a_page, NULL);
    assert_int_equal(munmap(around, page), 0);
    run_fibers(releases_what_was_left, NULL);
    assert_log("");
}

static int takes_anothers_guard(void *arg)
{
    px_scope of_none = px_scope_not_entered();

    px_scope_guard_release(arg);
    px_scope_guard_release(NULL);
    px_scope_guard_release(&of_none);
    return 0;
}

FIBER_TEST(a_guard_leaves_what_it_belongs_to)
{
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    start(takes_anothers_guard, &scope);
    EXPECT_EQ(px_deadline(), 10 * PX_MSEC);
    px_scope_guard_release(&scope);
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    return 0;
}

static int notes_after_20ms(void *arg UNUSED)
{
    note("%s ", err(px_sleep(20 * PX_MSEC)));
    return 0;
}

static int main_returns_inside(void *arg)
{
    start(notes_after_20ms, NULL);
    return returns_inside(arg);
}

static void the_main_fiber_may_return_inside_scopes(void **state)
{
    px_scope *scopes = malloc(2 * sizeof(*scopes));
    px_run_options options = {0};

    (void)state;
    assert_int_equal(run_fibers_with(options, 0, main_returns_inside, scopes),
                     5);
    free(scopes);
    assert_log("ok ");
}

/* ---- Moving the deadline ---- */

/* Starts `s` asleep for a second, waits 10 ms and moves its deadline. */
static void move_while_parked(struct sleeper *s, px_nsec timeout, px_nsec to)
{
    px_nsec begin = px_now();

    *s = (struct sleeper){.timeout = timeout, .length = PX_SEC};
    start(sleeps_in_a_scope, s);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(s->woke, 0);
    EXPECT_EQ(
        px_scope_set_deadline(&s->scope, to == PX_FOREVER ? to : begin + to),
        0);
    EXPECT_EQ(s->woke, 0); /* set_deadline switches to nobody */
    EXPECT_EQ(px_sleep(2 * PX_SEC), 0);
    s->woke -= begin;
}

FIBER_TEST(a_parked_fibers_deadline_can_be_moved)
{
    static const struct {
        px_nsec timeout, to, woke;
        int slept;
    } cases[] = {
        {50 * PX_MSEC, 20 * PX_MSEC, 20 * PX_MSEC, PX_ETIMEDOUT},
        {50 * PX_MSEC, 90 * PX_MSEC, 90 * PX_MSEC, PX_ETIMEDOUT},
        {50 * PX_MSEC, 50 * PX_MSEC, 50 * PX_MSEC, PX_ETIMEDOUT},
        {50 * PX_MSEC, PX_FOREVER, PX_SEC, 0},
        {50 * PX_MSEC, 2 * PX_SEC, PX_SEC, 0},
        {PX_FOREVER, 30 * PX_MSEC, 30 * PX_MSEC, PX_ETIMEDOUT},
        {50 * PX_MSEC, 10 * PX_MSEC, 10 * PX_MSEC, PX_ETIMEDOUT},
        {50 * PX_MSEC, 10 * PX_MSEC - 1, 10 * PX_MSEC, PX_ETIMEDOUT},
        {50 * PX_MSEC, 0, 10 * PX_MSEC, PX_ETIMEDOUT},
        {PX_FOREVER, 1, 10 * PX_MSEC, PX_ETIMEDOUT},
    };
    struct sleeper s;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        move_while_parked(&s, cases[i].timeout, cases[i].to);
        EXPECT_EQ(s.woke, cases[i].woke);
        EXPECT_EQ(s.slept, cases[i].slept);
        EXPECT_EQ(s.left, cases[i].slept);
    }
    return 0;
}

FIBER_TEST(a_deadline_moved_to_the_past_has_fired_at_once)
{
    static const px_nsec past[] = {PX_MSEC, 0, -1, INT64_MIN};
    px_scope scope;

    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    for (size_t i = 0; i < sizeof(past) / sizeof(past[0]); i++) {
        EXPECT_EQ(px_scope_enter(&scope, PX_SEC), 0);
        EXPECT_EQ(px_scope_set_deadline(&scope, past[i]), 0);
        expect_timed_out(&scope);
    }
    return 0;
}

FIBER_TEST(a_running_fiber_moves_its_own_deadline)
{
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_set_deadline(&scope, 30 * PX_MSEC), 0);
    EXPECT_EQ(px_deadline(), 30 * PX_MSEC);
    EXPECT_EQ(px_scope_remaining(&scope), 30 * PX_MSEC);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_set_deadline(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    EXPECT_EQ(px_scope_remaining(&scope), PX_FOREVER);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_set_deadline(&scope, 45 * PX_MSEC), 0);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 45 * PX_MSEC);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(a_fired_scopes_deadline_cannot_be_moved)
{
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_EQ(px_scope_set_deadline(&scope, PX_SEC), 0);
    EXPECT_EQ(px_scope_status(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_sleep(1), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    EXPECT_EQ(px_scope_set_deadline(&scope, 0), 0);
    EXPECT_EQ(px_sleep(1), PX_ECANCELED);
    EXPECT_EQ(px_scope_leave(&scope), PX_ECANCELED);
    return 0;
}

FIBER_TEST(an_outer_deadline_moves_under_inner_scopes)
{
    px_scope outer, inner;

    EXPECT_EQ(px_scope_enter(&outer, 50), 0);
    EXPECT_EQ(px_scope_enter(&inner, 40), 0);
    EXPECT_EQ(px_scope_set_deadline(&outer, 10), 0);
    EXPECT_EQ(px_deadline(), 10);
    EXPECT_EQ(px_scope_set_deadline(&outer, 60), 0);
    EXPECT_EQ(px_deadline(), 40);
    EXPECT_EQ(px_scope_set_deadline(&inner, 70), 0);
    EXPECT_EQ(px_deadline(), 60);
    EXPECT_EQ(px_scope_set_deadline(&outer, PX_FOREVER), 0);
    EXPECT_EQ(px_deadline(), 70);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 70);
    EXPECT_EQ(px_scope_leave(&inner), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&outer), 0);
    return 0;
}

/* Wakes once, enters a scope of its own and sleeps on. */
struct waker {
    px_sem sem;
    px_scope outer, inner;
    px_nsec woke;
};

static int sleeps_in_two_scopes(void *arg)
{
    struct waker *self = arg;

    EXPECT_EQ(px_scope_enter(&self->outer, 100 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_enter(&self->inner, 500 * PX_MSEC), 0);
    EXPECT_EQ(px_sem_down(&self->sem), 0);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    self->woke = px_now();
    EXPECT_EQ(px_scope_leave(&self->inner), 0);
    EXPECT_EQ(px_scope_leave(&self->outer), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(a_moved_deadline_holds_for_the_next_wait_too)
{
    struct waker w = {.sem = PX_SEM_INIT(0)};

    start(sleeps_in_two_scopes, &w);
    EXPECT_EQ(px_scope_set_deadline(&w.outer, 50 * PX_MSEC), 0);
    EXPECT_EQ(px_sem_up(&w.sem), 0); /* it is ready, not parked */
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT_EQ(w.woke, 50 * PX_MSEC);

    w = (struct waker){.sem = PX_SEM_INIT(0)};
    start(sleeps_in_two_scopes, &w);
    EXPECT_EQ(px_sem_up(&w.sem), 0);
    EXPECT_EQ(px_scope_set_deadline(&w.outer, PX_SEC + 70 * PX_MSEC), 0);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT_EQ(w.woke, PX_SEC + 70 * PX_MSEC);
    return 0;
}

FIBER_TEST(remaining_counts_down_to_zero)
{
    struct sleeper s = {.timeout = 30 * PX_MSEC, .length = PX_SEC};

    start(sleeps_in_a_scope, &s);
    EXPECT_EQ(px_scope_remaining(&s.scope), 30 * PX_MSEC);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_remaining(&s.scope), 20 * PX_MSEC);
    EXPECT_EQ(px_sleep(20 * PX_MSEC - 1), 0);
    EXPECT_EQ(px_scope_remaining(&s.scope), 1);
    EXPECT_EQ(px_sleep(10), 0);
    EXPECT_EQ(px_scope_remaining(&s.scope), 0);
    EXPECT_EQ(s.left, PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(errno_is_left_alone)
{
    px_scope scope;

    errno = 77;
    EXPECT_EQ(px_scope_enter(&scope, PX_MSEC), 0);
    EXPECT_EQ(px_scope_enter(NULL, PX_MSEC), PX_EINVAL);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_set_deadline(&scope, 0), 0);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    EXPECT_EQ(px_scope_shield(&scope, true), 0);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_EINVAL);
    EXPECT_EQ(errno, 77);
    return 0;
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_scope_that_does_not_fire_changes_nothing),
    PX_TEST(a_scope_needs_no_initialisation),
    PX_TEST(a_scope_can_be_entered_again_after_it_was_left),
    PX_TEST(a_timeout_of_zero_or_less_has_fired_on_entry),
    PX_TEST(a_deadline_in_the_past_has_fired_on_entry),
    PX_TEST(a_deadline_at_this_moment_lets_nothing_park),
    PX_TEST(a_timeout_past_the_end_of_time_is_for_ever),
    PX_TEST(enter_until_takes_a_point_in_time),
    PX_TEST(null_is_refused),
    PX_TEST(off_a_fiber_there_are_no_scopes),
    PX_TEST(a_scope_can_be_cancelled_off_fiber_in_on_deadlock),
    PX_TEST(a_deadline_fires_at_its_moment),
    PX_TEST(a_fired_scope_stays_fired_until_it_is_left),
    PX_TEST(what_fires_first_decides_the_status),
    PX_TEST(cancel_interrupts_the_fiber_that_is_parked_inside),
    PX_TEST(a_fiber_may_cancel_a_scope_it_is_in),
    PX_TEST(cancel_and_set_deadline_do_nothing_after_leave),
    PX_TEST(a_grant_stands_and_the_next_point_fails),
    PX_TEST(an_interrupted_waiter_is_never_counted_by_a_release),
    PX_TEST(a_deadline_that_falls_on_a_wake_is_met_by_the_next_call),
    PX_TEST(with_several_fired_the_outermost_decides_the_code),
    PX_TEST(an_inner_scope_that_fires_leaves_the_outer_alone),
    PX_TEST(an_outer_deadline_reaches_in_and_is_not_the_inners),
    PX_TEST(a_scope_entered_inside_a_fired_one_is_inside_it),
    PX_TEST(px_deadline_is_the_nearest),
    PX_TEST(R90_a_hundred_thousand_nested_scopes_need_no_stack),
    PX_TEST(a_deadline_moves_above_a_hundred_thousand_nested_scopes),
    PX_TEST(scopes_are_left_in_reverse_order),
    PX_TEST(a_scope_is_left_by_its_own_fiber),
    PX_TEST(scopes_that_a_body_returns_inside_are_forgotten),
    PX_TEST(a_guard_of_a_forgotten_scope_leaves_nothing),
    PX_TEST(a_forgotten_scope_can_be_entered_again),
    PX_TEST(scopes_in_the_frame_that_a_return_frees_are_forgotten),
    PX_TEST(a_scope_that_was_forgotten_is_not_the_next_fibers),
    PX_TEST(nothing_becomes_of_a_scope_whose_fiber_has_ended),
    PX_TEST(a_guard_does_nothing_to_the_next_fiber_of_a_record),
    PX_TEST(a_guard_of_an_earlier_run_does_nothing),
    PX_TEST(a_scope_that_is_entered_is_not_entered_again),
    PX_TEST(a_scope_inside_one_that_was_left_is_forgotten),
    PX_TEST(a_scope_of_an_earlier_run_is_forgotten),
    PX_TEST(a_guard_leaves_what_it_belongs_to),
    PX_TEST(the_main_fiber_may_return_inside_scopes),
    PX_TEST(a_parked_fibers_deadline_can_be_moved),
    PX_TEST(a_deadline_moved_to_the_past_has_fired_at_once),
    PX_TEST(a_running_fiber_moves_its_own_deadline),
    PX_TEST(a_fired_scopes_deadline_cannot_be_moved),
    PX_TEST(an_outer_deadline_moves_under_inner_scopes),
    PX_TEST(a_moved_deadline_holds_for_the_next_wait_too),
    PX_TEST(remaining_counts_down_to_zero),
    PX_TEST(errno_is_left_alone),
};

PX_TEST_MAIN(tests)
