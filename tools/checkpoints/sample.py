"""What a checkpoint of a package is to check.py, and small networks to make some of."""

import pathlib
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import torch
from parsimony.plan import Cuts
from torch import Tensor, nn

State = Dict[str, Tensor]
Maker = Callable[[pathlib.Path], "Sample"]


def loaded(module: nn.Module, state: State) -> None:
    module.load_state_dict(state, strict=True)


def same_names(name: str, planned: Mapping[str, Cuts]) -> Cuts:
    return planned.get(name, {})


@dataclass
class Sample:
    """A checkpoint, its network, and how its package reads it.

    Attributes:
        exported: the network that is pruned; `part` finds it in a module of `module`.
        module: makes the module that training continues with, whole.
        states: the copies of the network in a checkpoint; training continues with the first.
        load: gives a module such a state.
        optimizers: makes the optimizers of a module, and gives them their states.
        cuts: those of a tensor of the module or of a state, by those of the network's; none where the
            network's names do not tell.
        resize: sets sizes that small modules keep beside their tensors.
    """

    package: str
    layout: str
    checkpoint: pathlib.Path
    exported: nn.Module
    example: Tuple[Tensor, ...]
    module: Callable[[], nn.Module]
    states: Callable[[pathlib.Path], List[State]]
    optimizers: Callable[[nn.Module, pathlib.Path], List[torch.optim.Optimizer]]
    loss: Callable[[nn.Module], Tensor]
    part: Callable[[nn.Module], nn.Module] = lambda module: module
    load: Callable[[nn.Module, State], None] = loaded
    cuts: Optional[Callable[[str, Mapping[str, Cuts]], Cuts]] = same_names
    resize: Callable[[nn.Module], None] = lambda module: None
    onnx: bool = False


def read(path: pathlib.Path) -> Any:
    return torch.load(path, map_location="cpu", weights_only=False)


def vary(module: nn.Module) -> nn.Module:
    """Gives all parameters and statistics values of their own, the same in every run."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for _, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if tensor.is_floating_point() and tensor.ndim > 0:
                tensor.add_(torch.rand(tensor.shape, generator=generator) * 0.1)
    return module


def like(module: nn.Module, x: Tensor) -> Tensor:
    """In the element type of the module."""
    return x.to(next(module.parameters()).dtype) if x.is_floating_point() else x


def train(module: nn.Module, optimizers: Sequence[torch.optim.Optimizer], loss: Callable, steps: int = 2) -> None:
    module.train()
    for _ in range(steps):
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss(module).backward()
        for optimizer in optimizers:
            optimizer.step()


def images(count: int = 4, size: int = 16) -> Tensor:
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(1))


def labels(count: int = 4) -> Tensor:
    return torch.arange(count) % 5


def classified(x: Tensor) -> Callable[[nn.Module], Tensor]:
    """The loss of a classifier of `x`."""
    return lambda module: nn.functional.cross_entropy(module(like(module, x)), labels(len(x)))


def convolutions() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 12, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 5))  # fmt: skip


def decay_groups(module: nn.Module) -> List[Dict[str, Any]]:
    """Matrices decay, vectors do not, and what is frozen is left out."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    return [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.1},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
