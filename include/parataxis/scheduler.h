/* SPDX-License-Identifier: MIT */
/*
 * scheduler.h - fibers, and the run that they live in.
 *
 *     static int child(void *arg) { ...; return 0; }
 *     static int body(void *arg)
 *     {
 *         px_fiber *fiber;
 *         int value, err = px_spawn(&fiber, child, arg);
 *         return err ? err : px_await(fiber, &value);
 *     }
 *     int main(void) { return px_run(body, NULL) ? 1 : 0; }
 *
 * A run is one loop on one thread. Its fibers take turns: one runs until it
 * parks (waits, sleeps, yields) or ends. A spawned fiber starts at once, on
 * its spawner's time; from then on it is first in, first out, so a program
 * without real I/O runs the same way every time.
 *
 * "Cancellation point." marks the calls that may park. On entry, and while
 * parked, each fails with PX_ECANCELED or PX_ETIMEDOUT once a scope around
 * the fiber has fired (cancel.h), and with PX_ESTALLED when the run is
 * deadlocked. Every 64th failure in a row also goes to the tail of the run
 * queue, so a loop that ignores the code cannot stop the others. "Never
 * parks." marks the rest: they neither wait nor fail for a cancellation.
 *
 * "Off-fiber" means: on a thread that is not inside px_run(), or in an
 * on_deadlock callback. In a forked child the run does not exist: the child
 * is off-fiber, and may exec, _exit, or px_run() anew.
 *
 * Nothing here may be called from a signal handler (see px_wait_signal), and
 * apart from px_post(), px_loop_hold() and px_loop_unhold() nothing may be
 * called for a fiber or an object of another thread.
 */
#ifndef PARATAXIS_SCHEDULER_H
#define PARATAXIS_SCHEDULER_H

#include <stdio.h>

#include <parataxis/clock.h>
#include <parataxis/error.h>
#include <parataxis/types.h>

/** How a run is to be. All zero is the default; keep `reserved` zero. */
typedef struct px_run_options {
    /** Usable bytes of a fiber's stack; 0 is 64 KiB, less than 16 KiB is
     *  raised to it, and sizes are rounded up to the next of a few steps.
     *  The main fiber has at least 1 MiB. */
    size_t stack_size;
    px_clock clock;
    /** Not 0: the next fiber to run is picked pseudo-randomly, the same way
     *  for the same seed. Eager starts, and who is granted what, are not. */
    uint64_t shuffle_seed;
    /** Called once, off-fiber, when the run is found deadlocked, instead of
     *  the report on stderr. May call whatever never parks, px_dump() too,
     *  and so may end the deadlock. It may fork; in the child, returning from
     *  it aborts, as returning from a body does. */
    void (*on_deadlock)(void *ctx);
    void *ctx;
    /** The most threads px_offload() uses; 0 is the number of cores, at
     *  least 8, at most 64; more than 4096 is 4096. They are started on
     *  demand. */
    unsigned offload_threads;
    /** Timers may be this late, never early, so that near ones share a
     *  wake-up. */
    px_nsec timer_slack;
    /** Bytes of the guard below each stack; 0 is one page. Code built with
     *  -fstack-clash-protection never jumps over it on x86-64; on AArch64 it
     *  needs 64 KiB for that. */
    size_t guard_size;
    /** The most fibers alive at once, the main one too; beyond it px_spawn()
     *  is PX_ENOMEM. 0: no bound. What is posted is not bounded by it. */
    size_t max_fibers;
    /** Zero a stack before another fiber gets it. */
    bool wipe_stacks;
    /** If set, px_run() stores the body's own value here, apart from its
     *  result. Untouched when the run could not start. */
    int *result;
    uintptr_t reserved[4];
} px_run_options;

/** How a fiber is to be. All zero is the default; keep `reserved` zero. */
typedef struct px_spawn_options {
    const char *name;  /* copied, cut at 31 bytes; NULL: none */
    size_t stack_size; /* as in px_run_options; 0: the run's */
    /** Start at the tail of the run queue, not at once. */
    bool queued;
    /** Not 0: that many bytes at `arg` are copied to the child's stack, and
     *  fn gets the copy (aligned as malloc aligns). At most half the stack. */
    size_t arg_size;
    uintptr_t reserved[4];
} px_spawn_options;

PX_BEGIN_DECLS

/** Run `fn(arg)` as fiber 0 of a new loop on this thread, and return when
 *  every fiber has ended. Detached fibers are waited for; what they were given
 *  must outlive them, and fn's frame is gone when fn returns.
 *  Parks nothing: it is called off-fiber. Never parks.
 *  @return fn's value as it is, negative or not; PX_ESTALLED if the run
 *  deadlocked. Not started: PX_EINVAL for a NULL fn, PX_EBUSY inside another
 *  run on this thread, PX_ENOMEM, or another -errno of the system. */
PX_API int px_run(px_fn fn, void *arg);

/** px_run() with options; NULL options are the defaults. Never parks.
 *  @return as px_run(); PX_EINVAL also for an option that is out of range. */
PX_API int px_run_with(const px_run_options *options, px_fn fn, void *arg);

/** Start a fiber that runs `fn(arg)`. It runs at once, until it first parks or
 *  ends; then the caller goes on, ahead of the run queue. It has no scope of
 *  its spawner's, but inherits its floating-point control word. What `arg`
 *  points to must outlive it.
 *  With `out` the handle is stored there before the child runs: consume it by
 *  px_await() or px_detach(), or it is reclaimed when the run ends. A NULL
 *  `out` detaches the child at once. Works in a fired scope. Never parks.
 *  @return 0; nothing started and *out untouched: PX_EINVAL for a NULL fn,
 *  PX_ENOFIBER; PX_ENOMEM at a limit: memory, address space (RLIMIT_AS),
 *  mappings (vm.max_map_count) or max_fibers. Those that exist go on, and once
 *  some have ended the next starts. */
PX_API int px_spawn(px_fiber **out, px_fn fn, void *arg);

/** px_spawn() with options; NULL options are the defaults. Never parks.
 *  @return as px_spawn(); PX_EINVAL also for an arg_size above half the stack
 *  or without an arg, and for a stack_size that no machine has. */
PX_API int px_spawn_with(px_fiber **out, const px_spawn_options *options,
                         px_fn fn, void *arg);

/** Wait until `fiber` has ended, store its body's value in *result (which may
 *  be NULL) and consume the handle: once this returns it is a freed pointer.
 *  Cancellation point.
 *  @return 0; with the handle still good: PX_EINVAL for NULL, and for a
 *  detached, a group's or the main fiber; PX_EDEADLK for the caller itself;
 *  PX_EBUSY while another fiber awaits it; PX_ECANCELED, PX_ETIMEDOUT,
 *  PX_ESTALLED, PX_ENOFIBER where it would have to wait off-fiber. */
PX_API PX_NODISCARD int px_await(px_fiber *fiber, int *result);

/** Wait until all `n` fibers have ended, store their values in `results` (which
 *  may be NULL) in the order of the array, and consume all handles. While it
 *  waits, none of them can be awaited elsewhere, and the array must stay as it
 *  is. Cancellation point.
 *  @return 0 with all consumed; a code of px_await() with none consumed,
 *  PX_EINVAL also for a NULL entry or a handle that is there twice. */
PX_API PX_NODISCARD int px_await_all(px_fiber **fibers, size_t n, int *results);

/** Give the handle up: the fiber is reclaimed when it ends. Never parks.
 *  @return 0; PX_EINVAL for NULL and for a detached, a group's or the main
 *  fiber, PX_EBUSY while a fiber awaits it. */
PX_API int px_detach(px_fiber *fiber);

/** Fire the scope that the library keeps around each fiber's body: its
 *  cancellation points fail with PX_ECANCELED, the one it is parked in at this
 *  moment. A fiber that has not begun still runs its body; one that has ended
 *  is left alone. Idempotent; also off-fiber on the run's thread. Never parks.
 *  @return 0; PX_EINVAL for NULL. */
PX_API int px_cancel(px_fiber *fiber);

/** px_cancel(), then wait for the fiber's end shielded from every scope, and
 *  consume the handle. Parks, but fails for no cancellation.
 *  @return as px_await(), without PX_ECANCELED and PX_ETIMEDOUT; where it
 *  refuses, nothing was cancelled (PX_ESTALLED: it was). */
PX_API PX_NODISCARD int px_cancel_and_await(px_fiber *fiber, int *result);

/** Whether the fiber has ended. False for NULL. Never parks. */
PX_API bool px_is_done(const px_fiber *fiber);

/** The running fiber; NULL off-fiber. Good as a handle for px_cancel(),
 *  px_id(), px_name(). Never parks. */
PX_API px_fiber *px_self(void);

/** The running fiber's id; PX_NO_FIBER off-fiber. Never parks. */
PX_API px_fid px_current_id(void);

/** A fiber's id; PX_NO_FIBER for NULL. Never parks. */
PX_API px_fid px_id(const px_fiber *fiber);

/** A fiber's name, "" if it has none or is NULL. Good until it is set anew or
 *  the fiber is reclaimed. Never parks. */
PX_API const char *px_name(const px_fiber *fiber);

/** Name a fiber, for reports; copied, cut at 31 bytes; NULL or "" takes the
 *  name away. Never parks.
 *  @return 0; the name as before: PX_EINVAL for a NULL fiber, PX_ENOMEM. */
PX_API int px_set_name(px_fiber *fiber, const char *name);

/** Go to the tail of the run queue. Cancellation point.
 *  @return 0, PX_ECANCELED, PX_ETIMEDOUT, PX_ENOFIBER. */
PX_API PX_NODISCARD int px_yield(void);

/** Sleep for `duration`; 0 or less yields once. Never returns 0 early.
 *  PX_FOREVER sleeps until something fires; alone it is a deadlock.
 *  Cancellation point.
 *  @return 0, PX_ECANCELED, PX_ETIMEDOUT, PX_ESTALLED, PX_ENOFIBER. */
PX_API PX_NODISCARD int px_sleep(px_nsec duration);

/** Sleep until px_now() has reached `when`; the past yields once.
 *  Cancellation point. @return as px_sleep(). */
PX_API PX_NODISCARD int px_sleep_until(px_nsec when);

/** Fire a scope around the whole run: every fiber's cancellation points fail
 *  with PX_ECANCELED, the caller's too, and those of fibers spawned later;
 *  shields hold. px_run() still returns the body's value. Never parks.
 *  @return 0, PX_ENOFIBER. */
PX_API int px_stop(void);

/** Write what every fiber is doing to `to`, a line each: id, name, state, what
 *  it waits on, who holds that, since when (by the last time the loop read its
 *  clock), where it was spawned. Cycles of mutexes are named. Works off-fiber
 *  only in on_deadlock. Never parks.
 *  @return 0, PX_EINVAL for NULL, PX_ENOFIBER. */
PX_API int px_dump(FILE *to);

PX_END_DECLS

#endif
