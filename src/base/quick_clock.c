/* SPDX-License-Identifier: MIT */
/* quick_clock.c - measures the counter by the system's clock; watches it. */
#include "base/quick_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MARGIN 512          /* too fast by one part in so many */
#define GOOD (1 * PX_MSEC)  /* how long an answer is used */
#define LEAST (2 * PX_MSEC) /* measured over so long */
#define MOST (PX_SEC / 2)   /* then from a new beginning */
#define APART (3 * PX_USEC) /* what the counter and the system may be */

static bool counter_is_good;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#if defined(__aarch64__)
/* The counter is the clock; the kernel has no other. But an emulator's may be a
 * different clock in disguise, with steps of a microsecond. */
static void look_at_counter(void)
{
    uint64_t from = px__counter(), to = from, frequency;

    __asm__("mrs %0, cntfrq_el0" : "=r"(frequency));
    for (int i = 0; to == from && i < 1000; i++)
        to = px__counter();
    counter_is_good =
        to > from && frequency > 0 &&
        (to - from) * (uint64_t)PX_SEC / frequency < PX_COUNTER_SLACK;
}
#elif defined(__x86_64__) && defined(PR_GET_TSC)
/* The kernel compares the counters of all processors, and with other clocks,
 * before it trusts them. A process may be forbidden to read it. */
static void look_at_counter(void)
{
    static const char path[] =
        "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    char name[8] = "";
    int file = open(path, O_RDONLY | O_CLOEXEC), may = PR_TSC_SIGSEGV;

    if (file < 0)
        return;
    counter_is_good = read(file, name, sizeof(name) - 1) == 4 &&
                      memcmp(name, "tsc\n", 4) == 0 &&
                      prctl(PR_GET_TSC, &may) == 0 && may == PR_TSC_ENABLE;
    (void)close(file);
}
#else
static void look_at_counter(void) {}
#endif

/* Whoever asks for the time has called nothing that may set errno. */
static void once_per_process(void)
{
    int saved = errno;

    look_at_counter();
    errno = saved;
}

/* The time was read after the counter said `before`, and before it said
 * `after`. Of what they leave open the fewest counts are taken: however long an
 * interruption there was, the rate is not too low; where it could be much too
 * high, it is measured for longer. */
static void measure(struct px_quick_clock *clock, uint64_t before,
                    uint64_t after, px_nsec time)
{
    px_nsec passed = time - clock->first_time;
    uint64_t counts = before - clock->first_count;
    uint64_t gaps = after - before + clock->first_gap;

    if (!clock->measures || counts > UINT64_MAX / 2 || passed > MOST) {
        clock->measures = true;
        clock->first_count = after;
        clock->first_gap = after - before;
        clock->first_time = time;
        return;
    }
    if (passed >= LEAST && gaps < counts / (2 * MARGIN)) {
        double rate = (double)passed / (double)counts;

        rate += rate / MARGIN;
        clock->rate = (uint64_t)(rate * 4294967296.0) + 1;
        clock->good = (uint64_t)((double)GOOD / rate);
    }
}

/* Between the two readings of the counter, as far as there is a rate to tell it
 * by. */
static bool was_interrupted(const struct px_quick_clock *clock, uint64_t before,
                            uint64_t after)
{
    return clock->good &&
           (px_nsec)((after - before) * clock->rate >> 32) > APART;
}

px_nsec px__quick_clock_ask(struct px_quick_clock *clock)
{
    uint64_t before, after;
    px_nsec time;

    (void)pthread_once(&once, once_per_process);
    if (clock->refused || !counter_is_good) {
        clock->refused = true;
        clock->good = 0;
        return px__clock_precise();
    }
    before = px__counter();
    time = px__clock_precise();
    after = px__counter();
    /* The time that was read is not after `after`. */
    if (clock->good && after - clock->count < 2 * clock->good &&
        clock->time + (px_nsec)((after - clock->count) * clock->rate >> 32) <
            time) {
        clock->refused = true;
        clock->good = 0;
        return time;
    }
    /* Interrupted in between: what they said does not belong together. */
    if (was_interrupted(clock, before, after))
        return time;
    measure(clock, before, after, time);
    /* The same, now that there is a rate to tell it by. */
    if (was_interrupted(clock, before, after))
        return time;
    clock->count = before;
    clock->time = time;
    return time;
}
