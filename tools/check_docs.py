#!/usr/bin/env python3
"""Relative links in documents lead to files, the scripts that they name exist, and documents and examples include public
headers only; 1 if not."""

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


def missing_scripts(path):
    named = sorted(set(re.findall(r"(?<![\w/])(?:tools|examples)/[\w./-]+\.(?:m?js|py|sh)\b", path.read_text())))
    return [name for name in named if not (ROOT / name).exists()]


INCLUDE = re.compile(r'#include [<"]parsimony/([^>"]+)')
PUBLIC = re.findall("^[a-z].*", (ROOT / "cmake" / "public_headers.txt").read_text(), re.MULTILINE)


def private_headers(path):
    return [name for name in INCLUDE.findall(path.read_text()) if name not in PUBLIC]


documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
faults = [f"docs: {path.relative_to(ROOT)}: no {to}" for path in documents for to in dead_links(path)]
current = [path for path in documents if path.name != "CHANGELOG.md"]
faults += [f"docs: {path.relative_to(ROOT)}: no {to}" for path in current for to in missing_scripts(path)]
sources = [*(ROOT / "examples").rglob("*.[ch]*"), *(ROOT / "tests" / "consumer").glob("*.cc")]
readers = [ROOT / "README.md", *(ROOT / "docs" / "guide").rglob("*.md"), *sources]
faults += [f"docs: {path.relative_to(ROOT)}: {name} is private" for path in readers for name in private_headers(path)]
print("".join(f"{fault}\n" for fault in faults), end="", file=sys.stderr)
sys.exit(1 if faults else 0)
