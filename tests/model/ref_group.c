/* SPDX-License-Identifier: MIT */
/* ref_group.c - groups: no child outlives its group. */
#include "ref.h"

void ref_group_open(struct ref *ref, int f)
{
    struct ref_fiber *fiber = &ref->fibers[f];

    ref_enter(ref, f, PX_FOREVER);
    fiber->group = fiber->depth - 1;
    fiber->running = fiber->most = 0;
    fiber->failure = 0;
}

static bool has_place(const struct ref *ref, int g)
{
    return ref->fibers[g].most == 0 ||
           ref->fibers[g].running < ref->fibers[g].most;
}

/* Who waits for a place in this group, the oldest. */
static int first_spawner(const struct ref *ref, int g)
{
    int f = ref_queued(ref, REF_PLACE, 0);

    while (f >= 0 && ref->fibers[f].want != g)
        f = ref_queued(ref, REF_PLACE, ref->fibers[f].place);
    return f;
}

static void give_places(struct ref *ref, int g)
{
    for (int f; has_place(ref, g) && (f = first_spawner(ref, g)) >= 0;) {
        ref->fibers[g].running++;
        ref_ready(ref, f, 0);
    }
}

static void give_back(struct ref *ref, int g)
{
    struct ref_fiber *opener = &ref->fibers[g];

    opener->running--;
    give_places(ref, g);
    if (opener->running == 0 && opener->state == REF_PARKED &&
        opener->on == REF_CHILDREN)
        ref_ready(ref, g, 0);
}

/* It has a place. Meanwhile the group may have fired. */
void ref_group_placed(struct ref *ref, int f)
{
    int g = (int)ref->fibers[f].want;
    int code = ref_reach_at(ref, g, ref->fibers[g].group);
    struct ref_fiber *child;

    if (code) {
        give_back(ref, g);
        ref->fibers[f].verdict = code;
        return;
    }
    child = &ref->fibers[ref_fiber(ref)];
    child->state = REF_RUNNING;
    child->parent = g;
    child->within = ref->fibers[g].group;
    child->kind = ref->fibers[f].kind;
    ref_ready(ref, f, 0);
    ref->fibers[f].on = REF_NOTHING;
}

void ref_group_spawn(struct ref *ref, int f, int g, int kind)
{
    struct ref_fiber *fiber = &ref->fibers[f];
    int code = ref_reach_at(ref, g, ref->fibers[g].group);

    fiber->want = g;
    fiber->kind = kind;
    if (code && !ref_reach(ref, f)) {
        fiber->verdict = code;
    } else if (ref_point(ref, f)) {
        if (has_place(ref, g) && first_spawner(ref, g) < 0) {
            ref->fibers[g].running++;
            ref_group_placed(ref, f);
        } else if (ref_may_park(ref, f)) {
            ref_park(ref, f, REF_PLACE, g);
        }
    }
}

/* Cut short is no failure where the group has been. */
void ref_group_ended(struct ref *ref, int f, int result)
{
    int g = ref->fibers[f].parent, scope = ref->fibers[f].within;
    bool cut_short = (result == PX_ECANCELED || result == PX_ETIMEDOUT) &&
                     ref_reach_at(ref, g, scope);

    ref->fibers[f].state = REF_DONE;
    if (result < 0 && !cut_short) {
        if (ref->fibers[g].failure == 0)
            ref->fibers[g].failure = result;
        ref_fire(ref, g, scope, PX_ECANCELED);
    }
    give_back(ref, g);
}

/* A deadline that it notices cancels the children, and is waited for, too. */
void ref_group_wait(struct ref *ref, int f)
{
    struct ref_fiber *fiber = &ref->fibers[f];

    if (!fiber->group || fiber->group != fiber->depth - 1) {
        fiber->verdict = PX_EINVAL;
        return;
    }
    if (ref_notice(ref, f)) {
        ref_ready(ref, f, 0);
        fiber->on = REF_LOOK;
    } else {
        ref_group_wait_on(ref, f);
    }
}

void ref_group_wait_on(struct ref *ref, int f)
{
    if (ref->fibers[f].running > 0)
        ref_park(ref, f, REF_CHILDREN, 0);
    else
        ref_group_over(ref, f);
}

void ref_group_over(struct ref *ref, int f)
{
    struct ref_fiber *fiber = &ref->fibers[f];
    int outside = fiber->scopes[fiber->group].shield
                      ? 0
                      : ref_reach_at(ref, f, fiber->group - 1);

    fiber->depth--;
    fiber->group = 0;
    fiber->verdict = fiber->failure ? fiber->failure : outside;
}

int ref_group_limit(struct ref *ref, int f, int64_t most)
{
    if (most < 1 || !ref->fibers[f].group)
        return PX_EINVAL;
    ref->fibers[f].most = most;
    give_places(ref, f);
    return 0;
}
