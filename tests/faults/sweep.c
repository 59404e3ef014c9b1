/* SPDX-License-Identifier: MIT */
/* sweep.c - see sweep.h. */
#include "sweep.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ONCE = 1,
    EVER = 2,
    HUNDRED = 4,
    TRANSFER = 8,       /* not where the loop's own wake-up is meant */
    TRIES = 3,          /* under a fault that stays, before it is lifted */
    ENOUGH = 20,        /* failures to look at */
    FEW = 60,           /* calls in a pass whose faults are also paired */
    LONGEST_SECONDS = 5 /* a pass */
};

/* In which ways a call fails. The first of each is its usual one. */
static const struct way {
    enum call call;
    int error;
    int how;
} ways[] = {
    {CALL_malloc, ENOMEM, ONCE | EVER},
    {CALL_calloc, ENOMEM, ONCE | EVER},
    {CALL_realloc, ENOMEM, ONCE | EVER},
    {CALL_posix_memalign, ENOMEM, ONCE | EVER},
    {CALL_strndup, ENOMEM, ONCE | EVER},
    {CALL_mmap, ENOMEM, ONCE | EVER},
    {CALL_mmap, EAGAIN, ONCE}, /* RLIMIT_MEMLOCK */
    {CALL_mprotect, ENOMEM, ONCE | EVER},
    {CALL_mprotect, EACCES, ONCE},
    {CALL_madvise, EINVAL, ONCE | EVER}, /* locked memory, an old kernel */
    {CALL_madvise, ENOMEM, ONCE},
    {CALL_madvise, EINTR, ONCE | HUNDRED},
    {CALL_memory, ENOMEM, ONCE | EVER},
    {CALL_pthread_create, EAGAIN, ONCE | EVER},
    {CALL_pthread_create, EPERM, ONCE},
    {CALL_pthread_atfork, ENOMEM, ONCE},
    {CALL_sigaction, EINVAL, ONCE | EVER},
    {CALL_sigaltstack, ENOMEM, ONCE | EVER},
    {CALL_sigaltstack, EPERM, ONCE},
    {CALL_epoll_create1, EMFILE, ONCE | EVER},
    {CALL_epoll_create1, ENFILE, ONCE},
    {CALL_epoll_create1, ENOMEM, ONCE},
    {CALL_epoll_ctl, ENOSPC, ONCE | EVER}, /* max_user_watches */
    {CALL_epoll_ctl, ENOMEM, ONCE | EVER},
    {CALL_epoll_ctl, EPERM, ONCE},
    {CALL_epoll_ctl, EBADF, ONCE},
    {CALL_epoll_ctl, ENOENT, ONCE}, /* not known, or known: it was closed, */
    {CALL_epoll_ctl, EEXIST, ONCE}, /* and its number is another file's */
    {CALL_epoll_wait, EINTR, ONCE | HUNDRED},
    {CALL_poll, EINTR, ONCE | HUNDRED},
    {CALL_poll, ENOMEM, ONCE},
    {CALL_ppoll, EINTR, ONCE | HUNDRED},
    {CALL_ppoll, ENOMEM, ONCE},
    {CALL_pipe2, EMFILE, ONCE | EVER},
    {CALL_pipe2, ENFILE, ONCE},
    {CALL_descriptor, EMFILE, ONCE | EVER},
    {CALL_open, EACCES, ONCE},
    {CALL_open, EMFILE, ONCE},
    {CALL_read, EINTR, ONCE | HUNDRED},
    {CALL_read, SHORT, ONCE | EVER},
    {CALL_read, EIO, ONCE | EVER | TRANSFER},
    {CALL_write, EINTR, ONCE | HUNDRED},
    {CALL_write, SHORT, ONCE | EVER},
    {CALL_write, EIO, ONCE | EVER | TRANSFER},
    {CALL_write, ENOSPC, ONCE | TRANSFER},
    {CALL_recv, EINTR, ONCE | HUNDRED},
    {CALL_recv, SHORT, ONCE | EVER},
    {CALL_recv, ENOMEM, ONCE | EVER},
    {CALL_recv, ECONNRESET, ONCE},
    {CALL_send, EINTR, ONCE | HUNDRED},
    {CALL_send, SHORT, ONCE | EVER},
    {CALL_send, ENOBUFS, ONCE | EVER},
    {CALL_send, EPIPE, ONCE},
    {CALL_accept4, EINTR, ONCE | HUNDRED},
    {CALL_accept4, ECONNABORTED, ONCE | HUNDRED},
    {CALL_accept4, EMFILE, ONCE | EVER},
    {CALL_accept4, ENFILE, ONCE},
    {CALL_accept4, ENOBUFS, ONCE},
    {CALL_accept4, EPERM, ONCE},
    {CALL_connect, EINTR, ONCE},
    {CALL_connect, ENETUNREACH, ONCE | EVER},
    {CALL_connect, EADDRNOTAVAIL, ONCE},
    {CALL_close, EINTR, ONCE},
    {CALL_close, EIO, ONCE},
    {CALL_fcntl, EBADF, ONCE | EVER},
    {CALL_fcntl, EPERM, ONCE},
    {CALL_fstat, ENOMEM, ONCE | EVER},
    {CALL_getsockopt, ENOBUFS, ONCE | EVER},
    {CALL_getrlimit, EPERM, ONCE},
    {CALL_prctl, EINVAL, ONCE},
    {CALL_signalfd, EMFILE, ONCE | EVER},
    {CALL_signalfd, ENFILE, ONCE},
    {CALL_signalfd, ENOMEM, ONCE},
    {CALL_sigtimedwait, EINTR, ONCE | HUNDRED},
    {CALL_sigtimedwait, EAGAIN, ONCE}, /* another thread was faster */
    {CALL_sysconf, EINVAL, ONCE | EVER},
    {CALL_dladdr, ENOENT, ONCE | EVER},
    {CALL_fputs, ENOSPC, ONCE | EVER},
    {CALL_fwrite, ENOSPC, ONCE},
    {CALL_fflush, ENOSPC, ONCE | EVER},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static const struct fault *current;
static size_t current_count;
static int failures;
static long passes;

/* Which faults are armed, for a report. */
static const char *what_fails(void)
{
    static char text[256];
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < current_count; i++) {
        const struct fault *fault = &current[i];

        length += (size_t)snprintf(
            text + length, sizeof(text) - length, "%s%s no. %ld, %ld times: %s",
            i ? "; " : "", call_names[fault->call], fault->first, fault->times,
            fault->error ? strerror(fault->error) : "one byte");
    }
    return current_count ? text : "nothing fails";
}

void sweep_holds(bool holds, const char *text, const char *file, int line)
{
    if (holds)
        return;
    failures++;
    (void)printf("[%s]\n%s:%d: %s\n", what_fails(), file, line, text);
    expect_at(0, text, file, line);
}

void sweep_came_back(int allowed, const char *text, const char *file, int line)
{
    if (!(allowed & SETS_ERRNO) && errno != KEPT_ERRNO) {
        (void)printf("errno is %d after:\n", errno);
        sweep_holds(false, text, file, line);
    }
}

/* What the library has to get over by itself. */
static bool is_passing(int error)
{
    return error == SHORT || error == EINTR || error == ECONNABORTED;
}

/* Whether the fault is a reason for that code. */
static bool explains(const struct fault *fault, int code, int allowed)
{
    bool memory = fault->call <= CALL_madvise || fault->call == CALL_memory;
    int error = fault->error;

    if (is_passing(error) && !memory)
        return false;
    return (allowed & NOMEM && memory && code == PX_ENOMEM) ||
           (allowed & NO_THREAD && code == PX_EAGAIN) ||
           (allowed & SYSTEM && code == -error) ||
           (allowed & SYSTEM && error == ENOENT && code == PX_EBADF);
}

static bool is_allowed(int code, int allowed)
{
    for (size_t i = 0; i < current_count; i++) {
        if (explains(&current[i], code, allowed))
            return true;
    }
    return false;
}

bool sweep_refused(int code, int allowed, bool unchanged, int tries,
                   const char *text, const char *file, int line)
{
    bool lasts = false;

    if (!inject_hit() || !is_allowed(code, allowed)) {
        (void)printf("%s: no code of:\n", err(code));
        sweep_holds(false, text, file, line);
    }
    if (!unchanged) {
        (void)printf("refused, but something has changed:\n");
        sweep_holds(false, text, file, line);
    }
    for (size_t i = 0; i < current_count; i++)
        lasts = lasts || current[i].times > 1;
    if (lasts && tries >= TRIES)
        inject_lift();
    if (tries <= TRIES + 2)
        return true;
    (void)printf("still refused when the fault is over:\n");
    sweep_holds(false, text, file, line);
    return false;
}

bool sweep_is_guarded(const char *at)
{
    int ends[2];
    bool guarded = false;

    if (__real_pipe2(ends, O_CLOEXEC) != 0)
        return false;
    guarded = __real_write(ends[1], at, 1) < 0 && errno == EFAULT;
    (void)__real_close(ends[0]);
    (void)__real_close(ends[1]);
    return guarded;
}

static void on_alarm(int number)
{
    const char *text = what_fails();

    (void)number;
    (void)!__real_write(2, "hangs: ", 7);
    (void)!__real_write(2, text, strlen(text));
    (void)!__real_write(2, "\n", 1);
    _exit(1);
}

static int run_once(const struct workload *workload, px_run_options options)
{
    int err = run_fibers_with(options, workload->real, workload->body, NULL);

    return err == PX_ESTALLED ? 0 : err;
}

/* A run, until it has started; its value is the body's. */
static void run(const struct workload *workload)
{
    int err, body = -1;
    px_run_options options = workload->options;

    options.result = &body;
    if (workload->off_fiber)
        err = body = workload->body(NULL);
    else
        UNTIL_OK(err, run_once(workload, options), NOMEM | SYSTEM, body == -1);
    HOLDS(err == 0 && body == 0);
}

void sweep_pass(const struct workload *workload, const struct fault *faults,
                size_t n)
{
    int descriptors;
    struct books before, after;

    current = faults;
    current_count = n;
    passes++;
    (void)signal(SIGALRM, on_alarm);
    (void)alarm(is_small() ? 20 * LONGEST_SECONDS : LONGEST_SECONDS);
    descriptors = open_descriptors();
    before = inject_books();
    if (workload->set_up)
        workload->set_up();
    inject_arm(faults, n);
    run(workload);
    inject_lift();
    if (workload->tear_down)
        workload->tear_down();
    after = inject_books();
    HOLDS(after.allocations == before.allocations);
    HOLDS(after.bytes_mapped == before.bytes_mapped);
    HOLDS(after.threads == before.threads);
    HOLDS(open_descriptors() == descriptors);
    (void)alarm(0);
}

static bool seen_enough(void)
{
    return failures >= ENOUGH;
}

/* Let the first fail, the second, ... until there are no more. Where a tool is
 * at work some are passed by. */
static void sweep_way(const struct workload *workload, const struct way *way,
                      long times)
{
    struct fault fault = {way->call, way->error, 1, times};

    do {
        sweep_pass(workload, &fault, 1);
        if (!inject_hit())
            break;
        fault.first += is_small() ? 2 * fault.first : 1;
    } while (!seen_enough());
}

/* The usual way of a call to fail, NULL if there is none. */
static const struct way *usual_way(enum call call)
{
    for (size_t i = 0; i < WAYS; i++) {
        if (ways[i].call == call)
            return &ways[i];
    }
    return NULL;
}

static void sweep_ways(const struct workload *workload,
                       const long calls[static CALLS])
{
    for (size_t i = 0; i < WAYS && !seen_enough(); i++) {
        const struct way *way = &ways[i];

        if (calls[way->call] == 0 || (way->how & TRANSFER && workload->wakes))
            continue;
        if (is_small() && way != usual_way(way->call))
            continue;
        if (way->how & ONCE)
            sweep_way(workload, way, 1);
        if (way->how & HUNDRED)
            sweep_way(workload, way, 100);
        if (way->how & EVER)
            sweep_way(workload, way, FOR_EVER);
    }
}

static void sweep_pair(const struct workload *workload, const struct way *a,
                       long most_a, const struct way *b, long most_b)
{
    for (long n = 1; n <= most_a; n++) {
        for (long m = a == b ? n + 1 : 1; m <= most_b && !seen_enough(); m++) {
            const struct fault faults[] = {{a->call, a->error, n, 1},
                                           {b->call, b->error, m, 1}};

            sweep_pass(workload, faults, 2);
        }
    }
}

static void sweep_pairs(const struct workload *workload,
                        const long calls[static CALLS])
{
    long sum = 0;

    for (int i = 0; i < CALL_memory; i++)
        sum += calls[i];
    if (sum >= FEW || is_small())
        return;
    for (int i = 0; i < CALL_memory; i++) {
        for (int j = i; j < CALL_memory; j++) {
            const struct way *a = usual_way((enum call)i);
            const struct way *b = usual_way((enum call)j);

            if (a && b)
                sweep_pair(workload, a, calls[i], b, calls[j]);
        }
    }
}

void sweep(const struct workload *workload)
{
    long calls[CALLS], sum = 0;

    failures = 0;
    passes = 0;
    sweep_pass(workload, NULL, 0); /* what is done once in a process */
    sweep_pass(workload, NULL, 0);
    for (int i = 0; i < CALLS; i++) {
        calls[i] = inject_count((enum call)i);
        sum += i < CALL_memory ? calls[i] : 0;
    }
    assert_true(sum > 0);
    sweep_ways(workload, calls);
    sweep_pairs(workload, calls);
    print_message("%ld calls, %ld passes\n", sum, passes);
    assert_log("");
}

/* --- The first run of a process ------------------------------------------- */

static void first_run(const struct workload *workload,
                      const struct fault *fault, bool *was_hit)
{
    int status;
    pid_t child;

    (void)fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        sweep_pass(workload, fault, 1);
        _exit(failures ? 1 : inject_hit() ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_not_equal(WEXITSTATUS(status), 1);
    *was_hit = WEXITSTATUS(status) == 0;
    passes++;
}

void sweep_first_runs(const struct workload *workload)
{
    passes = 0;
    for (size_t i = 0; i < WAYS; i++) {
        struct fault fault = {ways[i].call, ways[i].error, 1, 1};
        bool was_hit = true;

        for (; was_hit; fault.first++)
            first_run(workload, &fault, &was_hit);
        fault = (struct fault){ways[i].call, ways[i].error, 1, FOR_EVER};
        if (ways[i].how & EVER)
            first_run(workload, &fault, &was_hit);
    }
    print_message("%ld processes\n", passes);
}
