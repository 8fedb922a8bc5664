"""Makes a wheel of the package that carries the command, from an installed prefix. Needs no index.

    cmake --install build/release --prefix /tmp/prefix
    python3 python/build_wheel.py --prefix /tmp/prefix --out dist

The wheel holds `bin/parsimony`, `lib/parsimony/` and `share/doc/parsimony/`, and is for the platform
that they were built on; the command's component for TorchScript loads that platform's libtorch. With
SOURCE_DATE_EPOCH set, the same prefix gives the same bytes.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

_HERE = Path(__file__).parent

# Only with the command inside: without it the script `parsimony` would find itself in PATH.
_SCRIPT = """
[project.scripts]
parsimony = "parsimony.__main__:main"
"""

# For any Python, but for one platform: setuptools has an option for the one or the other.
_SETUP = """
import setuptools

class Distribution(setuptools.Distribution):
    def has_ext_modules(self):
        return True

class Wheel(setuptools.Distribution().get_command_class("bdist_wheel")):
    def get_tag(self):
        return "py3", "none", self.plat_name.replace("-", "_").replace(".", "_")

setuptools.setup(distclass=Distribution, cmdclass={"bdist_wheel": Wheel})
"""


def build_wheel(prefix: Path, out: Path, platform: str) -> Path:
    """Writes the wheel to the folder `out`, and returns its path.

    Raises:
        SystemExit: the prefix holds no command, or setuptools fails.
    """
    _check_setuptools()
    command = prefix / "bin" / "parsimony"
    if not command.exists():
        raise SystemExit(f"{prefix}: there is no bin/parsimony in it")
    with tempfile.TemporaryDirectory(prefix="parsimony_wheel_") as name:
        tree = Path(name)
        settings = (_HERE / "pyproject.toml").read_text()
        (tree / "pyproject.toml").write_text(settings + _SCRIPT)
        shutil.copy(_HERE.parent / "LICENSE", tree)
        inside = tree / "parsimony" / "_prefix"
        shutil.copytree(
            _HERE / "parsimony",
            inside.parent,
            ignore=shutil.ignore_patterns("__pycache__", inside.name),
        )
        (inside / "bin").mkdir(parents=True)
        shutil.copy2(command, inside / "bin")
        for folder in ("lib/parsimony", "share/doc/parsimony"):
            if (prefix / folder).exists():
                shutil.copytree(prefix / folder, inside / folder)
        out.mkdir(parents=True, exist_ok=True)
        setup = [sys.executable, "-c", _SETUP, "-q"]
        wheel = ["bdist_wheel", "--plat-name", platform, "--dist-dir", str(out.resolve())]
        done = subprocess.run([*setup, *wheel], cwd=tree, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stdout + done.stderr)
    return max(out.glob("parsimony_pruning-*.whl"), key=lambda path: path.stat().st_mtime)


def _check_setuptools() -> None:
    probe = "import setuptools; setuptools.Distribution().get_command_class('bdist_wheel')"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False)
    if done.returncode != 0:
        raise SystemExit(
            f"build_wheel.py: {sys.executable} cannot make wheels: it needs setuptools 70.1 or "
            "later, or the package wheel beside an older one"
        )


def main() -> None:
    """Builds the wheel that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prefix", type=Path, required=True, help="where the command is installed")
    parser.add_argument("--out", type=Path, default=Path("dist"))
    parser.add_argument("--platform", default=sysconfig.get_platform(), help="the wheel's tag")
    options = parser.parse_args()
    print(build_wheel(options.prefix, options.out, options.platform))


if __name__ == "__main__":
    main()
