"""Speech."""

import torch
import torch.nn.functional as F
from torch import nn

from .pieces import Attention, Block, Function, Module, Residual, Squeeze, Stack, mel, mlp, swapped


def conformer():
    half = Function(lambda x: 0.5 * x)
    feed = Residual(nn.LayerNorm(64), mlp(64, 128, nn.SiLU), half)
    attention = Residual(nn.LayerNorm(64), Attention(64, 4))
    point, depth = nn.Conv1d(64, 128, 1), nn.Conv1d(64, 64, 7, padding=3, groups=64)
    inner = point, nn.GLU(1), depth, nn.BatchNorm1d(64), nn.SiLU(), nn.Conv1d(64, 64, 1)
    return nn.Sequential(feed, attention, Residual(nn.LayerNorm(64), swapped(), *inner, swapped()))


def speech():
    """Strided convolutions before a transformer."""
    front = nn.Conv1d(40, 64, 3, 2, 1), nn.GELU(), nn.Conv1d(64, 64, 3, 2, 1), nn.GELU()
    return Stack(*front, swapped(), Block(64, 4), Block(64, 4), nn.Linear(64, 30), nn.LogSoftmax(-1))


class Whisper(Module):
    """Convolutions and waves of places before an encoder; a decoder of text that looks at it."""

    def __init__(self, width=64):
        self.one, self.two = nn.Conv1d(40, width, 3, padding=1), nn.Conv1d(width, width, 3, 2, 1)
        angle = torch.arange(16)[:, None] * 10000 ** (-torch.arange(width // 2) / (width // 2))
        self.register_buffer("waves", torch.cat((angle.sin(), angle.cos()), 1))
        self.encoder, self.norm = nn.Sequential(Block(width, 4), Block(width, 4)), nn.LayerNorm(width)
        self.tokens, self.places = nn.Embedding(97, width), nn.Parameter(torch.randn(7, width) * 0.02)
        self.layers, self.last = nn.ModuleList([CrossBlock(width), CrossBlock(width)]), nn.LayerNorm(width)

    def forward(self, sound, tokens):
        memory = F.gelu(self.two(F.gelu(self.one(sound)))).transpose(1, 2) + self.waves
        memory = self.norm(self.encoder(memory))
        x = self.tokens(tokens) + self.places
        for layer in self.layers:
            x = layer(x, memory)
        return self.last(x) @ self.tokens.weight.t()


class CrossBlock(Module):
    def __init__(self, width):
        self.own, self.cross, self.feed = Attention(width, 4, kind="causal"), Attention(width, 4), mlp(width, 2 * width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))

    def forward(self, x, memory):
        x = x + self.own(self.norms[0](x))
        x = x + self.cross(self.norms[1](x), memory)
        return x + self.feed(self.norms[2](x))


def wav2vec(width=48):
    """Strided convolutions of a wave, GroupNorm first; places by a grouped convolution."""
    first = nn.Conv1d(1, 32, 10, 5, bias=False), nn.GroupNorm(32, 32), nn.GELU()
    more = [layer for k in (3, 2) for layer in (nn.Conv1d(32, 32, k, 2, bias=False), nn.GELU())]
    features = Function(lambda x: x.unsqueeze(1)), *first, *more, swapped()
    project = nn.LayerNorm(32), nn.Linear(32, width)
    places = Residual(swapped(), nn.Conv1d(width, width, 9, padding=4, groups=4), nn.GELU(), swapped())
    blocks = Block(width, 4, post=True), Block(width, 4, post=True)
    return Stack(*features, *project, places, *blocks, nn.Linear(width, 30))


def quartznet():
    part = lambda i, o: (
        nn.Conv1d(i, i, 9, padding=4, groups=i, bias=False), nn.Conv1d(i, o, 1, bias=False), nn.BatchNorm1d(o),
    )
    block = lambda w: nn.Sequential(Residual(*part(w, w), nn.ReLU(), *part(w, w)), nn.ReLU())
    return nn.Sequential(*part(40, 48), nn.ReLU(), block(48), block(48), nn.Conv1d(48, 30, 1), nn.LogSoftmax(1))


def deep_speech(kind=nn.GRU):
    """Convolutions over a spectrogram, recurrent layers both ways, characters. CRNN reads text like this."""
    layer = lambda i, o, stride: (nn.Conv2d(i, o, 3, stride, 1), nn.BatchNorm2d(o), nn.Hardtanh(0, 20))
    front = Function(lambda x: x.unsqueeze(1)), *layer(1, 16, 2), *layer(16, 24, (2, 1))
    net = kind(24 * 10, 32, 2, batch_first=True, bidirectional=True), Function(lambda found: found[0])
    flat = Function(lambda x: x.permute(0, 3, 1, 2).flatten(2))
    return Stack(*front, flat, *net, nn.Linear(64, 30), nn.LogSoftmax(-1))


class Res2Layer(Module):
    def __init__(self, width, parts=4):
        self.convs = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(width // parts, width // parts, 3, padding=2, dilation=2), nn.ReLU(),
                nn.BatchNorm1d(width // parts),
            )
            for _ in range(parts - 1)
        )

    def forward(self, x):
        first, *parts = x.chunk(len(self.convs) + 1, 1)
        found, last = [first], 0
        for layer, part in zip(self.convs, parts):
            last = layer(part + last)
            found.append(last)
        return torch.cat(found, 1)


class SpeakerNet(Module):
    """ECAPA-TDNN: layers side by side, attention to mean and deviation over time."""

    def __init__(self, width=48):
        layer = lambda i, o, k=1: nn.Sequential(nn.Conv1d(i, o, k, padding=k // 2), nn.ReLU(), nn.BatchNorm1d(o))
        self.one = layer(40, width, 5)
        squeeze = lambda: Squeeze(width, 16, nn.Conv1d, 2)
        self.two, self.three = (
            Residual(layer(width, width), Res2Layer(width), layer(width, width), squeeze()) for _ in range(2)
        )
        self.all = nn.Conv1d(2 * width, 80, 1)
        self.attention = nn.Sequential(nn.Conv1d(240, 16, 1), nn.Tanh(), nn.Conv1d(16, 80, 1))
        self.norm, self.head = nn.BatchNorm1d(160), nn.Linear(160, 32)

    def forward(self, x):
        two = self.two(self.one(x))
        x = F.relu(self.all(torch.cat((two, self.three(two)), 1)))
        mean, dev = x.mean(2, keepdim=True), x.var(2, keepdim=True, unbiased=False).clamp(min=1e-4).sqrt()
        share = self.attention(torch.cat((x, mean.expand_as(x), dev.expand_as(x)), 1)).softmax(2)
        mean = (share * x).sum(2)
        dev = ((share * x**2).sum(2) - mean**2).clamp(min=1e-4).sqrt()
        return F.normalize(self.head(self.norm(torch.cat((mean, dev), 1))), dim=1)


class FastSpeech(Module):
    """Phonemes to a spectrogram: blocks with convolutions, predictors of pitch, frames of fixed length, a post-net."""

    def __init__(self, width=48):
        self.embed = nn.Embedding(97, width)
        self.encoder, self.decoder = conv_block(width), conv_block(width)
        self.pitch = nn.Sequential(nn.Conv1d(width, 32, 3, padding=1), nn.ReLU(), nn.Conv1d(32, 1, 1))
        self.bins, self.mel = nn.Conv1d(1, width, 3, padding=1), nn.Linear(width, 20)
        self.post = nn.Sequential(
            nn.Conv1d(20, 40, 5, padding=2), nn.BatchNorm1d(40), nn.Tanh(), nn.Conv1d(40, 20, 5, padding=2),
        )

    def forward(self, tokens):
        x = self.encoder(self.embed(tokens))
        pitch = self.pitch(x.transpose(1, 2))
        x = (x + self.bins(pitch).transpose(1, 2)).repeat_interleave(2, 1)
        mel = self.mel(self.decoder(x)).transpose(1, 2)
        return mel + self.post(mel), pitch


def conv_block(width):
    attention = Residual(Attention(width, 4)), nn.LayerNorm(width)
    feed = nn.Conv1d(width, 80, 5, padding=2), nn.ReLU(), nn.Conv1d(80, width, 1)
    return nn.Sequential(*attention, Residual(swapped(), *feed, swapped()), nn.LayerNorm(width))


NETWORKS = {
    "conformer": (lambda: Stack(conformer(), conformer()), lambda: (torch.randn(2, 12, 64),)),
    "speech": (speech, mel),
    "whisper": (Whisper, lambda: mel() + (torch.randint(0, 97, (2, 7)),)),
    "wav2vec2": (wav2vec, lambda: (torch.randn(2, 400),)),
    "quartznet": (quartznet, mel),
    "deep_speech": (deep_speech, mel),
    "crnn": (lambda: deep_speech(nn.LSTM), mel),
    "ecapa_tdnn": (SpeakerNet, mel),
    "fastspeech": (FastSpeech, lambda: (torch.randint(0, 97, (2, 12)),)),
}
