"""Transformers over pyramids and mixtures of attention and convolutions."""

import torch
import torch.nn.functional as F
from torch import nn

from .pieces import (
    Attention, Block, ChannelNorm, Classifier, LayerScale, Module, Residual, SwiGLU, Tokens,
    Vision, conv, depthwise, feed2d, heads_of, image, inverted, mlp,
)


class RepMixer(Module):
    """FastViT's token mixer while it is trained."""

    def __init__(self, width):
        self.norm, self.mixer = nn.BatchNorm2d(width), nn.ModuleList([depthwise(width, k, 1, None) for k in (3, 1)])
        self.gamma = nn.Parameter(torch.rand(width, 1, 1))

    def forward(self, x):
        return x + self.gamma * (self.mixer[0](x) + self.mixer[1](x) - self.norm(x))


class ImageAttention(Module):
    """Attention over the places of an image."""

    def __init__(self, width, heads=4, **options):
        self.norm, self.attention = nn.BatchNorm2d(width), Attention(width, heads, **options)

    def forward(self, x):
        y = self.attention(self.norm(x).flatten(2).transpose(1, 2))
        return x + y.transpose(1, 2).reshape(x.shape)


def fastvit():
    feed = lambda width: Residual(depthwise(width, 7, 1, None), feed2d(width, 3 * width))
    early = conv(3, 32, 3, 2, act=nn.GELU), RepMixer(32), feed(32), RepMixer(32), feed(32)
    return Classifier(64, *early, depthwise(32, 7, 2), conv(32, 64, 1), ImageAttention(64, fused=True), feed(64))


class MobileViTBlock(Module):
    """Attention between the pixels at the same place of all 2 x 2 patches."""

    def __init__(self, width, inner):
        self.local = nn.Sequential(conv(width, width), nn.Conv2d(width, inner, 1, bias=False))
        self.blocks, self.norm = nn.Sequential(Block(inner, 4), Block(inner, 4)), nn.LayerNorm(inner)
        self.back, self.fuse = conv(inner, width, 1), conv(2 * width, width)

    def forward(self, x):
        y = self.local(x)
        b, c, h, w = y.shape
        y = y.reshape(b * c * h // 2, 2, w // 2, 2).transpose(1, 2).reshape(b, c, h * w // 4, 4).transpose(1, 3)
        y = self.norm(self.blocks(y.reshape(b * 4, h * w // 4, c))).reshape(b, 4, h * w // 4, c).transpose(1, 3)
        y = y.reshape(b * c * h // 2, w // 2, 2, 2).transpose(1, 2).reshape(b, c, h, w)
        return self.fuse(torch.cat((x, self.back(y)), 1))


def mobilevit():
    return Classifier(48, conv(3, 32, 3, 2), inverted(32, 48, 4, 2, squeeze=False), MobileViTBlock(48, 64))


class ReducedAttention(Module):
    """PVT v2 and SegFormer: keys and values from a smaller image."""

    def __init__(self, width, heads=4, ratio=2):
        self.heads, self.q, self.kv = heads, nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.small, self.norm = nn.Conv2d(width, width, ratio, ratio), nn.LayerNorm(width)
        self.out = nn.Linear(width, width)

    def forward(self, x, side):
        b, n, c = x.shape
        q = heads_of(self.q(x), self.heads)
        small = self.norm(self.small(x.transpose(1, 2).reshape(b, c, side, side)).flatten(2).transpose(1, 2))
        k, v = self.kv(small).reshape(b, -1, 2, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c))


class MixFeed(Module):
    """With a depthwise convolution between its layers."""

    def __init__(self, width, hidden):
        self.inward, self.outward = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.depth = nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden)

    def forward(self, x, side):
        y = self.inward(x)
        y = self.depth(y.transpose(1, 2).reshape(y.shape[0], -1, side, side)).flatten(2).transpose(1, 2)
        return self.outward(F.gelu(y))


class PyramidStage(Module):
    def __init__(self, inward, width, stride):
        self.patches, self.norm = nn.Conv2d(inward, width, 2 * stride - 1, stride, stride - 1), nn.LayerNorm(width)
        self.norm1, self.norm2, self.last = (nn.LayerNorm(width) for _ in range(3))
        self.attention, self.feed = ReducedAttention(width), MixFeed(width, 3 * width)

    def forward(self, x):
        x = self.patches(x)
        b, c, side, _ = x.shape
        x = self.norm(x.flatten(2).transpose(1, 2))
        x = x + self.attention(self.norm1(x), side)
        x = self.last(x + self.feed(self.norm2(x), side))
        return x.transpose(1, 2).reshape(b, c, side, side)


class SegFormer(Module):
    """A pyramid of transformers, a decoder of linear layers."""

    def __init__(self):
        self.stages = nn.ModuleList([PyramidStage(3, 32, 4), PyramidStage(32, 64, 2)])
        self.sides = nn.ModuleList([nn.Conv2d(32, 48, 1), nn.Conv2d(64, 48, 1)])
        self.fuse, self.head = conv(96, 48, 1, act=nn.ReLU), nn.Conv2d(48, 5, 1)

    def forward(self, x):
        found = []
        for stage, side in zip(self.stages, self.sides):
            x = stage(x)
            found.append(F.interpolate(side(x), size=(8, 8), mode="bilinear", align_corners=False))
        return self.head(self.fuse(torch.cat(found, 1)))


class Scaled(Module):
    """A transformer's block whose branches have scales of their own."""

    def __init__(self, width, feed=mlp, attention=None):
        self.attention, self.feed = attention or Attention(width, 4, fused=True), feed(width, 3 * width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.scale1, self.scale2 = LayerScale(width), LayerScale(width)

    def forward(self, x):
        x = x + self.scale1(self.attention(self.norm1(x)))
        return x + self.scale2(self.feed(self.norm2(x)))


class DINO(Module):
    """DINO v2: a class token, registers that are dropped at the end, scales, SwiGLU."""

    def __init__(self, width=64):
        self.patches, self.places = nn.Conv2d(3, width, 8, 8), nn.Parameter(torch.randn(1, 17, width) * 0.02)
        self.token, self.registers = nn.Parameter(torch.randn(1, 1, width)), nn.Parameter(torch.randn(1, 4, width))
        self.blocks, self.norm = nn.Sequential(Scaled(width, SwiGLU), Scaled(width, SwiGLU)), nn.LayerNorm(width)
        self.head = nn.Linear(2 * width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        token, registers = (y.expand(x.shape[0], -1, -1) for y in (self.token, self.registers))
        x = torch.cat((token, x), 1) + self.places
        x = self.norm(self.blocks(torch.cat((x[:, :1], registers, x[:, 1:]), 1)))
        return self.head(torch.cat((x[:, 0], x[:, 5:].mean(1)), 1))


class Distilled(Vision):
    """DeiT: a second token, with a head of its own."""

    def __init__(self):
        super().__init__()
        self.places, self.second = nn.Parameter(torch.randn(1, 18, 64) * 0.02), nn.Parameter(torch.randn(1, 1, 64))
        self.teacher = nn.Linear(64, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), self.second.expand(x.shape[0], -1, -1), x), 1)
        x = self.norm(self.blocks(x + self.places))
        return (self.head(x[:, 0]) + self.teacher(x[:, 1])) / 2


class TalkingHeads(Module):
    """CaiT: linear layers between the heads, before and after the softmax."""

    def __init__(self, width, heads=4):
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.before, self.after = nn.Linear(heads, heads), nn.Linear(heads, heads)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        scores = self.before((q @ k.transpose(-2, -1) * 0.25).permute(0, 2, 3, 1)).permute(0, 3, 1, 2).softmax(-1)
        scores = self.after(scores.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return self.out((scores @ v).transpose(1, 2).reshape(b, n, c))


class ClassAttention(Module):
    """Only the class token asks."""

    def __init__(self, width):
        self.token, self.attention = nn.Parameter(torch.randn(1, 1, width)), Attention(width, 4)
        self.norm, self.feed = nn.LayerNorm(width), mlp(width, 96)

    def forward(self, x):
        token = self.token.expand(x.shape[0], -1, -1)
        token = token + self.attention(token, self.norm(torch.cat((token, x), 1)))
        return token + self.feed(token)


def cait():
    return Tokens(
        64, Scaled(64, attention=TalkingHeads(64)), Scaled(64, attention=TalkingHeads(64)), ClassAttention(64),
    )


class CrossCovariance(Module):
    """XCiT: attention between channels."""

    def __init__(self, width, heads=4):
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.temperature = nn.Parameter(torch.ones(heads, 1, 1))

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 4, 1).unbind(0)
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        y = (q @ k.transpose(-2, -1) * self.temperature).softmax(-1) @ v
        return self.out(y.permute(0, 3, 1, 2).reshape(b, n, c))


def xcit():
    return Tokens(64, *(Scaled(64, attention=CrossCovariance(64)) for _ in range(2)))


class FocalModulation(Module):
    """FocalNet: contexts of growing size, each with a gate."""

    def __init__(self, width, levels=2):
        self.width, self.levels, self.inward = width, levels, nn.Conv2d(width, 2 * width + levels + 1, 1)
        self.layers = nn.ModuleList(depthwise(width, 3 + 2 * k, act=nn.GELU) for k in range(levels))
        self.mix, self.outward = nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        q, context, gates = self.inward(x).split((self.width, self.width, self.levels + 1), 1)
        total = 0
        for level, layer in enumerate(self.layers):
            context = layer(context)
            total = total + context * gates[:, level : level + 1]
        total = total + F.gelu(context.mean((2, 3), keepdim=True)) * gates[:, self.levels :]
        return self.outward(q * self.mix(total))


def focalnet():
    block = lambda: (Residual(ChannelNorm(48), FocalModulation(48)), Residual(ChannelNorm(48), feed2d(48, 96)))
    return Classifier(48, nn.Conv2d(3, 48, 4, 4), *block(), *block())


class BiasedAttention(Module):
    """LeViT: narrow keys, BatchNorm, a bias by distance that is looked up, a Hardswish before the output."""

    def __init__(self, width, heads=4, each=8, side=8):
        self.heads, self.each = heads, each
        self.qkv, self.out = conv(width, heads * each * 4, 1, act=None), conv(heads * each * 2, width, 1, act=None)
        self.biases = nn.Parameter(torch.randn(heads, side * side))
        place = torch.stack(torch.meshgrid(*[torch.arange(side)] * 2, indexing="ij")).flatten(1)
        apart = (place[:, :, None] - place[:, None, :]).abs()
        self.register_buffer("index", apart[0] * side + apart[1])

    def forward(self, x):
        b, _, h, w = x.shape
        y = self.qkv(x).reshape(b, self.heads, 4 * self.each, h * w)
        q, k, v = y.split((self.each, self.each, 2 * self.each), 2)
        scores = (q.transpose(-2, -1) @ k * self.each**-0.5 + self.biases[:, self.index]).softmax(-1)
        return x + self.out(F.hardswish((v @ scores.transpose(-2, -1)).reshape(b, -1, h, w)))


def levit():
    feed = lambda: Residual(conv(48, 96, 1, act=nn.Hardswish), conv(96, 48, 1, act=None))
    return Classifier(
        48, conv(3, 24, 3, 2), conv(24, 48, 3, 2), BiasedAttention(48), feed(), BiasedAttention(48), feed(),
    )


NETWORKS = {
    "fastvit": (fastvit, image),
    "mobilevit": (mobilevit, image),
    "pvt_v2": (lambda: Classifier(64, PyramidStage(3, 32, 4), PyramidStage(32, 64, 2)), image),
    "segformer": (SegFormer, image),
    "dino_v2": (DINO, image),
    "deit": (Distilled, image),
    "xcit": (xcit, image),
    "focalnet": (focalnet, image),
    "levit": (levit, image),
}
