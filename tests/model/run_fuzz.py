#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the fuzzer for a while, beginning with the corpus; fail on a finding.

Several processes share the time, and what they find new: that goes to a folder
of the build, not to the sources; an input that fails is left there, too, and
printed. There are no more of them than seconds: libFuzzer takes 0 for no end.
"""

import argparse
import concurrent.futures
import os
import subprocess
import sys
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("fuzz", type=Path)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seconds", type=int, required=True,
                        help="of all processes together")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    for name in "seconds", "jobs":
        if getattr(args, name) < 1:
            parser.error(f"argument --{name}: {getattr(args, name)} is less "
                         "than 1")
    if not os.access(args.fuzz, os.X_OK) or not args.fuzz.is_file():
        parser.error(f"there is no fuzzer {args.fuzz}")
    if not args.corpus.is_dir() or not any(args.corpus.iterdir()):
        parser.error(f"there is no corpus {args.corpus}")
    args.jobs = min(args.jobs, args.seconds)
    args.work.mkdir(parents=True, exist_ok=True)
    jobs = [subprocess.Popen(
        [args.fuzz, f"-max_total_time={args.seconds // args.jobs}",
         "-max_len=512", "-timeout=20", "-rss_limit_mb=4096", "-reload=5",
         "-print_final_stats=1", f"-artifact_prefix={args.work}/", args.work,
         args.corpus],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace") for _ in range(args.jobs)]
    wrong = runs = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as readers:
        told = list(readers.map(lambda job: job.communicate()[0], jobs))
    for job, text in zip(jobs, told):
        lines = text.splitlines()
        runs += sum(int(line.split()[-1]) for line in lines
                    if "number_of_executed_units" in line)
        if job.returncode:
            wrong = 1
            print("\n".join(lines[-40:]))
    print(f"{runs} runs by {args.jobs} processes in {args.seconds} s together")
    return 1 if wrong or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
