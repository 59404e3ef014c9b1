/* SPDX-License-Identifier: MIT */
/* spawn.h - how a fiber begins and ends. */
#ifndef PX_SPAWN_H
#define PX_SPAWN_H

#include "scheduler.h"

/* What a new fiber is to be; zero but for loop and fn is a plain one. */
struct px_birth {
    px_fn fn;
    void *arg;
    size_t arg_size; /* bytes at arg that move to its stack; 0: none */
    const char *name;
    size_t stack_size; /* 0: the run's */
    uint8_t flags;     /* PX_FIBER_... */
    px_scope *scope;   /* around its body; NULL: the run's */
    void (*on_end)(px_fiber *self, int result); /* on the fiber, at its end */
    void *owner;                                /* for on_end */
    const void *site;
};

/* Fill in from the public options: 0, or PX_EINVAL. */
int px__birth_from(struct px_birth *birth, const px_spawn_options *options,
                   px_fn fn, void *arg);

/* Make a fiber that has everything it needs to run, and is in no queue: 0, or
 * PX_ENOMEM with nothing made. */
int px__spawn(px_loop *loop, const struct px_birth *birth, px_fiber **out);
/* Then either start it at once, the caller ahead of the run queue, or put it
 * at the tail. Returns 0. */
int px__begin(px_fiber *self, px_fiber *fiber, bool queued);

/* px_hooks.body */
void px__spawn_body(void *fiber);

#endif
