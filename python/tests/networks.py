"""Small networks, one for each way in which a module can be built."""

from __future__ import annotations

import dataclasses
from typing import Dict, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Mixture(nn.Module):
    """The two best of six experts for each row, each a matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(5, 6)
        self.experts = nn.Parameter(torch.randn(6, 5, 8))
        self.fc = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        gates, chosen = self.router(x).softmax(-1).topk(2)
        each = torch.matmul(x[:, None, None], self.experts[chosen]).squeeze(2)
        return self.fc((each * gates[..., None]).sum(1))


class Residual(nn.Module):
    """Convolutions, one of them depthwise, batch norms, a sum and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.wide = nn.Conv2d(8, 16, 1, bias=False)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.slope = nn.PReLU(16)
        self.narrow = nn.Conv2d(16, 8, 1)
        self.fc = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.stem(x)))
        x = x + self.narrow(self.slope(self.depthwise(self.wide(x))))
        return self.fc(x.mean((2, 3)))


class Transformer(nn.Module):
    """Embedding, positions as a parameter, torch's encoder layer, a width in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.width = 16
        self.embedding = nn.Embedding(20, 16)
        self.positions = nn.Parameter(torch.randn(1, 6, 16))
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.positions
        x = self.layer(x)
        return self.head(x.reshape(tokens.shape[0], 6, self.width).mean(1))


class Attention(nn.Module):
    """Attention by hand: heads and their size in attributes, the scale kept as a number."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads, self.head_dim = 4, 4
        self.scale = self.head_dim**-0.5
        self.inner = nn.Linear(6, 16)
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        qkv = self.qkv(self.inner(x)).reshape(batch, tokens, 3, self.num_heads, self.head_dim)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, tokens, -1))


class Recurrent(nn.Module):
    """An LSTM and a GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.LSTM(5, 8, 2, batch_first=True, bidirectional=True)
        self.second = nn.GRU(16, 6, batch_first=True)
        self.fc = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.second(self.first(x)[0])[0])


class Literal(nn.Module):
    """A size that forward writes as a number, behind a layer that can be pruned and one that cannot."""

    def __init__(self) -> None:
        super().__init__()
        self.free = nn.Conv2d(3, 8, 3)
        self.fixed = nn.Conv2d(8, 4, 3)
        self.fc = nn.Linear(64, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(F.relu(self.fixed(F.relu(self.free(x)))).view(-1, 64))


class Halves(nn.Module):
    """chunk gives equal halves, whatever the plan would keep of each."""

    def __init__(self) -> None:
        super().__init__()
        self.both = nn.Conv2d(3, 16, 1)
        self.first, self.second = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 1)
        self.last = nn.Conv2d(8, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.both(x).chunk(2, 1)
        return self.last(F.relu(self.first(F.relu(a)) + self.second(F.relu(b))))


class Auxiliary(nn.Module):
    """A second classifier that only training runs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 1)
        self.aux = nn.Sequential(nn.Conv2d(8, 6, 1), nn.Dropout(0.5), nn.Conv2d(6, 2, 1))
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor):  # type: ignore[no-untyped-def]
        x = F.relu(self.first(x))
        aux = self.aux(x) if self.training else None
        x = self.last(F.relu(self.second(x)))
        return (x, aux) if self.training else x


@dataclasses.dataclass
class Result:
    """An output of a class of its own."""

    logits: Tensor
    extra: Dict[str, Tuple[Tensor, Tensor]]


class Structured(nn.Module):
    """Named inputs, one of them optional, and outputs in a dataclass, a dictionary and a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(4, 12), nn.Linear(6, 12)
        self.out = nn.Linear(12, 3)

    def forward(self, left: Tensor, scale: float = 1.0, *, right: Tensor) -> Result:
        hidden = torch.tanh(self.left(left) + self.right(right)) * scale
        return Result(self.out(hidden), {"pair": (self.out(-hidden), hidden.sum(1))})


class Tied(nn.Module):
    """A language model whose input and output matrix are one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 8, padding_idx=0)
        self.hidden = nn.Linear(8, 8)
        self.decoder = nn.Linear(8, 11, bias=False)
        self.decoder.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.decoder(torch.tanh(self.hidden(self.embedding(tokens))))


class Norms(nn.Module):
    """Group norm, layer norm and instance norm over channels that are pruned."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.group = nn.Conv1d(3, 12, 3), nn.GroupNorm(3, 12)
        self.b, self.instance = nn.ConvTranspose1d(12, 8, 3), nn.InstanceNorm1d(8, affine=True)
        self.c, self.layer = nn.Linear(8, 8), nn.LayerNorm(8)
        self.d = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.group(self.a(x)))
        x = F.relu(self.instance(self.b(x))).transpose(1, 2)
        return self.d(F.relu(self.layer(self.c(x))))


def perceptron(normed=lambda layer: layer) -> nn.Sequential:  # type: ignore[no-untyped-def]
    """Three linear layers; `normed` changes the second."""
    return nn.Sequential(
        nn.Linear(4, 12), nn.ReLU(), normed(nn.Linear(12, 10)), nn.ReLU(), nn.Linear(10, 3)
    )


class Waves(nn.Module):
    """A time embedding, whose frequencies forward computes from literals."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.inner, self.head = name, nn.Linear(16, 24), nn.Linear(24, 3)

    def forward(self, time: Tensor) -> Tensor:
        literal = torch.linspace(0, 1, 8) if self.name == "linspace" else torch.arange(8) * -0.5
        angle = time[:, None] * literal.exp()
        return self.head(F.silu(self.inner(torch.cat((angle.cos(), angle.sin()), -1))))
