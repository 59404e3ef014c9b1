/* SPDX-License-Identifier: MIT */
/*
 * await.c - waiting for fibers to end, and handles.
 *
 * An awaiter marks every fiber it waits for as its own, and counts them in
 * waiter.want; each that ends counts down, and the last makes it ready. For a
 * single one the ending fiber also stores the result and consumes the handle,
 * so nothing is left to do on the way out; several are consumed together, by
 * the awaiter, for it is all or none.
 */
#include "cancel.h"

#include "base/panic.h"

/* What px_await_all() waits for; it lies on the awaiter's stack. */
struct claims {
    px_fiber **fibers;
    size_t n;
};

/* From this moment on none of them counts down for `self`. */
static bool await_interrupt(px_fiber *self, int code)
{
    if (self->flags & PX_FIBER_AWAITS_ALL) {
        const struct claims *claims = self->waits_on;

        for (size_t i = 0; i < claims->n; i++)
            claims->fibers[i]->awaiter = NULL;
    } else {
        px_fiber *one = self->waits_on;

        one->awaiter = NULL;
    }
    (void)px__ready(self, code);
    return true;
}

static const struct px_wait_class await_class = {
    .kind = PX_WAIT_AWAIT,
    .interrupt = await_interrupt,
};

/* Whether a handle is one that can be waited for, but for being in use. */
static int check_handle(const px_fiber *fiber, const char *function)
{
    if (!fiber)
        return PX_EINVAL;
    PX_CHECK_HANDLE(fiber, function);
    if (fiber == px__self)
        return PX_EDEADLK;
    if (fiber->flags & (PX_FIBER_MAIN | PX_FIBER_DETACHED | PX_FIBER_CHILD))
        return PX_EINVAL;
    (void)function; /* for a checked build */
    return 0;
}

static PX_NOINLINE int forget(px_fiber *fiber)
{
    px__forget(fiber);
    return 0;
}

/* Of an ended fiber; 0. */
static inline int consume(px_fiber *fiber)
{
    fiber->flags |= PX_FIBER_CONSUMED;
    return fiber->life ? 0 : forget(fiber);
}

static inline int await(px_fiber *self, px_fiber *fiber, int *result)
{
    if (fiber->state == PX_STATE_DONE) {
        if (result)
            *result = fiber->verdict;
        return consume(fiber);
    }
    fiber->awaiter = self;
    self->waits_on = fiber;
    self->life->result_out = result;
    self->waiter.want = 1;
    return px__park(self, &await_class);
}

static PX_NOINLINE int await_slowly(px_fiber *self, px_fiber *fiber,
                                    int *result)
{
    int err = px__cancellation_point(self);

    if (err)
        return err;
    if (fiber->awaiter)
        return PX_EBUSY;
    if (fiber->state != PX_STATE_DONE) {
        err = px__may_park(self);
        if (err)
            return err;
    }
    return await(self, fiber, result);
}

PX_HOT int px_await(px_fiber *fiber, int *result)
{
    px_fiber *self = px__self;
    int err = check_handle(fiber, "px_await");

    if (PX_UNLIKELY(err))
        return err;
    if (PX_UNLIKELY(self->attention || fiber->awaiter))
        return await_slowly(self, fiber, result);
    return await(self, fiber, result);
}

/* Whether the handles are all good, and free to be waited for. A bad argument
 * comes before a handle that is in use, wherever they are in the array: so the
 * marks that tell which were there already are none that a waiter may hold. */
static int check_handles(px_fiber **fibers, size_t n)
{
    size_t marked = 0;
    int err = 0, busy = 0;

    while (marked < n) {
        err = check_handle(fibers[marked], "px_await_all");
        if (!err && fibers[marked]->flags & PX_FIBER_LISTED)
            err = PX_EINVAL;
        if (err)
            break;
        if (fibers[marked]->awaiter)
            busy = PX_EBUSY;
        fibers[marked++]->flags |= PX_FIBER_LISTED;
    }
    while (marked > 0)
        fibers[--marked]->flags &= (uint16_t)~PX_FIBER_LISTED;
    return err ? err : busy;
}

/* How many of them have not ended. */
static int64_t count_running(px_fiber **fibers, size_t n)
{
    int64_t running = 0;

    for (size_t i = 0; i < n; i++)
        running += fibers[i]->state != PX_STATE_DONE;
    return running;
}

/* Nobody has had a turn since the handles were checked, and none may before it
 * is parked. */
static int await_claimed(px_fiber *self, struct claims *claims, int64_t running)
{
    int err;

    for (size_t i = 0; i < claims->n; i++)
        claims->fibers[i]->awaiter = self;
    self->waits_on = claims;
    self->waiter.want = running;
    self->flags |= PX_FIBER_AWAITS_ALL;
    err = px__park(self, &await_class);
    self->flags &= (uint16_t)~PX_FIBER_AWAITS_ALL;
    return err;
}

int px_await_all(px_fiber **fibers, size_t n, int *results)
{
    px_fiber *self = px__self;
    struct claims claims = {fibers, n};
    int64_t running;
    int err, fired;

    if (n && !fibers)
        return PX_EINVAL;
    err = check_handles(fibers, n);
    if (err && err != PX_EBUSY)
        return err;
    /* A scope that has fired comes before the state of the handles. */
    fired = px__cancellation_point(self);
    if (fired || err)
        return fired ? fired : err;
    running = count_running(fibers, n);
    if (running) {
        err = px__may_park(self);
        if (!err)
            err = await_claimed(self, &claims, running);
        if (err)
            return err;
    }
    for (size_t i = 0; i < n; i++) {
        if (results)
            results[i] = fibers[i]->verdict;
        (void)consume(fibers[i]);
    }
    return 0;
}

int px_cancel_and_await(px_fiber *fiber, int *result)
{
    px_fiber *self = px__self;
    px_scope shield;
    int err = check_handle(fiber, "px_cancel_and_await");

    if (err)
        return err;
    if (!px__is_fiber(self))
        return fiber->state == PX_STATE_DONE ? px_await(fiber, result)
                                             : PX_ENOFIBER;
    if (fiber->awaiter)
        return PX_EBUSY;
    px__scope_push(&shield, self, PX_FOREVER, PX_SCOPE_SHIELD);
    (void)px_cancel(fiber);
    err = px_await(fiber, result);
    px__scope_pop(&shield, self);
    return err;
}

int px_detach(px_fiber *fiber)
{
    if (!fiber)
        return PX_EINVAL;
    PX_CHECK_HANDLE(fiber, "px_detach");
    if (fiber->flags & (PX_FIBER_MAIN | PX_FIBER_DETACHED | PX_FIBER_CHILD))
        return PX_EINVAL;
    if (fiber->awaiter)
        return PX_EBUSY;
    if (fiber->state == PX_STATE_DONE)
        (void)consume(fiber);
    else
        fiber->flags |= PX_FIBER_DETACHED;
    return 0;
}

bool px_is_done(const px_fiber *fiber)
{
    if (!fiber)
        return false;
    PX_CHECK_HANDLE(fiber, "px_is_done");
    return fiber->state >= PX_STATE_DONE;
}

int px_set_name(px_fiber *fiber, const char *name)
{
    if (!fiber)
        return PX_EINVAL;
    PX_CHECK_HANDLE(fiber, "px_set_name");
    return px__fiber_rename(fiber, name);
}

px_fid px_id(const px_fiber *fiber)
{
    if (!fiber)
        return PX_NO_FIBER;
    PX_CHECK_HANDLE(fiber, "px_id");
    return fiber->id;
}

const char *px_name(const px_fiber *fiber)
{
    if (!fiber)
        return "";
    PX_CHECK_HANDLE(fiber, "px_name");
    return px__fiber_name(fiber);
}
