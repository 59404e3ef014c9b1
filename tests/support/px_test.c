/* SPDX-License-Identifier: MIT */
/* px_test.c - see px_test.h. */
#include "px_test.h"

#include <dirent.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char log_buffer[1 << 16];
static size_t log_length;
static int failed_expectations;
static int descriptors_before;

void note(const char *format, ...)
{
    va_list args;
    size_t room = sizeof(log_buffer) - log_length;
    int written;

    va_start(args, format);
    written = vsnprintf(log_buffer + log_length, room, format, args);
    va_end(args);
    if (written > 0)
        log_length += (size_t)written < room ? (size_t)written : room - 1;
}

const char *log_text(void)
{
    return log_buffer;
}

void log_clear(void)
{
    log_length = 0;
    log_buffer[0] = '\0';
}

const char *err(int code)
{
    static char numbers[8][16];
    static unsigned next;
    static const struct {
        int code;
        const char *word;
    } words[] = {
        {0, "ok"},
        {PX_EINVAL, "invalid"},
        {PX_ENOMEM, "nomem"},
        {PX_EBUSY, "busy"},
        {PX_EAGAIN, "again"},
        {PX_EPERM, "perm"},
        {PX_EDEADLK, "deadlk"},
        {PX_EOVERFLOW, "overflow"},
        {PX_ETIMEDOUT, "timedout"},
        {PX_ECANCELED, "canceled"},
        {PX_EBADF, "badf"},
        {PX_EPIPE, "pipe"},
        {PX_ENOFIBER, "nofiber"},
        {PX_ENOTLOCKED, "notlocked"},
        {PX_ENEGATIVE, "negative"},
        {PX_ECLOSED, "closed"},
        {PX_ESTALLED, "stalled"},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (words[i].code == code)
            return words[i].word;
    }
    next = (next + 1) % 8;
    (void)snprintf(numbers[next], sizeof(numbers[0]), "%d", code);
    return numbers[next];
}

void assert_log_at(const char *expected, const char *file, int line)
{
    _assert_string_equal(log_buffer, expected, file, line);
    _assert_int_equal((LargestIntegralType)failed_expectations, 0, file, line);
}

void expect_at(int holds, const char *text, const char *file, int line)
{
    if (holds)
        return;
    failed_expectations++;
    (void)fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, text);
}

void expect_eq_at(long long actual, long long expected, const char *text,
                  const char *file, int line)
{
    if (actual == expected)
        return;
    failed_expectations++;
    (void)fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", file, line, text,
                  actual, expected);
}

int run_fibers_with(px_run_options options, int real, px_fn fn, void *arg)
{
    const char *seed = getenv("PX_TEST_SEED");

    if (!real)
        options.clock = PX_CLOCK_VIRTUAL;
    if (seed && options.shuffle_seed == 0)
        options.shuffle_seed = strtoull(seed, NULL, 0);
    return px_run_with(&options, fn, arg);
}

void run_fibers(px_fn fn, void *arg)
{
    px_run_options options;

    memset(&options, 0, sizeof(options));
    assert_int_equal(run_fibers_with(options, 0, fn, arg), 0);
}

void start(px_fn fn, void *arg)
{
    EXPECT_EQ(px_spawn(NULL, fn, arg), 0);
}

px_fiber *start_handle(px_fn fn, void *arg)
{
    px_fiber *fiber = NULL;

    EXPECT_EQ(px_spawn(&fiber, fn, arg), 0);
    return fiber;
}

void settle(void)
{
    EXPECT_EQ(px_sleep(1), 0);
}

void really_sleep(px_nsec duration)
{
    struct timespec rest = {duration / PX_SEC, duration % PX_SEC};

    while (nanosleep(&rest, &rest) != 0)
        continue;
}

int open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    if (!dir)
        return -1;
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

int in_child(void (*fn)(void *), void *arg, char *output, size_t size)
{
    int ends[2], status;
    size_t length = 0;
    ssize_t got;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    (void)fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(ends[0]);
        (void)dup2(ends[1], 2);
        (void)close(ends[1]);
        fn(arg);
        (void)fflush(NULL);
        _exit(0);
    }
    (void)close(ends[1]);
    while (length + 1 < size &&
           (got = read(ends[0], output + length, size - 1 - length)) > 0)
        length += (size_t)got;
    output[length] = '\0';
    (void)close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

int px_test_setup(void **state)
{
    (void)state;
    log_clear();
    failed_expectations = 0;
    descriptors_before = open_descriptors();
    return 0;
}

int px_test_teardown(void **state)
{
    int descriptors = open_descriptors();

    (void)state;
    if (descriptors != descriptors_before) {
        (void)fprintf(stderr, "descriptors: %d before, %d after\n",
                      descriptors_before, descriptors);
        return -1;
    }
    return failed_expectations ? -1 : 0;
}

int px_test_main(const char *name, const struct CMUnitTest *tests, size_t n)
{
    const char *filter = getenv("CMOCKA_TEST_FILTER");

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (filter)
        cmocka_set_test_filter(filter);
    return _cmocka_run_group_tests(name, tests, n, NULL, NULL);
}
