"""Prunes torchvision's classification networks as live modules, and prints a table.

    python3 python/benchmarks/torchvision_networks.py                   # all of them: an hour on a core
    python3 python/benchmarks/torchvision_networks.py resnet50 vit_b_16
    python3 python/benchmarks/torchvision_networks.py --out rows.jsonl  # goes on where it stopped

Each network gets random weights, without the zeros that initialisation leaves, is pruned to half of
its channels, proven, and applied to a fresh network, which then loads the small state. `difference` is
the largest one from the reference, `relative` is divided by the largest output if that is above 1.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
import warnings
from pathlib import Path
from typing import Any, Dict, Iterator, List

import torch
import torchvision
from torch import nn

import parsimony

sys.path.insert(0, str(Path(__file__).parent))
from rows import collect  # noqa: E402


def names() -> List[str]:
    """All networks for classification."""
    return sorted(torchvision.models.list_models(module=torchvision.models))


@contextlib.contextmanager
def uninitialised() -> Iterator[None]:
    """While it lasts, layers are constructed without the time that their initialisation takes."""
    functions = {name: f for name, f in vars(nn.init).items() if name.endswith("_")}
    functions = {name: f for name, f in functions.items() if not name.startswith("_")}
    for name in functions:
        setattr(nn.init, name, lambda tensor, *_, **__: tensor.data.zero_())
    try:
        yield
    finally:
        for name, function in functions.items():
            setattr(nn.init, name, function)


def network(name: str, seed: int = 0) -> nn.Module:
    """A network whose weights are random, none of them zero."""
    torch.manual_seed(seed)
    with uninitialised():
        model = torchvision.models.get_model(name, weights=None)
    with torch.no_grad():
        for part in model.modules():
            if isinstance(part, (nn.Linear, nn.Conv2d, nn.MultiheadAttention)):
                for tensor in part.parameters(recurse=False):
                    fan_in = tensor[0].numel() if tensor.dim() > 1 else 2500
                    tensor.normal_(0, fan_in**-0.5)
            elif isinstance(part, (nn.BatchNorm2d, nn.LayerNorm)):
                part.weight.uniform_(0.8, 1.2)
                part.bias.normal_(0, 0.02)
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.normal_(0, 0.1)
                part.running_var.uniform_(0.8, 1.2)
        for tensor in model.parameters():
            if not tensor.any():
                tensor.normal_(0, 0.02)
    return model


def row(name: str, ratio: float) -> Dict[str, Any]:
    """Prunes one network."""
    model = network(name)
    size = 299 if name == "inception_v3" else 224
    inputs = torch.rand(1, 3, size, size) - 0.5
    found: Dict[str, Any] = {"network": name}
    begin, cpu = time.perf_counter(), time.process_time()
    try:
        plan = parsimony.prune(model, inputs, ratio=ratio)
    except Exception as error:
        return {**found, "fault": f"{type(error).__name__}: {error}"}
    found["seconds"] = time.perf_counter() - begin
    found["python_cpu_seconds"] = time.process_time() - cpu
    proof = plan.proof
    assert proof is not None
    found.update(
        parameters=plan.parameters,
        macs=plan.macs,
        mixes=sum(group["mixes"] for group in plan.groups),
        difference=proof.difference,
        relative=proof.difference / max(1.0, proof.scale),
        scale=proof.scale,
        reference=proof.reference,
        attributes=len(plan.attributes),
        notes=plan.notes,
    )
    with uninitialised():
        fresh = torchvision.models.get_model(name, weights=None)
    parsimony.apply(fresh, plan)
    fresh.load_state_dict(model.state_dict())
    with torch.no_grad():
        found["applied"] = torch.equal(fresh.eval()(inputs), model.eval()(inputs))
    return found


def table(rows: List[Dict[str, Any]]) -> str:
    """The rows as Markdown."""
    lines = [
        "| network | parameters left | MACs left | difference | relative | reference | mixing | s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for entry in rows:
        if "fault" in entry:
            lines.append(
                f"| {entry['network']} | failed: {entry['fault'].splitlines()[0]} | | | | | | |"
            )
            continue
        shares = [f"{entry[key][1] / entry[key][0]:.1%}" for key in ("parameters", "macs")]
        reference = entry["reference"] + ("" if entry["applied"] else ", NOT applied alike")
        lines.append(
            f"| {entry['network']} | {shares[0]} | {shares[1]} | {entry['difference']:.1e} | "
            f"{entry['relative']:.1e} | {reference} | {entry['mixes']} | {entry['seconds']:.1f} |"
        )
    good = [entry for entry in rows if entry.get("relative", 1) <= 1e-5 and entry["applied"]]
    lines.append(
        f"\n{len(good)} of {len(rows)} pruned, within 1e-5, and loaded by a fresh network."
    )
    return "\n".join(lines)


def main() -> None:
    """Runs the networks that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", help="all, if none is given")
    parser.add_argument("--ratio", type=float, default=0.5)
    parser.add_argument(
        "--out", type=Path, help="JSON lines; networks that it has are not run again"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rows = collect(options.networks or names(), lambda name: row(name, options.ratio), options.out)
    print(table(sorted(rows, key=lambda entry: entry["network"])))


if __name__ == "__main__":
    main()
