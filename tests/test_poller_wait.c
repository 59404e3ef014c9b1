/* SPDX-License-Identifier: MIT */
/*
 * test_poller_wait.c - what the poller asks the system for: how long it may
 * wait. Too long a wait is a late timer, one that is rounded down is a loop
 * that spins, a negative one is for ever.
 *
 * The machine may be busy, and hold up any thread for any time: what is said
 * about a wait is what was asked for, and whoever ends one sees it begin.
 */
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "fiber_test.h"

#define ENDLESS INT64_MAX

static px_nsec asked[64]; /* each wait, in nanoseconds */
static int waits;
static atomic_bool blocks; /* a wait that may take time was asked for */

static void begin_to_count(void)
{
    waits = 0;
    atomic_store(&blocks, false);
}

/* Somebody posts just before a look that takes no time. Found out: a wait that
 * began before that was delivered; it ends at once, for the test has to. */
static struct {
    px_loop *loop; /* NULL: nobody does */
    bool posted, delivered, waited_in_vain;
} late;

static int is_delivered(void *arg UNUSED)
{
    late.delivered = true;
    return 0;
}

static bool posts_late(px_nsec time)
{
    if (!late.loop || late.delivered)
        return false;
    if (!late.posted && time == 0) {
        late.posted = true;
        EXPECT_EQ(px_post(late.loop, is_delivered, NULL), 0);
    } else if (late.posted && time != 0) {
        late.waited_in_vain = true;
    }
    return late.waited_in_vain;
}

/* True: it has to end at once. */
static bool ask(px_nsec time)
{
    if (time > 0)
        atomic_store(&blocks, true);
    if (waits < 64)
        asked[waits] = time;
    waits++;
    return posts_late(time);
}

/* What the library calls instead of the system (LINKER:--wrap). */
int __real_epoll_wait(int fd, struct epoll_event *events, int n, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout);
int __real_poll(struct pollfd *set, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *set, nfds_t n, int timeout);
int __real_ppoll(struct pollfd *set, nfds_t n, const struct timespec *timeout,
                 const sigset_t *mask);
int __wrap_ppoll(struct pollfd *set, nfds_t n, const struct timespec *timeout,
                 const sigset_t *mask);

static px_nsec from_milliseconds(int timeout)
{
    return timeout < 0 ? ENDLESS : timeout * PX_MSEC;
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
    if (ask(from_milliseconds(timeout)))
        timeout = 0;
    return __real_epoll_wait(fd, events, n, timeout);
}

int __wrap_poll(struct pollfd *set, nfds_t n, int timeout)
{
    /* Without these, that is px_wait_fd() itself. */
    if ((n != 1 || timeout != 0) && ask(from_milliseconds(timeout)))
        timeout = 0;
    return __real_poll(set, n, timeout);
}

int __wrap_ppoll(struct pollfd *set, nfds_t n, const struct timespec *timeout,
                 const sigset_t *mask)
{
    static const struct timespec at_once;
    px_nsec time = ENDLESS;

    if (timeout) {
        EXPECT(timeout->tv_sec >= 0);
        EXPECT(timeout->tv_nsec >= 0 && timeout->tv_nsec < PX_SEC);
        time = timeout->tv_sec * PX_SEC + timeout->tv_nsec;
    }
    if (ask(time))
        timeout = &at_once;
    return __real_ppoll(set, n, timeout, mask);
}

/* Waits that may take time, and the longest. */
static int blocking_waits(px_nsec *longest)
{
    int count = 0;

    *longest = 0;
    for (int i = 0; i < waits && i < 64; i++) {
        count += asked[i] > 0;
        if (asked[i] > *longest)
            *longest = asked[i];
    }
    return count;
}

static int watches(void *arg)
{
    int fd = *(int *)arg;

    EXPECT_EQ(px_wait_fd(fd, PX_READABLE), PX_ECANCELED);
    return 0;
}

static void expect_short_waits(void)
{
    static const px_nsec naps[] = {1,       PX_USEC,         200 * PX_USEC,
                                   999999,  PX_MSEC,         PX_MSEC + 1,
                                   1500000, 2 * PX_MSEC - 1, 3 * PX_MSEC};

    for (size_t i = 0; i < sizeof(naps) / sizeof(naps[0]); i++) {
        px_nsec longest, before = px_now();
        int blocking;

        begin_to_count();
        EXPECT_EQ(px_sleep(naps[i]), 0);
        EXPECT(px_now() - before >= naps[i]);
        blocking = blocking_waits(&longest);
        EXPECT(longest < naps[i] + PX_MSEC);
        EXPECT(blocking <= 2);
        EXPECT(waits <= 4);
    }
}

static int sleeps_with_and_without_descriptors(void *arg)
{
    px_fiber *watcher;

    expect_short_waits();
    watcher = start_handle(watches, arg);
    expect_short_waits();
    return px_cancel_and_await(watcher, NULL);
}

static void by_the_real_clock(px_fn fn)
{
    px_run_options options = {0};
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(run_fibers_with(options, 1, fn, &ends[0]), 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
    assert_log("");
}

static void
R116_a_wait_is_no_longer_than_the_timer_and_never_spins(void **state)
{
    (void)state;
    by_the_real_clock(sleeps_with_and_without_descriptors);
}

static int naps_briefly(void *arg)
{
    int err = px_sleep(PX_MSEC);
    px_nsec longest;

    /* It was due before anybody asked the system for anything. */
    EXPECT_EQ(blocking_waits(&longest), 0);
    *(bool *)arg = true;
    return err;
}

static int is_busy_past_a_timer(void *arg)
{
    px_fiber *watcher = start_handle(watches, arg), *napper;
    bool woke = false;
    px_nsec begin;

    napper = start_handle(naps_briefly, &woke);
    begin = px_now(); /* it sleeps since before */
    while (px_now() - begin < 2 * PX_MSEC)
        continue;
    begin_to_count();
    EXPECT_EQ(px_await(napper, NULL), 0);
    EXPECT(woke);
    return px_cancel_and_await(watcher, NULL);
}

static void R116_a_timer_that_is_due_is_not_waited_for(void **state)
{
    (void)state;
    by_the_real_clock(is_busy_past_a_timer);
}

/* On a thread of its own, until the loop waits; or else, some seconds. And then
 * a little longer, in which a loop that spins would ask many times. */
static int pauses(void *arg UNUSED)
{
    const struct timespec pause = {.tv_nsec = 2 * PX_MSEC};

    for (int i = 0; i < 1000 && !atomic_load(&blocks); i++)
        (void)nanosleep(&pause, NULL);
    return nanosleep(&pause, NULL);
}

static int waits_beside_a_long_sleep(void *arg)
{
    static px_nsec lengths[] = {
        INT32_MAX * PX_MSEC, (INT32_MAX + PX_NSEC) * PX_MSEC,
        (UINT32_MAX + PX_NSEC) * PX_MSEC, (UINT32_MAX + PX_NSEC) * PX_MSEC + 1,
        INT64_MAX / 2};

    (void)arg;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        px_fiber *sleeper = start_handle(sleeps, &lengths[i]);
        px_nsec longest;

        begin_to_count();
        EXPECT_EQ(px_offload(pauses, NULL), 0);
        EXPECT(waits <= 4); /* a few, and not for no time at all */
        EXPECT(blocking_waits(&longest) >= 1);
        EXPECT(longest > PX_MINUTE && longest != ENDLESS);
        EXPECT_EQ(px_cancel_and_await(sleeper, NULL), 0);
    }
    return 0;
}

static void R116_a_wait_too_long_for_the_system_is_cut(void **state)
{
    (void)state;
    by_the_real_clock(waits_beside_a_long_sleep);
}

static int waits_without_a_timer(void *arg UNUSED)
{
    px_nsec longest;

    begin_to_count();
    EXPECT_EQ(px_offload(pauses, NULL), 0);
    (void)blocking_waits(&longest);
    EXPECT_EQ(longest, ENDLESS);
    return 0;
}

static void R116_only_without_a_timer_the_wait_is_endless(void **state)
{
    (void)state;
    by_the_real_clock(waits_without_a_timer);
}

/* ---- slack ---- */

#define HOUR (60 * PX_MINUTE)
static px_nsec near[] = {HOUR, HOUR + PX_MINUTE};

/* Nobody sleeps it out, and a minute more or less is no hold-up. */
static int waits_beside_near_timers(void *arg)
{
    px_nsec *longest = arg;
    px_fiber *first = start_handle(sleeps, &near[0]);
    px_fiber *second = start_handle(sleeps, &near[1]);

    begin_to_count();
    EXPECT_EQ(px_offload(pauses, NULL), 0);
    EXPECT(blocking_waits(longest) >= 1);
    EXPECT_EQ(px_cancel_and_await(first, NULL), 0);
    EXPECT_EQ(px_cancel_and_await(second, NULL), 0);
    return 0;
}

static px_nsec asked_with_slack(px_nsec slack)
{
    px_run_options options = {.timer_slack = slack};
    px_nsec longest = 0;

    assert_int_equal(
        run_fibers_with(options, 1, waits_beside_near_timers, &longest), 0);
    assert_log("");
    return longest;
}

static void with_slack_a_wait_goes_on_to_the_later_of_near_timers(void **state)
{
    (void)state;
    assert_true(asked_with_slack(0) <= near[0]);
    assert_true(asked_with_slack(5 * PX_MINUTE) > near[1]);
    assert_true(asked_with_slack(5 * PX_MINUTE) <= near[0] + 5 * PX_MINUTE);
}

static int sleeps_until(void *arg)
{
    px_nsec until = *(px_nsec *)arg;

    EXPECT_EQ(px_sleep_until(until), 0);
    EXPECT(px_now() >= until);
    return 0;
}

static int times_out_at(void *arg)
{
    px_nsec until = *(px_nsec *)arg;
    px_scope scope;

    EXPECT_EQ(px_scope_enter_until(&scope, until), 0);
    EXPECT_EQ(px_sleep(PX_FOREVER), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT(px_now() >= until);
    return 0;
}

/* The one wait ends after both; and if there was a hold-up, even none. */
static int share_a_wait(void *arg UNUSED)
{
    px_nsec first = px_now() + 10 * PX_MSEC, second = first + 2 * PX_MSEC;
    px_nsec third = second + PX_MSEC, longest;
    px_fiber *fibers[] = {start_handle(sleeps_until, &second),
                          start_handle(times_out_at, &third),
                          start_handle(sleeps_until, &first)};

    begin_to_count();
    EXPECT_EQ(px_await_all(fibers, 3, NULL), 0);
    EXPECT(blocking_waits(&longest) <= 1);
    return 0;
}

static void near_timers_share_a_wake_up_and_none_is_early(void **state)
{
    px_run_options options = {.timer_slack = 5 * PX_MSEC};

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(run_fibers_with(options, 1, share_a_wait, NULL), 0);
    assert_log("");
}

/* ---- a post that comes late ---- */

static int is_posted_to(void *arg)
{
    px_fiber *watcher = start_handle(watches, arg);

    late.loop = px_current_loop();
    EXPECT_EQ(px_loop_hold(late.loop), 0);
    for (int i = 0; i < 10 && !late.delivered; i++)
        EXPECT_EQ(px_offload(pauses, NULL), 0);
    EXPECT(late.posted);
    EXPECT(late.delivered);
    EXPECT(!late.waited_in_vain);
    EXPECT_EQ(px_loop_unhold(late.loop), 0);
    late.loop = NULL;
    return px_cancel_and_await(watcher, NULL);
}

/* That look takes back the wake-up. */
static void
by_the_virtual_clock_a_post_beside_a_descriptor_is_not_lost(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(
        run_fibers_with((px_run_options){0}, 0, is_posted_to, &ends[0]), 0);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(R116_a_wait_is_no_longer_than_the_timer_and_never_spins),
    PX_TEST(R116_a_timer_that_is_due_is_not_waited_for),
    PX_TEST(R116_a_wait_too_long_for_the_system_is_cut),
    PX_TEST(R116_only_without_a_timer_the_wait_is_endless),
    PX_TEST(with_slack_a_wait_goes_on_to_the_later_of_near_timers),
    PX_TEST(near_timers_share_a_wake_up_and_none_is_early),
    PX_TEST(by_the_virtual_clock_a_post_beside_a_descriptor_is_not_lost),
};

PX_TEST_MAIN(tests)
