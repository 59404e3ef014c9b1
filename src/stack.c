/* SPDX-License-Identifier: MIT */
/*
 * stack.c - a slab allocator for guarded stacks.
 *
 * A slab is one mapping, cut into slots of the same size:
 *
 *     | guard | usable ........................ | head | shift |
 *             ^ low                             ^ top: px_stack
 *
 * Slots are carved one after the other; carving is when the guard is set, so
 * a slab's size costs address space and nothing else. Light guards
 * (MADV_GUARD_INSTALL, Linux 6.13) leave the mapping whole; mprotect() splits
 * it in two for every guard, and the kernel's limit on mappings then ends it
 * near 32,750 stacks. The kernel's word is not enough: an emulator may accept
 * the advice and set no guard. So the first guard of the process is tried out.
 *
 * Stack tops are shifted by a multiple of 64 bytes, another one for each slot:
 * with all of them page aligned, a thousand fibers' frames would compete for
 * the same few sets of the cache. Head and shift are beyond what was asked for,
 * which is always usable.
 *
 * Freed stacks are linked through their own heads, which are resident anyway.
 * Memory goes back to the system when free stacks could hold more than
 * WARM_BYTES; most hold a small part of that. One by one that costs two
 * microseconds each, so it is done by blocks: as soon as all stacks of a block
 * are free, by one call. Free stacks that lie so scattered that they could hold
 * eight times as much go back one by one. What is left of either is an index in
 * its slab.
 */
#include "stack.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <parataxis/error.h>

#include "base/macros.h"
#include "context/sanitizer.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef MADV_NOHUGEPAGE
#define MADV_NOHUGEPAGE MADV_NORMAL
#endif
#ifndef MAP_STACK
#define MAP_STACK 0
#endif
#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

#define WARM_BYTES ((size_t)1 << 30)
#define SCATTERED 8 /* times WARM_BYTES */
#define BLOCK 32    /* stacks */
#define LIGHT_GUARD ((size_t)1 << 20)
#define MAPPED_GUARDS 16384 /* of a pool: the system has room for twice that */
#define FIRST_SLAB 16
#define LARGEST_SLAB 65536
#define LINE ((size_t)64)
#define SHIFTS 31 /* lines: just below half a page */
#define NONE UINT32_MAX

struct px_slab {
    struct px_slab *next;      /* in the pool */
    struct px_slab *next_cold; /* in the class */
    struct px_stack_class *class;
    char *base;
    size_t slot; /* bytes */
    size_t guard;
    size_t usable;
    uint32_t count;
    uint32_t carved;
    uint32_t cold;      /* the first cold stack, NONE if there is none */
    bool listed;        /* as one with cold stacks */
    bool light;         /* its guards may be light ones */
    uint32_t *after;    /* cold stacks: the next one */
    uint8_t *warm;      /* by block: how many of it are warm */
    unsigned *valgrind; /* stack ids; NULL outside valgrind */
};

bool px__stack_no_light_guards;

static bool light_guards_work;
static uint32_t shift_start;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The kernel itself must refuse to read from a guarded page. */
static bool is_guarded(const char *page)
{
    int ends[2];
    bool guarded = false;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    guarded = write(ends[1], page, 1) < 0 && errno == EFAULT;
    (void)close(ends[0]);
    (void)close(ends[1]);
    return guarded;
}

/* Also picks where the shifts of stack tops begin: were that the same for every
 * run of a program, one leaked address would tell all. */
static void once_per_process(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *probe = mmap(NULL, page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (probe == MAP_FAILED)
        return;
    shift_start = (uint32_t)((uintptr_t)probe / page);
    light_guards_work =
        madvise(probe, page, MADV_GUARD_INSTALL) == 0 && is_guarded(probe);
    (void)munmap(probe, page);
}

/* Locked memory refuses the light guard: then it is the other one. So it is for
 * a large one: a light guard costs a page-table entry for every page. */
static bool set_guard(char *at, size_t size, bool light)
{
    if (light && size <= LIGHT_GUARD &&
        madvise(at, size, MADV_GUARD_INSTALL) == 0)
        return true;
    return mprotect(at, size, PROT_NONE) == 0;
}

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

/* Sizes come in four steps for each doubling: little is wasted, and a run has
 * few classes whatever sizes it asks for. The class and its size in bytes. */
static unsigned size_class(size_t size, size_t page, size_t *rounded)
{
    unsigned doubling = 0;
    size_t base = PX_STACK_MINIMUM, step;

    if (size < base)
        size = base;
    while (base * 2 < size) {
        base *= 2;
        doubling++;
    }
    step = (size - base + base / 4 - 1) / (base / 4); /* 0 to 4 */
    *rounded = round_up(base + step * (base / 4), page);
    return doubling * 4 + (unsigned)step;
}

void px__stack_pool_open(struct px_stack_pool *pool, size_t guard, size_t head,
                         bool wipe)
{
    memset(pool, 0, sizeof(*pool));
    pool->page = (size_t)sysconf(_SC_PAGESIZE);
    pool->guard = round_up(guard ? guard : 1, pool->page);
    pool->head = head;
    pool->valgrind = px__under_valgrind();
    pool->wipe = wipe;
    pool->last_size = SIZE_MAX; /* no size: nothing was asked for yet */
    (void)pthread_once(&once, once_per_process);
}

static void slab_free(struct px_slab *slab)
{
    size_t size = slab->slot * slab->count;

    for (uint32_t i = 0; slab->valgrind && i < slab->carved; i++)
        px__valgrind_no_stack(slab->valgrind[i]);
    px__note_no_stack_roots(slab->base, size, slab->light);
    px__note_stack_clean(slab->base, size);
    (void)munmap(slab->base, size);
    free(slab->after);
    free(slab->warm);
    free(slab->valgrind);
    free(slab);
}

void px__stack_pool_close(struct px_stack_pool *pool)
{
    while (pool->slabs) {
        struct px_slab *slab = pool->slabs;

        pool->slabs = slab->next;
        slab_free(slab);
    }
}

static char *map(size_t size)
{
    char *base =
        mmap(NULL, size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

    if (base == MAP_FAILED)
        return NULL;
    (void)madvise(base, size, MADV_NOHUGEPAGE);
    return base;
}

static struct px_slab *slab_new(struct px_stack_pool *pool,
                                struct px_stack_class *class, size_t usable)
{
    struct px_slab *slab = calloc(1, sizeof(*slab));
    size_t slot = pool->guard + usable +
                  round_up(pool->head + (SHIFTS - 1) * LINE, pool->page);
    size_t count = class->made < FIRST_SLAB     ? FIRST_SLAB
                   : class->made > LARGEST_SLAB ? LARGEST_SLAB
                                                : class->made;

    if (!slab)
        return NULL;
    if (slot >= PX_STACK_MAIN)
        count = 1; /* these are few */
    while (!(slab->base = map(slot * count)) && count > 1)
        count /= 2; /* an address space with a limit */
    slab->after = malloc(count * sizeof(*slab->after));
    slab->warm = calloc(count / BLOCK + 1, sizeof(*slab->warm));
    if (pool->valgrind)
        slab->valgrind = calloc(count, sizeof(*slab->valgrind));
    if (!slab->base || !slab->after || !slab->warm ||
        (pool->valgrind && !slab->valgrind)) {
        if (slab->base)
            (void)munmap(slab->base, slot * count);
        free(slab->after);
        free(slab->warm);
        free(slab->valgrind);
        free(slab);
        return NULL;
    }
    slab->slot = slot;
    slab->usable = usable;
    slab->guard = pool->guard;
    slab->count = (uint32_t)count;
    slab->cold = NONE;
    slab->class = class;
    slab->next = pool->slabs;
    pool->slabs = slab;
    slab->light =
        px__note_guards(light_guards_work && !px__stack_no_light_guards,
                        &pool->mapped_guards, count, MAPPED_GUARDS);
    px__note_stack_roots(slab->base, slot * count, slab->light);
    return slab;
}

static size_t shift_of(uint32_t index)
{
    return ((size_t)shift_start + (size_t)index * 193) % SHIFTS * LINE;
}

static struct px_stack *place_of(const struct px_stack_pool *pool,
                                 const struct px_slab *slab, uint32_t index)
{
    char *end = slab->base + slab->slot * ((size_t)index + 1);

    return (struct px_stack *)(void *)(end - shift_of(index) - pool->head);
}

/* The one of that index, whose memory is zero. */
static struct px_stack *stack_at(const struct px_stack_pool *pool,
                                 struct px_slab *slab, uint32_t index)
{
    struct px_stack *stack = place_of(pool, slab, index);

    stack->low = slab->base + slab->slot * index + slab->guard;
    stack->slab = slab;
    stack->index = index;
    return stack;
}

static struct px_stack *carve(const struct px_stack_pool *pool,
                              struct px_slab *slab)
{
    char *slot = slab->base + slab->slot * slab->carved;

    if (!set_guard(slot, slab->guard, slab->light))
        return NULL;
    if (slab->valgrind)
        slab->valgrind[slab->carved] =
            px__valgrind_stack(slot + slab->guard, slot + slab->slot - 1);
    slab->class->made++;
    return stack_at(pool, slab, slab->carved++);
}

static struct px_stack *take_cold(const struct px_stack_pool *pool,
                                  struct px_stack_class *class)
{
    struct px_slab *slab = class->cold;
    struct px_stack *stack = stack_at(pool, slab, slab->cold);

    slab->cold = slab->after[slab->cold];
    if (slab->cold == NONE) {
        class->cold = slab->next_cold;
        slab->listed = false;
    }
    return stack;
}

static PX_COLD struct px_stack *acquire_new(struct px_stack_pool *pool,
                                            size_t size)
{
    int saved = errno;
    size_t usable;
    struct px_stack_class *class =
        &pool->classes[size_class(size, pool->page, &usable)];
    struct px_stack *stack = NULL;

    if (class->cold) {
        stack = take_cold(pool, class);
    } else {
        if (!class->carving || class->carving->carved == class->carving->count)
            class->carving = slab_new(pool, class, usable);
        if (class->carving)
            stack = carve(pool, class->carving);
    }
    errno = saved;
    return stack;
}

struct px_stack_class *px__stack_class(struct px_stack_pool *pool, size_t size)
{
    size_t usable;
    struct px_stack_class *class =
        &pool->classes[size_class(size, pool->page, &usable)];

    class->warm_most = WARM_BYTES / usable;
    return class;
}

/* Nearly always the same size is asked for. */
static PX_COLD void choose_class(struct px_stack_pool *pool, size_t size)
{
    pool->last = px__stack_class(pool, size);
    pool->last_size = size;
}

/* The lines that the next life begins in: most were used long ago. */
static inline void fetch_ahead(const struct px_stack *stack)
{
    const char *top = (const char *)stack;

    for (int line = -3; line < 4; line++)
        __builtin_prefetch(top + line * (ptrdiff_t)LINE, 1);
}

struct px_stack *px__stack_acquire(struct px_stack_pool *pool, size_t size)
{
    struct px_stack_class *class;
    struct px_stack *stack;

    if (PX_UNLIKELY(size != pool->last_size))
        choose_class(pool, size);
    class = pool->last;
    stack = class->warm;
    if (PX_UNLIKELY(!stack))
        return acquire_new(pool, size);
    class->warm = stack->next;
    if (class->warm) {
        class->warm->prev = NULL;
        fetch_ahead(class->warm);
    }
    class->warm_count--;
    stack->slab->warm[stack->index / BLOCK]--;
    return stack;
}

static void unlink_warm(struct px_stack *stack)
{
    struct px_stack_class *class = stack->slab->class;

    if (stack->prev)
        stack->prev->next = stack->next;
    else
        class->warm = stack->next;
    if (stack->next)
        stack->next->prev = stack->prev;
    class->warm_count--;
}

/* Give the pages of the stacks from `first` on back; they are in no list. */
static void give_back(struct px_slab *slab, uint32_t first, uint32_t count)
{
    char *base = slab->base + slab->slot * first;
    int saved = errno;

    (void)madvise(base + slab->guard, slab->slot * count - slab->guard,
                  MADV_DONTNEED);
    errno = saved;
    for (uint32_t i = first; i < first + count; i++) {
        slab->after[i] = slab->cold;
        slab->cold = i;
    }
    if (!slab->listed) {
        slab->listed = true;
        slab->next_cold = slab->class->cold;
        slab->class->cold = slab;
    }
}

/* There are many warm stacks, and this one came last: give back its block, if
 * all of that is free, or else this one, if there are far too many. */
static PX_COLD void thin_out(const struct px_stack_pool *pool,
                             struct px_stack *stack)
{
    struct px_slab *slab = stack->slab;
    struct px_stack_class *class = slab->class;
    uint32_t block = stack->index / BLOCK, first = block * BLOCK;
    uint32_t count = slab->count - first < BLOCK ? slab->count - first : BLOCK;

    if (slab->warm[block] == count) {
        for (uint32_t i = first; i < first + count; i++)
            unlink_warm(place_of(pool, slab, i));
        slab->warm[block] = 0;
        give_back(slab, first, count);
    } else if (class->warm_count >= class->warm_most * SCATTERED) {
        uint32_t index = stack->index;

        unlink_warm(stack);
        slab->warm[block]--;
        give_back(slab, index, 1);
    }
}

void px__stack_forget_frames(char *low, char *top)
{
    px__valgrind_reuse(low, (size_t)(top - low));
}

void px__stack_release(struct px_stack_pool *pool, struct px_stack *stack)
{
    struct px_stack_class *class = stack->slab->class;
    size_t used = (size_t)(px__stack_top(stack) - stack->low);

    px__note_stack_clean(stack->low, used);
    px__stack_used(pool, stack->low, px__stack_top(stack));
    if (PX_UNLIKELY(pool->wipe))
        memset(stack->low, 0, used);
    stack->prev = NULL;
    stack->next = class->warm;
    if (class->warm)
        class->warm->prev = stack;
    class->warm = stack;
    class->warm_count++;
    stack->slab->warm[stack->index / BLOCK]++;
    if (PX_UNLIKELY(class->warm_count > class->warm_most))
        thin_out(pool, stack);
}

size_t px__stack_size(const struct px_stack *stack)
{
    return stack->slab->usable;
}

size_t px__stack_usable(const struct px_stack_pool *pool, size_t size)
{
    size_t usable;

    (void)size_class(size, pool->page, &usable);
    return usable;
}

bool px__stack_guards(const struct px_stack_pool *pool, const void *address,
                      char **low)
{
    const char *at = address;

    for (struct px_slab *slab = pool->slabs; slab; slab = slab->next) {
        size_t offset = (size_t)(at - slab->base);

        if (at < slab->base || offset >= slab->slot * slab->count ||
            offset % slab->slot >= slab->guard)
            continue;
        *low = slab->base + offset / slab->slot * slab->slot + slab->guard;
        return true;
    }
    return false;
}
