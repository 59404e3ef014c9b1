/* SPDX-License-Identifier: MIT */
/*
 * test_offload.c - px_offload(): blocking calls on the pool's threads.
 *
 * Jobs are held back by gates that the test opens, so nothing depends on how
 * long anything takes. While a call runs the virtual clock does not jump, so
 * the bodies here yield instead of settling.
 */
#define _GNU_SOURCE 1

#include "px_test_io.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

/* A job that says it has started, and waits until it is let go. */
struct gate {
    sem_t open;
    atomic_int started, ended;
    int value;
};

static void gate_init(struct gate *gate, int value)
{
    EXPECT_EQ(sem_init(&gate->open, 0, 0), 0);
    atomic_init(&gate->started, 0);
    atomic_init(&gate->ended, 0);
    gate->value = value;
}

static int passes_the_gate(void *arg)
{
    struct gate *gate = arg;

    atomic_fetch_add(&gate->started, 1);
    while (sem_wait(&gate->open) != 0)
        ;
    atomic_fetch_add(&gate->ended, 1);
    return gate->value;
}

static void open_gate(struct gate *gate, int times)
{
    for (int i = 0; i < times; i++)
        EXPECT_EQ(sem_post(&gate->open), 0);
}

static void wait_until_started(struct gate *gate, int n)
{
    while (atomic_load(&gate->started) < n) {
        pause_ms(1);
        EXPECT_EQ(px_yield(), 0);
    }
}

/* Let every other fiber run that can. */
static void yield_a_few_times(void)
{
    for (int i = 0; i < 20; i++)
        EXPECT_EQ(px_yield(), 0);
}

/* A fiber in px_offload(). */
struct offloaded {
    px_fn fn;
    void *arg;
    int result, next_point;
    bool done;
};

static int offload_it(void *arg)
{
    struct offloaded *o = arg;

    o->result = px_offload(o->fn, o->arg);
    o->next_point = px_check();
    o->done = true;
    return 0;
}

static px_run_options threads(unsigned n)
{
    return (px_run_options){.offload_threads = n};
}

static void check_with(px_run_options options, px_fn body)
{
    assert_int_equal(run_fibers_with(options, 0, body, NULL), 0);
    assert_log("");
}

/* ---- the call and its value ---- */

static int gives_it_back(void *arg)
{
    return *(int *)arg;
}

static int values(void *arg)
{
    static int numbers[] = {0,         1,         77,           -1,       -77,
                            INT32_MAX, INT32_MIN, PX_ECANCELED, PX_EINVAL};

    (void)arg;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        EXPECT_EQ(px_offload(gives_it_back, &numbers[i]), numbers[i]);
    return 0;
}

static void the_value_comes_back_as_it_is(void **state)
{
    (void)state;
    check(values);
}

struct whereabouts {
    pthread_t thread;
    px_fid id;
    px_fiber *self;
    px_loop *loop;
    px_nsec deadline;
    int check, yield, sleep, spawn, offload, first_down, second_down;
};

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int looks_around(void *arg)
{
    struct whereabouts *w = arg;
    px_sem permits = PX_SEM_INIT(1);

    w->thread = pthread_self();
    w->id = px_current_id();
    w->self = px_self();
    w->loop = px_current_loop();
    w->deadline = px_deadline();
    w->check = px_check();
    w->yield = px_yield();
    w->sleep = px_sleep(1);
    w->spawn = px_spawn(NULL, nothing, NULL);
    w->offload = px_offload(nothing, NULL);
    w->first_down = px_sem_down(&permits);
    w->second_down = px_sem_down(&permits);
    return 0;
}

static int off_fiber_there(void *arg)
{
    struct whereabouts w;

    (void)arg;
    memset(&w, 0, sizeof(w));
    EXPECT_EQ(px_offload(looks_around, &w), 0);
    EXPECT(!pthread_equal(w.thread, pthread_self()));
    EXPECT_EQ(w.id, PX_NO_FIBER);
    EXPECT(w.self == NULL);
    EXPECT(w.loop == NULL);
    EXPECT_EQ(w.deadline, PX_FOREVER);
    EXPECT_EQ(w.check, 0);
    EXPECT_EQ(w.yield, PX_ENOFIBER);
    EXPECT_EQ(w.sleep, PX_ENOFIBER);
    EXPECT_EQ(w.spawn, PX_ENOFIBER);
    EXPECT_EQ(w.offload, PX_ENOFIBER);
    EXPECT_EQ(w.first_down, 0);
    EXPECT_EQ(w.second_down, PX_ENOFIBER);
    return 0;
}

static void R127_it_runs_on_another_thread_which_is_off_fiber(void **state)
{
    (void)state;
    check(off_fiber_there);
}

static int adds_up_in_a_run(void *arg)
{
    int one = 1, *sum = arg;

    for (int i = 0; i < 3; i++)
        *sum += px_offload(gives_it_back, &one);
    return 42;
}

static int runs_fibers_there(void *arg)
{
    return px_run(adds_up_in_a_run, arg);
}

static int nested_run(void *arg)
{
    int sum = 0;

    (void)arg;
    EXPECT_EQ(px_offload(runs_fibers_there, &sum), 42);
    EXPECT_EQ(sum, 3);
    return 0;
}

static void a_pool_thread_may_have_a_run_of_its_own(void **state)
{
    (void)state;
    check(nested_run);
}

static int others_go_on(void *arg)
{
    struct gate gate;
    struct offloaded o = {.fn = passes_the_gate, .arg = &gate};
    px_fiber *fiber;

    (void)arg;
    gate_init(&gate, 5);
    fiber = start_handle(offload_it, &o);
    wait_until_started(&gate, 1);
    yield_a_few_times();
    EXPECT(!o.done);
    open_gate(&gate, 1);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(o.result, 5);
    EXPECT_EQ(sem_destroy(&gate.open), 0);
    return 0;
}

static void other_fibers_run_meanwhile(void **state)
{
    (void)state;
    check(others_go_on);
}

static int spoils_errno(void *arg)
{
    errno = *(int *)arg;
    return 0;
}

static int errno_stays(void *arg)
{
    int theirs = 55;

    (void)arg;
    errno = 1234;
    EXPECT_EQ(px_offload(spoils_errno, &theirs), 0);
    EXPECT_EQ(errno, 1234);
    EXPECT_EQ(px_offload(NULL, NULL), PX_EINVAL);
    EXPECT_EQ(errno, 1234);
    return 0;
}

static void errno_is_left_as_it_was(void **state)
{
    (void)state;
    check(errno_stays);
}

/* ---- refusals ---- */

static int counts_calls(void *arg)
{
    return ++*(int *)arg;
}

static int in_a_fired_scope(void *arg)
{
    EXPECT_EQ(px_offload(NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_offload(counts_calls, arg), PX_ETIMEDOUT);
    return 0;
}

static int refusals(void *arg)
{
    int calls = 0;

    (void)arg;
    EXPECT_EQ(px_offload(NULL, &calls), PX_EINVAL);
    EXPECT_EQ(px_with_timeout(0, in_a_fired_scope, &calls), 0);
    EXPECT_EQ(calls, 0);
    EXPECT_EQ(px_offload(counts_calls, &calls), 1);
    return 0;
}

static void what_is_refused_does_not_run(void **state)
{
    int calls = 0;

    (void)state;
    check(refusals);
    assert_int_equal(px_offload(NULL, &calls), PX_EINVAL);
    assert_int_equal(px_offload(counts_calls, &calls), PX_ENOFIBER);
    assert_int_equal(calls, 0);
}

/* ---- the pool ---- */

static int reads_its_mask(void *arg)
{
    return pthread_sigmask(SIG_BLOCK, NULL, arg);
}

static int masks(void *arg)
{
    sigset_t mine, theirs, after;

    (void)arg;
    EXPECT_EQ(pthread_sigmask(SIG_BLOCK, NULL, &mine), 0);
    EXPECT_EQ(px_offload(reads_its_mask, &theirs), 0);
    EXPECT_EQ(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
    for (int number = 1; number <= SIGRTMAX; number++) {
        bool reserved = number == SIGKILL || number == SIGSTOP ||
                        (number > 31 && number < SIGRTMIN) ||
                        (is_emulated() && number > SIGRTMAX - 2);

        if (!reserved && sigismember(&theirs, number) != 1)
            note("signal %d is not blocked; ", number);
        if (sigismember(&mine, number) != sigismember(&after, number))
            note("signal %d has changed here; ", number);
    }
    return 0;
}

static void pool_threads_have_every_signal_blocked(void **state)
{
    (void)state;
    check(masks);
}

static int starts_n_at_once(int n)
{
    enum { MOST = 16 };
    struct gate gate;
    struct offloaded o[MOST];
    px_fiber *fibers[MOST];

    gate_init(&gate, 7);
    for (int i = 0; i < n; i++) {
        o[i] = (struct offloaded){.fn = passes_the_gate, .arg = &gate};
        fibers[i] = start_handle(offload_it, &o[i]);
    }
    wait_until_started(&gate, n); /* none has ended: each has a thread */
    open_gate(&gate, n);
    EXPECT_EQ(px_await_all(fibers, (size_t)n, NULL), 0);
    for (int i = 0; i < n; i++)
        EXPECT_EQ(o[i].result, 7);
    EXPECT_EQ(sem_destroy(&gate.open), 0);
    return 0;
}

static int eight_at_once(void *arg)
{
    (void)arg;
    return starts_n_at_once(8);
}

static int three_at_once(void *arg)
{
    (void)arg;
    return starts_n_at_once(3);
}

static int sixteen_at_once(void *arg)
{
    (void)arg;
    return starts_n_at_once(16);
}

static int one_call(void *arg)
{
    int five = 5;

    (void)arg;
    return px_offload(gives_it_back, &five) == 5 ? 0 : 1;
}

static void more_threads_than_a_machine_has_may_be_asked_for(void **state)
{
    (void)state;
    check_with(threads(4096), one_call);
    check_with(threads(4097), one_call);
    check_with(threads(UINT_MAX), one_call);
}

static void it_grows_on_demand_to_at_least_8_or_as_said(void **state)
{
    (void)state;
    check_with(threads(0), eight_at_once);
    check_with(threads(3), three_at_once);
    check_with(threads(16), sixteen_at_once);
}

static int beyond_the_cap(void *arg)
{
    enum { CAP = 2, JOBS = 6 };
    struct gate gate;
    struct offloaded o[JOBS];
    px_fiber *fibers[JOBS];

    (void)arg;
    gate_init(&gate, 7);
    for (int i = 0; i < JOBS; i++) {
        o[i] = (struct offloaded){.fn = passes_the_gate, .arg = &gate};
        fibers[i] = start_handle(offload_it, &o[i]);
    }
    for (int ended = 0; ended < JOBS; ended++) {
        int running = JOBS - ended < CAP ? JOBS - ended : CAP;

        wait_until_started(&gate, ended + running);
        pause_ms(2); /* time for one too many to show itself */
        EXPECT_EQ(atomic_load(&gate.started), ended + running);
        open_gate(&gate, 1);
        while (atomic_load(&gate.ended) <= ended)
            EXPECT_EQ(px_yield(), 0);
    }
    EXPECT_EQ(px_await_all(fibers, JOBS, NULL), 0);
    for (int i = 0; i < JOBS; i++)
        EXPECT_EQ(o[i].result, 7);
    EXPECT_EQ(sem_destroy(&gate.open), 0);
    return 0;
}

static void never_more_run_at_once_than_the_cap(void **state)
{
    (void)state;
    check_with(threads(2), beyond_the_cap);
}

static int says_which_thread(void *arg)
{
    *(pthread_t *)arg = pthread_self();
    return 0;
}

static int one_after_the_other(void *arg)
{
    pthread_t seen[8], thread;
    int n = 0, known;

    (void)arg;
    for (int i = 0; i < 200; i++) {
        EXPECT_EQ(px_offload(says_which_thread, &thread), 0);
        for (known = 0; known < n; known++) {
            if (pthread_equal(seen[known], thread))
                break;
        }
        if (known == n && n < 8)
            seen[n++] = thread;
    }
    EXPECT(n <= 2); /* one may still be on its way back to the pool */
    return 0;
}

static void calls_one_after_the_other_share_a_thread(void **state)
{
    (void)state;
    check(one_after_the_other);
}

static int threads_of_the_process(void)
{
    DIR *dir = opendir("/proc/self/task");
    int count = 0;

    if (!dir)
        return -1;
    while (readdir(dir))
        count++;
    (void)closedir(dir);
    return count;
}

static int ends_while_one_runs(void *arg)
{
    struct gate *gate = arg;
    static struct offloaded o[4];

    for (int i = 0; i < 4; i++) {
        o[i] = (struct offloaded){.fn = passes_the_gate, .arg = gate};
        start(offload_it, &o[i]);
    }
    wait_until_started(gate, 4);
    open_gate(gate, 4);
    return 0; /* the run waits for the fibers, and they for their calls */
}

static void the_threads_are_joined_when_the_run_ends(void **state)
{
    struct gate gate;
    int before;

    (void)state;
    gate_init(&gate, 0);
    before = threads_of_the_process();
    run_fibers(ends_while_one_runs, &gate);
    assert_int_equal(atomic_load(&gate.ended), 4);

    /* A joined thread may still be leaving /proc. */
    for (int i = 0; i < 1000 && threads_of_the_process() != before; i++)
        pause_ms(1);
    assert_int_equal(threads_of_the_process(), before);
    assert_int_equal(sem_destroy(&gate.open), 0);
    assert_log("");
}

static void each_run_has_a_pool_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        check_with(threads(2), values);
}

static int adds_its_square(void *arg)
{
    long *number = arg;

    *number *= *number;
    return 0;
}

static int squares_it(void *arg)
{
    return px_offload(adds_its_square, arg);
}

static int many_calls(void *arg)
{
    enum { MOST = 1000 };
    static long numbers[MOST];
    static px_fiber *fibers[MOST];
    static int codes[MOST];
    int n = scaled(MOST, 100);

    (void)arg;
    for (int i = 0; i < n; i++) {
        numbers[i] = i;
        fibers[i] = start_handle(squares_it, &numbers[i]);
    }
    EXPECT_EQ(px_await_all(fibers, (size_t)n, codes), 0);
    for (int i = 0; i < n; i++) {
        EXPECT_EQ(codes[i], 0);
        EXPECT_EQ(numbers[i], (long)i * i);
    }
    return 0;
}

static void a_thousand_calls_each_come_back_to_their_fiber(void **state)
{
    (void)state;
    check(many_calls);
}

static int a_hundred_calls(void *arg)
{
    int *sum = arg, one = 1;

    for (int i = 0; i < 100; i++)
        *sum += px_offload(gives_it_back, &one);
    return 0;
}

static void *runs_a_loop(void *arg)
{
    return px_run(a_hundred_calls, arg) == 0 ? arg : NULL;
}

static void runs_on_several_threads_do_not_mix_their_calls(void **state)
{
    pthread_t thread[3];
    int sums[3] = {0};

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            pthread_create(&thread[i], NULL, runs_a_loop, &sums[i]), 0);
    for (int i = 0; i < 3; i++) {
        void *result;

        assert_int_equal(pthread_join(thread[i], &result), 0);
        assert_ptr_equal(result, &sums[i]);
        assert_int_equal(sums[i], 100);
    }
}

/* ---- interrupted ---- */

static int taken_back(void *arg)
{
    struct gate gate;
    int calls = 0;
    struct offloaded busy = {.fn = passes_the_gate, .arg = &gate};
    struct offloaded queued = {.fn = counts_calls, .arg = &calls};
    struct offloaded behind = queued;
    px_fiber *fibers[3];

    (void)arg;
    gate_init(&gate, 7);
    fibers[0] = start_handle(offload_it, &busy);
    wait_until_started(&gate, 1);
    fibers[1] = start_handle(offload_it, &queued);
    fibers[2] = start_handle(offload_it, &behind);
    yield_a_few_times();
    EXPECT_EQ(px_cancel_and_await(fibers[1], NULL), 0);
    EXPECT_EQ(queued.result, PX_ECANCELED);
    EXPECT(!busy.done && !behind.done);
    EXPECT_EQ(atomic_load(&gate.ended), 0);
    open_gate(&gate, 1);
    EXPECT_EQ(px_await(fibers[0], NULL), 0);
    EXPECT_EQ(px_await(fibers[2], NULL), 0);
    EXPECT_EQ(busy.result, 7);
    EXPECT_EQ(behind.result, 1);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(sem_destroy(&gate.open), 0);

    /* No call runs any more, so the clock jumps again. */
    EXPECT_EQ(px_sleep(60 * PX_MINUTE), 0);
    return 0;
}

static void R126_a_queued_call_is_taken_back_and_never_runs(void **state)
{
    (void)state;
    check_with(threads(1), taken_back);
}

/* From the middle, from the end and from the front of the queue. */
static int taken_from_anywhere(void *arg)
{
    enum { QUEUED = 5 };
    static const int order[] = {2, 4, 0};
    struct gate gate;
    int calls = 0;
    struct offloaded busy = {.fn = passes_the_gate, .arg = &gate};
    struct offloaded queued[QUEUED];
    px_fiber *first, *fibers[QUEUED];

    (void)arg;
    gate_init(&gate, 7);
    first = start_handle(offload_it, &busy);
    wait_until_started(&gate, 1);
    for (int i = 0; i < QUEUED; i++) {
        queued[i] = (struct offloaded){.fn = counts_calls, .arg = &calls};
        fibers[i] = start_handle(offload_it, &queued[i]);
    }
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(px_cancel_and_await(fibers[order[i]], NULL), 0);
        EXPECT_EQ(queued[order[i]].result, PX_ECANCELED);
    }
    open_gate(&gate, 1);
    EXPECT_EQ(px_await(first, NULL), 0);
    EXPECT_EQ(px_await(fibers[1], NULL), 0);
    EXPECT_EQ(px_await(fibers[3], NULL), 0);
    EXPECT_EQ(queued[1].result, 1);
    EXPECT_EQ(queued[3].result, 2);
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(sem_destroy(&gate.open), 0);
    return 0;
}

static void calls_are_taken_back_from_anywhere_in_the_queue(void **state)
{
    (void)state;
    check_with(threads(1), taken_from_anywhere);
}

static int offload_it_shielded(void *arg)
{
    return px_with_shield(PX_FOREVER, offload_it, arg);
}

static int not_taken_back(void *arg)
{
    struct gate gate;
    int calls = 0;
    struct offloaded busy = {.fn = passes_the_gate, .arg = &gate};
    struct offloaded queued = {.fn = counts_calls, .arg = &calls};
    px_fiber *fibers[2];

    (void)arg;
    gate_init(&gate, 7);
    fibers[0] = start_handle(offload_it, &busy);
    wait_until_started(&gate, 1);
    fibers[1] = start_handle(offload_it_shielded, &queued);
    EXPECT_EQ(px_cancel(fibers[1]), 0);
    yield_a_few_times();
    EXPECT(!queued.done);
    open_gate(&gate, 1);
    EXPECT_EQ(px_await_all(fibers, 2, NULL), 0);
    EXPECT_EQ(queued.result, 1);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(sem_destroy(&gate.open), 0);
    return 0;
}

static void a_shield_keeps_a_queued_call_in_the_queue(void **state)
{
    (void)state;
    check_with(threads(1), not_taken_back);
}

static int waited_for(void *arg)
{
    struct gate gate;
    struct offloaded o = {.fn = passes_the_gate, .arg = &gate};
    px_fiber *fiber;

    (void)arg;
    gate_init(&gate, 7);
    fiber = start_handle(offload_it, &o);
    wait_until_started(&gate, 1);
    EXPECT_EQ(px_cancel(fiber), 0);
    yield_a_few_times();
    EXPECT(!o.done);
    open_gate(&gate, 1);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(o.result, 7);
    EXPECT_EQ(o.next_point, PX_ECANCELED);
    EXPECT_EQ(sem_destroy(&gate.open), 0);
    return 0;
}

static void a_started_call_is_waited_for_and_its_value_stands(void **state)
{
    (void)state;
    check(waited_for);
}

/* The one thread is not free before the call on it has ended, whatever became
 * of its caller. */
static int keeps_its_thread(void *arg)
{
    struct gate gate;
    int calls = 0;
    struct offloaded a = {.fn = passes_the_gate, .arg = &gate};
    struct offloaded b = {.fn = counts_calls, .arg = &calls};
    px_fiber *fibers[2];

    (void)arg;
    gate_init(&gate, 7);
    fibers[0] = start_handle(offload_it, &a);
    wait_until_started(&gate, 1);
    EXPECT_EQ(px_cancel(fibers[0]), 0);
    fibers[1] = start_handle(offload_it, &b);
    yield_a_few_times();
    pause_ms(5); /* time for one too many to show itself */
    yield_a_few_times();
    EXPECT(!a.done && !b.done);
    open_gate(&gate, 1);
    EXPECT_EQ(px_await_all(fibers, 2, NULL), 0);
    EXPECT_EQ(a.result, 7);
    EXPECT_EQ(a.next_point, PX_ECANCELED);
    EXPECT_EQ(b.result, 1);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(sem_destroy(&gate.open), 0);
    return 0;
}

static void R125_a_cancelled_call_keeps_its_thread_until_it_ends(void **state)
{
    (void)state;
    check_with(threads(1), keeps_its_thread);
}

static int stopped(void *arg)
{
    struct gate *gate = arg;
    static struct offloaded o;

    o = (struct offloaded){.fn = passes_the_gate, .arg = gate};
    start(offload_it, &o);
    wait_until_started(gate, 1);
    EXPECT_EQ(px_stop(), 0);
    open_gate(gate, 1);
    EXPECT_EQ(px_check(), PX_ECANCELED);
    EXPECT(!o.done);
    return 0; /* the run goes on until it has come back */
}

static void stopping_the_run_waits_for_what_has_started(void **state)
{
    struct gate gate;

    (void)state;
    gate_init(&gate, 7);
    run_fibers(stopped, &gate);
    assert_int_equal(atomic_load(&gate.ended), 1);
    assert_int_equal(sem_destroy(&gate.open), 0);
    assert_log("");
}

/* Cancelled at any moment between queued, started and ended. */
static int cancel_at_any_moment(void *arg)
{
    int rounds = scaled(2000, 200);

    (void)arg;
    for (int i = 0; i < rounds; i++) {
        int calls = 0;
        struct offloaded o = {.fn = counts_calls, .arg = &calls};
        px_fiber *fiber = start_handle(offload_it, &o);

        for (volatile int spin = (i * 37) % 3000; spin > 0; spin--)
            ;
        if (i % 3 == 0)
            EXPECT_EQ(px_yield(), 0);
        EXPECT_EQ(px_cancel_and_await(fiber, NULL), 0);
        if (o.result == 1) {
            EXPECT_EQ(calls, 1);
        } else {
            EXPECT_EQ(o.result, PX_ECANCELED);
            EXPECT_EQ(calls, 0);
        }
    }
    return 0;
}

static void a_call_runs_and_tells_its_value_or_does_neither(void **state)
{
    (void)state;
    check_with(threads(1), cancel_at_any_moment);
    check_with(threads(2), cancel_at_any_moment);
}

/* ---- the clock, and deadlocks ---- */

static int sleeps_an_hour(void *arg)
{
    bool *awake = arg;
    int code = px_sleep(60 * PX_MINUTE);

    *awake = true;
    return code;
}

static int naps(void *arg)
{
    pause_ms(20);
    return *(int *)arg;
}

static int clock_stands(void *arg)
{
    bool awake = false;
    int five = 5;
    px_fiber *sleeper = start_handle(sleeps_an_hour, &awake);

    (void)arg;
    EXPECT_EQ(px_offload(naps, &five), 5);
    EXPECT_EQ(px_now(), 0);
    EXPECT(!awake);
    EXPECT_EQ(px_await(sleeper, NULL), 0);
    EXPECT_EQ(px_now(), 60 * PX_MINUTE);
    return 0;
}

static void the_virtual_clock_does_not_jump_while_a_call_runs(void **state)
{
    (void)state;
    check(clock_stands);
}

static int ups_after_a_call(void *arg)
{
    int five = 5;

    EXPECT_EQ(px_offload(naps, &five), 5);
    return px_sem_up(arg);
}

static int waits_for_a_call(void *arg)
{
    px_sem done = PX_SEM_INIT(0);

    (void)arg;
    start(ups_after_a_call, &done);
    return px_sem_down(&done);
}

static void counts(void *ctx)
{
    ++*(int *)ctx;
}

static void a_running_call_is_no_deadlock(void **state)
{
    int reports = 0;
    px_run_options options = {.on_deadlock = counts, .ctx = &reports};

    (void)state;
    assert_int_equal(run_fibers_with(options, 0, waits_for_a_call, NULL), 0);
    assert_int_equal(reports, 0);
    assert_log("");
}

static int waits_after_a_call(void *arg)
{
    px_sem never = PX_SEM_INIT(0);
    int five = 5;

    (void)arg;
    EXPECT_EQ(px_offload(gives_it_back, &five), 5);
    EXPECT_EQ(px_sem_down(&never), PX_ESTALLED);
    return 0;
}

static void an_idle_pool_does_not_hide_a_deadlock(void **state)
{
    int reports = 0;
    px_run_options options = {.on_deadlock = counts, .ctx = &reports};

    (void)state;
    assert_int_equal(run_fibers_with(options, 0, waits_after_a_call, NULL),
                     PX_ESTALLED);
    assert_int_equal(reports, 1);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(the_value_comes_back_as_it_is),
    PX_TEST(R127_it_runs_on_another_thread_which_is_off_fiber),
    PX_TEST(a_pool_thread_may_have_a_run_of_its_own),
    PX_TEST(other_fibers_run_meanwhile),
    PX_TEST(errno_is_left_as_it_was),
    PX_TEST(what_is_refused_does_not_run),
    PX_TEST(pool_threads_have_every_signal_blocked),
    PX_TEST(it_grows_on_demand_to_at_least_8_or_as_said),
    PX_TEST(more_threads_than_a_machine_has_may_be_asked_for),
    PX_TEST(never_more_run_at_once_than_the_cap),
    PX_TEST(calls_one_after_the_other_share_a_thread),
    PX_TEST(the_threads_are_joined_when_the_run_ends),
    PX_TEST(each_run_has_a_pool_of_its_own),
    PX_TEST(a_thousand_calls_each_come_back_to_their_fiber),
    PX_TEST(runs_on_several_threads_do_not_mix_their_calls),
    PX_TEST(R126_a_queued_call_is_taken_back_and_never_runs),
    PX_TEST(calls_are_taken_back_from_anywhere_in_the_queue),
    PX_TEST(a_shield_keeps_a_queued_call_in_the_queue),
    PX_TEST(a_started_call_is_waited_for_and_its_value_stands),
    PX_TEST(R125_a_cancelled_call_keeps_its_thread_until_it_ends),
    PX_TEST(stopping_the_run_waits_for_what_has_started),
    PX_TEST(a_call_runs_and_tells_its_value_or_does_neither),
    PX_TEST(the_virtual_clock_does_not_jump_while_a_call_runs),
    PX_TEST(a_running_call_is_no_deadlock),
    PX_TEST(an_idle_pool_does_not_hide_a_deadlock),
};

PX_TEST_MAIN(tests)
