"""What removed channels cost once the rest is fitted."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import parsimony
from parsimony.surgeon import Reader, removal_losses

from test_directory_recovery import llama, with_texts


def test_losses_are_those_of_least_squares() -> None:
    torch.manual_seed(0)
    weight, inputs = torch.randn(5, 8).double(), torch.randn(8, 60).double()
    losses = removal_losses([Reader(weight.T @ weight, inputs @ inputs.T)], 4, 1e-12)
    target = weight @ inputs

    def loss_without(channel: int) -> float:
        left = inputs[[i for i in range(8) if i // 2 != channel]]
        fitted = torch.linalg.lstsq(left.T, target.T).solution.T
        return float((target - fitted @ left).square().sum() / target.square().sum())

    alone = [loss_without(channel) for channel in range(4)]
    assert min(losses) == pytest.approx(min(alone), rel=1e-6)
    assert losses.index(min(losses)) == alone.index(min(alone))


@pytest.mark.parametrize("channels", [40, 600])  # of more than 256, several leave at a time
def test_the_commands_criterion_is_the_same(channels: int) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, channels), nn.ReLU(), nn.Linear(channels, 9)).eval()
    data = [torch.randn(100, 20) for _ in range(8)]
    with torch.no_grad():
        read = torch.cat([model[:2](x) for x in data]).double()
        read -= read.mean(0)  # the bias makes up for it
        weight = model[2].weight.detach().double()
    losses = torch.tensor(removal_losses([Reader(weight.T @ weight, read.T @ read)], channels))
    plan = parsimony.prune(model, data[0], ratio=0.5, criterion="obs", data=data, samples=800)
    kept = set(plan.cuts()["0.weight"][0].keep)
    expected = set(losses.argsort()[channels // 2 :].tolist())
    assert len(kept ^ expected) <= channels // 100  # moments of the command are in single precision


def test_directories_lose_what_others_can_replace(tmp_path: Path) -> None:
    model = llama(intermediate_size=16)
    source = with_texts(model, tmp_path / "model")
    with torch.no_grad():
        for layer in model.model.layers:  # pairs that compute the same, with large weights
            for part in (layer.mlp.gate_proj, layer.mlp.up_proj):
                part.weight[8:12] = part.weight[4:8] = 2 * part.weight[4:8]
    model.save_pretrained(source)
    texts = f"text:{tmp_path}/texts.txt"
    plan = parsimony.prune_pretrained(
        source,
        tmp_path / "small",
        keys={"intermediate_size": 0.25},
        criterion="obs",
        calibration=texts,
    )
    cuts = plan.cuts()
    for layer in range(3):
        kept = set(cuts[f"model.layers.{layer}.mlp.down_proj.weight"][1].keep)
        assert all({4 + i, 8 + i} & kept for i in range(4))
        assert sum({4 + i, 8 + i} <= kept for i in range(4)) == 0
    with pytest.raises(parsimony.ConfigError, match="criterion: needs calibration"):
        parsimony.prune_pretrained(source, tmp_path / "other", ratio=0.5, criterion="obs")
