"""Layers, experts and words that leave directories of transformers."""

from __future__ import annotations

import json
import random
import subprocess
import zipfile
from pathlib import Path
from typing import Any, Dict, List

import pytest
import torch

import parsimony
from parsimony import directory_pruning
from parsimony.blocks import Blocks
from parsimony.command import find_command
from parsimony.directories import Pretrained

from test_directories import config_of, files_of, with_package, written
from test_directory_recovery import WORDS, bert, llama, with_texts

transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 64,
}


def replayed(plan: parsimony.Plan, source: Path, small: Path) -> None:
    """`apply` writes the same bytes."""
    file, again = small.parent / "plan.json", small.parent / "again"
    plan.save_data(file)
    command = [find_command(), "apply", source, "--plan", file, "-o", again, "-q"]
    subprocess.run(list(map(str, command)), check=True)
    assert files_of(again) == files_of(small)


def run_report(report: Path) -> str:
    command = [find_command(), "report", report]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    return done.stdout


def test_layers_leave_with_their_items_of_lists(tmp_path: Path) -> None:
    kinds = ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]
    sizes = {**SIZES, "num_hidden_layers": 4, "head_dim": 8, "intermediate_size": 48}
    config = transformers.Gemma3TextConfig(**sizes, layer_types=kinds)
    source = written(transformers.Gemma3ForCausalLM(config), tmp_path / "gemma")
    small = tmp_path / "small"
    plan = parsimony.prune_pretrained(source, small, layers="50%")
    assert plan.proof is not None and plan.proof.scale > 0
    (note,) = [note for note in plan.notes if note.startswith("removed from model.layers: ")]
    removed = {int(number) for number in note.rpartition(": ")[2].split(", ")}
    left = config_of(small)
    assert left["num_hidden_layers"] == 2 == len(removed)
    assert left["layer_types"] == [kind for i, kind in enumerate(kinds) if i not in removed]
    before = safetensors.load_file(source / "model.safetensors")
    after = safetensors.load_file(small / "model.safetensors")
    first = min(set(range(4)) - removed)
    name = "model.layers.{}.mlp.up_proj.weight"
    assert torch.equal(after[name.format(0)], before[name.format(first)])
    assert name.format(2) not in after and plan.parameters[1] < plan.parameters[0]
    replayed(plan, source, small)


def test_the_layer_of_least_influence_leaves(tmp_path: Path) -> None:
    model = llama()
    source = with_texts(model, tmp_path / "llama")
    with torch.no_grad():
        for part in (model.model.layers[1].self_attn.o_proj, model.model.layers[1].mlp.down_proj):
            part.weight.mul_(1e-4)
    model.save_pretrained(source)
    texts = f"text:{tmp_path / 'texts.txt'}"
    plan = parsimony.prune_pretrained(source, tmp_path / "small", layers=1, calibration=texts)
    assert "removed from model.layers: 1" in plan.notes
    assert plan.measured is not None
    assert plan.measured.cut == pytest.approx(plan.measured.original, abs=1e-3)


def test_layers_widths_and_words_leave_together(tmp_path: Path) -> None:
    source, small = with_texts(bert(), tmp_path / "bert"), tmp_path / "small"
    texts = f"text:{tmp_path / 'texts.txt'}"
    keys = {"intermediate_size": 0.25}
    ids = list(range(3, 40))
    plan = parsimony.prune_pretrained(
        source,
        small,
        layers=1,
        keys=keys,
        keep_tokens=ids,
        recover="least-squares",
        calibration=f"{texts},length=4",
        report=tmp_path / "report.json",
        html=tmp_path / "page.html",
    )
    report = json.loads((tmp_path / "report.json").read_text())
    before, after = (report["macs"][when] for when in ("before", "after"))
    assert after < before / 1.9 and report["inputs"]  # of one layer of two, with less width
    assert report["configuration"]["num_hidden_layers"] == {"before": 2, "after": 1}
    assert "| cosine on" in run_report(tmp_path / "report.json")
    recovery = report["recovery"]
    assert (
        recovery["data"] == f"{texts},length=4" and recovery["samples"] > recovery["test_samples"]
    )
    worth = [recovery[when]["cosine"] for when in ("dense", "before")] + [
        recovery["steps"][0]["cosine"]
    ]
    assert worth[0] == pytest.approx(1, abs=1e-5) and worth[1] <= worth[2]
    assert "bert" in (tmp_path / "page.html").read_text()
    left = config_of(small)
    assert (left["num_hidden_layers"], left["intermediate_size"]) == (1, 36)
    assert left["vocab_size"] == 40  # and three special tokens
    assert plan.proof is not None and plan.measured is not None
    replayed(plan, source, small)


def experts_of(name: str) -> Any:
    widths = {**SIZES, "intermediate_size": 48, "num_experts_per_tok": 2}
    many: Dict[str, Any] = {
        "Mixtral": {"num_local_experts": 8},
        "Qwen3Moe": {"num_experts": 8, "moe_intermediate_size": 24, "head_dim": 8},
        "GptOss": {"num_local_experts": 8, "head_dim": 8},
        "GraniteMoe": {"num_local_experts": 8},
        "Olmoe": {"num_experts": 8},
        "DeepseekV3": {
            "n_routed_experts": 8,
            "n_group": 2,
            "topk_group": 1,
            "moe_intermediate_size": 24,
            "first_k_dense_replace": 1,
            "num_key_value_heads": 4,
            "q_lora_rank": 16,
            "kv_lora_rank": 16,
            "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 8,
            "v_head_dim": 8,
        },
    }
    config = getattr(transformers, f"{name}Config")(**{**widths, **many[name]})
    return getattr(transformers, f"{name}ForCausalLM")(config)


@pytest.mark.parametrize(
    "name", ["Mixtral", "Qwen3Moe", "GptOss", "GraniteMoe", "Olmoe", "DeepseekV3"]
)
def test_experts_leave(tmp_path: Path, name: str) -> None:
    torch.manual_seed(0)
    source, small = with_texts(experts_of(name), tmp_path / "moe"), tmp_path / "small"
    texts = f"text:{tmp_path / 'texts.txt'}"
    plan = parsimony.prune_pretrained(source, small, experts="50%", calibration=texts)
    assert plan.proof is not None and plan.proof.scale > 0
    config = config_of(small)
    found = {config.get(key) for key in ("num_local_experts", "num_experts", "n_routed_experts")}
    assert found - {None} == {4}
    assert not any("norms of their weights" in note for note in plan.notes)
    replayed(plan, source, small)


@pytest.mark.parametrize("measured", [False, True])
def test_experts_that_do_little_leave_first(tmp_path: Path, measured: bool) -> None:
    torch.manual_seed(0)
    model = experts_of("Olmoe")
    source = with_texts(model, tmp_path / "moe")
    with torch.no_grad():
        for layer in model.model.layers:
            layer.mlp.experts.down_proj[[1, 4, 6]] *= 1e-3
    model.save_pretrained(source)
    asked = {"calibration": f"text:{tmp_path / 'texts.txt'}"} if measured else {}
    plan = parsimony.prune_pretrained(source, tmp_path / "small", experts=3 / 8, **asked)
    assert {tuple(group["slices"][0]["keep"]) for group in plan.groups} == {(0, 2, 3, 5, 7)}


def test_experts_are_a_granularity(tmp_path: Path) -> None:
    source, small = written(experts_of("Olmoe"), tmp_path / "moe"), tmp_path / "small"
    words = [find_command(), "prune", source, "-o", small, "--no-verify", "-q"]
    words += ["--granularity", "expert", "--ratio", "50%"]
    subprocess.run(list(map(str, words)), env=with_package(), check=True)
    parsimony.prune_pretrained(source, tmp_path / "same", experts="50%", verify=False)
    assert config_of(small)["num_experts"] == 4 and files_of(small) == files_of(tmp_path / "same")
    for asked in ({}, {"ratio": 0.5, "experts": 0.5}):
        with pytest.raises(parsimony.ConfigError, match="needs the share of experts as ratio"):
            parsimony.prune_pretrained(source, tmp_path / "other", granularity="expert", **asked)


def test_another_choice_of_experts_keeps_what_keys_ask_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first choice is refused, as if the class wanted equally many of each group."""
    torch.manual_seed(0)
    source, small = with_texts(experts_of("DeepseekV3"), tmp_path / "moe"), tmp_path / "small"
    refused: List[Any] = []

    def prove(*asked: Any) -> None:
        leaving = asked[-1]
        if not refused:
            refused.append(leaving)
        if leaving is refused[0]:
            raise parsimony.VerificationError("not like this")
        proven(*asked)

    proven = directory_pruning.prove
    monkeypatch.setattr(directory_pruning, "prove", prove)
    keys = {"hidden_size": 0.25}
    plan = parsimony.prune_pretrained(source, small, experts=0.5, keys=keys)
    config = config_of(small)
    assert (config["n_routed_experts"], config["hidden_size"]) == (4, 24)
    assert config["moe_intermediate_size"] == 24 and plan.proof is not None


def test_words_leave_with_their_tokenizer(tmp_path: Path) -> None:
    source, small = with_texts(llama(), tmp_path / "llama"), tmp_path / "small"
    renumber_last(source)
    (source / "tokenizer.model").write_bytes(b"\0")
    kept = [" ".join(WORDS[10:20]), " ".join(WORDS[15:30])]
    (tmp_path / "kept.txt").write_text("\n<|endoftext|>\n".join(kept))
    words = [find_command(), "prune", source, "-o", small]
    words += ["--keep-tokens", f"text:{tmp_path / 'kept.txt'}", "--plan", tmp_path / "plan.json"]
    subprocess.run(list(map(str, words)), env=with_package(), check=True)
    before = transformers.AutoTokenizer.from_pretrained(source)
    after = transformers.AutoTokenizer.from_pretrained(small)
    ids: List[int] = json.loads((small / "kept_token_ids.json").read_text())
    assert len(ids) == 23 == config_of(small)["vocab_size"] and ids == sorted(ids)
    for text in kept:
        assert [ids[i] for i in after(text)["input_ids"]] == before(text)["input_ids"]
    assert after("w59")["input_ids"] == [after.unk_token_id]
    for file in ("config.json", "generation_config.json"):
        old, new = (json.loads((one / file).read_text()) for one in (source, small))
        assert ids[new["eos_token_id"]] == old["eos_token_id"] == 62
    assert not (small / "tokenizer.model").exists()
    big, little = (transformers.LlamaForCausalLM.from_pretrained(one) for one in (source, small))
    tokens = torch.arange(12)[None]
    expected = big(torch.tensor(ids)[tokens]).logits[..., ids]
    assert torch.allclose(little(tokens).logits, expected, atol=1e-6)


def renumber_last(folder: Path) -> None:
    """Special tokens become the last three: their numbers change when words leave."""
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text())
    known = {word: i for i, word in enumerate([*WORDS, "<unk>", "<s>", "</s>"])}
    content["model"]["vocab"] = known
    for token in content["added_tokens"]:
        token["id"] = known[token["content"]]
    file.write_text(json.dumps(content))
    for name in ("config.json", "generation_config.json"):
        config = json.loads((folder / name).read_text())
        config.update(bos_token_id=61, eos_token_id=62)
        (folder / name).write_text(json.dumps(config))


def trained_tokenizer(kind: str, texts: List[str]) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    special = ["<pad>", "<unk>", "</s>"]
    if kind == "byte-level BPE":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer: Any = trainers.BpeTrainer(
            vocab_size=320, special_tokens=["</s>"], initial_alphabet=alphabet
        )
    elif kind == "WordPiece":
        tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        trainer = trainers.WordPieceTrainer(vocab_size=120, special_tokens=special)
    else:
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=90, special_tokens=special, unk_token="<unk>")
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


@pytest.mark.parametrize("kind", ["byte-level BPE", "WordPiece", "Unigram"])
def test_tokenizers_of_all_kinds_lose_words(tmp_path: Path, kind: str) -> None:
    draw = random.Random(0)
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    words = ["".join(draw.choices(syllables, k=draw.randint(1, 3))) for _ in range(80)]
    texts = [" ".join(draw.choices(words, k=8)) for _ in range(60)]
    tokenizer = trained_tokenizer(kind, texts)
    source, small = tmp_path / "llama", tmp_path / "small"
    written(llama(vocab_size=tokenizer.get_vocab_size()), source)
    tokenizer.save(str(source / "tokenizer.json"))
    (tmp_path / "kept.txt").write_text("\n<|endoftext|>\n".join(texts[:4]))
    plan = parsimony.prune_pretrained(source, small, keep_tokens=f"text:{tmp_path / 'kept.txt'}")
    after = type(tokenizer).from_file(str(small / "tokenizer.json"))
    ids: List[int] = json.loads((small / "kept_token_ids.json").read_text())
    assert len(ids) < tokenizer.get_vocab_size() and plan.proof is not None
    for text in texts[:4]:
        assert [ids[i] for i in after.encode(text).ids] == tokenizer.encode(text).ids
    if kind == "byte-level BPE":  # without a token for what is unknown, nothing may be lost
        assert after.decode(after.encode(texts[-1]).ids).strip() == texts[-1]


def test_ids_follow_wherever_they_stand(tmp_path: Path) -> None:
    source, small = with_texts(llama(), tmp_path / "llama"), tmp_path / "small"
    renumber_last(source)
    file = source / "tokenizer.json"
    content = json.loads(file.read_text())
    padding = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None}
    content["padding"] = {**padding, "pad_id": 62, "pad_type_id": 0, "pad_token": "</s>"}
    file.write_text(json.dumps(content))
    ids = {"lang_to_id": {"en": 61}, "suppress_tokens": [3, 50, 61], "bad_words_ids": [[3], [50]]}
    for name, own in (("generation_config.json", ids), ("config.json", {"image_token_index": 59})):
        config = json.loads((source / name).read_text())
        (source / name).write_text(json.dumps({**config, **own}))
    parsimony.prune_pretrained(source, small, keep_tokens=range(10))
    kept: List[int] = json.loads((small / "kept_token_ids.json").read_text())
    assert kept == [*range(10), 59, 60, 61, 62]
    assert config_of(small)["image_token_index"] == 10
    found = json.loads((small / "generation_config.json").read_text())
    assert found["lang_to_id"] == {"en": 12} and found["bad_words_ids"] == [[3]]
    assert found["suppress_tokens"] == [3, 12]
    assert json.loads((small / "tokenizer.json").read_text())["padding"]["pad_id"] == 13


def test_layers_leave_pickled_weights(tmp_path: Path) -> None:
    """Whose first layer has what the others share: names of functions, of types."""
    model, source, small = llama(), tmp_path / "llama", tmp_path / "small"
    written(model, source)
    (source / "model.safetensors").unlink()
    with torch.no_grad():
        for part in (model.model.layers[0].self_attn.o_proj, model.model.layers[0].mlp.down_proj):
            part.weight.mul_(1e-4)
    state = {name: x for name, x in model.state_dict().items() if "embed" not in name}
    state["model.embed_tokens.weight"] = model.model.embed_tokens.weight.detach()
    torch.save(state, source / "pytorch_model.bin")
    keys = {"intermediate_size": 0.25}
    plan = parsimony.prune_pretrained(source, small, layers=1, keys=keys)
    assert "removed from model.layers: 0" in plan.notes and plan.proof is not None
    after = torch.load(small / "pytorch_model.bin", weights_only=True)
    assert not any(name.startswith("model.layers.2.") for name in after)
    own = "self_attn.v_proj.weight"
    assert torch.equal(after[f"model.layers.0.{own}"], state[f"model.layers.1.{own}"])
    parts = zipfile.ZipFile(small / "pytorch_model.bin").namelist()
    assert len([one for one in parts if "/data/" in one]) == len(after)
    replayed(plan, source, small)


def test_layers_leave_under_the_names_that_are_stored(tmp_path: Path) -> None:
    """As on the hub: without the prefix of the class, or with names of older releases."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_embd=32, n_layer=3, n_head=4, vocab_size=64)
    source = written(transformers.GPT2LMHeadModel(config), tmp_path / "gpt2")
    file = source / "model.safetensors"
    tensors = safetensors.load_file(file)
    for name in [name for name in tensors if name.startswith("transformer.")]:
        tensors[name[len("transformer.") :]] = tensors.pop(name)
    for name in tensors:
        if name.startswith("h.0.") and "c_proj" in name:
            tensors[name] *= 1e-4
    safetensors.save_file(tensors, file, {"format": "pt"})
    plan = parsimony.prune_pretrained(source, tmp_path / "small", layers=1)
    assert "removed from transformer.h: 0" in plan.notes and plan.proof is not None
    blocks = Blocks(Pretrained(source), torch.device("cpu"))
    found = [name for name, _ in blocks.tensors("transformer.h.1")]  # as the class calls them
    assert len(found) == 12 and all(name.startswith("transformer.h.1.") for name in found)
    after = safetensors.load_file(tmp_path / "small/model.safetensors")
    assert torch.equal(after["h.0.mlp.c_proj.weight"], tensors["h.1.mlp.c_proj.weight"])
    assert "h.2.mlp.c_proj.weight" not in after


def test_layers_of_pictures_leave(tmp_path: Path) -> None:
    sizes = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
    config = transformers.ViTConfig(**sizes, intermediate_size=48, image_size=16, patch_size=8)
    source = written(transformers.ViTForImageClassification(config), tmp_path / "vit")
    plan = parsimony.prune_pretrained(source, tmp_path / "small", layers="60%")
    assert config_of(tmp_path / "small")["num_hidden_layers"] == 1 and plan.proof is not None
    sizes = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [2, 2]}
    config = transformers.ResNetConfig(**sizes, layer_type="basic", image_size=32)
    other = written(transformers.ResNetForImageClassification(config), tmp_path / "resnet")
    plan = parsimony.prune_pretrained(other, tmp_path / "narrow", layers=1)
    assert sorted(config_of(tmp_path / "narrow")["depths"]) == [1, 2] and plan.proof is not None


def test_a_weight_of_another_type_is_fitted_in_its_own(tmp_path: Path) -> None:
    source = with_texts(llama().to(torch.bfloat16), tmp_path / "llama")
    file = source / "model.safetensors"
    tensors = safetensors.load_file(file)
    name = "model.layers.1.mlp.down_proj.weight"
    tensors[name] = tensors[name].float()
    safetensors.save_file(tensors, file, {"format": "pt"})
    plan = parsimony.prune_pretrained(
        source,
        tmp_path / "small",
        keys={"intermediate_size": 0.5},
        recover="least-squares",
        calibration=f"text:{tmp_path / 'texts.txt'}",
    )
    small = safetensors.load_file(tmp_path / "small/model.safetensors")
    assert small[name].dtype == torch.float32
    for tensor, values in plan.values.items():
        assert torch.equal(small[tensor], values)


@pytest.mark.parametrize(
    "asked, match",
    [
        ({"layers": 3}, "3 of 3 would leave none"),
        ({"layers": "much"}, "expected a share|share in"),
        ({"experts": 0.5}, "no key of config.json has the number of experts"),
        ({"keep_tokens": "all"}, "expected text:FILE or ids:FILE"),
        ({"keep_tokens": [900]}, "no number 900"),
        ({"keep_tokens": list(range(64))}, "all 64 words are needed"),
        ({"keep_tokens": "ids:/none"}, "cannot be read as numbers"),
        ({"keep_tokens": 5}, "expected text:FILE, ids:FILE or numbers"),
        ({"layers": 0}, "of 3 removes none"),
        ({"layers": 1, "device": "none"}, "device: .none. cannot be used"),
    ],
)
def test_what_cannot_leave_is_named(tmp_path: Path, asked: Dict[str, Any], match: str) -> None:
    source = with_texts(llama(), tmp_path / "llama")
    with pytest.raises(parsimony.Error, match=match):
        parsimony.prune_pretrained(source, tmp_path / "small", **asked)
    assert not (tmp_path / "small").exists()
