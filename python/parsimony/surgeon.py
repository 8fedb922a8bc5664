"""The optimal brain surgeon over whole channels: what it costs to remove them once what remains has been
fitted. `pruners/criteria/surgeon.h` is the same for networks that the command runs."""

from __future__ import annotations

import math
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

import torch
from torch import Tensor, nn

from .blocks import Blocks
from .directories import Pretrained
from .inputs import evaluating
from .linear import is_linear, is_transposed, rows_of
from .lockstep import added_by
from .texts import Batch

_RIDGE = 1e-3
_MOST_ROUNDS = 256
_DROPPED_BELOW = 0.8  # removed columns are dropped from matrices of which less is left
_MOST_READERS = 4  # of a group, whose moments are in memory together


class Reader(NamedTuple):
    """A matrix W `[out, in]` that reads the channels of a group."""

    gram: Tensor  # Wᵀ W, [in, in]
    second: Tensor  # Σ x xᵀ of what it reads, [in, in]


def removal_losses(readers: Iterable[Reader], channels: int, ridge: float = _RIDGE) -> List[float]:
    """Removes channel after channel, each time those of least loss, and fits what remains to what the
    whole matrices give. Each channel is as many columns of a matrix, side by side.

    Returns:
        For each channel Σ ‖W X − Ŵ X_kept‖² / ‖W X‖² without it and those before it; nothing if all that
        is read is zero.
    """
    systems = [_System(reader, channels, ridge) for reader in readers]
    systems = [system for system in systems if system.whole > 0]
    if not systems:
        return []
    result, before = [math.inf] * channels, 0.0
    at_once = -(-channels // _MOST_ROUNDS)
    for removed in range(0, channels, at_once):
        loss = torch.stack([system.losses().cpu() for system in systems]).sum(0)
        gone = loss.argsort(stable=True)[: min(at_once, channels - removed)]
        lost = sum(system.remove(gone) for system in systems)
        for place, channel in enumerate(gone.tolist(), 1):
            result[channel] = before + lost * place / len(gone)
        before += lost
    return result


class _System:
    """A matrix while channels are removed from it."""

    def __init__(self, reader: Reader, channels: int, ridge: float) -> None:
        self.gram, second = reader
        self.whole = float((self.gram * second).sum())
        self._channels = channels
        self._columns = torch.arange(len(second)).to(second.device).reshape(channels, -1)
        self._left = torch.arange(channels)  # those that the matrices have still
        mean = second.diagonal().mean()
        identity = torch.eye(len(second)).to(second)
        factor, failed = torch.linalg.cholesky_ex(second + ridge * mean * identity)
        if int(failed) != 0:
            self.whole = 0.0
            return
        self.inverse = torch.cholesky_inverse(factor)

    def losses(self) -> Tensor:
        """Returns what the removal of each channel costs; infinity where it was removed."""
        found = torch.full((self._channels,), math.inf).to(self.gram)
        rows, columns = self._columns[self._left, :, None], self._columns[self._left, None, :]
        solved = torch.linalg.solve(self.inverse[rows, columns], self.gram[rows, columns])
        found[self._left] = solved.diagonal(dim1=-2, dim2=-1).sum(-1) / self.whole
        return found

    def remove(self, gone: Tensor) -> float:
        """Returns what that costs."""
        lost = self._columns[gone].flatten()
        rows, read = self.inverse[lost], self.gram[lost]
        taken = torch.linalg.solve(rows[:, lost], rows)
        own = read[:, lost]
        cost = float(torch.linalg.solve(rows[:, lost], own).trace()) / self.whole
        rest = read - own @ taken
        self.inverse.addmm_(rows.T, taken, alpha=-1)
        self.gram.addmm_(read.T, taken, alpha=-1).addmm_(taken.T, rest, alpha=-1)
        self._left = self._left[~torch.isin(self._left, gone)]
        if self._columns[self._left].numel() < _DROPPED_BELOW * len(self.gram):
            left = self._columns[self._left].flatten()
            self.inverse, self.gram = self.inverse[left][:, left], self.gram[left][:, left]
            new = torch.arange(len(left)).to(left.device)
            self._columns[self._left] = new.reshape(-1, self._columns.shape[1])
        return cost


def channel_scores(
    network: Pretrained,
    batches: Sequence[Batch],
    device: torch.device,
    groups: Sequence[Mapping[str, Any]],
) -> Dict[str, Tensor]:
    """Returns scores of the indices along axes of weights, by `WEIGHT@AXIS`, for the groups of a plan that
    linear layers read. Weights of one block are in memory at a time, and what a group's layers read.
    """
    blocks = Blocks(network, device)
    modules = dict(blocks.model.named_modules())
    readers: Dict[str, Mapping[str, Any]] = {}
    for group in groups:
        own = [part for part in group["slices"] if _reads(modules, part, group)]
        if 0 < len(own) <= _MOST_READERS:
            readers.update((part["tensor"][: -len(".weight")], group) for part in own)
    with evaluating(blocks.model), blocks.entering():
        called = added_by(blocks.model, list(readers), lambda: blocks.run(batches[0]))
    found: Dict[str, Tensor] = {}
    read: Dict[str, List[Reader]] = {}
    with evaluating(blocks.model):
        with blocks.lockstep(batches, lambda *_: None, dict.fromkeys(called, False)) as runs:
            for path in iter(runs.advance, None):
                if path not in called:
                    blocks.enter(path)
                    continue
                group = readers[path]
                known = read.setdefault(group["id"], [])
                layer = modules[path]
                pairs = zip(batches, runs.stops)
                known.append(
                    _reader(
                        layer, (rows_of(s.input.float(), b.mask.to(device)) for b, s in pairs if s)
                    )
                )
                if len(known) < sum(readers[one] is group for one in called):
                    continue
                losses = removal_losses(read.pop(group["id"]), group["size"])
                axis = 0 if is_transposed(layer) else 1
                if losses:
                    each = layer.get_parameter("weight").shape[axis] // group["size"]
                    scores = torch.tensor(losses).repeat_interleave(each) / each
                    found[f"{path}.weight@{axis}"] = scores
    return found


def _reads(
    modules: Mapping[str, nn.Module], part: Mapping[str, Any], group: Mapping[str, Any]
) -> bool:
    """Returns whether a slice is what a linear layer reads, as many elements of each channel."""
    path, _, leaf = part["tensor"].rpartition(".")
    if part["role"] != "in" or leaf != "weight" or part["size"] % group["size"] != 0:
        return False
    layer = modules.get(path)
    if layer is None or not is_linear(layer) or part["axis"] != (0 if is_transposed(layer) else 1):
        return False
    each = part["size"] // group["size"]
    kept = {index // each for index in part["keep"]}
    return len(kept) == group["kept"]  # channels lie side by side


def _reader(layer: nn.Module, inputs: Iterable[Tensor]) -> Reader:
    weight = layer.get_parameter("weight").detach().double()
    weight = weight.T if is_transposed(layer) else weight
    second: Optional[Tensor] = None
    total, count = torch.zeros(weight.shape[1]).to(weight), 0
    for x in inputs:
        products = (x.T @ x).double()
        second = products if second is None else second + products
        total, count = total + x.sum(0).double(), count + len(x)
    assert second is not None
    if getattr(layer, "bias", None) is not None:  # which makes up for a mean
        second = second - torch.outer(total, total) / count
    return Reader(weight.T @ weight, second)
