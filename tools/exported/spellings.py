"""Modules in which PyTorch's exporters write the same thing in ways of their own, for formats.py."""

import torch
import torch.nn.functional as F
from torch import nn

from architectures.pieces import Module, image


def rows():
    return torch.randn(1, 8, 16)


class Wide(Module):
    """A layer of 64 channels, what `inside` does with them, and a layer that reads them."""

    def __init__(self):
        self.a, self.b = nn.Linear(16, 64), nn.Linear(64, 10)

    def forward(self, x):
        return self.b(self.inside(self.a(x)))


class RowWritten(Wide):
    def inside(self, x):
        y = x.clone()
        y[:, 0] = x[:, 1] + x[:, 2]
        return y


class RowsWrittenAtIndices(Wide):
    def inside(self, x):
        y = x.clone()
        y[:, torch.tensor([1, 3])] = x[:, torch.tensor([0, 2])]
        return y


class WrittenByTurns(Wide):
    def inside(self, x):
        y = torch.zeros(1, 8, 64)
        y[:, ::2] = x[:, ::2]
        y[:, 1::2] = x[:, 1::2] * 2
        return y


class PartWrittenTwice(Wide):
    def inside(self, x):
        y = x.clone()
        rows = y[:, 1:6]
        rows[:, 0] = x[:, 7]
        rows[:, 2:4] = x[:, 4:6] * 2
        return y + rows.sum(1, keepdim=True)


class WrittenWhere(Wide):
    def inside(self, x):
        y = x * 2
        y[x.sum(-1) > 0] = self.b.weight[0]
        return y


class EmptyLike(Wide):
    def inside(self, x):
        y = torch.empty_like(x)
        y[:, :4] = x[:, 4:]
        y[:, 4:] = x[:, :4]
        return y


class Empty(Wide):
    def inside(self, x):
        y = torch.empty(1, 8, 64)
        y[:] = F.relu(x)
        return y


class EmptyJoined(Wide):
    def inside(self, x):
        return torch.cat([torch.tensor([]), F.relu(x)], -2)


class EmptyRest(Wide):
    def inside(self, x):
        rest = x[..., x.shape[-1] :]
        return torch.cat([F.relu(x), rest * rest], -1)


class Flagged(Wide):
    def __init__(self):
        super().__init__()
        self.register_buffer("flags", torch.tensor([True, False, True, True, False, False, True, False]))

    def inside(self, x):
        return x[:, self.flags]


class DrawnInVain(Wide):
    def inside(self, x):
        torch.rand(3)
        torch.randn_like(x)
        return x


class Remembers(Wide):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(1, 8, 64))

    def inside(self, x):
        self.state.copy_(x)
        return self.state + x


class RemembersWritten(Remembers):
    """Writes twice before another layer reads what the run before wrote."""

    def __init__(self):
        super().__init__()
        self.c = nn.Linear(64, 64)

    def inside(self, x):
        y = x + F.relu(self.c(self.state))
        self.state.mul_(0.9)
        self.state.copy_(F.relu(x))
        return y


class HalvedWeight(Module):
    def __init__(self):
        self.a, self.b = nn.Linear(16, 64), nn.Linear(64, 10)

    def forward(self, x):
        with torch.no_grad():
            self.b.weight.div_(2)
        return self.b(self.a(x))


class PooledFromChannelsLast(Module):
    def __init__(self):
        self.a, self.f1, self.f2 = nn.Conv2d(3, 64, 4, 4), nn.Linear(64, 256), nn.Linear(256, 64)
        self.h = nn.Linear(64, 10)

    def forward(self, x):
        x = self.f2(F.gelu(self.f1(self.a(x).permute(0, 2, 3, 1)))).permute(0, 3, 1, 2)
        return self.h(F.adaptive_avg_pool2d(x, 1).flatten(1))


class StandardisedByBatchNorm(nn.Conv2d):
    def __init__(self, i, o):
        super().__init__(i, o, 3)
        self.gain = nn.Parameter(torch.ones(o))

    def forward(self, x):
        w = F.batch_norm(self.weight.reshape(1, self.out_channels, -1), None, None, weight=self.gain, training=True)
        return F.conv2d(x, w.reshape_as(self.weight), self.bias)


class StandardisedByMoments(nn.Conv2d):
    def __init__(self, i, o):
        super().__init__(i, o, 3)

    def forward(self, x):
        variance, mean = torch.var_mean(self.weight, (1, 2, 3), keepdim=True, correction=0)
        return F.conv2d(x, (self.weight - mean) / torch.sqrt(variance + 1e-6), self.bias)


class Standardised(Module):
    def __init__(self, kind):
        self.a, self.b, self.c, self.h = kind(3, 32), kind(32, 64), kind(64, 64), nn.Linear(64, 10)

    def forward(self, x):
        return self.h(F.silu(self.c(F.silu(self.b(F.silu(self.a(x)))))).mean((2, 3)))


class NormalisedByBatch(Module):
    def __init__(self):
        self.a, self.b, self.h = nn.Conv2d(3, 32, 3), nn.Conv2d(32, 64, 3), nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(F.batch_norm(self.a(x), None, None, training=True))
        return self.h(F.relu(self.b(x)).mean((2, 3)))


class LargeWindow(Module):
    def __init__(self):
        self.a, self.h = nn.Conv2d(3, 64, 1), nn.Linear(64, 10)

    def forward(self, x):
        return self.h(F.avg_pool2d(F.relu(self.a(x)), 64, ceil_mode=True).flatten(1))


class PositionsResized(Module):
    def __init__(self, mode):
        self.a, self.h, self.mode = nn.Conv2d(3, 64, 4, 4), nn.Linear(64, 10), mode
        self.p = nn.Parameter(torch.randn(1, 64, 12, 12))

    def forward(self, x):
        x = self.a(x) + F.interpolate(self.p, (8, 8), mode=self.mode, antialias=True)
        return self.h(F.relu(x).mean((2, 3)))


class RotaryOfAll(Module):
    """Rotary positions of a part of each head that is all of it."""

    def __init__(self):
        self.qkv, self.o, self.h = nn.Linear(16, 96), nn.Linear(32, 16), nn.Linear(16, 10)
        self.register_buffer("cos", torch.rand(8, 16))
        self.register_buffer("sin", torch.rand(8, 16))

    def rotated(self, x):
        size = self.cos.shape[-1]
        turned, rest = x[..., :size], x[..., size:]
        half = size // 2
        other = torch.cat([-turned[..., half:], turned[..., :half]], -1)
        return torch.cat([turned * self.cos + other * self.sin, rest], -1)

    def forward(self, x):
        q, k, v = self.qkv(x).view(1, 8, 3, 2, 16).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(self.rotated(q), self.rotated(k), v)
        return self.h(self.o(y.transpose(1, 2).reshape(1, 8, 32)))


class Experts(Module):
    def __init__(self):
        self.a, self.h = nn.Linear(16, 64), nn.Linear(64, 10)
        self.up, self.down = nn.Parameter(torch.randn(4, 64, 128)), nn.Parameter(torch.randn(4, 128, 64))
        self.register_buffer("order", torch.tensor([3, 1, 7, 0, 2, 6, 5, 4]))
        self.register_buffer("ends", torch.tensor([2, 4, 6, 8], dtype=torch.int32))

    def forward(self, x):
        x = self.a(x[0])
        y = F.relu(F.grouped_mm(x[self.order], self.up, offs=self.ends))
        return self.h(x + F.grouped_mm(y, self.down, offs=self.ends))


@torch.library.custom_op("transformers::grouped_mm_fallback", mutates_args=())
def grouped_mm_fallback(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
    return F.grouped_mm(input, weight, offs=offs.int())


@grouped_mm_fallback.register_fake
def _(input, weight, offs):
    return input.new_empty(input.shape[0], weight.shape[2])


class ExpertsOfTransformers(Experts):
    """As transformers calls them: tokens sorted by expert, counted, and multiplied by an operator of its own."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(16, 4)

    def forward(self, x):
        experts, order = torch.sort(self.router(x[0]).argmax(-1))
        ends = torch.cumsum(torch.histc(experts.float(), bins=4, min=0, max=3), dim=0, dtype=torch.int32)
        x = self.a(x[0])
        return self.h(x + grouped_mm_fallback(F.relu(grouped_mm_fallback(x[order], self.up, ends)), self.down, ends))


class Waves(Wide):
    """Positions that are computed from flags alone, for two layers whose channels have nothing to do with each other."""

    def __init__(self):
        super().__init__()
        self.c, self.d = nn.Linear(16, 64), nn.Linear(64, 10)

    def forward(self, x):
        places = (~torch.zeros(8, dtype=torch.bool)).cumsum(0, dtype=torch.float32)
        waves = torch.sin(places[:, None] * (torch.arange(64) + 1) / 64)
        return self.b(self.a(x) + waves) + self.d(self.c(x) + waves)


def spellings():
    for kind in (
        RowWritten,
        RowsWrittenAtIndices,
        WrittenByTurns,
        PartWrittenTwice,
        WrittenWhere,
        EmptyLike,
        Empty,
        EmptyJoined,
        EmptyRest,
        Flagged,
        DrawnInVain,
        Remembers,
        RemembersWritten,
        HalvedWeight,
        RotaryOfAll,
        Experts,
        ExpertsOfTransformers,
        Waves,
    ):
        yield kind.__name__, kind, (rows(),)
    yield "PooledFromChannelsLast", PooledFromChannelsLast, image(64)
    yield "StandardisedByBatchNorm", lambda: Standardised(StandardisedByBatchNorm), image(32)
    yield "StandardisedByMoments", lambda: Standardised(StandardisedByMoments), image(32)
    yield "NormalisedByBatch", NormalisedByBatch, image(32)
    yield "LargeWindow", LargeWindow, image(8)
    for mode in ("bilinear", "bicubic"):
        yield f"PositionsResized_{mode}", lambda mode=mode: PositionsResized(mode), image(32)
