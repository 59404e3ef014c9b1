/* SPDX-License-Identifier: MIT */
/*
 * explore.h - where choices come from.
 *
 * A path is what was chosen each time when there was more than one way to go
 * on. Exhaustive search begins with the first way everywhere, and then changes
 * the last choice that can be changed, until none can. A state that was seen
 * before has been gone on from before: the path ends there, by the first way
 * everywhere, and is not changed behind that place.
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PATH_MOST = 4096 };

enum chooser_mode {
    CHOOSE_ALL,    /* one path after the other */
    CHOOSE_RANDOM, /* each time anew, all ways alike */
    CHOOSE_RANKED, /* by random priorities, which change now and then */
    CHOOSE_GIVEN   /* what `path` says, modulo the ways, then the first */
};

struct chooser {
    enum chooser_mode mode;
    bool prune; /* CHOOSE_ALL: ask for the state */
    uint64_t random, ranks;
    size_t at, length;
    bool seen; /* the rest of the path is known */
    uint8_t path[PATH_MOST], ways[PATH_MOST];
    uint64_t pruned;
    /* States that were seen, for this program. */
    uint64_t *states;
    size_t states_room, states_count;
};

uint64_t next_random(uint64_t *state);

/* Before a program's first path, and between two of its paths: false if there
 * are no more. */
void chooser_begin(struct chooser *chooser);
bool chooser_next(struct chooser *chooser);
/* Nothing to look at that was not looked at before: on the way to where this
 * path leaves an earlier one, and behind a state that was seen. But should the
 * state leave something out, one in some of those is looked at nevertheless. */
static inline bool chooser_repeats(const struct chooser *chooser)
{
    enum { LOOKED_AT = 16 };

    if (chooser->mode != CHOOSE_ALL)
        return false;
    return chooser->at < chooser->length ||
           (chooser->seen && chooser->pruned % LOOKED_AT != 0);
}

/* One of n; `state` says all that the rest depends on, `who` are the fibers
 * that it is about (n of them; -1: none). */
size_t choose(struct chooser *chooser, size_t n, const int *who,
              uint64_t (*state)(void));

#endif
