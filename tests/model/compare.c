/* SPDX-License-Identifier: MIT */
/* compare.c - the library beside its model: all that can be seen of it. */
#include "world.h"

#include "base/heap.h"

/* Who waits for its end, and what it waits for itself; what is to be seen of it
 * by those who have its handle. */
static void compare_handle(int f)
{
    const struct ref_fiber *model = &world.ref.fibers[f];
    const px_fiber *fiber = world.fibers[f];
    const px_fiber *awaiter =
        model->awaiter == REF_NOBODY ? NULL : world.fibers[model->awaiter];
    bool parked = model->state == REF_PARKED;

    if (fiber->awaiter != awaiter)
        fail("fiber %d: it is not fiber %d that waits for it", f,
             model->awaiter);
    if (model->state == REF_DONE) {
        same(f, "what it returned", fiber->verdict, model->result);
    } else if (model->parent < 0) {
        same(f, "whether it is detached",
             (fiber->flags & PX_FIBER_DETACHED) != 0,
             model->handle == REF_DETACHED);
        same(f, "whether it was cancelled before it began",
             (fiber->flags & PX_FIBER_CANCEL_EARLY) != 0 && model->fresh,
             model->fresh && model->scopes[0].status != 0);
    }
    if (model->handle == REF_HELD)
        same(f, "whether it is done", px_is_done(fiber),
             model->state == REF_DONE);
    if (model->state == REF_READY && model->on == REF_AHEAD)
        fail("fiber %d should have gone on, ahead of all others", f);
    same(f, "whether it waits for fibers",
         parked && fiber->waiting->kind == PX_WAIT_AWAIT,
         parked && (model->on == REF_AWAIT || model->on == REF_AWAIT_ALL));
    if (parked && model->on == REF_AWAIT) {
        same(f, "whether it waits for several",
             (fiber->flags & PX_FIBER_AWAITS_ALL) != 0, 0);
        if (fiber->waits_on != world.fibers[model->want])
            fail("fiber %d does not wait for fiber %lld", f,
                 (long long)model->want);
    }
    if (parked && model->on == REF_AWAIT_ALL)
        same(f, "for how many it still waits", fiber->waiter.want, model->want);
}

static void compare_fiber(int f)
{
    static const uint8_t states[] = {PX_STATE_RUNNING, PX_STATE_READY,
                                     PX_STATE_PARKED, PX_STATE_DONE};
    const struct ref_fiber *model = &world.ref.fibers[f];
    const px_fiber *fiber = world.fibers[f];
    bool armed = fiber->flags & PX_FIBER_TIMED;
    int reach;

    if (model->state == REF_DONE &&
        (model->parent >= 0 || model->handle != REF_HELD))
        return; /* its record may be another's */
    same(f, "its state", fiber->state,
         model->fresh ? PX_STATE_NEW : states[model->state]);
    compare_handle(f);
    same(f, "whether its timer is armed", armed,
         model->state == REF_PARKED && model->timer != PX_FOREVER);
    if (armed)
        same(f, "when its timer is due", fiber->life->timer.when, model->timer);
    if (model->state == REF_READY && model->on != REF_NOTHING)
        same(f, "what its call will return", fiber->verdict, model->verdict);
    if (model->state == REF_DONE || model->fresh)
        return;
    reach = ref_reach(&world.ref, f);
    same(f, "what reaches it", fiber->life->scope->reach, reach);
    same(f, "its nearest deadline", fiber->life->scope->nearest,
         ref_nearest(&world.ref, f));
    same(f, "whether it has to look closer",
         (fiber->attention & PX_LOOK_FIRED) != 0, reach != 0);
}

/* Links, both ways; who is in the queue is parked. */
static void check_queue(const px_waitq *queue, const char *what)
{
    const struct px_waiter *last = NULL;

    for (const struct px_waiter *w = queue->head; w; w = w->next) {
        if (w->prev != last || w->queue != queue)
            fail("the queue of the %s is torn", what);
        if (px__waiter_fiber(w)->state != PX_STATE_PARKED)
            fail("who waits for the %s is not parked", what);
        last = w;
    }
    if (queue->tail != last)
        fail("the queue of the %s has another end", what);
}

/* The oldest behind `place` that waits for one of `kinds`, or -1. */
static int next_waiter(uint32_t kinds, uint64_t place)
{
    int next = -1;

    for (int f = 0; f < world.ref.n; f++) {
        const struct ref_fiber *fiber = &world.ref.fibers[f];

        if (fiber->queued && kinds & 1u << fiber->on && fiber->place > place &&
            (next < 0 || fiber->place < world.ref.fibers[next].place))
            next = f;
    }
    return next;
}

static void compare_ids(const px_fid *ids, size_t n, uint32_t kinds,
                        const char *what)
{
    uint64_t place = 0;

    for (size_t i = 0;; i++) {
        int next = next_waiter(kinds, place);

        if (next < 0 || i >= n) {
            if (next >= 0 || i < n)
                fail("%zu wait for the %s: not so many", n, what);
            return;
        }
        if (ids[i] != world.fibers[next]->id)
            fail("number %zu in the queue of the %s should be fiber %d", i,
                 what, next);
        place = world.ref.fibers[next].place;
    }
}

/* Those that wait for the descriptor are in one queue, whose owner is nobody
 * else's business. */
static void compare_outside(const px_loop *loop)
{
    const struct px_waiter *w = NULL;
    int64_t waits = 0, calls = 0;

    for (int f = ref_queued(&world.ref, REF_FD, 0); f >= 0;
         f = ref_queued(&world.ref, REF_FD, world.ref.fibers[f].place)) {
        if (waits++ == 0) {
            check_queue(world.fibers[f]->waiter.queue, "descriptor");
            w = world.fibers[f]->waiter.queue->head;
        }
        if (!w || px__waiter_fiber(w) != world.fibers[f])
            fail("fiber %d does not wait for the descriptor in its turn", f);
        w = w->next;
    }
    for (int f = 0; f < world.ref.n; f++)
        calls += world.ref.fibers[f].job != REF_NO_JOB;
    same(-1, "how many wait for descriptors", (int64_t)loop->io_waits, waits);
    same(-1, "how many are offloaded", (int64_t)loop->offloads, calls);
}

static void compare_objects(void)
{
    px_fid ids[REF_ALL];
    px_fid owner = px_mutex_owner(&world.mutex);
    size_t n;

    same(-1, "the count", px_sem_count(&world.sem), world.ref.count);
    same(-1, "the limit", px_sem_limit(&world.sem),
         world.ref.bounded ? world.ref.limit : PX_SEM_UNBOUNDED);
    n = px_sem_waiter_ids(&world.sem, ids, REF_ALL);
    compare_ids(ids, n, 1u << REF_SEM | 1u << REF_AVAILABLE, "semaphore");
    check_queue(&world.sem.waiters, "semaphore");
    check_queue(&world.sem.passed, "semaphore, passed over,");
    same(-1, "the owner", owner,
         world.ref.owner < 0 ? PX_NO_FIBER : world.fibers[world.ref.owner]->id);
    n = px_mutex_waiter_ids(&world.mutex, ids, REF_ALL);
    compare_ids(ids, n, 1u << REF_MUTEX, "mutex");
    check_queue(&world.mutex.waiters, "mutex");
    same(-1, "the waitgroup's count", px_waitgroup_count(&world.wg),
         world.ref.members);
    n = px_waitgroup_waiter_ids(&world.wg, ids, REF_ALL);
    compare_ids(ids, n, 1u << REF_WAITGROUP, "waitgroup");
    check_queue(&world.wg.waiters, "waitgroup");
}

static void compare_group(int g)
{
    const struct ref_fiber *model = &world.ref.fibers[g];
    const px_group *group = &world.groups[g];
    const struct px_waiter *w = group->spawners.head;

    same(g, "whether its group is open", group->scope.fiber != NULL,
         model->group != 0);
    check_queue(&group->spawners, "group");
    if (!model->group)
        return;
    same(g, "how many its group counts", group->running, model->running);
    same(g, "its group's limit", group->limit, model->most);
    same(g, "its group's failure", group->failure, model->failure);
    for (int f = ref_queued(&world.ref, REF_PLACE, 0); f >= 0;
         f = ref_queued(&world.ref, REF_PLACE, world.ref.fibers[f].place)) {
        if (world.ref.fibers[f].want != g)
            continue;
        if (!w || px__waiter_fiber(w) != world.fibers[f])
            fail("fiber %d does not wait for a place in its turn", f);
        w = w->next;
    }
    if (w)
        fail("somebody waits for a place in the group of fiber %d", g);
}

/* Those that are ready, in the order in which they became so. */
void compare_ready(px_fiber *const *ready, const int *who, size_t n)
{
    uint64_t last = 0;

    for (size_t i = 0; i < n; i++) {
        const struct ref_fiber *model = &world.ref.fibers[who[i]];

        if (model->state != REF_READY || (ready[i]->state != PX_STATE_READY &&
                                          ready[i]->state != PX_STATE_NEW))
            fail("fiber %d is in the run queue, and not ready", who[i]);
        if (model->since < last)
            fail("fiber %d is ready before its turn", who[i]);
        last = model->since;
    }
    for (int f = 0; f < world.ref.n; f++)
        n -= world.ref.fibers[f].state == REF_READY;
    if (n != 0)
        fail("somebody who is ready is not in the run queue");
}

void compare(const px_loop *loop)
{
    const struct px_heap_node *top = px__heap_top(&loop->timers);
    int64_t alive = 1; /* who plays */

    for (int f = 0; f < world.ref.n; f++)
        compare_fiber(f);
    for (int f = 0; f < world.program->fibers; f++)
        compare_group(f);
    for (int f = 0; f < world.ref.n; f++)
        alive += world.ref.fibers[f].state != REF_DONE;
    same(-1, "how many fibers there are", (int64_t)loop->alive, alive);
    compare_objects();
    compare_outside(loop);
    same(-1, "the next timer", top ? top->when : PX_FOREVER,
         ref_next_timer(&world.ref));
}
