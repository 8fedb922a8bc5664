"""Attention that divides by the root of the size of its heads.

`F.scaled_dot_product_attention` divides by that of the current size unless a scale is passed. The
network was trained with the old size, so the weights that produce the queries are multiplied by
√(new/old). A model that is built from a configuration computes a scale that it passes from the new
size: there the attribute with the scale is changed as well.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .editing import Factor, Journal, named_tensors
from .inputs import evaluating
from .plan import AttributeChange
from .program import Program

_NAME = "scaled_dot_product_attention"
_SCALE = 6  # its operand
_MOST_SOURCES = 8


class Queries(NamedTuple):
    """The queries of one call: the calling module, the size of a head, whether `forward` passes the
    scale, and the tensors that produce them, with axis and indices; empty if no tensors are
    proportional to them."""

    module: str
    size: int
    scaled: bool
    sources: Dict[str, Tuple[int, List[int]]]


class _Calls(TorchFunctionMode):
    """Records the queries of all calls, other than by `nn.MultiheadAttention`."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.queries: List[Tensor] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") == _NAME:
            self.queries.append(args[0] if args else kwargs["query"])
        return func(*args, **kwargs)


def queries_of(program: Program) -> List[Queries]:
    """Returns the queries of all calls, in order."""
    callers = [
        (operation.module, operation.operand(_SCALE))
        for operation in program.operations
        if operation.kind == f"aten::{_NAME}"
        and not isinstance(program.module.get_submodule(operation.module), nn.MultiheadAttention)
    ]
    if not callers:
        return []
    axes = program.producers()
    names = {id(tensor): name for name, tensor in named_tensors(program.module).items()}
    try:
        with program.differentiable() as inputs:
            with _Calls() as calls:
                inputs.call(program.module)
            if len(calls.queries) != len(callers):  # some results are not read
                return [Queries("", 0, False, {})]
            return [
                Queries(caller, query.shape[-1], scale is not None, sources_of(query, names, axes))
                for (caller, scale), query in zip(callers, calls.queries)
            ]
    except RuntimeError:  # it has no derivatives
        return [Queries("", 0, False, {})]


def sources_of(
    query: Tensor, names: Dict[int, str], axes: Dict[str, int]
) -> Dict[str, Tuple[int, List[int]]]:
    """Returns the nearest parameters in which the query is homogeneous of degree 1: by Euler's theorem, the
    sum of their products with the derivatives of the query is the query."""
    if query.grad_fn is None:
        return {}
    leaves = [leaf for leaf in _leaves(query.grad_fn) if id(leaf) in names][:_MOST_SOURCES]
    if not leaves:
        return {}
    gradients = torch.autograd.grad(query, leaves, query.detach(), retain_graph=True)
    whole, degree = float(query.detach().double().square().sum()), 0.0
    found = {}
    for leaf, gradient in zip(leaves, gradients):
        degree += float((leaf.detach() * gradient).double().sum())
        name = names[id(leaf)]
        parts = {axis: _not_zero(gradient, axis) for axis in range(leaf.dim())}
        axis = axes.get(name, min(parts, key=lambda axis: len(parts[axis]) / leaf.shape[axis]))
        if parts[axis]:
            found[name] = (axis, parts[axis])
        if abs(degree - whole) <= 1e-4 * whole:
            return found
    return {}


def _leaves(root: Any) -> Iterator[Tensor]:
    """Yields the parameters that a result is computed from, the nearest first."""
    level, seen = [root], {root}
    while level:
        below = []
        for node in level:
            for after, _ in node.next_functions:
                if after is not None and after not in seen:
                    seen.add(after)
                    own = _parameters_of(after)
                    yield from own
                    below += [] if own else [after]
        level = below


def _parameters_of(node: Any, most_steps: int = 3) -> List[Tensor]:
    """Returns the parameters that a node combines, such as a transposed weight; else none."""
    if hasattr(node, "variable"):
        return [node.variable]
    below = [after for after, _ in node.next_functions]
    if most_steps == 0 or None in below:
        return []
    parts = [_parameters_of(after, most_steps - 1) for after in below]
    return [leaf for part in parts for leaf in part] if all(parts) else []


def _not_zero(tensor: Tensor, axis: int) -> List[int]:
    others = [other for other in range(tensor.dim()) if other != axis]
    sizes = tensor.abs().amax(others) if others else tensor.abs()
    return [int(index) for index in sizes.nonzero()]


class Kept(NamedTuple):
    """How scales were kept: by products, and by attributes with 1/√size for another path through
    `forward`."""

    factors: Dict[str, Factor]
    attributes: List[AttributeChange]


def kept_scales(
    program: Program, queries: Sequence[Queries], journal: Journal, with_scales: bool
) -> Kept:
    """Returns the changes that keep the divisor of a module whose heads were cut.

    Args:
        with_scales: also of calls to which a scale is passed, where it is an attribute.
    """
    module = program.module
    tensors = named_tensors(module)
    with evaluating(module, program.training), _Calls() as calls:
        program.inputs.call(module)
    kept = Kept({}, [])
    for one, now in zip(queries, calls.queries):
        size = now.shape[-1]
        if size == one.size or one.sources.keys() & kept.factors.keys():
            continue
        attributes = list(_attributes(module, one, size))
        if one.scaled and not (with_scales and attributes):
            continue
        for name, (axis, indices) in one.sources.items():
            of_queries = set(indices)
            left = journal.kept(tensors[name], axis).keep
            places = [place for place, index in enumerate(left) if index in of_queries]
            kept.factors[name] = Factor(axis, places, math.sqrt(size / one.size))
        kept.attributes.extend(attributes)
    return kept


def _attributes(module: nn.Module, queries: Queries, size: int) -> Iterator[AttributeChange]:
    if not queries.sources:
        return
    part = module.get_submodule(queries.module)
    for name, value in vars(part).items():
        if type(value) is float and math.isclose(value, queries.size**-0.5, rel_tol=1e-6):
            yield AttributeChange(queries.module, name, value, size**-0.5)
