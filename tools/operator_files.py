#!/usr/bin/env python3
"""Hands the test files of ONNX's operators to the command, built with AddressSanitizer, and fails if
it ends by a signal or a sanitizer has something to say. Refusals in words are fine.

    tools/operator_files.py [--binary FILE] [--jobs 2] [--part 1/4] [--only WORDS] [FILE | FOLDER ...]

The files are those of PyPI's current `onnx`, in the folder `operators` of the cache: what lies in the
package, and what it makes (a file for each case of each operator). Files that import a later opset
than the command reads are tried as they are and as files of the highest that it reads. Those of
Debian's libonnx-testdata are taken where it is installed; FILE and FOLDER are taken in place of all
these. Without --binary `cmake --preset asan -DPARSIMONY_TORCH=OFF` is built first: several minutes.
Each file goes through `inspect -v`, `explain -v` and `prune -v`, with a proof where there is ONNX
Runtime, and without: half an hour on two cores. --only "prune --no-verify" takes one of these alone.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import venv

from tables.runs import CACHE, ROOT, finished, parser_of

DEBIAN = pathlib.Path("/usr/share/libonnx-testdata/data")
LIMIT = 120  # seconds
FOUND = 97  # exit code of the sanitizers

COMMANDS = {
    "inspect": ["inspect", "-v", "{}"],
    "explain": ["explain", "-v", "{}"],
    "prune": ["prune", "-v", "{}", "-o", "{out}", "--ratio", "0.5"],
    "prune --no-verify": ["prune", "-v", "{}", "-o", "{out}", "--ratio", "0.5", "--no-verify"],
}

# Runs in the virtual environment.
MAKE_FILES = """
import pathlib, shutil, sys, warnings
warnings.simplefilter("ignore")
import onnx
from onnx.backend.test.case import model, node
folder, highest = pathlib.Path(sys.argv[1]), int(sys.argv[2])
shutil.copytree(pathlib.Path(onnx.__file__).parent / "backend/test/data", folder / "package",
                ignore=shutil.ignore_patterns("*.pb", "*.npz"))
for case in node.collect_testcases(None) + model.collect_testcases():
    if case.model is None:
        continue
    made = case.model
    onnx.save(made, folder / f"{case.kind}_{case.name}.onnx")
    later = [opset for opset in made.opset_import if not opset.domain and opset.version > highest]
    if later:
        later[0].version, made.ir_version = highest, min(made.ir_version, 10)
        onnx.save(made, folder / f"{case.kind}_{case.name}_as_{highest}.onnx")
"""


def highest_opset():
    words = (ROOT / "onnx_io/model_file.h").read_text().split("kHighestOpset = ")[1]
    return words.split(";")[0]


def operator_files():
    """Of the newest package; made once for each version of it."""
    place = CACHE / "operators"
    environment = place / "venv"
    if not (environment / "bin/python").exists():
        venv.create(environment, with_pip=True)
    python = environment / "bin/python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    subprocess.run([*pip, "onnx"], check=True)
    version = subprocess.run([python, "-c", "import onnx; print(onnx.__version__)"],
                             check=True, capture_output=True, text=True).stdout.strip()
    files = place / f"{version}-{highest_opset()}"
    if not files.exists():
        with tempfile.TemporaryDirectory(dir=place) as folder:
            made = pathlib.Path(folder) / "files"
            made.mkdir()
            subprocess.run([python, "-c", MAKE_FILES, made, highest_opset()], check=True)
            made.rename(files)
    print(f"onnx {version}: {len(models_in(files))} files in {files}", flush=True)
    return files


def models_in(place):
    return [place] if place.is_file() else sorted(place.rglob("*.onnx"))


def built_command():
    build = ROOT / "build/asan"
    configure = ["cmake", "--preset", "asan", "-DPARSIMONY_TORCH=OFF"]
    subprocess.run(configure, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build, "--target", "parsimony"], check=True, cwd=ROOT)
    return build / "bin/parsimony"


def environment():
    return os.environ | {
        "ASAN_OPTIONS": f"exitcode={FOUND}:detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": f"exitcode={FOUND}:halt_on_error=1:print_stacktrace=1",
    }


def fault_of(binary, words, env):
    """What is wrong with how it ended; empty if nothing is."""
    done = finished([binary, *words], LIMIT, env=env, errors="replace")
    if done.returncode is None:
        return f"longer than {LIMIT} s"
    said = done.stderr
    if done.returncode < 0:
        return f"signal {-done.returncode}\n{said[-3000:]}"
    if done.returncode == FOUND or "Sanitizer" in said or "runtime error:" in said:
        return said[-6000:]
    return ""


def check(binary, commands, model, env):
    """@returns the faults, as (which command, text)"""
    faults = []
    for name, words in commands.items():
        with tempfile.TemporaryDirectory() as folder:
            fill = {"{}": str(model), "{out}": f"{folder}/out.onnx"}
            text = fault_of(binary, [fill.get(word, word) for word in words], env)
        if text:
            faults.append((name, text))
    return faults


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--binary", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--part", default="1/1", help="1/4: the first of every four files")
    parser.add_argument("--only", choices=COMMANDS)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_args()

    binary = options.binary or built_command()
    commands = {options.only: COMMANDS[options.only]} if options.only else COMMANDS
    places = options.files or [operator_files()] + ([DEBIAN] if DEBIAN.exists() else [])
    part, parts = map(int, options.part.split("/"))
    models = [model for place in places for model in models_in(place)][part - 1::parts]
    if not models:
        sys.exit("no files")

    env = environment()
    faults = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = pool.map(lambda model: (model, check(binary, commands, model, env)), models)
        for done, (model, ends) in enumerate(found, 1):
            for name, text in ends:
                faults += 1
                print(f"\n{name} {model}\n{text}", flush=True)
            if done % 200 == 0:
                print(f"{done} of {len(models)} files, {faults} faults", flush=True)
    print(f"{len(models)} files, {len(commands)} commands each: {faults} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
