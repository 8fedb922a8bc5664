"""Exports a TorchScript file to ONNX, names and all: export_onnx.py IN.pt OUT.onnx 2x3x16x16

Exit code 77: this Python has no torch.
"""

import os
import sys
import warnings

try:
    import torch
except ImportError:
    sys.exit(77)


def main(source, target, size):
    module = torch.jit.load(source).eval()
    example = torch.zeros([int(n) for n in size.split("x")])
    warnings.simplefilter("ignore")  # about what is not exported optimally
    # Written beside the target first, so that no half a file is ever found in its place.
    torch.onnx.export(
        module,
        example,
        target + ".part",
        opset_version=17,
        do_constant_folding=False,  # folded weights lose their names
        training=torch.onnx.TrainingMode.PRESERVE,  # keeps normalisations beside convolutions
        dynamo=False,  # that one does not take TorchScript
    )
    os.replace(target + ".part", target)


main(*sys.argv[1:])
