/* SPDX-License-Identifier: MIT */
/*
 * test_io_numbers.c - descriptors by number: those that are none, and those
 * that are higher than the library has room for. Few systems let a process have
 * one.
 */
#include <limits.h>

#include "fiber_test.h"
#include "px_test_io.h"

enum { HIGHEST = 8192 * 1024 - 1 }; /* that has a record */

static bool is_high; /* such a number is one of an open file, not ready */

/* What the library calls instead of the system (LINKER:--wrap). */
int __real_poll(struct pollfd *set, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *set, nfds_t n, int timeout);

int __wrap_poll(struct pollfd *set, nfds_t n, int timeout)
{
    if (n == 1 && timeout == 0 && is_high && set->fd > HIGHEST) {
        set->revents = 0;
        return 0;
    }
    return __real_poll(set, n, timeout);
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
    PX_TEST(a_number_beyond_the_table_is_refused),
};

PX_TEST_MAIN(tests)
