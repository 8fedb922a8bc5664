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
from parsimony import engine, matching, operators
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


def pruned(
    model: nn.Module, ratio: float = 0.5, **settings: Any
) -> Tuple[nn.Module, parsimony.Plan]:
    small = copy.deepcopy(model)
    kind = next(small.parameters()).dtype
    batches = [(x.to(kind), y) for x, y in data()]
    example = torch.randn(2, 3, 6, 6, dtype=kind)
    return small, parsimony.prune(small, example, ratio=ratio, data=batches, samples=48, **settings)


def settled(model: nn.Module) -> nn.Module:
    """Whose running statistics are those of the data."""
    with torch.no_grad():
        for x, _ in 20 * data():
            model.train()(x)
    return model.eval()


@pytest.mark.parametrize("recover", ["bias", "bn", "least-squares"])
def test_recovery_is_the_commands(recover: str, request: pytest.FixtureRequest) -> None:
    model = settled(networks.Residual())
    ratio = 0.25 if recover == "bn" else 0.5  # more would be worse with new statistics
    expected, plan = pruned(model, ratio, recover=recover, engine="auto")
    request.getfixturevalue("no_files")
    found, own = pruned(model, ratio, recover=recover)
    assert own.cuts() == plan.cuts() and own.values.keys() == plan.values.keys() != set()
    for name, tensor in found.state_dict().items():
        torch.testing.assert_close(tensor, expected.state_dict()[name], rtol=1e-5, atol=1e-5)


def test_recovery_in_double_precision(no_files: None) -> None:
    model = networks.Residual().double().eval()
    small, plan = pruned(model, recover="least-squares")
    assert plan.values and all(value.dtype == torch.float64 for value in plan.values.values())
    assert small.wide.out_channels == 8


@pytest.mark.parametrize("criterion", ["apoz", "mean_activation", "wanda", "hrank", "obs"])
def test_activations_are_the_commands(criterion: str, request: pytest.FixtureRequest) -> None:
    model = networks.Residual().eval()
    _, expected = pruned(model, criterion=criterion, engine="auto")
    request.getfixturevalue("no_files")
    _, found = pruned(model, criterion=criterion)
    assert found.cuts() == expected.cuts()


def kept_of(scores: Tensor) -> Tuple[int, ...]:
    return tuple(sorted(scores.topk(len(scores) // 2).indices.tolist()))


def test_experts_by_what_they_add(no_files: None) -> None:
    model = networks.Mixture().eval()
    inputs = torch.randn(48, 5, generator=torch.Generator().manual_seed(1))
    gates, chosen = model.router(inputs).softmax(-1).topk(2)
    norms = torch.einsum("ti,eio->teo", inputs, model.experts).norm(dim=-1).gather(1, chosen)
    added = [(gates * norms)[chosen == e] for e in range(6)]
    scores = torch.stack([each.mean() if len(each) else torch.tensor(0.0) for each in added])
    settings = dict(granularity="expert", criterion="reap", ratio=0.5, samples=48)
    plan = parsimony.prune(model, inputs[:8], data=inputs.split(16), **settings)
    assert plan.cuts()["experts"][0].keep == kept_of(scores)
    assert model.router.out_features == 3


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


def _difference(small: nn.Module, model: nn.Module) -> float:
    x = torch.cat([batch[0] for batch in data()]).to(next(model.parameters()).dtype)
    with torch.no_grad():
        return float((small(x) - model(x)).norm() / model(x).norm())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_outputs_are_matched(dtype: torch.dtype, no_files: None) -> None:
    model = networks.Residual().to(dtype).eval()
    as_cut, _ = pruned(model, criterion="wanda")
    settings = {"recover": "outputs", "recover_lr": 0.01}
    small, plan = pruned(model, criterion="wanda", **settings)
    assert _difference(small, model) < 0.8 * _difference(as_cut, model)
    assert any("outputs matched" in note for note in plan.notes)
    assert all(parameter.requires_grad for parameter in small.parameters())
    again = parsimony.apply(copy.deepcopy(model), plan)
    for name, tensor in small.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name])


def test_outputs_are_matched_after_least_squares(no_files: None, tmp_path: Any) -> None:
    model = networks.Residual().eval()
    small, plan = pruned(model, recover=["least-squares", "outputs"], recover_epochs=3)
    solved, _ = pruned(model, recover="least-squares")
    assert _difference(small, model) <= 1.05 * _difference(solved, model)
    plan.save(tmp_path / "plan.json")
    again = parsimony.apply(copy.deepcopy(model), tmp_path / "plan.json")
    assert _difference(again, small) == 0


@pytest.mark.parametrize("where", ["_loss", "updates_of"])
def test_a_fault_of_matching_changes_nothing(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = networks.Residual().eval()
    model(data()[0][0]).sum().backward()
    tensors = dict(model.state_dict())
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    owner = matching.Matching if where == "_loss" else matching
    own, calls = getattr(owner, where), [0]

    def fails(*arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] > (8 if where == "_loss" else 1):  # after some steps
            raise KeyboardInterrupt
        return own(*arguments)

    monkeypatch.setattr(owner, where, fails)
    with pytest.raises(KeyboardInterrupt):
        parsimony.prune(model, data()[0][0], ratio=0.5, data=data(), recover="outputs")
    for name, tensor in model.state_dict().items():
        assert tensor.data_ptr() == tensors[name].data_ptr() and torch.equal(tensor, before[name])
    for name, parameter in model.named_parameters():
        assert parameter.grad is gradients[name]


@pytest.mark.parametrize("criterion", ["2:4", "level"])
def test_matching_keeps_the_zeros_of_single_elements(criterion: str) -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8)).eval()
    batches = [(torch.randn(8, 16), torch.zeros(8).long()) for _ in range(6)]
    plan = parsimony.prune(
        model, batches[0][0], ratio=0.5, criterion=criterion, data=batches, recover="outputs"
    )
    assert any("training" in entry["reason"] for entry in plan.data["updates"])
    for layer in (model[0], model[2]):
        assert int((layer.weight == 0).sum()) == layer.weight.numel() // 2


def test_matching_from_a_config_keeps_gradients_and_the_users_tensors(no_files: None) -> None:
    model = networks.Residual().eval()
    model(data()[0][0]).sum().backward()
    gradient, held = model.fc.bias.grad, model.state_dict()["fc.bias"]
    before = held.clone()
    config = {"config_list": [{"op_types": ["default"], "sparse_ratio": 0.5}], "recover": "outputs"}
    plan = parsimony.prune(
        model, data()[0][0], config_list=config, data=data(), samples=48, recover_epochs=2
    )
    assert "fc.bias" in plan.values
    assert model.fc.bias.grad is gradient and torch.equal(held, before)


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last, self.hidden = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6)
        self.last.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.hidden(self.first(x).relu()).relu())


def test_tied_weights_have_one_value(tmp_path: Any) -> None:
    model = Tied().eval()
    small = copy.deepcopy(model)
    x = torch.randn(16, 6)
    settings = {"recover": ["least-squares", "outputs"], "recover_lr": 0.01, "recover_epochs": 5}
    plan = parsimony.prune(small, x[:4], ratio=0.3, data=[x[:8], x[8:]], **settings)
    assert small.first.weight is small.last.weight
    plan.save(tmp_path / "plan.json")
    again = parsimony.apply(copy.deepcopy(model), tmp_path / "plan.json")
    for name, tensor in small.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name])


class Ends(nn.Module):
    """Likelihoods of classes and of an event, and an integer."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.classes, self.event = nn.Linear(6, 16), nn.Linear(16, 4), nn.Linear(16, 1)

    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        y = self.hidden(x).relu()
        scores = self.classes(y)
        return {
            "classes": scores.softmax(1),
            "best": scores.argmax(1),
            "event": self.event(y).sigmoid(),
        }


def test_each_output_has_its_distance() -> None:
    model = Ends().eval()
    x = torch.randn(4, 6)
    program = engine.Program(model, Inputs.of(x))
    kinds = matching._kinds(program, 3)
    assert kinds == [{"softmax": 1}, {}, {"sigmoid": 0}]
    a, b = torch.rand(3, 4).softmax(1), torch.rand(3, 4).softmax(1)
    distance = matching._distance_of(kinds[0], [a])
    assert distance is not None and matching._distance_of(kinds[1], [a.argmax(1)]) is None
    assert torch.allclose(distance(a, b), F.kl_div(b.log(), a, reduction="batchmean"))
    events = matching._distance_of(kinds[2], [a])
    assert events is not None and float(events(a, a)) == 0
    assert torch.allclose(events(a, a.mean().expand_as(a)), torch.ones(()))
    numbers = matching._distance_of({}, [a])
    assert numbers is not None  # the share of the variance, where it is small
    assert torch.allclose(numbers(a, a + 0.01), 0.01**2 / a.var(correction=0), rtol=1e-4)
    constant = matching._distance_of({}, [torch.ones(4)])
    assert (
        constant is not None
        and abs(float(constant(torch.ones(4), torch.ones(4) + 1e-3)) - 1e-6) < 1e-8
    )
    parsimony.prune(model, x, ratio=0.5, data=[x, x + 1], recover="outputs", recover_epochs=2)


def test_sensitivity_runs_in_torch(no_files: None) -> None:
    model = networks.Residual().eval()
    example = torch.randn(8, 3, 6, 6)
    found = parsimony.sensitivity(model, example, data=data(), ratios=[0.5, 0.9], samples=48)
    with torch.no_grad():
        hits = torch.cat([model(x).argmax(1) == y for x, y in data()])
    assert found.curves["samples"] == 48
    assert found.curves["accuracy"] == pytest.approx(float(hits.double().mean()))
    errors = [error for group in found.curves["groups"] for error in group["errors"]]
    assert any(errors) and all(-1 <= error <= 1 for error in errors)
    unlabelled = [x for x, _ in data()]
    found = parsimony.sensitivity(model, example, data=unlabelled, ratios=[0.5], samples=4)
    assert found.curves["samples"] == 1  # without labels runs count, each of eight
    assert "accuracy" not in found.curves and found.curves["groups"]
