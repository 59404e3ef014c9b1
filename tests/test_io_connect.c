/* SPDX-License-Identifier: MIT */
/*
 * test_io_connect.c - px_accept() and px_connect(), and an echo server with
 * its clients in one loop.
 *
 * Local sockets deliver at once, which suits the virtual clock; TCP is run by
 * the real one.
 */
#define _GNU_SOURCE 1

#include "px_test_io.h"

#include <linux/net_tstamp.h>

/* ---- accept ---- */

static int accepts(void *arg)
{
    struct sockaddr_un address;
    socklen_t size;

    (void)arg;
    for (int i = 0; i < 2; i++) {
        int flags = i ? SOCK_NONBLOCK : 0, before;
        int listener = listen_unix(&address, &size, 5, flags);
        int client = unix_socket();

        before = fcntl(listener, F_GETFL);
        struct accepting a = {.listener = listener};
        start(accept_it, &a);
        settle();
        EXPECT(!a.done);
        EXPECT_EQ(fcntl(listener, F_GETFL), before);
        EXPECT_EQ(connect(client, (struct sockaddr *)&address, size), 0);
        settle();
        EXPECT(a.done && a.result >= 0);
        EXPECT(fcntl(a.result, F_GETFL) & O_NONBLOCK);
        EXPECT(fcntl(a.result, F_GETFD) & FD_CLOEXEC);
        EXPECT_EQ(fcntl(listener, F_GETFL), before);
        put(client, 'x');
        EXPECT_EQ(take(a.result), 'x');
        EXPECT_EQ(px_close(a.result), 0);
        EXPECT_EQ(px_close(client), 0);
        EXPECT_EQ(px_close(listener), 0);
    }
    return 0;
}

static void accept_gives_a_nonblocking_descriptor_closed_on_exec(void **state)
{
    (void)state;
    check(accepts);
}

static int accept_addresses(void *arg)
{
    struct sockaddr_in address, peer, mine;
    socklen_t peer_size = sizeof(peer), my_size = sizeof(mine);
    int listener = listen_tcp(&address, 5, SOCK_NONBLOCK), served;
    int client = tcp_socket(0);

    (void)arg;
    EXPECT_EQ(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
    served = px_accept(listener, (struct sockaddr *)&peer, &peer_size);
    EXPECT(served >= 0);
    EXPECT_EQ(getsockname(client, (struct sockaddr *)&mine, &my_size), 0);
    EXPECT_EQ(peer_size, sizeof(peer));
    EXPECT_EQ(peer.sin_family, AF_INET);
    EXPECT_EQ(peer.sin_port, mine.sin_port);
    EXPECT_EQ(px_close(served), 0);
    EXPECT_EQ(px_close(client), 0);
    EXPECT_EQ(px_close(listener), 0);
    return 0;
}

static void accept_tells_the_address_of_the_peer(void **state)
{
    (void)state;
    check_real(accept_addresses);
}

static int two_acceptors(void *arg)
{
    struct sockaddr_un address;
    socklen_t size;
    int client[2];

    (void)arg;
    for (int i = 0; i < 2; i++) {
        int listener = listen_unix(&address, &size, 5, i ? SOCK_NONBLOCK : 0);
        struct accepting a = {.listener = listener}, b = a;

        start(accept_it, &a);
        start(accept_it, &b);
        settle();
        client[0] = unix_socket();
        client[1] = unix_socket();
        EXPECT_EQ(connect(client[0], (struct sockaddr *)&address, size), 0);
        settle();
        EXPECT(a.done != b.done);
        EXPECT_EQ(connect(client[1], (struct sockaddr *)&address, size), 0);
        settle();
        EXPECT(a.done && b.done && a.result != b.result);
        EXPECT_EQ(px_close(a.result), 0);
        EXPECT_EQ(px_close(b.result), 0);
        EXPECT_EQ(px_close(listener), 0);
        px_close_both(client);
    }
    return 0;
}

static void of_two_acceptors_one_gets_the_connection(void **state)
{
    (void)state;
    check(two_acceptors);
}

static int accept_fails(void *arg)
{
    struct sockaddr_un address;
    socklen_t size;
    int listener = listen_unix(&address, &size, 5, 0);
    int plain = unix_socket(), client = unix_socket(), pair[2];
    struct accepting a = {.listener = listener};
    px_fiber *fiber;

    (void)arg;
    EXPECT_EQ(px_accept(plain, NULL, NULL), PX_EINVAL);
    open_pair(pair, 0);
    EXPECT_EQ(px_accept(pair[0], NULL, NULL), PX_EINVAL);
    px_close_both(pair);
    EXPECT_EQ(px_with_timeout(10 * PX_MSEC, accept_it, &a), 0);
    EXPECT_EQ(a.result, PX_ETIMEDOUT);
    fiber = start_handle(accept_it, &a);
    EXPECT_EQ(px_cancel_and_await(fiber, NULL), 0);
    EXPECT_EQ(a.result, PX_ECANCELED);

    /* In a fired scope the connection stays in the queue. */
    EXPECT_EQ(connect(client, (struct sockaddr *)&address, size), 0);
    EXPECT_EQ(px_with_timeout(0, accept_it, &a), 0);
    EXPECT_EQ(a.result, PX_ETIMEDOUT);
    EXPECT_EQ(accept_it(&a), 0);
    EXPECT(a.result >= 0);
    EXPECT_EQ(px_close(a.result), 0);
    EXPECT_EQ(px_close(client), 0);
    EXPECT_EQ(px_close(plain), 0);
    EXPECT_EQ(px_close(listener), 0);
    return 0;
}

static void an_interrupted_accept_takes_no_connection(void **state)
{
    (void)state;
    check(accept_fails);
}

static int out_of_descriptors(void *arg)
{
    struct sockaddr_un address;
    socklen_t size;

    (void)arg;
    for (int i = 0; i < 2; i++) {
        int listener = listen_unix(&address, &size, 5, i ? SOCK_NONBLOCK : 0);
        int client = unix_socket();
        struct accepting a = {.listener = listener};
        struct rlimit old;

        start(accept_it, &a);
        settle();
        EXPECT(!a.done);
        old = no_more_descriptors();
        EXPECT_EQ(connect(client, (struct sockaddr *)&address, size), 0);
        settle();
        EXPECT(a.done);
        EXPECT_EQ(a.result, -EMFILE);
        EXPECT_EQ(px_accept(listener, NULL, NULL), -EMFILE);
        EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
        EXPECT_EQ(accept_it(&a), 0);
        EXPECT(a.result >= 0);
        EXPECT_EQ(px_close(a.result), 0);
        EXPECT_EQ(px_close(client), 0);
        EXPECT_EQ(px_close(listener), 0);
    }
    return 0;
}

static void
running_out_of_descriptors_is_returned_and_loses_nothing(void **state)
{
    (void)state;
    skip_under_valgrind();
    check(out_of_descriptors);
}

/* ---- connect ---- */

static int connects(void *arg)
{
    struct sockaddr_in tcp;
    struct sockaddr_un local;
    socklen_t size;
    int tcp_listener = listen_tcp(&tcp, 5, 0), served;
    int unix_listener = listen_unix(&local, &size, 5, 0);
    int client = tcp_socket(0);

    (void)arg;
    EXPECT_EQ(fcntl(client, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_EQ(px_connect(client, (struct sockaddr *)&tcp, sizeof(tcp)), 0);
    EXPECT(fcntl(client, F_GETFL) & O_NONBLOCK);
    served = px_accept(tcp_listener, NULL, NULL);
    EXPECT(served >= 0);
    EXPECT_EQ(px_write(client, "x", 1), 1);
    EXPECT_EQ(px_wait_fd(served, PX_READABLE), PX_READABLE);
    EXPECT_EQ(take(served), 'x');
    EXPECT_EQ(px_close(client), 0);
    EXPECT_EQ(px_close(served), 0);

    client = unix_socket();
    EXPECT_EQ(px_connect(client, (struct sockaddr *)&local, size), 0);
    EXPECT(fcntl(client, F_GETFL) & O_NONBLOCK);
    served = px_accept(unix_listener, NULL, NULL);
    EXPECT(served >= 0);
    EXPECT_EQ(px_connect(client, (struct sockaddr *)&local, size), -EISCONN);
    EXPECT_EQ(px_close(served), 0);
    EXPECT_EQ(px_close(client), 0);

    client = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(px_connect(client, (struct sockaddr *)&tcp, sizeof(tcp)), 0);
    EXPECT_EQ(px_close(client), 0);
    EXPECT_EQ(px_close(tcp_listener), 0);
    EXPECT_EQ(px_close(unix_listener), 0);
    return 0;
}

static void connect_reaches_a_listener_and_sets_nonblocking(void **state)
{
    (void)state;
    check_real(connects);
}

static int refused(void *arg)
{
    struct sockaddr_in tcp = {.sin_family = AF_INET};
    struct sockaddr_un local;
    socklen_t size = sizeof(tcp);
    int silent = tcp_socket(0), client = tcp_socket(0);

    (void)arg;
    /* Bound, so that nobody else has the port, but not listening. */
    tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(silent, (struct sockaddr *)&tcp, size), 0);
    EXPECT_EQ(getsockname(silent, (struct sockaddr *)&tcp, &size), 0);
    EXPECT_EQ(px_connect(client, (struct sockaddr *)&tcp, size), -ECONNREFUSED);
    EXPECT_EQ(px_close(client), 0);
    EXPECT_EQ(px_close(silent), 0);

    EXPECT_EQ(px_close(listen_unix(&local, &size, 5, 0)), 0);
    client = unix_socket();
    EXPECT_EQ(px_connect(client, (struct sockaddr *)&local, size),
              -ECONNREFUSED);
    EXPECT_EQ(px_close(client), 0);
    return 0;
}

static void a_refused_connection_is_told_so(void **state)
{
    (void)state;
    check_real(refused);
}

static int interrupted_connects(void *arg)
{
    struct mute_listener m;
    px_fiber *fiber;

    (void)arg;
    open_mute(&m);
    struct connecting c = {.fd = tcp_socket(0),
                           .address = (struct sockaddr *)&m.address,
                           .size = sizeof(m.address)};
    fiber = start_handle(connect_it, &c);
    settle();
    EXPECT(!c.done);
    EXPECT_EQ(px_cancel_and_await(fiber, NULL), 0);
    EXPECT_EQ(c.result, PX_ECANCELED);
    EXPECT_EQ(px_close(c.fd), 0);

    c.fd = tcp_socket(0);
    EXPECT_EQ(px_with_timeout(50 * PX_MSEC, connect_it, &c), 0);
    EXPECT_EQ(c.result, PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 50 * PX_MSEC + 1);
    EXPECT_EQ(px_close(c.fd), 0);

    /* In a fired scope it does not even begin. */
    c.fd = tcp_socket(0);
    EXPECT_EQ(px_with_timeout(0, connect_it, &c), 0);
    EXPECT_EQ(c.result, PX_ETIMEDOUT);
    close_mute(&m);
    m.listener = listen_tcp(&m.address, 5, 0);
    EXPECT_EQ(connect_it(&c), 0);
    EXPECT_EQ(c.result, 0);
    EXPECT_EQ(px_close(c.fd), 0);
    EXPECT_EQ(px_close(m.listener), 0);
    return 0;
}

static void a_connect_that_nobody_answers_is_interrupted_by_scopes(void **state)
{
    (void)state;
    check(interrupted_connects);
}

/* The library asks such a listener again after 1, 3, 7 ms, ...: at each of
 * those moments the cancellation comes first. */
struct canceller {
    px_fiber *fiber;
    px_nsec when;
};

static int cancels_in_time(void *arg)
{
    struct canceller *canceller = arg;

    EXPECT_EQ(px_sleep_until(canceller->when), 0);
    return px_cancel(canceller->fiber);
}

static int cancelled_as_a_pause_ends(void *arg)
{
    struct sockaddr_un address;
    socklen_t size;
    int listener = listen_unix(&address, &size, 0, 0), filler = unix_socket();

    (void)arg;
    EXPECT_EQ(connect(filler, (struct sockaddr *)&address, size), 0);
    for (int ms = 1; ms <= 10; ms++) {
        struct canceller canceller = {.when = px_now() + ms * PX_MSEC};
        struct connecting c = {.fd = unix_socket(),
                               .address = (struct sockaddr *)&address,
                               .size = size};
        px_fiber *other = start_handle(cancels_in_time, &canceller);

        EXPECT_EQ(px_spawn(&canceller.fiber, connect_it, &c), 0);
        EXPECT_EQ(px_await(other, NULL), 0);
        EXPECT_EQ(px_await(canceller.fiber, NULL), 0);
        EXPECT_EQ(c.result, PX_ECANCELED);
        EXPECT_EQ(px_close(c.fd), 0);
    }
    EXPECT_EQ(px_close(filler), 0);
    EXPECT_EQ(px_close(listener), 0);
    return 0;
}

static void
a_connect_that_is_cancelled_as_its_pause_ends_says_canceled(void **state)
{
    (void)state;
    check(cancelled_as_a_pause_ends);
}

/* A TCP socket that was connected, and has a report of what it sent then in
 * its queue of errors; -1 where there are no such reports. */
static int used_socket(void)
{
    int on = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
    struct sockaddr_in address;
    int listener = listen_tcp(&address, 1, 0), fd = tcp_socket(0);
    struct pollfd set = {.fd = fd};

    EXPECT_EQ(px_connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &on, sizeof(on));
    EXPECT_EQ(px_write(fd, "x", 1), 1);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_EQ(connect(fd, &nowhere, sizeof(nowhere)), 0);
    EXPECT_EQ(px_close(listener), 0);
    if (poll(&set, 1, 0) == 1 && set.revents & POLLERR)
        return fd;
    EXPECT_EQ(px_close(fd), 0);
    return -1;
}

static int connects_beside_an_error(void *arg)
{
    int fd = used_socket(), err = 0;
    struct mute_listener m;

    (void)arg;
    if (fd < 0) {
        print_message("left out: there are no reports of what is sent\n");
        return 0;
    }
    open_mute(&m);
    PX_WITHIN(scope, 50 * PX_MSEC)
        err = px_connect(fd, (struct sockaddr *)&m.address, sizeof(m.address));
    EXPECT_EQ(err, PX_ETIMEDOUT);
    EXPECT_EQ(px_close(fd), 0);
    close_mute(&m);
    return 0;
}

static void an_earlier_error_decides_no_connect(void **state)
{
    (void)state;
    check_real(connects_beside_an_error);
}

static void off_a_fiber_accept_and_connect_never_wait(void **state)
{
    struct sockaddr_un address;
    socklen_t size;
    int listener = listen_unix(&address, &size, 0, 0), served;
    struct connecting c[2];

    (void)state;
    assert_int_equal(px_accept(listener, NULL, NULL), PX_ENOFIBER);
    for (int i = 0; i < 2; i++) {
        c[i] = (struct connecting){.fd = unix_socket(),
                                   .address = (struct sockaddr *)&address,
                                   .size = size};
        (void)connect_it(&c[i]);
    }
    assert_int_equal(c[0].result, 0);
    assert_int_equal(c[1].result, PX_ENOFIBER);
    served = px_accept(listener, NULL, NULL);
    assert_true(served >= 0);
    assert_int_equal(px_close(served), 0);
    assert_int_equal(px_close(c[0].fd), 0);
    assert_int_equal(px_close(c[1].fd), 0);
    assert_int_equal(px_close(listener), 0);
    assert_log("");
}

static void off_a_fiber_a_connect_may_be_under_way(void **state)
{
    struct mute_listener m;
    struct sockaddr *address = (struct sockaddr *)&m.address;
    int fd = tcp_socket(0);

    (void)state;
    open_mute(&m);
    assert_int_equal(px_connect(fd, address, sizeof(m.address)), PX_ENOFIBER);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_int_equal(px_connect(fd, address, sizeof(m.address)), -EALREADY);
    assert_int_equal(px_close(fd), 0);
    close_mute(&m);
    assert_log("");
}

static int full_backlog(void *arg)
{
    struct sockaddr_un address;
    socklen_t size;
    int listener = listen_unix(&address, &size, 0, 0), served[2];
    struct connecting c[3];
    px_fiber *fiber;

    (void)arg;
    for (int i = 0; i < 3; i++)
        c[i] = (struct connecting){.fd = unix_socket(),
                                   .address = (struct sockaddr *)&address,
                                   .size = size};
    EXPECT_EQ(connect_it(&c[0]), 0);
    EXPECT_EQ(c[0].result, 0);
    EXPECT_EQ(px_with_timeout(500 * PX_MSEC, connect_it, &c[1]), 0);
    EXPECT_EQ(c[1].result, PX_ETIMEDOUT);
    fiber = start_handle(connect_it, &c[2]);
    settle();
    EXPECT(!c[2].done);
    served[0] = px_accept(listener, NULL, NULL);
    EXPECT(served[0] >= 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(c[2].result, 0);
    served[1] = px_accept(listener, NULL, NULL);
    EXPECT(served[1] >= 0);
    EXPECT_EQ(px_write(c[2].fd, "x", 1), 1);
    EXPECT_EQ(take(served[1]), 'x');
    px_close_both(served);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(px_close(c[i].fd), 0);
    EXPECT_EQ(px_close(listener), 0);
    return 0;
}

static void a_connect_to_a_full_local_backlog_waits_for_a_place(void **state)
{
    (void)state;
    check(full_backlog);
}

/* ---- all together: an echo server and its clients in one loop ---- */

enum { CLIENTS = 20 };

static int echoes(void *arg)
{
    int fd = *(int *)arg;
    char bytes[512];
    ssize_t got;

    while ((got = px_read(fd, bytes, sizeof(bytes))) > 0)
        EXPECT_EQ(px_write_all(fd, bytes, (size_t)got, NULL), 0);
    EXPECT_EQ(got, 0);
    EXPECT_EQ(px_close(fd), 0);
    return 0;
}

static int serves(void *arg)
{
    static const px_spawn_options by_value = {.arg_size = sizeof(int)};
    int listener = *(int *)arg, fd;

    while ((fd = px_accept(listener, NULL, NULL)) >= 0)
        EXPECT_EQ(px_spawn_with(NULL, &by_value, echoes, &fd), 0);
    return fd;
}

struct client {
    struct sockaddr_in *address;
    bool intact;
};

static int talks(void *arg)
{
    struct client *c = arg;
    int fd = tcp_socket(SOCK_NONBLOCK), values[2];
    px_fiber *fibers[2];

    EXPECT_EQ(
        px_connect(fd, (struct sockaddr *)c->address, sizeof(*c->address)), 0);
    struct stream out = {.fd = fd, .size = (size_t)scaled(100000, 10000)};
    struct stream in = {.fd = fd, .size = out.size};
    fibers[0] = start_handle(sends_it_all, &out);
    fibers[1] = start_handle(receives_it_all, &in);
    EXPECT_EQ(px_await_all(fibers, 2, values), 0);
    c->intact = out.done == out.size && in.done == in.size && in.in_order;
    EXPECT_EQ(px_close(fd), 0);
    return 0;
}

static int clients_and_server(void *arg)
{
    struct sockaddr_in address;
    int listener = listen_tcp(&address, CLIENTS, SOCK_NONBLOCK), ended = 0;
    px_fiber *server = start_handle(serves, &listener), *fibers[CLIENTS];
    struct client clients[CLIENTS];

    (void)arg;
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){&address, false};
        fibers[i] = start_handle(talks, &clients[i]);
    }
    EXPECT_EQ(px_await_all(fibers, CLIENTS, NULL), 0);
    for (int i = 0; i < CLIENTS; i++)
        EXPECT(clients[i].intact);
    EXPECT_EQ(px_cancel_and_await(server, &ended), 0);
    EXPECT_EQ(ended, PX_ECANCELED);
    EXPECT_EQ(px_close(listener), 0);
    return 0;
}

static void an_echo_server_serves_its_clients(void **state)
{
    (void)state;
    check_real(clients_and_server);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(accept_gives_a_nonblocking_descriptor_closed_on_exec),
    PX_TEST(accept_tells_the_address_of_the_peer),
    PX_TEST(of_two_acceptors_one_gets_the_connection),
    PX_TEST(an_interrupted_accept_takes_no_connection),
    PX_TEST(running_out_of_descriptors_is_returned_and_loses_nothing),
    PX_TEST(connect_reaches_a_listener_and_sets_nonblocking),
    PX_TEST(a_refused_connection_is_told_so),
    PX_TEST(a_connect_that_nobody_answers_is_interrupted_by_scopes),
    PX_TEST(a_connect_that_is_cancelled_as_its_pause_ends_says_canceled),
    PX_TEST(an_earlier_error_decides_no_connect),
    PX_TEST(off_a_fiber_accept_and_connect_never_wait),
    PX_TEST(off_a_fiber_a_connect_may_be_under_way),
    PX_TEST(a_connect_to_a_full_local_backlog_waits_for_a_place),
    PX_TEST(an_echo_server_serves_its_clients),
};

PX_TEST_MAIN(tests)
