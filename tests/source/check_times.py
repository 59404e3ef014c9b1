#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Look for conversions of times that may wrap.

    check_times.py SOURCE_DIR

`now + ms * 1000000` lies in the past for a large ms, and a timeout that lies in
the past fires at once, for ever. So in src/, and in what headers inline, nothing
is multiplied by a unit of time, spelt PX_MSEC or as a power of a thousand, but a
number that stands there; and no time is added to another by `+`, but by
px__clock_add(), which saturates. Where that is right all the same, it is listed
here, with the reason.
"""

import re
import sys
from pathlib import Path

UNIT = r"(?:PX_(?:USEC|MSEC|SEC|MINUTE)|1(?:000){1,6}(?:[uUlL]*)|1[eE](?:3|6|9))\b"
NUMBER = r"(?:\d+|\(\(px_nsec\)1\))"
CAST = r"(?:\([a-z0-9_ ]+\)\s*)?"
PRODUCT = re.compile(
    rf"(?P<left>[\w\])>.]+)\s*\*\s*{CAST}(?P<unit>{UNIT})|"
    rf"(?P<unit2>{UNIT})\s*\*\s*{CAST}(?P<right>[\w(]+)")
SUM = re.compile(
    r"\b(?:px_now\(\)|px__time\w*\([^)]*\)|px__clock_precise\(\)|"
    r"(?:loop->)?now)\s*\+(?![+=])|"
    r"[^+]\+\s*(?:timeout|duration|px_now\(\)|px__clock_precise\(\))\b")

# (file, what the line has): why it can not wrap.
ALLOWED = {
    ("src/base/clock.c", "time.tv_sec * PX_SEC"):
        "the system's clock, which begins at 0 with the machine",
    ("src/base/quick_clock.c", "(to - from) * (uint64_t)PX_SEC"):
        "a few steps of a counter",
    ("include/parataxis/clock.h", "#define PX_"):
        "the units themselves",
}

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def without_comments(text):
    return COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def wraps(line):
    """What in the line may wrap."""
    found = [match[0] for match in SUM.finditer(line)]
    for match in PRODUCT.finditer(line):
        other = match["left"] or match["right"]
        if not re.fullmatch(NUMBER, other):
            found.append(match[0])
    return found


def check_itself():
    """The patterns find what they are for, and let pass what is right."""
    for line in ("int64_t at = now + ms * 1000000;",
                 "when = base->ms * PX_MSEC;", "x = 1000000L * ms;",
                 "when = px_now() + timeout;", "t = secs(3) * 1000000000LL;",
                 "deadline = loop->now + timeout;", "ns = (px_nsec)ms * 1e6;",
                 "y = PX_SEC * (px_nsec)seconds;"):
        if not wraps(line):
            sys.exit(f"check_times.py does not see: {line}")
    for line in ("px_nsec pause = 10 * PX_MSEC;", "ms = timeout / PX_MSEC;",
                 "when = px__clock_add(now, timeout);", "n = 1000 * 60;",
                 "left = timeout % PX_SEC;", "size = count * 1024;"):
        if wraps(line):
            sys.exit(f"check_times.py should let pass: {line}")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_times.py SOURCE_DIR")
    source = Path(sys.argv[1])
    used, problems, count = set(), 0, 0

    check_itself()
    for path in sorted([*(source / "src").rglob("*.[ch]"),
                        *(source / "include").rglob("*.h")]):
        name = path.relative_to(source).as_posix()
        lines = without_comments(path.read_text()).splitlines()
        count += 1
        for number, line in enumerate(lines, 1):
            reasons = {key for key in ALLOWED
                       if key[0] == name and key[1] in line}
            used |= reasons
            for what in [] if reasons else wraps(line):
                print(f"{name}:{number}: may wrap: {what.strip()}")
                problems += 1
    for name, what in sorted(set(ALLOWED) - used):
        print(f"{name}: no line has {what!r} any more")
        problems += 1
    print(f"{count} files, {problems} places")
    sys.exit(1 if problems or count == 0 else 0)


if __name__ == "__main__":
    main()
