/* SPDX-License-Identifier: MIT */
/*
 * error.h - the codes that calls return.
 *
 * A call that can fail returns 0 or a positive value when it succeeded, and
 * one of these negative codes when it did not. A failed call has left its
 * object as it was, unless its own documentation says otherwise. errno is
 * never used to hand a result over, and is left as it was found, across
 * parking too.
 */
#ifndef PARATAXIS_ERROR_H
#define PARATAXIS_ERROR_H

#include <errno.h>

#include <parataxis/export.h>

/* Codes that errno has too. Wrappers of system calls may return any -errno. */
#define PX_EINVAL (-EINVAL)       /* a bad argument, or out of order */
#define PX_ENOMEM (-ENOMEM)       /* memory, address space or mappings: out */
#define PX_EBUSY (-EBUSY)         /* somebody has it, or waits on it */
#define PX_EAGAIN (-EAGAIN)       /* a try that would have had to wait */
#define PX_EPERM (-EPERM)         /* not this fiber's to do */
#define PX_EDEADLK (-EDEADLK)     /* this fiber would wait for itself */
#define PX_EOVERFLOW (-EOVERFLOW) /* above the limit, or past the integer */
#define PX_ETIMEDOUT (-ETIMEDOUT) /* a deadline around the call has passed */
#define PX_ECANCELED (-ECANCELED) /* a scope around the call was cancelled */
#define PX_EBADF (-EBADF)         /* not an open descriptor */
#define PX_EPIPE (-EPIPE)         /* the reader has gone */

/* The library's own. */
#define PX_ENOFIBER (-5001)   /* a wait where there is no fiber to park */
#define PX_ENOTLOCKED (-5002) /* unlock of a lock that is free */
#define PX_ENEGATIVE (-5003)  /* a waitgroup's counter is below zero */
#define PX_ECLOSED (-5004)    /* a closed semaphore, channel or descriptor */
#define PX_ESTALLED (-5005)   /* nothing can wake this fiber any more */

PX_BEGIN_DECLS

/** One sentence for `code`, without a full stop; never NULL, and constant.
 *  Other negative errno values give the system's text. Never parks. */
PX_API const char *px_strerror(int code);

/** The code's name, "PX_ETIMEDOUT"; "PX_E?" for a code without one, "0" for 0.
 *  Never parks. */
PX_API const char *px_err_name(int code);

PX_END_DECLS

#endif
