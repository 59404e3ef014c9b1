/* SPDX-License-Identifier: MIT */
/*
 * test_io_random.c - fibers that read, write, wait, time out, cancel, close
 * and reopen at random, over a few descriptors whose numbers are used again at
 * once.
 *
 * Every byte carries the mark of the file it was written to, so a fiber that
 * was woken for the wrong file, or goes on with a number that is another
 * file's by now, gives itself away: it reads a foreign mark, or is told
 * PX_EBADF, which here can never be right. One that was not told of a close
 * returns later than the virtual clock allows, and one that was not told of
 * bytes times out though they are there. The same seed gives the same run.
 */
#define _GNU_SOURCE 1

#include "px_test_io.h"

#include <signal.h>

enum { FILES = 3, FIBERS = 10, BLOCK = 3000 };

/* One pipe or socket pair: [0] is read from, [1] is written to. */
struct file {
    int ends[2];
    char mark;
    px_nsec opened, last_write;
    long written, taken;
};

struct actor {
    struct world *world;
    px_fiber *fiber;
    struct file *file; /* what it is about to use, and the mark it expects */
    char mark;
    int n;
    px_nsec timeout;
};

struct world {
    uint64_t random;
    struct file files[FILES];
    struct actor actors[FIBERS];
    int marks, steps;
    int foreign, unexpected, late, forgotten, transfers;
};

static unsigned draw(struct world *world, unsigned below)
{
    world->random ^= world->random << 13;
    world->random ^= world->random >> 7;
    world->random ^= world->random << 17;
    return (unsigned)(world->random >> 33) % below;
}

static void open_file(struct world *world, struct file *file)
{
    int flags = draw(world, 2) ? O_NONBLOCK : 0;

    if (draw(world, 2))
        open_pipe(file->ends, flags);
    else
        open_pair(file->ends, flags);
    file->mark = (char)(++world->marks % 251);
    file->opened = file->last_write = px_now();
    file->written = file->taken = 0;
}

/* What an interrupted or failed call may have said. */
static bool is_expected(ssize_t code)
{
    return code == PX_ETIMEDOUT || code == PX_ECANCELED || code == PX_ECLOSED ||
           code == PX_EPIPE;
}

static void judge(const struct actor *actor, ssize_t result)
{
    const struct file *file = actor->file;

    if (result >= 0)
        actor->world->transfers++;
    else if (!is_expected(result))
        actor->world->unexpected++;
    /* Its file was closed while it waited: it was to be told at that moment. */
    if (file->mark != actor->mark && file->opened != px_now())
        actor->world->late++;
}

/* The same for one that waits for bytes. */
static void judge_reader(const struct actor *actor, ssize_t result)
{
    const struct file *file = actor->file;

    judge(actor, result);
    if (result == PX_ETIMEDOUT && actor->timeout > 0 &&
        file->mark == actor->mark && file->written > file->taken &&
        file->last_write != px_now())
        actor->world->forgotten++;
}

static int reads(void *arg)
{
    struct actor *actor = arg;
    struct world *world = actor->world;
    char bytes[BLOCK];
    ssize_t got = px_read(actor->file->ends[0], bytes, (size_t)actor->n);

    judge_reader(actor, got);
    for (ssize_t i = 0; i < got; i++) {
        if (bytes[i] != actor->mark)
            world->foreign++;
    }
    if (got > 0 && actor->file->mark == actor->mark)
        actor->file->taken += got;
    return 0;
}

static int writes(void *arg)
{
    struct actor *actor = arg;
    char bytes[BLOCK];
    size_t sent = 0;
    int err;

    memset(bytes, actor->mark, sizeof(bytes));
    err = px_write_all(actor->file->ends[1], bytes, (size_t)actor->n, &sent);
    judge(actor, err);
    if (actor->file->mark == actor->mark && sent > 0) {
        actor->file->written += (long)sent;
        actor->file->last_write = px_now();
    }
    return 0;
}

static int waits_for_bytes(void *arg)
{
    struct actor *actor = arg;

    judge_reader(actor, px_wait_fd(actor->file->ends[0], PX_READABLE));
    return 0;
}

static int waits_for_room(void *arg)
{
    struct actor *actor = arg;

    judge(actor, px_wait_fd(actor->file->ends[1], PX_WRITABLE));
    return 0;
}

static int reopens(void *arg)
{
    struct actor *actor = arg;
    struct file *file = actor->file;

    if (draw(actor->world, 2)) {
        px_close_both(file->ends);
    } else {
        EXPECT_EQ(px_close(file->ends[1]), 0);
        EXPECT_EQ(px_close(file->ends[0]), 0);
    }
    open_file(actor->world, file);

    /* Bait for whoever still holds the number to be its own. */
    put(file->ends[1], file->mark);
    file->written = 1;
    return 0;
}

static int cancels_somebody(void *arg)
{
    struct actor *actor = arg;
    struct actor *other = &actor->world->actors[draw(actor->world, FIBERS)];

    return other->fiber ? px_cancel(other->fiber) : 0;
}

static int acts(void *arg)
{
    static const px_fn moves[] = {
        reads,          reads, writes, writes,  waits_for_bytes,
        waits_for_room, reads, writes, reopens, cancels_somebody};
    struct actor *actor = arg;
    struct world *world = actor->world;

    while (world->steps > 0 && px_check() == 0) {
        unsigned move = draw(world, sizeof(moves) / sizeof(moves[0]));

        world->steps--;
        actor->file = &world->files[draw(world, FILES)];
        actor->mark = actor->file->mark;
        actor->n = 1 + (int)draw(world, draw(world, 4) ? 20 : BLOCK);
        actor->timeout = (px_nsec)draw(world, 10) * PX_MSEC;
        EXPECT_EQ(px_with_timeout(actor->timeout, moves[move], actor), 0);
        if (draw(world, 3) == 0)
            (void)(px_yield() == 0);
    }
    return 0;
}

/* A fiber that was cancelled is replaced, until all steps are done. */
static int keeps_acting(void *arg)
{
    struct world *world = arg;

    for (int i = 0; i < FILES; i++)
        open_file(world, &world->files[i]);
    while (world->steps > 0) {
        for (int i = 0; i < FIBERS; i++) {
            world->actors[i].world = world;
            EXPECT_EQ(
                px_spawn(&world->actors[i].fiber, acts, &world->actors[i]), 0);
        }
        for (int i = 0; i < FIBERS; i++) {
            EXPECT_EQ(px_await(world->actors[i].fiber, NULL), 0);
            world->actors[i].fiber = NULL;
        }
    }
    for (int i = 0; i < FILES; i++) {
        struct file *file = &world->files[i];

        EXPECT_EQ(file->written - file->taken, (long)drain(file->ends[0]));
        px_close_both(file->ends);
    }
    return 0;
}

static void no_fiber_is_ever_served_by_a_file_that_is_not_its_own(void **state)
{
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    static struct world world;
    int worlds = scaled(60, 6), transfers = 0;

    (void)state;
    for (int i = 0; i < worlds; i++) {
        memset(&world, 0, sizeof(world));
        world.random = 88172645463325252u + (uint64_t)i * 2654435761u;
        world.steps = 2000;
        run_fibers(keeps_acting, &world);
        if (world.foreign || world.unexpected || world.late || world.forgotten)
            note("world %d: %d foreign bytes, %d unexpected codes, %d late, "
                 "%d forgotten; ",
                 i, world.foreign, world.unexpected, world.late,
                 world.forgotten);
        transfers += world.transfers;
    }
    (void)signal(SIGPIPE, before);
    assert_log("");
    assert_true(transfers > worlds * 300); /* it was not all in vain */
}

static const struct CMUnitTest tests[] = {
    PX_TEST(no_fiber_is_ever_served_by_a_file_that_is_not_its_own),
};

PX_TEST_MAIN(tests)
