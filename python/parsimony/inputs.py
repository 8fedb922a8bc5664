"""The arguments of a module's call, and evaluation mode."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Tuple

import torch
from torch import Tensor, nn

from .errors import ConfigError
from .tree import like, map_tensors, tensors_in


class Inputs(NamedTuple):
    """The arguments of one call of a module."""

    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]

    @staticmethod
    def of(example: Any) -> "Inputs":
        """Converts what the user passes: a tensor, positional arguments, or named ones."""
        if isinstance(example, Inputs):
            return example
        if isinstance(example, Mapping):
            return Inputs((), dict(example))
        if isinstance(example, (tuple, list)):
            return Inputs(tuple(example), {})
        return Inputs((example,), {})

    def map(self, change: Any) -> "Inputs":
        """Returns the same arguments with tensors replaced."""
        return Inputs(*map_tensors((self.args, self.kwargs), change))

    def tensors(self) -> List[Tensor]:
        """Returns all tensors of the arguments, in order."""
        return tensors_in((self.args, self.kwargs))

    def named_like(self, example: "Inputs") -> "Inputs":
        """Returns the same arguments, those with names in the order of `example`'s.

        Raises:
            ConfigError: they have other names.
        """
        if not example.kwargs or not self.kwargs:
            return self
        if self.kwargs.keys() != example.kwargs.keys():
            raise ConfigError(
                f"data=: a batch has the inputs {', '.join(self.kwargs)}, the example "
                f"{', '.join(example.kwargs)}"
            )
        return Inputs(self.args, {name: self.kwargs[name] for name in example.kwargs})

    def first(self) -> "Inputs":
        """Returns the first sample, if all tensors have the same number of samples."""
        counts = {tensor.shape[:1] for tensor in self.tensors()}
        return self.map(lambda tensor: tensor[:1]) if len(counts) == 1 else self

    def random(self, seed: int) -> "Inputs":
        """Returns random inputs like these."""
        generator = torch.Generator().manual_seed(seed)
        return self.map(lambda tensor: like(tensor, generator))

    @property
    def vary(self) -> bool:
        """Whether each tensor has different elements: zeros or ones would hide differences."""
        many = [tensor for tensor in self.tensors() if tensor.numel() > 1]
        if any(tensor.is_meta for tensor in many):
            return True
        return bool(many) and all(bool((t != t.reshape(-1)[0]).any()) for t in many)

    def call(self, module: nn.Module) -> Any:
        """Returns the module's result for copies of them, since it may change them in place."""
        copies = self.map(Tensor.clone)
        return module(*copies.args, **copies.kwargs)


@contextlib.contextmanager
def evaluating(module: nn.Module, training: Iterable[str] = ()) -> Iterator[None]:
    """Sets evaluation mode, without gradients, except training mode for the modules at the paths
    `training`."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    for path in training:
        module.get_submodule(path).training = True
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for part, mode in modes:
            part.training = mode
