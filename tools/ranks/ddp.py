#!/usr/bin/env python3
"""Seconds of each epoch of the CIFAR-10 CNN in Python, in one process or by DistributedDataParallel.

    tools/ranks/ddp.py CIFAR [--ranks N] [--threads N] [--batch N] [--samples N] [--epochs N] [--channels-last]
      [--resnet20]

The network is that of `parsimony train --model cnn`, or of `--model resnet20`, the optimizer Adam, the images are in memory and
shuffled each epoch. --batch is that of all ranks together, --threads each rank's. One rank goes
without DistributedDataParallel; several meet in a file and talk over Gloo on the loopback interface.
Prints {"seconds": [], "loss": [of rank 0's shares], "allocator": "malloc" or "mimalloc"}.
Needs torch.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

import torch
from torch import distributed, nn

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from networks import CifarResNet  # noqa: E402
from python_training import Cnn, images_of  # noqa: E402


def train(rank, options, folder):
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    net = CifarResNet(20) if options.resnet20 else Cnn()
    if options.channels_last:
        net = net.to(memory_format=torch.channels_last)
    if options.ranks > 1:
        distributed.init_process_group(
            "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=options.ranks
        )
        net = nn.parallel.DistributedDataParallel(net)  # buckets of 25 MB
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    images, labels = (rows[: options.samples] for rows in images_of(options.data))
    images = images.float() / 255
    share = options.batch // options.ranks
    seconds, losses = [], []
    for _ in range(options.epochs):
        begin, total, steps = time.perf_counter(), 0, len(images) // options.batch
        order = torch.randperm(len(images))  # the same on all ranks
        for step in range(steps):
            first = step * options.batch + rank * share
            rows = order[first : first + share]
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
    parser.add_argument("--resnet20", action="store_true")
    options = parser.parse_args()
    if options.batch % options.ranks or options.samples % options.batch:
        parser.error("expected a batch of equal shares, and whole batches")
    if options.ranks == 1:
        train(0, options, None)
        return
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    with tempfile.TemporaryDirectory() as folder:
        # Not torchrun: Debian's fails with Python 3.11.
        torch.multiprocessing.spawn(train, (options, folder), options.ranks)


if __name__ == "__main__":
    main()
