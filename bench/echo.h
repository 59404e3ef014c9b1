/* SPDX-License-Identifier: MIT */
/*
 * echo.h - the part of workloads.h about TCP: a fiber for each connection.
 *
 * The figure is the time that passes per message, for both ends work at once;
 * beside it stands the CPU time that this end had of it.
 */
#include "echo_setup.h"

#include <sys/types.h>

static long echoed; /* bytes */

static int echo_loop(void *arg)
{
    int fd = *(const int *)arg;
    char message[MESSAGE];
    lib_conn conn;
    ssize_t n;

    shared.failures += lib_conn_open(&conn, fd) != 0;
    while ((n = lib_conn_read(&conn, message, sizeof(message))) > 0) {
        shared.failures += lib_conn_write(&conn, message, (size_t)n) != 0;
        echoed += n;
    }
    shared.failures += n != 0;
    shared.failures += lib_conn_close(&conn) != 0;
    shared.ended++;
    return 0;
}

static void tcp_echo(struct sample *s)
{
    lib_fiber *fibers = lib_fibers_new(CONNECTIONS);
    struct echo echo;
    int64_t start, cpu;

    begin(0, 0);
    echoed = 0;
    if (echo_open(&echo, s->n) != 0) {
        bench_broken(s, "there is no client");
        return;
    }
    start = bench_now();
    cpu = bench_clock();
    for (int i = 0; i < CONNECTIONS; i++)
        shared.failures += lib_spawn(&fibers[i], echo_loop, &echo.fds[i]) != 0;
    echo_start(&echo);
    for (int i = 0; i < CONNECTIONS; i++)
        shared.failures += lib_await(&fibers[i]) != 0;
    s->ns = bench_now() - start;
    s->ops = echo.messages;
    bench_extra(s, "cpu_ns",
                (double)(bench_clock() - cpu) / (double)echo.messages);
    lib_fibers_free(fibers);
    CHECK(s, echo_end(&echo) == 0);
    CHECK(s, shared.failures == 0);
    CHECK(s, shared.ended == CONNECTIONS);
    CHECK(s, echoed == s->ops * MESSAGE);
}
