/* SPDX-License-Identifier: MIT */
/*
 * test_cases_io.c - what went wrong with descriptors, signals, threads and
 * deadlock reports for the users of libraries like this one, as scenarios.
 *
 * The numbers are those of the collection of field cases. What needs the real
 * clock to show, a child, or a unit's own setting is elsewhere: the table in
 * README.md says where.
 */
#define _GNU_SOURCE 1

#include "px_test_io.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>

/* ---- another thread wakes a fiber ---- */

struct foreign {
    px_loop *loop;
    pthread_t thread;
    sem_t turn; /* one per turn of the fiber's */
    int turns;
    px_sem sem;
    px_scope scope;
    bool failed;
};

static int cancels_the_scope(void *arg)
{
    struct foreign *f = arg;

    return px_scope_cancel(&f->scope);
}

static int ups_the_semaphore(void *arg)
{
    struct foreign *f = arg;

    return px_sem_up(&f->sem);
}

/* Post `fn` once a turn, after a delay that differs from turn to turn. */
static void post_each_turn(struct foreign *f, px_fn fn)
{
    unsigned random = 1;

    for (int i = 0; i < f->turns; i++) {
        while (sem_wait(&f->turn) != 0)
            ;
        random = random * 1103515245u + 12345u;
        for (volatile unsigned spin = random >> 20; spin > 0; spin--)
            ;
        if (px_post(f->loop, fn, f) != 0)
            f->failed = true;
    }
    (void)px_loop_unhold(f->loop);
}

static void *cancels_each_turn(void *arg)
{
    post_each_turn(arg, cancels_the_scope);
    return NULL;
}

static void *ups_each_turn(void *arg)
{
    post_each_turn(arg, ups_the_semaphore);
    return NULL;
}

static void begin_turns(struct foreign *f, void *(*thread)(void *))
{
    f->loop = px_current_loop();
    EXPECT_EQ(sem_init(&f->turn, 0, 0), 0);
    EXPECT_EQ(px_loop_hold(f->loop), 0);
    EXPECT_EQ(pthread_create(&f->thread, NULL, thread, f), 0);
}

static void end_turns(struct foreign *f)
{
    EXPECT_EQ(pthread_join(f->thread, NULL), 0);
    EXPECT(!f->failed);
    EXPECT_EQ(sem_destroy(&f->turn), 0);
}

static int cancelled_from_outside(void *arg)
{
    struct foreign f = {.turns = scaled(20000, 1000), .sem = PX_SEM_INIT(0)};

    (void)arg;
    begin_turns(&f, cancels_each_turn);
    for (int i = 0; i < f.turns; i++) {
        EXPECT_EQ(px_scope_enter(&f.scope, PX_FOREVER), 0);
        EXPECT_EQ(sem_post(&f.turn), 0);
        EXPECT_EQ(px_sem_down(&f.sem), PX_ECANCELED);
        EXPECT_EQ(px_scope_leave(&f.scope), PX_ECANCELED);
    }
    EXPECT_EQ(px_sem_waiters(&f.sem), 0);
    end_turns(&f);
    return 0;
}

static void R14_a_cancel_from_another_thread_is_never_lost(void **state)
{
    (void)state;
    check(cancelled_from_outside);
}

static int released_from_outside(void *arg)
{
    struct foreign f = {.turns = scaled(20000, 1000), .sem = PX_SEM_INIT(0)};

    (void)arg;
    begin_turns(&f, ups_each_turn);
    for (int i = 0; i < f.turns; i++) {
        EXPECT_EQ(sem_post(&f.turn), 0);
        EXPECT_EQ(px_sem_down(&f.sem), 0);
    }
    EXPECT_EQ(px_sem_count(&f.sem), 0);
    end_turns(&f);
    return 0;
}

static void R53_a_permit_from_another_thread_wakes_an_idle_loop(void **state)
{
    (void)state;
    check(released_from_outside);
}

static int stops(void *arg)
{
    (void)arg;
    return px_stop();
}

static void *stops_after_20ms(void *arg)
{
    struct foreign *f = arg;

    pause_ms(20);
    (void)px_post(f->loop, stops, NULL);
    (void)px_loop_unhold(f->loop);
    return NULL;
}

static int stopped_from_outside(void *arg)
{
    struct foreign f = {.sem = PX_SEM_INIT(0)};

    (void)arg;
    begin_turns(&f, stops_after_20ms);
    EXPECT_EQ(px_sem_down(&f.sem), PX_ECANCELED);
    end_turns(&f);
    return 0;
}

static void R73_an_idle_run_is_stopped_from_another_thread(void **state)
{
    (void)state;
    check(stopped_from_outside);
}

/* ---- descriptors ---- */

static int closed_and_reused(void *arg)
{
    int old[2], new[2];

    (void)arg;
    open_pipe(old, 0);
    struct waiting a = {.fd = old[0], .events = PX_READABLE};
    start(wait_for_it, &a);
    settle();
    EXPECT_EQ(px_close(old[0]), 0);
    open_pipe(new, 0);
    EXPECT_EQ(new[0], old[0]);
    struct waiting c = {.fd = new[0], .events = PX_READABLE};
    start(wait_for_it, &c);
    settle();
    EXPECT_EQ(a.result, PX_ECLOSED);
    EXPECT(!c.done);
    put(new[1], 'x');
    settle();
    EXPECT_EQ(c.result, PX_READABLE);
    EXPECT_EQ(a.result, PX_ECLOSED);
    EXPECT_EQ(px_close(old[1]), 0);
    px_close_both(new);
    return 0;
}

static void R105_a_descriptor_closed_while_waited_on_and_reused(void **state)
{
    (void)state;
    check(closed_and_reused);
}

static int cancelled_on_a_closed_one(void *arg)
{
    int ends[2];

    (void)arg;
    open_pair(ends, 0);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    px_fiber *fiber = start_handle(wait_for_it, &w);
    EXPECT_EQ(close(ends[0]), 0);
    EXPECT_EQ(px_cancel(fiber), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(w.result, PX_ECANCELED);
    EXPECT_EQ(close(ends[1]), 0);

    /* The loop is alive. */
    open_pipe(ends, 0);
    w = (struct waiting){.fd = ends[0], .events = PX_READABLE};
    start(wait_for_it, &w);
    put(ends[1], 'x');
    settle();
    EXPECT_EQ(w.result, PX_READABLE);
    close_both(ends);
    return 0;
}

static void R108_a_wait_on_a_closed_socket_is_cancelled(void **state)
{
    (void)state;
    check(cancelled_on_a_closed_one);
}

static int waited_for_twice(void *arg)
{
    int ends[2];

    (void)arg;
    open_pair(ends, 0);
    struct waiting a = {.fd = ends[0], .events = PX_READABLE}, b = a, d = a;
    struct waiting c = {.fd = ends[0], .events = PX_WRITABLE};
    px_fiber *cancelled;
    start(wait_for_it, &a);
    start(gives_up_after_10ms, &b);
    cancelled = start_handle(wait_for_it, &d);
    start(wait_for_it, &c);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT_EQ(c.result, PX_WRITABLE);
    EXPECT_EQ(b.result, PX_ETIMEDOUT);
    EXPECT_EQ(px_cancel_and_await(cancelled, NULL), 0);
    EXPECT_EQ(d.result, PX_ECANCELED);
    EXPECT(!a.done);
    put(ends[1], 'x');
    settle();
    EXPECT_EQ(a.result, PX_READABLE);
    close_both(ends);
    return 0;
}

static void R109_several_wait_for_one_descriptor(void **state)
{
    (void)state;
    check(waited_for_twice);
}

static int data_and_hang_up(void *arg)
{
    int ends[2];
    char bytes[8];

    (void)arg;
    open_pair(ends, SOCK_NONBLOCK);
    struct transfer t = {.fd = ends[0], .n = 1};
    start(read_it, &t);
    settle();
    EXPECT_EQ(px_write(ends[1], "ab", 2), 2);
    EXPECT_EQ(px_close(ends[1]), 0);
    settle();
    EXPECT_EQ(t.result, 1);
    EXPECT_EQ(t.bytes[0], 'a');
    EXPECT_EQ(px_read(ends[0], bytes, sizeof(bytes)), 1);
    EXPECT_EQ(bytes[0], 'b');
    EXPECT_EQ(px_read(ends[0], bytes, sizeof(bytes)), 0);
    EXPECT_EQ(px_close(ends[0]), 0);
    return 0;
}

static void R110_data_that_came_with_the_hang_up_are_read_first(void **state)
{
    (void)state;
    check(data_and_hang_up);
}

/* The kernel says that it hung up or failed, and neither that there is room nor
 * that there is something to read. */
static int a_writer_alone(void *arg)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    struct sockaddr_in address;
    int listener = listen_tcp(&address, 5, 0);
    int client = tcp_socket(0), served;
    struct waiting w = {.fd = client, .events = PX_WRITABLE};
    px_fiber *fiber;

    (void)arg;
    EXPECT_EQ(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
    served = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    EXPECT(served >= 0);
    do {
        (void)fill(client);
        pause_ms(2); /* what went through by then has left room */
    } while (has_room(client));
    fiber = start_handle(wait_for_it, &w);
    EXPECT(!w.done);
    EXPECT_EQ(
        setsockopt(served, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)),
        0);
    EXPECT_EQ(close(served), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(w.result, PX_WRITABLE);
    EXPECT_EQ(px_write(client, "x", 1), -ECONNRESET);
    EXPECT_EQ(px_close(client), 0);
    EXPECT_EQ(px_close(listener), 0);
    return 0;
}

static void R110_a_reset_wakes_one_that_only_waits_to_write(void **state)
{
    (void)state;
    check_real(a_writer_alone);
}

static int waits_for_a_second(void *arg)
{
    return px_with_timeout(PX_SEC, wait_for_it, arg);
}

static int half_closed(void *arg)
{
    int ends[2];
    char byte;

    (void)arg;
    open_pair(ends, SOCK_NONBLOCK);
    struct waiting w = {.fd = ends[0], .events = PX_READABLE};
    px_fiber *fiber = start_handle(waits_for_a_second, &w);
    EXPECT_EQ(shutdown(ends[1], SHUT_WR), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(w.result, PX_READABLE);
    EXPECT_EQ(px_now(), 0);
    EXPECT_EQ(px_read(ends[0], &byte, 1), 0);
    px_close_both(ends);
    return 0;
}

static void R112_a_half_closed_peer_is_seen_at_once(void **state)
{
    (void)state;
    check(half_closed);
}

struct server {
    int listener, tries, accepted;
};

static int accepts_at_a_pace(void *arg)
{
    struct server *s = arg;

    for (;;) {
        s->tries++;
        s->accepted = px_accept(s->listener, NULL, NULL);
        if (s->accepted != -EMFILE)
            return 0;
        EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    }
}

static int out_of_descriptors(void *arg)
{
    struct sockaddr_un address;
    socklen_t size;
    struct server s = {.listener = listen_unix(&address, &size, 5, 0)};
    int client = unix_socket();
    struct rlimit old;

    (void)arg;
    start(accepts_at_a_pace, &s);
    settle();
    old = no_more_descriptors();
    EXPECT_EQ(connect(client, (struct sockaddr *)&address, size), 0);
    EXPECT_EQ(px_sleep(PX_SEC), 0);
    EXPECT_EQ(s.accepted, -EMFILE);
    EXPECT(s.tries >= 95 && s.tries <= 102);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
    EXPECT_EQ(px_sleep(10 * PX_MSEC), 0);
    settle();
    EXPECT(s.accepted >= 0);
    EXPECT_EQ(px_close(s.accepted), 0);
    EXPECT_EQ(px_close(s.listener), 0);
    EXPECT_EQ(px_close(client), 0);
    return 0;
}

static void R113_accept_at_the_limit_is_paced_by_the_caller(void **state)
{
    (void)state;
    skip_under_valgrind();
    check(out_of_descriptors);
}

static int copies_input_to_output(void *arg)
{
    char bytes[64];
    ssize_t got;
    int *copied = arg;

    while ((got = px_read(0, bytes, sizeof(bytes))) > 0) {
        if (px_wait_fd(1, PX_WRITABLE) != PX_WRITABLE ||
            px_write_all(1, bytes, (size_t)got, NULL) != 0)
            return -1;
        *copied += (int)got;
    }
    return (int)got;
}

static void redirected(void *arg)
{
    px_run_options options = {.clock = PX_CLOCK_VIRTUAL};
    int *from_to = arg, copied = 0;

    if (dup2(from_to[0], 0) != 0 || dup2(from_to[1], 1) != 1)
        _exit(1);
    if (px_run_with(&options, copies_input_to_output, &copied) != 0)
        _exit(2);
    if (copied != 11)
        _exit(3);
}

static void R114_input_and_output_may_be_files_and_devices(void **state)
{
    char output[64];
    FILE *file = tmpfile();
    int from_to[2] = {file ? fileno(file) : -1,
                      open("/dev/null", O_WRONLY | O_CLOEXEC)};

    (void)state;
    assert_non_null(file);
    assert_int_equal(write(from_to[0], "eleven byte", 11), 11);
    assert_int_equal(lseek(from_to[0], 0, SEEK_SET), 0);
    assert_int_equal(in_child(redirected, from_to, output, sizeof(output)), 0);
    assert_int_equal(close(from_to[1]), 0);
    assert_int_equal(fclose(file), 0);
}

static void R114_input_shared_with_a_shell_stays_as_it_was(void **state)
{
    char output[64];
    int in[2], out[2], flags[2], from_to[2];

    (void)state;
    open_pipe(in, 0);
    open_pipe(out, 0);
    assert_int_equal(write(in[1], "eleven byte", 11), 11);
    assert_int_equal(close(in[1]), 0);
    from_to[0] = in[0];
    from_to[1] = out[1];
    flags[0] = fcntl(in[0], F_GETFL);
    flags[1] = fcntl(out[1], F_GETFL);
    assert_int_equal(in_child(redirected, from_to, output, sizeof(output)), 0);
    assert_int_equal(fcntl(in[0], F_GETFL), flags[0]);
    assert_int_equal(fcntl(out[1], F_GETFL), flags[1]);
    assert_int_equal(drain(out[0]), 11);
    assert_int_equal(close(in[0]), 0);
    close_both(out);
}

/* ---- a descriptor, a permit or a timeout, whichever comes first ---- */

struct first {
    px_group *group;
    px_sem *sem;
    int fd;
    char winner;
};

static int the_permit(void *arg)
{
    struct first *f = arg;
    int code = px_sem_down(f->sem);

    if (code == 0) {
        f->winner = 'p';
        (void)px_group_cancel(f->group);
    }
    return code;
}

static int the_descriptor(void *arg)
{
    struct first *f = arg;
    int events = px_wait_fd(f->fd, PX_READABLE);

    if (events > 0) {
        f->winner = 'd';
        (void)px_group_cancel(f->group);
    }
    return events;
}

static int the_timeout(void *arg)
{
    struct first *f = arg;
    int code = px_sleep(100 * PX_MSEC);

    if (code == 0) {
        f->winner = 't';
        (void)px_group_cancel(f->group);
    }
    return code;
}

static char whichever_first(px_sem *sem, int fd)
{
    px_group group;
    struct first f = {.group = &group, .sem = sem, .fd = fd};
    int code;

    EXPECT_EQ(px_group_open(&group), 0);
    code = px_group_spawn(&group, the_permit, &f);
    if (code == 0)
        code = px_group_spawn(&group, the_descriptor, &f);
    if (code == 0)
        code = px_group_spawn(&group, the_timeout, &f);
    EXPECT(code == 0 || code == PX_ECANCELED);
    EXPECT_EQ(px_group_wait(&group), 0);
    EXPECT_EQ(px_sem_waiters(sem), 0);
    return f.winner;
}

static int first_of_three(void *arg)
{
    px_sem sem = PX_SEM_INIT(1);
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    put(ends[1], 'x');
    EXPECT_EQ(whichever_first(&sem, ends[0]), 'p'); /* both are ready */
    EXPECT_EQ(px_sem_count(&sem), 0);
    EXPECT_EQ(px_now(), 0);
    EXPECT_EQ(whichever_first(&sem, ends[0]), 'd');
    EXPECT_EQ(px_now(), 0);
    EXPECT_EQ(take(ends[0]), 'x');
    EXPECT_EQ(whichever_first(&sem, ends[0]), 't');
    EXPECT_EQ(px_now(), 100 * PX_MSEC);

    /* Nothing was left behind by those that lost. */
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_count(&sem), 1);
    close_both(ends);
    return 0;
}

static void R117_the_first_of_three_waits_ends_the_others(void **state)
{
    (void)state;
    check(first_of_three);
}

/* ---- deadlocks, and what is none ---- */

static void counts(void *ctx)
{
    ++*(int *)ctx;
}

/* Run the body and return how often a deadlock was reported. */
static int reports_of(px_fn body, void *arg, int expected)
{
    int reports = 0;
    px_run_options options = {.on_deadlock = counts, .ctx = &reports};

    assert_int_equal(run_fibers_with(options, 0, body, arg), expected);
    assert_log("");
    return reports;
}

static void waits_for_nothing(void *arg)
{
    px_run_options options = {.clock = PX_CLOCK_VIRTUAL};
    px_sem never = PX_SEM_INIT(0);
    px_fn body = *(px_fn *)arg;

    if (px_run_with(&options, body, &never) != PX_ESTALLED)
        _exit(1);
    _exit(3);
}

static int downs(void *arg)
{
    return px_sem_down(arg);
}

static void R122_a_deadlock_is_reported_and_not_an_exit(void **state)
{
    char output[4096];
    px_fn body = downs;
    int status = in_child(waits_for_nothing, &body, output, sizeof(output));

    (void)state;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    assert_non_null(strstr(output, "fiber 0"));
    assert_non_null(strstr(output, "semaphore"));
}

static void *puts_after_20ms(void *arg)
{
    pause_ms(20);
    put(*(int *)arg, 'x');
    return NULL;
}

static int only_a_descriptor(void *arg)
{
    pthread_t thread;
    int ends[2];

    (void)arg;
    open_pipe(ends, 0);
    EXPECT_EQ(pthread_create(&thread, NULL, puts_after_20ms, &ends[1]), 0);
    EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_READABLE);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    close_both(ends);
    return 0;
}

static int sleeps_for_ever(void *arg)
{
    (void)arg;
    return px_sleep(PX_FOREVER);
}

static int only_a_deadline(void *arg)
{
    EXPECT_EQ(px_with_timeout(PX_SEC, sleeps_for_ever, arg), PX_ETIMEDOUT);
    EXPECT_EQ(px_now(), PX_SEC);
    return 0;
}

static int naps(void *arg)
{
    (void)arg;
    pause_ms(20);
    return 0;
}

static int only_an_offloaded_call(void *arg)
{
    return px_offload(naps, arg);
}

static int ups(void *arg)
{
    return px_sem_up(arg);
}

static void *ups_after_20ms(void *arg)
{
    struct foreign *f = arg;

    pause_ms(20);
    (void)px_post(f->loop, ups, &f->sem);
    (void)px_loop_unhold(f->loop);
    return NULL;
}

static int only_a_hold(void *arg)
{
    struct foreign f = {.sem = PX_SEM_INIT(0)};

    (void)arg;
    begin_turns(&f, ups_after_20ms);
    EXPECT_EQ(px_sem_down(&f.sem), 0);
    end_turns(&f);
    return 0;
}

static void R123_whatever_can_still_wake_is_no_deadlock(void **state)
{
    (void)state;
    assert_int_equal(reports_of(only_a_descriptor, NULL, 0), 0);
    assert_int_equal(reports_of(only_a_deadline, NULL, 0), 0);
    assert_int_equal(reports_of(only_an_offloaded_call, NULL, 0), 0);
    assert_int_equal(reports_of(only_a_hold, NULL, 0), 0);
    assert_int_equal(reports_of(sleeps_for_ever, NULL, PX_ESTALLED), 1);
}

static int one_stays_parked(void *arg)
{
    start(downs, arg);
    return 0;
}

static void R124_a_run_with_a_fiber_that_stays_parked_says_so(void **state)
{
    px_sem never = PX_SEM_INIT(0);

    (void)state;
    assert_int_equal(reports_of(one_stays_parked, &never, PX_ESTALLED), 1);
    assert_int_equal(px_sem_waiters(&never), 0);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(R14_a_cancel_from_another_thread_is_never_lost),
    PX_TEST(R53_a_permit_from_another_thread_wakes_an_idle_loop),
    PX_TEST(R73_an_idle_run_is_stopped_from_another_thread),
    PX_TEST(R105_a_descriptor_closed_while_waited_on_and_reused),
    PX_TEST(R108_a_wait_on_a_closed_socket_is_cancelled),
    PX_TEST(R109_several_wait_for_one_descriptor),
    PX_TEST(R110_data_that_came_with_the_hang_up_are_read_first),
    PX_TEST(R110_a_reset_wakes_one_that_only_waits_to_write),
    PX_TEST(R112_a_half_closed_peer_is_seen_at_once),
    PX_TEST(R113_accept_at_the_limit_is_paced_by_the_caller),
    PX_TEST(R114_input_and_output_may_be_files_and_devices),
    PX_TEST(R114_input_shared_with_a_shell_stays_as_it_was),
    PX_TEST(R117_the_first_of_three_waits_ends_the_others),
    PX_TEST(R122_a_deadlock_is_reported_and_not_an_exit),
    PX_TEST(R123_whatever_can_still_wake_is_no_deadlock),
    PX_TEST(R124_a_run_with_a_fiber_that_stays_parked_says_so),
};

PX_TEST_MAIN(tests)
