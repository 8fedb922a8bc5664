"""What mixes tokens without attention, or mixes otherwise."""

import torch
import torch.nn.functional as F
from torch import nn

from .pieces import (
    Attention, Block, ChannelNorm, Classifier, Function, Module, Residual, Stack, Tokens, conv,
    depthwise, feed2d, image, mlp, swapped,
)


def metaformer(mixer):
    """PoolFormer and its relatives, by their token mixer."""
    block = lambda: (Residual(nn.GroupNorm(1, 48), mixer()), Residual(nn.GroupNorm(1, 48), feed2d(48, 144)))
    return Classifier(48, conv(3, 48, 3, 4, act=None), *block(), *block(), nn.GroupNorm(1, 48))


def pooling():
    return Function(lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False) - x)


def mixer_block(tokens, width):
    mixer = Residual(nn.LayerNorm(width), swapped(), mlp(tokens, 48), swapped())
    return nn.Sequential(mixer, Residual(nn.LayerNorm(width), mlp(width, 160)))


def mixer():
    patches = nn.Conv2d(3, 64, 8, 8), Function(lambda x: x.flatten(2)), swapped()
    blocks = mixer_block(16, 64), mixer_block(16, 64)
    return Stack(*patches, *blocks, Function(lambda x: x.mean(1)), nn.Linear(64, 10))


class ResMLPBlock(Module):
    """Affine maps instead of normalisations; a linear layer over tokens."""

    def __init__(self, width, tokens=16):
        self.mixer, self.feed = nn.Linear(tokens, tokens), mlp(width, 3 * width)
        for name in ("gain1", "shift1", "gain2", "shift2", "scale1", "scale2"):
            self.register_parameter(name, nn.Parameter(torch.randn(width)))

    def forward(self, x):
        y = x * self.gain1 + self.shift1
        x = x + self.scale1 * self.mixer(y.transpose(1, 2)).transpose(1, 2)
        return x + self.scale2 * self.feed(x * self.gain2 + self.shift2)


def fourier_mixer(width):
    """FNet: the real part of a Fourier transform over tokens and channels."""
    mixer = Function(lambda x: torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real)
    feed = Residual(mlp(width, 2 * width))
    return nn.Sequential(Residual(mixer), nn.LayerNorm(width), feed, nn.LayerNorm(width))


class GlobalFilter(Module):
    """GFNet: learned factors in the frequencies of an image."""

    def __init__(self, width, side=8):
        self.weight = nn.Parameter(torch.randn(width, side, side // 2 + 1, 2) * 0.02)

    def forward(self, x):
        found = torch.fft.rfft2(x, norm="ortho") * torch.view_as_complex(self.weight)
        return torch.fft.irfft2(found, s=x.shape[-2:], norm="ortho")


def gfnet():
    block = lambda: Residual(ChannelNorm(48), GlobalFilter(48), ChannelNorm(48), feed2d(48, 96))
    return Classifier(48, nn.Conv2d(3, 48, 4, 4), block(), block())


class GatedMLP(Module):
    def __init__(self, width=64, tokens=16):
        self.inward, self.outward = nn.Linear(width, 128), nn.Linear(64, width)
        self.norm, self.spatial = nn.LayerNorm(64), nn.Conv1d(tokens, tokens, 1)

    def forward(self, x):
        u, v = F.gelu(self.inward(x)).chunk(2, -1)
        return x + self.outward(u * self.spatial(self.norm(v)))


class Perceiver(Module):
    def __init__(self):
        self.latents = nn.Parameter(torch.randn(1, 8, 64))
        self.cross, self.block = Attention(64, 4, context=40), Block(64, 4)
        self.head = nn.Linear(64, 7)

    def forward(self, x):
        z = self.latents.expand(x.shape[0], -1, -1)
        return self.head(self.block(z + self.cross(z, x)).mean(1))


NETWORKS = {
    "poolformer": (lambda: metaformer(pooling), image),
    "convformer": (
        lambda: metaformer(lambda: nn.Sequential(conv(48, 96, 1), depthwise(96, 7), nn.Conv2d(96, 48, 1))), image,
    ),
    "resmlp": (lambda: Tokens(48, ResMLPBlock(48), ResMLPBlock(48)), image),
    "fnet": (lambda: Tokens(48, fourier_mixer(48), fourier_mixer(48)), image),
    "gfnet": (gfnet, image),
    "mixer": (mixer, image),
    "gated_mlp": (lambda: Stack(GatedMLP(), GatedMLP()), lambda: (torch.randn(2, 16, 64),)),
    "perceiver": (Perceiver, lambda: (torch.randn(2, 20, 40),)),
}
