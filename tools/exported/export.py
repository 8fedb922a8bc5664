#!/usr/bin/env python3
"""Exports the networks of networks.py with random weights as .pt2. Runs with the torch whose format is
expected.

    tools/exported/export.py FOLDER [NAME ...]
"""

import pathlib
import sys
import time
import warnings

import torch

from networks import all_networks
from architectures.weights import randomised


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name, make, inputs, dynamic, decomposed in all_networks():
        path = folder / f"{name}.pt2"
        if path.exists() or (sys.argv[2:] and name not in sys.argv[2:]):
            continue
        began = time.time()
        torch.manual_seed(0)
        try:
            with torch.no_grad():
                module = randomised(make().eval())
                program = torch.export.export(module, inputs, dynamic_shapes=dynamic)
                if decomposed:
                    program = program.run_decompositions()
            torch.export.save(program, path)
            print(f"{name}: {time.time() - began:.1f} s", flush=True)
        except Exception as error:  # one network less
            print(f"{name}: FAILED {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)


main()
