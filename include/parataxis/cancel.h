/* SPDX-License-Identifier: MIT */
/*
 * cancel.h - scopes: where timeouts and cancellation live.
 *
 *     px_scope scope;
 *     if (px_scope_enter(&scope, 50 * PX_MSEC) == 0) {
 *         ... whatever parks in here ends after 50 ms ...
 *         int fired = px_scope_leave(&scope);
 *     }
 *
 * or, as a block, PX_WITHIN (timeout.h). A scope is a span of a fiber's code.
 * It fires once, by its deadline or by px_scope_cancel(), and stays fired:
 * every cancellation point inside it then fails at once. Code that ignores
 * one error cannot hang on the next. This is the model of Python's trio
 * (cancel scopes, level-triggered), on plain structs.
 *
 * Scopes nest. With several fired, the outermost decides the code; of several
 * deadlines the nearest is in force. A shielded scope keeps those outside from
 * reaching in, not from firing.
 *
 * A success is never turned into a failure, and a cancellation is never eaten
 * by a success: a wait that was granted before the scope fired returns 0, and
 * the very next cancellation point fails. So px_scope_leave() may report a
 * timeout though every call in the scope succeeded: what was taken is held.
 *
 * A deadline never fires early. By the real clock it is late by at most 1/64
 * of the timeout and the scheduler's next turn. It costs no timer until a
 * fiber parks under it. A fiber that keeps running notices its own passed
 * deadline at the next call that parks or yields, and at the latest at the
 * 64th cancellation point that needed no wait; leave and status read no clock:
 * a deadline that no call noticed did not fire.
 *
 * A scope usually lies on the fiber's stack (the heap is fine) and must stay
 * where it is from enter to leave. Scopes are left in reverse order by the
 * fiber that entered them. A fiber's body leaves its scopes before it returns;
 * those it does not are forgotten, their memory never read again. Cancelling
 * such a one, or one that was left, does nothing.
 */
#ifndef PARATAXIS_CANCEL_H
#define PARATAXIS_CANCEL_H

#include <parataxis/clock.h>
#include <parataxis/error.h>
#include <parataxis/types.h>

/** A scope. Needs no initialisation before px_scope_enter(). */
typedef struct px_scope {
    struct px_scope *outer; /* private, all of it */
    struct px_scope *inner;
    px_fiber *fiber;
    px_fiber *children;
    px_nsec deadline;
    px_nsec nearest;
    int status;
    int reach;
    uint32_t flags;
    uint32_t groups;
    uint32_t check;
    uint32_t run;
    px_fid id;
    uintptr_t reserved[2];
} px_scope;

PX_BEGIN_DECLS

/** Enter a scope that fires once `timeout` has passed; PX_FOREVER: only by
 *  px_scope_cancel(). A timeout of 0 or less has fired on entry: the first
 *  cancellation point fails, and nothing is taken. A scope that is entered must
 *  not be entered again before it is left. Never parks.
 *  @return 0; PX_EINVAL for NULL, and for one of the eight innermost that this
 *  fiber is in; PX_ENOFIBER. */
PX_API int px_scope_enter(px_scope *scope, px_nsec timeout);

/** px_scope_enter() with a point in time; the past has fired on entry.
 *  Never parks. @return as px_scope_enter(). */
PX_API int px_scope_enter_until(px_scope *scope, px_nsec deadline);

/** Leave the innermost scope. Never parks.
 *  @return 0, or the code with which this scope itself fired, PX_ETIMEDOUT or
 *  PX_ECANCELED; still entered: PX_EINVAL if it is not this fiber's innermost
 *  (or NULL, or not entered), PX_EPERM if another fiber entered it. */
PX_API int px_scope_leave(px_scope *scope);

/** Fire the scope with PX_ECANCELED; fibers parked inside it are interrupted at
 *  this moment, in the order of their ids. Idempotent; nothing on a fired or a
 *  left scope. From any fiber of the run, and off-fiber on its thread.
 *  Never parks. @return 0; PX_EINVAL for NULL. */
PX_API int px_scope_cancel(px_scope *scope);

/** Move the deadline; the past fires the scope with PX_ETIMEDOUT. On a fired or
 *  a left scope it changes nothing. From any fiber of the run; a parked one is
 *  re-armed. Never parks. @return 0; PX_EINVAL for NULL. */
PX_API int px_scope_set_deadline(px_scope *scope, px_nsec deadline);

/** The time until this scope's own deadline, never below 0; PX_FOREVER if it
 *  has none. Just after entry it may read up to 1/64 above the timeout. 0 for
 *  NULL. Never parks. */
PX_API px_nsec px_scope_remaining(const px_scope *scope);

/** 0, or the code with which this scope itself fired; also after leave.
 *  Never parks. @return 0, PX_ETIMEDOUT, PX_ECANCELED; PX_EINVAL for NULL. */
PX_API int px_scope_status(const px_scope *scope);

/** While on, scopes outside `scope` do not reach in: neither their deadlines,
 *  nor px_cancel(), nor px_stop(); its own firing does, and so does
 *  PX_ESTALLED. Toggling it changes what reaches the fiber from then on; a code
 *  already handed out is not taken back. Never parks.
 *  @return 0; PX_EINVAL for NULL or a scope that is not entered. */
PX_API int px_scope_shield(px_scope *scope, bool on);

/** A cancellation point that never parks, not even at the 64th failure.
 *  @return 0, PX_ECANCELED, PX_ETIMEDOUT; 0 off-fiber. */
PX_API PX_NODISCARD int px_check(void);

/** The nearest deadline of the scopes that reach the caller, those that have
 *  fired too, so it may be past; PX_FOREVER if there is none, and off-fiber.
 *  Never parks. */
PX_API px_nsec px_deadline(void);

/** Call `fn(token, arg)` on this fiber, inside a scope without a deadline that
 *  px_scope_cancel(token) fires. A scope that fn has not left is forgotten; it
 *  is left on every way out of fn, an exception too. Parks only as fn does.
 *  @return what fn returned; PX_EINVAL for a NULL fn, PX_ENOFIBER.
 *  Cancellation point only where fn has one. */
PX_API PX_NODISCARD int px_with_cancel(int (*fn)(px_scope *token, void *arg),
                                       void *arg);

/** Call `fn(arg)` on this fiber, inside a shielded scope that fires after
 *  `at_most`: scopes outside do not reach in, so clean-up can finish, but not
 *  for ever. Cancellation point only where fn has one.
 *  @return what fn returned; PX_EINVAL for a NULL fn, PX_ENOFIBER. */
PX_API PX_NODISCARD int px_with_shield(px_nsec at_most, px_fn fn, void *arg);

PX_END_DECLS

#endif
