"""Applies a plan to a live module."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set

import torch
from torch import Tensor, nn

from .editing import Journal, alike, named_tensors, set_zero, shown_elsewhere
from .errors import ConfigError
from .layers import Refusal, follow_tensors
from .plan import AttributeChange, Cuts, Plan
from .pretrained import own_config, owner_of


def tensor_of(name: str, tensors: Mapping[str, Tensor]) -> Tensor:
    """Returns the tensor of that name. Raises Refusal if it is not a parameter or buffer."""
    if name in tensors:
        return tensors[name]
    raise Refusal(
        "", [name], f"its forward uses a tensor that is not a parameter or buffer ({name})"
    )


def smallest_zero(tensor: Tensor, count: int) -> Tensor:
    """Returns a copy with the `count` smallest elements by magnitude zeroed; ties go to the first."""
    order = torch.argsort(tensor.detach().double().abs().reshape(-1), stable=True)
    result = tensor.detach().clone(memory_format=torch.contiguous_format)
    result.view(-1)[order[:count]] = 0
    return result


def check(cuts: Mapping[str, Cuts], tensors: Mapping[str, Tensor]) -> None:
    """Checks that the tensors have the sizes that the plan expects.

    Raises:
        ConfigError: they do not.
        Refusal: the plan cuts a tensor that is not a parameter or buffer, or cuts tensors that share
            their elements differently.
    """
    same = alike(dict(tensors))
    first: Dict[int, str] = {}
    for name, axes in cuts.items():
        tensor = tensor_of(name, tensors)
        for axis, cut in axes.items():
            if axis >= tensor.dim() or tensor.shape[axis] != cut.size:
                raise ConfigError(
                    f"tensor {name!r}: the plan expects {cut.size} elements along axis {axis}, found "
                    f"shape {tuple(tensor.shape)}"
                )
        for other in same[id(tensor)]:
            known = first.setdefault(id(other), name)
            if known != name and cuts[known] != axes:
                raise Refusal("", [name, known], f"{name} and {known} share their elements")


def replay(
    module: nn.Module,
    plan: Plan,
    journal: Journal,
    groups: Optional[Sequence[Dict[str, Any]]] = None,
    values: bool = True,
) -> None:
    """Cuts the tensors of a module and sets the sizes that it stores.

    Args:
        journal: records the edits.
        groups: apply only these groups of the plan.
        values: also assign the new elements of tensors.

    Raises:
        ConfigError: the plan is for another network.
        Refusal: the module cannot be pruned like this.
    """
    tensors = named_tensors(module)
    cuts = plan.cuts(groups)
    check(cuts, tensors)
    same = alike(tensors)
    _set_smallest_to_zero(plan, tensors, same, journal)
    done = set()
    for name, axes in cuts.items():
        sharing = same[id(tensors[name])]
        if id(tensors[name]) in done:
            continue
        for tensor in sharing:
            journal.cut(tensor, axes)
            if tensor is not sharing[0]:
                journal.set_data(tensor, sharing[0].data)
            done.add(id(tensor))
    follow_tensors(module, journal, rescaled=bool(plan.data.get("scales")))
    if values:
        assign_values(plan, tensors, journal)


def _set_smallest_to_zero(
    plan: Plan, tensors: Mapping[str, Tensor], same: Mapping[int, List[Tensor]], journal: Journal
) -> None:
    """Tensors that share memory share it afterwards, too."""
    for entry in plan.data.get("zeros", []):
        sharing = same[id(tensor_of(entry["tensor"], tensors))]
        zeroed = smallest_zero(sharing[0], entry["smallest"])
        for tensor in sharing:
            journal.set_data(tensor, zeroed)


def beside_cuts(
    names: Sequence[str], tensors: Mapping[str, Tensor], cuts: Mapping[str, Cuts]
) -> List[str]:
    """Returns those of `names` with a size that was cut in tensors of the same module."""
    lost: Dict[str, Set[int]] = {}
    for name, axes in cuts.items():
        lost.setdefault(name.rpartition(".")[0], set()).update(cut.size for cut in axes.values())
    return [
        name
        for name in names
        if name not in cuts and lost.get(name.rpartition(".")[0], set()) & set(tensors[name].shape)
    ]


def set_attributes(module: nn.Module, changes: Sequence[AttributeChange], journal: Journal) -> None:
    """Sets the sizes of modules that are not standard layers."""
    if any(change.attribute.startswith("config.") for change in changes):
        own_config(module, journal)
    for change in changes:
        module_of_it, path, value = (
            module.get_submodule(change.module),
            change.attribute,
            change.after,
        )
        owner, name = owner_of(module_of_it, path)
        if isinstance(owner, list):
            items = [*owner[: int(name)], value, *owner[int(name) + 1 :]]
            (owner, name), value = owner_of(module_of_it, path.rpartition(".")[0]), items
        journal.set_attribute(owner, name, value)


def assign_values(plan: Plan, tensors: Mapping[str, Tensor], journal: Journal) -> None:
    """Assigns the plan's new elements to tensors."""
    for name, value in plan.values.items():
        if name.endswith(":mask"):
            continue
        tensor = tensor_of(name, tensors)
        if tensor.shape != value.shape:
            raise ConfigError(
                f"tensor {name!r}: the plan has elements of shape {tuple(value.shape)}, found "
                f"{tuple(tensor.shape)}"
            )
        journal.set_data(tensor, value.to(tensor))


class Masked:
    """During its lifetime, a module is the masked original of a plan: removed elements are zero."""

    def __init__(
        self, module: nn.Module, plan: Plan, groups: Optional[Sequence[Dict[str, Any]]] = None
    ) -> None:
        self._tensors = named_tensors(module)
        self._plan = plan
        self._groups = groups
        self._journal = Journal()
        self._restore: List[Callable[[], None]] = []

    def __enter__(self) -> Dict[int, Cuts]:
        """Returns the cuts of its tensors, by the `id` of each."""
        cuts = self._plan.cuts(self._groups)
        try:
            return self._mask(cuts)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: Any) -> None:
        while self._restore:
            self._restore.pop()()
        self._journal.undo()

    def _mask(self, cuts: Dict[str, Cuts]) -> Dict[int, Cuts]:
        check(cuts, self._tensors)
        same = alike(self._tensors)
        _set_smallest_to_zero(self._plan, self._tensors, same, self._journal)
        if self._plan.data.get("constants") == "exact":
            for name, mask in self._plan.values.items():
                if name.endswith(":mask"):
                    tensor = tensor_of(name[: -len(":mask")], self._tensors)
                    self._journal.set_data(tensor, tensor.data * mask.to(tensor))
            return {}
        found: Dict[int, Cuts] = {}
        elsewhere = shown_elsewhere(self._tensors)
        for name, axes in cuts.items():
            tensor = self._tensors[name]
            if id(tensor) not in found:
                if id(tensor) in elsewhere:
                    own = tensor.data.clone(memory_format=torch.contiguous_format)
                    for other in same[id(tensor)]:
                        self._journal.set_data(other, own)
                # In place: only the removed slices are copied.
                self._restore.append(set_zero(tensor.data, axes))
                found.update({id(other): axes for other in same[id(tensor)]})
        return found
