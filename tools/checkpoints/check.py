#!/usr/bin/env python3
"""Cuts checkpoints that other packages made, and judges them there.

Each checkpoint is made in seconds: a small network, two steps, the package's own way of saving. The
network is exported, `parsimony prune --checkpoint` cuts both, and the package loads the small
checkpoint into the small module, strictly. Against the original whose removed channels are zero are
compared: every tensor of every copy, every state of the optimizer, the outputs, and the first training
step with the optimizer restored. A checkpoint may be refused, if the message names the tensor.

run.sh makes the environment first.

Exits with 1 if a checkpoint was cut wrongly, or refused without a name.
"""

import contextlib
import importlib
import importlib.metadata
import io
import json
import logging
import os
import pathlib
import shutil
import sys
import traceback
import warnings
from typing import Dict, List

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent / "python")]

import torch
from parsimony.editing import Journal, alike, cut_tensor, named_tensors, set_zero
from parsimony.layers import follow_tensors
from parsimony.plan import Cut, Cuts, Plan
from torch import Tensor, nn

from sample import Maker, Sample, State, like, train
from tables.measured import table
from tables.runs import CACHE, COMMAND, finished, parser_of, publish

PACKAGES = ["lightning", "timm", "ultralytics", "transformers", "peft", "distributed"]
OUTPUT_TOLERANCE = 1e-5  # of the largest output
STEP_TOLERANCE = 1e-3  # of the largest change that the step makes


class Wrong(Exception):
    """Why a checkpoint is not the masked original's."""


def exported(sample: Sample, folder: pathlib.Path) -> List[str]:
    """Writes the network; returns the words of the command that describe it."""
    network = sample.exported.eval()
    network(*sample.example)  # some networks settle on sizes in their first run
    if sample.onnx:
        path = folder / "net.onnx"
        torch.onnx.export(network, sample.example, path, dynamo=True, external_data=False, verbose=False)
        return [str(path)]
    path = folder / "net.pt"
    torch.jit.trace(network, sample.example, strict=False).save(path)
    sizes = ["x".join(map(str, x.shape)) + ("" if x.is_floating_point() else ":int64") for x in sample.example]
    return [str(path), "--input", *sizes]


def names_tensor(text: str, sample: Sample, command: str) -> bool:
    """Does it name a tensor of the network, or one that the command finds in the checkpoint?"""
    words = [command, "inspect", str(sample.checkpoint), "--json"]
    found = json.loads(finished(words).stdout or "{}")
    names = {"/".join(tensor["path"]) for tensor in found.get("tensors", [])}
    return any(name in text for name in names.union(named_tensors(sample.exported)))


def located(before: Tensor, after: Tensor) -> Cuts:
    """Which part of `before`, most of whose elements differ, `after` seems to be."""
    flat, order = before.flatten().sort()
    at = torch.searchsorted(flat, after.flatten()).clamp_max(len(flat) - 1)
    places = torch.unravel_index(order[at], before.shape)
    cuts = {}
    for axis, (size, kept) in enumerate(zip(before.shape, after.shape)):
        if size != kept:
            keep = places[axis].view(after.shape).movedim(axis, 0).reshape(kept, -1).mode().values.tolist()
            cuts[axis] = cut(size, keep)
    return cuts


def cut(size: int, keep: List[int]) -> Cut:
    return Cut(size, tuple(keep), tuple(sorted(set(range(size)) - set(keep))))


def cuts_of(sample: Sample, before: State, after: State, plan: Plan) -> Dict[str, Cuts]:
    """Of each tensor of the module and of the checkpoint: what the plan says, or where an ONNX file has
    other names and has folded normalisations, what the checkpoint itself shows."""
    if sample.cuts is None:
        found = {name: located(tensor, after[name]) for name, tensor in before.items() if tensor.ndim > 0}
        return {name: cuts for name, cuts in found.items() if cuts}
    planned = plan.cuts()
    tensors = named_tensors(sample.exported)
    same = alike(tensors)
    for name in [name for name in planned if name in tensors]:
        twins = {id(tensor) for tensor in same[id(tensors[name])]}
        planned.update({other: planned[name] for other, tensor in tensors.items() if id(tensor) in twins})
    names = [*named_tensors(sample.module()), *before]
    return {name: cuts for name in names if (cuts := sample.cuts(name, planned))}


def check_states(sample: Sample, before: List[State], after: List[State], cuts: Dict[str, Cuts]) -> int:
    """Counts the tensors that are cut; all copies must be."""
    count = 0
    for dense, small in zip(before, after, strict=True):
        if dense.keys() != small.keys():
            raise Wrong(f"names: {sorted(dense.keys() ^ small.keys())[:3]}")
        for name, tensor in dense.items():
            expected = cut_tensor(tensor, cuts.get(name, {}))
            if expected.shape != small[name].shape or not torch.equal(expected, small[name]):
                raise Wrong(f"{name}: {list(small[name].shape)}, expected {list(expected.shape)} of {list(tensor.shape)}")
            count += name in cuts
    return count


def check_optimizers(dense: nn.Module, small: nn.Module, optimizers, cuts: Dict[str, Cuts]) -> int:
    """Counts the states that are cut. Masks those of the original."""
    count = 0
    named = named_tensors(small)
    for name, parameter in named_tensors(dense).items():
        for one, other in zip(*optimizers, strict=True):
            state, found = one.state.get(parameter, {}), other.state.get(named[name], {})
            if state.keys() != found.keys():
                raise Wrong(f"{name}: states {sorted(found)}, expected {sorted(state)}")
            for key, value in state.items():
                if not isinstance(value, Tensor) or value.numel() <= 1:
                    continue
                expected = cut_tensor(value, cuts.get(name, {}))
                if expected.shape != found[key].shape or not torch.equal(expected, found[key]):
                    raise Wrong(f"{name}: its {key} is not that of its channels")
                set_zero(value, cuts.get(name, {}))
                count += name in cuts
    return count


def shrink(module: nn.Module, cuts: Dict[str, Cuts]) -> None:
    journal = Journal()
    done = set()
    for name, tensor in named_tensors(module).items():
        if name in cuts and id(tensor) not in done:
            journal.cut(tensor, cuts[name])
            done.add(id(tensor))
    follow_tensors(module, journal, rescaled=False)


def difference(expected: Dict[str, Tensor], found: Dict[str, Tensor], scale: float) -> float:
    return max(float((expected[name] - found[name]).abs().max()) for name in expected) / max(scale, 1e-30)


def parameters(module: nn.Module) -> Dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in module.named_parameters()}


def step_difference(sample: Sample, modules, optimizers, cuts: Dict[str, Cuts]) -> float:
    """Between what the first step changes in both, by the largest change."""
    changes = []
    for module, own in zip(modules, optimizers):
        before = parameters(module)
        train(module, own, sample.loss, steps=1)
        changes.append({name: now - before[name] for name, now in parameters(module).items()})
    kept = {name: cut_tensor(change, cuts.get(name, {})) for name, change in changes[0].items()}
    scale = max(float(change.abs().max()) for change in kept.values())
    if scale == 0:
        raise Wrong("the step changes nothing")
    return difference(kept, changes[1], scale)


def tensors_in(outputs) -> Dict[str, Tensor]:
    leaves = torch.utils._pytree.tree_leaves(outputs)
    return {str(i): x for i, x in enumerate(leaves) if isinstance(x, Tensor)}


def outputs_of(sample: Sample, module: nn.Module) -> Dict[str, Tensor]:
    return tensors_in(sample.part(module.eval())(*(like(module, x) for x in sample.example)))


def judge(sample: Sample, small_file: pathlib.Path, small_network: pathlib.Path, plan: Plan) -> Dict:
    before, after = sample.states(sample.checkpoint), sample.states(small_file)
    cuts = cuts_of(sample, before[0], after[0], plan)
    if not cuts:
        raise Wrong("nothing is cut")
    row = {"tensors": check_states(sample, before, after, cuts)}
    dense, small = sample.module(), sample.module()
    shrink(small, cuts)
    sample.resize(small)
    for module, state in ((dense, before[0]), (small, after[0])):
        sample.load(module, state)
        module.double()  # Adam divides what rounding makes of a gradient of zero by its root
    optimizers = sample.optimizers(dense, sample.checkpoint), sample.optimizers(small, small_file)
    for name, tensor in named_tensors(dense).items():
        set_zero(tensor.data, cuts.get(name, {}))
    row["states"] = check_optimizers(dense, small, optimizers, cuts)
    with torch.no_grad():
        expected, found = (outputs_of(sample, module) for module in (dense, small))
        scale = max(float(x.abs().max()) for x in expected.values())
        row["outputs"] = difference(expected, found, scale)
        if not sample.onnx:
            network = tensors_in(torch.jit.load(small_network)(*sample.example))
            row["outputs"] = max(row["outputs"], difference(network, found, scale))
    row["step"] = step_difference(sample, (dense, small), optimizers, cuts)
    if not row["outputs"] <= OUTPUT_TOLERANCE:
        raise Wrong(f"the outputs differ by {row['outputs']:.1e}")
    if not row["step"] <= STEP_TOLERANCE:
        raise Wrong(f"the first step differs by {row['step']:.1e}")
    return row


def check(make: Maker, command: str, folder: pathlib.Path) -> Dict:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    torch.manual_seed(0)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        sample = make(folder)
    row = {"package": sample.package, "version": importlib.metadata.version(sample.package), "layout": sample.layout}
    network = exported(sample, folder)
    small = folder / ("small" + "".join(sample.checkpoint.suffixes))
    small_network = folder / ("small_net" + pathlib.Path(network[0]).suffix)
    words = [command, "prune", *network, "-o", small_network, "--ratio", "0.5", "--exact-only"]
    words += ["--checkpoint", sample.checkpoint, "--checkpoint-out", small, "--strict"]
    words += ["--plan", folder / "plan.json", "--report", folder / "report.json"]
    done = finished(words)
    (folder / "command.txt").write_text(" ".join(map(str, words)) + "\n" + done.stdout + done.stderr)
    if done.returncode:
        text = done.stderr.strip().removeprefix("parsimony: ")
        named = done.returncode in (2, 3, 4) and names_tensor(text, sample, command)
        return {**row, "verdict": "refused" if named else "wrong", "why": f"refused: {text}"}
    try:
        return {**row, **judge(sample, small, small_network, Plan.load(folder / "plan.json")), "verdict": "right"}
    except (Wrong, RuntimeError, ValueError, KeyError) as error:
        (folder / "fault.txt").write_text(traceback.format_exc())
        return {**row, "verdict": "wrong", "why": f"{type(error).__name__}: {error}"}


def numbers(row: Dict) -> List[str]:
    if row["verdict"] != "right":
        return [""] * 4
    return [str(row["tensors"]), str(row["states"]), f"{row['outputs']:.0e}", f"{row['step']:.0e}"]


def line(name: str, row: Dict) -> str:
    what = row["layout"] if "why" not in row else " ".join(row["why"].split())
    columns = " ".join(f"{number:>7}" for number in numbers(row))
    return f"{name:<18} {row['package']:<12} {row['version']:<8} {row['verdict']:<8}{columns}  {what}"


def write_page(rows: Dict[str, Dict], machine: str) -> None:
    good = sum(row["verdict"] != "wrong" for row in rows.values())
    title = "Checkpoints of other packages"
    found = table(
        title,
        "Small networks, two steps of training, saved as the package saves; half of the channels removed with "
        "--exact-only. Counted are the tensors that were cut in all copies of the network, and the states of "
        "optimizers; every one was compared with the original's. Differences from the original whose removed channels "
        "are zero, in double precision: of the outputs, by the largest output, and of the first training step with the "
        "optimizer restored, by the largest change that it makes. Where the network is TorchScript, the outputs are "
        f"the command's small network's too, in single precision. Right, or refused with the tensor named: {good} of "
        f"{len(rows)}, with PyTorch {torch.__version__.split('+')[0]}.",
        "tools/checkpoints/run.sh --page MACHINE",
        "package|layout|verdict|tensors|states|outputs|first step",
        [
            [f"{row['package']} {row['version']}", row["layout"], row.get("why", "right").splitlines()[0], *numbers(row)]
            for row in rows.values()
        ],
        machine=machine,
    )
    publish("checkpoints", {"title": title, "tables": [found]})


def all_samples() -> Dict[str, Maker]:
    found: Dict[str, Maker] = {}
    for package in PACKAGES:
        found.update(importlib.import_module(f"from_{package}").samples())
    return found


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a checkpoint: all by default")
    parser.add_argument("--folder", type=pathlib.Path, default=CACHE / "checkpoints/made", help="of the checkpoints")
    parser.add_argument("--command", default=os.environ.get("PARSIMONY_COMMAND", COMMAND))
    parser.add_argument("--page", metavar="MACHINE", help="write docs/results/data/checkpoints.json and its page")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    known = all_samples()
    rows = {}
    print(f"{'':<18} {'package':<12} {'version':<8} {'':<8}    cut  states outputs    step  layout, or why")
    for name in arguments.names or known:
        rows[name] = check(known[name], os.path.abspath(arguments.command), arguments.folder.resolve() / name)
        print(line(name, rows[name]), flush=True)
    if arguments.page:
        write_page(rows, arguments.page)
    wrong = sum(row["verdict"] == "wrong" for row in rows.values())
    print(f"{len(rows) - wrong} of {len(rows)} right, or refused with the tensor named; torch {torch.__version__}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
