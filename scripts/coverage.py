#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What of src/ the tests have reached.

    coverage.py SOURCE_DIR gcov BUILD_DIR...
    coverage.py SOURCE_DIR llvm EXPORT...

By gcov's counts of every object in the build directories, or by what
`llvm-cov export` says of all programs of one kind in one build. In several builds
a function may differ by what the preprocessor left of it, so they are added up
here: places are told apart by where they stand in the source, and inside a macro
by where that is used. (gcovr adds up branches by their number, and takes those
that only an exception takes for usual ones where a build did not run the
function.) Prints what was not reached, and then the figures as NAME REACHED ALL.
"""
import json
import os
import subprocess
import sys
from multiprocessing.pool import ThreadPool

CODE, EXPANSION = 0, 1
END = "GCOVR_EXCL"


def excluded(path, cache={}):
    """The lines which are not to be counted, because the source says so, or
    because they end a function that does not return there. What is done if
    something happens that is said never to happen is one statement."""
    if path not in cache:
        lines, within, never = set(), False, False
        with open(path, encoding="utf-8") as source:
            for number, line in enumerate(source, 1):
                within = within or END + "_START" in line
                if within or never or END + "_LINE" in line or \
                        line.strip() in "{}":
                    lines.add(number)
                within = within and END + "_STOP" not in line
                never = "if (PX_NEVER(" in line or never and ";" not in line
        cache[path] = lines
    return cache[path]


# -- gcov --

def by_gcov(notes):
    """All that gcov says of an object."""
    folder, name = os.path.split(os.path.abspath(notes))
    told = subprocess.run(
        ["gcov", "--branch-probabilities", "--branch-counts", "--json-format",
         "--stdout", name],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        check=True).stdout
    return [json.loads(line) for line in told.splitlines()]


def add_gcov(counts, told, top):
    """Lines by their number, branches by their number among those of a line
    that has as many, of the same kinds, in each build."""
    for file in told["files"]:
        path = os.path.realpath(
            os.path.join(told["current_working_directory"], file["file"]))
        if not path.startswith(top + "/src/"):
            continue
        for line in file["lines"]:
            number = line["line_number"]
            if number in excluded(path):
                continue
            kinds = tuple(branch["throw"] for branch in line["branches"])
            found = [(("lines", ()), line["count"])]
            found += [(("branches", (kinds, i)), branch["count"])
                      for i, branch in enumerate(line["branches"])
                      if not branch["throw"]]
            for (kind, which), count in found:
                key = (path, (number, 0), which)
                counts[kind][key] = counts[kind].get(key, 0) + count


def read_gcov(top, builds):
    counts = {"lines": {}, "branches": {}}
    notes = [os.path.join(folder, name) for build in builds
             for folder, _, names in os.walk(build)
             for name in names if name.endswith(".gcno")]
    for documents in ThreadPool(os.cpu_count()).map(by_gcov, notes):
        for told in documents:
            add_gcov(counts, told, top)
    return counts


# -- llvm-cov --

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


def add_llvm(counts, function, top):
    used = expansions(function)
    for kind, ways in (("regions", ("",)), ("branches", ("true", "false"))):
        for record in function[kind]:
            if kind == "regions" and record[-1] != CODE:
                continue
            path, places = chain(function, used, record[-3])
            places += (tuple(record[:4]),)
            if not path.startswith(top + "/src/") or \
                    places[0][0] in excluded(path):
                continue
            for way, count in zip(ways, record[4:]):
                key = (path, places[0][:2], (places, way))
                counts[kind][key] = counts[kind].get(key, 0) + count


def lines_of(regions):
    """A line is as often run as the innermost region that begins on it or
    reaches over it."""
    lines = {}
    # Outer ones first: what begins later overwrites.
    for (path, _, (places, _)), count in sorted(regions.items()):
        if len(places) == 1:
            first, _, last, _ = places[0]
            for number in range(first, last + 1):
                lines[path, (number, 0), ()] = count
    return lines


def read_llvm(top, exports):
    counts = {"regions": {}, "branches": {}}
    for name in exports:
        with open(name, encoding="utf-8") as file:
            for function in json.load(file)["data"][0]["functions"]:
                add_llvm(counts, function, top)
    counts["lines"] = lines_of(counts.pop("regions"))
    return counts


# -- both --

def main(top, tool, *names):
    top = os.path.realpath(top)
    counts = {"gcov": read_gcov, "llvm": read_llvm}[tool](top, names)
    missed = {}
    for kind, found in counts.items():
        for (path, place, _), count in found.items():
            if not count:
                where = (os.path.relpath(path, top), place[0])
                missed.setdefault(where, []).append(kind)
    for (path, line), kinds in sorted(missed.items()):
        with open(os.path.join(top, path), encoding="utf-8") as source:
            text = source.read().splitlines()[line - 1].strip()
        what = ", ".join(f"{kinds.count(kind)} {kind}"
                         for kind in sorted(set(kinds)))
        print(f"  {path}:{line}: {what}: {text}")
    for kind in sorted(counts):
        found = counts[kind].values()
        print(kind, sum(count > 0 for count in found), len(found))


main(*sys.argv[1:])
