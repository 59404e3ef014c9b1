/* SPDX-License-Identifier: MIT */
/*
 * scheduler.h - who runs next.
 *
 * Invariants, whenever user code runs:
 *   L1  A fiber is in exactly one place: running; in the run queue (ready); on
 *       what it waits for (parked); nowhere (done).
 *   L2  Whoever makes a parked fiber ready has taken it off what it waited on,
 *       and decided what its call returns: a wake is a verdict, given once.
 *   L3  A timer is in the heap only while its fiber is parked.
 *
 * There is no scheduler context. A fiber that parks picks the next and
 * switches straight to it; if there is none it looks for work (timers, the
 * poller) on its own stack, and if it is itself what woke, just returns. Only
 * what must not run on a small stack, or not as a fiber, goes back to the
 * thread: the end of the run and a deadlock.
 */
#ifndef PX_SCHEDULER_H
#define PX_SCHEDULER_H

#include "loop.h"

/* Set up what does not depend on options; 0. */
void px__loop_init(px_loop *loop, const struct px_hooks *hooks);
/* Run until every fiber has ended; on the thread's stack. */
void px__loop_run(px_loop *loop);

/* Park the running fiber: the caller has put it where its waker finds it. Arms
 * a timer if a deadline is in force. Returns the waker's verdict. Call it last:
 * it is then a jump into the switch. */
int px__park(px_fiber *self, const struct px_wait_class *waiting);
/* The same with a timer at `when`, which the scope's deadline may precede. */
int px__park_until(px_fiber *self, const struct px_wait_class *waiting,
                   px_nsec when);
/* Go to the tail of the run queue and return `verdict` when it is our turn. */
int px__requeue(px_fiber *self, int verdict);
/* A fiber ends: go on with the others, for good. Not said to compilers: to be
 * jumped to, too, which keeps calls and returns in balance (context.h). */
void px__depart(px_fiber *self);
/* Begin with `child`, the caller ahead of the run queue. Returns 0. */
int px__start_eagerly(px_fiber *self, px_fiber *child);

/* The one way to make a fiber ready: its call will return `verdict`. Returns 0,
 * for callers that end with it. */
int px__ready(px_fiber *fiber, int verdict);
/* Put a new fiber at the tail of the run queue. Until it begins, its `sp` is
 * the top of its stack. */
void px__enqueue(px_loop *loop, px_fiber *fiber);
/* Whether something is in the run queue. */
bool px__has_ready(const px_loop *loop);

/* Arm the timer of a parked fiber for the nearest of its scopes' deadlines and
 * `when`; disarm it if there is neither. */
void px__timer_arm(px_fiber *fiber, px_nsec when);

/* Before a fiber is made: whether there may be another, and room for its timer:
 * arming it allocates nothing. */
bool px__make_room(px_loop *loop);
static inline bool px__has_room(px_loop *loop)
{
    return PX_LIKELY(loop->alive < loop->room) || px__make_room(loop);
}

/* Read the loop's clock. */
px_nsec px__time(px_loop *loop);
/* A time that is not before now, cheaper. */
static inline px_nsec px__time_at_most(px_loop *loop)
{
    return loop->virtual ? loop->now : px__quick_clock(&loop->quick_clock);
}

/* Make a fiber of one whose life is over, and whose record and stack nobody has
 * used since: what ended lives leave as it is need not be set. */
static inline void px__fiber_reborn(px_fiber *fiber, px_fn fn, void *arg,
                                    unsigned flags, const void *site)
{
    struct px_life *life = fiber->life;

    fiber->sp = px__stack_top(&life->stack);
    fiber->attention = 0;
    fiber->flags = (uint16_t)flags;
    fiber->locks = 0;
    fiber->awaiter = NULL;
    life->looks = 0;
    life->failures = 0;
    life->unparked = 0;
    life->fn = fn;
    life->arg = arg;
    life->on_end = NULL;
    life->site = site;
    life->body.outer = &fiber->loop->root;
}

/* Make a fiber of a record and a stack: it begins with its `sp` at the top of
 * that. It is in no queue, and not yet one of
 * the run's: on any thread. */
static inline void px__fiber_born(px_fiber *fiber, px_loop *loop,
                                  struct px_life *life, px_fn fn, void *arg,
                                  unsigned flags, const void *site)
{
    px_scope *body = &life->body;

    fiber->loop = loop;
    fiber->life = life;
    fiber->waiter.queue = NULL;
    body->fiber = fiber;
    body->children = NULL;
    body->deadline = PX_FOREVER;
    body->flags = PX_SCOPE_BODY;
    body->groups = 0;
    body->check = 0;
    body->run = (uint32_t)loop->run;
    px__fiber_reborn(fiber, fn, arg, flags, site);
}

/* The rest of it, on the run's thread: count it, and give it its id. */
static inline void px__enlist(px_loop *loop, px_fiber *fiber)
{
    fiber->id = loop->next_id++;
    loop->alive++;
    PX_NOTE_BIRTH(
        fiber, fiber->life->stack.low,
        (size_t)(px__stack_top(&fiber->life->stack) - fiber->life->stack.low));
    PX_NOTE_NAME(fiber, px__fiber_name(fiber));
}

/* How many fibers have ended. */
static inline uint64_t px__ended(const px_loop *loop)
{
    return (uint64_t)loop->next_id - loop->alive;
}

/* Reclaim the record of a fiber that has ended, if nobody needs it: it is
 * detached or awaited, not kept by its awaiter, holds no mutex, and its stack
 * has been given back. Else that is done by whoever needs it last. */
void px__forget(px_fiber *fiber);
/* Whether both record and stack of an ended fiber are free as they are. */
static inline bool px__is_spare(const px_loop *loop, const px_fiber *fiber)
{
    return fiber->flags & (PX_FIBER_DETACHED | PX_FIBER_CONSUMED) &&
           (fiber->flags & (PX_FIBER_USUAL | PX_FIBER_KEPT)) ==
               PX_FIBER_USUAL &&
           fiber->locks == 0 && !fiber->life->name &&
           loop->usual->warm_count < loop->usual->warm_most;
}

/* In a checked build a handle that was consumed aborts, as far as its record
 * was not used again. One that another fiber's px_await() is about to consume
 * is good yet, though its fiber has ended. */
#define PX_CHECK_HANDLE(fiber, function)                                       \
    (PX_CHECK_THREAD((fiber)->loop, function, "fiber", fiber),                 \
     PX_CHECK_THAT(!px__was_consumed(fiber), function,                         \
                   "fiber %p: the handle was consumed",                        \
                   (const void *)(fiber)))
static inline bool px__was_consumed(const px_fiber *fiber)
{
    return fiber->flags & PX_FIBER_CONSUMED &&
           !(fiber->flags & PX_FIBER_KEPT && fiber->awaiter != px__self);
}

/* Give the stack of the fiber that ended last back. */
void px__bury_zombie(px_loop *loop);
static inline void px__bury(px_loop *loop)
{
    if (loop->zombie)
        px__bury_zombie(loop);
}

/* Try to let a parked fiber go. False if it is not parked, or must stay. */
static inline bool px__interrupt(px_fiber *fiber, int code)
{
    return fiber->state == PX_STATE_PARKED &&
           fiber->waiting->interrupt(fiber, code);
}

/* Whether nothing can make a fiber ready any more. */
bool px__is_stalled(px_loop *loop);

#if defined(PX_TESTING)
/* The seam: in the test build, who explores schedules says who is next, of
 * those that are ready, in the order in which they became so. An answer of n +
 * ... does something else first, and asks again. Set it before the run; NULL:
 * the run queue. */
enum {
    PX_SEAM_TIME,   /* the virtual clock goes on to the next timer */
    PX_SEAM_POLL,   /* look at the descriptors */
    PX_SEAM_DELIVER /* take what other threads have brought */
};
#define PX_SEAM_MOST 64
extern size_t (*px__seam_pick)(px_loop *loop, px_fiber *const *ready, size_t n);
/* Let whoever is picked run next; it may be the caller. */
void px__seam_yield(px_fiber *self);
#endif

#endif
