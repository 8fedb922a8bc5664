"""The command's other tasks: explanations, sensitivity, export."""

from __future__ import annotations

import importlib.util
import json
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Union

import torch
from torch import Tensor, nn

from . import scores as scoring
from .command import run_command
from .engine import Engine, Samples, run_on_data
from .errors import VerificationError
from .inputs import Inputs, evaluating
from .program import Program
from .proof import compare, outputs_of
from .pruning import bare
from .request import Config, config_of


def explain(
    model: nn.Module,
    example_inputs: Any,
    *,
    node: Optional[str] = None,
    config_list: Optional[Config] = None,
    granularity: Optional[str] = None,
    as_text: bool = False,
) -> Any:
    """Explains which channels are coupled and what cannot be pruned, and why. Changes nothing.

    Args:
        example_inputs: as for `prune`.
        node: restrict the result to this layer or weight.
        config_list: return the settings of every layer in this config list instead.
        granularity: as for `prune`.
        as_text: return the command's text instead of its JSON object.

    Returns:
        The `groups` (members: tensor, axis, role) and what cannot be pruned, with reasons.

    Raises:
        Error: the command's, if an argument is not valid.
    """
    with tempfile.TemporaryDirectory(prefix="parsimony_") as name:
        folder = Path(name)
        program = Program(bare(model), Inputs.of(example_inputs))
        program.save(folder / "model.pt2", scoring.of_weights(program, "l1"))
        arguments: List[Any] = ["explain", folder / "model.pt2"]
        if config_list is not None:
            file = folder / "config.json"
            file.write_text(json.dumps(config_of(config_list, {})))
            arguments += ["--config", file]
        arguments += ["--node", node] if node is not None else []
        arguments += ["--granularity", granularity] if granularity is not None else []
        text = run_command(arguments if as_text else [*arguments, "--json"])
    return text if as_text else json.loads(text)


class Sensitivity(NamedTuple):
    """How sensitive the outputs are to each group.

    `curves` is the command's JSON object; `config_list` the proposal, if a ratio was passed.
    """

    curves: Dict[str, Any]
    config_list: Optional[Any]
    text: str


def sensitivity(
    model: nn.Module,
    example_inputs: Any,
    *,
    ratio: Optional[Union[str, float]] = None,
    ratios: Optional[Sequence[Union[str, float]]] = None,
    criterion: str = "l1",
    data: Optional[Iterable[Any]] = None,
    samples: int = 16,
    seed: int = 1,
) -> Sensitivity:
    """Measures the relative error of the outputs when only one group is pruned, for each group.

    Args:
        example_inputs: as for `prune`.
        ratio: propose ratios of equal error that remove this share of all channels: 0.5 or "50%".
        ratios: the shares of a group to try, 0.1 to 0.9 by default.
        data: batches, as for `prune`, on which networks run in torch on the module's device; with
            classes as labels the curves show the loss of accuracy.
        samples: number of samples of the data, at least as many as the example inputs have, or of
            random inputs.

    Returns:
        The curves, and the proposal as a config list for `prune`.

    Raises:
        Error: the command's, if an argument is not valid.
    """
    with tempfile.TemporaryDirectory(prefix="parsimony_") as name:
        folder = Path(name)
        program = Program(bare(model), Inputs.of(example_inputs))
        program.save(folder / "model.pt2", {})
        curves, config = folder / "curves.json", folder / "config.json"
        arguments: List[Any] = ["sensitivity", folder / "model.pt2"]
        arguments += ["--criterion", criterion, "--json", curves, "--threads", 1]
        arguments += ["--seed", seed]
        arguments += ["--ratio", ratio, "--config-out", config] if ratio is not None else []
        arguments += ["--ratios", ",".join(map(str, ratios))] if ratios is not None else []
        if data is None:
            text = run_command([*arguments, "--samples", samples])
        else:
            engine = Engine(program, Samples(program, data, samples))
            text, _ = run_on_data(arguments, engine, folder)
        proposal = json.loads(config.read_text()) if ratio is not None else None
        return Sensitivity(json.loads(curves.read_text()), proposal, text)


def export_onnx(
    model: nn.Module,
    example_inputs: Any,
    path: Union[str, Path],
    *,
    dynamic_batch: bool = False,
    options: Sequence[str] = (),
) -> None:
    """Exports a module, in evaluation mode, to ONNX, and compares what the file computes in ONNX
    Runtime with the module: for the example, for random inputs, and for another batch size if that is
    dynamic. Without the package onnxruntime, a warning says that it was not compared.

    Args:
        example_inputs: as for `prune`.
        path: the output file, written if it computes what the module does.
        dynamic_batch: make the first dimension of inputs and outputs symbolic.
        options: further options of `parsimony export`.

    Raises:
        VerificationError: the file computes something else.
        Error: the command's.
    """
    with tempfile.TemporaryDirectory(prefix="parsimony_") as name:
        file, made = Path(name) / "model.pt2", Path(name) / "model.onnx"
        program = Program(bare(model), Inputs.of(example_inputs), outputs_only=True)
        program.save(file, {})
        arguments = ["export", file, "-o", made, *options]
        run_command(arguments + (["--dynamic-batch"] if dynamic_batch else []))
        if importlib.util.find_spec("onnxruntime") is None:
            warnings.warn(f"{path} was not compared with the module: install onnxruntime")
        elif any(x.dtype == torch.bfloat16 for x in program.inputs.tensors()):
            warnings.warn(f"{path} was not compared with the module: numpy has no bfloat16")
        else:
            _compare_with_file(program, made, dynamic_batch)
        shutil.move(made, path)


def _compare_with_file(program: Program, path: Path, dynamic_batch: bool) -> None:
    import onnxruntime

    examples = [program.inputs, program.inputs.random(1)]
    if dynamic_batch:
        batch = program.inputs.tensors()[0].shape[:1]
        examples.append(examples[1].map(lambda x: _one_more(x) if x.shape[:1] == batch else x))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    read = {value.name for value in session.get_inputs()}
    found = []
    for example in examples:
        fed = dict(zip(program.names, example.tensors()))
        answers = session.run(
            None, {name: x.detach().cpu().numpy() for name, x in fed.items() if name in read}
        )
        found.append([torch.from_numpy(answer) for answer in answers])
    with evaluating(program.module):
        expected = [[y.cpu() for y in one] for one in outputs_of(program.module, examples)]
    fault = compare("the module", expected, found, "the ONNX file").fault
    if fault:
        raise VerificationError(fault)


def _one_more(x: Tensor) -> Tensor:
    return torch.cat([x, x[:1]])
