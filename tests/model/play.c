/* SPDX-License-Identifier: MIT */
/*
 * play.c - see play.h.
 *
 * The letters of calls, with the number that follows:
 *
 *   d N  px_sem_down_n(N)            D N  the same within a timeout of a tick
 *   t N  px_sem_try_down_n(N)        w    px_sem_wait_available
 *   u N  px_sem_up_n(N)              a N  px_sem_adjust(N)
 *   l N  px_sem_set_limit(N)         k    px_sem_close
 *   r N  px_sem_remove_waiter: the fiber N further on
 *   L    px_mutex_lock               M N  the same within N ticks
 *   T    px_mutex_try_lock           U    px_mutex_unlock
 *   A N  px_waitgroup_add(N)         N    px_waitgroup_done
 *   W    px_waitgroup_wait           V N  the same within N ticks
 *   e N  px_scope_enter(N ticks; 9: forever)      x    px_scope_leave
 *   s    px_scope_shield of the innermost, on or off
 *   C N  px_scope_cancel of the innermost of the fiber N further on
 *   O N  px_scope_cancel of its outermost, after its body's
 *   c N  px_cancel of the fiber N further on
 *   z N  px_sleep(N ticks)           S N  the same behind a shield
 *   y    px_yield                    p    px_check
 *   g    px_group_open               i N  px_group_set_limit(N)
 *                                    I N  the same for the next fiber's
 *   G N  px_group_spawn: a child of kind N (see child_body)
 *   q    px_group_wait               h N  px_group_cancel: of the fiber N on
 */
#include "play.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "scheduler.h"

#define TICK INT64_C(1000)

struct tally tally = {.trace = UINT64_C(0xcbf29ce484222325)};
bool play_aloud;

static struct {
    struct ref ref;
    const struct program *program;
    struct chooser *chooser;
    px_fiber *driver;
    px_fiber *fibers[REF_ALL]; /* those of the program, then their children */
    px_scope scopes[REF_ALL][REF_SCOPES];
    px_group groups[REF_ALL];
    int at[REF_ALL];       /* the call that comes next */
    int64_t held[REF_ALL]; /* permits */
    bool ticked;           /* the timers that were due have fired */
    px_sem sem;
    px_mutex mutex;
    px_waitgroup wg;
} world;

static _Noreturn void fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

static void fail(const char *format, ...)
{
    char text[1024];
    va_list arguments;

    program_print(world.program, text, sizeof(text));
    (void)fflush(stdout);
    (void)fprintf(stderr, "model: ");
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "\n  program %s\n  choices ", text);
    for (size_t i = 0; i < world.chooser->at; i++)
        (void)fprintf(stderr, "%c", '0' + world.chooser->path[i]);
    (void)fprintf(stderr, "\n");
#if defined(PX_FUZZING)
    abort();
#else
    _exit(1);
#endif
}

static void note_trace(int64_t value)
{
    for (int i = 0; i < 8; i++) {
        tally.trace ^= (uint64_t)value >> (8 * i) & 0xff;
        tally.trace *= UINT64_C(0x100000001b3);
    }
}

static int index_of(const px_fiber *fiber)
{
    for (int f = 0; f < world.ref.n; f++) {
        if (world.fibers[f] == fiber && world.ref.fibers[f].state != REF_DONE)
            return f;
    }
    return -1;
}

/* -- the library beside its model -- */

static void same(int f, const char *what, int64_t is, int64_t should)
{
    if (is != should)
        fail("fiber %d: %s is %lld, and should be %lld", f, what, (long long)is,
             (long long)should);
}

static void compare_fiber(int f)
{
    static const uint8_t states[] = {PX_STATE_RUNNING, PX_STATE_READY,
                                     PX_STATE_PARKED, PX_STATE_DONE};
    const struct ref_fiber *model = &world.ref.fibers[f];
    const px_fiber *fiber = world.fibers[f];
    bool armed = fiber->flags & PX_FIBER_TIMED;

    if (model->state == REF_DONE && model->parent >= 0)
        return; /* its record may be another's */
    same(f, "its state", fiber->state, states[model->state]);
    same(f, "whether its timer is armed", armed,
         model->state == REF_PARKED && model->timer != PX_FOREVER);
    if (armed)
        same(f, "when its timer is due", fiber->life->timer.when, model->timer);
    if (model->state == REF_READY && model->on != REF_NOTHING)
        same(f, "what its call will return", fiber->verdict, model->verdict);
    if (model->state == REF_DONE)
        return;
    same(f, "what reaches it", fiber->life->scope->reach,
         ref_reach(&world.ref, f));
    same(f, "its nearest deadline", fiber->life->scope->nearest,
         ref_nearest(&world.ref, f));
    same(f, "whether it has to look closer",
         (fiber->attention & PX_LOOK_FIRED) != 0,
         ref_reach(&world.ref, f) != 0);
}

/* Links, both ways; who is in the queue is parked. */
static void check_queue(const px_waitq *queue, const char *what)
{
    const struct px_waiter *last = NULL;

    for (const struct px_waiter *w = queue->head; w; w = w->next) {
        if (w->prev != last || w->queue != queue)
            fail("the queue of the %s is torn", what);
        if (px__waiter_fiber(w)->state != PX_STATE_PARKED)
            fail("who waits for the %s is not parked", what);
        last = w;
    }
    if (queue->tail != last)
        fail("the queue of the %s has another end", what);
}

static void compare_ids(const px_fid *ids, size_t n, uint32_t kinds,
                        const char *what)
{
    uint64_t place = 0;

    for (size_t i = 0;; i++) {
        int next = -1;

        for (int on = 0; on <= REF_WAITGROUP; on++) {
            int f = kinds & 1u << on
                        ? ref_queued(&world.ref, (enum ref_wait)on, place)
                        : -1;

            if (f >= 0 && (next < 0 || world.ref.fibers[f].place <
                                           world.ref.fibers[next].place))
                next = f;
        }
        if (next < 0 || i >= n) {
            if (next >= 0 || i < n)
                fail("%zu wait for the %s: not so many", n, what);
            return;
        }
        if (ids[i] != world.fibers[next]->id)
            fail("number %zu in the queue of the %s should be fiber %d", i,
                 what, next);
        place = world.ref.fibers[next].place;
    }
}

static void compare_objects(void)
{
    px_fid ids[REF_ALL];
    px_fid owner = px_mutex_owner(&world.mutex);
    size_t n;

    same(-1, "the count", px_sem_count(&world.sem), world.ref.count);
    same(-1, "the limit", px_sem_limit(&world.sem),
         world.ref.bounded ? world.ref.limit : PX_SEM_UNBOUNDED);
    n = px_sem_waiter_ids(&world.sem, ids, REF_ALL);
    compare_ids(ids, n, 1u << REF_SEM | 1u << REF_AVAILABLE, "semaphore");
    check_queue(&world.sem.waiters, "semaphore");
    check_queue(&world.sem.passed, "semaphore, passed over,");
    same(-1, "the owner", owner,
         world.ref.owner < 0 ? PX_NO_FIBER : world.fibers[world.ref.owner]->id);
    n = px_mutex_waiter_ids(&world.mutex, ids, REF_ALL);
    compare_ids(ids, n, 1u << REF_MUTEX, "mutex");
    check_queue(&world.mutex.waiters, "mutex");
    same(-1, "the waitgroup's count", px_waitgroup_count(&world.wg),
         world.ref.members);
    n = px_waitgroup_waiter_ids(&world.wg, ids, REF_ALL);
    compare_ids(ids, n, 1u << REF_WAITGROUP, "waitgroup");
    check_queue(&world.wg.waiters, "waitgroup");
}

static void compare_group(int g)
{
    const struct ref_fiber *model = &world.ref.fibers[g];
    const px_group *group = &world.groups[g];
    const struct px_waiter *w = group->spawners.head;

    same(g, "whether its group is open", group->scope.fiber != NULL,
         model->group != 0);
    check_queue(&group->spawners, "group");
    if (!model->group)
        return;
    same(g, "how many its group counts", group->running, model->running);
    same(g, "its group's limit", group->limit, model->most);
    same(g, "its group's failure", group->failure, model->failure);
    for (int f = ref_queued(&world.ref, REF_PLACE, 0); f >= 0;
         f = ref_queued(&world.ref, REF_PLACE, world.ref.fibers[f].place)) {
        if (world.ref.fibers[f].want != g)
            continue;
        if (!w || px__waiter_fiber(w) != world.fibers[f])
            fail("fiber %d does not wait for a place in its turn", f);
        w = w->next;
    }
    if (w)
        fail("somebody waits for a place in the group of fiber %d", g);
}

/* Those that are ready, in the order in which they became so. */
static void compare_ready(px_fiber *const *ready, const int *who, size_t n)
{
    uint64_t last = 0;

    for (size_t i = 0; i < n; i++) {
        const struct ref_fiber *model = &world.ref.fibers[who[i]];

        if (ready[i]->state != PX_STATE_READY || model->state != REF_READY)
            fail("fiber %d is in the run queue, and not ready", who[i]);
        if (model->since < last)
            fail("fiber %d is ready before its turn", who[i]);
        last = model->since;
    }
}

static void compare(const px_loop *loop)
{
    const struct px_heap_node *top = px__heap_top(&loop->timers);

    for (int f = 0; f < world.ref.n; f++)
        compare_fiber(f);
    for (int f = 0; f < world.program->fibers; f++)
        compare_group(f);
    compare_objects();
    same(-1, "the next timer", top ? top->when : PX_FOREVER,
         ref_next_timer(&world.ref));
}

/* -- the state, as far as the rest depends on it -- */

static uint64_t mixed(uint64_t sum, int64_t value)
{
    sum ^= (uint64_t)value;
    sum *= UINT64_C(0x9fb21c651e98df25);
    return sum ^ (sum >> 29);
}

static int64_t from_now(int64_t when)
{
    return when == PX_FOREVER ? -1 : when - world.ref.now;
}

static uint64_t fiber_state(uint64_t sum, int f)
{
    const struct ref_fiber *a = &world.ref.fibers[f];
    int before = 0, sooner = 0;

    for (int i = 0; i < world.ref.n; i++) {
        const struct ref_fiber *b = &world.ref.fibers[i];

        if (b->state != REF_PARKED)
            continue;
        before += b->place < a->place;
        sooner += b->armed < a->armed;
    }
    sum =
        mixed(sum, (int64_t)a->state * 1024 + world.at[f] * 8 + (int64_t)a->on);
    if (a->state == REF_READY)
        sum = mixed(sum, a->verdict);
    if (a->state == REF_PARKED) {
        sum = mixed(sum, a->on == REF_SLEEP ? from_now(a->want) : a->want);
        sum = mixed(sum, before * 16 + sooner + 256 * a->queued);
        sum = mixed(sum, from_now(a->timer));
    }
    for (int s = 0; s < a->depth; s++) {
        sum = mixed(sum, a->scopes[s].status * 2 + a->scopes[s].shield);
        sum = mixed(sum, from_now(a->scopes[s].deadline));
    }
    return mixed(sum, world.held[f]);
}

static uint64_t world_state(void)
{
    uint64_t sum = 1;

    for (int f = 0; f < world.ref.n; f++)
        sum = fiber_state(sum, f);
    sum = mixed(sum, world.ref.count);
    sum = mixed(sum, world.ref.limit * 2 + world.ref.closed);
    sum = mixed(sum, world.ref.owner);
    return mixed(sum, world.ref.members);
}

/* -- who is next -- */

size_t play_pick(px_loop *loop, px_fiber *const *ready, size_t n)
{
    px_fiber *others[REF_ALL];
    int who[REF_ALL + 1];
    size_t driver = n, count = 0, chosen, timers;

    tally.choices++;
    if (!world.driver) /* it is about to begin */
        return 0;
    if (world.ticked)
        ref_time(&world.ref, loop->now);
    world.ticked = false;
    loop->countdown = 1 << 30; /* timers fire when that is chosen */
    for (size_t i = 0; i < n; i++) {
        if (ready[i] == world.driver) {
            driver = i;
            continue;
        }
        who[count] = index_of(ready[i]);
        others[count++] = ready[i];
    }
    compare_ready(others, who, count);
    compare(loop);
    timers = !px__heap_is_empty(&loop->timers);
    who[count] = -1;
    if (count + timers == 0)
        return driver;
    chosen = count + timers > 1
                 ? choose(world.chooser, count + timers, who, world_state)
                 : 0;
    world.ticked = chosen == count;
    if (world.ticked)
        return n;
    ref_resume(&world.ref, who[chosen]);
    return chosen < driver ? chosen : chosen + 1;
}

/* Between two calls: whoever is chosen goes on. */
static void hand_over(int f)
{
    ref_ready(&world.ref, f, 0);
    px__seam_yield(world.fibers[f]);
}

/* -- the calls -- */

/* A call has returned. It may have let the others run, and there were none. */
static void returned(int f, int code)
{
    struct ref_fiber *model = &world.ref.fibers[f];

    if (model->state == REF_READY)
        ref_resume(&world.ref, f);
    if (model->state == REF_PARKED)
        fail("fiber %d: its call returned %d, and should have waited", f, code);
    same(f, "what its call returned", code, model->verdict);
}

/* One that never waits. */
static int at_once(int f, int code, int should)
{
    same(f, "what its call returned", code, should);
    return code;
}

static int down(int f, int64_t n)
{
    int code;

    ref_sem_down(&world.ref, f, n, true);
    code = px_sem_down_n(&world.sem, n);
    returned(f, code);
    if (code == 0)
        world.held[f] += n;
    return code;
}

static int lock(int f, int64_t n)
{
    int code;

    (void)n;
    ref_mutex_lock(&world.ref, f);
    code = px_mutex_lock(&world.mutex);
    returned(f, code);
    return code;
}

static int wait_for_group(int f, int64_t n)
{
    int code;

    (void)n;
    ref_waitgroup_wait(&world.ref, f);
    code = px_waitgroup_wait(&world.wg);
    returned(f, code);
    return code;
}

static px_scope *scope_at(int f, int s)
{
    return s == world.ref.fibers[f].group ? &world.groups[f].scope
                                          : &world.scopes[f][s];
}

static int enter(int f, int64_t ticks)
{
    int depth = world.ref.fibers[f].depth;
    int64_t timeout = ticks == 9 ? PX_FOREVER : ticks * TICK;

    if (depth == REF_SCOPES)
        return 0;
    ref_enter(&world.ref, f, timeout);
    return at_once(f, px_scope_enter(&world.scopes[f][depth], timeout), 0);
}

static int leave(int f)
{
    int depth = world.ref.fibers[f].depth;

    if (depth == 1)
        return 0;
    return at_once(f, px_scope_leave(scope_at(f, depth - 1)),
                   ref_leave(&world.ref, f));
}

static int within(int f, int64_t ticks, int (*call)(int f, int64_t n),
                  int64_t n)
{
    int code;

    if (world.ref.fibers[f].depth == REF_SCOPES)
        return 0;
    (void)enter(f, ticks);
    code = call(f, n);
    (void)leave(f);
    return code;
}

static int shield(int f)
{
    int s = world.ref.fibers[f].depth - 1;
    bool on = !world.ref.fibers[f].scopes[s].shield;

    if (s == 0)
        return 0;
    ref_shield(&world.ref, f, s, on);
    return at_once(f, px_scope_shield(scope_at(f, s), on), 0);
}

static int cancel_scope(int f, int s)
{
    if (s < 1 || s >= world.ref.fibers[f].depth)
        return 0;
    ref_fire(&world.ref, f, s, PX_ECANCELED);
    return at_once(f, px_scope_cancel(scope_at(f, s)), 0);
}

static int cancel(int f)
{
    ref_fire(&world.ref, f, 0, PX_ECANCELED);
    return at_once(f, px_cancel(world.fibers[f]), 0);
}

static int remove_waiter(int f)
{
    struct ref_fiber *model = &world.ref.fibers[f];
    bool queued = model->state == REF_PARKED && model->queued &&
                  (model->on == REF_SEM || model->on == REF_AVAILABLE);
    size_t removed = px_sem_remove_waiter(&world.sem, world.fibers[f]->id);

    if (queued) {
        model->queued = false;
        ref_sem_serve(&world.ref);
    }
    return at_once(f, (int)removed, queued);
}

static int available(int f)
{
    int code;

    ref_sem_down(&world.ref, f, 1, false);
    code = px_sem_wait_available(&world.sem);
    returned(f, code);
    return code;
}

static int sleep_for(int f, int64_t ticks)
{
    int code;

    ref_sleep(&world.ref, f, ticks * TICK);
    code = px_sleep(ticks * TICK);
    returned(f, code);
    return code;
}

static int sleep_shielded(int f, int64_t ticks)
{
    (void)shield(f);
    return sleep_for(f, ticks);
}

static int yield(int f)
{
    int code;

    ref_yield(&world.ref, f);
    code = px_yield();
    returned(f, code);
    return code;
}

static int check(int f)
{
    (void)ref_point(&world.ref, f);
    return at_once(f, px_check(), world.ref.fibers[f].verdict);
}

static int try_down(int f, int64_t n)
{
    int should = ref_sem_try(&world.ref, n);
    int code = at_once(f, px_sem_try_down_n(&world.sem, n), should);

    if (code == 0)
        world.held[f] += n;
    return code;
}

static int up(int f, int64_t n)
{
    int should = ref_sem_up(&world.ref, n);
    int code = at_once(f, px_sem_up_n(&world.sem, n), should);

    if (code == 0)
        world.held[f] -= n;
    return code;
}

static int close_sem(int f)
{
    ref_sem_close(&world.ref);
    return at_once(f, px_sem_close(&world.sem), 0);
}

/* -- groups -- */

static int spawn_child(int f, int g, int kind);

/* What children do, by kind. */
static int child_of_kind(int f, int kind)
{
    switch (kind) {
    case 1:
        return sleep_for(f, 1);
    case 2: /* fails, and is not asked why */
        (void)sleep_for(f, 1);
        return -77;
    case 3:
        return down(f, 1) ? PX_EBUSY : up(f, 1);
    case 4: /* takes its time */
        (void)sleep_for(f, 3);
        return 0;
    case 5:
        return spawn_child(f, world.ref.fibers[f].parent, 1);
    case 6: /* times out on its own account */
        return within(f, 0, sleep_for, 1);
    default:
        return 0;
    }
}

static int child_body(void *arg)
{
    int f = world.ref.n - 1, code;

    (void)arg;
    world.fibers[f] = px_self();
    code = child_of_kind(f, world.ref.fibers[f].kind);
    note_trace(code);
    ref_group_ended(&world.ref, f, code);
    return code;
}

/* How many children there are, or may come to be. */
static int expected(void)
{
    int n = world.ref.n;

    for (int f = 0; f < world.ref.n; f++)
        n += world.ref.fibers[f].on == REF_PLACE;
    return n;
}

static int spawn_child(int f, int g, int kind)
{
    int code;

    if (!world.ref.fibers[g].group || expected() >= REF_ALL)
        return 0;
    ref_group_spawn(&world.ref, f, g, kind);
    code = px_group_spawn(&world.groups[g], child_body, NULL);
    returned(f, code);
    return code;
}

static int open_group(int f)
{
    struct ref_fiber *model = &world.ref.fibers[f];

    if (model->group || model->depth == REF_SCOPES)
        return 0;
    ref_group_open(&world.ref, f);
    return at_once(f, px_group_open(&world.groups[f]), 0);
}

static int wait_for_children(int f)
{
    int code;

    ref_group_wait(&world.ref, f);
    code = px_group_wait(&world.groups[f]);
    returned(f, code);
    return code;
}

static int cancel_group(int f)
{
    int group = world.ref.fibers[f].group;

    if (group)
        ref_fire(&world.ref, f, group, PX_ECANCELED);
    return at_once(f, px_group_cancel(&world.groups[f]), group ? 0 : PX_EINVAL);
}

static int other(int f, int n)
{
    int fibers = world.program->fibers;

    return (f + n + fibers) % fibers;
}

/* Each statement makes the call of the model first. */
static int perform(int f, char what, int n)
{
    struct ref *ref = &world.ref;
    int should;

    switch (what) {
    case 'd':
        return down(f, n);
    case 'D':
        return within(f, 1, down, n);
    case 't':
        return try_down(f, n);
    case 'w':
        return available(f);
    case 'u':
        return up(f, n);
    case 'a':
        should = ref_sem_add(ref, n);
        return at_once(f, px_sem_adjust(&world.sem, n), should);
    case 'l':
        should = ref_sem_set_limit(ref, n);
        return at_once(f, px_sem_set_limit(&world.sem, n), should);
    case 'k':
        return close_sem(f);
    case 'r':
        return remove_waiter(other(f, n));
    case 'L':
        return lock(f, 0);
    case 'M':
        return within(f, n, lock, 0);
    case 'T':
        should = ref_mutex_try(ref, f);
        return at_once(f, px_mutex_try_lock(&world.mutex), should);
    case 'U':
        should = ref_mutex_unlock(ref, f);
        return at_once(f, px_mutex_unlock(&world.mutex), should);
    case 'A':
        should = ref_waitgroup_add(ref, n);
        return at_once(f, px_waitgroup_add(&world.wg, n), should);
    case 'N':
        should = ref_waitgroup_add(ref, -1);
        return at_once(f, px_waitgroup_done(&world.wg), should);
    case 'W':
        return wait_for_group(f, 0);
    case 'V':
        return within(f, n, wait_for_group, 0);
    case 'e':
        return enter(f, n);
    case 'x':
        return leave(f);
    case 's':
        return shield(f);
    case 'C':
        f = other(f, n);
        return cancel_scope(f, ref->fibers[f].depth - 1);
    case 'O':
        return cancel_scope(other(f, n), 1);
    case 'c':
        return cancel(other(f, n));
    case 'z':
        return sleep_for(f, n);
    case 'S':
        return within(f, 9, sleep_shielded, n);
    case 'g':
        return open_group(f);
    case 'G':
        return spawn_child(f, f, n);
    case 'q':
        return wait_for_children(f);
    case 'h':
        return cancel_group(other(f, n));
    case 'I':
        f = other(f, 1);
        /* fall through */
    case 'i':
        should = ref_group_limit(ref, f, n);
        return at_once(f, px_group_set_limit(&world.groups[f], n), should);
    case 'y':
        return yield(f);
    case 'p':
        return check(f);
    default:
        fail("no such call: %c", what);
    }
}

/* Leave nothing behind but what was done to the objects on purpose. */
static void tidy_up(int f)
{
    while (world.ref.fibers[f].depth > 1) {
        if (world.ref.fibers[f].group == world.ref.fibers[f].depth - 1)
            (void)wait_for_children(f);
        else
            (void)leave(f);
    }
    if (world.ref.owner == f)
        (void)perform(f, 'U', 0);
    if (world.held[f] > 0 && !world.ref.bounded)
        (void)up(f, world.held[f]);
}

static int body(void *number)
{
    int f = (int)(intptr_t)number;
    const struct program *program = world.program;

    world.fibers[f] = px_self();
    hand_over(f);
    for (; world.at[f] < program->lengths[f]; hand_over(f)) {
        struct call call = program->calls[f][world.at[f]];
        int code;

        world.at[f]++;
        code = perform(f, call.what, call.n);
        tally.calls++;
        note_trace((int64_t)f << 32 | (int64_t)call.what << 16 | world.at[f]);
        note_trace(code);
        note_trace(world.ref.now);
        if (play_aloud)
            (void)printf("%6lld  fiber %d  %c%d  %d\n",
                         (long long)(world.ref.now / TICK), f, call.what,
                         call.n, code);
    }
    tidy_up(f);
    world.ref.fibers[f].state = REF_DONE;
    return 0;
}

/* -- a path -- */

static bool all_done(void)
{
    for (int f = 0; f < world.ref.n; f++) {
        if (world.ref.fibers[f].state != REF_DONE)
            return false;
    }
    return true;
}

/* Nobody can go on. Holders have let go, so whoever still waits needs what the
 * program never gave: with that, all of them have to come to an end. */
static void relieve(void)
{
    struct ref *ref = &world.ref;
    int should;

    if (ref->bounded) {
        should = ref_sem_set_limit(ref, 100);
        (void)at_once(-1, px_sem_set_limit(&world.sem, 100), should);
    }
    if (ref->count < 50) {
        should = ref_sem_add(ref, 50 - ref->count);
        (void)at_once(-1,
                      px_sem_adjust(&world.sem, 50 - px_sem_count(&world.sem)),
                      should);
    }
    if (ref->members > 0) {
        should = ref_waitgroup_add(ref, -ref->members);
        (void)at_once(
            -1, px_waitgroup_add(&world.wg, -px_waitgroup_count(&world.wg)),
            should);
    }
    for (int f = 0; f < world.program->fibers; f++) {
        if (!ref->fibers[f].group)
            continue;
        should = ref_group_limit(ref, f, 100);
        (void)at_once(f, px_group_set_limit(&world.groups[f], 100), should);
    }
    for (int f = 0; f < ref->n; f++) {
        if (ref->fibers[f].state == REF_PARKED && !ref->fibers[f].queued)
            (void)cancel_scope(f, ref->fibers[f].depth - 1);
        if (ref->fibers[f].state == REF_PARKED && !ref->fibers[f].queued)
            (void)cancel(f);
    }
}

static void finish(void)
{
    px_loop *loop = world.driver->loop;

    for (int f = 0; f < world.program->fibers; f++)
        (void)at_once(f, px_await(world.fibers[f], NULL), 0);
    same(-1, "how many fibers there are", (int64_t)loop->alive, 1);
    if (!px__heap_is_empty(&loop->timers))
        fail("a timer is left");
    (void)at_once(-1, px_sem_destroy(&world.sem), 0);
    (void)at_once(-1, px_mutex_destroy(&world.mutex), 0);
    (void)at_once(-1, px_waitgroup_destroy(&world.wg), 0);
}

static void play_path(void)
{
    const struct program *program = world.program;
    int64_t start = px_now();

    ref_init(&world.ref, program->fibers, program->permits, program->bounded);
    world.ref.now = start;
    memset(world.at, 0, sizeof(world.at));
    memset(world.held, 0, sizeof(world.held));
    memset(world.groups, 0, sizeof(world.groups));
    if (program->bounded)
        (void)px_sem_init_bounded(&world.sem, program->permits);
    else
        (void)px_sem_init(&world.sem, program->permits);
    (void)px_mutex_init(&world.mutex);
    (void)px_waitgroup_init(&world.wg, 0);
    for (int f = 0; f < program->fibers; f++) {
        if (px_spawn(&world.fibers[f], body, (void *)(intptr_t)f) != 0)
            fail("no fiber");
    }
    for (int rounds = 0; !all_done(); rounds++) {
        px__seam_yield(world.driver);
        if (all_done())
            break;
        if (rounds > 2 * REF_FIBERS * CALLS_MOST)
            fail("some wait for ever");
        relieve();
    }
    finish();
    tally.paths++;
}

void play(const struct program *program, struct chooser *chooser)
{
    world.program = program;
    world.chooser = chooser;
    world.driver = px_self();
    chooser_begin(chooser);
    do {
        play_path();
    } while (chooser_next(chooser));
    world.driver = NULL;
}

/* -- programs as text -- */

void program_print(const struct program *program, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "%s%d", program->bounded ? "b" : "",
                                 program->permits);

    for (int f = 0; f < program->fibers; f++) {
        for (int i = 0; i < program->lengths[f] && at < size; i++) {
            struct call call = program->calls[f][i];

            at += (size_t)snprintf(out + at, size - at, "%c%c%d", i ? ',' : '/',
                                   call.what, call.n);
        }
        if (program->lengths[f] == 0 && at < size)
            at += (size_t)snprintf(out + at, size - at, "/");
    }
}

bool program_parse(struct program *program, const char *text)
{
    char *end;

    memset(program, 0, sizeof(*program));
    program->bounded = *text == 'b';
    program->permits = (int8_t)strtol(text + program->bounded, &end, 10);
    while (*end == '/') {
        int f = program->fibers++;

        if (f == REF_FIBERS)
            return false;
        end++;
        while (*end && *end != '/') {
            struct call *call = &program->calls[f][program->lengths[f]++];

            if (program->lengths[f] == CALLS_MOST)
                return false;
            call->what = *end;
            call->n = (int8_t)strtol(end + 1, &end, 10);
            if (*end == ',')
                end++;
        }
    }
    return *end == '\0';
}
