/* SPDX-License-Identifier: MIT */
/*
 * test_semantics_codes.c - each code that a row names and that needs a special
 * cause: see test_semantics.c.
 */
#include "semantics/given.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ERRNO 1000005LL /* -errno, whichever */

static void be_quiet(void *ctx)
{
    (void)ctx;
}

static int wait_on_empty(void *arg)
{
    (void)arg;
    return px_sem_down(&own.empty);
}

static int await_parked(void *arg)
{
    (void)arg;
    return px_await(env.parked, NULL);
}

static int leave_scope(void *arg)
{
    (void)arg;
    own.child_result = px_scope_leave(env.scope);
    return 0;
}

static int wait_for_group(void *arg)
{
    (void)arg;
    own.child_result = px_group_wait(env.group);
    return 0;
}

static int close_it(void *arg)
{
    return px_close(*(int *)arg);
}

static int stall(void *arg)
{
    px_sem never = PX_SEM_INIT(0);
    int code = px_sem_down(&never);

    (void)arg;
    return code == PX_ESTALLED ? TAKEN : 0;
}

/* The report is for people; here it would only be in the way. */
static long long run_stalled(bool with)
{
    px_run_options options = {.on_deadlock = be_quiet};
    int saved = dup(2), nowhere = open("/dev/null", O_WRONLY), code;

    if (with)
        code = px_run_with(&options, stall, NULL);
    else {
        (void)dup2(nowhere, 2);
        code = px_run(stall, NULL);
        (void)dup2(saved, 2);
    }
    (void)close(saved);
    (void)close(nowhere);
    return code;
}

static int item_in_vain(size_t i, void *arg)
{
    px_sem never = PX_SEM_INIT(0);

    (void)i;
    (void)arg;
    return px_sem_down(&never);
}

static int map_in_vain(void *arg)
{
    *(int *)arg = px_map_concurrent(2, 1, item_in_vain, NULL);
    return 0;
}

/* The caller waits for the second item's place when nothing can wake it. */
static long long map_stalled(void)
{
    px_run_options options = {.on_deadlock = be_quiet};
    int code = 0;

    EXPECT_EQ(px_run_with(&options, map_in_vain, &code), PX_ESTALLED);
    return code;
}

static long long run_by_no_clock(void)
{
    px_run_options options = {.clock = (px_clock)99};

    return px_run_with(&options, take, NULL);
}

/* Until px_run_options.max_fibers allows no more. */
static struct env *crowded(struct env *e)
{
    int code = 0;

    for (int i = 0; i < 64 && code == 0; i++)
        code = px_spawn(NULL, wait_at_gate, NULL);
    EXPECT_EQ(code, PX_ENOMEM);
    return e;
}

static long long spawn_absurd(struct env *e, bool in_group)
{
    px_spawn_options options = {.arg_size = (size_t)1 << 30};

    return in_group ? px_group_spawn_with(e->group, &options, take, bytes)
                    : px_spawn_with(NULL, &options, take, bytes);
}

static long long in_a_child(px_fn fn)
{
    start(fn, NULL);
    return own.child_result;
}

static struct env *with_waiter(struct env *e)
{
    start(wait_on_empty, NULL);
    return e;
}

static int wait_for_one(void *arg)
{
    (void)arg;
    return px_waitgroup_wait(&own.one);
}

static struct env *with_awaiter(struct env *e)
{
    start(await_parked, NULL);
    return e;
}

static struct env *with_wg_waiter(struct env *e)
{
    start(wait_for_one, NULL);
    return e;
}

static px_sem *closed(px_sem *sem)
{
    EXPECT_EQ(px_sem_close(sem), 0);
    return sem;
}

static px_sem *holding(px_sem *sem, int64_t count)
{
    EXPECT_EQ(px_sem_init(sem, count), 0);
    return sem;
}

/* A bounded semaphore as far below zero as can be. */
static px_sem *deep(px_sem *sem)
{
    EXPECT_EQ(px_sem_init_bounded(sem, 2), 0);
    EXPECT_EQ(px_sem_adjust(sem, INT64_MIN), 0);
    EXPECT_EQ(px_sem_adjust(sem, -2), 0);
    return sem;
}

static px_waitgroup *counting(px_waitgroup *wg, int64_t count)
{
    EXPECT_EQ(px_waitgroup_init(wg, count < 0 ? 0 : count), 0);
    if (count < 0)
        EXPECT_EQ(px_waitgroup_add(wg, count), PX_ENEGATIVE);
    return wg;
}

static px_scope *fired(struct env *e, int code)
{
    if (code == PX_ETIMEDOUT)
        EXPECT_EQ(px_scope_set_deadline(e->scope, px_now()), 0);
    else
        EXPECT_EQ(px_scope_cancel(e->scope), 0);
    return e->scope;
}

static int status_of_closed_group(struct env *e, int (*call)(px_group *group))
{
    px_scope_guard_release(e->scope);
    EXPECT_EQ(px_group_wait(e->group), 0);
    return call(e->group);
}

static int spawn_in(px_group *group)
{
    return px_group_spawn(group, take, NULL);
}

static int limit_to_two(px_group *group)
{
    return px_group_set_limit(group, 2);
}

static long long wait_within_or_closed(struct env *e)
{
    EXPECT_EQ(px_group_wait(e->group), PX_EINVAL);
    return status_of_closed_group(e, px_group_wait);
}

static long long limit_to_none_or_closed(struct env *e)
{
    EXPECT_EQ(px_group_set_limit(e->group, 0), PX_EINVAL);
    return status_of_closed_group(e, limit_to_two);
}

/* Have another fiber close it when this one waits. */
static int closing(int *fd)
{
    forget_descriptor(*fd);
    start_queued(close_it, fd);
    return *fd;
}

/* A socket whose peer has gone. */
static int broken(void)
{
    int ends[2];

    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    (void)close(ends[1]);
    return keep(ends[0]);
}

static int refusing(struct sockaddr_in *address)
{
    socklen_t length = sizeof(*address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    memset(address, 0, sizeof(*address));
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd, (struct sockaddr *)address, length), 0);
    EXPECT_EQ(getsockname(fd, (struct sockaddr *)address, &length), 0);
    (void)close(fd); /* nobody listens there now */
    return keep(socket(AF_INET, SOCK_STREAM, 0));
}

static long long connect_refused(struct env *e)
{
    int fd = refusing(&e->deaf);

    return px_connect(fd, (const struct sockaddr *)&e->deaf, sizeof(e->deaf));
}

enum { IN, IN_IO, OUT };

/* call; the code; in a run (with descriptors), or outside of one; the call. */
#define CODES(CODE)                                                            \
    CODE(px_run, PX_EBUSY, IN, px_run(take, NULL))                             \
    CODE(px_run, PX_ESTALLED, OUT, run_stalled(false))                         \
    CODE(px_run_with, PX_EBUSY, IN, px_run_with(NULL, take, NULL))             \
    CODE(px_run_with, PX_ESTALLED, OUT, run_stalled(true))                     \
    CODE(px_run_with, PX_EINVAL, OUT, run_by_no_clock())                       \
    CODE(px_spawn, PX_ENOMEM, IN, px_spawn(NULL, crowded(e)->fn, NULL))        \
    CODE(px_spawn_with, PX_ENOMEM, IN,                                         \
         px_spawn_with(NULL, NULL, crowded(e)->fn, NULL))                      \
    CODE(px_spawn_with, PX_EINVAL, IN, spawn_absurd(e, false))                 \
    CODE(px_await, PX_EDEADLK, IN, px_await(px_self(), NULL))                  \
    CODE(px_await, PX_EBUSY, IN, px_await(with_awaiter(e)->parked, NULL))      \
    CODE(px_await_all, PX_EDEADLK, IN,                                         \
         px_await_all((px_fiber *[]){px_self()}, 1, NULL))                     \
    CODE(px_await_all, PX_EBUSY, IN,                                           \
         px_await_all(&with_awaiter(e)->parked, 1, NULL))                      \
    CODE(px_await_all, PX_EINVAL, IN,                                          \
         px_await_all((px_fiber *[]){e->ended, e->ended}, 2, NULL))            \
    CODE(px_detach, PX_EBUSY, IN, px_detach(with_awaiter(e)->parked))          \
    CODE(px_detach, PX_EINVAL, IN, px_detach(px_self()))                       \
    CODE(px_cancel_and_await, PX_EDEADLK, IN,                                  \
         px_cancel_and_await(px_self(), NULL))                                 \
    CODE(px_cancel_and_await, PX_EBUSY, IN,                                    \
         px_cancel_and_await(with_awaiter(e)->parked, NULL))                   \
    CODE(px_sem_destroy, PX_EBUSY, IN, px_sem_destroy(with_waiter(e)->empty))  \
    CODE(px_sem_down, PX_ECLOSED, IN, px_sem_down(closed(e->empty)))           \
    CODE(px_sem_down_n, PX_ECLOSED, IN, px_sem_down_n(closed(e->empty), 2))    \
    CODE(px_sem_down_n, PX_EINVAL, IN, px_sem_down_n(e->sem, -1))              \
    CODE(px_sem_up, PX_EOVERFLOW, IN, px_sem_up(e->sem))                       \
    CODE(px_sem_up_n, PX_EOVERFLOW, IN,                                        \
         px_sem_up_n(holding(e->sem, INT64_MAX - 1), 2))                       \
    CODE(px_sem_up_n, PX_EINVAL, IN, px_sem_up_n(e->empty, -1))                \
    CODE(px_sem_try_down, PX_EAGAIN, IN, px_sem_try_down(e->empty))            \
    CODE(px_sem_try_down, PX_ECLOSED, IN, px_sem_try_down(closed(e->empty)))   \
    CODE(px_sem_try_down_n, PX_EAGAIN, IN, px_sem_try_down_n(e->sem, 4))       \
    CODE(px_sem_try_down_n, PX_ECLOSED, IN,                                    \
         px_sem_try_down_n(closed(e->sem), 2))                                 \
    CODE(px_sem_try_down_n, PX_EINVAL, IN, px_sem_try_down_n(e->sem, -1))      \
    CODE(px_sem_adjust, PX_EOVERFLOW, IN, px_sem_adjust(e->sem, 1))            \
    CODE(px_sem_wait_available, PX_ECLOSED, IN,                                \
         px_sem_wait_available(closed(e->empty)))                              \
    CODE(px_sem_set_limit, PX_EINVAL, IN, px_sem_set_limit(e->empty, 2))       \
    CODE(px_sem_set_limit, PX_EOVERFLOW, IN,                                   \
         px_sem_set_limit(deep(e->sem), 1))                                    \
    CODE(px_sem_with, PX_ECLOSED, IN,                                          \
         px_sem_with(closed(e->empty), take, NULL))                            \
    CODE(px_sem_with, PX_EINVAL, IN, px_sem_with(e->sem, NULL, NULL))          \
    CODE(px_mutex_destroy, PX_EBUSY, IN, px_mutex_destroy(e->mine))            \
    CODE(px_mutex_lock, PX_EDEADLK, IN, px_mutex_lock(e->mine))                \
    CODE(px_mutex_try_lock, PX_EBUSY, IN, px_mutex_try_lock(e->theirs))        \
    CODE(px_mutex_try_lock, PX_EDEADLK, IN, px_mutex_try_lock(e->mine))        \
    CODE(px_mutex_unlock, PX_ENOTLOCKED, IN, px_mutex_unlock(e->mutex))        \
    CODE(px_mutex_unlock, PX_EPERM, IN, px_mutex_unlock(e->theirs))            \
    CODE(px_mutex_with, PX_EDEADLK, IN, px_mutex_with(e->mine, take, NULL))    \
    CODE(px_mutex_with, PX_EINVAL, IN, px_mutex_with(e->mutex, NULL, NULL))    \
    CODE(px_waitgroup_init, PX_EINVAL, IN, px_waitgroup_init(e->wg, -1))       \
    CODE(px_waitgroup_destroy, PX_EBUSY, IN,                                   \
         px_waitgroup_destroy(with_wg_waiter(e)->one))                         \
    CODE(px_waitgroup_add, PX_ENEGATIVE, IN, px_waitgroup_add(e->wg, -1))      \
    CODE(px_waitgroup_add, PX_EOVERFLOW, IN,                                   \
         px_waitgroup_add(counting(e->wg, INT64_MAX), 1))                      \
    CODE(px_waitgroup_done, PX_ENEGATIVE, IN, px_waitgroup_done(e->wg))        \
    CODE(px_waitgroup_done, PX_EOVERFLOW, IN,                                  \
         px_waitgroup_done(counting(e->wg, INT64_MIN)))                        \
    CODE(px_waitgroup_go, PX_ENOMEM, IN,                                       \
         px_waitgroup_go(crowded(e)->wg, take, NULL))                          \
    CODE(px_waitgroup_go, PX_EOVERFLOW, IN,                                    \
         px_waitgroup_go(counting(e->wg, INT64_MAX), take, NULL))              \
    CODE(px_waitgroup_go, PX_ENEGATIVE, IN,                                    \
         px_waitgroup_go(counting(e->wg, -2), take, NULL))                     \
    CODE(px_waitgroup_wait, PX_ENEGATIVE, IN,                                  \
         px_waitgroup_wait(counting(e->wg, -1)))                               \
    CODE(px_scope_leave, PX_ETIMEDOUT, IN,                                     \
         px_scope_leave(fired(e, PX_ETIMEDOUT)))                               \
    CODE(px_scope_leave, PX_ECANCELED, IN,                                     \
         px_scope_leave(fired(e, PX_ECANCELED)))                               \
    CODE(px_scope_leave, PX_EINVAL, IN, px_scope_leave(&own.around))           \
    CODE(px_scope_leave, PX_EPERM, IN, in_a_child(leave_scope))                \
    CODE(px_scope_status, PX_ETIMEDOUT, IN,                                    \
         px_scope_status(fired(e, PX_ETIMEDOUT)))                              \
    CODE(px_scope_status, PX_ECANCELED, IN,                                    \
         px_scope_status(fired(e, PX_ECANCELED)))                              \
    CODE(px_scope_shield, PX_EINVAL, IN,                                       \
         px_scope_shield(e->fresh_scope, true))                                \
    CODE(px_group_spawn, PX_ENOMEM, IN,                                        \
         px_group_spawn(crowded(e)->group, take, NULL))                        \
    CODE(px_group_spawn, PX_EINVAL, IN, status_of_closed_group(e, spawn_in))   \
    CODE(px_group_spawn_with, PX_ENOMEM, IN,                                   \
         px_group_spawn_with(crowded(e)->group, NULL, take, NULL))             \
    CODE(px_group_spawn_with, PX_EINVAL, IN, spawn_absurd(e, true))            \
    CODE(px_group_cancel, PX_EINVAL, IN,                                       \
         status_of_closed_group(e, px_group_cancel))                           \
    CODE(px_group_wait, PX_EPERM, IN, in_a_child(wait_for_group))              \
    CODE(px_group_wait, PX_EINVAL, IN, wait_within_or_closed(e))               \
    CODE(px_group_set_limit, PX_EINVAL, IN, limit_to_none_or_closed(e))        \
    CODE(px_map_concurrent, PX_ENOMEM, IN,                                     \
         px_map_concurrent(2, 0, crowded(e)->map_fn, NULL))                    \
    CODE(px_map_concurrent, PX_ESTALLED, OUT, map_stalled())                   \
    CODE(px_wait_fd, PX_EINVAL, IN_IO, px_wait_fd(e->silent, 0))               \
    CODE(px_wait_fd, PX_ECLOSED, IN_IO,                                        \
         px_wait_fd(closing(&e->silent), PX_READABLE))                         \
    CODE(px_read, PX_EINVAL, IN_IO, px_read(keep(eventfd(1, 0)), bytes, 4))    \
    CODE(px_read, PX_ECLOSED, IN_IO, px_read(closing(&e->silent), bytes, 4))   \
    CODE(px_read, ERRNO, IN_IO,                                                \
         px_read(keep(open("/", O_RDONLY | O_DIRECTORY)), bytes, 4))           \
    CODE(px_write, PX_EINVAL, IN_IO, px_write(keep(eventfd(1, 0)), bytes, 4))  \
    CODE(px_write, PX_ECLOSED, IN_IO,                                          \
         px_write(closing(&e->full), bytes, sizeof(bytes)))                    \
    CODE(px_write, PX_EPIPE, IN_IO, px_write(broken(), bytes, 4))              \
    CODE(px_write, ERRNO, IN_IO,                                               \
         px_write(keep(open("/dev/full", O_WRONLY)), bytes, 4))                \
    CODE(px_write_all, PX_EINVAL, IN_IO,                                       \
         px_write_all(keep(eventfd(1, 0)), bytes, 4, NULL))                    \
    CODE(px_write_all, PX_ECLOSED, IN_IO,                                      \
         px_write_all(closing(&e->full), bytes, sizeof(bytes), NULL))          \
    CODE(px_write_all, PX_EPIPE, IN_IO,                                        \
         px_write_all(broken(), bytes, 4, NULL))                               \
    CODE(px_write_all, ERRNO, IN_IO,                                           \
         px_write_all(keep(open("/dev/full", O_WRONLY)), bytes, 4, NULL))      \
    CODE(px_accept, PX_EINVAL, IN_IO,                                          \
         px_accept(keep(socket(AF_INET, SOCK_STREAM, 0)), NULL, NULL))         \
    CODE(px_accept, PX_ECLOSED, IN_IO,                                         \
         px_accept(closing(&e->quiet), NULL, NULL))                            \
    CODE(px_accept, ERRNO, IN_IO, px_accept(e->full, NULL, NULL))              \
    CODE(px_connect, PX_EINVAL, IN_IO,                                         \
         px_connect(e->stuck, (const struct sockaddr *)&e->deaf, 1))           \
    CODE(px_connect, PX_ECLOSED, IN_IO,                                        \
         px_connect(closing(&e->stuck), (const struct sockaddr *)&e->deaf,     \
                    sizeof(e->deaf)))                                          \
    CODE(px_connect, ERRNO, IN_IO, connect_refused(e))                         \
    CODE(px_nonblock, ERRNO, IN, px_nonblock(-1))                              \
    CODE(px_close, ERRNO, IN, px_close(-1))                                    \
    CODE(px_loop_unhold, PX_EINVAL, IN, px_loop_unhold(e->loop))

struct code {
    const char *name;
    long long code;
    int where;
    call_fn *call;
};

#define DEFINE_CODE(name, code, where, expression)                             \
    static long long get_##name##_##code(struct env *e)                        \
    {                                                                          \
        (void)e;                                                               \
        return (long long)(expression);                                        \
    }
CODES(DEFINE_CODE)

#define LIST_CODE(name, code, where, expression)                               \
    {#name, code, where, get_##name##_##code},
static const struct code codes[] = {CODES(LIST_CODE)};

static void get_code(const struct code *code)
{
    long long result = code->call(&env);

    if (code->code == ERRNO && result < 0 && result > -4096)
        return;
    compare(code->name, "that should fail", result, code->code);
}

static int get_code_in_run(void *arg)
{
    set_up_fibers(PX_FOREVER);
    get_code((const struct code *)arg);
    tear_down_fibers();
    return 0;
}

static void every_other_code_is_seen(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(codes); i++) {
        px_run_options options = {.max_fibers = 16};

        set_up_objects(false);
        if (codes[i].where == IN_IO)
            set_up_waits(&env);
        if (codes[i].where == OUT)
            get_code(&codes[i]);
        else
            compare(codes[i].name, "fails in a run that ends with",
                    run_fibers_with(options, 0, get_code_in_run,
                                    (void *)(uintptr_t)&codes[i]),
                    0);
        tear_down_objects();
    }
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(every_other_code_is_seen),
};

PX_TEST_MAIN(tests)
