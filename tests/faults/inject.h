/* SPDX-License-Identifier: MIT */
/*
 * inject.h - makes the library's calls of the system fail.
 *
 * The linker sends every call of the functions below by inject.c (--wrap, see
 * tests/CMakeLists.txt). It counts them, and lets those fail that a fault
 * names. It also keeps the books: what was allocated, mapped and started, and
 * what of it was given back.
 *
 * The test's own calls come by there, too. What a test does for itself while a
 * fault is armed it does with __real_read() and its kin, which are not counted.
 */
#ifndef INJECT_H
#define INJECT_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What can fail, in the order in which reports list it. */
#define INJECT_CALLS(X)                                                        \
    X(malloc)                                                                  \
    X(calloc)                                                                  \
    X(realloc)                                                                 \
    X(posix_memalign)                                                          \
    X(strndup)                                                                 \
    X(mmap)                                                                    \
    X(mprotect)                                                                \
    X(madvise)                                                                 \
    X(pthread_create)                                                          \
    X(pthread_atfork)                                                          \
    X(sigaction)                                                               \
    X(sigaltstack)                                                             \
    X(epoll_create1)                                                           \
    X(epoll_ctl)                                                               \
    X(epoll_wait)                                                              \
    X(poll)                                                                    \
    X(ppoll)                                                                   \
    X(pipe2)                                                                   \
    X(open)                                                                    \
    X(read)                                                                    \
    X(write)                                                                   \
    X(recv)                                                                    \
    X(send)                                                                    \
    X(accept4)                                                                 \
    X(connect)                                                                 \
    X(close)                                                                   \
    X(fcntl)                                                                   \
    X(fstat)                                                                   \
    X(getsockopt)                                                              \
    X(getrlimit)                                                               \
    X(prctl)                                                                   \
    X(signalfd)                                                                \
    X(sigtimedwait)                                                            \
    X(sysconf)                                                                 \
    X(dladdr)                                                                  \
    X(fputs)                                                                   \
    X(fwrite)                                                                  \
    X(fflush)

/* Counted, never failed: giving back has no other way, and the clock is there
 * in every process. */
#define INJECT_COUNTED(X)                                                      \
    X(free)                                                                    \
    X(munmap)                                                                  \
    X(clock_gettime)                                                           \
    X(pthread_join)

#define INJECT_NUMBER(name) CALL_##name,
enum call {
    INJECT_CALLS(INJECT_NUMBER) CALL_memory, /* any that takes memory */
    CALL_descriptor,                         /* any that makes a descriptor */
    INJECT_COUNTED(INJECT_NUMBER) CALLS
};

extern const char *const call_names[CALLS];

#define FOR_EVER 1000000000L
#define SHORT 0 /* instead of an errno: only one byte is transferred */

/* From the `first` call of a kind on, `times` of them fail with `error`. */
struct fault {
    enum call call;
    int error;
    long first;
    long times;
};

/* Count anew, and fail as the one or two faults say; n of 0 only counts. The
 * array must stay until inject_lift(). */
void inject_arm(const struct fault *faults, size_t n);
/* Nothing fails any more; counting goes on. */
void inject_lift(void);
/* Whether a call has failed, or was cut short, since inject_arm(). */
bool inject_hit(void);
/* Calls of a kind since inject_arm(). */
long inject_count(enum call call);
/* All calls that were ever made, the counted ones too. */
long inject_total(void);

/* What the library is told of the machine; 0: what the system says. */
extern long inject_processors;
extern long inject_signal_stack; /* bytes that a signal's frame may need */

/* What is there and was not given back. */
struct books {
    long allocations;
    long bytes_mapped;
    long threads;
};
struct books inject_books(void);

/* The functions themselves, for a test's own use. */
ssize_t __real_read(int fd, void *buf, size_t n);
ssize_t __real_write(int fd, const void *buf, size_t n);
int __real_close(int fd);
int __real_pipe2(int ends[2], int flags);
int __real_poll(struct pollfd *set, nfds_t n, int timeout);
int __real_fcntl(int fd, int command, ...);
int __real_sigaltstack(const stack_t *stack, stack_t *before);

#endif
