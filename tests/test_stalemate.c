/* SPDX-License-Identifier: MIT */
/*
 * test_stalemate.c - a deadlock that goes on although everybody was told: the
 * process aborts with the report. Each end is that of a child process.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/px_test.h"

static char output[1 << 16];

static int count_of(const char *text, const char *word)
{
    int count = 0;

    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        count++;
    return count;
}

static int wait_for_ever(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    if (px_set_name(px_self(), "stubborn"))
        return 1;
    for (;;) {
        if (px_sem_down(&sem) != PX_ESTALLED)
            return 1;
    }
}

static int spawn_stubborn(void *arg)
{
    px_fiber *fiber = NULL;

    if (px_spawn(&fiber, wait_for_ever, arg))
        return 1;
    while (px_await(fiber, NULL) == PX_ESTALLED)
        continue;
    return 1;
}

static void be_quiet(void *ctx)
{
    (void)ctx;
}

static void run_stubborn(void *arg)
{
    px_run_options options;

    memset(&options, 0, sizeof(options));
    if (arg)
        options.on_deadlock = be_quiet;
    _exit(run_fibers_with(options, 0, spawn_stubborn, NULL) ? 2 : 3);
}

static void expect_abort(void (*fn)(void *), void *arg)
{
    int status = in_child(fn, arg, output, sizeof(output));

    if (!WIFSIGNALED(status))
        print_message("status %x, stderr: %s\n", (unsigned)status, output);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void a_thousand_rounds_without_an_end_abort_with_the_report(void **state)
{
    (void)state;
    expect_abort(run_stubborn, NULL);
    /* reported when it was found, and again at the end; not in between */
    assert_int_equal(count_of(output, "fiber 1 'stubborn' waits for semaphore"),
                     2);
    assert_int_equal(count_of(output, "fiber 0 waits for the end of fiber 1"),
                     2);
    assert_int_equal(count_of(output, "1000"), 1);
}

static void a_callback_does_not_take_the_last_report_away(void **state)
{
    int callback = 1;

    (void)state;
    expect_abort(run_stubborn, &callback);
    assert_int_equal(count_of(output, "fiber 1 'stubborn' waits for semaphore"),
                     1);
}

static int count_rounds(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    for (;;) {
        if (px_sem_down(&sem) != PX_ESTALLED)
            return 1;
        fprintf(stderr, "round\n");
    }
    (void)arg;
}

static void run_rounds(void *arg)
{
    px_run_options options;

    memset(&options, 0, sizeof(options));
    options.on_deadlock = be_quiet;
    (void)arg;
    _exit(run_fibers_with(options, 0, count_rounds, NULL) ? 2 : 3);
}

static void there_are_a_thousand_rounds_before_that(void **state)
{
    (void)state;
    expect_abort(run_rounds, NULL);
    assert_int_equal(count_of(output, "round\n"), 1000);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_thousand_rounds_without_an_end_abort_with_the_report),
    PX_TEST(a_callback_does_not_take_the_last_report_away),
    PX_TEST(there_are_a_thousand_rounds_before_that),
};

PX_TEST_MAIN(tests)
