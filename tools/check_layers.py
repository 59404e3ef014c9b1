#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that the sources include each other in one direction only.

    check_layers.py [SOURCE_DIR]

The layers are the list `parataxis_sources` of CMakeLists.txt, lowest first: a
file may include the headers of files that stand before it, never of those that
stand after. What must travel the other way travels by a function pointer that
the upper layer handed down, which is no #include. A header without a .c of its
own (a contract, or macros) is as high as the highest it includes. src/debug/
may read everything.

It also checks that every file of src/ is in the list, that a .c includes its
own header first, and that no header includes itself through others.
"""
import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def listed_sources(root):
    text = (root / "CMakeLists.txt").read_text()
    match = re.search(r"set\(parataxis_sources\b([^)]*)\)", text)
    if not match:
        sys.exit("CMakeLists.txt has no list parataxis_sources")
    body = re.sub(r"#.*", "", match.group(1))
    return body.split()


def rank_sources(root):
    """The layer of each source, by its path below src/."""
    ranks = {}
    for rank, entry in enumerate(listed_sources(root)):
        if entry.startswith("${"):  # one of the files of a folder
            folder = root / "src" / entry.strip("${}").split("_")[0]
            for path in sorted(folder.glob("*.[cS]")):
                ranks[path.relative_to(root / "src").as_posix()] = rank
        else:
            ranks[entry.removeprefix("src/")] = rank
    return ranks


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    src = root / "src"
    ranks = rank_sources(root)
    problems = []
    includes = {}

    for path in sorted(src.rglob("*.[chS]")):
        includes[path.relative_to(src).as_posix()] = INCLUDE.findall(
            path.read_text())
    for name in ranks:
        if name not in includes:
            problems.append(f"{name}: is in the list, but not in src/")
    for name in includes:
        if not name.endswith(".h") and name not in ranks:
            problems.append(f"{name}: is not in the list of CMakeLists.txt")

    def rank_of(name, seen=()):
        if name in seen:
            problems.append("a circle: " + " > ".join((*seen, name)))
            return -1
        own = name[:-2] + ".c"
        if name.endswith(".h") and own in ranks:
            return ranks[own]
        if name in ranks:
            return ranks[name]
        inner = [rank_of(i, (*seen, name)) for i in includes.get(name, [])]
        return max(inner, default=-1)

    def check(name):
        in_debug = name.startswith("debug/")
        for included in includes[name]:
            if included not in includes:
                problems.append(f'{name}: no such file: "{included}"')
            elif in_debug:
                continue
            elif rank_of(included) > rank_of(name):
                problems.append(f"{name}: includes {included}, "
                                "which is a layer above it")
        own = name[:-2] + ".h"
        if name.endswith(".c") and own in includes:
            if not includes[name] or includes[name][0] != own:
                problems.append(f'{name}: does not include "{own}" first')

    for name in includes:
        check(name)
    for problem in sorted(set(problems)):
        print(problem)
    print(f"{len(includes)} files, {len(set(problems))} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
