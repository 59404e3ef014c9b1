/* SPDX-License-Identifier: MIT */
/* ref.c - fibers, scopes and time, as the contract has them. */
#include "ref.h"

#include <string.h>

int ref_fiber(struct ref *ref)
{
    struct ref_fiber *fiber = &ref->fibers[ref->n];

    memset(fiber, 0, sizeof(*fiber));
    fiber->timer = PX_FOREVER;
    fiber->depth = 1;
    fiber->parent = -1;
    fiber->spawner = REF_NOBODY;
    fiber->awaiter = REF_NOBODY;
    fiber->scopes[0].deadline = PX_FOREVER;
    return ref->n++;
}

void ref_init(struct ref *ref, int n, int64_t count, bool bounded)
{
    memset(ref, 0, offsetof(struct ref, posts));
    ref->count = bounded && count < 1 ? 1 : count;
    ref->limit = ref->count;
    ref->bounded = bounded;
    ref->owner = -1;
    while (ref->n < n)
        (void)ref_fiber(ref);
}

/* The scopes around a fiber, outermost first: its parent's up to the group, and
 * its own. How many. */
static int around(const struct ref *ref, int f, const struct ref_scope **out)
{
    const struct ref_fiber *fiber = &ref->fibers[f];
    int n = 0;

    if (fiber->parent >= 0) {
        const struct ref_fiber *parent = &ref->fibers[fiber->parent];

        n = around(ref, fiber->parent, out) - parent->depth + fiber->within + 1;
    }
    for (int s = 0; s < fiber->depth; s++)
        out[n++] = &fiber->scopes[s];
    return n;
}

/* The outermost that has fired decides; a shield keeps out what is outside. */
static int reach_of(const struct ref_scope *const *scopes, int n)
{
    int code = 0;

    for (int s = 0; s < n; s++) {
        if (scopes[s]->shield)
            code = 0;
        if (!code)
            code = scopes[s]->status;
    }
    return code;
}

int ref_reach(const struct ref *ref, int f)
{
    const struct ref_scope *scopes[REF_ALL * REF_SCOPES];

    return reach_of(scopes, around(ref, f, scopes));
}

int ref_reach_at(const struct ref *ref, int f, int scope)
{
    const struct ref_scope *scopes[REF_ALL * REF_SCOPES];
    int n = around(ref, f, scopes);

    return reach_of(scopes, n - ref->fibers[f].depth + scope + 1);
}

/* The next deadline to come: those outside a shield fire, too. */
int64_t ref_nearest(const struct ref *ref, int f)
{
    const struct ref_scope *scopes[REF_ALL * REF_SCOPES];
    int n = around(ref, f, scopes);
    int64_t nearest = PX_FOREVER;

    for (int s = 0; s < n; s++) {
        if (!scopes[s]->status && scopes[s]->deadline < nearest)
            nearest = scopes[s]->deadline;
    }
    return nearest;
}

void ref_ready(struct ref *ref, int f, int verdict)
{
    struct ref_fiber *fiber = &ref->fibers[f];

    fiber->state = REF_READY;
    fiber->since = ++ref->orders;
    fiber->verdict = verdict;
    fiber->timer = PX_FOREVER;
    fiber->queued = false;
}

static void arm(struct ref *ref, int f)
{
    struct ref_fiber *fiber = &ref->fibers[f];
    int64_t when = ref_nearest(ref, f);

    if (fiber->on == REF_SLEEP && fiber->want < when)
        when = fiber->want;
    if (when != fiber->timer)
        fiber->armed = ++ref->orders;
    fiber->timer = when;
}

void ref_park(struct ref *ref, int f, enum ref_wait on, int64_t want)
{
    struct ref_fiber *fiber = &ref->fibers[f];

    fiber->state = REF_PARKED;
    fiber->on = on;
    fiber->want = want;
    fiber->queued = on != REF_SLEEP && on != REF_CHILDREN &&
                    on != REF_OFFLOAD && on != REF_AWAIT && on != REF_AWAIT_ALL;
    fiber->place = ++ref->orders;
    arm(ref, f);
}

int ref_queued(const struct ref *ref, enum ref_wait on, uint64_t place)
{
    int found = -1;

    for (int f = 0; f < ref->n; f++) {
        const struct ref_fiber *fiber = &ref->fibers[f];

        if (fiber->state == REF_PARKED && fiber->queued && fiber->on == on &&
            fiber->place > place &&
            (found < 0 || fiber->place < ref->fibers[found].place))
            found = f;
    }
    return found;
}

void ref_interrupt(struct ref *ref, int f, int code)
{
    bool waited = ref->fibers[f].queued;
    enum ref_wait on = ref->fibers[f].on;

    ref_await_over(ref, f, false);
    ref_ready(ref, f, code);
    if (waited && (on == REF_SEM || on == REF_AVAILABLE))
        ref_sem_serve(ref);
}

static bool is_within(const struct ref *ref, int f, int p, int scope)
{
    while (f != p && ref->fibers[f].parent >= 0) {
        if (ref->fibers[f].parent == p)
            return ref->fibers[f].within >= scope;
        f = ref->fibers[f].parent;
    }
    return f == p;
}

/* After a change to a scope: those inside of it, in the order of their ids,
 * which is that of their numbers. */
static void settle(struct ref *ref, int p, int scope)
{
    for (int f = 0; f < ref->n; f++) {
        int code;

        if (ref->fibers[f].state != REF_PARKED || !is_within(ref, f, p, scope))
            continue;
        code = ref_reach(ref, f);
        if (code && ref->fibers[f].on != REF_CHILDREN &&
            ref_offload_ends_early(ref, f))
            ref_interrupt(ref, f, code);
        else
            arm(ref, f);
    }
}

void ref_fire(struct ref *ref, int f, int scope, int code)
{
    struct ref_scope *s = &ref->fibers[f].scopes[scope];

    if (ref->fibers[f].state == REF_DONE || s->status)
        return;
    s->status = code;
    settle(ref, f, scope);
}

/* Every scope around it that is due: those inside the outermost change. */
static void fire_due(struct ref *ref, int f)
{
    int p = f, top = ref->fibers[f].depth - 1, outermost = -1, scope = 0;

    while (p >= 0) {
        struct ref_fiber *fiber = &ref->fibers[p];

        for (int s = top; s >= 0; s--) {
            if (fiber->scopes[s].status || fiber->scopes[s].deadline > ref->now)
                continue;
            fiber->scopes[s].status = PX_ETIMEDOUT;
            outermost = p;
            scope = s;
        }
        top = fiber->within;
        p = fiber->parent;
    }
    if (outermost >= 0)
        settle(ref, outermost, scope);
}

int64_t ref_next_timer(const struct ref *ref)
{
    int64_t next = PX_FOREVER;

    for (int f = 0; f < ref->n; f++) {
        if (ref->fibers[f].state == REF_PARKED && ref->fibers[f].timer < next)
            next = ref->fibers[f].timer;
    }
    return next;
}

/* Timers in the order of their times, equal ones as they were armed. */
static int first_due(const struct ref *ref)
{
    int first = -1;

    for (int f = 0; f < ref->n; f++) {
        const struct ref_fiber *a = &ref->fibers[f];
        const struct ref_fiber *b = first < 0 ? NULL : &ref->fibers[first];

        if (a->state == REF_PARKED && a->timer <= ref->now &&
            (!b || a->timer < b->timer ||
             (a->timer == b->timer && a->armed < b->armed)))
            first = f;
    }
    return first;
}

void ref_time(struct ref *ref, int64_t now)
{
    ref->now = now;
    for (int f; (f = first_due(ref)) >= 0;) {
        struct ref_fiber *fiber = &ref->fibers[f];

        fiber->timer = PX_FOREVER;
        fire_due(ref, f);
        if (fiber->state != REF_PARKED)
            continue;
        if (fiber->on == REF_SLEEP && fiber->want <= now)
            ref_ready(ref, f, 0);
        else
            arm(ref, f);
    }
}

/* A ready fiber's turn has come. */
void ref_resume(struct ref *ref, int f)
{
    struct ref_fiber *fiber = &ref->fibers[f];
    enum ref_wait on = fiber->on;

    fiber->state = REF_RUNNING;
    fiber->on = REF_NOTHING;
    fiber->fresh = false;
    if (on == REF_WAITGROUP && fiber->verdict == 0)
        ref_waitgroup_woken(ref, f);
    if (on == REF_PLACE && fiber->verdict == 0)
        ref_group_placed(ref, f);
    if (on == REF_FD && fiber->verdict == 0)
        ref_fd_woken(ref, f);
    if ((on == REF_AWAIT || on == REF_AWAIT_ALL) && fiber->verdict == 0)
        ref_await_over(ref, f, true);
    if (on == REF_LOOK)
        ref_group_wait_on(ref, f);
    if (on == REF_CHILDREN)
        ref_group_over(ref, f);
}

bool ref_point(struct ref *ref, int f)
{
    ref->fibers[f].verdict = ref_reach(ref, f);
    return ref->fibers[f].verdict == 0;
}

/* Before a fiber parks it looks at the clock, whatever has fired. */
bool ref_notice(struct ref *ref, int f)
{
    bool had_fired = ref_reach(ref, f);

    fire_due(ref, f);
    return !had_fired && ref_reach(ref, f);
}

/* If it was in time until now, the others have their turn all the same. */
bool ref_may_park(struct ref *ref, int f)
{
    bool late = ref_notice(ref, f);

    if (ref_point(ref, f))
        return true;
    if (late)
        ref_ready(ref, f, ref->fibers[f].verdict);
    return false;
}

void ref_enter(struct ref *ref, int f, int64_t timeout)
{
    struct ref_fiber *fiber = &ref->fibers[f];
    struct ref_scope *s = &fiber->scopes[fiber->depth++];

    s->deadline = timeout == PX_FOREVER ? PX_FOREVER : ref->now + timeout;
    s->status = timeout <= 0 ? PX_ETIMEDOUT : 0;
    s->shield = false;
}

int ref_leave(struct ref *ref, int f)
{
    struct ref_fiber *fiber = &ref->fibers[f];

    if (fiber->depth == 1 || fiber->group == fiber->depth - 1)
        return PX_EINVAL;
    return fiber->scopes[--fiber->depth].status;
}

void ref_unwind(struct ref *ref, int f, int scope)
{
    ref->fibers[f].depth = scope;
}

void ref_shield(struct ref *ref, int f, int scope, bool on)
{
    ref->fibers[f].scopes[scope].shield = on;
    settle(ref, f, scope);
}

void ref_sleep(struct ref *ref, int f, int64_t time)
{
    if (time <= 0)
        ref_yield(ref, f);
    else if (ref_may_park(ref, f))
        ref_park(ref, f, REF_SLEEP, ref->now + time);
}

void ref_yield(struct ref *ref, int f)
{
    if (ref_may_park(ref, f))
        ref_ready(ref, f, 0);
}
