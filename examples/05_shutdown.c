/* SPDX-License-Identifier: MIT */
/*
 * 05_shutdown.c - let everyone go at shutdown.
 *
 * Release exactly as many as are waiting: nobody is stranded, and no permit
 * is left that nobody will take.
 */
#include <stdio.h>

#include <parataxis/parataxis.h>

enum { WORKERS = 4 };

static px_sem gate = PX_SEM_INIT(0);
static int ids[WORKERS];

static int worker(void *arg)
{
    const int *id = arg;
    int err = px_sem_down(&gate);

    return err ? err : *id;
}

static int body(void *arg)
{
    px_fiber *fibers[WORKERS];
    int results[WORKERS], err;

    (void)arg;
    for (int i = 0; i < WORKERS; i++) {
        ids[i] = 11 * (i + 1);
        err = px_spawn(&fibers[i], worker, &ids[i]);
        if (err)
            return err;
    }
    printf("waiting: %zu\n", px_sem_waiters(&gate));

    /* ... shutdown is signalled ... */
    err = px_sem_adjust(&gate, (int64_t)px_sem_waiters(&gate));
    if (!err)
        err = px_await_all(fibers, WORKERS, results);
    if (err)
        return err;
    printf("went:");
    for (int i = 0; i < WORKERS; i++)
        printf(" %d", results[i]);
    printf("\nwaiting: %zu, permits left: %lld\n", px_sem_waiters(&gate),
           (long long)px_sem_count(&gate));
    return 0;
}

int main(void)
{
    int err = px_run(body, NULL);

    if (err)
        fprintf(stderr, "shutdown: %s\n", px_strerror(err));
    return err ? 1 : 0;
}
