/* SPDX-License-Identifier: MIT */
/*
 * test_scheduler.c - the run and its fibers: what a run returns, who runs when,
 * ids, and many of them.
 *
 * Everything here holds for a shuffled run queue too; the order of the queue
 * itself is in test_scheduler_order.c.
 */
#include <limits.h>
#include <pthread.h>

#include "support/px_scale.h"
#include "support/px_test.h"

static int times_called;

static int nothing(void *arg)
{
    (void)arg;
    times_called++;
    return 0;
}

static int give(void *arg)
{
    times_called++;
    return *(int *)arg;
}

static int sleep_a_while(void *arg)
{
    (void)arg;
    return px_sleep(PX_SEC);
}

/* --- What a run returns --------------------------------------------------- */

static void a_run_returns_what_its_body_does(void **state)
{
    static const int values[] = {0,  1,   7,       INT_MAX,      PX_ETIMEDOUT,
                                 -1, -77, INT_MIN, PX_ECANCELED, PX_EBUSY};

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        int value = values[i];

        assert_int_equal(px_run(give, &value), value);
        assert_int_equal(px_run_with(NULL, give, &value), value);
    }
}

static void a_run_without_a_body_does_not_start(void **state)
{
    (void)state;
    assert_int_equal(px_run(NULL, NULL), PX_EINVAL);
    assert_int_equal(px_run_with(NULL, NULL, NULL), PX_EINVAL);
}

static int fail_later(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    return -1234;
}

static int five(void *arg)
{
    (void)arg;
    start(fail_later, NULL);
    return 5;
}

static void a_run_returns_mains_value_not_a_childs(void **state)
{
    (void)state;
    assert_int_equal(
        run_fibers_with((px_run_options){.stack_size = 0}, 0, five, NULL), 5);
}

static int note_later(void *arg)
{
    EXPECT_EQ(px_sleep(*(px_nsec *)arg), 0);
    note("%lld ", (long long)px_now());
    return 0;
}

static int leave_children_behind(void *arg)
{
    static px_nsec naps[] = {30, 10, 20};

    (void)arg;
    for (int i = 0; i < 3; i++)
        start(note_later, &naps[i]);
    note("main ends; ");
    return 0;
}

static void a_run_waits_for_detached_fibers(void **state)
{
    (void)state;
    run_fibers(leave_children_behind, NULL);
    assert_log("main ends; 10 20 30 ");
}

static int run_again(void *arg)
{
    static int value = 3;

    EXPECT_EQ(px_run(give, &value), PX_EBUSY);
    EXPECT_EQ(px_run_with(NULL, give, &value), PX_EBUSY);
    EXPECT_EQ(px_run(NULL, NULL), PX_EINVAL); /* an argument comes first */
    EXPECT_EQ(px_yield(), 0);
    EXPECT_EQ(px_current_id(), arg ? 1 : 0);
    return 0;
}

static int run_again_everywhere(void *arg)
{
    (void)run_again(NULL);
    start(run_again, arg);
    return 0;
}

static void a_run_inside_a_run_is_busy(void **state)
{
    int child = 1;

    (void)state;
    times_called = 0;
    run_fibers(run_again_everywhere, &child);
    assert_int_equal(times_called, 0);
    assert_log("");
}

static int spawn_two(void *arg)
{
    (void)arg;
    note("%lld:", (long long)px_current_id());
    for (int i = 0; i < 2; i++) {
        px_fiber *fiber = start_handle(nothing, NULL);

        note("%lld ", (long long)px_id(fiber));
    }
    return *(int *)arg;
}

static void runs_follow_each_other_and_number_anew(void **state)
{
    int value = 0;
    int failure = -9;

    (void)state;
    assert_int_equal(px_run(spawn_two, &value), 0);
    assert_int_equal(px_run(spawn_two, &failure), -9);
    assert_int_equal(px_run(spawn_two, &value), 0);
    assert_log("0:1 2 0:1 2 0:1 2 ");
}

static void a_run_leaves_errno_as_it_was(void **state)
{
    int value = 0;

    (void)state;
    errno = 4242;
    assert_int_equal(px_run(spawn_two, &value), 0);
    assert_int_equal(errno, 4242);
    assert_int_equal(px_run(NULL, NULL), PX_EINVAL);
    assert_int_equal(errno, 4242);
}

/* --- Spawning ------------------------------------------------------------- */

static int two_steps(void *arg)
{
    const char *name = arg;

    note("%s1 ", name);
    settle();
    note("%s2 ", name);
    return 0;
}

static int spawn_one(void *arg)
{
    px_fiber *fiber;

    (void)arg;
    fiber = start_handle(two_steps, "c");
    note("m1 ");
    EXPECT_EQ(px_await(fiber, NULL), 0);
    note("m2 ");
    return 0;
}

static void S_run_2_a_spawned_fiber_runs_at_once_until_it_parks(void **state)
{
    (void)state;
    run_fibers(spawn_one, NULL);
    assert_log("c1 m1 c2 m2 ");
}

static int at_once(void *arg)
{
    note("%s ", (const char *)arg);
    return 0;
}

static int spawn_at_once(void *arg)
{
    (void)arg;
    start(at_once, "a");
    note("1 ");
    start(at_once, "b");
    note("2 ");
    return 0;
}

static void a_fiber_that_never_parks_has_ended_when_spawn_returns(void **state)
{
    (void)state;
    run_fibers(spawn_at_once, NULL);
    assert_log("a 1 b 2 ");
}

static int mark(void *arg)
{
    *(int *)arg = 1;
    return 0;
}

static int spawn_ahead_of_others(void *arg)
{
    px_spawn_options queued;
    int others[20] = {0};
    int ran = 0;

    (void)arg;
    memset(&queued, 0, sizeof(queued));
    queued.queued = true;
    for (int i = 0; i < 20; i++)
        EXPECT_EQ(px_spawn_with(NULL, &queued, mark, &others[i]), 0);
    for (int i = 0; i < 20; i++)
        start(two_steps, "x");
    for (int i = 0; i < 20; i++)
        ran += others[i];
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(px_sleep(10), 0);
    for (int i = 0; i < 20; i++)
        ran += others[i];
    EXPECT_EQ(ran, 20);
    log_clear();
    return 0;
}

static void the_spawner_goes_on_ahead_of_the_run_queue(void **state)
{
    (void)state;
    run_fibers(spawn_ahead_of_others, NULL);
    assert_log("");
}

static int spawn_deeper(void *arg)
{
    int *depth = arg;
    int mine = (*depth)++;

    note("%d ", mine);
    if (mine < 5)
        start(spawn_deeper, depth);
    note("/%d ", mine);
    if (mine % 2)
        settle();
    return 0;
}

static void S_run_2_a_child_may_spawn_before_it_parks(void **state)
{
    int depth = 0;

    (void)state;
    run_fibers(spawn_deeper, &depth);
    assert_log("0 1 2 3 4 5 /5 /4 /3 /2 /1 /0 ");
}

static int spawn_chain(void *arg)
{
    int *left = arg;

    if (--*left > 0)
        start(spawn_chain, left);
    settle();
    return 0;
}

static void eager_starts_nest_a_thousand_deep(void **state)
{
    int left = fibers(1000);

    (void)state;
    run_fibers(spawn_chain, &left);
    assert_int_equal(left, 0);
    assert_log("");
}

static px_fiber *stored;

static int look_for_handle(void *arg)
{
    (void)arg;
    EXPECT(stored == px_self());
    EXPECT_EQ(px_id(stored), px_current_id());
    return 0;
}

static int store_handle(void *arg)
{
    (void)arg;
    stored = NULL;
    EXPECT_EQ(px_spawn(&stored, look_for_handle, NULL), 0);
    EXPECT(stored != NULL);
    EXPECT_EQ(px_await(stored, NULL), 0);
    return 0;
}

static void the_handle_is_stored_before_the_child_runs(void **state)
{
    (void)state;
    run_fibers(store_handle, NULL);
    assert_log("");
}

static int spawn_nothing(void *arg)
{
    px_fiber *const untouched = (px_fiber *)(void *)&times_called;
    px_fiber *fiber = untouched;

    (void)arg;
    EXPECT_EQ(px_spawn(&fiber, NULL, NULL), PX_EINVAL);
    EXPECT(fiber == untouched);
    EXPECT_EQ(px_spawn_with(&fiber, NULL, NULL, NULL), PX_EINVAL);
    EXPECT(fiber == untouched);
    EXPECT_EQ(px_spawn(NULL, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_spawn(&fiber, nothing, NULL), 0);
    EXPECT(fiber != untouched);
    EXPECT_EQ(px_id(fiber), 1); /* a failed spawn has used no id */
    return 0;
}

static void a_spawn_without_a_body_starts_nothing(void **state)
{
    (void)state;
    run_fibers(spawn_nothing, NULL);
    assert_log("");
}

static int report_scope(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    EXPECT_EQ(px_check(), 0);
    EXPECT_EQ(px_sleep(10 * PX_SEC), 0);
    note("child slept until %lld ms; ", (long long)(px_now() / PX_MSEC));
    return 0;
}

static int spawn_within(void *arg)
{
    (void)arg;
    start(report_scope, NULL);
    return px_sleep(10 * PX_SEC);
}

static int spawn_within_a_timeout(void *arg)
{
    (void)arg;
    note("%s; ", err(px_with_timeout(20 * PX_MSEC, spawn_within, NULL)));
    return 0;
}

static void a_spawned_fiber_is_outside_its_spawners_scopes(void **state)
{
    (void)state;
    run_fibers(spawn_within_a_timeout, NULL);
    assert_log("timedout; child slept until 10000 ms; ");
}

static int spawn_in_fired_scope(void *arg)
{
    px_spawn_options queued;
    px_scope scope;

    (void)arg;
    memset(&queued, 0, sizeof(queued));
    queued.queued = true;
    EXPECT_EQ(px_scope_enter(&scope, 0), 0);
    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    start(report_scope, NULL);
    EXPECT_EQ(px_spawn_with(NULL, &queued, report_scope, NULL), 0);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

static void spawning_is_allowed_in_a_fired_scope(void **state)
{
    (void)state;
    run_fibers(spawn_in_fired_scope, NULL);
    assert_log("child slept until 10000 ms; child slept until 10000 ms; ");
}

static int begin_cancelled(void *arg)
{
    (void)arg;
    note("began; ");
    note("%s; ", err(px_sleep(PX_SEC)));
    return 17;
}

static int cancel_before_it_began(void *arg)
{
    px_spawn_options queued;
    px_fiber *fiber = NULL;
    int value = 0;

    (void)arg;
    memset(&queued, 0, sizeof(queued));
    queued.queued = true;
    EXPECT_EQ(px_spawn_with(&fiber, &queued, begin_cancelled, NULL), 0);
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, 17);
    EXPECT_EQ(px_now(), 0);
    return 0;
}

static void a_fiber_cancelled_before_it_began_runs_its_body(void **state)
{
    (void)state;
    run_fibers(cancel_before_it_began, NULL);
    assert_log("began; canceled; ");
}

static int await_parent(void *arg)
{
    int value = 0;

    EXPECT_EQ(px_await(arg, &value), 0);
    note("parent gave %d", value);
    return 0;
}

static int spawn_awaiter(void *arg)
{
    (void)arg;
    start(await_parent, px_self());
    settle();
    return 8;
}

static int spawn_parent(void *arg)
{
    px_fiber *fiber;

    (void)arg;
    fiber = start_handle(spawn_awaiter, NULL);
    EXPECT(fiber != NULL);
    return 0;
}

static void a_child_may_await_its_spawner(void **state)
{
    (void)state;
    run_fibers(spawn_parent, NULL);
    assert_log("parent gave 8");
}

/* --- Ids ------------------------------------------------------------------ */

static int see_ids(void *arg)
{
    px_mutex lock = PX_MUTEX_INIT;
    px_fiber *fiber;

    (void)arg;
    EXPECT_EQ(px_mutex_lock(&lock), 0);
    EXPECT_EQ(px_mutex_owner(&lock), 0);
    EXPECT_EQ(px_mutex_unlock(&lock), 0);
    EXPECT_EQ(px_current_id(), 0);
    EXPECT_EQ(px_id(px_self()), 0);
    fiber = start_handle(nothing, NULL);
    EXPECT_EQ(px_id(fiber), 1);
    return 0;
}

static void S_run_1_main_is_fiber_0_and_the_first_child_1(void **state)
{
    (void)state;
    run_fibers(see_ids, NULL);
    assert_log("");
}

static int note_id(void *arg)
{
    *(px_fid *)arg = px_current_id();
    return 0;
}

static int spawn_a_hundred(void *arg)
{
    px_fid id = -7;

    (void)arg;
    for (int i = 1; i <= 100; i++) {
        start(note_id, &id);
        EXPECT_EQ(id, i);
    }
    return 0;
}

static void S_run_6_ids_are_not_reused_within_a_run(void **state)
{
    (void)state;
    run_fibers(spawn_a_hundred, NULL);
    assert_log("");
}

static void S_run_9_ids_of_nothing_are_no_ids(void **state)
{
    (void)state;
    assert_true(px_id(NULL) == PX_NO_FIBER);
    assert_true(px_current_id() == PX_NO_FIBER);
    assert_true(PX_NO_FIBER == -1);
    assert_null(px_self());
    assert_false(px_is_done(NULL));
}

/* --- Bodies that return inside scopes ------------------------------------- */

static int return_inside(void *arg)
{
    px_scope **scopes = arg;

    EXPECT_EQ(px_scope_enter(scopes[0], 10 * PX_MSEC), 0);
    EXPECT_EQ(px_scope_enter(scopes[1], 5 * PX_MSEC), 0);
    settle(); /* parks, so that a timer is armed */
    return 0;
}

static int outlive_scopes(void *arg)
{
    px_scope *scopes[2];
    px_fiber *fiber;

    (void)arg;
    for (int i = 0; i < 2; i++)
        scopes[i] = malloc(sizeof(px_scope));
    fiber = start_handle(return_inside, scopes);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    for (int i = 0; i < 2; i++) {
        memset(scopes[i], 0xff, sizeof(px_scope));
        free(scopes[i]);
    }
    EXPECT_EQ(px_stop(), 0);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ECANCELED);
    return 0;
}

static void scopes_a_body_returned_inside_of_are_never_read_again(void **state)
{
    (void)state;
    run_fibers(outlive_scopes, NULL);
    assert_log("");
}

static int main_returns_inside(void *arg)
{
    px_scope scope;

    (void)arg;
    start(sleep_a_while, NULL);
    EXPECT_EQ(px_scope_enter(&scope, 10 * PX_MSEC), 0);
    settle();
    return 3;
}

static void main_may_return_inside_a_scope(void **state)
{
    (void)state;
    assert_int_equal(run_fibers_with((px_run_options){.stack_size = 0}, 0,
                                     main_returns_inside, NULL),
                     3);
    assert_log("");
}

/* --- Many ----------------------------------------------------------------- */

struct crowd {
    px_sem gate;
    long passed;
};

static int pass(void *arg)
{
    struct crowd *crowd = arg;

    EXPECT_EQ(px_sem_down(&crowd->gate), 0);
    crowd->passed++;
    return 0;
}

static int spawn_ten_thousand(void *arg)
{
    struct crowd crowd = {PX_SEM_INIT(0), 0};
    int n = fibers(10000);

    (void)arg;
    for (int i = 0; i < n; i++)
        start(pass, &crowd);
    EXPECT_EQ(px_sem_waiters(&crowd.gate), n);
    EXPECT_EQ(crowd.passed, 0);
    EXPECT_EQ(px_sem_up_n(&crowd.gate, n), 0);
    settle();
    EXPECT_EQ(crowd.passed, n);
    return 0;
}

static void ten_thousand_fibers_park_and_go_on(void **state)
{
    (void)state;
    run_fibers(spawn_ten_thousand, NULL);
    assert_log("");
}

static int be_cancelled(void *arg)
{
    struct crowd *crowd = arg;

    EXPECT_EQ(px_sem_down(&crowd->gate), PX_ECANCELED);
    crowd->passed++;
    return 0;
}

static int spawn_forty_thousand(void *arg)
{
    struct crowd crowd = {PX_SEM_INIT(0), 0};
    px_fiber **all = arg;
    int wanted = fibers(40000);
    int n = 0;
    int error = 0;

    while (n < wanted && (error = px_spawn(&all[n], be_cancelled, &crowd)) == 0)
        n++;
    if (error)
        EXPECT_EQ(error, PX_ENOMEM);
    EXPECT(n >= (wanted < 1000 ? wanted : 1000));
    EXPECT_EQ(px_sem_waiters(&crowd.gate), n);
    for (int i = 0; i < n; i++)
        EXPECT_EQ(px_cancel_and_await(all[i], NULL), 0);
    EXPECT_EQ(crowd.passed, n);
    EXPECT_EQ(px_sem_waiters(&crowd.gate), 0);
    return 0;
}

static void R145_forty_thousand_parked_fibers_fit_or_are_refused(void **state)
{
    px_fiber **all = calloc(40000, sizeof(px_fiber *));

    (void)state;
    assert_non_null(all);
    run_fibers(spawn_forty_thousand, all);
    free(all);
    assert_log("");
}

static int end_unawaited(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++)
        (void)start_handle(i % 2 ? nothing : sleep_a_while, NULL);
    return 0;
}

static void R98_a_thousand_fibers_never_awaited_are_reclaimed(void **state)
{
    (void)state;
    run_fibers(end_unawaited, NULL); /* a leak checker looks at the rest */
    assert_log("");
}

/* --- A thread's lock is the thread's -------------------------------------- */

static pthread_mutex_t thread_lock = PTHREAD_MUTEX_INITIALIZER;

static int try_thread_lock(void *arg)
{
    (void)arg;
    return pthread_mutex_trylock(&thread_lock);
}

static int hold_thread_lock(void *arg)
{
    px_spawn_options queued;
    px_fiber *fiber = NULL;
    int value = 0;

    (void)arg;
    memset(&queued, 0, sizeof(queued));
    queued.queued = true;
    EXPECT_EQ(px_spawn_with(&fiber, &queued, try_thread_lock, NULL), 0);
    EXPECT_EQ(pthread_mutex_trylock(&thread_lock), 0);
    EXPECT_EQ(px_await(fiber, &value), 0);
    EXPECT_EQ(value, EBUSY);
    EXPECT_EQ(pthread_mutex_unlock(&thread_lock), 0);
    return 0;
}

static void R66_fibers_of_one_thread_meet_at_a_threads_lock(void **state)
{
    (void)state;
    run_fibers(hold_thread_lock, NULL);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_run_returns_what_its_body_does),
    PX_TEST(a_run_without_a_body_does_not_start),
    PX_TEST(a_run_returns_mains_value_not_a_childs),
    PX_TEST(a_run_waits_for_detached_fibers),
    PX_TEST(a_run_inside_a_run_is_busy),
    PX_TEST(runs_follow_each_other_and_number_anew),
    PX_TEST(a_run_leaves_errno_as_it_was),
    PX_TEST(S_run_2_a_spawned_fiber_runs_at_once_until_it_parks),
    PX_TEST(a_fiber_that_never_parks_has_ended_when_spawn_returns),
    PX_TEST(the_spawner_goes_on_ahead_of_the_run_queue),
    PX_TEST(S_run_2_a_child_may_spawn_before_it_parks),
    PX_TEST(eager_starts_nest_a_thousand_deep),
    PX_TEST(the_handle_is_stored_before_the_child_runs),
    PX_TEST(a_spawn_without_a_body_starts_nothing),
    PX_TEST(a_spawned_fiber_is_outside_its_spawners_scopes),
    PX_TEST(spawning_is_allowed_in_a_fired_scope),
    PX_TEST(a_fiber_cancelled_before_it_began_runs_its_body),
    PX_TEST(a_child_may_await_its_spawner),
    PX_TEST(S_run_1_main_is_fiber_0_and_the_first_child_1),
    PX_TEST(S_run_6_ids_are_not_reused_within_a_run),
    PX_TEST(S_run_9_ids_of_nothing_are_no_ids),
    PX_TEST(scopes_a_body_returned_inside_of_are_never_read_again),
    PX_TEST(main_may_return_inside_a_scope),
    PX_TEST(ten_thousand_fibers_park_and_go_on),
    PX_TEST(R145_forty_thousand_parked_fibers_fit_or_are_refused),
    PX_TEST(R98_a_thousand_fibers_never_awaited_are_reclaimed),
    PX_TEST(R66_fibers_of_one_thread_meet_at_a_threads_lock),
};

PX_TEST_MAIN(tests)
