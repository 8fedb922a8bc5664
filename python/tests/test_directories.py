"""Directories of transformers: pruned, loaded again, refused."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Dict

import pytest
import torch

import parsimony
from parsimony.command import command_environment, find_command

transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")


def llama(folder: Path, shard: str = "1GB", **sizes: Any) -> Path:
    config = transformers.LlamaConfig(
        **{
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 64,
            "head_dim": 8,
            **sizes,
        }
    )
    return written(transformers.LlamaForCausalLM(config), folder, shard)


def written(model: Any, folder: Path, shard: str = "1GB") -> Path:
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.copy_(torch.randn(tensor.shape) / max(1, tensor.shape[-1]) ** 0.5)
    model.save_pretrained(folder, max_shard_size=shard)
    (folder / "tokenizer.json").write_text('{"any": "text"}')
    return folder


def config_of(folder: Path) -> Dict[str, Any]:
    found: Dict[str, Any] = json.loads((folder / "config.json").read_text())
    return found


def with_package() -> Dict[str, str]:
    """The environment of a command that runs this package."""
    return {**command_environment(), "PYTHONPATH": str(Path(parsimony.__file__).parents[1])}


def size_of(folder: Path) -> int:
    """The bytes of all tensors."""
    tensors = safetensors.load_file(folder / "model.safetensors").values()
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def files_of(folder: Path) -> Dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_every_width_is_a_key(tmp_path: Path) -> None:
    source = llama(tmp_path / "llama")
    plan = parsimony.prune_pretrained(source, tmp_path / "small", ratio=0.5)
    assert plan.proof is not None and plan.proof.scale > 0
    config = config_of(tmp_path / "small")
    sizes = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads")
    assert [config[key] for key in (*sizes, "head_dim")] == [16, 24, 2, 1, 8]
    changed = {key for key, value in config.items() if config_of(source).get(key) != value}
    assert changed == set(sizes)
    model = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "small")
    assert model.model.layers[0].mlp.up_proj.weight.shape == (24, 16)
    assert (tmp_path / "small/tokenizer.json").read_bytes() == b'{"any": "text"}'


def test_keys_say_what_leaves(tmp_path: Path) -> None:
    source = llama(tmp_path / "llama")
    keys = {"intermediate_size": 0.25, "num_attention_heads": "50%"}
    plan = parsimony.prune_pretrained(source, tmp_path / "small", keys=keys)
    config = config_of(tmp_path / "small")
    assert [config[key] for key in ("intermediate_size", "hidden_size")] == [36, 32]
    assert [config[key] for key in ("num_attention_heads", "num_key_value_heads")] == [2, 1]
    assert not plan.mixes and "masked original" in str(plan.proof)
    with pytest.raises(
        parsimony.ConfigError, match="'depth': no size that can change.*hidden_size"
    ):
        parsimony.prune_pretrained(source, tmp_path / "other", keys={"depth": 0.5})
    assert not (tmp_path / "other").exists()


def test_a_size_that_the_class_refuses_becomes_the_nearest_that_it_takes(tmp_path: Path) -> None:
    source = llama(tmp_path / "llama", num_attention_heads=8, num_key_value_heads=4, hidden_size=64)
    plan = parsimony.prune_pretrained(
        source, tmp_path / "small", keys={"num_attention_heads": 0.25}
    )
    config = config_of(tmp_path / "small")
    assert (config["num_attention_heads"], config["num_key_value_heads"]) == (4, 2)
    assert any("does not take 3 of 4: 2 are kept" in note for note in plan.notes)


def test_a_size_of_a_head_that_the_class_computes_is_written(tmp_path: Path) -> None:
    config = transformers.Qwen2Config(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=64,
    )
    source = written(transformers.Qwen2ForCausalLM(config), tmp_path / "qwen2")
    parsimony.prune_pretrained(source, tmp_path / "small", keys={"num_attention_heads": 0.5})
    small = config_of(tmp_path / "small")
    assert (small["num_attention_heads"], small["hidden_size"], small["head_dim"]) == (2, 32, 8)


def test_shards_types_and_ties_stay(tmp_path: Path) -> None:
    config = llama(tmp_path / "plain", tie_word_embeddings=True)
    model = transformers.LlamaForCausalLM.from_pretrained(config, dtype=torch.bfloat16)
    source = tmp_path / "llama"
    model.save_pretrained(source, max_shard_size="10KB")
    parsimony.prune_pretrained(source, tmp_path / "small", ratio=0.25, verify=False)
    assert files_of(source).keys() == files_of(tmp_path / "small").keys()
    index = json.loads((tmp_path / "small/model.safetensors.index.json").read_text())
    loaded = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "small")
    assert loaded.dtype == torch.bfloat16 and "lm_head.weight" not in index["weight_map"]
    size = sum(tensor.numel() * 2 for tensor in loaded.parameters())
    assert index["metadata"]["total_size"] == size


def test_a_tie_that_is_stored_twice_is_cut_twice(tmp_path: Path) -> None:
    source = llama(tmp_path / "llama", tie_word_embeddings=True)
    file = source / "model.safetensors"
    tensors = safetensors.load_file(file)
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    safetensors.save_file(tensors, file, {"format": "pt"})
    parsimony.prune_pretrained(source, tmp_path / "small", keys={"hidden_size": 0.5})
    small = safetensors.load_file(tmp_path / "small/model.safetensors")
    assert small["lm_head.weight"].shape == (64, 16)


def test_pickled_weights_beside_other_pickles(tmp_path: Path) -> None:
    source = llama(tmp_path / "llama")
    (source / "model.safetensors").unlink()
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig.from_pretrained(source / "config.json")
    )
    torch.save(model.state_dict(), source / "pytorch_model.bin")
    torch.save({"learning_rate": 0.1}, source / "training_args.bin")
    keys = {"intermediate_size": 0.25}
    plan = parsimony.prune_pretrained(source, tmp_path / "small", keys=keys)
    assert plan.proof is not None and plan.proof.scale > 0
    other = (tmp_path / "small/training_args.bin").read_bytes()
    assert other == (source / "training_args.bin").read_bytes()


def test_lists_and_labels_of_a_configuration(tmp_path: Path) -> None:
    resnet = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"
    )
    source = written(transformers.ResNetForImageClassification(resnet), tmp_path / "resnet")
    parsimony.prune_pretrained(source, tmp_path / "small", ratio=0.25)
    assert config_of(tmp_path / "small")["hidden_sizes"] == [6, 12]
    config = transformers.LlamaConfig.from_pretrained(llama(tmp_path / "llama"), pad_token_id=0)
    classes = transformers.LlamaForSequenceClassification(config)
    source = written(classes, tmp_path / "classes")
    text = config_of(source)
    del text["head_dim"]
    (source / "config.json").write_text(json.dumps(text))
    parsimony.prune_pretrained(
        source, tmp_path / "few", keys={"num_attention_heads": 0.5}, verify=False
    )
    few = config_of(tmp_path / "few")
    changed = {key for key, value in few.items() if text.get(key) != value}
    assert changed == {"num_attention_heads", "num_key_value_heads", "head_dim"}


def test_heads_of_a_tower_that_does_not_run_stay(tmp_path: Path) -> None:
    text = {
        "model_type": "llama",
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 64,
        "head_dim": 8,
    }
    vision = {
        "model_type": "clip_vision_model",
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "image_size": 32,
        "patch_size": 16,
    }
    config = transformers.LlavaConfig(vision_config=vision, text_config=text, image_token_index=63)
    source = written(transformers.LlavaForConditionalGeneration(config), tmp_path / "llava")
    parsimony.prune_pretrained(source, tmp_path / "small", keys={"num_attention_heads": 0.5})
    small = config_of(tmp_path / "small")
    assert small["text_config"]["num_attention_heads"] == 2
    assert small["vision_config"]["num_attention_heads"] == 4


def test_experts_are_stored_one_by_one(tmp_path: Path) -> None:
    config = transformers.MixtralConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=64,
        num_local_experts=4,
    )
    source = written(transformers.MixtralForCausalLM(config), tmp_path / "mixtral")
    plan = parsimony.prune_pretrained(source, tmp_path / "small", ratio=0.25)
    name = "model.layers.1.block_sparse_moe.experts.3.w2.weight"
    assert plan.shapes[name] == ((32, 48), (24, 36))
    assert plan.proof is not None and config_of(tmp_path / "small")["intermediate_size"] == 36


def test_the_command_replays_the_plan_without_python(tmp_path: Path) -> None:
    source = llama(tmp_path / "llama")
    plan = parsimony.prune_pretrained(source, tmp_path / "small", ratio=0.25, verify=False)
    plan.save_data(tmp_path / "plan.json")
    line = ["apply", source, "--plan", tmp_path / "plan.json", "-o", tmp_path / "again", "-q"]
    subprocess.run([find_command(), *line], check=True)
    assert files_of(tmp_path / "again") == files_of(tmp_path / "small")


def test_the_command_prunes_a_directory(tmp_path: Path) -> None:
    source = llama(tmp_path / "llama")
    line = [find_command(), "prune", source, "-o", tmp_path / "small"]
    environment = with_package()
    share = ["--keys", "intermediate_size=25%", "--plan", tmp_path / "plan.json"]
    share += ["--report", tmp_path / "report.json", "--html", tmp_path / "page.html"]
    done = subprocess.run([*line, *share], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["command"] == " ".join(map(str, ["parsimony", *line[1:], *share]))
    assert report["configuration"] == {"intermediate_size": {"before": 48, "after": 36}}
    assert [
        (one["size"], one["kept"]) for one in report["groups"] if one["kept"] < one["size"]
    ] == [(48, 36)] * 2
    assert report["macs"]["after"] < report["macs"]["before"] and report["proof"]["holds"]
    assert report["result"] == {
        "path": str(tmp_path / "small"),
        "bytes": size_of(tmp_path / "small"),
    }
    assert {"export", "plan", "write", "prove"} <= report["timings"].keys()
    page = (tmp_path / "page.html").read_text()
    assert '"llama"' in page and "model.pt2" not in page
    shown = subprocess.run(
        [find_command(), "report", tmp_path / "report.json"], capture_output=True, text=True
    )
    assert "| multiply-adds |" in shown.stdout and "| proof | – | holds |" in shown.stdout
    assert "Proven" in done.stdout and config_of(tmp_path / "small")["intermediate_size"] == 36
    again = subprocess.run([*line, *share], env=environment, capture_output=True, text=True)
    assert again.returncode == 2 and "exists already" in again.stderr
    lonely = subprocess.run(
        line[:3] + ["-o", tmp_path / "other", "--ratio", "0.5"],
        env={**environment, "PARSIMONY_PYTHON": "/usr/bin/python3", "PYTHONPATH": ""},
        capture_output=True,
        text=True,
    )
    assert lonely.returncode == 3 and "needs the Python package" in lonely.stderr


def test_the_command_lists_what_may_leave(tmp_path: Path) -> None:
    source = llama(tmp_path / "llama")
    environment = with_package()
    line = [find_command(), "inspect", source]
    done = subprocess.run(line, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    tensors, _, keys = done.stdout.partition("by keys of config.json may leave:")
    assert "model.layers.1.mlp.up_proj.weight" in tensors
    assert "intermediate_size = 48: 2 groups (--keys intermediate_size=25%)" in keys
    assert "  48 channels: model.layers.0.mlp." in keys
    assert "num_attention_heads = 4: 2 groups" in keys and "  2 heads: model.layers.0." in keys
    assert "num_hidden_layers: 2 layers in model.layers (--layers)" in keys
    without = {**environment, "PARSIMONY_PYTHON": "/usr/bin/python3", "PYTHONPATH": ""}
    lonely = subprocess.run(line, env=without, capture_output=True, text=True)
    assert lonely.returncode == 0 and lonely.stdout.startswith(tensors.rstrip())
    assert "note: what may leave is not known without the Python package" in lonely.stdout
    nothing = {**environment, "PARSIMONY_PYTHON": "/no/python"}
    missing = subprocess.run(line, env=nothing, capture_output=True, text=True)
    assert missing.returncode == 0 and "/no/python cannot be run" in missing.stdout
    as_json = subprocess.run([*line, "--json"], env=nothing, capture_output=True, text=True)
    assert json.loads(as_json.stdout)["tensors"] and as_json.returncode == 0


def test_the_command_explains_a_directory(tmp_path: Path) -> None:
    source = llama(tmp_path / "llama")
    environment = with_package()
    line = [find_command(), "explain", source, "--html", tmp_path / "page.html"]
    done = subprocess.run(line, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "model.layers.0.mlp.up_proj" in done.stdout
    assert "num_hidden_layers: 2 layers in model.layers (--layers)" in done.stdout
    assert "vocab_size: 64 words (--keep-tokens)" in done.stdout
    assert "model.layers.1" in (tmp_path / "page.html").read_text()


def test_what_no_key_can_express_is_named(tmp_path: Path) -> None:
    config = transformers.BertConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        vocab_size=64,
    )
    source = written(transformers.BertForMaskedLM(config), tmp_path / "bert")
    with pytest.raises(
        parsimony.UnsupportedError, match="num_attention_heads|no key of config.json"
    ):
        parsimony.prune_pretrained(source, tmp_path / "small", keys={"num_attention_heads": 0.5})
    assert not (tmp_path / "small").exists()


def damaged(folder: Path, how: str) -> None:
    config = config_of(folder)
    shard = next(folder.glob("*-00001-of-*.safetensors"))
    if how == "no config":
        (folder / "config.json").unlink()
    elif how == "adapter":
        (folder / "config.json").rename(folder / "adapter_config.json")
    elif how == "class":
        config["architectures"] = ["NoSuchForCausalLM"]
    elif how == "own class":
        config |= {"architectures": ["Mine"], "auto_map": {"AutoModel": "mine.Mine"}}
    elif how == "quantised":
        config["quantization_config"] = {"quant_method": "gptq", "bits": 4}
    elif how == "shard missing":
        shard.unlink()
    elif how == "shard cut short":
        shard.write_bytes(shard.read_bytes()[:-5])
    elif how == "other sizes":
        config["intermediate_size"] = 40
    elif how == "another class":
        config["architectures"] = ["BertForMaskedLM"]
    if (folder / "config.json").exists():
        (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    "how, error, text",
    [
        ("no config", parsimony.FileError, "config.json: there is no such file"),
        ("adapter", parsimony.UnsupportedError, "an adapter alone"),
        ("class", parsimony.UnsupportedError, "has no class NoSuchForCausalLM"),
        ("own class", parsimony.UnsupportedError, "the code in the directory is not run"),
        ("quantised", parsimony.UnsupportedError, "quantization_config: .*gptq"),
        ("shard missing", parsimony.FileError, "model-00001-of-"),
        ("shard cut short", parsimony.FileError, "model-00001-of-"),
        ("other sizes", parsimony.FileError, r"has shape \[48, 32\].*expects \[40, 32\]"),
        ("another class", parsimony.Error, "BertForMaskedLM"),
    ],
)
def test_bad_directories(tmp_path: Path, how: str, error: Any, text: str) -> None:
    source = llama(tmp_path / "llama", shard="10KB")
    damaged(source, how)
    before = files_of(source)
    with pytest.raises(error, match=text):
        parsimony.prune_pretrained(source, tmp_path / "small", ratio=0.5)
    assert files_of(source) == before and not (tmp_path / "small").exists()


def test_the_output_must_be_new(tmp_path: Path) -> None:
    source = llama(tmp_path / "llama")
    (tmp_path / "small").mkdir()
    parsimony.prune_pretrained(source, tmp_path / "small", ratio=0.5, verify=False)
    with pytest.raises(parsimony.ConfigError, match="exists already"):
        parsimony.prune_pretrained(source, tmp_path / "small", ratio=0.5)
    shutil.rmtree(tmp_path / "small")


def test_the_proof_needs_no_whole_network_where_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from parsimony import directory_proof

    source = llama(tmp_path / "llama")
    monkeypatch.setattr(directory_proof, "_free_memory", lambda: 1000)
    monkeypatch.setattr(transformers.LlamaForCausalLM, "from_pretrained", None)
    plan = parsimony.prune_pretrained(source, tmp_path / "small", ratio=0.5)
    assert plan.proof is not None and plan.proof.scale > 0
    assert (tmp_path / "small/config.json").exists()


@pytest.mark.parametrize("scope", ["local", "global"])
def test_budgets_keep_one_width_for_a_key(tmp_path: Path, scope: str) -> None:
    # of 44 the class takes multiples of the number of heads alone
    source = llama(tmp_path / "model", hidden_size=44, head_dim=12)
    plan = parsimony.prune_pretrained(source, tmp_path / "small", budget="params=60%", scope=scope)
    before, after = plan.parameters
    assert 0.5 * before < after <= 0.6 * before
    changed = {one.attribute for one in plan.attributes}
    assert "config.hidden_size" in changed
    assert scope == "global" or "config.intermediate_size" in changed
    assert plan.proof is not None
    kept: Dict[int, set] = {}
    for group in plan.groups:
        kept.setdefault(group["size"], set()).add(group["kept"])
    assert kept and all(len(counts) == 1 for counts in kept.values())


def test_amounts_go_alone(tmp_path: Path) -> None:
    source, output = llama(tmp_path / "model"), tmp_path / "small"
    for more in ({"ratio": 0.5}, {"keys": {"intermediate_size": 0.5}}):
        with pytest.raises(parsimony.ConfigError, match="goes without ratio and keys"):
            parsimony.prune_pretrained(source, output, budget="params=60%", **more)
    keys = {"intermediate_size": 0.25, "num_attention_heads": 0.5}
    plan = parsimony.prune_pretrained(source, output, keys=keys, scope="global")
    changed = {one.attribute: one.after / one.before for one in plan.attributes}
    assert changed["config.intermediate_size"] == 0.75
    with pytest.raises(parsimony.FileError, match="its folder does not exist"):
        parsimony.prune_pretrained(
            source, tmp_path / "a", ratio=0.5, report=tmp_path / "b" / "r.json"
        )
    assert not (tmp_path / "a").exists()
