/* SPDX-License-Identifier: MIT */
/*
 * test_stack_fallback.c - guards as they are made where the kernel has no light
 * ones: with mprotect(), two mappings each, of which there is a limit. And what
 * becomes of a spawn that gets no memory.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stack.h"
#include "support/px_crowd.h"
#include "support/px_scale.h"
#include "support/px_test.h"

static char output[4096];

static int setup(void **state)
{
    px__stack_no_light_guards = true;
    return px_test_setup(state);
}

static int teardown(void **state)
{
    px__stack_no_light_guards = false;
    return px_test_teardown(state);
}

static int down(void *arg)
{
    return px_sem_down(arg);
}

static int spawn_a_hundred(void *arg)
{
    px_sem gate = PX_SEM_INIT(0);
    int before = mappings();

    (void)arg;
    for (int i = 0; i < 100; i++)
        start(down, &gate);
    note("%d", mappings() - before);
    EXPECT_EQ(px_sem_up_n(&gate, 100), 0);
    return px_sleep(1);
}

static void these_guards_are_mappings(void **state)
{
    (void)state;
    if (is_small()) {
        print_message("skipped: this tool has mappings of its own\n");
        skip();
    }
    run_fibers(spawn_a_hundred, NULL);
    assert_in_range(atoi(log_text()), 150, 250);
}

static int spawn_until_refused(void *arg)
{
    px_fiber **all = arg;
    px_sem gate = PX_SEM_INIT(0);
    int n = 0;
    int error = 0;

    while (n < 40000 && (error = px_spawn(&all[n], down, &gate)) == 0)
        n++;
    EXPECT_EQ(error, PX_ENOMEM);
    EXPECT(n > 20000 && n < 40000);
    EXPECT_EQ(px_spawn(&all[n], down, &gate), PX_ENOMEM); /* and again */
    EXPECT_EQ(px_sem_waiters(&gate), n);
    /* those that are there are none the worse for it, and make room */
    EXPECT_EQ(px_cancel_and_await(all[--n], NULL), 0);
    EXPECT_EQ(px_spawn(&all[n], down, &gate), 0);
    n++;
    for (int i = 0; i < n; i++) {
        int value = 0;

        EXPECT_EQ(px_cancel_and_await(all[i], &value), 0);
        EXPECT_EQ(value, PX_ECANCELED);
    }
    EXPECT_EQ(px_sem_waiters(&gate), 0);
    return 0;
}

static void skip_beyond_reach(void)
{
    long most = most_mappings();

    if (has_shadow() || most == 0 || most > 79000) {
        print_message("skipped: the limit of mappings is out of reach\n");
        skip();
    }
}

static void R145_beyond_the_limit_of_mappings_a_spawn_is_refused(void **state)
{
    px_fiber **all;

    (void)state;
    skip_beyond_reach();
    all = calloc(40001, sizeof(px_fiber *));
    assert_non_null(all);
    run_fibers(spawn_until_refused, all);
    free(all);
    assert_log("");
}

static void nothing_to_set(void) {}

static void R145_a_crowd_survives_the_limit_of_mappings(void **state)
{
    const struct crowd_limit limit = {nothing_to_set, NULL, 20000, 40000};

    (void)state;
    skip_beyond_reach();
    crowd_meets(&limit);
}

/* --- Whatever it is that there is none of --------------------------------- */

/* The library's calls for memory come by here (see tests/CMakeLists.txt). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void __real_free(void *memory);
int __real_posix_memalign(void **out, size_t alignment, size_t size);
void *__real_mmap(void *at, size_t size, int protection, int flags, int fd,
                  off_t offset);
int __real_mprotect(void *at, size_t size, int protection);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void __wrap_free(void *memory);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd,
                  off_t offset);
int __wrap_mprotect(void *at, size_t size, int protection);

static long calls_left = -1; /* until there is no more memory; below 0: ever */
static bool refused;
static long live; /* allocations */
static long most_live;

static bool refuse(void)
{
    if (calls_left == 0) {
        refused = true;
        errno = ENOMEM;
        return true;
    }
    calls_left -= calls_left > 0;
    return false;
}

static void *count_in(void *memory)
{
    live += memory != NULL;
    if (live > most_live)
        most_live = live;
    return memory;
}

void *__wrap_malloc(size_t size)
{
    return refuse() ? NULL : count_in(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return refuse() ? NULL : count_in(__real_calloc(n, size));
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t size)
{
    int error = refuse() ? ENOMEM : __real_posix_memalign(out, alignment, size);

    if (!error)
        (void)count_in(*out);
    return error;
}

void __wrap_free(void *memory)
{
    live -= memory != NULL;
    __real_free(memory);
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd,
                  off_t offset)
{
    return refuse() ? MAP_FAILED
                    : __real_mmap(at, size, protection, flags, fd, offset);
}

int __wrap_mprotect(void *at, size_t size, int protection)
{
    return refuse() ? -1 : __real_mprotect(at, size, protection);
}

enum { FEW = 80 }; /* more than a chunk of records, several slabs of stacks */

static int gather_with_little(void *arg)
{
    const long *calls = arg;
    struct crowd crowd = {PX_SEM_INIT(0), 0, 0, 0};
    int error;
    int fit;

    calls_left = *calls;
    refused = false;
    errno = 4242;
    error = crowd_gather(&crowd, FEW);
    fit = crowd.gathered;
    EXPECT_EQ(error, refused ? PX_ENOMEM : 0);
    EXPECT_EQ(fit < FEW, refused);
    EXPECT_EQ(errno, 4242);
    for (int i = 0; refused && i < 200; i++)
        EXPECT_EQ(crowd_gather(&crowd, 1), PX_ENOMEM);
    /* What exists needs none: half of them end, others take their places. */
    calls_left = 0;
    crowd_release(&crowd, fit / 2);
    EXPECT_EQ(crowd_gather(&crowd, fit / 2), 0);
    EXPECT_EQ(px_sem_waiters(&crowd.gate), fit);
    calls_left = -1;
    EXPECT_EQ(crowd_gather(&crowd, 2 * FEW - fit), 0);
    crowd_release(&crowd, 2 * FEW);
    EXPECT_EQ(px_sem_waiters(&crowd.gate), 0);
    return 0;
}

/* Memory ends at the first call for it, at the second, ... and never. */
static void run_out_of_memory(size_t stack_size)
{
    px_run_options options;
    long calls = -1;
    long enough = 0;

    memset(&options, 0, sizeof(options));
    options.stack_size = stack_size;
    do {
        long before = live;

        most_live = live;
        assert_int_equal(
            run_fibers_with(options, 0, gather_with_little, &calls), 0);
        assert_int_equal(live, before);
        if (calls++ < 0) {
            enough = most_live - before;
            refused = true;
        }
        assert_true(most_live - before <= enough); /* refusals keep nothing */
    } while (refused);
    assert_true(calls > FEW); /* a guard for each, and more */
    assert_log("");
}

static void R145_wherever_memory_ends_a_spawn_is_refused(void **state)
{
    (void)state;
    run_out_of_memory(0);
}

/* Of these few stay warm: the pages of the others go back. */
static void R145_wherever_memory_ends_a_large_spawn_is_refused(void **state)
{
    (void)state;
    if (has_shadow()) {
        print_message("skipped: this tool looks at every byte of a stack\n");
        skip();
    }
    run_out_of_memory((size_t)32 << 20);
}

static __attribute__((noinline)) int recurse(volatile int *depth)
{
    volatile char room[1024];

    room[0] = (char)*depth;
    if (++*depth > 0)
        room[1] = (char)recurse(depth);
    return room[0] + room[1];
}

static int overflow(void *arg)
{
    volatile int depth = 0;

    (void)arg;
    return px_set_name(px_self(), "deep") || px_yield() || recurse(&depth);
}

static int spawn_overflow(void *arg)
{
    px_fiber *fiber = NULL;
    px_sem gate = PX_SEM_INIT(0);

    for (int i = 0; i < 20; i++) {
        if (px_spawn(NULL, down, &gate) ||
            (i == 10 && px_spawn(&fiber, overflow, arg)))
            return 1;
    }
    return px_await(fiber, NULL);
}

static void run_overflow(void *arg)
{
    const struct rlimit none = {0, 0};

    (void)setrlimit(RLIMIT_CORE, &none);
    (void)signal(SIGSEGV, SIG_DFL);
    (void)signal(SIGBUS, SIG_DFL);
    _exit(px_run(spawn_overflow, arg) ? 2 : 3);
}

static void R144_an_overflow_is_reported_all_the_same(void **state)
{
    int status = in_child(run_overflow, NULL, output, sizeof(output));

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    assert_non_null(strstr(output, "stack overflow in fiber 12 'deep'"));
}

#define FALLBACK_TEST(name)                                                    \
    cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
    /* first: the handler is installed with a process's first run */
    FALLBACK_TEST(R144_an_overflow_is_reported_all_the_same),
    FALLBACK_TEST(these_guards_are_mappings),
    FALLBACK_TEST(R145_beyond_the_limit_of_mappings_a_spawn_is_refused),
    FALLBACK_TEST(R145_a_crowd_survives_the_limit_of_mappings),
    FALLBACK_TEST(R145_wherever_memory_ends_a_spawn_is_refused),
    FALLBACK_TEST(R145_wherever_memory_ends_a_large_spawn_is_refused),
};

PX_TEST_MAIN(tests)
