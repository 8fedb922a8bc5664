"""The proof: the small model against the original with the planned slices set to zero."""

import dataclasses
import hashlib
import math
import pathlib
import time

from .choices import give_choices
from .faults import Refusal, UsageFault
from .metrics import difference_of, has_nan, is_finite, signal_of
from .model import Model
from .plan import check_tensors, mask_model, mixes, read_plan
from .probes import choose_probes
from .runtime import LEVELS, run_all

# Both models run at both levels: 'disabled' is what the file says, 'all' is what users run.
BASE_TOLERANCE = {"float32": 1e-4, "float16": 1e-2}
NOISE_MARGIN = 4
WEAK_TOLERANCE = 5e-2  # a difference beyond this that rounding allows proves nothing

# What keeps no more of its first input than an order or a ratio; and what passes values on.
HIDES = "ArgMax ArgMin TopK Greater GreaterOrEqual Less LessOrEqual Softmax Sigmoid".split()
PASSES = "Cast Squeeze Unsqueeze Reshape Flatten Transpose Identity".split()


@dataclasses.dataclass
class Options:
    inputs: int | None = None
    seed: int = 1
    distribution: str = "normal"
    threads: int = 1
    tolerance: float | None = None
    also: tuple = ()


@dataclasses.dataclass
class Job:
    original: str
    small: str
    plan: str
    specs: list = dataclasses.field(default_factory=list)  # parsed --input arguments


def compare(job, options):
    """Compares one pruned model with its original. Returns what --json prints:

    verdict     'exact'; 'mixes'; 'weak', if a difference is allowed only because the original itself
                rounds as much; 'MISMATCH' or 'NONFINITE'
    difference  max|a - b| / max|a|, the largest over probes and both optimization levels, of the
                output closest to its tolerance or furthest beyond it; null: infinite, or none
    tolerance   what was allowed there
    noise       the reference's own difference between the two levels there
    degenerate  no output moves by more than its tolerance between inputs: that proves little
    inputs      [{name, type, shape}], with probes, batches and seed: what was fed
    choices     values from which the small model chooses, and got the reference's instead of its own:
                with these it chose otherwise. They are among the outputs
    outputs     [{name, type, shape, difference, tolerance, noise, signal, degenerate, ...}]
    tensors     {sliced, as_planned, absent, wrong}: the small file's tensors against the plan
    notes       sentences for a person

    An unusable file is a FileFault, an original that cannot be run a Refusal.
    """
    started = time.perf_counter()
    plan = read_plan(job.plan)
    original, small = Model.read(job.original), Model.read(job.small)
    reference = original.copy()
    mask_model(reference, plan)
    tensors = check_tensors(original, small, plan)
    shown = shown_values(original, small, options.also)
    probes = choose_probes(job.original, original, job.specs, options)
    for name in shown:
        reference.add_output(name)
        small.add_output(name)

    base = options.tolerance or BASE_TOLERANCE["float16" if original.uses_type("float16") else "float32"]
    pair = Pair(reference, small, job.small, tensors, mixes(plan), base, options)
    result = pair.run(probes.feeds)
    result = pair.run_with_choices(probes.feeds, result) or result
    outputs = result.outputs
    worst = max(outputs, key=lambda one: one["difference"] / one["tolerance"], default={})
    return {
        "original": str(job.original),
        "small": str(job.small),
        "plan": str(job.plan),
        "verdict": result.verdict,
        "difference": worst.get("difference"),
        "tolerance": worst.get("tolerance", base),
        "noise": worst.get("noise"),
        "degenerate": bool(outputs) and all(one.get("degenerate") for one in outputs),
        "seed": options.seed,
        "probes": len(probes.feeds),
        "batches": probes.batches,
        "inputs": probes.inputs,
        "choices": result.choices,
        "outputs": outputs,
        "tensors": tensors,
        "notes": notes(job, plan, pair, result, probes.feeds),
        "seconds": time.perf_counter() - started,
    }


def smoke(path, specs, options):
    """Runs one model on seeded inputs: does it load, run, and stay finite?"""
    probes = choose_probes(path, Model.read(path), specs, options)
    results = run_all(path, "all", probes.feeds, options.threads)
    outputs = [
        {
            **described(name, results[0]),
            "finite": all(is_finite(run[name]) for run in results),
            "signal": signal_of([run[name] for run in results]),
        }
        for name in results[0]
    ]
    return {
        "model": str(path),
        "verdict": "finite" if all(output["finite"] for output in outputs) else "NONFINITE",
        "seed": options.seed,
        "probes": len(probes.feeds),
        "batches": probes.batches,
        "inputs": probes.inputs,
        "outputs": outputs,
    }


def described(name, run):
    kind = run[name].dtype.name
    return {"name": name, "type": "string" if kind == "object" else kind, "shape": list(run[name].shape)}


def shown_values(original, small, also):
    """Inner values to compare too: a class or a saturated score hides what it was made from."""
    for name in also:
        if not original.knows(name) or not small.knows(name):
            raise UsageFault(f'--also "{name}": both models must compute it')
    outputs = [output.name for output in original.outputs]
    behind = (hidden_behind(original, name) for name in outputs)
    shown = dict.fromkeys([*also, *(name for name in behind if small.knows(name))])
    return [name for name in shown if name not in outputs]


def hidden_behind(model, value):
    """The value that an output only looks at, or None where the output tells all there is."""
    hidden = None
    while node := model.producers.get(value):
        value = node.inputs[0] if node.inputs else None
        if node.op in HIDES and model.knows(value):
            hidden = value
        elif node.op not in PASSES:
            break
    return hidden


@dataclasses.dataclass
class Result:
    expected: dict  # of the reference: by level a list of runs
    refusal: str | None
    outputs: list
    verdict: str
    choices: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Pair:
    """The reference and the small model, and by what they are judged."""

    reference: Model
    small: Model
    path: str
    tensors: dict
    mixes: bool
    base: float
    options: Options

    def run(self, feeds, as_file=True):
        """Runs both and compares them. The file itself must run as well, as its user will run it."""
        threads = self.options.threads
        expected = run_levels(self.reference, feeds, threads)
        refusal, outputs = None, []
        try:
            if as_file:
                run_all(self.path, "all", feeds[:1], threads)
            found = run_levels(self.small, feeds, threads)
            outputs = [measured(name, expected, found, self.base) for name in expected["all"][0]]
        except Refusal as error:
            refusal = str(error)
        verdict = verdict_of(self.mixes, refusal, outputs, self.tensors, self.base)
        return Result(expected, refusal, outputs, verdict)

    def run_with_choices(self, feeds, alone):
        """Once more where the two may have chosen differently; None where that explains nothing."""
        doubtful = alone.verdict in ("MISMATCH", "weak")
        if not doubtful or alone.refusal or self.mixes or self.tensors["wrong"]:
            return None
        try:
            operands, feeds = give_choices(self.reference, self.small, feeds, self.options.threads)
            again = self.run(feeds, as_file=False) if operands else alone
        except Refusal:
            return None
        return dataclasses.replace(again, choices=operands) if again.verdict == "exact" else None


def run_levels(model, feeds, threads):
    return {level: run_all(model.encode(), level, feeds, threads) for level in LEVELS}


def measured(name, expected, found, base):
    """One output of the reference against the small model's; both by level and probe."""
    output = described(name, expected["disabled"][0])
    if name not in found["disabled"][0]:
        return {**output, "difference": math.inf, "tolerance": base, "noise": 0, "missing": True}
    a = {level: [run[name] for run in runs] for level, runs in expected.items()}
    b = {level: [run[name] for run in runs] for level, runs in found.items()}
    noise = largest(map(difference_of, a["disabled"], a["all"]))["difference"]
    tolerance = max(base, NOISE_MARGIN * noise if math.isfinite(noise) else 0)
    signal = signal_of(a["disabled"])
    of_small = [run for runs in b.values() for run in runs]
    return {
        **output,
        **largest(difference_of(*pair) for level in LEVELS for pair in zip(a[level], b[level])),
        "tolerance": tolerance,
        "noise": noise,
        "signal": signal,
        "degenerate": signal is not None and signal <= tolerance,
        "nan": any(map(has_nan, of_small + a["disabled"] + a["all"])),
        "finite": all(map(is_finite, of_small)),
    }


def largest(differences):
    return max(differences, key=lambda one: one["difference"])


def verdict_of(mixes, refusal, outputs, tensors, base):
    if refusal or tensors["wrong"] or any(one.get("missing") for one in outputs):
        return "MISMATCH"
    if mixes:
        if any(one.get("rank_differs") for one in outputs):
            return "MISMATCH"
        return "mixes" if all(one["finite"] for one in outputs) else "NONFINITE"
    if any(one.get("nan") for one in outputs):
        return "NONFINITE"
    if not all(one["difference"] <= one["tolerance"] for one in outputs):
        return "MISMATCH"
    weak = any(one["difference"] > max(base, WEAK_TOLERANCE) for one in outputs)
    return "weak" if weak else "exact"


def notes(job, plan, pair, result, feeds):
    lines = []
    sha256 = (plan.get("source") or {}).get("sha256")
    if sha256 and hashlib.sha256(pathlib.Path(job.original).read_bytes()).hexdigest() != sha256:
        lines.append("the plan was made for another file (sha256 differs)")
    if result.refusal:
        lines.append(f"the small model does not run: {result.refusal}")
    if result.choices:
        named = ", ".join(f'"{name}"' for name in result.choices)
        lines.append(
            "it chose otherwise in the last bits: where it chooses it was given the original's numbers "
            f"({named}), and its own are compared with them"
        )
    if any(one.get("nan") for one in result.outputs):
        lines.append(whose_nan(job.original, feeds, result.expected, pair.options.threads))
    for output in result.outputs:
        lines += output_notes(output, pair.mixes)
    return lines + pair.tensors["wrong"]


def whose_nan(path, feeds, expected, threads):
    """The inputs', the masking's or the small model's."""

    def any_nan(runs):
        return any(has_nan(output) for run in runs for output in run.values())

    if not any(map(any_nan, expected.values())):
        return "the small model gives NaN where the masked original does not"
    if any_nan(run_all(path, "all", feeds, threads)):
        return "the original itself gives NaN on these inputs: choose others"
    return "the masked original gives NaN, the original does not: a division by what was removed"


def output_notes(output, mixes):
    which = f'output "{output["name"]}"'
    if output.get("missing"):
        yield f"{which} is missing in the small model"
        return
    if "shape_found" in output:
        yield f"{which}: the small model gives shape {output['shape_found']}, the original {output['shape_wanted']}"
    if not mixes and output["tolerance"] > WEAK_TOLERANCE:
        yield f"{which}: the check is weak, the original itself rounds by {output['noise']:.1e}"
    # An index that stays is no wonder in so few probes; the values behind it are measured.
    if output["degenerate"] and "float" in output["type"]:
        how = "hardly depends on the input" if output["signal"] else "is the same for every input"
        yield f"{which} of the masked original {how}: its agreement proves little"
