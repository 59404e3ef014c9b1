/* SPDX-License-Identifier: MIT */
/*
 * timeout.c - functions run inside a scope.
 *
 * The scope lies in the frame here, and is left by a cleanup: on return, and
 * when an exception passes through.
 */
#include "cancel.h"

static void release(px_scope *scope, const char *function)
{
    px_fiber *self = px__self;

    /* Not one that an earlier fiber of the same record has left behind, in this
     * run or an earlier one. Who is inside is not asked: that memory may be a
     * dead frame's. */
    if (scope->fiber && scope->fiber == self && scope->id == self->id &&
        scope->run == (uint32_t)self->loop->run)
        px__scope_unwind(scope, self, function);
}

void px_scope_guard_release(px_scope *scope)
{
    if (scope)
        release(scope, "px_scope_guard_release");
}

/* A scope that is left in the name of the call that it is the scope of. */
struct frame {
    px_scope scope;
    const char *function;
};

static void frame_end(struct frame *frame)
{
    release(&frame->scope, frame->function);
}

#define FRAME(name)                                                            \
    struct frame name PX_CLEANUP(frame_end) = {px_scope_not_entered(), __func__}

int px_with_timeout(px_nsec timeout, px_fn fn, void *arg)
{
    FRAME(frame);
    int err;

    if (!fn)
        return PX_EINVAL;
    err = px_scope_enter(&frame.scope, timeout);
    return err ? err : fn(arg);
}

int px_with_deadline(px_nsec when, px_fn fn, void *arg)
{
    FRAME(frame);
    int err;

    if (!fn)
        return PX_EINVAL;
    err = px_scope_enter_until(&frame.scope, when);
    return err ? err : fn(arg);
}

int px_with_cancel(int (*fn)(px_scope *token, void *arg), void *arg)
{
    FRAME(frame);
    int err;

    if (!fn)
        return PX_EINVAL;
    err = px_scope_enter(&frame.scope, PX_FOREVER);
    return err ? err : fn(&frame.scope, arg);
}

int px_with_shield(px_nsec at_most, px_fn fn, void *arg)
{
    FRAME(frame);
    int err;

    if (!fn)
        return PX_EINVAL;
    err = px_scope_enter(&frame.scope, at_most);
    if (err)
        return err;
    (void)px_scope_shield(&frame.scope, true);
    return fn(arg);
}
