/* SPDX-License-Identifier: MIT */
/*
 * soak_idle.c - ten thousand fibers that wait for a minute, in every way there
 * is, and take nothing: no time of the processor, no wake-up.
 *
 * The one test that looks at a clock, the one of the time spent.
 */
#include <sys/resource.h>

#include "soak.h"

enum { IDLE = 10000, KINDS = 4, WAKE_UPS = 3 };

static struct {
    px_sem sem;
    px_mutex mutex;
    int ends[2];
} what;

static int waits(void *arg)
{
    switch ((uintptr_t)arg % KINDS) {
    case 0:
        return px_sem_down(&what.sem);
    case 1:
        return px_sleep(1000 * PX_MINUTE);
    case 2:
        return px_mutex_lock(&what.mutex);
    default:
        return px_wait_fd(what.ends[0], PX_READABLE);
    }
}

static int waits_in_a_scope(void *arg)
{
    return px_with_timeout(2000 * PX_MINUTE, waits, arg);
}

static px_nsec processor_time(const struct rusage *usage)
{
    return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * PX_SEC +
           (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * PX_USEC;
}

static int idle(void *arg)
{
    static px_fiber *handles[IDLE];
    struct rusage before, after;
    int n = fibers(IDLE);
    px_nsec spent;
    long wake_ups;

    (void)arg;
    EXPECT_EQ(px_mutex_lock(&what.mutex), 0);
    for (int i = 0; i < n; i++)
        handles[i] = start_handle(i % 8 < 4 ? waits : waits_in_a_scope,
                                  (void *)(uintptr_t)i);
    EXPECT_EQ(px_sleep(PX_SEC), 0); /* all of them are parked */
    EXPECT_EQ(getrusage(RUSAGE_SELF, &before), 0);
    EXPECT_EQ(px_sleep(soak(60) * PX_SEC), 0);
    EXPECT_EQ(getrusage(RUSAGE_SELF, &after), 0);

    spent = processor_time(&after) - processor_time(&before);
    wake_ups = after.ru_nvcsw - before.ru_nvcsw;
    print_message("    %lld us of the processor, %ld waits\n",
                  (long long)(spent / PX_USEC), wake_ups);
    EXPECT(spent <= 10 * PX_MSEC);
    EXPECT(wake_ups <= WAKE_UPS);
    for (int i = 0; i < n; i++) {
        int code = 0;

        EXPECT_EQ(px_cancel_and_await(handles[i], &code), 0);
        EXPECT_EQ(code, PX_ECANCELED);
    }
    return px_mutex_unlock(&what.mutex);
}

static void ten_thousand_fibers_wait_and_take_nothing(void **state)
{
    px_run_options options = {.clock = PX_CLOCK_REAL};

    (void)state;
    memset(&what, 0, sizeof(what));
    assert_int_equal(pipe(what.ends), 0);
    assert_int_equal(run_fibers_with(options, 1, idle, NULL), 0);
    assert_int_equal(close(what.ends[0]), 0);
    assert_int_equal(close(what.ends[1]), 0);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(ten_thousand_fibers_wait_and_take_nothing),
};

PX_TEST_MAIN(tests)
