/* SPDX-License-Identifier: MIT */
/*
 * test_cancel_points.c - every call that may park is a cancellation point, and
 * one like the others (field case R68).
 *
 * A table of the calls, each with a world in which it has to wait and a way to
 * grant what it waits for, and six ways to be interrupted. Whichever call,
 * whichever way: it returns the code, it has taken nothing, and the object is
 * as good as before. And nothing else ends a wait early (R97).
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fiber_test.h"

#define TIMEOUT (10 * PX_MSEC)

/* What the calls wait for. */
struct world {
    px_sem sem;
    px_mutex mutex;
    px_waitgroup wg;
    px_fiber *targets[2];
    px_nsec length;
    int ends[2];  /* a pipe, or a listener and a client; -1: none */
    int extra[2]; /* more descriptors */
    struct sockaddr_in address;
    sigset_t signals;
    size_t written;
    int ran;  /* how often a function given to the call was run */
    int busy; /* the pool's thread is */
};

struct call {
    const char *name;
    void (*prepare)(struct world *w); /* the call has to wait */
    int (*make)(struct world *w);     /* the call */
    void (*grant)(struct world *w);   /* it no longer has to */
    bool (*is_untouched)(struct world *w, bool granted); /* may be NULL */
    int value;        /* what it returns once granted */
    int parked_value; /* and if it waited, where that is another */
    bool never_waits;
    bool real; /* by the real clock: a thread is at work */
};

static void nothing(struct world *w UNUSED) {}

static int counts_a_run(void *arg)
{
    struct world *w = arg;

    w->ran++;
    return 5;
}

/* ---- Sleeping, yielding, awaiting ---- */

static int make_yield(struct world *w UNUSED)
{
    return px_yield();
}

static void prepare_sleep(struct world *w)
{
    w->length = PX_MINUTE;
}

static void grant_sleep(struct world *w)
{
    w->length = 1;
}

static int make_sleep(struct world *w)
{
    return px_sleep(w->length);
}

static int make_sleep_until(struct world *w)
{
    return px_sleep_until(px_now() + w->length);
}

static int ends_once_granted(void *arg)
{
    return px_with_shield(PX_FOREVER, takes_a_permit, arg);
}

static void prepare_await(struct world *w)
{
    w->targets[0] = start_handle(ends_once_granted, &w->sem);
    w->targets[1] = start_handle(ends_once_granted, &w->sem);
}

static void grant_await(struct world *w)
{
    EXPECT_EQ(px_sem_up_n(&w->sem, 2), 0);
}

static int make_await(struct world *w)
{
    int value = -1, err = px_await(w->targets[0], &value);

    return err ? err : value;
}

static int make_await_all(struct world *w)
{
    int values[2] = {-1, -1}, err = px_await_all(w->targets, 2, values);

    return err ? err : values[0] + values[1];
}

/* ---- Semaphore, mutex, waitgroup ---- */

static void grant_sem(struct world *w)
{
    EXPECT_EQ(px_sem_up(&w->sem), 0);
}

static bool sem_is_untouched(struct world *w, bool granted)
{
    return px_sem_waiters(&w->sem) == 0 && w->ran == 0 &&
           px_sem_count(&w->sem) == (granted ? 1 : 0);
}

static int make_down(struct world *w)
{
    return px_sem_down(&w->sem);
}

static int make_down_n(struct world *w)
{
    return px_sem_down_n(&w->sem, 1);
}

static int make_wait_available(struct world *w)
{
    return px_sem_wait_available(&w->sem);
}

static int make_sem_with(struct world *w)
{
    return px_sem_with(&w->sem, counts_a_run, w);
}

static void prepare_mutex(struct world *w)
{
    EXPECT_EQ(px_mutex_lock(&w->mutex), 0);
}

static void grant_mutex(struct world *w)
{
    EXPECT_EQ(px_mutex_unlock(&w->mutex), 0);
}

static bool mutex_is_untouched(struct world *w, bool granted)
{
    return px_mutex_waiters(&w->mutex) == 0 && w->ran == 0 &&
           px_mutex_owner(&w->mutex) == (granted ? PX_NO_FIBER : 0);
}

static int make_lock(struct world *w)
{
    int err = px_mutex_lock(&w->mutex);

    return err ? err : px_mutex_unlock(&w->mutex);
}

static int make_mutex_with(struct world *w)
{
    return px_mutex_with(&w->mutex, counts_a_run, w);
}

static void prepare_wait(struct world *w)
{
    EXPECT_EQ(px_waitgroup_init(&w->wg, 1), 0);
}

static void grant_wait(struct world *w)
{
    EXPECT_EQ(px_waitgroup_done(&w->wg), 0);
}

static bool waitgroup_is_untouched(struct world *w, bool granted)
{
    return px_waitgroup_waiters(&w->wg) == 0 &&
           px_waitgroup_count(&w->wg) == (granted ? 0 : 1);
}

static int make_wait(struct world *w)
{
    return px_waitgroup_wait(&w->wg);
}

/* ---- Descriptors and signals ---- */

static void prepare_pipe(struct world *w)
{
    EXPECT_EQ(pipe(w->ends), 0);
    EXPECT_EQ(px_nonblock(w->ends[0]), 0);
    EXPECT_EQ(px_nonblock(w->ends[1]), 0);
}

static void grant_byte(struct world *w)
{
    EXPECT_EQ(write(w->ends[1], "x", 1), 1);
}

static int make_wait_fd(struct world *w)
{
    return px_wait_fd(w->ends[0], PX_READABLE);
}

static int make_read(struct world *w)
{
    char byte = 0;
    ssize_t got = px_read(w->ends[0], &byte, 1);

    EXPECT(got != 1 || byte == 'x');
    return (int)got;
}

static void prepare_full_pipe(struct world *w)
{
    static const char block[4096];

    prepare_pipe(w);
    while (write(w->ends[1], block, sizeof(block)) > 0)
        ;
}

static void grant_room(struct world *w)
{
    char block[4096];

    while (read(w->ends[0], block, sizeof(block)) > 0)
        ;
}

static int make_write(struct world *w)
{
    return (int)px_write(w->ends[1], "x", 1);
}

static int make_write_all(struct world *w)
{
    w->written = 99;
    return px_write_all(w->ends[1], "xyz", 3, &w->written);
}

static bool nothing_was_written(struct world *w, bool granted UNUSED)
{
    return w->written == 0;
}

static void prepare_listener(struct world *w)
{
    struct sockaddr_un any = {.sun_family = AF_UNIX};

    w->ends[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    EXPECT_EQ(bind(w->ends[0], (struct sockaddr *)&any, sizeof(sa_family_t)),
              0);
    EXPECT_EQ(listen(w->ends[0], 1), 0);
}

static void grant_client(struct world *w)
{
    struct sockaddr_un name;
    socklen_t length = sizeof(name);

    EXPECT_EQ(getsockname(w->ends[0], (struct sockaddr *)&name, &length), 0);
    w->ends[1] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    EXPECT_EQ(connect(w->ends[1], (struct sockaddr *)&name, length), 0);
}

static int make_accept(struct world *w)
{
    int fd = px_accept(w->ends[0], NULL, NULL);

    return fd < 0 ? fd : px_close(fd);
}

/* Makes a socket that listens on loopback, with room for `backlog` + 1. */
static int listen_on_loopback(struct sockaddr_in *address, int backlog)
{
    socklen_t length = sizeof(*address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    memset(address, 0, sizeof(*address));
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd, (struct sockaddr *)address, length), 0);
    EXPECT_EQ(listen(fd, backlog), 0);
    EXPECT_EQ(getsockname(fd, (struct sockaddr *)address, &length), 0);
    return fd;
}

static int start_connecting(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    (void)connect(fd, (const struct sockaddr *)address, sizeof(*address));
    return fd;
}

/* A backlog that is full: the next SYN is not answered. */
static void prepare_full_backlog(struct world *w)
{
    w->ends[0] = listen_on_loopback(&w->address, 0);
    w->extra[0] = start_connecting(&w->address);
    w->extra[1] = start_connecting(&w->address);
    w->ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
}

/* Another listener; a socket whose connect was interrupted is closed. */
static void grant_backlog(struct world *w)
{
    EXPECT_EQ(px_close(w->ends[0]), 0);
    EXPECT_EQ(px_close(w->ends[1]), 0);
    w->ends[0] = listen_on_loopback(&w->address, 8);
    w->ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
}

static int make_connect(struct world *w)
{
    return px_connect(w->ends[1], (const struct sockaddr *)&w->address,
                      sizeof(w->address));
}

static void prepare_signal(struct world *w)
{
    EXPECT_EQ(sigemptyset(&w->signals), 0);
    EXPECT_EQ(sigaddset(&w->signals, SIGUSR2), 0);
    EXPECT_EQ(pthread_sigmask(SIG_BLOCK, &w->signals, NULL), 0);
}

static void grant_signal(struct world *w UNUSED)
{
    EXPECT_EQ(raise(SIGUSR2), 0);
}

static int make_wait_signal(struct world *w)
{
    int number = px_wait_signal(&w->signals);

    return number == SIGUSR2 ? 1 : number;
}

/* ---- Groups, offload ---- */

static void grant_group(struct world *w)
{
    EXPECT_EQ(px_sem_up_n(&w->sem, 2), 0);
}

static bool group_is_untouched(struct world *w, bool granted)
{
    return px_sem_waiters(&w->sem) == 0 &&
           px_sem_count(&w->sem) == (granted ? 2 : 0);
}

/* The second child waits for the first one's place. */
static int spawn_two(struct world *w, const px_spawn_options *options)
{
    px_group group;
    int err, waited;

    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_set_limit(&group, 1), 0);
    err = px_group_spawn_with(&group, options, takes_a_permit, &w->sem);
    if (err == 0 && options)
        err = px_group_spawn_with(&group, options, takes_a_permit, &w->sem);
    else if (err == 0)
        err = px_group_spawn(&group, takes_a_permit, &w->sem);
    waited = px_group_wait(&group);
    EXPECT_EQ(waited, err);
    return err;
}

static int make_group_spawn(struct world *w)
{
    return spawn_two(w, NULL);
}

static int make_group_spawn_with(struct world *w)
{
    px_spawn_options options = {.name = "second"};

    return spawn_two(w, &options);
}

static int make_group_wait(struct world *w)
{
    px_group group;
    int err;

    EXPECT_EQ(px_group_open(&group), 0);
    err = px_group_spawn(&group, takes_a_permit, &w->sem);
    EXPECT(err == 0 || err == px_check());
    return px_group_wait(&group);
}

static int takes_one_of_many(size_t i UNUSED, void *arg)
{
    return takes_a_permit(arg);
}

static int make_map(struct world *w)
{
    return px_map_concurrent(2, 1, takes_one_of_many, &w->sem);
}

static int blocks_the_thread(void *arg)
{
    struct world *w = arg;
    char byte;

    __atomic_store_n(&w->busy, 1, __ATOMIC_RELEASE);
    return (int)read(w->ends[0], &byte, 1);
}

static int offloads_a_blocker(void *arg)
{
    EXPECT_EQ(px_offload(blocks_the_thread, arg), 1);
    return 0;
}

/* The only thread of the pool is busy. */
static void prepare_offload(struct world *w)
{
    EXPECT_EQ(pipe(w->ends), 0);
    start(offloads_a_blocker, w);
    while (!__atomic_load_n(&w->busy, __ATOMIC_ACQUIRE))
        EXPECT_EQ(px_sleep(PX_MSEC), 0);
}

static bool nothing_ran(struct world *w, bool granted UNUSED)
{
    return w->ran == 0;
}

static int make_offload(struct world *w)
{
    return px_offload(counts_a_run, w);
}

static const struct call calls[] = {
    {.name = "px_yield",
     .prepare = nothing,
     .make = make_yield,
     .grant = nothing,
     .never_waits = true},
    {.name = "px_sleep",
     .prepare = prepare_sleep,
     .make = make_sleep,
     .grant = grant_sleep},
    {.name = "px_sleep_until",
     .prepare = prepare_sleep,
     .make = make_sleep_until,
     .grant = grant_sleep},
    {.name = "px_await",
     .prepare = prepare_await,
     .make = make_await,
     .grant = grant_await},
    {.name = "px_await_all",
     .prepare = prepare_await,
     .make = make_await_all,
     .grant = grant_await},
    {.name = "px_sem_down",
     .prepare = nothing,
     .make = make_down,
     .grant = grant_sem,
     .is_untouched = sem_is_untouched},
    {.name = "px_sem_down_n",
     .prepare = nothing,
     .make = make_down_n,
     .grant = grant_sem,
     .is_untouched = sem_is_untouched},
    {.name = "px_sem_wait_available",
     .prepare = nothing,
     .make = make_wait_available,
     .grant = grant_sem,
     .is_untouched = sem_is_untouched},
    {.name = "px_sem_with",
     .prepare = nothing,
     .make = make_sem_with,
     .grant = grant_sem,
     .is_untouched = sem_is_untouched,
     .value = 5},
    {.name = "px_mutex_lock",
     .prepare = prepare_mutex,
     .make = make_lock,
     .grant = grant_mutex,
     .is_untouched = mutex_is_untouched},
    {.name = "px_mutex_with",
     .prepare = prepare_mutex,
     .make = make_mutex_with,
     .grant = grant_mutex,
     .is_untouched = mutex_is_untouched,
     .value = 5},
    {.name = "px_waitgroup_wait",
     .prepare = prepare_wait,
     .make = make_wait,
     .grant = grant_wait,
     .is_untouched = waitgroup_is_untouched},
    {.name = "px_wait_fd",
     .prepare = prepare_pipe,
     .make = make_wait_fd,
     .grant = grant_byte,
     .value = PX_READABLE},
    {.name = "px_read",
     .prepare = prepare_pipe,
     .make = make_read,
     .grant = grant_byte,
     .value = 1},
    {.name = "px_write",
     .prepare = prepare_full_pipe,
     .make = make_write,
     .grant = grant_room,
     .value = 1},
    {.name = "px_write_all",
     .prepare = prepare_full_pipe,
     .make = make_write_all,
     .grant = grant_room,
     .is_untouched = nothing_was_written},
    {.name = "px_accept",
     .prepare = prepare_listener,
     .make = make_accept,
     .grant = grant_client},
    {.name = "px_connect",
     .prepare = prepare_full_backlog,
     .make = make_connect,
     .grant = grant_backlog,
     .parked_value = PX_ECLOSED},
    {.name = "px_wait_signal",
     .prepare = prepare_signal,
     .make = make_wait_signal,
     .grant = grant_signal,
     .value = 1},
    {.name = "px_group_spawn",
     .prepare = nothing,
     .make = make_group_spawn,
     .grant = grant_group,
     .is_untouched = group_is_untouched},
    {.name = "px_group_spawn_with",
     .prepare = nothing,
     .make = make_group_spawn_with,
     .grant = grant_group,
     .is_untouched = group_is_untouched},
    {.name = "px_group_wait",
     .prepare = nothing,
     .make = make_group_wait,
     .grant = grant_group,
     .is_untouched = group_is_untouched},
    {.name = "px_map_concurrent",
     .prepare = nothing,
     .make = make_map,
     .grant = grant_group,
     .is_untouched = group_is_untouched},
    {.name = "px_offload",
     .prepare = prepare_offload,
     .make = make_offload,
     .grant = grant_byte,
     .is_untouched = nothing_ran,
     .value = 5,
     .real = true},
};

/* ---- The six ways ---- */

enum way {
    CANCELLED_ON_ENTRY,
    TIMED_OUT_ON_ENTRY,
    CANCELLED_WHILE_PARKED,
    TIMED_OUT_WHILE_PARKED,
    CANCELLED_BY_PX_CANCEL,
    CANCELLED_BY_PX_STOP
};

struct test_case {
    const struct call *call;
    enum way way;
    struct world world;
    px_scope scope;
    bool returned;
    int result, next;
    px_nsec began, woke;
};

static void expect_in(const struct test_case *c, const char *what, long long is,
                      long long should_be)
{
    if (is == should_be)
        return;
    (void)fprintf(stderr, "%s: %s is %s, not %s\n", c->call->name, what,
                  err((int)is), err((int)should_be));
    EXPECT(is == should_be);
}

static px_nsec timeout_of(enum way way)
{
    if (way == TIMED_OUT_ON_ENTRY)
        return 0;
    return way == TIMED_OUT_WHILE_PARKED ? TIMEOUT : PX_FOREVER;
}

static int makes_the_call(void *arg)
{
    struct test_case *c = arg;

    EXPECT_EQ(px_scope_enter(&c->scope, timeout_of(c->way)), 0);
    if (c->way == CANCELLED_ON_ENTRY)
        EXPECT_EQ(px_scope_cancel(&c->scope), 0);
    c->began = px_now();
    c->result = c->call->make(&c->world);
    c->woke = px_now();
    c->next = px_check();
    c->returned = true;
    (void)px_scope_leave(&c->scope);
    return 0;
}

/* Give the other fibers, and threads, time to come to rest. */
static void let_them_park(const struct test_case *c)
{
    EXPECT_EQ(px_sleep(c->call->real ? PX_MSEC : 1), 0);
}

static void let_it_return(const struct test_case *c)
{
    for (int i = 0; i < 5000 && !c->returned; i++)
        EXPECT_EQ(px_sleep(PX_MSEC), 0);
}

static void interrupt(struct test_case *c, px_fiber *fiber)
{
    expect_in(c, "having returned", c->returned, false);
    if (c->way == CANCELLED_WHILE_PARKED)
        EXPECT_EQ(px_scope_cancel(&c->scope), 0);
    else if (c->way == CANCELLED_BY_PX_CANCEL)
        EXPECT_EQ(px_cancel(fiber), 0);
    else if (c->way == CANCELLED_BY_PX_STOP)
        EXPECT_EQ(px_stop(), 0);
}

static void close_all(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        if (w->ends[i] >= 0)
            EXPECT_EQ(px_close(w->ends[i]), 0);
        if (w->extra[i] >= 0)
            EXPECT_EQ(px_close(w->extra[i]), 0);
    }
}

/* In a shield, so that px_stop spares it. */
static int tries_one_way(void *arg)
{
    struct test_case *c = arg;
    const struct call *call = c->call;
    bool parks = c->way >= CANCELLED_WHILE_PARKED;
    bool times_out =
        c->way == TIMED_OUT_ON_ENTRY || c->way == TIMED_OUT_WHILE_PARKED;
    int code = times_out ? PX_ETIMEDOUT : PX_ECANCELED;
    px_fiber *fiber;

    call->prepare(&c->world);
    let_them_park(c);
    if (!parks)
        call->grant(&c->world);
    fiber = start_handle(makes_the_call, c);
    if (parks) {
        let_them_park(c);
        interrupt(c, fiber);
    }
    let_it_return(c);
    expect_in(c, "having returned", c->returned, true);
    expect_in(c, "the result", c->result, code);
    expect_in(c, "the next point", c->next, code);
    if (c->way == TIMED_OUT_WHILE_PARKED && !call->real)
        expect_in(c, "the time", c->woke - c->began, TIMEOUT);
    else if (!parks && !call->real)
        expect_in(c, "the time", c->woke - c->began, 0);
    if (call->is_untouched)
        expect_in(c, "being untouched", call->is_untouched(&c->world, !parks),
                  true);
    if (parks)
        call->grant(&c->world);
    expect_in(c, "the value of another call", call->make(&c->world),
              call->value);
    close_all(&c->world);
    return 0;
}

static int runs_in_a_shield(void *arg)
{
    return px_with_shield(PX_FOREVER, tries_one_way, arg);
}

static void try_one_call(const struct call *call, px_fn body, enum way way)
{
    px_run_options options = {.offload_threads = 1};
    struct test_case c = {.call = call, .way = way};
    sigset_t mask;

    for (int i = 0; i < 2; i++)
        c.world.ends[i] = c.world.extra[i] = -1;
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    assert_int_equal(run_fibers_with(options, call->real, body, &c), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &mask, NULL), 0);
}

static void try_every_call(enum way way)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (calls[i].never_waits && way >= CANCELLED_WHILE_PARKED)
            continue;
        try_one_call(&calls[i], runs_in_a_shield, way);
    }
}

static void R68_every_call_fails_on_entry_to_a_cancelled_scope(void **state)
{
    (void)state;
    try_every_call(CANCELLED_ON_ENTRY);
}

static void R68_every_call_fails_on_entry_when_time_is_up(void **state)
{
    (void)state;
    try_every_call(TIMED_OUT_ON_ENTRY);
}

static void R68_every_parked_call_is_cut_short_by_scope_cancel(void **state)
{
    (void)state;
    try_every_call(CANCELLED_WHILE_PARKED);
}

static void R68_every_parked_call_is_cut_short_by_a_deadline(void **state)
{
    (void)state;
    try_every_call(TIMED_OUT_WHILE_PARKED);
}

static void R68_every_parked_call_is_cut_short_by_px_cancel(void **state)
{
    (void)state;
    try_every_call(CANCELLED_BY_PX_CANCEL);
}

static void R68_every_parked_call_is_cut_short_by_px_stop(void **state)
{
    (void)state;
    try_every_call(CANCELLED_BY_PX_STOP);
}

/* ---- What is none ---- */

static int makes_the_call_in_a_shield(void *arg)
{
    struct test_case *c = arg;

    EXPECT_EQ(px_scope_enter(&c->scope, PX_FOREVER), 0);
    EXPECT_EQ(px_scope_shield(&c->scope, true), 0);
    c->result = c->call->make(&c->world);
    c->returned = true;
    (void)px_scope_leave(&c->scope);
    return 0;
}

static int comes_and_goes(void *arg UNUSED)
{
    return px_yield();
}

/* Everything that has to do with a wait, and does not end it. */
static void poke(struct test_case *c, px_fiber *fiber)
{
    struct world *w = &c->world;

    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_scope_set_deadline(&c->scope, px_now() + 9 * PX_MINUTE), 0);
    EXPECT_EQ(px_scope_set_deadline(&c->scope, PX_FOREVER), 0);
    EXPECT_EQ(px_set_name(fiber, "poked"), 0);
    EXPECT_EQ(px_sem_up_n(&w->sem, 0), 0);
    EXPECT_EQ(px_sem_adjust(&w->sem, -1), 0);
    EXPECT_EQ(px_sem_adjust(&w->sem, 1), 0);
    EXPECT_EQ(px_sem_remove_waiter(&w->sem, 999), 0);
    if (px_mutex_try_lock(&w->mutex) == 0)
        EXPECT_EQ(px_mutex_unlock(&w->mutex), 0);
    EXPECT_EQ(px_mutex_remove_waiter(&w->mutex, 999), 0);
    EXPECT_EQ(px_waitgroup_add(&w->wg, 1), 0);
    EXPECT_EQ(px_waitgroup_done(&w->wg), 0);
    EXPECT_EQ(px_post(px_current_loop(), comes_and_goes, NULL), 0);
    EXPECT_EQ(px_await(start_handle(comes_and_goes, NULL), NULL), 0);
    for (int i = 0; i < 200; i++)
        EXPECT_EQ(px_yield(), 0);
    let_them_park(c);
}

static int pokes_a_waiter(void *arg)
{
    struct test_case *c = arg;
    px_fiber *fiber;

    c->call->prepare(&c->world);
    let_them_park(c);
    fiber = start_handle(makes_the_call_in_a_shield, c);
    let_them_park(c);
    for (int i = 0; i < 3; i++)
        poke(c, fiber);
    expect_in(c, "having returned", c->returned, false);
    if (c->call->is_untouched)
        expect_in(c, "a run of its function", c->world.ran, 0);
    c->call->grant(&c->world);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    expect_in(c, "the result", c->result,
              c->call->parked_value ? c->call->parked_value : c->call->value);
    close_all(&c->world);
    return 0;
}

static void R97_nothing_ends_a_wait_but_what_it_waits_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (!calls[i].never_waits)
            try_one_call(&calls[i], pokes_a_waiter, CANCELLED_BY_PX_CANCEL);
    }
}

static const struct CMUnitTest tests[] = {
    PX_TEST(R68_every_call_fails_on_entry_to_a_cancelled_scope),
    PX_TEST(R68_every_call_fails_on_entry_when_time_is_up),
    PX_TEST(R68_every_parked_call_is_cut_short_by_scope_cancel),
    PX_TEST(R68_every_parked_call_is_cut_short_by_a_deadline),
    PX_TEST(R68_every_parked_call_is_cut_short_by_px_cancel),
    PX_TEST(R68_every_parked_call_is_cut_short_by_px_stop),
    PX_TEST(R97_nothing_ends_a_wait_but_what_it_waits_for),
};

PX_TEST_MAIN(tests)
