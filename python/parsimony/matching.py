"""Trains a pruned module to compute what the original does: the recovery step `outputs`, in the user's
torch on the module's device (docs/guide/recovery.md, "Matching the outputs")."""

from __future__ import annotations

import math
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .editing import Journal, alike, named_tensors, shown_elsewhere
from .engine import NotRun, Samples
from .errors import UnsupportedError
from .inputs import Inputs, evaluating
from .plan import Plan, updates_of
from .program import Program
from .proof import outputs_of
from .tree import tensors_in

_VALIDATION = 8  # one batch in this many is used for validation
_RISING = 0.05  # the share of the training during which the rate rises
_BEHIND = 0.1  # by so much the share of epochs may lag behind that of the time limit
_NO_SPREAD = 1e-8
_STEP = "outputs"

Distance = Callable[[Tensor, Tensor], Tensor]


class Settings(NamedTuple):
    """How long and how fast: `minutes` is a limit, 0 for none."""

    epochs: int = 20
    lr: float = 1e-3
    minutes: float = 0.0

    @staticmethod
    def take(asked: Dict[str, Any], file: Dict[str, Any]) -> "Optional[Settings]":
        """Takes the step from the settings of `prune`, if it is the last one and torch can do it: blocks
        and inner values are the command's."""
        of = asked if "recover" in asked else file
        steps = of.get("recover") or []
        steps = steps.split(",") if isinstance(steps, str) else list(steps)
        if not steps or steps[-1] != _STEP or steps.count(_STEP) > 1 or "match" in asked:
            return None
        if any(step == "finetune" or step.startswith(_STEP + ":") for step in steps):
            return None
        of["recover"] = steps[:-1]
        if not of["recover"]:
            del of["recover"]
        own = {name: asked.pop(f"recover_{name}", None) for name in Settings._fields}
        return Settings(**{name: value for name, value in own.items() if value is not None})


class Matching:
    """The original's outputs for the samples; `train` makes the pruned module return the same.

    Raises:
        UnsupportedError: no output is floating-point, or the samples are not numbers of the inputs' kind.
    """

    def __init__(self, program: Program, samples: Samples, settings: Settings) -> None:
        self._program = program
        self._samples = samples
        self._settings = settings
        self._batches, left = [], samples.count
        for batch, count in zip(samples.batches, samples.counts):
            if left > 0:
                some, left = min(left, count), left - count
                self._batches.append(
                    batch.inputs.map(lambda x: x[:some] if x.shape[:1] == (count,) else x)
                )
        with evaluating(program.module, program.training):
            self._wanted = [outputs_of(program.module, [self._placed(i)])[0] for i in self._numbers]
        self._distances = [
            _distance_of(kind, [outputs[i] for outputs in self._wanted])
            for i, kind in enumerate(_kinds(program, len(self._wanted[0])))
        ]
        if not any(self._distances):
            raise UnsupportedError(
                "recover=: the module has no floating-point output to be matched"
            )

    @property
    def _numbers(self) -> range:
        return range(len(self._batches))

    def _placed(self, number: int) -> Inputs:
        """Returns a batch as the module takes it."""
        try:
            return self._samples.placed(self._batches[number])
        except NotRun as reason:
            raise UnsupportedError(
                f"recover=: torch was asked to run {reason}; pass engine='auto' to run the command's"
            ) from reason

    def train(self, plan: Plan, journal: Journal) -> None:
        """Trains the parameters of the program's module, which the plan has cut; those that show parts of
        others stay. The values of the epoch with the smallest loss of validation stay, possibly the first
        ones; the plan gets them, too."""
        module = self._program.module
        tensors = named_tensors(module)
        elsewhere = shown_elsewhere(tensors)
        trained: List[_Trained] = []
        for group in {id(same[0]): same for same in alike(tensors).values()}.values():
            first = group[0]
            own = any(isinstance(one, nn.Parameter) for one in group)
            if not own or not first.is_floating_point() or id(first) in elsewhere or first.is_meta:
                continue
            values = first.data.clone()
            for tensor in group:
                journal.set_data(tensor, values)
            names = [
                name for name, tensor in tensors.items() if any(tensor is one for one in group)
            ]
            trained.append(_Trained(names, group, values.clone(), _kept(plan, names, values)))
        with self._program.differentiable(), torch.enable_grad():
            if not trained or not self._loss(0).requires_grad:
                plan.notes.append(
                    "outputs not matched: they depend on no parameter that is trained"
                )
                return
            notes = self._minimise(trained)
        plan.notes += notes
        updates = {entry["tensor"]: entry for entry in plan.data.get("updates", [])}
        for one in trained:
            if torch.equal(one.data, one.before):
                continue
            for name in one.names:
                plan.values.pop(name, None)
                updates.pop(name, None)
            plan.values[one.names[0]] = one.data.cpu().clone()
            new = {one.names[0]: plan.values[one.names[0]]}
            (updates[one.names[0]],) = updates_of(
                new, "training to match the dense network's outputs"
            )
        plan.data["updates"] = list(updates.values())

    def _minimise(self, trained: "Sequence[_Trained]") -> List[str]:
        """Returns what happened."""
        adam = torch.optim.Adam(
            [{"params": [one.master], "scale": _size_of(one.master)} for one in trained]
        )
        number = len(self._batches)
        period = min(_VALIDATION, number)
        held_out = [i for i in self._numbers if i % period == period - 1]
        batches = [i for i in self._numbers if number == 1 or i not in held_out]
        clock = _Clock(self._settings, len(batches))
        before = best = self._loss_over(held_out)
        values, at = [one.data.clone() for one in trained], 0
        for epoch in range(1, self._settings.epochs + 1):
            for i in batches:
                rate = clock.rate()
                for group in adam.param_groups:
                    group["lr"] = rate * group["scale"]
                self._step(i, trained, adam)
                if clock.over:
                    break
            loss = self._loss_over(held_out)
            if loss < best:
                best, values, at = loss, [one.data.clone() for one in trained], epoch
            if clock.over or not math.isfinite(loss):
                break
        for one, value in zip(trained, values):
            one.data.copy_(value)
        notes = [
            f"outputs matched: loss of validation {before:.3g} -> {best:.3g}, of epoch {at} of "
            f"{self._settings.epochs}"
        ]
        if clock.by_time:
            notes.append("the time limit ended training; another run may give different weights")
        return notes

    def _step(self, batch: int, trained: "Sequence[_Trained]", adam: torch.optim.Optimizer) -> None:
        parameters = [tensor for one in trained for tensor in one.parameters]
        found = torch.autograd.grad(self._loss(batch), parameters, allow_unused=True)
        gradients = {id(p): gradient for p, gradient in zip(parameters, found)}
        with torch.no_grad():
            for one in trained:
                parts = [gradients[id(p)] for p in one.parameters]
                known = [
                    (part.to_dense() if part.is_sparse else part).to(one.master.dtype)
                    for part in parts
                    if part is not None
                ]
                one.master.grad = sum(known[1:], known[0]) if known else None
            adam.step()
            for one in trained:
                one.follow()

    def _loss(self, batch: int) -> Tensor:
        found = tensors_in(self._placed(batch).call(self._program.module))
        terms = [
            distance(wanted, own)
            for wanted, own, distance in zip(self._wanted[batch], found, self._distances)
            if distance is not None
        ]
        return torch.stack(terms).sum()

    def _loss_over(self, batches: Sequence[int]) -> float:
        with torch.no_grad():
            losses = [float(self._loss(batch)) for batch in batches]
        return sum(losses) / len(losses)


class _Trained:
    """A tensor of the module, under all of its names. Steps are taken on `master`, an alias that has its
    own gradient; of half precision, in which steps would be lost, a copy in float32."""

    def __init__(
        self, names: List[str], tensors: Sequence[Tensor], before: Tensor, kept: Optional[Tensor]
    ) -> None:
        self.names = names
        self.parameters = [one for one in tensors if isinstance(one, nn.Parameter)]
        self.data = tensors[0].data
        self.before = before
        self.master = self.data.detach()
        if self.data.dtype in (torch.float16, torch.bfloat16):
            self.master = self.master.float()
        self.master.requires_grad_()
        self._kept = kept

    def follow(self) -> None:
        """Takes the master's values after a step."""
        self.master.grad = None
        if self._kept is not None:
            self.master.mul_(self._kept)
        if self.master.dtype != self.data.dtype:
            self.data.copy_(self.master)


def _kept(plan: Plan, names: Sequence[str], values: Tensor) -> Optional[Tensor]:
    """Returns what is not zero of a tensor of which single elements were removed."""
    entries = [*plan.data.get("zeros", []), *plan.data.get("masks", [])]
    entries += [one for one in plan.data.get("updates", []) if len(one.get("dims", ())) > 1]
    return values != 0 if any(entry["tensor"] in names for entry in entries) else None


class _Clock:
    """The rate along the epochs: a linear rise, then a cosine to zero. If these lag behind the time limit,
    it decides instead, and the result depends on it."""

    def __init__(self, settings: Settings, batches: int) -> None:
        self._settings = settings
        self._steps = batches * settings.epochs
        self._done = 0
        self._begun = time.monotonic()
        self.by_time = False
        self.over = False

    def rate(self) -> float:
        """Returns the rate of the next step."""
        share = self._done / self._steps
        self._done += 1
        if self._settings.minutes > 0:
            passed = (time.monotonic() - self._begun) / 60 / self._settings.minutes
            self.by_time = self.by_time or passed >= 1 or passed > share + _BEHIND
            share = max(share, passed) if self.by_time else share
        self.over = share >= 1
        return self._settings.lr * _rate(min(share, 1.0))


def _rate(share: float) -> float:
    """A linear rise, then a cosine to zero."""
    return share / _RISING if share < _RISING else (1 + math.cos(math.pi * share)) / 2


def _size_of(tensor: Tensor) -> float:
    """Returns the root of the mean square, by which steps are measured; 1 for zeros."""
    return float(tensor.detach().float().square().mean().sqrt()) or 1.0 if tensor.numel() else 1.0


def _kinds(program: Program, count: int) -> List[Mapping[str, int]]:
    """Returns what computes each of `count` tensors: {"softmax": axis}, {"sigmoid": 0}, or nothing
    known."""
    nodes = {node.name: node for node in program.exported.graph.nodes}
    specs = program.exported.graph_signature.output_specs
    found = [nodes[one.arg.name] for one in specs if _is_tensor_of_user(one)]
    if len(found) < count:
        return [{}] * count
    kinds: List[Mapping[str, int]] = []
    for node in found[:count]:
        schema = getattr(node.target, "_schema", None)
        kind = "" if schema is None else schema.name
        if kind in ("aten::softmax", "aten::_softmax"):
            kinds.append({"softmax": node.args[1]})
        else:
            kinds.append({"sigmoid": 0} if kind == "aten::sigmoid" else {})
    return kinds


def _is_tensor_of_user(spec: Any) -> bool:
    return spec.kind.name == "USER_OUTPUT" and type(spec.arg).__name__ == "TensorArgument"


def _distance_of(kind: Mapping[str, int], wanted: Sequence[Tensor]) -> Optional[Distance]:
    """Returns the distance for an output, divided by the spread of `wanted`; None for integers."""
    if not wanted[0].is_floating_point() or not sum(one.numel() for one in wanted):
        return None
    if "softmax" in kind:
        axis = kind["softmax"]
        return lambda a, b: _divergence(a, b).sum(axis).mean()
    flat = torch.cat([one.detach().float().reshape(-1) for one in wanted])
    if "sigmoid" in kind:
        spread = float(_of_events(flat, flat.mean().expand_as(flat)))
        spread = spread if spread >= _NO_SPREAD else 1.0
        return lambda a, b: _of_events(a.float(), b.float()) / spread
    deviation = float(flat.std(correction=0))
    if deviation <= 0:
        return lambda a, b: F.mse_loss(b.float(), a.float())
    return lambda a, b: 2 * F.huber_loss(b.float() / deviation, a.float() / deviation)


def _divergence(a: Tensor, b: Tensor) -> Tensor:
    """Returns a·log(a / b), 0 where a is 0."""
    return torch.xlogy(a.float(), a.float()) - torch.xlogy(a.float(), b.float().clamp(min=1e-12))


def _of_events(a: Tensor, b: Tensor) -> Tensor:
    return (_divergence(a, b) + _divergence(1 - a, 1 - b)).mean()
