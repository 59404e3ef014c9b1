/* SPDX-License-Identifier: MIT */
/* post.h - fibers that other threads start. */
#ifndef PX_POST_H
#define PX_POST_H

#include "loop.h"

/* Make the loop ready for other threads: 0 or -errno. On its own thread. */
int px__post_open(px_loop *loop);
/* Free it all, once everybody has left. */
void px__post_close(px_loop *loop);
/* For the overflow report: the pool that posted fibers' stacks come from, or
 * NULL. */
const struct px_stack_pool *px__post_stacks(const px_loop *loop);

#endif
