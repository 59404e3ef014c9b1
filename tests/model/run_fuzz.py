#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the fuzzer for a while, beginning with the corpus; fail on a finding.

What it finds new goes to a folder of the build, not to the sources; an input
that fails is left there, too, and printed.
"""

import argparse
import subprocess
import sys
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("fuzz", type=Path)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [args.fuzz, f"-max_total_time={args.seconds}", "-max_len=512",
         "-timeout=20", "-rss_limit_mb=4096", "-print_final_stats=1",
         f"-artifact_prefix={args.work}/", args.work, args.corpus],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", check=False)
    lines = done.stdout.splitlines()
    print("\n".join(lines[-40:] if done.returncode else lines[-8:]))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
