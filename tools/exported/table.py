#!/usr/bin/env python3
"""Writes docs/results/data/exported.json and its page from what check.py found with several versions of PyTorch.

    tools/exported/table.py COMMIT MACHINE CHECKED.json ...
"""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from tables.measured import table  # noqa: E402
from tables.runs import publish, read  # noqa: E402


def cell(row):
    if row is None:
        return "\u2013"
    if "fault" in row:
        return "fails"
    masked = "mixes" if row["mixes"] else f"{row['masked']:.0e}"
    runtime = "\u2013" if row["runtime"] is None else f"{row['runtime']:.0e}"
    return f"{masked}, {runtime}"


def main():
    commit, machine, *paths = sys.argv[1:]
    found = [*map(read, paths)]
    versions = [one["torch"].split("+")[0] for one in found]
    rows = []
    for name in sorted(set().union(*(one["networks"] for one in found))):
        results = [one["networks"].get(name) for one in found]
        sizes = next((row for row in results if row and "params" in row), {"params": 1, "macs": 1})
        rows.append([name, f"{sizes['params']:.1%}", f"{sizes['macs']:.1%}", *map(cell, results)])
    good = [sum(row["equal"] for row in one["networks"].values()) for one in found]
    counts = ", ".join(
        f"{n} of {len(one['networks'])} with PyTorch {version}" for n, one, version in zip(good, found, versions)
    )
    unproven = sorted({name for one in found for name, row in one["networks"].items() if not row.get("proven")})
    title = "Programs of torch.export"
    programs = table(
        title,
        "Random weights, half of the channels removed, proven by the command except for "
        f"{' and '.join(unproven) or 'none'}. The small file is loaded and "
        "run by the PyTorch that exported the network. Differences by the largest output: from the original of which "
        "the removed channels are masked, and from ONNX Runtime on the small network exported again. \"mixes\": a "
        "masked channel does not stay zero there (normalisations over several dimensions, mixed tokens), so that "
        f"masking is no reference. Equal to 1e-5: {counts}.",
        [
            "tools/exported/export.py FOLDER            # in each PyTorch",
            "tools/exported/prune.sh FOLDER SMALL",
            "tools/exported/check.py FOLDER SMALL       # in each PyTorch",
        ],
        ["network", "parameters left", "MACs left", *(f"PyTorch {version}" for version in versions)],
        rows,
        commit=commit,
        machine=machine,
    )
    publish("exported", {"title": title, "tables": [programs]})


main()
