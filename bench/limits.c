/* SPDX-License-Identifier: MIT */
/*
 * limits.c - what the machine itself costs, below every library.
 *
 * A library of fibers cannot be faster than a switch of stacks that saves what
 * the calling convention asks for, no sleep cheaper than a look at the clock,
 * no fresh stack cheaper than the first touch of its page, no echo faster than
 * an epoll loop without fibers. Row names are those of the table in run.py,
 * which says below which rows each limit lies.
 */
#include "harness.h"

#include "echo_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* -- the bare switch -- */

/* bare_switch(from, to): save what a callee must keep and the stack pointer in
 * *from, take those that were saved in `to`, and leave by a jump: a return
 * would be predicted to go where the other stack called from. whole_switch()
 * keeps the floating-point control words, too, as the convention asks for: they
 * are read, and loaded only if they differ. */
void bare_switch(void **from, void *to);
void whole_switch(void **from, void *to);

#if defined(__x86_64__)
#define SWITCH(name, read_control, compare_control)                            \
    __asm__(".text\n"                                                          \
            ".balign 64\n"                                                     \
            ".type " name ", @function\n" name ":\n" read_control              \
            "    pushq %rbp\n"                                                 \
            "    pushq %rbx\n"                                                 \
            "    pushq %r12\n"                                                 \
            "    pushq %r13\n"                                                 \
            "    pushq %r14\n"                                                 \
            "    pushq %r15\n"                                                 \
            "    movq %rsp, (%rdi)\n"                                          \
            "    movq %rsp, %rdi\n"                                            \
            "    movq %rsi, %rsp\n" compare_control "    popq %r15\n"          \
            "    popq %r14\n"                                                  \
            "    popq %r13\n"                                                  \
            "    popq %r12\n"                                                  \
            "    popq %rbx\n"                                                  \
            "    popq %rbp\n"                                                  \
            "    popq %rcx\n"                                                  \
            "    jmpq *%rcx\n"                                                 \
            ".size " name ", . - " name "\n")
SWITCH("bare_switch", "", "");
SWITCH("whole_switch",
       "    stmxcsr -56(%rsp)\n"
       "    fnstcw -52(%rsp)\n",
       "    movl -8(%rdi), %eax\n"
       "    movzwl -4(%rdi), %edx\n"
       "    xorl -8(%rsp), %eax\n"
       "    testl $0xffffffc0, %eax\n"
       "    jne 1f\n"
       "    cmpw -4(%rsp), %dx\n"
       "    je 2f\n"
       "1:  ldmxcsr -8(%rsp)\n"
       "    fldcw -4(%rsp)\n"
       "2:\n");
enum {
    RESUME = 6,
    FRAME = 8
}; /* words; after a call, 8 off a multiple of 16 */
#elif defined(__aarch64__)
__asm__(".text\n"
        ".balign 64\n"
        ".type bare_switch, %function\n"
        "bare_switch:\n"
        "    stp x29, x30, [sp, #-160]!\n"
        "    stp x19, x20, [sp, #16]\n"
        "    stp x21, x22, [sp, #32]\n"
        "    stp x23, x24, [sp, #48]\n"
        "    stp x25, x26, [sp, #64]\n"
        "    stp x27, x28, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #16]\n"
        "    ldp x21, x22, [sp, #32]\n"
        "    ldp x23, x24, [sp, #48]\n"
        "    ldp x25, x26, [sp, #64]\n"
        "    ldp x27, x28, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    ldp x29, x30, [sp], #160\n"
        "    br x30\n"
        ".size bare_switch, . - bare_switch\n");
enum { RESUME = 1, FRAME = 20 };
#endif

#if defined(__x86_64__) || defined(__aarch64__)
#define HAVE_SWITCH 1
static void *here, *there;
static long visits;

static void *prepare(void (*other_side)(void))
{
    static uintptr_t stack[2048] __attribute__((aligned(64)));
    uintptr_t *top = stack + sizeof(stack) / sizeof(stack[0]) - FRAME;

    memset(top, 0, FRAME * sizeof(*top));
    top[-1] = (uintptr_t)0x037f << 16 << 16 | 0x1f80; /* what a process has */
    top[RESUME] = (uintptr_t)other_side;
    visits = 0;
    return top;
}

/* A function that measures a switch: which is to be called, not passed. */
#define MEASURE(measure, swap)                                                 \
    static void measure##_other(void)                                          \
    {                                                                          \
        for (;;) {                                                             \
            visits++;                                                          \
            swap(&there, here);                                                \
        }                                                                      \
    }                                                                          \
                                                                               \
    static void measure(struct sample *s)                                      \
    {                                                                          \
        int64_t start;                                                         \
                                                                               \
        there = prepare(measure##_other);                                      \
        start = bench_clock();                                                 \
        for (long i = 0; i < s->n / 2; i++)                                    \
            swap(&here, there);                                                \
        s->ns = bench_clock() - start;                                         \
        s->ops = s->n / 2 * 2;                                                 \
        CHECK(s, visits * 2 == s->ops);                                        \
    }

MEASURE(switch_bare, bare_switch)
#if defined(__x86_64__)
MEASURE(switch_whole, whole_switch)
#endif
#endif

/* -- the clock, the kernel, memory -- */

static void read_clock(struct sample *s, clockid_t id)
{
    struct timespec last, now;
    long back = 0;
    int64_t start;

    (void)clock_gettime(id, &last);
    start = bench_clock();
    for (long i = 0; i < s->n; i++) {
        (void)clock_gettime(id, &now);
        back += now.tv_sec < last.tv_sec;
        last = now;
    }
    s->ns = bench_clock() - start;
    s->ops = s->n;
    CHECK(s, back == 0);
}

static void clock_coarse(struct sample *s)
{
    read_clock(s, CLOCK_MONOTONIC_COARSE);
}

static void clock_precise(struct sample *s)
{
    read_clock(s, CLOCK_MONOTONIC);
}

static void system_call(struct sample *s)
{
    long other = 0, me = getpid();
    int64_t start = bench_clock();

    for (long i = 0; i < s->n; i++)
        other += syscall(SYS_getpid) != me;
    s->ns = bench_clock() - start;
    s->ops = s->n;
    CHECK(s, other == 0);
}

/* The first touch of a page, the pages 64 KiB apart as those of stacks are. */
static void first_touch(struct sample *s)
{
    enum { PAGES = 10000, APART = 64 * 1024 };
    size_t size = (size_t)PAGES * APART;
    long times = (s->n + PAGES - 1) / PAGES;
    int64_t ns = 0;

    for (long k = 0; k < times; k++) {
        char *area = mmap(NULL, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        int64_t start;

        if (area == MAP_FAILED) {
            bench_broken(s, "no memory");
            return;
        }
        start = bench_clock();
        for (size_t i = 0; i < PAGES; i++)
            *(volatile char *)(area + i * APART) = 1;
        ns += bench_clock() - start;
        (void)munmap(area, size);
    }
    s->ns = ns;
    s->ops = times * PAGES;
}

/* -- echo by one epoll loop -- */

/* 1 once the far end has closed. */
static int echo_one(struct sample *s, int fd, long *bytes)
{
    char message[MESSAGE];
    ssize_t n = read(fd, message, sizeof(message));

    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0) {
        CHECK(s, n == 0);
        (void)close(fd);
        return 1;
    }
    CHECK(s, write(fd, message, (size_t)n) == n);
    *bytes += n;
    return 0;
}

static void tcp_echo(struct sample *s)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC), left = CONNECTIONS;
    struct echo echo;
    long bytes = 0;
    int64_t start, cpu;

    if (echo_open(&echo, s->n) != 0) {
        bench_broken(s, "there is no client");
        return;
    }
    start = bench_now();
    cpu = bench_clock();
    for (int i = 0; i < CONNECTIONS; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = echo.fds[i]};

        CHECK(s, fcntl(echo.fds[i], F_SETFL, O_NONBLOCK) == 0);
        CHECK(s, epoll_ctl(epoll, EPOLL_CTL_ADD, echo.fds[i], &event) == 0);
    }
    echo_start(&echo);
    while (left > 0 && !s->broken) {
        struct epoll_event events[CONNECTIONS];
        int ready = epoll_wait(epoll, events, CONNECTIONS, -1);

        CHECK(s, ready > 0);
        for (int i = 0; i < ready; i++)
            left -= echo_one(s, events[i].data.fd, &bytes);
    }
    s->ns = bench_now() - start;
    s->ops = echo.messages;
    bench_extra(s, "cpu_ns",
                (double)(bench_clock() - cpu) / (double)echo.messages);
    (void)close(epoll);
    CHECK(s, echo_end(&echo) == 0);
    CHECK(s, bytes == s->ops * MESSAGE);
}

static int run_plainly(int (*fn)(void *arg), void *arg, int flags)
{
    (void)flags;
    return fn(arg);
}

static const char *no_version(void)
{
    return "-";
}

static const struct row rows[] = {
#if HAVE_SWITCH
    {"switch", "a bare switch of stacks", switch_bare, 2, ROW_LIMIT},
#if defined(__x86_64__)
    {"switch-whole", "a switch with floating-point control", switch_whole, 2,
     ROW_LIMIT},
#endif
#endif
    {"clock-coarse", "a look at the coarse clock", clock_coarse, 1, ROW_LIMIT},
    {"clock-precise", "a look at the precise clock", clock_precise, 1,
     ROW_LIMIT},
    {"system-call", "a system call, getpid", system_call, 1, ROW_LIMIT},
    {"first-touch", "the first touch of a page", first_touch, 1,
     ROW_ONCE | ROW_LIMIT},
    {"tcp-echo", "TCP echo, 64 connections, one message", tcp_echo, 12800,
     ROW_SLOW},
};

const struct bench bench = {"limit", no_version, run_plainly, rows,
                            sizeof(rows) / sizeof(rows[0])};
