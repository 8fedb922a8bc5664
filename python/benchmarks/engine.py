"""Compares recovery and gradient criteria in the user's torch with the command's, on ResNet-20, and
prints a table.

    python python/benchmarks/engine.py resnet20-12fca82f.th cifar10-train-8068.bin.gz

The weights are those of akamaster/pytorch_resnet_cifar10, the images CIFAR-10's in the binary
layout. The command reads the exported program, and files of the same samples; for `fisher` it needs
libtorch. `difference` is the largest difference of a tensor of the two small networks relative to its
largest element, `kept` the share of equal decisions about channels.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

import numpy
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import parsimony
from parsimony.command import find_command
from parsimony.inputs import Inputs
from parsimony.program import Program
from parsimony.tensor_file import write_tensors

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# The shortcuts fix the widths of the others.
_EXCLUDED = ["conv1", *(f"layer{i}.{j}.conv2" for i in (1, 2, 3) for j in range(3))]
_RUNS: List[Tuple[str, Dict[str, Any]]] = [
    ("bias", dict(ratio=0.3, recover="bias")),
    ("bn", dict(ratio=0.3, recover="bn")),
    ("least-squares", dict(ratio=0.3, recover="least-squares")),
    ("least-squares, double", dict(ratio=0.3, recover="least-squares")),
    ("apoz", dict(ratio=0.3, criterion="apoz")),
    ("wanda", dict(ratio=0.3, criterion="wanda")),
    ("taylor", dict(ratio=0.3, criterion="taylor", loss=F.cross_entropy)),
    ("fisher", dict(ratio=0.3, criterion="fisher", scope="global", loss=F.cross_entropy)),
]


class Block(nn.Module):
    """Two convolutions beside a shortcut without parameters."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.added = outer - inner

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.added:
            side = self.added // 2
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, side, side))
        return F.relu(y + x)


class ResNet20(nn.Module):
    """ResNet-20 for CIFAR-10 with shortcuts of option A."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        for i, (inner, outer) in enumerate([(16, 16), (16, 32), (32, 64)]):
            blocks = [Block(inner, outer, outer // inner), *(Block(outer, outer, 1) for _ in "12")]
            setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))
        self.linear = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer3(self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x))))))
        return self.linear(x.mean((2, 3)))  # type: ignore[no-any-return]


def pictures(path: Path, count: int) -> Tuple[Tensor, Tensor]:
    """Returns normalised images [n, 3, 32, 32] and their labels."""
    rows = numpy.frombuffer(gzip.open(path).read(count * 3073), numpy.uint8).reshape(-1, 3073)
    x = torch.tensor(rows[:, 1:].reshape(-1, 3, 32, 32)).float() / 255
    mean, std = (torch.tensor(values).reshape(3, 1, 1) for values in (_MEAN, _STD))
    return (x - mean) / std, torch.tensor(rows[:, 0]).long()


def options_of(settings: Dict[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        if name != "loss":
            yield from (f"--{name}", str(value))


def run(arguments: Sequence[Any], command: str) -> None:
    done = subprocess.run([command, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)


@torch.no_grad()
def largest_difference(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> float:
    """Returns that of a tensor relative to its largest element; infinity for other shapes."""
    largest = 0.0
    for key, own in found.items():
        other = expected[key]
        if own.shape != other.shape:
            return float("inf")
        if own.is_floating_point():
            scale = float(other.abs().max()) or 1.0
            largest = max(largest, float((own - other).abs().max()) / scale)
    return largest


def compared(
    network: nn.Module,
    x: Tensor,
    y: Tensor,
    name: str,
    settings: Dict[str, Any],
    reference: argparse.Namespace,
) -> str:
    """Returns a row of the table."""
    network, batch = copy.deepcopy(network), 1 if name == "fisher" else 32
    if name.endswith("double"):
        network, x = network.double(), x.double()
    inputs = Inputs((x[:batch],), {})
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        program = Program(network, inputs)
        program.save(place / "net.pt2", {})
        write_tensors(place / "data.safetensors", {program.names[0]: x, "labels": y})
        begin = time.perf_counter()
        run(
            [
                *("prune", place / "net.pt2", "-o", place / "small.pt2", *options_of(settings)),
                *(word for name in _EXCLUDED for word in ("--exclude", name)),
                *("--calibration", f"safetensors:{place / 'data.safetensors'}", "--no-verify"),
                *("--samples", len(x), "--plan", place / "plan.json", "-q", "--threads", 1),
                *("--engine", reference.engine),
            ],
            reference.command,
        )
        middle = time.perf_counter()
        expected = torch.export.load(place / "small.pt2").state_dict
        groups = json.loads((place / "plan.json").read_text())["groups"]
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=32)
    last = time.perf_counter()
    plan = parsimony.prune(
        network, x[:batch], data=loader, samples=len(x), exclude=_EXCLUDED, **settings
    )
    seconds = time.perf_counter() - last
    difference = largest_difference(network.state_dict(), expected)
    kept = [set(group["slices"][0]["keep"]) for group in groups]
    ours = {group["id"]: set(group["slices"][0]["keep"]) for group in plan.groups}
    same = sum(
        group["size"] - len(own ^ ours.get(group["id"], set())) for group, own in zip(groups, kept)
    )
    share = same / max(1, sum(group["size"] for group in groups))
    return f"{name:<22} {difference:10.1e} {share:7.1%} {seconds:8.1f} {middle - begin:8.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("weights", type=Path)
    parser.add_argument("pictures", type=Path)
    parser.add_argument("--samples", type=int, default=128)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--command", default=find_command(), help="the one to compare with")
    parser.add_argument("--engine", default="auto", help="of that command")
    options = parser.parse_args()
    network = ResNet20().eval()
    state = torch.load(options.weights, map_location="cpu")["state_dict"]
    network.load_state_dict({key.replace("module.", ""): value for key, value in state.items()})
    x, y = pictures(options.pictures, options.samples)
    print(f"{'what':<22} difference    kept  torch s  command s")
    for name, settings in _RUNS:
        if not options.only or name in options.only:
            print(compared(network, x, y, name, settings, options), flush=True)


if __name__ == "__main__":
    main()
