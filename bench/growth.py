# SPDX-License-Identifier: MIT
"""What an operation costs beside n others, from ten to a million: measured by
growth.c, drawn as small pictures. run.py --growth calls it.

    bench/growth.py GROWTH.json > GROWTH.svg
"""

import json
import statistics
import subprocess
import sys

from svg import FAINT, GRID, INK, OURS, LogAxis, Svg, duration, wrap

FIBER = 4700  # bytes that a parked one takes, its page tables included
COLOURS = [OURS, "#2f6690", "#7a8b3c"]
WIDTH, MARGIN, COLUMNS = 1180, 28, 3
PANEL, PLOT, PITCH_Y = 348, 230, 362


# -- measuring ---------------------------------------------------------------

def series_of(executable):
    listed = subprocess.run([executable, "--list"], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    lines = (line.split("\t") for line in listed.splitlines())
    return [{"series": name, "panel": panel, "what": what, "most": int(most)}
            for name, panel, what, most in lines]


def memory_available():
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 1 << 30


def room_for_fibers():
    """How many there can be, with some memory left to the rest."""
    return memory_available() * 7 // 10 // FIBER


def sizes(one, largest):
    """1, 3, 10, 30, ...; below ten there is little to see but of scopes."""
    least = 1 if one["panel"] == "nested scopes" else 10
    steps = (step * 10 ** n for n in range(7) for step in (1, 3))
    return [n for n in steps if least <= n <= min(one["most"], largest)]


def measure(executable, series, n):
    done = subprocess.run([executable, series, str(n)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit(done.stderr.strip() or f"growth: {series} with {n} failed")
    return json.loads(done.stdout)


def run(executable, rounds, largest, say):
    """All series, each with its points: {n, ns (the median), samples}."""
    room = room_for_fibers()
    if room < largest:
        say(f"growth: memory for {room} fibers only")
        largest = room
    all_series = series_of(executable)
    version = "?"
    for one in all_series:
        say(f"{one['series']}")
        one["points"] = []
        for n in sizes(one, largest):
            got = [measure(executable, one["series"], n)
                   for _ in range(rounds)]
            version = got[0]["version"]
            samples = [point["ns"] for point in got]
            one["points"].append({"n": n, "ns": statistics.median(samples),
                                  "samples": samples})
    return {"version": version, "rounds": rounds, "series": all_series}


# -- the picture -------------------------------------------------------------

def count(n):
    """100, 1k, 1M"""
    for size, unit in ((1000000, "M"), (1000, "k")):
        if n >= size:
            return f"{n / size:g}{unit}"
    return f"{n:g}"


def rough(ns):
    """ns in words, of two or three figures."""
    for size, unit in ((1e6, "ms"), (1e3, "µs")):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def draw_panel(svg, title, series, left, top, scale):
    svg.text(left, top + 13, title, 14, INK, weight=700)
    for n, one in enumerate(series):
        y = top + 32 + 15 * n
        svg.rect(left, y - 7, 16, 4, COLOURS[n], 2)
        first, last = one["points"][0], one["points"][-1]
        svg.text(left + 22, y, f"{one['what']}: {rough(first['ns'])} to "
                 f"{rough(last['ns'])}", 11, FAINT)
    bottom = top + 84 + PLOT
    ns = [point["n"] for one in series for point in one["points"]]
    x_axis = LogAxis(min(ns), max(ns), left + 44, left + PANEL)
    y_axis = LogAxis(*scale, bottom, top + 84)
    for tick in y_axis.decades():
        y = y_axis.at(tick)
        svg.line(left + 44, y, left + PANEL, y, GRID)
        svg.text(left + 38, y + 3.5, duration(tick), 10, FAINT, "end")
    for tick in x_axis.decades():
        x = x_axis.at(tick)
        svg.line(x, top + 84, x, bottom, GRID)
        svg.text(x, bottom + 14, count(tick), 10, FAINT, "middle")
    for n, one in enumerate(series):
        points = [(x_axis.at(point["n"]), y_axis.at(point["ns"]))
                  for point in one["points"]]
        svg.polyline(points, COLOURS[n])
        for x, y in points:
            svg.circle(x, y, 2.4, COLOURS[n])


def draw(results):
    panels = {}
    for one in results["series"]:
        if one["points"]:
            panels.setdefault(one["panel"], []).append(one)
    figures = [point["ns"] for one in results["series"]
               for point in one["points"]]
    rows = -(-(len(panels) + 1) // COLUMNS)
    top = 84
    svg = Svg(WIDTH, top + rows * PITCH_Y + 20)
    svg.text(MARGIN, 40, "What an operation of libparataxis costs beside n "
             "others", 22, INK, weight=700)
    svg.text(MARGIN, 61, "CPU time per operation (up) against how many there "
             "are (across). Both scales are logarithmic; the one that goes up "
             "is the same for all.", 12.5, FAINT)
    scale = min(figures), max(figures)
    places = [(MARGIN + n % COLUMNS * (PANEL + 40), top + n // COLUMNS *
               PITCH_Y) for n in range(len(panels) + 1)]
    for (title, series), (left, y) in zip(panels.items(), places):
        draw_panel(svg, title, series, left, y, scale)
    machine, (left, y) = results["machine"], places[-1]
    words = [
        "How to read it",
        "A level line costs the same beside any number of others; one that "
        "rises as the scale does is a walk past all of them. Where many fibers "
        "take turns a line bends, though each does the same: first their "
        "stacks no longer fit the caches, then the kernel takes part.",
        f"{machine['cpu']}, {machine['architecture']}, Linux "
        f"{machine['kernel']}, {machine['date']}. parataxis "
        f"{results['version']}, shared library. Medians of "
        f"{results['rounds']}. What each line does: docs/performance.md."]
    svg.text(left, y + 13, words[0], 14, INK, weight=700)
    y += 38
    for words in words[1:]:
        for line in wrap(words, 58):
            svg.text(left, y, line, 11.5, FAINT)
            y += 17
        y += 10
    return str(svg)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as stored:
        print(draw(json.load(stored)), end="")
