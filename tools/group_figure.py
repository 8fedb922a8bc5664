#!/usr/bin/env python3
"""Draws one group before and after: the weights of the residual block of examples/models/mnist_cnn.onnx
as a plan slices them, the group's channels as stripes.

    parsimony prune examples/models/mnist_cnn.onnx -o small.onnx --ratio 0.5 --plan plan.json
    tools/group_figure.py plan.json > docs/images/group.svg
"""

import json
import pathlib
import sys

GROUP = "g0"
# Name, tensor, extent of the axis that is not the group's.
LAYERS = [
    ("conv", "stem.conv.weight", 1),
    ("conv 1", "block.conv1.weight", 32),
    ("conv 2", "block.conv2.weight", 32),
    ("depthwise", "depthwise.conv.weight", 1),
    ("pointwise", "pointwise.conv.weight", 48),
]
SKIP = 0, 2  # the residual connection: from behind this layer to behind that one
SCALE, GAP = 3.4, 66
HEIGHT, WIDTH = 268, 760
KEPT, REMOVED, INK = "#2f6fde", "#f0a35e", "#30363d"


def r(number):
    return f"{number:.1f}".removesuffix(".0")


def text(x, y, words, style=' text-anchor="middle"'):
    return f'<text x="{r(x)}" y="{r(y)}"{style}>{words}</text>'


class Panel:
    """The weights in a row, before or after. A box is (x, y, width, height)."""

    def __init__(self, group, top, after):
        self.after, self.middle, self.count = after, top + 150, group["kept"] if after else group["size"]
        by_name = {piece["tensor"]: piece for piece in group["slices"]}
        self.slices = [by_name[tensor] for _, tensor, _ in LAYERS]
        self.boxes, x = [], 44
        for piece, (_, _, other) in zip(self.slices, LAYERS):
            along = SCALE * (len(piece["keep"]) if after else piece["size"])
            across = max(SCALE * other, 16)
            width, height = (across, along) if piece["axis"] == 0 else (along, across)
            self.boxes.append((x, self.middle - height / 2, width, height))
            x += width + GAP

    def drawn(self):
        return [*(self.weight(i) for i in range(len(LAYERS))), *self.arrows(), *self.skip()]

    def weight(self, layer):
        """Rows are outputs, columns inputs; a stripe for each channel of the group."""
        piece, (x, y, width, height) = self.slices[layer], self.boxes[layer]
        kept, rows = set(piece["keep"]), piece["axis"] == 0
        w, h = (width, SCALE - 0.7) if rows else (SCALE - 0.7, height)
        shown = [i for i in range(piece["size"]) if not self.after or i in kept]
        stripes = []
        for place, index in enumerate(shown):
            dx, dy = (0, place * SCALE) if rows else (place * SCALE, 0)
            fill = KEPT if index in kept else REMOVED
            box = f'x="{r(x + dx)}" y="{r(y + dy)}" width="{r(w)}" height="{r(h)}"'
            stripes.append(f'<rect {box} fill="{fill}"/>')
        return "".join(stripes) + text(x + width / 2, y + height + 18, LAYERS[layer][0])

    def ends(self):
        return [x + width for x, _, width, _ in self.boxes]

    def arrows(self):
        ends, begins = self.ends(), [x for x, *_ in self.boxes]
        for i, (piece, end) in enumerate(zip(self.slices, ends)):
            to = begins[i + 1] - 6 if i + 1 < len(begins) else end + 40
            count = ""
            if piece["axis"] == 0:  # what it makes are the group's channels
                x = (end + to) / 2 + (10 if i == SKIP[1] else 0)
                count = text(x, self.middle - 8, self.count, f' text-anchor="middle" fill="{KEPT}"')
            yield arrow(end + 6, to, self.middle) + count

    def skip(self):
        start, to = (self.ends()[layer] + 16 for layer in SKIP)
        y = self.middle
        yield f'<path d="M{r(start)} {y} V{y - 96} H{r(to)} V{y}" fill="none" stroke="{INK}"/>'
        yield f'<circle cx="{r(to)}" cy="{y}" r="8" fill="#fff" stroke="{INK}"/>' + text(to, y + 5, "+")


def arrow(start, to, y):
    head = f"M{r(to - 6)} {y - 4} L{r(to)} {y} L{r(to - 6)} {y + 4}"
    return f'<path d="M{r(start)} {y} H{r(to)} {head}" fill="none" stroke="{INK}"/>'


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: group_figure.py PLAN.json")
    groups = json.loads(pathlib.Path(sys.argv[1]).read_text())["groups"]
    group = next(group for group in groups if group["id"] == GROUP)
    size, kept = group["size"], group["kept"]
    titles = [
        f"Before: group {GROUP} has {size} channels, and {size - kept} are to go (orange)",
        f"After: {kept} channels, removed from every weight that produces or reads them",
    ]
    box = f'viewBox="0 0 {WIDTH} {2 * HEIGHT}" font-family="sans-serif" font-size="13" fill="{INK}"'
    print(f'<svg xmlns="http://www.w3.org/2000/svg" {box}>')
    print(f'<rect width="{WIDTH}" height="{2 * HEIGHT}" rx="8" fill="#fff"/>')
    for after, title in enumerate(titles):
        top = after * HEIGHT
        print(text(20, top + 28, title, ' font-size="15" font-weight="bold"'))
        print(*Panel(group, top, after).drawn(), sep="\n")
    print("</svg>")


if __name__ == "__main__":
    main()
