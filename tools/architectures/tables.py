"""Recommenders and tables."""

import torch
import torch.nn.functional as F
from torch import nn

from .pieces import Block, Module, dense


class DLRM(Module):
    """Embeddings and numbers, whose products in pairs a network reads."""

    def __init__(self, width=16):
        self.tables = nn.ModuleList(nn.Embedding(20, width) for _ in range(3))
        self.below = dense(6, 32, width, last=True)
        self.above, (i, j) = dense(width + 6, 40, 24, 1), torch.tril_indices(4, 4, -1)
        self.register_buffer("i", i), self.register_buffer("j", j)

    def forward(self, numbers, items):
        x = self.below(numbers)
        all = torch.stack([x] + [table(items[:, k]) for k, table in enumerate(self.tables)], 1)
        return self.above(torch.cat((x, torch.bmm(all, all.transpose(1, 2))[:, self.i, self.j]), 1)).sigmoid()


class DeepFM(Module):
    """Factorisation machine and network over the same embeddings; a linear part."""

    def __init__(self, width=12, fields=4):
        self.table, self.first = nn.Embedding(40, width), nn.Embedding(40, 1)
        self.net, self.bias = dense(fields * width, 48, 32, 1), nn.Parameter(torch.randn(1))

    def forward(self, items):
        x = self.table(items)
        pairs = (x.sum(1).pow(2) - x.pow(2).sum(1)).sum(1, keepdim=True) / 2
        return (self.first(items).sum(1) + pairs + self.net(x.flatten(1)) + self.bias).sigmoid()


class CrossNetwork(Module):
    """DCN v2: products with the input, of low rank, beside a deep network."""

    def __init__(self, fields=4, width=10, rank=8):
        size = fields * width
        self.table, self.deep = nn.Embedding(40, width), dense(size, 48, 32, last=True)
        self.head = nn.Linear(size + 32, 1)
        self.down = nn.ModuleList(nn.Linear(size, rank, bias=False) for _ in range(2))
        self.up = nn.ModuleList(nn.Linear(rank, size) for _ in range(2))

    def forward(self, items):
        start = self.table(items).flatten(1)
        x = start
        for down, up in zip(self.down, self.up):
            x = start * up(down(x)) + x
        return self.head(torch.cat((x, self.deep(start)), 1)).sigmoid()


class Interest(Module):
    """DIN: a network weighs each item of the history against the candidate."""

    def __init__(self, width=16):
        self.table, self.weigh, self.net = nn.Embedding(40, width), dense(4 * width, 32, 1), dense(2 * width, 40, 24, 1)

    def forward(self, item, history):
        item, past = self.table(item).unsqueeze(1), self.table(history)
        same = item.expand_as(past)
        share = self.weigh(torch.cat((same, past, same - past, same * past), -1))
        return self.net(torch.cat((item.squeeze(1), (share * past).sum(1)), 1)).sigmoid()


class MultiTask(Module):
    """MMoE: experts that tasks weigh by gates of their own."""

    def __init__(self, inward=24, width=32):
        self.experts = nn.ModuleList(dense(inward, 40, width, last=True) for _ in range(3))
        self.gates = nn.ModuleList(nn.Linear(inward, 3) for _ in range(2))
        self.towers = nn.ModuleList(dense(width, 16, 1) for _ in range(2))

    def forward(self, x):
        found = torch.stack([expert(x) for expert in self.experts], 1)
        return tuple(
            tower((gate(x).softmax(-1).unsqueeze(-1) * found).sum(1)) for gate, tower in zip(self.gates, self.towers)
        )


class Towers(Module):
    def __init__(self):
        self.users, self.items, self.a = nn.Embedding(30, 16), nn.Embedding(40, 24), dense(16, 48, 32)
        self.b = dense(24, 40, 32)

    def forward(self, user, item):
        return (F.normalize(self.a(self.users(user)), dim=-1) * F.normalize(self.b(self.items(item)), dim=-1)).sum(-1)


class TableTransformer(Module):
    """FT-Transformer: each number has a vector of its own."""

    def __init__(self, width=48, numbers=6):
        self.weight, self.bias = nn.Parameter(torch.randn(numbers, width)), nn.Parameter(torch.randn(numbers, width))
        self.table, self.token = nn.Embedding(20, width), nn.Parameter(torch.randn(1, 1, width))
        self.blocks = nn.Sequential(Block(width, 4), Block(width, 4))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, numbers, items):
        token, table = self.token.expand(numbers.shape[0], -1, -1), numbers.unsqueeze(-1) * self.weight + self.bias
        x = torch.cat((token, table, self.table(items)), 1)
        return self.head(self.blocks(x)[:, 0])


class TabNet(Module):
    """Steps that choose features by a softmax, GLU layers, what was used counts less."""

    def __init__(self, inward=16, width=24, steps=2):
        self.norm, self.shared = nn.BatchNorm1d(inward), nn.Linear(inward, 4 * width)
        self.own = nn.ModuleList(
            nn.Sequential(nn.Linear(2 * width, 4 * width), nn.BatchNorm1d(4 * width)) for _ in range(steps)
        )
        self.choose = nn.ModuleList(nn.Linear(width, inward) for _ in range(steps))
        self.head, self.width = nn.Linear(width, 3), width

    def forward(self, x):
        x = self.norm(x)
        prior, total, ask = torch.ones_like(x), 0, F.glu(self.shared(x))[:, : self.width]
        for own, choose in zip(self.own, self.choose):
            share = (choose(ask) * prior).softmax(-1)
            prior = prior * (1.3 - share)
            y = F.glu(own(F.glu(self.shared(x * share)))) * 0.7
            give, ask = y.split(self.width, 1)
            total = total + F.relu(give)
        return self.head(total)


def items(n=4, count=20):
    return (torch.randint(0, count, (2, n)),)


NETWORKS = {
    "dlrm": (DLRM, lambda: (torch.randn(2, 6),) + items(3)),
    "deepfm": (DeepFM, items),
    "dcn_v2": (CrossNetwork, items),
    "din": (Interest, lambda: (torch.randint(0, 40, (2,)), torch.randint(0, 40, (2, 5)))),
    "mmoe": (MultiTask, lambda: (torch.randn(2, 24),)),
    "two_towers": (Towers, lambda: (torch.randint(0, 30, (2,)), torch.randint(0, 40, (2,)))),
    "ft_transformer": (TableTransformer, lambda: (torch.randn(2, 6),) + items(3)),
    "tabnet": (TabNet, lambda: (torch.randn(2, 16),)),
}
