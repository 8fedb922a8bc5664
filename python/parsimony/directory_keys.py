"""What hangs on the keys of a directory's configuration: groups of channels and heads, layers, experts,
words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from .command import run_command
from .directories import Pretrained
from .leaving import what_may_leave
from .plan import AttributeChange
from .pretrained import HEADS, PREFIX, integers_of, smaller

_MOST_NAMES = 3


def what_hangs_on_keys(network: Pretrained, file: Path) -> List[str]:
    """Returns lines of keys, with the groups that would be cut with each, and of what leaves as a whole.

    Args:
        file: for the network's program.
    """
    network.save(file)
    told = json.loads(run_command(["explain", file, "--json", "--granularity", "head"]))
    lines = []
    for key, (size, groups) in _groups_by_key(network, told["groups"]).items():
        count = f"{len(groups)} group" + ("" if len(groups) == 1 else "s")
        lines.append(f"{key} = {size}: {count} (--keys {key}=25%)")
        lines += _lines_of("head" if key.endswith(HEADS) else "channel", groups)
    return lines + what_may_leave(network)


def _groups_by_key(
    network: Pretrained, groups: Sequence[Mapping[str, Any]]
) -> "Dict[str, Tuple[int, List[Mapping[str, Any]]]]":
    """Returns the size of each key that is one of channels, and their groups: those of the tensors that
    are smaller when the class is built with a smaller number."""
    configured = network.configured
    shapes = configured.shapes_with([]) or {}
    found = {}
    for key, size in integers_of(network.config).items():
        likely = [group for group in groups if _is_number_of(key, size, group["size"])]
        cut: Set[Tuple[str, int]] = set()
        for after in (size // 2, size - 1):  # what may have to be even
            change = AttributeChange("", PREFIX + key, size, after)
            if likely and after > 0 and not cut:
                small = configured.shapes_with([change]) or {}
                cut = smaller(shapes, small) if small.keys() == shapes.keys() else set()
        of_key = [
            group
            for group in likely
            if any(
                (name, member["axis"]) in cut
                for member in group["members"]
                for name in network.tied.get(member["tensor"], ())
            )
        ]
        if of_key:
            found[key] = size, of_key
    return found


def _is_number_of(key: str, size: int, channels: int) -> bool:
    """Returns whether a key may have the number of a group's channels, or what it is a multiple of. Heads
    that share keys and values are one channel."""
    if size <= 0:
        return False
    return channels % size == 0 or (key.endswith(HEADS) and size % channels == 0)


def _lines_of(unit: str, groups: Sequence[Mapping[str, Any]]) -> List[str]:
    """Returns a line for groups of one size, with the first weights that produce their channels."""
    by_size: Dict[str, List[str]] = {}
    for group in groups:
        names = [one["tensor"] for one in group["members"] if one["role"] == "out"]
        names = names or [one["tensor"] for one in group["members"]]
        what = f"{group['size']} {unit}" + ("" if group["size"] == 1 else "s")
        by_size.setdefault(what, []).append(names[0])
    lines = []
    for what, names in by_size.items():
        more = len(names) - _MOST_NAMES
        shown = ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
        lines.append(f"  {what}: {shown}")
    return lines
