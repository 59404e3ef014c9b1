/* SPDX-License-Identifier: MIT */
/*
 * test_faults_threads.c - calls on other threads, posts from them and signals,
 * while the system refuses threads, descriptors and memory.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

#include "sweep.h"

int __real_pthread_create(pthread_t *out, const pthread_attr_t *attributes,
                          void *(*fn)(void *), void *arg);
int __real_pthread_join(pthread_t thread, void **result);

static int ended;

static px_fiber *start_one(px_fn fn, void *arg)
{
    px_fiber *fiber = NULL;
    int err;

    UNTIL_OK(err, px_spawn(&fiber, fn, arg), NOMEM, !fiber);
    return fiber;
}

/* --- px_offload ----------------------------------------------------------- */

struct blocking_call {
    pthread_t thread; /* that it ran on */
    int runs;
};

static int notes_its_thread(void *arg)
{
    struct blocking_call *call = arg;

    call->thread = pthread_self();
    return ++call->runs;
}

static int offloads(void *arg)
{
    struct blocking_call call = {.runs = 0};
    int value;

    (void)arg;
    UNTIL_OK(value, px_offload(notes_its_thread, &call),
             NOMEM | NO_THREAD | SYSTEM, call.runs == 0);
    HOLDS(value == 1 && call.runs == 1);
    HOLDS(!pthread_equal(call.thread, pthread_self()));
    ended++;
    return 0;
}

static int offloads_three(void *arg)
{
    px_fiber *fibers[3];

    (void)arg;
    ended = 0;
    for (int i = 0; i < 3; i++)
        fibers[i] = start_one(offloads, NULL);
    HOLDS(px_await_all(fibers, 3, NULL) == 0);
    HOLDS(ended == 3);
    return offloads(NULL);
}

static void a_blocking_call_runs_once_elsewhere_or_not_at_all(void **state)
{
    (void)state;
    sweep(&(struct workload){
        .body = offloads_three, .wakes = true, .options.offload_threads = 2});
}

static int offloads_without_threads(void *arg)
{
    static const struct fault no_threads = {CALL_pthread_create, EAGAIN, 1,
                                            FOR_EVER};
    struct blocking_call call = {.runs = 0};

    (void)arg;
    inject_arm(&no_threads, 1);
    for (int i = 0; i < 10; i++)
        HOLDS(px_offload(notes_its_thread, &call) == PX_EAGAIN);
    HOLDS(call.runs == 0);
    HOLDS(inject_count(CALL_pthread_create) == 10);
    inject_lift();
    HOLDS(px_offload(notes_its_thread, &call) == 1);
    /* With one at hand no other is needed. */
    inject_arm(&no_threads, 1);
    HOLDS(px_offload(notes_its_thread, &call) == 2);
    return 0;
}

static void without_a_thread_nothing_runs_inline(void **state)
{
    const struct workload workload = {.body = offloads_without_threads};

    (void)state;
    sweep_pass(&workload, NULL, 0);
    assert_log("");
}

enum { CALLS_AT_ONCE = 70 };

static sem_t let_go;

static int waits_to_be_let_go(void *arg)
{
    (void)arg;
    while (sem_wait(&let_go) != 0)
        ;
    return 0;
}

static int offloads_until_let_go(void *arg)
{
    return px_offload(waits_to_be_let_go, arg);
}

/* One thread for each processor, but for 8 to 64. */
static int offloads_on_many_processors(void *arg)
{
    px_fiber *fibers[CALLS_AT_ONCE];
    long cap = inject_processors < 8    ? 8
               : inject_processors > 64 ? 64
                                        : inject_processors;

    (void)arg;
    for (int i = 0; i < CALLS_AT_ONCE; i++)
        fibers[i] = start_one(offloads_until_let_go, NULL);
    HOLDS(inject_count(CALL_pthread_create) == cap);
    for (int i = 0; i < CALLS_AT_ONCE; i++)
        HOLDS(sem_post(&let_go) == 0);
    HOLDS(px_await_all(fibers, CALLS_AT_ONCE, NULL) == 0);
    return 0;
}

static void there_are_as_many_threads_as_processors(void **state)
{
    const struct workload workload = {.body = offloads_on_many_processors};
    const long processors[] = {-1, 1, 8, 9, 64, 65, 1000};

    (void)state;
    assert_int_equal(sem_init(&let_go, 0, 0), 0);
    for (size_t i = 0; i < sizeof(processors) / sizeof(processors[0]); i++) {
        inject_processors = processors[i];
        sweep_pass(&workload, NULL, 0);
    }
    inject_processors = 0;
    assert_int_equal(sem_destroy(&let_go), 0);
    assert_log("");
}

/* --- px_post -------------------------------------------------------------- */

enum { POSTS = 20 };

static pthread_t poster;
static px_waitgroup posted;

static int sleeps_and_reports(void *arg)
{
    (void)arg;
    HOLDS(px_sleep(PX_MSEC) == 0);
    ended++;
    return px_waitgroup_done(&posted);
}

static void *posts(void *loop)
{
    int err;

    for (int i = 0; i < POSTS; i++)
        UNTIL_OK(err, px_post(loop, sleeps_and_reports, NULL), NOMEM, true);
    (void)px_loop_unhold(loop);
    return NULL;
}

static int is_posted_to(void *arg)
{
    px_loop *loop = NULL;
    int err;

    (void)arg;
    ended = 0;
    (void)px_waitgroup_init(&posted, 2 * POSTS);
    UNTIL_OK(err, (loop = px_current_loop()) ? 0 : PX_EAGAIN, NO_THREAD, true);
    HOLDS(px_loop_hold(loop) == 0);
    HOLDS(__real_pthread_create(&poster, NULL, posts, loop) == 0);
    for (int i = 0; i < POSTS; i++)
        UNTIL_OK(err, px_post(loop, sleeps_and_reports, NULL), NOMEM, true);
    HOLDS(px_waitgroup_wait(&posted) == 0);
    HOLDS(ended == 2 * POSTS);
    return 0;
}

static void join_poster(void)
{
    (void)__real_pthread_join(poster, NULL);
}

static void what_is_posted_runs(void **state)
{
    (void)state;
    sweep(&(struct workload){
        .body = is_posted_to, .wakes = true, .tear_down = join_poster});
}

/* More fibers than there is room for timers, and no room to be had. */
static int posts_a_crowd(void *arg)
{
    px_loop *loop = px_current_loop();
    int err = 0;

    (void)arg;
    if (!loop)
        inject_lift();
    while (!loop)
        loop = px_current_loop();
    ended = 0;
    (void)px_waitgroup_init(&posted, 150);
    for (int i = 0; i < 150; i++)
        UNTIL_OK(err, px_post(loop, sleeps_and_reports, NULL), NOMEM, true);
    HOLDS(px_waitgroup_wait(&posted) == 0);
    HOLDS(ended == 150);
    return err;
}

static void a_crowd_without_room_for_timers_sleeps_all_the_same(void **state)
{
    const struct workload workload = {.body = posts_a_crowd, .wakes = true};
    struct fault fault = {CALL_posix_memalign, ENOMEM, 3, FOR_EVER};

    (void)state;
    sweep_pass(&workload, &fault, 1);
    assert_true(inject_hit());
    sweep(&workload);
}

/* --- Signals -------------------------------------------------------------- */

static sigset_t before, first_set, second_set;

static void block_signals(void)
{
    sigset_t both;

    (void)sigemptyset(&first_set);
    (void)sigaddset(&first_set, SIGUSR1);
    (void)sigemptyset(&second_set);
    (void)sigaddset(&second_set, SIGUSR2);
    (void)sigemptyset(&both);
    (void)sigaddset(&both, SIGUSR1);
    (void)sigaddset(&both, SIGUSR2);
    (void)pthread_sigmask(SIG_BLOCK, &both, &before);
}

static void unblock_signals(void)
{
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int waits_for_a_signal(void *set)
{
    int number;

    UNTIL_OK(number, px_wait_signal(set), NOMEM | SYSTEM | SETS_ERRNO, true);
    HOLDS(number == (set == &first_set ? SIGUSR1 : SIGUSR2));
    ended++;
    return 0;
}

static int signals(void *arg)
{
    px_fiber *fibers[2];

    (void)arg;
    ended = 0;
    fibers[0] = start_one(waits_for_a_signal, &first_set);
    fibers[1] = start_one(waits_for_a_signal, &second_set);
    (void)raise(SIGUSR2);
    HOLDS(px_await(fibers[1], NULL) == 0);
    (void)raise(SIGUSR1);
    HOLDS(px_await(fibers[0], NULL) == 0);
    HOLDS(ended == 2);
    /* What is pending comes at once. */
    (void)raise(SIGUSR1);
    return waits_for_a_signal(&first_set);
}

static void a_signal_is_not_lost(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = signals,
                             .set_up = block_signals,
                             .tear_down = unblock_signals});
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_blocking_call_runs_once_elsewhere_or_not_at_all),
    PX_TEST(without_a_thread_nothing_runs_inline),
    PX_TEST(there_are_as_many_threads_as_processors),
    PX_TEST(what_is_posted_runs),
    PX_TEST(a_crowd_without_room_for_timers_sleeps_all_the_same),
    PX_TEST(a_signal_is_not_lost),
};

PX_TEST_MAIN(tests)
