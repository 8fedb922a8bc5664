"""Exceptions, one per exit code of the command."""

from __future__ import annotations

from typing import Dict, Type


class Error(RuntimeError):
    """Base of all exceptions of this package. The module to be pruned is unchanged."""

    exit_code = 70


class VerificationError(Error):
    """The small network's outputs are wrong; the text has the differences."""

    exit_code = 1


class ConfigError(Error):
    """An argument, a config list or a plan is not valid, or does not fit the network."""

    exit_code = 2


class UnsupportedError(Error):
    """The request is valid, but cannot be carried out on this network."""

    exit_code = 3


class FileError(Error):
    """A file cannot be read or written, or is damaged; or the command was not found."""

    exit_code = 4


class InternalError(Error):
    """A bug of Parsimony: please report it."""

    exit_code = 70


_BY_EXIT_CODE: Dict[int, Type[Error]] = {
    kind.exit_code: kind for kind in (VerificationError, ConfigError, UnsupportedError, FileError)
}


def error_of(exit_code: int, text: str) -> Error:
    """Returns the exception for a command that ended with `exit_code` and wrote `text`."""
    lines = [line[11:] if line.startswith("parsimony: ") else line for line in text.splitlines()]
    message = "\n".join(lines).strip() or f"the command ended with exit code {exit_code}"
    return _BY_EXIT_CODE.get(exit_code, InternalError)(message)


def needs_torch(what: str, error: ModuleNotFoundError) -> ImportError:
    """Returns the exception if `what` is unavailable due to `error`, naming the extra with torch."""
    if error.name not in ("torch", "numpy"):
        return error
    return ImportError(
        f"{what} needs {error.name}, which is not installed: pip install 'parsimony-pruning[torch]'",
        name=error.name,
    )
