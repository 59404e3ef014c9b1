/* SPDX-License-Identifier: MIT */
/*
 * heap.h - a priority queue of points in time.
 *
 * A 4-ary heap in an array. What is compared lies in the array itself, four
 * children in a cache line; the caller's nodes are written to when they are put
 * in, and never touched by the others' moves. Putting one in allocates nothing:
 * the caller reserves room beforehand, where it can still fail, and where it
 * has not, the node goes into a list, which is searched. Equal times come out
 * in the order they were put in.
 */
#ifndef PX_BASE_HEAP_H
#define PX_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct px_heap_node {
    int64_t when;
    uint32_t slot;             /* 0: in no heap */
    uint32_t order;            /* of insertion, without room */
    struct px_heap_node *next; /* in the list of those without room */
    struct px_heap_node *prev;
};

struct px_heap_entry {
    int64_t when;
    uint32_t order; /* of insertion */
    uint32_t slot;
};

/* All zero: empty, and no room. */
struct px_heap {
    struct px_heap_entry *entries; /* those past `count` hold the free slots */
    struct px_heap_node **nodes;   /* by slot, from 1 on, as the next */
    uint32_t *places;
    uint32_t count;
    uint32_t room;
    uint32_t used; /* slots that were ever given out */
    uint32_t order;
    struct px_heap_node *crowd; /* those without room, oldest first */
    void *memory;
};

static inline bool px__heap_holds(const struct px_heap_node *node)
{
    return node->slot != 0;
}

static inline bool px__heap_is_empty(const struct px_heap *heap)
{
    return heap->count == 0 && !heap->crowd;
}

/* Have room for so many at once. False without memory. */
bool px__heap_reserve(struct px_heap *heap, size_t room);
void px__heap_close(struct px_heap *heap);

/* The earliest; NULL if it is empty. */
struct px_heap_node *px__heap_top(const struct px_heap *heap);
void px__heap_insert(struct px_heap *heap, struct px_heap_node *node,
                     int64_t when);
void px__heap_remove(struct px_heap *heap, struct px_heap_node *node);

#endif
