"""Optimizers, plans in files, scores from data, and the command's other tasks."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

import networks
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import parsimony
from parsimony import scores, tensor_file
from parsimony.editing import cut_tensor
from parsimony.inputs import Inputs
from parsimony.program import Program


@pytest.fixture(scope="module")
def halved() -> parsimony.Plan:
    """A plan for `perceptron()`."""
    torch.manual_seed(0)
    return parsimony.prune(networks.perceptron(), torch.randn(2, 4), ratio=0.5)


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, 0.01),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01),
    "amsgrad": lambda p: torch.optim.Adam(p, 0.01, amsgrad=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.9, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, 0.01),
}


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().sum().backward()
    optimizer.step()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_states_keep_the_elements_of_the_kept_weights(name: str, halved: parsimony.Plan) -> None:
    model = networks.perceptron()
    optimizer = OPTIMIZERS[name](model.parameters())
    step(model, optimizer)
    weight = model[2].weight
    before = {k: v.clone() for k, v in optimizer.state[weight].items() if torch.is_tensor(v)}
    parsimony.apply(model, halved)
    parsimony.carry_over(optimizer, halved, model)
    cuts = halved.cuts()["2.weight"]
    rows, columns = (torch.tensor(cuts[axis].keep) for axis in (0, 1))
    matrices = {k for k, v in before.items() if v.numel() > 1}
    assert matrices
    for key in matrices:
        assert torch.equal(optimizer.state[weight][key], before[key][rows][:, columns])
    parsimony.carry_over(optimizer, halved, model)  # a second time changes nothing
    assert optimizer.state[weight][matrices.pop()].shape == (5, 6)
    step(model, optimizer)


def test_factored_states(halved: parsimony.Plan) -> None:
    model = networks.perceptron()
    weight = model[2].weight
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    rows, columns = torch.arange(10.0), torch.arange(12.0)
    optimizer.state[weight] = {
        "exp_avg_sq_row": rows,
        "exp_avg_sq_col": columns,
        "row_var": rows[:, None],
        "col_var": columns[None],
        "step": 3,
    }
    parsimony.apply(model, halved)
    parsimony.carry_over(optimizer, halved, model)
    state, cuts = optimizer.state[weight], halved.cuts()["2.weight"]
    assert state["exp_avg_sq_row"].tolist() == list(cuts[0].keep)
    assert state["exp_avg_sq_col"].tolist() == list(cuts[1].keep)
    assert state["row_var"].shape == (5, 1) and state["col_var"].shape == (1, 6)
    assert state["step"] == 3


def test_states_that_cannot_follow(halved: parsimony.Plan) -> None:
    model = networks.perceptron()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    optimizer.state[model[0].weight] = {"odd": torch.zeros(7, 7)}
    with pytest.raises(parsimony.ConfigError, match="pass model="):
        parsimony.carry_over(optimizer, parsimony.Plan(halved.data))
    parsimony.apply(model, halved)
    with pytest.raises(parsimony.ConfigError, match=r"'odd' has shape \(7, 7\)"):
        parsimony.carry_over(optimizer, halved, model)
    with pytest.raises(parsimony.UnsupportedError, match="LBFGS"):
        parsimony.carry_over(torch.optim.LBFGS(model.parameters()), halved, model)


def normed(norm: Any) -> nn.Sequential:
    return nn.Sequential(
        norm(nn.Conv1d(4, 16, 3)),
        nn.ReLU(),
        norm(nn.Conv1d(16, 8, 3)),
        nn.ReLU(),
        nn.Conv1d(8, 2, 1),
    )


class Adapted(nn.Module):
    """A frozen layer with factors of low rank beside it, a mask of its own, and a tied last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.hidden = nn.Embedding(9, 8), nn.Linear(8, 12).requires_grad_(False)
        self.down, self.up = nn.Linear(8, 2, bias=False), nn.Linear(2, 12, bias=False)
        self.back, self.head = nn.Linear(12, 8), nn.Linear(8, 9, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("causal", torch.ones(6, 6).tril())

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        mixed = self.causal[: tokens.shape[1], : tokens.shape[1]] @ x
        return self.head(torch.tanh(self.back(F.relu(self.hidden(mixed) + self.up(self.down(x))))))


def square() -> nn.Sequential:
    layers = [nn.Linear(16, 16, bias=False) for _ in range(3)]
    return nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])


def adam(*groups: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam([{"params": list(group)} for group in groups], 0.01)


TRAINED: Dict[str, Any] = {
    "reversed": (square, lambda m: adam(reversed(list(m.parameters()))), (4, 16)),
    "groups": (square, lambda m: adam(m[4].parameters(), [m[2].weight, m[0].weight]), (4, 16)),
    "two": (square, lambda m: adam(m[2:].parameters()), (4, 16)),
    "frozen": (Adapted, lambda m: adam(p for p in m.parameters() if p.requires_grad), None),
    "weight_norm": (
        lambda: normed(nn.utils.weight_norm),
        lambda m: adam(m.parameters()),
        (2, 4, 9),
    ),
}
if hasattr(nn.utils.parametrizations, "weight_norm"):
    TRAINED["parametrized"] = (
        lambda: normed(nn.utils.parametrizations.weight_norm),
        lambda m: adam(m.parameters()),
        (2, 4, 9),
    )


@pytest.mark.parametrize("name", TRAINED)
def test_the_first_step_is_that_of_the_masked_original(name: str) -> None:
    make, optimizer_of, shape = TRAINED[name]
    inputs = torch.randn(shape) if shape else torch.randint(0, 9, (2, 5))

    def one_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        model(inputs).square().sum().backward()
        optimizer.step()

    model, dense = make().double(), make().double()
    inputs = inputs.double() if shape else inputs
    optimizer = optimizer_of(model)
    one_step(model, optimizer)
    dense.load_state_dict(model.state_dict())
    dense_optimizer = optimizer_of(dense)
    dense_optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    plan = parsimony.prune(model, inputs, ratio=0.5)
    parsimony.carry_over(optimizer, plan)
    tensors = {**dict(dense.named_parameters()), **dict(dense.named_buffers())}
    slices = [part for group in plan.groups for part in group["slices"]]
    divisors = {(part["tensor"], part["axis"]) for part in slices if part["role"] == "with"}
    with torch.no_grad():
        for part in slices:
            if (part["tensor"], part["axis"]) not in divisors:
                gone = sorted(set(range(part["size"])) - set(part["keep"]))
                tensors[part["tensor"]].index_fill_(part["axis"], torch.tensor(gone), 0)
    one_step(model, optimizer)
    one_step(dense, dense_optimizer)
    cuts = plan.cuts()
    assert cuts
    for parameter_name, parameter in model.named_parameters():
        expected = cut_tensor(tensors[parameter_name], cuts.get(parameter_name, {}))
        torch.testing.assert_close(parameter.detach(), expected, atol=1e-9, rtol=0)


@pytest.mark.parametrize("inside", [False, True])
def test_averages_are_cut_with_the_module(inside: bool) -> None:
    model = networks.Transformer()
    average: nn.Module = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in average.parameters():
            parameter.mul_(0.5)
    dense = copy.deepcopy(average)
    average = torch.optim.swa_utils.AveragedModel(average) if inside else average
    plan = parsimony.prune(model, torch.randint(0, 20, (2, 6)), ratio=0.5)
    for _ in range(2):  # a second time changes nothing
        parsimony.carry_over(average, plan)
    tensors = dict((average.module if inside else average).named_parameters())
    for name, axes in plan.cuts().items():
        if "in_proj" not in name:  # whose queries follow the root of the head's size
            assert torch.equal(tensors[name], cut_tensor(dense.get_parameter(name), axes))
    tokens = torch.randint(0, 20, (2, 6))
    assert average(tokens).shape == model(tokens).shape


def test_copies_that_cannot_follow(halved: parsimony.Plan) -> None:
    with pytest.raises(parsimony.ConfigError, match="the copy has no tensor '0.weight'"):
        parsimony.carry_over(networks.Residual(), halved)
    model = networks.Residual()
    average = copy.deepcopy(model)
    x = torch.randn(1, 3, 6, 6)
    plan = parsimony.prune(model, x, ratio=0.5, recover="bias", data=data(), samples=32)
    with pytest.raises(parsimony.UnsupportedError, match="copy the module again"):
        parsimony.carry_over(average, plan)


def test_states_in_lists_and_dictionaries(halved: parsimony.Plan) -> None:
    model = networks.perceptron()
    weight = model[2].weight
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    whole = torch.arange(120.0).view(10, 12)
    optimizer.state[weight] = {
        "history": [whole, whole + 1],
        "factors": {"row": torch.arange(10.0)},
    }
    parsimony.apply(model, halved)
    parsimony.carry_over(optimizer, halved, model)
    state, cuts = optimizer.state[weight], halved.cuts()["2.weight"]
    assert torch.equal(state["history"][1], cut_tensor(whole + 1, cuts))
    assert state["factors"]["row"].tolist() == list(cuts[0].keep)


def test_optimizers_and_modules_that_do_not_belong_together(halved: parsimony.Plan) -> None:
    model = networks.perceptron()
    optimizer = OPTIMIZERS["adam"](model.parameters())
    step(model, optimizer)
    with pytest.raises(parsimony.ConfigError, match="'0.weight' of shape .* has not been cut"):
        parsimony.carry_over(optimizer, halved, model)
    with pytest.raises(parsimony.ConfigError, match="no tensor '0.weight'"):
        parsimony.carry_over(optimizer, halved, networks.Residual())
    parsimony.apply(model, halved)
    other = OPTIMIZERS["adam"](networks.perceptron().parameters())
    with pytest.raises(parsimony.ConfigError, match="no parameter of the optimizer is one"):
        parsimony.carry_over(other, halved, model)
    parsimony.carry_over(optimizer, halved, nn.DataParallel(model))
    step(model, optimizer)


def test_a_plan_without_cuts_claims_nothing() -> None:
    shown = repr(parsimony.prune(nn.Sequential(nn.Linear(8, 8)), torch.randn(2, 8), ratio=0.5))
    assert "nothing was pruned" in shown and "groups" not in shown and "Proven" not in shown


def test_plans_survive_files(tmp_path: Path) -> None:
    make = networks.Transformer
    model, inputs = make(), torch.randint(0, 20, (2, 6))
    plan = parsimony.prune(model, inputs, ratio=0.5)
    plan.save(tmp_path / "plan.json")
    torch.save(model.state_dict(), tmp_path / "small.pth")
    loaded = parsimony.Plan.load(tmp_path / "plan.json")
    assert loaded.data == plan.data and loaded.attributes == plan.attributes
    assert repr(loaded).split("Proven")[0].strip() == repr(plan).split("Proven")[0].strip()
    fresh = parsimony.apply(make(), tmp_path / "plan.json")
    fresh.load_state_dict(torch.load(tmp_path / "small.pth"))
    with torch.no_grad():
        assert torch.equal(fresh.eval()(inputs), model.eval()(inputs))


def test_values_of_plans_survive_files(tmp_path: Path) -> None:
    model = networks.Residual()
    plan = parsimony.prune(model, torch.randn(1, 3, 6, 6), ratio=0.5, constants="exact")
    assert plan.needs_values
    plan.save(tmp_path / "p.json")
    loaded = parsimony.Plan.load(tmp_path / "p.json")
    assert loaded.values.keys() == plan.values.keys()
    assert all(torch.equal(loaded.values[name], plan.values[name]) for name in plan.values)
    (tmp_path / "p.json.safetensors").unlink()
    with pytest.raises(parsimony.FileError, match="values of the plan are missing"):
        parsimony.Plan.load(tmp_path / "p.json")


def test_files_of_tensors(tmp_path: Path) -> None:
    tensors = {
        "half": torch.randn(2, 3).half(),
        "brain": torch.randn(4).bfloat16(),
        "none": torch.zeros(0, 3),
        "flag": torch.tensor([True, False]),
        "one": torch.tensor(3),
    }
    tensor_file.write_tensors(tmp_path / "t", tensors)
    found = tensor_file.read_tensors(tmp_path / "t")
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor) and found[name].dtype == tensor.dtype
    (tmp_path / "t").write_bytes(b"nothing of the kind")
    with pytest.raises(parsimony.FileError, match="not a file of named tensors"):
        tensor_file.read_tensors(tmp_path / "t")


def data(count: int = 4) -> Any:
    return [(torch.randn(8, 3, 6, 6), torch.randint(0, 5, (8,))) for _ in range(count)]


def test_scores_decide() -> None:
    model = networks.Residual()
    expected = torch.zeros(16)
    expected[[1, 4, 9]] = 1
    parts = {"wide.weight": expected, "depthwise.weight": expected}
    plan = parsimony.prune(
        model,
        torch.randn(1, 3, 6, 6),
        scores=parts,
        config_list=[{"op_names": ["wide", "depthwise"], "sparse_ratio": 13 / 16}],
    )
    assert plan.cuts()["wide.weight"][0].keep == (1, 4, 9)


def test_a_loss_of_the_users() -> None:
    model = networks.Residual()
    batches = [{"x": x, "labels": y} for x, y in data()]
    calls = []

    def loss(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        calls.append(labels.shape)
        return F.cross_entropy(outputs, labels)

    plan = parsimony.prune(
        model,
        torch.randn(2, 3, 6, 6),
        ratio=0.5,
        criterion="taylor",
        data=batches,
        loss=loss,
        samples=16,
    )
    assert calls == [(8,), (8,)] and model.wide.out_channels == 8
    assert all(parameter.grad is None for parameter in model.parameters())
    assert plan.proof is not None


@pytest.mark.parametrize("criterion", ["apoz", "fisher"])
def test_criteria_of_the_command_that_read_data(criterion: str) -> None:
    model = networks.Residual()
    example = torch.randn(2, 3, 6, 6)
    parsimony.prune(model, example, ratio=0.5, criterion=criterion, data=data(), samples=16)
    assert model.wide.out_channels == 8


def test_recovery_changes_values_behind_the_proof() -> None:
    model = networks.Residual()
    plan = parsimony.prune(
        model, torch.randn(1, 3, 6, 6), ratio=0.5, recover="least-squares", data=data(), samples=32
    )
    assert plan.values and plan.proof is not None
    for name, value in plan.values.items():
        assert torch.equal(model.state_dict()[name], value)


def test_stand_ins_have_the_norms_of_their_weights() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.ConvTranspose2d(6, 4, 3), nn.Conv2d(4, 4, 1, groups=2)
    )
    program = Program(model, Inputs.of(torch.randn(1, 3, 8, 8)))
    assert program.producers() == {"0.weight": 0, "1.weight": 1, "2.weight": 0}
    norms = {"l1": 1, "l2": 2, "linf": float("inf")}
    for criterion, order in norms.items():
        for name, stand_in in scores.of_weights(program, criterion).items():
            weight, axis = model.get_parameter(name).detach(), program.producers()[name]
            for one, other in zip(weight.unbind(axis), stand_in.unbind(axis)):
                assert torch.isclose(one.norm(order), other.norm(order), rtol=1e-5)


def test_random_criteria_take_the_seed() -> None:
    inputs = torch.randn(2, 4)
    kept = [
        parsimony.prune(networks.perceptron(), inputs, ratio=0.5, criterion="random", seed=seed)
        for seed in (1, 2)
    ]
    assert kept[0].cuts() != kept[1].cuts()


def test_explanations() -> None:
    model, inputs = networks.Residual(), torch.randn(2, 3, 6, 6)
    found = parsimony.explain(model, inputs)
    members = {part["tensor"] for group in found["groups"] for part in group["members"]}
    assert {"wide.weight", "depthwise.weight", "narrow.weight"} <= members
    assert model.wide.out_channels == 16


def test_sensitivity_proposes_a_config_list() -> None:
    model, inputs = networks.Residual(), torch.randn(2, 3, 6, 6)
    found = parsimony.sensitivity(model, inputs, ratio=0.3, ratios=[0.25, 0.5], samples=4)
    assert found.curves["groups"] and found.config_list is not None
    plan = parsimony.prune(model, inputs, config_list=found.config_list)
    assert 0 < plan.parameters[1] < plan.parameters[0]


def test_onnx_files(tmp_path: Path, root: Path) -> None:
    source = root / "examples" / "models" / "mnist_cnn.onnx"
    plan = parsimony.prune_onnx(source, tmp_path / "small.onnx", ratio=0.5)
    assert plan.parameters == (36986, 9570)
    assert (tmp_path / "small.onnx").stat().st_size < source.stat().st_size / 3


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "parsimony", "--version"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(parsimony.__file__).parent.parent)},
    )
    assert done.returncode == 0 and done.stdout.strip()


def test_progress_is_shown_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    from parsimony.progress import Steps

    with Steps(True, "trace", "plan") as one:
        one("plan")
    assert "plan" in capsys.readouterr().err
    with Steps(None, "trace") as quiet:
        quiet("trace")
    assert capsys.readouterr().err == ""


def test_the_config_that_the_command_gets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from parsimony.request import config_of

    entries = [{"op_types": ["Linear"], "sparsity": 0.3}]
    (tmp_path / "c.json").write_text(json.dumps(entries))
    expected: Dict[str, Any] = {"config_list": entries, "criterion": "l2"}
    for given in (entries, {"config_list": entries}, tmp_path / "c.json"):
        assert config_of(given, {"criterion": "l2"}) == expected
    assert config_of(None, {"budget": "macs=2e9"})["budget"] == {"macs": 2e9}
    assert config_of(None, {"ratio": 0.5, "budget": "params"})["budget"] == "params"
