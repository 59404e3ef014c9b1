/* SPDX-License-Identifier: MIT */
/*
 * given.h - what the calls of the test_semantics programs are given.
 *
 * One set of objects, in every state that a row of docs/semantics.md needs: a
 * free mutex, one that the main fiber has and one that another has, a fiber
 * that waits and one that has ended, a pipe with a byte in it, ...
 */
#ifndef PX_TEST_SEMANTICS_GIVEN_H
#define PX_TEST_SEMANTICS_GIVEN_H

#include "px_test.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define ANY 1000004LL /* a result that the test does not know */

enum { TAKEN = 7, CLOSED = -1 };

/* What the calls are given. There is one; it is static, since some fibers
 * outlive the body that started them. */
struct env {
    px_sem *sem;      /* three permits, of three */
    px_mutex *mutex;  /* free */
    px_mutex *mine;   /* the main fiber has it */
    px_waitgroup *wg; /* at zero */
    px_waitgroup *one;
    px_scope *scope; /* the main fiber's innermost */
    px_group *group; /* around it */
    px_scope *fresh_scope;
    px_group *fresh_group;
    px_sem_guard *sem_guard;
    px_mutex_guard *mutex_guard;
    px_fiber *parked; /* called "parked", waits at the gate */
    px_fiber *ended;
    px_loop *loop;
    px_fn fn; /* returns TAKEN */
    int (*token_fn)(px_scope *token, void *arg);
    int (*map_fn)(size_t i, void *arg);
    FILE *file;
    sigset_t *signals; /* SIGUSR1, which is pending */
    int readable;      /* has one byte */
    int writable;      /* has room */
    int listener;      /* has a connection that waits to be accepted */
    int socket;        /* can be connected to listener */
    int closable;
    struct sockaddr_un address; /* listener's */
    socklen_t address_length;

    /* What makes a call wait. */
    px_sem *empty;
    px_mutex *theirs; /* another fiber has it */
    px_fiber *stubborn;
    sigset_t *other_signals; /* SIGUSR2, which is not pending */
    int silent;              /* nothing to read */
    int full;                /* no room to write */
    int quiet;               /* a listener that nobody connects to */
    int stuck;               /* a socket whose connect is not answered */
    struct sockaddr_in deaf; /* what it would connect to */
    bool stubborn_for_ever;
};

/* What env points at, and what the test itself keeps. */
struct own {
    px_sem sem, empty, gate, end_of_deadlock;
    px_mutex mutex, mine, theirs;
    px_waitgroup wg, one;
    px_scope scope, around, fresh_scope;
    px_group group, fresh_group;
    px_sem_guard sem_guard;
    px_mutex_guard mutex_guard;
    sigset_t signals, other_signals;
    int descriptors[64];
    size_t n_descriptors;
    bool in_run;
    int witnessed; /* times that another fiber ran */
    long long result;
    int child_result;
};

/* A call of a table. */
typedef long long call_fn(struct env *e);

extern struct env env;
extern struct own own;
extern char bytes[1 << 12]; /* to read into and to write */

/* Bodies and functions to give to calls. */
int take(void *arg);          /* returns TAKEN */
int wait_at_gate(void *arg);  /* until the run is torn down */
int witness(void *arg);       /* counts */
int stay_shielded(void *arg); /* a stubborn fiber */

void start_queued(px_fn fn, void *arg);

/* Wait for env.group, its inner scope left first. */
long long wait_group(struct env *e);

/* Remember a descriptor, so that tearing down closes it. */
int keep(int fd);
void forget_descriptor(int fd);

/* What exists without a run; with descriptors that need not wait. */
void set_up_objects(bool with_descriptors);
void tear_down_objects(void);
/* Descriptors that make a call wait. */
void set_up_waits(struct env *e);
/* What exists in a run: called by the main fiber. The scope around everything
 * fires after `timeout`. */
void set_up_fibers(px_nsec timeout);
void tear_down_fibers(void);

/* Expect that the call gave that. */
void compare(const char *name, const char *when, long long actual,
             long long expected);

#endif
