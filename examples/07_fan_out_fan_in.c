/* SPDX-License-Identifier: MIT */
/*
 * 07_fan_out_fan_in.c - start jobs, wait for all their reports, but not for
 * ever.
 *
 * px_waitgroup_go() counts a job before it starts and reports on every way out
 * of it. A wait cut short by a deadline leaves the group as it was: the jobs
 * are still at work, and can be waited for again.
 */
#include <stdio.h>

#include <parataxis/parataxis.h>

enum { JOBS = 4 };

static px_waitgroup group;
static int numbers[JOBS];

static int square(void *arg)
{
    int *number = arg;
    int err = px_sleep(10 * PX_MSEC);

    if (!err)
        *number *= *number;
    return err;
}

static int dawdle(void *arg)
{
    (void)arg;
    return px_sleep(300 * PX_MSEC);
}

static int wait_for_all(px_nsec at_most)
{
    int err = 0;

    PX_WITHIN(limit, at_most) {
        err = px_waitgroup_wait(&group);
    }
    return err;
}

static int body(void *arg)
{
    int err = 0;

    (void)arg;
    for (int i = 0; !err && i < JOBS; i++) {
        numbers[i] = i + 1;
        err = px_waitgroup_go(&group, square, &numbers[i]);
    }
    if (!err)
        err = wait_for_all(30 * PX_MSEC);
    if (err)
        return err;
    printf("the squares came back ");
    for (int i = 0; i < JOBS; i++)
        printf("%d%s", numbers[i], i + 1 < JOBS ? ", " : "\n");

    err = px_waitgroup_go(&group, dawdle, NULL);
    if (err)
        return err;
    err = wait_for_all(30 * PX_MSEC);
    printf("the fan-in gave up: %s\n", px_strerror(err));
    printf("the group is still usable, and the count reads %lld\n",
           (long long)px_waitgroup_count(&group));
    err = wait_for_all(PX_FOREVER);
    printf("in the end it reads %lld, after %lld ms\n",
           (long long)px_waitgroup_count(&group),
           (long long)(px_now() / PX_MSEC));
    return err;
}

int main(void)
{
    const px_run_options options = {.clock = PX_CLOCK_VIRTUAL};
    int err = px_run_with(&options, body, NULL);

    if (err)
        fprintf(stderr, "fan-in: %s\n", px_strerror(err));
    return err ? 1 : 0;
}
