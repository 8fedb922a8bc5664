"""Other tools, called as their examples call them, and whether what they make computes what is left of the original.

It does if the original gives the same where all weights that did not stay are zero, and where a normalisation of
channels takes those that stayed. Which stayed is read from the values, not told by the tool.
"""

import copy
import os
import time

import numpy

from .networks import called, network, run

RATIO = 0.5
TOLERANCE = 1e-3  # of the largest output; both tools write float32
SAMPLES = 16  # values by which a slice of a weight is known again


class NotJudged(Exception):
    """What another tool made is not known again."""


def kept(small, whole):
    """For each axis, the indices of `whole` that `small` has, in the same order."""
    order = numpy.argsort(whole, axis=None)
    values = whole.reshape(-1)[order]
    found = [numpy.arange(size) for size in whole.shape]
    for axis, (size, all_of_it) in enumerate(zip(small.shape, whole.shape)):
        if size == all_of_it:
            continue
        rows = numpy.moveaxis(small, axis, 0).reshape(size, -1)[:, :SAMPLES]
        first, last = (numpy.searchsorted(values, rows, side) for side in ("left", "right"))
        votes = numpy.zeros((size, all_of_it), int)
        for shift in range(4):  # values may occur more than once
            row, column = numpy.nonzero(first + shift < last)
            there = numpy.unravel_index(order[first[row, column] + shift], whole.shape)[axis]
            numpy.add.at(votes, (row, there), 1)
        found[axis] = in_order(votes)
    return found


def in_order(votes):
    """The first candidate of each row behind that of the row before."""
    found, last = [], -1
    for row in votes:
        candidates = numpy.nonzero((row == row.max()) & (row > 0))[0]
        candidates = candidates[candidates > last]
        if not len(candidates):
            raise NotJudged("a weight has values that the original has not")
        last = int(candidates[0])
        found.append(last)
    return numpy.array(found, int)


def left_of(small, whole):
    """`whole` with zeros for what `small` has not."""
    if small.ndim != whole.ndim:
        raise NotJudged("a weight has another rank than in the original")
    at = numpy.ix_(*kept(small, whole))
    result = numpy.zeros_like(whole)
    result[at] = whole[at]
    return result


def judged(before, after, masked):
    """What became of a network, by its outputs."""
    shapes = [[x.shape for x in outputs] for outputs in (before, after)]
    if shapes[0] != shapes[1]:
        return {"result": "different", "why": "outputs of other shapes"}
    gaps = [abs(x - y).max() / max(abs(y).max(), 1e-6) for x, y in zip(after, masked) if y.size]
    equal = all(gap <= TOLERANCE for gap in gaps)
    return {"result": "equal" if equal else "different", "gap": float(max(gaps, default=0))}


def share(after, before):
    return sum(after) / max(1, sum(before))


def torch_pruning(folder, name):
    """As examples/timm_models/prune_timm_models.py: the last layer stays, heads of attention are named."""
    os.environ["TIMM_FUSED_ATTN"] = "0"
    import torch
    import torch_pruning as tp

    def outputs(model):
        with torch.no_grad():
            return [x.numpy() for x in called(run(model, inputs)) if x.is_floating_point()]

    model, inputs = network(name)
    whole = copy.deepcopy(model)
    before = outputs(model)
    begin = time.perf_counter()
    heads = {
        getattr(module, key): module.num_heads
        for module in model.modules()
        for key in ("qkv", "q_proj", "k_proj", "v_proj", "query", "key", "value")
        if isinstance(getattr(module, "num_heads", None), int)
        and isinstance(getattr(module, key, None), torch.nn.Linear)
    }
    last = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    tp.pruner.BasePruner(
        model,
        inputs if isinstance(inputs, dict) else inputs[0],
        importance=tp.importance.GroupMagnitudeImportance(),
        pruning_ratio=RATIO,
        num_heads=heads,
        ignored_layers=last[-1:],
        output_transform=None if isinstance(inputs, tuple) else lambda found: sum(map(torch.sum, called(found))),
    ).step()
    for module in model.modules():
        if getattr(module, "qkv", None) in heads and hasattr(module, "head_dim"):
            module.attn_dim = module.qkv.out_features // 3
            module.head_dim = module.attn_dim // module.num_heads
    seconds = time.perf_counter() - begin
    after = outputs(model)
    sizes = ([x.numel() for x in network.parameters()] for network in (model, whole))
    return {"seconds": seconds, "params": share(*sizes), **judged(before, after, outputs(masked(whole, model)))}


def masked(whole, small):
    """`whole` with zeros for the weights that `small` has not, and its normalisations over what is left."""
    import torch

    tensors = named(whole)
    for key, tensor in named(small).items():
        if tensor.shape != tensors[key].shape:
            new = torch.from_numpy(left_of(tensor.detach().numpy(), tensors[key].detach().numpy()))
            owner, _, leaf = key.rpartition(".")  # what was tied need not be any longer
            kind = torch.nn.Parameter if isinstance(tensors[key], torch.nn.Parameter) else lambda values: values
            setattr(whole.get_submodule(owner), leaf, kind(new))
    modules = dict(whole.named_modules())
    for key, module in small.named_modules():
        weight, full = getattr(module, "weight", None), getattr(modules[key], "weight", None)
        if "Norm" in type(module).__name__ and weight is not None and weight.shape != full.shape:
            indices = torch.from_numpy(numpy.nonzero(full.detach().numpy())[0])
            modules[key].forward = narrow(module, indices, len(full))
    return whole


def named(module):
    """Parameters and buffers; tied ones under each of their names."""
    return dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers())


def narrow(module, indices, size):
    """A normalisation of `indices` alone."""

    def forward(x, *rest, **settings):
        axis = 1 if x.shape[1] == size else x.ndim - 1
        result = x.new_zeros(x.shape)
        return result.index_copy(axis, indices, module(x.index_select(axis, indices), *rest, **settings))

    return forward


def mask_onnx(whole, small):
    """Sets what `small` has lost of the weights of `whole` to zero; norms see only what stays."""
    from onnx.numpy_helper import from_array, to_array

    weights, stays = {x.name: to_array(x) for x in small.graph.initializer}, {}
    for tensor in whole.graph.initializer:
        full, now = to_array(tensor), weights.get(tensor.name)
        if now is not None and now.shape != full.shape and now.dtype.kind == "f":
            stays[tensor.name] = kept(now, full)[-1]
            tensor.CopyFrom(from_array(left_of(now, full), tensor.name))
    for node in list(whole.graph.node):
        if node.op_type.endswith("LayerNormalization") and node.input[1] in stays:
            narrow_node(whole.graph, node, stays[node.input[1]])


def onnxsim(folder, name):
    """As its documentation has it: one call, with the share of channels to remove."""
    import onnx
    import onnxruntime
    import onnxsim as tool

    def outputs(model):
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        feeds = {value.name: drawn(value) for value in session.get_inputs()}
        return [x for x in session.run(None, feeds) if isinstance(x, numpy.ndarray) and x.dtype.kind == "f"]

    whole = onnx.load(folder / f"{name}.onnx")
    before = outputs(whole)
    begin = time.perf_counter()
    small = tool.apply_structured_pruning(whole, sparsity=RATIO)
    seconds = time.perf_counter() - begin
    sizes = [[numpy.prod(x.dims) for x in model.graph.initializer] for model in (small, whole)]
    after = outputs(small)
    mask_onnx(whole, small)
    return {"seconds": seconds, "params": float(share(*sizes)), **judged(before, after, outputs(whole))}


def narrow_node(graph, node, indices):
    """A normalisation of `indices` alone: they are gathered, and put back by a product with their unit vectors."""
    import onnx

    tensors = {x.name: onnx.numpy_helper.to_array(x) for x in graph.initializer}
    names = [f"{node.output[0]}.{part}" for part in ("indices", "taken", "normalised", "back")]
    size = len(tensors[node.input[1]])
    extra = {names[0]: indices, names[3]: numpy.eye(size, dtype=numpy.float32)[indices]}
    scales = [f"{names[2]}.{i}" for i, _ in enumerate(node.input[1:])]
    extra |= {scale: tensors[whole][indices] for scale, whole in zip(scales, node.input[1:])}
    graph.initializer.extend(onnx.numpy_helper.from_array(values, name) for name, values in extra.items())
    make, at = onnx.helper.make_node, list(graph.node).index(node)
    taken = make("Gather", [node.input[0], names[0]], [names[1]], axis=-1)
    back = make("MatMul", [names[2], names[3]], [node.output[0]])
    node.input[:] = [names[1], *scales]
    node.output[0] = names[2]
    graph.node.insert(at + 1, back)
    graph.node.insert(at, taken)


def drawn(value):
    """The same numbers for every session."""
    draw = numpy.random.default_rng(0)
    shape = [size if isinstance(size, int) else 2 for size in value.shape]
    if "int" in value.type or "bool" in value.type:
        kinds = {"tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(bool)": "bool"}
        return draw.integers(1, 90, shape).astype(kinds[value.type])
    return (draw.random(shape) - 0.5).astype("float32")
