/* SPDX-License-Identifier: MIT */
/* offload.h - the pool of threads behind px_offload(). */
#ifndef PX_OFFLOAD_H
#define PX_OFFLOAD_H

#include "scheduler.h"

/* Join the threads; at the end of the run, when no call is left. */
void px__offload_close(px_loop *loop);

#endif
