"""A loop of training that goes on where it was killed."""

import math
import os
import time

import torch

EVERY = 60  # seconds between two checkpoints


class Clock:
    """Seconds that passed, and those of them that processors worked here and in commands that have ended."""

    def __init__(self, before=(0.0, 0.0)):
        self.begin = [now - past for now, past in zip(self.now(), before)]

    @staticmethod
    def now():
        return time.perf_counter(), sum(os.times()[:4])

    def read(self):
        return [now - begin for now, begin in zip(self.now(), self.begin)]


def cosine(step, steps, top, low, warmup):
    """The rate of a step: up along a line, down along half a cosine."""
    if step < warmup:
        return top * (step + 1) / (warmup + 1)
    return low + (top - low) * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup))) / 2


def trained(model, optimizer, steps, rate_of, loss_of, checkpoint):
    """Trains for `steps` steps; the loss of step k is loss_of(model, k). Returns what a Clock reads, all runs together."""
    first, clock = 0, Clock()
    if checkpoint.exists():
        kept = torch.load(checkpoint, map_location=next(model.parameters()).device)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        first, clock = kept["step"], Clock(kept["clock"])
    model.train()
    saved = time.perf_counter()
    for step in range(first, steps):
        for group in optimizer.param_groups:
            group["lr"] = rate_of(step)
        optimizer.zero_grad(set_to_none=True)
        loss_of(model, step).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if time.perf_counter() - saved > EVERY:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            write(checkpoint, {**state, "step": step + 1, "clock": clock.read()})
            saved = time.perf_counter()
    model.eval()
    return clock.read()


def write(path, what):
    """Writes all or nothing."""
    beside = path.with_suffix(".new")
    torch.save(what, beside)
    os.replace(beside, path)
