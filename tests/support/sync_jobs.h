/* SPDX-License-Identifier: MIT */
/*
 * sync_jobs.h - fibers that make one waiting call, for the tests of the
 * semaphore, the mutex and the waitgroup.
 *
 * A job starts at once, parks or not, and keeps what its call returned, when,
 * and what the next cancellation point said. The test's main fiber reads how
 * everything stands, in one line, and compares it:
 *
 *     IN_RUN(an_up_releases_the_oldest_waiter)
 *     {
 *         static px_sem sem;
 *
 *         EXPECT_EQ(px_sem_init(&sem, 0), 0);
 *         take('a', &sem, 1);
 *         take('b', &sem, 1);
 *         EXPECT_SEM(&sem, "0:ab a=- b=-");
 *         EXPECT_EQ(px_sem_up(&sem), 0);
 *         EXPECT_SEM(&sem, "0:b a=- b=-");      (a has its permit already)
 *         settle();
 *         EXPECT_SEM(&sem, "0:b a=ok b=-");
 *         ...
 *     }
 *
 * The line is the count (a mutex: the owner), a colon, the queue in the order
 * of arrival, and for each job in the order of starting its name and the code
 * its call returned, "-" while it has not. So nothing in it depends on the
 * order in which the run queue picks the fibers.
 *
 * Objects of a test are static: should the test fail, fibers that are still
 * parked on them must not find a frame that has gone.
 */
#ifndef SYNC_JOBS_H
#define SYNC_JOBS_H

#include "px_scale.h"
#include "px_test.h"

#define MAX_JOBS 16

struct job {
    char name;
    int (*call)(struct job *);
    px_sem *sem;
    px_mutex *mutex;
    px_waitgroup *wg;
    int64_t n;      /* how many permits it asks for */
    px_nsec within; /* its own scope's timeout; 0: it has no scope */
    px_scope scope; /* entered while it waits, if it has one */
    px_fiber *fiber;
    px_fid id;
    bool ended; /* its call has returned */
    int code;   /* what the call returned */
    int next;   /* what px_check() returned right after it */
    px_nsec at; /* when the call returned */
};

struct job_pool {
    struct job jobs[MAX_JOBS];
    size_t count;
    bool others_ran;
};

static inline struct job_pool *job_pool(void)
{
    static struct job_pool pool;

    return &pool;
}

static inline void clear_jobs(void)
{
    memset(job_pool(), 0, sizeof(struct job_pool));
}

/* The timeout of a scope that lies around every fiber of a test; 0: none. It
 * never fires, so nothing may be different inside it. */
static inline px_nsec *scope_around(void)
{
    static px_nsec timeout;

    return &timeout;
}

static inline void enter_scope_around(px_scope *scope)
{
    if (*scope_around())
        EXPECT_EQ(px_scope_enter(scope, *scope_around()), 0);
}

static inline void leave_scope_around(px_scope *scope)
{
    if (*scope_around())
        (void)px_scope_leave(scope);
}

static inline int job_main(void *arg)
{
    struct job *job = arg;
    px_scope around;

    job->id = px_current_id();
    enter_scope_around(&around);
    if (job->within)
        EXPECT_EQ(px_scope_enter(&job->scope, job->within), 0);
    job->code = job->call(job);
    job->at = px_now();
    job->ended = true;
    job->next = px_check();
    if (job->within)
        (void)px_scope_leave(&job->scope);
    leave_scope_around(&around);
    return 0;
}

static inline struct job *new_job(char name, int (*call)(struct job *))
{
    struct job_pool *pool = job_pool();
    struct job *job = &pool->jobs[pool->count < MAX_JOBS ? pool->count : 0];

    EXPECT(pool->count < MAX_JOBS);
    pool->count++;
    memset(job, 0, sizeof(*job));
    job->name = name;
    job->call = call;
    return job;
}

static inline struct job *start_job(struct job *job)
{
    EXPECT_EQ(px_spawn(&job->fiber, job_main, job), 0);
    return job;
}

/* Semaphores. */

static inline int call_down(struct job *job)
{
    return job->n == 1 ? px_sem_down(job->sem)
                       : px_sem_down_n(job->sem, job->n);
}

static inline int call_available(struct job *job)
{
    return px_sem_wait_available(job->sem);
}

/* Start a fiber that takes n permits and keeps them. */
static inline struct job *take(char name, px_sem *sem, int64_t n)
{
    struct job *job = new_job(name, call_down);

    job->sem = sem;
    job->n = n;
    return start_job(job);
}

/* The same inside a scope of its own, job->scope. */
static inline struct job *take_within(char name, px_sem *sem, int64_t n,
                                      px_nsec timeout)
{
    struct job *job = new_job(name, call_down);

    job->sem = sem;
    job->n = n;
    job->within = timeout;
    return start_job(job);
}

/* Start a fiber in px_sem_wait_available(). */
static inline struct job *watch_sem(char name, px_sem *sem)
{
    struct job *job = new_job(name, call_available);

    job->sem = sem;
    return start_job(job);
}

/* Mutexes. */

static inline int call_lock(struct job *job)
{
    return px_mutex_lock(job->mutex);
}

/* Start a fiber that locks, and ends holding the lock. */
static inline struct job *lock_in_fiber(char name, px_mutex *mutex)
{
    struct job *job = new_job(name, call_lock);

    job->mutex = mutex;
    return start_job(job);
}

static inline struct job *lock_within(char name, px_mutex *mutex,
                                      px_nsec timeout)
{
    struct job *job = new_job(name, call_lock);

    job->mutex = mutex;
    job->within = timeout;
    return start_job(job);
}

static inline int call_lock_and_unlock(struct job *job)
{
    int code = px_mutex_lock(job->mutex);

    if (code == 0)
        EXPECT_EQ(px_mutex_unlock(job->mutex), 0);
    return code;
}

/* Start a fiber that locks and at once unlocks. */
static inline struct job *pass_lock(char name, px_mutex *mutex)
{
    struct job *job = new_job(name, call_lock_and_unlock);

    job->mutex = mutex;
    return start_job(job);
}

/* Waitgroups. */

static inline int call_wait(struct job *job)
{
    return px_waitgroup_wait(job->wg);
}

static inline struct job *wait_in_fiber(char name, px_waitgroup *wg)
{
    struct job *job = new_job(name, call_wait);

    job->wg = wg;
    return start_job(job);
}

static inline struct job *wait_within(char name, px_waitgroup *wg,
                                      px_nsec timeout)
{
    struct job *job = new_job(name, call_wait);

    job->wg = wg;
    job->within = timeout;
    return start_job(job);
}

/* How things stand. */

struct line {
    char text[512];
    size_t length;
};

static inline void put(struct line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline void put(struct line *line, const char *format, ...)
{
    va_list args;
    size_t room = sizeof(line->text) - line->length;
    int written;

    va_start(args, format);
    written = vsnprintf(line->text + line->length, room, format, args);
    va_end(args);
    if (written > 0)
        line->length += (size_t)written < room ? (size_t)written : room - 1;
}

static inline void put_fiber(struct line *line, px_fid id)
{
    const struct job_pool *pool = job_pool();

    for (size_t i = 0; i < pool->count && i < MAX_JOBS; i++) {
        if (pool->jobs[i].id == id && pool->jobs[i].fiber) {
            put(line, "%c", pool->jobs[i].name);
            return;
        }
    }
    put(line, "%lld", (long long)id);
}

static inline void put_queue(struct line *line, const px_fid *ids, size_t n,
                             size_t waiters)
{
    EXPECT_EQ(waiters, n);
    put(line, ":");
    for (size_t i = 0; i < n && i < MAX_JOBS; i++)
        put_fiber(line, ids[i]);
}

static inline void put_jobs(struct line *line)
{
    const struct job_pool *pool = job_pool();

    for (size_t i = 0; i < pool->count && i < MAX_JOBS; i++) {
        const struct job *job = &pool->jobs[i];

        put(line, " %c=%s", job->name, job->ended ? err(job->code) : "-");
    }
}

static inline void expect_text_at(const char *actual, const char *expected,
                                  const char *file, int line)
{
    int same = strcmp(actual, expected) == 0;

    if (!same)
        (void)fprintf(stderr, "%s:%d: it stands \"%s\", not \"%s\"\n", file,
                      line, actual, expected);
    expect_at(same, "as it should stand", file, line);
}

static inline void expect_sem_at(const px_sem *sem, const char *expected,
                                 const char *file, int at)
{
    struct line line = {{0}, 0};
    px_fid ids[MAX_JOBS];
    size_t n = px_sem_waiter_ids(sem, ids, MAX_JOBS);

    put(&line, "%lld", (long long)px_sem_count(sem));
    put_queue(&line, ids, n, px_sem_waiters(sem));
    put_jobs(&line);
    expect_text_at(line.text, expected, file, at);
}

static inline void expect_mutex_at(const px_mutex *mutex, const char *expected,
                                   const char *file, int at)
{
    struct line line = {{0}, 0};
    px_fid ids[MAX_JOBS];
    size_t n = px_mutex_waiter_ids(mutex, ids, MAX_JOBS);

    if (px_mutex_owner(mutex) == PX_NO_FIBER)
        put(&line, "free");
    else
        put_fiber(&line, px_mutex_owner(mutex));
    put_queue(&line, ids, n, px_mutex_waiters(mutex));
    put_jobs(&line);
    expect_text_at(line.text, expected, file, at);
}

static inline void expect_wg_at(const px_waitgroup *wg, const char *expected,
                                const char *file, int at)
{
    struct line line = {{0}, 0};
    px_fid ids[MAX_JOBS];
    size_t n = px_waitgroup_waiter_ids(wg, ids, MAX_JOBS);

    EXPECT_EQ(px_waitgroup_count(wg), px_waitgroup_remaining(wg));
    put(&line, "%lld", (long long)px_waitgroup_count(wg));
    put_queue(&line, ids, n, px_waitgroup_waiters(wg));
    put_jobs(&line);
    expect_text_at(line.text, expected, file, at);
}

#define EXPECT_SEM(sem, text) expect_sem_at(sem, text, __FILE__, __LINE__)
#define EXPECT_MUTEX(mutex, text)                                              \
    expect_mutex_at(mutex, text, __FILE__, __LINE__)
#define EXPECT_WG(wg, text) expect_wg_at(wg, text, __FILE__, __LINE__)

/* The log reads so; it is empty afterwards. */
#define EXPECT_LOG(text)                                                       \
    do {                                                                       \
        expect_text_at(log_text(), text, __FILE__, __LINE__);                  \
        log_clear();                                                           \
    } while (0)

/* A code, as a word. */
#define EXPECT_CODE(actual, expected)                                          \
    expect_text_at(err(actual), err(expected), __FILE__, __LINE__)

/* Whether the running fiber parks: nobody_ran_since() is false once a fiber
 * that was queued by watch_others() has run. */
static inline int note_that_others_ran(void *arg)
{
    (void)arg;
    job_pool()->others_ran = true;
    return 0;
}

static inline void watch_others(void)
{
    px_spawn_options options;

    memset(&options, 0, sizeof(options));
    options.queued = true;
    job_pool()->others_ran = false;
    EXPECT_EQ(px_spawn_with(NULL, &options, note_that_others_ran, NULL), 0);
}

static inline bool nobody_ran_since(void)
{
    return !job_pool()->others_ran;
}

/* Fill an object that is done with, so that whoever still looks at it finds
 * nonsense. The compiler must not take that for a store that nobody reads. */
static inline void spoil(void *object, size_t size)
{
    memset(object, 0xa5, size);
    __asm__ volatile("" : : "r"(object) : "memory");
}

/* A test whose body is the main fiber of a run: its EXPECTs must hold, its log
 * must have been read, and the run must end with 0. It runs bare, inside a
 * scope without a deadline, and inside one with a deadline far away, for calls
 * that need not look at scopes go another way than those that must. */
struct body {
    void (*fn)(void);
};

static inline int run_body(void *arg)
{
    const struct body *body = arg;
    px_scope around;

    enter_scope_around(&around);
    body->fn();
    leave_scope_around(&around);
    return 0;
}

static inline void run_body_around(px_nsec around, void (*fn)(void))
{
    struct body body = {fn};

    *scope_around() = around;
    clear_jobs();
    run_fibers(run_body, &body);
    *scope_around() = 0;
    assert_log("");
}

#define IN_BARE_RUN(name)                                                      \
    static void name##_body(void);                                             \
    static void name(void **state)                                             \
    {                                                                          \
        (void)state;                                                           \
        run_body_around(0, name##_body);                                       \
    }                                                                          \
    static void name##_body(void)

#define IN_RUN(name)                                                           \
    static void name##_body(void);                                             \
    static void name(void **state)                                             \
    {                                                                          \
        (void)state;                                                           \
        run_body_around(0, name##_body);                                       \
        run_body_around(PX_FOREVER, name##_body);                              \
        run_body_around(1000 * PX_MINUTE, name##_body);                        \
    }                                                                          \
    static void name##_body(void)

/* The same for a run that deadlocks once and so ends with PX_ESTALLED. */
static inline void count_deadlock(void *ctx)
{
    ++*(int *)ctx;
}

static inline void run_that_stalls(px_nsec around, void (*fn)(void))
{
    px_run_options options;
    struct body body = {fn};
    int deadlocks = 0;

    memset(&options, 0, sizeof(options));
    options.on_deadlock = count_deadlock;
    options.ctx = &deadlocks;
    *scope_around() = around;
    clear_jobs();
    assert_int_equal(run_fibers_with(options, 0, run_body, &body), PX_ESTALLED);
    *scope_around() = 0;
    assert_int_equal(deadlocks, 1);
    assert_log("");
}

#define IN_STALLED_RUN(name)                                                   \
    static void name##_body(void);                                             \
    static void name(void **state)                                             \
    {                                                                          \
        (void)state;                                                           \
        run_that_stalls(0, name##_body);                                       \
        run_that_stalls(PX_FOREVER, name##_body);                              \
    }                                                                          \
    static void name##_body(void)

/* How often to do something: less under a tool that makes it slow. */
static inline int times(int full, int small)
{
    return is_small() ? small : full;
}

#endif
