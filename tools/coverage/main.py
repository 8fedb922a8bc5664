#!/usr/bin/env python3
"""Exports the networks of tools/architectures as ONNX, TorchScript and .pt2, prunes each file by half,
with proof, and writes docs/results/data/coverage.json and its page. What the folder has already is
neither exported nor pruned again, so that an interrupted run can be continued.

    tools/coverage/main.py [OPTION...] [NAME...]     all networks, or these; the page always has all

Exit code: 1 if tools/coverage/reasons.json has no reason for a file that was not pruned or not proven,
of which much is left, or that differs between formats.
"""

import json
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from page import FORMATS, lacks_reason, page  # noqa: E402
from tables.runs import CACHE, COMMAND, DATA, ROOT, parser_of, publish, read  # noqa: E402

HERE = ROOT / "tools" / "coverage"
ZOO = ROOT / "docs" / "results" / "zoo"
LIMIT = 5 * 60  # seconds


def parsed():
    parser = parser_of(__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*")
    parser.add_argument(
        "--folder", type=pathlib.Path, default=CACHE / "coverage", help="of exports and reports"
    )
    parser.add_argument(
        "--python",
        default="/usr/bin/python3",
        metavar="PROGRAM",
        help="a Python whose torch exports ONNX and TorchScript (Debian's)",
    )
    parser.add_argument(
        "--pt2",
        default="python3",
        metavar="PROGRAM",
        help="one whose torch has torch.export, 2.6 or newer; may be several words (python3)",
    )
    parser.add_argument("--command", default=COMMAND, help="build/release/bin/parsimony")
    parser.add_argument("--again", action="store_true", help="prune again what has been pruned")
    parser.add_argument("--threads", default="1", help="for running networks (1)")
    parser.add_argument("--no-page", action="store_true", help="leave docs/results as it is")
    return parser.parse_args()


def export(asked):
    for program, formats in ((asked.python, "onnx,pt"), (asked.pt2, "pt2")):
        subprocess.run([*program.split(), HERE / "export.py", asked.folder, formats, *asked.names], check=True)


class Pruner:
    def __init__(self, asked):
        self.asked, self.folder, self.results = asked, asked.folder, asked.folder / "results"
        self.results.mkdir(parents=True, exist_ok=True)

    def pruned(self, name, form):
        """What became of NAME.FORM; kept in FOLDER/results:

        params, macs: shares left;  proven;  note: why not, or why the file could not be pruned
        """
        kept = self.results / f"{name}.{form}.json"
        again = self.asked.again and name in (self.asked.names or [name])
        if again or not kept.exists():
            kept.write_text(json.dumps(self.run(name, form), indent=1, ensure_ascii=False))
        return read(kept)

    def run(self, name, form):
        fault = self.folder / f"{name}.{form}.fault"
        if fault.exists():
            return {"exported": False, "note": fault.read_text().strip()}
        small, report = self.results / f"small.{form}", self.results / "report.json"
        line = [
            self.asked.command,
            "prune",
            self.folder / f"{name}.{form}",
            "-o",
            small,
            "--ratio",
            "0.5",
            "-q",
        ]
        line += ["--report", report, "--threads", self.asked.threads]
        if form != "pt2":
            for spec in (self.folder / f"{name}.inputs").read_text().split():
                line += ["--input", spec]
        report.unlink(missing_ok=True)
        try:
            done = subprocess.run(
                line, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, timeout=LIMIT
            )
        except subprocess.TimeoutExpired:
            return {"exported": True, "note": f"not done in {LIMIT} s"}
        finally:
            small.unlink(missing_ok=True)
        if done.returncode != 0:
            return {"exported": True, "note": done.stderr.strip() or f"ended with {done.returncode}"}
        return summary(read(report))


def summary(report):
    counts = {key: report[key] for key in ("params", "macs")}
    proof = report["proof"]
    proven = bool(proof["ran"] and proof.get("holds"))
    return {
        "exported": True,
        **{key: count["after"] / max(count["before"], 1) for key, count in counts.items()},
        "counts": counts,
        "proven": proven,
        "note": "" if proven else proof.get("reason", "the proof does not hold"),
        "notes": report["notes"],
        "whole": [f"{whole['axis']}: {whole['reason']}" for whole in report["kept_whole"]],
    }


def torchvision(folder):
    """From the ledgers of tools/zoo, and from the page of torch.export's programs."""
    programs = {row[0]: f"{row[1]}, {row[2]}" for row in read(DATA / "exported.json")["tables"][0]["rows"]}

    def first(name, key):
        paths = (ledger / f"{name}.json" for ledger in (folder / "zoo", ZOO))
        runs = (read(path)["runs"].get(key) for path in paths if path.exists())
        return next(
            (run for run in runs if run and all(run.get(of, {}).get("after") for of in ("params", "macs"))),
            None,
        )

    return [
        {
            "name": name,
            "onnx": first(name, "onnx:half-local"),
            "pt": first(name, "pt:half-local"),
            "pt2": programs.get(name),
        }
        for name in sorted(path.stem for path in ZOO.glob("*.json"))
    ]


def main():
    asked = parsed()
    export(asked)
    pruner, reasons = Pruner(asked), read(HERE / "reasons.json")
    networks = []
    for name, kind in read(asked.folder / "kinds.json").items():
        if (asked.folder / f"{name}.inputs").exists():
            runs = {form: pruner.pruned(name, form) for form in FORMATS}
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
