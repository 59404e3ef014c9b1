/* SPDX-License-Identifier: MIT */
/* program.c - programs as text. */
#include "play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void program_print(const struct program *program, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "%s%d", program->bounded ? "b" : "",
                                 program->permits);

    for (int f = 0; f < program->fibers; f++) {
        for (int i = 0; i < program->lengths[f] && at < size; i++) {
            struct call call = program->calls[f][i];

            at += (size_t)snprintf(out + at, size - at, "%c%c%d", i ? ',' : '/',
                                   call.what, call.n);
        }
        if (program->lengths[f] == 0 && at < size)
            at += (size_t)snprintf(out + at, size - at, "/");
    }
}

bool program_parse(struct program *program, const char *text)
{
    char *end;

    memset(program, 0, sizeof(*program));
    program->bounded = *text == 'b';
    program->permits = (int8_t)strtol(text + program->bounded, &end, 10);
    while (*end == '/') {
        int f = program->fibers++;

        if (f == REF_FIBERS)
            return false;
        end++;
        while (*end && *end != '/') {
            struct call *call = &program->calls[f][program->lengths[f]++];

            if (program->lengths[f] == CALLS_MOST)
                return false;
            call->what = *end;
            call->n = (int8_t)strtol(end + 1, &end, 10);
            if (*end == ',')
                end++;
        }
    }
    return *end == '\0';
}
