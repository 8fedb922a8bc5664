#!/usr/bin/env python3
"""Exports each network in every format, prunes all of them by half, and compares what is left: parameters and
multiply-adds within half a point, and the same channels of each group. What torch.onnx optimises may keep others: it
folds and merges constants, by which channels are ranked and tied. Runs with PyTorch, onnxscript and the command.

    tools/exported/formats.py FOLDER [--all] [NAME ...]      PARSIMONY_COMMAND: build/release/bin/parsimony

By default the networks of spellings.py; with --all those of networks.py, too. tools/coverage does the same with
../architectures. Exit code: 1 if formats differ without one of the reasons below.
"""

import argparse
import os
import pathlib
import sys
import warnings

import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from architectures.weights import randomised  # noqa: E402
from tables.cells import is_proven  # noqa: E402
from tables.runs import finished, inputs_of, read  # noqa: E402

FORMATS = {
    "pt2": ".pt2",
    "core.pt2": ".pt2, decomposed",
    "onnx": "ONNX",
    "raw.onnx": "ONNX, not optimised",
    "pt": "TorchScript",
}
TOLERANCE = 0.005
LIMIT = 5 * 60  # seconds for a file

# What may differ, and why: by network, the formats that are not compared with the others.
STATE = {"onnx": "torch.onnx stores the first state, or zeros, as a constant, which counts as parameters"}
TABLE = {"onnx": "torch.onnx stores what follows from positions alone, which counts as parameters"}
TIED = {"onnx": "torch.onnx stores the tied embedding twice, once transposed"}
ROTARY = {
    form: "the rotary table is computed for the length at hand, and stays; elsewhere it is folded"
    for form in ("raw.onnx", "pt")
}
BIAS = {"raw.onnx": "torch.onnx writes a bias of two dimensions for conv3d before it optimises"}
FOLDED = {"onnx": "torch.onnx folds normalisations away, whose parameters halve where those of matrices quarter"}
LITERAL = dict.fromkeys(("pt2", "core.pt2"), "lengths are literals: distances are a table, which counts as parameters")
WRITTEN = {"raw.onnx": "before torch.onnx optimises, keys lose their bias in the graph, by ScatterND"}
LENGTH = dict.fromkeys(("onnx", "raw.onnx"), "multiply-adds are of an assumed length, else of the example's")
LATENTS = {"onnx": "torch.onnx folds what follows from the latents alone, which removes a layer"}
ALIASES = {
    "pt2": "what another name of written memory reads is not exported, and thus not proven",
    "pt": "what another name of written memory reads is pinned",
}
COMPUTED = {"raw.onnx": "before torch.onnx optimises, tables are computed in the graph, from sizes"}
SCRIPT = {"pt": "TorchScript computes tables in the program, from sizes"}
SLICE = {"raw.onnx": "before torch.onnx optimises, a slice is made for its size alone, and keeps its channel"}
MIXTURE = {
    "core.pt2": "decomposed, the mixture of kernels is one dimension of all channels and places, of which one shrinks"
}
LEARNED = {"onnx": "torch.onnx folds what follows from weights alone, which counts as parameters"}
PARTS = {"onnx": "torch.onnx writes by ScatterND, where any channel may go; in a Concat each part keeps one"}
OPERATOR = {"pt": "TorchScript does not load operators of another library"}
PLACES = {
    form: "torch.onnx writes each element at a place of its own, which data decide" for form in ("onnx", "raw.onnx")
}
REASONS = {
    "ExpertsOfTransformers": OPERATOR,
    "RemembersWritten": STATE,
    "Waves": COMPUTED | SCRIPT,
    "WrittenWhere": PLACES,
    "alibi": TABLE | LITERAL,
    **dict.fromkeys(("awd_lstm", "bert", "deberta", "gemma", "gpt_fused_tied", "qwen3", "whisper"), TIED),
    **dict.fromkeys(("conv_lstm", "message_passing"), STATE),
    **dict.fromkeys(("detector", "encodec", "mask2former", "stylegan"), LEARNED),
    "condconv": MIXTURE,
    "gpt_dynamic": LENGTH,
    **dict.fromkeys(("ghostnet", "ghostnet_v2", "mobileone", "pointnet"), FOLDED),
    "llama": ROTARY,
    "neural_ode": SLICE,
    "perceiver": LATENTS,
    "tiny_aliases": ALIASES,
    "tiny_waves": COMPUTED,
    "tiny_writes": PARTS | COMPUTED,
    **dict.fromkeys(("levit", "llava", "maxvit_t", "retnet", "swin_s", "swin_t", "swin_v2", "t5_bias"), TABLE),
    "swin_v2_t": TABLE | WRITTEN,
    **dict.fromkeys(("mc3_18", "r2plus1d_18", "r3d_18", "slowfast"), BIAS),
}

# Which other channels may be kept, and why; the shares must be those of the other formats all the same.
FREQUENCIES = {"raw.onnx": "before torch.onnx optimises, frequencies are computed in the graph, from sizes, and stay"}
ROWS = {"pt": "a trace reads as many rows of its positions as there are tokens: the other rows stay"}
EXPANDED = {"pt": "a trace expands what is learned to the batch, after which it is data, which ranks no channels"}
UNTIED = {"raw.onnx": "torch.onnx leaves out what is written into the state, which ties no layers there"}
COMPETING = {"core.pt2": "decomposed, two axes share a dimension, and the other one of them shrinks"}
ONE = {"core.pt2": "decomposed, a layer of one input is a product, element by element, which ranks no channels"}
IDENTITY = {
    form: "an identity matrix is computed, and what is added to it stays; elsewhere it is a constant"
    for form in ("pt2", "raw.onnx")
}
OTHER_CHANNELS = {
    "RemembersWritten": UNTIED,
    "decision_transformer": ONE,
    "evoformer": COMPETING,
    "pointnet": IDENTITY,
    **dict.fromkeys(
        ("bert_post_norm", "clip", "gpt", "gpt_fused_tied", "gpt_mask", "gpt_plain_mask", "llama_rmsnorm"), ROWS
    ),
    **dict.fromkeys(("cait", "detector", "detr", "mask2former", "perceiver"), EXPANDED),
    **dict.fromkeys(("dit", "mmdit", "unet_adm", "unet_diffusion"), FREQUENCIES),
}


def exported(module, inputs, dynamic, path):
    """Writes the network in each format that PyTorch has for it. Returns the files, and what PyTorch says instead."""
    files, faults = {form: path.with_name(f"{path.name}.{form}") for form in FORMATS}, {}

    def attempt(form, write):
        try:
            return write(files[form])
        except Exception as error:  # whatever PyTorch says is the answer
            files.pop(form).unlink(missing_ok=True)
            faults[form] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"

    def program(file):
        found = torch.export.export(module, inputs, dynamic_shapes=dynamic)
        torch.export.save(found, file)
        return found

    def onnx(optimize):
        settings = {"dynamo": True, "external_data": False, "verbose": False, "dynamic_shapes": dynamic}
        return lambda file: torch.onnx.export(module, inputs, file, optimize=optimize, **settings)

    def script(file):
        torch.jit.trace(module, inputs, check_trace=False, strict=False).save(file)

    with torch.no_grad():
        whole = attempt("pt2", program)
        if whole is not None:
            attempt("core.pt2", lambda file: torch.export.save(whole.run_decompositions(), file))
        else:
            del files["core.pt2"]
        attempt("onnx", onnx(True))
        attempt("raw.onnx", onnx(False))
    if dynamic is None and all(isinstance(x, torch.Tensor) for x in inputs):
        # Without gradients PyTorch traces the fused attention, whose sizes all follow from its width.
        attempt("pt", script)
    else:
        del files["pt"]
    return files, faults


def spec(x):
    return "x".join(map(str, x.shape)) + ("" if x.is_floating_point() else ":int64")


def pruned(command, file, inputs):
    """What is left of the file; else why it was not pruned, or not proven.

    params, macs: counts before and after;  channels: which are kept, of each group;  proven;  note: why not
    """
    small, plan, report = (file.with_name(f"{file.name}.{kind}") for kind in ("small", "plan.json", "report.json"))
    line = [command, "prune", "-q", file, "-o", small, *"--force --ratio 0.5 --threads 1 --plan".split(), plan]
    line += ["--report", report, *(inputs_of(map(spec, inputs)) if file.name.endswith(".pt") else [])]
    done = finished(line, LIMIT)
    small.unlink(missing_ok=True)
    if done.returncode != 0:
        late = done.returncode is None
        return {"proven": False, "note": f"not done in {LIMIT} s" if late else done.stderr.strip() or "no answer"}
    said, groups = read(report), read(plan)["groups"]
    proven = not groups or is_proven(said)
    return {
        **{what: said[what] for what in ("params", "macs")},
        "channels": sorted(sorted({tuple(cut["keep"]) for cut in group["slices"]}) for group in groups),
        "proven": proven,
        "note": "" if proven else said["proof"].get("reason") or "the proof does not hold",
    }


def left(run, what):
    return run[what]["after"] / max(1, run[what]["before"])


def differences(name, runs):
    """What is not proven; where another share is left, or other channels are, without a reason."""
    left_in = {form: run for form, run in runs.items() if form not in REASONS.get(name, {})}
    found = [f"{form}: {run['note']}" for form, run in left_in.items() if not run["proven"]]
    if found or not left_in:
        return found
    free = {"onnx", *OTHER_CHANNELS.get(name, {})}
    first, *others = sorted(left_in, key=lambda form: form in free)  # the others keep their order
    for form in others:
        for what in ("params", "macs"):
            shares = [left(left_in[one], what) for one in (form, first)]
            if abs(shares[0] - shares[1]) > TOLERANCE:
                found.append(f"{form}: {shares[0]:.1%} of {what} left, {first} {shares[1]:.1%}")
        if form not in free and left_in[form]["channels"] != left_in[first]["channels"]:
            found.append(f"{form}: other channels than {first}")
    return found


def measured(name, module, inputs, dynamic, folder, command):
    """Exports and prunes; returns what became of each format, and what PyTorch says of those that it has not."""
    files, faults = exported(module, inputs, dynamic, folder / name)
    runs = {form: pruned(command, file, inputs) for form, file in files.items()}
    shown = (f"{form} {left(run, 'params'):.1%}" for form, run in runs.items() if "params" in run)
    print(f"{name}: {'  '.join(shown)}", flush=True)
    return runs, faults


def main():
    from networks import all_networks
    from spellings import spellings

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    networks = [(name, make, inputs, None) for name, make, inputs in spellings()]
    if asked.all:
        networks += [network[:4] for network in all_networks() if not network[4]]
    command = os.environ.get("PARSIMONY_COMMAND", "build/release/bin/parsimony")
    differ = 0
    for name, make, inputs, dynamic in networks:
        if asked.names and name not in asked.names:
            continue
        torch.manual_seed(0)
        module = randomised(make().eval())
        runs, faults = measured(name, module, inputs, dynamic, asked.folder, command)
        missing = [f"{form}: {fault}" for form, fault in faults.items() if not form.endswith("onnx")]
        different = differences(name, runs)
        for line in (*missing, *different):
            print(f"    {line}", flush=True)
        differ += bool(different)
    print(f"{differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
