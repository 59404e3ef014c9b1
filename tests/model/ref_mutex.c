/* SPDX-License-Identifier: MIT */
/* ref_mutex.c - the mutex: the oldest waiter is handed the lock. */
#include "ref.h"

void ref_mutex_lock(struct ref *ref, int f)
{
    if (!ref_point(ref, f))
        return;
    if (ref->owner < 0)
        ref->owner = f;
    else if (ref->owner == f)
        ref->fibers[f].verdict = PX_EDEADLK;
    else if (ref_may_park(ref, f))
        ref_park(ref, f, REF_MUTEX, 0);
}

int ref_mutex_try(struct ref *ref, int f)
{
    if (ref->owner >= 0)
        return ref->owner == f ? PX_EDEADLK : PX_EBUSY;
    ref->owner = f;
    return 0;
}

int ref_mutex_unlock(struct ref *ref, int f)
{
    if (ref->owner != f)
        return ref->owner < 0 ? PX_ENOTLOCKED : PX_EPERM;
    ref->owner = ref_queued(ref, REF_MUTEX, 0);
    if (ref->owner >= 0)
        ref_ready(ref, ref->owner, 0);
    return 0;
}
