/* SPDX-License-Identifier: MIT */
/* version.h - the version of these headers, and of the library in use. */
#ifndef PARATAXIS_VERSION_H
#define PARATAXIS_VERSION_H

#include <parataxis/export.h>

/* The one place where the version is written: the build reads it here. */
#define PX_VERSION_MAJOR 0
#define PX_VERSION_MINOR 1
#define PX_VERSION_PATCH 0
#define PX_VERSION_STRING "0.1.0"

PX_BEGIN_DECLS

/** The version of the library that is linked: major * 10000 + minor * 100 +
 *  patch. Works everywhere, on any thread. Never parks. */
PX_API int px_version(void);

/** The same as text, "0.1.0". A constant. Never parks. */
PX_API const char *px_version_string(void);

PX_END_DECLS

#endif
