/* SPDX-License-Identifier: MIT */
/*
 * export.h - what the compiler is told about every public declaration.
 *
 * PX_API       the symbol is exported; nothing else is.
 * PX_NODISCARD the result says whether anything happened: look at it.
 * PX_CLEANUP   run a function when a variable leaves its scope, on every way
 *              out of it (the guards and block forms are made of this).
 */
#ifndef PARATAXIS_EXPORT_H
#define PARATAXIS_EXPORT_H

#if defined(__has_attribute)
#define PX_HAS_ATTRIBUTE(name) __has_attribute(name)
#else
#define PX_HAS_ATTRIBUTE(name) 0
#endif

/* Calls from outside go straight through the GOT: no stub on the way. */
#if !defined(PX_BUILDING) && !defined(PX_STATIC) && PX_HAS_ATTRIBUTE(noplt)
#define PX_API __attribute__((visibility("default"), noplt))
#else
#define PX_API __attribute__((visibility("default")))
#endif

#define PX_NODISCARD __attribute__((warn_unused_result))
#define PX_CLEANUP(fn) __attribute__((cleanup(fn)))

#define PX_CONCAT_(a, b) a##b
#define PX_CONCAT(a, b) PX_CONCAT_(a, b)

#ifdef __cplusplus
#define PX_BEGIN_DECLS extern "C" {
#define PX_END_DECLS }
#else
#define PX_BEGIN_DECLS
#define PX_END_DECLS
#endif

#endif
