"""One tool on one network, in a process of its own; what came of it is kept in FOLDER."""

import json
import pathlib
import re
import subprocess

from tables.cells import is_proven
from tables.runs import ROOT, finished, once, read

HERE = ROOT / "tools" / "rivals"
HOURS = 10 * 3600  # seconds that all networks may take
LIMIT = 5 * 60  # and one of them
MEGABYTE = 2**20


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
        self.folder, self.command = asked.folder, asked.command
        self.names, self.again = asked.names, asked.again

    def together(self, kind, program, arguments):
        """What one process of `measure.py KIND ...` says of all networks that lack it."""
        lacking = [name for name in self.names if self.again or not self.kept(kind, name).exists()]
        for entry in python(program, [*arguments, *lacking]) if lacking else []:
            if "name" in entry:
                once(self.kept(kind, entry["name"]), lambda: entry, again=True)
        kept = {name: self.kept(kind, name) for name in self.names}
        return {name: read(path) if path.exists() else {"note": "no answer"} for name, path in kept.items()}

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
        subprocess.run([program, ROOT / "tools/rivals/export_onnx.py", self.folder, *self.names])

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
            about = {**counts, "note": before.get("note", after.get("note"))}
            return found | {key: value for key, value in about.items() if value is not None}

        return self.all("onnxsim", run)

    def inspected(self, file):
        done = finished([self.command, "inspect", "--json", file])
        if done.returncode != 0:
            return {"note": done.stderr.strip()}
        return {"macs": json.loads(done.stdout)["totals"]["macs"]}

    def pruned(self, name):
        small, report, time = (self.at(name, suffix) for suffix in ("small.pt2", "report.json", "time"))
        small.unlink(missing_ok=True)
        line = ["/usr/bin/time", "-f", "%U %S %M", "-o", time, self.command, "prune", self.at(name, "pt2")]
        line += ["-o", small, *"--ratio 0.5 -q --threads 1 --report".split(), report]
        done = finished(line, LIMIT)
        if done.returncode != 0:
            return {"note": done.stderr.strip()}
        user, system, kilobytes = map(float, time.read_text().splitlines()[-1].split())
        proven = is_proven(read(report))
        return {"seconds": user + system, "megabytes": kilobytes / 1024, "proven": proven}

    def all(self, tool, run):
        return {name: once(self.kept(tool, name), lambda: run(name), self.again) for name in self.names}

    def at(self, name, suffix):
        return self.folder / f"{name}.{suffix}"

    def kept(self, tool, name):
        return self.folder / "results" / tool / f"{name}.json"
