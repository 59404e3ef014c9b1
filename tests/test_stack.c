/* SPDX-License-Identifier: MIT */
/*
 * test_stack.c - stacks: nobody else's memory, used again, given back.
 *
 * What overflowing one does is in test_overflow.c; how big they are, in
 * test_options.c.
 */
#include <alloca.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/px_crowd.h"
#include "support/px_scale.h"
#include "support/px_test.h"

#define KIB 1024

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int down(void *arg)
{
    return px_sem_down(arg);
}

static void skip_with_shadow(void)
{
    if (has_shadow()) {
        print_message("skipped: this tool's memory is not the program's\n");
        skip();
    }
}

/* --- Whose memory it is --------------------------------------------------- */

struct filler {
    unsigned char mark;
    size_t size;
    px_sem *gate;
};

/* Fill most of this stack with a mark, let the others do so too, look again. */
/* Whether every byte still is what it was filled with. */
static bool is_full_of(const unsigned char *room, size_t size,
                       unsigned char mark)
{
    return room[0] == mark && memcmp(room, room + 1, size - 1) == 0;
}

static int fill_and_look(void *arg)
{
    const struct filler *self = arg;
    unsigned char *room = alloca(self->size);

    memset(room, self->mark, self->size);
    for (int turn = 0; turn < 3; turn++) {
        EXPECT_EQ(px_sem_down(self->gate), 0);
        EXPECT(is_full_of(room, self->size, self->mark));
    }
    return 0;
}

static int fill_all_stacks(void *arg)
{
    static const size_t sizes[] = {16, 17, 20, 31, 64, 65, 100, 200, 256, 1000};
    static struct filler fillers[200];
    px_sem gate = PX_SEM_INIT(0);
    px_spawn_options options;

    (void)arg;
    memset(&options, 0, sizeof(options));
    for (int i = 0; i < 200; i++) {
        size_t kib = sizes[i % 10];

        fillers[i].mark = (unsigned char)(i + 1);
        fillers[i].size = (kib - 9) * KIB;
        fillers[i].gate = &gate;
        options.stack_size = kib * KIB;
        options.queued = i % 3 == 0;
        EXPECT_EQ(px_spawn_with(NULL, &options, fill_and_look, &fillers[i]), 0);
    }
    for (int turn = 0; turn < 3; turn++) {
        settle();
        EXPECT_EQ(px_sem_waiters(&gate), 200);
        EXPECT_EQ(px_sem_up_n(&gate, 200), 0);
    }
    settle();
    EXPECT_EQ(px_sem_waiters(&gate), 0);
    return 0;
}

static void no_two_fibers_share_a_byte_of_stack(void **state)
{
    (void)state;
    run_fibers(fill_all_stacks, NULL);
    assert_log("");
}

/* The same until cancelled. */
static int fill_until_cancelled(void *arg)
{
    const struct filler *self = arg;
    unsigned char mark = self->mark;
    size_t size = self->size;
    unsigned char *room = alloca(size);
    int error;

    memset(room, mark, size);
    error = px_sem_down(self->gate);
    EXPECT(is_full_of(room, size, mark));
    return error;
}

static int churn(void *arg)
{
    static px_fiber *alive[300];
    static struct filler fillers[300];
    px_sem gate = PX_SEM_INIT(0);
    px_spawn_options options;
    uint32_t random = 99;

    (void)arg;
    memset(alive, 0, sizeof(alive));
    memset(&options, 0, sizeof(options));
    for (int i = 0; i < turns(20000); i++) {
        random = random * 1664525u + 1013904223u;
        int at = (int)(random >> 8) % 300;
        size_t kib = 16 + (random >> 20) % 48;

        if (alive[at]) {
            int value = 0;

            EXPECT_EQ(px_cancel_and_await(alive[at], &value), 0);
            EXPECT_EQ(value, PX_ECANCELED);
        }
        fillers[at].mark = (unsigned char)random;
        fillers[at].size = (kib - 10) * KIB;
        fillers[at].gate = &gate;
        options.stack_size = kib * KIB;
        EXPECT_EQ(px_spawn_with(&alive[at], &options, fill_until_cancelled,
                                &fillers[at]),
                  0);
    }
    for (int at = 0; at < 300; at++) {
        if (alive[at])
            EXPECT_EQ(px_cancel_and_await(alive[at], NULL), 0);
    }
    EXPECT_EQ(px_sem_waiters(&gate), 0);
    return 0;
}

static void stacks_of_all_sizes_come_and_go(void **state)
{
    (void)state;
    run_fibers(churn, NULL);
    assert_log("");
}

/* --- How much of it there is ---------------------------------------------- */

static int spawn_many_times(void *arg)
{
    long before = 0;
    int maps_before = 0;

    (void)arg;
    for (int i = 0; i < 100000; i++) {
        start(nothing, NULL);
        if (i == 1000) {
            before = resident_kib();
            maps_before = mappings();
        }
    }
    note("%ld %d", resident_kib() - before, mappings() - maps_before);
    return 0;
}

static void a_hundred_thousand_fibers_in_turn_need_no_more_memory(void **state)
{
    long more = 0;
    int more_maps = 0;

    (void)state;
    skip_with_shadow();
    run_fibers(spawn_many_times, NULL);
    assert_int_equal(sscanf(log_text(), "%ld %d", &more, &more_maps), 2);
    assert_true(more < 512);
    assert_true(more_maps <= 0);
}

static int keep_handles(void *arg)
{
    long before = resident_kib();

    (void)arg;
    for (int i = 0; i < 20000; i++)
        (void)start_handle(nothing, NULL);
    note("%ld", resident_kib() - before);
    return 0;
}

static void an_ended_fiber_keeps_its_record_and_not_its_stack(void **state)
{
    (void)state;
    skip_with_shadow();
    run_fibers(keep_handles, NULL);
    /* 20,000 stacks would be 80 MB, with a page touched of each */
    assert_true(atol(log_text()) < 20 * KIB);
}

static int touch_and_wait(void *arg)
{
    volatile char room[4 * KIB];

    for (size_t i = 0; i < sizeof(room); i += 512)
        room[i] = 1;
    return px_sem_down(arg);
}

static int crowd_and_leave(void *arg)
{
    int n = *(int *)arg;
    px_sem gate = PX_SEM_INIT(0);
    long before = resident_kib();
    long most;

    for (int i = 0; i < n; i++)
        start(touch_and_wait, &gate);
    most = resident_kib() - before;
    EXPECT_EQ(px_sem_up_n(&gate, n), 0);
    settle();
    log_clear();
    note("%ld %ld", most, resident_kib() - before);
    return 0;
}

static void beyond_a_bounded_number_stacks_give_their_memory_back(void **state)
{
    int n = 30000;
    long most = 0;
    long left = 0;

    (void)state;
    skip_with_shadow();
    run_fibers(crowd_and_leave, &n);
    assert_int_equal(sscanf(log_text(), "%ld %ld", &most, &left), 2);
    assert_true(most > 30000 * 4);
    assert_true(left < most * 3 / 4);
}

struct crowds {
    int n;
    int times;
};

/* A crowd, again and again: the first is what it takes, whichever of its stacks
 * have lost their pages in between. */
static int crowd_repeatedly(void *arg)
{
    const struct crowds *crowds = arg;
    int n = crowds->n;
    long mapped;
    long resident = resident_kib();
    long most = 0;

    EXPECT_EQ(crowd_and_leave(&n), 0);
    EXPECT_EQ(sscanf(log_text(), "%ld", &most), 1);
    mapped = mapped_kib();
    resident += most;
    for (int i = 0; i < crowds->times; i++)
        EXPECT_EQ(crowd_and_leave(&n), 0);
    log_clear();
    note("%ld %ld", mapped_kib() - mapped, resident_kib() - resident);
    return 0;
}

static void a_crowd_comes_again_in_the_same_stacks(void **state)
{
    /* a few warm ones; and many, of which some have lost their pages */
    static struct crowds crowds[] = {{1000, 50}, {30000, 2}};

    (void)state;
    skip_with_shadow();
    for (int i = 0; i < 2; i++) {
        long mapped = 0;
        long resident = 0;

        log_clear();
        run_fibers(crowd_repeatedly, &crowds[i]);
        assert_int_equal(sscanf(log_text(), "%ld %ld", &mapped, &resident), 2);
        assert_true(mapped < 8 * KIB);
        assert_true(resident < 4 * KIB);
    }
}

static void a_run_gives_all_its_stacks_back(void **state)
{
    int n = 10000;
    int maps_before;
    long before;

    (void)state;
    skip_with_shadow();
    run_fibers(crowd_and_leave, &n);
    before = resident_kib();
    maps_before = mappings();
    for (int i = 0; i < 5; i++)
        run_fibers(crowd_and_leave, &n);
    assert_true(mappings() <= maps_before + 1);
    assert_true(resident_kib() - before < 4 * KIB);
}

static void *run_in_thread(void *arg)
{
    return px_run(nothing, NULL) == 0 ? arg : NULL;
}

static void a_thread_that_ran_leaves_nothing_behind(void **state)
{
    long mapped_before = 0;

    (void)state;
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        void *value = NULL;

        assert_int_equal(pthread_create(&thread, NULL, run_in_thread, state),
                         0);
        assert_int_equal(pthread_join(thread, &value), 0);
        assert_ptr_equal(value, state);
        if (i == 20)
            mapped_before = mapped_kib();
    }
    if (!has_shadow())
        assert_true(mapped_kib() - mapped_before < 1 * KIB);
}

/* --- When there is none left ---------------------------------------------- */

static int spawn_until_refused(void *arg)
{
    px_sem gate = PX_SEM_INIT(0);
    px_spawn_options options;
    px_fiber *all[300];
    int n = 0;
    int error = 0;

    (void)arg;
    memset(&options, 0, sizeof(options));
    options.stack_size = 1024 * KIB;
    for (int queued = 0; queued < 2; queued++) {
        options.queued = queued;
        while (n < 300 &&
               (error = px_spawn_with(&all[n], &options, down, &gate)) == 0)
            n++;
        EXPECT_EQ(error, PX_ENOMEM);
    }
    EXPECT(n > 4 && n < 300);
    settle();
    EXPECT_EQ(px_sem_waiters(&gate), n);
    /* those that are there go on, and make room */
    EXPECT_EQ(px_cancel_and_await(all[--n], NULL), 0);
    EXPECT_EQ(px_cancel_and_await(all[--n], NULL), 0);
    EXPECT_EQ(px_spawn_with(&all[n], &options, down, &gate), 0);
    n++;
    for (int i = 0; i < n; i++)
        EXPECT_EQ(px_cancel_and_await(all[i], NULL), 0);
    return 0;
}

static void
R145_without_address_space_a_spawn_fails_and_the_rest_go_on(void **state)
{
    struct rlimit limit;
    struct rlimit low;
    long pages = 0;
    FILE *file;
    int value;

    (void)state;
    skip_with_shadow();
    run_fibers(spawn_many_times, NULL); /* what malloc wants it has */
    log_clear();
    file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pages), 1);
    (void)fclose(file);
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    low = limit;
    low.rlim_cur =
        (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (rlim_t)100 * KIB * KIB;
    assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
    px_run_options options;
    memset(&options, 0, sizeof(options));
    value = run_fibers_with(options, 0, spawn_until_refused, NULL);
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    assert_int_equal(value, 0);
    assert_log("");
}

/* --- A crowd at a limit --------------------------------------------------- */

static int limited; /* RLIMIT_AS or RLIMIT_DATA */
static struct rlimit unlimited;

static void no_more_than(int resource, long kib)
{
    struct rlimit low;

    limited = resource;
    EXPECT_EQ(getrlimit(limited, &unlimited), 0);
    low = unlimited;
    low.rlim_cur = (rlim_t)kib * KIB;
    EXPECT_EQ(setrlimit(limited, &low), 0);
}

static void limit_address_space(void)
{
    no_more_than(RLIMIT_AS, mapped_kib() + 64 * KIB);
}

static void limit_memory(void)
{
    no_more_than(RLIMIT_DATA, data_kib() + 64 * KIB);
}

static void lift_limit(void)
{
    EXPECT_EQ(setrlimit(limited, &unlimited), 0);
}

/* Free stacks are found by whoever asks for their size in so many words. */
static int spell_the_size_out(void *arg)
{
    px_sem gate = PX_SEM_INIT(0);
    px_spawn_options options;
    px_fiber *fiber = NULL;
    int n = 0;

    (void)arg;
    /* Nobody awaits them: they stay with their stacks when they have ended. */
    while (n < 100000 && px_spawn(NULL, down, &gate) == 0)
        n++;
    EXPECT(n > 100 && n < 100000);
    EXPECT_EQ(px_sem_up_n(&gate, n), 0);
    EXPECT_EQ(px_sleep(1), 0);
    memset(&options, 0, sizeof(options));
    options.stack_size = 64 * KIB;
    EXPECT_EQ(px_spawn_with(&fiber, &options, down, &gate), 0);
    EXPECT_EQ(px_cancel_and_await(fiber, NULL), 0);
    return 0;
}

static void R145_the_usual_size_may_be_spelt_out_at_the_limit(void **state)
{
    (void)state;
    skip_with_shadow();
    limit_address_space();
    run_fibers(spell_the_size_out, NULL);
    lift_limit();
    assert_log("");
}

static void R145_a_crowd_survives_the_limit_of_the_address_space(void **state)
{
    /* 64 MiB, in stacks of 64 KiB with a guard, and what is beside them */
    const struct crowd_limit limit = {limit_address_space, lift_limit, 300,
                                      1000};

    (void)state;
    skip_with_shadow();
    crowd_meets(&limit);
}

static void R145_a_crowd_survives_the_limit_of_memory(void **state)
{
    const struct crowd_limit limit = {limit_memory, lift_limit, 300, 1000};

    (void)state;
    skip_with_shadow();
    crowd_meets(&limit);
}

static void without_address_space_a_run_does_not_start(void **state)
{
    struct rlimit limit;
    struct rlimit low;
    px_run_options options;
    int value;

    (void)state;
    skip_with_shadow();
    memset(&options, 0, sizeof(options));
    options.stack_size = (size_t)4096 * KIB * KIB;
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    low = limit;
    low.rlim_cur = (rlim_t)2048 * KIB * KIB;
    assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
    errno = 4242;
    value = px_run_with(&options, nothing, NULL);
    assert_int_equal(errno, 4242);
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    assert_int_equal(value, PX_ENOMEM);
    assert_int_equal(px_run(nothing, NULL), 0);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(no_two_fibers_share_a_byte_of_stack),
    PX_TEST(stacks_of_all_sizes_come_and_go),
    PX_TEST(a_hundred_thousand_fibers_in_turn_need_no_more_memory),
    PX_TEST(an_ended_fiber_keeps_its_record_and_not_its_stack),
    PX_TEST(beyond_a_bounded_number_stacks_give_their_memory_back),
    PX_TEST(a_crowd_comes_again_in_the_same_stacks),
    PX_TEST(a_run_gives_all_its_stacks_back),
    PX_TEST(a_thread_that_ran_leaves_nothing_behind),
    PX_TEST(R145_without_address_space_a_spawn_fails_and_the_rest_go_on),
    PX_TEST(R145_the_usual_size_may_be_spelt_out_at_the_limit),
    PX_TEST(R145_a_crowd_survives_the_limit_of_the_address_space),
    PX_TEST(R145_a_crowd_survives_the_limit_of_memory),
    PX_TEST(without_address_space_a_run_does_not_start),
};

PX_TEST_MAIN(tests)
