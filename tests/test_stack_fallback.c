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
int __real_madvise(void *at, size_t size, int advice);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void __wrap_free(void *memory);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd,
                  off_t offset);
int __wrap_mprotect(void *at, size_t size, int protection);
int __wrap_madvise(void *at, size_t size, int advice);

static long calls_left = -1; /* until there is no more memory; below 0: ever */
static bool refused;
static long live; /* allocations */
static long most_live;
static size_t largest; /* of what was asked for by lines */
static size_t largest_mapping;
static bool pretends; /* to have set a guard, as an emulator may */

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
    int error;

    if (size > largest)
        largest = size;
    if (refuse())
        return ENOMEM;
    error = __real_posix_memalign(out, alignment, size);
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
    if (size > largest_mapping)
        largest_mapping = size;
    return refuse() ? MAP_FAILED
                    : __real_mmap(at, size, protection, flags, fd, offset);
}

int __wrap_mprotect(void *at, size_t size, int protection)
{
    return refuse() ? -1 : __real_mprotect(at, size, protection);
}

int __wrap_madvise(void *at, size_t size, int advice)
{
    return pretends ? 0 : __real_madvise(at, size, advice);
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

/* So many records that the next ones come as a mapping of their own. */
static int gather_past_a_mapping(void *arg)
{
    struct crowd crowd = {PX_SEM_INIT(0), 0, 0, 0};
    int refusals = 0;

    (void)arg;
    EXPECT_EQ(crowd_gather(&crowd, 1000), 0);
    for (int i = 0; i < 200; i++) {
        int error;

        calls_left = 0;
        error = crowd_gather(&crowd, 1);
        calls_left = -1;
        if (error) {
            refusals++;
            EXPECT_EQ(error, PX_ENOMEM);
            EXPECT_EQ(crowd_gather(&crowd, 1), 0);
        }
    }
    EXPECT_EQ(crowd.gathered, 1200);
    EXPECT(refusals > 0);
    crowd_release_all(&crowd);
    return 0;
}

/* What malloc has it may keep; many records are not malloc's. */
static void R145_many_records_are_mapped_or_refused(void **state)
{
    (void)state;
    if (is_small()) {
        print_message("skipped: this tool does not hold so many fibers\n");
        skip();
    }
    px__stack_no_light_guards = false; /* a spawn may do with its record */
    largest = 0;
    run_fibers(gather_past_a_mapping, NULL);
    assert_log("");
    assert_in_range(largest, 4096, 65535);
}

/* --- A pool --------------------------------------------------------------- */

enum { HEAD = 64, POOLED = 64 };

static void open_pool(struct px_stack_pool *pool)
{
    px__stack_pool_open(pool, 0, HEAD, false);
}

static struct px_stack *acquire(struct px_stack_pool *pool)
{
    struct px_stack *stack = px__stack_acquire(pool, PX_STACK_MINIMUM);

    assert_non_null(stack);
    return stack;
}

static void mark(struct px_stack *stack)
{
    memset(stack->low, 'x', (size_t)(px__stack_top(stack) - stack->low));
}

/* Whether all of it is still there; it may also be all zero. */
static bool is_marked(struct px_stack *stack)
{
    char first = stack->low[0];

    for (const char *at = stack->low; at < px__stack_top(stack); at++)
        assert_int_equal(*at, first);
    return first == 'x';
}

/* As if two were many: in every block one is in use, so it can not go back as a
 * whole, and what is free goes back one by one when it is much too much. */
static void free_stacks_between_others_go_back_one_by_one(void **state)
{
    struct px_stack_pool pool;
    struct px_stack *stacks[POOLED];
    long before = live;
    int kept = 0, warm = 0;

    (void)state;
    open_pool(&pool);
    for (int i = 0; i < POOLED; i++) {
        stacks[i] = acquire(&pool);
        mark(stacks[i]);
    }
    pool.last->warm_most = 2;
    for (int i = 0; i < POOLED; i++) {
        if (stacks[i]->index == 0)
            stacks[kept++] = stacks[i];
        else
            px__stack_release(&pool, stacks[i]);
    }
    assert_in_range(kept, 2, 8);
    assert_in_range(pool.last->warm_count, 2, 8 * 2);
    for (int i = 0; i < kept; i++)
        assert_true(is_marked(stacks[i]));
    for (int i = kept; i < POOLED; i++) {
        stacks[i] = acquire(&pool);
        warm += is_marked(stacks[i]);
        mark(stacks[i]);
    }
    /* as before, and the pool had no need for more */
    assert_in_range(warm, 2, 8 * 2);
    assert_int_equal(pool.last->made, POOLED);
    for (int i = 0; i < POOLED; i++)
        px__stack_release(&pool, stacks[i]);
    px__stack_pool_close(&pool);
    assert_int_equal(live, before);
}

/* As if many had been made: a slab holds as many again, but not without end. */
static void a_slab_has_65536_stacks_at_most(void **state)
{
    struct px_stack_pool pool;
    long before = live;
    size_t slot;

    (void)state;
    open_pool(&pool);
    largest_mapping = 0;
    px__stack_release(&pool, acquire(&pool));
    slot = largest_mapping / 16;
    for (size_t made = 65535; made <= 65537; made++) {
        struct px_stack *last;

        pool.last->made = made;
        pool.last->carving = NULL;
        largest_mapping = 0;
        (void)acquire(&pool); /* that is a free one */
        last = acquire(&pool);
        mark(last);
        assert_int_equal(largest_mapping, slot * (made < 65536 ? made : 65536));
        px__stack_release(&pool, last);
    }
    px__stack_pool_close(&pool);
    assert_int_equal(live, before);
}

/* Valgrind is told of each stack, which takes memory, too. Without valgrind
 * nobody listens. */
static void R145_a_pool_watched_by_valgrind_keeps_nothing_either(void **state)
{
    long before = live;

    (void)state;
    refused = true;
    for (long calls = 0; refused; calls++) {
        struct px_stack_pool pool;
        struct px_stack *stack;

        open_pool(&pool);
        pool.valgrind = true;
        calls_left = calls;
        refused = false;
        stack = px__stack_acquire(&pool, PX_STACK_MINIMUM);
        calls_left = -1;
        assert_int_equal(stack == NULL, refused);
        if (!stack)
            stack = acquire(&pool);
        mark(stack);
        px__stack_release(&pool, stack);
        assert_ptr_equal(acquire(&pool), stack);
        px__stack_pool_close(&pool);
        assert_int_equal(live, before);
    }
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

static void run_overflow_where_nothing_is_guarded(void *arg)
{
    px__stack_no_light_guards = false;
    pretends = true;
    run_overflow(arg);
}

static void R144_guards_that_are_none_are_found_out(void **state)
{
    int status = in_child(run_overflow_where_nothing_is_guarded, NULL, output,
                          sizeof(output));

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    assert_non_null(strstr(output, "stack overflow in fiber 12 'deep'"));
}

#define FALLBACK_TEST(name)                                                    \
    cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
    /* first: the handler is installed with a process's first run, and it is
     * then that a guard is tried out */
    FALLBACK_TEST(R144_guards_that_are_none_are_found_out),
    FALLBACK_TEST(R144_an_overflow_is_reported_all_the_same),
    FALLBACK_TEST(these_guards_are_mappings),
    FALLBACK_TEST(R145_beyond_the_limit_of_mappings_a_spawn_is_refused),
    FALLBACK_TEST(R145_a_crowd_survives_the_limit_of_mappings),
    FALLBACK_TEST(R145_wherever_memory_ends_a_spawn_is_refused),
    FALLBACK_TEST(R145_wherever_memory_ends_a_large_spawn_is_refused),
    FALLBACK_TEST(R145_many_records_are_mapped_or_refused),
    FALLBACK_TEST(free_stacks_between_others_go_back_one_by_one),
    FALLBACK_TEST(a_slab_has_65536_stacks_at_most),
    FALLBACK_TEST(R145_a_pool_watched_by_valgrind_keeps_nothing_either),
};

PX_TEST_MAIN(tests)
