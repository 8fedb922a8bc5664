#!/usr/bin/env python3
"""Measures how long directories of large networks take, from the command to the written directory, without proof:
of 0.5 B parameters in float32, and of 8 B in bfloat16, whose files are sparse, since only the sizes count: time and
memory of the command and of Python, beside cp. Writes docs/results/data/directories_sizes.json and its page.

    tools/directories/sizes.py FOLDER [--command COMMAND] [--no-page]
"""

import json
import multiprocessing
import os
import pathlib
import resource
import shutil
import struct
import subprocess
import sys
import time

TOOLS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TOOLS))
from directories.sizes_page import page  # noqa: E402
from tables.runs import COMMAND, parser_of, publish  # noqa: E402

SMALL = {
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "vocab_size": 32000,
}
LARGE = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
}
SHARD = 5_000_000_000  # bytes
BYTES = {"float32": 4, "bfloat16": 2}
NAMES = {"float32": "F32", "bfloat16": "BF16"}


def directory(folder, sizes, dtype, filled):
    """Writes a directory of LlamaForCausalLM; its elements are random, or holes."""
    import numpy
    import torch
    import transformers

    config = transformers.LlamaConfig(**sizes, tie_word_embeddings=False, dtype=dtype)
    config.architectures = ["LlamaForCausalLM"]
    shutil.rmtree(folder, ignore_errors=True)
    config.save_pretrained(folder)
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config)
    shards = [{}]
    for name, tensor in model.state_dict().items():
        if sum(BYTES[dtype] * one.numel() for one in shards[-1].values()) > SHARD:
            shards.append({})
        shards[-1][name] = tensor
    places = {}
    for i, tensors in enumerate(shards):
        name = f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        header, at = {"__metadata__": {"format": "pt"}}, 0
        for key, tensor in tensors.items():
            end = at + BYTES[dtype] * tensor.numel()
            header[key] = {"dtype": NAMES[dtype], "shape": list(tensor.shape), "data_offsets": [at, end]}
            places[key], at = name, end
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(folder / name, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            if filled:
                draw = numpy.random.default_rng(i)
                for tensor in tensors.values():
                    file.write((draw.standard_normal(tensor.numel(), "float32") / 32).tobytes())
            else:
                file.truncate(8 + len(text) + at)
    total = sum(BYTES[dtype] * tensor.numel() for tensor in model.state_dict().values())
    index = {"metadata": {"total_size": total}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def measured(line, environment=None):
    """Seconds and the largest memory of a process, in MB."""
    begin = time.perf_counter()
    process = subprocess.Popen(line, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed: {line}")
    return time.perf_counter() - begin, used.ru_maxrss / 1024


def measured_directory(folder, command, name, sizes, dtype, filled):
    """What pruning a directory, replaying the plan and copying the result take: seconds and MB."""
    source, small = folder / name, folder / f"{name}-small"
    plan, copy = folder / f"{name}.json", folder / "copy"
    # In a process of its own: the memory of this one counts for those that it starts.
    maker = multiprocessing.get_context("spawn").Process(target=directory, args=(source, sizes, dtype, filled))
    maker.start()
    maker.join()
    for left in (small, copy):
        shutil.rmtree(left, ignore_errors=True)
    package = os.pathsep.join([str(TOOLS.parent / "python"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": package, "PARSIMONY_PYTHON": sys.executable}
    row = {"name": name, "type": dtype, "in": stored(source)}
    whole = [command, "prune", source, "-o", small, "--ratio", "0.25", "--no-verify", "--plan", plan, "-q"]
    row["prune"] = measured(whole, environment)
    row["out"] = stored(small)
    shutil.rmtree(small)
    row["apply"] = measured([command, "apply", source, "--plan", plan, "-o", small, "-q"])
    row["cp"] = measured(["cp", "-r", "--sparse=never", small, copy])
    for left in (source, small, copy):
        shutil.rmtree(left)
    print(row, flush=True)
    return row


def stored(folder):
    return sum(file.stat().st_size for file in folder.iterdir())


def main():
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--command", default=COMMAND)
    parser.add_argument("--no-page", action="store_true", help="leave docs/results as it is")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0] / os.cpu_count()
    cases = (("0.5 B", SMALL, "float32", True), ("8 B", LARGE, "bfloat16", False))
    rows = [measured_directory(asked.folder, asked.command, *case) for case in cases]
    if not asked.no_page:
        publish("directories_sizes", page(rows, load))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
