/* SPDX-License-Identifier: MIT */
/*
 * options.c - what the command line asks for.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <parataxis/version.h>

#include "demo.h"

#define AT_ONCE_MOST 1000000
#define MS_MOST 2147483647

static const char usage_text[] =
    "usage: probe [-c N] [-t MS] [-d MS] [-f FILE] [--json] [host:port ...]\n"
    "       probe --demo [-c N] [-t MS] [-d MS] [--json]\n";

static const char help_text[] =
    "\n"
    "Tries to connect to many network targets at once, and tells of each\n"
    "whether it is open, in the order of the input.\n"
    "\n"
    "  -c N       at most N at once (64)\n"
    "  -t MS      time for one target, from when its turn has come (1000)\n"
    "  -d MS      time for the whole run; what is under way then has timed\n"
    "             out, what has not begun is cancelled\n"
    "  -f FILE    read targets from FILE, after those of the command line;\n"
    "             - is standard input, which is read if none are named\n"
    "  --json     one JSON object a line\n"
    "  --demo     probe 200 targets of its own on loopback (-t is 1500)\n"
    "  --help, --version\n"
    "\n"
    "Targets are host:port, address:port or [IPv6 address]:port. In a file\n"
    "there is one a line; blank lines count for nothing, nor does what "
    "follows\n"
    "a # that begins the line or stands behind a blank. A malformed line is\n"
    "named, with its number, and the rest goes on.\n"
    "\n"
    "States: open, refused, unreachable, unresolved, timed out, cancelled,\n"
    "malformed. Several addresses of a host are tried in turn.\n"
    "\n"
    "The first Ctrl-C cancels what is left and prints what is known, the\n"
    "second ends at once.\n"
    "\n"
    "Exit status: 0 all open, 1 some not, 2 bad usage, or input or output\n"
    "failed, 130 interrupted.\n";

static int usage(void)
{
    fputs(usage_text, stderr);
    fputs("Try 'probe --help'.\n", stderr);
    return EXIT_TROUBLE;
}

/* Only digits, and within 1 and `most`. */
static bool read_number(char option, const char *text, int64_t most,
                        int64_t *value)
{
    const char *c = text;
    int64_t n = 0;

    while (*c >= '0' && *c <= '9' && n <= most)
        n = 10 * n + (*c++ - '0');
    if (*c == '\0' && c != text && n >= 1 && n <= most) {
        *value = n;
        return true;
    }
    fprintf(stderr, "probe: -%c wants a number from 1 to %lld, not '%s'\n",
            option, (long long)most, text);
    return false;
}

/* For --help and --version. */
static int print(const char *first, const char *second)
{
    if (printf("%s%s", first, second) >= 0 && fflush(stdout) == 0)
        return EXIT_ALL_OPEN;
    fprintf(stderr, "probe: standard output: %s\n", strerror(errno));
    return EXIT_TROUBLE;
}

int read_options(struct options *options, int argc, char **argv)
{
    static const struct option names[] = {
        {"json", no_argument, NULL, 'j'},
        {"demo", no_argument, NULL, 'D'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int64_t at_once = 64, timeout = 0, whole = 0;
    int option;

    memset(options, 0, sizeof(*options));
    while ((option = getopt_long(argc, argv, "c:t:d:f:h", names, NULL)) != -1) {
        switch (option) {
        case 'c':
            if (!read_number('c', optarg, AT_ONCE_MOST, &at_once))
                return usage();
            break;
        case 't':
            if (!read_number('t', optarg, MS_MOST, &timeout))
                return usage();
            break;
        case 'd':
            if (!read_number('d', optarg, MS_MOST, &whole))
                return usage();
            break;
        case 'f':
            if (options->file != NULL) {
                fputs("probe: -f is there twice\n", stderr);
                return usage();
            }
            options->file = optarg;
            break;
        case 'j':
            options->json = true;
            break;
        case 'D':
            options->demo = true;
            break;
        case 'h':
            return print(usage_text, help_text);
        case 'V':
            return print("probe (parataxis) ", PX_VERSION_STRING "\n");
        default:
            return usage();
        }
    }
    options->targets = argv + optind;
    options->count = argc - optind;
    if (options->demo && (options->count > 0 || options->file != NULL)) {
        fputs("probe: --demo brings its own targets\n", stderr);
        return usage();
    }
    if (!options->demo && options->count == 0 && options->file == NULL) {
        if (isatty(STDIN_FILENO))
            return usage();
        options->file = "-";
    }
    options->at_once = (size_t)at_once;
    options->whole = whole > 0 ? whole * PX_MSEC : PX_FOREVER;
    options->timeout = timeout > 0     ? timeout * PX_MSEC
                       : options->demo ? DEMO_TIMEOUT
                                       : PX_SEC;
    return -1;
}
