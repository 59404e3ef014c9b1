/* SPDX-License-Identifier: MIT */
/* fiber.c - records of fibers, their names, and what can be asked of them. */
#include "fiber.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <parataxis/scheduler.h>

#include "base/macros.h"
#include "base/panic.h"

#define CHUNK 32

struct px_fiber_chunk {
    struct px_fiber_chunk *next;
    px_fiber fibers[CHUNK];
};

px_fiber px__off_fiber = {.attention = PX_LOOK_OFF_FIBER,
                          .id = PX_NO_FIBER,
                          .state = PX_STATE_RUNNING};

_Thread_local px_fiber *px__self = &px__off_fiber;

PX_SANITIZER_DEFINITIONS

static PX_COLD bool arena_grow(struct px_fiber_arena *arena)
{
    int saved = errno;
    struct px_fiber_chunk *chunk = malloc(sizeof(*chunk));

    errno = saved;
    if (!chunk)
        return false;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    for (size_t i = CHUNK; i-- > 0;) {
        chunk->fibers[i].next = arena->free;
        arena->free = &chunk->fibers[i];
    }
    return true;
}

px_fiber *px__fiber_new(struct px_fiber_arena *arena)
{
    px_fiber *fiber;

    if (PX_UNLIKELY(!arena->free) && !arena_grow(arena))
        return NULL;
    fiber = arena->free;
    arena->free = fiber->next;
    memset(fiber, 0, sizeof(*fiber));
    return fiber;
}

void px__fiber_free(struct px_fiber_arena *arena, px_fiber *fiber)
{
    free(fiber->name);
    fiber->name = NULL;
    fiber->next = arena->free;
    arena->free = fiber;
}

void px__fiber_arena_close(struct px_fiber_arena *arena)
{
    while (arena->chunks) {
        struct px_fiber_chunk *chunk = arena->chunks;

        arena->chunks = chunk->next;
        free(chunk);
    }
    arena->free = NULL;
}

char px__printable(char c)
{
    unsigned char byte = (unsigned char)c;

    return byte < 0x20 || byte == 0x7f ? '?' : c;
}

void px__fiber_describe(const px_fiber *fiber, char *out, size_t size)
{
    char name[PX_NAME_SIZE] = "";

    for (size_t i = 0; fiber->name && fiber->name[i]; i++)
        name[i] = px__printable(fiber->name[i]);
    if (fiber->name)
        (void)snprintf(out, size, "fiber %lld '%s'", (long long)fiber->id,
                       name);
    else
        (void)snprintf(out, size, "fiber %lld", (long long)fiber->id);
}

int px__fiber_rename(px_fiber *fiber, const char *name)
{
    char *copy = NULL;
    int saved = errno;

    if (name && *name) {
        copy = strndup(name, PX_NAME_SIZE - 1);
        errno = saved;
        if (!copy)
            return PX_ENOMEM;
    }
    free(fiber->name);
    fiber->name = copy;
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

px_fid px_id(const px_fiber *fiber)
{
    return fiber ? fiber->id : PX_NO_FIBER;
}

const char *px_name(const px_fiber *fiber)
{
    return fiber && fiber->name ? fiber->name : "";
}

int px_set_name(px_fiber *fiber, const char *name)
{
    return fiber ? px__fiber_rename(fiber, name) : PX_EINVAL;
}

bool px_is_done(const px_fiber *fiber)
{
    return fiber && fiber->state == PX_STATE_DONE;
}
