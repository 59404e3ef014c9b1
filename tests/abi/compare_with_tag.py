#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Is the library compatible with the last one that was released?

    compare_with_tag.py LIBRARY --source DIR --work DIR [--cmake C] [--cc CC]
                        [--readelf READELF]

Builds the last tag of the form v1.2.3 and has abidiff compare the two. With
the same SONAME nothing may have changed, though functions may have been added;
another SONAME allows everything. LIBRARY must have its debugging information.
"""
import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **options)
    return done.returncode, done.stdout


def must(*command):
    code, text = run(*command)
    if code != 0:
        print(text)
        sys.exit(f"{command[0]} failed")
    return text


def last_tag(source):
    # The checkout may belong to another user: reading it is all that is done.
    code, text = run("git", "-c", f"safe.directory={source}", "-C", source,
                     "describe", "--tags", "--abbrev=0",
                     "--match", "v[0-9]*.[0-9]*.[0-9]*", "HEAD")
    return text.strip() if code == 0 else None


def build(args, tag):
    """The shared library of the tag, and its headers' directory."""
    if args.work.exists():
        shutil.rmtree(args.work)
    source, binary = args.work / "source", args.work / "build"
    source.mkdir(parents=True)
    must("git", "-c", f"safe.directory={args.source}", "-C", args.source,
         "archive", "-o", args.work / "source.tar", tag)
    must("tar", "-xf", args.work / "source.tar", "-C", source)
    must(args.cmake, "-S", source, "-B", binary, f"-DCMAKE_C_COMPILER={args.cc}",
         "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DBUILD_SHARED_LIBS=ON",
         "-DPARATAXIS_BUILD_TESTS=OFF", "-DPARATAXIS_BUILD_EXAMPLES=OFF")
    must(args.cmake, "--build", binary, "--target", "parataxis")
    return binary / "libparataxis.so", source / "include"


def soname(args, library):
    return re.search(r"SONAME\).*\[(.*)\]",
                     must(args.readelf, "-d", library)).group(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--readelf", default="readelf")
    args = parser.parse_args()

    if not shutil.which("abidiff"):
        skip("there is no abidiff (Debian: abigail-tools)")
    if not shutil.which("git"):
        skip("there is no git to ask for the last tag")
    tag = last_tag(args.source)
    if not tag:
        skip("no tag v1.2.3 to compare with: nothing was released yet")
    old, old_headers = build(args, tag)
    if soname(args, old) != soname(args, args.library):
        skip(f"{tag} has another SONAME, everything may change")
    code, text = run("abidiff", "--no-added-syms",
                     "--headers-dir1", old_headers,
                     "--headers-dir2", args.source / "include",
                     old, args.library)
    print(text)
    print(f"{'compatible' if code == 0 else 'NOT compatible'} with {tag}")
    return 1 if code else 0


if __name__ == "__main__":
    sys.exit(main())
