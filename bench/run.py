#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure this library beside others; print a table, write JSON, draw it.

    scripts/bench               installs the peers where it may, then this
    bench/run.py                builds all of it below build/bench, runs it
    bench/run.py --bin DIR      runs the bench_* executables that DIR has

Each figure is the median of several rounds. Within a round every library takes
its turn at a row before the next row begins, in a process of its own, all
pinned to one core; so what the machine does meanwhile falls on all of them. The
first round is a warm-up and is thrown away. A measurement that breaks a check
(counts, order, two owners at once, too many permits, early wakes) is no result:
it is named, and the exit code is 1.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import growth
import picture
import table

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build" / "bench"
OURS = "parataxis"

# {executable: (name, what Debian calls it)}, in the order of columns.
LIBRARIES = {
    "parataxis": ("parataxis", None),
    "parataxis_static": ("static", None),
    "parataxis_lto": ("static+LTO", None),
    "boost_fiber": ("Boost.Fiber", "libboost-fiber-dev"),
    "state_threads": ("State Threads", "libst-dev"),
    "pth": ("GNU Pth", "libpth-dev"),
    "go": ("Go", "golang-go golang-golang-x-sync-dev"),
    "limit": ("limit", None),
}

# The row of bench_limit that no library can be below. (That of tcp-echo is the
# row of the same name.)
LIMITS = {
    "yield-same": "switch", "yield-different": "switch",
    "yield-wrapped": "switch", "yield-1000": "switch",
    "sem-handoff": "switch", "mutex-100": "switch", "weighted-100": "switch",
    "alive-cold": "first-touch", "million": "first-touch",
    "timeout-free-1s": "clock-coarse", "timeout-free-10ms": "clock-coarse",
    "timeout-armed": "clock-precise", "tcp-echo": "tcp-echo",
}

# What a row is like: the ROW_... of harness.h.
SLOW, CPU_MS, DENSE, LIMIT = 2, 8, 16, 32


def say(text):
    print(text, file=sys.stderr, flush=True)


# -- building ----------------------------------------------------------------

def cmake(*args):
    """0 and nothing, or a code and what was said."""
    command = ["cmake", *map(str, args)]
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def must(*args):
    code, said = cmake(*args)
    if code:
        say(said)
        sys.exit(f"run.py: cmake {' '.join(map(str, args))} failed")


def configure(*args):
    """A folder that was moved, or configured otherwise, is begun anew."""
    if cmake(*args)[0]:
        must("--fresh", *args)


def build_flavor(flavor):
    """The library of one flavor, installed, and the workloads against it."""
    say(f"building the library and the workloads: {flavor}")
    prefix = BUILD / flavor / "prefix"
    jobs = str(os.cpu_count() or 2)
    configure("-S", HERE.parent, "-B", BUILD / flavor / "library",
              "-DCMAKE_BUILD_TYPE=Release",
              f"-DBUILD_SHARED_LIBS={'ON' if flavor == 'shared' else 'OFF'}",
              "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION="
              f"{'ON' if flavor == 'lto' else 'OFF'}",
              "-DPARATAXIS_BUILD_TESTS=OFF", "-DPARATAXIS_BUILD_EXAMPLES=OFF",
              f"-DCMAKE_INSTALL_PREFIX={prefix}")
    must("--build", BUILD / flavor / "library", "--parallel", jobs)
    must("--install", BUILD / flavor / "library")
    configure("-S", HERE, "-B", BUILD / flavor / "bench",
              "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_PREFIX_PATH={prefix}",
              f"-DPX_BENCH_FLAVOR={flavor}", "-DBUILD_TESTING=OFF",
              f"-DCMAKE_RUNTIME_OUTPUT_DIRECTORY={BUILD / 'bin'}")
    must("--build", BUILD / flavor / "bench", "--parallel", jobs)


def prepare_build():
    if shutil.which("ninja"):
        os.environ.setdefault("CMAKE_GENERATOR", "Ninja")


def build():
    prepare_build()
    for flavor in ("shared", "static", "lto"):
        build_flavor(flavor)
    return BUILD / "bin"


# -- measuring ---------------------------------------------------------------

def executables(folder):
    """{library: executable}, in the order of columns."""
    found = {name: (Path(folder) / f"bench_{name}").resolve()
             for name in LIBRARIES}
    found = {name: path for name, path in found.items()
             if path.is_file() and os.access(path, os.X_OK)}
    if OURS not in found:
        sys.exit(f"run.py: no bench_{OURS} in {folder}")
    return found


def rows_of(executable):
    """{row: (what it is, its flags)}"""
    listed = subprocess.run([executable, "--list"], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    lines = (line.split("\t") for line in listed.splitlines())
    return {row: (what, int(flags)) for row, what, flags in lines}


def measure(executable, row, ms):
    try:
        done = subprocess.run([executable, row, "--ms", str(ms)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120)
    except subprocess.TimeoutExpired:
        return {"broken": "it did not end within 120 s"}
    try:
        return json.loads(done.stdout)
    except ValueError:
        why = done.stderr.strip().splitlines()
        return {"broken": f"it ended with {done.returncode}"
                          f"{': ' + why[-1] if why else ''}"}


def run(found, has, names, options):
    """{row: {library: [measurement, ...]}}, without the warm-up round."""
    results = {row: {library: [] for library in found if row in has[library]}
               for row in names}
    first = 1 if options.smoke else 0
    for turn in range(first, options.rounds + 1):
        say(f"round {turn} of {options.rounds}" if turn else "warm-up")
        for row in names:
            order = list(results[row])
            for library in order if turn % 2 else reversed(order):
                one = measure(found[library], row, options.ms)
                if turn > 0 or "broken" in one:
                    results[row][library].append(one)
    return results


# -- what came out -----------------------------------------------------------

def machine(options):
    cpu = platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "CPU part")):
                cpu = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return {"cpu": cpu, "cpus": os.cpu_count(), "kernel": platform.release(),
            "architecture": platform.machine(), "pinned_to": options.cpu,
            "echo_client": "another core" if (os.cpu_count() or 1) > 1
                           else "the same core",
            "date": time.strftime("%Y-%m-%d")}


def figures_of(samples, flags):
    """The samples of one library at one row, and what they amount to."""
    good = [one for one in samples if "broken" not in one]
    figures = {}
    broken = sorted({one["broken"] for one in samples if "broken" in one})
    if broken:
        figures["broken"] = broken
    for key in ("note", "instead"):
        if good and key in good[-1]:
            figures[key] = good[-1][key]
    if not good:
        return figures
    figures["samples"] = [one["ns"] for one in good]
    if flags & CPU_MS:
        figures["samples"] = [one["ns"] * one["ops"] / 1e6 for one in good]
    for key in ("start_ms", "p99_ms", "rss", "tables", "cpu_ns"):
        if key in good[0]:
            figures[key] = statistics.median(one[key] for one in good)
            figures[key + "_samples"] = [one[key] for one in good]
    if flags & CPU_MS:
        figures["each_ns"] = statistics.median(one["ns"] for one in good)
    if not broken and "instead" not in figures:
        figures["median"] = statistics.median(figures["samples"])
        figures["min"] = min(figures["samples"])
        figures["max"] = max(figures["samples"])
    return figures


def summarise(results, facts, found, options):
    """What goes into the JSON file, and all that table and picture show."""
    summary = {
        "machine": machine(options), "rounds": options.rounds,
        "ms": options.ms, "libraries": {}, "rows": [],
        "missing": {name: package
                    for key, (name, package) in LIBRARIES.items()
                    if package and key not in found and
                    not options.libraries},
    }
    for library in found:
        summary["libraries"][library] = {"name": LIBRARIES[library][0]}
    for row, libraries in results.items():
        what, flags = facts[row]
        entry = {"row": row, "what": what,
                 "unit": "CPU ms" if flags & CPU_MS else "ns",
                 "is_limit": bool(flags & LIMIT), "results": {}}
        for library, samples in libraries.items():
            entry["results"][library] = figures_of(samples, flags)
            for one in samples:
                if "version" in one:
                    summary["libraries"][library].update(
                        version=one["version"], compiler=one["compiler"])
        ours = entry["results"].get(OURS, {}).get("median")
        for figures in entry["results"].values():
            if ours and "median" in figures:
                figures["ratio"] = figures["median"] / ours
        summary["rows"].append(entry)
    limits = {entry["row"]: entry["results"]["limit"].get("median")
              for entry in summary["rows"] if "limit" in entry["results"]}
    for entry in summary["rows"]:
        limit = LIMITS.get(entry["row"])
        if limits.get(limit):
            entry["limit"] = {"row": limit, "median": limits[limit]}
    return summary


# -- the command -------------------------------------------------------------

def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="A whole run leaves results.json and results.svg (growth.json "
               "and growth.svg) in bench/; a quick or partial one leaves them "
               "in build/bench/.")
    parser.add_argument("--bin", type=Path, metavar="DIR",
                        help="run the bench_* executables there; build nothing")
    parser.add_argument("--rounds", type=int, default=7, metavar="N",
                        help="rounds that count, after the warm-up (7)")
    parser.add_argument("--ms", type=float, default=40,
                        help="length of a measurement (40)")
    parser.add_argument("--rows", metavar="A,B", help="only these (see --list)")
    parser.add_argument("--libraries", metavar="A,B",
                        help=f"only these, and {OURS}")
    parser.add_argument("--quick", action="store_true",
                        help="3 rounds of 10 ms, without the slow rows")
    parser.add_argument("--smoke", action="store_true",
                        help="only see that every check holds, once")
    parser.add_argument("--growth", action="store_true",
                        help="instead: cost against the number of fibers, "
                             "timers, ...; --quick to 10,000 of them")
    parser.add_argument("--cpu", type=int, help="pin to it (the last one)")
    parser.add_argument("--out", type=Path, metavar="DIR",
                        help="leave JSON and SVG there")
    parser.add_argument("--list", action="store_true", help="name the rows")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.ms = 3, 10
    if options.smoke:
        options.rounds, options.ms = 1, 1
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    if not options.ms > 0:
        parser.error("--ms: more than 0")
    allowed = os.sched_getaffinity(0)
    if options.cpu is None:
        options.cpu = max(allowed)
    if options.cpu not in allowed:
        parser.error(f"--cpu: one of {', '.join(map(str, sorted(allowed)))}")
    if options.growth and (options.rows or options.libraries):
        parser.error("--growth: measures all of its own, of this library")
    for library in (options.libraries or OURS).split(","):
        if library not in LIBRARIES:
            parser.error(f"--libraries: some of {', '.join(LIBRARIES)}")
    if options.out is None:
        whole = not (options.quick or options.rows or options.libraries or
                     options.bin)
        options.out = HERE if whole else BUILD
    return options


def chosen(facts, options):
    """The rows to measure; a row that was asked for may be slow."""
    if not options.rows:
        quick = options.quick or options.smoke
        room = growth.room_for_fibers() >= 1000000
        if not quick and not room:
            say("left out, for want of memory: a million fibers")
        return [row for row, (_, flags) in facts.items()
                if not (quick and flags & SLOW) and
                (room or not flags & DENSE)]
    for row in options.rows.split(","):
        if row not in facts:
            sys.exit(f"run.py: no row {row!r}; --list names them")
    return options.rows.split(",")


def measure_growth(options):
    if options.bin is None:
        prepare_build()
        build_flavor("shared")
    rounds, largest = (1, 10000) if options.quick else (3, 1000000)
    if options.smoke:
        largest = 10
    else:
        os.sched_setaffinity(0, {options.cpu})
    folder = (options.bin or BUILD / "bin").resolve()
    results = growth.run(folder / "growth", rounds, largest, say)
    if options.smoke:
        return 0
    results["machine"] = machine(options)
    write(options, "growth", results, growth.draw(results))
    return 0


def write(options, name, results, drawing):
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"{name}.json").write_text(
        json.dumps(results, indent=1) + "\n")
    (options.out / f"{name}.svg").write_text(drawing)
    for kind in ("json", "svg"):
        say(f"written: {os.path.relpath(options.out / f'{name}.{kind}')}")


def main():
    options = arguments()
    if options.growth:
        return measure_growth(options)
    found = executables(options.bin or build())
    if options.libraries:
        wanted = {OURS, *options.libraries.split(",")}
        found = {name: path for name, path in found.items() if name in wanted}
    has = {library: rows_of(path) for library, path in found.items()}
    facts = {}
    for rows in has.values(): # ours come first, the limits' own last
        for row, fact in rows.items():
            facts.setdefault(row, fact)
    if options.list:
        print("\n".join(f"{row:20} {what}" for row, (what, _) in facts.items()))
        return 0
    names = chosen(facts, options)
    for key, (name, package) in LIBRARIES.items():
        if package and key not in found and not options.libraries:
            say(f"left out, not installed: {name} ({package})")
    if not options.smoke:
        os.sched_setaffinity(0, {options.cpu})
    results = run(found, has, names, options)
    summary = summarise(results, facts, found, options)
    print(table.text(summary))
    if not options.smoke:
        write(options, "results", summary, picture.draw(summary))
    return any("broken" in figures for entry in summary["rows"]
               for figures in entry["results"].values())


if __name__ == "__main__":
    sys.exit(main())
