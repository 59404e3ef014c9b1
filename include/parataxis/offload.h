/* SPDX-License-Identifier: MIT */
/*
 * offload.h - blocking calls on other threads, and the way back.
 *
 * px_offload() is for what blocks and knows no fibers: getaddrinfo(), a file,
 * a compressor. px_post() is how another thread hands work to a loop:
 *
 *     loop = px_current_loop();
 *     err = px_loop_hold(loop);         on the loop's thread, before sharing it
 *     ... give loop to a thread, which calls px_post(loop, fn, arg) ...
 *     px_loop_unhold(loop);             when no more will come
 */
#ifndef PARATAXIS_OFFLOAD_H
#define PARATAXIS_OFFLOAD_H

#include <parataxis/error.h>
#include <parataxis/types.h>

/** A run's loop, for other threads to post to. A pointer to one is good until
 *  its run has ended: hold it before you give it away. */
typedef struct px_loop px_loop;

PX_BEGIN_DECLS

/** Run `fn(arg)` on a pool thread, and wait for it. Interrupted while it is
 *  still queued, it is taken back and never runs; once it has started it is
 *  waited for, and its value returned: nothing can cut it short. The pool's
 *  threads run with every signal blocked and end with the run. fn must call
 *  nothing of this library that needs a fiber, and no C++ exception may leave
 *  it. It may fork; to return in the child aborts. Cancellation point.
 *  @return fn's value; fn not run: PX_EINVAL for a NULL fn, PX_ECANCELED,
 *  PX_ETIMEDOUT, PX_ENOFIBER (a pool thread is off-fiber too), PX_ENOMEM,
 *  PX_EAGAIN if no thread could be started and none is there, or another -errno
 *  (-EMFILE) if the loop has no descriptor left to be woken with. */
PX_API PX_NODISCARD int px_offload(px_fn fn, void *arg);

/** Start `fn(arg)` as a new fiber on `loop`, from any thread: detached, at the
 *  tail of the run queue, in no scope but the run's. Posts of one thread start
 *  in their order. Its rounding mode, and the like, are those of whichever
 *  fiber ran on the loop when it arrived. Never parks.
 *  @return 0; nothing started: PX_EINVAL for NULL, PX_ENOMEM. */
PX_API int px_post(px_loop *loop, px_fn fn, void *arg);

/** The loop that runs the calling fiber; NULL off-fiber, and when the system
 *  has no descriptors left to wake it with. Never parks. */
PX_API px_loop *px_current_loop(void);

/** Keep a run alive: while held, an idle run waits for px_post() instead of
 *  ending or reporting a deadlock. Holds count. From any thread; the first one
 *  from the loop's own, while it is sure to run. Never parks.
 *  @return 0; PX_EINVAL for NULL. */
PX_API int px_loop_hold(px_loop *loop);

/** Take one hold back. From any thread; the last one may end the run.
 *  Never parks. @return 0; PX_EINVAL for NULL, and without a hold. */
PX_API int px_loop_unhold(px_loop *loop);

PX_END_DECLS

#endif
