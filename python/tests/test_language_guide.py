"""Every line of the guide's pages on directories of transformers runs, on tiny networks."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Iterator, Tuple

import pytest
import torch

from parsimony.command import find_command
from parsimony.directory_command import main

from test_directory_members import experts_of
from test_directory_recovery import llama, with_texts

pytest.importorskip("transformers")

GUIDE = Path(__file__).parents[2] / "docs/guide"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = ("language_models.md", "from_language_model_tools.md")


def blocks() -> Iterator[Tuple[str, str, str]]:
    for page in PAGES:
        for language, text in BLOCK.findall((GUIDE / page).read_text()):
            yield page, language, text


def test_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    with_texts(llama(num_attention_heads=8, num_key_value_heads=4), tmp_path / "stories260K")
    with_texts(experts_of("Olmoe"), tmp_path / "mixture")
    monkeypatch.chdir(tmp_path)
    before, count = set(tmp_path.iterdir()), 0
    for page, language, text in blocks():
        if language == "python":
            exec(compile(f"import parsimony\n{text}", page, "exec"), {})
            count += 1
        else:
            for line in text.splitlines():
                count += 1
                run(shlex.split(line))
        for left in set(tmp_path.iterdir()) - before - {tmp_path / "plan.json"}:
            shutil.rmtree(left)
    assert count == 15


def run(words: "list[str]") -> None:
    """A command; those that start Python run in this process."""
    assert words[0] == "parsimony"
    if words[1] == "prune":
        assert main([*words[1:], "-q"]) == 0
    else:
        subprocess.run([find_command(), *words[1:]], check=True)
