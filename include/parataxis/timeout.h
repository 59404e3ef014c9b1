/* SPDX-License-Identifier: MIT */
/*
 * timeout.h - a deadline around a piece of code.
 *
 *     PX_WITHIN(limit, 50 * PX_MSEC) {
 *         err = px_sem_down(&pool);
 *     }
 *
 * Conveniences over the scopes of cancel.h. Unlike Parataxis' with_timeout,
 * the code runs on the calling fiber: a lock taken in it is the caller's.
 */
#ifndef PARATAXIS_TIMEOUT_H
#define PARATAXIS_TIMEOUT_H

#include <string.h>

#include <parataxis/cancel.h>

PX_BEGIN_DECLS

/** Call `fn(arg)` on this fiber, inside a scope that fires once `timeout` has
 *  passed. A call in it that is cut short returns PX_ETIMEDOUT to fn, and fn
 *  hands it on; an fn that reaches no cancellation point is not interrupted.
 *  The scope is left on every way out of fn, an exception too.
 *  Cancellation point only where fn has one.
 *  @return what fn returned; PX_EINVAL for a NULL fn, PX_ENOFIBER. */
PX_API PX_NODISCARD int px_with_timeout(px_nsec timeout, px_fn fn, void *arg);

/** px_with_timeout() with a point in time. Cancellation point only where fn has
 *  one. @return as px_with_timeout(). */
PX_API PX_NODISCARD int px_with_deadline(px_nsec when, px_fn fn, void *arg);

/** Leave `scope` whatever is still entered inside it (that is forgotten), and
 *  do nothing if it is not entered. What PX_WITHIN ends with. To find that out
 *  it may look at those that were around it when it was entered: of a scope
 *  that was forgotten it is not called once they are no more. Never parks. */
PX_API void px_scope_guard_release(px_scope *scope);

PX_END_DECLS

static inline px_scope px_scope_not_entered(void)
{
    px_scope scope;

    memset(&scope, 0, sizeof(scope));
    return scope;
}

/** PX_WITHIN(name, timeout) { ... }: a scope called `name` around the block,
 *  left on every way out: break and continue end the block, return, goto and
 *  an exception leave it. The body is skipped where the scope cannot be entered
 *  (off-fiber). The name is known inside the block. */
#define PX_WITHIN(name, timeout)                                               \
    PX_WITHIN_(name, timeout, PX_CONCAT(px_within_, __COUNTER__))
#define PX_WITHIN_(name, timeout, once)                                        \
    for (px_scope name PX_CLEANUP(px_scope_guard_release) =                    \
                      px_scope_not_entered(),                                  \
                  *once = px_scope_enter(&name, (timeout)) ? NULL : &name;     \
         once; once = NULL)

#endif
