#!/usr/bin/env python3
"""Loads pruned .pt2 files with the torch that this runs with, runs them on the inputs with which the
originals were exported, and compares them with the originals of which the removed channels are
masked. A mean or a normalisation over masked channels is one over those that are left. Where there
is SMALL/NAME.onnx, the small network exported again, ONNX Runtime must agree too.

    tools/exported/check.py ORIGINALS SMALL [NAME ...]     what prune.sh made of ORIGINALS

What it finds is written to SMALL/checked.json, too. Exit code 1: a network differs, or declares other
sizes than those of a run.
"""

import json
import logging
import pathlib
import sys
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from parsimony.plan import Plan  # noqa: E402

try:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
except ImportError:
    onnxruntime = None

aten = torch.ops.aten
NORMS = {aten.layer_norm.default, aten.native_layer_norm.default}
RMS_NORMS = {getattr(aten, "rms_norm", aten.layer_norm).default}
MEANS = {aten.mean.dim}


def present(x):
    """Which indices of the last dimension are not masked."""
    return (x != 0).reshape(-1, x.shape[-1]).any(0)


class Masked(torch.fx.Interpreter):
    """Runs a program some of whose channels are zero as if they were absent."""

    def call_function(self, target, args, kwargs):
        if target in MEANS and args[0].ndim - 1 in [d % args[0].ndim for d in args[1]]:
            kept = present(args[0])
            if 0 < kept.sum() < len(kept):
                return super().call_function(target, args, kwargs) * (len(kept) / kept.sum())
        if target in NORMS | RMS_NORMS and len(args[1]) == 1 and 0 < present(args[0]).sum() < args[1][0]:
            return self.over_present(target, args, kwargs)
        return super().call_function(target, args, kwargs)

    def over_present(self, target, args, kwargs):
        kept = present(args[0]).nonzero().flatten()
        cut = lambda y: y.index_select(-1, kept) if isinstance(y, torch.Tensor) else y
        options = {name: cut(value) for name, value in kwargs.items()}
        found = target(cut(args[0]), [len(kept)], *(cut(y) for y in args[2:]), **options)
        first = found[0] if isinstance(found, tuple) else found
        whole = torch.zeros_like(args[0]).index_copy(-1, kept, first)
        return (whole,) + found[1:] if isinstance(found, tuple) else whole


def mask(program, plan):
    """Returns whether all that is cut is a tensor of the file, rather than computed from literals."""
    tensors = {**program.state_dict, **program.constants}
    cuts = plan.cuts()
    for name in cuts.keys() & tensors.keys():
        for axis, cut in cuts[name].items():
            if cut.zeroed:
                tensors[name].index_fill_(axis, torch.tensor(cut.zeroed), 0)
    return cuts.keys() <= tensors.keys()


def check(original, small, plan):
    masked = torch.export.load(original)
    given, named = masked.example_inputs
    flatten = torch.utils._pytree.tree_leaves
    inputs = flatten((given, named))
    outputs = masked.module()(*given, **named)
    program = torch.export.load(small)
    found = flatten(program.module()(*given, **named))
    same = lambda a, b: float((a - b).abs().max() / b.abs().max().clamp_min(1e-12))
    for value, expected in zip(found, flatten(outputs)):
        assert value.shape == expected.shape, f"shape {list(value.shape)}, expected {list(expected.shape)}"
    # Sizes in the file are those of a run.
    metas = {node.name: node.meta["val"] for node in program.graph.nodes if "val" in node.meta}
    all_masked = mask(masked, plan)
    expected = flatten(Masked(masked.module()).run(*inputs))
    worst = max(same(a, b) for a, b in zip(found, expected))
    changed = max(same(b, c) for b, c in zip(expected, flatten(outputs)))
    shapes = Shapes(program.module(), metas)
    shapes.run(*inputs)
    runtime = runtime_difference(small.with_suffix(".onnx"), inputs, found)
    return worst, all_masked, changed, shapes.wrong, runtime


def runtime_difference(path, inputs, expected):
    """Of ONNX Runtime on the exported network; None without one."""
    if onnxruntime is None or not path.exists():
        return None
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feeds = {value.name: x.numpy() for value, x in zip(session.get_inputs(), inputs)}
    found = [torch.from_numpy(y) for y in session.run(None, feeds)]
    return max(float((a - b).abs().max() / b.abs().max().clamp_min(1e-12)) for a, b in zip(found, expected))


class Shapes(torch.fx.Interpreter):
    """Counts tensors whose declared shape is not that of the run."""

    def __init__(self, module, metas):
        super().__init__(module)
        self.metas, self.wrong = metas, []

    def run_node(self, node):
        value = super().run_node(node)
        declared = self.metas.get(node.name)
        if isinstance(value, torch.Tensor) and isinstance(declared, torch.Tensor):
            sizes = [size if isinstance(size, int) else size.node.hint for size in declared.shape]
            known = [found if size is None else size for size, found in zip(sizes, value.shape)]  # else data decide
            if len(sizes) != value.ndim or list(value.shape) != known:
                self.wrong.append(f"{node.name} {sizes} for {list(value.shape)}")
        return value


def main():
    originals, pruned = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    logging.disable(logging.WARNING)  # that older layouts are older
    rows = {}
    for path in sorted(originals.glob("*.pt2")):
        name = path.stem
        if sys.argv[3:] and name not in sys.argv[3:]:
            continue
        try:
            rows[name] = row = judged(originals, pruned, name)
            mixes = " (mixes)" if row["mixes"] else ""
            ok = "" if row["equal"] else "DIFFERS "
            runtime = row["runtime"]
            text = f"{name}: {ok}{row['masked']:.1e}{mixes} from the masked original"
            text += "" if runtime is None else f", {runtime:.1e} from ONNX Runtime"
            print(text + (f"; shapes {row['shapes'][:2]}" if row["shapes"] else ""), flush=True)
        except Exception as error:  # goes on with the next one
            rows[name] = {"equal": False, "fault": str(error)}
            print(f"{name}: FAILED {type(error).__name__}: {(str(error).splitlines() or [''])[0]}", flush=True)
    good = sum(row["equal"] for row in rows.values())
    print(f"{good} of {len(rows)} load, run and are equal to 1e-5 with torch {torch.__version__}")
    content = {"torch": torch.__version__, "networks": rows}
    (pruned / "checked.json").write_text(json.dumps(content, indent=1))
    return 0 if rows and all(row["equal"] and not row["shapes"] for row in rows.values()) else 1


def judged(originals, pruned, name):
    plan = Plan.load(pruned / f"{name}.json")
    paths = originals / f"{name}.pt2", pruned / f"{name}.pt2"
    masked, all_masked, changed, wrong, runtime = check(*paths, plan)
    report = json.loads((pruned / f"{name}.report.json").read_text())
    proven = report["proof"]["ran"] and report["proof"]["holds"]
    # What a masked channel becomes behind a normalisation of several dimensions, or in tokens that are
    # mixed, is not nothing: there the proof and ONNX Runtime decide.
    mixes = masked > 1e-5 and runtime is not None and proven and (plan.mixes or not all_masked)
    return {
        "proven": proven,
        "masked": masked,
        "changed": changed,
        "mixes": mixes,
        "runtime": runtime,
        "equal": (masked <= 1e-5 or mixes) and (runtime or 0) <= 1e-5,
        "shapes": wrong,
        "params": report["params"]["after"] / report["params"]["before"],
        "macs": report["macs"]["after"] / max(report["macs"]["before"], 1),
    }


sys.exit(main())
