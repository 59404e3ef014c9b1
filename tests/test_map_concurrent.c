/* SPDX-License-Identifier: MIT */
/* test_map_concurrent.c - the same function for many, so many at a time. */
#include "fiber_test.h"

enum { MANY = 200 };

/* What the items do, and what became of them. */
struct work {
    px_nsec lengths[MANY]; /* how long item i sleeps */
    int values[MANY];      /* what it returns then */
    bool stubborn;         /* also if its sleep was cut short */
    int codes[MANY];       /* what its sleep returned */
    bool began[MANY], ended[MANY];
    size_t last; /* the item that began last, + 1 */
    int out_of_order;
    int inside, most, in_all;
    px_nsec deadline;
};

static int item(size_t i, void *arg)
{
    struct work *w = arg;

    if (i != w->last)
        w->out_of_order++;
    w->last = i + 1;
    w->began[i] = true;
    w->in_all++;
    if (++w->inside > w->most)
        w->most = w->inside;
    w->deadline = px_deadline();
    w->codes[i] = px_sleep(w->lengths[i]);
    w->inside--;
    w->ended[i] = true;
    return w->codes[i] && !w->stubborn ? w->codes[i] : w->values[i];
}

static struct work *new_work(void)
{
    struct work *w = calloc(1, sizeof(*w));

    for (int i = 0; i < MANY; i++)
        w->lengths[i] = (1 + i * 31 % 17) * PX_MSEC;
    return w;
}

FIBER_TEST(every_index_is_run_once_in_order_at_most_so_many_at_once)
{
    static const size_t limits[] = {1, 2, 7, MANY - 1, MANY, MANY + 1};
    struct work *w;

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        w = new_work();
        EXPECT_EQ(px_map_concurrent(MANY, limits[i], item, w), 0);
        EXPECT_EQ(w->out_of_order, 0);
        EXPECT_EQ(w->in_all, MANY);
        EXPECT_EQ(w->inside, 0);
        EXPECT_EQ(w->most, limits[i] < MANY ? limits[i] : MANY);
        free(w);
    }
    return 0;
}

FIBER_TEST(without_a_limit_all_start_at_once)
{
    static const size_t limits[] = {0, SIZE_MAX, (size_t)INT64_MAX,
                                    (size_t)INT64_MAX + 1};
    struct work *w;
    px_nsec begin;

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        w = new_work();
        begin = px_now();
        EXPECT_EQ(px_map_concurrent(MANY, limits[i], item, w), 0);
        EXPECT_EQ(px_now() - begin, 17 * PX_MSEC); /* the longest */
        EXPECT_EQ(w->most, MANY);
        EXPECT_EQ(w->out_of_order, 0);
        free(w);
    }
    return 0;
}

FIBER_TEST(one_at_a_time_takes_the_sum)
{
    struct work *w = new_work();
    px_nsec sum = 0;

    for (int i = 0; i < MANY; i++)
        sum += w->lengths[i];
    EXPECT_EQ(px_map_concurrent(MANY, 1, item, w), 0);
    EXPECT_EQ(px_now(), sum);
    free(w);
    return 0;
}

static int never_called(size_t i UNUSED, void *arg UNUSED)
{
    EXPECT(false);
    return -1;
}

FIBER_TEST(nothing_to_do_is_0)
{
    EXPECT_EQ(px_map_concurrent(0, 0, never_called, NULL), 0);
    EXPECT_EQ(px_map_concurrent(0, 5, never_called, NULL), 0);
    EXPECT_EQ(px_now(), 0);
    return 0;
}

FIBER_TEST(a_null_fn_is_refused)
{
    EXPECT_EQ(px_map_concurrent(1, 1, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_check(), 0);
    return 0;
}

static void off_a_fiber_it_is_refused(void **state)
{
    (void)state;
    assert_int_equal(px_map_concurrent(1, 1, NULL, NULL), PX_EINVAL);
    assert_int_equal(px_map_concurrent(1, 1, never_called, NULL), PX_ENOFIBER);
}

FIBER_TEST(positive_values_are_dropped)
{
    struct work *w = new_work();

    for (int i = 0; i < MANY; i++)
        w->values[i] = i + 1;
    EXPECT_EQ(px_map_concurrent(MANY, 3, item, w), 0);
    EXPECT_EQ(w->in_all, MANY);
    free(w);
    return 0;
}

FIBER_TEST(the_first_failure_cancels_the_rest)
{
    struct work *w = new_work();

    for (int i = 0; i < MANY; i++)
        w->lengths[i] = PX_SEC;
    w->lengths[7] = 10 * PX_MSEC;
    w->values[7] = -7;
    w->lengths[3] = 20 * PX_MSEC;
    w->values[3] = -3;
    EXPECT_EQ(px_map_concurrent(MANY, 10, item, w), -7);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(w->in_all, 10); /* the others never started */
    EXPECT_EQ(w->codes[7], 0);
    EXPECT_EQ(w->codes[3], PX_ECANCELED);
    for (int i = 0; i < 10; i++)
        EXPECT(w->ended[i]);
    EXPECT_EQ(px_check(), 0);
    free(w);
    return 0;
}

FIBER_TEST(a_later_failure_does_not_replace_the_first)
{
    struct work *w = new_work();

    w->stubborn = true;
    for (int i = 0; i < MANY; i++) {
        w->lengths[i] = i == 5 ? PX_USEC : PX_SEC;
        w->values[i] = -1000 - i;
    }
    EXPECT_EQ(px_map_concurrent(MANY, 0, item, w), -1005);
    EXPECT_EQ(px_now(), PX_USEC);
    free(w);
    return 0;
}

static int fails_at_once(size_t i, void *arg)
{
    ++*(int *)arg;
    return i == 4 ? -4 : 0;
}

FIBER_TEST(an_item_that_fails_at_once_is_the_last)
{
    int calls = 0;

    EXPECT_EQ(px_map_concurrent(100, 0, fails_at_once, &calls), -4);
    EXPECT_EQ(calls, 5);
    calls = 0;
    EXPECT_EQ(px_map_concurrent(100, 1, fails_at_once, &calls), -4);
    EXPECT_EQ(calls, 5);
    return 0;
}

static int maps(void *arg)
{
    return px_map_concurrent(MANY, 10, item, arg);
}

FIBER_TEST(a_deadline_around_it_reaches_every_item)
{
    struct work *w = new_work();

    for (int i = 0; i < MANY; i++)
        w->lengths[i] = 3 * PX_MSEC;
    EXPECT_EQ(px_with_timeout(10 * PX_MSEC, maps, w), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(w->in_all, 40);
    EXPECT_EQ(w->inside, 0);
    EXPECT_EQ(w->deadline, 10 * PX_MSEC);
    for (int i = 0; i < 40; i++)
        EXPECT_EQ(w->codes[i], i < 30 ? 0 : PX_ETIMEDOUT);
    free(w);
    return 0;
}

FIBER_TEST(in_a_fired_scope_it_starts_nothing)
{
    px_scope scope;

    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_EQ(px_map_concurrent(3, 0, never_called, NULL), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

FIBER_TEST(px_cancel_ends_it)
{
    struct work *w = new_work();
    px_fiber *fiber = start_handle(maps, w);
    int value = 0;

    EXPECT_EQ(px_cancel_and_await(fiber, &value), 0);
    EXPECT_EQ(value, PX_ECANCELED);
    EXPECT_EQ(px_now(), 0);
    EXPECT_EQ(w->in_all, 10);
    EXPECT_EQ(w->inside, 0);
    free(w);
    return 0;
}

static int times_out_by_itself(size_t i, void *arg UNUSED)
{
    px_nsec length = i == 2 ? PX_SEC : PX_MSEC;

    return px_with_timeout(10 * PX_MSEC, sleeps, &length);
}

FIBER_TEST(an_items_own_timeout_is_a_failure)
{
    EXPECT_EQ(px_map_concurrent(10, 0, times_out_by_itself, NULL),
              PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    return 0;
}

static int maps_in_turn(size_t i, void *arg)
{
    px_nsec length = (px_nsec)(i + 1) * PX_MSEC;
    int *calls = arg;

    ++*calls;
    EXPECT_EQ(px_sleep(length), 0);
    return i == 0 ? 0 : px_map_concurrent(i, 2, maps_in_turn, arg);
}

FIBER_TEST(it_may_be_nested)
{
    int calls = 0;

    EXPECT_EQ(px_map_concurrent(6, 3, maps_in_turn, &calls), 0);
    EXPECT_EQ(calls, 63); /* 2^6 - 1 */
    return 0;
}

/* ---- A failed spawn ---- */

static int maps_beyond_the_bound(void *arg)
{
    struct work *w = arg;

    w->stubborn = w->values[0] != 0;
    EXPECT_EQ(px_map_concurrent(MANY, 0, item, w), PX_ENOMEM);
    EXPECT_EQ(px_now(), 0);
    EXPECT_EQ(w->in_all, 4);
    for (int i = 0; i < 4; i++) {
        EXPECT(w->ended[i]);
        EXPECT_EQ(w->codes[i], PX_ECANCELED);
    }
    /* With a limit that fits, there is room for all. */
    w->stubborn = false;
    w->last = 0;
    memset(w->values, 0, sizeof(w->values));
    EXPECT_EQ(px_map_concurrent(MANY, 4, item, w), 0);
    EXPECT_EQ(w->in_all, 4 + MANY);
    return 0;
}

static void a_failed_spawn_cancels_the_rest_and_is_returned(void **state)
{
    struct work *w = new_work();
    px_run_options options = {.max_fibers = 5};

    (void)state;
    assert_int_equal(run_fibers_with(options, 0, maps_beyond_the_bound, w), 0);
    free(w);
}

static void failures_after_a_failed_spawn_do_not_replace_it(void **state)
{
    struct work *w = new_work();
    px_run_options options = {.max_fibers = 5};

    (void)state;
    for (int i = 0; i < MANY; i++)
        w->values[i] = -7;
    assert_int_equal(run_fibers_with(options, 0, maps_beyond_the_bound, w), 0);
    free(w);
}

/* ---- A deadlock ---- */

static int waits_in_vain(size_t i, void *arg)
{
    int err = px_sem_down(arg);

    EXPECT_EQ(err, PX_ESTALLED);
    return i == 0 ? -7 : err;
}

static int maps_in_vain(void *value)
{
    px_sem never = PX_SEM_INIT(0);

    *(int *)value = px_map_concurrent(3, 1, waits_in_vain, &never);
    return 0;
}

/* An item and whoever waits for its place are told at once: what is returned is
 * the failure of whichever runs first. */
static void the_first_failure_counts_in_a_deadlock_too(void **state)
{
    int deadlocks = 0, of_item = 0, of_place = 0;
    px_run_options options = {.on_deadlock = count_deadlocks,
                              .ctx = &deadlocks};

    (void)state;
    for (int seed = 1; seed <= 20; seed++) {
        int value = 0;

        options.shuffle_seed = (uint64_t)seed;
        assert_int_equal(run_fibers_with(options, 0, maps_in_vain, &value),
                         PX_ESTALLED);
        assert_true(value == -7 || value == PX_ESTALLED);
        of_item += value == -7;
        of_place += value == PX_ESTALLED;
    }
    assert_int_equal(deadlocks, 20);
    assert_true(of_item > 0);
    assert_true(of_place > 0);
}

static const struct CMUnitTest tests[] = {

    PX_TEST(every_index_is_run_once_in_order_at_most_so_many_at_once),
    PX_TEST(without_a_limit_all_start_at_once),
    PX_TEST(one_at_a_time_takes_the_sum),
    PX_TEST(nothing_to_do_is_0),
    PX_TEST(a_null_fn_is_refused),
    PX_TEST(off_a_fiber_it_is_refused),
    PX_TEST(positive_values_are_dropped),
    PX_TEST(the_first_failure_cancels_the_rest),
    PX_TEST(a_later_failure_does_not_replace_the_first),
    PX_TEST(an_item_that_fails_at_once_is_the_last),
    PX_TEST(a_deadline_around_it_reaches_every_item),
    PX_TEST(in_a_fired_scope_it_starts_nothing),
    PX_TEST(px_cancel_ends_it),
    PX_TEST(an_items_own_timeout_is_a_failure),
    PX_TEST(it_may_be_nested),
    PX_TEST(a_failed_spawn_cancels_the_rest_and_is_returned),
    PX_TEST(failures_after_a_failed_spawn_do_not_replace_it),
    PX_TEST(the_first_failure_counts_in_a_deadlock_too),
};

PX_TEST_MAIN(tests)
