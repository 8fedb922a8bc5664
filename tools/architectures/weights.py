"""Networks with weights that tell all channels apart."""

import torch

from . import NETWORKS


def network(name):
    """The network and its inputs, the same whenever they are made."""
    _, make, inputs = NETWORKS[name]
    torch.manual_seed(0)
    return randomised(make().eval()), inputs()


def randomised(module):
    """Statistics of normalisations and scales that start as constants get numbers of their own."""
    for name, tensor in list(module.named_buffers()) + list(module.named_parameters()):
        if name.endswith("running_mean"):
            tensor.data.normal_(0, 0.1)
        elif name.endswith("running_var"):
            tensor.data.uniform_(0.5, 1.5)
        elif tensor.is_floating_point() and tensor.numel() > 1 and (tensor == tensor.flatten()[0]).all():
            tensor.data.add_(torch.randn_like(tensor) * 0.1)
    return module
