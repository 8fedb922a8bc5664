"""Compares a small directory's network with the original whose removed parts are zero."""

from __future__ import annotations

import contextlib
import copy
import math
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch
from torch import Tensor, nn

from .blocks import Blocks
from .directories import PROVEN_IN, Pretrained, for_one_call
from .editing import join, set_zero
from .errors import UnsupportedError, VerificationError
from .inputs import Inputs, evaluating
from .members import Leaving, Routers, pass_through
from .plan import Cut, Cuts, Plan
from .proof import NormsOverKept, compare, outputs_of

# Whose functions `NormsOverKept` knows, or which compute channel by channel.
_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.modules.batchnorm._BatchNorm)

_SHARE_OF_MEMORY = 0.7  # that a small network may take as a whole


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
    found = _small_outputs(network, small, inputs)
    what = "the small network"
    expected = _Masked(network, plan, leaving).outputs(originals)
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


def _small_outputs(
    network: Pretrained, small: Path, inputs: Sequence[Inputs]
) -> List[List[Tensor]]:
    """Returns what `from_pretrained` of a directory computes, or its blocks, one at a time, where
    memory is short."""
    try:
        written = Pretrained(small)
        size = sum(math.prod(one.shape) for one in written.stored.values())
        if size * PROVEN_IN.itemsize > _SHARE_OF_MEMORY * _free_memory():
            blocks = Blocks(written, torch.device("cpu"), PROVEN_IN)
            model, entering = blocks.model, blocks.entering()
        else:
            model = network.kind.from_pretrained(small, dtype=PROVEN_IN)
            entering = contextlib.nullcontext()
            for_one_call(model)
    except Exception as error:
        raise UnsupportedError(f"the small network does not load: {error}") from error
    try:
        with entering, evaluating(model):
            return outputs_of(model, inputs)
    except Exception as error:
        raise VerificationError(f"the small network does not run: {error}") from error


def _free_memory() -> int:
    """Returns the bytes of memory that are available."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return 1 << 62


class _Masked:
    """The original whose removed parts are zero, whose normalisations of channels are over those that
    are kept, and from which members leave; one block at a time in memory."""

    def __init__(self, network: Pretrained, plan: Plan, leaving: Leaving) -> None:
        self._cuts, self._values = plan.cuts(), plan.values
        self._leaving = leaving
        self._routers = {network.name_of(x): removed for x, removed in leaving.routers().items()}
        self._names = {network.name_of(x): x for x in network.stored}
        self._blocks = Blocks(network, torch.device("cpu"), PROVEN_IN, self._masked)
        # By what is in memory, as the names are for modules.
        self._norms: Dict[int, Cuts] = {}
        self._scores: Dict[int, List[int]] = {}
        for path, part in self._blocks.model.named_modules():
            cut = self._cut_of(path)
            if cut is not None and not isinstance(part, _NORMS):
                _narrow(part, cut)
        for path in leaving.layers():
            pass_through(self._blocks.model.get_submodule(path))

    def outputs(self, inputs: Sequence[Inputs]) -> List[List[Tensor]]:
        blocks = self._blocks
        self._entered()
        modes = NormsOverKept(self._norms), Routers(self._scores)
        with evaluating(blocks.model), blocks.entering(self._entered), modes[0], modes[1]:
            found = outputs_of(blocks.model, inputs)
        return [[self._kept(x) for x in outputs] for outputs in found]

    def _masked(self, stored: str, tensor: Tensor) -> Tensor:
        """Returns the elements of a stored tensor."""
        cuts = self._cuts.get(stored, {})
        if not cuts and stored not in self._values:
            return tensor
        tensor = tensor.clone()
        set_zero(tensor, cuts)
        if stored in self._values:
            _set_kept(tensor, cuts, self._values[stored])
        return tensor

    def _entered(self) -> None:
        self._norms.clear()
        self._scores.clear()
        for path, part in self._blocks.model.named_modules():
            weight, cut = part._parameters.get("weight"), self._cut_of(path)
            if cut is not None and weight is not None and not weight.is_meta:
                self._norms[id(weight)] = {0: cut}
            for name, own in (*part._parameters.items(), *part._buffers.items()):
                removed = self._routers.get(join(path, name))
                if removed is None or own is None or own.is_meta:
                    continue
                if own.dim() == 1:
                    own.data[removed] = -torch.inf
                elif own.dim() == 2:
                    self._scores[id(own)] = removed

    def _cut_of(self, path: str) -> Optional[Cut]:
        """Returns what is kept of the channels of a normalisation."""
        kind = type(self._blocks.model.get_submodule(path)).__name__
        cuts = self._cuts.get(self._names.get(join(path, "weight"), ""), {})
        return cuts[0] if list(cuts) == [0] and "Norm" in kind else None

    def _kept(self, output: Tensor) -> Tensor:
        """Returns the logits of words that stay."""
        words = self._leaving.words
        sizes = {kept.unit.size for kept in self._leaving.kept if kept.are_words}
        return output[..., words] if output.shape[-1] in sizes else output


def _set_kept(tensor: Tensor, axes: Cuts, values: Tensor) -> None:
    """Sets the elements that are kept."""
    index: List[Tensor] = []
    for axis, size in enumerate(tensor.shape):
        kept = torch.tensor(axes[axis].keep) if axis in axes else torch.arange(size)
        index.append(kept.view([-1 if axis == other else 1 for other in range(tensor.dim())]))
    tensor[tuple(index)] = values.to(tensor.dtype)


def _narrow(norm: nn.Module, cut: Cut) -> None:
    """Makes a normalisation that a class wrote itself one of the kept channels of the last axis; the
    others are zero."""
    keep = torch.tensor(cut.keep)
    whole = norm.forward
    made: List[nn.Module] = []  # once the weights are there

    def narrow() -> nn.Module:
        small = copy.deepcopy(norm)
        small.__dict__.pop("forward")
        for own in (small._parameters, small._buffers):
            for name, tensor in own.items():
                if tensor is not None and tensor.shape == (cut.size,):
                    own[name] = nn.Parameter(tensor.detach()[keep], requires_grad=False)
        return small

    def forward(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if x.shape[-1] != cut.size:
            return whole(x, *args, **kwargs)  # type: ignore[no-any-return]
        if not made:
            made.append(narrow())
        (small,) = made
        result = small(x.index_select(-1, keep), *args, **kwargs)
        return result.new_zeros(x.shape).index_copy(-1, keep, result)

    norm.forward = forward  # type: ignore[method-assign]
