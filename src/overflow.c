/* SPDX-License-Identifier: MIT */
/*
 * overflow.c - the handler that names the fiber whose stack overflowed.
 *
 * A fault inside one of our guards writes one line and restores the default
 * action; the faulting instruction is then tried again, and the core shows it.
 * The address decides, not si_code, which differs between kinds of guards. A
 * fault anywhere else goes to the handler that was there before.
 *
 * The handler runs on an alternate stack (the fiber's own is full), calls only
 * what is async-signal-safe, and reads nothing that the faulting code could
 * have been in the middle of changing. Whose stack it is, is looked up: in a
 * switch, the fiber that runs is the next one already.
 */
#include "overflow.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "post.h"

/* A program's own handlers may run on it, too. */
#define LEAST (64 * 1024)
#define GUARD (64 * 1024)
/* It depends on the processor's registers; not every libc can tell. */
#ifdef _SC_SIGSTKSZ
#define SIGNAL_STACK_SIZE() sysconf(_SC_SIGSTKSZ)
#else
#define SIGNAL_STACK_SIZE() ((long)SIGSTKSZ)
#endif

static struct sigaction earlier_segv, earlier_bus;

/* A line of text, built without stdio. What report() says is at most 160
 * characters, three numbers of 20 and a name. */
struct line {
    char text[256];
    size_t length;
};

/* There is room for all that report() says. */
static void add_text(struct line *line, const char *text)
{
    while (*text)
        line->text[line->length++] = *text++;
}

/* Not more of it than a name can have: who knows what else was overwritten. */
static void add_name(struct line *line, const char *name)
{
    for (size_t i = 0; i < PX_NAME_SIZE - 1 && name[i]; i++)
        line->text[line->length++] = px__printable(name[i]);
}

static void add_number(struct line *line, uint64_t number)
{
    char digits[24];
    size_t at = sizeof(digits) - 1;

    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    add_text(line, &digits[at]);
}

/* Ended fibers have no stack, or one that is free. */
static const px_fiber *find_owner(const px_loop *loop, const char *low)
{
    struct px_fiber_cursor cursor = px__fibers_begin(&loop->arena);
    const px_fiber *fiber;

    do {
        fiber = px__fibers_next(&cursor);
    } while (fiber && !(fiber->life && fiber->state != PX_STATE_DONE &&
                        fiber->life->stack.low == low));
    return fiber;
}

static void report(const px_loop *loop, const char *low, const char *address)
{
    const px_fiber *owner = find_owner(loop, low);
    struct line line = {.length = 0};
    ssize_t written;

    add_text(&line, "parataxis: stack overflow in ");
    if (owner) {
        add_text(&line, "fiber ");
        add_number(&line, (uint64_t)owner->id);
        if (owner->life->name) {
            add_text(&line, " '");
            add_name(&line, owner->life->name);
            add_text(&line, "'");
        }
        add_text(&line, " (stack of ");
        add_number(&line, (uint64_t)px__stack_size(&owner->life->stack));
    } else {
        add_text(&line, "the stack of a fiber that has ended (of ");
        add_number(&line, (uint64_t)px__stack_usable(&loop->stacks,
                                                     loop->options.stack_size));
    }
    add_text(&line, " bytes, fault at ");
    add_number(&line, (uint64_t)(low - address));
    add_text(&line, " below its end): raise stack_size in px_run_options or "
                    "px_spawn_options\n");
    written = write(STDERR_FILENO, line.text, line.length);
    (void)written; /* there is nobody else to tell */
}

static void hand_on(int number, siginfo_t *info, void *context)
{
    const struct sigaction *earlier =
        number == SIGBUS ? &earlier_bus : &earlier_segv;

    bool was_sent = info->si_code <= 0;

    if (earlier->sa_flags & SA_SIGINFO) {
        earlier->sa_sigaction(number, info, context);
    } else if (earlier->sa_handler == SIG_IGN && was_sent) {
        return;
    } else if (earlier->sa_handler == SIG_DFL ||
               earlier->sa_handler == SIG_IGN) {
        (void)signal(number, SIG_DFL);
        if (was_sent) /* no instruction will fault again */
            (void)raise(number);
    } else {
        earlier->sa_handler(number);
    }
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    const px_loop *loop = px__loop;
    const struct px_stack_pool *remote = loop ? px__post_stacks(loop) : NULL;
    int saved = errno;
    char *low;

    if (loop && (px__stack_guards(&loop->stacks, info->si_addr, &low) ||
                 (remote && px__stack_guards(remote, info->si_addr, &low)))) {
        report(loop, low, info->si_addr);
        (void)signal(number, SIG_DFL);
    } else {
        hand_on(number, info, context);
    }
    errno = saved;
}

static void install(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGSEGV, &action, &earlier_segv);
    (void)sigaction(SIGBUS, &action, &earlier_bus);
}

void px__overflow_open(struct px_overflow *overflow)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    stack_t current, own;
    long size = SIGNAL_STACK_SIZE();

    (void)pthread_once(&once, install);
    overflow->stack = NULL;
    if (sigaltstack(NULL, &current) != 0 || !(current.ss_flags & SS_DISABLE))
        return;
    overflow->size = GUARD + (size > LEAST ? (size_t)size : LEAST);
    overflow->stack = mmap(NULL, overflow->size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (overflow->stack == MAP_FAILED) {
        overflow->stack = NULL;
        return;
    }
    if (mprotect(overflow->stack, GUARD, PROT_NONE) != 0) {
        (void)munmap(overflow->stack, overflow->size);
        overflow->stack = NULL; /* rather none than one without an end */
        return;
    }
    memset(&own, 0, sizeof(own));
    own.ss_sp = (char *)overflow->stack + GUARD;
    own.ss_size = overflow->size - GUARD;
    (void)sigaltstack(&own, NULL);
}

void px__overflow_close(struct px_overflow *overflow)
{
    stack_t current, none;

    if (!overflow->stack)
        return;
    /* Somebody may have put another one in its place. */
    if (sigaltstack(NULL, &current) == 0 &&
        current.ss_sp == (char *)overflow->stack + GUARD) {
        memset(&none, 0, sizeof(none));
        none.ss_flags = SS_DISABLE;
        (void)sigaltstack(&none, NULL);
    }
    (void)munmap(overflow->stack, overflow->size);
}
