/* SPDX-License-Identifier: MIT */
/* arguments.c - see arguments.h; nothing odd is played. */
#include "arguments.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

/* As many numbers of programs as 64 bits hold: 7 to the power of 22. */
enum { LETTERS_MOST = 22, THREADS_MOST = 64 };

/* A choice is a character from '0' on, as fail() prints it: so many ways there
 * are at most. */
enum { WAYS_MOST = REF_ALL + 3 };

struct options options = {.seed = 1, .threads = 2};

_Noreturn void refuse(const char *format, ...)
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

/* Whether a suite makes such calls: what perform() knows is in one. */
static bool is_letter(char what)
{
    bool is = false;

    for (size_t s = 0; s < suites_count && isalpha((unsigned char)what); s++)
        is = is || strchr(suites[s].random, what);
    return is;
}

/* And what each takes: a fiber is named by how much further on it is. */
static bool is_call(char what, long n)
{
    long least = INT8_MIN, most = INT8_MAX;

    if (!is_letter(what))
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

void parse_arguments(int argc, char **argv)
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
