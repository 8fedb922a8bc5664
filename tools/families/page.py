"""The tables of docs/results/families.md."""

import re
import statistics

from tables.measured import table

COMMAND = "tools/families/main.py FOLDER"
COLUMNS = {
    "pt2": "Parsimony, .pt2",
    "onnx": "Parsimony, ONNX",
    "torch_pruning": "Torch-Pruning, module",
    "onnxsim": "onnxsim, ONNX",
}
RESULTS = {
    "equal": "pruned and equal",
    "different": "pruned and different",
    "not proven": "pruned, not proven",
    "not judged": "pruned, not known again",
    "whole": "nothing that can shrink",
    "refused": "refused",
    "crashed": "crashed or not done in time",
}


def page(rows, versions, limits):
    """`rows`: by package, what main.row says of each network; `limits`: in seconds."""
    made = {package: [row for row in found if row["runs"]] for package, found in rows.items()}
    return {
        "title": "Families: timm and transformers",
        "about": "One network of each family that PyPI's packages have, chosen by tools/families: of timm the one of "
        "fewest parameters of each module, with the image that it is made for; of transformers one class of each "
        "kind of model, two layers of width 64. Random weights. Half of the channels of every group removed, from "
        "the file of torch.export and from that of torch.onnx.export(dynamo=True), and by others as their examples "
        "do it. Parsimony's results are judged by its own proof, which refuses what does not compute the same; "
        "those of others by the original with zeros where weights have gone, and normalisations of channels over "
        f"those that are left. A step may take {limits[0]} s, another tool's {limits[1]} s. {known(versions)}",
        "tables": [
            *(summary(package, rows[package]) for package in made),
            *(networks(package, found) for package, found in made.items()),
        ],
    }


def known(versions):
    return ", ".join(f"{name} {version}" for name, version in versions.items()) + "."


def ran(rows, tool):
    return [row["runs"][tool] for row in rows if tool in row["runs"]]


def summary(package, rows):
    missing = [row for row in rows if not row["runs"]]
    unexported = {form: sum(form not in row["runs"] for row in rows if row["runs"]) for form in ("pt2", "onnx")}

    def line(name, value):
        return [name, *(value(ran(rows, tool)) for tool in COLUMNS)]

    def count(result):
        return lambda runs: str(sum(run["result"] == result for run in runs)) if runs else "–"

    def middle(key, form):
        def value(runs):
            numbers = [run[key] for run in runs if key in run]
            return form(statistics.median(numbers)) if numbers else "–"

        return value

    lines = [line("networks", lambda runs: str(len(runs)))]
    lines += [line(words, count(result)) for result, words in RESULTS.items()]
    lines.append(line("parameters left, median", middle("params", lambda x: f"{100 * x:.1f} %")))
    lines.append(line("seconds, median", middle("seconds", lambda x: f"{x:.2f}")))
    about = (
        f"Of {len(rows)} families {len(missing)} were not made: they need a package, or have no small configuration "
        f"that this script finds. PyTorch exports all but {unexported['pt2']} as .pt2 and all but "
        f"{unexported['onnx']} as ONNX. Parsimony's time includes reading, proof and writing, one thread."
    )
    return table(f"{package}: summary", about, COMMAND, ["", *COLUMNS.values()], lines)


def networks(package, rows):
    lines = [[f"`{row['name']}`", *(cell(row["runs"].get(tool)) for tool in COLUMNS), why(row)] for row in rows]
    columns = ["network", *COLUMNS.values(), "reason"]
    about = "Parameters left, where pruned and equal. The reason is that of Parsimony's files, where one is not."
    return table(package, about, COMMAND, columns, lines)


def cell(run):
    if run is None:
        return "–"
    return f"{100 * run['params']:.1f} %" if run["result"] == "equal" else run["result"]


def why(row):
    """What Parsimony says of a file that is not pruned and equal; PyTorch, of one that it does not export."""
    said = [row["runs"][form].get("why", "") for form in ("pt2", "onnx") if form in row["runs"]]
    said += [f"{form}: {row['exports'][form]}" for form in ("pt2", "onnx") if isinstance(row["exports"][form], str)]
    text = " ".join(dict.fromkeys(filter(None, said))).replace("|", "/")
    return re.sub(r"\x1b?\[\d+m", "", text)[:200]  # without the colours of a terminal
