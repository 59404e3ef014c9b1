/* SPDX-License-Identifier: MIT */
/*
 * test_abort.c - misuse that no code can report ends the process, with one
 * line naming the function, the fiber and the cause; and what exit(), abort()
 * and pthread_exit() do in a fiber.
 *
 * Each end is that of a child process, whose standard error is read.
 */
#include <pthread.h>
#include <unistd.h>

#include "support/px_death.h"

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int return_with_open_group(void *arg)
{
    px_group group;

    if (px_set_name(px_self(), "careless") || px_group_open(&group))
        return 1;
    if (arg && px_group_spawn(&group, nothing, NULL))
        return 1;
    return 0;
}

static int spawn_careless(void *arg)
{
    px_fiber *fiber = NULL;

    if (px_spawn(NULL, nothing, NULL) ||
        px_spawn(&fiber, return_with_open_group, arg))
        return 1;
    return px_await(fiber, NULL);
}

static void run_careless_main(void *arg)
{
    (void)px_run(return_with_open_group, arg);
}

static void run_careless_child(void *arg)
{
    (void)px_run(spawn_careless, arg);
}

static void returning_with_an_open_group_aborts_naming_the_fiber(void **state)
{
    (void)state;
    for (int with_child = 0; with_child < 2; with_child++) {
        void *arg = with_child ? state : NULL;

        expect_abort(run_careless_main, arg);
        expect_one_line();
        expect_said("fiber 0 'careless'");
        expect_said("group");
        expect_abort(run_careless_child, arg);
        expect_one_line();
        expect_said("fiber 2 'careless'");
        expect_said("group");
    }
}

static int return_inside_group_and_scope(void *arg)
{
    px_group group;
    px_scope scope;

    (void)arg;
    return px_group_open(&group) || px_scope_enter(&scope, PX_SEC);
}

static void run_inside_both(void *arg)
{
    (void)px_run(return_inside_group_and_scope, arg);
}

static void an_open_group_is_found_behind_a_scope(void **state)
{
    (void)state;
    expect_abort(run_inside_both, NULL);
    expect_one_line();
    expect_said("fiber 0");
    expect_said("group");
}

static int exit_thread(void *arg)
{
    if (px_set_name(px_self(), "leaver") || px_yield())
        return 1;
    pthread_exit(arg);
}

static int spawn_leaver(void *arg)
{
    px_fiber *fiber = NULL;

    if (px_spawn(&fiber, exit_thread, arg))
        return 1;
    return px_await(fiber, NULL);
}

static void run_leaver(void *arg)
{
    (void)px_run(exit_thread, arg);
}

static void *run_leaver_in_thread(void *arg)
{
    (void)px_run(spawn_leaver, arg);
    return NULL;
}

static void run_leaving_thread(void *arg)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run_leaver_in_thread, arg))
        _exit(1);
    (void)pthread_join(thread, NULL);
}

static void pthread_exit_in_a_fiber_aborts(void **state)
{
    (void)state;
    expect_abort(run_leaver, NULL);
    expect_said("fiber 0 'leaver'");
    expect_said("pthread_exit");
    expect_one_line();
    expect_abort(run_leaving_thread, NULL);
    expect_said("fiber 1 'leaver'");
    expect_said("pthread_exit");
    expect_one_line();
}

static uintptr_t exiting_at; /* on the stack of who calls exit() */

/* On the same stack, a few frames further down. */
static void say_goodbye(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    if (here < exiting_at && exiting_at - here < 8192)
        (void)!write(2, "goodbye", 7);
}

static int exit_process(void *arg)
{
    if (px_yield())
        return 1;
    exiting_at = (uintptr_t)__builtin_frame_address(0);
    exit(*(int *)arg);
}

static int exit_in_child_fiber(void *arg)
{
    px_fiber *fiber = NULL;

    if (px_spawn(NULL, exit_process, arg) || px_spawn(&fiber, nothing, NULL))
        return 1;
    return px_sleep(PX_SEC);
}

static void run_and_exit(void *arg)
{
    (void)atexit(say_goodbye);
    (void)px_run(exit_process, arg);
}

static void run_and_exit_in_child_fiber(void *arg)
{
    (void)atexit(say_goodbye);
    (void)px_run(exit_in_child_fiber, arg);
}

static void exit_in_a_fiber_runs_the_exit_handlers(void **state)
{
    int value = 9;
    int status;

    (void)state;
    status = in_child(run_and_exit, &value, death_note, sizeof(death_note));
    assert_true(WIFEXITED(status));
    /* a leak checker that looks at the end may have another opinion */
    assert_true(WEXITSTATUS(status) == 9 || PX_UNDER_ASAN);
    assert_int_equal(strncmp(death_note, "goodbye", 7), 0);
    status = in_child(run_and_exit_in_child_fiber, &value, death_note,
                      sizeof(death_note));
    assert_true(WIFEXITED(status));
    assert_true(WEXITSTATUS(status) == 9 || PX_UNDER_ASAN);
    assert_int_equal(strncmp(death_note, "goodbye", 7), 0);
}

static int abort_here(void *arg)
{
    (void)arg;
    if (px_yield())
        return 1;
    abort();
}

static void run_and_abort(void *arg)
{
    (void)px_run(abort_here, arg);
}

static void abort_in_a_fiber_is_an_abort(void **state)
{
    (void)state;
    expect_abort(run_and_abort, NULL);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(returning_with_an_open_group_aborts_naming_the_fiber),
    PX_TEST(an_open_group_is_found_behind_a_scope),
    PX_TEST(pthread_exit_in_a_fiber_aborts),
    PX_TEST(exit_in_a_fiber_runs_the_exit_handlers),
    PX_TEST(abort_in_a_fiber_is_an_abort),
};

PX_TEST_MAIN(tests)
