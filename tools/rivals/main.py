#!/usr/bin/env python3
"""Prunes the networks of tools/architectures by half with Parsimony and with every other tool that a
Python here has, and writes docs/results/data/rivals.json and its page; others' figures stand in
tools/rivals/quoted.json, each with source and date.

    tools/rivals/main.py [OPTION...] [NAME...]     all networks, or these
    tools/rivals/main.py --shared SHARED [NAME...] the tools that PyPI has, installed in FOLDER, on networks of
                                                   torchvision and on trained ones, instead

What is not measured stays on the page as it is.
"""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from jobs import Jobs, loaded_by, python  # noqa: E402
from page import merged, page, quotations  # noqa: E402
from same import Same  # noqa: E402
from same_page import tables  # noqa: E402
from speed import versions_of as versions_for  # noqa: E402
from tables.runs import CACHE, COMMAND, DATA, parser_of, publish, read  # noqa: E402


def parsed():
    parser = parser_of(__doc__)
    add = parser.add_argument
    add("names", metavar="NAME", nargs="*")
    add("--folder", type=pathlib.Path, default=CACHE / "rivals", help="of networks and results")
    add("--python", metavar="PROGRAM", default="python3",
        help="a Python with PyTorch 2.6 or newer; may be several words, such as a chroot of Debian 13 "
        "with python3-torch that has this tree and FOLDER at the same paths (python3). It writes the "
        ".pt2 files and has torch.ao.pruning")  # fmt: skip
    add("--torch-pruning", metavar="PROGRAM",
        help="one that imports torch_pruning, too (pip install torch-pruning); without this option "
        "--python is asked")  # fmt: skip
    add("--onnxsim", metavar="PROGRAM",
        help="one that imports onnx and onnxsim, with onnxsim.apply_structured_pruning")  # fmt: skip
    add("--onnx-python", metavar="PROGRAM", default=str(CACHE / "torch/bin/python"),
        help="for --onnxsim and --shared: one whose torch exports ONNX (%(default)s)")  # fmt: skip
    add("--shared", type=pathlib.Path, help="a folder with trained networks and CIFAR-10")
    add("--command", default=COMMAND, help="build/release/bin/parsimony")
    add("--again", action="store_true", help="measure again what has been measured")
    add("--no-page", action="store_true", help="leave docs/results as it is")
    return parser.parse_args()


def versions_of(program):
    return python(program, ["versions"])[0] if program else {}


def main():
    asked = parsed()
    asked.folder.mkdir(parents=True, exist_ok=True)
    quoted, known = read(pathlib.Path(__file__).with_name("quoted.json")), read(DATA / "rivals.json")
    if asked.shared:
        same = Same(asked)
        found = tables(*same.run(), versions_for(asked.onnx_python, same.packages["torch_pruning"]))
        if not asked.no_page:
            publish("rivals", merged(known, found + quotations(quoted)))
        return
    kinds = python(asked.python, ["names"])[0]
    asked.names = asked.names or list(kinds)
    versions = {program: versions_of(program) for program in (asked.onnxsim, asked.torch_pruning, asked.python)}
    for module, program in (("torch_pruning", asked.torch_pruning), ("onnxsim", asked.onnxsim)):
        if program and module not in versions[program]:
            sys.exit(f"main.py: {program} does not import {module}")

    jobs = Jobs(asked)
    exported = jobs.export(asked.python)
    tools = {"parsimony": jobs.parsimony(asked.python), "torch_ao": jobs.live("torch_ao", asked.python)}
    pruning = asked.torch_pruning or asked.python
    if "torch_pruning" in versions[pruning]:
        tools["torch_pruning"] = jobs.live("torch_pruning", pruning)
    if asked.onnxsim:
        jobs.export_onnx(asked.onnx_python)
        tools["onnxsim"] = jobs.onnxsim(asked.onnxsim)
    if asked.no_page:
        return
    all_versions = {module: version for found in versions.values() for module, version in found.items()}
    found = page(kinds, asked.names, tools, exported, all_versions, loaded_by(asked.command), quoted)
    publish("rivals", merged(known, found))


if __name__ == "__main__":
    main()
