"""Sizes that the `forward` of a module reads from its integer attributes.

A plan changes such sizes in the graph. They are found by comparing the graphs of the module and of the
small network that the command wrote: these have the same operations, some with different integers. An
integer that differs belongs to the module whose `forward` contains the operation, or to an enclosing
one; its attributes of that value are candidates for change. The proof decides.
"""

from __future__ import annotations

import itertools
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import nn

from .layers import follows_its_tensors
from .plan import AttributeChange
from .trace import Trace

_MOST_CHOICES = 8


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


def changed_sizes(trace: Trace, small: Path) -> List[SizeChange]:
    """Returns the integers that the plan changes in the operations of a traced module."""
    old = [(op.module, op.node) for op in trace.operations if op.kind.startswith("aten::")]
    jit: Any = torch.jit
    graph = jit.load(str(small), map_location="cpu").inlined_graph
    new = [node for node in _nodes(graph) if node.kind().startswith("aten::")]
    changes = []
    for i, j in _aligned([node.kind() for _, node in old], [node.kind() for node in new]):
        (module, before), after = old[i], new[j]
        for was, now in zip(_integers(before), _integers(after)):
            if was is not None and now is not None and was != now:
                source = before.sourceRange().strip().split("\n")[0]
                changes.append(SizeChange(module, before.kind()[6:], source, was, now))
    return changes


def _aligned(old: Sequence[str], new: Sequence[str]) -> Iterator[Tuple[int, int]]:
    if old == new:
        yield from zip(range(len(old)), range(len(new)))
        return
    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        yield from ((block.a + k, block.b + k) for k in range(block.size))


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)


def _integers(node: Any) -> List[Optional[int]]:
    """Returns the operands that are integers, with lists flattened; None for all others."""
    found: List[Optional[int]] = []
    for value in node.inputs():
        source = value.node()
        parts = list(source.inputs()) if source.kind() == "prim::ListConstruct" else [value]
        for part in parts:
            constant = part.toIValue() if part.node().kind() == "prim::Constant" else None
            found.append(constant if type(constant) is int else None)
    return found


def attribute_choices(
    root: nn.Module, changes: Sequence[SizeChange]
) -> List[List[AttributeChange]]:
    """Returns choices of attributes to change, the likeliest first, at least one."""
    expected: Dict[Tuple[str, str], Dict[int, int]] = {}
    options: Dict[Tuple[type, int], List[str]] = {}
    for change in changes:
        for path in _around(change.module):
            module = root.get_submodule(path)
            names = [name for name, value in vars(module).items() if _holds(value, change.before)]
            if path == change.module and follows_its_tensors(module):
                break
            if names:
                options[type(module), change.before] = names
                for name in names:
                    expected.setdefault((path, name), {})[change.before] = change.after
                break
    many = [[tuple(names), *((name,) for name in names)] for names in options.values()]
    many = [choice[:1] if len(choice) == 2 else choice for choice in many]
    found = []
    for chosen in itertools.islice(itertools.product(*many), _MOST_CHOICES):
        follow = dict(zip(options, chosen))
        found.append(_changes(root, expected, follow))
    return found


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
