/* SPDX-License-Identifier: MIT */
/*
 * million.h - the part of workloads.h about a million fibers at once.
 *
 * The figure is what it takes to make one and to run it until it parks; beside
 * it stand the bytes of memory that each has then, and those of page tables,
 * which the kernel does not count to a process's memory. Afterwards all are let
 * go, and each checks that it is its turn.
 */
enum { MILLION = 1000000 };

static int park_once(void *arg)
{
    long *place = (long *)arg;

    *place = shared.present;
    wait_for_start();
    shared.disorder += shared.ended != *place;
    shared.ended++;
    return 0;
}

static void million(struct sample *s)
{
    lib_fiber *fibers = lib_fibers_new(MILLION);
    long *places = (long *)malloc(MILLION * sizeof(*places));
    double memory, tables;
    long made = 0;
    int64_t start;

    begin(0, 0);
    lib_sem_init(&gate, 0);
    memset(places, 1, MILLION * sizeof(*places)); /* ours: in memory now */
    memset((void *)fibers, 0, MILLION * sizeof(*fibers));
    memory = bench_memory("VmRSS");
    tables = bench_memory("VmPTE");
    start = bench_clock();
    while (made < MILLION &&
           lib_spawn(&fibers[made], park_once, &places[made]) == 0)
        made++;
    while (shared.present < made) /* those that do not start at once */
        shared.failures += lib_yield() != 0;
    s->ns = bench_clock() - start;
    s->ops = MILLION;
    bench_extra(s, "rss", (bench_memory("VmRSS") - memory) / MILLION);
    bench_extra(s, "tables", (bench_memory("VmPTE") - tables) / MILLION);
    for (long i = 0; i < made; i++)
        shared.failures += lib_sem_up(&gate) != 0;
    for (long i = 0; i < made; i++)
        shared.failures += lib_await(&fibers[i]) != 0;
    free(places);
    lib_fibers_free(fibers);
    CHECK(s, made == MILLION);
    CHECK(s, shared.failures == 0);
    CHECK(s, shared.disorder == 0);
    CHECK(s, shared.ended == MILLION);
}
