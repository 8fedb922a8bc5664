"""A decoder of characters with the sizes of nanoGPT: learned positions, norms without bias in front of each half of a
layer, GELU, the embedding of the tokens as the head."""

import math

import torch
from torch import nn
from torch.nn import functional


class Gpt(nn.Module):
    def __init__(self, tokens, block=64, layers=4, heads=4, width=128):
        super().__init__()
        self.token = nn.Embedding(tokens, width)
        self.position = nn.Embedding(block, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=False)
        self.head = nn.Linear(width, tokens, bias=False)
        self.head.weight = self.token.weight
        reset(self)

    def forward(self, tokens):
        """Tokens [n, t] to scores [n, t, tokens] of the next ones."""
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.hidden = Hidden(width)

    def forward(self, x):
        return self.hidden(self.attention(x))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width, bias=False)
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        y = self.norm(x)
        query, key, value = (
            part(y).unflatten(2, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return x + self.out(mixed.transpose(1, 2).flatten(2))


class Hidden(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width, bias=False)
        self.into = nn.Linear(width, 4 * width, bias=False)
        self.out = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        return x + self.out(functional.gelu(self.into(self.norm(x))))


def reset(model):
    """Random weights: of deviation 0.02, smaller where the residual sums get them."""
    halves = 2 * len(model.layers)
    for name, weight in model.named_parameters():
        if weight.dim() < 2:
            nn.init.ones_(weight)
        else:
            nn.init.normal_(weight, std=0.02 / math.sqrt(halves) if name.endswith("out.weight") else 0.02)
