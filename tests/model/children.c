/* SPDX-License-Identifier: MIT */
/* children.c - groups, and what their children do. */
#include "world.h"

enum { MOST = 24 }; /* fibers, with children */

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

int children_expected(void)
{
    int n = world.ref.n + world.ref.posted;

    for (int f = 0; f < world.ref.n; f++)
        n += world.ref.fibers[f].on == REF_PLACE;
    return n;
}

int spawn_child(int f, int g, int kind)
{
    int code;

    if (!world.ref.fibers[g].group || children_expected() >= MOST)
        return 0;
    ref_group_spawn(&world.ref, f, g, kind);
    code = px_group_spawn(&world.groups[g], child_body, NULL);
    returned(f, code);
    return code;
}

int open_group(int f)
{
    struct ref_fiber *model = &world.ref.fibers[f];

    if (model->group || model->depth == REF_SCOPES)
        return 0;
    ref_group_open(&world.ref, f);
    return at_once(f, px_group_open(&world.groups[f]), 0);
}

int wait_for_children(int f)
{
    int code;

    ref_group_wait(&world.ref, f);
    code = px_group_wait(&world.groups[f]);
    returned(f, code);
    return code;
}

int cancel_group(int f)
{
    int group = world.ref.fibers[f].group;

    if (group)
        ref_fire(&world.ref, f, group, PX_ECANCELED);
    return at_once(f, px_group_cancel(&world.groups[f]), group ? 0 : PX_EINVAL);
}
