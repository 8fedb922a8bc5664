"""Words that leave a network of transformers, with its tokenizer and the ids in its configurations."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Union

from .directories import CONFIG, Pretrained
from .errors import ConfigError, FileError, UnsupportedError
from .members import Leaving, counted_by
from .plan import AttributeChange
from .pretrained import PREFIX, integers_of
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
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
)
_ID = re.compile(r"_token_ids?$")
_LISTS = ("suppress_tokens", "begin_suppress_tokens")  # of ids that may be missing
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
    wanted = tokenizer.used_by(texts) if texts else set(_ids(spec))
    config = network.config.to_dict()
    generation = _read(network.path / _GENERATION)
    wanted |= tokenizer.needed(wanted) | set(_named_ids(config)) | set(_named_ids(generation))
    key, size = _key(network)
    beyond = [i for i in wanted if not 0 <= i < size]
    if beyond:
        raise ConfigError(f"keep_tokens: the network has {size} words, and no number {beyond[0]}")
    keep = sorted(wanted)
    if len(keep) == size:
        raise UnsupportedError(f"keep_tokens: all {size} words are needed")
    new = {old: number for number, old in enumerate(keep)}
    leaving = Leaving()
    changes = [
        AttributeChange("", PREFIX + path, value, _with_ids(value, new))
        for path, value in _id_keys(network.config, "")
    ]
    counted = counted_by(network.configured, key, size, len(keep), changes)
    if counted is None:
        raise UnsupportedError(f"{network.path / CONFIG}: {key} is the size of other things, too")
    leaving.add(network.configured, counted, [keep] * len(counted.units))
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


def _key(network: Pretrained) -> "tuple[str, int]":
    """Returns the key with the number of the rows of the input embeddings."""
    embeddings = network.model.get_input_embeddings()
    size = embeddings.weight.shape[0]
    for path, value in integers_of(network.config).items():
        if value == size and path.rpartition(".")[2] != "hidden_size":
            return path, size
    raise UnsupportedError(f"{network.path / CONFIG}: no key has the number of words, {size}")


def _ids(spec: Spec) -> Iterable[int]:
    if not isinstance(spec, str):
        return spec
    kind, _, name = spec.partition(":")
    if kind != "ids" or not name:
        raise ConfigError(f"keep_tokens: {spec!r}: expected text:FILE or ids:FILE")
    try:
        return [int(word) for word in re.split(r"[\s,\[\]]+", Path(name).read_text()) if word]
    except (OSError, ValueError) as error:
        raise FileError(f"{name}: cannot be read as numbers: {error}") from error


def _read(path: Path) -> Dict[str, Any]:
    try:
        found: Dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return found
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: {error}") from error


def _named_ids(value: Any) -> Iterable[int]:
    """Yields the ids in a configuration."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            if _ID.search(str(name)) or name == "forced_decoder_ids":
                yield from (i for i in _numbers(one, name == "forced_decoder_ids") if i >= 0)
            else:
                yield from _named_ids(one)


def _numbers(value: Any, pairs: bool) -> Iterable[int]:
    if type(value) is int:
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value[1:] if pairs and value and type(value[0]) is int else value:
            yield from _numbers(one, pairs)


def _id_keys(config: Any, place: str) -> "Iterable[tuple[str, Any]]":
    for name, value in vars(config).items():
        if _ID.search(name) and any(True for _ in _numbers(value, False)):
            yield place + name, value
        elif hasattr(value, "to_dict"):
            yield from _id_keys(value, f"{place}{name}.")


def _with_ids(value: Any, new: Mapping[int, int]) -> Any:
    if type(value) is int:
        return new.get(value, value)
    return [_with_ids(one, new) for one in value] if isinstance(value, (list, tuple)) else value


def _with_new_ids(value: Any, new: Mapping[int, int]) -> Any:
    """Returns a configuration with new ids."""
    found = {}
    for name, one in value.items():
        if name in _LISTS and isinstance(one, list):
            one = [new[i] for i in one if i in new]
        elif name == "forced_decoder_ids" and isinstance(one, list):
            one = [[place, _with_ids(i, new)] for place, i in one]
        elif _ID.search(name):
            one = _with_ids(one, new)
        found[name] = one
    return found


class _Tokenizer:
    """The tokenizer.json of a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._content = _read(directory / TOKENIZER)
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
        unknown = self._ids.get(self._model.get("unk_token"), self._model.get("unk_id"))
        if unknown is not None:
            found.add(unknown)
        else:  # what it has no token for would be left out without a trace
            found |= {i for piece, i in self._ids.items() if len(piece) == 1}
        parts = {}
        for first, second in self._merges():
            parts.setdefault(first + second, (first, second))
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
                if {first, second, first + second} <= left.keys()
            ]
        for token in content.get("added_tokens", []):
            token["id"] = new[token["id"]]
        _renumber_processor(content.get("post_processor"), new)
        files: Dict[str, Optional[str]] = {
            TOKENIZER: json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        }
        config = _read(self._directory / _TOKENIZER_CONFIG)
        decoder = config.get("added_tokens_decoder")
        if decoder:
            config["added_tokens_decoder"] = {
                str(new[int(i)]): one for i, one in decoder.items() if int(i) in new
            }
            files[_TOKENIZER_CONFIG] = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
        files.update((name, None) for name in _OLDER if (self._directory / name).exists())
        return files


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
