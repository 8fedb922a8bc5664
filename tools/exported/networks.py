"""Networks to export: some of torchvision's, transformers of many kinds, and what else torch.export
writes: sequences, several and nested inputs, dynamic dimensions, branches, decomposed programs."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

TORCHVISION = """alexnet convnext_tiny convnext_small densenet121 densenet169 densenet201
    efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_v2_s googlenet
    inception_v3 maxvit_t mnasnet0_5 mnasnet1_0 mobilenet_v2 mobilenet_v3_large mobilenet_v3_small
    regnet_x_1_6gf regnet_x_400mf regnet_x_800mf regnet_y_1_6gf regnet_y_400mf regnet_y_800mf
    resnet101 resnet152 resnet18 resnet34 resnet50 resnext50_32x4d shufflenet_v2_x0_5
    shufflenet_v2_x1_0 shufflenet_v2_x1_5 squeezenet1_0 squeezenet1_1 swin_s swin_t swin_v2_t
    vgg11_bn vit_b_16 vit_b_32 wide_resnet50_2""".split()
SEGMENTATION = "deeplabv3_mobilenet_v3_large fcn_resnet50 lraspp_mobilenet_v3_large".split()
VIDEO = "mc3_18 r2plus1d_18 r3d_18".split()


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def heads_of(x, heads):
    b, n, width = x.shape
    return x.view(b, n, heads, width // heads).transpose(1, 2)


class Attention(nn.Module):
    """Self or cross attention. `kind`: sdpa, mask, causal, plain, alibi, cosine, bias, linear."""

    def __init__(self, width, heads, kind="sdpa", groups=None, fused=False, context=None, rope=False):
        super().__init__()
        self.heads, self.groups, self.kind, self.rope = heads, groups or heads, kind, rope
        each = width // heads
        self.fused = fused
        if fused:
            self.qkv = nn.Linear(width, 3 * width)
        else:
            self.q = nn.Linear(width, width)
            self.k = nn.Linear(context or width, each * self.groups)
            self.v = nn.Linear(context or width, each * self.groups)
        self.out = nn.Linear(width, width)
        if kind == "bias":
            self.table = nn.Embedding(32, heads)
        if kind == "cosine":
            self.temperature = nn.Parameter(torch.ones(heads, 1, 1) * 5)

    def forward(self, x, context=None):
        b, n, width = x.shape
        if self.fused:
            q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        else:
            source = x if context is None else context
            q = heads_of(self.q(x), self.heads)
            k, v = (heads_of(f(source), self.groups) for f in (self.k, self.v))
        if self.rope:
            q, k = rotated(q), rotated(k)
        if self.groups != self.heads:
            k, v = (y.repeat_interleave(self.heads // self.groups, 1) for y in (k, v))
        y = self.attend(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, n, -1))

    def attend(self, q, k, v):
        if self.kind == "sdpa":
            return F.scaled_dot_product_attention(q, k, v)
        if self.kind == "causal":
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        n, m = q.shape[-2], k.shape[-2]
        if self.kind == "mask":
            seen = torch.arange(n)[:, None] >= torch.arange(m)[None, :]
            return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        if self.kind == "linear":
            q, k = F.elu(q) + 1, F.elu(k) + 1
            total = (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True)
            return (q @ (k.transpose(-2, -1) @ v)) / total
        if self.kind == "cosine":
            q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
            return ((q @ k.transpose(-2, -1)) * self.temperature).softmax(-1) @ v
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        distance = torch.arange(n)[:, None] - torch.arange(m)[None, :]
        if self.kind == "alibi":
            slopes = 2.0 ** -(torch.arange(self.heads) + 1.0)
            scores = scores - slopes[:, None, None] * distance.abs()
        if self.kind == "bias":
            near = distance.clamp(-15, 16) + 15
            scores = scores + self.table(near).permute(2, 0, 1)
        if self.kind == "plain":
            scores = scores.masked_fill(distance < 0, float("-inf"))
        return scores.softmax(-1) @ v


def rotated(x):
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] / 10000 ** (torch.arange(half) / half)
    a, b = x.chunk(2, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -1)


class SwiGLU(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate, self.up = nn.Linear(width, hidden, False), nn.Linear(width, hidden, False)
        self.down = nn.Linear(hidden, width, False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def mlp(width, hidden, activation=nn.GELU):
    return nn.Sequential(nn.Linear(width, hidden), activation(), nn.Linear(hidden, width))


class Block(nn.Module):
    def __init__(self, width, heads, norm=nn.LayerNorm, feed=None, post=False, **attention):
        super().__init__()
        self.attention = Attention(width, heads, **attention)
        self.feed = feed(width, 2 * width) if feed else mlp(width, 2 * width)
        self.norm1, self.norm2, self.post = norm(width), norm(width), post

    def forward(self, x):
        if self.post:
            x = self.norm1(x + self.attention(x))
            return self.norm2(x + self.feed(x))
        x = x + self.attention(self.norm1(x))
        return x + self.feed(self.norm2(x))


class Language(nn.Module):
    """Tokens in, logits out."""

    def __init__(self, width=64, heads=4, tied=False, positions=True, **block):
        super().__init__()
        self.tokens = nn.Embedding(97, width)
        self.positions = nn.Parameter(torch.randn(32, width) * 0.02) if positions else None
        self.blocks = nn.Sequential(*(Block(width, heads, **block) for _ in range(2)))
        self.norm = block.get("norm", nn.LayerNorm)(width)
        self.head = nn.Linear(width, 97, bias=False)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions[: x.shape[1]]
        return self.head(self.norm(self.blocks(x)))


class Vision(nn.Module):
    """Patches, a class token, blocks."""

    def __init__(self, width=64, heads=4, token=True, **block):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, width)) if token else None
        self.places = nn.Parameter(torch.randn(1, 16 + token, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads, **block) for _ in range(2)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        if self.token is not None:
            x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1)
        x = self.norm(self.blocks(x + self.places))
        return self.head(x[:, 0] if self.token is not None else x.mean(1))


class Builtin(nn.Module):
    """torch's own encoder, with a mask."""

    def __init__(self, first):
        super().__init__()
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, norm_first=first)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(64, 5)

    def forward(self, x):
        return self.head(self.encoder(x, mask=torch.full((12, 12), float("-inf")).triu(1), is_causal=True))


class EncoderDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Transformer(48, 4, 2, 2, 96, batch_first=True)

    def forward(self, source, target):
        return self.net(source, target)


class MixerBlock(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens, self.channels = mlp(tokens, 48), mlp(width, 160)

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 64, 8, 8)
        self.blocks = nn.Sequential(MixerBlock(16, 64), MixerBlock(16, 64))
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.blocks(self.patches(x).flatten(2).transpose(1, 2)).mean(1))


class GatedMLP(nn.Module):
    def __init__(self, width=64, tokens=16):
        super().__init__()
        self.inward, self.outward = nn.Linear(width, 128), nn.Linear(64, width)
        self.norm, self.spatial = nn.LayerNorm(64), nn.Conv1d(tokens, tokens, 1)

    def forward(self, x):
        u, v = F.gelu(self.inward(x)).chunk(2, -1)
        return x + self.outward(u * self.spatial(self.norm(v)))


class Perceiver(nn.Module):
    def __init__(self):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(1, 8, 64))
        self.cross, self.block = Attention(64, 4, context=40), Block(64, 4)
        self.head = nn.Linear(64, 7)

    def forward(self, x):
        z = self.latents.expand(x.shape[0], -1, -1)
        return self.head(self.block(z + self.cross(z, x)).mean(1))


class Conformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.feed, self.attention = mlp(64, 128, nn.SiLU), Attention(64, 4)
        self.norms = nn.ModuleList(nn.LayerNorm(64) for _ in range(3))
        self.point, self.depth = nn.Conv1d(64, 128, 1), nn.Conv1d(64, 64, 7, padding=3, groups=64)
        self.batch, self.out = nn.BatchNorm1d(64), nn.Conv1d(64, 64, 1)

    def forward(self, x):
        x = x + 0.5 * self.feed(self.norms[0](x))
        x = x + self.attention(self.norms[1](x))
        y = F.glu(self.point(self.norms[2](x).transpose(1, 2)), 1)
        return x + self.out(F.silu(self.batch(self.depth(y)))).transpose(1, 2)


class Speech(nn.Module):
    """Strided convolutions before a transformer."""

    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(nn.Conv1d(40, 64, 3, 2, 1), nn.GELU(), nn.Conv1d(64, 64, 3, 2, 1), nn.GELU())
        self.blocks, self.head = nn.Sequential(Block(64, 4), Block(64, 4)), nn.Linear(64, 30)

    def forward(self, x):
        return self.head(self.blocks(self.front(x).transpose(1, 2))).log_softmax(-1)


class Mixture(nn.Module):
    """Every expert on every token, weighted by a router."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(48, 3)
        self.experts = nn.ModuleList(mlp(48, 96) for _ in range(3))
        self.head = nn.Linear(48, 6)

    def forward(self, x):
        share = self.router(x).softmax(-1)
        y = torch.stack([expert(x) for expert in self.experts], -1)
        return self.head(x + (y * share.unsqueeze(-2)).sum(-1))


class Detector(nn.Module):
    """A convolutional trunk and learned queries; two results in a dictionary."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1))
        self.queries, self.cross = nn.Parameter(torch.randn(6, 64)), Attention(64, 4)
        self.classes, self.boxes = nn.Linear(64, 5), mlp(64, 96)
        self.coordinates = nn.Linear(64, 4)

    def forward(self, images):
        features = self.trunk(images).flatten(2).transpose(1, 2)
        q = self.queries.unsqueeze(0).expand(images.shape[0], -1, -1)
        q = q + self.cross(q, features)
        return {"logits": self.classes(q), "boxes": self.coordinates(self.boxes(q)).sigmoid()}


class Stack(nn.Module):
    """One after the other: PyTorch 2.6 cannot load what it exports of a bare Sequential."""

    def __init__(self, *parts):
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.net = kind(24, 32, batch_first=True, **options)
        self.head = nn.Linear(32 * (1 + self.net.bidirectional), 4)

    def forward(self, x):
        return self.head(self.net(x)[0][:, -1])


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv2, self.fc = nn.Conv2d(16, 32, 3, padding=1), nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn(self.conv1(x))), 2)
        return self.fc(F.relu(self.conv2(x)).mean((2, 3)))


class Nested(nn.Module):
    """Inputs in a dictionary and a tuple."""

    def __init__(self):
        super().__init__()
        self.trunk, self.side, self.head = Small(), nn.Linear(6, 12), nn.Linear(22, 3)

    def forward(self, inputs, pair):
        a, b = pair
        y = torch.cat((self.trunk(inputs["image"]), F.relu(self.side(a + b))), 1)
        return self.head(y), y.sum()


class Branch(nn.Module):
    """A sub-graph that only the run chooses."""

    def __init__(self):
        super().__init__()
        self.trunk, self.a, self.b = nn.Linear(8, 24), nn.Linear(16, 5), nn.Linear(16, 5)
        self.middle = nn.Linear(24, 16)

    def forward(self, x):
        x = self.middle(F.relu(self.trunk(x)))
        return torch.cond(x.sum() > 0, lambda y: self.a(y), lambda y: self.b(y).relu(), (x,))


class TinyImage(nn.Module):
    """Convolutions with what surrounds them: parts, channels side by side, a dynamic batch."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.conv3 = nn.Conv2d(4, 6, 1), nn.Conv2d(4, 6, 3, padding=1)
        self.norm, self.act = nn.GroupNorm(3, 12), nn.ReLU(inplace=True)
        self.conv4, self.fc = nn.Conv2d(12, 12, 3, padding=1, bias=False), nn.Linear(12, 5)

    def forward(self, x):
        a, b = self.act(self.bn(self.conv1(x))).chunk(2, 1)
        y = torch.cat((self.conv2(a), self.conv3(b)), 1)
        y = y + self.conv4(F.silu(self.norm(y)))
        return self.fc(F.adaptive_avg_pool2d(y, 1).flatten(1))


class TinyGuarded(nn.Module):
    """Parts that run in sub-graphs of their own: with gradients, in another precision."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 12, 3)
        self.fc = nn.Linear(12, 5)

    def forward(self, x):
        with torch.enable_grad():
            y = F.relu(self.conv1(x))
        with torch.autocast("cpu", enabled=False):
            y = F.relu(self.conv2(y))
        return self.fc(y.mean((2, 3)))


class TinyText(nn.Module):
    """Tokens, fused attention with a mask, a tied head."""

    def __init__(self):
        super().__init__()
        self.net = Language(width=8, heads=2, tied=True, fused=True, kind="mask")
        self.net.blocks = self.net.blocks[:1]

    def forward(self, tokens):
        return {"logits": self.net(tokens), "last": self.net(tokens)[:, -1]}


def tokens(n=12):
    return (torch.randint(0, 97, (2, n)),)


def image(size=32):
    return (torch.randn(2, 3, size, size),)


def sequence(width, n=12):
    return (torch.randn(2, n, width),)


def transformers():
    """Name, network, inputs, dynamic shapes."""
    batch = Dim("batch", min=1, max=64)
    return [
        ("gpt", lambda: Language(kind="causal"), tokens(), None),
        ("gpt_mask", lambda: Language(kind="mask"), tokens(), None),
        ("gpt_plain_mask", lambda: Language(kind="plain"), tokens(), None),
        ("gpt_fused_tied", lambda: Language(fused=True, kind="causal", tied=True), tokens(), None),
        ("llama", lambda: Language(norm=RMSNorm, feed=SwiGLU, kind="causal", rope=True, groups=2, positions=False), tokens(), None),
        ("llama_rmsnorm", lambda: Language(norm=nn.RMSNorm, feed=SwiGLU, kind="causal"), tokens(), None),
        ("alibi", lambda: Language(kind="alibi", positions=False), tokens(), None),
        ("t5_bias", lambda: Language(kind="bias", norm=RMSNorm, positions=False), tokens(), None),
        ("bert_post_norm", lambda: Language(post=True), tokens(), None),
        ("gpt_dynamic", lambda: Language(kind="causal"), tokens(), ({0: batch, 1: Dim("length", min=2, max=32)},)),
        ("vit_fused", lambda: Vision(fused=True), image(), None),
        ("vit_mean", lambda: Vision(token=False), image(), None),
        ("vit_cosine", lambda: Vision(kind="cosine"), image(), None),
        ("vit_linear_attention", lambda: Vision(kind="linear"), image(), None),
        ("vit_dynamic", lambda: Vision(), image(), ({0: batch},)),
        ("encoder_post", lambda: Builtin(False), sequence(64), None),
        ("encoder_pre", lambda: Builtin(True), sequence(64), None),
        ("encoder_decoder", EncoderDecoder, (torch.randn(2, 9, 48), torch.randn(2, 7, 48)), None),
        ("mixer", Mixer, image(), None),
        ("gated_mlp", lambda: Stack(GatedMLP(), GatedMLP()), sequence(64, 16), None),
        ("perceiver", Perceiver, sequence(40, 20), None),
        ("conformer", lambda: Stack(Conformer(), Conformer()), sequence(64), None),
        ("speech", Speech, (torch.randn(2, 40, 32),), None),
        ("mixture", Mixture, sequence(48), None),
        ("detector", Detector, image(), None),
    ]


def others():
    batch = Dim("batch", min=1, max=64)
    side = torch.randn(2, 6)
    return [
        ("lstm", lambda: Recurrent(nn.LSTM, num_layers=2), sequence(24), None),
        ("gru_both_ways", lambda: Recurrent(nn.GRU, bidirectional=True), sequence(24), None),
        ("small", Small, image(), None),
        ("small_dynamic", Small, image(), ({0: batch},)),
        ("nested", Nested, ({"image": image()[0]}, (side, side + 1)), None),
        ("branch", Branch, (torch.randn(2, 8),), None),
        ("tiny_image", TinyImage, (torch.randn(2, 3, 8, 8),), ({0: batch},)),
        ("tiny_text", TinyText, tokens(6), None),
        ("tiny_guarded", TinyGuarded, (torch.randn(2, 3, 8, 8),), None),
    ]


DECOMPOSED = "small tiny_image tiny_text resnet18 vit_b_32 mobilenet_v3_small gpt vit_fused encoder_pre densenet121 swin_t".split()


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

    found = [vision(name, classifier(name)) for name in TORCHVISION]
    for name in SEGMENTATION:
        make = lambda name=name: models.get_model(name, weights=None, weights_backbone=None)
        found.append((name, make, (torch.randn(2, 3, 96, 96),), None))
    for name in VIDEO:
        make = lambda name=name: models.get_model(name, weights=None)
        found.append((name, make, (torch.randn(2, 3, 8, 64, 64),), None))
    found += transformers() + others()
    result = [entry + (False,) for entry in found]
    result += [(entry[0] + "_decomposed",) + entry[1:] + (True,) for entry in found if entry[0] in DECOMPOSED]
    return result
