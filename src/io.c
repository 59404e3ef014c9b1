/* SPDX-License-Identifier: MIT */
/*
 * io.c - waiting for descriptors, and the calls that transfer.
 *
 * Every descriptor number that was waited for has a record, in a table of two
 * levels that never moves; the fibers parked on it are in one queue, and what
 * each waits for is in its waiter. There are two ways to wait (poller.h):
 *
 *   level  px_wait_fd(). Looks with poll(2) before and after: it returns only
 *          what is ready now. The watch is armed once per wait, and a number
 *          that was closed and used again in between is found out: either the
 *          poller does not know it any more, or a stale report leads to one
 *          more look.
 *   edge   the transfers. They try the call first, and wait only when it says
 *          that it would block. The watch stays registered until px_close(), so
 *          a busy connection costs no registration at all.
 *
 * A descriptor that somebody uses with the transfers stays with `keep`; a level
 * wait on it then asks for a fresh report.
 *
 * Sockets are never blocked on, whatever their mode: MSG_DONTWAIT is said with
 * each call. Other descriptors that are in blocking mode are asked by poll(2)
 * before each transfer, and written to in pieces that then can not block.
 */
#include "io.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "cancel.h"
#include "wait_queue.h"

_Static_assert(EAGAIN == EWOULDBLOCK, "one of the two is asked for");

#define CHUNK 1024
#define CHUNKS 8192 /* together more than a process can have open */

/* How often a number was found to be closed, and how often by px_close(). */
struct closings {
    uint32_t all;
    uint32_t told;
};

struct descriptor {
    struct px_watch watch;
    px_waitq waiters;
    struct closings closings;
};

struct table {
    struct descriptor *chunks[CHUNKS];
};

/* The record of a number, or NULL if it has none. */
static struct descriptor *find(px_loop *loop, int fd)
{
    struct table *table = loop->io;
    size_t chunk = (size_t)fd / CHUNK;

    if (!table || fd < 0 || chunk >= CHUNKS || !table->chunks[chunk])
        return NULL;
    return &table->chunks[chunk][(size_t)fd % CHUNK];
}

static struct descriptor *make(px_loop *loop, int fd)
{
    struct table *table = loop->io;
    size_t chunk = (size_t)fd / CHUNK;

    if (!table) {
        table = calloc(1, sizeof(*table));
        loop->io = table;
    }
    if (!table || chunk >= CHUNKS)
        return NULL;
    table->chunks[chunk] = calloc(CHUNK, sizeof(struct descriptor));
    for (size_t i = 0; table->chunks[chunk] && i < CHUNK; i++)
        table->chunks[chunk][i].watch.fd = (int)(chunk * CHUNK + i);
    return find(loop, fd);
}

void px__io_close(px_loop *loop)
{
    struct table *table = loop->io;

    for (size_t i = 0; table && i < CHUNKS; i++)
        free(table->chunks[i]);
    free(table);
    loop->io = NULL;
}

int px__io_number(const px_fiber *fiber)
{
    const struct descriptor *descriptor = fiber->waits_on;

    return descriptor->watch.fd;
}

#define PAUSED 4         /* events: none */
#define ANYTHING INT_MAX /* events: everybody's */

/* Wake those who wait for one of `events`. */
static void wake(px_loop *loop, struct descriptor *descriptor, int events,
                 int verdict)
{
    struct px_waiter *next;

    for (struct px_waiter *w = descriptor->waiters.head; w; w = next) {
        next = w->next;
        if (!(w->want & events))
            continue;
        loop->io_waits--;
        (void)px__waitq_wake(w, verdict);
    }
}

/* The number is no file's any more, or another's: whoever waited for that file
 * waits for nothing now. */
static void closed(px_loop *loop, struct descriptor *descriptor, int code)
{
    wake(loop, descriptor, ANYTHING, code);
    descriptor->closings.all++;
    descriptor->closings.told += code == PX_ECLOSED;
    descriptor->watch.keep = false;
    descriptor->watch.generation++;
}

/* Whether it was, since: 0, or the code of that. */
static int closed_since(const struct descriptor *descriptor,
                        struct closings before)
{
    if (descriptor->closings.all == before.all)
        return 0;
    return descriptor->closings.told == before.told ? PX_EBADF : PX_ECLOSED;
}

static int wanted(const struct descriptor *descriptor)
{
    int64_t events = 0;

    for (const struct px_waiter *w = descriptor->waiters.head; w; w = w->next)
        events |= w->want;
    return (int)events & (PX_READABLE | PX_WRITABLE);
}

/* A report of the poller: those woken look for themselves. */
static void on_ready(px_loop *loop, int fd, uint32_t generation, int events)
{
    struct descriptor *descriptor = find(loop, fd);
    int err;

    if (descriptor->watch.generation != generation)
        return;
    wake(loop, descriptor, events, 0);
    /* One-shot: those who wait for the other direction need it again. */
    descriptor->watch.events = wanted(descriptor);
    if (!descriptor->watch.events)
        return;
    err = px__poller_arm(&loop->poller, &descriptor->watch, false);
    if (err == -ENOENT) /* not known any more */
        closed(loop, descriptor, PX_EBADF);
    else if (err)
        wake(loop, descriptor, ANYTHING, err);
}

static bool fd_interrupt(px_fiber *fiber, int code)
{
    fiber->loop->io_waits--;
    return px__waitq_interrupt(fiber, code);
}

static const struct px_wait_class fd_class = {
    .kind = PX_WAIT_FD,
    .interrupt = fd_interrupt,
};

static const struct px_wait_class signal_class = {
    .kind = PX_WAIT_SIGNAL,
    .interrupt = fd_interrupt,
};

/* Make the record ready to be waited on: 0 or a code. */
static int prepare(px_loop *loop, int fd, struct descriptor **out)
{
    int err = px__poller_open(&loop->poller);

    if (err)
        return err;
    loop->on_ready = on_ready;
    *out = find(loop, fd);
    if (!*out)
        *out = make(loop, fd);
    return *out ? 0 : PX_ENOMEM;
}

/* A transfer keeps the descriptor registered; what is not one asks for a fresh
 * report. */
enum mode { TRANSFER, LEVEL };

/* What a call waits for, perhaps several times. */
struct wait {
    int fd;
    int events;
    const struct px_wait_class *waiting;
    enum mode mode;
    bool again;
};

/* 0 or a code. */
static int arm(px_loop *loop, struct descriptor *descriptor,
               const struct wait *wait)
{
    struct px_watch *watch = &descriptor->watch;
    bool fresh = wait->mode == LEVEL || !watch->keep;
    int err;

    if (wait->mode == TRANSFER)
        watch->keep = true;
    watch->events = wait->events | wanted(descriptor);
    /* Each registration has a generation of its own: one of a file that was
     * closed may still report, if a duplicate keeps the file. */
    if (!watch->registered)
        watch->generation++;
    err = px__poller_arm(&loop->poller, watch, fresh);
    if (err == -ENOENT) {
        /* Closed behind our back. If the call has waited for that file, it is
         * one of those; if not, the number is another file's by now. */
        closed(loop, descriptor, PX_EBADF);
        if (wait->again)
            return PX_EBADF;
        watch->keep = wait->mode == TRANSFER;
        err = px__poller_arm(&loop->poller, watch, fresh);
    }
    return err;
}

/* The number may be closed after the fiber was woken and before it runs: then
 * it is another file's by now, and none of its business. */
static int park(px_fiber *self, struct descriptor *descriptor, int events,
                const struct px_wait_class *waiting)
{
    struct closings before = descriptor->closings;
    int err;

    self->loop->io_waits++;
    err =
        px__waitq_wait(&descriptor->waiters, self, waiting, descriptor, events);
    return err ? err : closed_since(descriptor, before);
}

/* Park until the poller reports what is waited for: 0 or a code. It may be told
 * of something that is over by the time it looks. */
static int park_on(px_fiber *self, struct wait *wait)
{
    px_loop *loop = self->loop;
    struct descriptor *descriptor;
    int err;

    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    err = prepare(loop, wait->fd, &descriptor);
    if (!err)
        err = arm(loop, descriptor, wait);
    if (!err)
        err = px__may_park(self);
    if (err)
        return err;
    wait->again = true;
    return park(self, descriptor, wait->events, wait->waiting);
}

/* What poll(2) says of it now, or -errno. */
static int poll_now(int fd, int events)
{
    struct pollfd set = {.fd = fd, .events = (short)events};
    int count;

    do {
        count = poll(&set, 1, 0);
    } while (count < 0 && errno == EINTR);
    return count < 0 ? -errno : set.revents;
}

/* What of `events` is ready now: 0 or more, or a code. */
static int ready_now(int fd, int events)
{
    int ready = 0, seen;

    if (fd < 0)
        return PX_EBADF;
    seen = poll_now(fd, (events & PX_READABLE ? POLLIN : 0) |
                            (events & PX_WRITABLE ? POLLOUT : 0));
    if (seen < 0)
        return seen;
    if (seen & POLLNVAL)
        return PX_EBADF;
    if (seen & (POLLIN | POLLHUP | POLLERR))
        ready |= PX_READABLE;
    if (seen & (POLLOUT | POLLHUP | POLLERR))
        ready |= PX_WRITABLE;
    return ready & events;
}

/* A call was told that the number is no file's. If so, those who wait for it
 * have not been told: the poller says nothing of a file that is gone. */
static void look_whether_closed(int fd)
{
    int saved = errno;

    if (fcntl(fd, F_GETFD) < 0)
        px__io_forget(px__loop, fd, PX_EBADF);
    errno = saved;
}

/* Wait until it is ready, by looking: for what, or a code. */
static int wait_level(px_fiber *self, struct wait *wait)
{
    int ready = ready_now(wait->fd, wait->events);

    while (ready == 0) {
        ready = park_on(self, wait);
        if (ready == 0)
            ready = ready_now(wait->fd, wait->events);
    }
    if (ready == PX_EBADF)
        look_whether_closed(wait->fd);
    return ready;
}

void px__io_forget(px_loop *loop, int fd, int code)
{
    struct descriptor *descriptor = loop ? find(loop, fd) : NULL;

    if (!descriptor)
        return;
    closed(loop, descriptor, code);
    px__poller_forget(&loop->poller, &descriptor->watch);
}

int px__io_park_for_signal(px_fiber *self, int fd)
{
    struct wait wait = {fd, PX_READABLE, &signal_class, LEVEL, false};

    return park_on(self, &wait);
}

int px_wait_fd(int fd, int events)
{
    px_fiber *self = px__self;
    struct wait wait = {fd, events, &fd_class, LEVEL, false};
    int err;

    if (!events || events & ~(PX_READABLE | PX_WRITABLE))
        return PX_EINVAL;
    err = px__cancellation_point(self);
    return err ? err : wait_level(self, &wait);
}

/* The transfers. Each has an attempt, which never blocks and returns -EAGAIN
 * if it would have to, and says how to wait then. */

/* One that does not tell is asked as if it were: that is never wrong. */
static bool is_blocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags < 0 || !(flags & O_NONBLOCK);
}

/* Of a blocking descriptor: whether a transfer would go through now. 0, -EAGAIN
 * or what the transfer itself would say, for poll(2) does not know that a file
 * is open the other way only. */
static int ask(int fd, int events)
{
    int access = fcntl(fd, F_GETFL) & O_ACCMODE, ready;

    if (access == (events == PX_READABLE ? O_WRONLY : O_RDONLY))
        return PX_EBADF;
    ready = ready_now(fd, events);
    return ready > 0 ? 0 : ready ? ready : -EAGAIN;
}

/* The same for accept(2). */
static int ask_listener(int fd)
{
    int listens = 0;
    socklen_t size = sizeof(listens);

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0)
        return -errno;
    return listens ? ask(fd, PX_READABLE) : PX_EINVAL;
}

#define STEP 256 /* bytes */

static bool is_translated(char byte)
{
    return memchr("\n\r\t\b", byte, 4) != NULL;
}

/* A terminal that poll() calls writable does one step without waiting: some
 * plain characters, or one that it makes others of. What is no terminal may be
 * a device of records, which are not to be cut. */
static size_t step_of_device(int fd, const char *bytes, size_t n)
{
    struct termios settings;
    size_t plain = 0;

    if (tcgetattr(fd, &settings) != 0)
        return n;
    if (n > STEP)
        n = STEP;
    if (!(settings.c_oflag & OPOST))
        return n;
    if (settings.c_oflag & OLCUC)
        return 1; /* it makes others of most */
    while (plain < n && !is_translated(bytes[plain]))
        plain++;
    return plain ? plain : 1;
}

/* How much can be written to a blocking descriptor that poll() calls writable
 * without being blocked after all. */
static size_t piece(int fd, const void *buf, size_t n)
{
    struct stat status;

    if (fstat(fd, &status) != 0)
        return n < STEP ? n : STEP; /* whatever it is, it holds that */
    if (S_ISFIFO(status.st_mode) && n > PIPE_BUF)
        return PIPE_BUF;
    return S_ISCHR(status.st_mode) ? step_of_device(fd, buf, n) : n;
}

static ssize_t attempt_read(int fd, void *buf, size_t n, enum mode *mode)
{
    ssize_t got = -1;

    *mode = TRANSFER;
    errno = ENOTSOCK;
    if (n > 0)
        got = recv(fd, buf, n, MSG_DONTWAIT);
    if (got < 0 && errno == ENOTSOCK) {
        if (is_blocking(fd)) {
            int err = ask(fd, PX_READABLE);

            *mode = LEVEL;
            if (err)
                return err == -EAGAIN && n == 0 ? 0 : err;
        }
        got = read(fd, buf, n);
    }
    return got < 0 ? -errno : got;
}

static ssize_t attempt_write(int fd, const void *buf, size_t n, enum mode *mode)
{
    ssize_t put = send(fd, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL);

    *mode = TRANSFER;
    if (put < 0 && errno == ENOTSOCK) {
        if (n > 0 && is_blocking(fd)) {
            int err = ask(fd, PX_WRITABLE);

            *mode = LEVEL;
            if (err)
                return err;
            n = piece(fd, buf, n);
        }
        put = write(fd, buf, n);
    }
    return put < 0 ? -errno : put;
}

static ssize_t attempt_accept(int fd, struct sockaddr *addr, socklen_t *len,
                              enum mode *mode)
{
    int accepted;

    *mode = TRANSFER;
    if (is_blocking(fd)) {
        int err = ask_listener(fd);

        *mode = LEVEL;
        if (err)
            return err;
    }
    accepted = accept4(fd, addr, len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return accepted < 0 ? -errno : accepted;
}

/* After an attempt: 0 to try again, or what the call returns. */
static ssize_t after_attempt(px_fiber *self, ssize_t result, struct wait *wait)
{
    if (result == -EINTR)
        return 0;
    if (result == PX_EBADF)
        look_whether_closed(wait->fd);
    if (result != -EAGAIN)
        return result;
    return park_on(self, wait);
}

ssize_t px_read(int fd, void *buf, size_t n)
{
    px_fiber *self = px__self;
    ssize_t result;
    struct wait wait = {fd, PX_READABLE, &fd_class, TRANSFER, false};
    int err = px__cancellation_point(self);

    if (err)
        return err;
    if (fd < 0)
        return PX_EBADF;
    for (;;) {
        result = attempt_read(fd, buf, n, &wait.mode);
        if (result >= 0)
            return result;
        result = after_attempt(self, result, &wait);
        if (result)
            return result;
    }
}

ssize_t px_write(int fd, const void *buf, size_t n)
{
    px_fiber *self = px__self;
    ssize_t result;
    struct wait wait = {fd, PX_WRITABLE, &fd_class, TRANSFER, false};
    int err = px__cancellation_point(self);

    if (err)
        return err;
    if (fd < 0)
        return PX_EBADF;
    for (;;) {
        result = attempt_write(fd, buf, n, &wait.mode);
        if (result >= 0)
            return result;
        result = after_attempt(self, result, &wait);
        if (result)
            return result;
    }
}

int px_write_all(int fd, const void *buf, size_t n, size_t *done)
{
    const char *bytes = buf;
    size_t sent = 0;
    ssize_t result;

    if (done)
        *done = 0;
    do {
        result = px_write(fd, bytes + sent, n - sent);
        if (result < 0)
            return (int)result;
        sent += (size_t)result;
        if (done)
            *done = sent;
    } while (sent < n);
    return 0;
}

int px_accept(int fd, struct sockaddr *addr, socklen_t *len)
{
    px_fiber *self = px__self;
    ssize_t result;
    struct wait wait = {fd, PX_READABLE, &fd_class, TRANSFER, false};
    int err = px__cancellation_point(self);

    if (err)
        return err;
    if (fd < 0)
        return PX_EBADF;
    for (;;) {
        result = attempt_accept(fd, addr, len, &wait.mode);
        if (result == -ECONNABORTED)
            continue; /* that client has gone; the next one may be there */
        if (result >= 0)
            return (int)result;
        result = after_attempt(self, result, &wait);
        if (result)
            return (int)result;
    }
}

/* Be parked on the descriptor for a time, so that closing it is told. */
static int pause_on(px_fiber *self, int fd, px_nsec duration)
{
    struct descriptor *descriptor;
    px_scope scope;
    struct closings before;
    int err = prepare(self->loop, fd, &descriptor);

    if (!err)
        err = px__may_park(self);
    if (err)
        return err;
    px__scope_push(&scope, self, px__deadline_of(self->loop, duration), 0);
    before = descriptor->closings;
    err = park(self, descriptor, PAUSED, &fd_class);
    px__scope_pop(&scope, self);
    if (err != PX_ETIMEDOUT || scope.status != PX_ETIMEDOUT)
        return err;
    /* Its own end is no news; another scope's is told by the next look. */
    return closed_since(descriptor, before);
}

/* A Unix socket whose listener's backlog is full says EAGAIN, and nothing
 * reports when there is room: ask again, ever more slowly. */
static int connect_patiently(px_fiber *self, int fd,
                             const struct sockaddr *addr, socklen_t len)
{
    px_nsec duration = PX_MSEC;

    for (;;) {
        int err;

        if (connect(fd, addr, len) == 0)
            return 0;
        if (errno != EAGAIN)
            return -errno;
        if (!px__is_fiber(self))
            return PX_ENOFIBER;
        err = pause_on(self, fd, duration);
        if (err)
            return err;
        if (duration < 64 * PX_MSEC)
            duration *= 2;
    }
}

static int socket_error(int fd)
{
    int error = 0;
    socklen_t size = sizeof(error);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        return -errno;
    return -error;
}

int px_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    px_fiber *self = px__self;
    struct wait wait = {fd, PX_WRITABLE, &fd_class, TRANSFER, false};
    int err = px__cancellation_point(self);
    int seen;

    if (err)
        return err;
    err = px_nonblock(fd);
    if (err)
        return err;
    err = connect_patiently(self, fd, addr, len);
    if (err != -EINPROGRESS && err != -EINTR)
        return err;
    /* An error that is reported may be one in the socket's queue, of something
     * before: it decides nothing. */
    do {
        err = park_on(self, &wait);
        if (err)
            return err;
        seen = poll_now(fd, POLLOUT);
        err = seen < 0 ? seen : socket_error(fd);
    } while (!err && !(seen & (POLLOUT | POLLHUP)));
    return err;
}

int px_nonblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0) {
        look_whether_closed(fd); /* leaves errno alone */
        return -errno;
    }
    if (!(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return -errno;
    return 0;
}

int px_close(int fd)
{
    px__io_forget(px__loop, fd, PX_ECLOSED);
    if (close(fd) != 0 && errno != EINTR)
        return -errno;
    return 0;
}
