/* SPDX-License-Identifier: MIT */
/*
 * test_faults_io.c - waiting for descriptors, and transfers, while the calls
 * they are made of fail.
 */
#include "px_test_io.h"
#include "sweep.h"

#define IO (NOMEM | SYSTEM | SETS_ERRNO)

static int ends[2]; /* of the pass */
static int done;

static void open_test_pair(void)
{
    open_pair(ends, SOCK_NONBLOCK);
}

static void open_full_pair(void)
{
    open_test_pair();
    (void)fill(ends[0]);
}

static void open_pipe_blocking(void)
{
    open_pipe(ends, 0);
    HOLDS(__real_fcntl(ends[1], F_SETPIPE_SZ, 4096) == 4096); /* soon full */
}

static void open_pipe_nonblocking(void)
{
    open_pipe(ends, O_NONBLOCK);
}

static void close_test_pair(void)
{
    close_both(ends);
}

/* Of the test's own: never fails. */
static void put_really(int fd, char byte)
{
    HOLDS(__real_write(fd, &byte, 1) == 1);
}

static px_fiber *start_one(px_fn fn, void *arg)
{
    px_fiber *fiber = NULL;
    int err;

    UNTIL_OK(err, px_spawn(&fiber, fn, arg), NOMEM, !fiber);
    return fiber;
}

static int waits_for(void *arg)
{
    int events = *(const int *)arg, err;

    UNTIL_OK(err, px_wait_fd(ends[0], events), IO, true);
    HOLDS(err == events);
    done++;
    return 0;
}

/* Two wait for the same descriptor, each for another direction; one is there
 * first, and the other must be armed again. */
static int waits_for_both(void *arg)
{
    static const int readable = PX_READABLE, writable = PX_WRITABLE;
    px_fiber *fibers[3];
    char bytes[4096];
    ssize_t got;

    (void)arg;
    done = 0;
    for (int i = 0; i < 3; i++)
        fibers[i] =
            start_one(waits_for, (void *)(i == 1 ? &writable : &readable));
    put_really(ends[1], 'x');
    HOLDS(px_await(fibers[0], NULL) == 0);
    HOLDS(px_await(fibers[2], NULL) == 0);
    HOLDS(done == 2);
    do
        got = __real_read(ends[1], bytes, sizeof(bytes));
    while (got > 0);
    HOLDS(px_await(fibers[1], NULL) == 0);
    HOLDS(done == 3);
    return 0;
}

static void a_wait_for_a_descriptor_is_refused(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = waits_for_both,
                             .set_up = open_full_pair,
                             .tear_down = close_test_pair});
}

enum { CROWD = 40 }; /* more than the poller has had room for so far */

static int crowd_ends[CROWD][2];

static void open_crowd(void)
{
    for (int i = 0; i < CROWD; i++)
        open_pair(crowd_ends[i], SOCK_NONBLOCK);
}

static void close_crowd(void)
{
    for (int i = 0; i < CROWD; i++)
        close_both(crowd_ends[i]);
}

static int waits_in_a_crowd(void *arg)
{
    const int *pair = arg;
    int err;

    UNTIL_OK(err, px_wait_fd(pair[0], PX_READABLE), IO, true);
    HOLDS(err == PX_READABLE);
    done++;
    return 0;
}

static int crowds(void *arg)
{
    px_fiber *fibers[CROWD];

    (void)arg;
    done = 0;
    for (int i = 0; i < CROWD; i++)
        fibers[i] = start_one(waits_in_a_crowd, crowd_ends[i]);
    for (int i = 0; i < CROWD; i++)
        put_really(crowd_ends[i][1], 'x');
    HOLDS(px_await_all(fibers, CROWD, NULL) == 0);
    HOLDS(done == CROWD);
    return 0;
}

static void a_crowd_at_descriptors_finds_room_or_is_refused(void **state)
{
    const struct workload workload = {
        .body = crowds, .set_up = open_crowd, .tear_down = close_crowd};
    bool was_hit = true;

    (void)state;
    for (long first = 1; was_hit; first++) {
        struct fault fault = {CALL_realloc, ENOMEM, first, 1};

        sweep_pass(&workload, &fault, 1);
        was_hit = inject_hit();
    }
    assert_log("");
}

enum { LENGTH = 20000 };

static int sends(void *arg)
{
    size_t sent = 0, more = 0;
    int err;

    (void)arg;
    UNTIL_OK(err,
             px_write_all(ends[1], large_block() + sent, LENGTH - sent, &more),
             IO, (sent += more) < LENGTH);
    done++;
    return 0;
}

/* Every byte, once and in order. */
static int receives(void *arg)
{
    char bytes[3000];
    size_t received = 0;
    bool in_order = true;
    ssize_t got;

    (void)arg;
    while (received < LENGTH) {
        UNTIL_OK(got, px_read(ends[0], bytes, sizeof(bytes)), IO, true);
        if (got <= 0)
            break;
        for (ssize_t i = 0; i < got; i++)
            in_order = in_order && bytes[i] == pattern(received++);
    }
    HOLDS(in_order && received == LENGTH);
    done++;
    return 0;
}

static int transfers(void *arg)
{
    px_fiber *fibers[2];

    (void)arg;
    (void)large_block();
    done = 0;
    fibers[0] = start_one(receives, NULL);
    fibers[1] = start_one(sends, NULL);
    HOLDS(px_await_all(fibers, 2, NULL) == 0);
    HOLDS(done == 2);
    return 0;
}

static void a_transfer_by_sockets_loses_no_byte(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = transfers,
                             .set_up = open_test_pair,
                             .tear_down = close_test_pair});
}

static void a_transfer_by_a_pipe_loses_no_byte(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = transfers,
                             .set_up = open_pipe_nonblocking,
                             .tear_down = close_test_pair});
}

static void a_transfer_by_a_blocking_pipe_never_blocks(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = transfers,
                             .set_up = open_pipe_blocking,
                             .tear_down = close_test_pair});
}

/* --- Connections ---------------------------------------------------------- */

static int listener;
static struct sockaddr_in address;
static int accepted, connected;

static void listen_nonblocking(void)
{
    listener = listen_tcp(&address, 8, SOCK_NONBLOCK);
}

static void listen_blocking(void)
{
    listener = listen_tcp(&address, 8, 0);
}

static void close_listener(void)
{
    (void)__real_close(listener);
}

static int accepts(void *arg)
{
    (void)arg;
    UNTIL_OK(accepted, px_accept(listener, NULL, NULL), IO, true);
    done++;
    return 0;
}

/* After a connect that was refused by the system the socket may be connected
 * all the same: then the first one has come. */
static int connects(void *arg)
{
    int err;

    (void)arg;
    UNTIL_OK(err,
             (err = px_connect(connected, (struct sockaddr *)&address,
                               sizeof(address)),
              err == -EISCONN || err == -EALREADY ? 0 : err),
             IO, true);
    done++;
    return 0;
}

static int meets(void *arg)
{
    px_fiber *fibers[2];

    (void)arg;
    done = 0;
    connected = tcp_socket(0);
    fibers[0] = start_one(accepts, NULL);
    fibers[1] = start_one(connects, NULL);
    HOLDS(px_await_all(fibers, 2, NULL) == 0);
    HOLDS(done == 2);
    put_really(connected, 'x');
    ends[0] = accepted;
    HOLDS(px_wait_fd(accepted, PX_READABLE) == PX_READABLE || inject_hit());
    inject_lift();
    HOLDS(px_close(accepted) == 0);
    HOLDS(px_close(connected) == 0);
    return 0;
}

static void a_connection_is_made_all_the_same(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = meets,
                             .real = true,
                             .set_up = listen_nonblocking,
                             .tear_down = close_listener});
}

static void a_blocking_listener_never_blocks(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = meets,
                             .real = true,
                             .set_up = listen_blocking,
                             .tear_down = close_listener});
}

static struct sockaddr_un name;
static socklen_t name_size;

static void listen_unix_full(void)
{
    listener = listen_unix(&name, &name_size, 0, SOCK_NONBLOCK);
    ends[0] = unix_socket();
    HOLDS(connect(ends[0], (struct sockaddr *)&name, name_size) == 0);
}

static void close_unix(void)
{
    (void)__real_close(ends[0]);
    close_listener();
}

static int connects_by_name(void *arg)
{
    int err;

    (void)arg;
    UNTIL_OK(err,
             (err = px_connect(connected, (struct sockaddr *)&name, name_size),
              err == -EISCONN ? 0 : err),
             IO, true);
    done++;
    return 0;
}

/* The backlog is full until the first of two is accepted. */
static int meets_by_name(void *arg)
{
    px_fiber *fiber;

    (void)arg;
    done = 0;
    connected = unix_socket();
    fiber = start_one(connects_by_name, NULL);
    HOLDS(px_sleep(3 * PX_MSEC) == 0);
    (void)accepts(NULL);
    HOLDS(px_await(fiber, NULL) == 0);
    HOLDS(done == 2);
    inject_lift();
    HOLDS(px_close(accepted) == 0);
    HOLDS(px_close(connected) == 0);
    return 0;
}

static void a_full_backlog_is_waited_for(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = meets_by_name,
                             .set_up = listen_unix_full,
                             .tear_down = close_unix});
}

/* --- Closing -------------------------------------------------------------- */

static int waits_until_closed(void *arg)
{
    int err;

    (void)arg;
    UNTIL_OK(
        err,
        (err = px_wait_fd(ends[0], PX_READABLE), err == PX_ECLOSED ? 0 : err),
        IO, true);
    done++;
    return 0;
}

/* Closed whatever is returned; those who wait are told. */
static int closes(void *arg)
{
    px_fiber *fiber;
    int err;

    (void)arg;
    done = 0;
    fiber = start_one(waits_until_closed, NULL);
    for (int i = 0; i < 2; i++) {
        err = px_close(ends[i]);
        HOLDS(err == 0 || (inject_hit() && err == -EIO));
        HOLDS(__real_fcntl(ends[i], F_GETFD) == -1 && errno == EBADF);
    }
    HOLDS(px_await(fiber, NULL) == 0);
    HOLDS(done == 1);
    return 0;
}

static void what_is_closed_is_closed(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = closes, .set_up = open_test_pair});
}

static int makes_nonblocking(void *arg)
{
    int err;

    (void)arg;
    UNTIL_OK(err, px_nonblock(ends[0]), IO,
             !(__real_fcntl(ends[0], F_GETFL) & O_NONBLOCK));
    HOLDS(__real_fcntl(ends[0], F_GETFL) & O_NONBLOCK);
    return 0;
}

static void a_mode_is_as_it_was(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = makes_nonblocking,
                             .off_fiber = true,
                             .set_up = open_pipe_blocking,
                             .tear_down = close_test_pair});
}

/* Off-fiber nothing waits; what is there comes. */
static int transfers_off_fiber(void *arg)
{
    char byte = 'x';
    ssize_t n;

    (void)arg;
    UNTIL_OK(n, px_write(ends[1], &byte, 1), IO, true);
    UNTIL_OK(n, px_read(ends[0], &byte, 1), IO, true);
    HOLDS(n == 1 && byte == 'x');
    return 0;
}

static void off_fiber_it_is_the_same(void **state)
{
    (void)state;
    sweep(&(struct workload){.body = transfers_off_fiber,
                             .off_fiber = true,
                             .set_up = open_pipe_blocking,
                             .tear_down = close_test_pair});
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_wait_for_a_descriptor_is_refused),
    PX_TEST(a_crowd_at_descriptors_finds_room_or_is_refused),
    PX_TEST(a_transfer_by_sockets_loses_no_byte),
    PX_TEST(a_transfer_by_a_pipe_loses_no_byte),
    PX_TEST(a_transfer_by_a_blocking_pipe_never_blocks),
    PX_TEST(a_connection_is_made_all_the_same),
    PX_TEST(a_blocking_listener_never_blocks),
    PX_TEST(a_full_backlog_is_waited_for),
    PX_TEST(what_is_closed_is_closed),
    PX_TEST(a_mode_is_as_it_was),
    PX_TEST(off_fiber_it_is_the_same),
};

PX_TEST_MAIN(tests)
