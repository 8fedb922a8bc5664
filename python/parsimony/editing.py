"""Edits of a live module that can be undone."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Set, Tuple

import torch
from torch import Tensor, nn

from .plan import Cut, Cuts


def join(path: str, name: str) -> str:
    """Returns the name of a part of the module at `path`."""
    return f"{path}.{name}" if path else name


def named_tensors(module: nn.Module) -> Dict[str, Tensor]:
    """Returns all parameters and buffers, those with several names under each of them."""
    found: Dict[str, Tensor] = {}
    for path, part in module.named_modules(remove_duplicate=False):
        for tensors in (part._parameters, part._buffers):
            for name, tensor in tensors.items():
                if tensor is not None:
                    found[join(path, name)] = tensor
    return found


def cut_tensor(tensor: Tensor, cuts: Cuts) -> Tensor:
    """Returns a copy of the kept part of `tensor`, in the same memory format."""
    result = tensor.detach()
    for axis, cut in sorted(cuts.items(), key=lambda item: len(item[1].keep) / item[1].size):
        index = torch.tensor(cut.keep, dtype=torch.long, device=tensor.device)
        result = result.index_select(axis, index)
    for rank, layout in ((4, torch.channels_last), (5, torch.channels_last_3d)):
        if tensor.dim() == rank and not tensor.is_contiguous():
            if tensor.is_contiguous(memory_format=layout):
                return result.contiguous(memory_format=layout)
    return result


def set_zero(data: Tensor, cuts: Cuts) -> Callable[[], None]:
    """Zeroes the slices of `data` that `cuts` removes; returns a function that restores them."""
    steps = []
    for axis, cut in cuts.items():
        index = torch.tensor(cut.zeroed, dtype=torch.long, device=data.device)
        steps.append((axis, index, data.index_select(axis, index)))
        data.index_fill_(axis, index, 0)

    def restore() -> None:
        for axis, index, values in reversed(steps):
            data.index_copy_(axis, index, values)

    return restore


def put(tensor: Tensor, data: Tensor) -> None:
    """Replaces the elements and shape of `tensor`. It remains the same object, so that hooks, ties and
    optimizers stay valid."""
    if tensor.shape != data.shape and tensor.is_leaf and tensor.requires_grad:
        # Autograd of an older loss may keep an accumulator that expects gradients of the old shape.
        # A change of the element type makes torch forget it.
        other = torch.float32 if data.dtype == torch.float64 else torch.float64
        tensor.data = torch.empty(0, dtype=other, device=data.device)
    tensor.data = data


def _kind(tensor: Tensor) -> Any:
    return tensor.shape, tensor.dtype, tensor.device


class Factor(NamedTuple):
    """A factor for the elements of a tensor at some indices of an axis."""

    axis: int
    places: List[int]
    number: float

    def times(self, data: Tensor) -> Tensor:
        """Returns the product, a copy."""
        index = torch.tensor(self.places, dtype=torch.long, device=data.device)
        return data.index_copy(self.axis, index, data.index_select(self.axis, index) * self.number)


class Journal:
    """Edits tensors and attributes of a module, and can undo the edits."""

    def __init__(self) -> None:
        self._tensors: Dict[int, Tuple[Tensor, Tensor, Any]] = {}
        self._cuts: Dict[int, Cuts] = {}
        self._products: Dict[int, Tuple[Factor, Tensor]] = {}
        self._attributes: List[Tuple[Any, str, Any]] = []

    def set_data(self, tensor: Tensor, data: Tensor) -> None:
        """Replaces the elements of `tensor`; drops a gradient of another shape, type or device."""
        grad = tensor.grad if tensor.is_leaf else None
        self._tensors.setdefault(id(tensor), (tensor, tensor.data, grad))
        if grad is not None and _kind(grad) != _kind(data):
            tensor.grad = None
        put(tensor, data)

    def cut(self, tensor: Tensor, cuts: Cuts) -> None:
        """Slices `tensor` and its gradient to what `cuts` keeps."""
        grad = tensor.grad if tensor.is_leaf else None
        small_grad = None
        if grad is not None and grad.shape == tensor.shape:
            small_grad = cut_tensor(grad, cuts)
        self.set_data(tensor, cut_tensor(tensor.data, cuts))
        self._cuts[id(tensor)] = cuts
        if small_grad is not None:
            tensor.grad = small_grad

    def multiply(self, tensor: Tensor, factor: Factor) -> None:
        self._products[id(tensor)] = factor, tensor.data
        self.set_data(tensor, factor.times(tensor.data))

    def undo_product(self, tensor: Tensor) -> None:
        """Undoes the last `multiply` of `tensor`."""
        self.set_data(tensor, self._products.pop(id(tensor))[1])

    def multiplied(self, tensor: Tensor, data: Tensor) -> Tensor:
        """Applies the factor of `multiply`, if any, to `data`, elements of `tensor` from before it."""
        product = self._products.get(id(tensor))
        return data if product is None else product[0].times(data)

    def kept(self, tensor: Tensor, axis: int) -> Cut:
        """Returns what was kept of an axis of `tensor`: all of it, if it was not cut."""
        cut = self._cuts.get(id(tensor), {}).get(axis)
        return cut or Cut(tensor.shape[axis], tuple(range(tensor.shape[axis])), ())

    def touched(self, tensors: Iterable[Tensor]) -> bool:
        """Returns whether any of `tensors` was edited."""
        return any(id(tensor) in self._tensors for tensor in tensors)

    def set_attribute(self, owner: Any, name: str, value: Any) -> None:
        """Sets an existing attribute."""
        before = getattr(owner, name)
        if before != value:
            self._attributes.append((owner, name, before))
            setattr(owner, name, value)

    def replace_attribute(self, owner: Any, name: str, value: Any) -> None:
        """Sets an attribute to an object that may equal the one before."""
        self._attributes.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def mark(self) -> int:
        """Returns a mark for `undo_attributes`, which restores the current attributes."""
        return len(self._attributes)

    def undo_attributes(self, mark: int) -> None:
        """Restores the attributes that were set since `mark`, in reverse order."""
        while len(self._attributes) > mark:
            owner, name, value = self._attributes.pop()
            setattr(owner, name, value)

    def undo(self) -> None:
        """Undoes all edits."""
        self.undo_attributes(0)
        for tensor, data, grad in self._tensors.values():
            if tensor.is_leaf:
                tensor.grad = None
            put(tensor, data)
            if tensor.is_leaf:
                tensor.grad = grad
        self.__init__()  # type: ignore[misc]


def alike(tensors: Dict[str, Tensor]) -> Dict[int, List[Tensor]]:
    """Returns, by `id`, the tensors with the same elements in memory, including itself."""
    by_memory: Dict[Any, Dict[int, Tensor]] = {}
    for tensor in tensors.values():
        key: Any = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride())
        if tensor.numel() == 0 or tensor.is_meta:
            key = id(tensor)
        by_memory.setdefault(key, {})[id(tensor)] = tensor
    return {one: list(same.values()) for same in by_memory.values() for one in same}


def shown_elsewhere(tensors: Dict[str, Tensor]) -> Set[int]:
    """Returns the `id` of each tensor that shares elements with other views, such as its transpose, or
    that contains elements several times, like a result of `expand`."""
    extents = {}
    found: Set[int] = set()
    for same in alike(tensors).values():
        one = same[0]
        if one.numel() and not one.is_meta:
            last = sum((size - 1) * stride for size, stride in zip(one.shape, one.stride()))
            end = one.data_ptr() + (last + 1) * one.element_size()
            extents[id(one)] = (one.data_ptr(), end, same)
            if 0 in one.stride() or one.numel() > last + 1:
                found.update(map(id, same))
    before: Tuple[int, List[Tensor]] = (0, [])  # the largest end so far
    for begin, end, same in sorted(extents.values(), key=lambda extent: extent[:2]):
        if begin < before[0]:
            found.update(map(id, before[1] + same))
        before = max(before, (end, same), key=lambda extent: extent[0])
    return found


def own_tensors(module: nn.Module) -> Iterator[Tensor]:
    """Yields parameters and buffers of a module and of its parts."""
    yield from module.parameters()
    yield from module.buffers()
