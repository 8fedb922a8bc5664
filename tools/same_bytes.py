#!/usr/bin/env python3
"""Runs commands again and again, with other numbers of threads and beside busy programs, and compares what they write.

    tools/same_bytes.py                        thirty commands, five times each with 1, 2 and 4 threads: an hour
    tools/same_bytes.py --times 1 --only train
    tools/same_bytes.py --small                a few commands that need no data: seconds; a test

Files must be the same byte for byte; JSON is compared without times, the command and what it ran on. Exits with 1 if
anything differs. It takes Python 3.9 and nothing else.
"""

import collections
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from tables.runs import COMMAND, ROOT, parser_of

# Of a sweep: unfinished points and tables of times.
NOT_READ = re.compile(r"^sweep/(checkpoints|claims)/|^sweep/report\.")
# What depends on the machine and the moment.
NOT_COMPARED = re.compile(r"seconds|timings|phases|^command$|^threads$|^machine$|latency_ms|speedup|^time$")

ONNX = "{models}/onnx/"
SCRIPT = "{models}/torchscript/"
FEW = "--calibration cifar10:{data} --mean .485,.456,.406 --std .229,.224,.225 --samples 64"
RESNET = ONNX + "resnet20_cifar10.onnx -o out.onnx --plan plan.json --report report.json"

COMMANDS = {
    # Criteria.
    "l1": f"prune {RESNET} --html page.html --ratio 0.3",
    "random": f"prune {RESNET} --ratio 0.3 --criterion random --seed 3",
    "fpgm": f"prune {RESNET} --ratio 0.3 --criterion fpgm --scope global",
    "taylor": f"prune {RESNET} --ratio 0.3 --criterion taylor {FEW}",
    "fisher": f"prune {RESNET} --ratio 0.3 --criterion fisher {FEW}",
    "hrank": f"prune {RESNET} --ratio 0.3 --criterion hrank {FEW}",
    "apoz": f"prune {RESNET} --ratio 0.3 --criterion apoz {FEW} --engine onnxruntime",
    "wanda": f"prune {RESNET} --ratio 0.3 --criterion wanda {FEW}",
    "sparsegpt": f"prune {RESNET} --ratio 0.5 --criterion sparsegpt:2:4 {FEW} --masks-out masks.safetensors",
    "obd": f"prune {SCRIPT}resnet20_cifar10.ts.pt -o out.pt --plan plan.json --report report.json --ratio 0.3 "
           f"--criterion obd --input 1x3x32x32 {FEW}",
    "nm": f"prune {RESNET} --criterion nm --ratio 0.5",
    # Scopes and budgets.
    "isomorphic": f"prune {RESNET} --ratio 0.3 --scope isomorphic",
    "outputs scope": f"prune {RESNET} --ratio 0.3 --scope outputs {FEW}",
    "macs": f"prune {RESNET} --budget macs=50%",
    "params": f"prune {RESNET} --budget params=50% --scope global --criterion l2",
    "layers": f"prune {RESNET} --layers 2 {FEW}",
    "metric": f"prune {RESNET} --budget metric=-30% --metric 'wc -c < {{model}}' --metric-runs 4",
    # Other networks and formats.
    "lstm": f"prune {ONNX}DTLN_model_1.onnx -o out.onnx --plan plan.json --report report.json --ratio 0.3",
    "detector": f"prune {ONNX}yolox_nano.onnx -o out.onnx --plan plan.json --report report.json --html page.html "
                "--ratio 0.3",
    "script": f"prune {SCRIPT}unitree_g1_motion.pt -o out.pt --plan plan.json --report report.json --ratio 0.3 "
              "--engine libtorch --input 1x47",
    "export": f"export {SCRIPT}resnet20_cifar10.ts.pt -o out.onnx --input 1x3x32x32",
    # Recovery.
    "bias": f"prune {RESNET} --ratio 0.3 --recover bias,bn {FEW}",
    "least squares": f"prune {RESNET} --ratio 0.3 --recover least-squares {FEW}",
    "least squares, onnxruntime": f"prune {RESNET} --ratio 0.3 --recover least-squares --engine onnxruntime {FEW}",
    "outputs": f"prune {RESNET} --ratio 0.3 --recover outputs --recover-epochs 2 {FEW}",
    "finetune": f"prune {RESNET} --ratio 0.3 --recover finetune --recover-epochs 1 {FEW}",
    # Analyses.
    "sensitivity": f"sensitivity {ONNX}resnet20_cifar10.onnx --ratios 0.3,0.6 --ratio 0.3 --config-out config.json "
                   f"--json curves.json --calibration cifar10:{{data}} --samples 32",
    # Training.
    "train": "train --model cnn --data cifar10:{data} --train-samples 512 --epochs 1 -o out.pt --report report.json",
    "train resnet": "train --model resnet20 --data cifar10:{data} --train-samples 256 --test-samples 64 --epochs 1 "
                    "-o out.pt --report report.json",
    "finetune file": f"finetune {ONNX}resnet20_cifar10.onnx -o out.onnx --data cifar10:{{data}} --train-samples 256 "
                     "--test-samples 64 --epochs 1 --report report.json",
    "train text": "train --model gpt_tiny --data text:{text},length=64 --train-samples 256 --test-samples 64 "
                  "--epochs 1 -o out.pt",
    "sweep": "sweep --model cnn --data cifar10:{data} --config {recipe} --train-samples 256 --test-samples 64 "
             "--out sweep",
}

SWEEP = {"train": {"epochs": 1}, "prune": {"config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]},
         "sweep": {"sparsity": [0.3, 0.6]}}

SMALL = {
    "criterion": "prune {net} -o out.onnx --plan plan.json --report report.json --html page.html --ratio 0.5 "
                 "--criterion fisher --calibration random:32",
    "recovery": "prune {net} -o out.onnx --plan plan.json --report report.json --ratio 0.5 --calibration random:32 "
                "--recover least-squares,outputs --recover-epochs 1",
    "training": "train --model cnn --data shapes --train-samples 128 --test-samples 32 --epochs 1 -o out.pt "
                "--report report.json",
}


class Busy:
    """Programs that take all the time they are given."""

    def __init__(self, count):
        self.programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self.programs:
            program.send_signal(signal.SIGKILL)
            program.wait()


def compared(value):
    if isinstance(value, dict):
        return {key: compared(of) for key, of in value.items() if not NOT_COMPARED.search(key)}
    return [compared(of) for of in value] if isinstance(value, list) else value


def content(path):
    """What is compared of a file."""
    data = path.read_bytes()
    if path.suffix in (".json", ".jsonl"):
        return "\n".join(json.dumps(compared(json.loads(line))) for line in
                         ([data] if path.suffix == ".json" else data.splitlines())).encode()
    return data


def written(folder):
    files = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: content(path) for name, path in files.items() if not NOT_READ.search(name)}


def difference(a, b):
    """Where two runs' files differ, in words; None where they do not."""
    if a.keys() != b.keys():
        return "other files: " + " ".join(sorted(a.keys() ^ b.keys()))
    for name in a:
        x, y = a[name], b[name]
        if x == y:
            continue
        at = next((i for i, (p, q) in enumerate(zip(x, y)) if p != q), min(len(x), len(y)))
        return f"{name}: byte {at} of {len(x)} and {len(y)}: {x[at:at + 24]!r}, {y[at:at + 24]!r}"
    return None


class Runs:
    def __init__(self, command, places, folder):
        self.command, self.places, self.folder = command, places, folder

    def run(self, text, threads, way):
        """What a run wrote. `way`: how it hears of the threads; where the machine has few cores, both say more."""
        place = self.folder / "run"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for key, value in self.places.items():
            text = text.replace("{" + key + "}", str(value))
        environment = dict(os.environ)
        if way == "option" and not text.startswith("export"):
            text += f" --threads {threads}"
        else:
            environment["OMP_NUM_THREADS"] = str(threads)
        done = subprocess.run(f"exec '{self.command}' {text} -q", shell=True, cwd=place, env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{self.command} {text}\nended with {done.returncode}: {done.stderr}")
        return written(place)

    def compare(self, text, times, threads):
        """The differences from the first run, and how long the runs took."""
        first, found = None, collections.Counter()
        begin = time.monotonic()
        for repeat in range(times):
            for turn, count in enumerate(threads):
                now = self.run(text, count, "option" if (repeat + turn) % 2 == 0 else "environment")
                first = first or now
                differs = difference(first, now)
                if differs:
                    found[f"{count} threads: {differs}"] += 1
        return found, (time.monotonic() - begin) / (times * len(threads))


def cifar(shared, folder):
    """The layout that cifar10:DIR reads, with a few images in each file."""
    folder.mkdir()
    size, count = 3073, 120  # bytes of an image, images of a file
    train, test = (gzip.decompress((shared / f"data/cifar10-{name}.bin.gz").read_bytes())
                   for name in ("train-first4000", "test-first1017"))
    for i in range(5):
        (folder / f"data_batch_{i + 1}.bin").write_bytes(train[i * count * size:(i + 1) * count * size])
    (folder / "test_batch.bin").write_bytes(test[:count * size])
    return folder


def places_of(options, folder):
    if options.small:
        return {"net": ROOT / "examples/models/mnist_cnn.onnx"}
    shared = options.data
    text = folder / "text.txt"
    text.write_bytes(gzip.decompress((shared / "data/tinyshakespeare.txt.gz").read_bytes()))
    recipe = folder / "recipe.json"
    recipe.write_text(json.dumps(SWEEP))
    return {"models": shared / "models", "data": cifar(shared, folder / "cifar"), "text": text, "recipe": recipe}


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--command", type=pathlib.Path, default=COMMAND)
    parser.add_argument("--data", type=pathlib.Path,
                        default=os.environ.get("PARSIMONY_TEST_DATA") or ROOT.parent / "shared",
                        help="folder with real models and data")
    parser.add_argument("--times", type=int, help="runs for each number of threads (5; 1 with --small)")
    parser.add_argument("--threads", default="1,2,4", help="numbers of threads (1,2,4)")
    parser.add_argument("--busy", type=int, help="programs that run beside (3; none with --small)")
    parser.add_argument("--only", default="", help="commands whose name this regular expression finds")
    parser.add_argument("--small", action="store_true", help="a few commands that need no data")
    options = parser.parse_args()
    options.data = pathlib.Path(options.data).resolve()
    times = options.times or (1 if options.small else 5)
    busy = options.busy if options.busy is not None else (0 if options.small else 3)
    threads = [int(count) for count in options.threads.split(",")]
    commands = {name: text for name, text in (SMALL if options.small else COMMANDS).items()
                if re.search(options.only, name)}
    failed = 0
    with tempfile.TemporaryDirectory() as temporary, Busy(busy):
        folder = pathlib.Path(temporary)
        runs = Runs(options.command.resolve(), places_of(options, folder), folder)
        for name, text in commands.items():
            found, seconds = runs.compare(text, times, threads)
            failed += bool(found)
            print(f"{'DIFFERS' if found else 'same':8}{name} ({seconds:.1f} s)", flush=True)
            for what, count in found.items():
                print(f"        {count} times, {what}", flush=True)
    print(f"{len(commands) - failed} of {len(commands)} commands wrote the same bytes in {times * len(threads)} runs")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
