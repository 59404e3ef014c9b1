/* SPDX-License-Identifier: MIT */
/*
 * test_no_allocation.c - to wait, to be woken and to give up need no memory:
 * everything that waits has its place in the record of its fiber. So there is
 * no failure between counting a waiter and queueing it.
 *
 * Each wait is begun and ended while every allocation is refused, and counted.
 */
#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fiber_test.h"

static bool refusing;
static int refused;

static bool refuse(void)
{
    if (!refusing)
        return false;
    refused++;
    errno = ENOMEM;
    return true;
}

/* What the library calls instead of the system (LINKER:--wrap). */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
int __real_posix_memalign(void **out, size_t alignment, size_t size);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size);
void *__real_mmap(void *at, size_t size, int prot, int flags, int fd,
                  off_t offset);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd,
                  off_t offset);

void *__wrap_malloc(size_t size)
{
    return refuse() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return refuse() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return refuse() ? NULL : __real_realloc(old, size);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t size)
{
    return refuse() ? ENOMEM : __real_posix_memalign(out, alignment, size);
}

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd,
                  off_t offset)
{
    return refuse() ? MAP_FAILED
                    : __real_mmap(at, size, prot, flags, fd, offset);
}

/* ---- Every wait ---- */

static px_sem gate, sem;
static px_mutex mutex;
static px_waitgroup wg;
static px_group group;
static px_fiber *others[2];
static int ends[2];

static int waits_at_the_semaphore(void *arg UNUSED)
{
    return px_sem_down(&sem);
}

static void nothing(void) {}

static int downs(void)
{
    return px_sem_down(&sem);
}

static void ups(void)
{
    EXPECT_EQ(px_sem_up(&sem), 0);
}

static int downs_above_the_limit(void)
{
    return px_sem_down_n(&sem, 3);
}

static void raises_the_limit(void)
{
    EXPECT_EQ(px_sem_set_limit(&sem, 4), 0);
}

static int waits_for_a_permit(void)
{
    return px_sem_wait_available(&sem);
}

static void bounds(void)
{
    EXPECT_EQ(px_sem_init_bounded(&sem, 1), 0);
    EXPECT_EQ(px_sem_down(&sem), 0);
}

static int locks(void)
{
    int err = px_mutex_lock(&mutex);

    if (!err)
        EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    return err;
}

static void unlocks(void)
{
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
}

static int waits_for_zero(void)
{
    return px_waitgroup_wait(&wg);
}

static void is_done(void)
{
    EXPECT_EQ(px_waitgroup_done(&wg), 0);
}

static int naps(void)
{
    return px_sleep(PX_SEC / 2);
}

static void lets_time_pass(void)
{
    EXPECT_EQ(px_sleep(PX_SEC / 2), 0);
}

static void starts_others(void)
{
    others[0] = start_handle(waits_at_the_semaphore, NULL);
    others[1] = start_handle(waits_at_the_semaphore, NULL);
}

static int awaits(void)
{
    return px_await(others[0], NULL);
}

static int awaits_all(void)
{
    return px_await_all(others, 2, NULL);
}

static void ups_twice(void)
{
    EXPECT_EQ(px_sem_up_n(&sem, 2), 0);
}

static void opens_a_group(void)
{
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, waits_at_the_semaphore, NULL), 0);
}

static int waits_for_children(void)
{
    return px_group_wait(&group);
}

/* The first wait on a number makes room for it. */
static void waits_once_before(void)
{
    char byte = 'x';

    EXPECT_EQ(write(ends[1], &byte, 1), 1);
    EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_READABLE);
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
    PX_WITHIN(limit, 1)
        EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_ETIMEDOUT);
}

static int waits_for_a_byte(void)
{
    char byte;
    int ready = px_wait_fd(ends[0], PX_READABLE);

    if (ready < 0)
        return ready;
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
    return 0;
}

static void writes_a_byte(void)
{
    EXPECT_EQ(write(ends[1], "x", 1), 1);
}

static const struct wait {
    const char *name;
    void (*prepare)(void);
    int (*call)(void);
    void (*grant)(void);
} waits[] = {
    {"down", nothing, downs, ups},
    {"down passed over", bounds, downs_above_the_limit, raises_the_limit},
    {"wait_available", nothing, waits_for_a_permit, ups},
    {"lock", nothing, locks, unlocks},
    {"waitgroup", nothing, waits_for_zero, is_done},
    {"sleep", nothing, naps, lets_time_pass},
    {"await", starts_others, awaits, ups_twice},
    {"await_all", starts_others, awaits_all, ups_twice},
    {"group", opens_a_group, waits_for_children, ups},
    {"descriptor", waits_once_before, waits_for_a_byte, writes_a_byte},
};

struct trial {
    const struct wait *wait;
    enum { GRANTED, CANCELED, TIMED_OUT, STOPPED } how;
    px_scope scope;
    int code;
    bool ended;
};

static int tries_to_wait(void *arg)
{
    struct trial *t = arg;

    EXPECT_EQ(px_scope_enter(&t->scope, PX_FOREVER), 0);
    t->wait->prepare();
    EXPECT_EQ(px_sem_down(&gate), 0);
    if (t->how == TIMED_OUT)
        EXPECT_EQ(px_scope_set_deadline(&t->scope, px_now() + PX_SEC / 4), 0);
    t->code = t->wait->call();
    t->ended = true;
    (void)px_scope_leave(&t->scope);
    return 0;
}

static void ends_it(struct trial *t, px_fiber *fiber)
{
    if (t->how == GRANTED)
        t->wait->grant();
    else if (t->how == CANCELED)
        EXPECT_EQ(px_cancel(fiber), 0);
    else if (t->how == STOPPED)
        EXPECT_EQ(px_scope_cancel(&t->scope), 0);
    else
        EXPECT_EQ(px_sleep(PX_SEC / 4), 0);
    settle();
}

static int makes_it_wait(void *arg)
{
    static const int codes[] = {0, PX_ECANCELED, PX_ETIMEDOUT, PX_ECANCELED};
    struct trial *t = arg;
    px_fiber *fiber;

    EXPECT_EQ(px_sem_init(&gate, 0), 0);
    EXPECT_EQ(px_sem_init(&sem, 0), 0);
    EXPECT_EQ(px_mutex_init(&mutex), 0);
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    EXPECT_EQ(px_waitgroup_init(&wg, 1), 0);
    fiber = start_handle(tries_to_wait, t);
    settle(); /* it waits at the gate */
    refused = 0;
    refusing = true;
    EXPECT_EQ(px_sem_up(&gate), 0);
    settle();
    EXPECT(!t->ended);
    ends_it(t, fiber);
    refusing = false;
    EXPECT(t->ended);
    EXPECT_EQ(t->code, codes[t->how]);
    EXPECT_EQ(refused, 0);
    if (refused || t->code != codes[t->how])
        (void)fprintf(stderr, "%s, %d\n", t->wait->name, (int)t->how);
    EXPECT_EQ(px_stop(), 0); /* what was awaited in vain */
    return 0;
}

static void R37_to_wait_and_to_be_woken_allocate_nothing(void **state)
{
    (void)state;
    assert_int_equal(pipe(ends), 0);
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        for (int how = GRANTED; how <= STOPPED; how++) {
            struct trial t = {.wait = &waits[i]};

            t.how = how;
            run_fibers(makes_it_wait, &t);
        }
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
    assert_log("");
}

static int lets_many_wait(void *arg UNUSED)
{
    px_fiber *fibers[200];

    EXPECT_EQ(px_sem_init(&sem, 0), 0);
    for (int i = 0; i < 200; i++)
        fibers[i] = start_handle(waits_at_the_semaphore, NULL);
    refused = 0;
    refusing = true;
    EXPECT_EQ(px_sem_waiters(&sem), 200);
    for (int i = 0; i < 200; i += 2)
        EXPECT_EQ(px_cancel(fibers[i]), 0);
    EXPECT_EQ(px_sem_waiters(&sem), 100);
    EXPECT_EQ(px_sem_up_n(&sem, 100), 0);
    EXPECT_EQ(px_sem_waiters(&sem), 0);
    EXPECT_EQ(px_await_all(fibers, 200, NULL), 0);
    EXPECT_EQ(px_sem_destroy(&sem), 0);
    refusing = false;
    EXPECT_EQ(refused, 0);
    return 0;
}

static void R37_a_crowd_is_woken_and_ends_without_memory(void **state)
{
    (void)state;
    run_fibers(lets_many_wait, NULL);
    assert_log("");
}

static int needs_memory(void *arg UNUSED)
{
    px_spawn_options options = {.stack_size = 1 << 20};

    refused = 0;
    refusing = true;
    EXPECT_EQ(px_spawn_with(NULL, &options, waits_at_the_semaphore, NULL),
              PX_ENOMEM);
    refusing = false;
    EXPECT(refused > 0);
    return 0;
}

static void what_does_need_memory_is_refused(void **state)
{
    (void)state;
    run_fibers(needs_memory, NULL);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(R37_to_wait_and_to_be_woken_allocate_nothing),
    PX_TEST(R37_a_crowd_is_woken_and_ends_without_memory),
    PX_TEST(what_does_need_memory_is_refused),
};

PX_TEST_MAIN(tests)
