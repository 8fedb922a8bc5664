#!/usr/bin/env python3
"""Converts pruned directories by llama.cpp's converter, and compares what llama.cpp and transformers write. Writes
docs/results/data/directories_llama_cpp.json and its page.

    tools/directories/llama_cpp.py FOLDER STORIES TEXTS SOURCES BUILD

STORIES is a directory of a Llama, TEXTS a file of texts that it knows, SOURCES those of llama.cpp (PyPI's
llama-cpp-python has them in vendor/llama.cpp), BUILD a folder with its llama-simple. Python needs torch, transformers,
gguf, sentencepiece and the Parsimony package, in python/ of this repository.
"""

import os
import pathlib
import shutil
import subprocess
import sys

TOOLS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TOOLS))
sys.path.append(str(TOOLS.parent / "python"))
from directories.trained import STORIES, words  # noqa: E402
from tables.measured import table  # noqa: E402
from tables.runs import COMMAND, parser_of, publish  # noqa: E402

TOKENS = 64
BEGIN = "Once upon a time"


def by_llama_cpp(source, asked, file):
    """What it writes: most probable tokens."""
    convert = [sys.executable, asked.sources / "convert_hf_to_gguf.py", source, "--outfile", file, "--outtype", "f32"]
    subprocess.run(convert, check=True, capture_output=True)
    run = [next(asked.build.rglob("llama-simple")), "-m", file, "-n", str(TOKENS), BEGIN]
    done = subprocess.run(run, check=True, capture_output=True)
    return done.stdout.decode(errors="replace").replace("<s>", "").strip()


def by_transformers(source):
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(source)
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    tokens = tokenizer(BEGIN, return_tensors="pt")
    written = model.generate(**tokens, do_sample=False, max_new_tokens=TOKENS)
    return tokenizer.decode(written[0], skip_special_tokens=True).strip(), model.num_parameters()


def compared(name, source, asked):
    """How many characters are alike, of how many."""
    ours = by_llama_cpp(source, asked, asked.folder / f"{source.name}.gguf")
    theirs, parameters = by_transformers(source)
    alike = len(os.path.commonprefix([ours, theirs]))
    shorter = min(len(ours), len(theirs))
    print(name, ours, theirs, sep="\n", flush=True)
    return [name, f"{parameters:,}", "all" if alike == shorter else f"the first {alike}", str(shorter)]


def main():
    parser = parser_of(__doc__)
    for name in ("folder", "stories", "texts", "sources", "build"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--command", default=COMMAND, help="build/release/bin/parsimony")
    asked = parser.parse_args()
    os.environ["PARSIMONY_COMMAND"] = str(asked.command)
    import parsimony

    asked.folder.mkdir(parents=True, exist_ok=True)
    rows = [compared("whole", asked.stories, asked)]
    for number, (name, how) in enumerate(STORIES.items()):
        small = asked.folder / f"small{number}"
        shutil.rmtree(small, ignore_errors=True)
        kept = {"keep_tokens": words(asked.texts, asked.folder / "words.txt")} if "words" in name else {}
        parsimony.prune_pretrained(asked.stories, small, **how, **kept)
        rows.append(compared(name, small, asked))
    about = (
        f"Directories of a Llama with 260,000 parameters, pruned, converted by llama.cpp's `convert_hf_to_gguf.py`, and "
        f"run by its `llama-simple`: {TOKENS} most probable tokens after “{BEGIN}”, beside those of transformers."
    )
    columns = ["cut", "parameters", "alike", "characters"]
    publish(
        "directories_llama_cpp",
        {
            "title": "Pruned directories in llama.cpp",
            "about": "What llama.cpp makes of directories that were pruned.",
            "tables": [
                table(
                    "The same text",
                    about,
                    "tools/directories/llama_cpp.py FOLDER STORIES TEXTS SOURCES BUILD",
                    columns,
                    rows,
                )
            ],
        },
    )


if __name__ == "__main__":
    main()
