/* SPDX-License-Identifier: MIT */
/*
 * semaphore.h - permits, first come, first served.
 *
 *     static px_sem pool = PX_SEM_INIT_BOUNDED(4);
 *     PX_SEM_HOLD(&pool, err) { ... at most four fibers in here ... }
 *
 * A counter of free permits with a queue. Unbounded (px_sem_init) it is a
 * plain counter, as Acme::Parataxis has it: up before any down is fine, and
 * the count may go below zero. Bounded (px_sem_init_bounded) it caps what may
 * be free, as PHP's Async and Go's x/sync do, and the limit can be moved.
 *
 * A waiter's place is its arrival, always. Permits are handed over, not
 * announced: up takes them on behalf of the oldest waiter before it returns,
 * so nobody can slip in between. A large request at the head holds back the
 * small ones behind it, and a try never overtakes a queue; so nobody starves.
 * One exception: on a bounded semaphore a request above the limit can not be
 * granted. It is passed over, holds back nobody, and is back in its own place
 * once px_sem_set_limit() reaches it.
 *
 * A semaphore has no owner: one fiber may take and another give back. All zero
 * bytes is PX_SEM_INIT(0). Do not copy or free one that fibers wait on. It
 * belongs to one thread's loop; calls that need not wait work off-fiber too.
 */
#ifndef PARATAXIS_SEMAPHORE_H
#define PARATAXIS_SEMAPHORE_H

#include <parataxis/error.h>
#include <parataxis/types.h>

typedef struct px_sem {
    int64_t count;      /* private: free permits */
    int64_t bound;      /* private: 0 unbounded, else ~limit */
    px_waitq waiters;   /* private: may be granted, oldest first */
    px_waitq passed;    /* private: want more than the limit, oldest first */
    uint32_t closed;    /* private */
    uint32_t check;     /* private */
    uint64_t arrivals;  /* private: numbers the waiters */
    uintptr_t reserved[2];
} px_sem;

#define PX_SEM_INIT(n)                                                         \
    {                                                                          \
        (n), 0, {NULL, NULL}, {NULL, NULL}, 0, 0, 0, {0, 0}                    \
    }
#define PX_SEM_INIT_BOUNDED(n)                                                 \
    {                                                                          \
        (n) < 1 ? 1 : (n), ~(int64_t)((n) < 1 ? 1 : (n)), {NULL, NULL},        \
            {NULL, NULL}, 0, 0, 0, {0, 0}                                      \
    }

/** px_sem_limit() of an unbounded semaphore. */
#define PX_SEM_UNBOUNDED ((int64_t)-1)

PX_BEGIN_DECLS

/** An unbounded semaphore with `count` permits; below zero is allowed: then
 *  nobody passes until it has risen above zero. Never parks.
 *  @return 0; PX_EINVAL for NULL. */
PX_API int px_sem_init(px_sem *sem, int64_t count);

/** A bounded semaphore: `permits` free, and never more. Below 1 is raised to 1
 *  (as PHP's does). Never parks. @return 0; PX_EINVAL for NULL. */
PX_API int px_sem_init_bounded(px_sem *sem, int64_t permits);

/** End its use. Frees nothing; a checked build (PARATAXIS_CHECKED) aborts on
 *  use afterwards. Never parks. @return 0; PX_EBUSY with waiters, PX_EINVAL. */
PX_API int px_sem_destroy(px_sem *sem);

/** Take one permit, parking until it is this fiber's turn. Cancellation point.
 *  @return 0 holding it; holding nothing: PX_ECANCELED, PX_ETIMEDOUT,
 *  PX_ESTALLED, PX_ECLOSED, PX_EINVAL for NULL, PX_ENOFIBER where it would have
 *  to wait off-fiber. */
PX_API PX_NODISCARD int px_sem_down(px_sem *sem);

/** Take `n` permits, all or none; 0 takes nothing and waits for nothing.
 *  Cancellation point.
 *  @return as px_sem_down(); PX_EINVAL also for n < 0. */
PX_API PX_NODISCARD int px_sem_down_n(px_sem *sem, int64_t n);

/** Give one permit back, and make ready, in order, the waiters it satisfies:
 *  they hold it before they run. The caller need not have taken one. Works
 *  everywhere on the loop's thread, on a closed semaphore too. Never parks.
 *  @return 0; nothing changed: PX_EOVERFLOW if more than the limit (or
 *  INT64_MAX) would be free, counted before any waiter is served; PX_EINVAL. */
PX_API int px_sem_up(px_sem *sem);

/** Give `n` permits back; 0 does nothing. Never parks.
 *  @return as px_sem_up(); PX_EINVAL also for n < 0. */
PX_API int px_sem_up_n(px_sem *sem, int64_t n);

/** Take one permit if it is free and nobody is queued for it. Works off-fiber.
 *  Never parks. @return 0 taken; PX_EAGAIN, PX_ECLOSED, PX_EINVAL. */
PX_API int px_sem_try_down(px_sem *sem);

/** Take `n` permits if they are free and nobody is queued; 0 always succeeds.
 *  Never parks. @return 0 taken; PX_EAGAIN, PX_ECLOSED, PX_EINVAL. */
PX_API int px_sem_try_down_n(px_sem *sem, int64_t n);

/** Add `diff` to the count, then serve the queue while permits last. Below zero
 *  it takes permits away, releases nobody, and the count may go below zero.
 *  Never parks. @return 0; nothing changed: PX_EOVERFLOW as px_sem_up(),
 *  PX_EINVAL for NULL. */
PX_API int px_sem_adjust(px_sem *sem, int64_t diff);

/** Wait in the queue, like any other, until the count is above zero, and take
 *  nothing: the permit goes on to the next in the queue (Parataxis calls this
 *  "wait"). Cancellation point. @return as px_sem_down(). */
PX_API PX_NODISCARD int px_sem_wait_available(px_sem *sem);

/** Move the limit of a bounded semaphore: the count moves with it, and may go
 *  below zero. Holders keep what they hold; newcomers wait; requests that the
 *  new limit reaches, or no longer reaches, change sides. Then the queue is
 *  served. 0 pauses the pool. Never parks.
 *  @return 0; nothing changed: PX_EINVAL below 0 or unbounded, PX_EOVERFLOW. */
PX_API int px_sem_set_limit(px_sem *sem, int64_t limit);

/** Close it: everyone parked on it, and every later down, try and
 *  wait_available that asks for something, gets PX_ECLOSED. up still works.
 *  Idempotent. Never parks. @return 0; PX_EINVAL for NULL. */
PX_API int px_sem_close(px_sem *sem);

/** Free permits; may be below zero. 0 for NULL. Never parks. */
PX_API int64_t px_sem_count(const px_sem *sem);

/** The limit, or PX_SEM_UNBOUNDED. 0 for NULL. Never parks. */
PX_API int64_t px_sem_limit(const px_sem *sem);

/** How many fibers are queued, those passed over too. Never parks. */
PX_API size_t px_sem_waiters(const px_sem *sem);

/** Write the ids of at most `cap` queued fibers, in the order of arrival, those
 *  passed over in their place. Never parks. @return how many are queued. */
PX_API size_t px_sem_waiter_ids(const px_sem *sem, px_fid *out, size_t cap);

/** Take fiber `id` out of the queue, then serve the queue. The fiber is not
 *  woken: it stays parked until it is cancelled, timed out or stalled.
 *  Never parks. @return 1, or 0 if it was not queued. */
PX_API size_t px_sem_remove_waiter(px_sem *sem, px_fid id);

/** Take a permit, call `fn(arg)`, give it back, on every way out of fn, an
 *  exception too. Cancellation point.
 *  @return fn's value, or px_sem_down()'s code, fn not called; PX_EINVAL for a
 *  NULL fn. */
PX_API PX_NODISCARD int px_sem_with(px_sem *sem, px_fn fn, void *arg);

/** A permit with a scope: see PX_SEM_GUARD. */
typedef struct px_sem_guard {
    px_sem *sem; /* private: NULL once released */
    int status;  /* what px_sem_down() returned */
} px_sem_guard;

/** Give the guard's permit back now, once; later calls, and a guard that holds
 *  nothing, do nothing. Never parks. */
PX_API void px_sem_guard_release(px_sem_guard *guard);

PX_END_DECLS

/** px_sem_down() into a guard: what PX_SEM_GUARD begins with.
 *  Cancellation point. */
static inline px_sem_guard px_sem_guard_begin(px_sem *sem)
{
    px_sem_guard guard;

    guard.status = px_sem_down(sem);
    guard.sem = guard.status == 0 ? sem : NULL;
    return guard;
}

/** PX_SEM_GUARD(name, sem): declare `px_sem_guard name`, which takes a permit
 *  and gives it back when it leaves its C scope, on every way out. Look at
 *  name.status: 0 if the permit is held. Cancellation point. */
#define PX_SEM_GUARD(name, sem)                                                \
    px_sem_guard name PX_CLEANUP(px_sem_guard_release) = px_sem_guard_begin(sem)

/** PX_SEM_HOLD(sem, err) { ... }: err is px_sem_down()'s result; the block runs
 *  only if it is 0, holding a permit. break and continue end the block, return
 *  and goto leave it; all give the permit back. Cancellation point. */
#define PX_SEM_HOLD(sem, err) PX_SEM_HOLD_(sem, err, __COUNTER__)
#define PX_SEM_HOLD_(sem, err, n)                                              \
    PX_SEM_HOLD_AS_(sem, err, PX_CONCAT(px_held_, n), PX_CONCAT(px_once_, n))
#define PX_SEM_HOLD_AS_(sem, err, held, once)                                  \
    for (px_sem_guard held PX_CLEANUP(px_sem_guard_release) =                  \
                          px_sem_guard_begin(sem),                             \
                      *once = ((err) = held.status) ? NULL : &held;            \
         once; once = NULL)

#endif
