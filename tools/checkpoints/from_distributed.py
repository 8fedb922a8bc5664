"""torch.distributed.checkpoint, consolidated by dcp_to_torch_save."""

import pathlib

import torch
import torch.distributed.checkpoint as dcp
from sample import Sample, classified, convolutions, decay_groups, images, read, train, vary
from torch.distributed.checkpoint import state_dict
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save


def sample(folder: pathlib.Path, layout: str, flat: bool = False) -> Sample:
    fresh = lambda: vary(convolutions())
    make = lambda module: torch.optim.AdamW(decay_groups(module), 1e-3)
    options = state_dict.StateDictOptions(flatten_optimizer_state_dict=flat)
    model = fresh()
    optimizer = make(model)
    train(model, [optimizer], classified(images()))
    weights, states = state_dict.get_state_dict(model, optimizer, options=options)
    dcp.save({"model": weights, "optimizer": states}, checkpoint_id=str(folder / "dcp"), no_dist=True)
    path = folder / "last.pt"
    dcp_to_torch_save(str(folder / "dcp"), path)

    def optimizers(module, at):
        made = make(module)
        state_dict.set_optimizer_state_dict(module, made, read(at)["optimizer"], options=options)
        return [made]

    return Sample(
        "torch", f"distributed.checkpoint, {layout}", path, model, (images(1),), fresh, lambda at: [read(at)["model"]],
        optimizers, classified(images()))  # fmt: skip


def samples():
    yield "dcp", lambda at: sample(at, "AdamW in two groups")
    yield "dcp_flat", lambda at: sample(at, "flattened states", flat=True)
