/* SPDX-License-Identifier: MIT */
/*
 * cancel.c - the tree of scopes.
 *
 * Invariants, whenever user code runs (see cancel.h for the words):
 *   C1  reach and nearest of every entered scope are what its own fields and
 *       its outer scope's reach and nearest say.
 *   C2  A fiber's attention is what its innermost scope's reach and nearest
 *       say.
 *   C3  No fiber is parked that a fired scope reaches, unless its wait does not
 *       end early.
 *   C4  A parked fiber's timer is armed no later than its innermost scope's
 *       nearest.
 *
 * A change to a scope (fired, shielded, a new deadline) breaks them for the
 * fibers inside it: the one that entered it, and the children of groups in it,
 * and of groups in those. spread() restores them: it collects those fibers in
 * a list, outer before inner, recomputes their scopes from the changed one
 * inward, and then interrupts those that are reached, in the order of their
 * ids, and re-arms the others' timers. It recurses nowhere, whatever nests.
 *
 * Deadlines are noticed by whoever looks: the timer of a fiber parked under
 * one, a cancellation point before it parks, and every 64th that does not. That
 * something has fired already keeps nobody from looking.
 */
#include "cancel.h"

#include "base/panic.h"

#define PX_CHECK PX_CHECK_WORD

#define UNPARKED (16 * PX_LOOKS)
#define NEARBY 8 /* scopes */
#define SHORT (512 * PX_USEC)

/* The quick clock is ahead by a few microseconds: of a short timeout that would
 * be more than the 1/64 that is promised. */
px_nsec px__deadline_of(px_loop *loop, px_nsec timeout)
{
    if (timeout == PX_FOREVER)
        return PX_FOREVER;
    return px__clock_add(
        timeout < SHORT ? px__time(loop) : px__time_at_most(loop), timeout);
}

/* The fibers inside `scope`, outer before inner, linked by mark. */
static px_fiber *collect(px_loop *loop, px_scope *scope)
{
    px_fiber *first = NULL, **last = &first;

    if (scope == &loop->root) {
        struct px_fiber_cursor cursor = px__fibers_begin(&loop->arena);

        for (px_fiber *f; (f = px__fibers_next(&cursor));) {
            if (px__is_within(f) && f->life->body.outer == scope) {
                *last = f;
                last = &f->life->mark;
            }
        }
    } else {
        first = scope->fiber;
        last = &first->life->mark;
    }
    *last = NULL;
    for (px_fiber *f = first; f; f = f->life->mark) {
        px_scope *s = f == scope->fiber ? scope : &f->life->body;

        for (; s; s = s->inner) {
            for (px_fiber *c = s->children; c; c = c->life->sibling_next) {
                if (!c->life->scope)
                    continue; /* has not begun: it looks when it does */
                c->life->mark = NULL;
                *last = c;
                last = &c->life->mark;
            }
        }
    }
    return first;
}

/* Restore C1 to C4 after a change to `scope`. */
static void spread(px_loop *loop, px_scope *scope)
{
    px_fiber *list = collect(loop, scope);

    for (px_fiber *f = list; f; f = f->life->mark) {
        for (px_scope *s = f == scope->fiber ? scope : &f->life->body; s;
             s = s->inner)
            px__scope_settle(s);
        px__scope_settle_attention(f);
    }
    if (list->life->mark)
        list = px__fibers_sorted(list);
    while (list) {
        px_fiber *f = list;

        list = f->life->mark;
        f->life->mark = NULL;
        if (f->state != PX_STATE_PARKED)
            continue;
        if (f->life->scope->reach && px__interrupt(f, f->life->scope->reach))
            continue;
        px__timer_arm(f, f->waiting == &px__wait_sleep ? f->waiter.want
                                                       : PX_FOREVER);
    }
}

static px_loop *loop_of(const px_scope *scope)
{
    return scope->fiber ? scope->fiber->loop : px__loop;
}

void px__scope_fire(px_scope *scope, int code)
{
    px_loop *loop = loop_of(scope);

    scope->status = code;
    if (scope == &loop->root)
        scope->reach = code;
    spread(loop, scope);
}

/* Fire every scope around `fiber` that is due by loop->now. Those inside the
 * outermost of them change with it. */
static void fire_due(px_fiber *fiber)
{
    px_scope *outermost = NULL;
    px_nsec now = fiber->loop->now;

    /* What is not due has nothing outside that is; the root never is. */
    for (px_scope *s = fiber->life->scope; s->nearest <= now; s = s->outer) {
        if (s->status || s->deadline > now)
            continue;
        s->status = PX_ETIMEDOUT;
        outermost = s;
    }
    if (outermost)
        spread(fiber->loop, outermost);
}

static bool sleep_interrupt(px_fiber *fiber, int code)
{
    (void)px__ready(fiber, code);
    return true;
}

const struct px_wait_class px__wait_sleep = {.kind = PX_WAIT_SLEEP,
                                             .interrupt = sleep_interrupt};

void px__cancel_on_timer(px_fiber *fiber)
{
    bool sleeps = fiber->waiting == &px__wait_sleep;

    fire_due(fiber);
    if (fiber->state != PX_STATE_PARKED)
        return;
    if (sleeps && fiber->waiter.want <= fiber->loop->now)
        (void)px__ready(fiber, 0);
    else
        px__timer_arm(fiber, sleeps ? fiber->waiter.want : PX_FOREVER);
}

/* Cancellation points. */

/* Every 64th in a row gives way. A success ends the row, but if it did not wait
 * it gave nobody a turn: so there is a bound on those in between, too. */
static int fail_with(px_fiber *self, int code)
{
    self->attention |= PX_LOOK_FAILURES;
    self->life->unparked++;
    if (++self->life->failures < PX_LOOKS && self->life->unparked < UNPARKED)
        return code;
    self->life->failures = 0;
    self->life->unparked = 0;
    return px__requeue(self, code);
}

static int fail(px_fiber *self)
{
    return fail_with(self, self->life->scope->reach);
}

static void notice_deadline(px_fiber *self)
{
    px_nsec nearest = self->life->scope->nearest;

    self->life->looks = 0;
    /* Without a deadline the clock is not even read. */
    if (nearest != PX_FOREVER && px__time_at_most(self->loop) >= nearest &&
        px__time(self->loop) >= nearest)
        fire_due(self);
}

static void look_at_clock(px_fiber *self)
{
    if (++self->life->looks >= PX_LOOKS)
        notice_deadline(self);
}

/* What attention asks for, but for failing. In a fired scope, too: if one
 * further out is due, the code is that one's. */
static void look(px_fiber *self)
{
    if (!(self->attention & PX_LOOK_FIRED))
        self->life->failures = 0;
    look_at_clock(self);
}

PX_COLD int px__look(px_fiber *self)
{
    if (!px__is_fiber(self))
        return 0;
    look(self);
    return self->attention & PX_LOOK_FIRED ? fail(self) : 0;
}

PX_COLD int px__refuse(px_fiber *self, const px_scope *scope)
{
    int code;

    look_at_clock(self);
    code = self->life->scope->reach;
    return fail_with(self, code ? code : scope->reach);
}

/* The others get a turn. */
static void end_row(px_fiber *self)
{
    self->life->failures = 0;
    self->life->unparked = 0;
    self->attention &= (uint8_t)~PX_LOOK_FAILURES;
}

PX_COLD int px__look_before_wait(px_fiber *self)
{
    bool had_fired;

    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    had_fired = self->attention & PX_LOOK_FIRED;
    notice_deadline(self);
    if (had_fired)
        return fail(self);
    end_row(self);
    /* As if it had parked, and the timer had fired at once: the others get
     * their turn, however short the timeouts of a loop are. */
    return self->attention & PX_LOOK_FIRED
               ? px__requeue(self, self->life->scope->reach)
               : 0;
}

PX_COLD bool px__notice_before_wait(px_fiber *self)
{
    bool had_fired = self->attention & PX_LOOK_FIRED;

    notice_deadline(self);
    if (had_fired || !(self->attention & PX_LOOK_FIRED))
        return false;
    (void)px__requeue(self, 0);
    return true;
}

PX_COLD int px__after_wait(px_fiber *self, bool waited, bool fired, int code)
{
    if (waited)
        end_row(self);
    else if (fired)
        return fail_with(self, code);
    else
        self->life->failures = 0;
    return code;
}

int px_check(void)
{
    px_fiber *self = px__self;

    if (PX_LIKELY(self->attention == 0) || !px__is_fiber(self))
        return 0;
    look(self);
    if (!(self->attention & PX_LOOK_FIRED))
        return 0;
    self->attention |= PX_LOOK_FAILURES;
    if (self->life->failures < PX_LOOKS)
        self->life->failures++;
    return self->life->scope->reach;
}

/* Entering and leaving. */

/* One that is entered already would make a ring of the chain. That can not be
 * told from its memory, which need not be initialised; the places where it is
 * likely are looked at. */
static inline bool is_near(const px_scope *scope, const px_fiber *self)
{
    const px_scope *s = self->life->scope;

    for (int i = 0; s && i < NEARBY; i++, s = s->outer) {
        if (s == scope)
            return true;
    }
    return false;
}

bool px__scope_is_near(const px_scope *scope, const px_fiber *self)
{
    return is_near(scope, self);
}

static inline void push(px_scope *scope, px_fiber *self, px_nsec deadline,
                        uint32_t flags)
{
    scope->outer = self->life->scope;
    scope->inner = NULL;
    scope->fiber = self;
    scope->children = NULL;
    scope->deadline = deadline;
    scope->status = 0;
    scope->flags = flags;
    scope->groups = self->life->groups;
    scope->check = 0;
    scope->run = (uint32_t)self->loop->run;
    scope->id = self->id;
    self->life->scope->inner = scope;
    self->life->scope = scope;
    px__scope_settle(scope);
    px__scope_settle_attention(self);
}

void px__scope_push(px_scope *scope, px_fiber *self, px_nsec deadline,
                    uint32_t flags)
{
    push(scope, self, deadline, flags);
}

static inline void pop(px_scope *scope, px_fiber *self)
{
    self->life->scope = scope->outer;
    self->life->scope->inner = NULL;
    scope->fiber = NULL;
    px__scope_settle_attention(self);
}

void px__scope_pop(px_scope *scope, px_fiber *self)
{
    pop(scope, self);
}

/* Whether one that the fiber entered is still in its chain: what is around it
 * is asked, never what is inside, which may be a dead frame's. */
static bool is_linked(const px_scope *scope, const px_fiber *self)
{
    const px_scope *s = scope;

    while (s != &self->life->body && s->outer->inner == s)
        s = s->outer;
    return s == &self->life->body;
}

void px__scope_unwind(px_scope *scope, px_fiber *self, const char *function)
{
    if (self->life->scope != scope && !is_linked(scope, self)) {
        scope->fiber = NULL; /* forgotten, when one around it was left */
        return;
    }
    if (self->life->groups != scope->groups)
        px__panic(function, "it is left with an open group inside");
    px__scope_pop(scope, self);
    scope->inner = NULL; /* what was inside is to find out */
}

static PX_COLD int enter_fired(px_scope *scope, px_fiber *self)
{
    px__scope_push(scope, self, self->loop->now, 0);
    px__scope_fire(scope, PX_ETIMEDOUT);
    return 0;
}

PX_HOT int px_scope_enter(px_scope *scope, px_nsec timeout)
{
    px_fiber *self = px__self;

    if (!scope)
        return PX_EINVAL;
    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    if (is_near(scope, self))
        return PX_EINVAL;
    if (PX_UNLIKELY(timeout <= 0))
        return enter_fired(scope, self);
    push(scope, self, px__deadline_of(self->loop, timeout), 0);
    return 0;
}

int px_scope_enter_until(px_scope *scope, px_nsec deadline)
{
    px_fiber *self = px__self;

    if (!scope)
        return PX_EINVAL;
    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    if (is_near(scope, self))
        return PX_EINVAL;
    px__scope_push(scope, self, deadline, 0);
    if (deadline != PX_FOREVER && px__time(self->loop) >= deadline)
        px__scope_fire(scope, PX_ETIMEDOUT);
    return 0;
}

int px_scope_leave(px_scope *scope)
{
    px_fiber *self = px__self;

    if (!scope)
        return PX_EINVAL;
    PX_CHECK(scope, "px_scope_leave");
    if (!scope->fiber)
        return PX_EINVAL;
    if (scope->fiber != self)
        return PX_EPERM;
    if (scope != self->life->scope ||
        scope->flags & (PX_SCOPE_GROUP | PX_SCOPE_BODY))
        return PX_EINVAL;
    pop(scope, self);
    return scope->status;
}

/* Whether a scope is entered: in the chain of the fiber that entered it. A
 * scope that was forgotten, in this run or an earlier one, still names a fiber,
 * whose record may be another's now; but entered scopes only are in a chain. */
static bool is_entered(const px_scope *scope)
{
    const px_scope *s;

    if (!scope->fiber || !px__loop || scope->run != (uint32_t)px__loop->run)
        return false;
    if (!scope->fiber->life)
        return false;
    s = scope->fiber->life->scope;
    while (s && s != scope)
        s = s->outer;
    return s != NULL;
}

int px_scope_cancel(px_scope *scope)
{
    PX_CHECK(scope, "px_scope_cancel");
    if (!scope)
        return PX_EINVAL;
    if (!scope->status && is_entered(scope))
        px__scope_fire(scope, PX_ECANCELED);
    return 0;
}

int px_scope_set_deadline(px_scope *scope, px_nsec deadline)
{
    px_loop *loop;

    if (!scope)
        return PX_EINVAL;
    PX_CHECK(scope, "px_scope_set_deadline");
    if (scope->status || !is_entered(scope))
        return 0;
    loop = scope->fiber->loop;
    scope->deadline = deadline;
    if (deadline != PX_FOREVER && px__time(loop) >= deadline)
        px__scope_fire(scope, PX_ETIMEDOUT);
    else
        spread(loop, scope);
    return 0;
}

px_nsec px_scope_remaining(const px_scope *scope)
{
    px_nsec now, left;

    if (!scope)
        return 0;
    PX_CHECK(scope, "px_scope_remaining");
    if (scope->deadline == PX_FOREVER)
        return PX_FOREVER;
    /* By the run's clock off a fiber, too: px_now() is not. */
    now = px__loop ? px__time(px__loop) : px__clock_precise();
    left = px__clock_add(scope->deadline, -now);
    return left > 0 ? left : 0;
}

int px_scope_status(const px_scope *scope)
{
    if (!scope)
        return PX_EINVAL;
    PX_CHECK(scope, "px_scope_status");
    return scope->status;
}

int px_scope_shield(px_scope *scope, bool on)
{
    if (!scope)
        return PX_EINVAL;
    PX_CHECK(scope, "px_scope_shield");
    if (!is_entered(scope))
        return PX_EINVAL;
    if (on)
        scope->flags |= PX_SCOPE_SHIELD;
    else
        scope->flags &= ~(uint32_t)PX_SCOPE_SHIELD;
    spread(scope->fiber->loop, scope);
    return 0;
}

px_nsec px_deadline(void)
{
    px_fiber *self = px__self;
    px_nsec nearest = PX_FOREVER;

    for (const px_scope *s = self->life->scope; s; s = s->outer) {
        if (s->deadline < nearest)
            nearest = s->deadline;
        if (s->flags & PX_SCOPE_SHIELD)
            break;
    }
    return nearest;
}

int px_stop(void)
{
    px_fiber *self = px__self;

    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    if (!self->loop->root.status)
        px__scope_fire(&self->loop->root, PX_ECANCELED);
    return 0;
}

int px_cancel(px_fiber *fiber)
{
    if (!fiber)
        return PX_EINVAL;
    PX_CHECK_HANDLE(fiber, "px_cancel");
    if (fiber->state >= PX_STATE_DONE)
        return 0;
    if (!px__is_within(fiber))
        fiber->flags |= PX_FIBER_CANCEL_EARLY;
    else if (!fiber->life->body.status)
        px__scope_fire(&fiber->life->body, PX_ECANCELED);
    return 0;
}
