/* SPDX-License-Identifier: MIT */
/*
 * test_io_close.c - px_close(): who is woken, what is forgotten, and what a
 * number means once another file has it.
 *
 * close() is defined here, in front of the system's, so that a test can make
 * it fail the way the system seldom does.
 */
#define _GNU_SOURCE 1

#include "px_test_io.h"

#include <dirent.h>
#include <limits.h>
#include <sys/syscall.h>

static int failing_descriptor = -1; /* close() of it fails, after closing */
static int failure;

int close(int fd)
{
    int result = (int)syscall(SYS_close, fd);

    if (fd == failing_descriptor && result == 0) {
        failing_descriptor = -1;
        errno = failure;
        return -1;
    }
    return result;
}

/* Open a pipe whose read end has the number `fd`, which is free. */
static void open_pipe_at(int fd, int ends[2], int flags)
{
    open_pipe(ends, flags);
    if (ends[0] != fd) {
        EXPECT_EQ(dup3(ends[0], fd, O_CLOEXEC), fd);
        EXPECT_EQ(close(ends[0]), 0);
        ends[0] = fd;
    }
}

/* ---- who is woken ---- */

static int wakes_them_all(void *arg)
{
    int ends[2];

    (void)arg;
    for (int i = 0; i < 2; i++) {
        open_pair(ends, i ? SOCK_NONBLOCK : 0);
        (void)fill(ends[0]);
        struct waiting w[3] = {
            {.fd = ends[0], .events = PX_READABLE},
            {.fd = ends[0], .events = PX_WRITABLE},
            {.fd = ends[0], .events = PX_READABLE | PX_WRITABLE}};
        struct transfer r = {.fd = ends[0]};
        struct transfer s = {.fd = ends[0], .bytes = "x", .n = 1};
        struct transfer peer = {.fd = ends[1], .bytes = "y", .n = 1};

        for (int k = 0; k < 3; k++)
            start(wait_for_it, &w[k]);
        start(read_it, &r);
        start(write_it, &s);
        settle();
        EXPECT(!w[0].done && !w[1].done && !w[2].done && !r.done && !s.done);
        EXPECT_EQ(px_close(ends[0]), 0);
        EXPECT_EQ(fcntl(ends[0], F_GETFD), -1);
        settle();
        for (int k = 0; k < 3; k++)
            EXPECT_EQ(w[k].result, PX_ECLOSED);
        EXPECT_EQ(r.result, PX_ECLOSED);
        EXPECT_EQ(s.result, PX_ECLOSED);
        EXPECT_EQ(write_it(&peer), 0);
        EXPECT_EQ(peer.result, PX_EPIPE);
        EXPECT_EQ(px_close(ends[1]), 0);
    }
    return 0;
}

static void whoever_waits_on_it_is_told_ECLOSED(void **state)
{
    (void)state;
    check(wakes_them_all);
}

static int wakes_accept_and_connect(void *arg)
{
    struct sockaddr_un address;
    socklen_t size;
    int listener = listen_unix(&address, &size, 0, 0), filler = unix_socket();
    struct accepting a = {.listener = listener};

    (void)arg;
    start(accept_it, &a);
    settle();
    EXPECT(!a.done);
    EXPECT_EQ(px_close(listener), 0);
    settle();
    EXPECT(a.done);
    EXPECT_EQ(a.result, PX_ECLOSED);

    listener = listen_unix(&address, &size, 0, 0);
    struct connecting c = {.fd = unix_socket(),
                           .address = (struct sockaddr *)&address,
                           .size = size};
    EXPECT_EQ(connect(filler, (struct sockaddr *)&address, size), 0);
    px_fiber *fiber = start_handle(connect_it, &c);
    settle();
    EXPECT(!c.done);
    EXPECT_EQ(px_close(c.fd), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(c.result, PX_ECLOSED);
    EXPECT_EQ(px_close(listener), 0);
    EXPECT_EQ(px_close(filler), 0);
    return 0;
}

static void accept_and_connect_are_told_ECLOSED(void **state)
{
    (void)state;
    check(wakes_accept_and_connect);
}

/* Such a connect is asked again after 1, 3, 7 ms, ...; the close comes at one
 * of those moments, before it runs, and its number is another socket's by then.
 */
struct closer {
    int fd;
    px_nsec when;
};

static int closes_and_reuses(void *arg)
{
    struct closer *closer = arg;
    int other;

    EXPECT_EQ(px_sleep_until(closer->when), 0);
    EXPECT_EQ(px_close(closer->fd), 0);
    other = unix_socket();
    EXPECT_EQ(other, closer->fd);
    EXPECT_EQ(px_nonblock(other), 0);
    return 0;
}

static int closed_as_a_pause_ends(void *arg)
{
    struct sockaddr_un address, name;
    socklen_t size;
    int listener = listen_unix(&address, &size, 0, 0), filler = unix_socket();

    (void)arg;
    for (int ms = 1; ms <= 8; ms++) {
        struct connecting c = {.fd = unix_socket(),
                               .address = (struct sockaddr *)&address,
                               .size = size};
        struct closer closer = {c.fd, px_now() + ms * PX_MSEC};
        socklen_t length = sizeof(name);
        px_fiber *fibers[2];

        if (ms == 1)
            EXPECT_EQ(connect(filler, c.address, size), 0);
        fibers[0] = start_handle(closes_and_reuses, &closer);
        fibers[1] = start_handle(connect_it, &c);
        EXPECT_EQ(px_await_all(fibers, 2, NULL), 0);
        EXPECT_EQ(c.result, PX_ECLOSED);
        EXPECT_EQ(getpeername(closer.fd, (struct sockaddr *)&name, &length),
                  -1);
        EXPECT_EQ(px_close(closer.fd), 0);
    }
    EXPECT_EQ(px_close(filler), 0);
    EXPECT_EQ(px_close(listener), 0);
    return 0;
}

static void a_connect_closed_as_its_pause_ends_is_told_ECLOSED(void **state)
{
    (void)state;
    check(closed_as_a_pause_ends);
}

static int wakes_a_tcp_connect(void *arg)
{
    struct mute_listener m;

    (void)arg;
    open_mute(&m);
    struct connecting c = {.fd = tcp_socket(0),
                           .address = (struct sockaddr *)&m.address,
                           .size = sizeof(m.address)};
    start(connect_it, &c);
    settle();
    EXPECT(!c.done);
    EXPECT_EQ(px_close(c.fd), 0);
    settle();
    EXPECT(c.done);
    EXPECT_EQ(c.result, PX_ECLOSED);
    close_mute(&m);
    return 0;
}

static void a_connect_under_way_is_told_ECLOSED(void **state)
{
    (void)state;
    check(wakes_a_tcp_connect);
}

struct sending {
    int fd;
    size_t done;
    int result;
};

static int sends_a_lot(void *arg)
{
    static const char block[1 << 20];
    struct sending *s = arg;

    s->result = px_write_all(s->fd, block, sizeof(block), &s->done);
    return 0;
}

static int closes_in_the_middle(void *arg)
{
    int ends[2];
    px_fiber *fiber;

    (void)arg;
    for (int i = 0; i < 2; i++) {
        open_pair(ends, i ? SOCK_NONBLOCK : 0);
        struct sending s = {.fd = ends[0]};
        fiber = start_handle(sends_a_lot, &s);
        settle();
        EXPECT_EQ(px_close(ends[0]), 0);
        EXPECT_EQ(px_await(fiber, NULL), 0);
        EXPECT_EQ(s.result, PX_ECLOSED);
        EXPECT(s.done > 0);
        EXPECT_EQ(drain(ends[1]), s.done);
        EXPECT_EQ(px_close(ends[1]), 0);
    }
    return 0;
}

static void write_all_is_told_ECLOSED_and_how_much_went_out(void **state)
{
    (void)state;
    check(closes_in_the_middle);
}

static int others_wait_on(void *arg)
{
    int a[2], b[2];

    (void)arg;
    open_pipe(a, O_NONBLOCK);
    open_pipe(b, O_NONBLOCK);
    struct transfer on_a = {.fd = a[0]}, on_b = {.fd = b[0]};
    start(read_it, &on_a);
    start(read_it, &on_b);
    settle();
    EXPECT_EQ(px_close(a[0]), 0);
    settle();
    EXPECT_EQ(on_a.result, PX_ECLOSED);
    EXPECT(!on_b.done);
    put(b[1], 'x');
    settle();
    EXPECT_EQ(on_b.result, 1);
    EXPECT_EQ(px_close(a[1]), 0);
    px_close_both(b);
    return 0;
}

static void who_waits_on_another_descriptor_waits_on(void **state)
{
    (void)state;
    check(others_wait_on);
}

static int interrupted_before(void *arg)
{
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    px_fiber *fiber = start_handle(wait_for_it, &w);
    settle();
    EXPECT_EQ(px_cancel(fiber), 0); /* decided, but it has not run yet */
    EXPECT_EQ(px_close(ends[0]), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(w.result, PX_ECANCELED);
    EXPECT_EQ(px_close(ends[1]), 0);
    return 0;
}

static int closed_before(void *arg)
{
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    px_fiber *fiber = start_handle(wait_for_it, &w);
    settle();
    EXPECT_EQ(px_close(ends[0]), 0);
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(w.result, PX_ECLOSED);
    EXPECT_EQ(px_close(ends[1]), 0);
    return 0;
}

/* The same for a connect that asks a full backlog again and again. */
static int connect_decided(void *arg)
{
    struct sockaddr_un address;
    socklen_t size;
    int listener = listen_unix(&address, &size, 0, 0), filler = unix_socket();

    (void)arg;
    EXPECT_EQ(connect(filler, (struct sockaddr *)&address, size), 0);
    for (int i = 0; i < 2; i++) {
        struct connecting c = {.fd = unix_socket(),
                               .address = (struct sockaddr *)&address,
                               .size = size};
        px_fiber *fiber = start_handle(connect_it, &c);

        settle();
        if (i == 0)
            EXPECT_EQ(px_cancel(fiber), 0);
        EXPECT_EQ(px_close(c.fd), 0);
        if (i == 1)
            EXPECT_EQ(px_cancel(fiber), 0);
        EXPECT_EQ(px_await(fiber, NULL), 0);
        EXPECT_EQ(c.result, i == 0 ? PX_ECANCELED : PX_ECLOSED);
    }
    EXPECT_EQ(px_close(filler), 0);
    EXPECT_EQ(px_close(listener), 0);
    return 0;
}

static void of_a_cancellation_and_a_close_the_first_decides(void **state)
{
    (void)state;
    check(connect_decided);
    check(interrupted_before);
    check(closed_before);
}

static int closes_in_a_fired_scope(void *arg)
{
    int *ends = arg;

    EXPECT_EQ(px_check(), PX_ETIMEDOUT);
    return px_close(ends[0]);
}

static int never_refused(void *arg)
{
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    struct transfer t = {.fd = ends[0]};
    start(read_it, &t);
    settle();
    EXPECT_EQ(px_with_timeout(0, closes_in_a_fired_scope, ends), 0);
    EXPECT_EQ(fcntl(ends[0], F_GETFD), -1);
    settle();
    EXPECT_EQ(t.result, PX_ECLOSED);
    EXPECT_EQ(px_close(ends[1]), 0);
    return 0;
}

static void a_close_is_never_refused_for_a_cancellation(void **state)
{
    (void)state;
    check(never_refused);
}

/* ---- results ---- */

static int never_used(void *arg)
{
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    EXPECT_EQ(px_close(ends[0]), 0);
    EXPECT_EQ(fcntl(ends[0], F_GETFD), -1);
    EXPECT_EQ(px_close(ends[0]), PX_EBADF);
    EXPECT_EQ(px_close(-1), PX_EBADF);
    EXPECT_EQ(px_close(INT_MAX), PX_EBADF);
    EXPECT_EQ(px_close(INT_MIN), PX_EBADF);
    EXPECT_EQ(px_close(ends[1]), 0);
    return 0;
}

static void of_a_descriptor_never_used_it_is_close(void **state)
{
    int ends[2];

    (void)state;
    check(never_used);

    /* Off a fiber as well. */
    open_pipe(ends, 0);
    assert_int_equal(px_close(ends[0]), 0);
    assert_int_equal(px_close(ends[0]), PX_EBADF);
    assert_int_equal(px_close(ends[1]), 0);
    assert_log("");
}

static int close_fails(void *arg)
{
    static const struct {
        int failure, result;
    } cases[] = {{EINTR, 0}, {EIO, -EIO}, {ENOSPC, -ENOSPC}};
    int ends[2], next[2];

    (void)arg;
    for (int i = 0; i < 3; i++) {
        open_pipe(ends, O_NONBLOCK);
        struct transfer t = {.fd = ends[0]};
        start(read_it, &t);
        settle();
        failing_descriptor = ends[0];
        failure = cases[i].failure;
        EXPECT_EQ(px_close(ends[0]), cases[i].result);
        EXPECT_EQ(failing_descriptor, -1);
        settle();
        EXPECT_EQ(t.result, PX_ECLOSED);

        /* It is forgotten all the same: the number serves a new file. */
        open_pipe_at(ends[0], next, O_NONBLOCK);
        t.done = false;
        start(read_it, &t);
        settle();
        EXPECT(!t.done);
        put(next[1], 'x');
        settle();
        EXPECT_EQ(t.result, 1);
        px_close_both(next);
        EXPECT_EQ(px_close(ends[1]), 0);
    }
    return 0;
}

static void EINTR_is_0_and_another_failure_is_told_and_closed(void **state)
{
    (void)state;
    check(close_fails);
}

static int uses_it_after_the_close(void *arg)
{
    int ends[2];
    char byte;

    (void)arg;
    open_pipe(ends, O_NONBLOCK);
    struct transfer t = {.fd = ends[0]};
    EXPECT_EQ(px_write(ends[1], "x", 1), 1);
    EXPECT_EQ(read_it(&t), 0);
    px_close_both(ends);
    EXPECT_EQ(px_read(ends[0], &byte, 1), PX_EBADF);
    EXPECT_EQ(px_write(ends[1], "x", 1), PX_EBADF);
    EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_EBADF);
    EXPECT_EQ(px_close(ends[0]), PX_EBADF);
    return 0;
}

static void afterwards_the_number_is_EBADF(void **state)
{
    (void)state;
    check(uses_it_after_the_close);
}

/* ---- the number, reused ---- */

static int new_file_is_empty(void *arg)
{
    int old[2], new[2];

    (void)arg;
    for (int i = 0; i < 2; i++) {
        int flags = i ? O_NONBLOCK : 0;
        char byte;

        /* Known as readable, with bytes left in it, when it is closed. */
        open_pipe(old, flags);
        EXPECT_EQ(px_write(old[1], "xyz", 3), 3);
        EXPECT_EQ(px_read(old[0], &byte, 1), 1);
        px_close_both(old);
        open_pipe_at(old[0], new, flags);
        struct transfer t = {.fd = new[0], .n = 1};
        struct waiting w = {.fd = new[0], .events = PX_READABLE};
        start(read_it, &t);
        start(wait_for_it, &w);
        settle();
        EXPECT(!t.done && !w.done);
        EXPECT_EQ(write(new[1], "nn", 2), 2);
        settle();
        EXPECT_EQ(t.result, 1);
        EXPECT_EQ(t.bytes[0], 'n');
        EXPECT_EQ(w.result, PX_READABLE);
        px_close_both(new);
    }
    return 0;
}

static void nothing_of_the_old_file_is_remembered(void **state)
{
    (void)state;
    check(new_file_is_empty);
}

static int waiter_and_reuse(void *arg)
{
    int old[2], new[2];

    (void)arg;
    for (int i = 0; i < 2; i++) {
        int flags = i ? O_NONBLOCK : 0;

        open_pipe(old, flags);
        struct transfer a = {.fd = old[0]};
        start(read_it, &a);
        settle();
        EXPECT_EQ(px_close(old[0]), 0);
        open_pipe_at(old[0], new, flags);
        struct transfer c = {.fd = new[0]};
        start(read_it, &c);
        put(new[1], 'n');
        settle();
        EXPECT_EQ(a.result, PX_ECLOSED);
        EXPECT_EQ(c.result, 1);
        EXPECT_EQ(c.bytes[0], 'n');
        EXPECT_EQ(px_close(old[1]), 0);
        px_close_both(new);
    }
    return 0;
}

static void a_waiter_of_the_old_file_is_not_resumed_by_the_new(void **state)
{
    (void)state;
    check(waiter_and_reuse);
}

/* How many epoll sets of this process have a descriptor of number `fd`. */
static int registrations(int fd)
{
    DIR *dir = opendir("/proc/self/fdinfo");
    struct dirent *entry;
    int count = 0;

    EXPECT(dir != NULL);
    while (dir && (entry = readdir(dir))) {
        char path[300], line[200];
        FILE *info;
        int number;

        (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%s",
                       entry->d_name);
        info = fopen(path, "r");
        while (info && fgets(line, sizeof(line), info)) {
            if (sscanf(line, "tfd: %d", &number) == 1 && number == fd)
                count++;
        }
        if (info)
            (void)fclose(info);
    }
    if (dir)
        (void)closedir(dir);
    return count;
}

static int leaves_no_registration(void *arg)
{
    int ends[2], keeper;

    (void)arg;
    for (int i = 0; i < 4; i++) {
        open_pipe(ends, i % 2 ? O_NONBLOCK : 0);
        keeper = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
        struct transfer t = {.fd = ends[0]};
        struct waiting w = {.fd = ends[0], .events = PX_READABLE};

        if (i < 2)
            start(read_it, &t);
        else
            start(wait_for_it, &w);
        settle();
        EXPECT_EQ(px_close(ends[0]), 0);
        EXPECT_EQ(registrations(ends[0]), 0);
        settle();
        EXPECT(t.done || w.done);
        EXPECT_EQ(close(keeper), 0);
        EXPECT_EQ(px_close(ends[1]), 0);
    }
    return 0;
}

static void afterwards_nothing_of_it_is_registered(void **state)
{
    (void)state;
    check(leaves_no_registration);
}

static int duplicate_keeps_the_file(void *arg)
{
    int old[2], new[2], keeper;

    (void)arg;
    for (int i = 0; i < 2; i++) {
        int flags = i ? O_NONBLOCK : 0;

        open_pipe(old, flags);
        keeper = fcntl(old[0], F_DUPFD_CLOEXEC, 0);
        struct transfer a = {.fd = old[0]};
        start(read_it, &a);
        settle();
        EXPECT_EQ(px_close(old[0]), 0);
        open_pipe_at(old[0], new, flags);
        struct transfer c = {.fd = new[0], .n = 1};
        struct waiting w = {.fd = new[0], .events = PX_READABLE};
        start(read_it, &c);
        start(wait_for_it, &w);
        settle();
        put(old[1], 'o'); /* readable, but by another number */
        settle();
        EXPECT_EQ(a.result, PX_ECLOSED);
        EXPECT(!c.done && !w.done);
        EXPECT_EQ(write(new[1], "nn", 2), 2);
        settle();
        EXPECT_EQ(c.bytes[0], 'n');
        EXPECT_EQ(w.result, PX_READABLE);
        EXPECT_EQ(take(keeper), 'o');
        EXPECT_EQ(px_close(keeper), 0);
        EXPECT_EQ(px_close(old[1]), 0);
        px_close_both(new);
    }
    return 0;
}

static void events_of_a_file_that_a_duplicate_keeps_go_nowhere(void **state)
{
    (void)state;
    check(duplicate_keeps_the_file);
}

/* One poll wakes `user`, who was parked in a transfer, and `replacer`, who
 * puts another file in its place. Whoever runs first, the new file is never
 * touched by the old one's user. */
struct replaced {
    int fd, trigger;
    int new[2];
    bool user_ran_first;
    struct transfer user;
    struct waiting waiter;
};

static int replaces_for_reading(void *arg)
{
    struct replaced *r = arg;

    EXPECT_EQ(px_wait_fd(r->trigger, PX_READABLE), PX_READABLE);
    r->user_ran_first = r->user.done;
    EXPECT_EQ(px_close(r->fd), 0);
    open_pipe_at(r->fd, r->new, O_NONBLOCK);
    put(r->new[1], 'n');
    return 0;
}

static int woken_then_replaced(void *arg)
{
    int old[2], trigger[2];

    (void)arg;
    for (int i = 0; i < 8; i++) {
        open_pipe(old, i < 4 ? O_NONBLOCK : 0);
        open_pipe(trigger, 0);
        struct replaced r = {.fd = old[0], .trigger = trigger[0]};

        r.user = (struct transfer){.fd = old[0]};
        if (i % 2 == 0)
            start(read_it, &r.user);
        start(replaces_for_reading, &r);
        if (i % 2 == 1)
            start(read_it, &r.user);
        settle();
        put(i % 4 < 2 ? trigger[1] : old[1], 'o');
        put(i % 4 < 2 ? old[1] : trigger[1], 'o');
        settle();
        EXPECT(r.user.done);
        if (r.user_ran_first) {
            EXPECT_EQ(r.user.result, 1);
            EXPECT_EQ(r.user.bytes[0], 'o');
        } else {
            EXPECT_EQ(r.user.result, PX_ECLOSED);
        }
        EXPECT_EQ(take(r.new[0]), 'n');
        EXPECT_EQ(px_close(old[1]), 0);
        px_close_both(r.new);
        close_both(trigger);
    }
    return 0;
}

static void a_reader_woken_for_the_old_file_never_reads_the_new(void **state)
{
    (void)state;
    check(woken_then_replaced);
}

static int replaces_for_writing(void *arg)
{
    struct replaced *r = arg;
    int swapped[2];

    EXPECT_EQ(px_wait_fd(r->trigger, PX_READABLE), PX_READABLE);
    r->user_ran_first = r->user.done;
    EXPECT_EQ(px_close(r->fd), 0);
    /* A pipe whose write end has the number. */
    open_pipe(swapped, O_NONBLOCK);
    if (swapped[1] != r->fd) {
        int high = fcntl(swapped[0], F_DUPFD_CLOEXEC, r->fd + 1);

        EXPECT_EQ(close(swapped[0]), 0);
        swapped[0] = high;
        EXPECT_EQ(dup3(swapped[1], r->fd, O_CLOEXEC), r->fd);
        EXPECT_EQ(close(swapped[1]), 0);
    }
    r->new[0] = swapped[0];
    r->new[1] = r->fd;
    return 0;
}

static int writer_woken_then_replaced(void *arg)
{
    int old[2], trigger[2];

    (void)arg;
    for (int i = 0; i < 8; i++) {
        open_pipe(old, i < 4 ? O_NONBLOCK : 0);
        open_pipe(trigger, 0);
        (void)fill(old[1]);
        struct replaced r = {.fd = old[1], .trigger = trigger[0]};

        r.user = (struct transfer){.fd = old[1], .bytes = "o", .n = 1};
        if (i % 2 == 0)
            start(write_it, &r.user);
        start(replaces_for_writing, &r);
        if (i % 2 == 1)
            start(write_it, &r.user);
        settle();
        if (i % 4 < 2)
            put(trigger[1], 't');
        (void)drain(old[0]);
        if (i % 4 >= 2)
            put(trigger[1], 't');
        settle();
        EXPECT(r.user.done);
        EXPECT_EQ(r.user.result, r.user_ran_first ? 1 : PX_ECLOSED);
        EXPECT_EQ(drain(r.new[0]), 0);
        EXPECT_EQ(px_close(old[0]), 0);
        px_close_both(r.new);
        close_both(trigger);
    }
    return 0;
}

static void a_writer_woken_for_the_old_file_never_writes_the_new(void **state)
{
    (void)state;
    check(writer_woken_then_replaced);
}

static int bystander_rounds(void *arg)
{
    int rounds = scaled(10000, 500), other[2];

    (void)arg;
    open_pipe(other, O_NONBLOCK);
    struct transfer bystander = {.fd = other[0]};
    start(read_it, &bystander);
    for (int i = 0; i < rounds; i++) {
        int ends[2];

        open_pipe(ends, i % 2 ? O_NONBLOCK : 0);
        struct transfer t = {.fd = ends[0]};
        start(read_it, &t);
        if (i % 3 == 0) { /* closed while it is waited on */
            EXPECT_EQ(px_close(ends[0]), 0);
            settle();
            EXPECT_EQ(t.result, PX_ECLOSED);
            EXPECT_EQ(px_close(ends[1]), 0);
            continue;
        }
        put(ends[1], (char)i);
        settle();
        EXPECT_EQ(t.result, 1);
        EXPECT_EQ(t.bytes[0], (char)i);
        px_close_both(ends);
    }
    EXPECT(!bystander.done);
    put(other[1], 'x');
    settle();
    EXPECT_EQ(bystander.result, 1);
    px_close_both(other);
    return 0;
}

static void ten_thousand_rounds_of_reuse_confuse_nobody(void **state)
{
    (void)state;
    check(bystander_rounds);
}

static int closes_what_poll_reported(void *arg)
{
    int a[2], b[2];

    (void)arg;
    open_pipe(a, O_NONBLOCK);
    open_pipe(b, O_NONBLOCK);
    struct transfer on_a = {.fd = a[0]}, on_b = {.fd = b[0]};
    start(read_it, &on_a);
    start(read_it, &on_b);
    settle();
    put(a[1], 'x');
    put(b[1], 'y');
    EXPECT_EQ(px_close(b[0]), 0); /* after the fact, before any poll */
    settle();
    EXPECT_EQ(on_a.result, 1);
    EXPECT_EQ(on_b.result, PX_ECLOSED);
    EXPECT_EQ(px_close(b[1]), 0);
    px_close_both(a);
    return 0;
}

static void a_close_comes_before_a_readiness_that_no_poll_has_seen(void **state)
{
    (void)state;
    check(closes_what_poll_reported);
}

static int leaves_it_open(void *arg)
{
    struct transfer *t = arg;

    start(read_it, t);
    settle();
    return px_stop();
}

static void closing_after_the_run_is_fine(void **state)
{
    int ends[2];
    struct transfer t = {.n = 1};

    (void)state;
    open_pipe(ends, O_NONBLOCK);
    t.fd = ends[0];
    run_fibers(leaves_it_open, &t);
    assert_int_equal(t.result, PX_ECANCELED);
    px_close_both(ends);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(whoever_waits_on_it_is_told_ECLOSED),
    PX_TEST(accept_and_connect_are_told_ECLOSED),
    PX_TEST(a_connect_closed_as_its_pause_ends_is_told_ECLOSED),
    PX_TEST(a_connect_under_way_is_told_ECLOSED),
    PX_TEST(write_all_is_told_ECLOSED_and_how_much_went_out),
    PX_TEST(who_waits_on_another_descriptor_waits_on),
    PX_TEST(of_a_cancellation_and_a_close_the_first_decides),
    PX_TEST(a_close_is_never_refused_for_a_cancellation),
    PX_TEST(of_a_descriptor_never_used_it_is_close),
    PX_TEST(EINTR_is_0_and_another_failure_is_told_and_closed),
    PX_TEST(afterwards_the_number_is_EBADF),
    PX_TEST(afterwards_nothing_of_it_is_registered),
    PX_TEST(nothing_of_the_old_file_is_remembered),
    PX_TEST(a_waiter_of_the_old_file_is_not_resumed_by_the_new),
    PX_TEST(events_of_a_file_that_a_duplicate_keeps_go_nowhere),
    PX_TEST(a_reader_woken_for_the_old_file_never_reads_the_new),
    PX_TEST(a_writer_woken_for_the_old_file_never_writes_the_new),
    PX_TEST(ten_thousand_rounds_of_reuse_confuse_nobody),
    PX_TEST(a_close_comes_before_a_readiness_that_no_poll_has_seen),
    PX_TEST(closing_after_the_run_is_fine),
};

PX_TEST_MAIN(tests)
