/* SPDX-License-Identifier: MIT */
/*
 * soak_churn.c - fibers come and go a hundred million times, with stacks of all
 * sizes: the pool of stacks holds what was needed at once, and no more.
 *
 * Each round draws the same numbers, so the first one has needed all that the
 * later ones do. A fiber that parks for a turn makes sure that stacks do not
 * come back in the order in which they were taken.
 */
#include "soak.h"

enum { ROUND = 1000000, ALIVE = 100 };

static const size_t sizes[] = {16, 17, 24, 33, 48, 64, 65, 96, 128, 200, 256};

static int alive, most_alive;

static int ends_at_once(void *arg)
{
    (void)arg;
    return 0;
}

static int ends_after_a_turn(void *arg)
{
    (void)arg;
    most_alive = ++alive > most_alive ? alive : most_alive;
    EXPECT_EQ(px_yield(), 0);
    alive--;
    return 0;
}

static void come_and_go(int64_t n)
{
    uint64_t numbers = 1;
    px_spawn_options options = {.stack_size = 0};

    for (int64_t i = 0; i < n; i++) {
        uint64_t number = random_below(&numbers, 1000);

        options.stack_size = sizes[number % 11] * 1024;
        EXPECT_EQ(px_spawn_with(NULL, &options,
                                number < 100 ? ends_after_a_turn : ends_at_once,
                                NULL),
                  0);
        if (alive == ALIVE)
            EXPECT_EQ(px_yield(), 0);
    }
    EXPECT_EQ(px_yield(), 0);
    EXPECT_EQ(alive, 0);
}

static int rounds(void *arg)
{
    int64_t n = *(int64_t *)arg;
    struct footprint before;

    come_and_go(n < ROUND ? n : ROUND);
    before = footprint();
    for (; n > ROUND; n -= ROUND)
        come_and_go(ROUND);
    expect_as_flat_as(before);
    return 0;
}

static void fibers_of_all_sizes_come_and_go(void **state)
{
    int64_t n = soak(100000000);

    (void)state;
    alive = most_alive = 0;
    run_fibers(rounds, &n);
    assert_log("");
    assert_int_equal(most_alive, ALIVE);
}

static int a_run(void *arg)
{
    int64_t n = *(int64_t *)arg;

    come_and_go(n);
    return 0;
}

/* What a run had is given back with it. */
static void runs_come_and_go(void **state)
{
    int64_t n = 1000;
    struct footprint before;

    (void)state;
    for (int i = 0; i < 10; i++)
        run_fibers(a_run, &n);
    before = footprint();
    for (int64_t i = soak(10000); i > 0; i--)
        run_fibers(a_run, &n);
    expect_as_flat_as(before);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(fibers_of_all_sizes_come_and_go),
    PX_TEST(runs_come_and_go),
};

PX_TEST_MAIN(tests)
