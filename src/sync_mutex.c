/* SPDX-License-Identifier: MIT */
/*
 * sync_mutex.c - a lock with an owner and FIFO hand-off.
 *
 * Invariants, whenever no function of this file is running:
 *   M1  Somebody owns it, or nobody waits.
 *   M2  The owner's record counts it in `locks`, if the owner is of this run:
 *       a fiber that ends holding a lock is remembered by name.
 *
 * An owner is an id and a run, not a pointer: a fiber that has ended, or a run
 * that is over, can be named by a mutex for as long as it likes.
 */
#include <parataxis/sync_mutex.h>

#include "base/panic.h"
#include "cancel.h"
#include "wait_queue.h"

#define PX_CHECK PX_CHECK_WAITED

static const struct px_wait_class lock_class = {
    .kind = PX_WAIT_MUTEX,
    .interrupt = px__waitq_interrupt,
};

static inline bool is_owner(const px_mutex *mutex, const px_fiber *self)
{
    return mutex->owner == self->id + 1 && mutex->run == self->loop->run;
}

static inline void give_to(px_mutex *mutex, px_fiber *fiber)
{
    mutex->owner = fiber->id + 1;
    mutex->run = fiber->loop->run;
    fiber->locks++;
}

/* Wait in turn. Nothing around the fiber needs a look. */
static int wait_in_turn(px_mutex *mutex, px_fiber *self)
{
    if (is_owner(mutex, self))
        return PX_EDEADLK;
    return px__waitq_wait(&mutex->waiters, self, &lock_class, mutex, 0);
}

/* The whole of a lock, under scopes or off a fiber. */
static PX_NOINLINE int lock_attentively(px_mutex *mutex, px_fiber *self)
{
    int err;

    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    err = px__cancellation_point(self);
    if (err)
        return err;
    if (!mutex->owner) {
        give_to(mutex, self);
        return 0;
    }
    if (is_owner(mutex, self))
        return PX_EDEADLK;
    err = px__look_before_wait(self);
    return err ? err : wait_in_turn(mutex, self);
}

int px_mutex_init(px_mutex *mutex)
{
    if (!mutex)
        return PX_EINVAL;
    *mutex = (px_mutex)PX_MUTEX_INIT;
    return 0;
}

int px_mutex_destroy(px_mutex *mutex)
{
    if (!mutex)
        return PX_EINVAL;
    PX_CHECK(mutex, "px_mutex_destroy");
    if (mutex->owner) /* who waits, waits for an owner */
        return PX_EBUSY;
    PX_SPOIL(mutex);
    return 0;
}

PX_HOT int px_mutex_lock(px_mutex *mutex)
{
    px_fiber *self = px__self;

    if (PX_UNLIKELY(!mutex))
        return PX_EINVAL;
    PX_CHECK(mutex, "px_mutex_lock");
    if (PX_UNLIKELY(self->attention) && !(!mutex->owner && px__passes_by(self)))
        return lock_attentively(mutex, self);
    if (PX_UNLIKELY(mutex->owner))
        return wait_in_turn(mutex, self);
    give_to(mutex, self);
    return 0;
}

int px_mutex_try_lock(px_mutex *mutex)
{
    px_fiber *self = px__self;

    if (!mutex)
        return PX_EINVAL;
    PX_CHECK(mutex, "px_mutex_try_lock");
    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    if (mutex->owner)
        return is_owner(mutex, self) ? PX_EDEADLK : PX_EBUSY;
    give_to(mutex, self);
    return 0;
}

PX_HOT int px_mutex_unlock(px_mutex *mutex)
{
    px_fiber *self = px__self;
    struct px_waiter *first;

    if (PX_UNLIKELY(!mutex))
        return PX_EINVAL;
    PX_CHECK(mutex, "px_mutex_unlock");
    if (PX_UNLIKELY(!mutex->owner))
        return PX_ENOTLOCKED;
    if (PX_UNLIKELY(!px__is_fiber(self) || !is_owner(mutex, self)))
        return PX_EPERM;
    self->locks--;
    first = mutex->waiters.head;
    if (PX_LIKELY(!first)) {
        mutex->owner = 0;
        return 0;
    }
    give_to(mutex, px__waiter_fiber(first));
    return px__waitq_wake(first, 0);
}

px_fid px_mutex_owner(const px_mutex *mutex)
{
    if (!mutex)
        return PX_NO_FIBER;
    PX_CHECK(mutex, "px_mutex_owner");
    return mutex->owner - 1;
}

size_t px_mutex_waiters(const px_mutex *mutex)
{
    if (!mutex)
        return 0;
    PX_CHECK(mutex, "px_mutex_waiters");
    return px__waitq_count(&mutex->waiters);
}

size_t px_mutex_waiter_ids(const px_mutex *mutex, px_fid *out, size_t cap)
{
    if (!mutex)
        return 0;
    PX_CHECK(mutex, "px_mutex_waiter_ids");
    return px__waitq_ids(&mutex->waiters, out, cap);
}

size_t px_mutex_remove_waiter(px_mutex *mutex, px_fid id)
{
    struct px_waiter *waiter;

    if (!mutex)
        return 0;
    PX_CHECK(mutex, "px_mutex_remove_waiter");
    waiter = px__waitq_find(&mutex->waiters, id);
    if (!waiter)
        return 0;
    px__waitq_remove(waiter);
    return 1;
}

void px_mutex_guard_release(px_mutex_guard *guard)
{
    if (!guard || !guard->mutex)
        return;
    (void)px_mutex_unlock(guard->mutex);
    guard->mutex = NULL;
}

int px_mutex_with(px_mutex *mutex, px_fn fn, void *arg)
{
    if (!mutex || !fn)
        return PX_EINVAL;
    PX_MUTEX_GUARD(guard, mutex);
    return guard.status ? guard.status : fn(arg);
}
