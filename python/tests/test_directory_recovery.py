"""Least squares for directories, on texts."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any, Dict

import pytest
import torch

import parsimony
from parsimony.command import find_command
from parsimony.directories import Pretrained
from parsimony.lockstep import Lockstep, added_by

from test_directories import config_of, files_of, with_package, written

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

WORDS = [f"w{i}" for i in range(60)]


def with_texts(model: Any, folder: Path) -> Path:
    """A directory with a tokenizer, and a file of 60 texts beside it."""
    written(model, folder)
    known = {word: i for i, word in enumerate(["<unk>", "<s>", "</s>", *WORDS])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(known, unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    ).save_pretrained(folder)
    draw = random.Random(0)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(3, 20))) for _ in range(60)]
    (folder.parent / "texts.txt").write_text("\n<|endoftext|>\n".join(texts))
    return folder


def llama(**sizes: Any) -> Any:
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            **{
                "hidden_size": 32,
                "intermediate_size": 48,
                "num_hidden_layers": 3,
                "num_attention_heads": 4,
                "num_key_value_heads": 2,
                "vocab_size": 64,
                **sizes,
            }
        )
    )


def bert(**sizes: Any) -> Any:
    config = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    config.update(intermediate_size=48, vocab_size=64, **sizes)
    return transformers.BertModel(transformers.BertConfig(**config))


def recovered(source: Path, target: Path, **asked: Any) -> parsimony.Plan:
    texts = f"text:{source.parent / 'texts.txt'}"
    return parsimony.prune_pretrained(
        source, target, recover="least-squares", calibration=texts, **asked
    )


def test_embeddings_come_back(tmp_path: Path) -> None:
    source = with_texts(bert(), tmp_path / "bert")
    plan = recovered(source, tmp_path / "small", keys={"intermediate_size": 0.5})
    assert plan.measured is not None and plan.measured.what == "cosine"
    assert plan.measured.fitted is not None and plan.measured.samples == 12
    assert plan.measured.cut < plan.measured.fitted <= 1 == round(plan.measured.original, 5)
    assert plan.proof is not None and plan.proof.scale > 0
    plan.save_data(tmp_path / "plan.json")
    command = ["apply", source, "--plan", tmp_path / "plan.json", "-o", tmp_path / "again", "-q"]
    subprocess.run([find_command(), *command], check=True)
    assert files_of(tmp_path / "again") == files_of(tmp_path / "small")


def test_the_command_measures_without_fitting(tmp_path: Path) -> None:
    source = with_texts(llama(), tmp_path / "llama")
    words = [source, "-o", tmp_path / "small", "--keys", "intermediate_size=50%"]
    words += ["--calibration", f"text:{tmp_path / 'texts.txt'},length=8"]
    done = subprocess.run(
        [find_command(), "prune", *map(str, words)],
        env=with_package(),
        stdout=subprocess.PIPE,
        universal_newlines=True,
        check=True,
    )
    assert "Measured: loss on" in done.stdout and "fitted" not in done.stdout


@pytest.mark.parametrize("fault", ["recover", "spec", "few", "none", "tokenizer"])
def test_faults_are_named(tmp_path: Path, fault: str) -> None:
    source = with_texts(llama(), tmp_path / "llama")
    asked: Dict[str, Any] = {
        "recover": "least-squares",
        "calibration": f"text:{tmp_path}/texts.txt",
    }
    match = {
        "recover": "directories take 'least-squares'",
        "spec": "directories take text:FILE",
        "few": "at least 5 are needed",
        "none": "needs calibration",
        "tokenizer": "tokenizer does not load",
    }[fault]
    if fault == "recover":
        asked["recover"] = "bias"
    elif fault == "spec":
        asked["calibration"] = "npz:a"
    elif fault == "few":
        (tmp_path / "texts.txt").write_text("w1 w2")
    elif fault == "none":
        del asked["calibration"]
    else:
        for file in source.glob("tokenizer*"):
            file.unlink()
    with pytest.raises(parsimony.Error, match=match):
        parsimony.prune_pretrained(source, tmp_path / "small", ratio=0.5, **asked)
    assert not (tmp_path / "small").exists()


def test_blocks_are_in_memory_one_at_a_time(tmp_path: Path) -> None:
    from parsimony.blocks import Blocks

    blocks = Blocks(Pretrained(with_texts(llama(), tmp_path / "llama")), torch.device("cpu"))
    assert blocks.blocks == [f"model.layers.{i}" for i in range(3)]

    def loaded() -> "set[str]":
        return {name for name, x in blocks.model.named_parameters() if not x.is_meta}

    outside = loaded()
    assert outside == {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"}
    blocks.enter("model.layers.1")
    blocks.enter("model.layers.2")
    assert {name.split(".")[2] for name in loaded() - outside} == {"2"}


def test_runs_wait_where_a_result_is_added() -> None:
    class Residual(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x + torch.nn.functional.dropout(self.first(x), 0.1, training=self.training)
            return torch.relu(self.second(x))

    model, batches = Residual().eval(), [torch.rand(2, 4), torch.rand(3, 4)]
    layers = added_by(model, ["first", "second"], lambda: model(batches[0]))
    assert layers == {"first": True, "second": False}
    found = []
    with Lockstep(model, batches, lambda i, x: found.append(model(x)), layers=layers) as runs:
        assert runs.advance() == "first"
        stops = [stop for stop in runs.stops if stop is not None]
        assert all(torch.equal(stop.input, x) for stop, x in zip(stops, batches))
        assert all(stop.beside is x for stop, x in zip(stops, batches))
        model.first.weight.data.zero_()  # what is changed here holds for all batches
        model.first.bias.data.zero_()
        assert runs.advance() == "second"
        assert all(torch.equal(stop.input, x) for stop, x in zip(runs.stops, batches) if stop)
        assert runs.advance() is None
    assert [len(one) for one in found] == [2, 3]


def test_a_fault_in_a_run_is_raised() -> None:
    model = torch.nn.Linear(4, 4)
    with pytest.raises(parsimony.Error, match="shapes cannot be multiplied"):
        with Lockstep(model, [torch.rand(2, 4), torch.rand(2, 3)], lambda i, x: model(x)) as runs:
            runs.advance()
