"""Optimizer states follow the parameters that a plan has cut."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import torch
from torch import Tensor, nn

from .editing import alike, cut_tensor, named_tensors
from .errors import ConfigError, UnsupportedError
from .plan import Cuts, Plan


def carry_over(
    optimizer: torch.optim.Optimizer, plan: Plan, model: Optional[nn.Module] = None
) -> None:
    """Cuts the states of an optimizer as `prune` has cut its parameters.

    Momenta, second moments and their maxima keep the elements of the kept weights: SGD, Adam, AdamW,
    AMSGrad, RMSprop, Adagrad, and every other optimizer whose states have the shape of their parameter;
    Adafactor's row and column moments, too. The parameters themselves are the same objects as before,
    so the optimizer's groups need no change. A state that was carried over is left as it is.

    Args:
        model: the pruned module; needed if the plan was loaded from a file.

    Raises:
        ConfigError: the module is not known, or a state fits the parameter neither before nor after.
        UnsupportedError: the optimizer has states that do not belong to one parameter (LBFGS).
        In both cases no state is changed.
    """
    module = model if model is not None else plan.module
    if module is None:
        raise ConfigError("the plan does not know its module: give model=")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise UnsupportedError("the states of LBFGS are of all parameters together: make a new one")
    tensors = named_tensors(module)
    same = alike(tensors)
    cuts: Dict[int, Tuple[str, Cuts]] = {
        id(tensor): (name, axes)
        for name, axes in plan.cuts().items()
        if name in tensors
        for tensor in same[id(tensors[name])]
    }
    changes = []
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if id(parameter) not in cuts:
                continue
            name, axes = cuts[id(parameter)]
            state = optimizer.state.get(parameter, {})
            for key, value in state.items():
                if isinstance(value, Tensor) and value.numel() > 1:
                    changes.append((state, key, _follow(name, key, value, parameter, axes)))
    for state, key, value in changes:
        state[key] = value


def _follow(name: str, key: str, state: Tensor, parameter: Tensor, axes: Cuts) -> Tensor:
    after = tuple(parameter.shape)
    before = tuple(axes[i].size if i in axes else size for i, size in enumerate(after))
    for axis_map in _layouts(len(after), key):
        if tuple(state.shape) == _shape(before, axis_map):
            moved = {to: axes[axis] for to, axis in enumerate(axis_map) if axis in axes}
            return cut_tensor(state, moved) if moved else state
        if tuple(state.shape) == _shape(after, axis_map):
            return state
    raise ConfigError(
        f"parameter {name!r}: its state {key!r} has shape {tuple(state.shape)}, which fits neither "
        f"{before} nor {after}"
    )


def _shape(shape: Any, axis_map: Any) -> Any:
    return tuple(1 if axis is None else shape[axis] for axis in axis_map)


def _layouts(rank: int, key: str) -> Any:
    """The axes of the parameter that the axes of a state are: all, or all but one of the last two
    (factored moments), which may be left with one element."""
    axes = list(range(rank))
    yield axes
    if rank < 2:
        return
    rows = [axes[:-1], [*axes[:-1], None]]
    columns = [[*axes[:-2], rank - 1], [*axes[:-2], None, rank - 1]]
    yield from columns + rows if "col" in key else rows + columns
