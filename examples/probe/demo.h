/* SPDX-License-Identifier: MIT */
/*
 * demo.h - targets of our own on loopback, for `probe --demo`.
 */
#ifndef PROBE_DEMO_H
#define PROBE_DEMO_H

#include <netinet/in.h>
#include <stdbool.h>

#include <parataxis/scheduler.h>

#include "report.h"
#include "targets.h"

#define DEMO_TARGETS 200
/* A lost SYN is sent again after one second. */
#define DEMO_TIMEOUT (1500 * PX_MSEC)

enum demo_kind {
    DEMO_FAST,   /* answers at once */
    DEMO_LATE,   /* its backlog is full, and drained after 200 ms */
    DEMO_NEVER,  /* its backlog is full, and stays full */
    DEMO_CLOSED, /* nobody listens */
    DEMO_KINDS
};

struct demo_host {
    int fd;
    struct sockaddr_in address;
    char name[32];
    int fillers[8]; /* the connections that fill its backlog */
    int fillers_used;
    px_fiber *fiber; /* accepts; NULL if nobody does */
};

struct demo {
    bool opened;
    struct demo_host hosts[DEMO_KINDS];
};

/* Take ports for the hosts. Returns 0 or a code; close it in either case. All
 * zero is a demo that is not open. */
int demo_open(struct demo *demo);
/* Fill the backlogs and start to accept. Cancellation point. Returns 0 or a
 * code. */
int demo_start(struct demo *demo);
/* Parks for a moment, and fails for no cancellation. */
void demo_close(struct demo *demo);

void demo_add_targets(const struct demo *demo, struct targets *list);

/* One line for each kind of host. */
void demo_report(struct out *out, const struct targets *list, size_t at_once,
                 px_nsec timeout, px_nsec took);

#endif
