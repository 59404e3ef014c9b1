/* SPDX-License-Identifier: MIT */
/*
 * px_death.h - the end of a process by misuse: how it died, and what it said.
 */
#ifndef PX_DEATH_H
#define PX_DEATH_H

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "px_scale.h"
#include "px_test.h"

/* What the last child wrote to its standard error. */
static char death_note[8192];

struct death {
    void (*fn)(void *);
    void *arg;
};

static inline void die_without_core(void *arg)
{
    const struct death *death = arg;
    const struct rlimit none = {0, 0};

    (void)setrlimit(RLIMIT_CORE, &none);
    death->fn(death->arg);
}

/* Assert that a child process that calls `fn(arg)` aborts. */
static inline void expect_abort(void (*fn)(void *), void *arg)
{
    struct death death = {fn, arg};
    int status =
        in_child(die_without_core, &death, death_note, sizeof(death_note));

    forget_emulator(death_note);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        print_message("status %x, stderr: %s\n", (unsigned)status, death_note);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

/* Assert that its note has the text. */
static inline void expect_said(const char *text)
{
    if (!strstr(death_note, text))
        print_message("no \"%s\" in: %s\n", text, death_note);
    assert_non_null(strstr(death_note, text));
}

/* Assert that it is one line; a sanitizer may add its own. */
static inline void expect_one_line(void)
{
    const char *end = strchr(death_note, '\n');

    assert_non_null(end);
    if (!PX_UNDER_ASAN && !PX_UNDER_TSAN)
        assert_string_equal(end, "\n");
}

#endif
