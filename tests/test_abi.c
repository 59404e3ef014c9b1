/* SPDX-License-Identifier: MIT */
/*
 * test_abi.c - what the machine and the C library promise a function holds in
 * a fiber too: registers that calls keep, alignment of the stack, the
 * floating-point control words, errno, thread-locals, the signal mask, and an
 * end to every backtrace.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>
#include <unwind.h>

#include "support/px_scale.h"
#include "support/px_test.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#define REGISTERS 6
#elif defined(__aarch64__)
#define REGISTERS 19
#else
#define REGISTERS 0
#endif

/* abi_asm.S */
int px_abi_hold(int (*fn)(void *), void *arg, const uint64_t *marks);
int px_abi_entry(void *arg);

static void note_skip(const char *why)
{
    print_message("skipped: %s\n", why);
    skip();
}

static px_spawn_options spawn_defaults(void)
{
    px_spawn_options options;

    memset(&options, 0, sizeof(options));
    return options;
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* --- Registers ------------------------------------------------------------ */

#if REGISTERS > 0

struct holder {
    uint64_t marks[REGISTERS];
    px_sem *gate;
    px_mutex *lock;
};

static void set_marks(struct holder *self, unsigned number)
{
    for (unsigned i = 0; i < REGISTERS; i++)
        self->marks[i] = 0x0101010101010101u * (number + 1) + 0x9e3779b9u * i;
}

/* The parking calls themselves are what is called with marked registers. */
static int call_yield(void *arg)
{
    (void)arg;
    return px_yield();
}

static int call_spawn(void *arg)
{
    return px_spawn(NULL, call_yield, arg);
}

static int call_lock(void *arg)
{
    return px_mutex_lock(arg);
}

static int call_down(void *arg)
{
    return px_sem_down(arg);
}

static int call_sleep(void *arg)
{
    return px_sleep(*(px_nsec *)arg);
}

static int call_await(void *arg)
{
    return px_await(arg, NULL);
}

static int hold_across_all(void *arg)
{
    struct holder *self = arg;
    px_nsec nap = 3;

    for (int turn = 0; turn < 20; turn++) {
        EXPECT_EQ(px_abi_hold(call_yield, NULL, self->marks), 0);
        EXPECT_EQ(px_abi_hold((int (*)(void *))(void (*)(void))px_yield, NULL,
                              self->marks),
                  0);
        EXPECT_EQ(px_abi_hold(call_spawn, NULL, self->marks), 0);
        nap = 1 + (px_current_id() + turn) % 5;
        EXPECT_EQ(px_abi_hold(call_sleep, &nap, self->marks), 0);
        EXPECT_EQ(px_abi_hold(call_lock, self->lock, self->marks), 0);
        EXPECT_EQ(px_abi_hold(call_yield, NULL, self->marks), 0);
        EXPECT_EQ(px_mutex_unlock(self->lock), 0);
        EXPECT_EQ(px_abi_hold(call_down, self->gate, self->marks), 0);
        EXPECT_EQ(px_sem_up(self->gate), 0);
        EXPECT_EQ(px_abi_hold(call_await, start_handle(call_yield, NULL),
                              self->marks),
                  0);
    }
    return 0;
}

static int hold_together(void *arg)
{
    static struct holder holders[8];
    px_sem gate = PX_SEM_INIT(2);
    px_mutex lock = PX_MUTEX_INIT;
    px_fiber *all[7];

    (void)arg;
    for (unsigned i = 0; i < 8; i++) {
        set_marks(&holders[i], i);
        holders[i].gate = &gate;
        holders[i].lock = &lock;
    }
    for (int i = 0; i < 7; i++)
        all[i] = start_handle(hold_across_all, &holders[i]);
    EXPECT_EQ(hold_across_all(&holders[7]), 0);
    EXPECT_EQ(px_await_all(all, 7, NULL), 0);
    return 0;
}

static int run_again(void *arg)
{
    (void)arg;
    return px_run(hold_together, NULL);
}

static void
R134_registers_that_calls_keep_are_kept_across_switches(void **state)
{
    (void)state;
    run_fibers(hold_together, NULL);
    assert_log("");
}

static void R134_registers_are_kept_across_a_run(void **state)
{
    struct holder holder;

    (void)state;
    set_marks(&holder, 42);
    assert_int_equal(px_abi_hold(run_again, NULL, holder.marks), 0);
    assert_log("");
}

#else

static void
R134_registers_that_calls_keep_are_kept_across_switches(void **state)
{
    (void)state;
    note_skip("registers are known by name for x86-64 and AArch64 only");
}

static void R134_registers_are_kept_across_a_run(void **state)
{
    (void)state;
    note_skip("registers are known by name for x86-64 and AArch64 only");
}

#endif

/* A sum whose terms and partial results the compiler likes to keep in
 * registers, with a switch in the middle of it. */
static __attribute__((noinline)) double sum_of(double from, int switches)
{
    double a = from, b = from * 0.5, c = from * 0.25, d = from * 0.125;
    double e = from + 1, f = from + 2, g = from + 3, h = from + 4;

    for (int i = 0; i < 1000; i++) {
        a += b * 0.5;
        b += c * 0.25;
        c += d * 0.125;
        d += e * 1e-3;
        e += f * 1e-3;
        f += g * 1e-3;
        g += h * 1e-3;
        h += a * 1e-6;
        if (switches && i % 10 == 0 && px_yield() != 0)
            return 0;
    }
    return a + b + c + d + e + f + g + h;
}

static int sum_and_switch(void *arg)
{
    double *from = arg;

    *from = sum_of(*from, 1);
    return 0;
}

static int sum_together(void *arg)
{
    double sums[8];
    px_fiber *all[8];

    (void)arg;
    for (int i = 0; i < 8; i++) {
        sums[i] = i;
        all[i] = start_handle(sum_and_switch, &sums[i]);
    }
    EXPECT_EQ(px_await_all(all, 8, NULL), 0);
    for (int i = 0; i < 8; i++)
        EXPECT(sums[i] == sum_of(i, 0));
    return 0;
}

static void R134_sums_are_the_same_with_switches_in_between(void **state)
{
    (void)state;
    run_fibers(sum_together, NULL);
    assert_log("");
}

/* --- Alignment of the stack ----------------------------------------------- */

#if defined(__x86_64__)
#define ENTRY_OFFSET 8 /* the return address is on the stack */
#else
#define ENTRY_OFFSET 0
#endif

static int align_locals(void *arg)
{
    _Alignas(16) volatile char a[16] = {1};
    _Alignas(32) volatile char b[32] = {2};
    _Alignas(64) volatile char c[64] = {3};
    char text[32];

    (void)arg;
    EXPECT_EQ((uintptr_t)a % 16, 0);
    EXPECT_EQ((uintptr_t)b % 32, 0);
    EXPECT_EQ((uintptr_t)c % 64, 0);
    (void)snprintf(text, sizeof(text), "%f", 1.5 + a[0]); /* uses movaps */
    EXPECT(strcmp(text, "2.500000") == 0);
    return 0;
}

static int align_everywhere(void *arg)
{
    static const size_t sizes[] = {0,     1,     16384, 16385,
                                   16399, 20001, 65537, 99999};
    px_spawn_options options = spawn_defaults();
    char bytes[64] = {0};

    (void)arg;
    EXPECT_EQ(align_locals(NULL), 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (size_t n = 0; n < 40; n++) {
            options.stack_size = sizes[i];
            options.queued = n % 2;
            options.arg_size = n;
            EXPECT_EQ(px_spawn_with(NULL, &options, align_locals, bytes), 0);
        }
    }
    return 0;
}

static void R135_a_fibers_locals_are_aligned(void **state)
{
    (void)state;
    run_fibers(align_everywhere, NULL);
    assert_log("");
}

#if REGISTERS > 0

static int enter_everywhere(void *arg)
{
    static const size_t sizes[] = {0,     1,     16384, 16385,
                                   16399, 20001, 65537, 99999};
    px_spawn_options options = spawn_defaults();
    px_group group;

    (void)arg;
    EXPECT_EQ(px_group_open(&group), 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int n = 0; n < 4; n++) {
            px_fiber *fiber = NULL;
            uintptr_t entered[2] = {0, 0};

            options.stack_size = sizes[i];
            options.queued = n % 2;
            EXPECT_EQ(
                px_spawn_with(&fiber, &options, px_abi_entry, &entered[0]), 0);
            EXPECT_EQ(px_await(fiber, NULL), 0);
            options.queued = false;
            EXPECT_EQ(px_group_spawn_with(&group, &options, px_abi_entry,
                                          &entered[1]),
                      0);
            for (int k = 0; k < 2; k++) {
                EXPECT(entered[k] != 0);
                EXPECT_EQ((entered[k] + ENTRY_OFFSET) % 16, 0);
            }
        }
    }
    return px_group_wait(&group);
}

static void R135_the_stack_is_aligned_at_entry(void **state)
{
    uintptr_t entered = 0;

    (void)state;
    run_fibers(enter_everywhere, NULL);
    assert_int_equal(px_run(px_abi_entry, &entered), 0);
    assert_int_not_equal(entered, 0);
    assert_int_equal((entered + ENTRY_OFFSET) % 16, 0);
    assert_log("");
}

#else

static void R135_the_stack_is_aligned_at_entry(void **state)
{
    (void)state;
    note_skip("the entry is looked at on x86-64 and AArch64 only");
}

#endif

/* --- Floating-point control ----------------------------------------------- */

static int check_nearest(void *arg)
{
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(fegetround(), FE_TONEAREST);
        EXPECT_EQ(px_yield(), 0);
    }
    (void)arg;
    return 0;
}

static int round_upward(void *arg)
{
    volatile double one = 1, three = 3;
    double before;

    EXPECT_EQ(fesetround(FE_UPWARD), 0);
    before = one / three;
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(px_yield(), 0);
        EXPECT_EQ(fegetround(), FE_UPWARD);
        EXPECT(one / three == before);
        EXPECT_EQ(px_sleep(1), 0);
        EXPECT_EQ(fegetround(), FE_UPWARD);
        EXPECT_EQ(px_sem_down(arg), 0);
        EXPECT_EQ(fegetround(), FE_UPWARD);
    }
    return 0;
}

static int round_downward(void *arg)
{
    EXPECT_EQ(fesetround(FE_DOWNWARD), 0);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(px_sleep(1), 0);
        EXPECT_EQ(fegetround(), FE_DOWNWARD);
        EXPECT_EQ(px_sem_up(arg), 0);
    }
    return 0; /* and ends so */
}

static int round_differently(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_fiber *all[3];

    (void)arg;
    all[0] = start_handle(round_upward, &sem);
    EXPECT_EQ(fegetround(), FE_TONEAREST);
    all[1] = start_handle(round_downward, &sem);
    EXPECT_EQ(fegetround(), FE_TONEAREST);
    all[2] = start_handle(check_nearest, NULL);
    EXPECT_EQ(check_nearest(NULL), 0);
    EXPECT_EQ(px_await_all(all, 3, NULL), 0);
    EXPECT_EQ(fegetround(), FE_TONEAREST);
    return 0;
}

static void R133_each_fiber_has_its_own_rounding_mode(void **state)
{
    (void)state;
    run_fibers(round_differently, NULL);
    assert_int_equal(fegetround(), FE_TONEAREST);
    assert_log("");
}

static int note_rounding(void *arg)
{
    int mode = fegetround();

    note("%s:%s ", (const char *)arg,
         mode == FE_UPWARD       ? "up"
         : mode == FE_DOWNWARD   ? "down"
         : mode == FE_TOWARDZERO ? "zero"
                                 : "nearest");
    return 0;
}

static int inherit_rounding(void *arg)
{
    px_spawn_options queued = spawn_defaults();
    px_group group;
    px_waitgroup wg = PX_WAITGROUP_INIT(0);
    px_fiber *fiber = NULL;

    (void)arg;
    EXPECT_EQ(fesetround(FE_DOWNWARD), 0);
    start(note_rounding, "child");
    queued.queued = true;
    EXPECT_EQ(px_spawn_with(&fiber, &queued, note_rounding, "queued"), 0);
    EXPECT_EQ(fesetround(FE_UPWARD), 0); /* not what it was spawned under */
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, note_rounding, "group"), 0);
    EXPECT_EQ(px_group_wait(&group), 0);
    EXPECT_EQ(px_waitgroup_go(&wg, note_rounding, "go"), 0);
    EXPECT_EQ(px_waitgroup_wait(&wg), 0);
    EXPECT_EQ(fegetround(), FE_UPWARD);
    return 0;
}

static void R133_the_rounding_mode_is_inherited_from_the_spawner(void **state)
{
    (void)state;
    run_fibers(inherit_rounding, NULL);
    assert_log("child:down queued:down group:up go:up ");
}

static int change_and_return(void *arg)
{
    start(note_rounding, "main's child");
    EXPECT_EQ(note_rounding("main"), 0);
    EXPECT_EQ(fesetround(FE_UPWARD), 0);
    (void)arg;
    return 0;
}

static void R133_a_run_gives_its_caller_back_its_own_mode(void **state)
{
    int mode;

    (void)state;
    assert_int_equal(fesetround(FE_TOWARDZERO), 0);
    run_fibers(change_and_return, NULL);
    mode = fegetround();
    (void)fesetround(FE_TONEAREST);
    assert_int_equal(mode, FE_TOWARDZERO);
    assert_log("main's child:zero main:zero ");
}

/* All the bits that control, and none of the sticky ones. */
static uint64_t control_bits(void)
{
#if defined(__x86_64__)
    uint16_t x87;

    __asm__ volatile("fnstcw %0" : "=m"(x87));
    return (uint64_t)(_mm_getcsr() & 0xffc0u) << 16 | x87;
#elif defined(__aarch64__)
    uint64_t fpcr;

    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
#else
    return 0;
#endif
}

static void set_control_bits(uint64_t bits)
{
#if defined(__x86_64__)
    uint16_t x87 = (uint16_t)bits;

    _mm_setcsr((uint32_t)(bits >> 16) | (_mm_getcsr() & 0x3fu));
    __asm__ volatile("fldcw %0" : : "m"(x87));
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(bits));
#else
    (void)bits;
#endif
}

static const uint64_t other_bits[] = {
#if defined(__x86_64__)
    /* denormals are zero, flush to zero; single precision, rounding up: each
     * register alone, and both */
    (uint64_t)0x9fc0 << 16 | 0x037f,
    (uint64_t)0x1f80 << 16 | 0x087f,
    (uint64_t)0x9fc0 << 16 | 0x087f,
#elif defined(__aarch64__)
    1u << 24, /* flush to zero */
    1u << 22, /* rounding up */
#else
    0,
#endif
};

static int keep_other_bits(void *arg)
{
    const uint64_t *bits = arg;
    uint64_t usual = control_bits();

    set_control_bits(*bits);
    EXPECT_EQ(control_bits(), *bits);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(px_yield(), 0);
        EXPECT_EQ(control_bits(), *bits);
    }
    start(nothing, NULL);
    EXPECT_EQ(control_bits(), *bits);
    set_control_bits(usual);
    return 0;
}

static int end_with_other_bits(void *arg)
{
    const uint64_t *bits = arg;

    set_control_bits(*bits);
    return 0;
}

static int keep_usual_bits(void *arg)
{
    uint64_t usual = control_bits();
    px_fiber *other = start_handle(keep_other_bits, arg);

    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(control_bits(), usual);
        EXPECT_EQ(px_yield(), 0);
    }
    EXPECT_EQ(px_await(other, NULL), 0);
    EXPECT_EQ(control_bits(), usual);
    start(end_with_other_bits, arg);
    EXPECT_EQ(control_bits(), usual);
    return 0;
}

static void R133_every_control_bit_is_each_fibers_own(void **state)
{
    size_t n = sizeof(other_bits) / sizeof(other_bits[0]);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = other_bits[i];
        uint64_t usual = control_bits();
        uint64_t seen;

        set_control_bits(bits);
        seen = control_bits();
        set_control_bits(usual);
        if (bits == 0 || seen != bits)
            note_skip("not all of these control bits exist here");
        run_fibers(keep_usual_bits, &bits);
        assert_true(control_bits() == usual);
        assert_log("");
    }
}

static int divide_by_zero(void *arg)
{
    volatile double one = 1, zero = 0;

    EXPECT(isinf(one / zero)); /* a trap would end the process */
    (void)arg;
    return 0;
}

static int trap_and_yield(void *arg)
{
    (void)arg;
    EXPECT(feenableexcept(FE_DIVBYZERO) != -1);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(px_yield(), 0);
        EXPECT(fegetexcept() & FE_DIVBYZERO);
    }
    return 0;
}

static int divide_beside_a_trap(void *arg)
{
    px_fiber *fiber = start_handle(trap_and_yield, NULL);

    EXPECT_EQ(divide_by_zero(arg), 0);
    EXPECT_EQ(px_yield(), 0);
    EXPECT_EQ(divide_by_zero(arg), 0);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(divide_by_zero(arg), 0);
    return 0;
}

static void need_traps(void)
{
    bool there = feenableexcept(FE_DIVBYZERO) != -1 &&
                 fegetexcept() & FE_DIVBYZERO;

    (void)fedisableexcept(FE_ALL_EXCEPT);
    if (!there)
        note_skip("floating-point exceptions do not trap here");
}

/* Without traps, the x87 flags what it finds; who has them enabled must not
 * find that pending. */
static int divide_without_traps(void *arg)
{
    volatile long double one = 1, zero = 0;

    (void)arg;
    EXPECT(fedisableexcept(FE_ALL_EXCEPT) != -1);
    EXPECT(isinf(one / zero));
    return 0;
}

static int start_it_under_a_trap(void *arg)
{
    volatile long double one = 1, two = 2;

    EXPECT(feenableexcept(FE_DIVBYZERO) != -1);
    start(divide_without_traps, arg);
    EXPECT(one / two < one);
    EXPECT(fegetexcept() & FE_DIVBYZERO);
    EXPECT(fedisableexcept(FE_ALL_EXCEPT) != -1);
    return 0;
}

static void R133_what_one_fiber_flagged_traps_in_no_other(void **state)
{
    (void)state;
    need_traps();
    run_fibers(start_it_under_a_trap, NULL);
    assert_log("");
}

static void R133_a_trap_enabled_in_one_fiber_is_not_in_another(void **state)
{
    (void)state;
    need_traps();
    run_fibers(divide_beside_a_trap, NULL);
    assert_int_equal(fegetexcept() & FE_DIVBYZERO, 0);
    assert_log("");
}

/* --- errno ---------------------------------------------------------------- */

static int keep_22(void *arg)
{
    errno = 22;
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(px_yield(), 0);
        EXPECT_EQ(errno, 22);
    }
    (void)arg;
    errno = 99; /* and ends so */
    return 0;
}

static int keep_11(void *arg)
{
    px_sem sem = PX_SEM_INIT(0);
    px_mutex lock = PX_MUTEX_INIT;
    px_waitgroup wg = PX_WAITGROUP_INIT(0);
    px_scope scope;
    px_fiber *fiber;

    (void)arg;
    errno = 11;
    fiber = start_handle(keep_22, NULL); /* has changed it by now */
    EXPECT_EQ(errno, 11);
    EXPECT_EQ(px_yield(), 0);
    EXPECT_EQ(errno, 11);
    EXPECT_EQ(px_sleep(5), 0);
    EXPECT_EQ(errno, 11);
    EXPECT_EQ(px_await(fiber, NULL), 0);
    EXPECT_EQ(errno, 11);
    EXPECT_EQ(px_sem_try_down(&sem), PX_EAGAIN);
    EXPECT_EQ(px_sem_up(&sem), 0);
    EXPECT_EQ(px_sem_down(&sem), 0);
    EXPECT_EQ(px_mutex_unlock(&lock), PX_ENOTLOCKED);
    EXPECT_EQ(px_mutex_lock(&lock), 0);
    EXPECT_EQ(px_mutex_lock(&lock), PX_EDEADLK);
    EXPECT_EQ(px_mutex_unlock(&lock), 0);
    EXPECT_EQ(px_waitgroup_done(&wg), PX_ENEGATIVE);
    EXPECT_EQ(px_waitgroup_wait(&wg), PX_ENEGATIVE);
    EXPECT_EQ(px_scope_enter(&scope, 5), 0);
    EXPECT_EQ(px_sem_down(&sem), PX_ETIMEDOUT);
    EXPECT_EQ(px_scope_leave(&scope), PX_ETIMEDOUT);
    EXPECT_EQ(px_spawn(NULL, NULL, NULL), PX_EINVAL);
    EXPECT_EQ(px_spawn_with(NULL,
                            &(px_spawn_options){.stack_size = SIZE_MAX / 2},
                            nothing, NULL) < 0,
              1);
    EXPECT_EQ(px_run(nothing, NULL), PX_EBUSY);
    EXPECT_EQ(px_set_name(px_self(), "named"), 0);
    EXPECT(px_now() > 0);
    EXPECT_EQ(px_offload(nothing, NULL), 0);
    EXPECT_EQ(errno, 11);
    return 0;
}

static void R130_errno_is_each_fibers_own(void **state)
{
    (void)state;
    errno = 4711;
    run_fibers(keep_11, NULL);
    assert_int_equal(errno, 4711);
    assert_log("");
}

static int wait_on_bad_descriptor(void *arg)
{
    int ends[2];

    EXPECT_EQ(pipe(ends), 0);
    errno = 33;
    EXPECT_EQ(px_wait_fd(-1, PX_READABLE), PX_EBADF);
    EXPECT_EQ(errno, 33);
    EXPECT_EQ(px_wait_fd(ends[1], PX_WRITABLE), PX_WRITABLE);
    EXPECT_EQ(errno, 33);
    PX_WITHIN(brief, 5)
        EXPECT_EQ(px_wait_fd(ends[0], PX_READABLE), PX_ETIMEDOUT);
    EXPECT_EQ(errno, 33);
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)arg;
    return 0;
}

static void R130_waiting_on_descriptors_leaves_errno(void **state)
{
    (void)state;
    run_fibers(wait_on_bad_descriptor, NULL);
    assert_log("");
}

/* --- Thread-locals and the signal mask ------------------------------------ */

static _Thread_local long local_turns;

struct thread_run {
    int number;
    int switches;
    int wrong;
};

static int switch_and_check(void *arg)
{
    struct thread_run *self = arg;
    px_fid id = px_current_id();
    px_fiber *handle = px_self();

    for (int i = 0; i < self->switches; i++) {
        int *address = &errno;

        errno = self->number * 10 + (int)id;
        if (px_yield() != 0 || px_current_id() != id || px_self() != handle ||
            errno != self->number * 10 + (int)id || address != &errno)
            self->wrong++;
        local_turns++;
    }
    return 0;
}

static int switch_two(void *arg)
{
    px_fiber *fiber = NULL;

    if (px_spawn(&fiber, switch_and_check, arg) != 0)
        return -1;
    (void)switch_and_check(arg);
    return px_await(fiber, NULL);
}

static void *run_and_switch(void *arg)
{
    struct thread_run *self = arg;

    if (px_run(switch_two, self) != 0 || local_turns != 2L * self->switches)
        self->wrong++;
    return NULL;
}

static void R129_two_schedulers_in_two_threads_keep_apart(void **state)
{
    struct thread_run runs[2] = {{1, turns(500000), 0}, {2, turns(500000), 0}};
    pthread_t threads[2];

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, run_and_switch, &runs[i]), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(runs[i].wrong, 0);
    }
    assert_int_equal(local_turns, 0);
}

static int is_blocked(int signal)
{
    sigset_t now;

    return pthread_sigmask(SIG_BLOCK, NULL, &now) == 0 &&
           sigismember(&now, signal);
}

static int unblock_later(void *arg)
{
    sigset_t set;

    (void)arg;
    EXPECT(is_blocked(SIGUSR1)); /* as its spawner, on the same thread, said */
    EXPECT_EQ(px_sleep(1), 0);
    EXPECT(is_blocked(SIGUSR1));
    EXPECT(is_blocked(SIGUSR2));
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    EXPECT_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
    EXPECT_EQ(px_sleep(2), 0);
    return 0;
}

static int block_signals(void *arg)
{
    sigset_t set;
    px_fiber *fiber;

    (void)arg;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    EXPECT_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    fiber = start_handle(unblock_later, NULL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR2);
    EXPECT_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    EXPECT_EQ(px_sleep(2), 0);
    EXPECT(!is_blocked(SIGUSR1)); /* the other has unblocked it */
    EXPECT(is_blocked(SIGUSR2));
    EXPECT_EQ(px_await(fiber, NULL), 0);
    return 0;
}

static void the_signal_mask_is_the_threads(void **state)
{
    sigset_t before;

    (void)state;
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    run_fibers(block_signals, NULL);
    assert_true(is_blocked(SIGUSR2)); /* after the run, too */
    assert_false(is_blocked(SIGUSR1));
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    assert_log("");
}

/* --- Unwinding ------------------------------------------------------------ */

#define FRAMES 100
/* Behind the body, at most, are the library's: without tail calls (-O0) one
 * for each function that a child of a group starts by. */
#define FRAMES_BEHIND 8

static void *frames[FRAMES];
static int n_frames;
static void *in_body;

struct walk {
    int n;
    int past;
};

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context,
                                       void *arg)
{
    struct walk *walk = arg;

    if (walk->n++ >= FRAMES)
        return _URC_NORMAL_STOP;
    if ((void *)_Unwind_GetIP(context) == in_body)
        walk->past = walk->n;
    return _URC_NO_REASON;
}

static __attribute__((noinline)) int deepest(void)
{
    struct walk walk = {0, 0};

    n_frames = backtrace(frames, FRAMES);
    EXPECT_EQ(_Unwind_Backtrace(count_frame, &walk), _URC_END_OF_STACK);
    EXPECT(walk.n < FRAMES);
    EXPECT(walk.past > 4 && walk.n - walk.past <= FRAMES_BEHIND);
    return n_frames;
}

static __attribute__((noinline)) int deeper(int levels)
{
    volatile int n = levels > 0 ? deeper(levels - 1) : deepest();

    return n;
}

static __attribute__((noinline)) int first_call(void)
{
    volatile int n;

    in_body = __builtin_return_address(0);
    n = deeper(3);
    return n;
}

/* The frames lead to the body, and end at the library's entry behind it. */
static void expect_clean_backtrace(void)
{
    int at = -1;

    EXPECT(n_frames > 5 && n_frames < FRAMES);
    for (int i = 0; i < n_frames; i++) {
        Dl_info info;

        if (frames[i] == in_body)
            at = i;
        EXPECT(dladdr(frames[i], &info) != 0); /* code, not garbage */
    }
    EXPECT(at >= 5);
    EXPECT(n_frames - 1 - at <= FRAMES_BEHIND);
}

static int unwind_here(void *arg)
{
    volatile int n = first_call();

    EXPECT(n > 0);
    expect_clean_backtrace();
    EXPECT_EQ(px_yield(), 0);
    n = first_call(); /* after a switch, too */
    EXPECT(n > 0);
    expect_clean_backtrace();
    (void)arg;
    return 0;
}

static int unwind_everywhere(void *arg)
{
    px_spawn_options options = spawn_defaults();
    px_group group;

    options.queued = true;
    EXPECT_EQ(unwind_here(arg), 0);
    start(unwind_here, NULL);
    EXPECT_EQ(px_spawn_with(NULL, &options, unwind_here, NULL), 0);
    EXPECT_EQ(px_group_open(&group), 0);
    EXPECT_EQ(px_group_spawn(&group, unwind_here, NULL), 0);
    EXPECT_EQ(px_group_wait(&group), 0);
    return 0;
}

static void R140_backtraces_end_at_the_entry(void **state)
{
    (void)state;
    (void)backtrace(frames, FRAMES); /* loads what it needs, off the fibers */
    run_fibers(unwind_everywhere, NULL);
    assert_log("");
}

static jmp_buf jump;
static volatile int jumps_are_made = 1;

static __attribute__((noinline)) int jump_from(int depth)
{
    volatile char room[100];

    room[0] = (char)depth;
    if (depth > 0)
        room[0] = (char)jump_from(depth - 1);
    else if (jumps_are_made)
        longjmp(jump, 1);
    return room[0];
}

static int jump_within(void *arg)
{
    volatile int jumps = 0;

    (void)arg;
    if (setjmp(jump) == 0 || ++jumps < 3) {
        EXPECT_EQ(px_yield(), 0);
        EXPECT_EQ(jump_from(20), -1); /* does not come back */
    }
    EXPECT_EQ(jumps, 3);
    return 0;
}

static int jump_beside_another(void *arg)
{
    start(check_nearest, arg);
    EXPECT_EQ(jump_within(NULL), 0);
    return 0;
}

static void R141_longjmp_works_within_a_fiber(void **state)
{
    (void)state;
    run_fibers(jump_beside_another, NULL);
    assert_log("");
}

static const struct CMUnitTest tests[] = {
    PX_TEST(R134_registers_that_calls_keep_are_kept_across_switches),
    PX_TEST(R134_registers_are_kept_across_a_run),
    PX_TEST(R134_sums_are_the_same_with_switches_in_between),
    PX_TEST(R135_a_fibers_locals_are_aligned),
    PX_TEST(R135_the_stack_is_aligned_at_entry),
    PX_TEST(R133_each_fiber_has_its_own_rounding_mode),
    PX_TEST(R133_the_rounding_mode_is_inherited_from_the_spawner),
    PX_TEST(R133_a_run_gives_its_caller_back_its_own_mode),
    PX_TEST(R133_every_control_bit_is_each_fibers_own),
    PX_TEST(R133_a_trap_enabled_in_one_fiber_is_not_in_another),
    PX_TEST(R133_what_one_fiber_flagged_traps_in_no_other),
    PX_TEST(R130_errno_is_each_fibers_own),
    PX_TEST(R130_waiting_on_descriptors_leaves_errno),
    PX_TEST(R129_two_schedulers_in_two_threads_keep_apart),
    PX_TEST(the_signal_mask_is_the_threads),
    PX_TEST(R140_backtraces_end_at_the_entry),
    PX_TEST(R141_longjmp_works_within_a_fiber),
};

PX_TEST_MAIN(tests)
