"""Modules of today's PyTorch: control flow, half precision, `meta`, classes of other packages."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Optional

import pytest
import torch
from torch import Tensor, nn

import parsimony
from parsimony.command import run_command


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 3), nn.Flatten(),
        nn.Linear(32, 5),
    )  # fmt: skip


class Branches(nn.Module):
    """Both branches read a layer of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.yes, self.no, self.last = (
            nn.Linear(a, b) for a, b in ((8, 16), (16, 16), (16, 16), (16, 3))
        )

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x).relu()
        h = torch.cond(
            h.sum() > 0, lambda t: self.yes(t).relu(), lambda t: self.no(t).sigmoid(), (h,)
        )
        return self.last(h)


def test_branches_on_values() -> None:
    model = Branches()
    plan = parsimony.prune(model, torch.rand(2, 8), ratio=0.5)
    assert plan.proof is not None
    assert model.first.out_features == 8 and model.yes.in_features == model.no.in_features == 8


class Written(nn.Module):
    """Its hidden values are written into a tensor, part by part."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = (nn.Linear(a, b) for a, b in ((6, 8), (6, 4), (12, 3)))

    def forward(self, x: Tensor) -> Tensor:
        y = x.new_empty(x.shape[0], 12)
        y[:, :8] = self.first(x)
        y[:, 8:] = self.second(x)
        return self.last(torch.relu(y))


def test_places_of_parts_that_are_copied_into_follow(tmp_path: Path) -> None:
    program = torch.export.export(Written().eval(), (torch.rand(2, 6),)).run_decompositions({})
    torch.export.save(program, tmp_path / "net.pt2")
    run_command(["prune", tmp_path / "net.pt2", "-o", tmp_path / "small.pt2", "--ratio", 0.5, "-q"])
    small = torch.export.load(tmp_path / "small.pt2").module()
    assert small(torch.rand(2, 6)).shape == (2, 3)
    assert sum(tensor.numel() for tensor in small.state_dict().values()) < 123


class Guarded(Branches):
    """Its branch is an `if` of Python."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x).relu()
        return self.last(self.yes(h) if float(h.sum()) > 0 else self.no(h))


def test_the_exporter_says_what_it_cannot_export(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(parsimony.UnsupportedError, match="cannot export.*data-dependent") as error:
        parsimony.prune(Guarded(), torch.rand(2, 8), ratio=0.5)
    assert "test_exported.py" in str(error.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_with_gradients(dtype: torch.dtype) -> None:
    model, x = convolutional().to(dtype), torch.rand(2, 3, 6, 6, dtype=dtype)
    model(x).sum().backward()
    plan = parsimony.prune(model, x, ratio=0.5)
    assert plan.proof is not None
    assert all(p.dtype == dtype and p.grad.shape == p.shape for p in model.parameters())


def test_a_module_without_values() -> None:
    model = convolutional().to("meta")
    plan = parsimony.prune(model, torch.rand(2, 3, 6, 6, device="meta"), ratio=0.5)
    assert plan.proof is None and any("meta" in note for note in plan.notes)
    assert model[0].weight.shape == (8, 3, 3, 3) and model[0].weight.is_meta
    small = parsimony.apply(convolutional(), plan)
    assert [t.shape for t in small.parameters()] == [t.shape for t in model.parameters()]


class Cache:
    """Neither a tensor nor a container of them."""

    def __init__(self, keys: Tensor) -> None:
        self.keys = keys


@dataclass
class Output:
    """What `Decoder` returns."""

    logits: Tensor
    cache: Optional[Cache] = None
    hidden: Optional[Dict[str, Tensor]] = None


class Decoder(nn.Module):
    """Takes a named argument, and returns a dataclass with a cache."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.keys = nn.Embedding(20, 8), nn.Linear(8, 16)
        self.last = nn.Linear(16, 20)

    def forward(self, *, tokens: Tensor, use_cache: bool = True) -> Output:
        keys = self.keys(self.embedding(tokens)).relu()
        return Output(self.last(keys), Cache(keys) if use_cache else None, {"tokens": tokens})


def test_outputs_that_are_no_pytrees() -> None:
    model = Decoder()
    plan = parsimony.prune(model, {"tokens": torch.randint(0, 20, (2, 5))}, ratio=0.5)
    assert plan.proof is not None and model.keys.out_features == 8


def test_what_fixes_a_width_does_not_throw_out_the_rest() -> None:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    plan = parsimony.prune(model, torch.rand(2, 10, 32), ratio=0.5)
    assert plan.proof is not None
    assert [part.linear1.out_features for part in model.layers] == [32, 32]
    assert any("self_attn" in note for note in plan.notes)


class Conv1D(nn.Module):
    """A linear layer whose weight is transposed, with its sizes in attributes."""

    def __init__(self, nf: int, nx: int) -> None:
        super().__init__()
        self.nf, self.nx = nf, nx
        self.weight, self.bias = nn.Parameter(torch.randn(nx, nf)), nn.Parameter(torch.zeros(nf))

    def forward(self, x: Tensor) -> Tensor:
        flat = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        return flat.view(x.size()[:-1] + (self.nf,))


class Split(nn.Module):
    """Attention of GPT-2: one layer for queries, keys and values, and a size to split it by."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.out = Conv1D(48, 16), Conv1D(16, 16)
        self.split_size, self.head_dim = 16, 4

    def forward(self, x: Tensor) -> Tensor:
        parts = self.attention(x).split(self.split_size, dim=2)
        q, k, v = (part.view(*part.shape[:-1], -1, self.head_dim).transpose(1, 2) for part in parts)
        weights = (q @ k.transpose(-1, -2) * 0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(*x.shape[:-1], -1))


def test_sizes_of_other_packages_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    package: Any = types.ModuleType("transformers.pytorch_utils")
    package.Conv1D = Conv1D
    monkeypatch.setitem(sys.modules, package.__name__, package)
    model = Split()
    plan = parsimony.prune(model, torch.randn(2, 5, 16), ratio=0.5, granularity="head")
    assert plan.proof is not None
    assert (model.attention.nf, model.split_size, model.out.nx) == (24, 8, 8)


class Pooled(nn.Module):
    """Runs a layer whose result nobody reads."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.pooler, self.last = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x).relu()
        self.pooler(h)
        return self.last(h)


def test_results_that_nobody_reads() -> None:
    model = Pooled()
    plan = parsimony.prune(model, torch.rand(2, 8), ratio=0.5)
    assert plan.proof is not None
    assert model.first.out_features == model.pooler.in_features == 8


class Root(nn.Module):
    """Computes a scale from the size of what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x).relu()
        return self.last(h / h.shape[-1] ** 0.5)


def test_numbers_that_forward_computes_from_sizes() -> None:
    model = Root()
    plan = parsimony.prune(model, torch.rand(2, 8), ratio=0.5)
    assert model.first.out_features == 8 and any("follow" in note for note in plan.notes)
    assert plan.proof is not None and "small network" in plan.proof.reference


class Config:
    """As configurations of transformers are."""

    def __init__(self, hidden_size: int = 16, intermediate_size: int = 32) -> None:
        self.hidden_size, self.intermediate_size = hidden_size, intermediate_size

    def to_dict(self) -> Dict[str, int]:
        return vars(self)


class Pretrained(nn.Module):
    """A model that is built from its configuration."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.first = nn.Linear(4, config.hidden_size)
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)
        self.last = nn.Linear(config.hidden_size, 3)

    @classmethod
    def from_pretrained(cls, config: Config) -> "Pretrained":
        return cls(config)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        return self.last(h + self.down(self.up(h).relu()))


def test_configurations_follow() -> None:
    model = Pretrained(Config())
    plan = parsimony.prune(model, torch.rand(2, 4), ratio=0.5)
    assert vars(model.config) == {"hidden_size": 8, "intermediate_size": 16}
    Pretrained(model.config).load_state_dict(model.state_dict())
    fresh = parsimony.apply(Pretrained(Config()), plan)
    assert vars(fresh.config) == vars(model.config)


def test_widths_that_no_configuration_has() -> None:
    class Two(Pretrained):
        """Its two layers have one width in the configuration."""

        def __init__(self, config: Config) -> None:
            super().__init__(config)
            self.more = nn.Linear(config.hidden_size, config.intermediate_size)
            self.back = nn.Linear(config.intermediate_size, config.hidden_size)

        def forward(self, x: Tensor) -> Tensor:
            h = self.first(x)
            h = h + self.down(self.up(h).relu())
            return self.last(h + self.back(self.more(h).relu()))

    model = Two(Config())
    config = [{"op_names": ["up"], "sparse_ratio": 0.5}]
    plan = parsimony.prune(model, torch.rand(2, 4), config_list=config)
    assert vars(model.config) == vars(Config())
    assert any("save_pretrained" in note for note in plan.notes)


class Two(nn.Module):
    """Takes tokens and a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.up = nn.Embedding(20, 8), nn.Linear(8, 32)
        self.down, self.last = nn.Linear(32, 8), nn.Linear(8, 4)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        h = self.embedding(tokens)
        h = (h + self.down(self.up(h).relu())) * mask[..., None]
        return self.last(h.sum(1))


def test_data_of_several_inputs() -> None:
    model = Two()
    batches = [
        {
            "tokens": torch.randint(0, 20, (8, 6)),
            "mask": torch.ones(8, 6),
            "labels": torch.arange(8) % 4,
        }
        for _ in range(4)
    ]
    example = {"tokens": torch.randint(0, 20, (8, 6)), "mask": torch.rand(8, 6)}
    options = {"criterion": "wanda", "recover": "least-squares", "data": batches}
    plan = parsimony.prune(model, example, ratio=0.5, **options)
    assert plan.proof is not None and model.up.out_features == 16
    assert "down.weight" in plan.values
    with pytest.raises(parsimony.ConfigError, match="has 1 inputs, the module takes 2"):
        parsimony.prune(Two(), example, ratio=0.5, criterion="apoz", data=[torch.rand(8, 6)])


class Stepped(nn.Module):
    """Has integers beside its width that happen to be equal to it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(32, 3)
        self.dim = self.steps = self.seed = 16

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        return self.last(torch.cat([h, h], 1).view(-1, 2 * self.dim)) * (1.0 / self.steps)


def test_integers_that_are_no_sizes_stay() -> None:
    model = Stepped()
    plan = parsimony.prune(model, torch.rand(2, 8), ratio=0.5)
    assert plan.proof is not None and "masked original" in plan.proof.reference
    assert (model.dim, model.steps, model.seed) == (8, 16, 16)
    assert [change.attribute for change in plan.attributes] == ["dim"]


class Registered(nn.Module):
    """Its subclasses are registered."""

    known: Dict[str, type] = {}

    def __init_subclass__(cls) -> None:
        Registered.known[cls.__name__] = cls


class Registering(Registered):
    """Replaces its own `forward`, and has a hook that changes the result."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 3)
        self.forward = lambda x, scale: {"y": self.last(self.first(x).relu()) * scale}
        self.register_forward_pre_hook(
            lambda _, args, kwargs: (args, {**kwargs, "scale": 2.0}), with_kwargs=True
        )
        self.register_forward_hook(lambda _, args, outputs: outputs["y"].softmax(-1))


def test_what_a_module_has_of_its_own_stays() -> None:
    model = Registering()
    own, hooks = dict(vars(model)), list(model._forward_hooks.values())
    plan = parsimony.prune(model, {"x": torch.rand(2, 8)}, ratio=0.5)
    assert plan.proof is not None and model.first.out_features == 8
    assert vars(model).keys() == own.keys() and model.forward is own["forward"]
    assert list(model._forward_hooks.values()) == hooks
    assert Registered.known["Registering"] is Registering and type(model) is Registering


class Masking(nn.Module):
    """Has a parameter that nobody reads beside layers that run."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 16)
        self.mask_token = nn.Parameter(torch.zeros(1, 16))

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.first(x).relu())


def test_parameters_that_nobody_reads_fix_nothing() -> None:
    model = nn.Sequential(Masking(), nn.Linear(16, 3))
    plan = parsimony.prune(model, torch.rand(2, 8), ratio=0.5)
    assert model[0].first.out_features == model[0].last.out_features == 8
    assert not any("evaluation" in note for note in plan.notes)


class Both(Pooled):
    """Has a result that nobody reads, and a scale from a size."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x).relu()
        self.pooler(h)
        return self.last(h / h.shape[-1] ** 0.5)


def test_results_that_nobody_reads_beside_numbers_from_sizes() -> None:
    model = Both()
    plan = parsimony.prune(model, torch.rand(2, 8), ratio=0.5)
    assert plan.proof is not None and model.pooler.in_features == 8


def test_a_shared_configuration_stays_that_of_the_others() -> None:
    config = Config()
    teacher, student = Pretrained(config), Pretrained(config)
    state = torch.random.get_rng_state()
    parsimony.prune(student, torch.rand(2, 4, generator=torch.Generator()), ratio=0.5)
    assert teacher.config is config and vars(config) == vars(Config())
    assert student.config.hidden_size == 8
    assert torch.equal(torch.random.get_rng_state(), state)


class Offset(nn.Module):
    """Has a buffer that is not saved."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.middle = nn.Linear(8, 16), nn.Linear(16, 16)
        self.last = nn.Linear(16, 3)
        self.register_buffer("shift", torch.ones(16), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.middle(self.first(x) + self.shift).relu())


def test_buffers_that_are_not_saved_on_meta() -> None:
    model = Offset().to("meta")
    config = [{"op_names": ["middle"], "sparse_ratio": 0.5}]
    parsimony.prune(model, torch.rand(2, 8, device="meta"), config_list=config)
    assert (model.first.out_features, model.middle.out_features) == (16, 8)


def test_names_that_look_like_second_calls() -> None:
    model = nn.Sequential()
    model.add_module("a@1", Stepped())
    plan = parsimony.prune(model, torch.rand(2, 8), ratio=0.5)
    assert plan.proof is not None and model[0].dim == 8


class Rms(nn.Module):
    """A norm over channels that is no layer of torch's."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Llama(nn.Module):
    """A block with its own norm and a stored scale, built from a configuration."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config, self.head_dim, self.scaling = config, 8, 8**-0.5
        width = config.hidden_size
        self.embedding, self.norm = nn.Embedding(20, width), Rms(width)
        self.q, self.k, self.v = (nn.Linear(width, 16) for _ in range(3))
        self.o, self.last = nn.Linear(16, width), nn.Linear(width, 20)

    @classmethod
    def from_pretrained(cls, config: Config) -> "Llama":
        return cls(config)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embedding(tokens)
        x = self.norm(h)
        q, k, v = (
            layer(x).view(*x.shape[:2], -1, self.head_dim).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, scale=self.scaling)
        return self.last(h + self.o(y.transpose(1, 2).reshape(*x.shape[:2], -1)))


def test_stored_scales_beside_norms_that_mix() -> None:
    model = Llama(Config())
    plan = parsimony.prune(model, torch.randint(0, 20, (2, 5)), ratio=0.5)
    assert plan.proof is not None and "small network" in plan.proof.reference
    assert (model.head_dim, model.q.out_features, model.embedding.embedding_dim) == (4, 8, 8)


@pytest.mark.filterwarnings("ignore")
def test_quantized_layers_are_named() -> None:
    model = torch.ao.quantization.quantize_dynamic(convolutional(), {nn.Linear})
    with pytest.raises(parsimony.UnsupportedError, match="quantized layers cannot be pruned: 5;"):
        parsimony.prune(model, torch.rand(2, 3, 6, 6), ratio=0.5)


class Windows(nn.Module):
    """Writes into parts of a tensor, as the masks of shifted windows do."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        mask = x.new_zeros(x.shape[1])
        for count, part in enumerate((slice(0, 2), slice(2, 4), slice(4, None))):
            mask[part] = count
        return self.last(self.first(x).relu() * mask[:, None])


def test_writes_into_parts() -> None:
    model = Windows()
    plan = parsimony.prune(model, torch.rand(2, 6, 8), ratio=0.5)
    assert plan.proof is not None and model.first.out_features == 8
