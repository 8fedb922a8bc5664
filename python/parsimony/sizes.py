"""Sizes that the `forward` of a module reads from its integer attributes.

A plan changes such sizes in the program. They are found by comparing the programs of the module and of
the small network that the command wrote: these have the same calls, some with different integers. An
integer that differs belongs to the module whose `forward` contains the call, or to an enclosing one;
its attributes of that value are candidates for change. The proof decides.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from torch import nn

from .layers import follows_its_tensors
from .plan import AttributeChange, Cuts
from .program import calls_of, existing_path

_MOST_CHOICES = 8
_MOST_TIMES = 4


class SizeChange(NamedTuple):
    """An integer operand of an operation, before and after."""

    module: str
    kind: str
    source: str
    before: int
    after: int

    def __str__(self) -> str:
        where = f"{self.source}: " if self.source else ""
        return f"{where}{self.kind} of {self.module or 'the module'} contains {self.before}"


def changed_sizes(root: nn.Module, program: Path, small: Path) -> List[SizeChange]:
    """Returns the integers that the plan changes in the calls of a module's program."""
    cut, modules = calls_of(small), dict(root.named_modules(remove_duplicate=False))
    return [
        SizeChange(existing_path(modules, call.module), call.kind, call.source, was, now)
        for name, call in calls_of(program).items()
        if name in cut
        for before, after in zip(call.arguments, cut[name].arguments)
        for was, now in _paired(before, after)
        if was is not None and now is not None and was != now
    ]


def _paired(before: Sequence[Optional[int]], after: Sequence[Optional[int]]) -> Iterator[Any]:
    """Pairs elements; a size that became a list of equal ones, of split, is paired with one."""
    return zip(before, after if len(before) == len(after) or len({*after}) == 1 else ())


def attribute_choices(
    root: nn.Module, changes: Sequence[SizeChange], cuts: Mapping[str, Cuts]
) -> List[List[AttributeChange]]:
    """Returns choices of attributes to change, the likeliest first, at least one.

    The last ones have attributes, too, from which `forward` may compute the sizes.
    """
    expected: Dict[Tuple[str, str], Dict[int, int]] = {}
    options: Dict[Tuple[type, int], List[str]] = {}
    for change in changes:
        for path in _around(change.module):
            module = root.get_submodule(path)
            names = [name for name, value in vars(module).items() if _holds(value, change.before)]
            if path == change.module and follows_its_tensors(module):
                break
            if names:
                known = options.setdefault((type(module), change.before), [])
                known += [name for name in names if name not in known]
                for name in names:
                    expected.setdefault((path, name), {})[change.before] = change.after
                break
    many = [[tuple(names), *((name,) for name in names)] for names in options.values()]
    many = [choice[:1] if len(choice) == 2 else choice for choice in many]
    found = []
    for chosen in itertools.islice(itertools.product(*many), _MOST_CHOICES):
        follow = dict(zip(options, chosen))
        found.append(_changes(root, expected, follow))
    chosen = {(change.module, change.attribute): change for change in found[0]}
    others = {**_factors(root, changes), **_of_layers(root, cuts)}
    rest = [change for place, change in others.items() if place not in chosen]
    names = dict.fromkeys(change.attribute for change in rest)
    alone = [[change for change in rest if change.attribute == name] for name in names]
    further = [*alone, rest] if len(alone) > 1 else alone
    return found + [found[0] + one for one in further[: _MOST_CHOICES + 1]]


def _factors(
    root: nn.Module, changes: Sequence[SizeChange]
) -> Dict[Tuple[str, str], AttributeChange]:
    """Returns the attributes of which a changed size is a small multiple, as in 3 * self.dim."""
    return {
        (change.module, name): AttributeChange(
            change.module, name, value, value * change.after // change.before
        )
        for change in changes
        for name, value in _own_integers(root.get_submodule(change.module))
        if value > _MOST_TIMES
        if change.before in [value * times for times in range(2, _MOST_TIMES + 1)]
        if value * change.after % change.before == 0
    }


def _of_layers(root: nn.Module, cuts: Mapping[str, Cuts]) -> Dict[Tuple[str, str], AttributeChange]:
    """Returns the attributes of modules that equal a size of a layer inside, if it is cut alike
    wherever it occurs."""
    sizes: Dict[str, Dict[int, Set[int]]] = {}
    for name, axes in cuts.items():
        parent = name.rpartition(".")[0].rpartition(".")[0]
        for cut in axes.values():
            sizes.setdefault(parent, {}).setdefault(cut.size, set()).add(len(cut.keep))
    return {
        (path, name): AttributeChange(path, name, value, next(iter(after[value])))
        for path, after in sizes.items()
        for name, value in _own_integers(root.get_submodule(path))
        if len(after.get(value, ())) == 1
    }


def _own_integers(module: nn.Module) -> Iterator[Tuple[str, int]]:
    """Yields the integers among the attributes of a module that does not follow its tensors."""
    if not follows_its_tensors(module):
        for name, value in vars(module).items():
            if type(value) is int:
                yield name, value


def _changes(
    root: nn.Module,
    expected: Dict[Tuple[str, str], Dict[int, int]],
    follow: Dict[Tuple[type, int], Tuple[str, ...]],
) -> List[AttributeChange]:
    found = []
    for (path, name), numbers in expected.items():
        module = root.get_submodule(path)
        numbers = {
            old: new for old, new in numbers.items() if name in follow.get((type(module), old), ())
        }
        before = getattr(module, name)
        after = _replaced(before, numbers)
        if after != before:
            found.append(AttributeChange(path, name, before, after))
    return found


def _around(path: str) -> Iterator[str]:
    """Yields the module and the enclosing ones."""
    while path:
        yield path
        path = path.rpartition(".")[0]
    yield ""


def _holds(value: Any, number: int) -> bool:
    if isinstance(value, (tuple, list)):
        return any(type(part) is int and part == number for part in value)
    return type(value) is int and value == number


def _replaced(value: Any, numbers: Dict[int, int]) -> Any:
    if isinstance(value, (tuple, list)):
        parts = [numbers.get(part, part) if type(part) is int else part for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    return numbers.get(value, value)
