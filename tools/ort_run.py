#!/usr/bin/env python3
"""Runs a model on ONNX Runtime on tensors that lie in files, and writes its outputs to files.

    ort_run.py MODEL.onnx FOLDER

FOLDER/inputs.txt has one line per input of the model that is no initializer, in order: name, type,
shape ("1x3x32x32", "-" for a scalar), between tabs; FOLDER/input_0.raw and so on hold their elements.
FOLDER/outputs.txt and FOLDER/output_0.raw come in the same form, all elements as float64.
"""

import pathlib
import sys

import environment  # noqa: F401
import numpy
from oracle import faults
from oracle.runtime import run_all


def main():
    if len(sys.argv) != 3:
        raise faults.UsageFault("expected a model and a folder")
    model, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    feeds = {}
    for i, line in enumerate((folder / "inputs.txt").read_text().splitlines()):
        name, kind, shape = line.split("\t")
        sizes = [] if shape == "-" else [int(size) for size in shape.split("x")]
        feeds[name] = numpy.fromfile(folder / f"input_{i}.raw", kind).reshape(sizes)
    (outputs,) = run_all(model, "disabled", [feeds], threads=1)
    lines = []
    for i, (name, output) in enumerate(outputs.items()):
        output.astype(float).tofile(folder / f"output_{i}.raw")
        lines.append(f"{name}\t{output.dtype.name}\t{'x'.join(map(str, output.shape)) or '-'}\n")
    (folder / "outputs.txt").write_text("".join(lines))
    return faults.FINE


if __name__ == "__main__":
    sys.exit(faults.exit_code("ort_run.py", main))
