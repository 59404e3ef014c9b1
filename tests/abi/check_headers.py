#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check that users can include the public headers under strict standards.

    check_headers.py INCLUDE_DIR COMPILER...

Every header compiles alone, twice over, without a warning, as C99, C11, gnu17
and C23, and as C++11 and C++17; and so does a program that uses every macro.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-pedantic-errors", "-Wshadow",
            "-Wconversion", "-Wundef", "-Werror"]
C_WARNINGS = ["-Wstrict-prototypes", "-Wmissing-prototypes"]
STANDARDS = {"c": ["c99", "c11", "gnu17", "c2x"], "c++": ["c++11", "c++17"]}


def main():
    include = Path(sys.argv[1]).resolve()
    compilers = sys.argv[2:]
    headers = sorted((include / "parataxis").glob("*.h"))
    failures = runs = 0

    assert headers and compilers
    with tempfile.TemporaryDirectory() as scratch:
        for language, suffix in (("c", ".c"), ("c++", ".cpp")):
            files = []
            for header in headers:
                path = Path(scratch) / (header.stem + suffix)
                line = f"#include <parataxis/{header.name}>\n"
                path.write_text(line + line + "extern int not_empty;\n")
                files.append(str(path))
            every = Path(scratch) / ("every_macro" + suffix)
            every.write_text((HERE / "every_macro.c").read_text())
            files.append(str(every))
            for compiler in compilers:
                if ("++" in compiler) != (language == "c++"):
                    continue
                for standard in STANDARDS[language]:
                    flags = list(WARNINGS)
                    flags += C_WARNINGS if language == "c" else []
                    run = subprocess.run(
                        [compiler, f"-std={standard}", *flags,
                         "-fsyntax-only", f"-I{include}", *files],
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                        text=True, check=False)
                    runs += 1
                    if run.returncode:
                        failures += 1
                        print(f"{compiler} -std={standard}:\n{run.stdout}")
    print(f"{len(headers)} headers, {runs} compilers and standards, "
          f"{failures} failures")
    return 1 if failures or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
