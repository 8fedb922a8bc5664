"""The tables of docs/results/coverage.md."""

from exported.formats import FORMATS, left as share
from tables.cells import left
from tables.measured import table

LARGE = 0.4  # of the multiply-adds: what is more has a reason
COMMAND = "tools/coverage/main.py"


def page(networks, torchvision, torch_pruning):
    kinds = dict.fromkeys(network["kind"] for network in networks)
    return {
        "title": "Coverage: architectures and formats",
        "about": f"{len(networks)} architectures, each made small by tools/architectures with the blocks of the "
        "original and random weights, exported by PyTorch 2.15: by torch.export, before and after "
        "`run_decompositions()`, by torch.onnx (`dynamo=True`), optimised and not, and as a trace; half of the channels "
        f"of every group removed; and torchvision's {len(torchvision)} networks. {counts(networks)} Cells: parameters "
        "left, MACs left; inputs and outputs stay, and are wide beside such small networks. A reason stands where a "
        "format differs by more than half a point, or where more than 40 % of the MACs are left.",
        "tables": [*(kind_table(kind, networks) for kind in kinds), torchvision_table(torchvision, torch_pruning)],
    }


def counts(networks):
    runs = [run for network in networks for run in network["runs"].values()]
    proven = sum(run["proven"] for run in runs)
    missing = sum(len(network["faults"]) for network in networks)
    return f"Of {len(runs)} files {proven} are pruned and proven; {missing} PyTorch does not export."


def kind_table(kind, networks):
    def row(network):
        runs = network["runs"]
        size = next((run["params"]["before"] for run in runs.values() if "params" in run), 0)
        cells = (cell(runs.get(form)) for form in FORMATS)
        return [f"`{network['name']}`", f"{size:,}", *cells, network["reason"]]

    those = sorted((one for one in networks if one["kind"] == kind), key=lambda one: one["name"])
    columns = ["network", "parameters", *FORMATS.values(), "reason"]
    return table(kind[0].upper() + kind[1:], "", COMMAND, columns, [*map(row, those)])


def cell(run):
    if run is None:
        return "not exported"
    if "params" not in run:
        return "refused"
    shares = ", ".join(f"{100 * share(run, what):.1f} %" for what in ("params", "macs"))
    return shares if run["proven"] else f"{shares}, not proven"


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
            network["pt2"].replace("%", " %") if network["pt2"] else "–",
            listed.get(network["name"], "–"),
        ]
        for network in networks
    ]
    return table(
        "Torchvision's networks",
        "ONNX from the ledger of [the zoo](zoo.md), which has commit, machine and proof of each; .pt2 from "
        f"[Programs of torch.export](exported.md), for {count('pt2')} of them. Torch-Pruning: what it publishes at half "
        "of the channels "
        f'({theirs["source"]}); "prunes" and "fails" are the lists there, "–" is not listed.',
        COMMAND,
        "network|ONNX|.pt2|Torch-Pruning",
        rows,
    )
