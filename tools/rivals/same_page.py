"""The tables of what same.py measures."""

from packages import PACKAGES
from page import Run, cell, fixed, median, percent
from same import NAMES, RECOVERY, TRAINED
from tables.measured import table

TITLES = {
    "parsimony": "Parsimony, live module",
    "parsimony_onnx": "Parsimony, ONNX file",
    "torch_pruning": "Torch-Pruning",
    "onnxsim": "onnxsim.pruning",
    "nni_old": "NNI",
    "fastnas": "FastNAS",
}


def command(names, known):
    return " ".join(["tools/rivals/main.py --shared SHARED", *([] if len(names) == len(known) else names)])


def tables(ten, trained, today, versions):
    runs = {tool: {name: Run(found) for name, found in all_of_it.items()} for tool, all_of_it in ten.items()}
    return [together(runs, today, versions), by_network(runs), accuracies(trained)]


def together(runs, today, versions):
    def row(tool, those):
        outcomes = [run.outcome for run in those]
        small = [run for run in those if run.outcome == "smaller"]
        share = median(run.share for run in small)
        return [
            TITLES[tool],
            f"{len(small)} of {len(those)}",
            *(str(outcomes.count(kind)) for kind in ("same", "wrong", "fails")),
            percent(1 if share is None else share),
            *(fixed(median(run[key] for run in small), 1) for key in ("stage", "seconds")),
            fixed(median(run["megabytes"] for run in small), 0),
        ]

    pinned = ", ".join(PACKAGES[tool].split()[0] for tool in ("torch_pruning", "onnxsim", "fastnas", "nni"))
    said = f" (with today's it says {today['note']})" if today.get("note") else ""
    return table(
        "Tools from PyPI: networks of torchvision",
        f"{pinned}, called as their examples call them (tools/rivals/callings.py), each in a process of one thread with "
        f"torch {versions['torch']} and torchvision {versions['torchvision']}; NNI with torch 2.0.1{said}. Half of the "
        "channels of every layer but the last by norm, weights at random; FastNAS, which takes a budget, a quarter of "
        "the MACs, with nearness to the outputs of the original as its score. Smaller: fewer MACs, and the outputs are "
        "those of the original whose removed weights are zero, which is made from the values that stayed; FastNAS "
        "sorts channels and measures BatchNorm's statistics again, so for it: outputs of the same shape. Seconds are "
        "of the processor, medians over the networks that became smaller: of the tool, from the module or file to the "
        "small one, and of the whole process. Parsimony's have its proof, and its command; no other tool compares. "
        "onnxsim simplifies the file first, as it expects.",
        command(next(iter(runs.values())), NAMES),
        "tool|smaller|unchanged|differs|fails|MACs left|tool, s|whole, s|MB",
        [row(tool, list(found.values())) for tool, found in runs.items()],
    )


def by_network(runs):
    def shown(run):
        return cell(run) + (f"; {run['stage']:.1f} s" if run["stage"] is not None else "")

    names = list(next(iter(runs.values())))
    return table(
        "Tools from PyPI: every network",
        "MACs left, and seconds of the tool.",
        command(names, NAMES),
        ["network", *(TITLES[tool] for tool in runs)],
        [
            [f"`{name}`", *(shown(found[name]) if name in found else "not run" for found in runs.values())]
            for name in names
        ],
    )


def accuracies(trained):
    def row(name, tool, found):
        run = Run(found)
        small = run.outcome in ("smaller", "wrong")
        about = [percent(found[key]) if key in found else "–" for key in ("cut", "recovered")]
        outputs = {"smaller": "equal" if found.get("equal") else "run", "wrong": "differ"}.get(run.outcome, cell(run))
        left = [percent(run.share) if small else "–", fixed(found.get("stage"), 2)]
        told, _, inner = tool.partition(".")
        return [name, TITLES[told], "inner channels" if inner else "its own", *left, outputs, *about]

    return table(
        "Tools from PyPI: trained networks, and the same recovery",
        "ResNet-20 and ResNet-56 for CIFAR-10 of akamaster/pytorch_resnet_cifar10 (91.64 and 92.72 % on the 1,017 test "
        "images), with its shortcuts: every second pixel, and zeros for new channels. Its own: the whole network, as "
        "near half of the MACs as the tool comes (Parsimony: a budget, `group_norm`, isomorphic; Torch-Pruning: global "
        "pruning in steps by group norm, as its reproduce/main.py; FastNAS: accuracy on 256 training images as the "
        "score, widths of multiples of 8; onnxsim removes inner channels only). Inner channels: half of those of the "
        "first convolution of each block, told to the tool, by L1 norm; tools that keep the same channels make the "
        "same network. Recovery, written once in PyTorch (tools/rivals/trained.py): the outputs are fitted to those "
        "of the dense network on 8,068 training images without labels, {steps} steps of SGD, batch {batch}, rate {rate}, "
        "one seed. Outputs: against the masked original, as above. The steps are few, and the order depends on them: in a trial with 200 "
        "Torch-Pruning's own ResNet-20 came to 82.6 %, onnxsim's to 78.9 %. An accuracy of 85 % on these test images "
        "has a standard error of 1.1 points. Parsimony's own recovery without steps: [recovery](recovery.md).".format(
            **RECOVERY
        ),
        command(trained, TRAINED),
        "network|tool|layers|MACs left|tool, s|outputs|cut|recovered",
        [row(name, tool, found) for name, tools in trained.items() for tool, found in tools.items()],
    )
