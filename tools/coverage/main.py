#!/usr/bin/env python3
"""Exports the networks of tools/architectures as ONNX, TorchScript and .pt2, prunes each file by half,
with proof, and writes docs/results/data/coverage.json and its page. What the folder has already is
neither exported nor pruned again, so that an interrupted run can be continued.

    tools/coverage/main.py [OPTION...] [NAME...]     all networks, or these; the page always has all

Exit code: 1 if tools/coverage/reasons.json has no reason for a file that was not pruned or not proven,
of which much is left, or that differs between formats.
"""

import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from page import FORMATS, lacks_reason, page  # noqa: E402
from tables.cells import is_proven  # noqa: E402
from tables.runs import CACHE, COMMAND, DATA, ROOT, finished, inputs_of, once, parser_of, publish, read  # noqa: E402

HERE = ROOT / "tools" / "coverage"
ZOO = ROOT / "docs" / "results" / "zoo"
LIMIT = 5 * 60  # seconds


def parsed():
    parser = parser_of(__doc__)
    add = parser.add_argument
    add("names", metavar="NAME", nargs="*")
    add("--folder", type=pathlib.Path, default=CACHE / "coverage", help="of exports and reports")
    add("--python", metavar="PROGRAM", default=CACHE / "torch/bin/python", help="one with torch (%(default)s)")
    add("--command", default=COMMAND, help="build/release/bin/parsimony")
    add("--again", action="store_true", help="prune again what has been pruned")
    add("--threads", default="1", help="for running networks (1)")
    add("--no-page", action="store_true", help="leave docs/results as it is")
    return parser.parse_args()


def export(asked):
    subprocess.run([asked.python, HERE / "export.py", asked.folder, "onnx,pt,pt2", *asked.names], check=True)


def pruned(asked, name, form):
    """What became of NAME.FORM; kept in FOLDER/results:

    params, macs: shares left;  proven;  note: why not, or why the file could not be pruned
    """
    kept = asked.folder / "results" / f"{name}.{form}.json"
    again = asked.again and name in (asked.names or [name])
    return once(kept, lambda: run(asked, name, form), again)


def run(asked, name, form):
    original = asked.folder / f"{name}.{form}"
    fault = original.with_name(f"{original.name}.fault")
    if fault.exists():
        return {"exported": False, "note": fault.read_text().strip()}
    small, report = (asked.folder / "results" / name for name in (f"small.{form}", "report.json"))
    line = [asked.command, "prune", original, "-o", small, *"--ratio 0.5 -q --report".split(), report]
    line += ["--threads", asked.threads]
    if form != "pt2":
        line += inputs_of((asked.folder / f"{name}.inputs").read_text().split())
    report.unlink(missing_ok=True)
    done = finished(line, LIMIT)
    small.unlink(missing_ok=True)
    if done.returncode is None:
        return {"exported": True, "note": f"not done in {LIMIT} s"}
    if done.returncode != 0:
        return {"exported": True, "note": done.stderr.strip() or f"ended with {done.returncode}"}
    return summary(read(report))


def summary(report):
    counts, proven = {key: report[key] for key in ("params", "macs")}, is_proven(report)
    return {
        "exported": True,
        **{key: count["after"] / max(count["before"], 1) for key, count in counts.items()},
        "counts": counts,
        "proven": proven,
        "note": "" if proven else report["proof"].get("reason", "the proof does not hold"),
        "notes": report["notes"],
        "whole": [f"{whole['axis']}: {whole['reason']}" for whole in report["unpruned_dims"]],
    }


def torchvision(folder):
    """From the ledgers of tools/zoo, and from the page of torch.export's programs."""
    programs = {row[0]: f"{row[1]}, {row[2]}" for row in read(DATA / "exported.json")["tables"][0]["rows"]}

    def first(name, form):
        paths = (ledger / f"{name}.json" for ledger in (folder / "zoo", ZOO))
        runs = (read(path)["runs"].get(f"{form}:half-local") or {} for path in paths if path.exists())
        counted = (run for run in runs if all(run.get(of, {}).get("after") for of in ("params", "macs")))
        return next(counted, None)

    return [
        {"name": name, "pt2": programs.get(name), **{form: first(name, form) for form in ("onnx", "pt")}}
        for name in sorted(path.stem for path in ZOO.glob("*.json"))
    ]


def main():
    asked = parsed()
    export(asked)
    reasons = read(HERE / "reasons.json")
    networks = []
    for name, kind in read(asked.folder / "kinds.json").items():
        if (asked.folder / f"{name}.inputs").exists():
            runs = {form: pruned(asked, name, form) for form in FORMATS}
            networks.append({"name": name, "kind": kind, "runs": runs, "reason": reasons.get(name, "")})
    for network in networks:
        runs = network["runs"]
        if any(run["exported"] and not run.get("proven") for run in runs.values()):
            for form, run in runs.items():
                if run["note"]:
                    print(f"{network['name']}.{form}: {run['note']}")
    unexplained = [network["name"] for network in networks if lacks_reason(network)]
    for name in unexplained:
        print(f"{name}: tools/coverage/reasons.json has no reason")
    if not asked.no_page:
        publish("coverage", page(networks, torchvision(asked.folder), read(HERE / "torch_pruning.json")))
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
