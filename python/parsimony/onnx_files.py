"""Prunes model files with the command, without torch."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Optional, Sequence, Union

from .keywords import given, listed, options_of, takes_settings
from .plan import Plan
from .request import Config, Request, config_of, take_config

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .settings import Settings


@takes_settings("target", "input", "no_verify", "threads")
def prune_onnx(
    source: Union[str, Path],
    target: Union[str, Path],
    *,
    config_list: Optional[Config] = None,
    inputs: Sequence[str] = (),
    in_place: bool = False,
    verify: bool = True,
    options: Sequence[str] = (),
    **settings: "Unpack[Settings]",
) -> Plan:
    """Prunes an ONNX, TorchScript or .pt2 file, and verifies the result.

    Args:
        source: the file, which is not changed unless `in_place` is set.
        target: the output file.
        inputs: input sizes that the file leaves dynamic, one per input: "1x3x32x32", "2x8:int64".
        config_list: what to prune, and how much: a list of entries like NNI's, an object, or the path of
            a JSON file (docs/guide/config.md).
        in_place: allow `target` to be `source`.
        verify: run both networks to verify the result.
        options: further options of `parsimony prune`.
        {settings}

    Returns:
        The plan, for `parsimony apply` as `plan.data`.

    Raises:
        Error: the command's.
    """
    asked = given(prune_onnx, settings)
    excluded = listed(asked.pop("exclude", ()))
    config = config_of(config_list, take_config(asked))
    words = [*(["--in-place"] if in_place else []), *options_of(asked), *options]
    request = Request(config, words, verify=verify, excluded=excluded)
    with tempfile.TemporaryDirectory(prefix="parsimony_") as folder:
        request.options += ["--input", *inputs] if inputs else []
        return request.run(Path(source), Path(folder), Path(target)).plan
