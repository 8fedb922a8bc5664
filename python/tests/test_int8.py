"""Every line of the guide's page on int8 runs, on a small network."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from parsimony.command import find_command

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime.quantization")

BLOCK = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)
SWEEP = """{
  "train": {"epochs": 1},
  "prune": {"config_list": [{"op_types": ["Conv"], "sparse_ratio": 0.5}]},
  "sweep": {"sparsity": [0, 0.5], "criterion": ["l1"], "seed": [0]}
}"""


@pytest.fixture
def folder(tmp_path: Path, root: Path) -> Path:
    """Where the page's lines run: its files, and its programs in a path."""
    digits = numpy.random.default_rng(0).random((300, 1, 28, 28), dtype=numpy.float32)
    numpy.savez(tmp_path / "samples.npz", image=digits)
    numpy.savez(tmp_path / "labelled.npz", image=digits, labels=numpy.arange(300) % 10)
    (tmp_path / "sweep.json").write_text(SWEEP)
    shutil.copy(root / "examples/models/mnist_cnn.onnx", tmp_path / "net.onnx")
    (tmp_path / "examples").symlink_to(root / "examples")
    (tmp_path / "bin").mkdir()
    for name, program in (("python3", sys.executable), ("parsimony", find_command())):
        script = tmp_path / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(program))} "$@"\n')
        script.chmod(0o755)
    return tmp_path


def test_the_guide_runs(folder: Path, root: Path) -> None:
    page = (root / "docs/guide/int8.md").read_text()
    lines = [line for block in BLOCK.findall(page) for line in block.splitlines()]
    assert len(lines) == 4
    environment = {
        **os.environ,
        "PATH": f"{folder}/bin:{os.environ['PATH']}",
        "PYTHONPATH": str(root / "python"),
        "XDG_CACHE_HOME": str(folder),
    }
    for line in lines:
        done = subprocess.run(
            line, shell=True, cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    assert "int8_metric.py milliseconds" in (folder / "runs/int8/report.json").read_text()
    size = {
        name: (folder / f"{name}.onnx").stat().st_size for name in ("net", "small_int8", "fast")
    }
    assert size["small_int8"] * 3 < size["net"] > size["fast"]


def test_int8_is_near_float32(folder: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(root / "examples")
    from int8_metric import error, held_out, milliseconds
    from prune_int8 import quantise

    net, int8 = folder / "net.onnx", folder / "int8.onnx"
    quantise(net, int8, folder / "samples.npz")
    feeds = held_out(folder / "samples.npz")
    assert len(feeds) == 300 - 256
    assert error(net, net, feeds) == 0
    assert 0 < error(int8, net, feeds) < 0.05
    assert len(milliseconds([net, int8], feeds[0], rounds=3)) == 2
    kinds = {node.op_type for node in onnx.load(int8).graph.node}
    assert {"QuantizeLinear", "DequantizeLinear"} <= kinds
