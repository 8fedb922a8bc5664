"""The settings of a pruning, as the command takes them. Made from api/prune_settings.cc."""

from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Sequence, TypedDict, Union


class Setting(NamedTuple):
    default: Any
    help: str


class Settings(TypedDict, total=False):
    ratio: float
    criterion: str
    op_types: Sequence[str]
    exclude: Sequence[str]
    scope: str
    budget: Union[str, Mapping[str, Any]]
    round_to: Union[str, int]
    force: bool
    granularity: Union[str, int]
    exact_only: bool
    allow_mixing: bool
    rescale: bool
    constants: str
    on_failure: str
    layers: Union[str, int]
    seed: int
    input: Sequence[str]
    no_verify: bool
    threads: Union[str, int]
    states: Sequence[str]
    free: Sequence[str]
    calibration: str
    samples: int
    image: str
    device: str
    mean: Sequence[float]
    std: Sequence[float]
    recover: Sequence[str]
    ridge: float
    rounds: int
    recover_epochs: int
    recover_lr: float
    recover_minutes: float
    match: Sequence[str]
    engine: str
    onnxruntime: str
    provider: str
    latency_table: str
    batch: int
    latency_command: str
    latency_runs: int
    latency_timeout: float
    latency_retries: int


SETTINGS: Dict[str, Setting] = {
    "ratio": Setting(
        0.0,
        "Share of the budget to remove, 0 <= RATIO < 1: 0.5 or 50%",
    ),
    "criterion": Setting(
        "l1",
        "What ranks channels or elements: apoz, block, bn_scale, fisher, fpgm, group_norm, hrank, l1, l2, lamp, level, linf, mean_activation, mean_activation_rank, movement, nm, obd, random, sparsegpt, taylor, taylor_squared, wanda, wanda_elements (l1); with numbers: 2:4, sparsegpt:2:4, block:4x1",
    ),
    "op_types": Setting(
        [],
        "Only these: Conv,Gemm or Conv2d,Linear",
    ),
    "exclude": Setting(
        [],
        "Layers not to prune, by names or patterns ('*.mlp.*'), up to the next option",
    ),
    "scope": Setting(
        "local",
        "The ratio holds for each layer (local, the default), for all together (global), for those in like sub-graphs together (isomorphic), or for all together by what the outputs lose (outputs)",
    ),
    "budget": Setting(
        "channels",
        "What the ratio is a share of: channels (the default), params, macs or weights; or, without --ratio, what may remain: params=1.5M, macs=2e9, macs=40%, latency_ms=5",
    ),
    "round_to": Setting(
        "1",
        "Keep a multiple of K channels; auto: of what the hardware computes well, see --target",
    ),
    "target": Setting(
        "",
        "With --round-to auto, what the network will run on: x86-avx2, x86-avx512, arm-neon, cuda-tensorcore or generic (this processor)",
    ),
    "force": Setting(
        False,
        "Also where less than a thousandth of the network may remain",
    ),
    "granularity": Setting(
        "channel",
        "What is removed as one: channel, head, head_dim or group",
    ),
    "exact_only": Setting(
        False,
        "Do not prune groups whose removal changes what remains (LayerNorm, softmax)",
    ),
    "allow_mixing": Setting(
        False,
        "Prune all of these, also outcomes of a softmax that are weighed by position",
    ),
    "rescale": Setting(
        False,
        "Let numbers such as 1/sqrt(d) follow a size that was cut; by default they keep what the network was trained with",
    ),
    "constants": Setting(
        "drop",
        "What a removed channel leaves behind: nothing (drop), or the constant that zero weights leave, folded into what remains (exact)",
    ),
    "on_failure": Setting(
        "refuse",
        "Where the proof fails: refuse, or exclude the group at fault and prune the others",
    ),
    "layers": Setting(
        None,
        "Residual blocks to remove, those that change least on --calibration first: 3, 25% of them, or auto: as many as serve the --budget best",
    ),
    "seed": Setting(
        0,
        "For criteria that draw at random (0)",
    ),
    "input": Setting(
        [],
        "Size of a graph input that the model leaves open, in order or by name: 1x3x32x32, 2x8:int64, :int64=16000 (a scalar), mask=1x64; mask=1 gives all elements a value",
    ),
    "no_verify": Setting(
        False,
        "Do not run the masked original and the smaller model to prove the result",
    ),
    "threads": Setting(
        None,
        "Cores that computations side by side may use: a number, or auto (the default): all; what is written does not depend on it. Where networks are timed, the threads of each; auto measures",
    ),
    "states": Setting(
        [],
        "Outputs that the next run takes as inputs, such as caches; both lose the same channels. auto finds them by names and shapes",
    ),
    "free": Setting(
        [],
        "An input or output, or an axis of it, that may lose channels",
    ),
    "calibration": Setting(
        "",
        "Data, with labels or without: audio:DIR, cifar10:DIR, cifar100:DIR, folder:DIR, images:DIR, mnist:DIR, npy:NAME=FILE,…, npy:X,Y[,XTEST,YTEST], npz:FILE, random:COUNT, safetensors:FILE, shapes[:TRAIN,TEST], text:FILE[,length=N][,labels]",
    ),
    "samples": Setting(
        256,
        "The first N of its training part (256), or so many random inputs",
    ),
    "image": Setting(
        "",
        "What images:DIR does to them: resize=N|HxW, crop=N|HxW, letterbox[=PAD], rgb|bgr|grey, nchw|nhwc, scale=S, mean=A/B/C, std=A/B/C",
    ),
    "device": Setting(
        "cpu",
        "Where they run: auto, cpu (unless given) or cuda:N",
    ),
    "mean": Setting(
        [],
        "Taken from the values, in 0..1, of each channel: 0.5,0.5,…",
    ),
    "std": Setting(
        [],
        "What is then divided by, of each channel",
    ),
    "loss": Setting(
        None,
        "Loss of criteria by gradient and of finetune, where arrays named like outputs say what these should be: cross_entropy, bce, mse, l1, huber, kl or ctc, with options behind it (huber:delta=0.5), or for each output its own (boxes=huber,scores=bce)",
    ),
    "recover": Setting(
        [],
        "One after the other, with calibration data: bias, bn, least-squares, outputs, outputs:blocks, finetune",
    ),
    "ridge": Setting(
        None,
        "What draws least squares towards the weights as they are (by default of 0.0001, 0.001, … 1 what suits each layer best on held-out samples)",
    ),
    "rounds": Setting(
        3,
        "Rounds of least squares in front of a Relu (3)",
    ),
    "recover_epochs": Setting(
        20,
        "Epochs of finetune (2; 20 with --loss) and outputs (20)",
    ),
    "recover_lr": Setting(
        0.001,
        "Step of outputs, relative to the size of each tensor (0.001)",
    ),
    "recover_minutes": Setting(
        0.0,
        "After which outputs ends at the latest",
    ),
    "match": Setting(
        [],
        "With outputs: inner values that are compared too, or weights of the outputs (1)",
    ),
    "engine": Setting(
        "auto",
        "For the proof, and for budgets of milliseconds: libtorch, onnxruntime, or auto: for the proof onnxruntime, and libtorch where that cannot run or finds a difference; for milliseconds libtorch if it is installed (auto)",
    ),
    "onnxruntime": Setting(
        "",
        "Library of ONNX Runtime (PARSIMONY_ONNXRUNTIME, else where it is usually found)",
    ),
    "provider": Setting(
        "",
        "Execution provider of ONNX Runtime: cuda, tensorrt, openvino, xnnpack, … as its library has them; openvino:device_type=GPU gives it options (cpu)",
    ),
    "latency_table": Setting(
        "",
        "Times of layers, read and added to (a file of the cache); those of another machine are used as they are, or with --latency-command measured by it. With --round-to auto widths follow their steps",
    ),
    "batch": Setting(
        1,
        "Samples per run (1)",
    ),
    "latency_command": Setting(
        "",
        'Measures networks where they will run: a shell command with {model}, an ONNX file, which prints milliseconds: "ssh board ./time {model}"',
    ),
    "latency_runs": Setting(
        3,
        "Runs of the command each time that a network is measured (3)",
    ),
    "latency_timeout": Setting(
        60.0,
        "Seconds after which a run of the command is stopped (60)",
    ),
    "latency_retries": Setting(
        3,
        "How often a run that fails is repeated, after 1, 8, 64 seconds (3)",
    ),
}
