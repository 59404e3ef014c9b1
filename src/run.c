/* SPDX-License-Identifier: MIT */
/*
 * run.c - px_run(): puts a loop together, runs it, takes it apart.
 *
 * The one file that knows all layers, and hands the upper ones down to the
 * scheduler (px_hooks).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/panic.h"
#include "cancel.h"
#include "deadlock.h"
#include "io.h"
#include "offload.h"
#include "overflow.h"
#include "post.h"
#include "spawn.h"

/* The C++ runtime's exceptions of this thread, if there is one. */
extern void *__cxa_get_globals(void) __attribute__((weak));

static const struct px_hooks hooks = {
    .on_timer = px__cancel_on_timer,
    .on_stall = px__deadlock,
    .body = px__spawn_body,
};

static void describe_running(char *out, size_t size)
{
    if (px__is_fiber(px__self))
        px__fiber_describe(px__self, out, size);
}

unsigned px__forks;

/* In a forked child the run does not exist. Its descriptors are copies: closing
 * them leaves the parent's set as it is. */
static void in_forked_child(void)
{
    if (px__loop)
        px__poller_close(&px__loop->poller);
    px__loop = NULL;
    px__self = &px__off_fiber;
    px__forks++;
}

static void once_per_process(void)
{
    px__panic_who = describe_running;
}

/* 0 or -errno; then the next run tries it again. Two threads may both come
 * first: what is to be done in a child can be done twice. */
static int watch_forks(void)
{
    static atomic_bool watches;
    int err;

    if (atomic_load(&watches))
        return 0;
    err = pthread_atfork(NULL, NULL, in_forked_child);
    if (!err)
        atomic_store(&watches, true);
    return -err;
}

static int check_options(const px_run_options *options)
{
    for (size_t i = 0; i < 4; i++) {
        if (options->reserved[i])
            return PX_EINVAL;
    }
    if (options->clock != PX_CLOCK_REAL && options->clock != PX_CLOCK_VIRTUAL)
        return PX_EINVAL;
    if (options->stack_size > PX_STACK_MAXIMUM ||
        options->guard_size > PX_STACK_MAXIMUM)
        return PX_EINVAL;
    return 0;
}

static px_loop *loop_new(const px_run_options *options)
{
    static atomic_uint_fast64_t runs;
    px_loop *loop = calloc(1, sizeof(*loop));

    if (!loop)
        return NULL;
    loop->options = *options;
    if (!loop->options.stack_size)
        loop->options.stack_size = PX_STACK_DEFAULT;
    if (loop->options.timer_slack < 0)
        loop->options.timer_slack = 0;
    loop->run = atomic_fetch_add(&runs, 1) + 1;
    loop->thread = &px__loop;
    loop->forks = px__forks;
    if (__cxa_get_globals)
        loop->exceptions = __cxa_get_globals();
    if (!loop->options.max_fibers)
        loop->options.max_fibers = SIZE_MAX;
    px__stack_pool_open(&loop->stacks, options->guard_size, PX_LIFE_ROOM,
                        options->wipe_stacks);
    /* Where time passes differently, what is counted should not. */
    loop->quick_clock.refused = px__under_valgrind();
    px__loop_init(loop, &hooks);
    if (!(options->wipe_stacks | px__fibers_are_watched()))
        loop->usual = px__stack_class(&loop->stacks, loop->options.stack_size);
    return loop;
}

static void loop_free(px_loop *loop)
{
    px__offload_close(loop);
    px__fiber_arena_close(&loop->arena);
    px__post_close(loop);
    px__io_close(loop);
    px__poller_close(&loop->poller);
    px__stack_pool_close(&loop->stacks);
    px__heap_close(&loop->timers);
    free(loop);
}

static void main_ended(px_fiber *self, int result)
{
    self->loop->main_result = result;
}

static int spawn_main(px_loop *loop, px_fn fn, void *arg)
{
    px_spawn_options options = {
        .stack_size = loop->options.stack_size > PX_STACK_MAIN
                          ? loop->options.stack_size
                          : PX_STACK_MAIN,
    };
    px_fiber *fiber = px__spawn(loop, &options, fn, arg, PX_FIBER_MAIN, NULL);

    if (!fiber)
        return PX_ENOMEM;
    fiber->life->on_end = main_ended;
    px__enqueue(loop, fiber);
    return 0;
}

static int run(const px_run_options *options, px_fn fn, void *arg)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct px_overflow overflow;
    px_loop *loop;
    int err, value;

    (void)pthread_once(&once, once_per_process);
    err = watch_forks();
    if (err)
        return err;
    loop = loop_new(options);
    if (!loop)
        return PX_ENOMEM;
    err = spawn_main(loop, fn, arg);
    if (err) {
        loop_free(loop);
        return err;
    }
    px__overflow_open(&overflow);
    px__loop = loop;
    px__loop_run(loop);
    value = loop->main_result;
    if (loop->options.result)
        *loop->options.result = value;
    if (loop->stalled)
        value = PX_ESTALLED;
    px__loop = NULL;
    px__overflow_close(&overflow);
    loop_free(loop);
    return value;
}

int px_run_with(const px_run_options *options, px_fn fn, void *arg)
{
    static const px_run_options defaults;
    int err, saved = errno;

    if (!options)
        options = &defaults;
    if (!fn || check_options(options) != 0)
        return PX_EINVAL;
    if (px__loop)
        return PX_EBUSY;
    err = run(options, fn, arg);
    errno = saved;
    return err;
}

int px_run(px_fn fn, void *arg)
{
    return px_run_with(NULL, fn, arg);
}
