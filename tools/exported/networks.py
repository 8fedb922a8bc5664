"""Networks to export: some of torchvision's and of ../architectures, and what else torch.export writes:
several and nested inputs, dynamic dimensions, branches, decomposed programs."""

import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from architectures import NETWORKS
from architectures.pieces import Language, Module, Vision, image, tokens

TORCHVISION = """alexnet convnext_tiny convnext_small densenet121 densenet169 densenet201
    efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_v2_s googlenet
    inception_v3 maxvit_t mnasnet0_5 mnasnet1_0 mobilenet_v2 mobilenet_v3_large mobilenet_v3_small
    regnet_x_1_6gf regnet_x_400mf regnet_x_800mf regnet_y_1_6gf regnet_y_400mf regnet_y_800mf
    resnet101 resnet152 resnet18 resnet34 resnet50 resnext50_32x4d shufflenet_v2_x0_5
    shufflenet_v2_x1_0 shufflenet_v2_x1_5 squeezenet1_0 squeezenet1_1 swin_s swin_t swin_v2_t
    vgg11_bn vit_b_16 vit_b_32 wide_resnet50_2""".split()
SEGMENTATION = "deeplabv3_mobilenet_v3_large fcn_resnet50 lraspp_mobilenet_v3_large".split()
VIDEO = "mc3_18 r2plus1d_18 r3d_18".split()


class Small(Module):
    def __init__(self):
        self.conv1, self.bn = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv2, self.fc = nn.Conv2d(16, 32, 3, padding=1), nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn(self.conv1(x))), 2)
        return self.fc(F.relu(self.conv2(x)).mean((2, 3)))


class Nested(Module):
    """Inputs in a dictionary and a tuple."""

    def __init__(self):
        self.trunk, self.side, self.head = Small(), nn.Linear(6, 12), nn.Linear(22, 3)

    def forward(self, inputs, pair):
        a, b = pair
        y = torch.cat((self.trunk(inputs["image"]), F.relu(self.side(a + b))), 1)
        return self.head(y), y.sum()


class Branch(Module):
    """Sub-graphs of which only the run chooses one, with layers and sizes inside."""

    def __init__(self):
        self.trunk, self.middle, self.head = nn.Linear(8, 24), nn.Linear(24, 16), nn.Linear(10, 5)
        self.a, self.b, self.c = nn.Linear(16, 12), nn.Linear(12, 10), nn.Linear(16, 10)

    def forward(self, x):
        x = self.middle(F.relu(self.trunk(x)))

        def parts(y):
            return self.b(F.relu(self.a(y).view(-1, 3, 4)).reshape(-1, 12))

        return self.head(torch.cond(x.sum() > 0, parts, lambda y: self.c(y).relu(), (x,)))


class TinyImage(Module):
    """Convolutions with what surrounds them: parts, channels side by side, a dynamic batch."""

    def __init__(self):
        self.conv1, self.bn = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.conv3 = nn.Conv2d(4, 6, 1), nn.Conv2d(4, 6, 3, padding=1)
        self.norm, self.act = nn.GroupNorm(3, 12), nn.ReLU(inplace=True)
        self.conv4, self.fc = nn.Conv2d(12, 12, 3, padding=1, bias=False), nn.Linear(12, 5)

    def forward(self, x):
        a, b = self.act(self.bn(self.conv1(x))).chunk(2, 1)
        y = torch.cat((self.conv2(a), self.conv3(b)), 1)
        y = y + self.conv4(F.silu(self.norm(y)))
        return self.fc(F.adaptive_avg_pool2d(y, 1).flatten(1))


class TinyGuarded(Module):
    """Parts that run in sub-graphs of their own: with gradients, in another precision."""

    def __init__(self):
        self.conv1, self.conv2 = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 12, 3)
        self.fc = nn.Linear(12, 5)

    def forward(self, x):
        with torch.enable_grad():
            y = F.relu(self.conv1(x))
        with torch.autocast("cpu", enabled=False):
            y = F.relu(self.conv2(y))
        return self.fc(y.mean((2, 3)))


class TinyText(Module):
    """Tokens, fused attention with a mask, a tied head."""

    def __init__(self):
        self.net = Language(width=8, heads=2, tied=True, fused=True, kind="mask")
        self.net.blocks = self.net.blocks[:1]

    def forward(self, tokens):
        return {"logits": self.net(tokens), "last": self.net(tokens)[:, -1]}


class TinyWrites(Module):
    """Writes into parts: of activations, and of a mask that nothing else changes."""

    def __init__(self):
        self.conv, self.out = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 4, 1)

    def forward(self, x):
        y, mask = self.conv(x), torch.zeros(8, 8)
        y[:, 2:6].relu_()
        mask[:4, 2:] = 1
        mask[-1] += 0.5
        return self.out(y * mask)


class TinyAliases(Module):
    """Reads a part of a tensor that was written as a whole since."""

    def __init__(self):
        self.conv, self.out, self.first = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 1), nn.Conv2d(3, 3, 1)

    def forward(self, x):
        y = self.conv(self.first(x))
        part = y[:, 2:6]
        y.relu_()
        return self.out(y) + part


class TinyWaves(Module):
    """A time embedding computed from literals, and complex weights behind a Fourier transform."""

    def __init__(self):
        self.signal, self.time = nn.Linear(3, 12), nn.Linear(8, 12)
        self.weight, self.out = nn.Parameter(torch.randn(12, 5, dtype=torch.cfloat)), nn.Linear(12, 5)

    def forward(self, x, t):
        angle = t[:, None] * torch.exp(torch.arange(4) * -0.5)
        time = self.time(torch.cat((angle.cos(), angle.sin()), 1))
        y = F.relu(self.signal(x) + time[:, None]).transpose(1, 2)
        y = torch.fft.irfft(torch.fft.rfft(y) * self.weight, n=8)
        return self.out(y.transpose(1, 2))


class TinyUnread(Module):
    """A layer that nothing reads, behind one that shrinks."""

    def __init__(self):
        self.inner, self.back, self.ahead = nn.Linear(6, 8), nn.Linear(8, 6), nn.Linear(8, 4)

    def forward(self, x):
        inner = F.relu(self.inner(x))
        x - self.back(inner)
        return self.ahead(inner)


class TinyRotary(Module):
    """Rotary frequencies, a table of positions and a window as buffers, and a parameter of one number."""

    def __init__(self):
        self.inner, self.out = nn.Linear(8, 16), nn.Linear(16, 8)
        self.scale = nn.Parameter(torch.tensor(0.5))
        self.register_buffer("inv_freq", 10.0 ** -torch.arange(4))
        self.register_buffer("positions", torch.randn(6, 8))
        self.register_buffer("window", torch.linspace(0.5, 1.5, 8), persistent=False)

    def forward(self, x):
        y = x + self.positions
        angle = y[..., :1] * self.inv_freq
        y = torch.cat((y[..., :4] * angle.cos(), y[..., 4:] * angle.sin()), -1)
        return self.out(F.relu(self.inner(y))) * self.window * self.scale


class TinyExperts(Module):
    """A loop over experts that is spelled in three ways: by rows, by comparison, by the gates of all."""

    def __init__(self):
        self.router, self.head = nn.Linear(8, 4), nn.Linear(8, 3)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 8)) for _ in range(4))

    def forward(self, x):
        top, places = self.router(x).topk(2, -1)
        top = top.softmax(-1)
        gates = (F.one_hot(places, 4) * top[..., None]).sum(-2)
        y = x
        for i, expert in enumerate(self.experts):
            if i == 0:
                rows, of = torch.where(places == i)
                y = y.index_add(0, rows, expert(x[rows]) * top[rows, of, None])
            elif i == 1:
                y = y + expert(x) * (top * (places == i)).sum(-1, keepdim=True)
            else:
                y = y + expert(x) * gates[:, i, None]
        return self.head(y)


SHARED = """gpt gpt_mask gpt_plain_mask gpt_fused_tied llama llama_rmsnorm alibi t5_bias bert_post_norm vit_fused
    vit_mean vit_cosine vit_linear_attention encoder_post encoder_pre encoder_decoder mixer gated_mlp perceiver conformer
    speech mixture detector lstm gru_both_ways""".split()


def transformers():
    """Name, network, inputs, dynamic shapes."""
    batch = Dim("batch", min=1, max=64)
    found = [(name, NETWORKS[name][1], NETWORKS[name][2](), None) for name in SHARED]
    length = Dim("length", min=2, max=32)
    return found + [
        ("gpt_dynamic", lambda: Language(kind="causal"), tokens(), ({0: batch, 1: length},)),
        ("vit_dynamic", lambda: Vision(), image(), ({0: batch},)),
    ]


def others():
    batch = Dim("batch", min=1, max=64)
    side = torch.randn(2, 6)
    return [
        ("small", Small, image(), None),
        ("small_dynamic", Small, image(), ({0: batch},)),
        ("nested", Nested, ({"image": image()[0]}, (side, side + 1)), None),
        ("branch", Branch, (torch.randn(2, 8),), None),
        ("tiny_image", TinyImage, (torch.randn(2, 3, 8, 8),), ({0: batch},)),
        ("tiny_text", TinyText, tokens(6), None),
        ("tiny_guarded", TinyGuarded, (torch.randn(2, 3, 8, 8),), None),
        ("tiny_unread", TinyUnread, (torch.randn(2, 6),), None),
        ("tiny_rotary", TinyRotary, (torch.randn(2, 6, 8),), ({0: batch},)),
        ("tiny_writes", TinyWrites, (torch.randn(2, 3, 8, 8),), None),
        ("tiny_aliases", TinyAliases, (torch.randn(2, 3, 8, 8),), None),
        ("tiny_experts", TinyExperts, (torch.randn(6, 8),), None),
        ("tiny_waves", TinyWaves, (torch.randn(2, 8, 3), torch.rand(2)), None),
    ]


DECOMPOSED = "small tiny_image tiny_text tiny_waves resnet18 vit_b_32 mobilenet_v3_small gpt vit_fused encoder_pre densenet121 swin_t".split()


def vision(name, make):
    size = 299 if name == "inception_v3" else 224
    return (name, make, image(size), None)


def all_networks():
    """Every network of the suite: (name, constructor, inputs, dynamic shapes, decomposed)."""
    import torchvision.models as models

    def classifier(name):
        extra = {"aux_logits": False} if name in ("googlenet", "inception_v3") else {}
        extra.update({"init_weights": False} if extra else {})
        return lambda: models.get_model(name, weights=None, **extra)

    def model(name, *shape, **options):
        return name, lambda: models.get_model(name, weights=None, **options), (torch.randn(shape),), None

    found = [vision(name, classifier(name)) for name in TORCHVISION]
    found += [model(name, 2, 3, 96, 96, weights_backbone=None) for name in SEGMENTATION]
    found += [model(name, 2, 3, 8, 64, 64) for name in VIDEO]
    found += transformers() + others()
    decomposed = [(name + "_decomposed", *entry) for name, *entry in found if name in DECOMPOSED]
    return [(*entry, False) for entry in found] + [(*entry, True) for entry in decomposed]
