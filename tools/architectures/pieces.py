"""What several networks are made of, and their inputs."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Module(nn.Module):
    """One whose constructor begins with its parts: that of `nn.Module` has run before."""

    def __new__(cls, *_, **__):
        module = super().__new__(cls)
        nn.Module.__init__(module)
        return module


def inverted(inward, outward, expand=4, stride=1, kernel=3, squeeze=True):
    """MBConv: as MobileNets and EfficientNets have it."""
    hidden = expand * inward
    gate = [Squeeze(hidden, hidden // 8)] if squeeze else []
    body = conv(inward, hidden, 1), depthwise(hidden, kernel, stride), *gate, conv(hidden, outward, 1, act=None)
    return Residual(*body) if inward == outward and stride == 1 else nn.Sequential(*body)


def feed2d(width, hidden, act=nn.GELU):
    return nn.Sequential(nn.Conv2d(width, hidden, 1), act(), nn.Conv2d(hidden, width, 1))


def upsampled(x):
    return F.interpolate(x, scale_factor=2.0, mode="nearest")


def large():
    return image(64)


VOCABULARY = 97


def mel(n=32):
    return (torch.randn(2, 40, n),)


def heads_of(x, heads):
    b, n, width = x.shape
    return x.view(b, n, heads, width // heads).transpose(1, 2)


class Attention(Module):
    """Self or cross attention. `kind`: sdpa, mask, causal, plain, alibi, cosine, bias, linear."""

    def __init__(self, width, heads, kind="sdpa", groups=None, fused=False, context=None, rope=False):
        self.heads, self.groups, self.kind, self.rope = heads, groups or heads, kind, rope
        each = width // heads
        self.fused = fused
        if fused:
            self.qkv = nn.Linear(width, 3 * width)
        else:
            self.q = nn.Linear(width, width)
            self.k = nn.Linear(context or width, each * self.groups)
            self.v = nn.Linear(context or width, each * self.groups)
        self.out = nn.Linear(width, width)
        if kind == "bias":
            self.table = nn.Embedding(32, heads)
        if kind == "cosine":
            self.temperature = nn.Parameter(torch.ones(heads, 1, 1) * 5)

    def forward(self, x, context=None):
        b, n, width = x.shape
        if self.fused:
            q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        else:
            source = x if context is None else context
            q = heads_of(self.q(x), self.heads)
            k, v = (heads_of(f(source), self.groups) for f in (self.k, self.v))
        if self.rope:
            q, k = rotated(q), rotated(k)
        if self.groups != self.heads:
            k, v = (y.repeat_interleave(self.heads // self.groups, 1) for y in (k, v))
        y = self.attend(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, n, -1))

    def attend(self, q, k, v):
        if self.kind == "sdpa":
            return F.scaled_dot_product_attention(q, k, v)
        if self.kind == "causal":
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        n, m = q.shape[-2], k.shape[-2]
        if self.kind == "mask":
            seen = torch.arange(n)[:, None] >= torch.arange(m)[None, :]
            return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        if self.kind == "linear":
            q, k = F.elu(q) + 1, F.elu(k) + 1
            total = (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True)
            return (q @ (k.transpose(-2, -1) @ v)) / total
        if self.kind == "cosine":
            q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
            return ((q @ k.transpose(-2, -1)) * self.temperature).softmax(-1) @ v
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        distance = torch.arange(n)[:, None] - torch.arange(m)[None, :]
        if self.kind == "alibi":
            slopes = 2.0 ** -(torch.arange(self.heads) + 1.0)
            scores = scores - slopes[:, None, None] * distance.abs()
        if self.kind == "bias":
            near = distance.clamp(-15, 16) + 15
            scores = scores + self.table(near).permute(2, 0, 1)
        if self.kind == "plain":
            scores = scores.masked_fill(distance < 0, float("-inf"))
        return scores.softmax(-1) @ v


def rotated(x):
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] / 10000 ** (torch.arange(half) / half)
    a, b = x.chunk(2, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


class SwiGLU(Module):
    def __init__(self, width, hidden):
        self.gate, self.up = nn.Linear(width, hidden, False), nn.Linear(width, hidden, False)
        self.down = nn.Linear(hidden, width, False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def dense(*sizes, act=nn.ReLU, last=False):
    """Linear layers; an activation behind each, behind the last one only if `last`."""
    layers = [layer for i, o in zip(sizes, sizes[1:]) for layer in (nn.Linear(i, o), act())]
    return nn.Sequential(*layers if last else layers[:-1])


def mlp(width, hidden, activation=nn.GELU):
    return dense(width, hidden, width, act=activation)


class Block(Module):
    def __init__(self, width, heads, norm=nn.LayerNorm, feed=None, post=False, **attention):
        self.attention = Attention(width, heads, **attention)
        self.feed = feed(width, 2 * width) if feed else mlp(width, 2 * width)
        self.norm1, self.norm2, self.post = norm(width), norm(width), post

    def forward(self, x):
        if self.post:
            x = self.norm1(x + self.attention(x))
            return self.norm2(x + self.feed(x))
        x = x + self.attention(self.norm1(x))
        return x + self.feed(self.norm2(x))


class Language(Module):
    """Tokens in, logits out."""

    def __init__(self, width=64, heads=4, tied=False, positions=True, **block):
        self.tokens = nn.Embedding(97, width)
        self.positions = nn.Parameter(torch.randn(32, width) * 0.02) if positions else None
        self.blocks = nn.Sequential(*(Block(width, heads, **block) for _ in range(2)))
        self.norm = block.get("norm", nn.LayerNorm)(width)
        self.head = nn.Linear(width, 97, bias=False)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions[: x.shape[1]]
        return self.head(self.norm(self.blocks(x)))


class Vision(Module):
    """Patches, a class token, blocks."""

    def __init__(self, width=64, heads=4, token=True, **block):
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, width)) if token else None
        self.places = nn.Parameter(torch.randn(1, 16 + token, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads, **block) for _ in range(2)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        if self.token is not None:
            x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1)
        x = self.norm(self.blocks(x + self.places))
        return self.head(x[:, 0] if self.token is not None else x.mean(1))


class Stack(Module):
    """One after the other: PyTorch 2.6 cannot load what it exports of a bare Sequential."""

    def __init__(self, *parts):
        self.parts = nn.ModuleList(parts)

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x


def tokens(n=12):
    return (torch.randint(0, 97, (2, n)),)


def image(size=32):
    return (torch.randn(2, 3, size, size),)


def sequence(width, n=12):
    return (torch.randn(2, n, width),)


def conv(inward, outward, kernel=3, stride=1, groups=1, act=nn.SiLU, dilation=1):
    """A convolution that keeps the size, its BatchNorm, an activation."""
    padding = dilation * (kernel - 1) // 2
    layers = [nn.Conv2d(inward, outward, kernel, stride, padding, dilation, groups, False), nn.BatchNorm2d(outward)]
    return nn.Sequential(*layers, *([act()] if act else []))


def depthwise(width, kernel=3, stride=1, act=nn.SiLU):
    return conv(width, width, kernel, stride, width, act)


class Function(Module):
    """What has no weights: Function(lambda x: x.flatten(2))."""

    def __init__(self, function):
        self.function = function

    def forward(self, x):
        return self.function(x)


def turned(*order):
    return Function(lambda x: x.permute(order))


def swapped():
    """Tokens and channels change places."""
    return Function(lambda x: x.transpose(1, 2))


class Residual(Module):
    def __init__(self, *body):
        self.body = nn.Sequential(*body)

    def forward(self, x):
        return x + self.body(x)


class Squeeze(Module):
    """Squeeze and excitation."""

    def __init__(self, width, hidden, layer=nn.Conv2d, places=(2, 3)):
        self.gate = nn.Sequential(layer(width, hidden, 1), nn.ReLU(), layer(hidden, width, 1), nn.Sigmoid())
        self.places = places

    def forward(self, x):
        return x * self.gate(x.mean(self.places, keepdim=True))


class ChannelNorm(nn.LayerNorm):
    """LayerNorm over the channels of images."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class LayerScale(Module):
    def __init__(self, width):
        self.gamma = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x):
        return x * self.gamma


class Classifier(Module):
    """A trunk of convolutions and a linear layer over its mean."""

    def __init__(self, width, *trunk):
        self.trunk, self.head = nn.Sequential(*trunk), nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.trunk(x).mean((2, 3)))


class Tokens(Module):
    """Patches, places, blocks over tokens, a linear layer over their mean."""

    def __init__(self, width, *blocks):
        self.patches, self.places = nn.Conv2d(3, width, 8, 8), nn.Parameter(torch.randn(1, 16, width) * 0.02)
        self.blocks, self.norm, self.head = nn.Sequential(*blocks), nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        return self.head(self.norm(self.blocks(x)).mean(1))


def attended(q, k, v):
    """Of heads [b, n, heads, each]: [b, n, heads * each]."""
    y = F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)))
    return y.transpose(1, 2).flatten(2)
