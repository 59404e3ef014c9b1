/* SPDX-License-Identifier: MIT */
/* dump.h - every fiber in words: px_dump() and the deadlock report. */
#ifndef PX_DEBUG_DUMP_H
#define PX_DEBUG_DUMP_H

#include <stdio.h>

#include "scheduler.h"

/* The report: the fibers that are parked, and the cycles among their locks. */
void px__dump_deadlock(px_loop *loop, FILE *to);

#endif
