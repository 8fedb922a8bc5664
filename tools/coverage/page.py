"""The tables of docs/results/coverage.md."""

from tables.cells import left
from tables.measured import table

FORMATS = {"onnx": "ONNX", "pt": "TorchScript", "pt2": ".pt2"}
POINT = 0.01  # what the shares in two formats may differ by without a reason
LARGE = 0.4  # what more is left than has one
COMMAND = "tools/coverage/main.py --pt2 PYTHON     # PYTHON: with torch.export"


def lacks_reason(network):
    """Do the formats differ, is much left, or is something missing, and no reason given?"""
    runs = network["runs"].values()
    good = [run for run in runs if run.get("proven")]

    def apart(key):
        shares = [run[key] for run in good]
        return max(shares) - min(shares) > POINT

    bad = len(good) < len(runs) or apart("params") or apart("macs") or any(run["macs"] > LARGE for run in good)
    return bad and not network["reason"]


def page(networks, torchvision, torch_pruning):
    kinds = dict.fromkeys(network["kind"] for network in networks)
    return {
        "title": "Coverage: architectures and formats",
        "about": f"{len(networks)} architectures, each made small by tools/architectures with the blocks of the "
        "original and random weights, exported as ONNX (opset 17) and TorchScript by PyTorch 1.13 and as .pt2 by "
        "PyTorch 2.14; half of the channels of every group removed; and torchvision's "
        f"{len(torchvision)} networks. {counts(networks)} Cells: parameters left, MACs left; inputs and outputs stay, "
        "and are wide beside such small networks. A reason stands where the formats differ by more than one point, "
        "where more than 40 % of the MACs are left, or where a format is missing.",
        "tables": [*(kind_table(kind, networks) for kind in kinds), torchvision_table(torchvision, torch_pruning)],
    }


def counts(networks):
    runs = [run for network in networks for run in network["runs"].values()]
    exported = sum(run["exported"] for run in runs)
    proven = sum(bool(run.get("proven")) for run in runs)
    missing = len(runs) - exported
    return f"Of {exported} files {proven} are pruned and proven; {missing} PyTorch does not export."


def kind_table(kind, networks):
    def row(network):
        runs = network["runs"]
        size = next((run["counts"]["params"]["before"] for run in runs.values() if "counts" in run), 0)
        return [f"`{network['name']}`", f"{size:,}", *(cell(runs[form]) for form in FORMATS), network["reason"]]

    those = sorted((one for one in networks if one["kind"] == kind), key=lambda one: one["name"])
    columns = ["network", "parameters", *FORMATS.values(), "reason"]
    return table(kind[0].upper() + kind[1:], "", COMMAND, columns, [*map(row, those)])


def cell(run):
    if not run["exported"]:
        return "not exported"
    if not run.get("params"):
        return "refused"
    return f"{100 * run['params']:.1f} %, {100 * run['macs']:.1f} %" + ("" if run["proven"] else ", not proven")


def torchvision_table(networks, theirs):
    def ours(run):
        return f"{left(run['params'])}, {left(run['macs'])}" if run else "–"

    def count(form):
        return sum(bool(network[form]) for network in networks)

    listed = dict.fromkeys(theirs["fails"], "fails") | dict.fromkeys(theirs["prunes"], "prunes") | theirs["shares"]
    rows = [
        [
            f"`{network['name']}`",
            ours(network["onnx"]),
            ours(network["pt"]),
            network["pt2"].replace("%", " %") if network["pt2"] else "–",
            listed.get(network["name"], "–"),
        ]
        for network in networks
    ]
    return table(
        "Torchvision's networks",
        "ONNX from the ledger of [the zoo](zoo.md), which has commit, machine and proof of each; .pt2 from "
        f"[Programs of torch.export](exported.md), for {count('pt2')} of them; TorchScript, which the zoo proves for "
        f"all, by a run of its tool for {count('pt')}. Torch-Pruning: what it publishes at half of the channels "
        f'({theirs["source"]}); "prunes" and "fails" are the lists there, "–" is not listed.',
        [
            "tools/zoo/main.py --ledger FOLDER/zoo --runs pt:half-local NAME...",
            "tools/coverage/main.py --folder FOLDER",
        ],
        "network|ONNX|TorchScript|.pt2|Torch-Pruning",
        rows,
    )
