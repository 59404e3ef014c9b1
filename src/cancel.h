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

enum { /* px_scope.flags */
       PX_SCOPE_SHIELD = 1,
       PX_SCOPE_GROUP = 2, /* a group's: left by px_group_wait only */
       PX_SCOPE_BODY = 4   /* around a fiber's body: left by its end only */
};

/* The look that `attention` asks for. 0, or the code to fail with; off-fiber
 * it is 0. Every 64th failure in a row goes to the tail of the run queue. */
int px__look(px_fiber *self);
/* The same before a wait: reads the clock if a deadline may have passed, and
 * is PX_ENOFIBER off-fiber. */
int px__look_before_wait(px_fiber *self);

/* Fail a cancellation point with `code`, and count it. */
int px__fail(px_fiber *self, int code);

/* A cancellation point: on entry of every call that may park. */
static inline int px__cancellation_point(px_fiber *self)
{
    return PX_LIKELY(self->attention == 0) ? 0 : px__look(self);
}

/* Before parking: a cancellation point that also notices a passed deadline. */
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
/* Leave `scope`; whatever is still entered inside it is forgotten, and its
 * memory, which may be a dead frame's, not read. An open group in there aborts,
 * in the name of `function`. */
void px__scope_unwind(px_scope *scope, px_fiber *self, const char *function);

/* The body scope: entered when the fiber begins, left when it ends. */
void px__scope_enter_body(px_scope *body, px_fiber *self);
void px__scope_leave_body(px_fiber *self);

/* When a timeout from now is over. */
px_nsec px__deadline_of(px_loop *loop, px_nsec timeout);

#endif
