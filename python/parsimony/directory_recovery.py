"""Least squares for directories: each layer of the small network is fitted to what the original computes
in its place, on samples of text, one block in memory at a time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

from .blocks import Blocks
from .directories import Pretrained
from .errors import UnsupportedError
from .inputs import evaluating
from .linear import is_linear, is_transposed, rows_of
from .lockstep import Lockstep, Stop, added_by
from .plan import Cut, Measured, Plan
from .surgeon import channel_scores
from .tensor_file import in_file
from .texts import Batch, Cosines, Losses, Texts

_RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_HELD_OUT = 8  # one sample of so many


class Recovery:
    """Measures small directories on texts, and fits their layers.

    Args:
        network: the original.
        folder: for the fitted weights, for as long as they are used.
        fits: or measures only.
        ridges: relative to the mean of the inputs' squares; what is best on samples that are held out
            is taken, layer by layer.
    """

    def __init__(
        self,
        network: Pretrained,
        texts: Texts,
        device: torch.device,
        folder: Path,
        fits: bool = True,
        ridges: Optional[Sequence[float]] = None,
    ) -> None:
        self.fits, self._folder = fits, folder
        self._network, self._texts, self._device = network, texts, device
        self._ridges = ridges or _RIDGES

    def run(
        self, small: Pretrained, plan: Plan, words: Optional[Sequence[int]]
    ) -> Tuple[Dict[str, Tensor], Measured]:
        """Returns new weights by their names in `plan`, none if they are worse than the cut ones.

        Args:
            words: old numbers of the small network's tokens, if it has others.
        """
        texts = self._texts, self._texts
        if words is not None:
            texts = self._texts.within(words)
        measured = texts[1].measured
        reference = self._measure(words=words, batches=measured)
        original = self._measured(self._network, texts[0].measured, reference)
        cut = self._measured(small, measured, self._measure(reference))
        values: Dict[str, Tensor] = {}
        fitted: Optional[float] = None
        if self.fits:
            pair = _Pair(
                self._network, small, plan, texts, self._device, self._folder, self._ridges
            )
            weights = pair.fitted()
            fitted = self._measured(small, measured, self._measure(reference), weights)
            better = fitted < cut if reference.what == Losses.what else fitted > cut
            if better and math.isfinite(fitted):
                values = {pair.stored[layer]: weight for layer, weight in weights.items()}
        calibrated, counted = texts[1].counts
        return values, Measured(reference.what, original, cut, fitted, counted, calibrated)

    def scores(self, groups: Sequence[Mapping[str, Any]]) -> Dict[str, Tensor]:
        """Returns scores of channels by what is lost once layers are fitted, see `channel_scores`."""
        return channel_scores(self._network, self._texts.calibration, self._device, groups)

    def _measured(
        self,
        network: Pretrained,
        batches: Sequence[Batch],
        into: "Union[Losses, Cosines]",
        weights: Mapping[str, Tensor] = {},
    ) -> float:
        blocks = Blocks(network, self._device)
        blocks.replace(weights)
        return blocks.measure(batches, into)

    def _measure(
        self,
        reference: "Union[Losses, Cosines, None]" = None,
        words: Optional[Sequence[int]] = None,
        batches: Sequence[Batch] = (),
    ) -> "Union[Losses, Cosines]":
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

        if self._network.kind.__name__ in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
            return Losses(words, batches)
        has_logits = self._network.model.get_output_embeddings() is not None
        of_words = words if has_logits else None
        return Cosines(reference if isinstance(reference, Cosines) else None, of_words)


class _Pair:
    """A network, and a small one whose layers are fitted to it.

    Attributes:
        stored: the names of the layers' weights in the plan.
    """

    def __init__(
        self,
        network: Pretrained,
        small: Pretrained,
        plan: Plan,
        texts: Tuple[Texts, Texts],
        device: torch.device,
        folder: Path,
        ridges: Sequence[float],
    ) -> None:
        self._networks, self._folder = (network, small), folder
        self._texts, self._device, self._ridges = texts, device, ridges
        self._cuts = plan.cuts()
        self._originals = {
            renamed["name"]: renamed["tensor"]
            for renamed in plan.data.get("renamings", [])
            if "name" in renamed
        }
        self.stored: Dict[str, str] = {}

    def fitted(self) -> Dict[str, Tensor]:
        """Returns new weights, by layers of the small network."""
        batches, of_small = (texts.calibration for texts in self._texts)
        big, small = (Blocks(network, self._device) for network in self._networks)
        layers = self._layers(small)
        places = {layer: self._place(layer) for layer in layers}
        of_big = {places[layer]: adds for layer, adds in layers.items()}
        found: Dict[str, Tensor] = {}
        with evaluating(big.model), evaluating(small.model):
            with _steps(big, batches, of_big) as ours, _steps(small, of_small, layers) as theirs:
                left = set(layers)
                while left:
                    path = theirs.advance()
                    if path is None:
                        break
                    if path not in layers:
                        small.enter(path)
                        continue
                    left.discard(path)
                    while (other := ours.advance()) != places[path]:
                        if other is None or other in of_big:
                            raise UnsupportedError(
                                f"recover: the original does not run {places[path]!r} in this order"
                            )
                        big.enter(other)
                    pairs = list(zip(ours.stops, theirs.stops))
                    weight = self._fit(path, big, small, pairs)
                    if weight is not None:
                        small.set_weight(path, weight)
                        found[path] = in_file(weight, self._folder / f"{len(found)}.weight")
        return found

    def _place(self, layer: str) -> str:
        """Returns the original's layer."""
        return self._networks[0].name_of(self.stored[layer])[: -len(".weight")]

    def _layers(self, small: Blocks) -> Dict[str, bool]:
        """Returns the linear layers, but for the head, that are called once and have a weight of their
        own, and whether all that becomes of their results is a sum."""
        names = {self._networks[1].name_of(x): x for x in self._networks[1].stored}
        head = small.model.get_output_embeddings()
        candidates = [
            path
            for path, part in small.model.named_modules()
            if is_linear(part) and part is not head and f"{path}.weight" in names
        ]
        for path in candidates:
            own = names[f"{path}.weight"]
            self.stored[path] = self._originals.get(own, own)

        with evaluating(small.model), small.entering():
            return added_by(small.model, candidates, lambda: small.run(self._texts[1].measured[-1]))

    def _fit(
        self,
        path: str,
        big: Blocks,
        small: Blocks,
        pairs: "Sequence[Tuple[Optional[Stop], Optional[Stop]]]",
    ) -> Optional[Tensor]:
        """Returns a new weight for a layer of the small network; None if it should stay."""
        layer = small.model.get_submodule(path)
        whole = big.model.get_submodule(self._place(path))
        rows, columns = (1, 0) if is_transposed(layer) else (0, 1)
        cuts = self._cuts.get(self.stored[path], {})
        weight = layer.get_parameter("weight").detach().double()
        weight = weight if rows == 0 else weight.T
        bias = getattr(layer, "bias", None)
        used, held_out = _Sums(weight), _Sums(weight)
        seen = 0
        for batch, (of_big, of_small) in zip(self._texts[0].calibration, pairs):
            assert of_big is not None and of_small is not None
            mask = batch.mask.to(self._device)
            target = _kept(whole.forward(of_big.input), cuts.get(rows)).float()
            if of_big.beside is not None and of_small.beside is not None:
                target = target + _kept(of_big.beside, cuts.get(rows)).float()
                target = target - of_small.beside.float()
            if bias is not None:
                target = target - bias.float()
            inputs = rows_of(of_small.input.float(), mask)
            target = rows_of(target, mask)
            if seen == 0 and columns not in cuts and _alike(of_big, of_small, cuts.get(rows)):
                return None  # nothing before it has changed
            numbers = torch.arange(seen, seen + len(mask), device=self._device)
            apart = (
                rows_of(numbers[:, None, None].expand(*mask.shape, 1), mask)[:, 0] % _HELD_OUT == 0
            )
            if len(apart) != len(inputs):  # not one for each token
                apart = torch.arange(len(inputs), device=self._device) % _HELD_OUT == 0
            used.add(inputs[~apart], target[~apart])
            held_out.add(inputs[apart], target[apart])
            seen += len(mask)
        fitted = _solved(used, held_out, self._ridges)
        if fitted is None:
            return None
        stored = self._networks[0].stored[self.stored[path]]
        return (fitted if rows == 0 else fitted.T).to(stored.dtype)


class _Sums:
    """Products of inputs, `[N, in]`, and targets, `[N, out]`, summed over samples."""

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight
        self.inputs = weight.new_zeros(weight.shape[1], weight.shape[1])
        self.both = weight.new_zeros(weight.shape)
        self.targets = 0.0

    def add(self, inputs: Tensor, targets: Tensor) -> None:
        self.inputs += inputs.T @ inputs
        self.both += targets.T @ inputs
        self.targets += float(targets.double().square().sum())

    def joined(self, other: "_Sums") -> "_Sums":
        result = _Sums(self.weight)
        result.inputs = self.inputs + other.inputs
        result.both = self.both + other.both
        return result

    def error(self, weight: Tensor) -> float:
        """Returns the sum of the squares of what a weight makes wrong."""
        square = float(((weight @ self.inputs) * weight).sum())
        return square - 2 * float((weight * self.both).sum()) + self.targets

    def solved(self, ridge: float) -> Optional[Tensor]:
        """Returns the weight of the least error, plus the ridge times its square distance from the
        present one."""
        size = self.inputs.diagonal().mean() * ridge
        system = self.inputs + size * torch.eye(len(self.inputs)).to(self.inputs)
        factor, failed = torch.linalg.cholesky_ex(system)
        if int(failed) != 0:
            return None
        change = torch.cholesky_solve((self.both - self.weight @ self.inputs).T, factor).T
        return self.weight + change


def _solved(used: _Sums, held_out: _Sums, ridges: Sequence[float]) -> Optional[Tensor]:
    """Returns the weight with the ridge that is best on what is held out; None if the present one is
    better."""
    best, least = None, held_out.error(used.weight)
    for ridge in ridges:
        weight = used.solved(ridge)
        if weight is not None and held_out.error(weight) < least:
            best, least = ridge, held_out.error(weight)
    return None if best is None else used.joined(held_out).solved(best)


def _steps(blocks: Blocks, batches: Sequence[Batch], layers: Dict[str, bool]) -> Lockstep:
    return blocks.lockstep(batches, lambda *_: None, layers)


def _kept(x: Tensor, cut: Optional[Cut]) -> Tensor:
    """Returns the kept channels of the last axis."""
    return x if cut is None else x.index_select(-1, torch.tensor(cut.keep, device=x.device))


def _alike(of_big: Stop, of_small: Stop, cut: Optional[Cut]) -> bool:
    """Returns whether a layer has the same inputs in both networks, and is added to the same."""
    if not torch.equal(of_big.input, of_small.input):
        return False
    if of_big.beside is None or of_small.beside is None:
        return True
    return torch.equal(_kept(of_big.beside, cut), of_small.beside)
