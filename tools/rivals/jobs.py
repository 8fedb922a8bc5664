"""One tool on one network, in a process of its own; what came of it is kept in FOLDER."""

import json
import pathlib
import re
import subprocess

from tables.runs import ROOT, read

HERE = ROOT / "tools" / "rivals"
HOURS = 10 * 3600  # seconds that all networks may take
LIMIT = 5 * 60  # and one of them
MEGABYTE = 2**20


def finished(line, limit=None):
    """A process that has ended; its code is None if it took too long."""
    line = [*map(str, line)]
    try:
        return subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired as late:
        said = (text.decode() if text else "" for text in (late.stdout, late.stderr))
        return subprocess.CompletedProcess(line, None, *said)


def python(program, arguments, limit=HOURS):
    """The lines of JSON that measure.py prints; `program` may be several words."""
    done = finished([*program.split(), HERE / "measure.py", *arguments], limit)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    said = done.stderr.strip().splitlines()
    return found or [{"note": said[-1] if said else f"ended with {done.returncode}"}]


def loaded_by(command):
    """Size in MB of the command, its component for libtorch, and the libraries that they load."""
    command = pathlib.Path(command)
    component = command.parent.parent / "lib/parsimony/parsimony_torch.so"
    files = [file for file in (command, component) if file.exists()]
    libraries = [path for file in files for path in re.findall(r"(/\S+) \(0x", finished(["ldd", file]).stdout)]
    whole = {pathlib.Path(file).resolve() for file in [*files, *libraries]}
    return sum(file.stat().st_size for file in whole) / MEGABYTE


class Jobs:
    def __init__(self, asked):
        self.folder, self.command, self.names, self.again = (
            asked.folder,
            asked.command,
            asked.names,
            asked.again,
        )

    def together(self, kind, program, arguments):
        """What one process of `measure.py KIND ...` says of all networks that lack it."""
        lacking = [name for name in self.names if self.again or not self.kept(kind, name).exists()]
        for entry in python(program, [*arguments, *lacking]) if lacking else []:
            if "name" in entry:
                self.keep(kind, entry["name"], entry)
        return {
            name: read(self.kept(kind, name)) if self.kept(kind, name).exists() else {"note": "no answer"}
            for name in self.names
        }

    def export(self, program):
        return self.together("export", program, ["export", self.folder])

    def live(self, tool, program):
        """Finds the layers that `tool` can prune, and prunes them."""
        layers = self.together(f"layers.{tool}", program, ["layers", tool])

        def run(name):
            if not layers[name].get("layers"):
                return {"note": layers[name].get("note") or "no layer"}
            return python(program, ["run", tool, self.folder, name], LIMIT)[0]

        return {name: {**layers[name], **found} for name, found in self.all(tool, run).items()}

    def export_onnx(self, program):
        subprocess.run([program, ROOT / "tools/coverage/export.py", self.folder, "onnx", *self.names])

    def parsimony(self, program):
        """Prunes the .pt2 files; PyTorch runs the small ones and counts their MACs."""
        runs = self.all("parsimony", self.pruned)
        counts = self.together("count", program, ["count", self.folder])
        return {name: {**self.counted(name, counts[name]), **run} for name, run in runs.items()}

    def counted(self, name, count):
        """What PyTorch counted; or Parsimony, where PyTorch does not even read the original that it wrote."""
        if not count.get("unreadable"):
            return count
        macs = read(self.at(name, "report.json"))["macs"]
        return {"before": macs["before"], "macs": macs["after"], "unreadable": True}

    def onnxsim(self, program):
        """onnxsim's files, whose MACs Parsimony counts: before and after by the same rules."""

        def run(name):
            found = python(program, ["run", "onnxsim", self.folder, name], LIMIT)[0]
            if found.get("note"):
                return found
            before, after = (self.inspected(self.at(name, suffix)) for suffix in ("onnx", "onnxsim.onnx"))
            counts = {"before": before.get("macs"), "macs": after.get("macs")}
            return {**found, **given({**counts, "note": before.get("note", after.get("note"))})}

        return self.all("onnxsim", run)

    def inspected(self, file):
        done = finished([self.command, "inspect", "--json", file])
        if done.returncode != 0:
            return {"note": done.stderr.strip()}
        return {"macs": json.loads(done.stdout)["totals"]["macs"]}

    def pruned(self, name):
        small, report, time = (self.at(name, suffix) for suffix in ("small.pt2", "report.json", "time"))
        small.unlink(missing_ok=True)
        line = [
            self.command,
            "prune",
            self.at(name, "pt2"),
            "-o",
            small,
            "--ratio",
            "0.5",
            "-q",
            "--report",
            report,
        ]
        done = finished(["/usr/bin/time", "-f", "%U %S %M", "-o", time, *line, "--threads", "1"], LIMIT)
        if done.returncode != 0:
            return {"note": done.stderr.strip()}
        user, system, kilobytes = map(float, time.read_text().splitlines()[-1].split())
        proof = read(report)["proof"]
        proven = bool(proof["ran"] and proof.get("holds"))
        return {"seconds": user + system, "megabytes": kilobytes / 1024, "proven": proven}

    def all(self, tool, run):
        return {name: self.one(tool, name, run) for name in self.names}

    def one(self, tool, name, run):
        kept = self.kept(tool, name)
        return read(kept) if kept.exists() and not self.again else self.keep(tool, name, run(name))

    def at(self, name, suffix):
        return self.folder / f"{name}.{suffix}"

    def kept(self, tool, name):
        return self.folder / "results" / tool / f"{name}.json"

    def keep(self, tool, name, entry):
        path = self.kept(tool, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(entry, ensure_ascii=False))
        return entry


def given(entry):
    return {key: value for key, value in entry.items() if value is not None}
