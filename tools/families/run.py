#!/usr/bin/env python3
"""One step for one network.

    run.py versions
    run.py families PACKAGE              the networks of timm or transformers, one of each family
    run.py export NAME FOLDER            writes FOLDER/NAME.pt2 and FOLDER/NAME.onnx; seconds, or what PyTorch says
    run.py torch_pruning NAME FOLDER     prunes the module
    run.py onnxsim NAME FOLDER           prunes FOLDER/NAME.onnx

Prints a line of JSON.
"""

import contextlib
import json
import os
import pathlib
import sys
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
os.environ["TRANSFORMERS_VERBOSITY"] = "error"


def short(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def export(name, folder):
    import torch
    from families import networks

    try:
        model, inputs = networks.network(name)
        with torch.no_grad():
            networks.run(model, inputs)
    except Exception as error:
        return {"not made": short(error)}
    positional, named = ((), inputs) if isinstance(inputs, dict) else (inputs, {})

    def pt2(file):
        torch.export.save(torch.export.export(model, positional, named), file)

    def onnx(file):
        torch.onnx.export(model, positional, file, kwargs=named, dynamo=True, external_data=False, verbose=False)

    found = {}
    for form, write in (("pt2", pt2), ("onnx", onnx)):
        file, begin = folder / f"{name}.{form}", time.perf_counter()
        try:
            with torch.no_grad():
                write(file)
            found[form] = time.perf_counter() - begin
        except Exception as error:  # what it says is the answer
            file.unlink(missing_ok=True)
            found[form] = short(error)
    return found


def answer(what, name="", folder="."):
    from families import networks, rivals

    if what == "versions":
        return networks.versions()
    if what == "families":
        return getattr(networks, f"families_of_{name}")()
    folder = pathlib.Path(folder)
    if what == "export":
        return export(name, folder)
    try:
        return getattr(rivals, what)(folder, name)
    except Exception as error:
        return {"result": "crashed", "why": short(error)}


def main():
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(sys.stderr):
        found = answer(*sys.argv[1:])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
