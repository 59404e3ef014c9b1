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
static long inserted[NODES]; /* when, in steps */

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
            (node->when == best->when && inserted[i] < inserted[best - nodes]))
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
    assert_true(px__heap_reserve(&heap, NODES / 2));
    for (long step = 0; step < steps; step++) {
        struct px_heap_node *node = &nodes[random_next(&random) % NODES];

        if (step == steps / 2) /* in between, all of it moves */
            assert_true(px__heap_reserve(&heap, NODES));
        /* Few different times, so that many are equal; the ends of the type
         * among them. */
        uint64_t pick = random_next(&random) % 16;
        int64_t when = pick == 0   ? INT64_MIN
                       : pick == 1 ? INT64_MAX
                                   : (int64_t)pick;

        /* As if so many had been put in and taken out: up to 2^32, and over. */
        if (random_next(&random) % 32 == 0)
            heap.order += (UINT32_MAX - heap.order) / 2;
        if (px__heap_holds(node))
            px__heap_remove(&heap, node);
        else {
            inserted[node - nodes] = step;
            px__heap_insert(&heap, node, when);
        }
        assert_ptr_equal(px__heap_top(&heap), earliest());
    }
    while (!px__heap_is_empty(&heap)) {
        assert_ptr_equal(px__heap_top(&heap), earliest());
        px__heap_remove(&heap, px__heap_top(&heap));
    }
    assert_null(earliest());
    px__heap_close(&heap);
}

static void equal_times_come_out_in_the_order_they_were_put_in(void **state)
{
    struct px_heap heap = {0};

    (void)state;
    memset(nodes, 0, sizeof(nodes));
    assert_true(px__heap_reserve(&heap, NODES));
    for (size_t i = 0; i < NODES; i++)
        px__heap_insert(&heap, &nodes[i], 7);
    for (size_t i = 0; i < NODES; i++) {
        assert_ptr_equal(px__heap_top(&heap), &nodes[i]);
        px__heap_remove(&heap, &nodes[i]);
    }
    assert_null(px__heap_top(&heap));
    px__heap_close(&heap);
}

/* Where no room could be had, nothing is lost. */
static void without_room_all_come_out_in_time(void **state)
{
    struct px_heap heap = {0};

    (void)state;
    memset(nodes, 0, sizeof(nodes));
    for (size_t reserved = 0; reserved < 2; reserved++) {
        for (size_t i = 0; i < NODES; i++)
            px__heap_insert(&heap, &nodes[i], (int64_t)(i * 7919 % NODES));
        for (size_t i = 0; i < NODES; i += 3)
            px__heap_remove(&heap, &nodes[i]);
        for (int64_t time = 0; time < NODES; time++) {
            struct px_heap_node *top = px__heap_top(&heap);

            if (top && top->when == time)
                px__heap_remove(&heap, top);
            top = px__heap_top(&heap);
            assert_true(!top || top->when > time);
            assert_int_equal(px__heap_is_empty(&heap), !top);
        }
        assert_true(px__heap_is_empty(&heap));
        for (size_t i = 0; i < NODES; i++)
            assert_false(px__heap_holds(&nodes[i]));
        assert_true(px__heap_reserve(&heap, NODES / 4));
    }
    px__heap_close(&heap);
}

static void more_than_there_can_be_is_refused(void **state)
{
    struct px_heap heap = {0};

    (void)state;
    assert_false(px__heap_reserve(&heap, SIZE_MAX / 2));
    assert_true(px__heap_is_empty(&heap));
    assert_int_equal(heap.room, 0);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(the_top_is_the_earliest_after_every_step),
    PX_TEST(equal_times_come_out_in_the_order_they_were_put_in),
    PX_TEST(without_room_all_come_out_in_time),
    PX_TEST(more_than_there_can_be_is_refused),
};

PX_TEST_MAIN(tests)
