/* SPDX-License-Identifier: MIT */
/* spawn.h - how a fiber begins and ends. */
#ifndef PX_SPAWN_H
#define PX_SPAWN_H

#include "scheduler.h"

/* Whether that can be a fiber: 0, or PX_EINVAL. */
int px__check_birth(const px_spawn_options *options, px_fn fn, void *arg);

/* An ended fiber of the usual size, with its stack; NULL if there is none. The
 * one that ended last need not be buried for that. */
static inline px_fiber *px__take_spare(px_loop *loop)
{
    px_fiber *fiber = loop->zombie;

    if (fiber && px__is_spare(loop, fiber)) {
        loop->zombie = NULL;
        return fiber;
    }
    fiber = loop->spare;
    if (fiber) {
        loop->spare = fiber->next;
        loop->usual->warm_count--;
    }
    return fiber;
}

/* What px__spawn() does, if nothing special is asked and a spare is at hand: a
 * few stores. NULL if not, with nothing done. */
static inline px_fiber *px__spawn_quickly(px_loop *loop, px_fn fn, void *arg,
                                          unsigned flags, const void *site)
{
    px_fiber *fiber = NULL;

    if (PX_LIKELY(loop->alive < loop->room))
        fiber = px__take_spare(loop);
    if (PX_LIKELY(fiber != NULL)) {
        px__fiber_reborn(fiber, fn, arg, flags | PX_FIBER_USUAL, site);
        px__enlist(loop, fiber);
    }
    return fiber;
}

/* A fiber that has everything it needs to run, and is in no queue; `flags` are
 * PX_FIBER_... NULL without memory, with nothing made. Until it begins, who
 * spawns it may say what is outside of its body's scope (the run's, otherwise)
 * and what is to be called when it ends: life->body.outer, on_end, owner. */
px_fiber *px__spawn(px_loop *loop, const px_spawn_options *options, px_fn fn,
                    void *arg, unsigned flags, const void *site);
/* Then either start it at once, the caller ahead of the run queue, or put it
 * at the tail. Returns 0. */
int px__begin(px_fiber *self, px_fiber *fiber, bool queued);

/* px_hooks.body */
void px__spawn_body(void *fiber);

#endif
