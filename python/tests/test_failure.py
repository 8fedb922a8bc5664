"""What goes wrong leaves the module as it was, and says why."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Dict

import networks
import pytest
import torch
from torch import nn

import parsimony
from parsimony import pruning
from parsimony.layers import remaining_groups
from parsimony.plan import Cut


def state(model: nn.Module) -> Dict[str, Any]:
    sizes = {
        f"{path}.{name}": value
        for path, part in model.named_modules()
        for name, value in vars(part).items()
        if isinstance(value, (int, tuple, str))
    }
    return {**copy.deepcopy(model.state_dict()), **sizes}


def same(one: Dict[str, Any], other: Dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(
        torch.equal(one[k], other[k]) if isinstance(one[k], torch.Tensor) else one[k] == other[k]
        for k in one
    )


def test_a_difference_is_an_error_and_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    model = networks.Residual()
    model(torch.randn(2, 3, 6, 6)).sum().backward()
    before, gradient = state(model), model.stem.weight.grad
    real = pruning.replay

    def wrong(module: nn.Module, *args: Any, **kwargs: Any) -> None:
        real(module, *args, **kwargs)
        module.fc.bias.data = module.fc.bias.data + 1

    monkeypatch.setattr(pruning, "replay", wrong)
    with pytest.raises(parsimony.VerificationError, match=r"differs from .* by 1\.00e\+00"):
        parsimony.prune(model, torch.randn(2, 3, 6, 6), ratio=0.5)
    model.fc.bias.data = before["fc.bias"]  # what the test itself did wrong is not in the journal
    assert same(before, state(model)) and model.stem.weight.grad is gradient


def test_an_exception_on_the_way_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    model = networks.Transformer()
    before = state(model)

    def broken(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pruning, "compare", broken)
    with pytest.raises(KeyboardInterrupt):
        parsimony.prune(model, torch.randint(0, 20, (2, 6)), ratio=0.5)
    assert same(before, state(model)) and model.training


def test_texts_of_the_command() -> None:
    model, inputs = networks.Residual(), torch.randn(2, 3, 6, 6)
    with pytest.raises(parsimony.ConfigError) as caught:
        parsimony.prune(model, inputs, config_list=[{"op_types": ["Conv2D"], "sparse_ratio": 0.5}])
    assert str(caught.value) == (
        'config_list[0].op_types[0]: unknown op type "Conv2D". Did you mean "Conv2d"?'
    )
    assert caught.value.exit_code == 2
    with pytest.raises(parsimony.ConfigError, match="no_such_layer"):
        parsimony.prune(model, inputs, ratio=0.5, exclude=["no_such_layer"])


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({}, "no sparsity given"),
        ({"ratio": 0.5, "config_list": []}, "config_list= cannot be combined"),
        ({"ratio": 0.5, "masks": {}}, "masks= cannot be combined"),
        ({"ratio": 0.5, "loss": lambda *_: None}, "loss= needs data="),
        (
            {"ratio": 0.5, "loss": lambda *_: None, "data": [], "recover": "bias"},
            "loss= needs data=",
        ),
        (
            {
                "config_list": {"config_list": [{"sparse_ratio": 0.5}], "recover": ["bias"]},
                "scores": {"fc.weight": torch.ones(5)},
            },
            "recover= cannot be combined with scores=",
        ),
        ({"config_list": "no/such/file.json"}, "no/such/file.json"),
        ({"ratio": 0.5, "criterion": "apoz", "data": []}, "no batches"),
        ({"ratio": 0.5, "scores": {"fc.weigth": torch.ones(5)}}, "no parameter 'fc.weigth'"),
        (
            {"ratio": 0.5, "scores": {"fc.weight": torch.ones(4)}},
            "expected one number for each of its 5",
        ),
    ],
)
def test_arguments(arguments: Dict[str, Any], text: str) -> None:
    with pytest.raises(parsimony.ConfigError, match=text):
        parsimony.prune(networks.Residual(), torch.randn(2, 3, 6, 6), **arguments)


def test_a_module_that_does_not_run() -> None:
    with pytest.raises(parsimony.UnsupportedError, match="cannot export the module.*channels"):
        parsimony.prune(networks.Residual(), torch.randn(2, 4, 6, 6), ratio=0.5)


def test_a_script_module_is_no_module() -> None:
    script = torch.jit.script(nn.Linear(2, 2))
    with pytest.raises(parsimony.UnsupportedError, match="save it, and prune the file"):
        parsimony.prune(script, torch.randn(1, 2), ratio=0.5)


def test_a_plan_of_another_network() -> None:
    slices = [{"tensor": "0.weight", "axis": 0, "role": "out", "size": 7, "keep": [0, 1]}]
    group = {"id": "g0", "size": 7, "kept": 2, "mixes": False, "slices": slices}
    plan = parsimony.Plan({"groups": [group]})
    model = nn.Sequential(nn.Linear(4, 12))
    with pytest.raises(
        parsimony.ConfigError, match=r"expects 7 elements along axis 0, found .*12, 4"
    ):
        parsimony.apply(model, plan)
    assert model[0].weight.shape == (12, 4)


def test_layers_refuse_what_their_forward_cannot_do() -> None:
    def plan(keep: Any, *names: str) -> parsimony.Plan:
        slices = [
            {"tensor": name, "axis": 0, "role": "out", "size": 12, "keep": keep} for name in names
        ]
        group = {"id": "g0", "size": 12, "kept": len(keep), "mixes": False, "slices": slices}
        return parsimony.Plan({"groups": [group]})

    norm = nn.Sequential(nn.GroupNorm(3, 12))
    with pytest.raises(parsimony.UnsupportedError, match="different numbers of channels"):
        parsimony.apply(norm, plan([0, 1, 4], "0.weight", "0.bias"))
    assert norm[0].weight.shape == (12,)
    heads = nn.Sequential(nn.MultiheadAttention(4, 2))
    with pytest.raises(parsimony.UnsupportedError, match="requires heads x head_dim inputs"):
        parsimony.apply(heads, plan([0, 2, 4, 6, 8, 10], "0.in_proj_weight", "0.in_proj_bias"))


@pytest.mark.parametrize(
    "keep, groups, expected", [([0, 1, 4, 5], 3, 2), ([0, 4, 8], 3, 3), ([0, 1, 4], 3, None)]
)
def test_groups_that_remain(keep: Any, groups: int, expected: Any) -> None:
    assert remaining_groups(Cut(12, tuple(keep), ()), groups) == expected


def test_the_command_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from parsimony.command import find_command, run_command

    fake = tmp_path / "parsimony"
    fake.write_text("#!/bin/sh\necho parsimony: it broke >&2\nexit $1\n")
    fake.chmod(0o755)
    monkeypatch.delenv("PARSIMONY_COMMAND", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    bundled = Path(parsimony.__file__).parent / "_prefix" / "bin" / "parsimony"
    assert find_command() == str(bundled if bundled.exists() else fake)
    monkeypatch.setenv("PARSIMONY_COMMAND", str(fake))
    assert find_command() == str(fake)
    kinds = {
        1: parsimony.VerificationError,
        2: parsimony.ConfigError,
        3: parsimony.UnsupportedError,
    }
    kinds.update({4: parsimony.FileError, 70: parsimony.InternalError})
    for code, kind in kinds.items():
        with pytest.raises(kind) as caught:
            run_command([code])
        assert str(caught.value) == "it broke" and type(caught.value) is kind
    monkeypatch.setenv("PARSIMONY_COMMAND", str(tmp_path / "none"))
    with pytest.raises(parsimony.FileError, match="not an executable file"):
        find_command()


def test_a_path_that_is_no_plan(tmp_path: Path) -> None:
    with pytest.raises(parsimony.FileError, match="No such file"):
        parsimony.Plan.load(tmp_path / "none.json")
    for text in ("{", "[]", '{"parsimony_python_plan": 99}', '{"parsimony_python_plan": 1}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(parsimony.ConfigError, match="not a plan"):
            parsimony.Plan.load(tmp_path / "bad.json")


@pytest.mark.parametrize("model", ["resnet18.pth", {"weight": torch.zeros(2, 3)}])
def test_weights_are_no_module(model: Any) -> None:
    with pytest.raises(parsimony.ConfigError, match=r"expected a module, found (str|dict)"):
        parsimony.prune(model, torch.rand(1, 3), ratio=0.5)


def test_an_export_leaves_no_tensors_that_forward_caches() -> None:
    class Caching(nn.Module):
        size, grid = None, torch.empty(0)

        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.last(self.first(x).relu())
            if self.size != x.shape:
                self.grid, self.size = torch.arange(x.shape[-1]) * 1.0, x.shape
            return x + self.grid

    model, x = Caching(), torch.rand(1, 3, 8, 8)
    parsimony.prune(model, x, ratio=0.5)
    assert model.first.weight.shape[0] == 4
    assert model(x).shape == (1, 4, 6, 6) and type(model.grid) is torch.Tensor
