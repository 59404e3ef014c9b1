/* SPDX-License-Identifier: MIT */
/*
 * report.h - everything that probe prints.
 *
 * Nothing here blocks the loop: whatever is written goes through px_write(), so
 * a reader that has stopped, or a terminal that is held, stops only the fiber
 * that writes. Call it on a fiber.
 */
#ifndef PROBE_REPORT_H
#define PROBE_REPORT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "check.h"
#include "targets.h"

/* A line on standard error, "probe: ..." and a newline. Gives up after a second
 * without progress there. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Output that is gathered before it is written. */
struct out {
    int fd;
    int error; /* the first: 0 or a code; then nothing more is written */
    size_t used;
    char bytes[PIPE_BUF]; /* a pipe that has room takes that much at once */
};
void out_add(struct out *out, const char *bytes, size_t n);
void out_format(struct out *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void out_flush(struct out *out);

extern const char *const state_names[STATES];

/* The results, in the order of the list. */
void report_text(struct out *out, const struct targets *list);
void report_json(struct out *out, const struct targets *list);

/* The line that a terminal shows meanwhile. */
struct progress {
    const struct checker *checker;
    const struct targets *list;
    const bool *complete; /* whether the list is */
    px_nsec start;
};

/* A fiber's body, with a struct progress. Ends when it is cancelled. */
int show_progress(void *arg);

/* One line for a terminal on what came of all. */
void say_summary(const struct targets *list, px_nsec took);

#endif
