/* SPDX-License-Identifier: MIT */
/*
 * test_io_fork.c - a child process leaves the descriptors and signals that the
 * parent's run waits for alone, and may have a run of its own.
 */
#define _GNU_SOURCE 1

#include "px_test_io.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

/* In the child a check that fails is its exit status: the line. */
#define CHILD_EXPECT(condition)                                                \
    do {                                                                       \
        if (!(condition))                                                      \
            _exit(__LINE__ % 255 + 1);                                         \
    } while (0)

/* Wait for the child and expect that it was content. */
static void expect_content(pid_t child)
{
    int status = 0;

    EXPECT(child > 0);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

struct ends {
    int reading[2], waiting[2];
};

static int waits_in_the_child(void *arg)
{
    int ends[2];
    char byte;

    (void)arg;
    CHILD_EXPECT(pipe2(ends, O_NONBLOCK) == 0);
    struct transfer t = {.fd = ends[0], .n = 1};
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    CHILD_EXPECT(px_spawn(NULL, read_it, &t) == 0);
    CHILD_EXPECT(px_spawn(NULL, wait_for_it, &w) == 0);
    CHILD_EXPECT(px_sleep(PX_SEC) == 0);
    CHILD_EXPECT(!t.done && !w.done);
    CHILD_EXPECT(write(ends[1], "xy", 2) == 2);
    CHILD_EXPECT(px_sleep(PX_SEC) == 0);
    CHILD_EXPECT(t.result == 1 && w.result == PX_READABLE);
    CHILD_EXPECT(px_read(ends[0], &byte, 1) == 1 && byte == 'y');
    CHILD_EXPECT(px_close(ends[0]) == 0 && px_close(ends[1]) == 0);
    return 42;
}

static void run_in_the_child(void)
{
    px_run_options options = {.clock = PX_CLOCK_VIRTUAL};

    CHILD_EXPECT(px_run_with(&options, waits_in_the_child, NULL) == 42);
}

/* Everything that could touch the parent's registrations. */
static void use_the_parents(const struct ends *e)
{
    char byte;

    CHILD_EXPECT(px_current_id() == PX_NO_FIBER);
    CHILD_EXPECT(px_self() == NULL);
    CHILD_EXPECT(px_current_loop() == NULL);
    CHILD_EXPECT(px_read(e->reading[0], &byte, 1) == PX_ENOFIBER);
    CHILD_EXPECT(px_wait_fd(e->waiting[0], PX_READABLE) == PX_ENOFIBER);
    CHILD_EXPECT(px_yield() == PX_ENOFIBER);
    CHILD_EXPECT(px_sleep(1) == PX_ENOFIBER);
    CHILD_EXPECT(px_offload(waits_in_the_child, NULL) == PX_ENOFIBER);
    CHILD_EXPECT(px_close(e->reading[0]) == 0);
    CHILD_EXPECT(px_close(e->waiting[0]) == 0);
}

static int forks(void *arg)
{
    struct ends e;
    pid_t child;

    (void)arg;
    open_pipe(e.reading, O_NONBLOCK);
    open_pipe(e.waiting, 0);
    struct transfer t = {.fd = e.reading[0]};
    struct waiting w = {.fd = e.waiting[0], .events = PX_READABLE};
    start(read_it, &t);
    start(wait_for_it, &w);
    settle();
    child = fork();
    if (child == 0) {
        use_the_parents(&e);
        run_in_the_child(); /* its pipe has the numbers just closed */
        _exit(0);
    }
    expect_content(child);
    settle();
    EXPECT(!t.done && !w.done);
    put(e.reading[1], 'r');
    put(e.waiting[1], 'w');
    settle();
    EXPECT_EQ(t.result, 1);
    EXPECT_EQ(t.bytes[0], 'r');
    EXPECT_EQ(w.result, PX_READABLE);

    /* And the registrations are as good as ever. */
    t.done = w.done = false;
    EXPECT_EQ(take(e.waiting[0]), 'w');
    start(read_it, &t);
    start(wait_for_it, &w);
    settle();
    EXPECT(!t.done && !w.done);
    put(e.reading[1], 'R');
    put(e.waiting[1], 'W');
    settle();
    EXPECT_EQ(t.bytes[0], 'R');
    EXPECT_EQ(w.result, PX_READABLE);
    px_close_both(e.reading);
    px_close_both(e.waiting);
    return 0;
}

static void R118_a_child_leaves_the_parents_descriptors_alone(void **state)
{
    (void)state;
    check(forks);
}

static int forks_before_the_data(void *arg)
{
    int ends[2], go[2];
    pid_t child;

    (void)arg;
    open_pipe(ends, O_NONBLOCK);
    open_pipe(go, 0);
    child = fork();
    if (child == 0) {
        char byte;

        CHILD_EXPECT(read(go[0], &byte, 1) == 1);
        run_in_the_child();
        CHILD_EXPECT(write(ends[1], "x", 1) == 1);
        _exit(0);
    }
    struct transfer t = {.fd = ends[0]};
    px_fiber *fiber = start_handle(read_it, &t);
    put(go[1], 'x');
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(t.result, 1);
    expect_content(child);
    px_close_both(ends);
    close_both(go);
    return 0;
}

static void parent_and_child_each_have_a_run_and_share_a_pipe(void **state)
{
    (void)state;
    check(forks_before_the_data);
}

static int offloads_nothing(void *arg)
{
    (void)arg;
    return 5;
}

static int offloads_in_the_child(void *arg)
{
    (void)arg;
    return px_offload(offloads_nothing, NULL);
}

static int forks_with_an_idle_pool(void *arg)
{
    pid_t child;

    (void)arg;
    EXPECT_EQ(px_offload(offloads_nothing, NULL), 5);
    child = fork();
    if (child == 0) {
        CHILD_EXPECT(px_run(offloads_in_the_child, NULL) == 5);
        _exit(0);
    }
    expect_content(child);
    EXPECT_EQ(px_offload(offloads_nothing, NULL), 5);
    return 0;
}

static void a_run_in_the_child_has_a_pool_of_its_own(void **state)
{
    (void)state;
    if (is_emulated()) {
        print_message("skipped: a thread in a forked child ends emulators\n");
        skip();
    }
    check(forks_with_an_idle_pool);
}

/* ---- signals ---- */

struct listening {
    sigset_t set;
    int result;
    bool done;
};

static int listen_for_it(void *arg)
{
    struct listening *l = arg;

    l->result = px_wait_signal(&l->set);
    l->done = true;
    return 0;
}

static int forks_while_listening(void *arg)
{
    struct listening l = {.done = false};
    pid_t child;
    int status = 0;

    (void)arg;
    (void)sigemptyset(&l.set);
    (void)sigaddset(&l.set, SIGUSR1);
    start(listen_for_it, &l);
    settle();
    child = fork();
    if (child == 0) {
        (void)pthread_sigmask(SIG_UNBLOCK, &l.set, NULL);
        (void)raise(SIGUSR1);
        _exit(0);
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
    settle();
    EXPECT(!l.done);
    EXPECT_EQ(kill(getpid(), SIGUSR1), 0);
    settle();
    EXPECT_EQ(l.result, SIGUSR1);
    return 0;
}

static void
R120_the_child_dies_of_a_signal_that_the_parent_waits_for(void **state)
{
    sigset_t set, before;

    (void)state;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, &before), 0);
    check(forks_while_listening);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(R118_a_child_leaves_the_parents_descriptors_alone),
    PX_TEST(parent_and_child_each_have_a_run_and_share_a_pipe),
    PX_TEST(a_run_in_the_child_has_a_pool_of_its_own),
    PX_TEST(R120_the_child_dies_of_a_signal_that_the_parent_waits_for),
};

PX_TEST_MAIN(tests)
