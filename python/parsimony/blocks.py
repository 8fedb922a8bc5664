"""The network of a directory with the weights of one block at a time."""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor, nn

from .directories import Pretrained, load
from .editing import join
from .inputs import Inputs, evaluating
from .lockstep import Lockstep
from .texts import Batch


class Blocks:
    """A network whose blocks are read from its directory when they are run.

    Blocks are the members of its outermost lists of modules. All other weights are read at once.

    Args:
        device: where it runs.
        dtype: of floating point numbers; None: the directory's.
        change: returns other elements for stored tensors.

    Attributes:
        model: in evaluation mode, with elements of the directory's types.
        blocks: their paths.
    """

    def __init__(
        self,
        network: Pretrained,
        device: torch.device,
        dtype: Optional[torch.dtype] = None,
        change: Optional[Callable[[str, Tensor], Tensor]] = None,
    ) -> None:
        self.model, computed = network.built(network.configured.copy(), dtype)
        self.blocks = _blocks_of(self.model)
        self._network, self._device = network, device
        self._dtype = next(self.model.parameters()).dtype
        read = _reader(network.weights)
        self._read = read if change is None else lambda name: change(name, read(name))
        self._targets = {stored: network.name_of(stored) for stored in network.stored}
        targets = set(self._targets.values())
        self._places: Dict[int, List["tuple[nn.Module, str]"]] = {}
        self._names: Dict[str, int] = {}
        for path, part in self.model.named_modules(remove_duplicate=False):
            for name, tensor in part._parameters.items():
                if tensor is not None:
                    self._names[join(path, name)] = id(tensor)
                    self._places.setdefault(id(tensor), []).append((part, name))
            for name, buffer in part._buffers.items():
                full = join(path, name)
                if buffer is not None and full in computed:
                    part._buffers[name] = computed[full].to(device)
                    if full in targets:
                        self._names[full] = -1
        self._beyond = [
            part
            for path, part in self.model.named_modules()
            if not any(_inside(path, block) for block in self.blocks)
        ]
        self._replaced: Dict[str, Tensor] = {}
        self._current: Optional[str] = None
        self._load(lambda name: not any(_inside(name, block) for block in self.blocks))

    def enter(self, block: str) -> None:
        """Reads the weights of a block, and drops those of the last one."""
        if block == self._current:
            return
        if self._current is not None:
            for part in self.model.get_submodule(self._current).modules():
                for name, tensor in part._parameters.items():
                    if tensor is not None and id(tensor) not in self._kept:
                        part._parameters[name] = nn.Parameter(
                            torch.empty_like(tensor, device="meta"), requires_grad=False
                        )
            _trim()
        self._current = block
        self._load(lambda name: _inside(name, block))

    @contextlib.contextmanager
    def entering(self, entered: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Makes each block enter when it is called, for runs alone.

        Args:
            entered: is called after that.
        """

        def enter(block: str) -> Callable[..., None]:
            def before(module: nn.Module, args: Any) -> None:
                self.enter(block)
                entered()

            return before

        handles = [
            self.model.get_submodule(block).register_forward_pre_hook(enter(block))
            for block in self.blocks
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def replace(self, weights: Mapping[str, Tensor]) -> None:
        """Replaces the weights of layers whenever they are read."""
        self._replaced = {f"{layer}.weight": weight for layer, weight in weights.items()}

    def set_weight(self, layer: str, weight: Tensor) -> None:
        """Replaces a weight until its block is dropped."""
        self.model.get_submodule(layer).get_parameter("weight").data.copy_(weight)

    def tensors(self, place: str) -> Iterator[Tuple[str, Tensor]]:
        """Yields the tensors that the class saves for a place, one by one."""
        for name, stored in self._network.names.items():
            if name.startswith(f"{place}."):
                yield name, self._read(stored)

    def run(self, batch: Union[Batch, Inputs]) -> Any:
        """Returns the main output on a batch; its block must have been entered."""
        if isinstance(batch, Inputs):
            placed = batch.map(
                lambda x: x.to(self._device, self._dtype if x.is_floating_point() else x.dtype)
            )
            result = placed.call(self.model)
            return result if isinstance(result, Tensor) else result[0]
        tokens, mask = batch.tokens.to(self._device), batch.mask.to(self._device)
        named = {self.model.main_input_name: tokens, "attention_mask": mask}
        if getattr(self._network.config, "is_encoder_decoder", False):
            named.update(decoder_input_ids=tokens, decoder_attention_mask=mask)
        result = self.model(**named)
        return result if isinstance(result, Tensor) else result[0]

    def lockstep(
        self,
        batches: Sequence[Any],
        done: Callable[[int, Any, Tensor], None],
        layers: Dict[str, bool] = {},
    ) -> Lockstep:
        """Returns runs that wait at each block and at `layers`.

        Args:
            done: is called with the outputs of each batch.
        """
        return Lockstep(
            self.model,
            batches,
            lambda number, batch: done(number, batch, self.run(batch)),
            self.blocks,
            layers,
        )

    def measure(self, batches: Sequence[Batch], into: Any) -> float:
        """Returns the value of `into`, one of the measures of `texts`, once it has all outputs."""
        with evaluating(self.model), self.lockstep(batches, into.add) as runs:
            for block in iter(runs.advance, None):
                self.enter(str(block))
        return float(into.value())

    def _load(self, wanted: Callable[[str], bool]) -> None:
        """Reads the tensors whose names in the model are wanted."""
        stored = [name for name, target in self._targets.items() if wanted(target)]
        for name, tensor in self._network.loaded({x: self._read(x) for x in stored}).items():
            tensor = self._replaced.get(name, tensor)
            dtype = self._dtype if tensor.is_floating_point() else tensor.dtype
            self._put(name, tensor.to(self._device, dtype))
        self._kept = {  # parameters that have a place outside of blocks
            id(tensor)
            for part in self._beyond
            for tensor in part._parameters.values()
            if tensor is not None
        }

    def _put(self, name: str, tensor: Tensor) -> None:
        place = self._names.get(name)
        if place is None:  # the class does not have it
            return
        if place == -1:
            path, _, leaf = name.rpartition(".")
            self.model.get_submodule(path)._buffers[leaf] = tensor
            return
        parameter = nn.Parameter(tensor, requires_grad=False)
        for part, leaf in self._places[place]:
            part._parameters[leaf] = parameter


def _trim() -> None:
    """Returns freed memory to the system, which the C library would keep for matrices of other sizes."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _inside(name: str, block: str) -> bool:
    return name == block or name.startswith(block + ".")


def _blocks_of(model: nn.Module) -> List[str]:
    found: List[str] = []
    for path, part in model.named_modules():
        inside = any(_inside(path, block) for block in found)
        nested = any(isinstance(one, nn.ModuleList) for one in part.children())
        if isinstance(part, nn.ModuleList) and len(part) > 1 and not inside and not nested:
            found += [join(path, name) for name, _ in part.named_children()]
    return found


def _reader(weights: Path) -> Callable[[str], Tensor]:
    """Returns a function that reads one stored tensor."""
    if ".safetensors" not in weights.suffixes:
        tensors = load(weights)
        return tensors.__getitem__
    import json

    from safetensors import safe_open

    if weights.suffix == ".json":
        files = json.loads(weights.read_text())["weight_map"]
    else:
        with safe_open(weights, "pt") as file:
            files = dict.fromkeys(file.keys(), weights.name)

    def read(name: str) -> Tensor:
        with safe_open(weights.parent / files[name], "pt") as file:
            tensor: Tensor = file.get_tensor(name)
        return tensor

    return read
