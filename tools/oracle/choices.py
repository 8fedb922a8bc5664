"""Where a network chooses: what a last bit decides there is no fault of the small model."""

import numpy
import onnx

from .runtime import run_all

# Small changes of their operands may make large ones of what they give.
CHOOSES = frozenset(
    "ArgMax ArgMin Cast CastLike Ceil Equal Floor Greater GreaterOrEqual Hardmax Less LessOrEqual "
    "NonMaxSuppression NonZero QuantizeLinear Round Sign TopK".split()
)
TELLS_SIZES = ("Shape", "Size")


def give_choices(reference, small, feeds, threads):
    """Lets both models choose from the numbers that the reference computes on these feeds.

    All of them can then be compared: behind a choice what came of it, before it what it was made
    from. Both models are changed. Returns the names of what was given, which are outputs too, and
    what to feed then.
    """
    names = [name for name in operands_of(reference) if small.can_show(name)]
    for model in (reference, small):
        for name in names:
            model.add_output(name)
    expected = run_all(reference.encode(), "disabled", feeds, threads)
    (found,) = run_all(small.encode(), "disabled", feeds[:1], threads)
    operands = [
        name
        for name in names
        if expected[0][name].dtype == numpy.float32 and expected[0][name].ndim == found[name].ndim
    ]
    for model in (reference, small):
        for name in operands:
            give(model, name)
    return operands, [fed | {given(name): run[name] for name in operands} for fed, run in zip(feeds, expected)]


def given(name):
    return f"given::{name}"


def operands_of(model):
    """Those of the model's own graph that are computed from numbers, not from constants or sizes."""
    numbers, before = {one.name for one in model.inputs}, 0
    while before < len(numbers):
        before = len(numbers)
        for node in model.nodes:
            if node.op in TELLS_SIZES:
                continue
            if any(True for _ in node.bodies) or numbers.intersection(node.inputs):
                numbers.update(node.outputs)
    choosing = [node for node in model.nodes if node.op in CHOOSES and node.scope.prefix == ""]
    operands = (name for node in choosing for name in node.inputs)
    return list(dict.fromkeys(name for name in operands if model.can_show(name) and name in numbers))


def give(model, name):
    model.add_input(given(name), onnx.TensorProto.FLOAT)
    for node, index in model.consumers(name):
        if node.op in CHOOSES and node.scope.prefix == "":
            node.set_input(index, given(name))
