"""The tables of docs/results/directories_trained.md."""

from tables.measured import table

COMMAND = "tools/directories/trained.py FOLDER STORIES TEXTS MINILM"


def page(stories, encoder, experts, versions):
    known = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "timm")
    return {
        "title": "Directories of trained networks",
        "about": "Directories that `parsimony prune` cut, and fitted by least squares to what the original computes; each is "
        f"loaded by from_pretrained and equals the masked original with the same weights. {known}.",
        "tables": [of_stories(stories), *([of_encoder(encoder)] if encoder else []), of_experts(experts)],
    }


def of_stories(rows):
    """`rows`: what trained.measured and distil.distilled say, by what was cut."""
    columns = ["cut", "parameters left", "loss: by norms", "`obs`", "least squares", "comes back"]
    columns += ["distilled", "from nothing"]
    lines = []
    for name, row in rows.items():
        if row["result"] != "equal":
            lines.append([name, row["result"], *[""] * 6])
            continue
        norms = row.get("by norms")
        plain = row["cut"] if norms is None else norms
        lost = plain - row["original"]
        back = f"{100 * (plain - row['fitted']) / lost:.0f} %" if lost > 0.01 else "–"
        trained = [number(row.get(key)) for key in ("distilled", "from nothing")]
        cells = [number(norms), number(row["cut"]), number(row["fitted"])]
        lines.append([name, left(row), *cells, back, *trained])
    first = next(row for row in rows.values() if row["result"] == "equal")
    about = (
        f"A Llama of {first['parameters'][0]:,} parameters. Mean loss of a token on the last {first['samples']} of 1,000 "
        f"texts, which no weight was fitted to; the original has {number(first['original'])}. With words removed, "
        "on those of them that have no other words, and over the words that are left. By norms: the plain cut. `obs`: the cut "
        "that chooses what least squares can replace (layers and words are the same in both). Least squares without labels "
        "on the 800 texts before these; what comes back is of what the plain cut loses. Distilled: from there, one epoch on them against the original's outputs "
        "(`tools/directories/distil.py`); from nothing: the same class and sizes with random weights, trained on these "
        "texts for as many steps; the better of three learning rates each."
    )
    return table("A language model", about, COMMAND, columns, lines)


def of_encoder(rows):
    lines = [
        (
            [name, left(row), number(row.get("by norms")), number(row["cut"]), number(row["fitted"])]
            if row["result"] == "equal"
            else [name, row["result"], "", "", ""]
        )
        for name, row in rows.items()
    ]
    first = next(row for row in rows.values() if row["result"] == "equal")
    about = (
        f"MiniLM of {first['parameters'][0]:,} parameters. Mean cosine between embeddings (means over tokens, padding "
        f"left out) of the small network and the original, on {first['samples']} sentences that no weight was fitted to."
    )
    columns = ["cut", "parameters left", "cosine: by norms", "`obs`", "least squares"]
    return table("A sentence encoder", about, COMMAND, columns, lines)


def of_experts(rows):
    lines = [
        (
            [name, row["result"], left(row), f"{row['difference']:.1e}"]
            if row["result"] == "equal"
            else [name, row["result"], "", ""]
        )
        for name, row in rows.items()
    ]
    about = (
        "Small configurations with eight experts and random weights; four of each layer leave. The reference is the original "
        "whose router gives the others the score −∞."
    )
    return table(
        "Experts", about, COMMAND, ["class", "result", "parameters left", "largest difference, relative"], lines
    )


def left(row):
    return f"{100 * row['parameters'][1] / row['parameters'][0]:.1f} %"


def number(x):
    return "–" if x is None else f"{x:.3f}"
