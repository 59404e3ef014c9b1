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

/* Of px_spawn() or px_post(), or waiting for one. Others have nothing of what
 * is said of these. */
static bool is_spawned(const struct ref_fiber *a)
{
    return a->spawner != REF_NOBODY || a->handle != REF_HELD ||
           a->awaiter != REF_NOBODY || a->on >= REF_AWAIT;
}

/* Nobody can ask for it any more. */
static bool is_gone(const struct ref_fiber *a)
{
    return a->state == REF_DONE && a->handle != REF_HELD;
}

/* Where it comes in `order`: the same for whoever is spawned first. */
static int name_of(const int *order, int f)
{
    int i = 0;

    while (f >= 0 && order[i] != f)
        i++;
    return f < 0 ? f : i;
}

/* Those that nobody spawned as they are numbered, then the children of each. */
static int in_order(int *order)
{
    int n = 0;

    for (int f = 0; f < world.ref.n; f++) {
        if (world.ref.fibers[f].spawner == REF_NOBODY)
            order[n++] = f;
    }
    for (int i = 0; i < n; i++) {
        for (int f = 0; f < world.ref.n; f++) {
            if (world.ref.fibers[f].spawner == order[i])
                order[n++] = f;
        }
    }
    return n;
}

/* How far it has come is said by what it waits for. */
static uint64_t spawned_state(uint64_t sum, const int *order,
                              const struct ref_fiber *a)
{
    bool awaits = a->state == REF_PARKED && a->on == REF_AWAIT;

    sum = mixed(sum, (name_of(order, a->spawner) + 1) * 1024 + a->kind * 32 +
                         (int64_t)a->on);
    sum = mixed(sum, name_of(order, a->awaiter) * 16 + (int64_t)a->handle * 4 +
                         a->fresh * 2 + a->hidden);
    return awaits ? mixed(sum, name_of(order, (int)a->want)) : sum;
}

/* Its place in a queue, and that of its timer among those that are due when it
 * is; for others, among all. */
static void ranks(const struct ref_fiber *a, int *before, int *sooner)
{
    *before = *sooner = 0;
    for (int i = 0; i < world.ref.n; i++) {
        const struct ref_fiber *b = &world.ref.fibers[i];

        if (b->state != REF_PARKED)
            continue;
        if (is_spawned(a) || is_spawned(b)) {
            *before += a->queued && b->queued && b->place < a->place;
            *sooner += a->timer != PX_FOREVER && b->timer == a->timer &&
                       b->armed < a->armed;
        } else {
            *before += b->place < a->place;
            *sooner += b->armed < a->armed;
        }
    }
}

/* Why it will not go on with its descriptor, or 0. */
static int closing_of(const struct ref_fiber *a)
{
    if (a->state != REF_READY || a->on != REF_FD)
        return 0;
    return ref_fd_closed(&world.ref, (int)(a - world.ref.fibers));
}

/* Whose child it is, and what it has of its own: a group, an offloaded call. */
static uint64_t group_state(uint64_t sum, const struct ref_fiber *a)
{
    sum = mixed(sum, a->parent * 1024 + a->within * 64 + a->kind);
    sum = mixed(sum, (int64_t)a->job * 65536 + closing_of(a));
    if (!a->group)
        return sum;
    sum = mixed(sum, a->running * 64 + a->group);
    sum = mixed(sum, a->most);
    return mixed(sum, a->failure);
}

static uint64_t fiber_state(uint64_t sum, const int *order, int f)
{
    const struct ref_fiber *a = &world.ref.fibers[f];
    bool spawned = is_spawned(a);
    int before, sooner;

    if (spawned)
        sum = spawned_state(sum, order, a);
    else
        sum = group_state(sum, a);
    sum = mixed(sum,
                (int64_t)a->state * 4096 + world.at[f] * 64 + (int64_t)a->on);
    if (spawned && a->state == REF_DONE)
        return sum;
    if (a->state == REF_READY)
        sum = mixed(sum, a->verdict);
    if (a->state == REF_PARKED) {
        ranks(a, &before, &sooner);
        if (a->on != REF_AWAIT)
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
    int order[REF_ALL], n = in_order(order);
    uint64_t sum = 1;

    for (int i = 0; i < n; i++) {
        if (!is_gone(&world.ref.fibers[order[i]]) ||
            order[i] < world.program->fibers)
            sum = fiber_state(sum, order, order[i]);
    }
    for (int i = 0; i < world.ref.posted; i++)
        sum = mixed(sum, world.ref.posts[i].kind + 100);
    sum = mixed(sum, world.ref.count);
    sum = mixed(sum, world.ref.limit * 2 + world.ref.closed);
    sum = mixed(sum, world.ref.owner);
    sum = mixed(sum, world.ref.readable * 8 + world.ref.known * 4 +
                         world.ref.stale * 2 + world.ref.asked);
    return mixed(sum, world.ref.members);
}
