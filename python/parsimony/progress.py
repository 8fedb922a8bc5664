"""A progress bar for terminals and notebooks, if tqdm is installed."""

from __future__ import annotations

import sys
import time
from typing import Any, Dict, Optional, Tuple


class Steps:
    """Shows the current one of several steps, and measures them.

    Attributes:
        seconds: by step, of those that have ended.
    """

    def __init__(self, show: Optional[bool], *steps: str) -> None:
        self._steps = steps
        self.seconds: Dict[str, float] = {}
        self._current: Optional[Tuple[str, float]] = None  # and when it began
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
        self.end()
        self._current = step, time.perf_counter()
        if self._bar is not None:
            self._bar.n = self._steps.index(step)
            self._bar.set_description_str(step)

    def end(self) -> None:
        """Ends the current step."""
        if self._current is not None:
            step, begin = self._current
            self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - begin
            self._current = None
