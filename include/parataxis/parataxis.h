/* SPDX-License-Identifier: MIT */
/* parataxis.h - all of libparataxis: fibers on one thread, and ways to meet. */
#ifndef PARATAXIS_PARATAXIS_H
#define PARATAXIS_PARATAXIS_H

#include <parataxis/cancel.h>
#include <parataxis/clock.h>
#include <parataxis/error.h>
#include <parataxis/export.h>
#include <parataxis/group.h>
#include <parataxis/io.h>
#include <parataxis/offload.h>
#include <parataxis/scheduler.h>
#include <parataxis/semaphore.h>
#include <parataxis/sync_mutex.h>
#include <parataxis/timeout.h>
#include <parataxis/types.h>
#include <parataxis/version.h>
#include <parataxis/waitgroup.h>

#endif
