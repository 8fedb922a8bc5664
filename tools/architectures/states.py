"""Models with a state: recurrent networks, state spaces, linear attention, long convolutions."""

import torch
import torch.nn.functional as F
from torch import nn

from .language import Decoder, Layer, decoder
from .pieces import Module, heads_of, tokens


class Mamba(Module):
    """A causal depthwise convolution and a selective scan, step by step."""

    def __init__(self, width, state=8, rank=4):
        self.hidden, self.state, self.rank = 2 * width, state, rank
        self.inward = nn.Linear(width, 2 * self.hidden, bias=False)
        self.outward = nn.Linear(self.hidden, width, bias=False)
        self.conv = nn.Conv1d(self.hidden, self.hidden, 4, padding=3, groups=self.hidden)
        self.select, self.step = nn.Linear(self.hidden, rank + 2 * state, bias=False), nn.Linear(rank, self.hidden)
        self.log = nn.Parameter(torch.arange(1.0, state + 1).log().repeat(self.hidden, 1))
        self.skip = nn.Parameter(torch.ones(self.hidden))

    def forward(self, x):
        n = x.shape[1]
        x, gate = self.inward(x).chunk(2, -1)
        x = F.silu(self.conv(x.transpose(1, 2))[..., :n]).transpose(1, 2)
        step, b, c = self.select(x).split((self.rank, self.state, self.state), -1)
        step = F.softplus(self.step(step)).unsqueeze(-1)
        decay, drive = torch.exp(-step * self.log.exp()), step * b.unsqueeze(2) * x.unsqueeze(-1)
        h, found = torch.zeros_like(drive[:, 0]), []
        for t in range(n):
            h = decay[:, t] * h + drive[:, t]
            found.append((h * c[:, t].unsqueeze(1)).sum(-1))
        return self.outward((torch.stack(found, 1) + x * self.skip) * F.silu(gate))


class Mamba2(Module):
    """Heads with one decay each, as a product of matrices; one projection for all parts; a gated norm."""

    def __init__(self, width, heads=8, state=8):
        self.hidden, self.heads, self.state = 2 * width, heads, state
        self.inward = nn.Linear(width, 2 * self.hidden + 2 * state + heads, bias=False)
        self.conv = nn.Conv1d(
            self.hidden + 2 * state, self.hidden + 2 * state, 4, padding=3, groups=self.hidden + 2 * state,
        )
        self.log, self.bias, self.skip = (nn.Parameter(torch.rand(heads)) for _ in range(3))
        self.norm, self.outward = nn.RMSNorm(self.hidden), nn.Linear(self.hidden, width, bias=False)

    def forward(self, x):
        n = x.shape[1]
        gate, x, step = self.inward(x).split((self.hidden, self.hidden + 2 * self.state, self.heads), -1)
        x = F.silu(self.conv(x.transpose(1, 2))[..., :n]).transpose(1, 2)
        x, b, c = x.split((self.hidden, self.state, self.state), -1)
        step = F.softplus(step + self.bias)
        total = (-step * self.log.exp()).cumsum(1).transpose(1, 2)  # [b, heads, n]
        decay = (total.unsqueeze(-1) - total.unsqueeze(-2)).tril().exp().tril()
        scores = (c @ b.transpose(1, 2)).unsqueeze(1) * decay
        heads = heads_of(x, self.heads)
        y = scores @ (heads * step.transpose(1, 2).unsqueeze(-1)) + heads * self.skip.view(-1, 1, 1)
        return self.outward(self.norm(y.transpose(1, 2).flatten(2) * F.silu(gate)))


class GatedLinear(Module):
    """Gated linear attention: a decay for each key that the token decides, step by step."""

    def __init__(self, width, heads=4):
        self.heads, self.q = heads, nn.Linear(width, width // 2, bias=False)
        self.k = nn.Linear(width, width // 2, bias=False)
        self.v, self.gate, self.out = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.decay = nn.Sequential(nn.Linear(width, 16, bias=False), nn.Linear(16, width // 2))
        self.norm = nn.RMSNorm(width // heads)

    def forward(self, x):
        q, k, v = (heads_of(f(x), self.heads) for f in (self.q, self.k, self.v))
        decay = heads_of(F.logsigmoid(self.decay(x)) / 16, self.heads).exp()
        state, found = 0, []
        for t in range(x.shape[1]):
            state = state * decay[:, :, t].unsqueeze(-1) + k[:, :, t].unsqueeze(-1) * v[:, :, t].unsqueeze(-2)
            found.append((q[:, :, t].unsqueeze(-2) @ state).squeeze(-2))
        y = self.norm(torch.stack(found, 1))
        return self.out(y.flatten(2) * F.silu(self.gate(x)))


class Retention(Module):
    """RetNet, parallel form: a decay for each head, GroupNorm over heads, a gate."""

    def __init__(self, width, heads=4):
        self.heads, self.norm = heads, nn.GroupNorm(heads, width)
        self.q, self.k, self.v, self.gate, self.out = (nn.Linear(width, width, bias=False) for _ in range(5))
        self.register_buffer("decay", 1 - 2.0 ** (-5 - torch.arange(heads).float()))

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = (heads_of(f(x), self.heads) for f in (self.q, self.k, self.v))
        apart = (torch.arange(n)[:, None] - torch.arange(n)[None]).clamp(min=0)
        decay = (self.decay.view(-1, 1, 1) ** apart).tril()
        y = (q @ k.transpose(-2, -1) * decay) @ v
        y = self.norm(y.transpose(1, 2).reshape(b * n, c, 1)).view(b, n, c)
        return self.out(y * F.silu(self.gate(x)))


def shifted(x):
    return F.pad(x, (0, 0, 1, -1))


class TimeMix(Module):
    """RWKV v4: receptance, keys and values of each token and the one before; a stable running average."""

    def __init__(self, width):
        self.mixes = nn.Parameter(torch.rand(3, 1, 1, width))
        self.decay, self.first = nn.Parameter(torch.randn(width)), nn.Parameter(torch.randn(width))
        self.r, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x):
        before = shifted(x)
        r, k, v = (f(x * mix + before * (1 - mix)) for f, mix in zip((self.r, self.k, self.v), self.mixes))
        above, below, top = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0]), torch.full_like(x[:, 0], -1e4)
        found = []
        for t in range(x.shape[1]):
            most = torch.maximum(top, self.first + k[:, t])
            a, b = torch.exp(top - most), torch.exp(self.first + k[:, t] - most)
            found.append((a * above + b * v[:, t]) / (a * below + b))
            most = torch.maximum(top - self.decay.exp(), k[:, t])
            a, b = torch.exp(top - self.decay.exp() - most), torch.exp(k[:, t] - most)
            above, below, top = a * above + b * v[:, t], a * below + b, most
        return self.out(r.sigmoid() * torch.stack(found, 1))


class ChannelMix(Module):
    def __init__(self, width, hidden):
        self.mix_k, self.mix_r = nn.Parameter(torch.rand(width)), nn.Parameter(torch.rand(width))
        self.k, self.v = nn.Linear(width, hidden, bias=False), nn.Linear(hidden, width, bias=False)
        self.r = nn.Linear(width, width, bias=False)

    def forward(self, x):
        before = shifted(x)
        k = torch.relu(self.k(x * self.mix_k + before * (1 - self.mix_k))) ** 2
        return self.r(x * self.mix_r + before * (1 - self.mix_r)).sigmoid() * self.v(k)


class LongConvolution(Module):
    """Hyena: gates, and a convolution as long as the text whose kernel a small network makes of places."""

    def __init__(self, width, length=12):
        self.inward, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.short = nn.Conv1d(3 * width, 3 * width, 3, padding=2, groups=3 * width)
        self.filter = nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.Linear(16, width))
        time = torch.linspace(0, 1, length)[:, None]
        self.register_buffer(
            "places", torch.cat((time, *(f(6.28 * k * time) for k in (1, 2) for f in (torch.sin, torch.cos))), -1),
        )

    def forward(self, x):
        n = x.shape[1]
        a, b, v = self.short(self.inward(x).transpose(1, 2))[..., :n].chunk(3, 1)
        kernel = self.filter(self.places).t().flip(-1).unsqueeze(1)
        y = F.conv1d(F.pad(v * b, (n - 1, 0)), kernel, groups=v.shape[1])
        return self.out((y * a).transpose(1, 2))


class ExponentialLSTM(Module):
    """xLSTM's mLSTM, parallel form: gates whose products are differences of sums of logarithms."""

    def __init__(self, width, heads=4):
        self.heads, self.gates, self.norm = heads, nn.Linear(width, 2 * heads), nn.LayerNorm(width // heads)
        self.q, self.k, self.v, self.o, self.out = (nn.Linear(width, width) for _ in range(5))

    def forward(self, x):
        n = x.shape[1]
        q, k, v = (heads_of(f(x), self.heads) for f in (self.q, self.k, self.v))
        inward, keep = self.gates(x).transpose(1, 2).chunk(2, 1)
        total = F.logsigmoid(keep).cumsum(-1)
        weight = total.unsqueeze(-1) - total.unsqueeze(-2) + inward.unsqueeze(-2)
        weight = weight.masked_fill(torch.ones(n, n).triu(1).bool(), float("-inf"))
        most = weight.amax(-1, keepdim=True)
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5 * (weight - most).exp()
        y = scores @ v / torch.maximum(scores.sum(-1, keepdim=True).abs(), (-most).exp())
        y = self.norm(y).transpose(1, 2).flatten(2)
        return self.out(self.o(x).sigmoid() * y)


NETWORKS = {
    "mamba": (lambda: Decoder(32, [Layer(32, Mamba(32), nn.Identity()) for _ in range(2)]), lambda: tokens(6)),
    "mamba_2": (lambda: decoder(Mamba2, width=48), tokens),
    "gated_linear_attention": (lambda: decoder(GatedLinear, width=48), lambda: tokens(6)),
    "retnet": (lambda: decoder(Retention, width=48), tokens),
    "rwkv": (lambda: decoder(TimeMix, ChannelMix, width=48), lambda: tokens(6)),
    "hyena": (lambda: decoder(LongConvolution, width=48), tokens),
    "xlstm": (lambda: decoder(ExponentialLSTM, width=48), tokens),
}
