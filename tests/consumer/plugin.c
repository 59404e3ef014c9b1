/* SPDX-License-Identifier: MIT */
/* plugin.c - a shared object with the static library inside. */
#include <parataxis/parataxis.h>

int plugin_run(int n);

static int count(void *arg)
{
    int *left = arg;

    while (*left > 0) {
        --*left;
        if (px_yield() != 0)
            return -1;
    }
    return 0;
}

static int body(void *arg)
{
    px_fiber *fibers[2];
    int err = px_spawn(&fibers[0], count, arg);

    if (err == 0)
        err = px_spawn(&fibers[1], count, arg);
    return err ? err : px_await_all(fibers, 2, NULL);
}

int plugin_run(int n)
{
    int err = px_run(body, &n);

    return err ? err : n;
}
