"""The tables of docs/results/regimes.md, a table for each regime, of what a folder of results has."""

import json
import statistics

from tables.measured import measured, table
from tables.runs import DATA

NOT_RUN = "not run"
COMMAND = "tools/regimes/main.py FOLDER DATA"
NOBODY = "none: not run"
WAYS = {
    "width": "width",
    "depth": "depth: 2 of 4 layers",
    "both": "a layer, then width",
    "width 75": "width, to three quarters",
    "width 25": "width, to a quarter",
}
CHARACTERS = {
    "cut only": "raw",
    "least squares": "fitted",
    "200 steps": "fitted, 200",
    "200 steps, taught": "fitted, 200, taught",
    "2,000 steps": "fitted, 2000",
    "from nothing, 2,000": "nothing, 2000",
    "from nothing, 4,000": "nothing, 4000",
}
# What others have measured, in per cent of the test images, and where they say so.
SISTERS = "chenyaofo/pytorch-cifar-models, README.md: 200 epochs"
PRUNED = "VainF/Torch-Pruning, reproduce/readme.md (DepGraph): 100 sparse epochs and 100 of fine-tuning"
PUBLISHED = {
    "narrow": ("", {}),
    "sisters": (SISTERS, {"ResNet-20": 92.60, "ResNet-32": 93.53, "ResNet-44": 94.01, "ResNet-56": 94.37}),
    "resnet56": (
        PRUNED,
        {"ResNet-56": 93.53, "ResNet-56, 2.1 times fewer": 93.77, "ResNet-56, 2.5 times fewer": 93.64},
    ),
    "vgg19": (PRUNED, {"VGG-19": 73.50, "VGG-19, 8.8 times fewer": 70.39}),
    "mobilenet": (SISTERS, {"MobileNetV2": 93.79, "MobileNetV2 ×0.5": 92.88}),
}
TITLES = {
    "characters": "nanoGPT's character model",
    "narrow": "ResNet-20 and a narrower sister, on 8,068 images",
    "sisters": "ResNet-56 at the MACs of its sisters",
    "resnet56": "ResNet-56 at 2.1 and 2.5 times fewer MACs",
    "vgg19": "VGG-19 on CIFAR-100 at 8.8 times fewer MACs",
    "mobilenet": "MobileNetV2 at the MACs of its sister",
    "costs": "What the small character models cost",
}


def page(folder, regimes):
    """Tables of regimes that the folder has no results of stay as they are. `regimes`: images.REGIMES."""
    path = DATA / "regimes.json"
    tables = json.loads(path.read_text())["tables"] if path.exists() else []
    before = {one["title"]: one for one in tables}
    letters = results(folder / "characters")
    made = [characters(letters), costs(letters)]
    made += [images(name, regime, results(folder / name)) for name, regime in regimes.items()]
    kept = lambda one: before.get(one["title"], one) if one["machine"] == NOBODY else one
    return {
        "title": "Regimes that others know",
        "about": "Networks that others have trained and pruned, by recipes that they have published: each is a command that "
        "goes on where it was killed, and fills its table. What was pruned stands beside dense networks of its size that the "
        f'same recipe trained from nothing. "{NOT_RUN}": not where this page was made.',
        "tables": [kept(one) for one in made],
    }


def results(folder):
    """[{name: what is kept of it}], a dictionary for each seed."""
    seeds = sorted(folder.iterdir()) if folder.exists() else []
    return [{file.stem: json.loads(file.read_text()) for file in seed.glob("*.json")} for seed in seeds]


def where(seeds):
    """When and where the last of the results was measured."""
    all_of_them = [one for found in seeds for one in found.values()]
    latest = max(all_of_them, key=lambda one: one["date"], default={**measured(), "machine": NOBODY})
    return {key: latest[key] for key in ("date", "commit", "machine")}


def mean(seeds, name, key, shown="{:.3f}"):
    """The mean over seeds ± their deviation; says so where some seeds lack it."""
    values = [found[name][key] for found in seeds if name in found]
    if not values:
        return NOT_RUN
    text = shown.format(statistics.mean(values))
    if len(values) > 1:
        text += f" ± {shown.format(statistics.stdev(values))}"
    return text if len(values) == len(seeds) else f"{text} ({len(values)} seed{'s' * (len(values) > 1)})"


def first(seeds, name, key, shown="{:,}"):
    """What it is in the first seed that has it: of sizes, which hardly differ."""
    return next((shown.format(found[name][key]) for found in seeds if name in found), NOT_RUN)


def size(seeds, name):
    return [first(seeds, name, key) for key in ("parameters", "MACs")]


def characters(seeds):
    cut = [
        [shown, *size(seeds, f"{way}, fitted"), "–"]
        + [mean(seeds, f"{way}, {name}", "loss") for name in CHARACTERS.values()]
        for way, shown in WAYS.items()
    ]
    dense = ["dense", *size(seeds, "dense"), "1.88", *["–"] * 5, mean(seeds, "dense", "loss"), "–"]
    about = (
        f"Mean validation loss of a character and its deviation over {len(seeds)} seeds, on 2,400 fixed windows; MACs of 64 "
        "characters. 4 layers, 4 heads, 128 wide, 2,000 steps of 12 windows of 64 characters, without dropout, rate 1e-3 to "
        "1e-4 (karpathy/nanoGPT, README.md and config/train_shakespeare_char.py, which publish 1.88 for the dense model). "
        "Channels of heads, hidden units and the width of the model are removed by `parsimony.prune`, by Taylor scores over "
        "all layers, which on other windows of the training part and seed 0 were better than Taylor scores and L1 norms in "
        "each layer; layers by `prune --layers` from the exported program, those of least influence; each with its proof. "
        "Both look at 1,024 windows of the training part, and so does least squares, layer by layer, without labels. "
        "From there the same recipe over so many steps; taught: half of the loss is the distance to the dense model's "
        "probabilities. From nothing: the sizes that the cut left, with random weights."
    )
    columns = ["cut", "parameters", "MACs", "published", *CHARACTERS]
    return table(TITLES["characters"], about, f"{COMMAND} characters", columns, [dense, *cut], **where(seeds))


def costs(seeds):
    seconds = lambda name: mean(seeds, name, "processor", "{:.0f}").partition(" ±")[0]
    lines = [
        [shown, seconds("dense") if name == "nothing, 2000" else "–", *(seconds(f"{way}, {name}") for way in WAYS)]
        for shown, name in CHARACTERS.items()
    ]
    about = (
        "Seconds of a processor, on one thread of a machine that was also compiling, of the same runs: what the columns of "
        "the table above took, each without what came before it. The cut includes export, plan and proof, least squares the "
        "cut, and every row the measurement of the loss."
    )
    return table(TITLES["costs"], about, f"{COMMAND} characters", ["", "dense", *WAYS.values()], lines, **where(seeds))


def images(name, regime, seeds):
    source, published = PUBLISHED[name]
    quoted = lambda network: f"{published[network]:.2f}" if network in published else "–"
    accuracy = lambda network: mean(seeds, network, "accuracy", "{:.2f}")
    rows = [[one, *size(seeds, one), quoted(one), accuracy(one), "–", "–"] for one in regime.dense]
    for one in regime.cuts:
        before = [accuracy(f"{one}, {step}") for step in ("raw", "fitted")]
        rows.append([one, *size(seeds, one), quoted(one), accuracy(one), *before])
    about = (
        f"Per cent of {regime.measured} test images, {regime.epochs} epochs each, in training and in fine-tuning, which has "
        f"the dense network as its teacher. {f'Published: {source}.' if source else regime.note}"
    )
    command = f"{COMMAND} {name}" + ("" if regime.note else " --device cuda")
    columns = ["network", "parameters", "MACs", "published", "accuracy", "cut only", "least squares"]
    return table(TITLES[name], about.strip(), command, columns, rows, **where(seeds))
