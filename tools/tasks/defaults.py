#!/usr/bin/env python3
"""Measures docs/results/data/defaults.json: which criterion and scope leave the most of a network at
70 % of its MACs after least squares, for the ten networks of main.py.

    tools/tasks/defaults.py [--networks A,B] [--folder DIR] [--repair|--all] PARSIMONY SHARED
      > docs/results/data/defaults.json
    tools/results.py

With --repair: criteria before and after least squares; with --all: every criterion after it. About a minute for
each network and choice. What is measured once stays in the folder, which may be that of main.py.
"""

import json
import pathlib
import subprocess
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
REPAIRED = (
    ("l1", "local"),
    ("taylor", "local"),
    ("fisher", "local"),
    ("wanda", "local"),
    ("obs", "local"),
    ("obs", "outputs"),
    ("fisher", "global"),
    ("obs", "global"),
    ("obs,fisher,taylor", "local,global"),
)
OF_CHANNELS = (
    "apoz bn_scale fisher fpgm group_norm hrank l1 l2 lamp linf mean_activation mean_activation_rank obd obs random "
    "taylor taylor_squared wanda"
)
BUDGET = "macs=70%"


def main():
    parser = parser_of_tasks(__doc__)
    parser.add_argument("--criteria", help="only these, separated by commas")
    parser.add_argument("--repair", action="store_true", help="what least squares repairs of each criterion's cut")
    parser.add_argument("--all", action="store_true", help="every criterion for channels that needs no recipe")
    asked = parser.parse_args()
    if asked.repair or asked.all:
        print(as_data({"tables": [repaired(asked) if asked.repair else every_criterion(asked)]}))
        return
    of = asked.criteria.split(",") if asked.criteria else [criterion for criterion, _ in CHOICES]
    choices = [choice for choice in CHOICES if choice[0] in of]
    root = root_of(asked)
    errors, values = [], []
    for name in asked.networks.split(","):
        task = Task(name, asked.shared, root)
        found = [result(asked.command, task, *choice) for choice in choices]
        least = min(one["error"] for one in found)
        three = [(one["error"] == least, significant(one["error"], 3)) for one in found]
        errors.append([name, *(f"**{text}**" if is_least else text for is_least, text in three)])
        values.append([name, task.network.measure, *(one["value"] for one in found)])
    print(as_data(data(asked, choices, errors, values)))


def root_of(asked):
    return asked.folder or tempfile.mkdtemp(prefix="parsimony-defaults-")


def repaired(asked):
    """The table of errors of each criterion's cut, before and after least squares."""
    rows = []
    for name in asked.networks.split(","):
        task = Task(name, asked.shared, root_of(asked))
        errors = [[error_of(asked.command, task, *choice, fit) for fit in (False, True)] for choice in REPAIRED]
        least = [min(error[fit] for error in errors if error[fit] is not None) for fit in (0, 1)]
        cells = [
            " → ".join(
                "–" if one is None else f"**{significant(one, 3)}**" if one == best else f"{significant(one, 3)}"
                for one, best in zip(error, least)
            )
            for error in errors
        ]
        rows.append([name, *cells])
    heads = [f"`{criterion}`, {scope}" for criterion, scope in REPAIRED]
    chosen = "" if asked.networks == ALL else f" --networks {asked.networks}"
    command = f"tools/tasks/defaults.py --repair{chosen} build/release/bin/parsimony SHARED"
    about = (
        "‖small − dense‖ / ‖dense‖ of the cut → after least squares; the least of each is bold, and a dash is a "
        "criterion or scope that is refused there or can score nothing. Of several criteria and scopes it is the "
        "choice that the command takes, judged by samples that its repair has not seen."
    )
    return table("Choice and repair", about, command, ["network", *heads], rows)


def every_criterion(asked):
    names = asked.networks.split(",")
    tasks = [Task(name, asked.shared, root_of(asked)) for name in names]
    criteria = OF_CHANNELS.split()
    errors = {c: [error_of(asked.command, task, c, "local", True) for task in tasks] for c in criteria}
    least = [min(error for error in of_network if error is not None) for of_network in zip(*errors.values())]
    rows = []
    for criterion, found in errors.items():
        cells = [
            "–" if one is None else f"**{significant(one, 3)}**" if one == best else significant(one, 3)
            for one, best in zip(found, least)
        ]
        rows.append([f"`{criterion}`", *cells])
    command = f"tools/tasks/defaults.py --all --networks {asked.networks} build/release/bin/parsimony SHARED"
    about = (
        "‖small − dense‖ / ‖dense‖ after least squares, ranked within each group; the least of a network is bold, and "
        "a dash is a criterion that is refused there or can score nothing."
    )
    return table("Every criterion", about, command, ["criterion", *names], rows)


def error_of(command, task, criterion, scope, fit):
    """None where the criterion is refused, or can score nothing, so that nothing is cut."""
    try:
        return result(command, task, criterion, scope, fit)["error"] or None
    except subprocess.CalledProcessError:
        return None


def result(command, task, criterion, scope, fit=True):
    """{error, value} after least squares, or of the cut alone."""
    model = f"{'least squares' if fit else 'cut'} {criterion} {scope}"
    choice = ["--budget", BUDGET, "--criterion", criterion, "--scope", scope]
    choice += ["--recover", "least-squares"] if fit else []

    def prune():
        task.run(command, ["prune", task.model, "-o", task.at(f"{model}.onnx"), *choice], task.samples)
        return True

    once(task.at(f"{model}.made.json"), prune)
    found = task.value(model)
    print(task.name, model, json.dumps(found), file=sys.stderr)
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
