/* SPDX-License-Identifier: MIT */
/*
 * test_heap.c - the timer heap (src/base/heap.h) against a plain array.
 *
 * The array is searched from end to end for the earliest; that is what the
 * heap must give after every insertion and removal, wherever the node lies.
 */
#include "px_test.h"

#include "base/heap.h"

#define NODES 200
#define STEPS 200000

static struct px_heap_node nodes[NODES];

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static const struct px_heap_node *earliest(void)
{
    const struct px_heap_node *best = NULL;

    for (size_t i = 0; i < NODES; i++) {
        const struct px_heap_node *node = &nodes[i];

        if (!px__heap_holds(node))
            continue;
        if (!best || node->when < best->when ||
            (node->when == best->when && node->order < best->order))
            best = node;
    }
    return best;
}

static void the_top_is_the_earliest_after_every_step(void **state)
{
    struct px_heap heap = {0};
    uint64_t random = 88172645463325252u;
    long steps = getenv("PX_TEST_SMALL") ? STEPS / 20 : STEPS;

    (void)state;
    memset(nodes, 0, sizeof(nodes));
    for (long step = 0; step < steps; step++) {
        struct px_heap_node *node = &nodes[random_next(&random) % NODES];
        /* Few different times, so that many are equal; the ends of the type
         * among them. */
        uint64_t pick = random_next(&random) % 16;
        int64_t when = pick == 0   ? INT64_MIN
                       : pick == 1 ? INT64_MAX
                                   : (int64_t)pick;

        if (px__heap_holds(node))
            px__heap_remove(&heap, node);
        else
            px__heap_insert(&heap, node, when);
        assert_ptr_equal(heap.top, earliest());
    }
    while (heap.top) {
        assert_ptr_equal(heap.top, earliest());
        px__heap_remove(&heap, heap.top);
    }
    assert_null(earliest());
}

static void equal_times_come_out_in_the_order_they_were_put_in(void **state)
{
    struct px_heap heap = {0};

    (void)state;
    memset(nodes, 0, sizeof(nodes));
    for (size_t i = 0; i < NODES; i++)
        px__heap_insert(&heap, &nodes[i], 7);
    for (size_t i = 0; i < NODES; i++) {
        assert_ptr_equal(heap.top, &nodes[i]);
        px__heap_remove(&heap, heap.top);
    }
    assert_null(heap.top);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(the_top_is_the_earliest_after_every_step),
    PX_TEST(equal_times_come_out_in_the_order_they_were_put_in),
};

PX_TEST_MAIN(tests)
