/* SPDX-License-Identifier: MIT */
/*
 * soak_fds.c - descriptors that come and go a hundred thousand times under the
 * same few numbers, and too few of them.
 *
 * Each pair carries bytes that no other one does: a fiber that was woken for a
 * file that had the number before would read something else, or nothing.
 */
#include <errno.h>
#include <signal.h>

#include "soak.h"

#include "px_test_io.h"

enum { PAIRS = 100000 };

static void both_ends(int ends[2])
{
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                         ends),
              0);
}

struct reading {
    int fd;
    unsigned got;
    ssize_t result;
};

static int reads_a_number(void *arg)
{
    struct reading *r = arg;

    r->result = px_read(r->fd, &r->got, sizeof(r->got));
    return 0;
}

static int waits_until_readable(void *arg)
{
    struct reading *r = arg;

    r->result = px_wait_fd(r->fd, PX_READABLE);
    return 0;
}

static void send_number(int fd, unsigned number)
{
    EXPECT_EQ(write(fd, &number, sizeof(number)), sizeof(number));
}

/* -- one number, many files -- */

/* Woken by the same poll as the reader, and before it: puts another file in the
 * place of what was to be read. */
struct replacing {
    struct reading *reading;
    int trigger[2];
    int ends[2];
    bool came_late;
};

static int replaces_it(void *arg)
{
    struct replacing *p = arg;

    EXPECT_EQ(px_wait_fd(p->trigger[0], PX_READABLE), PX_READABLE);
    p->came_late = p->reading->result != 0;
    EXPECT_EQ(px_close(p->reading->fd), 0);
    both_ends(p->ends);
    EXPECT_EQ(p->ends[0], p->reading->fd);
    send_number(p->ends[1], 4711);
    return 0;
}

static int replaced; /* before its reader ran */

static void one_replaced(struct reading *r, int other_end, unsigned i)
{
    struct replacing p = {.reading = r};
    px_fiber *fibers[2];

    both_ends(p.trigger);
    fibers[0] = start_handle(reads_a_number, r);
    fibers[1] = start_handle(replaces_it, &p);
    EXPECT_EQ(px_yield(), 0); /* what a poll has to tell already is told */
    send_number(p.trigger[1], 0);
    send_number(other_end, i);
    EXPECT_EQ(px_await_all(fibers, 2, NULL), 0);
    EXPECT_EQ(r->result, p.came_late ? (int)sizeof(r->got) : PX_ECLOSED);
    EXPECT_EQ(r->got, p.came_late ? i : 0);
    replaced += !p.came_late;
    EXPECT_EQ(px_close(other_end), 0);
    px_close_both(p.ends);
    px_close_both(p.trigger);
}

/* By turns: read from it; wait for it, and close(2); close it while waited for;
 * hang up with bytes in it; a copy that goes on when the first is closed; and
 * replace it after a poll has woken its reader. */
static void one_pair(unsigned i, int expected)
{
    int ends[2], copy;
    struct reading r = {0, 0, 0}, second = {0, 0, 0};
    px_fiber *fiber, *other;

    both_ends(ends);
    EXPECT_EQ(ends[0], expected);
    r.fd = ends[0];
    switch (i % 6) {
    case 0:
        fiber = start_handle(reads_a_number, &r);
        send_number(ends[1], i);
        EXPECT_EQ(px_await(fiber, NULL), 0);
        EXPECT_EQ(r.result, sizeof(r.got));
        EXPECT_EQ(r.got, i);
        px_close_both(ends);
        break;
    case 1:
        fiber = start_handle(waits_until_readable, &r);
        send_number(ends[1], i);
        EXPECT_EQ(px_await(fiber, NULL), 0);
        EXPECT_EQ(r.result, PX_READABLE);
        close_both(ends);
        break;
    case 2:
        fiber = start_handle(reads_a_number, &r);
        second.fd = ends[0];
        other = start_handle(waits_until_readable, &second);
        send_number(ends[1], i); /* has come, but nobody was told yet */
        px_close_both(ends);
        EXPECT_EQ(px_await(fiber, NULL), 0);
        EXPECT_EQ(px_await(other, NULL), 0);
        EXPECT_EQ(r.result, PX_ECLOSED);
        EXPECT_EQ(second.result, PX_ECLOSED);
        break;
    case 3:
        fiber = start_handle(waits_until_readable, &r);
        send_number(ends[1], i);
        EXPECT_EQ(px_close(ends[1]), 0);
        EXPECT_EQ(px_await(fiber, NULL), 0);
        EXPECT_EQ(r.result, PX_READABLE);
        EXPECT_EQ(reads_a_number(&r), 0);
        EXPECT_EQ(r.result, sizeof(r.got));
        EXPECT_EQ(r.got, i);
        EXPECT_EQ(reads_a_number(&r), 0);
        EXPECT_EQ(r.result, 0); /* the end */
        EXPECT_EQ(px_close(ends[0]), 0);
        break;
    case 4:
        one_replaced(&r, ends[1], i);
        break;
    default:
        copy = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
        second.fd = copy;
        fiber = start_handle(reads_a_number, &r);
        other = start_handle(reads_a_number, &second);
        EXPECT_EQ(px_close(ends[0]), 0);
        EXPECT_EQ(px_await(fiber, NULL), 0);
        EXPECT_EQ(r.result, PX_ECLOSED);
        send_number(ends[1], i);
        EXPECT_EQ(px_await(other, NULL), 0);
        EXPECT_EQ(second.result, sizeof(second.got));
        EXPECT_EQ(second.got, i);
        EXPECT_EQ(px_close(copy), 0);
        EXPECT_EQ(px_close(ends[1]), 0);
        break;
    }
}

static int one_after_the_other(void *arg)
{
    struct footprint before = {0, 0};
    int64_t n = soak(PAIRS);
    int ends[2];

    (void)arg;
    /* The loop opens what it needs at the first wait. */
    both_ends(ends);
    EXPECT_EQ(px_with_timeout(1, waits_until_readable,
                              &(struct reading){ends[0], 0, 0}),
              0);
    close_both(ends);
    both_ends(ends);
    close_both(ends);
    for (int64_t i = 0; i < n; i++) {
        one_pair((unsigned)i, ends[0]);
        if (i == n / 10)
            before = footprint();
    }
    expect_as_flat_as(before);
    EXPECT(replaced > 0);
    return 0;
}

static void a_number_used_again_is_another_file(void **state)
{
    (void)state;
    check(one_after_the_other);
}

/* -- many at once -- */

enum { AT_ONCE = 100 };

/* They are closed in another order than they were opened in, and what comes in
 * their places is waited for at once. */
static int many_at_once(void *arg)
{
    static struct {
        int ends[2];
        struct reading r;
        px_fiber *fiber;
    } all[AT_ONCE];
    uint64_t numbers = 4;
    int64_t n = soak(PAIRS);

    (void)arg;
    for (int64_t i = 0; i < n + AT_ONCE; i++) {
        uint64_t place = i < AT_ONCE ? (uint64_t)i
                         : i < n     ? random_below(&numbers, AT_ONCE)
                                     : (uint64_t)(i - n);

        if (all[place].fiber) {
            bool closes = random_below(&numbers, 2) == 0;

            if (!closes)
                send_number(all[place].ends[1], (unsigned)place);
            else
                px_close_both(all[place].ends);
            EXPECT_EQ(px_await(all[place].fiber, NULL), 0);
            EXPECT_EQ(all[place].r.result,
                      closes ? PX_ECLOSED : (int)sizeof(unsigned));
            EXPECT_EQ(all[place].r.got, closes ? 0 : place);
            if (!closes)
                px_close_both(all[place].ends);
        }
        all[place].fiber = NULL;
        if (i < n) {
            both_ends(all[place].ends);
            all[place].r = (struct reading){all[place].ends[0], 0, 0};
            all[place].fiber = start_handle(reads_a_number, &all[place].r);
        }
    }
    return 0;
}

static void nobody_is_woken_for_another_file(void **state)
{
    (void)state;
    check(many_at_once);
}

/* -- too few -- */

static struct {
    int ends[2];
    int started; /* what the run came to, */
    int waited;  /* and in it a wait, */
    int signal;  /* a wait for a signal, which needs one more, */
    int offload; /* and a call on the pool */
} few;

static int gives_seven(void *arg)
{
    (void)arg;
    return 7;
}

static int sends_after_a_turn(void *arg)
{
    EXPECT_EQ(px_yield(), 0);
    send_number(few.ends[1], 1);
    (void)arg;
    return 0;
}

static int waits_for_a_signal(void *arg)
{
    return px_wait_signal(arg);
}

static int makes_do(void *arg)
{
    struct reading r = {few.ends[0], 0, 0};
    px_fiber *sender = start_handle(sends_after_a_turn, NULL);
    sigset_t set;

    (void)arg;
    few.waited = px_wait_fd(few.ends[0], PX_READABLE);
    EXPECT_EQ(px_await(sender, NULL), 0);
    EXPECT_EQ(reads_a_number(&r), 0);
    EXPECT_EQ(r.result, sizeof(r.got));
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR2);
    few.signal = px_with_timeout(PX_MSEC, waits_for_a_signal, &set);
    few.offload = px_offload(gives_seven, NULL);
    return 0;
}

static bool is_no_descriptor(int code)
{
    return code == -EMFILE || code == PX_ENOMEM;
}

/* Every call works or says why not; with some more, all of it works, and what
 * it took is given back. */
static void too_few_descriptors_are_told(void **state)
{
    int descriptors = open_descriptors();
    int worked = 0;

    (void)state;
    open_pipe(few.ends, O_NONBLOCK);
    for (int64_t round = 0; round < soak(100); round++) {
        for (int more = 0; more <= 5; more++) {
            struct rlimit old = no_more_descriptors();
            struct rlimit limit = old;
            px_run_options options = {.stack_size = 0};

            EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
            limit.rlim_cur += (rlim_t)more;
            EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
            few.started = run_fibers_with(options, 0, makes_do, NULL);
            EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
            if (round == 0)
                print_message("    %d more: run %d, wait %d, signal %d, "
                              "offload %d\n",
                              more, few.started, few.waited, few.signal,
                              few.offload);
            EXPECT(few.started == 0 || is_no_descriptor(few.started));
            if (few.started != 0)
                continue;
            EXPECT(few.waited == PX_READABLE || is_no_descriptor(few.waited));
            EXPECT(few.signal == PX_ETIMEDOUT || is_no_descriptor(few.signal));
            EXPECT(few.offload == 7 || is_no_descriptor(few.offload));
            worked += few.waited == PX_READABLE && few.signal == PX_ETIMEDOUT &&
                      few.offload == 7;
            if (more == 0)
                EXPECT(few.offload != 7 || few.signal != PX_ETIMEDOUT);
            if (more == 5)
                EXPECT(worked > 0);
        }
    }
    close_both(few.ends);
    assert_int_equal(open_descriptors(), descriptors);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_number_used_again_is_another_file),
    PX_TEST(nobody_is_woken_for_another_file),
    PX_TEST(too_few_descriptors_are_told),
};

PX_TEST_MAIN(tests)
