/* SPDX-License-Identifier: MIT */
/* ref_waitgroup.c - the waitgroup: zero and below wake everybody. */
#include "ref.h"

int ref_waitgroup_add(struct ref *ref, int64_t n)
{
    int64_t sum;
    int code;

    if (__builtin_add_overflow(ref->members, n, &sum))
        return PX_EOVERFLOW;
    ref->members = sum;
    code = sum < 0 ? PX_ENEGATIVE : 0;
    for (int f; sum <= 0 && (f = ref_queued(ref, REF_WAITGROUP, 0)) >= 0;)
        ref_ready(ref, f, code);
    return code;
}

static void wait(struct ref *ref, int f)
{
    if (ref->members > 0 && ref_may_park(ref, f))
        ref_park(ref, f, REF_WAITGROUP, 0);
}

void ref_waitgroup_wait(struct ref *ref, int f)
{
    if (!ref_point(ref, f))
        return;
    if (ref->members < 0)
        ref->fibers[f].verdict = PX_ENEGATIVE;
    else
        wait(ref, f);
}

/* Woken, but the count may have risen again meanwhile. */
void ref_waitgroup_woken(struct ref *ref, int f)
{
    wait(ref, f);
}
