"""Measurements of networks, a JSON object each, kept in a file so that a run goes on where it stopped."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional

Row = Dict[str, Any]


def collect(names: Iterable[str], row: Callable[[str], Row], out: Optional[Path]) -> List[Row]:
    """Returns the rows of `out`, and of the networks that it lacks those that `row` measures; these are
    printed, and added to the file."""
    rows: List[Row] = []
    if out is not None and out.exists():
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    for name in names:
        if any(entry["network"] == name for entry in rows):
            continue
        rows.append(row(name))
        text = json.dumps(rows[-1])
        print(text, flush=True)
        if out is not None:
            with out.open("a") as file:
                file.write(text + "\n")
        gc.collect()
    return rows
