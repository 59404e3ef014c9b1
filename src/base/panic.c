/* SPDX-License-Identifier: MIT */
/* panic.c - see panic.h. One buffer and one write: the line stays one. */
#include "base/panic.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void (*px__panic_who)(char *out, size_t size);

void px__panic(const char *function, const char *format, ...)
{
    char line[512], who[80] = "off-fiber", cause[320];
    va_list args;
    int length;

    if (px__panic_who)
        px__panic_who(who, sizeof(who));
    va_start(args, format);
    (void)vsnprintf(cause, sizeof(cause), format, args);
    va_end(args);
    length = snprintf(line, sizeof(line), "parataxis: %s: %s: %s\n", function,
                      who, cause);
    if (length > 0) {
        ssize_t written = write(STDERR_FILENO, line, (size_t)length);

        (void)written;
    }
    abort();
}

#ifdef PX_CHECKED
void px__check_word(const void *object, size_t word, const char *function)
{
    const uint32_t *check;

    if (!object)
        return;
    check = (const void *)((const char *)object + word);
    if (*check != 0)
        px__panic(function, "object %p was %s", object,
                  *check == PX_CHECK_SPOILED ? "destroyed"
                                             : "never initialised");
}
#endif
