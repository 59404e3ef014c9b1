/* SPDX-License-Identifier: MIT */
/*
 * timeout.c - functions run inside a scope.
 *
 * The scope lies in the frame here, and is left by a cleanup: on return, and
 * when an exception passes through.
 */
#include "cancel.h"

void px_scope_guard_release(px_scope *scope)
{
    px_fiber *self = px__self;

    /* Not one that an earlier fiber of the same record has left behind. */
    if (scope && scope->fiber && scope->fiber == self && scope->id == self->id)
        px__scope_unwind(scope, self, "px_scope_guard_release");
}

int px_with_timeout(px_nsec timeout, px_fn fn, void *arg)
{
    px_scope scope PX_CLEANUP(px_scope_guard_release) = px_scope_not_entered();
    int err;

    if (!fn)
        return PX_EINVAL;
    err = px_scope_enter(&scope, timeout);
    return err ? err : fn(arg);
}

int px_with_deadline(px_nsec when, px_fn fn, void *arg)
{
    px_scope scope PX_CLEANUP(px_scope_guard_release) = px_scope_not_entered();
    int err;

    if (!fn)
        return PX_EINVAL;
    err = px_scope_enter_until(&scope, when);
    return err ? err : fn(arg);
}

int px_with_cancel(int (*fn)(px_scope *token, void *arg), void *arg)
{
    px_scope scope PX_CLEANUP(px_scope_guard_release) = px_scope_not_entered();
    int err;

    if (!fn)
        return PX_EINVAL;
    err = px_scope_enter(&scope, PX_FOREVER);
    return err ? err : fn(&scope, arg);
}

int px_with_shield(px_nsec at_most, px_fn fn, void *arg)
{
    px_scope scope PX_CLEANUP(px_scope_guard_release) = px_scope_not_entered();
    int err;

    if (!fn)
        return PX_EINVAL;
    err = px_scope_enter(&scope, at_most);
    if (err)
        return err;
    (void)px_scope_shield(&scope, true);
    return fn(arg);
}
