"""Texts in a file, as batches of tokens: those that a network is calibrated on, and those that it is
measured on."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from .errors import ConfigError, FileError, UnsupportedError

_SEPARATOR = "<|endoftext|>"
_LENGTH = 512
_IN_BATCH = 2048  # tokens, unless there would be more batches than this:
_MOST_BATCHES = 48
_MOST_MEASURED = 200
_SHARE_MEASURED = 5  # one of so many


class Batch(NamedTuple):
    """Samples of tokens, `[N, T]`; the mask is 0 where a sample has ended."""

    tokens: Tensor
    mask: Tensor

    def within(self, words: Sequence[int]) -> "Optional[tuple[Batch, Batch]]":
        """Returns the samples that have no other tokens, as they are and numbered among these; None if
        none has."""
        new = torch.full((max(int(self.tokens.max()), max(words)) + 1,), -1)
        new[list(words)] = torch.arange(len(words))
        tokens = new[self.tokens].masked_fill(self.mask == 0, 0)
        rows = (tokens >= 0).all(1)
        if not rows.any():
            return None
        mask = self.mask[rows]
        return Batch(self.tokens[rows], mask), Batch(tokens[rows], mask)


class Texts(NamedTuple):
    """The last fifth of the samples, at most 200, is measured on, and calibrated on never."""

    calibration: List[Batch]
    measured: List[Batch]
    counts: "tuple[int, int]"  # of samples

    def within(self, words: Sequence[int]) -> "tuple[Texts, Texts]":
        """Returns the samples that have no other tokens, as they are and numbered among these.

        Raises:
            ConfigError: there are none to measure on.
        """
        kept = [
            [pair for pair in (one.within(words) for one in part) if pair]
            for part in (self.calibration, self.measured)
        ]
        if not kept[1]:
            raise ConfigError("calibration: no text to measure on has kept tokens only")
        counts = sum(len(a.tokens) for a, _ in kept[0]), sum(len(a.tokens) for a, _ in kept[1])
        whole, new = ([[pair[i] for pair in part] for part in kept] for i in range(2))
        return Texts(whole[0], whole[1], counts), Texts(new[0], new[1], counts)


def read_texts(spec: str, directory: Path, samples: int, longest: int = _LENGTH) -> Texts:
    """Returns the texts of `text:FILE[,length=N]` as tokens of the directory's tokenizer.

    FILE has lines of JSON with a "text", if it ends with .jsonl, or texts that are separated by lines
    `<|endoftext|>`, or is one text; it may be compressed (.gz). Samples have at most N tokens (512),
    and no more than `longest`: longer texts are several.

    Raises:
        ConfigError: `spec` is another one, or there are too few texts.
        FileError: the file cannot be read.
        UnsupportedError: the directory has no tokenizer.
    """
    kind, _, rest = spec.partition(":")
    name, *options = rest.split(",")
    length = _LENGTH
    for option in options:
        key, _, value = option.partition("=")
        if key != "length" or not value.isdigit() or int(value) < 2:
            raise ConfigError(f"calibration: {option!r} is not known: expected length=N")
        length = int(value)
    if kind != "text" or not name:
        raise ConfigError(f"calibration: {spec!r}: directories take text:FILE[,length=N]")
    if samples < 1:
        raise ConfigError(f"samples: found {samples}, expected at least 1")
    length = min(length, longest)
    found = list(_samples(texts_of(Path(name)), directory, length))
    measured = min(_MOST_MEASURED, len(found) // _SHARE_MEASURED)
    if measured == 0:
        raise ConfigError(
            f"calibration: {name} has {len(found)} samples of {length} tokens; at least "
            f"{_SHARE_MEASURED} are needed, the last fifth of which is measured on"
        )
    used = found[: min(samples, len(found) - measured)]
    kept = found[-measured:]
    return Texts(list(_batches(used)), list(_batches(kept)), (len(used), measured))


def texts_of(path: Path) -> List[str]:
    """Returns the texts of a file, see `read_texts`.

    Raises:
        FileError: it cannot be read.
    """
    try:
        opened: Any = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8") as file:
            content = file.read()
        if ".jsonl" in path.suffixes:
            return [json.loads(line)["text"] for line in content.splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
        raise FileError(f"{path}: cannot be read as texts: {error}") from error
    return [text.strip() for text in content.split(_SEPARATOR) if text.strip()]


def _samples(texts: Sequence[str], directory: Path, length: int) -> Iterator[List[int]]:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(directory)
    except Exception as error:
        raise UnsupportedError(f"{directory}: its tokenizer does not load: {error}") from error
    for text in texts:
        tokens = tokenizer(text)["input_ids"]
        for first in range(0, len(tokens), length):
            if len(tokens) - first > 1:
                yield tokens[first : first + length]


def _batches(samples: Sequence[List[int]]) -> Iterator[Batch]:
    """Yields samples of about one length together."""
    rest = sorted(samples, key=len, reverse=True)
    most = max(_IN_BATCH, sum(map(len, rest)) // _MOST_BATCHES)
    while rest:
        count = max(1, most // len(rest[0]))
        taken, rest = rest[:count], rest[count:]
        shape = len(taken), len(taken[0])
        tokens, mask = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
        for row, sample in enumerate(taken):
            tokens[row, : len(sample)] = torch.tensor(sample)
            mask[row, : len(sample)] = 1
        yield Batch(tokens, mask)


class Losses:
    """The mean loss of the next token.

    Args:
        words: of the logits, those that count, if not all do.
        batches: with tokens numbered among these.
    """

    what = "loss"

    def __init__(
        self, words: Optional[Sequence[int]] = None, batches: Sequence[Batch] = ()
    ) -> None:
        self._words, self._batches = words, batches
        self._sum, self._count = 0.0, 0

    def add(self, number: int, batch: Batch, outputs: Tensor) -> None:
        """Adds logits, `[N, T, V]`."""
        if self._words is not None:
            batch, outputs = self._batches[number], outputs[..., list(self._words)]
        targets = batch.tokens[:, 1:].masked_fill(batch.mask[:, 1:] == 0, -100).to(outputs.device)
        logits = outputs[:, :-1].float().flatten(0, 1)
        self._sum += float(functional.cross_entropy(logits, targets.flatten(), reduction="sum"))
        self._count += int(batch.mask[:, 1:].sum())

    def value(self) -> float:
        return self._sum / self._count


class Cosines:
    """The mean cosine between means over tokens of two networks' hidden states: embeddings of texts.

    Args:
        reference: of the network that this one is compared with; None for itself.
        words: of outputs that are logits, those that count, if not all do.
    """

    what = "cosine"

    def __init__(
        self, reference: "Optional[Cosines]" = None, words: Optional[Sequence[int]] = None
    ) -> None:
        self._reference, self._words = reference, words
        self._means: List[Tensor] = []

    def add(self, number: int, batch: Batch, outputs: Tensor) -> None:
        """Adds hidden states, `[N, T, width]`."""
        if self._words is not None:
            outputs = outputs[..., list(self._words)]
        mask = batch.mask.to(outputs.device)[..., None]
        self._means.append(((outputs.float() * mask).sum(1) / mask.sum(1)).cpu())

    def value(self) -> float:
        """Returns NaN if the embeddings have another size."""
        means = torch.cat(self._means)
        other = means if self._reference is None else torch.cat(self._reference._means)
        if means.shape != other.shape:
            return float("nan")
        return float(functional.cosine_similarity(means, other).mean())
