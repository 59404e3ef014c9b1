/* SPDX-License-Identifier: MIT */
/* test_stop.c - px_stop() fires a scope around the whole run. */
#include "support/px_test.h"

/* --- Stopping the run ----------------------------------------------------- */

static int note_sleep(void *arg)
{
    note("%s:%s ", (const char *)arg, err(px_sleep(45 * PX_SEC)));
    return 0;
}

static int shielded_sleep(void *arg)
{
    (void)arg;
    return px_sleep(PX_SEC);
}

static int sleep_shielded(void *arg)
{
    note("%s:%s ", (const char *)arg,
         err(px_with_shield(PX_FOREVER, shielded_sleep, NULL)));
    EXPECT_EQ(px_sleep(1), PX_ECANCELED);
    return 0;
}

static int stop_all(void *arg)
{
    (void)arg;
    start(note_sleep, "parked");
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_stop(), 0);
    EXPECT_EQ(px_check(), PX_ECANCELED); /* the caller too */
    EXPECT_EQ(px_yield(), PX_ECANCELED);
    EXPECT_EQ(px_stop(), 0); /* idempotent */
    EXPECT_EQ(px_now(), PX_SEC);
    return 12;
}

static void R52_stop_interrupts_everybody_and_keeps_mains_value(void **state)
{
    (void)state;
    assert_int_equal(
        run_fibers_with((px_run_options){.stack_size = 0}, 0, stop_all, NULL),
        12);
    assert_log("parked:canceled ");
}

static int stop_and_spawn(void *arg)
{
    px_spawn_options queued;

    (void)arg;
    memset(&queued, 0, sizeof(queued));
    queued.queued = true;
    EXPECT_EQ(px_stop(), 0);
    start(note_sleep, "later");
    EXPECT_EQ(px_spawn_with(NULL, &queued, note_sleep, "queued"), 0);
    return 0;
}

static void stop_reaches_fibers_spawned_later(void **state)
{
    (void)state;
    run_fibers(stop_and_spawn, NULL);
    assert_log("later:canceled queued:canceled ");
}

static int stop_a_shielded_one(void *arg)
{
    (void)arg;
    start(sleep_shielded, "shielded");
    settle();
    EXPECT_EQ(px_stop(), 0);
    return 0;
}

static void shields_hold_against_stop(void **state)
{
    (void)state;
    run_fibers(stop_a_shielded_one, NULL);
    assert_log("shielded:ok ");
}

static int stop_from_child(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT_EQ(px_stop(), 0);
    return 0;
}

static int group_child(void *arg)
{
    note("child:%s ", err(px_sleep(PX_MINUTE)));
    (void)arg;
    return 0;
}

static int be_stopped(void *arg)
{
    px_group group;
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    start(stop_from_child, NULL);
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, group_child, NULL), 0);
    EXPECT_EQ(px_sem_down(&sem), PX_ECANCELED);
    EXPECT_EQ(px_sem_waiters(&sem), 0);
    note("group:%s ", err(px_group_wait(&group)));
    EXPECT_EQ(px_now(), PX_SEC);
    return 0;
}

static void stop_from_any_fiber_reaches_main_and_groups(void **state)
{
    (void)state;
    run_fibers(be_stopped, NULL);
    assert_log("child:canceled group:canceled ");
}

static int sleep_a_while(void *arg)
{
    (void)arg;
    return px_sleep(PX_SEC);
}

static void a_stopped_run_stops_no_other(void **state)
{
    (void)state;
    run_fibers(stop_and_spawn, NULL);
    log_clear();
    run_fibers(sleep_a_while, NULL);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(R52_stop_interrupts_everybody_and_keeps_mains_value),
    PX_TEST(stop_reaches_fibers_spawned_later),
    PX_TEST(shields_hold_against_stop),
    PX_TEST(stop_from_any_fiber_reaches_main_and_groups),
    PX_TEST(a_stopped_run_stops_no_other),
};

PX_TEST_MAIN(tests)
