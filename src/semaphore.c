/* SPDX-License-Identifier: MIT */
/*
 * semaphore.c - a counting semaphore with FIFO hand-off.
 *
 * Invariants, whenever no function of this file is running:
 *   I1  `waiters` is empty, or its first wants more than there is.
 *   I2  `waiters` holds those that the limit allows, `passed` those that want
 *       more than it, each in the order of arrival; an unbounded semaphore
 *       passes nobody.
 *   I3  A closed semaphore has no waiters.
 *
 * Permits are handed over, not announced: serve() moves them to the waiter
 * before it makes the fiber ready. Nobody can slip in between, so a woken
 * fiber looks at nothing again, and down needs no loop.
 *
 * A waiter that only waits for a permit to be there wants one and takes none.
 */
#include <parataxis/semaphore.h>

#include "base/panic.h"
#include "cancel.h"
#include "wait_queue.h"

static void on_abandon(void *sem);

static const struct px_wait_class down_class = {
    .kind = PX_WAIT_SEM,
    .interrupt = px__waitq_interrupt,
    .on_abandon = on_abandon,
};

static const struct px_wait_class available_class = {
    .kind = PX_WAIT_SEM_AVAILABLE,
    .interrupt = px__waitq_interrupt,
    .on_abandon = on_abandon,
};

#define PX_CHECK(sem, function)                                                \
    (PX_CHECK_WAITED(sem, function),                                           \
     PX_CHECK_WAITERS(&(sem)->passed, sem, function))

static inline int64_t limit_of(const px_sem *sem)
{
    return ~sem->bound; /* PX_SEM_UNBOUNDED for 0 */
}

static inline bool is_above_limit(const px_sem *sem, int64_t want)
{
    return sem->bound && want > limit_of(sem);
}

static PX_NOINLINE int serve_all(px_sem *sem)
{
    while (sem->waiters.head) {
        struct px_waiter *first = sem->waiters.head;

        if (first->want > sem->count)
            break; /* not even for a smaller one behind: that could starve it */
        if (px__waiter_fiber(first)->waiting == &down_class)
            sem->count -= first->want;
        (void)px__waitq_wake(first, 0);
    }
    return 0;
}

/* Restore I1 after permits were added or the first waiter left. Returns 0.
 * Mostly it is one permit, and goes to the first. */
static inline int serve(px_sem *sem)
{
    struct px_waiter *first = sem->waiters.head;

    if (!first)
        return 0;
    if (first->want == sem->count &&
        px__waiter_fiber(first)->waiting == &down_class) {
        sem->count = 0;
        return px__waitq_wake(first, 0);
    }
    return serve_all(sem);
}

/* An interrupted fiber is off its queue; those behind it may now fit. */
static void on_abandon(void *sem)
{
    (void)serve(sem);
}

static inline uint64_t arrival(const struct px_waiter *waiter)
{
    return px__waiter_fiber(waiter)->life->arrival;
}

/* Put `waiter` before `after`, or last if that is NULL. */
static void insert_before(px_waitq *queue, struct px_waiter *after,
                          struct px_waiter *waiter)
{
    struct px_waiter *before = after ? after->prev : queue->tail;

    waiter->queue = queue;
    waiter->prev = before;
    waiter->next = after;
    if (before)
        before->next = waiter;
    else
        queue->head = waiter;
    if (after)
        after->prev = waiter;
    else
        queue->tail = waiter;
}

/* Move those that want more than `most`, or those that do not, to where their
 * arrival belongs in the other queue. Both are in that order: one pass. */
static void move(px_waitq *from, px_waitq *to, int64_t most, bool above)
{
    struct px_waiter *after = to->head, *next;

    for (struct px_waiter *w = from->head; w; w = next) {
        next = w->next;
        if ((w->want > most) != above)
            continue;
        while (after && arrival(after) < arrival(w))
            after = after->next;
        px__waitq_remove(w);
        insert_before(to, after, w);
    }
}

/* Restore I2 after the limit moved. */
static void sort_out(px_sem *sem)
{
    move(&sem->waiters, &sem->passed, limit_of(sem), true);
    move(&sem->passed, &sem->waiters, limit_of(sem), false);
}

/* Add `diff`, which may be negative, and serve the queue. */
static inline int add(px_sem *sem, int64_t diff)
{
    int64_t sum;

    if (__builtin_add_overflow(sem->count, diff, &sum))
        return PX_EOVERFLOW;
    if (diff > 0 && sem->bound && sum > limit_of(sem))
        return PX_EOVERFLOW;
    sem->count = sum;
    return PX_LIKELY(!sem->waiters.head) ? 0 : serve(sem);
}

/* Wait in turn. Nothing around the fiber needs a look. */
static int wait_in_turn(px_sem *sem, px_fiber *self,
                        const struct px_wait_class *waiting, int64_t want)
{
    if (sem->closed)
        return PX_ECLOSED;
    self->life->arrival = ++sem->arrivals;
    return px__waitq_wait(is_above_limit(sem, want) ? &sem->passed
                                                    : &sem->waiters,
                          self, waiting, sem, want);
}

static inline bool can_take(const px_sem *sem, int64_t n)
{
    return sem->count >= n && px__waitq_empty(&sem->waiters) && !sem->closed;
}

/* The whole of a down, or of a wait_available, under scopes or off a fiber. */
static PX_NOINLINE int down_attentively(px_sem *sem, px_fiber *self,
                                        const struct px_wait_class *waiting,
                                        int64_t want)
{
    int err = px__cancellation_point(self);

    if (err || want == 0)
        return err;
    /* Looking closer comes before deciding: a deadline that it notices may
     * interrupt those who are queued here, and not reach this fiber. */
    if (!can_take(sem, want) && !sem->closed) {
        err = px__look_before_wait(self);
        if (err)
            return err;
    }
    if (!can_take(sem, want))
        return wait_in_turn(sem, self, waiting, want);
    if (waiting == &down_class)
        sem->count -= want;
    return 0;
}

/* A down that has to wait, or takes nothing. */
static inline int down_slowly(px_sem *sem, px_fiber *self, int64_t want)
{
    if (self->attention)
        return down_attentively(sem, self, &down_class, want);
    return want ? wait_in_turn(sem, self, &down_class, want) : 0;
}

int px_sem_init(px_sem *sem, int64_t count)
{
    if (!sem)
        return PX_EINVAL;
    *sem = (px_sem)PX_SEM_INIT(count);
    return 0;
}

int px_sem_init_bounded(px_sem *sem, int64_t permits)
{
    if (!sem)
        return PX_EINVAL;
    *sem = (px_sem)PX_SEM_INIT_BOUNDED(permits);
    return 0;
}

int px_sem_destroy(px_sem *sem)
{
    if (!sem)
        return PX_EINVAL;
    PX_CHECK(sem, "px_sem_destroy");
    if (!px__waitq_empty(&sem->waiters) || !px__waitq_empty(&sem->passed))
        return PX_EBUSY;
    PX_SPOIL(sem);
    return 0;
}

PX_HOT int px_sem_down(px_sem *sem)
{
    px_fiber *self = px__self;

    if (PX_UNLIKELY(!sem))
        return PX_EINVAL;
    PX_CHECK(sem, "px_sem_down");
    if (PX_UNLIKELY(!can_take(sem, 1)))
        return down_slowly(sem, self, 1);
    if (PX_UNLIKELY(self->attention) && !px__passes_by(self))
        return down_attentively(sem, self, &down_class, 1);
    sem->count--;
    return 0;
}

PX_HOT int px_sem_down_n(px_sem *sem, int64_t n)
{
    px_fiber *self = px__self;

    if (PX_UNLIKELY(!sem || n < 0))
        return PX_EINVAL;
    PX_CHECK(sem, "px_sem_down_n");
    if (PX_UNLIKELY(n == 0 || !can_take(sem, n)))
        return down_slowly(sem, self, n);
    if (PX_UNLIKELY(self->attention) && !px__passes_by(self))
        return down_attentively(sem, self, &down_class, n);
    sem->count -= n;
    return 0;
}

PX_HOT int px_sem_up(px_sem *sem)
{
    if (PX_UNLIKELY(!sem))
        return PX_EINVAL;
    PX_CHECK(sem, "px_sem_up");
    return add(sem, 1);
}

PX_HOT int px_sem_up_n(px_sem *sem, int64_t n)
{
    if (PX_UNLIKELY(!sem || n < 0))
        return PX_EINVAL;
    PX_CHECK(sem, "px_sem_up_n");
    return n == 0 ? 0 : add(sem, n);
}

int px_sem_try_down(px_sem *sem)
{
    if (!sem)
        return PX_EINVAL;
    PX_CHECK(sem, "px_sem_try_down");
    return px_sem_try_down_n(sem, 1);
}

int px_sem_try_down_n(px_sem *sem, int64_t n)
{
    if (!sem || n < 0)
        return PX_EINVAL;
    PX_CHECK(sem, "px_sem_try_down_n");
    if (n == 0)
        return 0;
    if (!can_take(sem, n))
        return sem->closed ? PX_ECLOSED : PX_EAGAIN;
    sem->count -= n;
    return 0;
}

int px_sem_adjust(px_sem *sem, int64_t diff)
{
    if (!sem)
        return PX_EINVAL;
    PX_CHECK(sem, "px_sem_adjust");
    return add(sem, diff);
}

int px_sem_wait_available(px_sem *sem)
{
    px_fiber *self = px__self;

    if (!sem)
        return PX_EINVAL;
    PX_CHECK(sem, "px_sem_wait_available");
    if (self->attention)
        return down_attentively(sem, self, &available_class, 1);
    return can_take(sem, 1) ? 0 : wait_in_turn(sem, self, &available_class, 1);
}

int px_sem_set_limit(px_sem *sem, int64_t limit)
{
    int64_t count;

    if (!sem || limit < 0 || !sem->bound)
        return PX_EINVAL;
    PX_CHECK(sem, "px_sem_set_limit");
    if (__builtin_add_overflow(sem->count, limit - limit_of(sem), &count))
        return PX_EOVERFLOW;
    sem->count = count;
    sem->bound = ~limit;
    sort_out(sem);
    return serve(sem);
}

int px_sem_close(px_sem *sem)
{
    if (!sem)
        return PX_EINVAL;
    PX_CHECK(sem, "px_sem_close");
    sem->closed = 1;
    /* All of them in the order of arrival, so that they run in it. */
    move(&sem->passed, &sem->waiters, INT64_MAX, false);
    px__waitq_wake_all(&sem->waiters, PX_ECLOSED);
    return 0;
}

int64_t px_sem_count(const px_sem *sem)
{
    if (!sem)
        return 0;
    PX_CHECK(sem, "px_sem_count");
    return sem->count;
}

int64_t px_sem_limit(const px_sem *sem)
{
    if (!sem)
        return 0;
    PX_CHECK(sem, "px_sem_limit");
    return limit_of(sem);
}

size_t px_sem_waiters(const px_sem *sem)
{
    if (!sem)
        return 0;
    PX_CHECK(sem, "px_sem_waiters");
    return px__waitq_count(&sem->waiters) + px__waitq_count(&sem->passed);
}

size_t px_sem_waiter_ids(const px_sem *sem, px_fid *out, size_t cap)
{
    const struct px_waiter *a, *b;
    size_t count = 0;

    if (!sem)
        return 0;
    PX_CHECK(sem, "px_sem_waiter_ids");
    a = sem->waiters.head;
    b = sem->passed.head;
    while (a || b) {
        const struct px_waiter **first =
            !b || (a && arrival(a) < arrival(b)) ? &a : &b;

        if (count < cap && out)
            out[count] = px__waiter_fiber(*first)->id;
        count++;
        *first = (*first)->next;
    }
    return count;
}

size_t px_sem_remove_waiter(px_sem *sem, px_fid id)
{
    struct px_waiter *waiter;

    if (!sem)
        return 0;
    PX_CHECK(sem, "px_sem_remove_waiter");
    waiter = px__waitq_find(&sem->waiters, id);
    if (!waiter)
        waiter = px__waitq_find(&sem->passed, id);
    if (!waiter)
        return 0;
    px__waitq_remove(waiter);
    (void)serve(sem);
    return 1;
}

void px_sem_guard_release(px_sem_guard *guard)
{
    if (!guard || !guard->sem)
        return;
    (void)px_sem_up(guard->sem);
    guard->sem = NULL;
}

int px_sem_with(px_sem *sem, px_fn fn, void *arg)
{
    if (!sem || !fn)
        return PX_EINVAL;
    PX_SEM_GUARD(guard, sem);
    return guard.status ? guard.status : fn(arg);
}
