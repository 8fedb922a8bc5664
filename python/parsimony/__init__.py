"""Prunes live PyTorch modules structurally, and verifies the outputs of the small ones.

plan = parsimony.prune(model, example_inputs, ratio=0.5)
parsimony.carry_over(optimizer, plan)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, List

if TYPE_CHECKING:
    from .directory_pruning import prune_pretrained
    from .errors import (
        ConfigError,
        Error,
        FileError,
        InternalError,
        UnsupportedError,
        VerificationError,
    )
    from .files import Sensitivity, explain, export_onnx, sensitivity
    from .onnx_files import prune_onnx
    from .optimizers import carry_over
    from .plan import Plan, Proof
    from .pruning import apply, prune

__version__ = "0.1.0"

# Imported on first use: neither `python3 -m parsimony` nor functions that need no torch load it.
_PLACES = {
    "ConfigError": "errors",
    "Error": "errors",
    "FileError": "errors",
    "InternalError": "errors",
    "Plan": "plan",
    "Proof": "plan",
    "Sensitivity": "files",
    "UnsupportedError": "errors",
    "VerificationError": "errors",
    "apply": "pruning",
    "carry_over": "optimizers",
    "explain": "files",
    "export_onnx": "files",
    "prune": "pruning",
    "prune_onnx": "onnx_files",
    "prune_pretrained": "directory_pruning",
    "sensitivity": "files",
}

__all__ = [
    "ConfigError",
    "Error",
    "FileError",
    "InternalError",
    "Plan",
    "Proof",
    "Sensitivity",
    "UnsupportedError",
    "VerificationError",
    "apply",
    "carry_over",
    "explain",
    "export_onnx",
    "prune",
    "prune_onnx",
    "prune_pretrained",
    "sensitivity",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f".{_PLACES[name]}", __name__)
    except ModuleNotFoundError as error:
        from .errors import needs_torch

        raise needs_torch(f"parsimony.{name}", error) from error
    return getattr(module, name)


def __dir__() -> List[str]:
    return [*globals(), *__all__]
