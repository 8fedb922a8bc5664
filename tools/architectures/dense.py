"""Masks, depth, poses and larger images."""

import torch
import torch.nn.functional as F
from torch import nn

from .pieces import (
    Attention, Block, ChannelNorm, Module, Residual, conv, dense, image, large, mlp, upsampled,
)
from .vision import whole, windows


class WindowBlock(Module):
    """SAM's encoder: attention within windows, with a bias that is a product of queries and places."""

    def __init__(self, width, size, heads=4):
        self.size, self.heads, self.qkv, self.out = size, heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.high, self.wide = (nn.Parameter(torch.randn(2 * size - 1, width // heads) * 0.1) for _ in range(2))
        self.norm1, self.norm2, self.feed = nn.LayerNorm(width), nn.LayerNorm(width), mlp(width, 2 * width)
        self.register_buffer("apart", torch.arange(size)[:, None] - torch.arange(size)[None] + size - 1)

    def attend(self, x):
        b, n, c = x.shape
        s = self.size
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.reshape(3, b * self.heads, n, -1).unbind(0)
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
        places = q.reshape(-1, s, s, q.shape[-1])
        high = torch.einsum("bhwc,hkc->bhwk", places, self.high[self.apart])
        wide = torch.einsum("bhwc,wkc->bhwk", places, self.wide[self.apart])
        scores = (scores.view(-1, s, s, s, s) + high[..., :, None] + wide[..., None, :]).view(-1, n, n)
        y = (scores.softmax(-1) @ v).view(b, self.heads, n, -1).transpose(1, 2)
        return self.out(y.reshape(b, n, -1))

    def forward(self, x):
        _, h, w, _ = x.shape
        x = x + whole(self.attend(windows(self.norm1(x), self.size)), self.size, h, w)
        return x + self.feed(self.norm2(x))


class TwoWay(Module):
    """SAM's decoder: tokens look at the image, then the image at the tokens."""

    def __init__(self, width):
        self.own, self.look, self.back = (Attention(width, 4) for _ in range(3))
        self.feed = mlp(width, 96, nn.ReLU)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))

    def forward(self, tokens, pixels):
        tokens = self.norms[0](tokens + self.own(tokens))
        tokens = self.norms[1](tokens + self.look(tokens, pixels))
        tokens = self.norms[2](tokens + self.feed(tokens))
        return tokens, self.norms[3](pixels + self.back(pixels, tokens))


class SAM(Module):
    """An image and points; masks as products of upscaled features and of what small networks make of tokens."""

    def __init__(self, width=64, inner=48):
        self.patches, self.places = nn.Conv2d(3, width, 8, 8), nn.Parameter(torch.randn(1, 8, 8, width) * 0.02)
        self.blocks = nn.Sequential(WindowBlock(width, 4), WindowBlock(width, 8))
        self.neck = nn.Sequential(nn.Conv2d(width, inner, 1, bias=False), ChannelNorm(inner),
                                  nn.Conv2d(inner, inner, 3, padding=1, bias=False), ChannelNorm(inner))
        self.register_buffer("waves", torch.randn(2, inner // 2))
        self.labels, self.tokens = nn.Embedding(2, inner), nn.Parameter(torch.randn(4, inner))
        self.layer = TwoWay(inner)
        self.up = nn.Sequential(
            nn.ConvTranspose2d(inner, 24, 2, 2), ChannelNorm(24), nn.GELU(), nn.ConvTranspose2d(24, 16, 2, 2),
            nn.GELU(),
        )
        self.hyper = nn.ModuleList(dense(inner, 40, 16) for _ in range(3))
        self.quality = dense(inner, 40, 3)

    def forward(self, x, points, labels):
        x = self.neck(self.blocks(self.patches(x).permute(0, 2, 3, 1) + self.places).permute(0, 3, 1, 2))
        b, c, h, w = x.shape
        angle = 6.28 * (2 * points - 1) @ self.waves
        prompt = torch.cat((angle.sin(), angle.cos()), -1) + self.labels(labels)
        tokens = torch.cat((self.tokens.expand(b, -1, -1), prompt), 1)
        tokens, pixels = self.layer(tokens, x.flatten(2).transpose(1, 2))
        up = self.up(pixels.transpose(1, 2).reshape(b, c, h, w))
        hyper = torch.stack([net(tokens[:, i + 1]) for i, net in enumerate(self.hyper)], 1)
        masks = (hyper @ up.flatten(2)).view(b, 3, 4 * h, 4 * w)
        return masks, self.quality(tokens[:, 0])


class MaskFormer(Module):
    """Queries that see only where their last mask was; masks by einsum."""

    def __init__(self, width=48):
        self.trunk = nn.Sequential(conv(3, 32, 3, 2), conv(32, width, 3, 2))
        self.pixels = nn.Conv2d(width, width, 3, padding=1)
        self.queries, self.embed = nn.Parameter(torch.randn(6, width)), mlp(width, 64, nn.ReLU)
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.norm, self.feed = nn.LayerNorm(width), Residual(nn.LayerNorm(width), mlp(width, 96))
        self.classes = nn.Linear(width, 6)

    def forward(self, x):
        features = self.trunk(x)
        pixels, memory = self.pixels(features), features.flatten(2).transpose(1, 2)
        q = self.queries.expand(x.shape[0], -1, -1)
        mask = torch.einsum("bqc,bchw->bqhw", self.embed(q), pixels)
        scores = self.q(q) @ self.k(memory).transpose(1, 2) / 7
        scores = scores.masked_fill(mask.flatten(2).sigmoid() < 0.1, -1e4)
        q = self.feed(self.norm(q + scores.softmax(-1) @ self.v(memory)))
        return self.classes(q), torch.einsum("bqc,bchw->bqhw", self.embed(q), pixels)


class DenseTransformer(Module):
    """DPT: features of two depths of a ViT as images again, fused."""

    def __init__(self, width=64):
        self.patches, self.places = nn.Conv2d(3, width, 8, 8), nn.Parameter(torch.randn(1, 65, width) * 0.02)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.one, self.two = Block(width, 4), Block(width, 4)
        self.large, self.small = nn.ConvTranspose2d(width, 32, 2, 2), nn.Conv2d(width, 32, 3, padding=1)
        self.read = nn.Sequential(nn.Linear(2 * width, width), nn.GELU())
        self.fuse, self.head = Residual(nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1)), nn.Conv2d(32, 1, 3, padding=1)

    def image(self, x):
        x = self.read(torch.cat((x[:, 1:], x[:, :1].expand(-1, x.shape[1] - 1, -1)), -1))
        return x.transpose(1, 2).reshape(x.shape[0], -1, 8, 8)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = self.one(torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1) + self.places)
        small = F.interpolate(
            self.small(self.image(self.two(x))), scale_factor=2.0, mode="bilinear", align_corners=True,
        )
        return F.relu(self.head(self.fuse(self.large(self.image(x)) + small)))


class UNet(Module):
    """`gates`: Attention U-Net."""

    def __init__(self, gates=False, widths=(24, 32, 48)):
        a, b, c = widths
        twice = lambda i, o: nn.Sequential(conv(i, o, act=nn.ReLU), conv(o, o, act=nn.ReLU))
        self.one, self.two, self.three = twice(3, a), twice(a, b), twice(b, c)
        self.up2, self.up1 = nn.ConvTranspose2d(c, b, 2, 2), nn.ConvTranspose2d(b, a, 2, 2)
        self.back2, self.back1, self.head = twice(2 * b, b), twice(2 * a, a), nn.Conv2d(a, 5, 1)
        self.gates = nn.ModuleList([Gate(b), Gate(a)]) if gates else None

    def forward(self, x):
        one = self.one(x)
        two = self.two(F.max_pool2d(one, 2))
        x = self.up2(self.three(F.max_pool2d(two, 2)))
        x = self.back2(torch.cat((self.gates[0](x, two) if self.gates else two, x), 1))
        x = self.up1(x)
        return self.head(self.back1(torch.cat((self.gates[1](x, one) if self.gates else one, x), 1)))


class Gate(Module):
    def __init__(self, width):
        self.a, self.b = conv(width, width // 2, 1, act=None), conv(width, width // 2, 1, act=None)
        self.share = nn.Sequential(nn.ReLU(), nn.Conv2d(width // 2, 1, 1), nn.BatchNorm2d(1), nn.Sigmoid())

    def forward(self, x, y):
        return y * self.share(self.a(x) + self.b(y))


class Hourglass(Module):
    def __init__(self, width=48, depth=2):
        block = lambda: Residual(
            nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, 24, 1), nn.ReLU(), nn.Conv2d(24, width, 3, padding=1),
        )
        self.side, self.inward, self.outward = block(), block(), block()
        self.inner = Hourglass(width, depth - 1) if depth > 1 else block()

    def forward(self, x):
        y = self.outward(self.inner(self.inward(F.max_pool2d(x, 2))))
        return self.side(x) + upsampled(y)


def hourglass():
    return nn.Sequential(conv(3, 48, 3, 2), Hourglass(), nn.Conv2d(48, 7, 1))


def edsr(width=32):
    block = lambda: Residual(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1))
    body = Residual(block(), block(), nn.Conv2d(width, width, 3, padding=1))
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), body, nn.Conv2d(width, 4 * width, 3, padding=1),
                         nn.PixelShuffle(2), nn.Conv2d(width, 3, 3, padding=1))


class DenseResidual(Module):
    """ESRGAN: every layer sees all before it; scaled residuals."""

    def __init__(self, width=32, growth=16):
        self.layers = nn.ModuleList(nn.Conv2d(width + i * growth, growth, 3, padding=1) for i in range(3))
        self.last = nn.Conv2d(width + 3 * growth, width, 3, padding=1)

    def forward(self, x):
        found = [x]
        for layer in self.layers:
            found.append(F.leaky_relu(layer(torch.cat(found, 1)), 0.2))
        return x + 0.2 * self.last(torch.cat(found, 1))


def esrgan():
    return nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), DenseResidual(), DenseResidual(), nn.Upsample(scale_factor=2),
                         nn.Conv2d(32, 32, 3, padding=1), nn.LeakyReLU(0.2), nn.Conv2d(32, 3, 3, padding=1))


def unet3d():
    layer = lambda i, o, s=1: nn.Sequential(nn.Conv3d(i, o, 3, s, 1), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU())
    return nn.Sequential(
        layer(1, 24), layer(24, 32, 2), layer(32, 32), nn.ConvTranspose3d(32, 24, 2, 2), layer(24, 24),
        nn.Conv3d(24, 4, 1),
    )


NETWORKS = {
    "sam": (SAM, lambda: large() + (torch.rand(2, 3, 2), torch.randint(0, 2, (2, 3)))),
    "mask2former": (MaskFormer, image),
    "dpt": (DenseTransformer, large),
    "unet": (UNet, image),
    "attention_unet": (lambda: UNet(gates=True), image),
    "hourglass": (hourglass, image),
    "edsr": (edsr, image),
    "esrgan": (esrgan, image),
    "unet_3d": (unet3d, lambda: (torch.randn(1, 1, 8, 16, 16),)),
}
