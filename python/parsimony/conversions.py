"""Tensors of a model as its directory stores them: under other names, or in parts, as transformers'
loader tells. Experts are stored one by one, and joined when they are read."""

from __future__ import annotations

import copy
import re
from typing import Any, Dict, Iterable, List, Mapping, Tuple

from torch import Tensor, nn

from .editing import join, named_tensors


def tied_names(model: nn.Module) -> List[List[str]]:
    """Returns the names of each tensor of a model."""
    names: Dict[int, List[str]] = {}
    for name, tensor in named_tensors(model).items():
        names.setdefault(id(tensor), []).append(name)
    return list(names.values())


class Conversions:
    """What `from_pretrained` does to the tensors of a class.

    Args:
        model: of that class.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._state = model.state_dict()
        self._prefix = getattr(model, "base_model_prefix", "") or None
        self._renamings: List[Any] = []
        self._converters: List[Any] = []
        try:
            from transformers.conversion_mapping import get_model_conversion_mapping
            from transformers.core_model_loading import WeightConverter, rename_source_key
        except ImportError:  # before version 5 names are those of the class
            return
        self._rename = rename_source_key
        for one in get_model_conversion_mapping(model):
            joins = isinstance(one, WeightConverter)
            (self._converters if joins else self._renamings).append(one)

    def name_of(self, stored: str) -> str:
        """Returns the name in the model of a stored tensor."""
        return self._target(stored)[0]

    def joins(self, stored: Iterable[str]) -> bool:
        """Returns whether some stored tensors are parts of tensors of the model."""
        return any(self._target(name)[1] is not None for name in stored)

    def _target(self, stored: str) -> Tuple[str, Any]:
        if stored in self._state or not (self._renamings or self._converters):
            return stored, None
        found: Tuple[str, Any] = self._rename(
            stored, self._renamings, self._converters, self._prefix, self._state
        )
        return found

    def loaded(self, stored: Mapping[str, Tensor]) -> Dict[str, Tensor]:
        """Returns the tensors of the model that are made of stored ones."""
        by_pattern = {pattern: one for one in self._converters for pattern in one.source_patterns}
        result: Dict[str, Tensor] = {}
        joined: Dict[str, Any] = {}
        for name in sorted(stored, key=_natural):
            target, pattern = self._target(name)
            if pattern is None:
                result[target] = stored[name]
                continue
            converter = joined.setdefault(target, copy.deepcopy(by_pattern[pattern]))
            converter.add_tensor(target, name, pattern, stored[name])
        config = getattr(self.model, "config", None)
        for target, converter in joined.items():
            made = converter.convert(target, model=self.model, config=config)
            result.update((k, x[0] if isinstance(x, list) else x) for k, x in made.items())
        return result

    def saved(self, model: nn.Module) -> Dict[str, Tensor]:
        """Returns the tensors of a model of the class as `save_pretrained` writes them."""
        from transformers.core_model_loading import revert_weight_conversion

        found: Dict[str, Tensor] = revert_weight_conversion(model, model.state_dict())
        return found


def _natural(name: str) -> List[Any]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


class AsStored(nn.Module):
    """A model whose parameters are the stored tensors: that they are joined is part of its program.

    Args:
        model: on the device `meta`.
        stored: its tensors there, by their stored names.
    """

    def __init__(self, model: nn.Module, stored: Mapping[str, Tensor]) -> None:
        super().__init__()
        self._conversions = Conversions(model)
        inner = copy.deepcopy(model)
        inner.__dict__.pop("forward", None)  # one that was set calls the original
        self._inner = [inner]  # in a list, so that it is no part of this module
        self._stored = list(stored)
        self._computed = [name for name, _ in model.named_buffers() if name not in stored]
        self._places: Dict[str, Tuple[nn.Module, str]] = {}
        for path, part in inner.named_modules():
            for own in (part._parameters, part._buffers):
                self._places.update((join(path, name), (part, name)) for name in own)
                own.clear()  # plain attributes stand in their place, see `forward`
        for name, tensor in stored.items():
            parent, leaf = self._owner(name)
            parent.register_parameter(leaf, nn.Parameter(tensor, tensor.is_floating_point()))
        for name, tensor in model.named_buffers():
            if name in self._computed:
                parent, leaf = self._owner(name)
                parent.register_buffer(leaf, tensor, persistent=False)

    def _owner(self, name: str) -> Tuple[nn.Module, str]:
        *path, leaf = name.split(".")
        module: nn.Module = self
        for part in path:
            if part not in module._modules:
                module.add_module(part, nn.Module())
            module = module.get_submodule(part)
        return module, leaf

    def _tensor(self, name: str) -> Tensor:
        path, _, leaf = name.rpartition(".")
        found: Tensor = getattr(self.get_submodule(path), leaf)
        return found

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        tensors = self._conversions.loaded({name: self._tensor(name) for name in self._stored})
        tensors.update((name, self._tensor(name)) for name in self._computed)
        for names in tied_names(self._conversions.model):
            known = [tensors[name] for name in names if name in tensors]
            tensors.update((name, known[0]) for name in names if known)
        for name, (part, leaf) in self._places.items():
            object.__setattr__(part, leaf, tensors.get(name))
        try:
            return self._inner[0](*args, **kwargs)
        finally:
            for part, leaf in self._places.values():
                object.__delattr__(part, leaf)
