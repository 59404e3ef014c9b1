/* SPDX-License-Identifier: MIT */
/*
 * targets.h - what is to be probed, and what came of it.
 *
 * A list keeps the targets in the order in which they were given, the
 * malformed ones too, so that every line of input has its line of output.
 */
#ifndef PROBE_TARGETS_H
#define PROBE_TARGETS_H

#include <stdbool.h>
#include <stddef.h>

#include <parataxis/clock.h>

struct checker;

enum state {
    STATE_OPEN,
    STATE_REFUSED,
    STATE_UNREACHABLE,
    STATE_UNRESOLVED,
    STATE_TIMED_OUT,
    STATE_CANCELLED, /* also: not begun yet */
    STATE_MALFORMED,
    STATES
};

struct target {
    char *text; /* as given, with a NUL behind; may hold NULs */
    size_t length;
    char *host; /* NULL if malformed */
    char port[6];
    bool numeric; /* it stood in brackets: no name */
    enum state state;
    px_nsec took;       /* below 0: nothing was tried */
    char *address;      /* the one that decided; NULL if none was tried */
    const char *reason; /* a constant: why it is malformed, unresolved, ... */
    unsigned kind;      /* the demo's */
    struct checker *checker; /* while it is being checked */
};

struct targets {
    struct target **items;
    size_t count, room;
};

/* The longest line that is kept whole. */
#define LINE_MAX_BYTES ((size_t)1 << 20)

/* Cuts input into lines, wherever its pieces end. All zero is a new one. */
struct lines {
    char *bytes; /* of the line that is not complete yet */
    size_t used, room;
    bool too_long;
    unsigned long number; /* of the last line */
};
typedef void (*line_fn)(void *arg, unsigned long number, const char *line,
                        size_t length, bool too_long);

/* Add a target that reads `text`, and return it; it may be malformed. Ends the
 * program if memory is out, as the next three do. */
struct target *targets_add(struct targets *list, const char *text,
                           size_t length);

/* The same for a line of a file. NULL if there is no target in it, only a
 * comment, or nothing. */
struct target *targets_add_line(struct targets *list, const char *line,
                                size_t length, bool too_long);

void lines_feed(struct lines *lines, const char *bytes, size_t n, line_fn fn,
                void *arg);
void lines_end(struct lines *lines, line_fn fn, void *arg);

void targets_free(struct targets *list);

#endif
