/* SPDX-License-Identifier: MIT */
/*
 * spawn.c - a fiber's life from px_spawn() to the end of its body.
 *
 * Everything that can fail is done in px__spawn(), before anybody can see the
 * fiber: record, guarded stack, name, the copy of its argument. Its first run
 * can not fail. It ends on its own stack, which therefore is given back by
 * whoever spawns or ends next (px__bury).
 */
#include "spawn.h"

#include <string.h>

#include "base/panic.h"
#include "cancel.h"

#define ARG_ALIGNMENT ((size_t)16)

/* Half of a stack that was asked for with `size`. */
static size_t room_for_arg(size_t size)
{
    const px_loop *loop = px__loop;

    if (!loop)
        return (size ? size : PX_STACK_DEFAULT) / 2;
    return px__stack_usable(&loop->stacks,
                            size ? size : loop->options.stack_size) /
           2;
}

int px__birth_from(struct px_birth *birth, const px_spawn_options *options,
                   px_fn fn, void *arg)
{
    memset(birth, 0, sizeof(*birth));
    birth->fn = fn;
    birth->arg = arg;
    if (!fn)
        return PX_EINVAL;
    if (!options)
        return 0;
    for (size_t i = 0; i < 4; i++) {
        if (options->reserved[i])
            return PX_EINVAL;
    }
    if (options->stack_size > PX_STACK_MAXIMUM)
        return PX_EINVAL;
    if (options->arg_size &&
        (!arg || options->arg_size > room_for_arg(options->stack_size)))
        return PX_EINVAL;
    birth->name = options->name;
    birth->stack_size = options->stack_size;
    birth->arg_size = options->arg_size;
    return 0;
}

/* An awaiter's handle is good until its px_await() has returned: it keeps the
 * record until it awaits the next, or ends. */
static void keep_for(px_fiber *awaiter, px_fiber *ended)
{
    px_fiber *before = awaiter->kept;

    if (before) {
        before->flags &= (uint8_t)~PX_FIBER_KEPT;
        px__forget(before);
    }
    awaiter->kept = ended;
    if (ended)
        ended->flags |= PX_FIBER_KEPT;
}

static void end(px_fiber *self, int result)
{
    px_loop *loop = self->loop;
    px_fiber *awaiter = self->awaiter;

    keep_for(self, NULL);
    px__scope_leave_body(self);
    if (self->on_end)
        self->on_end(self, result);
    self->result = result;
    self->state = PX_STATE_DONE;
    loop->alive--;
    loop->ended++;
    if (self->flags & PX_FIBER_MAIN)
        loop->main_result = result;
    if (awaiter && --awaiter->waiter.want == 0) {
        if (!(awaiter->flags & PX_FIBER_AWAITS_ALL)) {
            self->flags |= PX_FIBER_CONSUMED;
            keep_for(awaiter, self);
            if (awaiter->result_out)
                *awaiter->result_out = result;
        }
        (void)px__ready(awaiter, 0);
    }
}

/* Run when the body is unwound: it should have returned instead. */
static void check_returned(const bool *returned)
{
    if (!*returned)
        px__panic("px_run", "the body ended by pthread_exit or a cancelled "
                            "thread, which the other fibers need");
}

void px__spawn_body(void *fiber)
{
    px_fiber *self = fiber;
    bool returned PX_CLEANUP(check_returned) = false;
    px_scope body;
    int result;

    PX_NOTE_ARRIVAL(self);
    px__scope_enter_body(&body, self);
    result = self->fn(self->arg);
    returned = true;
    if (px__self != self)
        px__panic("px_run",
                  "fiber %lld of the parent process returned in a "
                  "forked child",
                  (long long)self->id);
    end(self, result);
    px__depart(self);
}

int px__spawn(px_loop *loop, const struct px_birth *birth, px_fiber **out)
{
    size_t size =
        birth->stack_size ? birth->stack_size : loop->options.stack_size;
    size_t copied =
        (birth->arg_size + ARG_ALIGNMENT - 1) & ~(ARG_ALIGNMENT - 1);
    px_fiber *fiber;
    char *top;

    if (loop->options.max_fibers && loop->alive >= loop->options.max_fibers)
        return PX_ENOMEM;
    px__bury(loop);
    fiber = px__fiber_new(&loop->arena);
    if (!fiber)
        return PX_ENOMEM;
    if (px__stack_acquire(&loop->stacks, size, &fiber->stack) != 0) {
        px__fiber_free(&loop->arena, fiber);
        return PX_ENOMEM;
    }
    if (birth->name && px__fiber_rename(fiber, birth->name) != 0) {
        px__stack_release(&loop->stacks, fiber->stack);
        px__fiber_free(&loop->arena, fiber);
        return PX_ENOMEM;
    }
    fiber->loop = loop;
    fiber->flags = birth->flags;
    fiber->waiter.fiber = fiber;
    fiber->fn = birth->fn;
    fiber->arg = birth->arg;
    fiber->birth_scope = birth->scope ? birth->scope : &loop->root;
    fiber->on_end = birth->on_end;
    fiber->owner = birth->owner;
    fiber->site = birth->site;
    top = fiber->stack.top;
    if (copied) {
        top -= copied;
        fiber->arg = memcpy(top, birth->arg, birth->arg_size);
    }
    fiber->sp =
        px__context_make(top, fiber->stack.low, loop->hooks->body, fiber);
    PX_NOTE_BIRTH(fiber, fiber->stack.low,
                  (size_t)(fiber->stack.top - fiber->stack.low));
    PX_NOTE_NAME(fiber, fiber->name ? fiber->name : "");
    px__enlist(loop, fiber);
    *out = fiber;
    return 0;
}

int px__begin(px_fiber *self, px_fiber *fiber, bool queued)
{
    if (!queued)
        return px__start_eagerly(self, fiber);
    px__enqueue(self->loop, fiber);
    return 0;
}

static inline int spawn(px_fiber **out, const px_spawn_options *options,
                        px_fn fn, void *arg, const void *site)
{
    px_fiber *self = px__self, *fiber;
    struct px_birth birth;
    int err = px__birth_from(&birth, options, fn, arg);

    if (err)
        return err;
    if (!px__is_fiber(self))
        return PX_ENOFIBER;
    birth.flags = out ? 0 : PX_FIBER_DETACHED;
    birth.site = site;
    err = px__spawn(self->loop, &birth, &fiber);
    if (err)
        return err;
    if (out)
        *out = fiber;
    return px__begin(self, fiber, options && options->queued);
}

int px_spawn(px_fiber **out, px_fn fn, void *arg)
{
    return spawn(out, NULL, fn, arg, __builtin_return_address(0));
}

int px_spawn_with(px_fiber **out, const px_spawn_options *options, px_fn fn,
                  void *arg)
{
    return spawn(out, options, fn, arg, __builtin_return_address(0));
}
