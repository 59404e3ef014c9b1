#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Count the instructions of one operation, and hold them to a bound.

    bench/instructions.py [--cc CC]     builds below build/instructions, counts
    bench/instructions.py --bin DIR     counts DIR/bench_parataxis
    bench/instructions.py --record      and writes the counts down

Time depends on the machine and on what else it does, instructions do not: so
these may decide whether a change lands. Each row runs twice under callgrind, in
a loop of LESS operations and of MORE; the difference is what MORE - LESS of
them cost, without what it takes to begin and to end.

instructions.json has the counts, by processor, compiler and its major version.
A row may cost 5 % more. Exit code 77: skipped, and the output says why.
"""
import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "instructions.json"
ROWS = ["yield-same", "spawn-await", "sem-free", "sem-handoff", "mutex-free",
        "mutex-100", "waitgroup", "timeout-free-1s", "timeout-armed"]
LESS, MORE = 20000, 120000
ALLOWANCE = 1.05

# As it is shipped, but for what only some distributions' compilers add of their
# own accord: a count is to mean the same wherever that version comes from. No
# -g: it changes no instruction, and valgrind 3.19 chokes on what clang writes.
FLAGS = ("-O2 -DNDEBUG "
         "-U_FORTIFY_SOURCE -fno-stack-protector -fcf-protection=none")


class Broken(Exception):
    """A measurement that is no result."""


def skip(reason):
    print("skipped: " + reason)
    sys.exit(77)


# -- building ----------------------------------------------------------------

def environment():
    """Ours, without what would change the flags."""
    kept = {name: value for name, value in os.environ.items()
            if name not in ("CFLAGS", "LDFLAGS", "VALGRIND_OPTS")
            and not name.startswith("CMAKE_")}
    if shutil.which("ninja"):
        kept["CMAKE_GENERATOR"] = "Ninja"
    return kept


def must(*command):
    done = subprocess.run([str(c) for c in command], env=environment(),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if done.returncode:
        print("$ " + " ".join(str(c) for c in command))
        print(done.stdout)
        sys.exit(f"exit code {done.returncode}")


def knows_valgrind(cc):
    """Without this header the library cannot tell that it is being counted,
    and reads another clock, whose cost is a matter of luck."""
    return subprocess.run([cc, "-E", "-"], text=True,
                          input="#include <valgrind/memcheck.h>\n",
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def build(args):
    """The shared library and the workloads; the folder of the latter."""
    if not shutil.which(args.cc):
        skip(f"{args.cc} is not installed")
    if not knows_valgrind(args.cc):
        skip("valgrind/memcheck.h is not installed")
    folder = args.work.resolve() / re.sub(r"\W", "_", args.cc)
    must(args.cmake, "--fresh", "-S", HERE.parent, "-B", folder,
         f"-DCMAKE_C_COMPILER={args.cc}", "-DCMAKE_BUILD_TYPE=Release",
         f"-DCMAKE_C_FLAGS_RELEASE={FLAGS}", "-DBUILD_SHARED_LIBS=ON",
         "-DPARATAXIS_BUILD_BENCH=ON", "-DPARATAXIS_BUILD_TESTS=OFF",
         "-DPARATAXIS_BUILD_EXAMPLES=OFF", "-DPARATAXIS_INSTALL=OFF")
    must(args.cmake, "--build", folder, "--target", "bench_parataxis",
         "--parallel", str(os.cpu_count() or 2))
    return folder / "bench"


# -- counting ----------------------------------------------------------------

def run(program, row, count, launcher=()):
    """What the program says of `count` operations, maybe a few more."""
    done = subprocess.run([*launcher, program, row, "--count", str(count)],
                          env=environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    try:
        said = json.loads(done.stdout)
    except json.JSONDecodeError:
        print(done.stderr)
        raise Broken(f"no result, exit code {done.returncode}") from None
    if "broken" in said:
        raise Broken(f"a check failed: {said['broken']}")
    return said


def count(program, row, operations, folder):
    """(operations, instructions of the whole process)"""
    out = Path(folder) / "callgrind.out"
    said = run(program, row, operations,
               ["valgrind", "--quiet", "--tool=callgrind",
                f"--callgrind-out-file={out}"])
    total = re.search(r"^totals: (\d+)$", out.read_text(), re.MULTILINE)
    if not total:
        raise Broken("callgrind wrote no total")
    return said["ops"], int(total.group(1))


def per_operation(program, row, folder):
    less, before = count(program, row, LESS, folder)
    more, after = count(program, row, MORE, folder)
    return round((after - before) / (more - less), 1)


def compiler_of(program):
    """The processor, the compiler and its major version."""
    name, version = run(program, ROWS[0], LESS)["compiler"].split()[:2]
    return f"{platform.machine()} {name} {version.split('.')[0]}"


# -- comparing ---------------------------------------------------------------

def compare(row, instructions, recorded):
    """Whether it holds, and the sentence about it."""
    if recorded is None:
        return False, f"{row}: {instructions} instructions, nothing recorded"
    bound = recorded * ALLOWANCE
    sentence = f"{row}: {instructions} instructions, bound {bound:.1f}"
    if instructions * ALLOWANCE < recorded:
        sentence += f"; {recorded} are recorded, a new bound is due"
    return instructions <= bound, sentence


def check(program, recorded):
    """Tell row by row what holds; how many did not."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for row in ROWS:
            try:
                instructions = per_operation(program, row, folder)
                good, sentence = compare(row, instructions, recorded.get(row))
            except Broken as broken:
                good, sentence = False, f"{row}: {broken}"
            failed += not good
            print("ok   " if good else "FAIL ", sentence, flush=True)
    print(f"{len(ROWS) - failed} passed, {failed} failed")
    return failed


def record(program, compiler, everything):
    with tempfile.TemporaryDirectory() as folder:
        everything[compiler] = {row: per_operation(program, row, folder)
                                for row in ROWS}
    text = json.dumps(dict(sorted(everything.items())), indent=2)
    RECORDED.write_text(text + "\n", encoding="ascii")
    print(f"{compiler}: recorded")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cc", default="gcc", help="the compiler to build by")
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--work", type=Path, metavar="DIR",
                        default=HERE.parent / "build" / "instructions",
                        help="where to build")
    parser.add_argument("--bin", type=Path, metavar="DIR",
                        help="count the bench_parataxis that is there")
    parser.add_argument("--record", action="store_true",
                        help="write the counts of this compiler down")
    args = parser.parse_args()

    if not shutil.which("valgrind"):
        skip("valgrind is not installed")
    program = (args.bin or build(args)).resolve() / "bench_parataxis"
    compiler = compiler_of(program)
    everything = json.loads(RECORDED.read_text(encoding="ascii"))
    if args.record:
        return record(program, compiler, everything)
    if compiler not in everything:
        skip(f"{RECORDED.name} has nothing of {compiler}")
    return 1 if check(program, everything[compiler]) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Broken as broken:
        sys.exit(f"instructions.py: {broken}")
