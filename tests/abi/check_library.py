#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check what a built library exports, needs and claims.

    check_library.py symbols|hygiene LIBRARY --source DIR --soname NAME
                     [--nm NM] [--readelf READELF] [--update]
    check_library.py assembly FILE.S [--cc COMPILER] [--readelf READELF]
                     [--objdump OBJDUMP]

symbols  the exported names are those that the headers declare with PX_API, and
         those of tests/abi/symbols.txt (--update writes that file).
hygiene  of a shared library: its SONAME, what it needs, no executable stack,
         no text relocations, read-only relocations bound at load, no claim to
         support shadow stacks, the version of its symbols; of both: only px_
         names, no checked longjmp, no clock but clock_gettime's, no look at
         the environment; of a static one: position-independent code.
assembly built with all control-flow protection, the switch claims what it does
         and no more: landing pads, but no shadow stacks, nor BTI.
"""
import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TIME_FUNCTIONS = {
    "time", "ftime", "gettimeofday", "timespec_get", "clock", "times",
    "sleep", "usleep", "nanosleep", "clock_nanosleep", "alarm", "ualarm",
    "setitimer", "timer_create", "timer_settime", "localtime", "gmtime",
    "thrd_sleep",
}
FORBIDDEN = TIME_FUNCTIONS | {
    "__longjmp_chk", "longjmp", "siglongjmp", "getenv", "secure_getenv",
    "setenv", "system", "gets", "strcpy", "sprintf", "vsprintf",
}
MAY_NEED = re.compile(
    r"^(libc\.so|libgcc_s\.so|libpthread\.so|libucontext\.so|ld-linux)")


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          check=True).stdout


class Report:
    def __init__(self):
        self.failures = 0

    def check(self, holds, sentence):
        if not holds:
            self.failures += 1
            print("does not hold: " + sentence)


def declared(include):
    names = set()
    for header in sorted(include.glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        text = re.sub(r"^\s*#.*?(?<!\\)$", "", text, flags=re.M | re.S)
        for declaration in re.findall(r"\bPX_API\b([^;{]*)", text):
            name = re.search(r"\b(px_\w+)\s*\(", declaration)
            assert name, f"{header.name}: {declaration}"
            names.add(name.group(1))
    return names


def symbols_of(nm, library, is_shared):
    """The global names a library defines, and those it needs."""
    defined, undefined = set(), set()
    scope = ["-D"] if is_shared else ["-g"]
    for line in output(nm, *scope, str(library)).splitlines():
        match = re.match(r"^[0-9a-f]*\s+([A-Za-z])\s+([^@\s]+)", line)
        if not match:
            continue
        kind, name = match.groups()
        if kind in "Uwv":
            undefined.add(name)
        elif kind != "A" and not name.startswith("DW.ref."):
            defined.add(name)  # not the name of a version, nor unwind data
    return defined, undefined - defined


def compare(report, names, expected, whose):
    for name in sorted(names - expected):
        report.check(False, f"{name} is exported, but not in {whose}")
    for name in sorted(expected - names):
        report.check(False, f"{name} is in {whose}, but not exported")


def check_symbols(args, report, is_shared):
    names, _ = symbols_of(args.nm, args.library, is_shared)
    if not is_shared:
        names = {n for n in names if not n.startswith("px__")}
    stored = HERE / "symbols.txt"
    if args.update:
        stored.write_text("".join(n + "\n" for n in sorted(names)))
    compare(report, names, declared(args.source / "include/parataxis"),
            "the headers")
    compare(report, names, set(stored.read_text().split()), "symbols.txt")
    print(f"{len(names)} exported symbols")


def check_hygiene(args, report, is_shared):
    defined, undefined = symbols_of(args.nm, args.library, is_shared)
    for name in sorted(undefined & FORBIDDEN):
        report.check(False, f"{name}() is not called")
    for name in sorted(n for n in defined if not n.startswith("px_")):
        report.check(False, f"{name} begins with px_")
    elf = output(args.readelf, "-W", "-a", str(args.library))
    report.check("SHSTK" not in elf, "no claim to support shadow stacks")
    if not is_shared:
        members = len(re.findall(r"^File: ", elf, flags=re.M))
        notes = [line for line in elf.splitlines()
                 if ".note.GNU-stack" in line]
        report.check(len(notes) >= members,
                     "every object says that its stack is not executable")
        report.check(not any(" X " in n or "AX" in n for n in notes),
                     "no object asks for an executable stack")
        code = "".join(re.findall(
            r"^Relocation section '\.rela?\.(?!debug).*?(?=^$)", elf,
            flags=re.M | re.S))
        for relocation in ("R_X86_64_TPOFF32", "R_X86_64_32 ",
                           "R_X86_64_32S", "R_AARCH64_TLSLE"):
            report.check(relocation not in code,
                         f"no {relocation.strip()}: position independent")
        return
    soname = re.search(r"SONAME\).*\[(.*)\]", elf)
    report.check(soname and soname.group(1) == args.soname,
                 f"the SONAME is {args.soname}")
    for needed in re.findall(r"NEEDED\).*\[(.*)\]", elf):
        report.check(MAY_NEED.match(needed), f"{needed} is not needed")
    stack = re.search(r"GNU_STACK\s.*?\s(RWE?|R E)\s", elf)
    report.check(stack and stack.group(1) == "RW",
                 "the stack is not executable")
    report.check(" GNU_RELRO " in elf, "relocations are made read-only")
    report.check(re.search(r"BIND_NOW|FLAGS_1.*NOW", elf), "bound at load")
    report.check(re.search(r"FLAGS_1.*NODELETE", elf), "stays when dlclosed")
    report.check("TEXTREL" not in elf, "no text relocations")
    report.check(not re.search(r"\((RPATH|RUNPATH)\)", elf), "no run path")
    report.check(not re.search(r"LOAD.*\sRWE\s", elf),
                 "nothing is writable and executable")
    versions = set(re.findall(r"\bpx_\w+@@?(\w+\.\w+)", elf))
    expected = "PARATAXIS_" + args.soname.split(".so.")[1]
    report.check(versions == {expected},
                 f"every symbol has the version {expected}")


def check_assembly(args, report):
    if args.library.suffix != ".S":
        print("skipped: the switch is not assembly in this build")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as scratch:
        built = Path(scratch) / "switch.o"
        for flag in ("-fcf-protection=full", "-mbranch-protection=standard"):
            if subprocess.run([args.cc, flag, "-c", str(args.library),
                               "-o", str(built)], check=False,
                              stderr=subprocess.DEVNULL).returncode == 0:
                break
        else:
            report.check(False, f"{args.library.name} compiles")
            return
        elf = output(args.readelf, "-W", "-S", "-n", "-s", str(built))
        first = dict(re.findall(
            r"^[0-9a-f]+ <(\w+)>:\n\s+0*[0-9a-f]+:\t[0-9a-f ]+\t(\w+)",
            output(args.objdump, "-d", str(built)), re.M)
                     if "x86_64" in args.library.name else [])
    report.check("SHSTK" not in elf, "no claim to support shadow stacks")
    report.check("BTI" not in elf, "no claim to have BTI landing pads")
    if "x86_64" in args.library.name:
        report.check("IBT" in elf, "its landing pads are claimed")
    report.check(".note.GNU-stack" in elf,
                 "it says that its stack is not executable")
    for line in elf.splitlines():
        if "px__context_" in line and " GLOBAL " in line:
            name = line.split()[-1]
            report.check("HIDDEN" in line, f"{name} is hidden")
            if "IBT" in elf:
                report.check(first.get(name) == "endbr64",
                             f"{name} begins with a landing pad")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["symbols", "hygiene", "assembly"])
    parser.add_argument("library", type=Path)
    parser.add_argument("--source", type=Path, default=HERE.parent.parent)
    parser.add_argument("--soname", default="")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--readelf", default="readelf")
    parser.add_argument("--objdump", default="objdump")
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    report = Report()
    is_shared = ".so" in args.library.name

    if args.what == "assembly":
        check_assembly(args, report)
    elif args.what == "symbols":
        check_symbols(args, report, is_shared)
    else:
        check_hygiene(args, report, is_shared)
    print(f"{args.what}: {report.failures} failures")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
