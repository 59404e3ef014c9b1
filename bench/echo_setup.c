/* SPDX-License-Identifier: MIT */
/* echo_setup.c - see echo_setup.h. */
#include "echo_setup.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The client lies beside the executable that runs. */
static FILE *start_client(int port, long each)
{
    char path[4096], command[4200];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    char *slash;

    if (length < 0)
        return NULL;
    path[length] = '\0';
    slash = strrchr(path, '/');
    if (!slash)
        return NULL;
    *slash = '\0';
    (void)snprintf(command, sizeof(command), "exec '%s/echo_client' %d %d %ld",
                   path, port, (int)CONNECTIONS, each);
    return popen(command, "w");
}

int echo_open(struct echo *echo, long n)
{
    long each = (n + CONNECTIONS - 1) / CONNECTIONS;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address;
    socklen_t length = sizeof(address);
    int yes = 1;

    memset(&address, 0, sizeof(address));
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener < 0 ||
        bind(listener, (struct sockaddr *)&address, length) != 0 ||
        listen(listener, CONNECTIONS) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        perror("echo: listen");
        return -1;
    }
    echo->messages = each * CONNECTIONS;
    echo->client = start_client(ntohs(address.sin_port), each);
    if (!echo->client) {
        perror("echo: echo_client");
        return -1;
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0 ||
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) != 0) {
            perror("echo: accept");
            return -1;
        }
        echo->fds[i] = fd;
    }
    (void)close(listener);
    return 0;
}

void echo_start(struct echo *echo)
{
    (void)fputs("go\n", echo->client);
    (void)fflush(echo->client);
}

int echo_end(struct echo *echo)
{
    return pclose(echo->client) == 0 ? 0 : -1;
}
