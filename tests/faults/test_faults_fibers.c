/* SPDX-License-Identifier: MIT */
/*
 * test_faults_fibers.c - runs, fibers, groups, waits and reports, while calls
 * for memory and others fail.
 */
#include <unistd.h>

#include "fiber.h"
#include "sweep.h"

enum { CROWD = 70 }; /* more than a chunk of records, several slabs of stacks */

static int ended;

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int down(void *arg)
{
    int err = px_sem_down(arg);

    ended++;
    return err;
}

/* Signals have a stack of their own: with a guard, or none at all. */
static int has_a_signal_stack(void *arg)
{
    stack_t stack;

    (void)arg;
    HOLDS(__real_sigaltstack(NULL, &stack) == 0);
    if (has_shadow())
        return 0; /* it has one of its own */
    if (stack.ss_flags & SS_DISABLE)
        HOLDS(inject_hit());
    else
        HOLDS(sweep_is_guarded((const char *)stack.ss_sp - 1));
    return 0;
}

static void a_run_that_cannot_start_says_so(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = has_a_signal_stack});
}

static int has_a_large_signal_stack(void *arg)
{
    stack_t stack;

    HOLDS(__real_sigaltstack(NULL, &stack) == 0);
    if (!has_shadow())
        HOLDS(stack.ss_size == (size_t)inject_signal_stack);
    return has_a_signal_stack(arg);
}

static void where_signals_need_much_they_have_it(void **state)
{
    const struct workload workload = {.body = has_a_large_signal_stack};
    const stack_t none = {.ss_flags = SS_DISABLE};

    (void)state;
    assert_int_equal(__real_sigaltstack(&none, NULL), 0);
    inject_signal_stack = 1024 * 1024;
    sweep_pass(&workload, NULL, 0);
    inject_signal_stack = 0;
    assert_log("");
}

/* Await them all: none may be lost. */
static void await_crowd(px_fiber *const fibers[static CROWD], px_sem *gate,
                        int n)
{
    HOLDS(px_sem_up_n(gate, n) == 0);
    for (int i = 0; i < n; i++) {
        int value = -1;

        if (!is_small())
            HOLDS(!fibers[i]->life ||
                  sweep_is_guarded(fibers[i]->life->stack.low - 1));
        HOLDS(px_await(fibers[i], &value) == 0);
        HOLDS(value == 0);
    }
    HOLDS(ended == n);
}

static int spawns(void *arg)
{
    px_sem gate = PX_SEM_INIT(0);
    px_fiber *fibers[CROWD] = {NULL};
    int err;

    (void)arg;
    ended = 0;
    for (int i = 0; i < CROWD; i++)
        UNTIL_OK(err, px_spawn(&fibers[i], down, &gate), NOMEM,
                 !fibers[i] && px_sem_waiters(&gate) == (size_t)i);
    await_crowd(fibers, &gate, CROWD);
    return 0;
}

static void a_spawn_is_refused(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = spawns});
}

struct job {
    px_sem *gate;
    char text[100];
};

static int job_down(void *arg)
{
    struct job *job = arg;

    HOLDS(strcmp(job->text, "copied") == 0);
    return down(job->gate);
}

static int spawns_with_options(void *arg)
{
    px_sem gate = PX_SEM_INIT(0);
    px_fiber *fibers[CROWD] = {NULL};
    struct job job = {&gate, "copied"};
    enum { N = 30 };
    int err;

    (void)arg;
    ended = 0;
    for (int i = 0; i < N; i++) {
        px_spawn_options options = {
            .name = i % 3 ? "worker" : NULL,
            .stack_size = (size_t)(i % 5) * 32768,
            .queued = i % 2,
            .arg_size = sizeof(job),
        };

        UNTIL_OK(err, px_spawn_with(&fibers[i], &options, job_down, &job),
                 NOMEM, !fibers[i]);
        HOLDS(strcmp(px_name(fibers[i]), i % 3 ? "worker" : "") == 0);
    }
    HOLDS(px_yield() == 0);
    HOLDS(px_sem_waiters(&gate) == N);
    await_crowd(fibers, &gate, N);
    /* Out of what has been used before. */
    for (int i = 0; i < N; i++) {
        px_spawn_options options = {.name = "again"};

        fibers[i] = NULL;
        UNTIL_OK(err, px_spawn_with(&fibers[i], &options, nothing, NULL), NOMEM,
                 !fibers[i]);
        HOLDS(px_await(fibers[i], NULL) == 0);
    }
    return 0;
}

static void a_spawn_with_options_is_refused(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = spawns_with_options});
}

/* Guards of more than a mebibyte are made by mprotect(), and of such stacks
 * only few stay warm: their pages go back, or not. */
static int spawns_large(void *arg)
{
    px_sem gate = PX_SEM_INIT(0);
    px_fiber *fibers[CROWD] = {NULL};
    int err;

    (void)arg;
    for (int round = 0; round < 2; round++) {
        ended = 0;
        for (int i = 0; i < 5; i++)
            UNTIL_OK(err, px_spawn(&fibers[i], down, &gate), NOMEM,
                     px_sem_waiters(&gate) == (size_t)i);
        await_crowd(fibers, &gate, 5);
    }
    return 0;
}

static void a_spawn_of_a_large_stack_is_refused(void **state)
{
    const struct workload workload = {
        .body = spawns_large,
        .options.stack_size = (size_t)512 << 20,
        .options.guard_size = (size_t)2 << 20,
    };

    (void)state;
    if (has_shadow()) {
        print_message("skipped: this tool looks at every byte of a stack\n");
        skip();
    }
    sweep(&workload);
}

static const struct fault no_guards[] = {
    {CALL_madvise, EINVAL, 1, FOR_EVER},
    {CALL_mprotect, ENOMEM, 1, FOR_EVER},
};

static int spawns_without_guards(void *arg)
{
    px_fiber *fiber = NULL;

    (void)arg;
    inject_arm(no_guards, 2);
    for (int i = 0; i < 100; i++)
        HOLDS(px_spawn(&fiber, nothing, NULL) == PX_ENOMEM);
    HOLDS(!fiber);
    HOLDS(inject_count(CALL_mprotect) == 100);
    inject_lift();
    HOLDS(px_spawn(&fiber, nothing, NULL) == 0);
    return fiber ? px_await(fiber, NULL) : 0;
}

static px_sem forever;
static int posted;

/* However often it is refused, nothing is kept of it. */
static int is_refused_often(void *arg)
{
    static const struct fault no_memory = {CALL_memory, ENOMEM, 1, FOR_EVER};
    const px_spawn_options options = {.name = "named", .stack_size = 1 << 20};
    px_loop *loop = px_current_loop();
    struct books before;
    px_group group;

    (void)arg;
    HOLDS(px_post(loop, nothing, NULL) == 0);
    HOLDS(px_yield() == 0);
    HOLDS(px_group_open(&group) == 0);
    for (int i = 0; i < 2; i++) {
        /* Memory ends at once, then there is some, but no guards. */
        inject_arm(i ? no_guards : &no_memory, i ? 2 : 1);
        for (int n = 0; n < 200; n++) {
            if (n == 100)
                before = inject_books();
            HOLDS(px_spawn_with(NULL, &options, nothing, NULL) == PX_ENOMEM);
            HOLDS(px_group_spawn_with(&group, &options, nothing, NULL) ==
                  PX_ENOMEM);
            /* Until all stacks that there are are in use. */
            while (px_post(loop, down, &forever) == 0)
                posted++;
        }
        HOLDS(inject_books().allocations == before.allocations);
        HOLDS(inject_books().bytes_mapped == before.bytes_mapped);
        inject_lift();
    }
    HOLDS(px_group_wait(&group) == 0);
    return px_sem_up_n(&forever, posted);
}

static void what_is_refused_keeps_nothing(void **state)
{
    const struct workload workload = {.body = is_refused_often};

    (void)state;
    posted = 0;
    (void)px_sem_init(&forever, 0);
    sweep_pass(&workload, NULL, 0);
    assert_log("");
}

static void without_a_guard_there_is_no_fiber(void **state)
{
    const struct workload workload = {.body = spawns_without_guards};
    int value = 1;

    (void)state;
    sweep_pass(&workload, NULL, 0);
    inject_arm(no_guards, 2);
    assert_int_equal(px_run(nothing, &value), PX_ENOMEM);
    inject_lift();
    assert_log("");
}

static int group_children(void *arg)
{
    px_sem gate = PX_SEM_INIT(0);
    px_group group;
    int err;

    (void)arg;
    ended = 0;
    HOLDS(px_group_open(&group) == 0);
    for (int i = 0; i < 20; i++)
        UNTIL_OK(err, px_group_spawn(&group, down, &gate), NOMEM,
                 group.running == i && px_sem_waiters(&gate) == (size_t)i);
    HOLDS(px_group_set_limit(&group, 22) == 0);
    for (int i = 20; i < 22; i++) {
        const px_spawn_options options = {.name = "child", .queued = true};

        UNTIL_OK(err, px_group_spawn_with(&group, &options, down, &gate), NOMEM,
                 group.running == i);
    }
    HOLDS(px_sem_up_n(&gate, 22) == 0);
    HOLDS(px_group_wait(&group) == 0);
    HOLDS(ended == 22);
    return 0;
}

static void a_group_is_as_it_was(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = group_children});
}

/* The place of a spawn that failed goes to the next who waits. */
static int spawns_a_sibling(void *arg)
{
    int err;

    UNTIL_OK(err, px_group_spawn(arg, nothing, NULL), NOMEM, true);
    ended += err == 0;
    return err;
}

static int groups_at_the_limit(void *arg)
{
    px_group group;
    px_fiber *fibers[20] = {NULL};
    int err;

    (void)arg;
    ended = 0;
    HOLDS(px_group_open(&group) == 0);
    HOLDS(px_group_set_limit(&group, 2) == 0);
    for (int i = 0; i < 20; i++)
        UNTIL_OK(err, px_spawn(&fibers[i], spawns_a_sibling, &group), NOMEM,
                 !fibers[i]);
    HOLDS(px_await_all(fibers, 20, NULL) == 0);
    HOLDS(px_group_wait(&group) == 0);
    HOLDS(ended == 20);
    return 0;
}

static void a_place_in_a_group_is_not_lost(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = groups_at_the_limit});
}

static int waitgroup_children(void *arg)
{
    px_sem gate = PX_SEM_INIT(0);
    px_waitgroup wg = PX_WAITGROUP_INIT(0);
    int err;

    (void)arg;
    ended = 0;
    for (int i = 0; i < CROWD; i++)
        UNTIL_OK(err, px_waitgroup_go(&wg, down, &gate), NOMEM,
                 px_waitgroup_count(&wg) == i);
    HOLDS(px_sem_up_n(&gate, CROWD) == 0);
    HOLDS(px_waitgroup_wait(&wg) == 0);
    HOLDS(ended == CROWD);
    return 0;
}

static void a_waitgroup_is_as_it_was(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = waitgroup_children});
}

static int mapping, mapped;

static int map_one(size_t i, void *arg)
{
    int err;

    (void)i;
    (void)arg;
    mapping++;
    err = px_sleep(PX_SEC);
    mapping--;
    mapped += err == 0;
    return err;
}

static int maps(void *arg)
{
    px_nsec begin = px_now();
    int err;

    (void)arg;
    mapping = 0;
    UNTIL_OK(err, (mapped = 0, px_map_concurrent(40, 0, map_one, NULL)), NOMEM,
             mapping == 0 && px_now() == begin);
    HOLDS(mapped == 40 && mapping == 0);
    UNTIL_OK(err, (mapped = 0, px_map_concurrent(40, 7, map_one, NULL)), NOMEM,
             mapping == 0);
    HOLDS(mapped == 40 && mapping == 0);
    return 0;
}

static void a_map_cancels_what_it_started(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = maps});
}

static int names(void *arg)
{
    px_fiber *fiber = NULL;
    int err;

    (void)arg;
    UNTIL_OK(err, px_set_name(px_self(), "first"), NOMEM,
             strcmp(px_name(px_self()), "") == 0);
    UNTIL_OK(err, px_set_name(px_self(), "second"), NOMEM,
             strcmp(px_name(px_self()), "first") == 0);
    UNTIL_OK(err, px_spawn(&fiber, nothing, NULL), NOMEM, !fiber);
    UNTIL_OK(err, px_set_name(fiber, "ended"), NOMEM,
             strcmp(px_name(fiber), "") == 0);
    UNTIL_OK(err, px_set_name(fiber, "again"), NOMEM,
             strcmp(px_name(fiber), "ended") == 0);
    HOLDS(strcmp(px_name(fiber), "again") == 0);
    HOLDS(px_set_name(px_self(), NULL) == 0);
    return 0; /* and the handle is never consumed */
}

static void a_name_is_as_it_was(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = names});
}

static int lock_and_sleep(void *arg)
{
    int err = px_mutex_lock(arg);

    if (!err) {
        err = px_sleep(10 * PX_MSEC);
        HOLDS(px_mutex_unlock(arg) == 0);
    }
    return err;
}

static int wait_for_group(void *arg)
{
    return px_waitgroup_wait(arg);
}

/* Waits ask the system for nothing, whatever becomes of them. */
static int waits_under_timeouts(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_mutex mutex = PX_MUTEX_INIT;
    px_waitgroup wg = PX_WAITGROUP_INIT(1);
    px_fiber *holder = NULL;
    px_scope scope;
    long before;
    int err;

    (void)arg;
    UNTIL_OK(err, px_spawn(&holder, lock_and_sleep, &mutex), NOMEM, !holder);
    before = inject_total();
    HOLDS(px_with_timeout(PX_MSEC, down, &sem) == PX_ETIMEDOUT);
    HOLDS(px_sem_count(&sem) == 0 && px_sem_waiters(&sem) == 0);
    HOLDS(px_with_timeout(PX_MSEC, lock_and_sleep, &mutex) == PX_ETIMEDOUT);
    HOLDS(px_mutex_owner(&mutex) == px_id(holder));
    HOLDS(px_with_timeout(PX_MSEC, wait_for_group, &wg) == PX_ETIMEDOUT);
    HOLDS(px_waitgroup_count(&wg) == 1);
    HOLDS(px_scope_enter(&scope, PX_MSEC) == 0);
    HOLDS(px_sleep(PX_SEC) == PX_ETIMEDOUT);
    HOLDS(px_scope_leave(&scope) == PX_ETIMEDOUT);
    HOLDS(px_with_timeout(PX_SEC, lock_and_sleep, &mutex) == 0);
    HOLDS(inject_total() == before);
    HOLDS(px_await(holder, NULL) == 0);
    return 0;
}

static void a_wait_is_none_the_wiser(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = waits_under_timeouts});
}

static int sleeps(void *arg)
{
    px_nsec length = (px_nsec)(intptr_t)arg, begin = px_now();
    int err;

    UNTIL_OK(err, px_sleep(length), 0, false);
    HOLDS(px_now() - begin >= length);
    ended++;
    return 0;
}

static int sleeps_in_turn(void *arg)
{
    px_fiber *fibers[3] = {NULL};
    int err;

    (void)arg;
    ended = 0;
    for (int i = 0; i < 3; i++)
        UNTIL_OK(err,
                 px_spawn(&fibers[i], sleeps, (void *)(intptr_t)(30000 * i)),
                 NOMEM, !fibers[i]);
    HOLDS(px_await_all(fibers, 3, NULL) == 0);
    (void)px_current_loop(); /* from here on the poller sleeps */
    (void)sleeps((void *)(intptr_t)20000);
    (void)sleeps((void *)(intptr_t)PX_MSEC);
    HOLDS(ended == 5);
    return 0;
}

static void a_sleep_is_never_short(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = sleeps_in_turn, .real = true});
}

/* --- Reports -------------------------------------------------------------- */

static FILE *report;
static int stderr_kept;

static void open_report(void)
{
    report = fopen("/dev/null", "w");
    assert_non_null(report);
}

static void close_report(void)
{
    (void)fclose(report);
}

static int dumps(void *arg)
{
    px_sem gate = PX_SEM_INIT(0);
    px_fiber *fiber = NULL;
    int err;

    (void)arg;
    UNTIL_OK(err, px_spawn(&fiber, down, &gate), NOMEM, !fiber);
    for (int i = 0; i < 2; i++)
        UNTIL_OK(err, px_dump(report), 0, false);
    HOLDS(px_sem_up(&gate) == 0);
    return px_await(fiber, NULL);
}

static void a_dump_keeps_errno(void **state)
{
    (void)state;
    sweep(&(struct workload){
        .body = dumps, .set_up = open_report, .tear_down = close_report});
}

/* Then an address has to do. */
static int dumps_what_the_loader_does_not_know(void *arg)
{
    static const struct fault nobody_knows = {CALL_dladdr, ENOENT, 1, FOR_EVER};
    px_sem gate = PX_SEM_INIT(0);
    px_fiber *fiber = NULL;
    char text[512];
    const char *site;
    size_t n;

    (void)arg;
    HOLDS(px_spawn(&fiber, down, &gate) == 0);
    inject_arm(&nobody_knows, 1);
    HOLDS(px_dump(report) == 0);
    inject_lift();
    rewind(report);
    n = fread(text, 1, sizeof(text) - 1, report);
    text[n] = '\0';
    site = strstr(text, ", spawned at 0x");
    HOLDS(site && strtoul(site + 13, NULL, 16) == (uintptr_t)fiber->life->site);
    HOLDS(px_sem_up(&gate) == 0);
    return px_await(fiber, NULL);
}

static void open_readable_report(void)
{
    report = tmpfile();
    assert_non_null(report);
}

static void a_site_that_nobody_knows_is_an_address(void **state)
{
    const struct workload workload = {.body =
                                          dumps_what_the_loader_does_not_know,
                                      .set_up = open_readable_report,
                                      .tear_down = close_report};

    (void)state;
    sweep_pass(&workload, NULL, 0);
    assert_log("");
}

static void quiet_stderr(void)
{
    open_report();
    (void)fflush(stderr);
    stderr_kept = dup(2);
    (void)dup2(fileno(report), 2);
}

static void loud_stderr(void)
{
    (void)dup2(stderr_kept, 2);
    (void)__real_close(stderr_kept);
    close_report();
}

static int deadlocks(void *arg)
{
    px_sem gate = PX_SEM_INIT(0);
    px_fiber *fiber = NULL;
    int err, value = 0;

    (void)arg;
    ended = 0;
    UNTIL_OK(err, px_spawn(&fiber, down, &gate), NOMEM, !fiber);
    HOLDS(px_sem_down(&gate) == PX_ESTALLED);
    HOLDS(px_await(fiber, &value) == 0);
    HOLDS(value == PX_ESTALLED && ended == 1);
    return 0;
}

static void a_deadlock_ends_though_nobody_reads_the_report(void **state)
{
    (void)state;
    sweep(&(struct workload){
        .body = deadlocks, .set_up = quiet_stderr, .tear_down = loud_stderr});
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_run_that_cannot_start_says_so),
    PX_TEST(where_signals_need_much_they_have_it),
    PX_TEST(a_spawn_is_refused),
    PX_TEST(a_spawn_with_options_is_refused),
    PX_TEST(a_spawn_of_a_large_stack_is_refused),
    PX_TEST(without_a_guard_there_is_no_fiber),
    PX_TEST(what_is_refused_keeps_nothing),
    PX_TEST(a_group_is_as_it_was),
    PX_TEST(a_place_in_a_group_is_not_lost),
    PX_TEST(a_waitgroup_is_as_it_was),
    PX_TEST(a_map_cancels_what_it_started),
    PX_TEST(a_name_is_as_it_was),
    PX_TEST(a_wait_is_none_the_wiser),
    PX_TEST(a_sleep_is_never_short),
    PX_TEST(a_dump_keeps_errno),
    PX_TEST(a_site_that_nobody_knows_is_an_address),
    PX_TEST(a_deadlock_ends_though_nobody_reads_the_report),
};

PX_TEST_MAIN(tests)
