/* SPDX-License-Identifier: MIT */
/*
 * test_faults_first.c - what a process does in its first run only: it tries a
 * guard out, looks at the processor's counter, installs its handlers. Each pass
 * is a process of its own.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "fiber.h"
#include "sweep.h"

static int down(void *arg)
{
    return px_sem_down(arg);
}

static int runs_for_the_first_time(void *arg)
{
    px_sem gate = PX_SEM_INIT(0);
    px_fiber *fibers[3] = {NULL};
    px_scope scope;
    int err;

    (void)arg;
    UNTIL_OK(err, px_scope_enter(&scope, PX_SEC), 0, false);
    for (int i = 0; i < 3; i++) {
        UNTIL_OK(err, px_spawn(&fibers[i], down, &gate), NOMEM, !fibers[i]);
        if (!is_small())
            HOLDS(sweep_is_guarded(fibers[i]->life->stack.low - 1));
    }
    UNTIL_OK(err, px_sleep(10 * PX_USEC), 0, false);
    HOLDS(px_sem_up_n(&gate, 3) == 0);
    HOLDS(px_await_all(fibers, 3, NULL) == 0);
    HOLDS(px_scope_leave(&scope) == 0);
    return 0;
}

static void a_first_run_is_like_any_other(void **state)
{
    (void)state;
    sweep_first_runs(
        &(struct workload){.body = runs_for_the_first_time, .real = true});
}

/* In a forked child there is no run, or none has begun. */
static int forks(void *arg)
{
    int status = -1;
    pid_t pid = fork();

    (void)arg;
    if (pid == 0)
        _exit(px_self() || px_yield() != PX_ENOFIBER ? 1 : 0);
    HOLDS(pid > 0 && waitpid(pid, &status, 0) == pid);
    HOLDS(status == 0);
    return 0;
}

static void a_fork_in_a_first_run_leaves_the_run_behind(void **state)
{
    (void)state;
    sweep_first_runs(&(struct workload){.body = forks});
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_first_run_is_like_any_other),
    PX_TEST(a_fork_in_a_first_run_leaves_the_run_behind),
};

PX_TEST_MAIN(tests)
