"""Finds and runs the command `parsimony`."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence

from .errors import FileError, error_of


def find_command() -> str:
    """Returns the path of the command: `$PARSIMONY_COMMAND`, else the wheel's, else from `PATH`.

    Raises:
        FileError: it was not found.
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


def command_environment() -> Dict[str, str]:
    """Returns the variables that the command runs with: these, and the onnxruntime of this Python."""
    variables = dict(os.environ)
    variables.setdefault("PARSIMONY_PYTHON", sys.executable)
    package = importlib.util.find_spec("onnxruntime")  # without importing it
    for folder in (package and package.submodule_search_locations) or ():
        for library in sorted(Path(folder, "capi").glob("libonnxruntime.so.*")):
            variables.setdefault("PARSIMONY_ONNXRUNTIME", str(library))
    return variables


def _command(arguments: Sequence[Any]) -> List[str]:
    return [find_command(), *(str(argument) for argument in arguments)]


def run_command(arguments: Sequence[Any]) -> str:
    """Runs `parsimony ARGUMENTS` and returns its output.

    Raises:
        Error: it failed; the class depends on the exit code, the text is the command's.
    """
    done = subprocess.run(
        _command(arguments),
        env=command_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise error_of(done.returncode, done.stderr)
    return done.stdout


def run_served(arguments: Sequence[Any], serve: Callable[[socket.socket], None]) -> str:
    """Runs `parsimony ARGUMENTS` on data of this process, and returns its output.

    Args:
        serve: answers the command until the connection ends.

    Raises:
        Error: as for `run_command`.
    """
    own, other = socket.socketpair()
    with own:
        with other:
            number = other.fileno()
            process = subprocess.Popen(
                _command([*arguments, "--calibration", f"process:{number}"]),
                env=command_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                pass_fds=(number,),
            )
        with concurrent.futures.ThreadPoolExecutor(1) as reader:
            said = reader.submit(process.communicate)  # or it would wait for who reads its words
            try:
                serve(own)
            except BaseException:
                process.kill()
                raise
            own.close()
            out, err = said.result()
    if process.returncode != 0:
        raise error_of(process.returncode, err)
    return out


class StartedCommand:
    """A run of `parsimony ARGUMENTS` that loads its libraries early and waits for its input files."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        self.arguments = list(arguments)
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            _command(["--after-input", *arguments]),
            env=command_environment(),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )

    def finish(self) -> str:
        """Returns its output.

        Raises:
            Error: as for `run_command`.
        """
        out, err = self._process.communicate("")
        if self._process.returncode != 0:
            raise error_of(self._process.returncode, err)
        return out

    def stop(self) -> None:
        """Terminates it if it is still running."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
