/* SPDX-License-Identifier: MIT */
/*
 * calls.c - every call, made by the model first, then by the library.
 *
 * The letters of calls, with the number that follows:
 *
 *   d N  px_sem_down_n(N)            D N  the same within a timeout of a tick
 *   t N  px_sem_try_down_n(N)        w    px_sem_wait_available
 *   u N  px_sem_up_n(N)              a N  px_sem_adjust(N)
 *   l N  px_sem_set_limit(N)         k    px_sem_close
 *   r N  px_sem_remove_waiter: the fiber N further on
 *   L    px_mutex_lock               M N  the same within N ticks
 *   T    px_mutex_try_lock           U    px_mutex_unlock
 *   A N  px_waitgroup_add(N)         N    px_waitgroup_done
 *   W    px_waitgroup_wait           V N  the same within N ticks
 *   e N  px_scope_enter(N ticks; 9: forever)      x    px_scope_leave
 *   n N  px_scope_guard_release of its outermost but N, then of those inside
 *   s    px_scope_shield of the innermost, on or off
 *   C N  px_scope_cancel of the innermost of the fiber N further on
 *   O N  px_scope_cancel of its outermost, after its body's
 *   c N  px_cancel of the fiber N further on
 *   z N  px_sleep(N ticks)           S N  the same behind a shield
 *   y    px_yield                    p    px_check
 *   g    px_group_open               i N  px_group_set_limit(N)
 *                                    I N  the same for the next fiber's
 *   G N  px_group_spawn: a child of kind N (see child_body)
 *   q    px_group_wait               h N  px_group_cancel: of the fiber N on
 *   f    px_wait_fd                  F    it becomes readable
 *   v    it is read                  X    px_close, and opened again
 *                                    Y    close, and opened again
 *   o    px_offload                  j N  what the fiber N on has there returns
 *   b N  px_spawn: a fiber of kind N (see live)   B N  the same, queued
 *   E N  the same, detached; queued if N is odd   Z N  px_post
 *   J N  px_await (which: see handles.c)          K N  the same within a tick
 *   P N  px_await_all                             Q N  the same within a tick
 *   H N  px_detach                                m N  px_cancel
 *   R N  px_cancel_and_await
 */
#include "world.h"

/* A call has returned. It may have let the others run, and there were none. */
void returned(int f, int code)
{
    struct ref_fiber *model = &world.ref.fibers[f];

    if (model->state == REF_READY)
        ref_resume(&world.ref, f);
    if (model->state == REF_PARKED)
        fail("fiber %d: its call returned %d, and should have waited", f, code);
    same(f, "what its call returned", code, model->verdict);
}

/* One that never waits. */
int at_once(int f, int code, int should)
{
    same(f, "what its call returned", code, should);
    return code;
}

int down(int f, int64_t n)
{
    int code;

    ref_sem_down(&world.ref, f, n, true);
    code = px_sem_down_n(&world.sem, n);
    returned(f, code);
    if (code == 0)
        world.held[f] += n;
    return code;
}

static int lock(int f, int64_t n)
{
    int code;

    (void)n;
    ref_mutex_lock(&world.ref, f);
    code = px_mutex_lock(&world.mutex);
    returned(f, code);
    return code;
}

static int wait_for_group(int f, int64_t n)
{
    int code;

    (void)n;
    ref_waitgroup_wait(&world.ref, f);
    code = px_waitgroup_wait(&world.wg);
    returned(f, code);
    return code;
}

px_scope *scope_at(int f, int s)
{
    return s == world.ref.fibers[f].group ? &world.groups[f].scope
                                          : &world.scopes[f][s];
}

static int enter(int f, int64_t ticks)
{
    int depth = world.ref.fibers[f].depth;
    int64_t timeout = ticks == 9 ? PX_FOREVER : ticks * TICK;

    if (depth == REF_SCOPES)
        return 0;
    ref_enter(&world.ref, f, timeout);
    return at_once(f, px_scope_enter(&world.scopes[f][depth], timeout), 0);
}

static int leave(int f)
{
    int depth = world.ref.fibers[f].depth;

    if (depth == 1)
        return 0;
    return at_once(f, px_scope_leave(scope_at(f, depth - 1)),
                   ref_leave(&world.ref, f));
}

/* The guards of those inside have nothing left to do. */
static int unwind(int f, int64_t n)
{
    int depth = world.ref.fibers[f].depth;

    if (n + 1 >= depth || world.ref.fibers[f].group > n)
        return 0;
    ref_unwind(&world.ref, f, (int)n + 1);
    for (int s = (int)n + 1; s < depth; s++)
        px_scope_guard_release(&world.scopes[f][s]);
    return 0;
}

int within(int f, int64_t ticks, int (*call)(int f, int64_t n), int64_t n)
{
    int code;

    if (world.ref.fibers[f].depth == REF_SCOPES)
        return 0;
    (void)enter(f, ticks);
    code = call(f, n);
    (void)leave(f);
    return code;
}

static int shield(int f)
{
    int s = world.ref.fibers[f].depth - 1;
    bool on = !world.ref.fibers[f].scopes[s].shield;

    if (s == 0)
        return 0;
    ref_shield(&world.ref, f, s, on);
    return at_once(f, px_scope_shield(scope_at(f, s), on), 0);
}

int cancel_scope(int f, int s)
{
    if (s < 1 || s >= world.ref.fibers[f].depth - world.ref.fibers[f].hidden)
        return 0;
    ref_fire(&world.ref, f, s, PX_ECANCELED);
    return at_once(f, px_scope_cancel(scope_at(f, s)), 0);
}

int cancel(int f)
{
    if (world.ref.fibers[f].state == REF_DONE &&
        world.ref.fibers[f].handle != REF_HELD)
        return 0;
    ref_fire(&world.ref, f, 0, PX_ECANCELED);
    return at_once(f, px_cancel(world.fibers[f]), 0);
}

static int remove_waiter(int f)
{
    struct ref_fiber *model = &world.ref.fibers[f];
    bool queued = model->state == REF_PARKED && model->queued &&
                  (model->on == REF_SEM || model->on == REF_AVAILABLE);
    size_t removed = px_sem_remove_waiter(&world.sem, world.ids[f]);

    if (queued) {
        model->queued = false;
        ref_sem_serve(&world.ref);
    }
    return at_once(f, (int)removed, queued);
}

static int available(int f)
{
    int code;

    ref_sem_down(&world.ref, f, 1, false);
    code = px_sem_wait_available(&world.sem);
    returned(f, code);
    return code;
}

int sleep_for(int f, int64_t ticks)
{
    int code;

    ref_sleep(&world.ref, f, ticks * TICK);
    code = px_sleep(ticks * TICK);
    returned(f, code);
    return code;
}

int sleep_shielded(int f, int64_t ticks)
{
    (void)shield(f);
    return sleep_for(f, ticks);
}

int yield(int f)
{
    int code;

    ref_yield(&world.ref, f);
    code = px_yield();
    returned(f, code);
    return code;
}

int check(int f)
{
    (void)ref_point(&world.ref, f);
    return at_once(f, px_check(), world.ref.fibers[f].verdict);
}

static int try_down(int f, int64_t n)
{
    int should = ref_sem_try(&world.ref, n);
    int code = at_once(f, px_sem_try_down_n(&world.sem, n), should);

    if (code == 0)
        world.held[f] += n;
    return code;
}

int up(int f, int64_t n)
{
    int should = ref_sem_up(&world.ref, n);
    int code = at_once(f, px_sem_up_n(&world.sem, n), should);

    if (code == 0)
        world.held[f] -= n;
    return code;
}

static int close_sem(int f)
{
    ref_sem_close(&world.ref);
    return at_once(f, px_sem_close(&world.sem), 0);
}

int other(int f, int n)
{
    int fibers = world.program->fibers;

    return (f + n + fibers) % fibers;
}

/* Each statement makes the call of the model first. */
int perform(int f, char what, int n)
{
    struct ref *ref = &world.ref;
    int should;

    switch (what) {
    case 'd':
        return down(f, n);
    case 'D':
        return within(f, 1, down, n);
    case 't':
        return try_down(f, n);
    case 'w':
        return available(f);
    case 'u':
        return up(f, n);
    case 'a':
        should = ref_sem_add(ref, n);
        return at_once(f, px_sem_adjust(&world.sem, n), should);
    case 'l':
        should = ref_sem_set_limit(ref, n);
        return at_once(f, px_sem_set_limit(&world.sem, n), should);
    case 'k':
        return close_sem(f);
    case 'r':
        return remove_waiter(other(f, n));
    case 'L':
        return lock(f, 0);
    case 'M':
        return within(f, n, lock, 0);
    case 'T':
        should = ref_mutex_try(ref, f);
        return at_once(f, px_mutex_try_lock(&world.mutex), should);
    case 'U':
        should = ref_mutex_unlock(ref, f);
        return at_once(f, px_mutex_unlock(&world.mutex), should);
    case 'A':
        should = ref_waitgroup_add(ref, n);
        return at_once(f, px_waitgroup_add(&world.wg, n), should);
    case 'N':
        should = ref_waitgroup_add(ref, -1);
        return at_once(f, px_waitgroup_done(&world.wg), should);
    case 'W':
        return wait_for_group(f, 0);
    case 'V':
        return within(f, n, wait_for_group, 0);
    case 'e':
        return enter(f, n);
    case 'x':
        return leave(f);
    case 'n':
        return unwind(f, n);
    case 's':
        return shield(f);
    case 'C':
        f = other(f, n);
        return cancel_scope(f,
                            ref->fibers[f].depth - 1 - ref->fibers[f].hidden);
    case 'O':
        return cancel_scope(other(f, n), 1);
    case 'c':
        return cancel(other(f, n));
    case 'z':
        return sleep_for(f, n);
    case 'S':
        return within(f, 9, sleep_shielded, n);
    case 'g':
        return open_group(f);
    case 'G':
        return spawn_child(f, f, n);
    case 'q':
        return wait_for_children(f);
    case 'h':
        return cancel_group(other(f, n));
    case 'I':
        f = other(f, 1);
        /* fall through */
    case 'i':
        should = ref_group_limit(ref, f, n);
        return at_once(f, px_group_set_limit(&world.groups[f], n), should);
    case 'y':
        return yield(f);
    case 'p':
        return check(f);
    default:
        return perform_await(f, what, n);
    }
}

void tidy_up(int f)
{
    while (world.ref.fibers[f].depth > 1) {
        if (world.ref.fibers[f].group == world.ref.fibers[f].depth - 1)
            (void)wait_for_children(f);
        else
            (void)leave(f);
    }
    if (world.ref.owner == f)
        (void)perform(f, 'U', 0);
    if (world.held[f] > 0 && !world.ref.bounded)
        (void)up(f, world.held[f]);
}
