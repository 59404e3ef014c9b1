#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does `model` say what is wrong with its arguments, and then do nothing?

    check_arguments.py [LAUNCHER ...] MODEL

What it cannot do as it was asked for must end it with 2, and one line on
standard error that names the argument: a search that played nothing, or for
ever, would look like one that found nothing.
"""

import subprocess
import sys

# Arguments, and what that line has to have in it.
REFUSED = [
    ("", "no arguments"),
    ("--suite sem", "--suite sem: what is to be done?"),
    ("--all 2x2", "need a --suite"),
    ("--suite nosuch --all 2x2", "'nosuch'; there are: sem sem_limit"),
    ("--suite sem --bogus", "'--bogus'"),
    ("--suite", "--suite: needs 1 word"),
    ("--suite sem --random", "--random: needs 1 word"),
    ("--suite sem --sample 3x3", "--sample: needs 2 words"),
    ("--suite sem --all 2x2 --random 1", "--random: that is a second thing"),
    ("--suite sem --all 2x2x2", "--all: '2x2x2'"),
    ("--suite sem --all 2", "--all: '2'"),
    ("--suite sem --all x2", "--all: 'x2'"),
    ("--suite sem --all 0x2", "--all: '0x2'"),
    ("--suite sem --all 2x", "--all: '2x'"),
    ("--suite sem --all 7x1", "--all: '7x1'"),
    ("--suite sem --all 6x6", "--all: '6x6'"),
    ("--suite sem --all -2x-2", "--all: '-2x-2'"),
    ("--suite sem --all 4294967297x1", "--all: '4294967297x1'"),
    ("--suite sem --sample 3x3 0", "--sample: '0'"),
    ("--suite sem --sample 3x3 -1", "--sample: '-1'"),
    ("--suite sem --random -5", "--random: '-5'"),
    ("--suite sem --random 99999999999999999999",
     "--random: '99999999999999999999'"),
    ("--suite sem --random abc", "--random: 'abc'"),
    ("--suite sem --random 0", "--random: '0'"),
    ("--suite sem --random 1000x", "--random: '1000x'"),
    ("--suite sem --random 1e3", "--random: '1e3'"),
    ("--suite sem --random +5", "--random: '+5'"),
    ("--suite sem --random 1 --seed abc", "--seed: 'abc'"),
    ("--suite sem --random 1 --seed -1", "--seed: '-1'"),
    ("--suite sem --random 1 --seconds abc", "--seconds: 'abc'"),
    ("--suite sem --random 1 --seconds 0", "--seconds: '0'"),
    ("--suite sem --random 1 --threads 0", "--threads: '0'"),
    ("--suite sem --random 1 --threads -3", "--threads: '-3'"),
    ("--suite sem --random 1 --threads 2.5", "--threads: '2.5'"),
    ("--replay 1/d1", "--replay: needs 2 words"),
    ("--replay d1 0", "'d1': begins with no number of permits"),
    ("--replay 200/d1 0", "'200/d1': begins with no number of permits"),
    ("--replay 1 0", "'1' makes no call"),
    ("--replay 1/ 0", "'1/' makes no call"),
    ("--replay 1/d 0", "at 'd'"),
    ("--replay 1/d1,u/d1 0", "at 'u/d1'"),
    ("--replay 1/d99999999999999 0", "at 'd99999999999999'"),
    ("--replay 1/d51 0", "at 'd51'"),
    ("--replay 1/u128 0", "at 'u128'"),
    ("--replay 1/!1 0", "at '!1'"),
    ("--replay 1/c-2 0", "at 'c-2'"),
    ("--replay 1/d1u1 0", "at 'u1'"),
    ("--replay 1/d1, 0", "at ','"),
    ("--replay 1x/d1 0", "before 'x/d1'"),
    ("--replay 1/d1/d1/d1/d1/d1/d1/d1 0", "more than 6 fibers"),
    ("--replay 1/" + ",".join(["d0"] * 48) + " 0", "than 47 calls"),
    ("--replay 1/d1 zzz", "choices 'zzz': 'z'"),
    ("--replay 1/d1 -1", "choices '-1': '-'"),
]
# The same, but only playing shows it.
REFUSED_LATE = [
    ("--replay 1/d1/d1 05", "choice 2, '5': there are not so many"),
    ("--replay 1/d1/d1 2", "choice 1, '2': there are not so many"),
    ("--replay 1/z1/z1 005", "choice 3, '5': there are not so many"),
    ("--replay 1/d1 0000", "4 choices, and there are only 0 to make"),
    ("--replay 1/d1/d1 0000000000000000", "16 choices, and there are only"),
]
# What is printed by a failure, or passed by a test.
TAKEN = [
    "--suite sem --all 1x1",
    "--suite group_limit --all 2x1 --threads 1 --plain",
    "--suite sem --sample 2x2 10 --seed 3",
    "--suite sem --random 100 --seconds 5 --as-it-is",
    "--replay b2/l0,a-1/d1//u2 01",
    "--replay 0/z1,z0/z1/o0,j0 01",
]
OPTIONS = ("--suite", "--all", "--sample", "--random", "--replay", "--traces",
           "--seed", "--seconds", "--as-it-is", "--plain", "--threads",
           "--help")


def play(command, arguments):
    done = subprocess.run(command + arguments.split(), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def main():
    command = sys.argv[1:]
    if not command:
        sys.exit(__doc__)
    wrong = []
    for arguments, said in REFUSED + REFUSED_LATE:
        code, out, errors = play(command, arguments)
        if code != 2 or errors.count("\n") != 1 or said not in errors:
            wrong.append(f"'{arguments}' ended with {code}, and not with 2 and "
                         f"one line with \"{said}\":\n{errors}")
        elif out and (arguments, said) in REFUSED:
            wrong.append(f"'{arguments}' played:\n{out}")
    for arguments in TAKEN:
        code, out, errors = play(command, arguments)
        if code != 0 or errors or not out:
            wrong.append(f"'{arguments}' ended with {code}:\n{errors}")
    code, out, errors = play(command, "--help")
    if code != 0 or errors:
        wrong.append(f"'--help' ended with {code}:\n{errors}")
    wrong += [f"'--help' says nothing of {option}" for option in OPTIONS
              if f"  {option}" not in out]
    for line in wrong:
        print(line)
    print(f"{len(REFUSED) + len(REFUSED_LATE)} refused, {len(TAKEN)} taken, "
          f"{len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
