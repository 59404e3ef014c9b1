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

    if (!loop) { /* as a run would raise it */
        size = size ? size : PX_STACK_DEFAULT;
        return (size < PX_STACK_MINIMUM ? PX_STACK_MINIMUM : size) / 2;
    }
    return px__stack_usable(&loop->stacks,
                            size ? size : loop->options.stack_size) /
           2;
}

static PX_NOINLINE int check_options(const px_spawn_options *options,
                                     const void *arg)
{
    for (size_t i = 0; i < 4; i++) {
        if (options->reserved[i])
            return PX_EINVAL;
    }
    if (options->stack_size > PX_STACK_MAXIMUM)
        return PX_EINVAL;
    if (options->arg_size &&
        (!arg || options->arg_size > room_for_arg(options->stack_size)))
        return PX_EINVAL;
    return 0;
}

int px__check_birth(const px_spawn_options *options, px_fn fn, void *arg)
{
    if (!fn)
        return PX_EINVAL;
    return options ? check_options(options, arg) : 0;
}

/* An awaiter's handle is good until its px_await() has returned: it keeps the
 * record until it awaits the next, or ends. */
static inline void keep_for(px_fiber *awaiter, px_fiber *ended)
{
    px_fiber *before = awaiter->life->kept;

    if (before) {
        before->flags &= (uint16_t)~PX_FIBER_KEPT;
        px__forget(before);
    }
    awaiter->life->kept = ended;
    if (ended)
        ended->flags |= PX_FIBER_KEPT;
}

static inline void end(px_fiber *self, int result)
{
    px_loop *loop = self->loop;
    px_fiber *awaiter = self->awaiter;

    if (PX_UNLIKELY(self->life->groups != 0))
        px__panic("px_run", "the body returned with an open group");
    if (self->life->kept)
        keep_for(self, NULL);
    px__scope_leave_body(self);
    if (self->life->on_end)
        self->life->on_end(self, result);
    self->verdict = result;
    self->state = PX_STATE_DONE;
    loop->alive--;
    if (awaiter && --awaiter->waiter.want == 0) {
        if (!(awaiter->flags & PX_FIBER_AWAITS_ALL)) {
            self->flags |= PX_FIBER_CONSUMED;
            keep_for(awaiter, self);
            if (awaiter->life->result_out)
                *awaiter->life->result_out = result;
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

static inline int call_body(px_fiber *self)
{
    /* What is unwound does not go on behind it: it has panicked. */
    bool returned PX_CLEANUP(check_returned) = false; /* GCOVR_EXCL_LINE */
    int result = self->life->fn(self->life->arg);

    returned = true;
    return result;
}

void px__spawn_body(void *fiber)
{
    px_fiber *self = fiber;
    int result;

    PX_NOTE_ARRIVAL(self);
    px__scope_enter_body(self);
    result = call_body(self);
    if (PX_UNLIKELY(px__self != self))
        px__panic("px_run",
                  "fiber %lld of the parent process returned in a "
                  "forked child",
                  (long long)self->id);
    end(self, result);
    px__depart(self);
}

/* Undo what px__spawn() has done so far. Returns NULL. */
static PX_COLD px_fiber *unmake(px_loop *loop, px_fiber *fiber)
{
    struct px_stack *stack = &fiber->life->stack;

    px__fiber_part(fiber);
    px__stack_release(&loop->stacks, stack);
    px__fiber_free(&loop->arena, fiber);
    return NULL;
}

/* What only options can ask for: 0 or PX_ENOMEM. */
static PX_NOINLINE int furnish(px_fiber *fiber, const px_spawn_options *options)
{
    size_t copied =
        (options->arg_size + ARG_ALIGNMENT - 1) & ~(ARG_ALIGNMENT - 1);

    if (copied) {
        px__stack_used(&fiber->loop->stacks, fiber->life->stack.low, fiber->sp);
        fiber->sp = (char *)fiber->sp - copied;
        fiber->life->arg =
            memcpy(fiber->sp, fiber->life->arg, options->arg_size);
    }
    return options->name ? px__fiber_rename(fiber, options->name) : 0;
}

/* A record and a stack; NULL without memory. */
static PX_NOINLINE px_fiber *get(px_loop *loop, size_t size)
{
    px_fiber *fiber;
    struct px_stack *stack;

    px__bury(loop);
    fiber = px__fiber_new(&loop->arena);
    if (!fiber)
        return NULL;
    stack = px__stack_acquire(&loop->stacks, size);
    if (!stack) {
        fiber->name_kept = NULL;
        px__fiber_free(&loop->arena, fiber);
        return NULL;
    }
    fiber->life = px__life_of(stack);
    return fiber;
}

px_fiber *px__spawn(px_loop *loop, const px_spawn_options *options, px_fn fn,
                    void *arg, unsigned flags, const void *site)
{
    size_t size = options ? options->stack_size : 0;
    px_fiber *fiber;

    if (PX_UNLIKELY(!px__has_room(loop)))
        return NULL;
    if (size && loop->usual &&
        px__stack_class(&loop->stacks, size) == loop->usual)
        size = 0; /* said in so many words */
    fiber = size ? NULL : px__take_spare(loop);
    if (PX_LIKELY(fiber != NULL)) {
        px__fiber_reborn(fiber, fn, arg, flags | PX_FIBER_USUAL, site);
    } else {
        fiber = get(loop, size ? size : loop->options.stack_size);
        if (PX_UNLIKELY(!fiber))
            return NULL;
        if (!size && loop->usual)
            flags |= PX_FIBER_USUAL;
        px__fiber_born(fiber, loop, fiber->life, fn, arg, flags, site);
    }
    if (PX_UNLIKELY(options) && furnish(fiber, options) != 0)
        return unmake(loop, fiber);
    px__enlist(loop, fiber);
    return fiber;
}

int px__begin(px_fiber *self, px_fiber *fiber, bool queued)
{
    if (!queued)
        return px__start_eagerly(self, fiber);
    px__enqueue(self->loop, fiber);
    return 0;
}

static PX_NOINLINE int spawn(px_fiber **out, const px_spawn_options *options,
                             px_fn fn, void *arg, const void *site)
{
    px_fiber *self = px__self, *fiber;
    int err = px__check_birth(options, fn, arg);

    if (PX_UNLIKELY(err))
        return err;
    if (PX_UNLIKELY(!px__is_fiber(self)))
        return PX_ENOFIBER;
    fiber = px__spawn(self->loop, options, fn, arg, out ? 0 : PX_FIBER_DETACHED,
                      site);
    if (PX_UNLIKELY(!fiber))
        return PX_ENOMEM;
    if (out)
        *out = fiber;
    return px__begin(self, fiber, options && options->queued);
}

PX_KEEPS_SITE PX_HOT int px_spawn(px_fiber **out, px_fn fn, void *arg)
{
    const void *site = __builtin_return_address(0);
    px_fiber *self = px__self, *fiber = NULL;

    if (PX_LIKELY(fn && px__is_fiber(self)))
        fiber = px__spawn_quickly(self->loop, fn, arg,
                                  out ? 0 : PX_FIBER_DETACHED, site);
    if (PX_UNLIKELY(!fiber))
        return spawn(out, NULL, fn, arg, site);
    if (out)
        *out = fiber;
    return px__start_eagerly(self, fiber);
}

PX_KEEPS_SITE int px_spawn_with(px_fiber **out, const px_spawn_options *options,
                                px_fn fn, void *arg)
{
    return spawn(out, options, fn, arg, __builtin_return_address(0));
}
