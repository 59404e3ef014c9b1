/* SPDX-License-Identifier: MIT */
/*
 * offload.c - blocking calls on threads of their own.
 *
 * A job lies on the stack of the fiber that waits for it. The pool's lock
 * guards the queue and every job's `started`; the line between taking a job
 * back and waiting for it is drawn there. A finished job comes back through
 * the loop's inbox (inbox.h), after which its thread does not touch it.
 */
#include "offload.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/panic.h"
#include "cancel.h"
#include "inbox.h"

#define THREADS_LEAST 8
#define THREADS_MOST 64
#define THREADS_LIMIT 4096 /* whatever is asked for */

struct job {
    struct px_remote remote;
    px_fn fn;
    void *arg;
    int result;
    bool started;
    px_fiber *fiber;
    struct job *next; /* in the queue, oldest first */
    struct job *prev;
};

struct pool {
    px_loop *loop;
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct job *first; /* guarded by the lock, as all below */
    struct job *last;
    size_t queued;
    size_t idle; /* threads without a job, or that have finished theirs */
    size_t count;
    size_t cap;
    bool stopping;
    pthread_t threads[];
};

static void append(struct pool *pool, struct job *job)
{
    job->next = NULL;
    job->prev = pool->last;
    if (pool->last)
        pool->last->next = job;
    else
        pool->first = job;
    pool->last = job;
    pool->queued++;
}

static void take_out(struct pool *pool, struct job *job)
{
    if (job->prev)
        job->prev->next = job->next;
    else
        pool->first = job->next;
    if (job->next)
        job->next->prev = job->prev;
    else
        pool->last = job->prev;
    pool->queued--;
}

/* On the loop's thread. */
static void deliver(px_loop *loop, struct px_remote *remote)
{
    struct job *job = PX_CONTAINER_OF(remote, struct job, remote);

    loop->offloads--;
    (void)px__ready(job->fiber, job->result);
}

static int call(const struct job *job)
{
    unsigned forks = px__forks;
    int result = job->fn(job->arg);

    if (px__forks != forks)
        px__panic("px_offload", "a call returned in a forked child");
    return result;
}

static void *worker(void *arg)
{
    struct pool *pool = arg;

    (void)pthread_mutex_lock(&pool->lock);
    for (;;) {
        struct job *job;

        while (!pool->first && !pool->stopping)
            (void)pthread_cond_wait(&pool->work, &pool->lock);
        job = pool->first;
        if (!job)
            break;
        take_out(pool, job);
        job->started = true;
        pool->idle--;
        (void)pthread_mutex_unlock(&pool->lock);
        job->result = call(job);
        /* Before the fiber can know, and offload the next. */
        (void)pthread_mutex_lock(&pool->lock);
        pool->idle++;
        (void)pthread_mutex_unlock(&pool->lock);
        px__inbox_push(pool->loop, &job->remote);
        (void)pthread_mutex_lock(&pool->lock);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* One more thread, with every signal blocked: 0, or PX_EAGAIN. */
static int start_thread(struct pool *pool)
{
    sigset_t all, before;
    int err;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    err = pthread_create(&pool->threads[pool->count], NULL, worker, pool);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err)
        return PX_EAGAIN;
    pool->count++;
    pool->idle++;
    return 0;
}

static size_t cap_of(const px_loop *loop)
{
    long cores;

    if (loop->options.offload_threads > THREADS_LIMIT)
        return THREADS_LIMIT;
    if (loop->options.offload_threads)
        return loop->options.offload_threads;
    cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (cores < THREADS_LEAST)
        return THREADS_LEAST;
    return cores > THREADS_MOST ? THREADS_MOST : (size_t)cores;
}

/* 0 or a code. */
static int open_pool(px_loop *loop)
{
    size_t cap = cap_of(loop);
    struct pool *pool;
    int err = px__poller_open(&loop->poller);

    if (err || loop->pool)
        return err;
    pool = calloc(1, sizeof(*pool) + cap * sizeof(pool->threads[0]));
    if (!pool)
        return PX_ENOMEM;
    pool->loop = loop;
    pool->cap = cap;
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->work, NULL);
    loop->pool = pool;
    return 0;
}

void px__offload_close(px_loop *loop)
{
    struct pool *pool = loop->pool;

    if (!pool)
        return;
    (void)pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    (void)pthread_cond_broadcast(&pool->work);
    (void)pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->count; i++)
        (void)pthread_join(pool->threads[i], NULL);
    (void)pthread_cond_destroy(&pool->work);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool);
    loop->pool = NULL;
}

/* See to it that a thread will come for one job more. */
static int have_thread(struct pool *pool)
{
    int err = 0;

    (void)pthread_mutex_lock(&pool->lock);
    if (pool->queued >= pool->idle && pool->count < pool->cap)
        err = start_thread(pool);
    if (err && pool->count > 0)
        err = 0; /* one that is busy now will come */
    (void)pthread_mutex_unlock(&pool->lock);
    return err;
}

static void submit(struct pool *pool, struct job *job)
{
    (void)pthread_mutex_lock(&pool->lock);
    append(pool, job);
    (void)pthread_cond_signal(&pool->work);
    (void)pthread_mutex_unlock(&pool->lock);
}

static bool take_back(px_fiber *fiber, int code)
{
    struct pool *pool = fiber->loop->pool;
    struct job *job = fiber->waits_on;
    bool queued;

    (void)pthread_mutex_lock(&pool->lock);
    queued = !job->started;
    if (queued)
        take_out(pool, job);
    (void)pthread_mutex_unlock(&pool->lock);
    if (!queued)
        return false;
    fiber->loop->offloads--;
    (void)px__ready(fiber, code);
    return true;
}

static const struct px_wait_class offload_class = {
    .kind = PX_WAIT_OFFLOAD,
    .interrupt = take_back,
};

int px_offload(px_fn fn, void *arg)
{
    px_fiber *self = px__self;
    struct job job = {.fn = fn, .arg = arg, .fiber = self};
    int err, saved = errno;

    if (!fn)
        return PX_EINVAL;
    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    err = px__cancellation_point(self);
    if (!err)
        err = open_pool(self->loop);
    if (!err)
        err = have_thread(self->loop->pool);
    errno = saved;
    if (!err)
        err = px__may_park(self);
    if (err)
        return err;
    job.remote.deliver = deliver;
    submit(self->loop->pool, &job);
    self->loop->offloads++;
    self->waits_on = &job;
    return px__park(self, &offload_class);
}
