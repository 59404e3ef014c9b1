/* SPDX-License-Identifier: MIT */
/*
 * heap.h - a priority queue of points in time.
 *
 * A pairing heap: the nodes are the caller's own, so putting one in can not
 * fail and allocates nothing (a fiber parks under a deadline without either).
 * Insertion is O(1), removal O(log n) amortised. Equal times come out in the
 * order they were put in.
 */
#ifndef PX_BASE_HEAP_H
#define PX_BASE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct px_heap_node {
    int64_t when;
    uint64_t order;             /* of insertion; 0: in no heap */
    struct px_heap_node *child; /* the first of those that come later */
    struct px_heap_node *next;  /* sibling */
    struct px_heap_node *prev;  /* sibling before it; the parent for a first */
};

struct px_heap {
    struct px_heap_node *top; /* the earliest; NULL if empty */
    uint64_t inserted;
};

static inline bool px__heap_holds(const struct px_heap_node *node)
{
    return node->order != 0;
}

void px__heap_insert(struct px_heap *heap, struct px_heap_node *node,
                     int64_t when);
void px__heap_remove(struct px_heap *heap, struct px_heap_node *node);

#endif
