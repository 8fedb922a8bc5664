"""What `forward` does with its arguments, and modules that have been trained already."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import parsimony
from parsimony.tree import map_tensors, tensors_in


class Changing(nn.Module):
    """Changes its arguments in place, wherever the tensor stands in them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 3)

    def run(self, x: Tensor) -> Tensor:
        x.add_(1)
        return self.last(F.relu(self.first(x)))

    def forward(self, x: Tensor) -> Tensor:
        return self.run(x)


class Nested(Changing):
    """Takes tensors out of what it is given, too."""

    def forward(self, batch: Dict[str, Any], more: List[Tensor]) -> Tensor:  # type: ignore[override]
        more[0].mul_(0.5)
        return self.run(batch.pop("inner")["x"]) + more.pop().sum()


class Twice(Changing):
    """Its two arguments may be one tensor."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return self.run(x) + y.sum()


def copied(value: Any) -> Any:
    return map_tensors(value, Tensor.clone)


@pytest.mark.parametrize(
    "model, inputs",
    [
        (Changing(), torch.rand(2, 4)),
        (Changing(), {"x": torch.rand(2, 4)}),
        (Changing(), torch.rand(4, 4)[::2]),
        (Changing(), torch.rand(4, 2).t()),
        (Nested(), ({"inner": {"x": torch.rand(2, 4)}}, [torch.rand(2, 4)])),
    ],
    ids=["tensor", "named", "view", "transposed", "nested"],
)
def test_forward_may_change_its_inputs(model: nn.Module, inputs: Any) -> None:
    before = copied(inputs)
    plan = parsimony.prune(model, inputs, ratio=0.5)
    assert model.first.out_features == 4 and plan.proof is not None
    for now, was in zip(tensors_in(inputs), tensors_in(before)):
        assert torch.equal(now, was)


def test_one_tensor_for_two_arguments() -> None:
    model, x = Twice(), torch.rand(2, 4)
    plan = parsimony.prune(model, (x, x), ratio=0.5)
    assert model.first.out_features == 4 and plan.proof is not None


def test_scores_from_batches_leave_them_alone() -> None:
    model, batch = Changing(), torch.rand(6, 4)
    before = batch.clone()
    parsimony.prune(
        model,
        torch.rand(2, 4),
        ratio=0.5,
        criterion="taylor",
        data=[(batch, torch.zeros(6, dtype=torch.int64))] * 2,
        loss=F.cross_entropy,
    )
    assert torch.equal(batch, before) and model.first.out_features == 4


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float64])
def test_gradients_are_cut_in_any_type(kind: torch.dtype) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).to(kind)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    gradient = model[0].weight.grad.clone()
    inputs = torch.rand(2, 4).to(kind)
    if kind == torch.float16 and not hasattr(F, "scaled_dot_product_attention"):
        pytest.skip("older releases have no products of this type on the CPU")
    plan = parsimony.prune(model, inputs, ratio=0.5)
    kept = list(plan.cuts()["0.weight"][0].keep)
    assert torch.equal(model[0].weight.grad, gradient[kept])
    assert all(p.grad is not None and p.grad.dtype == kind for p in model.parameters())


def test_gradients_survive_a_failure_in_half_precision() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).bfloat16()
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    with pytest.raises(parsimony.Error):
        parsimony.prune(model, torch.rand(2, 4).bfloat16(), ratio=0.5, criterion="no such")
    for parameter, gradient in zip(model.parameters(), gradients):
        assert torch.equal(parameter.grad, gradient)
