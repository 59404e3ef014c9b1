/* SPDX-License-Identifier: MIT */
/*
 * 12_deadlock.c - two fibers that lock in opposite order.
 *
 * Each has one mutex and waits for the other's: nobody can go on, ever. The
 * run says on stderr who waits for what and which fibers go round in a circle,
 * ends all waits with PX_ESTALLED, so that everybody can clean up, and returns
 * that: the program ends with 1.
 */
#include <stdio.h>

#include <parataxis/parataxis.h>

static px_mutex accounts = PX_MUTEX_INIT;
static px_mutex journal = PX_MUTEX_INIT;

static int lock_both(px_mutex *first, px_mutex *second)
{
    int err = px_mutex_lock(first);

    if (err)
        return err;
    err = px_yield(); /* the other comes by */
    if (!err)
        err = px_mutex_lock(second);
    if (!err)
        err = px_mutex_unlock(second);
    printf("%s unlocks: %s\n", px_name(px_self()), px_strerror(err));
    (void)px_mutex_unlock(first);
    return err;
}

static int book(void *arg)
{
    (void)arg;
    return lock_both(&accounts, &journal);
}

static int audit(void *arg)
{
    (void)arg;
    return lock_both(&journal, &accounts);
}

static int body(void *arg)
{
    px_fiber *fibers[2];
    int err;

    (void)arg;
    err = px_spawn_with(&fibers[0], &(px_spawn_options){.name = "booking"},
                        book, NULL);
    if (err)
        return err;
    err = px_spawn_with(&fibers[1], &(px_spawn_options){.name = "audit"}, audit,
                        NULL);
    if (err)
        return err;
    return px_await_all(fibers, 2, NULL);
}

int main(void)
{
    int err = px_run(body, NULL);

    if (err)
        printf("the run: %s\n", px_strerror(err));
    return err ? 1 : 0;
}
