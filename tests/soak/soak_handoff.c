/* SPDX-License-Identifier: MIT */
/*
 * soak_handoff.c - a mutex handed on a hundred million times: everybody's turn
 * comes in the order of arrival, everybody has had as many turns as the others,
 * and memory stays as it is.
 */
#include "soak.h"

struct ring {
    px_mutex mutex;
    int n;
    int turn; /* whose it is */
    int64_t rest;
    int64_t warm; /* at so many that are left, memory is looked at */
    int64_t out_of_turn;
    struct footprint before;
};

struct member {
    struct ring *ring;
    int place;
    int64_t turns;
};

static int take_turns(void *arg)
{
    struct member *self = arg;
    struct ring *ring = self->ring;

    for (;;) {
        EXPECT_EQ(px_mutex_lock(&ring->mutex), 0);
        if (ring->rest == 0)
            break;
        ring->out_of_turn += ring->turn != self->place;
        ring->turn = ring->turn + 1 < ring->n ? ring->turn + 1 : 0;
        self->turns++;
        if (--ring->rest == ring->warm)
            ring->before = footprint();
        EXPECT_EQ(px_mutex_unlock(&ring->mutex), 0);
    }
    return px_mutex_unlock(&ring->mutex);
}

static struct member members[1000];

/* Nobody goes before all are in the queue, and then it is never empty: each
 * unlock hands over. */
static int hand_on(void *arg)
{
    struct ring *ring = arg;
    static px_fiber *handles[1000];
    int64_t least = INT64_MAX, most = 0;

    EXPECT_EQ(px_mutex_lock(&ring->mutex), 0);
    for (int i = 0; i < ring->n; i++) {
        members[i] = (struct member){ring, i, 0};
        handles[i] = start_handle(take_turns, &members[i]);
    }
    EXPECT_EQ(px_mutex_waiters(&ring->mutex), ring->n);
    EXPECT_EQ(px_mutex_unlock(&ring->mutex), 0);
    EXPECT_EQ(px_await_all(handles, (size_t)ring->n, NULL), 0);

    for (int i = 0; i < ring->n; i++) {
        least = members[i].turns < least ? members[i].turns : least;
        most = members[i].turns > most ? members[i].turns : most;
    }
    EXPECT_EQ(ring->out_of_turn, 0);
    EXPECT(most - least <= 1);
    expect_as_flat_as(ring->before);
    return 0;
}

static void hand_on_among(int n)
{
    static struct ring ring;
    int64_t total = soak(100000000);

    ring = (struct ring){.n = n, .rest = total, .warm = total - total / 100};
    run_fibers(hand_on, &ring);
    assert_log("");
}

static void a_mutex_goes_round_two_fibers(void **state)
{
    (void)state;
    hand_on_among(2);
}

static void a_mutex_goes_round_eight_fibers(void **state)
{
    (void)state;
    hand_on_among(8);
}

static void a_mutex_goes_round_a_thousand_fibers(void **state)
{
    (void)state;
    hand_on_among(1000);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_mutex_goes_round_two_fibers),
    PX_TEST(a_mutex_goes_round_eight_fibers),
    PX_TEST(a_mutex_goes_round_a_thousand_fibers),
};

PX_TEST_MAIN(tests)
