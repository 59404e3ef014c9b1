/* SPDX-License-Identifier: MIT */
/*
 * test_io_wakes.c - what the system seldom says: a descriptor that was reported
 * and is not ready after all, and a number higher than the library has room for.
 */
#include <errno.h>
#include <limits.h>

#include "fiber_test.h"
#include "px_test_io.h"

enum { HIGHEST = 8192 * 1024 - 1 }; /* that has a record */

static int lies, told; /* "not ready", so many times; and said */
static bool is_high;

/* What the library calls instead of the system (LINKER:--wrap). */
int __real_poll(struct pollfd *set, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *set, nfds_t n, int timeout);
int __real_connect(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size);

int __wrap_poll(struct pollfd *set, nfds_t n, int timeout)
{
    if (n == 1 && timeout == 0 &&
        (is_high ? set->fd > HIGHEST : set->events == POLLOUT && lies > 0)) {
        lies--;
        told++;
        set->revents = 0;
        return 0;
    }
    return __real_poll(set, n, timeout);
}

/* Under way, as to a host that is far away. */
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size)
{
    int result = __real_connect(fd, address, size);

    if (result == 0) {
        errno = EINPROGRESS;
        result = -1;
    }
    return result;
}

static int connects_though_it_is_not_ready_at_first(void *arg UNUSED)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    EXPECT_EQ(bind(listener, (struct sockaddr *)&address, size), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    lies = 3;
    EXPECT_EQ(px_connect(fd, (struct sockaddr *)&address, size), 0);
    EXPECT_EQ(told, 3);
    EXPECT_EQ(px_write(fd, "x", 1), 1);
    EXPECT_EQ(px_close(fd), 0);
    EXPECT_EQ(px_close(listener), 0);
    return 0;
}

static void a_connect_reported_too_early_waits_on(void **state)
{
    (void)state;
    told = 0;
    check_real(connects_though_it_is_not_ready_at_first);
}

static int waits_on_a_high_number(void *arg UNUSED)
{
    int ends[2];

    is_high = true;
    EXPECT_EQ(px_wait_fd(HIGHEST + 1, PX_READABLE), PX_ENOMEM);
    EXPECT_EQ(px_wait_fd(INT_MAX, PX_READABLE | PX_WRITABLE), PX_ENOMEM);
    is_high = false;
    EXPECT_EQ(px_wait_fd(INT_MAX, PX_READABLE), PX_EBADF);
    EXPECT_EQ(px_close(INT_MAX), PX_EBADF);
    EXPECT_EQ(px_close(HIGHEST + 1), PX_EBADF);
    EXPECT_EQ(px_close(-1), PX_EBADF);
    EXPECT_EQ(px_close(INT_MIN), PX_EBADF);
    open_pipe(ends, 0);
    EXPECT_EQ(px_write(ends[1], "x", 1), 1);
    EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_READABLE);
    close_both(ends);
    return 0;
}

static void a_number_beyond_the_table_is_refused(void **state)
{
    (void)state;
    check(waits_on_a_high_number);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_connect_reported_too_early_waits_on),
    PX_TEST(a_number_beyond_the_table_is_refused),
};

PX_TEST_MAIN(tests)
