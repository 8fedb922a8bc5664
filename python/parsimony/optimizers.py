"""Prunes what belongs to pruned parameters: optimizer states, averages of weights."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

import torch
from torch import Tensor, nn

from .editing import alike, cut_tensor, named_tensors
from .errors import ConfigError, UnsupportedError
from .plan import Cuts, Plan
from .pruning import apply, bare


def carry_over(
    target: Union[torch.optim.Optimizer, nn.Module], plan: Plan, model: Optional[nn.Module] = None
) -> None:
    """Prunes an optimizer's states, or a copy of the module, like `prune` did the parameters.

    Momenta, second moments and their maxima keep the elements of the kept weights: SGD, Adam, AdamW,
    AMSGrad, RMSprop, Adagrad, and every other optimizer whose states have the shape of their parameter,
    also in lists and dictionaries, and Adafactor's row and column moments. The parameters themselves
    are the same objects as before, so the optimizer's groups need no change, whatever their order; it
    need not have all parameters. A state that was carried over before is not changed.

    A copy is a module with the same names, or one that contains such a module: a moving average
    (`AveragedModel`, timm's `ModelEmaV3`). The same elements are kept.

    Args:
        target: the optimizer, or the copy.
        model: the pruned module; needed if the plan was loaded from a file, and not for copies.

    Raises:
        ConfigError: the module is unknown, was not pruned, or does not belong to the plan or the
            optimizer; or a state fits its parameter neither before nor after.
        UnsupportedError: the optimizer has states that do not belong to one parameter (LBFGS); or the
            plan has new elements for tensors, which do not fit a copy.
        In all cases nothing has changed.
    """
    if isinstance(target, nn.Module):
        return _cut_copy(target, plan)
    if isinstance(target, torch.optim.LBFGS):
        raise UnsupportedError("the state of LBFGS spans all parameters: create a new optimizer")
    known = model if model is not None else plan.module
    if known is None:
        raise ConfigError("the plan has no module: pass model=")
    module = bare(known)
    cuts = _cuts_by_parameter(module, plan)
    parameters = list(_parameters_of(target))
    own = {id(tensor) for tensor in named_tensors(module).values()}
    if parameters and not any(id(parameter) in own for parameter in parameters):
        raise ConfigError("no parameter of the optimizer is one of the module's")
    changes = []
    for parameter in parameters:
        if id(parameter) not in cuts:
            continue
        name, axes = cuts[id(parameter)]
        state = target.state.get(parameter, {})
        for key, value in state.items():
            changes.append((state, key, _follow(name, key, value, parameter, axes)))
    for state, key, value in changes:
        state[key] = value


def _cuts_by_parameter(module: nn.Module, plan: Plan) -> Dict[int, Tuple[str, Cuts]]:
    """Returns name and cuts of each tensor that the plan cuts, by its `id`, including tied ones."""
    tensors = named_tensors(module)
    same = alike(tensors)
    found: Dict[int, Tuple[str, Cuts]] = {}
    for name, axes in plan.cuts().items():
        if name not in tensors:
            raise ConfigError(f"the module has no tensor {name!r}, which the plan cuts")
        shape = tuple(tensors[name].shape)
        if any(axis >= len(shape) or shape[axis] >= cut.size for axis, cut in axes.items()):
            raise ConfigError(f"tensor {name!r} of shape {shape} has not been cut by the plan")
        found.update({id(tensor): (name, axes) for tensor in same[id(tensors[name])]})
    return found


def _parameters_of(optimizer: torch.optim.Optimizer) -> Iterator[Tensor]:
    """Yields the parameters in groups, and those that have states but are in no group any more."""
    grouped: Dict[int, Tensor] = {
        id(parameter): parameter
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    yield from grouped.values()
    for key in optimizer.state:
        if isinstance(key, Tensor) and id(key) not in grouped:
            yield key


def _cut_copy(copy: nn.Module, plan: Plan) -> None:
    updated = [name for name in plan.values if not name.endswith(":mask")]
    updated += [entry["tensor"] for entry in plan.data.get("zeros", [])]
    if updated:
        raise UnsupportedError(
            f"the plan has new elements for {updated[0]!r}, which depend on those of the pruned module: "
            "copy the module again"
        )
    module = _module_of_plan(bare(copy), plan)
    if module is not None:
        apply(module, plan)


def _module_of_plan(copy: nn.Module, plan: Plan) -> Optional[nn.Module]:
    """Returns the first part of `copy` with all tensors of the plan; None if it is pruned already."""
    cuts = plan.cuts()
    missing: List[str] = []
    for part in copy.modules():
        tensors = named_tensors(part)
        lacking = [name for name in cuts if name not in tensors]
        if lacking:
            missing = missing or lacking
            continue
        cut = all(
            tensors[name].shape[axis] == len(one.keep)
            for name, axes in cuts.items()
            for axis, one in axes.items()
            if axis < tensors[name].dim()
        )
        return None if cut else part
    raise ConfigError(f"the copy has no tensor {missing[0]!r}, which the plan cuts")


def _follow(name: str, key: str, state: Any, parameter: Tensor, axes: Cuts) -> Any:
    """Returns a parameter's state, also within lists and dictionaries, cut like the parameter."""
    if isinstance(state, dict):
        items = state.items()
        return {
            inner: _follow(name, f"{key}.{inner}", one, parameter, axes) for inner, one in items
        }
    if type(state) in (list, tuple):
        return type(state)(_follow(name, key, one, parameter, axes) for one in state)
    if not isinstance(state, Tensor) or state.numel() <= 1:
        return state
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
    """Yields the parameter's axes for the axes of a state: all, or all but one of the last two
    (factored moments), which may remain with one element."""
    axes = list(range(rank))
    yield axes
    if rank < 2:
        return
    rows = [axes[:-1], [*axes[:-1], None]]
    columns = [[*axes[:-2], rank - 1], [*axes[:-2], None, rank - 1]]
    yield from columns + rows if "col" in key else rows + columns
