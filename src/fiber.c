/* SPDX-License-Identifier: MIT */
/* fiber.c - records of fibers, their names, and what can be asked of them. */
#include "fiber.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <parataxis/scheduler.h>

#include "base/macros.h"
#include "base/panic.h"

#define CHUNK ((size_t)63) /* a page, with the head that is aligned like them */
#define MOST ((size_t)1023)      /* 128 KiB */
#define MAPPED ((size_t)1 << 16) /* a chunk of that size is one of MOST */
#define LINE ((size_t)64)

static struct px_life no_life;

px_fiber px__off_fiber = {.attention = PX_LOOK_OFF_FIBER,
                          .life = &no_life,
                          .id = PX_NO_FIBER,
                          .state = PX_STATE_RUNNING};

_Thread_local px_fiber *px__self = &px__off_fiber;

PX_SANITIZER_DEFINITIONS

/* Memory for a chunk, all zero. Many records are a mapping, so that all of it
 * goes back with the run: malloc would keep what lies below anything else. */
static void *chunk_memory(size_t size)
{
    void *memory = NULL;

    if (size >= MAPPED) {
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return NULL;
        px__note_roots(memory, size);
        return memory;
    }
    if (posix_memalign(&memory, LINE, size) != 0)
        return NULL;
    return memset(memory, 0, size);
}

static void chunk_free(struct px_fiber_chunk *chunk)
{
    size_t size = LINE + chunk->count * sizeof(px_fiber);

    if (chunk->adopted)
        return;
    if (size >= MAPPED) {
        px__note_no_roots(chunk, size);
        (void)munmap(chunk, size);
    } else {
        free(chunk);
    }
}

/* Each record in cache lines of its own. */
PX_COLD bool px__fiber_arena_grow(struct px_fiber_arena *arena)
{
    int saved = errno;
    size_t count = arena->made < CHUNK           ? CHUNK
                   : arena->made >= MOST - CHUNK ? MOST
                                                 : CHUNK * 2;
    struct px_fiber_chunk *chunk =
        chunk_memory(LINE + count * sizeof(px_fiber));

    PX_ERRNO_MAY_HAVE_CHANGED();
    errno = saved;
    if (!chunk)
        return false;
    chunk->count = count;
    chunk->fibers = (px_fiber *)(void *)((char *)chunk + LINE);
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    arena->made += count;
    for (size_t i = count; i-- > 0;) {
        chunk->fibers[i].state = PX_STATE_FREE;
        chunk->fibers[i].next = arena->free;
        arena->free = &chunk->fibers[i];
    }
    return true;
}

void px__fiber_arena_adopt(struct px_fiber_arena *arena,
                           struct px_fiber_chunk *chunk)
{
    chunk->adopted = true;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
}

void px__fiber_arena_close(struct px_fiber_arena *arena)
{
    while (arena->chunks) {
        struct px_fiber_chunk *chunk = arena->chunks;

        /* Ended fibers that nobody awaited. */
        for (size_t i = 0; i < chunk->count; i++) {
            if (chunk->fibers[i].state != PX_STATE_FREE)
                free(chunk->fibers[i].name_kept);
        }
        arena->chunks = chunk->next;
        chunk_free(chunk);
    }
    arena->free = NULL;
    arena->made = 0;
}

struct px_fiber_cursor px__fibers_begin(const struct px_fiber_arena *arena)
{
    return (struct px_fiber_cursor){.chunk = arena->chunks};
}

px_fiber *px__fibers_next(struct px_fiber_cursor *cursor)
{
    while (cursor->chunk) {
        while (cursor->at < cursor->chunk->count) {
            px_fiber *fiber = &cursor->chunk->fibers[cursor->at++];

            if (fiber->state != PX_STATE_FREE)
                return fiber;
        }
        cursor->chunk = cursor->chunk->next;
        cursor->at = 0;
    }
    return NULL;
}

px_fiber *px__fibers_alive(const struct px_fiber_arena *arena)
{
    struct px_fiber_cursor cursor = px__fibers_begin(arena);
    px_fiber *list = NULL;

    for (px_fiber *f; (f = px__fibers_next(&cursor));) {
        if (f->state == PX_STATE_DONE)
            continue;
        f->life->mark = list;
        list = f;
    }
    return px__fibers_sorted(list);
}

static px_fiber *merge(px_fiber *a, px_fiber *b)
{
    px_fiber *first, **last = &first;

    while (a && b) {
        px_fiber **lesser = a->id < b->id ? &a : &b;

        *last = *lesser;
        last = &(*lesser)->life->mark;
        *lesser = *last;
    }
    *last = a ? a : b;
    return first;
}

/* Merge sort by id, without recursion: runs of 1, 2, 4, ... wait in bins. */
px_fiber *px__fibers_sorted(px_fiber *list)
{
    px_fiber *bins[64] = {NULL}, *all = NULL;
    size_t used = 0;

    while (list) {
        px_fiber *run = list;
        size_t i = 0;

        list = list->life->mark;
        run->life->mark = NULL;
        for (; i < used && bins[i]; i++) {
            run = merge(bins[i], run);
            bins[i] = NULL;
        }
        bins[i] = run;
        if (i == used)
            used++;
    }
    for (size_t i = 0; i < used; i++)
        all = merge(bins[i], all);
    return all;
}

char px__printable(char c)
{
    unsigned char byte = (unsigned char)c;

    return byte < 0x20 || byte == 0x7f ? '?' : c;
}

const char *px__fiber_name(const px_fiber *fiber)
{
    const char *name = fiber->life ? fiber->life->name : fiber->name_kept;

    return name ? name : "";
}

void px__fiber_describe(const px_fiber *fiber, char *out, size_t size)
{
    char name[PX_NAME_SIZE] = "";

    const char *given = px__fiber_name(fiber);

    for (size_t i = 0; given[i]; i++)
        name[i] = px__printable(given[i]);
    if (given[0])
        (void)snprintf(out, size, "fiber %lld '%s'", (long long)fiber->id,
                       name);
    else
        (void)snprintf(out, size, "fiber %lld", (long long)fiber->id);
}

/* Where its name is kept. */
static char **name_of(px_fiber *fiber)
{
    return fiber->life ? &fiber->life->name : &fiber->name_kept;
}

int px__fiber_rename(px_fiber *fiber, const char *name)
{
    char *copy = NULL, **at;
    int saved = errno;

    if (name && *name) {
        copy = strndup(name, PX_NAME_SIZE - 1);
        PX_ERRNO_MAY_HAVE_CHANGED();
        errno = saved;
        if (!copy)
            return PX_ENOMEM;
    }
    at = name_of(fiber);
    free(*at);
    *at = copy;
    PX_NOTE_NAME(fiber, copy ? copy : "");
    return 0;
}

px_fiber *px_self(void)
{
    px_fiber *self = px__self;

    return px__is_fiber(self) ? self : NULL;
}

px_fid px_current_id(void)
{
    return px__self->id;
}
