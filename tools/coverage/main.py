#!/usr/bin/env python3
"""Exports the networks of tools/architectures in every format, prunes each file by half, with proof, compares the
formats as tools/exported/formats.py does, and writes docs/results/data/coverage.json and its page. What the folder has
already is neither exported nor pruned again, so that an interrupted run can be continued.

    tools/coverage/main.py [OPTION...] [NAME...]     all networks, or these; the page always has all

Python needs torch 2.15, onnxscript and what tools/exported needs. Exit code: 1 if formats differ for which formats.py
has no reason, or if much is left of a network without a reason in tools/coverage/reasons.json.
"""

import pathlib
import sys
import warnings

import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from architectures import NETWORKS  # noqa: E402
from architectures.weights import network  # noqa: E402
from page import LARGE, page  # noqa: E402
from exported.formats import REASONS, differences, left, measured  # noqa: E402
from tables.runs import CACHE, COMMAND, DATA, ROOT, once, parser_of, publish, read  # noqa: E402

HERE = ROOT / "tools" / "coverage"
ZOO = ROOT / "docs" / "results" / "zoo"


def parsed():
    parser = parser_of(__doc__)
    add = parser.add_argument
    add("names", metavar="NAME", nargs="*")
    add("--folder", type=pathlib.Path, default=CACHE / "coverage", help="of exports and reports")
    add("--command", default=COMMAND, help="build/release/bin/parsimony")
    add("--again", action="store_true", help="export and prune again what has been pruned")
    add("--no-page", action="store_true", help="leave docs/results as it is")
    return parser.parse_args()


def kept(asked, name):
    """What became of the network: `runs`, by format, and `faults`, what PyTorch says of formats that it has not."""

    def run():
        module, inputs = network(name)
        runs, faults = measured(name, module, inputs, None, asked.folder, asked.command)
        return {"runs": runs, "faults": faults}

    return once(asked.folder / "results" / f"{name}.json", run, asked.again and name in (asked.names or NETWORKS))


def reason(name, runs, large):
    """Why formats are left out of the comparison, and why much is left."""
    texts = [large.get(name), *(REASONS.get(name, {})[form] for form in runs if form in REASONS.get(name, {}))]
    return "; ".join(dict.fromkeys(filter(None, texts)))


def torchvision():
    """From the ledgers of tools/zoo, and from the page of torch.export's programs."""
    programs = {row[0]: f"{row[1]}, {row[2]}" for row in read(DATA / "exported.json")["tables"][0]["rows"]}

    def ledger(name):
        run = read(ZOO / f"{name}.json")["runs"].get("onnx:half-local") or {}
        return run if all(run.get(of, {}).get("after") for of in ("params", "macs")) else None

    names = sorted(path.stem for path in ZOO.glob("*.json"))
    return [{"name": name, "pt2": programs.get(name), "onnx": ledger(name)} for name in names]


def main():
    asked = parsed()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    large = read(HERE / "reasons.json")
    networks, unexplained = [], 0
    for name, (kind, _, _) in NETWORKS.items():
        if asked.names and asked.no_page and name not in asked.names:
            continue
        found = kept(asked, name)
        faults = differences(name, found["runs"])
        expected = REASONS.get(name, {})
        shares = [left(run, "macs") for form, run in found["runs"].items() if "macs" in run and form not in expected]
        if name not in large and max(shares, default=0) > LARGE:
            faults.append("much is left, and tools/coverage/reasons.json does not say why")
        for fault in faults:
            print(f"{name}: {fault}")
        unexplained += bool(faults)
        networks.append({"name": name, "kind": kind, "reason": reason(name, found["runs"], large), **found})
    if not asked.no_page:
        publish("coverage", page(networks, torchvision(), read(HERE / "torch_pruning.json")))
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
