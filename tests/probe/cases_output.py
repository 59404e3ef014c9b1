# SPDX-License-Identifier: MIT
"""Results, progress on a terminal, and signals."""
import fcntl
import os
import re
import signal
import subprocess
import termios
import threading
import time

from harness import (
    COMMAND, PATIENCE, PROGRESS, Hosts, Terminal, case, check, end_of, equal,
    objects, on_terminal, probe, scratch, started, states)


# --- Output -----------------------------------------------------------------

@case("output that fails is reported, and is 2")
def _():
    with Hosts() as hosts:
        name = hosts.open()
        for args in (["--json", name], [name], ["--help"], ["--version"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([*COMMAND, *args], stdout=full,
                                      stderr=subprocess.PIPE, timeout=PATIENCE)
            equal(done.returncode, 2, args)
            check(b"No space left" in done.stderr, done.stderr)

            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([*COMMAND, *args], stdout=writer,
                                  stderr=subprocess.PIPE, timeout=PATIENCE)
            os.close(writer)
            equal(done.returncode, 2, args)
            check(b"standard output: " in done.stderr, done.stderr)

            done = subprocess.run([*COMMAND, *args], stderr=subprocess.PIPE,
                                  timeout=PATIENCE,
                                  preexec_fn=lambda: os.close(1))
            equal(done.returncode, 2, args)
            check(b"standard output: " in done.stderr, done.stderr)


@case("a closed standard error loses the messages and nothing else")
def _():
    with Hosts() as hosts:
        name = hosts.open()
        done = subprocess.run([*COMMAND, "--json", "bad", name],
                              stdout=subprocess.PIPE, timeout=PATIENCE,
                              preexec_fn=lambda: os.close(2))
        equal((done.returncode, states(objects(done.stdout))),
              (1, ["malformed", "open"]))


@case("a reader that goes in the middle is an error, not a crash")
def _():
    errors = []
    with started("--json", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                 stderr=subprocess.PIPE) as child:
        drain = threading.Thread(
            target=lambda: errors.append(child.stderr.read()))
        drain.start()
        child.stdin.write(b"malformed, with some length to it\n" * 20000)
        child.stdin.close()
        child.stdout.read(10)
        child.stdout.close()
        equal(child.wait(timeout=PATIENCE), 2)
        drain.join()
    check(b"probe: standard output: " in errors[0][-80:], errors[0][-80:])


@case("a slow reader gets all of it")
def _():
    lines = ["malformed line number %d" % i for i in range(20000)]
    with started("--json", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                 stderr=subprocess.DEVNULL) as child:
        child.stdin.write("\n".join(lines).encode())
        child.stdin.close()
        time.sleep(0.5)
        out = child.stdout.read()
        equal(child.wait(timeout=PATIENCE), 1)
    equal([entry["target"] for entry in objects(out)], lines)


@case("a terminal shows the progress, and the results in the end")
def _():
    with Hosts() as hosts:
        silent, open_ = hosts.silent(), hosts.open()
        with on_terminal("-t", "1500", "-d", "60000", open_, silent, "bad",
                         silent) as (child, terminal):
            terminal.wait_for(PROGRESS)
            seen = re.search(PROGRESS, terminal.text)
            equal(seen.group(1, 2, 3), (b"2", b"4", b"2"))
            equal(end_of(child, terminal), 1)
            text = terminal.text
    results = text[text.rindex(b"left"):]
    equal([line.split()[0].decode() for line in results.split(b"\r\n")[1:4]],
          [silent, "bad", silent])
    check(re.search(rb"\r +\r" + re.escape(open_.encode()) + rb" +open ", text),
          text)
    check(b"argument 3: no port: bad\r\n" in text, text)
    check(b"4 targets in " in text, text)


@case("the progress shows on a terminal while the results go down a pipe")
def _():
    with Hosts() as hosts:
        silent, open_ = hosts.silent(), hosts.open()
        with on_terminal("--json", "-t", "800", open_, silent,
                         stdout=subprocess.PIPE) as (child, terminal):
            terminal.wait_for(PROGRESS)
            equal(end_of(child, terminal), 1)
            equal(states(objects(child.stdout.read())), ["open", "timed_out"])
            check(b'"target"' not in terminal.text, terminal.text)


@case("without a terminal there is no progress")
def _():
    with Hosts() as hosts:
        status, _, err = probe("-t", "800", hosts.silent())
        equal((status, err), (1, b""))


@case("the progress fits a narrow terminal")
def _():
    with Hosts() as hosts:
        with on_terminal("-t", "800", hosts.silent()) as (child, terminal):
            fcntl.ioctl(terminal.slave, termios.TIOCSWINSZ,
                        b"\x18\0\x0a\0\0\0\0\0")
            equal(end_of(child, terminal), 1)
            first = terminal.text.split(b"127.0.0.1")[0]
    check(first.count(b"\r0/1 done,") > 2, terminal.text)
    check(max(len(part) for part in first.split(b"\r")) < 80, first)


@case("a terminal that is held does not hold the run")
def _():
    with Hosts() as hosts:
        open_, silent = hosts.open(), hosts.silent()
        with on_terminal("--json", "-t", "1500", open_, silent,
                         stdout=subprocess.PIPE,
                         reading=False) as (child, terminal):
            termios.tcflow(terminal.slave, termios.TCOOFF)
            equal(states(objects(child.stdout.read())), ["open", "timed_out"])
            equal(end_of(child, terminal), 1)


# --- Signals ----------------------------------------------------------------

@case("Ctrl-C cancels what is left and prints what is known: 130")
def _():
    with Hosts() as hosts:
        silent, open_ = hosts.silent(), hosts.open()
        with on_terminal("-c", "2", "-t", "60000", open_, silent, silent,
                         silent) as (child, terminal):
            terminal.wait_for(rb"1/4 done, 2 in flight")
            start = time.monotonic()
            terminal.type(b"\x03")
            equal(end_of(child, terminal), 130)
            check(time.monotonic() - start < 10, "it took too long")
            text = terminal.text
    lines = text[text.index(open_.encode()):].split(b"\r\n")
    equal([line.split()[:2] for line in lines[:4]],
          [[open_.encode(), b"open"]]
          + [[silent.encode(), b"cancelled"]] * 3, text)
    check(re.search(re.escape(open_.encode()) + rb" +open +", text), text)
    check(re.search(re.escape(silent.encode()) + rb" +cancelled +- *\r\n",
                    text), text)


@case("Ctrl-C with a pipe as output: JSON of all, in order")
def _():
    with Hosts() as hosts:
        silent, open_ = hosts.silent(), hosts.open()
        with on_terminal("--json", "-c", "2", "-t", "60000", open_, silent,
                         "bad", silent, open_,
                         stdout=subprocess.PIPE) as (child, terminal):
            terminal.wait_for(rb"2/5 done, 2 in flight")
            terminal.type(b"\x03")
            equal(end_of(child, terminal), 130)
            found = objects(child.stdout.read())
    equal(states(found),
          ["open", "cancelled", "malformed", "cancelled", "cancelled"])
    check(found[1]["ms"] > 0 and found[1]["address"] == silent, found)
    equal((found[4]["ms"], found[4]["address"]), (None, None))


def many_results():
    """A file whose results are more than a pipe or a terminal holds."""
    path = scratch("many")
    with open(path, "w", encoding="ascii") as file:
        file.write("malformed\n" * 20000)
    return path


@case("the second Ctrl-C ends at once, though nobody reads the pipe")
def _():
    path = many_results()
    with Hosts() as hosts:
        with on_terminal("--json", "-t", "60000", "-f", path, hosts.silent(),
                         stdout=subprocess.PIPE) as (child, terminal):
            terminal.wait_for(rb"20000/20001 done, 1 in flight")
            terminal.type(b"\x03")
            end = time.monotonic() + 1
            while time.monotonic() < end:
                terminal.pump()
            equal(child.poll(), None, "the first cannot have ended it")
            start = time.monotonic()
            terminal.type(b"\x03")
            equal(end_of(child, terminal), 130)
            check(time.monotonic() - start < 5, "that was not at once")


@case("the second Ctrl-C ends at once, though nobody reads the terminal")
def _():
    path = many_results()
    other = Terminal()
    with Hosts() as hosts:
        with on_terminal("-t", "60000", "-f", path, hosts.silent(),
                         stdout=other.slave) as (child, terminal):
            terminal.wait_for(rb"20000/20001 done, 1 in flight")
            terminal.type(b"\x03")
            end = time.monotonic() + 1
            while time.monotonic() < end:
                terminal.pump()
            equal(child.poll(), None, "the first cannot have ended it")
            terminal.type(b"\x03")
            equal(end_of(child, terminal, 5), 130)
    other.close()


@case("two Ctrl-C one right after the other are 130")
def _():
    with Hosts() as hosts:
        silent = hosts.silent()
        for _ in range(3):
            with on_terminal("-t", "60000", silent) as (child, terminal):
                terminal.wait_for(rb"1 in flight")
                terminal.type(b"\x03\x03")
                equal(end_of(child, terminal), 130)


@case("Ctrl-C before the input has ended tells what has come")
def _():
    with Hosts() as hosts:
        name = hosts.open().encode()
        with on_terminal("--json", "-f", "-", stdout=subprocess.PIPE,
                         stdin=subprocess.PIPE) as (child, terminal):
            child.stdin.write(name + b"\nunfinished")
            child.stdin.flush()
            terminal.wait_for(rb"1/1\+ done, 0 in flight")
            terminal.type(b"\x03")
            equal(end_of(child, terminal), 130)
            equal(states(objects(child.stdout.read())), ["open"])


@case("targets typed on a terminal are read, and Ctrl-D ends them")
def _():
    with Hosts() as hosts:
        name = hosts.open()
        with on_terminal("--json", "-f", "-",
                         stdout=subprocess.PIPE) as (child, terminal):
            terminal.type(name.encode() + b"\n\x04")
            equal(end_of(child, terminal), 0)
            equal(states(objects(child.stdout.read())), ["open"])


@case("SIGTERM and SIGINT from elsewhere do as Ctrl-C does")
def _():
    with Hosts() as hosts:
        silent, open_ = hosts.silent(), hosts.open()
        for number in (signal.SIGTERM, signal.SIGINT):
            with started("--json", "-t", "60000", open_, silent,
                         stdout=subprocess.PIPE) as child:
                hosts.wait_for(1)
                hosts.accepted = 0
                time.sleep(0.3)
                child.send_signal(number)
                out, _ = child.communicate(timeout=PATIENCE)
            equal((child.returncode, states(objects(out))),
                  (130, ["open", "cancelled"]))


@case("a SIGINT that was ignored from the start stays ignored")
def _():
    with Hosts() as hosts:
        with started("--json", "-t", "1500", hosts.silent(),
                     stdout=subprocess.PIPE, preexec_fn=lambda: signal.signal(
                         signal.SIGINT, signal.SIG_IGN)) as child:
            time.sleep(0.5)
            child.send_signal(signal.SIGINT)
            out, _ = child.communicate(timeout=PATIENCE)
        equal((child.returncode, states(objects(out))), (1, ["timed_out"]))
