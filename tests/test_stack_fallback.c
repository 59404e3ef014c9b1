/* SPDX-License-Identifier: MIT */
/*
 * test_stack_fallback.c - guards as they are made where the kernel has no light
 * ones: with mprotect(), two mappings each, of which there is a limit.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stack.h"
#include "support/px_scale.h"
#include "support/px_test.h"

static char output[4096];

static int setup(void **state)
{
    px__stack_no_light_guards = true;
    return px_test_setup(state);
}

static int teardown(void **state)
{
    px__stack_no_light_guards = false;
    return px_test_teardown(state);
}

static int mappings(void)
{
    int lines = 0;
    int c;
    FILE *file = fopen("/proc/self/maps", "r");

    if (!file)
        return 0;
    while ((c = getc(file)) != EOF)
        lines += c == '\n';
    (void)fclose(file);
    return lines;
}

static long most_mappings(void)
{
    long most = 0;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "r");

    if (!file)
        return 0;
    if (fscanf(file, "%ld", &most) != 1)
        most = 0;
    (void)fclose(file);
    return most;
}

static int down(void *arg)
{
    return px_sem_down(arg);
}

static int spawn_a_hundred(void *arg)
{
    px_sem gate = PX_SEM_INIT(0);
    int before = mappings();

    (void)arg;
    for (int i = 0; i < 100; i++)
        start(down, &gate);
    note("%d", mappings() - before);
    EXPECT_EQ(px_sem_up_n(&gate, 100), 0);
    return px_sleep(1);
}

static void these_guards_are_mappings(void **state)
{
    (void)state;
    if (is_small()) {
        print_message("skipped: this tool has mappings of its own\n");
        skip();
    }
    run_fibers(spawn_a_hundred, NULL);
    assert_in_range(atoi(log_text()), 150, 250);
}

static int spawn_until_refused(void *arg)
{
    px_fiber **all = arg;
    px_sem gate = PX_SEM_INIT(0);
    int n = 0;
    int error = 0;

    while (n < 40000 && (error = px_spawn(&all[n], down, &gate)) == 0)
        n++;
    EXPECT_EQ(error, PX_ENOMEM);
    EXPECT(n > 20000 && n < 40000);
    EXPECT_EQ(px_spawn(&all[n], down, &gate), PX_ENOMEM); /* and again */
    EXPECT_EQ(px_sem_waiters(&gate), n);
    /* those that are there are none the worse for it, and make room */
    EXPECT_EQ(px_cancel_and_await(all[--n], NULL), 0);
    EXPECT_EQ(px_spawn(&all[n], down, &gate), 0);
    n++;
    for (int i = 0; i < n; i++) {
        int value = 0;

        EXPECT_EQ(px_cancel_and_await(all[i], &value), 0);
        EXPECT_EQ(value, PX_ECANCELED);
    }
    EXPECT_EQ(px_sem_waiters(&gate), 0);
    return 0;
}

static void R145_beyond_the_limit_of_mappings_a_spawn_is_refused(void **state)
{
    long most = most_mappings();
    px_fiber **all;

    (void)state;
    if (has_shadow() || most == 0 || most > 79000) {
        print_message("skipped: the limit of mappings is out of reach\n");
        skip();
    }
    all = calloc(40001, sizeof(px_fiber *));
    assert_non_null(all);
    run_fibers(spawn_until_refused, all);
    free(all);
    assert_log("");
}

static __attribute__((noinline)) int recurse(volatile int *depth)
{
    volatile char room[1024];

    room[0] = (char)*depth;
    if (++*depth > 0)
        room[1] = (char)recurse(depth);
    return room[0] + room[1];
}

static int overflow(void *arg)
{
    volatile int depth = 0;

    (void)arg;
    return px_set_name(px_self(), "deep") || px_yield() || recurse(&depth);
}

static int spawn_overflow(void *arg)
{
    px_fiber *fiber = NULL;
    px_sem gate = PX_SEM_INIT(0);

    for (int i = 0; i < 20; i++) {
        if (px_spawn(NULL, down, &gate) ||
            (i == 10 && px_spawn(&fiber, overflow, arg)))
            return 1;
    }
    return px_await(fiber, NULL);
}

static void run_overflow(void *arg)
{
    const struct rlimit none = {0, 0};

    (void)setrlimit(RLIMIT_CORE, &none);
    (void)signal(SIGSEGV, SIG_DFL);
    (void)signal(SIGBUS, SIG_DFL);
    _exit(px_run(spawn_overflow, arg) ? 2 : 3);
}

static void R144_an_overflow_is_reported_all_the_same(void **state)
{
    int status = in_child(run_overflow, NULL, output, sizeof(output));

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    assert_non_null(strstr(output, "stack overflow in fiber 12 'deep'"));
}

#define FALLBACK_TEST(name)                                                    \
    cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
    /* first: the handler is installed with a process's first run */
    FALLBACK_TEST(R144_an_overflow_is_reported_all_the_same),
    FALLBACK_TEST(these_guards_are_mappings),
    FALLBACK_TEST(R145_beyond_the_limit_of_mappings_a_spawn_is_refused),
};

PX_TEST_MAIN(tests)
