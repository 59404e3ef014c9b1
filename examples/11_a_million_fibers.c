/* SPDX-License-Identifier: MIT */
/*
 * 11_a_million_fibers.c - what a fiber costs, when there are many.
 *
 *     11_a_million_fibers [-n FIBERS] [-s STACK_KIB]
 *
 * All of them are created, and park in one queue; all are woken, in the order
 * in which they came; all end. A million is the default, with stacks of 64 KiB:
 * that is 69 GiB of addresses and 4.4 GB of memory, as a page is memory only
 * once it has been touched.
 *
 * On a kernel without light guards (Linux before 6.13) two mappings for each
 * guard end it near 32,750. To reach a limit is no accident: px_spawn and its
 * like say PX_ENOMEM, those that exist know nothing of it, and we go on with
 * them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <parataxis/parataxis.h>

static px_sem gate = PX_SEM_INIT(0);
static px_waitgroup group = PX_WAITGROUP_INIT(0);
static long wanted = 1000000, parked, ended, out_of_order;

/* In KiB, as the system counts them; 0 where it does not say. */
struct memory {
    long resident, tables;
};

static struct memory before, full, after;

static struct memory memory_now(void)
{
    struct memory now = {0, 0};
    char line[128];
    FILE *file = fopen("/proc/self/status", "r");

    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "VmRSS:", 6) == 0)
            now.resident = strtol(line + 6, NULL, 10);
        else if (strncmp(line, "VmPTE:", 6) == 0)
            now.tables = strtol(line + 6, NULL, 10);
    }
    if (file)
        fclose(file);
    return now;
}

/* The place in the queue is a local: it lies on the fiber's own stack. */
static int wait_for_the_gate(void *arg)
{
    long place = parked++;
    int err = px_sem_down(&gate);

    (void)arg;
    if (err)
        return err;
    if (place != ended++)
        out_of_order++;
    return 0;
}

static double each(px_nsec time)
{
    return (double)time / (double)parked;
}

static double bytes_each(long kib)
{
    return (double)kib * 1024 / (double)parked;
}

static int body(void *arg)
{
    px_nsec start, created, woken, over;
    int err = 0;

    (void)arg;
    before = memory_now();
    start = px_now();
    for (long i = 0; !err && i < wanted; i++)
        err = px_waitgroup_go(&group, wait_for_the_gate, NULL);
    created = px_now();
    full = memory_now();
    if (err)
        printf("after %ld of %ld: %s\n", parked, wanted, px_strerror(err));
    if (parked == 0)
        return err;
    printf("%ld fibers are parked\n", parked);

    /* They hold their permits at once; they run when we wait. */
    woken = px_now();
    err = px_sem_up_n(&gate, parked);
    over = px_now();
    printf("to create one: %.0f ns\n", each(created - start));
    printf("to wake one: %.1f ns\n", each(over - woken));
    if (!err)
        err = px_waitgroup_wait(&group);
    printf("to run one to its end: %.0f ns\n", each(px_now() - over));
    after = memory_now();
    return err;
}

static void print_memory(const char *when, const struct memory *memory)
{
    printf("%s: %.1f MiB, page tables: %.1f MiB\n", when,
           (double)memory->resident / 1024, (double)memory->tables / 1024);
}

static int run(long stack_kib)
{
    const px_run_options options = {.stack_size = (size_t)stack_kib * 1024};
    int err = px_run_with(&options, body, NULL);

    if (err || parked == 0) {
        fprintf(stderr, "a million fibers: %s\n", px_strerror(err));
        return 1;
    }
    printf("memory of one: %.0f B, page tables: %.0f B\n",
           bytes_each(full.resident - before.resident),
           bytes_each(full.tables - before.tables));
    print_memory("before", &before);
    print_memory("all parked", &full);
    print_memory("all ended", &after);
    after = memory_now();
    print_memory("after the run", &after);
    printf("%ld have ended, %ld of them out of order\n", ended, out_of_order);
    return ended != parked || out_of_order != 0;
}

/* A number above 0; 0 is none. */
static long number(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);

    return *end == '\0' && value > 0 && value <= 1000000000 ? value : 0;
}

int main(int argc, char **argv)
{
    long stack_kib = 64;

    for (int i = 1; i < argc; i += 2) {
        long value = i + 1 < argc ? number(argv[i + 1]) : 0;

        if (value && strcmp(argv[i], "-n") == 0) {
            wanted = value;
        } else if (value && strcmp(argv[i], "-s") == 0) {
            stack_kib = value;
        } else {
            fprintf(stderr, "usage: %s [-n FIBERS] [-s STACK_KIB]\n", argv[0]);
            return 2;
        }
    }
    if (stack_kib < 16)
        printf("stacks of 16 KiB: there are none smaller\n");
    return run(stack_kib);
}
