"""Attention that divides by the root of the size of its heads, which a cut makes smaller."""

from __future__ import annotations

import copy
import math
from typing import Any, Dict

import pytest
import torch
import torch.nn.functional as F
from test_prune import images, masked_by_hand
from torch import Tensor, nn

import parsimony
from parsimony.pruning import _Pruning
from parsimony.queries import sources_of

attend: Any = getattr(F, "scaled_dot_product_attention", None)
needs_attend = pytest.mark.skipif(attend is None, reason="older releases have no such function")


class Fused(nn.Module):
    """One matrix for queries, keys and values, and a scale that only another way of `forward` reads."""

    def __init__(self, norm: Any = None, bias: bool = True) -> None:
        super().__init__()
        self.num_heads, self.head_dim, self.fused = 2, 8, True
        self.scale = self.head_dim**-0.5
        self.inner, self.qkv = nn.Linear(6, 16), nn.Linear(16, 48, bias=bias)
        self.q_norm = nn.Identity() if norm is None else norm(8)
        self.k_norm = nn.Identity() if norm is None else norm(8)
        self.out = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        qkv = self.qkv(self.inner(x)).reshape(batch, tokens, 3, self.num_heads, self.head_dim)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        q, k = self.q_norm(q), self.k_norm(k)
        if self.fused:
            x = attend(q, k, v)
        else:
            x = (q * self.scale @ k.transpose(-2, -1)).softmax(-1) @ v
        return self.out(x.transpose(1, 2).reshape(batch, tokens, -1))


class Separate(nn.Module):
    """Queries of a layer of their own, turned by positions, of fewer keys and values than queries."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = 2
        self.q, self.kv, self.out = nn.Linear(6, 16), nn.Linear(6, 32), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        q = self.q(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = self.kv(x[:, 1:]).chunk(2, -1)
        angles = torch.arange(tokens, device=x.device)[:, None] * 0.5
        q = q * angles.cos() - q.neg() * angles.sin()
        k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in (k, v))
        return self.out(attend(q, k, v).transpose(1, 2).flatten(2))


class Own(nn.Module):
    """Queries and keys are parameters beside a layer's output, as biases of theirs."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(24, 6) * 0.4)
        self.q_bias = nn.Parameter(torch.randn(8))
        self.kv_bias = nn.Parameter(torch.randn(16))
        self.out = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = F.linear(x, self.weight, torch.cat((self.q_bias, self.kv_bias))).chunk(3, -1)
        return self.out(attend(q[:, None], k[:, None], v[:, None])[:, 0])


def sources(model: nn.Module, query: Tensor) -> Dict[str, Any]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return sources_of(query, names, {})


def pruned(model: nn.Module, **options: Any) -> parsimony.Plan:
    """Prunes `model`; on other inputs it then computes what the masked original does."""
    original = copy.deepcopy(model).eval()
    plan = parsimony.prune(model, images(2, 5, 6), ratio=0.5, **options)
    assert plan.proof is not None and plan.proof.reference == "the masked original"
    inputs = images(3, 5, 6)
    with torch.no_grad():
        expected = masked_by_hand(original, plan)(inputs)
        torch.testing.assert_close(model.eval()(inputs), expected, atol=1e-6, rtol=1e-4)
    return plan


@needs_attend
@pytest.mark.parametrize("bias", [True, False])
def test_heads_that_shrink_keep_the_scale_that_was_trained(bias: bool) -> None:
    model = Fused(bias=bias)
    pruned(model, granularity="head_dim")
    assert (model.num_heads, model.head_dim) == (2, 4)


@needs_attend
def test_both_ways_of_forward_agree() -> None:
    model = Fused()
    plan = pruned(model, granularity="head_dim")
    inputs = images(2, 5, 6)
    with torch.no_grad():
        fused = model(inputs)
        model.fused = False
        torch.testing.assert_close(model(inputs), fused, atol=1e-6, rtol=1e-4)
    fresh = parsimony.apply(Fused(), plan)
    assert fresh.scale == model.scale == 4**-0.5


def test_a_scale_that_forward_reads_stays() -> None:
    model = Fused()
    model.fused = False
    pruned(model, granularity="head_dim")
    assert model.head_dim == 4 and model.scale == 8**-0.5


@needs_attend
def test_whole_heads_need_no_scale() -> None:
    model = Fused()
    kept = model.qkv.weight.detach().clone()
    plan = pruned(model, granularity="head")
    assert (model.num_heads, model.head_dim, model.scale) == (1, 8, 8**-0.5)
    cuts = plan.cuts()["qkv.weight"]
    rows = kept[list(cuts[0].keep)] if 0 in cuts else kept
    assert torch.equal(model.qkv.weight, rows[:, list(cuts[1].keep)] if 1 in cuts else rows)


@needs_attend
def test_queries_of_a_layer_of_their_own() -> None:
    model = Separate()
    pruned(model)
    assert model.q.out_features < 16


@needs_attend
def test_queries_of_parameters() -> None:
    model = Own()
    pruned(model)
    assert model.q_bias.shape == (4,)


def test_what_queries_come_from() -> None:
    """The rows of the nearest tensors that they are proportional to."""
    fused, own, x = Fused(), Own(), torch.randn(3, 6)
    q, k, v = fused.qkv(fused.inner(x)).reshape(3, 3, 2, 8).unbind(1)
    rows = {"qkv.weight": (0, list(range(16))), "qkv.bias": (0, list(range(16)))}
    assert sources(fused, q * 2) == rows
    values = {name: (0, list(range(32, 48))) for name in rows}
    assert sources(fused, v.transpose(0, 1)) == values
    assert sources(fused, F.normalize(q, dim=-1)) == {}
    assert sources(fused, x) == {}
    both = F.linear(x, own.weight, torch.cat((own.q_bias, own.kv_bias))).chunk(3, -1)
    assert sources(own, both[0]) == {"q_bias": (0, list(range(8))), "weight": (0, list(range(8)))}
    norm = nn.LayerNorm(8)
    nn.init.normal_(norm.bias)
    assert set(sources(norm, norm(q))) == {"weight", "bias"}


@needs_attend
def test_norms_of_queries_have_scales_of_their_own() -> None:
    model = Fused(nn.LayerNorm)
    nn.init.normal_(model.q_norm.bias)
    plan = parsimony.prune(model, images(2, 5, 6), ratio=0.5, granularity="head_dim")
    assert plan.proof is not None and model.head_dim == 4


class Unit(nn.Module):
    """A norm without weights."""

    def __init__(self, size: int) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=-1)


@needs_attend
def test_the_scale_follows_where_nothing_can_be_multiplied() -> None:
    model = Fused(Unit)
    plan = parsimony.prune(model, images(2, 5, 6), ratio=0.5, granularity="head_dim")
    assert plan.proof is not None and "small network" in plan.proof.reference
    assert model.head_dim == 4 and any("follow" in note for note in plan.notes)


class Beside(nn.Module):
    """Attention of torch's own before attention that divides by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.attention = nn.Linear(6, 16), nn.MultiheadAttention(
            16, 2, batch_first=True
        )
        self.last = Separate()
        self.narrow = nn.Linear(16, 6)

    def forward(self, x: Tensor) -> Tensor:
        x = self.inner(x)
        return self.last(self.narrow(self.attention(x, x, x, need_weights=False)[0]))


@needs_attend
def test_torchs_own_attention_is_not_multiplied_twice() -> None:
    model = Beside()
    plan = parsimony.prune(model, images(2, 5, 6), ratio=0.5, exclude=["narrow"])
    assert plan.proof is not None and plan.proof.reference == "the masked original"
    assert model.last.q.out_features < 16


@needs_attend
def test_recovered_values_are_multiplied_too() -> None:
    """Recovery in the command is for the old divisor, which the other way of `forward` keeps."""
    data, found = images(64, 1, 5, 6), []
    for fused in (True, False):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Flatten(1, 2), Fused())
        model[1].fused = fused
        recovery = {"recover": "least-squares", "data": [data], "granularity": "head_dim"}
        plan = parsimony.prune(model, data[:2], ratio=0.5, **recovery)
        assert "1.qkv.weight" in plan.values and model[1].head_dim == 4
        assert torch.equal(model[1].qkv.weight, plan.values["1.qkv.weight"])
        found.append(model.eval()(data).detach())
    torch.testing.assert_close(found[0], found[1], atol=1e-5, rtol=1e-4)


class OfTorch(nn.Module):
    """Attention of torch's own, whose class divides by the root of the size that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.attention = nn.Linear(6, 16), nn.MultiheadAttention(
            16, 2, batch_first=True
        )
        self.last = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.inner(x.flatten(1, 2))
        return self.last(self.attention(x, x, x, need_weights=False)[0])


def test_recovered_values_of_torchs_own_attention_are_multiplied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recovered: Dict[str, Tensor] = {}
    finished = _Pruning._finished

    def noted(self: _Pruning, answer: Any, journal: Any) -> Any:
        recovered.update(answer.plan.values)
        return finished(self, answer, journal)

    monkeypatch.setattr(_Pruning, "_finished", noted)
    torch.manual_seed(1)
    model, data = OfTorch().eval(), images(64, 1, 5, 6)
    fresh = copy.deepcopy(model)
    recovery = {"recover": "least-squares", "data": [data], "granularity": "head_dim"}
    plan = parsimony.prune(model, data[:1], ratio=0.5, **recovery)
    assert model.attention.head_dim == 4
    # By hand, with what the command gave and the divisor that it is for.
    own = dict(model.named_parameters(), **recovered)
    shift = own["attention.in_proj_bias"]
    if "attention.in_proj_bias" not in recovered:
        shift = torch.cat([shift[:8] / math.sqrt(4 / 8), shift[8:]])
    x = model.inner(data.flatten(1, 2))
    rows = F.linear(x, recovered["attention.in_proj_weight"], shift)
    q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in rows.chunk(3, dim=-1))
    scores = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(8), dim=-1)
    heads = (scores @ v).transpose(1, 2).flatten(2)
    expected = model.last(model.attention.out_proj(heads))
    torch.testing.assert_close(model(data), expected, atol=1e-5, rtol=1e-4)
    # Where the plan is replayed its values take the place of what is multiplied.
    parsimony.apply(fresh, plan)
    torch.testing.assert_close(fresh(data), expected, atol=1e-5, rtol=1e-4)


@needs_attend
def test_half_precision_with_gradients() -> None:
    model = Fused().bfloat16()
    model(images(2, 5, 6).bfloat16()).sum().backward()
    parsimony.prune(model, images(2, 5, 6).bfloat16(), ratio=0.5, granularity="head_dim")
    assert model.qkv.weight.dtype == model.qkv.weight.grad.dtype == torch.bfloat16
    assert model.head_dim == 4
