"""What the networks use and PyTorch 1.13 lacks."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
    scores = q @ k.transpose(-2, -1) * (scale or 1 / math.sqrt(q.shape[-1]))
    if is_causal:
        scores = scores + torch.full((q.shape[-2], k.shape[-2]), float("-inf")).triu(1)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    return scores.softmax(-1) @ v


if not hasattr(nn, "RMSNorm"):
    nn.RMSNorm = RMSNorm
if not hasattr(F, "scaled_dot_product_attention"):
    F.scaled_dot_product_attention = attention
