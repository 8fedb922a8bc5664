"""The pruned architecture as data: the kept parts of each tensor, and derived sizes."""

from __future__ import annotations

import hashlib
import json
import math
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .errors import ConfigError, FileError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_FORMAT = 1


@dataclass(frozen=True)
class Cut:
    """The kept part of one axis of a tensor.

    `keep` are the kept indices, ascending, of `size`. `zeroed` are the removed ones that are zero
    in the masked original; a divisor is removed, but never set to zero.
    """

    size: int
    keep: Tuple[int, ...]
    zeroed: Tuple[int, ...]


Cuts = Dict[int, Cut]


@dataclass(frozen=True)
class AttributeChange:
    """A size that a module stores in an attribute and that its `forward` reads."""

    module: str
    attribute: str
    before: Any
    after: Any

    def reversed(self) -> "AttributeChange":
        """Returns the change back."""
        return AttributeChange(self.module, self.attribute, self.after, self.before)


@dataclass(frozen=True)
class Proof:
    """The comparison of the small module with its reference, over all outputs.

    `difference` is the largest absolute difference, `scale` the largest absolute output of the
    reference, `allowed` the largest difference that would have been accepted.
    """

    reference: str
    difference: float
    scale: float
    allowed: float
    inputs: int

    def __str__(self) -> str:
        count = f"{self.inputs} input" + ("" if self.inputs == 1 else "s")
        return (
            f"Proven: largest difference {self.difference:.1e} (allowed {self.allowed:.1e}, largest "
            f"output {self.scale:.1e}) from {self.reference}, on {count}."
        )


@dataclass(frozen=True)
class Measured:
    """The original, what was cut from it, and that with fitted weights, on texts that no weight was
    fitted to: the mean loss of a token, or the mean cosine to the original's embeddings. `calibrated`
    samples were fitted to."""

    what: str
    original: float
    cut: float
    fitted: Optional[float]
    samples: int
    calibrated: int = 0

    @property
    def written(self) -> float:
        """Of the network that is written: the fitted one, if it is better than the cut one."""
        found = [x for x in (self.cut, self.fitted) if x is not None]
        return min(found) if self.what == "loss" else max(found)

    def __str__(self) -> str:
        steps = [("original", self.original), ("cut", self.cut), ("fitted", self.fitted)]
        numbers = ", ".join(f"{name} {x:.4f}" for name, x in steps if x is not None)
        text = f"Measured: {self.what} on {self.samples} samples: {numbers}."
        if self.what == "loss":
            text += f" Perplexity {math.exp(self.original):.2f} -> {math.exp(self.written):.2f}."
        return text


@dataclass
class Plan:
    """What `prune` did, with all that is needed to repeat it elsewhere.

    Attributes:
        data: the plan of the command (`docs/internals/design.md` describes it), a JSON object.
        values: new elements of tensors by name, and masks by `NAME:mask`; usually empty, and where torch
            is not installed: they are saved all the same.
        shapes: of every tensor that was cut, before and after.
        attributes: sizes of modules that are not standard layers.
        parameters: of the network, before and after.
        macs: multiply-adds of one run on the example inputs, before and after.
        notes: messages for the user.
        measured: what networks are worth on texts that no weight was fitted to, if some were given.
        proof: None if the plan was not verified in this process, or was loaded.
    """

    data: Dict[str, Any]
    values: Dict[str, Tensor] = field(default_factory=dict)
    shapes: Dict[str, Tuple[Tuple[int, ...], Tuple[int, ...]]] = field(default_factory=dict)
    attributes: List[AttributeChange] = field(default_factory=list)
    parameters: Tuple[int, int] = (0, 0)
    macs: Tuple[int, int] = (0, 0)
    notes: List[str] = field(default_factory=list)
    measured: Optional[Measured] = None
    proof: Optional[Proof] = None

    def __post_init__(self) -> None:
        self._module: Optional["weakref.ReferenceType[torch.nn.Module]"] = None
        self._stored = b""  # values that were not read

    @property
    def groups(self) -> List[Dict[str, Any]]:
        """The pruned groups of channels: `id`, `size`, `kept`, `mixes` and `slices` of each."""
        groups: List[Dict[str, Any]] = self.data["groups"]
        return groups

    @property
    def empty(self) -> bool:
        """Whether there is nothing to change."""
        changes = ("blocks", "groups", "integers", "scales", "copies", "zeros", "updates", "masks")
        changes += ("renamings",)
        return not any(self.data.get(key) for key in changes)

    @property
    def mixes(self) -> bool:
        """Whether a group passes through an operator whose result depends on the number of channels."""
        return any(group["mixes"] for group in self.groups)

    @property
    def module(self) -> Optional[torch.nn.Module]:
        """The module that was pruned by this plan in this process, if it still exists."""
        return None if self._module is None else self._module()

    def bind(self, module: torch.nn.Module) -> "Plan":
        """Sets `module`, by a weak reference, as the one that the plan was applied to."""
        self._module = weakref.ref(module)
        return self

    def cuts(self, groups: Optional[Sequence[Dict[str, Any]]] = None) -> Dict[str, Cuts]:
        """Returns the cuts of each tensor that is cut, by its name."""
        found: Dict[str, Cuts] = {}
        for group in self.groups if groups is None else groups:
            for part in group["slices"]:
                axes = found.setdefault(part["tensor"], {})
                keep, size = set(part["keep"]), part["size"]
                known = axes.get(part["axis"])
                zeroed = set() if part["role"] == "with" else set(range(size)) - keep
                if known is not None:
                    if known.size != size:
                        raise ConfigError(f"tensor {part['tensor']!r} has two sizes in the plan")
                    keep &= set(known.keep)
                    zeroed |= set(known.zeroed)
                axes[part["axis"]] = Cut(size, tuple(sorted(keep)), tuple(sorted(zeroed)))
        cut = {
            name: {axis: cut for axis, cut in sorted(axes.items()) if len(cut.keep) < cut.size}
            for name, axes in found.items()
        }
        return {name: axes for name, axes in cut.items() if axes}

    def save(self, path: Union[str, Path]) -> None:
        """Writes the plan as JSON, and its values, if there are any, to `path` + ".safetensors".

        `Plan.load` reads it. `save_data` writes the command's own, for `apply --plan`.
        """
        self._save_values(path)
        content = {
            "parsimony_python_plan": _FORMAT,
            "plan": self.data,
            "shapes": self.shapes,
            "attributes": [vars(change) for change in self.attributes],
            "parameters": self.parameters,
            "macs": self.macs,
            "notes": self.notes,
        }
        Path(path).write_text(json.dumps(content))

    def save_data(self, path: Union[str, Path]) -> None:
        """Writes the command's own plan, for `parsimony apply --plan`, and its values beside it."""
        self._save_values(path)
        Path(path).write_text(json.dumps(self.data))

    def _save_values(self, path: Union[str, Path]) -> None:
        if self.values:
            from .tensor_file import write_tensors

            write_tensors(values_path(path), self.values)
        elif self._stored:
            values_path(path).write_bytes(self._stored)

    @staticmethod
    def load(path: Union[str, Path]) -> "Plan":
        """Reads a plan that `save`, or the command's `--plan`, wrote.

        Raises:
            FileError: the file cannot be read, or its values are missing.
            ConfigError: it is not a plan.
        """
        try:
            content = json.loads(Path(path).read_text())
        except OSError as error:
            raise FileError(f"{path}: {error.strerror}") from error
        except ValueError as error:
            raise ConfigError(f"{path}: not a plan: {error}") from error
        if not isinstance(content, dict):
            raise ConfigError(f"{path}: not a plan")
        if "parsimony_plan" in content:
            plan = Plan(content)
        elif content.get("parsimony_python_plan") == _FORMAT:
            plan = _from_json(content, path)
        else:
            raise ConfigError(f"{path}: not a plan, or one of a newer version")
        if plan.needs_values:
            if not values_path(path).exists():
                raise FileError(f"{values_path(path)}: the values of the plan are missing")
            try:
                from .tensor_file import read_tensors

                plan.values = read_tensors(values_path(path))
            except ModuleNotFoundError:
                plan._stored = values_path(path).read_bytes()
        return plan

    @property
    def needs_values(self) -> bool:
        """Whether the plan has new elements for tensors, or masks."""
        return any(
            "sha256" in entry
            for key in ("updates", "folds", "masks")
            for entry in self.data.get(key, [])
        )

    def __repr__(self) -> str:
        rows = [("tensor", "before", "after")]
        rows += [
            (name, "x".join(map(str, before)), "x".join(map(str, after)))
            for name, (before, after) in self.shapes.items()
            if len(before) > 1
        ]
        for what, (was, now) in (("parameters", self.parameters), ("MACs", self.macs)):
            if was:
                rows.append((what, f"{was:,}", f"{now:,} ({now / was:.1%})"))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [
            f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}".rstrip()
            for row in rows
        ]
        if self.groups:
            count = f"{len(self.groups)} group" + ("" if len(self.groups) == 1 else "s")
            kept = sum(group["kept"] for group in self.groups)
            size = sum(group["size"] for group in self.groups)
            mixing = sum(group["mixes"] for group in self.groups)
            mixed = f"; {mixing} of them mix" if mixing else ""
            lines.append(f"{count}, {kept:,} of {size:,} channels kept{mixed}.")
        if self.measured is not None:
            lines.append(str(self.measured))
        if self.proof is not None and not self.empty:
            lines.append(str(self.proof))
        return "\n".join(lines + [f"Note: {note}" for note in self.notes])


def _from_json(content: Mapping[str, Any], path: Union[str, Path]) -> Plan:
    try:
        return Plan(
            data=content["plan"],
            shapes={
                name: (tuple(before), tuple(after))
                for name, (before, after) in content["shapes"].items()
            },
            attributes=[
                AttributeChange(
                    entry["module"],
                    entry["attribute"],
                    _tuples(entry["before"]),
                    _tuples(entry["after"]),
                )
                for entry in content["attributes"]
            ],
            parameters=_pair(content["parameters"]),
            macs=_pair(content["macs"]),
            notes=list(content["notes"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{path}: not a plan: {error!r}") from error


def _pair(value: Any) -> Tuple[int, int]:
    before, after = value
    return int(before), int(after)


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def updates_of(values: Mapping[str, Tensor], reason: str) -> List[Dict[str, Any]]:
    """Returns the entries of a plan for tensors with new elements."""
    import torch

    entries = []
    for name, tensor in values.items():
        content = tensor.detach().cpu().contiguous()
        raw = content.reshape(-1).view(torch.uint8).numpy().tobytes()
        entries.append(
            {
                "tensor": name,
                "reason": reason,
                "dtype": str(content.dtype).rpartition(".")[2],
                "dims": list(content.shape),
                "sha256": hashlib.sha256(raw).hexdigest(),
            }
        )
    return entries


def values_path(path: Union[str, Path]) -> Path:
    """Returns the path of the values of the plan at `path`."""
    return Path(f"{path}.safetensors")
