"""The usual networks for images of 32 x 32: ResNets of three stages (He et al. 2016) with projections, VGG-19 with norms
and one linear layer, MobileNetV2 whose first strides are 1 (Sandler et al. 2018)."""

from torch import nn
from torch.nn import functional


class ResNet(nn.Module):
    def __init__(self, depth, classes=10, width=16):
        super().__init__()
        self.stem = normed(3, width)
        sizes = [(width, width, 1), (width, 2 * width, 2), (2 * width, 4 * width, 2)]
        self.stages = nn.Sequential(*(stage(*size, (depth - 2) // 6) for size in sizes))
        self.head = nn.Linear(4 * width, classes)

    def forward(self, x):
        return self.head(self.stages(functional.relu(self.stem(x))).mean((2, 3)))


def stage(inputs, outputs, stride, blocks):
    return nn.Sequential(Block(inputs, outputs, stride), *(Block(outputs, outputs, 1) for _ in range(blocks - 1)))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first, self.second = normed(inputs, outputs, stride), normed(outputs, outputs)
        self.shortcut = nn.Identity() if inputs == outputs else normed(inputs, outputs, stride, 1)

    def forward(self, x):
        return functional.relu(self.second(functional.relu(self.first(x))) + self.shortcut(x))


def normed(inputs, outputs, stride=1, kernel=3, groups=1):
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(conv, nn.BatchNorm2d(outputs))


def vgg19(classes):
    layers, width = [], 3
    for count, outputs in ((2, 64), (2, 128), (4, 256), (4, 512), (4, 512)):
        for _ in range(count):
            layers += [normed(width, outputs), nn.ReLU()]
            width = outputs
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(width, classes))


def mobilenet(classes, share=1.0):
    widths = lambda count: max(8, round(count * share / 8) * 8)
    width = widths(32)
    layers = [normed(3, width), nn.ReLU6()]
    rows = ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for times, outputs, count, stride in rows:
        for place in range(count):
            layers.append(Inverted(width, widths(outputs), times, 1 if place else stride))
            width = widths(outputs)
    layers += [normed(width, 1280, kernel=1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(1280, classes))


class Inverted(nn.Module):
    def __init__(self, inputs, outputs, times, stride):
        super().__init__()
        hidden = inputs * times
        wider = [normed(inputs, hidden, kernel=1), nn.ReLU6()] if times > 1 else []
        depthwise = [normed(hidden, hidden, stride, groups=hidden), nn.ReLU6()]
        self.branch = nn.Sequential(*wider, *depthwise, normed(hidden, outputs, kernel=1))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.branch(x) if self.adds else self.branch(x)
