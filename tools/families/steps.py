"""One step for one network: its export, or what another tool makes of it."""

import contextlib
import importlib
import multiprocessing
import os
import sys
import time
import warnings

# Each step runs in a process of its own, forked from one that has imported all packages.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["onnxscript", "timm", "torch.onnx", "torch_pruning", "transformers.modeling_utils"])
os.environ["TRANSFORMERS_VERBOSITY"] = "error"


def short(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def export(folder, name):
    """Writes FOLDER/NAME.pt2 and FOLDER/NAME.onnx. Returns the seconds that each took, or what PyTorch says."""
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


def answer(what, words):
    from families import networks, rivals

    if what == "export":
        return export(*words)
    if ":" in what:  # of another script
        module, function = what.split(":")
        return getattr(importlib.import_module(module), function)(*words)
    return getattr(rivals if hasattr(rivals, what) else networks, what)(*words)


def send_answer(sender, what, words):
    import torch
    from families.rivals import NotJudged

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(sys.stderr):
        try:
            found = answer(what, words)
        except NotJudged as error:
            found = {"result": "not judged", "why": str(error)}
        except Exception as error:
            found = {"result": "crashed", "why": short(error)}
    sender.send(found)


def step(what, *words, limit=None):
    """What `export`, a function of networks.py or rivals.py, or MODULE:FUNCTION returns, within `limit` seconds."""
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=send_answer, args=(sender, what, words))
    process.start()
    sender.close()
    try:
        if receiver.poll(limit):
            return receiver.recv()
        return {"result": "crashed", "why": f"not done in {limit} s"}
    except EOFError:
        return {"result": "crashed", "why": "the process died"}
    finally:
        process.kill()
        process.join()
