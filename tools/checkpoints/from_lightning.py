"""Trainer.save_checkpoint."""

import pathlib
from typing import Any, Mapping, Sequence

import lightning
import torch
from lightning.pytorch.callbacks import EMAWeightAveraging
from parsimony.plan import Cuts
from sample import Sample, classified, convolutions, decay_groups, images, labels, read, vary
from torch import nn


class Lit(lightning.LightningModule):
    def __init__(self, groups: str = "all", frozen: int = 0) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = groups != "two"
        self.model = vary(convolutions())
        self.model[:frozen].requires_grad_(False)

    def forward(self, x):
        return self.model(x)

    def training_step(self, batch, _):
        loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
        if not self.automatic_optimization:
            for optimizer in self.optimizers():
                optimizer.zero_grad()
            self.manual_backward(loss)
            for optimizer in self.optimizers():
                optimizer.step()
        return loss

    def configure_optimizers(self):
        if self.hparams.groups == "two":
            head, body = self.model[10:].parameters(), self.model[:10].parameters()
            return [torch.optim.Adam(head, 1e-3), torch.optim.SGD(body, 1e-2, 0.9)]
        if self.hparams.groups == "decay":
            return [torch.optim.AdamW(decay_groups(self), 1e-3)]
        return [torch.optim.Adam(self.parameters(), 1e-3)]


def cuts(name: str, planned: Mapping[str, Cuts]) -> Cuts:
    return planned.get(name.removeprefix("model."), {})


def sample(
    folder: pathlib.Path, layout: str, callbacks: Sequence[Any] = (), onnx: bool = False, **options: Any
) -> Sample:
    lit = Lit(**options)
    data = torch.utils.data.TensorDataset(images(8), labels(8))
    trainer = lightning.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, callbacks=list(callbacks),
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder)  # fmt: skip
    trainer.fit(lit, torch.utils.data.DataLoader(data, batch_size=4))
    path = folder / "last.ckpt"
    trainer.save_checkpoint(path)

    def states(at):
        saved = read(at)
        return [saved[key] for key in ("current_model_state", "state_dict") if key in saved]

    def optimizers(module, at):
        made = module.configure_optimizers()
        for optimizer, state in zip(made, read(at)["optimizer_states"], strict=True):
            optimizer.load_state_dict(state)
        return made

    fresh = lambda: Lit(**options)
    exported = fresh()
    exported.load_state_dict(states(path)[0])
    return Sample(
        "lightning", layout, path, exported.model, (images(1),), fresh, states, optimizers, classified(images()),
        part=lambda module: module.model, onnx=onnx, cuts=None if onnx else cuts)  # fmt: skip


def samples():
    yield "lightning", lambda at: sample(at, "Adam")
    yield "lightning_decay", lambda at: sample(at, "AdamW in two groups, first layers frozen", groups="decay", frozen=2)
    yield "lightning_two", lambda at: sample(at, "two optimizers, of head and body", groups="two")
    yield "lightning_ema", lambda at: sample(at, "EMAWeightAveraging", [EMAWeightAveraging(decay=0.5)])
    yield "lightning_onnx", lambda at: sample(at, "network as ONNX", onnx=True)
