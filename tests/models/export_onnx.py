"""Exports a TorchScript file to ONNX, names and all: export_onnx.py IN.pt OUT.onnx 2x3x16x16

Exit code 77: this Python has no torch (Debian's package is python3-torch).
"""

import inspect
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
    # Younger versions prefer an exporter that needs a package more and names values otherwise.
    newer = "dynamo" in inspect.signature(torch.onnx.export).parameters
    # Written beside the target first, so that no half a file is ever found in its place.
    torch.onnx.export(
        module,
        example,
        target + ".part",
        opset_version=17,
        do_constant_folding=False,  # folded weights lose their names
        training=torch.onnx.TrainingMode.PRESERVE,  # keeps normalisations beside convolutions
        **({"dynamo": False} if newer else {}),
    )
    os.replace(target + ".part", target)


main(*sys.argv[1:])
