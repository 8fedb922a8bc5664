"""Other detectors."""

import torch
import torch.nn.functional as F
from torch import nn

from .pieces import Attention, Block, Module, conv, dense, depthwise, image, mlp, upsampled
from .yolo import C3


class Deformable(Module):
    """Attention to a few places that each query chooses, of one size of image."""

    def __init__(self, width, heads=4, points=3):
        self.heads, self.points = heads, points
        self.offsets, self.shares = nn.Linear(width, heads * points * 2), nn.Linear(width, heads * points)
        self.values, self.out = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, q, places, memory, side):
        b, n, c = q.shape
        values = self.values(memory).view(b, -1, self.heads, c // self.heads)
        values = values.permute(0, 2, 3, 1).reshape(b * self.heads, c // self.heads, side, side)
        offsets = self.offsets(q).view(b, n, self.heads, self.points, 2)
        grid = places[:, :, None, None, :2] + offsets / self.points * places[:, :, None, None, 2:] / 2
        grid = (2 * grid - 1).transpose(1, 2).flatten(0, 1)
        found = F.grid_sample(values, grid, align_corners=False)
        shares = self.shares(q).view(b, n, self.heads, self.points).softmax(-1).transpose(1, 2)
        y = (found * shares.reshape(b * self.heads, 1, n, self.points)).sum(-1)
        return self.out(y.view(b, c, n).transpose(1, 2))


class DeformableDecoder(Module):
    def __init__(self, width):
        self.own, self.cross, self.feed = Attention(width, 4), Deformable(width), mlp(width, 96, nn.ReLU)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))

    def forward(self, q, places, memory, side):
        q = self.norms[0](q + self.own(q))
        q = self.norms[1](q + self.cross(q, places, memory, side))
        return self.norms[2](q + self.feed(q))


class RTDETR(Module):
    """Attention on the smallest image, features of two sizes, the best places as queries."""

    def __init__(self, width=48, queries=6):
        self.queries = queries
        self.three = nn.Sequential(conv(3, 24, 3, 2), conv(24, 32, 3, 2), C3(32, 32))
        self.four = nn.Sequential(conv(32, 64, 3, 2), C3(64, 64))
        self.in3, self.in4 = conv(32, width, 1, act=None), conv(64, width, 1, act=None)
        self.encoder, self.fuse = Block(width, 4, post=True), C3(2 * width, width)
        self.score, self.box = nn.Linear(width, 5), mlp(width, 40, nn.ReLU)
        self.box4 = nn.Linear(width, 4)
        self.layers = nn.ModuleList([DeformableDecoder(width), DeformableDecoder(width)])
        self.classes, self.boxes = nn.Linear(width, 5), dense(width, 40, 4)

    def forward(self, x):
        three = self.three(x)
        four = self.in4(self.four(three))
        b, c, h, w = four.shape
        four = self.encoder(four.flatten(2).transpose(1, 2)).transpose(1, 2).reshape(b, c, h, w)
        features = self.fuse(torch.cat((self.in3(three), upsampled(four)), 1))
        side, memory = features.shape[-1], features.flatten(2).transpose(1, 2)
        best = self.score(memory).amax(-1).topk(self.queries, 1)[1].unsqueeze(-1)
        q = memory.gather(1, best.expand(-1, -1, c))
        places = self.box4(self.box(q)).sigmoid()
        for layer in self.layers:
            q = layer(q, places, memory, side)
        return self.classes(q), (self.boxes(q) + torch.log(places / (1 - places))).sigmoid()


class DETR(Module):
    def __init__(self, width=48):
        self.trunk = nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2), nn.Conv2d(64, width, 1))
        self.places, self.queries = nn.Parameter(torch.randn(64, width)), nn.Parameter(torch.randn(5, width))
        self.net = nn.Transformer(width, 4, 1, 1, 96, batch_first=True)
        self.classes = nn.Linear(width, 6)
        self.boxes = nn.Sequential(mlp(width, 40, nn.ReLU), nn.ReLU(), nn.Linear(width, 4))

    def forward(self, x):
        x = self.trunk(x).flatten(2).transpose(1, 2) + self.places
        q = self.net(x, self.queries.expand(x.shape[0], -1, -1))
        return self.classes(q), self.boxes(q).sigmoid()


class Detector(Module):
    """A convolutional trunk and learned queries; two results in a dictionary."""

    def __init__(self):
        self.trunk = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1))
        self.queries, self.cross = nn.Parameter(torch.randn(6, 64)), Attention(64, 4)
        self.classes, self.boxes = nn.Linear(64, 5), mlp(64, 96)
        self.coordinates = nn.Linear(64, 4)

    def forward(self, images):
        features = self.trunk(images).flatten(2).transpose(1, 2)
        q = self.queries.unsqueeze(0).expand(images.shape[0], -1, -1)
        q = q + self.cross(q, features)
        return {"logits": self.classes(q), "boxes": self.coordinates(self.boxes(q)).sigmoid()}


class Weighted(Module):
    """EfficientDet: inputs weighted by non-negative numbers that sum to one."""

    def __init__(self, count, width):
        self.weights = nn.Parameter(torch.rand(count) + 0.1)
        self.conv = nn.Sequential(depthwise(width), conv(width, width, 1))

    def forward(self, *inputs):
        share = F.relu(self.weights)
        share = share / (share.sum() + 1e-4)
        return self.conv(sum(share[i] * x for i, x in enumerate(inputs)))


class EfficientDet(Module):
    def __init__(self, width=40):
        self.three, self.four = nn.Sequential(conv(3, 24, 3, 2), conv(24, 32, 3, 2)), conv(32, 48, 3, 2)
        self.in3, self.in4 = nn.Conv2d(32, width, 1), nn.Conv2d(48, width, 1)
        self.up, self.down = Weighted(2, width), Weighted(3, width)
        self.head = nn.Sequential(depthwise(width), conv(width, width, 1), nn.Conv2d(width, 9, 1))

    def forward(self, x):
        three = self.three(x)
        a, b = self.in3(three), self.in4(self.four(three))
        up = self.up(a, upsampled(b))
        down = self.down(b, b * 0.5, F.max_pool2d(up, 3, 2, 1))
        return self.head(up), self.head(down)


class CenterNet(Module):
    """Transposed convolutions, a head for each answer."""

    def __init__(self):
        self.trunk = nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2), conv(64, 64, 3, 2))
        up = lambda a, b: (nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())
        self.up = nn.Sequential(*up(64, 48), *up(48, 32))
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Conv2d(32, 24, 3, 1, 1), nn.ReLU(), nn.Conv2d(24, n, 1)) for n in (5, 2, 2)
        )

    def forward(self, x):
        x = self.up(self.trunk(x))
        return [head(x) for head in self.heads]


class RetinaNet(Module):
    """A feature pyramid, one head for all sizes with GroupNorm."""

    def __init__(self, width=48):
        self.three, self.four = nn.Sequential(conv(3, 24, 3, 2), conv(24, 32, 3, 2)), conv(32, 64, 3, 2)
        self.in3, self.in4 = nn.Conv2d(32, width, 1), nn.Conv2d(64, width, 1)
        self.out = nn.Conv2d(width, width, 3, 1, 1)
        self.head = nn.Sequential(
            nn.Conv2d(width, width, 3, 1, 1), nn.GroupNorm(8, width), nn.ReLU(), nn.Conv2d(width, 9, 3, 1, 1),
        )

    def forward(self, x):
        three = self.three(x)
        small = self.in4(self.four(three))
        return self.head(self.out(self.in3(three) + upsampled(small))), self.head(small)


NETWORKS = {
    "rt_detr": (RTDETR, image),
    "detr": (DETR, image),
    "detector": (Detector, image),
    "efficientdet": (EfficientDet, image),
    "centernet": (CenterNet, image),
    "retinanet": (RetinaNet, image),
}
