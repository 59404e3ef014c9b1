/* SPDX-License-Identifier: MIT */
/*
 * 10_echo_server.c - a TCP server and its clients, in one thread.
 *
 * Every connection is a fiber, written as if it blocked. The server keeps its
 * connections in a group: when it is cancelled, none of them outlives it. The
 * clients get five seconds in all, by one deadline around them.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <parataxis/parataxis.h>

enum { CLIENTS = 3, LINE = 64 };

static struct sockaddr_in address; /* where the server listens */

/* Send back what comes, until the client has had enough. */
static int echo(void *arg)
{
    int fd = *(int *)arg, err = 0;
    char bytes[LINE];
    ssize_t got = 0;

    while (!err && (got = px_read(fd, bytes, sizeof(bytes))) > 0)
        err = px_write_all(fd, bytes, (size_t)got, NULL);
    px_close(fd);

    /* Whatever became of this client, the others are still served. */
    return 0;
}

static int serve(void *arg)
{
    const px_spawn_options copy = {.arg_size = sizeof(int)};
    int listener = *(int *)arg, fd, err;
    px_group connections;

    err = px_group_open(&connections);
    while (!err) {
        fd = px_accept(listener, NULL, NULL);
        if (fd < 0) {
            err = fd;
            break;
        }
        err = px_group_spawn_with(&connections, &copy, echo, &fd);
        if (err)
            px_close(fd);
    }
    px_close(listener);
    px_group_cancel(&connections);
    return px_group_wait(&connections);
}

/* A listening socket on a free port of the loopback, or -errno. */
static int listen_anywhere(void)
{
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0)
        return -errno;
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&address, size) != 0 ||
        listen(fd, CLIENTS) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        int err = -errno;

        px_close(fd);
        return err;
    }
    return fd;
}

struct client {
    const char *line;
    char reply[LINE];
};

static struct client clients[CLIENTS] = {
    {"hello, fibers", ""}, {"one thread", ""}, {"no callbacks", ""}};

static int talk(int fd, struct client *client)
{
    size_t length = strlen(client->line), have = 0;
    int err = px_connect(fd, (struct sockaddr *)&address, sizeof(address));

    if (!err)
        err = px_write_all(fd, client->line, length, NULL);
    while (!err && have < length) {
        ssize_t got = px_read(fd, client->reply + have, length - have);

        if (got <= 0)
            err = got < 0 ? (int)got : PX_ECLOSED;
        else
            have += (size_t)got;
    }
    return err;
}

static int visit(size_t i, void *arg)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), err;

    (void)arg;
    if (fd < 0)
        return -errno;
    err = talk(fd, &clients[i]);
    px_close(fd);
    return err;
}

static int body(void *arg)
{
    int listener = listen_anywhere(), err;
    px_fiber *server;

    (void)arg;
    if (listener < 0)
        return listener;
    err = px_spawn(&server, serve, &listener);
    if (err)
        return err;
    PX_WITHIN(limit, 5 * PX_SEC) {
        err = px_map_concurrent(CLIENTS, 0, visit, NULL);
    }
    for (int i = 0; !err && i < CLIENTS; i++)
        printf("%s -> %s\n", clients[i].line, clients[i].reply);
    if (px_cancel_and_await(server, NULL) == 0)
        printf("the server has ended\n");
    return err;
}

int main(void)
{
    int err = px_run(body, NULL);

    if (err)
        fprintf(stderr, "echo: %s\n", px_strerror(err));
    return err ? 1 : 0;
}
