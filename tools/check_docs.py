#!/usr/bin/env python3
"""Every relative link in a document leads to a file; 1 if not."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r'\]\(([^)#\s]+)[^)]*\)|src="([^"]+)"')


def dead_links(path):
    prose = FENCED.sub("", path.read_text())
    targets = (link or image for link, image in LINK.findall(prose))
    return [to for to in targets if not re.match("[a-z]+:", to) and not (path.parent / to).exists()]


documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
faults = [f"docs: {path.relative_to(ROOT)}: no {to}" for path in documents for to in dead_links(path)]
print("".join(f"{fault}\n" for fault in faults), end="", file=sys.stderr)
sys.exit(1 if faults else 0)
