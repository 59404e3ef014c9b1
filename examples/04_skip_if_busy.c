/* SPDX-License-Identifier: MIT */
/*
 * 04_skip_if_busy.c - do it if there is room, and leave it out if not.
 *
 * A try never parks, so it answers "is there capacity right now": what one
 * wants for work that is nice to have, but not worth a queue. The permit is
 * taken here and given back by the fiber that did the work.
 */
#include <stdio.h>

#include <parataxis/parataxis.h>

static px_sem pool = PX_SEM_INIT_BOUNDED(2);

static int refresh(void *arg)
{
    const int *number = arg;
    int err = px_sleep(10 * PX_MSEC);

    if (!err)
        printf("  %d refreshed\n", *number);
    px_sem_up(&pool);
    return err;
}

/* Start to refresh entry `number`, or skip it. */
static int refresh_if_room(int number)
{
    /* The fiber gets a copy of the number: ours is gone when it runs. */
    const px_spawn_options copy = {.arg_size = sizeof(number)};
    int err;

    if (px_sem_try_down(&pool) != 0) {
        printf("  %d skipped\n", number);
        return 0;
    }
    err = px_spawn_with(NULL, &copy, refresh, &number);
    if (err)
        px_sem_up(&pool);
    return err;
}

static int body(void *arg)
{
    int err = 0;

    (void)arg;
    for (int round = 1; !err && round <= 2; round++) {
        printf("round %d\n", round);
        for (int number = 1; !err && number <= 4; number++)
            err = refresh_if_room(number);
        if (!err)
            err = px_sleep(20 * PX_MSEC);
    }
    printf("free: %lld\n", (long long)px_sem_count(&pool));
    return err;
}

int main(void)
{
    const px_run_options options = {.clock = PX_CLOCK_VIRTUAL};
    int err = px_run_with(&options, body, NULL);

    if (err)
        fprintf(stderr, "skip: %s\n", px_strerror(err));
    return err ? 1 : 0;
}
