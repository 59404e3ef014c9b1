/* SPDX-License-Identifier: MIT */
/*
 * test_hostile.c - what comes from elsewhere may be anything: times and counts
 * at the ends of their range, descriptors that come and go. And what must not
 * be found in memory: code that can be written, a former fiber's data.
 */
#include <alloca.h>
#include <errno.h>
#include <inttypes.h>

#include "fiber_test.h"
#include "px_test_io.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* ---- Times ---- */

/* A wait that only its time can end. */
struct wait {
    int (*call)(px_nsec time);
    bool is_point; /* the time is one on the clock, else a duration */
    int code;      /* when it is over */
};

static int sleeps_for(px_nsec time)
{
    return px_sleep(time);
}

static int sleeps_until(px_nsec time)
{
    return px_sleep_until(time);
}

static int waits_with_timeout(px_nsec time)
{
    return px_with_timeout(time, sleeps_for_ever, NULL);
}

static int waits_with_deadline(px_nsec time)
{
    return px_with_deadline(time, sleeps_for_ever, NULL);
}

static int waits_with_shield(px_nsec time)
{
    return px_with_shield(time, sleeps_for_ever, NULL);
}

static int waits_in_a_block(px_nsec time)
{
    int err = 0;

    PX_WITHIN(limit, time)
        err = px_sleep(PX_FOREVER);
    return err;
}

static int waits_in_a_scope_until(px_nsec time)
{
    px_scope scope;
    int err = px_scope_enter_until(&scope, time);

    if (err)
        return err;
    err = px_sleep(PX_FOREVER);
    (void)px_scope_leave(&scope);
    return err;
}

static int waits_for_a_moved_deadline(px_nsec time)
{
    px_scope scope;
    int err = px_scope_enter(&scope, PX_FOREVER);

    if (err)
        return err;
    EXPECT_EQ(px_scope_set_deadline(&scope, time), 0);
    err = px_sleep(PX_FOREVER);
    (void)px_scope_leave(&scope);
    return err;
}

static const struct wait waits[] = {
    {sleeps_for, false, 0},
    {sleeps_until, true, 0},
    {waits_with_timeout, false, PX_ETIMEDOUT},
    {waits_with_deadline, true, PX_ETIMEDOUT},
    {waits_with_shield, false, PX_ETIMEDOUT},
    {waits_in_a_block, false, PX_ETIMEDOUT},
    {waits_in_a_scope_until, true, PX_ETIMEDOUT},
    {waits_for_a_moved_deadline, true, PX_ETIMEDOUT},
};

/* 2^63 / 10^6 is where milliseconds, counted in nanoseconds, wrap; 2^31 ms is
 * where epoll_wait() and poll() end, 2^32 ms where unsigned ones wrap. */
static const px_nsec times[] = {
    INT64_MIN,
    INT64_MIN + 1,
    INT64_MIN / 2,
    -1,
    0,
    1,
    PX_MSEC - 1,
    INT32_MAX *PX_MSEC,
    INT32_MAX *PX_MSEC + 1,
    (UINT32_MAX + PX_NSEC) * PX_MSEC,
    INT64_MAX / PX_SEC *PX_SEC,
    INT64_MAX / PX_MSEC *PX_MSEC,
    INT64_MAX / PX_MSEC *PX_MSEC + 1,
    INT64_MAX - PX_SEC - 1,
    INT64_MAX - PX_SEC,
    INT64_MAX - 1,
    INT64_MAX,
};

struct timed {
    const struct wait *wait;
    px_nsec time, begin, end;
    int code;
};

static int waits_for_its_time(void *arg)
{
    struct timed *t = arg;

    EXPECT_EQ(px_sleep(t->begin), 0);
    EXPECT_EQ(px_now(), t->begin);
    t->code = t->wait->call(t->time);
    t->end = px_now();
    return 0;
}

/* When it has to end, worked out where nothing overflows. */
static px_nsec expected_end(const struct timed *t)
{
    __int128 end = t->time;

    if (!t->wait->is_point)
        end += t->begin;
    if (end < t->begin)
        end = t->begin;
    return end < INT64_MAX ? (px_nsec)end : PX_FOREVER;
}

static void expect_time(struct timed *t)
{
    px_nsec end = expected_end(t);
    int deadlocks = 0;
    px_run_options options = {.on_deadlock = count_deadlocks,
                              .ctx = &deadlocks};
    int value = run_fibers_with(options, 0, waits_for_its_time, t);
    bool is_endless = end == PX_FOREVER;

    if (deadlocks != is_endless || (!is_endless && t->end != end))
        print_message("wait %d, time %" PRId64 ", from %" PRId64
                      ": ended at %" PRId64 ", not at %" PRId64 "\n",
                      (int)(t->wait - waits), t->time, t->begin, t->end, end);
    assert_int_equal(deadlocks, is_endless);
    assert_int_equal(value, is_endless ? PX_ESTALLED : 0);
    assert_int_equal(t->code, is_endless ? PX_ESTALLED : t->wait->code);
    if (!is_endless)
        assert_true(t->end == end);
}

static void a_time_at_the_end_of_its_range_is_kept_or_endless(void **state)
{
    static const px_nsec begins[] = {0, 1, PX_SEC, INT64_MAX - PX_SEC};

    (void)state;
    for (size_t w = 0; w < LENGTH(waits); w++) {
        for (size_t i = 0; i < LENGTH(times); i++) {
            for (size_t j = 0; j < LENGTH(begins); j++) {
                struct timed t = {
                    .wait = &waits[w], .time = times[i], .begin = begins[j]};

                expect_time(&t);
            }
        }
    }
    assert_log("");
}

static int takes_within(void *arg)
{
    static px_sem none = PX_SEM_INIT(0);
    px_nsec time = *(const px_nsec *)arg;
    px_fiber *fibers[2];
    px_scope scope;

    /* One that sleeps so long, one that waits so long at most. */
    fibers[0] = start_handle(sleeps, arg);
    EXPECT_EQ(px_scope_enter(&scope, time), 0);
    fibers[1] = start_handle(takes_a_permit, &none);
    for (int i = 0; i < 200; i++) /* timers are looked at, meanwhile */
        EXPECT_EQ(px_yield(), 0);
    EXPECT(!px_is_done(fibers[0]));
    EXPECT_EQ(px_sem_up(&none), 0);
    EXPECT_EQ(px_await(fibers[1], NULL), 0);
    EXPECT_EQ(px_scope_leave(&scope), 0);
    return px_cancel_and_await(fibers[0], NULL);
}

static void by_the_real_clock_a_long_time_is_not_over_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(times); i++) {
        px_run_options options = {0};
        px_nsec time = times[i];

        if (time > PX_MINUTE)
            assert_int_equal(run_fibers_with(options, 1, takes_within, &time),
                             0);
    }
    assert_log("");
}

/* ---- Counts ---- */

static const int64_t counts[] = {
    INT64_MIN,     INT64_MIN + 1,     INT64_MIN / 2, -2,        -1, 0, 1, 2,
    INT64_MAX / 2, INT64_MAX / 2 + 1, INT64_MAX - 1, INT64_MAX,
};

static bool fits(__int128 count)
{
    return count >= INT64_MIN && count <= INT64_MAX;
}

/* What a call returned and left, compared with what it should have. */
static void expect_count(const char *what, int64_t before, int64_t n, int code,
                         int64_t after, int wanted_code, __int128 wanted)
{
    if (code != wanted_code || after != wanted)
        print_message("%s: %" PRId64 " and %" PRId64 ": %s, %" PRId64 "\n",
                      what, before, n, err(code), after);
    assert_int_equal(code, wanted_code);
    assert_true(after == wanted);
}

static void a_semaphores_count_never_wraps(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(counts); i++) {
        for (size_t j = 0; j < LENGTH(counts); j++) {
            int64_t c = counts[i], n = counts[j];
            __int128 sum = (__int128)c + n;
            px_sem sem = PX_SEM_INIT(c);
            int code = px_sem_adjust(&sem, n);

            expect_count("adjust", c, n, code, px_sem_count(&sem),
                         fits(sum) ? 0 : PX_EOVERFLOW, fits(sum) ? sum : c);
            sem = (px_sem)PX_SEM_INIT(c);
            code = px_sem_up_n(&sem, n);
            expect_count("up_n", c, n, code, px_sem_count(&sem),
                         n < 0 ? PX_EINVAL : (fits(sum) ? 0 : PX_EOVERFLOW),
                         n >= 0 && fits(sum) ? sum : c);
            sem = (px_sem)PX_SEM_INIT(c);
            code = px_sem_try_down_n(&sem, n);
            expect_count("try_down_n", c, n, code, px_sem_count(&sem),
                         n < 0              ? PX_EINVAL
                         : n == 0 || c >= n ? 0
                                            : PX_EAGAIN,
                         n > 0 && c >= n ? (__int128)c - n : c);
        }
    }
}

/* A bounded one of `limit` whose count is `c`; false where there is none. */
static bool make_bounded(px_sem *sem, int64_t limit, int64_t c)
{
    __int128 away = (__int128)c - limit;

    if (limit < 1 || away > 0)
        return false;
    assert_int_equal(px_sem_init_bounded(sem, limit), 0);
    while (away < 0) {
        int64_t step = fits(away) ? (int64_t)away : INT64_MIN;

        assert_int_equal(px_sem_adjust(sem, step), 0);
        away -= step;
    }
    return px_sem_count(sem) == c;
}

static void a_bounded_semaphores_count_never_wraps(void **state)
{
    px_sem sem;

    (void)state;
    for (size_t l = 0; l < LENGTH(counts); l++) {
        for (size_t i = 0; i < LENGTH(counts); i++) {
            for (size_t j = 0; j < LENGTH(counts); j++) {
                int64_t limit = counts[l], c = counts[i], n = counts[j];
                __int128 sum = (__int128)c + n, moved = sum - limit;
                int code;

                if (!make_bounded(&sem, limit, c))
                    continue;
                code = px_sem_adjust(&sem, n);
                expect_count("bounded adjust", c, n, code, px_sem_count(&sem),
                             !fits(sum) || (n > 0 && sum > limit) ? PX_EOVERFLOW
                                                                  : 0,
                             !fits(sum) || (n > 0 && sum > limit) ? c : sum);
                (void)make_bounded(&sem, limit, c);
                code = px_sem_set_limit(&sem, n);
                expect_count("set_limit", c, n, code, px_sem_count(&sem),
                             n < 0         ? PX_EINVAL
                             : fits(moved) ? 0
                                           : PX_EOVERFLOW,
                             n >= 0 && fits(moved) ? moved : c);
                assert_true(px_sem_limit(&sem) == (code ? limit : n));
            }
        }
    }
}

static void a_waitgroups_count_never_wraps(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(counts); i++) {
        for (size_t j = 0; j < LENGTH(counts); j++) {
            int64_t c = counts[i], n = counts[j];
            __int128 sum = (__int128)c + n;
            px_waitgroup wg = PX_WAITGROUP_INIT(0);
            int code;

            (void)px_waitgroup_add(&wg, c);
            assert_true(px_waitgroup_count(&wg) == c);
            code = px_waitgroup_add(&wg, n);
            expect_count("add", c, n, code, px_waitgroup_count(&wg),
                         !fits(sum) ? PX_EOVERFLOW
                         : sum < 0  ? PX_ENEGATIVE
                                    : 0,
                         fits(sum) ? sum : c);
        }
    }
}

/* ---- Descriptors ---- */

static int reuses_a_number(void *arg UNUSED)
{
    int rounds = scaled(100000, 1000), other[2], number = -1;

    open_pipe(other, O_NONBLOCK);
    struct waiting bystander = {.fd = other[0], .events = PX_READABLE};
    start(wait_for_it, &bystander);
    for (int i = 0; i < rounds; i++) {
        int ends[2];

        open_pipe(ends, O_NONBLOCK);
        EXPECT(number < 0 || ends[0] == number);
        number = ends[0];
        struct transfer t = {.fd = ends[0]};
        start(read_it, &t);
        EXPECT(!t.done);
        if (i % 2) {
            put(ends[1], (char)i);
            settle();
            EXPECT_EQ(t.result, 1);
            EXPECT_EQ(t.bytes[0], (char)i);
        }
        EXPECT_EQ(px_close(ends[0]), 0);
        settle();
        EXPECT(t.done);
        if (i % 2 == 0)
            EXPECT_EQ(t.result, PX_ECLOSED);
        EXPECT_EQ(px_close(ends[1]), 0);
    }
    EXPECT(!bystander.done);
    put(other[1], 'x');
    settle();
    EXPECT_EQ(bystander.result, PX_READABLE);
    px_close_both(other);
    return 0;
}

static void
a_number_reused_a_hundred_thousand_times_wakes_nobody_else(void **state)
{
    (void)state;
    check(reuses_a_number);
}

/* ---- Memory ---- */

/* How many mappings can be written and executed; in `mine` what can be done
 * with the one that has this frame. */
static int writable_code(char mine[5])
{
    FILE *maps = fopen("/proc/self/maps", "re");
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), low, high;
    char line[512], may[5];
    int count = 0;

    mine[0] = '\0';
    while (maps && fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &low, &high, may) !=
            3)
            continue;
        count += may[1] == 'w' && may[2] == 'x';
        if (low <= here && here < high)
            memcpy(mine, may, sizeof(may));
    }
    if (maps)
        (void)fclose(maps);
    return count;
}

static int looks_at_its_mapping(void *arg UNUSED)
{
    char mine[5];
    int count = writable_code(mine);

    EXPECT(strncmp(mine, "rw-", 3) == 0);
    EXPECT(count == 0 || is_small()); /* tools that make code have their own */
    return 0;
}

static int looks_at_all_mappings(void *arg)
{
    px_spawn_options large = {.stack_size = 1 << 20};
    px_fiber *fiber = NULL;

    EXPECT_EQ(looks_at_its_mapping(arg), 0);
    EXPECT_EQ(px_offload(looks_at_its_mapping, NULL), 0);
    EXPECT_EQ(px_post(px_current_loop(), looks_at_its_mapping, NULL), 0);
    EXPECT_EQ(px_await(start_handle(looks_at_its_mapping, NULL), NULL), 0);
    EXPECT_EQ(px_spawn_with(&fiber, &large, looks_at_its_mapping, NULL), 0);
    return px_await(fiber, NULL);
}

static void nothing_is_writable_and_executable(void **state)
{
    (void)state;
    run_fibers(looks_at_all_mappings, NULL);
    assert_log("");
}

/* What was left on a stack, read as the kernel sees it. */
static const char secret[32] = "the password is not in the code";
static uintptr_t secret_at;
static int memory_fd;

static int leaves_secret(void *arg UNUSED)
{
    volatile char *room = alloca(8192);

    for (size_t i = 0; i < sizeof(secret); i++)
        room[i] = secret[i];
    secret_at = (uintptr_t)room;
    return 0;
}

/* Of which it has a copy, on its stack. */
static int gets_secret(void *arg)
{
    secret_at = (uintptr_t)arg;
    return 0;
}

static bool secret_is_there(void)
{
    char found[sizeof(secret)] = "";

    return pread(memory_fd, found, sizeof(found), (off_t)secret_at) ==
               (ssize_t)sizeof(found) &&
           memcmp(found, secret, sizeof(secret)) == 0;
}

static void by_spawn(void)
{
    start(leaves_secret, NULL);
}

static void by_size(void)
{
    px_spawn_options options = {.stack_size = 128 * 1024};

    EXPECT_EQ(px_spawn_with(NULL, &options, leaves_secret, NULL), 0);
}

static void by_argument(void)
{
    px_spawn_options options = {.arg_size = sizeof(secret)};
    char copied[sizeof(secret)];

    memcpy(copied, secret, sizeof(secret));
    EXPECT_EQ(px_spawn_with(NULL, &options, gets_secret, copied), 0);
    memset(copied, 0, sizeof(copied));
}

static void by_group(void)
{
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, leaves_secret, NULL), 0);
    EXPECT_EQ(px_group_wait(&group), 0);
}

static void by_waitgroup(void)
{
    px_waitgroup wg = PX_WAITGROUP_INIT(0);

    EXPECT_EQ(px_waitgroup_go(&wg, leaves_secret, NULL), 0);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
}

static void by_post(void)
{
    EXPECT_EQ(px_post(px_current_loop(), leaves_secret, NULL), 0);
    settle();
}

static int returns_at_once(void *arg UNUSED)
{
    return 0;
}

static void (*const births[])(void) = {by_spawn, by_size,      by_argument,
                                       by_group, by_waitgroup, by_post};

static int ends_and_is_looked_at(void *arg)
{
    void (*const *birth)(void) = arg;

    secret_at = 0;
    (*birth)();
    EXPECT(secret_at != 0);
    start(returns_at_once, NULL); /* a stack goes back with the next birth */
    start(returns_at_once, NULL);
    note("%d", secret_is_there());
    return 0;
}

static void a_stack_is_wiped_however_its_fiber_was_born(void **state)
{
    px_run_options options = {.wipe_stacks = true}, plain = {0};

    (void)state;
    memory_fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    secret_at = (uintptr_t)secret;
    if (memory_fd < 0 || !secret_is_there()) {
        if (memory_fd >= 0)
            (void)close(memory_fd);
        print_message("skipped: /proc/self/mem does not show this memory\n");
        skip();
    }
    for (size_t i = 0; i < LENGTH(births); i++)
        assert_int_equal(run_fibers_with(options, 0, ends_and_is_looked_at,
                                         (void *)&births[i]),
                         0);
    /* Only then: it is found where nobody asked for that. */
    assert_int_equal(
        run_fibers_with(plain, 0, ends_and_is_looked_at, (void *)&births[0]),
        0);
    (void)close(memory_fd);
    assert_log("0000001");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_time_at_the_end_of_its_range_is_kept_or_endless),
    PX_TEST(by_the_real_clock_a_long_time_is_not_over_at_once),
    PX_TEST(a_semaphores_count_never_wraps),
    PX_TEST(a_bounded_semaphores_count_never_wraps),
    PX_TEST(a_waitgroups_count_never_wraps),
    PX_TEST(a_number_reused_a_hundred_thousand_times_wakes_nobody_else),
    PX_TEST(nothing_is_writable_and_executable),
    PX_TEST(a_stack_is_wiped_however_its_fiber_was_born),
};

PX_TEST_MAIN(tests)
