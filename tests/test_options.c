/* SPDX-License-Identifier: MIT */
/* test_options.c - the options of a run, and those of a spawn. */
#include <alloca.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "support/px_scale.h"
#include "support/px_test.h"

#define KIB ((size_t)1024)

static px_run_options defaults(void)
{
    px_run_options options;

    memset(&options, 0, sizeof(options));
    return options;
}

static px_spawn_options spawn_defaults(void)
{
    px_spawn_options options;

    memset(&options, 0, sizeof(options));
    return options;
}

static int times_called;

static int count_call(void *arg)
{
    times_called++;
    return arg ? *(int *)arg : 0;
}

static void swallow_deadlock(void *ctx)
{
    (void)ctx;
}

/* Touch `size` bytes of this stack, every page of them. */
static __attribute__((noinline)) void use_stack(size_t size)
{
    volatile char *room = alloca(size);

    for (size_t i = 0; i < size; i += 512)
        room[size - 1 - i] = (char)i;
    room[0] = 1;
}

static int use_stack_of(void *arg)
{
    use_stack(*(size_t *)arg);
    settle();
    return 0;
}

/* --- Of a run ------------------------------------------------------------- */

static void an_unknown_option_value_starts_nothing(void **state)
{
    static const int clocks[] = {2, 7, -1, INT_MAX};
    px_run_options options = defaults();
    int result = 99;

    (void)state;
    times_called = 0;
    options.result = &result;
    for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
        options.clock = (px_clock)clocks[i];
        assert_int_equal(px_run_with(&options, count_call, NULL), PX_EINVAL);
    }
    options.clock = PX_CLOCK_REAL;
    options.reserved[3] = 1; /* something that this version does not know */
    assert_int_equal(px_run_with(&options, count_call, NULL), PX_EINVAL);
    assert_int_equal(times_called, 0);
    assert_int_equal(result, 99);
}

static int result_and_code(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    if (arg)
        EXPECT_EQ(px_sem_down(&sem), PX_ESTALLED);
    return -33;
}

static void the_result_is_kept_apart_from_the_runs_code(void **state)
{
    px_run_options options = defaults();
    int result = 99;
    int deadlock = 1;

    (void)state;
    options.result = &result;
    options.on_deadlock = swallow_deadlock;
    assert_int_equal(px_run_with(&options, result_and_code, NULL), -33);
    assert_int_equal(result, -33);
    result = 99;
    assert_int_equal(px_run_with(&options, result_and_code, &deadlock),
                     PX_ESTALLED);
    assert_int_equal(result, -33);
    result = 99;
    assert_int_equal(px_run_with(&options, NULL, NULL), PX_EINVAL);
    assert_int_equal(result, 99);
    assert_log("");
}

static int nest(void *arg)
{
    px_run_options options = defaults();

    options.result = arg;
    EXPECT_EQ(px_run_with(&options, count_call, NULL), PX_EBUSY);
    return 0;
}

static void a_busy_run_leaves_the_result_alone(void **state)
{
    int result = 99;

    (void)state;
    run_fibers(nest, &result);
    assert_int_equal(result, 99);
    assert_log("");
}

static int spawn_stack_users(void *arg)
{
    /* what is asked for, and how much of it there is at least */
    static const size_t users[][2] = {
        {0, 64 * KIB}, /* the run's */
        {1, 16 * KIB}, /* raised to the least there is */
        {16 * KIB - 1, 16 * KIB},
        {16 * KIB, 16 * KIB},
        {16 * KIB + 1, 16 * KIB + 1},
        {20001, 20001},
        {40 * KIB, 40 * KIB},
        {100 * KIB, 100 * KIB},
        {1000 * KIB, 1000 * KIB},
        {1000 * KIB + 1, 1000 * KIB + 1},
    };
    /* for the frames on the way, which are larger with a sanitizer in them */
    size_t margin = (PX_UNDER_ASAN || PX_UNDER_TSAN ? 6 : 1) * KIB;
    px_spawn_options options = spawn_defaults();

    (void)arg;
    for (int turn = 0; turn < 8; turn++) {
        options.queued = turn % 2; /* parked all at once, none is reused */
        for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
            size_t used = users[i][1] - margin;

            options.stack_size = users[i][0];
            options.arg_size = sizeof(used);
            EXPECT_EQ(px_spawn_with(NULL, &options, use_stack_of, &used), 0);
        }
    }
    return 0;
}

static void a_stack_has_the_bytes_that_were_asked_for(void **state)
{
    (void)state;
    run_fibers(spawn_stack_users, NULL);
    assert_log("");
}

static int use_a_big_stack(void *arg)
{
    size_t *sizes = arg;

    use_stack(sizes[0]); /* main's */
    if (sizes[1])
        start(use_stack_of, &sizes[1]);
    settle();
    settle();
    return 0;
}

static void main_has_a_megabyte_at_least(void **state)
{
    size_t sizes[2] = {1000 * KIB, 0};
    px_run_options options = defaults();

    (void)state;
    assert_int_equal(run_fibers_with(options, 0, use_a_big_stack, sizes), 0);
    options.stack_size = 16 * KIB;
    sizes[1] = 10 * KIB;
    assert_int_equal(run_fibers_with(options, 0, use_a_big_stack, sizes), 0);
    options.stack_size = 1;
    assert_int_equal(run_fibers_with(options, 0, use_a_big_stack, sizes), 0);
    assert_log("");
}

static void the_runs_stack_size_holds_for_all_fibers(void **state)
{
    size_t sizes[2] = {3900 * KIB, 3900 * KIB};
    px_run_options options = defaults();

    (void)state;
    options.stack_size = 4096 * KIB;
    assert_int_equal(run_fibers_with(options, 0, use_a_big_stack, sizes), 0);
    options.stack_size = 250001; /* odd, and rounded up */
    sizes[0] = 240 * KIB;
    sizes[1] = 235 * KIB;
    assert_int_equal(run_fibers_with(options, 0, use_a_big_stack, sizes), 0);
    assert_log("");
}

static void an_absurd_stack_size_is_refused(void **state)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 4095, SIZE_MAX / 2,
                                   (size_t)1 << 62, (size_t)1 << 50};
    px_run_options options = defaults();

    (void)state;
    times_called = 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int error;

        options.stack_size = sizes[i];
        error = px_run_with(&options, count_call, NULL);
        assert_true(error == PX_EINVAL || error == PX_ENOMEM);
    }
    assert_int_equal(times_called, 0);
}

static void guards_of_any_size_are_rounded_up_or_refused(void **state)
{
    static const size_t good[] = {1, 4096, 5000, 65536, 1 << 20};
    static const size_t absurd[] = {SIZE_MAX, SIZE_MAX / 2 + 1,
                                    (size_t)1 << 62};
    px_run_options options = defaults();
    size_t sizes[2] = {900 * KIB, 50 * KIB};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        options.guard_size = good[i];
        assert_int_equal(run_fibers_with(options, 0, use_a_big_stack, sizes),
                         0);
    }
    times_called = 0;
    for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
        int error;

        options.guard_size = absurd[i];
        error = px_run_with(&options, count_call, NULL);
        assert_true(error == PX_EINVAL || error == PX_ENOMEM);
    }
    assert_int_equal(times_called, 0);
    assert_log("");
}

static int down(void *arg)
{
    return px_sem_down(arg);
}

static int reach_the_bound(void *arg)
{
    px_fiber *const untouched = (px_fiber *)(void *)&times_called;
    px_spawn_options queued = spawn_defaults();
    px_sem gate = PX_SEM_INIT(0);
    px_fiber *all[5];
    px_fiber *ended;
    px_fiber *none = untouched;
    px_waitgroup wg = PX_WAITGROUP_INIT(0);
    px_group group;

    (void)arg;
    queued.queued = true;
    times_called = 0;
    for (int i = 0; i < 3; i++)
        all[i] = start_handle(down, &gate);
    ended = start_handle(count_call, NULL); /* is the fifth, and ends */
    EXPECT_EQ(px_spawn_with(&all[3], &queued, down, &gate), 0);
    /* five are alive: main, three parked, one to begin */
    EXPECT_EQ(px_spawn(&none, count_call, NULL), PX_ENOMEM);
    EXPECT_EQ(px_spawn(NULL, count_call, NULL), PX_ENOMEM);
    EXPECT_EQ(px_spawn_with(&none, &queued, count_call, NULL), PX_ENOMEM);
    EXPECT(none == untouched);
    EXPECT_EQ(px_waitgroup_go(&wg, count_call, NULL), PX_ENOMEM);
    EXPECT_EQ(px_waitgroup_count(&wg), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, count_call, NULL), PX_ENOMEM);
    EXPECT_EQ(px_group_wait(&group), 0);
    EXPECT_EQ(times_called, 1);
    EXPECT_EQ(px_await(ended, NULL), 0); /* it did not count any more */
    EXPECT_EQ(px_spawn(&none, count_call, NULL), PX_ENOMEM);

    EXPECT_EQ(px_sem_up(&gate), 0);
    EXPECT_EQ(px_await(all[0], NULL), 0);
    EXPECT_EQ(px_spawn(&all[4], down, &gate), 0);
    EXPECT_EQ(px_id(all[4]), 6); /* what failed has used no id */
    EXPECT_EQ(px_spawn(&none, count_call, NULL), PX_ENOMEM);
    EXPECT_EQ(px_sem_up_n(&gate, 4), 0);
    EXPECT_EQ(px_await_all(all + 1, 4, NULL), 0);
    return 0;
}

static void beyond_max_fibers_a_spawn_is_out_of_memory(void **state)
{
    px_run_options options = defaults();

    (void)state;
    options.max_fibers = 5;
    assert_int_equal(run_fibers_with(options, 0, reach_the_bound, NULL), 0);
    assert_log("");
}

static int spawn_alone(void *arg)
{
    EXPECT_EQ(px_spawn(NULL, count_call, arg), PX_ENOMEM);
    return 4;
}

static void one_fiber_may_be_all(void **state)
{
    px_run_options options = defaults();

    (void)state;
    options.max_fibers = 1;
    assert_int_equal(run_fibers_with(options, 0, spawn_alone, NULL), 4);
    options.max_fibers = SIZE_MAX;
    assert_int_equal(run_fibers_with(options, 0, nest, NULL), 0);
    assert_log("");
}

/* What was left on a stack, read as the kernel sees it: tools that watch
 * uninitialised memory, or addresses, have no say in it. */
static const char secret[32] = "the password is not in the code";
static uintptr_t secret_at;
static int memory_fd;

/* On the fiber's stack, not where a tool moves frames that might be used after
 * they are gone. */
static __attribute__((noinline, no_sanitize_address)) void leave_secret(void)
{
    volatile char *room = alloca(16 * KIB);

    for (size_t i = 0; i < sizeof(secret); i++)
        room[i] = secret[i];
    secret_at = (uintptr_t)room;
}

static int leave_secret_behind(void *arg)
{
    (void)arg;
    leave_secret();
    return 0;
}

static int secret_is_readable(void)
{
    char found[sizeof(secret)] = "";

    return pread(memory_fd, found, sizeof(found), (off_t)secret_at) ==
               (ssize_t)sizeof(found) &&
           memcmp(found, secret, sizeof(secret)) == 0;
}

static int look_for_secret(void *arg)
{
    int *seen = arg;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    if (here > secret_at && here - secret_at < 32 * KIB) { /* this stack */
        seen[0]++;
        seen[1] += secret_is_readable();
    }
    return px_sleep(1);
}

static int reuse_a_stack(void *arg)
{
    start(leave_secret_behind, NULL);
    for (int i = 0; i < 8; i++)
        start(look_for_secret, arg);
    return 0;
}

static void a_wiped_stack_tells_its_next_fiber_nothing(void **state)
{
    px_run_options options = defaults();
    int seen[2] = {0, 0};

    (void)state;
    memory_fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    secret_at = (uintptr_t)secret;
    if (memory_fd < 0 || !secret_is_readable()) {
        if (memory_fd >= 0)
            (void)close(memory_fd);
        print_message("skipped: /proc/self/mem does not show this memory\n");
        skip();
    }
    options.wipe_stacks = true;
    assert_int_equal(run_fibers_with(options, 0, reuse_a_stack, seen), 0);
    (void)close(memory_fd);
    assert_int_equal(seen[0], 1); /* one of them was given that stack */
    assert_int_equal(seen[1], 0);
    assert_log("");
}

static px_nsec slack_allowed;

static int sleep_with_slack(void *arg)
{
    px_nsec due = px_now() + *(px_nsec *)arg;

    EXPECT_EQ(px_sleep_until(due), 0);
    EXPECT(px_now() >= due);
    EXPECT(px_now() <= due + slack_allowed);
    return 0;
}

static int within_with_slack(void *arg)
{
    px_nsec due = px_now() + *(px_nsec *)arg;
    px_scope scope;

    EXPECT_EQ(px_scope_enter_until(&scope, due), 0);
    EXPECT_EQ(px_sleep(PX_SEC), PX_ETIMEDOUT);
    EXPECT(px_now() >= due);
    EXPECT(px_now() <= due + slack_allowed);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    return 0;
}

static int sleep_in_a_row(void *arg)
{
    static px_nsec naps[100];

    (void)arg;
    for (int i = 0; i < 100; i++) {
        naps[i] = (i * 37 % 100) * PX_MSEC / 3 + i;
        start(sleep_with_slack, &naps[i]);
        start(within_with_slack, &naps[i]);
    }
    return 0;
}

static void with_slack_timers_are_late_by_it_at_most(void **state)
{
    static const px_nsec slacks[] = {0, 1, 10 * PX_MSEC, -5, INT64_MIN};
    px_run_options options = defaults();

    (void)state;
    for (size_t i = 0; i < sizeof(slacks) / sizeof(slacks[0]); i++) {
        options.timer_slack = slacks[i];
        slack_allowed = slacks[i] > 0 ? slacks[i] : 0;
        assert_int_equal(run_fibers_with(options, 0, sleep_in_a_row, NULL), 0);
    }
    assert_log("");
}

static int sleep_second(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT(px_now() >= PX_SEC);
    return 0;
}

static void a_slack_without_end_does_not_overflow(void **state)
{
    px_run_options options = defaults();

    (void)state;
    options.timer_slack = INT64_MAX;
    assert_int_equal(run_fibers_with(options, 0, sleep_second, NULL), 0);
    assert_log("");
}

/* --- Of a spawn ----------------------------------------------------------- */

static int run_queued(void *arg)
{
    note("%s ", (const char *)arg);
    return 0;
}

static int spawn_queued(void *arg)
{
    px_spawn_options options = spawn_defaults();
    px_fiber *fiber = NULL;

    (void)arg;
    options.queued = true;
    EXPECT_EQ(px_spawn_with(&fiber, &options, run_queued, "queued"), 0);
    EXPECT(fiber != NULL);
    EXPECT_EQ(px_id(fiber), 1);
    EXPECT(!px_is_done(fiber));
    note("spawned ");
    EXPECT_EQ(px_await(fiber, NULL), 0);
    note("awaited ");
    return 0;
}

static void a_queued_fiber_does_not_start_at_once(void **state)
{
    (void)state;
    run_fibers(spawn_queued, NULL);
    assert_log("spawned queued awaited ");
}

static int spawn_by_default(void *arg)
{
    EXPECT_EQ(px_spawn_with(NULL, NULL, run_queued, "child"), 0);
    note("spawned ");
    (void)arg;
    return 0;
}

static void no_spawn_options_are_the_defaults(void **state)
{
    (void)state;
    run_fibers(spawn_by_default, NULL);
    assert_log("child spawned ");
}

static int leave_queued(void *arg)
{
    px_spawn_options options = spawn_defaults();

    (void)arg;
    options.queued = true;
    EXPECT_EQ(px_spawn_with(NULL, &options, run_queued, "late"), 0);
    note("main ends ");
    return 0;
}

static void a_queued_fiber_outlives_main(void **state)
{
    (void)state;
    run_fibers(leave_queued, NULL);
    assert_log("main ends late ");
}

static size_t expected_size;

static int check_copy(void *arg)
{
    const unsigned char *bytes = arg;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t at = (uintptr_t)arg;

    EXPECT_EQ(at % _Alignof(max_align_t), 0);
    EXPECT(at > here && at - here < 64 * KIB); /* on this stack */
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < expected_size; i++) {
            if (bytes[i] != (unsigned char)(i * 7 + 1)) {
                EXPECT_EQ(bytes[i], (unsigned char)(i * 7 + 1));
                break;
            }
        }
        use_stack(4 * KIB);
        settle();
    }
    note("%zu ", expected_size);
    return 0;
}

static int copy_arguments(void *arg)
{
    static const size_t sizes[] = {1,  2,  3,    8,    15,   16,       17,
                                   31, 64, 1000, 4095, 4097, 32 * 1024};
    px_spawn_options options = spawn_defaults();
    unsigned char bytes[32 * 1024];

    options.queued = arg != NULL;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        px_fiber *fiber = NULL;

        expected_size = sizes[i];
        for (size_t k = 0; k < sizes[i]; k++)
            bytes[k] = (unsigned char)(k * 7 + 1);
        options.arg_size = sizes[i];
        EXPECT_EQ(px_spawn_with(&fiber, &options, check_copy, bytes), 0);
        memset(bytes, 0, sizeof(bytes)); /* it was copied at the spawn */
        EXPECT_EQ(px_await(fiber, NULL), 0);
    }
    return 0;
}

static void the_child_gets_a_copy_of_its_argument(void **state)
{
    int queued = 1;

    (void)state;
    run_fibers(copy_arguments, NULL);
    assert_log("1 2 3 8 15 16 17 31 64 1000 4095 4097 32768 ");
    log_clear();
    run_fibers(copy_arguments, &queued);
    assert_log("1 2 3 8 15 16 17 31 64 1000 4095 4097 32768 ");
}

struct task {
    int number;
    char text[12];
};

static int use_task(void *arg)
{
    struct task *task = arg;

    settle(); /* the spawner's frame has gone by now */
    note("%d:%s ", task->number, task->text);
    task->number = 0; /* it is the child's own */
    return 0;
}

static int spawn_tasks(void *arg)
{
    px_spawn_options options = spawn_defaults();

    (void)arg;
    options.arg_size = sizeof(struct task);
    for (int i = 1; i <= 3; i++) {
        struct task task = {i, "task"};

        EXPECT_EQ(px_spawn_with(NULL, &options, use_task, &task), 0);
        EXPECT_EQ(task.number, i);
        memset(&task, 'x', sizeof(task));
    }
    return 0;
}

static void an_argument_that_is_copied_may_go(void **state)
{
    (void)state;
    run_fibers(spawn_tasks, NULL);
    assert_non_null(strstr(log_text(), "1:task "));
    assert_non_null(strstr(log_text(), "2:task "));
    assert_non_null(strstr(log_text(), "3:task "));
    assert_int_equal(strlen(log_text()), 21);
}

static int copy_too_much(void *arg)
{
    static unsigned char bytes[512 * 1024];
    static const size_t sizes[] = {64 * 1024, 48 * 1024, SIZE_MAX,
                                   SIZE_MAX - 15, SIZE_MAX / 2 + 1};
    px_fiber *const untouched = (px_fiber *)(void *)&times_called;
    px_spawn_options options = spawn_defaults();
    px_fiber *fiber = untouched;

    (void)arg;
    times_called = 0;
    for (int queued = 0; queued < 2; queued++) {
        options.queued = queued;
        options.stack_size = 0;
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            options.arg_size = sizes[i];
            EXPECT_EQ(px_spawn_with(&fiber, &options, count_call, bytes),
                      PX_EINVAL);
        }
        options.arg_size = 8; /* of nothing */
        EXPECT_EQ(px_spawn_with(&fiber, &options, count_call, NULL), PX_EINVAL);
        options.stack_size = 16 * KIB;
        options.arg_size = 12 * KIB;
        EXPECT_EQ(px_spawn_with(&fiber, &options, count_call, bytes),
                  PX_EINVAL);
    }
    EXPECT(fiber == untouched);
    EXPECT_EQ(times_called, 0);
    options = spawn_defaults();
    options.stack_size = 1024 * KIB;
    options.arg_size = sizeof(bytes);
    EXPECT_EQ(px_spawn_with(&fiber, &options, count_call, bytes), 0);
    EXPECT_EQ(px_id(fiber), 1);
    EXPECT_EQ(times_called, 1);
    return 0;
}

static int descend(volatile int *depth)
{
    volatile char room[512];

    room[0] = (char)*depth;
    return ++*depth < 40 ? descend(depth) + room[0] : 0;
}

static int go_deep(void *arg)
{
    volatile int depth = 0;

    (void)arg;
    return descend(&depth) * 0;
}

static int sum_up(void *arg)
{
    const unsigned char *bytes = arg;
    int sum = 0;

    for (int i = 0; i < 4000; i++)
        sum += bytes[i];
    return sum;
}

/* What a frame has left there is nobody's: for valgrind, too. */
static int copy_over_frames(void *arg)
{
    static unsigned char ones[4000];
    px_spawn_options options = spawn_defaults();

    (void)arg;
    memset(ones, 1, sizeof(ones));
    options.arg_size = sizeof(ones);
    for (int i = 0; i < 4; i++) {
        px_fiber *fiber = NULL;
        int sum = 0;

        options.queued = i % 2;
        EXPECT_EQ(px_spawn(&fiber, go_deep, NULL), 0);
        EXPECT_EQ(px_await(fiber, NULL), 0);
        EXPECT_EQ(px_spawn_with(&fiber, &options, sum_up, ones), 0);
        EXPECT_EQ(px_await(fiber, &sum), 0);
        EXPECT_EQ(sum, 4000);
    }
    return 0;
}

static void an_argument_is_copied_over_what_ended_fibers_left(void **state)
{
    (void)state;
    run_fibers(copy_over_frames, NULL);
    assert_log("");
}

static void at_most_half_a_stack_is_copied(void **state)
{
    (void)state;
    run_fibers(copy_too_much, NULL);
    assert_log("");
}

static int get_same_pointer(void *arg)
{
    note(arg == (void *)&times_called ? "same " : "another ");
    return 0;
}

static int pass_pointer(void *arg)
{
    px_spawn_options options = spawn_defaults();

    (void)arg;
    EXPECT_EQ(px_spawn_with(NULL, &options, get_same_pointer, &times_called),
              0);
    options.queued = true;
    EXPECT_EQ(px_spawn_with(NULL, &options, get_same_pointer, &times_called),
              0);
    return 0;
}

static void without_a_size_the_argument_is_passed_as_it_is(void **state)
{
    (void)state;
    run_fibers(pass_pointer, NULL);
    assert_log("same same ");
}

static int spawn_with_absurd_options(void *arg)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 4095, SIZE_MAX / 2,
                                   (size_t)1 << 62, (size_t)1 << 50};
    px_fiber *const untouched = (px_fiber *)(void *)&times_called;
    px_spawn_options options = spawn_defaults();
    px_fiber *fiber = untouched;

    (void)arg;
    times_called = 0;
    options.reserved[0] = 1;
    EXPECT_EQ(px_spawn_with(&fiber, &options, count_call, NULL), PX_EINVAL);
    options.reserved[0] = 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int error;

        options.stack_size = sizes[i];
        for (int queued = 0; queued < 2; queued++) {
            options.queued = queued;
            error = px_spawn_with(&fiber, &options, count_call, NULL);
            EXPECT(error == PX_EINVAL || error == PX_ENOMEM);
        }
    }
    EXPECT_EQ(times_called, 0);
    EXPECT(fiber == untouched);
    EXPECT_EQ(px_spawn(&fiber, count_call, NULL), 0); /* no harm done */
    EXPECT_EQ(px_id(fiber), 1);
    return 0;
}

static void a_spawn_with_absurd_options_starts_nothing(void **state)
{
    (void)state;
    run_fibers(spawn_with_absurd_options, NULL);
    assert_log("");
}

static int spawn_in_group(void *arg)
{
    px_spawn_options options = spawn_defaults();
    px_group group;
    struct task task = {7, "grouped"};

    (void)arg;
    options.name = "member";
    options.arg_size = sizeof(task);
    options.queued = true;
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn_with(&group, &options, use_task, &task), 0);
    memset(&task, 0, sizeof(task));
    note("queued; ");
    EXPECT_EQ(px_group_wait(&group), 0);
    return 0;
}

static void a_groups_fiber_has_the_same_options(void **state)
{
    (void)state;
    run_fibers(spawn_in_group, NULL);
    assert_log("queued; 7:grouped ");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(an_unknown_option_value_starts_nothing),
    PX_TEST(the_result_is_kept_apart_from_the_runs_code),
    PX_TEST(a_busy_run_leaves_the_result_alone),
    PX_TEST(a_stack_has_the_bytes_that_were_asked_for),
    PX_TEST(main_has_a_megabyte_at_least),
    PX_TEST(the_runs_stack_size_holds_for_all_fibers),
    PX_TEST(an_absurd_stack_size_is_refused),
    PX_TEST(guards_of_any_size_are_rounded_up_or_refused),
    PX_TEST(beyond_max_fibers_a_spawn_is_out_of_memory),
    PX_TEST(one_fiber_may_be_all),
    PX_TEST(a_wiped_stack_tells_its_next_fiber_nothing),
    PX_TEST(with_slack_timers_are_late_by_it_at_most),
    PX_TEST(a_slack_without_end_does_not_overflow),
    PX_TEST(a_queued_fiber_does_not_start_at_once),
    PX_TEST(no_spawn_options_are_the_defaults),
    PX_TEST(a_queued_fiber_outlives_main),
    PX_TEST(the_child_gets_a_copy_of_its_argument),
    PX_TEST(an_argument_that_is_copied_may_go),
    PX_TEST(at_most_half_a_stack_is_copied),
    PX_TEST(an_argument_is_copied_over_what_ended_fibers_left),
    PX_TEST(without_a_size_the_argument_is_passed_as_it_is),
    PX_TEST(a_spawn_with_absurd_options_starts_nothing),
    PX_TEST(a_groups_fiber_has_the_same_options),
};

PX_TEST_MAIN(tests)
