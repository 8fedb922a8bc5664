"""Convolutional networks that classify images."""

import torch
import torch.nn.functional as F
from torch import nn

from .pieces import (
    ChannelNorm, Classifier, LayerScale, Module, Residual, Squeeze, conv, depthwise, image,
    inverted, turned,
)


class ResponseNorm(Module):
    """Global response normalisation of ConvNeXt v2; channels last."""

    def __init__(self, width):
        self.gamma, self.beta = (nn.Parameter(torch.randn(1, 1, 1, width) * 0.1) for _ in range(2))

    def forward(self, x):
        size = x.norm(p=2, dim=(1, 2), keepdim=True)
        return self.gamma * (x * (size / (size.mean(-1, keepdim=True) + 1e-6))) + self.beta + x


def convnext_block(width):
    wide = 4 * width
    depth, response = nn.Conv2d(width, width, 7, padding=3, groups=width), ResponseNorm(wide)
    feed = nn.LayerNorm(width), nn.Linear(width, wide), nn.GELU(), response, nn.Linear(wide, width)
    return Residual(depth, turned(0, 2, 3, 1), *feed, turned(0, 3, 1, 2))


def convnext_v2():
    down = nn.Sequential(ChannelNorm(32), nn.Conv2d(32, 48, 2, 2))
    stem = nn.Sequential(nn.Conv2d(3, 32, 4, 4), ChannelNorm(32))
    return Classifier(48, stem, convnext_block(32), convnext_block(32), down, convnext_block(48), ChannelNorm(48))


def fused_inverted(inward, outward, expand=4, stride=1):
    body = conv(inward, expand * inward, 3, stride), conv(expand * inward, outward, 1, act=None)
    return Residual(*body) if inward == outward and stride == 1 else nn.Sequential(*body)


def efficientnet_v2():
    early = conv(3, 24, 3, 2), fused_inverted(24, 24), fused_inverted(24, 32, 4, 2), fused_inverted(32, 32)
    return Classifier(128, *early, inverted(32, 48, 4, 2), inverted(48, 48), conv(48, 128, 1))


def universal(inward, outward, expand=4, first=0, middle=0, stride=1):
    """The universal inverted bottleneck of MobileNetV4: either depthwise convolution may be absent."""
    hidden = expand * inward
    body = [depthwise(inward, first, 1 if middle else stride, None)] if first else []
    body += [conv(inward, hidden, 1, act=nn.ReLU)]
    body += [depthwise(hidden, middle, stride, nn.ReLU)] if middle else []
    body += [conv(hidden, outward, 1, act=None)]
    return Residual(*body) if inward == outward and stride == 1 else nn.Sequential(*body)


class MobileAttention(Module):
    """Multi-query attention of MobileNetV4: many queries, one key and value of a smaller image."""

    def __init__(self, width, heads, each):
        self.norm, self.heads = nn.BatchNorm2d(width), heads
        self.q, self.out = nn.Conv2d(width, heads * each, 1), nn.Conv2d(heads * each, width, 1)
        small = lambda: nn.Sequential(depthwise(width, 3, 2, None), nn.Conv2d(width, each, 1))
        self.k, self.v, self.scale = small(), small(), LayerScale(1)

    def forward(self, x):
        b, _, h, w = x.shape
        y = self.norm(x)
        q = self.q(y).reshape(b, self.heads, -1, h * w).transpose(2, 3)
        k, v = self.k(y).flatten(2).unsqueeze(1), self.v(y).flatten(2).unsqueeze(1)
        y = (q @ k * q.shape[-1] ** -0.5).softmax(-1) @ v.transpose(2, 3)
        return x + self.scale(self.out(y.transpose(2, 3).reshape(b, -1, h, w)))


def mobilenet_v4():
    early = conv(3, 24, 3, 2, act=nn.ReLU), fused_inverted(24, 32, 2, 2), universal(32, 48, 4, 5, 5, 2)
    late = universal(48, 48, 4, 3, 3), universal(48, 48, 2, 0, 0), universal(48, 48, 4, 3, 0)
    return Classifier(48, *early, *late, MobileAttention(48, 4, 16), universal(48, 48, 4, 0, 3))


class Parallel(Module):
    """Branches that are added, then an activation."""

    def __init__(self, *branches, act=nn.ReLU):
        self.branches, self.act = nn.ModuleList(branches), act()

    def forward(self, x):
        return self.act(sum(branch(x) for branch in self.branches))


def repvgg_block(inward, outward, stride=1, groups=1):
    same = [nn.BatchNorm2d(inward)] if inward == outward and stride == 1 else []
    branches = [conv(inward, outward, k, stride, groups, None) for k in (3, 1)]
    return Parallel(*branches, *same)


def repvgg():
    return Classifier(64, repvgg_block(3, 32, 2), repvgg_block(32, 32), repvgg_block(32, 64, 2), repvgg_block(64, 64))


def mobileone():
    blocks = []
    for inward, outward, stride in ((24, 32, 2), (32, 32, 1), (32, 48, 2)):
        blocks += [repvgg_block(inward, inward, stride, inward), Squeeze(inward, 8), one_by_one(inward, outward)]
    return Classifier(48, repvgg_block(3, 24, 2), *blocks)


def one_by_one(inward, outward):
    same = [nn.BatchNorm2d(inward)] if inward == outward else []
    return Parallel(conv(inward, outward, 1, act=None), conv(inward, outward, 1, act=None), *same)


class Ghost(Module):
    """Half of the channels from a convolution, the others from a cheap one over these."""

    def __init__(self, inward, outward, act=nn.ReLU):
        self.outward, half = outward, (outward + 1) // 2
        self.primary, self.cheap = conv(inward, half, 1, act=act), conv(half, half, 3, 1, half, act)

    def forward(self, x):
        x = self.primary(x)
        return torch.cat((x, self.cheap(x)), 1)[:, : self.outward]


class GhostBottleneck(Module):
    def __init__(self, inward, hidden, outward, stride=1, far=False):
        self.inward = Ghost(inward, hidden)
        self.far = nn.Sequential(conv(inward, hidden, 1, act=None), depthwise(hidden, 5, 1, None)) if far else None
        self.middle = nn.Sequential(depthwise(hidden, 3, stride, None), Squeeze(hidden, 16))
        self.outward = Ghost(hidden, outward, None)
        whole = inward == outward and stride == 1
        self.short = nn.Identity() if whole else nn.Sequential(
            depthwise(inward, 3, stride, None), conv(inward, outward, 1, act=None))

    def forward(self, x):
        y = self.inward(x)
        if self.far is not None:  # the attention of GhostNetV2, on a smaller image
            gate = self.far(F.avg_pool2d(x, 2)).sigmoid()
            y = y * F.interpolate(gate, size=y.shape[-2:], mode="nearest")
        return self.outward(self.middle(y)) + self.short(x)


def ghostnet(far=False):
    sizes = (16, 48, 24, 2), (24, 72, 24, 1), (24, 72, 40, 2)
    blocks = [GhostBottleneck(*each, far) for each in sizes]
    return Classifier(40, conv(3, 16, 3, 2, act=nn.ReLU), *blocks)


NETWORKS = {
    "convnext_v2": (convnext_v2, image),
    "efficientnet_v2": (efficientnet_v2, image),
    "mobilenet_v4": (mobilenet_v4, image),
    "repvgg": (repvgg, image),
    "mobileone": (mobileone, image),
    "ghostnet": (ghostnet, image),
    "ghostnet_v2": (lambda: ghostnet(far=True), image),
}
