/* SPDX-License-Identifier: MIT */
/*
 * inject.c - see inject.h.
 *
 * The threads of px_offload() come by here, too: what they touch is atomic. A
 * fault is armed while there are none, and lifting it is one flag.
 */
#include "inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME(name) #name,
const char *const call_names[CALLS] = {INJECT_CALLS(NAME) "any for memory",
                                       "any for a descriptor",
                                       INJECT_COUNTED(NAME)};

static const struct fault *armed;
static size_t armed_count;
static atomic_bool lifted;
static atomic_bool hit;
static atomic_long counts[CALLS];
static atomic_long total;
static atomic_long allocations, bytes_mapped, threads;

void inject_arm(const struct fault *faults, size_t n)
{
    for (int i = 0; i < CALLS; i++)
        atomic_store(&counts[i], 0);
    armed = faults;
    armed_count = n;
    atomic_store(&hit, false);
    atomic_store(&lifted, false);
}

void inject_lift(void)
{
    atomic_store(&lifted, true);
}

/* See px_coverage.c. */
void px_before_counts(void);
void px_before_counts(void)
{
    inject_lift();
}

bool inject_hit(void)
{
    return atomic_load(&hit);
}

long inject_count(enum call call)
{
    return atomic_load(&counts[call]);
}

long inject_total(void)
{
    return atomic_load(&total);
}

struct books inject_books(void)
{
    return (struct books){atomic_load(&allocations), atomic_load(&bytes_mapped),
                          atomic_load(&threads)};
}

/* The fault that this call meets, or NULL. */
static const struct fault *meet(enum call call)
{
    long number = atomic_fetch_add(&counts[call], 1) + 1;

    for (size_t i = 0; i < armed_count && !atomic_load(&lifted); i++) {
        const struct fault *fault = &armed[i];

        if (fault->call == call && number >= fault->first &&
            number - fault->first < fault->times) {
            atomic_store(&hit, true);
            return fault;
        }
    }
    return NULL;
}

static const struct fault *meet_either(enum call call, enum call kind)
{
    const struct fault *fault = meet(call), *other = meet(kind);

    return fault ? fault : other;
}

static void count(enum call call)
{
    (void)atomic_fetch_add(&total, 1);
    (void)atomic_fetch_add(&counts[call], 1);
}

/* Whether this call is to fail; errno says why. */
static bool fails(enum call call)
{
    const struct fault *fault = meet(call);

    (void)atomic_fetch_add(&total, 1);
    if (fault)
        errno = fault->error;
    return fault != NULL;
}

static bool fails_as(enum call call, enum call kind)
{
    const struct fault *fault = meet_either(call, kind);

    (void)atomic_fetch_add(&total, 1);
    if (fault)
        errno = fault->error;
    return fault != NULL;
}

/* The same for a transfer, which may also be made short: false, *n is 1. */
static bool transfer_fails(enum call call, size_t *n)
{
    const struct fault *fault = meet(call);

    (void)atomic_fetch_add(&total, 1);
    if (!fault)
        return false;
    if (fault->error == SHORT) {
        *n = *n > 1 ? 1 : *n;
        return false;
    }
    errno = fault->error;
    return true;
}

#define WRAP(type, name, ...)                                                  \
    type __real_##name(__VA_ARGS__);                                           \
    type __wrap_##name(__VA_ARGS__);                                           \
    type __wrap_##name(__VA_ARGS__)

/* --- Memory --------------------------------------------------------------- */

static void *kept(void *memory)
{
    if (memory)
        (void)atomic_fetch_add(&allocations, 1);
    return memory;
}

WRAP(void *, malloc, size_t size)
{
    return fails_as(CALL_malloc, CALL_memory) ? NULL
                                              : kept(__real_malloc(size));
}

WRAP(void *, calloc, size_t n, size_t size)
{
    return fails_as(CALL_calloc, CALL_memory) ? NULL
                                              : kept(__real_calloc(n, size));
}

WRAP(void *, realloc, void *memory, size_t size)
{
    void *moved;

    if (fails_as(CALL_realloc, CALL_memory))
        return NULL;
    moved = __real_realloc(memory, size);
    return memory ? moved : kept(moved);
}

WRAP(int, posix_memalign, void **out, size_t alignment, size_t size)
{
    int error;

    if (fails_as(CALL_posix_memalign, CALL_memory))
        return errno;
    error = __real_posix_memalign(out, alignment, size);
    if (!error)
        (void)kept(*out);
    return error;
}

WRAP(char *, strndup, const char *text, size_t n)
{
    return fails_as(CALL_strndup, CALL_memory) ? NULL
                                               : kept(__real_strndup(text, n));
}

WRAP(void, free, void *memory)
{
    count(CALL_free);
    if (memory)
        (void)atomic_fetch_sub(&allocations, 1);
    __real_free(memory);
}

WRAP(void *, mmap, void *at, size_t size, int protection, int flags, int fd,
     off_t offset)
{
    void *memory;

    if (fails_as(CALL_mmap, CALL_memory))
        return MAP_FAILED;
    memory = __real_mmap(at, size, protection, flags, fd, offset);
    if (memory != MAP_FAILED)
        (void)atomic_fetch_add(&bytes_mapped, (long)size);
    return memory;
}

WRAP(int, munmap, void *at, size_t size)
{
    int error = __real_munmap(at, size);

    count(CALL_munmap);
    if (!error)
        (void)atomic_fetch_sub(&bytes_mapped, (long)size);
    return error;
}

WRAP(int, mprotect, void *at, size_t size, int protection)
{
    return fails_as(CALL_mprotect, CALL_memory)
               ? -1
               : __real_mprotect(at, size, protection);
}

WRAP(int, madvise, void *at, size_t size, int advice)
{
    return fails_as(CALL_madvise, CALL_memory)
               ? -1
               : __real_madvise(at, size, advice);
}

/* --- Threads and signals -------------------------------------------------- */

WRAP(int, pthread_create, pthread_t *out, const pthread_attr_t *attributes,
     void *(*fn)(void *), void *arg)
{
    int error, saved = errno;

    if (fails(CALL_pthread_create)) {
        error = errno;
        errno = saved;
        return error;
    }
    error = __real_pthread_create(out, attributes, fn, arg);
    if (!error)
        (void)atomic_fetch_add(&threads, 1);
    return error;
}

WRAP(int, pthread_join, pthread_t thread, void **result)
{
    int error = __real_pthread_join(thread, result);

    count(CALL_pthread_join);
    if (!error)
        (void)atomic_fetch_sub(&threads, 1);
    return error;
}

WRAP(int, pthread_atfork, void (*before)(void), void (*parent)(void),
     void (*child)(void))
{
    return fails(CALL_pthread_atfork)
               ? ENOMEM
               : __real_pthread_atfork(before, parent, child);
}

WRAP(int, sigaction, int number, const struct sigaction *action,
     struct sigaction *before)
{
    return fails(CALL_sigaction) ? -1
                                 : __real_sigaction(number, action, before);
}

WRAP(int, sigaltstack, const stack_t *stack, stack_t *before)
{
    return fails(CALL_sigaltstack) ? -1 : __real_sigaltstack(stack, before);
}

WRAP(int, signalfd, int fd, const sigset_t *set, int flags)
{
    return fails_as(CALL_signalfd, CALL_descriptor)
               ? -1
               : __real_signalfd(fd, set, flags);
}

WRAP(int, sigtimedwait, const sigset_t *set, siginfo_t *info,
     const struct timespec *timeout)
{
    return fails(CALL_sigtimedwait) ? -1
                                    : __real_sigtimedwait(set, info, timeout);
}

WRAP(int, clock_gettime, clockid_t clock, struct timespec *time)
{
    count(CALL_clock_gettime);
    return __real_clock_gettime(clock, time);
}

/* It has no errno. */
WRAP(int, dladdr, const void *address, Dl_info *info)
{
    return fails(CALL_dladdr) ? 0 : __real_dladdr(address, info);
}

/* --- Descriptors ---------------------------------------------------------- */

WRAP(int, epoll_create1, int flags)
{
    return fails_as(CALL_epoll_create1, CALL_descriptor)
               ? -1
               : __real_epoll_create1(flags);
}

WRAP(int, epoll_ctl, int set, int operation, int fd, struct epoll_event *event)
{
    return fails(CALL_epoll_ctl) ? -1
                                 : __real_epoll_ctl(set, operation, fd, event);
}

WRAP(int, epoll_wait, int set, struct epoll_event *events, int most,
     int timeout)
{
    return fails(CALL_epoll_wait)
               ? -1
               : __real_epoll_wait(set, events, most, timeout);
}

WRAP(int, poll, struct pollfd *set, nfds_t n, int timeout)
{
    return fails(CALL_poll) ? -1 : __real_poll(set, n, timeout);
}

WRAP(int, ppoll, struct pollfd *set, nfds_t n, const struct timespec *timeout,
     const sigset_t *signals)
{
    return fails(CALL_ppoll) ? -1 : __real_ppoll(set, n, timeout, signals);
}

WRAP(int, pipe2, int ends[2], int flags)
{
    return fails_as(CALL_pipe2, CALL_descriptor) ? -1
                                                 : __real_pipe2(ends, flags);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
/* The library only reads files. */
int __wrap_open(const char *path, int flags, ...)
{
    return fails_as(CALL_open, CALL_descriptor) ? -1 : __real_open(path, flags);
}

WRAP(ssize_t, read, int fd, void *buf, size_t n)
{
    return transfer_fails(CALL_read, &n) ? -1 : __real_read(fd, buf, n);
}

WRAP(ssize_t, write, int fd, const void *buf, size_t n)
{
    return transfer_fails(CALL_write, &n) ? -1 : __real_write(fd, buf, n);
}

WRAP(ssize_t, recv, int fd, void *buf, size_t n, int flags)
{
    return transfer_fails(CALL_recv, &n) ? -1 : __real_recv(fd, buf, n, flags);
}

WRAP(ssize_t, send, int fd, const void *buf, size_t n, int flags)
{
    return transfer_fails(CALL_send, &n) ? -1 : __real_send(fd, buf, n, flags);
}

WRAP(int, accept4, int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    return fails_as(CALL_accept4, CALL_descriptor)
               ? -1
               : __real_accept4(fd, address, size, flags);
}

/* An interrupted connect(2) goes on without its caller. */
WRAP(int, connect, int fd, const struct sockaddr *address, socklen_t size)
{
    if (!fails(CALL_connect))
        return __real_connect(fd, address, size);
    if (errno == EINTR) {
        (void)__real_connect(fd, address, size);
        errno = EINTR;
    }
    return -1;
}

/* A close(2) that fails has closed the descriptor all the same. */
WRAP(int, close, int fd)
{
    int error;

    if (!fails(CALL_close))
        return __real_close(fd);
    error = errno;
    (void)__real_close(fd);
    errno = error;
    return -1;
}

int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...)
{
    va_list args;
    long value;

    va_start(args, command);
    value = command == F_GETFL ? 0 : va_arg(args, int);
    va_end(args);
    return fails(CALL_fcntl) ? -1 : __real_fcntl(fd, command, value);
}

WRAP(int, fstat, int fd, struct stat *status)
{
    return fails(CALL_fstat) ? -1 : __real_fstat(fd, status);
}

WRAP(int, getsockopt, int fd, int level, int option, void *value,
     socklen_t *size)
{
    return fails(CALL_getsockopt)
               ? -1
               : __real_getsockopt(fd, level, option, value, size);
}

WRAP(int, getrlimit, __rlimit_resource_t resource, struct rlimit *limit)
{
    return fails(CALL_getrlimit) ? -1 : __real_getrlimit(resource, limit);
}

/* --- The rest ------------------------------------------------------------- */

int __real_prctl(int option, ...);
int __wrap_prctl(int option, ...);
/* The library only asks, by a pointer. */
int __wrap_prctl(int option, ...)
{
    va_list args;
    void *out;

    va_start(args, option);
    out = va_arg(args, void *);
    va_end(args);
    return fails(CALL_prctl) ? -1 : __real_prctl(option, out);
}

long inject_processors, inject_signal_stack;

/* The size of a page is not asked of the system. */
WRAP(long, sysconf, int name)
{
    if (name == _SC_NPROCESSORS_ONLN && inject_processors)
        return inject_processors;
    if (name == _SC_SIGSTKSZ && inject_signal_stack)
        return inject_signal_stack;
    return name != _SC_PAGESIZE && fails(CALL_sysconf) ? -1
                                                       : __real_sysconf(name);
}

WRAP(int, fputs, const char *text, FILE *to)
{
    return fails(CALL_fputs) ? EOF : __real_fputs(text, to);
}

WRAP(size_t, fwrite, const void *items, size_t size, size_t n, FILE *to)
{
    return fails(CALL_fwrite) ? 0 : __real_fwrite(items, size, n, to);
}

WRAP(int, fflush, FILE *to)
{
    return fails(CALL_fflush) ? EOF : __real_fflush(to);
}
