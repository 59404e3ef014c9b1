/* SPDX-License-Identifier: MIT */
/*
 * test_threads.c - each thread has its own run.
 *
 * The first test comes first on purpose: what is set up once per process is
 * set up by several threads at once.
 */
#include <pthread.h>
#include <unistd.h>

#include "support/px_test.h"

static int down(void *arg)
{
    return px_sem_down(arg);
}

static int be_busy(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_fiber *all[20];
    int turns_taken = 0;

    for (int i = 0; i < 20; i++) {
        if (px_spawn(&all[i], down, &sem))
            return -1;
    }
    for (int i = 0; i < 2000; i++)
        turns_taken += px_sleep(i % 3) == 0;
    if (px_sem_up_n(&sem, 20) || px_await_all(all, 20, NULL))
        return -2;
    (void)arg;
    return turns_taken;
}

static void *run_busy(void *arg)
{
    px_run_options options;

    memset(&options, 0, sizeof(options));
    options.clock = PX_CLOCK_VIRTUAL;
    *(int *)arg = px_run_with(&options, be_busy, NULL);
    return NULL;
}

static void many_threads_run_at_once(void **state)
{
    pthread_t threads[16];
    int values[16];

    (void)state;
    for (int i = 0; i < 16; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, run_busy, &values[i]), 0);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(values[i], 2000);
    }
}

static int give(void *arg)
{
    return *(int *)arg;
}

static void *run_on_thread(void *arg)
{
    return (void *)(intptr_t)px_run(give, arg);
}

static int let_a_thread_run(void *arg)
{
    pthread_t thread;
    void *value = NULL;

    EXPECT_EQ(pthread_create(&thread, NULL, run_on_thread, arg), 0);
    EXPECT_EQ(pthread_join(thread, &value), 0);
    EXPECT_EQ((intptr_t)value, *(int *)arg);
    EXPECT_EQ(px_yield(), 0);
    EXPECT_EQ(px_current_id(), 0);
    return 0;
}

static void a_run_on_another_thread_is_fine(void **state)
{
    int value = 42;

    (void)state;
    run_fibers(let_a_thread_run, &value);
    assert_log("");
}

static int stall(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    return px_sem_down(&sem);
}

static void dump_to_file(void *file)
{
    (void)px_dump(file);
}

static void *run_on_little_stack(void *arg)
{
    px_run_options options;

    memset(&options, 0, sizeof(options));
    options.on_deadlock = dump_to_file;
    options.ctx = arg;
    return (void *)(intptr_t)px_run_with(&options, stall, NULL);
}

static void a_run_needs_little_of_its_threads_stack(void **state)
{
    FILE *file = tmpfile();
    pthread_attr_t attributes;
    pthread_t thread;
    void *value = NULL;
    long least = sysconf(_SC_THREAD_STACK_MIN); /* more on some processors */
    size_t size = least > 64 * 1024 ? (size_t)least : (size_t)64 * 1024;

    (void)state;
    assert_non_null(file);
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, size), 0);
    assert_int_equal(
        pthread_create(&thread, &attributes, run_on_little_stack, file), 0);
    assert_int_equal(pthread_join(thread, &value), 0);
    assert_int_equal(pthread_attr_destroy(&attributes), 0);
    assert_int_equal((intptr_t)value, PX_ESTALLED);
    assert_true(ftell(file) > 20);
    (void)fclose(file);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(many_threads_run_at_once),
    PX_TEST(a_run_on_another_thread_is_fine),
    PX_TEST(a_run_needs_little_of_its_threads_stack),
};

PX_TEST_MAIN(tests)
