#!/usr/bin/env python3
"""What tools/gpu_check.sh measures: training and pruning on a CUDA device; writes the page.

    accelerator.py PARSIMONY [--networks NAME...] [--epochs N]

Each network is trained three ways, in turn, on the same random images, which lie on the device as
bytes: by `parsimony train`, by an eager loop of PyTorch, and by one that replays a step as a CUDA
graph with a fused optimizer. All with bf16 by autocast, channels last, SGD with momentum, flips and
shifts. The middle of the epochs counts, but for the first two of ours and the first of PyTorch's.
Then a ResNet-56 is pruned (fisher, least squares, 4,096 images) and trained for 20 epochs by one
command. Before that, losses on the device are held to those on the processor.
"""

import json
import os
import statistics
import tempfile
import time

import numpy as np
import torch
import torchvision
from torch.nn import functional as F

from networks import CifarResNet
from tables.measured import table
from tables.runs import Command, parser_of, publish

BATCHES = {"resnet56": (128, 50_000, 32), "mobilenet_v2": (64, 3_200, 224), "resnet50": (64, 3_200, 224)}
CROP = {32: 4, 224: 16}


def network(name):
    torch.manual_seed(0)
    return CifarResNet(56) if name == "resnet56" else getattr(torchvision.models, name)(num_classes=10)


class Images:
    """Random images and labels as files for the command and as bytes on the device."""

    def __init__(self, folder, count, side):
        random = np.random.default_rng(0)
        self.values = random.integers(0, 256, (count, 3, side, side), dtype=np.uint8)
        self.labels = random.integers(0, 10, count)
        for name, array in (("x", self.values), ("y", self.labels), ("xt", self.values[:64]), ("yt", self.labels[:64])):
            np.save(f"{folder}/{name}.npy", array)
        self.spec = "npy:" + ",".join(f"{folder}/{name}.npy" for name in ("x", "y", "xt", "yt"))
        self.count, self.side = count, side

    def upload(self):
        self.on_device = torch.from_numpy(self.values).cuda(), torch.from_numpy(self.labels).cuda()

    def batch(self, indices):
        """A batch, flipped and shifted at random, as float32 with channels last."""
        values, labels = self.on_device
        n, side, reach = len(indices), self.side, CROP[self.side]
        places = torch.arange(side, device="cuda")
        shift = torch.randint(-reach, reach + 1, (2, n, 1), device="cuda")
        flip = torch.randint(0, 2, (n, 1), device="cuda").bool()
        y = places + shift[0]
        x = torch.where(flip, side - 1 - places, places) + shift[1]
        inside = ((y >= 0) & (y < side)).unsqueeze(2) & ((x >= 0) & (x < side)).unsqueeze(1)
        rows = torch.arange(n, device="cuda")[:, None, None]
        chosen = values[indices].permute(0, 2, 3, 1)
        moved = chosen[rows, y.clamp(0, side - 1).unsqueeze(2), x.clamp(0, side - 1).unsqueeze(1)]
        moved = (moved * inside.unsqueeze(3)).permute(0, 3, 1, 2)
        return moved.float().div_(255), labels[indices]


class Loop:
    """PyTorch's loop, eager or with one CUDA graph for the whole step."""

    def __init__(self, name, images, batch, graph):
        self.net = network(name).cuda().to(memory_format=torch.channels_last).train()
        self.images, self.batch, self.graph = images, batch, None
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01, momentum=0.9, fused=graph)
        self.sum = torch.zeros((), device="cuda")
        if graph:
            self.record()

    def compute(self, inputs, labels):
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=self.graph is None):
            loss = F.cross_entropy(self.net(inputs).float(), labels)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def record(self):
        some = self.images.batch(torch.arange(self.batch, device="cuda"))
        self.inputs, self.labels = (x.clone() for x in some)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.compute(self.inputs, self.labels)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.loss = self.compute(self.inputs, self.labels)
        self.graph = graph

    def epoch(self):
        begin = time.perf_counter()
        order = torch.randperm(self.images.count, device="cuda")
        for first in range(0, self.images.count - self.batch + 1, self.batch):
            inputs, labels = self.images.batch(order[first : first + self.batch])
            if self.graph is None:
                loss = self.compute(inputs, labels)
            else:
                self.inputs.copy_(inputs)
                self.labels.copy_(labels)
                self.graph.replay()
                loss = self.loss
            self.sum += loss
        self.sum.item()
        return time.perf_counter() - begin


def of_pytorch(name, images, batch, epochs, graph):
    images.upload()
    loop = Loop(name, images, batch, graph)
    seconds = [loop.epoch() for _ in range(epochs)][1:]
    del loop, images.on_device
    torch.cuda.empty_cache()
    return images.count / statistics.median(seconds)


def run(command, arguments):
    """The report of a training, and how long the command took."""
    begin = time.perf_counter()
    report = command.report("train", *arguments)
    return report, time.perf_counter() - begin


def check(command):
    """Losses on the device are those on the processor, or nearly so in half precision."""
    script, exported = command.folder / "cnn.pt", command.folder / "cnn.onnx"
    shapes = ["--data", "shapes:512,64", "--batch", "64"]
    run(command, ["--model", "cnn", *shapes, "--epochs", "0", "--device", "cpu", "-o", script])
    command.run("export", script, "--input", "1x3x32x32", "-o", exported)
    for model in (script, exported):
        for optimizer in ("sgd", "adamw"):
            arguments = ["--model", model, *shapes, "--epochs", "2", "--lr", "0.001", "--optimizer", optimizer]
            arguments += ["--flip", "1", "--crop", "2"]
            expected, _ = run(command, [*arguments, "--device", "cpu"])
            for precision, most in (("fp32", 0.01), ("fp16", 0.05)):
                found, _ = run(command, [*arguments, "--device", "cuda", "--precision", precision])
                for a, b in zip(expected["epochs"], found["epochs"]):
                    if not abs(a["loss"] - b["loss"]) <= most * a["loss"]:
                        raise SystemExit(f"accelerator.py: {model}, {optimizer}, {precision}: losses {a} and {b}")


def pruned(command, model, images):
    """Seconds of a cut and of the whole command."""
    entries = [{"op_types": ["Conv"], "sparse_ratio": 0.5, "criterion": "fisher"}]
    calibration = {"data": images.spec, "samples": 4096}
    recipe = {
        "train": {"epochs": 20, "batch": 128, "optimizer": "sgd", "lr": 0.01, "schedule": "cosine", "flip": True,
                  "crop": 4, "precision": "bf16", "evaluate_every": 0},
        "prune": {"config_list": entries, "recover": ["least-squares"], "calibration": calibration},
    }
    path = command.folder / "recipe.json"
    path.write_text(json.dumps(recipe))
    exported = command.folder / "dense.onnx"
    command.run("export", model, "--input", f"1x3x{images.side}x{images.side}", "--dynamic-batch", "-o", exported)
    arguments = ["--model", exported, "--data", images.spec, "--config", path, "--device", "cuda"]
    report, seconds = run(command, arguments)
    return report["seconds"]["prune"], seconds


def of_command(command, model, images, batch, epochs):
    arguments = ["--model", model, "--data", images.spec, "--batch", str(batch), "--epochs", str(epochs + 1)]
    arguments += ["--optimizer", "sgd", "--lr", "0.01", "--precision", "bf16", "--flip", "1"]
    arguments += ["--crop", str(CROP[images.side]), "--evaluate-every", "0", "--device", "cuda"]
    report, _ = run(command, arguments)
    return images.count / statistics.median(epoch["seconds"] for epoch in report["epochs"][2:])


def script(name, folder, side):
    """The network as TorchScript."""
    path = folder / f"{name}.pt"
    with torch.no_grad():
        torch.jit.trace(network(name).eval(), torch.rand(2, 3, side, side)).save(path)
    return path


def main():
    parser = parser_of(__doc__)
    parser.add_argument("command", metavar="PARSIMONY")
    parser.add_argument("--networks", nargs="+", choices=BATCHES, default=list(BATCHES))
    parser.add_argument("--epochs", type=int, default=6)
    asked = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    rows, cuts = [], []
    with tempfile.TemporaryDirectory() as folder:
        command = Command(asked.command, folder)
        check(command)
        for name in asked.networks:
            batch, count, side = BATCHES[name]
            images = Images(folder, count, side)
            model = script(name, command.folder, side)
            eager = of_pytorch(name, images, batch, asked.epochs, graph=False)
            ours = of_command(command, model, images, batch, asked.epochs)
            graph = of_pytorch(name, images, batch, asked.epochs, graph=True)
            cells = [name, str(batch), f"{eager:,.0f}", f"{graph:,.0f}", f"{ours:,.0f}"]
            rows.append(cells + [f"{ours / eager:.2f}", f"{ours / graph:.2f}"])
            print(" ".join(rows[-1]), flush=True)
            if name == "resnet56":
                cuts.append([name] + [f"{x:.1f}" for x in pruned(command, model, images)])
                print(" ".join(cuts[-1]), flush=True)
    card = torch.cuda.get_device_name()
    machine = f"{card}, {os.cpu_count()} cores, PyTorch {torch.__version__}"
    columns = "network|batch|eager|CUDA graph|ours|ours / eager|ours / graph"
    of_cuts = "Half of every layer's channels by fisher, least squares on 4,096 images, then 20 epochs, in seconds"
    command = "tools/gpu_check.sh"
    page = {
        "title": "Training on an accelerator",
        "about": "In bf16 with channels last, data on the device, by `parsimony train`, by an eager loop of PyTorch and "
        "by one that replays each step as a CUDA graph with a fused optimizer.",
        "tables": [
            table("Images per second", "", command, columns, rows, machine=machine),
            table(of_cuts, "", command, "network|cut|whole command", cuts, machine=machine),
        ],
    }
    publish("accelerator", page)


if __name__ == "__main__":
    main()
