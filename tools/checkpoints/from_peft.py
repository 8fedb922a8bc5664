"""LoRA: a state_dict of the adapted model, and adapters alone."""

import copy
import pathlib
from typing import Mapping

import peft
import torch
from parsimony.plan import Cuts
from safetensors.torch import load_file
from sample import Sample, State, classified, read, train, vary
from torch import Tensor, nn


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.middle, self.head = nn.Linear(8, 24), nn.Linear(24, 16), nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.middle(self.up(x).relu()).relu())


def adapted() -> nn.Module:
    config = peft.LoraConfig(r=3, target_modules=["up", "middle"], modules_to_save=["head"], init_lora_weights=False)
    torch.manual_seed(0)
    return vary(peft.get_peft_model(vary(Perceptron()), config))


def cuts(name: str, planned: Mapping[str, Cuts]) -> Cuts:
    """Those of the layer, of which the factors have an axis each where the network has none of them."""
    if name in planned:
        return planned[name]
    layer, _, kind = name.removeprefix("base_model.model.").partition(".")
    of_base = f"base_model.model.{layer}."
    for prefix in (of_base + "base_layer.", of_base + "modules_to_save.default.", f"{layer}."):
        whole = planned.get(prefix + name.rpartition(".")[2])
        if whole is not None:
            break
    else:
        return {}
    if "lora_A" in kind:
        return {1: whole[1]} if 1 in whole else {}
    if "lora_B" in kind:
        return {0: whole[0]} if 0 in whole else {}
    return whole


def sample(folder: pathlib.Path, layout: str, merged: bool = True, alone: bool = False) -> Sample:
    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(5))
    make = lambda module: torch.optim.AdamW([p for p in module.parameters() if p.requires_grad], 1e-3)
    model = adapted()
    optimizer = make(model)
    train(model, [optimizer], classified(x))
    if alone:
        model.save_pretrained(folder / "adapter")
    else:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 2}, folder / "last.pt")

    def optimizers(module, at):
        made = make(module)
        if not alone:
            made.load_state_dict(read(at)["optimizer"])
        return [made]

    def load(module: nn.Module, state: State) -> None:
        if not alone:
            module.load_state_dict(state)
        elif peft.set_peft_model_state_dict(module, state).unexpected_keys:
            raise KeyError("unexpected names")

    return Sample(
        "peft", layout, folder / ("adapter/adapter_model.safetensors" if alone else "last.pt"),
        copy.deepcopy(model).merge_and_unload() if merged else model, (x[:1],), adapted,
        lambda at: [load_file(at) if alone else read(at)["model"]], optimizers, classified(x), load=load,
        cuts=cuts)  # fmt: skip


def samples():
    yield "peft", lambda at: sample(at, "LoRA, base_layer in a state_dict", merged=False)
    yield "peft_merged", lambda at: sample(at, "the same, the network merged")
    yield "peft_adapter", lambda at: sample(at, "the adapter alone, the network merged", alone=True)
