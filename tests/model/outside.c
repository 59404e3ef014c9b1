/* SPDX-License-Identifier: MIT */
/*
 * outside.c - what comes from outside of the run: a descriptor, an eventfd
 * whose number is used again when it is closed, and calls on other threads.
 * Threads do nothing by themselves: each call waits until a fiber lets it
 * return, and nobody goes on until all that it leads to has happened.
 */
#include "world.h"

#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool uses_outside(const struct program *program)
{
    for (int f = 0; f < program->fibers; f++) {
        for (int i = 0; i < program->lengths[f]; i++) {
            if (strchr("fFvXYoj", program->calls[f][i].what))
                return true;
        }
    }
    return false;
}

/* Another file by the same number. */
static void open_again(void)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

    if (fd < 0)
        fail("no descriptor");
    if (world.fd == 0) {
        world.fd = fd;
    } else if (fd != world.fd) {
        if (dup2(fd, world.fd) != world.fd)
            fail("no descriptor");
        (void)close(fd);
    }
}

void outside_begin(void)
{
    open_again();
    for (int f = 0; f < REF_FIBERS; f++) {
        (void)sem_init(&world.jobs[f].go, 0, 0);
        world.jobs[f].started = false;
        world.jobs[f].value = 100 + f;
    }
}

void outside_end(void)
{
    (void)at_once(-1, px_close(world.fd), 0);
}

static int job(void *arg)
{
    struct offloaded *offloaded = arg;

    offloaded->started = true;
    while (sem_wait(&offloaded->go) != 0)
        continue;
    return offloaded->value;
}

static size_t brought(px_loop *loop)
{
    size_t n = 0;

    for (struct px_remote *node = atomic_load(&loop->inbox); node;
         node = node->next)
        n++;
    return n;
}

/* Other threads have time until everything is as the model says. */
void outside_settle(px_loop *loop)
{
    size_t finished = 0;

    for (int f = 0; f < world.program->fibers; f++) {
        finished += world.ref.fibers[f].job == REF_FINISHED;
        while (world.ref.fibers[f].job == REF_STARTED && !world.jobs[f].started)
            (void)sched_yield();
    }
    finished += (size_t)world.ref.posted;
    while (brought(loop) < finished)
        (void)sched_yield();
    same(-1, "how many calls have returned", (int64_t)brought(loop),
         (int64_t)finished);
}

static int wait_for_fd(int f)
{
    int code;

    ref_fd_wait(&world.ref, f);
    code = px_wait_fd(world.fd, PX_READABLE);
    returned(f, code);
    return code;
}

static int make_readable(int f)
{
    world.ref.readable = true;
    return at_once(f, eventfd_write(world.fd, 1), 0);
}

static int drain(int f)
{
    eventfd_t value;
    int should = world.ref.readable ? 0 : -1;

    world.ref.readable = false;
    return at_once(f, eventfd_read(world.fd, &value), should);
}

static int close_fd(int f, bool told)
{
    int code;

    ref_fd_close(&world.ref, told);
    code = at_once(f, told ? px_close(world.fd) : close(world.fd), 0);
    open_again();
    return code;
}

static int offload(int f)
{
    int code;

    world.jobs[f].started = false;
    ref_offload(&world.ref, f);
    code = px_offload(job, &world.jobs[f]);
    returned(f, code);
    return code;
}

int finish_job(int f)
{
    int finished = ref_offload_finish(&world.ref, f);

    if (finished) {
        (void)sem_post(&world.jobs[f].go);
        outside_settle(world.driver->loop); /* before the next is brought */
    }
    return finished;
}

int perform_outside(int f, char what, int n)
{
    switch (what) {
    case 'f':
        return wait_for_fd(f);
    case 'F':
        return make_readable(f);
    case 'v':
        return drain(f);
    case 'X':
        return close_fd(f, true);
    case 'Y':
        return close_fd(f, false);
    case 'o':
        return offload(f);
    case 'j':
        return finish_job((f + n + world.program->fibers) %
                          world.program->fibers);
    default:
        fail("no such call: %c", what);
    }
}
