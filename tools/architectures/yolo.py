"""The YOLO family."""

import torch
import torch.nn.functional as F
from torch import nn

from .pieces import Function, Module, Residual, conv, depthwise, large, upsampled


def bottleneck(width, short=True):
    layers = conv(width, width), conv(width, width)
    return Residual(*layers) if short else nn.Sequential(*layers)


class C3(Module):
    """YOLOv5: two convolutions, one of them followed by bottlenecks, side by side."""

    def __init__(self, inward, outward, n=1, short=True):
        half = outward // 2
        self.one, self.two, self.three = conv(inward, half, 1), conv(inward, half, 1), conv(2 * half, outward, 1)
        self.body = nn.Sequential(*(bottleneck(half, short) for _ in range(n)))

    def forward(self, x):
        return self.three(torch.cat((self.body(self.one(x)), self.two(x)), 1))


class C2f(Module):
    """YOLOv8: halves, and all results of a chain, side by side. YOLOv11's C3k2 has C3 in the chain."""

    def __init__(self, inward, outward, n=1, short=True, part=None):
        self.half = outward // 2
        part = part or (lambda width: bottleneck(width, short))
        self.one, self.two = conv(inward, 2 * self.half, 1), conv((2 + n) * self.half, outward, 1)
        self.parts = nn.ModuleList(part(self.half) for _ in range(n))

    def forward(self, x):
        found = list(self.one(x).chunk(2, 1))
        for part in self.parts:
            found.append(part(found[-1]))
        return self.two(torch.cat(found, 1))


def c3k2(inward, outward, n=1, short=True):
    return C2f(inward, outward, n, part=lambda width: C3(width, width, 2, short))


class Gelan(Module):
    """YOLOv9's RepNCSPELAN4."""

    def __init__(self, inward, outward, n=1, short=True):
        half, quarter = outward // 2, outward // 4
        self.one, self.last = conv(inward, half, 1), conv(half + 2 * quarter, outward, 1)
        self.a = nn.Sequential(C3(quarter, quarter, n, short), conv(quarter, quarter))
        self.b = nn.Sequential(C3(quarter, quarter, n, short), conv(quarter, quarter))

    def forward(self, x):
        found = list(self.one(x).chunk(2, 1))
        found.append(self.a(found[-1]))
        found.append(self.b(found[-1]))
        return self.last(torch.cat(found, 1))


class PoolPyramid(Module):
    """SPPF."""

    def __init__(self, width):
        self.one, self.two = conv(width, width // 2, 1), conv(2 * width, width, 1)

    def forward(self, x):
        found = [self.one(x)]
        for _ in range(3):
            found.append(F.max_pool2d(found[-1], 5, 1, 2))
        return self.two(torch.cat(found, 1))


class YoloAttention(Module):
    """Keys of half a head's width, and a depthwise convolution over the values; `area`: of YOLOv12."""

    def __init__(self, width, heads=2, area=1):
        self.heads, self.area, self.each = heads, area, width // heads
        self.key = self.each if area > 1 else self.each // 2
        self.qkv = conv(width, heads * (2 * self.key + self.each), 1, act=None)
        self.place, self.out = depthwise(width, 3, 1, None), conv(width, width, 1, act=None)

    def forward(self, x):
        b, c, h, w = x.shape
        y = self.qkv(x).flatten(2).transpose(1, 2).reshape(b * self.area, h * w // self.area, -1)
        y = y.view(b * self.area, -1, self.heads, 2 * self.key + self.each).permute(0, 2, 3, 1)
        q, k, v = y.split((self.key, self.key, self.each), 2)
        scores = (q.transpose(-2, -1) @ k * self.key**-0.5).softmax(-1)
        image_of = lambda z: z.permute(0, 3, 1, 2).reshape(b, h, w, c).permute(0, 3, 1, 2)
        return self.out(image_of(v @ scores.transpose(-2, -1)) + self.place(image_of(v)))


class SpatialAttention(Module):
    """PSA of YOLOv10, C2PSA of YOLOv11: attention over half of the channels."""

    def __init__(self, width):
        half = width // 2
        self.one, self.two = conv(width, width, 1), conv(width, width, 1)
        self.attention = Residual(YoloAttention(half))
        self.feed = Residual(conv(half, 2 * half, 1), conv(2 * half, half, 1, act=None))

    def forward(self, x):
        a, b = self.one(x).chunk(2, 1)
        return self.two(torch.cat((a, self.feed(self.attention(b))), 1))


def area_block(width):
    attention = Residual(YoloAttention(width, 2, 4))
    return nn.Sequential(attention, Residual(conv(width, 2 * width, 1), conv(2 * width, width, 1, act=None)))


class A2C2f(Module):
    """YOLOv12: a chain of area attention, and a scaled residual."""

    def __init__(self, inward, outward, n=1, short=True):
        half = outward // 2
        self.one, self.two = conv(inward, half, 1), conv((1 + n) * half, outward, 1)
        self.parts = nn.ModuleList(nn.Sequential(area_block(half), area_block(half)) for _ in range(n))
        self.gamma = nn.Parameter(torch.rand(outward)) if inward == outward else None

    def forward(self, x):
        found = [self.one(x)]
        for part in self.parts:
            found.append(part(found[-1]))
        y = self.two(torch.cat(found, 1))
        return y if self.gamma is None else x + self.gamma.view(1, -1, 1, 1) * y


class YoloHead(Module):
    """Boxes as distributions of distances, decoded around anchor points; classes."""

    def __init__(self, widths, classes=5, bins=8):
        self.bins, self.classes = bins, classes
        self.boxes = nn.ModuleList(nn.Sequential(conv(w, 32), conv(32, 32), nn.Conv2d(32, 4 * bins, 1)) for w in widths)
        self.names = nn.ModuleList(
            nn.Sequential(depthwise(w), conv(w, 24, 1), depthwise(24), conv(24, 24, 1), nn.Conv2d(24, classes, 1))
            for w in widths)
        self.register_buffer("steps", torch.arange(bins).float())

    def forward(self, features):
        found, anchors, strides = [], [], []
        for x, boxes, names in zip(features, self.boxes, self.names):
            found.append(torch.cat((boxes(x), names(x)), 1).flatten(2))
            h, w = x.shape[-2:]
            grid = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
            anchors.append(torch.stack(grid[::-1]).flatten(1))
            strides.append(torch.full((1, h * w), 64.0 / h))
        boxes, names = torch.cat(found, 2).split((4 * self.bins, self.classes), 1)
        b, _, n = boxes.shape
        boxes = boxes.view(b, 4, self.bins, n).softmax(2)
        boxes = (boxes * self.steps.view(1, 1, -1, 1)).sum(2)
        near, far = boxes.chunk(2, 1)
        anchors = torch.cat(anchors, 1)
        near, far = anchors - near, anchors + far
        boxes = torch.cat(((near + far) / 2, far - near), 1) * torch.cat(strides, 1)
        return torch.cat((boxes, names.sigmoid()), 1)


class Yolo(Module):
    """A backbone, a path up and a path down, a head on three sizes."""

    def __init__(self, block, deep=None, last=lambda w: nn.Identity(), down=lambda a, b: conv(a, b, 3, 2)):
        deep, a, b, c = deep or block, 24, 32, 48
        self.stem = nn.Sequential(conv(3, 16, 3, 2), conv(16, a, 3, 2), block(a, a))
        self.three = nn.Sequential(down(a, a), block(a, a))
        self.four = nn.Sequential(down(a, b), deep(b, b))
        self.five = nn.Sequential(down(b, c), deep(c, c), PoolPyramid(c), last(c))
        self.up4, self.up3 = block(b + c, b, 1, False), block(a + b, a, 1, False)
        self.down4, self.out4 = down(a, a), block(a + b, b, 1, False)
        self.down5, self.out5 = down(b, b), block(b + c, c, 1, False)
        self.head = YoloHead((a, b, c))

    def forward(self, x):
        three = self.three(self.stem(x))
        four = self.four(three)
        five = self.five(four)
        up4 = self.up4(torch.cat((upsampled(five), four), 1))
        out3 = self.up3(torch.cat((upsampled(up4), three), 1))
        out4 = self.out4(torch.cat((self.down4(out3), up4), 1))
        return self.head((out3, out4, self.out5(torch.cat((self.down5(out4), five), 1))))


def separable_down(inward, outward):
    """SCDown of YOLOv10."""
    return nn.Sequential(conv(inward, outward, 1), depthwise(outward, 3, 2, None))


def focus(x):
    """The pixels of 2 x 2 squares as channels."""
    return torch.cat((x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]), 1)


class YoloV5(Yolo):
    """With its first layer, and three anchors in each place."""

    def __init__(self):
        super().__init__(C3)
        self.stem = nn.Sequential(Function(focus), conv(12, 24, 3, 2), C3(24, 24))
        self.head = AnchorHead((24, 32, 48))


class AnchorHead(Module):
    def __init__(self, widths, classes=5):
        self.layers = nn.ModuleList(nn.Conv2d(w, 3 * (5 + classes), 1) for w in widths)
        self.register_buffer("anchors", torch.rand(len(widths), 1, 3, 1, 1, 2) * 8)

    def forward(self, features):
        found = []
        for x, layer, anchors in zip(features, self.layers, self.anchors):
            b, _, h, w = x.shape
            y = layer(x).view(b, 3, -1, h, w).permute(0, 1, 3, 4, 2).sigmoid()
            grid = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")[::-1], -1)
            place, size, rest = y.split((2, 2, y.shape[-1] - 4), -1)
            place = (place * 2 + grid - 0.5) * (64 / h)
            found.append(torch.cat((place, (size * 2) ** 2 * anchors, rest), -1).view(b, 3 * h * w, -1))
        return torch.cat(found, 1)


NETWORKS = {
    "yolo_v5": (YoloV5, large),
    "yolo_v8": (lambda: Yolo(C2f), large),
    "yolo_v9": (lambda: Yolo(Gelan), large),
    "yolo_v10": (lambda: Yolo(C2f, last=SpatialAttention, down=separable_down), large),
    "yolo_v11": (lambda: Yolo(c3k2, last=SpatialAttention), large),
    "yolo_v12": (lambda: Yolo(c3k2, A2C2f), large),
}
