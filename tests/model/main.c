/* SPDX-License-Identifier: MIT */
/*
 * main.c - programs by the million: all small ones, or large random ones.
 *
 *     model --suite sem --all 3x2          every program, every schedule
 *     model --suite sem --sample 3x3 1000  so many of them, spread evenly
 *     model --suite sem --random 1000000   so many calls, of random programs
 *     model --replay PROGRAM CHOICES       as a failure has printed them
 *     model --traces                       a hash of what each suite does
 *
 * `model --help` says what else there is.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "world.h"

enum { LETTERS = 7, LENGTH = 32 };

/* As many numbers of programs as 64 bits hold: 7 to the power of 22. */
enum { LETTERS_MOST = 22, THREADS_MOST = 64 };

/* A choice is a character from '0' on, as fail() prints it: so many ways there
 * are at most. */
enum { WAYS_MOST = REF_ALL + 3 };

/* Seven calls for the exhaustive search; all there are for the random one. */
static const struct suite {
    const char *name;
    const char *begin; /* of a program */
    const char *calls[LETTERS];
    const char *random;
} suites[] = {
    {"sem",
     "1",
     {"d1", "d2", "t1", "u1", "u2", "D1", "c1"},
     "d0 d1 d1 d2 d3 D1 D2 t0 t1 t2 u0 u1 u1 u2 u3 w0 w0 a1 a-1 a-2 r1 r2 c1 "
     "C1 e1 e2 e9 x0 x0 s0 z1 y0 p0"},
    {"sem_limit",
     "b2",
     {"d1", "d3", "u1", "l1", "l3", "k0", "D1"},
     "d1 d1 d2 d3 D1 D2 t1 t2 u1 u1 u2 w0 a1 a-1 l0 l1 l2 l3 l4 r1 k0 c1 C1 e1 "
     "e2 x0 s0 z1 y0"},
    {"sem_available",
     "0",
     {"d1", "d2", "w0", "u1", "D1", "r1", "k0"},
     "d1 d2 w0 w0 w0 u1 u2 a1 a-1 D1 r1 r2 k0 e1 x0 c1 C1 z1"},
    {"mutex",
     "0",
     {"L0", "T0", "U0", "M1", "z1", "c1", "e1"},
     "L0 L0 T0 U0 U0 U0 M1 M2 z1 z2 c1 C1 e1 e2 e9 x0 s0 y0 p0"},
    {"waitgroup",
     "0",
     {"A1", "N0", "W0", "V1", "A2", "c1", "A-2"},
     "A1 A1 A2 A3 N0 N0 A-1 A-2 A0 W0 W0 V1 V2 c1 C1 e1 e2 x0 s0 z1 y0 p0"},
    {"scope",
     "0",
     {"e0", "e1", "x0", "s0", "O1", "S2", "z1"},
     "e0 e1 e2 e3 e9 x0 x0 s0 s0 s0 C0 C1 C2 O1 O1 O2 c1 c2 z0 z1 z2 z3 S1 S2 "
     "y0 p0 d1 u1"},
    {"group",
     "1",
     {"g0", "G1", "G2", "q0", "i1", "h1", "c1"},
     "g0 g0 G0 G1 G1 G2 G3 G4 G5 q0 q0 i1 i2 h0 h1 c1 C1 O1 e1 e2 e9 x0 s0 z1 "
     "d1 u1 y0"},
    {"group_limit",
     "1/g0,i1/",
     {"G1", "G6", "q0", "I2", "h1", "c1", "s0"},
     "g0 g0 i1 i1 i2 G0 G1 G1 G2 G4 G5 G6 q0 I1 I2 h1 c1 s0 e1 x0 z1"},
    {"descriptor",
     "0",
     {"f0", "F0", "v0", "X0", "Y0", "e1", "c1"},
     "f0 f0 f0 F0 F0 v0 X0 Y0 e1 e2 x0 c1 C1 s0 z1 y0"},
    {"offload",
     "0",
     {"o0", "o0", "j1", "j0", "e1", "c1", "s0"},
     "o0 o0 o0 j1 j1 j2 j3 e1 e2 x0 c1 C1 s0 z1 y0"},
    {"sem_mutex",
     "1",
     {"d1", "u1", "L0", "U0", "M1", "D1", "c1"},
     "d1 d2 u1 u2 L0 U0 M1 M2 D1 c1 C1 e1 e2 x0 s0 z1 y0 T0 t1"},
    {"waitgroup_scope",
     "0",
     {"A1", "N0", "W0", "e1", "x0", "s0", "C1"},
     "A1 N0 W0 V1 e1 e2 e9 x0 s0 C1 O1 c1 z1"},
    {"all",
     "1",
     {"d1", "u1", "g0", "G3", "q0", "e1", "c1"},
     "d1 d2 D1 t1 u1 u2 w0 a1 a-1 l1 r1 L0 T0 U0 M1 M2 A1 A2 N0 W0 V1 e0 e1 e2 "
     "e9 x0 x0 s0 C1 C2 O1 c1 z1 z2 S1 y0 p0 g0 G1 G2 G3 G4 q0 h1 i1"},
    {"await",
     "0",
     {"b0", "B2", "J0", "K1", "P0", "H0", "m1"},
     "b0 b1 b1 b2 b3 b4 b5 b6 b7 B0 B1 B1 B2 B5 B6 E1 E2 E4 E5 J0 J0 J0 J1 J1 "
     "J2 J10 J11 J20 J30 J40 K0 K1 K11 P0 P0 P1 P10 P20 Q0 Q1 H0 H1 H11 H20 "
     "H30 m0 m1 m20 R0 R1 R10 R20 c1 C1 e1 x0 s0 z1 u1 g0 q0"},
    {"await_all",
     "0",
     {"b0", "B2", "P0", "P1", "P20", "c1", "R0"},
     "b0 b1 b2 b4 b6 b7 B0 B1 B1 B2 B3 B6 P0 P0 P1 P2 P10 P11 P20 P21 P30 P31 "
     "P40 Q0 Q0 Q1 Q11 Q20 Q31 R0 R1 R20 R40 J0 J1 J10 K1 m0 H1 c1 C1 e1 e2 x0 "
     "s0 u1 z1 y0"},
    {"post",
     "0",
     {"Z0", "Z2", "d1", "u1", "D1", "c1", "k0"},
     "Z0 Z1 Z1 Z2 Z3 Z4 Z5 Z7 b0 b1 B1 J0 J1 m0 o0 j1 j1 c1 e1 x0 d1 u1 u1 z1 "
     "y0 L0 U0"},
};

static struct {
    const struct suite *suite;
    enum { NOTHING, ALL, SAMPLE, RANDOM, REPLAY, TRACES } what;
    int fibers, calls;
    uint64_t amount, seed, seconds;
    bool plain, as_it_is;
    int threads;
    const char *program, *choices;
} options = {.seed = 1, .threads = 2};

static struct chooser chooser;

/* What the random search is at, for whoever looks after it. */
static struct {
    uint64_t seed;
} * shared;

static const size_t suites_count = sizeof(suites) / sizeof(suites[0]);

/* What cannot be done as it was asked for is not begun: one line, and 2. */
static _Noreturn void refuse(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

static _Noreturn void refuse(const char *format, ...)
{
    va_list arguments;

    (void)fflush(stdout);
    (void)fprintf(stderr, "model: ");
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "\n");
    _exit(2);
}

static struct call call_of(const char *text)
{
    return (struct call){text[0], (int8_t)strtol(text + 1, NULL, 10)};
}

/* What every program of the suite begins with. */
static void begin_program(struct program *program, const char *begin)
{
    if (!program_parse(program, begin))
        abort();
}

/* -- all of them -- */

/* The fibers of a program are alike, so that of those that differ only in which
 * fiber is the first, one is enough: calls name others by their distance. */
static bool is_first_of_its_turns(const int *letters)
{
    int n = options.fibers * options.calls;

    for (int turn = 1; turn < options.fibers; turn++) {
        for (int i = 0; i < n; i++) {
            int a = letters[i];
            int b = letters[(i + turn * options.calls) % n];

            if (b < a)
                return false;
            if (b > a)
                break;
        }
    }
    return true;
}

static uint64_t programs_there_are(void)
{
    uint64_t n = 1;

    for (int i = 0; i < options.fibers * options.calls; i++)
        n *= LETTERS;
    return n;
}

static void play_numbered(const struct program *begin, uint64_t number)
{
    struct program all = *begin, *program = &all;
    int letters[REF_FIBERS * CALLS_MOST];
    int n = options.fibers * options.calls;

    for (int i = n; i-- > 0; number /= LETTERS)
        letters[i] = (int)(number % LETTERS);
    if (!strchr(options.suite->begin, '/') && !is_first_of_its_turns(letters))
        return;
    for (int f = 0; f < options.fibers; f++) {
        int begun = begin->lengths[f];

        program->lengths[f] = begun + options.calls;
        for (int i = 0; i < options.calls; i++)
            program->calls[f][begun + i] =
                call_of(options.suite->calls[letters[f * options.calls + i]]);
    }
    play(program, &chooser);
}

static void play_all(uint64_t step)
{
    struct program program;
    uint64_t programs = programs_there_are();

    begin_program(&program, options.suite->begin);
    program.fibers = options.fibers;
    chooser.mode = CHOOSE_ALL;
    chooser.prune = !options.plain;
    for (uint64_t i = options.seed % step; i < programs; i += step)
        play_numbered(&program, i);
}

/* -- random ones -- */

/* Everything about a program comes from its seed. */
static void make_random(struct program *program, uint64_t seed)
{
    static const char *const begins[] = {"0", "1", "2"};
    static const char *const bounded[] = {"b1", "b2", "b3"};
    const char *text = options.suite->random;
    struct call calls[64];
    int n = 0;

    for (const char *at = text; *at && n < 64; n++) {
        calls[n] = call_of(at);
        at += strcspn(at, " ");
        at += *at == ' ';
    }
    begin_program(program, options.suite->begin[0] == 'b'
                               ? bounded[next_random(&seed) % 3]
                               : begins[next_random(&seed) % 3]);
    program->fibers = 2 + (int)(next_random(&seed) % (REF_FIBERS - 1));
    for (int f = 0; f < program->fibers; f++) {
        program->lengths[f] = LENGTH;
        for (int i = 0; i < LENGTH; i++)
            program->calls[f][i] = calls[next_random(&seed) % (uint64_t)n];
    }
    chooser.mode = next_random(&seed) % 2 ? CHOOSE_RANDOM : CHOOSE_RANKED;
    chooser.random = next_random(&seed);
}

static void play_random(void)
{
    struct program program;
    time_t end = time(NULL) + (time_t)options.seconds;

    while (tally.calls < options.amount &&
           (!options.seconds || time(NULL) < end)) {
        if (shared)
            shared->seed = options.seed;
        make_random(&program, options.seed++);
        play(&program, &chooser);
    }
}

/* -- one that was printed -- */

static size_t given; /* how many choices */

/* Which of the ways play_pick has gone: the fibers but the driver, then what
 * can be done instead, as play.c counts them. */
static size_t way_gone(px_loop *loop, px_fiber *const *ready, size_t n,
                       size_t picked)
{
    size_t way = 0;

    for (size_t i = 0; i < n && i < picked; i++)
        way += ready[i] != world.driver;
    if (picked > n + PX_SEAM_TIME)
        way += !px__heap_is_empty(&loop->timers);
    if (picked > n + PX_SEAM_POLL)
        way += ref_fd_reports(&world.ref);
    return way;
}

/* The chooser takes what is given modulo the ways, as the fuzzer needs it; what
 * somebody has typed is wrong there. */
static size_t pick_given(px_loop *loop, px_fiber *const *ready, size_t n)
{
    size_t at = chooser.at, picked = play_pick(loop, ready, n);

    if (chooser.at > at && at < given &&
        way_gone(loop, ready, n, picked) != chooser.path[at])
        refuse("--replay: choice %zu, '%c': there are not so many ways to go "
               "on",
               at + 1, options.choices[at]);
    return picked;
}

static void play_given(void)
{
    struct program program;

    if (!program_parse(&program, options.program))
        abort(); /* it was looked at: check_program() */
    given = strlen(options.choices);
    chooser.mode = CHOOSE_GIVEN;
    chooser.length = given;
    for (size_t i = 0; i < given; i++)
        chooser.path[i] = (uint8_t)(options.choices[i] - '0');
    play_aloud = true;
    px__seam_pick = pick_given;
    play(&program, &chooser);
    if (chooser.at < given)
        refuse("--replay: %zu choices, and there are only %zu to make", given,
               chooser.at);
}

/* What every suite does at first: 10,000 random calls, and some of what is
 * smallest. Not the descriptor's, who is told what depends on the poller. */
static void print_traces(void)
{
    const struct tally none = tally;

    for (size_t s = 0; s < suites_count; s++) {
        uint64_t choices = tally.choices;

        if (strcmp(suites[s].name, "descriptor") == 0)
            continue;

        tally = none;
        tally.choices = choices;
        options.suite = &suites[s];
        options.seed = 1;
        options.amount = 10000;
        play_random();
        options.fibers = options.calls = 2;
        play_all(16);
        (void)printf("%-16s %016llx\n", options.suite->name,
                     (unsigned long long)tally.trace);
    }
}

static int explore(void *arg)
{
    (void)arg;
    switch (options.what) {
    case ALL:
        play_all(1);
        break;
    case SAMPLE:
        play_all(1 + programs_there_are() / options.amount);
        break;
    case RANDOM:
        play_random();
        break;
    case TRACES:
        print_traces();
        break;
    default:
        play_given();
    }
    return 0;
}

/* Every second of the processor's: without a choice since the last two, the
 * library goes round in circles. */
static void on_tick(int number)
{
    static const char text[] = "model: it does not come to an end\n";
    static uint64_t last;
    static int stills;

    (void)number;
    stills = tally.choices == last ? stills + 1 : 0;
    last = tally.choices;
    if (stills == 2) {
        if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
            _exit(2);
        _exit(1);
    }
}

static void watch(void)
{
    const struct itimerval second = {{1, 0}, {1, 0}};
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    action.sa_handler = on_tick;
    action.sa_flags = SA_RESTART; /* fibers have room for so little */
    (void)sigaction(SIGPROF, &action, NULL);
    (void)setitimer(ITIMER_PROF, &second, NULL);
}

/* -- which sources failed -- */

/* False in a process that another one looks after: that one says it, once. */
static bool says_commit = true;

/* As git names it now; nothing where there is no git, or no checkout. */
static void say_commit(void)
{
#if defined(PX_MODEL_SOURCE)
    char line[256];
    FILE *git;

    if (chdir(PX_MODEL_SOURCE) != 0)
        return;
    git = popen("git describe --always --dirty 2>/dev/null", "r");
    if (!git)
        return;
    if (fgets(line, sizeof(line), git))
        (void)fprintf(stderr, "  commit %s", line);
    (void)pclose(git);
#endif
}

/* fail() ends the process by quick_exit(). */
static void on_failure(void)
{
    if (says_commit)
        say_commit();
    _exit(1); /* which builds that count lines write their counts at */
}

static int run(int (*fn)(void *), void *arg)
{
    px_run_options run_options = {.clock = PX_CLOCK_VIRTUAL,
                                  .offload_threads = (unsigned)options.threads};

    play_threads = options.threads;
    watch();
    px__seam_pick = play_pick;
    return px_run_with(&run_options, fn, arg);
}

/* -- a smaller program that fails as well -- */

static int play_one(void *arg)
{
    play(arg, &chooser);
    return 0;
}

/* In a process of its own, under a few schedules. */
static bool fails(struct program *program, bool aloud)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        says_commit = false;
        if (!aloud && (!freopen("/dev/null", "w", stderr) ||
                       !freopen("/dev/null", "w", stdout)))
            _exit(0);
        for (uint64_t i = 0; i < 400; i++) {
            chooser.mode = i % 2 ? CHOOSE_RANDOM : CHOOSE_RANKED;
            chooser.random = i;
            if (run(play_one, program) != 0)
                _exit(3);
        }
        _exit(0);
    }
    (void)waitpid(child, &status, 0);
    return status != 0;
}

static void shrink(uint64_t seed)
{
    struct program program;

    make_random(&program, seed);
    if (!fails(&program, false)) {
        (void)fprintf(stderr,
                      "model: seed %llu fails by its own schedule only\n",
                      (unsigned long long)seed);
        return;
    }
    for (bool smaller = true; smaller;) {
        smaller = false;
        for (int f = 0; f < program.fibers; f++) {
            for (int i = program.lengths[f]; i-- > 0;) {
                struct program less = program;

                less.lengths[f]--;
                memmove(&less.calls[f][i], &less.calls[f][i + 1],
                        (size_t)(less.lengths[f] - i) *
                            sizeof(less.calls[f][0]));
                if (fails(&less, false)) {
                    program = less;
                    smaller = true;
                }
            }
        }
    }
    (void)fprintf(stderr, "model: the smallest that still fails:\n");
    (void)fails(&program, true);
}

/* Looks after a random search: should it fail, or crash, its program is made
 * smaller. */
static int supervise(void)
{
    int status;
    pid_t child;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 2;
    child = fork();
    if (child == 0) {
        int code;

        says_commit = false;
        code = run(explore, NULL);

        (void)printf("%s: %llu programs, %llu calls, trace %016llx\n",
                     options.suite->name, (unsigned long long)tally.paths,
                     (unsigned long long)tally.calls,
                     (unsigned long long)tally.trace);
        (void)fflush(stdout);
        _exit(code != 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 2;
    if (status == 0)
        return 0;
    (void)fprintf(stderr, "model: suite %s, seed %llu\n", options.suite->name,
                  (unsigned long long)shared->seed);
    if (!options.as_it_is)
        shrink(shared->seed);
    say_commit();
    return 1;
}

/* -- the arguments -- */

static _Noreturn void help(void)
{
    (void)printf(
        "model --suite NAME --all FxC | --sample FxC N | --random N [OPTION "
        "...]\n"
        "model --replay PROGRAM CHOICES [--threads N]\n"
        "model --traces\n"
        "\n"
        "Plays programs by the library and by its model, and says where they\n"
        "differ: then it ends with 1.\n"
        "\n"
        "  --suite NAME       the calls that programs are made of: one of\n"
        "                    ");
    for (size_t s = 0; s < suites_count; s++)
        (void)printf("%s %s", s % 5 == 0 && s ? "\n                    " : "",
                     suites[s].name);
    (void)printf(
        "\n"
        "  --all FxC          every program of F fibers with C calls each, by\n"
        "                     every schedule\n"
        "  --sample FxC N     about N of them, spread evenly\n"
        "  --random N         random programs, until N calls were made\n"
        "  --replay PROGRAM CHOICES\n"
        "                     what a failure has printed, call by call\n"
        "  --traces           a hash of what each suite does\n"
        "  --seed N           of the first program of --random, and the first\n"
        "                     that --sample plays (1)\n"
        "  --seconds N        --random ends after so many\n"
        "  --as-it-is         what fails by --random is not made smaller\n"
        "  --plain            --all and --sample: states that were seen are\n"
        "                     not left out\n"
        "  --threads N        for what is offloaded (2); a schedule by one\n"
        "                     thread is to be played again by one\n"
        "  --help             this\n");
    exit(0);
}

/* Digits alone: no sign, no exponent, nothing behind them. */
static uint64_t number(const char *option, const char *text, uint64_t least,
                       uint64_t most)
{
    uint64_t n;
    char *end;

    errno = 0;
    n = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno == ERANGE || n < least ||
        n > most)
        refuse("%s: '%s' is no whole number from %" PRIu64 " to %" PRIu64,
               option, text, least, most);
    return n;
}

static void size_of_programs(const char *option, const char *text)
{
    char *end;
    long fibers, calls = 0;

    errno = 0;
    fibers = strtol(text, &end, 10);
    if (*text >= '0' && *text <= '9' && end[0] == 'x' && end[1] >= '0' &&
        end[1] <= '9')
        calls = strtol(end + 1, &end, 10);
    if (*end || errno == ERANGE || fibers < 1 || fibers > REF_FIBERS ||
        calls < 1 || calls > LETTERS_MOST / fibers)
        refuse("%s: '%s' is no size, such as 2x3: 1 to %d fibers, each with as "
               "many calls, at most %d in all",
               option, text, REF_FIBERS, LETTERS_MOST);
    options.fibers = (int)fibers;
    options.calls = (int)calls;
}

static const struct suite *suite_by_name(const char *name)
{
    char names[256];
    size_t at = 0;

    for (size_t s = 0; s < suites_count; s++) {
        if (strcmp(suites[s].name, name) == 0)
            return &suites[s];
        at += (size_t)snprintf(names + at, sizeof(names) - at, " %s",
                               suites[s].name);
    }
    refuse("--suite: there is no suite '%s'; there are:%s", name, names);
}

/* What perform() knows, and what each takes: a fiber is named by how much
 * further on it is. */
static bool is_call(char what, long n)
{
    long least = INT8_MIN, most = INT8_MAX;

    if (!what ||
        !strchr("dDtwualkrLMTUANWVexsCOczSypgGqhiIfFvXYojbBEZJKPQHmR", what))
        return false;
    if (strchr("rCOch", what))
        least = -1;
    if (strchr("JKPQHmR", what))
        least = 0;
    if (what == 'd') /* who still waits in the end is given so many */
        most = 50;
    return n >= least && n <= most;
}

/* A program as it is printed: play.h. */
static void check_program(const char *text)
{
    const char *at = text + (*text == 'b');
    struct program program;
    bool calls = false;
    char *end = NULL;
    long permits;

    permits = strtol(at, &end, 10);
    if (*at < '0' || *at > '9' || permits > INT8_MAX)
        refuse("--replay: program '%s': begins with no number of permits, 0 to "
               "%d",
               text, INT8_MAX);
    for (at = end; *at;) {
        if (*at++ != '/')
            refuse("--replay: program '%s': '/' belongs before '%s'", text,
                   at - 1);
        while (*at && *at != '/') {
            char what = *at;
            bool digits =
                at[1 + (at[1] == '-')] >= '0' && at[1 + (at[1] == '-')] <= '9';
            long n = digits ? strtol(at + 1, &end, 10) : 0;

            if (!digits || !is_call(what, n))
                refuse("--replay: program '%s': no call, a letter and its "
                       "number, at '%s'",
                       text, at);
            calls = true;
            at = end;
            if (*at == ',' && at[1] && at[1] != '/')
                at++;
            else if (*at && *at != '/')
                refuse("--replay: program '%s': no ',' and call at '%s'", text,
                       at);
        }
    }
    if (!calls)
        refuse("--replay: program '%s' makes no call", text);
    if (!program_parse(&program, text))
        refuse("--replay: program '%s': more than %d fibers, or than %d calls "
               "of one",
               text, REF_FIBERS, CALLS_MOST - 1);
}

static void check_choices(const char *text)
{
    if (strlen(text) > PATH_MOST)
        refuse("--replay: more than %d choices", PATH_MOST);
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c >= '0' + WAYS_MOST)
            refuse("--replay: choices '%s': '%c' is none: they are 0 to 9, and "
                   "those behind 9 up to %c",
                   text, *c, '0' + WAYS_MOST - 1);
    }
}

/* What is asked for, once. */
static void ask_for(const char *option, int what)
{
    if (options.what)
        refuse("%s: that is a second thing to do", option);
    options.what = what;
}

/* How many words follow an option; -1: there is no such. */
static int words_of(const char *option)
{
    static const struct {
        const char *name;
        int words;
    } known[] = {
        {"--suite", 1},   {"--all", 1},      {"--sample", 2}, {"--random", 1},
        {"--replay", 2},  {"--traces", 0},   {"--seed", 1},   {"--seconds", 1},
        {"--threads", 1}, {"--as-it-is", 0}, {"--plain", 0},  {"--help", 0},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i].name, option) == 0)
            return known[i].words;
    }
    return -1;
}

static void take(const char *option, char **words)
{
    if (strcmp(option, "--suite") == 0) {
        options.suite = suite_by_name(words[0]);
    } else if (strcmp(option, "--all") == 0) {
        ask_for(option, ALL);
        size_of_programs(option, words[0]);
    } else if (strcmp(option, "--sample") == 0) {
        ask_for(option, SAMPLE);
        size_of_programs(option, words[0]);
        options.amount = number(option, words[1], 1, UINT64_MAX);
    } else if (strcmp(option, "--random") == 0) {
        ask_for(option, RANDOM);
        options.amount = number(option, words[0], 1, UINT64_MAX);
    } else if (strcmp(option, "--replay") == 0) {
        ask_for(option, REPLAY);
        check_program(words[0]);
        check_choices(words[1]);
        options.program = words[0];
        options.choices = words[1];
    } else if (strcmp(option, "--seed") == 0) {
        options.seed = number(option, words[0], 0, UINT64_MAX);
    } else if (strcmp(option, "--seconds") == 0) {
        options.seconds = number(option, words[0], 1, INT32_MAX);
    } else if (strcmp(option, "--threads") == 0) {
        options.threads = (int)number(option, words[0], 1, THREADS_MOST);
    } else if (strcmp(option, "--traces") == 0) {
        ask_for(option, TRACES);
    } else if (strcmp(option, "--plain") == 0) {
        options.plain = true;
    } else if (strcmp(option, "--as-it-is") == 0) {
        options.as_it_is = true;
    } else {
        help();
    }
}

static void parse(int argc, char **argv)
{
    int words;

    for (int i = 1; i < argc; i += 1 + words) {
        words = words_of(argv[i]);
        if (words < 0)
            refuse("there is no option '%s'; --help says what there is",
                   argv[i]);
        if (words > argc - i - 1)
            refuse("%s: needs %d word%s behind it; --help says which", argv[i],
                   words, words == 1 ? "" : "s");
        take(argv[i], &argv[i + 1]);
    }
    if (options.what == NOTHING)
        refuse("%s%s: what is to be done? --all, --sample, --random, --replay "
               "or --traces; --help says more",
               options.suite ? "--suite " : "no arguments",
               options.suite ? options.suite->name : "");
    if (!options.suite && options.what < REPLAY)
        refuse("--all, --sample and --random need a --suite");
}

int main(int argc, char **argv)
{
    int code;

    parse(argc, argv);
    (void)at_quick_exit(on_failure);
    if (options.what == RANDOM)
        return supervise();
    code = run(explore, NULL);
    if (options.what < REPLAY)
        (void)printf(
            "%s %dx%d: %llu paths, %llu cut, %llu calls, trace %016llx\n",
            options.suite->name, options.fibers, options.calls,
            (unsigned long long)tally.paths, (unsigned long long)chooser.pruned,
            (unsigned long long)tally.calls, (unsigned long long)tally.trace);
    return code != 0;
}
