"""last.pt of a YOLO, by its trainer on images made here: a pickled module, float16."""

import copy
import os
import pathlib
import shutil
import tempfile
from typing import Mapping

os.environ["YOLO_CONFIG_DIR"] = tempfile.mkdtemp(prefix="yolo_")
os.environ["YOLO_OFFLINE"] = "True"

import numpy as np
import torch
import ultralytics
import yaml
from parsimony.plan import Cuts
from PIL import Image
from sample import Sample, images, like, read
from ultralytics.engine.trainer import BaseTrainer
from ultralytics.utils import IterableSimpleNamespace

YOLO = {
    "nc": 3,
    "backbone": [
        [-1, 1, "Conv", [16, 3, 2]], [-1, 1, "Conv", [32, 3, 2]], [-1, 1, "C3", [32]],
        [-1, 1, "Conv", [32, 3, 2]], [-1, 1, "SPPF", [32, 5]],
    ],
    "head": [
        [-1, 1, "nn.Upsample", [None, 2, "nearest"]], [[-1, 2], 1, "Concat", [1]], [-1, 1, "C3", [32, False]],
        [[7, 4], 1, "Detect", ["nc"]],
    ],
}  # fmt: skip


def write_data(folder: pathlib.Path) -> pathlib.Path:
    rng = np.random.default_rng(0)
    for name in ("images", "labels"):
        (folder / name).mkdir()
    for i in range(4):
        Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(folder / "images" / f"{i}.png")
        (folder / "labels" / f"{i}.txt").write_text(f"{i % 3} 0.5 0.5 0.4 0.4\n")
    data = {"path": str(folder), "train": "images", "val": "images", "names": {0: "a", 1: "b", 2: "c"}}
    (folder / "data.yaml").write_text(yaml.safe_dump(data))
    return folder / "data.yaml"


def cuts(name: str, planned: Mapping[str, Cuts]) -> Cuts:
    """Those of the network, into whose convolutions normalisations may be folded."""
    module, _, kind = name.rpartition(".")
    layer = planned.get(f"{module.removesuffix('.bn')}.conv.weight", {})
    if module.endswith(".bn") and name not in planned and 0 in layer and kind != "num_batches_tracked":
        return {0: layer[0]}
    return planned.get(name, {})


def sample(folder: pathlib.Path, layout: str, optimizer: str, onnx: bool = False) -> Sample:
    (folder / "tiny.yaml").write_text(yaml.safe_dump(YOLO))
    path = folder / "copy.pt"
    yolo = ultralytics.YOLO(str(folder / "tiny.yaml"), task="detect")
    # The trainer strips the optimizer from the file once it has finished.
    yolo.add_callback("on_model_save", lambda trainer: shutil.copy(trainer.last, path))
    yolo.train(
        data=str(write_data(folder)), epochs=2, imgsz=64, batch=2, device="cpu", amp=False, plots=False, workers=0,
        project=str(folder), name="run", verbose=False, val=False, optimizer=optimizer)  # fmt: skip
    saved = read(path)
    model = saved["ema"].float()
    model.model[-1].export, model.model[-1].format = True, "torchscript"  # the detections alone
    exported = copy.deepcopy(model)
    if onnx:
        exported.fuse(verbose=False)

    def fresh() -> torch.nn.Module:
        module = copy.deepcopy(model)
        for name, parameter in module.named_parameters():
            parameter.requires_grad_(".dfl" not in name)
        return module

    def optimizers(module, at):
        made = BaseTrainer.build_optimizer(BaseTrainer.__new__(BaseTrainer), module, optimizer, 0.01, 0.9, 5e-4)
        made.load_state_dict(read(at)["optimizer"])
        return [made]

    def loss(module: torch.nn.Module) -> torch.Tensor:
        module.args = IterableSimpleNamespace(**saved["train_args"])
        batch = {
            "img": like(module, images(2, 64)), "cls": torch.tensor([[0.0], [1.0]]),
            "bboxes": torch.full((2, 4), 0.4), "batch_idx": torch.tensor([0.0, 1.0]),
        }  # fmt: skip
        return module(batch)[0].sum()

    return Sample(
        "ultralytics", layout, path, exported, (images(1, 64),), fresh,
        lambda at: [read(at)["ema"].float().state_dict()], optimizers, loss, cuts=cuts, onnx=onnx)  # fmt: skip


def samples():
    yield "ultralytics", lambda at: sample(at, "last.pt, SGD in three groups", "SGD")
    yield "ultralytics_adamw", lambda at: sample(at, "last.pt, AdamW in three groups", "AdamW")
    yield "ultralytics_onnx", lambda at: sample(at, "last.pt, network fused and as ONNX", "SGD", onnx=True)
