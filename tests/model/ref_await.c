/* SPDX-License-Identifier: MIT */
/* ref_await.c - spawned fibers, posted ones, and waiting for their end. */
#include "ref.h"

static void begin(struct ref *ref, int spawner, int kind, bool queued,
                  bool detached)
{
    int g = ref_fiber(ref);
    struct ref_fiber *child = &ref->fibers[g];

    child->spawner = spawner;
    child->kind = kind;
    child->handle = detached ? REF_DETACHED : REF_HELD;
    child->fresh = queued;
    if (queued)
        ref_ready(ref, g, 0);
    else
        child->state = REF_RUNNING;
}

void ref_spawn(struct ref *ref, int f, int kind, bool queued, bool detached)
{
    begin(ref, f, kind, queued, detached);
    ref->fibers[f].verdict = 0;
    if (queued)
        return;
    ref_ready(ref, f, 0);
    ref->fibers[f].on = REF_AHEAD;
}

void ref_post(struct ref *ref, int kind)
{
    ref->posts[ref->posted++] = (struct ref_post){kind, ++ref->orders};
}

void ref_arrive(struct ref *ref, int kind)
{
    begin(ref, REF_NOBODY, kind, true, true);
}

/* -- waiting -- */

void ref_await_over(struct ref *ref, int f, bool consumed)
{
    for (int g = 0; g < ref->n; g++) {
        if (ref->fibers[g].awaiter != f)
            continue;
        ref->fibers[g].awaiter = REF_NOBODY;
        if (consumed)
            ref->fibers[g].handle = REF_CONSUMED;
    }
}

void ref_ended(struct ref *ref, int f, int result)
{
    struct ref_fiber *fiber = &ref->fibers[f], *awaiter;

    fiber->state = REF_DONE;
    fiber->result = result;
    if (fiber->awaiter == REF_NOBODY)
        return;
    awaiter = &ref->fibers[fiber->awaiter];
    if (awaiter->on == REF_AWAIT || --awaiter->want == 0)
        ref_ready(ref, fiber->awaiter, 0);
}

/* What is wrong with the argument, whatever the handle's state is. */
static int unfit(int f, int g)
{
    if (g == REF_NOBODY || g == REF_MAIN)
        return PX_EINVAL;
    return g == f ? PX_EDEADLK : 0;
}

void ref_await(struct ref *ref, int f, int g)
{
    ref_await_all(ref, f, &g, 1);
    if (ref->fibers[f].state == REF_PARKED) {
        ref->fibers[f].on = REF_AWAIT;
        ref->fibers[f].want = g;
    }
}

/* The first of these codes that fits: whatever is wrong with an argument comes
 * before what others do with the handles. */
static int unfit_among(int f, const int *who, int n)
{
    int code = 0;

    for (int i = 0; i < n; i++) {
        if (unfit(f, who[i]) == PX_EINVAL)
            return PX_EINVAL;
        for (int j = 0; j < i; j++) {
            if (who[i] == who[j])
                return PX_EINVAL;
        }
        if (unfit(f, who[i]))
            code = unfit(f, who[i]);
    }
    return code;
}

void ref_await_all(struct ref *ref, int f, const int *who, int n)
{
    int code = unfit_among(f, who, n);
    int64_t running = 0;

    ref->fibers[f].verdict = code;
    if (code || !ref_point(ref, f))
        return;
    for (int i = 0; i < n; i++) {
        if (ref->fibers[who[i]].awaiter != REF_NOBODY)
            code = PX_EBUSY;
        running += ref->fibers[who[i]].state != REF_DONE;
    }
    ref->fibers[f].verdict = code;
    if (code || (running > 0 && !ref_may_park(ref, f)))
        return;
    for (int i = 0; i < n; i++)
        ref->fibers[who[i]].awaiter = f;
    if (running > 0)
        ref_park(ref, f, REF_AWAIT_ALL, running);
    else
        ref_await_over(ref, f, true);
}

/* -- what else can be done with a handle -- */

int ref_detach(struct ref *ref, int g)
{
    if (g == REF_NOBODY || g == REF_MAIN)
        return PX_EINVAL;
    if (ref->fibers[g].awaiter != REF_NOBODY)
        return PX_EBUSY;
    ref->fibers[g].handle =
        ref->fibers[g].state == REF_DONE ? REF_CONSUMED : REF_DETACHED;
    return 0;
}

int ref_cancel(struct ref *ref, int g)
{
    if (g == REF_NOBODY)
        return PX_EINVAL;
    ref_fire(ref, g, 0, PX_ECANCELED);
    return 0;
}

bool ref_cancel_and_await(struct ref *ref, int f, int g)
{
    struct ref_fiber *fiber = &ref->fibers[f];
    int code = unfit(f, g);

    if (!code && ref->fibers[g].awaiter != REF_NOBODY)
        code = PX_EBUSY;
    fiber->verdict = code;
    if (code)
        return false;
    ref_enter(ref, f, PX_FOREVER);
    fiber->scopes[fiber->depth - 1].shield = true;
    fiber->hidden = true;
    (void)ref_cancel(ref, g);
    ref_await(ref, f, g);
    return true;
}
