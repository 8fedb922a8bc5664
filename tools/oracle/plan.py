"""The plan, and what it says about the original: what is to be zero, and what remains."""

import json

import numpy

import tensors

from .faults import FileFault
from .model import array_of, set_array, type_name

ONE_BYTE = ("int8", "uint8", "int4", "uint4")
MAGNITUDES = ("float32", "float64", "float16", "bfloat16", "int8")

# Operators that read quantized values: the input with the values -> the one with their zero point.
ZERO_POINTS = {
    "DequantizeLinear": {0: 2},
    "ConvInteger": {0: 2, 1: 3},
    "MatMulInteger": {0: 2, 1: 3},
    "QLinearConv": {0: 2, 3: 5},
    "QLinearMatMul": {0: 2, 3: 5},
}
# The axis along which there may be several, where it is neither an attribute nor the last.
POINT_AXES = {("ConvInteger", 1): 0, ("QLinearConv", 3): 0}


def read_plan(path):
    """Reads and checks a plan; the fault names the entry."""
    try:
        with open(path, encoding="utf-8") as file:
            plan = json.load(file)
    except ValueError as error:
        raise FileFault(f"{path}: {error}") from error
    if fault := plan_fault(plan):
        raise FileFault(f"{path}: {fault}")
    if plan["parsimony_plan"] == 1:
        plan["updates"] = plan.pop("folds", [])
    has_values = plan.get("masks") or any(one.get("dtype") for one in plan.get("updates", []))
    rows = tensors.load_bytes(f"{path}.safetensors") if has_values else {}
    plan["values"] = {name: data for name, (_, _, data) in rows.items()}
    return plan


def plan_fault(plan):
    if not isinstance(plan, dict) or plan.get("parsimony_plan") not in (1, 2):
        return "parsimony_plan: expected 1 or 2: is this a plan?"
    if not isinstance(plan.get("groups"), list):
        return "groups: expected a list"
    for g, group in enumerate(plan["groups"]):
        if not isinstance(group.get("slices"), list):
            return f"groups[{g}].slices: expected a list"
        for s, one in enumerate(group["slices"]):
            if fault := slice_fault(one):
                return f"groups[{g}].slices[{s}].{fault}"
    for b, block in enumerate(plan.get("blocks", [])):
        if not isinstance(block.get("add"), str) or block.get("kept_input") not in (0, 1):
            return f"blocks[{b}]: expected add, a name, and kept_input, 0 or 1"
    for c, copy in enumerate(plan.get("copies", [])):
        named = all(isinstance(copy.get(key), str) for key in ("tensor", "of", "consumer"))
        if not named or not isinstance(copy.get("input"), int):
            return f"copies[{c}]: expected tensor, of, consumer and input"
    return None


def slice_fault(one):
    axis, role, size, keep = (one.get(key) for key in ("axis", "role", "size", "keep"))
    if not isinstance(one.get("tensor"), str):
        return "tensor: expected a name"
    if not isinstance(axis, int) or axis < 0:
        return f"axis: found {axis}, expected 0 or more"
    if role not in ("in", "out", "with"):
        return f'role: found "{role}", expected "in", "out" or "with"'
    if not isinstance(size, int) or size < 1:
        return f"size: found {size}, expected 1 or more"
    if not isinstance(keep, list):
        return "keep: expected a list"
    whole = all(isinstance(k, int) and 0 <= k < size for k in keep)
    if not whole or any(a >= b for a, b in zip(keep, keep[1:])):
        return f"keep: expected ascending indices below {size}"
    return None


def slices_of(plan):
    return [one for group in plan["groups"] for one in group["slices"]]


def mixes(plan):
    return any(group.get("mixes") for group in plan["groups"])


def mask_model(model, plan):
    """Turns the original into the proof's reference.

    Every slice that the plan removes becomes zero, and so do the branches of blocks and the single
    elements that it names. A divisor (role "with") belongs to its channel but is not zeroed: 0/0
    would say nothing. With exact constants it is the masks that become zero.
    """
    remove_blocks(model, plan.get("blocks", []))
    if plan.get("constants") == "exact":
        zero_masked(model, plan)
        return
    separate_copies(model, plan.get("copies", []))
    set_scales(model, plan.get("scales", []))
    for zeros in plan.get("zeros", []):
        zero_smallest(required(model, zeros["tensor"]), zeros["smallest"])
    for one in slices_of(plan):
        zero_slice(model, one)
    assign_updates(model, plan)


def zero_smallest(tensor, count):
    """Zeroes so many elements of least magnitude; ties fall to the lower index."""
    if type_name(tensor.data_type) not in MAGNITUDES:
        raise FileFault(f"{type_name(tensor.data_type)} elements have no magnitude")
    array = array_of(tensor)
    sizes = numpy.abs(array.astype(numpy.float64)).ravel()
    array.ravel()[numpy.argsort(sizes, kind="stable")[:count]] = 0
    set_array(tensor, array)


def zero_slice(model, one):
    name, axis, size = one["tensor"], one["axis"], one["size"]
    tensor = required(model, name)
    found = tensor.dims[axis] if axis < len(tensor.dims) else None
    if found != size:
        raise FileFault(
            f'tensor "{name}" of shape {list(tensor.dims)}: found {found} along axis {axis}, ' f"the plan says {size}"
        )
    if one["role"] == "with":
        return
    array = array_of(tensor)
    gone = (slice(None),) * axis + (numpy.setdiff1d(range(size), one["keep"]),)
    zero = zero_of(model, name, array, type_name(tensor.data_type))
    array[gone] = numpy.broadcast_to(zero, array.shape)[gone]
    set_array(tensor, array)


def zero_of(model, name, array, kind):
    """What means zero to whoever reads the tensor; it broadcasts to the tensor's shape."""
    zero = numpy.zeros((), array.dtype)
    for node, index in model.consumers(name) if kind in ONE_BYTE else ():
        point = ZERO_POINTS.get(node.op, {}).get(index)
        point_name = node.inputs[point] if point is not None and point < len(node.inputs) else ""
        if not point_name:
            continue
        tensor = model.tensor(model.origin(point_name))
        if tensor is None:
            raise FileFault(f'tensor "{name}": its zero point "{point_name}" is computed')
        points = array_of(tensor).ravel()
        if (points == points[0]).all():
            return points[0]
        axis = point_axis(node, index) % array.ndim
        if array.shape[axis] != points.size:
            raise FileFault(f'tensor "{name}": zero points that differ by block are not handled')
        return points.reshape((-1,) + (1,) * (array.ndim - 1 - axis))
    return zero


def point_axis(node, index):
    if node.op == "DequantizeLinear":
        attribute = node.attribute("axis")
        return attribute.i if attribute else 1
    return POINT_AXES.get((node.op, index), -1)


def set_scales(model, scales):
    """Numbers that follow a pruned size are in the reference what they are in the small model."""
    for scale in scales:
        key, what, index, to = scale["node"], scale["what"], scale.get("input"), scale["to"]
        where = f'scale "{what}" of "{key}"'
        node = model.producers.get(key)
        if node is None:
            raise FileFault(f"{where}: the original has no node with this output")
        if index is None:
            node.set_number(what, to["values"][0])
            continue
        if index >= len(node.inputs):
            raise FileFault(f"{where}: it has no such operand")
        if to["dtype"] not in ("float64", "float32", "float16"):
            raise FileFault(f"{where}: of type {to['dtype']}")
        name = f"{key}_rescaled_{index}"
        array = numpy.full(to["dims"], to["values"][0], to["dtype"])
        model.add_tensor(name, array, node.scope)
        node.set_input(index, name)


def remove_blocks(model, blocks):
    """A removed block adds nothing: its branch b, which is still computed, becomes b - b. What leaves
    with experts adds nothing by itself."""
    for block in blocks:
        if "group" in block:
            continue
        add, branch_input = block["add"], 1 - block["kept_input"]
        node = model.producers.get(add)
        if node is None or node.op != "Add":
            raise FileFault(f'block "{add}": the original has no Add with this output')
        branch = node.inputs[branch_input]
        zero = f"{add}_without_its_branch"
        model.add_node("Sub", [branch, branch], zero, node.scope)
        node.set_input(branch_input, zero)


def values_of(plan, name, size):
    found = plan["values"].get(name)
    if found is None:
        raise FileFault(f'the file beside the plan lacks "{name}"')
    if found.size != size:
        raise FileFault(f'the file beside the plan: "{name}" has {found.size} bytes, expected {size}')
    return found


def zero_masked(model, plan):
    for mask in plan["masks"]:
        tensor = required(model, mask["tensor"])
        array = array_of(tensor)
        kept = values_of(plan, f"{mask['tensor']}:mask", array.size)
        array.ravel()[kept == 0] = 0
        set_array(tensor, array)


def assign_updates(model, plan):
    """What stays of a tensor takes the new values, in its order."""
    slices = slices_by_tensor(plan)
    for update in plan.get("updates", []):
        if not update.get("dtype"):
            continue
        tensor = required(model, update["tensor"])
        array = array_of(tensor)
        places = cut(numpy.arange(array.size).reshape(array.shape), slices.get(update["tensor"], []))
        values = values_of(plan, update["tensor"], places.size * array.itemsize)
        array.ravel()[places.ravel()] = values.view(array.dtype)
        set_array(tensor, array)


def separate_copies(model, copies):
    """Gives each use of a shared vector that the plan treats by itself an initializer of its own."""
    made = {}
    for copy in copies:
        name, of, consumer, index = (copy[key] for key in ("tensor", "of", "consumer", "input"))
        where = f'copy "{name}"'
        node = model.producers.get(consumer)
        read = node.inputs[index] if node and index < len(node.inputs) else ""
        if not read:
            raise FileFault(f'{where}: the original has no node with output "{consumer}" and input {index}')
        origin = model.origin(of)
        if model.origin(read) != origin:
            raise FileFault(f'{where}: input {index} of the node of "{consumer}" reads "{read}", not "{of}"')
        if name not in made:
            if model.tensor(name) is not None or model.knows(name):
                raise FileFault(f"{where}: the name is taken")
            model.add_tensor(name, array_of(required(model, origin)), model.scope_of(origin))
        if made.setdefault(name, of) != of:
            raise FileFault(f'{where}: of "{of}" and of "{made[name]}"')
        node.set_input(index, name)


def required(model, name):
    tensor = model.tensor(name)
    if tensor is None:
        raise FileFault(f'the original has no initializer or Constant named "{name}"')
    return tensor


def check_tensors(original, small, plan):
    """Holds the small model's tensors against the plan.

    Without it, the masked original itself would pass for a small model. A tensor may be gone (merged
    with an equal one); one that is there has the planned shape, and the original's values unless it
    stands in `updates`.
    """
    copied = {copy["tensor"]: copy["of"] for copy in plan.get("copies", [])}
    folded = {update["tensor"] for update in plan.get("updates", [])}
    by_tensor = slices_by_tensor(plan)
    absent, wrong = [], []
    for block in plan.get("blocks", []):
        if small.knows(block["add"]):
            wrong.append(f'"{block["add"]}" is still there, and its block is to go')
    kept_wrong = len(wrong)
    for name, slices in by_tensor.items():
        found = small.tensor(name)
        if found is None:
            absent.append(name)
            continue
        expected = cut(array_of(required(original, original.origin(copied.get(name, name)))), slices)
        if list(found.dims) != list(expected.shape):
            wrong.append(f'"{name}" has shape {list(found.dims)}, the plan leaves {list(expected.shape)}')
        elif name not in folded and array_of(found).tobytes() != expected.tobytes():
            wrong.append(f'"{name}" has other values than the original\'s kept ones, and is not in updates')
    as_planned = len(by_tensor) - len(absent) - (len(wrong) - kept_wrong)
    return {"sliced": len(by_tensor), "as_planned": as_planned, "absent": absent, "wrong": wrong}


def slices_by_tensor(plan):
    by_tensor = {}
    for one in slices_of(plan):
        by_tensor.setdefault(one["tensor"], []).append(one)
    return by_tensor


def cut(array, slices):
    """What all the slices keep."""
    keeps = {}
    for one in slices:
        keeps[one["axis"]] = keeps.get(one["axis"], set(one["keep"])) & set(one["keep"])
    for axis, keep in keeps.items():
        array = array.take(numpy.array(sorted(keep), int), axis)
    return array
