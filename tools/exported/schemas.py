#!/usr/bin/env python3
"""Writes programs/schemas.inc: the schemas of the operators that the lowering table names, in-place
forms too, from the native_functions.yaml of the PyTorch that this runs with, and those of other libraries.

    tools/exported/schemas.py [--check]

--check: says whether it is as it would be written; exit code 1 if not.
"""

import argparse
import importlib.util
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "programs/schemas.inc"
# Of other libraries: what equals an operator of the table.
OTHERS = ("transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor",)
# Operators of numbers, which no row of the table lowers.
NUMBERS = ("is_floating_point", "item", "size", "sym_numel", "sym_size", "_local_scalar_dense")


def schemas():
    package = importlib.util.find_spec("torchgen")
    if package is None:
        sys.exit("schemas.py: this Python has no PyTorch")
    functions = Path(package.origin).parent / "packaged/ATen/native/native_functions.yaml"
    names = set(re.findall(r'"(\w+)"', (ROOT / "programs/table.cc").read_text())) | set(NUMBERS)
    lines = list(OTHERS)
    for schema in re.findall(r"^- func: (.*)$", functions.read_text(), re.M):
        name, arguments = schema.split("(", 1)
        op, _, overload = name.partition(".")
        known = op in names or op.removesuffix("_") in names
        if known and "(a!) out" not in arguments and overload != "out" and not overload.endswith("_out"):
            lines.append(schema)
    return sorted(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    lines = schemas()
    if not asked.check:
        FILE.write_text("\n".join(['R"(', *lines, ')"\n']))
        return 0
    written = FILE.read_text().splitlines()[1:-1]
    for line in sorted(set(written) ^ set(lines)):
        print("not PyTorch's:" if line in written else "lacking:", line)
    return 0 if written == lines else 1


if __name__ == "__main__":
    sys.exit(main())
