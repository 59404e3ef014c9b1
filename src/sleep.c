/* SPDX-License-Identifier: MIT */
/* sleep.c - giving way to the others: for a turn, or for a time. */
#include "cancel.h"

PX_HOT int px_yield(void)
{
    px_fiber *self = px__self;
    int err = px__may_park(self);

    return err ? err : px__requeue(self, 0);
}

static int sleep_until(px_fiber *self, px_nsec when)
{
    int err = px__may_park(self);

    if (err)
        return err;
    self->waiter.want = when;
    return px__park_until(self, &px__wait_sleep, when);
}

int px_sleep(px_nsec duration)
{
    px_fiber *self = px__self;

    if (duration <= 0)
        return px_yield();
    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    return sleep_until(self, px__clock_add(px__time(self->loop), duration));
}

int px_sleep_until(px_nsec when)
{
    px_fiber *self = px__self;

    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    if (when <= px__time(self->loop))
        return px_yield();
    return sleep_until(self, when);
}

px_nsec px_now(void)
{
    px_fiber *self = px__self;

    return px__is_fiber(self) ? px__time(self->loop) : px__clock_precise();
}
