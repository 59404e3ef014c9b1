/* SPDX-License-Identifier: MIT */
/*
 * test_io_realtime.c - what only the real clock shows: no wake is early, no
 * loop spins, and signals that rain on the thread change nothing.
 *
 * Lower bounds are exact, upper bounds generous: a busy machine may be late,
 * but a loop that spins burns more of the processor than any bound here.
 */
#define _GNU_SOURCE 1

#include "px_test_io.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>

enum { LATE = 8000 }; /* ms: later than that is a failure */

static px_nsec read_clock(clockid_t id)
{
    struct timespec t = {0};

    (void)clock_gettime(id, &t);
    return t.tv_sec * PX_SEC + t.tv_nsec;
}

static px_nsec wall(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static px_nsec processor(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

/* Sleep for 100 ms, and expect that most of it was slept. */
static void sleep_without_spinning(void)
{
    px_nsec used = processor();

    EXPECT_EQ(px_sleep(100 * PX_MSEC), 0);
    EXPECT(processor() - used < 50 * PX_MSEC);
}

/* ---- no loop spins ---- */

static int hung_up_and_unwatched(void *arg)
{
    int pipe_ends[2], pair[2], level[2];
    char byte;

    (void)arg;
    open_pipe(pipe_ends, O_NONBLOCK);
    open_pair(pair, SOCK_NONBLOCK);
    open_pair(level, SOCK_NONBLOCK);
    struct transfer t[2] = {{.fd = pipe_ends[0]}, {.fd = pair[0]}};
    struct waiting w = {.fd = level[0], .events = PX_READABLE};

    for (int i = 0; i < 2; i++)
        start(read_it, &t[i]);
    start(wait_for_it, &w);
    EXPECT_EQ(px_yield(), 0);
    EXPECT_EQ(px_close(pipe_ends[1]), 0);
    EXPECT_EQ(px_close(pair[1]), 0);
    EXPECT_EQ(px_close(level[1]), 0);
    while (!t[0].done || !t[1].done || !w.done)
        EXPECT_EQ(px_yield(), 0);
    EXPECT_EQ(t[0].result, 0);
    EXPECT_EQ(t[1].result, 0);
    EXPECT_EQ(w.result, PX_READABLE);

    /* All three are still open and hung up, and nobody waits on them. */
    sleep_without_spinning();
    EXPECT_EQ(px_read(pipe_ends[0], &byte, 1), 0);
    EXPECT_EQ(px_close(pipe_ends[0]), 0);
    EXPECT_EQ(px_close(pair[0]), 0);
    EXPECT_EQ(px_close(level[0]), 0);
    return 0;
}

static void R110_a_hang_up_that_nobody_waits_for_costs_nothing(void **state)
{
    (void)state;
    check_real(hung_up_and_unwatched);
}

static int ready_the_other_way(void *arg)
{
    int pair[2];
    px_fiber *fibers[2];

    (void)arg;
    open_pair(pair, SOCK_NONBLOCK);
    struct waiting r = {.fd = pair[0], .events = PX_READABLE};
    struct transfer t = {.fd = pair[0]};
    fibers[0] = start_handle(wait_for_it, &r);
    fibers[1] = start_handle(read_it, &t);
    sleep_without_spinning(); /* writable all the time */
    put(pair[1], 'x');
    EXPECT_EQ(px_await_all(fibers, 2, NULL), 0);
    EXPECT_EQ(r.result, PX_READABLE);
    EXPECT_EQ(t.result, 1);
    px_close_both(pair);
    return 0;
}

static void readiness_that_nobody_waits_for_costs_nothing(void **state)
{
    (void)state;
    check_real(ready_the_other_way);
}

/* Urgent data is no data to read. */
static int only_urgent_data(void *arg)
{
    struct sockaddr_in address;
    int listener = listen_tcp(&address, 5, 0), ends[2];
    px_fiber *fiber;
    char byte;

    (void)arg;
    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(px_connect(ends[0], (struct sockaddr *)&address, sizeof(address)),
              0);
    ends[1] = px_accept(listener, NULL, NULL);
    EXPECT(ends[1] >= 0);
    struct waiting w = {.fd = ends[1], .events = PX_READABLE};
    fiber = start_handle(wait_for_it, &w);
    EXPECT_EQ(send(ends[0], "!", 1, MSG_OOB), 1);
    sleep_without_spinning();
    EXPECT(!w.done);
    EXPECT_EQ(px_write(ends[0], "x", 1), 1);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(w.result, PX_READABLE);
    EXPECT_EQ(px_read(ends[1], &byte, 1), 1);
    EXPECT_EQ(byte, 'x');
    px_close_both(ends);
    EXPECT_EQ(px_close(listener), 0);
    return 0;
}

static void R110_urgent_data_alone_does_not_keep_the_loop_busy(void **state)
{
    (void)state;
    check_real(only_urgent_data);
}

/* The poller's own limit may be lowered while it waits: see poller_poll.c. */
enum { WATCHED = 40 };

static int takes_a_while(void *arg)
{
    (void)arg;
    pause_ms(5);
    return 42;
}

static int watched_beyond_the_limit(void *arg)
{
    struct rlimit limit, low;
    struct waiting w[WATCHED];
    px_fiber *fibers[WATCHED];
    int pairs[WATCHED][2];

    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int i = 0; i < WATCHED; i++) {
        open_pair(pairs[i], 0);
        w[i] = (struct waiting){.fd = pairs[i][0], .events = PX_READABLE};
        fibers[i] = start_handle(wait_for_it, &w[i]);
    }
    low = limit;
    low.rlim_cur = *(const rlim_t *)arg;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    sleep_without_spinning();
    EXPECT_EQ(px_offload(takes_a_while, NULL), 42); /* it is still woken */
    for (int i = 0; i < WATCHED; i++)
        put(pairs[i][1], 'x');
    EXPECT_EQ(px_await_all(fibers, WATCHED, NULL), 0);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int i = 0; i < WATCHED; i++) {
        EXPECT_EQ(w[i].result, PX_READABLE);
        px_close_both(pairs[i]);
    }
    return 0;
}

static void a_lowered_limit_of_open_files_loses_nobody(void **state)
{
    px_run_options options;
    rlim_t limits[] = {8, 1};

    (void)state;
    memset(&options, 0, sizeof(options));
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            run_fibers_with(options, 1, watched_beyond_the_limit, &limits[i]),
            0);
    assert_log("");
}

static int file_outlives_its_number(void *arg)
{
    int ends[2], keeper;
    px_fiber *fiber;

    (void)arg;
    open_pipe(ends, 0);
    keeper = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    fiber = start_handle(wait_for_it, &w);
    EXPECT_EQ(px_yield(), 0);
    EXPECT_EQ(close(ends[0]), 0);
    put(ends[1], 'x');
    sleep_without_spinning();
    EXPECT_EQ(px_cancel_and_await(fiber, NULL), 0);
    sleep_without_spinning();
    EXPECT_EQ(close(keeper), 0);
    EXPECT_EQ(close(ends[1]), 0);
    return 0;
}

static void
a_file_that_outlived_its_number_does_not_keep_the_loop_busy(void **state)
{
    (void)state;
    check_real(file_outlives_its_number);
}

static int full_local_backlog(void *arg)
{
    struct sockaddr_un address;
    socklen_t size;
    int listener = listen_unix(&address, &size, 0, 0);
    px_fiber *fiber;

    (void)arg;
    struct connecting first = {.fd = unix_socket(),
                               .address = (struct sockaddr *)&address,
                               .size = size};
    struct connecting second = first;
    second.fd = unix_socket();
    EXPECT_EQ(connect_it(&first), 0);
    EXPECT_EQ(first.result, 0);
    fiber = start_handle(connect_it, &second);
    sleep_without_spinning();
    EXPECT(!second.done);
    EXPECT_EQ(px_cancel_and_await(fiber, NULL), 0);
    EXPECT_EQ(second.result, PX_ECANCELED);
    EXPECT_EQ(px_close(first.fd), 0);
    EXPECT_EQ(px_close(second.fd), 0);
    EXPECT_EQ(px_close(listener), 0);
    return 0;
}

static void a_connect_that_waits_for_a_local_backlog_does_not_spin(void **state)
{
    (void)state;
    check_real(full_local_backlog);
}

enum { PARKED = 100 };

static int all_parked(void *arg)
{
    static int ends[PARKED][2];
    static struct waiting w[PARKED];
    static px_fiber *fibers[PARKED];
    struct rusage before, after;

    (void)arg;
    for (int i = 0; i < PARKED; i++) {
        open_pipe(ends[i], 0);
        w[i] = (struct waiting){.fd = ends[i][0], .events = PX_READABLE};
        fibers[i] = start_handle(wait_for_it, &w[i]);
    }
    EXPECT_EQ(px_yield(), 0);
    EXPECT_EQ(getrusage(RUSAGE_THREAD, &before), 0);
    EXPECT_EQ(px_sleep(200 * PX_MSEC), 0);
    EXPECT_EQ(getrusage(RUSAGE_THREAD, &after), 0);
    EXPECT(after.ru_nvcsw - before.ru_nvcsw <= 20);
    for (int i = 0; i < PARKED; i++) {
        EXPECT_EQ(px_cancel_and_await(fibers[i], NULL), 0);
        close_both(ends[i]);
    }
    return 0;
}

static void a_parked_loop_does_not_wake(void **state)
{
    (void)state;
    check_real(all_parked);
}

static int short_sleeps(void *arg)
{
    static const px_nsec naps[] = {200 * PX_USEC, 300 * PX_USEC, 999 * PX_USEC,
                                   1500 * PX_USEC};
    px_nsec began = wall(), used = processor();

    (void)arg;
    for (int i = 0; i < 200; i++) {
        px_nsec nap = naps[i % 4], start_of_nap = wall();

        EXPECT_EQ(px_sleep(nap), 0);
        EXPECT(wall() - start_of_nap >= nap);
    }
    EXPECT(processor() - used < (wall() - began) * 2 / 3);
    return 0;
}

static void R74_short_sleeps_are_never_early_and_do_not_spin(void **state)
{
    (void)state;
    check_real(short_sleeps);
}

static int sleeps_for_ages(void *arg)
{
    return px_sleep(*(px_nsec *)arg);
}

static void *puts_after_30ms(void *arg)
{
    pause_ms(30);
    put(*(int *)arg, 'x');
    return NULL;
}

static int beside_a_huge_sleep(void *arg)
{
    static px_nsec ages[] = {2147484 * PX_SEC, 2147483648 * PX_MSEC,
                             4294967296 * PX_MSEC, INT64_MAX - 1, PX_FOREVER};
    int ends[2], value = 0;
    px_nsec began = wall(), used = processor();

    (void)arg;
    open_pipe(ends, 0);
    for (int i = 0; i < 5; i++) {
        px_fiber *sleeper = start_handle(sleeps_for_ages, &ages[i]);
        pthread_t thread;

        /* No timer but the huge one while this waits. */
        EXPECT_EQ(pthread_create(&thread, NULL, puts_after_30ms, &ends[1]), 0);
        EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_READABLE);
        EXPECT_EQ(pthread_join(thread, NULL), 0);
        EXPECT_EQ(take(ends[0]), 'x');
        EXPECT_EQ(px_sleep(PX_MSEC), 0);
        EXPECT(!px_is_done(sleeper));
        EXPECT_EQ(px_cancel_and_await(sleeper, &value), 0);
        EXPECT_EQ(value, PX_ECANCELED);
    }
    EXPECT(processor() - used < (wall() - began) / 2);
    EXPECT(wall() - began < LATE * PX_MSEC);
    close_both(ends);
    return 0;
}

static void R72_a_sleep_too_long_for_the_poller_disturbs_nobody(void **state)
{
    (void)state;
    check_real(beside_a_huge_sleep);
}

static int timed_wait(void *arg)
{
    int ends[2];

    (void)arg;
    open_pipe(ends, O_NONBLOCK);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    struct transfer t = {.fd = ends[0]};
    for (int i = 0; i < 10; i++) {
        px_nsec timeout = (1 + i) * PX_MSEC, began = wall();

        EXPECT_EQ(px_with_timeout(timeout, wait_for_it, &w), 0);
        EXPECT_EQ(w.result, PX_ETIMEDOUT);
        EXPECT(wall() - began >= timeout);
        began = wall();
        EXPECT_EQ(px_with_timeout(timeout, read_it, &t), 0);
        EXPECT_EQ(t.result, PX_ETIMEDOUT);
        EXPECT(wall() - began >= timeout);
        EXPECT(wall() - began < LATE * PX_MSEC);
    }
    px_close_both(ends);
    return 0;
}

static void a_timed_wait_is_never_cut_short_early(void **state)
{
    (void)state;
    check_real(timed_wait);
}

/* ---- signals that rain on the thread ---- */

static volatile sig_atomic_t drops;

static void drop(int number)
{
    (void)number;
    drops++;
}

/* Run the body while SIGALRM comes every millisecond, its handler without
 * SA_RESTART, so that every system call that waits is interrupted. A tool for
 * which one signal takes almost as long must get something else done, too. */
static void check_in_the_rain(px_run_options options, px_fn body)
{
    struct sigaction handler = {.sa_handler = drop}, before;
    int interval = scaled(1000, 5000); /* us */
    struct itimerval rain = {{0, interval}, {0, interval}};
    struct itimerval dry = {{0, 0}, {0, 0}};
    int result, tries = 20; /* a process that is held up hears of one of many */

    drops = 0;
    assert_int_equal(sigaction(SIGALRM, &handler, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &rain, NULL), 0);
    do {
        result = run_fibers_with(options, 1, body, NULL);
    } while (result == 0 && drops <= 5 && --tries > 0);
    assert_int_equal(setitimer(ITIMER_REAL, &dry, NULL), 0);
    (void)signal(SIGALRM, SIG_IGN); /* a last drop may be on its way */
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    assert_int_equal(result, 0);
    assert_true(drops > 5);
    assert_log("");
}

static int sleeps_in_the_rain(void *arg)
{
    px_nsec began = wall();

    (void)arg;
    EXPECT_EQ(px_sleep(100 * PX_MSEC), 0);
    EXPECT(wall() - began >= 100 * PX_MSEC);
    EXPECT(wall() - began < LATE * PX_MSEC);
    return 0;
}

static void R76_a_sleep_is_as_long_as_ever(void **state)
{
    (void)state;
    check_in_the_rain((px_run_options){0}, sleeps_in_the_rain);
}

static int waits_in_the_rain(void *arg)
{
    int ends[2];
    px_nsec began;

    (void)arg;
    open_pipe(ends, O_NONBLOCK);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    struct transfer t = {.fd = ends[0]};
    began = wall();
    EXPECT_EQ(px_with_timeout(50 * PX_MSEC, wait_for_it, &w), 0);
    EXPECT_EQ(w.result, PX_ETIMEDOUT);
    EXPECT_EQ(px_with_timeout(50 * PX_MSEC, read_it, &t), 0);
    EXPECT_EQ(t.result, PX_ETIMEDOUT);
    EXPECT(wall() - began >= 100 * PX_MSEC);
    EXPECT(wall() - began < LATE * PX_MSEC);
    px_close_both(ends);
    return 0;
}

static void R76_a_timed_wait_is_as_long_as_ever(void **state)
{
    (void)state;
    check_in_the_rain((px_run_options){0}, waits_in_the_rain);
}

/* Half a megabyte through a blocking pipe and back through a pair. */
enum { LENGTH = 1 << 19 };

static const char *block(void)
{
    static char bytes[LENGTH];

    return bytes;
}

static int sends(void *arg)
{
    return px_write_all(*(int *)arg, block(), LENGTH, NULL);
}

static int receives(void *arg)
{
    char bytes[512];
    int left = LENGTH;
    ssize_t got = 0;

    while (left > 0 && (got = px_read(*(int *)arg, bytes, sizeof(bytes))) > 0) {
        left -= (int)got;
        if (left % 16 == 0 && px_sleep(100 * PX_USEC) != 0)
            return -1;
    }
    return left == 0 ? 0 : (int)got;
}

static int transfers_in_the_rain(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2; i++) {
        px_fiber *fibers[2];
        int ends[2], values[2];

        if (i == 0)
            open_pipe(ends, 0);
        else
            open_pair(ends, 0);
        fibers[0] = start_handle(sends, &ends[1]);
        fibers[1] = start_handle(receives, &ends[0]);
        EXPECT_EQ(px_await_all(fibers, 2, values), 0);
        EXPECT_EQ(values[0], 0);
        EXPECT_EQ(values[1], 0);
        px_close_both(ends);
    }
    return 0;
}

static void transfers_do_not_end_with_EINTR(void **state)
{
    (void)state;
    check_in_the_rain((px_run_options){0}, transfers_in_the_rain);
}

static void *sends_a_signal(void *arg)
{
    pause_ms(50);
    (void)kill(getpid(), SIGUSR1);
    return arg;
}

static int listens_in_the_rain(void *arg)
{
    pthread_t thread;
    sigset_t set, all, before;

    (void)arg;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);

    /* The rain is for the loop's thread. */
    (void)sigfillset(&all);
    EXPECT_EQ(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
    EXPECT_EQ(pthread_create(&thread, NULL, sends_a_signal, NULL), 0);
    EXPECT_EQ(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    EXPECT_EQ(px_wait_signal(&set), SIGUSR1);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    return 0;
}

static void a_signal_wait_is_not_cut_short_by_another_signal(void **state)
{
    sigset_t set, before;

    (void)state;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, &before), 0);
    check_in_the_rain((px_run_options){0}, listens_in_the_rain);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

static atomic_int worked;
static pthread_key_t pool_thread;
static atomic_int begun_threads, ended_threads;

static int works_20ms(void *arg)
{
    (void)arg;
    pause_ms(20);
    atomic_fetch_add(&worked, 1);
    return 3;
}

/* The last that a thread does, and who joins it waits for that. */
static void ends_slowly(void *arg)
{
    (void)arg;
    pause_ms(50);
    atomic_fetch_add(&ended_threads, 1);
}

static int works_and_ends_slowly(void *arg)
{
    if (!pthread_getspecific(pool_thread))
        atomic_fetch_add(&begun_threads, 1);
    return pthread_setspecific(pool_thread, &worked) ? -1 : works_20ms(arg);
}

static int offloads_slowly(void *arg)
{
    return px_offload(works_and_ends_slowly, arg) == 3 ? 0 : -1;
}

static int ends_in_the_rain(void *arg)
{
    (void)arg;
    atomic_store(&worked, 0);
    atomic_store(&begun_threads, 0);
    atomic_store(&ended_threads, 0);
    for (int i = 0; i < 4; i++)
        start(offloads_slowly, NULL);
    return 0; /* the run waits for the four, then joins the pool */
}

static void R121_the_pool_is_joined_whatever_signals_come(void **state)
{
    (void)state;
    assert_int_equal(pthread_key_create(&pool_thread, ends_slowly), 0);
    check_in_the_rain((px_run_options){.offload_threads = 2}, ends_in_the_rain);
    assert_int_equal(atomic_load(&worked), 4);
    assert_true(atomic_load(&begun_threads) > 0);
    assert_int_equal(atomic_load(&ended_threads), atomic_load(&begun_threads));
    assert_int_equal(pthread_key_delete(pool_thread), 0);
}

/* ---- offloaded calls and deadlines ---- */

struct gate {
    sem_t open;
    atomic_int started;
};

static int passes_the_gate(void *arg)
{
    struct gate *gate = arg;

    atomic_fetch_add(&gate->started, 1);
    while (sem_wait(&gate->open) != 0)
        ;
    return 7;
}

static int counts_calls(void *arg)
{
    return ++*(int *)arg;
}

struct job {
    px_fn fn;
    void *arg;
    int result;
    px_nsec took;
};

static int offload_it(void *arg)
{
    struct job *job = arg;
    px_nsec began = wall();

    job->result = px_offload(job->fn, job->arg);
    job->took = wall() - began;
    return 0;
}

static void wait_until_started(struct gate *gate, int n)
{
    while (atomic_load(&gate->started) < n)
        EXPECT_EQ(px_sleep(PX_MSEC), 0);
}

/* Once the call has started: let its deadline pass, and only then it. */
struct watcher {
    struct gate *gate;
    px_scope *scope;
};

static int lets_the_deadline_pass_first(void *arg)
{
    struct watcher *watcher = arg;

    wait_until_started(watcher->gate, 2);
    EXPECT_EQ(px_scope_set_deadline(watcher->scope, px_now() + 5 * PX_MSEC), 0);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    return sem_post(&watcher->gate->open);
}

static int queued_and_started(void *arg)
{
    struct gate gate;
    int calls = 0;
    struct job started = {.fn = passes_the_gate, .arg = &gate};
    struct job queued = {.fn = counts_calls, .arg = &calls};
    struct job late = started;
    px_fiber *fiber;
    px_scope scope;
    struct watcher watcher = {&gate, &scope};
    px_nsec began;

    (void)arg;
    atomic_init(&gate.started, 0);
    EXPECT_EQ(sem_init(&gate.open, 0, 0), 0);
    fiber = start_handle(offload_it, &started);
    wait_until_started(&gate, 1);

    /* Still queued: taken back in time, and never run. */
    began = wall();
    EXPECT_EQ(px_with_timeout(20 * PX_MSEC, offload_it, &queued), 0);
    EXPECT_EQ(queued.result, PX_ETIMEDOUT);
    EXPECT(wall() - began >= 20 * PX_MSEC);
    EXPECT_EQ(sem_post(&gate.open), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(started.result, 7);
    EXPECT_EQ(calls, 0);

    /* Started: waited for past its deadline, and its value stands. */
    fiber = start_handle(lets_the_deadline_pass_first, &watcher);
    EXPECT_EQ(px_scope_enter(&scope, PX_FOREVER), 0);
    EXPECT_EQ(offload_it(&late), 0);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(late.result, 7);
    EXPECT(late.took >= 20 * PX_MSEC);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(sem_destroy(&gate.open), 0);
    return 0;
}

static void
R125_a_deadline_takes_back_a_queued_call_and_waits_for_a_started(void **state)
{
    px_run_options one_thread = {.offload_threads = 1};

    (void)state;
    assert_int_equal(run_fibers_with(one_thread, 1, queued_and_started, NULL),
                     0);
    assert_log("");
}

enum { TICKS = 8 };
static atomic_int ticked;

static int ticks(void *arg)
{
    (void)arg;
    while (atomic_load(&ticked) < TICKS) {
        EXPECT_EQ(px_sleep(5 * PX_MSEC), 0);
        atomic_fetch_add(&ticked, 1);
    }
    return 0;
}

/* A loop that waits for one of these ticks too late. */
static int works_until_it_has_ticked(void *arg)
{
    for (int i = 0; i < 500 && atomic_load(&ticked) < TICKS; i++)
        pause_ms(1);
    if (atomic_load(&ticked) < TICKS)
        return -1;
    return works_20ms(arg);
}

static int offloads_beside_ticks(void *arg)
{
    return px_offload(works_until_it_has_ticked, arg) == 3 ? 0 : -1;
}

static int ticks_beside_a_full_pool(void *arg)
{
    enum { JOBS = 32 };
    px_fiber *fibers[JOBS];
    px_nsec began = wall();

    (void)arg;
    for (int i = 0; i < JOBS; i++)
        fibers[i] = start_handle(offloads_beside_ticks, NULL);
    start(ticks, NULL);
    EXPECT_EQ(px_await_all(fibers, JOBS, NULL), 0);
    EXPECT(wall() - began >= JOBS / 4 * 20 * PX_MSEC);
    EXPECT_EQ(atomic_load(&ticked), TICKS);
    return 0;
}

static void R127_a_full_pool_does_not_stop_the_loop(void **state)
{
    px_run_options four_threads = {.offload_threads = 4};

    (void)state;
    atomic_store(&worked, 0);
    atomic_store(&ticked, 0);
    assert_int_equal(
        run_fibers_with(four_threads, 1, ticks_beside_a_full_pool, NULL), 0);
    assert_int_equal(atomic_load(&worked), 32);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(R110_a_hang_up_that_nobody_waits_for_costs_nothing),
    PX_TEST(readiness_that_nobody_waits_for_costs_nothing),
    PX_TEST(R110_urgent_data_alone_does_not_keep_the_loop_busy),
    PX_TEST(a_lowered_limit_of_open_files_loses_nobody),
    PX_TEST(a_file_that_outlived_its_number_does_not_keep_the_loop_busy),
    PX_TEST(a_connect_that_waits_for_a_local_backlog_does_not_spin),
    PX_TEST(a_parked_loop_does_not_wake),
    PX_TEST(R74_short_sleeps_are_never_early_and_do_not_spin),
    PX_TEST(R72_a_sleep_too_long_for_the_poller_disturbs_nobody),
    PX_TEST(a_timed_wait_is_never_cut_short_early),
    PX_TEST(R76_a_sleep_is_as_long_as_ever),
    PX_TEST(R76_a_timed_wait_is_as_long_as_ever),
    PX_TEST(transfers_do_not_end_with_EINTR),
    PX_TEST(a_signal_wait_is_not_cut_short_by_another_signal),
    PX_TEST(R121_the_pool_is_joined_whatever_signals_come),
    PX_TEST(R125_a_deadline_takes_back_a_queued_call_and_waits_for_a_started),
    PX_TEST(R127_a_full_pool_does_not_stop_the_loop),
};

PX_TEST_MAIN(tests)
