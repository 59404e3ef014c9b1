/* SPDX-License-Identifier: MIT */
/*
 * targets.c - from bytes to lines, and from a line to a host and a port.
 *
 * Nothing is looked up here: a target is malformed if it could name no host
 * and port whatever the network says. What has the shape of one, and names
 * nothing, is found out when it is resolved.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "targets.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

#define HOST_MAX_BYTES 255

static void *need(void *memory)
{
    if (memory == NULL) {
        fputs("probe: out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

static char *copy_of(const char *bytes, size_t n)
{
    char *copy = need(malloc(n + 1));

    if (n > 0)
        memcpy(copy, bytes, n);
    copy[n] = '\0';
    return copy;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* A port, 1 to 65535, in at most five digits. */
static const char *read_port(struct target *target, const char *text, size_t n)
{
    unsigned long port = 0;
    size_t i;

    if (n == 0)
        return "no port";
    for (i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return "the port is not a number";
        if (port < 100000)
            port = 10 * port + (unsigned long)(text[i] - '0');
    }
    if (port < 1 || port > 65535)
        return "the port is not within 1 and 65535";
    snprintf(target->port, sizeof(target->port), "%lu", port);
    return NULL;
}

/* An address of IPv6, perhaps with a zone: "fe80::1%eth0". */
static bool is_v6(const char *text, size_t n)
{
    const char *percent = memchr(text, '%', n);
    size_t length = percent ? (size_t)(percent - text) : n;
    char copy[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (length == 0 || length >= sizeof(copy) || (percent && length + 1 == n))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return inet_pton(AF_INET6, copy, &address) == 1;
}

/* Take the target apart. Returns what is wrong with it, or NULL. */
static const char *take_apart(struct target *target)
{
    const char *text = target->text, *host = text, *colon, *flaw;
    size_t n = target->length, length, i;

    if (n == 0)
        return "empty";
    for (i = 0; i < n; i++) {
        if (is_blank(text[i]))
            return "a blank inside";
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F)
            return "a control character inside";
    }
    if (!utf8_valid(text, n))
        return "not valid UTF-8";

    if (text[0] == '[') {
        const char *end = memchr(text, ']', n);

        if (end == NULL)
            return "no closing bracket";
        host = text + 1;
        length = (size_t)(end - host);
        if (!is_v6(host, length))
            return "no IPv6 address between the brackets";
        colon = end + 1;
        if (colon == text + n)
            return "no port";
        if (*colon != ':')
            return "no colon after the bracket";
        target->numeric = true;
    } else {
        colon = memchr(text, ':', n);
        if (colon == NULL)
            return "no port";
        length = (size_t)(colon - text);
        if (length == 0)
            return "no host";
        if (memchr(colon + 1, ':', n - length - 1))
            return "more than one colon (an IPv6 address goes in brackets)";
    }
    if (length > HOST_MAX_BYTES)
        return "the host is longer than any name";
    flaw = read_port(target, colon + 1, (size_t)(text + n - colon - 1));
    if (flaw == NULL)
        target->host = copy_of(host, length);
    return flaw;
}

static struct target *append(struct targets *list, const char *text,
                             size_t length)
{
    struct target *target = need(calloc(1, sizeof(*target)));

    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->items =
            need(realloc(list->items, list->room * sizeof(list->items[0])));
    }
    list->items[list->count++] = target;
    target->text = copy_of(text, length);
    target->length = length;
    target->state = STATE_CANCELLED;
    target->took = -1;
    return target;
}

static void condemn(struct target *target, const char *flaw)
{
    target->reason = flaw;
    if (flaw != NULL)
        target->state = STATE_MALFORMED;
}

struct target *targets_add(struct targets *list, const char *text,
                           size_t length)
{
    struct target *target = append(list, text, length);

    condemn(target, take_apart(target));
    return target;
}

struct target *targets_add_line(struct targets *list, const char *line,
                                size_t length, bool too_long)
{
    struct target *target;
    size_t i;

    while (length > 0 && is_blank(line[0])) {
        line++;
        length--;
    }
    for (i = 0; i < length; i++) {
        if (line[i] == '#' && (i == 0 || is_blank(line[i - 1]))) {
            length = i;
            too_long = false;
        }
    }
    while (length > 0 && is_blank(line[length - 1]))
        length--;
    if (too_long) {
        target = append(list, line, length);
        condemn(target, "longer than a mebibyte, the rest is not kept");
        return target;
    }
    return length > 0 ? targets_add(list, line, length) : NULL;
}

void targets_free(struct targets *list)
{
    size_t i;

    for (i = 0; i < list->count; i++) {
        free(list->items[i]->text);
        free(list->items[i]->host);
        free(list->items[i]->address);
        free(list->items[i]);
    }
    free(list->items);
    memset(list, 0, sizeof(*list));
}

/* Keep a piece of a line, up to the limit. */
static void keep(struct lines *lines, const char *bytes, size_t n)
{
    if (n > LINE_MAX_BYTES - lines->used) {
        n = LINE_MAX_BYTES - lines->used;
        lines->too_long = true;
    }
    if (n == 0)
        return;
    while (lines->room - lines->used < n) {
        lines->room = lines->room ? 2 * lines->room : 256;
        lines->bytes = need(realloc(lines->bytes, lines->room));
    }
    memcpy(lines->bytes + lines->used, bytes, n);
    lines->used += n;
}

static void end_line(struct lines *lines, line_fn fn, void *arg)
{
    const char *line = lines->used > 0 ? lines->bytes : "";
    size_t length = lines->used;

    /* What some editors put before UTF-8. */
    if (++lines->number == 1 && length >= 3 &&
        !memcmp(line, "\xEF\xBB\xBF", 3)) {
        line += 3;
        length -= 3;
    }
    fn(arg, lines->number, line, length, lines->too_long);
    lines->used = 0;
    lines->too_long = false;
}

void lines_feed(struct lines *lines, const char *bytes, size_t n, line_fn fn,
                void *arg)
{
    while (n > 0) {
        const char *newline = memchr(bytes, '\n', n);
        size_t length = newline ? (size_t)(newline - bytes) : n;

        keep(lines, bytes, length);
        if (newline == NULL)
            return;
        end_line(lines, fn, arg);
        bytes += length + 1;
        n -= length + 1;
    }
}

void lines_end(struct lines *lines, line_fn fn, void *arg)
{
    if (lines->used > 0 || lines->too_long)
        end_line(lines, fn, arg);
    free(lines->bytes);
    lines->bytes = NULL;
    lines->used = lines->room = 0;
}
