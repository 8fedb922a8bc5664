#!/usr/bin/env python3
"""What a step of training costs in two ranks over links of several delays and rates; a model of that,
checked on links that it was not fitted to; and what it says about many ranks.

    tools/ranks/scale.py [--delays 0,5,20] [--rates 100,300,1000] [--epochs 2] [--page FILE] PARSIMONY > scale.json
    tools/ranks/scale.py --from scale.json [--page FILE]

The ranks stand in two network namespaces, joined by link.py (as root). Delays are milliseconds one
way, rates Mbit/s. The model is fitted to the four corners of the grid, dense and pruned; the other
links are held back. --from takes the measurements of an earlier run; --page writes them as text.
"""

import contextlib
import json
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from scale_page import page  # noqa: E402
from tables.measured import measured  # noqa: E402
from tables.runs import parser_of, read  # noqa: E402

BATCH = 64
STEPS = 8  # in an epoch
BUCKETS = 2  # of the gradients of `cnn`: the linear layers, the convolutions
TRAIN = (
    f"train --model cnn --data shapes:{BATCH * STEPS},16 --batch {BATCH} --evaluate-every 0 --seed 1 --threads 1 "
    "--memory-format contiguous --no-verify --rank-timeout 120 -o model.pt --report report.json --profile trace.json "
    "--store tcp:10.77.0.1:29500"
)


def parsed():
    def numbers(text):
        return [json.loads(word) for word in text.split(",")]

    parser = parser_of(__doc__)
    parser.add_argument("command", metavar="PARSIMONY", nargs="?", type=pathlib.Path)
    parser.add_argument("--delays", type=numbers, default="0,5,20")
    parser.add_argument("--rates", type=numbers, default="100,300,1000")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--from", dest="earlier", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path)
    asked = parser.parse_args()
    if not asked.command and not asked.earlier:
        parser.error("PARSIMONY or --from is required")
    return asked


def rounded(value):
    return float(f"{value:.4g}")


# ---- measuring


class Links:
    """Two network namespaces, and what runs in them; both end with the context."""

    def __init__(self, asked):
        self.asked, self.spaces = asked, [f"scale{os.getpid()}{end}" for end in "ab"]
        self.command = asked.command.resolve()

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        self.root = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="scale-")))
        for space in self.spaces:
            subprocess.run(["ip", "netns", "add", space], check=True)
            self.stack.callback(subprocess.run, ["ip", "netns", "del", space])
            # A rank reaches its own address over it.
            subprocess.run(["ip", "-n", space, "link", "set", "lo", "up"], check=True)
        prune = {
            "warmup_epochs": self.asked.epochs,
            "criterion": "l1",
            "config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}],
        }
        self.recipe = self.root / "recipe.json"
        self.recipe.write_text(json.dumps({"prune": prune}))
        return self

    def __exit__(self, *_):
        self.stack.close()

    @contextlib.contextmanager
    def started(self, line, **settings):
        """A process that does not outlive the context."""
        with subprocess.Popen([*map(str, line)], **settings) as process:
            try:
                yield process
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait()

    @contextlib.contextmanager
    def joined(self, delay, rate):
        script = pathlib.Path(__file__).with_name("link.py")
        words = ["--between", *self.spaces, "--delay", delay, "--rate", rate, "--queue", 1000, "--mtu", 9000]
        with self.started(["/usr/bin/python3", script, *words], stdout=subprocess.PIPE) as link:
            link.stdout.readline()  # It is ready.
            yield

    def rank(self, rank, folder):
        train = [*TRAIN.split(), "--config", self.recipe, "--epochs", self.asked.epochs]
        own = {"RANK": str(rank), "WORLD_SIZE": "2", "GLOO_SOCKET_IFNAME": "link0", "OMP_NUM_THREADS": "1"}
        return self.started(
            ["ip", "netns", "exec", self.spaces[rank], self.command, *train],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, **own},
        )

    def measured(self, delay, rate):
        """The entries of the dense and of the pruned network."""
        folder = self.root / f"{delay}-{rate}"
        folder.mkdir()
        with self.joined(delay, rate), self.rank(0, folder) as first, self.rank(1, folder) as second:
            codes = first.wait(), second.wait()
        if any(codes):
            raise RuntimeError(f"exit codes {codes} at {delay} ms, {rate} Mbit/s")
        params = read(folder / "report.json")["params"]
        steps, cut = steps_of(read(folder / "trace.json")["traceEvents"]), self.asked.epochs * STEPS
        yield entry("dense", delay, rate, params["before"], steps[:cut])
        yield entry("pruned", delay, rate, params["after"], steps[cut:])


def steps_of(events):
    """Seconds of each step of rank 0: {all, forward}."""
    steps, step = [], {}
    for event in events:
        if (event["pid"], event["tid"]) != (events[0]["pid"], events[0]["tid"]):
            continue
        step[event["name"]] = step.get(event["name"], 0) + event["dur"] / 1e6
        if event["name"] == "rest":
            if step.get("backward"):
                steps.append({"all": sum(step.values()), "forward": step["forward"]})
            step = {}
    return steps


def entry(network, delay, rate, parameters, steps):
    used = steps[2:]  # The first make buffers and fill caches.
    seconds = [step["all"] for step in used]
    return {
        "network": network,
        "delay_ms": delay,
        "rate_mbit": rate,
        "bytes": 4 * parameters,
        "steps": len(used),
        "seconds": rounded(statistics.median(seconds)),
        "least": rounded(min(seconds)),
        "most": rounded(max(seconds)),
        "forward": rounded(statistics.median(step["forward"] for step in used)),
    }


# ---- the model

# Backward is taken as twice forward, and both as nearly all that is computed.
BACKWARD = 2 / 3


def communication(size, buckets, latency, bandwidth, n=2):
    """Seconds that gradients of `size` bytes take: ring all-reduce among n, in buckets."""
    return latency * 2 * (n - 1) * buckets + 2 * (n - 1) / n * (size / bandwidth)


class Model:
    def __init__(self, compute, rounds, per_byte, overlap):
        self.compute, self.rounds, self.per_byte, self.overlap = compute, rounds, per_byte, overlap

    def step(self, link):
        own, latency = self.compute[link["network"]], self.rounds * link["delay_ms"] / 1000
        bandwidth = 1 / (8 / (link["rate_mbit"] * 1e6) + self.per_byte)
        exchange = communication(link["bytes"], BUCKETS, latency, bandwidth)
        return own + max(0, exchange - self.overlap * BACKWARD * own)

    def loss(self, entries):
        """The sum of relative errors, which a step that was disturbed does not bend."""
        errors = (abs(math.log(self.step(e) / e["seconds"])) for e in entries)
        return math.inf if self.overlap > 1 else sum(errors)


def normals():
    """Numbers of the normal distribution, from a generator with a seed."""
    state = 1

    def uniform():
        nonlocal state
        state = (state * 1664525 + 1013904223) % 2**32
        return (state + 0.5) / 2**32

    while True:
        yield math.sqrt(-2 * math.log(uniform())) * math.cos(2 * math.pi * uniform())


def fit(entries):
    """The least loss. The model has kinks, so by random steps, which shrink."""

    def compute(network):
        return statistics.median(e["forward"] for e in entries if e["network"] == network) / (1 - BACKWARD)

    computes = {network: compute(network) for network in ("dense", "pruned")}
    best, normal, size = [1, 1e-8, 0.5], normals(), 0.5
    least = Model(computes, *best).loss(entries)
    while size > 1e-5:
        for _ in range(2000):
            x = [each * math.exp(size * next(normal)) for each in best]
            value = Model(computes, *x).loss(entries)
            if value < least:
                least, best = value, x
        size *= 0.9
    return Model(computes, *best)


RANKS = 8, 32, 128, 512, 1024
RATES = 10, 100, 400  # Gbit/s
# A network of the size of ResNet-50; messages through TCP on one switch.
ASSUMED = {"parameters": 25.6e6, "latency": 25e-6, "bucket": 25 * 2**20}


def many():
    def seconds(n, gbit, share):
        size = 4 * ASSUMED["parameters"] * share
        buckets = math.ceil(size / ASSUMED["bucket"]) + 1  # a small one goes first
        return rounded(communication(size, buckets, ASSUMED["latency"], gbit * 1e9 / 8, n))

    def row(n, gbit):
        return {"ranks": n, "gbit": gbit, "dense": seconds(n, gbit, 1), "pruned": seconds(n, gbit, 0.5)}

    return [row(n, gbit) for n in RANKS for gbit in RATES]


# ---- what is told


def result(links, where):
    edges = {key: {choose(e[key] for e in links) for choose in (min, max)} for key in ("delay_ms", "rate_mbit")}
    for link in links:
        link["fitted"] = all(link[key] in ends for key, ends in edges.items())
    model = fit([link for link in links if link["fitted"]])
    for link in links:
        link["computed"] = rounded(model.step(link))
        link["error"] = rounded(link["computed"] / link["seconds"] - 1)

    def sizes(fitted):
        return [abs(link["error"]) for link in links if link["fitted"] == fitted]

    held = sizes(False)
    return {
        **where,
        "links": links,
        "model": {
            "compute": {network: rounded(seconds) for network, seconds in model.compute.items()},
            "rounds": rounded(model.rounds),
            "perByte": rounded(model.per_byte),
            "overlap": rounded(model.overlap),
            "buckets": BUCKETS,
        },
        "errors": {
            "fitted": {"median": rounded(statistics.median(sizes(True)))},
            "held_back": {"median": rounded(statistics.median(held)), "most": rounded(max(held))} if held else None,
        },
        "assumed": ASSUMED,
        "many": many(),
    }


def main():
    asked = parsed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    if asked.earlier:
        earlier = read(asked.earlier)
        links, where = earlier["links"], {key: earlier[key] for key in ("date", "commit", "machine")}
    else:
        with Links(asked) as spaces:
            pairs = [(delay, rate) for delay in asked.delays for rate in asked.rates]
            links, where = [link for pair in pairs for link in spaces.measured(*pair)], measured()
    found = result(links, where)
    print(json.dumps(found, indent=1, ensure_ascii=False))
    if asked.page:
        asked.page.write_text(page(found))


if __name__ == "__main__":
    main()
