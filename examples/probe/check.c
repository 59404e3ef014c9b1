/* SPDX-License-Identifier: MIT */
/*
 * check.c - checks targets, a bounded number at a time.
 *
 * One fiber per check. A semaphore holds the places; whoever starts a check
 * takes one first, so there are never more fibers than places. A check lives
 * inside two scopes, the deadline of the whole run and its own timeout, and
 * beyond them in the one that px_stop() fires; nothing below needs to know
 * which of them cut a call short, only what is then true of the target.
 *
 * A name is looked up by getaddrinfo(), which blocks, so it runs on a thread,
 * and nothing can cut it short, so the check must not wait for the thread. A
 * fiber of its own does. The two share a record that belongs to both: the
 * check waits on its semaphore, under its timeout, and may leave at any time;
 * the last to leave frees the record. A call that still waits for a thread when
 * its check has gone is taken back, so that it is in nobody's way.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* beyond C11: POSIX, and AI_IDN */
#endif

#include "check.h"

#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <parataxis/io.h>
#include <parataxis/offload.h>
#include <parataxis/scheduler.h>
#include <parataxis/timeout.h>

#include "report.h"

/* Names with letters beyond ASCII, where the C library knows them. */
#ifdef AI_IDN
#define LOOKUP_FLAGS (AI_NUMERICSERV | AI_IDN)
#else
#define LOOKUP_FLAGS AI_NUMERICSERV
#endif

/* How long to wait when the system is short of sockets. */
#define SHORTAGE_PAUSE (20 * PX_MSEC)

struct answer {
    unsigned owners;
    px_sem ready;
    struct checker *checker;
    struct addrinfo *addresses;
    int error;  /* 0 or EAI_..., once the call has run */
    int failed; /* or why it did not, a PX_E... */
    char port[6];
    char host[];
};

static struct answer *answer_new(struct checker *checker,
                                 const struct target *target)
{
    size_t length = strlen(target->host) + 1;
    struct answer *answer = calloc(1, sizeof(*answer) + length);

    if (answer != NULL) {
        answer->owners = 1;
        answer->checker = checker;
        memcpy(answer->port, target->port, sizeof(answer->port));
        memcpy(answer->host, target->host, length);
    }
    return answer;
}

static void answer_drop(struct answer *answer)
{
    if (--answer->owners > 0)
        return;
    if (answer->addresses != NULL)
        freeaddrinfo(answer->addresses);
    free(answer);
}

static void look_up(struct answer *answer, int flags)
{
    struct addrinfo hints;

    memset(&hints, 0, sizeof(hints));
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    answer->error =
        getaddrinfo(answer->host, answer->port, &hints, &answer->addresses);
}

/* On a thread of the pool. */
static int look_up_name(void *arg)
{
    look_up(arg, LOOKUP_FLAGS);
    return 0;
}

static int wait_for_lookup(void *arg)
{
    struct answer *answer = arg;
    struct checker *checker = answer->checker;
    int err;

    checker->lookups++;
    err = px_offload(look_up_name, answer);
    checker->lookups--;
    if (err < 0) {
        answer->failed = err;
        checker->unasked++;
    }
    (void)px_sem_up(&answer->ready);
    answer_drop(answer);
    return 0;
}

/* Fill the answer. Returns 0, or the code that cut the wait for it short. */
static int resolve(struct answer *answer, bool numeric)
{
    px_fiber *fiber;
    int err;

    look_up(answer, AI_NUMERICHOST | AI_NUMERICSERV); /* never blocks */
    if (answer->error != EAI_NONAME || numeric)
        return 0;

    answer->owners++;
    err = px_spawn(&fiber, wait_for_lookup, answer);
    if (err < 0) {
        answer->owners--;
        answer->failed = err;
        return 0;
    }
    err = px_sem_down(&answer->ready);
    if (err < 0)
        (void)px_cancel(fiber);
    (void)px_detach(fiber);
    return err;
}

/* On loopback a port that nobody listens on may be the one that the kernel
 * picked for our own end: TCP then connects the socket to itself. */
static bool is_connected_to_itself(int fd)
{
    struct sockaddr_storage here, there;
    socklen_t here_length = sizeof(here), there_length = sizeof(there);

    memset(&here, 0, sizeof(here));
    memset(&there, 0, sizeof(there));
    return getsockname(fd, (struct sockaddr *)&here, &here_length) == 0 &&
           getpeername(fd, (struct sockaddr *)&there, &there_length) == 0 &&
           here_length == there_length &&
           memcmp(&here, &there, here_length) == 0;
}

/* Returns 0 if the address is open, -errno or a code if not. */
static int connect_once(const struct addrinfo *to)
{
    int err;
    int fd =
        socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC, to->ai_protocol);

    if (fd < 0)
        return -errno;
    err = px_connect(fd, to->ai_addr, to->ai_addrlen);
    if (err == 0 && is_connected_to_itself(fd))
        err = -ECONNREFUSED;
    (void)px_close(fd);
    return err;
}

/* Our own trouble, which says nothing about the target. */
static bool is_shortage(int err)
{
    return err == -EMFILE || err == -ENFILE || err == -ENOBUFS ||
           err == -ENOMEM || err == -EAGAIN;
}

static int connect_patiently(struct checker *checker, const struct addrinfo *to)
{
    int err;

    while (is_shortage(err = connect_once(to))) {
        int cut_short;

        if (!checker->short_of_sockets)
            say("short of sockets: %s", strerror(-err));
        checker->short_of_sockets = true;
        cut_short = px_sleep(SHORTAGE_PAUSE);
        if (cut_short < 0)
            return cut_short;
    }
    return err;
}

static enum state state_of(int err)
{
    switch (err) {
    case 0:
        return STATE_OPEN;
    case -ECONNREFUSED:
    case -ECONNRESET:
        return STATE_REFUSED;
    case PX_ETIMEDOUT:
        return STATE_TIMED_OUT;
    case PX_ECANCELED:
        return STATE_CANCELLED;
    default:
        return STATE_UNREACHABLE;
    }
}

/* Of a host with several addresses: an open one settles it, an undecided one
 * leaves it open, and a refusal says more than no way to get there. */
static int weight(enum state state)
{
    static const enum state order[] = {STATE_UNREACHABLE, STATE_REFUSED,
                                       STATE_TIMED_OUT, STATE_CANCELLED,
                                       STATE_OPEN};
    int i;

    for (i = 0; order[i] != state; i++)
        ;
    return i;
}

static char *address_text(const struct addrinfo *to)
{
    char host[INET6_ADDRSTRLEN + 1 + IF_NAMESIZE], port[6], *text;
    const char *format = to->ai_family == AF_INET6 ? "[%s]:%s" : "%s:%s";
    size_t room = sizeof(host) + sizeof(port) + 3;

    if (getnameinfo(to->ai_addr, to->ai_addrlen, host, sizeof(host), port,
                    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return NULL;
    text = malloc(room);
    if (text != NULL)
        snprintf(text, room, format, host, port);
    return text;
}

/* Try the addresses in turn. Each but the last may use up its share of the time
 * that is left, so that a silent one does not keep the others from being
 * tried. */
static void try_addresses(struct target *target, const struct addrinfo *first)
{
    const struct addrinfo *to, *settled = NULL;
    px_nsec left = 0;

    for (to = first; to != NULL; to = to->ai_next)
        left++;
    for (to = first; to != NULL && target->state != STATE_OPEN;
         to = to->ai_next) {
        px_nsec share =
            left > 1 ? (px_deadline() - px_now()) / left : PX_FOREVER;
        int err = PX_ECANCELED;
        enum state state;

        left--;
        PX_WITHIN(turn, share)
        {
            err = connect_patiently(target->checker, to);
        }
        state = state_of(err);
        if (settled == NULL || weight(state) >= weight(target->state)) {
            settled = to;
            target->state = state;
            target->reason =
                state == STATE_UNREACHABLE ? px_strerror(err) : NULL;
        }
        err = left > 0 ? px_check() : 0;
        if (err < 0 && target->state != STATE_OPEN) {
            /* There is no time for the others: it stays undecided. */
            target->state = state_of(err);
            target->reason = NULL;
            break;
        }
    }
    if (settled != NULL)
        target->address = address_text(settled);
}

static void check_in_time(struct target *target)
{
    struct answer *answer = answer_new(target->checker, target);
    int err;

    if (answer == NULL) {
        target->state = STATE_UNRESOLVED;
        target->reason = px_strerror(PX_ENOMEM);
        return;
    }
    err = resolve(answer, target->numeric);
    if (err < 0) {
        target->state = state_of(err);
    } else if (answer->failed || answer->error) {
        target->state = STATE_UNRESOLVED;
        target->reason = answer->failed ? px_strerror(answer->failed)
                                        : gai_strerror(answer->error);
    } else {
        try_addresses(target, answer->addresses);
    }
    answer_drop(answer);
}

static int check(void *arg)
{
    struct target *target = arg;
    struct checker *checker = target->checker;
    px_scope run, own;
    px_nsec start;

    (void)px_scope_enter_until(&run, checker->deadline);
    start = px_now(); /* what it takes is never less than its timeout */
    (void)px_scope_enter(&own, checker->timeout);
    if (px_check() == 0) { /* else there is no time to try anything */
        check_in_time(target);
        target->took = px_now() - start;
    }
    (void)px_scope_leave(&own);
    (void)px_scope_leave(&run);

    checker->done++;
    checker->in_flight--;
    (void)px_sem_up(&checker->places);
    return 0;
}

void checker_init(struct checker *checker, size_t at_once, px_nsec timeout,
                  px_nsec deadline)
{
    memset(checker, 0, sizeof(*checker));
    checker->timeout = timeout;
    checker->deadline = deadline;
    (void)px_sem_init_bounded(&checker->places, (int64_t)at_once);
    (void)px_waitgroup_init(&checker->all, 0);
}

/* There is no memory for one more fiber: go on with those that are there.
 * The place that was taken for it goes with the rest. */
static void lower_places(struct checker *checker)
{
    (void)px_sem_set_limit(&checker->places, (int64_t)checker->in_flight);
    (void)px_sem_up(&checker->places);
    if (!checker->short_of_fibers)
        say("short of memory: %zu at once from now on", checker->in_flight);
    checker->short_of_fibers = true;
}

int checker_start(struct checker *checker, struct target *target)
{
    int err;

    for (;;) {
        err = px_sem_down(&checker->places);
        if (err < 0)
            return err;
        target->checker = checker;
        checker->in_flight++;
        err = px_waitgroup_go(&checker->all, check, target);
        if (err == 0)
            return 0;
        checker->in_flight--;
        if (err != PX_ENOMEM || checker->in_flight == 0)
            break;
        lower_places(checker);
    }
    (void)px_sem_up(&checker->places);
    return err;
}
