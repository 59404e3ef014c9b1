/* SPDX-License-Identifier: MIT */
/*
 * test_io.c - the transfers: px_read, px_write, px_write_all; and px_nonblock.
 *
 * Most of it is run over every kind of descriptor there is, blocking ones too:
 * those are never changed and never stop the loop. A transfer that blocked it
 * shows as a hang, as reader and writer are fibers of one thread.
 */
#define _GNU_SOURCE 1

#include "px_test_io.h"

#include <sys/inotify.h>

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>

/* ---- kinds of descriptors: [0] is read from, [1] is written to ---- */

struct kind {
    const char *name;
    void (*open)(int ends[2]);
};

static void blocking_pipe(int ends[2])
{
    open_pipe(ends, 0);
}

static void nonblocking_pipe(int ends[2])
{
    open_pipe(ends, O_NONBLOCK);
}

static void blocking_pair(int ends[2])
{
    open_pair(ends, 0);
}

static void nonblocking_pair(int ends[2])
{
    open_pair(ends, SOCK_NONBLOCK);
}

/* A raw one, but for what becomes of its output. Its descriptors block. */
static int open_terminal(int *slave, tcflag_t output)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char name[64];
    struct termios mode;

    EXPECT(master >= 0);
    EXPECT_EQ(grantpt(master), 0);
    EXPECT_EQ(unlockpt(master), 0);
    EXPECT_EQ(ptsname_r(master, name, sizeof(name)), 0);
    *slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    EXPECT(*slave >= 0);
    EXPECT_EQ(tcgetattr(*slave, &mode), 0);
    cfmakeraw(&mode);
    mode.c_oflag = output;
    EXPECT_EQ(tcsetattr(*slave, TCSANOW, &mode), 0);
    return master;
}

static void terminal_in(int ends[2])
{
    ends[1] = open_terminal(&ends[0], 0);
}

static void terminal_out(int ends[2])
{
    ends[0] = open_terminal(&ends[1], 0);
}

/* The first four deliver at once; a terminal does so in its own time. */
static const struct kind kinds[] = {
    {"pipe", blocking_pipe},
    {"non-blocking pipe", nonblocking_pipe},
    {"socket pair", blocking_pair},
    {"non-blocking socket pair", nonblocking_pair},
    {"terminal, to the slave", terminal_in},
    {"terminal, to the master", terminal_out},
};
enum { PROMPT = 4, SOCKETS = 2, ALL = 6 };

/* A bare root has no /dev/pts. */
static bool has_terminals(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    char name[64];
    bool has = master >= 0 && grantpt(master) == 0 &&
               ptsname_r(master, name, sizeof(name)) == 0 &&
               access(name, R_OK | W_OK) == 0;

    if (master >= 0)
        (void)close(master);
    return has;
}

/* Run the body for the kinds from `first` to before `last`. The flags of both
 * ends are afterwards what they were before. */
static void check_kinds(px_fn body, int first, int last)
{
    for (int i = first; i < last; i++) {
        int ends[2], before[2];

        if (i >= PROMPT && !has_terminals()) {
            print_message("left out, no /dev/pts: %s\n", kinds[i].name);
            continue;
        }
        kinds[i].open(ends);
        before[0] = fcntl(ends[0], F_GETFL);
        before[1] = fcntl(ends[1], F_GETFL);
        run_fibers(body, ends);
        for (int end = 0; end < 2; end++) {
            int after = fcntl(ends[end], F_GETFL);

            if (after != -1 && after != before[end])
                note("%s: changed; ", kinds[i].name);
            if (after != -1)
                EXPECT_EQ(px_close(ends[end]), 0);
        }
    }
    assert_log("");
}

/* ---- reading ---- */

static int takes_what_is_there(void *arg)
{
    int *ends = arg;
    char bytes[10] = {0};

    EXPECT_EQ(write(ends[1], "abc", 3), 3);
    EXPECT_EQ(px_read(ends[0], bytes, 2), 2);
    EXPECT(memcmp(bytes, "ab", 2) == 0);
    EXPECT_EQ(px_read(ends[0], bytes, sizeof(bytes)), 1);
    EXPECT_EQ(bytes[0], 'c');
    EXPECT_EQ(px_now(), 0);
    return 0;
}

static void a_read_takes_what_is_there_without_waiting(void **state)
{
    (void)state;
    check_kinds(takes_what_is_there, 0, PROMPT);
}

static int waits_for_bytes(void *arg)
{
    int *ends = arg, flags[2];
    px_fiber *fiber;

    struct transfer t = {.fd = ends[0]};
    flags[0] = fcntl(ends[0], F_GETFL);
    flags[1] = fcntl(ends[1], F_GETFL);
    for (int i = 0; i < 50; i++) {
        t.done = false;
        fiber = start_handle(read_it, &t);
        settle();
        EXPECT(!t.done);
        EXPECT_EQ(fcntl(ends[0], F_GETFL), flags[0]);
        EXPECT_EQ(fcntl(ends[1], F_GETFL), flags[1]);
        EXPECT_EQ(px_write(ends[1], "x", 1), 1);
        EXPECT_EQ(px_await(fiber, NULL), 0);
        EXPECT_EQ(t.result, 1);
        EXPECT_EQ(t.bytes[0], 'x');
    }
    return 0;
}

static void a_read_waits_and_leaves_the_descriptor_as_it_is(void **state)
{
    (void)state;
    check_kinds(waits_for_bytes, 0, ALL);
}

static int end_of_file(void *arg)
{
    int *ends = arg;
    char byte;

    struct transfer t = {.fd = ends[0]};
    start(read_it, &t);
    settle();
    EXPECT(!t.done);
    EXPECT_EQ(px_close(ends[1]), 0);
    settle();
    EXPECT(t.done);
    EXPECT_EQ(t.result, 0);
    EXPECT_EQ(px_read(ends[0], &byte, 1), 0);
    return 0;
}

static void a_read_at_the_end_is_0(void **state)
{
    (void)state;
    check_kinds(end_of_file, 0, PROMPT);
}

static int data_before_the_end(void *arg)
{
    int *ends = arg;
    char bytes[8];

    EXPECT_EQ(px_write(ends[1], "abc", 3), 3);
    EXPECT_EQ(px_close(ends[1]), 0);
    EXPECT_EQ(px_read(ends[0], bytes, sizeof(bytes)), 3);
    EXPECT_EQ(px_read(ends[0], bytes, sizeof(bytes)), 0);
    return 0;
}

static void what_was_sent_comes_before_the_end(void **state)
{
    (void)state;
    check_kinds(data_before_the_end, 0, PROMPT);
}

static int half_close(void *arg)
{
    int *ends = arg;

    struct transfer t = {.fd = ends[0]};
    start(read_it, &t);
    settle();
    EXPECT_EQ(shutdown(ends[1], SHUT_WR), 0);
    settle();
    EXPECT(t.done);
    EXPECT_EQ(t.result, 0);
    EXPECT_EQ(px_write(ends[0], "still", 5), 5);
    return 0;
}

static void a_half_closed_peer_ends_the_reading_only(void **state)
{
    (void)state;
    check_kinds(half_close, SOCKETS, PROMPT);
}

static int one_byte_for_two(void *arg)
{
    int *ends = arg;

    struct transfer a = {.fd = ends[0]}, b = {.fd = ends[0]};
    start(read_it, &a);
    start(read_it, &b);
    settle();
    put(ends[1], 'x');
    settle();
    EXPECT(a.done != b.done);
    put(ends[1], 'y');
    settle();
    EXPECT(a.done && b.done);
    EXPECT_EQ(a.result, 1);
    EXPECT_EQ(b.result, 1);
    EXPECT_EQ(a.bytes[0] + b.bytes[0], 'x' + 'y');
    return 0;
}

static void of_two_readers_one_gets_the_byte_and_one_waits_on(void **state)
{
    (void)state;
    check_kinds(one_byte_for_two, 0, PROMPT);
}

/* ---- writing ---- */

static int waits_for_room(void *arg)
{
    int *ends = arg, flags = fcntl(ends[1], F_GETFL);
    size_t inside;

    struct transfer t = {.fd = ends[1], .bytes = "x", .n = 1};
    inside = fill(ends[1]);
    start(write_it, &t);
    settle();
    EXPECT(!t.done);
    EXPECT_EQ(fcntl(ends[1], F_GETFL), flags);
    EXPECT_EQ(drain(ends[0]), inside);
    settle();
    EXPECT(t.done);
    EXPECT_EQ(t.result, 1);
    EXPECT_EQ(take(ends[0]), 'x');
    return 0;
}

static void a_write_waits_until_there_is_room(void **state)
{
    (void)state;
    check_kinds(waits_for_room, 0, PROMPT);
}

static int one_short_transfer(void *arg)
{
    int *ends = arg;
    ssize_t wrote = px_write(ends[1], large_block(), LARGE);

    EXPECT(wrote > 0 && wrote < LARGE);
    EXPECT_EQ(drain(ends[0]), wrote);
    return 0;
}

static void a_write_is_one_transfer_and_may_be_short(void **state)
{
    (void)state;
    check_kinds(one_short_transfer, 0, PROMPT);
}

static size_t stream_size(void)
{
    return (size_t)scaled(LARGE, LARGE / 2);
}

static int long_stream(void *arg)
{
    int *ends = arg;
    px_fiber *fibers[2];

    struct stream in = {.fd = ends[0], .size = stream_size()};
    struct stream out = {.fd = ends[1], .size = stream_size()};
    fibers[0] = start_handle(sends_it_all, &out);
    fibers[1] = start_handle(receives_it_all, &in);
    EXPECT_EQ(px_await_all(fibers, 2, NULL), 0);
    EXPECT_EQ(out.result, 0);
    EXPECT_EQ(out.done, out.size);
    EXPECT_EQ(in.result, 0);
    EXPECT_EQ(in.done, in.size);
    EXPECT(in.in_order);
    return 0;
}

static void a_long_stream_flows_between_two_fibers_of_one_loop(void **state)
{
    (void)state;
    check_kinds(long_stream, 0, ALL);
}

static int both_ways_at_once(void *arg)
{
    int *ends = arg;
    px_fiber *fibers[4];
    size_t size = stream_size() / 2;

    struct stream out[2] = {{.fd = ends[0], .size = size},
                            {.fd = ends[1], .size = size}};
    struct stream in[2] = {{.fd = ends[0], .size = size},
                           {.fd = ends[1], .size = size}};
    for (int i = 0; i < 2; i++) {
        fibers[i] = start_handle(sends_it_all, &out[i]);
        fibers[2 + i] = start_handle(receives_it_all, &in[i]);
    }
    EXPECT_EQ(px_await_all(fibers, 4, NULL), 0);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(out[i].done, size);
        EXPECT_EQ(in[i].done, size);
        EXPECT(in[i].in_order);
    }
    return 0;
}

static void a_descriptor_is_read_and_written_at_the_same_time(void **state)
{
    (void)state;
    check_kinds(both_ways_at_once, SOCKETS, PROMPT);
}

static int nothing_to_write(void *arg)
{
    int *ends = arg;
    size_t done = 99;

    (void)fill(ends[1]);
    EXPECT_EQ(px_write_all(ends[1], "", 0, &done), 0);
    EXPECT_EQ(done, 0);
    (void)drain(ends[0]);
    EXPECT_EQ(px_write_all(ends[1], "x", 1, NULL), 0);
    EXPECT_EQ(px_write_all(ends[1], "yz", 2, &done), 0);
    EXPECT_EQ(done, 2);
    EXPECT_EQ(drain(ends[0]), 3);
    return 0;
}

static void write_all_of_nothing_is_0_and_done_may_be_NULL(void **state)
{
    (void)state;
    check_kinds(nothing_to_write, 0, PROMPT);
}

static int times_out_in_the_middle(void *arg)
{
    int *ends = arg;

    struct stream out = {.fd = ends[1], .size = LARGE, .done = 99};
    EXPECT_EQ(px_with_timeout(10 * PX_MSEC, sends_it_all, &out), 0);
    EXPECT_EQ(out.result, PX_ETIMEDOUT);
    EXPECT(out.done > 0 && out.done < LARGE);
    EXPECT_EQ(drain(ends[0]), out.done);

    out.done = 99;
    EXPECT_EQ(px_with_timeout(0, sends_it_all, &out), 0);
    EXPECT_EQ(out.result, PX_ETIMEDOUT);
    EXPECT_EQ(out.done, 0);
    EXPECT_EQ(drain(ends[0]), 0);
    return 0;
}

static void write_all_cut_short_says_how_much_went_out(void **state)
{
    (void)state;
    check_kinds(times_out_in_the_middle, 0, PROMPT);
}

static int peer_goes_in_the_middle(void *arg)
{
    int *ends = arg;
    size_t taken;

    struct stream out = {.fd = ends[1], .size = LARGE};
    px_fiber *fiber = start_handle(sends_it_all, &out);
    settle();
    taken = drain(ends[0]);
    settle();
    taken += drain(ends[0]);
    EXPECT_EQ(px_close(ends[0]), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(out.result, PX_EPIPE);
    EXPECT_EQ(out.done, taken);
    EXPECT(taken > 0);
    return 0;
}

static void write_all_to_a_peer_that_goes_is_EPIPE_and_the_count(void **state)
{
    void (*before)(int) = signal(SIGPIPE, SIG_IGN); /* pipes do raise it */

    (void)state;
    check_kinds(peer_goes_in_the_middle, 0, PROMPT);
    (void)signal(SIGPIPE, before);
}

static int whole_messages(void *arg)
{
    static const int types[] = {SOCK_SEQPACKET, SOCK_DGRAM,
                                SOCK_SEQPACKET | SOCK_NONBLOCK,
                                SOCK_DGRAM | SOCK_NONBLOCK};
    static char bytes[20000];
    size_t done;

    (void)arg;
    for (int i = 0; i < 4; i++) {
        int ends[2];

        EXPECT_EQ(socketpair(AF_UNIX, types[i] | SOCK_CLOEXEC, 0, ends), 0);
        EXPECT_EQ(px_write(ends[1], large_block(), 9000), 9000);
        EXPECT_EQ(px_write_all(ends[1], large_block(), 10000, &done), 0);
        EXPECT_EQ(done, 10000);
        EXPECT_EQ(px_read(ends[0], bytes, sizeof(bytes)), 9000);
        EXPECT_EQ(px_read(ends[0], bytes, sizeof(bytes)), 10000);
        px_close_both(ends);
    }
    return 0;
}

static void a_message_is_sent_whole(void **state)
{
    (void)state;
    check(whole_messages);
}

/* ---- SIGPIPE ---- */

static int writes_to_closed_sockets(void *arg)
{
    size_t done = 99;

    (void)arg;
    for (int i = 0; i < 2; i++) {
        int ends[2];

        open_pair(ends, i ? SOCK_NONBLOCK : 0);
        EXPECT_EQ(px_close(ends[0]), 0);
        EXPECT_EQ(px_write(ends[1], "x", 1), PX_EPIPE);
        EXPECT_EQ(px_write_all(ends[1], "x", 1, &done), PX_EPIPE);
        EXPECT_EQ(done, 0);
        EXPECT_EQ(px_close(ends[1]), 0);
    }
    return 0;
}

static volatile sig_atomic_t handled;

static void count_signal(int number)
{
    (void)number;
    handled++;
}

static void R115_a_write_to_a_closed_socket_raises_no_SIGPIPE(void **state)
{
    struct sigaction handler = {.sa_handler = count_signal}, after, before;

    (void)state;
    EXPECT_EQ(sigaction(SIGPIPE, &handler, &before), 0);
    handled = 0;
    check(writes_to_closed_sockets);
    EXPECT_EQ(sigaction(SIGPIPE, &before, &after), 0);
    assert_int_equal(handled, 0);
    assert_true(after.sa_handler == count_signal);
    assert_log("");
}

static void writes_with_the_default(void *arg)
{
    struct sigaction after;
    px_run_options options = {.clock = PX_CLOCK_VIRTUAL};

    (void)arg;
    (void)signal(SIGPIPE, SIG_DFL);
    if (px_run_with(&options, writes_to_closed_sockets, NULL) != 0)
        _exit(1);
    if (sigaction(SIGPIPE, NULL, &after) != 0 || after.sa_handler != SIG_DFL)
        _exit(2);
}

static void R115_with_SIGPIPE_at_its_default_the_process_lives(void **state)
{
    char output[256];

    (void)state;
    assert_int_equal(
        in_child(writes_with_the_default, NULL, output, sizeof(output)), 0);
    assert_string_equal(output, "");
}

static int writes_to_a_closed_pipe(void *arg)
{
    int *wrote = arg, ends[2];

    open_pipe(ends, 0);
    EXPECT_EQ(px_close(ends[0]), 0);
    *wrote = (int)px_write(ends[1], "x", 1);
    EXPECT_EQ(px_close(ends[1]), 0);
    return 0;
}

static void pipe_with_the_default(void *arg)
{
    px_run_options options = {.clock = PX_CLOCK_VIRTUAL};

    (void)signal(SIGPIPE, SIG_DFL);
    (void)px_run_with(&options, writes_to_a_closed_pipe, arg);
}

static void a_pipe_raises_it_as_write_does_unless_it_is_ignored(void **state)
{
    char output[256];
    int wrote = 0, status;
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);

    (void)state;
    run_fibers(writes_to_a_closed_pipe, &wrote);
    (void)signal(SIGPIPE, before);
    assert_int_equal(wrote, PX_EPIPE);
    status = in_child(pipe_with_the_default, &wrote, output, sizeof(output));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
    assert_log("");
}

/* ---- scopes ---- */

static int reads_in_time(void *arg)
{
    return px_with_timeout(10 * PX_MSEC, read_it, arg);
}

static int writes_in_time(void *arg)
{
    return px_with_timeout(10 * PX_MSEC, write_it, arg);
}

static int timed_out(void *arg)
{
    int *ends = arg;

    struct transfer r = {.fd = ends[0]};
    EXPECT_EQ(reads_in_time(&r), 0);
    EXPECT_EQ(r.result, PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    put(ends[1], 'x');
    EXPECT_EQ(reads_in_time(&r), 0);
    EXPECT_EQ(r.result, 1);

    size_t inside = fill(ends[1]);
    struct transfer w = {.fd = ends[1], .bytes = "y", .n = 1};
    EXPECT_EQ(writes_in_time(&w), 0);
    EXPECT_EQ(w.result, PX_ETIMEDOUT);
    EXPECT_EQ(drain(ends[0]), inside);
    EXPECT_EQ(writes_in_time(&w), 0);
    EXPECT_EQ(w.result, 1);
    EXPECT_EQ(take(ends[0]), 'y');
    return 0;
}

static void
timed_out_transfers_move_nothing_and_can_be_tried_again(void **state)
{
    (void)state;
    check_kinds(timed_out, 0, PROMPT);
}

static int cancelled(void *arg)
{
    int *ends = arg;
    size_t inside;
    px_fiber *reader, *writer;

    struct transfer r = {.fd = ends[0]};
    struct transfer w = {.fd = ends[1], .bytes = "y", .n = 1};
    reader = start_handle(read_it, &r);
    settle();
    EXPECT_EQ(px_cancel_and_await(reader, NULL), 0);
    EXPECT_EQ(r.result, PX_ECANCELED);
    inside = fill(ends[1]);
    writer = start_handle(write_it, &w);
    settle();
    EXPECT_EQ(px_cancel_and_await(writer, NULL), 0);
    EXPECT_EQ(w.result, PX_ECANCELED);
    EXPECT_EQ(drain(ends[0]), inside);
    return 0;
}

static void cancelled_transfers_move_nothing(void **state)
{
    (void)state;
    check_kinds(cancelled, 0, PROMPT);
}

static int one_of_three_gives_up(void *arg)
{
    int *ends = arg;

    struct transfer a = {.fd = ends[0], .n = 1}, b = a, c = a;
    start(read_it, &a);
    start(reads_in_time, &b);
    start(read_it, &c);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_EQ(b.result, PX_ETIMEDOUT);
    EXPECT(!a.done && !c.done);
    EXPECT_EQ(write(ends[1], "xy", 2), 2);
    settle();
    EXPECT_EQ(a.result, 1);
    EXPECT_EQ(c.result, 1);
    EXPECT_EQ(a.bytes[0] + c.bytes[0], 'x' + 'y');
    return 0;
}

static void a_reader_that_times_out_does_not_disturb_the_others(void **state)
{
    (void)state;
    check_kinds(one_of_three_gives_up, 0, PROMPT);
}

static int in_a_fired_scope(void *arg)
{
    int *ends = arg;
    char byte = 0;
    size_t done = 99;

    EXPECT_EQ(px_read(ends[0], &byte, 1), PX_ETIMEDOUT);
    EXPECT_EQ(px_write(ends[1], "y", 1), PX_ETIMEDOUT);
    EXPECT_EQ(px_write_all(ends[1], "y", 1, &done), PX_ETIMEDOUT);
    EXPECT_EQ(done, 0);
    EXPECT_EQ(px_write_all(ends[1], "", 0, NULL), PX_ETIMEDOUT);
    EXPECT_EQ(px_read(-1, &byte, 1), PX_ETIMEDOUT);
    EXPECT_EQ(px_write(-1, "y", 1), PX_ETIMEDOUT);
    EXPECT_EQ(px_accept(-1, NULL, NULL), PX_ETIMEDOUT);
    return 0;
}

static int fired_scope(void *arg)
{
    int *ends = arg;

    put(ends[1], 'x');
    EXPECT_EQ(px_with_timeout(0, in_a_fired_scope, ends), 0);
    EXPECT_EQ(take(ends[0]), 'x');
    EXPECT_EQ(drain(ends[0]), 0);
    return 0;
}

static void in_a_fired_scope_nothing_is_taken_though_it_is_there(void **state)
{
    (void)state;
    check_kinds(fired_scope, 0, PROMPT);
}

/* ---- other files, errors, off a fiber ---- */

/* Some files block even for nothing. */
static int nothing_from_a_quiet_file(void *arg)
{
    int ends[2], quiet = inotify_init1(IN_CLOEXEC);
    char byte = 0;

    (void)arg;
    open_pipe(ends, 0);
    EXPECT(quiet >= 0);
    EXPECT_EQ(px_read(quiet, &byte, 0), 0);
    EXPECT_EQ(px_read(ends[0], &byte, 0), 0);
    EXPECT_EQ(px_read(ends[1], &byte, 0), PX_EBADF);
    EXPECT_EQ(px_close(quiet), 0);
    px_close_both(ends);
    return 0;
}

static void reading_nothing_never_waits(void **state)
{
    (void)state;
    run_fibers(nothing_from_a_quiet_file, NULL);
    assert_log("");
}

static int plain_files(void *arg)
{
    FILE *file = tmpfile();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
    int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char bytes[8] = "unread";
    size_t done;

    (void)arg;
    EXPECT(file && null >= 0 && zero >= 0 && directory >= 0);
    if (!file)
        return 0;
    EXPECT_EQ(px_write_all(fileno(file), large_block(), 100000, &done), 0);
    EXPECT_EQ(done, 100000);
    EXPECT_EQ(px_write(fileno(file), "end", 3), 3);
    EXPECT_EQ(lseek(fileno(file), 100000, SEEK_SET), 100000);
    EXPECT_EQ(px_read(fileno(file), bytes, sizeof(bytes)), 3);
    EXPECT(memcmp(bytes, "end", 3) == 0);
    EXPECT_EQ(px_read(fileno(file), bytes, sizeof(bytes)), 0);
    EXPECT_EQ(px_read(null, bytes, sizeof(bytes)), 0);
    EXPECT_EQ(px_write(null, "x", 1), 1);
    EXPECT_EQ(px_read(zero, bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
    EXPECT_EQ(px_read(directory, bytes, sizeof(bytes)), -EISDIR);
    EXPECT_EQ(fclose(file), 0);
    EXPECT_EQ(px_close(null), 0);
    EXPECT_EQ(px_close(zero), 0);
    EXPECT_EQ(px_close(directory), 0);
    return 0;
}

static void files_and_devices_are_read_and_written_too(void **state)
{
    (void)state;
    check(plain_files);
}

static int bad_descriptors(void *arg)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int ends[2];
    char byte;
    size_t done = 99;

    (void)arg;
    open_pipe(ends, 0);
    EXPECT_EQ(px_read(ends[1], &byte, 1), PX_EBADF);
    EXPECT_EQ(px_write(ends[0], "x", 1), PX_EBADF);
    EXPECT_EQ(px_accept(ends[0], NULL, NULL), -ENOTSOCK);
    EXPECT_EQ(px_connect(ends[0], (struct sockaddr *)&address, sizeof(address)),
              -ENOTSOCK);
    px_close_both(ends);
    for (int i = 0; i < 2; i++) {
        int fd = i ? ends[0] : -1;

        EXPECT_EQ(px_read(fd, &byte, 1), PX_EBADF);
        EXPECT_EQ(px_write(fd, "x", 1), PX_EBADF);
        EXPECT_EQ(px_write_all(fd, "x", 1, &done), PX_EBADF);
        EXPECT_EQ(done, 0);
        EXPECT_EQ(px_accept(fd, NULL, NULL), PX_EBADF);
        EXPECT_EQ(px_connect(fd, (struct sockaddr *)&address, sizeof(address)),
                  PX_EBADF);
        EXPECT_EQ(px_nonblock(fd), PX_EBADF);
    }
    return 0;
}

static void a_descriptor_that_does_not_do_is_told_so(void **state)
{
    (void)state;
    check(bad_descriptors);
}

static void off_a_fiber_transfers_work_until_they_would_wait(void **state)
{
    (void)state;
    for (int i = 0; i < PROMPT; i++) {
        int ends[2];
        char byte = 0;
        size_t inside, done = 99;

        kinds[i].open(ends);
        assert_int_equal(px_read(ends[0], &byte, 1), PX_ENOFIBER);
        assert_int_equal(px_write(ends[1], "x", 1), 1);
        assert_int_equal(px_write_all(ends[1], "y", 1, &done), 0);
        assert_int_equal(done, 1);
        assert_int_equal(px_read(ends[0], &byte, 1), 1);
        assert_int_equal(byte, 'x');
        assert_int_equal(drain(ends[0]), 1);
        inside = fill(ends[1]);
        assert_int_equal(px_write(ends[1], "x", 1), PX_ENOFIBER);
        assert_int_equal(px_write_all(ends[1], "y", 1, &done), PX_ENOFIBER);
        assert_int_equal(done, 0);
        assert_int_equal(drain(ends[0]), inside);
        px_close_both(ends);
    }
    assert_log("");
}

static int sets_nonblocking(void *arg)
{
    int ends[2], flags;

    (void)arg;
    open_pipe(ends, 0);
    EXPECT_EQ(fcntl(ends[1], F_SETFL, O_APPEND), 0);
    flags = fcntl(ends[1], F_GETFL);
    EXPECT_EQ(px_nonblock(ends[1]), 0);
    EXPECT_EQ(fcntl(ends[1], F_GETFL), flags | O_NONBLOCK);
    EXPECT_EQ(px_nonblock(ends[1]), 0);
    EXPECT_EQ(fcntl(ends[1], F_GETFL), flags | O_NONBLOCK);
    close_both(ends);
    EXPECT_EQ(px_nonblock(ends[1]), PX_EBADF);
    return 0;
}

static void nonblock_sets_the_flag_and_keeps_the_others(void **state)
{
    (void)state;
    check(sets_nonblocking);
    assert_int_equal(px_nonblock(-1), PX_EBADF);
}

/* ---- one descriptor, many runs; many runs at once ---- */

static int ping_pong(void *arg)
{
    int *ends = arg;

    struct transfer t = {.fd = ends[0]};
    start(read_it, &t);
    settle();
    EXPECT(!t.done);
    EXPECT_EQ(px_write(ends[1], "x", 1), 1);
    settle();
    EXPECT_EQ(t.result, 1);
    return 0;
}

static void a_descriptor_is_used_in_one_run_after_the_other(void **state)
{
    int ends[2];

    (void)state;
    open_pair(ends, SOCK_NONBLOCK);
    for (int i = 0; i < 5; i++)
        run_fibers(ping_pong, ends);
    px_close_both(ends);
    assert_log("");
}

struct rally {
    int in, out, rounds;
    long long sum;
};

static int returns_each_ball(void *arg)
{
    struct rally *r = arg;
    unsigned char ball;

    for (int i = 0; i < r->rounds; i++) {
        if (px_read(r->in, &ball, 1) != 1)
            return -1;
        r->sum += ball;
        ball = (unsigned char)(ball + 1);
        if (px_write(r->out, &ball, 1) != 1)
            return -1;
    }
    return 0;
}

static int plays(void *arg)
{
    int there[2], back[2], values[2];
    px_fiber *players[2];
    long long *sum = arg;

    open_pipe(there, O_NONBLOCK);
    open_pipe(back, O_NONBLOCK);
    struct rally a = {there[0], back[1], scaled(5000, 200), 0};
    struct rally b = {back[0], there[1], a.rounds, 0};
    players[0] = start_handle(returns_each_ball, &a);
    players[1] = start_handle(returns_each_ball, &b);
    EXPECT_EQ(px_write(there[1], "\0", 1), 1);
    EXPECT_EQ(px_await_all(players, 2, values), 0);
    EXPECT(values[0] == 0 && values[1] == 0);
    px_close_both(there);
    px_close_both(back);
    *sum = a.sum + b.sum;
    return 0;
}

static long long expected_sum(void)
{
    long long sum = 0;

    for (int i = 0; i < 2 * scaled(5000, 200); i++)
        sum += i % 256;
    return sum;
}

static void two_fibers_answer_each_other(void **state)
{
    long long sum = 0;

    (void)state;
    run_fibers(plays, &sum);
    assert_int_equal(sum, expected_sum());
    assert_log("");
}

static void *plays_in_a_thread(void *arg)
{
    px_run_options options = {.clock = PX_CLOCK_VIRTUAL};

    return px_run_with(&options, plays, arg) == 0 ? arg : NULL;
}

static void loops_of_several_threads_keep_their_descriptors_apart(void **state)
{
    pthread_t threads[3];
    long long sums[3] = {0};

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, plays_in_a_thread, &sums[i]), 0);
    for (int i = 0; i < 3; i++) {
        void *result;

        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, &sums[i]);
        assert_int_equal(sums[i], expected_sum());
    }
    assert_log("");
}

/* ---- terminals ---- */

struct typing {
    int fd;
    int writes;
    int result;
};

/* It may be a device of records. */
static int writes_at_once(void *arg)
{
    char bytes[1000] = "";
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

    (void)arg;
    EXPECT(fd >= 0);
    EXPECT_EQ(px_write(fd, bytes, sizeof(bytes)), sizeof(bytes));
    EXPECT_EQ(px_close(fd), 0);
    return 0;
}

static void what_is_no_terminal_is_written_to_at_once(void **state)
{
    (void)state;
    check(writes_at_once);
}

static int writes_in_steps(void *arg)
{
    char bytes[16] = "";
    int slave, master = open_terminal(&slave, OPOST | ONLCR | TAB3);

    (void)arg;
    EXPECT_EQ(px_write(slave, "plain", 5), 5);
    EXPECT_EQ(px_write(slave, "\tab", 3), 1);
    EXPECT_EQ(px_write(slave, "ab\n", 3), 2);
    EXPECT_EQ(px_write_all(slave, "\n", 1, NULL), 0);
    for (size_t n = 0; n < 12;)
        n += (size_t)px_read(master, bytes + n, 12 - n);
    EXPECT(strcmp(bytes, "plain   ab\r\n") == 0);
    EXPECT_EQ(px_close(slave), 0);
    EXPECT_EQ(px_close(master), 0);
    return 0;
}

static void a_terminal_is_written_to_in_steps(void **state)
{
    (void)state;
    if (!has_terminals())
        skip();
    check(writes_in_steps);
}

static int writes_for_ever(void *arg)
{
    static const char *const text =
        "of tabs\t\t\t\t, lines\n\n\r\n and \b plain characters";
    struct typing *t = arg;
    size_t length = strlen(text);
    char bytes[1024];
    ssize_t put;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = text[(i + (size_t)t->writes * 7) % length];
    while ((put = px_write(t->fd, bytes, sizeof(bytes))) > 0)
        t->writes++;
    t->result = (int)put;
    return 0;
}

/* Tabs and line ends become several characters, which need room of their own:
 * in whatever place the terminal becomes full. */
static int fills_terminals(void *arg)
{
    static const tcflag_t outputs[] = {OPOST | ONLCR | TAB3, OPOST | OLCUC, 0};
    px_fiber *fiber;
    int slave, master;

    (void)arg;
    (void)alarm(60); /* a thread that is blocked would stay so */
    for (int i = 0; i < 60; i++) {
        master = open_terminal(&slave, outputs[i % 3]);
        struct typing t = {.fd = slave, .writes = i / 3};
        fiber = start_handle(writes_for_ever, &t);
        settle();
        EXPECT(t.writes > i / 3);
        EXPECT(!px_is_done(fiber)); /* it was full, at least for a moment */
        EXPECT_EQ(px_cancel_and_await(fiber, NULL), 0);
        EXPECT_EQ(t.result, PX_ECANCELED);
        EXPECT_EQ(px_close(slave), 0);
        EXPECT_EQ(close(master), 0);
    }
    (void)alarm(0);
    return 0;
}

static void a_full_terminal_parks_the_writer_and_not_the_thread(void **state)
{
    (void)state;
    if (!has_terminals())
        skip();
    check(fills_terminals);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(reading_nothing_never_waits),
    PX_TEST(a_read_takes_what_is_there_without_waiting),
    PX_TEST(a_read_waits_and_leaves_the_descriptor_as_it_is),
    PX_TEST(a_read_at_the_end_is_0),
    PX_TEST(what_was_sent_comes_before_the_end),
    PX_TEST(a_half_closed_peer_ends_the_reading_only),
    PX_TEST(of_two_readers_one_gets_the_byte_and_one_waits_on),
    PX_TEST(a_write_waits_until_there_is_room),
    PX_TEST(a_write_is_one_transfer_and_may_be_short),
    PX_TEST(a_long_stream_flows_between_two_fibers_of_one_loop),
    PX_TEST(a_descriptor_is_read_and_written_at_the_same_time),
    PX_TEST(write_all_of_nothing_is_0_and_done_may_be_NULL),
    PX_TEST(write_all_cut_short_says_how_much_went_out),
    PX_TEST(write_all_to_a_peer_that_goes_is_EPIPE_and_the_count),
    PX_TEST(a_message_is_sent_whole),
    PX_TEST(R115_a_write_to_a_closed_socket_raises_no_SIGPIPE),
    PX_TEST(R115_with_SIGPIPE_at_its_default_the_process_lives),
    PX_TEST(a_pipe_raises_it_as_write_does_unless_it_is_ignored),
    PX_TEST(timed_out_transfers_move_nothing_and_can_be_tried_again),
    PX_TEST(cancelled_transfers_move_nothing),
    PX_TEST(a_reader_that_times_out_does_not_disturb_the_others),
    PX_TEST(in_a_fired_scope_nothing_is_taken_though_it_is_there),
    PX_TEST(files_and_devices_are_read_and_written_too),
    PX_TEST(a_descriptor_that_does_not_do_is_told_so),
    PX_TEST(off_a_fiber_transfers_work_until_they_would_wait),
    PX_TEST(nonblock_sets_the_flag_and_keeps_the_others),
    PX_TEST(a_descriptor_is_used_in_one_run_after_the_other),
    PX_TEST(two_fibers_answer_each_other),
    PX_TEST(loops_of_several_threads_keep_their_descriptors_apart),
    PX_TEST(what_is_no_terminal_is_written_to_at_once),
    PX_TEST(a_terminal_is_written_to_in_steps),
    PX_TEST(a_full_terminal_parks_the_writer_and_not_the_thread),
};

PX_TEST_MAIN(tests)
