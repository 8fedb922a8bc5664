"""Exports a live module by torch.export, and finds which operations read which weights."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import threading
import warnings
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import (
    AbstractSet,
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
)

import torch
from torch import Tensor, nn

from .editing import alike, named_tensors
from .errors import UnsupportedError
from .inputs import Inputs, evaluating
from .tree import tensors_in

Numbers = Dict[Tuple[str, int], float]
"""New numbers of a program, by node and operand."""


class Operation(NamedTuple):
    """An operation of a program: the module whose `forward` contains it, and the tensors of modules
    that it reads, each with its operand."""

    module: str
    node: Any
    reads: List[Tuple[int, str]]

    @property
    def kind(self) -> str:
        """The operator, such as "aten::linear"."""
        schema = getattr(self.node.target, "_schema", None)
        return str(self.node.target if schema is None else schema.name)

    def numbers(self) -> List[float]:
        """Returns the operands that are floating-point numbers."""
        return [one for one in _operands(self.node) if type(one) is float]

    def operand(self, index: int) -> Any:
        """Returns an operand by its place in the operator's schema; its default where not given."""
        argument = self.node.target._schema.arguments[index]
        if index < len(self.node.args):
            return self.node.args[index]
        return self.node.kwargs.get(argument.name, argument.default_value)


@contextlib.contextmanager
def _separate_operations() -> Iterator[None]:
    """Disables the fused operators of attention, and what the exporter logs and prints."""
    level, fast = logging.root.manager.disable, torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(level)
        torch.backends.mha.set_fastpath_enabled(fast)


@contextlib.contextmanager
def _attributes_kept(module: nn.Module) -> Iterator[None]:
    """Puts back what `forward` assigns to attributes, such as tensors that it caches: in an export
    they are not tensors that can be used."""
    before = [(part, dict(part.__dict__), dict(part._buffers)) for part in module.modules()]
    try:
        yield
    finally:
        for part, attributes, buffers in before:
            for known, present in ((attributes, part.__dict__), (buffers, part._buffers)):
                present.clear()
                present.update(known)


_patching = threading.Lock()


@contextlib.contextmanager
def _without_canonical_form() -> Iterator[None]:
    """Saves without PyTorch's test that the program could be sorted and renamed, whose result it drops
    and which takes half of the time."""
    from torch._export.serde import serialize

    if not hasattr(serialize, "canonicalize"):  # of another release
        yield
        return
    with _patching:
        sort = serialize.canonicalize
        serialize.canonicalize = lambda program, *_, **__: program
        try:
            yield
        finally:
            serialize.canonicalize = sort


_OF_CALLS = ("forward", "_forward_hooks", "_forward_pre_hooks")


@contextlib.contextmanager
def _with_own(module: nn.Module, values: Mapping[str, Any]) -> Iterator[None]:
    """Sets the attributes `_OF_CALLS` of the module itself, or removes those without a value."""
    before = {name: module.__dict__[name] for name in _OF_CALLS if name in module.__dict__}
    try:
        for name in _OF_CALLS:
            module.__dict__.pop(name, None)
        module.__dict__.update(values)
        yield
    finally:
        for name in _OF_CALLS:
            module.__dict__.pop(name, None)
        module.__dict__.update(before)


@contextlib.contextmanager
def _flat(module: nn.Module, inputs: Inputs, ends: Sequence[str]) -> Iterator[None]:
    """Makes the module take the tensors of `inputs` and return a tuple of tensors: what is not
    registered as a pytree need not be. The results of the modules `ends` are returned, too. The
    module's own hooks see its own arguments and results."""
    own = {name: module.__dict__[name] for name in _OF_CALLS if name in module.__dict__}
    unread: List[Tensor] = []

    def note(_: nn.Module, __: Any, outputs: Any) -> None:
        unread.extend(tensors_in(outputs))

    def forward(*tensors: Tensor) -> Any:
        unread.clear()
        given = iter(tensors)
        call = inputs.map(lambda _: next(given))
        with _with_own(module, own):
            return (*tensors_in(module(*call.args, **call.kwargs)), *unread)

    flat = {
        "forward": forward,
        "_forward_hooks": OrderedDict(),
        "_forward_pre_hooks": OrderedDict(),
    }
    with contextlib.ExitStack() as hooks:
        for path in ends:
            hooks.callback(module.get_submodule(path).register_forward_hook(note).remove)
        with _with_own(module, flat):
            yield


class Program:
    """A module, exported once in evaluation mode.

    Attributes:
        operations: all operations in the order in which they run.
        uses: for each tensor that is read, the reading operations and operands.
        training: the modules exported in training mode, because they skip layers in evaluation mode
            (auxiliary classifiers).
        unused: parameters that no operation reads.
    """

    def __init__(self, module: nn.Module, inputs: Inputs, outputs_only: bool = False) -> None:
        self.module = module
        self.inputs = inputs
        self.training: Set[str] = set()
        self._ends: List[str] = []
        self._modules = dict(module.named_modules(remove_duplicate=False))
        self.exported: Any = None
        self.operations: List[Operation] = []
        self.uses: Dict[str, List[Tuple[Operation, int]]] = {}
        self._export()
        if outputs_only:  # in evaluation mode
            return
        # Layers may run although nobody reads their results.
        self._export_with(ends=[path for path in self._uncalled() if _is_leaf(module, path)])
        used = {name.rpartition(".")[0] for name in self.uses}
        skipping = {_parent_of(path, used) for path in self._uncalled()}
        self._export_with(training={path for path in skipping if path is not None})

    def _uncalled(self) -> List[str]:
        """Returns the paths of the modules with parameters of which none is read."""
        used = [name.rpartition(".")[0] + "." for name in self.uses]
        unused = {name.rpartition(".")[0] for name in self.unused} - {""}
        return sorted(
            path for path in unused if not any(one.startswith(path + ".") for one in used)
        )

    def _export_with(
        self, training: AbstractSet[str] = frozenset(), ends: Sequence[str] = ()
    ) -> None:
        """Exports again, and stays with the earlier program if that reads no more parameters."""
        if not training and not ends:
            return
        before, unused = vars(self).copy(), len(self.unused)
        self.training = set(training) or self.training
        self._ends = list(ends) or self._ends
        try:
            self._export()
            better = len(self.unused) < unused
        except UnsupportedError:
            better = False
        if not better:
            vars(self).update(before)

    def _exported_now(self) -> Any:
        tensors = tuple(self.inputs.map(lambda tensor: tensor.detach().clone()).tensors())
        with evaluating(self.module, self.training), _flat(self.module, self.inputs, self._ends):
            with _separate_operations(), _attributes_kept(self.module):
                exported = torch.export.export(self.module, tensors, strict=False)
        exported.graph_module.graph.eliminate_dead_code()
        if any(_writes_unseen(node) for node in _calls_in(exported.graph)):
            exported = exported.run_decompositions({})  # functions in place of writes, no more
        return exported

    def _export(self) -> None:
        quantized = [path for path, part in self.module.named_modules() if _is_quantized(part)]
        if quantized:
            raise UnsupportedError(
                f"quantized layers cannot be pruned: {', '.join(quantized[:3])}"
                f"{' and others' if len(quantized) > 3 else ''}; prune before quantizing"
            )
        try:
            self.exported = self._exported_now()
        except Exception as error:
            raise UnsupportedError(f"torch.export cannot export the module: {error}") from error
        signature = self.exported.graph_signature
        names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        self.operations = list(_operations(self.exported.graph, names, self._modules))
        self.uses = {}
        for operation in self.operations:
            for operand, name in operation.reads:
                self.uses.setdefault(name, []).append((operation, operand))

    def numbers_of_sizes(self) -> "Numbers":
        """Returns the numbers that `forward` computes from sizes and that differ in the module as it
        is now, such as the root of a head's size; none if it has other operations."""
        before = _calls_in(self.exported.graph)
        try:
            now = _calls_in(self._exported_now().graph)
        except Exception:
            return {}
        if [node.target for node in before] != [node.target for node in now]:
            return {}
        return {
            (old.name, index): number
            for old, new in zip(before, now)
            for index, (was, number) in enumerate(zip(_operands(old), _operands(new)))
            if type(was) is type(number) is float and number != was
        }

    @contextlib.contextmanager
    def differentiable(self) -> Iterator[Inputs]:
        """Makes the module run as it was exported, with gradients of every floating-point parameter;
        yields the inputs for it."""
        frozen = [
            tensor
            for tensor in self.module.parameters()
            if tensor.is_floating_point() and not tensor.requires_grad
        ]
        with evaluating(self.module, self.training), torch.enable_grad():
            for tensor in frozen:
                tensor.requires_grad_(True)
            try:
                yield self.inputs.map(lambda tensor: tensor.detach().clone())
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

    @property
    def names(self) -> List[str]:
        """The names of the program's inputs, in the order of `Inputs.tensors`."""
        return list(self.exported.graph_signature.user_inputs)

    def producers(self) -> Dict[str, int]:
        """Returns matrices used only as weights of layers, with the axis of their output channels."""
        found = {}
        for name, uses in self.uses.items():
            axes = {_output_axis(operation, operand) for operation, operand in uses}
            if len(axes) == 1 and None not in axes:
                found[name] = axes.pop()
        return found

    def save(
        self,
        path: Path,
        stand_ins: Mapping[str, Tensor],
        checkpoint: Optional[Tuple[Path, Mapping[str, str]]] = None,
    ) -> None:
        """Writes the program, with `stand_ins` in place of the tensors of their names.

        Args:
            checkpoint: where the elements of tensors lie instead, and the names that these have there.
        """
        extra = {"live_module": ""}
        if checkpoint is not None:
            place, names = checkpoint
            where = {"checkpoint": str(place.resolve()), "tensors": dict(names)}
            extra["weights.json"] = json.dumps(where)
        state = self.exported.state_dict
        originals = dict(state)
        for name, tensor in originals.items():
            if tensor.is_meta:
                state[name] = torch.zeros((), dtype=tensor.dtype).expand(tensor.shape)
        state.update({name: values for name, values in stand_ins.items() if name in state})
        for name, tensor in originals.items():  # the archive lists parameters by their type
            if isinstance(tensor, nn.Parameter):
                state[name] = nn.Parameter(state[name], tensor.requires_grad)
        constants = dict(self.exported.constants)
        for name, tensor in constants.items():
            if isinstance(tensor, Tensor) and tensor.is_meta:
                values = stand_ins.get(name, torch.zeros(tensor.shape, dtype=tensor.dtype))
                self.exported.constants[name] = values
        try:
            with _separate_operations(), _without_canonical_form(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about stand-ins that are not contiguous
                # Tensors computed from literals in forward cannot be cut in the module.
                torch.export.save(self.exported, path, extra_files=extra)
        except Exception as error:
            raise UnsupportedError(f"torch.export cannot save the program: {error}") from error
        finally:
            state.update(originals)
            self.exported.constants.update(constants)


_NOT_THE_USERS = tuple(str(Path(file).parent) + os.sep for file in (torch.__file__, __file__))
_OUTPUT_AXES = {
    ("aten::linear", 1): 0,
    ("aten::addmm", 2): 1,
    ("aten::conv1d", 1): 0,
    ("aten::conv2d", 1): 0,
    ("aten::conv3d", 1): 0,
    ("aten::embedding", 0): 1,
}
_GROUPS_OF_TRANSPOSED = 6


def _output_axis(operation: Operation, operand: int) -> Optional[int]:
    """Returns the axis of the output channels of an operation's `operand`, if known."""
    if operation.kind.startswith("aten::conv_transpose") and operand == 1:
        return 1 if operation.operand(_GROUPS_OF_TRANSPOSED) == 1 else None
    return _OUTPUT_AXES.get((operation.kind, operand))


def _is_quantized(module: nn.Module) -> bool:
    package = type(module).__module__
    return (
        package.startswith("torch.ao.nn.") and "quantized" in package and hasattr(module, "scale")
    )


def _writes_unseen(node: Any) -> bool:
    """Returns whether a call writes into a view: nobody reads its result, but what it changes."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable and not node.users


def _is_leaf(module: nn.Module, path: str) -> bool:
    return next(module.get_submodule(path).children(), None) is None


def _parent_of(path: str, used: Set[str]) -> Optional[str]:
    """Returns the path of the module that skips an unused layer."""
    while path:
        path, _, _ = path.rpartition(".")
        if path == "" or any(name == path or name.startswith(path + ".") for name in used):
            return path
    return None


def _operations(
    graph: Any, names: Mapping[str, str], modules: Mapping[str, nn.Module]
) -> Iterator[Operation]:
    """Yields the operations of a graph and of those inside it.

    Args:
        names: of the modules' tensors, by placeholder.
    """
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        operands = _operands(node)
        inner = [one for one in operands if getattr(one, "op", "") == "get_attr"]
        graphs = [getattr(graph.owning_module, one.target, None) for one in inner]
        graphs = [one.graph for one in graphs if isinstance(one, torch.fx.GraphModule)]
        for body in graphs:  # its arguments are the last ones
            placeholders = [one for one in body.nodes if one.op == "placeholder"]
            given = operands[len(operands) - len(placeholders) :]
            read = {
                own.name: names[one.name]
                for own, one in zip(placeholders, given)
                if isinstance(one, torch.fx.Node) and one.name in names
            }
            yield from _operations(body, read, modules)
        if not graphs:
            reads = [
                (index, names[part.name])
                for index, operand in enumerate(operands)
                for part in (operand if isinstance(operand, (list, tuple)) else [operand])
                if isinstance(part, torch.fx.Node) and part.name in names
            ]
            yield Operation(_module_of(node, modules), node, reads)


def _calls_in(graph: Any) -> List[Any]:
    return [node for node in graph.nodes if node.op == "call_function"]


def load_with(path: Path, numbers: Numbers, device: Optional[torch.device] = None) -> nn.Module:
    """Returns the module of a file of torch.export, with `numbers` in place of its own, on a device."""
    exported = torch.export.load(path)
    if device is not None:
        from torch.export.passes import move_to_device_pass

        exported._example_inputs = None  # which may have no elements to be moved
        exported = move_to_device_pass(exported, device)
    nodes = {node.name: node for node in exported.graph.nodes}
    for (name, index), number in numbers.items():
        node = nodes.get(name)
        if node is None:
            continue
        if index < len(node.args):
            node.update_arg(index, number)
        else:
            node.update_kwarg(node.target._schema.arguments[index].name, number)
    exported.graph_module.recompile()
    return exported.module()


def _operands(node: Any) -> List[Any]:
    """Returns the operands in the order of the operator's schema; of a call of graphs, flattened."""
    schema = getattr(node.target, "_schema", None)
    if schema is not None:
        rest = schema.arguments[len(node.args) :]
        return [*node.args, *(node.kwargs.get(argument.name) for argument in rest)]
    flat: List[Any] = []
    for one in node.args:
        flat.extend(one if isinstance(one, (list, tuple)) else [one])
    return flat


def _module_of(node: Any, modules: Mapping[str, nn.Module]) -> str:
    """Returns the path of the module whose `forward` contains a node."""
    stack = node.meta.get("nn_module_stack") or {"": ("", None)}
    return existing_path(modules, list(stack.values())[-1][0])


def existing_path(modules: Mapping[str, nn.Module], path: str) -> str:
    """Returns the path of one of `modules` for what PyTorch wrote, such as "layers.0" for a second
    call, "layers.0@1"; where there is none, that of the module around it."""
    for text in (path, re.sub(r"@\d+(?=\.|$)", "", path)):
        if text in modules:
            return text
    return existing_path(modules, path.rpartition(".")[0])


class Call(NamedTuple):
    """A call in a file of torch.export: its name there, the module as PyTorch wrote it, the operator,
    where it stands in the code, and the integers of each argument, None for other elements."""

    name: str
    module: str
    kind: str
    source: str
    arguments: List[List[Optional[int]]]


def calls_of(path: Path) -> Dict[str, Call]:
    """Returns all calls, by name, of a program that `Program.save` or the command wrote."""
    endings = ("models/model.json", "serialized_exported_program.json")
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith(endings))
        program = json.loads(archive.read(name))
    return {call.name: call for call in _calls(program["graph_module"]["graph"])}


def _calls(graph: Mapping[str, Any]) -> Iterator[Call]:
    for node in graph["nodes"]:
        metadata = node.get("metadata", {})
        # "name,path,class" of each module around it, ";" between them
        module = metadata.get("nn_module_stack", "").split(";")[-1].split(",")
        frames = re.findall(r'File "(.+)", line (\d+)', metadata.get("stack_trace", ""))
        own = [frame for frame in frames if not frame[0].startswith(_NOT_THE_USERS)]
        source = ":".join(own[-1]) if own else ""
        arguments: List[List[Optional[int]]] = []
        for argument in node["inputs"]:
            arguments.append([])
            yield from _numbers(argument["arg"], arguments[-1])
        kind = node["target"].replace("torch.ops.aten.", "").split(".")[0]
        name = json.dumps(node["outputs"])
        yield Call(name, module[1] if len(module) > 1 else "", kind, source, arguments)


def _numbers(argument: Mapping[str, Any], found: List[Optional[int]]) -> Iterator[Call]:
    """Adds the integers of an argument to `found`, None for what is none; yields calls inside it."""
    for kind, value in argument.items():
        if kind == "as_int":
            found.append(value)
        elif kind in ("as_ints", "as_sym_ints"):
            found.extend(one if type(one) is int else one.get("as_int") for one in value)
        elif kind == "as_graph":
            yield from _calls(value["graph"])
        else:
            found.append(None)
