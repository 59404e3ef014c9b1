/* SPDX-License-Identifier: MIT */
/*
 * test_signal.c - px_wait_signal(): a signal becomes an event like any other.
 *
 * The caller keeps the signals blocked; so does every test here, and finds
 * afterwards that no signal is pending and the mask is as it was.
 */
#define _GNU_SOURCE 1

#include "px_test_io.h"

#include <pthread.h>
#include <signal.h>

static sigset_t one_signal(int number)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, number);
    return set;
}

static sigset_t two_signals(int first, int second)
{
    sigset_t set = one_signal(first);

    (void)sigaddset(&set, second);
    return set;
}

static bool is_pending(int number)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigpending(&set);
    return sigismember(&set, number) == 1;
}

static bool same_mask(const sigset_t *a, const sigset_t *b)
{
    for (int number = 1; number < SIGRTMAX; number++) {
        if (sigismember(a, number) != sigismember(b, number))
            return false;
    }
    return true;
}

/* Run the body with SIGUSR1 and SIGUSR2 blocked, as a caller of
 * px_wait_signal() has them. Neither may be left pending. */
static void check_blocked(px_fn body)
{
    sigset_t both = two_signals(SIGUSR1, SIGUSR2), before, inside, after;

    assert_int_equal(pthread_sigmask(SIG_BLOCK, &both, &before), 0);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &inside), 0);
    run_fibers(body, NULL);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
    assert_true(same_mask(&inside, &after));
    assert_false(is_pending(SIGUSR1));
    assert_false(is_pending(SIGUSR2));
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    assert_log("");
}

/* A fiber in px_wait_signal(). */
struct listening {
    sigset_t set;
    int result;
    bool done;
};

static int listen_for_it(void *arg)
{
    struct listening *l = arg;

    l->result = px_wait_signal(&l->set);
    l->done = true;
    return 0;
}

static int send_to_process(int number)
{
    return kill(getpid(), number);
}

/* ---- arrival ---- */

static int waits_for_a_signal(void *arg)
{
    struct listening l = {.set = one_signal(SIGUSR1)};

    (void)arg;
    start(listen_for_it, &l);
    settle();
    EXPECT(!l.done);
    EXPECT_EQ(send_to_process(SIGUSR1), 0);
    settle();
    EXPECT(l.done);
    EXPECT_EQ(l.result, SIGUSR1);
    EXPECT(!is_pending(SIGUSR1));
    return 0;
}

static void a_fiber_waits_until_the_signal_comes(void **state)
{
    (void)state;
    check_blocked(waits_for_a_signal);
}

/* Whoever came first is served first, whatever the poller reports first; and
 * each signal goes to one. */
static int several_listen(void *arg)
{
    struct listening l[3];

    (void)arg;
    for (int i = 0; i < 3; i++) {
        l[i] = (struct listening){.set = one_signal(SIGUSR1)};
        start(listen_for_it, &l[i]);
    }
    for (int i = 0; i < 3; i++) {
        settle();
        EXPECT_EQ(send_to_process(SIGUSR1), 0);
        settle();
        for (int k = 0; k < 3; k++)
            EXPECT_EQ(l[k].done, k <= i);
        EXPECT_EQ(l[i].result, SIGUSR1);
    }
    return 0;
}

static void several_that_wait_are_served_in_the_order_of_arrival(void **state)
{
    (void)state;
    check_blocked(several_listen);
}

/* The first in line is only served what it waits for. */
static int different_sets(void *arg)
{
    struct listening first = {.set = one_signal(SIGUSR2)};
    struct listening second = {.set = two_signals(SIGUSR1, SIGUSR2)};

    (void)arg;
    start(listen_for_it, &first);
    start(listen_for_it, &second);
    settle();
    EXPECT_EQ(send_to_process(SIGUSR1), 0);
    settle();
    EXPECT(!first.done && second.done);
    EXPECT_EQ(second.result, SIGUSR1);
    EXPECT_EQ(send_to_process(SIGUSR2), 0);
    settle();
    EXPECT_EQ(first.result, SIGUSR2);
    return 0;
}

static void a_signal_goes_to_the_first_that_waits_for_it(void **state)
{
    (void)state;
    check_blocked(different_sets);
}

/* A newcomer does not take what is pending for somebody who waits. */
static int newcomer(void *arg)
{
    struct listening first = {.set = one_signal(SIGUSR1)};
    struct listening late = {.set = one_signal(SIGUSR1)};

    (void)arg;
    start(listen_for_it, &first);
    settle();
    EXPECT_EQ(send_to_process(SIGUSR1), 0);
    start(listen_for_it, &late); /* before the poller could tell the first */
    settle();
    EXPECT_EQ(first.result, SIGUSR1);
    EXPECT(!late.done);
    EXPECT_EQ(send_to_process(SIGUSR1), 0);
    settle();
    EXPECT_EQ(late.result, SIGUSR1);
    return 0;
}

static void a_newcomer_does_not_overtake(void **state)
{
    (void)state;
    check_blocked(newcomer);
}

static int sent_to_the_thread(void *arg)
{
    struct listening l = {.set = one_signal(SIGUSR1)};

    (void)arg;
    start(listen_for_it, &l);
    settle();
    EXPECT_EQ(raise(SIGUSR1), 0);
    settle();
    EXPECT_EQ(l.result, SIGUSR1);
    return 0;
}

static void one_sent_to_the_thread_counts_as_well(void **state)
{
    (void)state;
    check_blocked(sent_to_the_thread);
}

static int pending_before(void *arg)
{
    sigset_t set = one_signal(SIGUSR1);

    (void)arg;
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(i ? raise(SIGUSR1) : send_to_process(SIGUSR1), 0);
        EXPECT_EQ(px_wait_signal(&set), SIGUSR1);
        EXPECT_EQ(px_now(), 0);
        EXPECT(!is_pending(SIGUSR1));
    }
    return 0;
}

static void one_that_is_pending_comes_at_once(void **state)
{
    (void)state;
    check_blocked(pending_before);
}

static int several_pending(void *arg)
{
    sigset_t set = two_signals(SIGUSR1, SIGUSR2);
    int first, second;

    (void)arg;
    EXPECT_EQ(send_to_process(SIGUSR2), 0);
    EXPECT_EQ(send_to_process(SIGUSR1), 0);
    first = px_wait_signal(&set);
    second = px_wait_signal(&set);
    EXPECT(first == SIGUSR1 || first == SIGUSR2);
    EXPECT_EQ(first + second, SIGUSR1 + SIGUSR2);
    return 0;
}

static void of_several_each_wait_takes_one(void **state)
{
    (void)state;
    check_blocked(several_pending);
}

static int only_its_own(void *arg)
{
    struct listening first = {.set = one_signal(SIGUSR1)};
    struct listening second = {.set = one_signal(SIGUSR2)};

    (void)arg;
    start(listen_for_it, &first);
    start(listen_for_it, &second);
    settle();
    EXPECT_EQ(send_to_process(SIGUSR2), 0);
    settle();
    EXPECT(!first.done);
    EXPECT_EQ(second.result, SIGUSR2);
    EXPECT_EQ(send_to_process(SIGUSR1), 0);
    settle();
    EXPECT_EQ(first.result, SIGUSR1);
    return 0;
}

static void each_waiter_gets_only_signals_of_its_set(void **state)
{
    (void)state;
    check_blocked(only_its_own);
}

static int two_for_one(void *arg)
{
    struct listening a = {.set = one_signal(SIGUSR1)}, b = a;

    (void)arg;
    start(listen_for_it, &a);
    start(listen_for_it, &b);
    settle();
    EXPECT_EQ(send_to_process(SIGUSR1), 0);
    settle();
    EXPECT(a.done != b.done);
    EXPECT_EQ(send_to_process(SIGUSR1), 0);
    settle();
    EXPECT(a.done && b.done);
    EXPECT_EQ(a.result, SIGUSR1);
    EXPECT_EQ(b.result, SIGUSR1);
    return 0;
}

static void of_two_waiters_one_gets_the_signal_and_one_waits_on(void **state)
{
    (void)state;
    check_blocked(two_for_one);
}

static int overlapping(void *arg)
{
    struct listening both = {.set = two_signals(SIGUSR1, SIGUSR2)};
    struct listening first = {.set = one_signal(SIGUSR1)};

    (void)arg;
    start(listen_for_it, &both);
    start(listen_for_it, &first);
    settle();
    EXPECT_EQ(send_to_process(SIGUSR2), 0);
    settle();
    EXPECT_EQ(both.result, SIGUSR2);
    EXPECT(!first.done);
    EXPECT_EQ(send_to_process(SIGUSR1), 0);
    settle();
    EXPECT_EQ(first.result, SIGUSR1);
    return 0;
}

static void sets_may_overlap(void **state)
{
    (void)state;
    check_blocked(overlapping);
}

static int again_and_again(void *arg)
{
    sigset_t set = one_signal(SIGUSR1);
    int rounds = scaled(1000, 100);

    (void)arg;
    for (int i = 0; i < rounds; i++) {
        struct listening l = {.set = set};

        start(listen_for_it, &l);
        EXPECT_EQ(send_to_process(SIGUSR1), 0);
        settle();
        EXPECT_EQ(l.result, SIGUSR1);
    }
    return 0;
}

static void a_thousand_signals_are_a_thousand_wakes(void **state)
{
    (void)state;
    check_blocked(again_and_again);
}

static void *sends_after_20ms(void *arg)
{
    (void)arg;
    pause_ms(20);
    (void)send_to_process(SIGUSR1);
    return NULL;
}

static int from_another_thread(void *arg)
{
    sigset_t set = one_signal(SIGUSR1);
    pthread_t thread;

    (void)arg;
    EXPECT_EQ(pthread_create(&thread, NULL, sends_after_20ms, NULL), 0);
    EXPECT_EQ(px_wait_signal(&set), SIGUSR1);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    return 0;
}

static void counts(void *ctx)
{
    ++*(int *)ctx;
}

static void R123_a_signal_wait_is_no_deadlock(void **state)
{
    sigset_t set = one_signal(SIGUSR1), before;
    int reports = 0;
    px_run_options options = {.on_deadlock = counts, .ctx = &reports};

    (void)state;
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, &before), 0);
    assert_int_equal(run_fibers_with(options, 0, from_another_thread, NULL), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    assert_int_equal(reports, 0);
    assert_log("");
}

/* ---- giving up ---- */

static int listens_for_10ms(void *arg)
{
    return px_with_timeout(10 * PX_MSEC, listen_for_it, arg);
}

static int given_up(void *arg)
{
    struct listening a = {.set = one_signal(SIGUSR1)}, b = a;
    px_fiber *fiber;

    (void)arg;
    EXPECT_EQ(listens_for_10ms(&a), 0);
    EXPECT_EQ(a.result, PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    fiber = start_handle(listen_for_it, &b);
    settle();
    EXPECT_EQ(px_cancel_and_await(fiber, NULL), 0);
    EXPECT_EQ(b.result, PX_ECANCELED);

    /* Nobody listens: it stays pending for the next who does. */
    EXPECT_EQ(send_to_process(SIGUSR1), 0);
    settle();
    EXPECT(is_pending(SIGUSR1));
    EXPECT_EQ(listen_for_it(&a), 0);
    EXPECT_EQ(a.result, SIGUSR1);
    return 0;
}

static void an_interrupted_wait_leaves_later_signals_pending(void **state)
{
    (void)state;
    check_blocked(given_up);
}

static int one_gives_up(void *arg)
{
    struct listening a = {.set = one_signal(SIGUSR1)}, b = a, c = a;

    (void)arg;
    start(listen_for_it, &a);
    start(listens_for_10ms, &b);
    start(listen_for_it, &c);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_EQ(b.result, PX_ETIMEDOUT);
    EXPECT(!a.done && !c.done);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(send_to_process(SIGUSR1), 0);
        settle();
    }
    EXPECT_EQ(a.result, SIGUSR1);
    EXPECT_EQ(c.result, SIGUSR1);
    return 0;
}

/* Interrupted, and not yet run since: what comes then is for the others. */
static int one_is_cancelled(void *arg)
{
    struct listening a = {.set = one_signal(SIGUSR1)}, b = a, c = a;
    px_fiber *cancelled = start_handle(listen_for_it, &a);

    (void)arg;
    start(listen_for_it, &b);
    settle();
    EXPECT_EQ(px_cancel(cancelled), 0);
    EXPECT_EQ(send_to_process(SIGUSR1), 0);
    start(listens_for_10ms, &c); /* hands out what is pending */
    EXPECT_EQ(px_await(cancelled, NULL), 0);
    EXPECT_EQ(a.result, PX_ECANCELED);
    settle();
    EXPECT(b.done);
    EXPECT_EQ(b.result, SIGUSR1);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_EQ(c.result, PX_ETIMEDOUT);
    return 0;
}

static int listens_when_it_is_too_late(void *arg)
{
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, PX_MSEC), 0);
    while (px_scope_remaining(&scope) > 0)
        continue;
    EXPECT_EQ(listen_for_it(arg), 0);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

static int raises_and_listens(void *arg)
{
    EXPECT_EQ(send_to_process(SIGUSR1), 0);
    return px_with_timeout(10 * PX_SEC, listen_for_it, arg);
}

/* It is in no scope that has fired before it begins to wait; then it gives way,
 * and its call is over. */
static int one_is_late(void *arg)
{
    struct listening a = {.set = one_signal(SIGUSR1)}, b = a;
    px_spawn_options options = {.queued = true};
    px_fiber *fibers[2];

    (void)arg;
    EXPECT_EQ(
        px_spawn_with(&fibers[0], &options, listens_when_it_is_too_late, &a),
        0);
    EXPECT_EQ(px_spawn_with(&fibers[1], &options, raises_and_listens, &b), 0);
    EXPECT_EQ(px_await_all(fibers, 2, NULL), 0);
    EXPECT_EQ(a.result, PX_ETIMEDOUT);
    EXPECT_EQ(b.result, SIGUSR1);
    return 0;
}

static void R5_one_whose_time_was_up_is_given_no_signal(void **state)
{
    sigset_t both = two_signals(SIGUSR1, SIGUSR2), before;

    (void)state;
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &both, &before), 0);
    check_real(one_is_late);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

static void R5_one_that_was_cancelled_is_given_no_signal(void **state)
{
    (void)state;
    check_blocked(one_is_cancelled);
}

static void one_that_gives_up_takes_no_signal_from_the_others(void **state)
{
    (void)state;
    check_blocked(one_gives_up);
}

static int in_a_fired_scope(void *arg)
{
    struct listening l = {.set = one_signal(SIGUSR1)};

    (void)arg;
    EXPECT_EQ(send_to_process(SIGUSR1), 0);
    EXPECT_EQ(px_with_timeout(0, listen_for_it, &l), 0);
    EXPECT_EQ(l.result, PX_ETIMEDOUT);
    EXPECT(is_pending(SIGUSR1));
    EXPECT_EQ(px_wait_signal(&l.set), SIGUSR1);
    return 0;
}

static void in_a_fired_scope_a_pending_signal_is_not_taken(void **state)
{
    (void)state;
    check_blocked(in_a_fired_scope);
}

/* Two fibers that one poll wakes: the one for the pipe cancels the other. The
 * signal is either delivered or still pending, and never both or neither. */
struct race {
    struct listening listener;
    px_fiber *fiber;
    int trigger;
};

static int cancels_the_listener(void *arg)
{
    struct race *r = arg;

    EXPECT_EQ(px_wait_fd(r->trigger, PX_READABLE), PX_READABLE);
    EXPECT_EQ(px_cancel(r->fiber), 0);
    return 0;
}

static int signal_and_cancel(void *arg)
{
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    for (int i = 0; i < 8; i++) {
        struct race r = {.listener = {.set = one_signal(SIGUSR1)},
                         .trigger = ends[0]};
        px_fiber *other = NULL;
        sigset_t set = one_signal(SIGUSR1);

        if (i % 2)
            other = start_handle(cancels_the_listener, &r);
        EXPECT_EQ(px_spawn(&r.fiber, listen_for_it, &r.listener), 0);
        if (i % 2 == 0)
            other = start_handle(cancels_the_listener, &r);
        if (i % 4 < 2)
            put(ends[1], 'x');
        EXPECT_EQ(send_to_process(SIGUSR1), 0);
        if (i % 4 >= 2)
            put(ends[1], 'x');
        EXPECT_EQ(px_await(other, NULL), 0);
        EXPECT_EQ(px_await(r.fiber, NULL), 0);
        EXPECT_EQ(take(ends[0]), 'x');
        if (r.listener.result == SIGUSR1) {
            EXPECT(!is_pending(SIGUSR1));
        } else {
            EXPECT_EQ(r.listener.result, PX_ECANCELED);
            EXPECT(is_pending(SIGUSR1));
            EXPECT_EQ(px_wait_signal(&set), SIGUSR1);
        }
    }
    close_both(ends);
    return 0;
}

static void a_signal_is_delivered_or_still_pending(void **state)
{
    (void)state;
    check_blocked(signal_and_cancel);
}

/* ---- several at once ---- */

enum { QUEUED = 3 };

/* A set of the first real-time signals: bit i is SIGRTMIN + i. */
static sigset_t queued_signals(unsigned bits)
{
    sigset_t set;

    (void)sigemptyset(&set);
    for (int i = 0; i < QUEUED; i++) {
        if (bits & 1U << i)
            (void)sigaddset(&set, SIGRTMIN + i);
    }
    return set;
}

/* Run the body with these blocked. One that is lost must not be waited for:
 * the body gives up, and what is left over is taken here. */
static void check_queued(px_fn body)
{
    static const struct timespec now;
    sigset_t all = queued_signals(7), before;

    assert_int_equal(pthread_sigmask(SIG_BLOCK, &all, &before), 0);
    check_blocked(body);
    assert_int_equal(sigtimedwait(&all, NULL, &now), -1);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

static int wait_for_10ms(sigset_t set)
{
    struct listening l = {.set = set};

    EXPECT_EQ(listens_for_10ms(&l), 0);
    return l.result;
}

/* One poll finds both waiters ready, and more signals than waiters: each takes
 * one, though it looks again when its turn has come. */
static int more_than_waiters(void *arg)
{
    static const unsigned sets[][2] = {{7, 7}, {3, 7}, {7, 6}};

    (void)arg;
    for (int i = 0; i < 3; i++) {
        struct listening first = {.set = queued_signals(sets[i][0])};
        struct listening second = {.set = queued_signals(sets[i][1])};

        start(listen_for_it, &first);
        start(listen_for_it, &second);
        settle();
        for (int k = 0; k < QUEUED; k++)
            EXPECT_EQ(raise(SIGRTMIN + k), 0);
        settle();
        EXPECT(first.done && second.done);
        EXPECT_EQ(first.result, SIGRTMIN);
        EXPECT_EQ(second.result, SIGRTMIN + 1);
        EXPECT_EQ(wait_for_10ms(queued_signals(7)), SIGRTMIN + 2);
    }
    return 0;
}

static void of_several_pending_each_waiter_takes_one_in_order(void **state)
{
    (void)state;
    check_queued(more_than_waiters);
}

/* A newcomer hands out what is pending; whoever was given one and has not run
 * yet keeps it, and is given no second one by the next newcomer. */
static int given_and_not_run_yet(void *arg)
{
    sigset_t all = queued_signals(7);
    struct listening l[QUEUED];

    (void)arg;
    for (int i = 0; i < QUEUED; i++) {
        l[i] = (struct listening){.set = all};
        start(listens_for_10ms, &l[i]);
        if (i == 0)
            settle();
        EXPECT_EQ(raise(SIGRTMIN + i), 0);
    }
    EXPECT(!l[0].done && !l[1].done);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    for (int i = 0; i < QUEUED; i++)
        EXPECT_EQ(l[i].result, SIGRTMIN + i);
    return 0;
}

static void one_that_was_given_stays_given(void **state)
{
    (void)state;
    check_queued(given_and_not_run_yet);
}

/* ---- refusals ---- */

static int refusals(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_wait_signal(NULL), PX_EINVAL);
    return 0;
}

static void a_NULL_set_is_EINVAL_on_a_fiber_and_off(void **state)
{
    (void)state;
    check_blocked(refusals);
    assert_int_equal(px_wait_signal(NULL), PX_EINVAL);
}

static void off_a_fiber_it_never_waits(void **state)
{
    sigset_t set = one_signal(SIGUSR1), before;

    (void)state;
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, &before), 0);
    assert_int_equal(px_wait_signal(&set), PX_ENOFIBER);
    assert_int_equal(send_to_process(SIGUSR1), 0);
    assert_int_equal(px_wait_signal(&set), SIGUSR1);
    assert_false(is_pending(SIGUSR1));
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

/* With no descriptor left it either needs none or says -EMFILE; it takes
 * nothing then, and works once there are some. */
static int without_descriptors(void *arg)
{
    struct listening l = {.set = one_signal(SIGUSR1)};
    struct rlimit old;
    px_fiber *fiber;
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    EXPECT_EQ(px_wait_fd(ends[1], PX_WRITABLE), PX_WRITABLE);
    close_both(ends);
    old = no_more_descriptors();
    fiber = start_handle(listen_for_it, &l);
    settle();
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
    EXPECT_EQ(send_to_process(SIGUSR1), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    if (l.result != SIGUSR1) {
        EXPECT_EQ(l.result, -EMFILE);
        EXPECT(is_pending(SIGUSR1));
        EXPECT_EQ(px_wait_signal(&l.set), SIGUSR1);
    }
    return 0;
}

static void without_descriptors_it_is_EMFILE_and_nothing_is_lost(void **state)
{
    (void)state;
    check_blocked(without_descriptors);
}

/* ---- what it leaves alone ---- */

static int keeps_the_disposition(void *arg)
{
    struct listening l = {.set = one_signal(SIGUSR1)};
    struct sigaction action;

    (void)arg;
    errno = 1234;
    start(listen_for_it, &l);
    settle();
    EXPECT_EQ(sigaction(SIGUSR1, NULL, &action), 0);
    EXPECT(action.sa_handler == SIG_DFL);
    EXPECT_EQ(send_to_process(SIGUSR1), 0);
    settle();
    EXPECT_EQ(l.result, SIGUSR1);
    EXPECT_EQ(errno, 1234);
    EXPECT_EQ(sigaction(SIGUSR1, NULL, &action), 0);
    EXPECT(action.sa_handler == SIG_DFL);
    return 0;
}

static void handlers_and_errno_are_left_as_they_were(void **state)
{
    (void)state;
    check_blocked(keeps_the_disposition);
}

static int ends_with_a_listener(void *arg)
{
    struct listening l = {.set = one_signal(SIGUSR1)};
    px_fiber *fiber = start_handle(listen_for_it, &l);

    (void)arg;
    settle();
    EXPECT_EQ(px_stop(), 0);
    EXPECT_EQ(px_cancel_and_await(fiber, NULL), 0);
    EXPECT_EQ(l.result, PX_ECANCELED);
    return 0;
}

static void stopping_the_run_ends_the_wait(void **state)
{
    (void)state;
    check_blocked(ends_with_a_listener);
    check_blocked(waits_for_a_signal); /* and the next run can wait again */
}

/* An orderly end: the signal's fiber cancels the work. */
static int works_for_ever(void *arg)
{
    int *rounds = arg, code;

    while ((code = px_sleep(10 * PX_MSEC)) == 0)
        ++*rounds;
    return code;
}

static int ends_on_signal(void *arg)
{
    px_fiber **work = arg;
    sigset_t set = one_signal(SIGUSR1);

    EXPECT_EQ(px_wait_signal(&set), SIGUSR1);
    return px_cancel(*work);
}

static int orderly_end(void *arg)
{
    px_fiber *work;
    int rounds = 0, value = 0;

    (void)arg;
    work = start_handle(works_for_ever, &rounds);
    start(ends_on_signal, &work);
    EXPECT_EQ(px_sleep(55 * PX_MSEC), 0);
    EXPECT_EQ(send_to_process(SIGUSR1), 0);
    EXPECT_EQ(px_await(work, &value), 0);
    EXPECT_EQ(value, PX_ECANCELED);
    EXPECT_EQ(rounds, 5);
    return 0;
}

static void a_fiber_may_act_on_a_signal_like_on_anything(void **state)
{
    (void)state;
    check_blocked(orderly_end);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(several_that_wait_are_served_in_the_order_of_arrival),
    PX_TEST(a_signal_goes_to_the_first_that_waits_for_it),
    PX_TEST(a_newcomer_does_not_overtake),
    PX_TEST(a_fiber_waits_until_the_signal_comes),
    PX_TEST(one_sent_to_the_thread_counts_as_well),
    PX_TEST(one_that_is_pending_comes_at_once),
    PX_TEST(of_several_each_wait_takes_one),
    PX_TEST(each_waiter_gets_only_signals_of_its_set),
    PX_TEST(of_two_waiters_one_gets_the_signal_and_one_waits_on),
    PX_TEST(sets_may_overlap),
    PX_TEST(a_thousand_signals_are_a_thousand_wakes),
    PX_TEST(R123_a_signal_wait_is_no_deadlock),
    PX_TEST(an_interrupted_wait_leaves_later_signals_pending),
    PX_TEST(one_that_gives_up_takes_no_signal_from_the_others),
    PX_TEST(R5_one_that_was_cancelled_is_given_no_signal),
    PX_TEST(R5_one_whose_time_was_up_is_given_no_signal),
    PX_TEST(in_a_fired_scope_a_pending_signal_is_not_taken),
    PX_TEST(a_signal_is_delivered_or_still_pending),
    PX_TEST(of_several_pending_each_waiter_takes_one_in_order),
    PX_TEST(one_that_was_given_stays_given),
    PX_TEST(a_NULL_set_is_EINVAL_on_a_fiber_and_off),
    PX_TEST(off_a_fiber_it_never_waits),
    PX_TEST(without_descriptors_it_is_EMFILE_and_nothing_is_lost),
    PX_TEST(handlers_and_errno_are_left_as_they_were),
    PX_TEST(stopping_the_run_ends_the_wait),
    PX_TEST(a_fiber_may_act_on_a_signal_like_on_anything),
};

PX_TEST_MAIN(tests)
