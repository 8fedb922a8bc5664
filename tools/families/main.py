#!/usr/bin/env python3
"""Takes one network of each family of timm and transformers, as PyPI has them, with random weights; prunes half of all
channels from its .pt2 and its ONNX file, with proof, and lets Torch-Pruning and onnxsim do the same; writes
docs/results/data/families.json and its page. What is in the folder is not run again.

    tools/families/main.py FOLDER [OPTION...] [NAME...]     all networks, or these

Python needs torch, torchvision, timm, transformers, onnxscript, onnxruntime, torch-pruning and onnxsim.
"""

import concurrent.futures
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from families.page import page  # noqa: E402
from families.steps import step  # noqa: E402
from tables.cells import is_proven  # noqa: E402
from tables.runs import COMMAND, finished, once, parser_of, publish, read  # noqa: E402

PACKAGES = ("timm", "transformers")
FORMATS = ("pt2", "onnx")
RIVALS = ("torch_pruning", "onnxsim")
LIMIT = 120  # seconds for each step
THEIRS = 60  # for what another tool does


def parsed():
    parser = parser_of(__doc__)
    add = parser.add_argument
    add("folder", type=pathlib.Path)
    add("names", metavar="NAME", nargs="*")
    add("--command", default=COMMAND, help="build/release/bin/parsimony")
    add("--tools", default=",".join(RIVALS), help="others to run, too (%(default)s)")
    add("--packages", default=",".join(PACKAGES), help="(%(default)s)")
    add("--again", action="store_true", help="prune again what has been pruned; not what others did")
    add("--jobs", type=int, default=1, help="networks at a time (1)")
    add("--no-page", action="store_true", help="leave docs/results as it is")
    return parser.parse_args()


def pruned(asked, name, form):
    """What Parsimony makes of FOLDER/NAME.FORMAT."""
    file = asked.folder / f"{name}.{form}"
    small, report = (asked.folder / f"{name}.{form}.{kind}" for kind in ("small", "report.json"))
    line = [asked.command, "prune", file, "-o", small, "--force", "-q", *"--ratio 0.5 --threads 1 --report".split()]
    report.unlink(missing_ok=True)
    done = finished([*line, report], LIMIT)
    small.unlink(missing_ok=True)
    if done.returncode != 0 or not report.exists():
        late = done.returncode is None
        said = f"not done in {LIMIT} s" if late else done.stderr.strip()[-300:]
        crashed = late or done.returncode < 0
        return {"result": "crashed" if crashed else "refused", "why": said or f"ended with {done.returncode}"}
    found = read(report)
    proof = found["proof"]
    result = "equal" if is_proven(found) else "different" if proof["ran"] else "not proven"
    if not found["groups"]:
        result = "whole"
    share = lambda what: found[what]["after"] / max(1, found[what]["before"])
    return {
        "result": result,
        "why": "" if result == "equal" else proof.get("reason", ""),
        "params": share("params"),
        "macs": share("macs"),
        "seconds": sum(found["timings"].values()),
        "whole": [f"{whole['axis']}: {whole['reason']}" for whole in found["unpruned_dims"]],
    }


def row(asked, name):
    """All that is known of a network; kept, step by step, in FOLDER/results."""
    kept = lambda what, make, again=False: once(asked.folder / "results" / f"{name}.{what}.json", make, again)
    exports = kept("export", lambda: step("export", asked.folder, name, limit=LIMIT))
    found = {"name": name, "exports": exports, "runs": {}}
    if "not made" in exports or "result" in exports:
        return found
    for form in FORMATS:
        if not isinstance(exports[form], str):
            found["runs"][form] = kept(form, lambda: pruned(asked, name, form), asked.again)
    for tool in filter(None, asked.tools.split(",")):
        if tool == "torch_pruning" or not isinstance(exports["onnx"], str):
            found["runs"][tool] = kept(tool, lambda: step(tool, asked.folder, name, limit=THEIRS))
    shown = "  ".join(f"{what} {shortly(run)}" for what, run in found["runs"].items())
    print(f"{name}: {shown}", flush=True)
    return found


def families_of(package):
    names = step(f"families_of_{package}")
    if isinstance(names, dict):
        sys.exit(f"{package}: {names['why']}")
    return names


def shortly(run):
    return run["result"] + (f" {100 * run['params']:.1f} %" if "params" in run else f" ({run.get('why', '')[:120]})")


def main():
    asked = parsed()
    (asked.folder / "results").mkdir(parents=True, exist_ok=True)
    versions = step("versions")
    rows = {}
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        for package in asked.packages.split(","):
            names = once(asked.folder / f"{package}.json", lambda: families_of(package))
            chosen = [name for name in names if not asked.names or name in asked.names]
            rows[package] = list(pool.map(lambda name: row(asked, name), chosen))
    if not asked.no_page and not asked.names:
        publish("families", page(rows, versions, (LIMIT, THEIRS)))


if __name__ == "__main__":
    main()
