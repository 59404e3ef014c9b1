/* SPDX-License-Identifier: MIT */
/*
 * demo.c - targets of our own on loopback, for `probe --demo`.
 *
 * A listening socket whose backlog is full drops what else wants to connect,
 * as a host does that is not there: nothing comes back. The sender tries again
 * after a second; if the backlog has been drained by then, it gets through.
 * The hosts are fibers of the same run as the checks.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "demo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <parataxis/io.h>
#include <parataxis/scheduler.h>
#include <parataxis/timeout.h>

#define DRAINED_AFTER (200 * PX_MSEC)
/* A connection within the machine takes far less. */
#define FULL_AFTER (50 * PX_MSEC)
#define ROOMY 128

static const char *const kind_names[DEMO_KINDS] = {
    "answers at once",
    "full backlog, drained after 200 ms",
    "full backlog, never drained",
    "closed port",
};

/* Of ten neighbouring targets. */
static const enum demo_kind mix[10] = {
    DEMO_FAST, DEMO_CLOSED, DEMO_FAST, DEMO_LATE,   DEMO_FAST,
    DEMO_FAST, DEMO_NEVER,  DEMO_FAST, DEMO_CLOSED, DEMO_FAST,
};

static int accept_all(const struct demo_host *host)
{
    for (;;) {
        int fd = px_accept(host->fd, NULL, NULL);

        if (fd < 0 && fd != -ECONNABORTED)
            return fd; /* cancelled */
        if (fd >= 0)
            (void)px_close(fd);
    }
}

static int answer_at_once(void *arg)
{
    return accept_all(arg);
}

static int answer_late(void *arg)
{
    struct demo_host *host = arg;
    int err = px_sleep(DRAINED_AFTER);

    if (err < 0)
        return err;
    /* Those that were dropped come again at the same moment. */
    if (listen(host->fd, ROOMY) < 0)
        return -errno;
    return accept_all(host);
}

/* A socket on loopback, of a port that is free. It is kept, so that nobody else
 * gets the port, even if it does not listen. Returns 0 or -errno. */
static int bind_host(struct demo_host *host)
{
    struct sockaddr *address = (struct sockaddr *)&host->address;
    socklen_t length = sizeof(host->address);

    host->address.sin_family = AF_INET;
    host->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    host->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (host->fd < 0 || bind(host->fd, address, length) < 0 ||
        getsockname(host->fd, address, &length) < 0)
        return -errno;
    snprintf(host->name, sizeof(host->name), "127.0.0.1:%u",
             (unsigned)ntohs(host->address.sin_port));
    return 0;
}

/* Connect until one gets no answer: the backlog is full. */
static int fill(struct demo_host *host)
{
    const int most = sizeof(host->fillers) / sizeof(host->fillers[0]);

    while (host->fillers_used < most) {
        int err = PX_ECANCELED;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0)
            return -errno;
        PX_WITHIN(limit, FULL_AFTER)
        {
            err = px_connect(fd, (const struct sockaddr *)&host->address,
                             sizeof(host->address));
        }
        if (err == 0) {
            host->fillers[host->fillers_used++] = fd;
            continue;
        }
        (void)px_close(fd);
        return err == PX_ETIMEDOUT ? px_check() : err;
    }
    return 0; /* this system takes more than it was asked to */
}

static int start_host(struct demo_host *host, enum demo_kind kind)
{
    int err;

    if (kind == DEMO_CLOSED)
        return 0;
    if (listen(host->fd, kind == DEMO_FAST ? ROOMY : 0) < 0)
        return -errno;
    if (kind == DEMO_FAST)
        return px_spawn(&host->fiber, answer_at_once, host);
    err = fill(host);
    if (err == 0 && kind == DEMO_LATE)
        err = px_spawn(&host->fiber, answer_late, host);
    return err;
}

int demo_open(struct demo *demo)
{
    int err = 0, i;

    memset(demo, 0, sizeof(*demo));
    for (i = 0; i < DEMO_KINDS; i++)
        demo->hosts[i].fd = -1;
    demo->opened = true;
    for (i = 0; i < DEMO_KINDS && err == 0; i++)
        err = bind_host(&demo->hosts[i]);
    return err;
}

int demo_start(struct demo *demo)
{
    /* The late one last: its time begins with it. */
    static const enum demo_kind order[DEMO_KINDS] = {DEMO_FAST, DEMO_CLOSED,
                                                     DEMO_NEVER, DEMO_LATE};
    int err = 0, i;

    for (i = 0; i < DEMO_KINDS && err == 0; i++)
        err = start_host(&demo->hosts[order[i]], order[i]);
    return err;
}

void demo_close(struct demo *demo)
{
    int i, k;

    for (i = 0; demo->opened && i < DEMO_KINDS; i++) {
        struct demo_host *host = &demo->hosts[i];

        int err = host->fiber ? px_cancel_and_await(host->fiber, NULL) : 0;

        if (err < 0)
            continue; /* it still has the descriptor */
        for (k = 0; k < host->fillers_used; k++)
            (void)px_close(host->fillers[k]);
        if (host->fd >= 0)
            (void)px_close(host->fd);
    }
    memset(demo, 0, sizeof(*demo));
}

void demo_add_targets(const struct demo *demo, struct targets *list)
{
    unsigned i;

    for (i = 0; i < DEMO_TARGETS; i++) {
        enum demo_kind kind = mix[i % 10];
        const char *name = demo->hosts[kind].name;

        targets_add(list, name, strlen(name))->kind = kind;
    }
}

/* "20 open" or "18 open, 2 timed out". */
static void show_states(char *text, size_t room, const size_t counts[STATES])
{
    size_t used = 0, i;

    text[0] = '\0';
    for (i = 0; i < STATES; i++) {
        if (counts[i] > 0 && used < room)
            used += (size_t)snprintf(text + used, room - used, "%s%zu %s",
                                     used > 0 ? ", " : "", counts[i],
                                     state_names[i]);
    }
}

static double seconds(px_nsec time)
{
    return (double)time / (double)PX_SEC;
}

void demo_report(struct out *out, const struct targets *list, size_t at_once,
                 px_nsec timeout, px_nsec took)
{
    px_nsec sum = 0;
    size_t i;
    unsigned kind;

    out_format(out, "%-36s %7s   %-15s %8s %8s\n", "", "targets", "came out as",
               "min ms", "max ms");
    for (kind = 0; kind < DEMO_KINDS; kind++) {
        size_t counts[STATES] = {0}, n = 0;
        px_nsec least = PX_FOREVER, most = 0;
        char states[128];

        for (i = 0; i < list->count; i++) {
            const struct target *target = list->items[i];

            if (target->kind != kind)
                continue;
            n++;
            counts[target->state]++;
            if (target->took < 0)
                continue;
            sum += target->took;
            if (target->took < least)
                least = target->took;
            if (target->took > most)
                most = target->took;
        }
        show_states(states, sizeof(states), counts);
        out_format(out, "%-36s %7zu   %-15s", kind_names[kind], n, states);
        if (least <= most)
            out_format(out, " %8.1f %8.1f", 1000 * seconds(least),
                       1000 * seconds(most));
        out_add(out, "\n", 1);
    }
    out_format(out,
               "%zu targets, %zu at once, at most %.0f ms each: %.2f s; one "
               "after the other %.2f s\n",
               list->count, at_once, 1000 * seconds(timeout), seconds(took),
               seconds(sum));
    out_flush(out);
}
