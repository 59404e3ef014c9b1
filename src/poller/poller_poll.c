/* SPDX-License-Identifier: MIT */
/*
 * poller_poll.c - POSIX: an array for poll(), one entry per armed watch.
 *
 * There are no registrations that outlive a wait: both modes report once and
 * take the watch out, and every wait arms it anew. The array grows when a
 * watch is armed, never while waiting. Cost is linear in the watches, which is
 * what poll() costs anyway.
 *
 * poll() takes no more entries than the soft limit of open files says, which
 * may be lowered at any time. Beyond that they are asked in slices.
 */
#include "poller/poller.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <parataxis/io.h>

#include "base/clock.h"
#include "loop.h"
#include "poller/wake.h"

#define SLICE_PAUSE (10 * PX_MSEC)

/* A watch, and which file its number meant when it was armed: the number may be
 * closed and used again. */
struct watched_file {
    struct px_watch *watch;
    dev_t device;
    ino_t inode;
};

struct watched {
    size_t count; /* entry 0 is the wake-up */
    size_t room;
    struct pollfd *set;
    struct watched_file *files;
};

static bool grow(struct watched *all)
{
    size_t room = all->room ? all->room * 2 : 16;
    struct pollfd *set = realloc(all->set, room * sizeof(*set));
    struct watched_file *files;

    if (!set)
        return false;
    all->set = set;
    files = realloc(all->files, room * sizeof(*files));
    if (!files)
        return false;
    all->files = files;
    all->room = room;
    return true;
}

static void free_watched(struct watched *all)
{
    if (!all)
        return;
    free(all->set);
    free(all->files);
    free(all);
}

int px__poller_open(struct px_poller *poller)
{
    struct watched *all;
    int err;

    if (poller->is_open)
        return 0;
    all = calloc(1, sizeof(*all));
    if (!all || !grow(all)) {
        free_watched(all);
        return PX_ENOMEM;
    }
    err = px__wake_open(poller);
    if (err) {
        free_watched(all);
        return err;
    }
    all->set[0] = (struct pollfd){.fd = px__wake_fd(poller), .events = POLLIN};
    all->files[0].watch = NULL;
    all->count = 1;
    poller->watched = all;
    poller->is_open = true;
    return 0;
}

void px__poller_close(struct px_poller *poller)
{
    if (!poller->is_open)
        return;
    px__wake_close(poller);
    free_watched(poller->watched);
    poller->watched = NULL;
    poller->is_open = false;
}

void px__poller_forget(struct px_poller *poller, struct px_watch *watch)
{
    struct watched *all = poller->watched;
    size_t last;

    if (!watch->registered)
        return;
    last = --all->count; /* not the wake-up, which is no watch */
    all->set[watch->slot] = all->set[last];
    all->files[watch->slot] = all->files[last];
    all->files[watch->slot].watch->slot = watch->slot;
    watch->registered = false;
}

int px__poller_arm(struct px_poller *poller, struct px_watch *watch, bool force)
{
    struct watched *all = poller->watched;
    struct watched_file *file;
    int events = watch->events;
    struct stat status;

    (void)force;
    if (fstat(watch->fd, &status) != 0)
        return -errno;
    if (!watch->registered) {
        if (all->count == all->room && !grow(all))
            return PX_ENOMEM;
        watch->slot = (int)all->count++;
        watch->registered = true;
    } else {
        file = &all->files[watch->slot];
        if (file->device != status.st_dev || file->inode != status.st_ino) {
            px__poller_forget(poller, watch);
            return -ENOENT;
        }
    }
    file = &all->files[watch->slot];
    *file = (struct watched_file){watch, status.st_dev, status.st_ino};
    all->set[watch->slot] = (struct pollfd){
        .fd = watch->fd,
        .events = (short)((events & PX_READABLE ? POLLIN : 0) |
                          (events & PX_WRITABLE ? POLLOUT : 0))};
    return 0;
}

static int as_milliseconds(px_nsec timeout)
{
    px_nsec rounded = timeout / PX_MSEC + (timeout % PX_MSEC != 0);

    if (timeout == PX_FOREVER)
        return -1;
    return rounded > INT_MAX ? INT_MAX : (int)rounded;
}

/* One look at each slice: how many are ready. */
static int look_in_slices(struct watched *all)
{
    struct rlimit limit = {.rlim_cur = 1};
    size_t slice;
    int count = 0;

    (void)getrlimit(RLIMIT_NOFILE, &limit);
    slice = limit.rlim_cur > 1 ? (size_t)limit.rlim_cur : 1;
    for (size_t i = 0; i < all->count; i += slice) {
        size_t left = all->count - i;
        int ready =
            poll(&all->set[i], (nfds_t)(left < slice ? left : slice), 0);

        count += ready > 0 ? ready : 0;
    }
    return count;
}

/* Look, wait a little, look again. Also at what was found before: the caller
 * clears nothing that it does not see. */
static int wait_in_slices(struct watched *all, px_nsec timeout)
{
    px_nsec until = px__clock_add(px__clock_precise(), timeout);
    int count = look_in_slices(all);

    while (count == 0 && px__clock_precise() < until) {
        px_nsec left = until - px__clock_precise();

        if (poll(all->set, 1, left < SLICE_PAUSE ? as_milliseconds(left) : 10))
            return look_in_slices(all); /* or a signal has come */
        count = look_in_slices(all);
    }
    return count;
}

void px__poller_wait(struct px_poller *poller, px_loop *loop, px_nsec timeout)
{
    struct watched *all = poller->watched;
    int count;

    if (!poller->is_open) {
        (void)poll(NULL, 0, as_milliseconds(timeout));
        return;
    }
    count = poll(all->set, (nfds_t)all->count, as_milliseconds(timeout));
    if (count < 0 && errno == EINVAL)
        count = wait_in_slices(all, timeout);
    if (count <= 0)
        return;
    if (all->set[0].revents)
        px__wake_clear(poller);
    /* From the end: taking one out moves the last into its place. */
    for (size_t i = all->count; i-- > 1;) {
        short bits = all->set[i].revents;
        struct px_watch *watch = all->files[i].watch;
        int ready = 0;

        if (!bits)
            continue;
        if (bits & (POLLIN | POLLHUP | POLLERR | POLLNVAL))
            ready |= PX_READABLE;
        if (bits & (POLLOUT | POLLHUP | POLLERR | POLLNVAL))
            ready |= PX_WRITABLE;
        px__poller_forget(poller, watch);
        loop->on_ready(loop, watch->fd, watch->generation, ready);
    }
}
