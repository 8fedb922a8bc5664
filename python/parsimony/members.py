"""Layers, experts and words that leave a network of transformers.

Each is one of so many of its kind, and a key of the configuration has their number. What belongs to one
is not looked up: it is what a model loses that is built with a smaller number.
"""

from __future__ import annotations

import re
from typing import (
    Any,
    Dict,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .plan import AttributeChange
from .pretrained import PREFIX, Configured, Shapes, items_of, owner_of

_NUMBER = re.compile(r"\d+")


class Unit(NamedTuple):
    """Members that leave together or stay: layers of a network, or experts of one layer.

    Attributes:
        place: of what they are part; empty for the network.
        size: how many there are.
        lists: prefixes of tensors' names, with a dot and the member's number behind.
        axes: of tensors that have an index for each member.
    """

    place: str
    size: int
    lists: Tuple[str, ...]
    axes: Dict[str, int]


class Counted(NamedTuple):
    """A key of the configuration, by its path, and what it counts."""

    key: str
    size: int
    units: List[Unit]

    @property
    def are_layers(self) -> bool:
        return len(self.units) == 1 and not self.units[0].axes

    def are_experts(self, shapes: Shapes) -> bool:
        """Returns whether each has weights of its own, and an index in a router's."""
        return not self.are_layers and all(
            unit.lists or any(len(shapes[name]) > 2 for name in unit.axes) for unit in self.units
        )


def counted_by(
    configured: Configured,
    key: str,
    size: int,
    left: int,
    others: Sequence[AttributeChange] = (),
) -> Optional[Counted]:
    """Returns what a key counts, if members leave when it is `left` instead of `size`, and `others`
    change with it."""
    shapes = configured.shapes_with([]) or {}
    change = AttributeChange("", PREFIX + key, size, left)
    for lists in ([], _lists_of(configured, key, size)):
        changes = [change, *others, *(_shorter(path, items, range(left)) for path, items in lists)]
        other = configured.shapes_with(changes)
        units = None if other is None else _units(shapes, other, size, left)
        if units:
            return Counted(key, size, units)
    return None


def _units(shapes: Shapes, other: Shapes, size: int, left: int) -> Optional[List[Unit]]:
    if other.keys() - shapes.keys():
        return None
    gone = shapes.keys() - other.keys()
    axes: Dict[str, int] = {}
    for name in other:
        before, after = shapes[name], other[name]
        if before == after:
            continue
        differing = [i for i, (a, b) in enumerate(zip(before, after)) if a != b]
        if len(before) != len(after) or [(before[i], after[i]) for i in differing] != [
            (size, left)
        ]:
            return None
        axes[name] = differing[0]
    lists: Set[str] = set()
    for name in gone:
        if not any(number_in(name, one) is not None for one in lists):
            found = _list_of(name, gone, shapes, size, left)
            if found is None:
                return None
            lists.add(found)
    if not axes and len(lists) == 1:
        return [Unit("", size, tuple(lists), {})]
    places = sorted({_place(name) for name in (*axes, *(f"{one}." for one in lists))})
    return [
        Unit(
            place,
            size,
            tuple(sorted(one for one in lists if _place(f"{one}.") == place)),
            {name: axis for name, axis in axes.items() if _place(name) == place},
        )
        for place in places
    ]


def _list_of(
    name: str, gone: "Set[str]", shapes: Iterable[str], size: int, left: int
) -> Optional[str]:
    """Returns the list whose last members are those that are gone, the outermost."""
    for match in _NUMBER.finditer(name):
        prefix = name[: match.start()].rstrip(".")
        if int(match[0]) < left or not prefix or name[match.start() - 1] != ".":
            continue
        numbers = {number_in(other, prefix) for other in shapes} - {None}
        if numbers != set(range(size)):
            continue
        last = {other for other in shapes if (number_in(other, prefix) or 0) >= left}
        if last <= gone:
            return prefix
    return None


def _place(name: str) -> str:
    """Returns the layer that a tensor belongs to: what stands before and with the first number."""
    match = _NUMBER.search(name)
    return "" if match is None else name[: match.end()]


def number_in(name: str, prefix: str) -> Optional[int]:
    """Returns the number of the member of a list that a tensor belongs to."""
    if not name.startswith(prefix + "."):
        return None
    first = name[len(prefix) + 1 :].partition(".")[0]
    return int(first) if first.isdigit() else None


def _lists_of(configured: Configured, key: str, size: int) -> List[Tuple[str, List[Any]]]:
    """Returns the lists beside a key that have an item for each of what it counts."""
    config = configured.copy()
    owner, _ = owner_of(config, key)
    if isinstance(owner, list):
        return []
    place = key.rpartition(".")[0]
    return [
        (f"{place}.{name}" if place else name, value)
        for name, value in items_of(owner)
        if isinstance(value, list) and len(value) == size
    ]


def _shorter(path: str, items: Sequence[Any], keep: Iterable[int]) -> AttributeChange:
    return AttributeChange("", PREFIX + path, list(items), [items[i] for i in keep])


class Kept(NamedTuple):
    """The members of a unit that stay, ascending; they may be words."""

    unit: Unit
    keep: List[int]
    are_words: bool = False

    @property
    def removed(self) -> List[int]:
        return sorted(set(range(self.unit.size)) - set(self.keep))


class Leaving:
    """Members that leave a network.

    Attributes:
        changes: of the configuration.
        kept: what stays of each unit.
        words: the old ids of tokens, by the new ones, if some leave.
        texts: that are read alike by the new tokenizer.
        files: the texts of the directory's files that change; None for those that leave.
    """

    def __init__(self) -> None:
        self.changes: List[AttributeChange] = []
        self.kept: List[Kept] = []
        self.words: Optional[List[int]] = None
        self.texts: List[str] = []
        self.files: Dict[str, Optional[str]] = {}

    def add(
        self,
        configured: Configured,
        counted: Counted,
        keeps: Sequence[Sequence[int]],
        are_words: bool = False,
    ) -> None:
        """Lets all members leave that are not in `keeps`, by units."""
        left = len(keeps[0])
        self.changes.append(AttributeChange("", PREFIX + counted.key, counted.size, left))
        self.kept += [
            Kept(unit, sorted(keep), are_words) for unit, keep in zip(counted.units, keeps)
        ]
        if counted.are_layers:
            lists = _lists_of(configured, counted.key, counted.size)
            self.changes += [_shorter(path, items, sorted(keeps[0])) for path, items in lists]

    def joined(self, other: "Leaving") -> "Leaving":
        """Returns both."""
        both = Leaving()
        both.changes = [*self.changes, *other.changes]
        both.kept = [*self.kept, *other.kept]
        of_words = self if self.words is not None else other
        both.words, both.texts, both.files = of_words.words, of_words.texts, of_words.files
        return both

    def new_name(self, name: str) -> Optional[str]:
        """Returns what a tensor is called afterwards; None if it leaves."""
        lists = [(one, kept.keep) for kept in self.kept for one in kept.unit.lists]
        for prefix, keep in sorted(lists, key=lambda one: -len(one[0])):
            number = number_in(name, prefix)
            if number is not None:
                if number not in keep:
                    return None
                rest = name[len(prefix) + 1 + len(str(number)) :]
                name = f"{prefix}.{keep.index(number)}{rest}"
        return name

    def shapes_after(self, shapes: Shapes) -> Shapes:
        """Returns the tensors that stay, by their new names."""
        found: Shapes = {}
        axes = {name: (axis, kept) for kept in self.kept for name, axis in kept.unit.axes.items()}
        for name, shape in shapes.items():
            now = self.new_name(name)
            if now is None:
                continue
            if name in axes:
                axis, kept = axes[name]
                shape = (*shape[:axis], len(kept.keep), *shape[axis + 1 :])
            found[now] = shape
        return found

    def groups(self) -> List[Dict[str, Any]]:
        """Returns the groups of a plan for what has an index for each member."""
        return [
            {
                "id": f"members{number}",
                "size": kept.unit.size,
                "kept": len(kept.keep),
                "granularity": "group",
                "mixes": not kept.are_words,
                "slices": [
                    {
                        "tensor": name,
                        "axis": axis,
                        "role": "out",
                        "size": kept.unit.size,
                        "keep": kept.keep,
                    }
                    for name, axis in kept.unit.axes.items()
                    if self.new_name(name) is not None
                ],
            }
            for number, kept in enumerate(self.kept)
            if kept.unit.axes
        ]

    def routers(self) -> Dict[str, List[int]]:
        """Returns the experts that leave, by tensors with a number for each: rows of a router, biases."""
        return {
            name: kept.removed
            for kept in self.kept
            if not kept.are_words
            for name in kept.unit.axes
        }

    def layers(self) -> List[str]:
        """Returns the modules that leave as a whole."""
        return [
            f"{prefix}.{number}"
            for kept in self.kept
            if not kept.unit.axes
            for prefix in kept.unit.lists
            for number in kept.removed
        ]


def pass_through(layer: nn.Module) -> None:
    """Makes a layer return what it is given."""
    whole = layer.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        x, result = first_tensor(args, kwargs), whole(*args, **kwargs)
        return x if isinstance(result, Tensor) else type(result)((x, *result[1:]))

    layer.forward = forward  # type: ignore[method-assign]


def first_tensor(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor:
    """Returns what a layer is given first."""
    return next(x for x in (*args, *kwargs.values()) if isinstance(x, Tensor))


class Routers(TorchFunctionMode):
    """Gives removed experts the score -inf, where a router's weight is multiplied.

    Args:
        removed: by the `id` of the weight.
    """

    def __init__(self, removed: Mapping[int, List[int]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._removed = removed

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") == "linear":
            removed = self._removed.get(id(args[1]) if len(args) > 1 else 0)
            if removed is not None:
                result[..., removed] = -torch.inf
        return result
