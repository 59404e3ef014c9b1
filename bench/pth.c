/* SPDX-License-Identifier: MIT */
/*
 * pth.c - the workloads on GNU Pth. See workloads.h.
 *
 * Stacks are of 16 KiB, its smallest, fresh from malloc for each thread. It has
 * no semaphore: a counter and one of its own condition variables make one; up()
 * hands its permit to the fiber it wakes. Its mutex is taken by who comes first
 * once it is free, so the last owner barges in.
 *
 * Every switch goes through its scheduler, a change of the signal mask and a
 * look at the clock. The scheduler asks every fiber that waits whether what it
 * waits for has happened, and keeps those that do not wait in a sorted list:
 * with n fibers a switch costs n. So the rows with thousands of them, for which
 * it would need minutes, are left out.
 *
 * Waking a fiber yields to it. Therefore fibers cannot be let go together, and
 * the order of their steps is noted, not checked.
 */
#include <pth.h>

#include <stdio.h>
#include <stdlib.h>

#define LIB_NAME "pth"
#define LIB_SEM_NOTE "a plain counter, inlined: no library call"
#define LIB_FIFO 0
#define LIB_MANY 0
#define LIB_WEIGHTED 0
#define LIB_MUTEX_FIFO 0
#define LIB_TIMED 0 /* it would be the plain counter again */
#define LIB_ARMED_NOTE ""
#define LIB_SLEEPERS 0
#define LIB_WAKES_EARLY 0
#define LIB_SLACK 0
#define LIB_MILLION 0
#define LIB_ECHO 1

enum { STACK = 16 * 1024 };

typedef pth_mutex_t lib_mutex;

typedef struct lib_fiber {
    pth_t thread;
    int (*fn)(void *arg);
    void *arg;
} lib_fiber;

typedef struct lib_sem {
    long count;
    long waiters;
    pth_cond_t released;
} lib_sem;

typedef struct lib_conn {
    int fd;
} lib_conn;

static pth_attr_t attributes;
static pth_mutex_t none = PTH_MUTEX_INIT; /* a wait must release one */

static const char *lib_version(void)
{
    static char text[16];
    long version = pth_version(); /* 0xVRRTLL: TLL is the patch level */

    (void)snprintf(text, sizeof(text), "%lx.%lx.%lx", version >> 20,
                   version >> 12 & 0xff, version & 0xff);
    return text;
}

static int lib_run(int (*fn)(void *arg), void *arg, int flags)
{
    (void)flags;
    if (!pth_init())
        return -1;
    attributes = pth_attr_new();
    (void)pth_attr_set(attributes, PTH_ATTR_STACK_SIZE, (unsigned)STACK);
    return fn(arg);
}

static inline lib_fiber *lib_fibers_new(size_t n)
{
    return calloc(n, sizeof(lib_fiber));
}

static inline void lib_fibers_free(lib_fiber *fibers)
{
    free(fibers);
}

static void *run_body(void *arg)
{
    lib_fiber *self = arg;

    (void)self->fn(self->arg);
    return NULL;
}

static inline int lib_spawn(lib_fiber *fiber, int (*fn)(void *), void *arg)
{
    fiber->fn = fn;
    fiber->arg = arg;
    fiber->thread = pth_spawn(attributes, run_body, fiber);
    return fiber->thread ? 0 : -1;
}

static inline int lib_await(lib_fiber *fiber)
{
    return !pth_join(fiber->thread, NULL);
}

static inline int lib_yield(void)
{
    return !pth_yield(NULL);
}

static inline int wait_for(pth_cond_t *cond, pth_event_t timeout)
{
    int failed = !pth_mutex_acquire(&none, FALSE, NULL) ||
                 !pth_cond_await(cond, &none, timeout);

    (void)pth_mutex_release(&none);
    return failed;
}

static inline void lib_sem_init(lib_sem *sem, int64_t n)
{
    sem->count = n;
    sem->waiters = 0;
    (void)pth_cond_init(&sem->released);
}

static inline int lib_sem_down(lib_sem *sem)
{
    if (sem->count > 0) {
        sem->count--;
        return 0;
    }
    sem->waiters++;
    return wait_for(&sem->released, NULL);
}

static inline int lib_sem_up(lib_sem *sem)
{
    if (sem->waiters == 0) {
        sem->count++;
        return 0;
    }
    sem->waiters--;
    return !pth_cond_notify(&sem->released, FALSE);
}

static inline int lib_sem_down_within(lib_sem *sem, int64_t ns)
{
    pth_event_t timeout;
    int failed;

    if (sem->count > 0) {
        sem->count--;
        return 0;
    }
    timeout =
        pth_event(PTH_EVENT_TIME, pth_timeout((long)(ns / 1000000000),
                                              (long)(ns % 1000000000 / 1000)));
    sem->waiters++;
    failed = wait_for(&sem->released, timeout) ||
             pth_event_status(timeout) == PTH_STATUS_OCCURRED;
    (void)pth_event_free(timeout, PTH_FREE_THIS);
    return failed;
}

static inline void lib_mutex_init(lib_mutex *mutex)
{
    (void)pth_mutex_init(mutex);
}

static inline int lib_mutex_lock(lib_mutex *mutex)
{
    return !pth_mutex_acquire(mutex, FALSE, NULL);
}

static inline int lib_mutex_unlock(lib_mutex *mutex)
{
    return !pth_mutex_release(mutex);
}

static inline int lib_conn_open(lib_conn *conn, int fd)
{
    conn->fd = fd; /* on one that does not block it would not wait */
    return 0;
}

static inline ssize_t lib_conn_read(lib_conn *conn, void *buf, size_t n)
{
    return pth_read(conn->fd, buf, n);
}

static inline int lib_conn_write(lib_conn *conn, const void *buf, size_t n)
{
    return pth_write(conn->fd, buf, n) != (ssize_t)n;
}

static inline int lib_conn_close(lib_conn *conn)
{
    return close(conn->fd);
}

#include "workloads.h"
