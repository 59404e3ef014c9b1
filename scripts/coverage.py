#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What of src/ the tests have reached, by llvm-cov.

    coverage.py SOURCE_DIR EXPORT...

Each export is `llvm-cov export` of all programs of one kind in one build. In
several builds one function may differ by what the preprocessor left of it, so
they are added up here: places are told apart by where they stand in the source,
and inside a macro by where that is used. Prints the figures of lines, regions
and branches as NAME REACHED ALL, and before them what was not reached.
"""
import json
import os
import sys

CODE, EXPANSION = 0, 1
END = "GCOVR_EXCL"


def excluded(path, cache={}):
    """The lines which the source says are not to be counted."""
    if path not in cache:
        lines, within = set(), False
        with open(path, encoding="utf-8") as source:
            for number, line in enumerate(source, 1):
                within = (within or END + "_START" in line)
                if within or END + "_LINE" in line:
                    lines.add(number)
                within = within and END + "_STOP" not in line
        cache[path] = lines
    return cache[path]


def expansions(function):
    """Where each of a function's files is used: the file of the function
    itself nowhere, that of a macro at a place of another."""
    return {region[6]: (region[5], tuple(region[:4]))
            for region in function["regions"] if region[7] == EXPANSION}


def chain(function, used, file):
    """The places that lead to a file, the outermost first, and the outermost's
    own file."""
    places = []
    while file in used:
        file, place = used[file]
        places.insert(0, place)
    return function["filenames"][file], tuple(places)


def add(counts, function, top):
    used = expansions(function)
    for kind, wanted in (("regions", CODE), ("branches", None)):
        for record in function[kind]:
            file = record[-3]
            if wanted is not None and record[-1] != wanted:
                continue
            path, places = chain(function, used, file)
            if not path.startswith(top + "/src/"):
                continue
            place = places + (tuple(record[:4]),)
            if place[0][0] in excluded(path):
                continue
            found = record[4:-3]
            key = (path, place)
            before = counts[kind].get(key, (0,) * len(found))
            counts[kind][key] = tuple(map(sum, zip(before, found)))


def lines(regions):
    """A line is as often run as the innermost region that begins on it or
    reaches over it."""
    files = {}
    for (path, place), (count, *_) in regions.items():
        if len(place) == 1:
            files.setdefault(path, []).append((place[0], count))
    for path, found in files.items():
        reached = {}
        # Outer ones first: what begins later overwrites.
        for (first, _, last, _), count in sorted(found):
            for number in range(first, last + 1):
                reached[number] = count
        yield path, reached


def main(top, exports):
    top = os.path.realpath(top)
    counts = {"regions": {}, "branches": {}}
    for name in exports:
        with open(name, encoding="utf-8") as file:
            for function in json.load(file)["data"][0]["functions"]:
                add(counts, function, top)
    missed, sums = {}, {}
    for kind, ways in (("regions", ("",)), ("branches", ("true", "false"))):
        done = 0
        for (path, place), found in counts[kind].items():
            for way, count in zip(ways, found):
                done += count > 0
                if not count:
                    where = (os.path.relpath(path, top), place[0][:2])
                    missed.setdefault(where, set()).add(
                        f"{kind[:6]} {way}".strip())
        sums[kind] = (done, len(counts[kind]) * len(ways))
    reached = [count for _, found in lines(counts["regions"])
               for count in found.values()]
    sums["lines"] = (sum(count > 0 for count in reached), len(reached))
    for (path, (line, column)), what in sorted(missed.items()):
        print(f"  {path}:{line}:{column}: {', '.join(sorted(what))}")
    for kind in ("lines", "regions", "branches"):
        print(kind, *sums[kind])


main(sys.argv[1], sys.argv[2:])
