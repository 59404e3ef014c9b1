/* SPDX-License-Identifier: MIT */
/* ref_sem.c - the semaphore: grant the longest run of the queue that fits. */
#include "ref.h"

/* Those that want more than the limit hold nobody back. */
bool ref_sem_passes_over(const struct ref *ref, int f)
{
    return ref->bounded && ref->fibers[f].want > ref->limit;
}

/* Fibers that take and fibers that only wait for a permit are in one queue. */
static int next(const struct ref *ref, uint64_t place)
{
    int a = ref_queued(ref, REF_SEM, place);
    int b = ref_queued(ref, REF_AVAILABLE, place);

    if (a < 0 || b < 0)
        return a < 0 ? b : a;
    return ref->fibers[a].place < ref->fibers[b].place ? a : b;
}

void ref_sem_serve(struct ref *ref)
{
    uint64_t place = 0;

    for (int f; (f = next(ref, place)) >= 0;) {
        struct ref_fiber *fiber = &ref->fibers[f];

        place = fiber->place;
        if (ref_sem_passes_over(ref, f))
            continue;
        if (fiber->want > ref->count)
            return;
        if (fiber->on == REF_SEM)
            ref->count -= fiber->want;
        ref_ready(ref, f, 0);
    }
}

static bool is_free(const struct ref *ref, int64_t n)
{
    uint64_t place = 0;

    for (int f; (f = next(ref, place)) >= 0; place = ref->fibers[f].place) {
        if (!ref_sem_passes_over(ref, f))
            return false;
    }
    return !ref->closed && ref->count >= n;
}

int ref_sem_try(struct ref *ref, int64_t n)
{
    if (n <= 0)
        return n < 0 ? PX_EINVAL : 0;
    if (!is_free(ref, n))
        return ref->closed ? PX_ECLOSED : PX_EAGAIN;
    ref->count -= n;
    return 0;
}

void ref_sem_down(struct ref *ref, int f, int64_t n, bool takes)
{
    if (n < 0)
        ref->fibers[f].verdict = PX_EINVAL;
    if (n < 0 || !ref_point(ref, f) || n == 0)
        return;
    if (!is_free(ref, n) && !ref->closed && !ref_may_park(ref, f))
        return;
    if (ref->closed)
        ref->fibers[f].verdict = PX_ECLOSED;
    else if (!is_free(ref, n))
        ref_park(ref, f, takes ? REF_SEM : REF_AVAILABLE, n);
    else if (takes)
        ref->count -= n;
}

int ref_sem_add(struct ref *ref, int64_t n)
{
    int64_t sum;

    if (__builtin_add_overflow(ref->count, n, &sum) ||
        (ref->bounded && n > 0 && sum > ref->limit))
        return PX_EOVERFLOW;
    ref->count = sum;
    ref_sem_serve(ref);
    return 0;
}

int ref_sem_up(struct ref *ref, int64_t n)
{
    if (n <= 0)
        return n < 0 ? PX_EINVAL : 0;
    return ref_sem_add(ref, n);
}

int ref_sem_set_limit(struct ref *ref, int64_t limit)
{
    int64_t count;

    if (!ref->bounded || limit < 0)
        return PX_EINVAL;
    if (__builtin_add_overflow(ref->count, limit - ref->limit, &count))
        return PX_EOVERFLOW;
    ref->count = count;
    ref->limit = limit;
    ref_sem_serve(ref);
    return 0;
}

void ref_sem_close(struct ref *ref)
{
    ref->closed = true;
    for (int f; (f = next(ref, 0)) >= 0;)
        ref_ready(ref, f, PX_ECLOSED);
}
