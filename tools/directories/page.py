"""The tables of docs/results/directories.md."""

import re

from tables.measured import table

COMMAND = "tools/directories/main.py FOLDER"
STEPS = {"narrow": "feed-forward −25 %", "few": "then heads −50 %", "shallow": "one layer less"}
RESULTS = {
    "equal": "written, loaded, equal",
    "different": "refused by the proof",
    "refused": "refused in words",
    "crashed": "crashed or not done in time",
}


def page(rows, versions):
    """`rows`: what main.row says of each class."""
    known = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "timm")
    made = [row for row in rows if row["made"]["result"] == "made"]
    return {
        "title": "Directories of transformers",
        "about": "Networks of transformers' classes with small configurations and random weights, written by "
        "save_pretrained and pruned as directories: a quarter of the width of feed-forward layers, then half of the "
        "heads of the result; and one layer of the original. Keys are named by what classes call them; what the small directory computes is compared "
        f"with the masked original, in PyTorch, with 1e-4 of the largest output. {known}.",
        "tables": [summary(rows, made), classes(made)],
    }


def summary(rows, made):
    def count(step, result):
        return str(sum(row[step]["result"] == result for row in made))

    lines = [[words, *(count(step, result) for step in STEPS)] for result, words in RESULTS.items()]
    about = f"{len(made)} of {len(rows)} classes have a small configuration that the script finds."
    return table("Summary", about, COMMAND, ["", *STEPS.values()], lines)


def classes(made):
    lines = [[f"`{row['name']}`", *(cell(row[step]) for step in STEPS), why(row)] for row in made]
    about = "Keys with their sizes before and after. The reason is the last line of what was said."
    return table("Classes", about, COMMAND, ["class", *STEPS.values(), "reason"], lines)


def cell(run):
    if run["result"] != "equal":
        return run["result"]
    keys = (
        f"`{key.removeprefix('config.')}` {short(before)}→{short(after)}"
        for key, (before, after) in run["keys"].items()
    )
    return ", ".join(keys)


def short(value):
    return f"{len(value)} items" if isinstance(value, list) else value


def why(row):
    said = [row[step].get("why", "").strip().splitlines()[-1:] for step in STEPS]
    text = " ".join(dict.fromkeys(line for lines in said for line in lines))
    return re.sub(r"/\S*/", "", text).replace("|", "/")[:200]  # without folders
