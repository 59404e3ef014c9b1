/* SPDX-License-Identifier: MIT */
/*
 * group.h - structured concurrency: no fiber outlives its group.
 *
 *     px_group group;
 *     int err = px_group_open(&group);
 *     for (i = 0; err == 0 && i < n; i++)
 *         err = px_group_spawn(&group, job, &jobs[i]);
 *     first_failure = px_group_wait(&group);
 *
 * A group is a scope with children in it. A deadline or a cancellation around
 * it reaches every child; the first child that fails (returns a negative code)
 * cancels the others. A child's PX_ECANCELED or PX_ETIMEDOUT is no failure if
 * the group's own cancellation, or a scope around the group, has fired when it
 * ends; a child's own timeout is one, and so is the end of a child that
 * px_cancel() was called for. Known elsewhere as trio's nursery and
 * Go's errgroup.
 *
 * An open group must be waited for by the fiber that opened it, before its
 * frame goes: a fiber that returns with one open aborts the process. Groups
 * nest, and a child may spawn into its own group; what px_spawn() starts
 * inside a child is outside the group.
 */
#ifndef PARATAXIS_GROUP_H
#define PARATAXIS_GROUP_H

#include <parataxis/cancel.h>
#include <parataxis/scheduler.h>

/** A group. Needs no initialisation before px_group_open(). */
typedef struct px_group {
    px_scope scope;    /* private, all of it */
    px_waitq spawners; /* wait for a place, oldest first */
    px_fiber *waiter;  /* the opener, parked in px_group_wait */
    int64_t running;   /* children, and places handed to spawners */
    int64_t limit;     /* 0: none */
    int failure;       /* the first */
    uint32_t check;
    uintptr_t reserved[4];
} px_group;

PX_BEGIN_DECLS

/** Open a group: enters a scope in the calling fiber. A group that is open must
 *  not be opened again before it is waited for. Never parks.
 *  @return 0; PX_EINVAL for NULL, and where px_scope_enter() says it;
 *  PX_ENOFIBER. */
PX_API int px_group_open(px_group *group);

/** Start `fn(arg)` as a child, at once until it first parks; it lives inside
 *  the group's scope. May come from the opener or from any child; at the
 *  limit it waits for a place, in turn. Cancellation point.
 *  @return 0; nothing started and the group as it was: PX_ECANCELED or
 *  PX_ETIMEDOUT also where the group itself has fired, PX_ESTALLED, PX_EINVAL
 *  for NULL or a closed group, PX_ENOFIBER, PX_ENOMEM. */
PX_API PX_NODISCARD int px_group_spawn(px_group *group, px_fn fn, void *arg);

/** px_group_spawn() with options; NULL options are the defaults.
 *  Cancellation point. @return as px_group_spawn() and px_spawn_with(). */
PX_API PX_NODISCARD int px_group_spawn_with(px_group *group,
                                            const px_spawn_options *options,
                                            px_fn fn, void *arg);

/** Cancel every child, and the opener inside the group. Idempotent. From any
 *  fiber of the run, and off-fiber on its thread. Never parks.
 *  @return 0; PX_EINVAL for NULL or a closed group. */
PX_API int px_group_cancel(px_group *group);

/** Wait until every child has ended, and close the group. If the waiter is
 *  interrupted the children are cancelled and still waited for: it returns only
 *  when they have ended, at a deadlock too. Cancellation point.
 *  @return the first failure; else the code of the scope around the group that
 *  fired, PX_ECANCELED or PX_ETIMEDOUT; else 0 (so after a deliberate
 *  px_group_cancel(), too). Still open: PX_EPERM for another fiber than the
 *  opener, PX_EINVAL with inner scopes not left, for NULL and for a closed
 *  group, PX_ENOFIBER. */
PX_API PX_NODISCARD int px_group_wait(px_group *group);

/** At most `n` children at once: px_group_spawn() then waits. Raising it lets
 *  waiting spawners in; lowering it stops no child. Never parks.
 *  @return 0; PX_EINVAL below 1, for NULL and for a closed group. */
PX_API int px_group_set_limit(px_group *group, int64_t n);

/** Run fn(0, arg) ... fn(n-1, arg), each in a fiber of its own, started in
 *  order, at most `limit` at once (0: no bound), and wait for all. The rules of
 *  a group hold; a spawn that fails cancels the rest and is returned; positive
 *  values are dropped. Cancellation point.
 *  @return 0, for n == 0 too; the first failure; else the code of the scope
 *  around it that fired, PX_ECANCELED or PX_ETIMEDOUT; PX_ENOMEM for a spawn
 *  that failed; PX_ESTALLED, PX_EINVAL for a NULL fn, PX_ENOFIBER. */
PX_API PX_NODISCARD int px_map_concurrent(size_t n, size_t limit,
                                          int (*fn)(size_t i, void *arg),
                                          void *arg);

PX_END_DECLS

#endif
