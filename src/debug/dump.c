/* SPDX-License-Identifier: MIT */
/*
 * dump.c - writes what fibers wait for.
 *
 * This file may read everything and changes nothing. A line is put together in
 * a small buffer and written at once: it may run on a fiber's small stack,
 * where formatting straight to an unbuffered stream would take ten kilobytes.
 */
#include "debug/dump.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include <parataxis/group.h>
#include <parataxis/io.h>
#include <parataxis/semaphore.h>
#include <parataxis/sync_mutex.h>
#include <parataxis/waitgroup.h>

#include "io.h"

/* How far a queue is counted: a report of many waiters must come to an end. */
#define COUNTED 1000

struct text {
    char line[512];
    size_t length;
};

static void add(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* As much as there is room for, but for the end of the line. */
static void add(struct text *text, const char *format, ...)
{
    char *end = text->line + text->length;
    va_list args;

    *end = '\0';
    va_start(args, format);
    (void)vsnprintf(end, sizeof(text->line) - 1 - text->length, format, args);
    va_end(args);
    text->length += strlen(end);
}

static void write_line(struct text *text, FILE *to)
{
    memcpy(text->line + text->length, "\n", sizeof("\n"));
    (void)fputs(text->line, to);
}

static void add_fiber(struct text *text, const px_fiber *fiber)
{
    char name[64];

    px__fiber_describe(fiber, name, sizeof(name));
    add(text, "%s", name);
}

static void add_seconds(struct text *text, px_nsec time)
{
    add(text, "%" PRId64 ".%03d s", time / PX_SEC,
        (int)(time % PX_SEC / PX_MSEC));
}

static const px_fiber *find(const px_loop *loop, px_fid id)
{
    struct px_fiber_cursor cursor = px__fibers_begin(&loop->arena);
    const px_fiber *fiber;

    do
        fiber = px__fibers_next(&cursor);
    while (fiber && fiber->id != id);
    return fiber;
}

/* The record of a mutex's owner, NULL if it has none in this run. */
static const px_fiber *owner_of(const px_loop *loop, const px_mutex *mutex)
{
    if (!mutex->owner || mutex->run != loop->run)
        return NULL;
    return find(loop, mutex->owner - 1);
}

/* How many wait before this one, in its queue. */
static void add_place(struct text *text, const struct px_waiter *waiter)
{
    size_t before = 0;

    for (const struct px_waiter *w = waiter->prev; w && before < COUNTED;
         w = w->prev)
        before++;
    if (before == COUNTED)
        add(text, ", behind more than %d", COUNTED - 1);
    else if (before)
        add(text, ", behind %zu", before);
}

static void add_sleep(struct text *text, const px_fiber *fiber)
{
    if (fiber->waiter.want == PX_FOREVER) {
        add(text, "nothing: it sleeps for ever");
    } else {
        add(text, "the time ");
        add_seconds(text, fiber->waiter.want);
    }
}

static void add_sem(struct text *text, const px_fiber *fiber)
{
    const px_sem *sem = fiber->waits_on;
    int64_t limit = px_sem_limit(sem);

    if (fiber->waiting->kind == PX_WAIT_SEM_AVAILABLE)
        add(text, "semaphore %p: waits for a free permit", (const void *)sem);
    else
        add(text, "semaphore %p: wants %" PRId64, (const void *)sem,
            fiber->waiter.want);
    if (limit == PX_SEM_UNBOUNDED)
        add(text, ", %" PRId64 " free", sem->count);
    else
        add(text, ", %" PRId64 " free of %" PRId64, sem->count, limit);
    if (fiber->waiter.queue == &sem->passed)
        add(text, ", passed over: more than the limit");
    else
        add_place(text, &fiber->waiter);
}

static void add_mutex(struct text *text, const px_fiber *fiber)
{
    const px_mutex *mutex = fiber->waits_on;
    const px_fiber *owner = owner_of(fiber->loop, mutex);

    add(text, "mutex %p, ", (const void *)mutex);
    if (owner) {
        add(text, "held by ");
        add_fiber(text, owner);
        if (owner->state == PX_STATE_DONE)
            add(text, ", which has ended");
    } else if (mutex->owner) {
        add(text, "held since an earlier run");
    } else {
        add(text, "free");
    }
    add_place(text, &fiber->waiter);
}

static void add_await(struct text *text, const px_fiber *fiber)
{
    if (fiber->flags & PX_FIBER_AWAITS_ALL) {
        add(text, "the end of %" PRId64 " fiber%s", fiber->waiter.want,
            fiber->waiter.want == 1 ? "" : "s");
    } else {
        add(text, "the end of ");
        add_fiber(text, fiber->waits_on);
    }
}

static void add_descriptor(struct text *text, const px_fiber *fiber)
{
    int64_t events = fiber->waiter.want;

    add(text, "descriptor %d to be%s%s%s", px__io_number(fiber),
        !(events & (PX_READABLE | PX_WRITABLE)) ? " connected"
        : events & PX_READABLE                  ? " readable"
                                                : "",
        events == (PX_READABLE | PX_WRITABLE) ? " or" : "",
        events & PX_WRITABLE ? " writable" : "");
}

static void add_waitgroup(struct text *text, const px_fiber *fiber)
{
    const px_waitgroup *wg = fiber->waits_on;

    add(text, "waitgroup %p: %" PRId64 " to report", (const void *)wg,
        wg->count);
}

static void add_group(struct text *text, const px_fiber *fiber)
{
    const px_group *group = fiber->waits_on;

    add(text, "group %p: %" PRId64 " child%s to end", (const void *)group,
        group->running, group->running == 1 ? "" : "ren");
}

static void add_group_place(struct text *text, const px_fiber *fiber)
{
    const px_group *group = fiber->waits_on;

    add(text, "group %p: a place, %" PRId64 " of %" PRId64 " taken",
        (const void *)group, group->running, group->limit);
    add_place(text, &fiber->waiter);
}

static void add_signal(struct text *text, const px_fiber *fiber)
{
    (void)fiber;
    add(text, "a signal");
}

static void add_offload(struct text *text, const px_fiber *fiber)
{
    (void)fiber;
    add(text, "a call on another thread");
}

/* A waiter that was taken out of its queue: the object may be gone. */
static bool was_removed(const px_fiber *fiber)
{
    switch (fiber->waiting->kind) {
    case PX_WAIT_SEM:
    case PX_WAIT_SEM_AVAILABLE:
    case PX_WAIT_MUTEX:
    case PX_WAIT_WAITGROUP:
        return !fiber->waiter.queue;
    default:
        return false;
    }
}

static void add_removed(struct text *text, const px_fiber *fiber)
{
    const char *what = fiber->waiting->kind == PX_WAIT_MUTEX ? "mutex"
                       : fiber->waiting->kind == PX_WAIT_WAITGROUP
                           ? "waitgroup"
                           : "semaphore";

    add(text, "%s %p, but was removed from its queue", what, fiber->waits_on);
}

/* What a fiber can be parked on. Whoever yields is ready, not parked. */
static void (*const add_kind[])(struct text *text, const px_fiber *fiber) = {
    [PX_WAIT_SLEEP] = add_sleep,     [PX_WAIT_AWAIT] = add_await,
    [PX_WAIT_SEM] = add_sem,         [PX_WAIT_SEM_AVAILABLE] = add_sem,
    [PX_WAIT_MUTEX] = add_mutex,     [PX_WAIT_WAITGROUP] = add_waitgroup,
    [PX_WAIT_GROUP] = add_group,     [PX_WAIT_GROUP_PLACE] = add_group_place,
    [PX_WAIT_FD] = add_descriptor,   [PX_WAIT_SIGNAL] = add_signal,
    [PX_WAIT_OFFLOAD] = add_offload,
};

static void add_wait(struct text *text, const px_fiber *fiber)
{
    if (was_removed(fiber))
        add_removed(text, fiber);
    else
        add_kind[fiber->waiting->kind](text, fiber);
}

static const char *base_name(const char *path)
{
    const char *name = path;

    for (const char *c = path; *c; c++) {
        if (*c == '/')
            name = c + 1;
    }
    return name;
}

/* A function's name if the loader knows it; else what addr2line needs. */
static void add_site(struct text *text, const void *site)
{
    Dl_info info;

    if (!site)
        return;
    if (!dladdr(site, &info))
        add(text, ", spawned at %p", site);
    else if (info.dli_sname)
        add(text, ", spawned at %s+0x%zx", info.dli_sname,
            (size_t)((const char *)site - (const char *)info.dli_saddr));
    else
        add(text, ", spawned at %s+0x%zx", base_name(info.dli_fname),
            (size_t)((const char *)site - (const char *)info.dli_fbase));
}

/* A line for it. If it has ended, it is one that still holds a mutex. */
static void write_fiber(const px_fiber *fiber, FILE *to)
{
    static const char *const states[] = {
        [PX_STATE_NEW] = "new",         [PX_STATE_READY] = "ready",
        [PX_STATE_RUNNING] = "running", [PX_STATE_PARKED] = "parked",
        [PX_STATE_DONE] = "ended",
    };
    struct text text = {.length = 0};

    add(&text, "  ");
    add_fiber(&text, fiber);
    if (fiber->state == PX_STATE_PARKED) {
        add(&text, " waits for ");
        add_wait(&text, fiber);
        add(&text, ", for ");
        add_seconds(&text, fiber->loop->now - fiber->life->since);
    } else {
        add(&text, " %s", states[fiber->state]);
    }
    if (fiber->state == PX_STATE_DONE)
        add(&text, ", holding %u mutex%s", fiber->locks,
            fiber->locks == 1 ? "" : "es");
    add_site(&text, fiber->life ? fiber->life->site : fiber->site_kept);
    write_line(&text, to);
}

/* Who has the lock that a fiber is parked on, NULL if it is parked on none, or
 * nobody has it. */
static px_fiber *blocker_of(const px_fiber *fiber)
{
    if (fiber->state != PX_STATE_PARKED ||
        fiber->waiting->kind != PX_WAIT_MUTEX || was_removed(fiber))
        return NULL;
    return (px_fiber *)(uintptr_t)owner_of(fiber->loop, fiber->waits_on);
}

static void write_cycle(const px_fiber *first, FILE *to)
{
    const px_fiber *fiber = first;
    struct text text;

    (void)fputs("  cycle: ", to);
    do {
        text.length = 0;
        add_fiber(&text, fiber);
        add(&text, " -> mutex %p -> ", fiber->waits_on);
        (void)fputs(text.line, to);
        fiber = blocker_of(fiber);
    } while (fiber != first);
    text.length = 0;
    add_fiber(&text, first);
    write_line(&text, to);
}

/* One that has ended blocks others, and is blocked by nobody. */
static bool is_alive(const px_fiber *fiber)
{
    return fiber && fiber->state != PX_STATE_DONE;
}

/* Everybody has one blocker at most, so from each fiber there is one way to go.
 * Each walk leaves its sign; coming upon its own is a cycle. */
static void write_cycles(px_fiber *list, FILE *to)
{
    for (px_fiber *start = list; start; start = start->life->mark) {
        px_fiber *fiber = start;

        while (is_alive(fiber) && !fiber->life->seen) {
            fiber->life->seen = start;
            fiber = blocker_of(fiber);
        }
        if (is_alive(fiber) && fiber->life->seen == start)
            write_cycle(fiber, to);
    }
    for (px_fiber *f = list; f; f = f->life->mark)
        f->life->seen = NULL;
}

static void take_apart(px_fiber *list)
{
    while (list) {
        px_fiber *fiber = list;

        list = fiber->life->mark;
        fiber->life->mark = NULL;
    }
}

void px__dump_deadlock(px_loop *loop, FILE *to)
{
    px_fiber *list = px__fibers_alive(&loop->arena);
    struct text text = {.length = 0};
    size_t parked = 0;

    for (const px_fiber *f = list; f; f = f->life->mark)
        parked++; /* as all are that have not ended */
    add(&text,
        "parataxis: deadlock: %zu fiber%s parked, and nothing can wake %s",
        parked, parked == 1 ? " is" : "s are", parked == 1 ? "it" : "them");
    write_line(&text, to);
    for (const px_fiber *f = list; f; f = f->life->mark)
        write_fiber(f, to);
    write_cycles(list, to);
    take_apart(list);
    (void)fflush(to);
}

int px_dump(FILE *to)
{
    px_loop *loop = px__loop;
    struct px_fiber_cursor cursor;
    px_fiber *list;
    int saved = errno;

    if (!to)
        return PX_EINVAL;
    if (!loop)
        return PX_ENOFIBER;
    (void)px__time(loop);
    list = px__fibers_alive(&loop->arena);
    for (const px_fiber *f = list; f; f = f->life->mark)
        write_fiber(f, to);
    write_cycles(list, to);
    take_apart(list);
    cursor = px__fibers_begin(&loop->arena);
    for (const px_fiber *f; (f = px__fibers_next(&cursor));) {
        if (f->state != PX_STATE_DONE || f->locks == 0)
            continue;
        write_fiber(f, to);
    }
    errno = saved;
    return 0;
}
