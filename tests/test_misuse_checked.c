/* SPDX-License-Identifier: MIT */
/*
 * test_misuse_checked.c - misuse that is undefined, and that a checked build
 * (PARATAXIS_CHECKED) ends with one line: which call, by which fiber, of what.
 *
 * Every public call that takes an object or a handle is tried on one that was
 * destroyed, never initialised, consumed, or is another thread's. In other
 * builds there is nothing to test.
 */
#include <pthread.h>
#include <unistd.h>

#include "support/px_death.h"

#ifdef PX_CHECKED

static px_sem sem;
static px_mutex mutex;
static px_waitgroup wg;
static px_scope scope;
static px_group group;
static px_fiber *handle;
static px_fid ids[4];

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* Every call, by name; px_waitgroup_done() is px_waitgroup_add() by another. */
#define SEM_CALLS(CALL)                                                        \
    CALL(px_sem_destroy, px_sem_destroy(&sem))                                 \
    CALL(px_sem_down, px_sem_down(&sem))                                       \
    CALL(px_sem_down_n, px_sem_down_n(&sem, 2))                                \
    CALL(px_sem_up, px_sem_up(&sem))                                           \
    CALL(px_sem_up_n, px_sem_up_n(&sem, 2))                                    \
    CALL(px_sem_try_down, px_sem_try_down(&sem))                               \
    CALL(px_sem_try_down_n, px_sem_try_down_n(&sem, 2))                        \
    CALL(px_sem_adjust, px_sem_adjust(&sem, -1))                               \
    CALL(px_sem_set_limit, px_sem_set_limit(&sem, 2))                          \
    CALL(px_sem_wait_available, px_sem_wait_available(&sem))                   \
    CALL(px_sem_close, px_sem_close(&sem))                                     \
    CALL(px_sem_count, px_sem_count(&sem))                                     \
    CALL(px_sem_limit, px_sem_limit(&sem))                                     \
    CALL(px_sem_waiters, px_sem_waiters(&sem))                                 \
    CALL(px_sem_waiter_ids, px_sem_waiter_ids(&sem, ids, 4))                   \
    CALL(px_sem_remove_waiter, px_sem_remove_waiter(&sem, 1))
#define MUTEX_CALLS(CALL)                                                      \
    CALL(px_mutex_destroy, px_mutex_destroy(&mutex))                           \
    CALL(px_mutex_lock, px_mutex_lock(&mutex))                                 \
    CALL(px_mutex_try_lock, px_mutex_try_lock(&mutex))                         \
    CALL(px_mutex_unlock, px_mutex_unlock(&mutex))                             \
    CALL(px_mutex_owner, px_mutex_owner(&mutex))                               \
    CALL(px_mutex_waiters, px_mutex_waiters(&mutex))                           \
    CALL(px_mutex_waiter_ids, px_mutex_waiter_ids(&mutex, ids, 4))             \
    CALL(px_mutex_remove_waiter, px_mutex_remove_waiter(&mutex, 1))
#define WAITGROUP_CALLS(CALL)                                                  \
    CALL(px_waitgroup_destroy, px_waitgroup_destroy(&wg))                      \
    CALL(px_waitgroup_add, px_waitgroup_add(&wg, 1))                           \
    CALL(px_waitgroup_go, px_waitgroup_go(&wg, nothing, NULL))                 \
    CALL(px_waitgroup_wait, px_waitgroup_wait(&wg))                            \
    CALL(px_waitgroup_count, px_waitgroup_count(&wg))                          \
    CALL(px_waitgroup_waiters, px_waitgroup_waiters(&wg))                      \
    CALL(px_waitgroup_waiter_ids, px_waitgroup_waiter_ids(&wg, ids, 4))        \
    CALL(px_waitgroup_remove_waiter, px_waitgroup_remove_waiter(&wg, 1))
#define GROUP_CALLS(CALL)                                                      \
    CALL(px_group_spawn, px_group_spawn(&group, nothing, NULL))                \
    CALL(px_group_cancel, px_group_cancel(&group))                             \
    CALL(px_group_wait, px_group_wait(&group))                                 \
    CALL(px_group_set_limit, px_group_set_limit(&group, 3))
#define SCOPE_CALLS(CALL)                                                      \
    CALL(px_scope_leave, px_scope_leave(&scope))                               \
    CALL(px_scope_cancel, px_scope_cancel(&scope))                             \
    CALL(px_scope_set_deadline, px_scope_set_deadline(&scope, 1))              \
    CALL(px_scope_remaining, px_scope_remaining(&scope))                       \
    CALL(px_scope_status, px_scope_status(&scope))                             \
    CALL(px_scope_shield, px_scope_shield(&scope, true))
#define HANDLE_CALLS(CALL)                                                     \
    CALL(px_await, px_await(handle, NULL))                                     \
    CALL(px_await_all, px_await_all(&handle, 1, NULL))                         \
    CALL(px_detach, px_detach(handle))                                         \
    CALL(px_cancel, px_cancel(handle))                                         \
    CALL(px_cancel_and_await, px_cancel_and_await(handle, NULL))               \
    CALL(px_is_done, px_is_done(handle))                                       \
    CALL(px_id, px_id(handle) == 0)                                            \
    CALL(px_name, px_name(handle) == NULL)                                     \
    CALL(px_set_name, px_set_name(handle, "x"))

struct call {
    const char *name;
    void (*make)(void);
};

#define DEFINE(name, expression)                                               \
    static void call_##name(void)                                              \
    {                                                                          \
        (void)!(expression);                                                   \
    }
#define LISTED(name, expression) {#name, call_##name},

SEM_CALLS(DEFINE)
MUTEX_CALLS(DEFINE)
WAITGROUP_CALLS(DEFINE)
GROUP_CALLS(DEFINE)
SCOPE_CALLS(DEFINE)
HANDLE_CALLS(DEFINE)

static const struct call on_objects[] = {
    SEM_CALLS(LISTED) MUTEX_CALLS(LISTED) WAITGROUP_CALLS(LISTED){NULL, NULL}};
static const struct call on_sems[] = {SEM_CALLS(LISTED){NULL, NULL}};
static const struct call on_scopes[] = {GROUP_CALLS(LISTED)
                                            SCOPE_CALLS(LISTED){NULL, NULL}};
static const struct call on_groups[] = {GROUP_CALLS(LISTED){NULL, NULL}};
static const struct call on_handles[] = {HANDLE_CALLS(LISTED){NULL, NULL}};

/* The line names the call, who made it, and what was wrong. */
static void expect_line(const struct call *call, const char *who,
                        const char *cause)
{
    char begin[128];

    expect_one_line();
    (void)snprintf(begin, sizeof(begin), "parataxis: %s: %s: ", call->name,
                   who);
    expect_said(begin);
    expect_said(cause);
}

/* --- Objects that are none ------------------------------------------------ */

static void use_destroyed(void *arg)
{
    const struct call *call = arg;

    if (px_sem_init_bounded(&sem, 1) || px_mutex_init(&mutex) ||
        px_waitgroup_init(&wg, 0) || px_sem_destroy(&sem) ||
        px_mutex_destroy(&mutex) || px_waitgroup_destroy(&wg))
        _exit(1);
    call->make();
}

static void use_uninitialised(void *arg)
{
    const struct call *call = arg;

    memset(&sem, 0xa5, sizeof(sem));
    memset(&mutex, 0xa5, sizeof(mutex));
    memset(&wg, 0xa5, sizeof(wg));
    memset(&scope, 0xa5, sizeof(scope));
    memset(&group, 0xa5, sizeof(group));
    call->make();
}

static int use_uninitialised_inside(void *arg)
{
    use_uninitialised(arg);
    return 0;
}

static void use_uninitialised_on_a_fiber(void *arg)
{
    (void)px_run(use_uninitialised_inside, arg);
}

static void a_destroyed_object_aborts_whatever_is_called(void **state)
{
    (void)state;
    for (const struct call *call = on_objects; call->name; call++) {
        expect_abort(use_destroyed, (void *)call);
        expect_line(call, "off-fiber", "was destroyed");
    }
}

static void an_object_never_initialised_aborts_whatever_is_called(void **state)
{
    (void)state;
    for (const struct call *call = on_objects; call->name; call++) {
        expect_abort(use_uninitialised, (void *)call);
        expect_line(call, "off-fiber", "was never initialised");
    }
    for (const struct call *call = on_scopes; call->name; call++) {
        expect_abort(use_uninitialised_on_a_fiber, (void *)call);
        expect_line(call, "fiber 0", "was never initialised");
    }
}

/* A semaphore does not know who holds its permits: so it can be destroyed under
 * a guard, which finds that out. */
static int destroy_under_a_guard(void *arg)
{
    (void)arg;
    if (px_sem_init_bounded(&sem, 1))
        return 1;
    PX_SEM_GUARD(permit, &sem);
    return permit.status || px_sem_destroy(&sem);
}

static void run_destroy_under_a_guard(void *arg)
{
    (void)px_run(destroy_under_a_guard, arg);
}

static void R49_a_guard_of_a_destroyed_semaphore_aborts(void **state)
{
    const struct call call = {"px_sem_up", NULL};

    (void)state;
    expect_abort(run_destroy_under_a_guard, NULL);
    expect_line(&call, "fiber 0", "was destroyed");
}

/* --- Handles that were consumed ------------------------------------------- */

static int yield_once(void *arg)
{
    (void)arg;
    return px_yield();
}

static int end_with_lock(void *arg)
{
    (void)arg;
    return px_mutex_lock(&mutex);
}

static int consume_of_ended(void)
{
    handle = start_handle(nothing, NULL);
    return px_await(handle, NULL);
}

static int consume_of_running(void)
{
    handle = start_handle(yield_once, NULL);
    return px_await(handle, NULL);
}

static int consume_of_owner(void)
{
    if (px_mutex_init(&mutex))
        return 1;
    handle = start_handle(end_with_lock, NULL);
    return px_await(handle, NULL);
}

static int consume_with_another(void)
{
    px_fiber *two[2] = {start_handle(yield_once, NULL),
                        start_handle(nothing, NULL)};

    handle = two[0];
    return px_await_all(two, 2, NULL);
}

static int consume_cancelled(void)
{
    handle = start_handle(yield_once, NULL);
    return px_cancel_and_await(handle, NULL);
}

static int consume_by_detaching(void)
{
    handle = start_handle(nothing, NULL); /* has ended, so that it goes */
    return px_detach(handle);
}

static int (*const consume[])(void) = {
    consume_of_ended,     consume_of_running, consume_of_owner,
    consume_with_another, consume_cancelled,  consume_by_detaching,
};

struct consumed {
    int (*consume)(void);
    const struct call *call;
};

static int use_consumed(void *arg)
{
    const struct consumed *c = arg;

    if (c->consume())
        _exit(1);
    c->call->make();
    return 0;
}

static void run_consumed(void *arg)
{
    (void)px_run(use_consumed, arg);
}

static void a_consumed_handle_aborts_however_it_was_consumed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(consume) / sizeof(consume[0]); i++) {
        for (const struct call *call = on_handles; call->name; call++) {
            struct consumed c = {consume[i], call};

            expect_abort(run_consumed, &c);
            expect_line(call, "fiber 0", "the handle was consumed");
        }
    }
}

/* --- What is another thread's --------------------------------------------- */

struct foreign {
    const struct call *call;
    int on_fiber;  /* of the other thread's own run */
    int64_t limit; /* of the semaphore: 1 has its waiter passed over */
};

static int down_two(void *arg)
{
    (void)arg;
    return px_sem_down_n(&sem, 2);
}

static int lock_it(void *arg)
{
    (void)arg;
    return px_mutex_lock(&mutex);
}

static int wait_for_it(void *arg)
{
    (void)arg;
    return px_waitgroup_wait(&wg);
}

static int call_on_fiber(void *arg)
{
    const struct foreign *f = arg;

    f->call->make();
    return 0;
}

static void *call_from_thread(void *arg)
{
    const struct foreign *f = arg;

    if (f->on_fiber)
        (void)px_run(call_on_fiber, arg);
    else
        (void)call_on_fiber(arg);
    return NULL;
}

/* Everything that can be reached into: objects with a waiter, an open group, a
 * fiber that is parked. */
static int let_a_thread_reach_in(void *arg)
{
    const struct foreign *f = arg;
    pthread_t thread;

    if (px_sem_init_bounded(&sem, f->limit) || px_sem_try_down(&sem) ||
        px_mutex_init(&mutex) || px_mutex_lock(&mutex) ||
        px_waitgroup_init(&wg, 1) || px_group_open(&group))
        _exit(1);
    start(down_two, NULL);
    start(lock_it, NULL);
    handle = start_handle(wait_for_it, NULL);
    if (pthread_create(&thread, NULL, call_from_thread, arg) ||
        pthread_join(thread, NULL))
        _exit(1);
    _exit(0); /* what it did is undefined: nothing goes on */
}

static void run_let_a_thread_reach_in(void *arg)
{
    (void)px_run(let_a_thread_reach_in, arg);
}

static void expect_foreign(const struct call *calls, int64_t limit,
                           const char *what)
{
    for (const struct call *call = calls; call->name; call++) {
        for (int on_fiber = 0; on_fiber < 2; on_fiber++) {
            struct foreign f = {call, on_fiber, limit};

            expect_abort(run_let_a_thread_reach_in, &f);
            expect_line(call, on_fiber ? "fiber 0" : "off-fiber", what);
            expect_said("is another thread's");
        }
    }
}

static void another_threads_objects_abort_while_it_waits_on_them(void **state)
{
    (void)state;
    expect_foreign(on_objects, 2, "a waiter of object ");
    expect_foreign(on_sems, 1, "a waiter of object ");
}

static void another_threads_fibers_and_groups_abort(void **state)
{
    (void)state;
    expect_foreign(on_handles, 2, "fiber ");
    expect_foreign(on_groups, 2, "group ");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_destroyed_object_aborts_whatever_is_called),
    PX_TEST(an_object_never_initialised_aborts_whatever_is_called),
    PX_TEST(R49_a_guard_of_a_destroyed_semaphore_aborts),
    PX_TEST(a_consumed_handle_aborts_however_it_was_consumed),
    PX_TEST(another_threads_objects_abort_while_it_waits_on_them),
    PX_TEST(another_threads_fibers_and_groups_abort),
};

PX_TEST_MAIN(tests)

#else

int main(void)
{
    (void)puts("skipped: not a checked build (PARATAXIS_CHECKED)");
    return 77;
}

#endif
