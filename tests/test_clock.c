/* SPDX-License-Identifier: MIT */
/*
 * test_clock.c - the two clocks: the virtual one, which jumps when nothing can
 * run, and the real one, by which nothing wakes early.
 *
 * This file alone waits in real time, for some hundredths of a second.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "support/px_scale.h"
#include "support/px_test.h"

#define HOUR (60 * PX_MINUTE)

static px_nsec real_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (px_nsec)now.tv_sec * PX_SEC + now.tv_nsec;
}

static int run_really(px_fn fn, void *arg)
{
    px_run_options options;

    memset(&options, 0, sizeof(options));
    return run_fibers_with(options, 1, fn, arg);
}

/* --- The virtual clock ---------------------------------------------------- */

static int sleep_a_year(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_now(), 0);
    EXPECT_EQ(px_sleep(365 * 24 * HOUR), 0);
    EXPECT_EQ(px_now(), 365 * 24 * HOUR);
    return 0;
}

static void a_year_passes_at_once_and_each_run_starts_at_0(void **state)
{
    px_nsec begun = real_now();

    (void)state;
    run_fibers(sleep_a_year, NULL);
    run_fibers(sleep_a_year, NULL);
    assert_true(real_now() - begun < 5 * PX_SEC);
    assert_log("");
}

static int nap(void *arg)
{
    EXPECT_EQ(px_sleep(*(px_nsec *)arg), 0);
    note("%lld ", (long long)px_now());
    return 0;
}

static int stay_busy(void *arg)
{
    static px_nsec five = 5;

    (void)arg;
    start(nap, &five);
    for (int i = 0; i < 1000; i++)
        EXPECT_EQ(px_yield(), 0);
    really_sleep(2 * PX_MSEC);
    EXPECT_EQ(px_yield(), 0);
    EXPECT_EQ(px_now(), 0);
    note("busy ");
    return 0;
}

static void it_stands_still_while_a_fiber_can_run(void **state)
{
    (void)state;
    run_fibers(stay_busy, NULL);
    assert_log("busy 5 ");
}

static int jump_from_timer_to_timer(void *arg)
{
    static px_nsec naps[] = {HOUR, 1, PX_SEC, 30 * HOUR, PX_SEC - 1};

    (void)arg;
    for (int i = 0; i < 5; i++)
        start(nap, &naps[i]);
    return 0;
}

static void it_jumps_from_each_timer_to_the_next(void **state)
{
    (void)state;
    run_fibers(jump_from_timer_to_timer, NULL);
    assert_log("1 999999999 1000000000 3600000000000 108000000000000 ");
}

static int sleep_within(void *arg)
{
    (void)arg;
    PX_WITHIN(outer, HOUR) {
        PX_WITHIN(inner, 5 * PX_SEC) {
            EXPECT_EQ(px_sleep(PX_MINUTE), PX_ETIMEDOUT);
            EXPECT_EQ(px_now(), 5 * PX_SEC);
        }
        EXPECT_EQ(px_sleep(2 * HOUR), PX_ETIMEDOUT);
        EXPECT_EQ(px_now(), HOUR);
    }
    return 0;
}

static void deadlines_are_exact_by_it(void **state)
{
    (void)state;
    run_fibers(sleep_within, NULL);
    assert_log("");
}

static int read_ready(void *arg)
{
    int *ends = arg;

    EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_READABLE);
    note("ready at %lld ", (long long)px_now());
    return 0;
}

static int poll_before_a_jump(void *arg)
{
    static px_nsec hour = HOUR;
    int *ends = arg;

    start(read_ready, ends);
    start(nap, &hour);
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    return 0;
}

static void descriptors_are_looked_at_before_a_jump(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    run_fibers(poll_before_a_jump, ends);
    assert_log("ready at 0 3600000000000 ");
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static int wait_in_vain(void *arg)
{
    int *ends = arg;

    PX_WITHIN(limit, HOUR)
        EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), HOUR);
    return 0;
}

static void waiting_on_a_descriptor_does_not_stop_a_jump(void **state)
{
    px_nsec begun = real_now();
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    run_fibers(wait_in_vain, ends);
    assert_true(real_now() - begun < 5 * PX_SEC);
    assert_log("");
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void *write_later(void *arg)
{
    const int *ends = arg;

    really_sleep(20 * PX_MSEC);
    return write(ends[1], "x", 1) == 1 ? arg : NULL;
}

static int wait_for_thread(void *arg)
{
    pthread_t thread;
    void *value = NULL;

    EXPECT_EQ(pthread_create(&thread, NULL, write_later, arg), 0);
    EXPECT_EQ(read_ready(arg), 0);
    EXPECT_EQ(pthread_join(thread, &value), 0);
    EXPECT(value == arg);
    return 0;
}

static void R123_without_a_timer_it_waits_in_real_time(void **state)
{
    px_nsec begun = real_now();
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    run_fibers(wait_for_thread, ends);
    assert_true(real_now() - begun >= 20 * PX_MSEC);
    assert_log("ready at 0 ");
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static int work_for_20_ms(void *arg)
{
    (void)arg;
    really_sleep(20 * PX_MSEC);
    return 4;
}

static int offload_work(void *arg)
{
    int value = px_offload(work_for_20_ms, NULL);

    (void)arg;
    note("%d at %lld ", value, (long long)px_now());
    return 0;
}

static int offload_beside_a_sleeper(void *arg)
{
    static px_nsec hour = HOUR;

    (void)arg;
    start(nap, &hour);
    start(offload_work, NULL);
    return 0;
}

static void an_offloaded_call_stops_a_jump(void **state)
{
    (void)state;
    run_fibers(offload_beside_a_sleeper, NULL);
    assert_log("4 at 0 3600000000000 ");
}

static int sleep_held(void *arg)
{
    px_loop *loop = px_current_loop();
    px_nsec begun = real_now();

    (void)arg;
    EXPECT_EQ(px_loop_hold(loop), 0);
    EXPECT_EQ(px_sleep(HOUR), 0);
    EXPECT(real_now() - begun < 5 * PX_SEC);
    EXPECT_EQ(px_loop_unhold(loop), 0);
    return 0;
}

static void a_hold_does_not_stop_a_jump(void **state)
{
    (void)state;
    run_fibers(sleep_held, NULL);
    assert_log("");
}

static int posted(void *arg)
{
    note("posted at %lld ", (long long)px_now());
    EXPECT_EQ(px_sem_up(arg), 0);
    return 0;
}

struct poster {
    px_loop *loop;
    px_sem sem;
};

static void *post_later(void *arg)
{
    struct poster *poster = arg;

    really_sleep(10 * PX_MSEC);
    if (px_post(poster->loop, posted, &poster->sem) != 0 ||
        px_loop_unhold(poster->loop) != 0)
        return NULL;
    return arg;
}

static int wait_for_post(void *arg)
{
    struct poster poster = {px_current_loop(), PX_SEM_INIT(0)};
    pthread_t thread;
    void *value = NULL;

    (void)arg;
    EXPECT_EQ(px_sleep(HOUR), 0);
    EXPECT_EQ(px_loop_hold(poster.loop), 0);
    EXPECT_EQ(pthread_create(&thread, NULL, post_later, &poster), 0);
    EXPECT_EQ(px_sem_down(&poster.sem), 0);
    EXPECT_EQ(pthread_join(thread, &value), 0);
    EXPECT(value == &poster);
    return 0;
}

static void R123_a_held_run_waits_for_posts_in_real_time(void **state)
{
    (void)state;
    run_fibers(wait_for_post, NULL);
    assert_log("posted at 3600000000000 ");
}

/* --- The real clock ------------------------------------------------------- */

static int read_clock(void *arg)
{
    px_nsec last = 0;

    (void)arg;
    for (int i = 0; i < 1000; i++) {
        px_nsec before = real_now();
        px_nsec now = px_now();

        EXPECT(before <= now && now <= real_now());
        EXPECT(now >= last);
        last = now;
    }
    return 0;
}

static void it_is_the_systems_monotonic_clock(void **state)
{
    (void)state;
    assert_int_equal(run_really(read_clock, NULL), 0);
    assert_log("");
}

static int sleep_briefly(void *arg)
{
    static const px_nsec naps[] = {
        1,           300 * PX_USEC, 999 * PX_USEC, 1500 * PX_USEC,
        2 * PX_MSEC, 10 * PX_MSEC};

    (void)arg;
    for (size_t i = 0; i < sizeof(naps) / sizeof(naps[0]); i++) {
        px_nsec begun = real_now();

        EXPECT_EQ(px_sleep(naps[i]), 0);
        EXPECT(real_now() - begun >= naps[i]);
        EXPECT(real_now() - begun < PX_SEC);
        begun = real_now();
        EXPECT_EQ(px_sleep_until(begun + naps[i]), 0);
        EXPECT(real_now() >= begun + naps[i]);
        EXPECT(real_now() - begun < PX_SEC);
    }
    return 0;
}

static void R74_no_sleep_ends_early(void **state)
{
    (void)state;
    assert_int_equal(run_really(sleep_briefly, NULL), 0);
    assert_log("");
}

static int sleep_on(void *arg)
{
    px_nsec until = real_now() + *(px_nsec *)arg;

    EXPECT_EQ(px_sleep_until(until), 0);
    EXPECT(real_now() >= until);
    return 0;
}

static int sleep_a_thousandfold(void *arg)
{
    static px_nsec naps[1000];

    (void)arg;
    for (int i = 0; i < 1000; i++) {
        naps[i] = (i * 7919 % 1000) * 20 * PX_USEC;
        start(sleep_on, &naps[i]);
    }
    return 0;
}

static void R74_a_thousand_sleepers_do_not_wake_early(void **state)
{
    (void)state;
    assert_int_equal(run_really(sleep_a_thousandfold, NULL), 0);
    assert_log("");
}

static volatile sig_atomic_t signals;

static void count_signal(int signal)
{
    (void)signal;
    signals++;
}

static int sleep_amid_signals(void *arg)
{
    px_nsec begun = real_now();
    int ends[2];

    (void)arg;
    EXPECT_EQ(px_sleep(40 * PX_MSEC), 0);
    EXPECT(real_now() - begun >= 40 * PX_MSEC);
    EXPECT(real_now() - begun < 2 * PX_SEC);
    EXPECT_EQ(pipe(ends), 0);
    begun = real_now();
    PX_WITHIN(limit, 40 * PX_MSEC)
        EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_ETIMEDOUT);
    EXPECT(real_now() - begun >= 40 * PX_MSEC);
    EXPECT(real_now() - begun < 2 * PX_SEC);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return 0;
}

static void R76_signals_neither_cut_nor_stretch_a_wait(void **state)
{
    static const struct itimerval every_ms = {{0, 2000}, {0, 2000}};
    static const struct itimerval never = {{0, 0}, {0, 0}};
    struct sigaction action;
    struct sigaction before;
    int value, tries = 20; /* held up, a process hears of one of many */

    (void)state;
    memset(&action, 0, sizeof(action));
    action.sa_handler = count_signal; /* and no SA_RESTART */
    signals = 0;
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &every_ms, NULL), 0);
    do {
        value = run_really(sleep_amid_signals, NULL);
    } while (value == 0 && signals <= 5 && --tries > 0);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    action.sa_handler = SIG_IGN; /* forgets one that is still pending */
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    assert_int_equal(value, 0);
    assert_true(signals > 5);
    assert_log("");
}

static px_nsec cpu_time(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * PX_SEC +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * PX_USEC;
}

static int sleep_twice(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sleep(100 * PX_MSEC), 0);
    EXPECT_EQ(px_sleep(100 * PX_MSEC), 0);
    return 0;
}

static int idle(void *arg)
{
    px_nsec begun = cpu_time();

    start(sleep_twice, arg);
    EXPECT_EQ(sleep_twice(arg), 0);
    EXPECT(cpu_time() - begun < (has_shadow() ? 150 : 20) * PX_MSEC);
    return 0;
}

static void R80_an_idle_run_burns_no_cpu(void **state)
{
    (void)state;
    assert_int_equal(run_really(idle, NULL), 0);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_year_passes_at_once_and_each_run_starts_at_0),
    PX_TEST(it_stands_still_while_a_fiber_can_run),
    PX_TEST(it_jumps_from_each_timer_to_the_next),
    PX_TEST(deadlines_are_exact_by_it),
    PX_TEST(descriptors_are_looked_at_before_a_jump),
    PX_TEST(waiting_on_a_descriptor_does_not_stop_a_jump),
    PX_TEST(R123_without_a_timer_it_waits_in_real_time),
    PX_TEST(an_offloaded_call_stops_a_jump),
    PX_TEST(a_hold_does_not_stop_a_jump),
    PX_TEST(R123_a_held_run_waits_for_posts_in_real_time),
    PX_TEST(it_is_the_systems_monotonic_clock),
    PX_TEST(R74_no_sleep_ends_early),
    PX_TEST(R74_a_thousand_sleepers_do_not_wake_early),
    PX_TEST(R76_signals_neither_cut_nor_stretch_a_wait),
    PX_TEST(R80_an_idle_run_burns_no_cpu),
};

PX_TEST_MAIN(tests)
