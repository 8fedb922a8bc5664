#!/usr/bin/env python3
"""Makes the fixtures of tests/exported from exported networks: without traces of the sources, and
compressed, they are a few kB each.

    tools/exported/fixtures.py EXPORTED VERSION NAME ...      writes tests/exported/NAME.VERSION.pt2

VERSION 2.7 takes what a later release has exported and gives it the layout of PyTorch 2.7, which
pickles all tensors of a kind into one entry of the archive.
"""

import io
import json
import math
import pathlib
import sys
import zipfile

import torch

TYPES = {5: torch.int64, 7: torch.float32, 12: torch.bool}  # torch/_export/serde/schema.py, ScalarType


def without_traces(value):
    if isinstance(value, dict):
        return {key: {} if key == "metadata" else without_traces(item) for key, item in value.items()}
    return [without_traces(item) for item in value] if isinstance(value, list) else value


def as_one_pickle(entries):
    """The tensors of each list and the files that it names, as one pickled dictionary."""
    for listed in [name for name in entries if name.endswith("_config.json")]:
        folder, model = listed.rsplit("/", 1)[0], listed.rsplit("/", 1)[1].rsplit("_", 2)[0]
        tensors = {}
        for name, entry in json.loads(entries.pop(listed))["config"].items():
            meta = entry["tensor_meta"]
            sizes = [size["as_int"] for size in meta["sizes"]]
            data = bytearray(entries.pop(f"{folder}/{entry['path_name']}"))
            tensor = torch.frombuffer(data, dtype=TYPES[meta["dtype"]], count=math.prod(sizes)).view(sizes)
            tensors[name] = torch.nn.Parameter(tensor) if entry["is_param"] else tensor
        pickled = io.BytesIO()
        torch.save(tensors, pickled)
        entries[f"{folder}/{model}.pt"] = pickled.getvalue()
    return entries


def main():
    folder, version, names = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    target = pathlib.Path(__file__).parents[2] / "tests/exported"
    target.mkdir(exist_ok=True)
    for name in names:
        source = zipfile.ZipFile(folder / f"{name}.pt2")
        entries = {entry: source.read(entry) for entry in source.namelist()}
        for entry, content in entries.items():
            if entry.endswith("exported_program.json") or entry.endswith("models/model.json"):
                entries[entry] = json.dumps(without_traces(json.loads(content))).encode()
        if version == "2.7":
            entries = as_one_pickle(entries)
        with zipfile.ZipFile(target / f"{name}.{version}.pt2", "w", zipfile.ZIP_DEFLATED) as zip:
            for entry, content in entries.items():
                zip.writestr(zipfile.ZipInfo(entry, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)


main()
