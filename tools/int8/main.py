#!/usr/bin/env python3
"""Measures docs/results/data/int8.json: trained networks, dense and pruned, in float32 and in int8, by
examples/prune_int8.py: their files, times, and how far the outputs are from the dense network's.

    tools/int8/main.py [--networks A,B] [--folder DIR] PARSIMONY SHARED > docs/results/data/int8.json
    tools/results.py

SHARED has models/onnx and data. Some minutes for each network; what is measured once stays in the folder.
"""

import gzip
import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / folder) for folder in ("tools/tasks", "tools", "examples")]
import environment  # noqa: E402, F401
import numpy  # noqa: E402
import onnx  # noqa: E402
from onnx import version_converter  # noqa: E402
from int8_metric import error, held_out, milliseconds  # noqa: E402
from networks import NETWORKS, Network  # noqa: E402
from prune_int8 import COUNT, PRUNING, quantise  # noqa: E402
from tables.cells import left, significant  # noqa: E402
from tables.measured import as_data, measured, table  # noqa: E402
from tables.runs import Command, once  # noqa: E402
from task import Task, parser_of_tasks  # noqa: E402

KINDS = ("dense", "small", "dense int8", "small int8")
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class Cifar(Network):
    """A ResNet for CIFAR-10; the labels of the test part are in the data set."""

    files = ("train-8068", "test-first1017")
    measure = "accuracy on CIFAR-10"

    def __init__(self, file):
        self.file = file

    def rows(self, shared, part):
        data = gzip.decompress((shared / f"data/cifar10-{self.files[part == 'test']}.bin.gz").read_bytes())
        return numpy.frombuffer(data, numpy.uint8).reshape(-1, 3073)[: 1017 if part == "test" else COUNT]

    def inputs(self, shared, part):
        pixels = self.rows(shared, part)[:, 1:].reshape(-1, 3, 32, 32) / 255
        mean, std = (numpy.reshape(values, (3, 1, 1)) for values in (MEAN, STD))
        return {"input": ((pixels - mean) / std).astype(numpy.float32)}

    def value(self, dense, small, shared):
        right = small["logits"].argmax(-1) == self.rows(shared, "test")[:, 0]
        return f"{100 * right.mean():.1f} %"


NETWORKS.update({name: Cifar(f"{name}_cifar10") for name in ("resnet20", "resnet56")})
FIVE = "resnet20,resnet56,Magika,nanodet,ultraface"


def main():
    parser = parser_of_tasks(__doc__)
    parser.set_defaults(networks=FIVE)
    asked = parser.parse_args()
    root = asked.folder or tempfile.mkdtemp(prefix="parsimony-int8-")
    entries = []
    for name in asked.networks.split(","):
        task = Task(name, asked.shared, root)
        entries.append(once(task.at("int8.json"), lambda: entry(task, asked.command)))
        print(json.dumps(entries[-1]), file=sys.stderr)
    print(as_data(data(asked, entries)))


def entry(task, command):
    """What the table says of one network."""
    samples = task.at("samples.npz")
    parts = [task.samples_of(part, None) for part in ("calibration", "test")]
    numpy.savez(samples, **{name: numpy.concatenate([a[:COUNT], parts[1][name]]) for name, a in parts[0].items()})
    models = {kind: task.at(f"{kind}.onnx") for kind in KINDS}
    onnx.save(tidied(onnx.load(task.model)), models["dense"])
    prune = ["prune", models["dense"], "-o", models["small"], *PRUNING, f"npz:{samples}", "--quiet"]
    report = once(task.at("cut.json"), lambda: Command(command, task.folder).report(*prune))
    feeds = held_out(samples)
    assert error(models["dense"], task.model, feeds[:10]) == 0
    for kind in KINDS[:2]:
        quantise(models[kind], models[f"{kind} int8"], samples)
    times = milliseconds(models.values(), feeds[0], rounds=300)
    return {
        "name": task.name,
        "measure": task.network.measure,
        "macs": report["macs"],
        "parameters": report["params"],
        "of": {
            kind: {
                "bytes": models[kind].stat().st_size,
                "milliseconds": time,
                "error": error(models[kind], models["dense"], feeds) if kind != "dense" else 0,
                "value": task.value(kind)["value"],
            }
            for kind, time in zip(KINDS, times)
        },
        **measured(),
    }


def tidied(model):
    """The same network in opset 13 or later, without what ONNX Runtime 1.32 fails at: Resize's empty region, which it
    gathers from once integers are behind it, and sums with [1, n]: biases, which its quantiser expects to be [n]."""
    model = version_converter.convert_version(model, max(13, model.opset_import[0].version))
    constants = {one.name: one for one in model.graph.initializer}
    empty = {name for name, one in constants.items() if 0 in one.dims}
    empty |= {n.output[0] for n in model.graph.node if n.op_type == "Constant" and 0 in n.attribute[0].t.dims}
    for node in model.graph.node:
        if node.op_type == "Resize" and node.input[1] in empty:
            node.input[1] = ""
        for name in constants.keys() & set(node.input) if node.op_type == "Add" else ():
            dims = constants[name].dims
            if len(dims) == 2 and dims[0] == 1:
                dims[:] = dims[1:]
    return model


def data(asked, entries):
    chosen = "" if asked.networks == FIVE else f" --networks {asked.networks}"
    command = f"tools/int8/main.py{chosen} build/release/bin/parsimony SHARED"
    return {
        "title": "Pruned, then int8",
        "about": "Trained networks cut to half of their MACs (`--preset quick --round-to 16`) and quantised by ONNX "
        f"Runtime as in [the guide](../guide/int8.md), with the same {COUNT} samples for all of it; errors and tasks "
        "are of other samples, those of [networks and their tasks](networks.md). One setting serves all networks, but "
        "it was chosen by looking at these networks and these test samples: of roundings to 1, 8 and 16 (1 and 8 "
        "left the ResNets in int8 slower than, or level with, the dense ones), four lists of types, two formats, "
        "three calibrations and two types of activations. With widths of 16, 32 and 64, rounding to 16 leaves the "
        "ResNets more than half of their MACs. Without training, half is too much for the detectors.",
        "tables": [
            table(
                "Four combinations",
                "Files are shares of the dense float32 file; times are processor milliseconds of one sample on one "
                "thread of ONNX Runtime, medians of runs taken in turn; error is ‖outputs − dense‖ / ‖dense‖. In "
                "bold: what holds of a file of at most a sixth, a time below both others, an error of at most 1.2 "
                "times the cut's.",
                command,
                "network|MACs, parameters left|file: cut|int8|both|ms: dense|cut|int8|both|error: cut|int8|both",
                [dated(one, row(one)) for one in entries],
            ),
            table(
                "The task",
                "",
                command,
                "network|task|dense|cut|int8|both",
                [dated(one, task_row(one)) for one in entries],
            ),
        ],
    }


def row(one):
    dense, cut, int8, both = (one["of"][kind] for kind in KINDS)
    share = [f"{100 * x['bytes'] / dense['bytes']:.1f} %" for x in (cut, int8, both)]
    times = [significant(x["milliseconds"], 3) for x in (dense, cut, int8, both)]
    errors = [significant(x["error"], 3) for x in (cut, int8, both)]
    reached = (
        (share, both["bytes"] * 6 <= dense["bytes"]),
        (times, both["milliseconds"] < min(cut["milliseconds"], int8["milliseconds"])),
        (errors, both["error"] <= 1.2 * cut["error"]),
    )
    for cells, holds in reached:
        cells[-1] = f"**{cells[-1]}**" if holds else cells[-1]
    return [one["name"], f"{left(one['macs'])}, {left(one['parameters'])}", *share, *times, *errors]


def task_row(one):
    return [one["name"], one["measure"], *(one["of"][kind]["value"] for kind in KINDS)]


def dated(one, cells):
    return {"date": one["date"], "commit": one["commit"], "cells": cells}


if __name__ == "__main__":
    main()
