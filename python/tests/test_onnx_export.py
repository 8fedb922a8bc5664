"""Modules as ONNX files, compared with what they compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List

import pytest
import torch
from torch import nn

import parsimony
from parsimony import files

onnxruntime = pytest.importorskip("onnxruntime")


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5)
    )


@pytest.mark.parametrize("dynamic", [False, True])
def test_the_file_computes_what_the_module_does(tmp_path: Path, dynamic: bool) -> None:
    model, x = network(), torch.randn(2, 3, 8, 8)
    parsimony.export_onnx(model, x, tmp_path / "net.onnx", dynamic_batch=dynamic)
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    given = torch.randn(7, 3, 8, 8) if dynamic else x
    (found,) = session.run(None, {session.get_inputs()[0].name: given.numpy()})
    assert torch.allclose(torch.from_numpy(found), model.eval()(given), atol=1e-5)


def test_a_pruned_module_is_exported(tmp_path: Path) -> None:
    model, x = network(), torch.randn(2, 3, 8, 8)
    parsimony.prune(model, x, ratio=0.5)
    parsimony.export_onnx(model, x, tmp_path / "net.onnx")
    assert (tmp_path / "net.onnx").exists()


def test_a_file_that_computes_something_else_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, x = network(), torch.randn(2, 3, 8, 8)
    run = files.run_command

    def then_change(arguments: List[Any]) -> str:
        text = run(arguments)
        with torch.no_grad():
            model[4].bias += 1
        return text

    monkeypatch.setattr(files, "run_command", then_change)
    with pytest.raises(parsimony.VerificationError, match="the ONNX file differs from the module"):
        parsimony.export_onnx(model, x, tmp_path / "net.onnx")
    assert not (tmp_path / "net.onnx").exists()
