"""What works where torch is not installed, and what the rest says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# As if they were not there: importing them raises ModuleNotFoundError.
HIDDEN = "import sys; sys.modules['torch'] = sys.modules['numpy'] = None; import parsimony\n"


def without_torch(program: str, root: Path, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN + program, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(root / "python")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_files_need_no_torch(tmp_path: Path, root: Path) -> None:
    source, small = root / "examples" / "models" / "mnist_cnn.onnx", tmp_path / "small.onnx"
    printed = without_torch(
        "source, small, file = sys.argv[1:]\n"
        "plan = parsimony.prune_onnx(source, small, ratio=0.5, verify=False)\n"
        "plan.save(file)\n"
        "before, after = parsimony.Plan.load(file).parameters\n"
        "print(after < before)",
        root,
        source,
        small,
        tmp_path / "plan.json",
    )
    assert printed == "True\n"
    assert small.stat().st_size < source.stat().st_size


def test_a_ratio_may_be_in_percent(tmp_path: Path, root: Path) -> None:
    printed = without_torch(
        "source, folder = sys.argv[1:]\n"
        "def after(number, ratio):\n"
        "    small = f'{folder}/{number}.onnx'\n"
        "    return parsimony.prune_onnx(source, small, ratio=ratio, verify=False).parameters[1]\n"
        "print(len({after(i, r) for i, r in enumerate([0.5, '0.5', '50%'])}))\n"
        "for wrong in ('half', '150%', '-1%', 'nan', '%'):\n"
        "    try:\n"
        "        after(3, wrong)\n"
        "    except parsimony.ConfigError as error:\n"
        "        print(error)",
        root,
        root / "examples" / "models" / "mnist_cnn.onnx",
        tmp_path,
    )
    expected = "expected a share in [0, 1), as 0.5 or 50%"
    wrong = ("half", "150%", "-1%", "nan", "%")
    assert printed.splitlines() == ["1", *(f'ratio: found "{one}", {expected}' for one in wrong)]


def test_modules_name_the_extra(root: Path) -> None:
    printed = without_torch(
        "for name in parsimony.__all__:\n"
        "    try: getattr(parsimony, name)\n"
        "    except ImportError as error: print(error)\n",
        root,
    )
    install = "needs torch, which is not installed: pip install 'parsimony-pruning[torch]'"
    names = "Sensitivity apply carry_over explain export_onnx prune prune_pretrained sensitivity".split()
    assert printed.splitlines() == [f"parsimony.{name} {install}" for name in names]


def test_values_are_saved_as_they_were(tmp_path: Path, root: Path) -> None:
    file, again = tmp_path / "plan.json", tmp_path / "again.json"
    file.write_text('{"parsimony_plan": 1, "groups": [], "folds": [{"sha256": ""}]}')
    (tmp_path / "plan.json.safetensors").write_bytes(b"values")
    without_torch("parsimony.Plan.load(sys.argv[1]).save_data(sys.argv[2])", root, file, again)
    assert (tmp_path / "again.json.safetensors").read_bytes() == b"values"
