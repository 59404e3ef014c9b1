/* SPDX-License-Identifier: MIT */
/*
 * handles.c - fibers that a program spawns and posts, and what it does with
 * their handles. Only with those that are good: one that was consumed or
 * detached is a freed pointer.
 *
 * Which handle a call is about: the number is how much further on the fiber is
 * that spawned it, and then
 *
 *   0   the newest that it has        10  itself, a fiber of the program
 *   20  the oldest that it has        30  the main fiber
 *   40  none: NULL
 *
 * For several they are all that it has, four at most, and with them
 *
 *   10  the first once more           20  NULL
 *   30  the caller                    40  instead, none at all
 */
#include "world.h"

#include <pthread.h>

enum { NOT_THERE = -3, SEVERAL = 4, UNTOUCHED = -12345 };

/* -- what they do -- */

/* A value of its own, or the code of what it waited for. */
static int value_of(int f, int code)
{
    return code ? code : 500 + f;
}

static int await_fiber(int f, int g);

/* A child of its own, whose handle is left if that takes too long. */
static int with_a_child(int f)
{
    int g = world.ref.n;

    if (spawn(f, 1, SPAWN_QUEUED) != 0 || world.ref.n == g)
        return 0;
    return await_fiber(f, g);
}

/* Who spawned it, which may be waiting for it. */
static int wait_for_spawner(int f)
{
    int g = world.ref.fibers[f].spawner;

    if (g == REF_NOBODY || world.ref.fibers[g].handle != REF_HELD)
        return 0;
    return await_fiber(f, g);
}

/* By kind. */
static int live(int f, int kind)
{
    int code;

    switch (kind) {
    case 1:
        return value_of(f, sleep_for(f, 1));
    case 2:
        code = down(f, 1);
        return value_of(f, code ? code : up(f, 1));
    case 3: /* takes its time */
        return value_of(f, sleep_for(f, 3));
    case 4:
        return value_of(f, yield(f));
    case 5:
        return value_of(f, with_a_child(f));
    case 6:
        return value_of(f, wait_for_spawner(f));
    case 7: /* shields itself for a while */
        (void)within(f, 9, sleep_shielded, 1);
        return value_of(f, check(f));
    default:
        return value_of(f, 0);
    }
}

static int spawned_body(void *number)
{
    int f = (int)(intptr_t)number, code;

    if (f < 0) /* posted: its number is known since it has arrived */
        f = index_of(px_self());
    if (world.fibers[f] && world.fibers[f] != px_self())
        fail("fiber %d has another handle", f);
    world.fibers[f] = px_self();
    code = live(f, world.ref.fibers[f].kind);
    note_trace(code);
    ref_ended(&world.ref, f, code);
    return code;
}

int spawn(int f, int kind, enum spawn_how how)
{
    const px_spawn_options options = {.queued = how != SPAWN_EAGER &&
                                                how != SPAWN_DETACHED};
    bool detached = how == SPAWN_DETACHED || how == SPAWN_QUEUED_DETACHED;
    int g = world.ref.n, code;
    px_fiber **out = detached ? NULL : &world.fibers[g];
    void *number = (void *)(intptr_t)g;

    if (children_expected() >= REF_ALL)
        return 0;
    ref_spawn(&world.ref, f, kind, options.queued, detached);
    code = options.queued ? px_spawn_with(out, &options, spawned_body, number)
                          : px_spawn(out, spawned_body, number);
    returned(f, code);
    return code;
}

/* -- posts -- */

static void *post_from_thread(void *loop)
{
    return (void *)(intptr_t)px_post(loop, spawned_body, (void *)(intptr_t)-1);
}

/* Another thread does it, and is waited for: which thread it is, is the same to
 * the model. All schedules of a program would take too many. */
static int post(int f, int kind)
{
    px_loop *loop = px_current_loop();
    pthread_t thread;
    void *code;

    if (children_expected() >= REF_ALL)
        return 0;
    ref_post(&world.ref, kind);
    if (!loop)
        fail("no descriptor");
    if (world.chooser->mode == CHOOSE_ALL) {
        code = post_from_thread(loop);
    } else {
        if (pthread_create(&thread, NULL, post_from_thread, loop) != 0)
            fail("no thread");
        (void)pthread_join(thread, &code);
    }
    return at_once(f, (int)(intptr_t)code, 0);
}

/* -- handles -- */

/* The newest or the oldest handle that fiber `p` has, or NOT_THERE. */
static int child_of(int p, bool newest)
{
    int found = NOT_THERE;

    for (int g = 0; g < world.ref.n; g++) {
        const struct ref_fiber *child = &world.ref.fibers[g];

        if (child->spawner == p && child->handle == REF_HELD &&
            (newest || found == NOT_THERE))
            found = g;
    }
    return found;
}

static int target(int f, int n)
{
    int p = other(f, n % 10);

    switch (n / 10) {
    case 0:
        return child_of(p, true);
    case 1:
        return world.ref.fibers[p].handle == REF_HELD ? p : NOT_THERE;
    case 2:
        return child_of(p, false);
    case 3:
        return REF_MAIN;
    default:
        return REF_NOBODY;
    }
}

static px_fiber *handle_of(int g)
{
    if (g == REF_MAIN)
        return world.driver;
    return g == REF_NOBODY ? NULL : world.fibers[g];
}

/* What it has stored: the fiber's value, or nothing. */
static void check_value(int f, int code, int g, int value)
{
    same(f, "the value that it got", value,
         code == 0 ? world.ref.fibers[g].result : UNTOUCHED);
    note_trace(value);
}

/* Whose value nobody wants. */
static int await_fiber(int f, int g)
{
    int code;

    ref_await(&world.ref, f, g);
    code = px_await(handle_of(g), NULL);
    returned(f, code);
    return code;
}

static int await_one(int f, int64_t n)
{
    int g = target(f, (int)n), value = UNTOUCHED, code;

    if (g == NOT_THERE)
        return 0;
    ref_await(&world.ref, f, g);
    code = px_await(handle_of(g), &value);
    returned(f, code);
    check_value(f, code, g, value);
    return code;
}

/* All that are meant, in `who`; how many. */
static int several(int f, int n, int *who)
{
    int p = other(f, n % 10), count = 0;

    for (int g = 0; g < world.ref.n && count < SEVERAL; g++) {
        const struct ref_fiber *child = &world.ref.fibers[g];

        if (child->spawner == p && child->handle == REF_HELD)
            who[count++] = g;
    }
    if (n / 10 == 1 && count > 0) {
        who[count] = who[0];
        count++;
    } else if (n / 10 == 2) {
        who[count++] = REF_NOBODY;
    } else if (n / 10 == 3) {
        who[count++] = f;
    }
    return n / 10 == 4 ? 0 : count;
}

static int await_several(int f, int64_t n)
{
    int who[SEVERAL + 1], values[SEVERAL + 1], code;
    px_fiber *handles[SEVERAL + 1];
    int count = several(f, (int)n, who);

    for (int i = 0; i < count; i++) {
        handles[i] = handle_of(who[i]);
        values[i] = UNTOUCHED;
    }
    ref_await_all(&world.ref, f, who, count);
    code = px_await_all(handles, (size_t)count, values);
    returned(f, code);
    for (int i = 0; i < count; i++)
        check_value(f, code, who[i], values[i]);
    return code;
}

static int detach(int f, int g)
{
    int should;

    if (g == NOT_THERE)
        return 0;
    should = ref_detach(&world.ref, g);
    return at_once(f, px_detach(handle_of(g)), should);
}

static int cancel_handle(int f, int g)
{
    int should;

    if (g == NOT_THERE || g == REF_MAIN) /* it has no model */
        return 0;
    should = ref_cancel(&world.ref, g);
    return at_once(f, px_cancel(handle_of(g)), should);
}

/* Not of fibers of the program: two could wait for each other, for ever. */
static int cancel_and_await(int f, int g)
{
    int value = UNTOUCHED, code;
    bool entered;

    if (g == NOT_THERE || world.ref.fibers[f].depth == REF_SCOPES ||
        (g >= 0 && g != f && g < world.program->fibers))
        return 0;
    entered = ref_cancel_and_await(&world.ref, f, g);
    code = px_cancel_and_await(handle_of(g), &value);
    returned(f, code);
    if (entered) {
        world.ref.fibers[f].hidden = false;
        (void)ref_leave(&world.ref, f);
    }
    check_value(f, code, g, value);
    return code;
}

int perform_await(int f, char what, int n)
{
    switch (what) {
    case 'b':
        return spawn(f, n, SPAWN_EAGER);
    case 'B':
        return spawn(f, n, SPAWN_QUEUED);
    case 'E':
        return spawn(f, n, n % 2 ? SPAWN_QUEUED_DETACHED : SPAWN_DETACHED);
    case 'Z':
        return post(f, n);
    case 'J':
        return await_one(f, n);
    case 'K':
        return within(f, 1, await_one, n);
    case 'P':
        return await_several(f, n);
    case 'Q':
        return within(f, 1, await_several, n);
    case 'H':
        return detach(f, target(f, n));
    case 'm':
        return cancel_handle(f, target(f, n));
    case 'R':
        return cancel_and_await(f, target(f, n));
    default:
        return perform_outside(f, what, n);
    }
}

/* -- the end -- */

/* Everybody has ended. Handles that are left give what their fibers returned,
 * and then there is nothing of any of them any more. */
void await_the_rest(void)
{
    px_loop *loop = world.driver->loop;
    struct px_fiber_cursor cursor = px__fibers_begin(&loop->arena);

    for (int f = 0; f < world.ref.n; f++) {
        const struct ref_fiber *model = &world.ref.fibers[f];
        int value = UNTOUCHED;

        if (model->handle != REF_HELD || model->parent >= 0)
            continue;
        (void)at_once(f, px_await(world.fibers[f], &value), 0);
        same(f, "what it returned", value, model->result);
    }
    for (px_fiber *fiber; (fiber = px__fibers_next(&cursor));) {
        if (fiber != world.driver && fiber != loop->zombie)
            fail("the record of a fiber is left, id %lld",
                 (long long)fiber->id);
    }
}
