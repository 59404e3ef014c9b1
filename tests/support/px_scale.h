/* SPDX-License-Identifier: MIT */
/*
 * px_scale.h - how much a test does: counts that the tool at hand can hold.
 *
 * ThreadSanitizer keeps about a megabyte per fiber, valgrind a list of stacks
 * that it searches, an emulator is slow. PX_TEST_SMALL in the environment says
 * that one of them is at work; the sanitizers are known at compile time.
 */
#ifndef PX_SCALE_H
#define PX_SCALE_H

#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#define PX_SCALE_FEATURE(name) __has_feature(name)
#else
#define PX_SCALE_FEATURE(name) 0
#endif

#if defined(__SANITIZE_THREAD__) || PX_SCALE_FEATURE(thread_sanitizer)
#define PX_UNDER_TSAN 1
#else
#define PX_UNDER_TSAN 0
#endif

#if defined(__SANITIZE_ADDRESS__) || PX_SCALE_FEATURE(address_sanitizer)
#define PX_UNDER_ASAN 1
#else
#define PX_UNDER_ASAN 0
#endif

/* A tool is at work that makes memory figures and address limits its own. */
static inline int is_small(void)
{
    return PX_UNDER_TSAN || getenv("PX_TEST_SMALL") != NULL;
}

static inline int has_shadow(void)
{
    return PX_UNDER_ASAN || is_small();
}

/* Take off what an emulator says of its own when the program dies. */
static inline void forget_emulator(char *output)
{
    char *line = strstr(output, "qemu: uncaught target signal");

    if (line)
        *line = '\0';
}

/* `n` fibers alive at once, or as many as the tool holds. */
static inline int fibers(int n)
{
    return is_small() && n > 1000 ? 1000 : n;
}

/* `n` turns of a loop, or a hundredth of them. */
static inline int turns(int n)
{
    return is_small() && n >= 100 ? n / 100 : n;
}

#endif
