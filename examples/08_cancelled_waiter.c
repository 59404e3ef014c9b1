/* SPDX-License-Identifier: MIT */
/*
 * 08_cancelled_waiter.c - waiters that give up, or are called off.
 *
 * A deadline or a cancellation takes a waiter out of the queue at that moment;
 * the lock stays with its owner, and goes to the next who still waits.
 */
#include <stdio.h>

#include <parataxis/parataxis.h>

static px_mutex lock = PX_MUTEX_INIT;

static int take_lock(void *arg)
{
    const char *name = arg;
    int err = px_mutex_lock(&lock);

    if (err) {
        printf("%s: %s\n", name, px_strerror(err));
        return err;
    }
    printf("%s: has the lock\n", name);
    return px_mutex_unlock(&lock);
}

static int take_lock_within_50ms(void *arg)
{
    return px_with_timeout(50 * PX_MSEC, take_lock, arg);
}

static int body(void *arg)
{
    px_fiber *impatient, *unwanted, *patient;
    int err = px_mutex_lock(&lock);

    (void)arg;
    if (!err)
        err = px_spawn(&impatient, take_lock_within_50ms, "impatient");
    if (!err)
        err = px_spawn(&unwanted, take_lock, "unwanted");
    if (!err)
        err = px_spawn(&patient, take_lock, "patient");
    if (err)
        return err;
    printf("queued: %zu\n", px_mutex_waiters(&lock));

    err = px_sleep(60 * PX_MSEC);
    if (err)
        return err;
    printf("after 60 ms, queued: %zu\n", px_mutex_waiters(&lock));

    err = px_cancel_and_await(unwanted, NULL);
    if (err)
        return err;
    printf("after a cancellation, queued: %zu, the owner is fiber %lld\n",
           px_mutex_waiters(&lock), (long long)px_mutex_owner(&lock));

    err = px_mutex_unlock(&lock);
    if (!err)
        err = px_await(impatient, NULL);
    if (!err)
        err = px_await(patient, NULL);
    return err;
}

int main(void)
{
    const px_run_options options = {.clock = PX_CLOCK_VIRTUAL};
    int err = px_run_with(&options, body, NULL);

    if (err)
        fprintf(stderr, "cancelled waiter: %s\n", px_strerror(err));
    return err ? 1 : 0;
}
