/* SPDX-License-Identifier: MIT */
/* ref_offload.c - calls on other threads: first come, first served. */
#include "ref.h"

static int count(const struct ref *ref, enum ref_job job)
{
    int n = 0;

    for (int f = 0; f < ref->n; f++)
        n += ref->fibers[f].job == job;
    return n;
}

/* The oldest in that state; a fiber's place is when it was given away, or when
 * it was finished. */
static int oldest(const struct ref *ref, enum ref_job job)
{
    int first = -1;

    for (int f = 0; f < ref->n; f++) {
        if (ref->fibers[f].job == job &&
            (first < 0 || ref->fibers[f].place < ref->fibers[first].place))
            first = f;
    }
    return first;
}

static void start_some(struct ref *ref)
{
    while (count(ref, REF_STARTED) < ref->threads &&
           count(ref, REF_WAITING) > 0)
        ref->fibers[oldest(ref, REF_WAITING)].job = REF_STARTED;
}

void ref_offload(struct ref *ref, int f)
{
    if (!ref_point(ref, f) || !ref_may_park(ref, f))
        return;
    ref_park(ref, f, REF_OFFLOAD, 0);
    ref->fibers[f].job = REF_WAITING;
    start_some(ref);
}

/* One that has started is waited for. */
bool ref_offload_ends_early(struct ref *ref, int f)
{
    if (ref->fibers[f].on != REF_OFFLOAD)
        return true;
    if (ref->fibers[f].job != REF_WAITING)
        return false;
    ref->fibers[f].job = REF_NO_JOB;
    return true;
}

/* Its call returns, on the other thread: 1 if there was one. */
int ref_offload_finish(struct ref *ref, int f)
{
    if (ref->fibers[f].job != REF_STARTED)
        return 0;
    ref->fibers[f].job = REF_FINISHED;
    ref->fibers[f].place = ++ref->orders;
    start_some(ref);
    return 1;
}

bool ref_offload_brought(const struct ref *ref)
{
    return count(ref, REF_FINISHED) > 0 || ref->posted > 0;
}

/* What was posted arrives among what returns, each in its turn. */
static void arrive_before(struct ref *ref, uint64_t place)
{
    int n = 0;

    while (n < ref->posted && ref->posts[n].place < place)
        ref_arrive(ref, ref->posts[n++].kind);
    ref->posted -= n;
    for (int i = 0; i < ref->posted; i++)
        ref->posts[i] = ref->posts[i + n];
}

void ref_offload_deliver(struct ref *ref)
{
    for (int f; (f = oldest(ref, REF_FINISHED)) >= 0;) {
        arrive_before(ref, ref->fibers[f].place);
        ref->fibers[f].job = REF_NO_JOB;
        ref_ready(ref, f, 100 + f);
    }
    arrive_before(ref, UINT64_MAX);
}
