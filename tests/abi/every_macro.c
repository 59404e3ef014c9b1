/* SPDX-License-Identifier: MIT */
/*
 * every_macro.c - uses each public macro once. Compiled as C and as C++, under
 * every standard the headers promise; it is not run.
 */
#include <parataxis/parataxis.h>

int every_macro(void);

static px_sem unbounded = PX_SEM_INIT(3);
static px_sem bounded = PX_SEM_INIT_BOUNDED(3);
static px_mutex mutex = PX_MUTEX_INIT;
static px_waitgroup waitgroup = PX_WAITGROUP_INIT(0);

static const px_nsec units[] = {PX_NSEC, PX_USEC,   PX_MSEC,
                                PX_SEC,  PX_MINUTE, PX_FOREVER};
static const int codes[] = {
    PX_EINVAL,     PX_ENOMEM,    PX_EBUSY,     PX_EAGAIN,
    PX_EPERM,      PX_EDEADLK,   PX_EOVERFLOW, PX_ETIMEDOUT,
    PX_ECANCELED,  PX_EBADF,     PX_EPIPE,     PX_ENOFIBER,
    PX_ENOTLOCKED, PX_ENEGATIVE, PX_ECLOSED,   PX_ESTALLED,
};

int every_macro(void)
{
    int err = 0, times = 0;

    {
        PX_SEM_GUARD(permit, &unbounded);
        PX_MUTEX_GUARD(lock, &mutex);
        if (permit.status == 0)
            px_sem_guard_release(&permit);
        if (lock.status == 0)
            px_mutex_guard_release(&lock);
    }
    PX_SEM_HOLD(&bounded, err) {
        PX_MUTEX_HOLD(&mutex, err) {
            PX_WITHIN(scope, 50 * PX_MSEC) {
                if (px_scope_status(&scope) == 0)
                    break;
                times++;
            }
            if (err)
                continue;
            times++;
        }
    }
    /* A block form is one statement. */
    if (times)
        PX_SEM_HOLD(&unbounded, err)
            times++;
    for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        times += px_now() == units[i];
    for (unsigned i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        times += err == codes[i];
    times += px_version() != PX_VERSION_MAJOR * 10000 + PX_VERSION_MINOR * 100 +
                                 PX_VERSION_PATCH;
    times += px_version_string()[0] != PX_VERSION_STRING[0];
    times += px_current_id() == PX_NO_FIBER;
    times += px_sem_limit(&bounded) == PX_SEM_UNBOUNDED;
    times += px_wait_fd(0, PX_READABLE | PX_WRITABLE) > 0;
    return times + (int)px_waitgroup_count(&waitgroup);
}
