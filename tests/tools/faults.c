/* SPDX-License-Identifier: MIT */
/*
 * faults.c - one fault in a fiber, by name, for the tools that must report it,
 * and its counterpart without, for which they must not. "tool" prints which
 * sanitizer this is built with. See expect_reports.py.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <parataxis/parataxis.h>

#include "px_scale.h"

#if PX_SCALE_FEATURE(memory_sanitizer)
#define PX_UNDER_MSAN 1
#else
#define PX_UNDER_MSAN 0
#endif

#define NOINLINE __attribute__((noinline))

/* What the optimiser must not know. */
static volatile size_t eight = 8;
static volatile int sink;

/* -- frames -- */

static NOINLINE void write_up_to(size_t n)
{
    volatile char room[8];
    volatile char *volatile at = room; /* or UBSan sees it first */

    for (size_t i = 0; i < n; i++)
        at[i] = (char)i;
    sink = room[0];
}

static int overflow_by_one(void *arg)
{
    (void)arg;
    write_up_to(eight);
    write_up_to(eight + 1);
    return 0;
}

static int no_overflow(void *arg)
{
    (void)arg;
    write_up_to(eight);
    return px_yield();
}

static volatile uintptr_t gone;

static NOINLINE void leave_its_address(void)
{
    volatile int local = 7;

    gone = (uintptr_t)&local;
    sink = local;
}

static int use_after_return(void *arg)
{
    int err = px_yield();

    (void)arg;
    leave_its_address();
    sink = *(volatile int *)gone;
    return err;
}

/* -- memory that nobody has, and that a parked fiber alone has -- */

static int lose_it(void *arg)
{
    volatile char *volatile block = malloc(4321);

    (void)arg;
    if (block)
        block[0] = 1;
    block = NULL;
    return px_yield();
}

static NOINLINE void spoil_registers_and_frames(void)
{
    volatile char room[2048];

    memset((void *)(uintptr_t)room, 0, sizeof(room));
    sink = room[17];
}

static int lose(void *arg)
{
    px_fiber *fiber;
    int err = px_spawn(&fiber, lose_it, arg);

    err = err ? err : px_await(fiber, NULL);
    spoil_registers_and_frames();
    return err;
}

static int hold_it_and_park(void *arg)
{
    char *volatile block = malloc(4321);

    (void)arg;
    if (block)
        block[0] = 1;
    sink = px_sleep(PX_FOREVER);
    free(block);
    return 0;
}

/* The process ends with the fiber parked. */
static int hold(void *arg)
{
    int err = px_spawn(NULL, hold_it_and_park, arg);

    spoil_registers_and_frames();
    if (!err)
        err = px_sleep(PX_MSEC);
    exit(err ? 1 : 0);
}

/* -- a race of a fiber with a thread; and of two fibers, which is none -- */

static int shared;
static atomic_int thread_has_written;

/* Relaxed: it orders nothing. */
static void *write_from_a_thread(void *arg)
{
    (void)arg;
    shared++;
    atomic_store_explicit(&thread_has_written, 1, memory_order_relaxed);
    return NULL;
}

static int write_from_a_fiber(void *arg)
{
    pthread_t *thread = arg;

    if (pthread_create(thread, NULL, write_from_a_thread, NULL) != 0)
        return 1;
    while (!atomic_load_explicit(&thread_has_written, memory_order_relaxed)) {
        if (px_yield())
            return 1;
    }
    shared++;
    return 0;
}

static int race_with_a_thread(void *arg)
{
    static pthread_t thread;
    px_spawn_options options = {.name = "racing-fiber", .queued = true};
    px_fiber *fiber;
    int err = px_spawn_with(&fiber, &options, write_from_a_fiber, &thread);

    (void)arg;
    err = err ? err : px_await(fiber, NULL);
    return pthread_join(thread, NULL) ? 1 : err;
}

static int write_by_turns(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) {
        shared++;
        if (px_yield())
            return 1;
    }
    return 0;
}

static int no_race_of_fibers(void *arg)
{
    int err = px_spawn(NULL, write_by_turns, arg);

    return err ? err : write_by_turns(arg);
}

/* -- bytes that nobody wrote -- */

/* By a branch: to compute with such a word is no fault yet. */
static NOINLINE int decide_by(const volatile int *value)
{
    if (*value == 12345)
        exit(3);
    return 2;
}

static int uninitialised(void *arg)
{
    volatile int local[4];
    int err = px_yield();

    (void)arg;
    local[0] = 1;
    sink = decide_by(&local[eight / 4]);
    return err;
}

static int initialised(void *arg)
{
    volatile int local[4] = {0, 0, 0, 0};
    int err = px_yield();

    (void)arg;
    sink = decide_by(&local[eight / 4]);
    return err;
}

static const struct {
    const char *name;
    px_fn fn;
} faults[] = {
    {"overflow_by_one", overflow_by_one},
    {"no_overflow", no_overflow},
    {"use_after_return", use_after_return},
    {"lose", lose},
    {"hold", hold},
    {"race_with_a_thread", race_with_a_thread},
    {"no_race_of_fibers", no_race_of_fibers},
    {"uninitialised", uninitialised},
    {"initialised", initialised},
};

/* In a fiber of its own, on a stack of the usual size. */
static int body(void *arg)
{
    px_fiber *fiber;
    int value = 1;
    int err = px_spawn(&fiber, *(const px_fn *)arg, NULL);

    err = err ? err : px_await(fiber, &value);
    return err ? err : value;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    if (strcmp(name, "tool") == 0) {
        puts(PX_UNDER_ASAN   ? "asan"
             : PX_UNDER_TSAN ? "tsan"
             : PX_UNDER_MSAN ? "msan"
                             : "none");
        return 0;
    }
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        px_fn fn = faults[i].fn;

        if (strcmp(name, faults[i].name) == 0)
            return px_run(body, &fn) ? 1 : 0;
    }
    fprintf(stderr, "faults: no fault '%s'\n", name);
    return 2;
}
