/* SPDX-License-Identifier: MIT */
/* wait_queue.c - see wait_queue.h. A doubly linked list: leaving is O(1). */
#include "wait_queue.h"

static inline void append(px_waitq *queue, struct px_waiter *waiter)
{
    waiter->queue = queue;
    waiter->next = NULL;
    waiter->prev = queue->tail;
    if (queue->tail)
        queue->tail->next = waiter;
    else
        queue->head = waiter;
    queue->tail = waiter;
}

static inline void take_off(struct px_waiter *waiter)
{
    px_waitq *queue = waiter->queue;

    if (waiter->prev)
        waiter->prev->next = waiter->next;
    else
        queue->head = waiter->next;
    if (waiter->next)
        waiter->next->prev = waiter->prev;
    else
        queue->tail = waiter->prev;
    waiter->queue = NULL;
}

void px__waitq_remove(struct px_waiter *waiter)
{
    take_off(waiter);
}

PX_HOT int px__waitq_wait(px_waitq *queue, px_fiber *self,
                          const struct px_wait_class *waiting, void *object,
                          int64_t want)
{
    self->waits_on = object;
    self->waiter.want = want;
    append(queue, &self->waiter);
    return px__park(self, waiting);
}

PX_HOT int px__waitq_wake(struct px_waiter *waiter, int verdict)
{
    take_off(waiter);
    return px__ready(px__waiter_fiber(waiter), verdict);
}

void px__waitq_wake_all(px_waitq *queue, int verdict)
{
    while (queue->head)
        (void)px__waitq_wake(queue->head, verdict);
}

bool px__waitq_interrupt(px_fiber *fiber, int code)
{
    const struct px_wait_class *waiting = fiber->waiting;
    px_waitq *queue = fiber->waiter.queue;

    /* A removed waiter is in no queue, and parked all the same. */
    if (queue)
        px__waitq_remove(&fiber->waiter);
    (void)px__ready(fiber, code);
    if (queue && waiting->on_abandon)
        waiting->on_abandon(fiber->waits_on);
    return true;
}

size_t px__waitq_count(const px_waitq *queue)
{
    size_t count = 0;

    for (const struct px_waiter *w = queue->head; w; w = w->next)
        count++;
    return count;
}

size_t px__waitq_ids(const px_waitq *queue, px_fid *out, size_t cap)
{
    size_t count = 0;

    for (const struct px_waiter *w = queue->head; w; w = w->next) {
        if (count < cap && out)
            out[count] = px__waiter_fiber(w)->id;
        count++;
    }
    return count;
}

struct px_waiter *px__waitq_find(const px_waitq *queue, px_fid id)
{
    for (struct px_waiter *w = queue->head; w; w = w->next) {
        if (px__waiter_fiber(w)->id == id)
            return w;
    }
    return NULL;
}

#ifdef PX_CHECKED
void px__check_waiters(const px_waitq *queue, const void *object,
                       const char *function)
{
    if (!px__waitq_empty(queue))
        PX_CHECK_THREAD(px__waiter_fiber(queue->head)->loop, function,
                        "a waiter of object", object);
}
#endif
