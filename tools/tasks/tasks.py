#!/usr/bin/env python3
"""Inputs and numbers of the networks in networks.py; called by task.py.

    tasks.py prepare NETWORK SHARED FOLDER   writes calibration, test and, where there is something to
                                             see, shown.safetensors; prints what a run needs, as JSON
    tasks.py value NETWORK SHARED DENSE SMALL  prints {"error", "value"} of outputs on the test part
    tasks.py draw NETWORK OUTPUT.jpg OUTPUTS...  draws answers to what is shown, side by side

Needs python3-numpy, python3-pil, espeak-ng, python-matplotlib-data and python3-skimage.
"""

import json
import pathlib
import sys

import numpy
from PIL import Image

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import tensors  # noqa: E402
from networks import NETWORKS  # noqa: E402
from sources import PARTS  # noqa: E402

HEIGHT = 240  # of a drawn answer


def prepare(network, shared, folder):
    folder = pathlib.Path(folder)
    samples = {}
    for part in PARTS:
        arrays = network.inputs(pathlib.Path(shared), part)
        tensors.save(folder / f"{part}.safetensors", arrays)
        samples[part] = len(next(iter(arrays.values())))
    shown = network.shown()
    if shown:
        tensors.save(folder / "shown.safetensors", shown)
    about = {
        "file": network.file,
        "measure": network.measure,
        "states": network.states,
        "fixed": network.fixed,
        "opened": network.opened,
        "samples": min(network.counts[0], samples["calibration"]),
        "all": samples["calibration"],
        "shown": bool(shown),
    }
    print(json.dumps(about))


def value(network, shared, dense, small):
    dense, small = tensors.load(dense), tensors.load(small)
    difference = sum(numpy.sum((small[name].astype(float) - dense[name]) ** 2) for name in dense)
    whole = sum(numpy.sum(dense[name].astype(float) ** 2) for name in dense)
    number = network.value(dense, small, pathlib.Path(shared))
    print(json.dumps({"error": float(numpy.sqrt(difference / whole)), "value": number}))


def draw(network, output, *answers):
    images = [network.picture(tensors.load(answer)) for answer in answers]
    images = [i.resize((round(i.width * HEIGHT / i.height), HEIGHT), Image.LANCZOS) for i in images]
    gap = 8
    whole = Image.new("RGB", (sum(i.width + gap for i in images) - gap, HEIGHT), "white")
    left = 0
    for image in images:
        whole.paste(image, (left, 0))
        left += image.width + gap
    whole.save(output, quality=80, optimize=True)


if __name__ == "__main__":
    verb, name, *rest = sys.argv[1:]
    {"prepare": prepare, "value": value, "draw": draw}[verb](NETWORKS[name], *rest)
