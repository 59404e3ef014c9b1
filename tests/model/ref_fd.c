/* SPDX-License-Identifier: MIT */
/* ref_fd.c - a descriptor that fibers wait for until it is readable. */
#include "ref.h"

static void wake_all(struct ref *ref, int code)
{
    for (int f; (f = ref_queued(ref, REF_FD, 0)) >= 0;)
        ref_ready(ref, f, code);
}

/* Waiting tells the poller, which then finds out that the number is another
 * file's by now: who waited for the old one waits for nothing. */
static void look(struct ref *ref, int f)
{
    if (ref->readable) {
        ref->fibers[f].verdict = PX_READABLE;
        return;
    }
    if (!ref_may_park(ref, f))
        return;
    if (ref->stale) {
        wake_all(ref, PX_EBADF);
        ref->closings++;
    }
    ref->stale = false;
    ref->known = ref->asked = true;
    ref->fibers[f].closings = ref->closings;
    ref_park(ref, f, REF_FD, 0);
}

void ref_fd_wait(struct ref *ref, int f)
{
    if (ref_point(ref, f))
        look(ref, f);
}

/* What was reported may be over, or of a file that is closed. */
void ref_fd_woken(struct ref *ref, int f)
{
    if (ref->fibers[f].closings != ref->closings)
        ref->fibers[f].verdict = PX_ECLOSED;
    else
        look(ref, f);
}

bool ref_fd_reports(const struct ref *ref)
{
    return ref->readable && ref->asked && !ref->stale &&
           ref_queued(ref, REF_FD, 0) >= 0;
}

void ref_fd_poll(struct ref *ref)
{
    ref->asked = false;
    wake_all(ref, 0);
}

/* And opened again. With px_close() everybody is told. Otherwise it is noticed
 * by a poller that knows files; to poll(2) a number is a number. */
void ref_fd_close(struct ref *ref, bool told)
{
    ref->readable = false;
    if (told) {
        wake_all(ref, PX_ECLOSED);
        ref->closings += ref->known;
        ref->known = ref->stale = ref->asked = false;
    } else {
        ref->stale = ref->known && !ref->by_number;
    }
}
