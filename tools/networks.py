#!/usr/bin/env python3
"""Writes share/networks.zip: the graphs, without weights, of networks whose checkpoints `parsimony`
prunes alone: torchvision's for classification, and ResNets for CIFAR as most repositories have them.

    tools/networks.py [--command build/release/bin/parsimony] [--output share/networks.zip] [NAME ...]
    tools/networks.py --check [NAME ...]

With names only those are written. --check prunes checkpoints of random weights instead, alone, and
says what is left of each. Needs torch and torchvision; takes 20 minutes and 10 GB of memory for all.
"""

import functools
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile

import torch
import torchvision.models
from torch import nn

from tables.runs import COMMAND, ROOT, finished, parser_of

# What only training runs.
IGNORED = {"googlenet": ["aux1", "aux2"], "inception_v3": ["AuxLogits"]}
IMAGE = {"inception_v3": 299}
CIFAR_DEPTHS = (20, 32, 44, 56, 110)


class CifarBlock(nn.Module):
    """Two convolutions; a shortcut that subsamples and pads with zeros where the width grows."""

    def __init__(self, before, width):
        super().__init__()
        self.grows = before != width
        self.pad = (width - before) // 2
        self.conv1 = nn.Conv2d(before, width, 3, 2 if self.grows else 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        if self.grows:
            x = nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.pad, self.pad))
        return torch.relu(y + x)


class CifarResNet(nn.Module):
    """ResNet of depth 6n + 2 for images of 32x32 (He et al., 2016, section 4.2)."""

    def __init__(self, depth):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        for i, (before, width) in enumerate(((16, 16), (16, 32), (32, 64)), 1):
            same = [CifarBlock(width, width) for _ in range((depth - 2) // 6 - 1)]
            setattr(self, f"layer{i}", nn.Sequential(CifarBlock(before, width), *same))
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.layer3(self.layer2(self.layer1(y)))
        return self.linear(y.mean((2, 3)))


def without_initialisation():
    """Weights are not stored; drawing them for a billion parameters takes minutes."""
    for name in dir(nn.init):
        if name.endswith("_") and not name.startswith("_"):
            setattr(nn.init, name, lambda tensor, *_, **__: tensor.data.fill_(1e-3))


def thin_vit_h_14():
    """Of narrower layers where the graph does not say how wide they are: ONNX files end at 2 GB."""
    return torchvision.models.VisionTransformer(
        image_size=224, patch_size=14, num_layers=32, num_heads=16, hidden_dim=1280, mlp_dim=64
    )


def thin_regnet_y_128gf():
    """Of a quarter of the width in as many groups."""
    parameters = torchvision.models.regnet.BlockParams(
        depths=[2, 7, 17, 1],
        widths=[132, 264, 726, 1848],
        group_widths=[66, 66, 66, 66],
        bottleneck_multipliers=[1.0, 1.0, 1.0, 1.0],
        strides=[2, 2, 2, 2],
        se_ratio=0.25,
    )
    return torchvision.models.RegNet(parameters)


THIN = {"vit_h_14": thin_vit_h_14, "regnet_y_128gf": thin_regnet_y_128gf}


def networks():
    for name in torchvision.models.list_models(module=torchvision.models):
        options = {"init_weights": False} if name in IGNORED else {}
        make = functools.partial(torchvision.models.get_model, name, weights=None, **options)
        yield name, make, IMAGE.get(name, 224)
    for depth in CIFAR_DEPTHS:
        yield f"cifar_resnet{depth}", functools.partial(CifarResNet, depth), 32


def graph_of(name, make, image, command, folder):
    """The bytes of the graph, as `parsimony know` keeps it."""
    model = make().eval()
    for parameter in model.parameters():
        parameter.data.fill_(1e-3)
    traced, stored = folder / f"{name}.pt", folder / f"{name}.onnx"
    with torch.no_grad():
        torch.jit.trace(model, torch.zeros(1, 3, image, image), check_trace=False).save(str(traced))
    del model
    words = [command, "--quiet", "know", name, traced, "-o", stored, "--input", f"1x3x{image}x{image}"]
    words += ["--ignore", *IGNORED[name]] if name in IGNORED else []
    finished(words, stdout=None, stderr=None).check_returncode()
    traced.unlink()
    return stored.read_bytes()


def check(names, command):
    """Prunes a checkpoint of every network by half; exits with 1 if one fails."""
    failed = []
    print("| network | tensors cut | largest difference | s |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, make, _ in networks():
            if names and name not in names:
                continue
            model = make()
            with torch.no_grad():
                for parameter in model.parameters():
                    if not bool(parameter.isfinite().all()) or float(parameter.std()) == 0:
                        parameter.uniform_(0.5, 1)
            torch.save(model.state_dict(), f"{folder}/a.pth")
            del model
            words = [command, "prune", f"{folder}/a.pth", "-o", f"{folder}/b.pth", "--ratio", "0.5"]
            begin = time.monotonic()
            done = finished(words)
            seconds = time.monotonic() - begin
            proof = re.search(r"largest difference (\S+)", done.stdout)
            cut = re.search(r"(\d+) tensors cut", done.stdout)
            if done.returncode != 0 or proof is None or cut is None or name not in done.stdout:
                failed.append(name)
                print(f"| {name} | failed: {done.stderr.strip()} | | |", flush=True)
                continue
            print(f"| {name} | {cut[1]} | {proof[1]} | {seconds:.1f} |", flush=True)
    sys.exit(f"failed: {' '.join(failed)}" if failed else 0)


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--command", default=COMMAND)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "share/networks.zip")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.check:
        check(options.names, options.command)
    without_initialisation()
    entries = {}
    if options.names and options.output.exists():
        with zipfile.ZipFile(options.output) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for name, make, image in networks():
            if options.names and name not in options.names:
                continue
            try:
                graph = graph_of(name, THIN.get(name, make), image, options.command, pathlib.Path(folder))
                entries[f"{name}.onnx"] = graph
                print(name, len(graph), flush=True)
            except subprocess.CalledProcessError:
                failed.append(name)
    with zipfile.ZipFile(options.output, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(entries):
            # The same bytes whenever it is made.
            archive.writestr(zipfile.ZipInfo(name), entries[name], zipfile.ZIP_DEFLATED, 9)
    print(len(entries), "networks,", options.output.stat().st_size, "bytes")
    sys.exit(f"failed: {' '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
