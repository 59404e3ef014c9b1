/* SPDX-License-Identifier: MIT */
/* panic.h - the end of a process that was misused beyond reporting. */
#ifndef PX_BASE_PANIC_H
#define PX_BASE_PANIC_H

#include <stddef.h>

/* Write one line naming the function, the running fiber and the cause to
 * stderr, and abort. */
_Noreturn void px__panic(const char *function, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Who is running, as text; set by the fiber layer. */
extern void (*px__panic_who)(char *out, size_t size);

/* In a checked build a check word that is not zero aborts: the object was
 * destroyed, or never initialised. destroy spoils the word there. NULL passes:
 * it is refused by a code. Each kind of object has its own PX_CHECK, of this
 * and of whose it is. */
#ifdef PX_CHECKED
#define PX_CHECK_SPOILED 0xdeadc0deu
#define PX_CHECK_WORD(object, function)                                        \
    px__check_word(object, offsetof(__typeof__(*(object)), check), function)
void px__check_word(const void *object, size_t word, const char *function);
#define PX_SPOIL(object) ((object)->check = PX_CHECK_SPOILED)
#define PX_CHECK_THAT(condition, function, ...)                                \
    ((condition) ? (void)0 : px__panic(function, __VA_ARGS__))
#else
#define PX_CHECK_WORD(object, function) ((void)0)
#define PX_SPOIL(object) ((void)0)
#define PX_CHECK_THAT(condition, function, ...) ((void)0)
#endif

#endif
