"""An ONNX model as far as the oracle must understand it: tensors, nodes, arguments.

A name inside a body of If, Loop or Scan, or inside a function that is called once, begins with the
path to it: "y::then_branch::w" is what the then_branch of the node with the first output y calls w,
"y::Layer::w" what the function Layer does that this node calls.
"""

import collections
import dataclasses

import numpy
import onnx
from onnx import helper, numpy_helper

from .faults import FileFault

ALIASES = {"float": "float32", "half": "float16", "double": "float64"}


def type_name(number):
    name = onnx.TensorProto.DataType.Name(number).lower()
    return ALIASES.get(name, name)


class Scope:
    """Nodes with names of their own: the model's graph, one inside a node, or a function."""

    def __init__(self, graph=None, prefix="", around=None, results=None):
        self.graph, self.prefix, self.around = graph, prefix, around
        self.results = results or {}  # of a function: the names in the call
        self.names = set()  # what a body defines, without the prefix
        if graph is not None:
            self.names.update(output for node in graph.node for output in node.output)
            self.names.update(one.name for part in (graph.input, graph.initializer) for one in part)

    def full_name(self, name):
        """What a name without a path means here."""
        if not name or not self.around or name in self.names:
            return self.defined(name)
        return self.around.full_name(name)

    def defined(self, name):
        """How a value that is made here is named in full."""
        return self.results.get(name) or (name and self.prefix + name)

    def own_name(self, full_name):
        """How a value of this graph, or of one around it, is named here."""
        if full_name.startswith(self.prefix):
            return full_name[len(self.prefix) :]
        return self.around.own_name(full_name)


@dataclasses.dataclass(eq=False)
class Node:
    """One operator of a graph; its message is the model's own."""

    message: onnx.NodeProto
    scope: Scope

    @property
    def op(self):
        return self.message.op_type

    @property
    def function(self):
        domain = self.message.domain
        return ("" if domain == "ai.onnx" else domain, self.op)

    @property
    def bodies(self):
        """The graphs in its attributes: (attribute, graph)."""
        for attribute in self.message.attribute:
            if attribute.HasField("g"):
                yield attribute.name, attribute.g
            yield from ((f"{attribute.name}[{i}]", graph) for i, graph in enumerate(attribute.graphs))

    @property
    def inputs(self):
        return [self.scope.full_name(name) for name in self.message.input]

    @property
    def outputs(self):
        return [self.scope.defined(name) for name in self.message.output]

    @property
    def own_key(self):
        """Its first output, which names it, as it is called in its scope."""
        return next((output for output in self.message.output if output), None)

    def attribute(self, name):
        return next((one for one in self.message.attribute if one.name == name), None)

    def set_number(self, name, value):
        """Gives a floating point attribute another value, or adds it."""
        attribute = self.attribute(name) or self.message.attribute.add(
            name=name, type=onnx.AttributeProto.FLOAT
        )
        attribute.f = value

    def set_input(self, index, name):
        self.message.input[index] = self.scope.own_name(name)


@dataclasses.dataclass
class Argument:
    """An input or output; sizes are numbers, or names ('' for none). Without a type it is no tensor."""

    name: str
    type: str | None
    dims: list


def argument(value):
    if not value.type.HasField("tensor_type"):
        return Argument(value.name, None, None)
    tensor = value.type.tensor_type
    dims = [dim.dim_value if dim.dim_value > 0 else dim.dim_param for dim in tensor.shape.dim]
    return Argument(value.name, type_name(tensor.elem_type), dims)


def array_of(proto):
    if proto.data_type == onnx.TensorProto.STRING:
        raise FileFault(f'tensor "{proto.name}": string elements cannot be cut')
    try:
        return numpy_helper.to_array(proto).copy()
    except ValueError as error:
        raise FileFault(f'tensor "{proto.name}" of shape {list(proto.dims)}: {error}') from error


def set_array(proto, array):
    proto.CopyFrom(numpy_helper.from_array(array, proto.name))


class Model:
    def __init__(self, proto):
        self.proto = proto
        self.graph = proto.graph
        self.nodes = []
        self.producers = {}
        self.initializers = {}
        self.scopes = {}  # of an initializer
        self.functions = {(one.domain, one.name): one for one in proto.functions}
        self.calls = collections.Counter()  # of a function: how often it is called
        if self.functions:
            self._count_calls(self.graph.node)
        self._index_graph(Scope(self.graph))

    @staticmethod
    def read(path):
        try:
            proto = onnx.load(path)
        except OSError:
            raise
        except Exception as error:
            raise FileFault(f"{path}: {error}") from error
        if not proto.HasField("graph"):
            raise FileFault(f"{path}: no graph in it: is this an ONNX file?")
        return Model(proto)

    def copy(self):
        proto = onnx.ModelProto()
        proto.CopyFrom(self.proto)
        return Model(proto)

    def encode(self):
        return self.proto.SerializeToString()

    def _count_calls(self, messages):
        for message in messages:
            node = Node(message, Scope())
            for _, graph in node.bodies:
                self._count_calls(graph.node)
            if node.function in self.functions:
                self.calls[node.function] += 1
                self._count_calls(self.functions[node.function].node)

    def _index_graph(self, scope):
        for tensor in scope.graph.initializer:
            self._register(tensor, scope)
        self._index_nodes(scope, scope.graph.node)

    def _index_nodes(self, scope, messages):
        for message in messages:
            node = Node(message, scope)
            self.nodes.append(node)
            self.producers.update((output, node) for output in node.outputs)
            if not node.own_key:
                continue
            path = f"{scope.prefix}{node.own_key}::"
            for name, graph in node.bodies:
                self._index_graph(Scope(graph, f"{path}{name}::", scope))
            if self.calls[node.function] == 1:
                function = self.functions[node.function]
                results = {own: outer for own, outer in zip(function.output, node.outputs) if outer}
                self._index_nodes(Scope(None, f"{path}{node.op}::", results=results), function.node)

    def _register(self, tensor, scope):
        self.initializers[scope.prefix + tensor.name] = tensor
        self.scopes[scope.prefix + tensor.name] = scope

    @property
    def inputs(self):
        """What the caller must feed: the graph's inputs that no initializer gives a value."""
        return [argument(one) for one in self.graph.input if one.name not in self.initializers]

    @property
    def outputs(self):
        return [argument(one) for one in self.graph.output]

    def uses_type(self, name):
        """Whether any initializer or argument has elements of this type."""
        types = [type_name(tensor.data_type) for tensor in self.initializers.values()]
        return name in types + [one.type for one in self.inputs + self.outputs]

    def knows(self, value):
        return value in self.producers

    def can_show(self, value):
        """Whether the value is one of the model's graph, which can become an output of it."""
        return value in self.producers and self.producers[value].scope.prefix == ""

    def tensor(self, name):
        """The tensor of an initializer, or of a Constant node by its output; None where there is none."""
        node = self.producers.get(name)
        if name in self.initializers or node is None or node.op != "Constant":
            return self.initializers.get(name)
        if value := node.attribute("value"):
            return value.t
        for kind, field, dtype in (("value_floats", "floats", "float32"), ("value_ints", "ints", "int64")):
            if attribute := node.attribute(kind):  # becomes a tensor, so that it can be masked
                values = numpy.array(getattr(attribute, field), dtype)
                attribute.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(values)))
                return attribute.t
        return None

    def origin(self, name):
        """Where a value comes from, seen through Identity nodes."""
        node = self.producers.get(name)
        return self.origin(node.inputs[0]) if node and node.op == "Identity" else name

    def consumers(self, name):
        """Every (node, input index) that reads a value."""
        for node in self.nodes:
            yield from ((node, i) for i, read in enumerate(node.inputs) if read == name)

    def scope_of(self, tensor):
        return self.scopes.get(tensor) or self.producers[tensor].scope

    def add_tensor(self, name, array, scope):
        own = scope.own_name(name)
        scope.graph.initializer.append(numpy_helper.from_array(array, own))
        scope.names.add(own)
        self._register(scope.graph.initializer[-1], scope)

    def add_node(self, op, inputs, output, scope):
        """Adds an operator of one output; ONNX Runtime brings nodes into order."""
        own = scope.own_name(output)
        scope.graph.node.append(helper.make_node(op, [scope.own_name(one) for one in inputs], [own]))
        scope.names.add(own)
        self.nodes.append(Node(scope.graph.node[-1], scope))
        self.producers[output] = self.nodes[-1]

    def add_output(self, name):
        """Makes a value visible; ONNX Runtime infers its type and shape."""
        if all(output.name != name for output in self.graph.output):
            self.graph.output.add(name=name)

    def add_input(self, name, elem_type):
        """Lets the caller feed a value of any shape."""
        self.graph.input.append(helper.make_tensor_value_info(name, elem_type, None))


def open_image_sizes(path, output):
    """A copy of the model whose images, which the file gives one size, may have any."""
    model = Model.read(path)
    given = [one for one in model.graph.input if one.name not in model.initializers]
    for values, names in ((given, "height width"), (model.graph.output, "height_out width_out")):
        for value in values:
            dims = value.type.tensor_type.shape.dim
            if len(dims) == 4:
                for dim, name in zip(dims[2:], names.split()):
                    dim.dim_param = name
    del model.graph.value_info[:]
    onnx.save(model.proto, output)
