/* SPDX-License-Identifier: MIT */
/*
 * text.h - bytes that may hold anything, made fit for a terminal or for JSON.
 */
#ifndef PROBE_TEXT_H
#define PROBE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* What lies at the head of `n` > 0 bytes: how many bytes there are of a UTF-8
 * sequence that is whole (*valid), or of one that breaks off. */
size_t utf8_next(const unsigned char *bytes, size_t n, bool *valid);
bool utf8_valid(const char *bytes, size_t n);

/* Write the bytes as people read them, with what is not text as \xNN, and an
 * ellipsis where they do not fit `cap` > 4 bytes, the ending NUL included.
 * Returns how many columns it takes up. */
size_t text_show(char *out, size_t cap, const char *bytes, size_t n);

/* Write one sequence of utf8_next() as a part of a JSON string to `out`, which
 * has room for 8 bytes. Returns how many were written. */
size_t text_json(char *out, const unsigned char *bytes, size_t n, bool valid);

#endif
