"""Prunes directories of transformers.

The command plans on the stored weights, and cuts them file by file; no weight passes through this
process before the result is compared with the original. Plans are made until one has a configuration
with which the class builds the small network.
"""

from __future__ import annotations

import copy
import json
import math
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

import torch
from torch import nn

from .command import run_command
from .directories import CONFIG, Pretrained, quiet
from .directory_proof import prove
from .directory_recovery import Recovery
from .directory_report import Report, page_of, write
from .errors import ConfigError, FileError, UnsupportedError, VerificationError
from .keywords import NOT_OF_PYTHON, given, listed, options_of, takes_settings
from .leaving import Choice
from .members import Leaving
from .plan import AttributeChange, Plan, updates_of
from .pretrained import Shapes, name_of, path_of
from .program import load_with
from .progress import Steps
from .request import Answer, Config, Request, config_of, share_of, take_config
from .sentence_modules import SentenceModules
from .tensor_file import write_tensors
from .texts import Texts, read_texts
from .vocabulary import Spec, check_tokenizer, words_leaving

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .settings import Settings

_MOST_ATTEMPTS = 16
_LEAST_SQUARES = "least-squares"
_SURGEON = "obs"
_ANY_SHARE = 0.25
_MOST_SIZES = 12  # that are tried in place of one that the class refuses
# Settings that have their own arguments, or that need data.
OWN = (
    *NOT_OF_PYTHON,
    "states",
    "free",
    "samples",
    "recover",
    "ridge",
    "rounds",
    "recover_epochs",
    "recover_lr",
    "recover_minutes",
    "match",
    "engine",
    "onnxruntime",
    "provider",
    "latency_table",
    "batch",
    "latency_command",
    "latency_runs",
    "latency_timeout",
    "latency_retries",
    "rescale",
    "constants",
)


@takes_settings(*OWN)
def prune_pretrained(
    directory: Union[str, Path],
    output: Union[str, Path],
    *,
    keys: Optional[Mapping[str, Any]] = None,
    layers: Union[int, str, None] = None,
    experts: Union[float, str, None] = None,
    keep_tokens: Optional[Spec] = None,
    config_list: Optional[Config] = None,
    recover: Optional[str] = None,
    calibration: Optional[str] = None,
    samples: int = 256,
    ridge: Optional[float] = None,
    device: str = "cpu",
    verify: bool = True,
    report: Union[str, Path, None] = None,
    html: Union[str, Path, None] = None,
    progress: Optional[bool] = None,
    **settings: "Unpack[Settings]",
) -> Plan:
    """Prunes a directory that `from_pretrained` loads into another one that it loads.

        plan = parsimony.prune_pretrained("stories260K", "small", ratio=0.25)
        model = transformers.AutoModelForCausalLM.from_pretrained("small")

    Weights keep their names, files and element types; the configuration gets the sizes with which the
    class builds the small network, and every other file is copied. What no configuration can express
    is not pruned, and a note says so. Heads are removed whole, unless `granularity` says otherwise.
    Then the small network is loaded and compared with the original whose removed parts are zero.

    Args:
        directory: with `config.json` and weights, as .safetensors or .bin, in one or several files; or
            of sentence-transformers, with `modules.json` that names the folder of these.
        output: a directory that does not exist, or is empty.
        keys: sizes of the configuration and what share of each to remove, as
            {"intermediate_size": 0.25, "num_attention_heads": "50%"}, in nested configurations by
            their path or their last part; other sizes stay.
        layers: how many of the layers to remove, or what share ("25%"): those of least influence on
            the calibration's texts, or on random inputs.
        experts: what share of the experts of each layer to remove: those that contribute least to the
            tokens that are routed to them or, without calibration, of the smallest weights. The same
            is `ratio` with `granularity="expert"`.
        keep_tokens: the words that stay: "text:FILE", those of texts, "ids:FILE" or a list, those of
            these numbers; and special tokens, the pieces that the tokenizer merges and, where it has no
            token for what is unknown, single bytes. `kept_token_ids.json` has the old numbers.
        config_list: as for `prune`.
        recover: "least-squares": fit the layers of the small network, one after the other, to what
            the original computes in their places. Weights of one block are in memory at a time.
        calibration: "text:FILE[,length=N]" for it, tokenised by the directory's tokenizer: texts
            between lines `<|endoftext|>`, or lines of JSON with "text" (.jsonl), also compressed
            (.gz), in samples of at most N tokens (512). The last fifth of the samples, at most 200, is
            only measured on, and `plan.measured` has the results.
        samples: for calibration, from the start of the file.
        ridge: of least squares, relative to the mean square of a layer's inputs; by default for each
            layer the best of 0.0001, 0.001, … 1 on samples that are held out.
        device: where calibration runs: "cpu", "cuda:0".
        verify: compare the networks; that takes the memory of the small one in float32, or of a block where
            there is less.
        report: file for costs, groups, configuration, proof, measurements, notes and times as JSON.
        html: file for a page of the network: which channels were removed, and what could not be.
        progress: as for `prune`.
        {settings}

    Returns:
        The plan. `plan.save` writes it; `parsimony apply DIR --plan` replays its `data`.

    Raises:
        ConfigError: an argument is not valid, or `output` is not empty.
        FileError: a file of the directory is missing or damaged.
        UnsupportedError: the directory's network cannot be pruned like this.
        VerificationError: the small network's outputs differ. In all cases there is no output.
    """
    asked = given(prune_pretrained, settings)
    if asked.get("granularity") == "expert":
        experts = _share_of_experts(asked, experts)
    seed, exclude = int(asked.pop("seed", 0)), listed(asked.pop("exclude", ()))
    shares = {key: share_of(amount, f"keys: {key}") for key, amount in (keys or {}).items()}
    members = layers is not None or experts is not None or keep_tokens is not None
    if config_list is None:
        asked.setdefault("granularity", "head")
        if shares:
            asked.setdefault("ratio", max(shares.values()))
    surgeon = (
        asked.get("criterion", _SURGEON if recover and config_list is None else "") == _SURGEON
    )
    if surgeon:  # whose scores are measured here
        asked.pop("criterion", None)
    widths = config_list is not None or bool({"ratio", "budget"} & asked.keys())
    if members and not widths:
        asked["ratio"] = 0
    request = Request(config_of(config_list, take_config(asked)), excluded=exclude, writes=False)
    request.options += ["--seed", str(seed), *options_of(asked)]
    if recover not in (None, _LEAST_SQUARES):
        raise ConfigError(f"recover: {recover!r}: directories take {_LEAST_SQUARES!r}")
    if (recover is not None or surgeon) and calibration is None:
        what = "criterion" if recover is None else "recover"
        raise ConfigError(f"{what}: needs calibration, such as text:FILE")
    place_of_data = _device(device)
    target = Path(output).resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(
            f"{target}: exists already; the output must be a new or an empty directory"
        )
    with ExitStack() as place:
        place.enter_context(quiet())
        step = place.enter_context(
            Steps(progress, "export", "choose", "plan", "write", "recover", "prove")
        )
        folder = Path(place.enter_context(tempfile.TemporaryDirectory(prefix="parsimony_")))
        step("export")
        modules = SentenceModules(Path(directory))
        network = Pretrained(modules.transformer)
        recovery: Optional[Recovery] = None
        texts: Optional[Texts] = None
        if calibration is not None:
            texts = read_texts(calibration, network.path, samples, network.longest)
            ridges = None if ridge is None else [ridge]
            recovery = Recovery(network, texts, place_of_data, folder, recover is not None, ridges)
        pruning = _Pruning(
            network, modules, request, folder, target, verify, seed, step, shares, recovery
        )
        pruning.measures = surgeon
        ranked = "budget" in request.config or request.config.get("scope", "local") != "local"
        if config_list is None and ranked:
            pruning.find_widths_first()
        page = folder / "page.html"
        request.options += [] if html is None else ["--html", str(page)]
        if not members:
            plan = pruning.run()
        else:
            step("choose")
            choice = Choice(network, texts and texts.calibration, place_of_data)
            choices = _leaving(choice, layers, experts, keep_tokens)
            pruning.notes += choice.notes
            # Without the proof, nothing tells that the class wants equally many of each group.
            plan = pruning.without(choices if verify else choices[-1:], widths)
        step.end()
        if report is not None:
            about = Report(network, plan, pruning.planned, pruning.leaving)
            content = about.of(modules.placed_in(target), folder, seed, calibration, step.seconds)
            write(Path(report), json.dumps(content, indent=2) + "\n")
        if html is not None:
            write(Path(html), page_of(network, page, pruning.file))
        return plan


def _share_of_experts(asked: Dict[str, Any], experts: Union[float, str, None]) -> Any:
    """Takes the share that `granularity="expert"` is for.

    Raises:
        ConfigError: there is none, or there are two.
    """
    del asked["granularity"]
    if experts is not None or "ratio" not in asked:
        raise ConfigError(
            'granularity: "expert" needs the share of experts as ratio, and not as experts too'
        )
    return asked.pop("ratio")


def _leaving(
    choice: Choice,
    layers: Union[int, str, None],
    experts: Union[float, str, None],
    keep_tokens: Optional[Spec],
) -> List[Leaving]:
    """Returns choices of all members that leave."""
    choices = [Leaving()] if experts is None else choice.experts(experts)
    others = Leaving() if layers is None else choice.layers(layers)
    if keep_tokens is not None:
        others = others.joined(words_leaving(choice.network, keep_tokens))
    return [others.joined(one) for one in choices]


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except Exception as error:
        raise ConfigError(f"device: {name!r} cannot be used: {error}") from error
    return device


class _Fault(NamedTuple):
    """Why a plan does not suit: the groups at fault, and what to tell."""

    groups: List[Dict[str, Any]]
    text: str


class _Pruning:
    """One pruning: plans until one has a configuration."""

    def __init__(
        self,
        network: Pretrained,
        modules: SentenceModules,
        request: Request,
        folder: Path,
        target: Path,
        verify: bool,
        seed: int,
        step: Any,
        shares: Mapping[str, float],
        recovery: Optional[Recovery],
    ) -> None:
        self.network = network
        self.modules = modules
        self.request = request
        self.folder = folder
        self.target = target
        self.verify = verify
        self.seed = seed
        self.step = step
        self.recovery = recovery
        self.shares = dict(shares)  # by keys that are to be looked for
        self.file = folder / "model.pt2"
        self.notes: List[str] = []
        self.leaving = Leaving()
        self.measures = False  # scores of channels are to be measured
        self.budgeted: Optional[Config] = None  # once it is known which widths are equal
        self.planned: Mapping[str, Any] = {}  # the command's report on the plan that was taken
        self.widths: Dict[str, int] = {}  # how many channels were chosen, by layer

    def find_widths_first(self) -> None:
        """Where groups are ranked together, each may get another width, and a key of the configuration
        gives several the same one: which these are is found with one share for all."""
        self.budgeted = self.request.config
        entries = [{**entry, "sparse_ratio": _ANY_SHARE} for entry in self.budgeted["config_list"]]
        rest = {k: v for k, v in self.budgeted.items() if k not in ("budget", "scope")}
        self.request.config = {**rest, "config_list": entries}

    def without(self, choices: Sequence[Leaving], widths: bool) -> Plan:
        """Removes members as well, by the first choice that the class takes alone; `widths` says
        whether there is anything else."""
        self.leaving = choices[0] if len(choices) == 1 else self._first_taken(choices)
        return self.run() if widths else self._written(*self._of_members_alone())

    def _first_taken(self, choices: Sequence[Leaving]) -> Leaving:
        faults: List[VerificationError] = []
        for self.leaving in choices:
            plan = self._prepared(*self._of_members_alone())
            try:
                with self._place() as folder:
                    self._apply(plan, Path(folder) / "small")
                    self._prove(plan, Path(folder) / "small")
                return self.leaving
            except VerificationError as error:
                faults.append(error)
        raise faults[0]

    def _of_members_alone(self) -> Tuple[Answer, List[AttributeChange]]:
        """Returns an empty plan, and the changes of the configuration without the members."""
        empty = ("groups", "integers", "copies", "zeros", "updates", "unpruned_dims")
        source = {"format": "torch.export"}
        data: Dict[str, Any] = {"parsimony_plan": 2, "source": source, **{key: [] for key in empty}}
        answer = Answer(Plan(data), {"groups": []}, self.file)
        ((changes, wrong),) = self._solutions(self._expected(answer), [])
        if wrong:
            raise UnsupportedError(f"no key of {CONFIG} gives the sizes of {sorted(wrong)[0]!r}")
        return answer, changes

    def run(self) -> Plan:
        self.network.save(self.file)
        refused: List[str] = []
        for _ in range(_MOST_ATTEMPTS):
            self.step("plan")
            answer = self.request.run(self.file, self.folder)
            solved = self._solve(answer)
            if solved is None:
                continue
            if self.shares:
                self._choose(answer, solved[0])
                continue
            if self.budgeted is not None:
                self._tie_widths(answer, solved[0])
                continue
            if self.measures:
                self._measure(answer)
                continue
            if answer.plan.empty:
                said = [*self.notes, *answer.plan.notes, *refused]
                raise UnsupportedError("\n".join(["nothing was pruned", *said]))
            fault: Optional[VerificationError] = None
            for changes in solved:
                try:
                    return self._written(copy.deepcopy(answer), changes)
                except VerificationError as error:
                    fault = fault or error
            refused.append(str(fault))
            if not self._without_one_key(answer, solved[0], str(fault)):
                raise fault or UnsupportedError("no plan")
        raise UnsupportedError(
            "\n".join(["no plan suits the configuration", *self.notes, *refused])
        )

    def _expected(self, answer: Answer, counts: Mapping[str, int] = {}) -> Shapes:
        """Returns the shapes of the small network's tensors.

        Args:
            counts: channels that groups keep in place of what the plan says, by id.
        """
        shapes = {name: list(shape) for name, shape in self.network.shapes.items()}
        for group in answer.plan.groups:
            kept = counts.get(group["id"], group["kept"])
            done = set()
            for name, axes in answer.plan.cuts([group]).items():
                tied = self.network.tied[name]
                for axis, cut in axes.items():
                    if (tied[0], axis) in done:  # each of the names of a tensor is cut in the plan
                        continue
                    done.add((tied[0], axis))
                    removed = cut.size - len(cut.keep)
                    removed = removed * (group["size"] - kept) // (group["size"] - group["kept"])
                    for other in tied:
                        if other in shapes:
                            shapes[other][axis] -= removed
        return self.leaving.shapes_after({name: tuple(shape) for name, shape in shapes.items()})

    def _solve(self, answer: Answer) -> Optional[List[List[AttributeChange]]]:
        """Returns choices of changes of the configuration for a plan; None if it asks for another
        plan."""
        self._leave_out(answer.plan)
        unstored = self._unstored(answer)
        if unstored.groups:
            self._spare(answer, unstored)
            return None
        expected = self._expected(answer)
        solutions = self._solutions(expected, answer.plan.groups)
        whole = [group for group in answer.plan.groups if _of_heads(group)]
        asked = not self.shares or any(key.endswith(("head", "heads")) for key in self.shares)
        if asked and len(solutions) > 1 and solutions[0][1] and self._resize(answer, whole):
            return None
        found = [changes for changes, wrong in solutions if not wrong]
        if found:
            return None if self._spare_embeddings(answer, found[0]) else found
        changes, wrong = min(solutions, key=lambda solution: len(solution[1]))
        for change in changes:  # a key may stand for more than the plan cuts
            if self._cuts_more(expected, changes) - self._cuts_more(
                expected, [one for one in changes if one is not change]
            ):
                groups = self._groups_of(answer, changes, change)
                key = path_of(change)
                more = sorted(self._cuts_more(expected, changes))[0][0]
                self._spare(answer, _Fault(groups, f"{key} is a size of {more}, too, which stays"))
                return None
        shapes = self.network.configured.shapes_with(changes)
        guilty = [
            group
            for group in answer.plan.groups
            if shapes is None or self._cut_otherwise(answer, group, shapes)
        ]
        if not self._resize(answer, guilty):
            text = f"no key of {CONFIG} changes the sizes of {sorted(wrong)[0]!r} alone"
            self._spare(answer, _Fault(guilty or list(answer.plan.groups), text))
        return None

    def _spare_embeddings(self, answer: Answer, changes: Sequence[AttributeChange]) -> bool:
        """Excludes the groups behind the size of embeddings, if a module that reads them has weights."""
        width = self.network.width([])
        if self.modules.fixed is None or self.network.width(changes) == width:
            return False
        for change in changes:
            if self.network.width([one for one in changes if one is not change]) == width:
                groups = self._groups_of(answer, changes, change)
                text = f"{self.modules.fixed} has weights for embeddings of this size"
                self._spare(answer, _Fault(groups, text))
        return True

    def _leave_out(self, plan: Plan) -> None:
        """Drops what a plan cuts in tensors that leave."""
        for group in plan.groups:
            group["slices"] = [
                part
                for part in group["slices"]
                if self.leaving.new_name(part["tensor"]) is not None
            ]
        plan.data["groups"] = [group for group in plan.groups if group["slices"]]

    def _solutions(
        self, expected: Shapes, groups: Sequence[Mapping[str, Any]]
    ) -> List[Tuple[List[AttributeChange], Set[str]]]:
        """Returns changes and the names of the tensors whose shapes they do not give: with other
        numbers of heads, which need not show in a shape, if heads were removed; and without."""
        configured, sizes = self.network.configured, _sizes(groups)
        of_heads = list(filter(_of_heads, groups))
        places = {self.network.place_of(part) for group in of_heads for part in group["slices"]}
        units = {group["size"] for group in of_heads}
        heads: Dict[str, AttributeChange] = {}  # one for each key, of what is a group's own number
        for change in configured.candidates(_sizes(of_heads)):
            named = name_of(change).endswith(("head", "heads")) and change.before is not None
            if named and path_of(change).rpartition(".")[0] in places:
                if change.attribute not in heads or change.before in units:
                    heads[change.attribute] = change
        given = self.leaving.changes
        choices = [[*given, *heads.values()], given] if heads else [given]
        return [configured.solve(expected, sizes, given=choice) for choice in choices]

    def _cuts_more(
        self, expected: Shapes, changes: Sequence[AttributeChange]
    ) -> Set[Tuple[str, int]]:
        """Returns the axes of tensors that are smaller than expected with these changes."""
        configured = self.network.configured
        shapes = configured.shapes_with(changes) or {}
        return {
            (name, axis)
            for name, shape in expected.items()
            for axis, (size, now) in enumerate(zip(shape, shapes.get(name, ())))
            if now < size
        }

    def _unstored(self, answer: Answer) -> _Fault:
        """Returns the groups that cut what the directory does not store: the class computes it."""
        stored = self.network.names
        lost = {
            part["tensor"]
            for group in answer.plan.groups
            for part in group["slices"]
            if part["tensor"] not in stored
        }
        groups = [
            group
            for group in answer.plan.groups
            if lost & {part["tensor"] for part in group["slices"]}
        ]
        return _Fault(
            groups, f"{', '.join(sorted(lost)[:1])} is not stored, but computed by the class"
        )

    def _resize(self, answer: Answer, guilty: Sequence[Dict[str, Any]]) -> bool:
        """Asks for the nearest number of channels that the class takes; False if there is none."""
        for size, kept in sorted({(group["size"], group["kept"]) for group in guilty}):
            groups = [group for group in guilty if (group["size"], group["kept"]) == (size, kept)]
            others = sorted(
                (count for count in range(1, size) if count != kept),
                key=lambda count: (abs(count - kept), -count),
            )
            for count in others[:_MOST_SIZES]:
                counts = {group["id"]: count for group in groups}
                resized = [
                    {**group, "kept": counts.get(group["id"], group["kept"])}
                    for group in answer.plan.groups
                ]
                _, wrong = self._solutions(self._expected(answer, counts), resized)[0]
                touched = {
                    self.leaving.new_name(name)
                    for group in groups
                    for part in group["slices"]
                    for name in self.network.tied[part["tensor"]]
                }
                if wrong & touched:
                    continue
                layers = sorted({layer for group in groups for layer in answer.layers_of(group)})
                if not layers or any(layer in self.widths for layer in layers):
                    return False
                self.widths.update((layer, count) for layer in layers)
                ratio = (size - count) / size
                fixed: Dict[str, Any] = {"sparse_ratio": ratio + 1e-9}
                if "budget" in self.request.config:
                    fixed = {"min_sparse_ratio": ratio, "max_sparse_ratio": ratio}
                self.request.config["config_list"].append({"op_names": layers, **fixed})
                others = f" and {len(layers) - 1} other layers" if len(layers) > 1 else ""
                self.notes.append(
                    f"{self.network.kind.__name__} does not take {kept} of {size}: {count} are kept "
                    f"in {layers[0]}{others}"
                )
                return True
        return False

    def _spare(self, answer: Answer, fault: _Fault) -> None:
        """Excludes the layers of the groups at fault."""
        names = {layer for group in fault.groups for layer in answer.layers_of(group)}
        new = sorted(names - set(self.request.excluded))
        if not new:
            raise UnsupportedError(f"{self.network.path}: {fault.text}")
        self.request.excluded += new
        self.notes.append(f"not pruned: {', '.join(new)}: {fault.text}")

    def _choose(self, answer: Answer, changes: Sequence[AttributeChange]) -> None:
        """Asks for the shares of the groups behind the keys, and leaves all others.

        Raises:
            ConfigError: no group hangs on a key.
        """
        ratios: Dict[str, float] = {}  # by layer
        sizes = [one for one in changes if one not in self.leaving.changes]
        for key, share in self.shares.items():
            name = getattr(self.network.config, "attribute_map", {}).get(key, key)
            of_key = [one for one in sizes if name in (path_of(one), name_of(one))]
            groups = [group for c in of_key for group in self._groups_of(answer, changes, c)]
            groups = groups or self._groups_of_key_alone(answer, name)
            if not groups:
                known = ", ".join(dict.fromkeys(map(path_of, sizes))) or "none"
                said = f"keys: {key!r}: no size that can change; those are: {known}"
                raise ConfigError("\n".join([said, *self.notes]))
            for group in groups:
                ratios.update((layer, share) for layer in answer.layers_of(group))
        layers = {layer for group in answer.plan.groups for layer in answer.layers_of(group)}
        self.request.excluded += sorted(layers - ratios.keys())
        for share in sorted(set(ratios.values())):
            names = sorted(layer for layer, ratio in ratios.items() if ratio == share)
            self.request.config["config_list"].append({"op_names": names, "sparse_ratio": share})
        self.shares = {}

    def _tie_widths(self, answer: Answer, changes: Sequence[AttributeChange]) -> None:
        """Asks for what was asked for, with one width for all groups of one size behind a key."""
        assert isinstance(self.budgeted, dict)
        self.request.config, self.budgeted = self.budgeted, None
        entries = self.request.config["config_list"]
        whole = {"params": answer.plan.parameters[0], "macs": answer.plan.macs[0]}
        budget = self.request.config.get("budget")
        if isinstance(budget, dict):  # an amount is what all entries have together
            for kind, most in budget.items():
                if kind in whole and str(most).endswith("%"):
                    budget[kind] = int(share_of(most) * whole[kind])
        base = {key: value for key, value in entries[0].items() if key != "op_types"}
        for change in changes:
            if change in self.leaving.changes:
                continue
            layers: Dict[int, Set[str]] = {}  # by the size of their group
            for group in self._groups_of(answer, changes, change):
                layers.setdefault(group["size"], set()).update(answer.layers_of(group))
            for size, names in layers.items():
                tied = {"op_names": sorted(names), "equal_width_id": f"{path_of(change)} {size}"}
                entries.append({**base, **tied})

    def _measure(self, answer: Answer) -> None:
        """Asks for other channels, those of least loss after a fit, where that is known."""
        self.measures = False
        assert self.recovery is not None
        self.step("choose")
        scores = self.recovery.scores(answer.plan.groups)
        if scores:
            write_tensors(self.folder / "scores.safetensors", scores)
            self.request.options += ["--scores", str(self.folder / "scores.safetensors")]

    def _groups_of_key_alone(self, answer: Answer, name: str) -> List[Dict[str, Any]]:
        """Returns the groups that one key would give their sizes, although others explain them."""
        configured, expected = self.network.configured, self._expected(answer)
        for change in configured.candidates(_sizes(answer.plan.groups)):
            changes = [*self.leaving.changes, change]
            shapes = configured.shapes_with(changes) if path_of(change) == name else None
            groups = [
                group
                for group in answer.plan.groups
                if shapes is not None and not self._cut_otherwise(answer, group, shapes)
            ]
            if groups:
                return groups
        return []

    def _groups_of(
        self, answer: Answer, changes: Sequence[AttributeChange], change: AttributeChange
    ) -> List[Dict[str, Any]]:
        """Returns the groups whose sizes hang on one changed key of the configuration."""
        configured, expected = self.network.configured, self._expected(answer)
        of_size = [
            group
            for group in answer.plan.groups
            for sizes in [_sizes([group])]
            if change.after in sizes.get(change.before, ())
            or (change.before is None and any(change.after in after for after in sizes.values()))
        ]
        shapes = configured.shapes_with([c for c in changes if c is not change])
        if shapes is None or shapes == expected:  # it is not taken alone, or no shape shows it
            return of_size
        return [group for group in of_size if self._cut_otherwise(answer, group, shapes)]

    def _cut_otherwise(self, answer: Answer, group: Dict[str, Any], shapes: Shapes) -> bool:
        """Returns whether a group cuts an axis of a tensor that has another size in `shapes`."""
        expected = self._expected(answer)
        return any(
            name in expected and expected[name][axis] != shapes.get(name, expected[name])[axis]
            for tensor, axes in answer.plan.cuts([group]).items()
            for name in map(self.leaving.new_name, self.network.tied[tensor])
            for axis in axes
        )

    def _without_one_key(
        self, answer: Answer, changes: Sequence[AttributeChange], fault: str
    ) -> bool:
        """Excludes the groups behind one key: from its size the class computes more than shapes. Keys
        that change numbers of the program come first."""
        numbers = self.network.numbers([])
        for change in sorted(
            changes, key=lambda one: self.network.numbers([one]) in (None, numbers)
        ):
            groups = self._groups_of(answer, changes, change)
            left = {layer for group in groups for layer in answer.layers_of(group)}
            if left - set(self.request.excluded):
                key = path_of(change)
                runs = "does not run" not in fault
                text = f"with another {key} {'the class computes otherwise' if runs else fault}"
                self._spare(answer, _Fault(groups, text))
                return True
        return False

    def _prepared(self, answer: Answer, changes: Sequence[AttributeChange]) -> Plan:
        """Returns the plan of the directory, by the names there."""
        plan = answer.plan
        plan.attributes = list(changes)
        plan.data["source"].pop("sha256", None)
        files: Dict[str, Optional[str]] = {CONFIG: self.network.new_text(changes)}
        files.update(self.leaving.files)
        if not self.modules.nested:
            files.update(self._texts_of_modules(changes))
        plan.data["files"] = [
            {"name": name, **({} if text is None else {"text": text})}
            for name, text in files.items()
        ]
        names, tied = self.network.names, self.network.tied
        plan.data["groups"] += self.leaving.groups()
        plan.data["renamings"] = self._renamings()
        for group in plan.groups:
            slices: List[Dict[str, Any]] = []  # tied tensors are one in the directory, or as many
            for part in group["slices"]:
                for name in tied[part["tensor"]]:
                    renamed = {**part, "tensor": names.get(name)}
                    if name in names and renamed not in slices:
                        slices.append(renamed)
            group["slices"] = slices
        plan.data.update(copies=[], integers=[], followed=[])  # of the program alone
        return plan

    def _texts_of_modules(self, changes: Sequence[AttributeChange]) -> Dict[str, str]:
        before, after = self.network.width([]), self.network.width(changes)
        return {} if before == after else self.modules.texts(before, after)

    def _place(self) -> "tempfile.TemporaryDirectory[str]":
        """Returns a folder beside the output."""
        try:
            return tempfile.TemporaryDirectory(prefix=".parsimony_", dir=self.target.parent)
        except OSError as error:
            raise FileError(f"{self.target}: cannot be written: {error.strerror}") from error

    def _written(self, answer: Answer, changes: Sequence[AttributeChange]) -> Plan:
        plan = self._prepared(answer, changes)
        self.step("write")
        with self._place() as folder:
            small = Path(folder) / "small"
            self._apply(plan, small)
            if self.leaving.texts:
                check_tokenizer(self.network, small, self.leaving)
            self._prove(plan, small)
            if self.recovery is not None:
                self.step("recover")
                self._recover(plan, small)
                if plan.values:
                    self._prove(plan, small)
            if self.target.exists():
                self.target.rmdir()
            self.modules.around(small, self._texts_of_modules(changes)).rename(self.target)
        shapes = self.network.configured.shapes_with(changes) or {}
        before = self.network.shapes
        new_names = {name: self.leaving.new_name(name) for name in before}
        plan.shapes = {
            name: (before[name], shapes[now])
            for name, now in new_names.items()
            if now in shapes and before[name] != shapes[now]
        }
        if self.leaving.kept:
            self._count(plan, {self.network.names[name]: new_names[name] for name in before})
        plan.notes += self.notes
        self.planned = answer.report
        return plan

    def _renamings(self) -> List[Dict[str, str]]:
        """Returns the entries of a plan for stored tensors that leave or are called otherwise.

        Raises:
            UnsupportedError: it is not known how a tensor is stored then.
        """
        found: Dict[str, Dict[str, str]] = {}
        for name, stored in self.network.names.items():
            now = self.leaving.new_name(name)
            if now is None:
                found[stored] = {"tensor": stored}
            elif now != name:
                found[stored] = {
                    "tensor": stored,
                    "name": self.network.renumbered(stored, name, now),
                }
        return list(found.values())

    def _count(self, plan: Plan, new_names: Mapping[str, Optional[str]]) -> None:
        """Sets the parameters of a plan, of what is stored."""
        cuts, before, after = plan.cuts(), 0, 0
        for name, tensor in self.network.stored.items():
            before += math.prod(tensor.shape)
            if new_names.get(name, name) is not None:
                kept = {axis: len(cut.keep) for axis, cut in cuts.get(name, {}).items()}
                after += math.prod(kept.get(i, size) for i, size in enumerate(tensor.shape))
        plan.parameters, plan.macs = (before, after), (0, 0)

    def _apply(self, plan: Plan, small: Path) -> None:
        file = self.folder / "replayed.json"
        plan.save_data(file)
        run_command(["apply", self.network.path, "--plan", file, "-o", small, "-q"])

    def _prove(self, plan: Plan, small: Path) -> None:
        if self.verify:
            self.step("prove")
            prove(self.network, plan, small, self.seed, self._verified, self.leaving)

    def _recover(self, plan: Plan, small: Path) -> None:
        """Writes the small directory again, with weights that are fitted to texts."""
        assert self.recovery is not None
        words = self.leaving.words
        plan.values, plan.measured = self.recovery.run(Pretrained(small), plan, words)
        plan.data["updates"] = updates_of(plan.values, _LEAST_SQUARES)
        if plan.values:
            shutil.rmtree(small)
            self._apply(plan, small)
        elif self.recovery.fits:
            compared = math.isfinite(plan.measured.cut)
            why = "no better than the cut" if compared else "not compared"
            self.notes.append(f"{_LEAST_SQUARES}: {why}, so it is not written")

    def _verified(self) -> nn.Module:
        """Returns the small network that the command makes of the program, and verifies."""
        small, plan = self.folder / "small.pt2", self.folder / "plan.json"
        run_command(["apply", self.file, "-o", small, "--plan", plan, "-q"])
        run_command(["verify", self.file, small, "--plan", plan, "--threads", 1])
        return load_with(small, {}, torch.device("cpu"))  # it was exported on the device meta


def _of_heads(group: Mapping[str, Any]) -> bool:
    """Returns whether each channel of a group is several of a tensor."""
    return any(part["size"] > group["size"] for part in group["slices"])


def _sizes(groups: Sequence[Mapping[str, Any]]) -> Dict[int, List[int]]:
    """Returns what numbers of the configuration may become, by groups: those of channels, of their
    parts, such as the sizes of heads, and what they are multiplied by."""
    found: Dict[int, List[int]] = {}
    for group in groups:
        size, kept = group["size"], group["kept"]
        widest = max((part["size"] for part in group["slices"]), default=size)
        for number in range(size, widest + 1, size):
            if widest % number == 0 or number == size:
                after = number // size * kept
                known = found.setdefault(number, [])
                if after not in known:
                    known.append(after)
    return found
