/* SPDX-License-Identifier: MIT */
/*
 * harness.c - measure one row, once, and print it as a line of JSON.
 *
 *     bench_LIBRARY --list             the rows, one a line: name, what, flags
 *     bench_LIBRARY ROW [--ms MS]      measure for about MS milliseconds
 *     bench_LIBRARY ROW --count N      just do N operations (for callgrind)
 *
 * A row is repeated with more and more operations until it takes long enough
 * to be timed; that is the warm-up. The last repetition is the measurement.
 * Nothing is averaged here: run.py runs this program many times, in turns with
 * those of other libraries, and takes medians.
 *
 * Transparent huge pages are off, for every library alike. With them the kernel
 * may clear 2 MiB where a stack is touched for the first time; that decides the
 * cold rows, by luck, and mostly against pools that come from malloc.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

struct job {
    const struct row *row;
    int64_t enough_ns;
    long count;
    struct sample sample;
};

static int64_t read_clock(clockid_t id)
{
    struct timespec t;

    (void)clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t bench_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t bench_clock(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

void bench_broken(struct sample *s, const char *text)
{
    if (!s->broken)
        s->broken = text;
}

void bench_extra(struct sample *s, const char *name, double value)
{
    struct extra *more = s->more[0].name ? &s->more[1] : &s->more[0];

    more->name = name;
    more->value = value;
}

double bench_memory(const char *name)
{
    FILE *status = fopen("/proc/self/status", "r");
    size_t length = strlen(name);
    double kib = 0;
    char line[128];

    while (status && fgets(line, sizeof(line), status)) {
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            kib = atof(line + length + 1);
    }
    if (status)
        (void)fclose(status);
    return kib * 1024;
}

static int by_value(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

int64_t bench_p99(int64_t *values, size_t n)
{
    qsort(values, n, sizeof(*values), by_value);
    return values[(n - 1) - (n - 1) / 100];
}

static void repeat(struct job *job, long n)
{
    struct sample *s = &job->sample;

    s->n = n > job->row->least ? n : job->row->least;
    s->ns = 0;
    s->ops = 0;
    memset(s->more, 0, sizeof(s->more));
    job->row->work(s);
}

/* The main fiber's body. */
static int measure(void *arg)
{
    struct job *job = (struct job *)arg;
    struct sample *s = &job->sample;

    if (job->count > 0 || job->row->flags & ROW_ONCE) {
        repeat(job, job->count);
        return 0;
    }
    repeat(job, 1);
    while (s->ns < job->enough_ns / 4 && !s->broken)
        repeat(job, s->n * 4);
    if (!s->broken) {
        double scale = (double)job->enough_ns / (double)s->ns;

        repeat(job, (long)((double)s->n * scale));
    }
    return 0;
}

static int report(const struct job *job)
{
    const struct sample *s = &job->sample;

    (void)printf("{\"library\":\"%s\",\"version\":\"%s\",\"compiler\":\"%s\","
                 "\"row\":\"%s\",\"ops\":%ld,\"ns\":%.4f",
                 bench.library, bench.version(), COMPILER, job->row->name,
                 s->ops, s->ops > 0 ? (double)s->ns / (double)s->ops : 0.0);
    for (int i = 0; i < 2 && s->more[i].name; i++)
        (void)printf(",\"%s\":%.3f", s->more[i].name, s->more[i].value);
    if (s->instead)
        (void)printf(",\"instead\":\"%s\"", s->instead);
    if (s->note[0])
        (void)printf(",\"note\":\"%s\"", s->note);
    if (s->broken)
        (void)printf(",\"broken\":\"%s\"", s->broken);
    (void)printf("}\n");
    return s->broken ? 1 : 0;
}

static int usage(void)
{
    (void)fprintf(stderr,
                  "usage: bench_%s --list | ROW [--ms MS | --count N]\n",
                  bench.library);
    return 2;
}

int main(int argc, char **argv)
{
    struct job job;
    int code;

    memset(&job, 0, sizeof(job));
    job.enough_ns = 40 * 1000000;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < bench.n_rows; i++)
            (void)printf("%s\t%s\t%d\n", bench.rows[i].name, bench.rows[i].what,
                         bench.rows[i].flags);
        return 0;
    }
    if (argc != 2 && argc != 4)
        return usage();
    if (argc == 4 && strcmp(argv[2], "--ms") == 0)
        job.enough_ns = (int64_t)(atof(argv[3]) * 1e6);
    else if (argc == 4 && strcmp(argv[2], "--count") == 0)
        job.count = atol(argv[3]);
    else if (argc == 4)
        return usage();
    for (size_t i = 0; i < bench.n_rows; i++) {
        if (strcmp(bench.rows[i].name, argv[1]) == 0)
            job.row = &bench.rows[i];
    }
    if (!job.row)
        return usage();
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    code = bench.run(measure, &job, job.row->flags);
    if (code) {
        (void)fprintf(stderr, "bench_%s: the run failed: %d\n", bench.library,
                      code);
        return 1;
    }
    return report(&job);
}
