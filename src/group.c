/* SPDX-License-Identifier: MIT */
/*
 * group.c - a scope with children in it.
 *
 * The group's scope is entered by the opener; the body scopes of the children
 * have it as their outer one, so a cancellation spreads to them by the tree of
 * scopes and needs nothing here.
 *
 * Invariants, whenever no function of this file is running:
 *   G1  `running` counts the children that have not ended, and the places given
 *       to spawners that have not used them yet.
 *   G2  Spawners wait only while `running` has reached the limit.
 *   G3  A closed group (its scope is not entered) has neither.
 *
 * px_group_wait() does not end early: an interruption is what cancels the
 * children, by the same scopes, and their end is what it waits for.
 */
#include <parataxis/group.h>

#include <string.h>

#include "base/panic.h"
#include "cancel.h"
#include "spawn.h"
#include "wait_queue.h"

static bool stay(px_fiber *fiber, int code)
{
    (void)fiber;
    (void)code;
    return false;
}

static const struct px_wait_class wait_class = {
    .kind = PX_WAIT_GROUP,
    .interrupt = stay,
};

static const struct px_wait_class place_class = {
    .kind = PX_WAIT_GROUP_PLACE,
    .interrupt = px__waitq_interrupt,
};

static inline bool is_open(const px_group *group)
{
    return group->scope.fiber != NULL;
}

#ifdef PX_CHECKED
#define PX_CHECK(group, function)                                              \
    (PX_CHECK_WORD(group, function), check_thread(group, function))

/* The opener of an open one lives. */
static void check_thread(const px_group *group, const char *function)
{
    if (group && is_open(group))
        PX_CHECK_THREAD(group->scope.fiber->loop, function, "group", group);
}
#else
#define PX_CHECK(group, function) ((void)0)
#endif

static bool has_place(const px_group *group)
{
    return group->limit == 0 || group->running < group->limit;
}

/* Restore G2: places are given away, so that nobody slips in between. */
static void give_places(px_group *group)
{
    while (group->spawners.head && has_place(group)) {
        group->running++;
        (void)px__waitq_wake(group->spawners.head, 0);
    }
}

/* A child has ended, or a place was not used. */
static void give_back(px_group *group)
{
    group->running--;
    give_places(group);
    if (group->running == 0 && group->waiter) {
        px_fiber *waiter = group->waiter;

        group->waiter = NULL;
        (void)px__ready(waiter, 0);
    }
}

static void adopt(px_group *group, px_fiber *child)
{
    child->life->sibling_prev = NULL;
    child->life->sibling_next = group->scope.children;
    if (child->life->sibling_next)
        child->life->sibling_next->life->sibling_prev = child;
    group->scope.children = child;
}

static void let_go(px_group *group, px_fiber *child)
{
    if (child->life->sibling_prev)
        child->life->sibling_prev->life->sibling_next =
            child->life->sibling_next;
    else
        group->scope.children = child->life->sibling_next;
    if (child->life->sibling_next)
        child->life->sibling_next->life->sibling_prev =
            child->life->sibling_prev;
}

/* Being cut short is no failure of a child's where the group has been. */
static bool is_failure(const px_group *group, int result)
{
    bool cut_short = result == PX_ECANCELED || result == PX_ETIMEDOUT;

    return result < 0 && !(cut_short && group->scope.reach);
}

static void child_ended(px_fiber *self, int result)
{
    px_group *group = self->life->owner;

    let_go(group, self);
    if (is_failure(group, result)) {
        if (group->failure == 0)
            group->failure = result;
        if (!group->scope.status)
            px__scope_fire(&group->scope, PX_ECANCELED);
    }
    give_back(group);
}

int px_group_open(px_group *group)
{
    px_fiber *self = px__self;

    if (!group)
        return PX_EINVAL;
    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    if (px__scope_is_near(&group->scope, self))
        return PX_EINVAL;
    memset(group, 0, sizeof(*group));
    px__scope_push(&group->scope, self, PX_FOREVER, PX_SCOPE_GROUP);
    self->life->groups++;
    return 0;
}

/* Wait for a place in the group and take it. */
static int take_place(px_group *group, px_fiber *self)
{
    int err;

    if (has_place(group)) { /* then nobody waits for one: G2 */
        group->running++;
        return 0;
    }
    err = px__may_park(self);
    if (err)
        return err;
    return px__waitq_wait(&group->spawners, self, &place_class, group, 0);
}

static int spawn(px_group *group, const px_spawn_options *options, px_fn fn,
                 void *arg, const void *site)
{
    px_fiber *self = px__self, *child;
    int err = px__check_birth(options, fn, arg);

    if (err || !group || !is_open(group))
        return PX_EINVAL;
    PX_CHECK(group, "px_group_spawn");
    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    /* Whatever reaches this fiber: it may be shielded. */
    if (group->scope.reach)
        return px__refuse(self, &group->scope);
    err = px__cancellation_point(self);
    if (!err)
        err = take_place(group, self);
    if (err)
        return err;
    /* It may have fired while this fiber waited. */
    err = group->scope.reach;
    child = err ? NULL
                : px__spawn(self->loop, options, fn, arg,
                            PX_FIBER_DETACHED | PX_FIBER_CHILD, site);
    if (!child) {
        give_back(group);
        return err ? err : PX_ENOMEM;
    }
    child->life->body.outer = &group->scope;
    child->life->on_end = child_ended;
    child->life->owner = group;
    adopt(group, child);
    return px__begin(self, child, options && options->queued);
}

PX_KEEPS_SITE int px_group_spawn(px_group *group, px_fn fn, void *arg)
{
    return spawn(group, NULL, fn, arg, __builtin_return_address(0));
}

PX_KEEPS_SITE int px_group_spawn_with(px_group *group,
                                      const px_spawn_options *options, px_fn fn,
                                      void *arg)
{
    return spawn(group, options, fn, arg, __builtin_return_address(0));
}

int px_group_cancel(px_group *group)
{
    PX_CHECK(group, "px_group_cancel");
    if (!group || !is_open(group))
        return PX_EINVAL;
    return px_scope_cancel(&group->scope);
}

int px_group_wait(px_group *group)
{
    px_fiber *self = px__self;
    bool waited = false;
    int outside, code;

    if (!group || !is_open(group))
        return PX_EINVAL;
    PX_CHECK(group, "px_group_wait");
    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    if (group->scope.fiber != self)
        return PX_EPERM;
    if (self->life->scope != &group->scope)
        return PX_EINVAL;
    if (PX_UNLIKELY(self->attention)) /* a deadline cancels them, too */
        waited = px__notice_before_wait(self);
    while (group->running > 0) {
        waited = true;
        group->waiter = self;
        self->waits_on = group;
        (void)px__park(self, &wait_class);
    }
    outside = group->scope.outer->reach;
    if (group->scope.flags & PX_SCOPE_SHIELD)
        outside = 0;
    px__scope_pop(&group->scope, self);
    self->life->groups--;
    code = group->failure ? group->failure : outside;
    if (PX_LIKELY(self->attention == 0))
        return code;
    return px__after_wait(self, waited, outside != 0, code);
}

int px_group_set_limit(px_group *group, int64_t n)
{
    PX_CHECK(group, "px_group_set_limit");
    if (!group || n < 1 || !is_open(group))
        return PX_EINVAL;
    group->limit = n;
    give_places(group);
    return 0;
}

/* px_map_concurrent() */

struct item {
    int (*fn)(size_t i, void *arg);
    void *arg;
    size_t index;
};

static int run_item(void *arg)
{
    const struct item *item = arg;
    int result = item->fn(item->index, item->arg);

    return result < 0 ? result : 0;
}

PX_KEEPS_SITE int px_map_concurrent(size_t n, size_t limit,
                                    int (*fn)(size_t i, void *arg), void *arg)
{
    px_fiber *self = px__self;
    px_spawn_options options = {.arg_size = sizeof(struct item)};
    struct item item = {.fn = fn, .arg = arg};
    px_group group;
    int err;

    if (!fn)
        return PX_EINVAL;
    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    err = px__cancellation_point(self);
    if (err || n == 0)
        return err;
    (void)px_group_open(&group);
    if (limit && limit < (size_t)INT64_MAX)
        group.limit = (int64_t)limit;
    while (!err && item.index < n) {
        err = spawn(&group, &options, run_item, &item,
                    __builtin_return_address(0));
        item.index++;
    }
    /* A spawn that failed is a failure like a child's; one that was refused,
     * because something had fired, is no news. */
    if (err && err != PX_ECANCELED && err != PX_ETIMEDOUT && !group.failure)
        group.failure = err;
    if (err)
        (void)px_group_cancel(&group);
    return px_group_wait(&group);
}
