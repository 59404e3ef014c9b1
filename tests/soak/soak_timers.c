/* SPDX-License-Identifier: MIT */
/*
 * soak_timers.c - a day of a thousand sleepers, and timers by the million.
 *
 * By the virtual clock, which stands still while anybody can run: everybody
 * wakes at exactly the time that was asked for, or at which it was cut short.
 */
#include "soak.h"

#include "loop.h"

#define HOUR (60 * PX_MINUTE)

/* -- a day -- */

enum { SLEEPERS = 1000, MEAN = 10 };

struct day_sleeper {
    px_scope scope;
    px_nsec due;
    px_nsec cut; /* when its scope was cancelled; -1: it was not */
    px_nsec limit;
    uint64_t numbers;
};

static struct {
    struct day_sleeper sleepers[SLEEPERS];
    px_nsec end;
    int64_t woke, timed_out, canceled, wrong;
    int in_scope;
} day;

static void sleep_once(struct day_sleeper *self)
{
    px_nsec length =
        (px_nsec)random_below(&self->numbers, 2 * MEAN * (uint64_t)PX_SEC);
    px_nsec timeout = 4 * HOUR;
    px_nsec begun = px_now();
    int code;

    /* One in ten has a limit, which comes before the sleep's end or after. */
    if (random_below(&self->numbers, 10) == 0)
        timeout =
            (px_nsec)random_below(&self->numbers, 2 * MEAN * (uint64_t)PX_SEC);
    self->due = begun + (length > 0 ? length : 0);
    self->limit = begun + timeout;
    self->cut = -1;
    EXPECT_EQ(px_scope_enter(&self->scope, timeout), 0);
    code = px_sleep(length);
    if (code == 0) {
        day.woke++;
        day.wrong += px_now() != self->due;
    } else if (code == PX_ETIMEDOUT) {
        day.timed_out++;
        day.wrong += px_now() != self->limit || self->limit > self->due;
    } else {
        day.canceled++;
        day.wrong += code != PX_ECANCELED || px_now() != self->cut;
    }
    (void)px_scope_leave(&self->scope);
}

static int sleeps_all_day(void *arg)
{
    struct day_sleeper *self = arg;

    while (px_now() < day.end)
        sleep_once(self);
    self->cut = 0; /* in no scope any more */
    return 0;
}

/* A hundredth of the sleeps: as many a second as there are sleeps in a
 * hundred. */
static int cancels_all_day(void *arg)
{
    uint64_t numbers = 2;

    (void)arg;
    while (px_now() < day.end) {
        struct day_sleeper *victim;
        px_nsec mean = MEAN * PX_SEC / SLEEPERS * 100;

        EXPECT_EQ(px_sleep((px_nsec)random_below(&numbers, 2 * (uint64_t)mean)),
                  0);
        victim = &day.sleepers[random_below(&numbers, SLEEPERS)];
        if (victim->cut == -1) {
            victim->cut = px_now();
            EXPECT_EQ(px_scope_cancel(&victim->scope), 0);
        }
    }
    return 0;
}

static int a_day(void *arg)
{
    px_waitgroup wg = PX_WAITGROUP_INIT(0);
    int64_t all;

    (void)arg;
    for (int i = 0; i < SLEEPERS; i++) {
        day.sleepers[i].numbers = (uint64_t)i * 1000003;
        EXPECT_EQ(px_waitgroup_go(&wg, sleeps_all_day, &day.sleepers[i]), 0);
    }
    EXPECT_EQ(px_waitgroup_go(&wg, cancels_all_day, NULL), 0);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    EXPECT(px__heap_is_empty(&px__loop->timers));

    all = day.woke + day.timed_out + day.canceled;
    print_message("    %lld woke, %lld timed out, %lld were cancelled\n",
                  (long long)day.woke, (long long)day.timed_out,
                  (long long)day.canceled);
    EXPECT_EQ(day.wrong, 0);
    /* As many as there should be: those with a limit make some more. */
    EXPECT(all > day.end / PX_SEC * SLEEPERS / MEAN);
    EXPECT(day.canceled > all / 110 && day.canceled < all / 90);
    return 0;
}

static void a_day_of_sleepers_wakes_each_at_its_time(void **state)
{
    (void)state;
    memset(&day, 0, sizeof(day));
    day.end = soak(24) * HOUR;
    run_fibers(a_day, NULL);
    assert_log("");
}

/* -- storms -- */

enum { STORM = 1000000, STORM_GIB = 6 };

static struct {
    px_nsec at;
    int armed, woke, wrong;
    int code; /* what their sleeps are to return */
} storm;

static int sleeps_until_then(void *arg)
{
    int place = storm.armed++;

    (void)arg;
    storm.wrong += px_sleep_until(storm.at) != storm.code;
    storm.wrong += place != storm.woke++;
    return 0;
}

static void arm(int n)
{
    px_spawn_options options = {.stack_size = 16384};

    for (int i = 0; i < n; i++)
        EXPECT_EQ(px_spawn_with(NULL, &options, sleeps_until_then, NULL), 0);
    EXPECT_EQ(storm.armed, n);
    EXPECT_EQ(px__loop->timers.count, n);
}

static void skip_without_memory(void)
{
    long kib = 0;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "r");

    while (file && fgets(line, sizeof(line), file) &&
           sscanf(line, "MemAvailable: %ld", &kib) != 1)
        continue;
    if (file)
        (void)fclose(file);
    if (!is_small() && kib < (long)STORM_GIB << 20) {
        print_message("skipped: %d GiB of memory are not available\n",
                      STORM_GIB);
        skip();
    }
}

static int at_one_instant(void *arg)
{
    int n = fibers(STORM);

    (void)arg;
    storm.at = HOUR;
    storm.code = 0;
    arm(n);
    EXPECT_EQ(px_sleep_until(HOUR), 0);
    EXPECT_EQ(storm.woke, n);
    EXPECT_EQ(storm.wrong, 0);
    EXPECT_EQ(px_now(), HOUR);
    EXPECT(px__heap_is_empty(&px__loop->timers));
    return 0;
}

static void
a_million_equal_timers_come_in_the_order_they_were_armed(void **state)
{
    (void)state;
    skip_without_memory();
    memset(&storm, 0, sizeof(storm));
    run_fibers(at_one_instant, NULL);
    assert_log("");
}

/* The furthest there is, but for PX_FOREVER, which is no timer; all of them
 * are stopped at once, by ids, which is the order in which they came. */
static int at_the_end_of_time(void *arg)
{
    int n = fibers(10000);

    (void)arg;
    storm.at = INT64_MAX - 1;
    storm.code = PX_ECANCELED;
    arm(n);
    EXPECT_EQ(px_sleep(24 * HOUR), 0);
    EXPECT_EQ(storm.woke, 0);
    EXPECT_EQ(px_stop(), 0);
    EXPECT(px__heap_is_empty(&px__loop->timers));
    EXPECT_EQ(px_yield(), PX_ECANCELED);
    return 0;
}

static void timers_at_the_end_of_time_can_be_cancelled(void **state)
{
    (void)state;
    memset(&storm, 0, sizeof(storm));
    run_fibers(at_the_end_of_time, NULL);
    assert_int_equal(storm.woke, storm.armed);
    assert_int_equal(storm.wrong, 0);
    assert_log("");
}

/* The clock jumps there if nothing else is left to happen. */
static int reaches_the_end_of_time(void *arg)
{
    int n = fibers(10000);

    (void)arg;
    storm.at = INT64_MAX - 1;
    storm.code = 0;
    arm(n);
    EXPECT_EQ(px_sleep_until(INT64_MAX - 1), 0);
    EXPECT_EQ(storm.woke, n);
    EXPECT_EQ(px_now(), INT64_MAX - 1);
    return 0;
}

static void the_end_of_time_comes(void **state)
{
    (void)state;
    memset(&storm, 0, sizeof(storm));
    run_fibers(reaches_the_end_of_time, NULL);
    assert_int_equal(storm.wrong, 0);
    assert_log("");
}

/* -- armed, and cancelled -- */

enum { ARMED = 10000 };

static struct {
    px_fiber *handles[ARMED];
    int order[ARMED];
} armed;

static int sleeps_some_time(void *arg)
{
    return px_sleep(*(const px_nsec *)arg);
}

static void shuffle(uint64_t *numbers, int n)
{
    for (int i = 0; i < n; i++) {
        int other = (int)random_below(numbers, (uint64_t)i + 1);

        armed.order[i] = armed.order[other];
        armed.order[other] = i;
    }
}

/* In any order: from the middle of the heap, too. */
static int arm_and_cancel(void *arg)
{
    static px_nsec lengths[ARMED];
    uint64_t numbers = 3;
    int n = fibers(ARMED);
    struct footprint before = {0, 0};

    (void)arg;
    for (int64_t round = soak(100); round > 0; round--) {
        shuffle(&numbers, n);
        for (int i = 0; i < n; i++) {
            lengths[i] = 1 + (px_nsec)random_below(&numbers, (uint64_t)HOUR);
            armed.handles[i] = start_handle(sleeps_some_time, &lengths[i]);
        }
        EXPECT_EQ(px__loop->timers.count, n);
        for (int i = 0; i < n; i++)
            EXPECT_EQ(px_cancel(armed.handles[armed.order[i]]), 0);
        EXPECT(px__heap_is_empty(&px__loop->timers));
        for (int i = 0; i < n; i++) {
            int code = 0;

            EXPECT_EQ(px_await(armed.handles[i], &code), 0);
            EXPECT_EQ(code, PX_ECANCELED);
        }
        if (before.kib == 0)
            before = footprint();
    }
    EXPECT_EQ(px_now(), 0);
    expect_as_flat_as(before);
    return 0;
}

static void a_million_timers_are_armed_and_cancelled(void **state)
{
    (void)state;
    run_fibers(arm_and_cancel, NULL);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_day_of_sleepers_wakes_each_at_its_time),
    PX_TEST(a_million_timers_are_armed_and_cancelled),
    PX_TEST(timers_at_the_end_of_time_can_be_cancelled),
    PX_TEST(the_end_of_time_comes),
    PX_TEST(a_million_equal_timers_come_in_the_order_they_were_armed),
};

PX_TEST_MAIN(tests)
