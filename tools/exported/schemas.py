#!/usr/bin/env python3
"""Writes programs/schemas.inc: the schemas of the operators that the lowering table names, in-place
forms too, from the native_functions.yaml of an installed PyTorch (torchgen/packaged/ATen/native).

    tools/exported/schemas.py NATIVE_FUNCTIONS_YAML
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Operators of numbers, which no row of the table lowers.
NUMBERS = ("is_floating_point", "item", "size", "sym_numel", "sym_size", "_local_scalar_dense")


def main(path):
    names = set(re.findall(r'"(\w+)"', (ROOT / "programs/table.cc").read_text())) | set(NUMBERS)
    lines = []
    for schema in re.findall(r"^- func: (.*)$", Path(path).read_text(), re.M):
        name, arguments = schema.split("(", 1)
        op, _, overload = name.partition(".")
        known = op in names or op.removesuffix("_") in names
        if known and "(a!) out" not in arguments and overload != "out" and not overload.endswith("_out"):
            lines.append(schema)
    if not lines:
        sys.exit(f"schemas.py: {path}: no schemas found")
    text = "\n".join(sorted(lines))
    (ROOT / "programs/schemas.inc").write_text(f'R"(\n{text}\n)"\n')


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    main(sys.argv[1])
