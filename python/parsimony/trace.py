"""Traces a live module to a TorchScript file, and finds which operations read which weights."""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Set, Tuple

import torch
from torch import Tensor, nn

from .editing import Journal, alike, join, named_tensors
from .errors import ConfigError
from .tree import like, map_tensors, tensors_in

jit: Any = torch.jit  # older releases do not declare its names

_TYPES = {
    torch.float64: "float64",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.int16: "int16",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.bool: "bool",
}


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

    def first(self) -> "Inputs":
        """Returns the first sample, if all tensors have the same number of samples."""
        counts = {tensor.shape[:1] for tensor in self.tensors()}
        return self.map(lambda tensor: tensor[:1]) if len(counts) == 1 else self

    def random(self, seed: int) -> "Inputs":
        """Returns random inputs like these."""
        generator = torch.Generator().manual_seed(seed)
        return self.map(lambda tensor: like(tensor, generator))

    @property
    def specs(self) -> List[str]:
        """The inputs in the format of the command's `--input`."""
        found = []
        for tensor in self.tensors():
            spec = "x".join(map(str, tensor.shape))
            kind = _TYPES.get(tensor.dtype, "float32")
            found.append(spec if kind == "float32" and spec else f"{spec}:{kind}")
        return found

    @property
    def vary(self) -> bool:
        """Whether each tensor has different elements: zeros or ones would hide differences."""
        many = [tensor for tensor in self.tensors() if tensor.numel() > 1]
        return bool(many) and all(bool((t != t.reshape(-1)[0]).any()) for t in many)

    def call(self, module: nn.Module) -> Any:
        """Returns the module's result for copies of them, since it may change them in place."""
        copies = self.map(Tensor.clone)
        return module(*copies.args, **copies.kwargs)


class Operation(NamedTuple):
    """An operation of a trace: the module whose `forward` contains it, and the tensors of modules that
    it reads, by operand."""

    module: str
    node: Any
    reads: Dict[int, str]

    @property
    def kind(self) -> str:
        """The operator, such as "aten::linear"."""
        return str(self.node.kind())


@contextlib.contextmanager
def evaluating(module: nn.Module, training: Iterable[str] = ()) -> Iterator[None]:
    """Sets evaluation mode, without gradients, except training mode for the modules at the paths
    `training`. Attention uses separate operations."""
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


_FAST_PATHS = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)


@contextlib.contextmanager
def _no_fast_path(module: nn.Module) -> Iterator[None]:
    """Disables fused attention, which is used only if nothing requires a gradient."""
    layers = [part for part in module.modules() if isinstance(part, _FAST_PATHS)]
    frozen = [p for layer in layers for p in layer.parameters() if not p.requires_grad]
    for parameter in frozen:
        parameter.requires_grad_(True)
    try:
        with torch.set_grad_enabled(bool(layers)):
            yield
    finally:
        for parameter in frozen:
            parameter.requires_grad_(False)


@contextlib.contextmanager
def _flat(module: nn.Module, inputs: Inputs) -> Iterator[None]:
    """Makes the module take the tensors of `inputs` and return a tensor or a tuple."""
    original, kind = module.forward, type(module)
    own = module.__dict__.pop("forward", None)

    def forward(self: nn.Module, *tensors: Tensor) -> Any:
        given = iter(tensors)
        call = inputs.map(lambda _: next(given))
        outputs = tensors_in(original(*call.args, **call.kwargs))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    module.__class__ = type(
        kind.__name__, (kind,), {"forward": forward, "__module__": kind.__module__}
    )
    try:
        yield
    finally:
        module.__class__ = kind
        if own is not None:
            module.__dict__["forward"] = own


@contextlib.contextmanager
def _on_cpu(module: nn.Module) -> Iterator[None]:
    """Moves all tensors to the CPU, with at least single precision."""
    journal = Journal()
    for tensor in named_tensors(module).values():
        moved = _computable(tensor.data)
        if moved is not tensor.data and (moved.device, moved.dtype) != (
            tensor.device,
            tensor.dtype,
        ):
            journal.set_data(tensor, moved)
    try:
        yield
    finally:
        journal.undo()


def _computable(tensor: Tensor) -> Tensor:
    half = tensor.dtype in (torch.float16, torch.bfloat16)
    return tensor.to(device="cpu", dtype=torch.float32 if half else tensor.dtype)


class Trace:
    """A module, traced once in evaluation mode.

    Attributes:
        operations: all operations in the order in which they run.
        uses: for each tensor that is read, the reading operations and operands.
        training: the modules traced in training mode, because they skip layers in evaluation mode
            (auxiliary classifiers).
        unused: parameters that no operation reads.
    """

    def __init__(self, module: nn.Module, inputs: Inputs) -> None:
        self.module = module
        self.inputs = inputs
        self.training: Set[str] = set()
        self.script: Any = None
        self.operations: List[Operation] = []
        self.uses: Dict[str, List[Tuple[Operation, int]]] = {}
        self._run()
        parents = {name.rpartition(".")[0] for name in self.unused}
        skipping = {path for path in map(_parent_of_uncalled(self), parents) if path is not None}
        if skipping:
            first = (self.script, self.operations, self.uses)
            self.training = skipping
            try:
                self._run()
            except Exception:
                self.training = set()
                self.script, self.operations, self.uses = first

    def _run(self) -> None:
        inputs = self._computable_inputs()
        with _on_cpu(self.module), evaluating(self.module, self.training):
            with _flat(self.module, inputs), _no_fast_path(self.module):
                try:
                    self.script = jit.trace(self.module, tuple(inputs.tensors()), check_trace=False)
                except Exception as error:
                    raise ConfigError(f"the module cannot be traced: {error}") from error
        self.operations = list(operations_of(self.script))
        self.uses = {}
        for operation in self.operations:
            for operand, name in operation.reads.items():
                self.uses.setdefault(name, []).append((operation, operand))

    def _computable_inputs(self) -> Inputs:
        return self.inputs.map(lambda tensor: _computable(tensor.detach()).clone())

    @contextlib.contextmanager
    def differentiable(self) -> Iterator[Inputs]:
        """Makes the module run on the CPU as in the trace, with gradients of every floating-point
        parameter; yields the inputs for it."""
        frozen = [
            tensor
            for tensor in self.module.parameters()
            if tensor.is_floating_point() and not tensor.requires_grad
        ]
        with _on_cpu(self.module), evaluating(self.module, self.training), torch.enable_grad():
            for tensor in frozen:
                tensor.requires_grad_(True)
            try:
                yield self._computable_inputs()
            finally:
                for tensor in frozen:
                    tensor.requires_grad_(False)

    @property
    def unread(self) -> List[str]:
        """Parameters and buffers with elements that no operation reads."""
        tensors = named_tensors(self.module)
        same = alike(tensors)
        used = {
            id(other) for name in self.uses if name in tensors for other in same[id(tensors[name])]
        }
        return [n for n, tensor in tensors.items() if tensor.numel() and id(tensor) not in used]

    @property
    def unused(self) -> List[str]:
        """Parameters that no operation reads."""
        tensors = named_tensors(self.module)
        return [name for name in self.unread if isinstance(tensors[name], nn.Parameter)]

    def producers(self) -> Dict[str, int]:
        """Returns matrices used only as weights of layers, with the axis of their output channels."""
        found = {}
        for name, uses in self.uses.items():
            axes = {_output_axis(operation, operand) for operation, operand in uses}
            if len(axes) == 1 and None not in axes:
                found[name] = axes.pop()
        return found

    def save(self, path: Path, stand_ins: Mapping[str, Tensor]) -> None:
        """Writes the TorchScript file, with `stand_ins` in place of the tensors of their names."""
        tensors = named_tensors(self.module)
        journal = Journal()
        with _on_cpu(self.module):
            try:
                for name, values in stand_ins.items():
                    journal.set_data(tensors[name], values)
                # Tensors computed from literals in forward cannot be cut in the module.
                self.script.save(str(path), _extra_files={"live_module": ""})
            finally:
                journal.undo()


def _output_axis(operation: Operation, operand: int) -> Any:
    """Returns the axis of the output channels of an operation's `operand`, if known."""
    if operation.kind == "aten::linear" and operand == 1:
        return 0
    if operation.kind in ("aten::conv1d", "aten::conv2d", "aten::conv3d") and operand == 1:
        return 0
    if operation.kind == "aten::_convolution" and operand == 1:
        inputs = list(operation.node.inputs())
        transposed, groups = inputs[6].toIValue(), inputs[8].toIValue()
        return 0 if transposed is False else 1 if transposed is True and groups == 1 else None
    if operation.kind == "aten::embedding" and operand == 0:
        return 1
    return None


def _parent_of_uncalled(trace: Trace) -> Any:
    """Returns a function from the path of an unused layer to the module that skips it."""
    used = {name.rpartition(".")[0] for name in trace.uses}

    def parent(path: str) -> Any:
        while path:
            path, _, _ = path.rpartition(".")
            if path == "" or any(name == path or name.startswith(path + ".") for name in used):
                return path
        return None

    return parent


def operations_of(script: Any) -> Iterator[Operation]:
    """Yields all operations of a traced module, including those of its parts."""
    yield from _operations(script._c, script._c, "forward", "")


def _operations(root: Any, owner: Any, method: str, path: str) -> Iterator[Operation]:
    graph = owner._get_method(method).graph
    paths = {next(iter(graph.inputs())).debugName(): path}
    yield from _in_block(root, graph, path, paths)


def _in_block(root: Any, block: Any, path: str, paths: Dict[str, str]) -> Iterator[Operation]:
    for node in block.nodes():
        kind = node.kind()
        inputs = [value.debugName() for value in node.inputs()]
        if kind == "prim::GetAttr":
            if inputs[0] in paths:
                paths[node.output().debugName()] = join(paths[inputs[0]], node.s("name"))
            continue
        reads = {i: paths[name] for i, name in enumerate(inputs) if name in paths}
        if kind == "prim::CallMethod" and 0 in reads:
            part = reads.pop(0)
            yield from _operations(root, _part(root, part), node.s("name"), part)
            if not reads:
                continue
        yield Operation(path, node, reads)
        for inner in node.blocks():
            yield from _in_block(root, inner, path, paths)


def _part(root: Any, path: str) -> Any:
    for name in path.split("."):
        root = root.getattr(name)
    return root
