/* SPDX-License-Identifier: MIT */
/*
 * test_fork.c - in a forked child the run does not exist.
 *
 * A child reports by its exit status: 0, or the number of a check that failed.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/px_scale.h"
#include "support/px_test.h"

static int checks_failed;

#define CHECK(condition)                                                       \
    ((condition) ? (void)0                                                     \
                 : (void)(checks_failed++,                                     \
                          fprintf(stderr, "%s:%d: in the child: %s\n",         \
                                  __FILE__, __LINE__, #condition)))

/* Fork in the calling fiber; the child runs fn and ends with its checks. */
static int status_of_child(void (*fn)(void *), void *arg)
{
    int status = -1;
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        checks_failed = 0;
        fn(arg);
        _exit(checks_failed > 100 ? 100 : checks_failed);
    }
    EXPECT(pid > 0);
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return status;
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int set(void *arg)
{
    *(int *)arg = 1;
    return 0;
}

static int sleep_then_set(void *arg)
{
    EXPECT_EQ(px_sleep(10), 0);
    return set(arg);
}

static int down(void *arg)
{
    return px_sem_down(arg);
}

/* --- What is not there ---------------------------------------------------- */

static void be_off_fiber(void *arg)
{
    px_fiber *fiber = NULL;
    px_mutex lock = PX_MUTEX_INIT;
    px_waitgroup wg = PX_WAITGROUP_INIT(0);
    px_sem sem = PX_SEM_INIT(0);
    px_scope scope;
    px_group group;

    (void)arg;
    CHECK(px_current_id() == PX_NO_FIBER);
    CHECK(px_self() == NULL);
    CHECK(px_current_loop() == NULL);
    CHECK(px_check() == 0); /* although a scope around the fork has fired */
    CHECK(px_deadline() == PX_FOREVER);
    CHECK(px_now() > 1000); /* the real clock's, not the virtual one's */
    CHECK(px_yield() == PX_ENOFIBER);
    CHECK(px_sleep(1) == PX_ENOFIBER);
    CHECK(px_sleep_until(0) == PX_ENOFIBER);
    CHECK(px_spawn(&fiber, nothing, NULL) == PX_ENOFIBER);
    CHECK(fiber == NULL);
    CHECK(px_stop() == PX_ENOFIBER);
    CHECK(px_dump(stderr) == PX_ENOFIBER);
    CHECK(px_scope_enter(&scope, 1) == PX_ENOFIBER);
    CHECK(px_with_timeout(1, nothing, NULL) == PX_ENOFIBER);
    CHECK(px_group_open(&group) == PX_ENOFIBER);
    CHECK(px_mutex_lock(&lock) == PX_ENOFIBER);
    CHECK(px_waitgroup_wait(&wg) == PX_ENOFIBER);
    CHECK(px_sem_down(&sem) == PX_ENOFIBER);
    CHECK(px_sem_up(&sem) == 0);
    CHECK(px_sem_down(&sem) == 0);
    CHECK(px_offload(nothing, NULL) == PX_ENOFIBER);
}

static int fork_in_scope(void *arg)
{
    px_scope scope;

    (void)arg;
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(status_of_child(be_off_fiber, NULL), 0);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_yield(), 0);
    return 0;
}

static int fork_everywhere(void *arg)
{
    px_fiber *fiber = start_handle(fork_in_scope, arg);

    EXPECT_EQ(fork_in_scope(arg), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    return 0;
}

static void in_a_forked_child_the_run_does_not_exist(void **state)
{
    (void)state;
    run_fibers(fork_everywhere, NULL);
    assert_log("");
}

/* --- What a child may do -------------------------------------------------- */

static int child_body(void *arg)
{
    px_fiber *fiber = NULL;
    int ran = 0;

    CHECK(px_current_id() == 0);
    CHECK(px_check() == 0);
    CHECK(px_now() == 0);
    CHECK(px_spawn(&fiber, sleep_then_set, &ran) == 0);
    CHECK(px_id(fiber) == 1);
    CHECK(px_await(fiber, NULL) == 0);
    CHECK(px_now() == 10);
    CHECK(ran == 1);
    (void)arg;
    return 33;
}

static void run_anew(void *arg)
{
    const int *parents_ran = arg;
    px_run_options options;

    memset(&options, 0, sizeof(options));
    for (int i = 0; i < 2; i++) {
        CHECK(run_fibers_with(options, 0, child_body, NULL) == 33);
        CHECK(px_current_id() == PX_NO_FIBER);
    }
    CHECK(*parents_ran == 0); /* no fiber of the parent ever runs here */
}

static int fork_with_others_ready(void *arg)
{
    px_spawn_options queued;
    int ran = 0;

    (void)arg;
    memset(&queued, 0, sizeof(queued));
    queued.queued = true;
    EXPECT_EQ(px_spawn_with(NULL, &queued, set, &ran), 0);
    start(sleep_then_set, &ran);
    EXPECT_EQ(status_of_child(run_anew, &ran), 0);
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(px_sleep(20), 0);
    EXPECT_EQ(ran, 1);
    return 0;
}

static void
R118_a_child_may_run_anew_and_runs_none_of_its_parents_fibers(void **state)
{
    (void)state;
    run_fibers(fork_with_others_ready, NULL);
    assert_log("");
}

static void execute(void *arg)
{
    (void)arg;
    (void)execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
    CHECK(!"exec works");
}

static int fork_and_exec(void *arg)
{
    int status = status_of_child(execute, arg);

    EXPECT(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 7);
    return px_sleep(1);
}

static void a_child_may_exec(void **state)
{
    (void)state;
    run_fibers(fork_and_exec, NULL);
    assert_log("");
}

static void use_parents_objects(void *arg)
{
    px_sem *sem = arg;

    CHECK(px_sem_waiters(sem) == 1);
    CHECK(px_sem_up(sem) == 0); /* must not run the parent's waiter here */
    run_anew(&(int){0});
}

static int fork_with_a_waiter(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_fiber *fiber = start_handle(down, &sem);
    int value = 1;

    (void)arg;
    EXPECT_EQ(status_of_child(use_parents_objects, &sem), 0);
    EXPECT_EQ(px_sem_waiters(&sem), 1); /* the child's were copies */
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, 0);
    return 0;
}

static void releasing_in_a_child_runs_no_fiber_of_the_parent(void **state)
{
    (void)state;
    run_fibers(fork_with_a_waiter, NULL);
    assert_log("");
}

#define PAIRS 4

/* The numbers that its copy of the loop had are these sockets' now. */
static void post_to_the_parents_loop(void *arg)
{
    int pairs[PAIRS][2];
    char byte;

    for (int i = 0; i < PAIRS; i++)
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pairs[i]) ==
              0);
    CHECK(px_post(arg, nothing, NULL) == 0);
    CHECK(px_loop_hold(arg) == 0);
    CHECK(px_loop_unhold(arg) == 0);
    for (int i = 0; i < PAIRS; i++) {
        CHECK(read(pairs[i][0], &byte, 1) == -1);
        CHECK(read(pairs[i][1], &byte, 1) == -1);
    }
}

static int fork_and_post(void *arg)
{
    (void)arg;
    EXPECT_EQ(status_of_child(post_to_the_parents_loop, px_current_loop()), 0);
    return 0;
}

static void a_post_in_a_child_writes_to_no_file_of_its_own(void **state)
{
    (void)state;
    run_fibers(fork_and_post, NULL);
    assert_log("");
}

/* What this thread has not opened is still open. */
static void close_and_post(void *arg)
{
    for (int fd = 3; fd < 64; fd++)
        (void)close(fd);
    post_to_the_parents_loop(arg);
}

static int fork_and_close(void *loop)
{
    return status_of_child(close_and_post, loop);
}

static int fork_elsewhere_and_post(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_offload(fork_and_close, px_current_loop()), 0);
    return 0;
}

static void nor_does_one_in_a_child_of_another_thread(void **state)
{
    (void)state;
    run_fibers(fork_elsewhere_and_post, NULL);
    assert_log("");
}

static int offload_in_child(void *arg)
{
    (void)arg;
    CHECK(px_offload(nothing, NULL) == 0);
    return 0;
}

static void run_and_offload(void *arg)
{
    CHECK(px_run(offload_in_child, arg) == 0);
}

static int fork_beside_idle_threads(void *arg)
{
    EXPECT_EQ(px_offload(nothing, arg), 0); /* its thread is there, and idle */
    EXPECT_EQ(status_of_child(run_and_offload, arg), 0);
    EXPECT_EQ(px_offload(nothing, arg), 0);
    return 0;
}

static void a_child_has_threads_of_its_own_to_offload_to(void **state)
{
    (void)state;
#ifndef __x86_64__
    if (is_small()) {
        print_message("skipped: a thread in a forked child ends emulators\n");
        skip();
    }
#endif
    run_fibers(fork_beside_idle_threads, NULL);
    assert_log("");
}

/* --- Descriptors ---------------------------------------------------------- */

static int wait_for_x(void *arg)
{
    const int *ends = arg;
    char byte = 0;

    CHECK(px_wait_fd(ends[0], PX_READABLE) == PX_READABLE);
    CHECK(read(ends[0], &byte, 1) == 1);
    CHECK(byte == 'x');
    return 0;
}

static int write_x(void *arg)
{
    const int *ends = arg;

    CHECK(px_sleep(PX_MSEC) == 0);
    CHECK(write(ends[1], "x", 1) == 1);
    return 0;
}

static int child_io(void *arg)
{
    const int *parents = arg;
    int ends[2];
    px_fiber *fiber = NULL;

    /* a pipe of its own behind the numbers of the parent's */
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    CHECK(dup2(ends[0], parents[0]) == parents[0]);
    CHECK(dup2(ends[1], parents[1]) == parents[1]);
    CHECK(px_spawn(&fiber, wait_for_x, arg) == 0);
    CHECK(write_x(arg) == 0);
    CHECK(px_await(fiber, NULL) == 0);
    return 0;
}

static void run_io(void *arg)
{
    CHECK(px_run(child_io, arg) == 0);
}

static int wait_and_note(void *arg)
{
    checks_failed = 0;
    EXPECT_EQ(wait_for_x(arg), 0);
    EXPECT_EQ(checks_failed, 0);
    note("parent's event ");
    return 0;
}

static int fork_beside_a_waiter(void *arg)
{
    int *ends = arg;
    px_fiber *fiber = start_handle(wait_and_note, ends);

    EXPECT_EQ(px_sleep(PX_MSEC), 0); /* it is registered by now */
    EXPECT_EQ(status_of_child(run_io, ends), 0);
    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    EXPECT(!px_is_done(fiber)); /* nothing of the child's has come here */
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    return 0;
}

static void R118_the_parents_descriptors_are_not_touched(void **state)
{
    px_run_options options;
    int ends[2];

    (void)state;
    memset(&options, 0, sizeof(options));
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    for (int real = 0; real < 2; real++) {
        log_clear();
        assert_int_equal(
            run_fibers_with(options, real, fork_beside_a_waiter, ends), 0);
        assert_log("parent's event ");
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* --- Signals -------------------------------------------------------------- */

static int sleep_long(void *arg)
{
    const int *ends = arg;

    CHECK(write(ends[1], "r", 1) == 1); /* ready to be killed */
    CHECK(px_sleep(60 * PX_SEC) == 0);
    return 0;
}

static int fork_and_kill(void *arg)
{
    const int *ends = arg;
    int status = 0;
    char byte = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(px_run(sleep_long, arg));
    EXPECT(pid > 0);
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
    EXPECT_EQ(kill(pid, SIGINT), 0);
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGINT);
    return px_sleep(1);
}

static void R120_an_interrupted_child_dies_of_it(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    run_fibers(fork_and_kill, ends);
    assert_log("");
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* --- Returning where it must not ------------------------------------------ */

static int fork_and_return(void *arg)
{
    int status = 0;
    pid_t pid = fork();

    (void)arg;
    if (pid == 0) {
        (void)alarm(60); /* should it go on all the same */
        return 0;
    }
    if (waitpid(pid, &status, 0) != pid)
        return 1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

/* From a body whose run is not there. */
static int return_in_child(void *arg)
{
    (void)px_set_name(px_self(), arg);
    return fork_and_return(NULL);
}

static int return_from_child_fiber(void *arg)
{
    px_fiber *fiber = NULL;
    int value = 0;

    if (px_spawn(&fiber, return_in_child, arg) || px_await(fiber, &value))
        return 1;
    return value;
}

static void return_as_main(void *arg)
{
    _exit(px_run(return_in_child, arg) == SIGABRT ? 0 : 1);
}

static void return_as_child(void *arg)
{
    _exit(px_run(return_from_child_fiber, arg) == SIGABRT ? 0 : 1);
}

static void expect_one_line_about_fork(char *output)
{
    forget_emulator(output);
    assert_non_null(strstr(output, "fork"));
    assert_non_null(strchr(output, '\n'));
    assert_string_equal(strchr(output, '\n'), "\n"); /* it is the only one */
}

static void a_body_that_returns_in_a_child_aborts_with_one_line(void **state)
{
    char output[2048];

    (void)state;
    assert_int_equal(in_child(return_as_main, "loader", output, sizeof(output)),
                     0);
    expect_one_line_about_fork(output);
    assert_non_null(strstr(output, "fiber 0"));
    assert_int_equal(
        in_child(return_as_child, "loader", output, sizeof(output)), 0);
    expect_one_line_about_fork(output);
    assert_non_null(strstr(output, "fiber 1"));
}

static int offload_a_fork(void *arg)
{
    return px_offload(fork_and_return, arg);
}

static void fork_in_a_pool_thread(void *arg)
{
    _exit(px_run(offload_a_fork, arg) == SIGABRT ? 0 : 1);
}

static void an_offloaded_call_that_returns_in_a_child_aborts(void **state)
{
    char output[2048];

    (void)state;
    assert_int_equal(
        in_child(fork_in_a_pool_thread, NULL, output, sizeof(output)), 0);
    expect_one_line_about_fork(output);
}

static void fork_in_the_callback(void *status)
{
    *(int *)status = fork_and_return(NULL);
}

static void deadlock_and_fork(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    int status = 0;
    px_run_options options = {.on_deadlock = fork_in_the_callback,
                              .ctx = &status};

    (void)arg;
    if (px_run_with(&options, down, &sem) != PX_ESTALLED)
        _exit(1);
    _exit(status == SIGABRT ? 0 : 2);
}

static void on_deadlock_that_returns_in_a_child_aborts(void **state)
{
    char output[2048];

    (void)state;
    assert_int_equal(in_child(deadlock_and_fork, NULL, output, sizeof(output)),
                     0);
    expect_one_line_about_fork(output);
}

static void run_anew_off_fiber(void *arg)
{
    (void)arg;
    run_anew(&(int){0});
    _exit(checks_failed);
}

static void a_child_forked_between_runs_may_run(void **state)
{
    char output[2048];

    (void)state;
    assert_int_equal(px_run(nothing, NULL), 0);
    assert_int_equal(in_child(run_anew_off_fiber, NULL, output, sizeof(output)),
                     0);
    assert_string_equal(output, "");
}

static int fork_in_turn(void *arg)
{
    int *depth = arg;

    if (--*depth > 0) {
        int status = 0;
        pid_t pid = fork();

        if (pid == 0)
            _exit(px_run(fork_in_turn, arg));
        if (waitpid(pid, &status, 0) != pid || status != 0)
            return 1;
    }
    return px_sleep(1);
}

static void a_childs_run_may_fork_again(void **state)
{
    int depth = 4;

    (void)state;
    run_fibers(fork_in_turn, &depth);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(in_a_forked_child_the_run_does_not_exist),
    PX_TEST(R118_a_child_may_run_anew_and_runs_none_of_its_parents_fibers),
    PX_TEST(a_child_may_exec),
    PX_TEST(releasing_in_a_child_runs_no_fiber_of_the_parent),
    PX_TEST(a_post_in_a_child_writes_to_no_file_of_its_own),
    PX_TEST(nor_does_one_in_a_child_of_another_thread),
    PX_TEST(a_child_has_threads_of_its_own_to_offload_to),
    PX_TEST(R118_the_parents_descriptors_are_not_touched),
    PX_TEST(R120_an_interrupted_child_dies_of_it),
    PX_TEST(a_body_that_returns_in_a_child_aborts_with_one_line),
    PX_TEST(an_offloaded_call_that_returns_in_a_child_aborts),
    PX_TEST(on_deadlock_that_returns_in_a_child_aborts),
    PX_TEST(a_child_forked_between_runs_may_run),
    PX_TEST(a_childs_run_may_fork_again),
};

PX_TEST_MAIN(tests)
