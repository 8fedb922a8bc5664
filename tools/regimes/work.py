"""A folder of work: what was trained, cut or measured once stays there."""

import pathlib

import torch
from tables.measured import measured
from tables.runs import once

from .training import Clock, trained, write


class Work:
    def __init__(self, folder, device="cpu"):
        self.folder, self.device = pathlib.Path(folder), device
        self.folder.mkdir(parents=True, exist_ok=True)

    def once(self, name, make):
        """What make() says of a network, where, when and how long it took, kept in NAME.json."""
        path = self.folder / f"{name}.json"

        def timed():
            print(f"{path}: begins", flush=True)
            clock = Clock()
            found = make()
            seconds, processor = clock.read()
            return {"seconds": seconds, "processor": processor, **found, **measured()}

        if not path.exists():
            print(f"{path}: {once(path, timed)}", flush=True)
        return once(path, timed)

    def save(self, name, model):
        write(self.folder / f"{name}.pt", model)

    def load(self, name):
        """The module that `save` was given."""
        return torch.load(self.folder / f"{name}.pt", map_location=self.device, weights_only=False)

    def train(self, name, model, *arguments):
        """training.trained, with a checkpoint, and the module saved at the end."""
        checkpoint = self.folder / f"{name}.checkpoint"
        seconds, processor = trained(model, *arguments, checkpoint)
        self.save(name, model)
        checkpoint.unlink(missing_ok=True)
        return {"seconds": seconds, "processor": processor}
