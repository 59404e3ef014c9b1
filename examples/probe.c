/* SPDX-License-Identifier: MIT */
/*
 * probe.c - which of many network targets accept a connection?
 *
 *     probe [-c N] [-t MS] [-d MS] [-f FILE] [--json] [host:port ...]
 *
 * Checks many at once, each in a fiber, and prints the results in the order of
 * the input. What a job like this needs of the library is all in here: a
 * bounded number at a time (a semaphore), a timeout for each and a deadline for
 * all (scopes), blocking calls on threads (px_offload), waiting for everybody
 * (a waitgroup), and Ctrl-C that ends it in good order (px_wait_signal,
 * px_stop).
 *
 * This file: the run, its limits, signals and the exit. In probe/: options.c,
 * targets.c (parsing), input.c (reading), check.c (the checks), report.c
 * (output), demo.c, text.c.
 *
 * The fibers: main starts a check whenever there is a target and a place for
 * it; one waits for a signal, one reads the input, one draws the progress line;
 * and one for each check and each lookup of a name that is under way.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <parataxis/parataxis.h>

#include "probe/check.h"
#include "probe/demo.h"
#include "probe/input.h"
#include "probe/options.h"
#include "probe/report.h"
#include "probe/targets.h"
#include "probe/text.h"

/* What fibers need here is little; an address in text form the most of it. */
#define STACK_SIZE (32 * 1024)

/* Descriptors beside the connections: the standard ones, the loop's, the
 * input, the demo's; and what a lookup may have open on its thread. */
#define FILES_RESERVED 32
#define FILES_PER_LOOKUP 4
#define LOOKUPS_LEAST 4
#define LOOKUPS_MOST 256

struct probe {
    const struct options *options;
    struct targets list;
    size_t next; /* the first that is not started */
    struct checker checker;
    struct input input;
    struct demo demo;
    px_sem arrived; /* one permit for each target, and one for the end */
    px_waitgroup reading;
    sigset_t signals;
    bool interrupted;
    int error; /* what failed, but for the input */
    px_fiber *signal_fiber, *progress_fiber;
    struct progress progress;
    px_nsec start;
};

/* --- The process --------------------------------------------------------- */

/* Were one of the standard descriptors closed, a connection would get its
 * number, and our output. What is opened instead fails when it is used. */
static bool plug_standard_descriptors(void)
{
    int fd;

    for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return false;
    }
    return true;
}

/* Raise the soft limit of open files to the hard one, and make the most of it.
 * Lowers *at_once if it must, and returns how many lookups there is room for.
 */
static unsigned fit_file_limit(size_t *at_once)
{
    const size_t least = FILES_RESERVED + LOOKUPS_LEAST * FILES_PER_LOOKUP;
    struct rlimit limit;
    size_t files, lookups;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return LOOKUPS_MOST;
    if (limit.rlim_cur != limit.rlim_max) {
        struct rlimit raised = {limit.rlim_max, limit.rlim_max};

        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    files =
        limit.rlim_cur < SIZE_MAX / 2 ? (size_t)limit.rlim_cur : SIZE_MAX / 2;
    if (files < least + *at_once) {
        size_t fits = files > least ? files - least : 1;

        fprintf(stderr,
                "probe: only %zu files may be open: %zu at once, not %zu\n",
                files, fits, *at_once);
        *at_once = fits;
        return LOOKUPS_LEAST;
    }
    lookups = (files - FILES_RESERVED - *at_once) / FILES_PER_LOOKUP;
    return lookups < LOOKUPS_MOST ? (unsigned)lookups : LOOKUPS_MOST;
}

/* The signals that interrupt a run: blocked, so that a fiber may wait for them.
 * One that was ignored from the start (nohup, a shell's background) stays so.
 */
static void block_signals(sigset_t *set)
{
    static const int signals[] = {SIGINT, SIGTERM};
    struct sigaction action;
    size_t i;

    (void)sigemptyset(set);
    for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        if (sigaction(signals[i], NULL, &action) == 0 &&
            action.sa_handler != SIG_IGN)
            (void)sigaddset(set, signals[i]);
    }
    (void)pthread_sigmask(SIG_BLOCK, set, NULL);
}

static void end_at_once(int number)
{
    (void)number;
    _exit(EXIT_SIGNAL);
}

/* --- The run ------------------------------------------------------------- */

/* The first signal ends the run in good order. From then on a handler waits for
 * the second: it works even if the process hangs in a write. */
static int wait_for_signal(void *arg)
{
    struct probe *probe = arg;
    int number = px_wait_signal(&probe->signals);

    if (number > 0) {
        struct sigaction action;

        memset(&action, 0, sizeof(action));
        action.sa_handler = end_at_once;
        action.sa_flags = SA_ONSTACK;
        (void)sigemptyset(&action.sa_mask);
        if (sigismember(&probe->signals, SIGINT) == 1)
            (void)sigaction(SIGINT, &action, NULL);
        if (sigismember(&probe->signals, SIGTERM) == 1)
            (void)sigaction(SIGTERM, &action, NULL);
        probe->interrupted = true;
        (void)px_stop();
    }
    if (number != PX_ECANCELED)
        (void)pthread_sigmask(SIG_UNBLOCK, &probe->signals, NULL);
    return 0;
}

static void add_arguments(struct probe *probe)
{
    int i;

    for (i = 0; i < probe->options->count; i++) {
        const char *text = probe->options->targets[i];
        struct target *target = targets_add(&probe->list, text, strlen(text));

        if (target->state == STATE_MALFORMED) {
            char shown[80];

            (void)text_show(shown, sizeof(shown), text, strlen(text));
            say("argument %d: %s: %s", i + 1, target->reason, shown);
        }
        (void)px_sem_up(&probe->arrived);
    }
}

/* Bring in the targets: those that are there, and a fiber for the rest. */
static int open_targets(struct probe *probe)
{
    const struct options *options = probe->options;
    struct input *input = &probe->input;
    int err = 0;

    input->complete = options->file == NULL;
    if (options->demo) {
        err = demo_open(&probe->demo);
        if (err < 0)
            return err;
        demo_add_targets(&probe->demo, &probe->list);
        (void)px_sem_up_n(&probe->arrived, (int64_t)probe->list.count);
        err = demo_start(&probe->demo);
    }
    add_arguments(probe);
    if (options->file == NULL) {
        (void)px_sem_up(&probe->arrived);
        return err;
    }
    input->path = strcmp(options->file, "-") ? options->file : NULL;
    input->list = &probe->list;
    input->arrived = &probe->arrived;
    input->deadline = probe->checker.deadline;
    return px_waitgroup_go(&probe->reading, read_input, input);
}

/* Start a check for each target, as they come and as there is a place. */
static int start_checks(struct probe *probe)
{
    int err;

    while ((err = px_sem_down(&probe->arrived)) == 0) {
        struct target *target;

        if (probe->next == probe->list.count)
            break; /* the end */
        target = probe->list.items[probe->next];
        if (target->state == STATE_MALFORMED) {
            probe->checker.done++;
        } else {
            err = checker_start(&probe->checker, target);
            if (err < 0)
                break;
        }
        probe->next++;
    }
    return err;
}

/* Wait until nothing is left but calls on threads that may never return. */
static int wait_for_all(struct probe *probe)
{
    int err = px_waitgroup_wait(&probe->checker.all);

    if (err == 0 && !probe->input.opening)
        err = px_waitgroup_wait(&probe->reading);
    /* A call that was taken back is gone once its fiber has had its turn. */
    if (err == 0 && probe->checker.lookups > 0)
        err = px_yield();
    return err;
}

static void end_fiber(px_fiber *fiber)
{
    int err = fiber ? px_cancel_and_await(fiber, NULL) : 0;

    assert(err == 0);
    (void)err;
}

static void print_results(struct probe *probe)
{
    const struct options *options = probe->options;
    const struct input *input = &probe->input;
    px_nsec took = px_now() - probe->start;
    struct out out;

    if (input->opening)
        say("%.200s: not opened yet", input->path);
    if (probe->checker.unasked > 0)
        say("%zu lookups never began: others, which have not come to an end, "
            "hold all threads",
            probe->checker.unasked);
    out.fd = STDOUT_FILENO;
    out.error = 0;
    out.used = 0;
    if (options->json)
        report_json(&out, &probe->list);
    else if (options->demo)
        demo_report(&out, &probe->list, options->at_once, options->timeout,
                    took);
    else
        report_text(&out, &probe->list);
    if (out.error < 0) {
        say("standard output: %s", px_strerror(out.error));
        probe->error = out.error;
    }
    if (probe->list.count == 0 && !options->demo && !input->error &&
        !input->cut && !input->opening)
        say("no targets");
    if (probe->progress_fiber != NULL && probe->list.count > 1)
        say_summary(&probe->list, took);
}

static int status_of(const struct probe *probe)
{
    size_t i;

    if (probe->interrupted)
        return EXIT_SIGNAL;
    if (probe->error < 0 || probe->input.error < 0)
        return EXIT_TROUBLE;
    if (probe->input.cut || probe->input.opening)
        return EXIT_SOME_NOT; /* there may be more than we know of */
    for (i = 0; i < probe->list.count; i++) {
        if (probe->list.items[i]->state != STATE_OPEN)
            return EXIT_SOME_NOT;
    }
    return EXIT_ALL_OPEN;
}

/* Whatever has fired by now is kept out of here: a first Ctrl-C, the deadline.
 * Returns the exit status. */
static int finish(void *arg)
{
    struct probe *probe = arg;
    int err = wait_for_all(probe), status;

    if (err < 0)
        probe->error = err;
    end_fiber(probe->progress_fiber);
    print_results(probe);
    status = status_of(probe);
    if (probe->checker.lookups > 0 || probe->input.opening)
        _exit(status);
    end_fiber(probe->signal_fiber);
    demo_close(&probe->demo);
    targets_free(&probe->list);
    return status;
}

static int run(void *arg)
{
    struct probe *probe = arg;
    const struct options *options = probe->options;
    px_nsec deadline;
    px_scope whole;
    int err;

    probe->start = px_now();
    deadline = options->whole < PX_FOREVER ? probe->start + options->whole
                                           : PX_FOREVER;
    checker_init(&probe->checker, options->at_once, options->timeout, deadline);
    (void)px_spawn(&probe->signal_fiber, wait_for_signal, probe);
    probe->progress.checker = &probe->checker;
    probe->progress.list = &probe->list;
    probe->progress.complete = &probe->input.complete;
    probe->progress.start = probe->start;
    if (isatty(STDERR_FILENO))
        (void)px_spawn(&probe->progress_fiber, show_progress, &probe->progress);

    (void)px_scope_enter_until(&whole, deadline);
    err = open_targets(probe);
    if (err == 0)
        err = start_checks(probe);
    (void)px_scope_leave(&whole);
    /* What was cut short shows in the targets that are left. */
    if (err < 0 && err != PX_ECANCELED && err != PX_ETIMEDOUT) {
        say("%s", px_strerror(err));
        probe->error = err;
        (void)px_stop();
    }
    return px_with_shield(PX_FOREVER, finish, probe);
}

int main(int argc, char **argv)
{
    static struct probe probe;
    struct options options;
    px_run_options how;
    int status;

    memset(&how, 0, sizeof(how));
    if (!plug_standard_descriptors())
        return EXIT_TROUBLE;
    (void)signal(SIGPIPE, SIG_IGN); /* a reader that has gone is an error */
    (void)setlocale(LC_CTYPE, "");  /* for names beyond ASCII */
    status = read_options(&options, argc, argv);
    if (status >= 0)
        return status;

    how.stack_size = STACK_SIZE;
    how.offload_threads = fit_file_limit(&options.at_once);
    probe.options = &options;
    block_signals(&probe.signals);
    status = px_run_with(&how, run, &probe);
    if (status < 0) {
        fprintf(stderr, "probe: %s\n", px_strerror(status));
        return EXIT_TROUBLE;
    }
    return status;
}
