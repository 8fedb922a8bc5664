"""The tables of docs/results/rivals.md."""

import math
import statistics

from tables.measured import table

COMMAND = "tools/rivals/main.py --python PYTHON     # PyTorch 2.6 or newer"
ERROR = 80  # characters of an error


def percent(share):
    return f"{100 * share:.1f} %"


def fixed(x, places):
    return "–" if x is None else f"{x:.{places}f}"


def median(numbers):
    known = [x for x in numbers if x is not None and math.isfinite(x)]
    return statistics.median(known) if known else None


class Run:
    """What one tool made of one network.

    outcome: 'smaller', 'same' (nothing removed), 'wrong' (runs, and differs), or 'fails'
    share:   of the MACs, left
    """

    def __init__(self, found):
        self.found = found
        self.outcome = outcome(found)
        self.share = found["macs"] / found["before"] if found.get("macs") and found.get("before") else None

    def __getitem__(self, key):
        return self.found.get(key)

    def left(self):
        return self.share if self.outcome == "smaller" else 1


def outcome(run):
    note, macs, before = run.get("note") or "", run.get("macs"), run.get("before")
    if run.get("layers") == [] and ": " not in note:
        return "same"
    if (note and macs is None) or run.get("runs") is False:
        return "fails"
    if macs is None or before is None or macs >= before:
        return "same"
    return "wrong" if run.get("equal") is False or run.get("proven") is False else "smaller"


TITLES = (
    "Where others are better",
    "Tools from PyPI: networks of torchvision",
    "Tools from PyPI: every network",
    "Tools from PyPI: trained networks, and the same recovery",
    "The same networks",
    "By kind of network",
    "Every network",
    "Not measured",
    "Published by others",
)


def merged(known, tables):
    """The page with these tables instead of those that it has."""
    found = {one["title"]: one for one in [*known["tables"], *tables]}
    return {
        "title": "Parsimony and other tools",
        "about": "What others do better stands first. Then the tools that PyPI has, beside Parsimony on the same networks; "
        "160 small architectures, with torch.ao.pruning; and figures that others publish, quoted with their source.",
        "tables": [found[title] for title in TITLES if title in found],
    }


def quotations(quoted):
    return [better(quoted), absent(quoted), figures(quoted)]


def page(kinds, names, tools, exported, versions, loaded, quoted):
    """The tables of an hour's measurement of all tools on small architectures, and those that are quoted."""

    def judged(tool, name, found):
        return Run({"before": exported[name].get("macs"), **found} if tool == "parsimony" else found)

    runs = {tool: {name: judged(tool, name, run) for name, run in found.items()} for tool, found in tools.items()}
    titles = quoted["titles"]
    columns = [titles[tool] for tool in runs]
    return [
        together(names, runs, exported, versions, loaded, quoted),
        by_kind(kinds, names, runs, columns),
        by_network(names, runs, columns),
        *quotations(quoted),
    ]


def quotation(title, about, columns, rows):
    command = "tools/rivals/main.py     # from tools/rivals/quoted.json"
    return table(title, about, command, columns, rows, machine="none: quoted, not measured")


def better(quoted):
    return quotation(
        "Where others are better",
        f"Read in their repositories in {quoted['date']}, unless it says measured. Date: of the source, where it has one.",
        "tool|what it has that Parsimony lacks|source|date",
        quoted["better"],
    )


def ahead(rows, columns):
    """The columns of costs in which another tool is better."""

    def cost(row, name):
        text = row[columns.index(name)]
        return math.nan if text == "–" else float(text)

    wins = [
        f"{row[0]} ({name})"
        for row in rows[1:]
        for name in ("s", "MB", "loaded, MB")
        if cost(row, name) < cost(rows[0], name)
    ]
    return f"Costs less than Parsimony: {', '.join(wins)}. " if wins else ""


def overlooked(ours):
    """What Parsimony had proven, and PyTorch does not run."""
    missed = sum(run.outcome == "fails" and bool(run["proven"]) for run in ours)
    said = f"Parsimony had proven {missed} of the files that PyTorch then did not run: the proof runs the network "
    return said + "that Parsimony has read, not the file. " if missed else ""


def unreadable(ours):
    count = sum(bool(run["unreadable"]) for run in ours)
    said = f"Of the .pt2 files PyTorch does not read {count} that it wrote itself; there Parsimony's counts stand. "
    return said if count else ""


def row_of_tool(tool, runs, loaded, quoted):
    small = [run for run in runs if run.outcome == "smaller"]
    outcomes = [run.outcome for run in runs]
    share = median(run.share for run in small)
    return [
        quoted["titles"][tool],
        f"{len(small)} of {len(runs)}",
        *(str(outcomes.count(kind)) for kind in ("same", "wrong", "fails")),
        percent(1 if share is None else share),
        percent(median(run.left() for run in runs)),
        fixed(median(run["seconds"] for run in small), 1),
        fixed(median(run["megabytes"] for run in small), 0),
        fixed(loaded if tool == "parsimony" else median(run["loaded"] for run in small), 0),
        quoted["proof"][tool],
        quoted["needs"][tool],
    ]


def together(names, runs, exported, versions, loaded, quoted):
    ours = list(runs["parsimony"].values())
    alone = sum(bool(run["alone"]) for run in runs.get("torch_ao", {}).values())
    rows = [row_of_tool(tool, list(found.values()), loaded, quoted) for tool, found in runs.items()]
    columns = "tool|smaller|unchanged|differs|fails|MACs left|MACs left, all|s|MB|loaded, MB|proof|needs".split("|")
    others = "".join(f", {name} {version}" for name, version in versions.items() if name != "torch")
    export = fixed(median(run.get("seconds") for run in exported.values()), 1)
    return table(
        "The same networks",
        f"{ahead(rows, columns)}{overlooked(ours)}The {len(names)} architectures of [coverage](coverage.md), "
        "half of the channels by L1 norm. Smaller: the small network runs, has fewer MACs, and gives what the masked "
        "original gives (where a tool has no masks, outputs of the same shapes). MACs left: the median of those, and "
        "of all networks, where one that did not become smaller keeps all. MACs are counted by PyTorch "
        "(torch.utils.flop_counter), those of ONNX files by `parsimony inspect`. Time and memory: medians of a whole "
        "process, start, libraries and a run of the small network included, seconds of the processor with one thread, "
        "peak in MB; loaded: size in MB of the programs, libraries and Python modules that such a process loads. "
        f"PyTorch {versions.get('torch')}{others}. Parsimony reads .pt2 files; exporting one takes {export} s more in a "
        "running Python, which the others do not need. Its time has the proof. "
        f"{unreadable(ours)}torch.ao.pruning (SaliencyPruner) gets every help: BatchNorm is folded first, and it is "
        "told the layers with which it copes, found by trying each alone, which is not in its time; with its own choice "
        f"of layers it prunes {alone}. No tool is told the heads of attention.",
        COMMAND,
        columns,
        rows,
    )


def by_kind(kinds, names, runs, columns):
    def cell(those):
        smaller = sum(run.outcome == "smaller" for run in those)
        return f"{smaller}, {percent(median(run.left() for run in those))}"

    def row(kind):
        those = [name for name in names if kinds[name] == kind]
        return [kind, str(len(those)), *(cell([found[name] for name in those]) for found in runs.values())]

    return table(
        "By kind of network",
        "Networks that became smaller, and the median of the MACs left, over all networks of the kind.",
        COMMAND,
        ["kind", "networks", *columns],
        [row(kind) for kind in dict.fromkeys(kinds[name] for name in names)],
    )


def by_network(names, runs, columns):
    return table(
        "Every network",
        'MACs left. "Unchanged": no layer that the tool can prune. "Fails": the first words of its error.',
        COMMAND,
        ["network", *columns],
        [[f"`{name}`", *(cell(found[name]) for found in runs.values())] for name in sorted(names)],
    )


def cell(run):
    if run.outcome == "same":
        return "unchanged"
    if run.outcome == "fails":
        note = (run["note"] or "does not run").replace("|", "/")
        return f"fails: {note[:ERROR] + '…' if len(note) > ERROR else note}"
    return percent(run.share) + (", differs" if run.outcome == "wrong" else "")


def absent(quoted):
    return quotation("Not measured", "", "tool|where it comes from|why", quoted["absent"])


def figures(quoted):
    return quotation(
        "Published by others",
        f"Quoted, read in {quoted['date']}; nothing of this was repeated here, and data, training and machines "
        "differ from those of our pages: [recovery](recovery.md), [data sets](data_sets.md), "
        "[language models](language_models.md).",
        "tool|network, data, method|result|cost|source",
        quoted["figures"],
    )
