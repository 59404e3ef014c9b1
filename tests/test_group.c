/* SPDX-License-Identifier: MIT */
/*
 * test_group.c - groups: who belongs to one, how it ends, what wait returns.
 *
 * The limit and the spawners that wait for a place: test_group_limit.c.
 */
#include "fiber_test.h"

/* A child that sleeps and returns `value`, or the code it was interrupted by.
 */
struct child {
    px_nsec length;
    int value;
    px_nsec clean_up; /* slept in a shield before it ends */
    bool ended;
    int code;     /* what the sleep returned */
    px_nsec woke; /* when */
    px_nsec ended_at;
    px_nsec deadline;
    px_fiber *self;
};

static int child(void *arg)
{
    struct child *self = arg;

    self->self = px_self();
    self->deadline = px_deadline();
    self->code = px_sleep(self->length);
    self->woke = px_now();
    if (self->clean_up)
        EXPECT_EQ(px_with_shield(PX_FOREVER, sleeps, &self->clean_up), 0);
    self->ended = true;
    self->ended_at = px_now();
    return self->code ? self->code : self->value;
}

/* Returns its value though it was interrupted. */
static int stubborn_child(void *arg)
{
    (void)child(arg);
    return ((struct child *)arg)->value;
}

static void expect_child(const struct child *c, int code, px_nsec woke)
{
    EXPECT(c->ended);
    EXPECT_EQ(c->code, code);
    EXPECT_EQ(c->woke, woke);
}

static void spawn(px_group *group, px_fn fn, void *arg)
{
    EXPECT_EQ(px_group_spawn(group, fn, arg), 0);
}

/* ---- Success ---- */

FIBER_TEST(wait_returns_once_every_child_has_ended)
{
    struct child a = {.length = 30 * PX_MSEC}, b = {.length = 10 * PX_MSEC},
                 c = {.length = 20 * PX_MSEC};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &a);
    spawn(&group, child, &b);
    spawn(&group, child, &c);
    EXPECT_EQ(px_group_wait(&group), 0);
    EXPECT_EQ(px_now(), 30 * PX_MSEC);
    expect_child(&a, 0, 30 * PX_MSEC);
    expect_child(&b, 0, 10 * PX_MSEC);
    expect_child(&c, 0, 20 * PX_MSEC);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    return 0;
}

FIBER_TEST(a_group_needs_no_initialisation_and_can_be_opened_again)
{
    struct child c = {.length = PX_MSEC};
    px_group group;

    memset(&group, 0xa5, sizeof(group));
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(px_group_open(&group), 0);
        spawn(&group, child, &c);
        EXPECT_EQ(px_group_wait(&group), 0);
    }
    EXPECT_EQ(px_now(), 3 * PX_MSEC);
    return 0;
}

FIBER_TEST(a_group_may_be_empty)
{
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_wait(&group), 0);
    EXPECT_EQ(px_now(), 0);
    return 0;
}

FIBER_TEST(a_child_starts_at_once)
{
    struct child a = {.length = PX_SEC}, b = {.length = PX_SEC};
    px_spawn_options options = {.queued = true, .name = "later"};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &a);
    EXPECT(a.self != NULL);
    EXPECT_EQ(px_group_spawn_with(&group, &options, child, &b), 0);
    EXPECT(b.self == NULL);
    settle();
    EXPECT(b.self != NULL);
    EXPECT(strcmp(px_name(b.self), "later") == 0);
    EXPECT_EQ(px_group_wait(&group), 0);
    return 0;
}

static int adds_up(void *arg)
{
    const int *copy = arg;

    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    note("%d ", copy[0] + copy[1]);
    return 0;
}

FIBER_TEST(a_child_may_be_given_a_copy)
{
    px_spawn_options options = {.arg_size = 2 * sizeof(int)};
    int numbers[2] = {40, 2};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn_with(&group, &options, adds_up, numbers), 0);
    numbers[0] = numbers[1] = 0;
    EXPECT_EQ(px_group_wait(&group), 0);
    EXPECT_LOG("42 ");
    return 0;
}

FIBER_TEST(positive_values_are_no_failures)
{
    struct child a = {.length = PX_MSEC, .value = 1},
                 b = {.length = 2 * PX_MSEC, .value = INT32_MAX};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &a);
    spawn(&group, child, &b);
    EXPECT_EQ(px_group_wait(&group), 0);
    expect_child(&b, 0, 2 * PX_MSEC);
    return 0;
}

FIBER_TEST(many_children_are_waited_for)
{
    enum { MANY = 1000 };
    struct child *children = calloc(MANY, sizeof(*children));
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    for (int i = 0; i < MANY; i++) {
        children[i].length = (i * 7919 % MANY) * PX_USEC;
        spawn(&group, child, &children[i]);
    }
    EXPECT_EQ(px_group_wait(&group), 0);
    for (int i = 0; i < MANY; i++)
        expect_child(&children[i], 0, children[i].length);
    free(children);
    return 0;
}

/* ---- Failure ---- */

FIBER_TEST(the_first_failure_cancels_the_rest_and_is_returned)
{
    struct child late = {.length = 30 * PX_MSEC, .value = -30},
                 early = {.length = 10 * PX_MSEC, .value = -10},
                 good = {.length = PX_SEC};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &late);
    spawn(&group, child, &early);
    spawn(&group, child, &good);
    EXPECT_EQ(px_group_wait(&group), -10);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    expect_child(&early, 0, 10 * PX_MSEC);
    expect_child(&late, PX_ECANCELED, 10 * PX_MSEC);
    expect_child(&good, PX_ECANCELED, 10 * PX_MSEC);
    EXPECT_EQ(px_check(), 0);
    return 0;
}

FIBER_TEST(a_later_failure_does_not_replace_the_first)
{
    struct child first = {.length = 10 * PX_MSEC, .value = -10},
                 second = {
                     .length = PX_SEC, .value = -20, .clean_up = 5 * PX_MSEC};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, stubborn_child, &second);
    spawn(&group, child, &first);
    EXPECT_EQ(px_group_wait(&group), -10);
    EXPECT_EQ(px_now(), 15 * PX_MSEC);
    return 0;
}

FIBER_TEST(after_a_failure_nobody_is_started)
{
    struct child bad = {.length = PX_MSEC, .value = -3}, never = {.length = 0};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &bad);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ECANCELED);
    EXPECT_EQ(px_group_spawn(&group, child, &never), PX_ECANCELED);
    EXPECT(never.self == NULL);
    EXPECT_EQ(px_group_wait(&group), -3);
    return 0;
}

static int fails(void *arg UNUSED)
{
    return -3;
}

FIBER_TEST(a_child_that_never_parks_may_fail)
{
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, fails, NULL), 0); /* it was started */
    EXPECT_EQ(px_check(), PX_ECANCELED);
    EXPECT_EQ(px_group_spawn(&group, fails, NULL), PX_ECANCELED);
    EXPECT_EQ(px_group_wait(&group), -3);
    EXPECT_EQ(px_check(), 0);
    return 0;
}

FIBER_TEST(a_failure_interrupts_the_opener_inside_the_group)
{
    struct child bad = {.length = 10 * PX_MSEC, .value = -1};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &bad);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ECANCELED);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(px_group_wait(&group), -1);
    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    return 0;
}

static int times_out_by_itself(void *arg)
{
    return px_with_timeout(10 * PX_MSEC, child, arg);
}

FIBER_TEST(a_childs_own_timeout_is_a_failure)
{
    struct child slow = {.length = PX_SEC}, other = {.length = PX_SEC};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &other);
    spawn(&group, times_out_by_itself, &slow);
    EXPECT_EQ(px_group_wait(&group), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    expect_child(&other, PX_ECANCELED, 10 * PX_MSEC);
    return 0;
}

FIBER_TEST(a_child_cancelled_by_px_cancel_is_a_failure)
{
    struct child one = {.length = PX_SEC}, other = {.length = PX_SEC};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &one);
    spawn(&group, child, &other);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_cancel(one.self), 0);
    EXPECT_EQ(px_group_wait(&group), PX_ECANCELED);
    expect_child(&other, PX_ECANCELED, 10 * PX_MSEC);
    EXPECT_EQ(px_check(), 0);
    return 0;
}

/* ---- Cancelling ---- */

FIBER_TEST(a_deliberate_cancel_ends_with_0)
{
    struct child a = {.length = PX_SEC}, b = {.length = PX_FOREVER};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &a);
    spawn(&group, child, &b);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_group_cancel(&group), 0);
    EXPECT(!a.ended); /* cancel switches to nobody */
    EXPECT_EQ(px_group_cancel(&group), 0);
    EXPECT_EQ(px_check(), PX_ECANCELED); /* the opener too, inside */
    EXPECT_EQ(px_group_wait(&group), 0);
    expect_child(&a, PX_ECANCELED, 10 * PX_MSEC);
    expect_child(&b, PX_ECANCELED, 10 * PX_MSEC);
    EXPECT_EQ(px_check(), 0);
    return 0;
}

static int cancels_the_group(void *arg)
{
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_group_cancel(arg), 0);
    return px_check();
}

FIBER_TEST(a_child_or_a_stranger_may_cancel_the_group)
{
    struct child c = {.length = PX_SEC};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &c);
    spawn(&group, cancels_the_group, &group);
    EXPECT_EQ(px_group_wait(&group), 0);
    expect_child(&c, PX_ECANCELED, 10 * PX_MSEC);

    c = (struct child){.length = PX_SEC};
    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &c);
    start(cancels_the_group, &group);
    EXPECT_EQ(px_group_wait(&group), 0);
    expect_child(&c, PX_ECANCELED, 20 * PX_MSEC);
    return 0;
}

/* A timeout of its own, inside the cancelled group. */
static int times_out_when_cancelled(void *arg)
{
    struct child *self = arg;

    self->code = px_sleep(PX_SEC);
    return PX_ETIMEDOUT;
}

FIBER_TEST(a_childs_code_after_the_groups_own_cancel_is_no_failure)
{
    struct child a = {.length = PX_SEC}, b = {.length = PX_SEC};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &a);
    spawn(&group, times_out_when_cancelled, &b);
    EXPECT_EQ(px_group_cancel(&group), 0);
    EXPECT_EQ(px_group_wait(&group), 0);
    EXPECT_EQ(a.code, PX_ECANCELED);
    EXPECT_EQ(b.code, PX_ECANCELED);
    return 0;
}

FIBER_TEST(a_queued_child_of_a_cancelled_group_still_runs_its_body)
{
    struct child c = {.length = PX_SEC};
    px_spawn_options options = {.queued = true};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn_with(&group, &options, child, &c), 0);
    EXPECT_EQ(px_group_cancel(&group), 0);
    EXPECT_EQ(px_group_wait(&group), 0);
    expect_child(&c, PX_ECANCELED, 0);
    return 0;
}

FIBER_TEST(a_queued_child_is_in_the_scopes_around_the_group)
{
    struct child c = {.length = PX_SEC};
    px_spawn_options options = {.queued = true};
    px_group group;

    PX_WITHIN(limit, 10 * PX_MSEC) {
        EXPECT_EQ(px_group_open(&group), 0);
        EXPECT_EQ(px_group_spawn_with(&group, &options, child, &c), 0);
        EXPECT_EQ(px_scope_set_deadline(&limit, 5 * PX_MSEC), 0);
        EXPECT_EQ(px_group_wait(&group), PX_ETIMEDOUT);
    }
    expect_child(&c, PX_ETIMEDOUT, 5 * PX_MSEC);
    EXPECT_EQ(c.deadline, 5 * PX_MSEC);
    return 0;
}

FIBER_TEST(another_failure_after_the_groups_own_cancel_is_one)
{
    struct child a = {.length = PX_SEC, .value = -8};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, stubborn_child, &a);
    EXPECT_EQ(px_group_cancel(&group), 0);
    EXPECT_EQ(px_group_wait(&group), -8);
    return 0;
}

FIBER_TEST(in_a_fired_group_spawn_starts_nothing)
{
    struct child never = {.length = 0};
    px_group group;
    px_scope scope;

    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_cancel(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, child, &never), PX_ECANCELED);
    EXPECT_EQ(px_group_wait(&group), 0);

    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, child, &never), PX_ETIMEDOUT);
    EXPECT_EQ(px_group_wait(&group), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT(never.self == NULL);
    return 0;
}

/* ---- Scopes around the group ---- */

static int runs_three_children(void *arg)
{
    struct child *children = arg;
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    for (int i = 0; i < 3; i++)
        spawn(&group, child, &children[i]);
    return px_group_wait(&group);
}

FIBER_TEST(a_deadline_around_a_group_reaches_every_child)
{
    struct child children[3] = {
        {.length = PX_SEC}, {.length = 10 * PX_MSEC}, {.length = PX_FOREVER}};

    EXPECT_EQ(px_with_timeout(20 * PX_MSEC, runs_three_children, children),
              PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 20 * PX_MSEC);
    expect_child(&children[0], PX_ETIMEDOUT, 20 * PX_MSEC);
    expect_child(&children[1], 0, 10 * PX_MSEC);
    expect_child(&children[2], PX_ETIMEDOUT, 20 * PX_MSEC);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(children[i].deadline, 20 * PX_MSEC);
    EXPECT_EQ(px_check(), 0);
    return 0;
}

FIBER_TEST(px_cancel_of_the_opener_reaches_every_child)
{
    struct child children[3] = {
        {.length = PX_SEC}, {.length = PX_SEC}, {.length = PX_FOREVER}};
    px_fiber *opener = start_handle(runs_three_children, children);
    int value = 0;

    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_cancel_and_await(opener, &value), 0);
    EXPECT_EQ(value, PX_ECANCELED);
    for (int i = 0; i < 3; i++)
        expect_child(&children[i], PX_ECANCELED, 10 * PX_MSEC);
    return 0;
}

FIBER_TEST(an_interrupted_wait_still_waits_for_every_child)
{
    struct child children[3] = {{.length = PX_SEC, .clean_up = 30 * PX_MSEC},
                                {.length = PX_SEC, .clean_up = 10 * PX_MSEC},
                                {.length = PX_SEC}};

    EXPECT_EQ(px_with_timeout(20 * PX_MSEC, runs_three_children, children),
              PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 50 * PX_MSEC);
    EXPECT_EQ(children[0].ended_at, 50 * PX_MSEC);
    EXPECT_EQ(children[1].ended_at, 30 * PX_MSEC);
    EXPECT_EQ(children[2].ended_at, 20 * PX_MSEC);
    return 0;
}

FIBER_TEST(the_wait_of_a_fired_opener_cancels_and_waits)
{
    struct child c = {.length = PX_SEC, .clean_up = 30 * PX_MSEC};
    px_group group;
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &c);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    EXPECT_EQ(px_group_wait(&group), PX_ECANCELED);
    EXPECT(c.ended);
    EXPECT_EQ(px_now(), 30 * PX_MSEC);
    EXPECT_EQ(px_group_wait(&group), PX_EINVAL); /* it is closed */
    EXPECT_EQ(px_scope_leave(&scope), PX_ECANCELED);
    return 0;
}

FIBER_TEST(a_failure_goes_before_the_code_of_the_scope_around)
{
    struct child a = {.length = PX_SEC, .value = -5};
    px_group group;
    px_scope scope;

    /* Failed first, fired later. */
    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, fails, NULL);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    EXPECT_EQ(px_group_wait(&group), -3);
    EXPECT_EQ(px_scope_leave(&scope), PX_ECANCELED);
    /* Fired first, failed later, and not with a cancellation's code. */
    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, stubborn_child, &a);
    EXPECT_EQ(px_group_wait(&group), -5);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(wait_tells_of_a_fired_scope_though_every_child_succeeded)
{
    struct child c = {.length = PX_MSEC};
    px_group group;
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &c);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT(c.ended);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    EXPECT_EQ(px_group_wait(&group), PX_ECANCELED);
    EXPECT_EQ(px_scope_leave(&scope), PX_ECANCELED);
    return 0;
}

FIBER_TEST(a_cancelled_group_under_a_fired_scope_tells_of_the_scope)
{
    struct child c = {.length = PX_SEC};
    px_group group;
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    c.clean_up = 30 * PX_MSEC;
    spawn(&group, child, &c);
    EXPECT_EQ(px_group_cancel(&group), 0);
    EXPECT_EQ(px_group_wait(&group), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 30 * PX_MSEC);
    expect_child(&c, PX_ECANCELED, 0);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(a_group_in_a_shield_is_shielded)
{
    struct child children[3] = {{.length = 30 * PX_MSEC},
                                {.length = 10 * PX_MSEC},
                                {.length = 20 * PX_MSEC}};
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_EQ(px_with_shield(PX_SEC, runs_three_children, children), 0);
    EXPECT_EQ(px_now(), 30 * PX_MSEC);
    EXPECT_EQ(children[0].deadline, PX_SEC);
    expect_child(&children[0], 0, 30 * PX_MSEC);
    EXPECT_EQ(px_with_shield(5 * PX_MSEC, runs_three_children, children),
              PX_ETIMEDOUT);
    expect_child(&children[1], PX_ETIMEDOUT, 35 * PX_MSEC);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

/* It waits on, and what is around it fires in its time. */
FIBER_TEST(deadlines_fire_on_time_around_a_wait_that_goes_on)
{
    struct child c = {.length = PX_SEC, .clean_up = 40 * PX_MSEC};
    px_group group;
    px_scope outer, inner;

    EXPECT_EQ(px_scope_enter(&outer, 20 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_enter(&inner, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &c);
    EXPECT_EQ(px_group_wait(&group), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 50 * PX_MSEC);
    EXPECT_EQ(px_scope_status(&outer), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&inner), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&outer), PX_ETIMEDOUT);
    return 0;
}

/* The opener's shield is its own: the children are outside it. */
FIBER_TEST(a_deadline_reaches_the_children_of_a_shielded_opener)
{
    struct child c = {.length = PX_SEC};
    px_nsec length = 50 * PX_MSEC;
    px_group group;
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 20 * PX_MSEC), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &c);
    EXPECT_EQ(px_with_shield(PX_FOREVER, sleeps, &length), 0);
    expect_child(&c, PX_ETIMEDOUT, 20 * PX_MSEC);
    EXPECT_EQ(px_now(), 50 * PX_MSEC);
    EXPECT_EQ(px_group_wait(&group), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(a_moved_deadline_reaches_every_child)
{
    struct child a = {.length = PX_SEC}, b = {.length = PX_SEC};
    px_group group;
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 50 * PX_MSEC), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &a);
    EXPECT_EQ(px_scope_set_deadline(&scope, 90 * PX_MSEC), 0);
    spawn(&group, child, &b);
    EXPECT_EQ(px_sleep(60 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_set_deadline(&scope, 70 * PX_MSEC), 0);
    EXPECT_EQ(px_group_wait(&group), PX_ETIMEDOUT);
    expect_child(&a, PX_ETIMEDOUT, 70 * PX_MSEC);
    expect_child(&b, PX_ETIMEDOUT, 70 * PX_MSEC);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(a_child_is_in_the_scopes_around_the_group_and_no_others)
{
    struct child c = {.length = 30 * PX_MSEC};
    px_group group;
    px_scope inside;

    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_scope_enter(&inside, 10 * PX_MSEC), 0);
    spawn(&group, child, &c);
    EXPECT_EQ(c.deadline, PX_FOREVER);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&inside), PX_ETIMEDOUT);
    EXPECT_EQ(px_group_wait(&group), 0);
    expect_child(&c, 0, 30 * PX_MSEC);
    return 0;
}

static int is_in_the_outer_scope(void *arg)
{
    px_scope own;

    EXPECT_EQ(px_scope_leave(arg), PX_EPERM); /* it is the opener's */
    EXPECT_EQ(px_scope_enter(&own, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_shield(&own, true), 0);
    EXPECT_EQ(px_scope_cancel(arg), 0);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_scope_leave(&own), 0);
    return px_check();
}

FIBER_TEST(a_child_may_shield_itself_from_the_group)
{
    px_group group;
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, is_in_the_outer_scope, &scope);
    EXPECT_EQ(px_group_wait(&group), PX_ECANCELED);
    EXPECT_EQ(px_scope_leave(&scope), PX_ECANCELED);
    return 0;
}

/* ---- Who may do what ---- */

static int waits_for_anothers_group(void *arg)
{
    EXPECT_EQ(px_group_wait(arg), PX_EPERM);
    return 0;
}

FIBER_TEST(only_the_opener_waits)
{
    struct child c = {.length = PX_MSEC};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, waits_for_anothers_group, &group);
    start(waits_for_anothers_group, &group);
    spawn(&group, child, &c); /* still open */
    EXPECT_EQ(px_group_wait(&group), 0);
    EXPECT(c.ended);
    return 0;
}

FIBER_TEST(inner_scopes_are_left_before_wait)
{
    struct child c = {.length = PX_MSEC};
    px_group group, other;
    px_scope scope;

    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_scope_enter(&scope, PX_SEC), 0);
    EXPECT_EQ(px_group_wait(&group), PX_EINVAL);
    EXPECT_EQ(px_scope_leave(&scope), 0);
    EXPECT_EQ(px_group_open(&other), 0);
    EXPECT_EQ(px_group_wait(&group), PX_EINVAL);
    spawn(&group, child, &c);
    EXPECT_EQ(px_group_wait(&other), 0);
    EXPECT(!c.ended);
    EXPECT_EQ(px_group_wait(&group), 0);
    EXPECT(c.ended);
    return 0;
}

FIBER_TEST(a_scope_around_an_open_group_cannot_be_left)
{
    px_group group;
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, PX_SEC), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_scope_leave(&scope), PX_EINVAL);
    EXPECT_EQ(px_group_wait(&group), 0);
    EXPECT_EQ(px_scope_leave(&scope), 0);
    return 0;
}

static void expect_closed(px_group *group)
{
    struct child never = {.length = 0};

    EXPECT_EQ(px_group_spawn(group, child, &never), PX_EINVAL);
    EXPECT_EQ(px_group_spawn_with(group, NULL, child, &never), PX_EINVAL);
    EXPECT_EQ(px_group_wait(group), PX_EINVAL);
    EXPECT_EQ(px_group_cancel(group), PX_EINVAL);
    EXPECT_EQ(px_group_set_limit(group, 1), PX_EINVAL);
    EXPECT(never.self == NULL);
    EXPECT_EQ(px_check(), 0);
}

FIBER_TEST(a_closed_group_refuses_everything)
{
    px_group group;

    memset(&group, 0, sizeof(group));
    expect_closed(&group); /* never opened */
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_wait(&group), 0);
    expect_closed(&group);
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_cancel(&group), 0);
    EXPECT_EQ(px_group_wait(&group), 0);
    expect_closed(&group);
    return 0;
}

FIBER_TEST(null_is_refused)
{
    px_group group;

    EXPECT_EQ(px_group_open(NULL), PX_EINVAL);
    EXPECT_EQ(px_group_spawn(NULL, fails, NULL), PX_EINVAL);
    EXPECT_EQ(px_group_spawn_with(NULL, NULL, fails, NULL), PX_EINVAL);
    EXPECT_EQ(px_group_wait(NULL), PX_EINVAL);
    EXPECT_EQ(px_group_cancel(NULL), PX_EINVAL);
    EXPECT_EQ(px_group_set_limit(NULL, 1), PX_EINVAL);
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_group_wait(&group), 0);
    return 0;
}

static void off_a_fiber_there_are_no_groups(void **state)
{
    px_group group;

    (void)state;
    memset(&group, 0, sizeof(group));
    assert_int_equal(px_group_open(&group), PX_ENOFIBER);
    assert_int_equal(px_group_open(NULL), PX_EINVAL);
}

static void cancel_from_the_callback(void *ctx)
{
    EXPECT_EQ(px_group_cancel(ctx), 0);
}

static int waits_for_children_asleep(void *arg)
{
    px_group *group = arg;
    struct child c = {.length = PX_FOREVER};

    EXPECT_EQ(px_group_open(group), 0);
    spawn(group, child, &c);
    EXPECT_EQ(px_group_wait(group), 0);
    expect_child(&c, PX_ECANCELED, 0);
    return 9;
}

static void a_group_can_be_cancelled_off_fiber_in_on_deadlock(void **state)
{
    px_group group;
    px_run_options options = {.on_deadlock = cancel_from_the_callback,
                              .ctx = &group};

    (void)state;
    assert_int_equal(
        run_fibers_with(options, 0, waits_for_children_asleep, &group), 9);
}

FIBER_TEST(a_childs_handle_is_not_awaited)
{
    struct child c = {.length = PX_MSEC};
    px_group group;
    px_fiber *one;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &c);
    one = c.self;
    EXPECT_EQ(px_await(one, NULL), PX_EINVAL);
    EXPECT_EQ(px_await_all(&one, 1, NULL), PX_EINVAL);
    EXPECT_EQ(px_detach(one), PX_EINVAL);
    EXPECT_EQ(px_cancel_and_await(one, NULL), PX_EINVAL);
    EXPECT_EQ(px_group_wait(&group), 0);
    EXPECT_EQ(c.code, 0); /* it was not cancelled either */
    return 0;
}

static int tries_to_spawn_one_too_many(void *arg)
{
    struct child a = {.length = 10 * PX_MSEC}, never = {.length = 0};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &a);
    EXPECT_EQ(px_group_spawn(&group, child, &never), PX_ENOMEM);
    EXPECT_EQ(px_check(), 0); /* that is no failure of a child */
    EXPECT(never.self == NULL);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    spawn(&group, child, arg); /* there is room again */
    EXPECT_EQ(px_group_wait(&group), 0);
    expect_child(&a, 0, 10 * PX_MSEC);
    return 0;
}

static void a_failed_spawn_leaves_the_group_as_it_was(void **state)
{
    struct child c = {.length = PX_MSEC};
    px_run_options options = {.max_fibers = 2};

    (void)state;
    assert_int_equal(
        run_fibers_with(options, 0, tries_to_spawn_one_too_many, &c), 0);
    assert_true(c.ended);
}

/* ---- Trees ---- */

struct family {
    px_group group;
    struct child children[3];
};

static int spawns_siblings(void *arg)
{
    struct family *f = arg;

    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    for (int i = 0; i < 3; i++)
        spawn(&f->group, child, &f->children[i]);
    return 0;
}

FIBER_TEST(a_child_may_spawn_into_its_own_group)
{
    struct family f = {.children = {{.length = 10 * PX_MSEC},
                                    {.length = 30 * PX_MSEC},
                                    {.length = 20 * PX_MSEC}}};

    EXPECT_EQ(px_group_open(&f.group), 0);
    spawn(&f.group, spawns_siblings, &f);
    EXPECT_EQ(px_group_wait(&f.group), 0); /* spawned while it waits */
    EXPECT_EQ(px_now(), 31 * PX_MSEC);
    expect_child(&f.children[1], 0, 31 * PX_MSEC);
    return 0;
}

FIBER_TEST(siblings_spawned_by_a_child_are_cancelled_like_the_others)
{
    struct family f = {.children = {{.length = PX_SEC},
                                    {.length = 10 * PX_MSEC, .value = -4},
                                    {.length = PX_SEC}}};

    EXPECT_EQ(px_group_open(&f.group), 0);
    spawn(&f.group, spawns_siblings, &f);
    EXPECT_EQ(px_group_wait(&f.group), -4);
    expect_child(&f.children[0], PX_ECANCELED, 11 * PX_MSEC);
    expect_child(&f.children[2], PX_ECANCELED, 11 * PX_MSEC);
    return 0;
}

static int spawns_into_a_fired_group(void *arg)
{
    struct family *f = arg;
    px_scope shield;

    EXPECT_EQ(px_sleep(PX_SEC), PX_ECANCELED);
    EXPECT_EQ(px_group_spawn(&f->group, child, &f->children[0]), PX_ECANCELED);
    /* The group has fired, whatever reaches the spawner. */
    EXPECT_EQ(px_scope_enter(&shield, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_shield(&shield, true), 0);
    EXPECT_EQ(px_group_spawn(&f->group, child, &f->children[1]), PX_ECANCELED);
    EXPECT_EQ(px_scope_leave(&shield), 0);
    return 0;
}

FIBER_TEST(a_child_cannot_spawn_into_its_fired_group)
{
    struct family f = {.children = {{.length = 0}}};

    EXPECT_EQ(px_group_open(&f.group), 0);
    spawn(&f.group, spawns_into_a_fired_group, &f);
    EXPECT_EQ(px_group_cancel(&f.group), 0);
    EXPECT_EQ(px_group_wait(&f.group), 0);
    EXPECT(f.children[0].self == NULL);
    EXPECT(f.children[1].self == NULL);
    return 0;
}

static int spawns_outside(void *arg)
{
    px_fiber *fiber;

    EXPECT_EQ(px_spawn(&fiber, child, arg), 0);
    EXPECT_EQ(px_detach(fiber), 0);
    return 0;
}

FIBER_TEST(what_px_spawn_starts_in_a_child_is_outside_the_group)
{
    struct child c = {.length = 20 * PX_MSEC};
    px_group group;
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, spawns_outside, &c);
    EXPECT_EQ(px_group_cancel(&group), 0);
    EXPECT_EQ(px_group_wait(&group), 0);
    EXPECT(!c.ended);
    EXPECT_EQ(px_scope_leave(&scope), 0);
    EXPECT_EQ(c.deadline, PX_FOREVER);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    expect_child(&c, 0, 20 * PX_MSEC);
    return 0;
}

FIBER_TEST(cancelling_an_outer_group_reaches_the_inner_ones)
{
    struct child in_inner[3] = {{.length = PX_SEC},
                                {.length = PX_FOREVER},
                                {.length = PX_SEC, .clean_up = PX_MSEC}};
    struct child in_outer = {.length = PX_SEC};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, runs_three_children, in_inner);
    spawn(&group, child, &in_outer);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_group_cancel(&group), 0);
    EXPECT_EQ(px_group_wait(&group), 0);
    EXPECT_EQ(px_now(), 11 * PX_MSEC);
    for (int i = 0; i < 3; i++)
        expect_child(&in_inner[i], PX_ECANCELED, 10 * PX_MSEC);
    expect_child(&in_outer, PX_ECANCELED, 10 * PX_MSEC);
    return 0;
}

FIBER_TEST(a_failure_in_an_inner_group_ends_the_outer_one_too)
{
    struct child in_inner[3] = {{.length = PX_SEC},
                                {.length = 10 * PX_MSEC, .value = -6},
                                {.length = PX_SEC}};
    struct child in_outer = {.length = PX_SEC};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &in_outer);
    spawn(&group, runs_three_children, in_inner);
    EXPECT_EQ(px_group_wait(&group), -6);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    expect_child(&in_inner[0], PX_ECANCELED, 10 * PX_MSEC);
    expect_child(&in_outer, PX_ECANCELED, 10 * PX_MSEC);
    return 0;
}

FIBER_TEST(cancelling_an_inner_group_leaves_the_outer_one_alone)
{
    struct child in_inner = {.length = PX_SEC}, in_outer = {.length = PX_SEC};
    px_group outer, inner;

    EXPECT_EQ(px_group_open(&outer), 0);
    spawn(&outer, child, &in_outer);
    EXPECT_EQ(px_group_open(&inner), 0);
    spawn(&inner, child, &in_inner);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_group_cancel(&inner), 0);
    EXPECT_EQ(px_group_wait(&inner), 0);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_group_wait(&outer), 0);
    expect_child(&in_inner, PX_ECANCELED, 10 * PX_MSEC);
    expect_child(&in_outer, 0, PX_SEC);
    return 0;
}

enum { GENERATIONS = 500 };

/* Opens a group with the next generation in it, down to the last. */
static int has_offspring(void *arg)
{
    int *left = arg;
    px_group group;

    if (--*left == 0)
        return px_sleep(PX_FOREVER);
    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, has_offspring, left);
    return px_group_wait(&group);
}

FIBER_TEST(a_deadline_reaches_down_many_generations)
{
    int left = GENERATIONS;

    EXPECT_EQ(px_with_timeout(10 * PX_MSEC, has_offspring, &left),
              PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(left, 0);
    return 0;
}

/* ---- Deadlocks ---- */

static int waits_for_a_stalled_child(void *arg)
{
    struct child c = {.length = PX_FOREVER};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    spawn(&group, child, &c);
    *(int *)arg = px_group_wait(&group);
    EXPECT(c.ended);
    EXPECT_EQ(c.code, PX_ESTALLED);
    return 0;
}

static void a_stalled_child_ends_before_its_groups_wait_does(void **state)
{
    int deadlocks = 0, waited = 0;
    px_run_options options = {.on_deadlock = count_deadlocks,
                              .ctx = &deadlocks};

    (void)state;
    assert_int_equal(
        run_fibers_with(options, 0, waits_for_a_stalled_child, &waited),
        PX_ESTALLED);
    assert_int_equal(deadlocks, 1);
    assert_int_equal(waited, PX_ESTALLED); /* the child's failure */
}

static const struct CMUnitTest tests[] = {
    PX_TEST(wait_returns_once_every_child_has_ended),
    PX_TEST(a_group_needs_no_initialisation_and_can_be_opened_again),
    PX_TEST(a_group_may_be_empty),
    PX_TEST(a_child_starts_at_once),
    PX_TEST(a_child_may_be_given_a_copy),
    PX_TEST(positive_values_are_no_failures),
    PX_TEST(many_children_are_waited_for),
    PX_TEST(the_first_failure_cancels_the_rest_and_is_returned),
    PX_TEST(a_later_failure_does_not_replace_the_first),
    PX_TEST(after_a_failure_nobody_is_started),
    PX_TEST(a_child_that_never_parks_may_fail),
    PX_TEST(a_failure_interrupts_the_opener_inside_the_group),
    PX_TEST(a_childs_own_timeout_is_a_failure),
    PX_TEST(a_child_cancelled_by_px_cancel_is_a_failure),
    PX_TEST(a_deliberate_cancel_ends_with_0),
    PX_TEST(a_child_or_a_stranger_may_cancel_the_group),
    PX_TEST(a_childs_code_after_the_groups_own_cancel_is_no_failure),
    PX_TEST(a_queued_child_of_a_cancelled_group_still_runs_its_body),
    PX_TEST(a_queued_child_is_in_the_scopes_around_the_group),
    PX_TEST(another_failure_after_the_groups_own_cancel_is_one),
    PX_TEST(in_a_fired_group_spawn_starts_nothing),
    PX_TEST(a_deadline_around_a_group_reaches_every_child),
    PX_TEST(px_cancel_of_the_opener_reaches_every_child),
    PX_TEST(an_interrupted_wait_still_waits_for_every_child),
    PX_TEST(the_wait_of_a_fired_opener_cancels_and_waits),
    PX_TEST(a_failure_goes_before_the_code_of_the_scope_around),
    PX_TEST(wait_tells_of_a_fired_scope_though_every_child_succeeded),
    PX_TEST(a_cancelled_group_under_a_fired_scope_tells_of_the_scope),
    PX_TEST(a_group_in_a_shield_is_shielded),
    PX_TEST(deadlines_fire_on_time_around_a_wait_that_goes_on),
    PX_TEST(a_deadline_reaches_the_children_of_a_shielded_opener),
    PX_TEST(a_moved_deadline_reaches_every_child),
    PX_TEST(a_child_is_in_the_scopes_around_the_group_and_no_others),
    PX_TEST(a_child_may_shield_itself_from_the_group),
    PX_TEST(only_the_opener_waits),
    PX_TEST(inner_scopes_are_left_before_wait),
    PX_TEST(a_scope_around_an_open_group_cannot_be_left),
    PX_TEST(a_closed_group_refuses_everything),
    PX_TEST(null_is_refused),
    PX_TEST(off_a_fiber_there_are_no_groups),
    PX_TEST(a_group_can_be_cancelled_off_fiber_in_on_deadlock),
    PX_TEST(a_childs_handle_is_not_awaited),
    PX_TEST(a_failed_spawn_leaves_the_group_as_it_was),
    PX_TEST(a_child_may_spawn_into_its_own_group),
    PX_TEST(siblings_spawned_by_a_child_are_cancelled_like_the_others),
    PX_TEST(a_child_cannot_spawn_into_its_fired_group),
    PX_TEST(what_px_spawn_starts_in_a_child_is_outside_the_group),
    PX_TEST(cancelling_an_outer_group_reaches_the_inner_ones),
    PX_TEST(a_failure_in_an_inner_group_ends_the_outer_one_too),
    PX_TEST(cancelling_an_inner_group_leaves_the_outer_one_alone),
    PX_TEST(a_deadline_reaches_down_many_generations),
    PX_TEST(a_stalled_child_ends_before_its_groups_wait_does),
};

PX_TEST_MAIN(tests)
