/* SPDX-License-Identifier: MIT */
/*
 * play.h - a program of a few fibers, played by the library and by its model.
 *
 * A program is text: what the semaphore begins with, then each fiber's calls,
 *
 *     1/d1,u1/t2,c1        one permit; fiber 0: down, up; fiber 1: ...
 *     b2/l0/d1             bounded, two permits
 *
 * by a letter and a number, in the table of calls.c. After every call, and
 * before every choice, all that can be seen of the library is what its model
 * says, or the program is told, with the choices that led there, and the
 * process exits.
 */
#ifndef PLAY_H
#define PLAY_H

#include "explore.h"
#include "ref.h"

enum { CALLS_MOST = 48 };

struct call {
    char what;
    int8_t n;
};

struct program {
    int fibers;
    int lengths[REF_FIBERS];
    bool bounded;
    int8_t permits;
    struct call calls[REF_FIBERS][CALLS_MOST];
};

/* What was done so far, by all programs. */
struct tally {
    uint64_t paths, calls, trace, choices;
};

extern struct tally tally;
extern bool play_aloud;  /* print every call */
extern int play_threads; /* that the run has for what is offloaded */

/* On a fiber of a run on the virtual clock, with px__seam_pick set to it. */
size_t play_pick(px_loop *loop, px_fiber *const *ready, size_t n);
/* All paths of a program. */
void play(const struct program *program, struct chooser *chooser);

void program_print(const struct program *program, char *out, size_t size);
bool program_parse(struct program *program, const char *text);

#endif
