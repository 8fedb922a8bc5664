"""Pruning of live modules: what changes, what stays, and what the result is equal to."""

from __future__ import annotations

import copy
from typing import Any, Callable, Dict, Tuple

import networks
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, spectral_norm, weight_norm
from torch.nn.utils import prune as torch_prune

import parsimony


def images(*shape: int) -> torch.Tensor:
    return torch.randn(shape or (2, 3, 6, 6))


def tokens(most: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, most, shape)


Case = Tuple[Callable[[], nn.Module], Any]
CASES: Dict[str, Case] = {
    "residual": (networks.Residual, images()),
    "transformer": (networks.Transformer, tokens(20, 2, 6)),
    "attention": (networks.Attention, images(2, 5, 6)),
    "recurrent": (networks.Recurrent, images(2, 7, 5)),
    "tied": (networks.Tied, tokens(11, 2, 5)),
    "norms": (networks.Norms, images(2, 3, 9)),
    "auxiliary": (networks.Auxiliary, images()),
    "weight_norm": (lambda: networks.perceptron(weight_norm), images(2, 4)),
    "spectral_norm": (lambda: networks.perceptron(spectral_norm), images(2, 4)),
    "parametrized": (lambda: networks.perceptron(parametrizations.spectral_norm), images(2, 4)),
    "masked": (
        lambda: networks.perceptron(lambda one: torch_prune.l1_unstructured(one, "weight", 0.3)),
        images(2, 4),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_pruned_proven_trained_and_loaded(name: str) -> None:
    make, inputs = CASES[name]
    model = make()
    parameters = list(model.parameters())
    before = sum(parameter.numel() for parameter in parameters)
    plan = parsimony.prune(model, inputs, ratio=0.5)
    assert plan.proof is not None and plan.proof.scale > 0
    assert plan.proof.difference <= 1e-5
    assert sum(parameter.numel() for parameter in model.parameters()) < 0.75 * before
    assert all(a is b for a, b in zip(parameters, model.parameters()))

    model.train()
    outputs = model(inputs)
    sum(
        out.square().mean() for out in (outputs if isinstance(outputs, tuple) else [outputs])
    ).backward()
    assert all(p.grad is None or p.grad.shape == p.shape for p in model.parameters())
    torch.optim.SGD(model.parameters(), lr=0.1).step()

    fresh = parsimony.apply(make(), plan)
    fresh.load_state_dict(model.state_dict())
    with torch.no_grad():
        assert torch.equal(fresh.eval()(inputs), model.eval()(inputs))


def masked_by_hand(model: nn.Module, plan: parsimony.Plan) -> nn.Module:
    """The original with the removed slices set to zero, made without the package's code."""
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    with torch.no_grad():
        for group in plan.groups:
            for part in group["slices"]:
                if part["role"] != "with":
                    gone = sorted(set(range(part["size"])) - set(part["keep"]))
                    tensors[part["tensor"]].index_fill_(part["axis"], torch.tensor(gone), 0)
    return model


def test_equals_the_original_with_zeros_that_the_plan_describes() -> None:
    model = networks.Residual()
    with torch.no_grad():
        model.norm.running_mean.normal_()
        model.norm.running_var.uniform_(0.5, 2)
    original = copy.deepcopy(model).eval()
    plan = parsimony.prune(model, images(), ratio=0.5)
    inputs = images(5, 3, 6, 6)
    with torch.no_grad():
        expected, dense = masked_by_hand(copy.deepcopy(original), plan)(inputs), original(inputs)
        found = model.eval()(inputs)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    assert (found - dense).abs().max() > 1e-3


def test_channels_with_the_lowest_norm_go() -> None:
    model = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 2))
    norms = model[0].weight.detach().abs().sum(1)
    kept = sorted(norms.argsort(descending=True)[:3].tolist())
    weight = model[0].weight.detach()[kept].clone()
    plan = parsimony.prune(model, images(1, 3), ratio=0.5)
    assert torch.equal(model[0].weight, weight)
    assert plan.groups[0]["slices"][0]["keep"] == kept


def test_sizes_of_layers() -> None:
    model = networks.Residual()
    parsimony.prune(model, images(), ratio=0.5)
    assert (model.stem.in_channels, model.stem.out_channels) == (3, 4)
    assert (model.norm.num_features, model.slope.num_parameters) == (4, 8)
    depthwise = model.depthwise
    assert (depthwise.in_channels, depthwise.out_channels, depthwise.groups) == (8, 8, 8)
    assert (model.fc.in_features, model.fc.out_features) == (4, 5)


def test_sizes_of_norms_recurrent_layers_and_attention() -> None:
    norms = networks.Norms()
    parsimony.prune(norms, images(2, 3, 9), ratio=0.5)
    assert (norms.group.num_channels, norms.group.num_groups) == (6, 3)
    assert (norms.instance.num_features, norms.layer.normalized_shape) == (4, (4,))
    assert (norms.b.in_channels, norms.b.out_channels) == (6, 4)
    recurrent = networks.Recurrent()
    parsimony.prune(recurrent, images(2, 7, 5), ratio=0.5)
    assert (recurrent.first.input_size, recurrent.first.hidden_size) == (5, 4)
    assert (recurrent.second.input_size, recurrent.second.hidden_size) == (8, 3)
    transformer = networks.Transformer()
    parsimony.prune(transformer, tokens(20, 2, 6), ratio=0.5)
    attention = transformer.layer.self_attn
    assert (attention.embed_dim, attention.num_heads, attention.head_dim) == (8, 4, 2)
    assert transformer.embedding.embedding_dim == 8 and transformer.width == 8


@pytest.mark.parametrize("granularity, heads, size", [("head", 2, 4), ("head_dim", 4, 2)])
def test_attention_by_hand(granularity: str, heads: int, size: int) -> None:
    model = networks.Attention()
    plan = parsimony.prune(model, images(2, 5, 6), ratio=0.5, granularity=granularity)
    assert (model.num_heads, model.head_dim) == (heads, size)
    assert model.scale == 0.5, "a number that was trained with stays"
    assert {change.attribute for change in plan.attributes} <= {"num_heads", "head_dim"}


def test_torch_attention_loses_whole_heads() -> None:
    model = networks.Transformer()
    plan = parsimony.prune(model, tokens(20, 2, 6), ratio=0.5, granularity="head")
    attention = model.layer.self_attn
    assert (attention.embed_dim, attention.num_heads, attention.head_dim) == (8, 2, 4)
    assert plan.proof is not None


class Shapes(nn.Module):
    """Computes the scale of attention from the size of its tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.out = nn.Linear(6, 8), nn.Linear(6, 8), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = self.q(x)
        return self.out((q @ self.k(x).transpose(1, 2) / q.shape[-1] ** 0.5).softmax(-1) @ x)


def test_scales_that_forward_computes_follow() -> None:
    model = Shapes()
    plan = parsimony.prune(model, images(2, 5, 6), ratio=0.5)
    assert model.q.out_features == 4
    assert plan.proof is not None and "small network" in plan.proof.reference
    assert any("follow" in note for note in plan.notes)


def test_a_literal_size_is_spared_and_named() -> None:
    model = networks.Literal()
    plan = parsimony.prune(model, images(2, 3, 8, 8), ratio=0.5)
    assert (model.free.out_channels, model.fixed.out_channels) == (4, 4)
    (note,) = plan.notes
    assert note.startswith("not pruned: fixed") and "view" in note and "networks.py" in note


@pytest.mark.parametrize("name", ["linspace", "arange"])
def test_what_forward_computes_from_literals_stays(name: str) -> None:
    model = networks.Waves(name)
    parsimony.prune(model, torch.rand(2), ratio=0.5)
    assert model.inner.weight.shape == (12, 16)


def test_halves_stay_equal() -> None:
    model = networks.Halves()
    with torch.no_grad():  # the first half is worth less
        model.both.weight[:8] *= 0.1
    plan = parsimony.prune(model, images(), ratio=0.5, scope="global")
    assert model.both.out_channels % 2 == 0
    assert model.first.in_channels == model.second.in_channels == model.both.out_channels // 2
    assert plan.proof is not None


def test_layers_of_training_only_are_cut_too() -> None:
    model = networks.Auxiliary()
    plan = parsimony.prune(model, images(), ratio=0.5)
    assert model.aux[0].in_channels == model.first.out_channels == 4
    assert model.training and any("evaluation" in note for note in plan.notes)
    x, aux = model(images())
    assert aux.shape == x.shape


def test_structured_inputs_and_outputs() -> None:
    model = networks.Structured()
    inputs = {"left": images(2, 4), "scale": 2.0, "right": images(2, 6)}
    plan = parsimony.prune(model, inputs, ratio=0.5)
    assert isinstance(model(**inputs), networks.Result)
    assert model.out.in_features == 6 and plan.macs[0] == 2 * (4 * 12 + 6 * 12 + 2 * 12 * 3)


def test_what_is_attached_stays() -> None:
    model = networks.Residual().to(memory_format=torch.channels_last)
    model.norm.eval()
    model.narrow.weight.requires_grad_(False)
    seen = []
    model.wide.register_forward_hook(lambda *_: seen.append("hook"))
    model.wide.weight.register_hook(lambda grad: seen.append(tuple(grad.shape)))
    model(images()).sum().backward()
    gradient = model.stem.weight.grad.clone()
    seen.clear()
    plan = parsimony.prune(model, images(), ratio=0.5)
    assert model.training and not model.norm.training
    assert not model.narrow.weight.requires_grad and model.stem.weight.requires_grad
    assert model.stem.weight.is_contiguous(memory_format=torch.channels_last)
    kept = list(plan.cuts()["stem.weight"][0].keep)
    assert torch.equal(model.stem.weight.grad, gradient[kept])
    seen.clear()
    model(images()).sum().backward()
    assert seen == ["hook", (8, 4, 1, 1)]


def test_a_loss_of_before_does_not_disturb() -> None:
    model = networks.perceptron()
    old = model(images(2, 4)).sum()
    parsimony.prune(model, images(2, 4), ratio=0.5)
    model(images(2, 4)).sum().backward()
    assert model[0].weight.grad.shape == (6, 4)
    assert old.item() == old.item()


def test_tied_weights_stay_tied() -> None:
    model = networks.Tied()
    parsimony.prune(model, tokens(11, 2, 5), ratio=0.5)
    assert model.decoder.weight is model.embedding.weight
    assert model.decoder.in_features == model.embedding.embedding_dim == 4
    assert model.embedding.padding_idx == 0


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
def test_element_types_stay(kind: torch.dtype) -> None:
    model = networks.perceptron().to(kind)
    plan = parsimony.prune(model, images(2, 4).to(kind), ratio=0.5)
    assert model[0].weight.dtype == kind and model[0].out_features == 6
    assert plan.proof is not None and plan.proof.scale > 0


def test_lists_of_nni() -> None:
    model = networks.Residual()
    config = [
        {"op_types": ["Conv2d"], "sparse_ratio": 0.5},
        {"op_names": ["stem"], "exclude": True},
    ]
    plan = parsimony.prune(model, images(), config_list=config)
    assert (model.stem.out_channels, model.wide.out_channels) == (8, 8)
    assert any('"stem" is excluded' in note for note in plan.notes)


def test_budgets_and_exclusions() -> None:
    model = networks.Residual()
    plan = parsimony.prune(model, images(), budget="macs=50%", scope="global", exclude=["stem"])
    assert model.stem.out_channels == 8 and model.wide.out_channels < 16
    assert plan.macs[1] <= 0.5 * plan.macs[0]


@pytest.mark.parametrize("budget", ["macs=1", "params=0.05%", {"macs": "50%", "file": 1}])
def test_less_than_a_thousandth_is_forced(budget: Any) -> None:
    model = networks.Residual()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(parsimony.ConfigError, match="less than a thousandth.*force=True"):
        parsimony.prune(model, images(), budget=budget)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])
    parsimony.prune(model, images(), budget=budget, force=True)
    assert model.wide.out_channels < 16


def test_masks() -> None:
    model = networks.Residual()
    masks = {"wide.weight": torch.ones(16, 8, 1, 1), "depthwise.weight": torch.ones(16, 1, 3, 3)}
    for mask in masks.values():
        mask[[3, 5]] = 0
    original = copy.deepcopy(model).eval()
    plan = parsimony.prune(model, images(), masks={n: m.bool() for n, m in masks.items()})
    assert model.wide.out_channels == 14
    with torch.no_grad():
        for name, mask in masks.items():
            original.get_parameter(name).mul_(mask)
        inputs = images(3, 3, 6, 6)
        torch.testing.assert_close(model.eval()(inputs), original(inputs), atol=1e-6, rtol=1e-5)
    assert plan.data["constants"] == "exact" and plan.values


def test_exact_constants() -> None:
    model = networks.Residual()
    plan = parsimony.prune(model, images(), ratio=0.5, constants="exact")
    assert plan.proof is not None and "masked weights" in plan.proof.reference
    assert plan.data["constants"] == "exact"


def test_elements() -> None:
    model = networks.perceptron()
    plan = parsimony.prune(model, images(2, 4), ratio=0.5, criterion="level")
    zeros = sum(int((p == 0).sum()) for p in model.parameters() if p.dim() == 2)
    assert zeros == (48 + 120 + 30) / 2 and plan.proof is not None


class Expanded(nn.Module):
    """A buffer whose elements are one in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)
        self.register_buffer("shift", torch.ones(1).expand(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.first(x) + self.shift)


class Activated(nn.Module):
    """A convolution and an activation that other modules have, too: the trace hands it on."""

    def __init__(self, inner: int, outer: int, activation: nn.Module) -> None:
        super().__init__()
        self.conv, self.activation = nn.Conv2d(inner, outer, 3, padding=1), activation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activation(self.conv(x))


def test_an_activation_that_nested_modules_share() -> None:
    shared = nn.SiLU()
    nested = nn.Sequential(Activated(3, 8, shared), Activated(8, 8, shared))
    model = nn.Sequential(nested, nn.Sequential(Activated(8, 8, shared)), nn.Conv2d(8, 2, 1))
    plan = parsimony.prune(model, images(), ratio=0.5)
    assert nested[0].conv.out_channels == 4 and len(plan.groups) == 3


class Views(nn.Module):
    """Layers whose weights are different views of one memory: a transpose, or overlapping slices."""

    def __init__(self, transposed: bool) -> None:
        super().__init__()
        self.first, self.up = nn.Linear(8, 16), nn.Linear(16, 32)
        self.down, self.last = nn.Linear(32, 16), nn.Linear(16, 5)
        if transposed:
            self.down.weight = nn.Parameter(self.up.weight.detach().t())
        else:
            memory = torch.randn(800) / 4
            self.up.weight = nn.Parameter(memory[:512].view(32, 16))
            self.down.weight = nn.Parameter(memory[288:].view(16, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.up(torch.relu(self.first(x))))
        return self.last(torch.relu(self.down(hidden)))


@pytest.mark.parametrize("transposed", [True, False])
def test_views_of_one_memory(transposed: bool) -> None:
    model = Views(transposed)
    plan = parsimony.prune(model, images(2, 8), ratio=0.5)
    assert plan.proof is not None and not plan.notes
    assert model.up.weight.shape == (16, 8) and model.down.weight.shape == (8, 16)


def test_tensors_that_forward_does_not_read_are_named() -> None:
    model = networks.perceptron()
    model[0].lora_b = nn.Parameter(torch.rand(12, 2))
    model[2].register_buffer("scale", torch.rand(10))
    model[2].register_buffer("other", torch.rand(7))
    plan = parsimony.prune(model, images(2, 4), ratio=0.5)
    assert any("read them: 0.lora_b, 2.scale" in note for note in plan.notes)


def test_expanded_buffers() -> None:
    model = Expanded()
    plan = parsimony.prune(model, images(2, 4), ratio=0.5)
    assert model.shift.shape == (4,) and plan.proof is not None


def test_nothing_to_prune_is_no_error() -> None:
    model = nn.Sequential(nn.Linear(3, 2))
    plan = parsimony.prune(model, images(1, 3), ratio=0.5)
    assert plan.groups == [] and model[0].weight.shape == (2, 3)


def test_the_plan_shows_what_was_done() -> None:
    model = networks.perceptron()
    text = repr(parsimony.prune(model, images(2, 4), ratio=0.5))
    assert "0.weight" in text and "12x4" in text and "6x4" in text
    assert "parameters     223" in text and "Proven: largest difference" in text


class Cached(nn.Module):
    """Appends to a cache that is empty, as decoders do: torch skips tensors of shape [0]."""

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis
        self.first, self.keys, self.last = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.first(x))
        empty = torch.tensor([], dtype=h.dtype)
        keys = torch.cat([empty, self.keys(h), h.new_zeros(0)], self.axis)
        return self.last(torch.cat([h, empty], dim=-1) + keys)


@pytest.mark.parametrize("axis", [-2, 1, -1])
def test_empty_tensors_are_skipped(axis: int) -> None:
    model = Cached(axis)
    plan = parsimony.prune(model, images(2, 5, 6), ratio=0.5)
    assert model.first.out_features == 4 and plan.proof is not None
