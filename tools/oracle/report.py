"""What a person reads, and what a program reads."""

import collections
import json
import math
import pathlib


def number(value):
    return "-" if value is None else f"{value:.1e}" if math.isfinite(value) else "infinite"


def counted(count, word):
    return f"{count} {word}" + ("" if count == 1 else "s")


def comparison_text(result):
    columns = ("difference", "tolerance", "noise", "signal")
    rows = [
        [one["name"], one["type"], str(one["shape"]), *(number(one.get(column)) for column in columns)]
        for one in result["outputs"]
    ]
    tensors = result["tensors"]
    beyond = (one for one in result["outputs"] if one["difference"] > one["tolerance"] and "at" in one)
    return text_of(
        result,
        ["output", "type", "shape", *columns],
        rows,
        *(f"{one['name']}, element {one['at']}: found {one['found']}, expected {one['expected']}" for one in beyond),
        f"tensors: {tensors['sliced']} sliced, {tensors['as_planned']} as planned, "
        f"{len(tensors['absent'])} under another name, {len(tensors['wrong'])} wrong",
        *(f"note: {note}" for note in result["notes"]),
        f"{result['verdict']}: largest relative difference {number(result['difference'])}, "
        f"tolerance {number(result['tolerance'])}, {probes_text(result)}",
    )


def smoke_text(result):
    rows = [
        [one["name"], one["type"], str(one["shape"]), "yes" if one["finite"] else "NO", number(one["signal"])]
        for one in result["outputs"]
    ]
    last = f"{result['verdict']}: {result['model']}, {probes_text(result)}"
    return text_of(result, ["output", "type", "shape", "finite", "signal"], rows, last)


def text_of(result, head, rows, *more):
    inputs = [f"input {one['name']} {one['type']} {one['shape']}" for one in result["inputs"]]
    return "\n".join([*inputs, *table(head, rows), *more])


def row_text(result):
    """One row of a batch: `exact 2.1e-07 1.0e-04 small.onnx`."""
    marks = "; ".join(["degenerate"] * result["degenerate"] + result["notes"])
    difference, tolerance = number(result["difference"]), number(result["tolerance"])
    name = pathlib.Path(result["small"]).name
    return f"{result['verdict']:9}  {difference:>9}  {tolerance:>9}  {name}  {marks}".rstrip()


def summary_text(results):
    counts = collections.Counter(result["verdict"] for result in results)
    parts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return f"{counted(len(results), 'model')}: {parts}"


def as_json(result):
    """One line; JSON knows no infinity, null stands for it."""
    return json.dumps(json.loads(json.dumps(result), parse_constant=lambda _: None), ensure_ascii=False)


def probes_text(result):
    batches = result["batches"]
    sizes = f" (batch {' and '.join(map(str, batches))})" if len(batches) > 1 else ""
    return f"{counted(result['probes'], 'probe')}{sizes}, seed {result['seed']}"


def table(head, rows):
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in [head, *rows]]
