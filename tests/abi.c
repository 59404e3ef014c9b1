/* SPDX-License-Identifier: MIT */
/*
 * abi.c - the sizes and offsets that programs were compiled with.
 *
 * Users embed these structs, so each size is part of the ABI, which stays the
 * same while the SOVERSION (0.MINOR until 1.0) does. A field is added by using
 * up `reserved`, never by growing. Numbers are those of 64-bit machines; other
 * machines have their own, which only must not change by accident.
 */
#include <parataxis/parataxis.h>

#define SIZE(type, size, align)                                                \
    _Static_assert(sizeof(type) == (size), "the size of " #type " changed");   \
    _Static_assert(_Alignof(type) == (align),                                  \
                   "the alignment of " #type " changed")
#define OFFSET(type, field, offset)                                            \
    _Static_assert(offsetof(type, field) == (offset),                          \
                   #type "." #field " has moved")
#define SAME_TYPE(type, other)                                                 \
    _Static_assert(_Generic((type)0, other : 1, default : 0),                  \
                   #type " is no longer " #other)

SAME_TYPE(px_nsec, int64_t);
SAME_TYPE(px_fid, int64_t);
SIZE(px_clock, 4, 4);

_Static_assert(PX_CLOCK_REAL == 0 && PX_CLOCK_VIRTUAL == 1, "px_clock");
_Static_assert(PX_READABLE == 1 && PX_WRITABLE == 2, "events");
_Static_assert(PX_NO_FIBER == -1 && PX_SEM_UNBOUNDED == -1, "marks");
_Static_assert(PX_ENOFIBER == -5001 && PX_ENOTLOCKED == -5002 &&
                   PX_ENEGATIVE == -5003 && PX_ECLOSED == -5004 &&
                   PX_ESTALLED == -5005,
               "the library's own codes");

#if UINTPTR_MAX == UINT64_MAX
SIZE(px_waitq, 16, 8);
SIZE(px_sem, 80, 8);
SIZE(px_sem_guard, 16, 8);
SIZE(px_mutex, 56, 8);
SIZE(px_mutex_guard, 16, 8);
SIZE(px_waitgroup, 48, 8);
SIZE(px_scope, 96, 8);
SIZE(px_group, 176, 8);

OFFSET(px_sem_guard, status, 8);
OFFSET(px_mutex_guard, status, 8);

SIZE(px_run_options, 120, 8);
OFFSET(px_run_options, stack_size, 0);
OFFSET(px_run_options, clock, 8);
OFFSET(px_run_options, shuffle_seed, 16);
OFFSET(px_run_options, on_deadlock, 24);
OFFSET(px_run_options, ctx, 32);
OFFSET(px_run_options, offload_threads, 40);
OFFSET(px_run_options, timer_slack, 48);
OFFSET(px_run_options, guard_size, 56);
OFFSET(px_run_options, max_fibers, 64);
OFFSET(px_run_options, wipe_stacks, 72);
OFFSET(px_run_options, result, 80);
OFFSET(px_run_options, reserved, 88);

SIZE(px_spawn_options, 64, 8);
OFFSET(px_spawn_options, name, 0);
OFFSET(px_spawn_options, stack_size, 8);
OFFSET(px_spawn_options, queued, 16);
OFFSET(px_spawn_options, arg_size, 24);
OFFSET(px_spawn_options, reserved, 32);
#endif

/* It has compiled: that was the test. */
int main(void)
{
    return px_version() / 100 == PX_VERSION_MAJOR * 100 + PX_VERSION_MINOR ? 0
                                                                           : 1;
}
