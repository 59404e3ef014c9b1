/* SPDX-License-Identifier: MIT */
/*
 * test_seam.c - the one difference between the library as it ships and the one
 * that the models play with: who is next is asked. Where nobody is to be asked
 * it is the library as it ships.
 */
#include "fiber_test.h"
#include "scheduler.h"

static int order[200], ended;
static size_t most;

static int notes_its_number(void *number)
{
    EXPECT_EQ(px_yield(), 0);
    order[ended++] = (int)(intptr_t)number;
    return 0;
}

static int starts_many(void *count)
{
    ended = 0;
    for (intptr_t i = 0; i < *(const int *)count; i++)
        start(notes_its_number, (void *)i);
    return 0;
}

static void run_many(int count, uint64_t seed)
{
    px_run_options options = {.shuffle_seed = seed};

    assert_int_equal(run_fibers_with(options, 0, starts_many, &count), 0);
    assert_int_equal(ended, count);
}

static bool is_in_order(int count)
{
    for (int i = 0; i < count; i++) {
        if (order[i] != i)
            return false;
    }
    return true;
}

static void without_a_chooser_the_queue_is_as_it_ships(void **state)
{
    int first[200];

    (void)state;
    if (getenv("PX_TEST_SEED") == NULL) {
        run_many(200, 0);
        assert_true(is_in_order(200));
    }
    run_many(200, 7);
    assert_false(is_in_order(200));
    memcpy(first, order, sizeof(first));
    run_many(200, 7);
    assert_memory_equal(first, order, sizeof(first));
}

static size_t last(px_loop *loop, px_fiber *const *ready, size_t n)
{
    for (size_t i = 0; i < n; i++)
        EXPECT(ready[i]->loop == loop);
    if (n > most)
        most = n;
    return n - 1;
}

/* Of more than it can show, the chooser is shown the oldest. */
static void the_chooser_says_who_is_next(void **state)
{
    (void)state;
    px__seam_pick = last;
    most = 0;
    run_many(5, 0);
    assert_int_equal(most, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(order[i], 4 - i);
    run_many(200, 0);
    px__seam_pick = NULL;
    assert_int_equal(most, PX_SEAM_MOST);
    assert_int_equal(order[0], PX_SEAM_MOST - 1);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(without_a_chooser_the_queue_is_as_it_ships),
    PX_TEST(the_chooser_says_who_is_next),
};

PX_TEST_MAIN(tests)
