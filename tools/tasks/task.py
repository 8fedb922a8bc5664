"""One of the ten networks with its data in a folder: what was prepared or answered once stays there."""

import pathlib
import subprocess

import numpy
import tensors
from networks import NETWORKS
from oracle.model import Model, open_image_sizes
from oracle.runtime import Session
from PIL import Image
from sources import PARTS
from tables.runs import inputs_of, parser_of

ALL = ",".join(NETWORKS)
HEIGHT, GAP = 240, 8  # of drawn answers


def parser_of_tasks(text):
    parser = parser_of(text)
    parser.add_argument("--networks", default=ALL)
    parser.add_argument("--folder")
    parser.add_argument("command", metavar="PARSIMONY")
    parser.add_argument("shared", metavar="SHARED")
    return parser


class Task:
    def __init__(self, name, shared, root):
        self.name, self.shared, self.folder = name, pathlib.Path(shared), pathlib.Path(root) / name
        self.network = network = NETWORKS[name]
        self.folder.mkdir(parents=True, exist_ok=True)
        parts = [self.samples_of(part, lambda: network.inputs(self.shared, part)) for part in PARTS]
        self.all = len(next(iter(parts[0].values())))
        self.samples = min(network.counts[0], self.all)
        self.model = self.shared / "models/onnx" / f"{network.file}.onnx"
        if network.opened:
            open_image_sizes(self.model, self.at("opened.onnx"))
            self.model = self.at("opened.onnx")

    def at(self, file):
        return self.folder / file

    def samples_of(self, part, make):
        path = self.at(f"{part}.safetensors")
        if not path.exists():
            tensors.save(path, make())
        return tensors.load(path)

    def answers(self, model, part):
        """Those of MODEL.onnx in the folder, or of 'dense'."""
        file = self.model if model == "dense" else self.at(f"{model}.onnx")
        samples = self.samples_of(part, lambda: self.network.shown())
        return self.samples_of(f"{model}.{part}", lambda: run_samples(file, samples, self.network))

    def value(self, model):
        """{error, value} of MODEL.onnx on the test part."""
        dense, small = self.answers("dense", "test"), self.answers(model, "test")
        difference = sum(numpy.sum((small[name].astype(float) - dense[name]) ** 2) for name in dense)
        whole = sum(numpy.sum(dense[name].astype(float) ** 2) for name in dense)
        value = self.network.value(dense, small, self.shared)
        return {"error": float(numpy.sqrt(difference / whole)), "value": value}

    def run(self, command, arguments, samples):
        """Runs the command on so many samples of the calibration part."""
        data = ["--calibration", f"safetensors:{self.at('calibration.safetensors')}", "--samples", str(samples)]
        data += ["--states", "auto"] if self.network.states else []
        fixed = inputs_of(f"{name}={value}" for name, value in self.network.fixed.items())
        line = [command, *arguments, *data, *fixed]
        subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)

    def draw(self, path, models):
        """Draws what models answer to the picture, side by side."""
        images = [self.network.picture(self.answers(model, "shown")) for model in models]
        images = [i.resize((round(i.width * HEIGHT / i.height), HEIGHT), Image.LANCZOS) for i in images]
        whole = Image.new("RGB", (sum(i.width + GAP for i in images) - GAP, HEIGHT), "white")
        left = 0
        for image in images:
            whole.paste(image, (left, 0))
            left += image.width + GAP
        whole.save(path, quality=80, optimize=True)


def run_samples(model, samples, network):
    """Runs a model on samples one after the other; states go from each run to the next.

    samples: {input: array} with an axis of samples in front of the input's shape, or in place of its
    first size. The first run has zeros as states. Returns an array for each output that is no state,
    with the samples in front.
    """
    inputs = Model.read(model).inputs
    session = Session(model, "all", 2)
    carried, results = {}, {}

    def fed(one, k):
        if one.name in samples:
            sample = samples[one.name][k]
            return sample if sample.ndim == len(one.dims) else sample[None]
        sizes = [dim if isinstance(dim, int) else 1 for dim in one.dims]
        return carried.get(one.name, numpy.full(sizes, network.fixed.get(one.name, 0), one.type))

    for k in range(min(map(len, samples.values()))):
        answers = session.run({one.name: fed(one, k) for one in inputs})
        carried = {into: answers[out] for into, out in network.states.items()}
        for name in answers.keys() - set(network.states.values()):
            answer = answers[name].astype(numpy.float32)
            results.setdefault(name, []).append(answer[0] if answer.shape[:1] == (1,) else answer)
    return {name: numpy.stack(results[name]) for name in session.outputs if name in results}
