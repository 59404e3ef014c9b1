/* SPDX-License-Identifier: MIT */
/* error.c - names and sentences for codes; one table, in the header's order. */
#include <parataxis/error.h>
#include <parataxis/version.h>

#include <stddef.h>
#include <string.h>

static const struct {
    int code;
    const char *name;
    const char *sentence;
} codes[] = {
    {0, "0", "Success"},
    {PX_EINVAL, "PX_EINVAL", "An argument is not valid, or the order is wrong"},
    {PX_ENOMEM, "PX_ENOMEM",
     "Out of memory, of address space (RLIMIT_AS) or of mappings "
     "(vm.max_map_count)"},
    {PX_EBUSY, "PX_EBUSY", "Somebody has it or waits for it"},
    {PX_EAGAIN, "PX_EAGAIN", "It would have had to wait"},
    {PX_EPERM, "PX_EPERM", "It is not this fiber's to do"},
    {PX_EDEADLK, "PX_EDEADLK", "The fiber would wait for itself"},
    {PX_EOVERFLOW, "PX_EOVERFLOW", "The result would be out of bounds"},
    {PX_ETIMEDOUT, "PX_ETIMEDOUT", "The operation timed out"},
    {PX_ECANCELED, "PX_ECANCELED", "The operation was cancelled"},
    {PX_EBADF, "PX_EBADF", "The descriptor is not open"},
    {PX_EPIPE, "PX_EPIPE", "The reading end has gone"},
    {PX_ENOFIBER, "PX_ENOFIBER", "A wait needs a fiber, and this is none"},
    {PX_ENOTLOCKED, "PX_ENOTLOCKED", "The lock is not held"},
    {PX_ENEGATIVE, "PX_ENEGATIVE", "The waitgroup's counter is below zero"},
    {PX_ECLOSED, "PX_ECLOSED", "It has been closed"},
    {PX_ESTALLED, "PX_ESTALLED",
     "Nothing can wake this fiber: the run is deadlocked"},
};

/* The system's text, without a lock or a locale where the libc has that. */
#ifdef __GLIBC__
#define SYSTEM_TEXT(number) strerrordesc_np(number)
#else
#define SYSTEM_TEXT(number) strerror(number)
#endif

static const char *system_text(int number)
{
    const char *text = SYSTEM_TEXT(number);

    return text ? text : "Unknown error";
}

const char *px_strerror(int code)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (codes[i].code == code)
            return codes[i].sentence;
    }
    return code < 0 && code > PX_ENOFIBER ? system_text(-code)
                                          : "Unknown error";
}

const char *px_err_name(int code)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (codes[i].code == code)
            return codes[i].name;
    }
    return "PX_E?";
}

int px_version(void)
{
    return PX_VERSION_MAJOR * 10000 + PX_VERSION_MINOR * 100 + PX_VERSION_PATCH;
}

const char *px_version_string(void)
{
    return PX_VERSION_STRING;
}
