/* SPDX-License-Identifier: MIT */
/*
 * sanitizer.h - what the tools must be told about stacks and switches.
 *
 * The only #if for tools in the library. Without a tool everything here is
 * nothing: no field, no code.
 *
 *   ASan      must know the bounds of the stack it goes to, keeps a fake stack
 *             per fiber, and must forget the red zones of dead frames.
 *   LSan      looks for pointers in the stacks of parked fibers.
 *   TSan      has a context per fiber; the call that changes it must stand
 *             right before the switch, in the same function.
 *   MSan      (clang) wants the bounds too.
 *   Valgrind  must be told of stacks, or takes a switch for a huge frame.
 */
#ifndef PX_CONTEXT_SANITIZER_H
#define PX_CONTEXT_SANITIZER_H

#include <stdbool.h>
#include <stddef.h>

#include "context/context.h"

#if defined(__SANITIZE_ADDRESS__)
#define PX_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PX_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define PX_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PX_TSAN 1
#endif
#endif
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define PX_MSAN 1
#endif
#endif

#if defined(PX_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#if defined(PX_TSAN)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(PX_MSAN)
#include <sanitizer/msan_interface.h>
void __msan_start_switch_fiber(const void *bottom, size_t size);
void __msan_finish_switch_fiber(const void **bottom_old, size_t *size_old);
#endif

#if defined(PX_ASAN) || defined(PX_TSAN) || defined(PX_MSAN)
#define PX_SANITIZED 1

/* What a tool keeps of a fiber. */
struct px_annotation {
    const void *low; /* the stack; of the thread's own: learned on the way */
    size_t size;
    void *fake_stack; /* ASan */
    void *tsan;
    unsigned uses;              /* of the TSan context */
    struct px_annotation *left; /* the one that was left to get here */
};
#define PX_ANNOTATION struct px_annotation annotation;

/* Making and destroying a TSan context costs a millisecond, a switch a ten
 * thousandth of it: a few are kept while the run lasts, and used again. Not too
 * often: the frames that a fiber ends in stay on the context's shadow stack. */
#if defined(PX_TSAN)
#define PX_TSAN_USES 1000
#define PX_TSAN_SPARES 256
struct px_tsan_spares {
    size_t count;
    struct {
        void *context;
        unsigned uses;
    } spares[PX_TSAN_SPARES];
};
extern _Thread_local struct px_tsan_spares px__tsan_spares;
#define PX_SANITIZER_DEFINITIONS                                               \
    _Thread_local struct px_tsan_spares px__tsan_spares;
#endif

static inline void px__note_thread(struct px_annotation *note)
{
#if defined(PX_TSAN)
    note->tsan = __tsan_get_current_fiber();
#else
    (void)note;
#endif
}

static inline void px__note_birth(struct px_annotation *note, const void *low,
                                  size_t size)
{
    note->low = low;
    note->size = size;
    note->fake_stack = NULL;
#if defined(PX_TSAN)
    if (px__tsan_spares.count > 0) {
        size_t last = --px__tsan_spares.count;

        note->tsan = px__tsan_spares.spares[last].context;
        note->uses = px__tsan_spares.spares[last].uses;
    } else {
        note->tsan = __tsan_create_fiber(0);
        note->uses = 0;
    }
    note->uses++;
#endif
}

static inline void px__note_death(struct px_annotation *note)
{
#if defined(PX_TSAN)
    if (note->uses < PX_TSAN_USES && px__tsan_spares.count < PX_TSAN_SPARES) {
        size_t next = px__tsan_spares.count++;

        px__tsan_spares.spares[next].context = note->tsan;
        px__tsan_spares.spares[next].uses = note->uses;
    } else {
        __tsan_destroy_fiber(note->tsan);
    }
#endif
    note->tsan = NULL;
}

/* On the thread's own stack, when every fiber has ended. */
static inline void px__note_end(void)
{
#if defined(PX_TSAN)
    while (px__tsan_spares.count > 0)
        __tsan_destroy_fiber(
            px__tsan_spares.spares[--px__tsan_spares.count].context);
#endif
}

static inline void px__note_name(struct px_annotation *note, const char *name)
{
#if defined(PX_TSAN)
    if (note->tsan)
        __tsan_set_fiber_name(note->tsan, name);
#else
    (void)note;
    (void)name;
#endif
}

/* On the new stack, after every switch. `left` is learned, if it is not yet
 * known where its stack is: the thread's own. */
static inline void px__note_arrival(struct px_annotation *self)
{
#if defined(PX_ASAN) || defined(PX_MSAN)
    const void *low = NULL;
    size_t size = 0;

#if defined(PX_ASAN)
    __sanitizer_finish_switch_fiber(self->fake_stack, &low, &size);
#else
    __msan_finish_switch_fiber(&low, &size);
#endif
    if (self->left && !self->left->low) {
        self->left->low = low;
        self->left->size = size;
    }
#else
    (void)self;
#endif
}

/* Before every switch, in the function that switches: TSan's shadow stack must
 * not see a call or a return between its own switch and the real one. A dying
 * fiber's fake stack is given up. */
static inline __attribute__((always_inline)) void
px__note_departure(struct px_annotation *self, struct px_annotation *next,
                   int dying)
{
    next->left = self;
#if defined(PX_ASAN)
    __sanitizer_start_switch_fiber(dying ? NULL : &self->fake_stack, next->low,
                                   next->size);
#elif defined(PX_MSAN)
    __msan_start_switch_fiber(next->low, next->size);
#endif
#if !defined(PX_ASAN)
    (void)dying;
#endif
#if defined(PX_TSAN)
    __tsan_switch_to_fiber(next->tsan, 0);
#endif
}

/* The annotated switch, and the first one to a fiber. */
static inline __attribute__((always_inline)) int
px__note_switch(struct px_annotation *self, struct px_annotation *next,
                int dying, void **save, void *to, int verdict)
{
    px__note_departure(self, next, dying);
    verdict = px__context_switch(save, to, verdict);
    px__note_arrival(self);
    return verdict;
}

static inline __attribute__((always_inline)) int
px__note_launch(struct px_annotation *self, struct px_annotation *next,
                void **save, void *top, void *low, void (*body)(void *fiber),
                void *fiber, void **from)
{
    int verdict;

    px__note_departure(self, next, 0);
    verdict = px__context_launch(save, top, low, body, fiber, from);
    px__note_arrival(self);
    return verdict;
}

/* Leave fiber `self` for fiber `next`; comes back with the verdict. */
#define PX_SWITCH(self, next, dying)                                           \
    px__note_switch(&(self)->annotation, &(next)->annotation, dying,           \
                    &(self)->sp, (next)->sp, (next)->verdict)
/* Leave `self` for `next`, which begins: its sp is the top of its stack. */
#define PX_LAUNCH(self, next, low, body)                                       \
    px__note_launch(&(self)->annotation, &(next)->annotation, &(self)->sp,     \
                    (next)->sp, low, body, next, &(next)->sp)
/* Leave `self`, which has ended, for `next`. */
#define PX_LEAVE(self, next)                                                   \
    (px__note_departure(&(self)->annotation, &(next)->annotation, 1),          \
     px__context_leave((self)->sp, (next)->sp, (next)->verdict))
#define PX_NOTE_THREAD(fiber) px__note_thread(&(fiber)->annotation)
#define PX_NOTE_BIRTH(fiber, low, size)                                        \
    px__note_birth(&(fiber)->annotation, low, size)
#define PX_NOTE_ARRIVAL(fiber) px__note_arrival(&(fiber)->annotation)
#define PX_NOTE_NAME(fiber, name) px__note_name(&(fiber)->annotation, name)
#define PX_NOTE_DEATH(fiber) px__note_death(&(fiber)->annotation)
#define PX_NOTE_END() px__note_end()
#else
#define PX_ANNOTATION
#define PX_SWITCH(self, next, dying)                                           \
    px__context_switch(&(self)->sp, (next)->sp, (next)->verdict)
#define PX_LAUNCH(self, next, low, body)                                       \
    px__context_launch(&(self)->sp, (next)->sp, low, body, next, &(next)->sp)
#define PX_LEAVE(self, next)                                                   \
    px__context_leave((self)->sp, (next)->sp, (next)->verdict)
#define PX_NOTE_THREAD(fiber) ((void)(fiber))
#define PX_NOTE_BIRTH(fiber, low, size) ((void)(fiber))
#define PX_NOTE_ARRIVAL(fiber) ((void)(fiber))
#define PX_NOTE_NAME(fiber, name) ((void)(fiber))
#define PX_NOTE_DEATH(fiber) ((void)(fiber))
#define PX_NOTE_END() ((void)0)
#endif

#if !defined(PX_SANITIZER_DEFINITIONS)
#define PX_SANITIZER_DEFINITIONS
#endif

/* A stack goes back for reuse: no trace of the frames that were on it. */
static inline void px__note_stack_clean(void *low, size_t size)
{
#if defined(PX_ASAN)
    __asan_unpoison_memory_region(low, size);
#elif defined(PX_MSAN)
    __msan_unpoison(low, size);
#else
    (void)low;
    (void)size;
#endif
}

/* Memory in which parked fibers may hold the only pointer to something. */
static inline void px__note_roots(void *low, size_t size)
{
#if defined(PX_ASAN)
    __lsan_register_root_region(low, size);
#else
    (void)low;
    (void)size;
#endif
}

static inline void px__note_no_roots(void *low, size_t size)
{
#if defined(PX_ASAN)
    __lsan_unregister_root_region(low, size);
#else
    (void)low;
    (void)size;
#endif
}

/* LSan leaves out what is mapped without access, but faults on a light guard,
 * of which the mapping says nothing. So the guards of the first stacks are
 * mappings, and it looks through those; there is no room for so many of them as
 * there may be fibers, so later stacks are not looked through. Whether `count`
 * guards more, light ones perhaps, are; of `mapped` there may be `most`. */
static inline bool px__note_guards(bool light, size_t *mapped, size_t count,
                                   size_t most)
{
#if defined(PX_ASAN)
    if (!light || *mapped + count > most)
        return light;
    *mapped += count;
    return false;
#else
    (void)mapped;
    (void)count;
    (void)most;
    return light;
#endif
}

static inline void px__note_stack_roots(void *low, size_t size, bool light)
{
#if defined(PX_ASAN)
    if (!light)
        px__note_roots(low, size);
#else
    (void)low;
    (void)size;
    (void)light;
#endif
}

static inline void px__note_no_stack_roots(void *low, size_t size, bool light)
{
#if defined(PX_ASAN)
    if (!light)
        px__note_no_roots(low, size);
#else
    (void)low;
    (void)size;
    (void)light;
#endif
}

#if defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define PX_VALGRIND 1
#endif
#endif

#if defined(PX_VALGRIND)
static inline int px__under_valgrind(void)
{
    return RUNNING_ON_VALGRIND != 0;
}

static inline unsigned px__valgrind_stack(void *low, void *top)
{
    return VALGRIND_STACK_REGISTER(low, top);
}

static inline void px__valgrind_no_stack(unsigned id)
{
    VALGRIND_STACK_DEREGISTER(id);
}

/* What earlier frames made inaccessible is free to be written again. */
static inline void px__valgrind_reuse(void *low, size_t size)
{
    (void)VALGRIND_MAKE_MEM_UNDEFINED(low, size);
}
#else
static inline int px__under_valgrind(void)
{
    return 0;
}

static inline unsigned px__valgrind_stack(void *low, void *top)
{
    (void)low;
    (void)top;
    return 0;
}

static inline void px__valgrind_no_stack(unsigned id)
{
    (void)id;
}

static inline void px__valgrind_reuse(void *low, size_t size)
{
    (void)low;
    (void)size;
}
#endif

/* Whether a tool keeps something of each fiber, that ends with it. */
static inline int px__fibers_are_watched(void)
{
#if defined(PX_SANITIZED)
    return 1;
#else
    return 0;
#endif
}

#endif
