/* SPDX-License-Identifier: MIT */
/*
 * inbox.h - the one door to a loop for other threads.
 *
 * Another thread pushes a node onto the loop's inbox and wakes the poller; the
 * loop takes the whole inbox at once, at its next look around, and delivers
 * the nodes in the order in which they were pushed.
 */
#ifndef PX_INBOX_H
#define PX_INBOX_H

#include "loop.h"

/* Hand `node` to the loop; from any thread. The node is the loop's from here
 * on: it may be delivered, and gone, before this returns. */
void px__inbox_push(px_loop *loop, struct px_remote *node);
/* Have it look around, from any thread. */
void px__inbox_wake(px_loop *loop);
/* Deliver what has come; on the loop's thread. */
void px__inbox_deliver(px_loop *loop);

/* Whoever may be the last to keep the loop alive is counted in and out; the
 * loop waits for the last to leave before it goes away. */
void px__inbox_come_in(px_loop *loop);
void px__inbox_go_out(px_loop *loop);
void px__inbox_wait_for_visitors(px_loop *loop);

static inline bool px__inbox_pending(const px_loop *loop)
{
    return atomic_load_explicit(&loop->inbox, memory_order_relaxed) != NULL;
}

static inline bool px__inbox_held(px_loop *loop)
{
    return atomic_load_explicit(&loop->holds, memory_order_acquire) > 0;
}

#endif
