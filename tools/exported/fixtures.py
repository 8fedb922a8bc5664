#!/usr/bin/env python3
"""Makes the fixtures of tests/exported from exported networks: without traces of the sources, and
compressed, they are a few kB each.

    tools/exported/fixtures.py EXPORTED VERSION NAME ...      writes tests/exported/NAME.VERSION.pt2
"""

import json
import pathlib
import sys
import zipfile


def without_traces(value):
    if isinstance(value, dict):
        return {key: {} if key == "metadata" else without_traces(item) for key, item in value.items()}
    return [without_traces(item) for item in value] if isinstance(value, list) else value


def main():
    folder, version, names = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    target = pathlib.Path(__file__).parents[2] / "tests/exported"
    target.mkdir(exist_ok=True)
    for name in names:
        source = zipfile.ZipFile(folder / f"{name}.pt2")
        with zipfile.ZipFile(target / f"{name}.{version}.pt2", "w", zipfile.ZIP_DEFLATED) as zip:
            for entry in source.namelist():
                content = source.read(entry)
                if entry.endswith("exported_program.json") or entry.endswith("models/model.json"):
                    content = json.dumps(without_traces(json.loads(content))).encode()
                zip.writestr(zipfile.ZipInfo(entry, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)


main()
