"""The guide's page on Ultralytics: the example runs with the real package, on pictures made here."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from types import ModuleType

import numpy
import pytest
import torch


@pytest.fixture
def example(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("YOLO_CONFIG_DIR", tempfile.mkdtemp(prefix="yolo_"))
    monkeypatch.setenv("YOLO_OFFLINE", "True")
    pytest.importorskip("ultralytics")
    spec = importlib.util.spec_from_file_location("prune_yolo", root / "examples/prune_yolo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def data_set(folder: Path) -> Path:
    """Squares of two colours, in YOLO's layout."""
    image = pytest.importorskip("PIL.Image")
    draw = numpy.random.default_rng(0)
    for name in ("images", "labels"):
        (folder / name).mkdir()
    for i in range(4):
        pixels = draw.integers(0, 80, (64, 64, 3), dtype=numpy.uint8)
        pixels[16:48, 16:48, i % 2] = 255
        image.fromarray(pixels).save(folder / "images" / f"{i}.png")
        (folder / "labels" / f"{i}.txt").write_text(f"{i % 2} 0.5 0.5 0.5 0.5\n")
    text = f"path: {folder}\ntrain: images\nval: images\nnames: {{0: red, 1: green}}\n"
    (folder / "data.yaml").write_text(text)
    return folder / "data.yaml"


def network(folder: Path, name: str) -> Path:
    """Ultralytics' network with two classes; the scale is a letter of the file's name."""
    from ultralytics.nn.tasks import yaml_model_load
    from ultralytics.utils import YAML

    path = folder / name
    YAML.save(path, {**yaml_model_load(name), "nc": 2})
    return path


@pytest.mark.parametrize("name", ["yolov8n.yaml", "yolo11n.yaml", "yolo26n.yaml"])
def test_a_yolo_is_pruned_and_trains_on(
    name: str, tmp_path: Path, example: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ultralytics import YOLO

    monkeypatch.chdir(tmp_path)
    data, start = data_set(tmp_path), network(tmp_path, name)
    dense = sum(p.numel() for p in YOLO(start, task="detect").model.parameters())
    options = ["--imgsz", "64", "--epochs", "1", "--project", str(tmp_path)]
    yolo, small = example.main([str(start), str(data), *options])
    shapes = {key: value.shape for key, value in small.model.state_dict().items()}
    assert shapes == {key: value.shape for key, value in yolo.model.state_dict().items()}
    assert sum(p.numel() for p in small.model.parameters()) < 0.7 * dense
    x = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        expected = small.model.eval()(x)[0]
        torch.testing.assert_close(yolo.model.eval()(x)[0], expected)
    small.save("again.pt")
    with torch.no_grad():
        again = YOLO("again.pt").model.eval()(x)[0]
    torch.testing.assert_close(again, expected, rtol=1e-2, atol=1e-2 * expected.abs().max().item())
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(
        next(tmp_path.rglob("best.onnx")), providers=["CPUExecutionProvider"]
    )
    (found,) = session.run(None, {"images": x.numpy()})
    if "26" not in name:  # whose candidates are sorted by scores that are almost equal here
        torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-3, atol=1e-3)
