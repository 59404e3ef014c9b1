/* SPDX-License-Identifier: MIT */
/*
 * test_handle.c - what else can be done with a handle: detach, cancel, cancel
 * and await, ask whether it has ended, name it.
 */
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

/* --- Detaching ------------------------------------------------------------ */

static int note_end(void *arg)
{
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    note("%s ended; ", (const char *)arg);
    return 0;
}

static int detach_self(void *arg)
{
    px_fiber **handle = arg;

    EXPECT_EQ(px_detach(*handle), 0);
    EXPECT_EQ(px_detach(px_self()), PX_EINVAL);
    return note_end("self");
}

static int detach_some(void *arg)
{
    int value = 3;
    px_fiber *fiber = start_handle(note_end, "first");

    (void)arg;
    EXPECT_EQ(px_detach(fiber), 0);
    EXPECT_EQ(px_detach(fiber), PX_EINVAL);
    EXPECT_EQ(px_detach(start_handle(give, &value)), 0); /* has ended */
    EXPECT_EQ(px_spawn(&fiber, detach_self, &fiber), 0);
    EXPECT_EQ(px_detach(px_self()), PX_EINVAL);
    EXPECT_EQ(px_detach(NULL), PX_EINVAL);
    return 0;
}

static void a_detached_fiber_runs_on_and_reaps_itself(void **state)
{
    (void)state;
    run_fibers(detach_some, NULL);
    assert_non_null(strstr(log_text(), "first ended; "));
    assert_non_null(strstr(log_text(), "self ended; "));
}

static int detach_in_fired_scope(void *arg)
{
    px_fiber *fiber = sleeper(10);
    px_scope scope;

    (void)arg;
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_EQ(px_detach(fiber), 0);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

static void detaching_fails_for_no_cancellation(void **state)
{
    (void)state;
    run_fibers(detach_in_fired_scope, NULL);
    assert_log("");
}

/* --- Cancelling ----------------------------------------------------------- */

static int cancel_parked(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_fiber *fiber = start_handle(down, &sem);
    int value = 0;

    (void)arg;
    EXPECT_EQ(px_sem_waiters(&sem), 1);
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_sem_waiters(&sem), 0); /* out of the queue at that moment */
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT(!px_is_done(fiber)); /* cancel never switches */
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_cancel(fiber), 0); /* idempotent */
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, PX_ECANCELED);
    EXPECT_EQ(px_sem_count(&sem), 1);
    return 0;
}

static void R96_cancel_interrupts_a_parked_fiber_at_that_moment(void **state)
{
    (void)state;
    run_fibers(cancel_parked, NULL);
    assert_log("");
}

static int cancel_self(void *arg)
{
    int x = 0;

    (void)arg;
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_cancel(px_self()), 0);
    x = 1;
    EXPECT_EQ(px_check(), PX_ECANCELED);
    EXPECT_EQ(px_yield(), PX_ECANCELED);
    EXPECT_EQ(px_sleep(5), PX_ECANCELED);
    EXPECT_EQ(x, 1);
    return 3;
}

static int cancel_self_everywhere(void *arg)
{
    px_fiber *fiber = start_handle(cancel_self, arg);
    int value = 0;

    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, 3);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(cancel_self(arg), 3); /* main may be cancelled too */
    return 0;
}

static void R93_cancelling_oneself_fails_the_next_point(void **state)
{
    (void)state;
    run_fibers(cancel_self_everywhere, NULL);
    assert_log("");
}

static int cancel_ended(void *arg)
{
    int value = 6;
    px_fiber *fiber = start_handle(give, &value);
    px_fiber *other;

    (void)arg;
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_cancel(fiber), 0);
    other = sleeper(1); /* its stack may be the ended one's */
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_await(other, &value), 0);
    EXPECT_EQ(value, 1);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, 6);
    EXPECT_EQ(px_cancel(NULL), PX_EINVAL);
    return 0;
}

static void R96_cancelling_an_ended_fiber_hits_nobody(void **state)
{
    (void)state;
    run_fibers(cancel_ended, NULL);
    assert_log("");
}

static int cancel_main(void *arg)
{
    EXPECT_EQ(px_cancel(arg), 0);
    return 0;
}

static int be_cancelled_as_main(void *arg)
{
    (void)arg;
    start(cancel_main, px_self());
    EXPECT_EQ(px_sleep(PX_SEC), PX_ECANCELED);
    EXPECT_EQ(px_now(), 0);
    return 0;
}

static void main_can_be_cancelled_by_its_handle(void **state)
{
    (void)state;
    run_fibers(be_cancelled_as_main, NULL);
    assert_log("");
}

static int clean_up(void *arg)
{
    (void)arg;
    return px_sleep(50 * PX_MSEC);
}

static int clean_up_slowly(void *arg)
{
    (void)arg;
    note("%s ", err(px_sleep(PX_SEC)));
    note("%s ", err(px_with_shield(PX_SEC, clean_up, NULL)));
    return 21;
}

static int cancel_and_await_one(void *arg)
{
    px_fiber *fiber = start_handle(clean_up_slowly, arg);
    int value = 0;

    EXPECT_EQ(px_cancel_and_await(fiber, &value), 0);
    EXPECT_EQ(value, 21);
    EXPECT_EQ(px_now(), 50 * PX_MSEC);
    fiber = start_handle(give, &value);
    EXPECT_EQ(px_cancel_and_await(fiber, NULL), 0); /* has ended */
    return 0;
}

static void cancel_and_await_waits_for_the_end(void **state)
{
    (void)state;
    run_fibers(cancel_and_await_one, NULL);
    assert_log("canceled ok ");
}

static int cancel_and_await_within(void *arg)
{
    px_fiber *fiber = start_handle(clean_up_slowly, arg);
    int value = 0;
    px_scope scope;
    px_scope outer;

    EXPECT_EQ(px_scope_enter(&outer, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_cancel(&outer), 0);
    EXPECT_EQ(px_scope_enter(&scope, 20 * PX_MSEC), 0);
    EXPECT_EQ(px_check(), PX_ECANCELED);
    EXPECT_EQ(px_cancel_and_await(fiber, &value), 0);
    EXPECT_EQ(value, 21);
    EXPECT_EQ(px_now(), 50 * PX_MSEC);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT); /* fired behind a shield */
    EXPECT_EQ(px_scope_leave(&outer), PX_ECANCELED);
    EXPECT_EQ(px_check(), 0);
    return 0;
}

static void cancel_and_await_fails_for_no_cancellation(void **state)
{
    (void)state;
    run_fibers(cancel_and_await_within, NULL);
    assert_log("canceled ok ");
}

static int cancel_twice_over(void *arg)
{
    px_fiber *fiber = start_handle(clean_up_slowly, NULL);
    int value = 0;

    (void)arg;
    EXPECT_EQ(px_cancel_and_await(fiber, &value), 0);
    note("value %d", value);
    return 0;
}

static int cancel_the_canceller(void *arg)
{
    px_fiber *outer = start_handle(cancel_twice_over, NULL);

    (void)arg;
    settle();
    EXPECT_EQ(px_cancel_and_await(outer, NULL), 0);
    EXPECT_EQ(px_now(), 50 * PX_MSEC);
    return 0;
}

static void cancel_and_await_stays_while_its_caller_is_cancelled(void **state)
{
    (void)state;
    run_fibers(cancel_the_canceller, NULL);
    assert_log("canceled ok value 21");
}

static int never_end(void *arg)
{
    int error = px_sem_down(arg);

    note("%s ", err(error));
    error = px_sem_down(arg);
    note("%s ", err(error));
    return 2;
}

static int shielded_never_end(void *arg)
{
    return px_with_shield(PX_FOREVER, never_end, arg);
}

static int cancel_and_await_stalled(void *arg)
{
    px_sem gate = PX_SEM_INIT(0);
    px_fiber *fiber = start_handle(shielded_never_end, &gate);
    int value = 0;

    (void)arg;
    EXPECT_EQ(px_cancel_and_await(fiber, &value), PX_ESTALLED);
    EXPECT_EQ(px_await(fiber, &value), PX_ESTALLED); /* the handle is good */
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, 2);
    return 0;
}

static void cancel_and_await_in_a_deadlock_keeps_the_handle(void **state)
{
    (void)state;
    run_into_deadlock(cancel_and_await_stalled, NULL);
    assert_log("stalled stalled ");
}

static px_fiber *pair[2];

static int cancel_the_other(void *arg)
{
    px_fiber **other = arg;
    int error;

    EXPECT_EQ(px_sleep(1), 0);
    error = px_cancel_and_await(*other, NULL);
    return error;
}

static int cancel_each_other(void *arg)
{
    int values[2] = {0, 0};

    (void)arg;
    pair[0] = start_handle(cancel_the_other, &pair[1]);
    pair[1] = start_handle(cancel_the_other, &pair[0]);
    EXPECT_EQ(px_sleep(2), 0);
    EXPECT_EQ(px_sleep(PX_FOREVER), PX_ESTALLED);
    for (int i = 0; i < 2; i++) {
        int error = px_await(pair[i], &values[i]);

        EXPECT_EQ(error, 0);
        EXPECT_EQ(values[i], PX_ESTALLED);
    }
    return 0;
}

static void cancelling_each_other_stalls_and_ends(void **state)
{
    (void)state;
    run_into_deadlock(cancel_each_other, NULL);
    assert_log("");
}

/* --- Names ---------------------------------------------------------------- */

static int name_fibers(void *arg)
{
    char name[64] = "loader";
    px_spawn_options options;
    px_fiber *fiber = NULL;

    (void)arg;
    EXPECT(strcmp(px_name(px_self()), "") == 0);
    EXPECT_EQ(px_set_name(px_self(), "root"), 0);
    EXPECT(strcmp(px_name(px_self()), "root") == 0);
    EXPECT_EQ(px_set_name(px_self(), NULL), 0);
    EXPECT(strcmp(px_name(px_self()), "") == 0);

    memset(&options, 0, sizeof(options));
    options.name = name;
    EXPECT_EQ(px_spawn_with(&fiber, &options, sleep_ms, NULL), 0);
    memset(name, 'x', sizeof(name) - 1); /* it was copied */
    EXPECT(strcmp(px_name(fiber), "loader") == 0);
    EXPECT_EQ(px_set_name(fiber, name), 0);
    EXPECT_EQ(strlen(px_name(fiber)), 31); /* and is cut */
    EXPECT(strncmp(px_name(fiber), name, 31) == 0);
    name[0] = 'y';
    EXPECT(px_name(fiber)[0] == 'x');
    EXPECT_EQ(px_set_name(fiber, ""), 0);
    EXPECT(strcmp(px_name(fiber), "") == 0);
    EXPECT_EQ(px_set_name(fiber, "again"), 0);
    settle();
    EXPECT(px_is_done(fiber));
    EXPECT(strcmp(px_name(fiber), "again") == 0); /* kept with the record */
    EXPECT_EQ(px_set_name(fiber, "ended"), 0);
    EXPECT(strcmp(px_name(fiber), "ended") == 0);
    EXPECT_EQ(px_id(fiber), 1);
    EXPECT_EQ(px_await(fiber, NULL), 0);

    EXPECT_EQ(px_set_name(NULL, "x"), PX_EINVAL);
    EXPECT(strcmp(px_name(NULL), "") == 0);
    return 0;
}

static void names_are_copied_and_cut_at_31_bytes(void **state)
{
    (void)state;
    run_fibers(name_fibers, NULL);
    assert_log("");
}

static int name_by_itself(void *arg)
{
    EXPECT_EQ(px_set_name(px_self(), px_name(px_self())), 0);
    note("%s ", px_name(px_self()));
    (void)arg;
    return 0;
}

static int name_children(void *arg)
{
    px_spawn_options options;
    char name[40];

    (void)arg;
    memset(&options, 0, sizeof(options));
    options.name = name;
    for (int length = 30; length <= 33; length++) {
        memset(name, 'a', sizeof(name));
        name[length] = '\0';
        EXPECT_EQ(px_spawn_with(NULL, &options, name_by_itself, NULL), 0);
        name[length < 31 ? length : 31] = '\0';
        EXPECT_EQ(strncmp(log_text(), name, strlen(name)), 0);
        EXPECT_EQ(strlen(log_text()), strlen(name) + 1);
        log_clear();
    }
    options.queued = true;
    options.name = "queued";
    px_fiber *fiber = NULL;
    EXPECT_EQ(px_spawn_with(&fiber, &options, name_by_itself, NULL), 0);
    EXPECT(strcmp(px_name(fiber), "queued") == 0);
    EXPECT_EQ(px_set_name(fiber, "renamed"), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    return 0;
}

static void a_fiber_has_its_name_when_it_begins(void **state)
{
    (void)state;
    run_fibers(name_children, NULL);
    assert_log("renamed ");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_detached_fiber_runs_on_and_reaps_itself),
    PX_TEST(detaching_fails_for_no_cancellation),
    PX_TEST(R96_cancel_interrupts_a_parked_fiber_at_that_moment),
    PX_TEST(R93_cancelling_oneself_fails_the_next_point),
    PX_TEST(R96_cancelling_an_ended_fiber_hits_nobody),
    PX_TEST(main_can_be_cancelled_by_its_handle),
    PX_TEST(cancel_and_await_waits_for_the_end),
    PX_TEST(cancel_and_await_fails_for_no_cancellation),
    PX_TEST(cancel_and_await_stays_while_its_caller_is_cancelled),
    PX_TEST(cancel_and_await_in_a_deadlock_keeps_the_handle),
    PX_TEST(cancelling_each_other_stalls_and_ends),
    PX_TEST(names_are_copied_and_cut_at_31_bytes),
    PX_TEST(a_fiber_has_its_name_when_it_begins),
};

PX_TEST_MAIN(tests)
