/* SPDX-License-Identifier: MIT */
/* types.h - the few types that every header speaks of. */
#ifndef PARATAXIS_TYPES_H
#define PARATAXIS_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <parataxis/export.h>

/** A fiber: a function with a stack of its own, run by turns with others on
 *  one thread. A pointer to one is a handle, from px_spawn() or px_self(). */
typedef struct px_fiber px_fiber;

/** A fiber's id: 0 is the main fiber, then 1, 2, ... in the order of spawning;
 *  never used twice within a run. */
typedef int64_t px_fid;

#define PX_NO_FIBER ((px_fid)-1)

/** What a fiber runs, and what the px_..._with calls run: the shape of C11's
 *  thrd_start_t. By convention 0 or more is success, a negative code is not. */
typedef int (*px_fn)(void *arg);

/** The fibers parked on an object, oldest first. Private: it is public only
 *  so that objects can be embedded by value. */
typedef struct px_waitq {
    struct px_waiter *head;
    struct px_waiter *tail;
} px_waitq;

#endif
