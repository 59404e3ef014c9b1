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
 * `model --help` says what else there is (arguments.c).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arguments.h"
#include "world.h"

enum { LENGTH = 32 }; /* of a random program */

static struct chooser chooser;

/* What the random search is at, for whoever looks after it. */
static struct {
    uint64_t seed;
} * shared;

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

/* The chooser takes what is given modulo the ways, as the fuzzer needs it; what
 * somebody has typed is wrong there. */
static size_t pick_given(px_loop *loop, px_fiber *const *ready, size_t n)
{
    size_t at = chooser.at, picked = play_pick(loop, ready, n);

    if (chooser.at > at && at < given &&
        chooser.path[at] != options.choices[at] - '0')
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

/* As git names it now; nothing where there is no git, or no checkout, which may
 * belong to another user. */
static void say_commit(void)
{
#if defined(PX_MODEL_SOURCE)
    char line[256];
    FILE *git;

    if (chdir(PX_MODEL_SOURCE) != 0)
        return;
    git = popen("git -c safe.directory=\"$PWD\" describe --always --dirty "
                "2>/dev/null",
                "r");
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

int main(int argc, char **argv)
{
    int code;

    parse_arguments(argc, argv);
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
