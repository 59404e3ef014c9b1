# SPDX-License-Identifier: MIT
"""The figures as a picture: bars on one logarithmic scale, a group a row.

    bench/picture.py RESULTS.json > RESULTS.svg
"""

import json
import re
import sys

from svg import (FAINT, GRID, INK, OURS, PAPER, LogAxis, Svg, duration, wrap)

# In the order in which they are drawn; ours is strong, the others are not.
COLOURS = {
    "parataxis": OURS, "boost_fiber": "#8fa6c4", "state_threads": "#a5b79b",
    "pth": "#c9b794", "go": "#93bcc7",
}
WIDTH, MARGIN, GUTTER = 1280, 28, 36
COLUMN = (WIDTH - 2 * MARGIN - GUTTER) / 2
NAMES, LABELS = 96, 150  # left and right of the bars
TOP, TITLE, PITCH, BAR, GAP = 118, 20, 15, 10, 13


def each(figures):
    """ns per operation, for a row that is counted in other units, too."""
    return figures.get("each_ns", figures.get("median"))


def value(entry, figures):
    median = figures["median"]
    number = f"{median:,.0f}" if median >= 100 else f"{median:.1f}"
    return f"{number} {'ms' if entry['unit'] == 'CPU ms' else 'ns'}"


def label(entry, library, figures):
    """What stands at the end of a bar."""
    words = value(entry, figures)
    if library != "parataxis" and "ratio" in figures:
        ratio = figures["ratio"]
        words += f"\u2002{ratio:,.0f}×" if ratio >= 9.95 \
            else f"\u2002{ratio:.1f}×"
    if "p99_ms" in figures:
        words += f"\u2002{figures['p99_ms']:.0f} ms late"
    if "rss" in figures:
        words += f"\u2002{figures['rss'] + figures['tables']:,.0f} B"
    if library != "parataxis" and "note" in figures:  # as short as it can be
        words += "\u2002" + re.split("[:;,]", figures["note"])[0]
    return words


def subtitle(entry):
    """What the figures of a row are, if not CPU time each."""
    ours = entry["results"].get("parataxis", {})
    if "p99_ms" in ours:
        return "CPU time of all, and how late 99 % woke at most"
    if "rss" in ours:
        return "and the memory of each, page tables included"
    if "cpu_ns" in ours:
        return "by the clock on the wall"
    return ""


def shown(entry):
    return [library for library in COLOURS if library in entry["results"]]


def height(entry):
    return TITLE + PITCH * len(shown(entry)) + GAP


def columns(entries):
    """Two columns, of about the same height."""
    whole, left, so_far = sum(map(height, entries)), [], 0
    for entry in entries:
        if so_far + height(entry) / 2 > whole / 2:
            break
        left.append(entry)
        so_far += height(entry)
    return left, entries[len(left):]


def draw_scale(svg, axis, top, bottom):
    for tick in axis.decades():
        x = axis.at(tick)
        svg.line(x, top, x, bottom, GRID)
        svg.text(x, top - 6, duration(tick), 10, FAINT, "middle")


def draw_bar(svg, axis, entry, library, y, left):
    """One library in one row; its name, its bar, its figure."""
    figures = entry["results"][library]
    colour, ours = COLOURS[library], library == "parataxis"
    base = y + BAR - 1.5
    svg.text(left + NAMES - 8, base, NAMES_OF[library], 10.5,
             INK if ours else FAINT, "end", 700 if ours else 400)
    if "median" not in figures:
        words = figures.get("instead", "broke a check: no result")
        svg.text(left + NAMES + 4, base, words, 10.5, FAINT, style="italic")
        return
    end = axis.at(max(each(figures), axis.decades()[0]))
    svg.rect(axis.begin, y, max(end - axis.begin, 2), BAR, colour, 1.5)
    lto = entry["results"].get("parataxis_lto", {}) if ours else {}
    if "median" in lto:
        x = axis.at(max(each(lto), axis.decades()[0]))
        svg.circle(x, y + BAR / 2, 3.2, PAPER, OURS)
        end = max(end, x + 3)
    limit = entry.get("limit", {}).get("median")
    if limit and abs(axis.at(limit) - end) < 3:
        end += 3
    svg.text(end + 6, base, label(entry, library, figures), 10.5,
             INK if ours else FAINT, weight=700 if ours else 400)


def draw_group(svg, axis, entry, y, left):
    svg.text(left, y + 13, entry["what"], 12.5, INK, weight=600)
    words = subtitle(entry)
    if words:
        svg.text(left + COLUMN, y + 13, words, 10.5, FAINT, "end")
    y += TITLE
    libraries = shown(entry)
    for n, library in enumerate(libraries):
        draw_bar(svg, axis, entry, library, y + n * PITCH, left)
    if "limit" in entry:
        x = axis.at(entry["limit"]["median"])
        svg.line(x, y - 3, x, y + PITCH * len(libraries) - PITCH + BAR + 3,
                 INK, 1.6)


def draw_head(svg, summary, lto):
    svg.text(MARGIN, 40, "libparataxis beside other libraries of fibers", 22,
             INK, weight=700)
    svg.text(MARGIN, 61, "Time per operation on one core: shorter is better. "
             "Logarithmic scale, the same for all. "
             f"Medians of {summary['rounds']} rounds of one run.", 12.5, FAINT)
    x, y = MARGIN, 81
    svg.rect(x, y - 9, 26, BAR, OURS, 1.5)
    svg.text(x + 32, y, "parataxis, the installed shared library", 11.5)
    x += 275
    if lto:
        svg.circle(x, y - 4, 3.2, PAPER, OURS)
        svg.text(x + 9, y, "static, with LTO", 11.5)
        x += 122
    for library in list(COLOURS)[1:]:
        if library in summary["libraries"]:
            svg.rect(x, y - 9, 14, BAR, COLOURS[library], 1.5)
            svg.text(x + 19, y, NAMES_OF[library], 11.5)
            x += 32 + 6.4 * len(NAMES_OF[library])
    svg.line(x + 6, y - 11, x + 6, y + 3, INK, 1.6)
    svg.text(x + 13, y, "the machine's limit (a switch, a clock read, a "
             "page's first touch, epoll)", 11.5)


NAMES_OF = {
    "parataxis": "parataxis", "boost_fiber": "Boost.Fiber",
    "state_threads": "State Threads", "pth": "GNU Pth", "go": "Go",
}


def footer(summary):
    machine = summary["machine"]
    versions = ", ".join(
        f"{NAMES_OF[library]} {facts['version'].replace('_', '.')}"
        for library, facts in summary["libraries"].items()
        if library in NAMES_OF and "version" in facts)
    words = (f"{machine['cpu']}, {machine['architecture']}, Linux "
             f"{machine['kernel']}, {machine['date']}. {versions}. "
             "1.4× = takes 1.4 times as long as parataxis. No bar: the "
             "library cannot do it. What each row does, and where a library "
             "does less: docs/performance.md.")
    return wrap(words, 190)


def draw(summary):
    """The SVG text for what run.py summarised."""
    entries = [entry for entry in summary["rows"]
               if not entry["is_limit"] and
               "median" in entry["results"].get("parataxis", {})]
    if not entries:
        return str(Svg(WIDTH, TOP))
    lto = "parataxis_lto" in summary["libraries"]
    values = [each(figures) for entry in entries
              for figures in entry["results"].values() if "median" in figures]
    values += [entry["limit"]["median"] for entry in entries
               if "limit" in entry]
    sides = columns(entries)
    bottom = TOP + max(sum(map(height, side)) for side in sides)
    notes = footer(summary)
    svg = Svg(WIDTH, bottom + 22 + 15 * len(notes))
    draw_head(svg, summary, lto)
    for n, side in enumerate(sides):
        left = MARGIN + n * (COLUMN + GUTTER)
        axis = LogAxis(min(values), max(values), left + NAMES,
                       left + COLUMN - LABELS)
        if side:
            draw_scale(svg, axis, TOP, bottom - GAP / 2)
        y = TOP + 4
        for entry in side:
            draw_group(svg, axis, entry, y, left)
            y += height(entry)
    for n, line in enumerate(notes):
        svg.text(MARGIN, bottom + 18 + 15 * n, line, 11, FAINT)
    return str(svg)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as results:
        print(draw(json.load(results)), end="")
