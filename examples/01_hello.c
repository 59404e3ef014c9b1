/* SPDX-License-Identifier: MIT */
/*
 * 01_hello.c - two fibers that take turns on one thread.
 *
 * px_spawn() runs a fiber at once, until it first parks. px_yield() lets the
 * others go on, first come, first served, so the output is always the same.
 * px_await_all() brings their values home.
 */
#include <stdio.h>

#include <parataxis/parataxis.h>

static int count_to_three(void *arg)
{
    const char *name = arg;

    for (int i = 1; i <= 3; i++) {
        int err;

        printf("%s: %d\n", name, i);
        err = px_yield();
        if (err)
            return err;
    }
    return 3;
}

static int body(void *arg)
{
    px_fiber *fibers[2];
    int counted[2], err;

    (void)arg;
    err = px_spawn(&fibers[0], count_to_three, "left");
    if (!err)
        err = px_spawn(&fibers[1], count_to_three, "right");
    if (!err)
        err = px_await_all(fibers, 2, counted);
    if (!err)
        printf("counted to %d and to %d\n", counted[0], counted[1]);
    return err;
}

int main(void)
{
    int err = px_run(body, NULL);

    if (err)
        fprintf(stderr, "hello: %s\n", px_strerror(err));
    return err ? 1 : 0;
}
