"""Files that the command prunes; needs no torch."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Optional, Sequence, Union

from .plan import Plan
from .request import Config, Request, config_of


def prune_onnx(
    source: Union[str, Path],
    target: Union[str, Path],
    *,
    config_list: Optional[Config] = None,
    ratio: Optional[float] = None,
    budget: Any = None,
    criterion: Optional[str] = None,
    scope: Optional[str] = None,
    granularity: Optional[str] = None,
    round_to: Optional[int] = None,
    op_types: Optional[Sequence[str]] = None,
    exclude: Sequence[str] = (),
    inputs: Sequence[str] = (),
    force: bool = False,
    in_place: bool = False,
    verify: bool = True,
    options: Sequence[str] = (),
) -> Plan:
    """Prunes an ONNX, TorchScript or .pt2 file, and proves the result.

    Args:
        source: the file, which is not changed unless `in_place` is given.
        target: where the smaller one goes.
        inputs: sizes that the file leaves open, one per input: "1x3x32x32", "2x8:int64".
        in_place: `target` may be `source`.
        verify: run both networks to prove the result.
        options: further options of `parsimony prune`.
        Others: as for `prune`.

    Returns:
        The plan, for `parsimony apply` as `plan.data`.

    Raises:
        Error: the command's.
    """
    defaults = {
        "criterion": criterion,
        "scope": scope,
        "granularity": granularity,
        "round_to": round_to,
        "force": force or None,
    }
    config = config_of(config_list, ratio, budget, op_types, defaults)
    flags = ["--in-place"] if in_place else []
    request = Request(config, flags + list(options), verify=verify, excluded=list(exclude))
    with tempfile.TemporaryDirectory(prefix="parsimony_") as folder:
        return request.run(Path(source), inputs, Path(folder), Path(target)).plan
