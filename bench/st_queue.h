/* SPDX-License-Identifier: MIT */
/*
 * st_queue.h - two things that State Threads has not: a queue of waiters whose
 * first can be woken in constant time, and a yield.
 *
 * Each that waits has a condition variable to itself. Of one that many share, a
 * signal walks past all those that it woke before and that have not run yet.
 *
 * To yield, st_usleep(0) would go by way of the timers and of epoll. What is
 * cheapest is a queue of those that yield. Who yields wakes the first of it and
 * joins its end; who is about to wait for something else, or ends, wakes the
 * first too (let_one_go). If there was nobody to wake, a thread apart (pump) is
 * made runnable: it wakes the first when its turn comes, unless one was woken
 * meanwhile, who stands behind it and sees to the rest. So the order is that of
 * arrival, two that yield to each other switch once each, and one that yields
 * alone goes on.
 */
#include <st.h>

#include <stdlib.h>

enum { STACK = 64 * 1024 };

struct waiter {
    st_cond_t cond;
    struct waiter *next;
};

struct queue { /* oldest first */
    struct waiter *head, **tail;
};

static struct waiter *unused;

static inline void queue_init(struct queue *queue)
{
    queue->head = NULL;
    queue->tail = &queue->head;
}

static inline struct waiter *waiter_new(void)
{
    struct waiter *waiter = unused;

    if (waiter) {
        unused = waiter->next;
    } else {
        waiter = malloc(sizeof(*waiter));
        waiter->cond = st_cond_new();
    }
    waiter->next = NULL;
    return waiter;
}

/* A waiter whose time is up stays in the queue: no row goes on after that. */
static inline int wait_in(struct queue *queue, st_utime_t timeout)
{
    struct waiter *waiter = waiter_new();
    int failed;

    *queue->tail = waiter;
    queue->tail = &waiter->next;
    failed = st_cond_timedwait(waiter->cond, timeout);
    if (!failed) {
        waiter->next = unused;
        unused = waiter;
    }
    return failed;
}

static inline int wake_first(struct queue *queue)
{
    struct waiter *first = queue->head;

    queue->head = first->next;
    if (!queue->head)
        queue->tail = &queue->head;
    return st_cond_signal(first->cond);
}

static struct {
    struct queue waiters;
    struct queue pump;
    int moved; /* one was woken since the pump was queued */
} yielding;

static inline void let_one_go(void)
{
    if (yielding.waiters.head) {
        yielding.moved = 1;
        (void)wake_first(&yielding.waiters);
    }
}

static void *pump(void *arg)
{
    (void)arg;
    for (;;) {
        (void)wait_in(&yielding.pump, ST_UTIME_NO_TIMEOUT);
        if (!yielding.moved)
            let_one_go();
    }
    return NULL;
}

static inline int yield_init(void)
{
    queue_init(&yielding.waiters);
    queue_init(&yielding.pump);
    if (!st_thread_create(pump, NULL, 0, STACK))
        return -1;
    return st_usleep(0); /* the pump gets to its place */
}

static inline int yield(void)
{
    if (yielding.waiters.head) {
        let_one_go();
    } else if (yielding.pump.head) {
        yielding.moved = 0;
        (void)wake_first(&yielding.pump);
    }
    return wait_in(&yielding.waiters, ST_UTIME_NO_TIMEOUT);
}
