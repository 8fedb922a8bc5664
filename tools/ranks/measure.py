#!/usr/bin/env python3
"""Measures docs/results/data/processes.json: training in several processes against threads and against
Python's DistributedDataParallel, what ranks send, and what becomes of a network cut on the way.

    tools/ranks/measure.py [--runs 5] [--quick] [--only TABLE,…] [--model FILE.onnx] PARSIMONY CIFAR
      > docs/results/data/processes.json
    tools/results.py

CIFAR is a folder with CIFAR-10 in its binary layout; --model is pruned and recovered; --only prints these
tables (epoch, resnet20, exposed, sent, learnt, recovered), which replace those of their title. Needs the
PyTorch of tools/setup.sh and libmimalloc2.0, and root for messages. Times mean something on an idle machine
only, for about an hour; --quick shows in minutes that all of it runs.
"""

import collections
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from tables.cells import digits, significant  # noqa: E402
from tables.measured import as_data, table  # noqa: E402
from tables.runs import CACHE, Command, finished, parser_of, read  # noqa: E402

Sizes = collections.namedtuple("Sizes", "runs images epochs traced few more learnt seeds ranks samples")
QUICK = Sizes(1, 128, 2, 320, 2, 5, 128, [0], [1, 2], 32)
FULL = Sizes(5, 6400, 3, 6400, 10, 60, 8000, [0, 1, 2], [1, 2, 4], 512)
BATCH = 64
LAYOUTS = [(1, 1), (1, 2), (2, 1)]  # ranks, threads
LOCAL = "--local-batch-norm"  # as DistributedDataParallel has it
BASE = 1

PYTHON = CACHE / "torch/bin/python"
DDP = pathlib.Path(__file__).with_name("ddp.py")
MIMALLOC = {"LD_PRELOAD": "libmimalloc.so.2", "MIMALLOC_LARGE_OS_PAGES": "1"}

HALF = {"config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]}
# Of each network: what its recipe prunes, and options.
NETWORKS = {
    "dense": (None, []),
    "half": ({"warmup_epochs": 0, **HALF}, []),
    "dense, `--half-gradients`": (None, ["--half-gradients"]),
}
NOTHING = "not measured"
FEW_TESTS = ["--test-samples", "64"]


def parsed():
    parser = parser_of(__doc__)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default=",".join(TABLES))
    parser.add_argument("--model", metavar="FILE.onnx", type=pathlib.Path)
    parser.add_argument("command", metavar="PARSIMONY")
    parser.add_argument("cifar", metavar="CIFAR")
    return parser.parse_args()


def told(text):
    print(text, file=sys.stderr, flush=True)


def percent(x):
    return f"{100 * x:.1f} %"


def span(values, text):
    return f"{text(min(values))} to {text(max(values))}"


def three(x):
    return significant(x, 3)


def spread(values):
    return f"{three(statistics.median(values))} ({span(values, three)})"


def against(values, others):
    """The median of the ratios, each within one run."""
    return f"{statistics.median(x / y for x, y in zip(values, others)):.2f} ×"


def layout(ranks, threads):
    return f"{ranks} × {threads}"


def recipe(epochs, prune, model="cnn"):
    train = {"epochs": epochs, "batch": BATCH, "optimizer": "adam", "lr": 1e-3, "evaluate_every": 0}
    return {"model": model, "train": train, **({"prune": prune} if prune else {})}


class Bench:
    def __init__(self, asked, folder):
        self.asked, self.folder = asked, pathlib.Path(folder)
        self.sizes = QUICK if asked.quick else FULL
        self.runs = asked.runs or self.sizes.runs
        self.command = Command(asked.command, folder)
        able = "--half-gradients" in self.command.run("train", "--help")
        self.networks = [name for name, (_, more) in NETWORKS.items() if able or not more]

    def at(self, name):
        return self.folder / name

    def training(self, ranks, threads, asked, images, *more):
        """Trains; the words of the command."""
        self.at("recipe.json").write_text(json.dumps(asked))
        return [
            "train", "--config", self.at("recipe.json"), "--data", f"cifar10:{self.asked.cifar}",
            "--train-samples", images, "--threads", threads, "-o", self.at("small.pt"),
            *processes(ranks), *more,
        ]  # fmt: skip

    def interleaved(self, what, variants, measure):
        """What `measure(*variant)` gives, for each variant one value a run; the variants alternate."""
        values = [[] for _ in variants]
        for k in range(self.runs):
            for variant, found in zip(variants, values):
                found.append(measure(*variant))
                told(f"{what}, run {k + 1} of {self.runs}: {variant}: {json.dumps(found[-1])}")
        return values

    def headed(self, title, about, columns, rows):
        words = ["--runs", str(self.runs)] if self.runs != self.sizes.runs else []
        words += ["--quick"] if self.asked.quick else []
        words += ["--only", self.asked.only] if self.asked.only != ",".join(TABLES) else []
        words += ["--model", self.asked.model.name] if self.asked.model else []
        line = " ".join(["tools/ranks/measure.py", *words, "build/release/bin/parsimony CIFAR"])
        return table(title, about, line, columns, rows)


def processes(ranks):
    return ["--processes", ranks] if ranks > 1 else []


# ---- The time of an epoch

PROGRAMS = ["parsimony", "plain", "tuned"]


def times(bench):
    machine = {}
    variants = [(program, *one) for one in LAYOUTS for program in PROGRAMS]

    def epoch_time(*variant):
        return statistics.median(epoch_times(bench, machine, *variant)[1:])

    values = dict(zip(variants, bench.interleaved("epoch", variants, epoch_time)))
    rows = []
    for one in LAYOUTS:
        ours, plain, tuned = (values[(program, *one)] for program in PROGRAMS)
        base, faster = values[("parsimony", *LAYOUTS[BASE])], [*map(min, plain, tuned)]
        compared = [spread(ours), against(ours, base), spread(plain), spread(tuned), against(ours, faster)]
        rows.append([layout(*one), *compared])
    return bench.headed(
        f"An epoch of {bench.sizes.images:,} images",
        f"Seconds: median of {bench.runs} runs that alternate (and their range); ratios are taken within a run. A run "
        "is the median of its epochs without the first. PyTorch: `tools/ranks/ddp.py`, two processes by "
        "DistributedDataParallel over Gloo; it has the `OMP_WAIT_POLICY` that the command "
        "sets. Tuned: channels-last, and mimalloc with large pages, which the command has, too. The command runs every "
        "operator on one thread, whose results depend on nothing else: its 1 × 2 is 1 × 1.",
        "processes × threads|parsimony|against 1 × 2|PyTorch|PyTorch, tuned|parsimony against the faster",
        rows,
    )


def resnet20(bench):
    """BatchNorm of each rank's share is what DistributedDataParallel has; of all is the command's default."""
    layouts = [(*one, *more) for one in LAYOUTS for more in ([(), (LOCAL,)] if one[0] > 1 else [()])]
    variants = [("parsimony", *one) for one in layouts] + [("tuned", *one) for one in LAYOUTS]

    def epoch_time(program, ranks, threads, *more):
        found = epoch_times(bench, {}, program, ranks, threads, *more, model="resnet20")
        return statistics.median(found[1:])

    values = dict(zip(variants, bench.interleaved("ResNet-20", variants, epoch_time)))
    base = values[("parsimony", *LAYOUTS[BASE])]
    python = {one: values[("tuned", *one)] for one in LAYOUTS}
    both = [*map(min, *(found for one, found in python.items() if math.prod(one) > 1))]
    rows = []
    for one in layouts:
        ours, theirs = values[("parsimony", *one)], python[one[:2]]
        name = layout(*one[:2]) + (f", `{LOCAL}`" if one[2:] else "")
        faster = both if math.prod(one[:2]) > 1 else theirs
        rows.append([name, spread(ours), against(ours, base), spread(theirs), against(ours, faster)])
    return bench.headed(
        f"An epoch of ResNet-20, {bench.sizes.images:,} images",
        f"As above, `--model resnet20`. PyTorch, tuned as above, has the statistics of each rank's share, as with "
        f"`{LOCAL}`. The last column compares with PyTorch's faster one on as many cores.",
        "processes × threads|parsimony|against 1 × 2|PyTorch|parsimony against the faster",
        rows,
    )


def epoch_times(bench, machine, program, ranks, threads, *more, model="cnn"):
    """`machine` is filled with what the command's reports say of it."""
    sizes = bench.sizes
    if program == "parsimony":
        asked = recipe(sizes.epochs, None, model)
        words = bench.training(ranks, threads, asked, sizes.images, *FEW_TESTS, *more)
        report = bench.command.report(*words)
        machine.update(report["machine"])
        return [epoch["seconds"] for epoch in report["epochs"]]
    tuned = program == "tuned"
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", **(MIMALLOC if tuned else {})}
    line = f"--ranks {ranks} --threads {threads} --batch {BATCH} --samples {sizes.images} --epochs {sizes.epochs}"
    words = [*line.split(), *(["--channels-last"] if tuned else []), *(["--resnet20"] if model != "cnn" else [])]
    done = finished([PYTHON, DDP, bench.asked.cifar, *words], env=environment, stderr=None)
    done.check_returncode()
    said = json.loads(done.stdout)
    if tuned and said["allocator"] != "mimalloc":
        raise RuntimeError(f"no {MIMALLOC['LD_PRELOAD']}")
    return said["seconds"]


# ---- Messages, as between machines

NO_MEMORY = "mount -t tmpfs -o size=4k tmpfs /dev/shm"  # too small for ranks to share
MESSAGES = ["unshare", "-m", "sh", "-c", f'{NO_MEMORY} && "$@"', "sh"]
# A new namespace counts from 0. /sys would show the interfaces of the namespace that mounted it.
COUNTED = [
    "unshare", "-m", "-n", "sh", "-c", f'{NO_MEMORY} && ip link set lo up && "$@" >&2 && grep lo: /proc/net/dev', "sh"
]  # fmt: skip
BY_MESSAGES = "By messages, as between machines: the ranks are kept from sharing memory. "


# ---- Sums hidden behind the backward pass


def exposed(bench):
    def traced(name):
        prune, more = NETWORKS[name]
        options = [*FEW_TESTS, "--profile", bench.at("trace.json"), *more]
        words = bench.training(2, 1, recipe(1, prune), bench.sizes.traced, *options)
        bench.command.run(*words, before=MESSAGES)
        return overlap(read(bench.at("trace.json"))["traceEvents"])

    rows = []
    values = bench.interleaved("trace", [(name,) for name in bench.networks], traced)
    for name, found in zip(bench.networks, values):
        if None in found:
            rows.append([name, NOTHING, NOTHING, NOTHING])
            continue
        backward, exchange, hidden = zip(*found)
        rows.append([name, spread(backward), spread(exchange), percent(statistics.median(hidden))])
    return bench.headed(
        "What the backward pass hides",
        f"{BY_MESSAGES}From `--profile`, two processes with a thread each; median of {bench.runs} runs (and their "
        "range), a run's first two steps left out. Half: both convolutions lost half of their channels. The backward pass includes "
        "waiting for the last sum. Sums take from when a rank has the gradients of a bucket until their sum is there, "
        "so that waiting for the other rank counts; hidden is what lies before the last bucket of a step is ready.",
        ["network", "backward pass, ms a step", "sums of gradients, ms a step", "hidden"],
        rows,
    )


def overlap(events):
    """Milliseconds a step of backward passes and of sums, and the hidden share of these; None if there are no sums."""
    sums = [event for event in events if event["name"] == "all-reduce"]
    if not sums:
        return None
    passes = collections.defaultdict(list)
    for event in sorted(events, key=lambda event: event["ts"]):
        if event["name"] == "backward":
            passes[event["pid"]].append(event)
    steps = []
    for rank, own_passes in passes.items():
        for one in own_passes[2:]:
            end = one["ts"] + one["dur"]
            own = [event for event in sums if event["pid"] == rank and one["ts"] <= event["ts"] < end]
            ready = max((event["ts"] for event in own), default=-math.inf)
            steps.append((one["dur"], covered(own, math.inf), covered(own, ready)))
    backward, exchange, hidden = (statistics.fmean(of) / 1000 for of in zip(*steps))
    return backward, exchange, hidden / exchange


def covered(events, until):
    """Length of the union of the events before a time."""
    length, reached = 0, -math.inf
    for event in sorted(events, key=lambda event: event["ts"]):
        end = min(event["ts"] + event["dur"], until)
        length += max(0, end - max(event["ts"], reached))
        reached = max(reached, end)
    return length


# ---- Bytes

SENT = 8  # the column of bytes that were sent


def sent(bench):
    variants = [(ranks, name) for ranks in bench.sizes.ranks if ranks > 1 for name in bench.networks]
    possible = subprocess.run(["unshare", "-m", "-n", "sh", "-c", f"{NO_MEMORY} && ip link set lo up"]).returncode == 0
    if possible:
        values = bench.interleaved("bytes", variants, lambda *variant: bytes_of_step(bench, *variant))
        words = bench.training(1, 1, recipe(1, NETWORKS["half"][0]), BATCH, *FEW_TESTS)
        params = bench.command.report(*words)["params"]
        rows = [row_of_bytes(*variant, params, found) for variant, found in zip(variants, values)]
    else:
        rows = [[name, str(ranks), *[NOTHING] * 5] for ranks, name in variants]
    return bench.headed(
        "Bytes that a rank sends in a step",
        f"{BY_MESSAGES}Counted on the loopback interface of a network namespace, headers and acknowledgements included, as the "
        f"difference between {bench.sizes.more} and {bench.sizes.few} steps; a ring of N ranks sends 2(N − 1)/N of the "
        f"gradients. Median of {bench.runs} runs.",
        ["network", "ranks", "parameters", "gradients", "2(N − 1)/N of them", "sent", "ratio"],
        rows,
    )


def bytes_of_step(bench, ranks, name):
    sizes, (prune, more) = bench.sizes, NETWORKS[name]

    def counted(steps):
        words = bench.training(ranks, 1, recipe(1, prune), steps * BATCH, *FEW_TESTS, *more)
        return int(bench.command.run(*words, before=COUNTED).split(":")[1].split()[SENT])

    return (counted(sizes.more) - counted(sizes.few)) / (sizes.more - sizes.few) / ranks


def row_of_bytes(ranks, name, params, found):
    count = params["after" if name == "half" else "before"]
    gradients = count * (2 if "half-gradients" in name else 4)
    least, median = gradients * 2 * (ranks - 1) / ranks, statistics.median(found)
    counts = [f"{x:,.0f}" for x in (count, gradients, least, median)]
    return [name, str(ranks), *counts, f"{median / least:.3f} ×"]


# ---- What is learnt


def learnt(bench):
    sizes = bench.sizes
    reports = {ranks: [cut_on_the_way(bench, ranks, seed) for seed in sizes.seeds] for ranks in sizes.ranks}
    alone = reports[sizes.ranks[0]]
    rows = []
    for ranks, found in reports.items():
        after = [report["accuracy"]["after"] for report in found]
        accuracies = [one["correct"] / one["total"] for one in after]
        apart = [abs(loss(one) - loss(other)) for one, other in zip(found, alone)]
        params = dict.fromkeys(f"{one['params']['before']:,} → {one['params']['after']:,}" for one in found)
        shown = "–" if found is alone else digits(max(apart))
        mean = percent(statistics.fmean(accuracies))
        rows.append([str(ranks), ", ".join(params), mean, span(accuracies, percent), shown])
    total = alone[0]["accuracy"]["after"]["total"]
    return bench.headed(
        "Cut on the way",
        f"{sizes.learnt:,} training images: an epoch, half of the channels of both convolutions removed, "
        f"{sizes.epochs} more epochs; {len(sizes.seeds)} seeds, a thread a rank. Accuracy: mean and range over the "
        f"seeds, on {total:,} test images. Difference of losses: the largest between a seed's training loss in the "
        "last epoch and that with one rank.",
        ["ranks", "parameters", "accuracy", "range", "difference of losses"],
        rows,
    )


def loss(report):
    return report["epochs"][-1]["loss"]


def cut_on_the_way(bench, ranks, seed):
    same = ["--seed", seed, "--memory-format", "contiguous", *(FEW_TESTS if bench.asked.quick else [])]
    asked = recipe(bench.sizes.epochs, {"warmup_epochs": 1, **HALF})
    report = bench.command.report(*bench.training(ranks, 1, asked, bench.sizes.learnt, *same))
    correct = report["accuracy"]["after"]["correct"]
    told(f"learnt: ranks {ranks}, seed {seed}: {correct} correct, loss {loss(report)}")
    return report


# ---- Recovery without training


def recovered(bench):
    if not bench.asked.model:
        return None
    able = "--processes" in bench.command.run("prune", "--help")
    layouts = [one for one in LAYOUTS if one[0] == 1 or able]
    values = bench.interleaved("recovery", layouts, lambda *one: least_squares(bench, *one))
    values = {one: [*zip(*found)] for one, found in zip(layouts, values)}
    rows = []
    for one in LAYOUTS:
        if one not in values:
            rows.append([layout(*one), *[NOTHING] * 4])
            continue
        seconds, before, after = values[one]
        errors = [significant(statistics.median(of), 4) for of in (before, after)]
        rows.append([layout(*one), spread(seconds), against(seconds, values[LAYOUTS[BASE]][0]), *errors])
    return bench.headed(
        f"Least squares: {bench.asked.model.stem}",
        "`prune --ratio 0.3 --recover least-squares`, the images as they are. Seconds of the recovery: median of "
        f"{bench.runs} runs that alternate (and their range). Output error is ‖small − dense‖ / ‖dense‖ on the "
        f"{bench.sizes.samples} images.",
        ["processes × threads", "seconds", "against 1 × 2", "output error, pruned", "recovered"],
        rows,
    )


def least_squares(bench, ranks, threads):
    line = f"--ratio 0.3 --no-verify --recover least-squares --samples {bench.sizes.samples} --threads {threads}"
    calibration = ["--calibration", f"cifar10:{bench.asked.cifar}", *processes(ranks)]
    words = ["prune", bench.asked.model, "-o", bench.at("small.onnx"), *line.split(), *calibration]
    recovery = bench.command.report(*words)["recovery"]
    step = recovery["steps"][0]
    return step["seconds"], recovery["before"]["output_error"], step["output_error"]


# ---- All of it

ABOUT = (
    "Training by `--processes` on one machine, whose ranks share memory: the CIFAR-10 CNN "
    f"(`--model cnn`, 2.1 million parameters), {BATCH} images a step, all ranks together, Adam. Between machines "
    "nothing was measured."
)


TABLES = {
    "epoch": times,
    "resnet20": resnet20,
    "exposed": exposed,
    "sent": sent,
    "learnt": learnt,
    "recovered": recovered,
}


def main():
    asked = parsed()
    load = os.getloadavg()[0]
    if load > 0.3:
        told(f"measure: the machine is not idle (load {load:.1f}); do not publish these times")
    with tempfile.TemporaryDirectory(prefix="parsimony-processes-") as folder:
        bench = Bench(asked, folder)
        tables = [TABLES[name](bench) for name in asked.only.split(",")]
    print(as_data({"title": "Several processes", "about": ABOUT, "tables": [*filter(None, tables)]}))


if __name__ == "__main__":
    main()
