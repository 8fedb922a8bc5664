"""Finds and runs the command `parsimony`."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, List, Sequence

from .errors import FileError, error_of


def find_command() -> str:
    """The path of the command: `$PARSIMONY_COMMAND`, else that of the wheel, else that in `PATH`.

    Raises:
        FileError: there is none.
    """
    given = os.environ.get("PARSIMONY_COMMAND")
    if given:
        if not os.access(given, os.X_OK):
            raise FileError(f"PARSIMONY_COMMAND is {given!r}, which is not an executable file")
        return given
    bundled = Path(__file__).parent / "_prefix" / "bin" / "parsimony"
    found = str(bundled) if os.access(bundled, os.X_OK) else shutil.which("parsimony")
    if found is None:
        raise FileError(
            "the command `parsimony` was not found: install it, put it into PATH, or set "
            "PARSIMONY_COMMAND to its path"
        )
    return found


def _command(arguments: Sequence[Any]) -> List[str]:
    return [find_command(), *(str(argument) for argument in arguments)]


def run_command(arguments: Sequence[Any]) -> str:
    """Runs `parsimony ARGUMENTS` and returns what it printed.

    Raises:
        Error: it failed; the class follows from the exit code, the text is the command's.
    """
    done = subprocess.run(
        _command(arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise error_of(done.returncode, done.stderr)
    return done.stdout


class StartedCommand:
    """`parsimony ARGUMENTS`, which loads its libraries, and waits for its files until `finish`."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        self.arguments = list(arguments)
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            _command(["--after-input", *arguments]), stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )

    def finish(self) -> str:
        """Returns what it printed.

        Raises:
            Error: as of `run_command`.
        """
        out, err = self._process.communicate("")
        if self._process.returncode != 0:
            raise error_of(self._process.returncode, err)
        return out

    def stop(self) -> None:
        """Ends it, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
