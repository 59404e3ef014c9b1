/* SPDX-License-Identifier: MIT */
/*
 * test_deadlock.c - when nothing can wake anything: who is told, in what
 * order, what stays, and how a run goes on.
 *
 * The report's text is in test_dump.c, the ends that abort in
 * test_stalemate.c.
 */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "support/px_scale.h"
#include "support/px_test.h"

static int reports;

static void count_report(void *ctx)
{
    (void)ctx;
    reports++;
}

static px_run_options counting(void)
{
    px_run_options options;

    memset(&options, 0, sizeof(options));
    options.on_deadlock = count_report;
    reports = 0;
    return options;
}

/* Run; expect a deadlock, reported once, and the body's value 0. */
static void run_stalled(px_fn fn, void *arg)
{
    for (int real = 0; real < 2; real++) {
        px_run_options options = counting();
        int result = 99;

        log_clear();
        options.result = &result;
        assert_int_equal(run_fibers_with(options, real, fn, arg), PX_ESTALLED);
        assert_int_equal(result, 0);
        assert_int_equal(reports, 1);
    }
}

/* Run; expect that no deadlock is seen. */
static void run_unstalled(px_fn fn, void *arg)
{
    for (int real = 0; real < 2; real++) {
        log_clear();
        assert_int_equal(run_fibers_with(counting(), real, fn, arg), 0);
        assert_int_equal(reports, 0);
    }
}

static int down(void *arg)
{
    return px_sem_down(arg);
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* --- Who is told ---------------------------------------------------------- */

static int wait_alone(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    EXPECT_EQ(px_sem_down(&sem), PX_ESTALLED);
    EXPECT_EQ(px_sem_waiters(&sem), 0);
    EXPECT_EQ(px_sem_count(&sem), 0);
    EXPECT_EQ(px_check(), 0); /* it is no scope that has fired */
    EXPECT_EQ(px_yield(), 0);
    EXPECT_EQ(px_sleep(1), 0);
    return 0;
}

static void R122_a_wait_that_nothing_can_end_is_stalled(void **state)
{
    (void)state;
    run_stalled(wait_alone, NULL);
    assert_log("");
}

static int wait_twice_over(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_fiber *fiber = start_handle(down, &sem);
    int value = 0;

    (void)arg;
    /* every fiber has ended but those two */
    EXPECT_EQ(px_await(fiber, &value), PX_ESTALLED);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, PX_ESTALLED);
    return 0;
}

static void everybody_who_is_parked_is_told(void **state)
{
    (void)state;
    run_stalled(wait_twice_over, NULL);
    assert_log("");
}

static int leave_one_parked(void *arg)
{
    start(down, arg);
    return 0;
}

static void R124_a_fiber_left_parked_stalls_the_run(void **state)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)state;
    run_stalled(leave_one_parked, &sem);
    assert_int_equal(px_sem_waiters(&sem), 0);
    assert_log("");
}

static int down_n(void *arg)
{
    px_sem *sem = arg;
    int want = px_current_id() == 1 ? 2 : 1;
    int error = px_sem_down_n(sem, want);

    note("%lld:%s ", (long long)px_current_id(), err(error));
    if (error == 0)
        EXPECT_EQ(px_sem_up_n(sem, want), 0);
    return 0;
}

static int hold_back_others(void *arg)
{
    px_sem sem = PX_SEM_INIT(1);
    px_fiber *all[3];

    (void)arg;
    for (int i = 0; i < 3; i++)
        all[i] = start_handle(down_n, &sem);
    EXPECT_EQ(px_sem_waiters(&sem), 3);
    EXPECT_EQ(px_await_all(all, 3, NULL), PX_ESTALLED); /* 0 comes first */
    EXPECT_EQ(px_await_all(all, 3, NULL), 0);
    EXPECT_EQ(px_sem_count(&sem), 1);
    return 0;
}

/* 1 wants two of one permit and holds back 2 and 3. It is told first, and 2 has
 * its grant before its turn comes; 3 has none, and is told. */
static void who_is_let_through_by_an_interruption_keeps_the_grant(void **state)
{
    (void)state;
    run_stalled(hold_back_others, NULL);
    assert_int_equal(strlen(log_text()), 25);
    assert_non_null(strstr(log_text(), "1:stalled "));
    assert_non_null(strstr(log_text(), "2:ok "));
    assert_non_null(strstr(log_text(), "3:stalled "));
}

static int lock_and_note(void *arg)
{
    int error = px_mutex_lock(arg);

    note("%lld:%s ", (long long)px_current_id(), err(error));
    if (error == 0)
        EXPECT_EQ(px_mutex_unlock(arg), 0);
    return 0;
}

struct locks {
    px_mutex a;
    px_mutex b;
};

static int lock_a_b(void *arg)
{
    struct locks *locks = arg;
    int error;

    EXPECT_EQ(px_mutex_lock(&locks->a), 0);
    EXPECT_EQ(px_sleep(1), 0);
    error = px_mutex_lock(&locks->b);
    note("ab:%s ", err(error));
    if (error == 0)
        EXPECT_EQ(px_mutex_unlock(&locks->b), 0);
    EXPECT_EQ(px_mutex_unlock(&locks->a), 0);
    return 0;
}

static int lock_b_a(void *arg)
{
    struct locks *locks = arg;
    int error;

    EXPECT_EQ(px_mutex_lock(&locks->b), 0);
    EXPECT_EQ(px_sleep(1), 0);
    error = px_mutex_lock(&locks->a);
    note("ba:%s ", err(error));
    if (error == 0)
        EXPECT_EQ(px_mutex_unlock(&locks->a), 0);
    EXPECT_EQ(px_mutex_unlock(&locks->b), 0);
    return 0;
}

static int lock_crosswise(void *arg)
{
    struct locks locks = {PX_MUTEX_INIT, PX_MUTEX_INIT};
    px_waitgroup wg = PX_WAITGROUP_INIT(0);

    (void)arg;
    EXPECT_EQ(px_waitgroup_go(&wg, lock_a_b, &locks), 0);
    EXPECT_EQ(px_waitgroup_go(&wg, lock_b_a, &locks), 0);
    EXPECT_EQ(px_waitgroup_wait(&wg), PX_ESTALLED);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    EXPECT_EQ(px_mutex_owner(&locks.a), PX_NO_FIBER);
    EXPECT_EQ(px_mutex_owner(&locks.b), PX_NO_FIBER);
    return 0;
}

static void R65_locks_taken_crosswise_stall_both_and_come_free(void **state)
{
    (void)state;
    run_stalled(lock_crosswise, NULL);
    assert_int_equal(strlen(log_text()), 22);
    assert_non_null(strstr(log_text(), "ab:stalled "));
    assert_non_null(strstr(log_text(), "ba:stalled "));
}

static int end_with_lock(void *arg)
{
    return px_mutex_lock(arg);
}

static int wait_for_an_ended_owner(void *arg)
{
    px_mutex lock = PX_MUTEX_INIT;

    (void)arg;
    start(end_with_lock, &lock);
    start(lock_and_note, &lock);
    EXPECT_EQ(px_mutex_lock(&lock), PX_ESTALLED);
    EXPECT_EQ(px_mutex_waiters(&lock), 0);
    EXPECT_EQ(px_mutex_owner(&lock), 1);
    return 0;
}

static void R62_S_mtx_53_waiting_for_an_ended_owner_is_stalled(void **state)
{
    (void)state;
    run_stalled(wait_for_an_ended_owner, NULL);
    assert_log("2:stalled ");
}

static int wait_removed(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_fiber *fiber = start_handle(down, &sem);
    int value = 0;

    (void)arg;
    EXPECT_EQ(px_sem_remove_waiter(&sem, px_id(fiber)), 1);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_EQ(px_await(fiber, &value), PX_ESTALLED);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, PX_ESTALLED);
    EXPECT_EQ(px_sem_count(&sem), 1);
    return 0;
}

static void S_sem_38_a_removed_waiter_stays_parked_until_stalled(void **state)
{
    (void)state;
    run_stalled(wait_removed, NULL);
    assert_log("");
}

static int shielded(void *arg)
{
    EXPECT_EQ(px_sem_down(arg), PX_ESTALLED);
    return 5;
}

static int wait_shielded(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    EXPECT_EQ(px_with_shield(PX_FOREVER, shielded, &sem), 5);
    return 0;
}

static void shields_do_not_hold_a_stall_back(void **state)
{
    (void)state;
    run_stalled(wait_shielded, NULL);
    assert_log("");
}

static int wait_within_for_ever(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_scope scope;

    (void)arg;
    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_sem_down(&sem), PX_ESTALLED);
    EXPECT_EQ(px_scope_leave(&scope), 0);
    return 0;
}

static void R123_a_scope_without_a_deadline_is_no_hope(void **state)
{
    (void)state;
    run_stalled(wait_within_for_ever, NULL);
    assert_log("");
}

static int never_mind(void *arg)
{
    px_waitgroup wg = PX_WAITGROUP_INIT(1);
    px_sem sem = PX_SEM_INIT(0);
    px_mutex lock = PX_MUTEX_INIT;

    (void)arg;
    EXPECT_EQ(px_waitgroup_wait(&wg), PX_ESTALLED);
    EXPECT_EQ(px_waitgroup_waiters(&wg), 0);
    EXPECT_EQ(px_waitgroup_count(&wg), 1);
    EXPECT_EQ(px_sem_wait_available(&sem), PX_ESTALLED);
    EXPECT_EQ(px_sem_waiters(&sem), 0);
    EXPECT_EQ(px_sem_with(&sem, nothing, NULL), PX_ESTALLED);
    EXPECT_EQ(px_sleep(PX_FOREVER), PX_ESTALLED);
    EXPECT_EQ(px_sleep_until(PX_FOREVER), PX_ESTALLED);
    start(end_with_lock, &lock);
    EXPECT_EQ(px_mutex_with(&lock, nothing, NULL), PX_ESTALLED);
    EXPECT_EQ(px_mutex_waiters(&lock), 0);
    return 0;
}

static void every_kind_of_wait_says_so_and_a_run_reports_once(void **state)
{
    (void)state;
    run_stalled(never_mind, NULL);
    assert_log("");
}

/* --- What stays ----------------------------------------------------------- */

static int wait_in_rounds(void *arg)
{
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(px_sem_down(arg), PX_ESTALLED);
    note("child ends; ");
    return -7;
}

static int wait_for_children(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_group group;

    (void)arg;
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, wait_in_rounds, &sem), 0);
    EXPECT_EQ(px_group_wait(&group), -7); /* not before the child has ended */
    note("group ends; ");
    return 0;
}

static void a_group_waits_for_its_children_through_all_rounds(void **state)
{
    (void)state;
    run_stalled(wait_for_children, NULL);
    assert_log("child ends; group ends; ");
}

static int stall_child(void *arg)
{
    return px_sem_down(arg);
}

static int stalled_children(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_group group;

    (void)arg;
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, stall_child, &sem), 0);
    EXPECT_EQ(px_group_spawn(&group, stall_child, &sem), 0);
    EXPECT_EQ(px_group_wait(&group), PX_ESTALLED);
    return 0;
}

static void a_stalled_child_is_a_failed_one(void **state)
{
    (void)state;
    run_stalled(stalled_children, NULL);
    assert_log("");
}

static int spawn_at_limit(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_group group;

    (void)arg;
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_set_limit(&group, 1), 0);
    EXPECT_EQ(px_group_spawn(&group, wait_in_rounds, &sem), 0);
    EXPECT_EQ(px_group_spawn(&group, nothing, NULL), PX_ESTALLED);
    EXPECT_EQ(px_group_wait(&group), -7);
    return 0;
}

static void waiting_for_a_place_in_a_group_does_end_early(void **state)
{
    (void)state;
    run_stalled(spawn_at_limit, NULL);
    assert_log("child ends; ");
}

/* --- Going on ------------------------------------------------------------- */

static int clean_up_and_wait_again(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    EXPECT_EQ(px_sem_down(&sem), PX_ESTALLED);
    EXPECT_EQ(px_sleep(5), 0);
    EXPECT_EQ(px_sem_down(&sem), PX_ESTALLED);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_down(&sem), 0);
    EXPECT_EQ(px_sem_down(&sem), PX_ESTALLED);
    return 0;
}

static void fibers_go_on_and_a_second_deadlock_is_not_reported(void **state)
{
    (void)state;
    run_stalled(clean_up_and_wait_again, NULL);
    assert_log("");
}

static int wait_and_answer(void *arg)
{
    (void)arg;
    (void)wait_alone(NULL);
    return 42;
}

static void S_run_8_runs_after_a_deadlocked_one_are_as_ever(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        px_run_options options = counting();
        int result = 0;

        options.result = &result;
        assert_int_equal(run_fibers_with(options, 0, wait_and_answer, NULL),
                         PX_ESTALLED);
        assert_int_equal(result, 42);
        assert_int_equal(reports, 1); /* once per run */
        assert_int_equal(run_fibers_with(counting(), 0, nothing, NULL), 0);
        assert_int_equal(reports, 0);
    }
    assert_log("");
}

static int use_up_rounds(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    for (int i = 0; i < *(int *)arg; i++)
        EXPECT_EQ(px_sem_down(&sem), PX_ESTALLED);
    return 0;
}

static int use_up_rounds_in_turn(void *arg)
{
    for (int i = 0; i < 5; i++) {
        px_fiber *fiber = start_handle(use_up_rounds, arg);
        int error;

        while ((error = px_await(fiber, NULL)) == PX_ESTALLED)
            continue;
        EXPECT_EQ(error, 0);
    }
    return 0;
}

static void a_fiber_that_ends_makes_the_rounds_count_anew(void **state)
{
    int rounds = 900;

    (void)state;
    run_stalled(use_up_rounds, &rounds);
    run_stalled(use_up_rounds_in_turn, &rounds);
    assert_log("");
}

/* --- Ended by the callback ------------------------------------------------ */

struct rescue {
    px_sem sem;
    px_sem bounded;
    px_waitgroup wg;
    px_fiber *fiber;
    px_scope *scope;
    px_group *group;
    int how;
    int expected;
};

static void come_to_the_rescue(void *ctx)
{
    struct rescue *rescue = ctx;

    reports++;
    EXPECT_EQ(px_current_id(), PX_NO_FIBER);
    switch (rescue->how) {
    case 0:
        EXPECT_EQ(px_sem_up(&rescue->sem), 0);
        break;
    case 1:
        EXPECT_EQ(px_sem_adjust(&rescue->sem, 1), 0);
        break;
    case 2:
        EXPECT_EQ(px_sem_close(&rescue->sem), 0);
        break;
    case 3:
        EXPECT_EQ(px_sem_set_limit(&rescue->bounded, 1), 0);
        break;
    case 4:
        EXPECT_EQ(px_waitgroup_done(&rescue->wg), 0);
        break;
    case 5:
        EXPECT_EQ(px_waitgroup_add(&rescue->wg, -1), 0);
        break;
    case 6:
        EXPECT_EQ(px_cancel(rescue->fiber), 0);
        break;
    case 7:
        EXPECT_EQ(px_scope_cancel(rescue->scope), 0);
        break;
    case 8:
        EXPECT_EQ(px_group_cancel(rescue->group), 0);
        break;
    case 9:
        EXPECT_EQ(px_scope_set_deadline(rescue->scope, 0), 0);
        break;
    case 10: /* the first holds back the second */
        EXPECT_EQ(px_sem_remove_waiter(&rescue->sem, 1), 1);
        break;
    default:
        break;
    }
}

static int wait_as_said(void *arg)
{
    struct rescue *rescue = arg;

    if (rescue->how <= 2)
        return px_sem_down(&rescue->sem);
    if (rescue->how == 3)
        return px_sem_down(&rescue->bounded);
    if (rescue->how <= 5)
        return px_waitgroup_wait(&rescue->wg);
    if (rescue->how == 10)
        return px_sem_wait_available(&rescue->sem);
    return px_sem_down(&rescue->sem);
}

static int be_rescued(void *arg)
{
    struct rescue *rescue = arg;
    px_scope scope;
    px_group group;
    int error;

    rescue->fiber = px_self();
    rescue->scope = &scope;
    rescue->group = &group;
    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    if (rescue->how == 10) {
        px_fiber *large;

        EXPECT_EQ(px_sem_up(&rescue->sem), 0);
        EXPECT_EQ(px_spawn(&large, down_n, &rescue->sem), 0); /* fiber 1 */
        error = wait_as_said(rescue);
        EXPECT_EQ(px_cancel_and_await(large, NULL), 0);
    } else {
        error = wait_as_said(rescue);
    }
    EXPECT_EQ(error, rescue->expected);
    EXPECT(px_group_wait(&group) <= 0);
    EXPECT(px_scope_leave(&scope) <= 0);
    return 17;
}

static void a_callback_that_ends_the_deadlock_saves_everybody(void **state)
{
    static const int expected[] = {0,
                                   0,
                                   PX_ECLOSED,
                                   0,
                                   0,
                                   0,
                                   PX_ECANCELED,
                                   PX_ECANCELED,
                                   PX_ECANCELED,
                                   PX_ETIMEDOUT,
                                   0};

    (void)state;
    for (int how = 0; how <= 10; how++) {
        struct rescue rescue = {.sem = PX_SEM_INIT(0),
                                .bounded = PX_SEM_INIT_BOUNDED(1),
                                .wg = PX_WAITGROUP_INIT(1),
                                .how = how,
                                .expected = expected[how]};
        px_run_options options = counting();
        int result = 0;

        assert_int_equal(px_sem_set_limit(&rescue.bounded, 0), 0);
        options.on_deadlock = come_to_the_rescue;
        options.ctx = &rescue;
        options.result = &result;
        assert_int_equal(run_fibers_with(options, 0, be_rescued, &rescue), 17);
        assert_int_equal(result, 17);
        assert_int_equal(reports, 1);
    }
    assert_log("1:canceled ");
}

static int be_rescued_and_wait_again(void *arg)
{
    struct rescue *rescue = arg;

    EXPECT_EQ(px_sem_down(&rescue->sem), 0);
    EXPECT_EQ(px_sem_down(&rescue->sem), PX_ESTALLED);
    return 18;
}

static void a_rescued_run_that_deadlocks_again_is_stalled(void **state)
{
    struct rescue rescue = {.sem = PX_SEM_INIT(0), .how = 0};
    px_run_options options = counting();
    int result = 0;

    (void)state;
    options.on_deadlock = come_to_the_rescue;
    options.ctx = &rescue;
    options.result = &result;
    assert_int_equal(
        run_fibers_with(options, 0, be_rescued_and_wait_again, &rescue),
        PX_ESTALLED);
    assert_int_equal(result, 18);
    assert_int_equal(reports, 1); /* the second is not reported */
    assert_log("");
}

static uintptr_t callback_frame;

static void note_frame(void *ctx)
{
    (void)ctx;
    callback_frame = (uintptr_t)__builtin_frame_address(0);
    reports++;
}

static void the_callback_runs_on_the_threads_own_stack(void **state)
{
    px_run_options options = counting();
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    px_sem sem = PX_SEM_INIT(0);

    (void)state;
    options.on_deadlock = note_frame;
    assert_int_equal(run_fibers_with(options, 0, leave_one_parked, &sem),
                     PX_ESTALLED);
    assert_int_equal(pthread_getattr_np(pthread_self(), &attributes), 0);
    assert_int_equal(pthread_attr_getstack(&attributes, &low, &size), 0);
    assert_int_equal(pthread_attr_destroy(&attributes), 0);
    assert_true(callback_frame > (uintptr_t)low &&
                callback_frame < (uintptr_t)low + size);
}

/* A scope that was left, and what the callback reads of it. */
struct left_scope {
    px_scope scope;
    px_nsec remaining;
};

static void look_at_remaining(void *ctx)
{
    struct left_scope *left = ctx;

    left->remaining = px_scope_remaining(&left->scope);
}

static int leave_scope_and_stall(void *arg)
{
    struct left_scope *left = arg;

    EXPECT_EQ(px_scope_enter(&left->scope, PX_MINUTE), 0);
    EXPECT_EQ(px_scope_leave(&left->scope), 0);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT_EQ(px_sleep(PX_FOREVER), PX_ESTALLED);
    return 0;
}

/* px_now() is the real time there. */
static void the_callback_reads_deadlines_by_the_runs_clock(void **state)
{
    struct left_scope left = {.remaining = -1};
    px_run_options options = counting();

    (void)state;
    options.on_deadlock = look_at_remaining;
    options.ctx = &left;
    assert_int_equal(run_fibers_with(options, 0, leave_scope_and_stall, &left),
                     PX_ESTALLED);
    assert_int_equal(left.remaining, PX_MINUTE - PX_SEC);
    assert_int_equal(px_scope_remaining(&left.scope), 0); /* by the real one */
}

static void *stall_in_thread(void *arg)
{
    px_run_options options;

    memset(&options, 0, sizeof(options));
    options.on_deadlock = note_frame;
    return (void *)(intptr_t)px_run_with(&options, leave_one_parked, arg);
}

static void a_deadlock_in_another_thread_is_its_own(void **state)
{
    px_sem sem = PX_SEM_INIT(0);
    pthread_t thread;
    void *value = NULL;

    (void)state;
    reports = 0;
    assert_int_equal(pthread_create(&thread, NULL, stall_in_thread, &sem), 0);
    assert_int_equal(pthread_join(thread, &value), 0);
    assert_int_equal((intptr_t)value, PX_ESTALLED);
    assert_int_equal(reports, 1);
}

/* --- What is no deadlock -------------------------------------------------- */

static int wait_with_deadline(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    PX_WITHIN(limit, 2 * PX_MSEC)
        EXPECT_EQ(px_sem_down(&sem), PX_ETIMEDOUT);
    PX_WITHIN(another, 2 * PX_MSEC)
        EXPECT_EQ(px_sleep(PX_FOREVER), PX_ETIMEDOUT);
    return 0;
}

static void R123_a_deadline_is_hope(void **state)
{
    (void)state;
    run_unstalled(wait_with_deadline, NULL);
    assert_log("");
}

static int wait_for_a_sleeper(void *arg)
{
    EXPECT_EQ(px_sleep(2 * PX_MSEC), 0);
    EXPECT_EQ(px_sem_up(arg), 0);
    return 0;
}

static int rely_on_a_sleeper(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    start(wait_for_a_sleeper, &sem);
    EXPECT_EQ(px_sem_down(&sem), 0);
    return 0;
}

static void R123_somebody_elses_sleep_is_hope(void **state)
{
    (void)state;
    run_unstalled(rely_on_a_sleeper, NULL);
    assert_log("");
}

static void *write_later(void *arg)
{
    const int *ends = arg;

    really_sleep(5 * PX_MSEC);
    return write(ends[1], "x", 1) == 1 ? arg : NULL;
}

static int wait_on_pipe(void *arg)
{
    const int *ends = arg;
    char byte;

    EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_READABLE);
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
    return 0;
}

static int rely_on_a_descriptor(void *arg)
{
    px_fiber *fiber = start_handle(wait_on_pipe, arg);
    pthread_t thread;

    EXPECT_EQ(pthread_create(&thread, NULL, write_later, arg), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    return 0;
}

static void R123_a_descriptor_is_hope(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    run_unstalled(rely_on_a_descriptor, ends);
    assert_log("");
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static int work(void *arg)
{
    (void)arg;
    really_sleep(5 * PX_MSEC);
    return 3;
}

static int offload_and_up(void *arg)
{
    EXPECT_EQ(px_offload(work, NULL), 3);
    EXPECT_EQ(px_sem_up(arg), 0);
    return 0;
}

static int rely_on_another_thread(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    start(offload_and_up, &sem);
    EXPECT_EQ(px_sem_down(&sem), 0);
    return 0;
}

static void R123_an_offloaded_call_is_hope(void **state)
{
    (void)state;
    run_unstalled(rely_on_another_thread, NULL);
    assert_log("");
}

struct post {
    px_loop *loop;
    px_sem sem;
};

static int up_posted(void *arg)
{
    return px_sem_up(arg);
}

static void *post_later(void *arg)
{
    struct post *post = arg;

    really_sleep(5 * PX_MSEC);
    if (px_post(post->loop, up_posted, &post->sem) ||
        px_loop_unhold(post->loop))
        return NULL;
    return arg;
}

static int rely_on_a_post(void *arg)
{
    struct post post = {px_current_loop(), PX_SEM_INIT(0)};
    pthread_t thread;
    void *value = NULL;

    (void)arg;
    EXPECT_EQ(px_loop_hold(post.loop), 0);
    EXPECT_EQ(pthread_create(&thread, NULL, post_later, &post), 0);
    EXPECT_EQ(px_sem_down(&post.sem), 0);
    EXPECT_EQ(pthread_join(thread, &value), 0);
    EXPECT(value == &post);
    return 0;
}

static void R123_a_held_loop_is_hope(void **state)
{
    (void)state;
    run_unstalled(rely_on_a_post, NULL);
    assert_log("");
}

static void *unhold_later(void *arg)
{
    struct post *post = arg;

    really_sleep(5 * PX_MSEC);
    return px_loop_unhold(post->loop) ? NULL : arg;
}

static int lose_hope(void *arg)
{
    struct post post = {px_current_loop(), PX_SEM_INIT(0)};
    pthread_t thread;
    void *value = NULL;

    (void)arg;
    EXPECT_EQ(px_loop_hold(post.loop), 0);
    EXPECT_EQ(pthread_create(&thread, NULL, unhold_later, &post), 0);
    EXPECT_EQ(px_sem_down(&post.sem), PX_ESTALLED);
    EXPECT_EQ(pthread_join(thread, &value), 0);
    EXPECT(value == &post);
    return 0;
}

static void the_last_unhold_takes_hope_away(void **state)
{
    (void)state;
    run_stalled(lose_hope, NULL);
    assert_log("");
}

/* --- Many ----------------------------------------------------------------- */

static int stall_one(void *arg)
{
    px_sem *sems = arg;

    if (px_sem_down(&sems[0]) == PX_ESTALLED)
        return px_sem_up(&sems[1]);
    return 1;
}

static int stall_many(void *arg)
{
    px_sem sems[2] = {PX_SEM_INIT(0), PX_SEM_INIT(0)};
    int n = fibers(10000);

    (void)arg;
    for (int i = 0; i < n; i++)
        start(stall_one, sems);
    EXPECT_EQ(px_sem_down(&sems[0]), PX_ESTALLED);
    EXPECT_EQ(px_sem_down_n(&sems[1], n), 0); /* one of each */
    EXPECT_EQ(px_sem_count(&sems[1]), 0);
    return 0;
}

static void ten_thousand_are_told(void **state)
{
    (void)state;
    run_stalled(stall_many, NULL);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(R122_a_wait_that_nothing_can_end_is_stalled),
    PX_TEST(everybody_who_is_parked_is_told),
    PX_TEST(R124_a_fiber_left_parked_stalls_the_run),
    PX_TEST(who_is_let_through_by_an_interruption_keeps_the_grant),
    PX_TEST(R65_locks_taken_crosswise_stall_both_and_come_free),
    PX_TEST(R62_S_mtx_53_waiting_for_an_ended_owner_is_stalled),
    PX_TEST(S_sem_38_a_removed_waiter_stays_parked_until_stalled),
    PX_TEST(shields_do_not_hold_a_stall_back),
    PX_TEST(R123_a_scope_without_a_deadline_is_no_hope),
    PX_TEST(every_kind_of_wait_says_so_and_a_run_reports_once),
    PX_TEST(a_group_waits_for_its_children_through_all_rounds),
    PX_TEST(a_stalled_child_is_a_failed_one),
    PX_TEST(waiting_for_a_place_in_a_group_does_end_early),
    PX_TEST(fibers_go_on_and_a_second_deadlock_is_not_reported),
    PX_TEST(S_run_8_runs_after_a_deadlocked_one_are_as_ever),
    PX_TEST(a_fiber_that_ends_makes_the_rounds_count_anew),
    PX_TEST(a_callback_that_ends_the_deadlock_saves_everybody),
    PX_TEST(a_rescued_run_that_deadlocks_again_is_stalled),
    PX_TEST(the_callback_runs_on_the_threads_own_stack),
    PX_TEST(the_callback_reads_deadlines_by_the_runs_clock),
    PX_TEST(a_deadlock_in_another_thread_is_its_own),
    PX_TEST(R123_a_deadline_is_hope),
    PX_TEST(R123_somebody_elses_sleep_is_hope),
    PX_TEST(R123_a_descriptor_is_hope),
    PX_TEST(R123_an_offloaded_call_is_hope),
    PX_TEST(R123_a_held_loop_is_hope),
    PX_TEST(the_last_unhold_takes_hope_away),
    PX_TEST(ten_thousand_are_told),
};

PX_TEST_MAIN(tests)
