/* SPDX-License-Identifier: MIT */
/*
 * test_group_model.c - random trees of groups, with the rules checked at every
 * end of a child and every return of px_group_wait().
 *
 * A node of the tree is a fiber. It sleeps, or opens a group and spawns nodes
 * into it, under timeouts and shields, with limits; it cancels its group, or
 * the one it is in; it fails, hands codes on, or hides them. What wait returns
 * is known from what the children themselves saw when they ended.
 */
#include "fiber_test.h"
#include "px_scale.h"

enum { DEPTH = 4, TREES = 3000 };

/* A group, and what its children have told of it. */
struct nursery {
    px_group group;
    int64_t limit; /* INT64_MAX: none */
    int inside;    /* children that have begun and not ended */
    int failure;   /* the first */
    bool cancelled;
    bool closed;
};

/* What a node is given: a copy of it lies on its stack. */
struct job {
    struct nursery *nursery; /* that it is a child of */
    int depth;
};

static struct {
    uint64_t random;
    int fibers; /* nodes alive */
    int wrong;
} the;

static uint32_t draw(uint32_t below)
{
    the.random ^= the.random << 13;
    the.random ^= the.random >> 7;
    the.random ^= the.random << 17;
    return (uint32_t)(the.random >> 32) % below;
}

static bool one_in(uint32_t n)
{
    return draw(n) == 0;
}

static void expect(const char *what, long long is, long long should_be)
{
    if (is == should_be || the.wrong++)
        return;
    (void)fprintf(stderr, "fiber %d at %lld: %s is %lld, not %lld\n",
                  (int)px_current_id(), (long long)px_now(), what, is,
                  should_be);
}

static int node(const struct job *job);

static bool is_cut_short(int code)
{
    return code == PX_ECANCELED || code == PX_ETIMEDOUT;
}

static bool has_fired(const struct nursery *n)
{
    return n->cancelled || n->failure;
}

static void cancel(struct nursery *n)
{
    expect("cancel", px_group_cancel(&n->group), 0);
    n->cancelled = true;
}

/* A child's body: a node, and what its end means to the group. */
static int child(void *arg)
{
    const struct job *job = arg;
    struct nursery *n = job->nursery;
    int code;

    the.fibers++;
    n->inside++;
    expect("being above the limit", n->inside > n->limit, false);
    code = node(job);
    /* The node has left its scopes: what reaches it now reaches the group. */
    expect("being spared", has_fired(n) && !px_check(), false);
    if (code < 0 && !(is_cut_short(code) && px_check()) && n->failure == 0)
        n->failure = code;
    expect("being closed", n->closed, false);
    n->inside--;
    the.fibers--;
    return code;
}

static int spawns_one(void *arg)
{
    struct job *job = arg;
    struct nursery *n = job->nursery;
    px_spawn_options options = {.arg_size = sizeof(*job), .queued = one_in(4)};
    bool fired = has_fired(n);
    int err = px_group_spawn_with(&n->group, &options, child, job);

    expect("a spawn into a fired group", fired && err == 0, false);
    return err;
}

/* Children give up at last: they may all be waiting for a place. */
static int spawn_sibling(const struct job *job)
{
    struct job sibling = {.nursery = job->nursery, .depth = job->depth - 1};

    return px_with_timeout((px_nsec)draw(80) * PX_USEC, spawns_one, &sibling);
}

static int value_of(int code)
{
    switch (draw(12)) {
    case 0:
        return -100 - (int)draw(20); /* a failure of its own */
    case 1:
        return 7;
    case 2:
        return 0; /* hides what happened */
    case 3:
        return one_in(4) ? PX_ETIMEDOUT : code;
    default:
        return code;
    }
}

/* What a node without a group does. */
static int work(const struct job *job)
{
    int code = 0;

    for (uint32_t i = draw(3); i > 0 && code == 0; i--) {
        code = one_in(3) ? px_yield() : px_sleep((px_nsec)draw(60) * PX_USEC);
        if (job->nursery && one_in(5) && job->depth > 0) {
            int err = spawn_sibling(job);

            code = code ? code : err;
        }
        if (job->nursery && one_in(40))
            cancel(job->nursery);
    }
    return code;
}

static int raise_children(const struct job *job)
{
    struct nursery n = {.limit = INT64_MAX};
    int code = 0, waited;

    expect("open", px_group_open(&n.group), 0);
    if (one_in(2)) {
        n.limit = 1 + (int64_t)draw(3);
        expect("set_limit", px_group_set_limit(&n.group, n.limit), 0);
    }
    for (uint32_t i = draw(7); i > 0 && code == 0; i--) {
        struct job spawned = {.nursery = &n, .depth = job->depth - 1};

        code = spawns_one(&spawned);
        if (one_in(3))
            (void)!px_sleep((px_nsec)draw(40) * PX_USEC);
        if (one_in(12))
            cancel(&n);
        if (one_in(6) && n.limit < INT64_MAX)
            expect("set_limit", px_group_set_limit(&n.group, ++n.limit), 0);
    }
    if (code)
        expect("the code of a refused spawn", is_cut_short(code), true);
    waited = px_group_wait(&n.group);
    expect("children left", n.inside, 0);
    n.closed = true;
    expect("group_wait", waited, n.failure ? n.failure : px_check());
    expect("a wait after it", px_group_wait(&n.group), PX_EINVAL);
    return waited;
}

static int goes_about_it(void *arg)
{
    const struct job *job = arg;

    return job->depth > 0 && !one_in(3) ? raise_children(job) : work(job);
}

/* A node's body, perhaps in a scope or two of its own. */
static int node(const struct job *job)
{
    px_nsec timeout = (px_nsec)draw(100) * PX_USEC;
    void *arg = (void *)(uintptr_t)job;

    switch (draw(6)) {
    case 0:
        return value_of(px_with_timeout(timeout, goes_about_it, arg));
    case 1:
        return value_of(px_with_shield(timeout, goes_about_it, arg));
    case 2:
        (void)!px_with_timeout(timeout, goes_about_it, arg);
        return value_of(px_with_shield(PX_FOREVER, goes_about_it, arg));
    default:
        return value_of(goes_about_it(arg));
    }
}

static int grows_a_tree(void *arg UNUSED)
{
    struct job job = {.nursery = NULL, .depth = DEPTH};
    px_nsec timeout = (px_nsec)(20 + draw(400)) * PX_USEC;

    (void)!px_with_timeout(timeout, goes_about_it, &job);
    expect("fibers left", the.fibers, 0);
    expect("px_check", px_check(), 0);
    expect("px_deadline", px_deadline(), PX_FOREVER);
    return 0;
}

static void a_random_tree_of_groups_follows_the_rules(void **state)
{
    const char *shuffle = getenv("PX_TEST_SEED");
    uint64_t first = shuffle ? strtoull(shuffle, NULL, 0) * TREES : 0;
    px_run_options options = {0};

    (void)state;
    for (uint64_t seed = first; seed < first + (uint64_t)turns(TREES); seed++) {
        memset(&the, 0, sizeof(the));
        the.random = seed * 0x9e3779b97f4a7c15u + 1;
        (void)draw(2);
        assert_int_equal(run_fibers_with(options, 0, grows_a_tree, NULL), 0);
        if (the.wrong) {
            (void)fprintf(stderr, "tree %llu\n", (unsigned long long)seed);
            fail();
        }
    }
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_random_tree_of_groups_follows_the_rules),
};

PX_TEST_MAIN(tests)
