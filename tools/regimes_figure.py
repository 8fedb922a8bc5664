#!/usr/bin/env python3
"""Draws loss against MACs of the pruned character models, beside models of their size trained from nothing, and what they
cost, from docs/results/data/regimes.json.

    tools/regimes_figure.py > docs/images/regimes.svg
"""

import re
import sys

from group_figure import INK, KEPT, REMOVED, r, text
from tables.runs import DATA, read

WIDTH, HEIGHT = 760, 380
LEFT, RIGHT, TOP, BOTTOM = 62, 470, 64, 310  # of the plot
BARS = 560, 742
LINES = {"from nothing, 2,000": "#a0a7af", "from nothing, 4,000": "#5c646d"}  # sisters of the pruned ones
SERIES = {  # column: its colour
    "least squares": REMOVED,
    "200 steps": "#7fb2f0",
    "2,000 steps": KEPT,
    **LINES,
}
NAMES = {
    "least squares": "cut, least squares",
    "200 steps": "+ 200 steps",
    "2,000 steps": "+ 2,000 steps",
    "from nothing, 2,000": "small from nothing, 2,000",
    "from nothing, 4,000": "small from nothing, 4,000",
}


def number(cell):
    found = re.match(r"[\d.,]+", cell)
    return float(found[0].replace(",", "")) if found else None


def points(table):
    """{column: [(MACs, loss, what was cut)] from small to large}, the dense model among those from nothing."""
    rows = [dict(zip(table["columns"], cells)) for cells in table["rows"]]
    both = lambda row, column: (number(row["MACs"]), number(row[column]), row["cut"])
    found = {column: sorted(both(row, column) for row in rows if number(row[column])) for column in SERIES}
    return {column: each for column, each in found.items() if each}


class Plot:
    def __init__(self, found):
        self.found = found
        every = [point for each in found.values() for point in each]
        self.whole = max(macs for macs, *_ in every)
        losses = [loss for _, loss, _ in every]
        self.low, self.high = min(losses) - 0.03, max(losses) + 0.05

    def x(self, macs):
        return LEFT + (RIGHT - LEFT) * (macs / self.whole - 0.15) / 0.9

    def y(self, loss):
        return BOTTOM - (BOTTOM - TOP) * (loss - self.low) / (self.high - self.low)

    def drawn(self):
        yield f'<path d="M{LEFT} {TOP} V{BOTTOM} H{RIGHT}" fill="none" stroke="{INK}"/>'
        for share in (25, 50, 75, 100):
            yield text(self.x(self.whole * share / 100), BOTTOM + 18, f"{share} %")
        yield text((LEFT + RIGHT) / 2, BOTTOM + 38, "MACs left")
        for tenth in range(int(self.low * 10) + 1, int(self.high * 10) + 1):
            y = self.y(tenth / 10)
            yield f'<path d="M{LEFT} {r(y)} H{RIGHT}" stroke="#e6e8eb"/>'
            yield text(LEFT - 8, y + 4, f"{tenth / 10:.1f}", ' text-anchor="end"')
        for column, each in self.found.items():
            yield from self.series(column, each)

    def series(self, column, each):
        places = [(self.x(macs), self.y(loss), cut) for macs, loss, cut in each]
        if column in LINES:
            line = " L".join(f"{r(x)} {r(y)}" for x, y, _ in places)
            yield f'<path d="M{line}" fill="none" stroke="{SERIES[column]}" stroke-dasharray="5 3"/>'
        yield from (mark(x, y, cut, SERIES[column]) for x, y, cut in places)


def mark(x, y, cut, colour):
    """A circle; a square where layers left, a rhombus where layers and width did."""
    if cut.startswith("depth"):
        return f'<rect x="{r(x - 4)}" y="{r(y - 4)}" width="8" height="8" fill="{colour}"/>'
    if cut.startswith("a layer"):
        return (
            f'<path d="M{r(x - 6)} {r(y)} L{r(x)} {r(y - 6)} L{r(x + 6)} {r(y)} L{r(x)} {r(y + 6)} Z" fill="{colour}"/>'
        )
    return f'<circle cx="{r(x)}" cy="{r(y)}" r="4.5" fill="{colour}"/>'


def bars(table, found):
    """Seconds of a processor, of the cut in width."""
    rows = {cells[0]: number(cells[table["columns"].index("width")]) for cells in table["rows"]}
    known = [column for column in SERIES if column in found]
    for place, column in enumerate(known):
        y = TOP + 8 + 50 * place
        width = (BARS[1] - BARS[0] - 46) * (rows[column] or 0) / max(rows[one] or 1 for one in known)
        yield text(BARS[0], y, NAMES[column], "")
        yield f'<rect x="{BARS[0]}" y="{y + 8}" width="{r(max(width, 8))}" height="16" fill="{SERIES[column]}"/>'
        yield text(
            BARS[0] + max(width, 8) + 6, y + 21, f"{rows[column]:.0f} s" if rows[column] else "not run in width", ""
        )
    dense = next((number(cells[1]) for cells in table["rows"] if number(cells[1])), 0)
    yield text(BARS[0], TOP + 16 + 50 * len(known), f"the dense model: {dense:.0f} s", "")


def main():
    tables = read(DATA / "regimes.json")["tables"]
    letters, costs = tables[:2]
    found = points(letters)
    if not found:
        sys.exit("regimes_figure.py: the character model has not been run")
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13" fill="{INK}"'
    print(f'<svg xmlns="http://www.w3.org/2000/svg" {box}>')
    print(f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#fff"/>')
    bold = ' font-size="15" font-weight="bold"'
    print(text(20, 28, "Validation loss of pruned character models", bold))
    print(text(20, 48, "lower is better; dashed: the same sizes, trained from nothing", ""))
    for x, cut in ((LEFT + 60, "width"), (LEFT + 160, "depth"), (LEFT + 260, "a layer, then width")):
        print(mark(x, BOTTOM + 58, cut, INK) + text(x + 12, BOTTOM + 62, cut, ""))
    print(text(BARS[0] - 20, 28, "Seconds of a processor", bold))
    print(*Plot(found).drawn(), *bars(costs, found), sep="\n")
    print("</svg>")


if __name__ == "__main__":
    main()
