"""The wheel in a clean environment, the example, and some of torchvision's networks."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from parsimony.command import find_command


def module_of(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_wheel_brings_the_command(tmp_path: Path, root: Path) -> None:
    pytest.importorskip("setuptools")
    pytest.importorskip("wheel")
    prefix = Path(find_command()).resolve().parents[1]
    if not (prefix / "lib" / "parsimony").exists():
        pytest.skip("the command is not in an installed prefix with its component")
    wheel = module_of(root / "python" / "build_wheel.py").build_wheel(
        prefix, tmp_path, "linux_x86_64" if sys.maxsize > 2**32 else "linux_i686"
    )
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "torch.pth").write_text(str(Path(torch.__file__).parents[1]))
    install = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "--python", place]
    subprocess.run([*install, "install", "--no-index", "--no-deps", wheel], check=True)
    program = (
        "import parsimony, torch; from torch import nn; from parsimony.command import find_command;"
        "model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2));"
        "parsimony.prune(model, torch.randn(2, 4), ratio=0.5);"
        "print(find_command(), model[0].out_features)"
    )
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    python = place / "bin" / "python"
    done = subprocess.run(
        [python, "-c", program], cwd=tmp_path, env=clean, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    command, features = done.stdout.split()
    assert command.startswith(str(place)) and features == "4"
    done = subprocess.run([python, "-m", "parsimony", "--version"], cwd=tmp_path, env=clean)
    assert done.returncode == 0


def test_the_example(tmp_path: Path, root: Path) -> None:
    arguments = ["--out", tmp_path, "--samples", "640", "--epochs", "5"]
    data = Path(os.environ.get("PARSIMONY_TEST_DATA", "/nowhere")) / "data"
    for file in sorted(data.glob("cifar10-train-first*.bin.gz"))[:1]:
        arguments += ["--data", file]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root / "python")}
    program = [sys.executable, root / "python" / "examples" / "cifar.py", *arguments]
    done = subprocess.run(program, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Proven: largest difference") == 2
    reached = re.findall(r"epoch 4: accuracy ([\d.]+)|loaded: accuracy ([\d.]+)", done.stdout)
    assert reached[0][0] == reached[1][1], "the loaded network is the trained one"
    assert (tmp_path / "small.onnx").stat().st_size < 200_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["resnet18", "shufflenet_v2_x0_5", "googlenet", "vit_b_32", "swin_t"]
)
def test_networks_of_torchvision(name: str, root: Path) -> None:
    pytest.importorskip("torchvision")
    sweep = module_of(root / "python" / "benchmarks" / "torchvision_networks.py")
    row = sweep.row(name, 0.5)
    assert "fault" not in row, row["fault"]
    assert row["applied"] and row["relative"] <= 1e-5 and row["scale"] > 1e-3
    assert row["macs"][1] < 0.6 * row["macs"][0]
