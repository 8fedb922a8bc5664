"""ONNX networks of any number of nodes or weights: residual blocks of convolutions, and blocks of a transformer."""

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

SIDE = 8  # pixels, or tokens
CLASSES = 10


class Builder:
    """Nodes and weights in the order in which they are added; weights are drawn from a fixed seed."""

    def __init__(self):
        self.nodes, self.weights = [], []
        self.random = numpy.random.default_rng(0)
        # All weights are excerpts; drawing each would take longer than pruning them.
        self.numbers = self.random.standard_normal(1 << 16, dtype=numpy.float32)

    def node(self, op, inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def weight(self, name, dims, scale):
        count = int(numpy.prod(dims))
        first = int(self.random.integers(len(self.numbers) // 2))
        values = numpy.resize(self.numbers[first:], count) * numpy.float32(scale)
        return self.constant(name, values.reshape(dims))

    def constant(self, name, values):
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def ones(self, name, count):
        return self.constant(name, numpy.ones(count, numpy.float32))

    def zeros(self, name, count):
        return self.constant(name, numpy.zeros(count, numpy.float32))

    def convolution(self, x, size_in, size_out, kernel, name):
        weight = self.weight(f"{name}.weight", (size_out, size_in, kernel, kernel), (size_in * kernel**2) ** -0.5)
        y = self.node("Conv", [x, weight], name, pads=[kernel // 2] * 4, kernel_shape=[kernel] * 2)
        gain, shift = self.ones(f"{name}.gain", size_out), self.zeros(f"{name}.shift", size_out)
        statistics = [self.zeros(f"{name}.mean", size_out), self.ones(f"{name}.variance", size_out)]
        return self.node("BatchNormalization", [y, gain, shift, *statistics], f"{name}.norm")

    def linear(self, x, size_in, size_out, name):
        weight = self.weight(f"{name}.weight", (size_in, size_out), size_in**-0.5)
        return self.node("MatMul", [x, weight], name)

    def finished(self, shape, output):
        declared = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        result = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "network", [declared], [result], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def residual(blocks, width, image):
    """A stem, blocks of a convolution of 3×3 and one of 1×1 with the sum around them (seven nodes), a classifier."""
    net = Builder()
    x = net.node("Relu", [net.convolution("x", 3, width, 3, "stem")], "stem.relu")
    for i in range(blocks):
        y = net.node("Relu", [net.convolution(x, width, width, 3, f"block{i}.a")], f"block{i}.a.relu")
        y = net.convolution(y, width, width, 1, f"block{i}.b")
        x = net.node("Relu", [net.node("Add", [x, y], f"block{i}.sum")], f"block{i}.relu")
    x = net.node("Flatten", [net.node("GlobalAveragePool", [x], "pool")], "flat")
    return net.finished(["n", 3, image, image], net.linear(x, width, CLASSES, "classes"))


def transformer(blocks, width, tokens):
    """Blocks of attention in four heads and of two layers, with normalisations and sums around both (22 nodes)."""
    net = Builder()
    x = net.linear("x", 12, width, "embedding")
    split = net.constant("split", numpy.array([0, 0, 4, width // 4], numpy.int64))
    joined = net.constant("joined", numpy.array([0, 0, width], numpy.int64))
    root = net.constant("root", numpy.array((width // 4) ** -0.5, numpy.float32))

    def normalised(x, name):
        return net.node(
            "LayerNormalization", [x, net.ones(f"{name}.gain", width), net.zeros(f"{name}.shift", width)], name
        )

    def heads(x, name, order):
        y = net.node("Reshape", [net.linear(x, width, width, name), split], f"{name}.split")
        return net.node("Transpose", [y], f"{name}.heads", perm=order)

    for i in range(blocks):
        block = f"block{i}"
        y = normalised(x, f"{block}.norm")
        query = heads(y, f"{block}.query", [0, 2, 1, 3])
        key = heads(y, f"{block}.key", [0, 2, 3, 1])
        value = heads(y, f"{block}.value", [0, 2, 1, 3])
        scores = net.node("Mul", [net.node("MatMul", [query, key], f"{block}.scores"), root], f"{block}.scaled")
        shares = net.node("Softmax", [scores], f"{block}.shares", axis=-1)
        mixed = net.node(
            "Transpose", [net.node("MatMul", [shares, value], f"{block}.mixed")], f"{block}.back", perm=[0, 2, 1, 3]
        )
        y = net.linear(net.node("Reshape", [mixed, joined], f"{block}.joined"), width, width, f"{block}.out")
        x = net.node("Add", [x, y], f"{block}.sum")
        y = net.linear(normalised(x, f"{block}.norm2"), width, 4 * width, f"{block}.up")
        y = net.linear(net.node("Relu", [y], f"{block}.relu"), 4 * width, width, f"{block}.down")
        x = net.node("Add", [x, y], f"{block}.sum2")
    return net.finished(["n", tokens, 12], net.linear(x, width, CLASSES, "classes"))


FAMILIES = {"residual": residual, "transformer": transformer}


def with_nodes(family, count):
    """Blocks, width, and pixels or tokens of a network of about so many nodes."""
    of_block, others = (7, 6) if family == "residual" else (22, 2)
    return max(1, round((count - others) / of_block)), 8, SIDE


def with_weights(family, count):
    """The same of a network of about so many weights."""
    of_block = 10 if family == "residual" else 12
    return 4, max(8, 4 * round((count / (4 * of_block)) ** 0.5 / 4)), 4


def size_of(model):
    """{nodes, weights} of a network."""
    weights = sum(int(numpy.prod(weight.dims)) for weight in model.graph.initializer)
    return {"nodes": len(model.graph.node), "weights": weights}


def save(model, path):
    onnx.save(model, path)
