/* SPDX-License-Identifier: MIT */
/*
 * test_no_calls.c - giving back, waking and cancelling ask the system for
 * nothing: so they can not fail, wherever clean-up calls them.
 */
#include <signal.h>

#include "px_test_io.h"
#include "sweep.h"

/* Expect that it is 0, and that no call was made. */
#define SILENT(call)                                                           \
    do {                                                                       \
        long before_ = inject_total();                                         \
        int result_ = (call);                                                  \
                                                                               \
        EXPECT_EQ(inject_total() - before_, 0);                                \
        EXPECT_EQ(result_, 0);                                                 \
    } while (0)

/* The same of what has to know the time, which can not fail. */
#define LOOKS_AT_THE_CLOCK(call)                                               \
    do {                                                                       \
        long looks_ = inject_count(CALL_clock_gettime);                        \
        long others_ = inject_total() - looks_;                                \
        int result_ = (call);                                                  \
                                                                               \
        looks_ = inject_count(CALL_clock_gettime);                             \
        EXPECT_EQ(inject_total() - looks_ - others_, 0);                       \
        EXPECT_EQ(result_, 0);                                                 \
    } while (0)

enum { WAITERS = 9 };

/* A fiber parked in some way, inside a scope with a deadline or none. */
struct waiting_fiber {
    int (*wait)(void *object);
    void *object;
    px_nsec timeout;
    px_scope scope;
    px_fiber *fiber;
    int result;
};

static int waits(void *arg)
{
    struct waiting_fiber *self = arg;

    EXPECT_EQ(px_scope_enter(&self->scope, self->timeout), 0);
    self->result = self->wait(self->object);
    SILENT(px_scope_leave(&self->scope) & 0);
    return 0;
}

static void park_all(struct waiting_fiber all[static WAITERS],
                     int (*wait)(void *), void *object)
{
    for (int i = 0; i < WAITERS; i++) {
        all[i] =
            (struct waiting_fiber){.wait = wait,
                                   .object = object,
                                   .timeout = i % 2 ? PX_SEC * i : PX_FOREVER};
        all[i].fiber = start_handle(waits, &all[i]);
    }
}

static void await_all(struct waiting_fiber all[static WAITERS], int ok)
{
    int succeeded = 0;

    for (int i = 0; i < WAITERS; i++) {
        EXPECT_EQ(px_await(all[i].fiber, NULL), 0);
        succeeded += all[i].result == 0;
    }
    EXPECT_EQ(succeeded, ok);
}

/* End waits in every way that another fiber can: five of nine. */
static void interrupt_five(struct waiting_fiber all[static WAITERS])
{
    SILENT(px_cancel(all[0].fiber));
    SILENT(px_cancel(all[1].fiber));
    SILENT(px_scope_cancel(&all[2].scope));
    SILENT(px_scope_cancel(&all[3].scope));
    LOOKS_AT_THE_CLOCK(px_scope_set_deadline(&all[4].scope, INT64_MIN));
    LOOKS_AT_THE_CLOCK(
        px_scope_set_deadline(&all[5].scope, px_now() + 30 * PX_SEC));
    SILENT(px_scope_shield(&all[6].scope, true));
    SILENT(px_scope_shield(&all[6].scope, false));
    SILENT(px_cancel(all[0].fiber));
}

static int sem_down(void *sem)
{
    return px_sem_down(sem);
}

static int sem_wait_available(void *sem)
{
    return px_sem_wait_available(sem);
}

static int semaphores(void *arg)
{
    struct waiting_fiber all[WAITERS];
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    park_all(all, sem_down, &sem);
    interrupt_five(all);
    SILENT(px_sem_up(&sem));
    SILENT(px_sem_adjust(&sem, 1));
    SILENT(px_sem_adjust(&sem, -1));
    SILENT(px_sem_adjust(&sem, 2));
    SILENT(px_sem_up_n(&sem, 1));
    await_all(all, 4);
    SILENT(px_sem_up(&sem));
    SILENT(px_sem_try_down(&sem));
    SILENT(px_sem_destroy(&sem));

    EXPECT_EQ(px_sem_init_bounded(&sem, 4), 0);
    EXPECT_EQ(px_sem_down_n(&sem, 4), 0);
    park_all(all, sem_wait_available, &sem);
    interrupt_five(all);
    EXPECT_EQ(px_sem_remove_waiter(&sem, px_id(all[5].fiber)), 1);
    SILENT(px_cancel(all[5].fiber));
    SILENT(px_sem_set_limit(&sem, 3));
    SILENT(px_sem_set_limit(&sem, 5));
    SILENT(px_sem_up(&sem));
    SILENT(px_sem_close(&sem));
    await_all(all, 3);
    SILENT(px_sem_destroy(&sem));
    return 0;
}

static int mutex_lock(void *mutex)
{
    int err = px_mutex_lock(mutex);

    if (err == 0)
        SILENT(px_mutex_unlock(mutex));
    return err;
}

static int mutexes(void *arg)
{
    struct waiting_fiber all[WAITERS];
    px_mutex mutex = PX_MUTEX_INIT;

    (void)arg;
    SILENT(px_mutex_lock(&mutex));
    park_all(all, mutex_lock, &mutex);
    interrupt_five(all);
    SILENT(px_mutex_unlock(&mutex));
    await_all(all, 4);
    SILENT(px_mutex_try_lock(&mutex));
    SILENT(px_mutex_unlock(&mutex));
    SILENT(px_mutex_destroy(&mutex));
    return 0;
}

static int waitgroup_wait(void *wg)
{
    return px_waitgroup_wait(wg);
}

static int waitgroups(void *arg)
{
    struct waiting_fiber all[WAITERS];
    px_waitgroup wg = PX_WAITGROUP_INIT(1);

    (void)arg;
    park_all(all, waitgroup_wait, &wg);
    interrupt_five(all);
    SILENT(px_waitgroup_add(&wg, 1));
    SILENT(px_waitgroup_done(&wg));
    SILENT(px_waitgroup_done(&wg));
    await_all(all, 4);
    SILENT(px_waitgroup_destroy(&wg));
    return 0;
}

static int sleep_long(void *arg)
{
    (void)arg;
    return px_sleep(PX_FOREVER);
}

static int wait_readable(void *fd)
{
    return px_wait_fd(*(int *)fd, PX_READABLE) > 0 ? 0 : -1;
}

static int wait_for_a_signal(void *arg)
{
    sigset_t set;

    (void)arg;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    return px_wait_signal(&set);
}

static int sleeps_and_descriptors(void *arg)
{
    struct waiting_fiber all[WAITERS];
    int ends[2];

    (void)arg;
    park_all(all, sleep_long, NULL);
    interrupt_five(all);
    for (int i = 5; i < WAITERS; i++)
        SILENT(px_cancel(all[i].fiber));
    await_all(all, 0);

    park_all(all, wait_for_a_signal, NULL);
    interrupt_five(all);
    for (int i = 5; i < WAITERS; i++)
        SILENT(px_cancel(all[i].fiber));
    await_all(all, 0);

    open_pipe(ends, O_NONBLOCK);
    park_all(all, wait_readable, &ends[0]);
    interrupt_five(all);
    put(ends[1], 'x');
    await_all(all, 4);
    EXPECT_EQ(px_close(ends[0]), 0);
    EXPECT_EQ(px_close(ends[1]), 0);
    return 0;
}

static int child(void *gate)
{
    return px_sem_down(gate);
}

static int spawns_a_child(void *group)
{
    return px_group_spawn(group, sleep_long, NULL);
}

static int groups(void *arg)
{
    px_group group, second;
    px_sem gate = PX_SEM_INIT(0);
    px_fiber *spawner;

    (void)arg;
    SILENT(px_group_open(&group));
    SILENT(px_group_set_limit(&group, 3));
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(px_group_spawn(&group, child, &gate), 0);
    spawner = start_handle(spawns_a_child, &group);
    SILENT(px_group_set_limit(&group, 5));
    SILENT(px_sem_up_n(&gate, 3));
    EXPECT_EQ(px_await(spawner, NULL), 0);
    SILENT(px_group_cancel(&group));
    SILENT(px_group_wait(&group));

    SILENT(px_group_open(&second));
    EXPECT_EQ(px_group_spawn(&second, sleep_long, NULL), 0);
    SILENT(px_stop());
    EXPECT_EQ(px_group_wait(&second), PX_ECANCELED);
    return 0;
}

static int returns_at_once(void *arg)
{
    (void)arg;
    return 0;
}

/* Ends, and what comes after: awaiting, giving up, starting anew. */
static int ends_and_handles(void *arg)
{
    px_fiber *fibers[3] = {NULL};
    px_sem gate = PX_SEM_INIT(0);

    (void)arg;
    for (int i = 0; i < 3; i++)
        fibers[i] = start_handle(child, &gate);
    SILENT(px_sem_up_n(&gate, 2));
    SILENT(px_await(fibers[0], NULL));
    SILENT(px_yield());
    SILENT(px_await(fibers[1], NULL));
    SILENT(px_spawn(&fibers[0], returns_at_once, NULL));
    SILENT(px_detach(fibers[0]));
    SILENT(px_spawn(&fibers[1], returns_at_once, NULL));
    SILENT(px_await(fibers[1], NULL));
    SILENT(px_detach(fibers[2]));
    SILENT(px_sem_up(&gate));
    return 0;
}

/* Two pipes: to say that it has begun, and to be told to end. */
static int begins_and_blocks(void *arg)
{
    const int *ends = arg;
    char byte = 'x';

    return __real_write(ends[1], &byte, 1) == 1 &&
                   __real_read(ends[2], &byte, 1) == 1
               ? 0
               : -1;
}

static int block_elsewhere(void *ends)
{
    return px_offload(begins_and_blocks, ends);
}

/* One call is on the only thread; the others are taken back. */
static int offloads(void *arg)
{
    struct waiting_fiber all[WAITERS];
    int ends[4];
    char byte;

    (void)arg;
    open_pipe(&ends[0], 0);
    open_pipe(&ends[2], 0);
    park_all(all, block_elsewhere, ends);
    EXPECT_EQ(__real_read(ends[0], &byte, 1), 1);
    for (int i = 0; i < WAITERS; i++)
        SILENT(px_cancel(all[i].fiber));
    EXPECT_EQ(__real_write(ends[3], &byte, 1), 1);
    await_all(all, 1);
    close_both(&ends[0]);
    close_both(&ends[2]);
    return 0;
}

static void ask_for_nothing(px_fn body)
{
    const px_run_options options = {.offload_threads = 1};

    inject_arm(NULL, 0);
    assert_int_equal(run_fibers_with(options, 0, body, NULL), 0);
    assert_int_equal(run_fibers_with(options, 1, body, NULL), 0);
    assert_log("");
}

#define SILENT_TEST(name, body)                                                \
    static void name(void **state)                                             \
    {                                                                          \
        (void)state;                                                           \
        ask_for_nothing(body);                                                 \
    }

SILENT_TEST(R5_a_semaphore_wakes_without_a_call, semaphores)
SILENT_TEST(R5_a_mutex_is_handed_over_without_a_call, mutexes)
SILENT_TEST(R5_a_waitgroup_is_reported_to_without_a_call, waitgroups)
SILENT_TEST(R5_waits_are_cancelled_without_a_call, sleeps_and_descriptors)
SILENT_TEST(R5_a_queued_call_is_taken_back_without_a_call, offloads)
SILENT_TEST(R5_a_group_is_cancelled_without_a_call, groups)
SILENT_TEST(R5_a_fiber_ends_without_a_call, ends_and_handles)

static const struct CMUnitTest tests[] = {
    PX_TEST(R5_a_semaphore_wakes_without_a_call),
    PX_TEST(R5_a_mutex_is_handed_over_without_a_call),
    PX_TEST(R5_a_waitgroup_is_reported_to_without_a_call),
    PX_TEST(R5_waits_are_cancelled_without_a_call),
    PX_TEST(R5_a_queued_call_is_taken_back_without_a_call),
    PX_TEST(R5_a_group_is_cancelled_without_a_call),
    PX_TEST(R5_a_fiber_ends_without_a_call),
};

PX_TEST_MAIN(tests)
