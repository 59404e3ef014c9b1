#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs examples/probe end to end.

    test_probe.py [-k WORD] [launcher ...] path/to/probe

Every case prints its name and what became of it; the last line counts them.
Nothing is sent to any address but loopback's: what is silent is a listening
socket with a full backlog, what is unreachable is the broadcast address (which
connect() refuses at once, for TCP has no broadcast), and what does not resolve
is a name with a label that is too long for a query. A resolver that is slow, or
knows several addresses of a name, is a small library that is compiled here and
preloaded; without a compiler, and under a launcher, those cases are skipped.
"""
import sys

sys.dont_write_bytecode = True

import cases_checks  # noqa: E402,F401
import cases_input  # noqa: E402,F401
import cases_output  # noqa: E402,F401
import harness  # noqa: E402

if __name__ == "__main__":
    sys.exit(harness.main(__doc__))
