/* SPDX-License-Identifier: MIT */
/*
 * state.c - the state, as far as the rest of a path depends on it: times as
 * distances, orders as ranks.
 */
#include "world.h"

static uint64_t mixed(uint64_t sum, int64_t value)
{
    sum ^= (uint64_t)value;
    sum *= UINT64_C(0x9fb21c651e98df25);
    return sum ^ (sum >> 29);
}

static int64_t from_now(int64_t when)
{
    return when == PX_FOREVER ? -1 : when - world.ref.now;
}

static uint64_t fiber_state(uint64_t sum, int f)
{
    const struct ref_fiber *a = &world.ref.fibers[f];
    int before = 0, sooner = 0;

    for (int i = 0; i < world.ref.n; i++) {
        const struct ref_fiber *b = &world.ref.fibers[i];

        if (b->state != REF_PARKED)
            continue;
        before += b->place < a->place;
        sooner += b->armed < a->armed;
    }
    sum =
        mixed(sum, (int64_t)a->state * 1024 + world.at[f] * 8 + (int64_t)a->on);
    if (a->state == REF_READY)
        sum = mixed(sum, a->verdict);
    if (a->state == REF_PARKED) {
        sum = mixed(sum, a->on == REF_SLEEP ? from_now(a->want) : a->want);
        sum = mixed(sum, before * 16 + sooner + 256 * a->queued);
        sum = mixed(sum, from_now(a->timer));
    }
    for (int s = 0; s < a->depth; s++) {
        sum = mixed(sum, a->scopes[s].status * 2 + a->scopes[s].shield);
        sum = mixed(sum, from_now(a->scopes[s].deadline));
    }
    return mixed(sum, world.held[f]);
}

uint64_t world_state(void)
{
    uint64_t sum = 1;

    for (int f = 0; f < world.ref.n; f++)
        sum = fiber_state(sum, f);
    sum = mixed(sum, world.ref.count);
    sum = mixed(sum, world.ref.limit * 2 + world.ref.closed);
    sum = mixed(sum, world.ref.owner);
    sum = mixed(sum, world.ref.readable * 8 + world.ref.known * 4 +
                         world.ref.stale * 2 + world.ref.asked);
    return mixed(sum, world.ref.members);
}
