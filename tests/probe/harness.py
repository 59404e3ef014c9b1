# SPDX-License-Identifier: MIT
"""What the tests of examples/probe are made of: targets on loopback, ways to
run the program, and the loop that runs the cases."""
import contextlib
import fcntl
import json
import multiprocessing
import os
import pty
import re
import resource
import select
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time

COMMAND = []
CASES = []
NOTES = []  # lines below the case that is running
WORKERS = 4  # cases at a time
PROGRESS = (rb"(\d+)/(\d+)\+? done, (\d+) in flight, \d+/s, "
            rb"(\d+ s|\d+ min|\?) left")
PATIENCE = 60  # seconds after which a probe counts as hung


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def case(sentence):
    def add(function):
        CASES.append((sentence, function))
        return function
    return add


def scratch(name):
    """The path of a file that goes with the case."""
    return os.path.join(tempfile.gettempdir(), name)


def check(condition, *what):
    if not condition:
        raise Failed(" ".join(str(w) for w in what))


def equal(got, wanted, *what):
    check(got == wanted, *what, "got", repr(got), "wanted", repr(wanted))


# --- Targets ----------------------------------------------------------------

def name_of(sock):
    host, port = sock.getsockname()[:2]
    return "[%s]:%d" % (host, port) if ":" in host else "%s:%d" % (host, port)


class Hosts:
    """Targets on loopback; all of them end with the `with` block."""

    def __init__(self):
        self.sockets = []
        self.listeners = selectors.DefaultSelector()
        self.accepted = 0
        self.thread = None
        self.ending = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ending = True
        if self.thread:
            self.thread.join()
        for sock in self.sockets:
            sock.close()
        self.listeners.close()

    def bound(self, host="127.0.0.1", port=0):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family)
        self.sockets.append(sock)
        sock.bind((host, port))
        return sock

    def wait_for(self, connections, seconds=20):
        end = time.monotonic() + seconds
        while self.accepted < connections:
            check(time.monotonic() < end, "nobody connects")
            time.sleep(0.01)

    def open(self, host="127.0.0.1", port=0):
        """Accepts whatever comes, and closes it."""
        sock = self.bound(host, port)
        sock.listen(4096)
        sock.setblocking(False)
        self.listeners.register(sock, selectors.EVENT_READ)
        if not self.thread:
            self.thread = threading.Thread(target=self.accept_all)
            self.thread.start()
        return name_of(sock)

    def accept_all(self):
        while not self.ending:
            for key, _ in self.listeners.select(0.05):
                with contextlib.suppress(OSError):
                    while True:
                        key.fileobj.accept()[0].close()
                        self.accepted += 1

    def closed(self):
        """A port that nobody listens on, and nobody else can get."""
        return name_of(self.bound())

    def silent(self, host="127.0.0.1", port=0):
        """Its backlog is full: it never answers."""
        sock = self.bound(host, port)
        sock.listen(0)
        for _ in range(8):
            filler = socket.socket()
            self.sockets.append(filler)
            filler.settimeout(0.2)
            try:
                filler.connect(sock.getsockname())
            except TimeoutError:
                return name_of(sock)
        raise Failed("the backlog does not fill up")


# --- Running it -------------------------------------------------------------

def environment(**more):
    env = dict(os.environ)
    env.update(more)
    return env


def probe(*args, stdin=b"", timeout=PATIENCE, env=None, before=None):
    """Run it to its end. Returns the status and both outputs."""
    done = subprocess.run([*COMMAND, *args], input=stdin,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout, env=env, preexec_fn=before)
    for word in (b"Sanitizer", b"runtime error:", b"==ERROR"):
        check(word not in done.stderr, done.stderr.decode(errors="replace"))
    return done.returncode, done.stdout, done.stderr


def probe_json(*args, **kwargs):
    """The same with --json: the status, the objects and standard error."""
    status, out, err = probe("--json", *args, **kwargs)
    return status, objects(out), err


def objects(out):
    check(out == b"" or out.endswith(b"\n"), "the last line is cut", out[-80:])
    result = []
    for line in out.split(b"\n")[:-1]:
        try:
            result.append(json.loads(line.decode("utf-8")))
        except ValueError as error:
            raise Failed("no JSON: %r: %s" % (line, error)) from None
        equal(list(result[-1]), ["target", "address", "state", "ms"])
    return result


def states(found):
    return [entry["state"] for entry in found]


class Terminal:
    """A pseudo-terminal, and what has come out of it."""

    def __init__(self, reading=True):
        try:
            self.master, self.slave = pty.openpty()
        except OSError as error:  # no /dev/pts
            raise Skipped("no terminal to be had: %s" % error) from None
        self.text = b""
        self.reading = reading
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, b"\x18\0\x50\0\0\0\0\0")

    def pump(self, seconds=0.05):
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return True
        with contextlib.suppress(OSError):  # EIO: nobody has it open
            piece = os.read(self.master, 65536)
            self.text += piece
            return bool(piece)
        return False

    def wait_for(self, pattern, seconds=20):
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text):
            check(time.monotonic() < end, "no", pattern, "in", self.text)
            self.pump()

    def type(self, keys):
        os.write(self.master, keys)

    def close(self):
        for fd in (self.master, self.slave):
            with contextlib.suppress(OSError):
                os.close(fd)


@contextlib.contextmanager
def started(*args, **kwargs):
    """Start it. It does not outlive the `with` block."""
    child = subprocess.Popen([*COMMAND, *args], **kwargs)
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream:
                stream.close()


@contextlib.contextmanager
def on_terminal(*args, stdout=None, stdin=None, reading=True):
    """Start it with a terminal that controls it, as a shell would. What is not
    said otherwise is the terminal."""
    terminal = Terminal(reading)

    def control():
        os.setsid()
        fcntl.ioctl(terminal.slave, termios.TIOCSCTTY, 0)

    try:
        with started(*args,
                     stdin=terminal.slave if stdin is None else stdin,
                     stdout=terminal.slave if stdout is None else stdout,
                     stderr=terminal.slave, preexec_fn=control) as child:
            yield child, terminal
    finally:
        terminal.close()


def end_of(child, terminal, seconds=20):
    """Wait for its end while reading the terminal."""
    end = time.monotonic() + seconds
    while child.poll() is None:
        check(time.monotonic() < end, "it does not end:", terminal.text)
        if terminal.reading:
            terminal.pump()
        else:
            time.sleep(0.02)
    while terminal.reading and terminal.pump(0) and select.select(
            [terminal.master], [], [], 0)[0]:
        pass
    return child.returncode


def wait_until_ready(child, seconds=20):
    """Until it has blocked SIGINT, so that one does not just kill it."""
    end = time.monotonic() + seconds
    while True:
        with open("/proc/%d/status" % child.pid, encoding="ascii") as file:
            blocked = int(re.search(r"SigBlk:\s*(\w+)", file.read())[1], 16)
        if blocked & 1 << (signal.SIGINT - 1):
            return
        check(time.monotonic() < end, "it does not start")
        time.sleep(0.01)


def program_bytes():
    with open(COMMAND[-1], "rb") as file:
        return file.read()


def limit_files(soft, hard):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int lookup(const char *, const char *, const struct addrinfo *,
                   struct addrinfo **);

/* "slow=MS" is 127.0.0.1 after MS; "all=A,B,..." has the addresses A, B, ... */
int getaddrinfo(const char *host, const char *port,
                const struct addrinfo *hints, struct addrinfo **list)
{
    lookup *real = (lookup *)dlsym(RTLD_NEXT, "getaddrinfo");
    struct addrinfo **end = list;
    char copy[256], *rest, *one;

    if (hints->ai_flags & AI_NUMERICHOST)
        return real(host, port, hints, list);
    if (!strncmp(host, "slow=", 5)) {
        usleep(1000 * (useconds_t)atoi(host + 5));
        return real("127.0.0.1", port, hints, list);
    }
    if (strncmp(host, "all=", 4))
        return real(host, port, hints, list);
    strcpy(copy, host + 4);
    for (one = strtok_r(copy, ",", &rest); one;
         one = strtok_r(NULL, ",", &rest)) {
        int err = real(one, port, hints, end);
        if (err)
            return err;
        while (*end)
            end = &(*end)->ai_next;
    }
    return 0;
}
"""


def resolver():
    """An environment with a resolver that does as it is told."""
    if len(COMMAND) > 1:
        raise Skipped("under a launcher nothing is preloaded")
    library = scratch("resolver.so")
    if not os.path.exists(library):
        compiler = next(filter(None, map(
            shutil.which, [os.environ.get("CC", "cc"), "gcc", "clang"])), None)
        if not compiler:
            raise Skipped("no C compiler for the resolver's stand-in")
        source = scratch("resolver.c")
        with open(source, "w", encoding="ascii") as file:
            file.write(SHIM)
        subprocess.run([compiler, "-shared", "-fPIC", "-w", "-o", library,
                        source, "-ldl"], check=True, timeout=PATIENCE)
    asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    return environment(LD_PRELOAD=library, ASAN_OPTIONS=asan)


# --- Running the cases -----------------------------------------------------

def run_case(number):
    """Run one case in a folder of its own. Returns its verdict and the lines
    that go below it."""
    sentence, function = CASES[number]
    NOTES.clear()
    start = time.monotonic()
    verdict, detail = "ok", None
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        try:
            function()
        except Skipped as reason:
            verdict, detail = "skip", str(reason)
        except (Failed, OSError, ValueError, LookupError,
                subprocess.SubprocessError) as error:
            verdict = "FAIL"
            detail = "%s: %s" % (type(error).__name__, str(error)[:3000])
    tempfile.tempdir = None
    if detail is None:
        detail = "%.1f s" % (time.monotonic() - start)
    return verdict, ["%-5s %s (%s)" % (verdict, sentence, detail), *NOTES]


def main(usage):
    args = sys.argv[1:]
    word = ""
    if args[:1] == ["-k"]:
        word, args = args[1], args[2:]
    if not args:
        print(usage)
        return 2
    COMMAND.extend(args)
    chosen = [i for i, (sentence, _) in enumerate(CASES) if word in sentence]
    verdicts = []
    # They wait more than they work.
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        for verdict, lines in pool.imap(run_case, chosen):
            verdicts.append(verdict)
            print("\n      ".join(lines), flush=True)
    if "skip" in verdicts:
        print("%d skipped" % verdicts.count("skip"))
    failed = verdicts.count("FAIL")
    print("%d passed, %d failed" % (verdicts.count("ok"), failed))
    return 1 if failed or not verdicts else 0
