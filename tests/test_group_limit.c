/* SPDX-License-Identifier: MIT */
/* test_group_limit.c - at most n children at once, and those who wait. */
#include "fiber_test.h"

/* A child that stays until it is given a permit. */
struct guest {
    px_sem *leave;
    int *inside, *most;
    bool came;
};

static int guest(void *arg)
{
    struct guest *self = arg;
    int err;

    self->came = true;
    if (++*self->inside > *self->most)
        *self->most = *self->inside;
    err = px_sem_down(self->leave);
    --*self->inside;
    return err;
}

/* A child that, when told to go, brings one guest in. */
struct host {
    px_group *group;
    struct guest *guest;
    px_nsec timeout;
    bool leaves; /* once the guest is in; otherwise it stays like one */
    px_sem go;
    bool returned;
    int code; /* what px_group_spawn returned */
    px_nsec took;
};

static int spawns_one(void *arg)
{
    struct host *self = arg;

    return px_group_spawn(self->group, guest, self->guest);
}

static int host(void *arg)
{
    struct host *self = arg;
    px_nsec begin;

    EXPECT_EQ(px_sem_down(&self->go), 0);
    begin = px_now();
    self->code = px_with_timeout(self->timeout, spawns_one, self);
    self->took = px_now() - begin;
    self->returned = true;
    return self->leaves ? 0 : px_sem_down(self->guest->leave);
}

enum { MANY = 8 };

/* A group, with hosts and the guests they are to bring. */
struct house {
    px_group group;
    px_sem leave;
    int inside, most;
    struct guest guests[MANY];
    struct host hosts[MANY];
};

static void set_up(struct house *h)
{
    memset(h, 0, sizeof(*h));
    for (int i = 0; i < MANY; i++) {
        h->guests[i] = (struct guest){
            .leave = &h->leave, .inside = &h->inside, .most = &h->most};
        h->hosts[i] = (struct host){
            .group = &h->group, .guest = &h->guests[i], .timeout = PX_FOREVER};
    }
    EXPECT_EQ(px_group_open(&h->group), 0);
}

/* As many hosts as the limit allows, all waiting for a place, in order. */
static void let_hosts_in(struct house *h, int n)
{
    EXPECT_EQ(px_group_set_limit(&h->group, n), 0);
    for (int i = 0; i < n; i++)
        EXPECT_EQ(px_group_spawn(&h->group, host, &h->hosts[i]), 0);
    for (int i = 0; i < n; i++) {
        EXPECT_EQ(px_sem_up(&h->hosts[i].go), 0);
        settle();
    }
    EXPECT_EQ(h->inside, 0);
}

/* Which guests have come, once everybody is at rest. */
static void expect_came(const struct house *h, const char *who)
{
    char came[MANY + 1] = {0};
    int n = 0;

    settle();
    for (int i = 0; i < MANY; i++) {
        if (h->guests[i].came)
            came[n++] = (char)('0' + i);
    }
    if (strcmp(came, who) != 0)
        (void)fprintf(stderr, "came: \"%s\", not \"%s\"\n", came, who);
    EXPECT(strcmp(came, who) == 0);
}

FIBER_TEST(spawn_waits_at_the_limit_for_a_child_to_end)
{
    struct house h;

    set_up(&h);
    EXPECT_EQ(px_group_set_limit(&h.group, 2), 0);
    EXPECT_EQ(px_group_spawn(&h.group, guest, &h.guests[0]), 0);
    EXPECT_EQ(px_group_spawn(&h.group, guest, &h.guests[1]), 0);
    PX_WITHIN(limit, 10 * PX_MSEC) {
        EXPECT_EQ(px_group_spawn(&h.group, guest, &h.guests[2]), PX_ETIMEDOUT);
    }
    EXPECT_EQ(px_now(), 10 * PX_MSEC);
    EXPECT_EQ(px_sem_up(&h.leave), 0);
    EXPECT_EQ(px_group_spawn(&h.group, guest, &h.guests[3]), 0);
    expect_came(&h, "013");
    EXPECT_EQ(px_sem_up_n(&h.leave, 2), 0);
    EXPECT_EQ(px_group_wait(&h.group), 0);
    EXPECT_EQ(h.most, 2);
    return 0;
}

FIBER_TEST(without_a_limit_spawn_does_not_wait)
{
    struct house h;

    set_up(&h);
    for (int i = 0; i < MANY; i++)
        EXPECT_EQ(px_group_spawn(&h.group, guest, &h.guests[i]), 0);
    EXPECT_EQ(h.inside, MANY);
    EXPECT_EQ(px_sem_up_n(&h.leave, MANY), 0);
    EXPECT_EQ(px_group_wait(&h.group), 0);
    return 0;
}

FIBER_TEST(waiting_spawners_are_served_in_the_order_of_arrival)
{
    struct house h;

    set_up(&h);
    let_hosts_in(&h, 4);
    EXPECT_EQ(px_group_set_limit(&h.group, 5), 0);
    expect_came(&h, "0");
    /* Every child that ends makes room for the next. */
    EXPECT_EQ(px_sem_up(&h.leave), 0);
    expect_came(&h, "01");
    EXPECT_EQ(px_sem_up(&h.leave), 0);
    expect_came(&h, "012");
    EXPECT_EQ(px_sem_up(&h.leave), 0);
    expect_came(&h, "0123");
    EXPECT_EQ(px_sem_up_n(&h.leave, 5), 0);
    EXPECT_EQ(px_group_wait(&h.group), 0);
    return 0;
}

FIBER_TEST(raising_the_limit_lets_waiting_spawners_in)
{
    struct house h;

    set_up(&h);
    let_hosts_in(&h, 4);
    expect_came(&h, "");
    EXPECT_EQ(px_group_set_limit(&h.group, 6), 0);
    expect_came(&h, "01");
    EXPECT_EQ(px_group_set_limit(&h.group, 5), 0); /* stops nobody */
    expect_came(&h, "01");
    EXPECT_EQ(px_group_set_limit(&h.group, 7), 0);
    expect_came(&h, "012");
    EXPECT_EQ(px_group_set_limit(&h.group, INT64_MAX), 0);
    expect_came(&h, "0123");
    EXPECT_EQ(px_sem_up_n(&h.leave, 8), 0);
    EXPECT_EQ(px_group_wait(&h.group), 0);
    return 0;
}

FIBER_TEST(a_spawner_that_ends_makes_room_for_the_next)
{
    struct house h;

    set_up(&h);
    for (int i = 0; i < 4; i++)
        h.hosts[i].leaves = true;
    let_hosts_in(&h, 4);
    EXPECT_EQ(px_group_set_limit(&h.group, 5), 0);
    expect_came(&h, "0123");
    EXPECT_EQ(px_sem_up_n(&h.leave, 4), 0);
    EXPECT_EQ(px_group_wait(&h.group), 0);
    return 0;
}

FIBER_TEST(lowering_the_limit_stops_no_child)
{
    struct house h;

    set_up(&h);
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(px_group_spawn(&h.group, guest, &h.guests[i]), 0);
    EXPECT_EQ(px_group_spawn(&h.group, host, &h.hosts[4]), 0);
    EXPECT_EQ(px_group_set_limit(&h.group, 3), 0);
    EXPECT_EQ(h.inside, 4);
    EXPECT_EQ(px_sem_up(&h.hosts[4].go), 0);
    expect_came(&h, "0123");
    EXPECT_EQ(px_sem_up_n(&h.leave, 2), 0);
    expect_came(&h, "0123"); /* two and the host are left: still full */
    EXPECT_EQ(px_sem_up(&h.leave), 0);
    expect_came(&h, "01234");
    EXPECT_EQ(px_sem_up_n(&h.leave, 3), 0);
    EXPECT_EQ(px_group_wait(&h.group), 0);
    return 0;
}

FIBER_TEST(a_place_that_is_given_cannot_be_taken_by_another)
{
    struct house h;

    set_up(&h);
    let_hosts_in(&h, 2);
    EXPECT_EQ(px_group_set_limit(&h.group, 3), 0); /* host 0's; not run yet */
    PX_WITHIN(limit, PX_MSEC) {
        EXPECT_EQ(px_group_spawn(&h.group, guest, &h.guests[2]), PX_ETIMEDOUT);
    }
    expect_came(&h, "0");
    EXPECT_EQ(px_group_set_limit(&h.group, 9), 0);
    expect_came(&h, "01");
    EXPECT_EQ(px_sem_up_n(&h.leave, 4), 0);
    EXPECT_EQ(px_group_wait(&h.group), 0);
    return 0;
}

FIBER_TEST(an_interrupted_spawner_leaves_the_queue)
{
    struct house h;

    set_up(&h);
    h.hosts[0].timeout = 10 * PX_MSEC;
    let_hosts_in(&h, 2);
    EXPECT_EQ(px_sleep(20 * PX_MSEC), 0);
    EXPECT(h.hosts[0].returned);
    EXPECT_EQ(h.hosts[0].code, PX_ETIMEDOUT);
    EXPECT_EQ(h.hosts[0].took, 10 * PX_MSEC);
    EXPECT(!h.hosts[1].returned);
    EXPECT_EQ(px_group_set_limit(&h.group, 3), 0);
    expect_came(&h, "1");
    EXPECT_EQ(px_sem_up_n(&h.leave, 3), 0);
    EXPECT_EQ(px_group_wait(&h.group), 0); /* that was no failure */
    return 0;
}

FIBER_TEST(cancelling_the_group_wakes_waiting_spawners)
{
    struct house h;

    set_up(&h);
    let_hosts_in(&h, 2);
    EXPECT_EQ(px_group_cancel(&h.group), 0);
    EXPECT_EQ(px_group_wait(&h.group), 0);
    for (int i = 0; i < 2; i++) {
        EXPECT(h.hosts[i].returned);
        EXPECT_EQ(h.hosts[i].code, PX_ECANCELED);
        EXPECT(!h.guests[i].came);
    }
    return 0;
}

/* A spawner that the group's firing does not reach. */
static int shielded_host(void *arg)
{
    return px_with_shield(PX_FOREVER, host, arg);
}

FIBER_TEST(a_place_given_in_a_fired_group_starts_nothing)
{
    struct house h;

    set_up(&h);
    EXPECT_EQ(px_group_set_limit(&h.group, 2), 0);
    EXPECT_EQ(px_group_spawn(&h.group, shielded_host, &h.hosts[0]), 0);
    EXPECT_EQ(px_group_spawn(&h.group, guest, &h.guests[1]), 0);
    EXPECT_EQ(px_sem_up(&h.hosts[0].go), 0);
    settle();
    EXPECT_EQ(px_group_cancel(&h.group), 0); /* guest 1's place is host 0's */
    EXPECT_EQ(px_sem_up(&h.leave), 0);
    EXPECT_EQ(px_group_wait(&h.group), 0);
    EXPECT(!h.guests[0].came);
    EXPECT_EQ(h.hosts[0].code, PX_ECANCELED);
    return 0;
}

static int spawns_too_late(void *arg)
{
    struct host *self = arg;

    EXPECT_EQ(px_sem_down(&self->go), PX_ECANCELED);
    self->code = px_with_shield(PX_FOREVER, spawns_one, self);
    return 0;
}

FIBER_TEST(in_a_fired_group_nobody_waits_for_a_place)
{
    struct house h;

    set_up(&h);
    EXPECT_EQ(px_group_set_limit(&h.group, 1), 0);
    EXPECT_EQ(px_group_spawn(&h.group, spawns_too_late, &h.hosts[0]), 0);
    EXPECT_EQ(px_group_cancel(&h.group), 0);
    EXPECT_EQ(px_group_wait(&h.group), 0);
    EXPECT_EQ(h.hosts[0].code, PX_ECANCELED);
    return 0;
}

FIBER_TEST(a_limit_below_one_is_refused)
{
    struct house h;

    set_up(&h);
    EXPECT_EQ(px_group_set_limit(&h.group, 1), 0);
    EXPECT_EQ(px_group_set_limit(&h.group, 0), PX_EINVAL);
    EXPECT_EQ(px_group_set_limit(&h.group, -1), PX_EINVAL);
    EXPECT_EQ(px_group_set_limit(&h.group, INT64_MIN), PX_EINVAL);
    EXPECT_EQ(px_group_spawn(&h.group, guest, &h.guests[0]), 0);
    PX_WITHIN(limit, PX_MSEC) /* it is still 1 */
    {
        EXPECT_EQ(px_group_spawn(&h.group, guest, &h.guests[1]), PX_ETIMEDOUT);
    }
    EXPECT_EQ(px_sem_up(&h.leave), 0);
    EXPECT_EQ(px_group_wait(&h.group), 0);
    return 0;
}

static int sleeps_a_while(void *arg)
{
    int *counts = arg; /* inside, most, in all */

    if (++counts[0] > counts[1])
        counts[1] = counts[0];
    counts[2]++;
    EXPECT_EQ(px_sleep((1 + counts[2] * 31 % 7) * PX_MSEC), 0);
    counts[0]--;
    return 0;
}

FIBER_TEST(never_more_than_the_limit_are_inside)
{
    int counts[3] = {0};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_set_limit(&group, 7), 0);
    for (int i = 0; i < 1000; i++)
        EXPECT_EQ(px_group_spawn(&group, sleeps_a_while, counts), 0);
    EXPECT_EQ(px_group_wait(&group), 0);
    EXPECT_EQ(counts[0], 0);
    EXPECT_EQ(counts[1], 7);
    EXPECT_EQ(counts[2], 1000);
    return 0;
}

/* Three fibers, and no more: the third child's spawn fails at its turn. */
static int is_refused_a_fiber(void *arg UNUSED)
{
    struct house h;

    set_up(&h);
    EXPECT_EQ(px_group_set_limit(&h.group, 3), 0);
    EXPECT_EQ(px_group_spawn(&h.group, guest, &h.guests[0]), 0);
    EXPECT_EQ(px_group_spawn(&h.group, guest, &h.guests[1]), 0);
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(px_group_spawn(&h.group, guest, &h.guests[2]), PX_ENOMEM);
    /* Each gave its place back: there is one for a fiber that can be had. */
    EXPECT_EQ(px_sem_up(&h.leave), 0);
    settle();
    EXPECT_EQ(px_group_spawn(&h.group, guest, &h.guests[3]), 0);
    expect_came(&h, "013");
    EXPECT_EQ(px_sem_up_n(&h.leave, 2), 0);
    EXPECT_EQ(px_group_wait(&h.group), 0);
    return 0;
}

static void a_failed_spawn_gives_its_place_back(void **state)
{
    px_run_options options = {.max_fibers = 3};

    (void)state;
    assert_int_equal(run_fibers_with(options, 0, is_refused_a_fiber, NULL), 0);
}

/* Its child waits for a place that only its own end would give. */
static int spawns_a_sibling(void *arg)
{
    struct host *self = arg;

    self->code = px_group_spawn(self->group, guest, self->guest);
    return self->code;
}

static int stalls_at_the_limit(void *arg UNUSED)
{
    struct house h;

    set_up(&h);
    EXPECT_EQ(px_group_set_limit(&h.group, 1), 0);
    EXPECT_EQ(px_group_spawn(&h.group, spawns_a_sibling, &h.hosts[0]), 0);
    EXPECT_EQ(px_group_wait(&h.group), PX_ESTALLED);
    EXPECT_EQ(h.hosts[0].code, PX_ESTALLED);
    EXPECT(!h.guests[0].came);
    return 0;
}

static void a_spawn_that_waits_for_its_own_place_stalls(void **state)
{
    int deadlocks = 0;
    px_run_options options = {.on_deadlock = count_deadlocks,
                              .ctx = &deadlocks};

    (void)state;
    assert_int_equal(run_fibers_with(options, 0, stalls_at_the_limit, NULL),
                     PX_ESTALLED);
    assert_int_equal(deadlocks, 1);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(spawn_waits_at_the_limit_for_a_child_to_end),
    PX_TEST(without_a_limit_spawn_does_not_wait),
    PX_TEST(waiting_spawners_are_served_in_the_order_of_arrival),
    PX_TEST(raising_the_limit_lets_waiting_spawners_in),
    PX_TEST(a_spawner_that_ends_makes_room_for_the_next),
    PX_TEST(lowering_the_limit_stops_no_child),
    PX_TEST(a_place_that_is_given_cannot_be_taken_by_another),
    PX_TEST(an_interrupted_spawner_leaves_the_queue),
    PX_TEST(cancelling_the_group_wakes_waiting_spawners),
    PX_TEST(a_place_given_in_a_fired_group_starts_nothing),
    PX_TEST(in_a_fired_group_nobody_waits_for_a_place),
    PX_TEST(a_limit_below_one_is_refused),
    PX_TEST(never_more_than_the_limit_are_inside),
    PX_TEST(a_failed_spawn_gives_its_place_back),
    PX_TEST(a_spawn_that_waits_for_its_own_place_stalls),
};

PX_TEST_MAIN(tests)
