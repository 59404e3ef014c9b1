#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What one run of ctest came to.

    report.py NAME JUNIT_XML BUILD_DIR RESULTS SECONDS [REFERENCE_XML]

Counts test functions, not programs: a cmocka program tells on its output what
each of its tests did, and so do some scripts; any other program is one test.
Says how many passed, what failed, what was skipped and what was left out, and
why. A program that ran fewer tests than in the run of REFERENCE_XML has failed,
too: a preset must not lose tests by the way. Appends "NAME passed failed
skipped" to RESULTS, and what failed and was said of it to RESULTS.failures.
Exits 1 if anything failed.
"""
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

# Why a test is left out of a run; by its label in tests/CMakeLists.txt.
LEFT_OUT = {
    "nightly": "takes minutes or gigabytes, runs when asked for",
    "release": "takes hours, runs when asked for",
    "exhaustive": "by the preset of that name",
    "model": "runs under asan itself",
    "faults": "runs under dev, asan, clang and where coverage is counted",
    "crash": "ends its process on purpose",
    "fork": "forks",
    "install": "runs once, under dev",
    "instructions": "runs once, under hardened",
    "binary": "looks at the library as it is shipped",
    "source": "looks at the source only",
    "order": "pins the order of the run queue",
    "realtime": "looks at the real clock",
}


class Tally:
    """Counts, with a line for everything that is not a plain success."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []
        self.outputs = []
        self.counts = {}  # of tests, by program


def base(program):
    """A test that is run by a seed is the same program."""
    return re.sub(r"\.seed\d+$", "", program)


def by_seeds(lines):
    """What several seeds have in common is one line, which names them."""
    seeds = {}
    for line in lines:
        match = re.match(r"([^:]*)\.seed(\d+)(:.*)", line)
        key = (match.group(1), match.group(3)) if match else (line, "")
        seeds.setdefault(key, []).append(match.group(2) if match else None)
    for (program, rest), numbers in seeds.items():
        if numbers == [None]:
            yield program
        else:
            yield f"{program} (seed {', '.join(numbers)}){rest}"


def cmocka(program, output, tally):
    """Count the tests of a cmocka program; how many there were."""
    begun = re.compile(r"^\[ RUN      \] (.*)$")
    ended = re.compile(r"^\[ *(OK|FAILED|SKIPPED|ERROR) *\] (.*)$")
    current = None
    said = []
    count = 0

    def fail():
        tally.failed.append(f"{program}: {current}")

    for line in output.splitlines():
        match = begun.match(line)
        if match:
            if current is not None:
                fail()  # it never came to an end
            current, said = match.group(1), []
            count += 1
            continue
        match = ended.match(line)
        if match and match.group(2) == current:
            if match.group(1) == "OK":
                tally.passed += 1
            elif match.group(1) == "SKIPPED":
                reason = reason_of(said)
                tally.skipped.append(f"{program}: {current}: {reason}")
            else:
                fail()
            current = None
        else:
            said.append(line)
    if current is not None:
        fail()
    return count


def sentences(program, output, tally):
    """Count the tests of a script that says what holds; how many there were.

    A line for each, "ok    sentence", "FAIL  sentence" or "skip  sentence:
    reason", and at the end "N passed, N failed".
    """
    if not re.search(r"^\d+ passed, \d+ failed$", output, re.MULTILINE):
        return 0
    lines = re.findall(r"^(ok|FAIL|skip) +(.*)$", output, re.MULTILINE)
    for outcome, sentence in lines:
        if outcome == "ok":
            tally.passed += 1
        elif outcome == "FAIL":
            tally.failed.append(f"{program}: {sentence[:200]}")
        else:
            tally.skipped.append(f"{program}: {sentence}")
    return len(lines)


def without_successes(output):
    """The lines of an output, but for those that only say what went well."""
    lines = []
    for line in output.splitlines():
        match = re.match(r"^\[       OK \] (.*)$", line)
        if match and lines and lines[-1] == f"[ RUN      ] {match.group(1)}":
            lines.pop()
        elif not re.match(r"^ok    ", line):
            lines.append(line)
    return lines


def reason_of(lines):
    """The last thing said before a skip is why."""
    lines = [line.strip() for line in lines if line.strip()]
    if not lines:
        return "no reason given"
    return re.sub(r"^skip(ped)?:? *", "", lines[-1], flags=re.IGNORECASE)


def count_program(case, tally):
    name = case.get("name")
    output = case.findtext("system-out") or ""
    status = case.get("status")

    if status == "disabled":
        tally.skipped.append(f"{name}: disabled")
        return
    if status == "notrun":
        skipped = case.find("skipped")
        why = reason_of(output.splitlines())
        if why == "no reason given" and skipped is not None:
            why = skipped.get("message") or why
        # Skipped says its return code or pattern; else it could not be run.
        if skipped is not None and "SKIP" in (skipped.get("message") or ""):
            tally.skipped.append(f"{name}: {why}")
        else:
            tally.failed.append(f"{name}: not run: {why}")
        return
    failed_before = len(tally.failed)
    count = cmocka(name, output, tally) or sentences(name, output, tally)
    tally.counts[name] = max(count, 1)
    if status == "run":
        if count == 0:
            tally.passed += 1
        return
    if len(tally.failed) == failed_before:
        seconds = float(case.get("time") or 0)
        tally.failed.append(f"{name}: the program failed, after "
                            f"{seconds:.1f} s")
    tally.outputs.append((name, output))


def left_out(name, cases, build_dir):
    """Programs that this run did not select, by the label that says why."""
    reasons = [label for label in LEFT_OUT
               if (label in ("order", "realtime")) == (name == "shuffle")]
    listing = subprocess.run(
        ["ctest", "--test-dir", build_dir, "--show-only=json-v1"],
        capture_output=True, check=True, text=True).stdout
    chosen = {base(case.get("name")) for case in cases}
    groups = {}
    for test in json.loads(listing)["tests"]:
        if base(test["name"]) in chosen:
            continue
        labels = []
        for item in test.get("properties", []):
            if item["name"] == "LABELS":
                labels = item["value"]
        known = [label for label in reasons if label in labels]
        groups.setdefault(known[0] if known else "", set()).add(test["name"])
    return groups


def read(junit):
    """The programs of a run, and what they came to."""
    cases = ElementTree.parse(junit).getroot().findall("testcase")
    tally = Tally()
    for case in cases:
        count_program(case, tally)
    return cases, tally


def tell_failures(tally):
    """The outputs of the programs that failed, as lines."""
    for program, output in tally.outputs:
        yield f"{program} said:"
        lines = without_successes(output)
        if len(lines) > 80:
            lines[50:-30] = [f"... {len(lines) - 80} lines ..."]
        for line in lines:
            yield f"  | {line}"


def main(name, junit, build_dir, results, seconds, reference=None):
    cases, tally = read(junit)
    if reference:
        expected = read(reference)[1].counts
        for program, count in tally.counts.items():
            wanted = expected.get(base(program), 0)
            if count < wanted:
                tally.failed.append(f"{program}: has {count} tests, "
                                    f"{wanted} elsewhere")
    failures = list(tell_failures(tally))
    failures += [f"    failed: {line}" for line in by_seeds(tally.failed)]
    summary = f"{tally.passed} passed, {len(tally.failed)} failed"
    if tally.skipped:
        summary += f", {len(tally.skipped)} skipped"
    print(f"{name}: {summary} ({len(cases)} programs, {seconds} s)")
    for line in failures:
        print(line)
    for line in by_seeds(tally.skipped):
        print(f"    skipped: {line}")
    for label, tests in sorted(left_out(name, cases,
                                        build_dir).items()):
        if label in LEFT_OUT:
            print(f"    left out ({LEFT_OUT[label]}): "
                  f"{', '.join(sorted(tests))}")
        else:
            print(f"    left out (not of this kind): {len(tests)} programs")
    with open(results, "a", encoding="ascii") as file:
        file.write(f"{name} {tally.passed} {len(tally.failed)} "
                   f"{len(tally.skipped)}\n")
    if failures:
        with open(f"{results}.failures", "a", encoding="utf-8") as file:
            file.write("\n".join([f"{name}:"] + failures) + "\n")
    sys.stdout.flush()
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
