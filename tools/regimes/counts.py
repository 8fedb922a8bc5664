"""Costs of a network."""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode


def macs_of(model, example):
    """Multiply-adds of one run, as torch counts them, products of attention included."""
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), counter:
        model.eval()(example)
    return counter.get_total_flops() // 2


def parameters_of(model):
    return sum(one.numel() for one in model.parameters())
