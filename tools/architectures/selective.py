"""Convolutional networks that weigh their channels, kernels or scales."""

import torch
import torch.nn.functional as F
from torch import nn

from .pieces import Classifier, Module, Residual, conv, feed2d, image


class SplitAttention(Module):
    """ResNeSt: two groups of channels, mixed by a softmax between them."""

    def __init__(self, width):
        self.conv = conv(width, 2 * width, 3, 1, 2, nn.ReLU)
        self.small, self.large = conv(width, 16, 1, act=nn.ReLU), nn.Conv2d(16, 2 * width, 1)

    def forward(self, x):
        b, width, h, w = x.shape
        y = self.conv(x).reshape(b, 2, width, h, w)
        gate = self.large(self.small(y.sum(1).mean((2, 3), keepdim=True)))
        return (y * gate.reshape(b, 2, width, 1, 1).softmax(1)).sum(1)


def resnest():
    block = lambda: Residual(conv(64, 32, 1, act=nn.ReLU), SplitAttention(32), conv(32, 64, 1, act=None))
    return Classifier(64, conv(3, 64, 3, 2), block(), nn.ReLU(), block(), nn.ReLU())


class SelectiveKernel(Module):
    def __init__(self, width):
        self.paths = nn.ModuleList(conv(width, width, 3, 1, 8, nn.ReLU, d) for d in (1, 2))
        self.small = nn.Sequential(nn.Linear(width, 16), nn.ReLU())
        self.gates = nn.ModuleList(nn.Linear(16, width) for _ in range(2))

    def forward(self, x):
        paths = torch.stack([path(x) for path in self.paths], 1)
        small = self.small(paths.sum(1).mean((2, 3)))
        gates = torch.stack([gate(small) for gate in self.gates], 1).softmax(1)
        return (paths * gates[..., None, None]).sum(1)


def sknet():
    block = lambda: Residual(conv(64, 32, 1, act=nn.ReLU), SelectiveKernel(32), conv(32, 64, 1, act=None))
    return Classifier(64, conv(3, 64, 3, 2), block(), nn.ReLU(), block())


class Scales(Module):
    """Res2Net: parts of the channels, each of which also sees the part before."""

    def __init__(self, width, parts=4):
        self.convs = nn.ModuleList(conv(width // parts, width // parts, act=nn.ReLU) for _ in range(parts - 1))

    def forward(self, x):
        first, *parts = x.chunk(len(self.convs) + 1, 1)
        found = [first]
        for layer, part in zip(self.convs, parts):
            found.append(layer(part if len(found) == 1 else part + found[-1]))
        return torch.cat(found, 1)


def res2net():
    block = lambda: Residual(conv(48, 64, 1, act=nn.ReLU), Scales(64), conv(64, 48, 1, act=None))
    return Classifier(48, conv(3, 48, 3, 2), block(), nn.ReLU(), block())


class HighResolution(Module):
    """HRNet: two resolutions side by side that exchange features."""

    def __init__(self, a=24, b=48):
        self.a, self.b = Residual(conv(a, a), conv(a, a, act=None)), Residual(conv(b, b), conv(b, b, act=None))
        self.down, self.up = conv(a, b, 3, 2, act=None), conv(b, a, 1, act=None)

    def forward(self, pair):
        a, b = self.a(pair[0]), self.b(pair[1])
        up = F.interpolate(self.up(b), scale_factor=2.0, mode="nearest")
        return F.relu(a + up), F.relu(b + self.down(a))


class HRNet(Module):
    def __init__(self):
        self.stem, self.down = conv(3, 24, 3, 2), conv(24, 48, 3, 2)
        self.one, self.two, self.head = HighResolution(), HighResolution(), nn.Conv2d(72, 5, 1)

    def forward(self, x):
        x = self.stem(x)
        a, b = self.two(self.one((x, self.down(x))))
        return self.head(torch.cat((a, F.interpolate(b, scale_factor=2.0, mode="bilinear")), 1))


class Inception(Module):
    """InceptionNeXt's token mixer: depthwise convolutions over parts of the channels."""

    def __init__(self, width, part=8):
        self.sizes = (width - 3 * part, part, part, part)
        self.square = nn.Conv2d(part, part, 3, padding=1, groups=part)
        self.wide = nn.Conv2d(part, part, (1, 7), padding=(0, 3), groups=part)
        self.high = nn.Conv2d(part, part, (7, 1), padding=(3, 0), groups=part)

    def forward(self, x):
        same, a, b, c = x.split(self.sizes, 1)
        return torch.cat((same, self.square(a), self.wide(b), self.high(c)), 1)


def inception_next():
    block = lambda: Residual(Inception(48), nn.BatchNorm2d(48), feed2d(48, 144))
    return Classifier(48, nn.Conv2d(3, 48, 4, 4), block(), block())


class LargeKernel(Module):
    """VAN: attention made of convolutions."""

    def __init__(self, width):
        self.inward, self.outward, self.point = (nn.Conv2d(width, width, 1) for _ in range(3))
        self.near = nn.Conv2d(width, width, 5, padding=2, groups=width)
        self.far = nn.Conv2d(width, width, 7, padding=9, dilation=3, groups=width)

    def forward(self, x):
        y = F.gelu(self.inward(x))
        return x + self.outward(y * self.point(self.far(self.near(y))))


def van():
    block = lambda: (nn.BatchNorm2d(48), LargeKernel(48), Residual(nn.BatchNorm2d(48), feed2d(48, 96)))
    return Classifier(48, conv(3, 48, 3, 2), *block(), *block())


class BlockAttention(Module):
    """CBAM: a gate over channels, then one over places."""

    def __init__(self, width):
        self.feed, self.place = feed2d(width, width // 4, nn.ReLU), nn.Conv2d(2, 1, 7, padding=3)

    def forward(self, x):
        x = x * (self.feed(F.adaptive_avg_pool2d(x, 1)) + self.feed(F.adaptive_max_pool2d(x, 1))).sigmoid()
        both = torch.cat((x.amax(1, keepdim=True), x.mean(1, keepdim=True)), 1)
        return x * self.place(both).sigmoid()


class NeighbourGate(Module):
    """ECA: a convolution along the channels."""

    def __init__(self):
        self.conv = nn.Conv1d(1, 1, 3, padding=1, bias=False)

    def forward(self, x):
        gate = self.conv(x.mean((2, 3)).unsqueeze(1)).sigmoid()
        return x * gate.transpose(1, 2).unsqueeze(-1)


def gated_resnet(gate):
    block = lambda: (Residual(conv(48, 64), conv(64, 48, act=None), gate()), nn.ReLU())
    return Classifier(48, conv(3, 48, 3, 2), *block(), *block())


class StandardConv(nn.Conv2d):
    """NFNet: the kernel is standardised whenever it is used."""

    def __init__(self, inward, outward, kernel=3):
        super().__init__(inward, outward, kernel, padding=kernel // 2)
        self.gain = nn.Parameter(torch.rand(outward, 1, 1, 1) + 0.5)

    def forward(self, x):
        mean, var = self.weight.mean((1, 2, 3), keepdim=True), self.weight.var((1, 2, 3), keepdim=True)
        weight = (self.weight - mean) * torch.rsqrt(var + 1e-4) * self.gain
        return F.conv2d(x, weight, self.bias, padding=self.padding)


def nfnet():
    block = lambda: Residual(
        nn.GELU(), StandardConv(48, 32, 1), nn.GELU(), StandardConv(32, 32), StandardConv(32, 48, 1),
    )
    return Classifier(48, conv(3, 48, 3, 2, act=None), block(), block(), nn.GELU())


class MixedKernels(Module):
    """CondConv: the kernel is a mixture that each image chooses."""

    def __init__(self, inward, outward, count=3):
        self.router = nn.Linear(inward, count)
        self.weights = nn.Parameter(torch.randn(count, outward, inward, 3, 3) * 0.1)

    def forward(self, x):
        b, inward, h, w = x.shape
        share = self.router(x.mean((2, 3))).sigmoid()
        weight = torch.einsum("be,eoihw->boihw", share, self.weights).flatten(0, 1)
        y = F.conv2d(x.reshape(1, b * inward, h, w), weight, padding=1, groups=b)
        return y.reshape(b, -1, h, w)


def condconv():
    return Classifier(32, conv(3, 24, 3, 2), MixedKernels(24, 48), nn.BatchNorm2d(48), nn.ReLU(), MixedKernels(48, 32))


NETWORKS = {
    "resnest": (resnest, image),
    "sknet": (sknet, image),
    "res2net": (res2net, image),
    "hrnet": (HRNet, image),
    "inception_next": (inception_next, image),
    "van": (van, image),
    "cbam_resnet": (lambda: gated_resnet(lambda: BlockAttention(48)), image),
    "eca_resnet": (lambda: gated_resnet(NeighbourGate), image),
    "nfnet": (nfnet, image),
    "condconv": (condconv, image),
}
