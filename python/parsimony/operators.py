"""Operators of the command's graphs, which are those of ONNX, in torch: on any device, in any
precision, and with gradients."""

from __future__ import annotations

import math
from typing import (
    AbstractSet,
    Any,
    Callable,
    Dict,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

import torch
import torch.nn.functional as F
from torch import Tensor

TYPES = {
    1: torch.float32,
    2: torch.uint8,
    3: torch.int8,
    5: torch.int16,
    6: torch.int32,
    7: torch.int64,
    9: torch.bool,
    10: torch.float16,
    11: torch.float64,
    16: torch.bfloat16,
}
NUMBERS = {dtype: number for number, dtype in TYPES.items()}

Attributes = Mapping[str, Any]
Place = Tuple[int, int, int]
"""The numbers of a value, and of a node and its operand; -1 and 0 for the value itself."""


class NotRun(Exception):
    """An operator that this table does not have."""


def _sizes(x: Optional[Tensor]) -> List[Any]:
    return [] if x is None else x.reshape(-1).tolist()


def _pair(pads: Sequence[int], x: Tensor, fill: float = 0.0, mode: str = "constant") -> Tensor:
    """Pads by [begin of each of the last axes, end of each]."""
    n = len(pads) // 2
    sides = [pads[i + end * n] for i in reversed(range(n)) for end in (0, 1)]
    while sides and sides[-2:] == [0, 0]:
        sides = sides[:-2]
    if not sides:
        return x
    return F.pad(x, sides, mode, fill) if mode == "constant" else F.pad(x, sides, mode)


def _conv_pads(a: Attributes, x: Tensor, kernel: Sequence[int]) -> List[int]:
    n = len(kernel)
    if not a.get("auto_pad", "NOTSET").startswith("SAME"):
        return list(a.get("pads", [0] * 2 * n))
    strides, dilations = a.get("strides", [1] * n), a.get("dilations", [1] * n)
    begin, end = [], []
    for i, size in enumerate(x.shape[2:]):
        extent = (kernel[i] - 1) * dilations[i] + 1
        missing = max(0, (math.ceil(size / strides[i]) - 1) * strides[i] + extent - size)
        first = missing // 2 if a["auto_pad"] == "SAME_UPPER" else missing - missing // 2
        begin.append(first)
        end.append(missing - first)
    return begin + end


def _conv(a: Attributes, x: Tensor, w: Tensor, b: Optional[Tensor] = None) -> Tensor:
    n = w.dim() - 2
    pads = _conv_pads(a, x, w.shape[2:])
    if pads[:n] == pads[n:] and min(pads, default=0) >= 0:
        padding = pads[:n]
    else:
        x, padding = _pair(pads, x), [0] * n
    run: Any = (F.conv1d, F.conv2d, F.conv3d)[n - 1]
    strides, dilations = a.get("strides", [1] * n), a.get("dilations", [1] * n)
    result: Tensor = run(x, w, b, strides, padding, dilations, a.get("group", 1))
    return result


def _conv_transpose(a: Attributes, x: Tensor, w: Tensor, b: Optional[Tensor] = None) -> Tensor:
    n = w.dim() - 2
    pads = a.get("pads", [0] * 2 * n)
    if pads[:n] != pads[n:]:
        raise NotRun("ConvTranspose")
    run: Any = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[n - 1]
    strides, dilations = a.get("strides", [1] * n), a.get("dilations", [1] * n)
    beyond = a.get("output_padding", [0] * n)
    result: Tensor = run(x, w, b, strides, pads[:n], beyond, a.get("group", 1), dilations)
    return result


def _pool(kind: str) -> Callable[..., Tensor]:
    def run(a: Attributes, x: Tensor) -> Tensor:
        kernel = a["kernel_shape"]
        n = len(kernel)
        pads = a.get("pads", [0] * 2 * n)
        if pads[:n] != pads[n:] or a.get("auto_pad", "NOTSET") != "NOTSET":
            raise NotRun(kind)
        pool: Any = getattr(F, f"{kind}_pool{n}d")
        common = (kernel, a.get("strides", [1] * n), pads[:n])
        ceil = bool(a.get("ceil_mode", 0))
        if kind == "max":
            result: Tensor = pool(x, *common, a.get("dilations", [1] * n), ceil)
        else:
            result = pool(x, *common, ceil, bool(a.get("count_include_pad", 0)))
        return result

    return run


def _adaptive(kind: str) -> Callable[..., Tensor]:
    def run(a: Attributes, x: Tensor, *others: Optional[Tensor]) -> Tensor:
        pool: Any = getattr(F, f"adaptive_{kind}_pool{x.dim() - 2}d")
        result: Tensor = pool(x, _sizes(others[-1]))
        return result

    return run


def _resize(
    a: Attributes,
    x: Tensor,
    _: Optional[Tensor],
    scales: Optional[Tensor] = None,
    sizes: Optional[Tensor] = None,
) -> Tensor:
    mode, how = a["mode"], a["coordinate_transformation_mode"]
    if a.get("axes") != list(range(2, x.dim())):
        raise NotRun("Resize")
    if mode == "nearest":
        mode = "nearest" if how == "asymmetric" else "nearest-exact"
    else:
        mode = {"linear": ("linear", "bilinear", "trilinear")[x.dim() - 3], "cubic": "bicubic"}[
            mode
        ]
    corners = None if mode.startswith("nearest") else how == "align_corners"
    if sizes is not None:
        return F.interpolate(x, _sizes(sizes), mode=mode, align_corners=corners)
    return F.interpolate(x, scale_factor=_sizes(scales), mode=mode, align_corners=corners)


def _gemm(a: Attributes, x: Tensor, w: Tensor, b: Optional[Tensor] = None) -> Tensor:
    product = (x.mT if a.get("transA") else x) @ (w.mT if a.get("transB") else w)
    if a.get("alpha", 1.0) != 1:
        product = product * a["alpha"]
    return product if b is None else product + a.get("beta", 1.0) * b


def _reshape(a: Attributes, x: Tensor, shape: Tensor) -> Tensor:
    sizes = _sizes(shape)
    if not a.get("allowzero"):
        sizes = [x.shape[i] if size == 0 else size for i, size in enumerate(sizes)]
    return x.reshape(sizes)


def _slice(
    a: Attributes,
    x: Tensor,
    starts: Tensor,
    ends: Tensor,
    axes: Optional[Tensor] = None,
    steps: Optional[Tensor] = None,
) -> Tensor:
    begin, end = _sizes(starts), _sizes(ends)
    along = _sizes(axes) or list(range(len(begin)))
    every = _sizes(steps) or [1] * len(begin)
    index = [slice(None)] * x.dim()
    for first, last, axis, step in zip(begin, end, along, every):
        if step > 0:
            index[axis] = slice(first, last, step)
        else:
            places = range(*slice(first, last, step).indices(x.shape[axis]))
            x = x.index_select(axis, torch.tensor(list(places), device=x.device))
    return x[tuple(index)]


def _pad(
    a: Attributes,
    x: Tensor,
    pads: Tensor,
    value: Optional[Tensor] = None,
    axes: Optional[Tensor] = None,
) -> Tensor:
    sizes = _sizes(pads)
    if axes is not None:
        all_sizes = [0] * 2 * x.dim()
        for i, axis in enumerate(_sizes(axes)):
            all_sizes[axis % x.dim()] = sizes[i]
            all_sizes[axis % x.dim() + x.dim()] = sizes[i + len(sizes) // 2]
        sizes = all_sizes
    mode = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}[
        a.get("mode", "constant")
    ]
    return _pair(sizes, x, 0.0 if value is None else value.item(), mode)


def _squeeze(a: Attributes, x: Tensor, axes: Optional[Tensor] = None) -> Tensor:
    return x.squeeze() if axes is None else x.squeeze(tuple(_sizes(axes)))


def _unsqueeze(a: Attributes, x: Tensor, axes: Tensor) -> Tensor:
    rank = x.dim() + axes.numel()
    for axis in sorted(one % rank for one in _sizes(axes)):
        x = x.unsqueeze(axis)
    return x


def _gather(a: Attributes, x: Tensor, index: Tensor) -> Tensor:
    axis = a.get("axis", 0) % max(1, x.dim())
    index = torch.where(index < 0, index + x.shape[axis], index)
    if index.dim() == 0:
        return x.index_select(axis, index.reshape(1)).squeeze(axis)
    picked = x.index_select(axis, index.reshape(-1))
    return picked.reshape(x.shape[:axis] + index.shape + x.shape[axis + 1 :])


def _split(a: Attributes, x: Tensor, sizes: Optional[Tensor] = None) -> Any:
    axis = a.get("axis", 0)
    if sizes is not None:
        return x.split(_sizes(sizes), axis)
    return x.chunk(a["num_outputs"], axis)


def _expand(a: Attributes, x: Tensor, sizes: Tensor) -> Tensor:
    return x.expand(torch.broadcast_shapes(x.shape, _sizes(sizes)))


def _constant_of_shape(a: Attributes, sizes: Tensor) -> Tensor:
    value = a.get("value", [0.0])
    return torch.full(_sizes(sizes), value[0] if isinstance(value, list) else value)


def _reduced(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def run(a: Attributes, x: Tensor, axes: Optional[Tensor] = None) -> Tensor:
        along = _sizes(axes) if axes is not None else list(a.get("axes", []))
        if not along and a.get("noop_with_empty_axes"):
            return x
        return function(x, tuple(along or range(x.dim())), keepdim=bool(a.get("keepdims", 1)))

    return run


def _product(x: Tensor, axes: Sequence[int], keepdim: bool) -> Tensor:
    for axis in sorted((axis % x.dim() for axis in axes), reverse=True):
        x = x.prod(axis, keepdim)
    return x


def _norm(power: int) -> Callable[..., Tensor]:
    return lambda x, axes, keepdim: torch.linalg.vector_norm(x, power, axes, keepdim)


def _batch_norm(
    a: Attributes, x: Tensor, gain: Tensor, shift: Tensor, mean: Tensor, variance: Tensor
) -> Tensor:
    if a.get("training_mode"):
        raise NotRun("BatchNormalization")
    return F.batch_norm(x, mean, variance, gain, shift, False, 0.0, a.get("epsilon", 1e-5))


def _layer_norm(a: Attributes, x: Tensor, gain: Tensor, shift: Optional[Tensor] = None) -> Tensor:
    return F.layer_norm(x, x.shape[a.get("axis", -1) :], gain, shift, a.get("epsilon", 1e-5))


def _group_norm(a: Attributes, x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    return F.group_norm(x, a["num_groups"], gain, shift, a.get("epsilon", 1e-5))


def _instance_norm(a: Attributes, x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    return F.instance_norm(x, None, None, gain, shift, eps=a.get("epsilon", 1e-5))


def _prelu(a: Attributes, x: Tensor, slope: Tensor) -> Tensor:
    return torch.where(x < 0, x * slope, x)


def _top_k(a: Attributes, x: Tensor, k: Tensor) -> Any:
    return x.topk(int(k), a.get("axis", -1), bool(a.get("largest", 1)))


def _divide(a: Attributes, x: Tensor, y: Tensor) -> Tensor:
    whole = not (x.is_floating_point() or y.is_floating_point())
    return torch.div(x, y, rounding_mode="trunc" if whole else None)


def _modulo(a: Attributes, x: Tensor, y: Tensor) -> Tensor:
    return torch.fmod(x, y) if a.get("fmod") else torch.remainder(x, y)


def _trilu(a: Attributes, x: Tensor, k: Optional[Tensor] = None) -> Tensor:
    offset = 0 if k is None else int(k)
    return x.triu(offset) if a.get("upper", 1) else x.tril(offset)


def _recurrent(kind: str) -> Callable[..., Any]:
    def run(a: Attributes, x: Tensor, *operands: Optional[Tensor]) -> Sequence[Tensor]:
        states = 2 if kind == "lstm" else 1
        parameters = [*operands[:4], *operands[4 + states :]]
        given = [one for one in parameters if one is not None]
        start: Any = operands[4 : 4 + states] if kind == "lstm" else operands[4]
        name = kind if kind != "rnn" else f"rnn_{a.get('nonlinearity', 'tanh')}"
        layer: Any = getattr(torch._VF, name)
        way = x.flip(0) if a.get("reverse") else x
        biases = operands[2] is not None
        y, *last = layer(way, start, given, biases, 1, 0.0, False, False, False)
        return [y.flip(0) if a.get("reverse") else y, *last]

    return run


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Drops the attributes, of which it has none."""
    return lambda a, *operands: function(*operands)


def _many(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def run(a: Attributes, x: Tensor, *others: Tensor) -> Tensor:
        for other in others:
            x = function(x, other)
        return x

    return run


_OPERATORS: Dict[str, Callable[..., Any]] = {
    "Abs": _plain(torch.abs),
    "Add": _plain(torch.add),
    "And": _plain(torch.logical_and),
    "ArgMax": lambda a, x: x.argmax(a.get("axis", 0), bool(a.get("keepdims", 1))),
    "ArgMin": lambda a, x: x.argmin(a.get("axis", 0), bool(a.get("keepdims", 1))),
    "Atan": _plain(torch.atan),
    "AveragePool": _pool("avg"),
    "BatchNormalization": _batch_norm,
    "Cast": lambda a, x: x.to(TYPES[a["to"]]),
    "Ceil": _plain(torch.ceil),
    "Celu": lambda a, x: F.celu(x, a.get("alpha", 1.0)),
    "Clip": lambda a, x, low=None, high=None: torch.clamp(x, low, high),
    "Concat": lambda a, *parts: torch.cat(parts, a["axis"]),
    "ConstantOfShape": _constant_of_shape,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Cos": _plain(torch.cos),
    "CumSum": lambda a, x, axis: x.cumsum(int(axis)),
    "DepthToSpace": lambda a, x: F.pixel_shuffle(x, a["blocksize"]),
    "Div": _divide,
    "Einsum": lambda a, *operands: torch.einsum(a["equation"], *operands),
    "Elu": lambda a, x: F.elu(x, a.get("alpha", 1.0)),
    "Equal": _plain(torch.eq),
    "Erf": _plain(torch.erf),
    "Exp": _plain(torch.exp),
    "Expand": _expand,
    "Flatten": lambda a, x: x.reshape(math.prod(x.shape[: a.get("axis", 1)]), -1),
    "Floor": _plain(torch.floor),
    "Gather": _gather,
    "GatherElements": lambda a, x, index: x.gather(a.get("axis", 0), index),
    "Gelu": lambda a, x: F.gelu(x, approximate=a.get("approximate", "none")),
    "Gemm": _gemm,
    "GlobalAveragePool": lambda a, x: x.mean(tuple(range(2, x.dim())), keepdim=True),
    "GlobalMaxPool": lambda a, x: x.amax(tuple(range(2, x.dim())), keepdim=True),
    "Greater": _plain(torch.gt),
    "GreaterOrEqual": _plain(torch.ge),
    "GroupNormalization": _group_norm,
    "HardSigmoid": lambda a, x: (x * a.get("alpha", 0.2) + a.get("beta", 0.5)).clamp(0, 1),
    "HardSwish": _plain(F.hardswish),
    "Identity": _plain(lambda x: x),
    "InstanceNormalization": _instance_norm,
    "IsNaN": _plain(torch.isnan),
    "LayerNormalization": _layer_norm,
    "LeakyRelu": lambda a, x: F.leaky_relu(x, a.get("alpha", 0.01)),
    "Less": _plain(torch.lt),
    "LessOrEqual": _plain(torch.le),
    "Log": _plain(torch.log),
    "LogSoftmax": lambda a, x: x.log_softmax(a.get("axis", -1)),
    "MatMul": _plain(torch.matmul),
    "Max": _many(torch.maximum),
    "MaxPool": _pool("max"),
    "Min": _many(torch.minimum),
    "Mish": _plain(F.mish),
    "Mod": _modulo,
    "Mul": _plain(torch.mul),
    "Neg": _plain(torch.neg),
    "Not": _plain(torch.logical_not),
    "Or": _plain(torch.logical_or),
    "PRelu": _prelu,
    "Pad": _pad,
    "Pow": _plain(torch.pow),
    "Range": _plain(lambda first, end, step: torch.arange(first.item(), end.item(), step.item())),
    "Reciprocal": _plain(torch.reciprocal),
    "ReduceL1": _reduced(_norm(1)),
    "ReduceL2": _reduced(_norm(2)),
    "ReduceLogSumExp": _reduced(torch.logsumexp),
    "ReduceMax": _reduced(torch.amax),
    "ReduceMean": _reduced(torch.mean),
    "ReduceMin": _reduced(torch.amin),
    "ReduceProd": _reduced(_product),
    "ReduceSum": _reduced(torch.sum),
    "Relu": _plain(torch.relu),
    "Reshape": _reshape,
    "Resize": _resize,
    "Round": _plain(torch.round),
    "Selu": _plain(F.selu),
    "Shape": lambda a, x: torch.tensor(x.shape),
    "Sigmoid": _plain(torch.sigmoid),
    "Sign": _plain(torch.sign),
    "Sin": _plain(torch.sin),
    "Size": lambda a, x: torch.tensor(x.numel()),
    "Slice": _slice,
    "Softmax": lambda a, x: x.softmax(a.get("axis", -1)),
    "Softplus": _plain(F.softplus),
    "Split": _split,
    "Sqrt": _plain(torch.sqrt),
    "Squeeze": _squeeze,
    "Sub": _plain(torch.sub),
    "Tanh": _plain(torch.tanh),
    "Tile": lambda a, x, times: x.repeat(_sizes(times)),
    "TopK": _top_k,
    "Transpose": lambda a, x: x.permute(a.get("perm", list(reversed(range(x.dim()))))),
    "Trilu": _trilu,
    "Unsqueeze": _unsqueeze,
    "Where": _plain(torch.where),
    "torch::AdaptiveAveragePool": _adaptive("avg"),
    "torch::AdaptiveMaxPool": _adaptive("max"),
    "torch::Gru": _recurrent("gru"),
    "torch::Lstm": _recurrent("lstm"),
    "torch::Rnn": _recurrent("rnn"),
}
_FIRST_SIZE = {"ConstantOfShape": 0, "Range": 0}
_TAKE_SIZES = {
    *_FIRST_SIZE,
    *("CumSum", "Expand", "Pad", "Reshape", "Resize", "Slice", "Split", "Squeeze", "Tile", "TopK"),
    *("Trilu", "Unsqueeze", "torch::AdaptiveAveragePool", "torch::AdaptiveMaxPool"),
    *(name for name in _OPERATORS if name.startswith("Reduce")),
}
"""Operators whose operands, except for the first, are numbers on the host."""


class Node(NamedTuple):
    """A node; operands and results are numbers of values, -1 where there is none."""

    op: str
    inputs: List[int]
    outputs: List[int]
    attributes: Attributes


class Network:
    """A graph that torch runs.

    Args:
        weights: by value.
        device: where it runs; sizes stay on the host.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        weights: Mapping[int, Tensor],
        inputs: Sequence[int],
        outputs: Sequence[int],
        device: torch.device,
    ) -> None:
        unknown = sorted({node.op for node in nodes} - _OPERATORS.keys())
        if unknown:
            raise NotRun(", ".join(unknown))
        self.nodes, self.inputs, self.outputs, self.device = nodes, inputs, outputs, device
        on_host = {
            value
            for node in nodes
            if node.op in _TAKE_SIZES
            for value in node.inputs[_FIRST_SIZE.get(node.op, 1) :]
        }
        self.weights = {
            value: tensor if value in on_host else tensor.to(device)
            for value, tensor in weights.items()
        }
        self._last: List[Set[int]] = [set() for _ in nodes]
        """Values that no node after this one reads."""
        read = set(outputs)
        for i in reversed(range(len(nodes))):
            own = {*nodes[i].inputs, *nodes[i].outputs}
            self._last[i] = own - read
            read |= own

    def run(
        self,
        inputs: Sequence[Optional[Tensor]],
        seen: Optional[Callable[[int, int, int, Tensor], Tensor]] = None,
    ) -> List[Tensor]:
        """Returns the outputs.

        Args:
            seen: returns what to use in place of a value, or of an operand: it gets the value's
                number, those of the node and its operand, or -1 and 0, and the tensor.
        """
        values: Dict[int, Optional[Tensor]] = {-1: None, **self.weights}
        values.update(zip(self.inputs, inputs))
        if seen is not None:
            values.update((v, seen(v, -1, 0, x)) for v, x in values.items() if x is not None)
        for number, (node, last) in enumerate(zip(self.nodes, self._last)):
            operands = [values[value] for value in node.inputs]
            if node.op not in _TAKE_SIZES:
                operands = _together(operands)
            if seen is not None:
                operands = [
                    x if x is None else seen(value, number, i, x)
                    for i, (value, x) in enumerate(zip(node.inputs, operands))
                ]
            found = _OPERATORS[node.op](node.attributes, *operands)
            for value, x in zip(node.outputs, [found] if isinstance(found, Tensor) else found):
                values[value] = x if seen is None else seen(value, -1, 0, x)
            for value in last - {-1}:
                values.pop(value, None)
        return [values[value] for value in self.outputs]

    def observed(
        self, inputs: Sequence[Tensor], places: AbstractSet[Place]
    ) -> Tuple[List[Tensor], Dict[Place, Tensor]]:
        """Returns the outputs, and the tensors at `places`, for which the outputs have gradients."""
        found: Dict[Place, Tensor] = {}
        shared: Dict[int, Tensor] = {}  # one tensor for all values of a weight

        def seen(value: int, node: int, operand: int, x: Tensor) -> Tensor:
            place = (value, node, operand)
            if place not in places or not x.is_floating_point():
                return x
            weight = self.weights.get(value)
            if node < 0 and weight is not None:
                x = shared.setdefault(id(weight), x.detach().requires_grad_())
            else:
                x = x.view_as(x) if x.requires_grad else x.detach().requires_grad_()
            found[place] = x
            return x

        return self.run(inputs, seen), found


def _together(operands: List[Optional[Tensor]]) -> List[Optional[Tensor]]:
    """Moves tensors to the device that one of them is on."""
    devices = {x.device for x in operands if x is not None} - {torch.device("cpu")}
    if not devices:
        return operands
    (device,) = devices
    return [x if x is None else x.to(device) for x in operands]
