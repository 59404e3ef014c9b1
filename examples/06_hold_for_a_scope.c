/* SPDX-License-Identifier: MIT */
/*
 * 06_hold_for_a_scope.c - hold a permit for the length of a block.
 *
 * A guard gives its permit back on every way out: at the end, by an early
 * return, by break and goto. PX_SEM_HOLD is the same as a block of its own.
 */
#include <stdio.h>

#include <parataxis/parataxis.h>

static px_sem exclusive = PX_SEM_INIT_BOUNDED(1);

static long long permits(void)
{
    return (long long)px_sem_count(&exclusive);
}

/* The average, computed alone; -1 if there is nothing to compute. */
static int average(const int *values, int n)
{
    int sum = 0;

    PX_SEM_GUARD(permit, &exclusive);
    if (permit.status)
        return permit.status;
    printf("  inside: %lld\n", permits());
    if (n == 0)
        return -1; /* the permit goes back here ... */
    for (int i = 0; i < n; i++)
        sum += values[i];
    return sum / n; /* ... and here */
}

static int body(void *arg)
{
    static const int values[] = {3, 5, 10};
    int result, err;

    (void)arg;
    printf("before: %lld\n", permits());
    result = average(values, 3);
    printf("average %d, after: %lld\n", result, permits());
    result = average(values, 0);
    printf("early return %d, after: %lld\n", result, permits());

    PX_SEM_HOLD(&exclusive, err) {
        printf("  inside: %lld\n", permits());
        break;
    }
    printf("block left by break, after: %lld\n", permits());
    return err;
}

int main(void)
{
    int err = px_run(body, NULL);

    if (err)
        fprintf(stderr, "hold: %s\n", px_strerror(err));
    return err ? 1 : 0;
}
