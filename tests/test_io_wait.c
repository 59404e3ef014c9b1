/* SPDX-License-Identifier: MIT */
/*
 * test_io_wait.c - px_wait_fd(): level, several waiters, any closer.
 *
 * Pipes and socket pairs deliver at once, so settle() sees to it that whoever
 * can be woken has run: before the virtual clock jumps, descriptors are polled.
 */
#define _GNU_SOURCE 1

#include "px_test_io.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

enum { BOTH = PX_READABLE | PX_WRITABLE };

/* ---- what is ready ---- */

static int ready_at_once(void *arg)
{
    int pipe_ends[2], pair[2];

    (void)arg;
    open_pipe(pipe_ends, 0);
    open_pair(pair, 0);
    EXPECT_EQ(px_wait_fd(pipe_ends[1], PX_WRITABLE), PX_WRITABLE);
    EXPECT_EQ(px_wait_fd(pair[0], BOTH), PX_WRITABLE);
    put(pipe_ends[1], 'x');
    put(pair[1], 'x');
    EXPECT_EQ(px_wait_fd(pipe_ends[0], PX_READABLE), PX_READABLE);
    EXPECT_EQ(px_wait_fd(pair[0], BOTH), BOTH);
    EXPECT_EQ(px_wait_fd(pair[0], PX_READABLE), PX_READABLE);
    EXPECT_EQ(px_wait_fd(pair[0], PX_WRITABLE), PX_WRITABLE);
    close_both(pipe_ends);
    close_both(pair);
    return 0;
}

static void what_is_ready_and_asked_for_comes_at_once(void **state)
{
    (void)state;
    check(ready_at_once);
}

static int parks_until_readable(void *arg)
{
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    start(wait_for_it, &w);
    settle();
    EXPECT(!w.done);
    put(ends[1], 'x');
    EXPECT(!w.done);
    settle();
    EXPECT(w.done);
    EXPECT_EQ(w.result, PX_READABLE);
    close_both(ends);
    return 0;
}

static void a_reader_waits_until_something_comes(void **state)
{
    (void)state;
    check(parks_until_readable);
}

static int parks_until_writable(void *arg)
{
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    (void)fill(ends[1]);
    struct waiting w = {.fd = ends[1], .events = PX_WRITABLE};
    start(wait_for_it, &w);
    settle();
    EXPECT(!w.done);
    (void)drain(ends[0]);
    settle();
    EXPECT(w.done);
    EXPECT_EQ(w.result, PX_WRITABLE);
    close_both(ends);
    return 0;
}

static void a_writer_waits_until_there_is_room(void **state)
{
    (void)state;
    check(parks_until_writable);
}

static int level(void *arg)
{
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    put(ends[1], 'x');
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_READABLE);
    EXPECT_EQ(take(ends[0]), 'x');

    /* Nothing is remembered of the readiness that is gone. */
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    start(wait_for_it, &w);
    settle();
    EXPECT(!w.done);
    put(ends[1], 'y');
    settle();
    EXPECT(w.done);
    close_both(ends);
    return 0;
}

static void it_is_level_and_remembers_nothing(void **state)
{
    (void)state;
    check(level);
}

static int rearms(void *arg)
{
    int ends[2], rounds = scaled(1000, 100);

    (void)arg;
    open_pair(ends, 0);
    for (int i = 0; i < rounds; i++) {
        struct waiting w = {.fd = ends[0], .events = PX_READABLE};

        start(wait_for_it, &w);
        settle();
        EXPECT(!w.done);
        put(ends[1], 'x');
        settle();
        EXPECT_EQ(w.result, PX_READABLE);
        EXPECT_EQ(take(ends[0]), 'x');
    }
    close_both(ends);
    return 0;
}

static void each_call_arms_anew(void **state)
{
    (void)state;
    check(rearms);
}

static int always_ready(void *arg)
{
    FILE *file = tmpfile();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)arg;
    EXPECT(file && null >= 0 && directory >= 0);
    if (!file)
        return 0;
    EXPECT_EQ(px_wait_fd(fileno(file), PX_READABLE), PX_READABLE);
    EXPECT_EQ(px_wait_fd(fileno(file), PX_WRITABLE), PX_WRITABLE);
    EXPECT_EQ(px_wait_fd(fileno(file), BOTH), BOTH);
    EXPECT_EQ(px_wait_fd(null, PX_READABLE), PX_READABLE);
    EXPECT_EQ(px_wait_fd(null, BOTH), BOTH);
    EXPECT_EQ(px_wait_fd(directory, PX_READABLE), PX_READABLE);
    EXPECT_EQ(px_now(), 0);
    EXPECT_EQ(close(directory), 0);
    EXPECT_EQ(close(null), 0);
    EXPECT_EQ(fclose(file), 0);
    return 0;
}

static void R114_a_file_that_cannot_be_polled_is_always_ready(void **state)
{
    (void)state;
    check(always_ready);
}

static int event_descriptor(void *arg)
{
    int fd = eventfd(0, EFD_CLOEXEC);
    uint64_t one = 1;

    (void)arg;
    struct waiting w = {.fd = fd, .events = PX_READABLE};
    EXPECT_EQ(px_wait_fd(fd, BOTH), PX_WRITABLE);
    start(wait_for_it, &w);
    settle();
    EXPECT(!w.done);
    EXPECT_EQ(write(fd, &one, sizeof(one)), (ssize_t)sizeof(one));
    settle();
    EXPECT_EQ(w.result, PX_READABLE);
    EXPECT_EQ(close(fd), 0);
    return 0;
}

static void other_kinds_of_descriptors_are_waited_for_alike(void **state)
{
    (void)state;
    check(event_descriptor);
}

/* ---- what is refused, and in which order ---- */

static int refusals(void *arg)
{
    int ends[2];

    (void)arg;
    open_pair(ends, 0);
    put(ends[1], 'x');
    EXPECT_EQ(px_wait_fd(ends[0], 0), PX_EINVAL);
    EXPECT_EQ(px_wait_fd(ends[0], 4), PX_EINVAL);
    EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE | 8), PX_EINVAL);
    EXPECT_EQ(px_wait_fd(ends[0], -1), PX_EINVAL);
    EXPECT_EQ(px_wait_fd(ends[0], INT_MIN), PX_EINVAL);
    EXPECT_EQ(px_wait_fd(-1, 0), PX_EINVAL);
    EXPECT_EQ(px_wait_fd(-1, PX_READABLE), PX_EBADF);
    EXPECT_EQ(px_wait_fd(INT_MIN, BOTH), PX_EBADF);
    EXPECT_EQ(px_wait_fd(INT_MAX, PX_WRITABLE), PX_EBADF);
    close_both(ends);
    EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_EBADF);
    EXPECT_EQ(px_wait_fd(ends[1], BOTH), PX_EBADF);
    return 0;
}

static void bad_events_are_EINVAL_and_no_descriptor_is_EBADF(void **state)
{
    (void)state;
    check(refusals);
}

static int ready_and_empty(void *arg)
{
    int *ends = arg;

    EXPECT_EQ(px_wait_fd(ends[0], 0), PX_EINVAL);
    EXPECT_EQ(px_wait_fd(ends[1], PX_WRITABLE), PX_ETIMEDOUT);
    EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_ETIMEDOUT);
    EXPECT_EQ(px_wait_fd(-1, PX_READABLE), PX_ETIMEDOUT);
    return 7;
}

static int fired_scope(void *arg)
{
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    EXPECT_EQ(px_with_timeout(0, ready_and_empty, ends), 7);
    EXPECT_EQ(px_with_timeout(-5, ready_and_empty, ends), 7);
    EXPECT_EQ(px_wait_fd(ends[1], PX_WRITABLE), PX_WRITABLE);
    close_both(ends);
    return 0;
}

static void a_fired_scope_comes_before_readiness_and_before_EBADF(void **state)
{
    (void)state;
    check(fired_scope);
}

static void off_a_fiber_it_never_waits(void **state)
{
    int ends[2];

    (void)state;
    open_pipe(ends, 0);
    assert_int_equal(px_wait_fd(ends[0], PX_READABLE), PX_ENOFIBER);
    assert_int_equal(px_wait_fd(ends[0], 0), PX_EINVAL);
    put(ends[1], 'x');
    assert_int_equal(px_wait_fd(ends[0], PX_READABLE), PX_READABLE);
    assert_int_equal(px_wait_fd(ends[1], PX_WRITABLE), PX_WRITABLE);
    close_both(ends);
    assert_log("");
}

static int never_called(void *arg)
{
    (void)arg;
    EXPECT(!"it was called");
    return 0;
}

/* The first wait of a run opens what it waits with: that may fail. */
static int no_descriptors(void *arg)
{
    int ends[2];
    struct rlimit old;

    (void)arg;
    open_pipe(ends, 0);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    old = no_more_descriptors();
    EXPECT_EQ(wait_for_it(&w), 0);
    EXPECT_EQ(w.result, -EMFILE);
    EXPECT_EQ(px_wait_fd(ends[1], PX_WRITABLE), PX_WRITABLE);
    EXPECT(px_current_loop() == NULL);
    EXPECT_EQ(px_offload(never_called, NULL), -EMFILE);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
    w.done = false;
    start(wait_for_it, &w);
    settle();
    EXPECT(!w.done);
    put(ends[1], 'x');
    settle();
    EXPECT_EQ(w.result, PX_READABLE);
    EXPECT(px_current_loop() != NULL);
    close_both(ends);
    return 0;
}

static void
without_descriptors_a_wait_is_EMFILE_until_there_are_some(void **state)
{
    (void)state;
    check(no_descriptors);
}

/* ---- several waiters ---- */

static int several_readers(void *arg)
{
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    struct waiting w[4] = {{0}};
    for (int i = 0; i < 4; i++) {
        w[i].fd = ends[0];
        w[i].events = PX_READABLE;
        start(wait_for_it, &w[i]);
    }
    settle();
    put(ends[1], 'x');
    settle();
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(w[i].result, PX_READABLE);
    close_both(ends);
    return 0;
}

static void readiness_wakes_every_waiter_of_its_direction(void **state)
{
    (void)state;
    check(several_readers);
}

static int directions_apart(void *arg)
{
    int ends[2];

    (void)arg;
    open_pair(ends, 0);
    (void)fill(ends[0]);
    struct waiting r = {.fd = ends[0], .events = PX_READABLE};
    struct waiting w = {.fd = ends[0], .events = PX_WRITABLE};
    struct waiting both = {.fd = ends[0], .events = BOTH};
    start(wait_for_it, &r);
    start(wait_for_it, &w);
    start(wait_for_it, &both);
    settle();
    EXPECT(!r.done && !w.done && !both.done);
    put(ends[1], 'x');
    settle();
    EXPECT_EQ(r.result, PX_READABLE);
    EXPECT_EQ(both.result, PX_READABLE);
    EXPECT(!w.done);
    (void)drain(ends[1]);
    settle();
    EXPECT(w.done);
    EXPECT_EQ(w.result, PX_WRITABLE);
    close_both(ends);
    return 0;
}

static void readers_and_writers_of_one_descriptor_are_apart(void **state)
{
    (void)state;
    check(directions_apart);
}

/* Two that give up among five of either direction. */
struct crowd {
    int ends[2];
    struct waiting quitter[2], reader, writer, both;
};

static void others_are_still_served(struct crowd *c)
{
    EXPECT(!c->reader.done && !c->writer.done && !c->both.done);
    put(c->ends[1], 'x');
    settle();
    EXPECT_EQ(c->reader.result, PX_READABLE);
    EXPECT_EQ(c->both.result, PX_READABLE);
    EXPECT(!c->writer.done);
    (void)drain(c->ends[1]);
    settle();
    EXPECT_EQ(c->writer.result, PX_WRITABLE);
    close_both(c->ends);
}

static void gather(struct crowd *c)
{
    open_pair(c->ends, 0);
    (void)fill(c->ends[0]);
    c->quitter[0] = (struct waiting){.fd = c->ends[0], .events = PX_READABLE};
    c->quitter[1] = (struct waiting){.fd = c->ends[0], .events = PX_WRITABLE};
    c->reader = (struct waiting){.fd = c->ends[0], .events = PX_READABLE};
    c->writer = (struct waiting){.fd = c->ends[0], .events = PX_WRITABLE};
    c->both = (struct waiting){.fd = c->ends[0], .events = BOTH};
}

static int two_time_out(void *arg)
{
    struct crowd c;

    (void)arg;
    gather(&c);
    start(gives_up_after_10ms, &c.quitter[0]);
    start(wait_for_it, &c.reader);
    start(wait_for_it, &c.writer);
    start(wait_for_it, &c.both);
    start(gives_up_after_10ms, &c.quitter[1]);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_EQ(c.quitter[0].result, PX_ETIMEDOUT);
    EXPECT_EQ(c.quitter[1].result, PX_ETIMEDOUT);
    others_are_still_served(&c);
    return 0;
}

static void one_that_times_out_does_not_disturb_the_others(void **state)
{
    (void)state;
    check(two_time_out);
}

static int two_are_cancelled(void *arg)
{
    struct crowd c;
    px_fiber *quitter[2];

    (void)arg;
    gather(&c);
    start(wait_for_it, &c.reader);
    quitter[0] = start_handle(wait_for_it, &c.quitter[0]);
    start(wait_for_it, &c.writer);
    quitter[1] = start_handle(wait_for_it, &c.quitter[1]);
    start(wait_for_it, &c.both);
    settle();
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(px_cancel_and_await(quitter[i], NULL), 0);
        EXPECT_EQ(c.quitter[i].result, PX_ECANCELED);
    }
    others_are_still_served(&c);
    return 0;
}

static void one_that_is_cancelled_does_not_disturb_the_others(void **state)
{
    (void)state;
    check(two_are_cancelled);
}

static int beside_a_transfer(void *arg)
{
    int ends[2];

    (void)arg;
    open_pair(ends, O_NONBLOCK);
    struct transfer t = {.fd = ends[0], .n = 1};
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    struct waiting full = {.fd = ends[0], .events = PX_WRITABLE};
    start(read_it, &t);
    EXPECT_EQ(px_wait_fd(ends[0], PX_WRITABLE), PX_WRITABLE);
    (void)fill(ends[0]);
    start(wait_for_it, &w);
    start(wait_for_it, &full);
    settle();
    EXPECT(!t.done && !w.done && !full.done);
    EXPECT_EQ(write(ends[1], "xy", 2), 2); /* one of them is left to see */
    settle();
    EXPECT_EQ(t.result, 1);
    EXPECT_EQ(t.bytes[0], 'x');
    EXPECT_EQ(w.result, PX_READABLE);
    EXPECT(!full.done);
    (void)drain(ends[1]);
    settle();
    EXPECT_EQ(full.result, PX_WRITABLE);

    /* And the transfers' own registration has outlived all that. */
    struct transfer again = {.fd = ends[0]};
    EXPECT_EQ(take(ends[0]), 'y');
    start(read_it, &again);
    settle();
    EXPECT(!again.done);
    put(ends[1], 'z');
    settle();
    EXPECT_EQ(again.result, 1);
    px_close_both(ends);
    return 0;
}

static void it_and_the_transfers_may_share_a_descriptor(void **state)
{
    (void)state;
    check(beside_a_transfer);
}

static int two_numbers_of_one_file(void *arg)
{
    int ends[2], copy;

    (void)arg;
    open_pipe(ends, 0);
    copy = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
    struct waiting a = {.fd = ends[0], .events = PX_READABLE};
    struct waiting b = {.fd = copy, .events = PX_READABLE};
    start(wait_for_it, &a);
    start(wait_for_it, &b);
    settle();
    put(ends[1], 'x');
    settle();
    EXPECT_EQ(a.result, PX_READABLE);
    EXPECT_EQ(b.result, PX_READABLE);
    EXPECT_EQ(take(ends[0]), 'x');

    /* Closing one leaves the other, and who waits on it, alone. */
    a.done = b.done = false;
    start(wait_for_it, &a);
    start(wait_for_it, &b);
    settle();
    EXPECT_EQ(px_close(ends[0]), 0);
    settle();
    EXPECT_EQ(a.result, PX_ECLOSED);
    EXPECT(!b.done);
    put(ends[1], 'y');
    settle();
    EXPECT(b.done);
    EXPECT_EQ(b.result, PX_READABLE);
    EXPECT_EQ(close(copy), 0);
    EXPECT_EQ(close(ends[1]), 0);
    return 0;
}

static void duplicates_of_a_descriptor_are_waited_for_each(void **state)
{
    (void)state;
    check(two_numbers_of_one_file);
}

enum { CROWD = 100 };

static int many_descriptors(void *arg)
{
    static int ends[CROWD][2];
    static struct waiting w[CROWD];

    (void)arg;
    for (int i = 0; i < CROWD; i++) {
        open_pipe(ends[i], 0);
        w[i] = (struct waiting){.fd = ends[i][0], .events = PX_READABLE};
        start(wait_for_it, &w[i]);
    }
    for (int i = 1; i < CROWD; i += 2)
        put(ends[i][1], 'x');
    settle();
    for (int i = 0; i < CROWD; i++)
        EXPECT_EQ(w[i].done, i % 2 == 1);
    for (int i = 0; i < CROWD; i += 2)
        put(ends[i][1], 'x');
    settle();
    for (int i = 0; i < CROWD; i++) {
        EXPECT_EQ(w[i].result, PX_READABLE);
        close_both(ends[i]);
    }
    return 0;
}

static void each_of_many_descriptors_wakes_its_own_waiter(void **state)
{
    (void)state;
    check(many_descriptors);
}

static int high_number(void *arg)
{
    struct rlimit limit;
    int ends[2], high;

    (void)arg;
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    open_pipe(ends, 0);
    high = limit.rlim_cur > 4096 ? 4095 : (int)limit.rlim_cur - 1;
    high = fcntl(ends[0], F_DUPFD_CLOEXEC, high);
    EXPECT(high > 200);
    struct waiting w = {.fd = high, .events = PX_READABLE};
    start(wait_for_it, &w);
    settle();
    EXPECT(!w.done);
    put(ends[1], 'x');
    settle();
    EXPECT_EQ(w.result, PX_READABLE);
    EXPECT_EQ(close(high), 0);
    close_both(ends);
    return 0;
}

static void high_descriptor_numbers_work(void **state)
{
    (void)state;
    check(high_number);
}

/* ---- hang-up, errors, half-closing ---- */

static int pipe_hang_up(void *arg)
{
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    struct waiting r = {.fd = ends[0], .events = PX_READABLE};
    start(wait_for_it, &r);
    settle();
    EXPECT_EQ(close(ends[1]), 0);
    settle();
    EXPECT_EQ(r.result, PX_READABLE);
    EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_READABLE);
    EXPECT_EQ(px_wait_fd(ends[0], BOTH), BOTH);
    EXPECT_EQ(close(ends[0]), 0);

    open_pipe(ends, 0);
    (void)fill(ends[1]);
    struct waiting w = {.fd = ends[1], .events = PX_WRITABLE};
    start(wait_for_it, &w);
    settle();
    EXPECT(!w.done);
    EXPECT_EQ(close(ends[0]), 0);
    settle();
    EXPECT_EQ(w.result, PX_WRITABLE);
    EXPECT_EQ(px_wait_fd(ends[1], BOTH), BOTH);
    EXPECT_EQ(close(ends[1]), 0);
    return 0;
}

static void a_pipe_whose_other_end_has_gone_is_ready(void **state)
{
    (void)state;
    check(pipe_hang_up);
}

static int socket_hang_up(void *arg)
{
    int ends[2];
    char byte;

    (void)arg;
    open_pair(ends, 0);
    (void)fill(ends[0]);
    struct waiting r = {.fd = ends[0], .events = PX_READABLE};
    struct waiting w = {.fd = ends[0], .events = PX_WRITABLE};
    struct waiting both = {.fd = ends[0], .events = BOTH};
    start(wait_for_it, &r);
    start(wait_for_it, &w);
    start(wait_for_it, &both);
    settle();
    EXPECT(!r.done && !w.done && !both.done);
    EXPECT_EQ(close(ends[1]), 0);
    settle();
    EXPECT_EQ(r.result, PX_READABLE);
    EXPECT_EQ(w.result, PX_WRITABLE);
    EXPECT_EQ(both.result, BOTH);
    EXPECT(read(ends[0], &byte, 1) <= 0);
    EXPECT_EQ(close(ends[0]), 0);
    return 0;
}

static void a_hang_up_wakes_both_directions(void **state)
{
    (void)state;
    check(socket_hang_up);
}

static int reset_by_peer(void *arg)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    struct sockaddr_in address;
    int listener = listen_tcp(&address, 5, 0);
    int client = tcp_socket(0), served;
    px_fiber *fibers[2];

    (void)arg;
    EXPECT_EQ(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
    served = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    EXPECT(served >= 0);
    (void)fill(client);
    struct waiting r = {.fd = client, .events = PX_READABLE};
    struct waiting w = {.fd = client, .events = PX_WRITABLE};
    fibers[0] = start_handle(wait_for_it, &r);
    fibers[1] = start_handle(wait_for_it, &w);
    EXPECT_EQ(
        setsockopt(served, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)),
        0);
    EXPECT_EQ(close(served), 0);
    EXPECT_EQ(px_await_all(fibers, 2, NULL), 0);
    EXPECT_EQ(r.result, PX_READABLE);
    EXPECT_EQ(w.result, PX_WRITABLE);
    EXPECT_EQ(close(client), 0);
    EXPECT_EQ(close(listener), 0);
    return 0;
}

static void a_reset_connection_wakes_both_directions(void **state)
{
    (void)state;
    check_real(reset_by_peer);
}

static int half_closed(void *arg)
{
    int ends[2];
    char byte;

    (void)arg;
    open_pair(ends, 0);
    (void)fill(ends[0]);
    struct waiting r = {.fd = ends[0], .events = PX_READABLE};
    struct waiting w = {.fd = ends[0], .events = PX_WRITABLE};
    start(wait_for_it, &r);
    start(wait_for_it, &w);
    settle();
    EXPECT_EQ(shutdown(ends[1], SHUT_WR), 0);
    settle();
    EXPECT_EQ(r.result, PX_READABLE);
    EXPECT_EQ(read(ends[0], &byte, 1), 0);
    EXPECT(!w.done); /* the way out is still there, and still full */
    (void)drain(ends[1]);
    settle();
    EXPECT_EQ(w.result, PX_WRITABLE);
    close_both(ends);
    return 0;
}

static void a_half_closed_peer_wakes_the_reader_only(void **state)
{
    (void)state;
    check(half_closed);
}

static int data_then_hang_up(void *arg)
{
    int ends[2];
    char bytes[4];

    (void)arg;
    open_pipe(ends, 0);
    put(ends[1], 'x');
    EXPECT_EQ(close(ends[1]), 0);
    EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_READABLE);
    EXPECT_EQ(read(ends[0], bytes, sizeof(bytes)), 1);
    EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_READABLE);
    EXPECT_EQ(read(ends[0], bytes, sizeof(bytes)), 0);
    EXPECT_EQ(close(ends[0]), 0);
    return 0;
}

static void data_come_before_the_hang_up(void **state)
{
    (void)state;
    check(data_then_hang_up);
}

/* ---- closed behind our back ---- */

/* Close `fd` with close(2) and open a pipe whose read end has that number. */
static void replace(int fd, int ends[2])
{
    EXPECT_EQ(close(fd), 0);
    open_pipe(ends, 0);
    if (ends[0] != fd) {
        EXPECT_EQ(dup3(ends[0], fd, O_CLOEXEC), fd);
        EXPECT_EQ(close(ends[0]), 0);
        ends[0] = fd;
    }
}

static int plain_close_and_reuse(void *arg)
{
    int old[2], new[2];

    (void)arg;
    open_pipe(old, 0);
    struct waiting a = {.fd = old[0], .events = PX_READABLE};
    start(wait_for_it, &a);
    settle();
    replace(old[0], new);
    struct waiting c = {.fd = new[0], .events = PX_READABLE};
    start(wait_for_it, &c);
    settle();
    EXPECT(!c.done);
    EXPECT(a.done);
    EXPECT_EQ(a.result, PX_EBADF);
    put(new[1], 'x');
    settle();
    EXPECT_EQ(c.result, PX_READABLE);
    EXPECT_EQ(take(new[0]), 'x');
    EXPECT_EQ(close(old[1]), 0);
    close_both(new);
    return 0;
}

static void a_reused_number_wakes_only_who_waits_on_the_new_file(void **state)
{
    (void)state;
    check(plain_close_and_reuse);
}

/* For how many ms the only one who waits for `fd` has not been woken: one that
 * was, and found nothing, has begun anew. -1: nobody waits. */
static int ms_unwoken(int fd)
{
    FILE *file = tmpfile();
    char line[200], waits[64];
    const char *since;
    double seconds = -0.001;

    EXPECT(file != NULL);
    if (!file)
        return -1;
    EXPECT_EQ(px_dump(file), 0);
    rewind(file);
    (void)snprintf(waits, sizeof(waits), " waits for descriptor %d to ", fd);
    while (fgets(line, sizeof(line), file)) {
        if (strstr(line, waits) && (since = strstr(line, ", for ")))
            EXPECT_EQ(sscanf(since, ", for %lf s", &seconds), 1);
    }
    (void)fclose(file);
    return (int)(seconds * 1000 + (seconds < 0 ? -0.5 : 0.5));
}

static int reuse_while_the_old_file_lives(void *arg)
{
    int old[2], new[2], keeper;

    (void)arg;
    open_pipe(old, 0);
    keeper = fcntl(old[0], F_DUPFD_CLOEXEC, 0);
    struct waiting a = {.fd = old[0], .events = PX_READABLE};
    start(wait_for_it, &a);
    settle();
    replace(old[0], new);
    struct waiting c = {.fd = new[0], .events = PX_READABLE};
    start(wait_for_it, &c);
    settle();
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    put(old[1], 'x'); /* the old file is readable, the new one is not */
    settle();
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT(!c.done);
    EXPECT_EQ(ms_unwoken(new[0]), 2000);
    EXPECT(a.result != PX_READABLE);
    put(new[1], 'y');
    settle();
    EXPECT_EQ(c.result, PX_READABLE);
    EXPECT_EQ(take(new[0]), 'y');
    EXPECT_EQ(a.result, PX_EBADF);

    /* The descriptor that keeps the old file works as ever. */
    EXPECT_EQ(px_wait_fd(keeper, PX_READABLE), PX_READABLE);
    EXPECT_EQ(close(keeper), 0);
    EXPECT_EQ(close(old[1]), 0);
    close_both(new);
    return 0;
}

static void events_of_a_file_that_outlived_its_number_go_nowhere(void **state)
{
    (void)state;
    check(reuse_while_the_old_file_lives);
}

/* The same when the number was closed once more in between: that took what the
 * poller knew of it, but not the old file's registration. */
static int closed_both_ways(void *arg)
{
    int old[2], middle[2], new[2], keeper, number;

    (void)arg;
    open_pipe(old, 0);
    number = old[0];
    keeper = fcntl(number, F_DUPFD_CLOEXEC, 0);
    struct waiting a = {.fd = number, .events = PX_READABLE}, c = a;
    px_fiber *fiber = start_handle(wait_for_it, &a);
    settle();
    EXPECT_EQ(px_cancel_and_await(fiber, NULL), 0);
    replace(number, middle);
    EXPECT_EQ(px_close(number), 0);
    open_pipe(new, 0);
    EXPECT_EQ(new[0], number);
    start(wait_for_it, &c);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    put(old[1], 'x');
    settle();
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT(!c.done);
    EXPECT_EQ(ms_unwoken(number), 2000);
    put(new[1], 'y');
    settle();
    EXPECT_EQ(c.result, PX_READABLE);
    EXPECT_EQ(close(keeper), 0);
    EXPECT_EQ(close(middle[1]), 0);
    EXPECT_EQ(close(old[1]), 0);
    close_both(new);
    return 0;
}

static void a_registration_that_outlived_two_closes_wakes_nobody(void **state)
{
    (void)state;
    check(closed_both_ways);
}

/* The old file's registration has outlived the number, and then the number is
 * the old file's again. */
static int the_old_file_comes_back(void *arg)
{
    int old[2], new[2], keeper, number;

    (void)arg;
    open_pipe(old, 0);
    number = old[0];
    keeper = fcntl(number, F_DUPFD_CLOEXEC, 0);
    struct waiting a = {.fd = number, .events = PX_READABLE}, b = a, c = a;
    start(wait_for_it, &a);
    settle();
    replace(number, new);
    start(wait_for_it, &b);
    settle();
    EXPECT_EQ(a.result, PX_EBADF);
    EXPECT_EQ(px_close(number), 0);
    settle();
    EXPECT_EQ(b.result, PX_ECLOSED);
    EXPECT_EQ(dup3(keeper, number, O_CLOEXEC), number);
    start(wait_for_it, &c);
    settle();
    EXPECT(!c.done);
    put(old[1], 'x');
    settle();
    EXPECT_EQ(c.result, PX_READABLE);
    EXPECT_EQ(take(number), 'x');
    EXPECT_EQ(close(number), 0);
    EXPECT_EQ(close(keeper), 0);
    EXPECT_EQ(close(old[1]), 0);
    EXPECT_EQ(close(new[1]), 0);
    return 0;
}

static void a_number_may_mean_the_old_file_again(void **state)
{
    (void)state;
    check(the_old_file_comes_back);
}

static int ready_then_replaced(void *arg)
{
    int old[2], new[2];

    (void)arg;
    open_pipe(old, 0);
    put(old[1], 'x');
    EXPECT_EQ(px_wait_fd(old[0], PX_READABLE), PX_READABLE);
    replace(old[0], new);
    struct waiting c = {.fd = new[0], .events = PX_READABLE};
    start(wait_for_it, &c);
    settle();
    EXPECT(!c.done);
    put(new[1], 'y');
    settle();
    EXPECT_EQ(c.result, PX_READABLE);
    EXPECT_EQ(close(old[1]), 0);
    close_both(new);
    return 0;
}

static void readiness_of_the_old_file_is_not_that_of_the_new(void **state)
{
    (void)state;
    check(ready_then_replaced);
}

static int cancel_after_plain_close(void *arg)
{
    int ends[2];
    px_fiber *fiber;

    (void)arg;
    open_pipe(ends, 0);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    fiber = start_handle(wait_for_it, &w);
    settle();
    close_both(ends);
    EXPECT_EQ(px_cancel_and_await(fiber, NULL), 0);
    EXPECT_EQ(w.result, PX_ECANCELED);
    open_pipe(ends, 0);
    put(ends[1], 'x');
    EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_READABLE);
    close_both(ends);
    return 0;
}

static void a_wait_on_a_closed_number_can_be_cancelled(void **state)
{
    (void)state;
    check(cancel_after_plain_close);
}

/* Several are woken for a number; the first that runs takes what there was, and
 * makes the number another file's. */
struct replacing {
    int fd;
    int new[2];
    bool with_newcomer;
    struct waiting newcomer;
    int results[3];
    int count;
};

static int waits_and_replaces(void *arg)
{
    struct replacing *r = arg;
    int result = px_wait_fd(r->fd, PX_READABLE);

    r->results[r->count++] = result;
    if (r->count > 1)
        return 0;
    EXPECT_EQ(take(r->fd), 'x');
    replace(r->fd, r->new);
    r->newcomer.fd = r->fd;
    r->newcomer.events = PX_READABLE;
    if (r->with_newcomer)
        start(wait_for_it, &r->newcomer);
    return 0;
}

/* What becomes of the others. A poller that looks at numbers can not tell. */
static int replaced_before_they_ran(bool with_newcomer)
{
    int old[2], told = PX_POLLS_NUMBERS ? 1 : 3;

    open_pipe(old, 0);
    struct replacing r = {.fd = old[0], .with_newcomer = with_newcomer};
    for (int i = 0; i < 3; i++)
        start(waits_and_replaces, &r);
    settle();
    put(old[1], 'x');
    settle();
    EXPECT_EQ(r.count, told);
    EXPECT_EQ(r.results[0], PX_READABLE);
    put(r.new[1], 'y');
    settle();
    EXPECT_EQ(r.count, 3);
    for (int i = 1; i < 3; i++)
        EXPECT_EQ(r.results[i], PX_POLLS_NUMBERS ? PX_READABLE : PX_EBADF);
    EXPECT_EQ(r.newcomer.result, with_newcomer ? PX_READABLE : 0);
    EXPECT_EQ(close(old[1]), 0);
    close_both(r.new);
    return 0;
}

static int replaced_before(void *arg)
{
    (void)arg;
    return replaced_before_they_ran(false);
}

static int replaced_and_waited_for(void *arg)
{
    (void)arg;
    return replaced_before_they_ran(true);
}

static void who_was_woken_does_not_wait_for_another_file(void **state)
{
    (void)state;
    check(replaced_before);
    check(replaced_and_waited_for);
}

typedef int (*fd_call)(int fd);

static int by_waiting(int fd)
{
    return px_wait_fd(fd, PX_READABLE);
}

static int by_reading(int fd)
{
    char byte;

    return (int)px_read(fd, &byte, 1);
}

static int by_connecting(int fd)
{
    struct sockaddr_un nowhere = {.sun_family = AF_UNIX};

    return px_connect(fd, (struct sockaddr *)&nowhere, sizeof(nowhere));
}

/* Whoever finds out tells those who wait. */
static int found_to_be_closed(void *arg)
{
    fd_call call = *(fd_call *)arg;
    int ends[2], number;

    open_pipe(ends, 0);
    number = ends[0];
    struct waiting a = {.fd = number, .events = PX_READABLE}, b = a;
    start(wait_for_it, &a);
    start(wait_for_it, &b);
    settle();
    close_both(ends);
    EXPECT_EQ(call(number), PX_EBADF);
    settle();
    EXPECT_EQ(a.result, PX_EBADF);
    EXPECT_EQ(b.result, PX_EBADF);
    open_pipe(ends, 0);
    EXPECT_EQ(ends[0], number);
    put(ends[1], 'x');
    EXPECT_EQ(px_wait_fd(number, PX_READABLE), PX_READABLE);
    EXPECT_EQ(take(number), 'x');
    a.done = false;
    start(wait_for_it, &a);
    settle();
    EXPECT(!a.done);
    put(ends[1], 'x');
    settle();
    EXPECT_EQ(a.result, PX_READABLE);
    close_both(ends);
    return 0;
}

static void one_that_is_told_of_a_closed_number_tells_who_waits(void **state)
{
    static fd_call calls[] = {by_waiting, by_reading, by_connecting,
                              px_nonblock};

    (void)state;
    for (int i = 0; i < 4; i++)
        run_fibers(found_to_be_closed, &calls[i]);
    assert_log("");
}

/* It was woken, and before it runs its file is closed by px_close(); the number
 * is another file's then, which is found to be closed. */
struct told_first {
    int fd;
    int other;
};

static int closes_both_ways(void *arg)
{
    struct told_first *t = arg;
    char byte;

    EXPECT_EQ(px_wait_fd(t->other, PX_READABLE), PX_READABLE);
    EXPECT_EQ(px_close(t->fd), 0);
    EXPECT_EQ(open("/dev/null", O_RDONLY | O_CLOEXEC), t->fd);
    EXPECT_EQ(close(t->fd), 0);
    EXPECT_EQ(px_read(t->fd, &byte, 1), PX_EBADF);
    return 0;
}

static int told_before_it_ran(void *arg)
{
    int ends[2], other[2];

    (void)arg;
    open_pipe(other, 0);
    open_pipe(ends, 0);
    struct waiting a = {.fd = ends[0], .events = PX_READABLE};
    struct told_first t = {.fd = ends[0], .other = other[0]};
    start(closes_both_ways, &t);
    start(wait_for_it, &a);
    settle();
    put(other[1], 'x');
    put(ends[1], 'x');
    settle();
    EXPECT(a.done);
    /* It may have run first, if the run queue is shuffled. */
    EXPECT(a.result == PX_ECLOSED || a.result == PX_READABLE);
    EXPECT_EQ(close(ends[1]), 0);
    close_both(other);
    return 0;
}

static void px_close_is_told_whatever_becomes_of_the_number(void **state)
{
    (void)state;
    check(told_before_it_ran);
}

static int waits_for_signal(void *arg)
{
    EXPECT_EQ(px_wait_signal(arg), PX_ECANCELED);
    return 0;
}

/* Nobody has called px_close(). */
static int number_of_a_signal(void *arg)
{
    sigset_t first, second, before;
    int ends[2];

    (void)arg;
    (void)sigemptyset(&first);
    (void)sigaddset(&first, SIGUSR1);
    (void)sigemptyset(&second);
    (void)sigaddset(&second, SIGUSR2);
    (void)pthread_sigmask(SIG_BLOCK, &first, &before);
    open_pipe(ends, 0);
    struct waiting a = {.fd = ends[0], .events = PX_READABLE};
    px_fiber *waits = start_handle(waits_for_signal, &second);
    start(wait_for_it, &a);
    settle();
    EXPECT_EQ(close(ends[0]), 0);
    EXPECT_EQ(raise(SIGUSR1), 0);
    EXPECT_EQ(px_wait_signal(&first), SIGUSR1);
    settle();
    EXPECT_EQ(a.result, PX_EBADF);
    EXPECT_EQ(px_cancel_and_await(waits, NULL), 0);
    EXPECT_EQ(close(ends[1]), 0);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return 0;
}

static void a_number_that_px_wait_signal_had_is_EBADF(void **state)
{
    (void)state;
    check(number_of_a_signal);
}

static int takes_a_turn(void *arg)
{
    *(bool *)arg = true;
    return 0;
}

static int fails_to_wait(int fd)
{
    return px_wait_fd(fd, PX_READABLE);
}

static int does_nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int fails_to_offload(int fd)
{
    (void)fd;
    return px_offload(does_nothing, NULL);
}

/* `call` fails for want of a descriptor. */
static bool gives_way(fd_call call, int fd)
{
    px_spawn_options options = {.queued = true};
    bool turned = false;
    px_scope scope;

    EXPECT_EQ(px_spawn_with(NULL, &options, takes_a_turn, &turned), 0);
    for (int i = 0; i < 10 * 1024 && !turned; i++) {
        EXPECT_EQ(px_scope_enter(&scope, 0), 0);
        EXPECT_EQ(px_yield(), PX_ETIMEDOUT);
        EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
        EXPECT_EQ(call(fd), -EMFILE);
    }
    return turned;
}

static int fails_for_ever(void *arg)
{
    struct rlimit old;
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    old = no_more_descriptors();
    EXPECT(gives_way(fails_to_wait, ends[0]));
    EXPECT(gives_way(fails_to_offload, -1));
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
    close_both(ends);
    return 0;
}

static void a_wait_that_failed_before_it_began_gave_nobody_a_turn(void **state)
{
    (void)state;
    check(fails_for_ever);
}

static int rounds_of_reuse(void *arg)
{
    int rounds = scaled(10000, 500), other[2];

    (void)arg;
    open_pipe(other, 0);
    struct waiting bystander = {.fd = other[0], .events = PX_READABLE};
    start(wait_for_it, &bystander);
    for (int i = 0; i < rounds; i++) {
        int ends[2];

        open_pipe(ends, 0);
        struct waiting w = {.fd = ends[0], .events = PX_READABLE};
        start(wait_for_it, &w);
        put(ends[1], 'x');
        settle();
        EXPECT_EQ(w.result, PX_READABLE);
        close_both(ends);
    }
    EXPECT(!bystander.done);
    put(other[1], 'x');
    settle();
    EXPECT_EQ(bystander.result, PX_READABLE);
    close_both(other);
    return 0;
}

static void ten_thousand_plain_closes_and_reuses_confuse_nobody(void **state)
{
    (void)state;
    check(rounds_of_reuse);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(what_is_ready_and_asked_for_comes_at_once),
    PX_TEST(a_reader_waits_until_something_comes),
    PX_TEST(a_writer_waits_until_there_is_room),
    PX_TEST(it_is_level_and_remembers_nothing),
    PX_TEST(each_call_arms_anew),
    PX_TEST(R114_a_file_that_cannot_be_polled_is_always_ready),
    PX_TEST(other_kinds_of_descriptors_are_waited_for_alike),
    PX_TEST(bad_events_are_EINVAL_and_no_descriptor_is_EBADF),
    PX_TEST(a_fired_scope_comes_before_readiness_and_before_EBADF),
    PX_TEST(off_a_fiber_it_never_waits),
    PX_TEST(without_descriptors_a_wait_is_EMFILE_until_there_are_some),
    PX_TEST(readiness_wakes_every_waiter_of_its_direction),
    PX_TEST(readers_and_writers_of_one_descriptor_are_apart),
    PX_TEST(one_that_times_out_does_not_disturb_the_others),
    PX_TEST(one_that_is_cancelled_does_not_disturb_the_others),
    PX_TEST(it_and_the_transfers_may_share_a_descriptor),
    PX_TEST(duplicates_of_a_descriptor_are_waited_for_each),
    PX_TEST(each_of_many_descriptors_wakes_its_own_waiter),
    PX_TEST(high_descriptor_numbers_work),
    PX_TEST(a_pipe_whose_other_end_has_gone_is_ready),
    PX_TEST(a_hang_up_wakes_both_directions),
    PX_TEST(a_reset_connection_wakes_both_directions),
    PX_TEST(a_half_closed_peer_wakes_the_reader_only),
    PX_TEST(data_come_before_the_hang_up),
    PX_TEST(a_reused_number_wakes_only_who_waits_on_the_new_file),
    PX_TEST(events_of_a_file_that_outlived_its_number_go_nowhere),
    PX_TEST(a_registration_that_outlived_two_closes_wakes_nobody),
    PX_TEST(a_number_may_mean_the_old_file_again),
    PX_TEST(readiness_of_the_old_file_is_not_that_of_the_new),
    PX_TEST(a_wait_on_a_closed_number_can_be_cancelled),
    PX_TEST(who_was_woken_does_not_wait_for_another_file),
    PX_TEST(one_that_is_told_of_a_closed_number_tells_who_waits),
    PX_TEST(px_close_is_told_whatever_becomes_of_the_number),
    PX_TEST(a_number_that_px_wait_signal_had_is_EBADF),
    PX_TEST(a_wait_that_failed_before_it_began_gave_nobody_a_turn),
    PX_TEST(ten_thousand_plain_closes_and_reuses_confuse_nobody),
};

PX_TEST_MAIN(tests)
