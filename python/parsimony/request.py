"""Requests to the command, and their results."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Union

from .command import StartedCommand, run_command
from .errors import ConfigError, Error
from .keywords import listed
from .plan import Plan

if TYPE_CHECKING:
    from .engine import Engine

Config = Union[str, Path, Sequence[Mapping[str, Any]], Mapping[str, Any]]


# Settings of a configuration that apply to all its entries.
_OF_FILE = ("criterion", "scope", "granularity", "round_to", "force")


def take_config(settings: Dict[str, Any]) -> Dict[str, Any]:
    """Takes the settings that replace a configuration, or are defaults of its entries."""
    names = ("ratio", "budget", "op_types", *_OF_FILE)
    taken = {name: settings.pop(name) for name in names if name in settings}
    if "layers" in settings:  # an amount, too, which stays an option
        taken["layers"] = settings["layers"]
    return taken


def config_of(config_list: Optional[Config], settings: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the config file: an object with `config_list` and the `settings` of take_config().

    Raises:
        ConfigError: the sparsity is specified twice, or not at all.
    """
    if config_list is None:
        if not {"ratio", "budget", "criterion", "layers"} & settings.keys():
            raise ConfigError("no sparsity given; pass ratio=, budget= or config_list=")
        entry: Dict[str, Any] = {"op_types": listed(settings.get("op_types") or ["default"], ",")}
        if "ratio" in settings or "layers" in settings:
            entry["sparse_ratio"] = share_of(settings.get("ratio", 0))
        file: Dict[str, Any] = {"config_list": [entry]}
    else:
        if {"ratio", "op_types"} & settings.keys():
            raise ConfigError("config_list= cannot be combined with ratio= or op_types=")
        if isinstance(config_list, (str, Path)):
            config_list = _read(config_list)
        if isinstance(config_list, Mapping):
            file = {**config_list, "config_list": list(config_list.get("config_list", []))}
        else:
            entries: Any = config_list
            file = {"config_list": [dict(entry) for entry in entries]}
    if "budget" in settings:
        file["budget"] = _budget(settings["budget"])
    file.update((name, settings[name]) for name in _OF_FILE if name in settings)
    if isinstance(file.get("round_to"), str):
        file["round_to"] = _round_to(file["round_to"])
    return file


def share_of(value: Any, what: str = "ratio") -> Any:
    """Returns the number of "0.5" or "50%"; values other than texts are left to the command.

    Raises:
        ConfigError: the text is not a share in [0, 1).
    """
    if not isinstance(value, str):
        return value
    number = value[:-1] if value.endswith("%") else value
    if _is_number(number):
        share = float(number) / (100 if value.endswith("%") else 1)
        if 0 <= share < 1:
            return share
    raise ConfigError(f'{what}: found "{value}", expected a share in [0, 1), as 0.5 or 50%')


def _round_to(text: str) -> Any:
    """ "8" is a multiple; "auto" the one of this processor."""
    return int(text) if text.isdigit() else "generic" if text == "auto" else text


def _read(path: Union[str, Path]) -> Any:
    try:
        return json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from error


def _budget(budget: Any) -> Any:
    """ "macs", {"macs": "50%"} or "macs=50%"."""
    if isinstance(budget, str) and "=" in budget:
        what, _, amount = budget.partition("=")
        return {what: amount if not _is_number(amount) else float(amount)}
    return dict(budget) if isinstance(budget, Mapping) else budget


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def excluding(name: str) -> Dict[str, Any]:
    """Returns an entry that excludes a layer."""
    return {"op_names": [name], "exclude": True}


@dataclass
class Request:
    """One run of `parsimony prune` or `speedup` on a file of torch.export.

    `engine` has the data, if there are any, and runs networks on them. Unless it `writes`, the answer
    is a plan alone.
    """

    config: Dict[str, Any]
    options: List[str] = field(default_factory=list)
    masks: Optional[Path] = None
    rescale: bool = False
    verify: bool = False
    excluded: List[str] = field(default_factory=list)
    engine: "Optional[Engine]" = None
    writes: bool = True
    _started: Optional[StartedCommand] = None

    def start(self, model: Path, folder: Path) -> None:
        """Starts the command before `model` is written, which makes `run` faster."""
        self._started = StartedCommand(self._arguments(model, folder, folder / "small.pt2"))

    def stop(self) -> None:
        """Terminates a started command that was not used."""
        if self._started is not None:
            self._started.stop()
            self._started = None

    def run(self, model: Path, folder: Path, target: Optional[Path] = None) -> "Answer":
        """Runs the command; the small network is written to `target`, or to `folder`.

        Raises:
            Error: the command failed.
        """
        small = target or folder / "small.pt2"
        arguments = self._arguments(model, folder, small)
        config = folder / "config.json"
        config.write_text(json.dumps(self._full_config()))
        try:
            if self._started is not None and self._started.arguments == arguments:
                started, self._started = self._started, None
                started.finish()
            else:
                self.stop()
                self._run(arguments, folder)
        except Error as error:
            raise type(error)(str(error).replace(f"{config}: ", "")) from None
        details = json.loads((folder / "report.json").read_text())
        return Answer(_plan_of(folder / "plan.json", details), details, small)

    def _run(self, arguments: List[Any], folder: Path) -> None:
        """Runs the command, on data that `engine` has or, where that cannot do it, on files of them."""
        if self.engine is None:
            run_command(arguments)
            return
        from .engine import run_on_data  # which needs torch

        _, files = run_on_data(arguments, self.engine, folder)
        if files:
            self.options += files
            self.engine = None

    def _arguments(self, model: Path, folder: Path, small: Path) -> List[Any]:
        plan, report = folder / "plan.json", folder / "report.json"
        arguments: List[Any] = [model, "--plan", plan, "--report", report, "-q"]
        arguments += ["-o", small] if self.writes else []
        arguments += ["--threads", 1]
        if not self.verify:
            arguments.append("--no-verify")
        if self.masks is not None:
            return ["speedup", *arguments, "--masks", self.masks, *self.options]
        if self.rescale:
            arguments.append("--rescale")
        return ["prune", *arguments, "--config", folder / "config.json", *self.options]

    def _full_config(self) -> Dict[str, Any]:
        entries = self.config["config_list"] + [excluding(name) for name in self.excluded]
        return {**self.config, "config_list": entries}


@dataclass
class Answer:
    """The command's output: a plan, a report, and the small network as a file of torch.export."""

    plan: Plan
    report: Dict[str, Any]
    small: Path

    def layers_of(self, group: Mapping[str, Any]) -> List[str]:
        """Returns the names of a group's layers, as in the command's report."""
        for entry in self.report["groups"]:
            if entry["id"] == group["id"]:
                return list(entry["layers"])
        return []


def _plan_of(path: Path, report: Mapping[str, Any]) -> Plan:
    plan = Plan.load(path)
    plan.parameters = (report["params"]["before"], report["params"]["after"])
    plan.macs = (report["macs"]["before"], report["macs"]["after"])
    plan.notes = [str(note) for note in report["notes"]]
    return plan
