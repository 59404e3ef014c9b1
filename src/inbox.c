/* SPDX-License-Identifier: MIT */
/*
 * inbox.c - a list that any thread pushes onto with one compare-and-swap, and
 * the loop takes with one exchange, and turns round.
 *
 * Only the push that finds it empty wakes the poller. The loop clears the
 * wake-up before it takes the list, so a node that is pushed after that finds
 * the list empty again, and wakes: none is left behind by a sleeping loop.
 */
#include "inbox.h"

#include <sched.h>

void px__inbox_come_in(px_loop *loop)
{
    (void)atomic_fetch_add(&loop->visitors, 1);
}

void px__inbox_go_out(px_loop *loop)
{
    (void)atomic_fetch_sub(&loop->visitors, 1);
}

void px__inbox_wait_for_visitors(px_loop *loop)
{
    /* GCOVR_EXCL_START: whether another thread is inside is up to chance. */
    while (atomic_load(&loop->visitors) != 0)
        (void)sched_yield();
    /* GCOVR_EXCL_STOP */
}

/* In a forked child nobody looks, and the numbers may be other files'. */
void px__inbox_wake(px_loop *loop)
{
    if (loop->forks == px__forks)
        px__poller_wake(&loop->poller);
}

void px__inbox_push(px_loop *loop, struct px_remote *node)
{
    struct px_remote *head;

    px__inbox_come_in(loop);
    head = atomic_load_explicit(&loop->inbox, memory_order_relaxed);
    /* GCOVR_EXCL_START: whether another thread comes in between is up to
     * chance. */
    do {
        node->next = head;
    } while (!atomic_compare_exchange_weak_explicit(
        &loop->inbox, &head, node, memory_order_release, memory_order_relaxed));
    /* GCOVR_EXCL_STOP */
    if (!head)
        px__inbox_wake(loop);
    px__inbox_go_out(loop);
}

void px__inbox_deliver(px_loop *loop)
{
    struct px_remote *pushed =
        atomic_exchange_explicit(&loop->inbox, NULL, memory_order_acquire);
    struct px_remote *first = NULL;

    while (pushed) {
        struct px_remote *next = pushed->next;

        pushed->next = first;
        first = pushed;
        pushed = next;
    }
    while (first) {
        struct px_remote *node = first;

        first = node->next;
        node->deliver(loop, node);
    }
}
