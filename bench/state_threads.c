/* SPDX-License-Identifier: MIT */
/*
 * state_threads.c - the workloads on State Threads. See workloads.h.
 *
 * Stacks are of 64 KiB, which it keeps for reuse, without guards. It has no
 * semaphore and no waitgroup: all fibers are on one thread, so counters and
 * condition variables, which need no lock here, make both; up() hands its
 * permit to the fiber it wakes. The mutex is its own, and hands over in order.
 * It has no yield either: see st_queue.h.
 *
 * Time is read only when nothing is runnable, and timers count from then: it
 * is cheap, and wakes early.
 */
#include <st.h>

#include "harness.h"
#include "st_queue.h"

#include <errno.h>
#include <stdlib.h>

#define LIB_NAME "state_threads"
#define LIB_SEM_NOTE "a plain counter, inlined: no library call"
#define LIB_FIFO 1
#define LIB_MANY 1
#define LIB_WEIGHTED 0
#define LIB_MUTEX_FIFO 1
#define LIB_TIMED 0 /* it would be the plain counter again */
#define LIB_ARMED_NOTE "counts from a stale clock: wakes early"
#define LIB_SLEEPERS 1
#define LIB_WAKES_EARLY 1
#define LIB_SLACK 0
#define LIB_MILLION 1
#define LIB_ECHO 1

typedef st_mutex_t lib_mutex;

typedef struct lib_fiber {
    st_thread_t thread;
    int (*fn)(void *arg);
    void *arg;
} lib_fiber;

typedef struct lib_sem {
    long count;
    struct queue waiters;
} lib_sem;

typedef struct lib_waitgroup {
    long count;
    struct queue waiters; /* one at most */
} lib_waitgroup;

typedef struct lib_conn {
    st_netfd_t fd;
} lib_conn;

static const char *lib_version(void)
{
    return "1.9";
}

static int lib_run(int (*fn)(void *arg), void *arg, int flags)
{
    /* Tops of stacks in different cache sets; some touch one more page then. */
    (void)st_randomize_stacks(!(flags & ROW_DENSE));
    (void)st_set_eventsys(ST_EVENTSYS_ALT); /* epoll */
    if (st_init() != 0)
        return -errno;
    return yield_init() == 0 ? fn(arg) : -1;
}

static inline lib_fiber *lib_fibers_new(size_t n)
{
    return calloc(n, sizeof(lib_fiber));
}

static inline void lib_fibers_free(lib_fiber *fibers)
{
    free(fibers);
}

static inline int lib_yield(void)
{
    return yield();
}

static void *run_body(void *arg)
{
    lib_fiber *self = arg;

    (void)self->fn(self->arg);
    let_one_go();
    return NULL;
}

static inline int lib_spawn(lib_fiber *fiber, int (*fn)(void *), void *arg)
{
    fiber->fn = fn;
    fiber->arg = arg;
    fiber->thread = st_thread_create(run_body, fiber, 1, STACK);
    return fiber->thread ? 0 : -1;
}

static inline int lib_await(lib_fiber *fiber)
{
    let_one_go();
    return st_thread_join(fiber->thread, NULL);
}

static inline int lib_sleep(int64_t ns)
{
    let_one_go();
    return st_usleep((st_utime_t)ns / 1000);
}

static inline void lib_sem_init(lib_sem *sem, int64_t n)
{
    sem->count = n;
    queue_init(&sem->waiters);
}

static inline int sem_down(lib_sem *sem, st_utime_t timeout)
{
    if (sem->count > 0) {
        sem->count--;
        return 0;
    }
    let_one_go();
    return wait_in(&sem->waiters, timeout);
}

static inline int lib_sem_down(lib_sem *sem)
{
    return sem_down(sem, ST_UTIME_NO_TIMEOUT);
}

static inline int lib_sem_down_within(lib_sem *sem, int64_t ns)
{
    return sem_down(sem, (st_utime_t)ns / 1000);
}

static inline int lib_sem_up(lib_sem *sem)
{
    if (sem->waiters.head)
        return wake_first(&sem->waiters);
    sem->count++;
    return 0;
}

static inline void lib_mutex_init(lib_mutex *mutex)
{
    if (!*mutex)
        *mutex = st_mutex_new();
}

static inline int lib_mutex_lock(lib_mutex *mutex)
{
    let_one_go();
    return st_mutex_lock(*mutex);
}

static inline int lib_mutex_unlock(lib_mutex *mutex)
{
    return st_mutex_unlock(*mutex);
}

static inline void lib_waitgroup_init(lib_waitgroup *group)
{
    group->count = 0;
    queue_init(&group->waiters);
}

struct report {
    lib_waitgroup *group;
    int (*fn)(void *arg);
    void *arg;
};

static void *report_at_end(void *arg)
{
    struct report report = *(struct report *)arg;

    free(arg);
    (void)report.fn(report.arg);
    if (--report.group->count == 0 && report.group->waiters.head)
        (void)wake_first(&report.group->waiters);
    let_one_go();
    return NULL;
}

static inline int lib_waitgroup_go(lib_waitgroup *group, int (*fn)(void *),
                                   void *arg)
{
    struct report *report = malloc(sizeof(*report));

    if (!report)
        return -1;
    *report = (struct report){group, fn, arg};
    group->count++;
    return st_thread_create(report_at_end, report, 0, STACK) ? 0 : -1;
}

static inline int lib_waitgroup_wait(lib_waitgroup *group)
{
    if (group->count == 0)
        return 0;
    let_one_go();
    return wait_in(&group->waiters, ST_UTIME_NO_TIMEOUT);
}

static inline int lib_conn_open(lib_conn *conn, int fd)
{
    conn->fd = st_netfd_open_socket(fd);
    return conn->fd ? 0 : -1;
}

static inline ssize_t lib_conn_read(lib_conn *conn, void *buf, size_t n)
{
    let_one_go();
    return st_read(conn->fd, buf, n, ST_UTIME_NO_TIMEOUT);
}

static inline int lib_conn_write(lib_conn *conn, const void *buf, size_t n)
{
    let_one_go();
    return st_write(conn->fd, buf, n, ST_UTIME_NO_TIMEOUT) != (ssize_t)n;
}

static inline int lib_conn_close(lib_conn *conn)
{
    return st_netfd_close(conn->fd);
}

#include "workloads.h"
