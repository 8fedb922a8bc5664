"""Prunes directories of transformers.

The command cuts the stored weights file by file by the plan that `directory_search` found; no weight passes
through this process before the result is compared with the original.
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
    Optional,
    Sequence,
    Union,
)

import torch
from torch import nn

from .command import run_command
from .directories import CONFIG, Pretrained, quiet
from .directory_proof import prove
from .directory_recovery import Recovery
from .directory_search import Search
from .directory_report import Report, page_of, write
from .errors import ConfigError, FileError, UnsupportedError, VerificationError
from .keywords import NOT_OF_PYTHON, given, listed, options_of, takes_settings
from .leaving import Choice
from .members import Leaving
from .plan import AttributeChange, Plan, updates_of
from .program import load_with
from .progress import Steps
from .request import Answer, Config, Request, config_of, share_of, take_config
from .sentence_modules import SentenceModules
from .texts import Texts, read_texts
from .vocabulary import Spec, check_tokenizer, words_leaving

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .settings import Settings

_LEAST_SQUARES = "least-squares"
_SURGEON = "obs"
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
    for name in ("criterion", "scope"):
        if "," in asked.get(name, ""):
            raise ConfigError(f"{name}: {asked[name]!r}: directories take one {name}")
    if asked.get("granularity") == "expert":
        experts = _share_of_experts(asked, experts)
    seed, exclude = int(asked.pop("seed", 0)), listed(asked.pop("exclude", ()))
    shares = {key: share_of(amount, f"keys: {key}") for key, amount in (keys or {}).items()}
    members = layers is not None or experts is not None or keep_tokens is not None
    given_ratio = "ratio" in asked
    if config_list is None:
        asked.setdefault("granularity", "head")
        if shares:
            asked.setdefault("ratio", max(shares.values()))
            asked.pop("scope", None)  # keys say each width
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
    budget = request.config.get("budget")
    if isinstance(budget, dict) and config_list is None and (shares or given_ratio):
        raise ConfigError("budget: an amount says how much; it goes without ratio and keys")
    for file in (report, html):
        if file is not None and not Path(file).resolve().parent.is_dir():
            raise FileError(f"{file}: its folder does not exist")
    if report is not None and html is not None and Path(report).resolve() == Path(html).resolve():
        raise ConfigError(f"{report}: is the report and the page")
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
        scores = recovery.scores if surgeon and recovery is not None else None
        search = Search(network, modules, request, folder, step, shares, scores)
        ranked = budget is not None or request.config.get("scope", "local") != "local"
        if config_list is None and ranked and not shares:
            search.find_widths_first()
        pruning = _Pruning(search, target, verify, seed, recovery)
        page = folder / "page.html"
        request.options += [] if html is None else ["--html", str(page)]
        if not members:
            plan = pruning.run()
        else:
            step("choose")
            choice = Choice(network, texts and texts.calibration, place_of_data)
            choices = _leaving(choice, layers, experts, keep_tokens)
            search.notes += choice.notes
            # Without the proof, nothing tells that the class wants equally many of each group.
            plan = pruning.without(choices if verify else choices[-1:], widths)
        step.end()
        if report is not None:
            about = Report(network, plan, pruning.planned, search.leaving)
            content = about.of(modules.placed_in(target), folder, seed, calibration, step.seconds)
            write(Path(report), json.dumps(content, indent=2) + "\n")
        if html is not None:
            write(Path(html), page_of(network, page, search.file))
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


class _Pruning:
    """One pruning: of the first plan whose result can be written and proven."""

    def __init__(
        self,
        search: Search,
        target: Path,
        verify: bool,
        seed: int,
        recovery: Optional[Recovery],
    ) -> None:
        self.search, self.network = search, search.network
        self.folder, self.step = search.folder, search.step
        self.modules = search.modules
        self.target = target
        self.verify = verify
        self.seed = seed
        self.recovery = recovery
        self.planned: Mapping[str, Any] = {}  # the command's report on the plan that was taken

    @property
    def leaving(self) -> Leaving:
        return self.search.leaving

    def run(self) -> Plan:
        refused: List[str] = []
        for answer, solved in self.search.plans():
            if answer.plan.empty:
                said = [*self.search.notes, *answer.plan.notes, *refused]
                raise UnsupportedError("\n".join(["nothing was pruned", *said]))
            fault: Optional[VerificationError] = None
            for changes in solved:
                try:
                    return self._written(copy.deepcopy(answer), changes)
                except VerificationError as error:
                    fault = fault or error
            refused.append(str(fault))
            if not self.search.without_one_key(answer, solved[0], str(fault)):
                raise fault or UnsupportedError("no plan")
        raise UnsupportedError(
            "\n".join(["no plan suits the configuration", *self.search.notes, *refused])
        )

    def without(self, choices: Sequence[Leaving], widths: bool) -> Plan:
        """Removes members as well, by the first choice that the class takes alone; `widths` says
        whether there is anything else."""
        self.search.leaving = choices[0] if len(choices) == 1 else self._first_taken(choices)
        return self.run() if widths else self._written(*self.search.of_members_alone())

    def _first_taken(self, choices: Sequence[Leaving]) -> Leaving:
        faults: List[VerificationError] = []
        for self.search.leaving in choices:
            plan = self._prepared(*self.search.of_members_alone())
            try:
                with self._place() as folder:
                    self._apply(plan, Path(folder) / "small")
                    self._prove(plan, Path(folder) / "small")
                return self.leaving
            except VerificationError as error:
                faults.append(error)
        raise faults[0]

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
        plan.notes += self.search.notes
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
            self.search.notes.append(f"{_LEAST_SQUARES}: {why}, so it is not written")

    def _verified(self) -> nn.Module:
        """Returns the small network that the command makes of the program, and verifies."""
        small, plan = self.folder / "small.pt2", self.folder / "plan.json"
        run_command(["apply", self.search.file, "-o", small, "--plan", plan, "-q"])
        run_command(["verify", self.search.file, small, "--plan", plan, "--threads", 1])
        return load_with(small, {}, torch.device("cpu"))  # it was exported on the device meta
