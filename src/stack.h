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
#include <stdint.h>

#define PX_STACK_DEFAULT ((size_t)64 * 1024)
#define PX_STACK_MINIMUM ((size_t)16 * 1024)
#define PX_STACK_MAIN ((size_t)1024 * 1024)
/* More than any machine can map: a size above it is a mistake. */
#define PX_STACK_MAXIMUM ((size_t)1 << 46)

struct px_slab;

/* It lies at the top of the stack that it describes, and what is used of that
 * ends where it begins. Above it are the bytes that the pool was told to keep
 * for its owner: of a stack never used they are zero, of another as they were.
 */
struct px_stack {
    struct px_stack *next; /* among the free */
    struct px_stack *prev;
    char *low; /* the lowest byte that may be used; the guard ends below it */
    struct px_slab *slab;
    uint32_t index; /* in the slab */
};

/* Aligned as a cache line. */
static inline char *px__stack_top(struct px_stack *stack)
{
    return (char *)stack;
}

#define PX_STACK_CLASSES 136

/* Stacks of one size. */
struct px_stack_class {
    struct px_stack
        *warm; /* free; whoever keeps warm ones himself counts them */
    size_t warm_count;
    size_t warm_most;
    struct px_slab *carving; /* has stacks never used */
    struct px_slab *cold;    /* slabs with stacks whose pages went back */
    size_t made;
};

struct px_stack_pool {
    struct px_slab *slabs; /* all of them, newest first */
    struct px_stack_class classes[PX_STACK_CLASSES];
    struct px_stack_class *last; /* what was asked for last, */
    size_t last_size;            /* and by which size */
    size_t guard;                /* bytes, whole pages */
    size_t head;                 /* bytes at the top, px_stack included */
    size_t page;
    size_t mapped_guards; /* under LSan: see stack.c */
    bool wipe;
    bool valgrind;
};

/* `head` bytes, whole cache lines, are the owner's; px_stack is the first of
 * them. */
void px__stack_pool_open(struct px_stack_pool *pool, size_t guard, size_t head,
                         bool wipe);
void px__stack_pool_close(struct px_stack_pool *pool);

/* A stack with at least `size` usable bytes, PX_STACK_MAXIMUM at most, and a
 * guard below it; NULL without memory. errno is kept. */
struct px_stack *px__stack_acquire(struct px_stack_pool *pool, size_t size);
/* Give a stack back. Not the one that this code runs on. */
void px__stack_release(struct px_stack_pool *pool, struct px_stack *stack);

/* Before somebody writes to a stack, or a part of it, other than by pushing:
 * for valgrind the frames that were there are gone, and nobody's. */
void px__stack_forget_frames(char *low, char *top);
static inline void px__stack_used(const struct px_stack_pool *pool, char *low,
                                  char *top)
{
    if (pool->valgrind)
        px__stack_forget_frames(low, top);
}

/* The class of a size. */
struct px_stack_class *px__stack_class(struct px_stack_pool *pool, size_t size);

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
