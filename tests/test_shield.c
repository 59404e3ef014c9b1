/* SPDX-License-Identifier: MIT */
/*
 * test_shield.c - shields: what is outside still fires, but does not reach in.
 */
#include "fiber_test.h"

/* A fiber asleep in `inner` inside `outer`. */
struct shielded {
    px_nsec outer_timeout, inner_timeout, length;
    bool on; /* inner is shielded from the start */
    px_scope outer, inner;
    int slept, next;
    int left_inner, left_outer;
    px_nsec woke;
};

static int sleeps_shielded(void *arg)
{
    struct shielded *self = arg;

    EXPECT_EQ(px_scope_enter(&self->outer, self->outer_timeout), 0);
    EXPECT_EQ(px_scope_enter(&self->inner, self->inner_timeout), 0);
    if (self->on)
        EXPECT_EQ(px_scope_shield(&self->inner, true), 0);
    self->slept = px_sleep(self->length);
    self->woke = px_now();
    self->next = px_check();
    self->left_inner = px_scope_leave(&self->inner);
    self->left_outer = px_scope_leave(&self->outer);
    return 0;
}

FIBER_TEST(a_cancelled_scope_outside_does_not_reach_in)
{
    px_scope outer, inner;

    EXPECT_EQ(px_scope_enter(&outer, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_enter(&inner, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_cancel(&outer), 0);
    EXPECT_EQ(px_check(), PX_ECANCELED);
    EXPECT_EQ(px_scope_shield(&inner, true), 0);
    EXPECT_EQ(px_scope_status(&outer), PX_ECANCELED);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_shield(&inner, false), 0);
    EXPECT_EQ(px_check(), PX_ECANCELED);
    EXPECT_EQ(px_scope_shield(&inner, true), 0);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_scope_leave(&inner), 0);
    EXPECT_EQ(px_check(), PX_ECANCELED);
    EXPECT_EQ(px_scope_leave(&outer), PX_ECANCELED);
    return 0;
}

FIBER_TEST(the_shielded_scope_itself_and_those_in_it_fire)
{
    px_scope outer, shielded, inner;

    EXPECT_EQ(px_scope_enter(&outer, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_enter(&shielded, 20 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_shield(&shielded, true), 0);
    EXPECT_EQ(px_scope_cancel(&outer), 0);
    EXPECT_EQ(px_scope_enter(&inner, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(px_scope_leave(&inner), PX_ETIMEDOUT);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT); /* not the outer's code */
    EXPECT_EQ(px_now(), 20 * PX_MSEC);
    EXPECT_EQ(px_scope_leave(&shielded), PX_ETIMEDOUT);
    EXPECT_EQ(px_check(), PX_ECANCELED);
    EXPECT_EQ(px_scope_leave(&outer), PX_ECANCELED);
    return 0;
}

FIBER_TEST(a_scope_in_a_shield_is_shielded_too)
{
    px_scope outer, shielded, inner;

    EXPECT_EQ(px_scope_enter(&outer, 0), 0);
    EXPECT_EQ(px_scope_enter(&shielded, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_shield(&shielded, true), 0);
    EXPECT_EQ(px_scope_enter(&inner, PX_SEC), 0);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_cancel(&shielded), 0);
    EXPECT_EQ(px_check(), PX_ECANCELED);
    EXPECT_EQ(px_scope_leave(&inner), 0);
    EXPECT_EQ(px_scope_leave(&shielded), PX_ECANCELED);
    EXPECT_EQ(px_scope_leave(&outer), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(of_two_shields_each_holds_on_its_own)
{
    px_scope a, b, c;

    EXPECT_EQ(px_scope_enter(&a, 0), 0);
    EXPECT_EQ(px_scope_enter(&b, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_shield(&b, true), 0);
    EXPECT_EQ(px_scope_enter(&c, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_shield(&c, true), 0);
    EXPECT_EQ(px_scope_cancel(&b), 0);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_scope_shield(&b, false), 0);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_scope_shield(&c, false), 0);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT); /* a's, the outermost */
    EXPECT_EQ(px_scope_shield(&b, true), 0);
    EXPECT_EQ(px_check(), PX_ECANCELED); /* b's */
    EXPECT_EQ(px_scope_leave(&c), 0);
    EXPECT_EQ(px_scope_leave(&b), PX_ECANCELED);
    EXPECT_EQ(px_scope_leave(&a), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(a_deadline_outside_fires_on_time_under_a_shield)
{
    struct shielded s = {.outer_timeout = 10 * PX_MSEC,
                         .inner_timeout = PX_FOREVER,
                         .length = 50 * PX_MSEC,
                         .on = true};

    start(sleeps_shielded, &s);
    EXPECT_EQ(px_sleep(10 * PX_MSEC - 1), 0);
    EXPECT_EQ(px_scope_status(&s.outer), 0);
    EXPECT_EQ(px_sleep(2), 0);
    EXPECT_EQ(px_scope_status(&s.outer), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_status(&s.inner), 0);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT_EQ(s.slept, 0);
    EXPECT_EQ(s.woke, 50 * PX_MSEC);
    EXPECT_EQ(s.next, 0);
    EXPECT_EQ(s.left_inner, 0);
    EXPECT_EQ(s.left_outer, PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(px_deadline_under_a_shield_is_that_of_the_inside)
{
    px_scope outer, inner;

    EXPECT_EQ(px_scope_enter(&outer, 10), 0);
    EXPECT_EQ(px_scope_enter(&inner, PX_FOREVER), 0);
    EXPECT_EQ(px_deadline(), 10);
    EXPECT_EQ(px_scope_shield(&inner, true), 0);
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    EXPECT_EQ(px_scope_set_deadline(&inner, 20), 0);
    EXPECT_EQ(px_deadline(), 20);
    EXPECT_EQ(px_scope_set_deadline(&outer, 15), 0);
    EXPECT_EQ(px_deadline(), 20);
    EXPECT_EQ(px_scope_shield(&inner, false), 0);
    EXPECT_EQ(px_deadline(), 15);
    EXPECT_EQ(px_scope_shield(&inner, true), 0);
    EXPECT_EQ(px_scope_leave(&inner), 0);
    EXPECT_EQ(px_deadline(), 15);
    EXPECT_EQ(px_scope_leave(&outer), 0);
    return 0;
}

FIBER_TEST(the_outermost_scope_may_be_shielded)
{
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_shield(&scope, true), 0);
    EXPECT_EQ(px_cancel(px_self()), 0);
    EXPECT_EQ(px_stop(), 0);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_leave(&scope), 0);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), PX_ECANCELED);
    return 0;
}

FIBER_TEST(only_an_entered_scope_can_be_shielded)
{
    px_scope scope;

    memset(&scope, 0, sizeof(scope));
    EXPECT_EQ(px_scope_shield(&scope, true), PX_EINVAL);
    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_shield(&scope, true), 0);
    EXPECT_EQ(px_scope_shield(&scope, true), 0);
    EXPECT_EQ(px_scope_leave(&scope), 0);
    EXPECT_EQ(px_scope_shield(&scope, false), PX_EINVAL);
    /* The next entry begins without one. */
    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_cancel(px_self()), 0);
    EXPECT_EQ(px_check(), PX_ECANCELED);
    EXPECT_EQ(px_scope_leave(&scope), 0);
    return 0;
}

/* ---- Toggled by another fiber, while parked ---- */

FIBER_TEST(taking_a_shield_away_lets_a_fired_scope_in_at_once)
{
    struct shielded s = {.outer_timeout = PX_FOREVER,
                         .inner_timeout = PX_FOREVER,
                         .length = PX_SEC,
                         .on = true};

    start(sleeps_shielded, &s);
    EXPECT_EQ(px_scope_cancel(&s.outer), 0);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(s.woke, 0);
    EXPECT_EQ(px_scope_shield(&s.inner, false), 0);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(s.woke, 10 * PX_MSEC);
    EXPECT_EQ(s.slept, PX_ECANCELED);
    EXPECT_EQ(s.next, PX_ECANCELED);
    EXPECT_EQ(s.left_inner, 0);
    EXPECT_EQ(s.left_outer, PX_ECANCELED);
    return 0;
}

FIBER_TEST(taking_a_shield_away_puts_the_deadline_outside_in_force)
{
    struct shielded s = {.outer_timeout = 50 * PX_MSEC,
                         .inner_timeout = 90 * PX_MSEC,
                         .length = PX_SEC,
                         .on = true};

    start(sleeps_shielded, &s);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_shield(&s.inner, false), 0);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT_EQ(s.woke, 50 * PX_MSEC);
    EXPECT_EQ(s.slept, PX_ETIMEDOUT);
    EXPECT_EQ(s.left_inner, 0);
    EXPECT_EQ(s.left_outer, PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(a_shield_put_up_while_parked_holds_what_fires_later)
{
    struct shielded s = {.outer_timeout = 50 * PX_MSEC,
                         .inner_timeout = 90 * PX_MSEC,
                         .length = PX_SEC};

    start(sleeps_shielded, &s);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_shield(&s.inner, true), 0);
    EXPECT_EQ(px_sleep(41 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_status(&s.outer), PX_ETIMEDOUT);
    EXPECT_EQ(s.woke, 0);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT_EQ(s.woke, 90 * PX_MSEC);
    EXPECT_EQ(s.slept, PX_ETIMEDOUT);
    EXPECT_EQ(s.left_inner, PX_ETIMEDOUT);
    EXPECT_EQ(s.left_outer, PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(a_code_already_handed_out_is_not_taken_back_by_a_shield)
{
    struct shielded s = {.outer_timeout = PX_FOREVER,
                         .inner_timeout = PX_FOREVER,
                         .length = PX_SEC};

    start(sleeps_shielded, &s);
    EXPECT_EQ(px_scope_cancel(&s.outer), 0);
    EXPECT_EQ(px_scope_shield(&s.inner, true), 0);
    settle();
    EXPECT_EQ(s.slept, PX_ECANCELED);
    EXPECT_EQ(s.next, 0);
    EXPECT_EQ(s.left_outer, PX_ECANCELED);
    return 0;
}

/* ---- px_with_shield ---- */

struct cleanup {
    px_nsec length;
    px_nsec deadline;
    int code, next;
};

static int cleans_up(void *arg)
{
    struct cleanup *self = arg;

    self->deadline = px_deadline();
    self->code = px_sleep(self->length);
    self->next = px_check();
    return self->code ? self->code : 9;
}

FIBER_TEST(with_shield_lets_clean_up_finish)
{
    struct cleanup c = {.length = 30 * PX_MSEC};
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_with_shield(PX_SEC, cleans_up, &c), 9);
    EXPECT_EQ(px_now(), 40 * PX_MSEC);
    EXPECT_EQ(c.deadline, 10 * PX_MSEC + PX_SEC);
    EXPECT_EQ(c.next, 0);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(with_shields_own_timeout_reaches_in)
{
    struct cleanup c = {.length = PX_SEC};
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    EXPECT_EQ(px_with_shield(30 * PX_MSEC, cleans_up, &c), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 30 * PX_MSEC);
    EXPECT_EQ(c.next, PX_ETIMEDOUT);
    EXPECT_EQ(px_check(), PX_ECANCELED);
    /* Already due: nothing in it may wait. */
    EXPECT_EQ(px_with_shield(0, cleans_up, &c), PX_ETIMEDOUT);
    EXPECT_EQ(px_with_shield(-1, cleans_up, &c), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 30 * PX_MSEC);
    EXPECT_EQ(px_scope_leave(&scope), PX_ECANCELED);
    return 0;
}

FIBER_TEST(with_shield_for_ever_has_no_deadline)
{
    struct cleanup c = {.length = 30 * PX_MSEC};
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_with_shield(PX_FOREVER, cleans_up, &c), 9);
    EXPECT_EQ(c.deadline, PX_FOREVER);
    EXPECT_EQ(px_now(), 30 * PX_MSEC);
    EXPECT_EQ(px_scope_status(&scope), PX_ETIMEDOUT); /* fired at 10 ms */
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(with_shield_may_be_nested)
{
    struct cleanup c = {.length = 30 * PX_MSEC};
    px_scope outer, inner;

    EXPECT_EQ(px_scope_enter(&outer, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_shield(&outer, true), 0);
    EXPECT_EQ(px_scope_enter(&inner, 0), 0);
    EXPECT_EQ(px_cancel(px_self()), 0);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(px_with_shield(PX_SEC, cleans_up, &c), 9);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&inner), PX_ETIMEDOUT);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_scope_leave(&outer), 0);
    EXPECT_EQ(px_check(), PX_ECANCELED);
    return 0;
}

/* ---- What a shield holds back ---- */

static int notes_what_a_shield_holds(void *arg)
{
    struct cleanup *self = arg;

    note("%d ", px_with_shield(PX_FOREVER, cleans_up, self));
    note("%s ", err(px_check()));
    return 0;
}

FIBER_TEST(a_shield_holds_px_cancel_back)
{
    struct cleanup c = {.length = 30 * PX_MSEC};
    px_fiber *fiber = start_handle(notes_what_a_shield_holds, &c);

    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(px_now(), 30 * PX_MSEC);
    EXPECT_LOG("9 canceled ");
    return 0;
}

FIBER_TEST(a_shield_holds_px_stop_back)
{
    struct cleanup c = {.length = 30 * PX_MSEC};

    start(notes_what_a_shield_holds, &c);
    EXPECT_EQ(px_stop(), 0);
    EXPECT_EQ(px_with_shield(PX_FOREVER, cleans_up, &c), 9);
    EXPECT_EQ(px_with_shield(PX_FOREVER, cleans_up, &c), 9);
    EXPECT_EQ(px_now(), 60 * PX_MSEC);
    EXPECT_LOG("9 canceled ");
    return 0;
}

static int stalls_in_a_shield(void *arg)
{
    px_scope outer;

    EXPECT_EQ(px_scope_enter(&outer, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_with_shield(PX_FOREVER, sleeps_for_ever, arg), PX_ESTALLED);
    EXPECT_EQ(px_now(), 10 * PX_MSEC); /* the outer deadline was a timer */
    EXPECT_EQ(px_scope_leave(&outer), PX_ETIMEDOUT);
    return 3;
}

static void a_shield_does_not_hold_a_stall_back(void **state)
{
    int deadlocks = 0, result = 0;
    px_run_options options = {
        .on_deadlock = count_deadlocks, .ctx = &deadlocks, .result = &result};

    (void)state;
    assert_int_equal(run_fibers_with(options, 0, stalls_in_a_shield, NULL),
                     PX_ESTALLED);
    assert_int_equal(deadlocks, 1);
    assert_int_equal(result, 3);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_cancelled_scope_outside_does_not_reach_in),
    PX_TEST(the_shielded_scope_itself_and_those_in_it_fire),
    PX_TEST(a_scope_in_a_shield_is_shielded_too),
    PX_TEST(of_two_shields_each_holds_on_its_own),
    PX_TEST(a_deadline_outside_fires_on_time_under_a_shield),
    PX_TEST(px_deadline_under_a_shield_is_that_of_the_inside),
    PX_TEST(the_outermost_scope_may_be_shielded),
    PX_TEST(only_an_entered_scope_can_be_shielded),
    PX_TEST(taking_a_shield_away_lets_a_fired_scope_in_at_once),
    PX_TEST(taking_a_shield_away_puts_the_deadline_outside_in_force),
    PX_TEST(a_shield_put_up_while_parked_holds_what_fires_later),
    PX_TEST(a_code_already_handed_out_is_not_taken_back_by_a_shield),
    PX_TEST(with_shield_lets_clean_up_finish),
    PX_TEST(with_shields_own_timeout_reaches_in),
    PX_TEST(with_shield_for_ever_has_no_deadline),
    PX_TEST(with_shield_may_be_nested),
    PX_TEST(a_shield_holds_px_cancel_back),
    PX_TEST(a_shield_holds_px_stop_back),
    PX_TEST(a_shield_does_not_hold_a_stall_back),
};

PX_TEST_MAIN(tests)
