# SPDX-License-Identifier: MIT
"""What comes of targets: states, addresses, times, names, and many of them."""
import os
import re
import resource
import shutil
import signal
import subprocess
import time

from harness import (
    COMMAND, NOTES, PATIENCE, PROGRESS, Hosts, Skipped, case, check, end_of,
    equal, limit_files, objects, on_terminal, probe, probe_json, resolver,
    started, states, wait_until_ready)

UNREACHABLE = "255.255.255.255:80"
UNRESOLVED = "a" * 70 + ".invalid:80"


# --- States -----------------------------------------------------------------

@case("every state has its name, its address and its time, in input order")
def _():
    with Hosts() as hosts:
        open_, closed, silent = hosts.open(), hosts.closed(), hosts.silent()
        targets = [silent, open_, UNRESOLVED, "no-port", closed, UNREACHABLE,
                   open_]
        status, found, err = probe_json("-t", "600", *targets)
    equal(status, 1)
    equal([entry["target"] for entry in found], targets)
    equal(states(found), ["timed_out", "open", "unresolved", "malformed",
                          "refused", "unreachable", "open"])
    equal([entry["address"] for entry in found],
          [silent, open_, None, None, closed, UNREACHABLE, open_])
    for entry in found:
        if entry["state"] == "malformed":
            equal(entry["ms"], None)
        else:
            check(0 <= entry["ms"] < 20000, entry)
    check(600 <= found[0]["ms"], "a timeout must not come early", found[0])
    equal(err.count(b"\n"), 1)
    check(b"argument 4: no port: no-port" in err, err)


@case("the text has one line for each target, with its state and time")
def _():
    with Hosts() as hosts:
        open_, closed, silent = hosts.open(), hosts.closed(), hosts.silent()
        status, out, err = probe("-t", "300", closed, silent, open_,
                                 UNREACHABLE, UNRESOLVED, "what?")
    equal(status, 1)
    lines = out.decode().splitlines()
    for line, target, state in zip(
            lines, [closed, silent, open_, UNREACHABLE, UNRESOLVED, "what?"],
            ["refused", "timed out", "open", "unreachable", "unresolved",
             "malformed"]):
        check(line.startswith(target + " "), line)
        check("  " + state + " " in line, line)
        check(re.search(r"  +\d+\.\d ms" if state != "malformed" else r" -  ",
                        line), line)
    equal(len(lines), 6)
    check(b"what?" in err, err)


@case("all open is 0")
def _():
    with Hosts() as hosts:
        name = hosts.open()
        status, found, err = probe_json(name, name)
        equal((status, states(found), err), (0, ["open", "open"], b""))


@case("IPv6 in brackets is reached")
def _():
    with Hosts() as hosts:
        try:
            name = hosts.open("::1")
        except OSError as error:
            raise Skipped("no IPv6 on loopback: %s" % error) from None
        status, found, _ = probe_json(name)
        equal((status, found[0]["address"]), (0, name))


@case("localhost is looked up, and the address told")
def _():
    with Hosts() as hosts:
        port = hosts.open().split(":")[1]
        status, found, _ = probe_json("-t", "10000", "localhost:" + port)
        equal((status, found[0]["address"]), (0, "127.0.0.1:" + port))
        _, out, _ = probe("localhost:" + port)
        check(out.rstrip().endswith(b"127.0.0.1:" + port.encode()), out)


@case("a timeout counts from when the target has its place")
def _():
    with Hosts() as hosts:
        silent = hosts.silent()
        start = time.monotonic()
        status, found, _ = probe_json("-c", "1", "-t", "250", *[silent] * 3)
        took = time.monotonic() - start
    equal((status, states(found)), (1, ["timed_out"] * 3))
    check(took >= 0.75, "three of 250 ms in", took)
    for entry in found:
        check(250 <= entry["ms"] < 5000, entry)


@case("what is under way at the deadline has timed out, the rest is cancelled")
def _():
    with Hosts() as hosts:
        silent, open_ = hosts.silent(), hosts.open()
        start = time.monotonic()
        status, found, _ = probe_json("-c", "2", "-t", "60000", "-d", "400",
                                      open_, silent, silent, silent, "?")
        took = time.monotonic() - start
    equal(status, 1)
    equal(states(found), ["open", "timed_out", "timed_out", "cancelled",
                          "malformed"])
    equal((found[3]["ms"], found[3]["address"]), (None, None))
    check(found[1]["ms"] > 100 and took < 20, found, took)


@case("the run's deadline ends a slow input too, and what has come is told")
def _():
    with Hosts() as hosts:
        name = hosts.open()
        reader, writer = os.pipe()
        os.write(writer, name.encode() + b"\n")
        done = subprocess.run([*COMMAND, "-d", "500"], stdin=reader,
                              capture_output=True, timeout=PATIENCE)
        os.close(writer)
        os.close(reader)
    equal(done.returncode, 1)
    check(b"open" in done.stdout, done)
    check(b"not read to its end" in done.stderr, done)


@case("a refusal and a timeout do not keep others from being told")
def _():
    with Hosts() as hosts:
        names = [hosts.open(), hosts.closed(), hosts.silent()]
        wanted = ["open", "refused", "timed_out"]
        status, found, _ = probe_json("-c", "7", "-t", "300", *names * 40)
    equal((status, states(found)), (1, wanted * 40))


@case("a socket that the kernel connects to itself is not an open port")
def _():
    if not shutil.which("unshare") or not shutil.which("ip"):
        raise Skipped("it takes a network of its own: unshare and ip")
    setup = ("ip link set lo up && echo 40000 40001 > "
             "/proc/sys/net/ipv4/ip_local_port_range || exit 77; ")
    done = subprocess.run(
        ["unshare", "--map-root-user", "--net", "sh", "-c",
         setup + 'exec "$@"', "sh", *COMMAND, "--json", "127.0.0.1:40000",
         "127.0.0.1:40001"], capture_output=True, timeout=PATIENCE)
    if not done.stdout:
        raise Skipped("no network of its own: %r" % done.stderr[-200:])
    equal((done.returncode, states(objects(done.stdout))),
          (1, ["refused", "refused"]))


# --- Names ------------------------------------------------------------------

@case("several addresses are tried in turn, until one is open")
def _():
    env = resolver()
    with Hosts() as hosts:
        port = hosts.open().split(":")[1]
        status, found, _ = probe_json(
            "all=127.0.0.2,127.0.0.3,127.0.0.1:" + port, env=env)
        equal((status, found[0]["address"]), (0, "127.0.0.1:" + port))


@case("an address that is silent leaves time for the next one")
def _():
    env = resolver()
    with Hosts() as hosts:
        port = hosts.open().split(":")[1]
        hosts.silent("127.0.0.2", int(port))
        status, found, _ = probe_json(
            "-t", "2000", "all=127.0.0.2,127.0.0.1:" + port, env=env)
    equal((status, found[0]["address"]), (0, "127.0.0.1:" + port))
    check(found[0]["ms"] >= 900, found)


@case("with no address open, an undecided one decides, then a refusal")
def _():
    env = resolver()
    with Hosts() as hosts:
        port = hosts.closed().split(":")[1]
        hosts.silent("127.0.0.2", int(port))
        _, found, _ = probe_json(
            "-t", "600", "all=127.0.0.2,127.0.0.1:" + port,
            "all=127.0.0.1,255.255.255.255:" + port,
            "all=255.255.255.255,127.0.0.1:" + port, env=env)
    equal(states(found), ["timed_out", "refused", "refused"])
    equal([entry["address"] for entry in found],
          ["127.0.0.2:" + port, "127.0.0.1:" + port, "127.0.0.1:" + port])


@case("a lookup that takes too long is not waited for, not even at the end")
def _():
    env = resolver()
    with Hosts() as hosts:
        open_ = hosts.open()
        start = time.monotonic()
        status, found, _ = probe_json("-t", "400", "slow=30000:80", open_,
                                      env=env)
        took = time.monotonic() - start
    equal((status, states(found)), (1, ["timed_out", "open"]))
    equal(found[0]["address"], None)
    check(found[0]["ms"] >= 400 and took < 20, found, took)


@case("a slow lookup that comes in time is waited for")
def _():
    env = resolver()
    with Hosts() as hosts:
        port = hosts.open().split(":")[1]
        status, found, _ = probe_json("-t", "20000", "slow=400:" + port,
                                      env=env)
    equal((status, states(found)), (0, ["open"]))
    check(found[0]["ms"] >= 400, found)


@case("more slow lookups than threads time out all the same")
def _():
    env = resolver()
    with Hosts() as hosts:
        open_ = hosts.open()
        targets = ["slow=30000:80"] * 300 + [open_]
        start = time.monotonic()
        status, found, told = probe_json("-c", "300", "-t", "2000", *targets,
                                         env=env)
        took = time.monotonic() - start
    equal((status, states(found)), (1, ["timed_out"] * 300 + ["open"]))
    check(took < 25, took)
    check(b"44 lookups never began" in told, told)


@case("lookups beyond the threads wait for one, and have their answer then")
def _():
    env = resolver()
    with Hosts() as hosts:
        port = hosts.open().split(":")[1]
        targets = ["slow=300:" + port] * 400
        status, found, _ = probe_json("-c", "400", "-t", "30000", *targets,
                                      env=env)
    equal((status, states(found)), (0, ["open"] * 400))


@case("a lookup that nobody waits for any more does not get a thread")
def _():
    env = resolver()
    with Hosts() as hosts:
        port = hosts.open().split(":")[1]
        targets = ["slow=1500:" + port] * 300 + ["slow=1:" + port]
        status, found, _ = probe_json("-c", "300", "-t", "1000", *targets,
                                      env=env)
    equal((status, states(found)), (1, ["timed_out"] * 300 + ["open"]))


@case("Ctrl-C does not wait for a lookup either")
def _():
    env = resolver()
    start = time.monotonic()
    with started("--json", "-t", "60000", "slow=30000:80", env=env,
                 stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        wait_until_ready(child)
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=PATIENCE)
    equal((child.returncode, states(objects(out))), (130, ["cancelled"]))
    check(time.monotonic() - start < 20, "it waited")


# --- Many -------------------------------------------------------------------

@case("10,000 targets on loopback, 1,000 at once, all open")
def _():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1500:
        raise Skipped("only %d files may be open here" % hard)
    with Hosts() as hosts:
        names = [hosts.open() for _ in range(10)]
        targets = [names[i % 10] for i in range(10000)]
        start = time.monotonic()
        status, found, err = probe_json(
            "-c", "1000", "-t", "30000", stdin="\n".join(targets).encode(),
            before=limit_files(256, hard))
        took = time.monotonic() - start
    equal(err, b"")
    equal((status, len(found)), (0, 10000))
    equal([entry["target"] for entry in found], targets)
    equal(set(states(found)), {"open"})
    NOTES.append("10,000 in %.2f s" % took)


@case("1,000 at once are really in flight at once")
def _():
    with Hosts() as hosts:
        silent = hosts.silent()
        start = time.monotonic()
        status, found, err = probe_json("-c", "1000", "-t", "1000",
                                        *[silent] * 1000)
        took = time.monotonic() - start
    equal((status, set(states(found)), err), (1, {"timed_out"}, b""))
    check(took < 20, took)


@case("never more than N are in flight")
def _():
    with Hosts() as hosts:
        silent = hosts.silent()
        with on_terminal("-c", "3", "-t", "400",
                         *[silent] * 9) as (child, terminal):
            equal(end_of(child, terminal), 1)
    flights = {int(seen[2]) for seen in re.findall(PROGRESS, terminal.text)}
    equal(max(flights), 3, flights)


@case("a low file limit is told, and lowers N; all are probed")
def _():
    with Hosts() as hosts:
        name = hosts.open()
        for limit in (100, 64, 30):
            status, found, err = probe_json(
                "-c", "1000", "-t", "30000", *[name] * 300,
                before=limit_files(limit, limit))
            equal((status, len(found), set(states(found))), (0, 300, {"open"}))
            seen = re.fullmatch(
                rb"probe: only %d files may be open: (\d+) at once, not 1000\n"
                % limit, err)
            check(seen and 1 <= int(seen.group(1)) < limit, err)


@case("a low soft limit is raised without a word")
def _():
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 400:
        raise Skipped("the hard limit is low")
    with Hosts() as hosts:
        silent = hosts.silent()
        status, found, err = probe_json("-c", "200", "-t", "1000",
                                        *[silent] * 200,
                                        before=limit_files(64, 400))
    equal((status, set(states(found)), err), (1, {"timed_out"}, b""))


@case("descriptors taken up by others are waited for")
def _():
    spare = [os.open("/dev/null", os.O_RDONLY) for _ in range(70)]
    with Hosts() as hosts:
        name = hosts.open()
        silent = hosts.silent()
        done = subprocess.run(
            [*COMMAND, "--json", "-c", "60", "-t", "30000", "-d", "2000",
             *[silent] * 50, *[name] * 20], capture_output=True,
            timeout=PATIENCE, pass_fds=spare,
            preexec_fn=limit_files(110, 110))
    for fd in spare:
        os.close(fd)
    found = objects(done.stdout)
    equal((done.returncode, len(found)), (1, 70))
    check(set(states(found)) <= {"timed_out", "open", "cancelled"}, found)
    check(b"short of sockets: Too many open files" in done.stderr, done.stderr)


@case("a target given 3,000 times keeps its order among others")
def _():
    with Hosts() as hosts:
        names = [hosts.open(), hosts.closed(), "x"]
        text = "\n".join(names * 1000)
        status, found, _ = probe_json("-t", "20000", stdin=text.encode())
    equal(status, 1)
    equal([entry["target"] for entry in found], names * 1000)
    equal(states(found), ["open", "refused", "malformed"] * 1000)


# --- The demo ---------------------------------------------------------------

@case("--demo probes 200 targets of its own in a few seconds")
def _():
    start = time.monotonic()
    status, out, err = probe("--demo")
    took = time.monotonic() - start
    equal((status, err), (1, b""))
    for words in (rb"answers at once +120 +120 open", rb"200 targets",
                  rb"drained after 200 ms +20 ",
                  rb"closed port +40 +40 refused",
                  rb"never drained +20 +20 timed out"):
        check(re.search(words, out), words, out.decode())
    check(took < 20, took)
    NOTES.extend(out.decode().splitlines())


@case("--demo --json has all kinds: fast, late, silent and closed")
def _():
    status, found, err = probe_json("--demo", "-t", "2500")
    equal((status, len(found), err), (1, 200, b""))
    equal({state: states(found).count(state) for state in set(states(found))},
          {"open": 140, "timed_out": 20, "refused": 40})
    late = [entry["ms"] for entry in found
            if entry["state"] == "open" and entry["ms"] > 900]
    check(late, "the late ones answer a SYN that is sent again")


@case("--demo ends at its deadline and at Ctrl-C")
def _():
    status, found, _ = probe_json("--demo", "-d", "600")
    equal((status, len(found)), (1, 200))
    status, out, _ = probe("--demo", "-d", "1")
    equal(status, 1)
    with on_terminal("--demo", "-c", "10") as (child, terminal):
        terminal.wait_for(rb"10 in flight")
        terminal.type(b"\x03")
        equal(end_of(child, terminal), 130)
        check(b"cancelled" in terminal.text, terminal.text)
