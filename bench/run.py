#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure this library beside others, and print one table.

    bench/run.py                build and install the shared library below
                                build/bench, build the workloads, run them
    bench/run.py --bin DIR      run the bench_* executables that DIR has

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
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OURS = "parataxis"


def say(text):
    print(text, file=sys.stderr, flush=True)


def build(root):
    """Install the library into root/prefix, and return where the bench is."""
    prefix = root / "prefix"

    def cmake(*args):
        command = ["cmake", *map(str, args)]
        done = subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            say(done.stdout)
            sys.exit(f"run.py: {' '.join(command)} failed")

    say("building and installing the shared library")
    cmake("-S", HERE.parent, "-B", root / "library",
          "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON",
          "-DPARATAXIS_BUILD_TESTS=OFF", "-DPARATAXIS_BUILD_EXAMPLES=OFF",
          f"-DCMAKE_INSTALL_PREFIX={prefix}")
    cmake("--build", root / "library", "--parallel", "2")
    cmake("--install", root / "library")
    say("building the workloads")
    cmake("-S", HERE, "-B", root / "bench", "-DCMAKE_BUILD_TYPE=Release",
          f"-DCMAKE_PREFIX_PATH={prefix}")
    cmake("--build", root / "bench", "--parallel", "2")
    return root / "bench"


def executables(folder):
    """{library: executable}, this one first."""
    found = {path.name[len("bench_"):]: path.resolve()
             for path in sorted(Path(folder).glob("bench_*"))
             if path.is_file() and os.access(path, os.X_OK)}
    if OURS not in found:
        sys.exit(f"run.py: no bench_{OURS} in {folder}")
    return {OURS: found.pop(OURS), **found}


def rows_of(executable):
    listed = subprocess.run([executable, "--list"], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    return dict(line.split("\t") for line in listed.splitlines())


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


def run(found, names, rounds, ms):
    """{row: {library: [measurement, ...]}}, without the warm-up round."""
    has = {library: rows_of(path) for library, path in found.items()}
    results = {row: {library: [] for library in found if row in has[library]}
               for row in names}
    for turn in range(rounds + 1):
        for row in names:
            order = list(results[row])
            for library in order if turn % 2 else reversed(order):
                one = measure(found[library], row, ms)
                if turn > 0 or "broken" in one:
                    results[row][library].append(one)
        say(f"round {turn} of {rounds}" if turn else "warm-up")
    return results


def cpu_model():
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "CPU part")):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def summarise(results, what, found, options):
    """What goes into the JSON file, and all that the table is made of."""
    summary = {
        "machine": {"cpu": cpu_model(), "cpus": os.cpu_count(),
                    "kernel": platform.release(), "pinned_to": options.cpu},
        "rounds": options.rounds, "ms": options.ms,
        "libraries": {}, "rows": [],
    }
    for row, libraries in results.items():
        entry = {"row": row, "what": what[row], "unit": "ns", "results": {}}
        for library, samples in libraries.items():
            good = [one for one in samples if "broken" not in one]
            figures = {"samples": [one["ns"] for one in good]}
            broken = {one["broken"] for one in samples if "broken" in one}
            if broken:
                figures["broken"] = sorted(broken)
            elif "cpu_ms" in good[0]:
                entry["unit"] = "CPU ms, p99 ms late"
                figures["samples"] = [one["cpu_ms"] for one in good]
                figures["p99_ms"] = statistics.median(
                    one["p99_ms"] for one in good)
            if figures["samples"]:
                figures["median"] = statistics.median(figures["samples"])
                figures["min"] = min(figures["samples"])
                figures["max"] = max(figures["samples"])
            if good:
                summary["libraries"][library] = {
                    key: good[0][key] for key in ("version", "compiler")}
                if good[-1].get("note"):
                    figures["note"] = good[-1]["note"]
            entry["results"][library] = figures
        ours = entry["results"].get(OURS, {})
        for library, figures in entry["results"].items():
            if library != OURS and good_pair(ours, figures):
                figures["ratio"] = figures["median"] / ours["median"]
        summary["rows"].append(entry)
    for library in found:
        summary["libraries"].setdefault(library, {"version": "?"})
    return summary


def good_pair(ours, theirs):
    return all("median" in one and "broken" not in one and one["median"] > 0
               for one in (ours, theirs))


def cell(figures):
    if not figures:
        return "-"
    if "broken" in figures:
        return "BROKEN"
    if "p99_ms" in figures:
        return f"{figures['median']:.0f} / {figures['p99_ms']:.1f}"
    median = figures["median"]
    return f"{median:.0f}" if median >= 100 else f"{median:.1f}"


def table(summary):
    peers = [one for one in summary["libraries"] if one != OURS]
    order = [OURS, *peers]
    lines = [["ns per operation", *order,
              *(f"{peer} / {OURS}" for peer in peers)]]
    notes = []
    for entry in summary["rows"]:
        line = [entry["what"] + ("" if entry["unit"] == "ns"
                                 else f" ({entry['unit']})")]
        for library in order:
            figures = entry["results"].get(library, {})
            remarks = [figures["note"]] if "note" in figures else []
            remarks += [f"{entry['row']} is broken: {why}"
                        for why in figures.get("broken", [])]
            text = cell(figures)
            for remark in remarks:
                notes.append(f"{library}: {remark}")
                text += f" [{len(notes)}]"
            line.append(text)
        for peer in peers:
            ratio = entry["results"].get(peer, {}).get("ratio")
            line.append(f"{ratio:.1f} x" if ratio else "-")
        lines.append(line)
    widths = [max(map(len, column)) for column in zip(*lines)]
    out = []
    for number, line in enumerate(lines):
        out.append("  ".join([line[0].ljust(widths[0])] + [
            text.rjust(width) for text, width in zip(line[1:], widths[1:])]))
        if number == 0:
            out.append("  ".join("-" * width for width in widths))
    out += [f"[{number}] {note}" for number, note in enumerate(notes, 1)]
    machine = summary["machine"]
    out.append("")
    out.append(f"{machine['cpu']}, Linux {machine['kernel']}, core "
               f"{machine['pinned_to']}; medians of {summary['rounds']} rounds")
    out += [f"{library} {facts['version']}, {facts.get('compiler', '?')}"
            for library, facts in summary["libraries"].items()]
    return "\n".join(out)


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="Without --bin, everything is built below build/bench first.")
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
                        help="3 rounds of 10 ms, for a first look")
    parser.add_argument("--cpu", type=int, help="pin to it (the last one)")
    parser.add_argument("--json", type=Path, metavar="FILE",
                        help="write every sample there, too")
    parser.add_argument("--text", type=Path, metavar="FILE",
                        help="write the table there, too")
    parser.add_argument("--list", action="store_true", help="name the rows")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.ms = 3, 10
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    if options.cpu is None:
        options.cpu = max(os.sched_getaffinity(0))
    return options


def main():
    options = arguments()
    folder = options.bin or build(HERE.parent / "build" / "bench")
    found = executables(folder)
    if options.libraries:
        wanted = {OURS, *options.libraries.split(",")}
        found = {name: path for name, path in found.items() if name in wanted}
    what = {}
    for path in found.values():
        for row, text in rows_of(path).items():
            what.setdefault(row, text)
    if options.list:
        print("\n".join(f"{row:20} {text}" for row, text in what.items()))
        return 0
    names = options.rows.split(",") if options.rows else list(what)
    for row in names:
        if row not in what:
            sys.exit(f"run.py: no row {row!r}; --list names them")
    os.sched_setaffinity(0, {options.cpu})
    results = run(found, names, options.rounds, options.ms)
    summary = summarise(results, what, found, options)
    text = table(summary)
    print(text)
    if options.text:
        options.text.write_text(text + "\n")
    if options.json:
        options.json.write_text(json.dumps(summary, indent=1) + "\n")
    return any("broken" in figures for entry in summary["rows"]
               for figures in entry["results"].values())


if __name__ == "__main__":
    sys.exit(main())
