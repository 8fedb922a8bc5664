"""Configurations of models that `from_pretrained` builds, brought up to date after a cut.

A key of the configuration is changed if a model built from it then has more of the shapes of the pruned
one. These models are built on the device `meta`, so that nothing is allocated.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import re
from typing import (
    AbstractSet,
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

import torch
from torch import Tensor, nn

from .editing import Journal
from .plan import AttributeChange, Cuts

Shapes = Dict[str, Tuple[int, ...]]
PREFIX = "config."
HEADS = ("head", "heads")  # ends of keys that count heads
_MOST_PAIRS = 200
_MOST_BUILDS = 300  # of one search
_SIZE = re.compile("dim|size|width")


def smaller(before: Shapes, after: Mapping[str, Tuple[int, ...]]) -> Set[Tuple[str, int]]:
    """Returns the axes of tensors that are smaller."""
    return {
        (name, axis)
        for name, shape in before.items()
        for axis, (size, now) in enumerate(zip(shape, after.get(name, ())))
        if now < size
    }


@contextlib.contextmanager
def parameters_on_meta(dtype: torch.dtype) -> Iterator[None]:
    """Makes modules that are built meanwhile have parameters without elements, and real buffers."""
    register, before = nn.Module.register_parameter, torch.get_default_dtype()

    def register_on_meta(module: nn.Module, name: str, parameter: Optional[nn.Parameter]) -> None:
        register(module, name, parameter)
        known = module._parameters[name]
        if known is not None and not known.is_meta:
            module._parameters[name] = nn.Parameter(known.to("meta"), known.requires_grad)

    try:
        nn.Module.register_parameter = register_on_meta  # type: ignore[method-assign]
        torch.set_default_dtype(dtype)
        yield
    finally:
        nn.Module.register_parameter = register  # type: ignore[method-assign]
        torch.set_default_dtype(before)


def has_config(module: nn.Module) -> bool:
    """Returns whether a model is built from its attribute `config`, as those of transformers are."""
    return hasattr(type(module), "from_pretrained") and hasattr(
        getattr(module, "config", None), "to_dict"
    )


class Configured:
    """A class whose models are built from a configuration, on the device `meta`.

    Args:
        config: is not changed.
        saved: returns the tensors of a model under the names, and in the parts, that count.
    """

    def __init__(
        self,
        kind: Any,
        config: Any,
        saved: Callable[[nn.Module], Mapping[str, Tensor]] = nn.Module.state_dict,
    ) -> None:
        self.kind = kind
        self._config = config
        self.saved = saved
        self._asked = _asked_for(kind, config)
        self._known: Dict[FrozenSet[Tuple[str, str]], Optional[Shapes]] = {}

    def copy(self) -> Any:
        """Returns a copy of the configuration."""
        return copy.deepcopy(self._config)

    def changed(self, changes: Sequence[AttributeChange]) -> Any:
        """Returns a copy of the configuration with these changes."""
        config = self.copy()
        for change in changes:
            _set(config, change.attribute[len(PREFIX) :], change.after)
        return config

    def shapes(self, config: Any) -> Optional[Shapes]:
        """Returns the shapes of a model's tensors; None if the configuration's class or the model's
        refuses it."""
        try:
            if hasattr(config, "validate"):  # as when a file is read
                config.validate()
            with torch.device("meta"):
                tensors = self.saved(self.kind(copy.deepcopy(config)))
            return {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        except Exception:
            return None

    def shapes_with(self, changes: Sequence[AttributeChange]) -> Optional[Shapes]:
        """Returns the shapes of a model with these changes; None if its class refuses them."""
        key = frozenset((one.attribute, str(one.after)) for one in changes)
        if key not in self._known:
            try:
                self._known[key] = self.shapes(self.changed(changes))
            except Exception:  # a key may take no integer
                self._known[key] = None
        return self._known[key]

    def solve(
        self,
        expected: Shapes,
        sizes: Mapping[int, Iterable[int]],
        first: AbstractSet[str] = frozenset(),
        given: Sequence[AttributeChange] = (),
    ) -> Tuple[List[AttributeChange], Set[str]]:
        """Returns changes with which the class builds a model of these shapes, and the names of the
        tensors whose shapes still differ.

        Args:
            sizes: what an integer of the configuration may become.
            first: keys that are tried before others.
            given: changes that stay.
        """
        candidates = self.candidates(sizes)
        candidates.sort(key=lambda one: (one.before is None, name_of(one) not in first))
        numbers = [one for one in candidates if one.before is not None]
        # Two at a time where the class takes neither alone: numbers of heads, and of their keys.
        pairs = [[one, two] for one in numbers for two in numbers if one.attribute < two.attribute]
        steps = [[one] for one in candidates] + pairs[:_MOST_PAIRS]
        # What the class computes from other keys may have to stay: the size of a head.
        sizes_now = {size for shape in expected.values() for size in shape}
        counts = {x for _, x in _integers(self._config, "") if x is not None and x > 0}
        parts = {size // count for size in sizes_now for count in counts if size % count == 0}
        stay = [one for one in self.candidates({x: x for x in parts}) if one.before is None]
        steps += [[one] for one in sorted(stay, key=lambda one: not _SIZE.search(name_of(one)))]
        found = list(given)
        wrong = _differing(self.shapes_with(found), expected)
        better = True
        most = len(self._known) + _MOST_BUILDS
        while wrong and better:  # what the class refuses it may take once another key has changed
            better = False
            # A key that was changed in place of another may have to be changed back.
            own = [one for one in found if one not in given]
            for kept in [found, *([one for one in found if one is not other] for other in own)]:
                for step in [[], *steps] if kept is not found else steps:
                    if len(self._known) > most:
                        return found, wrong
                    if any(one.attribute == two.attribute for one in step for two in kept):
                        continue
                    now = _differing(self.shapes_with([*kept, *step]), expected)
                    if len(now) < len(wrong):
                        found, wrong, better = [*kept, *step], now, True
                        break
                if better:
                    break
        return found, wrong

    def candidates(self, sizes: Mapping[int, Union[int, Iterable[int]]]) -> List[AttributeChange]:
        """Returns what integers of the configuration may become; what has no value, anything."""
        lists = {size: [x] if isinstance(x, int) else sorted(x) for size, x in sizes.items()}
        anything = sorted({after for some in lists.values() for after in some})
        return [
            AttributeChange("", f"{PREFIX}{path}", before, after)
            for path, before in (*_integers(self._config, ""), *((x, None) for x in self._asked))
            for after in (anything if before is None else lists.get(before, []))
        ]


def _asked_for(kind: Any, config: Any) -> List[str]:
    """Returns the paths of keys that the class would take and that the configuration has not."""
    asked: Set[str] = set()

    def listening(own: Any, place: str) -> None:
        class Listening(type(own)):  # type: ignore[misc]
            def __getattr__(self, name: str) -> Any:
                asked.add(place + name)
                raise AttributeError(name)

        for name, value in list(vars(own).items()):
            if hasattr(value, "to_dict"):
                listening(value, f"{place}{name}.")
        own.__class__ = Listening

    copied = copy.deepcopy(config)
    with contextlib.suppress(Exception), torch.device("meta"):
        listening(copied, "")
        kind(copied)
    common = _common_keys(type(config))
    names = {path: path.rpartition(".")[2] for path in asked}
    return sorted(p for p, name in names.items() if name not in common and name[0] != "_")


def path_of(change: AttributeChange) -> str:
    """Returns the path of a changed key, of an item that of its list: "depths" of "config.depths.1"."""
    return re.sub(r"(\.\d+)+$", "", change.attribute[len(PREFIX) :])


def name_of(change: AttributeChange) -> str:
    """Returns the last part of a changed key: "hidden_size" of "config.text_config.hidden_size"."""
    return path_of(change).rpartition(".")[2]


def changed_config(
    module: nn.Module, cuts: Mapping[str, Cuts], known: List[AttributeChange]
) -> Optional[List[AttributeChange]]:
    """Returns the changes of the configuration with which the class builds the pruned module.

    Args:
        cuts: of its tensors.
        known: attributes that were changed: keys of these names are tried first.

    Returns:
        None if no configuration gives these shapes.
    """
    sizes: Dict[int, Set[int]] = {}
    for change in known:
        if type(change.before) is int:
            sizes.setdefault(change.before, set()).add(change.after)
    for axes in cuts.values():
        for cut in axes.values():
            sizes.setdefault(cut.size, set()).add(len(cut.keep))
    names = {change.attribute for change in known}
    configured = Configured(type(module), module.config)
    changes, wrong = configured.solve(shapes_of(module), sizes, names)
    return None if wrong else changes


def own_config(module: nn.Module, journal: Journal) -> None:
    """Gives the model and its parts a copy of their configuration, which other models may share."""
    shared = module.config
    own = copy.deepcopy(shared)
    for part in module.modules():
        if getattr(part, "config", None) is shared:
            journal.replace_attribute(part, "config", own)


def owner_of(root: Any, path: str) -> Tuple[Any, str]:
    """Returns the object and the name of its attribute at a path such as "text_config.hidden_size"."""
    *parents, name = path.split(".")
    for parent in parents:
        root = root[int(parent)] if isinstance(root, list) else getattr(root, parent)
    return root, name


def built_like(module: nn.Module) -> nn.Module:
    """Returns a model that the class builds from the module's configuration, with its state: what
    `from_pretrained` would return.

    Raises:
        RuntimeError: the state does not fit.
    """
    device = next(module.parameters()).device
    with torch.random.fork_rng(), torch.device(device):
        fresh = type(module)(copy.deepcopy(module.config))
    fresh.to(next(module.parameters()).dtype).load_state_dict(module.state_dict())
    return fresh


def shapes_of(module: nn.Module) -> Shapes:
    """Returns the shapes of the tensors that a module saves."""
    return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}


def _differing(shapes: Optional[Shapes], expected: Shapes) -> Set[str]:
    found = shapes or {}
    return {n for n in expected.keys() | found.keys() if expected.get(n) != found.get(n)}


def _set(config: Any, path: str, value: Any) -> None:
    owner, name = owner_of(config, path)
    if isinstance(owner, list):
        owner[int(name)] = value
    else:
        setattr(owner, name, value)


@functools.lru_cache(maxsize=None)
def _common_keys(kind: type) -> FrozenSet[str]:
    """Returns the keys that every configuration has, none of which is a size of tensors."""
    for base in reversed(kind.__mro__[1:-1]):
        if hasattr(base, "to_dict"):
            try:
                return frozenset(vars(base())) | {"quantization_config", "gradient_checkpointing"}
            except Exception:
                break
    return frozenset()


def items_of(config: Any) -> Iterator[Tuple[str, Any]]:
    """Yields the keys of a configuration that may have to do with its network, and their values."""
    common = _common_keys(type(config))
    for name, value in vars(config).items():
        if name not in common and not name.startswith("_") and not name.endswith("_token_id"):
            yield name, value


def integers_of(config: Any) -> Dict[str, int]:
    """Returns the integers of a configuration, by their paths."""
    return {path: value for path, value in _integers(config, "") if value is not None}


def _integers(config: Any, place: str) -> Iterator[Tuple[str, Optional[int]]]:
    """Yields the integers of a configuration, of its lists and of configurations inside it, by their
    paths; None for keys without a value, which may be computed from others."""
    for name, value in items_of(config):
        if type(value) is int or value is None:
            yield place + name, value
        elif isinstance(value, list):
            yield from ((f"{place}{name}.{i}", x) for i, x in enumerate(value) if type(x) is int)
        elif hasattr(value, "to_dict"):
            yield from _integers(value, f"{place}{name}.")
