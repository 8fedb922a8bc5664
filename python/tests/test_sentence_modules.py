"""Directories of sentence-transformers: a transformer in a folder, and modules that read its embeddings."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Dict, List

import pytest
import torch

import parsimony
from parsimony.command import find_command

from test_directories import config_of, files_of, with_package, written
from test_directory_recovery import bert

transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

POOLING = '{\n  "word_embedding_dimension": 32,\n  "pooling_mode_mean_tokens": true\n}'


def masked_bert() -> Any:
    return transformers.BertForMaskedLM(bert().config)


def sentence_directory(
    folder: Path, place: str, modules: Dict[str, Any], has_head: bool = True
) -> Path:
    """With `modules.json`; of other modules the configuration and, if there are some, weights. Without
    a head the embeddings are what the network is asked for, and keep their size."""
    model = masked_bert() if has_head else bert()
    written(model, folder / place)
    listed: List[Dict[str, Any]] = [{"idx": 0, "name": "0", "path": place, "type": "Transformer"}]
    for number, (name, parts) in enumerate(modules.items(), 1):
        (folder / name).mkdir()
        config, weights = parts
        (folder / name / "config.json").write_text(config)
        if weights:
            safetensors.save_file(weights, folder / name / "model.safetensors")
        listed.append({"idx": number, "name": str(number), "path": name, "type": name[2:]})
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "README.md").write_text("sentences")
    return folder


@pytest.mark.parametrize("place", ["", "0_Transformer"])
def test_modules_follow_the_size_of_embeddings(tmp_path: Path, place: str) -> None:
    source = sentence_directory(tmp_path / "minilm", place, {"1_Pooling": (POOLING, {})})
    small = tmp_path / "small"
    plan = parsimony.prune_pretrained(source, small, keys={"hidden_size": 0.25})
    assert plan.proof is not None and config_of(small / place)["hidden_size"] == 24
    pooling = (small / "1_Pooling/config.json").read_text()
    assert pooling == POOLING.replace("32", "24")
    assert (small / "README.md").read_bytes() == (source / "README.md").read_bytes()
    assert (small / "modules.json").read_bytes() == (source / "modules.json").read_bytes()
    tensors = safetensors.load_file(small / place / "model.safetensors")
    assert tensors["bert.embeddings.word_embeddings.weight"].shape == (64, 24)
    assert {file.name for file in source.iterdir()} == {file.name for file in small.iterdir()}


def test_embeddings_stay_where_a_module_has_weights_for_them(tmp_path: Path) -> None:
    dense = '{"in_features": 32, "out_features": 8}'
    weights = {"linear.weight": torch.rand(8, 32)}
    modules = {"1_Pooling": (POOLING, {}), "2_Dense": (dense, weights)}
    source = sentence_directory(tmp_path / "minilm", "0_Transformer", modules)
    plan = parsimony.prune_pretrained(source, tmp_path / "small", ratio=0.25)
    config = config_of(tmp_path / "small/0_Transformer")
    assert (config["hidden_size"], config["intermediate_size"]) == (32, 36)
    assert any("2_Dense has weights for embeddings of this size" in note for note in plan.notes)
    for name in ("1_Pooling", "2_Dense"):
        assert files_of(tmp_path / "small" / name) == files_of(source / name)
    with pytest.raises(parsimony.ConfigError, match="2_Dense has weights for embeddings"):
        parsimony.prune_pretrained(source, tmp_path / "other", keys={"hidden_size": 0.25})
    assert not (tmp_path / "other").exists()


def test_embeddings_that_are_the_output_stay(tmp_path: Path) -> None:
    modules = {"1_Pooling": (POOLING, {})}
    source = sentence_directory(tmp_path / "minilm", "0_Transformer", modules, has_head=False)
    command = [find_command(), "prune", source, "-o", tmp_path / "small", "--ratio", "0.25", "-q"]
    subprocess.run(list(map(str, command)), env=with_package(), check=True)
    config = config_of(tmp_path / "small/0_Transformer")
    assert (config["hidden_size"], config["intermediate_size"]) == (32, 36)
    assert files_of(tmp_path / "small/1_Pooling") == files_of(source / "1_Pooling")
    command = [find_command(), "inspect", source]
    listed = subprocess.run(
        list(map(str, command)), env=with_package(), capture_output=True, text=True, check=True
    )
    assert "encoder.layer.1.output.dense.weight" in listed.stdout
    assert "intermediate_size = 48: 2 groups" in listed.stdout


@pytest.mark.parametrize(
    "text, match",
    [
        ('[{"path": "../other"}]', "expected one within the directory"),
        ('[{"name": "0"}]', "not a list of modules"),
        ("[", "modules.json"),
        ('[{"path": "1_Pooling"}]', "none of the modules"),
    ],
)
def test_bad_lists_of_modules(tmp_path: Path, text: str, match: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/modules.json").write_text(text)
    with pytest.raises(parsimony.Error, match=match):
        parsimony.prune_pretrained(tmp_path / "in", tmp_path / "small", ratio=0.25)
