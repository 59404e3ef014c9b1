/* SPDX-License-Identifier: MIT */
/* macros.h - the handful of macros that every file may use. */
#ifndef PX_BASE_MACROS_H
#define PX_BASE_MACROS_H

#include <stddef.h>

#define PX_CONTAINER_OF(pointer, type, member)                                 \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#define PX_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define PX_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* What cannot happen as far as anybody can see, and is answered nevertheless,
 * should somebody be wrong about that. No test can get there: a build that
 * counts coverage takes the answer for a constant. `scripts/coverage` counts
 * these marks, too; each says why. */
#ifdef PX_COVERAGE
#define PX_NEVER(condition) (sizeof(condition) == 0)
#else
#define PX_NEVER(condition) PX_UNLIKELY(condition)
#endif

/* Out of line and out of the way: the paths that are not the usual one. */
#define PX_COLD __attribute__((cold, noinline))
/* Kept apart from a fast path that would otherwise save registers for it. */
#define PX_NOINLINE __attribute__((noinline))
/* It keeps its return address, as the place in the user's program: link time
 * optimisation must not make it a part of its caller. */
#define PX_KEEPS_SITE __attribute__((noinline))
/* Hot paths start on a cache line of their own: their speed must not depend
 * on what happens to stand before them. */
#define PX_HOT __attribute__((aligned(64)))

/* Between an allocation and the line that restores errno: gcc knows that
 * posix_memalign() leaves it alone, clang that of others too, and takes that
 * line for idle. The C library knows nothing of it. */
#define PX_ERRNO_MAY_HAVE_CHANGED() __asm__ volatile("" ::: "memory")

#endif
