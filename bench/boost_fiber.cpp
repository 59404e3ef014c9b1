/* SPDX-License-Identifier: MIT */
/*
 * boost_fiber.cpp - the workloads on Boost.Fiber. See workloads.h.
 *
 * What makes it fastest is chosen: the round-robin scheduler (its default),
 * pooled stacks (of 64 KiB as here, though without guards, and a little more,
 * so that their tops lie in different cache sets), fibers started by "dispatch",
 * that is at once. It has no semaphore and no waitgroup. All fibers are on one
 * thread, so a counter and a condition variable without a lock make both, and
 * cost less than with a mutex; up() hands its permit to the waiter it wakes, so
 * the order is that of arrival.
 */
#include <boost/fiber/all.hpp>
#include <boost/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#define LIB_NAME "boost_fiber"
#define LIB_SEM_NOTE "a plain counter, inlined: no library call"
#define LIB_FIFO 1
#define LIB_MANY 1
#define LIB_WEIGHTED 0
#define LIB_MUTEX_FIFO 0
#define LIB_TIMED 1
#define LIB_ARMED_NOTE ""
#define LIB_SLEEPERS 1
#define LIB_WAKES_EARLY 0
#define LIB_SLACK 0
#define LIB_MILLION 0
#define LIB_ECHO 0 /* it has no input and output of its own */

namespace
{

namespace bf = boost::fibers;

struct no_lock {
    void lock() {}
    void unlock() {}
};

struct lib_sem {
    std::int64_t count = 0;
    std::size_t waiters = 0;
    bf::condition_variable_any released;
};

struct lib_waitgroup {
    std::int64_t count = 0;
    bf::condition_variable_any zero;
};

typedef bf::fiber lib_fiber;
typedef bf::mutex lib_mutex;
typedef bf::timed_mutex lib_timed;

bf::pooled_fixedsize_stack &stacks()
{
    static bf::pooled_fixedsize_stack pool(64 * 1024 + 192);
    return pool;
}

const char *lib_version()
{
    return BOOST_LIB_VERSION;
}

/* The thread that asks for a fiber for the first time is the main fiber. */
int lib_run(int (*fn)(void *), void *arg, int)
{
    return fn(arg);
}

inline lib_fiber *lib_fibers_new(std::size_t n)
{
    return new lib_fiber[n];
}

inline void lib_fibers_free(lib_fiber *fibers)
{
    delete[] fibers;
}

inline int lib_spawn(lib_fiber *fiber, int (*fn)(void *), void *arg)
{
    *fiber =
        lib_fiber(bf::launch::dispatch, std::allocator_arg, stacks(), fn, arg);
    return 0;
}

inline int lib_await(lib_fiber *fiber)
{
    fiber->join();
    return 0;
}

inline int lib_yield()
{
    boost::this_fiber::yield();
    return 0;
}

inline int lib_sleep(std::int64_t ns)
{
    boost::this_fiber::sleep_for(std::chrono::nanoseconds(ns));
    return 0;
}

inline void lib_sem_init(lib_sem *sem, std::int64_t n)
{
    sem->count = n;
}

inline int lib_sem_down(lib_sem *sem)
{
    if (sem->count > 0) {
        sem->count--;
    } else {
        no_lock none;

        sem->waiters++;
        sem->released.wait(none);
    }
    return 0;
}

inline int lib_sem_up(lib_sem *sem)
{
    if (sem->waiters > 0) {
        sem->waiters--;
        sem->released.notify_one();
    } else {
        sem->count++;
    }
    return 0;
}

inline int lib_sem_down_within(lib_sem *sem, std::int64_t ns)
{
    if (sem->count > 0) {
        sem->count--;
    } else {
        no_lock none;

        sem->waiters++;
        return sem->released.wait_for(none, std::chrono::nanoseconds(ns)) ==
               bf::cv_status::timeout;
    }
    return 0;
}

inline void lib_mutex_init(lib_mutex *) {}

inline int lib_mutex_lock(lib_mutex *mutex)
{
    mutex->lock();
    return 0;
}

inline int lib_mutex_unlock(lib_mutex *mutex)
{
    mutex->unlock();
    return 0;
}

inline void lib_timed_init(lib_timed *) {}

inline int lib_timed_take(lib_timed *timed, std::int64_t ns)
{
    return !timed->try_lock_for(std::chrono::nanoseconds(ns));
}

inline int lib_timed_give(lib_timed *timed)
{
    timed->unlock();
    return 0;
}

inline void lib_waitgroup_init(lib_waitgroup *group)
{
    group->count = 0;
}

struct report_at_end {
    lib_waitgroup *group;
    int (*fn)(void *);
    void *arg;

    void operator()() const
    {
        fn(arg);
        if (--group->count == 0)
            group->zero.notify_all();
    }
};

inline int lib_waitgroup_go(lib_waitgroup *group, int (*fn)(void *), void *arg)
{
    group->count++;
    lib_fiber(bf::launch::dispatch, std::allocator_arg, stacks(),
              report_at_end{group, fn, arg})
        .detach();
    return 0;
}

inline int lib_waitgroup_wait(lib_waitgroup *group)
{
    no_lock none;

    while (group->count != 0)
        group->zero.wait(none);
    return 0;
}

} // namespace

#include "workloads.h"
