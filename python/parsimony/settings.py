"""The settings of a pruning, as the command takes them. Made from api/prune_settings.cc."""

from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Sequence, TypedDict, Union


class Setting(NamedTuple):
    default: Any
    help: str


class Settings(TypedDict, total=False):
    ratio: Union[str, float]
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
        "Fraction of the budget to remove, 0 <= RATIO < 1: 0.5 or 50%",
    ),
    "criterion": Setting(
        "l1",
        "Criterion that scores channels or elements: apoz, block, bn_scale, fisher, fpgm, group_norm, hrank, l1, l2, lamp, level, linf, mean_activation, mean_activation_rank, movement, nm, obd, obs, random, reap, sparsegpt, taylor, taylor_squared, wanda, wanda_elements (l1); with numbers: 2:4, sparsegpt:2:4, block:4x1. Of several, as obs,fisher, the one with the smallest output error, which requires --calibration",
    ),
    "op_types": Setting(
        [],
        "Prune only layers of these types: Conv,Gemm or Conv2d,Linear",
    ),
    "exclude": Setting(
        [],
        "Names or patterns ('*.mlp.*') of layers that are not pruned, up to the next option",
    ),
    "scope": Setting(
        "local",
        "Where channels compete for removal: within each layer (local, the default), across all layers (global), across layers of isomorphic sub-graphs (isomorphic), or across all layers by their effect on the outputs (outputs). Of several, as local,global, the one with the smallest output error, which requires --calibration",
    ),
    "budget": Setting(
        "channels",
        "Quantity that --ratio is a share of: channels (the default), params, macs or weights. Without --ratio, the amount that may remain: params=1.5M, macs=2e9, macs=40%, latency_ms=5",
    ),
    "round_to": Setting(
        "1",
        "Round the number of kept channels to a multiple of K; auto: to the multiple that suits the hardware, see --target",
    ),
    "target": Setting(
        "",
        "With --round-to auto, the hardware that the network will run on: x86-avx2, x86-avx512, arm-neon, cuda-tensorcore or generic (this processor)",
    ),
    "force": Setting(
        False,
        "Allow less than a thousandth of the network to remain",
    ),
    "granularity": Setting(
        "channel",
        "Unit of removal: channel, head, head_dim, group or expert",
    ),
    "exact_only": Setting(
        False,
        "Do not prune groups whose removal changes the remaining values (LayerNorm, softmax)",
    ),
    "allow_mixing": Setting(
        False,
        "Prune all such groups, including outputs of a softmax that are weighted by position",
    ),
    "rescale": Setting(
        False,
        "Recompute numbers such as 1/sqrt(d) when their size is cut; by default they keep the values that the network was trained with",
    ),
    "constants": Setting(
        "drop",
        "What remains of a removed channel: nothing (drop), or the constant that it has with zero weights, folded into the following layers (exact)",
    ),
    "on_failure": Setting(
        "refuse",
        "If verification fails: refuse, or exclude the group at fault and prune the others",
    ),
    "layers": Setting(
        None,
        "Number of residual blocks to remove, least influential on --calibration first: 3, 25%, or auto: the number that suits the --budget best",
    ),
    "seed": Setting(
        0,
        "Random seed of criteria that draw at random (default: 0)",
    ),
    "input": Setting(
        [],
        "Shape of an input whose size the model leaves open, by position or by name: 1x3x32x32, 2x8:int64, :int64=16000 (a scalar), mask=1x64; mask=1 sets all elements to a value",
    ),
    "no_verify": Setting(
        False,
        "Skip verification, which runs the masked original and the smaller model",
    ),
    "threads": Setting(
        None,
        "Number of cores for parallel work, or auto (the default): all; the output does not depend on it. When networks are timed, the number of threads of each; auto measures which is best",
    ),
    "states": Setting(
        [],
        "Outputs that the next run takes as inputs, such as caches; both lose the same channels. auto matches them by name and shape",
    ),
    "free": Setting(
        [],
        "Input or output, or one of its axes, that may lose channels",
    ),
    "calibration": Setting(
        "",
        "Calibration data, with or without labels: audio:DIR, cifar10:DIR, cifar100:DIR, folder:DIR, images:DIR, mnist:DIR, npy:NAME=FILE,…, npy:X,Y[,XTEST,YTEST], npz:FILE, random:COUNT, safetensors:FILE, shapes[:TRAIN,TEST], text:FILE[,length=N][,labels]",
    ),
    "samples": Setting(
        None,
        "Number of calibration samples, from the start of the training set (default: 256)",
    ),
    "image": Setting(
        "",
        "Preprocessing of images:DIR: resize=N|HxW, crop=N|HxW, letterbox[=PAD], rgb|bgr|grey, nchw|nhwc, scale=S, mean=A/B/C, std=A/B/C",
    ),
    "device": Setting(
        "cpu",
        "Device that runs the calibration data: auto, cpu (default) or cuda:N",
    ),
    "mean": Setting(
        [],
        "Mean per channel, subtracted from values in 0..1: 0.5,0.5,…",
    ),
    "std": Setting(
        [],
        "Standard deviation per channel, by which values are then divided",
    ),
    "loss": Setting(
        None,
        "Loss of gradient criteria and of finetune, with target arrays named like the outputs: cross_entropy, bce, mse, l1, huber, kl or ctc, followed by options (huber:delta=0.5), or one for each output (boxes=huber,scores=bce)",
    ),
    "recover": Setting(
        [],
        "Recovery steps, in order, with calibration data: bias, bn, least-squares, outputs, outputs:blocks, finetune",
    ),
    "ridge": Setting(
        None,
        "Ridge of least squares, relative (default: for each layer, the best of 0.0001, 0.001, … 1 on held-out samples)",
    ),
    "rounds": Setting(
        3,
        "Least-squares iterations for layers followed by ReLU (default: 3)",
    ),
    "recover_epochs": Setting(
        20,
        "Epochs of finetune (default: 2; 20 with --loss) and of outputs (default: 20)",
    ),
    "recover_lr": Setting(
        0.001,
        "Learning rate of outputs, relative to the RMS of each tensor (default: 0.001)",
    ),
    "recover_minutes": Setting(
        0.0,
        "Time limit for output matching, in minutes",
    ),
    "match": Setting(
        [],
        "With outputs: inner values to match as well, or weights of the outputs (default: 1)",
    ),
    "engine": Setting(
        "auto",
        "Engine for verification and latency budgets: libtorch, onnxruntime or auto (default): for verification onnxruntime, then libtorch if that cannot run the network or finds a difference; for latency libtorch if it is installed",
    ),
    "onnxruntime": Setting(
        "",
        "Path of ONNX Runtime's library (default: PARSIMONY_ONNXRUNTIME, then the usual places)",
    ),
    "provider": Setting(
        "",
        "Execution provider of ONNX Runtime: cuda, tensorrt, openvino, xnnpack, … if the library has it; openvino:device_type=GPU sets options (default: cpu)",
    ),
    "latency_table": Setting(
        "",
        "File of measured layer times, which is read and extended (default: in the cache). Times of another machine are used unchanged, or measured there with --latency-command. With --round-to auto, widths follow their steps",
    ),
    "batch": Setting(
        1,
        "Batch size (default: 1)",
    ),
    "latency_command": Setting(
        "",
        'Shell command that measures a network on its target: takes {model}, an ONNX file, and prints milliseconds: "ssh board ./time {model}"',
    ),
    "latency_runs": Setting(
        3,
        "Runs of the command per measurement (default: 3)",
    ),
    "latency_timeout": Setting(
        60.0,
        "Time limit for a run of the command, in seconds (default: 60)",
    ),
    "latency_retries": Setting(
        3,
        "Retries for failed runs, with delays of 1, 8 and 64 s (default: 3)",
    ),
}
