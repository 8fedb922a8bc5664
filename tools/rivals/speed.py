#!/usr/bin/env python3
"""Compares the time of Parsimony with that of Torch-Pruning on ten networks of torchvision, in turn, and writes
docs/results/data/speed.json and its page.

    tools/rivals/speed.py [OPTION...] [NAME...]     all networks, or these

Half of the channels by L1 norm, one thread. Needs a Python with torch, torchvision, onnxscript and torch_pruning.
"""

import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from tables.measured import table  # noqa: E402
from tables.runs import COMMAND, Command, finished, parser_of, publish  # noqa: E402

NAMES = (
    "resnet18 resnet50 vgg16_bn mobilenet_v2 densenet121 efficientnet_b0 regnet_y_400mf convnext_tiny googlenet "
    "squeezenet1_1"
).split()

EXPORT = """
import sys, torch, torchvision
torch.manual_seed(0)
model = torchvision.models.get_model(sys.argv[1], **({"init_weights": True} if sys.argv[1] == "googlenet" else {}))
model = model.eval()
image = torch.randn(1, 3, 224, 224)
torch.onnx.export(model, (image,), sys.argv[2], external_data=False, verbose=False)
torch.export.save(torch.export.export(model, (image,)), sys.argv[3])
torch.save(model.state_dict(), sys.argv[4])
"""

# As the readme of Torch-Pruning does it, "Quickstart" and "High-level Pruners".
PRUNE = """
import sys, time, torch, torchvision
import torch_pruning as tp
torch.set_num_threads(1)
model = torchvision.models.get_model(sys.argv[1], **({"init_weights": False} if sys.argv[1] == "googlenet" else {}))
model.load_state_dict(torch.load(sys.argv[2]))
model = model.eval()
image = torch.randn(1, 3, 224, 224)
begin = time.perf_counter()
last = [m for m in model.modules() if isinstance(m, torch.nn.Linear) and m.out_features == 1000]
last += [m for m in model.modules() if isinstance(m, torch.nn.Conv2d) and m.out_channels == 1000]
pruner = tp.pruner.BasePruner(
    model, image, importance=tp.importance.MagnitudeImportance(p=1), pruning_ratio=0.5, ignored_layers=last
)
pruner.step()
print(time.perf_counter() - begin)
model.zero_grad()
torch.save(model, sys.argv[3])
"""


def timed(run):
    begin = time.perf_counter()
    result = run()
    return time.perf_counter() - begin, result


def row(name, asked, folder):
    """Seconds, the least of all rounds: of the stages and of the whole, for each tool and form."""
    onnx, program, weights = (folder / f"{name}.{kind}" for kind in ("onnx", "pt2", "pth"))
    done = finished([asked.python, "-W", "ignore", "-c", EXPORT, name, onnx, program, weights])
    if done.returncode != 0:
        return {"why": done.stderr.strip().splitlines()[-1]}
    command, found = Command(asked.command, folder), {}

    def least(what, seconds):
        found[what] = min(found.get(what, seconds), seconds)

    for _ in range(asked.rounds):
        for form, file in (("onnx", onnx), ("pt2", program)):
            small = folder / f"small.{form}"
            half = ["prune", file, "-o", small, "--ratio", "0.5", "--threads", "1", "-q"]
            small.unlink(missing_ok=True)  # a file that replaces another is waited for
            least(f"{form} stages", sum(command.report(*half, "--no-verify")["timings"].values()))
            small.unlink()
            least(f"{form} whole", timed(lambda: command.run(*half))[0])
        whole, done = timed(
            lambda: finished([asked.python, "-W", "ignore", "-c", PRUNE, name, weights, folder / "small.pth"])
        )
        if done.returncode != 0:
            return {**found, "why": done.stderr.strip().splitlines()[-1]}
        least("rival stages", float(done.stdout.split()[-1]))
        least("rival whole", whole)
    for file in (onnx, program, weights):
        file.unlink()
    return found


def milliseconds(found, what):
    return f"{1000 * found[what]:,.0f}" if what in found else "–"


def times(found, slow, fast):
    return f"{found[slow] / found[fast]:.2g} ×" if slow in found and fast in found else "–"


def page(rows, versions):
    stages, whole = [], []
    for name, found in rows.items():
        cells = [milliseconds(found, f"{tool} stages") for tool in ("rival", "onnx", "pt2")]
        against = [times(found, "rival stages", f"{form} stages") for form in ("onnx", "pt2")]
        stages.append([name, *cells, *against, found.get("why", "")])
        cells = [milliseconds(found, f"{tool} whole") for tool in ("rival", "onnx", "pt2")]
        against = [times(found, f"{form} whole", "rival whole") for form in ("onnx", "pt2")]
        whole.append([name, *cells, *against])
    command = "tools/rivals/speed.py"
    return {
        "title": "Time against Torch-Pruning",
        "about": "Half of the channels of ten networks of torchvision by L1 norm, one thread, in turn; the least of "
        f"{versions['rounds']} rounds, in milliseconds. Torch-Pruning {versions['torch_pruning']}, torch "
        f"{versions['torch']}, torchvision {versions['torchvision']}.",
        "tables": [
            table(
                "Stages",
                "Torch-Pruning: its graph and `step`. Parsimony: all from reading the file to having written the small "
                "one, without proof.",
                command,
                ["network", "Torch-Pruning", "ONNX", ".pt2", "times faster: ONNX", ".pt2", "failed"],
                stages,
            ),
            table(
                "From a cold start",
                "Torch-Pruning: a script that imports torch, loads the weights, prunes and saves, without any comparison. "
                "Parsimony: the command, with its proof.",
                command,
                ["network", "Torch-Pruning", "ONNX", ".pt2", "share: ONNX", ".pt2"],
                whole,
            ),
        ],
    }


def versions_of(python, packages=None):
    script = (
        "import json, importlib.metadata as m; "
        "print(json.dumps({n: m.version(n.replace('_', '-')) for n in ('torch', 'torchvision', 'torch_pruning')}))"
    )
    where = {"env": {**os.environ, "PYTHONPATH": str(packages)}} if packages else {}
    return json.loads(finished([python, "-c", script], **where).stdout)


def main():
    parser = parser_of(__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", default=NAMES)
    parser.add_argument("--python", default="python3", help="the Python with these packages (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--command", default=COMMAND, help="build/release/bin/parsimony")
    parser.add_argument("--no-page", action="store_true", help="leave docs/results as it is")
    asked = parser.parse_args()
    versions = {**versions_of(asked.python), "rounds": asked.rounds}
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.names:
            rows[name] = row(name, asked, pathlib.Path(folder))
            print(name, rows[name], flush=True)
    if not asked.no_page:
        publish("speed", page(rows, versions))


if __name__ == "__main__":
    main()
