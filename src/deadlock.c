/* SPDX-License-Identifier: MIT */
/*
 * deadlock.c - reports a deadlock, and gets the fibers out of it.
 *
 * Each round interrupts the fibers that are parked, in the order of their ids,
 * through shields too; one that an earlier interruption let through keeps its
 * grant. They clean up, and may deadlock again; that is another round. A run
 * whose fibers ignore it for ever, or wait for what does not end early, can
 * only be ended from outside: the process aborts.
 */
#include "deadlock.h"

#include "base/panic.h"
#include "debug/dump.h"

#define ROUNDS 1000

/* The report; true if it ended the deadlock. */
static bool report(px_loop *loop)
{
    if (loop->options.on_deadlock)
        loop->options.on_deadlock(loop->options.ctx);
    else
        px__dump_deadlock(loop, stderr);
    if (px__loop != loop)
        px__panic("px_run", "on_deadlock returned in a forked child");
    return !px__is_stalled(loop);
}

static size_t interrupt_all(px_loop *loop)
{
    size_t count = 0;

    px_fiber *list = px__fibers_alive(&loop->arena);

    while (list) {
        px_fiber *fiber = list;

        list = fiber->life->mark;
        fiber->life->mark = NULL;
        count += px__interrupt(fiber, PX_ESTALLED);
    }
    return count;
}

static _Noreturn void give_up(px_loop *loop, const char *cause)
{
    px__dump_deadlock(loop, stderr);
    px__panic("px_run", "the deadlock can not be ended: %s", cause);
}

void px__deadlock(px_loop *loop)
{
    size_t told;

    (void)px__time(loop); /* it may have waited for long */
    if (!loop->reported) {
        loop->reported = true;
        if (report(loop))
            return;
    }
    loop->stalled = true;
    if (px__ended(loop) != loop->ended_at_stall)
        loop->stall_rounds = 0;
    loop->ended_at_stall = px__ended(loop);
    if (++loop->stall_rounds > ROUNDS)
        give_up(loop, "1000 times, no fiber has ended for being told");
    told = interrupt_all(loop);
    /* A wait that cannot end early is for another thread: no deadlock. */
    if (PX_NEVER(told == 0))
        give_up(loop, "what is waited for does not end early");
}
