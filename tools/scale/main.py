#!/usr/bin/env python3
"""Measures how the time of each stage grows with nodes, weights and samples, and writes docs/results/data/scale.json
and its page.

    tools/scale/main.py [OPTION...] [nodes] [weights] [programs] [samples]     all, or these

One thread, processor seconds, the least of several runs of each size. Needs a C compiler: a library
that is loaded before the command lets its clock count processor time, which other programs do not change.
With --work a run that was broken off goes on where it was.
"""

import functools
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import environment  # noqa: E402, F401
from tables.cells import significant  # noqa: E402
from tables.measured import table  # noqa: E402
from tables.runs import CACHE, COMMAND, DATA, Command, once, parser_of, publish, read  # noqa: E402

import networks  # noqa: E402
import numpy  # noqa: E402

CLOCK = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec* time) {
  return (int)syscall(SYS_clock_gettime, id == CLOCK_MONOTONIC ? CLOCK_PROCESS_CPUTIME_ID : id, time);
}
"""

STAGES = "read weights infer couple score plan check prove edit write".split()
NODES = (100, 1_000, 10_000, 100_000)
WEIGHTS = (10**5, 10**6, 10**7, 10**8)
SAMPLES = (16, 64, 256, 1_024, 4_096, 16_384)
SHORTEST = 0.002  # seconds; what takes less counts as this
ALLOWED = 1.1  # of n log n, between neighbours
ENGINES = {"onnxruntime": "ONNX Runtime", "libtorch": "libtorch"}
MOST_NODES = {"onnxruntime": 10_000}  # whose session takes minutes beyond
MOST_EXPORTED = 10_000  # nodes: torch.export takes 100 seconds for these


class Bench:
    """The command with its clock, and a folder for networks and data."""

    def __init__(self, asked, folder):
        self.asked, self.folder = asked, pathlib.Path(folder)
        self.command = Command(asked.command, folder)
        source, library = self.folder / "clock.c", self.folder / "clock.so"
        source.write_text(CLOCK)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-o", library], check=True)
        self.settings = {**os.environ, "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1"}

    def timings(self, name, model, *words, rounds=None):
        """{stage: processor seconds} of a network, which `model` makes; the least of several runs."""
        work = self.asked.work or self.folder
        found = once(work / f"{name}.json", lambda: self.least(model, words, rounds or self.asked.rounds))
        print(name, {stage: round(seconds, 4) for stage, seconds in found.items()}, flush=True)
        return found

    def least(self, model, words, rounds):
        path, found, network = self.folder / "report.json", {}, model()
        small = self.folder / f"small{network.suffix}"
        line = ["prune", network, "-o", small, "--ratio", "0.5", "--threads", "1", "-q", *words]
        for _ in range(rounds):
            self.command.run(*line, "--report", path, env=self.settings)
            for stage, seconds in read(path)["timings"].items():
                found[stage] = min(found.get(stage, seconds), seconds)
        return found

    def saved(self, family, sizes, kind="onnx"):
        """What saves a network when it is first needed, in place of the last one."""
        return functools.cache(lambda: save(family, sizes, self.folder / f"network.{kind}"))


def save(family, sizes, path):
    if path.suffix == ".onnx":
        networks.save(networks.FAMILIES[family](*sizes), path)
    else:
        line = [CACHE / "torch/bin/python", pathlib.Path(__file__).with_name("programs.py"), *sizes, path]
        subprocess.run([*map(str, line)], check=True)
    return path


def growths(sizes, seconds):
    """For neighbouring sizes: the exponent of the growth, and the growth divided by that of n log n."""
    pairs = [(n, max(t, SHORTEST)) for n, t in zip(sizes, seconds) if t is not None]
    for (n, before), (m, after) in zip(pairs, pairs[1:]):
        yield math.log(after / before) / math.log(m / n), after / before / (m * math.log(m) / (n * math.log(n)))


def verdict(sizes, seconds):
    """Cells: the largest exponent, the largest growth as a multiple of that of n log n, and what that means."""
    if all(t is None or t <= SHORTEST for t in seconds):
        return ["–", "–", "too short to tell"]
    exponents, against = zip(*growths(sizes, seconds))
    means = "within n log n" if max(against) <= ALLOWED else "**worse**"
    return [f"{max(exponents):.2f}", f"{max(against):.2f} ×", means]


def shown(seconds):
    return "–" if seconds is None else significant(1000 * seconds, 3) if seconds >= SHORTEST else "< 2"


def lines(sizes, stages):
    """Rows of a table: {stage: [seconds by size]}."""
    return [[stage, *map(shown, seconds), *verdict(sizes, seconds)] for stage, seconds in stages.items()]


def by_stage(runs, stages):
    """{stage: [seconds by size]} of the stages that any run had."""
    return {s: [run.get(s) for run in runs] for s in stages if any(s in run for run in runs)}


def column(size):
    return f"{size:,}"


def headed(title, about, axis, sizes, rows):
    columns = ["stage", *map(column, sizes), "largest exponent", "against n log n", "verdict"]
    return table(title, about, f"tools/scale/main.py {axis}", columns, rows)


def with_nodes(bench, family, kind="onnx"):
    runs, proofs = [], {engine: [] for engine in ENGINES}
    sizes = [count for count in bench.asked.nodes if kind == "onnx" or count <= MOST_EXPORTED]
    for count in sizes:
        model, name = bench.saved(family, networks.with_nodes(family, count), kind), f"{family}-nodes-{count}"
        name += "" if kind == "onnx" else f"-{kind}"
        # The system clears what memory it hands out, sometimes at a tenth of its speed.
        rounds = bench.asked.rounds * (1 if count < 100_000 else 2)
        runs.append(bench.timings(name, model, "--no-verify", rounds=rounds))
        for engine, proven in proofs.items():
            able = count <= MOST_NODES.get(engine, count)
            rounds = 1 if count > 1_000 else None
            words = [f"{name}-{engine}", model, "--engine", engine]
            proven.append(bench.timings(*words, rounds=rounds)["prove"] if able else None)
    found = by_stage(runs, STAGES)
    found.update({f"prove, {ENGINES[engine]}": seconds for engine, seconds in proofs.items()})
    about = {
        "residual": "Blocks of convolutions, BatchNormalization and a sum (seven nodes), eight channels wide.",
        "transformer": "Blocks of attention and two layers (22 nodes), eight channels wide.",
    }[family]
    about += (
        " Milliseconds. The proof runs both networks three times; ONNX Runtime spends most of it on opening them, "
        "as it does without Parsimony, and is left out where that takes minutes."
    )
    return headed(*titled("Nodes", family, kind, about), sizes, lines(sizes, found))


def titled(size, family, kind, about):
    """A table's title and text, and the axis that measures it."""
    if kind == "onnx":
        return f"{size}: {family}", about, size.lower()
    return f"{size}: {family}, `.{kind}`", f"The same as a program of torch.export. {about}", "programs"


def with_weights(bench, family, kind="onnx"):
    runs = []
    for count in bench.asked.weights:
        model, name = bench.saved(family, networks.with_weights(family, count), kind), f"{family}-weights-{count}"
        name += "" if kind == "onnx" else f"-{kind}"
        runs.append(bench.timings(name, model, rounds=2 if count >= 10**8 else None))
    about = {
        "residual": "34 nodes with convolutions of 3×3 and 1×1 on 4×4 positions; the channels grow.",
        "transformer": "Four blocks of attention and two layers, 94 nodes, four tokens; the channels grow.",
    }[family]
    sizes = bench.asked.weights
    titles = titled("Weights", family, kind, f"{about} Milliseconds.")
    return headed(*titles, sizes, lines(sizes, by_stage(runs, STAGES)))


# What is asked, and the stages that read samples.
WAYS = {
    "obs": (["--criterion", "obs", "--recover", "least-squares"], "unlabelled"),
    "wanda": (["--criterion", "wanda"], "unlabelled"),
    "taylor": (["--criterion", "taylor"], "labelled"),
    "fisher": (["--criterion", "fisher"], "labelled"),
    "fisher without labels": (["--criterion", "fisher"], "unlabelled"),
}


def with_samples(bench):
    random = numpy.random.default_rng(0)
    count, shape = max(bench.asked.samples) * 5 // 4, (3, networks.SIDE, networks.SIDE)  # a fifth is set aside
    x, y = bench.folder / "x.npy", bench.folder / "y.npy"
    numpy.save(x, random.standard_normal((count, *shape), dtype=numpy.float32))
    numpy.save(y, random.integers(networks.CLASSES, size=count))
    data = {"labelled": f"npy:{x},{y}", "unlabelled": f"npy:x={x}"}
    model, found = bench.saved("residual", (3, 16, networks.SIDE)), {}
    for way, (words, kind) in WAYS.items():
        runs = []
        for n in bench.asked.samples:
            line = ["--no-verify", *words, "--calibration", data[kind], "--samples", str(n)]
            runs.append(bench.timings(f"{way.replace(' ', '-')}-{n}", model, *line, rounds=2 if n > 1_000 else None))
        found.update({f"{s}, {way}": seconds for s, seconds in by_stage(runs, ["measure", "recover"]).items()})
    about = (
        "A network of 27 nodes, sixteen channels wide, images of 8×8; `measure` and `recover` with `obs` and least "
        "squares, `measure` with other criteria. Milliseconds, of which loading libtorch takes 200. The other stages "
        "do not read samples."
    )
    return headed("Samples", about, "samples", bench.asked.samples, lines(bench.asked.samples, found))


AXES = {
    "nodes": lambda bench: [with_nodes(bench, family) for family in networks.FAMILIES],
    "weights": lambda bench: [with_weights(bench, family) for family in networks.FAMILIES],
    "programs": lambda bench: [measure(bench, "residual", "pt2") for measure in (with_nodes, with_weights)],
    "samples": lambda bench: [with_samples(bench)],
}


def page(tables):
    return {
        "title": "How stages grow",
        "about": "Processor time of each stage in a thread, the least of several runs, over three decades of one size "
        "while the others stay. Of each stage: the largest exponent between neighbouring sizes, and the largest growth "
        f"between them divided by that of n log n; more than {ALLOWED} is called worse. Times below "
        f"{1000 * SHORTEST:.0f} ms count as {1000 * SHORTEST:.0f} ms: what grows below that is not told from noise. "
        "Other programs ran meanwhile: they do not count, but share the memory and its caches, which large sizes feel.",
        "tables": tables,
    }


def measured(asked):
    """Tables by axis; axes that were not asked for keep theirs."""
    path = DATA / "scale.json"
    old = read(path)["tables"] if path.exists() else []
    tables = []
    with tempfile.TemporaryDirectory(prefix="parsimony-scale-") as folder:
        bench = Bench(asked, folder)
        for axis, measure in AXES.items():
            if axis in asked.axes:
                commit = {"commit": asked.commit} if asked.commit else {}
                tables += [{**one, **commit} for one in measure(bench)]
            else:
                tables += [one for one in old if one["command"] == [f"tools/scale/main.py {axis}"]]
    return tables


def main():
    parser = parser_of(__doc__)
    parser.add_argument("axes", metavar="AXIS", nargs="*", help="nodes, weights, programs, samples")
    parser.add_argument("--rounds", type=int, default=3)
    for name, sizes in (("nodes", NODES), ("weights", WEIGHTS), ("samples", SAMPLES)):
        parser.add_argument(f"--{name}", metavar="N", type=int, nargs="+", default=sizes)
    parser.add_argument("--command", default=COMMAND, help="build/release/bin/parsimony")
    parser.add_argument("--work", metavar="DIR", type=pathlib.Path, help="keeps what was measured")
    parser.add_argument("--commit", help="of the command, if it was not built from this tree as it is")
    parser.add_argument("--no-page", action="store_true", help="leave docs/results as it is")
    asked = parser.parse_args()
    asked.axes = asked.axes or [*AXES]
    tables = measured(asked)
    if asked.no_page:
        print(json.dumps(tables, indent=1, ensure_ascii=False))
    else:
        publish("scale", page(tables))


if __name__ == "__main__":
    main()
