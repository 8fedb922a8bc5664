"""Graphs and points."""

import torch
import torch.nn.functional as F
from torch import nn

from .pieces import Module, dense, mlp


class GraphConvolution(Module):
    """GCN and GIN, over a dense matrix of neighbours."""

    def __init__(self, sizes=(16, 48, 32, 5), isomorphism=False):
        layer = lambda i, o: dense(i, o, o) if isomorphism else nn.Linear(i, o)
        self.layers = nn.ModuleList(layer(i, o) for i, o in zip(sizes, sizes[1:]))
        self.own = nn.Parameter(torch.tensor([0.1])) if isomorphism else None

    def forward(self, x, near):
        for i, layer in enumerate(self.layers):
            x = F.relu(x) if i else x
            x = layer(near @ x if self.own is None else (1 + self.own) * x + near @ x)
        return x


class GraphAttention(Module):
    """GAT: scores as sums of what two nodes give."""

    def __init__(self, inward, heads, each):
        self.heads, self.linear = heads, nn.Linear(inward, heads * each, bias=False)
        self.a, self.b = nn.Parameter(torch.randn(heads, each)), nn.Parameter(torch.randn(heads, each))

    def forward(self, x, near):
        y = self.linear(x).view(x.shape[0], self.heads, -1)
        scores = (y * self.a).sum(-1).t()[:, :, None] + (y * self.b).sum(-1).t()[:, None, :]
        scores = F.leaky_relu(scores, 0.2).masked_fill(near[None] == 0, -1e9).softmax(-1)
        return (scores @ y.transpose(0, 1)).transpose(0, 1).flatten(1)


class GAT(Module):
    def __init__(self):
        self.one, self.two = GraphAttention(16, 4, 12), GraphAttention(48, 1, 5)

    def forward(self, x, near):
        return self.two(F.elu(self.one(x, near)), near)


class Messages(Module):
    """GraphSAGE and message passing over a list of edges."""

    def __init__(self, width=32):
        self.inward = nn.Linear(16, width)
        self.message = dense(2 * width + 4, 48, width)
        self.update, self.head = nn.GRUCell(width, width), nn.Linear(width, 5)

    def forward(self, x, edges, features):
        x = self.inward(x)
        for _ in range(2):
            message = self.message(torch.cat((x[edges[0]], x[edges[1]], features), -1))
            x = self.update(torch.zeros_like(x).scatter_add(0, edges[1][:, None].expand_as(message), message), x)
        return self.head(x)


class Sage(Module):
    def __init__(self):
        self.own = nn.ModuleList([nn.Linear(16, 32), nn.Linear(32, 5)])
        self.near = nn.ModuleList([nn.Linear(16, 32), nn.Linear(32, 5)])

    def forward(self, x, near):
        share = near / near.sum(-1, keepdim=True)
        x = F.normalize(F.relu(self.own[0](x) + self.near[0](share @ x)), dim=-1)
        return self.own[1](x) + self.near[1](share @ x)


class PointNet(Module):
    """A network that turns the points, shared layers, a maximum; a label for each point."""

    def __init__(self):
        layer = lambda i, o: nn.Sequential(nn.Conv1d(i, o, 1), nn.BatchNorm1d(o), nn.ReLU())
        self.turn = nn.Sequential(layer(3, 32), layer(32, 48))
        self.angles = dense(48, 24, 9)
        self.one, self.two = layer(3, 32), nn.Sequential(layer(32, 40), layer(40, 64))
        self.last = nn.Sequential(layer(96, 48), nn.Conv1d(48, 4, 1))

    def forward(self, x):
        turn = self.angles(self.turn(x).amax(2)).view(-1, 3, 3) + torch.eye(3)
        one = self.one(torch.bmm(x.transpose(1, 2), turn).transpose(1, 2))
        whole = self.two(one).amax(2, keepdim=True).expand(-1, -1, x.shape[2])
        return self.last(torch.cat((one, whole), 1))


class EdgeConvolution(Module):
    """DGCNN: the nearest neighbours in the space of features."""

    def __init__(self, inward, outward, count=4):
        self.count = count
        self.layer = nn.Sequential(
            nn.Conv2d(2 * inward, outward, 1, bias=False), nn.BatchNorm2d(outward), nn.LeakyReLU(0.2),
        )

    def forward(self, x):
        b, c, n = x.shape
        square = x.pow(2).sum(1, keepdim=True)
        apart = square.transpose(1, 2) + square - 2 * x.transpose(1, 2) @ x
        index = apart.topk(self.count, -1, largest=False)[1].reshape(b, 1, n * self.count)
        near = x.gather(2, index.expand(-1, c, -1)).view(b, c, n, self.count)
        own = x.unsqueeze(3).expand(-1, -1, -1, self.count)
        return self.layer(torch.cat((near - own, own), 1)).amax(3)


class DGCNN(Module):
    def __init__(self):
        self.one, self.two = EdgeConvolution(3, 24), EdgeConvolution(24, 32)
        self.last, self.head = nn.Conv1d(56, 64, 1), nn.Linear(128, 5)

    def forward(self, x):
        one = self.one(x)
        x = F.leaky_relu(self.last(torch.cat((one, self.two(one)), 1)))
        return self.head(torch.cat((x.amax(2), x.mean(2)), 1))


class PointTransformer(Module):
    """Attention by differences between vectors, over all pairs of points."""

    def __init__(self, width=32):
        self.inward, self.q, self.k = nn.Linear(3, width), nn.Linear(width, width), nn.Linear(width, width)
        self.v = nn.Linear(width, width)
        self.place, self.weight, self.head = mlp(3, 24, nn.ReLU), mlp(width, 40, nn.ReLU), nn.Linear(width, 5)
        self.place[2] = nn.Linear(24, width)

    def forward(self, points):
        x = self.inward(points)
        place = self.place(points[:, :, None] - points[:, None])
        share = self.weight(self.q(x)[:, :, None] - self.k(x)[:, None] + place).softmax(2)
        return self.head(x + (share * (self.v(x)[:, None] + place)).sum(2))


def graph():
    near = (torch.rand(9, 9) > 0.6).float() + torch.eye(9)
    return torch.randn(9, 16), near


def points():
    return (torch.randn(2, 3, 12),)


NETWORKS = {
    "gcn": (GraphConvolution, graph),
    "gin": (lambda: GraphConvolution(isomorphism=True), graph),
    "gat": (GAT, graph),
    "graph_sage": (Sage, graph),
    "message_passing": (Messages, lambda: (torch.randn(9, 16), torch.randint(0, 9, (2, 14)), torch.randn(14, 4))),
    "pointnet": (PointNet, points),
    "dgcnn": (DGCNN, points),
    "point_transformer": (PointTransformer, lambda: (torch.randn(2, 12, 3),)),
}
