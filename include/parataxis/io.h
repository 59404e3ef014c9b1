/* SPDX-License-Identifier: MIT */
/*
 * io.h - descriptors and signals that a fiber can wait for.
 *
 * There are no timeout arguments: put a scope around the call (timeout.h).
 * Several fibers may wait on one descriptor; readiness wakes every waiter of
 * that direction.
 *
 * px_wait_fd() is level: it says what is ready now, and is safe with any way of
 * closing. The transfers (px_read, px_write, px_accept, px_connect) try the
 * call first and wait only when it would block; they keep the descriptor
 * registered while it is in use, so a descriptor used with them is closed with
 * px_close(), and close(2) on it is misuse. A descriptor that is blocking is
 * asked before each transfer and never changed, so that standard input, or a
 * terminal shared with a shell, stay as they were.
 *
 * Writes to sockets never raise SIGPIPE; a pipe's reader that has gone does, as
 * for write(2), unless the signal is ignored.
 */
#ifndef PARATAXIS_IO_H
#define PARATAXIS_IO_H

#include <sys/select.h> /* sigset_t: <signal.h> hides it under strict C11 */
#include <sys/socket.h>
#include <sys/types.h>

#include <parataxis/error.h>
#include <parataxis/types.h>

/** What to wait for, and what is ready. Errors and hang-up count as both. */
enum { PX_READABLE = 1, PX_WRITABLE = 2 };

PX_BEGIN_DECLS

/** Wait until `fd` is ready for one of `events`. A regular file is always
 *  ready. If the descriptor is closed behind our back while it waits, this is
 *  PX_EBADF at the latest when the number is waited on again; by px_close(),
 *  PX_ECLOSED at once. Where the library was built with poll(2), a number that
 *  is another file's by then is not always told apart: close with px_close()
 *  there. Cancellation point.
 *  @return those of `events` that are ready, above 0; PX_EINVAL if events is 0
 *  or has unknown bits, PX_EBADF, PX_ECLOSED, PX_ENOMEM, PX_ECANCELED,
 *  PX_ETIMEDOUT, PX_ENOFIBER where it would have to wait off-fiber, or another
 *  -errno of the poller. */
PX_API PX_NODISCARD int px_wait_fd(int fd, int events);

/** read(2), waiting until there is something. Where the library was built with
 *  poll(2), a socket with IP_RECVERR must have its queue of errors read, too: a
 *  wait beside an error keeps the thread busy. Cancellation point.
 *  @return bytes read, 0 at the end; -errno, or a code as px_wait_fd(). */
PX_API PX_NODISCARD ssize_t px_read(int fd, void *buf, size_t n);

/** write(2), waiting until there is room; one transfer, which may be short.
 *  To a terminal that is blocking it is some plain characters at a time, or one
 *  tab or line end. A blocking eventfd whose counter has no room for what is
 *  added blocks the thread: px_nonblock() it. Cancellation point.
 *  @return bytes written; -errno (PX_EPIPE), or a code as px_wait_fd(). */
PX_API PX_NODISCARD ssize_t px_write(int fd, const void *buf, size_t n);

/** Write all `n` bytes. Cancellation point.
 *  @return 0; or a code as px_write(). *done (which may be NULL) says how much
 *  went out, in either case. */
PX_API PX_NODISCARD int px_write_all(int fd, const void *buf, size_t n,
                                     size_t *done);

/** accept(2), waiting for a connection. Running out of descriptors (-EMFILE,
 *  -ENFILE) is returned, never retried. Cancellation point.
 *  @return the new descriptor, non-blocking and close-on-exec; -errno, or a
 *  code as px_wait_fd(). */
PX_API PX_NODISCARD int px_accept(int fd, struct sockaddr *addr,
                                  socklen_t *len);

/** connect(2), waiting until it is decided. Sets O_NONBLOCK on `fd`. It begins
 *  before it waits, so one that is interrupted, or that would have to wait off
 *  a fiber, may be under way: px_close() the descriptor. Cancellation point.
 *  @return 0; -errno (-ECONNREFUSED, ...), or a code as px_wait_fd(). */
PX_API PX_NODISCARD int px_connect(int fd, const struct sockaddr *addr,
                                   socklen_t len);

/** Wait for one of the signals in `set`, which the caller keeps blocked (in
 *  every thread, if it is sent to the process). Pending ones come at once. An
 *  ordinary fiber then acts on it, so no handler's rules apply. Of several that
 *  wait, the first gets it. Cancellation point. @return the signal's number;
 *  PX_EINVAL for NULL, PX_ECANCELED, PX_ETIMEDOUT, PX_ENOFIBER, -EMFILE, ... */
PX_API PX_NODISCARD int px_wait_signal(const sigset_t *set);

/** Set O_NONBLOCK. Never parks. @return 0; -errno, and if the number is closed,
 *  whoever waits on it is told, as by px_wait_fd(). */
PX_API int px_nonblock(int fd);

/** Wake whoever of this thread waits on `fd` with PX_ECLOSED, forget it, and
 *  close it. Of a descriptor never used here it is close(2). The descriptor is
 *  closed whatever is returned, but for PX_EBADF. On the thread whose fibers
 *  used it: from another, px_offload()'s among them, their loop is not told,
 *  and takes the next file of that number for the old one. Never parks.
 *  @return 0, also for EINTR; -errno. */
PX_API int px_close(int fd);

PX_END_DECLS

#endif
