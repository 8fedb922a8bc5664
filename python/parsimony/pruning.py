"""Prunes a live module: export, plan, cut, prove; all or nothing."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import torch
from torch import Tensor, nn

from . import scores as scoring
from .command import run_command
from .editing import Journal, named_tensors
from .engine import Engine, Samples
from .errors import ConfigError, Error, UnsupportedError, VerificationError
from .keywords import NOT_OF_PYTHON, given, listed, options_of, takes_settings
from .layers import Refusal
from .matching import Matching, Settings as MatchSettings
from .plan import AttributeChange, Plan
from .pretrained import built_like, changed_config, has_config
from .progress import Steps
from .proof import NormsOverKept, compare, outputs_of
from .queries import Kept, kept_scales, queries_of
from .replay import Masked, assign_values, beside_cuts, replay, set_attributes
from .request import Answer, Config, Request, config_of, take_config
from .sizes import SizeChange, attribute_choices, changed_sizes
from .tensor_file import write_tensors
from .inputs import Inputs, evaluating
from .program import Numbers, Program, load_with

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .settings import Settings

_MOST_ATTEMPTS = 16
_PER_SAMPLE = {"fisher", "obd"}  # the command runs samples one by one
_OF_SIZES = re.compile(r"size|dim|width|channels|features|head|hidden|embed|planes|units|^d_|n_")
_SCALES_FOLLOW = "scales that forward computes from sizes (1/sqrt(d)) follow the new sizes"
_REFERENCES = {
    "masked": "the masked original",
    "masks": "the original with the masked weights set to zero",
    "small": "the command's small network, which it verified",
}


@takes_settings(*NOT_OF_PYTHON)
def prune(
    model: nn.Module,
    example_inputs: Any,
    *,
    config_list: Optional[Config] = None,
    masks: Optional[Mapping[str, Tensor]] = None,
    scores: Optional[Mapping[str, Tensor]] = None,
    data: Optional[Iterable[Any]] = None,
    loss: Optional[scoring.Loss] = None,
    progress: Optional[bool] = None,
    **settings: "Unpack[Settings]",
) -> Plan:
    """Makes a module smaller in place by removing channels, and verifies the result.

    The module is exported by torch.export in evaluation mode, the command `parsimony` plans the cut,
    and the parameters, buffers and sizes of the module are changed. Then the small module is compared with the original
    whose removed channels are zero. Parameters remain the same objects: hooks, ties and optimizers stay
    valid; `carry_over` cuts an optimizer's states.

        plan = parsimony.prune(model, torch.rand(1, 3, 224, 224), ratio=0.5)
        parsimony.carry_over(optimizer, plan)

    Args:
        example_inputs: a tensor, a tuple of positional arguments, or a dictionary of named ones, on
            the module's device. Sizes other than the batch size should be typical.
        config_list: what to prune, and how much: a list of entries like NNI's, an object, or the path of
            a JSON file (docs/guide/config.md).
        masks: instead of a ratio: tensors with weights' names and shapes, 0 for removed elements.
        scores: of output channels, by weight, `[out_channels]`, or of elements; low ones are removed first.
        data: an iterable of batches for criteria and recovery that need data: tensors, (inputs, labels)
            or dictionaries. They run in torch on the module's device, unless `engine` is given.
        loss: with `data` and the criterion "taylor", "taylor_squared", "fisher" or "obd": maps the
            module's outputs and the labels to a scalar. Without it, criteria use cross-entropy.
            `scores` cannot be combined with `recover`.
        progress: show a progress bar; by default in terminals and notebooks, with tqdm.
        {settings}

    Returns:
        The plan, which can be shown, saved, and applied to a new network by `apply`.

    Raises:
        ConfigError: an argument is not valid, or does not fit the network.
        UnsupportedError: the network cannot be pruned like this.
        VerificationError: the small module's outputs differ from those of the reference.
        Error: any other failure. In all cases the module is unchanged.
    """
    asked = given(prune, settings)
    samples, seed = asked.pop("samples", 256), asked.pop("seed", 0)
    rescale, exclude = asked.pop("rescale", False), listed(asked.pop("exclude", ()))
    if masks is not None:
        if scores is not None or config_list is not None or {"ratio", "budget"} & asked.keys():
            raise ConfigError(
                "masks= cannot be combined with ratio=, budget=, scores= or config_list="
            )
        config: Dict[str, Any] = {"config_list": []}
        take_config(asked)
    else:
        if scores is not None:
            asked["criterion"] = "l1"
        config = config_of(config_list, take_config(asked))
        # The command gets the scores in place of the weights: it cannot fit anything to them.
        if scores is not None and ("recover" in asked or "recover" in config):
            raise ConfigError("recover= cannot be combined with scores=")
    in_torch = data is not None and (loss is not None or "engine" not in asked)
    to_match = MatchSettings.take(asked, config) if in_torch else None
    request = Request(config, excluded=exclude, rescale=rescale)
    request.options += ["--seed", str(seed)] if masks is None else []
    request.options += options_of(asked)

    with Steps(progress, "export", "plan", "cut", "prove", "match") as step, ExitStack() as place:
        module = bare(model)
        folder = Path(place.enter_context(_folder(module)))
        step("export")
        used = _criteria(config)
        inputs = Inputs.of(example_inputs)
        if data is not None and used & _PER_SAMPLE:
            inputs = inputs.first()
        if data is None and masks is None:
            request.start(folder / "model.pt2", folder)
            place.callback(request.stop)
        program = Program(module, inputs)
        stand_ins: Dict[str, Tensor] = {}
        if loss is not None and (data is None or not used & scoring.GRADIENT_CRITERIA):
            known = ", ".join(sorted(scoring.GRADIENT_CRITERIA))
            raise ConfigError(f"loss= needs data= and one of the criteria {known}")
        matching: Optional[Matching] = None
        if data is not None and in_torch:
            request.engine = Engine(program, Samples(program, data, samples), loss)
            if to_match is not None:
                matching = Matching(program, request.engine.samples, to_match)
        elif data is not None:
            spec = scoring.calibration(data, samples, folder, program.names)
            request.options += ["--calibration", str(spec), "--samples", str(samples)]
        if scores is not None:
            stand_ins = scoring.of_scores(program, scores)
        elif masks is not None:
            request.masks = folder / "masks.safetensors"
            write_tensors(request.masks, {name: (mask != 0).byte() for name, mask in masks.items()})
        elif (
            data is None
            and len(request.options) == 2
            and used <= {"l1", "l2", "linf"}
            and len(used) <= 1
        ):
            stand_ins = scoring.of_weights(program, next(iter(used), "l1"))
        return _Pruning(program, request, stand_ins, folder, seed, step, matching).run()


def bare(model: nn.Module) -> nn.Module:
    """Returns the module inside DataParallel, DistributedDataParallel or torch.compile's wrapper."""
    if isinstance(model, torch.jit.ScriptModule):
        raise UnsupportedError(
            "a ScriptModule cannot be pruned in place: save it, and prune the file"
        )
    if not isinstance(model, nn.Module):
        kind = type(model).__name__
        raise ConfigError(f"expected a module, found {kind}: load weights into their module first")
    parallel = (nn.DataParallel, nn.parallel.DistributedDataParallel)
    inner = model.module if isinstance(model, parallel) else getattr(model, "_orig_mod", model)
    return inner if inner is model else bare(inner)


def _folder(model: nn.Module) -> "tempfile.TemporaryDirectory[str]":
    """Returns a temporary folder, in memory if there is room for the weights."""
    size = sum(tensor.numel() * tensor.element_size() for tensor in model.parameters())
    memory = Path("/dev/shm")
    room = memory.is_dir() and shutil.disk_usage(memory).free > 4 * size
    return tempfile.TemporaryDirectory(prefix="parsimony_", dir=memory if room else None)


def _criteria(config: Any) -> "set[str]":
    """Returns all criteria that a config names."""
    if isinstance(config, Mapping):
        own = {config["criterion"]} if isinstance(config.get("criterion"), str) else set()
        return own.union(*map(_criteria, config.values()))
    if isinstance(config, list):
        return set().union(*map(_criteria, config))
    return set()


class _Fault(NamedTuple):
    """Why a plan does not fit the module. `tensors` are those that cannot be pruned like this."""

    text: str
    tensors: Sequence[str] = ()
    ran: bool = False


class _Pruning:
    """One pruning. Plans that do not fit the module are replaced by others that exclude what cannot
    be cut; if there are none, the fault is raised."""

    def __init__(
        self,
        program: Program,
        request: Request,
        stand_ins: Dict[str, Tensor],
        folder: Path,
        seed: int,
        step: Any,
        matching: Optional[Matching] = None,
    ) -> None:
        self.program = program
        self.matching = matching
        self.module = program.module
        self.request = request
        self.folder = folder
        self.step = step
        self.stand_ins = stand_ins
        self.file = folder / "model.pt2"
        self.full = self.file if not stand_ins else folder / "full.pt2"
        self.inputs = [program.inputs]
        if not program.inputs.vary:
            self.inputs.append(program.inputs.random(seed))
        self.against = "masks" if request.masks else "masked"
        self.queries = queries_of(program)
        self.notes: List[str] = []
        self.changes: List[SizeChange] = []
        self.numbers: Optional[Numbers] = None
        self.of_tensors = False  # whether `numbers` follow from the tensors' sizes alone

    def run(self) -> Plan:
        self.program.save(self.file, self.stand_ins)
        self._check_random_inputs()
        fault = _Fault("no plan fits the module")
        for _ in range(_MOST_ATTEMPTS):
            self.step("plan")
            answer = self.request.run(self.file, self.folder)
            if answer.plan.data.get("blocks"):
                raise UnsupportedError(
                    "blocks, and experts with layers of their own, cannot be removed from a live module; "
                    "prune the .pt2 file that torch.export writes of it"
                )
            if answer.plan.data.get("constants") == "exact":
                self.against = "masks"
            journal = Journal()
            try:
                found = self._cut_and_prove(answer, journal)
                if found is None:
                    return self._finished(answer, journal)
                fault = found
            except BaseException:
                journal.undo()
                raise
            journal.undo()
            if not self._adapt(answer, fault):
                raise self._error(fault)
        raise self._error(fault)

    def _check_random_inputs(self) -> None:
        """Drops random inputs if they are integers that the module does not accept."""
        try:
            with evaluating(self.module, self.program.training):
                if len(self.inputs) > 1 and any(
                    not tensor.is_floating_point() for tensor in self.inputs[1].tensors()
                ):
                    self.inputs[1].call(self.module)
        except Exception:
            self.inputs = self.inputs[:1]

    def _cut_and_prove(self, answer: Answer, journal: Journal) -> Optional[_Fault]:
        """Cuts the module; returns None if the proof succeeds."""
        plan = answer.plan
        self.changes = []
        if plan.data.get("scales"):
            self.against = "small"
        if self.against == "masked":
            self.numbers = None  # those of another plan
        try:
            expected = self._expected(answer)
        except Refusal as refusal:
            return _Fault(str(refusal), refusal.tensors)
        self.step("cut")
        fault, attributes = self._trial(plan, None, self._choices(answer), expected, journal)
        plan.attributes = list(attributes)
        return fault

    def _choices(self, answer: Answer) -> Iterator[List[AttributeChange]]:
        """Yields no attributes first, since computed sizes need no change."""
        yield []
        if answer.plan.data["integers"]:
            self.changes = changed_sizes(self.module, self.file, answer.small)
            for choice in attribute_choices(self.module, self.changes, answer.plan.cuts()):
                if choice:
                    yield choice

    def _trial(
        self,
        plan: Plan,
        groups: Optional[Sequence[Dict[str, Any]]],
        choices: Iterable[Sequence[AttributeChange]],
        expected: Sequence[Sequence[Tensor]],
        journal: Journal,
    ) -> Tuple[Optional[_Fault], Sequence[AttributeChange]]:
        """Cuts the module, and compares it with each choice of attributes until one fits.

        Returns the fault, None if one fits, and that choice; the edits stay in `journal`.
        """
        try:
            replay(self.module, plan, journal, groups, values=self.against == "masks")
        except Refusal as refusal:
            return _Fault(str(refusal), refusal.tensors), ()
        faults: List[_Fault] = []
        tensors = named_tensors(self.module)
        # What mixes channels differs from the masked original, and is compared later as a whole.
        mixes = groups is not None and any(group["mixes"] for group in groups)
        for attributes in choices:
            self.step("prove")
            mark = journal.mark()
            set_attributes(self.module, attributes, journal)
            kept = self._keep_scales(plan, journal)
            fault = self._compared(plan, expected)
            if fault is None or (mixes and fault.ran):
                if groups is None:
                    attributes = self._needed(plan, attributes, expected, journal)
                return None, [*attributes, *kept.attributes]
            if fault.ran and self.against == "masked" and groups is None:
                set_attributes(self.module, [one.reversed() for one in kept.attributes], journal)
                self._note_numbers(of_tensors=not attributes)
            for name in kept.factors:
                journal.undo_product(tensors[name])
            journal.undo_attributes(mark)
            faults.append(fault)
        # One that ran says more than that a wrong choice of attributes does not.
        return next((fault for fault in faults if fault.ran), faults[-1]), ()

    def _note_numbers(self, of_tensors: bool) -> None:
        """Notes the numbers that the module computes from its new sizes: those of tensors alone if it
        runs without other attributes, else those of every choice of attributes with which it runs, as a
        wrong one changes others."""
        if self.numbers is None:
            self.numbers = self.program.numbers_of_sizes()
            self.of_tensors = of_tensors
        elif not self.of_tensors:
            self.numbers = dict(self.numbers.items() & self.program.numbers_of_sizes().items())

    def _needed(
        self,
        plan: Plan,
        changes: Sequence[AttributeChange],
        expected: Sequence[Sequence[Tensor]],
        journal: Journal,
    ) -> List[AttributeChange]:
        """Returns the changes without those of attributes that `forward` does not read and that are
        no sizes by their names; these are taken back."""
        needed = list(changes)
        doubtful = dict.fromkeys(c.attribute for c in changes if not _OF_SIZES.search(c.attribute))
        for name in doubtful:
            same = [change for change in needed if change.attribute == name]
            set_attributes(self.module, [one.reversed() for one in same], journal)
            if self._compared(plan, expected) is None:
                needed = [change for change in needed if change.attribute != name]
            else:
                set_attributes(self.module, same, journal)
        if doubtful:
            self._compared(plan, expected)
        return needed

    def _keep_scales(self, plan: Plan, journal: Journal) -> Kept:
        """Compensates that attention divides by the root of the new size: see `Queries`."""
        if not self.queries or plan.data.get("scales"):
            return Kept({}, [])
        try:
            kept = kept_scales(self.program, self.queries, journal, has_config(self.module))
        except Exception:  # the comparison will report the error
            return Kept({}, [])
        tensors = named_tensors(self.module)
        for name, factor in kept.factors.items():
            journal.multiply(tensors[name], factor)
        set_attributes(self.module, kept.attributes, journal)
        return kept

    def _compared(self, plan: Plan, expected: Sequence[Sequence[Tensor]]) -> Optional[_Fault]:
        """Compares the outputs of the current module with those of the reference."""
        try:
            with evaluating(self.module, self.program.training):
                found = outputs_of(self.module, self.inputs)
            if self.program.training:
                with evaluating(self.module):
                    outputs_of(self.module, self.inputs[:1])
        except Exception as error:
            return _Fault(f"the module does not run with its new sizes: {error}")
        result = compare(_REFERENCES[self.against], expected, found)
        if result.fault:
            return _Fault(result.fault, ran=True)
        plan.proof = result.proof
        return None

    def _expected(
        self, answer: Answer, groups: Optional[Sequence[Dict[str, Any]]] = None
    ) -> List[List[Tensor]]:
        """Returns the outputs of the reference."""
        if self.against == "small":
            return self._outputs_of_small(answer)
        with Masked(self.module, answer.plan, groups) as cuts:
            with evaluating(self.module, self.program.training):
                if not any(group["mixes"] for group in groups or answer.plan.groups):
                    return outputs_of(self.module, self.inputs)
                with NormsOverKept(cuts):
                    return outputs_of(self.module, self.inputs)

    def _outputs_of_small(self, answer: Answer) -> List[List[Tensor]]:
        """Returns the outputs of the small network that the command wrote and verified."""
        if not self.full.exists():
            self.program.save(self.full, {})
        plan, small = self.folder / "again.json", self.folder / "again.pt2"
        data = dict(answer.plan.data, source=dict(answer.plan.data["source"]))
        data["source"].pop("sha256", None)
        plan.write_text(json.dumps(data))
        run_command(["apply", self.full, "-o", small, "--plan", plan, "-q"])
        run_command(["verify", self.full, small, "--plan", plan, "--threads", 1])
        network = load_with(small, self.numbers or {})
        with evaluating(self.module, self.program.training):  # further outputs are not the module's
            outputs = outputs_of(self.module, self.inputs[:1])[0]
        own, device = len(outputs), outputs[0].device
        with torch.no_grad():
            return [
                [
                    tensor.to(device)
                    for tensor in outputs_of(network, [Inputs(tuple(one.tensors()), {})])[0][:own]
                ]
                for one in self.inputs
            ]

    def _adapt(self, answer: Answer, fault: _Fault) -> bool:
        """Changes the request for another plan that fits the module; False if there is no way."""
        plan, request = answer.plan, self.request
        if fault.tensors:
            named = set(fault.tensors)
            guilty = [g for g in plan.groups if named & {part["tensor"] for part in g["slices"]}]
            return self._spare(answer, guilty, fault.text)
        if fault.ran and self.numbers and self.against == "masked":
            self.against = "small"
            self.notes.append(_SCALES_FOLLOW)
            return True
        computed = any(not (one.sources or one.scaled) for one in self.queries)
        if not request.masks and not request.rescale and computed:
            request.rescale = True
            self.notes.append(_SCALES_FOLLOW)
            return True
        if fault.ran and plan.mixes and self.against == "masked":
            self.against = "small"
            return True
        if self.against == "masks" or (fault.ran and self.against != "masked"):
            return False
        self.against = "masked"  # in which groups are compared one by one
        return self._spare(answer, self._guilty(answer), fault.text)

    def _spare(self, answer: Answer, groups: Sequence[Dict[str, Any]], why: str) -> bool:
        """Excludes the layers of `groups`."""
        names = {layer for group in groups for layer in answer.layers_of(group)}
        new = sorted(names - set(self.request.excluded))
        if not new or self.request.masks is not None:
            return False
        self.request.excluded += new
        self.notes.append(f"not pruned: {', '.join(new)}: {why.splitlines()[0]}{self._sources()}")
        return True

    def _sources(self) -> str:
        lines = sorted({str(change) for change in self.changes})
        return f" ({'; '.join(lines[:3])})" if lines else ""

    def _guilty(self, answer: Answer) -> List[Dict[str, Any]]:
        """Returns the groups that cannot be pruned, found by bisection."""
        cuts = answer.plan.cuts()
        choices: List[List[AttributeChange]] = [
            [],
            *attribute_choices(self.module, self.changes, cuts),
        ]

        def suits(groups: Sequence[Dict[str, Any]]) -> bool:
            try:
                expected = self._expected(answer, groups)
            except Refusal:
                return False
            journal = Journal()
            try:
                return self._trial(answer.plan, groups, choices, expected, journal)[0] is None
            finally:
                journal.undo()

        def search(groups: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
            if not groups or suits(groups):
                return []
            if len(groups) == 1:
                return groups
            half = len(groups) // 2
            found = search(groups[:half]) + search(groups[half:])
            return found or groups

        return search(list(answer.plan.groups))

    def _outputs(self, module: nn.Module) -> List[List[Tensor]]:
        with evaluating(module):
            return outputs_of(module, self.inputs)

    def _update_config(self, plan: Plan, journal: Journal) -> bool:
        """Makes the model's configuration that of the pruned model; False if none is."""
        changes = changed_config(self.module, plan.cuts(), plan.attributes)
        if changes is None:
            return False
        expected, mark = self._outputs(self.module), journal.mark()
        set_attributes(self.module, changes, journal)
        try:  # forward may read the configuration, and the class compute numbers from it
            models = (self.module, built_like(self.module))
            same = not any(compare("", expected, self._outputs(one)).fault for one in models)
        except Exception:
            same = False
        if not same:
            journal.undo_attributes(mark)
            return False
        plan.attributes += changes
        return True

    def _error(self, fault: _Fault) -> Error:
        text = fault.text + "".join(
            f"\n  {change}" for change in sorted(map(str, self.changes))[:5]
        )
        if fault.ran:
            return VerificationError(text)
        return UnsupportedError(text)

    def _finished(self, answer: Answer, journal: Journal) -> Plan:
        plan = answer.plan
        tensors = named_tensors(self.module)
        for name, cuts in plan.cuts().items():
            after = tuple(tensors[name].shape)
            before = tuple(cuts[i].size if i in cuts else size for i, size in enumerate(after))
            plan.shapes[name] = (before, after)
        for name in plan.values.keys() & tensors.keys():
            plan.values[name] = journal.multiplied(tensors[name], plan.values[name])
        if self.against != "masks":
            assign_values(plan, tensors, journal)
        plan.notes += self.notes
        if has_config(self.module) and plan.shapes and not self._update_config(plan, journal):
            plan.notes.append(
                "the model's config cannot express the new sizes: what save_pretrained writes cannot "
                "be loaded without the plan"
            )
        if plan.proof is None:
            plan.notes.append("no proof: the module is on the device meta and has no values")
        elif plan.proof.scale == 0:
            plan.notes.append("no proof: all outputs are zero, or none is floating-point")
        if self.program.training:
            paths = ", ".join(path or "the module" for path in sorted(self.program.training))
            plan.notes.append(
                f"layers that {paths} skips in evaluation mode were pruned with the others"
            )
        left = sorted({name.rpartition(".")[0] for name in self.program.unused})
        if left:
            plan.notes.append(f"not used by these inputs and not pruned: {', '.join(left)}")
        whole = beside_cuts(self.program.unread, tensors, plan.cuts())
        if whole:
            plan.notes.append(
                f"not pruned with tensors of the same size, since forward does not read "
                f"them: {', '.join(whole)}"
            )
        if self.matching is not None:
            self.step("match")
            self.matching.train(plan, journal)
        return plan.bind(self.module)


def apply(model: nn.Module, plan: Union[Plan, str, Path]) -> nn.Module:
    """Prunes a newly constructed network to the plan's shapes, so that `load_state_dict` works.

        model = parsimony.apply(Net(), "plan.json")
        model.load_state_dict(torch.load("small.pth"))

    Args:
        model: the network as it was before pruning; it is changed in place.
        plan: the result of `prune`, or the path where it was saved.

    Returns:
        The same module.

    Raises:
        ConfigError: the plan is for another network.
        UnsupportedError: the module cannot be pruned like this.
    """
    loaded = plan if isinstance(plan, Plan) else Plan.load(plan)
    journal = Journal()
    try:
        replay(bare(model), loaded, journal)
        set_attributes(bare(model), loaded.attributes, journal)
    except Refusal as refusal:
        journal.undo()
        raise UnsupportedError(str(refusal)) from refusal
    except BaseException:
        journal.undo()
        raise
    return model
