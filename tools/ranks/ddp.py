#!/usr/bin/python3
"""Seconds of each epoch of the CIFAR-10 CNN in Python, in one process or by DistributedDataParallel.

    tools/ranks/ddp.py CIFAR [--ranks N] [--threads N] [--batch N] [--samples N] [--epochs N] [--channels-last]

The network is that of `parsimony train --model cnn`, the optimizer Adam, the images are in memory and
shuffled each epoch. --batch is that of all ranks together, --threads each rank's. One rank goes
without DistributedDataParallel; several meet in a file and talk over Gloo on the loopback interface.
Prints {"seconds": [], "loss": [of rank 0's shares], "allocator": "malloc" or "mimalloc"}. Needs Debian's
python3-torch.
"""
import argparse
import json
import os
import pathlib
import tempfile
import time

import torch
from torch import distributed, nn


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.fc1 = nn.Linear(64 * 8 * 8, 512)
        self.fc2 = nn.Linear(512, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc2(self.fc1(x.flatten(1)))


def read(folder, samples):
    """Images [n, 3, 32, 32] of 0 to 1 and labels of CIFAR-10's binary layout."""
    data = b"".join((pathlib.Path(folder) / f"data_batch_{i}.bin").read_bytes() for i in range(1, 6))
    rows = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(-1, 3073)[:samples]
    return rows[:, 1:].reshape(-1, 3, 32, 32).float() / 255, rows[:, 0].long()


def train(rank, options, folder):
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    net = Cnn()
    if options.channels_last:
        net = net.to(memory_format=torch.channels_last)
    if options.ranks > 1:
        distributed.init_process_group(
            "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=options.ranks)
        net = nn.parallel.DistributedDataParallel(net)  # buckets of 25 MB
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    images, labels = read(options.data, options.samples)
    share = options.batch // options.ranks
    seconds, losses = [], []
    for _ in range(options.epochs):
        begin, total, steps = time.perf_counter(), 0, len(images) // options.batch
        order = torch.randperm(len(images))  # the same on all ranks
        for step in range(steps):
            first = step * options.batch + rank * share
            rows = order[first:first + share]
            x, y = images[rows], labels[rows]
            if options.channels_last:
                x = x.contiguous(memory_format=torch.channels_last)
            loss = nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        losses.append(float(total) / steps)
        seconds.append(time.perf_counter() - begin)
    if rank == 0:
        maps = pathlib.Path("/proc/self/maps").read_text()
        allocator = "mimalloc" if "libmimalloc" in maps else "malloc"
        print(json.dumps({"seconds": seconds, "loss": losses, "allocator": allocator}), flush=True)
    if options.ranks > 1:
        distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    for name, value in (("ranks", 2), ("threads", 1), ("batch", 64), ("samples", 6400), ("epochs", 3)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--channels-last", action="store_true")
    options = parser.parse_args()
    if options.batch % options.ranks or options.samples % options.batch:
        parser.error("wanted a batch of equal shares, and whole batches")
    if options.ranks == 1:
        train(0, options, None)
        return
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    with tempfile.TemporaryDirectory() as folder:
        # Not torchrun: Debian's fails with Python 3.11.
        torch.multiprocessing.spawn(train, (options, folder), options.ranks)


if __name__ == "__main__":
    main()
