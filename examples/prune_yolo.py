"""Prunes the module of an Ultralytics YOLO in place, trains it with Ultralytics' trainer, saves, loads and exports it.

python3 examples/prune_yolo.py yolo11n.pt data.yaml --imgsz 640 --epochs 100
"""

import argparse

import parsimony
import torch
from ultralytics import YOLO
from ultralytics.models.yolo.detect import DetectionTrainer
from ultralytics.nn.modules import C2f


def trainer_of(module):
    """A trainer of this very module: Ultralytics' own builds a dense one from its YAML and copies what fits."""

    class Trainer(DetectionTrainer):
        def get_model(self, cfg=None, weights=None, verbose=True):
            return module

    return Trainer


def prune(yolo, imgsz, **settings):
    """Prunes yolo.model in place; returns the plan."""
    images = torch.rand(1, 3, imgsz, imgsz)
    yolo.model.float().eval()
    plan = parsimony.prune(yolo.model, images, **settings)
    for module in yolo.model.modules():
        if isinstance(module, C2f):
            module.c = module.cv1.conv.out_channels // 2  # forward halves without it; Ultralytics' exports read it
    return plan


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a .pt file, or a .yaml file for new weights")
    parser.add_argument("data", help="data.yaml of a data set with the classes of the model")
    parser.add_argument("--ratio", type=float, default=0.3)
    parser.add_argument("--imgsz", type=int, default=640)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--project", help="where Ultralytics writes")
    asked = parser.parse_args(arguments)

    yolo = YOLO(asked.model, task="detect")
    print(prune(yolo, asked.imgsz, ratio=asked.ratio))
    settings = {"data": asked.data, "imgsz": asked.imgsz, "epochs": asked.epochs, "project": asked.project}
    yolo.train(trainer=trainer_of(yolo.model), **settings)
    small = YOLO(yolo.trainer.best)  # the file holds the pruned module
    print("saved", yolo.trainer.best)
    print("exported", small.export(format="onnx", imgsz=asked.imgsz, simplify=False))
    return yolo, small


if __name__ == "__main__":
    main()
