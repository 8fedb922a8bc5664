"""Transformers that classify images."""

import torch
import torch.nn.functional as F
from torch import nn

from .pieces import Block, Classifier, Module, Vision, conv, image, inverted, mlp
from .pyramids import cait


def windows(x, size):
    """[b, h, w, c] to [b * windows, size * size, c]."""
    b, h, w, c = x.shape
    x = x.view(b, h // size, size, w // size, size, c).transpose(2, 3)
    return x.reshape(-1, size * size, c)


def whole(x, size, h, w):
    x = x.view(-1, h // size, w // size, size, size, x.shape[-1]).transpose(2, 3)
    return x.reshape(-1, h, w, x.shape[-1])


class CosineWindow(Module):
    """Swin v2: cosine attention with a bias that a small network makes of logarithmic distances."""

    def __init__(self, width, heads, size):
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.temperature = nn.Parameter(torch.full((heads, 1, 1), 2.0))
        self.bias = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, heads, bias=False))
        steps = torch.arange(1 - size, size).float()
        table = torch.stack(torch.meshgrid(steps, steps, indexing="ij"), -1)
        self.register_buffer("table", table.sign() * torch.log2(1 + table.abs()))
        place = torch.stack(torch.meshgrid(*[torch.arange(size)] * 2, indexing="ij")).flatten(1)
        apart = place[:, :, None] - place[:, None, :] + size - 1
        self.register_buffer("index", apart[0] * (2 * size - 1) + apart[1])

    def forward(self, x, mask=None):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        table = self.bias(self.table).flatten(0, 1)
        scores = scores * self.temperature.clamp(max=4.6).exp() + 16 * table[self.index].permute(2, 0, 1).sigmoid()
        if mask is not None:
            scores = (scores.view(-1, mask.shape[0], self.heads, n, n) + mask[:, None]).flatten(0, 1)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, -1))


class SwinBlock(Module):
    def __init__(self, width, heads=4, size=4, shift=0, side=8):
        self.size, self.shift, self.attention = size, shift, CosineWindow(width, heads, size)
        self.norm1, self.norm2, self.feed = nn.LayerNorm(width), nn.LayerNorm(width), mlp(width, 3 * width)
        if shift:
            region = (torch.arange(side) >= side - size).int() + (torch.arange(side) >= side - shift).int()
            region = windows((3 * region[:, None] + region)[None, :, :, None], size)[..., 0]
            self.register_buffer("mask", (region[:, :, None] != region[:, None, :]).float() * -100)

    def forward(self, x):
        _, h, w, _ = x.shape
        y = torch.roll(x, (-self.shift, -self.shift), (1, 2)) if self.shift else x
        y = self.attention(windows(y, self.size), self.mask if self.shift else None)
        y = whole(y, self.size, h, w)
        y = torch.roll(y, (self.shift, self.shift), (1, 2)) if self.shift else y
        x = x + self.norm1(y)
        return x + self.norm2(self.feed(x))


class SwinV2(Module):
    def __init__(self):
        self.patches, self.blocks = nn.Conv2d(3, 48, 4, 4), nn.Sequential(SwinBlock(48), SwinBlock(48, shift=2))
        self.merge, self.norm = nn.Linear(192, 64, bias=False), nn.LayerNorm(64)
        self.last, self.head = SwinBlock(64), nn.Linear(64, 10)

    def forward(self, x):
        x = self.blocks(self.patches(x).permute(0, 2, 3, 1))
        x = torch.cat((x[:, ::2, ::2], x[:, 1::2, ::2], x[:, ::2, 1::2], x[:, 1::2, 1::2]), -1)
        return self.head(self.last(self.norm(self.merge(x))).mean((1, 2)))


class MaxViTBlock(Module):
    """MBConv, attention within blocks, attention on a grid."""

    def __init__(self, width, size=4):
        self.size, self.first = size, inverted(width, width)
        self.block, self.grid = Block(width, 4, kind="sdpa"), Block(width, 4, kind="sdpa")

    def forward(self, x):
        x = self.first(x).permute(0, 2, 3, 1)
        _, h, w, _ = x.shape
        x = whole(self.block(windows(x, self.size)), self.size, h, w)
        # A grid: what lies h / size apart.
        b, c, s, t = x.shape[0], x.shape[3], self.size, h // self.size
        x = x.view(b, s, t, s, w // s, c).permute(0, 2, 4, 1, 3, 5).reshape(-1, s * s, c)
        x = self.grid(x).view(b, t, w // s, s, s, c).permute(0, 3, 1, 4, 2, 5)
        return x.reshape(b, h, w, c).permute(0, 3, 1, 2)


def maxvit():
    return Classifier(64, conv(3, 48, 3, 2, act=nn.GELU), inverted(48, 64, 2, 2), MaxViTBlock(64), MaxViTBlock(64))


NETWORKS = {
    "swin_v2": (SwinV2, image),
    "maxvit": (maxvit, image),
    "cait": (cait, image),
    "vit_fused": (lambda: Vision(fused=True), image),
    "vit_mean": (lambda: Vision(token=False), image),
    "vit_cosine": (lambda: Vision(kind="cosine"), image),
    "vit_linear_attention": (lambda: Vision(kind="linear"), image),
}
