/* SPDX-License-Identifier: MIT */
/*
 * 02_capping_concurrency.c - at most two of five tasks at work at any moment.
 *
 * The pool is a bounded semaphore: every task holds a permit while it works,
 * and those that find none park in the order in which they came. The run uses
 * the virtual clock: 30 ms pass, but nobody waits for them.
 */
#include <stdio.h>

#include <parataxis/parataxis.h>

enum { TASKS = 5 };

static px_sem pool = PX_SEM_INIT_BOUNDED(2);
static int numbers[TASKS];
static int active, peak;

static int work(void *arg)
{
    const int *number = arg;
    int err;

    active++;
    if (active > peak)
        peak = active;
    err = px_sleep(10 * PX_MSEC);
    active--;
    return err ? err : *number;
}

/* px_sem_with() gives the permit back however work() ends. */
static int task(void *arg)
{
    return px_sem_with(&pool, work, arg);
}

static int body(void *arg)
{
    px_fiber *fibers[TASKS];
    int results[TASKS], err;

    (void)arg;
    for (int i = 0; i < TASKS; i++) {
        numbers[i] = i + 1;
        err = px_spawn(&fibers[i], task, &numbers[i]);
        if (err)
            return err;
    }
    err = px_await_all(fibers, TASKS, results);
    if (err)
        return err;
    for (int i = 0; i < TASKS; i++)
        printf("%d%s", results[i], i + 1 < TASKS ? "," : "\n");
    printf("peak: %d, free: %lld\n", peak, (long long)px_sem_count(&pool));
    printf("took: %lld ms\n", (long long)(px_now() / PX_MSEC));
    return 0;
}

int main(void)
{
    const px_run_options options = {.clock = PX_CLOCK_VIRTUAL};
    int err = px_run_with(&options, body, NULL);

    if (err)
        fprintf(stderr, "capping: %s\n", px_strerror(err));
    return err ? 1 : 0;
}
