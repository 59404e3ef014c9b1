/* SPDX-License-Identifier: MIT */
/*
 * test_dump.c - the text of px_dump() and of the deadlock report.
 *
 * Golden tests: each compares a whole report. Addresses are replaced by #1,
 * #2, ... in the order in which they first appear, and where a fiber was
 * spawned by SITE; the tests of where that is look at the text itself.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <pthread.h>
#include <time.h>

#include "support/px_scale.h"
#include "support/px_test.h"
#include "support/px_test_io.h"

static char raw[1 << 18];
static char golden[1 << 18];

/* --- Getting at the text -------------------------------------------------- */

static const char *replace_address(const char *in, char **out)
{
    static unsigned long seen[64];
    static int n_seen;
    char *end;
    unsigned long address;
    int number = 0;

    if (!in) {
        n_seen = 0;
        return NULL;
    }
    address = strtoul(in, &end, 16);
    while (number < n_seen && seen[number] != address)
        number++;
    if (number == n_seen && n_seen < 64)
        seen[n_seen++] = address;
    *out += sprintf(*out, "#%d", number + 1);
    return end;
}

/* From `raw` to `golden`. */
static void normalise(void)
{
    static const char site[] = ", spawned at ";
    const char *in = raw;
    char *out = golden;

    (void)replace_address(NULL, NULL);
    while (*in && out < golden + sizeof(golden) - 64) {
        if (strncmp(in, site, sizeof(site) - 1) == 0) {
            out += sprintf(out, "%sSITE", site);
            in += strcspn(in, "\n");
        } else if (in[0] == '0' && in[1] == 'x') {
            in = replace_address(in, &out);
        } else {
            *out++ = *in++;
        }
    }
    *out = '\0';
}

static void dump_into_raw(void *ctx)
{
    FILE *file = tmpfile();
    size_t n;

    (void)ctx;
    if (!file) {
        (void)snprintf(raw, sizeof(raw), "no file");
        return;
    }
    EXPECT_EQ(px_dump(file), 0);
    rewind(file);
    n = fread(raw, 1, sizeof(raw) - 1, file);
    raw[n] = '\0';
    (void)fclose(file);
}

static void assert_golden_at(const char *expected, int line)
{
    normalise();
    _assert_string_equal(golden, expected, __FILE__, line);
}

#define assert_golden(expected) assert_golden_at(expected, __LINE__)

/* Run into a deadlock; the report on standard error ends up in `raw`. */
static void report_by(int real, px_fn fn, void *arg)
{
    px_run_options options;
    FILE *file = tmpfile();
    int kept = dup(2);
    int value;
    size_t n;

    memset(&options, 0, sizeof(options));
    assert_non_null(file);
    assert_true(kept >= 0);
    (void)fflush(stderr);
    assert_int_equal(dup2(fileno(file), 2), 2);
    value = run_fibers_with(options, real, fn, arg);
    (void)fflush(stderr);
    (void)dup2(kept, 2);
    (void)close(kept);
    rewind(file);
    n = fread(raw, 1, sizeof(raw) - 1, file);
    raw[n] = '\0';
    (void)fclose(file);
    assert_int_equal(value, PX_ESTALLED);
    assert_log("");
}

static void report_of(px_fn fn, void *arg)
{
    report_by(0, fn, arg);
}

/* Run into a deadlock whose callback dumps into `raw`. */
static void dump_of(px_fn fn, void *arg)
{
    px_run_options options;

    memset(&options, 0, sizeof(options));
    options.on_deadlock = dump_into_raw;
    assert_int_equal(run_fibers_with(options, 0, fn, arg), PX_ESTALLED);
    assert_log("");
}

static void start_named(const char *name, px_fn fn, void *arg)
{
    px_spawn_options options;

    memset(&options, 0, sizeof(options));
    options.name = name;
    EXPECT_EQ(px_spawn_with(NULL, &options, fn, arg), 0);
}

static int down(void *arg)
{
    return px_sem_down(arg);
}

static int lock(void *arg)
{
    return px_mutex_lock(arg);
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static void be_quiet(void *ctx)
{
    (void)ctx;
}

/* --- The report ----------------------------------------------------------- */

static int wait_alone(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    EXPECT_EQ(px_sem_down(&sem), PX_ESTALLED);
    EXPECT_EQ(px_sem_down(&sem), PX_ESTALLED); /* not reported again */
    return 0;
}

static void R122_S_run_7_one_fiber_alone_is_reported_once(void **state)
{
    (void)state;
    report_of(wait_alone, NULL);
    assert_golden(
        "parataxis: deadlock: 1 fiber is parked, and nothing can wake it\n"
        "  fiber 0 waits for semaphore #1: wants 1, 0 free, for 0.000 s"
        "\n");
}

struct locks {
    px_mutex a;
    px_mutex b;
    px_mutex c;
};

static int lock_a_then_b(void *arg)
{
    struct locks *locks = arg;

    EXPECT_EQ(px_mutex_lock(&locks->a), 0);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT_EQ(px_mutex_lock(&locks->b), PX_ESTALLED);
    return 0;
}

static int lock_b_then_a(void *arg)
{
    struct locks *locks = arg;

    EXPECT_EQ(px_mutex_lock(&locks->b), 0);
    EXPECT_EQ(px_sleep(3 * PX_SEC), 0);
    EXPECT_EQ(px_mutex_lock(&locks->a), PX_ESTALLED);
    return 0;
}

static int lock_crosswise(void *arg)
{
    struct locks locks = {PX_MUTEX_INIT, PX_MUTEX_INIT, PX_MUTEX_INIT};

    (void)arg;
    EXPECT_EQ(px_set_name(px_self(), "main"), 0);
    start_named("left", lock_a_then_b, &locks);
    start_named("right", lock_b_then_a, &locks);
    EXPECT_EQ(px_sleep(2 * PX_SEC), 0);
    EXPECT_EQ(px_mutex_lock(&locks.a), PX_ESTALLED);
    return 0;
}

static void R65_two_locks_taken_crosswise_are_named_as_a_cycle(void **state)
{
    (void)state;
    report_of(lock_crosswise, NULL);
    assert_golden(
        "parataxis: deadlock: 3 fibers are parked, and nothing can wake them\n"
        "  fiber 0 'main' waits for mutex #1, held by fiber 1 'left', "
        "for 1.000 s\n"
        "  fiber 1 'left' waits for mutex #2, held by fiber 2 'right', "
        "for 2.000 s, spawned at SITE\n"
        "  fiber 2 'right' waits for mutex #1, held by fiber 1 'left', "
        "behind 1, for 0.000 s, spawned at SITE\n"
        "  cycle: fiber 1 'left' -> mutex #2 -> fiber 2 'right' -> mutex #1 "
        "-> fiber 1 'left'\n");
}

static int lock_two(void *arg)
{
    px_mutex **locks = arg;

    EXPECT_EQ(px_mutex_lock(locks[0]), 0);
    EXPECT_EQ(px_sleep(1), 0);
    EXPECT_EQ(px_mutex_lock(locks[1]), PX_ESTALLED);
    return 0;
}

static int make_two_cycles(void *arg)
{
    static const int pairs[5][2] = {{0, 1}, {1, 2}, {2, 0}, {3, 4}, {4, 3}};
    px_mutex locks[5];
    px_mutex *taken[5][2];

    (void)arg;
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(px_mutex_init(&locks[i]), 0);
    for (int i = 0; i < 5; i++) {
        taken[i][0] = &locks[pairs[i][0]];
        taken[i][1] = &locks[pairs[i][1]];
        start(lock_two, taken[i]);
    }
    EXPECT_EQ(px_sleep(PX_FOREVER), PX_ESTALLED);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    return 0;
}

static void every_cycle_is_named_once_however_long(void **state)
{
    (void)state;
    report_of(make_two_cycles, NULL);
    normalise();
    /* who is first in the queue of what does not matter here */
    assert_non_null(strstr(golden, "  fiber 0 waits for nothing: it sleeps for "
                                   "ever, for 0.000 s\n"));
    assert_non_null(
        strstr(golden, "  cycle: fiber 1 -> mutex #1 -> fiber 2 -> mutex #2 "
                       "-> fiber 3 -> mutex #3 -> fiber 1\n"
                       "  cycle: fiber 4 -> mutex #4 -> fiber 5 -> mutex #5 "
                       "-> fiber 4\n"));
    assert_null(strstr(strstr(golden, "cycle: fiber 4") + 1, "cycle"));
}

static int end_as_owner(void *arg)
{
    return px_mutex_lock(arg);
}

static int wait_for_ended_owner(void *arg)
{
    px_mutex mutex = PX_MUTEX_INIT;

    (void)arg;
    start_named("loader", end_as_owner, &mutex);
    start(lock, &mutex);
    EXPECT_EQ(px_mutex_lock(&mutex), PX_ESTALLED);
    return 0;
}

/* A thread that is not of the run keeps it from being deadlocked. */
static void *let_go_later(void *loop)
{
    const struct timespec pause = {0, 60 * 1000000};

    (void)nanosleep(&pause, NULL);
    EXPECT_EQ(px_loop_unhold(loop), 0);
    return NULL;
}

static int wait_under_a_hold(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_loop *loop = px_current_loop();
    pthread_t thread;

    (void)arg;
    EXPECT_EQ(px_loop_hold(loop), 0);
    EXPECT_EQ(pthread_create(&thread, NULL, let_go_later, loop), 0);
    (void)px_now(); /* so that the wait's beginning is not an old reading */
    EXPECT_EQ(px_sem_down(&sem), PX_ESTALLED);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    return 0;
}

static void a_report_reads_the_clock_for_how_long(void **state)
{
    const char *said;

    (void)state;
    report_by(1, wait_under_a_hold, NULL);
    said = strstr(raw, "0 free, for ");
    assert_non_null(said);
    assert_true(strtod(said + strlen("0 free, for "), NULL) >= 0.050);
}

static void R62_an_owner_that_has_ended_is_named(void **state)
{
    (void)state;
    report_of(wait_for_ended_owner, NULL);
    assert_golden(
        "parataxis: deadlock: 2 fibers are parked, and nothing can wake them\n"
        "  fiber 0 waits for mutex #1, held by fiber 1 'loader', which has "
        "ended, behind 1, for 0.000 s\n"
        "  fiber 2 waits for mutex #1, held by fiber 1 'loader', which has "
        "ended, for 0.000 s, spawned at SITE\n");
    dump_of(wait_for_ended_owner, NULL);
    assert_golden(
        "  fiber 0 waits for mutex #1, held by fiber 1 'loader', which has "
        "ended, behind 1, for 0.000 s\n"
        "  fiber 2 waits for mutex #1, held by fiber 1 'loader', which has "
        "ended, for 0.000 s, spawned at SITE\n"
        "  fiber 1 'loader' ended, holding 1 mutex, spawned at SITE\n");
}

static int await_owner_and_wait(void *arg)
{
    px_mutex mutex = PX_MUTEX_INIT;
    px_fiber *owner = start_handle(end_as_owner, &mutex);

    EXPECT_EQ(px_set_name(owner, "awaited"), 0);
    if (arg) /* its stack is another's by then */
        start(nothing, NULL);
    EXPECT_EQ(px_await(owner, NULL), 0); /* consumed: the record is kept */
    for (int i = 0; i < 10; i++)
        start(nothing, NULL);
    EXPECT_EQ(px_mutex_lock(&mutex), PX_ESTALLED);
    return 0;
}

static void an_ended_owner_is_named_after_it_was_awaited(void **state)
{
    for (int others = 0; others < 2; others++) {
        report_of(await_owner_and_wait, others ? state : NULL);
        assert_golden(
            "parataxis: deadlock: 1 fiber is parked, and nothing can wake it\n"
            "  fiber 0 waits for mutex #1, held by fiber 1 'awaited', which "
            "has "
            "ended, for 0.000 s\n");
    }
}

static px_mutex left_over;

static int leave_over(void *arg)
{
    (void)arg;
    return px_mutex_lock(&left_over);
}

static int wait_for_left_over(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_mutex_lock(&left_over), PX_ESTALLED);
    return 0;
}

static void a_lock_left_by_an_earlier_run_is_told_apart(void **state)
{
    (void)state;
    run_fibers(leave_over, NULL);
    report_of(wait_for_left_over, NULL);
    assert_golden(
        "parataxis: deadlock: 1 fiber is parked, and nothing can wake it\n"
        "  fiber 0 waits for mutex #1, held since an earlier run, "
        "for 0.000 s\n");
}

static px_mutex copied;

static int lock_and_copy(void *arg)
{
    px_mutex *mutex = arg;

    EXPECT_EQ(px_mutex_lock(mutex), 0);
    copied = *mutex;
    return px_mutex_unlock(mutex);
}

static int wait_for_a_copy(void *arg)
{
    px_mutex mutex = PX_MUTEX_INIT;

    (void)arg;
    start(lock_and_copy, &mutex);
    start(nothing, NULL); /* in its place */
    EXPECT_EQ(px_mutex_lock(&copied), PX_ESTALLED);
    return 0;
}

/* Misuse, of which a report should tell, not die. */
static void an_owner_that_is_gone_is_not_named(void **state)
{
    (void)state;
    report_of(wait_for_a_copy, NULL);
    assert_golden(
        "parataxis: deadlock: 1 fiber is parked, and nothing can wake it\n"
        "  fiber 0 waits for mutex #1, held since an earlier run, "
        "for 0.000 s\n");
}

static int wait_for_a_lock_made_anew(void *arg)
{
    px_mutex mutex = PX_MUTEX_INIT, kept;
    px_fiber *waiter;

    (void)arg;
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    waiter = start_handle(lock, &mutex);
    kept = mutex;
    EXPECT_EQ(px_mutex_init(&mutex), 0);
    dump_into_raw(NULL);
    mutex = kept;
    EXPECT_EQ(px_cancel_and_await(waiter, NULL), 0);
    return px_mutex_unlock(&mutex);
}

static void a_lock_made_anew_under_its_waiters_is_free(void **state)
{
    (void)state;
    run_fibers(wait_for_a_lock_made_anew, NULL);
    assert_log("");
    assert_golden("  fiber 0 running\n"
                  "  fiber 1 waits for mutex #1, free, for 0.000 s, "
                  "spawned at SITE\n");
}

static int end_as_owner_of_both(void *arg)
{
    struct locks *locks = arg;

    EXPECT_EQ(px_mutex_lock(&locks->a), 0);
    return px_mutex_lock(&locks->b);
}

static int dump_an_owner_renamed(void *arg)
{
    struct locks locks = {PX_MUTEX_INIT, PX_MUTEX_INIT, PX_MUTEX_INIT};
    px_fiber *owner = start_handle(end_as_owner_of_both, &locks);

    (void)arg;
    start(nothing, NULL); /* on the owner's stack */
    EXPECT_EQ(px_set_name(owner, "first"), 0);
    EXPECT_EQ(px_set_name(owner, "second"), 0);
    dump_into_raw(NULL);
    return px_await(owner, NULL);
}

static void who_ended_with_several_locks_is_dumped_by_its_new_name(void **state)
{
    (void)state;
    run_fibers(dump_an_owner_renamed, NULL);
    assert_log("");
    assert_golden("  fiber 0 running\n"
                  "  fiber 1 'second' ended, holding 2 mutexes, "
                  "spawned at SITE\n");
}

static int dump_a_long_queue(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    for (int i = 0; i < 1002; i++)
        start(down, &sem);
    dump_into_raw(NULL);
    return px_sem_up_n(&sem, 1002);
}

static void a_long_queue_is_not_counted_to_its_end(void **state)
{
    (void)state;
    if (is_small()) {
        print_message("skipped: this tool does not hold so many fibers\n");
        skip();
    }
    run_fibers(dump_a_long_queue, NULL);
    assert_log("");
    normalise();
    assert_non_null(
        strstr(golden, "  fiber 1000 waits for semaphore #1: wants 1, 0 free, "
                       "behind 999, for 0.000 s, spawned at SITE\n"
                       "  fiber 1001 waits for semaphore #1: wants 1, 0 free, "
                       "behind more than 999, for 0.000 s, spawned at SITE\n"
                       "  fiber 1002 waits for semaphore #1: wants 1, 0 free, "
                       "behind more than 999, for 0.000 s, spawned at SITE\n"));
}

static int down_7(void *arg)
{
    EXPECT_EQ(px_sem_down_n(arg, 7), PX_ESTALLED);
    return 0;
}

static int down_3(void *arg)
{
    EXPECT_EQ(px_sem_down_n(arg, 3), PX_ESTALLED);
    return 0;
}

static int wait_available(void *arg)
{
    EXPECT_EQ(px_sem_wait_available(arg), PX_ESTALLED);
    return 0;
}

static int wait_on_a_pool(void *arg)
{
    px_sem pool = PX_SEM_INIT_BOUNDED(4);

    (void)arg;
    EXPECT_EQ(px_sem_down_n(&pool, 4), 0);
    start(down_3, &pool);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    start(down_7, &pool);
    EXPECT_EQ(px_sleep(2 * PX_SEC), 0);
    start(wait_available, &pool);
    EXPECT_EQ(px_sem_down(&pool), PX_ESTALLED);
    return 0;
}

static void R54_a_waiter_passed_over_is_told_from_one_in_line(void **state)
{
    (void)state;
    report_of(wait_on_a_pool, NULL);
    assert_golden(
        "parataxis: deadlock: 4 fibers are parked, and nothing can wake them\n"
        "  fiber 0 waits for semaphore #1: wants 1, 0 free of 4, behind 2, "
        "for 0.000 s\n"
        "  fiber 1 waits for semaphore #1: wants 3, 0 free of 4, "
        "for 3.000 s, spawned at SITE\n"
        "  fiber 2 waits for semaphore #1: wants 7, 0 free of 4, passed over: "
        "more than the limit, for 2.000 s, spawned at SITE\n"
        "  fiber 3 waits for semaphore #1: waits for a free permit, "
        "0 free of 4, behind 1, for 0.000 s, spawned at SITE\n");
}

static int wait_group(void *arg)
{
    EXPECT_EQ(px_waitgroup_wait(arg), PX_ESTALLED);
    return 0;
}

static int remove_waiters(void *arg)
{
    px_sem sem = PX_SEM_INIT(-2);
    px_mutex mutex = PX_MUTEX_INIT;
    px_waitgroup wg = PX_WAITGROUP_INIT(3);

    (void)arg;
    EXPECT_EQ(px_mutex_lock(&mutex), 0);
    start(down, &sem);
    start(lock, &mutex);
    start(wait_group, &wg);
    start(wait_group, &wg);
    EXPECT_EQ(px_sem_remove_waiter(&sem, 1), 1);
    EXPECT_EQ(px_mutex_remove_waiter(&mutex, 2), 1);
    EXPECT_EQ(px_waitgroup_remove_waiter(&wg, 3), 1);
    EXPECT_EQ(px_sem_down(&sem), PX_ESTALLED);
    return 0;
}

static void a_removed_waiter_is_said_to_be_in_no_queue(void **state)
{
    (void)state;
    report_of(remove_waiters, NULL);
    assert_golden(
        "parataxis: deadlock: 5 fibers are parked, and nothing can wake them\n"
        "  fiber 0 waits for semaphore #1: wants 1, -2 free, "
        "for 0.000 s\n"
        "  fiber 1 waits for semaphore #1, but was removed from its queue, "
        "for 0.000 s, spawned at SITE\n"
        "  fiber 2 waits for mutex #2, but was removed from its queue, "
        "for 0.000 s, spawned at SITE\n"
        "  fiber 3 waits for waitgroup #3, but was removed from its queue, "
        "for 0.000 s, spawned at SITE\n"
        "  fiber 4 waits for waitgroup #3: 3 to report, for 0.000 s, "
        "spawned at SITE\n");
}

static int lock_and_lose(void *arg)
{
    px_mutex *mutex = malloc(sizeof(px_mutex));

    EXPECT_EQ(px_mutex_init(mutex), 0);
    start(end_as_owner, mutex);
    start(lock, mutex);
    EXPECT_EQ(px_mutex_remove_waiter(mutex, 2), 1);
    /* nobody is queued, and nobody will: what remains may be thrown away */
    memset(mutex, 0xff, sizeof(*mutex));
    free(mutex);
    EXPECT_EQ(px_sem_down(arg), PX_ESTALLED);
    return 0;
}

static void what_a_removed_waiter_waited_for_is_not_read(void **state)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)state;
    report_of(lock_and_lose, &sem);
    normalise();
    assert_non_null(strstr(golden, "fiber 2 waits for mutex #2, but was removed"
                                   " from its queue"));
}

static int open_and_wait(void *arg)
{
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, down, arg), 0);
    EXPECT_EQ(px_group_spawn(&group, down, arg), 0);
    EXPECT_EQ(px_group_wait(&group), PX_ESTALLED);
    return 0;
}

static int spawn_beyond_limit(void *arg)
{
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_set_limit(&group, 2), 0);
    EXPECT_EQ(px_group_spawn(&group, down, arg), 0);
    EXPECT_EQ(px_group_spawn(&group, down, arg), 0);
    EXPECT_EQ(px_group_spawn(&group, down, arg), PX_ESTALLED);
    EXPECT_EQ(px_group_wait(&group), PX_ESTALLED);
    return 0;
}

static int wait_in_groups(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_fiber *all[3];

    (void)arg;
    all[0] = start_handle(open_and_wait, &sem);
    all[1] = start_handle(spawn_beyond_limit, &sem);
    EXPECT_EQ(px_await_all(all, 2, NULL), PX_ESTALLED);
    EXPECT_EQ(px_await_all(all, 2, NULL), 0);
    return 0;
}

static void groups_and_places_in_them_are_reported(void **state)
{
    (void)state;
    report_of(wait_in_groups, NULL);
    assert_golden(
        "parataxis: deadlock: 7 fibers are parked, and nothing can wake them\n"
        "  fiber 0 waits for the end of 2 fibers, for 0.000 s\n"
        "  fiber 1 waits for group #1: 2 children to end, for 0.000 s, "
        "spawned at SITE\n"
        "  fiber 2 waits for semaphore #2: wants 1, 0 free, "
        "for 0.000 s, spawned at SITE\n"
        "  fiber 3 waits for semaphore #2: wants 1, 0 free, behind 1, "
        "for 0.000 s, spawned at SITE\n"
        "  fiber 4 waits for group #3: a place, 2 of 2 taken, "
        "for 0.000 s, spawned at SITE\n"
        "  fiber 5 waits for semaphore #2: wants 1, 0 free, behind 2, "
        "for 0.000 s, spawned at SITE\n"
        "  fiber 6 waits for semaphore #2: wants 1, 0 free, behind 3, "
        "for 0.000 s, spawned at SITE\n");
}

static int open_for_one(void *arg)
{
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, down, arg), 0);
    EXPECT_EQ(px_group_wait(&group), PX_ESTALLED);
    return 0;
}

static int await_all_of_one(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_fiber *one = start_handle(open_for_one, &sem);

    (void)arg;
    EXPECT_EQ(px_await_all(&one, 1, NULL), PX_ESTALLED);
    return px_await(one, NULL);
}

static void one_is_not_reported_in_the_plural(void **state)
{
    (void)state;
    report_of(await_all_of_one, NULL);
    assert_golden(
        "parataxis: deadlock: 3 fibers are parked, and nothing can wake them\n"
        "  fiber 0 waits for the end of 1 fiber, for 0.000 s\n"
        "  fiber 1 waits for group #1: 1 child to end, for 0.000 s, "
        "spawned at SITE\n"
        "  fiber 2 waits for semaphore #2: wants 1, 0 free, for 0.000 s, "
        "spawned at SITE\n");
}

static int await_it(void *arg)
{
    EXPECT_EQ(px_await(arg, NULL), PX_ESTALLED);
    return 0;
}

static int await_chain(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_fiber *first = start_handle(down, &sem);
    px_fiber *second = start_handle(await_it, first);

    (void)arg;
    EXPECT_EQ(px_set_name(first, "first"), 0);
    EXPECT_EQ(px_await(second, NULL), PX_ESTALLED);
    return 0;
}

static void who_awaits_whom_is_reported(void **state)
{
    (void)state;
    report_of(await_chain, NULL);
    assert_golden(
        "parataxis: deadlock: 3 fibers are parked, and nothing can wake them\n"
        "  fiber 0 waits for the end of fiber 2, for 0.000 s\n"
        "  fiber 1 'first' waits for semaphore #1: wants 1, 0 free, "
        "for 0.000 s, spawned at SITE\n"
        "  fiber 2 waits for the end of fiber 1 'first', for 0.000 s, "
        "spawned at SITE\n");
}

/* --- px_dump -------------------------------------------------------------- */

static int sleep_a_minute(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_sleep(PX_MINUTE), PX_ECANCELED);
    return 0;
}

static int wait_fd(void *arg)
{
    const int *wait = arg;

    EXPECT_EQ(px_wait_fd(wait[0], wait[1]), PX_ECANCELED);
    return 0;
}

static int wait_signal(void *arg)
{
    EXPECT_EQ(px_wait_signal(arg), PX_ECANCELED);
    return 0;
}

static int dump_all_states(void *arg)
{
    const int *ends = arg;
    int readable[2] = {ends[0], PX_READABLE};
    int both[2] = {ends[0], PX_READABLE | PX_WRITABLE};
    px_spawn_options queued;
    px_sem sem = PX_SEM_INIT(0);
    sigset_t set;

    memset(&queued, 0, sizeof(queued));
    queued.queued = true;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR2);
    EXPECT_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    start(nothing, NULL);
    (void)start_handle(nothing, NULL);
    start_named("sleeper", sleep_a_minute, NULL);
    start(wait_fd, readable);
    start(wait_fd, both);
    start(wait_signal, &set);
    start(down, &sem);
    EXPECT_EQ(px_spawn_with(NULL, &queued, nothing, NULL), 0);
    EXPECT_EQ(px_sem_up(&sem), 0);
    dump_into_raw(NULL);
    EXPECT_EQ(sigprocmask(SIG_UNBLOCK, &set, NULL), 0);
    return px_stop();
}

static void every_state_and_outer_wait_is_dumped(void **state)
{
    char expected[2048];
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    run_fibers(dump_all_states, ends);
    assert_log("");
    (void)snprintf(
        expected, sizeof(expected),
        "  fiber 0 running\n"
        "  fiber 3 'sleeper' waits for the time 60.000 s, for 0.000 s, "
        "spawned at SITE\n"
        "  fiber 4 waits for descriptor %d to be readable, for 0.000 s, "
        "spawned at SITE\n"
        "  fiber 5 waits for descriptor %d to be readable or writable, "
        "for 0.000 s, spawned at SITE\n"
        "  fiber 6 waits for a signal, for 0.000 s, spawned at SITE\n"
        "  fiber 7 ready, spawned at SITE\n"
        "  fiber 8 new, spawned at SITE\n",
        ends[0], ends[0]);
    assert_golden(expected);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static int connect_in_vain(void *arg)
{
    struct connecting *c = arg;

    EXPECT_EQ(connect_it(c), 0);
    EXPECT_EQ(c->result, PX_ECANCELED);
    return 0;
}

/* A listener whose queue is full. */
static struct sockaddr_un full;
static socklen_t full_size;
static int dumped[2]; /* descriptors */

static int dump_a_writer_and_a_connection(void *arg)
{
    const int *ends = arg;
    int writable[2] = {ends[1], PX_WRITABLE};
    struct connecting c = {.fd = unix_socket(),
                           .address = (struct sockaddr *)&full,
                           .size = full_size};
    px_fiber *fibers[2];

    (void)fill(ends[1]);
    fibers[0] = start_handle(wait_fd, writable);
    fibers[1] = start_handle(connect_in_vain, &c);
    settle();
    dump_into_raw(NULL);
    dumped[0] = ends[1];
    dumped[1] = c.fd;
    for (int i = 0; i < 2; i++)
        EXPECT_EQ(px_cancel_and_await(fibers[i], NULL), 0);
    return px_close(c.fd);
}

static void a_writer_and_a_connection_are_dumped(void **state)
{
    char expected[512];
    int ends[2], listener, filler;

    (void)state;
    open_pipe(ends, 0);
    listener = listen_unix(&full, &full_size, 0, 0);
    filler = unix_socket();
    assert_int_equal(connect(filler, (struct sockaddr *)&full, full_size), 0);
    run_fibers(dump_a_writer_and_a_connection, ends);
    assert_log("");
    (void)snprintf(expected, sizeof(expected),
                   "  fiber 0 running\n"
                   "  fiber 1 waits for descriptor %d to be writable, "
                   "for 0.000 s, spawned at SITE\n"
                   "  fiber 2 waits for descriptor %d to be connected, "
                   "for 0.000 s, spawned at SITE\n",
                   dumped[0], dumped[1]);
    assert_golden(expected);
    assert_int_equal(close(filler), 0);
    assert_int_equal(close(listener), 0);
    close_both(ends);
}

static int dump_later(void *arg)
{
    start_named("sleeper", sleep_a_minute, NULL);
    EXPECT_EQ(px_sleep(1500 * PX_MSEC), 0);
    start_named("late", sleep_a_minute, NULL);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    dump_into_raw(arg);
    return px_stop();
}

static void how_long_a_fiber_has_waited_is_dumped(void **state)
{
    (void)state;
    run_fibers(dump_later, NULL);
    assert_log("");
    assert_golden("  fiber 0 running\n"
                  "  fiber 1 'sleeper' waits for the time 60.000 s, "
                  "for 2.500 s, spawned at SITE\n"
                  "  fiber 2 'late' waits for the time 61.500 s, "
                  "for 1.000 s, spawned at SITE\n");
}

static int offload_nothing(void *arg)
{
    int ends[2] = {((int *)arg)[0], 0};
    char byte;

    return read(ends[0], &byte, 1) == 1 ? 0 : -1;
}

static int offload_it(void *arg)
{
    EXPECT_EQ(px_offload(offload_nothing, arg), 0);
    return 0;
}

static int dump_offload(void *arg)
{
    const int *ends = arg;

    start(offload_it, arg);
    dump_into_raw(NULL);
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    return 0;
}

static void an_offloaded_call_is_dumped(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    run_fibers(dump_offload, ends);
    assert_log("");
    assert_golden("  fiber 0 running\n"
                  "  fiber 1 waits for a call on another thread, "
                  "for 0.000 s, spawned at SITE\n");
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static int dump_in_eager_child(void *arg)
{
    (void)arg;
    dump_into_raw(NULL);
    return 0;
}

static int spawn_dumper(void *arg)
{
    start(dump_in_eager_child, arg);
    return 0;
}

static void an_eager_spawner_is_ready(void **state)
{
    (void)state;
    run_fibers(spawn_dumper, NULL);
    assert_log("");
    assert_golden("  fiber 0 ready\n"
                  "  fiber 1 running, spawned at SITE\n");
}

static int dump_a_cycle(void *arg)
{
    start_named("left", lock_a_then_b, arg);
    start_named("right", lock_b_then_a, arg);
    EXPECT_EQ(px_sleep(5 * PX_SEC), 0);
    dump_into_raw(NULL);
    return 0;
}

static void a_cycle_is_named_while_others_still_run(void **state)
{
    struct locks locks = {PX_MUTEX_INIT, PX_MUTEX_INIT, PX_MUTEX_INIT};
    px_run_options options;

    (void)state;
    memset(&options, 0, sizeof(options));
    options.on_deadlock = be_quiet;
    assert_int_equal(run_fibers_with(options, 0, dump_a_cycle, &locks),
                     PX_ESTALLED);
    assert_log("");
    assert_golden(
        "  fiber 0 running\n"
        "  fiber 1 'left' waits for mutex #1, held by fiber 2 'right', "
        "for 4.000 s, spawned at SITE\n"
        "  fiber 2 'right' waits for mutex #2, held by fiber 1 'left', "
        "for 2.000 s, spawned at SITE\n"
        "  cycle: fiber 1 'left' -> mutex #1 -> fiber 2 'right' -> mutex #2 "
        "-> fiber 1 'left'\n");
}

static void the_callback_may_dump(void **state)
{
    (void)state;
    dump_of(wait_alone, NULL);
    assert_golden("  fiber 0 waits for semaphore #1: wants 1, 0 free, "
                  "for 0.000 s\n");
}

static int dump_on_a_small_stack(void *arg)
{
    errno = 4242;
    EXPECT_EQ(px_dump(arg), 0);
    EXPECT_EQ(errno, 4242);
    return 0;
}

static int fill_and_dump(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_spawn_options options;

    memset(&options, 0, sizeof(options));
    options.stack_size = 1; /* the least there is */
    options.name = "a fiber with quite a long name.";
    for (int i = 0; i < 100; i++)
        EXPECT_EQ(px_spawn_with(NULL, &options, down, &sem), 0);
    EXPECT_EQ(px_spawn_with(NULL, &options, dump_on_a_small_stack, arg), 0);
    EXPECT_EQ(px_sem_up_n(&sem, 100), 0);
    return 0;
}

static void dumping_needs_little_stack(void **state)
{
    FILE *file = tmpfile();
    int lines = 0;
    int c;

    (void)state;
    assert_non_null(file);
    assert_int_equal(setvbuf(file, NULL, _IONBF, 0), 0); /* as stderr is */
    run_fibers(fill_and_dump, file);
    rewind(file);
    while ((c = getc(file)) != EOF)
        lines += c == '\n';
    assert_int_equal(lines, 102);
    (void)fclose(file);
    assert_log("");
}

static int name_oddly(void *arg)
{
    EXPECT_EQ(px_set_name(px_self(), "one\nfiber 1 \x1b[2J\ttwo\x7f"), 0);
    dump_into_raw(arg);
    return 0;
}

static void a_name_can_not_break_a_line(void **state)
{
    (void)state;
    run_fibers(name_oddly, NULL);
    assert_int_equal(strcspn(raw, "\n"), strlen(raw) - 1);
    for (const char *c = raw; c[1]; c++)
        assert_true(isprint((unsigned char)*c));
    assert_log("");
}

static int dump_to_nowhere(void *arg)
{
    (void)arg;
    EXPECT_EQ(px_dump(NULL), PX_EINVAL);
    return 0;
}

static void a_dump_needs_a_file_and_a_run(void **state)
{
    FILE *file = tmpfile();

    (void)state;
    assert_non_null(file);
    assert_int_equal(px_dump(NULL), PX_EINVAL);
    assert_int_equal(px_dump(file), PX_ENOFIBER);
    assert_int_equal(ftell(file), 0);
    (void)fclose(file);
    run_fibers(dump_to_nowhere, NULL);
    assert_log("");
}

/* --- Where it was spawned ------------------------------------------------- */

/* The address that `raw` gives for a fiber's site. */
static uintptr_t site_of(int fiber)
{
    char prefix[32];
    char name[256] = "";
    unsigned long offset = 0;
    Dl_info info;
    const char *line;
    const char *slash;

    (void)snprintf(prefix, sizeof(prefix), "  fiber %d ", fiber);
    line = strstr(raw, prefix);
    line = line ? strstr(line, "spawned at ") : NULL;
    if (!line || sscanf(line, "spawned at %255[^+]+0x%lx", name, &offset) != 2)
        return 0;
    if (!dladdr((void *)(uintptr_t)(void (*)(void))nothing, &info))
        return 0;
    slash = strrchr(info.dli_fname, '/');
    if (strcmp(name, slash ? slash + 1 : info.dli_fname) == 0)
        return (uintptr_t)info.dli_fbase + offset;
    return (uintptr_t)dlsym(RTLD_DEFAULT, name) + offset;
}

static int by_index(size_t i, void *arg)
{
    (void)i;
    return px_sem_down(arg);
}

/* Each spawns one fiber, and is long enough that its site lies within. */
static __attribute__((noinline)) int use_spawn(px_sem *sem)
{
    volatile int error = px_spawn(NULL, down, sem);

    return error;
}

static __attribute__((noinline)) int use_spawn_with(px_sem *sem)
{
    volatile int error = px_spawn_with(NULL, NULL, down, sem);

    return error;
}

static __attribute__((noinline)) int use_waitgroup_go(px_sem *sem)
{
    static px_waitgroup wg;
    volatile int error = px_waitgroup_go(&wg, down, sem);

    return error;
}

static px_group group_used;

static __attribute__((noinline)) int use_group_spawn(px_sem *sem)
{
    volatile int error = px_group_spawn(&group_used, down, sem);

    return error;
}

static __attribute__((noinline)) int use_group_spawn_with(px_sem *sem)
{
    volatile int error = px_group_spawn_with(&group_used, NULL, down, sem);

    return error;
}

static __attribute__((noinline)) int use_map_concurrent(void *sem)
{
    volatile int error = px_map_concurrent(1, 0, by_index, sem);

    return error;
}

static int spawn_in_every_way(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    EXPECT_EQ(use_spawn(&sem), 0);
    EXPECT_EQ(use_spawn_with(&sem), 0);
    EXPECT_EQ(use_waitgroup_go(&sem), 0);
    EXPECT_EQ(px_group_open(&group_used), 0);
    EXPECT_EQ(use_group_spawn(&sem), 0);
    EXPECT_EQ(use_group_spawn_with(&sem), 0);
    EXPECT_EQ(px_spawn(NULL, use_map_concurrent, &sem), 0); /* 6, and 7 in it */
    dump_into_raw(NULL);
    EXPECT_EQ(px_sem_up_n(&sem, 100), 0);
    EXPECT_EQ(px_group_wait(&group_used), 0);
    return 0;
}

static void expect_within(uintptr_t site, uintptr_t function)
{
    EXPECT(site > function);
    EXPECT(site < function + 1024);
}

static void a_site_is_where_the_user_called(void **state)
{
    (void)state;
    run_fibers(spawn_in_every_way, NULL);
    expect_within(site_of(1), (uintptr_t)(void (*)(void))use_spawn);
    expect_within(site_of(2), (uintptr_t)(void (*)(void))use_spawn_with);
    expect_within(site_of(3), (uintptr_t)(void (*)(void))use_waitgroup_go);
    expect_within(site_of(4), (uintptr_t)(void (*)(void))use_group_spawn);
    expect_within(site_of(5), (uintptr_t)(void (*)(void))use_group_spawn_with);
    expect_within(site_of(7), (uintptr_t)(void (*)(void))use_map_concurrent);
    assert_log("");
}

#define TEN_TIMES(text) text text text text text text text text text text
#define LONG_NAME                                                              \
    TEN_TIMES("a_name_that_is_longer_than_a_line_of_a_dump_or_so_it_seems_")

/* The loader knows these, and the second by a name that no line holds. */
int spawn_from_a_known_place(px_sem *sem);
int spawn_from_far_away(px_sem *sem) __asm__(LONG_NAME);

__attribute__((noinline)) int spawn_from_a_known_place(px_sem *sem)
{
    volatile int error = px_spawn(NULL, down, sem);

    return error;
}

__attribute__((noinline)) int spawn_from_far_away(px_sem *sem)
{
    volatile int error = px_spawn(NULL, down, sem);

    return error;
}

static int spawn_from_known_places(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);

    (void)arg;
    EXPECT_EQ(spawn_from_a_known_place(&sem), 0);
    EXPECT_EQ(spawn_from_far_away(&sem), 0);
    EXPECT_EQ(spawn_from_a_known_place(&sem), 0);
    dump_into_raw(NULL);
    return px_sem_up_n(&sem, 3);
}

static void a_site_is_named_as_the_loader_knows_it(void **state)
{
    const char *third, *fourth;

    (void)state;
    run_fibers(spawn_from_known_places, NULL);
    assert_log("");
    assert_non_null(strstr(raw, ", spawned at spawn_from_a_known_place+0x"));
    expect_within(site_of(1),
                  (uintptr_t)(int (*)(px_sem *))spawn_from_a_known_place);
    /* What is too long is cut; the line ends all the same. */
    third = strstr(raw, "  fiber 2 ");
    assert_non_null(third);
    fourth = strchr(third, '\n');
    assert_non_null(fourth);
    assert_in_range(fourth - third, 300, 600);
    assert_memory_equal(strstr(third, ", spawned at ") + 13, LONG_NAME, 200);
    assert_memory_equal(fourth, "\n  fiber 3 ", 11);
    assert_log("");
}

/* An owner has ended, and its stack is about to be another's. */
static int lock_for_a_while(void *arg)
{
    EXPECT_EQ(px_mutex_lock(arg), 0);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    EXPECT_EQ(px_mutex_unlock(arg), 0);
    return 0;
}

static int lock_one_then_the_other(void *arg)
{
    px_mutex *locks = arg;

    PX_WITHIN(time, 5 * PX_MSEC) {
        EXPECT_EQ(px_mutex_lock(&locks[0]), PX_ETIMEDOUT);
    }
    EXPECT_EQ(px_mutex_lock(&locks[1]), 0);
    EXPECT_EQ(px_mutex_unlock(&locks[1]), 0);
    return 0;
}

static int end_later_as_owner(void *arg)
{
    EXPECT_EQ(px_mutex_lock(arg), 0);
    return px_sleep(PX_MSEC);
}

static int dump_beside_an_ended_owner(void *arg)
{
    px_mutex locks[2] = {PX_MUTEX_INIT, PX_MUTEX_INIT};

    (void)arg;
    start(end_later_as_owner, &locks[0]);
    start(lock_one_then_the_other, locks);
    EXPECT_EQ(px_sleep(2 * PX_MSEC), 0);
    dump_into_raw(NULL); /* it has ended, and its stack has not gone back */
    EXPECT(!strstr(raw, "cycle"));
    start(lock_for_a_while, &locks[1]); /* on that stack */
    EXPECT_EQ(px_sleep(6 * PX_MSEC), 0);
    dump_into_raw(NULL);
    EXPECT(strstr(raw, "held by fiber 3"));
    EXPECT(!strstr(raw, "cycle"));
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0); /* the locks are in this frame */
    return 0;
}

static void looking_for_cycles_leaves_nothing_behind(void **state)
{
    (void)state;
    run_fibers(dump_beside_an_ended_owner, NULL);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(R122_S_run_7_one_fiber_alone_is_reported_once),
    PX_TEST(R65_two_locks_taken_crosswise_are_named_as_a_cycle),
    PX_TEST(every_cycle_is_named_once_however_long),
    PX_TEST(R62_an_owner_that_has_ended_is_named),
    PX_TEST(looking_for_cycles_leaves_nothing_behind),
    PX_TEST(a_report_reads_the_clock_for_how_long),
    PX_TEST(an_ended_owner_is_named_after_it_was_awaited),
    PX_TEST(a_lock_left_by_an_earlier_run_is_told_apart),
    PX_TEST(an_owner_that_is_gone_is_not_named),
    PX_TEST(a_lock_made_anew_under_its_waiters_is_free),
    PX_TEST(who_ended_with_several_locks_is_dumped_by_its_new_name),
    PX_TEST(a_long_queue_is_not_counted_to_its_end),
    PX_TEST(R54_a_waiter_passed_over_is_told_from_one_in_line),
    PX_TEST(a_removed_waiter_is_said_to_be_in_no_queue),
    PX_TEST(what_a_removed_waiter_waited_for_is_not_read),
    PX_TEST(groups_and_places_in_them_are_reported),
    PX_TEST(one_is_not_reported_in_the_plural),
    PX_TEST(who_awaits_whom_is_reported),
    PX_TEST(every_state_and_outer_wait_is_dumped),
    PX_TEST(a_writer_and_a_connection_are_dumped),
    PX_TEST(how_long_a_fiber_has_waited_is_dumped),
    PX_TEST(an_offloaded_call_is_dumped),
    PX_TEST(an_eager_spawner_is_ready),
    PX_TEST(a_cycle_is_named_while_others_still_run),
    PX_TEST(the_callback_may_dump),
    PX_TEST(dumping_needs_little_stack),
    PX_TEST(a_name_can_not_break_a_line),
    PX_TEST(a_dump_needs_a_file_and_a_run),
    PX_TEST(a_site_is_where_the_user_called),
    PX_TEST(a_site_is_named_as_the_loader_knows_it),
};

PX_TEST_MAIN(tests)
