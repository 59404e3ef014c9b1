/* SPDX-License-Identifier: MIT */
/* px_crowd.c - see px_crowd.h. */
#include "px_crowd.h"

#include <unistd.h>

#include "px_test.h"

#define KIB 1024

static long statm_kib(int which)
{
    long pages[6] = {0};
    FILE *file = fopen("/proc/self/statm", "r");

    if (!file)
        return 0;
    if (fscanf(file, "%ld %ld %ld %ld %ld %ld", &pages[0], &pages[1], &pages[2],
               &pages[3], &pages[4], &pages[5]) != 6)
        pages[which] = 0;
    (void)fclose(file);
    return pages[which] * (sysconf(_SC_PAGESIZE) / KIB);
}

long mapped_kib(void)
{
    return statm_kib(0);
}

long resident_kib(void)
{
    return statm_kib(1);
}

long data_kib(void)
{
    return statm_kib(5);
}

int mappings(void)
{
    int lines = 0;
    int c;
    FILE *file = fopen("/proc/self/maps", "r");

    if (!file)
        return 0;
    while ((c = getc(file)) != EOF)
        lines += c == '\n';
    (void)fclose(file);
    return lines;
}

long most_mappings(void)
{
    long most = 0;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "r");

    if (!file)
        return 0;
    if (fscanf(file, "%ld", &most) != 1)
        most = 0;
    (void)fclose(file);
    return most;
}

/* --- A crowd -------------------------------------------------------------- */

static int join(void *arg)
{
    struct crowd *crowd = arg;
    int place = crowd->gathered++;
    int error = px_sem_down(&crowd->gate);

    EXPECT_EQ(error, 0);
    crowd->out_of_order += place != crowd->ended++;
    return error;
}

int crowd_gather(struct crowd *crowd, int n)
{
    int error = 0;

    for (int i = 0; !error && i < n; i++)
        error = px_spawn(NULL, join, crowd);
    return error;
}

void crowd_release(struct crowd *crowd, int n)
{
    for (int i = 0; i < n; i++) {
        int before = crowd->ended;

        EXPECT_EQ(px_sem_up(&crowd->gate), 0);
        settle();
        EXPECT_EQ(crowd->ended, before + 1);
    }
    EXPECT_EQ(crowd->out_of_order, 0);
}

void crowd_release_all(struct crowd *crowd)
{
    EXPECT_EQ(px_sem_up_n(&crowd->gate, crowd->gathered - crowd->ended), 0);
    settle();
    EXPECT_EQ(crowd->ended, crowd->gathered);
    EXPECT_EQ(px_sem_waiters(&crowd->gate), 0);
}

/* --- At a limit ----------------------------------------------------------- */

struct meeting {
    const struct crowd_limit *limit;
    long mapped; /* at its most */
    long resident;
};

static int meet(void *arg)
{
    struct meeting *meeting = arg;
    const struct crowd_limit *limit = meeting->limit;
    struct crowd crowd = {PX_SEM_INIT(0), 0, 0, 0};
    int fit;

    limit->set();
    EXPECT_EQ(crowd_gather(&crowd, limit->at_most + 1), PX_ENOMEM);
    EXPECT_EQ(crowd_gather(&crowd, 1), PX_ENOMEM); /* and again */
    fit = crowd.gathered;
    EXPECT(fit >= limit->at_least);
    EXPECT(fit <= limit->at_most);
    EXPECT_EQ(px_sem_waiters(&crowd.gate), fit);
    meeting->mapped = mapped_kib();
    meeting->resident = resident_kib();

    /* They go on, and others take their places. */
    crowd_release(&crowd, fit / 2);
    EXPECT_EQ(crowd_gather(&crowd, fit / 2), 0);
    EXPECT_EQ(px_sem_waiters(&crowd.gate), fit);
    crowd_release(&crowd, fit);
    if (limit->lift) {
        EXPECT_EQ(crowd_gather(&crowd, fit), 0);
        EXPECT(crowd_gather(&crowd, 16) != 0 || fit < 16);
        limit->lift();
        EXPECT_EQ(crowd_gather(&crowd, fit), 0);
    }
    crowd_release_all(&crowd);
    return 0;
}

void crowd_meets(const struct crowd_limit *limit)
{
    struct meeting meeting = {limit, 0, 0};
    long mapped = mapped_kib();
    long resident = resident_kib();
    int maps = mappings();

    run_fibers(meet, &meeting);
    if (limit->lift)
        limit->lift();
    /* A sixteenth may stay with malloc, which keeps what it had for records. */
    assert_true(mapped_kib() - mapped < (meeting.mapped - mapped) / 16 + 256);
    assert_true(resident_kib() - resident <
                (meeting.resident - resident) / 16 + 256);
    assert_true(mappings() <= maps + 2);
    assert_log("");
}
