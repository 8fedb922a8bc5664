"""The project's own Python: a virtual environment with what requirements.txt names, in the cache.

    python3 tools/environment.py         makes it where it is not there
    python3 tools/environment.py torch   makes that of requirements_torch.txt: PyTorch, and what tests with it need

A script that imports this module goes on in that environment, whichever Python it was started with.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from tables.runs import CACHE

FOLDER = CACHE / "python"
TORCH = CACHE / "torch"
REQUIREMENTS = {FOLDER: "requirements.txt", TORCH: "requirements_torch.txt"}
FILE_FAULT = 4


def make(folder):
    requirements = pathlib.Path(__file__).with_name(REQUIREMENTS[folder])
    made = f"{sys.version}\n{requirements.read_text()}"  # compared with what the folder was made by and of
    stamp = folder / "made.txt"
    if stamp.exists() and stamp.read_text() == made:
        return 0
    CACHE.mkdir(parents=True, exist_ok=True)
    fresh = pathlib.Path(tempfile.mkdtemp(prefix=folder.name + ".", dir=CACHE))
    try:
        subprocess.run([sys.executable, "-m", "venv", fresh], check=True)
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([fresh / "bin/python", *install, "--only-binary=:all:", "-r", requirements], check=True)
        (fresh / stamp.name).write_text(made)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.chmod(0o755)
        fresh.rename(folder)
    except subprocess.CalledProcessError:
        print(f"environment.py: cannot install what {requirements} names", file=sys.stderr)
        return FILE_FAULT
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    print(f"environment.py: installed in {folder}", file=sys.stderr)
    return 0


def enter():
    python = FOLDER / "bin/python"
    if not python.exists():
        print(f"there is no Python in {FOLDER}: run tools/setup.sh", file=sys.stderr)
        sys.exit(FILE_FAULT)
    if not os.path.samefile(sys.prefix, FOLDER):
        os.execv(python, [str(python), *sys.argv])


if __name__ == "__main__":
    sys.exit(make(TORCH if sys.argv[1:] == ["torch"] else FOLDER))
enter()
