/* SPDX-License-Identifier: MIT */
/*
 * test_semantics.c - docs/semantics.md, row by row, against the library.
 *
 * Three programs, each with a table. Here ROW has the first five columns of
 * each of the document's rows, and a call that need not wait.
 * test_semantics_waits.c has a call that must wait, for each that may park;
 * test_semantics_codes.c a call for each other code that a row names.
 * tests/semantics/check_semantics.py sees to it that the tables and the
 * document agree, and that none of the document's rows or codes is left out.
 */
#include "semantics/given.h"

#include <errno.h>
#include <unistd.h>

/* What stands in the columns; a code or another constant stands for itself. */
enum { NO, YES, AS_FN };
#define WORKS 1000001LL         /* as in a fiber */
#define WORKS_IF_FREE 1000002LL /* as in a fiber, but it cannot wait */
#define NO_OBJECT 1000003LL     /* it takes none */
#define NOTHING 0LL
#define NONE 0LL

enum {
    SWITCHES = 1, /* lets others run even where it need not wait */
    SYSTEM = 2,   /* a wrapper of system calls: errno may change */
    IN_RUN = 4    /* what it is given exists only in a run */
};

/* -- calls of more than one step -- */

/* Inside a run no other can be had; that counts as done. */
static long long outside(long long result)
{
    return own.in_run && result == PX_EBUSY ? TAKEN : result;
}

static long long enter(struct env *e, bool until)
{
    int code = until ? px_scope_enter_until(e->fresh_scope, PX_FOREVER)
                     : px_scope_enter(e->fresh_scope, PX_SEC);

    if (code == 0)
        EXPECT_EQ(px_scope_leave(e->fresh_scope), 0);
    return code;
}

static long long open_group(struct env *e)
{
    int code = px_group_open(e->fresh_group);

    if (code == 0)
        (void)!px_group_wait(e->fresh_group);
    return code;
}

static long long hold_loop(struct env *e)
{
    int code = px_loop_hold(e->loop);

    if (code == 0)
        EXPECT_EQ(px_loop_unhold(e->loop), 0);
    return code;
}

static long long unhold_loop(struct env *e)
{
    if (e->loop)
        EXPECT_EQ(px_loop_hold(e->loop), 0);
    return px_loop_unhold(e->loop);
}

static long long sem_guard_begin(struct env *e)
{
    px_sem_guard guard = px_sem_guard_begin(e->sem);

    px_sem_guard_release(&guard);
    return guard.status;
}

static long long sem_guard(struct env *e)
{
    PX_SEM_GUARD(guard, e->sem);
    return guard.status;
}

static long long sem_hold(struct env *e)
{
    int code, inside = 0;

    PX_SEM_HOLD(e->sem, code)
    {
        inside = 1;
    }
    EXPECT_EQ(inside, code == 0);
    return code;
}

static long long sem_guard_release(struct env *e)
{
    px_sem_guard_release(e->sem_guard);
    return 0;
}

static long long mutex_guard_begin(struct env *e)
{
    px_mutex_guard guard = px_mutex_guard_begin(e->mutex);

    px_mutex_guard_release(&guard);
    return guard.status;
}

static long long mutex_guard(struct env *e)
{
    PX_MUTEX_GUARD(guard, e->mutex);
    return guard.status;
}

static long long mutex_hold(struct env *e)
{
    int code, inside = 0;

    PX_MUTEX_HOLD(e->mutex, code)
    {
        inside = 1;
    }
    EXPECT_EQ(inside, code == 0);
    return code;
}

static long long mutex_guard_release(struct env *e)
{
    px_mutex_guard_release(e->mutex_guard);
    return 0;
}

static long long scope_guard_release(struct env *e)
{
    px_scope_guard_release(e->fresh_scope);
    return 0;
}

static long long within(struct env *e)
{
    long long inside = 0;

    (void)e;
    PX_WITHIN(limit, PX_SEC)
    {
        inside = 1 + px_scope_status(&limit);
    }
    return inside;
}

static long long accept_one(struct env *e)
{
    int fd = px_accept(e->listener, NULL, NULL);

    if (fd >= 0)
        (void)close(fd);
    return fd >= 0 ? TAKEN : fd;
}

static long long close_one(struct env *e)
{
    int code = px_close(e->closable);

    if (code == 0)
        forget_descriptor(e->closable);
    return code;
}

static const px_run_options default_run;
static const px_spawn_options default_spawn;
static px_fid ids[4];

/*
 * call, parks, point, off a fiber, NULL; more about it; what it returns where
 * nothing is in its way; the call.
 */
#define ROWS(ROW)                                                              \
    ROW(px_run, NO, NO, WORKS, PX_EINVAL, 0, TAKEN,                            \
        outside(px_run(e->fn, NULL)))                                          \
    ROW(px_run_with, NO, NO, WORKS, PX_EINVAL, 0, TAKEN,                       \
        outside(px_run_with(&default_run, e->fn, NULL)))                       \
    ROW(px_spawn, NO, NO, PX_ENOFIBER, PX_EINVAL, 0, 0,                        \
        px_spawn(NULL, e->fn, NULL))                                           \
    ROW(px_spawn_with, NO, NO, PX_ENOFIBER, PX_EINVAL, 0, 0,                   \
        px_spawn_with(NULL, &default_spawn, e->fn, NULL))                      \
    ROW(px_await, YES, YES, WORKS_IF_FREE, PX_EINVAL, IN_RUN, 0,               \
        px_await(e->ended, NULL))                                              \
    ROW(px_await_all, YES, YES, WORKS_IF_FREE, PX_EINVAL, IN_RUN, 0,           \
        px_await_all(&e->ended, 1, NULL))                                      \
    ROW(px_detach, NO, NO, WORKS, PX_EINVAL, IN_RUN, 0, px_detach(e->parked))  \
    ROW(px_cancel, NO, NO, WORKS, PX_EINVAL, IN_RUN, 0, px_cancel(e->parked))  \
    ROW(px_cancel_and_await, YES, NO, WORKS_IF_FREE, PX_EINVAL, IN_RUN, 0,     \
        px_cancel_and_await(e->ended, NULL))                                   \
    ROW(px_is_done, NO, NO, WORKS, 0, IN_RUN, 1, px_is_done(e->ended))         \
    ROW(px_self, NO, NO, NONE, NO_OBJECT, 0, 1, px_self() != NULL)             \
    ROW(px_current_id, NO, NO, PX_NO_FIBER, NO_OBJECT, 0, 0, px_current_id())  \
    ROW(px_id, NO, NO, WORKS, PX_NO_FIBER, IN_RUN, ANY, px_id(e->parked))      \
    ROW(px_name, NO, NO, WORKS, NONE, IN_RUN, 'p', *px_name(e->parked))        \
    ROW(px_set_name, NO, NO, WORKS, PX_EINVAL, IN_RUN, 0,                      \
        px_set_name(e->parked, "renamed"))                                     \
    ROW(px_yield, YES, YES, PX_ENOFIBER, NO_OBJECT, SWITCHES, 0, px_yield())   \
    ROW(px_sleep, YES, YES, PX_ENOFIBER, NO_OBJECT, SWITCHES, 0,               \
        px_sleep(PX_MSEC))                                                     \
    ROW(px_sleep_until, YES, YES, PX_ENOFIBER, NO_OBJECT, SWITCHES, 0,         \
        px_sleep_until(px_now() + PX_MSEC))                                    \
    ROW(px_stop, NO, NO, PX_ENOFIBER, NO_OBJECT, 0, 0, px_stop())              \
    ROW(px_dump, NO, NO, PX_ENOFIBER, PX_EINVAL, 0, 0, px_dump(e->file))       \
                                                                               \
    ROW(px_sem_init, NO, NO, WORKS, PX_EINVAL, 0, 0, px_sem_init(e->sem, 2))   \
    ROW(px_sem_init_bounded, NO, NO, WORKS, PX_EINVAL, 0, 0,                   \
        px_sem_init_bounded(e->sem, 2))                                        \
    ROW(px_sem_destroy, NO, NO, WORKS, PX_EINVAL, 0, 0,                        \
        px_sem_destroy(e->sem))                                                \
    ROW(px_sem_down, YES, YES, WORKS_IF_FREE, PX_EINVAL, 0, 0,                 \
        px_sem_down(e->sem))                                                   \
    ROW(px_sem_down_n, YES, YES, WORKS_IF_FREE, PX_EINVAL, 0, 0,               \
        px_sem_down_n(e->sem, 2))                                              \
    ROW(px_sem_up, NO, NO, WORKS, PX_EINVAL, 0, 0,                             \
        (px_sem_try_down(e->sem), px_sem_up(e->sem)))                          \
    ROW(px_sem_up_n, NO, NO, WORKS, PX_EINVAL, 0, 0,                           \
        (px_sem_try_down_n(e->sem, 2), px_sem_up_n(e->sem, 2)))                \
    ROW(px_sem_try_down, NO, NO, WORKS, PX_EINVAL, 0, 0,                       \
        px_sem_try_down(e->sem))                                               \
    ROW(px_sem_try_down_n, NO, NO, WORKS, PX_EINVAL, 0, 0,                     \
        px_sem_try_down_n(e->sem, 3))                                          \
    ROW(px_sem_adjust, NO, NO, WORKS, PX_EINVAL, 0, 0,                         \
        px_sem_adjust(e->sem, -5))                                             \
    ROW(px_sem_wait_available, YES, YES, WORKS_IF_FREE, PX_EINVAL, 0, 0,       \
        px_sem_wait_available(e->sem))                                         \
    ROW(px_sem_set_limit, NO, NO, WORKS, PX_EINVAL, 0, 0,                      \
        px_sem_set_limit(e->sem, 5))                                           \
    ROW(px_sem_close, NO, NO, WORKS, PX_EINVAL, 0, 0, px_sem_close(e->sem))    \
    ROW(px_sem_count, NO, NO, WORKS, 0, 0, 3, px_sem_count(e->sem))            \
    ROW(px_sem_limit, NO, NO, WORKS, 0, 0, 3, px_sem_limit(e->sem))            \
    ROW(px_sem_waiters, NO, NO, WORKS, 0, 0, 0, px_sem_waiters(e->sem))        \
    ROW(px_sem_waiter_ids, NO, NO, WORKS, 0, 0, 0,                             \
        px_sem_waiter_ids(e->sem, ids, 4))                                     \
    ROW(px_sem_remove_waiter, NO, NO, WORKS, 0, 0, 0,                          \
        px_sem_remove_waiter(e->sem, 99))                                      \
    ROW(px_sem_with, YES, YES, WORKS_IF_FREE, PX_EINVAL, 0, TAKEN,             \
        px_sem_with(e->sem, e->fn, NULL))                                      \
    ROW(px_sem_guard_release, NO, NO, WORKS, NOTHING, 0, 0,                    \
        sem_guard_release(e))                                                  \
    ROW(px_sem_guard_begin, YES, YES, WORKS_IF_FREE, PX_EINVAL, 0, 0,          \
        sem_guard_begin(e))                                                    \
    ROW(PX_SEM_GUARD, YES, YES, WORKS_IF_FREE, PX_EINVAL, 0, 0, sem_guard(e))  \
    ROW(PX_SEM_HOLD, YES, YES, WORKS_IF_FREE, PX_EINVAL, 0, 0, sem_hold(e))    \
                                                                               \
    ROW(px_mutex_init, NO, NO, WORKS, PX_EINVAL, 0, 0,                         \
        px_mutex_init(e->mutex))                                               \
    ROW(px_mutex_destroy, NO, NO, WORKS, PX_EINVAL, 0, 0,                      \
        px_mutex_destroy(e->mutex))                                            \
    ROW(px_mutex_lock, YES, YES, PX_ENOFIBER, PX_EINVAL, 0, 0,                 \
        px_mutex_lock(e->mutex))                                               \
    ROW(px_mutex_try_lock, NO, NO, PX_ENOFIBER, PX_EINVAL, 0, 0,               \
        px_mutex_try_lock(e->mutex))                                           \
    ROW(px_mutex_unlock, NO, NO, PX_EPERM, PX_EINVAL, 0, 0,                    \
        px_mutex_unlock(e->mine))                                              \
    ROW(px_mutex_owner, NO, NO, WORKS, PX_NO_FIBER, IN_RUN, 0,                 \
        px_mutex_owner(e->mine))                                               \
    ROW(px_mutex_waiters, NO, NO, WORKS, 0, 0, 0, px_mutex_waiters(e->mine))   \
    ROW(px_mutex_waiter_ids, NO, NO, WORKS, 0, 0, 0,                           \
        px_mutex_waiter_ids(e->mine, ids, 4))                                  \
    ROW(px_mutex_remove_waiter, NO, NO, WORKS, 0, 0, 0,                        \
        px_mutex_remove_waiter(e->mine, 99))                                   \
    ROW(px_mutex_with, YES, YES, PX_ENOFIBER, PX_EINVAL, 0, TAKEN,             \
        px_mutex_with(e->mutex, e->fn, NULL))                                  \
    ROW(px_mutex_guard_release, NO, NO, WORKS, NOTHING, 0, 0,                  \
        mutex_guard_release(e))                                                \
    ROW(px_mutex_guard_begin, YES, YES, PX_ENOFIBER, PX_EINVAL, 0, 0,          \
        mutex_guard_begin(e))                                                  \
    ROW(PX_MUTEX_GUARD, YES, YES, PX_ENOFIBER, PX_EINVAL, 0, 0,                \
        mutex_guard(e))                                                        \
    ROW(PX_MUTEX_HOLD, YES, YES, PX_ENOFIBER, PX_EINVAL, 0, 0, mutex_hold(e))  \
                                                                               \
    ROW(px_waitgroup_init, NO, NO, WORKS, PX_EINVAL, 0, 0,                     \
        px_waitgroup_init(e->wg, 0))                                           \
    ROW(px_waitgroup_destroy, NO, NO, WORKS, PX_EINVAL, 0, 0,                  \
        px_waitgroup_destroy(e->wg))                                           \
    ROW(px_waitgroup_add, NO, NO, WORKS, PX_EINVAL, 0, 0,                      \
        px_waitgroup_add(e->wg, 2))                                            \
    ROW(px_waitgroup_done, NO, NO, WORKS, PX_EINVAL, 0, 0,                     \
        px_waitgroup_done(e->one))                                             \
    ROW(px_waitgroup_go, NO, NO, PX_ENOFIBER, PX_EINVAL, 0, 0,                 \
        px_waitgroup_go(e->wg, e->fn, NULL))                                   \
    ROW(px_waitgroup_wait, YES, YES, PX_ENOFIBER, PX_EINVAL, 0, 0,             \
        px_waitgroup_wait(e->wg))                                              \
    ROW(px_waitgroup_count, NO, NO, WORKS, 0, 0, 1,                            \
        px_waitgroup_count(e->one))                                            \
    ROW(px_waitgroup_remaining, NO, NO, WORKS, 0, 0, 1,                        \
        px_waitgroup_remaining(e->one))                                        \
    ROW(px_waitgroup_waiters, NO, NO, WORKS, 0, 0, 0,                          \
        px_waitgroup_waiters(e->one))                                          \
    ROW(px_waitgroup_waiter_ids, NO, NO, WORKS, 0, 0, 0,                       \
        px_waitgroup_waiter_ids(e->one, ids, 4))                               \
    ROW(px_waitgroup_remove_waiter, NO, NO, WORKS, 0, 0, 0,                    \
        px_waitgroup_remove_waiter(e->one, 99))                                \
                                                                               \
    ROW(px_scope_enter, NO, NO, PX_ENOFIBER, PX_EINVAL, 0, 0, enter(e, false)) \
    ROW(px_scope_enter_until, NO, NO, PX_ENOFIBER, PX_EINVAL, 0, 0,            \
        enter(e, true))                                                        \
    ROW(px_scope_leave, NO, NO, PX_EPERM, PX_EINVAL, IN_RUN, 0,                \
        px_scope_leave(e->scope))                                              \
    ROW(px_scope_cancel, NO, NO, WORKS, PX_EINVAL, IN_RUN, 0,                  \
        px_scope_cancel(e->scope))                                             \
    ROW(px_scope_set_deadline, NO, NO, WORKS, PX_EINVAL, IN_RUN, 0,            \
        px_scope_set_deadline(e->scope, PX_FOREVER))                           \
    ROW(px_scope_remaining, NO, NO, WORKS, 0, IN_RUN, ANY,                     \
        px_scope_remaining(e->scope))                                          \
    ROW(px_scope_status, NO, NO, WORKS, PX_EINVAL, IN_RUN, 0,                  \
        px_scope_status(e->scope))                                             \
    ROW(px_scope_shield, NO, NO, WORKS, PX_EINVAL, IN_RUN, 0,                  \
        px_scope_shield(e->scope, true))                                       \
    ROW(px_check, NO, YES, 0, NO_OBJECT, 0, 0, px_check())                     \
    ROW(px_deadline, NO, NO, PX_FOREVER, NO_OBJECT, 0, ANY, px_deadline())     \
    ROW(px_with_cancel, AS_FN, AS_FN, PX_ENOFIBER, PX_EINVAL, 0, TAKEN,        \
        px_with_cancel(e->token_fn, NULL))                                     \
    ROW(px_with_shield, AS_FN, AS_FN, PX_ENOFIBER, PX_EINVAL, 0, TAKEN,        \
        px_with_shield(PX_SEC, e->fn, NULL))                                   \
    ROW(px_with_timeout, AS_FN, AS_FN, PX_ENOFIBER, PX_EINVAL, 0, TAKEN,       \
        px_with_timeout(PX_SEC, e->fn, NULL))                                  \
    ROW(px_with_deadline, AS_FN, AS_FN, PX_ENOFIBER, PX_EINVAL, 0, TAKEN,      \
        px_with_deadline(PX_FOREVER, e->fn, NULL))                             \
    ROW(px_scope_guard_release, NO, NO, WORKS, NOTHING, 0, 0,                  \
        scope_guard_release(e))                                                \
    ROW(PX_WITHIN, NO, NO, NOTHING, NO_OBJECT, 0, 1, within(e))                \
                                                                               \
    ROW(px_group_open, NO, NO, PX_ENOFIBER, PX_EINVAL, 0, 0, open_group(e))    \
    ROW(px_group_spawn, YES, YES, PX_ENOFIBER, PX_EINVAL, IN_RUN, 0,           \
        px_group_spawn(e->group, take, NULL))                                  \
    ROW(px_group_spawn_with, YES, YES, PX_ENOFIBER, PX_EINVAL, IN_RUN, 0,      \
        px_group_spawn_with(e->group, NULL, take, NULL))                       \
    ROW(px_group_cancel, NO, NO, WORKS, PX_EINVAL, IN_RUN, 0,                  \
        px_group_cancel(e->group))                                             \
    ROW(px_group_wait, YES, YES, PX_ENOFIBER, PX_EINVAL, IN_RUN, 0,            \
        wait_group(e))                                                         \
    ROW(px_group_set_limit, NO, NO, WORKS, PX_EINVAL, IN_RUN, 0,               \
        px_group_set_limit(e->group, 2))                                       \
    ROW(px_map_concurrent, YES, YES, PX_ENOFIBER, PX_EINVAL, 0, 0,             \
        px_map_concurrent(3, 2, e->map_fn, NULL))                              \
                                                                               \
    ROW(px_wait_fd, YES, YES, WORKS_IF_FREE, PX_EBADF, SYSTEM, PX_READABLE,    \
        px_wait_fd(e->readable, PX_READABLE))                                  \
    ROW(px_read, YES, YES, WORKS_IF_FREE, PX_EBADF, SYSTEM, 1,                 \
        px_read(e->readable, bytes, 9))                                        \
    ROW(px_write, YES, YES, WORKS_IF_FREE, PX_EBADF, SYSTEM, 1,                \
        px_write(e->writable, "x", 1))                                         \
    ROW(px_write_all, YES, YES, WORKS_IF_FREE, PX_EBADF, SYSTEM, 0,            \
        px_write_all(e->writable, "xyz", 3, NULL))                             \
    ROW(px_accept, YES, YES, WORKS_IF_FREE, PX_EBADF, SYSTEM, TAKEN,           \
        accept_one(e))                                                         \
    ROW(px_connect, YES, YES, WORKS_IF_FREE, PX_EBADF, SYSTEM, 0,              \
        px_connect(e->socket, (const struct sockaddr *)&e->address,            \
                   e->address_length))                                         \
    ROW(px_wait_signal, YES, YES, WORKS_IF_FREE, PX_EINVAL, SYSTEM, SIGUSR1,   \
        px_wait_signal(e->signals))                                            \
    ROW(px_nonblock, NO, NO, WORKS, PX_EBADF, SYSTEM, 0,                       \
        px_nonblock(e->closable))                                              \
    ROW(px_close, NO, NO, WORKS, PX_EBADF, SYSTEM, 0, close_one(e))            \
                                                                               \
    ROW(px_offload, YES, YES, PX_ENOFIBER, PX_EINVAL, SWITCHES, TAKEN,         \
        px_offload(e->fn, NULL))                                               \
    ROW(px_post, NO, NO, WORKS, PX_EINVAL, IN_RUN, 0,                          \
        px_post(e->loop, take, NULL))                                          \
    ROW(px_current_loop, NO, NO, NONE, NO_OBJECT, 0, 1,                        \
        px_current_loop() != NULL)                                             \
    ROW(px_loop_hold, NO, NO, WORKS, PX_EINVAL, IN_RUN, 0, hold_loop(e))       \
    ROW(px_loop_unhold, NO, NO, WORKS, PX_EINVAL, IN_RUN, 0, unhold_loop(e))   \
                                                                               \
    ROW(px_now, NO, NO, WORKS, NO_OBJECT, 0, ANY, px_now())                    \
    ROW(px_strerror, NO, NO, WORKS, NO_OBJECT, 0, 'T',                         \
        *px_strerror(PX_ETIMEDOUT))                                            \
    ROW(px_err_name, NO, NO, WORKS, NO_OBJECT, 0, 'P',                         \
        *px_err_name(PX_ETIMEDOUT))                                            \
    ROW(px_version, NO, NO, WORKS, NO_OBJECT, 0,                               \
        PX_VERSION_MAJOR * 10000 + PX_VERSION_MINOR * 100 + PX_VERSION_PATCH,  \
        px_version())                                                          \
    ROW(px_version_string, NO, NO, WORKS, NO_OBJECT, 0,                        \
        '0' + PX_VERSION_MAJOR, *px_version_string())

struct row {
    const char *name;
    int parks;
    int point;
    long long off;
    long long null;
    unsigned flags;
    long long plain;
    call_fn *call;
};

#define DEFINE_CALL(name, parks, point, off, null, flags, plain, expression)   \
    static long long call_##name(struct env *e)                                \
    {                                                                          \
        (void)e;                                                               \
        return (long long)(expression);                                        \
    }
ROWS(DEFINE_CALL)

#define LIST_ROW(name, parks, point, off, null, flags, plain, expression)      \
    {#name, parks, point, off, null, flags, plain, call_##name},
static const struct row rows[] = {ROWS(LIST_ROW)};

/* -- the rows -- */

/* Make the call, and see that errno stays as it is. */
static long long make(const struct row *row)
{
    long long result;

    errno = 4242;
    result = row->call(&env);
    if (!(row->flags & SYSTEM))
        compare(row->name, "leaves errno", errno, 4242);
    return result;
}

static void forget_arguments(void)
{
    struct env *e = &env;
    FILE *file = e->file;

    memset(e, 0, sizeof(*e));
    if (file)
        (void)fclose(file);
    e->readable = e->writable = e->listener = e->socket = e->closable = -1;
}

enum fired { NOT_FIRED, TIMED_OUT, CANCELLED, CANCELLED_FIBER };

struct attempt {
    const struct row *row;
    enum fired fired;
    bool null;
};

static int attempt_row(void *arg)
{
    const struct attempt *attempt = (const struct attempt *)arg;
    const struct row *row = attempt->row;
    static const char *const when[] = {
        "in a fiber", "in a scope that timed out",
        "in a scope that was cancelled", "in a fiber that was cancelled"};
    static const int codes[] = {0, PX_ETIMEDOUT, PX_ECANCELED, PX_ECANCELED};
    long long expected = row->plain, result;

    EXPECT_EQ(px_sleep(PX_SEC), 0);
    set_up_fibers(attempt->fired == TIMED_OUT ? 0 : PX_FOREVER);
    if (attempt->fired == CANCELLED)
        EXPECT_EQ(px_scope_cancel(&own.around), 0);
    if (attempt->fired == CANCELLED_FIBER)
        EXPECT_EQ(px_cancel(px_self()), 0);
    start_queued(witness, NULL);
    if (attempt->null)
        forget_arguments();
    result = make(row);
    if (attempt->null)
        expected = row->null;
    else if (attempt->fired && row->point == YES)
        expected = codes[attempt->fired];
    compare(row->name, when[attempt->fired], result, expected);
    if (row->parks == NO || attempt->null || expected < 0 ||
        !(row->flags & SWITCHES))
        compare(row->name, "lets others run", own.witnessed, 0);
    tear_down_fibers();
    return 0;
}

static void attempt_rows(enum fired fired, bool null)
{
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct attempt attempt = {&rows[i], fired, null};

        if (null && rows[i].null == NO_OBJECT)
            continue;
        /* -1 for a descriptor is no bad argument: a scope may come first. */
        if (null && fired && rows[i].null == PX_EBADF)
            continue;
        set_up_objects(rows[i].flags & SYSTEM);
        run_fibers(attempt_row, &attempt);
        tear_down_objects();
    }
    assert_log("");
}

static void
a_call_that_need_not_wait_works_and_lets_nobody_else_run(void **state)
{
    (void)state;
    attempt_rows(NOT_FIRED, false);
}

static void
in_a_timed_out_scope_cancellation_points_fail_and_others_work(void **state)
{
    (void)state;
    attempt_rows(TIMED_OUT, false);
}

static void
in_a_cancelled_scope_cancellation_points_fail_and_others_work(void **state)
{
    (void)state;
    attempt_rows(CANCELLED, false);
}

static void
in_a_cancelled_fiber_cancellation_points_fail_and_others_work(void **state)
{
    (void)state;
    attempt_rows(CANCELLED_FIBER, false);
}

static void null_is_refused_and_lets_nobody_else_run(void **state)
{
    (void)state;
    attempt_rows(NOT_FIRED, true);
}

static void null_is_refused_before_a_fired_scope_is_looked_at(void **state)
{
    (void)state;
    attempt_rows(TIMED_OUT, true);
}

/* -- off a fiber -- */

static long long expected_off(const struct row *row)
{
    return row->off == WORKS || row->off == WORKS_IF_FREE ? row->plain
                                                          : row->off;
}

static int leave_mine_locked(void *arg)
{
    (void)arg;
    return px_mutex_lock(&own.mine);
}

static void
off_a_fiber_without_a_run_each_call_does_as_its_row_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        if (rows[i].flags & IN_RUN)
            continue;
        set_up_objects(rows[i].flags & SYSTEM);
        run_fibers(leave_mine_locked, NULL);
        compare(rows[i].name, "off a fiber, without a run", make(&rows[i]),
                expected_off(&rows[i]));
        tear_down_objects();
    }
    assert_log("");
}

static void off_a_fiber_null_is_refused_first(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        if (rows[i].null == NO_OBJECT)
            continue;
        set_up_objects(rows[i].flags & SYSTEM);
        forget_arguments();
        compare(rows[i].name, "with NULL, off a fiber", make(&rows[i]),
                rows[i].null);
        tear_down_objects();
    }
    assert_log("");
}

static void make_off_fiber(void *ctx)
{
    own.result = make((const struct row *)ctx);
    EXPECT_EQ(px_sem_up(&own.end_of_deadlock), 0);
}

static int stall_once(void *arg)
{
    (void)arg;
    set_up_fibers(PX_FOREVER);
    (void)!px_sem_down(&own.end_of_deadlock); /* px_stop may be the call */
    tear_down_fibers();
    return 0;
}

static void in_on_deadlock_each_call_does_as_its_row_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        px_run_options options = {.on_deadlock = make_off_fiber,
                                  .ctx = (void *)(uintptr_t)&rows[i]};
        long long expected = expected_off(&rows[i]);

        if (strcmp(rows[i].name, "px_dump") == 0)
            expected = rows[i].plain; /* as its row says */
        set_up_objects(rows[i].flags & SYSTEM);
        compare(rows[i].name, "is called in a run that then ends with",
                run_fibers_with(options, 0, stall_once, NULL), 0);
        compare(rows[i].name, "in on_deadlock", own.result, expected);
        tear_down_objects();
    }
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_call_that_need_not_wait_works_and_lets_nobody_else_run),
    PX_TEST(in_a_timed_out_scope_cancellation_points_fail_and_others_work),
    PX_TEST(in_a_cancelled_scope_cancellation_points_fail_and_others_work),
    PX_TEST(in_a_cancelled_fiber_cancellation_points_fail_and_others_work),
    PX_TEST(null_is_refused_and_lets_nobody_else_run),
    PX_TEST(null_is_refused_before_a_fired_scope_is_looked_at),
    PX_TEST(off_a_fiber_without_a_run_each_call_does_as_its_row_says),
    PX_TEST(off_a_fiber_null_is_refused_first),
    PX_TEST(in_on_deadlock_each_call_does_as_its_row_says),
};

PX_TEST_MAIN(tests)
