/* SPDX-License-Identifier: MIT */
/* arguments.h - what `model` is asked to do. */
#ifndef PX_MODEL_ARGUMENTS_H
#define PX_MODEL_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "suites.h"

struct options {
    const struct suite *suite;
    enum { NOTHING, ALL, SAMPLE, RANDOM, REPLAY, TRACES } what;
    int fibers, calls;
    uint64_t amount, seed, seconds;
    bool plain, as_it_is;
    int threads;
    const char *program, *choices;
};

extern struct options options;

void parse_arguments(int argc, char **argv);

/* What cannot be done as it was asked for is not begun: one line, and 2. */
_Noreturn void refuse(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#endif
