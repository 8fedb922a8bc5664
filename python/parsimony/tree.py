"""Tensors inside tuples, lists, dictionaries, dataclasses and named tuples, in a fixed order."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Dict, List

import torch
from torch import Tensor


def map_tensors(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """Returns `value` with every tensor replaced by `change(tensor)`; the rest is unchanged."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        items = {key: map_tensors(item, change) for key, item in value.items()}
        return items if type(value) is dict else _like(value, items)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_tensors(item, change) for item in value))
    if isinstance(value, (tuple, list)):
        return type(value)(map_tensors(item, change) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        return dataclasses.replace(value, **{k: map_tensors(v, change) for k, v in fields.items()})
    return value


def _like(value: Dict[Any, Any], items: Dict[Any, Any]) -> Any:
    """Returns a dictionary of a subclass, such as an OrderedDict or a model's output."""
    try:
        return type(value)(items)
    except TypeError:
        return items


def tensors_in(value: Any) -> List[Tensor]:
    """Returns all tensors of `value`."""
    found: List[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    map_tensors(value, note)
    return found


def like(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """Returns a random tensor of the same shape and type: permuted integers, or normally distributed
    numbers of the same mean and deviation."""
    if tensor.numel() == 0:
        return tensor
    if not tensor.is_floating_point():
        order = torch.randperm(tensor.numel(), generator=generator).to(tensor.device)
        return tensor.reshape(-1)[order].reshape(tensor.shape)
    values = tensor.detach().double()
    deviation = float(values.std()) if tensor.numel() > 1 else 1.0
    noise = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
    return (noise * (deviation or 1.0) + float(values.mean())).to(tensor)
