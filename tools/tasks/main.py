#!/usr/bin/env python3
"""Measures docs/results/data/networks.json: ten trained networks for ten tasks, pruned and recovered
without labels: how far their outputs are from the dense network's on data that recovery never saw, and
what that means for the task.

    tools/tasks/main.py [--networks A,B] [--left 70,50] [--scope local|global] [--minutes M]
      [--folder DIR] [--pictures DIR] PARSIMONY SHARED > docs/results/data/networks.json
    tools/results.py

SHARED has models/onnx and data. Needs espeak-ng, and for pictures python-matplotlib-data and
python3-skimage. What is measured once stays in the folder and is not measured again.
"""

import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import environment  # noqa: E402, F401
from tables import cells  # noqa: E402
from tables.measured import as_data, measured, table  # noqa: E402
from tables.runs import once, read  # noqa: E402
from task import ALL, Task, parser_of_tasks  # noqa: E402

STEPS = ("plain cut", "cut", "least squares", "outputs")


def parsed():
    parser = parser_of_tasks(__doc__)
    parser.add_argument("--left", default="70,50")
    parser.add_argument("--scope", default="local")
    parser.add_argument("--minutes", default="10")
    parser.add_argument("--pictures", type=pathlib.Path)
    return parser.parse_args()


def main():
    asked = parsed()
    root = asked.folder or tempfile.mkdtemp(prefix="parsimony-tasks-")
    entries, lefts = [], asked.left.split(",")
    for name in asked.networks.split(","):
        task = Task(name, asked.shared, root)
        for left in lefts:
            entries.append(once(task.at(f"{left} {asked.scope}.json"), lambda: entry(asked, task, left)))
        if asked.pictures and task.network.source:
            models = ["dense", *(model_name(asked, lefts[0], step) for step in STEPS)]
            task.draw(asked.pictures / f"{name}.jpg", models)
    tables = [table_of(asked, left, [one for one in entries if one["left"] == left]) for left in lefts]
    print(as_data(data(tables)))


def model_name(asked, left, step):
    return f"{left} {asked.scope} {step}"


def entry(asked, task, left):
    """One network with so many per cent of its MACs left, recovered in each way."""
    result = {"name": task.name, "left": left, "measure": task.network.measure, "steps": {}, **measured()}
    for step in STEPS:
        model = model_name(asked, left, step)
        start = time.time()
        make(asked, task, left, step)
        minutes = (time.time() - start) / 60
        result["steps"][step] = {**task.value(model), "minutes": minutes}
        print(task.name, left, step, json.dumps(result["steps"][step]), file=sys.stderr)
    report = task.at(f"{model_name(asked, left, 'least squares')}.json")
    return {**result, "macs": read(report)["macs"]}


def make(asked, task, left, step):
    """The model of one step, in the task's folder."""
    model = model_name(asked, left, step)
    out = ["-o", task.at(f"{model}.onnx")]
    prune = ["prune", task.model, *out, "--budget", f"macs={left}%"]
    criterion = [] if step == "plain cut" else ["--criterion", "fisher", "--scope", asked.scope]
    if step != "outputs":
        recovery = ["--recover", "least-squares"] if step == "least squares" else []
        report = ["--report", task.at(f"{model}.json")]
        task.run(asked.command, [*prune, *report, *criterion, *recovery], task.samples)
    elif task.network.states:
        # Of what is left of states only the plan of this run knows.
        recovery = ["--recover", "least-squares,outputs", "--recover-minutes", asked.minutes]
        task.run(asked.command, [*prune, *criterion, *recovery, "--recover-epochs", "200"], task.samples)
    else:
        cut = task.at(f"{model_name(asked, left, 'least squares')}.onnx")
        match = ["--teacher", task.model, "--loss", "outputs", "--minutes", asked.minutes, "--epochs", "200"]
        task.run(asked.command, ["finetune", cut, *out, *match], task.all)


def data(tables):
    return {
        "title": "Networks and their tasks",
        "about": "Networks from the repositories of others, pruned and recovered without labels: from "
        "photographs (BSDS500), from speech that espeak-ng speaks (with noise), from files of the system. All "
        "numbers are of test data that recovery did not see: other photographs, other voices and sentences, other "
        "files. Output error is ‖small − dense‖ / ‖dense‖; networks with states run over the whole test sound, "
        "each with its own states.",
        "tables": tables,
    }


def table_of(asked, left, rows):
    chosen = "" if asked.networks == ALL else f" --networks {asked.networks}"
    options = f"--scope {asked.scope} --minutes {asked.minutes} --left {asked.left}{chosen}"
    ranked = "over the whole network" if asked.scope == "global" else "within each group"
    return table(
        f"{left} % of the multiply-adds",
        "Plain: `prune` without options but the budget. The others choose channels by the criterion "
        f"`fisher`, ranked {ranked}. In parentheses: times smaller than after the plain cut. `outputs` is least "
        f"squares and then at most {asked.minutes} minutes of matching the dense network's outputs, on "
        f"{len(os.sched_getaffinity(0))} of this machine's cores.",
        f"tools/tasks/main.py {options} build/release/bin/parsimony SHARED",
        "network|MACs left|output error: plain|`fisher`|least squares|`outputs`|"
        "task|plain|`fisher`|least squares|`outputs`|minutes",
        [*map(row, rows)],
    )


def row(one):
    plain, *better = (one["steps"][step] for step in STEPS)

    def times(step):
        return f"{cells.significant(step['error'], 3)} ({plain['error'] / step['error']:.1f})"

    shown = [
        one["name"],
        cells.left(one["macs"]),
        cells.significant(plain["error"], 3),
        *map(times, better),
        one["measure"],
        plain["value"],
        *(step["value"] for step in better),
        ", ".join(f"{step['minutes']:.1f}" for step in better),
    ]
    return {"date": one["date"], "commit": one["commit"], "cells": shown}


if __name__ == "__main__":
    main()
