/* SPDX-License-Identifier: MIT */
/*
 * test_mutex.c - the mutex: its owner, handing over, refusals, interrupts, the
 * locks that ended fibers and earlier runs leave behind.
 */
#include <pthread.h>

#include "support/sync_jobs.h"

static px_mutex mutex;

static void fresh(void)
{
    EXPECT_EQ(px_mutex_init(&mutex), 0);
}

static void fresh_and_locked(void)
{
    fresh();
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
}

static void unlock(void)
{
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
}

/* Making one. */

static void S_mtx_7_a_fresh_lock_is_free_with_0_queued(void **state)
{
    static px_mutex fixed = PX_MUTEX_INIT;

    (void)state;
    assert_int_equal(px_mutex_init(&mutex), 0);
    assert_true(px_mutex_owner(&mutex) == PX_NO_FIBER);
    assert_int_equal(px_mutex_waiters(&mutex), 0);
    assert_true(px_mutex_owner(&fixed) == PX_NO_FIBER);
    assert_int_equal(px_mutex_waiters(&fixed), 0);
}

IN_RUN(all_zero_bytes_are_a_free_mutex)
{
    static px_mutex zero;

    memset(&zero, 0, sizeof(zero));
    EXPECT_MUTEX(&zero, "free:");
    EXPECT_EQ(px_mutex_lock(&zero), 0);
    EXPECT_MUTEX(&zero, "0:");
    EXPECT_EQ(px_mutex_unlock(&zero), 0);
    EXPECT_MUTEX(&zero, "free:");
    EXPECT_EQ(px_mutex_destroy(&zero), 0);
}

IN_RUN(init_makes_any_memory_a_mutex)
{
    memset(&mutex, 0xa5, sizeof(mutex));
    fresh();
    EXPECT_MUTEX(&mutex, "free:");
    EXPECT_EQ(px_mutex_try_lock(&mutex), 0);
    unlock();
}

/* Lock, unlock, owner. */

static int say_who_has_it(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    note("fiber %d has the lock, %d queued behind it", (int)px_current_id(),
         (int)px_mutex_waiters(&mutex));
    unlock();
    return 0;
}

IN_RUN(S_mtx_3_fiber_1_has_the_lock_0_queued_behind_it)
{
    fresh();
    start(say_who_has_it, NULL);
    EXPECT_LOG("fiber 1 has the lock, 0 queued behind it");
}

IN_RUN(S_mtx_8_a_lock_on_a_free_mutex_makes_this_fiber_the_owner)
{
    fresh();
    watch_others();
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    EXPECT(nobody_ran_since());
    EXPECT_EQ(px_mutex_owner(&mutex), px_current_id());
    unlock();
}

static void S_mtx_18_before_anything_it_is_free_off_a_fiber_too(void **state)
{
    (void)state;
    assert_int_equal(px_mutex_init(&mutex), 0);
    assert_true(px_mutex_owner(&mutex) == PX_NO_FIBER);
}

IN_RUN(S_mtx_18_while_main_holds_it_the_owner_is_0)
{
    fresh_and_locked();
    EXPECT_EQ(px_mutex_owner(&mutex), 0);
    unlock();
    EXPECT_EQ(px_mutex_owner(&mutex), PX_NO_FIBER);
}

static int hold_for_20_ms(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    unlock();
    return 0;
}

IN_RUN(S_mtx_10_try_lock_on_a_free_lock_taken_on_a_held_lock_refused)
{
    int value;
    px_fiber *holder;

    fresh();
    note("on a free lock: %s\n",
         px_mutex_try_lock(&mutex) == 0 ? "taken" : "refused");
    unlock();
    holder = start_handle(hold_for_20_ms, NULL);
    EXPECT_EQ(px_sleep(5 * PX_MSEC), 0);
    note("on a held lock: %s",
         px_mutex_try_lock(&mutex) == 0 ? "taken" : "refused");
    EXPECT_EQ(px_await(holder, &value), 0);
    EXPECT_LOG("on a free lock: taken\non a held lock: refused");
    EXPECT_MUTEX(&mutex, "free:");
}

IN_RUN(S_mtx_11_a_refused_try_takes_nothing_and_does_not_park)
{
    fresh();
    lock_in_fiber('a', &mutex);
    watch_others();
    EXPECT_CODE(px_mutex_try_lock(&mutex), PX_EBUSY);
    EXPECT(nobody_ran_since());
    EXPECT_MUTEX(&mutex, "a: a=ok");
}

IN_RUN(S_mtx_2_9_12_the_owner_that_locks_or_tries_again_is_told_so)
{
    fresh_and_locked();
    watch_others();
    EXPECT_CODE(px_mutex_lock(&mutex), PX_EDEADLK);
    EXPECT_CODE(px_mutex_try_lock(&mutex), PX_EDEADLK);
    EXPECT(nobody_ran_since());
    EXPECT_MUTEX(&mutex, "0:");
    unlock();
    EXPECT_MUTEX(&mutex, "free:");
}

static int unlock_what_main_holds(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    note("another fiber's lock: %s", err(px_mutex_unlock(&mutex)));
    return 0;
}

IN_RUN(S_mtx_13_unlocking_a_free_lock_or_another_fibers_is_refused)
{
    int value;

    fresh();
    note("a free lock: %s, ", err(px_mutex_unlock(&mutex)));
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    EXPECT_EQ(px_await(start_handle(unlock_what_main_holds, NULL), &value), 0);
    EXPECT_LOG("a free lock: notlocked, another fiber's lock: perm");
    EXPECT_MUTEX(&mutex, "0:");
    unlock();
    EXPECT_CODE(px_mutex_unlock(&mutex), PX_ENOTLOCKED);
}

IN_RUN(S_mtx_14_unlock_hands_to_the_next_if_one_is_queued)
{
    fresh_and_locked();
    lock_in_fiber('a', &mutex);
    EXPECT_MUTEX(&mutex, "0:a a=-");
    unlock();
    EXPECT_MUTEX(&mutex, "a: a=-");
    EXPECT_CODE(px_mutex_unlock(&mutex), PX_EPERM);
    settle();
    EXPECT_MUTEX(&mutex, "a: a=ok");
}

IN_RUN(S_mtx_41_43_three_queue_and_the_lock_belongs_to_1_before_it_runs)
{
    int value;

    fresh_and_locked();
    for (char name = 'a'; name <= 'c'; name++)
        pass_lock(name, &mutex);
    note("queued: %d, ", (int)px_mutex_waiters(&mutex));
    unlock();
    note(
        "after the release, queued: %d, the lock already belongs to fiber %d, ",
        (int)px_mutex_waiters(&mutex), (int)px_mutex_owner(&mutex));
    for (size_t i = 0; i < 3; i++)
        EXPECT_EQ(px_await(job_pool()->jobs[i].fiber, &value), 0);
    note("once everyone is through: %d", (int)px_mutex_waiters(&mutex));
    EXPECT_LOG("queued: 3, after the release, queued: 2, the lock already "
               "belongs to fiber 1, once everyone is through: 0");
    EXPECT_MUTEX(&mutex, "free: a=ok b=ok c=ok");
}

IN_RUN(S_mtx_4_nobody_cuts_in)
{
    fresh_and_locked();
    pass_lock('a', &mutex);
    pass_lock('b', &mutex);
    unlock();
    EXPECT_CODE(px_mutex_try_lock(&mutex), PX_EBUSY);
    pass_lock('c', &mutex);
    EXPECT_MUTEX(&mutex, "a:bc a=- b=- c=-");
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    EXPECT_MUTEX(&mutex, "0: a=ok b=ok c=ok");
    unlock();
}

static int lock_sleep_and_note(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    note("A");
    unlock();
    return 0;
}

static int lock_and_note(void *arg)
{
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    note("B%d", *(int *)arg);
    unlock();
    return 0;
}

IN_RUN(S_mtx_46_the_lock_is_held_in_the_order_A_B1_B2_B3)
{
    static int numbers[3] = {1, 2, 3};
    px_fiber *fibers[4];

    fresh();
    fibers[0] = start_handle(lock_sleep_and_note, NULL);
    for (int i = 0; i < 3; i++)
        fibers[i + 1] = start_handle(lock_and_note, &numbers[i]);
    EXPECT_EQ(px_await_all(fibers, 4, NULL), 0);
    EXPECT_LOG("AB1B2B3");
}

IN_RUN(S_mtx_48_a_late_arrival_skips_and_later_takes_it)
{
    int value;
    px_fiber *first;

    fresh();
    first = start_handle(hold_for_20_ms, NULL);
    EXPECT_EQ(px_sleep(5 * PX_MSEC), 0);
    note("%s", px_mutex_try_lock(&mutex) == 0 ? "took it" : "skipped");
    EXPECT_EQ(px_await(first, &value), 0);
    note("%s", px_mutex_try_lock(&mutex) == 0 ? "took it" : "skipped");
    unlock();
    EXPECT_LOG("skippedtook it");
}

IN_RUN(unlock_never_parks)
{
    fresh_and_locked();
    pass_lock('a', &mutex);
    watch_others();
    unlock();
    EXPECT(nobody_ran_since());
    EXPECT_MUTEX(&mutex, "a: a=-");
    settle();
}

/* Off a fiber, NULL, and the order of the checks. */

static void S_mtx_9_off_a_fiber_every_lock_call_is_refused(void **state)
{
    (void)state;
    assert_int_equal(px_mutex_init(&mutex), 0);
    assert_int_equal(px_mutex_lock(&mutex), PX_ENOFIBER);
    assert_int_equal(px_mutex_try_lock(&mutex), PX_ENOFIBER);
    assert_true(px_mutex_owner(&mutex) == PX_NO_FIBER);
    assert_int_equal(px_mutex_unlock(&mutex), PX_ENOTLOCKED);
    assert_int_equal(px_mutex_destroy(&mutex), 0);
}

static void a_null_mutex_is_invalid(void **state)
{
    px_fid ids[1] = {7};

    (void)state;
    assert_int_equal(px_mutex_init(NULL), PX_EINVAL);
    assert_int_equal(px_mutex_destroy(NULL), PX_EINVAL);
    assert_int_equal(px_mutex_lock(NULL), PX_EINVAL);
    assert_int_equal(px_mutex_try_lock(NULL), PX_EINVAL);
    assert_int_equal(px_mutex_unlock(NULL), PX_EINVAL);
    assert_true(px_mutex_owner(NULL) == PX_NO_FIBER);
    assert_int_equal(px_mutex_waiters(NULL), 0);
    assert_int_equal(px_mutex_waiter_ids(NULL, ids, 1), 0);
    assert_int_equal(px_mutex_remove_waiter(NULL, 0), 0);
    assert_int_equal(ids[0], 7);
}

IN_RUN(a_null_mutex_comes_before_a_fired_scope)
{
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_CODE(px_mutex_lock(NULL), PX_EINVAL);
    EXPECT_CODE(px_mutex_try_lock(NULL), PX_EINVAL);
    EXPECT_CODE(px_mutex_unlock(NULL), PX_EINVAL);
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
}

IN_RUN(a_fired_scope_fails_a_lock_that_is_free)
{
    px_scope scope;

    fresh();
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_CODE(px_mutex_lock(&mutex), PX_ETIMEDOUT);
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_MUTEX(&mutex, "free:");
}

IN_RUN(a_fired_scope_comes_before_holding_it_already)
{
    px_scope scope;

    fresh_and_locked();
    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    EXPECT_CODE(px_mutex_lock(&mutex), PX_ECANCELED);
    EXPECT_CODE(px_mutex_try_lock(&mutex), PX_EDEADLK);
    EXPECT_CODE(px_scope_leave(&scope), PX_ECANCELED);
    unlock();
}

IN_RUN(a_fired_scope_does_not_reach_try_lock_and_unlock)
{
    px_scope scope;

    fresh();
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_EQ(px_mutex_try_lock(&mutex), 0);
    EXPECT_MUTEX(&mutex, "0:");
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_MUTEX(&mutex, "free:");
}

static void on_deadlock_is_off_fiber(void *ctx)
{
    (void)ctx;
    note("lock:%s try:%s unlock:%s owner:%d waiters:%d ids:%d",
         err(px_mutex_lock(&mutex)), err(px_mutex_try_lock(&mutex)),
         err(px_mutex_unlock(&mutex)), (int)px_mutex_owner(&mutex),
         (int)px_mutex_waiters(&mutex),
         (int)px_mutex_waiter_ids(&mutex, NULL, 0));
}

static int lock_what_a_fiber_left(void *arg)
{
    (void)arg;
    fresh();
    lock_in_fiber('a', &mutex);
    EXPECT_CODE(px_mutex_lock(&mutex), PX_ESTALLED);
    return 0;
}

static void
in_on_deadlock_a_held_lock_can_be_read_and_nothing_else(void **state)
{
    px_run_options options;

    (void)state;
    clear_jobs();
    memset(&options, 0, sizeof(options));
    options.on_deadlock = on_deadlock_is_off_fiber;
    assert_int_equal(run_fibers_with(options, 0, lock_what_a_fiber_left, NULL),
                     PX_ESTALLED);
    assert_log("lock:nofiber try:nofiber unlock:perm owner:1 waiters:1 ids:1");
}

/* Interrupts. */

IN_RUN(S_mtx_50_a_lock_within_50_ms_gives_up_and_nobody_is_queued)
{
    struct job *a;

    fresh_and_locked();
    a = lock_within('a', &mutex, 50 * PX_MSEC);
    EXPECT_MUTEX(&mutex, "0:a a=-");
    EXPECT_EQ(px_sleep(500 * PX_MSEC), 0);
    note("the waiter gave up: %s, the lock is still held: %s, queued: %d",
         a->code == PX_ETIMEDOUT ? "yes" : "no",
         px_mutex_owner(&mutex) != PX_NO_FIBER ? "yes" : "no",
         (int)px_mutex_waiters(&mutex));
    EXPECT_LOG(
        "the waiter gave up: yes, the lock is still held: yes, queued: 0");
    EXPECT_EQ(a->at, 50 * PX_MSEC);
    EXPECT_MUTEX(&mutex, "0: a=timedout");
    unlock();
}

IN_RUN(S_mtx_49_after_a_timeout_a_retry_starts_from_a_clean_queue)
{
    int value;
    px_scope scope;
    px_fiber *holder;

    fresh();
    holder = start_handle(hold_for_20_ms, NULL);
    EXPECT_EQ(px_scope_enter(&scope, 5 * PX_MSEC), 0);
    EXPECT_CODE(px_mutex_lock(&mutex), PX_ETIMEDOUT);
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_MUTEX(&mutex, "1:");
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    EXPECT_EQ(px_now(), 20 * PX_MSEC);
    EXPECT_MUTEX(&mutex, "0:");
    unlock();
    EXPECT_EQ(px_await(holder, &value), 0);
}

IN_RUN(S_mtx_51_59_a_cancelled_waiter_is_taken_out_of_the_queue)
{
    struct job *b;

    fresh_and_locked();
    pass_lock('a', &mutex);
    b = lock_within('b', &mutex, PX_FOREVER);
    pass_lock('c', &mutex);
    EXPECT_EQ(px_scope_cancel(&b->scope), 0);
    EXPECT_MUTEX(&mutex, "0:ac a=- b=- c=-");
    settle();
    EXPECT_MUTEX(&mutex, "0:ac a=- b=canceled c=-");
    unlock();
    settle();
    EXPECT_MUTEX(&mutex, "free: a=ok b=canceled c=ok");
}

IN_RUN(S_mtx_45_a_hand_over_is_never_lost_to_one_cancelled_first)
{
    struct job *a;

    fresh_and_locked();
    a = lock_in_fiber('a', &mutex);
    pass_lock('b', &mutex);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    unlock();
    EXPECT_MUTEX(&mutex, "b: a=- b=-");
    settle();
    EXPECT_MUTEX(&mutex, "free: a=canceled b=ok");
}

IN_RUN(S_mtx_52_a_lock_handed_over_first_stands_and_the_next_point_fails)
{
    struct job *a;

    fresh_and_locked();
    a = pass_lock('a', &mutex);
    pass_lock('b', &mutex);
    unlock();
    EXPECT_EQ(px_cancel(a->fiber), 0);
    EXPECT_MUTEX(&mutex, "a:b a=- b=-");
    settle();
    EXPECT_MUTEX(&mutex, "free: a=ok b=ok");
    EXPECT_CODE(a->next, PX_ECANCELED);
}

IN_RUN(a_cancelled_waiter_hands_nothing_on_while_the_lock_is_held)
{
    struct job *a;

    fresh_and_locked();
    a = pass_lock('a', &mutex);
    pass_lock('b', &mutex);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    settle();
    EXPECT_MUTEX(&mutex, "0:b a=canceled b=-");
    unlock();
    settle();
    EXPECT_MUTEX(&mutex, "free: a=canceled b=ok");
}

static int lock_then_park_until_cancelled(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    EXPECT_CODE(px_sleep(PX_FOREVER), PX_ECANCELED);
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    return 0;
}

IN_RUN(unlock_is_never_refused_for_a_cancellation)
{
    px_fiber *fiber;

    fresh();
    fiber = start_handle(lock_then_park_until_cancelled, NULL);
    pass_lock('a', &mutex);
    EXPECT_EQ(px_cancel(fiber), 0);
    settle();
    EXPECT_MUTEX(&mutex, "free: a=ok");
}

/* Locks left behind. */

IN_RUN(S_mtx_53_a_fiber_that_ends_holding_it_leaves_it_held)
{
    struct job *b;

    fresh();
    lock_in_fiber('a', &mutex);
    b = lock_within('b', &mutex, 50 * PX_MSEC);
    EXPECT_EQ(px_sleep(100 * PX_MSEC), 0);
    note("a later attempt: %s, the lock: %s",
         b->code == PX_ETIMEDOUT ? "gave up" : "got it",
         px_mutex_owner(&mutex) != PX_NO_FIBER ? "still held" : "free");
    EXPECT_LOG("a later attempt: gave up, the lock: still held");
    EXPECT_MUTEX(&mutex, "a: a=ok b=timedout");
}

IN_RUN(S_mtx_54_nobody_can_take_back_a_lock_left_behind)
{
    int value;
    struct job *a;

    fresh();
    a = lock_in_fiber('a', &mutex);
    EXPECT_EQ(px_await(a->fiber, &value), 0);
    EXPECT_CODE(px_mutex_unlock(&mutex), PX_EPERM);
    EXPECT_CODE(px_mutex_try_lock(&mutex), PX_EBUSY);
    EXPECT_CODE(px_mutex_destroy(&mutex), PX_EBUSY);
    EXPECT_MUTEX(&mutex, "a: a=ok");
}

static int lock_or_give_up(void *arg)
{
    px_scope scope;
    int code;

    (void)arg;
    EXPECT_EQ(px_scope_enter(&scope, PX_MSEC), 0);
    code = px_mutex_lock(&mutex);
    (void)px_scope_leave(&scope);
    return code;
}

IN_RUN(S_mtx_56_a_later_fiber_never_holds_what_an_ended_one_left)
{
    int value, fibers = times(2000, 100);

    fresh();
    lock_in_fiber('a', &mutex);
    for (int i = 0; i < fibers; i++) {
        EXPECT_EQ(px_await(start_handle(lock_or_give_up, NULL), &value), 0);
        EXPECT_CODE(value, PX_ETIMEDOUT);
    }
    EXPECT_MUTEX(&mutex, "a: a=ok");
}

IN_RUN(S_mtx_58_giving_up_a_waiters_handle_does_not_dequeue_it)
{
    struct job *a;

    fresh_and_locked();
    a = pass_lock('a', &mutex);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    note("queued: %d, ", (int)px_mutex_waiters(&mutex));
    EXPECT_EQ(px_detach(a->fiber), 0);
    note("still queued: %d, ", (int)px_mutex_waiters(&mutex));
    unlock();
    note("handed to fiber %d", (int)px_mutex_owner(&mutex));
    EXPECT_LOG("queued: 1, still queued: 1, handed to fiber 1");
    settle();
    EXPECT_MUTEX(&mutex, "free: a=ok");
}

static int lock_and_leave(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    return 0;
}

static int main_of_a_later_run(void *arg)
{
    px_scope scope;

    (void)arg;
    EXPECT_CODE(px_mutex_try_lock(&mutex), PX_EBUSY);
    EXPECT_CODE(px_mutex_unlock(&mutex), PX_EPERM);
    EXPECT_CODE(px_mutex_destroy(&mutex), PX_EBUSY);
    watch_others();
    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    EXPECT_CODE(px_mutex_lock(&mutex), PX_ETIMEDOUT);
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT(!nobody_ran_since());
    EXPECT_EQ(px_mutex_waiters(&mutex), 0);
    return 0;
}

static void a_lock_left_by_an_earlier_run_belongs_to_nobody_now(void **state)
{
    (void)state;
    assert_int_equal(px_mutex_init(&mutex), 0);
    run_fibers(lock_and_leave, NULL);
    /* Main was fiber 0, and is again: yet it is not the owner. */
    run_fibers(main_of_a_later_run, NULL);
    assert_true(px_mutex_owner(&mutex) != PX_NO_FIBER);
    assert_int_equal(px_mutex_unlock(&mutex), PX_EPERM);
    assert_int_equal(px_mutex_destroy(&mutex), PX_EBUSY);
    assert_int_equal(px_mutex_init(&mutex), 0);
    run_fibers(lock_and_leave, NULL);
    assert_log("");
}

static void *run_on_another_thread(void *arg)
{
    px_run_options options;
    px_fn fn = *(px_fn *)arg;

    memset(&options, 0, sizeof(options));
    EXPECT_EQ(run_fibers_with(options, 0, fn, NULL), 0);
    return NULL;
}

static void on_another_thread(px_fn fn)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, run_on_another_thread, &fn),
                     0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_run_of_another_thread_is_another_run(void **state)
{
    (void)state;
    clear_jobs();
    assert_int_equal(px_mutex_init(&mutex), 0);
    on_another_thread(lock_and_leave);
    on_another_thread(main_of_a_later_run);
    run_fibers(main_of_a_later_run, NULL);
    assert_log("");
}

/* A run that deadlocks. */

IN_STALLED_RUN(a_lock_that_nobody_can_unlock_stalls)
{
    fresh();
    lock_in_fiber('a', &mutex);
    EXPECT_CODE(px_mutex_lock(&mutex), PX_ESTALLED);
    EXPECT_MUTEX(&mutex, "a: a=ok");
}

/* Waiters, their ids, taking one out. */

IN_RUN(waiter_ids_are_oldest_first_and_cut_by_cap)
{
    px_fid ids[3] = {-7, -7, -7};

    fresh_and_locked();
    EXPECT_EQ(px_mutex_waiter_ids(&mutex, ids, 3), 0);
    EXPECT_EQ(ids[0], -7);
    for (char name = 'a'; name <= 'c'; name++)
        pass_lock(name, &mutex);
    EXPECT_EQ(px_mutex_waiters(&mutex), 3);
    EXPECT_EQ(px_mutex_waiter_ids(&mutex, ids, 2), 3);
    EXPECT_EQ(ids[0], 1);
    EXPECT_EQ(ids[1], 2);
    EXPECT_EQ(ids[2], -7);
    EXPECT_EQ(px_mutex_waiter_ids(&mutex, NULL, 0), 3);
    EXPECT_EQ(px_mutex_waiter_ids(&mutex, NULL, 3), 3);
    unlock();
    settle();
}

IN_RUN(a_removed_waiter_gets_no_lock_and_stays_parked)
{
    struct job *a;

    fresh_and_locked();
    a = pass_lock('a', &mutex);
    pass_lock('b', &mutex);
    EXPECT_EQ(px_mutex_remove_waiter(&mutex, 0), 0);
    EXPECT_EQ(px_mutex_remove_waiter(&mutex, 99), 0);
    EXPECT_EQ(px_mutex_remove_waiter(&mutex, PX_NO_FIBER), 0);
    EXPECT_EQ(px_mutex_remove_waiter(&mutex, a->id), 1);
    EXPECT_EQ(px_mutex_remove_waiter(&mutex, a->id), 0);
    EXPECT_MUTEX(&mutex, "0:b a=- b=-");
    unlock();
    settle();
    EXPECT_MUTEX(&mutex, "free: a=- b=ok");
    EXPECT_EQ(px_mutex_destroy(&mutex), 0);
    spoil(&mutex, sizeof(mutex));
    EXPECT_EQ(px_cancel(a->fiber), 0);
    settle();
    EXPECT_CODE(a->code, PX_ECANCELED);
    fresh();
}

IN_STALLED_RUN(a_removed_waiter_stalls_when_nothing_else_is_left)
{
    int value;
    struct job *a;

    fresh_and_locked();
    a = pass_lock('a', &mutex);
    EXPECT_EQ(px_mutex_remove_waiter(&mutex, a->id), 1);
    unlock();
    EXPECT_CODE(px_await(a->fiber, &value), PX_ESTALLED);
    settle();
    EXPECT_MUTEX(&mutex, "free: a=stalled");
}

/* destroy. */

IN_RUN(destroy_of_a_held_mutex_is_busy_and_changes_nothing)
{
    fresh_and_locked();
    EXPECT_CODE(px_mutex_destroy(&mutex), PX_EBUSY);
    EXPECT_MUTEX(&mutex, "0:");
    pass_lock('a', &mutex);
    EXPECT_CODE(px_mutex_destroy(&mutex), PX_EBUSY);
    EXPECT_MUTEX(&mutex, "0:a a=-");
    unlock();
    EXPECT_CODE(px_mutex_destroy(&mutex), PX_EBUSY);
    settle();
    EXPECT_MUTEX(&mutex, "free: a=ok");
    EXPECT_EQ(px_mutex_destroy(&mutex), 0);
}

/* errno. */

static int spoil_errno_and_unlock(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    errno = ENOENT;
    unlock();
    EXPECT_EQ(errno, ENOENT);
    return 0;
}

IN_RUN(errno_is_left_as_it_was_across_parking_and_failing)
{
    fresh();
    start(spoil_errno_and_unlock, NULL);
    errno = ERANGE;
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    EXPECT_EQ(errno, ERANGE);
    EXPECT_CODE(px_mutex_lock(&mutex), PX_EDEADLK);
    EXPECT_CODE(px_mutex_try_lock(&mutex), PX_EDEADLK);
    EXPECT_CODE(px_mutex_destroy(&mutex), PX_EBUSY);
    unlock();
    EXPECT_CODE(px_mutex_unlock(&mutex), PX_ENOTLOCKED);
    EXPECT_EQ(errno, ERANGE);
}

/* Load. */

static int inside;

static int lock_often(void *arg)
{
    int turns = *(int *)arg;

    for (int i = 0; i < turns; i++) {
        EXPECT_EQ(px_mutex_lock(&mutex), 0);
        EXPECT_EQ(inside, 0);
        inside++;
        EXPECT_EQ(px_yield(), 0);
        EXPECT_EQ(px_mutex_owner(&mutex), px_current_id());
        inside--;
        unlock();
    }
    return 0;
}

IN_RUN(a_hundred_fibers_hand_it_around_and_are_never_two_inside)
{
    static int turns;
    px_fiber *fibers[100];

    turns = times(1000, 20);
    fresh();
    inside = 0;
    for (int i = 0; i < 100; i++)
        fibers[i] = start_handle(lock_often, &turns);
    EXPECT_EQ(px_await_all(fibers, 100, NULL), 0);
    EXPECT_MUTEX(&mutex, "free:");
}

static const struct CMUnitTest mutex_tests[] = {
    PX_TEST(S_mtx_7_a_fresh_lock_is_free_with_0_queued),
    PX_TEST(all_zero_bytes_are_a_free_mutex),
    PX_TEST(init_makes_any_memory_a_mutex),
    PX_TEST(S_mtx_3_fiber_1_has_the_lock_0_queued_behind_it),
    PX_TEST(S_mtx_8_a_lock_on_a_free_mutex_makes_this_fiber_the_owner),
    PX_TEST(S_mtx_18_before_anything_it_is_free_off_a_fiber_too),
    PX_TEST(S_mtx_18_while_main_holds_it_the_owner_is_0),
    PX_TEST(S_mtx_10_try_lock_on_a_free_lock_taken_on_a_held_lock_refused),
    PX_TEST(S_mtx_11_a_refused_try_takes_nothing_and_does_not_park),
    PX_TEST(S_mtx_2_9_12_the_owner_that_locks_or_tries_again_is_told_so),
    PX_TEST(S_mtx_13_unlocking_a_free_lock_or_another_fibers_is_refused),
    PX_TEST(S_mtx_14_unlock_hands_to_the_next_if_one_is_queued),
    PX_TEST(S_mtx_41_43_three_queue_and_the_lock_belongs_to_1_before_it_runs),
    PX_TEST(S_mtx_4_nobody_cuts_in),
    PX_TEST(S_mtx_46_the_lock_is_held_in_the_order_A_B1_B2_B3),
    PX_TEST(S_mtx_48_a_late_arrival_skips_and_later_takes_it),
    PX_TEST(unlock_never_parks),
    PX_TEST(S_mtx_9_off_a_fiber_every_lock_call_is_refused),
    PX_TEST(a_null_mutex_is_invalid),
    PX_TEST(a_null_mutex_comes_before_a_fired_scope),
    PX_TEST(a_fired_scope_fails_a_lock_that_is_free),
    PX_TEST(a_fired_scope_comes_before_holding_it_already),
    PX_TEST(a_fired_scope_does_not_reach_try_lock_and_unlock),
    PX_TEST(in_on_deadlock_a_held_lock_can_be_read_and_nothing_else),
    PX_TEST(S_mtx_50_a_lock_within_50_ms_gives_up_and_nobody_is_queued),
    PX_TEST(S_mtx_49_after_a_timeout_a_retry_starts_from_a_clean_queue),
    PX_TEST(S_mtx_51_59_a_cancelled_waiter_is_taken_out_of_the_queue),
    PX_TEST(S_mtx_45_a_hand_over_is_never_lost_to_one_cancelled_first),
    PX_TEST(S_mtx_52_a_lock_handed_over_first_stands_and_the_next_point_fails),
    PX_TEST(a_cancelled_waiter_hands_nothing_on_while_the_lock_is_held),
    PX_TEST(unlock_is_never_refused_for_a_cancellation),
    PX_TEST(S_mtx_53_a_fiber_that_ends_holding_it_leaves_it_held),
    PX_TEST(S_mtx_54_nobody_can_take_back_a_lock_left_behind),
    PX_TEST(S_mtx_56_a_later_fiber_never_holds_what_an_ended_one_left),
    PX_TEST(S_mtx_58_giving_up_a_waiters_handle_does_not_dequeue_it),
    PX_TEST(a_lock_left_by_an_earlier_run_belongs_to_nobody_now),
    PX_TEST(a_run_of_another_thread_is_another_run),
    PX_TEST(a_lock_that_nobody_can_unlock_stalls),
    PX_TEST(waiter_ids_are_oldest_first_and_cut_by_cap),
    PX_TEST(a_removed_waiter_gets_no_lock_and_stays_parked),
    PX_TEST(a_removed_waiter_stalls_when_nothing_else_is_left),
    PX_TEST(destroy_of_a_held_mutex_is_busy_and_changes_nothing),
    PX_TEST(errno_is_left_as_it_was_across_parking_and_failing),
    PX_TEST(a_hundred_fibers_hand_it_around_and_are_never_two_inside),
};

PX_TEST_MAIN(mutex_tests)
