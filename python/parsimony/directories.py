"""Prunes directories as `save_pretrained` writes them: a configuration, weights, and files beside them.

The network is built on the device `meta`, by the class that the configuration names, and exported; the
command plans on the stored weights, where they lie, and cuts them file by file. No weight passes
through this process before the result is compared with the original.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

import torch
from torch import Tensor, nn

from .command import run_command
from .conversions import AsStored, Conversions, tied_names
from .editing import join, named_tensors, set_zero
from .errors import ConfigError, Error, FileError, UnsupportedError, VerificationError
from .inputs import Inputs, evaluating
from .keywords import given, listed, options_of, takes_settings
from .plan import AttributeChange, Cut, Cuts, Plan
from .pretrained import PREFIX, Configured, Shapes, name_of, parameters_on_meta, path_of
from .program import Program, load_with
from .progress import Steps
from .proof import NormsOverKept, compare, outputs_of
from .request import Answer, Config, Request, config_of, share_of, take_config

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .settings import Settings

CONFIG = "config.json"
_TOKENS = 8
_SAMPLES = 2
_PROVEN_IN = torch.float32
_TYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
_MOST_ATTEMPTS = 16
_MOST_SIZES = 4  # that are tried in place of one that the class refuses
# Whose functions `NormsOverKept` knows, or which compute channel by channel.
_NORMS = (nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.modules.batchnorm._BatchNorm)
# Settings that have their own arguments, or that need data.
OWN = (
    "target",
    "layers",
    "input",
    "no_verify",
    "threads",
    "on_failure",
    "states",
    "free",
    "calibration",
    "samples",
    "image",
    "device",
    "mean",
    "std",
    "loss",
    "recover",
    "ridge",
    "rounds",
    "recover_epochs",
    "recover_lr",
    "recover_minutes",
    "match",
    "engine",
    "onnxruntime",
    "provider",
    "latency_table",
    "batch",
    "latency_command",
    "latency_runs",
    "latency_timeout",
    "latency_retries",
    "rescale",
    "constants",
)


@takes_settings(*OWN)
def prune_pretrained(
    directory: Union[str, Path],
    output: Union[str, Path],
    *,
    keys: Optional[Mapping[str, Any]] = None,
    config_list: Optional[Config] = None,
    verify: bool = True,
    progress: Optional[bool] = None,
    **settings: "Unpack[Settings]",
) -> Plan:
    """Prunes a directory that `from_pretrained` loads into another one that it loads.

        plan = parsimony.prune_pretrained("stories260K", "small", ratio=0.25)
        model = transformers.AutoModelForCausalLM.from_pretrained("small")

    Weights keep their names, files and element types; the configuration gets the sizes with which the
    class builds the small network, and every other file is copied. What no configuration can express
    is not pruned, and a note says so. Heads are removed whole, unless `granularity` says otherwise.
    Then the small network is loaded and compared with the original whose removed parts are zero.

    Args:
        directory: with `config.json` and weights, as .safetensors or .bin, in one or several files.
        output: a directory that does not exist, or is empty.
        keys: sizes of the configuration and what share of each to remove, as
            {"intermediate_size": 0.25, "num_attention_heads": "50%"}, in nested configurations by
            their path or their last part; other sizes stay.
        config_list: as for `prune`.
        verify: compare the networks, which takes the memory of both.
        progress: as for `prune`.
        {settings}

    Returns:
        The plan. `plan.save` writes it; `parsimony apply DIR --plan` replays its `data`.

    Raises:
        ConfigError: an argument is not valid, or `output` is not empty.
        FileError: a file of the directory is missing or damaged.
        UnsupportedError: the directory's network cannot be pruned like this.
        VerificationError: the small network's outputs differ. In all cases there is no output.
    """
    asked = given(prune_pretrained, settings)
    seed, exclude = int(asked.pop("seed", 0)), listed(asked.pop("exclude", ()))
    shares = {key: share_of(amount, f"keys: {key}") for key, amount in (keys or {}).items()}
    if config_list is None:
        asked.setdefault("granularity", "head")
        if shares:
            asked.setdefault("ratio", max(shares.values()))
    request = Request(config_of(config_list, take_config(asked)), excluded=exclude, writes=False)
    request.options += ["--seed", str(seed), *options_of(asked)]
    target = Path(output).resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(
            f"{target}: exists already; the output must be a new or an empty directory"
        )
    with (
        quiet(),
        Steps(progress, "export", "plan", "write", "prove") as step,
        ExitStack() as place,
    ):
        folder = Path(place.enter_context(tempfile.TemporaryDirectory(prefix="parsimony_")))
        step("export")
        network = Pretrained(Path(directory))
        return _Pruning(network, request, folder, target, verify, seed, step, shares).run()


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
        self._conversions = conversions = Conversions(self.model)
        if conversions.joins(self.stored):
            self.configured.saved = conversions.saved
        self.shapes = self.configured.shapes(self.configured.copy()) or {}
        self.names = self._names(conversions)
        self.root = self.model
        if conversions.joins(self.stored):
            self.root = self._as_stored()
            _for_one_call(self.root)
        self.tied = self._tied(conversions)

    def built(self, config: Any) -> Tuple[nn.Module, Dict[str, Tensor]]:
        """Returns a model without elements, and those of the buffers that the class computes."""
        types = [tensor.dtype for tensor in self.stored.values() if tensor.dtype in _TYPES]
        dtype = max(set(types), key=types.count, default=torch.float32)
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
        _for_one_call(model)
        return model.eval(), computed

    def program(self, model: Optional[nn.Module] = None) -> Program:
        """Returns the program of a model, or of that of the directory."""
        return Program(model or self.root, self.inputs(), outputs_only=True)

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

    def _names(self, conversions: Conversions) -> Dict[str, str]:
        """Returns the stored names of the tensors that the class saves; tied ones have one."""
        joined = conversions.joins(self.stored)
        own = {name if joined else conversions.name_of(name): name for name in self.stored}
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
        return AsStored(self.model, tensors)

    def _tied(self, conversions: Conversions) -> Dict[str, List[str]]:
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
        dtype = next(self.model.parameters()).dtype if device == "meta" else _PROVEN_IN
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


def _load(weights: Path) -> Dict[str, Tensor]:
    """Returns the elements of the tensors of a file or an index."""
    from safetensors.torch import load_file

    if weights.suffix == ".json":
        names = sorted(set(json.loads(weights.read_text())["weight_map"].values()))
        parts = [_load(weights.parent / name) for name in names]
        return {name: tensor for part in parts for name, tensor in part.items()}
    if weights.suffix == ".safetensors":
        loaded: Dict[str, Tensor] = load_file(weights)
        return loaded
    loaded = torch.load(weights, map_location="cpu", weights_only=True)
    return {name: tensor for name, tensor in loaded.items() if isinstance(tensor, Tensor)}


def _for_one_call(model: nn.Module) -> None:
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


class _Fault(NamedTuple):
    """Why a plan does not suit: the groups at fault, and what to tell."""

    groups: List[Dict[str, Any]]
    text: str


class _Pruning:
    """One pruning: plans until one has a configuration."""

    def __init__(
        self,
        network: Pretrained,
        request: Request,
        folder: Path,
        target: Path,
        verify: bool,
        seed: int,
        step: Any,
        shares: Mapping[str, float],
    ) -> None:
        self.network = network
        self.request = request
        self.folder = folder
        self.target = target
        self.verify = verify
        self.seed = seed
        self.step = step
        self.shares = dict(shares)  # by keys that are to be looked for
        self.file = folder / "model.pt2"
        self.notes: List[str] = []
        self.widths: Dict[str, float] = {}  # ratios that were chosen, by layer

    def run(self) -> Plan:
        self.network.save(self.file)
        refused: List[str] = []
        for _ in range(_MOST_ATTEMPTS):
            self.step("plan")
            answer = self.request.run(self.file, self.folder)
            solved = self._solve(answer)
            if solved is None:
                continue
            if self.shares:
                self._choose(answer, solved[0])
                continue
            if answer.plan.empty:
                said = [*self.notes, *answer.plan.notes, *refused]
                raise UnsupportedError("\n".join(["nothing was pruned", *said]))
            fault: Optional[VerificationError] = None
            for changes in solved:
                try:
                    return self._written(copy.deepcopy(answer), changes)
                except VerificationError as error:
                    fault = fault or error
            refused.append(str(fault))
            if not self._without_one_key(answer, solved[0]):
                raise fault or UnsupportedError("no plan")
        raise UnsupportedError(
            "\n".join(["no plan suits the configuration", *self.notes, *refused])
        )

    def _expected(self, answer: Answer, counts: Mapping[str, int] = {}) -> Shapes:
        """Returns the shapes of the small network's tensors.

        Args:
            counts: channels that groups keep in place of what the plan says, by id.
        """
        shapes = {name: list(shape) for name, shape in self.network.shapes.items()}
        for group in answer.plan.groups:
            kept = counts.get(group["id"], group["kept"])
            done = set()
            for name, axes in answer.plan.cuts([group]).items():
                tied = self.network.tied[name]
                for axis, cut in axes.items():
                    if (tied[0], axis) in done:  # each of the names of a tensor is cut in the plan
                        continue
                    done.add((tied[0], axis))
                    removed = cut.size - len(cut.keep)
                    removed = removed * (group["size"] - kept) // (group["size"] - group["kept"])
                    for other in tied:
                        if other in shapes:
                            shapes[other][axis] -= removed
        return {name: tuple(shape) for name, shape in shapes.items()}

    def _solve(self, answer: Answer) -> Optional[List[List[AttributeChange]]]:
        """Returns choices of changes of the configuration for a plan; None if it asks for another
        plan."""
        unstored = self._unstored(answer)
        if unstored.groups:
            self._spare(answer, unstored)
            return None
        expected = self._expected(answer)
        solutions = self._solutions(expected, answer.plan.groups)
        whole = [group for group in answer.plan.groups if _of_heads(group)]
        asked = not self.shares or any(key.endswith(("head", "heads")) for key in self.shares)
        if asked and len(solutions) > 1 and solutions[0][1] and self._resize(answer, whole):
            return None
        found = [changes for changes, wrong in solutions if not wrong]
        if found:
            return found
        changes, wrong = min(solutions, key=lambda solution: len(solution[1]))
        for change in changes:  # a key may stand for more than the plan cuts
            if self._cuts_more(expected, changes) - self._cuts_more(
                expected, [one for one in changes if one is not change]
            ):
                groups = self._groups_of(answer, changes, change)
                key = path_of(change)
                more = sorted(self._cuts_more(expected, changes))[0][0]
                self._spare(answer, _Fault(groups, f"{key} is a size of {more}, too, which stays"))
                return None
        shapes = self.network.configured.shapes_with(changes) or {}
        guilty = [
            group for group in answer.plan.groups if self._cut_otherwise(answer, group, shapes)
        ]
        if not self._resize(answer, guilty):
            text = f"no key of {CONFIG} changes the sizes of {sorted(wrong)[0]!r} alone"
            self._spare(answer, _Fault(guilty or list(answer.plan.groups), text))
        return None

    def _solutions(
        self, expected: Shapes, groups: Sequence[Mapping[str, Any]]
    ) -> List[Tuple[List[AttributeChange], Set[str]]]:
        """Returns changes and the names of the tensors whose shapes they do not give: with other
        numbers of heads, which need not show in a shape, if heads were removed; and without."""
        configured, sizes = self.network.configured, _sizes(groups)
        of_heads = list(filter(_of_heads, groups))
        places = {self.network.place_of(part) for group in of_heads for part in group["slices"]}
        units = {group["size"] for group in of_heads}
        heads: Dict[str, AttributeChange] = {}  # one for each key, of what is a group's own number
        for change in configured.candidates(_sizes(of_heads)):
            named = name_of(change).endswith(("head", "heads")) and change.before is not None
            if named and path_of(change).rpartition(".")[0] in places:
                if change.attribute not in heads or change.before in units:
                    heads[change.attribute] = change
        solutions = [configured.solve(expected, sizes, given=list(heads.values()))] if heads else []
        solutions.append(configured.solve(expected, sizes))
        return solutions

    def _cuts_more(
        self, expected: Shapes, changes: Sequence[AttributeChange]
    ) -> Set[Tuple[str, int]]:
        """Returns the axes of tensors that are smaller than expected with these changes."""
        configured = self.network.configured
        shapes = configured.shapes_with(changes) or {}
        return {
            (name, axis)
            for name, shape in expected.items()
            for axis, (size, now) in enumerate(zip(shape, shapes.get(name, ())))
            if now < size
        }

    def _unstored(self, answer: Answer) -> _Fault:
        """Returns the groups that cut what the directory does not store: the class computes it."""
        stored = self.network.names
        lost = {
            part["tensor"]
            for group in answer.plan.groups
            for part in group["slices"]
            if part["tensor"] not in stored
        }
        groups = [
            group
            for group in answer.plan.groups
            if lost & {part["tensor"] for part in group["slices"]}
        ]
        return _Fault(
            groups, f"{', '.join(sorted(lost)[:1])} is not stored, but computed by the class"
        )

    def _resize(self, answer: Answer, guilty: Sequence[Dict[str, Any]]) -> bool:
        """Asks for the nearest number of channels that the class takes; False if there is none."""
        for size, kept in sorted({(group["size"], group["kept"]) for group in guilty}):
            groups = [group for group in guilty if (group["size"], group["kept"]) == (size, kept)]
            others = sorted(
                (count for count in range(1, size) if count != kept),
                key=lambda count: (abs(count - kept), -count),
            )
            for count in others[:_MOST_SIZES]:
                counts = {group["id"]: count for group in groups}
                resized = [
                    {**group, "kept": counts.get(group["id"], group["kept"])}
                    for group in answer.plan.groups
                ]
                _, wrong = self._solutions(self._expected(answer, counts), resized)[0]
                touched = {
                    name
                    for group in groups
                    for part in group["slices"]
                    for name in self.network.tied[part["tensor"]]
                }
                if wrong & touched:
                    continue
                layers = sorted({layer for group in groups for layer in answer.layers_of(group)})
                if not layers or any(layer in self.widths for layer in layers):
                    return False
                self.widths.update((layer, count) for layer in layers)
                ratio = (size - count) / size + 1e-9
                self.request.config["config_list"].append(
                    {"op_names": layers, "sparse_ratio": ratio}
                )
                self.notes.append(
                    f"{self.network.kind.__name__} does not take {kept} of {size}: {count} are kept "
                    f"in {layers[0]}{_and_others(layers)}"
                )
                return True
        return False

    def _spare(self, answer: Answer, fault: _Fault) -> None:
        """Excludes the layers of the groups at fault."""
        names = {layer for group in fault.groups for layer in answer.layers_of(group)}
        new = sorted(names - set(self.request.excluded))
        if not new:
            raise UnsupportedError(f"{self.network.path}: {fault.text}")
        self.request.excluded += new
        self.notes.append(f"not pruned: {', '.join(new)}: {fault.text}")

    def _choose(self, answer: Answer, changes: Sequence[AttributeChange]) -> None:
        """Asks for the shares of the groups behind the keys, and leaves all others.

        Raises:
            ConfigError: no group hangs on a key.
        """
        ratios: Dict[str, float] = {}  # by layer
        for key, share in self.shares.items():
            name = getattr(self.network.config, "attribute_map", {}).get(key, key)
            of_key = [one for one in changes if name in (path_of(one), name_of(one))]
            groups = [group for c in of_key for group in self._groups_of(answer, changes, c)]
            groups = groups or self._groups_of_key_alone(answer, name)
            if not groups:
                known = ", ".join(dict.fromkeys(map(path_of, changes))) or "none"
                said = f"keys: {key!r}: no size that can change; those are: {known}"
                raise ConfigError("\n".join([said, *self.notes]))
            for group in groups:
                ratios.update((layer, share) for layer in answer.layers_of(group))
        layers = {layer for group in answer.plan.groups for layer in answer.layers_of(group)}
        self.request.excluded += sorted(layers - ratios.keys())
        for share in sorted(set(ratios.values())):
            names = sorted(layer for layer, ratio in ratios.items() if ratio == share)
            self.request.config["config_list"].append({"op_names": names, "sparse_ratio": share})
        self.shares = {}

    def _groups_of_key_alone(self, answer: Answer, name: str) -> List[Dict[str, Any]]:
        """Returns the groups that one key would give their sizes, although others explain them."""
        configured, expected = self.network.configured, self._expected(answer)
        for change in configured.candidates(_sizes(answer.plan.groups)):
            shapes = configured.shapes_with([change]) if change.attribute == PREFIX + name else None
            groups = [
                group
                for group in answer.plan.groups
                if shapes is not None and not self._cut_otherwise(answer, group, shapes)
            ]
            if groups:
                return groups
        return []

    def _groups_of(
        self, answer: Answer, changes: Sequence[AttributeChange], change: AttributeChange
    ) -> List[Dict[str, Any]]:
        """Returns the groups whose sizes hang on one changed key of the configuration."""
        configured, expected = self.network.configured, self._expected(answer)
        of_size = [
            group
            for group in answer.plan.groups
            for sizes in [_sizes([group])]
            if change.after in sizes.get(change.before, ())
            or (change.before is None and any(change.after in after for after in sizes.values()))
        ]
        shapes = configured.shapes_with([c for c in changes if c is not change])
        if shapes is None or shapes == expected:  # it is not taken alone, or no shape shows it
            return of_size
        return [group for group in of_size if self._cut_otherwise(answer, group, shapes)]

    def _cut_otherwise(self, answer: Answer, group: Dict[str, Any], shapes: Shapes) -> bool:
        """Returns whether a group cuts an axis of a tensor that has another size in `shapes`."""
        expected = self._expected(answer)
        return any(
            name in expected and expected[name][axis] != shapes.get(name, expected[name])[axis]
            for tensor, axes in answer.plan.cuts([group]).items()
            for name in self.network.tied[tensor]
            for axis in axes
        )

    def _without_one_key(self, answer: Answer, changes: Sequence[AttributeChange]) -> bool:
        """Excludes the groups behind one key: from its size the class computes more than shapes. Keys
        that change numbers of the program come first."""
        numbers = self.network.numbers([])
        for change in sorted(
            changes, key=lambda one: self.network.numbers([one]) in (None, numbers)
        ):
            groups = self._groups_of(answer, changes, change)
            left = {layer for group in groups for layer in answer.layers_of(group)}
            if left - set(self.request.excluded):
                key = path_of(change)
                text = f"with another {key} the class computes otherwise"
                self._spare(answer, _Fault(groups, text))
                return True
        return False

    def _written(self, answer: Answer, changes: Sequence[AttributeChange]) -> Plan:
        plan = answer.plan
        plan.attributes = list(changes)
        plan.data["source"].pop("sha256", None)
        plan.data["files"] = [{"name": CONFIG, "text": self._new_config(changes)}]
        names, tied = self.network.names, self.network.tied
        for group in plan.groups:
            slices: List[Dict[str, Any]] = []  # tied tensors are one in the directory, or as many
            for part in group["slices"]:
                for name in tied[part["tensor"]]:
                    renamed = {**part, "tensor": names.get(name)}
                    if name in names and renamed not in slices:
                        slices.append(renamed)
            group["slices"] = slices
        plan.data.update(copies=[], integers=[], followed=[])  # of the program alone
        file = self.folder / "replayed.json"
        plan.save_data(file)
        self.step("write")
        try:
            place = tempfile.TemporaryDirectory(prefix=".parsimony_", dir=self.target.parent)
        except OSError as error:
            raise FileError(f"{self.target}: cannot be written: {error.strerror}") from error
        with place as folder:
            small = Path(folder) / "small"
            run_command(["apply", self.network.path, "--plan", file, "-o", small, "-q"])
            if self.verify:
                self.step("prove")
                self._prove(plan, small)
            if self.target.exists():
                self.target.rmdir()
            small.rename(self.target)
        shapes = self.network.configured.shapes_with(changes) or {}
        before = self.network.shapes
        plan.shapes = {
            name: (before[name], shapes[name]) for name in before if before[name] != shapes[name]
        }
        plan.notes += self.notes
        return plan

    def _new_config(self, changes: Sequence[AttributeChange]) -> str:
        """Returns the text of the configuration with the changed keys, and as little else changed as
        the class needs: keys that it computed from others, such as the size of a head, are added.
        """
        configured, text = self.network.configured, copy.deepcopy(self.network.text)
        changed = configured.changed(changes)
        for change in changes:
            _set_key(text, changed.to_dict(), change.attribute[len(PREFIX) :].split("."))
        expected = configured.shapes(changed)
        read = type(changed).from_dict(copy.deepcopy(text))
        if configured.shapes(read) != expected:
            _add_keys(text, read.to_dict(), changed.to_dict())
        if configured.shapes(type(changed).from_dict(copy.deepcopy(text))) != expected:
            raise UnsupportedError(f"{self.network.path / CONFIG}: the new sizes cannot be written")
        return json.dumps(text, indent=2) + "\n"

    def _prove(self, plan: Plan, small: Path) -> None:
        """Compares the small directory's network with the original whose removed parts are zero.

        Raises:
            VerificationError: they differ, or the small one does not load.
        """
        network = self.network
        inputs = [network.inputs("cpu", self.seed + i) for i in range(2)]
        try:
            model = network.kind.from_pretrained(small, dtype=_PROVEN_IN)
        except Exception as error:
            raise UnsupportedError(f"the small network does not load: {error}") from error
        try:
            found = self._outputs(model, inputs)
        except Exception as error:
            raise VerificationError(f"the small network does not run: {error}") from error
        result = compare(
            "the masked original", self._of_masked(plan, inputs), found, "the small network"
        )
        # What mixes by more than normalisations; in other types it would be compared too loosely.
        of_type = next(network.model.parameters()).dtype == _PROVEN_IN
        if result.fault and plan.mixes and of_type:
            with contextlib.suppress(Exception):
                reference = "the command's small network, which it verified"
                expected = self._of_command(inputs)
                result = compare(reference, expected, found, "the small network")
        if result.fault:
            raise VerificationError(result.fault)
        plan.proof = result.proof

    def _of_masked(self, plan: Plan, inputs: Sequence[Inputs]) -> List[List[Tensor]]:
        """Returns the outputs of the original whose removed parts are zero, and whose normalisations of
        channels are over those that are kept."""
        tensors, cuts = _load(self.network.weights), plan.cuts()
        for name, axes in cuts.items():
            set_zero(tensors[name], axes)
        config = self.network.configured.copy()
        model = self.network.kind.from_pretrained(
            None, config=config, state_dict=tensors, dtype=_PROVEN_IN
        )
        by_weight: Dict[int, Cuts] = {}
        for path, part in model.named_modules():
            cut = cuts.get(self.network.names.get(join(path, "weight"), ""), {})
            if list(cut) != [0] or "Norm" not in type(part).__name__:
                continue
            by_weight[id(part.weight)] = cut
            if not isinstance(part, _NORMS):
                _narrow(part, cut[0])
        with NormsOverKept(by_weight):
            return self._outputs(model, inputs)

    def _of_command(self, inputs: Sequence[Inputs]) -> List[List[Tensor]]:
        small, plan = self.folder / "small.pt2", self.folder / "plan.json"
        run_command(["apply", self.file, "-o", small, "--plan", plan, "-q"])
        run_command(["verify", self.file, small, "--plan", plan, "--threads", 1])
        network = load_with(small, {}, torch.device("cpu"))  # it was exported on the device meta
        with torch.no_grad():
            return outputs_of(network, [Inputs(tuple(one.tensors()), {}) for one in inputs])

    def _outputs(self, model: nn.Module, inputs: Sequence[Inputs]) -> List[List[Tensor]]:
        _for_one_call(model)
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


def _of_heads(group: Mapping[str, Any]) -> bool:
    """Returns whether each channel of a group is several of a tensor."""
    return any(part["size"] > group["size"] for part in group["slices"])


def _sizes(groups: Sequence[Mapping[str, Any]]) -> Dict[int, List[int]]:
    """Returns what numbers of the configuration may become, by groups: those of channels, of their
    parts, such as the sizes of heads, and what they are multiplied by."""
    found: Dict[int, List[int]] = {}
    for group in groups:
        size, kept = group["size"], group["kept"]
        widest = max((part["size"] for part in group["slices"]), default=size)
        for number in range(size, widest + 1, size):
            if widest % number == 0 or number == size:
                after = number // size * kept
                known = found.setdefault(number, [])
                if after not in known:
                    known.append(after)
    return found


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
