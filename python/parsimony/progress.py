"""A progress bar for terminals and notebooks, if tqdm is installed."""

from __future__ import annotations

import sys
from typing import Any, Optional


class Steps:
    """Shows the current one of several steps."""

    def __init__(self, show: Optional[bool], *steps: str) -> None:
        self._steps = steps
        self._bar: Any = None
        if show is None:
            show = sys.stderr.isatty() or "ipykernel" in sys.modules
        if show:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                return
            self._bar = tqdm(total=len(steps), leave=False, bar_format="{desc} {bar} {elapsed}")

    def __enter__(self) -> "Steps":
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, step: str) -> None:
        """Begins `step`; steps may be repeated."""
        if self._bar is not None:
            self._bar.n = self._steps.index(step)
            self._bar.set_description_str(step)
