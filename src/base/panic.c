/* SPDX-License-Identifier: MIT */
/* panic.c - see panic.h. One buffer and one write: the line stays one. */
#include "base/panic.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void (*px__panic_who)(char *out, size_t size);

void px__panic(const char *function, const char *format, ...)
{
    char line[512] = "", who[80] = "off-fiber", cause[320];
    va_list args;
    ssize_t written;

    if (px__panic_who)
        px__panic_who(who, sizeof(who));
    va_start(args, format);
    (void)vsnprintf(cause, sizeof(cause), format, args);
    va_end(args);
    (void)snprintf(line, sizeof(line), "parataxis: %s: %s: %s\n", function, who,
                   cause);
    written = write(STDERR_FILENO, line, strlen(line));
    (void)written; /* nobody is left to tell */
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
