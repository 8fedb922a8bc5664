#!/usr/bin/env python3
"""Exports the networks of tools/architectures with random weights.

    tools/coverage/export.py FOLDER FORMAT[,FORMAT] [NAME ...]     FORMAT: onnx, pt (TorchScript), pt2

writes FOLDER/NAME.FORMAT, the inputs as --input has them in NAME.inputs, and what torch says about a
network that it does not export in NAME.FORMAT.fault; kinds.json has the kinds of all. What is there already is left as it is.
"""

import json
import pathlib
import sys
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from architectures import NETWORKS
from architectures.weights import network


def write_onnx(module, inputs, path):
    # PRESERVE keeps normalisations beside convolutions.
    training = torch.onnx.TrainingMode.PRESERVE
    torch.onnx.export(module, inputs, path, opset_version=17, training=training, dynamo=False)


def write_pt(module, inputs, path):
    torch.jit.trace(module, inputs, check_trace=False, strict=False).save(path)


def write_pt2(module, inputs, path):
    torch.export.save(torch.export.export(module, inputs), path)


WRITERS = {"onnx": write_onnx, "pt": write_pt, "pt2": write_pt2}


def spec(tensor):
    return "x".join(map(str, tensor.shape)) + ("" if tensor.is_floating_point() else ":int64")


def main():
    folder, formats, names = pathlib.Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3:] or NETWORKS
    folder.mkdir(parents=True, exist_ok=True)
    kinds = {name: kind for name, (kind, _, _) in NETWORKS.items()}
    (folder / "kinds.json").write_text(json.dumps(kinds))
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name in names:
        for form in formats:
            path, fault = folder / f"{name}.{form}", folder / f"{name}.{form}.fault"
            if path.exists() or fault.exists():
                continue
            try:
                module, given = network(name)
                WRITERS[form](module, given, str(path))
                (folder / f"{name}.inputs").write_text("\n".join(map(spec, given)) + "\n")
            except Exception as error:  # whatever torch says is the answer
                path.unlink(missing_ok=True)
                fault.write_text(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}\n")
                print(f"{name}: no {form}: {fault.read_text().strip()[:160]}", flush=True)


main()
