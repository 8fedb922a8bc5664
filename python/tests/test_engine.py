"""Statistics, gradients and recovery in the user's torch, compared with the command's and by hand."""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Tuple

import networks
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import parsimony
from parsimony import engine, operators
from parsimony import scores as scoring
from parsimony.inputs import Inputs


def data(count: int = 6, size: int = 8) -> List[Tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.randn(size, 3, 6, 6, generator=generator), torch.arange(size) % 5)
        for _ in range(count)
    ]


@pytest.fixture
def no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """No data are written for the command."""

    def refused(*_: Any) -> None:
        raise AssertionError("data were written to a file")

    monkeypatch.setattr(engine, "calibration", refused)
    monkeypatch.setattr(scoring, "calibration", refused)


def pruned(model: nn.Module, **settings: Any) -> Tuple[nn.Module, parsimony.Plan]:
    small = copy.deepcopy(model)
    kind = next(small.parameters()).dtype
    batches = [(x.to(kind), y) for x, y in data()]
    example = torch.randn(2, 3, 6, 6, dtype=kind)
    return small, parsimony.prune(small, example, ratio=0.5, data=batches, samples=48, **settings)


@pytest.mark.parametrize("recover", ["bias", "bn", "least-squares"])
def test_recovery_is_the_commands(recover: str, request: pytest.FixtureRequest) -> None:
    model = networks.Residual().eval()
    expected, plan = pruned(model, recover=recover, engine="auto")
    request.getfixturevalue("no_files")
    found, own = pruned(model, recover=recover)
    assert own.cuts() == plan.cuts() and own.values.keys() == plan.values.keys() != set()
    for name, tensor in found.state_dict().items():
        torch.testing.assert_close(tensor, expected.state_dict()[name], rtol=1e-5, atol=1e-5)


def test_recovery_in_double_precision(no_files: None) -> None:
    model = networks.Residual().double().eval()
    small, plan = pruned(model, recover="least-squares")
    assert plan.values and all(value.dtype == torch.float64 for value in plan.values.values())
    assert small.wide.out_channels == 8


@pytest.mark.parametrize("criterion", ["apoz", "mean_activation", "wanda", "hrank"])
def test_activations_are_the_commands(criterion: str, request: pytest.FixtureRequest) -> None:
    model = networks.Residual().eval()
    _, expected = pruned(model, criterion=criterion, engine="auto")
    request.getfixturevalue("no_files")
    _, found = pruned(model, criterion=criterion)
    assert found.cuts() == expected.cuts()


def kept_of(scores: Tensor) -> Tuple[int, ...]:
    return tuple(sorted(scores.topk(len(scores) // 2).indices.tolist()))


def test_gradients_of_weights(no_files: None) -> None:
    model = networks.Residual().eval()
    produce = {"wide": (model.wide.weight, model.depthwise.weight)}
    sums: Dict[str, Tensor] = {}
    for x, y in data():
        weights = produce["wide"]
        gradients = torch.autograd.grad(F.cross_entropy(model(x), y), weights)
        change = sum((g * w.detach()).sum((1, 2, 3)) for g, w in zip(gradients, weights))
        for name, score in (("taylor", change.abs()), ("taylor_squared", change.square())):
            sums[name] = sums.get(name, 0) + score
    for criterion, scores in sums.items():
        _, plan = pruned(model, criterion=criterion, loss=F.cross_entropy)
        assert plan.cuts()["wide.weight"][0].keep == kept_of(scores)


def test_gradients_of_activations(no_files: None) -> None:
    model = networks.Residual().eval()
    squares = torch.zeros(16)
    for x, y in data():
        for i in range(len(x)):
            seen: List[Tensor] = []

            def note(_: Any, inputs: Any) -> Any:
                seen.append(inputs[0].view_as(inputs[0]))
                return (seen[-1],)

            hooks = [
                layer.register_forward_pre_hook(note) for layer in (model.depthwise, model.narrow)
            ]
            value = F.cross_entropy(model(x[i : i + 1]), y[i : i + 1])
            gradients = torch.autograd.grad(value, seen)
            for hook in hooks:
                hook.remove()
            reads = zip(seen[1:], gradients[1:])  # a depthwise layer only passes channels on
            squares += sum((a * g).sum((0, 2, 3)) for a, g in reads).square().detach()
    _, plan = pruned(model, criterion="fisher", loss=F.cross_entropy)
    assert plan.cuts()["wide.weight"][0].keep == kept_of(squares)


def test_a_loss_and_recovery_together(no_files: None) -> None:
    model = networks.Residual().eval()
    _, plan = pruned(model, criterion="obd", loss=F.cross_entropy, recover="least-squares")
    assert plan.values and plan.proof is not None


def test_labels_of_any_structure() -> None:
    labels = [{"boxes": [1, 2, 3], "classes": (torch.arange(3), torch.ones(3))}] * 2
    joined = engine._joined(labels, [3, 3])
    part = engine._part(joined, 2, 2, 6)
    assert part["boxes"] == [3, 1] and part["classes"][0].tolist() == [2, 0]
    with pytest.raises(parsimony.ConfigError, match="labels for each sample"):
        engine._joined([torch.tensor(1.0)] * 2, [3, 3])


def test_what_the_loss_raises_is_raised() -> None:
    model = networks.Residual().eval()
    before = copy.deepcopy(model.state_dict())

    def loss(*_: Any) -> Tensor:
        raise KeyError("mine")

    for criterion in ("taylor", "fisher"):
        with pytest.raises(KeyError, match="mine"):
            pruned(model, criterion=criterion, loss=loss)
    assert all(torch.equal(model.state_dict()[name], was) for name, was in before.items())


def test_operators_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = networks.Residual().eval()
    _, expected = pruned(model, criterion="apoz")
    monkeypatch.delitem(operators._OPERATORS, "PRelu")
    _, found = pruned(model, criterion="apoz")
    assert found.cuts() == expected.cuts()
    with pytest.raises(parsimony.UnsupportedError, match="PRelu"):
        pruned(model, criterion="fisher", loss=F.cross_entropy)


def test_inputs_of_another_shape() -> None:
    with pytest.raises(parsimony.ConfigError, match=r"has shape \[8, 3, 5, 6\]"):
        parsimony.prune(
            networks.Residual(),
            torch.randn(2, 3, 6, 6),
            ratio=0.5,
            criterion="apoz",
            data=[torch.randn(8, 3, 5, 6)],
        )


def test_a_loss_is_not_left_out() -> None:
    """Fine-tuning needs files of the data, from which the loss cannot be computed."""
    model = networks.Residual().eval()
    with pytest.raises(parsimony.UnsupportedError):
        pruned(model, criterion="taylor", loss=F.cross_entropy, recover="finetune")


def test_names_decide_and_not_their_order() -> None:
    a, b = torch.zeros(1, 2), torch.ones(1, 2)
    example = Inputs.of({"ids": a, "mask": b})
    assert list(Inputs.of({"mask": b, "ids": a}).named_like(example).kwargs) == ["ids", "mask"]
    with pytest.raises(parsimony.ConfigError, match="a batch has the inputs ids, the example"):
        Inputs.of({"ids": a}).named_like(example)
