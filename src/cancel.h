/* SPDX-License-Identifier: MIT */
/*
 * cancel.h - scopes, and what a cancellation point asks them.
 *
 * Scopes form a tree: those of one fiber are a chain from its body outward,
 * and the body's outer scope is the run's (px_loop.root) or the scope of the
 * group whose child the fiber is. Each scope keeps two words about itself and
 * what is outside it, so that nothing has to walk the chain but firing:
 *
 *   reach    the code with which cancellation points inside it fail now, or 0:
 *            the outermost fired scope's, as far as shields let it in
 *   nearest  the earliest deadline of the scopes from here outward that have
 *            not fired, shields or not
 *
 * and a fiber's `attention` says whether either of its innermost scope's needs
 * a look: a cancellation point is one load and one branch.
 */
#ifndef PX_CANCEL_H
#define PX_CANCEL_H

#include <parataxis/cancel.h>
#include <parataxis/timeout.h>

#include "scheduler.h"

#define PX_LOOKS 64 /* cancellation points */

/* Whether a fiber is inside its body: has begun, and not ended. */
static inline bool px__is_within(const px_fiber *fiber)
{
    return fiber->life && fiber->life->scope;
}

/* The look that `attention` asks for. 0, or the code to fail with; off-fiber
 * it is 0. Every 64th failure in a row goes to the tail of the run queue, and
 * every 64th look notices a passed deadline, failing or not. */
int px__look(px_fiber *self);
/* The same before a wait: reads the clock if a deadline may have passed, and
 * is PX_ENOFIBER off-fiber. */
int px__look_before_wait(px_fiber *self);

/* Fail a cancellation point, and count it: `scope` has fired. That need not
 * reach the fiber; the code of what does goes before. */
int px__refuse(px_fiber *self, const px_scope *scope);

/* For a wait that does not end early, and so is begun in a fired scope, too.
 * Before it: notice a passed deadline. True: that let the others run. */
bool px__notice_before_wait(px_fiber *self);
/* Once it is over: whether it was a failing point is known only now. Returns
 * `code`, and counts it if it has not `waited`, though something had fired. */
int px__after_wait(px_fiber *self, bool waited, bool fired, int code);

/* Whether there is no more to a cancellation point under a deadline than that
 * it has been counted: the clock is read by every 64th. */
static inline bool px__passes_by(px_fiber *self)
{
    return self->attention == PX_LOOK_DEADLINE &&
           ++self->life->looks < PX_LOOKS;
}

/* A cancellation point: on entry of every call that may park. */
static inline int px__cancellation_point(px_fiber *self)
{
    return PX_LIKELY(self->attention == 0) || px__passes_by(self)
               ? 0
               : px__look(self);
}

/* Before parking: a cancellation point that also notices a passed deadline. If
 * it is 0, nothing else may keep the fiber from parking: the others are taken
 * to have had their turn. */
static inline int px__may_park(px_fiber *self)
{
    return PX_LIKELY(self->attention == 0) ? 0 : px__look_before_wait(self);
}

/* px_hooks.on_timer: a sleep is over, or a scope around the fiber is due. */
void px__cancel_on_timer(px_fiber *fiber);
/* px_wait_class of px_sleep(): waiter.want is the time. */
extern const struct px_wait_class px__wait_sleep;

/* Fire a scope that has not fired. */
void px__scope_fire(px_scope *scope, int code);
/* Whether it is among this fiber's innermost scopes: entered twice. */
bool px__scope_is_near(const px_scope *scope, const px_fiber *self);
/* Enter and leave, without the checks of the public calls. */
void px__scope_push(px_scope *scope, px_fiber *self, px_nsec deadline,
                    uint32_t flags);
void px__scope_pop(px_scope *scope, px_fiber *self);
/* Leave `scope`, which the fiber has entered, unless it is forgotten; whatever
 * is still entered inside it is forgotten then, and its memory, which may be a
 * dead frame's, not read. An open group in there aborts, in the name of
 * `function`. */
void px__scope_unwind(px_scope *scope, px_fiber *self, const char *function);

/* Restore C1 of one scope, C2 of one fiber (cancel.c). */
static inline void px__scope_settle(px_scope *scope)
{
    const px_scope *outer = scope->outer;
    int from_outside = scope->flags & PX_SCOPE_SHIELD ? 0 : outer->reach;

    scope->reach = from_outside ? from_outside : scope->status;
    scope->nearest = scope->status ? PX_FOREVER : scope->deadline;
    if (outer->nearest < scope->nearest)
        scope->nearest = outer->nearest;
}

static inline void px__scope_settle_attention(px_fiber *fiber)
{
    const px_scope *scope = fiber->life->scope;
    unsigned look = fiber->attention & PX_LOOK_FAILURES;

    if (PX_UNLIKELY(scope->reach))
        look |= PX_LOOK_FIRED;
    if (scope->nearest != PX_FOREVER)
        look |= PX_LOOK_DEADLINE;
    fiber->attention = (uint8_t)look;
}

/* The body scope: entered when the fiber begins, left when it ends. What is
 * outside of it, and what never changes, was said at birth. */
static inline void px__scope_enter_body(px_fiber *self)
{
    px_scope *body = &self->life->body;
    const px_scope *outer = body->outer;

    self->life->scope = body;
    body->inner = NULL; /* the last body may have left one behind */
    body->status = 0;
    body->reach = 0;
    body->nearest = PX_FOREVER;
    if (PX_LIKELY(!outer->reach && outer->nearest == PX_FOREVER &&
                  !(self->flags & PX_FIBER_CANCEL_EARLY)))
        return;
    if (self->flags & PX_FIBER_CANCEL_EARLY)
        body->status = PX_ECANCELED;
    px__scope_settle(body);
    px__scope_settle_attention(self);
}

static inline void px__scope_leave_body(px_fiber *self)
{
    self->life->scope = NULL;
    self->attention = 0;
}

/* When a timeout from now is over. */
px_nsec px__deadline_of(px_loop *loop, px_nsec timeout);

#endif
