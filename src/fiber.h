/* SPDX-License-Identifier: MIT */
/*
 * fiber.h - the record of a fiber, and where records come from.
 *
 * It is in two parts. px_fiber is the handle: two cache lines, from an arena in
 * which they lie close together, with what a switch and a wait queue touch, and
 * what is asked of a fiber that has ended. px_life is what a fiber needs only
 * while it lives. It is at the top of its stack, in a page that is touched
 * anyway, and goes when the stack is given back: an ended fiber that nobody has
 * awaited pins no stack.
 *
 * Every layer keeps its share of a fiber here, so that no wait, and no wake-up,
 * allocates; who may touch a field is said beside it.
 */
#ifndef PX_FIBER_H
#define PX_FIBER_H

#include <stdlib.h>

#include <parataxis/cancel.h>
#include <parataxis/clock.h>
#include <parataxis/types.h>

#include "base/heap.h"
#include "base/macros.h"
#include "context/sanitizer.h"
#include "stack.h"

#define PX_NAME_SIZE 32

enum px_state {
    PX_STATE_NEW,     /* in the run queue, has not begun */
    PX_STATE_READY,   /* in the run queue */
    PX_STATE_RUNNING, /* one at most */
    PX_STATE_PARKED,  /* waits on what `waiting` says */
    PX_STATE_DONE,
    PX_STATE_FREE /* no fiber: the record waits to be one */
};

enum { /* px_fiber.flags */
       PX_FIBER_MAIN = 1,
       PX_FIBER_DETACHED = 2,
       PX_FIBER_CHILD = 4,        /* of a group */
       PX_FIBER_CANCEL_EARLY = 8, /* px_cancel() before it began */
       PX_FIBER_AWAITS_ALL = 16,  /* parked in px_await_all */
       PX_FIBER_CONSUMED = 32,    /* awaited: nobody needs the record */
       PX_FIBER_KEPT = 64,        /* but its awaiter keeps it a little longer */
       PX_FIBER_TIMED = 128,      /* its timer is in the heap */
       PX_FIBER_POSTED = 256,     /* stack and record are post.c's */
       PX_FIBER_USUAL = 512,      /* its stack has the run's own size */
       PX_FIBER_LISTED = 1024     /* came by in an array that is looked at */
};

/* Why a cancellation point must take a closer look. */
enum {                       /* px_fiber.attention */
       PX_LOOK_FIRED = 1,    /* a scope that reaches the fiber has fired */
       PX_LOOK_DEADLINE = 2, /* a deadline around it may pass */
       PX_LOOK_FAILURES = 4, /* points have failed since it last parked */
       PX_LOOK_OFF_FIBER = 8 /* this is no fiber */
};

enum { /* px_scope.flags */
       PX_SCOPE_SHIELD = 1,
       PX_SCOPE_GROUP = 2, /* a group's: left by px_group_wait only */
       PX_SCOPE_BODY = 4   /* around a fiber's body: left by its end only */
};

/* A place in a queue. It lies in the record of the fiber that waits, which
 * waits in one queue at a time (wait_queue.h). */
struct px_waiter {
    struct px_waiter *next;
    struct px_waiter *prev;
    px_waitq *queue; /* NULL: in none */
    int64_t want;    /* what for: permits, events, a time, a number of fibers */
};

/* What a fiber is parked in. */
enum px_wait_kind {
    PX_WAIT_SLEEP,
    PX_WAIT_AWAIT,
    PX_WAIT_SEM,
    PX_WAIT_SEM_AVAILABLE,
    PX_WAIT_MUTEX,
    PX_WAIT_WAITGROUP,
    PX_WAIT_GROUP,
    PX_WAIT_GROUP_PLACE,
    PX_WAIT_FD,
    PX_WAIT_SIGNAL,
    PX_WAIT_OFFLOAD
};

struct px_wait_class {
    enum px_wait_kind kind;
    /* Let a parked fiber go with `code`: take it off whatever it waits on, make
     * it ready, then serve what it held back. False: this wait does not end
     * early, and nothing happened. */
    bool (*interrupt)(px_fiber *fiber, int code);
    /* A fiber has left its queue before its turn: serve those behind it, of
     * what `object` is to it (queue waits only; may be NULL). */
    void (*on_abandon)(void *object);
};

struct px_loop;

/* Where a posted fiber's stack and record go: not to its loop. */
struct px_home {
    void (*release_stack)(struct px_loop *loop, struct px_stack *stack);
    void (*free_record)(px_fiber *fiber);
};

/* While it lives. What is only said to be clean is zero when a life begins, as
 * memory is that was never used, and is left so by the one before. */
struct px_life {
    struct px_stack stack; /* first: the life lies at the stack's top */
    px_nsec since;         /* parked since then, by loop->now */
    px_scope *scope;       /* the innermost; NULL before and after the body */
    uint64_t arrival;      /* in a semaphore's queue */
    uint16_t looks;        /* cancellation points since the clock was read */
    uint16_t failures;     /* cancellation points that failed, in a row */
    uint16_t unparked;     /* and since it last parked */
    uint32_t groups;       /* it has open; clean */

    px_fn fn;
    void *arg;
    void (*on_end)(px_fiber *self, int result);
    void *owner;      /* for on_end: a group, a waitgroup */
    const void *site; /* where it was spawned */
    px_fiber *kept;   /* the one it awaited last, ended; clean */
    int *result_out;  /* of a fiber that awaits one */
    char *name;       /* NULL: none; clean */

    px_scope body; /* the outermost of its own; body.outer is set at birth */
    px_fiber *sibling_next; /* in body.outer->children */
    px_fiber *sibling_prev;
    px_fiber *mark;            /* a list that is made and taken apart; clean */
    px_fiber *seen;            /* who came by last, looking for cycles; clean */
    struct px_heap_node timer; /* armed: PX_FIBER_TIMED */
};

/* At the top of every stack: whole cache lines. */
#define PX_LIFE_ROOM ((sizeof(struct px_life) + 63) / 64 * 64)

struct px_fiber {
    /* The switch. */
    void *sp;
    px_fiber *next; /* in the run queue, or among the free */
    struct px_loop *loop;
    struct px_life *life; /* NULL once its stack was given back */
    int verdict; /* what the call it is parked in will return; its result */
    int errno_kept;
    uint8_t attention; /* PX_LOOK_...: kept by cancel.c */
    uint8_t state;
    uint16_t flags;
    uint32_t locks;      /* mutexes it holds */
    void *exceptions[2]; /* what __cxa_get_globals() points to */

    /* Waiting. */
    struct px_waiter waiter;
    union {
        const struct px_wait_class *waiting; /* while parked */
        const void *site_kept;               /* without a life */
    };
    union {
        void *waits_on;  /* the object, by kind */
        char *name_kept; /* without a life */
    };
    px_fid id;
    px_fiber *awaiter;
    PX_ANNOTATION
};

static inline struct px_life *px__life_of(struct px_stack *stack)
{
    return (struct px_life *)(void *)stack;
}

/* Records, in chunks; freed ones are used again. */
struct px_fiber_chunk {
    struct px_fiber_chunk *next;
    px_fiber *fibers;
    size_t count;
    bool adopted; /* somebody else's memory */
};

struct px_fiber_arena {
    struct px_fiber_chunk *chunks;
    px_fiber *free;
    size_t made; /* records */
};

/* Where somebody is who goes through all records. */
struct px_fiber_cursor {
    const struct px_fiber_chunk *chunk;
    size_t at;
};

/* Fill `free` when it is empty. */
bool px__fiber_arena_grow(struct px_fiber_arena *arena);

/* A record, or NULL. Whoever takes it sets every field. */
static inline px_fiber *px__fiber_new(struct px_fiber_arena *arena)
{
    px_fiber *fiber;

    if (PX_UNLIKELY(!arena->free) && !px__fiber_arena_grow(arena))
        return NULL;
    fiber = arena->free;
    arena->free = fiber->next;
    __builtin_prefetch(fiber->next, 1);
    return fiber;
}

static inline void px__fiber_free(struct px_fiber_arena *arena, px_fiber *fiber)
{
    if (PX_UNLIKELY(fiber->name_kept))
        free(fiber->name_kept);
    fiber->state = PX_STATE_FREE;
    fiber->next = arena->free;
    arena->free = fiber;
}

void px__fiber_arena_close(struct px_fiber_arena *arena);
/* List a chunk that is not the arena's among its own: its records count as
 * fibers as long as their state says so. */
void px__fiber_arena_adopt(struct px_fiber_arena *arena,
                           struct px_fiber_chunk *chunk);

/* Every fiber that has a record, in no order; NULL ends it. */
struct px_fiber_cursor px__fibers_begin(const struct px_fiber_arena *arena);
px_fiber *px__fibers_next(struct px_fiber_cursor *cursor);
/* Those that have not ended, in the order of their ids, linked by life->mark.
 * Whoever takes the list apart clears the marks. */
px_fiber *px__fibers_alive(const struct px_fiber_arena *arena);
/* A list linked by life->mark, brought into the order of the ids. */
px_fiber *px__fibers_sorted(px_fiber *list);

/* Part an ended fiber from its life, whose stack goes back. */
static inline void px__fiber_part(px_fiber *fiber)
{
    struct px_life *life = fiber->life;

    fiber->name_kept = life->name;
    fiber->site_kept = life->site;
    life->name = NULL;
    fiber->life = NULL;
}

static inline px_fiber *px__waiter_fiber(const struct px_waiter *waiter)
{
    return PX_CONTAINER_OF((uintptr_t)waiter, px_fiber, waiter);
}

/* A byte of a name as a report may show it: a name can not break a line. */
char px__printable(char c);
/* Of a good handle; "" if it has none. */
const char *px__fiber_name(const px_fiber *fiber);
/* "fiber 7 'loader'" */
void px__fiber_describe(const px_fiber *fiber, char *out, size_t size);
/* 0 or PX_ENOMEM. */
int px__fiber_rename(px_fiber *fiber, const char *name);

/* The running fiber; off-fiber one whose attention says so. Read it once in
 * each public call. Never cached across a switch by a compiler that thinks the
 * thread may change: a fiber never leaves its thread. */
extern _Thread_local px_fiber *px__self
    __attribute__((tls_model("initial-exec")));
extern px_fiber px__off_fiber;

static inline bool px__is_fiber(const px_fiber *self)
{
    return !(self->attention & PX_LOOK_OFF_FIBER);
}

#endif
