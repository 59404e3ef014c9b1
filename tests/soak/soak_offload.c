/* SPDX-License-Identifier: MIT */
/*
 * soak_offload.c - a million blocking calls on 64 threads, cut short at every
 * stage: before they are queued, while they are, while they run, and after.
 *
 * What a caller hears is what happened: a value means that its job ran once, a
 * cancellation that it never did and never will. A job lies on its caller's
 * stack, in a frame that is gone as soon as the call has returned: what another
 * thread did to it afterwards would show in the next job there.
 */
#include <sched.h>
#include <stdatomic.h>

#include "soak.h"

enum { CALLERS = 1000, THREADS = 64, STAGES = 6 };

static atomic_int running, most_running;
static atomic_long ran;

static struct {
    int64_t answered[STAGES];
    int64_t cut[STAGES];
    int64_t wrong;
    int64_t jobs; /* of each caller */
} seen;

struct job {
    px_scope scope;
    int value;
    unsigned spins;
    atomic_int begun, runs;
};

static int work(void *arg)
{
    struct job *job = arg;
    int now = atomic_fetch_add(&running, 1) + 1;
    int most = atomic_load(&most_running);

    atomic_store(&job->begun, 1);
    while (now > most &&
           !atomic_compare_exchange_weak(&most_running, &most, now))
        continue;
    for (unsigned i = 0; i < job->spins; i++)
        (void)sched_yield();
    atomic_fetch_add(&job->runs, 1);
    atomic_fetch_add(&ran, 1);
    atomic_fetch_sub(&running, 1);
    return job->value;
}

static int cancels_it_now(void *arg)
{
    struct job *job = arg;

    EXPECT_EQ(px_scope_cancel(&job->scope), 0);
    return 0;
}

static int cancels_it_after_some_turns(void *arg)
{
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(px_yield(), 0);
    return cancels_it_now(arg);
}

static int cancels_it_once_it_runs(void *arg)
{
    struct job *job = arg;

    while (!atomic_load(&job->begun))
        EXPECT_EQ(px_yield(), 0);
    return cancels_it_now(arg);
}

/* Whoever cancels is waited for: it looks at a frame that ends. */
static void call_once(uint64_t *numbers)
{
    uint64_t number = random_below(numbers, 100000);
    int stage = (int)(number % STAGES);
    struct job job = {.value = (int)number, .spins = number % 7 == 0 ? 20 : 0};
    static const px_fn cancellers[STAGES] = {
        [2] = cancels_it_now,
        [3] = cancels_it_after_some_turns,
        [4] = cancels_it_once_it_runs,
    };
    px_spawn_options queued = {.queued = true};
    px_fiber *canceller = NULL;
    int code;

    EXPECT_EQ(px_scope_enter(&job.scope, PX_FOREVER), 0);
    if (stage == 1)
        EXPECT_EQ(px_scope_cancel(&job.scope), 0);
    if (cancellers[stage])
        EXPECT_EQ(px_spawn_with(&canceller, &queued, cancellers[stage], &job),
                  0);
    code = px_offload(work, &job);
    if (stage == 5)
        EXPECT_EQ(px_scope_cancel(&job.scope), 0);
    (void)px_scope_leave(&job.scope);
    if (canceller)
        EXPECT_EQ(px_await(canceller, NULL), 0);
    if (code == PX_ECANCELED)
        seen.cut[stage]++;
    else
        seen.answered[stage]++;
    seen.wrong += code == PX_ECANCELED
                      ? atomic_load(&job.runs) != 0
                      : code != job.value || atomic_load(&job.runs) != 1;
}

static int calls(void *arg)
{
    uint64_t numbers = (uintptr_t)arg;

    for (int64_t i = 0; i < seen.jobs; i++)
        call_once(&numbers);
    return 0;
}

static int all_call(void *arg)
{
    px_waitgroup wg = PX_WAITGROUP_INIT(0);
    int64_t answered = 0, cut = 0;

    (void)arg;
    for (uintptr_t i = 0; i < CALLERS; i++)
        EXPECT_EQ(px_waitgroup_go(&wg, calls, (void *)(i * 1000003)), 0);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    for (int i = 0; i < STAGES; i++) {
        answered += seen.answered[i];
        cut += seen.cut[i];
    }
    print_message("    %lld ran, %lld were taken back: %lld before, %lld and "
                  "%lld while queued; %d at once\n",
                  (long long)answered, (long long)cut, (long long)seen.cut[1],
                  (long long)seen.cut[2], (long long)seen.cut[3],
                  atomic_load(&most_running));
    EXPECT_EQ(seen.wrong, 0);
    EXPECT_EQ(answered + cut, seen.jobs * CALLERS);
    EXPECT_EQ(answered, atomic_load(&ran)); /* none runs behind our back */
    EXPECT_EQ(seen.cut[0] + seen.cut[4] + seen.cut[5], 0);
    EXPECT_EQ(seen.answered[1], 0);
    EXPECT(seen.cut[2] > 0);
    EXPECT(atomic_load(&most_running) <= THREADS);
    return 0;
}

static void a_million_calls_are_answered_or_taken_back(void **state)
{
    px_run_options options = {.offload_threads = THREADS};

    (void)state;
    memset(&seen, 0, sizeof(seen));
    seen.jobs = soak(1000);
    assert_int_equal(run_fibers_with(options, 0, all_call, NULL), 0);
    assert_log("");
    assert_int_equal(atomic_load(&running), 0);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(a_million_calls_are_answered_or_taken_back),
};

PX_TEST_MAIN(tests)
