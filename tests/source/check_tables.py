#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare the tables of tests/README.md with the tests.

    check_tables.py SOURCE_DIR

Fails, with one line for each difference, unless
  - each test that a table names is in the list of the program it is named with;
  - each "test `name`" is added in tests/CMakeLists.txt, or a case of
    consumer/run.py, and each "preset `name`" is a test preset;
  - each row names one of these, or says in words why not;
  - a field case's row names just the programs that have a test of that number;
  - each table has as many rows as ROWS says: none is lost by the way.
"""

import json
import re
import sys
from pathlib import Path

LISTED = re.compile(r"\bPX_TEST\((\w+)\)|\bcmocka_unit_test\w*\((\w+)")
CASE = re.compile(r"(?:^|_)(R\d+)(?=_)")
# `program`: `test`, `test`; or test `name`; or preset `name`
NAME = re.compile(r"(?P<kind>\b(?:test|preset)\s+)?`(?P<name>[^`]+)`"
                  r"(?P<opens>:)?")

ROWS = {"Misuse": 42, "What attackers control": 10, "Field cases": 131}

problems = []


def problem(text):
    problems.append(text)


def read_programs(tests):
    """{program: names of its tests}."""
    programs = {}
    for path in [*tests.glob("test_*.c"), *tests.glob("test_*.cpp")]:
        programs[path.stem] = {
            name for found in LISTED.findall(path.read_text())
            for name in found if name}
    return programs


def read_ctests(tests):
    """Names that tests/CMakeLists.txt adds, a list of names expanded."""
    text = (tests / "CMakeLists.txt").read_text()
    names = set(re.findall(r"px_add_(?:script_)?test\((\w+)", text))
    for what in re.findall(r"foreach\(what ([^)]*)\)", text):
        names |= {f"library_{word}" for word in what.split()}
    cases = re.findall(r"^@case\s*\ndef (\w+)", (
        tests / "consumer" / "run.py").read_text(), re.M)
    return names | {f"consumer.{case}" for case in cases}


def read_rows(path):
    """(line number, section, cells) of each row of a table."""
    section = ""
    rows = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("## "):
            section = line[3:]
        elif section and re.match(r"\| (?!case|misuse|what \|)", line):
            rows.append((number, section, [
                cell.strip() for cell in line.strip("|").split("|")]))
    return rows


def check_names(where, cell, programs, ctests, presets):
    program = None
    for found in NAME.finditer(cell):
        kind, name = (found["kind"] or "").strip(), found["name"]
        if kind == "test":
            if name not in ctests:
                problem(f"{where}: there is no test {name}")
        elif kind == "preset":
            if name not in presets:
                problem(f"{where}: there is no preset {name}")
        elif name.startswith("px_"):
            pass # of the library, not a test
        elif found["opens"]:
            program = name
            if name not in programs:
                problem(f"{where}: there is no program {name}")
        elif program and name not in programs.get(program, ()):
            problem(f"{where}: {program} has no {name}")
        elif not program:
            problem(f"{where}: {name} of which program?")


def check_case(where, number, cell, having, presets, ctests):
    named = {found["name"] for found in NAME.finditer(cell)
             if not found["kind"] and not found["name"].startswith("px_")}
    for name in sorted(named - having):
        problem(f"{where}: {name} has no test of {number}")
    for name in sorted(having - named):
        problem(f"{where}: {name} has a test of {number}, too")
    check_names(where, re.sub(r"`test_\w+`", "", cell), {}, ctests,
                presets)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_tables.py SOURCE_DIR")
    source = Path(sys.argv[1])
    tests = source / "tests"
    programs, ctests = read_programs(tests), read_ctests(tests)
    presets = {preset["name"] for preset in json.loads(
        (source / "CMakePresets.json").read_text())["testPresets"]}
    having = {}
    for program, names in programs.items():
        for name in names:
            for number in CASE.findall(name):
                having.setdefault(number, set()).add(program)

    rows = read_rows(tests / "README.md")
    cases = set()
    for line, section, cells in rows:
        where = f"tests/README.md:{line}"
        if not all(cells):
            problem(f"{where}: an empty cell")
        if section != "Field cases":
            for cell in cells[1:]:
                check_names(where, cell, programs, ctests, presets)
            continue
        if cells[0] in cases:
            problem(f"{where}: a second row for {cells[0]}")
        cases.add(cells[0])
        check_case(where, cells[0], cells[-1], having.get(cells[0], set()),
                   presets, ctests)
    for number in sorted(set(having) - cases):
        problem(f"tests/README.md: no row for {number}, which "
                f"{', '.join(sorted(having[number]))} tests")
    sections = [section for _, section, _ in rows]
    for section in sorted({*sections, *ROWS}):
        if sections.count(section) != ROWS.get(section):
            problem(f"tests/README.md: {section}: {sections.count(section)} "
                    f"rows, not {ROWS.get(section)}")
    for line in problems:
        print(line)
    print(f"{len(rows)} rows, {len(cases)} field cases, "
          f"{len(problems)} differences")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
