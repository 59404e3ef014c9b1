#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Do the tools find in a fiber what they find elsewhere, and nothing else?

    expect_reports.py [LAUNCHER ...] PROGRAM

PROGRAM is faults.c, LAUNCHER may be valgrind. A test suite that runs clean
under a sanitizer says little as long as nobody has seen it report: a switch
that it was not told of can make it blind as well as wrong. So each of the
faults must give its own report, and each counterpart none.
"""
import os
import re
import subprocess
import sys

# Of each tool: what is done, what is to be reported (None: nothing), how that
# reads, and what the tool's options are.
ASAN_RETURN = {"ASAN_OPTIONS": "detect_stack_use_after_return=1"}
ASAN_LEAKS = {"ASAN_OPTIONS": "detect_leaks=1"}
EXPECTED = {
    "asan": [
        ("overflow_by_one", "a byte behind an array of a fiber's frame",
         r"AddressSanitizer: stack-buffer-overflow[\s\S]*WRITE of size 1"
         r"[\s\S]*in write_up_to", {}),
        ("use_after_return", "a frame that has gone, in a fiber",
         r"AddressSanitizer: stack-use-after-return[\s\S]*in use_after_return",
         ASAN_RETURN),
        ("lose", "memory that nobody holds",
         r"LeakSanitizer: detected memory leaks[\s\S]*leak of 4321 byte"
         r"[\s\S]*in lose_it", ASAN_LEAKS),
        ("hold", "memory that a parked fiber's stack alone holds", None,
         ASAN_LEAKS),
        ("no_overflow", "an array that is filled", None, ASAN_RETURN),
        ("no_race_of_fibers", "two fibers that take turns", None, ASAN_RETURN),
    ],
    "tsan": [
        ("race_with_a_thread", "a fiber and a thread that write one word",
         r"WARNING: ThreadSanitizer: data race[\s\S]*racing-fiber", {}),
        ("no_race_of_fibers", "two fibers that write one word", None, {}),
        ("no_overflow", "a fiber that does no harm", None, {}),
    ],
    "msan": [
        ("uninitialised", "a word that nobody wrote",
         r"MemorySanitizer: use-of-uninitialized-value[\s\S]*in decide_by",
         {}),
        ("initialised", "a word that was written", None, {}),
        ("no_race_of_fibers", "two fibers that take turns", None, {}),
    ],
    "valgrind": [
        ("uninitialised", "a word that nobody wrote",
         r"depends on uninitialised value[\s\S]*decide_by", {}),
        ("lose", "memory that nobody holds",
         r"4,321 bytes in 1 blocks are definitely lost[\s\S]*lose_it", {}),
        ("initialised", "a word that was written", None, {}),
        ("hold", "memory that a parked fiber's stack alone holds", None, {}),
        ("no_race_of_fibers", "two fibers that take turns", None, {}),
    ],
}


def look(command, fault, pattern, options):
    """Whether the report is as expected; and what was said."""
    done = subprocess.run(command + [fault], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=100,
                          env={**os.environ, **options}, check=False)
    if pattern is None:
        return done.returncode == 0 and done.stdout == "", done.stdout
    found = re.search(pattern, done.stdout) is not None
    return found and done.returncode != 0, done.stdout


def main(command):
    tool = subprocess.run([command[-1], "tool"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()
    if os.path.basename(command[0]) == "valgrind":
        tool = "valgrind"
    if tool not in EXPECTED:
        print("skipped: no tool is at work here")
        return 77
    failed = 0
    for fault, what, pattern, options in EXPECTED[tool]:
        holds, said = look(command, fault, pattern, options)
        verb = "leaves alone" if pattern is None else "reports"
        print(f"{'ok   ' if holds else 'FAIL '} {tool} {verb} {what}",
              flush=True)
        if not holds:
            failed += 1
            for line in said.splitlines()[:60]:
                print(f"    {line}")
    print(f"{len(EXPECTED[tool]) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
