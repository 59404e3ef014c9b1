/* SPDX-License-Identifier: MIT */
/*
 * test_scope_order.c - what the order of the run queue makes visible: who is
 * interrupted first, and when a fiber that fails goes to the tail.
 */
#include "fiber_test.h"

/* ---- In the order of ids ---- */

static int notes_its_interruption(void *arg)
{
    int code = arg ? px_sem_down(arg) : px_sleep(PX_FOREVER);

    note("%d:%s ", (int)px_current_id(), err(code));
    return 0;
}

/* A child that opens a group of its own and fills it when it is told to. */
struct branch {
    px_sem go;
    int children;
    px_sem *sem;
};

static int branches_out(void *arg)
{
    struct branch *self = arg;
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    for (int i = 0; i < self->children; i++) {
        EXPECT_EQ(px_sem_down(&self->go), 0);
        EXPECT_EQ(px_group_spawn(&group, notes_its_interruption, self->sem), 0);
    }
    (void)notes_its_interruption(NULL);
    return px_group_wait(&group);
}

/* Fibers 1 and 2 have children 3 and 5, 4 and 7; 6 is their sibling, 8 a child
 * of the opener's inner group. */
static int plants_a_tree(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    struct branch a = {.children = 2, .sem = &sem}, b = {.children = 2};
    px_group group, inner;

    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, branches_out, &a), 0);
    EXPECT_EQ(px_group_spawn(&group, branches_out, &b), 0);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(px_sem_up(&a.go), 0);
        settle();
        EXPECT_EQ(px_sem_up(&b.go), 0);
        if (i == 0) {
            settle();
            continue;
        }
        EXPECT_EQ(px_group_spawn(&group, notes_its_interruption, &sem), 0);
        settle();
    }
    EXPECT_EQ(px_group_open(&inner), 0);
    EXPECT_EQ(px_group_spawn(&inner, notes_its_interruption, NULL), 0);
    if (arg)
        EXPECT_EQ(px_group_cancel(&group), 0);
    EXPECT_EQ(px_group_wait(&inner), arg ? PX_ECANCELED : PX_ETIMEDOUT);
    return px_group_wait(&group);
}

FIBER_TEST(a_group_is_interrupted_in_the_order_of_ids)
{
    EXPECT_EQ(plants_a_tree(&(int){1}), 0);
    EXPECT_LOG("1:canceled 2:canceled 3:canceled 4:canceled 5:canceled "
               "6:canceled 7:canceled 8:canceled ");
    return 0;
}

FIBER_TEST(a_deadline_interrupts_in_the_order_of_ids)
{
    EXPECT_EQ(px_with_timeout(PX_SEC, plants_a_tree, NULL), PX_ETIMEDOUT);
    EXPECT_LOG("1:timedout 2:timedout 3:timedout 4:timedout 5:timedout "
               "6:timedout 7:timedout 8:timedout ");
    EXPECT_EQ(px_now(), PX_SEC);
    return 0;
}

static int naps(void *arg)
{
    /* The later it was spawned, the earlier it parked for good. */
    EXPECT_EQ(px_sleep((10 - px_current_id()) * PX_MSEC), 0);
    return notes_its_interruption(arg);
}

FIBER_TEST(stop_interrupts_in_the_order_of_ids)
{
    px_sem sem = PX_SEM_INIT(0);

    for (int i = 0; i < 5; i++)
        start(naps, i % 2 ? &sem : NULL);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT_EQ(px_stop(), 0);
    EXPECT_EQ(px_with_shield(PX_FOREVER, sleeps, &(px_nsec){1}), 0);
    EXPECT_LOG("1:canceled 2:canceled 3:canceled 4:canceled 5:canceled ");
    return 0;
}

/* ---- Equal deadlines ---- */

static int times_out_and_notes(void *arg)
{
    const px_nsec *until = arg;

    PX_WITHIN(limit, *until - px_now()) {
        int code = px_sleep(PX_FOREVER);

        note("%d:%s ", (int)px_current_id(), err(code));
    }
    return 0;
}

static int naps_and_times_out(void *arg)
{
    EXPECT_EQ(px_sleep((10 - px_current_id()) * PX_MSEC), 0);
    return times_out_and_notes(arg);
}

FIBER_TEST(equal_deadlines_fire_in_the_order_of_arming)
{
    px_nsec until = 50 * PX_MSEC;

    start(naps_and_times_out, &until);  /* arms at 9 ms */
    start(times_out_and_notes, &until); /* at once */
    start(naps_and_times_out, &until);  /* at 7 ms */
    start(times_out_and_notes, &until);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT_LOG("2:timedout 4:timedout 3:timedout 1:timedout ");
    return 0;
}

/* ---- Going to the tail ---- */

static int counts_turns(void *arg)
{
    ++*(int *)arg;
    return 0;
}

/* How many failing calls it takes until a fiber that is ready has run. */
static int calls_until_another_runs(int (*call)(px_sem *sem))
{
    px_spawn_options options = {.queued = true};
    px_sem sem = PX_SEM_INIT(1);
    int turns = 0, calls = 0;
    px_scope scope;

    EXPECT_EQ(px_spawn_with(NULL, &options, counts_turns, &turns), 0);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    while (!turns && calls < 1000) {
        EXPECT_EQ(call(&sem), PX_ETIMEDOUT);
        calls++;
    }
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_sem_count(&sem), 1);
    return calls;
}

static int yields(px_sem *sem UNUSED)
{
    return px_yield();
}

static int sleeps_a_second(px_sem *sem UNUSED)
{
    return px_sleep(PX_SEC);
}

static int polls(px_sem *sem)
{
    return px_with_timeout(0, takes_a_permit, sem);
}

static int fails_many_ways(px_sem *sem)
{
    static unsigned turn;

    switch (turn++ % 3) {
    case 0:
        return px_yield();
    case 1:
        return px_sem_down(sem);
    default:
        return px_sleep(1);
    }
}

static int waits_for_a_pipe(px_sem *sem UNUSED)
{
    return px_wait_fd(0, PX_READABLE);
}

static int waits_for_no_children(px_sem *sem UNUSED)
{
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    return px_group_wait(&group);
}

FIBER_TEST(every_64th_failing_point_in_a_row_goes_to_the_tail)
{
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(calls_until_another_runs(px_sem_down), 64);
        EXPECT_EQ(calls_until_another_runs(px_sem_wait_available), 64);
        EXPECT_EQ(calls_until_another_runs(polls), 64);
        EXPECT_EQ(calls_until_another_runs(yields), 64);
        EXPECT_EQ(calls_until_another_runs(sleeps_a_second), 64);
        EXPECT_EQ(calls_until_another_runs(fails_many_ways), 64);
        EXPECT_EQ(calls_until_another_runs(waits_for_a_pipe), 64);
        EXPECT_EQ(calls_until_another_runs(waits_for_no_children), 64);
    }
    return 0;
}

FIBER_TEST(a_failing_check_counts_and_the_64th_call_goes_to_the_tail)
{
    px_spawn_options options = {.queued = true};
    px_sem sem = PX_SEM_INIT(1);
    int turns = 0;
    px_scope scope;

    EXPECT_EQ(px_spawn_with(NULL, &options, counts_turns, &turns), 0);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    for (int i = 0; i < 63; i++)
        EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(turns, 0);
    EXPECT_EQ(px_sem_down(&sem), PX_ETIMEDOUT);
    EXPECT_EQ(turns, 1);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return px_yield();
}

static int keeps_requeueing(void *arg)
{
    int *turns = arg;

    while (*turns >= 0) {
        ++*turns;
        EXPECT_EQ(px_yield(), 0);
    }
    return 0;
}

FIBER_TEST(a_loop_that_fails_lets_the_others_have_every_64th_turn)
{
    px_spawn_options options = {.queued = true};
    px_sem sem = PX_SEM_INIT(1);
    int turns = 0;
    px_scope scope;

    EXPECT_EQ(px_spawn_with(NULL, &options, keeps_requeueing, &turns), 0);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    for (int i = 0; i < 6400; i++)
        EXPECT_EQ(px_sem_down(&sem), PX_ETIMEDOUT);
    EXPECT_EQ(turns, 100);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    turns = -1;
    return px_yield(); /* and the other fiber ends */
}

FIBER_TEST(the_count_goes_on_from_one_scope_to_the_next)
{
    px_spawn_options options = {.queued = true};
    px_sem sem = PX_SEM_INIT(1);
    int turns = 0, calls = 0;

    EXPECT_EQ(px_spawn_with(NULL, &options, counts_turns, &turns), 0);
    while (!turns && calls < 1000) {
        EXPECT_EQ(px_with_timeout(0, takes_a_permit, &sem), PX_ETIMEDOUT);
        calls++;
    }
    EXPECT_EQ(calls, 64);
    return px_yield();
}

FIBER_TEST(a_success_begins_the_count_anew)
{
    px_spawn_options options = {.queued = true};
    px_sem sem = PX_SEM_INIT(100);
    int turns = 0;
    px_scope scope;

    EXPECT_EQ(px_spawn_with(NULL, &options, counts_turns, &turns), 0);
    for (int round = 0; round < 10; round++) {
        EXPECT_EQ(px_scope_enter(&scope, 0), 0);
        for (int i = 0; i < 60; i++)
            EXPECT_EQ(px_sem_down(&sem), PX_ETIMEDOUT);
        EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
        EXPECT_EQ(px_sem_down(&sem), 0);
    }
    EXPECT_EQ(turns, 0);
    return px_yield();
}

/* ---- The wait of a group that has fired ---- */

static void fail_often(px_sem *sem, int times)
{
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    for (int i = 0; i < times; i++)
        EXPECT_EQ(px_sem_down(sem), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
}

static int cancels_and_waits(void)
{
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_cancel(&group), 0);
    return px_group_wait(&group);
}

FIBER_TEST(a_groups_wait_that_returns_0_is_no_failure)
{
    px_spawn_options options = {.queued = true};
    px_sem sem = PX_SEM_INIT(1);
    int turns = 0;

    EXPECT_EQ(px_spawn_with(NULL, &options, counts_turns, &turns), 0);
    for (int i = 0; i < 200; i++)
        EXPECT_EQ(cancels_and_waits(), 0);
    EXPECT_EQ(turns, 0);
    /* It ends a row, as any success does. */
    for (int i = 0; i < 10; i++) {
        fail_often(&sem, 60);
        EXPECT_EQ(cancels_and_waits(), 0);
    }
    EXPECT_EQ(turns, 0);
    return px_yield();
}

FIBER_TEST(failures_do_not_go_on_for_ever_for_empty_groups_between)
{
    px_spawn_options options = {.queued = true};
    px_sem sem = PX_SEM_INIT(1);
    int turns = 0, rounds = 0;

    EXPECT_EQ(px_spawn_with(NULL, &options, counts_turns, &turns), 0);
    while (!turns && rounds < 10000) {
        fail_often(&sem, 1);
        EXPECT_EQ(waits_for_no_children(NULL), 0);
        rounds++;
    }
    EXPECT_EQ(rounds, 1024);
    return px_yield();
}

static int is_slow_to_end(void *arg UNUSED)
{
    px_nsec length = PX_MSEC;

    return px_with_shield(PX_FOREVER, sleeps, &length);
}

FIBER_TEST(a_groups_wait_that_parked_begins_the_count_anew)
{
    px_spawn_options options = {.queued = true};
    px_sem sem = PX_SEM_INIT(1);
    int turns = 0;
    px_scope scope;
    px_group group;

    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, is_slow_to_end, NULL), 0);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    for (int i = 0; i < 60; i++)
        EXPECT_EQ(px_sem_down(&sem), PX_ECANCELED);
    EXPECT_EQ(px_group_wait(&group), PX_ECANCELED);
    EXPECT_EQ(px_now(), PX_MSEC);
    EXPECT_EQ(px_spawn_with(NULL, &options, counts_turns, &turns), 0);
    for (int i = 0; i < 63; i++)
        EXPECT_EQ(px_sem_down(&sem), PX_ECANCELED);
    EXPECT_EQ(turns, 0);
    EXPECT_EQ(px_sem_down(&sem), PX_ECANCELED);
    EXPECT_EQ(turns, 1);
    EXPECT_EQ(px_scope_leave(&scope), PX_ECANCELED);
    return 0;
}

/* As if it had waited, and the deadline had ended that. */
static int waits_late_for_nobody(void *arg UNUSED)
{
    px_spawn_options options = {.queued = true};
    int turns = 0;
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 1), 0);
    really_sleep(PX_MSEC);
    EXPECT_EQ(px_spawn_with(NULL, &options, counts_turns, &turns), 0);
    EXPECT_EQ(waits_for_no_children(NULL), PX_ETIMEDOUT);
    EXPECT_EQ(turns, 1);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

static void a_groups_wait_that_is_late_lets_the_others_run(void **state)
{
    px_run_options options = {0};

    (void)state;
    assert_int_equal(run_fibers_with(options, 1, waits_late_for_nobody, NULL),
                     0);
}

/* ---- Sleeping for nothing ---- */

/* Nothing, or less: to the tail once, behind both of the others. */
FIBER_TEST(R70_a_sleep_of_nothing_yields_once)
{
    px_spawn_options options = {.queued = true};
    static const px_nsec due[] = {0, -1, -5 * PX_SEC, INT64_MIN};
    int turns = 0;

    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    for (int i = 0; i < 2; i++)
        EXPECT_EQ(px_spawn_with(NULL, &options, keeps_requeueing, &turns), 0);
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(px_sleep(due[i]), 0);
        EXPECT_EQ(turns, 4 * i + 2);
        EXPECT_EQ(px_sleep_until(due[i]), 0);
        EXPECT_EQ(turns, 4 * i + 4);
    }
    EXPECT_EQ(px_sleep_until(px_now()), 0);
    EXPECT_EQ(turns, 18);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    turns = -2;
    return px_yield();
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_group_is_interrupted_in_the_order_of_ids),
    PX_TEST(a_deadline_interrupts_in_the_order_of_ids),
    PX_TEST(stop_interrupts_in_the_order_of_ids),
    PX_TEST(equal_deadlines_fire_in_the_order_of_arming),
    PX_TEST(every_64th_failing_point_in_a_row_goes_to_the_tail),
    PX_TEST(a_failing_check_counts_and_the_64th_call_goes_to_the_tail),
    PX_TEST(a_loop_that_fails_lets_the_others_have_every_64th_turn),
    PX_TEST(the_count_goes_on_from_one_scope_to_the_next),
    PX_TEST(a_success_begins_the_count_anew),
    PX_TEST(a_groups_wait_that_returns_0_is_no_failure),
    PX_TEST(failures_do_not_go_on_for_ever_for_empty_groups_between),
    PX_TEST(a_groups_wait_that_parked_begins_the_count_anew),
    PX_TEST(a_groups_wait_that_is_late_lets_the_others_run),
    PX_TEST(R70_a_sleep_of_nothing_yields_once),
};

PX_TEST_MAIN(tests)
