"""`parsimony prune DIR -o OUT`, `explain DIR` and `inspect DIR`: the command hands directories of
transformers over to this package."""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Sequence

from .command import command_environment, find_command
from .errors import Error
from .settings import SETTINGS

if TYPE_CHECKING:
    from .directories import Pretrained


def _parser() -> argparse.ArgumentParser:
    from .directory_pruning import OWN

    parser = argparse.ArgumentParser(
        prog="parsimony prune",
        description="Prunes a directory that from_pretrained loads into another one that it loads.",
    )
    add = parser.add_argument
    add("model", metavar="DIR", help="Directory with config.json and weights")
    add("-o", "--output", metavar="OUT", required=True, help="A new or an empty directory")
    add(
        "--keys",
        metavar="KEY=SHARE",
        nargs="+",
        help="Sizes of config.json and the share of each to remove; other sizes stay: "
        "intermediate_size=25%% num_attention_heads=50%%",
    )
    add("--layers", metavar="N", help="How many layers to remove, or what share: 25%%")
    add("--experts", metavar="SHARE", help="What share of each layer's experts to remove")
    add("--keep-tokens", metavar="WHAT", help="Words that stay: text:FILE or ids:FILE")
    add("--recover", metavar="STEP", help="least-squares: fit the layers to the original's")
    add("--calibration", metavar="DATA", help="text:FILE[,length=N], to fit and to measure on")
    add("--samples", metavar="N", type=int, help="Samples to fit to (default: 256)")
    add("--ridge", metavar="R", type=float, help="Ridge of least squares, relative")
    add("--device", metavar="D", help="Where calibration runs: cpu, cuda:0 (default: cpu)")
    add("--config", metavar="CFG.json", help="What to prune, and how much")
    add("--plan", metavar="P.json", help="Write the plan, which apply takes")
    add("--report", metavar="R.json", help="Write costs, groups, measurements and times as JSON")
    add("--html", metavar="F.html", help="Write an HTML page of the network")
    add("--no-verify", action="store_true", help="Do not load and compare the networks")
    add("-q", "--quiet", action="store_true", help="Print errors only")
    for name, setting in SETTINGS.items():
        if name in OWN:
            continue
        option, text = "--" + name.replace("_", "-"), setting.help.replace("%", "%%")
        if isinstance(setting.default, bool):
            add(option, action="store_true", default=None, help=text)
        elif isinstance(setting.default, list):
            add(option, action="extend", nargs="+", help=text)
        else:
            add(option, help=text)
    return parser


def main(words: Sequence[str]) -> int:
    """Runs `parsimony prune`, `explain` or what Python adds to `inspect`; returns the exit code.

    Args:
        words: the command and its arguments.
    """
    run = {"prune": _prune, "explain": _explain, "inspect": _inspect}[words[0]]
    try:
        return run(list(words[1:]))
    except Error as error:
        print(f"parsimony: {error}", file=sys.stderr)
        return error.exit_code


def _prune(words: List[str]) -> int:
    from .directory_pruning import prune_pretrained

    asked: Dict[str, Any] = vars(_parser().parse_args(words))
    directory, output = asked.pop("model"), asked.pop("output")
    path, quiet = asked.pop("plan"), asked.pop("quiet")
    asked = {name: value for name, value in asked.items() if value is not None}
    asked.setdefault("keys", [])
    config, verify = asked.pop("config", None), not asked.pop("no_verify")
    plan = prune_pretrained(
        directory,
        output,
        keys=dict(word.partition("=")[::2] for word in asked.pop("keys")),
        config_list=config,
        verify=verify,
        progress=False if quiet else None,
        **asked,
    )
    if path is not None:
        plan.save_data(path)
    if "report" in asked:  # as it was typed
        report = Path(asked["report"])
        content = {
            **json.loads(report.read_text(encoding="utf-8")),
            "command": shlex.join(["parsimony", "prune", *words]),
        }
        report.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    if not quiet:
        print(f"{directory} -> {output}\n{plan}")
    return 0


def _explain(words: List[str]) -> int:
    """Explains the program of the directory's network."""
    from .directories import quiet
    from .leaving import what_may_leave

    with tempfile.TemporaryDirectory(prefix="parsimony_") as folder:
        file = Path(folder, "network.pt2")
        place = _place_of_directory(words)
        with quiet():
            network = _network(words[place])
            network.save(file)
            members = what_may_leave(network)
        words[place] = str(file)
        done = subprocess.run([find_command(), "explain", *words], env=command_environment())
    if done.returncode == 0 and "--json" not in words:
        print("\n".join(["as a whole may leave:", *(f"  {line}" for line in members)]))
    return done.returncode


def _inspect(words: List[str]) -> int:
    """Lists what hangs on the keys of the configuration; the command has listed the tensors."""
    from .directories import quiet
    from .directory_keys import what_hangs_on_keys

    try:
        with tempfile.TemporaryDirectory(prefix="parsimony_") as folder, quiet():
            network = _network(words[_place_of_directory(words)])
            lines = what_hangs_on_keys(network, Path(folder, "network.pt2"))
        print("\n".join(["", "by keys of config.json may leave:", *lines]))
    except Exception as error:  # of transformers, or the class's own: the tensors are listed
        print(f"note: what may leave is not known: {error}")
    return 0


def _place_of_directory(words: Sequence[str]) -> int:
    names = ("config.json", "modules.json")
    place, *_ = (i for i, word in enumerate(words) if any(Path(word, x).exists() for x in names))
    return place


def _network(directory: str) -> "Pretrained":
    from .directories import Pretrained
    from .sentence_modules import SentenceModules

    return Pretrained(SentenceModules(Path(directory)).transformer)
