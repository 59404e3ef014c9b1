/* SPDX-License-Identifier: MIT */
/*
 * input.h - reads targets from a file or from standard input.
 */
#ifndef PROBE_INPUT_H
#define PROBE_INPUT_H

#include <stdbool.h>

#include <parataxis/semaphore.h>

#include "targets.h"

struct input {
    const char *path; /* NULL: standard input */
    struct targets *list;
    px_sem *arrived; /* one permit for each target, and one for the end */
    px_nsec deadline;
    bool opening;  /* a thread is in open(), which may never return */
    bool cut;      /* it was stopped before the end */
    bool complete; /* there is no more to come */
    int error;     /* why it could not be read */
    struct lines lines;
};

/* A fiber's body, with a struct input. */
int read_input(void *arg);

#endif
