/* SPDX-License-Identifier: MIT */
/* suites.h - the calls that programs are made of, by what they are to try. */
#ifndef PX_MODEL_SUITES_H
#define PX_MODEL_SUITES_H

#include <stddef.h>

enum { LETTERS = 7 };

/* Seven calls for the exhaustive search; all there are for the random one. */
struct suite {
    const char *name;
    const char *begin; /* of a program */
    const char *calls[LETTERS];
    const char *random;
};

extern const struct suite suites[];
extern const size_t suites_count;

#endif
