/* SPDX-License-Identifier: MIT */
/*
 * 09_map_concurrent.c - do it for each of a list, N at a time.
 *
 * px_map_concurrent() starts the calls in order, at most four at once here, and
 * returns when all have ended. The first that fails cancels the others.
 */
#include <stdio.h>

#include <parataxis/parataxis.h>

enum { NUMBERS = 32, PAGES = 8, AT_ONCE = 4 };

/* How many steps i + 1 takes to 1 (halve it, or triple it and add one). */
static int count_steps(size_t i, void *arg)
{
    int *steps = arg, err = 0;
    size_t n = i + 1;

    for (steps[i] = 0; n != 1 && !err; steps[i]++) {
        n = n % 2 ? 3 * n + 1 : n / 2;
        err = px_yield();
    }
    return err;
}

struct crawl {
    int fetched, cancelled;
};

/* Each page takes 10 ms; the fourth is missing, which shows after 5 ms. */
static int fetch(size_t page, void *arg)
{
    struct crawl *crawl = arg;
    int err = px_sleep((page == 3 ? 5 : 10) * PX_MSEC);

    if (err) {
        crawl->cancelled++;
        return err;
    }
    if (page == 3)
        return PX_EPERM;
    crawl->fetched++;
    return 0;
}

static int body(void *arg)
{
    int steps[NUMBERS], err;
    struct crawl crawl = {0, 0};

    (void)arg;
    err = px_map_concurrent(NUMBERS, AT_ONCE, count_steps, steps);
    if (err)
        return err;
    printf("steps:");
    for (int i = 0; i < NUMBERS; i++)
        printf(" %d", steps[i]);
    printf("\n");

    err = px_map_concurrent(PAGES, AT_ONCE, fetch, &crawl);
    printf("the crawl: %s; %d fetched, %d cancelled, %d not begun\n",
           px_err_name(err), crawl.fetched, crawl.cancelled,
           PAGES - 1 - crawl.fetched - crawl.cancelled);
    return 0;
}

int main(void)
{
    const px_run_options options = {.clock = PX_CLOCK_VIRTUAL};
    int err = px_run_with(&options, body, NULL);

    if (err)
        fprintf(stderr, "map: %s\n", px_strerror(err));
    return err ? 1 : 0;
}
