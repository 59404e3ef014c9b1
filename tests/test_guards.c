/* SPDX-License-Identifier: MIT */
/*
 * test_guards.c - holding a permit or a lock for a scope: PX_SEM_GUARD and
 * PX_MUTEX_GUARD, the block forms PX_SEM_HOLD and PX_MUTEX_HOLD on every way
 * out, px_sem_with and px_mutex_with.
 */
#include "support/sync_jobs.h"

static px_sem sem;
static px_mutex mutex;

static void fresh(int64_t count)
{
    EXPECT_EQ(px_sem_init(&sem, count), 0);
    EXPECT_EQ(px_mutex_init(&mutex), 0);
}

/* Guards. */

IN_RUN(S_sem_31_inside_the_scope_the_count_is_0_and_after_it_1)
{
    fresh(1);
    {
        PX_SEM_GUARD(permit, &sem);

        EXPECT_EQ(permit.status, 0);
        EXPECT_EQ(px_sem_count(&sem), 0);
    }
    EXPECT_EQ(px_sem_count(&sem), 1);
}

static int return_early(void)
{
    PX_SEM_GUARD(permit, &sem);

    if (permit.status == 0)
        return (int)px_sem_count(&sem) + 40;
    return -1;
}

IN_RUN(S_sem_32_an_early_return_cannot_leak_the_permit)
{
    fresh(2);
    EXPECT_EQ(return_early(), 41);
    EXPECT_EQ(px_sem_count(&sem), 2);
}

IN_RUN(S_sem_33_a_guard_released_by_hand_releases_once)
{
    fresh(1);
    {
        PX_SEM_GUARD(permit, &sem);

        px_sem_guard_release(&permit);
        EXPECT_EQ(px_sem_count(&sem), 1);
        px_sem_guard_release(&permit);
        EXPECT_EQ(px_sem_count(&sem), 1);
        EXPECT_EQ(permit.status, 0);
    }
    EXPECT_EQ(px_sem_count(&sem), 1);
}

IN_RUN(a_guard_that_holds_nothing_gives_nothing_back)
{
    px_scope scope;

    fresh(1);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    {
        PX_SEM_GUARD(permit, &sem);
        PX_MUTEX_GUARD(lock, &mutex);

        EXPECT_CODE(permit.status, PX_ETIMEDOUT);
        EXPECT_CODE(lock.status, PX_ETIMEDOUT);
        px_sem_guard_release(&permit);
        px_mutex_guard_release(&lock);
    }
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_MUTEX(&mutex, "free:");
}

static void a_guard_of_nothing_says_so(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init(&sem, 0), 0);
    assert_int_equal(px_mutex_init(&mutex), 0);
    {
        PX_SEM_GUARD(none, NULL);
        PX_SEM_GUARD(off_fiber, &sem);
        PX_MUTEX_GUARD(no_lock, NULL);
        PX_MUTEX_GUARD(lock_off_fiber, &mutex);

        assert_int_equal(none.status, PX_EINVAL);
        assert_int_equal(off_fiber.status, PX_ENOFIBER);
        assert_int_equal(no_lock.status, PX_EINVAL);
        assert_int_equal(lock_off_fiber.status, PX_ENOFIBER);
    }
    assert_int_equal(px_sem_count(&sem), 0);
    assert_true(px_mutex_owner(&mutex) == PX_NO_FIBER);
    px_sem_guard_release(NULL);
    px_mutex_guard_release(NULL);
}

static void a_sem_guard_works_off_a_fiber_while_permits_last(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init(&sem, 1), 0);
    {
        PX_SEM_GUARD(permit, &sem);

        assert_int_equal(permit.status, 0);
        assert_int_equal(px_sem_count(&sem), 0);
    }
    assert_int_equal(px_sem_count(&sem), 1);
}

static int hold_by_guard_for_10_ms(void *arg)
{
    PX_SEM_GUARD(permit, &sem);
    PX_MUTEX_GUARD(lock, &mutex);

    (void)arg;
    EXPECT_EQ(permit.status, 0);
    EXPECT_EQ(lock.status, 0);
    note("in %lld, ", (long long)(px_now() / PX_MSEC));
    return px_sleep(10 * PX_MSEC);
}

IN_RUN(S_mtx_16_a_guard_waits_as_lock_and_down_do)
{
    px_fiber *fibers[3];

    fresh(1);
    for (int i = 0; i < 3; i++)
        fibers[i] = start_handle(hold_by_guard_for_10_ms, NULL);
    EXPECT_EQ(px_await_all(fibers, 3, NULL), 0);
    EXPECT_LOG("in 0, in 10, in 20, ");
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_MUTEX(&mutex, "free:");
}

IN_RUN(S_mtx_15_inside_the_block_it_is_held_and_released_at_the_end_of_it)
{
    fresh(0);
    {
        PX_MUTEX_GUARD(guard, &mutex);

        EXPECT_EQ(guard.status, 0);
        note("inside the block it is held: %s, ",
             px_mutex_owner(&mutex) != PX_NO_FIBER ? "yes" : "no");
    }
    note("and released at the end of it: %s",
         px_mutex_owner(&mutex) != PX_NO_FIBER ? "no" : "yes");
    EXPECT_LOG("inside the block it is held: yes, and released at the end of "
               "it: yes");
}

IN_RUN(a_mutex_guard_released_by_hand_unlocks_once)
{
    fresh(0);
    {
        PX_MUTEX_GUARD(guard, &mutex);

        px_mutex_guard_release(&guard);
        EXPECT_MUTEX(&mutex, "free:");
        EXPECT_EQ(px_mutex_lock(&mutex), 0);
        px_mutex_guard_release(&guard);
        EXPECT_MUTEX(&mutex, "0:");
    }
    EXPECT_MUTEX(&mutex, "0:");
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
}

static int cache[8], entries, tickets;

static int fill_cache(void *arg)
{
    int n = *(int *)arg;
    PX_MUTEX_GUARD(guard, &mutex);

    EXPECT_EQ(guard.status, 0);
    cache[n] = tickets++;
    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    entries++;
    return 0;
}

static void fill_cache_by(int fibers)
{
    static int numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    px_fiber *handles[8];

    fresh(0);
    entries = tickets = 0;
    for (int i = 0; i < fibers; i++)
        handles[i] = start_handle(fill_cache, &numbers[i]);
    EXPECT_EQ(px_await_all(handles, (size_t)fibers, NULL), 0);
    note("cached %d entries", entries);
    for (int i = 0; i < fibers; i++)
        EXPECT_EQ(cache[i], i);
    EXPECT_MUTEX(&mutex, "free:");
}

IN_RUN(S_mtx_1_cached_4_entries)
{
    fill_cache_by(4);
    EXPECT_LOG("cached 4 entries");
}

IN_RUN(S_mtx_47_cached_6_entries_taken_in_ticket_order)
{
    fill_cache_by(6);
    EXPECT_LOG("cached 6 entries");
}

static px_mutex_guard carried;

static int carry_the_guard_out(void *arg)
{
    (void)arg;
    carried = px_mutex_guard_begin(&mutex);
    return carried.status;
}

static int release_in_the_wrong_fiber(void *arg)
{
    int value;

    (void)arg;
    fresh(0);
    EXPECT_EQ(px_await(start_handle(carry_the_guard_out, NULL), &value), 0);
    EXPECT_EQ(value, 0);
    note("the lock is held: %s, ",
         px_mutex_owner(&mutex) != PX_NO_FIBER ? "yes" : "no");
    px_mutex_guard_release(&carried);
    return 0;
}

static void
S_mtx_57_a_guard_carried_out_of_its_fiber_leaves_it_held(void **state)
{
    (void)state;
    run_fibers(release_in_the_wrong_fiber, NULL);
    note("and after the run it is still: %s",
         px_mutex_owner(&mutex) != PX_NO_FIBER ? "held" : "free");
    assert_log("the lock is held: yes, and after the run it is still: held");
}

IN_RUN(all_guards_of_a_scope_are_released_at_its_end)
{
    static px_sem second;

    fresh(1);
    EXPECT_EQ(px_sem_init(&second, 1), 0);
    {
        PX_SEM_GUARD(first_permit, &sem);
        PX_SEM_GUARD(second_permit, &second);

        EXPECT_EQ(first_permit.status + second_permit.status, 0);
        take('a', &sem, 1);
        take('b', &second, 1);
    }
    EXPECT_EQ(px_sem_count(&sem), 0);
    EXPECT_EQ(px_sem_count(&second), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=ok");
}

IN_RUN(a_guard_gives_back_to_a_closed_semaphore)
{
    fresh(1);
    {
        PX_SEM_GUARD(permit, &sem);

        EXPECT_EQ(permit.status, 0);
        EXPECT_EQ(px_sem_close(&sem), 0);
    }
    EXPECT_EQ(px_sem_count(&sem), 1);
}

IN_RUN(a_guard_gives_back_in_a_fired_scope)
{
    px_scope scope;

    fresh(1);
    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    {
        PX_SEM_GUARD(permit, &sem);
        PX_MUTEX_GUARD(lock, &mutex);

        EXPECT_EQ(permit.status, 0);
        EXPECT_EQ(lock.status, 0);
        EXPECT_EQ(px_scope_cancel(&scope), 0);
        EXPECT_CODE(px_sleep(PX_MSEC), PX_ECANCELED);
    }
    EXPECT_CODE(px_scope_leave(&scope), PX_ECANCELED);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_MUTEX(&mutex, "free:");
}

/* Block forms: every way out. */

IN_RUN(a_hold_runs_its_block_once_and_holds_meanwhile)
{
    int code = 99, runs = 0;

    fresh(1);
    PX_SEM_HOLD(&sem, code) {
        runs++;
        EXPECT_EQ(code, 0);
        EXPECT_EQ(px_sem_count(&sem), 0);
    }
    EXPECT_EQ(code, 0);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(px_sem_count(&sem), 1);
    code = 99;
    PX_MUTEX_HOLD(&mutex, code) {
        runs++;
        EXPECT_EQ(code, 0);
        EXPECT_MUTEX(&mutex, "0:");
    }
    EXPECT_EQ(code, 0);
    EXPECT_EQ(runs, 2);
    EXPECT_MUTEX(&mutex, "free:");
}

IN_RUN(a_hold_of_one_statement_needs_no_braces)
{
    int code, seen = -1;

    fresh(1);
    PX_SEM_HOLD(&sem, code)
        seen = (int)px_sem_count(&sem);
    EXPECT_EQ(seen, 0);
    EXPECT_EQ(px_sem_count(&sem), 1);
    if (seen == 0)
        PX_MUTEX_HOLD(&mutex, code)
            seen = (int)px_mutex_owner(&mutex) + 10;
    else
        seen = -2;
    EXPECT_EQ(code, 0);
    EXPECT_EQ(seen, 10);
    EXPECT_MUTEX(&mutex, "free:");
}

IN_RUN(break_ends_the_block_and_not_the_loop_around_it)
{
    int code, rounds = 0, after = 0;

    fresh(1);
    for (int i = 0; i < 3; i++) {
        PX_SEM_HOLD(&sem, code) {
            rounds++;
            if (rounds > 0)
                break;
            rounds = 100;
        }
        after++;
        EXPECT_EQ(px_sem_count(&sem), 1);
        PX_MUTEX_HOLD(&mutex, code) {
            if (rounds < 100)
                break;
            rounds = 200;
        }
        EXPECT_MUTEX(&mutex, "free:");
    }
    EXPECT_EQ(rounds, 3);
    EXPECT_EQ(after, 3);
}

IN_RUN(continue_ends_the_block_and_not_the_turn_of_the_loop)
{
    int code, rounds = 0, after = 0;

    fresh(1);
    while (rounds < 3) {
        PX_SEM_HOLD(&sem, code) {
            rounds++;
            if (rounds > 0)
                continue;
            rounds = 100;
        }
        after++;
        EXPECT_EQ(px_sem_count(&sem), 1);
        PX_MUTEX_HOLD(&mutex, code) {
            if (rounds < 100)
                continue;
            rounds = 200;
        }
        after++;
        EXPECT_MUTEX(&mutex, "free:");
    }
    EXPECT_EQ(rounds, 3);
    EXPECT_EQ(after, 6);
}

static int return_from_a_hold(int n)
{
    int code;

    PX_SEM_HOLD(&sem, code) {
        if (n == 1)
            return (int)px_sem_count(&sem) + 10;
        PX_MUTEX_HOLD(&mutex, code) {
            if (n == 2)
                return (int)px_mutex_owner(&mutex) + 20;
        }
    }
    return 30;
}

IN_RUN(return_leaves_the_block_and_the_function)
{
    fresh(1);
    EXPECT_EQ(return_from_a_hold(1), 10);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_EQ(return_from_a_hold(2), 20);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_MUTEX(&mutex, "free:");
    EXPECT_EQ(return_from_a_hold(3), 30);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_MUTEX(&mutex, "free:");
}

IN_RUN(goto_leaves_the_block)
{
    int code, tries = 0;

    fresh(1);
again:
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_MUTEX(&mutex, "free:");
    PX_SEM_HOLD(&sem, code) {
        PX_MUTEX_HOLD(&mutex, code) {
            if (++tries < 3)
                goto again;
            goto out;
        }
        tries = 100;
    }
    tries = 200;
out:
    EXPECT_EQ(tries, 3);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_MUTEX(&mutex, "free:");
}

static int count_and_owner(void)
{
    return 10 * (int)px_sem_count(&sem) + (int)px_mutex_owner(&mutex);
}

/* Names made of the line alone would meet here. */
IN_RUN(holds_nest_on_one_line_and_in_each_other)
{
    int a = -9, b = -9, c = -9, seen = -9;

    fresh(3);
    /* clang-format off */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wshadow"
    PX_SEM_HOLD(&sem, a) PX_SEM_HOLD(&sem, b) seen = count_and_owner();
    EXPECT_EQ(seen, 9);
    PX_MUTEX_HOLD(&mutex, a) PX_WITHIN(w, PX_SEC) PX_SEM_HOLD(&sem, b) break;
    EXPECT_EQ(count_and_owner(), 29);
    PX_SEM_HOLD(&sem, a) { PX_MUTEX_HOLD(&mutex, b) { PX_SEM_HOLD(&sem, c)
        seen = count_and_owner(); } }
#pragma GCC diagnostic pop
    /* clang-format on */
    EXPECT_EQ(seen, 10);
    EXPECT_EQ(a + b + c, 0);
    EXPECT_EQ(px_sem_count(&sem), 3);
    EXPECT_MUTEX(&mutex, "free:");
}

IN_RUN(two_holds_on_one_line_follow_each_other)
{
    px_mutex *m = &mutex;
    int code, runs = 0;

    fresh(1);
    /* clang-format off */
    PX_SEM_HOLD(&sem, code) { runs++; } PX_SEM_HOLD(&sem, code) { runs++; }
    PX_MUTEX_HOLD(m, code) { runs++; } PX_MUTEX_HOLD(m, code) { runs++; }
    /* clang-format on */
    EXPECT_EQ(runs, 4);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_MUTEX(&mutex, "free:");
}

IN_RUN(break_in_a_switch_or_a_loop_inside_a_hold_is_theirs)
{
    int code, seen = 0;

    fresh(1);
    PX_SEM_HOLD(&sem, code) {
        switch (seen) {
        case 0:
            seen = 1;
            break;
        default:
            seen = 50;
        }
        for (int i = 0; i < 10; i++) {
            if (i == 3)
                break;
            seen++;
        }
        EXPECT_EQ(px_sem_count(&sem), 0);
        seen += 10;
    }
    EXPECT_EQ(seen, 14);
    EXPECT_EQ(px_sem_count(&sem), 1);
}

static int hold_in_a_case(int n)
{
    int code, seen = 0;

    switch (n) {
    case 1:
        PX_SEM_HOLD(&sem, code) {
            seen = 1;
        }
        break;
    case 2:
        PX_MUTEX_HOLD(&mutex, code) {
            seen = 2;
            break;
        }
        seen += 20;
        break;
    default:
        seen = 3;
    }
    return seen;
}

IN_RUN(a_hold_stands_in_a_case_of_a_switch)
{
    fresh(1);
    EXPECT_EQ(hold_in_a_case(1), 1);
    EXPECT_EQ(hold_in_a_case(2), 22);
    EXPECT_EQ(hold_in_a_case(3), 3);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_MUTEX(&mutex, "free:");
}

IN_RUN(a_hold_that_is_refused_skips_its_block_and_gives_nothing_back)
{
    int code = 0, runs = 0;
    px_scope scope;

    fresh(1);
    PX_SEM_HOLD(NULL, code)
        runs++;
    EXPECT_CODE(code, PX_EINVAL);
    PX_MUTEX_HOLD(NULL, code)
        runs++;
    EXPECT_CODE(code, PX_EINVAL);
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    PX_MUTEX_HOLD(&mutex, code)
        runs++;
    EXPECT_CODE(code, PX_EDEADLK);
    EXPECT_MUTEX(&mutex, "0:");
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    PX_SEM_HOLD(&sem, code)
        runs++;
    EXPECT_CODE(code, PX_ETIMEDOUT);
    code = 0;
    PX_MUTEX_HOLD(&mutex, code)
        runs++;
    EXPECT_CODE(code, PX_ETIMEDOUT);
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_sem_close(&sem), 0);
    PX_SEM_HOLD(&sem, code)
        runs++;
    EXPECT_CODE(code, PX_ECLOSED);
    EXPECT_EQ(runs, 0);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_MUTEX(&mutex, "free:");
}

static int evaluations;

static px_sem *counted_sem(void)
{
    evaluations++;
    return &sem;
}

static px_mutex *counted_mutex(void)
{
    evaluations++;
    return &mutex;
}

IN_RUN(the_arguments_are_evaluated_once)
{
    int codes[3] = {9, 9, 9}, *code = codes;

    fresh(2);
    evaluations = 0;
    {
        PX_SEM_GUARD(permit, counted_sem());
        PX_MUTEX_GUARD(lock, counted_mutex());

        EXPECT_EQ(permit.status + lock.status, 0);
    }
    EXPECT_EQ(evaluations, 2);
    PX_SEM_HOLD(counted_sem(), *code++) {
        evaluations += 10;
    }
    PX_MUTEX_HOLD(counted_mutex(), *code++) {
        evaluations += 10;
    }
    EXPECT_EQ(evaluations, 24);
    EXPECT_EQ(code - codes, 2);
    EXPECT_EQ(codes[0], 0);
    EXPECT_EQ(codes[1], 0);
    EXPECT_EQ(codes[2], 9);
}

static int hold_while_sleeping(void *arg)
{
    int code;

    PX_MUTEX_HOLD(&mutex, code) {
        note("%c in, ", *(char *)arg);
        if (px_sleep(10 * PX_MSEC) != 0)
            break;
        note("%c out, ", *(char *)arg);
    }
    return code;
}

IN_RUN(a_hold_waits_parks_inside_and_hands_over)
{
    static char names[3] = {'a', 'b', 'c'};
    px_fiber *fibers[3];
    int results[3];

    fresh(0);
    for (int i = 0; i < 3; i++)
        fibers[i] = start_handle(hold_while_sleeping, &names[i]);
    settle();
    EXPECT_EQ(px_cancel(fibers[1]), 0);
    EXPECT_EQ(px_await_all(fibers, 3, results), 0);
    EXPECT_CODE(results[0], 0);
    EXPECT_CODE(results[1], PX_ECANCELED);
    EXPECT_CODE(results[2], 0);
    EXPECT_LOG("a in, a out, c in, c out, ");
    EXPECT_MUTEX(&mutex, "free:");
}

IN_RUN(a_cancellation_inside_a_hold_still_releases)
{
    static char name = 'a';
    px_fiber *fiber;
    int value;

    fresh(0);
    fiber = start_handle(hold_while_sleeping, &name);
    settle();
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_LOG("a in, ");
    EXPECT_MUTEX(&mutex, "free:");
}

IN_RUN(a_lock_unlocked_by_hand_inside_a_hold_is_left_alone_at_its_end)
{
    int code;

    fresh(0);
    PX_MUTEX_HOLD(&mutex, code) {
        EXPECT_EQ(px_mutex_unlock(&mutex), 0);
        pass_lock('a', &mutex);
        lock_in_fiber('b', &mutex);
    }
    EXPECT_EQ(code, 0);
    EXPECT_MUTEX(&mutex, "b: a=ok b=ok");
}

/* with. */

static int count_inside(void *arg)
{
    int *add = arg;

    return (int)px_sem_count(&sem) + *add;
}

static void S_sem_45_with_works_off_a_fiber_while_a_permit_is_free(void **state)
{
    int hundred = 100;

    (void)state;
    assert_int_equal(px_sem_init(&sem, 1), 0);
    assert_int_equal(px_sem_with(&sem, count_inside, &hundred), 100);
    assert_int_equal(px_sem_count(&sem), 1);
    assert_int_equal(px_sem_init(&sem, 0), 0);
    assert_int_equal(px_sem_with(&sem, count_inside, &hundred), PX_ENOFIBER);
    assert_int_equal(px_sem_count(&sem), 0);
}

static int owner_inside(void *arg)
{
    return (int)px_mutex_owner(&mutex) + *(int *)arg;
}

static int fail_inside(void *arg)
{
    (void)arg;
    return PX_EPERM;
}

IN_RUN(S_php_4_with_returns_what_fn_returns_and_releases_however_it_ends)
{
    int seventy = 70;

    fresh(1);
    EXPECT_EQ(px_sem_with(&sem, count_inside, &seventy), 70);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_CODE(px_sem_with(&sem, fail_inside, NULL), PX_EPERM);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_EQ(px_mutex_with(&mutex, owner_inside, &seventy), 70);
    EXPECT_MUTEX(&mutex, "free:");
    EXPECT_CODE(px_mutex_with(&mutex, fail_inside, NULL), PX_EPERM);
    EXPECT_MUTEX(&mutex, "free:");
}

static int must_not_run(void *arg)
{
    (void)arg;
    note("it ran");
    return 0;
}

IN_RUN(with_returns_the_code_of_the_wait_and_does_not_call_fn)
{
    px_scope scope;

    fresh(1);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_CODE(px_sem_with(&sem, must_not_run, NULL), PX_ETIMEDOUT);
    EXPECT_CODE(px_mutex_with(&mutex, must_not_run, NULL), PX_ETIMEDOUT);
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    EXPECT_CODE(px_mutex_with(&mutex, must_not_run, NULL), PX_EDEADLK);
    EXPECT_MUTEX(&mutex, "0:");
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    EXPECT_EQ(px_sem_close(&sem), 0);
    EXPECT_CODE(px_sem_with(&sem, must_not_run, NULL), PX_ECLOSED);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_LOG("");
}

static void with_refuses_null_and_the_mutex_off_a_fiber(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init(&sem, 1), 0);
    assert_int_equal(px_mutex_init(&mutex), 0);
    assert_int_equal(px_sem_with(NULL, must_not_run, NULL), PX_EINVAL);
    assert_int_equal(px_sem_with(&sem, NULL, NULL), PX_EINVAL);
    assert_int_equal(px_mutex_with(NULL, must_not_run, NULL), PX_EINVAL);
    assert_int_equal(px_mutex_with(&mutex, NULL, NULL), PX_EINVAL);
    assert_int_equal(px_mutex_with(&mutex, must_not_run, NULL), PX_ENOFIBER);
    assert_int_equal(px_sem_count(&sem), 1);
    assert_true(px_mutex_owner(&mutex) == PX_NO_FIBER);
    assert_log("");
}

IN_RUN(a_bad_argument_of_with_comes_before_a_fired_scope)
{
    px_scope scope;

    fresh(1);
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_CODE(px_sem_with(&sem, NULL, NULL), PX_EINVAL);
    EXPECT_CODE(px_mutex_with(&mutex, NULL, NULL), PX_EINVAL);
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_MUTEX(&mutex, "free:");
}

static int with_inside_with(void *arg)
{
    EXPECT_EQ(px_sem_count(&sem), 1);
    return px_sem_with(&sem, count_inside, arg);
}

IN_RUN(with_nests)
{
    int five = 5;

    fresh(2);
    EXPECT_EQ(px_sem_with(&sem, with_inside_with, &five), 5);
    EXPECT_EQ(px_sem_count(&sem), 2);
}

static int unlock_inside(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    lock_in_fiber('a', &mutex);
    return 3;
}

IN_RUN(what_fn_unlocked_itself_is_left_alone_by_with)
{
    fresh(0);
    EXPECT_EQ(px_mutex_with(&mutex, unlock_inside, NULL), 3);
    EXPECT_MUTEX(&mutex, "a: a=ok");
}

static int queue_one_more(void *arg)
{
    (void)arg;
    take('b', &sem, 1);
    return 0;
}

IN_RUN(a_waiter_gets_the_permit_that_a_guard_or_with_gives_back)
{
    fresh(1);
    {
        PX_SEM_GUARD(permit, &sem);

        EXPECT_EQ(permit.status, 0);
        take('a', &sem, 1);
    }
    EXPECT_SEM(&sem, "0: a=-");
    settle();
    EXPECT_SEM(&sem, "0: a=ok");
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_with(&sem, queue_one_more, NULL), 0);
    EXPECT_SEM(&sem, "0: a=ok b=-");
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=ok");
}

static const struct CMUnitTest guard_tests[] = {
    PX_TEST(S_sem_31_inside_the_scope_the_count_is_0_and_after_it_1),
    PX_TEST(S_sem_32_an_early_return_cannot_leak_the_permit),
    PX_TEST(S_sem_33_a_guard_released_by_hand_releases_once),
    PX_TEST(a_guard_that_holds_nothing_gives_nothing_back),
    PX_TEST(a_guard_of_nothing_says_so),
    PX_TEST(a_sem_guard_works_off_a_fiber_while_permits_last),
    PX_TEST(S_mtx_16_a_guard_waits_as_lock_and_down_do),
    PX_TEST(S_mtx_15_inside_the_block_it_is_held_and_released_at_the_end_of_it),
    PX_TEST(a_mutex_guard_released_by_hand_unlocks_once),
    PX_TEST(S_mtx_1_cached_4_entries),
    PX_TEST(S_mtx_47_cached_6_entries_taken_in_ticket_order),
    PX_TEST(S_mtx_57_a_guard_carried_out_of_its_fiber_leaves_it_held),
    PX_TEST(all_guards_of_a_scope_are_released_at_its_end),
    PX_TEST(a_guard_gives_back_to_a_closed_semaphore),
    PX_TEST(a_guard_gives_back_in_a_fired_scope),
    PX_TEST(a_hold_runs_its_block_once_and_holds_meanwhile),
    PX_TEST(a_hold_of_one_statement_needs_no_braces),
    PX_TEST(break_ends_the_block_and_not_the_loop_around_it),
    PX_TEST(continue_ends_the_block_and_not_the_turn_of_the_loop),
    PX_TEST(return_leaves_the_block_and_the_function),
    PX_TEST(goto_leaves_the_block),
    PX_TEST(holds_nest_on_one_line_and_in_each_other),
    PX_TEST(two_holds_on_one_line_follow_each_other),
    PX_TEST(break_in_a_switch_or_a_loop_inside_a_hold_is_theirs),
    PX_TEST(a_hold_stands_in_a_case_of_a_switch),
    PX_TEST(a_hold_that_is_refused_skips_its_block_and_gives_nothing_back),
    PX_TEST(the_arguments_are_evaluated_once),
    PX_TEST(a_hold_waits_parks_inside_and_hands_over),
    PX_TEST(a_cancellation_inside_a_hold_still_releases),
    PX_TEST(a_lock_unlocked_by_hand_inside_a_hold_is_left_alone_at_its_end),
    PX_TEST(S_sem_45_with_works_off_a_fiber_while_a_permit_is_free),
    PX_TEST(S_php_4_with_returns_what_fn_returns_and_releases_however_it_ends),
    PX_TEST(with_returns_the_code_of_the_wait_and_does_not_call_fn),
    PX_TEST(with_refuses_null_and_the_mutex_off_a_fiber),
    PX_TEST(a_bad_argument_of_with_comes_before_a_fired_scope),
    PX_TEST(with_nests),
    PX_TEST(what_fn_unlocked_itself_is_left_alone_by_with),
    PX_TEST(a_waiter_gets_the_permit_that_a_guard_or_with_gives_back),
};

PX_TEST_MAIN(guard_tests)
