/* SPDX-License-Identifier: MIT */
/* ref_fd.c - a descriptor that fibers wait for until it is readable. */
#include "ref.h"

static void wake_all(struct ref *ref, int code)
{
    for (int f; (f = ref_queued(ref, REF_FD, 0)) >= 0;)
        ref_ready(ref, f, code);
}

static void closed(struct ref *ref, int code)
{
    wake_all(ref, code);
    ref->closings++;
    ref->told += code == PX_ECLOSED;
    ref->known = ref->stale = ref->asked = false;
}

/* Waiting tells the poller, which then finds out that the number is another
 * file's by now: who waited for the old one waits for nothing. That may be
 * this one itself, who was woken and waits again. */
static void look(struct ref *ref, int f, bool again)
{
    if (ref->readable) {
        ref->fibers[f].verdict = PX_READABLE;
        return;
    }
    if (ref->stale) {
        closed(ref, PX_EBADF);
        if (again) {
            ref->fibers[f].verdict = PX_EBADF;
            return;
        }
    }
    ref->known = ref->asked = true;
    if (!ref_may_park(ref, f))
        return;
    ref->fibers[f].closings = ref->closings;
    ref->fibers[f].told = ref->told;
    ref_park(ref, f, REF_FD, 0);
}

void ref_fd_wait(struct ref *ref, int f)
{
    if (ref_point(ref, f))
        look(ref, f, false);
}

int ref_fd_closed(const struct ref *ref, int f)
{
    if (ref->fibers[f].closings == ref->closings)
        return 0;
    return ref->fibers[f].told == ref->told ? PX_EBADF : PX_ECLOSED;
}

/* What was reported may be over, or of a file that is closed. */
void ref_fd_woken(struct ref *ref, int f)
{
    int code = ref_fd_closed(ref, f);

    if (code)
        ref->fibers[f].verdict = code;
    else
        look(ref, f, true);
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
    if (told)
        closed(ref, PX_ECLOSED);
    else
        ref->stale = ref->known && !ref->by_number;
}
