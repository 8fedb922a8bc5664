#!/usr/bin/env python3
"""The page of tools/regimes, made of what a folder has: without torch."""

import collections
import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))
from regimes import page  # noqa: E402

HERE = {"date": "2026-11-29", "commit": "1234567", "machine": "a machine"}
Regime = collections.namedtuple("Regime", "measured epochs dense cuts note")
REGIMES = {"narrow": Regime("1,017", 20, {"ResNet-20": None}, {"small": ("ResNet-20", 1)}, "")}


def keep(folder, regime, seed, name, **found):
    path = folder / regime / str(seed) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"parameters": 804096, "MACs": 55058432, "processor": 99.6, **found, **HERE}))


def main():
    with tempfile.TemporaryDirectory() as at:
        folder = pathlib.Path(at)
        page.DATA = folder
        nobody = {one["title"]: one for one in page.page(folder, REGIMES)["tables"]}
        assert all(one["machine"] == page.NOBODY for one in nobody.values())

        keep(folder, "characters", 0, "dense", loss=1.5)
        keep(folder, "characters", 1, "dense", loss=1.7)
        keep(folder, "characters", 0, "width, fitted", loss=2)
        letters, costs, narrow = page.page(folder, REGIMES)["tables"]
        dense, width, depth, *_ = letters["rows"]
        row = lambda cells: dict(zip(letters["columns"], cells))
        assert letters["machine"] == "a machine" and "over 2 seeds" in letters["about"]
        assert dense[:4] == ["dense", "804,096", "55,058,432", "1.88"]
        assert row(dense)["from nothing, 2,000"] == "1.600 ± 0.141"
        assert row(width)["least squares"] == "2.000 (1 seed)" and row(width)["cut only"] == page.NOT_RUN
        assert depth[1:3] == [page.NOT_RUN] * 2
        assert ["from nothing, 2,000", "100", *[page.NOT_RUN] * 5] in costs["rows"]
        assert narrow == nobody[narrow["title"]]

        # What was measured elsewhere stays.
        (folder / "regimes.json").write_text(json.dumps({"tables": [letters, {**narrow, "machine": "another"}]}))
        keep(folder, "characters", 1, "width, fitted", loss=4)
        letters, _, narrow = page.page(folder, REGIMES)["tables"]
        assert row(letters["rows"][1])["least squares"] == "3.000 ± 1.414" and narrow["machine"] == "another"


if __name__ == "__main__":
    main()
