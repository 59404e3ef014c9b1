/* SPDX-License-Identifier: MIT */
/* deadlock.h - what happens when nothing can wake anybody. */
#ifndef PX_DEADLOCK_H
#define PX_DEADLOCK_H

#include "scheduler.h"

/* px_hooks.on_stall: report it, once per run, then interrupt everybody. */
void px__deadlock(px_loop *loop);

#endif
