#!/usr/bin/env python3
"""One tool on one network, in a process of its own; what it makes is judged in another, by today's PyTorch.

    one.py make SHARED FOLDER NAME                    writes the weights, FOLDER/NAME.pth, and FOLDER/NAME.onnx
    one.py prune SHARED FOLDER NAME TOOL SETTING      SETTING: JSON, for the function of callings.py
    one.py judge SHARED FOLDER COMMAND NAME:TOOL ...  counts, and compares with the masked original
    one.py recover SHARED FOLDER NAME TOOL SETTING    accuracy before and after the recovery

Prints one line of JSON for each. Time is that of processors, that of commands included.
"""

import contextlib
import copy
import hashlib
import importlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import callings  # noqa: E402
from tables.runs import once  # noqa: E402

MODULES = {"fastnas": "modelopt.torch.prune", "nni": "nni.compression.speedup"}
REORDERS = {"fastnas"}  # sorts channels, and measures the statistics of BatchNorm again
FILES = ("onnxsim", "parsimony_onnx")  # take ONNX files and need no torch
MEGABYTE = 2**10  # of kilobytes

if sys.argv[1] != "prune" or sys.argv[5] not in FILES:
    import torch
    import trained

    torch.set_num_threads(1)


def network(shared, folder, name):
    weights = folder / f"{name}.pth"
    if name in trained.WEIGHTS:
        model, size = trained.ResNet(int(name[len("resnet") :])), 32
    else:
        import torchvision

        quick = {"init_weights": not weights.exists()} if name == "googlenet" else {}
        model, size = torchvision.models.get_model(name, **quick), 224
    if weights.exists():
        model.load_state_dict(torch.load(weights))
    elif name in trained.WEIGHTS:
        model.load_state_dict(trained.weights(shared, name))
    torch.manual_seed(0)
    return model.eval(), torch.randn(1, 3, size, size)


def make(shared, folder, name):
    from architectures.weights import randomised

    torch.manual_seed(0)
    model, x = network(shared, folder, name)
    if name not in trained.WEIGHTS:
        torch.manual_seed(0)
        randomised(model)
    torch.onnx.export(model, (x,), folder / f"{name}.onnx", external_data=False, verbose=False)
    torch.save(model.state_dict(), folder / f"{name}.pth")
    return {}


def spent():
    return sum(os.times()[:4])


def peak():
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(one).ru_maxrss for one in whose) / MEGABYTE


def prune(shared, folder, name, tool, setting):
    setting = json.loads(setting)
    call = getattr(callings, setting.pop("call"))
    if call is not callings.parsimony_onnx:
        importlib.import_module(MODULES.get(call.__name__, call.__name__))
    if tool in FILES:
        start = spent()
        made = call(folder / f"{name}.onnx", **setting)
    else:
        model, x = network(shared, folder, name)
        if tool == "fastnas":
            setting |= searched(shared, name, model, x)
        start = spent()
        made = call(model, x, **setting)
    entry = {"stage": spent() - start, "seconds": spent(), "megabytes": peak()}
    if tool in FILES:
        (folder / f"{name}.{tool}.onnx").write_bytes(made)
        return entry
    with torch.no_grad():
        output = made.eval()(x)
    torch.save({"state": made.state_dict(), "output": output}, folder / f"{name}.{tool}.pth")
    return entry


def searched(shared, name, model, x):
    """What a search scores: accuracy, or where nothing was trained, nearness to the outputs of the original."""
    if name in trained.WEIGHTS:
        few = [part[:256] for part in trained.images(shared, "train-8068")]
        return {"images": [few[0][:128]], "score": lambda small: trained.accuracy(small, few), "divisor": 8}
    with torch.no_grad():
        wanted = model(x)
    torch.manual_seed(1)
    images = [torch.randn(2, *x.shape[1:])]
    return {"images": images, "score": lambda small: -(small(x) - wanted).abs().mean().item()}


def resized(model, state):
    """`model` with these weights, whatever their shapes."""
    for key, tensor in state.items():
        owner, _, leaf = key.rpartition(".")
        module = model.get_submodule(owner)
        old = getattr(module, leaf)
        setattr(module, leaf, torch.nn.Parameter(tensor) if isinstance(old, torch.nn.Parameter) else tensor)
        if leaf == "weight" and getattr(module, "groups", 1) > 1 and old.shape[1] == tensor.shape[1]:
            module.groups = module.groups * len(tensor) // len(old)
        if leaf == "weight" and hasattr(module, "normalized_shape"):
            module.normalized_shape = tuple(tensor.shape)
    return model


def judge(shared, folder, command, *pairs):
    torch.set_grad_enabled(False)
    for pair in pairs:
        answer(lambda: judged(shared, folder, command, *pair.split(":")), {"pair": pair})


def judged(shared, folder, command, name, tool):
    if name not in trained.WEIGHTS:
        return compared(shared, folder, command, name, tool)
    small = remade(folder, name, tool, network(shared, folder, name)[0])
    cut = trained.accuracy(small, trained.images(shared, "test-first1017"))
    return {**compared(shared, folder, command, name, tool), "cut": cut}


def compared(shared, folder, command, name, tool):
    from families import rivals
    from measure import macs

    if tool in FILES:
        whole = folder / f"{name}.{'simple.' if tool == 'onnxsim' else ''}onnx"
        return judge_onnx(whole, folder / f"{name}.{tool}.onnx", command)
    whole, x = network(shared, folder, name)
    made = torch.load(folder / f"{name}.{tool}.pth")
    before, after = whole(x), made["output"]
    entry = {"runs": before.shape == after.shape, "before": macs(whole, (x,))}
    small = remade(folder, name, tool, whole)
    entry["macs"] = macs(small, (x,))
    if tool in REORDERS:
        return entry
    try:
        masked = rivals.masked(copy.deepcopy(whole), small)(x)
        return {**entry, **verdict(rivals.judged(*([one.numpy()] for one in (before, after, masked))))}
    except rivals.NotJudged as error:
        return {**entry, "unjudged": str(error)}


def verdict(found):
    return {"equal": found["result"] == "equal", "gap": found.get("gap")}


def judge_onnx(whole, small, command):
    import numpy
    import onnx
    from families import rivals
    from measure import run_onnx

    counts = [inspected(command, file) for file in (whole, small)]
    whole, small = onnx.load(whole), onnx.load(small)
    sizes = [dim.dim_value for dim in whole.graph.input[0].type.tensor_type.shape.dim]
    feeds = {whole.graph.input[0].name: numpy.random.default_rng(0).standard_normal(sizes).astype("float32")}
    before, after = run_onnx(whole, feeds), run_onnx(small, feeds)
    rivals.mask_onnx(whole, small)
    found = verdict(rivals.judged(before, after, run_onnx(whole, feeds)))
    return {"runs": before[0].shape == after[0].shape, "before": counts[0], "macs": counts[1], **found}


def inspected(command, file):
    done = subprocess.run([command, "inspect", "--json", file], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["totals"]["macs"]


def remade(folder, name, tool, dense):
    """What the tool made, as a module."""
    if tool in FILES:
        return unfolded(copy.deepcopy(dense), *(folder / f"{name}.{kind}.onnx" for kind in ("simple", tool)))
    return resized(copy.deepcopy(dense), torch.load(folder / f"{name}.{tool}.pth")["state"])


def recover(shared, folder, name, tool, setting):
    dense, _ = network(shared, folder, name)
    small = remade(folder, name, tool, dense)
    same = hashlib.sha256(b"".join(one.numpy().tobytes() for one in small.state_dict().values())).hexdigest()
    kept = folder / "results" / f"{name}.{same[:16]}.json"
    return once(kept, lambda: accuracies(shared, folder, name, dense, small, setting))


def accuracies(shared, folder, name, dense, small, setting):
    test, pictures = (trained.images(shared, part) for part in ("test-first1017", "train-8068"))
    kept = folder / f"{name}.answers"
    if not kept.exists():
        torch.save(trained.answers(dense, pictures[0]), kept)
    trained.recover(small, pictures[0], torch.load(kept), **json.loads(setting))
    return {"recovered": trained.accuracy(small, test)}


def unfolded(model, whole, small):
    """The module with the channels that an ONNX file has kept of another: its BatchNorms are not folded there."""
    import onnx
    from families.rivals import kept
    from onnx.numpy_helper import to_array

    def weights(file):
        graph = onnx.load(file).graph
        tensors = {one.name: to_array(one) for one in graph.initializer}
        return [tensors[node.input[1]] for node in graph.node if node.op_type == "Conv"]

    modules = list(model.modules())
    convolutions = [one for one in modules if isinstance(one, torch.nn.Conv2d)]
    norms = [one for one in modules if isinstance(one, torch.nn.BatchNorm2d)]
    for conv, norm, now, full in zip(convolutions, norms, weights(small), weights(whole)):
        rows, columns = (torch.from_numpy(one) for one in kept(now, full)[:2])
        conv.weight = torch.nn.Parameter(conv.weight.detach()[rows][:, columns])
        state = {key: one[rows] if one.ndim else one for key, one in norm.state_dict().items()}
        resized(norm, state)
    return model


def answer(make, about=None):
    with contextlib.redirect_stdout(sys.stderr):
        try:
            entry = make()
        except Exception as error:  # what it says is the answer
            entry = {"note": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
    print(json.dumps({**entry, **(about or {})}), flush=True)


def main():
    what, shared, folder, *words = sys.argv[1:]
    warnings.simplefilter("ignore")
    places = pathlib.Path(shared), pathlib.Path(folder)
    if what == "judge":
        judge(*places, *words)
    else:
        answer(lambda: {"make": make, "prune": prune, "recover": recover}[what](*places, *words))


if __name__ == "__main__":
    main()
