/* SPDX-License-Identifier: MIT */
/*
 * px_coverage.c - what a process has counted survives how it ends.
 *
 * gcov and clang write their counts when a process exits. Many a test looks at
 * one that ends otherwise: by abort(), by _exit() in a forked child, by a
 * signal whose default action the library has restored. This file stands
 * before the C library there, writes the counts, and goes on to the function
 * that was meant. Only builds that count have it; so the library itself needs
 * no code for that.
 */
#ifdef PX_COVERAGE

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of the test's, if it has one: what it does to the calls of the C library is
 * over. Counts are written by such calls, too. */
__attribute__((weak)) void px_before_counts(void);

static void let_go_of_calls(void)
{
    if (px_before_counts)
        px_before_counts();
}

#if defined(__clang__)
int __llvm_profile_write_file(void);
void __llvm_profile_reset_counters(void);

static void save_counts(void)
{
    let_go_of_calls();
    (void)__llvm_profile_write_file();
    __llvm_profile_reset_counters();
}
#else
void __gcov_dump(void);
void __gcov_reset(void);

/* What was written once is not written again, unless it is reset. */
static void save_counts(void)
{
    let_go_of_calls();
    __gcov_dump();
    __gcov_reset();
}
#endif

/* The C library's own, which this file hides. Of some type of function: who
 * calls it says of which. */
static void (*usual(const char *name))(void)
{
    void *found = dlsym(RTLD_NEXT, name);
    void (*function)(void);

    memcpy(&function, &found, sizeof(function));
    return function;
}

void abort(void)
{
    save_counts();
    usual("abort")();
    __builtin_unreachable();
}

void _exit(int status)
{
    save_counts();
    ((void (*)(int))usual("_exit"))(status);
    __builtin_unreachable();
}

/* Runs once, then the default action is back: the signal kills on return. */
static void save_and_die(int number)
{
    save_counts();
    (void)raise(number);
}

/* A signal is blocked while its handler runs. */
static int is_in_handler(int number)
{
    sigset_t blocked;

    return pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 &&
           sigismember(&blocked, number) == 1;
}

/* The handler of a fault calls it last of all. Others want the default action
 * itself, and may hand it on. */
sighandler_t signal(int number, sighandler_t handler)
{
    struct sigaction action, earlier;

    if (handler != SIG_DFL || (number != SIGSEGV && number != SIGBUS) ||
        !is_in_handler(number))
        return ((sighandler_t(*)(int, sighandler_t))usual("signal"))(number,
                                                                     handler);
    memset(&action, 0, sizeof(action));
    action.sa_handler = save_and_die;
    action.sa_flags = SA_ONSTACK | (int)SA_RESETHAND;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, &earlier);
    return earlier.sa_handler;
}

#else

/* Nothing: but ISO C wants something in every file. */
typedef int px_coverage_is_off;

#endif
