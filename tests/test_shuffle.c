/* SPDX-License-Identifier: MIT */
/*
 * test_shuffle.c - the shuffled run queue: another order for another seed, the
 * same for the same; and what is never shuffled.
 */
#include "support/px_test.h"

static void run_with_seed(uint64_t seed, px_fn fn, void *arg)
{
    px_run_options options;

    memset(&options, 0, sizeof(options));
    options.clock = PX_CLOCK_VIRTUAL;
    options.shuffle_seed = seed;
    log_clear();
    assert_int_equal(px_run_with(&options, fn, arg), 0);
}

static int turns_of(void *arg)
{
    for (int i = 0; i < 4; i++) {
        note("%s", (const char *)arg);
        EXPECT_EQ(px_yield(), 0);
    }
    return 0;
}

static int take_turns(void *arg)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};

    (void)arg;
    for (int i = 0; i < 6; i++)
        start(turns_of, (void *)(uintptr_t)names[i]);
    return 0;
}

static void the_same_seed_gives_the_same_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        char *first;

        run_with_seed(seed, take_turns, NULL);
        first = strdup(log_text());
        run_with_seed(seed, take_turns, NULL);
        assert_log(first);
        run_with_seed(seed + 1, take_turns, NULL);
        run_with_seed(seed, take_turns, NULL);
        assert_log(first);
        free(first);
    }
}

static void other_seeds_give_other_orders(void **state)
{
    char *seen[20];
    int different = 0;

    (void)state;
    for (int i = 0; i < 20; i++) {
        int known = 0;

        run_with_seed((uint64_t)i + 1, take_turns, NULL);
        seen[i] = strdup(log_text());
        for (int k = 0; k < i; k++)
            known |= strcmp(seen[i], seen[k]) == 0;
        different += !known;
    }
    for (int i = 0; i < 20; i++)
        free(seen[i]);
    assert_true(different >= 18);
}

static void everybody_has_had_every_turn(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        int counts[6] = {0};

        run_with_seed(seed, take_turns, NULL);
        assert_int_equal(strlen(log_text()), 24);
        for (const char *c = log_text(); *c; c++)
            counts[*c - 'a']++;
        for (int i = 0; i < 6; i++)
            assert_int_equal(counts[i], 4);
        /* eager starts are not shuffled */
        assert_int_equal(strncmp(log_text(), "abcdef", 6), 0);
    }
}

static void seed_0_is_first_in_first_out(void **state)
{
    (void)state;
    run_with_seed(0, take_turns, NULL);
    assert_log("abcdefabcdefabcdefabcdef");
}

static void extreme_seeds_work(void **state)
{
    static const uint64_t seeds[] = {UINT64_MAX, UINT64_MAX - 1,
                                     (uint64_t)1 << 63, 0x100000000u};

    (void)state;
    for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
        run_with_seed(seeds[i], take_turns, NULL);
        assert_int_equal(strlen(log_text()), 24);
        assert_string_not_equal(log_text(), "abcdefabcdefabcdefabcdef");
    }
}

static int park_on(void *arg)
{
    EXPECT_EQ(px_sem_down(arg), 0);
    note("%lld ", (long long)px_current_id());
    return 0;
}

static int grant_one_by_one(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    for (int i = 0; i < 8; i++)
        start(park_on, &sem);
    for (int i = 0; i < 8; i++) {
        px_fid first = 0;

        EXPECT_EQ(px_sem_waiter_ids(&sem, &first, 1), 8 - i);
        EXPECT_EQ(first, i + 1);
        EXPECT_EQ(px_sem_up(&sem), 0);
        settle();
    }
    return 0;
}

static void who_is_granted_is_not_shuffled(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        run_with_seed(seed, grant_one_by_one, NULL);
        assert_log("1 2 3 4 5 6 7 8 ");
    }
}

static int grant_together(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    for (int i = 0; i < 8; i++)
        start(park_on, &sem);
    return px_sem_up_n(&sem, 8);
}

static void who_of_the_woken_runs_first_is_shuffled(void **state)
{
    int different = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        run_with_seed(seed, grant_together, NULL);
        assert_int_equal(strlen(log_text()), 16);
        different += strcmp(log_text(), "1 2 3 4 5 6 7 8 ") != 0;
    }
    assert_true(different >= 18);
}

static int spawn_and_go_on(void *arg)
{
    int step = 0;

    (void)arg;
    start(turns_of, "x");
    for (step = 0; step < 5; step++)
        start(turns_of, "y");
    note("| ");
    return 0;
}

static void the_spawner_goes_on_ahead_under_every_seed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        run_with_seed(seed, spawn_and_go_on, NULL);
        assert_int_equal(strncmp(log_text(), "xyyyyy| ", 8), 0);
    }
}

static int yield_long(void *arg)
{
    const int *others = arg;
    int waits = 0;

    while (*others > 0 && waits < 100000) {
        waits++;
        EXPECT_EQ(px_yield(), 0);
    }
    EXPECT_EQ(*others, 0);
    return 0;
}

static int count_down(void *arg)
{
    for (int i = 0; i < 100; i++)
        EXPECT_EQ(px_yield(), 0);
    --*(int *)arg;
    return 0;
}

static int yield_among_many(void *arg)
{
    int others = 50;

    (void)arg;
    for (int i = 0; i < 50; i++)
        start(count_down, &others);
    return yield_long(&others);
}

static void nobody_is_forgotten(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        run_with_seed(seed, yield_among_many, NULL);
        assert_log("");
    }
}

static int random_walk(void *arg)
{
    uint32_t *state = arg;

    for (int i = 0; i < 20; i++) {
        *state = *state * 1664525u + 1013904223u;
        if (*state >> 31)
            EXPECT_EQ(px_yield(), 0);
        else
            EXPECT_EQ(px_sleep(*state % 5), 0);
        note("%lld", (long long)px_current_id());
    }
    note("@%lld ", (long long)px_now());
    return 0;
}

static int walk_together(void *arg)
{
    static uint32_t states[9];

    (void)arg;
    for (uint32_t i = 0; i < 9; i++) {
        states[i] = i;
        start(random_walk, &states[i]);
    }
    return 0;
}

static void timers_and_yields_together_are_repeatable(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed <= 20; seed++) {
        char *first;

        run_with_seed(seed, walk_together, NULL);
        first = strdup(log_text());
        run_with_seed(seed, walk_together, NULL);
        assert_log(first);
        free(first);
    }
}

static const struct CMUnitTest tests[] = {
    PX_TEST(the_same_seed_gives_the_same_order),
    PX_TEST(other_seeds_give_other_orders),
    PX_TEST(everybody_has_had_every_turn),
    PX_TEST(seed_0_is_first_in_first_out),
    PX_TEST(extreme_seeds_work),
    PX_TEST(who_is_granted_is_not_shuffled),
    PX_TEST(who_of_the_woken_runs_first_is_shuffled),
    PX_TEST(the_spawner_goes_on_ahead_under_every_seed),
    PX_TEST(nobody_is_forgotten),
    PX_TEST(timers_and_yields_together_are_repeatable),
};

PX_TEST_MAIN(tests)
