#!/usr/bin/env python3
"""What another tool makes of one network of tools/architectures: half of the channels removed by L1 norm.

    measure.py names                       the networks and their kinds
    measure.py versions                    of PyTorch and of the tools that this Python has
    measure.py layers TOOL NAME ...        the layers of each network that TOOL can prune
    measure.py run TOOL FOLDER NAME        prunes those layers, kept in FOLDER/results/layers.TOOL/NAME.json
    measure.py export FOLDER NAME ...      writes FOLDER/NAME.pt2, which Parsimony reads
    measure.py run onnxsim FOLDER NAME     prunes FOLDER/NAME.onnx, writes FOLDER/NAME.onnxsim.onnx
    measure.py count FOLDER NAME ...       runs FOLDER/NAME.small.pt2 and counts its MACs

Prints one line of JSON for each network. MACs are those of torch.utils.flop_counter. Time is that of the
processor, one thread; time and memory are of the whole process until the small network has run.
"""

import copy
import importlib.metadata
import json
import pathlib
import resource
import signal
import sys
import time
import warnings

RATIO = 0.5
SECONDS = 120  # that finding the layers of one network may take
TOLERANCE = 1e-4

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
warnings.simplefilter("ignore")


def network(name):
    import torch
    from architectures import weights

    torch.set_num_threads(1)
    # Convolutions of Debian 13's oneDNN give NaN at random; nor would fused recurrences be counted.
    torch.backends.mkldnn.set_flags(False)
    return weights.network(name)


def outputs(model, inputs):
    """All tensors that a run gives, in order."""
    from torch.utils._pytree import tree_flatten
    import torch

    return [x.detach() for x in tree_flatten(model(*inputs))[0] if isinstance(x, torch.Tensor)]


def alike(ours, theirs):
    return [x.shape for x in ours] == [x.shape for x in theirs]


def equal(ours, theirs):
    if not alike(ours, theirs):
        return False
    within = lambda x, y: (x - y).abs().max() <= TOLERANCE * y.abs().max().clamp(min=1e-6)
    return all(within(x, y) for x, y in zip(ours, theirs) if y.numel())


def macs(model, inputs):
    from torch.utils.flop_counter import FlopCounterMode

    counter = FlopCounterMode(display=False)
    with counter:
        model(*inputs)
    return counter.get_total_flops() // 2


class TorchAo:
    """torch.ao.pruning: traces the module with FX, and prunes where one of its patterns matches.

    BatchNorm is folded into convolutions first: no pattern has it.
    """

    def prunable(self, model, inputs):
        import torch
        from torch.fx.experimental.optimization import fuse
        from torch.ao.pruning._experimental.pruner import SaliencyPruner
        from torch.ao.pruning._experimental.pruner.match_utils import apply_match

        traced = torch.fx.symbolic_trace(fuse(model))
        modules, patterns = dict(traced.named_modules()), SaliencyPruner({}).patterns
        matches = lambda node: any(apply_match(modules, pattern, node, []) for pattern in patterns)
        found = [node.target for node in traced.graph.nodes if node.op == "call_module" and matches(node)]
        return list(dict.fromkeys(found))  # a module may be called twice

    def prune(self, model, inputs, layers):
        from torch import nn
        from torch.fx.experimental.optimization import fuse
        from torch.ao.pruning._experimental.pruner import LSTMSaliencyPruner, SaliencyPruner

        class Pruner(SaliencyPruner):
            def update_mask(self, module, tensor_name, **kwargs):
                kind = LSTMSaliencyPruner if isinstance(module, nn.LSTM) else SaliencyPruner
                kind.update_mask(self, module, tensor_name, **kwargs)

        model = fuse(model)
        original = copy.deepcopy(model)
        pruner = Pruner({"sparsity_level": RATIO})
        pruner.prepare(model, [one for name in layers for one in self.tensors(model, name)] or None)
        pruner.enable_mask_update = True
        pruner.step()
        return pruner.prune(), outputs(self.masked(original, pruner.state), inputs)

    def alone(self, model, inputs, name):
        return self.prune(model, inputs, [name])

    @staticmethod
    def masked(model, state):
        """`model` with zeros for what the masks remove. The tool's own hooks misplace biases of 3-D inputs."""
        parameters = dict(model.named_parameters())
        for weight, entry in state.items():
            bias = parameters.get(weight.replace("weight", "bias"))
            for parameter in [parameters[weight]] + [bias] * (bias is not None):
                parameter.data[~entry["mask"]] = 0
        return model

    @staticmethod
    def tensors(model, name):
        module = dict(model.named_modules())[name]
        weights = [key for key, _ in module.named_parameters() if key.startswith("weight")]
        return [{"tensor_fqn": f"{name}.{weight}"} for weight in weights]


class TorchPruning:
    """Torch-Pruning: follows the dependencies of a live module. Heads of attention are not told to it."""

    def prunable(self, model, inputs):
        from torch import nn

        convolutions = nn.modules.conv._ConvNd
        return [name for name, module in model.named_modules() if isinstance(module, (nn.Linear, convolutions))]

    def prune(self, model, inputs, layers):
        import torch_pruning as tp

        kept = [name for name in self.prunable(model, inputs) if layers and name not in layers]
        tp.pruner.MagnitudePruner(
            model,
            inputs,
            importance=tp.importance.MagnitudeImportance(p=1),
            pruning_ratio=RATIO,
            ignored_layers=[model.get_submodule(name) for name in kept],
        ).step()
        return model, None

    def alone(self, model, inputs, name):
        """The group of one layer: what is coupled with it goes, too."""
        import torch_pruning as tp

        graph = tp.DependencyGraph().build_dependency(model, example_inputs=inputs)
        layer = model.get_submodule(name)
        pruner = graph.get_pruner_of_module(layer)
        first = list(range(int(pruner.get_out_channels(layer) * RATIO)))
        graph.get_pruning_group(layer, pruner.prune_out_channels, idxs=first).prune()
        return model, None


TOOLS = {"torch_ao": TorchAo, "torch_pruning": TorchPruning}


def short(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def works(prune, name, *what):
    """Is the pruned network smaller, and are its outputs like before, and equal to those of the masked one?"""
    model, inputs = network(name)
    small, masked = prune(copy.deepcopy(model), inputs, *what)
    after = outputs(small, inputs)
    same = alike(after, outputs(model, inputs)) and (masked is None or equal(after, masked))
    return same and macs(small, inputs) < macs(model, inputs)


def layers_of(tool, name):
    """The layers with which `tool` copes when each is tried alone: what a patient user would name."""
    found = []
    for layer in tool.prunable(*network(name)):
        try:
            if works(tool.alone, name, layer):
                found.append(layer)
        except TimeoutError:
            raise
        except Exception:  # whatever it says: it is not a layer for this tool
            pass
    return found


def layers(tool_name, name):
    """Those, and whether the tool manages alone: with all layers that it knows, as it does by default."""
    tool = TOOLS[tool_name]()
    signal.signal(signal.SIGALRM, timed_out)
    signal.alarm(SECONDS)
    try:
        entry = {"name": name, "layers": layers_of(tool, name)}
    except Exception as error:  # what it says is the answer
        entry = {"name": name, "layers": [], "note": short(error)}
    try:
        entry["alone"] = works(tool.prune, name, [])
    except Exception:
        entry["alone"] = False
    signal.alarm(0)
    return entry


def timed_out(*_):
    raise TimeoutError(f"more than {SECONDS} s")


def usage():
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": time.process_time(), "megabytes": peak}


def loaded():
    """Size in MB of the libraries and Python modules that this process has loaded."""
    maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
    files = {line.split(None, 5)[5] for line in maps if line.count("/") and not line.endswith("(deleted)")}
    files |= {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    known = [pathlib.Path(file) for file in files if file and file.startswith("/") and not file.startswith("/dev")]
    return sum(file.stat().st_size for file in {file.resolve() for file in known if file.is_file()}) / 2**20


def run(tool_name, folder, name):
    if tool_name == "onnxsim":
        return onnxsim(folder, name)
    model, inputs = network(name)
    tool = TOOLS[tool_name]()
    before = outputs(model, inputs)
    chosen = json.loads((folder / "results" / f"layers.{tool_name}" / f"{name}.json").read_text())["layers"]
    small, masked = tool.prune(copy.deepcopy(model), inputs, chosen) if chosen else (model, None)
    after = outputs(small, inputs)
    entry = {**usage(), "runs": alike(after, before), "equal": masked is None or equal(after, masked)}
    return {**entry, "before": macs(model, inputs), "macs": macs(small, inputs), "loaded": loaded()}


def export(folder, name):
    import torch

    model, inputs = network(name)
    torch._dynamo.reset()
    start = time.process_time()
    torch.export.save(torch.export.export(model, inputs), folder / f"{name}.pt2")
    return {"name": name, "seconds": time.process_time() - start, "macs": macs(model, inputs)}


def onnxsim(folder, name):
    import numpy
    import onnx
    import onnxsim as tool

    model = onnx.load(folder / f"{name}.onnx")
    small = tool.apply_structured_pruning(model, sparsity=RATIO)
    onnx.save(small, folder / f"{name}.onnxsim.onnx")
    entry = {**usage(), "loaded": loaded()}
    specs = (folder / f"{name}.inputs").read_text().split()
    shapes = [[int(n) for n in spec.split(":")[0].split("x")] for spec in specs]
    whole = [":" in spec for spec in specs]
    draw = numpy.random.default_rng(0)
    feeds = [
        draw.integers(0, 2, shape) if one else draw.standard_normal(shape).astype("float32")
        for shape, one in zip(shapes, whole)
    ]
    named = dict(zip([value.name for value in model.graph.input], feeds))
    after, before = ([y.shape for y in run_onnx(one, named)] for one in (small, model))
    return {**entry, "runs": after == before, "equal": True}


def run_onnx(model, feeds):
    try:
        import onnxruntime
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(model).run(None, feeds)
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)


def count(folder, name):
    import torch

    try:
        small = torch.export.load(folder / f"{name}.small.pt2").module()
    except Exception as error:
        if loads(folder / f"{name}.pt2"):
            raise
        return {"name": name, "unreadable": short(error)}
    model, inputs = network(name)
    return {"name": name, "runs": alike(outputs(small, inputs), outputs(model, inputs)), "macs": macs(small, inputs)}


def loads(path):
    """PyTorch 2.6 does not read all files that it writes."""
    import torch

    try:
        torch.export.load(path)
    except Exception:
        return False
    return True


def versions():
    found = {}
    for package in "torch", "torch_pruning", "onnxsim":
        try:
            module = __import__(package)
        except ImportError:
            continue
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = getattr(module, "__version__", "")
    return found


def lines(function, names):
    for name in names:
        try:
            entry = function(name)
        except Exception as error:  # what it says is the answer
            entry = {"name": name, "note": short(error)}
        print(json.dumps(entry), flush=True)


def main():
    what, *rest = sys.argv[1:]
    if what == "names":
        from architectures import NETWORKS

        print(json.dumps({name: kind for name, (kind, _, _) in NETWORKS.items()}))
    elif what == "versions":
        print(json.dumps(versions()))
    elif what == "run":
        lines(lambda name: run(rest[0], pathlib.Path(rest[1]), name), rest[2:])
    elif what == "layers":
        lines(lambda name: layers(rest[0], name), rest[1:])
    else:
        function, folder = {"export": export, "count": count}[what], pathlib.Path(rest[0])
        lines(lambda name: function(folder, name), rest[1:])


if __name__ == "__main__":
    main()
