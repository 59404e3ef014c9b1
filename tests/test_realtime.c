/* SPDX-License-Identifier: MIT */
/*
 * test_realtime.c - timers by the real clock: never early, not starved, not
 * fooled by signals or a clock that is set, and idle when there is nothing to
 * do (field cases R74, R75, R76, R78, R80).
 *
 * Lower bounds are exact. Upper bounds are generous: they tell a hang, or a
 * wait that began anew, from a busy machine.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "fiber_test.h"
#include "px_scale.h"

#define GENEROUS (10 * PX_SEC)

static px_nsec monotonic(void)
{
    struct timespec now;

    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec * PX_SEC + now.tv_nsec;
}

static void run_real(px_fn fn, void *arg)
{
    px_run_options options = {0};

    assert_int_equal(run_fibers_with(options, 1, fn, arg), 0);
}

/* What is measured by the system's own clock, around what is to be measured. */
static void expect_lasted(px_nsec begin, px_nsec at_least)
{
    px_nsec lasted = monotonic() - begin;

    if (lasted < at_least || lasted > at_least + GENEROUS)
        (void)fprintf(stderr, "%lld ns, not %lld\n", (long long)lasted,
                      (long long)at_least);
    EXPECT(lasted >= at_least);
    EXPECT(lasted <= at_least + GENEROUS);
}

static const px_nsec lengths[] = {1,
                                  PX_USEC,
                                  50 * PX_USEC,
                                  300 * PX_USEC,
                                  999 * PX_USEC,
                                  1001 * PX_USEC,
                                  1500 * PX_USEC,
                                  4 * PX_MSEC,
                                  10 * PX_MSEC,
                                  33333333};
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

/* ---- Never early ---- */

static int sleeps_every_length(void *arg UNUSED)
{
    px_nsec begin;

    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < LENGTHS; i++) {
            begin = monotonic();
            EXPECT_EQ(px_sleep(lengths[i]), 0);
            expect_lasted(begin, lengths[i]);
            begin = monotonic();
            EXPECT_EQ(px_sleep_until(px_now() + lengths[i]), 0);
            expect_lasted(begin, lengths[i]);
        }
    }
    return 0;
}

static void a_sleep_is_never_short(void **state)
{
    (void)state;
    run_real(sleeps_every_length, NULL);
}

static int times_out_every_length(void *arg UNUSED)
{
    px_sem sem = PX_SEM_INIT(0);
    px_nsec begin;

    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < LENGTHS; i++) {
            begin = monotonic();
            EXPECT_EQ(px_with_timeout(lengths[i], takes_a_permit, &sem),
                      PX_ETIMEDOUT);
            expect_lasted(begin, lengths[i]);
        }
    }
    return 0;
}

static void a_timeout_is_never_early(void **state)
{
    (void)state;
    run_real(times_out_every_length, NULL);
}

/* One of many, so that near deadlines meet in the heap. */
static int sleeps_in_the_crowd(size_t i, void *arg UNUSED)
{
    px_nsec length = (px_nsec)(1 + i * 7919 % 1000) * 20 * PX_USEC;
    px_nsec begin = monotonic();

    if (i % 2)
        EXPECT_EQ(px_sleep(length), 0);
    else
        EXPECT_EQ(px_with_timeout(length, sleeps_for_ever, NULL), PX_ETIMEDOUT);
    expect_lasted(begin, length);
    return 0;
}

static int is_a_crowd(void *arg UNUSED)
{
    return px_map_concurrent((size_t)fibers(2000), 0, sleeps_in_the_crowd,
                             NULL);
}

static void in_a_crowd_nobody_wakes_early(void **state)
{
    px_run_options options = {.timer_slack = 2 * PX_MSEC};

    (void)state;
    run_real(is_a_crowd, NULL);
    assert_int_equal(run_fibers_with(options, 1, is_a_crowd, NULL), 0);
}

static int moves_its_deadline(void *arg UNUSED)
{
    struct sleeper s = {.timeout = PX_MINUTE, .length = PX_MINUTE};
    px_nsec begin = monotonic(), deadline = px_now() + 30 * PX_MSEC;

    start(sleeps_in_a_scope, &s);
    EXPECT_EQ(px_sleep(5 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_set_deadline(&s.scope, deadline), 0);
    while (!s.woke && monotonic() - begin < GENEROUS)
        EXPECT_EQ(px_sleep(PX_MSEC), 0);
    EXPECT_EQ(s.left, PX_ETIMEDOUT);
    EXPECT(s.woke >= deadline);
    expect_lasted(begin, 30 * PX_MSEC);
    return 0;
}

static void a_deadline_brought_forward_is_kept(void **state)
{
    (void)state;
    run_real(moves_its_deadline, NULL);
}

/* ---- R76: signals ---- */

static volatile sig_atomic_t ticks;

static void count_tick(int number UNUSED)
{
    ticks++;
}

/* Nobody writes to the pipe at arg. */
static int waits_for_nothing(void *arg)
{
    return px_wait_fd(*(int *)arg, PX_READABLE);
}

static int is_disturbed(void *arg)
{
    px_nsec begin = monotonic();

    EXPECT_EQ(px_sleep(200 * PX_MSEC), 0);
    expect_lasted(begin, 200 * PX_MSEC);
    EXPECT(ticks > 0);
    ticks = 0;
    begin = monotonic();
    EXPECT_EQ(px_with_timeout(200 * PX_MSEC, waits_for_nothing, arg),
              PX_ETIMEDOUT);
    expect_lasted(begin, 200 * PX_MSEC);
    EXPECT(ticks > 0);
    return 0;
}

static void R76_signals_neither_end_a_wait_nor_begin_it_anew(void **state)
{
    struct sigaction action, old;
    struct itimerval tick = {{0, 20000}, {0, 20000}}, none = {{0, 0}, {0, 0}};
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    memset(&action, 0, sizeof(action));
    action.sa_handler = count_tick; /* and no SA_RESTART */
    assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &tick, NULL), 0);
    run_real(is_disturbed, &ends[0]);
    assert_int_equal(setitimer(ITIMER_REAL, &none, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* ---- R78: busy fibers ---- */

struct busy {
    px_sem a, b;
    bool done;
    int ends[2];
    px_nsec written, read;
};

static int pings(void *arg)
{
    struct busy *self = arg;

    while (!self->done) {
        EXPECT_EQ(px_sem_up(&self->a), 0);
        EXPECT_EQ(px_sem_down(&self->b), 0);
    }
    return px_sem_up(&self->a);
}

static int pongs(void *arg)
{
    struct busy *self = arg;

    while (!self->done) {
        EXPECT_EQ(px_sem_down(&self->a), 0);
        EXPECT_EQ(px_sem_up(&self->b), 0);
    }
    return px_sem_up(&self->b);
}

static int yields_on(void *arg)
{
    struct busy *self = arg;

    while (!self->done)
        EXPECT_EQ(px_yield(), 0);
    return 0;
}

static int does_nothing(void *arg UNUSED)
{
    return 0;
}

/* Of its turns nearly all are eager starts. */
static int spawns_on(void *arg)
{
    struct busy *self = arg;

    while (!self->done) {
        for (int i = 0; i < 100; i++)
            start(does_nothing, NULL);
        EXPECT_EQ(px_yield(), 0);
    }
    return 0;
}

static int reads_a_byte(void *arg)
{
    struct busy *self = arg;
    char byte;

    EXPECT_EQ(px_wait_fd(self->ends[0], PX_READABLE), PX_READABLE);
    EXPECT_EQ(read(self->ends[0], &byte, 1), 1);
    self->read = monotonic();
    return 0;
}

static int is_not_starved(void *arg)
{
    struct busy *self = arg;
    px_nsec begin = monotonic();

    start(reads_a_byte, self);
    EXPECT_EQ(px_sleep(50 * PX_MSEC), 0);
    expect_lasted(begin, 50 * PX_MSEC);
    self->written = monotonic();
    EXPECT_EQ(write(self->ends[1], "x", 1), 1);
    EXPECT_EQ(px_with_timeout(50 * PX_MSEC, sleeps_for_ever, NULL),
              PX_ETIMEDOUT);
    expect_lasted(begin, 100 * PX_MSEC);
    while (!self->read && monotonic() - self->written < GENEROUS)
        EXPECT_EQ(px_sleep(PX_MSEC), 0); /* both came due in a hold-up */
    self->done = true;
    EXPECT(self->read != 0);
    EXPECT(self->read - self->written < GENEROUS);
    return 0;
}

/* The quiet one is main; arg says what keeps the loop busy. */
struct noise {
    px_fn fns[2];
    struct busy busy;
};

static int lives_in_noise(void *arg)
{
    struct noise *n = arg;
    px_spawn_options options = {.queued = true};

    for (int i = 0; i < 2; i++) {
        if (n->fns[i])
            EXPECT_EQ(px_spawn_with(NULL, &options, n->fns[i], &n->busy), 0);
    }
    return is_not_starved(&n->busy);
}

static void try_noise(px_fn a, px_fn b)
{
    struct noise n = {.fns = {a, b}};

    assert_int_equal(pipe(n.busy.ends), 0);
    run_real(lives_in_noise, &n);
    (void)close(n.busy.ends[0]);
    (void)close(n.busy.ends[1]);
}

static void R78_busy_fibers_starve_neither_timers_nor_descriptors(void **state)
{
    (void)state;
    try_noise(pings, pongs);
    try_noise(yields_on, yields_on);
    try_noise(yields_on, NULL);
    try_noise(spawns_on, NULL);
}

/* Ignores what it is told, within a timeout that has fired. */
static int fails_on(void *arg)
{
    struct busy *self = arg;

    PX_WITHIN(limit, 0) {
        while (!self->done)
            EXPECT_EQ(px_sem_down(&self->a), PX_ETIMEDOUT);
    }
    return 0;
}

static void a_loop_that_ignores_the_code_starves_neither(void **state)
{
    (void)state;
    try_noise(fails_on, NULL);
    try_noise(fails_on, fails_on);
}

/* ---- R74, R80: idle ---- */

static px_nsec cpu_time(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * PX_SEC +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * PX_USEC;
}

static long voluntary_switches(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static int sleeps_five_times(void *arg UNUSED)
{
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(px_sleep(100 * PX_MSEC), 0);
    return 0;
}

static int is_idle(void *arg)
{
    start(sleeps_five_times, NULL);
    start(waits_for_nothing, arg);
    EXPECT_EQ(sleeps_five_times(NULL), 0);
    return px_stop();
}

static void R80_an_idle_run_uses_no_cpu(void **state)
{
    int ends[2];
    px_nsec used;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    used = cpu_time();
    run_real(is_idle, &ends[0]);
    used = cpu_time() - used;
    assert_true(used < 100 * PX_MSEC);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static int sleeps_briefly(void *arg UNUSED)
{
    static const px_nsec brief[] = {300 * PX_USEC, 999 * PX_USEC,
                                    1500 * PX_USEC};

    for (int i = 0; i < 3; i++) {
        long before = voluntary_switches();

        for (int j = 0; j < 20; j++)
            EXPECT_EQ(px_sleep(brief[i]), 0);
        EXPECT(voluntary_switches() - before <= 2 * 20 + 5);
        EXPECT(cpu_time() < PX_MINUTE);
    }
    return 0;
}

static void R74_a_brief_sleep_is_one_wait_and_no_spin(void **state)
{
    px_nsec used = cpu_time();

    (void)state;
    run_real(sleeps_briefly, NULL);
    used = cpu_time() - used;
    assert_true(used < 40 * PX_MSEC); /* of 56 ms asleep */
}

/* ---- R75: the wall clock ---- */

static int wall_clock_readings;

/* In front of the system's, for the library too: an hour back at each look. */
int clock_gettime(clockid_t id, struct timespec *now)
{
    long err = syscall(SYS_clock_gettime, id, now);

    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
        now->tv_sec -= 3600 * ++wall_clock_readings;
    return (int)err;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec time = {0, 0};

    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &time);
    *now = (struct timeval){time.tv_sec, time.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now = {0, 0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

static int sleeps_and_times_out(void *arg UNUSED)
{
    px_nsec begin = monotonic();

    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    expect_lasted(begin, 20 * PX_MSEC);
    begin = monotonic();
    EXPECT_EQ(px_with_timeout(20 * PX_MSEC, sleeps_for_ever, NULL),
              PX_ETIMEDOUT);
    expect_lasted(begin, 20 * PX_MSEC);
    return 0;
}

static void R75_setting_the_wall_clock_disturbs_no_timer(void **state)
{
    (void)state;
    wall_clock_readings = 0;
    run_real(sleeps_and_times_out, NULL);
    assert_int_equal(wall_clock_readings, 0);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_sleep_is_never_short),
    PX_TEST(a_timeout_is_never_early),
    PX_TEST(in_a_crowd_nobody_wakes_early),
    PX_TEST(a_deadline_brought_forward_is_kept),
    PX_TEST(R76_signals_neither_end_a_wait_nor_begin_it_anew),
    PX_TEST(R78_busy_fibers_starve_neither_timers_nor_descriptors),
    PX_TEST(a_loop_that_ignores_the_code_starves_neither),
    PX_TEST(R80_an_idle_run_uses_no_cpu),
    PX_TEST(R74_a_brief_sleep_is_one_wait_and_no_spin),
    PX_TEST(R75_setting_the_wall_clock_disturbs_no_timer),
};

PX_TEST_MAIN(tests)
