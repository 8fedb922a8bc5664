"""Random weights under which a comparison says something.

An untrained network has scales of one, biases and heads of zero, and normalisations that know no data:
whole branches add nothing, and outputs hardly depend on inputs. Here no parameter is constant, and the
statistics of each BatchNorm are those of data that runs through it, shaken.
"""

import math

import torch

NORMS = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.LayerNorm, torch.nn.GroupNorm)


@torch.no_grad()
def randomise(model, kind, example):
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if parameter.numel() > 1 and parameter.min() == parameter.max():
                fill(parameter, name, isinstance(module, NORMS))
    norms = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    if norms:
        measure(model, norms, kind, example)
    if kind == "detection":
        let_boxes_through(model)


def fill(parameter, name, is_norm):
    if is_norm and name == "weight":
        parameter.uniform_(0.5, 1.5)
    elif "scale" in name:
        parameter.uniform_(0.1, 0.5)  # layer scale: a share of the residual
    elif parameter.dim() == 1:
        parameter.normal_(0, 0.1)
    else:
        parameter.normal_(0, 1 / math.sqrt(parameter[0].numel()))


def measure(model, norms, kind, example):
    """Statistics of a batch of two, then shaken."""
    for norm in norms:
        norm.momentum = 1.0
        norm.train()
    batch = [torch.cat([tensor, torch.randn_like(tensor)]) for tensor in example]
    if kind == "detection":
        batch = [[torch.rand_like(example[0]), torch.rand_like(example[0])]]
    model(*batch)
    for norm in norms:
        norm.eval()
        norm.momentum = 0.1
        norm.running_mean += torch.randn_like(norm.running_mean) * 0.1 * norm.running_var.sqrt()
        norm.running_var.mul_(torch.rand_like(norm.running_var) + 0.5).add_(1e-3)


def let_boxes_through(model):
    """Untrained scores are low; without boxes there would be nothing to compare."""
    for part in (model, getattr(model, "roi_heads", None)):
        if hasattr(part, "score_thresh"):
            part.score_thresh = 1e-3
