"""Language models; caches are inputs and outputs."""

import torch
import torch.nn.functional as F
from torch import nn

from .norms import RMSNorm
from .pieces import Language, Module, Residual, SwiGLU, VOCABULARY, heads_of, mlp, tokens


class Decoder(Module):
    """Token embedding, layers that take and give a state each, a norm, a head."""

    def __init__(self, width, layers, norm=nn.RMSNorm, tied=False, cap=None):
        self.embed, self.layers, self.norm = nn.Embedding(VOCABULARY, width), nn.ModuleList(layers), norm(width)
        self.head, self.cap = nn.Linear(width, VOCABULARY, bias=False), cap
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens, *states):
        x, found = self.embed(tokens), []
        for i, layer in enumerate(self.layers):
            result = layer(x, *states[2 * i : 2 * i + 2])
            x = result[0] if isinstance(result, tuple) else result
            found += result[1:] if isinstance(result, tuple) else []
        logits = self.head(self.norm(x))
        logits = self.cap * torch.tanh(logits / self.cap) if self.cap else logits
        return (logits, *found) if found else logits


class Layer(Module):
    """A pre-norm layer: mixer, then feed."""

    def __init__(self, width, mixer, feed, norm=nn.RMSNorm):
        self.mixer, self.feed, self.norm1, self.norm2 = mixer, feed, norm(width), norm(width)

    def forward(self, x, *state):
        result = self.mixer(self.norm1(x), *state)
        y, found = (result[0], result[1:]) if isinstance(result, tuple) else (result, ())
        x = x + y
        x = x + self.feed(self.norm2(x))
        return (x, *found) if found else x


class Rotary(Module):
    """Turns pairs of features by angles that grow with the place; the frequencies are a buffer."""

    def __init__(self, width):
        self.register_buffer("frequencies", 10000 ** (-torch.arange(0, width, 2) / width))

    def forward(self, x, first=0):
        angle = torch.arange(first, first + x.shape[-2])[:, None] * self.frequencies
        angle = torch.cat((angle, angle), -1)
        a, b = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
        return x * angle.cos() + torch.cat((-b, a), -1) * angle.sin()


def causal(n, m):
    """Which of m keys each of the last n queries sees."""
    return torch.arange(m)[None, :] <= torch.arange(m - n, m)[:, None]


class Grouped(Module):
    """Grouped-query attention with a cache of keys and values; `normed`: Qwen 3; `window`: Mistral, Gemma."""

    def __init__(self, width, heads=4, groups=2, each=16, normed=False, window=None, bias=False):
        self.heads, self.groups, self.each, self.window = heads, groups, each, window
        self.q, self.out = nn.Linear(width, heads * each, bias=bias), nn.Linear(heads * each, width, bias=False)
        self.k, self.v = (nn.Linear(width, groups * each, bias=bias) for _ in range(2))
        self.norms, self.turn = nn.ModuleList([nn.RMSNorm(each), nn.RMSNorm(each)]) if normed else None, Rotary(each)

    def forward(self, x, keys=None, values=None):
        b, n, _ = x.shape
        q, k, v = heads_of(self.q(x), self.heads), heads_of(self.k(x), self.groups), heads_of(self.v(x), self.groups)
        if self.norms is not None:
            q, k = self.norms[0](q), self.norms[1](k)
        cached = keys is not None
        first = keys.shape[2] if cached else 0
        q, k = self.turn(q, first), self.turn(k, first)
        if cached:
            k, v = torch.cat((keys, k), 2), torch.cat((values, v), 2)
        seen = causal(n, k.shape[2])
        if self.window:
            seen = seen & (
                torch.arange(k.shape[2])[None, :] > torch.arange(k.shape[2] - n, k.shape[2])[:, None] - self.window
            )
        copies = (-1, -1, self.heads // self.groups, -1, -1)
        many = lambda y: y[:, :, None].expand(copies).reshape(b, self.heads, -1, self.each)
        y = F.scaled_dot_product_attention(q, many(k), many(v), attn_mask=seen)
        y = self.out(y.transpose(1, 2).reshape(b, n, -1))
        return (y, k, v) if cached else y


class Latent(Module):
    """DeepSeek's multi-head latent attention: keys and values from one narrow vector, a part that rotates."""

    def __init__(self, width, heads=4, each=12, turning=8, narrow=24):
        self.heads, self.each, self.turning, self.narrow = heads, each, turning, narrow
        self.q = nn.Sequential(
            nn.Linear(width, 32, bias=False), nn.RMSNorm(32), nn.Linear(32, heads * (each + turning), bias=False),
        )
        self.down, self.norm = nn.Linear(width, narrow + turning, bias=False), nn.RMSNorm(narrow)
        self.turn = Rotary(turning)
        self.up, self.out = nn.Linear(narrow, heads * 2 * each, bias=False), nn.Linear(heads * each, width, bias=False)

    def forward(self, x, cache=None, turned=None):
        b, n, _ = x.shape
        first = 0 if cache is None else cache.shape[1]
        q, turn = heads_of(self.q(x), self.heads).split((self.each, self.turning), -1)
        latent, key = self.down(x).split((self.narrow, self.turning), -1)
        latent, key = self.norm(latent), self.turn(key.unsqueeze(1), first)
        if cache is not None:
            latent, key = torch.cat((cache, latent), 1), torch.cat((turned, key), 2)
        k, v = heads_of(self.up(latent), self.heads).split((self.each, self.each), -1)
        q = torch.cat((q, self.turn(turn, first)), -1)
        k = torch.cat((k, key.expand(-1, self.heads, -1, -1)), -1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=causal(n, k.shape[2]))
        y = self.out(y.transpose(1, 2).reshape(b, n, -1))
        return (y, latent, key) if cache is not None else y


class Experts(Module):
    """The best of several experts for each token, whose weights are stacked; one that all tokens share."""

    def __init__(self, width, hidden, count=4, best=2, shared=True):
        self.best, self.router = best, nn.Linear(width, count, bias=False)
        self.inward = nn.Parameter(torch.randn(count, width, 2 * hidden) * width**-0.5)
        self.outward = nn.Parameter(torch.randn(count, hidden, width) * hidden**-0.5)
        self.shared = SwiGLU(width, hidden) if shared else None

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        shares = self.router(flat).softmax(-1)
        value, index = shares.topk(self.best, -1)
        shares = torch.zeros_like(shares).scatter(1, index, value / value.sum(-1, keepdim=True))
        gate, up = torch.matmul(flat, self.inward).chunk(2, -1)  # [experts, tokens, hidden]
        y = torch.matmul(F.silu(gate) * up, self.outward)
        y = (y * shares.t().unsqueeze(-1)).sum(0).view(x.shape)
        return y if self.shared is None else y + self.shared(x)


class Switch(Module):
    """Experts as modules of their own, each for the tokens that chose it."""

    def __init__(self, width, hidden, count=3):
        self.router, self.experts = nn.Linear(width, count), nn.ModuleList(SwiGLU(width, hidden) for _ in range(count))

    def forward(self, x):
        value, index = self.router(x).softmax(-1).max(-1, keepdim=True)
        y = sum((index == i).to(x.dtype) * expert(x) for i, expert in enumerate(self.experts))
        return y * value


class Mixture(Module):
    """Every expert on every token, weighted by a router."""

    def __init__(self):
        self.router = nn.Linear(48, 3)
        self.experts = nn.ModuleList(mlp(48, 96) for _ in range(3))
        self.head = nn.Linear(48, 6)

    def forward(self, x):
        share = self.router(x).softmax(-1)
        y = torch.stack([expert(x) for expert in self.experts], -1)
        return self.head(x + (y * share.unsqueeze(-2)).sum(-1))


def sandwich(width, *branches):
    """Gemma: a norm before and one after each branch."""
    return nn.Sequential(*(Residual(nn.RMSNorm(width), branch, nn.RMSNorm(width)) for branch in branches))


class Gelu(SwiGLU):
    """GeGLU."""

    def forward(self, x):
        return self.down(F.gelu(self.gate(x), approximate="tanh") * self.up(x))


class Together(Module):
    """Phi, GPT-J, Falcon: attention and feed both read the same norm."""

    def __init__(self, width, mixer, feed):
        self.mixer, self.feed, self.norm = mixer, feed, nn.LayerNorm(width)

    def forward(self, x):
        y = self.norm(x)
        return x + self.mixer(y) + self.feed(y)


class Interleaved(Module):
    """GPT-NeoX: query, key and value of each head side by side; a half of each rotates."""

    def __init__(self, width, heads=4):
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.part, self.turn = width // heads // 2, Rotary(width // heads // 2)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).view(b, n, self.heads, -1).transpose(1, 2).chunk(3, -1)
        q, k = (torch.cat((self.turn(y[..., : self.part]), y[..., self.part :]), -1) for y in (q, k))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, n, c))


def decoder(mixer, feed=SwiGLU, width=64, layer=Layer, **options):
    return Decoder(width, [layer(width, mixer(width), feed(width, 96)) for _ in range(2)], **options)


def cached(*shapes):
    return lambda: tokens(3) + tuple(torch.randn(shape) for _ in range(2) for shape in shapes)


NETWORKS = {
    "gpt": (lambda: Language(kind="causal"), tokens),
    "gpt_mask": (lambda: Language(kind="mask"), tokens),
    "gpt_plain_mask": (lambda: Language(kind="plain"), tokens),
    "gpt_fused_tied": (lambda: Language(fused=True, kind="causal", tied=True), tokens),
    "llama": (lambda: Language(norm=RMSNorm, feed=SwiGLU, kind="causal", rope=True, groups=2, positions=False), tokens),
    "llama_rmsnorm": (lambda: Language(norm=nn.RMSNorm, feed=SwiGLU, kind="causal"), tokens),
    "alibi": (lambda: Language(kind="alibi", positions=False), tokens),
    "t5_bias": (lambda: Language(kind="bias", norm=RMSNorm, positions=False), tokens),
    "bert_post_norm": (lambda: Language(post=True), tokens),
    "gqa_cached": (lambda: decoder(Grouped), cached((2, 2, 5, 16), (2, 2, 5, 16))),
    "qwen3": (lambda: decoder(lambda w: Grouped(w, normed=True), tied=True), tokens),
    "mistral_window": (lambda: decoder(lambda w: Grouped(w, window=4)), tokens),
    "multi_query": (lambda: decoder(lambda w: Grouped(w, groups=1)), tokens),
    "gemma": (lambda: decoder(Grouped, Gelu, layer=sandwich, tied=True, cap=30.0), tokens),
    "phi": (lambda: decoder(lambda w: Grouped(w, groups=4, bias=True), mlp, layer=Together, norm=nn.LayerNorm), tokens),
    "gpt_neox": (lambda: decoder(Interleaved, mlp, layer=Together, norm=nn.LayerNorm), tokens),
    "mla": (lambda: decoder(Latent), tokens),
    "mla_cached": (lambda: decoder(Latent), cached((2, 5, 24), (2, 1, 5, 8))),
    "moe_stacked": (lambda: decoder(Grouped, lambda w, h: Experts(w, h, shared=False)), tokens),
    "deepseek": (lambda: decoder(Latent, Experts), tokens),
    "switch": (lambda: decoder(Grouped, Switch), tokens),
    "mixture": (Mixture, lambda: (torch.randn(2, 12, 48),)),
}
