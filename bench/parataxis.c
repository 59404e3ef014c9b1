/* SPDX-License-Identifier: MIT */
/* parataxis.c - the workloads on this library. See workloads.h. */
#include <parataxis/parataxis.h>

#include "harness.h"

#include <stdlib.h>

#ifndef LIB_NAME
#define LIB_NAME "parataxis" /* the installed shared library */
#endif
#define LIB_SEM_NOTE ""
#define LIB_FIFO 1
#define LIB_MANY 1
#define LIB_WEIGHTED 1
#define LIB_MUTEX_FIFO 1
#define LIB_TIMED 1
#define LIB_ARMED_NOTE ""
#define LIB_SLEEPERS 1
#define LIB_WAKES_EARLY 0
#define LIB_SLACK 1
#define LIB_MILLION 1
#define LIB_ECHO 1

typedef px_fiber *lib_fiber;
typedef px_sem lib_sem;
typedef px_mutex lib_mutex;
typedef px_waitgroup lib_waitgroup;
typedef px_sem lib_timed;

static const char *lib_version(void)
{
    return px_version_string();
}

static int lib_run(int (*fn)(void *arg), void *arg, int flags)
{
    px_run_options options = {.timer_slack = flags & ROW_SLACK ? PX_MSEC : 0};

    return px_run_with(&options, fn, arg);
}

static inline lib_fiber *lib_fibers_new(size_t n)
{
    return calloc(n, sizeof(lib_fiber));
}

static inline void lib_fibers_free(lib_fiber *fibers)
{
    free(fibers);
}

static inline int lib_spawn(lib_fiber *fiber, int (*fn)(void *), void *arg)
{
    return px_spawn(fiber, fn, arg);
}

static inline int lib_await(lib_fiber *fiber)
{
    return px_await(*fiber, NULL);
}

static inline int lib_yield(void)
{
    return px_yield();
}

static inline int lib_sleep(int64_t ns)
{
    return px_sleep(ns);
}

static inline void lib_sem_init(lib_sem *sem, int64_t n)
{
    (void)px_sem_init(sem, n);
}

static inline int lib_sem_down(lib_sem *sem)
{
    return px_sem_down(sem);
}

static inline int lib_sem_up(lib_sem *sem)
{
    return px_sem_up(sem);
}

static inline int lib_sem_down_n(lib_sem *sem, int64_t n)
{
    return px_sem_down_n(sem, n);
}

static inline int lib_sem_up_n(lib_sem *sem, int64_t n)
{
    return px_sem_up_n(sem, n);
}

static inline int lib_sem_down_within(lib_sem *sem, int64_t ns)
{
    px_scope scope;
    int code = px_scope_enter(&scope, ns);

    if (code == 0) {
        code = px_sem_down(sem);
        (void)px_scope_leave(&scope);
    }
    return code;
}

static inline void lib_mutex_init(lib_mutex *mutex)
{
    (void)px_mutex_init(mutex);
}

static inline int lib_mutex_lock(lib_mutex *mutex)
{
    return px_mutex_lock(mutex);
}

static inline int lib_mutex_unlock(lib_mutex *mutex)
{
    return px_mutex_unlock(mutex);
}

static inline void lib_timed_init(lib_timed *timed)
{
    (void)px_sem_init(timed, 1);
}

static inline int lib_timed_take(lib_timed *timed, int64_t ns)
{
    return lib_sem_down_within(timed, ns);
}

static inline int lib_timed_give(lib_timed *timed)
{
    return px_sem_up(timed);
}

static inline void lib_waitgroup_init(lib_waitgroup *group)
{
    (void)px_waitgroup_init(group, 0);
}

static inline int lib_waitgroup_go(lib_waitgroup *group, int (*fn)(void *),
                                   void *arg)
{
    return px_waitgroup_go(group, fn, arg);
}

static inline int lib_waitgroup_wait(lib_waitgroup *group)
{
    return px_waitgroup_wait(group);
}

typedef struct lib_conn {
    int fd;
} lib_conn;

static inline int lib_conn_open(lib_conn *conn, int fd)
{
    conn->fd = fd;
    return px_nonblock(fd);
}

static inline ssize_t lib_conn_read(lib_conn *conn, void *buf, size_t n)
{
    return px_read(conn->fd, buf, n);
}

static inline int lib_conn_write(lib_conn *conn, const void *buf, size_t n)
{
    return px_write_all(conn->fd, buf, n, NULL);
}

static inline int lib_conn_close(lib_conn *conn)
{
    return px_close(conn->fd);
}

#include "workloads.h"
