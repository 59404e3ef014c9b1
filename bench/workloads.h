/* SPDX-License-Identifier: MIT */
/*
 * workloads.h - every row of the comparison, written once.
 *
 * Included once, at the end of an adaptor, which has defined (static inline, so
 * that the adaptor itself costs nothing):
 *
 *   LIB_NAME, lib_version(), lib_run(fn, arg, flags)
 *   lib_fiber                      a handle; default-constructed or raw memory
 *   lib_fibers_new(n), lib_fibers_free(fibers)
 *   lib_spawn(fiber, fn, arg)      starts at once, where the library can
 *   lib_await(fiber)               waits for its end, and frees it
 *   lib_yield(), lib_sleep(ns)
 *   lib_sem                        lib_sem_init(s, n), lib_sem_down(s),
 *                                  lib_sem_up(s), lib_sem_down_within(s, ns)
 *   LIB_SEM_NOTE                   "", or what to know about sem-free
 *   LIB_FIFO                       1 if it lets fibers run in order of arrival
 *                                  (else that is noted, not checked)
 *   LIB_MANY                       1 if it can have thousands of fibers
 *   LIB_WEIGHTED                   1 with lib_sem_down_n(s, n), lib_sem_up_n
 *   lib_mutex                      lib_mutex_init(m), lib_mutex_lock(m),
 *                                  lib_mutex_unlock(m)
 *   LIB_MUTEX_FIFO                 1 if unlock hands over in arrival order
 *   LIB_TIMED                      1 with lib_timed, what can be taken under a
 *                                  timeout by the cheapest means there is:
 *                                  lib_timed_init(t), lib_timed_take(t, ns),
 *                                  lib_timed_give(t)
 *   LIB_ARMED_NOTE                 "", or what to know about timeout-armed
 *   lib_waitgroup                  (with LIB_MANY) lib_waitgroup_init(w),
 *                                  lib_waitgroup_go(w, fn, arg),
 *                                  lib_waitgroup_wait(w)
 *   LIB_SLEEPERS                   1 if it can have 100,000 of them
 *   LIB_WAKES_EARLY                1 if its sleeps are known to end early: that
 *                                  is then said instead of a figure
 *   LIB_SLACK                      1 if lib_run() heeds ROW_SLACK
 *   LIB_MILLION                    1 if it can have 1,000,000 fibers
 *   LIB_ECHO                       1 with lib_conn, a connected descriptor:
 *                                  lib_conn_open(c, fd), lib_conn_close(c),
 *                                  lib_conn_read(c, buf, n),
 *                                  lib_conn_write(c, buf, n) (all n)
 *
 * What can fail returns 0 when it worked. A fiber's body is int fn(void *).
 *
 * Each workload checks itself as it goes: how often each step ran and in which
 * order, that nobody shares a lock, that no more permits are out than there
 * are, that nobody wakes early. A broken check is no result. "Different code"
 * wants two functions at two addresses: build with -fno-ipa-icf.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

enum { CROWD = 100, MANY = 1000, ALIVE = 10000, REPORTERS = 100000 };
enum { SLEEPERS = 100000 };

#define MS ((int64_t)1000000)

/* What the fibers of the row that is being measured share. */
static struct {
    long rounds;   /* how often each fiber goes around */
    long steps;    /* steps of all fibers so far: tells the order */
    long disorder; /* steps that came out of turn */
    long failures; /* calls that failed */
    long inside;   /* permits that are out */
    long excess;   /* times that too many were */
    long present;  /* fibers that wait for the start */
    long ended;    /* fibers that reached their end */
    long again;    /* times that one came again before any other */
    int last;      /* who came last; -1: nobody */
    int owner;     /* who has the lock; -1: nobody */
} shared;

struct member {
    int id;
    int of;
};

static struct member members[MANY];

static void begin(long rounds, int of)
{
    memset(&shared, 0, sizeof(shared));
    shared.rounds = rounds;
    shared.owner = -1;
    shared.last = -1;
    for (int i = 0; i < of; i++) {
        members[i].id = i;
        members[i].of = of;
    }
}

/* The step of fiber `id` of `of` in round `round`: is it its turn? */
static inline void step(long round, int id, int of)
{
    if (LIB_FIFO) {
        shared.disorder += shared.steps != round * of + id;
    } else {
        shared.again += shared.last == id;
        shared.last = id;
    }
    shared.steps++;
}

/* Where the fibers of a crowd wait for the start. */
static lib_sem gate;

static inline void wait_for_start(void)
{
    shared.present++;
    shared.failures += lib_sem_down(&gate) != 0;
}

/* Run `n` fibers at once, and time them from when the last one is there. They
 * are let go in the order of their ids. */
static void crowd(struct sample *s, int n, int (*body)(void *))
{
    lib_fiber *fibers = lib_fibers_new((size_t)n);
    int64_t start;

    lib_sem_init(&gate, 0);
    for (int i = 0; i < n; i++)
        shared.failures += lib_spawn(&fibers[i], body, &members[i]) != 0;
    while (shared.present < n) /* those that do not start at once */
        shared.failures += lib_yield() != 0;
    start = bench_clock();
    for (int i = 0; i < n; i++)
        shared.failures += lib_sem_up(&gate) != 0;
    for (int i = 0; i < n; i++)
        shared.failures += lib_await(&fibers[i]) != 0;
    s->ns = bench_clock() - start;
    s->ops = shared.rounds * n;
    lib_fibers_free(fibers);
    CHECK(s, shared.failures == 0);
    CHECK(s, shared.disorder == 0);
    CHECK(s, shared.excess == 0);
    CHECK(s, shared.steps == s->ops);
    CHECK(s, shared.ended == n);
    if (!LIB_FIFO)
        (void)snprintf(s->note, sizeof(s->note),
                       "order not checked; the same fiber again in %.1f %%",
                       100.0 * (double)shared.again / (double)s->ops);
}

/* -- yield -- */

static int yield_loop(void *arg)
{
    const struct member *me = (const struct member *)arg;
    long rounds = shared.rounds, failures = 0;

    wait_for_start();
    for (long i = 0; i < rounds; i++) {
        step(i, me->id, me->of);
        failures += lib_yield() != 0;
    }
    shared.failures += failures;
    shared.ended++;
    return 0;
}

/* The same again, at another address. */
static int yield_loop_2(void *arg)
{
    const struct member *me = (const struct member *)arg;
    long rounds = shared.rounds, failures = 0;

    wait_for_start();
    for (long i = 0; i < rounds; i++) {
        step(i, me->id, me->of);
        failures += lib_yield() != 0;
    }
    shared.failures += failures;
    shared.ended++;
    return 0;
}

static int yield_either(void *arg)
{
    const struct member *me = (const struct member *)arg;

    return me->id ? yield_loop_2(arg) : yield_loop(arg);
}

static NOINLINE long yield_inner(void)
{
    long failed = lib_yield() != 0;

    __asm__ volatile("" : "+r"(failed)); /* a real call, not a tail call */
    return failed;
}

static NOINLINE long yield_outer(void)
{
    long failed = yield_inner();

    __asm__ volatile("" : "+r"(failed));
    return failed;
}

static int yield_wrapped_loop(void *arg)
{
    const struct member *me = (const struct member *)arg;
    long rounds = shared.rounds, failures = 0;

    wait_for_start();
    for (long i = 0; i < rounds; i++) {
        step(i, me->id, me->of);
        failures += yield_outer();
    }
    shared.failures += failures;
    shared.ended++;
    return 0;
}

static void yield_same(struct sample *s)
{
    begin(s->n / 2, 2);
    crowd(s, 2, yield_loop);
}

static void yield_different(struct sample *s)
{
    begin(s->n / 2, 2);
    crowd(s, 2, yield_either);
}

static void yield_wrapped(struct sample *s)
{
    begin(s->n / 2, 2);
    crowd(s, 2, yield_wrapped_loop);
}

#if LIB_MANY
static void yield_many(struct sample *s)
{
    begin(s->n / MANY, MANY);
    crowd(s, MANY, yield_loop);
}
#endif

/* -- fibers -- */

static int end_at_once(void *arg)
{
    (void)arg;
    shared.ended++;
    return 0;
}

static void spawn_await(struct sample *s)
{
    lib_fiber *fiber = lib_fibers_new(1);
    long failures = 0;
    int64_t start;

    begin(0, 0);
    start = bench_clock();
    for (long i = 0; i < s->n; i++) {
        failures += lib_spawn(fiber, end_at_once, NULL) != 0;
        failures += lib_await(fiber) != 0;
    }
    s->ns = bench_clock() - start;
    s->ops = s->n;
    lib_fibers_free(fiber);
    CHECK(s, failures == 0);
    CHECK(s, shared.ended == s->ops);
}

#if LIB_MANY
static int yield_once(void *arg)
{
    (void)arg;
    shared.failures += lib_yield() != 0;
    shared.ended++;
    return 0;
}

/* ALIVE fibers that all live at once; then all are awaited. */
static void alive(struct sample *s)
{
    lib_fiber *fibers = lib_fibers_new(ALIVE);
    long times = (s->n + ALIVE - 1) / ALIVE;
    int64_t start;

    begin(0, 0);
    start = bench_clock();
    for (long k = 0; k < times; k++) {
        for (int i = 0; i < ALIVE; i++)
            shared.failures += lib_spawn(&fibers[i], yield_once, NULL) != 0;
        for (int i = 0; i < ALIVE; i++)
            shared.failures += lib_await(&fibers[i]) != 0;
    }
    s->ns = bench_clock() - start;
    s->ops = times * ALIVE;
    lib_fibers_free(fibers);
    CHECK(s, shared.failures == 0);
    CHECK(s, shared.ended == s->ops);
}
#endif

/* -- semaphore -- */

static lib_sem balls[2];
static lib_sem pool;

static void sem_free(struct sample *s)
{
    long failures = 0;
    int64_t start;

    lib_sem_init(&pool, 1);
    start = bench_clock();
    for (long i = 0; i < s->n; i++) {
        failures += lib_sem_down(&pool) != 0;
        failures += lib_sem_up(&pool) != 0;
    }
    s->ns = bench_clock() - start;
    s->ops = s->n;
    CHECK(s, failures == 0);
    (void)snprintf(s->note, sizeof(s->note), "%s", LIB_SEM_NOTE);
}

/* Two fibers throw a ball to each other: each step is an up, a down that has
 * to wait, and a switch. */
static int throw_and_catch(void *arg)
{
    const struct member *me = (const struct member *)arg;
    lib_sem *mine = &balls[me->id], *theirs = &balls[1 - me->id];
    long rounds = shared.rounds, failures = 0;

    wait_for_start();
    for (long i = 0; i < rounds; i++) {
        failures += lib_sem_down(mine) != 0;
        step(i, me->id, 2);
        failures += lib_sem_up(theirs) != 0;
    }
    shared.failures += failures;
    shared.ended++;
    return 0;
}

static int throw_and_catch_in_time(void *arg)
{
    const struct member *me = (const struct member *)arg;
    lib_sem *mine = &balls[me->id], *theirs = &balls[1 - me->id];
    long rounds = shared.rounds, failures = 0;

    wait_for_start();
    for (long i = 0; i < rounds; i++) {
        failures += lib_sem_down_within(mine, 1000 * MS) != 0;
        step(i, me->id, 2);
        failures += lib_sem_up(theirs) != 0;
    }
    shared.failures += failures;
    shared.ended++;
    return 0;
}

static void ping_pong(struct sample *s, int (*body)(void *))
{
    lib_sem_init(&balls[0], 1); /* the first has the ball */
    lib_sem_init(&balls[1], 0);
    begin(s->n / 2, 2);
    crowd(s, 2, body);
}

static void sem_handoff(struct sample *s)
{
    ping_pong(s, throw_and_catch);
}

static void timeout_armed(struct sample *s)
{
    ping_pong(s, throw_and_catch_in_time);
    (void)snprintf(s->note, sizeof(s->note), "%s", LIB_ARMED_NOTE);
}

#if LIB_WEIGHTED
static void weighted_free(struct sample *s)
{
    long failures = 0;
    int64_t start;

    lib_sem_init(&pool, 10);
    start = bench_clock();
    for (long i = 0; i < s->n; i++) {
        failures += lib_sem_down_n(&pool, 3) != 0;
        failures += lib_sem_up_n(&pool, 3) != 0;
    }
    s->ns = bench_clock() - start;
    s->ops = s->n;
    CHECK(s, failures == 0);
}

static int weighted_loop(void *arg)
{
    const struct member *me = (const struct member *)arg;
    long rounds = shared.rounds, failures = 0;

    wait_for_start();
    for (long i = 0; i < rounds; i++) {
        failures += lib_sem_down_n(&pool, 3) != 0;
        step(i, me->id, me->of);
        shared.inside += 3;
        shared.excess += shared.inside > 10;
        failures += lib_yield() != 0;
        shared.inside -= 3;
        failures += lib_sem_up_n(&pool, 3) != 0;
    }
    shared.failures += failures;
    shared.ended++;
    return 0;
}

static void weighted_crowd(struct sample *s)
{
    lib_sem_init(&pool, 10);
    begin(s->n / CROWD, CROWD);
    crowd(s, CROWD, weighted_loop);
}
#endif

/* -- mutex -- */

static lib_mutex lock;

static void mutex_free(struct sample *s)
{
    long failures = 0;
    int64_t start;

    lib_mutex_init(&lock);
    start = bench_clock();
    for (long i = 0; i < s->n; i++) {
        failures += lib_mutex_lock(&lock) != 0;
        failures += lib_mutex_unlock(&lock) != 0;
    }
    s->ns = bench_clock() - start;
    s->ops = s->n;
    CHECK(s, failures == 0);
}

/* Where the library hands over in order of arrival, that is checked; where it
 * lets the last owner barge in again, how often that happened is noted. */
static int mutex_loop(void *arg)
{
    const struct member *me = (const struct member *)arg;
    long rounds = shared.rounds, failures = 0;

    wait_for_start();
    for (long i = 0; i < rounds; i++) {
        failures += lib_mutex_lock(&lock) != 0;
        if (LIB_MUTEX_FIFO) {
            step(i, me->id, me->of);
        } else {
            shared.steps++;
            shared.again += shared.last == me->id;
            shared.last = me->id;
        }
        shared.excess += shared.owner != -1;
        shared.owner = me->id;
        failures += lib_yield() != 0;
        shared.excess += shared.owner != me->id;
        shared.owner = -1;
        failures += lib_mutex_unlock(&lock) != 0;
    }
    shared.failures += failures;
    shared.ended++;
    return 0;
}

static void mutex_crowd(struct sample *s)
{
    lib_mutex_init(&lock);
    begin(s->n / CROWD, CROWD);
    crowd(s, CROWD, mutex_loop);
    if (!LIB_MUTEX_FIFO)
        (void)snprintf(s->note, sizeof(s->note),
                       "barges: the last owner again in %.1f %%",
                       100.0 * (double)shared.again / (double)s->ops);
}

/* -- waitgroup -- */

#if LIB_MANY
static void waitgroup_many(struct sample *s)
{
    static lib_waitgroup group;
    long times = (s->n + REPORTERS - 1) / REPORTERS;
    int64_t start;

    begin(0, 0);
    start = bench_clock();
    for (long k = 0; k < times; k++) {
        lib_waitgroup_init(&group);
        for (int i = 0; i < REPORTERS; i++)
            shared.failures += lib_waitgroup_go(&group, end_at_once, NULL) != 0;
        shared.failures += lib_waitgroup_wait(&group) != 0;
        CHECK(s, shared.ended == (k + 1) * REPORTERS);
    }
    s->ns = bench_clock() - start;
    s->ops = times * REPORTERS;
    CHECK(s, shared.failures == 0);
}
#endif

/* -- time -- */

#if LIB_TIMED
static void timeout_free(struct sample *s, int64_t timeout)
{
    static lib_timed thing;
    long failures = 0, late = 0;
    int64_t start;

    lib_timed_init(&thing);
    start = bench_clock();
    for (long i = 0; i < s->n; i++) {
        if (lib_timed_take(&thing, timeout) == 0)
            failures += lib_timed_give(&thing) != 0;
        else
            late++;
    }
    s->ns = bench_clock() - start;
    s->ops = s->n;
    CHECK(s, failures == 0);
    CHECK(s, late <= s->ops / 1000); /* the machine was busy for 10 ms */
}

static void timeout_free_1s(struct sample *s)
{
    timeout_free(s, 1000 * MS);
}

static void timeout_free_10ms(struct sample *s)
{
    timeout_free(s, 10 * MS);
}
#endif

#if LIB_SLEEPERS
static int64_t *lateness;
static int64_t lateness_least;

/* `arg` is the sleeper's place in `lateness`. */
static int sleeper(void *arg)
{
    int64_t *mine = (int64_t *)arg;
    int64_t duration = (1 + (mine - lateness) * 7919 % 1000) * MS;
    int64_t start;

    wait_for_start();
    start = bench_now();
    shared.failures += lib_sleep(duration) != 0;
    *mine = bench_now() - start - duration;
    shared.excess += *mine < 0;
    if (*mine < lateness_least)
        lateness_least = *mine;
    shared.ended++;
    return 0;
}

/* The CPU time is that of all of it; the sleep of each begins when all of them
 * are there, so that making the last does not make the first late. */
static void sleepers(struct sample *s)
{
    lib_fiber *fibers = lib_fibers_new(SLEEPERS);
    int64_t start, begun;

    lateness = (int64_t *)calloc(SLEEPERS, sizeof(*lateness));
    begin(0, 0);
    lib_sem_init(&gate, 0);
    start = bench_clock();
    for (int i = 0; i < SLEEPERS; i++)
        shared.failures += lib_spawn(&fibers[i], sleeper, &lateness[i]) != 0;
    while (shared.present < SLEEPERS)
        shared.failures += lib_yield() != 0;
    begun = bench_clock();
    for (int i = 0; i < SLEEPERS; i++)
        shared.failures += lib_sem_up(&gate) != 0;
    for (int i = 0; i < SLEEPERS; i++)
        shared.failures += lib_await(&fibers[i]) != 0;
    s->ns = bench_clock() - start;
    s->ops = SLEEPERS;
    bench_extra(s, "start_ms", (double)(begun - start) / 1e6);
    bench_extra(s, "p99_ms", (double)bench_p99(lateness, SLEEPERS) / 1e6);
    free(lateness);
    lib_fibers_free(fibers);
    CHECK(s, shared.failures == 0);
    CHECK(s, shared.ended == SLEEPERS);
    if (shared.excess) {
        (void)snprintf(s->note, sizeof(s->note),
                       "wakes early: %.1f %% of its sleeps, by up to %.1f ms",
                       100.0 * (double)shared.excess / SLEEPERS,
                       (double)-lateness_least / 1e6);
        s->instead = LIB_WAKES_EARLY ? "wakes early" : NULL;
    }
    CHECK(s, shared.excess == 0 || LIB_WAKES_EARLY);
}
#endif

#if LIB_MILLION
#include "million.h"
#endif
#if LIB_ECHO
#include "echo.h"
#endif

static const struct row rows[] = {
    {"yield-same", "yield, 2 fibers, same code", yield_same, 2, 0},
    {"yield-different", "yield, 2 fibers, different code", yield_different, 2,
     0},
    {"yield-wrapped", "yield, 2 fibers, inside two wrappers", yield_wrapped, 2,
     0},
#if LIB_MANY
    {"yield-1000", "yield, 1,000 fibers", yield_many, 10 * MANY, 0},
#endif
    {"spawn-await", "spawn + await, child ends at once", spawn_await, 1, 0},
#if LIB_MANY
    {"alive-warm", "10,000 fibers alive, all awaited, warm", alive, 2 * ALIVE,
     0},
    {"alive-cold", "10,000 fibers alive, all awaited, cold", alive, 1,
     ROW_ONCE},
#endif
    {"sem-free", "semaphore, free: down + up", sem_free, 1, 0},
    {"sem-handoff", "semaphore hand-off", sem_handoff, 2, 0},
    {"mutex-free", "mutex, free: lock + unlock", mutex_free, 1, 0},
    {"mutex-100", "mutex, 100 fibers, yield while holding", mutex_crowd,
     10 * CROWD, 0},
#if LIB_WEIGHTED
    {"weighted-free", "weighted, free: 3 of 10", weighted_free, 1, 0},
    {"weighted-100", "weighted, 100 fibers want 3 of 10, yield", weighted_crowd,
     10 * CROWD, 0},
#endif
#if LIB_MANY
    {"waitgroup", "waitgroup, 100,000 fibers report", waitgroup_many, 1, 0},
#endif
#if LIB_TIMED
    {"timeout-free-1s", "timeout (1 s) around what need not wait",
     timeout_free_1s, 1, 0},
    {"timeout-free-10ms", "timeout (10 ms) around what need not wait",
     timeout_free_10ms, 1, 0},
#endif
    {"timeout-armed", "timeout armed, hand-off, disarmed", timeout_armed, 2, 0},
#if LIB_SLEEPERS
    {"sleepers", "100,000 sleepers, 1..1000 ms", sleepers, 1,
     ROW_ONCE | ROW_CPU_MS},
#endif
#if LIB_SLEEPERS && LIB_SLACK
    {"sleepers-slack", "100,000 sleepers, 1 ms of slack", sleepers, 1,
     ROW_ONCE | ROW_CPU_MS | ROW_SLACK},
#endif
#if LIB_MILLION
    {"million", "1,000,000 fibers parked: create one", million, 1,
     ROW_ONCE | ROW_SLOW | ROW_DENSE},
#endif
#if LIB_ECHO
    {"tcp-echo", "TCP echo, 64 connections, one message", tcp_echo, 12800,
     ROW_SLOW},
#endif
};

const struct bench bench = {LIB_NAME, lib_version, lib_run, rows, LENGTH(rows)};
