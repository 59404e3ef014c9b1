/* SPDX-License-Identifier: MIT */
/*
 * heap.c - a 4-ary heap.
 *
 * Invariants:
 *   H1  No entry comes before its parent's, by (when, order).
 *   H2  places[entries[i].slot] == i for every i below `count`; each slot below
 *       `used` is in one entry.
 *   H3  A node in the crowd has the slot CROWDED, which is in no entry.
 *   H4  Whoever was put in later has the higher order. Before the numbers come
 *       to their end, all are given new ones.
 *
 * A slot stands for a node while it is in the heap: what moves is an entry and
 * a number in an array beside it, not a word in somebody's cold memory.
 */
#include "base/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

#define WAYS 4
#define LINE 64
#define LEAST 64
#define MOST (UINT32_MAX / 4)
#define CROWDED UINT32_MAX

static inline bool comes_before(const struct px_heap_entry *a,
                                const struct px_heap_entry *b)
{
    return a->when < b->when || (a->when == b->when && a->order < b->order);
}

/* Entry 0 ends a cache line, so that each four siblings fill one. */
PX_COLD bool px__heap_reserve(struct px_heap *heap, size_t room)
{
    const size_t lead = LINE - sizeof(struct px_heap_entry);
    struct px_heap grown = *heap;
    int saved = errno, err;
    size_t size;
    char *at;

    if (room < LEAST)
        room = LEAST;
    if (room <= heap->room)
        return true;
    if (room > MOST)
        return false;
    size = lead + (room + 1) * (sizeof(*grown.entries) + sizeof(*grown.nodes) +
                                sizeof(*grown.places));
    err = posix_memalign(&grown.memory, LINE, size);
    PX_ERRNO_MAY_HAVE_CHANGED();
    errno = saved;
    if (err)
        return false;
    at = (char *)grown.memory + lead;
    grown.entries = (struct px_heap_entry *)(void *)at;
    at += (room + 1) * sizeof(*grown.entries);
    grown.nodes = (struct px_heap_node **)(void *)at;
    at += (room + 1) * sizeof(*grown.nodes);
    grown.places = (uint32_t *)(void *)at;
    grown.room = (uint32_t)room;
    if (heap->memory) {
        memcpy(grown.entries, heap->entries,
               heap->used * sizeof(*grown.entries));
        memcpy(grown.nodes, heap->nodes,
               (heap->used + 1) * sizeof(struct px_heap_node *));
        memcpy(grown.places, heap->places,
               (heap->used + 1) * sizeof(*grown.places));
        free(heap->memory);
    }
    *heap = grown;
    return true;
}

void px__heap_close(struct px_heap *heap)
{
    free(heap->memory);
    memset(heap, 0, sizeof(*heap));
}

static inline void put(struct px_heap *heap, uint32_t place,
                       struct px_heap_entry entry)
{
    heap->entries[place] = entry;
    heap->places[entry.slot] = place;
}

/* Put an entry where it belongs, at `place` or above. */
static void rise(struct px_heap *heap, uint32_t place,
                 struct px_heap_entry entry)
{
    while (place > 0) {
        uint32_t parent = (place - 1) / WAYS;

        if (!comes_before(&entry, &heap->entries[parent]))
            break;
        put(heap, place, heap->entries[parent]);
        place = parent;
    }
    put(heap, place, entry);
}

/* The earliest of the entries from `child` on that have the same parent. */
static inline uint32_t earliest(const struct px_heap *heap, uint32_t child)
{
    uint32_t end = child + WAYS < heap->count ? child + WAYS : heap->count;
    uint32_t best = child;

    for (uint32_t i = child + 1; i < end; i++) {
        if (comes_before(&heap->entries[i], &heap->entries[best]))
            best = i;
    }
    return best;
}

/* At `place` or below. */
static void sink(struct px_heap *heap, uint32_t place,
                 struct px_heap_entry entry)
{
    for (;;) {
        uint32_t child = place * WAYS + 1;

        if (child >= heap->count)
            break;
        child = earliest(heap, child);
        if (!comes_before(&heap->entries[child], &entry))
            break;
        put(heap, place, heap->entries[child]);
        place = child;
    }
    put(heap, place, entry);
}

static PX_COLD void join_crowd(struct px_heap *heap, struct px_heap_node *node)
{
    struct px_heap_node **end = &heap->crowd, *last = NULL;

    while (*end) {
        last = *end;
        end = &last->next;
    }
    *end = node;
    node->next = NULL;
    node->prev = last;
    node->slot = CROWDED;
}

static PX_COLD void leave_crowd(struct px_heap *heap, struct px_heap_node *node)
{
    if (node->prev)
        node->prev->next = node->next;
    else
        heap->crowd = node->next;
    if (node->next)
        node->next->prev = node->prev;
}

/* How many entries come before a node of the crowd, once they are sorted. */
static uint32_t rank(const struct px_heap *heap,
                     const struct px_heap_node *node)
{
    struct px_heap_entry entry = {.when = node->when, .order = node->order};
    uint32_t before = 0;

    while (before < heap->count && comes_before(&heap->entries[before], &entry))
        before++;
    return before;
}

/* New numbers for all, in the order in which they come out: entries are odd,
 * and the crowd even, in between. What is sorted is a heap, too. */
static PX_COLD void renumber(struct px_heap *heap)
{
    uint32_t count = heap->count;

    while (heap->count > 1) { /* the earliest go to the end */
        struct px_heap_entry first = heap->entries[0];
        struct px_heap_entry last = heap->entries[--heap->count];

        sink(heap, 0, last);
        put(heap, heap->count, first);
    }
    heap->count = count;
    for (uint32_t i = 0; i < count / 2; i++) {
        struct px_heap_entry late = heap->entries[i];

        put(heap, i, heap->entries[count - 1 - i]);
        put(heap, count - 1 - i, late);
    }
    for (struct px_heap_node *n = heap->crowd; n; n = n->next)
        n->order = 2 * rank(heap, n);
    for (uint32_t i = 0; i < count; i++)
        heap->entries[i].order = 2 * i + 1;
    heap->order = 2 * count + 1;
}

void px__heap_insert(struct px_heap *heap, struct px_heap_node *node,
                     int64_t when)
{
    struct px_heap_entry entry = {.when = when};

    node->when = when;
    if (PX_UNLIKELY(heap->order == UINT32_MAX))
        renumber(heap);
    entry.order = heap->order++;
    if (PX_UNLIKELY(heap->count == heap->room)) {
        node->order = entry.order;
        join_crowd(heap, node);
        return;
    }
    entry.slot = heap->count < heap->used ? heap->entries[heap->count].slot
                                          : ++heap->used;
    heap->nodes[entry.slot] = node;
    node->slot = entry.slot;
    rise(heap, heap->count++, entry);
}

void px__heap_remove(struct px_heap *heap, struct px_heap_node *node)
{
    uint32_t slot = node->slot, place;
    struct px_heap_entry last;

    node->slot = 0;
    if (PX_UNLIKELY(slot == CROWDED)) {
        leave_crowd(heap, node);
        return;
    }
    place = heap->places[slot];
    last = heap->entries[--heap->count];
    heap->entries[heap->count].slot = slot;
    if (place == heap->count)
        return;
    if (place > 0 && comes_before(&last, &heap->entries[(place - 1) / WAYS]))
        rise(heap, place, last);
    else
        sink(heap, place, last);
}

struct px_heap_node *px__heap_top(const struct px_heap *heap)
{
    struct px_heap_entry first = {.when = INT64_MAX};
    struct px_heap_node *top = NULL;

    if (heap->count > 0) {
        first = heap->entries[0];
        top = heap->nodes[first.slot];
    }
    for (struct px_heap_node *n = heap->crowd; n; n = n->next) {
        struct px_heap_entry entry = {.when = n->when, .order = n->order};

        if (!top || comes_before(&entry, &first)) {
            first = entry;
            top = n;
        }
    }
    return top;
}
