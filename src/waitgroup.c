/* SPDX-License-Identifier: MIT */
/*
 * waitgroup.c - a counter, and those who wait for it to be zero.
 *
 * Invariant: somebody waits only while the count is above zero.
 *
 * Reaching zero empties the queue and wakes everyone; that is a verdict on this
 * zero. wait promises more: that the count is zero when it returns. So a woken
 * waiter looks again, and parks again if somebody has added since.
 */
#include <parataxis/waitgroup.h>

#include "base/panic.h"
#include "cancel.h"
#include "spawn.h"
#include "wait_queue.h"

#define PX_CHECK PX_CHECK_WAITED

static const struct px_wait_class wait_class = {
    .kind = PX_WAIT_WAITGROUP,
    .interrupt = px__waitq_interrupt,
};

int px_waitgroup_init(px_waitgroup *wg, int64_t count)
{
    if (!wg || count < 0)
        return PX_EINVAL;
    *wg = (px_waitgroup)PX_WAITGROUP_INIT(count);
    return 0;
}

int px_waitgroup_destroy(px_waitgroup *wg)
{
    if (!wg)
        return PX_EINVAL;
    PX_CHECK(wg, "px_waitgroup_destroy");
    if (!px__waitq_empty(&wg->waiters))
        return PX_EBUSY;
    PX_SPOIL(wg);
    return 0;
}

PX_HOT int px_waitgroup_add(px_waitgroup *wg, int64_t n)
{
    int64_t sum;

    if (PX_UNLIKELY(!wg))
        return PX_EINVAL;
    PX_CHECK(wg, "px_waitgroup_add");
    if (PX_UNLIKELY(__builtin_add_overflow(wg->count, n, &sum)))
        return PX_EOVERFLOW;
    wg->count = sum;
    if (sum > 0)
        return 0;
    px__waitq_wake_all(&wg->waiters, sum < 0 ? PX_ENEGATIVE : 0);
    return sum < 0 ? PX_ENEGATIVE : 0;
}

int px_waitgroup_done(px_waitgroup *wg)
{
    return px_waitgroup_add(wg, -1);
}

static void report(px_fiber *self, int result)
{
    (void)result;
    (void)px_waitgroup_add(self->life->owner, -1);
}

static inline int begin(px_waitgroup *wg, px_fiber *self, px_fiber *fiber)
{
    fiber->life->on_end = report;
    fiber->life->owner = wg;
    wg->count++;
    return px__start_eagerly(self, fiber);
}

static PX_NOINLINE int go(px_waitgroup *wg, px_fiber *self, px_fn fn, void *arg,
                          const void *site)
{
    px_fiber *fiber =
        px__spawn(self->loop, NULL, fn, arg, PX_FIBER_DETACHED, site);

    return fiber ? begin(wg, self, fiber) : PX_ENOMEM;
}

PX_KEEPS_SITE int px_waitgroup_go(px_waitgroup *wg, px_fn fn, void *arg)
{
    const void *site = __builtin_return_address(0);
    px_fiber *self = px__self, *fiber;

    if (!fn || !wg)
        return PX_EINVAL;
    PX_CHECK(wg, "px_waitgroup_go");
    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    if (wg->count < -1)
        return PX_ENEGATIVE;
    if (wg->count == INT64_MAX)
        return PX_EOVERFLOW;
    fiber = px__spawn_quickly(self->loop, fn, arg, PX_FIBER_DETACHED, site);
    if (PX_UNLIKELY(!fiber))
        return go(wg, self, fn, arg, site);
    return begin(wg, self, fiber);
}

int px_waitgroup_wait(px_waitgroup *wg)
{
    px_fiber *self = px__self;
    int err;

    if (!wg)
        return PX_EINVAL;
    PX_CHECK(wg, "px_waitgroup_wait");
    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    err = px__cancellation_point(self);
    if (err)
        return err;
    if (wg->count < 0)
        return PX_ENEGATIVE;
    while (wg->count > 0) {
        err = px__may_park(self);
        if (!err)
            err = px__waitq_wait(&wg->waiters, self, &wait_class, wg, 0);
        if (err)
            return err;
    }
    return 0;
}

int64_t px_waitgroup_count(const px_waitgroup *wg)
{
    if (!wg)
        return 0;
    PX_CHECK(wg, "px_waitgroup_count");
    return wg->count;
}

int64_t px_waitgroup_remaining(const px_waitgroup *wg)
{
    return px_waitgroup_count(wg);
}

size_t px_waitgroup_waiters(const px_waitgroup *wg)
{
    if (!wg)
        return 0;
    PX_CHECK(wg, "px_waitgroup_waiters");
    return px__waitq_count(&wg->waiters);
}

size_t px_waitgroup_waiter_ids(const px_waitgroup *wg, px_fid *out, size_t cap)
{
    if (!wg)
        return 0;
    PX_CHECK(wg, "px_waitgroup_waiter_ids");
    return px__waitq_ids(&wg->waiters, out, cap);
}

size_t px_waitgroup_remove_waiter(px_waitgroup *wg, px_fid id)
{
    struct px_waiter *waiter;

    if (!wg)
        return 0;
    PX_CHECK(wg, "px_waitgroup_remove_waiter");
    waiter = px__waitq_find(&wg->waiters, id);
    if (!waiter)
        return 0;
    px__waitq_remove(waiter);
    return 1;
}
