"""Encoders of text, encoders with decoders, text beside images."""

import inspect

import torch
import torch.nn.functional as F
from torch import nn

from .norms import RMSNorm
from .language import Gelu, Grouped, Layer
from .pieces import (
    Attention, Block, Language, Module, SwiGLU, VOCABULARY, Vision, heads_of, image, mlp, tokens,
)


class Disentangled(Module):
    """DeBERTa: content against content, content against distance, distance against content."""

    def __init__(self, width, heads=4, reach=8):
        self.heads, self.reach, self.places = heads, reach, nn.Embedding(2 * reach, width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, away):
        b, n, c = x.shape
        q, k, v = (heads_of(f(x), self.heads) for f in (self.q, self.k, self.v))
        places = self.places.weight.unsqueeze(0)
        far_q, far_k = heads_of(self.q(places), self.heads), heads_of(self.k(places), self.heads)
        apart = (torch.arange(n)[:, None] - torch.arange(n)[None]).clamp(-self.reach, self.reach - 1) + self.reach
        index = apart.expand(b, self.heads, n, n)
        scores = q @ k.transpose(-2, -1) + (q @ far_k.transpose(-2, -1)).gather(-1, index)
        scores = scores + (k @ far_q.transpose(-2, -1)).gather(-1, index).transpose(-2, -1)
        return self.out(
            ((scores / (3 * c / self.heads) ** 0.5 + away).softmax(-1) @ v).transpose(1, 2).reshape(b, n, c)
        )


class BERT(Module):
    """Tokens, segments, a mask of padding; a pooler and a head over the vocabulary with tied weights."""

    def __init__(self, width=64, shared=False, attention=None, embedding=None):
        narrow = embedding or width
        self.embed, self.segment = nn.Embedding(VOCABULARY, narrow), nn.Embedding(2, narrow)
        self.places = nn.Embedding(32, narrow)
        self.norm, self.project = nn.LayerNorm(narrow), nn.Linear(narrow, width) if embedding else None
        layer = lambda: BERTLayer(width, attention)
        self.layers = nn.ModuleList([layer()] * 2 if shared else [layer(), layer()])
        self.pool, self.dense, self.last = nn.Linear(width, width), nn.Linear(width, narrow), nn.LayerNorm(narrow)
        self.bias = nn.Parameter(torch.randn(VOCABULARY) * 0.1)

    def forward(self, tokens, segments, mask):
        x = self.embed(tokens) + self.segment(segments) + self.places(torch.arange(tokens.shape[1]))
        x = self.norm(x)
        x = x if self.project is None else self.project(x)
        away = (1 - mask[:, None, None, :].to(x.dtype)) * -1e4
        for layer in self.layers:
            x = layer(x, away)
        logits = F.linear(self.last(F.gelu(self.dense(x))), self.embed.weight, self.bias)
        return logits, torch.tanh(self.pool(x[:, 0]))


class BERTLayer(Module):
    def __init__(self, width, attention=None, heads=4):
        self.heads, self.special = heads, attention(width) if attention else None
        if not attention:
            self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.feed, self.norm1, self.norm2 = mlp(width, 3 * width), nn.LayerNorm(width), nn.LayerNorm(width)

    def attend(self, x, away):
        q, k, v = (heads_of(f(x), self.heads) for f in (self.q, self.k, self.v))
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5 + away
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def forward(self, x, away):
        x = self.norm1(x + (self.special(x, away) if self.special is not None else self.attend(x, away)))
        return self.norm2(x + self.feed(x))


class T5(Module):
    """Encoder and decoder that share the embedding and buckets of distances; no biases."""

    def __init__(self, width=64):
        self.embed, self.head = nn.Embedding(VOCABULARY, width), nn.Linear(width, VOCABULARY, bias=False)
        layer = lambda: Block(width, 4, norm=RMSNorm, feed=Gelu, kind="bias")
        self.encoder = nn.Sequential(layer(), layer())
        self.decoder = nn.ModuleList([Block(width, 4, norm=RMSNorm, feed=Gelu, kind="plain")])
        self.cross, self.norm, self.last1 = Attention(width, 4), RMSNorm(width), RMSNorm(width)
        self.last2 = RMSNorm(width)

    def forward(self, source, target):
        memory = self.last1(self.encoder(self.embed(source)))
        x = self.embed(target)
        for layer in self.decoder:
            x = x + self.cross(self.norm(x), memory)
            x = layer(x)
        return self.head(self.last2(x))


class EncoderDecoder(Module):
    def __init__(self):
        self.net = nn.Transformer(48, 4, 2, 2, 96, batch_first=True)

    def forward(self, source, target):
        return self.net(source, target)


class Builtin(Module):
    """torch's own encoder, with a mask."""

    def __init__(self, first):
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, norm_first=first)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(64, 5)

    def forward(self, x):
        known = {"is_causal": True} if "is_causal" in inspect.signature(self.encoder.forward).parameters else {}
        return self.head(self.encoder(x, mask=torch.full((12, 12), float("-inf")).triu(1), **known))


class CLIP(Module):
    """An encoder of images and one of text, compared by angle."""

    def __init__(self):
        self.vision, self.text = Vision(fused=True), Language(width=48, kind="causal")
        self.vision.head, self.text.head = nn.Linear(64, 40, bias=False), nn.Linear(48, 40, bias=False)
        self.scale = nn.Parameter(torch.tensor(2.6))

    def forward(self, image, tokens):
        a, b = F.normalize(self.vision(image), dim=-1), F.normalize(self.text(tokens)[:, -1], dim=-1)
        return self.scale.exp() * a @ b.t()


class LLaVA(Module):
    """What a projector makes of patches stands before the tokens."""

    def __init__(self):
        self.patches, self.tower = nn.Conv2d(3, 48, 8, 8), nn.Sequential(Block(48, 4), nn.LayerNorm(48))
        self.projector = nn.Sequential(nn.Linear(48, 80), nn.GELU(), nn.Linear(80, 64))
        self.embed = nn.Embedding(VOCABULARY, 64)
        self.layers = nn.Sequential(*(Layer(64, Grouped(64), SwiGLU(64, 96)) for _ in range(2)))
        self.norm, self.head = nn.RMSNorm(64), nn.Linear(64, VOCABULARY, bias=False)

    def forward(self, image, tokens):
        seen = self.projector(self.tower(self.patches(image).flatten(2).transpose(1, 2)))
        x = self.layers(torch.cat((seen, self.embed(tokens)), 1))
        return self.head(self.norm(x[:, seen.shape[1] :]))


def text():
    return tokens() + (torch.randint(0, 2, (2, 12)), torch.tensor([[1] * 12, [1] * 9 + [0] * 3]))


def pair():
    return torch.randint(0, VOCABULARY, (2, 9)), torch.randint(0, VOCABULARY, (2, 7))


NETWORKS = {
    "bert": (BERT, text),
    "albert": (lambda: BERT(shared=True, embedding=24), text),
    "deberta": (lambda: BERT(attention=Disentangled), text),
    "t5": (T5, pair),
    "encoder_decoder": (EncoderDecoder, lambda: (torch.randn(2, 9, 48), torch.randn(2, 7, 48))),
    "encoder_post": (lambda: Builtin(False), lambda: (torch.randn(2, 12, 64),)),
    "encoder_pre": (lambda: Builtin(True), lambda: (torch.randn(2, 12, 64),)),
    "clip": (CLIP, lambda: image() + tokens()),
    "llava": (LLaVA, lambda: image() + tokens()),
}
