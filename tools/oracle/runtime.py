"""ONNX Runtime: how a model is run on it."""

import os

import numpy

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # before the library is loaded
import onnxruntime  # noqa: E402

from .faults import Refusal

LEVELS = {
    "disabled": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
SILENT = 4
onnxruntime.set_default_logger_severity(SILENT)


class Session:
    """A loaded model.

    model: a path, or the bytes of a self-contained file; level: of graph optimization.
    """

    def __init__(self, model, level, threads=1):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = LEVELS[level]
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = SILENT
        providers = ["CPUExecutionProvider"]
        model = model if isinstance(model, bytes) else str(model)
        self.inner = refusing(onnxruntime.InferenceSession, model, options, providers)
        self.outputs = [output.name for output in self.inner.get_outputs()]

    def run(self, feeds):
        """{name: array} of the outputs from {name: array} of the inputs."""
        results = dict(zip(self.outputs, refusing(self.inner.run, None, feeds)))
        for name, result in results.items():
            if not isinstance(result, numpy.ndarray):
                raise Refusal(f'output "{name}" is not a tensor')
        return results


def run_all(model, level, feeds_list, threads):
    """Opens, runs every set of feeds, closes: one model is held in memory at a time."""
    session = Session(model, level, threads)
    return [session.run(feeds) for feeds in feeds_list]


def refusing(call, *arguments):
    # ONNX Runtime's exceptions have no class in common but this one.
    try:
        return call(*arguments)
    except Exception as error:
        raise Refusal(str(error).strip().split("\n")[0]) from error
