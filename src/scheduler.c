/* SPDX-License-Identifier: MIT */
/*
 * scheduler.c - the run queue, parking, the idle loop, timers.
 *
 * The hot path is px__park() or px__requeue() on one side and px__ready() on
 * the other: a few stores, then a jump into the context switch. The switch is
 * the last thing they do, so the parked call returns straight to its caller
 * with the verdict in the register, and nothing is left to do on the way out.
 *
 * errno is the fiber's: swapped at every switch, and kept by everything here
 * that calls the system. So are the 16 bytes in which a C++ runtime keeps the
 * exceptions being handled: without that, fibers parked inside catch blocks
 * would find each other's.
 */
#include "scheduler.h"

#include <string.h>

#include "base/panic.h"
#include "inbox.h"

_Thread_local px_loop *px__loop;

/* The run queue is queues[0], and a spawner whose child has started eagerly is
 * put at its head. Shuffling spreads the fibers over the other queues and takes
 * from one at random: a cheap disorder, the same for the same seed. The first
 * queue then holds spawners only, and comes first. */

#if defined(PX_TESTING)
#define PX_SEAM(usual, asked) (px__seam_pick ? (asked) : (usual))
#else
#define PX_SEAM(usual, asked) (usual)
#endif

static uint64_t next_random(px_loop *loop)
{
    uint64_t x = (loop->random += UINT64_C(0x9e3779b97f4a7c15));

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void queue_push(struct px_queue *queue, px_fiber *fiber)
{
    fiber->next = NULL;
    if (queue->head)
        queue->tail->next = fiber;
    else
        queue->head = fiber;
    queue->tail = fiber;
}

static px_fiber *queue_pop(struct px_queue *queue)
{
    px_fiber *fiber = queue->head;

    if (fiber)
        queue->head = fiber->next;
    return fiber;
}

static PX_COLD void push_shuffled(px_loop *loop, px_fiber *fiber)
{
    size_t at = 1 + next_random(loop) % (PX_QUEUES - 1);

    queue_push(&loop->queues[PX_SEAM(at, 1)], fiber);
}

#if defined(PX_TESTING)
size_t (*px__seam_pick)(px_loop *loop, px_fiber *const *ready, size_t n);

static void run_timers(px_loop *loop);

static void do_first(px_loop *loop, size_t what)
{
    if (what == PX_SEAM_POLL) {
        px__poller_wait(&loop->poller, loop, 0);
    } else if (what == PX_SEAM_DELIVER) {
        px__inbox_deliver(loop);
    } else {
        loop->now = px__heap_top(&loop->timers)->when;
        run_timers(loop);
    }
}

static px_fiber *pop_picked(px_loop *loop)
{
    struct px_queue *queue = &loop->queues[1];
    px_fiber *ready[PX_SEAM_MOST];

    for (;;) {
        size_t n = 0, at;

        for (px_fiber *f = queue->head; f && n < PX_SEAM_MOST; f = f->next)
            ready[n++] = f;
        if (n == 0)
            return NULL;
        at = px__seam_pick(loop, ready, n);
        if (at >= n) {
            do_first(loop, at - n);
            continue;
        }
        if (at > 0)
            ready[at - 1]->next = ready[at]->next;
        else
            queue->head = ready[0]->next;
        if (queue->tail == ready[at])
            queue->tail = at > 0 ? ready[at - 1] : NULL;
        return ready[at];
    }
}
#endif

static PX_COLD px_fiber *pop_shuffled(px_loop *loop)
{
#if defined(PX_TESTING)
    if (px__seam_pick)
        return pop_picked(loop);
#endif
    size_t start = next_random(loop) % (PX_QUEUES - 1);
    px_fiber *fiber = NULL;

    for (size_t i = 0; !fiber && i < PX_QUEUES - 1; i++)
        fiber = queue_pop(&loop->queues[1 + (start + i) % (PX_QUEUES - 1)]);
    return fiber;
}

static inline void push(px_loop *loop, px_fiber *fiber)
{
    if (PX_UNLIKELY(loop->shuffles))
        push_shuffled(loop, fiber);
    else
        queue_push(&loop->queues[0], fiber);
}

/* The next fiber to run, or NULL. */
static px_fiber *pop(px_loop *loop)
{
    px_fiber *fiber = queue_pop(&loop->queues[0]);

    return fiber || !loop->shuffles ? fiber : pop_shuffled(loop);
}

bool px__has_ready(const px_loop *loop)
{
    size_t used = loop->shuffles ? PX_QUEUES : 1;

    for (size_t i = 0; i < used; i++) {
        if (loop->queues[i].head)
            return true;
    }
    return false;
}

/* Time. */

px_nsec px__time(px_loop *loop)
{
    if (!loop->virtual)
        loop->now = px__clock_precise();
    return loop->now;
}

/* Of a fiber whose timer is armed. That is a flag of its record, too: whoever
 * wakes a fiber without one need not touch its life. */
static inline void disarm(px_fiber *fiber)
{
    px__heap_remove(&fiber->loop->timers, &fiber->life->timer);
    fiber->flags &= (uint16_t)~PX_FIBER_TIMED;
}

void px__timer_arm(px_fiber *fiber, px_nsec when)
{

    if (fiber->life->scope->nearest < when)
        when = fiber->life->scope->nearest;
    if (fiber->flags & PX_FIBER_TIMED) {
        if (fiber->life->timer.when == when)
            return;
        disarm(fiber);
    }
    if (when != PX_FOREVER) {
        px__heap_insert(&fiber->loop->timers, &fiber->life->timer, when);
        fiber->flags |= PX_FIBER_TIMED;
    }
}

static void run_timers(px_loop *loop)
{
    struct px_heap_node *top = px__heap_top(&loop->timers);
    px_nsec now;

    if (!top)
        return;
    now = px__time(loop);
    while (top && top->when <= now) {
        px_fiber *fiber =
            PX_CONTAINER_OF(top, struct px_life, timer)->body.fiber;

        disarm(fiber);
        loop->hooks->on_timer(fiber);
        top = px__heap_top(&loop->timers);
    }
}

/* Looking for work. */

static PX_COLD void look_at_everything(px_loop *loop)
{
    int saved = errno;

    if (px__inbox_pending(loop))
        px__inbox_deliver(loop);
    run_timers(loop);
    if (loop->io_waits > 0)
        px__poller_wait(&loop->poller, loop, 0);
    errno = saved;
}

/* Whether looking around could find anybody. */
static inline bool is_watching(const px_loop *loop)
{
    return !px__heap_is_empty(&loop->timers) || loop->io_waits > 0 ||
           px__inbox_pending(loop);
}

static void look_around(px_loop *loop)
{
    loop->countdown = PX_LOOK_AROUND - 1;
    if (is_watching(loop))
        look_at_everything(loop);
}

/* Holds first: whoever gives the last one back has posted before that. */
static bool can_still_wake(px_loop *loop)
{
    return px__inbox_held(loop) || is_watching(loop) || loop->offloads > 0;
}

bool px__is_stalled(px_loop *loop)
{
    return !px__has_ready(loop) && !can_still_wake(loop);
}

/* How long to wait for something to happen; under the virtual clock this is
 * where time passes, and 0 then says that it has. */
static px_nsec time_to_wait(px_loop *loop)
{
    const struct px_heap_node *top = px__heap_top(&loop->timers);
    px_nsec until;

    if (!top)
        return PX_FOREVER;
    if (loop->virtual) {
        if (loop->offloads > 0)
            return PX_FOREVER;
        loop->now = top->when;
        return 0;
    }
    until = px__clock_add(top->when, loop->options.timer_slack);
    return until - loop->now; /* what was due has run */
}

/* Wait until a fiber is ready, on the stack of whoever found none. NULL if
 * that can not happen: every fiber has ended, or the run is deadlocked. */
static PX_COLD px_fiber *idle(px_loop *loop)
{
    int saved = errno;
    px_fiber *fiber;

    for (;;) {
        px__inbox_deliver(loop);
        run_timers(loop);
        fiber = pop(loop);
        if (fiber || !can_still_wake(loop))
            break;
        if (loop->virtual && loop->io_waits > 0) {
            px__poller_wait(&loop->poller, loop, 0);
            /* It has taken back the wake-up of what was pushed since. */
            px__inbox_deliver(loop);
            fiber = pop(loop);
            if (fiber)
                break;
        }
        {
            px_nsec timeout = time_to_wait(loop);

            if (timeout > 0)
                px__poller_wait(&loop->poller, loop, timeout);
        }
    }
    loop->countdown = PX_LOOK_AROUND - 1;
    errno = saved;
    return fiber;
}

/* The switch. */

/* What a thread has one of, and every fiber its own. */
static inline void keep_own(const px_loop *loop, px_fiber *self)
{
    self->errno_kept = *loop->errno_at;
    if (loop->exceptions) {
        self->exceptions[0] = loop->exceptions[0];
        self->exceptions[1] = loop->exceptions[1];
    }
}

static inline void bring_own(const px_loop *loop, const px_fiber *next)
{
    *loop->errno_at = next->errno_kept;
    if (loop->exceptions) {
        loop->exceptions[0] = next->exceptions[0];
        loop->exceptions[1] = next->exceptions[1];
    }
}

static inline void set_running(px_fiber *fiber)
{
    fiber->state = PX_STATE_RUNNING;
    px__self = fiber;
}

static inline int switch_to(px_loop *loop, px_fiber *self, px_fiber *next)
{
    keep_own(loop, self);
    bring_own(loop, next);
    set_running(next);
    return PX_SWITCH(self, next, self->state == PX_STATE_DONE);
}

/* Nobody is ready: look for work here, or hand over to the thread. */
static PX_COLD int go_idle(px_loop *loop, px_fiber *self)
{
    px_fiber *next = idle(loop);

    if (next == self) {
        self->state = PX_STATE_RUNNING;
        return self->verdict;
    }
    return switch_to(loop, self, next ? next : &loop->host);
}

/* Go on with the next: the general case. */
static PX_NOINLINE int go_on_slowly(px_loop *loop, px_fiber *self)
{
    px_fiber *next;

    if (loop->countdown < 0)
        look_around(loop);
    next = pop(loop);
    if (!next)
        return go_idle(loop, self);
    if (next == self) {
        self->state = PX_STATE_RUNNING;
        return self->verdict;
    }
    return switch_to(loop, self, next);
}

/* Of those that come next: the second one's record, and the first one's stack,
 * of which its record tells by now. A crowd does not fit the caches. */
static inline void fetch_ahead(const px_fiber *next)
{
    const px_fiber *after = next->next;

    if (PX_LIKELY(after != NULL)) {
        __builtin_prefetch(after->sp);
        __builtin_prefetch((const char *)after->sp + 64);
        __builtin_prefetch(after->next);
    }
}

/* Go on with the next: the usual case. Everything else is a tail call, so that
 * no register is saved here. */
static inline int go_on(px_loop *loop, px_fiber *self)
{
    px_fiber *next = loop->queues[0].head;

    if (PX_UNLIKELY(--loop->countdown < 0 || !next))
        return go_on_slowly(loop, self);
    loop->queues[0].head = next->next;
    fetch_ahead(next);
    return switch_to(loop, self, next);
}

PX_HOT int px__park(px_fiber *self, const struct px_wait_class *waiting)
{
    px_loop *loop = self->loop;

    if (PX_UNLIKELY(self->attention & PX_LOOK_DEADLINE))
        return px__park_until(self, waiting, PX_FOREVER);
    self->waiting = waiting;
    self->state = PX_STATE_PARKED;
    self->life->since = loop->now;
    return go_on(loop, self);
}

int px__park_until(px_fiber *self, const struct px_wait_class *waiting,
                   px_nsec when)
{
    px_loop *loop = self->loop;

    self->waiting = waiting;
    self->state = PX_STATE_PARKED;
    self->life->since = loop->now;
    px__timer_arm(self, when);
    return go_on(loop, self);
}

/* If nobody else is ready, that is a time to look around. */
static PX_NOINLINE int requeue_slowly(px_fiber *self, int verdict)
{
    px_loop *loop = self->loop;

    if (loop->countdown < 0 || !px__has_ready(loop))
        look_around(loop);
    if (!px__has_ready(loop))
        return verdict;
    self->verdict = verdict;
    self->state = PX_STATE_READY;
    push(loop, self);
    return go_on_slowly(loop, self);
}

/* Nobody can come to be ready, or it is soon enough to see at the next look. */
static inline bool is_alone(const px_loop *loop)
{
    return loop->countdown >= 0 && !loop->shuffles && !is_watching(loop);
}

PX_HOT int px__requeue(px_fiber *self, int verdict)
{
    px_loop *loop = self->loop;
    struct px_queue *queue = &loop->queues[0];
    px_fiber *next = queue->head;

    if (PX_UNLIKELY(--loop->countdown < 0 || !next || loop->shuffles)) {
        if (!next && is_alone(loop))
            return verdict;
        return requeue_slowly(self, verdict);
    }
    self->verdict = verdict;
    self->state = PX_STATE_READY;
    /* Push itself, pop the next: neither can find the queue empty. */
    self->next = NULL;
    queue->tail->next = self;
    queue->tail = self;
    queue->head = next->next;
    fetch_ahead(next);
    return switch_to(loop, self, next);
}

static PX_NOINLINE void depart_slowly(px_loop *loop, px_fiber *self)
{
    (void)go_on_slowly(loop, self);
    if (PX_NEVER(true)) /* nobody switches to it any more */
        px__panic("px_run", "an ended fiber was resumed");
}

static inline void depart(px_loop *loop, px_fiber *self)
{
    px_fiber *next = loop->queues[0].head;

    loop->zombie = self;
    if (PX_UNLIKELY(--loop->countdown < 0 || !next)) {
        depart_slowly(loop, self);
    } else {
        loop->queues[0].head = next->next;
        fetch_ahead(next);
        bring_own(loop, next);
        set_running(next);
        PX_LEAVE(self, next);
    }
}

static PX_NOINLINE void bury_and_depart(px_loop *loop, px_fiber *self)
{
    px__bury_zombie(loop);
    depart(loop, self);
}

PX_HOT void px__depart(px_fiber *self)
{
    px_loop *loop = self->loop;

    if (PX_UNLIKELY(loop->zombie != NULL))
        bury_and_depart(loop, self);
    else
        depart(loop, self);
}

static inline int start(px_loop *loop, px_fiber *self, px_fiber *child)
{
    struct px_queue *queue = &loop->queues[0];

    self->verdict = 0;
    self->state = PX_STATE_READY;
    self->next = queue->head;
    if (!queue->head)
        queue->tail = self;
    queue->head = self;
    keep_own(loop, self);
    *loop->errno_at = 0;
    if (loop->exceptions) {
        loop->exceptions[0] = NULL;
        loop->exceptions[1] = NULL;
    }
    set_running(child);
    return PX_LAUNCH(self, child, child->life->stack.low, loop->hooks->body);
}

static PX_NOINLINE int look_and_start(px_loop *loop, px_fiber *self,
                                      px_fiber *child)
{
    look_around(loop);
    return start(loop, self, child);
}

PX_HOT int px__start_eagerly(px_fiber *self, px_fiber *child)
{
    px_loop *loop = self->loop;

    if (PX_UNLIKELY(--loop->countdown < 0))
        return look_and_start(loop, self, child);
    return start(loop, self, child);
}

static PX_NOINLINE int ready_slowly(px_loop *loop, px_fiber *fiber)
{
    if (fiber->flags & PX_FIBER_TIMED)
        disarm(fiber);
    push(loop, fiber);
    return 0;
}

PX_HOT int px__ready(px_fiber *fiber, int verdict)
{
    px_loop *loop = fiber->loop;

    fiber->verdict = verdict;
    fiber->state = PX_STATE_READY;
    if (PX_UNLIKELY(fiber->flags & PX_FIBER_TIMED || loop->shuffles))
        return ready_slowly(loop, fiber);
    queue_push(&loop->queues[0], fiber);
    return 0;
}

void px__enqueue(px_loop *loop, px_fiber *fiber)
{
    px__stack_used(&loop->stacks, fiber->life->stack.low, fiber->sp);
    fiber->sp = px__context_make(fiber->sp, fiber->life->stack.low,
                                 loop->hooks->body, fiber);
    fiber->verdict = 0;
    fiber->errno_kept = 0;
    fiber->exceptions[0] = NULL;
    fiber->exceptions[1] = NULL;
    fiber->state = PX_STATE_NEW;
    push(loop, fiber);
}

#if defined(PX_TESTING)
void px__seam_yield(px_fiber *self)
{
    self->verdict = 0;
    self->state = PX_STATE_READY;
    push(self->loop, self);
    (void)go_on_slowly(self->loop, self);
}
#endif

/* The beginning and the end of a fiber. */

bool px__make_room(px_loop *loop)
{
    bool found = loop->alive < loop->timers.room ||
                 px__heap_reserve(&loop->timers, 2 * loop->alive);

    loop->room = loop->timers.room < loop->options.max_fibers
                     ? loop->timers.room
                     : loop->options.max_fibers;
    return found && loop->alive < loop->options.max_fibers;
}

void px__forget(px_fiber *fiber)
{
    px_loop *loop = fiber->loop;

    if (!(fiber->flags & (PX_FIBER_DETACHED | PX_FIBER_CONSUMED)) ||
        fiber->flags & PX_FIBER_KEPT || fiber->locks > 0 || fiber->life)
        return;
    if (PX_UNLIKELY(fiber->flags & PX_FIBER_POSTED))
        loop->home->free_record(fiber);
    else
        px__fiber_free(&loop->arena, fiber);
}

void px__bury_zombie(px_loop *loop)
{
    px_fiber *fiber = loop->zombie;
    struct px_stack *stack;

    loop->zombie = NULL;
    if (px__is_spare(loop, fiber)) {
        loop->usual->warm_count++;
        fiber->state = PX_STATE_FREE;
        fiber->next = loop->spare;
        loop->spare = fiber;
        return;
    }
    stack = &fiber->life->stack;
    PX_NOTE_DEATH(fiber);
    px__fiber_part(fiber);
    if (PX_UNLIKELY(fiber->flags & PX_FIBER_POSTED))
        loop->home->release_stack(loop, stack);
    else
        px__stack_release(&loop->stacks, stack);
    px__forget(fiber);
}

/* The run. */

void px__loop_init(px_loop *loop, const struct px_hooks *hooks)
{
    loop->hooks = hooks;
    loop->errno_at = &errno;
    loop->countdown = PX_LOOK_AROUND - 1;
    loop->random = loop->options.shuffle_seed;
    loop->shuffles = PX_SEAM(loop->options.shuffle_seed != 0, true);
    loop->virtual = loop->options.clock == PX_CLOCK_VIRTUAL;
    loop->root.deadline = PX_FOREVER;
    loop->root.nearest = PX_FOREVER;
    loop->host.loop = loop;
    loop->host.id = PX_NO_FIBER;
    loop->host.state = PX_STATE_RUNNING;
    PX_NOTE_THREAD(&loop->host);
    (void)px__time(loop);
}

void px__loop_run(px_loop *loop)
{
    for (;;) {
        px_fiber *next = idle(loop);

        if (next) {
            (void)switch_to(loop, &loop->host, next);
            px__self = &px__off_fiber;
        } else if (loop->alive > 0) {
            loop->hooks->on_stall(loop);
        } else {
            break;
        }
    }
    px__bury(loop);
    PX_NOTE_END();
}
