/* SPDX-License-Identifier: MIT */
/* explore.c - see explore.h. */
#include "explore.h"

#include <stdlib.h>
#include <string.h>

#define ROOM 4096
#define CHANGES 8 /* one in so many choices changes a priority */

uint64_t next_random(uint64_t *state)
{
    uint64_t x = (*state += UINT64_C(0x9e3779b97f4a7c15));

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void forget_states(struct chooser *chooser)
{
    if (chooser->states_count > 0)
        memset(chooser->states, 0,
               chooser->states_room * sizeof(*chooser->states));
    chooser->states_count = 0;
}

void chooser_begin(struct chooser *chooser)
{
    if (chooser->mode == CHOOSE_GIVEN) {
        chooser->at = 0;
        return;
    }
    chooser->ranks = next_random(&chooser->random);
    chooser->length = 0;
    chooser->at = 0;
    chooser->seen = false;
    forget_states(chooser);
}

bool chooser_next(struct chooser *chooser)
{
    if (chooser->mode != CHOOSE_ALL)
        return false;
    while (chooser->length > 0 && chooser->path[chooser->length - 1] + 1 >=
                                      chooser->ways[chooser->length - 1])
        chooser->length--;
    if (chooser->length == 0)
        return false;
    chooser->path[chooser->length - 1]++;
    chooser->at = 0;
    chooser->seen = false;
    return true;
}

static void grow(struct chooser *chooser)
{
    size_t room = chooser->states_room ? chooser->states_room * 2 : ROOM;
    uint64_t *states = calloc(room, sizeof(*states));

    if (!states)
        abort();
    for (size_t i = 0; i < chooser->states_room; i++) {
        uint64_t state = chooser->states[i];
        size_t at = (size_t)state & (room - 1);

        if (!state)
            continue;
        while (states[at])
            at = (at + 1) & (room - 1);
        states[at] = state;
    }
    free(chooser->states);
    chooser->states = states;
    chooser->states_room = room;
}

/* True if it was there already. */
static bool note_state(struct chooser *chooser, uint64_t state)
{
    size_t at;

    if (chooser->states_count * 2 >= chooser->states_room)
        grow(chooser);
    state += state == 0;
    at = (size_t)state & (chooser->states_room - 1);
    while (chooser->states[at]) {
        if (chooser->states[at] == state)
            return true;
        at = (at + 1) & (chooser->states_room - 1);
    }
    chooser->states[at] = state;
    chooser->states_count++;
    return false;
}

/* As probabilistic concurrency testing does it: run who ranks highest, and
 * change a rank at few places. Ranks come from the seed and the fiber. */
static size_t highest(struct chooser *chooser, size_t n, const int *who)
{
    size_t best = 0;
    uint64_t most = 0;

    if (next_random(&chooser->random) % CHANGES == 0)
        return (size_t)(next_random(&chooser->random) % n);
    for (size_t i = 0; i < n; i++) {
        uint64_t rank = chooser->ranks + (uint64_t)(who[i] + 2) * 7919;

        rank = next_random(&rank);
        if (i == 0 || rank > most) {
            most = rank;
            best = i;
        }
    }
    return best;
}

size_t choose(struct chooser *chooser, size_t n, const int *who,
              uint64_t (*state)(void))
{
    size_t at = chooser->at, chosen = 0;

    if (chooser->seen || at >= PATH_MOST)
        return 0;
    if (at < chooser->length &&
        (chooser->mode == CHOOSE_ALL || chooser->mode == CHOOSE_GIVEN)) {
        chooser->at++;
        /* Kept: a failure prints what was chosen, whatever was given. */
        return chooser->path[at] = (uint8_t)(chooser->path[at] % n);
    }
    if (chooser->mode == CHOOSE_ALL && chooser->prune &&
        note_state(chooser, state())) {
        chooser->seen = true;
        chooser->pruned++;
        return 0;
    }
    if (chooser->mode == CHOOSE_RANDOM)
        chosen = (size_t)(next_random(&chooser->random) % n);
    else if (chooser->mode == CHOOSE_RANKED)
        chosen = highest(chooser, n, who);
    chooser->path[at] = (uint8_t)chosen;
    chooser->ways[at] = (uint8_t)n;
    chooser->at = chooser->length = at + 1;
    return chosen;
}
