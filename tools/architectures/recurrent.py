"""Recurrent networks."""

import torch
import torch.nn.functional as F
from torch import nn

from .pieces import Module, VOCABULARY, tokens


class Recurrent(Module):
    def __init__(self, kind, **options):
        self.net = kind(24, 32, batch_first=True, **options)
        self.head = nn.Linear(32 * (1 + self.net.bidirectional), 4)

    def forward(self, x):
        return self.head(self.net(x)[0][:, -1])


class LSTMText(Module):
    """AWD-LSTM: the head is the embedding; the state comes in and goes out."""

    def __init__(self):
        self.embed, self.net = nn.Embedding(VOCABULARY, 32), nn.LSTM(32, 48, 1, batch_first=True)
        self.down, self.bias = nn.Linear(48, 32), nn.Parameter(torch.randn(VOCABULARY) * 0.1)

    def forward(self, tokens, h, c):
        x, (h, c) = self.net(self.embed(tokens), (h, c))
        return F.linear(self.down(x), self.embed.weight, self.bias), h, c


class Seq2Seq(Module):
    """GRUs with additive attention."""

    def __init__(self):
        self.source, self.target = nn.Embedding(VOCABULARY, 24), nn.Embedding(VOCABULARY, 24)
        self.encoder = nn.GRU(24, 32, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(24, 48, batch_first=True)
        self.bridge, self.q, self.k = nn.Linear(64, 48), nn.Linear(48, 40), nn.Linear(64, 40)
        self.score = nn.Linear(40, 1)
        self.head = nn.Linear(48 + 64, VOCABULARY)

    def forward(self, source, target):
        memory, last = self.encoder(self.source(source))
        state = torch.tanh(self.bridge(torch.cat((last[0], last[1]), -1))).unsqueeze(0)
        x, _ = self.decoder(self.target(target), state)
        scores = self.score(torch.tanh(self.q(x).unsqueeze(2) + self.k(memory).unsqueeze(1))).squeeze(-1)
        return self.head(torch.cat((x, scores.softmax(-1) @ memory), -1))


class ConvLSTM(Module):
    def __init__(self, inward=3, hidden=24):
        self.hidden, self.gates = hidden, nn.Conv2d(inward + hidden, 4 * hidden, 3, padding=1)
        self.head = nn.Conv2d(hidden, inward, 1)

    def forward(self, x):
        h = c = torch.zeros(x.shape[0], self.hidden, *x.shape[-2:])
        for t in range(x.shape[1]):
            i, f, o, g = self.gates(torch.cat((x[:, t], h), 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return self.head(h)


def steps():
    return (torch.randn(2, 12, 24),)


NETWORKS = {
    "lstm": (lambda: Recurrent(nn.LSTM, num_layers=2), steps),
    "gru_both_ways": (lambda: Recurrent(nn.GRU, bidirectional=True), steps),
    "awd_lstm": (LSTMText, lambda: tokens() + (torch.randn(1, 2, 48), torch.randn(1, 2, 48))),
    "seq2seq": (Seq2Seq, lambda: tokens(9) + tokens(7)),
    "conv_lstm": (ConvLSTM, lambda: (torch.randn(2, 4, 3, 8, 8),)),
}
