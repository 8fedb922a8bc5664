"""Configurations of models that `from_pretrained` builds, brought up to date after a cut.

A key of the configuration is changed if a model built from it then has more of the shapes of the pruned
one. These models are built on the device `meta`, so that nothing is allocated.
"""

from __future__ import annotations

import copy
from typing import Any, Dict, Iterator, List, Mapping, Optional, Set, Tuple

import torch
from torch import nn

from .editing import Journal
from .plan import AttributeChange, Cuts

Shapes = Dict[str, Tuple[int, ...]]


def has_config(module: nn.Module) -> bool:
    """Returns whether a model is built from its attribute `config`, as those of transformers are."""
    return hasattr(type(module), "from_pretrained") and hasattr(
        getattr(module, "config", None), "to_dict"
    )


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
    expected = _shapes(module)
    sizes: Dict[int, Set[int]] = {}
    for change in known:
        if type(change.before) is int:
            sizes.setdefault(change.before, set()).add(change.after)
    for axes in cuts.values():
        for cut in axes.values():
            sizes.setdefault(cut.size, set()).add(len(cut.keep))
    config = copy.deepcopy(module.config)
    wrong = _differing(type(module), config, expected)
    found: List[AttributeChange] = []
    names = {change.attribute for change in known}
    keys = [key for key in _integers(config, "") if key[1] in sizes]
    for path, before in sorted(keys, key=lambda key: key[0].rpartition(".")[2] not in names):
        for after in sorted(sizes[before]):
            trial = copy.deepcopy(config)
            owner, name = owner_of(trial, path)
            setattr(owner, name, after)
            now = _differing(type(module), trial, expected)
            if now is not None and (wrong is None or now < wrong):
                config, wrong = trial, now
                found.append(AttributeChange("", f"config.{path}", before, after))
                break
    return found if wrong == 0 else None


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
        root = getattr(root, parent)
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


def _shapes(module: nn.Module) -> Shapes:
    return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}


def _differing(kind: Any, config: Any, expected: Shapes) -> Optional[int]:
    """Returns how many tensors differ in shape; None if the class refuses the configuration."""
    try:
        with torch.device("meta"):
            shapes = _shapes(kind(copy.deepcopy(config)))
    except Exception:
        return None
    names = expected.keys() | shapes.keys()
    return sum(expected.get(name) != shapes.get(name) for name in names)


def _integers(config: Any, place: str) -> Iterator[Tuple[str, int]]:
    """Yields the integers of a configuration and of those inside it, by their paths."""
    for name, value in vars(config).items():
        if type(value) is int:
            yield place + name, value
        elif hasattr(value, "to_dict"):
            yield from _integers(value, f"{place}{name}.")
