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
int play_threads = 2;
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
    (void)fprintf(stderr, "%s\n", play_threads == 1 ? " --threads 1" : "");
#if defined(PX_FUZZING)
    abort();
#else
    quick_exit(1); /* main.c says of which commit */
#endif
}

/* One multiplication a value: this runs three times for every call. */
void note_trace(int64_t value)
{
    tally.trace =
        (tally.trace ^ (uint64_t)value) * UINT64_C(0x9e3779b97f4a7c15);
    tally.trace ^= tally.trace >> 29;
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

/* What was done instead of going on with a fiber, by the model. */
static void follow(const px_loop *loop)
{
    if (world.did == PX_SEAM_TIME)
        ref_time(&world.ref, loop->now);
    else if (world.did == PX_SEAM_POLL)
        ref_fd_poll(&world.ref);
    else if (world.did == PX_SEAM_DELIVER)
        ref_offload_deliver(&world.ref);
    world.did = -1;
}

/* What can be done instead: how much, and what. */
static size_t other_ways(const px_loop *loop, int *ways)
{
    size_t n = 0;

    if (!px__heap_is_empty(&loop->timers))
        ways[n++] = PX_SEAM_TIME;
    if (ref_fd_reports(&world.ref))
        ways[n++] = PX_SEAM_POLL;
    if (ref_offload_brought(&world.ref))
        ways[n++] = PX_SEAM_DELIVER;
    return n;
}

/* One that nobody has a handle of, and that has not begun: they are in the run
 * queue in their order. */
static int meet(px_fiber *fiber)
{
    for (int f = world.program->fibers; f < world.ref.n; f++) {
        if (!world.fibers[f] && world.ref.fibers[f].fresh) {
            world.fibers[f] = fiber;
            return f;
        }
    }
    fail("a fiber is ready that should not be, id %lld", (long long)fiber->id);
}

size_t play_pick(px_loop *loop, px_fiber *const *ready, size_t n)
{
    px_fiber *others[REF_ALL];
    int who[REF_ALL + 3], ways[3];
    size_t driver = n, count = 0, chosen, more;

    tally.choices++;
    if (!world.driver) /* it is about to begin */
        return 0;
    if (!world.fibers[world.program->fibers - 1])
        fail("who has spawned a fiber is not the next");
    follow(loop);
    loop->countdown = 1 << 30; /* it looks around when that is chosen */
    /* As if 2^32 timers had come and gone between any two. */
    if (loop->timers.order > 0 && loop->timers.order < UINT32_MAX / 2)
        loop->timers.order = UINT32_MAX - 1;
    if (world.outside)
        outside_settle(loop);
    for (size_t i = 0; i < n; i++) {
        if (ready[i] == world.driver) {
            driver = i;
            continue;
        }
        who[count] = index_of(ready[i]);
        if (who[count] < 0)
            who[count] = meet(ready[i]);
        others[count++] = ready[i];
    }
    if (!chooser_repeats(world.chooser)) {
        compare_ready(others, who, count);
        compare(loop);
    }
    more = other_ways(loop, ways);
    for (size_t i = 0; i < more; i++)
        who[count + i] = -1 - ways[i];
    if (count + more == 0)
        return driver;
    chosen = count + more > 1
                 ? choose(world.chooser, count + more, who, world_state)
                 : 0;
    if (chosen >= count) {
        world.did = ways[chosen - count];
        return n + (size_t)world.did;
    }
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
    world.ids[f] = px_current_id();
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
    ref_ended(&world.ref, f, 200 + f);
    return 200 + f;
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

/* It was taken out of a queue, or waits for a file that may be closed; or, as
 * it turned out, for somebody who waits for it. */
static bool waits_in_vain(int f, bool awaits)
{
    const struct ref_fiber *fiber = &world.ref.fibers[f];

    if (fiber->state == REF_PARKED &&
        (fiber->on == REF_AWAIT || fiber->on == REF_AWAIT_ALL))
        return awaits && !fiber->hidden;
    return fiber->state == REF_PARKED &&
           (fiber->on == REF_FD ||
            (!fiber->queued &&
             (fiber->on == REF_SEM || fiber->on == REF_AVAILABLE)));
}

/* Nobody can go on. Holders have let go, so whoever still waits needs what the
 * program never gave: with that, all of them have to come to an end. */
static void relieve(bool awaits)
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
    for (int f = 0; f < world.program->fibers; f++)
        (void)finish_job(f);
    for (int f = 0; f < ref->n; f++) {
        if (waits_in_vain(f, awaits))
            (void)cancel_scope(f, ref->fibers[f].depth - 1);
        if (waits_in_vain(f, awaits))
            (void)cancel(f);
    }
}

static void finish(void)
{
    px_loop *loop = world.driver->loop;

    await_the_rest();
    same(-1, "how many fibers there are", (int64_t)loop->alive, 1);
    if (!px__heap_is_empty(&loop->timers))
        fail("a timer is left");
    if (world.outside)
        outside_end();
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
    world.ref.threads = play_threads;
    world.ref.by_number = PX_POLLS_NUMBERS;
    world.did = -1;
    if (world.outside)
        outside_begin();
    memset(world.fibers, 0, sizeof(world.fibers));
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
        relieve(rounds > 0);
    }
    finish();
    tally.paths++;
}

void play(const struct program *program, struct chooser *chooser)
{
    world.program = program;
    world.chooser = chooser;
    world.driver = px_self();
    world.outside = uses_outside(program);
    chooser_begin(chooser);
    do {
        play_path();
    } while (chooser_next(chooser));
    world.driver = NULL;
}
