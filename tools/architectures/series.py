"""Time series, control, proteins, video."""

import torch
import torch.nn.functional as F
from torch import nn

from .pieces import Attention, Block, Module, Residual, Stack, conv, dense, mlp


class NBeats(Module):
    """Blocks that explain a part of the past and add to the forecast."""

    def __init__(self, past=24, future=6):
        self.nets = nn.ModuleList(dense(past, 48, 40, last=True) for _ in range(2))
        self.back = nn.ModuleList(nn.Linear(40, past) for _ in range(2))
        self.front = nn.ModuleList(nn.Linear(40, future) for _ in range(2))

    def forward(self, x):
        total = 0
        for net, back, front in zip(self.nets, self.back, self.front):
            y = net(x)
            x, total = x - back(y), total + front(y)
        return total


class PatchTST(Module):
    """Patches of each series as tokens, standardised by their own mean and deviation."""

    def __init__(self, width=48, patch=8, stride=4):
        self.patch, self.stride, self.inward = patch, stride, nn.Linear(patch, width)
        self.places = nn.Parameter(torch.randn(1, 5, width) * 0.02)
        self.blocks, self.head = nn.Sequential(Block(width, 4), Block(width, 4)), nn.Linear(5 * width, 6)

    def forward(self, x):
        mean, dev = x.mean(2, keepdim=True), x.var(2, keepdim=True, unbiased=False).add(1e-5).sqrt()
        b, c, _ = x.shape
        y = ((x - mean) / dev).unfold(2, self.patch, self.stride)
        y = self.blocks(self.inward(y.reshape(b * c, 5, self.patch)) + self.places)
        return self.head(y.reshape(b, c, -1)) * dev + mean


def gated_residual(width, hidden=40):
    """Of the temporal fusion transformer."""
    gate = dense(width, hidden, width, act=nn.ELU), nn.Linear(width, 2 * width), nn.GLU()
    return nn.Sequential(Residual(*gate), nn.LayerNorm(width))


class FusionTransformer(Module):
    """Variables, each with a network of its own, that a softmax selects; an LSTM; attention."""

    def __init__(self, width=32, variables=3):
        self.inward = nn.ModuleList(nn.Linear(1, width) for _ in range(variables))
        self.nets = nn.ModuleList(gated_residual(width) for _ in range(variables))
        self.select, self.net = nn.Linear(variables * width, variables), nn.LSTM(width, width, batch_first=True)
        self.norm, self.attention = nn.LayerNorm(width), Attention(width, 4, kind="plain")
        self.last, self.head = gated_residual(width), nn.Linear(width, 3)

    def forward(self, x):
        all = [layer(x[..., k : k + 1]) for k, layer in enumerate(self.inward)]
        share = self.select(torch.cat(all, -1)).softmax(-1).unsqueeze(-2)
        y = (torch.stack([net(one) for net, one in zip(self.nets, all)], -1) * share).sum(-1)
        y = self.norm(y + self.net(y)[0])
        return self.head(self.last(y + self.attention(y)))


class Dueling(Module):
    """DQN with a value and advantages."""

    def __init__(self):
        self.trunk = nn.Sequential(nn.Conv2d(4, 24, 4, 2), nn.ReLU(), nn.Conv2d(24, 32, 3), nn.ReLU(), nn.Flatten())
        self.value, self.advantage = dense(32 * 25, 40, 1), dense(32 * 25, 48, 6)

    def forward(self, x):
        x = self.trunk(x)
        advantage = self.advantage(x)
        return self.value(x) + advantage - advantage.mean(1, keepdim=True)


class DecisionTransformer(Module):
    """Returns, states and actions in turn as tokens."""

    def __init__(self, width=48):
        self.returns, self.states, self.actions = nn.Linear(1, width), nn.Linear(7, width), nn.Linear(3, width)
        self.time, self.norm = nn.Embedding(20, width), nn.LayerNorm(width)
        self.head = nn.Sequential(nn.Linear(width, 3), nn.Tanh())
        self.blocks = nn.Sequential(*(Block(width, 4, kind="causal") for _ in range(2)))

    def forward(self, returns, states, actions, times):
        b, n = times.shape
        time = self.time(times)
        x = torch.stack((self.returns(returns) + time, self.states(states) + time, self.actions(actions) + time), 2)
        x = self.blocks(self.norm(x.reshape(b, 3 * n, -1)))
        return self.head(x.reshape(b, n, 3, -1)[:, :, 1])


class Triangle(Module):
    """AlphaFold: an edge learns from the two other edges of all its triangles."""

    def __init__(self, width=32, hidden=24):
        self.norm, self.last, self.out = nn.LayerNorm(width), nn.LayerNorm(hidden), nn.Linear(hidden, width)
        self.a, self.b, self.gate_a, self.gate_b = (nn.Linear(width, hidden) for _ in range(4))
        self.gate = nn.Linear(width, width)

    def forward(self, x):
        y = self.norm(x)
        a, b = self.a(y) * self.gate_a(y).sigmoid(), self.b(y) * self.gate_b(y).sigmoid()
        z = torch.einsum("bikc,bjkc->bijc", a, b)
        return x + self.out(self.last(z)) * self.gate(y).sigmoid()


class Evoformer(Module):
    """Rows of an alignment, pairs of places; outer products from one to the other."""

    def __init__(self, width=48, pairs=32):
        self.inward, self.pairs, self.bias = nn.Linear(20, width), nn.Linear(20, pairs), nn.Linear(pairs, 4, bias=False)
        self.norm, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width, bias=False)
        self.gate, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.feed, self.a = Residual(nn.LayerNorm(width), mlp(width, 96)), nn.Linear(width, 8)
        self.b, self.outer = nn.Linear(width, 8), nn.Linear(64, pairs)
        self.triangle, self.head = Triangle(pairs), nn.Linear(pairs, 6)

    def forward(self, rows):
        x = self.inward(rows)
        first = self.pairs(rows[:, 0])
        z = first.unsqueeze(2) + first.unsqueeze(1)
        b, s, n, c = x.shape
        y = self.norm(x)
        q, k, v = self.qkv(y).view(b, s, n, 3, 4, -1).permute(3, 0, 1, 4, 2, 5).unbind(0)
        scores = q @ k.transpose(-2, -1) / 3.5 + self.bias(z).permute(0, 3, 1, 2).unsqueeze(1)
        y = (scores.softmax(-1) @ v).transpose(2, 3).reshape(b, s, n, c) * self.gate(y).sigmoid()
        x = self.feed(x + self.out(y))
        outer = torch.einsum("bsic,bsjd->bijcd", self.a(x), self.b(x)) / s
        return self.head(self.triangle(z + self.outer(outer.flatten(3))))


class Siamese(Module):
    """SiamFC: features of one image are the kernel over the other's."""

    def __init__(self):
        self.trunk = nn.Sequential(conv(3, 24, 3, 2), conv(24, 32), nn.Conv2d(32, 40, 1))

    def forward(self, template, search):
        a, b = self.trunk(template), self.trunk(search)
        n, c, h, w = b.shape
        return F.conv2d(b.reshape(1, n * c, h, w), a, groups=n).transpose(0, 1) * 0.01


class SlowFast(Module):
    """Few frames with many channels, many frames with few, joined by strided convolutions."""

    def __init__(self):
        layer = lambda i, o, t=1, s=1: nn.Sequential(
            nn.Conv3d(i, o, (t, 3, 3), (1, s, s), (t // 2, 1, 1), bias=False), nn.BatchNorm3d(o), nn.ReLU(),
        )
        self.slow1, self.fast1 = layer(3, 32, 1, 2), layer(3, 8, 5, 2)
        self.join = nn.Conv3d(8, 16, (5, 1, 1), (4, 1, 1), (2, 0, 0))
        self.slow2, self.fast2, self.head = layer(48, 48), layer(8, 12, 3), nn.Linear(60, 5)

    def forward(self, x):
        fast = self.fast1(x)
        slow = self.slow2(torch.cat((self.slow1(x[:, :, ::4]), self.join(fast)), 1))
        return self.head(torch.cat((slow.mean((2, 3, 4)), self.fast2(fast).mean((2, 3, 4))), 1))


class TimeSformer(Module):
    """Attention over time, then over space."""

    def __init__(self, width=48):
        self.patches, self.places = nn.Conv2d(3, width, 8, 8), nn.Parameter(torch.randn(1, 1, 16, width) * 0.02)
        self.time, self.space, self.head = Block(width, 4), Block(width, 4), nn.Linear(width, 5)

    def forward(self, x):
        b, t = x.shape[:2]
        x = self.patches(x.flatten(0, 1)).flatten(2).transpose(1, 2)
        n, c = x.shape[1:]
        x = x.view(b, t, n, c) + self.places
        x = self.time(x.transpose(1, 2).reshape(b * n, t, c)).view(b, n, t, c).transpose(1, 2)
        return self.head(self.space(x.reshape(b * t, n, c)).view(b, t, n, c).mean((1, 2)))


def series():
    return (torch.randn(2, 3, 24),)


NETWORKS = {
    "n_beats": (NBeats, lambda: (torch.randn(2, 24),)),
    "patch_tst": (PatchTST, series),
    # Each series is one token.
    "itransformer": (lambda: Stack(nn.Linear(24, 48), Block(48, 4), Block(48, 4), nn.Linear(48, 6)), series),
    "tft": (FusionTransformer, lambda: (torch.randn(2, 12, 3),)),
    "dueling_dqn": (Dueling, lambda: (torch.randn(2, 4, 16, 16),)),
    "decision_transformer": (
        DecisionTransformer,
        lambda: (torch.randn(2, 5, 1), torch.randn(2, 5, 7), torch.randn(2, 5, 3), torch.randint(0, 20, (2, 5))),
    ),
    "evoformer": (Evoformer, lambda: (torch.randn(2, 3, 7, 20),)),
    "siamese": (Siamese, lambda: (torch.randn(2, 3, 16, 16), torch.randn(2, 3, 32, 32))),
    "slowfast": (SlowFast, lambda: (torch.randn(2, 3, 8, 16, 16),)),
    "timesformer": (TimeSformer, lambda: (torch.randn(2, 4, 3, 32, 32),)),
}
