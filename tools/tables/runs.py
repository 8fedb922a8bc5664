"""What tools that measure have in common: where things are, how the command is run, how a page is written."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

from .measured import as_data

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "build" / "release" / "bin" / "parsimony"
DATA = ROOT / "docs" / "results" / "data"
CACHE = pathlib.Path(
    os.environ.get("PARSIMONY_CACHE")
    or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "parsimony"
)


class Command:
    """The command; its reports lie in a folder."""

    def __init__(self, path, folder):
        self.path, self.folder = path, pathlib.Path(folder)

    def run(self, *arguments, before=(), **settings):
        """What it prints. `before`: the words of a program that starts it."""
        done = finished([*before, self.path, *arguments], **settings)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(done.args)}: {done.stderr}")
        return done.stdout

    def report(self, *arguments):
        """What its report says."""
        path = self.folder / "report.json"
        self.run(*arguments, "--report", path)
        return read(path)


def finished(line, limit=None, **settings):
    """A process that has ended; its code is None if it took more than `limit` seconds."""
    line = [*map(str, line)]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
    try:
        return subprocess.run(line, timeout=limit, text=True, **pipes)
    except subprocess.TimeoutExpired as late:
        said = (text.decode() if text else "" for text in (late.stdout, late.stderr))
        return subprocess.CompletedProcess(line, None, *said)


def inputs_of(specs):
    """The words of the command that describe these inputs."""
    return [word for spec in specs for word in ("--input", spec)]


def once(path, make, again=False):
    """What was made once stays in a file of JSON."""
    if again or not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(make(), ensure_ascii=False))
    return read(path)


def read(path):
    return json.loads(pathlib.Path(path).read_text())


def parser_of(text):
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


def publish(name, data):
    """Writes the data of a page, and the pages."""
    (DATA / f"{name}.json").write_text(f"{as_data(data)}\n")
    subprocess.run([sys.executable, ROOT / "tools" / "results.py"], check=True)
