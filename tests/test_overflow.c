/* SPDX-License-Identifier: MIT */
/*
 * test_overflow.c - a stack that overflows ends the process, and says whose it
 * was. Each end is that of a child process, whose standard error is read.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/px_scale.h"
#include "support/px_test.h"

static char output[1 << 14];

/* What a program begins with: no core here, and not the handlers of the test
 * library, which would go on with the tests in the child. */
static void begin_anew(void)
{
    const struct rlimit none = {0, 0};

    (void)setrlimit(RLIMIT_CORE, &none);
    (void)signal(SIGSEGV, SIG_DFL);
    (void)signal(SIGBUS, SIG_DFL);
}

struct child {
    void (*fn)(void *);
    void *arg;
};

static void run_child(void *arg)
{
    const struct child *child = arg;

    begin_anew();
    child->fn(child->arg);
}

static int status_of(void (*fn)(void *), void *arg)
{
    struct child child = {fn, arg};
    int status = in_child(run_child, &child, output, sizeof(output));

    forget_emulator(output);
    return status;
}

static void expect_signal(int number, void (*fn)(void *), void *arg)
{
    int status = status_of(fn, arg);

    if (!WIFSIGNALED(status) || WTERMSIG(status) != number)
        print_message("status %x, stderr: %s\n", (unsigned)status, output);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), number);
}

static void expect_exit(int value, void (*fn)(void *), void *arg)
{
    int status = status_of(fn, arg);

    if (!WIFEXITED(status) || WEXITSTATUS(status) != value)
        print_message("status %x, stderr: %s\n", (unsigned)status, output);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), value);
}

/* One line names the fiber, the size of its stack, and the option. */
static void expect_overflow(const char *fiber, unsigned long least,
                            unsigned long most)
{
    const char *at = strstr(output, "stack overflow in ");
    const char *size;
    unsigned long bytes = 0;

    assert_non_null(at);
    assert_int_equal(strncmp(at + 18, fiber, strlen(fiber)), 0);
    assert_null(strstr(at + 1, "stack overflow in "));
    assert_non_null(strstr(at, "stack_size"));
    assert_string_equal(strchr(at, '\n'), "\n"); /* it is one line */
    size = strpbrk(at + 18 + strlen(fiber), "0123456789");
    assert_non_null(size);
    assert_int_equal(sscanf(size, "%lu bytes", &bytes), 1);
    assert_in_range(bytes, least, most);
}

#define KIB 1024ul

/* Recursion in frames of a kilobyte. */
static __attribute__((noinline)) int recurse(volatile int *depth)
{
    volatile char room[1024];

    room[0] = (char)*depth;
    if (++*depth > 0)
        room[1] = (char)recurse(depth);
    return room[0] + room[1];
}

static int overflow(void *arg)
{
    volatile int depth = 0;

    (void)arg;
    return recurse(&depth);
}

static px_spawn_options spawn_options;

static int spawn_overflow(void *arg)
{
    px_fiber *fiber = NULL;

    if (px_spawn_with(&fiber, &spawn_options, overflow, arg))
        return 1;
    return px_await(fiber, NULL);
}

static int yield_then_overflow(void *arg)
{
    if (px_yield() || px_sleep(1))
        return 1;
    return overflow(arg);
}

static int park(void *arg)
{
    return px_sem_down(arg);
}

static int overflow_among_others(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_fiber *fiber = NULL;

    for (int i = 0; i < 20; i++) {
        if (i == 10 && px_spawn(&fiber, yield_then_overflow, arg))
            return 1;
        if (px_spawn(NULL, park, &sem))
            return 1;
    }
    return px_set_name(fiber, "amid") || px_await(fiber, NULL);
}

static void run_it(void *fn)
{
    _exit(px_run((px_fn)(uintptr_t)fn, NULL) == 0 ? 0 : 1);
}

#define RUN(fn) run_it, (void *)(uintptr_t)(fn)

static void
R144_an_overflow_names_the_fiber_its_size_and_the_option(void **state)
{
    (void)state;
    memset(&spawn_options, 0, sizeof(spawn_options));
    expect_signal(SIGSEGV, RUN(spawn_overflow));
    expect_overflow("fiber 1 ", 64 * KIB - 8 * KIB, 80 * KIB);
    spawn_options.name = "parser";
    expect_signal(SIGSEGV, RUN(spawn_overflow));
    expect_overflow("fiber 1 'parser'", 64 * KIB - 8 * KIB, 80 * KIB);
    spawn_options.queued = true;
    spawn_options.stack_size = 200 * KIB;
    expect_signal(SIGSEGV, RUN(spawn_overflow));
    expect_overflow("fiber 1 'parser'", 192 * KIB, 260 * KIB);
}

static void mains_overflow_is_named_too(void **state)
{
    (void)state;
    expect_signal(SIGSEGV, RUN(overflow));
    expect_overflow("fiber 0", 1000 * KIB, 1300 * KIB);
}

static void an_overflow_among_others_names_the_right_one(void **state)
{
    (void)state;
    expect_signal(SIGSEGV, RUN(overflow_among_others));
    expect_overflow("fiber 11 'amid'", 56 * KIB, 80 * KIB);
}

static void *run_in_thread(void *fn)
{
    return (void *)(intptr_t)px_run((px_fn)(uintptr_t)fn, NULL);
}

static void run_it_in_a_thread(void *fn)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run_in_thread, fn) == 0)
        (void)pthread_join(thread, NULL);
    _exit(1);
}

static int run_a_thread_with_it(void *arg)
{
    /* the second thread runs while this one is in a run too */
    run_it_in_a_thread((void *)(uintptr_t)overflow_among_others);
    (void)arg;
    return 1;
}

static void an_overflow_on_another_thread_is_named_too(void **state)
{
    (void)state;
    expect_signal(SIGSEGV, run_it_in_a_thread,
                  (void *)(uintptr_t)overflow_among_others);
    expect_overflow("fiber 11 'amid'", 56 * KIB, 80 * KIB);
    expect_signal(SIGSEGV, RUN(run_a_thread_with_it));
    expect_overflow("fiber 11 'amid'", 56 * KIB, 80 * KIB);
}

static int overflow_posted(void *arg)
{
    return overflow(arg);
}

static int post_overflow(void *arg)
{
    if (px_post(px_current_loop(), overflow_posted, arg))
        return 1;
    return px_sleep(10);
}

static void a_posted_fibers_overflow_is_named_too(void **state)
{
    (void)state;
    expect_signal(SIGSEGV, RUN(post_overflow));
    expect_overflow("fiber 1", 56 * KIB, 80 * KIB);
}

static int overflow_in_third_run(void *arg)
{
    return overflow_among_others(arg);
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static void run_thrice(void *arg)
{
    (void)arg;
    if (px_run(nothing, NULL) || px_run(nothing, NULL))
        _exit(1);
    run_it((void *)(uintptr_t)overflow_in_third_run);
}

static void an_overflow_in_a_later_run_is_named_too(void **state)
{
    (void)state;
    expect_signal(SIGSEGV, run_thrice, NULL);
    expect_overflow("fiber 11 'amid'", 56 * KIB, 80 * KIB);
}

static int overflow_under_a_guard(void *arg)
{
    /* a frame of 300 KiB, in code without probes, meets a guard of a MiB */
    volatile char *far =
        (volatile char *)((uintptr_t)__builtin_frame_address(0) - 300 * KIB);

    *far = 1;
    (void)arg;
    return 0;
}

static int spawn_under_a_guard(void *arg)
{
    px_fiber *fiber = NULL;

    if (px_spawn(&fiber, overflow_under_a_guard, arg))
        return 1;
    return px_await(fiber, NULL);
}

/* It has as long a name as there may be, and in it what no line should have. */
static int spawn_among_ended(void *arg)
{
    px_fiber *fiber = NULL;

    /* the second is on the stack that was the first one's */
    if (px_spawn(&fiber, nothing, arg) ||
        px_set_name(px_self(), "a\tname of 31 characters, no more!"))
        return 1;
    return px_yield() || overflow(arg);
}

static int spawn_beside_ended(void *arg)
{
    px_fiber *fibers[2] = {NULL, NULL};

    if (px_spawn(&fibers[0], nothing, arg) ||
        px_spawn(&fibers[1], spawn_among_ended, arg))
        return 1;
    return px_await_all(fibers, 2, NULL);
}

static void an_overflow_beside_ended_fibers_names_the_right_one(void **state)
{
    (void)state;
    expect_signal(SIGSEGV, RUN(spawn_beside_ended));
    expect_overflow("fiber 2 'a?name of 31 characters, no mor'", 56 * KIB,
                    80 * KIB);
}

static size_t frame_size = 100 * KIB;

/* Only its lowest byte is written: without probes, that is beyond the guard. */
static int allocate_a_large_frame(void *arg)
{
    volatile size_t size = frame_size;
    volatile char *room = __builtin_alloca(size);

    room[0] = 1;
    (void)arg;
    return room[0];
}

static int spawn_a_large_frame(void *arg)
{
    px_fiber *fiber = NULL;

    if (px_spawn(NULL, park, arg) || px_spawn(&fiber, nothing, arg) ||
        px_await(fiber, NULL) || px_spawn(&fiber, allocate_a_large_frame, arg))
        return 1;
    return px_await(fiber, NULL);
}

/* As far apart as compilers place their probes. */
#if defined(__aarch64__)
#define PROBES (64 * KIB)
#else
#define PROBES (4 * KIB)
#endif

static void probe_a_large_frame(void *arg)
{
    px_sem never = PX_SEM_INIT(0);
    px_run_options options = {.guard_size = PROBES};

    (void)arg;
    _exit(px_run_with(&options, spawn_a_large_frame, &never) == 0 ? 0 : 1);
}

static void R144_a_frame_with_probes_does_not_jump_the_guard(void **state)
{
    (void)state;
#ifndef PX_PROBES_STACK
    print_message("skipped: this compiler does not probe large frames\n");
    skip();
#endif
    expect_signal(SIGSEGV, probe_a_large_frame, NULL);
    expect_overflow("fiber 3 ", 56 * KIB, 80 * KIB);
}

/* --- The neighbours ------------------------------------------------------- */

enum { NEIGHBOURS = 8, PATTERN = 0xa5 };
#define LENT (192 * KIB) /* of each one's stack */

static char *lent; /* memory that is shared with the child */
static px_sem go, never;

/* Put shared pages in place of those of its frame, and fill them: the parent
 * sees what became of this stack when the process is dead. */
static int lend_a_stack(void *shared)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *room = __builtin_alloca(LENT + page);
    char *at = (char *)(((uintptr_t)room + page - 1) / page * page);

    if (mremap(shared, LENT, LENT, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at)
        _exit(2);
    memset(at, PATTERN, LENT);
    return px_sem_down(&never);
}

static int overflow_when_told(void *fn)
{
    return px_sem_down(&go) || ((px_fn)(uintptr_t)fn)(NULL);
}

static int overflow_amid_lent_stacks(void *fn)
{
    px_fiber *fiber = NULL;

    for (int i = 0; i < NEIGHBOURS; i++) {
        if (i == NEIGHBOURS / 2 && px_spawn(&fiber, overflow_when_told, fn))
            return 1;
        if (px_spawn(NULL, lend_a_stack, lent + i * LENT))
            return 1;
    }
    return px_sem_up(&go) || px_await(fiber, NULL);
}

static void run_amid_lent_stacks(void *fn)
{
    px_run_options options = {.stack_size = 320 * KIB, .guard_size = PROBES};

    _exit(px_run_with(&options, overflow_amid_lent_stacks, fn) == 0 ? 0 : 1);
}

static size_t bytes_that_differ(void)
{
    size_t differ = 0;

    for (size_t i = 0; i < NEIGHBOURS * LENT; i++)
        differ += (unsigned char)lent[i] != PATTERN;
    return differ;
}

static void try_amid_lent_stacks(px_fn fn)
{
    int status;

    lent = mmap(NULL, NEIGHBOURS * LENT, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(lent != MAP_FAILED);
    status = status_of(run_amid_lent_stacks, (void *)(uintptr_t)fn);
    assert_int_equal(bytes_that_differ(), 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    expect_overflow("fiber 5 ", 312 * KIB, 384 * KIB);
    assert_int_equal(munmap(lent, NEIGHBOURS * LENT), 0);
}

static void R144_an_overflow_touches_no_neighbour(void **state)
{
    (void)state;
    if (has_shadow()) {
        print_message("skipped: the tool keeps books on these stacks\n");
        skip();
    }
    try_amid_lent_stacks(overflow);
#ifdef PX_PROBES_STACK
    frame_size = 400 * KIB;
    try_amid_lent_stacks(allocate_a_large_frame);
    frame_size = 100 * KIB;
#endif
}

static char *volatile frame;

static int leave_a_frame(void *arg)
{
    (void)arg;
    frame = __builtin_frame_address(0);
    return 0;
}

/* The guards stay when their fibers have ended. */
static int fall_off_a_stack_that_is_free(void *arg)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int sum = 0;

    if (px_spawn(NULL, leave_a_frame, arg) || px_yield())
        return 1;
    for (size_t far = 0; far < 128 * KIB; far += page)
        sum += *(volatile char *)(frame - far);
    return sum;
}

static void an_overflow_of_a_stack_without_a_fiber_is_named_too(void **state)
{
    (void)state;
    expect_signal(SIGSEGV, RUN(fall_off_a_stack_that_is_free));
    expect_overflow("the stack of a fiber that has ended", 56 * KIB, 80 * KIB);
}

static int nop(void *arg)
{
    (void)arg;
    return 0;
}

/* The deepest frame is most likely one that is in the middle of a switch. */
static int spawn_downward(volatile int *depth)
{
    px_fiber *fiber = NULL;
    int failed =
        px_spawn(&fiber, nop, NULL) || px_await(fiber, NULL) || px_yield();

    if (++*depth > 0)
        failed += spawn_downward(depth);
    return failed + *depth;
}

static size_t shift;

static int overflow_by_spawning(void *arg)
{
    volatile int depth = 0;
    volatile char *room = __builtin_alloca(shift + 1);

    (void)arg;
    room[0] = 1;
    return spawn_downward(&depth) + room[0];
}

static int spawn_the_spawner(void *arg)
{
    px_spawn_options options;
    px_fiber *fiber = NULL;

    memset(&options, 0, sizeof(options));
    options.name = "spawner";
    if (px_spawn_with(&fiber, &options, overflow_by_spawning, arg))
        return 1;
    return px_await(fiber, NULL);
}

static void an_overflow_within_a_switch_is_named_too(void **state)
{
    (void)state;
    for (shift = 0; shift < 256; shift += 16) {
        expect_signal(SIGSEGV, RUN(spawn_the_spawner));
        expect_overflow("fiber 1 'spawner'", 56 * KIB, 80 * KIB);
    }
}

/* A handler of the program's that needs more than there is must not write to
 * somebody's memory, now or later: what is below is taken, and the kernel says
 * whether it could be written to. */
static int look_below_the_alternate_stack(void *arg)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    stack_t stack;
    int ends[2];
    char *below;

    (void)arg;
    if (sigaltstack(NULL, &stack) || pipe(ends))
        return 1;
    below = (char *)stack.ss_sp - page;
    if (mmap(below, page, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
             0) != MAP_FAILED)
        return 2;
    errno = 0;
    return write(ends[1], below, 1) == -1 && errno == EFAULT ? 0 : 3;
}

static void the_alternate_stack_has_a_guard(void **state)
{
    (void)state;
    if (has_shadow()) {
        print_message("skipped: the tool has set up a stack of its own\n");
        skip();
    }
    assert_int_equal(status_of(RUN(look_below_the_alternate_stack)), 0);
}

static void run_with_a_large_guard(void *arg)
{
    px_run_options options;

    memset(&options, 0, sizeof(options));
    options.guard_size = 1024 * KIB;
    _exit(px_run_with(&options, spawn_under_a_guard, arg) == 0 ? 0 : 1);
}

static void a_large_guard_catches_a_large_frame(void **state)
{
    (void)state;
    expect_signal(SIGSEGV, run_with_a_large_guard, NULL);
    expect_overflow("fiber 1", 56 * KIB, 80 * KIB);
}

/* Where light guards are refused, guards are made in another way. */
static void run_locked(void *fn)
{
#ifdef MCL_ONFAULT
    if (mlockall(MCL_FUTURE | MCL_ONFAULT) != 0)
        _exit(77);
#else
    _exit(77);
#endif
    run_it(fn);
}

static void guards_hold_in_locked_memory_too(void **state)
{
    int status =
        status_of(run_locked, (void *)(uintptr_t)overflow_among_others);

    (void)state;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("skipped: memory can not be locked here\n");
        skip();
    }
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    expect_overflow("fiber 11 'amid'", 56 * KIB, 80 * KIB);
}

/* --- Faults that are not ours --------------------------------------------- */

/* Not NULL, which a sanitizer looks for before the machine does. */
static int *volatile nowhere = (int *)16;

static int fault(void *arg)
{
    (void)arg;
    return px_yield() || *nowhere;
}

static int fault_in_child(void *arg)
{
    px_fiber *fiber = NULL;

    return px_spawn(&fiber, fault, arg) || px_await(fiber, NULL);
}

static void a_fault_elsewhere_dies_of_it_without_our_line(void **state)
{
    (void)state;
    expect_signal(SIGSEGV, RUN(fault_in_child));
    assert_string_equal(output, "");
}

static int fault_with_posts(void *arg)
{
    return !px_current_loop() || fault_in_child(arg);
}

static int park_after_leaving_a_frame(void *arg)
{
    return leave_a_frame(arg) || px_sem_down(arg);
}

/* On a stack, but not below it. */
static int fault_within_a_stack(void *arg)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    px_sem sem = PX_SEM_INIT(0);
    char *within;

    (void)arg;
    if (px_spawn(NULL, park_after_leaving_a_frame, &sem))
        return 1;
    within = (char *)((uintptr_t)frame / page * page) - 4 * page;
    if (mprotect(within, page, PROT_NONE) != 0)
        return 2;
    return *(volatile char *)within;
}

static void a_fault_near_our_guards_is_told_apart(void **state)
{
    (void)state;
    expect_signal(SIGSEGV, RUN(fault_with_posts));
    assert_string_equal(output, "");
    expect_signal(SIGSEGV, RUN(fault_within_a_stack));
    assert_string_equal(output, "");
}

static void say(const char *text)
{
    (void)!write(2, text, strlen(text));
}

static void handle_simply(int number)
{
    say(number == SIGSEGV ? "earlier" : "other");
    _exit(7);
}

static void handle_with_info(int number, siginfo_t *info, void *context)
{
    say(number == SIGSEGV && info->si_addr == nowhere && context ? "with info"
                                                                 : "other");
    _exit(8);
}

static void run_after_simple_handler(void *arg)
{
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    action.sa_handler = handle_simply;
    (void)sigaction(SIGSEGV, &action, NULL);
    run_it(arg);
}

static void run_after_handler_with_info(void *arg)
{
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    action.sa_sigaction = handle_with_info;
    action.sa_flags = SA_SIGINFO;
    (void)sigaction(SIGSEGV, &action, NULL);
    run_it(arg);
}

static void a_fault_elsewhere_goes_to_the_earlier_handler(void **state)
{
    (void)state;
    expect_exit(7, run_after_simple_handler, (void *)(uintptr_t)fault_in_child);
    assert_string_equal(output, "earlier");
    expect_exit(8, run_after_handler_with_info,
                (void *)(uintptr_t)fault_in_child);
    assert_string_equal(output, "with info");
}

static void handle_bus_error(int number)
{
    say(number == SIGBUS ? "bus error" : "other");
    _exit(9);
}

static int read_beyond_a_file(void *arg)
{
    FILE *file = tmpfile();
    volatile char *map;

    (void)arg;
    if (!file)
        return 1;
    map = mmap(NULL, 1, PROT_READ, MAP_SHARED, fileno(file), 0);
    return map == MAP_FAILED ? 2 : *map;
}

static void run_after_two_handlers(void *arg)
{
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    action.sa_handler = handle_simply;
    (void)sigaction(SIGSEGV, &action, NULL);
    action.sa_handler = handle_bus_error;
    (void)sigaction(SIGBUS, &action, NULL);
    run_it(arg);
}

static void each_kind_of_fault_goes_to_its_own_earlier_handler(void **state)
{
    (void)state;
    expect_exit(9, run_after_two_handlers,
                (void *)(uintptr_t)read_beyond_a_file);
    assert_string_equal(output, "bus error");
    expect_exit(7, run_after_two_handlers, (void *)(uintptr_t)fault_in_child);
    assert_string_equal(output, "earlier");
    expect_signal(SIGBUS, RUN(read_beyond_a_file));
    assert_string_equal(output, "");
}

static void an_overflow_does_not_go_to_the_earlier_handler(void **state)
{
    (void)state;
    expect_signal(SIGSEGV, run_after_simple_handler,
                  (void *)(uintptr_t)overflow_among_others);
    expect_overflow("fiber 11 'amid'", 56 * KIB, 80 * KIB);
}

static void fault_after_a_run(void *arg)
{
    if (px_run(nothing, arg))
        _exit(1);
    _exit(*nowhere);
}

static void a_fault_after_a_run_dies_of_it(void **state)
{
    (void)state;
    expect_signal(SIGSEGV, fault_after_a_run, NULL);
    assert_string_equal(output, "");
}

static int raise_it(void *arg)
{
    (void)arg;
    return px_yield() || kill(getpid(), SIGSEGV) || px_yield();
}

static void a_signal_that_was_sent_is_handed_on(void **state)
{
    (void)state;
    expect_exit(7, run_after_simple_handler, (void *)(uintptr_t)raise_it);
    assert_string_equal(output, "earlier");
}

static void run_and_be_sent_it(void *arg)
{
    run_it(arg);
}

static void a_signal_that_was_sent_ends_the_process_by_default(void **state)
{
    (void)state;
    expect_signal(SIGSEGV, run_and_be_sent_it, (void *)(uintptr_t)raise_it);
}

static volatile sig_atomic_t came_back;

static void count_and_ignore(int number)
{
    (void)number;
    came_back++;
}

static void run_after_counting_handler(void *arg)
{
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    action.sa_handler = count_and_ignore;
    (void)sigaction(SIGSEGV, &action, NULL);
    if (px_run((px_fn)(uintptr_t)arg, NULL) != 0)
        _exit(1);
    _exit(came_back == 1 ? 9 : 2);
}

static void an_earlier_handler_may_return(void **state)
{
    (void)state;
    expect_exit(9, run_after_counting_handler, (void *)(uintptr_t)raise_it);
}

static int raise_it_thrice(void *arg)
{
    return raise_it(arg) || raise_it(arg) || raise_it(arg);
}

static void run_ignoring(void *arg)
{
    (void)signal(SIGSEGV, SIG_IGN);
    if (px_run((px_fn)(uintptr_t)arg, NULL) != 0)
        _exit(1);
    _exit(9);
}

static void a_sent_signal_that_was_ignored_stays_ignored(void **state)
{
    (void)state;
    expect_exit(9, run_ignoring, (void *)(uintptr_t)raise_it_thrice);
}

/* --- The alternate stack -------------------------------------------------- */

static stack_t ours;

static int look_at_alternate_stack(void *arg)
{
    stack_t now;

    (void)arg;
    if (sigaltstack(NULL, &now) != 0 || (now.ss_flags & SS_DISABLE))
        return 1;
    return ours.ss_sp && now.ss_sp != ours.ss_sp;
}

static void run_with_own_alternate_stack(void *arg)
{
    stack_t now;

    (void)arg;
    memset(&ours, 0, sizeof(ours));
    ours.ss_size = 64 * KIB;
    ours.ss_sp = malloc(ours.ss_size);
    if (sigaltstack(&ours, NULL) != 0)
        _exit(2);
    if (px_run(look_at_alternate_stack, NULL) != 0)
        _exit(3);
    if (sigaltstack(NULL, &now) != 0 || now.ss_sp != ours.ss_sp)
        _exit(4);
    run_it((void *)(uintptr_t)overflow_among_others);
}

static void an_alternate_stack_that_is_there_is_kept(void **state)
{
    (void)state;
    expect_signal(SIGSEGV, run_with_own_alternate_stack, NULL);
    expect_overflow("fiber 11 'amid'", 56 * KIB, 80 * KIB);
}

static void run_without_one(void *arg)
{
    stack_t none;
    stack_t now;

    (void)arg;
    memset(&none, 0, sizeof(none));
    none.ss_flags = SS_DISABLE;
    (void)sigaltstack(&none, NULL);
    if (px_run(look_at_alternate_stack, NULL) != 0)
        _exit(3);
    /* whatever is left behind must be usable, or nothing */
    if (sigaltstack(NULL, &now) != 0)
        _exit(4);
    if (!(now.ss_flags & SS_DISABLE))
        memset(now.ss_sp, 0, now.ss_size);
    _exit(0);
}

static void without_one_a_run_has_its_own(void **state)
{
    (void)state;
    expect_exit(0, run_without_one, NULL);
}

/* As it would without the library: the kernel does not let it be ignored. */
static void a_fault_that_was_ignored_is_not(void **state)
{
    (void)state;
    expect_signal(SIGSEGV, run_ignoring, (void *)(uintptr_t)fault_in_child);
    assert_string_equal(output, "");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(R144_an_overflow_names_the_fiber_its_size_and_the_option),
    PX_TEST(R144_a_frame_with_probes_does_not_jump_the_guard),
    PX_TEST(R144_an_overflow_touches_no_neighbour),
    PX_TEST(mains_overflow_is_named_too),
    PX_TEST(an_overflow_among_others_names_the_right_one),
    PX_TEST(an_overflow_on_another_thread_is_named_too),
    PX_TEST(a_posted_fibers_overflow_is_named_too),
    PX_TEST(an_overflow_in_a_later_run_is_named_too),
    PX_TEST(an_overflow_beside_ended_fibers_names_the_right_one),
    PX_TEST(an_overflow_of_a_stack_without_a_fiber_is_named_too),
    PX_TEST(a_large_guard_catches_a_large_frame),
    PX_TEST(an_overflow_within_a_switch_is_named_too),
    PX_TEST(the_alternate_stack_has_a_guard),
    PX_TEST(guards_hold_in_locked_memory_too),
    PX_TEST(a_fault_elsewhere_dies_of_it_without_our_line),
    PX_TEST(a_fault_near_our_guards_is_told_apart),
    PX_TEST(a_fault_elsewhere_goes_to_the_earlier_handler),
    PX_TEST(each_kind_of_fault_goes_to_its_own_earlier_handler),
    PX_TEST(an_overflow_does_not_go_to_the_earlier_handler),
    PX_TEST(a_fault_after_a_run_dies_of_it),
    PX_TEST(a_signal_that_was_sent_is_handed_on),
    PX_TEST(a_signal_that_was_sent_ends_the_process_by_default),
    PX_TEST(an_earlier_handler_may_return),
    PX_TEST(a_sent_signal_that_was_ignored_stays_ignored),
    PX_TEST(a_fault_that_was_ignored_is_not),
    PX_TEST(an_alternate_stack_that_is_there_is_kept),
    PX_TEST(without_one_a_run_has_its_own),
};

PX_TEST_MAIN(tests)
