/* SPDX-License-Identifier: MIT */
/*
 * test_off_fiber.c - what works off a fiber, and what is refused there: outside
 * a run, on another thread, and in on_deadlock.
 */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "support/px_scale.h"
#include "support/px_test.h"

static int times_called;

static int nothing(void *arg)
{
    (void)arg;
    times_called++;
    return 0;
}

static int give(void *arg)
{
    times_called++;
    return *(int *)arg;
}

static px_nsec real_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (px_nsec)now.tv_sec * PX_SEC + now.tv_nsec;
}

static int deadlocks;

/* --- Off a fiber ---------------------------------------------------------- */

static int with_token(px_scope *token, void *arg)
{
    (void)token;
    return nothing(arg);
}

static int with_index(size_t i, void *arg)
{
    (void)i;
    return nothing(arg);
}

/* What was asked for is looked at first: an argument may have half a stack. */
static void expect_sizes_looked_at(void)
{
    static char arg[64 * 1024];
    px_spawn_options options = {.arg_size = sizeof(arg) / 2};

    EXPECT_EQ(px_spawn_with(NULL, &options, nothing, arg), PX_ENOFIBER);
    options.arg_size++;
    EXPECT_EQ(px_spawn_with(NULL, &options, nothing, arg), PX_EINVAL);
    options = (px_spawn_options){.arg_size = 8192, .stack_size = 16384};
    EXPECT_EQ(px_spawn_with(NULL, &options, nothing, arg), PX_ENOFIBER);
    options.arg_size++;
    EXPECT_EQ(px_spawn_with(NULL, &options, nothing, arg), PX_EINVAL);
    options.stack_size = 1024; /* is raised to that */
    EXPECT_EQ(px_spawn_with(NULL, &options, nothing, arg), PX_EINVAL);
    options.arg_size = 4096;
    EXPECT_EQ(px_spawn_with(NULL, &options, nothing, arg), PX_ENOFIBER);
}

/* Every call that is refused off a fiber is, and what works there works. */
static void expect_off_fiber(int in_run)
{
    px_fiber *const untouched = (px_fiber *)(void *)&times_called;
    px_fiber *fiber = untouched;
    px_mutex lock = PX_MUTEX_INIT;
    px_waitgroup wg = PX_WAITGROUP_INIT(0);
    px_sem sem = PX_SEM_INIT(1);
    px_scope scope;
    px_group group;
    int ends[2];
    px_nsec before;

    times_called = 0;
    EXPECT(px_self() == NULL);
    EXPECT_EQ(px_current_id(), PX_NO_FIBER);
    EXPECT(px_current_loop() == NULL);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    before = real_now();
    EXPECT(px_now() >= before);
    EXPECT(px_now() <= real_now());

    EXPECT_EQ(px_yield(), PX_ENOFIBER);
    EXPECT_EQ(px_sleep(1), PX_ENOFIBER);
    EXPECT_EQ(px_sleep(0), PX_ENOFIBER);
    EXPECT_EQ(px_sleep(-1), PX_ENOFIBER);
    EXPECT_EQ(px_sleep(PX_FOREVER), PX_ENOFIBER);
    EXPECT_EQ(px_sleep_until(0), PX_ENOFIBER);
    EXPECT_EQ(px_sleep_until(PX_FOREVER), PX_ENOFIBER);
    EXPECT_EQ(px_spawn(&fiber, nothing, NULL), PX_ENOFIBER);
    EXPECT_EQ(px_spawn(NULL, nothing, NULL), PX_ENOFIBER);
    EXPECT_EQ(px_spawn_with(&fiber, NULL, nothing, NULL), PX_ENOFIBER);
    if (!in_run)
        expect_sizes_looked_at();
    EXPECT(fiber == untouched);
    EXPECT_EQ(px_stop(), PX_ENOFIBER);
    if (!in_run)
        EXPECT_EQ(px_dump(stderr), PX_ENOFIBER);

    EXPECT_EQ(px_scope_enter(&scope, 1), PX_ENOFIBER);
    EXPECT_EQ(px_scope_enter(&scope, 0), PX_ENOFIBER);
    EXPECT_EQ(px_scope_enter_until(&scope, 1), PX_ENOFIBER);
    EXPECT_EQ(px_with_timeout(1, nothing, NULL), PX_ENOFIBER);
    EXPECT_EQ(px_with_deadline(1, nothing, NULL), PX_ENOFIBER);
    EXPECT_EQ(px_with_shield(1, nothing, NULL), PX_ENOFIBER);
    EXPECT_EQ(px_with_cancel(with_token, NULL), PX_ENOFIBER);
    PX_WITHIN(block, PX_SEC)
        times_called++;
    EXPECT_EQ(px_group_open(&group), PX_ENOFIBER);
    EXPECT_EQ(px_map_concurrent(1, 1, with_index, NULL), PX_ENOFIBER);

    EXPECT_EQ(px_mutex_lock(&lock), PX_ENOFIBER);
    EXPECT_EQ(px_mutex_try_lock(&lock), PX_ENOFIBER);
    EXPECT_EQ(px_mutex_with(&lock, nothing, NULL), PX_ENOFIBER);
    EXPECT_EQ(px_mutex_unlock(&lock), PX_ENOTLOCKED);
    EXPECT_EQ(px_mutex_owner(&lock), PX_NO_FIBER);
    EXPECT_EQ(px_waitgroup_wait(&wg), PX_ENOFIBER);
    EXPECT_EQ(px_waitgroup_go(&wg, nothing, NULL), PX_ENOFIBER);
    EXPECT_EQ(px_waitgroup_count(&wg), 0);
    EXPECT_EQ(px_waitgroup_add(&wg, 1), 0);
    EXPECT_EQ(px_waitgroup_wait(&wg), PX_ENOFIBER);
    EXPECT_EQ(px_waitgroup_done(&wg), 0);
    EXPECT_EQ(px_sem_down(&sem), 0);
    EXPECT_EQ(px_sem_down(&sem), PX_ENOFIBER);
    EXPECT_EQ(px_sem_wait_available(&sem), PX_ENOFIBER);
    EXPECT_EQ(px_sem_with(&sem, nothing, NULL), PX_ENOFIBER);
    EXPECT_EQ(px_sem_waiters(&sem), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_count(&sem), 1);

    EXPECT_EQ(pipe(ends), 0);
    EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_ENOFIBER);
    (void)close(ends[0]);
    (void)close(ends[1]);
    EXPECT_EQ(px_offload(nothing, NULL), PX_ENOFIBER);
    EXPECT_EQ(times_called, 0);
}

/* A bad argument is looked at before that. */
static void expect_arguments_come_first(void)
{
    px_fiber *fiber;

    EXPECT_EQ(px_spawn(&fiber, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_spawn_with(&fiber, NULL, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_await(NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_await_all(NULL, 1, NULL), PX_EINVAL);
    EXPECT_EQ(px_cancel_and_await(NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_detach(NULL), PX_EINVAL);
    EXPECT_EQ(px_cancel(NULL), PX_EINVAL);
    EXPECT_EQ(px_set_name(NULL, "x"), PX_EINVAL);
    EXPECT_EQ(px_dump(NULL), PX_EINVAL);
    EXPECT_EQ(px_scope_enter(NULL, 1), PX_EINVAL);
    EXPECT_EQ(px_with_timeout(1, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_with_deadline(1, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_with_shield(1, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_with_cancel(NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_group_open(NULL), PX_EINVAL);
    EXPECT_EQ(px_mutex_lock(NULL), PX_EINVAL);
    EXPECT_EQ(px_waitgroup_wait(NULL), PX_EINVAL);
    EXPECT_EQ(px_sem_down(NULL), PX_EINVAL);
    EXPECT_EQ(px_map_concurrent(1, 1, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_offload(NULL, NULL), PX_EINVAL);
}

static void off_a_fiber_before_and_after_runs(void **state)
{
    int value = 0;

    (void)state;
    expect_off_fiber(0);
    expect_arguments_come_first();
    assert_int_equal(px_run(give, &value), 0);
    expect_off_fiber(0);
    expect_arguments_come_first();
    assert_log("");
}

static void *be_off_fiber(void *arg)
{
    (void)arg;
    expect_off_fiber(0);
    expect_arguments_come_first();
    return NULL;
}

static int start_a_thread(void *arg)
{
    pthread_t thread;

    (void)arg;
    EXPECT_EQ(pthread_create(&thread, NULL, be_off_fiber, NULL), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT_EQ(px_current_id(), 0);
    return 0;
}

static void another_thread_is_off_fiber_during_a_run(void **state)
{
    (void)state;
    run_fibers(start_a_thread, NULL);
    assert_log("");
}

static void off_fiber_in_callback(void *ctx)
{
    static int value = 1;

    deadlocks++;
    expect_off_fiber(1);
    expect_arguments_come_first();
    EXPECT_EQ(px_run(give, &value), PX_EBUSY);
    EXPECT_EQ(px_sem_up(ctx), 0); /* and this ends the deadlock */
}

static int be_let_through(void *arg)
{
    EXPECT_EQ(px_sem_down(arg), 0);
    EXPECT_EQ(px_current_id(), 0);
    EXPECT_EQ(px_now(), 0);
    return 0;
}

static void a_deadlock_callback_is_off_fiber(void **state)
{
    px_run_options options;
    px_sem sem = PX_SEM_INIT(0);

    (void)state;
    memset(&options, 0, sizeof(options));
    options.on_deadlock = off_fiber_in_callback;
    options.ctx = &sem;
    deadlocks = 0;
    assert_int_equal(run_fibers_with(options, 0, be_let_through, &sem), 0);
    assert_int_equal(deadlocks, 1);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(off_a_fiber_before_and_after_runs),
    PX_TEST(another_thread_is_off_fiber_during_a_run),
    PX_TEST(a_deadlock_callback_is_off_fiber),
};

PX_TEST_MAIN(tests)
