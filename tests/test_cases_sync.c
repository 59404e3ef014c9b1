/* SPDX-License-Identifier: MIT */
/*
 * test_cases_sync.c - what went wrong with semaphores, mutexes and waitgroups
 * elsewhere, as small scenarios: lost wake-ups, leaked permits, precedence,
 * stale wake-ups, fairness, weights, limits, destroying, owners, counters.
 * The numbers name the cases; each stands for its whole kind.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "support/px_crowd.h"
#include "support/sync_jobs.h"

static px_sem sem;
static px_mutex mutex;
static px_waitgroup wg;

/* A bounded semaphore of which `taken` permits are out. */
static void limited(int64_t limit, int64_t taken)
{
    EXPECT_EQ(px_sem_init_bounded(&sem, limit), 0);
    EXPECT_EQ(px_sem_try_down_n(&sem, taken), 0);
}

/* The same with a limit of 0. */
static void limited_to_0(void)
{
    limited(1, 0);
    EXPECT_EQ(px_sem_set_limit(&sem, 0), 0);
}

static void locked(void)
{
    EXPECT_EQ(px_mutex_init(&mutex), 0);
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
}

static int down_one(void *arg)
{
    (void)arg;
    return px_sem_down(&sem);
}

static int down_within(px_nsec timeout)
{
    return px_with_timeout(timeout, down_one, NULL);
}

/* Lost wake-ups. */

IN_RUN(R1_cancelling_the_head_grants_those_behind_it_in_the_same_call)
{
    struct job *b;

    limited(2, 0);
    take('a', &sem, 1);
    b = take('b', &sem, 2);
    take('c', &sem, 1);
    EXPECT_SEM(&sem, "1:bc a=ok b=- c=-");
    EXPECT_EQ(px_cancel(b->fiber), 0);
    EXPECT_SEM(&sem, "0: a=ok b=- c=-");
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=canceled c=ok");
}

IN_RUN(R2_a_head_that_times_out_lets_the_next_in_with_no_release)
{
    struct job *c;

    limited(3, 2);
    take_within('b', &sem, 3, 20 * PX_MSEC);
    c = take('c', &sem, 1);
    EXPECT_EQ(px_sleep(30 * PX_MSEC), 0);
    EXPECT_SEM(&sem, "0: b=timedout c=ok");
    EXPECT_EQ(c->at, 20 * PX_MSEC);
}

IN_RUN(R2_a_head_whose_scope_is_cancelled_lets_the_next_in)
{
    struct job *b;

    limited(3, 2);
    b = take_within('b', &sem, 3, PX_FOREVER);
    take('c', &sem, 1);
    EXPECT_EQ(px_scope_cancel(&b->scope), 0);
    EXPECT_SEM(&sem, "0: b=- c=-");
    settle();
    EXPECT_SEM(&sem, "0: b=canceled c=ok");
}

IN_RUN(R2_a_head_that_is_cancelled_and_awaited_lets_the_next_in)
{
    struct job *b;
    int value;

    limited(3, 2);
    b = take('b', &sem, 3);
    take('c', &sem, 1);
    EXPECT_EQ(px_cancel_and_await(b->fiber, &value), 0);
    settle();
    EXPECT_SEM(&sem, "0: b=canceled c=ok");
}

IN_RUN(R2_a_head_whose_deadline_is_moved_to_the_past_lets_the_next_in)
{
    struct job *b;

    limited(3, 2);
    b = take_within('b', &sem, 3, PX_FOREVER);
    take('c', &sem, 1);
    EXPECT_EQ(px_scope_set_deadline(&b->scope, px_now() - 1), 0);
    EXPECT_SEM(&sem, "0: b=- c=-");
    settle();
    EXPECT_SEM(&sem, "0: b=timedout c=ok");
}

static int want_5(void *arg)
{
    (void)arg;
    return px_sem_down_n(&sem, 5);
}

static int down_when_the_head_is_due(void *arg)
{
    px_scope outside, shield;
    px_group group;
    px_nsec until;

    (void)arg;
    limited(5, 3);
    EXPECT_EQ(px_scope_enter(&outside, PX_MSEC), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, want_5, NULL), 0);
    EXPECT_EQ(px_scope_enter(&shield, 2 * PX_SEC), 0);
    EXPECT_EQ(px_scope_shield(&shield, true), 0);
    until = px_now() + 3 * PX_MSEC;
    while (px_now() < until)
        continue;
    /* To park it would look at the clock, and so the head would leave. */
    EXPECT_EQ(px_sem_down(&sem), 0);
    EXPECT_SEM(&sem, "1:");
    EXPECT_EQ(px_scope_leave(&shield), 0);
    EXPECT_CODE(px_group_wait(&group), PX_ETIMEDOUT);
    EXPECT_CODE(px_scope_leave(&outside), PX_ETIMEDOUT);
    return 0;
}

static void R2_a_head_that_is_due_when_another_comes_lets_it_in(void **state)
{
    px_run_options options;

    (void)state;
    clear_jobs();
    memset(&options, 0, sizeof(options));
    assert_int_equal(
        run_fibers_with(options, 1, down_when_the_head_is_due, NULL), 0);
    assert_log("");
}

IN_RUN(R4_a_grant_before_a_cancel_stands)
{
    struct job *a;

    limited(1, 1);
    a = take('a', &sem, 1);
    take('b', &sem, 1);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    EXPECT_SEM(&sem, "0:b a=- b=-");
    settle();
    EXPECT_SEM(&sem, "0:b a=ok b=-");
    EXPECT_CODE(a->next, PX_ECANCELED);
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok b=ok");
}

IN_RUN(R5_a_cancel_before_a_release_leaves_the_permit_to_the_next)
{
    struct job *a;

    limited(1, 1);
    a = take('a', &sem, 1);
    take('b', &sem, 1);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_SEM(&sem, "0: a=- b=-");
    settle();
    EXPECT_SEM(&sem, "0: a=canceled b=ok");
}

IN_RUN(R5_a_cancel_before_an_unlock_leaves_the_lock_to_the_next)
{
    struct job *a;

    locked();
    a = lock_in_fiber('a', &mutex);
    lock_in_fiber('b', &mutex);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    EXPECT_MUTEX(&mutex, "b: a=- b=-");
    settle();
    EXPECT_MUTEX(&mutex, "b: a=canceled b=ok");
}

/* Leaked permits. */

static int take_and_give_back(void *arg)
{
    int code = px_sem_down(&sem);

    (void)arg;
    if (code == 0)
        EXPECT_EQ(px_sem_up(&sem), 0);
    return code;
}

IN_RUN(R7_no_permit_is_lost_between_a_grant_and_a_cancel)
{
    int turns = times(10000, 500), granted = 0;

    limited(1, 1);
    for (int i = 0; i < turns; i++) {
        px_fiber *waiter = start_handle(take_and_give_back, NULL);
        int value;

        if (i % 3 == 0)
            EXPECT_EQ(px_cancel(waiter), 0);
        EXPECT_EQ(px_sem_up(&sem), 0);
        EXPECT_EQ(px_cancel(waiter), 0);
        EXPECT_EQ(px_await(waiter, &value), 0);
        granted += value == 0;
        EXPECT_SEM(&sem, "1:");
        EXPECT_EQ(px_sem_down(&sem), 0);
    }
    EXPECT_EQ(granted, turns - (turns + 2) / 3);
}

static int down_when_cancelled_already(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_cancel(px_self()), 0);
    EXPECT_CODE(px_sem_down(&sem), PX_ECANCELED);
    EXPECT_CODE(px_sem_down(&sem), PX_ECANCELED);
    return 0;
}

IN_RUN(R8_a_pending_cancel_takes_no_permit)
{
    limited(2, 0);
    start(down_when_cancelled_already, NULL);
    EXPECT_SEM(&sem, "2:");
}

IN_RUN(R9_a_scope_that_has_fired_already_takes_no_permit)
{
    px_scope scope;

    limited(1, 0);
    EXPECT_CODE(down_within(0), PX_ETIMEDOUT);
    EXPECT_SEM(&sem, "1:");
    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_cancel(&scope), 0);
    EXPECT_CODE(px_sem_down(&sem), PX_ECANCELED);
    EXPECT_CODE(px_scope_leave(&scope), PX_ECANCELED);
    EXPECT_SEM(&sem, "1:");
}

static px_nsec holding_time;
static int got, gave_up;

static int hold_if_in_time(void *arg)
{
    int code = down_within(25 * PX_MSEC);

    (void)arg;
    if (code != 0) {
        EXPECT_CODE(code, PX_ETIMEDOUT);
        gave_up++;
        return 0;
    }
    got++;
    EXPECT_EQ(px_sleep(holding_time), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    return 0;
}

static void crowd_of(int fibers)
{
    EXPECT_EQ(px_waitgroup_init(&wg, 0), 0);
    got = gave_up = 0;
    for (int i = 0; i < fibers; i++)
        EXPECT_EQ(px_waitgroup_go(&wg, hold_if_in_time, NULL), 0);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    EXPECT_EQ(got + gave_up, fibers);
}

IN_BARE_RUN(R10_of_5000_that_wait_25_ms_for_10_permits_held_50_none_leaks)
{
    int fibers = times(5000, 500);

    limited(10, 0);
    holding_time = 50 * PX_MSEC;
    crowd_of(fibers);
    EXPECT_EQ(got, 10);
    EXPECT_SEM(&sem, "10:");
}

IN_BARE_RUN(R10_none_leaks_when_release_and_deadline_fall_together)
{
    int fibers = times(5000, 500);

    limited(10, 0);
    holding_time = 25 * PX_MSEC;
    crowd_of(fibers);
    EXPECT(got >= 10);
    EXPECT_SEM(&sem, "10:");
    holding_time = 12 * PX_MSEC;
    crowd_of(fibers);
    EXPECT_EQ(got, 30);
    EXPECT_SEM(&sem, "10:");
}

IN_RUN(R11_a_cancelled_waiter_resumes_nobody_without_a_permit)
{
    struct job *a;

    limited(1, 1);
    a = take('a', &sem, 1);
    take('b', &sem, 1);
    take('c', &sem, 1);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    settle();
    EXPECT_SEM(&sem, "0:bc a=canceled b=- c=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0:c a=canceled b=ok c=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
}

static int runs;

static int nap_inside(void *arg)
{
    (void)arg;
    runs++;
    return px_sleep(10 * PX_MSEC);
}

static int with_permit(void *arg)
{
    (void)arg;
    return px_sem_with(&sem, nap_inside, NULL);
}

static int spawn_cancelled(px_fiber **out)
{
    px_spawn_options options;

    memset(&options, 0, sizeof(options));
    options.queued = true;
    EXPECT_EQ(px_spawn_with(out, &options, with_permit, NULL), 0);
    return px_cancel(*out);
}

IN_RUN(R13_with_leaks_no_permit_wherever_it_is_cancelled)
{
    px_fiber *fiber;
    int value;

    limited(1, 0);
    runs = 0;
    /* Before it has begun. */
    EXPECT_EQ(spawn_cancelled(&fiber), 0);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_CODE(value, PX_ECANCELED);
    EXPECT_EQ(runs, 0);
    EXPECT_SEM(&sem, "1:");
    /* While it is parked. */
    EXPECT_EQ(px_sem_down(&sem), 0);
    fiber = start_handle(with_permit, NULL);
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_CODE(value, PX_ECANCELED);
    EXPECT_EQ(runs, 0);
    EXPECT_SEM(&sem, "1:");
    /* Granted and not yet running: the body runs, its sleep fails. */
    EXPECT_EQ(px_sem_down(&sem), 0);
    fiber = start_handle(with_permit, NULL);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_CODE(value, PX_ECANCELED);
    EXPECT_EQ(runs, 1);
    EXPECT_SEM(&sem, "1:");
    /* Inside the body. */
    fiber = start_handle(with_permit, NULL);
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_CODE(value, PX_ECANCELED);
    EXPECT_EQ(runs, 2);
    EXPECT_SEM(&sem, "1:");
}

/* Every helper that gives back by itself, and every way out of it. */

static bool body_fails;

static int body_of_helper(void *arg)
{
    (void)arg;
    runs++;
    return body_fails ? -7 : px_sleep(10 * PX_MSEC);
}

static int by_sem_with(void *arg)
{
    return px_sem_with(&sem, body_of_helper, arg);
}

static int by_sem_guard(void *arg)
{
    PX_SEM_GUARD(guard, &sem);
    return guard.status ? guard.status : body_of_helper(arg);
}

static int by_sem_hold(void *arg)
{
    int err;

    PX_SEM_HOLD(&sem, err)
        return body_of_helper(arg);
    return err;
}

static int by_mutex_with(void *arg)
{
    return px_mutex_with(&mutex, body_of_helper, arg);
}

static int by_mutex_guard(void *arg)
{
    PX_MUTEX_GUARD(guard, &mutex);
    return guard.status ? guard.status : body_of_helper(arg);
}

static int by_mutex_hold(void *arg)
{
    int err;

    PX_MUTEX_HOLD(&mutex, err)
        return body_of_helper(arg);
    return err;
}

static const px_fn helpers[] = {by_sem_with,   by_sem_guard,   by_sem_hold,
                                by_mutex_with, by_mutex_guard, by_mutex_hold};

static int within_5_ms(void *arg)
{
    return px_with_timeout(5 * PX_MSEC, *(const px_fn *)arg, NULL);
}

static const struct way {
    bool queued; /* cancelled before it begins */
    bool waits;  /* as main has what it wants, */
    bool granted_first;
    bool times_out;
    bool fails;
    int code, runs;
} ways[] = {
    {.queued = true, .code = PX_ECANCELED},
    {.waits = true, .code = PX_ECANCELED},
    {.waits = true, .granted_first = true, .code = PX_ECANCELED, .runs = 1},
    {.waits = true, .times_out = true, .code = PX_ETIMEDOUT},
    {.code = PX_ECANCELED, .runs = 1},
    {.times_out = true, .code = PX_ETIMEDOUT, .runs = 1},
    {.fails = true, .code = -7, .runs = 1},
};

static void take_both(void)
{
    EXPECT_EQ(px_sem_down(&sem), 0);
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
}

static void give_both(void)
{
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
}

static void go_one_way(const px_fn *helper, const struct way *way)
{
    px_spawn_options options = {.queued = way->queued};
    px_fiber *fiber = NULL;
    int value = 0;

    runs = 0;
    body_fails = way->fails;
    if (way->waits)
        take_both();
    EXPECT_EQ(px_spawn_with(&fiber, &options,
                            way->times_out ? within_5_ms : *helper,
                            (void *)helper),
              0);
    if (way->granted_first)
        give_both();
    if (way->times_out)
        EXPECT_EQ(px_sleep(6 * PX_MSEC), 0);
    else if (!way->fails)
        EXPECT_EQ(px_cancel(fiber), 0);
    if (way->waits && !way->granted_first)
        give_both();
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_CODE(value, way->code);
    EXPECT_EQ(runs, way->runs);
    EXPECT_SEM(&sem, "1:");
    EXPECT_EQ(px_mutex_owner(&mutex), PX_NO_FIBER);
    EXPECT_EQ(px_mutex_waiters(&mutex), 0);
}

IN_RUN(R13_every_helper_gives_back_on_every_way_out)
{
    limited(1, 0);
    EXPECT_EQ(px_mutex_init(&mutex), 0);
    for (size_t i = 0; i < sizeof(helpers) / sizeof(helpers[0]); i++) {
        for (size_t j = 0; j < sizeof(ways) / sizeof(ways[0]); j++)
            go_one_way(&helpers[i], &ways[j]);
    }
}

/* A canceller on another thread. */

static atomic_int turn;
static px_loop *loop;
static px_fiber *victim;

static int cancel_the_victim(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_cancel(victim), 0);
    return 0;
}

static void nap(long nanoseconds)
{
    struct timespec time = {0, nanoseconds};

    (void)nanosleep(&time, NULL);
}

static void *cancel_at_random(void *arg)
{
    int turns = *(int *)arg;
    uint32_t seed = 7;

    for (int i = 1; i <= turns; i++) {
        while (atomic_load(&turn) < i)
            nap(1000);
        seed = seed * 1664525u + 1013904223u;
        nap((long)(seed >> 24) * 100);
        while (px_post(loop, cancel_the_victim, NULL) != 0)
            nap(1000000);
    }
    return NULL;
}

static int wait_for_foreign_cancels(void *arg)
{
    int turns = times(2000, 100), value;
    pthread_t thread;

    (void)arg;
    limited(1, 1);
    atomic_store(&turn, 0);
    loop = px_current_loop();
    EXPECT_EQ(px_loop_hold(loop), 0);
    EXPECT_EQ(pthread_create(&thread, NULL, cancel_at_random, &turns), 0);
    for (int i = 1; i <= turns; i++) {
        victim = start_handle(down_one, NULL);
        atomic_store(&turn, i);
        EXPECT_EQ(px_await(victim, &value), 0);
        EXPECT_CODE(value, PX_ECANCELED);
        EXPECT_SEM(&sem, "0:");
    }
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT_EQ(px_loop_unhold(loop), 0);
    return 0;
}

static void R14_a_cancel_posted_by_another_thread_ends_every_wait(void **state)
{
    px_run_options options;

    (void)state;
    clear_jobs();
    memset(&options, 0, sizeof(options));
    assert_int_equal(
        run_fibers_with(options, 1, wait_for_foreign_cancels, NULL), 0);
    assert_log("");
}

/* Stale waiters and timers. */

IN_RUN(R15_waits_that_time_out_leave_nothing_queued)
{
    int turns = times(100000, 2000);
    long before = 0;

    limited(1, 1);
    for (int i = 0; i < turns; i++) {
        EXPECT_CODE(down_within(i % 2 ? PX_MSEC : 0), PX_ETIMEDOUT);
        EXPECT_EQ(px_sem_waiters(&sem), 0);
        if (i == 1000)
            before = resident_kib();
    }
    EXPECT_SEM(&sem, "0:");
    EXPECT(has_shadow() || resident_kib() <= before + 256); /* a byte a turn */
}

static px_nsec woken_at;

static int wait_then_sleep_500(void *arg)
{
    (void)arg;
    EXPECT_CODE(down_within(100 * PX_MSEC), PX_ECLOSED);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(px_sleep(500 * PX_MSEC), 0);
    woken_at = px_now();
    return 0;
}

IN_RUN(R16_the_timer_of_a_wait_that_was_closed_does_not_hit_the_next_wait)
{
    limited(1, 1);
    start(wait_then_sleep_500, NULL);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_sem_close(&sem), 0);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT_EQ(woken_at, 510 * PX_MSEC);
}

static px_sem second_sem;
static int resumed;

static int wait_then_wait_elsewhere(void *arg)
{
    (void)arg;
    EXPECT_EQ(down_within(50 * PX_MSEC), 0);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(px_sem_down(&second_sem), 0);
    resumed++;
    woken_at = px_now();
    return 0;
}

IN_RUN(R17_the_timer_of_a_wait_that_was_granted_does_not_hit_the_next_wait)
{
    limited(1, 1);
    EXPECT_EQ(px_sem_init(&second_sem, 0), 0);
    resumed = 0;
    start(wait_then_wait_elsewhere, NULL);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sleep(90 * PX_MSEC), 0);
    EXPECT_EQ(resumed, 0);
    EXPECT_EQ(px_sem_up(&second_sem), 0);
    settle();
    EXPECT_EQ(resumed, 1);
    EXPECT_EQ(woken_at, 100 * PX_MSEC);
    EXPECT_EQ(px_sem_count(&second_sem), 0);
}

static int sleep_10_then_up(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    return 0;
}

IN_RUN(R17_a_release_and_a_deadline_at_one_time_resume_once)
{
    for (int order = 0; order < 2; order++) {
        struct job *a;

        clear_jobs();
        limited(1, 1);
        if (order == 0)
            start(sleep_10_then_up, NULL);
        a = take_within('a', &sem, 1, 10 * PX_MSEC);
        if (order == 1)
            start(sleep_10_then_up, NULL);
        EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
        EXPECT(a->ended);
        EXPECT(a->code == 0 || a->code == PX_ETIMEDOUT);
        EXPECT_EQ(px_sem_count(&sem), a->code == 0 ? 0 : 1);
        EXPECT_EQ(px_sem_waiters(&sem), 0);
        EXPECT_EQ(a->at % (20 * PX_MSEC), 10 * PX_MSEC);
    }
}

IN_RUN(R17_of_two_that_are_due_together_the_second_gets_what_the_first_held)
{
    struct job *b;

    limited(2, 1);
    take_within('a', &sem, 2, 10 * PX_MSEC);
    b = take_within('b', &sem, 1, 10 * PX_MSEC);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_SEM(&sem, "0: a=timedout b=ok");
    EXPECT_EQ(b->at, 10 * PX_MSEC);
    EXPECT_EQ(px_sem_up(&sem), 0);
    take_within('c', &sem, 1, 10 * PX_MSEC);
    EXPECT_SEM(&sem, "0: a=timedout b=ok c=ok");
}

IN_RUN(R19_a_deadline_already_past_has_fired_with_a_permit_free)
{
    px_scope scope;

    limited(1, 0);
    EXPECT_EQ(px_scope_enter_until(&scope, px_now() - PX_SEC), 0);
    EXPECT_CODE(px_sem_down(&sem), PX_ETIMEDOUT);
    EXPECT_EQ(px_sem_try_down(&sem), 0);
    EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_SEM(&sem, "0:");
}

static int call_sem_down(void)
{
    return px_sem_down(&sem);
}

static int call_sem_down_n(void)
{
    return px_sem_down_n(&sem, 2);
}

static int call_sem_available(void)
{
    return px_sem_wait_available(&sem);
}

static int call_mutex_lock(void)
{
    return px_mutex_lock(&mutex);
}

static int call_wg_wait(void)
{
    return px_waitgroup_wait(&wg);
}

static int wait_after_the_deadline(void *arg)
{
    static int (*const calls[])(void) = {call_sem_down, call_sem_down_n,
                                         call_sem_available, call_mutex_lock,
                                         call_wg_wait};

    (void)arg;
    limited(2, 2);
    EXPECT_EQ(px_mutex_init(&mutex), 0);
    lock_in_fiber('a', &mutex);
    EXPECT_EQ(px_waitgroup_init(&wg, 1), 0);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        px_scope scope;
        px_nsec until = px_now() + 3 * PX_MSEC;

        EXPECT_EQ(px_scope_enter(&scope, PX_MSEC), 0);
        while (px_now() < until)
            continue;
        EXPECT_CODE(calls[i](), PX_ETIMEDOUT);
        EXPECT_CODE(calls[i](), PX_ETIMEDOUT);
        EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
        EXPECT_SEM(&sem, "0: a=ok");
        EXPECT_MUTEX(&mutex, "a: a=ok");
        EXPECT_WG(&wg, "1: a=ok");
    }
    return 0;
}

static void
R19_a_deadline_that_passed_unnoticed_fails_the_next_wait(void **state)
{
    px_run_options options;

    (void)state;
    clear_jobs();
    memset(&options, 0, sizeof(options));
    assert_int_equal(run_fibers_with(options, 1, wait_after_the_deadline, NULL),
                     0);
    assert_log("");
}

IN_RUN(R20_three_timeouts_take_nothing_off_the_count)
{
    limited_to_0();
    for (int i = 0; i < 3; i++) {
        EXPECT_CODE(down_within(5 * PX_MSEC), PX_ETIMEDOUT);
        EXPECT_SEM(&sem, "0:");
    }
    EXPECT_EQ(px_sem_set_limit(&sem, 1), 0);
    EXPECT_EQ(px_sem_try_down(&sem), 0);
    EXPECT_CODE(px_sem_try_down(&sem), PX_EAGAIN);
}

static int down_within_10_ms(void *arg)
{
    (void)arg;
    return down_within(10 * PX_MSEC);
}

IN_RUN(R21_main_and_a_child_time_out_alike)
{
    int value;

    limited(1, 1);
    EXPECT_CODE(down_within(10 * PX_MSEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(px_await(start_handle(down_within_10_ms, NULL), &value), 0);
    EXPECT_CODE(value, PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 20 * PX_MSEC);
    EXPECT_SEM(&sem, "0:");
}

/* Fairness, tries, weights. */

IN_RUN(R23_a_try_between_a_release_and_the_waiters_turn_takes_nothing)
{
    limited(1, 1);
    take('b', &sem, 1);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_CODE(px_sem_try_down(&sem), PX_EAGAIN);
    EXPECT_SEM(&sem, "0: b=-");
    settle();
    EXPECT_SEM(&sem, "0: b=ok");
}

static int alternate(void *arg)
{
    for (int i = 0; i < 10; i++) {
        EXPECT_EQ(px_sem_down(&sem), 0);
        note("%c", *(char *)arg);
        EXPECT_EQ(px_yield(), 0);
        EXPECT_EQ(px_sem_up(&sem), 0);
    }
    return 0;
}

IN_RUN(R24_two_that_release_and_take_again_alternate)
{
    static char names[2] = {'A', 'B'};
    px_fiber *fibers[2];

    limited(1, 0);
    fibers[0] = start_handle(alternate, &names[0]);
    fibers[1] = start_handle(alternate, &names[1]);
    EXPECT_EQ(px_await_all(fibers, 2, NULL), 0);
    EXPECT_LOG("ABABABABABABABABABAB");
    EXPECT_SEM(&sem, "1:");
}

IN_RUN(R26_a_big_request_holds_back_small_ones_and_tries)
{
    limited(10, 1);
    take('b', &sem, 10);
    take('c', &sem, 1);
    EXPECT_SEM(&sem, "9:bc b=- c=-");
    EXPECT_CODE(px_sem_try_down(&sem), PX_EAGAIN);
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0:c b=ok c=-");
    EXPECT_EQ(px_sem_up_n(&sem, 10), 0);
    settle();
    EXPECT_SEM(&sem, "9: b=ok c=ok");
}

IN_RUN(R27_single_releases_add_up_to_a_request_for_10)
{
    limited(10, 10);
    take('m', &sem, 10);
    for (int i = 1; i <= 10; i++) {
        struct job *m = &job_pool()->jobs[0];

        settle();
        EXPECT(!m->ended);
        EXPECT_EQ(px_sem_count(&sem), i - 1);
        EXPECT_EQ(px_sem_up(&sem), 0);
    }
    settle();
    EXPECT_SEM(&sem, "0: m=ok");
}

IN_RUN(R28_negative_weights_are_invalid_with_and_without_waiters)
{
    static const int64_t below[] = {-1, INT32_MIN, INT64_MIN};
    static const size_t n = sizeof(below) / sizeof(below[0]);

    limited(4, 2);
    for (size_t i = 0; i < 2 * n; i++) {
        if (i == n)
            take('a', &sem, 3);
        EXPECT_CODE(px_sem_down_n(&sem, below[i % n]), PX_EINVAL);
        EXPECT_CODE(px_sem_try_down_n(&sem, below[i % n]), PX_EINVAL);
        EXPECT_CODE(px_sem_up_n(&sem, below[i % n]), PX_EINVAL);
        EXPECT_CODE(px_sem_set_limit(&sem, below[i % n]), PX_EINVAL);
        EXPECT_SEM(&sem, i < n ? "2:" : "2:a a=-");
        EXPECT_EQ(px_sem_limit(&sem), 4);
    }
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok");
}

/* As in PHP. A count below zero is a debt, and may be where one begins. */
static void R28_a_limit_below_1_is_1_from_the_start(void **state)
{
    static const int64_t below[] = {-1, INT32_MIN, INT64_MIN};

    (void)state;
    for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
        assert_int_equal(px_sem_init_bounded(&sem, below[i]), 0);
        assert_int_equal(px_sem_limit(&sem), 1);
        assert_int_equal(px_sem_count(&sem), 1);
        assert_int_equal(px_sem_init(&sem, below[i]), 0);
        assert_true(px_sem_count(&sem) == below[i]);
        assert_int_equal(px_sem_try_down(&sem), PX_EAGAIN);
    }
}

IN_STALLED_RUN(R29_a_request_above_the_limit_alone_stalls_and_never_hangs)
{
    limited(4, 0);
    EXPECT_CODE(px_sem_down_n(&sem, 5), PX_ESTALLED);
    EXPECT_SEM(&sem, "4:");
}

IN_RUN(R29_a_request_above_the_limit_holds_back_nobody)
{
    struct job *b;

    limited(4, 0);
    b = take('b', &sem, 5);
    take('c', &sem, 3);
    EXPECT_EQ(px_sem_try_down(&sem), 0);
    EXPECT_SEM(&sem, "0:b b=- c=ok");
    EXPECT_EQ(px_cancel(b->fiber), 0);
    settle();
    EXPECT_SEM(&sem, "0: b=canceled c=ok");
}

IN_RUN(R30_zero_permits_have_the_same_answer_in_every_state)
{
    for (int stage = 0; stage < 3; stage++) {
        clear_jobs();
        limited(1, 1);
        if (stage >= 1)
            take('a', &sem, 1);
        if (stage == 2)
            EXPECT_EQ(px_sem_set_limit(&sem, 0), 0);
        watch_others();
        EXPECT_EQ(px_sem_down_n(&sem, 0), 0);
        EXPECT_EQ(px_sem_up_n(&sem, 0), 0);
        EXPECT_EQ(px_sem_try_down_n(&sem, 0), 0);
        EXPECT(nobody_ran_since());
        EXPECT_SEM(&sem, stage == 0   ? "0:"
                         : stage == 1 ? "0:a a=-"
                                      : "-1:a a=-");
        EXPECT_EQ(px_sem_close(&sem), 0);
        settle();
    }
}

IN_RUN(R31_an_over_release_has_no_partial_effect)
{
    limited(2, 1);
    take('a', &sem, 2);
    EXPECT_CODE(px_sem_up_n(&sem, 2), PX_EOVERFLOW);
    settle();
    EXPECT_SEM(&sem, "1:a a=-");
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok");
    clear_jobs();
    limited_to_0();
    EXPECT_CODE(px_sem_up(&sem), PX_EOVERFLOW);
    EXPECT_SEM(&sem, "0:");
}

IN_RUN(R32_releasing_after_a_failed_wait_is_found_at_the_holders_release)
{
    limited(1, 1);
    EXPECT_CODE(down_within(5 * PX_MSEC), PX_ETIMEDOUT);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_SEM(&sem, "1:");
    EXPECT_EQ(down_within(5 * PX_MSEC), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(down_within(5 * PX_MSEC), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_CODE(px_sem_up(&sem), PX_EOVERFLOW);
}

IN_RUN(R32_a_guard_releases_only_what_it_took)
{
    px_scope scope;

    limited(1, 1);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(px_scope_enter(&scope, 5 * PX_MSEC), 0);
        {
            PX_SEM_GUARD(permit, &sem);

            EXPECT_CODE(permit.status, PX_ETIMEDOUT);
        }
        EXPECT_CODE(px_scope_leave(&scope), PX_ETIMEDOUT);
        EXPECT_SEM(&sem, "0:");
    }
    EXPECT_EQ(px_sem_up(&sem), 0);
}

static void R33_counts_at_the_top_are_refused_before_they_wrap(void **state)
{
    (void)state;
    assert_int_equal(px_sem_init_bounded(&sem, INT64_MAX), 0);
    assert_int_equal(px_sem_up(&sem), PX_EOVERFLOW);
    assert_int_equal(px_sem_adjust(&sem, INT64_MAX), PX_EOVERFLOW);
    assert_int_equal(px_sem_set_limit(&sem, INT64_MIN), PX_EINVAL);
    assert_true(px_sem_count(&sem) == INT64_MAX);
    assert_int_equal(px_sem_try_down(&sem), 0);
    assert_int_equal(px_sem_up_n(&sem, 2), PX_EOVERFLOW);
    assert_true(px_sem_count(&sem) == INT64_MAX - 1);
    assert_int_equal(px_sem_up(&sem), 0); /* exactly the most */
    assert_true(px_sem_count(&sem) == INT64_MAX);
    assert_int_equal(px_sem_init(&sem, INT64_MAX - 1), 0);
    assert_int_equal(px_sem_up_n(&sem, 2), PX_EOVERFLOW);
    assert_int_equal(px_sem_up(&sem), 0);
    assert_int_equal(px_sem_up(&sem), PX_EOVERFLOW);
    assert_true(px_sem_count(&sem) == INT64_MAX);
    assert_int_equal(px_waitgroup_init(&wg, 0), 0);
    assert_int_equal(px_waitgroup_add(&wg, INT64_MAX), 0);
    assert_int_equal(px_waitgroup_add(&wg, 1), PX_EOVERFLOW);
    assert_true(px_waitgroup_count(&wg) == INT64_MAX);
}

IN_RUN(R34_a_release_wakes_past_a_request_above_the_limit)
{
    limited(3, 3);
    take('b', &sem, 4);
    take('c', &sem, 1);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_SEM(&sem, "0:b b=- c=-");
    settle();
    EXPECT_SEM(&sem, "0:b b=- c=ok");
    EXPECT_EQ(px_sem_close(&sem), 0);
    settle();
}

static int up_with_errno(void *arg)
{
    int error = *(int *)arg;

    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    errno = error;
    EXPECT_EQ(px_sem_up(&sem), 0);
    return error == 0 ? 0 : -error;
}

IN_RUN(R35_no_value_of_errno_looks_like_the_reason_of_a_wake)
{
    static int errors[] = {0, EINTR, ECANCELED, ETIMEDOUT, EAGAIN};

    limited(1, 1);
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        start(up_with_errno, &errors[i]);
        errno = ENOTTY;
        EXPECT_EQ(px_sem_down(&sem), 0);
        EXPECT_EQ(errno, ENOTTY);
        EXPECT_CODE(down_within(PX_MSEC), PX_ETIMEDOUT);
        EXPECT_EQ(errno, ENOTTY);
    }
}

static int woken_ok, woken_closed;

static int wait_for_the_broadcast(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    woken_ok++;
    return 0;
}

static int wait_for_the_close(void *arg)
{
    (void)arg;
    EXPECT_CODE(px_sem_down(&sem), PX_ECLOSED);
    woken_closed++;
    return 0;
}

static int wait_for_all_permits(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sem_down(&sem), 0);
    woken_ok++;
    return 0;
}

IN_BARE_RUN(R36_a_broadcast_reaches_all_10001)
{
    int fibers = times(10001, 901);

    limited(1, 1);
    EXPECT_EQ(px_waitgroup_init(&wg, 1), 0);
    woken_ok = woken_closed = 0;
    for (int i = 0; i < fibers; i++)
        start(wait_for_the_broadcast, NULL);
    EXPECT_EQ(px_waitgroup_waiters(&wg), fibers);
    EXPECT_EQ(px_waitgroup_done(&wg), 0);
    settle();
    EXPECT_EQ(woken_ok, fibers);
    for (int i = 0; i < fibers; i++)
        start(wait_for_the_close, NULL);
    EXPECT_EQ(px_sem_waiters(&sem), fibers);
    EXPECT_EQ(px_sem_close(&sem), 0);
    settle();
    EXPECT_EQ(woken_closed, fibers);
    woken_ok = 0;
    EXPECT_EQ(px_sem_init(&sem, 0), 0);
    for (int i = 0; i < fibers; i++)
        start(wait_for_all_permits, NULL);
    EXPECT_EQ(px_sem_up_n(&sem, fibers), 0);
    settle();
    EXPECT_EQ(woken_ok, fibers);
    EXPECT_SEM(&sem, "0:");
}

IN_RUN(R38_waiting_without_taking_stands_in_front_of_nobody)
{
    limited(1, 0);
    EXPECT_EQ(px_sem_wait_available(&sem), 0);
    EXPECT_EQ(px_sem_wait_available(&sem), 0);
    EXPECT_SEM(&sem, "1:");
    EXPECT_EQ(px_sem_down(&sem), 0);
    watch_sem('v', &sem);
    watch_sem('w', &sem);
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "1: v=ok w=ok");
    EXPECT_EQ(px_sem_down(&sem), 0);
    watch_sem('x', &sem);
    take('a', &sem, 1);
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0: v=ok w=ok x=ok a=ok");
}

/* Limits that move. */

IN_RUN(R40_raising_the_limit_leaves_no_stale_queue)
{
    limited(1, 1);
    take('a', &sem, 1);
    EXPECT_EQ(px_sem_set_limit(&sem, 3), 0);
    EXPECT_SEM(&sem, "1: a=-");
    take('d', &sem, 1);
    EXPECT_SEM(&sem, "0: a=- d=ok");
    settle();
    EXPECT_SEM(&sem, "0: a=ok d=ok");
}

IN_RUN(R41_a_limit_of_0_pauses_and_a_later_one_resumes)
{
    limited_to_0();
    take('a', &sem, 1);
    take('b', &sem, 1);
    EXPECT_CODE(px_sem_try_down(&sem), PX_EAGAIN);
    EXPECT_EQ(px_sem_set_limit(&sem, 1), 0);
    settle();
    EXPECT_SEM(&sem, "0:b a=ok b=-");
    EXPECT_EQ(px_sem_set_limit(&sem, 0), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    settle();
    EXPECT_SEM(&sem, "0:b a=ok b=-");
    EXPECT_EQ(px_sem_set_limit(&sem, 2), 0);
    settle();
    EXPECT_SEM(&sem, "1: a=ok b=ok");
}

IN_RUN(R42_shrinking_below_use_keeps_the_debt_and_passes_over)
{
    limited(100, 75);
    EXPECT_EQ(px_sem_set_limit(&sem, 10), 0);
    EXPECT_EQ(px_sem_count(&sem), -65);
    take('b', &sem, 75);
    take('c', &sem, 5);
    EXPECT_SEM(&sem, "-65:bc b=- c=-");
    EXPECT_EQ(px_sem_up_n(&sem, 75), 0);
    settle();
    EXPECT_SEM(&sem, "5:b b=- c=ok");
    EXPECT_EQ(px_sem_set_limit(&sem, 100), 0);
    settle();
    EXPECT_SEM(&sem, "20: b=ok c=ok");
}

IN_RUN(R44_shrinking_revokes_nobody_and_drains)
{
    limited(5, 5);
    EXPECT_EQ(px_sem_set_limit(&sem, 2), 0);
    EXPECT_EQ(px_sem_count(&sem), -3);
    for (int released = 1; released <= 3; released++) {
        EXPECT_EQ(px_sem_up(&sem), 0);
        EXPECT_CODE(px_sem_try_down(&sem), PX_EAGAIN);
    }
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_try_down(&sem), 0);
}

IN_RUN(R45_a_debt_is_kept_never_lost_never_doubled)
{
    limited(100, 10);
    EXPECT_EQ(px_sem_count(&sem), 90);
    EXPECT_EQ(px_sem_set_limit(&sem, 1), 0);
    EXPECT_EQ(px_sem_count(&sem), -9);
    EXPECT_EQ(px_sem_up_n(&sem, 10), 0);
    EXPECT_EQ(px_sem_count(&sem), 1);
}

IN_RUN(R46_taking_permits_away_leaves_the_holders_theirs)
{
    int64_t taken = 0;

    limited(5, 3);
    while (taken < 4 && px_sem_try_down(&sem) == 0)
        taken++;
    EXPECT_EQ(taken, 2);
    EXPECT_EQ(px_sem_count(&sem), 0);
    EXPECT_EQ(px_sem_up_n(&sem, 3), 0);
    EXPECT_EQ(px_sem_count(&sem), 3);
}

/* Destroying, closing, ending. */

IN_RUN(R47_destroy_with_waiters_is_busy_until_the_last_is_out)
{
    px_sem *heap = malloc(sizeof(*heap));
    struct job *a, *c;

    EXPECT(heap != NULL);
    if (!heap)
        return;
    EXPECT_EQ(px_sem_init(heap, 0), 0);
    a = take('a', heap, 1);
    take_within('b', heap, 1, 50 * PX_MSEC);
    c = take('c', heap, 1);
    EXPECT_CODE(px_sem_destroy(heap), PX_EBUSY);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    EXPECT_CODE(px_sem_destroy(heap), PX_EBUSY);
    EXPECT_EQ(px_sleep(60 * PX_MSEC), 0);
    EXPECT_CODE(px_sem_destroy(heap), PX_EBUSY);
    EXPECT_SEM(heap, "0:c a=canceled b=timedout c=-");
    EXPECT_EQ(px_cancel(c->fiber), 0);
    EXPECT_EQ(px_sem_destroy(heap), 0);
    spoil(heap, sizeof(*heap));
    free(heap);
    settle();
    EXPECT_CODE(c->code, PX_ECANCELED);
}

static px_sem *mortal;

static int sleep_10_then_close(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_sem_close(mortal), 0);
    EXPECT_EQ(px_sem_destroy(mortal), 0);
    spoil(mortal, sizeof(*mortal));
    free(mortal);
    return 0;
}

IN_RUN(R48_a_deadline_and_a_destroy_at_one_time_have_one_outcome)
{
    for (int order = 0; order < 2; order++) {
        struct job *a;

        clear_jobs();
        mortal = malloc(sizeof(*mortal));
        EXPECT(mortal != NULL);
        if (!mortal)
            return;
        EXPECT_EQ(px_sem_init(mortal, 0), 0);
        if (order == 0)
            start(sleep_10_then_close, NULL);
        a = take_within('a', mortal, 1, 10 * PX_MSEC);
        if (order == 1)
            start(sleep_10_then_close, NULL);
        EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
        EXPECT(a->ended);
        EXPECT(a->code == PX_ECLOSED || a->code == PX_ETIMEDOUT);
    }
}

static int hold_until_cancelled(void *arg)
{
    PX_MUTEX_GUARD(lock, &mutex);

    (void)arg;
    EXPECT_EQ(lock.status, 0);
    return px_sleep(PX_FOREVER);
}

IN_RUN(R49_a_mutex_is_not_destroyed_under_its_guard)
{
    px_fiber *holder;
    int value;

    EXPECT_EQ(px_mutex_init(&mutex), 0);
    holder = start_handle(hold_until_cancelled, NULL);
    EXPECT_CODE(px_mutex_destroy(&mutex), PX_EBUSY);
    EXPECT_EQ(px_cancel_and_await(holder, &value), 0);
    EXPECT_CODE(value, PX_ECANCELED);
    EXPECT_EQ(px_mutex_destroy(&mutex), 0);
}

IN_RUN(R50_a_close_is_seen_by_those_before_and_after_it)
{
    limited(2, 2);
    take('a', &sem, 1);
    EXPECT_EQ(px_sem_close(&sem), 0);
    take('b', &sem, 1);
    settle();
    EXPECT_SEM(&sem, "0: a=closed b=closed");
    EXPECT_CODE(px_sem_try_down(&sem), PX_ECLOSED);
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
    EXPECT_CODE(px_sem_down(&sem), PX_ECLOSED);
    EXPECT_SEM(&sem, "2: a=closed b=closed");
}

static int hold_a_permit_until_cancelled(void *arg)
{
    PX_SEM_GUARD(permit, &sem);

    (void)arg;
    EXPECT_EQ(permit.status, 0);
    return px_sleep(PX_FOREVER);
}

IN_RUN(R51_a_holder_that_is_cancelled_gives_its_permit_back)
{
    px_fiber *holder;

    limited(1, 0);
    holder = start_handle(hold_a_permit_until_cancelled, NULL);
    take('a', &sem, 1);
    EXPECT_SEM(&sem, "0:a a=-");
    EXPECT_EQ(px_cancel(holder), 0);
    settle();
    EXPECT_SEM(&sem, "0: a=ok");
}

static int stop_at_1_s(void *arg)
{
    (void)arg;
    limited(1, 1);
    take_within('w', &sem, 1, 45 * PX_SEC);
    lock_in_fiber('x', &mutex);
    EXPECT_EQ(px_waitgroup_init(&wg, 1), 0);
    wait_in_fiber('y', &wg);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT_EQ(px_stop(), 0);
    woken_at = px_now();
    return 0;
}

static void R52_a_stop_ends_every_wait_at_once(void **state)
{
    const struct job *jobs = job_pool()->jobs;

    (void)state;
    clear_jobs();
    assert_int_equal(px_mutex_init(&mutex), 0);
    run_fibers(stop_at_1_s, NULL);
    assert_int_equal(jobs[0].code, PX_ECANCELED);
    assert_true(jobs[0].at == PX_SEC);
    assert_int_equal(jobs[1].code, 0);
    assert_int_equal(jobs[2].code, PX_ECANCELED);
    assert_int_equal(px_sem_waiters(&sem), 0);
    assert_int_equal(px_waitgroup_waiters(&wg), 0);
    assert_log("");
}

static int stop_with_a_queue(void *arg)
{
    (void)arg;
    limited(2, 1);
    take('a', &sem, 2);
    take('b', &sem, 1);
    EXPECT_EQ(px_stop(), 0);
    EXPECT_SEM(&sem, "0: a=- b=-");
    return 0;
}

static void R52_what_a_stop_lets_through_has_its_grant(void **state)
{
    const struct job *jobs = job_pool()->jobs;

    (void)state;
    clear_jobs();
    run_fibers(stop_with_a_queue, NULL);
    assert_int_equal(jobs[0].code, PX_ECANCELED);
    assert_int_equal(jobs[1].code, 0);
    assert_int_equal(jobs[1].next, PX_ECANCELED);
    assert_int_equal(px_sem_count(&sem), 0);
    assert_log("");
}

static int up_on_the_loop(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sem_up(&sem), 0);
    return 0;
}

static void *post_an_up(void *arg)
{
    (void)arg;
    nap(20 * 1000000);
    while (px_post(loop, up_on_the_loop, NULL) != 0)
        nap(1000000);
    return NULL;
}

static int wait_for_a_foreign_up(void *arg)
{
    pthread_t thread;

    (void)arg;
    EXPECT_EQ(px_sem_init(&sem, 0), 0);
    loop = px_current_loop();
    EXPECT_EQ(px_loop_hold(loop), 0);
    EXPECT_EQ(pthread_create(&thread, NULL, post_an_up, NULL), 0);
    EXPECT_EQ(px_sem_down(&sem), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT_EQ(px_loop_unhold(loop), 0);
    return 0;
}

static void R53_an_up_posted_by_another_thread_wakes_an_idle_loop(void **state)
{
    px_run_options options;

    (void)state;
    memset(&options, 0, sizeof(options));
    assert_int_equal(run_fibers_with(options, 1, wait_for_a_foreign_up, NULL),
                     0);
    assert_int_equal(px_sem_count(&sem), 0);
    assert_log("");
}

/* Mutexes. */

IN_RUN(R55_a_cancel_and_an_unlock_in_one_step_make_one_owner)
{
    struct job *a;

    locked();
    a = lock_in_fiber('a', &mutex);
    lock_in_fiber('b', &mutex);
    lock_in_fiber('c', &mutex);
    EXPECT_EQ(px_cancel(a->fiber), 0);
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    EXPECT_MUTEX(&mutex, "b:c a=- b=- c=-");
    settle();
    EXPECT_MUTEX(&mutex, "b:c a=canceled b=ok c=-");
    EXPECT_EQ(px_cancel(job_pool()->jobs[2].fiber), 0);
    settle();
}

IN_RUN(R56_between_unlock_and_the_waiters_turn_nobody_gets_in)
{
    struct job *w;

    locked();
    w = pass_lock('w', &mutex);
    pass_lock('v', &mutex);
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    EXPECT_CODE(px_mutex_try_lock(&mutex), PX_EBUSY);
    pass_lock('n', &mutex);
    EXPECT_MUTEX(&mutex, "w:vn w=- v=- n=-");
    EXPECT_EQ(px_cancel(w->fiber), 0);
    EXPECT_MUTEX(&mutex, "w:vn w=- v=- n=-");
    settle();
    EXPECT_MUTEX(&mutex, "free: w=ok v=ok n=ok");
    EXPECT_CODE(w->next, PX_ECANCELED);
}

static int unlock_twice(void *arg)
{
    int code;

    (void)arg;
    PX_MUTEX_HOLD(&mutex, code) {
        EXPECT_CODE(px_check(), PX_ECANCELED);
    }
    EXPECT_EQ(code, 0);
    return px_mutex_unlock(&mutex);
}

IN_RUN(R57_a_waiter_granted_then_cancelled_unlocks_once)
{
    px_fiber *fiber;
    int value;

    locked();
    fiber = start_handle(unlock_twice, NULL);
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_CODE(value, PX_ENOTLOCKED);
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    fiber = start_handle(unlock_twice, NULL);
    lock_in_fiber('v', &mutex);
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_CODE(value, PX_EPERM);
    EXPECT_EQ(px_mutex_owner(&mutex), job_pool()->jobs[0].id);
    settle();
}

IN_RUN(R58_locking_again_is_an_error_at_once)
{
    locked();
    watch_others();
    EXPECT_CODE(px_mutex_lock(&mutex), PX_EDEADLK);
    EXPECT_CODE(px_mutex_try_lock(&mutex), PX_EDEADLK);
    EXPECT(nobody_ran_since());
    EXPECT_MUTEX(&mutex, "0:");
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
}

static int lock_sleep_unlock(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    return 0;
}

IN_RUN(R60_the_owner_is_a_fiber_and_not_the_thread)
{
    EXPECT_EQ(px_mutex_init(&mutex), 0);
    start(lock_sleep_unlock, NULL);
    EXPECT_CODE(px_mutex_try_lock(&mutex), PX_EBUSY);
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    pass_lock('a', &mutex);
    EXPECT_MUTEX(&mutex, "0:a a=-");
    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    EXPECT_MUTEX(&mutex, "0:a a=-");
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    settle();
    EXPECT_MUTEX(&mutex, "free: a=ok");
}

IN_RUN(R61_a_new_fiber_is_never_told_it_holds_a_dead_ones_lock)
{
    int fibers = times(1000, 100);

    EXPECT_EQ(px_mutex_init(&mutex), 0);
    lock_in_fiber('a', &mutex);
    for (int i = 0; i < fibers; i++) {
        struct job *n;

        clear_jobs();
        n = lock_within('n', &mutex, PX_MSEC);
        EXPECT(n->id > 1);
        EXPECT_EQ(px_sleep(2 * PX_MSEC), 0);
        EXPECT_CODE(n->code, PX_ETIMEDOUT);
    }
    EXPECT_MUTEX(&mutex, "1: n=timedout");
}

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

static char report[4096];

static void dump_into_report(void *ctx)
{
    FILE *file = tmpfile();
    size_t length;

    (void)ctx;
    if (!file)
        return;
    EXPECT_EQ(px_dump(file), 0);
    rewind(file);
    length = fread(report, 1, sizeof(report) - 1, file);
    report[length] = '\0';
    (void)fclose(file);
}

static int lock_sleep_and_end(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    return 0;
}

/* It has the mutex, for a millisecond, and for ever. */
static void spawn_the_loader(void)
{
    px_spawn_options options;

    EXPECT_EQ(px_mutex_init(&mutex), 0);
    memset(&options, 0, sizeof(options));
    options.name = "loader";
    EXPECT_EQ(px_spawn_with(NULL, &options, lock_sleep_and_end, NULL), 0);
}

static int wait_for_an_ended_owner(void *arg)
{
    (void)arg;
    spawn_the_loader();
    /* It ends while others run, and its stack goes to the next fiber. */
    EXPECT_EQ(px_sleep(2 * PX_MSEC), 0);
    start(do_nothing, NULL);
    EXPECT_CODE(px_mutex_lock(&mutex), PX_ESTALLED);
    EXPECT_EQ(px_mutex_owner(&mutex), 1);
    EXPECT_EQ(px_mutex_waiters(&mutex), 0);
    return 0;
}

/* The other way round: they wait already when it ends. */
static int wait_for_an_owner_that_ends(void *arg)
{
    (void)arg;
    spawn_the_loader();
    lock_in_fiber('w', &mutex);
    EXPECT_EQ(px_sleep(2 * PX_MSEC), 0);
    start(do_nothing, NULL);
    EXPECT_MUTEX(&mutex, "1:w w=-");
    EXPECT_CODE(px_mutex_lock(&mutex), PX_ESTALLED);
    settle();
    EXPECT_MUTEX(&mutex, "1: w=stalled");
    return 0;
}

static void expect_report_of_the_loader(px_fn fn)
{
    px_run_options options;

    clear_jobs();
    memset(&options, 0, sizeof(options));
    options.on_deadlock = dump_into_report;
    report[0] = '\0';
    assert_int_equal(run_fibers_with(options, 0, fn, NULL), PX_ESTALLED);
    if (!strstr(report, "held by fiber 1 'loader', which has ended"))
        (void)fprintf(stderr, "the report reads:\n%s\n", report);
    assert_non_null(
        strstr(report, "held by fiber 1 'loader', which has ended"));
    assert_log("");
}

static void R62_waiting_for_an_owner_that_ended_is_reported(void **state)
{
    (void)state;
    expect_report_of_the_loader(wait_for_an_ended_owner);
}

static void R62_who_waits_as_the_owner_ends_stays_queued(void **state)
{
    (void)state;
    expect_report_of_the_loader(wait_for_an_owner_that_ends);
}

IN_RUN(R63_a_waiter_that_has_gone_is_not_touched_by_unlock)
{
    struct job *a;
    int value;

    locked();
    a = lock_in_fiber('a', &mutex);
    EXPECT_EQ(px_cancel_and_await(a->fiber, &value), 0);
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    EXPECT_EQ(px_mutex_owner(&mutex), PX_NO_FIBER);
}

static int lock_and_note(void *arg)
{
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    note("B%d ", *(int *)arg);
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    return 0;
}

IN_RUN(R64_an_owner_that_unlocks_and_locks_again_goes_last)
{
    static int numbers[3] = {1, 2, 3};

    locked();
    for (int i = 0; i < 3; i++)
        start(lock_and_note, &numbers[i]);
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    note("old owner");
    EXPECT_LOG("B1 B2 B3 old owner");
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
}

static px_mutex other_mutex;
static int stalled;

static int lock_both(void *arg)
{
    px_mutex *first = arg;
    px_mutex *last = first == &mutex ? &other_mutex : &mutex;
    int code;

    EXPECT_EQ(px_mutex_lock(first), 0);
    EXPECT_EQ(px_yield(), 0);
    code = px_mutex_lock(last);
    stalled += code == PX_ESTALLED;
    if (code == 0)
        EXPECT_EQ(px_mutex_unlock(last), 0);
    EXPECT_EQ(px_mutex_unlock(first), 0);
    return code;
}

IN_STALLED_RUN(R65_two_locks_in_opposite_order_are_a_deadlock_that_is_told)
{
    stalled = 0;
    EXPECT_EQ(px_mutex_init(&mutex), 0);
    EXPECT_EQ(px_mutex_init(&other_mutex), 0);
    start(lock_both, &mutex);
    start(lock_both, &other_mutex);
    EXPECT_CODE(px_sleep(PX_FOREVER), PX_ESTALLED);
    settle();
    EXPECT_EQ(stalled, 2);
    EXPECT_MUTEX(&mutex, "free:");
    EXPECT_MUTEX(&other_mutex, "free:");
}

static pthread_mutex_t thread_lock = PTHREAD_MUTEX_INITIALIZER;

static int hold_the_thread_lock(void *arg)
{
    (void)arg;
    EXPECT_EQ(pthread_mutex_trylock(&thread_lock), 0);
    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    EXPECT_EQ(pthread_mutex_unlock(&thread_lock), 0);
    return 0;
}

IN_RUN(R66_a_thread_lock_held_across_a_park_is_busy_for_the_next_fiber)
{
    start(hold_the_thread_lock, NULL);
    /* pthread_mutex_lock() here would stop the thread for good. */
    EXPECT_EQ(pthread_mutex_trylock(&thread_lock), EBUSY);
    EXPECT_EQ(px_sleep(2 * PX_MSEC), 0);
    EXPECT_EQ(pthread_mutex_trylock(&thread_lock), 0);
    EXPECT_EQ(pthread_mutex_unlock(&thread_lock), 0);
}

IN_RUN(R67_an_interrupt_that_does_not_reach_a_waiter_leaves_its_place)
{
    struct job *b;

    locked();
    pass_lock('a', &mutex);
    b = lock_within('b', &mutex, PX_FOREVER);
    pass_lock('c', &mutex);
    EXPECT_EQ(px_scope_shield(&b->scope, true), 0);
    EXPECT_EQ(px_cancel(b->fiber), 0);
    settle();
    EXPECT_MUTEX(&mutex, "0:abc a=- b=- c=-");
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    EXPECT_MUTEX(&mutex, "a:bc a=- b=- c=-");
    settle();
    EXPECT_MUTEX(&mutex, "b:c a=ok b=ok c=-");
    EXPECT_EQ(px_cancel(job_pool()->jobs[2].fiber), 0);
    settle();
}

IN_RUN(R67_an_interrupt_of_one_waiter_leaves_the_order_of_the_others)
{
    struct job *b;

    locked();
    lock_in_fiber('a', &mutex);
    b = lock_in_fiber('b', &mutex);
    pass_lock('c', &mutex);
    EXPECT_EQ(px_cancel(b->fiber), 0);
    EXPECT_MUTEX(&mutex, "0:ac a=- b=- c=-");
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    settle();
    EXPECT_MUTEX(&mutex, "a:c a=ok b=canceled c=-");
    EXPECT_EQ(px_cancel(job_pool()->jobs[2].fiber), 0);
    settle();
}

/* Every waiting call answers alike. */

static px_fiber *sleeper;
static int pipe_ends[2];

static int call_sleep(void)
{
    return px_sleep(PX_MINUTE);
}

static int call_sleep_until(void)
{
    return px_sleep_until(px_now() + PX_MINUTE);
}

static int call_sem_down_above(void)
{
    return px_sem_down_n(&sem, 5);
}

static int call_sem_with(void)
{
    return px_sem_with(&sem, do_nothing, NULL);
}

static int call_mutex_with(void)
{
    return px_mutex_with(&mutex, do_nothing, NULL);
}

static int call_await(void)
{
    return px_await(sleeper, NULL);
}

static int call_await_all(void)
{
    return px_await_all(&sleeper, 1, NULL);
}

static int call_wait_fd(void)
{
    return px_wait_fd(pipe_ends[0], PX_READABLE);
}

static const struct {
    const char *name;
    int (*call)(void);
} waiting_calls[] = {
    {"px_sleep", call_sleep},
    {"px_sleep_until", call_sleep_until},
    {"px_sem_down", call_sem_down},
    {"px_sem_down_n", call_sem_down_n},
    {"px_sem_down_n above the limit", call_sem_down_above},
    {"px_sem_wait_available", call_sem_available},
    {"px_sem_with", call_sem_with},
    {"px_mutex_lock", call_mutex_lock},
    {"px_mutex_with", call_mutex_with},
    {"px_waitgroup_wait", call_wg_wait},
    {"px_await", call_await},
    {"px_await_all", call_await_all},
    {"px_wait_fd", call_wait_fd},
};

#define WAITING_CALLS (sizeof(waiting_calls) / sizeof(waiting_calls[0]))

static int call_by_index(void *arg)
{
    return waiting_calls[*(size_t *)arg].call();
}

static int call_within_5_ms(void *arg)
{
    return px_with_timeout(5 * PX_MSEC, call_by_index, arg);
}

static int call_in_a_fired_scope(void *arg)
{
    return px_with_timeout(0, call_by_index, arg);
}

static void expect_result(size_t i, const char *how, int value, int expected)
{
    if (value != expected)
        (void)fprintf(stderr, "%s, %s: %s\n", waiting_calls[i].name, how,
                      err(value));
    EXPECT_EQ(value, expected);
}

IN_RUN(R68_every_waiting_call_answers_an_interrupt_alike)
{
    static size_t index;
    int value;

    locked();
    limited(4, 4);
    EXPECT_EQ(px_waitgroup_init(&wg, 1), 0);
    EXPECT_EQ(pipe(pipe_ends), 0);
    sleeper = start_handle(hold_a_permit_until_cancelled, NULL);
    for (index = 0; index < WAITING_CALLS; index++) {
        px_fiber *fiber = start_handle(call_by_index, &index);

        settle();
        EXPECT(!px_is_done(fiber));
        EXPECT_EQ(px_cancel(fiber), 0);
        EXPECT_EQ(px_await(fiber, &value), 0);
        expect_result(index, "cancelled", value, PX_ECANCELED);
        fiber = start_handle(call_within_5_ms, &index);
        EXPECT_EQ(px_await(fiber, &value), 0);
        expect_result(index, "timed out", value, PX_ETIMEDOUT);
        fiber = start_handle(call_in_a_fired_scope, &index);
        EXPECT(px_is_done(fiber));
        EXPECT_EQ(px_await(fiber, &value), 0);
        expect_result(index, "in a fired scope", value, PX_ETIMEDOUT);
        EXPECT_SEM(&sem, "0:1");
        EXPECT_MUTEX(&mutex, "0:");
        EXPECT_WG(&wg, "1:");
    }
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_cancel(sleeper), 0);
    EXPECT_EQ(px_await(sleeper, &value), 0);
    EXPECT_EQ(px_close(pipe_ends[0]), 0);
    EXPECT_EQ(px_close(pipe_ends[1]), 0);
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
}

/* Waitgroups. */

static int sleep_100_and_done(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sleep(100 * PX_MSEC), 0);
    note("last done: %s", err(px_waitgroup_done(&wg)));
    return 0;
}

IN_RUN(R99_a_done_at_zero_is_told_moves_and_stays_told)
{
    EXPECT_EQ(px_waitgroup_init(&wg, 0), 0);
    EXPECT_CODE(px_waitgroup_done(&wg), PX_ENEGATIVE);
    EXPECT_EQ(px_waitgroup_count(&wg), -1);
    EXPECT_CODE(px_waitgroup_wait(&wg), PX_ENEGATIVE);
    EXPECT_EQ(px_waitgroup_add(&wg, 1), 0);
    start(sleep_100_and_done, NULL);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    EXPECT_EQ(px_now(), 0);
    EXPECT_EQ(px_sleep(200 * PX_MSEC), 0);
    EXPECT_LOG("last done: negative");
    EXPECT_EQ(px_waitgroup_count(&wg), -1);
}

IN_RUN(R101_a_wait_after_zero_returns_at_once)
{
    EXPECT_EQ(px_waitgroup_init(&wg, 0), 0);
    watch_others();
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    EXPECT_EQ(px_waitgroup_add(&wg, 1), 0);
    EXPECT_EQ(px_waitgroup_done(&wg), 0);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    EXPECT(nobody_ran_since());
}

static void R101_off_a_fiber_a_wait_is_refused_at_zero_too(void **state)
{
    (void)state;
    assert_int_equal(px_waitgroup_init(&wg, 0), 0);
    assert_int_equal(px_waitgroup_wait(&wg), PX_ENOFIBER);
}

IN_RUN(R102_a_second_done_loses_no_waiter_that_the_first_woke)
{
    EXPECT_EQ(px_waitgroup_init(&wg, 1), 0);
    wait_in_fiber('a', &wg);
    wait_in_fiber('b', &wg);
    EXPECT_EQ(px_waitgroup_done(&wg), 0);
    EXPECT_CODE(px_waitgroup_done(&wg), PX_ENEGATIVE);
    settle();
    EXPECT_WG(&wg, "-1: a=ok b=ok");
}

IN_RUN(R103_a_waiter_pulled_back_by_an_add_waits_for_the_next_zero)
{
    EXPECT_EQ(px_waitgroup_init(&wg, 1), 0);
    wait_in_fiber('w', &wg);
    EXPECT_EQ(px_waitgroup_done(&wg), 0);
    EXPECT_EQ(px_waitgroup_add(&wg, 2), 0);
    settle();
    EXPECT_WG(&wg, "2:w w=-");
    EXPECT_EQ(px_waitgroup_done(&wg), 0);
    settle();
    EXPECT_WG(&wg, "1:w w=-");
    EXPECT_EQ(px_waitgroup_done(&wg), 0);
    settle();
    EXPECT_WG(&wg, "0: w=ok");
}

IN_RUN(R103_a_wait_that_timed_out_has_no_part_in_the_next_round)
{
    EXPECT_EQ(px_waitgroup_init(&wg, 1), 0);
    wait_within('w', &wg, 10 * PX_MSEC);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_WG(&wg, "1: w=timedout");
    EXPECT_EQ(px_waitgroup_done(&wg), 0);
    EXPECT_EQ(px_waitgroup_add(&wg, 1), 0);
    wait_in_fiber('x', &wg);
    EXPECT_WG(&wg, "1:x w=timedout x=-");
    EXPECT_EQ(px_waitgroup_done(&wg), 0);
    settle();
    EXPECT_WG(&wg, "0: w=timedout x=ok");
}

IN_RUN(R104_adding_while_somebody_waits_moves_the_zero)
{
    EXPECT_EQ(px_waitgroup_init(&wg, 1), 0);
    wait_in_fiber('w', &wg);
    EXPECT_EQ(px_waitgroup_add(&wg, 3), 0);
    EXPECT_EQ(px_waitgroup_add(&wg, -3), 0);
    settle();
    EXPECT_WG(&wg, "1:w w=-");
    EXPECT_EQ(px_waitgroup_add(&wg, 1), 0);
    EXPECT_EQ(px_waitgroup_add(&wg, -px_waitgroup_count(&wg)), 0);
    EXPECT_EQ(px_waitgroup_waiters(&wg), 0);
    settle();
    EXPECT_WG(&wg, "0: w=ok");
}

static const struct CMUnitTest sync_cases[] = {
    PX_TEST(R1_cancelling_the_head_grants_those_behind_it_in_the_same_call),
    PX_TEST(R2_a_head_that_times_out_lets_the_next_in_with_no_release),
    PX_TEST(R2_a_head_whose_scope_is_cancelled_lets_the_next_in),
    PX_TEST(R2_a_head_that_is_cancelled_and_awaited_lets_the_next_in),
    PX_TEST(R2_a_head_whose_deadline_is_moved_to_the_past_lets_the_next_in),
    PX_TEST(R2_a_head_that_is_due_when_another_comes_lets_it_in),
    PX_TEST(R4_a_grant_before_a_cancel_stands),
    PX_TEST(R5_a_cancel_before_a_release_leaves_the_permit_to_the_next),
    PX_TEST(R5_a_cancel_before_an_unlock_leaves_the_lock_to_the_next),
    PX_TEST(R7_no_permit_is_lost_between_a_grant_and_a_cancel),
    PX_TEST(R8_a_pending_cancel_takes_no_permit),
    PX_TEST(R9_a_scope_that_has_fired_already_takes_no_permit),
    PX_TEST(R10_of_5000_that_wait_25_ms_for_10_permits_held_50_none_leaks),
    PX_TEST(R10_none_leaks_when_release_and_deadline_fall_together),
    PX_TEST(R11_a_cancelled_waiter_resumes_nobody_without_a_permit),
    PX_TEST(R13_with_leaks_no_permit_wherever_it_is_cancelled),
    PX_TEST(R13_every_helper_gives_back_on_every_way_out),
    PX_TEST(R14_a_cancel_posted_by_another_thread_ends_every_wait),
    PX_TEST(R15_waits_that_time_out_leave_nothing_queued),
    PX_TEST(R16_the_timer_of_a_wait_that_was_closed_does_not_hit_the_next_wait),
    PX_TEST(
        R17_the_timer_of_a_wait_that_was_granted_does_not_hit_the_next_wait),
    PX_TEST(R17_a_release_and_a_deadline_at_one_time_resume_once),
    PX_TEST(
        R17_of_two_that_are_due_together_the_second_gets_what_the_first_held),
    PX_TEST(R19_a_deadline_already_past_has_fired_with_a_permit_free),
    PX_TEST(R19_a_deadline_that_passed_unnoticed_fails_the_next_wait),
    PX_TEST(R20_three_timeouts_take_nothing_off_the_count),
    PX_TEST(R21_main_and_a_child_time_out_alike),
    PX_TEST(R23_a_try_between_a_release_and_the_waiters_turn_takes_nothing),
    PX_TEST(R24_two_that_release_and_take_again_alternate),
    PX_TEST(R26_a_big_request_holds_back_small_ones_and_tries),
    PX_TEST(R27_single_releases_add_up_to_a_request_for_10),
    PX_TEST(R28_negative_weights_are_invalid_with_and_without_waiters),
    PX_TEST(R28_a_limit_below_1_is_1_from_the_start),
    PX_TEST(R29_a_request_above_the_limit_alone_stalls_and_never_hangs),
    PX_TEST(R29_a_request_above_the_limit_holds_back_nobody),
    PX_TEST(R30_zero_permits_have_the_same_answer_in_every_state),
    PX_TEST(R31_an_over_release_has_no_partial_effect),
    PX_TEST(R32_releasing_after_a_failed_wait_is_found_at_the_holders_release),
    PX_TEST(R32_a_guard_releases_only_what_it_took),
    PX_TEST(R33_counts_at_the_top_are_refused_before_they_wrap),
    PX_TEST(R34_a_release_wakes_past_a_request_above_the_limit),
    PX_TEST(R35_no_value_of_errno_looks_like_the_reason_of_a_wake),
    PX_TEST(R36_a_broadcast_reaches_all_10001),
    PX_TEST(R38_waiting_without_taking_stands_in_front_of_nobody),
    PX_TEST(R40_raising_the_limit_leaves_no_stale_queue),
    PX_TEST(R41_a_limit_of_0_pauses_and_a_later_one_resumes),
    PX_TEST(R42_shrinking_below_use_keeps_the_debt_and_passes_over),
    PX_TEST(R44_shrinking_revokes_nobody_and_drains),
    PX_TEST(R45_a_debt_is_kept_never_lost_never_doubled),
    PX_TEST(R46_taking_permits_away_leaves_the_holders_theirs),
    PX_TEST(R47_destroy_with_waiters_is_busy_until_the_last_is_out),
    PX_TEST(R48_a_deadline_and_a_destroy_at_one_time_have_one_outcome),
    PX_TEST(R49_a_mutex_is_not_destroyed_under_its_guard),
    PX_TEST(R50_a_close_is_seen_by_those_before_and_after_it),
    PX_TEST(R51_a_holder_that_is_cancelled_gives_its_permit_back),
    PX_TEST(R52_a_stop_ends_every_wait_at_once),
    PX_TEST(R52_what_a_stop_lets_through_has_its_grant),
    PX_TEST(R53_an_up_posted_by_another_thread_wakes_an_idle_loop),
    PX_TEST(R55_a_cancel_and_an_unlock_in_one_step_make_one_owner),
    PX_TEST(R56_between_unlock_and_the_waiters_turn_nobody_gets_in),
    PX_TEST(R57_a_waiter_granted_then_cancelled_unlocks_once),
    PX_TEST(R58_locking_again_is_an_error_at_once),
    PX_TEST(R60_the_owner_is_a_fiber_and_not_the_thread),
    PX_TEST(R61_a_new_fiber_is_never_told_it_holds_a_dead_ones_lock),
    PX_TEST(R62_waiting_for_an_owner_that_ended_is_reported),
    PX_TEST(R62_who_waits_as_the_owner_ends_stays_queued),
    PX_TEST(R63_a_waiter_that_has_gone_is_not_touched_by_unlock),
    PX_TEST(R64_an_owner_that_unlocks_and_locks_again_goes_last),
    PX_TEST(R65_two_locks_in_opposite_order_are_a_deadlock_that_is_told),
    PX_TEST(R66_a_thread_lock_held_across_a_park_is_busy_for_the_next_fiber),
    PX_TEST(R67_an_interrupt_that_does_not_reach_a_waiter_leaves_its_place),
    PX_TEST(R67_an_interrupt_of_one_waiter_leaves_the_order_of_the_others),
    PX_TEST(R68_every_waiting_call_answers_an_interrupt_alike),
    PX_TEST(R99_a_done_at_zero_is_told_moves_and_stays_told),
    PX_TEST(R101_a_wait_after_zero_returns_at_once),
    PX_TEST(R101_off_a_fiber_a_wait_is_refused_at_zero_too),
    PX_TEST(R102_a_second_done_loses_no_waiter_that_the_first_woke),
    PX_TEST(R103_a_waiter_pulled_back_by_an_add_waits_for_the_next_zero),
    PX_TEST(R103_a_wait_that_timed_out_has_no_part_in_the_next_round),
    PX_TEST(R104_adding_while_somebody_waits_moves_the_zero),
};

PX_TEST_MAIN(sync_cases)
