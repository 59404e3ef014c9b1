/* SPDX-License-Identifier: MIT */
/* overflow.h - a stack overflow says whose it was. */
#ifndef PX_OVERFLOW_H
#define PX_OVERFLOW_H

#include "scheduler.h"

/* What a thread that runs a loop needs: an alternate signal stack, unless it
 * has one. */
struct px_overflow {
    void *stack; /* NULL: the thread had its own */
    size_t size;
};

/* Install the handler (once per process) and the thread's signal stack. A
 * thread that can not have one still runs: its overflow dies without a word. */
void px__overflow_open(struct px_overflow *overflow);
void px__overflow_close(struct px_overflow *overflow);

#endif
