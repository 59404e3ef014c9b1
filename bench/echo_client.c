/* SPDX-License-Identifier: MIT */
/*
 * echo_client.c - the far end of row tcp-echo: one raw epoll loop.
 *
 *     echo_client PORT CONNECTIONS MESSAGES
 *
 * Connects, waits for a line on standard input, and then keeps one message of
 * 64 bytes in flight on each connection until it has sent MESSAGES on each.
 * Ends with 0 if every message came back as it was sent. It leaves the core
 * that it is started on, where the server runs, if it may run on another.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGE = 64, MOST = 1024 };

static struct peer {
    int fd;
    int got;   /* bytes of the reply so far */
    long sent; /* messages */
    unsigned char message[MESSAGE], reply[MESSAGE];
} peers[MOST];

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void leave_this_core(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int here = sched_getcpu();

    for (long i = 1; i < cores; i++) {
        cpu_set_t other;

        CPU_ZERO(&other);
        CPU_SET((size_t)((here + i) % cores), &other);
        if (sched_setaffinity(0, sizeof(other), &other) == 0)
            return;
    }
}

static void send_next(struct peer *peer, int id)
{
    memset(peer->message, (int)((peer->sent * 7 + id) & 0xff), MESSAGE);
    peer->sent++;
    peer->got = 0;
    if (write(peer->fd, peer->message, MESSAGE) != MESSAGE)
        fail("echo_client: write");
}

/* 1 when the peer has had its last reply. */
static int receive(struct peer *peer, int id, long messages)
{
    ssize_t n =
        read(peer->fd, peer->reply + peer->got, (size_t)(MESSAGE - peer->got));

    if (n <= 0)
        fail("echo_client: read");
    peer->got += (int)n;
    if (peer->got < MESSAGE)
        return 0;
    if (memcmp(peer->message, peer->reply, MESSAGE) != 0) {
        (void)fprintf(stderr, "echo_client: not what was sent\n");
        exit(1);
    }
    if (peer->sent < messages) {
        send_next(peer, id);
        return 0;
    }
    (void)close(peer->fd);
    return 1;
}

static int connect_to(int port)
{
    struct sockaddr_in address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int yes = 1;

    memset(&address, 0, sizeof(address));
    address.sin_family = AF_INET;
    address.sin_port = htons((in_port_t)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 ||
        connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) != 0)
        fail("echo_client: connect");
    return fd;
}

int main(int argc, char **argv)
{
    int port = argc == 4 ? atoi(argv[1]) : 0;
    int n = argc == 4 ? atoi(argv[2]) : 0;
    long messages = argc == 4 ? atol(argv[3]) : 0;
    int epoll = epoll_create1(0), left = n;

    if (n < 1 || n > MOST || messages < 1)
        return 2;
    leave_this_core();
    for (int i = 0; i < n; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};

        peers[i].fd = connect_to(port);
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, peers[i].fd, &event) != 0)
            fail("echo_client: epoll_ctl");
    }
    if (getchar() == EOF)
        return 1;
    for (int i = 0; i < n; i++)
        send_next(&peers[i], i);
    while (left > 0) {
        struct epoll_event events[MOST];
        int ready = epoll_wait(epoll, events, MOST, -1);

        if (ready < 0)
            fail("echo_client: epoll_wait");
        for (int i = 0; i < ready; i++) {
            int id = (int)events[i].data.u32;

            left -= receive(&peers[id], id, messages);
        }
    }
    return 0;
}
