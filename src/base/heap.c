/* SPDX-License-Identifier: MIT */
/*
 * heap.c - a pairing heap.
 *
 * Invariants:
 *   H1  No node comes before its parent, by (when, order).
 *   H2  A node's siblings are linked both ways; the first child's prev is its
 *       parent, the top's prev and next are NULL.
 *
 * Everything is melding two trees: the later top becomes the first child of
 * the earlier one. Removing a node cuts its tree out and melds its children
 * back, in pairs from the left and then from the right: the two passes are
 * what makes the amortised cost logarithmic (Fredman et al., 1986).
 */
#include "base/heap.h"

#include <stddef.h>

static bool comes_before(const struct px_heap_node *a,
                         const struct px_heap_node *b)
{
    return a->when < b->when || (a->when == b->when && a->order < b->order);
}

static struct px_heap_node *meld(struct px_heap_node *a, struct px_heap_node *b)
{
    if (comes_before(b, a)) {
        struct px_heap_node *swap = a;

        a = b;
        b = swap;
    }
    b->next = a->child;
    if (b->next)
        b->next->prev = b;
    b->prev = a;
    a->child = b;
    a->next = NULL;
    a->prev = NULL;
    return a;
}

/* Make one tree of a list of siblings, which is not empty. */
static struct px_heap_node *meld_all(struct px_heap_node *first)
{
    struct px_heap_node *pairs = NULL, *tree;

    while (first) {
        struct px_heap_node *a = first, *b = a->next;

        first = b ? b->next : NULL;
        a->next = NULL;
        if (b)
            a = meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    tree = pairs;
    pairs = tree->next;
    tree->next = NULL;
    tree->prev = NULL;
    while (pairs) {
        struct px_heap_node *after = pairs->next;

        tree = meld(tree, pairs);
        pairs = after;
    }
    return tree;
}

void px__heap_insert(struct px_heap *heap, struct px_heap_node *node,
                     int64_t when)
{
    node->when = when;
    node->order = ++heap->inserted;
    node->child = NULL;
    node->next = NULL;
    node->prev = NULL;
    heap->top = heap->top ? meld(heap->top, node) : node;
}

void px__heap_remove(struct px_heap *heap, struct px_heap_node *node)
{
    struct px_heap_node *children = node->child;

    if (node == heap->top) {
        heap->top = children ? meld_all(children) : NULL;
    } else {
        if (node->prev->child == node)
            node->prev->child = node->next;
        else
            node->prev->next = node->next;
        if (node->next)
            node->next->prev = node->prev;
        if (children)
            heap->top = meld(heap->top, meld_all(children));
    }
    node->order = 0;
}
