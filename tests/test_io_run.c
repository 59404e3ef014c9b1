/* SPDX-License-Identifier: MIT */
/*
 * test_io_run.c - waits for descriptors as the run sees them: scopes, decided
 * wakes, errno, deadlocks, the virtual clock, and busy fibers.
 */
#define _GNU_SOURCE 1

#include "px_test_io.h"

#include <pthread.h>

/* ---- scopes, decided wakes, errno ---- */

static int timeout_leaves_it_ready_for_use(void *arg)
{
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    EXPECT_EQ(px_with_timeout(50 * PX_MSEC, wait_for_it, &w), 0);
    EXPECT_EQ(w.result, PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 50 * PX_MSEC);
    put(ends[1], 'x');
    EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_READABLE);
    close_both(ends);
    return 0;
}

static void a_timeout_comes_from_the_scope_around_it(void **state)
{
    (void)state;
    check(timeout_leaves_it_ready_for_use);
}

/* Two that one poll wakes; the canceller, where it runs first, finds that the
 * other's wake stands. */
struct verdict {
    struct waiting victim;
    int trigger;
    px_fiber *fiber;
    bool cancelled_in_time;
    int next_point;
};

static int victim(void *arg)
{
    struct verdict *v = arg;

    (void)wait_for_it(&v->victim);
    v->next_point = px_check();
    return 0;
}

static int canceller(void *arg)
{
    struct verdict *v = arg;

    EXPECT_EQ(px_wait_fd(v->trigger, PX_READABLE), PX_READABLE);
    v->cancelled_in_time = !px_is_done(v->fiber);
    EXPECT_EQ(px_cancel(v->fiber), 0);
    return 0;
}

static int wake_stands(void *arg)
{
    int a[2], b[2];

    (void)arg;
    for (int i = 0; i < 20; i++) {
        open_pipe(a, 0);
        open_pipe(b, 0);
        struct verdict v = {.victim = {.fd = a[0], .events = PX_READABLE},
                            .trigger = b[0]};
        px_fiber *first, *second;

        if (i % 2 == 0)
            EXPECT_EQ(px_spawn(&v.fiber, victim, &v), 0);
        first = start_handle(canceller, &v);
        if (i % 2 == 1)
            EXPECT_EQ(px_spawn(&v.fiber, victim, &v), 0);
        second = v.fiber;
        put(i % 4 < 2 ? a[1] : b[1], 'x');
        put(i % 4 < 2 ? b[1] : a[1], 'x');
        EXPECT_EQ(px_await(first, NULL), 0);
        EXPECT_EQ(px_await(second, NULL), 0);
        EXPECT_EQ(v.victim.result, PX_READABLE);
        EXPECT_EQ(v.next_point, v.cancelled_in_time ? PX_ECANCELED : 0);
        close_both(a);
        close_both(b);
    }
    return 0;
}

static void a_wake_that_was_decided_stands(void **state)
{
    (void)state;
    check(wake_stands);
}

static int errno_is_kept(void *arg)
{
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    errno = 1234;
    EXPECT_EQ(px_wait_fd(ends[1], PX_WRITABLE), PX_WRITABLE);
    EXPECT_EQ(errno, 1234);
    EXPECT_EQ(px_wait_fd(-1, PX_WRITABLE), PX_EBADF);
    EXPECT_EQ(errno, 1234);
    EXPECT_EQ(px_wait_fd(0, 0), PX_EINVAL);
    EXPECT_EQ(errno, 1234);
    close_both(ends);
    return 0;
}

static int waits_with_errno(void *arg)
{
    struct waiting *w = arg;

    errno = 11;
    (void)wait_for_it(w);
    EXPECT_EQ(errno, 11);
    return 0;
}

static int errno_across_parking(void *arg)
{
    int ends[2];

    (void)errno_is_kept(arg);
    open_pipe(ends, 0);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    errno = 22;
    start(waits_with_errno, &w);
    EXPECT_EQ(errno, 22);
    put(ends[1], 'x');
    settle();
    EXPECT_EQ(w.result, PX_READABLE);
    EXPECT_EQ(errno, 22);
    close_both(ends);
    return 0;
}

static void errno_is_left_as_it_was_across_parking_too(void **state)
{
    (void)state;
    check(errno_across_parking);
}

static void *puts_after_20ms(void *arg)
{
    pause_ms(20);
    put(*(int *)arg, 'x');
    return NULL;
}

static int only_a_wait_is_left(void *arg)
{
    pthread_t thread;
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    EXPECT_EQ(pthread_create(&thread, NULL, puts_after_20ms, &ends[1]), 0);
    EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_READABLE);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    close_both(ends);
    return 0;
}

static void not_a_deadlock(void *ctx)
{
    ++*(int *)ctx;
}

static void a_descriptor_wait_is_no_deadlock(void **state)
{
    int reports = 0;
    px_run_options options = {.on_deadlock = not_a_deadlock, .ctx = &reports};

    (void)state;
    assert_int_equal(run_fibers_with(options, 0, only_a_wait_is_left, NULL), 0);
    assert_int_equal(reports, 0);
    assert_log("");
}

/* Every way in which a wait ends, and then nothing that could wake. */
static int deadlocks_after_waits(void *arg)
{
    px_sem never = PX_SEM_INIT(0);
    int ends[2];
    px_fiber *fiber;

    (void)arg;
    open_pipe(ends, 0);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    start(gives_up_after_10ms, &w);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_EQ(w.result, PX_ETIMEDOUT);
    fiber = start_handle(wait_for_it, &w);
    EXPECT_EQ(px_cancel_and_await(fiber, NULL), 0);
    start(wait_for_it, &w);
    put(ends[1], 'x');
    settle();
    EXPECT_EQ(w.result, PX_READABLE);
    EXPECT_EQ(take(ends[0]), 'x');
    start(wait_for_it, &w);
    EXPECT_EQ(px_close(ends[0]), 0);
    settle();
    EXPECT_EQ(w.result, PX_ECLOSED);
    EXPECT_EQ(px_close(ends[1]), 0);
    EXPECT_EQ(px_sem_down(&never), PX_ESTALLED);
    return 0;
}

static void a_wait_that_is_over_does_not_hide_a_deadlock(void **state)
{
    int reports = 0;
    px_run_options options = {.on_deadlock = not_a_deadlock, .ctx = &reports};

    (void)state;
    assert_int_equal(run_fibers_with(options, 0, deadlocks_after_waits, NULL),
                     PX_ESTALLED);
    assert_int_equal(reports, 1);
    assert_log("");
}

static int waits_after_others_gave_up(void *arg)
{
    int ends[2];

    open_pipe(ends, 0);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE}, v = w;
    start(gives_up_after_10ms, &w);
    start(gives_up_after_10ms, &v);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    close_both(ends);
    return only_a_wait_is_left(arg);
}

static void waits_that_are_over_do_not_make_one(void **state)
{
    int reports = 0;
    px_run_options options = {.on_deadlock = not_a_deadlock, .ctx = &reports};

    (void)state;
    assert_int_equal(
        run_fibers_with(options, 0, waits_after_others_gave_up, NULL), 0);
    assert_int_equal(reports, 0);
    assert_log("");
}

static int jump_over_a_wait(void *arg)
{
    int ends[2];
    px_fiber *fiber;

    (void)arg;
    open_pipe(ends, 0);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    fiber = start_handle(wait_for_it, &w);
    EXPECT_EQ(px_sleep(60 * PX_MINUTE), 0);
    EXPECT_EQ(px_now(), 60 * PX_MINUTE);
    EXPECT(!w.done);

    /* What is ready comes before the jump. */
    put(ends[1], 'x');
    EXPECT_EQ(px_sleep(60 * PX_MINUTE), 0);
    EXPECT_EQ(w.result, PX_READABLE);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    close_both(ends);
    return 0;
}

static void the_virtual_clock_jumps_over_a_wait_but_polls_first(void **state)
{
    (void)state;
    check(jump_over_a_wait);
}

static int is_busy(void *arg)
{
    bool *stop = arg;

    while (!*stop)
        EXPECT_EQ(px_yield(), 0);
    return 0;
}

/* Three busy fibers, this one among them: 61 switches are at most 61 turns. */
static int busy_fibers(void *arg)
{
    int ends[2], turns = 0;
    bool stop = false;

    (void)arg;
    open_pipe(ends, 0);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    start(wait_for_it, &w);
    start(is_busy, &stop);
    start(is_busy, &stop);
    put(ends[1], 'x');
    while (!w.done && turns < 10000) {
        turns++;
        EXPECT_EQ(px_yield(), 0);
    }
    stop = true;
    EXPECT(w.done);
    EXPECT(turns <= 200);
    settle();
    close_both(ends);
    return 0;
}

static void busy_fibers_do_not_starve_a_descriptor(void **state)
{
    (void)state;
    check(busy_fibers);
}

static int alone_and_yielding(void *arg)
{
    int ends[2], turns = 0;

    (void)arg;
    open_pipe(ends, 0);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    start(wait_for_it, &w);
    put(ends[1], 'x');
    while (!w.done && turns < 10000) {
        turns++;
        EXPECT_EQ(px_yield(), 0);
    }
    EXPECT(turns <= 30); /* a shuffled queue may pick this one a few times */
    close_both(ends);
    return 0;
}

static void a_yield_that_finds_nobody_else_looks_at_descriptors(void **state)
{
    (void)state;
    check(alone_and_yielding);
}

static int ends_at_once(void *arg)
{
    (void)arg;
    return 0;
}

/* With a busy fiber in the queue the few yields at the end cause no look of
 * their own: it is the 200 eager starts that made the waiter runnable. */
static int only_spawns(void *arg)
{
    static const px_spawn_options at_the_tail = {.queued = true};
    int ends[2];
    bool stop = false;

    (void)arg;
    open_pipe(ends, 0);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    start(wait_for_it, &w);
    EXPECT_EQ(px_spawn_with(NULL, &at_the_tail, is_busy, &stop), 0);
    put(ends[1], 'x');
    for (int i = 0; i < 200; i++)
        start(ends_at_once, NULL);
    EXPECT(!w.done);
    for (int i = 0; i < 12; i++)
        EXPECT_EQ(px_yield(), 0);
    EXPECT(w.done);
    stop = true;
    settle();
    close_both(ends);
    return 0;
}

static void eager_starts_count_as_turns_too(void **state)
{
    (void)state;
    check(only_spawns);
}

static int stops_the_run(void *arg)
{
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    px_fiber *fiber = start_handle(wait_for_it, &w);
    settle();
    EXPECT_EQ(px_stop(), 0);
    EXPECT_EQ(px_cancel_and_await(fiber, NULL), 0);
    EXPECT_EQ(w.result, PX_ECANCELED);
    close_both(ends);
    return 0;
}

static void stopping_the_run_ends_the_waits(void **state)
{
    (void)state;
    check(stops_the_run);
}

static int one_round(void *arg)
{
    int *ends = arg;
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};

    start(wait_for_it, &w);
    settle();
    EXPECT(!w.done);
    put(ends[1], 'x');
    settle();
    EXPECT_EQ(w.result, PX_READABLE);
    EXPECT_EQ(take(ends[0]), 'x');
    return 0;
}

static void a_descriptor_outlives_the_runs_that_wait_on_it(void **state)
{
    int ends[2];

    (void)state;
    open_pipe(ends, 0);
    for (int i = 0; i < 5; i++)
        run_fibers(one_round, ends);
    close_both(ends);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_timeout_comes_from_the_scope_around_it),
    PX_TEST(a_wake_that_was_decided_stands),
    PX_TEST(errno_is_left_as_it_was_across_parking_too),
    PX_TEST(a_descriptor_wait_is_no_deadlock),
    PX_TEST(a_wait_that_is_over_does_not_hide_a_deadlock),
    PX_TEST(waits_that_are_over_do_not_make_one),
    PX_TEST(the_virtual_clock_jumps_over_a_wait_but_polls_first),
    PX_TEST(busy_fibers_do_not_starve_a_descriptor),
    PX_TEST(a_yield_that_finds_nobody_else_looks_at_descriptors),
    PX_TEST(eager_starts_count_as_turns_too),
    PX_TEST(stopping_the_run_ends_the_waits),
    PX_TEST(a_descriptor_outlives_the_runs_that_wait_on_it),
};

PX_TEST_MAIN(tests)
