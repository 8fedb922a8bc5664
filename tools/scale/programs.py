#!/usr/bin/env python3
"""Saves the residual network of networks.py as a program of torch.export; needs a Python with PyTorch.

tools/scale/programs.py BLOCKS WIDTH IMAGE FILE.pt2
"""

import sys

import torch
from torch import nn

CLASSES = 10


class Block(nn.Module):
    """A convolution of 3×3 and one of 1×1 with the sum around them."""

    def __init__(self, width):
        super().__init__()
        self.a = convolution(width, width, 3)
        self.b = convolution(width, width, 1)

    def forward(self, x):
        return torch.relu(x + self.b(torch.relu(self.a(x))))


def convolution(size_in, size_out, kernel):
    layer = nn.Conv2d(size_in, size_out, kernel, padding=kernel // 2, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(size_out))


def residual(blocks, width):
    layers = [convolution(3, width, 3), nn.ReLU(), *(Block(width) for _ in range(blocks))]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES, bias=False)]
    return nn.Sequential(*layers).eval()


def main():
    blocks, width, image = map(int, sys.argv[1:4])
    torch.manual_seed(0)
    torch.export.save(torch.export.export(residual(blocks, width), (torch.zeros(1, 3, image, image),)), sys.argv[4])


if __name__ == "__main__":
    main()
