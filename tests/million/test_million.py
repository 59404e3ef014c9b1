#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs examples/11_a_million_fibers with a million of them.

    test_million.py PROGRAM

Takes 5 GB of memory and some ten seconds. Looks at counts, order and memory;
what it takes of time it only tells.
"""
import os
import re
import subprocess
import sys

FIBERS = 1000000
NEEDED = 6 << 20  # KiB of memory
MEMORY = 4250  # bytes of each fiber,
TABLES = 130  # and of page tables
KEPT = 0.01


def number(text, pattern):
    match = re.search(pattern, text, re.MULTILINE)
    return float(match.group(1)) if match else float("nan")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def most_mappings():
    with open("/proc/sys/vm/max_map_count", encoding="ascii") as file:
        return int(file.read())


def need_a_machine_for_it():
    """Memory, and guards that are no mappings."""
    release = os.uname().release
    version = [int(part) for part in re.findall(r"\d+", release)[:2]]
    if version < [6, 13]:
        skip(f"Linux {release} has no light guards")
    with open("/proc/meminfo", encoding="ascii") as file:
        available = number(file.read(), r"^MemAvailable: *(\d+) kB")
    if not available >= NEEDED:
        skip(f"{NEEDED >> 20} GiB of memory are not available")


def look(program, stack, check):
    what = f"{stack} KiB stacks:"
    mappings = most_mappings()
    done = subprocess.run([program, "-n", str(FIBERS), "-s", str(stack)],
                          capture_output=True, text=True, timeout=250,
                          check=False)
    text = done.stdout
    for line in text.splitlines() + done.stderr.splitlines():
        print(f"    {line}")
    figure = r"(-?[\d.]+)"
    memory = number(text, rf"^memory of one: {figure} B")
    tables = number(text, rf"^memory of one: .*page tables: {figure} B")
    before = number(text, rf"^before: {figure} MiB")
    parked = number(text, rf"^all parked: {figure} MiB")
    after = number(text, rf"^after the run: {figure} MiB")
    tables_before = number(text, rf"^before: .*page tables: {figure} MiB")
    tables_after = number(text, rf"^after the run: .*page tables: {figure} MiB")

    check(f"{what} a million are parked at once",
          f"{FIBERS} fibers are parked\n" in text and done.returncode == 0)
    check(f"{what} all are woken in order, and end",
          f"{FIBERS} have ended, 0 of them out of order\n" in text)
    check(f"{what} one takes {memory:.0f} B of memory, of {MEMORY}",
          memory <= MEMORY)
    check(f"{what} with its page tables {memory + tables:.0f} B, of "
          f"{MEMORY + TABLES}", memory + tables <= MEMORY + TABLES)
    check(f"{what} after the run {after - before:.0f} MiB of "
          f"{parked - before:.0f} MiB are kept",
          after - before <= KEPT * (parked - before))
    check(f"{what} the page tables are given back",
          tables_after - tables_before <= 1)
    check(f"{what} vm.max_map_count is {mappings}, which would not do for "
          f"guards that are mappings",
          most_mappings() == mappings < FIBERS)


def main(program):
    outcomes = []

    def check(sentence, holds):
        outcomes.append(holds)
        print(f"{'ok   ' if holds else 'FAIL '} {sentence}", flush=True)

    need_a_machine_for_it()
    for stack in (64, 16):
        look(program, stack, check)
    failed = outcomes.count(False)
    print(f"{len(outcomes) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
