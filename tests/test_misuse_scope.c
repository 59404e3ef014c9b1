/* SPDX-License-Identifier: MIT */
/*
 * test_misuse_scope.c - misuse of groups that ends the process, with one line
 * that names the fiber.
 */
#include <signal.h>
#include <sys/wait.h>

#include "fiber_test.h"
#include "px_scale.h"

/* A group that outlives every frame here, so that only the return is wrong. */
static px_group open_group;

static int returns_with_an_open_group(void *arg UNUSED)
{
    EXPECT_EQ(px_group_open(&open_group), 0);
    return 0;
}

static int returns_with_a_child_running(void *arg UNUSED)
{
    EXPECT_EQ(px_group_open(&open_group), 0);
    EXPECT_EQ(px_group_spawn(&open_group, sleeps_for_ever, NULL), 0);
    return 0;
}

static int returns_with_a_scope_inside_the_group(void *arg UNUSED)
{
    static px_scope scope;

    EXPECT_EQ(px_group_open(&open_group), 0);
    EXPECT_EQ(px_scope_enter(&scope, PX_SEC), 0);
    return 0;
}

static int opens_it_in_a_timeout(void *arg)
{
    int value = px_with_timeout(PX_SEC, returns_with_an_open_group, arg);

    (void)fprintf(stderr, "it goes on\n");
    return value;
}

static int opens_it_in_a_deadline(void *arg)
{
    return px_with_deadline(PX_FOREVER, returns_with_an_open_group, arg);
}

static int opens_it_in_a_shield(void *arg)
{
    return px_with_shield(PX_SEC, returns_with_an_open_group, arg);
}

static int opens_it_beside_a_token(px_scope *token UNUSED, void *arg)
{
    return returns_with_an_open_group(arg);
}

static int opens_it_with_a_token(void *arg)
{
    return px_with_cancel(opens_it_beside_a_token, arg);
}

static int opens_it_in_a_block(void *arg UNUSED)
{
    PX_WITHIN(limit, PX_SEC) {
        EXPECT_EQ(px_group_open(&open_group), 0);
        break;
    }
    (void)fprintf(stderr, "it goes on\n");
    return 0;
}

/* A named fiber that runs the body at arg. */
static int spawns_a_loader(void *arg)
{
    px_spawn_options options = {.name = "loader"};
    px_fiber *fiber;
    int err;

    err = px_spawn_with(&fiber, &options, *(const px_fn *)arg, NULL);
    return err ? err : px_await(fiber, NULL);
}

static int has_the_loader_as_a_child(void *arg)
{
    px_spawn_options options = {.name = "loader"};
    px_group group;

    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn_with(&group, &options, *(const px_fn *)arg, NULL),
              0);
    return px_group_wait(&group);
}

static int leaves_it_as_main(void *arg)
{
    EXPECT_EQ(px_set_name(px_self(), "loader"), 0);
    return (*(const px_fn *)arg)(NULL);
}

static int leaves_it_unnamed(void *arg)
{
    px_fiber *fiber = start_handle(*(const px_fn *)arg, NULL);

    return px_await(fiber, NULL);
}

struct death {
    px_fn around, body;
};

static void run_to_death(void *arg)
{
    struct death *d = arg;
    px_run_options options = {0};

    (void)run_fibers_with(options, 0, d->around, &d->body);
}

/* With a message that has `name` in it, the fiber's or the call's. */
static void expect_death(px_fn around, px_fn body, const char *name)
{
    struct death d = {.around = around, .body = body};
    char output[4096];
    int status = in_child(run_to_death, &d, output, sizeof(output));
    const char *end;

    forget_emulator(output);
    end = strchr(output, '\n');
    if (!WIFSIGNALED(status) || !strstr(output, name))
        (void)fprintf(stderr, "status %#x: %s\n", status, output);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(end);
    assert_string_equal(end, "\n"); /* one line */
    assert_non_null(strstr(output, name));
    assert_non_null(strstr(output, "group"));
}

static void a_fiber_that_returns_with_an_open_group_aborts(void **state)
{
    (void)state;
    expect_death(spawns_a_loader, returns_with_an_open_group, "loader");
    expect_death(leaves_it_unnamed, returns_with_an_open_group, "fiber 1");
}

static void the_main_fiber_that_returns_with_an_open_group_aborts(void **state)
{
    (void)state;
    expect_death(leaves_it_as_main, returns_with_an_open_group, "loader");
    expect_death(leaves_it_as_main, returns_with_an_open_group, "fiber 0");
}

static void it_aborts_though_children_are_running(void **state)
{
    (void)state;
    expect_death(spawns_a_loader, returns_with_a_child_running, "loader");
    expect_death(leaves_it_as_main, returns_with_a_child_running, "loader");
}

static void it_aborts_though_a_scope_is_still_entered_inside(void **state)
{
    (void)state;
    expect_death(spawns_a_loader, returns_with_a_scope_inside_the_group,
                 "loader");
}

static void a_groups_child_that_returns_with_an_open_group_aborts(void **state)
{
    (void)state;
    expect_death(has_the_loader_as_a_child, returns_with_an_open_group,
                 "loader");
}

static void a_block_that_is_left_with_an_open_group_aborts(void **state)
{
    (void)state;
    expect_death(spawns_a_loader, opens_it_in_a_block, "loader");
}

static void
an_fn_in_a_timeout_that_returns_with_an_open_group_aborts(void **state)
{
    (void)state;
    expect_death(spawns_a_loader, opens_it_in_a_timeout, "loader");
    expect_death(spawns_a_loader, opens_it_in_a_timeout, "px_with_timeout: ");
    expect_death(spawns_a_loader, opens_it_in_a_deadline, "px_with_deadline: ");
    expect_death(spawns_a_loader, opens_it_in_a_shield, "px_with_shield: ");
    expect_death(spawns_a_loader, opens_it_with_a_token, "px_with_cancel: ");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_fiber_that_returns_with_an_open_group_aborts),
    PX_TEST(the_main_fiber_that_returns_with_an_open_group_aborts),
    PX_TEST(it_aborts_though_children_are_running),
    PX_TEST(it_aborts_though_a_scope_is_still_entered_inside),
    PX_TEST(a_groups_child_that_returns_with_an_open_group_aborts),
    PX_TEST(a_block_that_is_left_with_an_open_group_aborts),
    PX_TEST(an_fn_in_a_timeout_that_returns_with_an_open_group_aborts),
};

PX_TEST_MAIN(tests)
