/* SPDX-License-Identifier: MIT */
/*
 * waitgroup.h - fan-in: wait until a counter is zero.
 *
 *     px_waitgroup wg = PX_WAITGROUP_INIT(0);
 *     for (i = 0; i < n; i++)
 *         err = px_waitgroup_go(&wg, job, &jobs[i]);
 *     err = px_waitgroup_wait(&wg);
 *
 * The group is a number: it does not know who reports. Add before you spawn
 * (px_waitgroup_go does), report on every way out. A counter below zero is the
 * mark of broken accounting: it moves all the same, and everybody is told.
 *
 * wait means "until zero", not "until the next zero": a woken waiter that finds
 * the count above zero again parks again. All zero bytes is
 * PX_WAITGROUP_INIT(0). For groups that cancel, and own their fibers, see
 * group.h.
 */
#ifndef PARATAXIS_WAITGROUP_H
#define PARATAXIS_WAITGROUP_H

#include <parataxis/error.h>
#include <parataxis/types.h>

typedef struct px_waitgroup {
    int64_t count;    /* private */
    px_waitq waiters; /* private: oldest first */
    uint32_t check;   /* private */
    uint32_t unused;
    uintptr_t reserved[2];
} px_waitgroup;

#define PX_WAITGROUP_INIT(n)                                                   \
    {                                                                          \
        (n), {NULL, NULL}, 0, 0, {0, 0}                                        \
    }

PX_BEGIN_DECLS

/** A group that waits for `count` reports. Never parks.
 *  @return 0; PX_EINVAL for NULL or a negative count. */
PX_API int px_waitgroup_init(px_waitgroup *wg, int64_t count);

/** End its use. Frees nothing; a checked build aborts on use afterwards.
 *  Never parks. @return 0; PX_EBUSY with waiters, PX_EINVAL. */
PX_API int px_waitgroup_destroy(px_waitgroup *wg);

/** Add `n`, which may be negative or 0. Reaching zero wakes everyone, and the
 *  queue is empty at that moment; so does going below zero, and then their wait
 *  returns PX_ENEGATIVE. Works everywhere on the loop's thread. Never parks.
 *  @return 0; PX_ENEGATIVE if the counter is now below zero (it has moved);
 *  unmoved: PX_EOVERFLOW, PX_EINVAL. */
PX_API int px_waitgroup_add(px_waitgroup *wg, int64_t n);

/** px_waitgroup_add(wg, -1). Never parks. @return as px_waitgroup_add(). */
PX_API int px_waitgroup_done(px_waitgroup *wg);

/** Add 1, start a detached fiber that runs `fn(arg)` (at once, until it first
 *  parks), and report when fn has ended. Never parks.
 *  @return 0; nothing started and the count as it was: PX_EINVAL, PX_ENOFIBER,
 *  PX_ENOMEM, PX_EOVERFLOW, PX_ENEGATIVE if the count would still be below
 *  zero. */
PX_API int px_waitgroup_go(px_waitgroup *wg, px_fn fn, void *arg);

/** Wait until the count is zero; at zero return at once. Cancellation point.
 *  @return 0; the group as it was: PX_ENEGATIVE below zero, PX_ECANCELED,
 *  PX_ETIMEDOUT, PX_ESTALLED, PX_EINVAL, PX_ENOFIBER off-fiber, at zero too. */
PX_API PX_NODISCARD int px_waitgroup_wait(px_waitgroup *wg);

/** The count; below zero the accounting is broken. Never parks. */
PX_API int64_t px_waitgroup_count(const px_waitgroup *wg);

/** The same number as px_waitgroup_count(). Never parks. */
PX_API int64_t px_waitgroup_remaining(const px_waitgroup *wg);

/** How many fibers wait. Never parks. */
PX_API size_t px_waitgroup_waiters(const px_waitgroup *wg);

/** Write the ids of at most `cap` waiting fibers, oldest first. Never parks.
 *  @return how many wait. */
PX_API size_t px_waitgroup_waiter_ids(const px_waitgroup *wg, px_fid *out,
                                      size_t cap);

/** Take fiber `id` out of the queue. It is not woken: it stays parked until it
 *  is cancelled, timed out or stalled. Never parks.
 *  @return 1, or 0 if it was not waiting. */
PX_API size_t px_waitgroup_remove_waiter(px_waitgroup *wg, px_fid id);

PX_END_DECLS

#endif
