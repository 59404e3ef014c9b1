/* SPDX-License-Identifier: MIT */
/* parked.c - what tools/gdb/check looks at: fibers parked in several ways, and
 * then an abort, so that gdb stops. */
#include <parataxis/parataxis.h>
#include <stdlib.h>

static px_sem never = PX_SEM_INIT(0);

static int __attribute__((noinline)) descend(int depth)
{
    int below = depth > 0 ? descend(depth - 1) : px_sem_down(&never);

    return below + depth;
}

static int loader(void *arg)
{
    (void)arg;
    return descend(3);
}

static int sleeper(void *arg)
{
    (void)arg;
    return px_sleep(PX_MINUTE);
}

static int at_once(void *arg)
{
    (void)arg;
    return 7;
}

static int body(void *arg)
{
    px_spawn_options named = {.name = "loader"};
    px_spawn_options queued = {.name = "later", .queued = true};
    px_fiber *ended;

    (void)arg;
    if (px_spawn_with(NULL, &named, loader, NULL) ||
        px_spawn(NULL, sleeper, NULL) || px_spawn(&ended, at_once, NULL) ||
        px_spawn_with(NULL, &queued, sleeper, NULL))
        return 1;
    abort();
}

int main(void)
{
    return px_run(body, NULL);
}
