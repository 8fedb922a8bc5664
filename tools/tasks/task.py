"""One of the ten networks with its data in a folder: what was prepared or answered once stays there."""

import json
import pathlib
import subprocess

import numpy
import tensors
from oracle.model import Model, open_image_sizes
from oracle.runtime import Session
from tables.runs import inputs_of, once, parser_of

ALL = "yolox_nano,nanodet,ultraface,candy,espcn,SINet,DTLN_model_1,gtcrn,silero,Magika"

PYTHON = "/usr/bin/python3"  # Debian's, which has what tasks.py needs
SCRIPT = pathlib.Path(__file__).with_name("tasks.py")


def tasks(*arguments):
    """Runs tasks.py; its answer."""
    line = [PYTHON, SCRIPT, *arguments]
    return subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True).stdout


def parser_of_tasks(text):
    parser = parser_of(text)
    parser.add_argument("--networks", default=ALL)
    parser.add_argument("--folder")
    parser.add_argument("command", metavar="PARSIMONY")
    parser.add_argument("shared", metavar="SHARED")
    return parser


class Task:
    def __init__(self, name, shared, root):
        self.name, self.shared, self.folder = name, shared, pathlib.Path(root) / name
        self.folder.mkdir(parents=True, exist_ok=True)
        about = once(self.at("about.json"), lambda: json.loads(tasks("prepare", name, shared, self.folder)))
        self.measure, self.states, self.fixed = about["measure"], about["states"], about["fixed"]
        self.samples, self.all, self.shown = about["samples"], about["all"], about["shown"]
        self.model = pathlib.Path(shared) / "models/onnx" / f"{about['file']}.onnx"
        if about["opened"]:
            open_image_sizes(self.model, self.at("opened.onnx"))
            self.model = self.at("opened.onnx")

    def at(self, file):
        return self.folder / file

    def outputs(self, model, part):
        """The answers of MODEL.onnx in the folder, or of 'dense'; a path."""
        path = self.at(f"{model}.{part}.safetensors")
        file = self.model if model == "dense" else self.at(f"{model}.onnx")
        if not path.exists():
            samples = tensors.load(self.at(f"{part}.safetensors"))
            tensors.save(path, run_samples(file, samples, self.states, self.fixed))
        return path

    def value(self, model):
        """{error, value} of MODEL.onnx on the test part."""
        dense, small = self.outputs("dense", "test"), self.outputs(model, "test")
        return json.loads(tasks("value", self.name, self.shared, dense, small))

    def run(self, command, arguments, samples):
        """Runs the command on so many samples of the calibration part."""
        data = ["--calibration", f"safetensors:{self.at('calibration.safetensors')}", "--samples", str(samples)]
        data += ["--states", "auto"] if self.states else []
        line = [command, *arguments, *data, *inputs_of(f"{name}={value}" for name, value in self.fixed.items())]
        subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)

    def draw(self, path, models):
        """Draws what models answer to the picture, side by side."""
        tasks("draw", self.name, path, *(self.outputs(model, "shown") for model in models))


def run_samples(model, samples, states, fixed):
    """Runs a model on samples one after the other; states go from each run to the next.

    samples: {input: array} with an axis of samples in front of the input's shape, or in place of its
    first size; states: {input: output}, the first run has zeros; fixed: {input: number}. Returns an
    array for each output that is no state, with the samples in front.
    """
    inputs = Model.read(model).inputs
    session = Session(model, "all", 2)
    carried, results = {}, {}

    def fed(one, k):
        if one.name in samples:
            sample = samples[one.name][k]
            return sample if sample.ndim == len(one.dims) else sample[None]
        sizes = [dim if isinstance(dim, int) else 1 for dim in one.dims]
        return carried.get(one.name, numpy.full(sizes, fixed.get(one.name, 0), one.type))

    for k in range(min(map(len, samples.values()))):
        answers = session.run({one.name: fed(one, k) for one in inputs})
        carried = {into: answers[out] for into, out in states.items()}
        for name in answers.keys() - set(states.values()):
            answer = answers[name].astype(numpy.float32)
            results.setdefault(name, []).append(answer[0] if answer.shape[:1] == (1,) else answer)
    return {name: numpy.stack(results[name]) for name in session.outputs if name in results}
