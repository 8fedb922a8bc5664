"""Compares the small module with the masked original, with the user's torch."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .errors import ConfigError
from .layers import remaining_groups
from .plan import Cut, Cuts, Proof
from .inputs import Inputs
from .tree import tensors_in

# Relative to the largest output; allows for the rounding of networks with many layers.
_ALLOWED = {torch.float64: 1e-9, torch.float16: 2e-2, torch.bfloat16: 1e-1}
_ALLOWED_SINGLE = 1e-4


class NormsOverKept(TorchFunctionMode):
    """During its lifetime, normalisations over channels take their statistics from the kept ones.

    A layer norm whose weight is cut computes on the kept channels, and returns zero elsewhere.
    """

    def __init__(self, cuts: Dict[int, Cuts]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._cuts = cuts

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        over_kept = _NORMS.get(getattr(func, "__name__", ""))
        if over_kept is not None:
            weight = kwargs.get("weight", args[2] if len(args) > 2 else None)
            axes = self._cuts.get(id(weight))
            if axes is not None:
                return over_kept(func, axes, *args, **kwargs)
        return func(*args, **kwargs)


def _select(tensor: Tensor, axis: int, cut: Cut) -> Tensor:
    return tensor.index_select(axis, torch.tensor(cut.keep, device=tensor.device))


def _spread(small: Tensor, like: Tensor, axis: int, cut: Cut) -> Tensor:
    index = torch.tensor(cut.keep, device=like.device)
    return torch.zeros_like(like, dtype=small.dtype).index_copy(axis, index, small)


def _affine(
    weight: Tensor, axis: int, cut: Cut, args: Tuple[Any, ...], kwargs: Dict[str, Any]
) -> Tuple[List[Tensor], Tuple[Any, ...]]:
    """Returns the small weight and bias of a norm, and the arguments after these."""
    given = [_select(weight, axis, cut)]
    if args and isinstance(args[0], Tensor):
        given.append(_select(args[0], axis, cut))
        args = args[1:]
    if isinstance(kwargs.get("bias"), Tensor):
        kwargs["bias"] = _select(kwargs["bias"], axis, cut)
    return given, args


def _layer_norm(
    func: Any, axes: Cuts, input: Tensor, shape: Any, weight: Tensor, *args: Any, **kwargs: Any
) -> Tensor:
    ((axis, cut),) = axes.items()
    of_input = input.dim() - weight.dim() + axis
    given, args = _affine(weight, axis, cut, args, kwargs)
    small = _select(input, of_input, cut)
    result = func(small, small.shape[-weight.dim() :], *given, *args, **kwargs)
    return _spread(result, input, of_input, cut)


def _group_norm(
    func: Any, axes: Cuts, input: Tensor, groups: int, weight: Tensor, *args: Any, **kwargs: Any
) -> Tensor:
    cut = axes[0]
    given, args = _affine(weight, 0, cut, args, kwargs)
    left = remaining_groups(cut, groups) or groups
    result = func(_select(input, 1, cut), left, *given, *args, **kwargs)
    return _spread(result, input, 1, cut)


_NORMS: Dict[str, Callable[..., Tensor]] = {
    "layer_norm": _layer_norm,
    "rms_norm": _layer_norm,
    "group_norm": _group_norm,
}


def outputs_of(module: nn.Module, inputs: Sequence[Inputs]) -> List[List[Tensor]]:
    """Returns the output tensors of a module, for each of `inputs`."""
    found = [[tensor.detach() for tensor in tensors_in(one.call(module))] for one in inputs]
    if not all(found):
        raise ConfigError("the module returns no tensor; its outputs must contain one")
    return found


class Comparison(NamedTuple):
    """The outcome: `proof` has the numbers if there are any, `fault` is empty if they agree."""

    proof: Optional[Proof]
    fault: str


def compare(
    reference: str,
    expected: Sequence[Sequence[Tensor]],
    found: Sequence[Sequence[Tensor]],
    what: str = "the small module",
) -> Comparison:
    """Compares outputs of two networks for the same inputs."""
    difference = scale = allowed = 0.0
    for one, other in zip(expected, found):
        if [tensor.shape for tensor in one] != [tensor.shape for tensor in other]:
            shapes = [[tuple(tensor.shape) for tensor in outputs] for outputs in (one, other)]
            return Comparison(
                None, f"outputs have different shapes: {shapes[1]}, expected {shapes[0]}"
            )
        for a, b in zip(one, other):
            if a.is_meta:
                return Comparison(None, "")
            if a.numel() == 0:
                continue
            if not a.is_floating_point():
                if not torch.equal(a, b):
                    return Comparison(None, "integer outputs differ")
                continue
            relative = _ALLOWED.get(a.dtype, _ALLOWED_SINGLE)
            a, b = a.double(), b.double()
            if not torch.equal(a.isfinite(), b.isfinite()):
                return Comparison(None, "non-finite outputs differ")
            mask = a.isfinite()
            if not mask.any():
                continue
            largest = float(a[mask].abs().max())
            apart = float((a[mask] - b[mask]).abs().max())
            limit = relative * largest
            nothing_yet = allowed == difference == 0  # or what is zero in both
            if nothing_yet or apart / (limit or 1e-30) > difference / (allowed or 1e-30):
                difference, scale, allowed = apart, largest, limit
    proof = Proof(reference, difference, scale, allowed, len(expected))
    if difference <= allowed:
        return Comparison(proof, "")
    return Comparison(
        proof,
        f"{what} differs from {reference} by {difference:.2e} (allowed {allowed:.2e}, "
        f"largest output {scale:.2e})",
    )
