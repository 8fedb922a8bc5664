#!/usr/bin/env python3
"""Ends ranks of a training by force and by other mishaps, and looks whether all end, whether the
message names the rank, and whether the run resumes to the same weights, byte for byte.

    tools/ranks/kills.py [--times 20] [--seed 1] [--processes 2] [--only WORD] PARSIMONY

Each time a random rank gets SIGKILL at a random moment of a run that is cut twice. Then, once each:
a rank that hangs, signals to all and to the process that started them, ranks with other settings,
networks or data, a full disk (as root, on a small tmpfs), a store that a killed job has left.
--only runs the checks whose names hold WORD. Exit codes: 0 all passed, 1 not all, 2 usage.
"""

import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from tables.runs import parser_of  # noqa: E402

# Seconds that a rank waits for another; that the command waits for the others when one has failed;
# and that a busy machine may take.
RANK_TIMEOUT, GRACE, BUSY = 60, 20, 20

PRUNE = {
    "warmup_epochs": 1,
    "schedule": "agp",
    "steps": 2,
    "criterion": "taylor",
    "config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}],
}


class Run:
    """A command in a process group of its own."""

    def __init__(self, command, folder, words, **variables):
        self.folder, self.begin = folder, time.monotonic()
        temporary = folder / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "TMPDIR": str(temporary), "OMP_NUM_THREADS": "1", **variables}
        self.errors = tempfile.TemporaryFile(mode="w+")
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": self.errors}
        line = [command, *map(str, words)]
        self.child = subprocess.Popen(line, cwd=folder, env=environment, start_new_session=True, **pipes)

    def outcome(self):
        """The exit code; -9 where it was ended by signal 9; None while it runs."""
        return self.child.poll()

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def last_line(self):
        return (self.said().splitlines() or [""])[-1]

    def members(self):
        """Those of its group that are alive: {process: rank, or None for the one that started them}."""
        found = {}
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                status, _, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                if int(group) == self.child.pid and status != "Z":
                    rank = re.search(rb"(?:^|\0)RANK=(\d+)", (entry / "environ").read_bytes())
                    found[int(entry.name)] = rank and int(rank[1])
            except OSError:
                pass  # It has ended meanwhile.
        return found

    def until(self, condition):
        """What the condition gives once it holds; None if the run ends before."""
        while self.outcome() is None:
            found = condition()
            if found:
                return found
            time.sleep(0.01)
        return None

    def process_of(self, rank):
        return self.until(lambda: next((pid for pid, own in self.members().items() if own == rank), None))

    def has_checkpoint(self):
        return self.until((self.folder / "c").exists)

    def ended(self, limit):
        """Seconds until it has ended; inf, and its end by force, if that takes more than `limit`."""
        begin = time.monotonic()
        try:
            self.child.wait(limit)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self.child.wait()
            return math.inf
        return time.monotonic() - begin

    def signal(self, number):
        try:
            os.killpg(self.child.pid, number)
        except ProcessLookupError:
            pass  # None is left.

    def faults(self, took, exit_code=None):
        """Of how it ended: too late, otherwise than `exit_code`, or without some of its processes."""
        for _ in range(50):
            if not self.members():
                break
            time.sleep(0.1)
        orphans = list(self.members())
        self.signal(signal.SIGKILL)
        if took == math.inf:
            yield "does not end"
        elif exit_code is not None and self.outcome() != exit_code:
            yield f"exit code {self.outcome()}"
        if orphans:
            yield f"processes {orphans} go on"

    def temporary(self):
        return [path.name for path in (self.folder / "tmp").glob("parsimony*")]

    def weights(self):
        path = self.folder / "o.pt"
        return path.read_bytes() if path.exists() else None


class Bench:
    """Where runs begin, and what an undisturbed one gives."""

    def __init__(self, asked, root):
        self.command, self.processes, self.root = asked.command.resolve(), asked.processes, root
        self.recipe, self.other = root / "recipe.json", root / "other.json"
        self.recipe.write_text(json.dumps({"prune": PRUNE}))
        self.other.write_text(json.dumps({"prune": {**PRUNE, "criterion": "l1"}}))
        first = self.finished(self.folder("whole"), self.together())
        if first.outcome() != 0:
            sys.exit(f"the undisturbed run ended with {first.outcome()}: {first.said()}")
        self.whole, self.seconds = first.weights(), time.monotonic() - first.begin

    def folder(self, name):
        folder = self.root / re.sub(r"\W+", "_", name)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def words(self, changes):
        """Of a training; `changes` are {option: value}."""
        options = {
            "--model": "cnn", "--data": "shapes:96,32", "--config": self.recipe, "--epochs": 1, "--batch": 16,
            "--seed": 1, "--threads": 1, "--memory-format": "contiguous", "--rank-timeout": RANK_TIMEOUT,
            "-o": "o.pt", **changes,
        }  # fmt: skip
        return ["train", "--deterministic", *(word for item in options.items() for word in item)]

    def together(self, **changes):
        options = {"--" + key.replace("_", "-"): value for key, value in changes.items()}
        return self.words({"--processes": self.processes, "--checkpoint": "c", **options})

    def run(self, folder, words, **variables):
        return Run(self.command, folder, words, **variables)

    def finished(self, folder, words):
        run = self.run(folder, words)
        run.ended(300)
        return run

    def resumed(self, folder, words=None):
        """Resumes it and compares; what is wrong."""
        run = self.finished(folder, words or self.together())
        if run.outcome() != 0:
            complaints = re.findall(r"^(?:rank \d+: )?parsimony: .*", run.said(), re.MULTILINE)
            yield f"resuming ended with {run.outcome()}: {' | '.join(complaints)}"
        elif run.weights() != self.whole:
            yield "the weights differ"

    def ranks(self, folders, words, **variables):
        """Two ranks, as a launcher starts them."""
        own = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", **variables}
        return [self.run(folders[rank], words[rank], RANK=str(rank), **own) for rank in (0, 1)]

    def pair(self, folder, changes, own):
        """Two ranks until they have ended; the second with other options."""
        places = [folder / str(rank) for rank in (0, 1)]
        words = [self.words(own), self.words({**own, **changes})]
        runs = self.ranks(places, words, PARSIMONY_STORE=f"file:{folder / 'store'}")
        for run in runs:
            run.ended(RANK_TIMEOUT + BUSY)
        return runs


# ---- kills


def kills(bench, times, tell):
    passed, longest, number = 0, 0, 1
    while number <= times:
        rank, moment = random.randrange(bench.processes), random.random() * bench.seconds
        folder = bench.folder(f"kill {number}")
        found = killed(bench, folder, rank, moment)
        shutil.rmtree(folder)
        if found is None:
            continue  # It was quicker this time: another moment.
        took, said, began, problems = found
        passed += not problems
        longest = max(longest, took)
        reached = re.findall(r"^(?:warm|before|cut|epoch|pruned|at the).*", said, re.MULTILINE) or ["start"]
        name = f"kill {number}: rank {rank} at {moment:.2f} s ({reached[-1][:14]})"
        tell(name, problems, f"ended after {took:.1f} s, {began}")
        number += 1
    if times:
        print(f"{passed} of {times} kills passed; all processes ended within {longest:.1f} s", flush=True)


def killed(bench, folder, rank, moment):
    """Seconds until all had ended, what was said, how it went on, what is wrong; None if it ended before."""
    run = bench.run(folder, bench.together())
    time.sleep(moment)
    victim = run.process_of(rank)
    if victim is None:
        return None
    os.kill(victim, signal.SIGKILL)
    took = run.ended(RANK_TIMEOUT + GRACE + BUSY)
    problems = list(run.faults(took, exit_code=128 + 9))
    if run.outcome() == 0:
        return None
    began = "resumed" if (folder / "c").exists() else "begun again"
    if f"rank {rank} (process {victim}) was terminated by signal 9" not in run.said():
        problems.append("does not name the rank")
    if run.temporary():
        problems.append(f"leaves {run.temporary()}")
    return took, run.said(), began, [*problems, *bench.resumed(folder)]


# ---- once each: what is wrong, and a note


def hang(rank):
    def check(bench, folder):
        timeout = 5
        run = bench.run(folder, bench.together(rank_timeout=timeout))
        victim = run.process_of(rank)
        run.has_checkpoint()
        os.kill(victim, signal.SIGSTOP)
        took = run.ended(timeout + GRACE + BUSY)
        problems = list(run.faults(took, exit_code=4))
        if not re.search(rf"rank \d of \d on [^:]*: rank {rank} is lost or did not arrive in time", run.said()):
            problems.append("does not say so")
        return [*problems, *bench.resumed(folder)], f"ended after {took:.1f} s"

    return check


def signalled(number, to_all):
    def check(bench, folder):
        run = bench.run(folder, bench.together())
        run.has_checkpoint()
        (run.signal if to_all else run.child.send_signal)(number)
        took = run.ended(BUSY)
        problems = list(run.faults(took))
        # Nobody can tidy up after SIGKILL.
        if run.temporary() and number != signal.SIGKILL:
            problems.append(f"leaves {len(run.temporary())} temporary folder")
        problems += bench.resumed(folder)
        return problems, f"ended after {took:.1f} s with {run.outcome()}"

    return check


def differing(what, changes, own=None, prepare=None):
    def check(bench, folder):
        if prepare:
            prepare(folder)
        runs = bench.pair(folder, changes(bench), own or {})
        said, problems = f"rank 1 and rank 0 differ in {what}", []
        for rank, run in enumerate(runs):
            if run.outcome() != 2:
                problems.append(f"rank {rank} ended with {run.outcome()}")
            if said not in run.said():
                problems.append(f"rank {rank} says: {run.last_line()}")
            if run.weights() is not None:
                problems.append("writes a file")
        return problems, said

    return check


def images(folder):
    """Array files of images, other ones for each rank."""

    def save(path, kind, shape, data):
        header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)

    count = 64
    for rank in (0, 1):
        place = folder / str(rank)
        place.mkdir()
        pixels = bytes((i * 7 + rank * (i % 13)) % 256 for i in range(count * 3 * 32 * 32))
        save(place / "x.npy", "|u1", (count, 3, 32, 32), pixels)
        save(place / "y.npy", "<i8", (count,), struct.pack(f"<{count}q", *(i % 10 for i in range(count))))


def full_disk(bench, folder):
    disk = folder / "disk"
    disk.mkdir()
    # Room for one checkpoint, but not for the next beside it.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", disk], check=True)
    try:
        words = bench.together(checkpoint=disk / "c")
        run = bench.finished(folder, words)
        problems = list(run.faults(0))
        if run.outcome() == 0:
            problems.append("ends with 0")
        message = re.search(r".*No space left on device.*", run.said())
        if not message:
            problems.append("does not say so")
        left = sorted(path.name for path in disk.iterdir())
        if left != ["c"]:
            problems.append(f"leaves {','.join(left) or 'nothing'}")
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        problems += bench.resumed(folder, words)
        said = message[0].replace(str(folder), "") if message else ""
        return problems, f"exit code {run.outcome()}: {said}"
    finally:
        subprocess.run(["umount", disk], check=True)


def left_store(bench, folder):
    def start(job):
        words = bench.words({"--checkpoint": "c", "--store": f"file:{folder / 'store'}"})
        return bench.ranks([folder, folder], [words, words], SLURM_JOB_ID=job)

    runs = start("1")
    runs[0].has_checkpoint()
    for run in runs:
        run.signal(signal.SIGKILL)
        run.child.wait()
    again = start("2")
    for run in again:
        run.ended(RANK_TIMEOUT + BUSY + bench.seconds)
    codes = [run.outcome() for run in again]
    if any(codes):
        return [f"the next start with this store ended with {codes}: {again[0].last_line()}"], ""
    return [] if again[0].weights() == bench.whole else ["the weights differ"], ""


CHECKS = {
    "hang: rank 0 is stopped": hang(0),
    "hang: rank 1 is stopped": hang(1),
    "Ctrl-C: SIGINT to all": signalled(signal.SIGINT, to_all=True),
    "SIGTERM to the one that started them": signalled(signal.SIGTERM, to_all=False),
    "SIGKILL to the one that started them": signalled(signal.SIGKILL, to_all=False),
    "another seed on rank 1": differing("the settings", lambda _: {"--seed": 2}),
    "another recipe on rank 1": differing("the settings", lambda bench: {"--config": bench.other}),
    "another network on rank 1": differing("the network", lambda _: {"--model": "resnet20"}),
    "another data set on rank 1": differing("the data", lambda _: {"--data": "shapes:112,32"}),
    "other bytes in the data of rank 1": differing(
        "the data", lambda _: {}, own={"--data": "npy:x.npy,y.npy"}, prepare=images
    ),
    "a full disk for the checkpoint": full_disk,
    "a store that a killed job has left": left_store,
}


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", metavar="WORD", default="")
    parser.add_argument("command", metavar="PARSIMONY", type=pathlib.Path)
    asked = parser.parse_args()
    random.seed(asked.seed)
    outcomes = []

    def tell(name, problems, note):
        outcomes.append(not problems)
        verdict = f"FAILED: {', '.join(problems)}" if problems else "passed"
        print(f"{name:44} {verdict}{'; ' + note if note else ''}", flush=True)

    with tempfile.TemporaryDirectory(prefix="kills-") as root:
        bench = Bench(asked, pathlib.Path(root))
        print(f"undisturbed: {bench.seconds:.1f} s, {asked.processes} ranks, seed {asked.seed}", flush=True)
        kills(bench, asked.times if asked.only in "kill" else 0, tell)
        for name, check in CHECKS.items():
            if asked.only not in name or (check is full_disk and os.getuid() != 0):
                continue
            try:
                tell(name, *check(bench, bench.folder(name)))
            except (OSError, subprocess.SubprocessError) as error:
                tell(name, [str(error)], "")
    bad = outcomes.count(False)
    print(f"{bad} of {len(outcomes)} failed" if bad else f"all {len(outcomes)} passed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
