/* SPDX-License-Identifier: MIT */
/*
 * soak_sem.c - one fiber that wants a thousand permits, among a hundred
 * thousand that want one each and come back at once: its turn comes in the
 * order of arrival, every time.
 */
#include "soak.h"

enum { CROWD = 100000, PERMITS = 1000, ROUNDS = 100 };

static struct {
    px_sem sem;
    int64_t arrived; /* the number of the next request */
    int64_t served;  /* and of the one that is to be granted next */
    int64_t out_of_order;
    int64_t held, most_held;
    int64_t large; /* how often the large one was served */
    int64_t rounds;
    int64_t most; /* requests: a large one that starves must not be a hang */
} s;

static void hold(int64_t n)
{
    int64_t ticket = s.arrived++;

    EXPECT_EQ(px_sem_down_n(&s.sem, n), 0);
    s.out_of_order += ticket != s.served++;
    s.held += n;
    s.most_held = s.held > s.most_held ? s.held : s.most_held;
    EXPECT_EQ(px_yield(), 0);
    s.held -= n;
    EXPECT_EQ(px_sem_up_n(&s.sem, n), 0);
}

static int wants_one(void *arg)
{
    (void)arg;
    while (s.large < s.rounds && s.arrived < s.most)
        hold(1);
    return 0;
}

static int wants_many(void *arg)
{
    (void)arg;
    for (; s.large < s.rounds; s.large++)
        hold(PERMITS);
    return 0;
}

/* Half of them have come before it, half come after it. Some of the fibers of
 * one grant run before others of it: by the run queue's order. */
static int crowd(void *arg)
{
    px_waitgroup wg = PX_WAITGROUP_INIT(0);
    int n = fibers(CROWD);

    (void)arg;
    s.most = (s.rounds + 2) * (n + 1);
    for (int i = 0; i < n / 2; i++)
        EXPECT_EQ(px_waitgroup_go(&wg, wants_one, NULL), 0);
    EXPECT_EQ(px_waitgroup_go(&wg, wants_many, NULL), 0);
    for (int i = 0; i < n / 2; i++)
        EXPECT_EQ(px_waitgroup_go(&wg, wants_one, NULL), 0);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);

    EXPECT_EQ(s.out_of_order, 0);
    EXPECT_EQ(s.large, s.rounds);
    EXPECT_EQ(s.served, s.arrived);
    EXPECT_EQ(s.most_held, PERMITS);
    EXPECT_EQ(px_sem_count(&s.sem), PERMITS);
    /* Between two turns of the large one, the others had about one each. */
    EXPECT(s.served < s.most);
    print_message("    %lld requests, %lld of them large\n",
                  (long long)s.served, (long long)s.large);
    return 0;
}

static void a_large_request_is_served_in_its_place(void **state)
{
    (void)state;
    memset(&s, 0, sizeof(s));
    s.rounds = soak(ROUNDS);
    assert_int_equal(px_sem_init(&s.sem, PERMITS), 0);
    run_fibers(crowd, NULL);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_large_request_is_served_in_its_place),
};

PX_TEST_MAIN(tests)
