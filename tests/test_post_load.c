/* SPDX-License-Identifier: MIT */
/*
 * test_post_load.c - px_post() from eight threads at once, 100,000 times each,
 * into a loop that waits and into one that never does. At most 1,000 posted
 * fibers are unfinished at a time; each thread's last act is its unhold.
 */
#define _GNU_SOURCE 1

#include "px_test_io.h"

#include <pthread.h>
#include <semaphore.h>

enum { THREADS = 8, UNFINISHED = 1000 };

struct office {
    px_loop *loop;
    long finished;
};

struct poster {
    struct office *office;
    pthread_t thread;
    sem_t credit; /* places for posts that have not finished */
    int posts, last, out_of_order, failed;
};

struct letter {
    struct poster *poster;
    int number;
};

static int arrives(void *arg)
{
    struct letter *letter = arg;
    struct poster *poster = letter->poster;

    if (letter->number != poster->last + 1)
        poster->out_of_order++;
    poster->last = letter->number;
    poster->office->finished++;
    free(letter);
    (void)sem_post(&poster->credit);
    return 0;
}

static void *posts_them(void *arg)
{
    struct poster *poster = arg;
    struct office *office = poster->office;

    for (int i = 0; i < poster->posts; i++) {
        struct letter *letter = malloc(sizeof(*letter));

        while (sem_wait(&poster->credit) != 0)
            ;
        if (letter)
            *letter = (struct letter){poster, i + 1};
        if (!letter || px_post(office->loop, arrives, letter) != 0) {
            poster->failed++;
            free(letter);
            (void)sem_post(&poster->credit);
        }
    }
    (void)px_loop_unhold(office->loop);
    return NULL;
}

struct desk {
    struct office office;
    struct poster posters[THREADS];
    bool busy;
};

/* A seed shuffles what it finds in the queue: a few are enough for that. */
static int posts_of_each(void)
{
    return getenv("PX_TEST_SEED") ? 5000 : scaled(100000, 5000);
}

static long all_posts(void)
{
    return (long)THREADS * posts_of_each();
}

static int opens(void *arg)
{
    struct desk *desk = arg;

    desk->office.loop = px_current_loop();
    for (int i = 0; i < THREADS; i++) {
        desk->posters[i].office = &desk->office;
        desk->posters[i].posts = posts_of_each();
        EXPECT_EQ(sem_init(&desk->posters[i].credit, 0, UNFINISHED / THREADS),
                  0);
        EXPECT_EQ(px_loop_hold(desk->office.loop), 0);
        EXPECT_EQ(pthread_create(&desk->posters[i].thread, NULL, posts_them,
                                 &desk->posters[i]),
                  0);
    }
    while (desk->busy && desk->office.finished < all_posts())
        EXPECT_EQ(px_yield(), 0);
    return 0; /* while it is held, the run goes on without its main fiber */
}

static void run_the_office(bool busy)
{
    static struct desk desk;
    int failed = 0, out_of_order = 0;

    memset(&desk, 0, sizeof(desk));
    desk.busy = busy;
    run_fibers(opens, &desk);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(desk.posters[i].thread, NULL), 0);
        assert_int_equal(sem_destroy(&desk.posters[i].credit), 0);
        failed += desk.posters[i].failed;
        out_of_order += desk.posters[i].out_of_order;
    }
    assert_int_equal(failed, 0);
    assert_int_equal(desk.office.finished, all_posts());
    if (!getenv("PX_TEST_SEED"))
        assert_int_equal(out_of_order, 0);
    assert_log("");
}

static void eight_threads_post_into_an_idle_loop_and_none_is_lost(void **state)
{
    (void)state;
    run_the_office(false);
}

static void eight_threads_post_into_a_busy_loop_and_none_is_lost(void **state)
{
    (void)state;
    run_the_office(true);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(eight_threads_post_into_an_idle_loop_and_none_is_lost),
    PX_TEST(eight_threads_post_into_a_busy_loop_and_none_is_lost),
};

PX_TEST_MAIN(tests)
