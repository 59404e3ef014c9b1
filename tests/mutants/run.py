#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plant each mutant, and see that the models find it.

A mutant is a patch of src/, with what it does wrong and the suite that is to
find it in its first lines. It is applied to a copy of the sources and compiled,
and `model` is linked with it: a random and an exhaustive search must both fail.
Neither may without a mutant. A patch that does not apply any more is an error.

    run.py --source DIR --sources FILE,FILE... [--model DIR] [--cc CC]
           [--jobs N] [NAME ...]

NAME is a patch's, without its ending; all of them without one. 1: some are not
found; 2: that cannot be asked for.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
RANDOM = "300000"  # calls
SIZES = ("2x3", "3x2")
FLAGS = ["-std=c11", "-O1", "-D_GNU_SOURCE", "-DPX_STATIC", "-DPX_TESTING",
         "-DPX_POLLS_NUMBERS=0", "-w"]


def run(*command, **more):
    return subprocess.run([str(word) for word in command],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", **more)


def must(*command, **more):
    done = run(*command, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}:\n{done.stdout}")


class Builder:
    """The library and the models, as objects; those that differ anew."""

    def __init__(self, args, work):
        self.args = args
        self.work = work
        self.sources = args.sources.split(",")
        self.models = sorted(set(args.model.glob("*.c")) -
                             {args.model / "fuzz.c"})
        self.compile(args.source, self.sources, work / "plain")
        for source in self.models:
            self.compile_one(args.source, source, work / "plain")

    def compile_one(self, root, source, objects):
        out = objects / (source.stem + ".o")
        objects.mkdir(parents=True, exist_ok=True)
        must(self.args.cc, *FLAGS, f"-I{root / 'include'}", f"-I{root / 'src'}",
             f"-I{self.args.model}", "-c", source, "-o", out)

    def compile(self, root, names, objects):
        for name in names:
            self.compile_one(root, root / name, objects)

    def link(self, objects, out):
        """What is in `objects`, and the rest as it is."""
        files = {path.name: path for path in (self.work / "plain").iterdir()}
        files.update({path.name: path for path in objects.iterdir()})
        must(self.args.cc, *files.values(), "-pthread", "-o", out)

    def plant(self, patch):
        """The model, with the mutant in it."""
        root = self.work / patch.stem
        shutil.copytree(self.args.source / "src", root / "src")
        (root / "include").symlink_to(self.args.source / "include")
        must("patch", "-p1", "--fuzz=0", "-i", patch, cwd=root)
        changed = re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.M)
        if any(name.endswith(".h") for name in changed):
            changed = self.sources
        self.compile(root, changed, root / "objects")
        self.link(root / "objects", root / "model")
        return root / "model"


def fails(model, *args):
    return run(model, *args).returncode != 0


def one_fails(*commands):
    """Side by side: some are found by few programs of one size, and by none of
    the other, which then need not be played to their end."""
    searches = [subprocess.Popen([str(word) for word in command],
                                 stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
                for command in commands]
    found = False
    while searches and not found:
        time.sleep(0.01)
        found = any(search.poll() for search in searches)
        searches = [search for search in searches if search.poll() is None]
    for search in searches:
        search.kill()
        search.wait()
    return found


def judge(builder, patch):
    """What is wrong with it, or None."""
    suite = re.search(r"^suite: (\w+)$", patch.read_text(), re.M)
    if not suite:
        return "names no suite"
    try:
        model = builder.plant(patch)
    except RuntimeError as error:
        return f"does not apply, or compile: {error}"
    if not fails(model, "--suite", suite[1], "--random", RANDOM,
                 "--as-it-is"):
        return f"survives the random search of suite {suite[1]}"
    if not one_fails(*((model, "--suite", suite[1], "--all", size,
                        "--threads", "1") for size in SIZES)):
        return f"survives the exhaustive search of suite {suite[1]}"
    shutil.rmtree(model.parent)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--sources", required=True,
                        help="the library's, with commas")
    parser.add_argument("--model", type=Path, default=HERE.parent / "model")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    if args.jobs < 1:
        parser.error(f"argument --jobs: {args.jobs} is less than 1")
    patches = sorted(HERE.glob("*.patch"))
    if args.names:
        known = {patch.stem for patch in patches}
        unknown = [name for name in args.names if name not in known]
        for name in unknown:
            print(f"no such mutant: {name}", file=sys.stderr)
        if unknown:
            return 2
        patches = [patch for patch in patches if patch.stem in args.names]

    with tempfile.TemporaryDirectory() as work, \
            concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        builder = Builder(args, Path(work))
        none = Path(work) / "none"
        none.mkdir()
        builder.link(none, Path(work) / "model")
        suites = {re.search(r"^suite: (\w+)$", patch.read_text(), re.M)[1]
                  for patch in patches}
        sound = pool.map(lambda suite: not fails(
            Path(work) / "model", "--suite", suite, "--random", RANDOM), suites)
        wrong = [f"suite {suite} fails without a mutant"
                 for suite, is_sound in zip(suites, sound) if not is_sound]
        for patch, what in zip(patches, pool.map(
                lambda patch: judge(builder, patch), patches)):
            if what:
                wrong.append(f"{patch.stem} {what}")
    for line in wrong:
        print(line)
    print(f"{len(patches)} mutants, {len(patches) - len(wrong)} found twice")
    return 1 if wrong or not patches else 0


if __name__ == "__main__":
    sys.exit(main())
