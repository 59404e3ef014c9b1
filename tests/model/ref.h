/* SPDX-License-Identifier: MIT */
/*
 * ref.h - what the library should do, written down from the contract alone.
 *
 * A reference model of a few fibers, their scopes and timers, and one object of
 * each kind. It shares no code with the library and is no good for anything
 * else: plain arrays, looked through from the start every time. Whoever plays a
 * program (play.c) makes every call on both sides, and compares.
 *
 * A call that may wait ends in one of three ways: it returns at once (the fiber
 * still runs, with a verdict), it lets the others run first and then returns
 * (the fiber is ready, with a verdict), or it parks.
 */
#ifndef REF_H
#define REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <parataxis/parataxis.h>

enum { REF_FIBERS = 6, REF_ALL = 40, REF_SCOPES = 5 };

enum ref_state { REF_RUNNING, REF_READY, REF_PARKED, REF_DONE };

enum ref_wait {
    REF_NOTHING,
    REF_SLEEP,
    REF_SEM,
    REF_AVAILABLE,
    REF_MUTEX,
    REF_WAITGROUP,
    REF_PLACE,    /* in a group, to spawn a child */
    REF_CHILDREN, /* their end; does not end early */
    REF_LOOK,     /* before it waits for them */
    REF_FD,
    REF_OFFLOAD,
    REF_AWAIT,
    REF_AWAIT_ALL,
    REF_AHEAD /* ready, and to run before all that are */
};

struct ref_scope {
    int64_t deadline;
    int status;
    bool shield;
};

/* What a handle may be used for; one that is not held is a freed pointer. */
enum ref_handle { REF_HELD, REF_DETACHED, REF_CONSUMED };

/* Instead of a fiber's number. */
enum { REF_NOBODY = -1, REF_MAIN = -2 };

enum ref_job { REF_NO_JOB, REF_WAITING, REF_STARTED, REF_FINISHED };

struct ref_fiber {
    enum ref_state state;
    int verdict;    /* what its call returns */
    uint64_t since; /* ready: in this order */
    enum ref_wait on;
    bool queued;    /* or taken out of the queue by remove_waiter */
    uint64_t place; /* in the queue: in this order */
    int64_t want;   /* permits, or when to wake, or whose group */
    int64_t timer;  /* PX_FOREVER: not armed */
    uint64_t armed; /* in this order */
    int depth;      /* scopes[0] is around the body */
    struct ref_scope scopes[REF_SCOPES];
    int parent, within; /* a child: whose, and in which of its scopes */
    int kind;           /* what a child does; of a spawner: is to do */
    int group;          /* its own: which scope; 0: none */
    int64_t running, most;
    int failure;
    uint64_t closings; /* of the descriptor, when it began to wait, */
    uint64_t told;     /* and by px_close() */
    enum ref_job job;  /* what is offloaded */
    bool fresh;        /* spawned, and has not begun */
    int spawner;       /* of px_spawn(); REF_NOBODY: the main fiber, a group */
    int awaiter;       /* who waits for its end */
    enum ref_handle handle;
    int result;
    bool hidden; /* its innermost scope is the library's */
};

/* Posted, and not yet on the loop. */
struct ref_post {
    int kind;
    uint64_t place;
};

struct ref {
    int n;
    int64_t now;
    uint64_t orders;
    int64_t count, limit; /* the semaphore */
    bool bounded, closed;
    int owner;       /* of the mutex; -1: nobody */
    int64_t members; /* the waitgroup's count */
    bool readable;   /* the descriptor */
    bool known;      /* to the poller, */
    bool by_number;  /* it looks at whatever file has the number */
    bool stale;      /* as another file, which was closed since, */
    bool asked;      /* and is to be reported */
    uint64_t closings;
    uint64_t told;
    int threads; /* for what is offloaded */
    int posted;
    /* Nothing of these but what is there is looked at. */
    struct ref_post posts[REF_ALL];
    struct ref_fiber fibers[REF_ALL];
};

void ref_init(struct ref *ref, int n, int64_t count, bool bounded);
/* One more fiber: which. */
int ref_fiber(struct ref *ref);

/* Fibers, scopes and time: ref.c. */
int ref_reach(const struct ref *ref, int f);
/* What reaches into that scope of it. */
int ref_reach_at(const struct ref *ref, int f, int scope);
int64_t ref_nearest(const struct ref *ref, int f);
int64_t ref_next_timer(const struct ref *ref);
void ref_ready(struct ref *ref, int f, int verdict);
/* True: go on, and perhaps wait. False: the call is over. */
bool ref_point(struct ref *ref, int f);
bool ref_may_park(struct ref *ref, int f);
/* A deadline that has passed fires. True: none had reached it, and one does. */
bool ref_notice(struct ref *ref, int f);
void ref_park(struct ref *ref, int f, enum ref_wait on, int64_t want);
/* The next fiber that waits like this after `place`, or -1. */
int ref_queued(const struct ref *ref, enum ref_wait on, uint64_t place);
/* Let a parked fiber go; whoever waits behind it may be next. */
void ref_interrupt(struct ref *ref, int f, int code);
void ref_fire(struct ref *ref, int f, int scope, int code);
void ref_time(struct ref *ref, int64_t now);
void ref_resume(struct ref *ref, int f);
void ref_enter(struct ref *ref, int f, int64_t timeout);
int ref_leave(struct ref *ref, int f);
/* Leave that one, whatever is inside it. */
void ref_unwind(struct ref *ref, int f, int scope);
void ref_shield(struct ref *ref, int f, int scope, bool on);
void ref_sleep(struct ref *ref, int f, int64_t time);
void ref_yield(struct ref *ref, int f);

/* The semaphore: ref_sem.c. */
void ref_sem_serve(struct ref *ref);
void ref_sem_down(struct ref *ref, int f, int64_t n, bool takes);
int ref_sem_try(struct ref *ref, int64_t n);
int ref_sem_add(struct ref *ref, int64_t n);
int ref_sem_up(struct ref *ref, int64_t n);
int ref_sem_set_limit(struct ref *ref, int64_t limit);
void ref_sem_close(struct ref *ref);
bool ref_sem_passes_over(const struct ref *ref, int f);

/* The mutex and the waitgroup: ref_mutex.c, ref_waitgroup.c. */
void ref_mutex_lock(struct ref *ref, int f);
int ref_mutex_try(struct ref *ref, int f);
int ref_mutex_unlock(struct ref *ref, int f);
int ref_waitgroup_add(struct ref *ref, int64_t n);
void ref_waitgroup_wait(struct ref *ref, int f);
void ref_waitgroup_woken(struct ref *ref, int f);

/* Groups: ref_group.c. A fiber has one at most, and `g` says whose it is. */
void ref_group_open(struct ref *ref, int f);
/* A child is there if there is one fiber more; it runs, and f is ready. */
void ref_group_spawn(struct ref *ref, int f, int g, int kind);
void ref_group_placed(struct ref *ref, int f);
void ref_group_ended(struct ref *ref, int f, int result);
void ref_group_wait(struct ref *ref, int f);
void ref_group_wait_on(struct ref *ref, int f);
void ref_group_over(struct ref *ref, int f);
int ref_group_limit(struct ref *ref, int f, int64_t most);

/* A descriptor, and what is offloaded: ref_fd.c, ref_offload.c. */
void ref_fd_wait(struct ref *ref, int f);
/* Whether the file is no more that it began to wait for: 0, or the code. */
int ref_fd_closed(const struct ref *ref, int f);
void ref_fd_woken(struct ref *ref, int f);
bool ref_fd_reports(const struct ref *ref);
void ref_fd_poll(struct ref *ref);
void ref_fd_close(struct ref *ref, bool told);
void ref_offload(struct ref *ref, int f);
bool ref_offload_ends_early(struct ref *ref, int f);
int ref_offload_finish(struct ref *ref, int f);
bool ref_offload_brought(const struct ref *ref);
void ref_offload_deliver(struct ref *ref);

/* Fibers that a program spawns, and their handles: ref_await.c. A child is
 * there as soon as one is spawned; without `queued` it runs, and f is ready. */
void ref_spawn(struct ref *ref, int f, int kind, bool queued, bool detached);
void ref_post(struct ref *ref, int kind);
void ref_arrive(struct ref *ref, int kind);
void ref_ended(struct ref *ref, int f, int result);
void ref_await(struct ref *ref, int f, int g);
void ref_await_all(struct ref *ref, int f, const int *who, int n);
/* The handles that it waited for are consumed, or given back. */
void ref_await_over(struct ref *ref, int f, bool consumed);
int ref_detach(struct ref *ref, int g);
int ref_cancel(struct ref *ref, int g);
/* True: the call is under way, in a scope that the caller has to leave. */
bool ref_cancel_and_await(struct ref *ref, int f, int g);

#endif
