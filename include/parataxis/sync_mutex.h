/* SPDX-License-Identifier: MIT */
/*
 * sync_mutex.h - a lock with an owner, handed over in the order of arrival.
 *
 *     static px_mutex lock = PX_MUTEX_INIT;
 *     PX_MUTEX_HOLD(&lock, err) { ... alone in here, parking or not ... }
 *
 * Only the fiber that has it may unlock it; locking it again is an error, not
 * a hang. Unlock hands it straight to the longest waiting fiber: the owner is
 * already that one, and the queue shorter, before it runs. An owner is a fiber
 * of a run: a fiber that ends holding the lock leaves it held, px_dump() and
 * the deadlock report say by whom, and a lock left behind by an earlier run
 * belongs to nobody now.
 *
 * All zero bytes is PX_MUTEX_INIT. Do not copy or free one that is in use. It
 * is for the fibers of one thread; hold a pthread mutex across a parking call
 * and the next fiber that wants it stops the whole thread: use this instead.
 */
#ifndef PARATAXIS_SYNC_MUTEX_H
#define PARATAXIS_SYNC_MUTEX_H

#include <parataxis/error.h>
#include <parataxis/types.h>

typedef struct px_mutex {
    uint64_t run;     /* private: the owner's run */
    px_fid owner;     /* private: the owner's id + 1; 0 free */
    px_waitq waiters; /* private: oldest first */
    uint32_t check;   /* private */
    uint32_t unused;
    uintptr_t reserved[2];
} px_mutex;

#define PX_MUTEX_INIT                                                          \
    {                                                                          \
        0, 0, {NULL, NULL}, 0, 0, {0, 0}                                       \
    }

PX_BEGIN_DECLS

/** A free mutex. Never parks. @return 0; PX_EINVAL for NULL. */
PX_API int px_mutex_init(px_mutex *mutex);

/** End its use. Frees nothing; a checked build aborts on use afterwards.
 *  Never parks. @return 0; PX_EBUSY while held or waited for, PX_EINVAL. */
PX_API int px_mutex_destroy(px_mutex *mutex);

/** Lock, parking until it is this fiber's turn. Cancellation point.
 *  @return 0 as the owner; not: PX_EDEADLK if this fiber has it already,
 *  PX_ECANCELED, PX_ETIMEDOUT, PX_ESTALLED, PX_EINVAL for NULL, PX_ENOFIBER
 *  off-fiber, free or not. */
PX_API PX_NODISCARD int px_mutex_lock(px_mutex *mutex);

/** Lock if it is free. Never parks.
 *  @return 0 taken; PX_EBUSY if another fiber has it, PX_EDEADLK if this one
 *  does, PX_EINVAL, PX_ENOFIBER off-fiber. */
PX_API int px_mutex_try_lock(px_mutex *mutex);

/** Unlock, handing it to the oldest waiter. Never refused for a cancellation.
 *  Never parks. @return 0; nothing changed: PX_ENOTLOCKED if it is free,
 *  PX_EPERM if another fiber has it or the caller is off-fiber, PX_EINVAL. */
PX_API int px_mutex_unlock(px_mutex *mutex);

/** The owner's id, PX_NO_FIBER when it is free or NULL. Works off-fiber.
 *  Never parks. */
PX_API px_fid px_mutex_owner(const px_mutex *mutex);

/** How many fibers are queued for it. Never parks. */
PX_API size_t px_mutex_waiters(const px_mutex *mutex);

/** Write the ids of at most `cap` queued fibers, oldest first. Never parks.
 *  @return how many are queued. */
PX_API size_t px_mutex_waiter_ids(const px_mutex *mutex, px_fid *out,
                                  size_t cap);

/** Take fiber `id` out of the queue. It is not woken: it stays parked until it
 *  is cancelled, timed out or stalled. Never parks.
 *  @return 1, or 0 if it was not queued. */
PX_API size_t px_mutex_remove_waiter(px_mutex *mutex, px_fid id);

/** Lock, call `fn(arg)`, unlock on every way out of fn, an exception too.
 *  Cancellation point. @return fn's value, or px_mutex_lock()'s code, fn not
 *  called; PX_EINVAL for a NULL fn. */
PX_API PX_NODISCARD int px_mutex_with(px_mutex *mutex, px_fn fn, void *arg);

/** A lock with a scope: see PX_MUTEX_GUARD. */
typedef struct px_mutex_guard {
    px_mutex *mutex; /* private: NULL once released */
    int status;      /* what px_mutex_lock() returned */
} px_mutex_guard;

/** Unlock now, once; later calls, and a guard that holds nothing, do nothing.
 *  Never parks. */
PX_API void px_mutex_guard_release(px_mutex_guard *guard);

PX_END_DECLS

/** px_mutex_lock() into a guard: what PX_MUTEX_GUARD begins with.
 *  Cancellation point. */
static inline px_mutex_guard px_mutex_guard_begin(px_mutex *mutex)
{
    px_mutex_guard guard;

    guard.status = px_mutex_lock(mutex);
    guard.mutex = guard.status == 0 ? mutex : NULL;
    return guard;
}

/** PX_MUTEX_GUARD(name, mutex): declare `px_mutex_guard name`, which locks, and
 *  unlocks when it leaves its C scope, on every way out. Look at name.status.
 *  Cancellation point. */
#define PX_MUTEX_GUARD(name, mutex)                                            \
    px_mutex_guard name PX_CLEANUP(px_mutex_guard_release) =                   \
        px_mutex_guard_begin(mutex)

/** PX_MUTEX_HOLD(mutex, err) { ... }: err is px_mutex_lock()'s result; the body
 *  runs only if it is 0, as the owner. break and continue end the block, return
 *  and goto leave it; all unlock. Cancellation point. */
#define PX_MUTEX_HOLD(mutex, err) PX_MUTEX_HOLD_(mutex, err, __COUNTER__)
#define PX_MUTEX_HOLD_(mutex, err, n)                                          \
    PX_MUTEX_HOLD_AS_(mutex, err, PX_CONCAT(px_locked_, n),                    \
                      PX_CONCAT(px_once_, n))
#define PX_MUTEX_HOLD_AS_(mutex, err, held, once)                              \
    for (px_mutex_guard held PX_CLEANUP(px_mutex_guard_release) =              \
                            px_mutex_guard_begin(mutex),                       \
                        *once = ((err) = held.status) ? NULL : &held;          \
         once; once = NULL)

#endif
