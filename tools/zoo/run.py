"""One run: a file pruned by one recipe, proven by the command itself, and compared by ONNX Runtime."""

import dataclasses
import json
import pathlib
import shutil
import subprocess
import sys

from tables.cells import pruned_groups, reasons_of, seconds_between
from tables.runs import finished, inputs_of, read

ORACLE = pathlib.Path(__file__).resolve().parents[1] / "ort_compare.py"
# A session made from bytes, as the oracle makes them, cannot have more.
ORACLE_BYTES = 2**31 - 1
# The least of these is the time: other programs of the machine only add to it.
TIMED_RUNS = 3
LIMIT = 20 * 60  # seconds
SHOWN = 2000  # characters of what went wrong

# What is asked of every network; the last where only some have it.
RECIPES = {
    "half-local": ["--ratio", "0.5"],
    "third-global": ["--ratio", "0.3", "--scope", "global"],
    "half-exact": ["--ratio", "0.5", "--exact-only"],
}


@dataclasses.dataclass
class Job:
    command: str
    original: pathlib.Path  # in a folder of its own
    inputs: list
    recipe: str
    threads: int


def run_recipe(job):
    """Returns what the ledger keeps of a run:

    status      'exact' (the masked original), 'mixes' (the original with the removed channels absent),
                'whole' (nothing to remove), or 'FAILED'
    error       of FAILED: what was said
    params, macs {before, after};  seconds: between read and write, without the proof
    choices     how many operands of choosing nodes (TopK, comparisons) the small network had to take
                from the original, for a last bit decides there
    groups, pruned: counts;  mixing: how many of the pruned pass a mixing operator
    proof, oracle {difference, tolerance}: the command's own and ONNX Runtime's, where they can run
                the network; one of them must. The oracle has choices of its own
    kept        [[reason, dimensions]]
    """
    folder = job.original.parent / "out"
    folder.mkdir(parents=True, exist_ok=True)
    suffix = ".onnx" if job.original.suffix == ".onnx" else ".pt"
    small, plan, report = folder / f"small{suffix}", folder / "plan.json", folder / "report.json"
    try:
        done = prune(job, small, plan, report)
        if done.returncode != 0:
            said = done.stdout.strip() or f"exit code {done.returncode}"
            return {"status": "FAILED", "error": said[:SHOWN] if done.returncode else f"not done in {LIMIT} s"}
        result = summary(read(report))
        for _ in range(1, TIMED_RUNS):
            prune(job, small, plan, report, ["--no-verify"])
            result["seconds"] = min(result["seconds"], seconds_between(read(report)))
        if suffix == ".onnx" and result["status"] != "whole":
            judge(job, small, plan, result)
        is_proven = "proof" in result or (is_comparable(result) and "oracle" in result)
        if result["status"] != "whole" and not is_proven:
            result = {"error": "; ".join(result["notes"]), **result, "status": "FAILED"}
        return result
    finally:
        shutil.rmtree(folder)


def largest_difference(result):
    """By both engines. ONNX Runtime answers another question where what remains changes with what is
    removed: there only the command's own proof counts."""
    judged = [result.get("proof", {}), result.get("oracle", {}) if is_comparable(result) else {}]
    return max(one.get("difference") or 0 for one in judged)


def is_comparable(result):
    return result["status"] == "exact"


def prune(job, small, plan, report, more=()):
    line = [job.command, "prune", job.original, "-o", small, "--criterion", "l1", *RECIPES[job.recipe]]
    line += ["--plan", plan, "--report", report, "--threads", job.threads, "-q", *more]
    return finished([*line, *inputs_of(job.inputs)], LIMIT, stderr=subprocess.STDOUT)


def summary(report):
    pruned = pruned_groups(report)
    mixing = sum(bool(group.get("mixes")) for group in pruned)
    proof = report["proof"]
    choices = proof.get("choices", [])
    measures = proof.get("outputs", []) + choices
    worst = max(measures, key=lambda one: one["difference"] / one["tolerance"], default=None)
    proven = {"proof": {key: worst[key] for key in ("difference", "tolerance")}} if worst else {}
    return {
        "status": "whole" if not pruned else "mixes" if mixing else "exact",
        "params": report["params"],
        "macs": report["macs"],
        "seconds": seconds_between(report),
        "groups": len(report["groups"]),
        "pruned": len(pruned),
        "mixing": mixing,
        "choices": len(choices),
        **proven,
        "kept": [[reason, len(axes)] for reason, axes in reasons_of(report).items()],
        "notes": report["notes"] + proof.get("notes", [f"not proven: {proof.get('reason')}"]),
    }


def judge(job, small, plan, result):
    if bytes_of(job.original) > ORACLE_BYTES:
        return
    # The command's own proof has three inputs; this one has another batch size besides.
    line = [sys.executable, ORACLE, job.original, small, plan, "--json", "--inputs", 1, "--threads", job.threads]
    done = finished([*line, *inputs_of(job.inputs)], LIMIT)
    if not done.stdout.startswith("{"):
        said = done.stderr.strip().splitlines() or [f"not done in {LIMIT} s"]
        result["notes"].append(f"ONNX Runtime: {said[-1]}")
        return
    found = json.loads(done.stdout)
    kept = {key: found[key] for key in ("verdict", "difference", "tolerance")}
    result["oracle"] = {**kept, "choices": len(found["choices"])}
    result["notes"] += found["notes"]
    if found["verdict"] not in ("exact", "mixes"):
        said = "; ".join([found["verdict"], *found["notes"]])
        result.update(status="FAILED", error=f"ONNX Runtime: {said}"[:SHOWN])


def bytes_of(original):
    """The weights of a large network lie in files of their own, named after the tensors."""
    files = (path for path in original.parent.iterdir() if path.is_file())
    return sum(path.stat().st_size for path in files if path.suffix not in (".pt", ".json"))
