/* SPDX-License-Identifier: MIT */
/*
 * fiber.h - the record of a fiber, and where records come from.
 *
 * A record is apart from its stack: an ended fiber that nobody has awaited
 * keeps the one and not the other, and the records of many fibers lie close
 * together. Every layer keeps its share of a fiber here, so that no wait, and
 * no wake-up, allocates; who may touch a field is said beside it.
 */
#ifndef PX_FIBER_H
#define PX_FIBER_H

#include <parataxis/cancel.h>
#include <parataxis/clock.h>
#include <parataxis/types.h>

#include "base/heap.h"
#include "context/sanitizer.h"
#include "stack.h"

#define PX_NAME_SIZE 32

enum px_state {
    PX_STATE_NEW,     /* in the run queue, has not begun */
    PX_STATE_READY,   /* in the run queue */
    PX_STATE_RUNNING, /* one at most */
    PX_STATE_PARKED,  /* waits on what `waiting` says */
    PX_STATE_DONE
};

enum { /* px_fiber.flags */
       PX_FIBER_MAIN = 1,
       PX_FIBER_DETACHED = 2,
       PX_FIBER_CHILD = 4,        /* of a group */
       PX_FIBER_CANCEL_EARLY = 8, /* px_cancel() before it began */
       PX_FIBER_AWAITS_ALL = 16,  /* parked in px_await_all */
       PX_FIBER_CONSUMED = 32,    /* awaited: nobody needs the record */
       PX_FIBER_KEPT = 64         /* but its awaiter keeps it a little longer */
};

/* Why a cancellation point must take a closer look. */
enum {                       /* px_fiber.attention */
       PX_LOOK_FIRED = 1,    /* a scope that reaches the fiber has fired */
       PX_LOOK_DEADLINE = 2, /* a deadline around it may pass */
       PX_LOOK_FAILURES = 4, /* points have failed since it last parked */
       PX_LOOK_OFF_FIBER = 8 /* this is no fiber */
};

/* A place in a queue. It lies in the record of the fiber that waits, which
 * waits in one queue at a time (wait_queue.h). */
struct px_waiter {
    struct px_waiter *next;
    struct px_waiter *prev;
    px_waitq *queue; /* NULL: in none */
    px_fiber *fiber;
    int64_t want; /* what for: permits, events, a time, a number of fibers */
    uint64_t arrival;
};

/* What a fiber is parked in. */
enum px_wait_kind {
    PX_WAIT_YIELD,
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

/* Where a fiber's stack and record go, if not back to its loop. */
struct px_home {
    void (*release_stack)(px_fiber *fiber);
    void (*free_record)(px_fiber *fiber);
};

struct px_fiber {
    /* The switch. */
    void *sp;
    px_fiber *next; /* in the run queue */
    struct px_loop *loop;
    int verdict; /* what the call it is parked in will return */
    int errno_kept;
    uint32_t attention; /* PX_LOOK_...: kept by cancel.c */
    uint8_t state;
    uint8_t flags;
    uint16_t looks;      /* cancellation points since the clock was read */
    uint16_t failures;   /* cancellation points that failed, in a row */
    uint16_t unparked;   /* and since it last parked */
    uint32_t locks;      /* mutexes it holds */
    uint32_t groups;     /* it has open */
    void *exceptions[2]; /* what __cxa_get_globals() points to */

    /* Waiting. */
    const struct px_wait_class *waiting; /* while parked */
    void *waits_on;                      /* the object, by kind */
    struct px_waiter waiter;
    struct px_heap_node timer;
    px_nsec since;   /* parked since then, by loop->now */
    px_scope *scope; /* the innermost */
    px_scope *body;  /* the outermost of its own */

    /* Life. */
    px_fid id;
    px_fiber *all_next; /* every fiber of the run that is not reclaimed, */
    px_fiber *all_prev; /* in the order of their ids */
    px_fn fn;
    void *arg;
    px_scope *birth_scope; /* the scope around its body: the run's, a group's */
    px_fiber *sibling_next; /* in birth_scope->children */
    px_fiber *sibling_prev;
    void (*on_end)(px_fiber *self, int result);
    void *owner; /* for on_end: a group, a waitgroup */
    px_fiber *awaiter;
    px_fiber *kept;  /* the one it awaited last, ended */
    int *result_out; /* of a fiber that awaits one */
    int result;
    struct px_stack stack;
    const struct px_home *home; /* NULL: the loop */
    char *name;                 /* NULL: none */
    const void *site;           /* where it was spawned */
    px_fiber *mark;             /* a list that cancel.c makes and takes apart */
    PX_ANNOTATION
};

/* Records, in chunks; freed ones are used again. */
struct px_fiber_arena {
    struct px_fiber_chunk *chunks;
    px_fiber *free;
};

/* A zeroed record, or NULL. */
px_fiber *px__fiber_new(struct px_fiber_arena *arena);
void px__fiber_free(struct px_fiber_arena *arena, px_fiber *fiber);
void px__fiber_arena_close(struct px_fiber_arena *arena);

/* A byte of a name as a report may show it: a name can not break a line. */
char px__printable(char c);
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
