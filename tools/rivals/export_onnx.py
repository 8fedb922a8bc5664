#!/usr/bin/env python3
"""Exports the networks of tools/architectures by PyTorch's older exporter, with whose files other tools were built.

    tools/rivals/export_onnx.py FOLDER [NAME ...]

writes FOLDER/NAME.onnx, the inputs as --input has them in NAME.inputs, and what PyTorch says of a network that it does
not export in NAME.onnx.fault. What is there already is left as it is.
"""

import pathlib
import sys
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from architectures import NETWORKS
from architectures.weights import network


def spec(tensor):
    return "x".join(map(str, tensor.shape)) + ("" if tensor.is_floating_point() else ":int64")


def main():
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:] or NETWORKS
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    training = torch.onnx.TrainingMode.PRESERVE  # keeps normalisations beside convolutions
    for name in names:
        path, fault = folder / f"{name}.onnx", folder / f"{name}.onnx.fault"
        if path.exists() or fault.exists():
            continue
        try:
            module, given = network(name)
            torch.onnx.export(module, given, str(path), opset_version=17, training=training, dynamo=False)
            (folder / f"{name}.inputs").write_text("\n".join(map(spec, given)) + "\n")
        except Exception as error:  # whatever torch says is the answer
            path.unlink(missing_ok=True)
            fault.write_text(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}\n")
            print(f"{name}: {fault.read_text().strip()[:160]}", flush=True)


main()
