"""Prunes networks of timm and small ones of transformers as live modules, as they come, and prints a table.

    python python/benchmarks/live_modules.py                      # all
    python python/benchmarks/live_modules.py vgg11 LlamaForCausalLM
    python python/benchmarks/live_modules.py --out rows.jsonl     # goes on where it stopped

Each network gets random weights, is pruned to half of its channels, proven, and trained for one step.
Those of transformers have two layers, width 64, four heads and a vocabulary of 100, and their cache on.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import torch
from torch import Tensor, nn

import parsimony
from parsimony.tree import tensors_in

sys.path.insert(0, str(Path(__file__).parent))
from rows import collect  # noqa: E402

TIMM = """convnext_atto deit_tiny_patch16_224 densenet121 dla34 dm_nfnet_f0 dpn48b edgenext_xx_small
    efficientnet_b0 efficientvit_b0 fastvit_t8 gcresnet33ts gernet_s ghostnet_100 hardcorenas_a
    hgnet_tiny hrnet_w18_small inception_v4 lcnet_050 levit_128s maxvit_tiny_rw_224 mixer_s32_224
    mixnet_s mnasnet_050 mobilenetv3_small_100 mobilevit_xxs nf_resnet50 poolformer_s12 pvt_v2_b0
    regnetx_002 repvgg_a0 res2net50_26w_4s resmlp_12_224 resnet18 resnest14d rexnet_100 seresnet18
    swin_tiny_patch4_window7_224 tf_efficientnetv2_b0 vit_tiny_patch16_224 xception41""".split()
TEXT = """AlbertForMaskedLM BertForSequenceClassification BigBirdForMaskedLM BloomForCausalLM
    CodeGenForCausalLM CohereForCausalLM DebertaV2ForMaskedLM DistilBertForMaskedLM
    ElectraForMaskedLM ErnieForMaskedLM FalconForCausalLM FNetForMaskedLM GemmaForCausalLM
    Gemma2ForCausalLM GPT2LMHeadModel GPTNeoForCausalLM GPTNeoXForCausalLM GPTJForCausalLM
    GraniteForCausalLM LlamaForCausalLM MistralForCausalLM MixtralForCausalLM MPNetForMaskedLM
    Olmo2ForCausalLM OPTForCausalLM PhiForCausalLM Phi3ForCausalLM Qwen2ForCausalLM Qwen3ForCausalLM
    RobertaForMaskedLM SmolLM3ForCausalLM StableLmForCausalLM XLMRobertaForMaskedLM""".split()
OTHER = """BartForConditionalGeneration CLIPVisionModel DeiTForImageClassification MarianMTModel
    T5ForConditionalGeneration ViTForImageClassification WhisperForConditionalGeneration""".split()
SMALL = dict(
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=128,
    vocab_size=100,
    max_position_embeddings=64,
    head_dim=16,
    embedding_size=64,
)
_NAMES = {  # of the same sizes in older configurations
    "hidden_size": ("d_model", "n_embd", "dim", "projection_dim"),
    "num_hidden_layers": ("num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers"),
    "num_attention_heads": (
        "n_head",
        "n_heads",
        "num_heads",
        "encoder_attention_heads",
        "decoder_attention_heads",
    ),
    "intermediate_size": ("ffn_dim", "hidden_dim", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim"),
    "head_dim": ("d_kv",),
    "max_position_embeddings": ("n_positions",),
}


def of_timm(name: str) -> Tuple[nn.Module, Any]:
    """A network for classification and an image."""
    import timm

    model = timm.create_model(name)
    size = model.default_cfg.get("input_size", (3, 224, 224))
    return model, torch.rand(2, *size) - 0.5


def of_transformers(name: str) -> Tuple[nn.Module, Any]:
    """A small network of that class and its inputs."""
    import transformers

    kind = getattr(transformers, name)
    default = kind.config_class()
    sizes: Dict[str, Any] = {}
    for key, value in SMALL.items():
        for other in (key, *_NAMES.get(key, ())):
            if hasattr(default, other) and not isinstance(
                getattr(kind.config_class, other, None), property
            ):
                sizes[other] = value
    sizes.update(pad_token_id=0, bos_token_id=1, eos_token_id=2)
    if hasattr(default, "decoder_start_token_id"):
        sizes["decoder_start_token_id"] = 1
    if hasattr(default, "image_size"):
        sizes.update(image_size=32, patch_size=8)
    if hasattr(default, "attention_types"):
        sizes["attention_types"] = [[["global", "local"], 1]]
    if hasattr(default, "rotary_dim"):
        sizes["rotary_dim"] = 8
    if hasattr(default, "num_local_experts"):
        sizes["num_local_experts"] = 4
    if hasattr(default, "num_mel_bins"):
        sizes.update(num_mel_bins=16, max_source_positions=20, max_target_positions=32)
    if "Mixtral" not in name and "Phi3" not in name:
        sizes.pop("rope_theta", None)
    config = kind.config_class(**sizes)
    model = kind(config)
    tokens = torch.randint(3, 100, (2, 8))
    if hasattr(default, "num_mel_bins"):
        return model, {"input_features": torch.rand(2, 16, 40), "decoder_input_ids": tokens}
    if hasattr(default, "image_size"):
        return model, {"pixel_values": torch.rand(2, 3, 32, 32)}
    inputs = {"input_ids": tokens}
    if config.is_encoder_decoder:
        inputs["decoder_input_ids"] = tokens
    return model, inputs


def call(model: nn.Module, inputs: Any) -> Any:
    """The model's result."""
    return model(**inputs) if isinstance(inputs, dict) else model(inputs)


def shuffled(model: nn.Module) -> None:
    """Replaces what initialisation left zero or equal."""
    torch.manual_seed(1)
    with torch.no_grad():
        for tensor in model.parameters():
            if tensor.is_floating_point() and tensor.numel() > 1 and tensor.std() == 0:
                tensor.add_(torch.randn_like(tensor) * 0.02)


def row(name: str, make: Callable[[str], Tuple[nn.Module, Any]], ratio: float) -> Dict[str, Any]:
    """Prunes one network, and trains it for a step."""
    torch.manual_seed(0)
    found: Dict[str, Any] = {"network": name}
    try:
        model, inputs = make(name)
        shuffled(model)
    except Exception as error:
        return {**found, "fault": f"not made: {type(error).__name__}: {error}"}
    begin = time.perf_counter()
    try:
        plan = parsimony.prune(model, inputs, ratio=ratio)
    except Exception as error:
        return {**found, "fault": f"{type(error).__name__}: {error}"}
    found["seconds"] = time.perf_counter() - begin
    proof = plan.proof
    found.update(parameters=plan.parameters, macs=plan.macs, notes=plan.notes)
    found.update(reference=proof and proof.reference, difference=proof and proof.difference)
    found.update(scale=proof and proof.scale)
    try:
        model.train()
        outputs: List[Tensor] = [x for x in tensors_in(call(model, inputs)) if x.requires_grad]
        sum(x.square().mean() for x in outputs).backward()
        torch.optim.SGD(model.parameters(), lr=1e-4).step()
        found["trains"] = True
    except Exception as error:
        found["trains"] = f"{type(error).__name__}: {error}"
    return found


def main() -> None:
    """Runs the networks that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", help="all, if none is given")
    parser.add_argument("--ratio", type=float, default=0.5)
    parser.add_argument("--out", type=Path, help="JSON lines; networks in it are not run again")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)

    def measured(name: str) -> Dict[str, Any]:
        return row(name, of_timm if name.islower() else of_transformers, options.ratio)

    rows = collect(options.networks or TIMM + TEXT + OTHER, measured, options.out)
    good = [entry for entry in rows if entry.get("reference") and entry["trains"] is True]
    print(f"\n{len(good)} of {len(rows)} pruned, proven, and trained for a step.")


if __name__ == "__main__":
    main()
