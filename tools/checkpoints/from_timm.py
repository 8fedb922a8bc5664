"""CheckpointSaver, as timm's train.py calls it."""

import argparse
import pathlib
from typing import Any

import timm
import timm.utils
from sample import Sample, classified, images, read, same_names, train, vary
from timm.layers import Attention, set_fused_attn
from timm.optim import create_optimizer_v2
from torch import nn


def network(name: str) -> nn.Module:
    return vary(timm.create_model(name, num_classes=5))


def resize(module: nn.Module) -> None:
    for part in module.modules():
        if isinstance(part, Attention):
            part.attn_dim = part.qkv.out_features // 3
            part.head_dim = part.attn_dim // part.num_heads


def sample(
    folder: pathlib.Path,
    name: str,
    layout: str,
    ema: str = "ModelEmaV3",
    size: int = 32,
    onnx: bool = False,
    **options: Any
) -> Sample:
    set_fused_attn(False)  # which divides by the root of the head's size of the moment
    model = network(name)
    optimizer = create_optimizer_v2(model, lr=1e-3, **options)
    average = getattr(timm.utils, ema)(model, decay=0.5)
    loss = classified(images(4, size))
    for _ in range(2):
        train(model, [optimizer], loss, 1)
        average.update(model)
    args = argparse.Namespace(model=name, lr=1e-3, **options)
    saver = timm.utils.CheckpointSaver(
        model, optimizer, args, model_ema=average, checkpoint_dir=str(folder), recovery_dir=str(folder))  # fmt: skip
    saver.save_checkpoint(0, metric=1.0)

    def optimizers(module, at):
        made = create_optimizer_v2(module, lr=1e-3, **options)
        made.load_state_dict(read(at)["optimizer"])
        return [made]

    return Sample(
        "timm", layout, folder / "last.pth.tar", model, (images(1, size),), lambda: network(name),
        lambda at: [read(at)["state_dict"], read(at)["state_dict_ema"]], optimizers, loss, resize=resize,
        onnx=onnx, cuts=None if onnx else same_names)  # fmt: skip


def samples():
    adamw = {"opt": "adamw", "weight_decay": 0.05}
    sgd = {"opt": "sgd", "momentum": 0.9, "weight_decay": 1e-4}
    yield "timm", lambda at: sample(at, "test_resnet", "test_resnet, AdamW, ModelEmaV3", **adamw)
    yield "timm_v2", lambda at: sample(
        at, "test_efficientnet", "test_efficientnet, SGD, ModelEmaV2", "ModelEmaV2", **sgd
    )
    yield "timm_vit", lambda at: sample(
        at, "test_vit", "test_vit, AdamW with layer decay, ModelEmaV3", size=160, layer_decay=0.7, **adamw)  # fmt: skip
    yield "timm_onnx", lambda at: sample(at, "test_resnet", "test_resnet, network as ONNX", onnx=True, **adamw)
