/* SPDX-License-Identifier: MIT */
/*
 * input.c - reads targets from a file or from standard input.
 *
 * A fiber of its own, so that targets are probed as they come and the whole
 * count is known as soon as can be. px_read() waits without holding anybody up.
 * open() has no such form (a FIFO without a writer may block it for ever), so
 * it runs on a thread.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <parataxis/cancel.h>
#include <parataxis/io.h>
#include <parataxis/offload.h>
#include <parataxis/scheduler.h>

#include "report.h"
#include "text.h"

#define PIECE 65536

static const char *name_of(const struct input *input)
{
    return input->path ? input->path : "standard input";
}

static void take_line(void *arg, unsigned long number, const char *line,
                      size_t length, bool too_long)
{
    struct input *input = arg;
    struct target *target =
        targets_add_line(input->list, line, length, too_long);

    if (target == NULL)
        return;
    if (target->state == STATE_MALFORMED) {
        char shown[80];

        (void)text_show(shown, sizeof(shown), target->text, target->length);
        say("%.200s: line %lu: %s: %s", name_of(input), number, target->reason,
            shown);
    }
    (void)px_sem_up(input->arrived);
}

/* On a thread of the pool. */
static int open_path(void *arg)
{
    int fd = open(arg, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    return fd >= 0 ? fd : -errno;
}

static int open_input(struct input *input)
{
    char *path;
    int fd;

    if (input->path == NULL)
        return STDIN_FILENO;
    path = strdup(input->path);
    if (path == NULL)
        return PX_ENOMEM;
    input->opening = true;
    fd = px_offload(open_path, path);
    input->opening = false;
    free(path);
    return fd;
}

/* Returns 0 at the end of the input, or a code. */
static int read_lines(struct input *input, int fd)
{
    char *bytes = malloc(PIECE);
    ssize_t n = PX_ENOMEM;

    if (bytes == NULL)
        return PX_ENOMEM;
    while ((n = px_read(fd, bytes, PIECE)) > 0) {
        int err;

        lines_feed(&input->lines, bytes, (size_t)n, take_line, input);
        err = px_yield(); /* the others are to have their turn */
        if (err < 0) {
            n = err;
            break;
        }
    }
    if (n == 0)
        lines_end(&input->lines, take_line, input);
    free(bytes);
    free(input->lines.bytes);
    input->lines.bytes = NULL;
    return (int)n;
}

int read_input(void *arg)
{
    struct input *input = arg;
    struct stat status;
    px_scope scope;
    int fd = open_input(input), err = fd;

    if (fd >= 0) {
        /* A file is read to its end even if that comes late, for every target
         * in it has its line of output; a pipe may have no end. */
        bool is_file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);

        (void)px_scope_enter_until(&scope,
                                   is_file ? PX_FOREVER : input->deadline);
        err = read_lines(input, fd);
        (void)px_scope_leave(&scope);
        if (fd != STDIN_FILENO)
            (void)px_close(fd);
    }
    input->complete = true;
    if (err == PX_ECANCELED || err == PX_ETIMEDOUT) {
        input->cut = true;
        say("%.200s: not read to its end", name_of(input));
    } else if (err < 0) {
        input->error = err;
        say("%.200s: %s", name_of(input), px_strerror(err));
    }
    (void)px_sem_up(input->arrived);
    return 0;
}
