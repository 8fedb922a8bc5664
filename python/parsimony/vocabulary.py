"""Words that leave a network of transformers, with its tokenizer and the ids in its configurations."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Union

from .directories import CONFIG, Pretrained
from .errors import ConfigError, FileError, UnsupportedError
from .members import Counted, Leaving, counted_by
from .plan import AttributeChange
from .pretrained import PREFIX, integers_of
from .sentence_modules import read_json
from .texts import texts_of

TOKENIZER = "tokenizer.json"
ID_MAP = "kept_token_ids.json"
_GENERATION, _TOKENIZER_CONFIG = "generation_config.json", "tokenizer_config.json"
# Older formats of what tokenizer.json has.
_OLDER = (
    "added_tokens.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "spiece.model",
    "spm.model",
    "tekken.json",
    "tokenizer.model",
    "tokenizer.model.v3",
    "vocab.json",
    "vocab.txt",
)
_ID = re.compile(r"_token_(ids?|index)$")
_LISTS = ("suppress_tokens", "begin_suppress_tokens")  # of ids that may be missing
_SEQUENCES = ("bad_words_ids",)  # of lists of ids, which may be missing as a whole
_PAIRS = "forced_decoder_ids"  # of places and ids
_BY_NAME = re.compile(r"_to_id$")  # ids by words
_UNKNOWN = ("force_words_ids", "sequence_bias")
Spec = Union[str, Sequence[int]]


def words_leaving(network: Pretrained, spec: Spec) -> Leaving:
    """Returns all words but those that are kept: the tokens of texts or a list of ids, and what these
    need: special tokens, the pieces that a tokenizer merges and, where it has no token for what is
    unknown, single bytes.

    Args:
        spec: "text:FILE", as `texts.read_texts` reads it, "ids:FILE" with numbers, or ids.

    Raises:
        ConfigError: it is none of these, or has ids that the network lacks.
        FileError: a file cannot be read.
        UnsupportedError: the directory has no tokenizer.json, or no key has the number of words.
    """
    tokenizer = _Tokenizer(network.path)
    texts: List[str] = []
    if isinstance(spec, str) and spec.startswith("text:"):
        texts = texts_of(Path(spec[len("text:") :]))
        asked = tokenizer.used_by(texts)
    else:
        asked = set(_ids(spec))
    config, size = network.config.to_dict(), network.model.get_input_embeddings().weight.shape[0]
    beyond = [i for i in asked if not 0 <= i < size]
    if beyond:
        raise ConfigError(f"keep_tokens: the network has {size} words, and no number {beyond[0]}")
    if not asked:
        raise ConfigError(f"keep_tokens: {spec!r} has no tokens")
    generation = read_json(network.path / _GENERATION, {})
    for name in _UNKNOWN:
        if generation.get(name):
            raise UnsupportedError(
                f"{network.path / _GENERATION}: {name}: its tokens may not leave"
            )
    wanted = asked | tokenizer.needed(asked) | set(_named_ids(config)) | set(_named_ids(generation))
    keep = sorted(i for i in wanted if 0 <= i < size)  # a tokenizer may know more than the network
    if len(keep) == size:
        raise UnsupportedError(f"keep_tokens: all {size} words are needed")
    new = {old: number for number, old in enumerate(keep)}
    leaving = Leaving()
    changes = list(_id_keys(network.config, "", new))
    counted = _counted(network, size, len(keep), changes)
    leaving.add(network.configured, counted, [keep] * len(counted.units), are_words=True)
    leaving.changes += changes
    leaving.words = keep
    leaving.files = tokenizer.files_with(new)
    if generation:
        text = json.dumps(_with_new_ids(generation, new), indent=2) + "\n"
        leaving.files[_GENERATION] = text
    leaving.files[ID_MAP] = json.dumps(keep) + "\n"
    leaving.texts = texts
    return leaving


def check_tokenizer(network: Pretrained, small: Path, leaving: Leaving) -> None:
    """Compares the tokens of both tokenizers on the texts that were kept.

    Raises:
        UnsupportedError: they differ.
    """
    before, after = _Tokenizer(network.path), _Tokenizer(small)
    words = leaving.words or []
    for text in leaving.texts:
        if [words[i] for i in after.encode(text)] != before.encode(text):
            raise UnsupportedError(
                f"keep_tokens: the tokenizer without words reads {text[:40]!r} otherwise"
            )


def _counted(
    network: Pretrained, size: int, left: int, changes: Sequence[AttributeChange]
) -> Counted:
    """Returns what the key with the number of words counts."""
    keys = [path for path, value in integers_of(network.config).items() if value == size]
    for path in sorted(keys, key=lambda path: "vocab" not in path):
        found = counted_by(network.configured, path, size, left, changes)
        if found is not None and not any(unit.lists for unit in found.units):
            return found
    raise UnsupportedError(
        f"{network.path / CONFIG}: no key has the number of words, {size}, and nothing else"
    )


def _ids(spec: Spec) -> Iterable[int]:
    if not isinstance(spec, str):
        if not isinstance(spec, (list, tuple, range, set)) or any(type(x) is not int for x in spec):
            raise ConfigError(f"keep_tokens: {spec!r}: expected text:FILE, ids:FILE or numbers")
        return spec
    kind, _, name = spec.partition(":")
    if kind != "ids" or not name:
        raise ConfigError(f"keep_tokens: {spec!r}: expected text:FILE or ids:FILE")
    try:
        return [int(word) for word in re.split(r"[\s,\[\]]+", Path(name).read_text()) if word]
    except (OSError, ValueError) as error:
        raise FileError(f"{name}: cannot be read as numbers: {error}") from error


def _named_ids(value: Any) -> Iterable[int]:
    """Yields the ids in a configuration."""
    for name, one in value.items():
        name = str(name)
        if _ID.search(name) or _BY_NAME.search(name):
            yield from _numbers(one)
        elif name == _PAIRS and isinstance(one, list):
            yield from (token for _, token in one if type(token) is int)
        elif isinstance(one, Mapping):
            yield from _named_ids(one)


def _numbers(value: Any) -> Iterable[int]:
    if type(value) is int:
        yield value
    elif isinstance(value, Mapping):
        yield from (one for one in value.values() if type(one) is int)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _numbers(one)


def _id_keys(config: Any, place: str, new: Mapping[int, int]) -> "Iterable[AttributeChange]":
    """Yields the changes of a configuration's ids."""
    for name, value in vars(config).items():
        after = _renumbered(name, value, new)
        if after != value:
            yield AttributeChange("", f"{PREFIX}{place}{name}", value, after)
        elif hasattr(value, "to_dict"):
            yield from _id_keys(value, f"{place}{name}.", new)


def _with_new_ids(config: Mapping[str, Any], new: Mapping[int, int]) -> Dict[str, Any]:
    """Returns a configuration with new ids."""
    return {
        name: (
            _with_new_ids(one, new)
            if isinstance(one, Mapping) and not _BY_NAME.search(name)
            else _renumbered(name, one, new)
        )
        for name, one in config.items()
    }


def _renumbered(name: str, value: Any, new: Mapping[int, int]) -> Any:
    """Returns the value of a key with new ids."""
    if _ID.search(name):
        return _with_ids(value, new)
    if _BY_NAME.search(name) and isinstance(value, Mapping):
        return {word: new.get(token, token) for word, token in value.items()}
    if name in _LISTS and isinstance(value, list):
        return [new[token] for token in value if token in new]
    if name in _SEQUENCES and isinstance(value, list):
        return [[new[i] for i in one] for one in value if all(i in new for i in one)]
    if name == _PAIRS and isinstance(value, list):
        return [[place, new.get(token, token)] for place, token in value]
    return value


def _with_ids(value: Any, new: Mapping[int, int]) -> Any:
    if type(value) is int:
        return new.get(value, value)
    return [_with_ids(one, new) for one in value] if isinstance(value, (list, tuple)) else value


class _Tokenizer:
    """The tokenizer.json of a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._content = read_json(directory / TOKENIZER, {})
        self._model: Dict[str, Any] = self._content.get("model") or {}
        vocabulary = self._model.get("vocab")
        if not vocabulary:
            raise UnsupportedError(f"{directory}: words can leave only with a {TOKENIZER}")
        if isinstance(vocabulary, dict):
            self._ids: Dict[str, int] = vocabulary
        else:  # of Unigram: pieces and scores
            self._ids = {piece: i for i, (piece, _) in enumerate(vocabulary)}

    def encode(self, text: str) -> List[int]:
        """Returns the tokens of a text, with those that begin and end it."""
        from tokenizers import Tokenizer

        if not hasattr(self, "_loaded"):
            self._loaded = Tokenizer.from_file(str(self._directory / TOKENIZER))
            self._loaded.no_truncation()
            self._loaded.no_padding()
        ids: List[int] = self._loaded.encode(text).ids
        return ids

    def used_by(self, texts: Sequence[str]) -> Set[int]:
        return {token for text in texts for token in self.encode(text)}

    def needed(self, wanted: Set[int]) -> Set[int]:
        """Returns what a tokenizer needs for some tokens."""
        found = {token["id"] for token in self._content.get("added_tokens", [])}
        found.update(_processor_ids(self._content.get("post_processor")))
        padding = self._content.get("padding")
        if padding:
            found.add(padding["pad_id"])
        unknown = self._ids.get(self._model.get("unk_token"), self._model.get("unk_id"))
        if unknown is not None:
            found.add(unknown)
        else:  # what it has no token for would be left out without a trace
            found |= {i for piece, i in self._ids.items() if len(piece) == 1}
        parts = {}
        for first, second in self._merges():
            parts.setdefault(self._merged(first, second), (first, second))
        pieces = {i: piece for piece, i in self._ids.items()}
        rest = [pieces[i] for i in wanted | found if i in pieces]
        while rest:
            for piece in parts.get(rest.pop(), ()):
                if self._ids[piece] not in found:
                    found.add(self._ids[piece])
                    rest.append(piece)
        return found

    def _merges(self) -> "Iterable[tuple[str, str]]":
        for merge in self._model.get("merges", []):
            first, second = merge.split(" ") if isinstance(merge, str) else merge
            yield first, second

    def _merged(self, first: str, second: str) -> str:
        prefix = self._model.get("continuing_subword_prefix") or ""
        return first + (second[len(prefix) :] if second.startswith(prefix) else second)

    def files_with(self, new: Mapping[int, int]) -> Dict[str, Optional[str]]:
        """Returns the files of the tokenizer with new ids; None for those that leave."""
        content = json.loads(json.dumps(self._content))
        model = content["model"]
        left = {piece: new[i] for piece, i in self._ids.items() if i in new}
        if isinstance(model["vocab"], dict):
            model["vocab"] = left
        else:
            model["vocab"] = [one for i, one in enumerate(model["vocab"]) if i in new]
        if model.get("unk_id") is not None:
            model["unk_id"] = new[model["unk_id"]]
        if "merges" in model:
            model["merges"] = [
                merge
                for merge, (first, second) in zip(model["merges"], self._merges())
                if {first, second, self._merged(first, second)} <= left.keys()
            ]
        added = [token for token in content.get("added_tokens", []) if token["id"] in new]
        for token in added:
            token["id"] = new[token["id"]]
        content["added_tokens"] = added
        if content.get("padding"):
            content["padding"]["pad_id"] = new[content["padding"]["pad_id"]]
        _renumber_processor(content.get("post_processor"), new)
        files: Dict[str, Optional[str]] = {
            TOKENIZER: json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        }
        config = read_json(self._directory / _TOKENIZER_CONFIG, {})
        decoder = config.get("added_tokens_decoder")
        if decoder:
            config["added_tokens_decoder"] = {
                str(new[int(i)]): one for i, one in decoder.items() if int(i) in new
            }
            files[_TOKENIZER_CONFIG] = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
        files.update((name, None) for name in _OLDER if (self._directory / name).exists())
        return files


def _processor_ids(processor: Any) -> Iterable[int]:
    """Yields the tokens that a post-processor adds."""
    if isinstance(processor, dict):
        for one in processor.get("processors", []):
            yield from _processor_ids(one)
        special = processor.get("special_tokens")
        if isinstance(special, dict):
            for one in special.values():
                yield from one["ids"]
        for name in ("sep", "cls"):
            if isinstance(processor.get(name), list):
                yield processor[name][1]


def _renumber_processor(processor: Any, new: Mapping[int, int]) -> None:
    """Renumbers the tokens that a post-processor adds."""
    if not isinstance(processor, dict):
        return
    for one in processor.get("processors", []):
        _renumber_processor(one, new)
    special = processor.get("special_tokens")
    if isinstance(special, dict):
        for one in special.values():
            one["ids"] = [new[i] for i in one["ids"]]
    for name in ("sep", "cls"):
        if isinstance(processor.get(name), list):
            processor[name][1] = new[processor[name][1]]
