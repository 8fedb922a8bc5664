#!/usr/bin/env python3
"""Prunes torchvision's networks, from ONNX and from TorchScript, verifies each, and writes
docs/results/zoo.md. Networks are exported one at a time into a cache and removed again; results are
kept in a ledger beside the page, so that an interrupted run can be continued and the page always has
every result.

Needs the PyTorch of tools/setup.sh. Exit code: 1 if any failed, 77 without it.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

TOOLS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TOOLS))
from run import Job, largest_difference, run_recipe  # noqa: E402
from tables.cells import digits, milliseconds  # noqa: E402
from tables.measured import measured  # noqa: E402
from tables.runs import CACHE, COMMAND, ROOT, finished, parser_of, read  # noqa: E402

PYTHON = CACHE / "torch/bin/python"
NO_TORCH = 77
EXPORTER = ROOT / "tests/models/export.py"
RUNS = "onnx:half-local,onnx:third-global,pt:half-local,pt:third-global"


def parsed():
    parser = parser_of(__doc__)
    add = parser.add_argument
    add("names", metavar="NAME", nargs="*", help="these networks in place of all")
    add("--kind", help="only classification, segmentation, detection, video or optical_flow")
    add("--runs", metavar="RUN,...", default=RUNS, help="of %(default)s")
    add("--again", action="store_true", help="forget what the ledger has of these")
    add("--keep", action="store_true", help="keep the exported networks")
    add("--threads", metavar="N", type=int, default=2, help="for running networks (%(default)s)")
    add("--command", metavar="PATH", default=COMMAND)
    folder = {"metavar": "FOLDER", "type": pathlib.Path}
    add("--cache", **folder, default=CACHE / "zoo", help="where exports lie")
    add("--ledger", **folder, default=ROOT / "docs/results/zoo", help="where results lie")
    add("--no-page", action="store_true", help="leave docs/results/zoo.md as it is")
    return parser.parse_args()


def main():
    asked = parsed()
    kinds = listed()
    if unknown := [name for name in asked.names if name not in kinds]:
        print(f"zoo: torchvision has no {', '.join(unknown)}", file=sys.stderr)
        return 2
    asked.ledger.mkdir(parents=True, exist_ok=True)
    chosen = asked.names or [name for name, kind in kinds.items() if asked.kind in (None, kind)]
    results = [result for name in chosen for result in run_one(asked, name)]
    if not asked.no_page:
        subprocess.run([sys.executable, TOOLS / "results.py"], check=True)
    return 1 if any(result["status"] == "FAILED" for result in results) else 0


def listed():
    """{name: kind} of torchvision's networks."""
    try:
        done = finished([PYTHON, EXPORTER, "--list"])
    except OSError:
        done = subprocess.CompletedProcess([], NO_TORCH)
    if done.returncode != 0:
        missing = "zoo: there is no torchvision: run tools/setup.sh"
        print(missing if done.returncode == NO_TORCH else done.stderr, file=sys.stderr)
        sys.exit(done.returncode)
    return dict(line.split("\t")[:2] for line in done.stdout.splitlines())


def run_one(asked, name):
    """The runs that the ledger lacks, for one network. Returns what all of those asked for gave."""
    path = asked.ledger / f"{name}.json"
    entry = read(path) if path.exists() and not asked.again else {"runs": {}}
    runs = asked.runs.split(",")
    missing = [run for run in runs if run not in entry["runs"]]
    folder = asked.cache / "models" / name
    try:
        if missing:
            entry["about"] = exported(name, folder, asked.threads)
        for run in missing:
            if entry["about"]["errors"].get(run.split(":")[0]):
                continue
            add(asked, entry, name, folder, run)
            # Where what remains changes with what is removed, the masked original is another question.
            if run == "onnx:half-local" and entry["runs"][run]["status"] == "mixes":
                add(asked, entry, name, folder, "onnx:half-exact")
    finally:
        if missing and not asked.keep:
            shutil.rmtree(folder, ignore_errors=True)
    return [entry["runs"][run] for run in runs if run in entry["runs"]]


def add(asked, entry, name, folder, run):
    form, recipe = run.split(":")
    original = folder / f"{name}.{form}"
    result = run_recipe(Job(asked.command, original, entry["about"]["inputs"], recipe, asked.threads))
    entry["runs"][run] = {**result, "measured": measured()}
    write(asked.ledger / f"{name}.json", entry)
    if "error" in result:
        facts = result["error"]
    else:
        facts = f"{digits(largest_difference(result))} {milliseconds(result['seconds'])}"
    print("\t".join((name, run, result["status"], facts)), flush=True)


def exported(name, folder, threads):
    description = folder / f"{name}.json"
    if not description.exists():
        environ = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        done = finished([PYTHON, EXPORTER, name, folder], env=environ)
        if done.returncode != 0:
            raise RuntimeError(f"{name} was not exported: {done.stderr}")
    about = read(description)
    forms = {"onnx": "onnx", "torchscript": "pt"}
    errors = {forms[form]: error for form, error in about["errors"].items() if form in forms}
    return {**about, "errors": errors}


def write(path, entry):
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps(entry, indent=1, ensure_ascii=False) + "\n")
    part.rename(path)


if __name__ == "__main__":
    sys.exit(main())
