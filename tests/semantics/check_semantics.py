#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare docs/semantics.md with the headers and with the test_semantics tests.

    check_semantics.py SOURCE_DIR

Fails, with one line for each difference, unless
  - each public function, and each documented inline function and macro that is
    called like one, has exactly one row, below the name of its header;
  - its comment says "Cancellation point." or "Never parks." as the row does,
    and the result must be looked at (PX_NODISCARD) exactly where it may park,
    and for px_check;
  - the codes that the comment's @return names, also by "as px_other()", are the
    row's codes;
  - tests/test_semantics.c checks each row with the row's own values,
    test_semantics_waits.c makes each call wait that parks, and
    test_semantics_codes.c provokes each code that the other two do not.
"""

import re
import sys
from pathlib import Path

# Codes that a test cannot provoke where it runs: memory, descriptors or
# threads would have to run out.
UNPROVOKED = {
    "PX_ENOMEM": {"px_run", "px_run_with", "px_set_name", "px_post",
                  "px_offload", "px_wait_fd", "px_read", "px_write",
                  "px_write_all", "px_accept", "px_connect"},
    "PX_EAGAIN": {"px_offload"},
    "-errno": {"px_run", "px_run_with", "px_wait_signal", "px_wait_fd",
               "px_offload"},
}
# Calls that may park but cannot be kept waiting by another fiber.
NEVER_KEPT_WAITING = {"px_yield", "px_offload"}

COLUMNS = ["Call", "Parks", "Point", "Off a fiber", "NULL", "Returns"]
CODE = re.compile(r"\bPX_E[A-Z]+\b")
ERRNO = re.compile(r"-errno\b|-E[A-Z0-9]+\b")
OTHER = re.compile(
    r"\b(?:as|a code of|or|and) (px_\w+)\(\)|(px_\w+)\(\)'s code")
DECLARATION = re.compile(
    r"/\*\*(?P<comment>(?:[^*]|\*(?!/))*)\*/\s*"
    r"(?P<text>(?:PX_API|static inline)\b[^;{]*|#define [^\n]*)")

problems = []


def problem(text):
    problems.append(text)


class Call:
    """A call as its header declares it."""

    def __init__(self, header, comment, text):
        self.header = header
        self.text = text
        self.comment = " ".join(
            re.sub(r"^\s*\*", "", line).strip()
            for line in comment.splitlines()).strip()
        self.nodiscard = "PX_NODISCARD" in text

    def codes(self, calls, seen=()):
        _, _, returned = self.comment.partition("@return")
        returned, _, without = returned.partition("without ")
        without, _, rest = without.partition(";")
        returned += rest
        codes = set(CODE.findall(returned))
        if ERRNO.search(returned):
            codes.add("-errno")
        for names in OTHER.findall(returned):
            other = names[0] or names[1]
            if other in calls and other not in seen:
                codes |= calls[other].codes(calls, (*seen, other))
        return codes - set(CODE.findall(without))


def read_headers(folder):
    """{name: Call}, and the names of the headers."""
    calls = {}
    headers = sorted(folder.glob("*.h"))
    for path in headers:
        text = path.read_text()
        declared = set(re.findall(r"^PX_API[^;(]*?\b(px_\w+)\(", text, re.M))
        for found in DECLARATION.finditer(text):
            line = found["text"]
            name = re.search(r"\b(px_\w+|PX_\w+)\(", line)
            if not name or name[1] == "PX_CLEANUP":
                continue
            if line.startswith("#define") and not re.match(
                    r"#define PX_\w+\(", line):
                continue
            calls[name[1]] = Call(path.name, found["comment"], line)
        for name in sorted(declared - set(calls)):
            problem(f"{path.name}: {name} has no comment")
        for name in declared & set(calls):
            calls[name].header = path.name
    return calls, {path.name for path in headers}


def read_tables(path):
    """{name: {column: cell}}."""
    rows = {}
    headers = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("## "):
            headers = re.findall(r"\b\w+\.h\b", line)
        if line.startswith("| Call"):
            if [cell.strip() for cell in line.strip("|").split("|")] != COLUMNS:
                problem(f"semantics.md:{number}: other columns")
        found = re.match(r"\| `(p?P?[xX]_?\w+)` \|", line)
        if not found:
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != len(COLUMNS):
            problem(f"semantics.md:{number}: {len(cells)} cells")
            continue
        if found[1] in rows:
            problem(f"semantics.md:{number}: a second row for {found[1]}")
        rows[found[1]] = dict(zip(COLUMNS, cells), headers=headers)
    return rows


def row_codes(row):
    codes = set(CODE.findall(row["Returns"]))
    if ERRNO.search(row["Returns"]):
        codes.add("-errno")
    return codes


def compare_with_header(name, row, call, calls):
    where = f"{call.header}: {name}"
    if call.header not in row["headers"]:
        problem(f"semantics.md: {name} belongs to {call.header}")
    says = {"Cancellation point.": "Cancellation point." in call.comment,
            "Never parks.": "Never parks." in call.comment}
    kind = (row["Parks"], row["Point"])
    wanted = {("no", "no"): {"Never parks."},
              ("yes", "yes"): {"Cancellation point."},
              ("yes", "no"): set(),
              ("no", "yes"): set(),
              ("as fn", "as fn"): set()}.get(kind)
    if wanted is None:
        problem(f"semantics.md: {name}: parks {kind[0]}, point {kind[1]}?")
    elif name.startswith("PX_WITHIN"):
        pass # a block, not a call: it says what the block is
    elif {text for text, is_there in says.items() if is_there} != wanted:
        problem(f"{where}: its comment says "
                f"{[text for text in says if says[text]] or 'neither'}, "
                f"the row {sorted(wanted) or 'neither'}")
    if kind == ("as fn", "as fn") and \
            "Cancellation point only where fn has one" not in call.comment:
        problem(f"{where}: does not say that it is a cancellation point only "
                "where fn has one")
    if kind == ("no", "yes") and \
            "cancellation point that never parks" not in call.comment:
        problem(f"{where}: does not say that it is both")
    if call.text.startswith("PX_API"):
        must_look = row["Parks"] != "no" or name == "px_check"
        if call.nodiscard != must_look:
            problem(f"{where}: PX_NODISCARD is {call.nodiscard}, and it should "
                    f"be {must_look}")
    theirs, ours = call.codes(calls), row_codes(row)
    for code in sorted(theirs - ours):
        problem(f"{where}: the comment names {code}, the row does not")
    for code in sorted(ours - theirs):
        problem(f"{where}: the row names {code}, the comment does not")


def constant(text):
    """A cell, as test_semantics.c spells it."""
    return {"works": "WORKS", "works*": "WORKS_IF_FREE", "nothing": "NOTHING",
            "PX_EPERM*": "PX_EPERM", "NULL": "NONE", "-": "NO_OBJECT",
            "false": "0", '""': "NONE", "yes": "YES", "no": "NO",
            "as fn": "AS_FN"}.get(text, text)


def compare_with_test(rows, text):
    tested = {found[0]: found[1:] for found in re.findall(
        r"\bROW\((\w+), (\w+), (\w+), (\w+), (\w+)", text)}
    waits = {name: stalls for name, _, stalls in re.findall(
        r"\bWAIT\((\w+), (\w+), (\w+)", text)}
    points = dict(re.findall(r"\bWAIT\((\w+), (\w+)", text))
    provoked = {}
    for name, code in re.findall(r"\bCODE\((\w+), (\w+)", text):
        provoked.setdefault(name, set()).add(
            "-errno" if code == "ERRNO" else code)

    for name in sorted(set(tested) - set(rows)):
        problem(f"test_semantics.c: tests {name}, which has no row")
    for name, row in rows.items():
        cells = tuple(constant(row[column]) for column in COLUMNS[1:5])
        if name not in tested:
            problem(f"test_semantics.c: no ROW for {name}")
        elif tested[name] != cells:
            problem(f"test_semantics.c: {name}: {' '.join(tested[name])}, "
                    f"the table says {' '.join(cells)}")
        if points.get(name, cells[1]) != cells[1]:
            problem(f"test_semantics_waits.c: {name}: {points[name]} as a "
                    f"cancellation point, the table says {cells[1]}")
        codes = row_codes(row)
        has_wait = name in waits
        if name.startswith("px_") and not name.endswith("_guard_begin") and \
                has_wait != (row["Parks"] == "yes" and
                             name not in NEVER_KEPT_WAITING):
            problem(f"test_semantics_waits.c: {name}: "
                    f"{'a' if has_wait else 'no'} WAIT, parks: {row['Parks']}")
        seen = set(provoked.get(name, ()))
        seen |= {row["NULL"], row["Off a fiber"]} & codes
        if row["Point"] == "yes":
            seen |= {"PX_ECANCELED", "PX_ETIMEDOUT"}
        if has_wait:
            seen.add("PX_ENOFIBER")
            if waits[name] == "STALLS":
                seen.add("PX_ESTALLED")
        for code in sorted(codes - seen):
            if name not in UNPROVOKED.get(code, ()):
                problem(f"test_semantics_codes.c: nothing provokes {code} of "
                        f"{name}")
        for code in sorted(seen - codes):
            if "is what" not in row["Returns"] and \
                    not (code == "PX_EBADF" and "-errno" in codes):
                problem(f"test_semantics_codes.c: {name} gives {code}, which "
                        "its row does not name")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_semantics.py SOURCE_DIR")
    source = Path(sys.argv[1])
    calls, headers = read_headers(source / "include" / "parataxis")
    rows = read_tables(source / "docs" / "semantics.md")
    for name in sorted(set(calls) - set(rows)):
        problem(f"semantics.md: no row for {name} of {calls[name].header}")
    for name in sorted(set(rows) - set(calls)):
        problem(f"semantics.md: {name} is in no header")
    for name, row in rows.items():
        if name in calls:
            compare_with_header(name, row, calls[name], calls)
    compare_with_test(rows, "".join(
        (source / "tests" / name).read_text() for name in (
            "test_semantics.c", "test_semantics_waits.c",
            "test_semantics_codes.c")))
    for line in problems:
        print(line)
    print(f"{len(rows)} rows, {len(headers)} headers, "
          f"{len(problems)} differences")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
