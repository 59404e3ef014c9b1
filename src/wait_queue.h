/* SPDX-License-Identifier: MIT */
/*
 * wait_queue.h - fibers parked on an object, oldest first.
 *
 * Invariants:
 *   Q1  A queued waiter belongs to a parked fiber (scheduler.h, L1).
 *   Q2  Whoever makes that fiber ready takes the waiter off first, so nobody
 *       can be granted anything twice, or after it was interrupted.
 *
 * Everything that touches a queue goes through here.
 */
#ifndef PX_WAIT_QUEUE_H
#define PX_WAIT_QUEUE_H

#include "scheduler.h"

static inline bool px__waitq_empty(const px_waitq *queue)
{
    return !queue->head;
}

/* In a checked build: an object that waits are for is one, and whoever waits on
 * it is this thread's. */
#ifdef PX_CHECKED
#define PX_CHECK_WAITERS px__check_waiters
void px__check_waiters(const px_waitq *queue, const void *object,
                       const char *function);
#else
#define PX_CHECK_WAITERS(queue, object, function) ((void)0)
#endif
#define PX_CHECK_WAITED(object, function)                                      \
    (PX_CHECK_WORD(object, function),                                          \
     PX_CHECK_WAITERS(&(object)->waiters, object, function))

/* Put the running fiber's waiter at the tail of a queue of `object`, and park.
 * Returns the verdict of whoever wakes it. The caller has seen to it that it is
 * a fiber and that no scope has fired (cancel.h). Call it last. */
int px__waitq_wait(px_waitq *queue, px_fiber *self,
                   const struct px_wait_class *waiting, void *object,
                   int64_t want);

/* Take a waiter off, and make its fiber ready with `verdict`. Returns 0. */
int px__waitq_wake(struct px_waiter *waiter, int verdict);
/* Do so with all of them, in order. */
void px__waitq_wake_all(px_waitq *queue, int verdict);

/* Take a waiter off; its fiber stays as it is. */
void px__waitq_remove(struct px_waiter *waiter);

/* px_wait_class.interrupt for everything that waits in a queue. */
bool px__waitq_interrupt(px_fiber *fiber, int code);

/* What the public calls of every primitive share. */
size_t px__waitq_count(const px_waitq *queue);
size_t px__waitq_ids(const px_waitq *queue, px_fid *out, size_t cap);
struct px_waiter *px__waitq_find(const px_waitq *queue, px_fid id);

#endif
