"""Compares a small directory's network with the original whose removed parts are zero."""

from __future__ import annotations

import contextlib
import copy
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence

import torch
from torch import Tensor, nn

from .directories import PROVEN_IN, Pretrained, for_one_call, load
from .editing import join, set_zero
from .errors import UnsupportedError, VerificationError
from .inputs import Inputs, evaluating
from .members import Leaving
from .plan import Cut, Cuts, Plan
from .proof import NormsOverKept, compare, outputs_of

# Whose functions `NormsOverKept` knows, or which compute channel by channel.
_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.modules.batchnorm._BatchNorm)


def prove(
    network: Pretrained,
    plan: Plan,
    small: Path,
    seed: int,
    program: Callable[[], nn.Module],
    leaving: Leaving,
) -> None:
    """Sets `plan.proof`.

    Args:
        plan: of the directory.
        small: the directory that it made.
        program: returns the small network as the command computes it, if that verifies it.
        leaving: what leaves as a whole.

    Raises:
        VerificationError: the networks differ, or the small one does not run.
        UnsupportedError: it does not load.
    """
    inputs = [network.inputs("cpu", seed + i) for i in range(2)]
    originals = inputs
    if leaving.words is not None:
        words = torch.tensor(leaving.words)
        inputs = [
            one.map(lambda x: x if x.is_floating_point() else x % len(words)) for one in inputs
        ]
        originals = [one.map(lambda x: x if x.is_floating_point() else words[x]) for one in inputs]
    try:
        model = network.kind.from_pretrained(small, dtype=PROVEN_IN)
    except Exception as error:
        raise UnsupportedError(f"the small network does not load: {error}") from error
    try:
        found = _outputs(model, inputs)
    except Exception as error:
        raise VerificationError(f"the small network does not run: {error}") from error
    what = "the small network"
    expected = _of_masked(network, plan, leaving, originals)
    result = compare("the masked original", expected, found, what)
    # What mixes by more than normalisations; in other types it would be compared too loosely.
    of_type = next(network.model.parameters()).dtype == PROVEN_IN
    if result.fault and plan.mixes and of_type and not leaving.kept:
        with contextlib.suppress(Exception), torch.no_grad():
            flat = [Inputs(tuple(one.tensors()), {}) for one in inputs]
            expected = outputs_of(program(), flat)
            reference = "the command's small network, which it verified"
            result = compare(reference, expected, found, what)
    if result.fault:
        raise VerificationError(result.fault)
    plan.proof = result.proof


def _of_masked(
    network: Pretrained, plan: Plan, leaving: Leaving, inputs: Sequence[Inputs]
) -> List[List[Tensor]]:
    """Returns the outputs of the original whose removed parts are zero, and whose normalisations of
    channels are over those that are kept."""
    tensors, cuts = load(network.weights), plan.cuts()
    for name, axes in cuts.items():
        set_zero(tensors[name], axes)
    for name, values in plan.values.items():
        _set_kept(tensors[name], cuts.get(name, {}), values)
    config = network.configured.copy()
    model = network.kind.from_pretrained(None, config=config, state_dict=tensors, dtype=PROVEN_IN)
    by_weight: Dict[int, Cuts] = {}
    for path, part in model.named_modules():
        cut = cuts.get(network.names.get(join(path, "weight"), ""), {})
        if list(cut) != [0] or "Norm" not in type(part).__name__:
            continue
        by_weight[id(part.weight)] = cut
        if not isinstance(part, _NORMS):
            _narrow(part, cut[0])
    with NormsOverKept(by_weight), leaving.masked(model, network.name_of):
        return [[_kept(x, leaving) for x in outputs] for outputs in _outputs(model, inputs)]


def _kept(output: Tensor, leaving: Leaving) -> Tensor:
    """Returns the logits of words that stay."""
    sizes = {kept.unit.size for kept in leaving.kept if kept.keep == leaving.words}
    return output[..., leaving.words] if output.shape[-1] in sizes else output


def _set_kept(tensor: Tensor, axes: Cuts, values: Tensor) -> None:
    """Sets the elements that are kept."""
    index: List[Tensor] = []
    for axis, size in enumerate(tensor.shape):
        kept = torch.tensor(axes[axis].keep) if axis in axes else torch.arange(size)
        index.append(kept.view([-1 if axis == other else 1 for other in range(tensor.dim())]))
    tensor[tuple(index)] = values


def _outputs(model: nn.Module, inputs: Sequence[Inputs]) -> List[List[Tensor]]:
    for_one_call(model)
    with evaluating(model), torch.no_grad():
        return outputs_of(model, inputs)


def _narrow(norm: nn.Module, cut: Cut) -> None:
    """Makes a normalisation that a class wrote itself one of the kept channels of the last axis; the
    others are zero."""
    keep = torch.tensor(cut.keep)
    small = copy.deepcopy(norm)
    for own in (small._parameters, small._buffers):
        for name, tensor in own.items():
            if tensor is not None and tensor.shape == (cut.size,):
                own[name] = nn.Parameter(tensor.detach()[keep], requires_grad=False)

    whole = norm.forward

    def forward(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if x.shape[-1] != cut.size:
            return whole(x, *args, **kwargs)  # type: ignore[no-any-return]
        result = small(x.index_select(-1, keep), *args, **kwargs)
        return result.new_zeros(x.shape).index_copy(-1, keep, result)

    norm.forward = forward  # type: ignore[method-assign]
