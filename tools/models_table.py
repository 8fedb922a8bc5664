#!/usr/bin/env python3
"""Measures pages of docs/results on real models, a folder of ONNX files:

    tools/models_table.py models PARSIMONY FOLDER     every one pruned at 50 %, compared in ONNX Runtime,
                                                      and what was not pruned in it
    tools/models_table.py budgets PARSIMONY FOLDER    how close to half of the parameters or MACs a budget gets
    tools/models_table.py memory PARSIMONY FOLDER     what activations take by our count and in ONNX Runtime

Prints docs/results/data/PAGE.json; tools/results.py renders it.
"""

import json
import pathlib
import sys
import tempfile

from tables.cells import digits, left, pruned_groups, reasons_of
from tables.measured import as_data, table
from tables.runs import ROOT, Command, finished, parser_of, read

# ---- models


def models(command, folder):
    runs = [pruned(command, path) for path in sorted(folder.glob("*.onnx"))]
    verdicts = compared(runs, command.folder)
    line = "tools/models_table.py models build/release/bin/parsimony MODELS > docs/results/data/models.json"
    columns = "file|parameters|left|MACs left|groups|result|difference|limit"
    return {
        "title": "Real models",
        "about": "Trained ONNX files of other projects; 50 % of the channels of every group pruned by L1 norm, no "
        "fine-tuning.",
        "tables": [
            table(
                "Pruned by half",
                "Compared in ONNX Runtime with the original whose removed slices are set to zero. Difference: "
                "the largest relative one over all outputs and inputs tried. Limit: 1e-4 (float16: 1e-2), or four times "
                "the difference between ONNX Runtime's own two optimisation levels on the original where that is more.",
                line,
                columns,
                [row_of_model(run, verdicts[run["original"].name]) for run in runs],
            ),
            table(
                "Not pruned, and why",
                "Pinned dimensions of weights. Input channels of first layers and output channels of last ones "
                "are graph inputs and outputs.",
                line,
                "file|reason|dimensions",
                [row for run in runs for row in rows_of_reasons(run)],
            ),
        ],
    }


def pruned(command, original):
    small, plan = (command.folder / f"{original.stem}.{suffix}" for suffix in ("small.onnx", "plan.json"))
    options = ["-q", "--no-verify", "--criterion", "l1", "--ratio", "0.5", "--plan", plan]
    report = command.report("prune", original, "-o", small, *options)
    return {"original": original, "small": small, "plan": plan, "report": report}


def compared(runs, folder):
    """{name of a file: what the oracle says of it}."""
    listed = folder / "list.tsv"
    listed.write_text("".join(f"{run['original']}\t{run['small']}\t{run['plan']}\n" for run in runs))
    options = ["--batch", listed, "--specs", ROOT / "tests/models/inputs.txt", "--json"]
    # A mismatch exits with 1, and belongs into the table.
    done = finished([sys.executable, ROOT / "tools/ort_compare.py", *options], stderr=None)
    rows = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    return {pathlib.Path(row["original"]).name: row for row in rows}


def row_of_model(run, verdict):
    report = run["report"]
    return [
        f"`{run['original'].stem}`",
        f"{report['params']['before']:,}",
        left(report["params"]),
        left(report["macs"]),
        str(len(pruned_groups(report))),
        verdict["verdict"],
        digits(verdict.get("difference")),
        digits(verdict.get("tolerance")),
    ]


def rows_of_reasons(run):
    for reason, axes in reasons_of(run["report"]).items():
        shown = ", ".join(f"`{axis}`" for axis in axes[:3])
        more = f" and {len(axes) - 3} more" if len(axes) > 3 else ""
        yield [f"`{run['original'].stem}`", reason, shown + more]


# ---- budgets

SCOPES = ["local", "global", "isomorphic"]


def budgets(command, folder):
    def row(file, budget):
        def left_of(scope):
            options = ["--budget", f"{budget}=50%", "--scope", scope, "-q", "--no-verify"]
            small = command.folder / "small.onnx"
            return command.report("prune", folder / f"{file}.onnx", "-o", small, *options)[budget]

        counts = [left_of(scope) for scope in SCOPES]
        allowed = f"{counts[0]['before'] // 2:,}"
        return [f"`{file}`", budget, allowed, *(f"{count['after']:,}" for count in counts)]

    files = "resnet20_cifar10", "resnet56_cifar10", "yolox_nano"
    half = table(
        "Half of the parameters or MACs",
        "L1 norms. What is left of the whole network, against what is allowed.",
        "parsimony prune FILE.onnx -o small.onnx --budget macs=50% --scope SCOPE --no-verify    # and params=50%",
        ["file", "half of", "allowed", *SCOPES],
        [row(file, budget) for file in files for budget in ("macs", "params")],
    )
    return {"title": "Budgets", "tables": [half]}


# ---- memory

FILES = "resnet20_cifar10 ultraface_RFB-320 yolox_nano nanodet_m_320 candy mnist-8".split()


def memory(command, folder):
    activations = table(
        "Activations",
        "Kilobytes for one sample: what is alive at once (`peak_ram`), memory in which every tensor has its "
        "place, planned as TensorFlow Lite Micro does, and the most that ONNX Runtime's arena held, which is without "
        "the inputs and with what its kernels need besides: layouts in blocks of channels, and the windows of "
        "convolutions. The last columns are of the network whose `peak_ram` was cut to 60 %, as shares of the same "
        "before. An arena follows the count. On a desktop scratch memory can weigh more: where a width is no multiple "
        "of 8, ONNX Runtime leaves the layout in blocks and writes out the windows of every convolution. `yolox_nano` "
        "cannot be cut that far: its inputs are part of the peak.",
        [
            "parsimony inspect FILE --json                    # peak_memory, arena",
            "parsimony bench FILE --engine onnxruntime --threads 1 --json bench.json    # peak_bytes",
            "parsimony prune FILE -o small.onnx --budget peak_ram=60%",
        ],
        "file|peak|arena|ONNX Runtime|over the peak|peak after|arena after|ONNX Runtime after",
        [row_of_memory(command, folder / f"{file}.onnx") for file in FILES],
    )
    return {"title": "Memory", "tables": [activations]}


def row_of_memory(command, model):
    small = command.folder / "small.onnx"
    command.run("prune", model, "-o", small, "--budget", "peak_ram=60%", "--no-verify", "-q")
    before, after = held(command, model), held(command, small)
    return [
        f"`{model.stem}`",
        *(f"{count / 1000:,.1f}".removesuffix(".0") for count in before),
        f"{before[-1] / before[0]:.2f}",
        *(f"{100 * y / x:.0f} %" for x, y in zip(before, after)),
    ]


def held(command, model):
    """Bytes: the peak, the arena, ONNX Runtime's."""
    totals = json.loads(command.run("inspect", model, "--json"))["totals"]
    bench = command.folder / "bench.json"
    options = "--engine onnxruntime --threads 1 --runs 2 --warm-up 0".split()
    command.run("bench", model, *options, "--json", bench)
    return totals["peak_memory"], totals["arena"], read(bench)["rows"][0]["peak_bytes"]


def main():
    pages = {page.__name__: page for page in (models, budgets, memory)}
    parser = parser_of(__doc__)
    parser.add_argument("page", choices=pages)
    parser.add_argument("command", metavar="PARSIMONY")
    parser.add_argument("models", metavar="FOLDER", type=pathlib.Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="parsimony-models-") as folder:
        print(as_data(pages[asked.page](Command(asked.command, folder), asked.models)))


if __name__ == "__main__":
    main()
