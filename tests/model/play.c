/* SPDX-License-Identifier: MIT */
/* play.c - see play.h. */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"

struct tally tally = {.trace = UINT64_C(0xcbf29ce484222325)};
bool play_aloud;
struct world world;

void fail(const char *format, ...)
{
    char text[1024];
    va_list arguments;

    program_print(world.program, text, sizeof(text));
    (void)fflush(stdout);
    (void)fprintf(stderr, "model: ");
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "\n  program %s\n  choices ", text);
    for (size_t i = 0; i < world.chooser->at; i++)
        (void)fprintf(stderr, "%c", '0' + world.chooser->path[i]);
    (void)fprintf(stderr, "\n");
#if defined(PX_FUZZING)
    abort();
#else
    _exit(1);
#endif
}

void note_trace(int64_t value)
{
    for (int i = 0; i < 8; i++) {
        tally.trace ^= (uint64_t)value >> (8 * i) & 0xff;
        tally.trace *= UINT64_C(0x100000001b3);
    }
}

int index_of(const px_fiber *fiber)
{
    for (int f = 0; f < world.ref.n; f++) {
        if (world.fibers[f] == fiber && world.ref.fibers[f].state != REF_DONE)
            return f;
    }
    return -1;
}

void same(int f, const char *what, int64_t is, int64_t should)
{
    if (is != should)
        fail("fiber %d: %s is %lld, and should be %lld", f, what, (long long)is,
             (long long)should);
}

/* -- who is next -- */

size_t play_pick(px_loop *loop, px_fiber *const *ready, size_t n)
{
    px_fiber *others[REF_ALL];
    int who[REF_ALL + 1];
    size_t driver = n, count = 0, chosen, timers;

    tally.choices++;
    if (!world.driver) /* it is about to begin */
        return 0;
    if (world.ticked)
        ref_time(&world.ref, loop->now);
    world.ticked = false;
    loop->countdown = 1 << 30; /* timers fire when that is chosen */
    for (size_t i = 0; i < n; i++) {
        if (ready[i] == world.driver) {
            driver = i;
            continue;
        }
        who[count] = index_of(ready[i]);
        others[count++] = ready[i];
    }
    compare_ready(others, who, count);
    compare(loop);
    timers = !px__heap_is_empty(&loop->timers);
    who[count] = -1;
    if (count + timers == 0)
        return driver;
    chosen = count + timers > 1
                 ? choose(world.chooser, count + timers, who, world_state)
                 : 0;
    world.ticked = chosen == count;
    if (world.ticked)
        return n;
    ref_resume(&world.ref, who[chosen]);
    return chosen < driver ? chosen : chosen + 1;
}

/* Between two calls: whoever is chosen goes on. */
static void hand_over(int f)
{
    ref_ready(&world.ref, f, 0);
    px__seam_yield(world.fibers[f]);
}

static int body(void *number)
{
    int f = (int)(intptr_t)number;
    const struct program *program = world.program;

    world.fibers[f] = px_self();
    hand_over(f);
    for (; world.at[f] < program->lengths[f]; hand_over(f)) {
        struct call call = program->calls[f][world.at[f]];
        int code;

        world.at[f]++;
        code = perform(f, call.what, call.n);
        tally.calls++;
        note_trace((int64_t)f << 32 | (int64_t)call.what << 16 | world.at[f]);
        note_trace(code);
        note_trace(world.ref.now);
        if (play_aloud)
            (void)printf("%6lld  fiber %d  %c%d  %d\n",
                         (long long)(world.ref.now / TICK), f, call.what,
                         call.n, code);
    }
    tidy_up(f);
    world.ref.fibers[f].state = REF_DONE;
    return 0;
}

/* -- a path -- */

static bool all_done(void)
{
    for (int f = 0; f < world.ref.n; f++) {
        if (world.ref.fibers[f].state != REF_DONE)
            return false;
    }
    return true;
}

/* Nobody can go on. Holders have let go, so whoever still waits needs what the
 * program never gave: with that, all of them have to come to an end. */
static void relieve(void)
{
    struct ref *ref = &world.ref;
    int should;

    if (ref->bounded) {
        should = ref_sem_set_limit(ref, 100);
        (void)at_once(-1, px_sem_set_limit(&world.sem, 100), should);
    }
    if (ref->count < 50) {
        should = ref_sem_add(ref, 50 - ref->count);
        (void)at_once(-1,
                      px_sem_adjust(&world.sem, 50 - px_sem_count(&world.sem)),
                      should);
    }
    if (ref->members > 0) {
        should = ref_waitgroup_add(ref, -ref->members);
        (void)at_once(
            -1, px_waitgroup_add(&world.wg, -px_waitgroup_count(&world.wg)),
            should);
    }
    for (int f = 0; f < world.program->fibers; f++) {
        if (!ref->fibers[f].group)
            continue;
        should = ref_group_limit(ref, f, 100);
        (void)at_once(f, px_group_set_limit(&world.groups[f], 100), should);
    }
    for (int f = 0; f < ref->n; f++) {
        if (ref->fibers[f].state == REF_PARKED && !ref->fibers[f].queued)
            (void)cancel_scope(f, ref->fibers[f].depth - 1);
        if (ref->fibers[f].state == REF_PARKED && !ref->fibers[f].queued)
            (void)cancel(f);
    }
}

static void finish(void)
{
    px_loop *loop = world.driver->loop;

    for (int f = 0; f < world.program->fibers; f++)
        (void)at_once(f, px_await(world.fibers[f], NULL), 0);
    same(-1, "how many fibers there are", (int64_t)loop->alive, 1);
    if (!px__heap_is_empty(&loop->timers))
        fail("a timer is left");
    (void)at_once(-1, px_sem_destroy(&world.sem), 0);
    (void)at_once(-1, px_mutex_destroy(&world.mutex), 0);
    (void)at_once(-1, px_waitgroup_destroy(&world.wg), 0);
}

static void play_path(void)
{
    const struct program *program = world.program;
    int64_t start = px_now();

    ref_init(&world.ref, program->fibers, program->permits, program->bounded);
    world.ref.now = start;
    memset(world.at, 0, sizeof(world.at));
    memset(world.held, 0, sizeof(world.held));
    memset(world.groups, 0, sizeof(world.groups));
    if (program->bounded)
        (void)px_sem_init_bounded(&world.sem, program->permits);
    else
        (void)px_sem_init(&world.sem, program->permits);
    (void)px_mutex_init(&world.mutex);
    (void)px_waitgroup_init(&world.wg, 0);
    for (int f = 0; f < program->fibers; f++) {
        if (px_spawn(&world.fibers[f], body, (void *)(intptr_t)f) != 0)
            fail("no fiber");
    }
    for (int rounds = 0; !all_done(); rounds++) {
        px__seam_yield(world.driver);
        if (all_done())
            break;
        if (rounds > 2 * REF_FIBERS * CALLS_MOST)
            fail("some wait for ever");
        relieve();
    }
    finish();
    tally.paths++;
}

void play(const struct program *program, struct chooser *chooser)
{
    world.program = program;
    world.chooser = chooser;
    world.driver = px_self();
    chooser_begin(chooser);
    do {
        play_path();
    } while (chooser_next(chooser));
    world.driver = NULL;
}
