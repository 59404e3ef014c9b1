/* SPDX-License-Identifier: MIT */
/*
 * world.h - what play.c and its parts share: the library's objects, and the
 * model that stands beside them.
 */
#ifndef WORLD_H
#define WORLD_H

#include <semaphore.h>
#include <stdatomic.h>

#include "play.h"
#include "scheduler.h"

#define TICK INT64_C(1000)

/* A call on another thread: it returns when it is told to. */
struct offloaded {
    sem_t go;
    atomic_bool started;
    int value;
};

struct world {
    struct ref ref;
    const struct program *program;
    struct chooser *chooser;
    px_fiber *driver;
    px_fiber *fibers[REF_ALL]; /* those of the program, then their children */
    px_fid ids[REF_FIBERS];
    px_scope scopes[REF_ALL][REF_SCOPES];
    px_group groups[REF_ALL];
    int at[REF_ALL];       /* the call that comes next */
    int64_t held[REF_ALL]; /* permits */
    int did; /* PX_SEAM_...: what was done since the last choice; -1: nothing */
    bool outside; /* the program uses what outside.c has */
    int fd;       /* 0: none yet */
    struct offloaded jobs[REF_FIBERS];
    px_sem sem;
    px_mutex mutex;
    px_waitgroup wg;
};

extern struct world world;

/* Print why, the program and the choices, and end the process. */
_Noreturn void fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/* Fail if two numbers of fiber `f` (-1: of none) are not the same. */
void same(int f, const char *what, int64_t is, int64_t should);
/* Which fiber of the model that is, or -1. */
int index_of(const px_fiber *fiber);
/* A step towards the hash of all that was done. */
void note_trace(int64_t value);

/* The library beside its model: compare.c. */
void compare(const px_loop *loop);
void compare_ready(px_fiber *const *ready, const int *who, size_t n);
/* What all the rest depends on: state.c. */
uint64_t world_state(void);

/* calls.c. A call that never waits has returned; one that may. */
int at_once(int f, int code, int should);
void returned(int f, int code);
px_scope *scope_at(int f, int s);
/* Make one call on both sides; its code. */
int perform(int f, char what, int n);
/* Leave nothing behind but what was done to the objects on purpose. */
void tidy_up(int f);

/* Those that more than one file makes, by both sides: calls.c, children.c. */
int down(int f, int64_t n);
int up(int f, int64_t n);
int sleep_for(int f, int64_t ticks);
int within(int f, int64_t ticks, int (*call)(int f, int64_t n), int64_t n);
int cancel_scope(int f, int s);
int cancel(int f);
int yield(int f);
int check(int f);
int sleep_shielded(int f, int64_t ticks);
/* The fiber of the program that is n further on. */
int other(int f, int n);
/* Descriptors and offloaded calls: outside.c. Before a program's paths, before
 * each, and between what was chosen and what is compared. */
bool uses_outside(const struct program *program);
void outside_begin(void);
void outside_settle(px_loop *loop);
void outside_end(void);
int perform_outside(int f, char what, int n);
int finish_job(int f);

int open_group(int f);
int spawn_child(int f, int g, int kind);
int wait_for_children(int f);
int cancel_group(int f);
/* How many fibers there are, or may come to be. */
int children_expected(void);

/* Fibers that a program spawns and posts: handles.c. */
enum spawn_how {
    SPAWN_EAGER,
    SPAWN_QUEUED,
    SPAWN_DETACHED,
    SPAWN_QUEUED_DETACHED
};
int spawn(int f, int kind, enum spawn_how how);
int perform_await(int f, char what, int n);
void await_the_rest(void);

#endif
