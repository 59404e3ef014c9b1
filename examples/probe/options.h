/* SPDX-License-Identifier: MIT */
/*
 * options.h - what the command line asks for.
 */
#ifndef PROBE_OPTIONS_H
#define PROBE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <parataxis/clock.h>

enum {
    EXIT_ALL_OPEN = 0,
    EXIT_SOME_NOT = 1,
    EXIT_TROUBLE = 2, /* bad usage, or input or output failed */
    EXIT_SIGNAL = 130
};

struct options {
    size_t at_once;
    px_nsec timeout, whole;
    const char *file; /* "-" is standard input */
    bool json, demo;
    char **targets;
    int count;
};

/* Read the command line, and answer --help and --version. Returns below 0 to go
 * on, or the exit status. */
int read_options(struct options *options, int argc, char **argv);

#endif
