/* SPDX-License-Identifier: MIT */
/*
 * test_misuse.c - the code that those get who hold it wrong, and that nothing
 * has changed. What can not be reported by a code is in test_abort.c.
 */
#include <pthread.h>

#include "support/px_test.h"

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int down(void *arg)
{
    return px_sem_down(arg);
}

/* --- NULL ----------------------------------------------------------------- */

static int token_fn(px_scope *token, void *arg)
{
    (void)token;
    (void)arg;
    return 0;
}

/* The same on a fiber and off one: an argument is looked at first. */
static int pass_null(void *arg)
{
    px_fid ids[1] = {77};

    EXPECT_EQ(px_run(NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_spawn(NULL, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_spawn_with(NULL, NULL, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_await(NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_await_all(NULL, 2, NULL), PX_EINVAL);
    EXPECT_EQ(px_detach(NULL), PX_EINVAL);
    EXPECT_EQ(px_cancel(NULL), PX_EINVAL);
    EXPECT_EQ(px_cancel_and_await(NULL, NULL), PX_EINVAL);
    EXPECT(!px_is_done(NULL));
    EXPECT_EQ(px_id(NULL), PX_NO_FIBER);
    EXPECT(strcmp(px_name(NULL), "") == 0);
    EXPECT_EQ(px_set_name(NULL, "x"), PX_EINVAL);
    EXPECT_EQ(px_dump(NULL), PX_EINVAL);

    EXPECT_EQ(px_sem_init(NULL, 1), PX_EINVAL);
    EXPECT_EQ(px_sem_init_bounded(NULL, 1), PX_EINVAL);
    EXPECT_EQ(px_sem_destroy(NULL), PX_EINVAL);
    EXPECT_EQ(px_sem_down(NULL), PX_EINVAL);
    EXPECT_EQ(px_sem_down_n(NULL, 0), PX_EINVAL);
    EXPECT_EQ(px_sem_up(NULL), PX_EINVAL);
    EXPECT_EQ(px_sem_up_n(NULL, 0), PX_EINVAL);
    EXPECT_EQ(px_sem_try_down(NULL), PX_EINVAL);
    EXPECT_EQ(px_sem_try_down_n(NULL, 0), PX_EINVAL);
    EXPECT_EQ(px_sem_adjust(NULL, 1), PX_EINVAL);
    EXPECT_EQ(px_sem_wait_available(NULL), PX_EINVAL);
    EXPECT_EQ(px_sem_set_limit(NULL, 1), PX_EINVAL);
    EXPECT_EQ(px_sem_close(NULL), PX_EINVAL);
    EXPECT_EQ(px_sem_count(NULL), 0);
    EXPECT_EQ(px_sem_limit(NULL), 0);
    EXPECT_EQ(px_sem_waiters(NULL), 0);
    EXPECT_EQ(px_sem_waiter_ids(NULL, ids, 1), 0);
    EXPECT_EQ(px_sem_remove_waiter(NULL, 1), 0);
    EXPECT_EQ(px_sem_with(NULL, nothing, NULL), PX_EINVAL);

    EXPECT_EQ(px_mutex_init(NULL), PX_EINVAL);
    EXPECT_EQ(px_mutex_destroy(NULL), PX_EINVAL);
    EXPECT_EQ(px_mutex_lock(NULL), PX_EINVAL);
    EXPECT_EQ(px_mutex_try_lock(NULL), PX_EINVAL);
    EXPECT_EQ(px_mutex_unlock(NULL), PX_EINVAL);
    EXPECT_EQ(px_mutex_owner(NULL), PX_NO_FIBER);
    EXPECT_EQ(px_mutex_waiters(NULL), 0);
    EXPECT_EQ(px_mutex_waiter_ids(NULL, ids, 1), 0);
    EXPECT_EQ(px_mutex_remove_waiter(NULL, 1), 0);
    EXPECT_EQ(px_mutex_with(NULL, nothing, NULL), PX_EINVAL);

    EXPECT_EQ(px_waitgroup_init(NULL, 1), PX_EINVAL);
    EXPECT_EQ(px_waitgroup_destroy(NULL), PX_EINVAL);
    EXPECT_EQ(px_waitgroup_add(NULL, 1), PX_EINVAL);
    EXPECT_EQ(px_waitgroup_done(NULL), PX_EINVAL);
    EXPECT_EQ(px_waitgroup_go(NULL, nothing, NULL), PX_EINVAL);
    EXPECT_EQ(px_waitgroup_wait(NULL), PX_EINVAL);
    EXPECT_EQ(px_waitgroup_count(NULL), 0);
    EXPECT_EQ(px_waitgroup_remaining(NULL), 0);
    EXPECT_EQ(px_waitgroup_waiters(NULL), 0);
    EXPECT_EQ(px_waitgroup_waiter_ids(NULL, ids, 1), 0);
    EXPECT_EQ(px_waitgroup_remove_waiter(NULL, 1), 0);

    EXPECT_EQ(px_scope_enter(NULL, 1), PX_EINVAL);
    EXPECT_EQ(px_scope_enter_until(NULL, 1), PX_EINVAL);
    EXPECT_EQ(px_scope_leave(NULL), PX_EINVAL);
    EXPECT_EQ(px_scope_cancel(NULL), PX_EINVAL);
    EXPECT_EQ(px_scope_set_deadline(NULL, 1), PX_EINVAL);
    EXPECT_EQ(px_scope_remaining(NULL), 0);
    EXPECT_EQ(px_scope_status(NULL), PX_EINVAL);
    EXPECT_EQ(px_scope_shield(NULL, true), PX_EINVAL);
    EXPECT_EQ(px_with_timeout(1, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_with_deadline(1, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_with_cancel(NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_with_shield(1, NULL, NULL), PX_EINVAL);

    EXPECT_EQ(px_group_open(NULL), PX_EINVAL);
    EXPECT_EQ(px_group_spawn(NULL, nothing, NULL), PX_EINVAL);
    EXPECT_EQ(px_group_spawn_with(NULL, NULL, nothing, NULL), PX_EINVAL);
    EXPECT_EQ(px_group_cancel(NULL), PX_EINVAL);
    EXPECT_EQ(px_group_wait(NULL), PX_EINVAL);
    EXPECT_EQ(px_group_set_limit(NULL, 1), PX_EINVAL);
    EXPECT_EQ(px_map_concurrent(1, 1, NULL, NULL), PX_EINVAL);

    EXPECT_EQ(px_offload(NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_post(NULL, nothing, NULL), PX_EINVAL);
    EXPECT_EQ(px_loop_hold(NULL), PX_EINVAL);
    EXPECT_EQ(px_loop_unhold(NULL), PX_EINVAL);
    EXPECT_EQ(px_wait_signal(NULL), PX_EINVAL);
    EXPECT_EQ(ids[0], 77);
    (void)arg;
    return 0;
}

static int pass_null_functions(void *arg)
{
    px_sem sem = PX_SEM_INIT(1);
    px_mutex lock = PX_MUTEX_INIT;
    px_waitgroup wg = PX_WAITGROUP_INIT(0);
    px_group group;

    (void)arg;
    EXPECT_EQ(px_sem_with(&sem, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_EQ(px_mutex_with(&lock, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_mutex_owner(&lock), PX_NO_FIBER);
    EXPECT_EQ(px_waitgroup_go(&wg, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_waitgroup_count(&wg), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_group_wait(&group), 0);
    EXPECT_EQ(px_post(px_current_loop(), NULL, NULL), PX_EINVAL);
    return px_with_cancel(token_fn, NULL);
}

static void null_is_invalid_everywhere(void **state)
{
    (void)state;
    EXPECT_EQ(pass_null(NULL), 0);
    run_fibers(pass_null, NULL);
    run_fibers(pass_null_functions, NULL);
    assert_log("");
}

/* --- In use --------------------------------------------------------------- */

static int destroy_in_use(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_sem bounded = PX_SEM_INIT_BOUNDED(1);
    px_mutex lock = PX_MUTEX_INIT;
    px_waitgroup wg = PX_WAITGROUP_INIT(1);
    px_fiber *waiter = start_handle(down, &sem);

    (void)arg;
    EXPECT_EQ(px_sem_destroy(&sem), PX_EBUSY);
    EXPECT_EQ(px_sem_waiters(&sem), 1); /* and is as it was */
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_await(waiter, NULL), 0);
    EXPECT_EQ(px_sem_destroy(&sem), 0);
    EXPECT_EQ(px_sem_down(&bounded), 0);
    EXPECT_EQ(px_sem_destroy(&bounded), 0); /* held by nobody it knows of */
    EXPECT_EQ(px_mutex_lock(&lock), 0);
    EXPECT_EQ(px_mutex_destroy(&lock), PX_EBUSY);
    EXPECT_EQ(px_mutex_owner(&lock), 0);
    EXPECT_EQ(px_mutex_unlock(&lock), 0);
    EXPECT_EQ(px_mutex_destroy(&lock), 0);
    EXPECT_EQ(px_waitgroup_destroy(&wg), 0); /* a count is no waiter */
    return 0;
}

static void what_is_in_use_is_not_destroyed(void **state)
{
    (void)state;
    run_fibers(destroy_in_use, NULL);
    assert_log("");
}

static int lock_wrongly(void *arg)
{
    px_mutex *lock = arg;

    EXPECT_EQ(px_mutex_unlock(lock), PX_EPERM);
    EXPECT_EQ(px_mutex_try_lock(lock), PX_EBUSY);
    return 0;
}

static int misuse_locks(void *arg)
{
    px_mutex lock = PX_MUTEX_INIT;

    (void)arg;
    EXPECT_EQ(px_mutex_unlock(&lock), PX_ENOTLOCKED);
    EXPECT_EQ(px_mutex_lock(&lock), 0);
    EXPECT_EQ(px_mutex_lock(&lock), PX_EDEADLK);
    EXPECT_EQ(px_mutex_try_lock(&lock), PX_EDEADLK);
    EXPECT_EQ(px_mutex_waiters(&lock), 0);
    start(lock_wrongly, &lock);
    EXPECT_EQ(px_mutex_owner(&lock), 0);
    EXPECT_EQ(px_mutex_unlock(&lock), 0);
    return 0;
}

static void a_lock_held_wrongly_gives_a_code(void **state)
{
    (void)state;
    run_fibers(misuse_locks, NULL);
    assert_log("");
}

static px_mutex left_locked;

static int leave_it_locked(void *arg)
{
    (void)arg;
    return px_mutex_lock(&left_locked);
}

static int meet_old_lock(void *arg)
{
    px_scope scope;

    (void)arg;
    /* fiber 0, as the owner was: but of another run */
    EXPECT_EQ(px_mutex_try_lock(&left_locked), PX_EBUSY);
    EXPECT_EQ(px_mutex_unlock(&left_locked), PX_EPERM);
    EXPECT_EQ(px_scope_enter(&scope, PX_SEC), 0);
    EXPECT_EQ(px_mutex_lock(&left_locked), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

static void R61_a_lock_left_by_an_earlier_run_is_nobodys(void **state)
{
    static const px_mutex fresh = PX_MUTEX_INIT;

    (void)state;
    left_locked = fresh;
    run_fibers(leave_it_locked, NULL);
    assert_int_equal(px_mutex_destroy(&left_locked), PX_EBUSY);
    run_fibers(meet_old_lock, NULL);
    assert_log("");
}

static int end_with_lock(void *arg)
{
    return px_mutex_lock(arg);
}

static int lock_within(void *arg)
{
    px_scope scope;
    int error;

    EXPECT_EQ(px_scope_enter(&scope, PX_SEC), 0);
    error = px_mutex_lock(arg);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return error;
}

static int outlive_owner(void *arg)
{
    px_mutex lock = PX_MUTEX_INIT;
    px_fiber *owner = start_handle(end_with_lock, &lock);

    (void)arg;
    EXPECT_EQ(px_await(owner, NULL), 0);
    EXPECT_EQ(px_mutex_owner(&lock), 1);
    for (int i = 0; i < 100; i++) {
        /* none of these is taken for it, whatever they reuse of it */
        px_fiber *waiter = start_handle(lock_within, &lock);
        int value = 0;

        EXPECT_EQ(px_await(waiter, &value), 0);
        EXPECT_EQ(value, PX_ETIMEDOUT);
    }
    EXPECT_EQ(px_mutex_owner(&lock), 1);
    EXPECT_EQ(px_mutex_waiters(&lock), 0);
    EXPECT_EQ(px_mutex_unlock(&lock), PX_EPERM);
    EXPECT_EQ(px_mutex_destroy(&lock), PX_EBUSY);
    return 0;
}

static void
R61_S_mtx_56_nobody_is_taken_for_an_owner_that_has_ended(void **state)
{
    (void)state;
    run_fibers(outlive_owner, NULL);
    assert_log("");
}

/* --- Another thread's scope ----------------------------------------------- */

/* Nothing of it is known here, on a fiber or off one. */
static int reach_for_a_scope(void *arg)
{
    px_scope *scope = arg;

    EXPECT_EQ(px_scope_leave(scope), PX_EPERM);
    EXPECT_EQ(px_scope_cancel(scope), 0);
    EXPECT_EQ(px_scope_set_deadline(scope, 0), 0);
    EXPECT_EQ(px_scope_shield(scope, true), PX_EINVAL);
    EXPECT_EQ(px_scope_status(scope), 0);
    return 0;
}

static void *reach_from_a_thread(void *arg)
{
    EXPECT_EQ(reach_for_a_scope(arg), 0);
    EXPECT_EQ(px_run(reach_for_a_scope, arg), 0);
    return NULL;
}

static int let_a_thread_reach(void *arg)
{
    px_scope scope;
    pthread_t thread;

    (void)arg;
    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    EXPECT_EQ(pthread_create(&thread, NULL, reach_from_a_thread, &scope), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_deadline(), 10 * PX_MSEC);
    EXPECT_EQ(px_cancel(px_self()), 0);
    EXPECT_EQ(px_check(), PX_ECANCELED); /* it is no shield either */
    EXPECT_EQ(px_scope_leave(&scope), 0);
    return 0;
}

static void another_threads_scope_is_not_entered_here(void **state)
{
    (void)state;
    run_fibers(let_a_thread_reach, NULL);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(null_is_invalid_everywhere),
    PX_TEST(what_is_in_use_is_not_destroyed),
    PX_TEST(a_lock_held_wrongly_gives_a_code),
    PX_TEST(another_threads_scope_is_not_entered_here),
    PX_TEST(R61_a_lock_left_by_an_earlier_run_is_nobodys),
    PX_TEST(R61_S_mtx_56_nobody_is_taken_for_an_owner_that_has_ended),
};

PX_TEST_MAIN(tests)
