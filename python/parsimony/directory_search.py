"""The search for a plan that a directory's configuration can express.

The command plans on the stored weights. What changes in the configuration is solved from the shapes that
remain; what no key gives is left whole, or gets another width, and the plan is made again.
"""

from __future__ import annotations

from pathlib import Path
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

import torch
from torch import Tensor

from .directories import CONFIG, Pretrained
from .errors import ConfigError, UnsupportedError
from .members import Leaving
from .plan import AttributeChange, Plan
from .pretrained import HEADS, Shapes, name_of, path_of, smaller
from .request import Answer, Config, Request, share_of
from .sentence_modules import SentenceModules
from .tensor_file import write_tensors

_MOST_ATTEMPTS = 16
_ANY_SHARE = 0.5
_MOST_SIZES = 12  # that are tried in place of one that the class refuses


class _Fault(NamedTuple):
    """Why a plan does not suit: the groups at fault, and what to tell."""

    groups: List[Dict[str, Any]]
    text: str


class Search:
    """Plans until one has a configuration.

    Args:
        shares: what to remove, by keys that are to be looked for.
        scores: measures scores of the channels of groups; None: the criterion's are taken.

    Attributes:
        leaving: members that leave beside what is planned.
        notes: on what was not pruned, or not as was asked.
        file: the program.
    """

    def __init__(
        self,
        network: Pretrained,
        modules: SentenceModules,
        request: Request,
        folder: Path,
        step: Callable[[str], None],
        shares: Mapping[str, float],
        scores: Optional[Callable[[Sequence[Mapping[str, Any]]], Dict[str, Tensor]]] = None,
    ) -> None:
        self.network, self.modules, self.request = network, modules, request
        self.folder, self.step = folder, step
        self.file = folder / "model.pt2"
        self.notes: List[str] = []
        self.leaving = Leaving()
        self._shares = dict(shares)
        self._scores = scores
        self._budgeted: Optional[Config] = None  # once it is known which widths are equal
        self._widths: Dict[str, str] = {}  # notes on other sizes than were asked for, by layer

    def plans(self) -> Iterator[Tuple[Answer, List[List[AttributeChange]]]]:
        """Yields plans, each with choices of changes of the configuration that give its shapes."""
        self.network.save(self.file)
        for _ in range(_MOST_ATTEMPTS):
            self.step("plan")
            answer = self.request.run(self.file, self.folder)
            solved = self._solve(answer)
            if solved is None:
                continue
            if self._shares:
                self._choose(answer, solved[0])
            elif self._budgeted is not None:
                self._tie_widths(answer, solved[0])
            elif self._scores is not None:
                self._measure(answer)
            else:
                yield answer, solved

    def find_widths_first(self) -> None:
        """Where groups are ranked together, each may get another width, and a key of the configuration
        gives several the same one: which these are is found with one share for all."""
        self._budgeted = self.request.config
        entries = [{**entry, "sparse_ratio": _ANY_SHARE} for entry in self._budgeted["config_list"]]
        rest = {k: v for k, v in self._budgeted.items() if k not in ("budget", "scope")}
        self.request.config = {**rest, "config_list": entries}

    def of_members_alone(self) -> Tuple[Answer, List[AttributeChange]]:
        """Returns an empty plan, and the changes of the configuration without the members."""
        empty = ("groups", "integers", "copies", "zeros", "updates", "unpruned_dims")
        source = {"format": "torch.export"}
        data: Dict[str, Any] = {"parsimony_plan": 2, "source": source, **{key: [] for key in empty}}
        answer = Answer(Plan(data), {"groups": []}, self.file)
        ((changes, wrong),) = self._solutions(self._expected(answer), [])
        if wrong:
            raise UnsupportedError(f"no key of {CONFIG} gives the sizes of {sorted(wrong)[0]!r}")
        return answer, changes

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
        asked = not self._shares or any(key.endswith(HEADS) for key in self._shares)
        if asked and len(solutions) > 1 and solutions[0][1] and self._resize(answer, whole):
            return None
        found = [changes for changes, wrong in solutions if not wrong]
        if found:
            return None if self._spare_embeddings(answer, found[0]) else found
        changes, wrong = min(solutions, key=lambda solution: len(solution[1]))
        more = self._cuts_more(expected, changes)
        for change in changes:  # a key may stand for more than the plan cuts
            if more - self._cuts_more(expected, [one for one in changes if one is not change]):
                groups = self._groups_of(answer, changes, change)
                why = f"{path_of(change)} is a size of {sorted(more)[0][0]}, too, which stays"
                self._spare(answer, _Fault(groups, why))
                return None
        shapes = self.network.configured.shapes_with(changes)
        guilty = [
            group
            for group in answer.plan.groups
            if shapes is None or self._cut_otherwise(answer, group, expected, shapes)
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
            named = name_of(change).endswith(HEADS) and change.before is not None
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
        return smaller(expected, self.network.configured.shapes_with(changes) or {})

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
                if not layers or any(layer in self._widths for layer in layers):
                    return False
                more = f" and {len(layers) - 1} other layers" if len(layers) > 1 else ""
                note = (
                    f"{self.network.kind.__name__} does not take {kept} of {size}: {count} are kept "
                    f"in {layers[0]}{more}"
                )
                self._widths.update(dict.fromkeys(layers, note))
                ratio = (size - count) / size
                fixed: Dict[str, Any] = {"sparse_ratio": ratio + 1e-9}
                if "budget" in self.request.config:
                    fixed = {"min_sparse_ratio": ratio, "max_sparse_ratio": ratio}
                self.request.config["config_list"].append({"op_names": layers, **fixed})
                self.notes.append(note)
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
        for key, share in self._shares.items():
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
        self._shares = {}

    def _tie_widths(self, answer: Answer, changes: Sequence[AttributeChange]) -> None:
        """Asks for what was asked for, with one width for all groups of one size behind a key."""
        assert isinstance(self._budgeted, dict)
        self.request.config, self._budgeted = self._budgeted, None
        self.notes = [note for note in self.notes if note not in self._widths.values()]
        self._widths.clear()  # of other shares
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
        assert self._scores is not None
        self.step("choose")
        measure, self._scores = self._scores, None
        try:
            scores = measure(answer.plan.groups)
        except (UnsupportedError, torch.linalg.LinAlgError) as error:
            self.notes.append(f"channels are chosen by the norms of their weights: {error}")
            return
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
                if shapes is not None and not self._cut_otherwise(answer, group, expected, shapes)
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
        return [one for one in of_size if self._cut_otherwise(answer, one, expected, shapes)]

    def _cut_otherwise(
        self, answer: Answer, group: Dict[str, Any], expected: Shapes, shapes: Shapes
    ) -> bool:
        """Returns whether a group cuts an axis of a tensor that has another size in `shapes`."""
        return any(
            name in expected and expected[name][axis] != shapes.get(name, expected[name])[axis]
            for tensor, axes in answer.plan.cuts([group]).items()
            for name in map(self.leaving.new_name, self.network.tied[tensor])
            for axis in axes
        )

    def without_one_key(
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
