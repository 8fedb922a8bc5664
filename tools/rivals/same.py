"""The tools that PyPI has, beside Parsimony, on the same networks: ten of torchvision, and two that are trained."""

import json
import os
import signal

from jobs import HERE
from packages import installed
from speed import NAMES
from tables.runs import ROOT, finished, once, read

TRAINED = {"resnet20": 3, "resnet56": 9}  # blocks of a stage
LIMIT = 300  # seconds of the processor for one tool and one network
HALF = {"ratio": 0.5}
TOOLS = {  # {tool: how callings.py is asked}
    "parsimony": {"call": "parsimony", **HALF},
    "parsimony_onnx": {"call": "parsimony_onnx", **HALF},
    "torch_pruning": {"call": "torch_pruning", **HALF},
    "onnxsim": {"call": "onnxsim", **HALF},
    "nni_old": {"call": "nni", **HALF},
    "fastnas": {"call": "fastnas", **HALF},
}
WHOLE = {  # of the trained ones, to half of the MACs
    "parsimony": {"call": "parsimony", "share": 0.5},
    "torch_pruning": {"call": "torch_pruning", "share": 0.5},
    "onnxsim": {"call": "onnxsim", **HALF},
    "fastnas": {"call": "fastnas", "share": 0.5},
    "nni_old": {"call": "nni", "ratio": 0.3},
}
RECOVERY = {"steps": 100, "batch": 64, "rate": 0.02}
INNER = ("parsimony", "torch_pruning", "nni_old")  # again, told the layers


class Same:
    def __init__(self, asked):
        self.folder, self.shared = asked.folder.resolve(), asked.shared.resolve()
        self.python, self.again = asked.onnx_python, asked.again
        self.command, chosen = str(asked.command), asked.names or [*NAMES, *TRAINED]
        self.ten, self.trained = ([name for name in known if name in chosen] for known in (NAMES, TRAINED))
        self.packages = installed(self.folder, self.python)

    def run(self):
        """{tool: {network: what came of it}} of the ten, {network: {tool: …}} of the trained ones, what NNI says today."""
        asked = [(name, tool, how) for name in self.ten for tool, how in TOOLS.items()]
        asked += [(name, tool, how) for name in self.trained for tool, how in ways(name)]
        for one in asked:
            self.pruned(*one)
        self.judge([(name, tool) for name, tool, _ in asked])
        ten = {tool: {name: self.found(name, tool) for name in self.ten} for tool in TOOLS}
        trained = {name: {tool: self.tuned(name, tool) for tool, _ in ways(name)} for name in self.trained}
        return ten, trained, self.pruned(NAMES[0], "nni", TOOLS["nni_old"])

    def at(self, name, tool, what):
        return self.folder / "results" / tool / f"{name}.{what}.json"

    def pruned(self, name, tool, how):
        def run():
            if not (self.folder / f"{name}.pth").exists():
                self.one("make", name)
            given = {**how, "command": self.command} if tool == "parsimony_onnx" else how
            found = self.one("prune", name, tool, json.dumps(given), of=tool.partition(".")[0])[0]
            print(name, tool, found, flush=True)
            return found

        return once(self.at(name, tool, "pruned"), run, self.again)

    def judge(self, pairs):
        """Those that were pruned, in one process."""
        lacking = [one for one in pairs if "note" not in read(self.at(*one, "pruned"))]
        lacking = [one for one in lacking if self.again or not self.at(*one, "judged").exists()]
        for said in self.one("judge", self.command, *map(":".join, lacking)) if lacking else []:
            if "pair" in said:  # else the process died
                once(self.at(*said["pair"].split(":"), "judged"), lambda: said, again=True)

    def found(self, name, tool):
        judged = self.at(name, tool, "judged")
        return read(self.at(name, tool, "pruned")) | (read(judged) if judged.exists() else {})

    def tuned(self, name, tool):
        found = self.found(name, tool)
        if "note" in found:
            return found
        run = lambda: self.one("recover", name, tool, json.dumps(RECOVERY))[0]
        return found | once(self.at(name, tool, "tuned"), run, self.again)

    def one(self, what, *words, of=None):
        """The lines of one.py, run by the Python and with the packages of the tool `of`."""
        python, folders = [self.python], [self.packages[of]] if of in self.packages else []
        if of == "nni_old":
            base = finished([self.python, "-c", "import sys; print(sys._base_executable)"]).stdout.strip()
            python, folders = [base, "-s"], [self.packages["torch_2_0"], self.packages["nni"]]
        settings = {
            "PYTHONPATH": ":".join(map(str, [*folders, ROOT / "python"])),
            "PARSIMONY_COMMAND": self.command,
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
        }
        limit = ["prlimit", f"--cpu={LIMIT}"] if what == "prune" else []
        line = [*limit, *python, "-W", "ignore", HERE / "one.py", what, self.shared, self.folder, *words]
        done = finished(line, env={**os.environ, **settings})
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL) and limit:
            return [{"note": f"not done in {LIMIT} s"}]
        said = done.stderr.strip().splitlines()
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return lines or [{"note": said[-1] if said else f"ended with {done.returncode}"}]


def ways(name):
    blocks = range(TRAINED[name])
    only = [f"layer{stage}.{block}.conv1" for stage in (1, 2, 3) for block in blocks]
    inner = {f"{tool}.inner": {"call": WHOLE[tool]["call"], "only": only, **HALF} for tool in INNER}
    return {**WHOLE, **inner}.items()
