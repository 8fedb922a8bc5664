"""Diffusion and the autoencoders around it."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .fields import noisy
from .pieces import Attention, Module, Residual, heads_of, mlp


def waves(t, width):
    """Of a time, sines and cosines."""
    angle = t[:, None] * torch.exp(torch.arange(width // 2) * (-math.log(10000) / (width // 2)))
    return torch.cat((angle.cos(), angle.sin()), -1)


class TimedBlock(Module):
    """GroupNorm, SiLU, convolution, twice; the time is added between."""

    def __init__(self, inward, outward, time, scaled=False):
        self.one = nn.Sequential(nn.GroupNorm(8, inward), nn.SiLU(), nn.Conv2d(inward, outward, 3, padding=1))
        self.time, self.scaled = nn.Linear(time, outward * (1 + scaled)), scaled
        self.norm = nn.GroupNorm(8, outward)
        self.two = nn.Sequential(nn.SiLU(), nn.Conv2d(outward, outward, 3, padding=1))
        self.short = nn.Conv2d(inward, outward, 1) if inward != outward else nn.Identity()

    def forward(self, x, time):
        y, t = self.one(x), self.time(F.silu(time))[:, :, None, None]
        if self.scaled:
            scale, shift = t.chunk(2, 1)
            y = self.norm(y) * (1 + scale) + shift
        else:
            y = self.norm(y + t)
        return self.short(x) + self.two(y)


class GatedFeed(Module):
    """GEGLU from one layer."""

    def __init__(self, width, hidden):
        self.inward, self.outward = nn.Linear(width, 2 * hidden), nn.Linear(hidden, width)

    def forward(self, x):
        x, gate = self.inward(x).chunk(2, -1)
        return self.outward(x * F.gelu(gate))


class SpatialTransformer(Module):
    """Self-attention, attention to a text, GEGLU, over the places of an image."""

    def __init__(self, width, context):
        self.norm, self.inward = nn.GroupNorm(8, width), nn.Conv2d(width, width, 1)
        self.outward = nn.Conv2d(width, width, 1)
        self.own, self.cross = Attention(width, 4), Attention(width, 4, context=context)
        self.feed = GatedFeed(width, 2 * width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))

    def forward(self, x, context):
        b, c, h, w = x.shape
        y = self.inward(self.norm(x)).flatten(2).transpose(1, 2)
        y = y + self.own(self.norms[0](y))
        y = y + self.cross(self.norms[1](y), context)
        y = y + self.feed(self.norms[2](y))
        return x + self.outward(y.transpose(1, 2).reshape(b, c, h, w))


class DiffusionUNet(Module):
    """Stable Diffusion's U-Net: time embedding, skips, cross-attention."""

    def __init__(self, a=32, b=48, context=40, scaled=False):
        time = 64
        self.width, self.time = a, nn.Sequential(nn.Linear(a, time), nn.SiLU(), nn.Linear(time, time))
        self.inward, self.down = nn.Conv2d(4, a, 3, padding=1), nn.Conv2d(a, a, 3, 2, 1)
        self.up = nn.Conv2d(b, b, 3, padding=1)
        block = lambda i, o: TimedBlock(i, o, time, scaled)
        self.one, self.two, self.middle = block(a, a), block(a, b), block(b, b)
        self.back2, self.back1 = block(2 * b, b), block(a + b, a)
        self.look1, self.look2 = SpatialTransformer(a, context), SpatialTransformer(b, context)
        self.look3 = SpatialTransformer(a, context)
        self.out = nn.Sequential(nn.GroupNorm(8, a), nn.SiLU(), nn.Conv2d(a, 4, 3, padding=1))

    def forward(self, x, t, context):
        t = self.time(waves(t, self.width))
        one = self.look1(self.one(self.inward(x), t), context)
        two = self.look2(self.two(self.down(one), t), context)
        x = self.back2(torch.cat((self.middle(two, t), two), 1), t)
        x = self.up(F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.out(self.look3(self.back1(torch.cat((x, one), 1), t), context))


class DiTBlock(Module):
    """Norms without weights, whose scales, shifts and gates the condition gives."""

    def __init__(self, width):
        self.attention, self.feed = Attention(width, 4, fused=True), mlp(width, 2 * width)
        self.gates = nn.Linear(width, 6 * width)
        self.norm = nn.LayerNorm(width, elementwise_affine=False)

    def forward(self, x, condition):
        a, b, c, d, e, f = self.gates(F.silu(condition)).unsqueeze(1).chunk(6, -1)
        x = x + c * self.attention(self.norm(x) * (1 + a) + b)
        return x + f * self.feed(self.norm(x) * (1 + d) + e)


class DiT(Module):
    def __init__(self, width=64):
        self.width, self.patches = width, nn.Conv2d(4, width, 2, 2)
        self.places = nn.Parameter(torch.randn(1, 16, width) * 0.02)
        self.time = nn.Sequential(nn.Linear(32, width), nn.SiLU(), nn.Linear(width, width))
        self.labels = nn.Embedding(11, width)
        self.blocks = nn.ModuleList([DiTBlock(width), DiTBlock(width)])
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.last, self.head = nn.Linear(width, 2 * width), nn.Linear(width, 2 * 2 * 4)

    def forward(self, x, t, label):
        condition = self.time(waves(t, 32)) + self.labels(label)
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        for block in self.blocks:
            x = block(x, condition)
        shift, scale = self.last(F.silu(condition)).unsqueeze(1).chunk(2, -1)
        x = self.head(self.norm(x) * (1 + scale) + shift)
        x = x.view(x.shape[0], 4, 4, 2, 2, 4)
        return torch.einsum("nhwpqc->nchpwq", x).reshape(x.shape[0], 4, 8, 8)


class JointBlock(Module):
    """Stable Diffusion 3: image and text have weights of their own and one attention."""

    def __init__(self, width, heads=4):
        self.heads, two = heads, lambda make: nn.ModuleList([make(), make()])
        self.qkv, self.out = two(lambda: nn.Linear(width, 3 * width)), two(lambda: nn.Linear(width, width))
        self.feed = two(lambda: mlp(width, 96))
        self.gates, self.norm = two(lambda: nn.Linear(width, 6 * width)), nn.LayerNorm(width, elementwise_affine=False)

    def forward(self, x, y, condition):
        gates = [layer(F.silu(condition)).unsqueeze(1).chunk(6, -1) for layer in self.gates]
        parts = [qkv(self.norm(z) * (1 + g[0]) + g[1]).chunk(3, -1) for qkv, z, g in zip(self.qkv, (x, y), gates)]
        q, k, v = (heads_of(torch.cat(pair, 1), self.heads) for pair in zip(*parts))
        both = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        found = both[:, : x.shape[1]], both[:, x.shape[1] :]
        result = []
        for z, one, out, feed, g in zip((x, y), found, self.out, self.feed, gates):
            z = z + g[2] * out(one)
            result.append(z + g[5] * feed(self.norm(z) * (1 + g[3]) + g[4]))
        return result


class MMDiT(Module):
    def __init__(self, width=48):
        self.patches, self.text = nn.Linear(16, width), nn.Linear(40, width)
        self.time = nn.Sequential(nn.Linear(32, width), nn.SiLU(), nn.Linear(width, width))
        self.blocks, self.head = nn.ModuleList([JointBlock(width), JointBlock(width)]), nn.Linear(width, 16)

    def forward(self, x, t, text):
        x, y, condition = self.patches(x), self.text(text), self.time(waves(t, 32))
        for block in self.blocks:
            x, y = block(x, y, condition)
        return self.head(x)


class PlaceAttention(Module):
    """One head over the places of an image, as autoencoders of diffusion have it."""

    def __init__(self, width):
        self.norm = nn.GroupNorm(8, width)
        (self.q, self.k, self.v, self.out) = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(4))

    def forward(self, x):
        b, c, h, w = x.shape
        y = self.norm(x)
        q, k, v = (f(y).reshape(b, c, h * w) for f in (self.q, self.k, self.v))
        scores = (torch.bmm(q.transpose(1, 2), k) * c**-0.5).softmax(2)
        return x + self.out(torch.bmm(v, scores.transpose(1, 2)).reshape(b, c, h, w))


def grouped(i, o):
    return nn.GroupNorm(8, i), nn.SiLU(), nn.Conv2d(i, o, 3, padding=1)


class Autoencoder(Module):
    """KL or, with a codebook, VQ."""

    def __init__(self, codes=None, width=32, latent=4):
        block = lambda: Residual(*grouped(width, width), *grouped(width, width))
        self.encoder = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1), block(), nn.Conv2d(width, width, 3, 2, 1), PlaceAttention(width),
            *grouped(width, latent * (1 if codes else 2)),
        )
        self.book = nn.Embedding(codes, latent) if codes else None
        self.decoder = nn.Sequential(
            nn.Conv2d(latent, width, 3, padding=1), block(), PlaceAttention(width), nn.Upsample(scale_factor=2.0),
            nn.Conv2d(width, width, 3, padding=1), *grouped(width, 3),
        )

    def forward(self, x):
        z = self.encoder(x)
        if self.book is None:
            mean, log = z.chunk(2, 1)
            return self.decoder(mean), mean, log.clamp(-30, 20)
        flat = z.permute(0, 2, 3, 1)
        distance = flat.pow(2).sum(-1, keepdim=True) + self.book.weight.pow(2).sum(1) - 2 * flat @ self.book.weight.t()
        return self.decoder(self.book(distance.argmin(-1)).permute(0, 3, 1, 2))


NETWORKS = {
    "unet_diffusion": (DiffusionUNet, lambda: noisy() + (torch.randn(2, 5, 40),)),
    "unet_adm": (lambda: DiffusionUNet(scaled=True), lambda: noisy() + (torch.randn(2, 5, 40),)),
    "dit": (DiT, lambda: noisy() + (torch.tensor([1, 7]),)),
    "mmdit": (MMDiT, lambda: (torch.randn(2, 9, 16), torch.tensor([3.0, 40.0]), torch.randn(2, 5, 40))),
    "vae": (Autoencoder, lambda: (torch.randn(2, 3, 16, 16),)),
    "vq_vae": (lambda: Autoencoder(codes=24), lambda: (torch.randn(2, 3, 16, 16),)),
}
