"""Each tool as its own examples call it. A function takes a network, an input and how much leaves it, and returns the
small network: a module, or the bytes of an ONNX file for those that take one.

`ratio` is the share of the channels of every layer that leaves; `share` of the MACs is what remains, for tools that are
given a budget.
"""

import subprocess


def parsimony(model, x, ratio=None, share=None, only=(), **_):
    """docs/guide/python.md."""
    import parsimony

    if only:
        parsimony.prune(model, x, config_list=[{"op_names": list(only), "sparse_ratio": ratio}])
    elif share:
        parsimony.prune(model, x, budget=f"macs={100 * share:g}%", criterion="group_norm", scope="isomorphic")
    else:
        parsimony.prune(model, x, ratio=ratio)
    return model


def parsimony_onnx(file, command, ratio, **_):
    """README.md: the command, with its proof."""
    small = file.with_suffix(".small.onnx")
    line = [command, "prune", file, "-o", small, "--force", "-q", "--threads", "1", "--ratio", ratio]
    done = subprocess.run([*map(str, line)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return small.read_bytes()


def left(model, only):
    """{name: layer} of those that are not to be pruned: all but `only`, or the last one, which gives the classes."""
    from torch import nn

    layers = {name: one for name, one in model.named_modules() if isinstance(one, (nn.Linear, nn.Conv2d))}
    return {name: one for name, one in layers.items() if name not in (only or list(layers)[:-1])}


def torch_pruning(model, x, ratio=None, share=None, only=(), **_):
    """The readme's quickstart; reproduce/main.py, which prunes the whole network in small steps to a budget."""
    import torch_pruning as tp

    if not share:
        importance = tp.importance.MagnitudeImportance(p=1)
        ignored = list(left(model, only).values())
        tp.pruner.BasePruner(model, x, importance=importance, pruning_ratio=ratio, ignored_layers=ignored).step()
        return model
    before, _ = tp.utils.count_ops_and_params(model, x)
    pruner = tp.pruner.BasePruner(
        model,
        x,
        importance=tp.importance.GroupMagnitudeImportance(p=2),
        global_pruning=True,
        pruning_ratio=1.0,
        iterative_steps=400,
        ignored_layers=list(left(model, only).values()),
    )
    while tp.utils.count_ops_and_params(model, x)[0] > share * before:
        pruner.step()
    return model


def onnxsim(file, ratio, **_):
    """Its docstrings: what is simplified first has no BatchNormalization behind its convolutions."""
    import onnxsim

    whole, _ = onnxsim.simplify(str(file))
    file.with_suffix(".simple.onnx").write_bytes(whole.SerializeToString())
    return onnxsim.apply_structured_pruning(whole, sparsity=ratio).SerializeToString()


def fastnas(model, x, images, score, share=None, ratio=None, divisor=32, **_):
    """examples/pruning/cifar_resnet.ipynb: a search for the network of the highest score within a budget."""
    import modelopt.torch.prune as mtp

    share = share or (1 - ratio) ** 2
    rule = lambda kind: {"*": {f"{kind}_divisor": divisor}}
    small, _ = mtp.prune(
        model=model,
        mode=[("fastnas", {"nn.Conv2d": rule("channel"), "nn.BatchNorm2d": rule("feature")})],
        constraints={"flops": f"{100 * share:g}%"},
        dummy_input=x,
        config={"data_loader": images, "collect_func": lambda batch: batch, "score_func": score},
    )
    return small


def nni(model, x, ratio, only=(), **_):
    """examples/compression/pruning/norm_pruning.py: masks first, layers that depend on each other alike, then cut."""
    from nni.compression.pruning import L1NormPruner
    from nni.compression.speedup import ModelSpeedup
    from nni.compression.utils import auto_set_denpendency_group_ids

    chosen = [{"op_types": ["Conv2d", "Linear"], "sparse_ratio": ratio, "exclude_op_names": list(left(model, only))}]
    chosen = auto_set_denpendency_group_ids(model, chosen, x)
    pruner = L1NormPruner(model, chosen)
    _, masks = pruner.compress()
    pruner.unwrap_model()
    return ModelSpeedup(model, x, masks).speedup_model()
