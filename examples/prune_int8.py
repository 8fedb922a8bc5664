"""Prunes, recovers and quantises an ONNX network: prune_int8.py NET.onnx SAMPLES.npz SMALL.onnx SMALL_INT8.onnx"""

import subprocess
import sys
import tempfile

import numpy
from onnx import load, save, version_converter
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static, shape_inference

COUNT = 256  # samples to prune, recover and calibrate with
PRUNING = f"--budget macs=50% --round-to 16 --preset quick --samples {COUNT} --calibration".split()
# Layers, and what bounds or moves their values; sums of activations, as in a LayerNorm, stay in float32.
TYPES = "Conv Gemm MatMul Relu LeakyRelu Clip MaxPool AveragePool Concat Reshape Transpose Slice Split".split()
OPTIONS = {"per_channel": True, "activation_type": QuantType.QUInt8, "op_types_to_quantize": TYPES}


class Samples(CalibrationDataReader):
    def __init__(self, file):
        arrays = {name: array[:COUNT] for name, array in numpy.load(file).items()}
        self.rest = ({n: a[k : k + 1] for n, a in arrays.items()} for k in range(min(map(len, arrays.values()))))

    def get_next(self):
        return next(self.rest, None)


def quantise(source, target, samples):
    model = load(source)
    opset = max(13, model.opset_import[0].version)  # 13 has scales per channel
    with tempfile.TemporaryDirectory() as folder:
        ready = f"{folder}/ready.onnx"
        save(version_converter.convert_version(model, opset), ready)
        shape_inference.quant_pre_process(ready, ready, skip_symbolic_shape=True)
        quantize_static(ready, target, Samples(samples), **OPTIONS)


if __name__ == "__main__":
    net, data, small, int8 = sys.argv[1:]
    subprocess.run([sys.executable, "-m", "parsimony", "prune", net, "-o", small, *PRUNING, f"npz:{data}"], check=True)
    quantise(small, int8, data)
