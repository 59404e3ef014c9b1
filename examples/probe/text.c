/* SPDX-License-Identifier: MIT */
/*
 * text.c - bytes that may hold anything, made fit for a terminal or for JSON.
 *
 * Targets come from anywhere. On a terminal a control byte could do harm, and
 * in JSON it would make the line unreadable, as a byte that is no UTF-8 would.
 * Bad UTF-8 is cut where Unicode recommends it: the longest start of a good
 * sequence counts as one error.
 */
#include "text.h"

#include <stdio.h>
#include <string.h>

size_t utf8_next(const unsigned char *bytes, size_t n, bool *valid)
{
    unsigned char lead = bytes[0], low = 0x80, high = 0xBF;
    size_t length, i;

    *valid = true;
    if (lead < 0x80)
        return 1;
    *valid = false;
    if (lead >= 0xC2 && lead <= 0xDF)
        length = 2;
    else if (lead >= 0xE0 && lead <= 0xEF)
        length = 3;
    else if (lead >= 0xF0 && lead <= 0xF4)
        length = 4;
    else
        return 1;

    /* No overlong forms, no surrogates, nothing above U+10FFFF. */
    if (lead == 0xE0)
        low = 0xA0;
    else if (lead == 0xED)
        high = 0x9F;
    else if (lead == 0xF0)
        low = 0x90;
    else if (lead == 0xF4)
        high = 0x8F;

    for (i = 1; i < length; i++) {
        if (i == n || bytes[i] < low || bytes[i] > high)
            return i;
        low = 0x80;
        high = 0xBF;
    }
    *valid = true;
    return length;
}

bool utf8_valid(const char *bytes, size_t n)
{
    bool valid = true;
    size_t i;

    for (i = 0; valid && i < n;)
        i += utf8_next((const unsigned char *)bytes + i, n - i, &valid);
    return valid;
}

/* The control characters of ASCII, and those of U+0080 to U+009F. */
static bool is_control(const unsigned char *bytes, size_t length)
{
    if (length == 1)
        return bytes[0] < 0x20 || bytes[0] == 0x7F;
    return length == 2 && bytes[0] == 0xC2 && bytes[1] < 0xA0;
}

size_t text_show(char *out, size_t cap, const char *bytes, size_t n)
{
    const unsigned char *from = (const unsigned char *)bytes;
    size_t used = 0, columns = 0, i, k;

    for (i = 0; i < n;) {
        bool valid;
        size_t length = utf8_next(from + i, n - i, &valid);
        bool plain = valid && !is_control(from + i, length);
        size_t room = plain ? length : 4 * length;

        /* "..." must fit behind, unless this is the end */
        if (used + room + (i + length < n ? 3 : 0) >= cap) {
            memcpy(out + used, "...", 3);
            used += 3;
            columns += 3;
            break;
        }
        for (k = 0; k < length; k++) {
            if (plain)
                out[used++] = (char)from[i + k];
            else
                used += (size_t)snprintf(out + used, 5, "\\x%02X", from[i + k]);
        }
        columns += plain ? 1 : room;
        i += length;
    }
    out[used] = '\0';
    return columns;
}

size_t text_json(char *out, const unsigned char *bytes, size_t n, bool valid)
{
    static const char escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    const char *escape;

    if (!valid)
        return (size_t)snprintf(out, 8, "\\uFFFD");
    for (escape = escapes; *escape; escape += 2) {
        if (n == 1 && bytes[0] == (unsigned char)*escape) {
            out[0] = '\\';
            out[1] = escape[1];
            return 2;
        }
    }
    if (n == 1 && is_control(bytes, n))
        return (size_t)snprintf(out, 8, "\\u%04X", bytes[0]);
    memcpy(out, bytes, n);
    return n;
}
