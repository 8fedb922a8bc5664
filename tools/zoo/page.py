"""docs/results/zoo.md from the ledger; written by ../results.py."""

import re

from tables.cells import digits, left, milliseconds, significant, table_row

from .run import largest_difference

RUNS = {
    "onnx:half-local": "ONNX, 50 % of each group",
    "onnx:third-global": "ONNX, 30 % of all channels together",
    "pt:half-local": "TorchScript, 50 % of each group",
    "pt:third-global": "TorchScript, 30 % of all channels together",
}
FORMATS = {"onnx": "ONNX", "pt": "TorchScript"}
SHOWN_ERROR = 160

KINDS = ("classification", "segmentation", "detection", "video", "optical_flow")
WORDS = {"mixes": "exact\\*", "whole": "not pruned", "FAILED": "**failed**"}


def page(networks):
    """networks: [{name, kind, measured, about, runs}], runs as run_recipe() gives them."""
    ran = [network for network in networks if network["runs"]]
    kinds = [kind for kind in KINDS if any(network["kind"] == kind for network in ran)]
    sections = "\n".join(section(kind, [one for one in ran if one["kind"] == kind]) for kind in kinds)
    return f"""# The zoo: torchvision's networks

torchvision 0.14's networks as Debian's python3-torch exports them, with random weights under which no branch is silent
(`tests/models/weights.py`), pruned by L1 norm from ONNX (opset 16) and from traced TorchScript. Every row names the
date and the commit that recorded it. Machine: {machines(ran)}.

    tools/zoo/main.py             # measures what docs/results/zoo/ lacks
    tools/zoo/main.py resnet18    # one network
    python3 tools/results.py      # writes this page

- **exact**: the small network computes what the original computes with the removed slices set to zero.
- **exact\\***: some groups pass a LayerNorm or a softmax. They are pruned as well, and the small network computes what
  the original computes with the removed channels absent. `--exact-only` does not prune such groups; the column of that name has
  ONNX at 50 % with this option.
- **exact†**: the network sorts or selects, and the last bit of a float decides. The small network was given the
  original's operands to choose from; its own operands and all outputs differ by no more than the figure shown.
- **not pruned**: every dimension is pinned.
- **difference**: the largest relative difference found by the proof on libtorch and, for ONNX files below 2 GB and
  results that are not exact\\*, by ONNX Runtime. 1e-4 is allowed.
- **time**: all stages between read and write except the proof; wall clock, the minimum of three runs; –
  where other work ran beside it.

{summary(networks)}
{sections}
{failures(ran)}
{export_errors(networks)}
## Not pruned, and why

Pinned dimensions of matrices and kernels, by reason: from ONNX at 50 %, otherwise from TorchScript. The first layer is
always tied to the input and the last one to the output; these are not listed.

{lines(filter(None, map(kept_whole, ran)))}
"""


def lines(texts):
    return "\n".join(texts)


def status_of(run):
    if not run:
        return "–"
    chosen = run.get("choices") or run.get("oracle", {}).get("choices")
    return WORDS.get(run["status"], run["status"]) + ("†" if chosen else "")


def occasions(entry):
    """Of each run; earlier ledgers have one for all runs of a network."""
    return [run.get("measured") or entry.get("measured") for run in entry["runs"].values()]


def distinct(texts):
    return "; ".join(dict.fromkeys(texts))


def machines(networks):
    return distinct(occasion["machine"] for network in networks for occasion in occasions(network))


def is_good(run):
    return bool(run) and run["status"] in ("exact", "mixes")


def time_of(run):
    return milliseconds(run["seconds"]) if "seconds" in run else "–"


def summary(networks):
    rows = []
    for key, title in RUNS.items():
        runs = {one["name"]: one["runs"][key] for one in networks if key in one["runs"]}
        if not runs:
            continue
        statuses = [run["status"] for run in runs.values()]
        counts = [len(runs), *map(statuses.count, ("exact", "mixes", "whole", "FAILED"))]
        largest = max([0, *(largest_difference(run) for run in runs.values() if is_good(run))])
        timed = [name for name, run in runs.items() if "seconds" in run]
        slowest = max(timed, key=lambda name: runs[name]["seconds"], default=None)
        time = f"{time_of(runs[slowest])} ({slowest})" if slowest else "–"
        rows.append(table_row([title, *counts, digits(largest), time]))
    return f"""| runs | networks | exact | exact\\* | not pruned | failed | largest difference | slowest |
|---|---|---|---|---|---|---|---|
{lines(rows)}
"""


def section(kind, networks):
    return f"""## {kind.replace("_", " ").capitalize()}

| network | parameters | MACs | ONNX 50 % | left, MACs left | difference | time | only exact | ONNX 30 % global | TorchScript 50 % | difference | time | TorchScript 30 % global | measured |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
{lines(map(network_row, networks))}
"""


def network_row(network):
    onnx, onnx_global, script, script_global = (network["runs"].get(key) for key in RUNS)
    some = next((run for run in (onnx, script, onnx_global, script_global) if run and "params" in run), {})
    exact_only = network["runs"].get("onnx:half-exact")

    def million(key):
        count = (some.get(key) or {}).get("before")
        return f"{significant(count / 1e6, 3)} M" if count else "–"

    def facts(run):
        return [digits(largest_difference(run)), time_of(run)] if is_good(run) else ["–", "–"]

    def counts_left(run):
        return f"{left(run['params'])}, {left(run['macs'])}" if run and "params" in run else "–"

    def of_exact_only(run):
        return f"{status_of(run)}, {left(run['params']) if 'params' in run else ''}"

    cells = [
        f"`{network['name']}`",
        million("params"),
        million("macs"),
        status_of(onnx),
        counts_left(onnx),
        *facts(onnx),
        of_exact_only(exact_only) if exact_only else "",
        status_of(onnx_global),
        status_of(script),
        *facts(script),
        status_of(script_global),
        distinct(f"{one['date']}, `{one['commit']}`" for one in occasions(network)),
    ]
    return table_row(cells)


def failures(networks):
    found = [
        f"- `{one['name']}`, {key}: {' '.join(run['error'].split())[:SHOWN_ERROR]}"
        for one in networks
        for key, run in one["runs"].items()
        if run["status"] == "FAILED"
    ]
    return f"## Failed\n\n{lines(found)}\n" if found else ""


def export_errors(networks):
    found = [
        f"- `{one['name']}`, {FORMATS[form]}: {error[:SHOWN_ERROR]}"
        for one in networks
        for form, error in (one.get("about") or {}).get("errors", {}).items()
        if error
    ]
    return f"## Not exported by torch\n\n{lines(found)}\n" if found else ""


def kept_whole(network):
    runs = (network["runs"].get(key) for key in ("onnx:half-local", "pt:half-local"))
    kept = next((run["kept"] for run in runs if run and "kept" in run), [])
    reasons = [(reason, count) for reason, count in kept if not re.match("graph (input|output)", reason)]
    listed = "; ".join(f"{reason} ({count})" for reason, count in reasons)
    return f"- **{network['name']}**: {listed}" if listed else ""
