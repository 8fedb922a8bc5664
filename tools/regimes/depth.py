"""Whole layers leave a decoder: the command removes them from the exported program, whose weights the module takes."""

import os
import tempfile

import numpy
import torch
from tables.runs import Command


def without_layers(model, count, windows, recovery=()):
    """Removes the layers whose halves together have the least influence on `windows` [n, t] of tokens."""
    with tempfile.TemporaryDirectory() as folder:
        command = Command(os.environ["PARSIMONY_COMMAND"], folder)
        dense, small, data = (command.folder / name for name in ("dense.pt2", "small.pt2", "windows.npz"))
        torch.export.save(torch.export.export(model.eval(), (windows[:1],)), dense)
        numpy.savez(data, tokens=windows.cpu().numpy())
        calibration = ["--calibration", f"npz:{data}", "--samples", len(windows)]

        def report(number, *options):
            return command.report("prune", dense, "-o", small, "--layers", number, *options, *calibration)

        halves = [one["influence"] for one in report(1, "--no-verify")["depth"]["blocks"]]
        order = sorted(range(len(model.layers)), key=lambda layer: sum(halves[2 * layer : 2 * layer + 2]))
        kept = sorted(order[count:])
        told = report(2 * count, "--exclude", *(f"layers.{layer}.*" for layer in kept), *recovery)
        gone = [half for half, one in enumerate(told["depth"]["blocks"]) if one["removed"]]
        if not told["proof"].get("holds") or {half // 2 for half in gone} & {*kept}:
            raise RuntimeError(f"layers {kept} were to stay: {told['proof']}, {gone}")
        weights = torch.export.load(small).state_dict
    model.layers = torch.nn.ModuleList(model.layers[layer] for layer in kept)
    for name, tensor in model.state_dict().items():
        first, *rest = name.split(".")
        old = f"layers.{kept[int(rest[0])]}.{'.'.join(rest[1:])}" if first == "layers" else name
        tensor.copy_(weights[old])
    return model
