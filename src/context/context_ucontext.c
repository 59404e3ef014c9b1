/* SPDX-License-Identifier: MIT */
/*
 * context_ucontext.c - the switch made of POSIX's (or the system's remnant of)
 * ucontext: portable, and some fifty times slower for its system call.
 *
 * A saved frame is a ucontext_t on the leaver's own stack, with the verdict
 * that the next one to come leaves there. swapcontext() would give the target
 * the signal mask it had when it left; the mask is the thread's, so the current
 * one is copied into the target first.
 */
#include "context/context.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

struct frame {
    ucontext_t context;
    int verdict;
    void (*entry)(void *arg);
    void *arg;
};

int px__context_switch(void **save, void *to, int verdict)
{
    struct frame self, *target = to;

    target->verdict = verdict;
    *save = &self;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &target->context.uc_sigmask);
    (void)swapcontext(&self.context, &target->context);
    return self.verdict;
}

/* makecontext() passes ints: a pointer takes two. */
static void begin(unsigned high, unsigned low)
{
    struct frame *frame =
        (struct frame *)(((uintptr_t)high << 16 << 16) | (uintptr_t)low);

    frame->entry(frame->arg);
}

void *px__context_make(void *top, void *low, void (*entry)(void *arg),
                       void *arg)
{
    uintptr_t at = ((uintptr_t)top - sizeof(struct frame)) & ~(uintptr_t)63;
    struct frame *frame = (struct frame *)at;

    memset(frame, 0, sizeof(*frame));
    (void)getcontext(&frame->context);
    frame->entry = entry;
    frame->arg = arg;
    frame->context.uc_stack.ss_sp = low;
    frame->context.uc_stack.ss_size = at - (uintptr_t)low;
    frame->context.uc_link = NULL;
    makecontext(&frame->context, (void (*)(void))begin, 2,
                (unsigned)(at >> 16 >> 16), (unsigned)(at & 0xffffffffu));
    return frame;
}

int px__context_launch(void **save, void *top, void *low,
                       void (*entry)(void *arg), void *arg, void **from)
{
    *from = NULL;
    return px__context_switch(save, px__context_make(top, low, entry, arg), 0);
}

void px__context_leave(void *from, void *to, int verdict)
{
    void *never;

    (void)from;
    (void)px__context_switch(&never, to, verdict);
}
