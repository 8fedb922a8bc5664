#!/usr/bin/env python3
"""Prunes directories of small networks of transformers' classes, with random weights: a quarter of the feed-forward
width, then half of the heads of the result; and one layer of the original; all with proof. Writes
docs/results/data/directories.json and its page. What is in the folder is not run again.

    tools/directories/main.py FOLDER [OPTION...] [CLASS...]      all of CLASSES, or these

Python needs torch, transformers and the Parsimony package, in python/ of this repository.
"""

import os
import pathlib
import re
import shutil
import sys
import time

TOOLS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TOOLS))
sys.path.append(str(TOOLS.parent / "python"))
from directories.page import page  # noqa: E402
from families.steps import step  # noqa: E402
from tables.runs import COMMAND, once, parser_of, publish  # noqa: E402

CLASSES = """
LlamaForCausalLM MistralForCausalLM Qwen2ForCausalLM Qwen3ForCausalLM GemmaForCausalLM Gemma2ForCausalLM
Gemma3ForCausalLM PhiForCausalLM Phi3ForCausalLM OlmoForCausalLM Olmo2ForCausalLM GPT2LMHeadModel GPTNeoXForCausalLM
GPTJForCausalLM OPTForCausalLM BloomForCausalLM FalconForCausalLM StableLmForCausalLM Starcoder2ForCausalLM
GraniteForCausalLM CohereForCausalLM Glm4ForCausalLM SmolLM3ForCausalLM CodeGenForCausalLM
BertForMaskedLM RobertaForMaskedLM DistilBertForMaskedLM ElectraForMaskedLM AlbertForMaskedLM DebertaV2ForMaskedLM
ModernBertForMaskedLM MPNetForMaskedLM XLMRobertaForMaskedLM CamembertForMaskedLM BertModel EuroBertForMaskedLM
T5ForConditionalGeneration BartForConditionalGeneration MarianMTModel PegasusForConditionalGeneration
MT5ForConditionalGeneration MBartForConditionalGeneration M2M100ForConditionalGeneration WhisperForConditionalGeneration
ViTForImageClassification DeiTForImageClassification BeitForImageClassification Dinov2ForImageClassification
SwinForImageClassification ConvNextForImageClassification SiglipForImageClassification ViTMAEModel
Wav2Vec2ForCTC HubertForCTC WavLMForCTC Data2VecAudioForCTC
MambaForCausalLM Mamba2ForCausalLM FalconMambaForCausalLM
MixtralForCausalLM Qwen3MoeForCausalLM OlmoeForCausalLM GraniteMoeForCausalLM DeepseekV3ForCausalLM GptOssForCausalLM
""".split()
FEED_FORWARD = (
    "intermediate_size ffn_dim encoder_ffn_dim decoder_ffn_dim d_ff n_inner ffn_hidden_size hidden_dim mlp_dim "
    "moe_intermediate_size"
).split()
HEADS = (
    "num_attention_heads num_key_value_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads "
    "num_decoder_heads"
).split()
LIMIT = 300  # seconds for each step


def made(folder, name):
    """Writes FOLDER/NAME, as save_pretrained does. Returns the seconds."""
    from families import networks

    begin = time.perf_counter()
    model, _ = networks.network(name)
    shutil.rmtree(folder / name, ignore_errors=True)
    model.save_pretrained(folder / name)
    type(model).from_pretrained(folder / name)  # some do not read what they wrote
    return {"result": "made", "seconds": time.perf_counter() - begin}


def pruned(folder, source, target, names, share):
    """Prunes what hangs on the keys of these names; tells what became of the directory."""
    import parsimony

    shutil.rmtree(folder / target, ignore_errors=True)
    begin = time.perf_counter()
    text = (folder / source / "config.json").read_text()
    keys = {name: share for name in names if f'"{name}"' in text} or dict.fromkeys(names[:1], share)
    try:
        while True:
            try:
                plan = parsimony.prune_pretrained(folder / source, folder / target, keys=keys)
                break
            except parsimony.ConfigError as error:  # a key of another class
                unknown = re.match(r"keys: '(\w+)'", str(error))
                if unknown is None or len(keys) == 1:
                    raise
                del keys[unknown[1]]
    except parsimony.Error as error:
        return refused(error, begin)
    return told(plan, begin)


def shallow(folder, source, target):
    """Removes the layer of least influence on random inputs."""
    import parsimony

    shutil.rmtree(folder / target, ignore_errors=True)
    begin = time.perf_counter()
    try:
        return told(parsimony.prune_pretrained(folder / source, folder / target, layers=1), begin)
    except parsimony.Error as error:
        return refused(error, begin)


def refused(error, begin):
    kind = "different" if type(error).__name__ == "VerificationError" else "refused"
    return {"result": kind, "why": str(error)[-600:], "seconds": time.perf_counter() - begin}


def told(plan, begin):
    return {
        "result": "equal" if plan.proof is not None else "not proven",
        "keys": {change.attribute: [change.before, change.after] for change in plan.attributes},
        "params": plan.parameters[1] / plan.parameters[0],
        "difference": plan.proof.difference / plan.proof.scale if plan.proof else None,
        "notes": plan.notes,
        "seconds": time.perf_counter() - begin,
    }


def row(asked, name):
    """All that is known of a network; kept, step by step, in FOLDER/results."""
    kept = lambda what, make: once(asked.folder / "results" / f"{name}.{what}.json", make, asked.again)
    found = {"name": name, "made": kept("made", lambda: run(made, asked, name))}
    if found["made"]["result"] != "made":
        print(f"{name}: not made: {found['made'].get('why')}", flush=True)
        return found
    steps = (("narrow", name, FEED_FORWARD, 0.25), ("few", f"{name}.narrow", HEADS, 0.5))
    for what, source, names, share in steps:
        if not (asked.folder / source).exists():  # what came before was refused
            source = name
        found[what] = kept(what, lambda: run(pruned, asked, source, f"{name}.{what}", names, share))
    found["shallow"] = kept("shallow", lambda: run(shallow, asked, name, f"{name}.shallow"))
    texts = (
        f"{what} {found[what]['result']} {found[what].get('why', '')[:300]}" for what in ("narrow", "few", "shallow")
    )
    print(f"{name}: {'  '.join(texts)}", flush=True)
    return found


def run(function, asked, *words):
    return step(f"directories.main:{function.__name__}", asked.folder, *words, limit=LIMIT)


def main():
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", metavar="CLASS", nargs="*")
    parser.add_argument("--command", default=COMMAND, help="build/release/bin/parsimony")
    parser.add_argument("--again", action="store_true", help="run again what has been run")
    parser.add_argument("--no-page", action="store_true", help="leave docs/results as it is")
    asked = parser.parse_args()
    os.environ["PARSIMONY_COMMAND"] = str(asked.command)
    asked.folder.joinpath("results").mkdir(parents=True, exist_ok=True)
    rows = [row(asked, name) for name in asked.names or CLASSES]
    if not asked.no_page and not asked.names:
        publish("directories", page(rows, step("versions")))


if __name__ == "__main__":
    main()
