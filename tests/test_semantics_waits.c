/* SPDX-License-Identifier: MIT */
/*
 * test_semantics_waits.c - calls that must wait: see test_semantics.c.
 *
 * Each waits until the scope around it times out or is cancelled, or for ever;
 * and each is made where there is no fiber to park.
 */
#include "semantics/given.h"

static int sleep_for_ever(size_t i, void *arg)
{
    (void)arg;
    (void)i;
    return px_sleep(PX_FOREVER);
}

static int cancel_around(void *arg)
{
    (void)arg;
    return px_scope_cancel(&own.around);
}

static long long spawn_beyond_limit(struct env *e, bool with)
{
    EXPECT_EQ(px_group_set_limit(e->group, 1), 0);
    if (px_self())
        EXPECT_EQ(px_group_spawn(e->group, wait_at_gate, NULL), 0);
    return with ? px_group_spawn_with(e->group, NULL, take, NULL)
                : px_group_spawn(e->group, take, NULL);
}

static long long wait_for_child(struct env *e)
{
    if (px_self())
        EXPECT_EQ(px_group_spawn(e->group, wait_at_gate, NULL), 0);
    return wait_group(e);
}

enum { NO, YES };
enum { STAYS, STALLS };

/* call; cancellation point; whether it is told of a deadlock; the call. */
#define WAITS(WAIT)                                                            \
    WAIT(px_await, YES, STALLS, px_await(e->parked, NULL))                     \
    WAIT(px_await_all, YES, STALLS, px_await_all(&e->parked, 1, NULL))         \
    WAIT(px_cancel_and_await, NO, STALLS,                                      \
         px_cancel_and_await(e->stubborn, NULL))                               \
    WAIT(px_sleep, YES, STALLS, px_sleep(PX_FOREVER))                          \
    WAIT(px_sleep_until, YES, STALLS, px_sleep_until(PX_FOREVER))              \
    WAIT(px_sem_down, YES, STALLS, px_sem_down(e->empty))                      \
    WAIT(px_sem_down_n, YES, STALLS, px_sem_down_n(e->sem, 4))                 \
    WAIT(px_sem_wait_available, YES, STALLS, px_sem_wait_available(e->empty))  \
    WAIT(px_sem_with, YES, STALLS, px_sem_with(e->empty, e->fn, NULL))         \
    WAIT(px_mutex_lock, YES, STALLS, px_mutex_lock(e->theirs))                 \
    WAIT(px_mutex_with, YES, STALLS, px_mutex_with(e->theirs, e->fn, NULL))    \
    WAIT(px_waitgroup_wait, YES, STALLS, px_waitgroup_wait(e->one))            \
    WAIT(px_group_spawn, YES, STALLS, spawn_beyond_limit(e, false))            \
    WAIT(px_group_spawn_with, YES, STALLS, spawn_beyond_limit(e, true))        \
    WAIT(px_group_wait, YES, STAYS, wait_for_child(e))                         \
    WAIT(px_map_concurrent, YES, STAYS,                                        \
         px_map_concurrent(2, 1, sleep_for_ever, NULL))                        \
    WAIT(px_wait_fd, YES, STAYS, px_wait_fd(e->silent, PX_READABLE))           \
    WAIT(px_read, YES, STAYS, px_read(e->silent, bytes, 9))                    \
    WAIT(px_write, YES, STAYS, px_write(e->full, bytes, sizeof(bytes)))        \
    WAIT(px_write_all, YES, STAYS,                                             \
         px_write_all(e->full, bytes, sizeof(bytes), NULL))                    \
    WAIT(px_accept, YES, STAYS, px_accept(e->quiet, NULL, NULL))               \
    WAIT(px_connect, YES, STAYS,                                               \
         px_connect(e->stuck, (const struct sockaddr *)&e->deaf,               \
                    sizeof(e->deaf)))                                          \
    WAIT(px_wait_signal, YES, STAYS, px_wait_signal(e->other_signals))

struct wait {
    const char *name;
    int point;
    int stalls;
    call_fn *call;
};

#define DEFINE_WAIT(name, point, stalls, expression)                           \
    static long long wait_in_##name(struct env *e)                             \
    {                                                                          \
        (void)e;                                                               \
        return (long long)(expression);                                        \
    }
WAITS(DEFINE_WAIT)

#define LIST_WAIT(name, point, stalls, expression)                             \
    {#name, point, stalls, wait_in_##name},
static const struct wait waits[] = {WAITS(LIST_WAIT)};

static int wait_until_timed_out(void *arg)
{
    const struct wait *wait = (const struct wait *)arg;

    set_up_fibers(10 * PX_MSEC);
    env.stubborn = start_handle(stay_shielded, NULL);
    compare(wait->name, "that waits until its scope times out",
            wait->call(&env), wait->point ? PX_ETIMEDOUT : 0);
    tear_down_fibers();
    return 0;
}

static int wait_until_cancelled(void *arg)
{
    const struct wait *wait = (const struct wait *)arg;

    set_up_fibers(PX_FOREVER);
    env.stubborn = start_handle(stay_shielded, NULL);
    start_queued(cancel_around, NULL);
    compare(wait->name, "that waits until its scope is cancelled",
            wait->call(&env), wait->point ? PX_ECANCELED : 0);
    tear_down_fibers();
    return 0;
}

static int wait_until_stalled(void *arg)
{
    const struct wait *wait = (const struct wait *)arg;

    set_up_fibers(PX_FOREVER);
    env.stubborn_for_ever = true;
    env.stubborn = start_handle(stay_shielded, NULL);
    compare(wait->name, "that nothing can wake", wait->call(&env), PX_ESTALLED);
    tear_down_fibers();
    return 0;
}

static void a_call_that_waits_ends_when_its_scope_times_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(waits); i++) {
        set_up_objects(false);
        set_up_waits(&env);
        run_fibers(wait_until_timed_out, (void *)(uintptr_t)&waits[i]);
        tear_down_objects();
    }
    assert_log("");
}

static void a_call_that_waits_ends_when_its_scope_is_cancelled(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(waits); i++) {
        set_up_objects(false);
        set_up_waits(&env);
        run_fibers(wait_until_cancelled, (void *)(uintptr_t)&waits[i]);
        tear_down_objects();
    }
    assert_log("");
}

static void be_quiet(void *ctx)
{
    (void)ctx;
}

static void a_call_that_nothing_can_wake_is_told_so(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(waits); i++) {
        px_run_options options = {.on_deadlock = be_quiet};

        if (waits[i].stalls != STALLS)
            continue;
        set_up_objects(false);
        compare(waits[i].name, "stalls a run that ends with",
                run_fibers_with(options, 0, wait_until_stalled,
                                (void *)(uintptr_t)&waits[i]),
                PX_ESTALLED);
        tear_down_objects();
    }
    assert_log("");
}

static void wait_off_fiber(void *ctx)
{
    own.result = ((const struct wait *)ctx)->call(&env);
    EXPECT_EQ(px_sem_up(&own.end_of_deadlock), 0);
}

static int stall_once_more(void *arg)
{
    (void)arg;
    set_up_fibers(PX_FOREVER);
    env.stubborn_for_ever = true;
    env.stubborn = start_handle(stay_shielded, NULL);
    EXPECT_EQ(px_sem_down(&own.end_of_deadlock), 0);
    tear_down_fibers();
    return 0;
}

static void off_a_fiber_a_call_that_would_wait_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(waits); i++) {
        px_run_options options = {.on_deadlock = wait_off_fiber,
                                  .ctx = (void *)(uintptr_t)&waits[i]};

        set_up_objects(false);
        set_up_waits(&env);
        compare(waits[i].name, "would wait in a run that ends with",
                run_fibers_with(options, 0, stall_once_more, NULL), 0);
        compare(waits[i].name, "would wait in on_deadlock", own.result,
                PX_ENOFIBER);
        tear_down_objects();
    }
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_call_that_waits_ends_when_its_scope_times_out),
    PX_TEST(a_call_that_waits_ends_when_its_scope_is_cancelled),
    PX_TEST(a_call_that_nothing_can_wake_is_told_so),
    PX_TEST(off_a_fiber_a_call_that_would_wait_is_refused),
};

PX_TEST_MAIN(tests)
