"""Scores of channels, and how they are passed to the command.

The command ranks the channels of a group by the weights that produce them. Its criteria `l1`, `l2`
and `linf` need one number per output channel of such a weight, so the weight is replaced by an
expanded tensor in which all elements of a channel are equal. This keeps the file small, and any score
can be passed as a weight with that L1 norm.
"""

from __future__ import annotations

from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
)

import torch
from torch import Tensor

from .editing import named_tensors
from .errors import ConfigError
from .inputs import Inputs
from .program import Program
from .tensor_file import write_tensors

Loss = Callable[[Any, Any], Tensor]

GRADIENT_CRITERIA = {"taylor", "taylor_squared", "fisher", "obd"}
_LABELS = ("labels", "label", "targets", "target", "y")
_MOST_EXPANDED = 64 << 20  # bytes; beyond that the command rejects the file as damaged


class Batch(NamedTuple):
    """The arguments of a module, and labels if there are any."""

    inputs: Inputs
    labels: Any


def batch_of(item: Any) -> Batch:
    """Converts an item of a loader: a tensor, (inputs, labels), a dictionary, or a Batch.

    Labels in a dictionary have one of the keys "labels", "label", "targets", "target", "y".
    """
    if isinstance(item, Batch):
        return item
    if isinstance(item, Mapping):
        key = next((key for key in _LABELS if key in item), None)
        inputs = {name: value for name, value in item.items() if name != key}
        return Batch(Inputs.of(inputs), None if key is None else item[key])
    if isinstance(item, (tuple, list)) and len(item) == 2:
        return Batch(Inputs.of(item[0]), item[1])
    if isinstance(item, (tuple, list)) and len(item) == 1:
        return Batch(Inputs.of(item[0]), None)
    return Batch(Inputs.of(item), None)


def batches(data: Iterable[Any], samples: int) -> Iterator[Batch]:
    """Yields the first batches of `data`, at least `samples` samples unless there are fewer."""
    seen = 0
    for item in data:
        if seen >= samples:
            return
        batch = batch_of(item)
        tensors = batch.inputs.tensors()
        if not tensors:
            raise ConfigError("data=: a batch contains no tensor")
        seen += tensors[0].shape[0] if tensors[0].dim() else 1
        yield batch
    if seen == 0:
        raise ConfigError("data=: no batches")


def _others(tensor: Tensor, axis: int) -> Any:
    return [other for other in range(tensor.dim()) if other != axis]


def _expanded(values: Tensor, like: Tensor, axis: int) -> Tensor:
    shape = [1] * like.dim()
    shape[axis] = -1
    result = values.to("cpu", torch.float32).reshape(shape).expand(like.shape)
    return result if 4 * result.numel() <= _MOST_EXPANDED else result.contiguous()


_SINGLE = (torch.float32, torch.float16, torch.bfloat16)
_REDUCED: Dict[str, Callable[[Tensor, Any], Tensor]] = {
    "l1": lambda w, axes: w.abs().mean(axes),
    "l2": lambda w, axes: w.square().mean(axes).sqrt(),
    "linf": lambda w, axes: w.abs().amax(axes),
}


def of_weights(program: Program, criterion: str) -> Dict[str, Tensor]:
    """Returns stand-ins for layers' weights with the same `l1`, `l2` or `linf` per channel."""
    tensors = named_tensors(program.module)
    found = {}
    for name, axis in program.producers().items():
        weight = tensors[name].detach()
        if weight.is_meta:
            continue
        if weight.dim() > 1 and weight.dtype in _SINGLE and 4 * weight.numel() <= _MOST_EXPANDED:
            values = _REDUCED[criterion](weight.float(), _others(weight, axis))
            found[name] = _expanded(values, weight, axis)
    return found


def of_scores(program: Program, scores: Mapping[str, Tensor]) -> Dict[str, Tensor]:
    """Returns stand-ins whose `l1` is the score of each output channel, or of each element.

    Raises:
        ConfigError: a name is not a weight, or scores match neither the weight's shape nor channels.
    """
    tensors, axes, found = named_tensors(program.module), program.producers(), {}
    for name, given in scores.items():
        if name not in tensors:
            raise ConfigError(f"scores=: the module has no parameter {name!r}")
        weight, values = tensors[name], given.detach().double().abs()
        axis = axes.get(name, 0)
        if values.shape == weight.shape:
            found[name] = values.to("cpu", torch.float32)
        elif weight.dim() > 1 and values.shape == (weight.shape[axis],):
            share = weight.numel() // weight.shape[axis]
            found[name] = _expanded(values / share, weight, axis)
        else:
            raise ConfigError(
                f"scores=: {name!r} has shape {tuple(weight.shape)}, its scores {tuple(values.shape)}; "
                f"expected one number for each of its {weight.shape[axis]} output channels"
            )
    return found


def calibration(
    data: Iterable[Any], samples: int, folder: Any, names: Sequence[str]
) -> Optional[str]:
    """Writes the inputs and labels of `data` to `folder`; returns the command's data spec.

    Args:
        names: of the program's inputs, in the order of the tensors of a batch.

    Raises:
        ConfigError: a batch has another number of tensors, or inputs and labels differ in number.
    """
    if len(names) > 1:
        return _by_name(data, samples, folder, names)
    import numpy

    inputs, labels = [], []
    for batch in batches(data, samples):
        tensors = batch.inputs.tensors()
        if len(tensors) != 1:
            raise ConfigError(f"data=: a batch has {len(tensors)} inputs, the module takes 1")
        kind = torch.uint8 if tensors[0].dtype == torch.uint8 else torch.float32
        inputs.append(tensors[0].detach().to("cpu", kind))
        label = batch.labels if isinstance(batch.labels, Tensor) else torch.zeros(len(inputs[-1]))
        if label.shape != (len(inputs[-1]),):
            raise ConfigError(
                f"data=: expected a label per sample, found shape {tuple(label.shape)}"
            )
        labels.append(label.detach().to("cpu", torch.int64))
    x, y = torch.cat(inputs)[:samples], torch.cat(labels)[:samples]
    # The last sample stands in for a test part, so that the training part is all of them.
    for name, array in (("x", x), ("y", y), ("x_test", x[-1:]), ("y_test", y[-1:])):
        numpy.save(folder / f"{name}.npy", array.contiguous().numpy())
    return "npy:" + ",".join(str(folder / f"{name}.npy") for name in ("x", "y", "x_test", "y_test"))


def _by_name(data: Iterable[Any], samples: int, folder: Any, names: Sequence[str]) -> str:
    parts: Dict[str, List[Tensor]] = {}
    for batch in batches(data, samples):
        tensors = batch.inputs.tensors()
        if len(tensors) != len(names):
            raise ConfigError(
                f"data=: a batch has {len(tensors)} inputs, the module takes {len(names)}"
            )
        arrays = dict(zip(names, tensors))
        if isinstance(batch.labels, Tensor) and batch.labels.dim() == 1:
            arrays["labels"] = batch.labels.long()
        for name, tensor in arrays.items():
            parts.setdefault(name, []).append(tensor.detach().cpu())
    file = folder / "calibration.safetensors"
    write_tensors(file, {name: torch.cat(tensors)[:samples] for name, tensors in parts.items()})
    return f"safetensors:{file}"


__all__ = ["Loss", "batch_of", "calibration", "of_scores", "of_weights"]
