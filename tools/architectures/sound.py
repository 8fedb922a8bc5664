"""Sound: waves in, waves out."""

import torch
import torch.nn.functional as F
from torch import nn

from .pieces import Module, Residual, mel


class WaveNet(Module):
    """Dilated gated convolutions, residuals, and the sum of what each layer gives aside."""

    def __init__(self, width=24, aside=32, dilations=(1, 2, 4)):
        self.inward = nn.Conv1d(1, width, 1)
        self.outward = nn.Sequential(nn.ReLU(), nn.Conv1d(aside, 40, 1), nn.ReLU(), nn.Conv1d(40, 16, 1))
        self.dilations, layers = dilations, nn.ModuleList
        self.filters = layers(nn.Conv1d(width, 2 * width, 2, dilation=d) for d in dilations)
        self.same = layers(nn.Conv1d(width, width, 1) for _ in dilations)
        self.aside = layers(nn.Conv1d(width, aside, 1) for _ in dilations)

    def forward(self, x):
        x, total = self.inward(x), 0
        for d, filter, same, aside in zip(self.dilations, self.filters, self.same, self.aside):
            a, b = filter(F.pad(x, (d, 0))).chunk(2, 1)
            y = a.tanh() * b.sigmoid()
            x, total = x + same(y), total + aside(y)
        return self.outward(total)


class TemporalBlock(Module):
    """TCN: two causal convolutions."""

    def __init__(self, inward, outward, dilation):
        self.reach = 2 * dilation
        self.one, self.two = (nn.Conv1d(i, outward, 3, dilation=dilation) for i in (inward, outward))
        self.short = nn.Conv1d(inward, outward, 1) if inward != outward else None

    def forward(self, x):
        y = F.relu(self.one(F.pad(x, (self.reach, 0))))
        y = F.relu(self.two(F.pad(y, (self.reach, 0))))
        return F.relu(y + (x if self.short is None else self.short(x)))


class ConvTasNet(Module):
    """An encoder of the wave, a mask for each speaker, a decoder."""

    def __init__(self, width=48, narrow=32, hidden=40, speakers=2):
        self.speakers, self.encoder = speakers, nn.Conv1d(1, width, 8, 4, bias=False)
        self.decoder = nn.ConvTranspose1d(width, 1, 8, 4, bias=False)
        block = lambda d: Residual(
            nn.Conv1d(narrow, hidden, 1), nn.PReLU(), nn.GroupNorm(1, hidden),
            nn.Conv1d(hidden, hidden, 3, 1, d, d, hidden), nn.PReLU(), nn.GroupNorm(1, hidden),
            nn.Conv1d(hidden, narrow, 1),
        )
        last = nn.PReLU(), nn.Conv1d(narrow, speakers * width, 1)
        self.net = nn.Sequential(nn.GroupNorm(1, width), nn.Conv1d(width, narrow, 1), block(1), block(2), *last)

    def forward(self, x):
        x = F.relu(self.encoder(x))
        b, c, n = x.shape
        masks = self.net(x).view(b, self.speakers, c, n).sigmoid()
        return self.decoder((masks * x.unsqueeze(1)).view(b * self.speakers, c, n)).view(b, self.speakers, -1)


class Fusion(Module):
    """HiFi-GAN: the mean of residual blocks of several kernels."""

    def __init__(self, width):
        block = lambda k, d: Residual(
            nn.LeakyReLU(0.1), nn.Conv1d(width, width, k, 1, d * (k - 1) // 2, d), nn.LeakyReLU(0.1),
            nn.Conv1d(width, width, k, 1, k // 2),
        )
        self.blocks = nn.ModuleList(nn.Sequential(block(k, 1), block(k, 3)) for k in (3, 5))

    def forward(self, x):
        return sum(block(x) for block in self.blocks) / len(self.blocks)


def hifi_gan():
    up = lambda i, o, k: (nn.LeakyReLU(0.1), nn.ConvTranspose1d(i, o, 2 * k, k, k // 2), Fusion(o))
    last = nn.LeakyReLU(), nn.Conv1d(24, 1, 7, padding=3), nn.Tanh()
    return nn.Sequential(nn.Conv1d(40, 64, 7, padding=3), *up(64, 32, 4), *up(32, 24, 2), *last)


class Demucs(Module):
    """A U-Net over the wave with GLU, an LSTM at the bottom."""

    def __init__(self, a=24, b=32):
        down = lambda i, o: nn.Sequential(nn.Conv1d(i, o, 8, 4, 2), nn.ReLU(), nn.Conv1d(o, 2 * o, 1), nn.GLU(1))
        self.one, self.two = down(1, a), down(a, b)
        self.net, self.linear = nn.LSTM(b, b, 1, bidirectional=True), nn.Linear(2 * b, b)
        wide = lambda w: nn.Sequential(nn.Conv1d(w, 2 * w, 3, padding=1), nn.GLU(1))
        self.back2 = nn.Sequential(wide(b), nn.ConvTranspose1d(b, a, 8, 4, 2), nn.ReLU())
        self.back1 = nn.Sequential(wide(a), nn.ConvTranspose1d(a, 2, 8, 4, 2))

    def forward(self, x):
        one = self.one(x)
        two = self.two(one)
        y = self.linear(self.net(two.permute(2, 0, 1))[0]).permute(1, 2, 0)
        return self.back1(one + self.back2(two + y))


class Codec(Module):
    """EnCodec: a convolutional encoder, residual codebooks, a decoder."""

    def __init__(self, width=32, codes=16, levels=2):
        unit = Residual(nn.ELU(), nn.Conv1d(24, 16, 3, padding=1), nn.ELU(), nn.Conv1d(16, 24, 1))
        down = nn.ELU(), nn.Conv1d(24, 40, 4, 2, 1), nn.ELU(), nn.Conv1d(40, width, 3, padding=1)
        self.encoder = nn.Sequential(nn.Conv1d(1, 24, 7, padding=3), unit, *down)
        self.books = nn.ParameterList(nn.Parameter(torch.randn(codes, width)) for _ in range(levels))
        self.decoder = nn.Sequential(
            nn.Conv1d(width, 40, 3, padding=1), nn.ELU(), nn.ConvTranspose1d(40, 24, 4, 2, 1), nn.ELU(),
            nn.Conv1d(24, 1, 7, padding=3),
        )

    def forward(self, x):
        rest = self.encoder(x).transpose(1, 2)
        total = 0
        for book in self.books:
            distance = rest.pow(2).sum(-1, keepdim=True) - 2 * rest @ book.t() + book.pow(2).sum(-1)
            code = F.embedding(distance.argmin(-1), book)
            rest, total = rest - code, total + code
        return self.decoder(total.transpose(1, 2))


def wave(n=320):
    return (torch.randn(2, 1, n),)


NETWORKS = {
    "wavenet": (WaveNet, lambda: wave(32)),
    "tcn": (lambda: nn.Sequential(TemporalBlock(40, 32, 1), TemporalBlock(32, 48, 2), nn.Conv1d(48, 5, 1)), mel),
    "conv_tasnet": (ConvTasNet, wave),
    "hifi_gan": (hifi_gan, lambda: mel(8)),
    "demucs": (Demucs, wave),
    "encodec": (Codec, wave),
}
