#!/usr/bin/env python3
"""Trains the demo network of the examples on MNIST and writes it as ONNX.

    python3 train_mnist_cnn.py --data DIR [--out mnist_cnn.onnx] [--sample DIR]

DIR holds the four MNIST files in their idx layout, gzipped. The network is small but has what makes
structured pruning interesting: a residual trunk, a depthwise convolution coupled to it, a flatten
that turns one channel into nine features, and BatchNorms that the export keeps.

After every step each channel shrinks, the more the lower its L1 norm ranks in its group, after the
idea of growing regularisation (Wang et al., https://arxiv.org/abs/2012.09243). The lowest-ranked
channels fade while the others learn to do without them, so that the network can be pruned without
fine-tuning.

Needs torch and numpy; written for torch 1.13. The seed is fixed, but rounding differs between
processors and thread counts, and so does a new run's network.
"""

import argparse
import copy
import gzip
import struct
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

TRUNK, INNER, POINT, HIDDEN = 24, 32, 48, 48
POOLED = 3 * 3  # pixels per channel where the network is flattened
SAMPLE = 180  # test images in the sample: 28 kB

# Channels that are removed together: the modules that produce them (rows and normalisation) and
# those that consume them (columns).
GROUPS = {
    "trunk": (["stem.conv", "stem.bn", "block.conv2", "block.bn2", "depthwise.conv",
               "depthwise.bn"], ["block.conv1", "pointwise.conv"]),
    "inner": (["block.conv1", "block.bn1"], ["block.conv2"]),
    "point": (["pointwise.conv", "pointwise.bn"], ["fc1"]),
    "hidden": (["fc1"], ["fc2"]),
}


class ConvBnRelu(nn.Module):
    def __init__(self, inputs, outputs, kernel, stride=1, groups=1):
        super().__init__()
        self.conv = nn.Conv2d(
            inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class ResidualBlock(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.conv1 = nn.Conv2d(width, inner, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x):
        return F.relu(x + self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))


class MnistCnn(nn.Module):
    """image [batch, 1, 28, 28] with values 0..1 -> logits [batch, 10]."""

    def __init__(self):
        super().__init__()
        self.stem = ConvBnRelu(1, TRUNK, 3)
        self.block = ResidualBlock(TRUNK, INNER)
        self.depthwise = ConvBnRelu(TRUNK, TRUNK, 3, stride=2, groups=TRUNK)
        self.pointwise = ConvBnRelu(TRUNK, POINT, 1)
        self.fc1 = nn.Linear(POINT * POOLED, HIDDEN)
        self.fc2 = nn.Linear(HIDDEN, 10)

    def forward(self, x):
        x = F.max_pool2d(self.stem(x), 2)
        x = self.pointwise(self.depthwise(self.block(x)))
        x = F.max_pool2d(x, 2).reshape(-1, POINT * POOLED)
        return self.fc2(F.relu(self.fc1(x)))


def read_idx(path):
    """Reads a gzipped idx file of bytes."""
    data = gzip.decompress(Path(path).read_bytes())
    dims = struct.unpack_from(f">{data[3]}I", data, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(dims).copy()


def write_idx(path, array):
    """Writes bytes as a gzipped idx file, the same bytes every time."""
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    Path(path).write_bytes(gzip.compress(header + array.tobytes(), 9, mtime=0))


def load(directory, prefix):
    """Returns images [n, 1, 28, 28] with values 0..1 and labels [n]."""
    images = read_idx(directory / f"{prefix}-images-idx3-ubyte.gz")
    labels = read_idx(directory / f"{prefix}-labels-idx1-ubyte.gz")
    return torch.from_numpy(images).unsqueeze(1) / 255.0, torch.from_numpy(labels).long()


def ranking(model, producers):
    """Returns a group's channels, largest L1 norm first: |w| of their rows, BatchNorms left out."""
    weights = [model.get_submodule(name).weight for name in producers]
    return sum(w.abs().flatten(1).sum(1) for w in weights if w.dim() > 1).argsort(descending=True)


@torch.no_grad()
def scale_rows(model, producers, factor):
    for name in producers:
        for parameter in model.get_submodule(name).parameters():
            parameter.mul_(factor.view(-1, *[1] * (parameter.dim() - 1)))


def shrink(model, strength):
    """Scales the channel of rank r in 0..1 (0 is the largest) by 1 - strength * r**2."""
    for producers, _ in GROUPS.values():
        order = ranking(model, producers)
        factor = torch.empty(len(order))
        factor[order] = 1 - strength * torch.linspace(0, 1, len(order)) ** 2
        scale_rows(model, producers, factor)


@torch.no_grad()
def pruned(model, ratio):
    """Returns a copy with that ratio of every group's channels, the smallest, set to zero."""
    model = copy.deepcopy(model)
    # Rank first: zeroing one group's columns changes the norms of the next.
    orders = {name: ranking(model, producers) for name, (producers, _) in GROUPS.items()}
    for name, (producers, consumers) in GROUPS.items():
        order = orders[name]
        keep = torch.ones(len(order))
        keep[order[len(order) - int(ratio * len(order)):]] = 0
        scale_rows(model, producers, keep)
        for consumer in consumers:
            weight = model.get_submodule(consumer).weight
            columns = keep.repeat_interleave(weight.shape[1] // len(keep))
            weight.mul_(columns.view(1, -1, *[1] * (weight.dim() - 2)))
    return model


def train(model, images, labels, epochs, batch, strength):
    steps = len(images) // batch
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, epochs * steps)
    model.train()
    for epoch in range(epochs):
        total = 0.0
        for chosen in torch.randperm(len(images))[: steps * batch].view(steps, batch):
            shift = torch.randint(-2, 3, (2,)).tolist()
            x = torch.roll(images[chosen], shift, (2, 3))
            loss = F.cross_entropy(model(x), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            shrink(model, strength)
            total += loss.item()
        print(f"epoch {epoch + 1}/{epochs}: loss {total / steps:.4f}", flush=True)
    model.eval()


@torch.no_grad()
def accuracy(model, images, labels):
    batches = zip(images.split(1000), labels.split(1000))
    return sum((model(x).argmax(1) == y).sum().item() for x, y in batches) / len(images)


def export(model, path):
    torch.onnx.export(
        model, torch.zeros(1, 1, 28, 28), path, opset_version=13,
        # PRESERVE and no folding keep the BatchNorms, in their inference form because of eval().
        training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
        input_names=["image"], output_names=["logits"],
        dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the MNIST files")
    parser.add_argument("--out", type=Path, default="mnist_cnn.onnx", help="ONNX file to write")
    parser.add_argument("--sample", type=Path, help=f"folder for the first {SAMPLE} test images")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--strength", type=float, default=0.005,
                        help="by how much a step shrinks each group's last channel")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(arguments.threads)
    torch.use_deterministic_algorithms(True)

    model = MnistCnn()
    images, labels = load(arguments.data, "train")
    train(model, images, labels, arguments.epochs, arguments.batch, arguments.strength)
    test = load(arguments.data, "t10k")
    print(f"parameters: {sum(p.numel() for p in model.parameters())}")
    for ratio in (0, 0.25, 0.5, 0.75):
        print(f"accuracy with {ratio:.0%} pruned: {accuracy(pruned(model, ratio), *test):.2%}")
    export(model, arguments.out)

    if arguments.sample:
        for kind, rank in (("images", 3), ("labels", 1)):
            data = read_idx(arguments.data / f"t10k-{kind}-idx{rank}-ubyte.gz")
            write_idx(arguments.sample / f"mnist_test_{kind}.idx{rank}.gz", data[:SAMPLE])


if __name__ == "__main__":
    main()
