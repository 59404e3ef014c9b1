/* SPDX-License-Identifier: MIT */
/*
 * test_post.c - px_post() from any thread, px_current_loop(), and the holds
 * that keep an idle run waiting for posts.
 */
#define _GNU_SOURCE 1

#include "px_test_io.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int counts_calls(void *arg)
{
    ++*(int *)arg;
    return 0;
}

static int ups(void *arg)
{
    return px_sem_up(arg);
}

static void counts_reports(void *ctx)
{
    ++*(int *)ctx;
}

/* ---- a post is a new fiber ---- */

static int refusals(void *arg)
{
    px_loop *loop = px_current_loop();

    (void)arg;
    EXPECT(loop != NULL);
    EXPECT_EQ(px_post(loop, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_post(NULL, nothing, NULL), PX_EINVAL);
    EXPECT_EQ(px_loop_hold(NULL), PX_EINVAL);
    EXPECT_EQ(px_loop_unhold(NULL), PX_EINVAL);
    EXPECT_EQ(px_loop_unhold(loop), PX_EINVAL);
    EXPECT_EQ(px_loop_hold(loop), 0);
    EXPECT_EQ(px_loop_hold(loop), 0);
    EXPECT_EQ(px_loop_unhold(loop), 0);
    EXPECT_EQ(px_loop_unhold(loop), 0);
    EXPECT_EQ(px_loop_unhold(loop), PX_EINVAL);
    return 0;
}

static void NULL_and_an_unhold_without_a_hold_are_EINVAL(void **state)
{
    (void)state;
    check(refusals);
    assert_int_equal(px_post(NULL, nothing, NULL), PX_EINVAL);
    assert_int_equal(px_loop_hold(NULL), PX_EINVAL);
    assert_int_equal(px_loop_unhold(NULL), PX_EINVAL);
}

static int remembers_the_loop(void *arg)
{
    *(px_loop **)arg = px_current_loop();
    return 0;
}

static int the_loop(void *arg)
{
    px_loop *mine = px_current_loop(), *childs = NULL, *posted = NULL;

    (void)arg;
    EXPECT(mine != NULL);
    EXPECT(px_current_loop() == mine);
    start(remembers_the_loop, &childs);
    EXPECT(childs == mine);
    EXPECT_EQ(px_post(mine, remembers_the_loop, &posted), 0);
    settle();
    EXPECT(posted == mine);
    return 0;
}

static void
the_current_loop_is_one_for_all_fibers_and_none_off_fiber(void **state)
{
    (void)state;
    assert_null(px_current_loop());
    check(the_loop);
    assert_null(px_current_loop());
}

static int queued(void *arg)
{
    int calls = 0;

    (void)arg;
    EXPECT_EQ(px_post(px_current_loop(), counts_calls, &calls), 0);
    EXPECT_EQ(calls, 0); /* not eager */
    start(nothing, NULL);
    EXPECT_EQ(calls, 0);
    settle();
    EXPECT_EQ(calls, 1);
    return 0;
}

static void a_post_is_queued_even_from_the_loops_own_thread(void **state)
{
    (void)state;
    check(queued);
}

struct surroundings {
    px_fid id;
    px_nsec deadline;
    int check, detach;
    const char *name;
};

static int looks_around(void *arg)
{
    struct surroundings *s = arg;

    s->id = px_current_id();
    s->deadline = px_deadline();
    s->check = px_check();
    s->detach = px_detach(px_self());
    s->name = px_name(px_self());
    return -1; /* nobody asks */
}

static int posts_it(void *arg)
{
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    return px_post(px_current_loop(), looks_around, arg);
}

static int in_no_scope(void *arg)
{
    struct surroundings s = {0};

    (void)arg;
    EXPECT_EQ(px_with_timeout(0, posts_it, &s), 0);
    settle();
    EXPECT(s.id > 0);
    EXPECT_EQ(s.deadline, PX_FOREVER);
    EXPECT_EQ(s.check, 0);
    EXPECT_EQ(s.detach, PX_EINVAL);
    EXPECT(s.name && s.name[0] == '\0');
    return 0;
}

static void it_is_detached_and_in_no_scope_of_the_poster(void **state)
{
    (void)state;
    check(in_no_scope);
}

static int after_a_stop(void *arg)
{
    EXPECT_EQ(px_stop(), 0);
    return px_post(px_current_loop(), looks_around, arg);
}

static void the_scope_of_the_run_reaches_it(void **state)
{
    struct surroundings s = {0};

    (void)state;
    run_fibers(after_a_stop, &s);
    assert_int_equal(s.check, PX_ECANCELED);
}

static int parks_and_spawns(void *arg)
{
    int *calls = arg;

    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    start(counts_calls, calls);
    EXPECT_EQ(px_post(px_current_loop(), counts_calls, calls), 0);
    return 0;
}

static int posts_and_ends(void *arg)
{
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(px_post(px_current_loop(), parks_and_spawns, arg), 0);
    return 0;
}

static void the_run_waits_for_what_was_posted(void **state)
{
    int calls = 0;

    (void)state;
    run_fibers(posts_and_ends, &calls);
    assert_int_equal(calls, 6);
    assert_log("");
}

static int errno_stays(void *arg)
{
    px_loop *loop = px_current_loop();

    (void)arg;
    errno = 1234;
    EXPECT_EQ(px_post(loop, nothing, NULL), 0);
    EXPECT_EQ(px_loop_hold(loop), 0);
    EXPECT_EQ(px_loop_unhold(loop), 0);
    EXPECT_EQ(px_loop_unhold(loop), PX_EINVAL);
    EXPECT_EQ(errno, 1234);
    return 0;
}

static void errno_is_left_as_it_was(void **state)
{
    (void)state;
    check(errno_stays);
}

static int unholds_more_often_than_anybody_looks(void *arg)
{
    px_loop *loop = px_current_loop();
    px_sem posted = PX_SEM_INIT(0);
    px_nsec before = px_now();

    (void)arg;
    /* more wake-ups than there is room for */
    for (int i = 0; i < turns(100000); i++) {
        EXPECT_EQ(px_loop_hold(loop), 0);
        EXPECT_EQ(px_loop_unhold(loop), 0);
    }
    EXPECT_EQ(px_post(loop, ups, &posted), 0);
    EXPECT_EQ(px_sem_down(&posted), 0);
    EXPECT_EQ(px_sleep(PX_MSEC), 0);
    EXPECT(px_now() - before >= PX_MSEC);
    return 0;
}

static void a_hundred_thousand_wake_ups_are_one(void **state)
{
    (void)state;
    check_real(unholds_more_often_than_anybody_looks);
}

enum { HOLDERS = 4 };

static pthread_barrier_t together;

static void *holds_and_unholds(void *loop)
{
    intptr_t failed = 0;

    (void)pthread_barrier_wait(&together);
    for (int i = 0; i < turns(200000); i++)
        failed += px_loop_hold(loop) != 0 || px_loop_unhold(loop) != 0;
    return (void *)failed;
}

static int is_held_by_threads(void *arg)
{
    px_loop *loop = px_current_loop();
    pthread_t threads[HOLDERS];

    (void)arg;
    EXPECT_EQ(px_loop_hold(loop), 0);
    EXPECT_EQ(pthread_barrier_init(&together, NULL, HOLDERS), 0);
    for (int i = 0; i < HOLDERS; i++)
        EXPECT_EQ(pthread_create(&threads[i], NULL, holds_and_unholds, loop),
                  0);
    for (int i = 0; i < HOLDERS; i++) {
        void *failed = NULL;

        EXPECT_EQ(pthread_join(threads[i], &failed), 0);
        EXPECT_EQ((intptr_t)failed, 0);
    }
    EXPECT_EQ(pthread_barrier_destroy(&together), 0);
    EXPECT_EQ(px_loop_unhold(loop), 0);
    EXPECT_EQ(px_loop_unhold(loop), PX_EINVAL);
    return 0;
}

static void holds_of_threads_at_once_are_all_counted(void **state)
{
    (void)state;
    check(is_held_by_threads);
}

struct memo {
    px_loop *loop;
    int calls;
};

static int posts_from_a_pool_thread(void *arg)
{
    struct memo *memo = arg;

    return px_post(memo->loop, counts_calls, &memo->calls);
}

static int offloads_a_post(void *arg)
{
    struct memo memo = {.loop = px_current_loop()};

    (void)arg;
    EXPECT_EQ(px_offload(posts_from_a_pool_thread, &memo), 0);
    settle();
    EXPECT_EQ(memo.calls, 1);
    return 0;
}

static void a_pool_thread_may_post_to_the_loop_that_waits_for_it(void **state)
{
    (void)state;
    check(offloads_a_post);
}

struct rescue {
    px_loop *loop;
    px_sem sem;
    int reports;
};

static void posts_an_up(void *ctx)
{
    struct rescue *rescue = ctx;

    rescue->reports++;
    (void)px_post(rescue->loop, ups, &rescue->sem);
}

static int is_rescued(void *arg)
{
    struct rescue *rescue = arg;

    rescue->loop = px_current_loop();
    return px_sem_down(&rescue->sem) == 0 ? 42 : -1;
}

static void a_post_from_on_deadlock_ends_the_deadlock(void **state)
{
    struct rescue rescue = {.sem = PX_SEM_INIT(0)};
    px_run_options options = {.on_deadlock = posts_an_up, .ctx = &rescue};

    (void)state;
    assert_int_equal(run_fibers_with(options, 0, is_rescued, &rescue), 42);
    assert_int_equal(rescue.reports, 1);
}

/* ---- in the order of each thread ---- */

static void note_number(const char *who, int number)
{
    note("%s%d ", who, number);
}

static int first_note(void *arg)
{
    note_number(arg, 1);
    return 0;
}

static int second_note(void *arg)
{
    note_number(arg, 2);
    return 0;
}

static int third_note(void *arg)
{
    note_number(arg, 3);
    return 0;
}

static int posts_three(void *arg)
{
    static char who[] = "p";

    (void)arg;
    EXPECT_EQ(px_post(px_current_loop(), first_note, who), 0);
    EXPECT_EQ(px_post(px_current_loop(), second_note, who), 0);
    EXPECT_EQ(px_post(px_current_loop(), third_note, who), 0);
    return 0;
}

/* The order is the run queue's, which a seed would shuffle: so none here. */
static void posts_of_one_thread_start_in_their_order(void **state)
{
    (void)state;
    assert_int_equal(px_run(posts_three, NULL), 0);
    assert_log("p1 p2 p3 ");
}

/* ---- holds ---- */

struct idle {
    px_loop *loop;
    pthread_t thread;
    px_sem sem;
    int calls;
    atomic_bool run_has_ended;
    bool ended_early;
};

static void *posts_after_20ms(void *arg)
{
    struct idle *idle = arg;

    pause_ms(20);
    idle->ended_early = atomic_load(&idle->run_has_ended);
    if (!idle->ended_early) {
        (void)px_post(idle->loop, counts_calls, &idle->calls);
        (void)px_loop_unhold(idle->loop);
    }
    return NULL;
}

static int holds_and_ends(void *arg)
{
    struct idle *idle = arg;

    idle->loop = px_current_loop();
    EXPECT_EQ(px_loop_hold(idle->loop), 0);
    EXPECT_EQ(pthread_create(&idle->thread, NULL, posts_after_20ms, idle), 0);
    return 0;
}

static void a_held_run_waits_and_a_post_before_the_unhold_runs(void **state)
{
    struct idle idle = {.calls = 0};

    (void)state;
    run_fibers(holds_and_ends, &idle);
    atomic_store(&idle.run_has_ended, true);
    assert_int_equal(pthread_join(idle.thread, NULL), 0);
    assert_false(idle.ended_early);
    assert_int_equal(idle.calls, 1);
    assert_log("");
}

static void *unholds_twice(void *arg)
{
    struct idle *idle = arg;

    pause_ms(10);
    (void)px_loop_unhold(idle->loop);
    pause_ms(20);
    idle->ended_early = atomic_load(&idle->run_has_ended);
    if (!idle->ended_early)
        (void)px_loop_unhold(idle->loop);
    return NULL;
}

static int holds_twice(void *arg)
{
    struct idle *idle = arg;

    idle->loop = px_current_loop();
    EXPECT_EQ(px_loop_hold(idle->loop), 0);
    EXPECT_EQ(px_loop_hold(idle->loop), 0);
    EXPECT_EQ(pthread_create(&idle->thread, NULL, unholds_twice, idle), 0);
    return 0;
}

static void holds_count_and_the_last_unhold_ends_an_idle_run(void **state)
{
    struct idle idle = {.calls = 0};

    (void)state;
    run_fibers(holds_twice, &idle);
    atomic_store(&idle.run_has_ended, true);
    assert_int_equal(pthread_join(idle.thread, NULL), 0);
    assert_false(idle.ended_early);
    assert_log("");
}

static void *ups_after_20ms(void *arg)
{
    struct idle *idle = arg;

    pause_ms(20);
    (void)px_post(idle->loop, ups, &idle->sem);
    (void)px_loop_unhold(idle->loop);
    return NULL;
}

static int waits_held(void *arg)
{
    struct idle *idle = arg;
    int code;

    idle->loop = px_current_loop();
    EXPECT_EQ(px_loop_hold(idle->loop), 0);
    EXPECT_EQ(pthread_create(&idle->thread, NULL, ups_after_20ms, idle), 0);
    code = px_sem_down(&idle->sem);
    EXPECT_EQ(pthread_join(idle->thread, NULL), 0);
    return code;
}

static void a_held_run_is_not_deadlocked(void **state)
{
    struct idle idle = {.sem = PX_SEM_INIT(0)};
    int reports = 0;
    px_run_options options = {.on_deadlock = counts_reports, .ctx = &reports};

    (void)state;
    assert_int_equal(run_fibers_with(options, 0, waits_held, &idle), 0);
    assert_int_equal(reports, 0);
    assert_log("");
}

static void *only_unholds(void *arg)
{
    struct idle *idle = arg;

    pause_ms(20);
    (void)px_loop_unhold(idle->loop);
    return NULL;
}

static int waits_until_unheld(void *arg)
{
    struct idle *idle = arg;

    idle->loop = px_current_loop();
    EXPECT_EQ(px_loop_hold(idle->loop), 0);
    EXPECT_EQ(pthread_create(&idle->thread, NULL, only_unholds, idle), 0);
    EXPECT_EQ(px_sem_down(&idle->sem), PX_ESTALLED);
    EXPECT_EQ(pthread_join(idle->thread, NULL), 0);
    return 0;
}

static void with_the_last_hold_gone_a_deadlock_is_reported(void **state)
{
    struct idle idle = {.sem = PX_SEM_INIT(0)};
    int reports = 0;
    px_run_options options = {.on_deadlock = counts_reports, .ctx = &reports};

    (void)state;
    assert_int_equal(run_fibers_with(options, 0, waits_until_unheld, &idle),
                     PX_ESTALLED);
    assert_int_equal(reports, 1);
    assert_log("");
}

static int sleeps_held(void *arg)
{
    px_loop *loop = px_current_loop();

    (void)arg;
    EXPECT_EQ(px_loop_hold(loop), 0);
    EXPECT_EQ(px_sleep(60 * PX_MINUTE), 0);
    EXPECT_EQ(px_now(), 60 * PX_MINUTE);
    EXPECT_EQ(px_loop_unhold(loop), 0);
    return 0;
}

static void a_hold_does_not_stop_the_virtual_clock(void **state)
{
    (void)state;
    check(sleeps_held);
}

/* ---- two loops that post to each other ---- */

struct player {
    px_loop *loop;
    pthread_t thread;
    sem_t *ready;
};

struct ball {
    struct player players[2];
    int at, left, astray;
};

static int bounces(void *arg)
{
    struct ball *ball = arg;

    if (px_current_loop() != ball->players[ball->at].loop)
        ball->astray++;
    if (--ball->left > 0) {
        ball->at = !ball->at;
        return px_post(ball->players[ball->at].loop, bounces, ball);
    }
    for (int i = 0; i < 2; i++)
        EXPECT_EQ(px_loop_unhold(ball->players[i].loop), 0);
    return 0;
}

static int takes_part(void *arg)
{
    struct player *player = arg;

    player->loop = px_current_loop();
    EXPECT_EQ(px_loop_hold(player->loop), 0);
    return sem_post(player->ready);
}

static void *plays(void *arg)
{
    return px_run(takes_part, arg) == 0 ? arg : NULL;
}

static void two_loops_post_to_each_other(void **state)
{
    struct ball ball = {.left = scaled(20000, 1000)};
    sem_t ready;

    (void)state;
    assert_int_equal(sem_init(&ready, 0, 0), 0);
    for (int i = 0; i < 2; i++) {
        struct player *player = &ball.players[i];

        player->ready = &ready;
        assert_int_equal(pthread_create(&player->thread, NULL, plays, player),
                         0);
        while (sem_wait(&ready) != 0)
            ;
    }
    assert_int_equal(px_post(ball.players[0].loop, bounces, &ball), 0);
    for (int i = 0; i < 2; i++) {
        void *result;

        assert_int_equal(pthread_join(ball.players[i].thread, &result), 0);
        assert_ptr_equal(result, &ball.players[i]);
    }
    assert_int_equal(ball.left, 0);
    assert_int_equal(ball.astray, 0);
    assert_int_equal(sem_destroy(&ready), 0);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(NULL_and_an_unhold_without_a_hold_are_EINVAL),
    PX_TEST(the_current_loop_is_one_for_all_fibers_and_none_off_fiber),
    PX_TEST(a_post_is_queued_even_from_the_loops_own_thread),
    PX_TEST(it_is_detached_and_in_no_scope_of_the_poster),
    PX_TEST(the_scope_of_the_run_reaches_it),
    PX_TEST(the_run_waits_for_what_was_posted),
    PX_TEST(errno_is_left_as_it_was),
    PX_TEST(a_hundred_thousand_wake_ups_are_one),
    PX_TEST(holds_of_threads_at_once_are_all_counted),
    PX_TEST(a_pool_thread_may_post_to_the_loop_that_waits_for_it),
    PX_TEST(a_post_from_on_deadlock_ends_the_deadlock),
    PX_TEST(posts_of_one_thread_start_in_their_order),
    PX_TEST(a_held_run_waits_and_a_post_before_the_unhold_runs),
    PX_TEST(holds_count_and_the_last_unhold_ends_an_idle_run),
    PX_TEST(a_held_run_is_not_deadlocked),
    PX_TEST(with_the_last_hold_gone_a_deadlock_is_reported),
    PX_TEST(a_hold_does_not_stop_the_virtual_clock),
    PX_TEST(two_loops_post_to_each_other),
};

PX_TEST_MAIN(tests)
