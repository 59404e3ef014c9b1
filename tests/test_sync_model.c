/* SPDX-License-Identifier: MIT */
/*
 * test_sync_model.c - the semaphore, the mutex and the waitgroup against models
 * of themselves.
 *
 * A model is written down from the contract alone: an array in the order of
 * arrival, looked through from the start after every step. Random calls go to
 * both; after each call the count and the queue are the same, and once all
 * fibers have run, so is what every wait returned. Should they ever differ, the
 * seed and the last calls are printed.
 */
#include "support/sync_jobs.h"

enum { MOST = 6, STEPS = 60 };

/* What a fiber waits for, in the model, and what came of it. */
struct wish {
    px_fid id; /* 0: no such fiber yet */
    int64_t want;
    bool takes; /* or only waits for a permit to be there */
    bool queued;
    bool parked;  /* queued, or removed from the queue */
    bool granted; /* a grant that it has not seen */
    int verdict;
    int64_t arrival;
};

struct model {
    struct wish wishes[MOST];
    int64_t count, limit, arrivals;
    bool bounded, closed;
};

/* The real fibers: one place each, used again once its call has returned. */
struct place {
    px_fiber *fiber;
    px_fid id;
    int64_t want;
    bool takes, busy, returned;
    int code;
};

static struct model model;
static struct place places[MOST];
static px_sem sem;
static px_mutex mutex;
static px_waitgroup wg;
static uint64_t seed;

/* Fails the test, and says how to come here again. */
static void tell_difference(int program)
{
    (void)fprintf(stderr, "seed %d: %s\n", program, log_text());
    expect_at(0, "it does what its model does", __FILE__, __LINE__);
    log_clear();
}

static int64_t pick(int64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)n);
}

static struct wish *oldest_after(int64_t arrival)
{
    struct wish *found = NULL;

    for (int i = 0; i < MOST; i++) {
        struct wish *w = &model.wishes[i];

        if (w->queued && w->arrival > arrival &&
            (!found || w->arrival < found->arrival))
            found = w;
    }
    return found;
}

static bool is_passed_over(const struct wish *w)
{
    return model.bounded && w->want > model.limit;
}

static void decide(struct wish *w, int verdict)
{
    w->queued = w->parked = false;
    w->granted = true;
    w->verdict = verdict;
}

static void model_serve(void)
{
    struct wish *w = oldest_after(0);

    while (w) {
        int64_t arrival = w->arrival;

        if (!is_passed_over(w)) {
            if (w->want > model.count)
                return;
            if (w->takes)
                model.count -= w->want;
            decide(w, 0);
        }
        w = oldest_after(arrival);
    }
}

static bool model_can_take(int64_t n)
{
    for (struct wish *w = oldest_after(0); w; w = oldest_after(w->arrival)) {
        if (!is_passed_over(w))
            return false;
    }
    return !model.closed && model.count >= n;
}

static int model_add(int64_t diff)
{
    if (diff > 0 && model.bounded && model.count + diff > model.limit)
        return PX_EOVERFLOW;
    model.count += diff;
    model_serve();
    return 0;
}

/* A wait begins: does it return at once? */
static void model_wait(struct wish *w, px_fid id, int64_t want, bool takes)
{
    memset(w, 0, sizeof(*w));
    w->id = id;
    w->want = want;
    w->takes = takes;
    if (takes && want == 0) {
        decide(w, 0);
    } else if (model.closed) {
        decide(w, PX_ECLOSED);
    } else if (model_can_take(want)) {
        if (takes)
            model.count -= want;
        decide(w, 0);
    } else {
        w->queued = w->parked = true;
        w->arrival = ++model.arrivals;
    }
}

static void model_interrupt(struct wish *w, int code)
{
    if (!w->parked)
        return;
    decide(w, code);
    model_serve();
}

static int wait_at_place(void *arg)
{
    struct place *p = arg;

    p->id = px_current_id();
    p->code =
        p->takes ? px_sem_down_n(&sem, p->want) : px_sem_wait_available(&sem);
    p->returned = true;
    return 0;
}

static int expected_ids(px_fid *ids)
{
    int n = 0;

    for (struct wish *w = oldest_after(0); w; w = oldest_after(w->arrival))
        ids[n++] = w->id;
    return n;
}

static bool same_queue(void)
{
    px_fid real[MOST] = {0}, ours[MOST] = {0};
    int n = expected_ids(ours);

    return px_sem_count(&sem) == model.count &&
           px_sem_waiter_ids(&sem, real, MOST) == (size_t)n &&
           px_sem_waiters(&sem) == (size_t)n &&
           memcmp(real, ours, sizeof(real)) == 0;
}

/* All have run: every wait that the model decided has returned just so. */
static bool same_results(void)
{
    bool same = true;

    for (int i = 0; i < MOST; i++) {
        struct place *p = &places[i];
        struct wish *w = &model.wishes[i];

        if (!p->busy)
            continue;
        same = same && p->returned == w->granted &&
               (!p->returned || p->code == w->verdict);
        if (p->returned) {
            same = same && px_detach(p->fiber) == 0;
            memset(p, 0, sizeof(*p));
            memset(w, 0, sizeof(*w));
        }
    }
    return same;
}

static bool new_wait(void)
{
    int i = 0;

    while (i < MOST && places[i].busy)
        i++;
    if (i == MOST)
        return true;
    places[i].busy = true;
    places[i].takes = pick(4) != 0;
    places[i].want = places[i].takes ? pick(6) : 1;
    note("wait %d for %d%s; ", i, (int)places[i].want,
         places[i].takes ? "" : " there");
    places[i].fiber = start_handle(wait_at_place, &places[i]);
    model_wait(&model.wishes[i], places[i].id, places[i].want, places[i].takes);
    return true;
}

/* One random call, to the semaphore and to the model: the same answer? */
static bool step(void)
{
    int i = (int)pick(MOST);
    int64_t n = pick(5);
    int expected = 0;

    switch (pick(13)) {
    default:
        return new_wait();
    case 4:
        note("up %d; ", (int)n);
        expected = n == 0 ? 0 : model_add(n);
        return px_sem_up_n(&sem, n) == expected;
    case 5:
        note("try %d; ", (int)n);
        if (n > 0 && model.closed)
            expected = PX_ECLOSED;
        else if (n > 0 && !model_can_take(n))
            expected = PX_EAGAIN;
        else
            model.count -= n;
        return px_sem_try_down_n(&sem, n) == expected;
    case 6:
        n = pick(9) - 4;
        note("adjust %d; ", (int)n);
        expected = model_add(n);
        return px_sem_adjust(&sem, n) == expected;
    case 7:
    case 8:
        note("limit %d; ", (int)n);
        if (model.bounded) {
            model.count += n - model.limit;
            model.limit = n;
            model_serve();
        } else {
            expected = PX_EINVAL;
        }
        return px_sem_set_limit(&sem, n) == expected;
    case 9:
    case 10:
        if (!places[i].busy)
            return true;
        note("cancel %d; ", i);
        model_interrupt(&model.wishes[i], PX_ECANCELED);
        return px_cancel(places[i].fiber) == 0;
    case 11:
        if (!places[i].busy)
            return true;
        note("remove %d; ", i);
        expected = model.wishes[i].queued;
        model.wishes[i].queued = false;
        if (expected)
            model_serve();
        return px_sem_remove_waiter(&sem, places[i].id) == (size_t)expected;
    case 12:
        if (pick(10) != 0)
            return true;
        note("close; ");
        model.closed = true;
        for (struct wish *w = oldest_after(0); w; w = oldest_after(w->arrival))
            decide(w, PX_ECLOSED);
        return px_sem_close(&sem) == 0;
    }
}

static void begin_both(void)
{
    int64_t count = pick(6) - 1;

    memset(&model, 0, sizeof(model));
    memset(places, 0, sizeof(places));
    model.bounded = pick(2);
    model.count = count;
    if (model.bounded) {
        model.count = model.limit = count < 1 ? 1 : count;
        EXPECT_EQ(px_sem_init_bounded(&sem, count), 0);
    } else {
        EXPECT_EQ(px_sem_init(&sem, count), 0);
    }
    note("%s %d: ", model.bounded ? "bounded" : "unbounded", (int)model.count);
}

/* End what still waits, so that the next program starts with nothing. */
static bool end_both(void)
{
    for (int i = 0; i < MOST; i++) {
        if (places[i].busy)
            EXPECT_EQ(px_cancel(places[i].fiber), 0);
        model_interrupt(&model.wishes[i], PX_ECANCELED);
    }
    settle();
    return same_results() && same_queue() && px_sem_waiters(&sem) == 0 &&
           px_sem_destroy(&sem) == 0;
}

static bool run_program(void)
{
    begin_both();
    for (int i = 0; i < STEPS; i++) {
        if (!step() || !same_queue())
            return false;
        if (pick(3) == 0) {
            settle();
            if (!same_results() || !same_queue())
                return false;
        }
    }
    settle();
    return same_results() && end_both();
}

IN_RUN(a_semaphore_does_what_its_model_does)
{
    int programs = times(2000, 200);

    for (int i = 1; i <= programs; i++) {
        seed = (uint64_t)i;
        if (!run_program()) {
            tell_difference(i);
            EXPECT_EQ(px_stop(), 0);
            return;
        }
        log_clear();
    }
}

/* The mutex: fibers that lock, and then do as they are told. */

struct locker {
    px_fiber *fiber;
    px_fid id;
    px_sem told; /* to unlock and end */
    bool busy, returned, cancelled;
    int code;
};

static struct locker lockers[MOST];
static int queue[MOST], queued, owner; /* the model; owner is -1 if free */

static int lock_and_wait_to_be_told(void *arg)
{
    struct locker *l = arg;

    l->id = px_current_id();
    l->code = px_mutex_lock(&mutex);
    l->returned = true;
    if (l->code != 0)
        return 0;
    l->code = px_sem_down(&l->told);
    EXPECT_EQ(px_mutex_unlock(&mutex), 0);
    return 0;
}

static void model_leaves(int who)
{
    int left = 0;

    for (int i = 0; i < queued; i++) {
        if (queue[i] != who)
            queue[left++] = queue[i];
    }
    queued = left;
}

static void model_unlock(void)
{
    owner = -1;
    if (queued > 0) {
        owner = queue[0];
        model_leaves(owner);
    }
}

static bool same_mutex(void)
{
    px_fid real[MOST];
    size_t n = px_mutex_waiter_ids(&mutex, real, MOST);
    bool same =
        n == (size_t)queued &&
        px_mutex_owner(&mutex) == (owner < 0 ? PX_NO_FIBER : lockers[owner].id);

    for (int i = 0; same && i < queued; i++)
        same = real[i] == lockers[queue[i]].id;
    return same;
}

static void new_locker(int i)
{
    struct locker *l = &lockers[i];

    memset(l, 0, sizeof(*l));
    l->busy = true;
    note("lock %d; ", i);
    if (owner < 0)
        owner = i;
    else
        queue[queued++] = i;
    l->fiber = start_handle(lock_and_wait_to_be_told, l);
}

static bool lock_step(void)
{
    int i = (int)pick(MOST);

    if (!lockers[i].busy) {
        new_locker(i);
        return same_mutex();
    }
    if (pick(2) == 0) {
        /* A waiter leaves at once. The owner runs, and unlocks. */
        if (lockers[i].cancelled)
            return true;
        note("cancel %d; ", i);
        EXPECT_EQ(px_cancel(lockers[i].fiber), 0);
        lockers[i].cancelled = true;
        if (owner == i)
            settle();
    } else {
        if (owner != i || !lockers[i].returned)
            return true;
        note("unlock %d; ", i);
        EXPECT_EQ(px_sem_up(&lockers[i].told), 0);
        settle();
    }
    if (owner != i)
        model_leaves(i);
    while (owner >= 0 && (owner == i || lockers[owner].cancelled))
        model_unlock();
    return same_mutex();
}

static void forget_ended_lockers(void)
{
    settle();
    for (int i = 0; i < MOST; i++) {
        if (lockers[i].busy && px_is_done(lockers[i].fiber)) {
            EXPECT_EQ(px_detach(lockers[i].fiber), 0);
            lockers[i].busy = false;
        }
    }
}

IN_RUN(a_mutex_does_what_its_model_does)
{
    int programs = times(700, 100);

    for (int i = 1; i <= programs; i++) {
        bool same = true;

        seed = (uint64_t)i;
        memset(lockers, 0, sizeof(lockers));
        queued = 0;
        owner = -1;
        EXPECT_EQ(px_mutex_init(&mutex), 0);
        for (int s = 0; same && s < STEPS; s++) {
            same = lock_step();
            if (pick(2) == 0)
                forget_ended_lockers();
        }
        for (int w = 0; w < MOST; w++) {
            if (lockers[w].busy)
                EXPECT_EQ(px_cancel(lockers[w].fiber), 0);
        }
        forget_ended_lockers();
        same = same && px_mutex_destroy(&mutex) == 0;
        if (!same) {
            tell_difference(i);
            return;
        }
        log_clear();
    }
}

/* The waitgroup: its waiters return at a zero they find when they run. */

struct reader {
    px_fiber *fiber;
    px_fid id;
    bool busy, queued, returned;
    int code, expected;
};

static struct reader readers[MOST];

static int wait_and_keep_the_code(void *arg)
{
    struct reader *r = arg;

    r->id = px_current_id();
    r->code = px_waitgroup_wait(&wg);
    r->returned = true;
    return 0;
}

static bool same_readers(int64_t count)
{
    size_t waiting = 0;
    bool same = px_waitgroup_count(&wg) == count;

    settle();
    for (int i = 0; i < MOST; i++) {
        struct reader *r = &readers[i];

        if (!r->busy)
            continue;
        waiting += r->queued;
        same = same && r->returned == !r->queued &&
               (r->queued || r->code == r->expected);
        if (r->returned) {
            EXPECT_EQ(px_detach(r->fiber), 0);
            r->busy = false;
        }
    }
    return same && px_waitgroup_waiters(&wg) == waiting;
}

static bool wg_step(int64_t *count)
{
    int i = (int)pick(MOST);
    int64_t n = pick(7) - 3;

    if (pick(2) == 0) {
        note("add %d; ", (int)n);
        *count += n;
        for (int w = 0; w < MOST; w++) {
            if (readers[w].queued && *count <= 0) {
                readers[w].queued = false;
                readers[w].expected = *count < 0 ? PX_ENEGATIVE : 0;
            }
        }
        return px_waitgroup_add(&wg, n) == (*count < 0 ? PX_ENEGATIVE : 0) &&
               same_readers(*count);
    }
    if (readers[i].busy) {
        note("cancel %d; ", i);
        EXPECT_EQ(px_cancel(readers[i].fiber), 0);
        readers[i].queued = false;
        readers[i].expected = PX_ECANCELED;
        return same_readers(*count);
    }
    note("wait %d; ", i);
    memset(&readers[i], 0, sizeof(readers[i]));
    readers[i].busy = true;
    readers[i].queued = *count > 0;
    readers[i].expected = *count < 0 ? PX_ENEGATIVE : 0;
    readers[i].fiber = start_handle(wait_and_keep_the_code, &readers[i]);
    return same_readers(*count);
}

IN_RUN(a_waitgroup_does_what_its_model_does)
{
    int programs = times(700, 100);

    for (int i = 1; i <= programs; i++) {
        int64_t count;
        bool same = true;

        seed = (uint64_t)i;
        count = pick(3);
        memset(readers, 0, sizeof(readers));
        EXPECT_EQ(px_waitgroup_init(&wg, count), 0);
        for (int s = 0; same && s < STEPS; s++)
            same = wg_step(&count);
        for (int w = 0; w < MOST; w++) {
            if (!readers[w].busy)
                continue;
            EXPECT_EQ(px_cancel(readers[w].fiber), 0);
            readers[w].queued = false;
            readers[w].expected = PX_ECANCELED;
        }
        same = same_readers(count) && same && px_waitgroup_destroy(&wg) == 0;
        if (!same) {
            tell_difference(i);
            return;
        }
        log_clear();
    }
}

static const struct CMUnitTest sync_model_tests[] = {
    PX_TEST(a_semaphore_does_what_its_model_does),
    PX_TEST(a_mutex_does_what_its_model_does),
    PX_TEST(a_waitgroup_does_what_its_model_does),
};

PX_TEST_MAIN(sync_model_tests)
