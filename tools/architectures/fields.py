"""Generators, flows, fields and solutions of equations."""

import itertools

import torch
import torch.nn.functional as F
from torch import nn

from .pieces import Function, Module, dense, mlp


class Modulated(Module):
    """StyleGAN 2: each image scales the kernel, which is then normalised."""

    def __init__(self, inward, outward, style=32):
        self.style, self.weight = nn.Linear(style, inward), nn.Parameter(torch.randn(outward, inward, 3, 3) * 0.1)

    def forward(self, x, w):
        b, c, h, width = x.shape
        weight = self.weight[None] * self.style(w)[:, None, :, None, None]
        weight = weight * torch.rsqrt(weight.pow(2).sum((2, 3, 4), keepdim=True) + 1e-8)
        y = F.conv2d(x.reshape(1, b * c, h, width), weight.flatten(0, 1), padding=1, groups=b)
        return F.leaky_relu(y.view(b, -1, h, width), 0.2)


class StyleGAN(Module):
    def __init__(self):
        self.mapping = nn.Sequential(nn.Linear(16, 40), nn.LeakyReLU(0.2), nn.Linear(40, 32), nn.LeakyReLU(0.2))
        self.start = nn.Parameter(torch.randn(1, 32, 4, 4))
        self.one, self.two, self.colour = Modulated(32, 32), Modulated(32, 24), nn.Conv2d(24, 3, 1)

    def forward(self, z):
        w = self.mapping(z * torch.rsqrt(z.pow(2).mean(1, keepdim=True) + 1e-8))
        x = self.one(self.start.expand(z.shape[0], -1, -1, -1), w)
        return self.colour(self.two(F.interpolate(x, scale_factor=2.0, mode="nearest"), w))


def dcgan():
    up = lambda i, o: (nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())
    return nn.Sequential(
        nn.ConvTranspose2d(16, 48, 4, bias=False), nn.BatchNorm2d(48), nn.ReLU(), *up(48, 32), *up(32, 24),
        nn.Conv2d(24, 3, 3, padding=1), nn.Tanh(),
    )


class Coupling(Module):
    """RealNVP: one half decides scale and shift of the other; then they change places."""

    def __init__(self, width):
        self.net = dense(width // 2, 40, 40, width)

    def forward(self, x):
        a, b = x.chunk(2, -1)
        log, shift = self.net(a).chunk(2, -1)
        return torch.cat((b * log.tanh().exp() + shift, a), -1)


class NeRF(Module):
    """Sines and cosines of a place; a skip; density, and colour that depends on the direction too."""

    def __init__(self, width=48, far=4, near=2):
        self.far, self.near = far, near
        self.one = nn.ModuleList([nn.Linear(3 + 6 * far, width), nn.Linear(width, width)])
        self.two = nn.ModuleList([nn.Linear(width + 3 + 6 * far, width), nn.Linear(width, width)])
        self.density, self.feature = nn.Linear(width, 1), nn.Linear(width, width)
        self.colour = nn.Sequential(nn.Linear(width + 3 + 6 * near, 32), nn.ReLU(), nn.Linear(32, 3), nn.Sigmoid())

    def encoded(self, x, count):
        return torch.cat([x] + [f(2.0**k * x) for k in range(count) for f in (torch.sin, torch.cos)], -1)

    def forward(self, place, direction):
        start = self.encoded(place, self.far)
        x = start
        for layer in self.one:
            x = F.relu(layer(x))
        x = torch.cat((start, x), -1)
        for layer in self.two:
            x = F.relu(layer(x))
        colour = self.colour(torch.cat((self.feature(x), self.encoded(direction, self.near)), -1))
        return torch.cat((colour, F.relu(self.density(x))), -1)


def siren():
    return dense(2, 48, 48, 40, 3, act=lambda: Function(lambda x: torch.sin(30 * x)))


class Grids(Module):
    """Instant NGP: hashed features of grid points, interpolated on several levels, and a small network."""

    def __init__(self, sizes=(4, 8), features=4):
        self.sizes = sizes
        self.tables = nn.ModuleList(nn.Embedding((s + 1) ** 2, features) for s in sizes)
        self.net = dense(features * len(sizes), 32, 32, 4)

    def forward(self, x):
        found = []
        for s, table in zip(self.sizes, self.tables):
            low = (x * s).floor()
            share, low = x * s - low, low.long()
            total = 0
            for i, j in itertools.product((0, 1), (0, 1)):
                weight = (share[:, 0] if i else 1 - share[:, 0]) * (share[:, 1] if j else 1 - share[:, 1])
                total = total + weight[:, None] * table(((low[:, 0] + i) * 73 + low[:, 1] + j) % table.num_embeddings)
            found.append(total)
        return self.net(torch.cat(found, -1))


class NeuralODE(Module):
    """Two steps of Runge and Kutta through a network that also knows the time."""

    def __init__(self, width=32, steps=2):
        self.steps, self.inward, self.head = steps, nn.Linear(8, width), nn.Linear(width, 3)
        self.one, self.two = nn.Linear(width + 1, 48), nn.Linear(48, width)

    def slope(self, t, x):
        return self.two(torch.tanh(self.one(torch.cat((x, torch.full_like(x[:, :1], t)), 1))))

    def forward(self, x):
        x, h = self.inward(x), 1 / self.steps
        for i in range(self.steps):
            a = self.slope(i * h, x)
            b = self.slope(i * h + h / 2, x + h / 2 * a)
            c = self.slope(i * h + h / 2, x + h / 2 * b)
            x = x + h / 6 * (a + 2 * b + 2 * c + self.slope(i * h + h, x + h * c))
        return self.head(x)


class FourierOperator(Module):
    """FNO: products with learned matrices in the lowest frequencies."""

    def __init__(self, width=24, modes=4):
        self.modes, self.inward, self.head = modes, nn.Linear(2, width), mlp(width, 40)
        self.weight, self.point = nn.Parameter(torch.randn(width, width, modes, 2) / width), nn.Conv1d(width, width, 1)

    def forward(self, x):
        x = self.inward(x).transpose(1, 2)
        found = torch.fft.rfft(x)[..., : self.modes]
        found = torch.einsum("bim,iom->bom", found, torch.view_as_complex(self.weight))
        y = torch.fft.irfft(found, n=x.shape[-1])
        return self.head(F.gelu(y + self.point(x)).transpose(1, 2))


def noisy(side=8):
    return torch.randn(2, 4, side, side), torch.tensor([3.0, 40.0])


NETWORKS = {
    "stylegan": (StyleGAN, lambda: (torch.randn(2, 16),)),
    "dcgan": (dcgan, lambda: (torch.randn(2, 16, 1, 1),)),
    "real_nvp": (
        lambda: nn.Sequential(nn.Linear(8, 32), Coupling(32), Coupling(32), nn.Linear(32, 8)),
        lambda: (torch.randn(2, 8),),
    ),
    "nerf": (NeRF, lambda: (torch.rand(5, 3), torch.rand(5, 3))),
    "siren": (siren, lambda: (torch.rand(5, 2),)),
    "instant_ngp": (Grids, lambda: (torch.rand(5, 2),)),
    "neural_ode": (NeuralODE, lambda: (torch.randn(2, 8),)),
    "fno": (FourierOperator, lambda: (torch.randn(2, 16, 2),)),
}
