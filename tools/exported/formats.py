#!/usr/bin/env python3
"""Exports each network in every format, prunes all of them by half, and compares what is left: parameters and
multiply-adds within half a point, and the same channels of each group. What torch.onnx optimises may keep others: it
folds and merges constants, by which channels are ranked and tied. Runs with PyTorch, onnxscript and the command.

    tools/exported/formats.py FOLDER [--all] [NAME ...]      PARSIMONY_COMMAND: build/release/bin/parsimony

The formats: torch.export (pt2), the same decomposed (core.pt2), torch.onnx optimised (onnx) and not (raw.onnx),
TorchScript (pt). By default the spellings below; with --all the networks of networks.py and ../architectures, too.
Exit code: 1 if formats differ without one of the reasons below.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import nn

from networks import all_networks
from architectures import NETWORKS
from architectures.pieces import Module, image, tokens
from architectures.weights import randomised

TOLERANCE = 0.005
COMMAND = os.environ.get("PARSIMONY_COMMAND", "build/release/bin/parsimony")

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
REASONS = {
    "ExpertsOfTransformers": OPERATOR,
    "RemembersWritten": STATE,
    "Waves": COMPUTED | SCRIPT,
    "alibi": TABLE | LITERAL,
    **dict.fromkeys(("awd_lstm", "bert", "deberta", "gemma", "gpt_fused_tied", "qwen3", "whisper"), TIED),
    **dict.fromkeys(("conv_lstm", "message_passing"), STATE),
    **dict.fromkeys(("encodec", "mask2former", "stylegan"), LEARNED),
    "condconv": MIXTURE,
    "gpt_dynamic": LENGTH,
    **dict.fromkeys(("ghostnet", "ghostnet_v2", "mobileone"), FOLDED),
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
COMPETING = {"core.pt2": "decomposed, two axes share a dimension, and the other one of them shrinks"}
OTHER_CHANNELS = {
    "evoformer": COMPETING,
    **dict.fromkeys(
        ("bert_post_norm", "clip", "gpt", "gpt_fused_tied", "gpt_mask", "gpt_plain_mask", "llama_rmsnorm"), ROWS
    ),
    **dict.fromkeys(("cait", "detr", "mask2former", "perceiver"), EXPANDED),
    **dict.fromkeys(("dit", "mmdit", "unet_adm", "unet_diffusion"), FREQUENCIES),
}


def rows():
    return torch.randn(1, 8, 16)


class Wide(Module):
    """A layer of 64 channels, what `inside` does with them, and a layer that reads them."""

    def __init__(self):
        self.a, self.b = nn.Linear(16, 64), nn.Linear(64, 10)

    def forward(self, x):
        return self.b(self.inside(self.a(x)))


class RowWritten(Wide):
    def inside(self, x):
        y = x.clone()
        y[:, 0] = x[:, 1] + x[:, 2]
        return y


class RowsWrittenAtIndices(Wide):
    def inside(self, x):
        y = x.clone()
        y[:, torch.tensor([1, 3])] = x[:, torch.tensor([0, 2])]
        return y


class WrittenByTurns(Wide):
    def inside(self, x):
        y = torch.zeros(1, 8, 64)
        y[:, ::2] = x[:, ::2]
        y[:, 1::2] = x[:, 1::2] * 2
        return y


class EmptyLike(Wide):
    def inside(self, x):
        y = torch.empty_like(x)
        y[:, :4] = x[:, 4:]
        y[:, 4:] = x[:, :4]
        return y


class Empty(Wide):
    def inside(self, x):
        y = torch.empty(1, 8, 64)
        y[:] = F.relu(x)
        return y


class EmptyJoined(Wide):
    def inside(self, x):
        return torch.cat([torch.tensor([]), F.relu(x)], -2)


class EmptyRest(Wide):
    def inside(self, x):
        rest = x[..., x.shape[-1] :]
        return torch.cat([F.relu(x), rest * rest], -1)


class Flagged(Wide):
    def __init__(self):
        super().__init__()
        self.register_buffer("flags", torch.tensor([True, False, True, True, False, False, True, False]))

    def inside(self, x):
        return x[:, self.flags]


class DrawnInVain(Wide):
    def inside(self, x):
        torch.rand(3)
        torch.randn_like(x)
        return x


class Remembers(Wide):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(1, 8, 64))

    def inside(self, x):
        self.state.copy_(x)
        return self.state + x


class RemembersWritten(Remembers):
    """Writes twice before another layer reads what the run before wrote."""

    def __init__(self):
        super().__init__()
        self.c = nn.Linear(64, 64)

    def inside(self, x):
        y = x + F.relu(self.c(self.state))
        self.state.mul_(0.9)
        self.state.copy_(F.relu(x))
        return y


class HalvedWeight(Module):
    def __init__(self):
        self.a, self.b = nn.Linear(16, 64), nn.Linear(64, 10)

    def forward(self, x):
        with torch.no_grad():
            self.b.weight.div_(2)
        return self.b(self.a(x))


class PooledFromChannelsLast(Module):
    def __init__(self):
        self.a, self.f1, self.f2 = nn.Conv2d(3, 64, 4, 4), nn.Linear(64, 256), nn.Linear(256, 64)
        self.h = nn.Linear(64, 10)

    def forward(self, x):
        x = self.f2(F.gelu(self.f1(self.a(x).permute(0, 2, 3, 1)))).permute(0, 3, 1, 2)
        return self.h(F.adaptive_avg_pool2d(x, 1).flatten(1))


class StandardisedByBatchNorm(nn.Conv2d):
    def __init__(self, i, o):
        super().__init__(i, o, 3)
        self.gain = nn.Parameter(torch.ones(o))

    def forward(self, x):
        w = F.batch_norm(self.weight.reshape(1, self.out_channels, -1), None, None, weight=self.gain, training=True)
        return F.conv2d(x, w.reshape_as(self.weight), self.bias)


class StandardisedByMoments(nn.Conv2d):
    def __init__(self, i, o):
        super().__init__(i, o, 3)

    def forward(self, x):
        variance, mean = torch.var_mean(self.weight, (1, 2, 3), keepdim=True, correction=0)
        return F.conv2d(x, (self.weight - mean) / torch.sqrt(variance + 1e-6), self.bias)


class Standardised(Module):
    def __init__(self, kind):
        self.a, self.b, self.c, self.h = kind(3, 32), kind(32, 64), kind(64, 64), nn.Linear(64, 10)

    def forward(self, x):
        return self.h(F.silu(self.c(F.silu(self.b(F.silu(self.a(x)))))).mean((2, 3)))


class NormalisedByBatch(Module):
    def __init__(self):
        self.a, self.b, self.h = nn.Conv2d(3, 32, 3), nn.Conv2d(32, 64, 3), nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(F.batch_norm(self.a(x), None, None, training=True))
        return self.h(F.relu(self.b(x)).mean((2, 3)))


class LargeWindow(Module):
    def __init__(self):
        self.a, self.h = nn.Conv2d(3, 64, 1), nn.Linear(64, 10)

    def forward(self, x):
        return self.h(F.avg_pool2d(F.relu(self.a(x)), 64, ceil_mode=True).flatten(1))


class PositionsResized(Module):
    def __init__(self, mode):
        self.a, self.h, self.mode = nn.Conv2d(3, 64, 4, 4), nn.Linear(64, 10), mode
        self.p = nn.Parameter(torch.randn(1, 64, 12, 12))

    def forward(self, x):
        x = self.a(x) + F.interpolate(self.p, (8, 8), mode=self.mode, antialias=True)
        return self.h(F.relu(x).mean((2, 3)))


class RotaryOfAll(Module):
    """Rotary positions of a part of each head that is all of it."""

    def __init__(self):
        self.qkv, self.o, self.h = nn.Linear(16, 96), nn.Linear(32, 16), nn.Linear(16, 10)
        self.register_buffer("cos", torch.rand(8, 16))
        self.register_buffer("sin", torch.rand(8, 16))

    def rotated(self, x):
        size = self.cos.shape[-1]
        turned, rest = x[..., :size], x[..., size:]
        half = size // 2
        other = torch.cat([-turned[..., half:], turned[..., :half]], -1)
        return torch.cat([turned * self.cos + other * self.sin, rest], -1)

    def forward(self, x):
        q, k, v = self.qkv(x).view(1, 8, 3, 2, 16).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(self.rotated(q), self.rotated(k), v)
        return self.h(self.o(y.transpose(1, 2).reshape(1, 8, 32)))


class Experts(Module):
    def __init__(self):
        self.a, self.h = nn.Linear(16, 64), nn.Linear(64, 10)
        self.up, self.down = nn.Parameter(torch.randn(4, 64, 128)), nn.Parameter(torch.randn(4, 128, 64))
        self.register_buffer("order", torch.tensor([3, 1, 7, 0, 2, 6, 5, 4]))
        self.register_buffer("ends", torch.tensor([2, 4, 6, 8], dtype=torch.int32))

    def forward(self, x):
        x = self.a(x[0])
        y = F.relu(F.grouped_mm(x[self.order], self.up, offs=self.ends))
        return self.h(x + F.grouped_mm(y, self.down, offs=self.ends))


@torch.library.custom_op("transformers::grouped_mm_fallback", mutates_args=())
def grouped_mm_fallback(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
    return F.grouped_mm(input, weight, offs=offs.int())


@grouped_mm_fallback.register_fake
def _(input, weight, offs):
    return input.new_empty(input.shape[0], weight.shape[2])


class ExpertsOfTransformers(Experts):
    """As transformers calls them: tokens sorted by expert, counted, and multiplied by an operator of its own."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(16, 4)

    def forward(self, x):
        experts, order = torch.sort(self.router(x[0]).argmax(-1))
        ends = torch.cumsum(torch.histc(experts.float(), bins=4, min=0, max=3), dim=0, dtype=torch.int32)
        x = self.a(x[0])
        return self.h(x + grouped_mm_fallback(F.relu(grouped_mm_fallback(x[order], self.up, ends)), self.down, ends))


class Waves(Wide):
    """Positions that are computed from flags alone, for two layers whose channels have nothing to do with each other."""

    def __init__(self):
        super().__init__()
        self.c, self.d = nn.Linear(16, 64), nn.Linear(64, 10)

    def forward(self, x):
        places = (~torch.zeros(8, dtype=torch.bool)).cumsum(0, dtype=torch.float32)
        waves = torch.sin(places[:, None] * (torch.arange(64) + 1) / 64)
        return self.b(self.a(x) + waves) + self.d(self.c(x) + waves)


def spellings():
    for kind in (
        RowWritten,
        RowsWrittenAtIndices,
        WrittenByTurns,
        EmptyLike,
        Empty,
        EmptyJoined,
        EmptyRest,
        Flagged,
        DrawnInVain,
        Remembers,
        RemembersWritten,
        HalvedWeight,
        RotaryOfAll,
        Experts,
        ExpertsOfTransformers,
        Waves,
    ):
        yield kind.__name__, kind, (rows(),)
    yield "PooledFromChannelsLast", PooledFromChannelsLast, image(64)
    yield "StandardisedByBatchNorm", lambda: Standardised(StandardisedByBatchNorm), image(32)
    yield "StandardisedByMoments", lambda: Standardised(StandardisedByMoments), image(32)
    yield "NormalisedByBatch", NormalisedByBatch, image(32)
    yield "LargeWindow", LargeWindow, image(8)
    for mode in ("bilinear", "bicubic"):
        yield f"PositionsResized_{mode}", lambda mode=mode: PositionsResized(mode), image(32)


def exported(module, inputs, dynamic, path):
    """Writes the formats that the network has; returns the files."""
    files = {}
    with torch.no_grad():
        program = torch.export.export(module, inputs, dynamic_shapes=dynamic)
        files["pt2"] = path.with_suffix(".pt2")
        torch.export.save(program, files["pt2"])
        files["core.pt2"] = path.with_suffix(".core.pt2")
        torch.export.save(program.run_decompositions(), files["core.pt2"])
        for kind, optimize in (("onnx", True), ("raw.onnx", False)):
            file = path.with_suffix("." + kind)
            try:
                torch.onnx.export(
                    module,
                    inputs,
                    file,
                    dynamo=True,
                    external_data=False,
                    optimize=optimize,
                    dynamic_shapes=dynamic,
                    verbose=False,
                )
                files[kind] = file
            except Exception:  # PyTorch knows no ONNX for it
                pass
        if dynamic is None and all(isinstance(x, torch.Tensor) for x in inputs):
            files["pt"] = path.with_suffix(".pt")
    if "pt" in files:  # without gradients PyTorch traces the fused attention, whose sizes all follow from its width
        torch.jit.trace(module, inputs, check_trace=False).save(files["pt"])
    return files


def pruned(file, inputs):
    """Shares of parameters and multiply-adds that are left, and the kept channels; else what went wrong."""
    command = [
        COMMAND,
        "prune",
        "-q",
        file,
        "-o",
        file.with_name(file.name + ".small"),
        "--force",
        "--ratio",
        "0.5",
        "--plan",
        plan_file := file.with_name(file.name + ".plan.json"),
        "--report",
        report_file := file.with_name(file.name + ".report.json"),
    ]
    for x in inputs if file.name.endswith(".pt") else ():
        command += ["--input", "x".join(map(str, x.shape)) + ("" if x.is_floating_point() else ":int64")]
    ran = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if ran.returncode != 0:
        return (ran.stderr.strip().splitlines() or ["?"])[-1]
    report = json.loads(report_file.read_text())
    plan = json.loads(plan_file.read_text())
    if plan["groups"] and not (report["proof"]["ran"] and report["proof"]["holds"]):
        return "not proven"
    share = lambda what: report[what]["after"] / max(1, report[what]["before"])
    return (
        share("params"),
        share("macs"),
        sorted(sorted({tuple(cut["keep"]) for cut in group["slices"]}) for group in plan["groups"]),
    )


def main():
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
        networks += [
            (name, make, inputs, dynamic)
            for name, make, inputs, dynamic, decomposed in all_networks()
            if not decomposed
        ]
        known = {name for name, *_ in networks}
        networks += [(name, make, inputs(), None) for name, (_, make, inputs) in NETWORKS.items() if name not in known]
    differ = 0
    for name, make, inputs, dynamic in networks:
        if asked.names and name not in asked.names:
            continue
        torch.manual_seed(0)
        module = randomised(make().eval())
        try:
            files = exported(module, inputs, dynamic, asked.folder / name)
        except Exception as error:  # none of PyTorch's programs
            print(f"{name}: not exported, {type(error).__name__}", flush=True)
            continue
        found = {kind: pruned(file, inputs) for kind, file in files.items()}
        compared = {kind: result for kind, result in found.items() if kind not in REASONS.get(name, {})}
        fine = all(isinstance(result, tuple) for result in compared.values())
        if fine:
            first = next(iter(compared.values()))
            fine = all(abs(result[i] - first[i]) <= TOLERANCE for result in compared.values() for i in (0, 1))
            others = [kind for kind, result in compared.items() if result[2] != first[2]]
            if others:
                print(f"{name}: other channels in {', '.join(others)}")
            fine = fine and {"onnx", *OTHER_CHANNELS.get(name, {})}.issuperset(others)
        differ += not fine
        share = lambda result: f"{result[0]:.1%}" if fine else f"{result[0]:.1%} {result[1]:.1%}"
        shown = (f"{kind} {result if isinstance(result, str) else share(result)}" for kind, result in found.items())
        shown = "  ".join(shown)
        print(f"{'ok  ' if fine else 'DIFFER'} {name}: {shown}", flush=True)
    print(f"{differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
