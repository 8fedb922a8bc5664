"""Updates the sizes that torch's layers store according to their tensors."""

from __future__ import annotations

import math
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from .editing import Factor, Journal, join, own_tensors
from .plan import Cut


class Refusal(Exception):
    """A module's `forward` does not support its pruned tensors."""

    def __init__(self, module: str, tensors: Sequence[str], why: str) -> None:
        super().__init__(f"module {module!r}: {why}")
        self.tensors = tuple(tensors)


class Layer(NamedTuple):
    """A module whose tensors were cut."""

    path: str
    module: Any
    journal: Journal
    rescaled: bool

    def set(self, **sizes: Any) -> None:
        """Sets the attributes, as far as the module has them."""
        for name, value in sizes.items():
            if hasattr(self.module, name):
                self.journal.set_attribute(self.module, name, value)

    def tensor(self, name: str) -> Tensor:
        """Returns the tensor of that name, or its source: the direction of a weight norm, the original of
        a parametrization or of a mask."""
        module = self.module
        if parametrize.is_parametrized(module, name):
            parts = module.parametrizations[name]
            inner: List[Tensor] = [part for part in parts._parameters.values() if part is not None]
            return max(inner, key=lambda part: int(part.numel()))
        for stored in (f"{name}_v", f"{name}_orig", name):
            if stored in module._parameters or (stored == name and hasattr(module, name)):
                tensor: Tensor = getattr(module, stored)
                return tensor
        raise AttributeError(f"{self.path} has no {name}")

    def kept(self, name: str, axis: int) -> Cut:
        """Returns what was kept of an axis of a tensor."""
        return self.journal.kept(self.tensor(name), axis)

    def refused(self, why: str, *tensors: str) -> Refusal:
        """Returns the exception that says why `tensors` cannot be cut."""
        return Refusal(self.path, [join(self.path, name) for name in tensors], why)


class _Parts(NamedTuple):
    number: int
    size: int


def _parts_of(indices: Sequence[int], size: int) -> Optional[_Parts]:
    """Returns the parts of `size` that some of the indices lie in, and how many lie in each; None if
    these are different numbers."""
    counts: Dict[int, int] = {}
    for index in indices:
        counts[index // size] = counts.get(index // size, 0) + 1
    sizes = set(counts.values())
    return _Parts(len(counts), sizes.pop()) if len(sizes) == 1 else None


def remaining_groups(cut: Cut, groups: int) -> Optional[int]:
    """Returns how many of `groups` equal parts of an axis still have channels; None if these have
    different numbers of them."""
    parts = _parts_of(cut.keep, max(cut.size // groups, 1))
    return parts and parts.number


def _conv(layer: Layer) -> None:
    groups = remaining_groups(layer.kept("weight", 0), layer.module.groups)
    if groups is None:
        raise layer.refused("its groups would have different numbers of channels", "weight")
    outer, inner = layer.tensor("weight").shape[:2]
    sizes = (inner * groups, outer) if not layer.module.transposed else (outer, inner * groups)
    layer.set(in_channels=sizes[0], out_channels=sizes[1], groups=groups)


def _linear(layer: Layer) -> None:
    out_features, in_features = layer.tensor("weight").shape
    layer.set(in_features=in_features, out_features=out_features)


def _bilinear(layer: Layer) -> None:
    out_features, in1, in2 = layer.tensor("weight").shape
    layer.set(in1_features=in1, in2_features=in2, out_features=out_features)


def _conv1d(layer: Layer) -> None:
    in_features, out_features = layer.tensor("weight").shape
    layer.set(nx=in_features, nf=out_features)


def _prelu(layer: Layer) -> None:
    layer.set(num_parameters=layer.tensor("weight").shape[0])


def _embedding(layer: Layer) -> None:
    rows, width = layer.tensor("weight").shape
    padding = layer.module.padding_idx
    if padding is not None:
        kept = layer.kept("weight", 0).keep
        if padding not in kept:
            raise layer.refused("the row of padding_idx must stay", "weight")
        layer.set(padding_idx=kept.index(padding))
    layer.set(num_embeddings=rows, embedding_dim=width)


def _feature_norm(layer: Layer) -> None:
    any_vector = next(own_tensors(layer.module))
    layer.set(num_features=any_vector.shape[0])


def _layer_norm(layer: Layer) -> None:
    layer.set(normalized_shape=tuple(layer.tensor("weight").shape))


def _group_norm(layer: Layer) -> None:
    groups = remaining_groups(layer.kept("weight", 0), layer.module.num_groups)
    if groups is None:
        raise layer.refused("its groups would have different numbers of channels", "weight")
    layer.set(num_channels=layer.tensor("weight").shape[0], num_groups=groups)


def _recurrent(layer: Layer) -> None:
    module = layer.module
    cell = isinstance(module, nn.RNNCellBase)
    suffix = "" if cell else "_l0"
    gates = {"LSTM": 4, "GRU": 3}.get(type(module).__name__.replace("Cell", ""), 1)
    gates = {"LSTM": 4, "GRU": 3}.get(getattr(module, "mode", ""), gates)
    rows, inputs = layer.tensor("weight_ih" + suffix).shape
    hidden = rows // gates
    projection = getattr(module, "weight_hr_l0", None)
    projected = 0 if projection is None else projection.shape[0]
    names = [name for name, _ in module.named_parameters(recurse=False)]
    for name in names:
        tensor = layer.tensor(name)
        expected = projected if name.startswith("weight_hr") else gates * hidden
        if tensor.shape[0] != expected:
            raise layer.refused("all its layers have one hidden_size", *names)
        if gates > 1 and not name.startswith("weight_hr"):
            if remaining_groups(layer.kept(name, 0), gates) != gates:
                raise layer.refused("all gates must keep the same number of units", *names)
    if projected and projected == hidden:
        raise layer.refused("proj_size would equal hidden_size, which torch treats as none", *names)
    layer.set(input_size=inputs, hidden_size=hidden, proj_size=projected)


def _attention(layer: Layer) -> None:
    module = layer.module
    inner: List[str]
    if module._qkv_same_embed_dim:
        inner = ["in_proj_weight"]
        kept = layer.kept("in_proj_weight", 0)
        width = kept.size // 3
        rows = [[row % width for row in kept.keep if row // width == part] for part in range(3)]
        inputs = module.in_proj_weight.shape[1]
        kdim = vdim = inputs
    else:
        inner = ["q_proj_weight", "k_proj_weight", "v_proj_weight"]
        rows = [list(layer.kept(name, 0).keep) for name in inner]
        inputs = module.q_proj_weight.shape[1]
        kdim, vdim = module.k_proj_weight.shape[1], module.v_proj_weight.shape[1]
    head_dim = module.head_dim
    heads = _parts_of(rows[0], head_dim)
    if heads is None or any(_parts_of(part, head_dim) != heads for part in rows[1:]):
        raise layer.refused("queries, keys and values must keep equal heads", *inner)
    width = heads.number * heads.size
    if width != inputs:
        why = f"its forward requires heads x head_dim inputs; found {inputs} and {width}"
        raise layer.refused(why, *inner, "out_proj.weight")
    if heads.size != head_dim and not layer.rescaled:
        # The forward divides by the root of the new head_dim; the network was trained with the old.
        factor = Factor(0, list(range(width)), math.sqrt(heads.size / head_dim))
        for name in (inner[0], "in_proj_bias"):
            tensor = getattr(module, name)
            if tensor is not None:
                layer.journal.multiply(tensor, factor)
    layer.set(embed_dim=inputs, num_heads=heads.number, head_dim=heads.size, kdim=kdim, vdim=vdim)


def _loaded(module: str, name: str) -> Tuple[type, ...]:
    """Returns a class of another package, if it was imported."""
    found = getattr(sys.modules.get(module), name, None)
    return (found,) if isinstance(found, type) else ()


def _kinds() -> List[Tuple[Tuple[type, ...], Callable[[Layer], None]]]:
    return [
        ((nn.modules.conv._ConvNd,), _conv),
        ((nn.Bilinear,), _bilinear),
        ((nn.Linear,), _linear),
        (_loaded("transformers.pytorch_utils", "Conv1D"), _conv1d),
        ((nn.PReLU,), _prelu),
        ((nn.Embedding, nn.EmbeddingBag), _embedding),
        ((nn.modules.batchnorm._NormBase,), _feature_norm),
        ((nn.LayerNorm, nn.RMSNorm), _layer_norm),
        ((nn.GroupNorm,), _group_norm),
        ((nn.RNNBase, nn.RNNCellBase), _recurrent),
        ((nn.MultiheadAttention,), _attention),
    ]


def follows_its_tensors(module: nn.Module) -> bool:
    """Returns whether it is a layer whose sizes are those of its tensors."""
    return any(isinstance(module, types) for types, _ in _kinds()) and any(
        True for _ in own_tensors(module)
    )


def follow_tensors(root: nn.Module, journal: Journal, rescaled: bool) -> None:
    """Sets the sizes of all layers whose tensors were cut.

    Raises:
        Refusal: a layer does not support such tensors.
    """
    kinds = _kinds()
    for path, module in root.named_modules():
        if not journal.touched(own_tensors(module)):
            continue
        for types, follow in kinds:
            if isinstance(module, types):
                follow(Layer(path, module, journal, rescaled))
                break
        _refresh(module)


def _refresh(module: nn.Module) -> None:
    """Recomputes the tensors that hooks of the older weight norms and masks set."""
    kinds = (WeightNorm, SpectralNorm, BasePruningMethod)
    with torch.no_grad():
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, kinds):
                training, module.training = module.training, False
                hook(module, None)
                module.training = training
