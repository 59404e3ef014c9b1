# SPDX-License-Identifier: MIT
"""A few words of SVG, and a logarithmic axis: what the pictures are made of."""

import math
from xml.sax.saxutils import escape

PAPER = "#fcfcf9"  # always painted, so that it reads on a dark page, too
INK = "#22272e"
FAINT = "#6b7280"
GRID = "#e3e4de"
OURS = "#d9480f"


class Svg:
    def __init__(self, width, height):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}" '
            'font-family="system-ui, Segoe UI, Helvetica, Arial, sans-serif">']
        self.rect(0, 0, width, height, PAPER)

    def rect(self, x, y, width, height, fill, radius=0):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
                          f'height="{height:.1f}" rx="{radius}" '
                          f'fill="{fill}"/>')

    def line(self, x1, y1, x2, y2, stroke, width=1.0, dashes=None):
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" '
                          f'y2="{y2:.1f}" stroke="{stroke}" '
                          f'stroke-width="{width}"{dashed}/>')

    def circle(self, x, y, radius, fill, stroke=None):
        edge = f' stroke="{stroke}" stroke-width="1.5"' if stroke else ""
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" '
                          f'fill="{fill}"{edge}/>')

    def polyline(self, points, stroke):
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{joined}" fill="none" '
                          f'stroke="{stroke}" stroke-width="2" '
                          'stroke-linejoin="round"/>')

    def text(self, x, y, words, size=11, fill=INK, anchor="start", weight=400,
             style="normal"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
                          f'fill="{fill}" text-anchor="{anchor}" '
                          f'font-weight="{weight}" font-style="{style}">'
                          f'{escape(words)}</text>')

    def __str__(self):
        return "\n".join([*self.parts, "</svg>", ""])


class LogAxis:
    """Whole decades around `least` and `most`, between two coordinates."""

    def __init__(self, least, most, begin, end):
        self.first = math.floor(math.log10(least) + 1e-9)
        self.last = max(math.ceil(math.log10(most) - 1e-9), self.first + 1)
        self.begin, self.end = begin, end

    def at(self, value):
        share = (math.log10(value) - self.first) / (self.last - self.first)
        return self.begin + share * (self.end - self.begin)

    def decades(self):
        return [10.0 ** n for n in range(self.first, self.last + 1)]


def duration(ns):
    """A round number of ns, in words: "100 ns", "10 µs"."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= size:
            return f"{ns / size:g} {unit}"
    return f"{ns:g} ns"


def wrap(words, width):
    """Lines of at most `width` characters."""
    lines = [""]
    for word in words.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines
