#!/usr/bin/env python3
"""Seconds of an epoch of the CIFAR-10 CNN in Python, see docs/results/performance.md.

    tools/python_training.py memory|pipeline [--data DIR] [--threads N] [--batches N] [--widths 32,64]

memory    tensors in memory, indexed batch by batch
pipeline  the usual one: a data set of images, each decoded to a tensor of its own, a DataLoader

Needs torch, and pillow and numpy for the pipeline.
"""

import argparse
import pathlib
import time

import torch
from torch import nn


class Cnn(nn.Module):
    """That of `parsimony train --model cnn`."""

    def __init__(self, first=32, second=64):
        super().__init__()
        self.conv1 = nn.Conv2d(3, first, 3, padding=1)
        self.conv2 = nn.Conv2d(first, second, 3, padding=1)
        self.fc1 = nn.Linear(second * 64, 512)
        self.fc2 = nn.Linear(512, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc2(self.fc1(x.flatten(1)))


def images_of(folder):
    """Images [n, 3, 32, 32] uint8 and labels of CIFAR-10's binary layout; noise without a folder."""
    if not folder:
        return torch.randint(256, (50_000, 3, 32, 32), dtype=torch.uint8), torch.randint(10, (50_000,))
    data = b"".join(
        (pathlib.Path(folder) / f"data_batch_{i}.bin").read_bytes() for i in range(1, 6))
    rows = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(-1, 3073)
    return rows[:, 1:].reshape(-1, 3, 32, 32).contiguous(), rows[:, 0].long()


def in_memory(images, labels):
    x = images.float() / 255
    while True:
        order = torch.randperm(len(x))
        for start in range(0, len(x), 64):
            rows = order[start:start + 64]
            yield x[rows], labels[rows]


def pipeline(images, labels):
    import numpy
    from PIL import Image

    class Images(torch.utils.data.Dataset):
        def __init__(self):
            self.pixels = images.permute(0, 2, 3, 1).contiguous().numpy()

        def __len__(self):
            return len(self.pixels)

        def __getitem__(self, i):
            picture = Image.fromarray(self.pixels[i])  # as torchvision's CIFAR10 does
            array = torch.from_numpy(numpy.array(picture, numpy.uint8, copy=True))
            return array.permute(2, 0, 1).contiguous().to(torch.float32).div(255), int(labels[i])

    while True:
        yield from torch.utils.data.DataLoader(Images(), batch_size=64, shuffle=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["memory", "pipeline"])
    parser.add_argument("--data")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--widths", default="32,64")
    parser.add_argument("--channels-last", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    net = Cnn(*map(int, args.widths.split(",")))
    if args.channels_last:
        net = net.to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-5, weight_decay=0.005)
    images, labels = images_of(args.data)
    batches = (in_memory if args.kind == "memory" else pipeline)(images, labels)
    for step in range(args.batches + 10):
        if step == 10:
            begin = time.perf_counter()
        x, y = next(batches)
        if args.channels_last:
            x = x.contiguous(memory_format=torch.channels_last)
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    print(f"{(time.perf_counter() - begin) / args.batches * 1e3:.2f}")


if __name__ == "__main__":
    main()
