"""Prunes networks of timm and small ones of transformers as live modules, as they come, and prints a table.

    python python/benchmarks/live_modules.py                      # all
    python python/benchmarks/live_modules.py vgg11 LlamaForCausalLM
    python python/benchmarks/live_modules.py --out rows.jsonl     # goes on where it stopped

Each network gets random weights, is pruned to half of its channels, proven, and trained for one step.
Those of transformers are made small by tools/families/networks.py, and have their cache on.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any, Dict, List

import torch
from torch import Tensor

import parsimony
from parsimony.tree import tensors_in

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "tools")]
from families.networks import network, run  # noqa: E402
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


def row(name: str, ratio: float) -> Dict[str, Any]:
    """Prunes one network, and trains it for a step."""
    found: Dict[str, Any] = {"network": name}
    try:
        model, inputs = network(name)
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
        outputs: List[Tensor] = [x for x in tensors_in(run(model, inputs)) if x.requires_grad]
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
        return row(name, options.ratio)

    rows = collect(options.networks or TIMM + TEXT + OTHER, measured, options.out)
    good = [entry for entry in rows if entry.get("reference") and entry["trains"] is True]
    print(f"\n{len(good)} of {len(rows)} pruned, proven, and trained for a step.")


if __name__ == "__main__":
    main()
