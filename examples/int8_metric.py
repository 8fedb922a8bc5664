"""Prints a number of the int8 network that a model becomes, for --metric and --latency-command.

int8_metric.py milliseconds MODEL.onnx SAMPLES.npz
int8_metric.py error MODEL.onnx SAMPLES.npz NET.onnx    |outputs - NET's| / |NET's|, samples after those that calibrate
"""

import pathlib
import statistics
import sys
import tempfile
import time

import numpy
import onnxruntime
from prune_int8 import COUNT, quantise


def session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def held_out(samples):
    arrays = {name: array[COUNT:] for name, array in numpy.load(samples).items()}
    return [{name: a[k : k + 1] for name, a in arrays.items()} for k in range(min(map(len, arrays.values())))]


def error(model, net, feeds):
    small, dense = session(model), session(net)
    difference = whole = 0
    for feed in feeds:
        for a, b in zip(small.run(None, feed), dense.run(None, feed)):
            difference += numpy.sum((a.astype(float) - b) ** 2)
            whole += numpy.sum(b.astype(float) ** 2)
    return (difference / whole) ** 0.5


def milliseconds(models, feed, rounds=100):
    """Medians of the processor time of one run each, taken in turn on one thread."""
    sessions, times = [session(model) for model in models], [[] for _ in models]
    for _ in range(rounds):
        for one, taken in zip(sessions, times):
            start = time.process_time()
            one.run(None, feed)
            taken.append(1000 * (time.process_time() - start))
    return [statistics.median(taken) for taken in times]


def main(what, model, samples, *net):
    feeds = held_out(samples)
    with tempfile.TemporaryDirectory() as folder:
        int8 = pathlib.Path(folder) / "int8.onnx"
        quantise(model, int8, samples)
        print(error(int8, *net, feeds) if what == "error" else milliseconds([int8], feeds[0])[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
