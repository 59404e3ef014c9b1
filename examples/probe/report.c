/* SPDX-License-Identifier: MIT */
/*
 * report.c - everything that probe prints.
 *
 * Results go to standard output. Messages go to standard error, and so does the
 * progress line, if that is a terminal. It is drawn over itself with carriage
 * returns and blanks, which every terminal understands, and taken away before
 * anything else is written there: the mutex makes each of these one step.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <parataxis/io.h>
#include <parataxis/scheduler.h>
#include <parataxis/sync_mutex.h>
#include <parataxis/timeout.h>

#include "text.h"

#define SAY_AT_MOST PX_SEC
#define PROGRESS_PERIOD (100 * PX_MSEC)
/* The longest target that is shown whole: a name, a colon and a port. */
#define SHOWN_MAX 264
#define COLUMN_MAX 40

const char *const state_names[STATES] = {
    "open",      "refused",   "unreachable", "unresolved",
    "timed out", "cancelled", "malformed",
};

/* --- Standard error ------------------------------------------------------ */

static px_mutex err_lock = PX_MUTEX_INIT;
static size_t drawn; /* columns of the progress line that is to be seen */

struct message {
    char bytes[600];
    size_t length;
};

/* Write over the progress line, or below what there is. */
static int write_message(void *arg)
{
    struct message *message = arg;
    char line[sizeof(message->bytes) + 200];
    int err = PX_ECANCELED, length;

    PX_MUTEX_HOLD(&err_lock, err)
    {
        length =
            drawn ? snprintf(line, sizeof(line), "\r%*s\r", (int)drawn, "") : 0;
        memcpy(line + length, message->bytes, message->length);
        drawn = 0;
        err = px_write_all(STDERR_FILENO, line,
                           (size_t)length + message->length, NULL);
    }
    return err;
}

void say(const char *format, ...)
{
    struct message message;
    int start = snprintf(message.bytes, sizeof(message.bytes), "probe: ");
    size_t room = sizeof(message.bytes) - (size_t)start - 1, length;
    va_list args;
    int err;

    va_start(args, format);
    length = (size_t)vsnprintf(message.bytes + start, room, format, args);
    va_end(args);
    message.length = (size_t)start + (length < room ? length : room - 1);
    message.bytes[message.length++] = '\n';
    err = px_with_shield(SAY_AT_MOST, write_message, &message);
    (void)err; /* there is nobody left to tell */
}

/* --- Results ------------------------------------------------------------- */

void out_flush(struct out *out)
{
    if (out->used > 0 && out->error == 0)
        out->error = px_write_all(out->fd, out->bytes, out->used, NULL);
    out->used = 0;
}

void out_add(struct out *out, const char *bytes, size_t n)
{
    while (n > 0) {
        size_t room = sizeof(out->bytes) - out->used;
        size_t part = n < room ? n : room;

        memcpy(out->bytes + out->used, bytes, part);
        out->used += part;
        bytes += part;
        n -= part;
        if (out->used == sizeof(out->bytes))
            out_flush(out);
    }
}

void out_format(struct out *out, const char *format, ...)
{
    char line[SHOWN_MAX + 256];
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (length > 0)
        out_add(out, line,
                (size_t)length < sizeof(line) ? (size_t)length
                                              : sizeof(line) - 1);
}

static double ms(px_nsec time)
{
    return (double)time / (double)PX_MSEC;
}

static size_t columns_of(const struct target *target)
{
    char shown[SHOWN_MAX];

    return text_show(shown, sizeof(shown), target->text, target->length);
}

/* What there is to say about it beyond its state. */
static void add_detail(struct out *out, const struct target *target)
{
    bool has_address =
        target->address != NULL && strcmp(target->address, target->text) != 0;

    if (has_address)
        out_format(out, "  %s", target->address);
    if (target->reason != NULL)
        out_format(out, "  %s", target->reason);
}

void report_text(struct out *out, const struct targets *list)
{
    size_t width = 0, i;

    for (i = 0; i < list->count; i++) {
        size_t columns = columns_of(list->items[i]);

        if (columns > width && columns <= COLUMN_MAX)
            width = columns;
    }
    for (i = 0; i < list->count && out->error == 0; i++) {
        const struct target *target = list->items[i];
        char shown[SHOWN_MAX], took[32] = "-";
        size_t columns =
            text_show(shown, sizeof(shown), target->text, target->length);

        if (target->took >= 0)
            snprintf(took, sizeof(took), "%.1f ms", ms(target->took));
        out_format(out, "%s%*s  %-11s  %10s", shown,
                   columns < width ? (int)(width - columns) : 0, "",
                   state_names[target->state], took);
        add_detail(out, target);
        out_add(out, "\n", 1);
    }
    out_flush(out);
}

static void add_json_string(struct out *out, const char *bytes, size_t n)
{
    const unsigned char *from = (const unsigned char *)bytes;
    size_t i;

    out_add(out, "\"", 1);
    for (i = 0; i < n && out->error == 0;) {
        bool valid;
        size_t length = utf8_next(from + i, n - i, &valid);
        char escaped[8];

        out_add(out, escaped, text_json(escaped, from + i, length, valid));
        i += length;
    }
    out_add(out, "\"", 1);
}

void report_json(struct out *out, const struct targets *list)
{
    size_t i;

    for (i = 0; i < list->count && out->error == 0; i++) {
        const struct target *target = list->items[i];
        const char *c;

        out_format(out, "{\"target\":");
        add_json_string(out, target->text, target->length);
        out_format(out, ",\"address\":");
        if (target->address != NULL)
            add_json_string(out, target->address, strlen(target->address));
        else
            out_format(out, "null");
        out_format(out, ",\"state\":\"");
        for (c = state_names[target->state]; *c; c++)
            out_add(out, *c == ' ' ? "_" : c, 1);
        if (target->took >= 0)
            out_format(out, "\",\"ms\":%.3f}\n", ms(target->took));
        else
            out_format(out, "\",\"ms\":null}\n");
    }
    out_flush(out);
}

/* --- A terminal ---------------------------------------------------------- */

static size_t terminal_columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
        return size.ws_col;
    return 80;
}

/* "3 s", "2 min", or "?" while nothing is known. */
static void show_time_left(char *out, size_t room, const struct progress *p,
                           double rate)
{
    size_t left = p->list->count - p->checker->done;
    double seconds = rate > 0 && *p->complete ? (double)left / rate : -1;

    if (p->checker->deadline != PX_FOREVER) {
        double limit = ms(p->checker->deadline - px_now()) / 1000;

        if (seconds < 0 || seconds > limit)
            seconds = limit > 0 ? limit : 0;
    }
    if (seconds < 0)
        snprintf(out, room, "?");
    else if (seconds < 120)
        snprintf(out, room, "%.0f s", seconds);
    else
        snprintf(out, room, "%.0f min", seconds / 60);
}

static int draw(void *arg)
{
    const struct progress *p = arg;
    double elapsed = ms(px_now() - p->start) / 1000;
    double rate = elapsed > 0 ? (double)p->checker->done / elapsed : 0;
    char left[32], text[160], line[400];
    size_t columns = terminal_columns() - 1, length;
    int err = PX_ECANCELED, written;

    show_time_left(left, sizeof(left), p, rate);
    written = snprintf(
        text, sizeof(text), "%zu/%zu%s done, %zu in flight, %.0f/s, %s left",
        p->checker->done, p->list->count, *p->complete ? "" : "+",
        p->checker->in_flight, rate, left);
    length =
        (size_t)written < sizeof(text) ? (size_t)written : sizeof(text) - 1;
    if (length > columns)
        length = columns;

    PX_MUTEX_HOLD(&err_lock, err)
    {
        written = snprintf(line, sizeof(line), "\r%.*s%*s\r%.*s", (int)length,
                           text, drawn > length ? (int)(drawn - length) : 0, "",
                           (int)length, text);
        drawn = length;
        err = px_write_all(STDERR_FILENO, line, (size_t)written, NULL);
    }
    return err;
}

static int erase(void *arg)
{
    struct message nothing;

    (void)arg;
    nothing.length = 0;
    return write_message(&nothing);
}

int show_progress(void *arg)
{
    while (px_sleep(PROGRESS_PERIOD) == 0 && draw(arg) == 0)
        ;
    return px_with_shield(SAY_AT_MOST, erase, NULL);
}

void say_summary(const struct targets *list, px_nsec took)
{
    size_t counts[STATES] = {0}, i;
    char text[256] = "";
    size_t used = 0;

    for (i = 0; i < list->count; i++)
        counts[list->items[i]->state]++;
    for (i = 0; i < STATES; i++) {
        if (counts[i] > 0)
            used += (size_t)snprintf(text + used, sizeof(text) - used,
                                     "%s%zu %s", used > 0 ? ", " : "",
                                     counts[i], state_names[i]);
    }
    say("%zu targets in %.2f s: %s", list->count, ms(took) / 1000, text);
}
