"""Accuracy of a classifier over idx images and labels: how often its largest output is the label."""

import gzip
import math
import pathlib

import numpy

from .faults import FileFault
from .model import Model
from .runtime import Session

OPEN_BATCH = 100
STORED = ("float32", "float64", "float16", "uint8", "int32")  # types of inputs that take images
UNSIGNED_BYTE = 0x08


def read_idx(path):
    """The array of an idx file of bytes, plain or gzipped; the first dimension counts samples."""
    data = pathlib.Path(path).read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    if data[:3] != bytes([0, 0, UNSIGNED_BYTE]) or len(data) < 4 or data[3] == 0:
        raise FileFault(f"{path}: not an idx file of bytes")
    dims = numpy.frombuffer(data[4 : 4 + 4 * data[3]], ">u4").tolist()
    found = numpy.frombuffer(data[4 + 4 * data[3] :], numpy.uint8)
    if found.size != math.prod(dims):
        raise FileFault(f"{path}: found {found.size} values, {dims} wants {math.prod(dims)}")
    return found.reshape(dims)


def accuracy(path, images, labels, scale=1, mean=0, std=1, count=None, threads=1):
    """(correct, total); a pixel p is fed as (p * scale - mean) / std."""
    inputs = Model.read(path).inputs
    if len(inputs) != 1 or not inputs[0].dims:
        raise FileFault(f"{path}: expected a model with one tensor as input")
    if len(images) != labels.size:
        raise FileFault(f"found {len(images)} images, but {labels.size} labels")
    (expected,), sample = inputs, math.prod(images.shape[1:])
    batch, *shape = expected.dims
    fits = expected.type in STORED and all(isinstance(dim, int) for dim in shape)
    if not fits or math.prod(shape) != sample:
        dims = ",".join(str(dim or "?") for dim in expected.dims)
        raise FileFault(
            f'{path}: input "{expected.name}" is {expected.type} [{dims}], the images have {sample} pixels each'
        )
    total = min(len(images), count or len(images))
    is_fixed = isinstance(batch, int)
    batch = batch if is_fixed else OPEN_BATCH
    session = Session(path, "all", threads)
    correct = 0
    for start in range(0, total, batch):
        pixels = images[start : min(start + batch, total)].astype(float)
        numbers = (pixels * scale - mean) / std
        if "int" in expected.type:
            numbers = numpy.floor(numbers + 0.5)
        fed = numpy.zeros((batch if is_fixed else len(pixels), *shape), expected.type)
        fed[: len(pixels)] = numbers.reshape(-1, *shape)
        output, *_ = session.run({expected.name: fed}).values()
        found = classes(output, len(fed))[: len(pixels)]
        correct += int((found == labels[start : start + len(pixels)]).sum())
    return correct, total


def classes(output, batch):
    """Scores give the class of the largest; a model that ends in ArgMax gives the class itself."""
    scores = output.reshape(batch, -1)
    is_class = scores.shape[1] == 1 and "int" in output.dtype.name
    return scores[:, 0] if is_class else scores.argmax(axis=1)
