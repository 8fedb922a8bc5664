#!/usr/bin/env python3
"""Trains, prunes and trains on, by recipes that others have published figures of; writes docs/results/data/regimes.json
and its page. What is in FOLDER is not run again, and a training that was killed goes on.

    tools/regimes/main.py FOLDER DATA [OPTION...] REGIME...      without a REGIME only the page is written

characters   nanoGPT's small character model; DATA has tinyshakespeare.txt.gz. An hour of a processor for a seed
narrow       ResNet-20; DATA has cifar10-train-8068.bin.gz and cifar10-test-first1017.bin.gz. An hour of a processor
sisters, resnet56, mobilenet    for an accelerator; DATA has CIFAR-10 in its binary layout
vgg19        for an accelerator; DATA has CIFAR-100 in its binary layout

Python needs torch and the Parsimony package, in python/ of this repository.
"""

import os
import pathlib
import sys

TOOLS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TOOLS))
sys.path.append(str(TOOLS.parent / "python"))
import torch  # noqa: E402

from regimes import characters, images  # noqa: E402
from regimes.page import page  # noqa: E402
from regimes.work import Work  # noqa: E402
from tables.runs import COMMAND, parser_of, publish  # noqa: E402


def main():
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("regimes", metavar="REGIME", nargs="*")
    parser.add_argument("--command", default=COMMAND, help="build/release/bin/parsimony")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", help="0,1,2 for characters, else 0; start several with --no-page for seeds at once")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-page", action="store_true", help="leave docs/results as it is")
    asked = parser.parse_args()
    for name in set(asked.regimes) - {"characters", *images.REGIMES}:
        parser.error(f"unknown regime: {name}")
    os.environ["PARSIMONY_COMMAND"] = str(asked.command)
    torch.set_num_threads(asked.threads)
    for name in asked.regimes:
        seeds = asked.seeds or ("0,1,2" if name == "characters" else "0")
        for seed in map(int, seeds.split(",")):
            work = Work(asked.folder / name / str(seed), asked.device)
            networks_of(name, asked.data, work, seed).run()
    if not asked.no_page:
        publish("regimes", page(asked.folder, images.REGIMES))


def networks_of(name, data, work, seed):
    if name == "characters":
        text = characters.Text(data / "tinyshakespeare.txt.gz", work.device)
        return characters.Characters(work, text, seed)
    regime = images.REGIMES[name]
    return images.Sisters(work, images.Images(data, regime.data, work.device), seed, regime)


if __name__ == "__main__":
    main()
