/* SPDX-License-Identifier: MIT */
/*
 * context.h - the port: one switch, and how a new context begins.
 *
 * A context is a stack with a saved frame on it; a pointer to that frame is
 * all there is of a context that does not run.
 *
 * px__context_switch(save, to, verdict)
 *   pre   `to` came from px__context_make() or was stored through `save` by an
 *         earlier switch that has not been resumed since.
 *   does  stores the running context's frame in *save and goes on in `to`,
 *         where the switch that left it returns `verdict`.
 *   keeps what the ABI calls callee-saved, and of the floating-point state the
 *         control bits (rounding, masks), not the sticky flags, which the ABI
 *         lets every call change. The signal mask is the thread's.
 *
 * px__context_make(top, low, entry, arg)
 *   pre   `top` is 16-byte aligned, the stack from `low` to it writable.
 *   does  returns a context whose first switch calls entry(arg) on that stack,
 *         aligned as the ABI asks, with the caller's floating-point control.
 *         Unwinders stop there. entry does not return.
 *
 * px__context_launch(save, top, low, entry, arg, from)
 *   does  what px__context_switch(save, px__context_make(top, low, entry, arg),
 *         verdict) does, with less to store and to load. *from says where the
 *         new one was launched, until it is left.
 *
 * px__context_leave(from, to, verdict)
 *   does  goes on in `to`, as px__context_switch() does, for good: the running
 *         context is over. If it was launched, and has not been left since,
 *         `from` is what launching it said; else anything.
 */
#ifndef PX_CONTEXT_CONTEXT_H
#define PX_CONTEXT_CONTEXT_H

int px__context_switch(void **save, void *to, int verdict);
void *px__context_make(void *top, void *low, void (*entry)(void *arg),
                       void *arg);
int px__context_launch(void **save, void *top, void *low,
                       void (*entry)(void *arg), void *arg, void **from);
void px__context_leave(void *from, void *to, int verdict);

#endif
