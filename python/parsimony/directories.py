"""Directories as `save_pretrained` writes them: a configuration, weights, and files beside them.

The network is built on the device `meta`, by the class that the configuration names; its weights stay
where they lie.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from .command import run_command
from .conversions import AsStored, Conversions, tied_names
from .editing import named_tensors
from .errors import Error, FileError, UnsupportedError
from .inputs import Inputs
from .plan import AttributeChange
from .pretrained import PREFIX, Configured, parameters_on_meta
from .program import Program

CONFIG = "config.json"
_TOKENS = 8
_SAMPLES = 2
PROVEN_IN = torch.float32
_TYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keeps transformers from showing the progress of its loading, and advice."""
    try:
        from transformers.utils import logging
    except ModuleNotFoundError as error:
        raise ImportError(
            "prune_pretrained needs transformers: pip install transformers"
        ) from error
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


class Stored(NamedTuple):
    """A tensor of a directory."""

    shape: Tuple[int, ...]
    dtype: torch.dtype


class Pretrained:
    """The network of a directory, on the device `meta`.

    Attributes:
        weights: the file of its weights, or the index of several.
        stored: the tensors of these, by their names there.
        names: their names there, by those that the class saves.
        computed: the elements of buffers, as the class makes them.
        tied: the names of each tensor of the program, by each of them.
        shapes: of the tensors that the class saves, by their names.
        model: the module, whose calls keep no state between them.
        root: the module whose program it is: the model, or one that joins the stored tensors.

    Raises:
        ConfigError, FileError, UnsupportedError: it is none that can be built.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = _read_config(path)
        self.kind = _class_of(path, self.text)
        self.weights = _weights_of(path)
        self.stored = _stored(self.weights)
        try:
            self.config = self.kind.config_class.from_pretrained(path)
        except Exception as error:
            raise UnsupportedError(f"{path / CONFIG}: {error}") from error
        self.configured = Configured(self.kind, self.config)
        self.model, self.computed = self.built(self.configured.copy())
        self._conversions = Conversions(self.model)
        joined = self._conversions.joins(self.stored)
        if joined:
            self.configured.saved = self._conversions.saved
        self.shapes = self.configured.shapes_with([]) or {}
        self.names = self._names(joined)
        self.root = self._as_stored() if joined else self.model
        self.tied = self._tied()

    def built(
        self, config: Any, dtype: Optional[torch.dtype] = None
    ) -> Tuple[nn.Module, Dict[str, Tensor]]:
        """Returns a model without elements, and those of the buffers that the class computes.

        Args:
            dtype: of floating point numbers; None: that of most stored tensors.
        """
        types = [tensor.dtype for tensor in self.stored.values() if tensor.dtype in _TYPES]
        dtype = dtype or max(set(types), key=types.count, default=torch.float32)
        try:
            with parameters_on_meta(dtype):
                model: nn.Module = self.kind(config)
        except Exception as error:
            kind = self.kind.__name__
            raise UnsupportedError(
                f"{self.path / CONFIG}: {kind} cannot be built from it: {error}"
            ) from error
        computed = dict(model.named_buffers())
        for part in model.modules():
            part._buffers.update(
                (name, x if x is None else x.to("meta")) for name, x in part._buffers.items()
            )
        for_one_call(model)
        return model.eval(), computed

    def program(self, model: Optional[nn.Module] = None) -> Program:
        """Returns the program of a model, or of that of the directory."""
        return Program(model or self.root, self.inputs(), outputs_only=True)

    def name_of(self, stored: str) -> str:
        """Returns the name in the model of a stored tensor."""
        return self._conversions.name_of(stored)

    def loaded(self, stored: Mapping[str, Tensor]) -> Dict[str, Tensor]:
        """Returns the tensors of the model that are made of stored ones."""
        return self._conversions.loaded(stored)

    @property
    def longest(self) -> int:
        """The number of tokens that it has positions for."""
        config = self.config.get_text_config()
        known = (getattr(config, name, None) for name in ("max_position_embeddings", "n_positions"))
        return min((x for x in known if type(x) is int and x > 1), default=1 << 30)

    def width(self, changes: Sequence[AttributeChange]) -> int:
        """Returns the size of the hidden states, with changes of the configuration; 0 if no key has it."""
        config = self.configured.changed(changes).get_text_config()
        return int(getattr(config, "hidden_size", 0))

    def renumbered(self, stored: str, name: str, now: str) -> str:
        """Returns the stored name of a tensor that the class calls `now` in place of `name`, which
        differs in numbers: names that are stored may differ from these in all else.

        Raises:
            UnsupportedError: none is read as that.
        """
        if stored == name:
            return now
        changes = [(a, b) for a, b in zip(name.split("."), now.split(".")) if a != b]
        parts = stored.split(".")
        for places in itertools.combinations(range(len(parts)), len(changes)):
            new = list(parts)
            for place, (before, after) in zip(places, changes):
                if parts[place] == before:
                    new[place] = after
            if self.name_of(".".join(new)) == now:
                return ".".join(new)
        raise UnsupportedError(f"{self.path}: it is not known under which name {now!r} is stored")

    def place_of(self, part: Mapping[str, Any]) -> str:
        """Returns the path of the configuration that the module of a plan's slice was built from."""
        root = self.model.config
        module = self._conversions.name_of(part["tensor"])
        while module:
            module = module.rpartition(".")[0]
            try:
                config = getattr(self.model.get_submodule(module), "config", None)
            except AttributeError:
                continue
            if config is root:
                return ""
            for name, value in vars(root).items():
                if config is not None and value is config:
                    return name
        return ""

    def new_text(self, changes: Sequence[AttributeChange]) -> str:
        """Returns the text of the configuration with the changed keys, and as little else changed as
        the class needs: keys that it computed from others, such as the size of a head, are added.
        """
        configured, text = self.configured, copy.deepcopy(self.text)
        changed = configured.changed(changes)
        for change in changes:
            _set_key(text, changed.to_dict(), change.attribute[len(PREFIX) :].split("."))
        expected = configured.shapes(changed)
        read = type(changed).from_dict(copy.deepcopy(text))
        if configured.shapes(read) != expected:
            _add_keys(text, read.to_dict(), changed.to_dict())
        if configured.shapes(type(changed).from_dict(copy.deepcopy(text))) != expected:
            raise UnsupportedError(f"{self.path / CONFIG}: the new sizes cannot be written")
        return json.dumps(text, indent=2) + "\n"

    def save(self, file: Path) -> None:
        """Writes the program; the elements of its weights stay in the directory."""
        self.program().save(file, self.computed, (self.weights, self.names))

    def numbers(self, changes: Sequence[AttributeChange]) -> Optional[List[float]]:
        """Returns the numbers that a model with these changes computes with; None if it does not run."""
        try:
            program = self.program(self.built(self.configured.changed(changes))[0])
        except Error:
            return None
        return [number for operation in program.operations for number in operation.numbers()]

    def _names(self, joined: bool) -> Dict[str, str]:
        """Returns the stored names of the tensors that the class saves; tied ones may have one."""
        name_of = self._conversions.name_of
        own = {name if joined else name_of(name): name for name in self.stored}
        found = {name: own[name] for name in self.shapes if name in own}
        for names in tied_names(self.model):
            stored = [found[name] for name in names if name in found]
            for name in names:
                if stored and name in self.shapes:
                    found.setdefault(name, stored[0])
        missing = sorted(self.shapes.keys() - found.keys())
        if missing:
            raise UnsupportedError(
                f"{self.path}: {self.kind.__name__} has the weight {missing[0]!r}, which is not stored "
                f"under this name{_and_others(missing)}"
            )
        for name, stored in found.items():
            if self.stored[stored].shape != self.shapes[name]:
                raise FileError(
                    f"{self.path}: tensor {stored!r} has shape {list(self.stored[stored].shape)}, "
                    f"{self.kind.__name__} expects {list(self.shapes[name])}"
                )
        return found

    def _as_stored(self) -> nn.Module:
        names = {stored: name for name, stored in self.names.items()}  # the last of tied ones
        tensors = {
            names[stored]: torch.empty(one.shape, dtype=one.dtype, device="meta")
            for stored, one in self.stored.items()
            if stored in names
        }
        root = AsStored(self.model, tensors)
        for_one_call(root)
        return root

    def _tied(self) -> Dict[str, List[str]]:
        """Returns the names under which each tensor of the program is saved, by each of these."""
        found = {name: [name] for name in named_tensors(self.root)}
        for names in tied_names(self.model):
            saved = [name for name in names if name in self.shapes or name in found]
            found.update((name, saved) for name in saved)
        return found

    def inputs(self, device: str = "meta", seed: int = 0) -> Inputs:
        """Returns arguments for a call: tokens, pixels or features, by the class."""
        generator = torch.Generator().manual_seed(seed)
        config = self.config.get_text_config()
        count = getattr(config, "vocab_size", None) or getattr(self.config, "vocab_size", 100)
        tokens = torch.randint(min(3, count - 1), count, (_SAMPLES, _TOKENS), generator=generator)

        def drawn(*shape: int) -> Tensor:
            return torch.rand(_SAMPLES, *shape, generator=generator)

        main = self.model.main_input_name
        made: Dict[str, Any] = {
            "input_ids": lambda: tokens,
            "pixel_values": lambda: drawn(*_image_shape(self.config)),
            "input_features": lambda: drawn(*_features_shape(self.config)),
            "input_values": lambda: drawn(4000),
        }
        if main not in made:
            raise UnsupportedError(f"{self.kind.__name__}: it is not known how {main!r} looks")
        named = {main: made[main]()}
        if getattr(self.config, "is_encoder_decoder", False):
            named["decoder_input_ids"] = tokens
        dtype = next(self.model.parameters()).dtype if device == "meta" else PROVEN_IN
        return Inputs((), named).map(
            lambda x: x.to(device, dtype if x.is_floating_point() else x.dtype)
        )


def _read_config(path: Path) -> Dict[str, Any]:
    file = path / CONFIG
    if not path.is_dir():
        raise FileError(f"{path}: there is no such directory")
    if not file.exists():
        if (path / "adapter_config.json").exists():
            raise UnsupportedError(
                f"{path}: an adapter alone (adapter_config.json): merge it into its model first"
            )
        raise FileError(f"{file}: there is no such file, so the network is not known")
    try:
        text = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise FileError(f"{file}: {error}") from error
    if not isinstance(text, dict):
        raise FileError(f"{file}: not a configuration")
    if "quantization_config" in text:
        method = dict(text["quantization_config"] or {}).get("quant_method", "unknown")
        raise UnsupportedError(
            f"{file}: quantization_config: the weights are quantised ({method}); prune those before "
            "quantisation"
        )
    return text


def _class_of(path: Path, text: Mapping[str, Any]) -> Any:
    """Returns the class that "architectures" names."""
    import transformers

    names = text.get("architectures") or []
    if not names:
        raise UnsupportedError(f"{path / CONFIG}: architectures: no class is named")
    kind = getattr(transformers, names[0], None)
    if kind is None:
        own = "; the code in the directory is not run" if "auto_map" in text else ""
        raise UnsupportedError(
            f"{path / CONFIG}: architectures: transformers {transformers.__version__} has no class "
            f"{names[0]}{own}"
        )
    return kind


def _weights_of(path: Path) -> Path:
    """Returns the file of weights, or the index of several, that `from_pretrained` takes."""
    for name in ("model.safetensors", "pytorch_model.bin"):
        for file in (path / name, path / f"{name}.index.json"):
            if file.exists():
                return file
    raise FileError(
        f"{path}: there is neither model.safetensors nor pytorch_model.bin, or an index"
    )


def _stored(weights: Path) -> Dict[str, Stored]:
    """Returns the tensors of a file or an index."""
    found: Dict[str, Stored] = {}
    for tensor in json.loads(run_command(["inspect", weights, "--json"]))["tensors"]:
        name = tensor["path"][-1]
        dtype = getattr(torch, tensor["type"], None)
        if not isinstance(dtype, torch.dtype):
            raise UnsupportedError(f"{weights}: tensor {name!r}: {tensor.get('fixed', '')}")
        found[name] = Stored(tuple(tensor["shape"]), dtype)
    return found


def load(weights: Path) -> Dict[str, Tensor]:
    """Returns the elements of the tensors of a file or an index."""
    from safetensors.torch import load_file

    if weights.suffix == ".json":
        names = sorted(set(json.loads(weights.read_text())["weight_map"].values()))
        parts = [load(weights.parent / name) for name in names]
        return {name: tensor for part in parts for name, tensor in part.items()}
    if weights.suffix == ".safetensors":
        loaded: Dict[str, Tensor] = load_file(weights)
        return loaded
    try:
        loaded = torch.load(weights, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError:  # of before PyTorch 1.6
        loaded = torch.load(weights, map_location="cpu", weights_only=True)
    return {name: tensor for name, tensor in loaded.items() if isinstance(tensor, Tensor)}


def for_one_call(model: nn.Module) -> None:
    """Makes calls keep no state, and return the logits alone, where there are any: other results are
    not what the network is used for, and need not keep their sizes."""
    for config in _configs_of(model):
        for name in ("use_cache", "output_router_logits"):
            if getattr(config, name, False):
                setattr(config, name, False)
    whole = model.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        result = whole(*args, **kwargs)
        logits = getattr(result, "logits", None)
        return result if logits is None else logits

    functools.update_wrapper(forward, whole)
    model.forward = forward


def _configs_of(model: nn.Module) -> List[Any]:
    found = {id(part.config): part.config for part in model.modules() if hasattr(part, "config")}
    return list(found.values())


def _image_shape(config: Any) -> Tuple[int, int, int]:
    config = getattr(config, "vision_config", config)
    size = getattr(config, "image_size", 224)
    height, width = (size, size) if isinstance(size, int) else size
    return getattr(config, "num_channels", 3), height, width


def _features_shape(config: Any) -> Tuple[int, int]:
    """Frames are what a position is kept for, halved by convolutions."""
    return getattr(config, "num_mel_bins", 80), 2 * getattr(config, "max_source_positions", 20)


def _and_others(names: Sequence[str]) -> str:
    return f" (nor are {len(names) - 1} others)" if len(names) > 1 else ""


def _set_key(text: Any, changed: Any, path: Sequence[str]) -> None:
    """Sets the value at a path as in `changed`, lists as a whole; keys that the text leaves to their
    defaults are added."""
    for key in path[:-1]:
        if not isinstance(changed[key], dict):
            text[key] = changed[key]
            return
        text, changed = text.setdefault(key, {}), changed[key]
    text[path[-1]] = changed[path[-1]]


def _add_keys(text: Dict[str, Any], read: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Adds the integers in which a configuration that was read from `text` differs from `wanted`."""
    for key, value in wanted.items():
        known = read.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            inside: Dict[str, Any] = text.get(key) or {}
            _add_keys(inside, known, value)
            if inside:
                text[key] = inside
        elif type(value) is int and read.get(key) != value:
            text[key] = value
