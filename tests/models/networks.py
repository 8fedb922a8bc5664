"""torchvision's networks by name: how each is made, fed, and made to return plain tensors."""

import torch
import torchvision
from torchvision import models

KINDS = {
    "classification": models,
    "segmentation": models.segmentation,
    "detection": models.detection,
    "video": models.video,
    "optical_flow": models.optical_flow,
}
SIDE = 320  # of the images that detectors rescale to
FLOW_UPDATES = 3  # of twelve: each repeats the same nodes
SIZES = {"inception_v3": 299, "maskrcnn": SIDE, "swin_v2": 256}
FRAMES = 16


def names_of(kind):
    return models.list_models(module=KINDS[kind])


def network(name):
    """The network in evaluation mode, untrained, and its kind."""
    kind = next(kind for kind in KINDS if name in names_of(kind))
    options = {"weights": None}
    if kind in ("segmentation", "detection"):
        options["weights_backbone"] = None
    if kind == "detection" and not name.startswith("ssd"):
        options.update(min_size=SIDE, max_size=SIDE)
    if name in ("googlenet", "inception_v3"):
        options["init_weights"] = True
    return models.get_model(name, **options).eval(), kind


def example_of(name, kind):
    """The tensors of one call: a batch of one, a single image of [c, h, w] for detectors."""
    if kind == "detection":
        return (torch.rand(3, SIDE, SIDE),)
    if kind == "video":
        side = 224 if name.startswith(("mvit", "s3d")) else 112
        return (torch.randn(1, 3, FRAMES, side, side),)
    if kind == "optical_flow":
        return torch.rand(1, 3, 128, 128) * 2 - 1, torch.rand(1, 3, 128, 128) * 2 - 1
    side = next((size for start, size in SIZES.items() if name.startswith(start)), 224)
    return (torch.randn(1, 3, side, side),)


def plain(model, kind, form):
    """The network as a module from tensors to tensors."""
    if kind == "segmentation":
        return Segmenter(model).eval()
    if kind == "optical_flow":
        return Flow(model).eval()
    if kind != "detection":
        return model
    # libtorch alone has no torchvision::nms and roi_align, which ONNX has.
    return Detector(model).eval() if form == "onnx" else DetectorHeads(model).eval()


class Segmenter(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, image):
        return self.model(image)["out"]


class Flow(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, first, second):
        return self.model(first, second, num_flow_updates=FLOW_UPDATES)[-1]


class Detector(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, image):
        return tuple(self.model([image])[0].values())


class DetectorHeads(torch.nn.Module):
    """What a detector's heads say, before boxes are decoded; of two stages, about the whole image."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, image):
        model = self.model
        maps = model.backbone(image.unsqueeze(0))
        if not hasattr(model, "rpn"):
            return tuple(model.head(list(maps.values())).values())
        scores, boxes = model.rpn.head(list(maps.values()))
        whole = torch.nn.functional.adaptive_avg_pool2d(maps["0"], 7)
        classes = model.roi_heads.box_predictor(model.roi_heads.box_head(whole))
        return (*scores, *boxes, *classes, *extra_heads(model.roi_heads, maps["0"]))


def extra_heads(heads, features):
    whole = torch.nn.functional.adaptive_avg_pool2d(features, 14)
    if heads.mask_predictor is not None:
        return (heads.mask_predictor(heads.mask_head(whole)),)
    if heads.keypoint_predictor is not None:
        return (heads.keypoint_predictor(heads.keypoint_head(whole)),)
    return ()
