/* SPDX-License-Identifier: MIT */
/*
 * post.c - px_post() and holds.
 *
 * A posted fiber's first run can not fail, so px_post() itself makes the stack
 * and the record. They come from a pool of their own, behind a lock, and go
 * back to it when the fiber ends (px_fiber.home): the loop's own pool needs no
 * lock.
 *
 * The last post, or unhold, may end the run while its thread is still on the
 * way out: hence the counting in and out (inbox.h).
 */
#include "post.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "inbox.h"
#include "scheduler.h"

/* A record that posted fibers use one after the other. */
struct posted {
    px_fiber fiber;
    struct px_fiber_chunk chunk; /* by which the loop knows of it */
    struct px_remote remote;
    struct posted *next; /* among the free */
    struct posted *made_next;
};

struct posts {
    pthread_mutex_t lock;
    struct posted *free; /* guarded by the lock, as all below */
    struct posted *made;
    struct px_stack_pool stacks;
};

static void release_stack(px_loop *loop, struct px_stack *stack)
{
    struct posts *posts = loop->posts;

    (void)pthread_mutex_lock(&posts->lock);
    px__stack_release(&posts->stacks, stack);
    (void)pthread_mutex_unlock(&posts->lock);
}

static void free_record(px_fiber *fiber)
{
    struct posts *posts = fiber->loop->posts;
    struct posted *posted = PX_CONTAINER_OF(fiber, struct posted, fiber);

    free(fiber->name_kept);
    fiber->state = PX_STATE_FREE;
    (void)pthread_mutex_lock(&posts->lock);
    posted->next = posts->free;
    posts->free = posted;
    (void)pthread_mutex_unlock(&posts->lock);
}

static const struct px_home home = {
    .release_stack = release_stack,
    .free_record = free_record,
};

int px__post_open(px_loop *loop)
{
    int err = px__poller_open(&loop->poller);
    struct posts *posts;

    if (err || loop->posts)
        return err;
    posts = calloc(1, sizeof(*posts));
    if (!posts)
        return PX_ENOMEM;
    (void)pthread_mutex_init(&posts->lock, NULL);
    px__stack_pool_open(&posts->stacks, loop->options.guard_size, PX_LIFE_ROOM,
                        loop->options.wipe_stacks);
    loop->posts = posts;
    loop->home = &home;
    return 0;
}

void px__post_close(px_loop *loop)
{
    struct posts *posts = loop->posts;

    px__inbox_wait_for_visitors(loop);
    if (!posts)
        return;
    while (posts->made) {
        struct posted *posted = posts->made;

        posts->made = posted->made_next;
        free(posted);
    }
    px__stack_pool_close(&posts->stacks);
    (void)pthread_mutex_destroy(&posts->lock);
    free(posts);
    loop->posts = NULL;
}

const struct px_stack_pool *px__post_stacks(const px_loop *loop)
{
    const struct posts *posts = loop->posts;

    return posts ? &posts->stacks : NULL;
}

/* On the loop's thread. */
static void deliver(px_loop *loop, struct px_remote *remote)
{
    struct posted *posted = PX_CONTAINER_OF(remote, struct posted, remote);
    px_fiber *fiber = &posted->fiber;

    if (!posted->chunk.fibers) {
        posted->chunk.fibers = fiber;
        posted->chunk.count = 1;
        px__fiber_arena_adopt(&loop->arena, &posted->chunk);
    }
    (void)px__has_room(loop); /* without, timers are slower */
    px__enlist(loop, fiber);
    px__enqueue(loop, fiber);
}

/* With the lock held. NULL without memory. */
static struct posted *take_record(struct posts *posts)
{
    struct posted *posted = posts->free;

    if (posted) {
        posts->free = posted->next;
    } else {
        posted = calloc(1, sizeof(*posted));
        if (posted) {
            posted->fiber.state = PX_STATE_FREE;
            posted->made_next = posts->made;
            posts->made = posted;
        }
    }
    return posted;
}

/* A record, and a stack for it; NULL without memory. */
static struct posted *take(px_loop *loop, struct px_stack **stack)
{
    struct posts *posts = loop->posts;
    struct posted *posted;

    (void)pthread_mutex_lock(&posts->lock);
    posted = take_record(posts);
    *stack = posted
                 ? px__stack_acquire(&posts->stacks, loop->options.stack_size)
                 : NULL;
    if (posted && !*stack) {
        posted->next = posts->free;
        posts->free = posted;
        posted = NULL;
    }
    (void)pthread_mutex_unlock(&posts->lock);
    return posted;
}

PX_KEEPS_SITE int px_post(px_loop *loop, px_fn fn, void *arg)
{
    struct px_stack *stack;
    struct posted *posted;
    int saved = errno;

    if (!loop || !fn)
        return PX_EINVAL;
    px__inbox_come_in(loop);
    posted = take(loop, &stack);
    if (posted) {
        px__fiber_born(&posted->fiber, loop, px__life_of(stack), fn, arg,
                       PX_FIBER_DETACHED | PX_FIBER_POSTED,
                       __builtin_return_address(0));
        posted->remote.deliver = deliver;
        px__inbox_push(loop, &posted->remote);
    }
    px__inbox_go_out(loop);
    errno = saved;
    return posted ? 0 : PX_ENOMEM;
}

px_loop *px_current_loop(void)
{
    px_fiber *self = px__self;
    int saved = errno, err;

    if (!px__is_fiber(self))
        return NULL;
    err = px__post_open(self->loop);
    errno = saved;
    return err ? NULL : self->loop;
}

int px_loop_hold(px_loop *loop)
{
    if (!loop)
        return PX_EINVAL;
    (void)atomic_fetch_add(&loop->holds, 1);
    return 0;
}

int px_loop_unhold(px_loop *loop)
{
    int saved = errno;
    long holds;

    if (!loop)
        return PX_EINVAL;
    px__inbox_come_in(loop);
    holds = atomic_load(&loop->holds);
    /* GCOVR_EXCL_START: whether another thread comes in between is up to
     * chance. */
    while (holds > 0 &&
           !atomic_compare_exchange_weak(&loop->holds, &holds, holds - 1))
        continue;
    /* GCOVR_EXCL_STOP */
    if (holds == 1)
        px__inbox_wake(loop);
    px__inbox_go_out(loop);
    errno = saved;
    return holds > 0 ? 0 : PX_EINVAL;
}
