/* SPDX-License-Identifier: MIT */
/*
 * 03_gate.c - a gate that everyone waits at.
 *
 * A semaphore without permits is a door: whoever arrives parks, each up lets
 * exactly one through, and adjust lets a whole group through at once.
 */
#include <stdio.h>

#include <parataxis/parataxis.h>

enum { RUNNERS = 3 };

static px_sem gate = PX_SEM_INIT(0);

static int runner(void *arg)
{
    const char *name = arg;
    int err = px_sem_down(&gate);

    if (!err)
        printf("  %s runs\n", name);
    return err;
}

static int body(void *arg)
{
    static char *const names[RUNNERS] = {"Ada", "Barbara", "Grace"};
    px_fiber *fibers[RUNNERS];
    int err;

    (void)arg;
    for (int i = 0; i < RUNNERS; i++) {
        err = px_spawn(&fibers[i], runner, names[i]);
        if (err)
            return err;
    }
    printf("at the gate: %zu\n", px_sem_waiters(&gate));

    printf("open for one\n");
    err = px_sem_up(&gate);
    if (!err)
        err = px_yield();
    if (err)
        return err;
    printf("at the gate: %zu\n", px_sem_waiters(&gate));

    printf("open for two\n");
    err = px_sem_adjust(&gate, 2);
    if (!err)
        err = px_await_all(fibers, RUNNERS, NULL);
    if (!err)
        printf("at the gate: %zu, permits left: %lld\n", px_sem_waiters(&gate),
               (long long)px_sem_count(&gate));
    return err;
}

int main(void)
{
    int err = px_run(body, NULL);

    if (err)
        fprintf(stderr, "gate: %s\n", px_strerror(err));
    return err ? 1 : 0;
}
