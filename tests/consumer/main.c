/* SPDX-License-Identifier: MIT */
/* main.c - a user's program: two fibers, a semaphore, and a timeout. */
#include <parataxis/parataxis.h>

#include <stdio.h>
#include <string.h>

struct shared {
    px_sem ready;
    int sum;
};

static int add(void *arg)
{
    struct shared *shared = arg;

    if (px_sem_down(&shared->ready) != 0)
        return -1;
    shared->sum += 40;
    return 2;
}

static int body(void *arg)
{
    struct shared *shared = arg;
    px_fiber *fiber;
    int value = 0, err = px_spawn(&fiber, add, shared);

    if (err == 0)
        err = px_sem_up(&shared->ready);
    PX_WITHIN(limit, PX_SEC) {
        if (err == 0)
            err = px_await(fiber, &value);
    }
    shared->sum += value;
    return err;
}

int main(void)
{
    struct shared shared = {PX_SEM_INIT(0), 0};
    int err = px_run(body, &shared);

    printf("%s: %s, %d\n", px_version_string(), px_err_name(err), shared.sum);
    return err == 0 && shared.sum == 42 &&
                   strcmp(px_version_string(), PX_VERSION_STRING) == 0
               ? 0
               : 1;
}
