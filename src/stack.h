/* SPDX-License-Identifier: MIT */
/*
 * stack.h - guarded stacks, carved from slabs and used again.
 *
 * A pool belongs to one loop and is used by one thread at a time. The most
 * recently freed stack is handed out first: it is the warmest. All memory goes
 * back to the system when the pool is closed.
 */
#ifndef PX_STACK_H
#define PX_STACK_H

#include <stdbool.h>
#include <stddef.h>

#define PX_STACK_DEFAULT ((size_t)64 * 1024)
#define PX_STACK_MINIMUM ((size_t)16 * 1024)
#define PX_STACK_MAIN ((size_t)1024 * 1024)
/* More than any machine can map: a size above it is a mistake. */
#define PX_STACK_MAXIMUM ((size_t)1 << 46)

struct px_slab;

struct px_stack {
    char *low; /* the lowest byte that may be used; the guard ends below it */
    char *top; /* 16-byte aligned; shifted, see stack.c */
    struct px_slab *slab;
};

#define PX_STACK_CLASSES 136

struct px_stack_pool {
    struct px_slab *slabs; /* all of them, newest first */
    struct px_stack_class {
        struct px_slab *carving; /* has stacks never used */
        struct px_free_stack *warm;
        struct px_slab *cold; /* slabs with stacks whose pages went back */
        size_t warm_count;
        size_t made;
    } classes[PX_STACK_CLASSES];
    size_t guard; /* bytes, whole pages */
    size_t page;
    bool wipe;
};

void px__stack_pool_open(struct px_stack_pool *pool, size_t guard, bool wipe);
void px__stack_pool_close(struct px_stack_pool *pool);

/* A stack with at least `size` usable bytes and a guard below it: 0, or
 * PX_ENOMEM. errno is kept. */
int px__stack_acquire(struct px_stack_pool *pool, size_t size,
                      struct px_stack *out);
/* Give a stack back. Not the one that this code runs on. */
void px__stack_release(struct px_stack_pool *pool, struct px_stack stack);

/* How many bytes a stack was made to hold. */
size_t px__stack_size(const struct px_stack *stack);
/* How many bytes a stack asked for with `size` can use. */
size_t px__stack_usable(const struct px_stack_pool *pool, size_t size);

/* Whether `address` lies in the guard of one of the pool's stacks; if so,
 * *low is the stack's lowest usable byte. Safe in a signal handler. */
bool px__stack_guards(const struct px_stack_pool *pool, const void *address,
                      char **low);

/* Which way guards are made: for tests of the other one. */
extern bool px__stack_no_light_guards;

#endif
