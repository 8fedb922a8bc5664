"""Exports torchvision's networks as users have them: ONNX with an open batch, and traced TorchScript.

    export.py --list [KIND]                          their names and kinds, a line each
    export.py [--only onnx|torchscript] NAME... FOLDER

FOLDER/NAME.onnx and NAME.pt are written, and NAME.json with the kind, the inputs as --input has them, and
torch's own words about what it cannot export. Beyond 2 GB the weights of NAME.onnx lie beside it.
Weights are random by a seed that the name decides; see weights.py.

Exit code 77: this Python has no torch or no torchvision.
"""

import argparse
import json
import os
import sys
import warnings
import zlib

try:
    import torch
    import torchvision
except ImportError:
    sys.exit(77)

from networks import KINDS, example_of, names_of, network, plain
from weights import randomise

OPSET = 16  # GridSample's first; LayerNorm still comes in pieces


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", nargs="?", const="", metavar="KIND", choices=["", *KINDS])
    parser.add_argument("--only", choices=["onnx", "torchscript"])
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.list is not None:
        for kind in [arguments.list] if arguments.list else KINDS:
            print("\n".join(f"{name}\t{kind}" for name in names_of(kind)))
        return
    *names, folder = arguments.names
    os.makedirs(folder, exist_ok=True)
    warnings.simplefilter("ignore")  # about what tracing does not follow
    for name in names:
        export(name, folder, arguments.only)


def export(name, folder, only):
    torch.manual_seed(zlib.crc32(name.encode()))
    model, kind = network(name)
    example = example_of(name, kind)
    randomise(model, kind, example)
    about = {
        "kind": kind,
        "inputs": ["x".join(map(str, tensor.shape)) for tensor in example],
        "parameters": sum(p.numel() for p in model.parameters()),
        "errors": {},
    }
    writers = {"onnx": write_onnx, "torchscript": write_torchscript}
    for form in [only] if only else writers:
        try:
            writers[form](model, kind, example, os.path.join(folder, name))
        except Exception as error:  # whatever torch says is the answer
            about["errors"][form] = " ".join(str(error).split())[:300]
    with open(os.path.join(folder, name + ".json"), "w") as file:
        json.dump(about, file)


def write_onnx(model, kind, example, path):
    inputs = [f"x{i}" for i in range(len(example))] if len(example) > 1 else ["x"]
    batch = {} if kind == "detection" else {name: {0: "N"} for name in inputs}
    torch.onnx.export(
        plain(model, kind, "onnx"),
        example,
        path + ".onnx",
        opset_version=OPSET,
        training=torch.onnx.TrainingMode.PRESERVE,  # keeps normalisations beside convolutions
        input_names=inputs,
        dynamic_axes=batch,
        dynamo=False,
    )


def write_torchscript(model, kind, example, path):
    torch.jit.trace(plain(model, kind, "torchscript"), example, check_trace=False).save(path + ".pt")


main()
