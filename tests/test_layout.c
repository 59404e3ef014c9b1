/* SPDX-License-Identifier: MIT */
/*
 * test_layout.c - what is compiled into the programs that use the library: the
 * sizes of the structs they embed, the values of the constants, and that zero
 * bytes are the initialisers.
 *
 * A size that changes here changes the ABI: that needs a new soname.
 */
#include <limits.h>

#include "support/px_test.h"

#define SIZE_OF(type, lp64)                                                    \
    {                                                                          \
#type, sizeof(type), lp64, _Alignof(type)                              \
    }

static const struct {
    const char *name;
    size_t size;
    size_t lp64;
    size_t alignment;
} sizes[] = {
    SIZE_OF(px_sem, 80),          SIZE_OF(px_sem_guard, 16),
    SIZE_OF(px_mutex, 56),        SIZE_OF(px_mutex_guard, 16),
    SIZE_OF(px_waitgroup, 48),    SIZE_OF(px_scope, 96),
    SIZE_OF(px_group, 176),       SIZE_OF(px_waitq, 16),
    SIZE_OF(px_run_options, 120), SIZE_OF(px_spawn_options, 64),
    SIZE_OF(px_clock, 4),         SIZE_OF(px_nsec, 8),
    SIZE_OF(px_fid, 8),
};

static void public_structs_have_their_sizes(void **state)
{
    (void)state;
    if (sizeof(void *) != 8 || sizeof(long) != 8) {
        print_message("skipped: the sizes are those of LP64 machines\n");
        skip();
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (sizes[i].size != sizes[i].lp64)
            print_message("%s\n", sizes[i].name);
        assert_int_equal(sizes[i].size, sizes[i].lp64);
        assert_true(sizes[i].alignment <= 8);
    }
}

static void fields_that_users_set_are_where_they_were(void **state)
{
    (void)state;
    if (sizeof(void *) != 8 || sizeof(long) != 8) {
        print_message("skipped: the offsets are those of LP64 machines\n");
        skip();
    }
    assert_int_equal(offsetof(px_run_options, stack_size), 0);
    assert_int_equal(offsetof(px_run_options, clock), 8);
    assert_int_equal(offsetof(px_run_options, shuffle_seed), 16);
    assert_int_equal(offsetof(px_run_options, on_deadlock), 24);
    assert_int_equal(offsetof(px_run_options, ctx), 32);
    assert_int_equal(offsetof(px_run_options, offload_threads), 40);
    assert_int_equal(offsetof(px_run_options, timer_slack), 48);
    assert_int_equal(offsetof(px_run_options, guard_size), 56);
    assert_int_equal(offsetof(px_run_options, max_fibers), 64);
    assert_int_equal(offsetof(px_run_options, wipe_stacks), 72);
    assert_int_equal(offsetof(px_run_options, result), 80);
    assert_int_equal(offsetof(px_spawn_options, name), 0);
    assert_int_equal(offsetof(px_spawn_options, stack_size), 8);
    assert_int_equal(offsetof(px_spawn_options, queued), 16);
    assert_int_equal(offsetof(px_spawn_options, arg_size), 24);
    assert_int_equal(offsetof(px_sem_guard, status), 8);
    assert_int_equal(offsetof(px_mutex_guard, status), 8);
}

static void every_struct_has_room_to_grow(void **state)
{
    px_sem sem;
    px_mutex mutex;
    px_waitgroup wg;
    px_scope scope;
    px_group group;
    px_run_options run;
    px_spawn_options spawn;

    (void)state;
    assert_int_equal(sizeof(sem.reserved), 2 * sizeof(uintptr_t));
    assert_int_equal(sizeof(mutex.reserved), 2 * sizeof(uintptr_t));
    assert_int_equal(sizeof(wg.reserved), 2 * sizeof(uintptr_t));
    assert_int_equal(sizeof(scope.reserved), 2 * sizeof(uintptr_t));
    assert_int_equal(sizeof(group.reserved), 4 * sizeof(uintptr_t));
    assert_int_equal(sizeof(run.reserved), 4 * sizeof(uintptr_t));
    assert_int_equal(sizeof(spawn.reserved), 4 * sizeof(uintptr_t));
    /* ... and it comes last */
    assert_int_equal(offsetof(px_sem, reserved) + sizeof(sem.reserved),
                     sizeof(px_sem));
    assert_int_equal(offsetof(px_mutex, reserved) + sizeof(mutex.reserved),
                     sizeof(px_mutex));
    assert_int_equal(offsetof(px_waitgroup, reserved) + sizeof(wg.reserved),
                     sizeof(px_waitgroup));
    assert_int_equal(offsetof(px_scope, reserved) + sizeof(scope.reserved),
                     sizeof(px_scope));
    assert_int_equal(offsetof(px_group, reserved) + sizeof(group.reserved),
                     sizeof(px_group));
    assert_int_equal(offsetof(px_run_options, reserved) + sizeof(run.reserved),
                     sizeof(px_run_options));
    assert_int_equal(offsetof(px_spawn_options, reserved) +
                         sizeof(spawn.reserved),
                     sizeof(px_spawn_options));
}

static int is_zero(const void *object, size_t size)
{
    const unsigned char *bytes = object;

    for (size_t i = 0; i < size; i++) {
        if (bytes[i])
            return 0;
    }
    return 1;
}

static void zero_bytes_are_the_initialisers(void **state)
{
    static const px_sem sem = PX_SEM_INIT(0);
    static const px_mutex mutex = PX_MUTEX_INIT;
    static const px_waitgroup wg = PX_WAITGROUP_INIT(0);

    (void)state;
    assert_true(is_zero(&sem, sizeof(sem)));
    assert_true(is_zero(&mutex, sizeof(mutex)));
    assert_true(is_zero(&wg, sizeof(wg)));
}

static void an_init_and_its_initialiser_do_the_same(void **state)
{
    px_sem sems[3] = {PX_SEM_INIT(3), PX_SEM_INIT_BOUNDED(3),
                      PX_SEM_INIT_BOUNDED(-2)};
    px_sem sem;
    px_mutex mutexes[1] = {PX_MUTEX_INIT};
    px_mutex mutex;
    px_waitgroup wgs[1] = {PX_WAITGROUP_INIT(5)};
    px_waitgroup wg;

    (void)state;
    memset(&sem, 0xff, sizeof(sem));
    assert_int_equal(px_sem_init(&sem, 3), 0);
    assert_memory_equal(&sem, &sems[0], sizeof(sem));
    memset(&sem, 0xff, sizeof(sem));
    assert_int_equal(px_sem_init_bounded(&sem, 3), 0);
    assert_memory_equal(&sem, &sems[1], sizeof(sem));
    memset(&sem, 0xff, sizeof(sem));
    assert_int_equal(px_sem_init_bounded(&sem, -2), 0);
    assert_memory_equal(&sem, &sems[2], sizeof(sem));
    memset(&mutex, 0xff, sizeof(mutex));
    assert_int_equal(px_mutex_init(&mutex), 0);
    assert_memory_equal(&mutex, &mutexes[0], sizeof(mutex));
    memset(&wg, 0xff, sizeof(wg));
    assert_int_equal(px_waitgroup_init(&wg, 5), 0);
    assert_memory_equal(&wg, &wgs[0], sizeof(wg));
}

static void constants_have_their_values(void **state)
{
    (void)state;
    assert_int_equal(PX_NSEC, 1);
    assert_int_equal(PX_USEC, 1000);
    assert_int_equal(PX_MSEC, 1000000);
    assert_int_equal(PX_SEC, 1000000000);
    assert_true(PX_MINUTE == 60000000000);
    assert_true(50 * PX_MSEC == 50000000);
    assert_true(1000000 * PX_MINUTE > INT_MAX); /* counts in 64 bits */
    assert_true(PX_FOREVER == INT64_MAX);
    assert_int_equal(PX_CLOCK_REAL, 0);
    assert_int_equal(PX_CLOCK_VIRTUAL, 1);
    assert_true(PX_NO_FIBER == -1);
    assert_true(PX_SEM_UNBOUNDED == -1);
    assert_int_equal(PX_READABLE, 1);
    assert_int_equal(PX_WRITABLE, 2);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(public_structs_have_their_sizes),
    PX_TEST(fields_that_users_set_are_where_they_were),
    PX_TEST(every_struct_has_room_to_grow),
    PX_TEST(zero_bytes_are_the_initialisers),
    PX_TEST(an_init_and_its_initialiser_do_the_same),
    PX_TEST(constants_have_their_values),
};

PX_TEST_MAIN(tests)
