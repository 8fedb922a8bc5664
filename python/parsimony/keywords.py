"""Settings of the command as keyword arguments: names, help, and conversion to options."""

from __future__ import annotations

import difflib
import inspect
import re
import textwrap
from typing import Any, Callable, Collection, Dict, List, Mapping, Sequence, TypeVar, Union

from .settings import SETTINGS

# Settings that have arguments of their own in Python, follow from the inputs, or are for files only.
NOT_OF_PYTHON = (
    "target",
    "layers",
    "input",
    "no_verify",
    "threads",
    "on_failure",
    "calibration",
    "image",
    "device",
    "mean",
    "std",
    "loss",
)
_OPTION = re.compile("--[a-z-]*[a-z]")
Function = TypeVar("Function", bound=Callable[..., Any])


def takes_settings(*others: str) -> Callable[[Function], Function]:
    """Adds the settings, except those in `others`, to a function's signature and help."""

    def shown(function: Function) -> Function:
        names = [name for name in SETTINGS if name not in others]
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind != one.VAR_KEYWORD]
        keywords = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in names
        ]
        setattr(function, "__signature__", signature.replace(parameters=own + keywords))
        lines = [
            textwrap.fill(
                f"{name}: {_OPTION.sub(_as_keyword, SETTINGS[name].help)}",
                100,
                initial_indent=" " * 8,
                subsequent_indent=" " * 12,
            )
            for name in names
        ]
        function.__doc__ = (function.__doc__ or "").replace("        {settings}", "\n".join(lines))
        return function

    return shown


def _as_keyword(option: "re.Match[str]") -> str:
    return option[0][2:].replace("-", "_")


def given(function: Callable[..., Any], settings: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the settings that are not None.

    Raises:
        TypeError: the function does not have such a setting.
    """
    known: Collection[str] = inspect.signature(function).parameters
    for name in settings:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise TypeError(
                f"{function.__name__}() got an unexpected keyword argument {name!r}{hint}"
            )
    return {name: value for name, value in settings.items() if value is not None}


def options_of(settings: Mapping[str, Any]) -> List[str]:
    """Returns the settings as options of the command."""
    words: List[str] = []
    for name, value in settings.items():
        option = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words += [option] if value else []
        elif isinstance(value, (str, int, float)):
            words += [option, str(value)]
        elif value:
            words += [option, *map(str, value)]
    return words


def listed(value: Union[str, Sequence[str]], separator: str = "\0") -> List[str]:
    """Returns a list of names; a text is one name, or several between separators."""
    return value.split(separator) if isinstance(value, str) else list(value)
