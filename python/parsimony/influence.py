"""How much layers and experts of a network matter, on samples."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from .blocks import Blocks
from .inputs import evaluating
from .members import Unit, first_tensor, number_in
from .tree import tensors_in


def of_layers(blocks: Blocks, unit: Unit, batches: Sequence[Any]) -> Optional[List[float]]:
    """Returns for each layer 1 minus the mean cosine between what enters and what leaves it; None if
    one is not run on these samples, or does not leave the size as it is.

    Source: Men et al., "ShortGPT", 2024 (block influence).
    """
    sums, counts = [0.0] * unit.size, [0] * unit.size
    layers = {f"{prefix}.{i}": i for prefix in unit.lists for i in range(unit.size)}

    def observed(number: int) -> Callable[..., None]:
        def after(module: nn.Module, args: Any, kwargs: Any, result: Any) -> None:
            before, now = first_tensor(args, kwargs), first_tensor(tuple(tensors_in(result)), {})
            if before.shape == now.shape:
                axis = 1 if before.dim() == 4 else -1  # of pictures, [N, C, H, W]
                cosines = functional.cosine_similarity(before.float(), now.float(), dim=axis)
                sums[number] += float((1 - cosines).sum())
                counts[number] += cosines.numel()

        return after

    _observe(blocks, {path: observed(number) for path, number in layers.items()}, batches)
    if not all(counts):
        return None
    return [total / count for total, count in zip(sums, counts)]


def of_experts(blocks: Blocks, units: Sequence[Unit], batches: Sequence[Any]) -> List[List[float]]:
    """Returns for each expert of each unit the mean, over the tokens that are routed to it, of the gate
    times the norm of what it computes; an empty list where the experts are not called like that.

    Source: Lasby et al., "REAP", 2025.
    """
    found: List[List[float]] = []
    hooks: Dict[str, Callable[..., None]] = {}
    for unit in units:
        sums, counts = torch.zeros(unit.size), torch.zeros(unit.size)
        scores: List[float] = []
        found.append(scores)
        modules = {
            path
            for path, part in blocks.model.named_modules()
            if f"{path}.".startswith(f"{unit.place}.")
            and len(inspect.signature(part.forward).parameters) == 3
        }
        for path in modules:
            hooks[path] = _routed(sums, counts, scores)
    _observe(blocks, hooks, batches)
    return found


def _routed(sums: Tensor, counts: Tensor, scores: List[float]) -> Callable[..., None]:
    def after(module: nn.Module, args: Any, kwargs: Any, result: Any) -> None:
        args = (*args, *kwargs.values())
        if len(args) != 3 or not all(isinstance(one, Tensor) for one in args):
            return
        x, chosen, gates = args
        if chosen.is_floating_point() or chosen.shape != gates.shape or chosen.dim() != 2:
            return
        ones = torch.ones_like(gates[:, :1])
        for slot in range(chosen.shape[1]):
            expert = chosen[:, slot].cpu()
            own = module.forward(x, chosen[:, slot : slot + 1], ones)
            worth = (gates[:, slot].abs().float() * own.float().norm(dim=-1)).cpu()
            sums.index_add_(0, expert, worth)
            counts.index_add_(0, expert, torch.ones_like(worth))
        scores[:] = (sums / counts.clamp(min=1)).tolist()

    return after


def of_weights(blocks: Blocks, unit: Unit) -> List[float]:
    """Returns for each member the Euclidean norm of its weights."""
    squares = [0.0] * unit.size
    for name, tensor in blocks.tensors(unit.place):
        axis = unit.axes.get(name)
        if axis is not None:
            others = [i for i in range(tensor.dim()) if i != axis]
            own = tensor.float().square().sum(others) if others else tensor.float().square()
            squares = [a + b for a, b in zip(squares, own.tolist())]
        for prefix in unit.lists:
            number = number_in(name, prefix)
            if number is not None:
                squares[number] += float(tensor.float().square().sum())
    return [square**0.5 for square in squares]


def _observe(blocks: Blocks, hooks: Dict[str, Callable[..., None]], batches: Sequence[Any]) -> None:
    handles = [
        blocks.model.get_submodule(path).register_forward_hook(hook, with_kwargs=True)
        for path, hook in hooks.items()
    ]
    try:
        with evaluating(blocks.model), blocks.lockstep(batches, lambda *_: None) as runs:
            for block in iter(runs.advance, None):
                blocks.enter(str(block))
    finally:
        for handle in handles:
            handle.remove()
