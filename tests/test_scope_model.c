/* SPDX-License-Identifier: MIT */
/*
 * test_scope_model.c - random programs of scopes, compared with a model
 * (field case R88).
 *
 * A worker enters, leaves, shields, cancels and moves deadlines at random, and
 * sleeps; while it sleeps, meddlers do the like to its scopes from other
 * fibers. The model is an array that knows the rules and nothing of trees,
 * timers or caches: the reach of fired scopes is looked for anew each time. In
 * half of the programs the lower scopes are those around a group, in which the
 * worker is a child, beside a witness who only waits.
 *
 * No two deadlines of a program are equal, and ends of sleeps and meddling fall
 * on other moments, so what happens at one of them is never a matter of order.
 */
#include "fiber_test.h"
#include "px_scale.h"

enum {
    SCOPES = 8,
    STEPS = 300,
    PROGRAMS = 300,
    MEDDLERS = 2,
    MOMENTS = STEPS * 32, /* a sleep is shorter than 32 * 4 */
    /* moments, modulo 4 */
    A_DEADLINE = 1,
    A_WAKE = 2,
    A_MEDDLING = 3
};

enum change { CANCEL, MOVE, SHIELD, UNSHIELD, CHANGES };

struct meddling {
    px_nsec when;
    enum change change;
    int scope;
    px_nsec deadline; /* for MOVE */
    int sleep;        /* which of the worker's sleeps it is meant for */
};

/* What the model knows of a scope. */
struct rule {
    px_nsec deadline;
    int status;
    bool shield;
};

static struct {
    uint64_t random;
    px_scope scopes[SCOPES];
    int base; /* how many of them are around the group */
    int sleep;
    struct meddling meddlings[MEDDLERS];
    px_group group;
    px_sem end;   /* of the witness's wait */
    bool started; /* the witness was */
    int witness_code;
    px_nsec witness_woke;
    int wrong;           /* comparisons that failed */
    bool taken[MOMENTS]; /* a deadline is there */

    struct rule rules[SCOPES];
    int depth;
    int reached; /* the code that reached the witness */
    px_nsec reached_at;
} the;

static uint32_t draw(uint32_t below)
{
    the.random ^= the.random << 13;
    the.random ^= the.random >> 7;
    the.random ^= the.random << 17;
    return (uint32_t)(the.random >> 32) % below;
}

/* A moment after `now`, of the kind that is asked for. */
static px_nsec draw_moment(px_nsec now, px_nsec kind)
{
    return now + 4 - now % 4 + 4 * (px_nsec)draw(20) + kind;
}

static px_nsec draw_deadline(px_nsec now)
{
    px_nsec deadline;

    switch (draw(8)) {
    case 0:
        return PX_FOREVER;
    case 1:
        return now - 1 - (px_nsec)draw(50);
    case 2:
        return INT64_MIN;
    default:
        deadline = draw_moment(now, A_DEADLINE);
        while (the.taken[deadline / 4 % MOMENTS])
            deadline += 4;
        the.taken[deadline / 4 % MOMENTS] = true;
        return deadline;
    }
}

static void expect(const char *what, long long is, long long should_be)
{
    if (is == should_be || the.wrong++)
        return;
    (void)fprintf(stderr, "at %lld, depth %d: %s is %lld, not %lld\n",
                  (long long)px_now(), the.depth, what, is, should_be);
}

/* ---- The model ---- */

/* The code that reaches a fiber inside the first `depth` scopes. */
static int reach_of(int depth)
{
    int outermost = depth - 1;

    while (outermost > 0 && !the.rules[outermost].shield)
        outermost--;
    for (int i = outermost; i >= 0 && i < depth; i++) {
        if (the.rules[i].status)
            return the.rules[i].status;
    }
    return 0;
}

/* Fire what is due, and see whether it reaches the witness. */
static void settle_model(px_nsec now)
{
    for (int i = 0; i < the.depth; i++) {
        if (!the.rules[i].status && the.rules[i].deadline <= now)
            the.rules[i].status = PX_ETIMEDOUT;
    }
    if (!the.reached && reach_of(the.base)) {
        the.reached = reach_of(the.base);
        the.reached_at = now;
    }
}

static void change_model(enum change change, int scope, px_nsec deadline,
                         px_nsec now)
{
    struct rule *rule = &the.rules[scope];

    if (change == CANCEL && !rule->status)
        rule->status = PX_ECANCELED;
    else if (change == MOVE && !rule->status)
        rule->deadline = deadline;
    else if (change == SHIELD || change == UNSHIELD)
        rule->shield = change == SHIELD;
    settle_model(now);
}

/* The first moment after `now` at which a scope is due, `end` at the latest. */
static px_nsec next_deadline(px_nsec end)
{
    for (int i = 0; i < the.depth; i++) {
        if (!the.rules[i].status && the.rules[i].deadline < end)
            end = the.rules[i].deadline;
    }
    return end;
}

/* Sleep in the model until `end`. Returns the code, and when in *woke. */
static int sleep_in_model(px_nsec now, px_nsec end, px_nsec *woke)
{
    int next = 0;

    while (!reach_of(the.depth) && now < end) {
        const struct meddling *m = &the.meddlings[next];
        px_nsec due = next_deadline(end);

        if (next < MEDDLERS && m->when < due) {
            now = m->when;
            change_model(m->change, m->scope, m->deadline, now);
            next++;
        } else {
            now = due;
            settle_model(now);
        }
    }
    *woke = now;
    return reach_of(the.depth);
}

/* ---- The real thing ---- */

static void change(enum change change, int scope, px_nsec deadline)
{
    px_scope *s = &the.scopes[scope];

    if (change == CANCEL)
        EXPECT_EQ(px_scope_cancel(s), 0);
    else if (change == MOVE)
        EXPECT_EQ(px_scope_set_deadline(s, deadline), 0);
    else
        EXPECT_EQ(px_scope_shield(s, change == SHIELD), 0);
}

static int meddles(void *arg)
{
    const struct meddling m = *(const struct meddling *)arg;

    EXPECT_EQ(px_with_shield(PX_FOREVER, sleeps, &(px_nsec){m.when - px_now()}),
              0);
    if (the.sleep == m.sleep)
        change(m.change, m.scope, m.deadline);
    return 0;
}

static void compare(void)
{
    px_nsec nearest = PX_FOREVER;

    for (int i = 0; i < the.depth; i++) {
        const struct rule *rule = &the.rules[i];

        expect("a status", px_scope_status(&the.scopes[i]), rule->status);
        if (!rule->status)
            expect("a remaining time", px_scope_remaining(&the.scopes[i]),
                   rule->deadline == PX_FOREVER ? PX_FOREVER
                                                : rule->deadline - px_now());
        if (rule->shield)
            nearest = PX_FOREVER;
        if (rule->deadline < nearest)
            nearest = rule->deadline;
    }
    expect("px_check", px_check(), reach_of(the.depth));
    if (reach_of(the.depth) == 0)
        expect("px_deadline", px_deadline(), nearest);
}

/* Put a scope around what follows, in both worlds. */
static void enter(void)
{
    px_nsec now = px_now(), deadline = draw_deadline(now);

    the.rules[the.depth] = (struct rule){.deadline = deadline};
    if (deadline == PX_FOREVER)
        EXPECT_EQ(px_scope_enter(&the.scopes[the.depth], PX_FOREVER), 0);
    else if (draw(2) && deadline > 0)
        EXPECT_EQ(px_scope_enter(&the.scopes[the.depth], deadline - now), 0);
    else
        EXPECT_EQ(px_scope_enter_until(&the.scopes[the.depth], deadline), 0);
    the.depth++;
    settle_model(now);
}

static void leave(void)
{
    the.depth--;
    expect("leave", px_scope_leave(&the.scopes[the.depth]),
           the.rules[the.depth].status);
}

static void change_one(void)
{
    enum change how = (enum change)draw(CHANGES);
    int scope = (int)draw((uint32_t)the.depth);
    px_nsec deadline = draw_deadline(px_now());

    change_model(how, scope, deadline, px_now());
    change(how, scope, deadline);
}

static void sleep_meddled_with(void)
{
    px_nsec now = px_now(), end = draw_moment(now, A_WAKE), when = now, woke;
    int code;

    the.sleep++;
    for (int i = 0; i < MEDDLERS; i++) {
        struct meddling *m = &the.meddlings[i];

        m->when = PX_FOREVER;
        if (the.depth == 0)
            continue;
        m->when = when = draw_moment(when, A_MEDDLING);
        m->change = (enum change)draw(CHANGES);
        m->scope = (int)draw((uint32_t)the.depth);
        m->deadline = draw_deadline(when);
        m->sleep = the.sleep;
        start(meddles, m);
    }
    code = sleep_in_model(now, end, &woke);
    expect("sleep", px_sleep_until(end), code);
    expect("the time", px_now(), woke);
    the.sleep++;
}

static int runs_a_program(void *arg UNUSED)
{
    for (int i = 0; i < STEPS && !the.wrong; i++) {
        uint32_t what = draw(10);

        if (what < 3 && the.depth < SCOPES)
            enter();
        else if (what < 5 && the.depth > the.base)
            leave();
        else if (what < 7 && the.depth > 0)
            change_one();
        else
            sleep_meddled_with();
        compare();
    }
    while (the.depth > the.base)
        leave();
    EXPECT_EQ(px_sem_up(&the.end), 0);
    return 0;
}

static int witnesses(void *arg UNUSED)
{
    the.witness_code = px_sem_down(&the.end);
    the.witness_woke = px_now();
    return 0;
}

static int runs_it_in_a_group(void *arg UNUSED)
{
    int code;

    for (int i = 0; i < the.base; i++)
        enter();
    EXPECT_EQ(px_group_open(&the.group), 0);
    /* In a fired group nobody starts. */
    code = px_group_spawn(&the.group, witnesses, NULL);
    expect("spawn", code, reach_of(the.base));
    the.started = code == 0;
    if (the.started)
        expect("spawn", px_group_spawn(&the.group, runs_a_program, NULL), 0);
    code = px_group_wait(&the.group);
    expect("group_wait", code, reach_of(the.base));
    if (the.started)
        expect("the witness", the.witness_code, the.reached);
    if (the.witness_code)
        expect("the witness's time", the.witness_woke, the.reached_at);
    while (the.depth > 0)
        leave();
    return 0;
}

static int run_program(uint64_t seed, int base)
{
    px_run_options options = {0};

    memset(&the, 0, sizeof(the));
    the.random = seed * 0x9e3779b97f4a7c15u + 1;
    the.base = base;
    (void)draw(2);
    assert_int_equal(run_fibers_with(options, 0,
                                     base ? runs_it_in_a_group : runs_a_program,
                                     NULL),
                     0);
    return the.wrong;
}

/* With another seed of the run queue, they are other programs. */
static void run_programs(int base)
{
    const char *shuffle = getenv("PX_TEST_SEED");
    uint64_t first = shuffle ? strtoull(shuffle, NULL, 0) * PROGRAMS : 0;

    for (uint64_t seed = first; seed < first + (uint64_t)turns(PROGRAMS);
         seed++) {
        if (run_program(seed, base)) {
            (void)fprintf(stderr, "program %llu, %d scopes around a group\n",
                          (unsigned long long)seed, base);
            fail();
        }
    }
}

static void R88_scopes_of_one_fiber_follow_the_rules(void **state)
{
    (void)state;
    run_programs(0);
}

static void R88_scopes_around_a_group_follow_the_rules(void **state)
{
    (void)state;
    for (int base = 1; base <= 4; base++)
        run_programs(base);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(R88_scopes_of_one_fiber_follow_the_rules),
    PX_TEST(R88_scopes_around_a_group_follow_the_rules),
};

PX_TEST_MAIN(tests)
