/* SPDX-License-Identifier: MIT */
/* io.h - the descriptors that the fibers of a loop wait for. */
#ifndef PX_IO_H
#define PX_IO_H

#include <parataxis/io.h>

#include "scheduler.h"

/* Park until a signalfd may be readable: 0, or a code. */
int px__io_park_for_signal(px_fiber *self, int fd);
/* Wake whoever waits for a descriptor with `code`, and have nothing of it
 * registered: PX_ECLOSED where it is closed for its user, PX_EBADF where it is
 * found to be closed. A NULL loop has none. */
void px__io_forget(px_loop *loop, int fd, int code);
/* The number of the descriptor that a fiber is parked on. */
int px__io_number(const px_fiber *fiber);
/* Free the table; at the end of the run. */
void px__io_close(px_loop *loop);

#endif
