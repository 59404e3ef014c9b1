/* SPDX-License-Identifier: MIT */
/*
 * fuzz.c - programs and schedules made of the bytes that libFuzzer finds.
 *
 * Any bytes are a program: the first two say with what the semaphore begins and
 * how many fibers there are, the third how many calls each makes, then two for
 * each call; what is left over are choices. So a corpus may be plain text.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "play.h"
#include "scheduler.h"

static const char letters[] =
    "dDtwualkrLMTUANWVexsCOczSypgGqhifFvXYojbBEZJKPQHmR";

static struct chooser chooser;
static struct program program;

static int play_it(void *arg)
{
    (void)arg;
    play(&program, &chooser);
    return 0;
}

/* Calls about handles say which (handles.c); for others -1 to 4. */
static int8_t number_for(char letter, uint8_t byte)
{
    return (int8_t)(strchr("JKPQHmR", letter) ? byte % 5 * 10 + byte / 5 % 3
                                              : byte % 6 - 1);
}

static bool make(const uint8_t *data, size_t size)
{
    size_t at = 3;

    if (size < at)
        return false;
    memset(&program, 0, sizeof(program));
    program.bounded = data[0] % 2;
    program.permits = (int8_t)(data[0] / 2 % 4);
    program.fibers = 2 + data[1] % (REF_FIBERS - 1);
    for (int f = 0; f < program.fibers; f++) {
        program.lengths[f] = 1 + data[2] % 12;
        for (int i = 0; i < program.lengths[f] && at + 1 < size; i++, at += 2) {
            char letter = letters[data[at] % (sizeof(letters) - 1)];

            program.calls[f][i] =
                (struct call){letter, number_for(letter, data[at + 1])};
        }
        for (int i = 0; i < program.lengths[f]; i++) {
            if (!program.calls[f][i].what)
                program.lengths[f] = i;
        }
    }
    chooser.mode = CHOOSE_GIVEN;
    chooser.length = 0;
    for (; at < size && chooser.length < PATH_MOST; at++)
        chooser.path[chooser.length++] = data[at];
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    px_run_options options = {.clock = PX_CLOCK_VIRTUAL, .offload_threads = 2};

    px__seam_pick = play_pick;
    if (make(data, size))
        (void)px_run_with(&options, play_it, NULL);
    return 0;
}
