#!/usr/bin/env python3
"""Measures docs/results/data/defaults.json: which criterion and scope leave the most of a network at
70 % of its MACs after least squares, for the ten networks of main.py.

    tools/tasks/defaults.py [--networks A,B] [--folder DIR] PARSIMONY SHARED
      > docs/results/data/defaults.json
    tools/results.py

About a minute for each network and choice. What is measured once stays in the folder, which may be
that of main.py.
"""

import json
import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import environment  # noqa: E402, F401
from tables.cells import significant  # noqa: E402
from tables.measured import as_data, table  # noqa: E402
from tables.runs import once  # noqa: E402
from task import ALL, Task, parser_of_tasks  # noqa: E402

CHOICES = (
    ("l1", "local"),
    ("l1", "global"),
    ("group_norm", "isomorphic"),
    ("fisher", "local"),
    ("fisher", "isomorphic"),
    ("fisher", "global"),
    ("obs", "local"),
    ("obs", "isomorphic"),
    ("obs", "global"),
)
BUDGET = "macs=70%"


def main():
    parser = parser_of_tasks(__doc__)
    parser.add_argument("--criteria", help="only these, separated by commas")
    asked = parser.parse_args()
    of = asked.criteria.split(",") if asked.criteria else [criterion for criterion, _ in CHOICES]
    choices = [choice for choice in CHOICES if choice[0] in of]
    root = asked.folder or tempfile.mkdtemp(prefix="parsimony-defaults-")
    errors, values = [], []
    for name in asked.networks.split(","):
        task = Task(name, asked.shared, root)
        found = [result(asked.command, task, *choice) for choice in choices]
        least = min(one["error"] for one in found)
        three = [(one["error"] == least, significant(one["error"], 3)) for one in found]
        errors.append([name, *(f"**{text}**" if is_least else text for is_least, text in three)])
        values.append([name, task.network.measure, *(one["value"] for one in found)])
    print(as_data(data(asked, choices, errors, values)))


def result(command, task, criterion, scope):
    """{error, value} after least squares."""
    model = f"least squares {criterion} {scope}"
    choice = ["--budget", BUDGET, "--criterion", criterion, "--scope", scope, "--recover", "least-squares"]

    def prune():
        task.run(command, ["prune", task.model, "-o", task.at(f"{model}.onnx"), *choice], task.samples)
        return True

    once(task.at(f"{model}.made.json"), prune)
    found = task.value(model)
    print(task.name, criterion, scope, json.dumps(found), file=sys.stderr)
    return found


def data(asked, choices, errors, values):
    chosen = "" if asked.networks == ALL else f" --networks {asked.networks}"
    chosen += f" --criteria {asked.criteria}" if asked.criteria else ""
    only = f" of {asked.criteria}" if asked.criteria else ""
    command = f"tools/tasks/defaults.py{chosen} build/release/bin/parsimony SHARED"
    least = "‖small − dense‖ / ‖dense‖; the least of a network is bold."
    heads = [f"`{criterion}`, {scope}" for criterion, scope in choices]
    return {
        "title": "Criteria and scopes compared",
        "about": "Networks of [networks and their tasks](networks.md) at 70 % of their MACs after least squares, "
        "on test data that neither the criterion nor the recovery saw.",
        "tables": [
            table(f"Output error{only}", least, command, ["network", *heads], errors),
            table(f"The task{only}", "", command, ["network", "task", *heads], values),
        ],
    }


if __name__ == "__main__":
    main()
