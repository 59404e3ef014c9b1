# SPDX-License-Identifier: MIT
"""Where targets come from: lines of input, files, the command line."""
import os
import re
import signal
import subprocess
import time

from harness import (
    COMMAND, PATIENCE, Hosts, case, check, end_of, equal, objects,
    on_terminal, probe, probe_json, program_bytes, scratch, started, states,
    wait_until_ready)


# --- Input ------------------------------------------------------------------

@case("comments, blank lines, CRLF, a BOM and a missing last newline")
def _():
    with Hosts() as hosts:
        name = hosts.open().encode()
        text = (b"\xef\xbb\xbf" + name + b"\r\n\r\n   \n# a comment: x\n"
                b"\t" + name + b" # the same\r\n#\n  # more\n" + name)
        status, found, err = probe_json(stdin=text)
    equal((status, states(found), err), (0, ["open"] * 3, b""))
    equal({entry["target"] for entry in found}, {name.decode()})


MALFORMED = [
    b"host", b"host:", b":80", b":", b"host:0", b"host:65536", b"host:-1",
    b"host:+80", b"host:0x50", b"host:80x", b"host:99999999999999999999",
    b"host: 80", b"ho st:80", b"::1", b"::1:80", b"[::1]", b"[::1]80",
    b"[::1]:", b"[::1]:0", b"[::1", b"[]:80", b"[127.0.0.1]:80", b"[::g]:80",
    b"[::1%]:80", b"http://localhost:80", b"host:80:80", b"\xff\xfe:80",
    b"ho\x00st:80", b"\x00", b"ho\x1bst:80", b"h" * 300 + b":80",
    b"h\xc3\xb6st:", b"\x7f:80", b"[[::1]]:80", b"host:\xd9\xa8\xd9\xa0",
]


@case("a malformed line is named by number, has its place, the rest goes on")
def _():
    with Hosts() as hosts:
        name = hosts.open().encode()
        text = b"# first\n\n"
        for line in MALFORMED:
            text += line + b"\n" + name + b"\n"
        status, found, err = probe_json(stdin=text)
    equal(status, 1)
    equal(states(found), ["malformed", "open"] * len(MALFORMED))
    equal([entry["target"] for entry in found[::2]],
          [line.decode("utf-8", "replace") for line in MALFORMED])
    check(all(entry["ms"] is None and entry["address"] is None
              for entry in found[::2]), found)
    numbers = [int(n) for n in
               re.findall(rb"standard input: line (\d+): ", err)]
    equal(numbers, [3 + 2 * i for i in range(len(MALFORMED))])
    check(b"\x1b" not in err and b"\0" not in err, err)


@case("in the text, control bytes are shown and not sent to a terminal")
def _():
    status, out, err = probe(
        stdin=b"a\x1b[2Jb\n\xc2\x9bx\nh\xc3\xb6st\n\xe2\x82\n")
    equal(status, 1)
    for text in (out, err):
        check(b"\x1b" not in text and b"\xc2\x9b" not in text, text)
        check(b"a\\x1B[2Jb" in text and b"\\xC2\\x9Bx" in text, text)
        check("h\u00f6st".encode() in text and b"\\xE2\\x82" in text, text)


@case("JSON keeps quotes and control bytes, and replaces bad UTF-8")
def _():
    lines = [
        b'"', b'a"b\\c', b"\\", b"tab\there", b"\x01\x02\x1f\x7f", b"nul\0l",
        b"caf\xc3\xa9", b"\xf0\x9f\x98\x80", b"\xff", b"\xc0\xaf", b"\xe2\x82",
        b"\xe2\x82x", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xf0\x80\x80\x80",
        b"\xf4\x90\x80\x80", b"\xf0\x9f\x98x\xf0\x9f", b"\x80\x80", b"/</",
        b"\xe0\x80\xaf", b"\xc2\x85z", b"\xe2\x80\xa8z", b"x\x08\x0cy\x1b",
        bytes(range(0x80, 0x100)), b"a\rb", b"\xef\xbf\xbe"]
    status, found, _ = probe_json(stdin=b"\n".join(lines))
    equal(status, 1)
    equal([entry["target"] for entry in found],
          [line.decode("utf-8", "replace") for line in lines])
    equal(set(states(found)), {"malformed"})
    status, found, _ = probe_json(b'quo"te\xff\x01\\', "")
    equal((status, [entry["target"] for entry in found]),
          (1, ['quo"te\ufffd\x01\\', ""]))


@case("a line of a mebibyte is told whole, a longer one is cut")
def _():
    with Hosts() as hosts:
        name = hosts.open()
        text = b"#" + b"c" * 3000000 + b"\n"
        text += b"x" * (1 << 20) + b"\n" + name.encode() + b"\n"
        text += b"y" * 3000000 + b"\n" + name.encode() + b"\n"
        status, found, err = probe_json(stdin=text)
    equal((status, states(found)),
          (1, ["malformed", "open", "malformed", "open"]))
    equal([len(entry["target"]) for entry in found],
          [1 << 20, len(name), 1 << 20, len(name)])
    check(re.search(rb"line 2: .*line 4: ", err, re.S) and len(err) < 1000, err)
    _, out, _ = probe(stdin=text)
    check(len(out) < 2000, "the text is to stay readable", len(out))


@case("targets are probed while the input is still open")
def _():
    with Hosts() as hosts:
        name = hosts.open().encode()
        with started("--json", stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE) as child:
            for piece, wanted in ((name[:5], 0), (name[5:] + b"\n" + name, 1),
                                  (b"\n", 2)):
                child.stdin.write(piece)
                child.stdin.flush()
                hosts.wait_for(wanted)
            out, _ = child.communicate(timeout=PATIENCE)
        equal((child.returncode, states(objects(out))), (0, ["open"] * 2))


@case("-f reads a file, after the arguments; - is standard input")
def _():
    path = scratch("targets")
    with Hosts() as hosts:
        name = hosts.open()
        with open(path, "w", encoding="ascii") as file:
            file.write("# list\n%s\nbad\n" % name)
        status, found, err = probe_json("-f", path, "first", name)
        equal(status, 1)
        equal([entry["target"] for entry in found],
              ["first", name, name, "bad"])
        check(("%s: line 3: no port: bad" % path).encode() in err, err)
        status, found, _ = probe_json("-f", "-", stdin=name.encode())
        equal((status, len(found)), (0, 1))
        status, found, _ = probe_json(name, stdin=b"not read\n")
        equal((status, len(found)), (0, 1))


@case("a file that cannot be read is 2, with a message, and the rest is told")
def _():
    with Hosts() as hosts:
        name = hosts.open()
        for path, why in (("/nonexistent/x", b"No such file"),
                          ("/", b"Is a directory"), ("", b"No such file")):
            status, found, err = probe_json("-f", path, name)
            equal((status, states(found)), (2, ["open"]))
            check(path.encode() + b": " in err and why in err, err)
    status, out, err = probe(before=lambda: os.close(0))
    equal((status, out), (2, b""))
    check(b"standard input: " in err, err)


@case("a FIFO that nobody writes to holds nothing up")
def _():
    path = scratch("fifo")
    os.mkfifo(path)
    with Hosts() as hosts:
        name = hosts.open()
        start = time.monotonic()
        status, found, err = probe_json("-d", "500", "-f", path, name)
        equal((status, states(found)), (1, ["open"]))
        check(b"not opened" in err and time.monotonic() - start < 20, err)
        with started("--json", "-f", path, stdout=subprocess.PIPE) as child:
            with open(path, "wb") as file:
                file.write(name.encode())
            out, _ = child.communicate(timeout=PATIENCE)
        equal((child.returncode, states(objects(out))), (0, ["open"]))


@case("an input without targets is 0, and says so")
def _():
    for text in (b"", b"\n\n", b"# nothing\n"):
        status, out, err = probe(stdin=text)
        equal((status, out, err), (0, b"", b"probe: no targets\n"))


@case("an endless line is cut short by Ctrl-C, and takes no memory")
def _():
    with open("/dev/zero", "rb") as zero, started(
            "--json", stdin=zero, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE) as child:
        wait_until_ready(child)
        time.sleep(1)
        with open("/proc/%d/statm" % child.pid, encoding="ascii") as file:
            pages = int(file.read().split()[1])
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=PATIENCE)
    equal((child.returncode, out), (130, b""))
    check(b"not read to its end" in err, err)
    if len(COMMAND) == 1 and b"__asan_init" not in program_bytes():
        check(pages * os.sysconf("SC_PAGESIZE") < 64 << 20, pages)


# --- Options ----------------------------------------------------------------

@case("bad usage is 2, with the usage on standard error")
def _():
    for args in (["-c", "0"], ["-c", "-1"], ["-c", "x"], ["-c", ""],
                 ["-c", "1.5"], ["-c", "+1"], ["-c", " 1"], ["-c", "0x10"],
                 ["-c", "99999999999999999999999"], ["-c", "1000001"], ["-c"],
                 ["127.0.0.1:1", "-d"],
                 ["-t", "0"], ["-t", "x"], ["-t", "-5"], ["-t", "2147483648"],
                 ["-t", "9223372036854775808"], ["-t", "1s"], ["-d", "0"],
                 ["-d", "1e3"], ["-d", "18446744073709551617"], ["-x"],
                 ["--what"], ["--json=yes"], ["-f"], ["--demo", "a:1"],
                 ["--demo", "-f", "-"], ["-f", "a", "-f", "b"]):
        status, out, err = probe(*args)
        equal((status, out), (2, b""), args)
        check(b"usage: probe" in err and err.startswith(b"probe:")
              or err.startswith(COMMAND[-1].encode()), args, err)


@case("--help and --version go to standard output and are 0")
def _():
    status, out, err = probe("--help")
    equal((status, err), (0, b""))
    for word in (b"usage: probe", b"-c N", b"-t MS", b"-d MS", b"-f FILE",
                 b"--json", b"--demo", b"130"):
        check(word in out, word)
    status, out, err = probe("--version")
    check(status == 0 and re.search(rb"\d+\.\d+\.\d+\n", out) and not err, out)


@case("options may stand behind targets, and -- ends them")
def _():
    with Hosts() as hosts:
        name = hosts.open()
        status, out, _ = probe(name, "--json", "-c", "1", "-t5000")
        equal((status, len(objects(out))), (0, 1))
        status, found, _ = probe_json("--", "-c", name)
        equal((status, states(found)), (1, ["malformed", "open"]))


@case("no target and a terminal as input is the usage, and 2")
def _():
    with on_terminal("--json") as (child, terminal):
        equal(end_of(child, terminal), 2)
        check(b"usage: probe" in terminal.text, terminal.text)
