"""The report of a directory's pruning: what the command writes of the plan that was taken, with what only
this package knows of the directory."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

import torch

from .command import run_command
from .directories import Pretrained
from .errors import FileError
from .members import Leaving
from .plan import Measured, Plan
from .pretrained import path_of


class Report:
    """A report as JSON, as `parsimony prune --report` writes it, and a page of the network.

    Args:
        network: the original.
        plan: of the directory, as it was applied.
        planned: the command's report on the network's program, of its groups alone if only members
            leave.
        leaving: the members that leave.
    """

    def __init__(
        self, network: Pretrained, plan: Plan, planned: Mapping[str, Any], leaving: Leaving
    ) -> None:
        self._network, self._plan, self._planned = network, plan, planned
        self._leaving = leaving

    def of(
        self,
        target: Path,
        folder: Path,
        seed: int,
        calibration: Optional[str],
        timings: Mapping[str, float],
    ) -> Dict[str, Any]:
        """Returns the report.

        Args:
            target: the transformer's folder in the output.
            folder: for files that are needed meanwhile.
            calibration: what was fitted to and measured on.
            timings: seconds by step.
        """
        plan, small, measured = self._plan, Pretrained(target), self._plan.measured
        report = {
            "parsimony_report": 2,
            **{"zeroed": 0, "elements": [], "scales": [], "unpruned_dims": []},
            **self._planned,
            "command": "parsimony.prune_pretrained",
            "source": {"path": str(self._network.path), "bytes": _bytes_of(self._network)},
            "result": {"path": str(target), "bytes": _bytes_of(small)},
            "params": dict(zip(("before", "after"), plan.parameters)),
            **self._counted(small, folder),
            "groups": [*self._groups(), *map(_of_members, self._leaving.groups())],
            "configuration": {
                path_of(one): {"before": one.before, "after": one.after} for one in plan.attributes
            },
            "proof": _proof(plan, seed),
            "notes": list(plan.notes),
            "timings": dict(timings),
        }
        report.pop("peak_memory", None)  # of the program, and without what leaves as a whole
        if measured is not None:
            report["metrics"] = [_metric(measured)]
            report["recovery"] = _recovery(measured, len(plan.values), str(calibration), timings)
        return report

    def _groups(self) -> List[Dict[str, Any]]:
        """Returns the groups of channels, without those cut in what leaves as a whole."""
        cut = {group["id"] for group in self._plan.groups}
        groups: List[Dict[str, Any]] = self._planned["groups"]
        return [one for one in groups if one["kept"] == one["size"] or one["id"] in cut]

    def _counted(self, small: Pretrained, folder: Path) -> Dict[str, Any]:
        """Returns the multiply-adds of both networks, and the inputs that they are counted for, unless
        the plan has them: it knows nothing of what leaves as a whole."""
        if "macs" in self._planned and not self._leaving.kept:
            return {}
        file, found = folder / "counted.pt2", []
        for network in (self._network, small):
            network.save(file)
            found.append(json.loads(run_command(["inspect", file, "--json"])))
        before, after = (one["totals"] for one in found)
        macs = {"before": before["macs"], "after": after["macs"]}
        macs["uncounted"] = before["uncounted"]
        return {"inputs": found[0]["inputs"], "macs": macs}


def page_of(network: Pretrained, page: Path, file: Path) -> str:
    """Returns the page of a network under the directory's name.

    Args:
        page: as the command wrote it with the plan; if there was no plan of widths, it is written now.
        file: the program.
    """
    if not page.exists():
        network.save(file)
        run_command(["explain", file, "--html", page, "-q"])
    text = page.read_text(encoding="utf-8")
    return text.replace(file.name, network.path.resolve().name)


def write(path: Path, text: str) -> None:
    """Writes a file.

    Raises:
        FileError: it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror}") from error


def _bytes_of(network: Pretrained) -> int:
    return sum(
        math.prod(one.shape) * torch.empty(0, dtype=one.dtype).element_size()
        for one in network.stored.values()
    )


def _of_members(group: Mapping[str, Any]) -> Dict[str, Any]:
    tensors = [part["tensor"] for part in group["slices"]]
    own = {key: group[key] for key in ("id", "size", "kept", "mixes", "granularity")}
    return {**own, "layers": tensors}


def _proof(plan: Plan, seed: int) -> Dict[str, Any]:
    proof = plan.proof
    if proof is None:
        return {"ran": False, "reason": "switched off by --no-verify"}
    scale = proof.scale or 1.0
    outputs = [
        {
            "name": "outputs",
            "difference": proof.difference / scale,
            "tolerance": proof.allowed / scale,
        }
    ]
    return {
        **{"ran": True, "holds": True, "inputs": proof.inputs, "seed": seed, "mixes": plan.mixes},
        **{"engine": f"PyTorch {torch.__version__}", "against": proof.reference},
        **{"outputs": outputs, "choices": [], "notes": []},
    }


def _metric(measured: Measured) -> Dict[str, Any]:
    """Returns the row of the original and of what was written."""
    return {
        "command": f"{measured.what} on {measured.samples} samples that nothing was fitted to",
        "lower_is_better": measured.what == "loss",
        **{"before": _finite(measured.original), "after": _finite(measured.written)},
        **{"output_before": "", "output_after": ""},
    }


def _recovery(
    measured: Measured, layers: int, calibration: str, timings: Mapping[str, float]
) -> Dict[str, Any]:
    """Returns what the networks are worth, each with what it was measured on."""

    def worth(value: float) -> Dict[str, Any]:
        found = {measured.what: _finite(value)}
        if measured.what == "loss":
            found["perplexity"] = _finite(math.exp(min(value, 700.0)))
        return found

    compared = {
        "loss": "mean loss of the next token",
        "cosine": "mean cosine to the original's embedding of the same text",
    }
    steps = []
    if measured.fitted is not None:
        step = {"method": "least-squares", "layers": layers, "seconds": timings["recover"]}
        steps.append({**step, **worth(measured.fitted)})
    return {
        "data": calibration,
        "samples": measured.calibrated if steps else 0,  # from the start of the data
        "test_samples": measured.samples,  # the last ones, none of which is fitted to
        "compared": compared[measured.what],
        "dense": worth(measured.original),
        "before": worth(measured.cut),
        "steps": steps,
        "notes": [],
    }


def _finite(value: float) -> Optional[float]:
    return value if math.isfinite(value) else None
