/* SPDX-License-Identifier: MIT */
/*
 * px_test_io.h - what the tests of descriptors share.
 *
 * The fibers here wait for one thing and leave what they got in a struct, so
 * that a test holds whatever order a shuffled run queue wakes them in. A file
 * that includes this defines _GNU_SOURCE first.
 */
#ifndef PX_TEST_IO_H
#define PX_TEST_IO_H

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "px_scale.h"
#include "px_test.h"

/* Run the body as the main fiber; nothing that it EXPECTs may fail. */
static inline void check(px_fn body)
{
    run_fibers(body, NULL);
    assert_log("");
}

/* The same by the real clock, for what the kernel does in its own time. */
static inline void check_real(px_fn body)
{
    px_run_options options;

    memset(&options, 0, sizeof(options));
    assert_int_equal(run_fibers_with(options, 1, body, NULL), 0);
    assert_log("");
}

/* How much of `full` to do: a part of it where a tool is at work. */
static inline int scaled(int full, int small)
{
    return is_small() ? small : full;
}

/* An emulator is at work: the other architectures are tested with one. */
static inline bool is_emulated(void)
{
#if defined(__x86_64__)
    return false;
#else
    return is_small();
#endif
}

/* A fiber in px_wait_fd(): the result, once `done`. */
struct waiting {
    int fd;
    int events;
    int result;
    bool done;
};

static inline int wait_for_it(void *arg)
{
    struct waiting *w = arg;

    w->result = px_wait_fd(w->fd, w->events);
    w->done = true;
    return 0;
}

static inline int gives_up_after_10ms(void *arg)
{
    return px_with_timeout(10 * PX_MSEC, wait_for_it, arg);
}

/* A fiber in px_read() or px_write() of up to 64 bytes. */
struct transfer {
    int fd;
    size_t n;
    char bytes[64];
    ssize_t result;
    bool done;
};

static inline int read_it(void *arg)
{
    struct transfer *t = arg;

    t->result = px_read(t->fd, t->bytes, t->n ? t->n : sizeof(t->bytes));
    t->done = true;
    return 0;
}

static inline int write_it(void *arg)
{
    struct transfer *t = arg;

    t->result = px_write(t->fd, t->bytes, t->n);
    t->done = true;
    return 0;
}

/* Put one byte in: it must fit. */
static inline void put(int fd, char byte)
{
    EXPECT_EQ(write(fd, &byte, 1), 1);
}

/* Take one byte out: it must be there, and is returned. */
static inline char take(int fd)
{
    char byte = 0;
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    EXPECT_EQ(poll(&ready, 1, 0), 1);
    EXPECT_EQ(read(fd, &byte, 1), 1);
    return byte;
}

static inline void open_pipe(int ends[2], int flags)
{
    EXPECT_EQ(pipe2(ends, flags | O_CLOEXEC), 0);
}

static inline void open_pair(int ends[2], int flags)
{
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, ends),
              0);
}

/* Close with close(2): for descriptors that only px_wait_fd() was used on, or
 * after the run. */
static inline void close_both(const int ends[2])
{
    EXPECT_EQ(close(ends[0]), 0);
    EXPECT_EQ(close(ends[1]), 0);
}

static inline void px_close_both(const int ends[2])
{
    EXPECT_EQ(px_close(ends[0]), 0);
    EXPECT_EQ(px_close(ends[1]), 0);
}

/* Whether poll(2) sees room for writing. */
static inline bool has_room(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};

    return poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0;
}

/* Write until there is no room left; the descriptor's flags are as before.
 * Returns how many bytes went in. */
static inline size_t fill(int fd)
{
    static const char block[4096];
    int flags = fcntl(fd, F_GETFL);
    size_t total = 0, n = sizeof(block);
    ssize_t wrote;

    EXPECT_EQ(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
    while (n > 0) {
        wrote = write(fd, block, n);
        if (wrote > 0)
            total += (size_t)wrote;
        else
            n /= 2; /* the last few bytes */
    }
    EXPECT_EQ(fcntl(fd, F_SETFL, flags), 0);
    EXPECT(!has_room(fd));
    return total;
}

/* Read all that is there without waiting. Returns how many bytes came out. */
static inline size_t drain(int fd)
{
    char block[4096];
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    size_t total = 0;
    ssize_t got;

    while (poll(&ready, 1, 0) == 1 &&
           (got = read(fd, block, sizeof(block))) > 0)
        total += (size_t)got;
    return total;
}

/* Lower the limit so that no descriptor can be opened. Returns the old one. */
static inline struct rlimit no_more_descriptors(void)
{
    struct rlimit old, none;
    int lowest = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    EXPECT(lowest >= 0);
    EXPECT_EQ(close(lowest), 0);
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = (rlim_t)lowest;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    return old;
}

/* Skip a test in which accept(2) fails for want of descriptors: valgrind, which
 * keeps that limit itself, accepts the connection and then throws it away. */
static inline void skip_under_valgrind(void)
{
    const char *preloaded = getenv("LD_PRELOAD");

    if (preloaded && strstr(preloaded, "vgpreload")) {
        print_message("skipped: valgrind's accept(2) loses connections\n");
        skip();
    }
}

/* A TCP listener on a free port of the loopback, and its address. */
static inline int listen_tcp(struct sockaddr_in *address, int backlog,
                             int flags)
{
    socklen_t size = sizeof(*address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

    memset(address, 0, sizeof(*address));
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT(fd >= 0);
    EXPECT_EQ(bind(fd, (struct sockaddr *)address, size), 0);
    EXPECT_EQ(listen(fd, backlog), 0);
    EXPECT_EQ(getsockname(fd, (struct sockaddr *)address, &size), 0);
    return fd;
}

static inline int tcp_socket(int flags)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

    EXPECT(fd >= 0);
    return fd;
}

/* A pause by the real clock, off the library's: for other threads. */
static inline void pause_ms(int ms)
{
    (void)poll(NULL, 0, ms);
}

/* A listener with a name that the kernel picks. */
static inline int listen_unix(struct sockaddr_un *address, socklen_t *size,
                              int backlog, int flags)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    EXPECT_EQ(bind(fd, (struct sockaddr *)address, sizeof(sa_family_t)), 0);
    EXPECT_EQ(listen(fd, backlog), 0);
    *size = sizeof(*address);
    EXPECT_EQ(getsockname(fd, (struct sockaddr *)address, size), 0);
    return fd;
}

static inline int unix_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    EXPECT(fd >= 0);
    return fd;
}

struct accepting {
    int listener;
    int result;
    bool done;
};

static inline int accept_it(void *arg)
{
    struct accepting *a = arg;

    a->result = px_accept(a->listener, NULL, NULL);
    a->done = true;
    return 0;
}

struct connecting {
    int fd;
    struct sockaddr *address;
    socklen_t size;
    int result;
    bool done;
};

static inline int connect_it(void *arg)
{
    struct connecting *c = arg;

    c->result = px_connect(c->fd, c->address, c->size);
    c->done = true;
    return 0;
}

/* A TCP listener that answers no more: its queue is full. */
struct mute_listener {
    struct sockaddr_in address;
    int listener, filler[3];
};

static inline void open_mute(struct mute_listener *m)
{
    m->listener = listen_tcp(&m->address, 0, 0);
    for (int i = 0; i < 3; i++) {
        m->filler[i] = tcp_socket(SOCK_NONBLOCK);
        (void)connect(m->filler[i], (struct sockaddr *)&m->address,
                      sizeof(m->address));
        pause_ms(1);
    }
}

static inline void close_mute(struct mute_listener *m)
{
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(close(m->filler[i]), 0);
    EXPECT_EQ(close(m->listener), 0);
}

/* A long stream, every byte of which is known. */
enum { LARGE = 1 << 20 };

/* Byte i of every long stream here. */
static inline char pattern(size_t i)
{
    return (char)(i * 31 + i / 251);
}

static inline const char *large_block(void)
{
    static char block[LARGE];

    if (block[1] != pattern(1)) {
        for (size_t i = 0; i < LARGE; i++)
            block[i] = pattern(i);
    }
    return block;
}

struct stream {
    int fd;
    size_t size;
    int result;
    size_t done;
    bool in_order;
};

static inline int sends_it_all(void *arg)
{
    struct stream *s = arg;

    s->result = px_write_all(s->fd, large_block(), s->size, &s->done);
    return 0;
}

static inline int receives_it_all(void *arg)
{
    struct stream *s = arg;
    char bytes[3000];
    ssize_t got = 0;

    s->in_order = true;
    while (s->done < s->size &&
           (got = px_read(s->fd, bytes, sizeof(bytes))) > 0) {
        for (ssize_t i = 0; i < got; i++)
            s->in_order = s->in_order && bytes[i] == pattern(s->done++);
    }
    s->result = got < 0 ? (int)got : 0;
    return 0;
}

#endif
