"""Chooses the layers and experts of a directory's network that leave."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Union

import torch

from .blocks import Blocks
from .directories import CONFIG, Pretrained
from .errors import ConfigError, UnsupportedError
from .influence import of_experts, of_layers, of_weights
from .members import Counted, Leaving, counted_by
from .pretrained import integers_of
from .request import share_of

_RANDOM = 4  # calls with random inputs, where there are no texts


def counted_in(network: Pretrained) -> List[Counted]:
    """Returns what the integers of the configuration count."""
    configured = network.configured
    found = [
        counted_by(configured, path, size, size - 1)
        or counted_by(configured, path, size, size // 2)  # what may have to be even
        for path, size in integers_of(network.config).items()
        if size > 1
    ]
    return [one for one in found if one is not None]


def what_may_leave(network: Pretrained) -> List[str]:
    """Returns a line for each key that counts layers, experts or words, with the option for them."""
    words = network.model.get_input_embeddings()
    lines = []
    for one in counted_in(network):
        if one.are_layers:
            lines.append(f"{one.key}: {one.size} layers in {one.units[0].lists[0]} (--layers)")
        elif one.are_experts(network.shapes):
            lines.append(f"{one.key}: {one.size} experts in {len(one.units)} layers (--experts)")
        elif words is not None and one.size == words.weight.shape[0]:
            lines.append(f"{one.key}: {one.size} words (--keep-tokens)")
    return lines


class Choice:
    """What leaves, by influence on samples.

    Args:
        batches: samples of texts; None: random inputs, and experts by the norms of their weights.
    """

    def __init__(
        self, network: Pretrained, batches: Optional[Sequence[Any]], device: torch.device
    ) -> None:
        self.network, self._device = network, device
        self._has_texts = batches is not None
        self._batches = batches or [network.inputs("cpu", seed) for seed in range(_RANDOM)]
        self.notes: List[str] = []

    def layers(self, amount: Union[int, str]) -> Leaving:
        """Returns the layers of least influence: so many, or a share of all.

        Raises:
            ConfigError: the amount is none.
            UnsupportedError: the class does not take so few.
        """
        found, scored = [], []
        for one in filter(lambda counted: counted.are_layers, counted_in(self.network)):
            blocks = Blocks(self.network, self._device)
            scores = of_layers(blocks, one.units[0], self._batches)
            if scores is not None:
                found.append(one)
                scored += [(score, number, one) for number, score in enumerate(scores)]
        if not found:
            raise UnsupportedError(f"layers: no key of {CONFIG} has the number of layers alone")
        count = _count(amount, sum(one.size for one in found), "layers")
        keeps = {one.key: list(range(one.size)) for one in found}
        for _, number, one in sorted(scored, key=lambda entry: entry[:2]):
            left = [other for other in keeps[one.key] if other != number]
            if count > 0 and left and self._fits(found, {**keeps, one.key: left}):
                keeps[one.key] = left
                count -= 1
        if count > 0:
            raise UnsupportedError(
                f"layers: {self.network.kind.__name__} cannot be built without {count} more"
            )
        leaving = self._without(found, keeps)
        for kept in leaving.kept:
            removed = ", ".join(map(str, kept.removed))
            self.notes.append(f"removed from {kept.unit.lists[0]}: {removed}")
        return leaving

    def experts(self, share: Any) -> List[Leaving]:
        """Returns choices of experts that stay: the best ones; then, where the class may want equally
        many of each group of experts, the best of each group.

        Raises:
            ConfigError: the share is none.
            UnsupportedError: no key has the number of experts.
        """
        known = [one for one in counted_in(self.network) if one.are_experts(self.network.shapes)]
        if not known:
            raise UnsupportedError(f"experts: no key of {CONFIG} has the number of experts alone")
        found = known[0]
        left = found.size - _count(share, found.size, "experts")
        scores: List[List[float]] = []
        if self._has_texts:
            blocks = Blocks(self.network, self._device)
            scores = of_experts(blocks, found.units, self._batches)
        if not scores or not all(scores):
            blocks = Blocks(self.network, self._device)
            scores = [of_weights(blocks, unit) for unit in found.units]
            if self._has_texts:
                self.notes.append("experts are ranked by the norms of their weights")
        numbers = {x for x in integers_of(self.network.config).values() if 1 < x < left}
        groups = [x for x in sorted(numbers) if found.size % x == 0 and left % x == 0]
        choices = []
        for count in [1, *groups]:
            leaving = Leaving()
            keeps = [_best(of_unit, left, count) for of_unit in scores]
            leaving.add(self.network.configured, found, keeps)
            choices.append(leaving)
        return choices

    def _without(self, found: Sequence[Counted], keeps: Dict[str, List[int]]) -> Leaving:
        leaving = Leaving()
        for one in found:
            if len(keeps[one.key]) < one.size:
                leaving.add(self.network.configured, one, [keeps[one.key]])
        return leaving

    def _fits(self, found: Sequence[Counted], keeps: Dict[str, List[int]]) -> bool:
        leaving = self._without(found, keeps)
        expected = leaving.shapes_after(self.network.shapes)
        return self.network.configured.shapes_with(leaving.changes) == expected


def _count(amount: Any, size: int, what: str) -> int:
    """Returns how many of `size` are asked for: a number, or a share of them.

    Raises:
        ConfigError: it is neither, or all.
    """
    number = int(amount) if isinstance(amount, str) and amount.isdigit() else amount
    if isinstance(number, str) or (isinstance(number, float) and 0 <= number < 1):
        number = round(share_of(number, what) * size)
    if not isinstance(number, int) or number < 0:
        raise ConfigError(f"{what}: found {amount!r}, expected a number or a share, as 25%")
    if number == 0:
        raise ConfigError(f"{what}: {amount!r} of {size} removes none")
    if number >= size:
        raise ConfigError(f"{what}: {number} of {size} would leave none")
    return number


def _best(scores: Sequence[float], left: int, groups: int) -> List[int]:
    """Returns the best of members, equally many of each of some groups."""
    size = len(scores) // groups
    found: List[int] = []
    for first in range(0, len(scores), size):
        own = sorted(range(first, first + size), key=lambda i: -scores[i])
        found += own[: left // groups]
    return sorted(found)
