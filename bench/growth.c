/* SPDX-License-Identifier: MIT */
/*
 * growth.c - what an operation costs beside n others: flat, or the log of n?
 *
 *     growth --list            one a line: name, panel, what, the largest n
 *     growth NAME N            measure it, print a line of JSON
 *
 * Public calls only. Each function below sets n things up, measures about as
 * long as ENOUGH, and takes them down again; it returns ns of CPU time per
 * operation, or less than 0 if something failed.
 */
#include <parataxis/parataxis.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define ENOUGH ((int64_t)20 * 1000 * 1000)
#define HOUR (60 * PX_MINUTE)

static int64_t cpu_clock(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Somewhere from 1 to 2 hours: amid all others that are drawn so. */
static px_nsec some_time(void)
{
    static uint64_t state = 88172645463325252u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return HOUR + (px_nsec)(state % (uint64_t)HOUR);
}

static struct {
    px_sem gate, done;
    px_sem *queues; /* what the members wait on: member i on i / each */
    long each;      /* members of one queue */
    long n;         /* members */
    long failures;
    long ended;
    int stop;
    px_fiber **fibers;
    px_fid *ids;
    int *fds;
} crew;

static double result(int64_t ns, long ops)
{
    return crew.failures == 0 && ops > 0 ? (double)ns / (double)ops : -1;
}

/* Make n members; each runs until it parks. `arg` is its number. */
static void crew_start(long n, px_fn body)
{
    crew.n = n;
    crew.fibers = calloc((size_t)n, sizeof(px_fiber *));
    crew.ids = calloc((size_t)n, sizeof(px_fid));
    for (long i = 0; i < n; i++) {
        if (px_spawn(&crew.fibers[i], body, (void *)(intptr_t)i) != 0) {
            crew.failures++;
            crew.n = i;
            break;
        }
        crew.ids[i] = px_id(crew.fibers[i]);
    }
}

static void crew_await(void)
{
    for (long i = 0; i < crew.n; i++)
        crew.failures += px_await(crew.fibers[i], NULL) != 0;
    crew.failures += crew.ended != crew.n;
    free(crew.fibers);
    free(crew.ids);
}

static void crew_cancel(void)
{
    for (long i = 0; i < crew.n; i++)
        (void)px_cancel(crew.fibers[i]);
    crew_await();
}

/* -- fibers -- */

static int wait_at_gate(void *arg)
{
    (void)arg;
    crew.failures += px_sem_down(&crew.gate) != 0;
    crew.ended++;
    return 0;
}

static double fibers_spawn(long n)
{
    int64_t start = cpu_clock(), ns;

    crew_start(n, wait_at_gate);
    ns = cpu_clock() - start;
    (void)px_sem_up_n(&crew.gate, n);
    crew_await();
    return result(ns, n);
}

static double fibers_wake(long n)
{
    int64_t start, ns;

    crew_start(n, wait_at_gate);
    start = cpu_clock();
    for (long i = 0; i < n; i++)
        (void)px_sem_up(&crew.gate);
    while (crew.ended < crew.n)
        crew.failures += px_yield() != 0;
    ns = cpu_clock() - start;
    crew_await();
    return result(ns, n);
}

static int yield_until_stop(void *arg)
{
    (void)arg;
    crew.failures += px_sem_down(&crew.gate) != 0;
    while (!crew.stop)
        crew.failures += px_yield() != 0;
    crew.ended++;
    return 0;
}

static double fibers_yield(long n)
{
    long rounds = 0;
    int64_t start, ns;

    crew_start(n, yield_until_stop);
    (void)px_sem_up_n(&crew.gate, n);
    crew.failures += px_yield() != 0;
    start = cpu_clock();
    do {
        for (long i = 0; i < 1 + 1000 / n; i++, rounds++)
            crew.failures += px_yield() != 0;
        ns = cpu_clock() - start;
    } while (ns < ENOUGH);
    crew.stop = 1;
    crew_await();
    return result(ns, rounds * (n + 1));
}

/* -- timers -- */

static int sleep_long(void *arg)
{
    (void)arg;
    crew.failures += px_sleep(some_time()) != PX_ECANCELED;
    crew.ended++;
    return 0;
}

static int down_within(px_sem *sem, px_nsec timeout)
{
    px_scope scope;
    int code = px_scope_enter(&scope, timeout);

    if (code == 0) {
        code = px_sem_down(sem);
        (void)px_scope_leave(&scope);
    }
    return code;
}

static int answer_in_time(void *arg)
{
    (void)arg;
    while (!crew.stop) {
        crew.failures += down_within(&crew.gate, some_time()) != 0;
        crew.failures += px_sem_up(&crew.done) != 0;
    }
    return 0;
}

static double timers_arm(long n)
{
    px_fiber *other = NULL;
    long ops = 0;
    int64_t start, ns;

    crew_start(n, sleep_long);
    if (crew.failures || px_spawn(&other, answer_in_time, NULL) != 0) {
        crew_cancel();
        return -1;
    }
    start = cpu_clock();
    do {
        for (int i = 0; i < 1000; i++, ops += 2) {
            crew.stop = i == 999 && cpu_clock() - start >= ENOUGH;
            crew.failures += px_sem_up(&crew.gate) != 0;
            crew.failures += down_within(&crew.done, some_time()) != 0;
        }
        ns = cpu_clock() - start;
    } while (!crew.stop);
    crew.failures += px_await(other, NULL) != 0;
    crew_cancel();
    return result(ns, ops);
}

/* On the virtual clock, so that nobody waits for real. What it costs to end is
 * not counted: all wait for the last. */
static int sleep_often(void *arg)
{
    long times = 1 + 100000 / crew.n;

    (void)arg;
    crew.failures += px_sem_down(&crew.gate) != 0;
    for (long i = 0; i < times; i++)
        crew.failures += px_sleep(some_time()) != 0;
    crew.ended++;
    crew.failures += px_sem_down(&crew.done) != 0;
    return 0;
}

static double timers_fire(long n)
{
    int64_t start, ns;

    crew_start(n, sleep_often);
    (void)px_sem_up_n(&crew.gate, n);
    start = cpu_clock();
    while (crew.ended < crew.n)
        crew.failures += px_sleep(2 * HOUR) != 0;
    ns = cpu_clock() - start;
    (void)px_sem_up_n(&crew.done, n);
    crew_await();
    return result(ns, n * (1 + 100000 / n));
}

/* -- waiters in one queue -- */

static int wait_in_queue(void *arg)
{
    px_sem *mine = &crew.queues[(intptr_t)arg / crew.each];

    crew.failures += px_sem_down(mine) != PX_ECANCELED;
    crew.ended++;
    return 0;
}

/* With few waiters, many queues: or there would be nothing to time. */
static long queues_start(long n)
{
    long queues = 1 + 10000 / n;

    crew.queues = calloc((size_t)queues, sizeof(px_sem));
    crew.each = n;
    crew_start(n * queues, wait_in_queue);
    return queues;
}

static double waiters_remove(long n)
{
    long queues = queues_start(n), ops = 0;
    int64_t start = cpu_clock(), ns = 0;

    /* The second half of each queue, beginning in the middle. */
    for (long i = n / 2; i < n && ns < ENOUGH; i++) {
        for (long q = 0; q < queues; q++, ops++)
            crew.failures +=
                px_sem_remove_waiter(&crew.queues[q], crew.ids[q * n + i]) != 1;
        if (queues > 1 || i % 64 == 0 || i == n - 1)
            ns = cpu_clock() - start;
    }
    crew_cancel();
    free(crew.queues);
    return result(ns, ops);
}

static double waiters_cancel(long n)
{
    int64_t start, ns;

    (void)queues_start(n);
    start = cpu_clock();
    for (long i = 0; i < crew.n; i++)
        (void)px_cancel(crew.fibers[i]);
    while (crew.ended < crew.n)
        crew.failures += px_yield() != 0;
    ns = cpu_clock() - start;
    crew_await();
    free(crew.queues);
    return result(ns, crew.n);
}

static int serve(void *arg)
{
    (void)arg;
    while (px_sem_down(&crew.gate) == 0)
        (void)px_sem_up(&crew.done);
    crew.ended++;
    return 0;
}

/* Wake the first of n, which joins the end again. */
static double waiters_wake(long n)
{
    long ops = 0;
    int64_t start, ns;

    crew_start(n, serve);
    start = cpu_clock();
    do {
        for (int i = 0; i < 1000; i++, ops++) {
            crew.failures += px_sem_up(&crew.gate) != 0;
            crew.failures += px_sem_down(&crew.done) != 0;
        }
        ns = cpu_clock() - start;
    } while (ns < ENOUGH);
    crew_cancel();
    return result(ns, ops);
}

/* -- nested scopes -- */

static px_scope *scopes_enter(long n)
{
    px_scope *scopes = calloc((size_t)n, sizeof(px_scope));

    for (long i = 0; i < n; i++)
        crew.failures += px_scope_enter(&scopes[i], some_time()) != 0;
    return scopes;
}

static void scopes_leave(px_scope *scopes, long n)
{
    for (long i = n - 1; i >= 0; i--)
        crew.failures += px_scope_leave(&scopes[i]) != 0;
    free(scopes);
}

static double scopes_one_more(long n)
{
    px_scope *scopes = scopes_enter(n), inner;
    long ops = 0;
    int64_t start = cpu_clock(), ns;

    do {
        for (int i = 0; i < 1000; i++, ops++) {
            crew.failures += px_scope_enter(&inner, HOUR) != 0;
            crew.failures += px_scope_leave(&inner) != 0;
        }
        ns = cpu_clock() - start;
    } while (ns < ENOUGH);
    scopes_leave(scopes, n);
    return result(ns, ops);
}

/* A wait, with its timer, inside n scopes; the other fiber is in none. */
static double scopes_wait(long n)
{
    px_scope *scopes = scopes_enter(n);
    long ops = 0;
    int64_t start, ns;

    crew_start(1, serve);
    start = cpu_clock();
    do {
        for (int i = 0; i < 1000; i++, ops++) {
            crew.failures += px_sem_up(&crew.gate) != 0;
            crew.failures += px_sem_down(&crew.done) != 0;
        }
        ns = cpu_clock() - start;
    } while (ns < ENOUGH);
    crew_cancel();
    scopes_leave(scopes, n);
    return result(ns, ops);
}

/* -- descriptors -- */

static int read_counter(void *arg)
{
    int fd = crew.fds[(intptr_t)arg];
    uint64_t value;

    while (px_read(fd, &value, sizeof(value)) == (ssize_t)sizeof(value))
        (void)px_sem_up(&crew.done);
    crew.ended++;
    return 0;
}

static void descriptors_open(long n)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    crew.fds = calloc((size_t)n, sizeof(int));
    for (long i = 0; i < n; i++) {
        crew.fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        crew.failures += crew.fds[i] < 0;
    }
    if (crew.failures == 0)
        crew_start(n, read_counter);
}

static void descriptors_close(long n)
{
    if (crew.n > 0)
        crew_cancel();
    for (long i = 0; i < n; i++)
        crew.failures += px_close(crew.fds[i]) != 0;
    free(crew.fds);
}

static void make_ready(long i)
{
    uint64_t one = 1;

    crew.failures += write(crew.fds[i], &one, sizeof(one)) != sizeof(one);
}

/* `at_once` of n become ready, and are read. */
static double descriptors(long n, long at_once)
{
    long ops = 0;
    int64_t start, ns = 0;

    descriptors_open(n);
    start = cpu_clock();
    while (ns < ENOUGH && crew.failures == 0) {
        for (long i = 0; i < at_once; i++)
            make_ready((ops + i) * 7919 % n);
        for (long i = 0; i < at_once; i++, ops++)
            crew.failures += px_sem_down(&crew.done) != 0;
        ns = cpu_clock() - start;
    }
    descriptors_close(n);
    return result(ns, ops);
}

static double descriptors_one(long n)
{
    return descriptors(n, 1);
}

static double descriptors_all(long n)
{
    return descriptors(n, n);
}

/* -- all of them -- */

static const struct series {
    const char *name, *panel, *what;
    double (*measure)(long n);
    long most;
    px_clock clock;
} all[] = {
    {"fibers-spawn", "fibers", "create one", fibers_spawn, 1000000, 0},
    {"fibers-wake", "fibers", "wake one, it ends", fibers_wake, 1000000, 0},
    {"fibers-yield", "fibers", "yield", fibers_yield, 1000000, 0},
    {"timers-arm", "timers", "arm and disarm one", timers_arm, 1000000, 0},
    {"timers-fire", "timers", "sleep and wake, virtual clock", timers_fire,
     1000000, PX_CLOCK_VIRTUAL},
    {"waiters-remove", "waiters in a queue", "remove from the middle",
     waiters_remove, 1000000, 0},
    {"waiters-cancel", "waiters in a queue", "cancel all: one of them",
     waiters_cancel, 1000000, 0},
    {"waiters-wake", "waiters in a queue", "wake the first, it queues again",
     waiters_wake, 1000000, 0},
    {"scopes-one-more", "nested scopes", "enter and leave one more",
     scopes_one_more, 10000, 0},
    {"scopes-wait", "nested scopes", "wait inside them", scopes_wait, 10000, 0},
    {"descriptors-one", "descriptors", "one becomes ready, is read",
     descriptors_one, 10000, 0},
    {"descriptors-all", "descriptors", "all become ready: one of them",
     descriptors_all, 10000, 0},
};

struct job {
    const struct series *series;
    long n;
    double ns;
};

static int measure(void *arg)
{
    struct job *job = arg;

    job->ns = job->series->measure(job->n);
    return 0;
}

int main(int argc, char **argv)
{
    px_run_options options = {0};
    struct job job = {0};
    int code;

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
            (void)printf("%s\t%s\t%s\t%ld\n", all[i].name, all[i].panel,
                         all[i].what, all[i].most);
        return 0;
    }
    for (size_t i = 0; argc == 3 && i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i].name, argv[1]) == 0)
            job.series = &all[i];
    }
    job.n = argc == 3 ? atol(argv[2]) : 0;
    if (!job.series || job.n < 1) {
        (void)fprintf(stderr, "usage: growth --list | NAME N\n");
        return 2;
    }
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    options.clock = job.series->clock;
    code = px_run_with(&options, measure, &job);
    if (code != 0 || job.ns < 0) {
        (void)fprintf(stderr, "growth: %s with %ld failed: %s\n", argv[1],
                      job.n, code ? px_strerror(code) : "a check is broken");
        return 1;
    }
    (void)printf("{\"series\":\"%s\",\"n\":%ld,\"ns\":%.3f,"
                 "\"version\":\"%s\"}\n",
                 job.series->name, job.n, job.ns, px_version_string());
    return 0;
}
