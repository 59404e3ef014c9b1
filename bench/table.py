# SPDX-License-Identifier: MIT
"""The table of ratios, and that of the figures behind it, as text."""

OURS = "parataxis"


def number(value):
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}"


def ratio(figures):
    """How many times as long as ours it takes; what stands there if not."""
    if not figures:
        return "-"
    if "broken" in figures:
        return "BROKEN"
    if "instead" in figures:
        return figures["instead"]
    if "ratio" not in figures:
        return "-"
    value = figures["ratio"]
    return f"{value:.2f} x" if value < 10 else f"{value:,.0f} x"


def figure(figures):
    if not figures:
        return "-"
    if "broken" in figures:
        return "BROKEN"
    if "instead" in figures:
        return figures["instead"]
    text = number(figures["median"])
    if "p99_ms" in figures:
        text += f" / {figures['start_ms']:.0f} / {figures['p99_ms']:.1f}"
    if "rss" in figures:
        text += f" / {figures['rss']:.0f}+{figures['tables']:.0f}"
    if "cpu_ns" in figures:
        text += f" / {number(figures['cpu_ns'])}"
    return text


def unit(entry):
    """What the figures of a row are, where it is not ns."""
    ours = next(iter(entry["results"].values()), {})
    if "p99_ms" in ours:
        return " (CPU ms / to start / p99 late ms)"
    if "rss" in ours:
        return " (ns / B+page tables)"
    if "cpu_ns" in ours:
        return " (ns / of that CPU)"
    return ""


def grid(lines):
    """Columns as wide as they need to be, the first to the left."""
    widths = [max(map(len, column)) for column in zip(*lines)]
    out = ["  ".join([line[0].ljust(widths[0])] + [
        text.rjust(width) for text, width in zip(line[1:], widths[1:])])
        for line in lines]
    out.insert(1, "  ".join("-" * width for width in widths))
    return [line.rstrip() for line in out]


def ratios(summary, notes):
    libraries = summary["libraries"]
    others = [one for one in libraries if one not in (OURS, "limit")]
    lines = [["times as long as parataxis", "ns",
              *(libraries[one]["name"] for one in others), "limit"]]
    for entry in summary["rows"]:
        if entry["is_limit"]:
            continue
        ours = entry["results"].get(OURS, {})
        line = [entry["what"], number(ours["median"])
                if "median" in ours else ratio(ours)]
        for library in others:
            figures = entry["results"].get(library, {})
            text = ratio(figures)
            marks = [notes.mark(library, remark)
                     for remark in remarks(entry, figures)]
            line.append(" ".join([text, *marks]))
        limit = entry.get("limit")
        line.append(f"{limit['median'] / ours['median']:.2f} x"
                    if limit and "median" in ours else "-")
        lines.append(line)
    return grid(lines)


def remarks(entry, figures):
    if "note" in figures:
        yield figures["note"]
    for why in figures.get("broken", []):
        yield f"{entry['row']} is broken: {why}"


def nanoseconds(summary):
    libraries = summary["libraries"]
    lines = [["ns per operation",
              *(one["name"] for one in libraries.values())]]
    for entry in summary["rows"]:
        lines.append([entry["what"] + unit(entry), *(
            figure(entry["results"].get(library)) for library in libraries)])
    return grid(lines)


class Notes:
    """Remarks, each numbered once."""

    def __init__(self, libraries):
        self.libraries = libraries
        self.found = []

    def mark(self, library, remark):
        whole = f"{self.libraries[library]['name']}: {remark}"
        if whole not in self.found:
            self.found.append(whole)
        return f"[{self.found.index(whole) + 1}]"


def text(summary):
    notes = Notes(summary["libraries"])
    machine = summary["machine"]
    out = [*ratios(summary, notes), ""]
    out += [f"[{n}] {note}" for n, note in enumerate(notes.found, 1)]
    out += ["", *nanoseconds(summary), ""]
    ours = [f"parataxis, {entry['row']} is broken: {why}"
            for entry in summary["rows"]
            for why in entry["results"].get(OURS, {}).get("broken", [])]
    out += ours
    out.append(f"{machine['cpu']}, Linux {machine['kernel']}, core "
               f"{machine['pinned_to']}, {machine['date']}; medians of "
               f"{summary['rounds']} rounds; the client of TCP echo on "
               f"{machine['echo_client']}")
    out.append("; ".join(
        f"{facts['name']} {facts['version']} ({facts['compiler']})"
        for library, facts in summary["libraries"].items()
        if library != "limit" and "version" in facts))
    out += [f"Left out, not installed: {name} ({package})"
            for name, package in summary["missing"].items()]
    return "\n".join(out)
