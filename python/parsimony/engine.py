"""The user's torch as the command's engine: the command asks over a socket, torch computes on the
module's device, and only what the command reads crosses (`api/process_engine.h`)."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy
import torch
from torch import Tensor

from .command import run_command, run_served
from .errors import ConfigError, UnsupportedError
from .inputs import Inputs, evaluating
from .operators import NUMBERS, TYPES, Network, Node, NotRun
from .program import Program
from .scores import Batch, Loss, batches, calibration
from .tree import map_tensors

_SIZES = struct.Struct("<QQ")


class Samples:
    """The first samples of an iterable of batches.

    Attributes:
        batches: as they are.
        counts: of the samples in each.
        count: of samples for runs of the program.
        batch: of the samples in a run.

    Raises:
        ConfigError: there is no batch, or it has another number of tensors than the example inputs.
    """

    def __init__(self, program: Program, data: Iterable[Any], samples: int) -> None:
        self._examples, self._names = program.inputs.tensors(), program.names
        self.batch = _length(self._examples[0])
        samples = max(samples, self.batch)  # runs have that many
        self.batches = [
            Batch(inputs.named_like(program.inputs), labels)
            for inputs, labels in batches(data, samples)
        ]
        for batch in self.batches:
            tensors = batch.inputs.tensors()
            if len(tensors) != len(self._examples):
                raise ConfigError(
                    f"data=: a batch has {len(tensors)} inputs, the module takes "
                    f"{len(self._examples)}"
                )
        self.counts = [_length(batch.inputs.tensors()[0]) for batch in self.batches]
        self.count = min(samples, sum(self.counts))
        self.device = self._examples[0].device
        self._tensors: List[Tensor] = []
        self._labels: Any = None

    def tensors(self) -> List[Tensor]:
        """Returns all samples as inputs of the program, on the module's device.

        Raises:
            ConfigError: they have other shapes than the example inputs.
            NotRun: the samples are not along the first axis of all inputs.
        """
        if self._tensors:
            return self._tensors
        if any(x.dim() == 0 or len(x) != self.batch for x in self._examples):
            raise NotRun("inputs that are the same for several samples")
        for place, (example, name) in enumerate(zip(self._examples, self._names)):
            parts = [batch.inputs.tensors()[place].detach() for batch in self.batches]
            for part, count in zip(parts, self.counts):
                if len(part) != count:
                    raise NotRun("inputs that are the same for several samples")
                if part.shape[1:] != example.shape[1:]:
                    raise ConfigError(
                        f"data=: input {name!r} has shape {list(part.shape)}, the example input "
                        f"{list(example.shape)}"
                    )
            joined = torch.cat([part.to(self.device) for part in parts])
            self._tensors.append(joined[: self.count])
        return self._tensors

    def inputs(self, first: int, count: int) -> List[Tensor]:
        """Returns the inputs of a run, in the types that the module takes.

        Raises:
            NotRun: they are bytes of pictures, which the command scales.
        """
        parts = [tensor[first : first + count] for tensor in self.tensors()]
        return [self._as(example, part) for part, example in zip(parts, self._examples)]

    def placed(self, inputs: Inputs) -> Inputs:
        """Returns a batch on the module's device, in the types that the module takes. Raises as
        `inputs`."""
        examples = iter(self._examples)
        return inputs.map(lambda part: self._as(next(examples), part))

    def _as(self, example: Tensor, part: Tensor) -> Tensor:
        if part.dtype == torch.uint8 and example.is_floating_point():
            raise NotRun("bytes of pictures")
        return part.to(self.device, example.dtype)

    def labels(self, first: int, count: int) -> Any:
        """Returns the labels of a run, on the inputs' device; None if there are none.

        Raises:
            ConfigError: they are not one for each sample.
        """
        if self._labels is None:
            self._labels = _joined([batch.labels for batch in self.batches], self.counts)
        labels = _part(self._labels, first, count, sum(self.counts))
        return map_tensors(labels, lambda tensor: tensor.to(self.device))

    def parts(self, number: int) -> Iterator[Batch]:
        """Yields the samples of a batch one by one."""
        inputs, labels = self.batches[number]
        size = self.counts[number]
        for i in range(size):
            one = inputs.map(lambda x: x[i : i + 1] if x.shape[:1] == (size,) else x)
            yield Batch(one, _part(labels, i, 1, size))

    def options(self, folder: Path, names: Sequence[str]) -> List[str]:
        """Writes them to `folder`, and returns the command's options for them."""
        spec = calibration(self.batches, self.count, folder, names)
        return ["--calibration", str(spec), "--samples", str(self.count)]


def _length(x: Tensor) -> int:
    return len(x) if x.dim() > 0 else 1


def _joined(parts: Sequence[Any], counts: Sequence[int]) -> Any:
    """Returns the labels of several batches as those of one."""
    first = parts[0]
    if first is None:
        return None
    if isinstance(first, Tensor) and first.dim() > 0:
        return torch.cat(list(parts))
    if isinstance(first, Mapping):
        return {key: _joined([part[key] for part in parts], counts) for key in first}
    if isinstance(first, (list, tuple)):
        along = all(_along_samples(part, count) for part, count in zip(parts, counts))
        if not along and all(len(part) == count for part, count in zip(parts, counts)):
            return [one for part in parts for one in part]
        return [_joined(part, counts) for part in zip(*parts)]
    raise ConfigError("data=: expected labels for each sample")


def _along_samples(labels: Sequence[Any], size: int) -> bool:
    """Whether each item is a tensor of labels for all samples."""
    return all(isinstance(one, Tensor) and _length(one) == size for one in labels)


def _part(labels: Any, first: int, count: int, size: int) -> Any:
    """Returns the labels of some of `size` samples."""
    if labels is None:
        return None
    if isinstance(labels, Mapping):
        return {key: _part(part, first, count, size) for key, part in labels.items()}
    if isinstance(labels, (list, tuple)) and (len(labels) != size or _along_samples(labels, size)):
        return [_part(part, first, count, size) for part in labels]
    if (isinstance(labels, Tensor) and labels.dim() == 0) or len(labels) < first + count:
        raise ConfigError("data=: expected labels for each sample")
    return labels[first : first + count]


def run_on_data(
    arguments: Sequence[Any], engine: "Engine", folder: Path
) -> "Tuple[str, List[str]]":
    """Runs the command on data that `engine` has or, where it cannot do that, on files of them. Returns
    its output, and the options for these files.

    Raises:
        Error: as for `run_command`.
    """
    try:
        return run_served(arguments, engine.serve), []
    except UnsupportedError:
        if engine.failure is not None:
            raise engine.failure from None
        if engine.has_loss:  # which the command does not have
            raise
        options = engine.samples.options(folder, engine.program.names)
        return run_command([*arguments, *options]), options


class Engine:
    """Answers the command's questions about samples and networks.

    Args:
        loss: maps the module's outputs and the labels of a run to a scalar, whose gradients the
            command may ask for.

    `failure` is the exception that ended the last run; None if there was none, or if it does not keep
    the command from running the network itself.
    """

    def __init__(self, program: Program, samples: Samples, loss: Optional[Loss] = None) -> None:
        self.program = program
        self.samples = samples
        self._loss = loss
        self._outputs: Any = None  # of the module, as an example of their structure
        self.failure: Optional[Exception] = None
        self._device = samples.device
        self._objects: Dict[int, Any] = {}
        self._next = 0
        exported = program.exported
        self._weights = {
            name: torch.view_as_real(x.detach()) if x.is_complex() else x.detach()
            for name, x in {**exported.constants, **exported.state_dict}.items()
            if isinstance(x, Tensor) and not x.is_meta
        }

    @property
    def has_loss(self) -> bool:
        return self._loss is not None

    def serve(self, connection: socket.socket) -> None:
        """Answers until the other side closes the connection."""
        self.failure = None
        self._objects.clear()
        with contextlib.suppress(ConnectionError):  # the command has ended, and says why
            with connection.makefile("rwb") as stream:
                self._serve(stream)
        self._objects.clear()

    def _serve(self, stream: Any) -> None:
        while True:
            sizes = stream.read(_SIZES.size)
            if len(sizes) < _SIZES.size:
                return
            lengths = _SIZES.unpack(sizes)
            text, data = (stream.read(length) for length in lengths)
            if (len(text), len(data)) != lengths:
                return
            try:
                answer, content = self._answer(json.loads(text), data)
            except Exception as failure:
                self.failure = self._raised(failure)
                answer, content = {"error": f"{type(failure).__name__}: {failure}"}, b""
            reply = json.dumps(answer).encode()
            stream.write(_SIZES.pack(len(reply), len(content)) + reply)
            stream.write(content)
            stream.flush()

    def _raised(self, failure: Exception) -> Optional[Exception]:
        """Returns what the user should see; None if the command can do it with files of the data."""
        if isinstance(failure, NotRun):
            if self._loss is None:
                return None
            return UnsupportedError(
                f"loss=: torch was asked to run {failure}, which is not supported"
            )
        own = isinstance(failure, (ConfigError, torch.cuda.OutOfMemoryError))
        return failure if own or self._loss is not None else None

    def _answer(self, asked: Mapping[str, Any], data: bytes) -> Tuple[Dict[str, Any], bytes]:
        for number in asked["forget"]:
            del self._objects[number]
        with torch.no_grad():
            return getattr(self, f"_{asked['do']}")(asked, data)  # type: ignore[no-any-return]

    def _begin(self, asked: Mapping[str, Any], data: bytes) -> Tuple[Dict[str, Any], bytes]:
        values = sum(x[:1].numel() for x in self.program.inputs.tensors())
        return {
            "samples": self.samples.count,
            "values": values,
            "batch": self.samples.batch,
            "batches": self.samples.counts,
            "weights": list(self._weights),
        }, b""

    def _inputs(self, asked: Mapping[str, Any], data: bytes) -> Tuple[Dict[str, Any], bytes]:
        first, count = asked["first"], asked["count"]
        return self._values(self.samples.inputs(first, count))

    def _classes(self, asked: Mapping[str, Any], data: bytes) -> Tuple[Dict[str, Any], bytes]:
        """Returns the labels if they are a class for each sample."""
        found: List[int] = []
        for batch, count in zip(self.samples.batches, self.samples.counts):
            labels = batch.labels
            if not isinstance(labels, Tensor) or labels.shape != (count,):
                return {"classes": []}, b""
            if labels.is_floating_point() or labels.is_complex() or bool((labels < 0).any()):
                return {"classes": []}, b""
            found += labels.long().tolist()
        return {"classes": found[: asked["count"]]}, b""

    def _open(self, asked: Mapping[str, Any], data: bytes) -> Tuple[Dict[str, Any], bytes]:
        parts = _Parts(data)
        weights = {
            one["value"]: parts.take(one) if one["name"] is None else self._weights[one["name"]]
            for one in asked["weights"]
        }
        nodes = [Node(**node) for node in asked["nodes"]]
        network = Network(nodes, weights, asked["inputs"], asked["outputs"], self._device)
        return {"number": self._keep(network)}, b""

    def _run(self, asked: Mapping[str, Any], data: bytes) -> Tuple[Dict[str, Any], bytes]:
        parts = _Parts(data)
        inputs = [
            self._objects[one] if isinstance(one, int) else None if one is None else parts.take(one)
            for one in asked["inputs"]
        ]
        return self._values(self._objects[asked["network"]].run(inputs))

    def _gradients(self, asked: Mapping[str, Any], data: bytes) -> Tuple[Dict[str, Any], bytes]:
        """Returns, for each factor x, the sum of x·∂loss/∂x over all dimensions but one."""
        first, count = asked["first"], asked["count"]
        places = [tuple(place) for *place, _ in asked["factors"]]
        with torch.enable_grad():
            outputs, found = self._objects[asked["network"]].observed(
                self.samples.inputs(first, count), set(places)
            )
            labels = self.samples.labels(first, count)
            changes = self._changes(self._structured(outputs), labels, found)
        dims = [dim for *_, dim in asked["factors"]]
        return _numbers(
            [_sum_but(changes.get(place), dim) for place, dim in zip(places, dims)], self._device
        )

    def _weight_gradients(
        self, asked: Mapping[str, Any], data: bytes
    ) -> Tuple[Dict[str, Any], bytes]:
        """Returns, for each weight w, the sum of w·∂loss/∂w of a batch over all dimensions but one,
        or the mean over its samples of the sum of their squares."""
        module, number = self.program.module, asked["batch"]
        known = dict(module.named_parameters(remove_duplicate=False))
        weights = {name: known[name] for name, _ in asked["factors"] if name in known}
        parts = self.samples.parts(number) if asked["by_sample"] else [self.samples.batches[number]]
        sums: Dict[str, Tensor] = {}
        with self.program.differentiable():
            for inputs, labels in parts:
                placed = map_tensors((inputs, labels), lambda x: x.to(self._device))
                outputs = placed[0].call(module)
                for name, change in self._changes(outputs, placed[1], weights).items():
                    if asked["by_sample"]:
                        change = change.square() / self.samples.counts[number]
                    sums[name] = sums[name] + change if name in sums else change
        return _numbers(
            [_sum_but(sums.get(name), dim) for name, dim in asked["factors"]], self._device
        )

    def _changes(
        self, outputs: Any, labels: Any, factors: Mapping[Any, Tensor]
    ) -> Dict[Any, Tensor]:
        """Returns x·∂loss/∂x, in double, for the factors that the loss depends on."""
        if self._loss is None:
            raise NotRun("gradients")
        value = self._loss(outputs, labels)
        if not isinstance(value, Tensor) or value.numel() != 1 or not value.requires_grad:
            raise ConfigError(
                "loss=: it must return a tensor of one element, computed from the outputs"
            )
        gradients = torch.autograd.grad(
            value.reshape(()), list(factors.values()), allow_unused=True
        )
        return {
            place: x.detach().double() * gradient
            for (place, x), gradient in zip(factors.items(), gradients)
            if gradient is not None
        }

    def _structured(self, tensors: Sequence[Tensor]) -> Any:
        """Returns the outputs of the program as those of the module."""
        if self._outputs is None:
            module = self.program.module
            with evaluating(module, self.program.training):
                self._outputs = self.program.inputs.call(module)
        given = iter(tensors)
        return map_tensors(self._outputs, lambda _: next(given))

    def _fetch(self, asked: Mapping[str, Any], data: bytes) -> Tuple[Dict[str, Any], bytes]:
        tensor = self._objects[asked["value"]].contiguous().cpu().reshape(-1)
        return {}, tensor.view(torch.uint8).numpy().tobytes() if tensor.numel() else b""

    def _keep(self, thing: Any) -> int:
        self._next += 1
        self._objects[self._next] = thing
        return self._next

    def _values(self, tensors: Sequence[Tensor]) -> Tuple[Dict[str, Any], bytes]:
        unknown = {str(tensor.dtype) for tensor in tensors if tensor.dtype not in NUMBERS}
        if unknown:
            raise NotRun(", ".join(unknown))
        return {
            "values": [
                {
                    "number": self._keep(tensor),
                    "dtype": NUMBERS[tensor.dtype],
                    "dims": list(tensor.shape),
                }
                for tensor in tensors
            ]
        }, b""


def _sum_but(x: Optional[Tensor], dim: int) -> Tensor:
    """Sums over all dimensions but one; nothing for None."""
    if x is None:
        return torch.empty(0, dtype=torch.float64)
    return x.movedim(dim, 0).reshape(x.shape[dim], -1).sum(1)


def _numbers(lists: Sequence[Tensor], device: torch.device) -> Tuple[Dict[str, Any], bytes]:
    content = torch.cat([one.to(device) for one in lists]) if lists else torch.empty(0)
    return {"sizes": [len(one) for one in lists]}, content.cpu().numpy().tobytes()


class _Parts:
    """Tensors one after the other in a message."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0

    def take(self, what: Mapping[str, Any]) -> Tensor:
        dtype = TYPES[what["dtype"]]
        result = torch.empty(what["dims"], dtype=dtype)
        size = result.numel() * result.element_size()
        if size:
            raw = numpy.frombuffer(self._data, numpy.uint8, size, self._offset).copy()
            result = torch.from_numpy(raw).view(dtype).reshape(what["dims"])
        self._offset += size
        return result


__all__ = ["Engine", "NotRun", "Samples"]
