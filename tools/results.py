#!/usr/bin/env python3
"""Renders docs/results/*.md from docs/results/data/*.json and the ledger of the zoo.

    tools/results.py            writes the pages
    tools/results.py --check    1 if a page is not what its data give, or a table does not say
                                when, from which commit, where and by which command it was made

A data file: {"title", "about", "tables": [{"title", "about", "date", "commit", "machine",
"command": [line], "columns": [text], "rows": [[text]]}]}. A row may be {"date", "commit",
"cells"} where rows of one table were measured at different times.
"""

import json
import pathlib
import sys

from tables.cells import table_row
from tables.measured import missing
from zoo.page import occasions
from zoo.page import page as zoo_page

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "docs" / "results"
NOTICE = "<!-- Written by tools/results.py: change the data, not this page. -->"


class Pages:
    """{name of a file: its text}, and what is wrong with the data."""

    def __init__(self):
        self.faults = []
        self.data = loaded("data")
        self.texts = {f"{name}.md": self.rendered(name, page) for name, page in self.data.items()}
        self.texts["zoo.md"] = zoo_page([self.network(*item) for item in loaded("zoo").items()])
        self.texts["README.md"] = index(self.data)
        self.texts = {name: f"{NOTICE}\n\n{text.rstrip()}\n" for name, text in self.texts.items()}

    def rendered(self, name, page):
        parts = [self.section(f'data/{name}.json, "{table["title"]}"', table) for table in page["tables"]]
        return paragraphs(f"# {page['title']}", wrapped(page.get("about", "")), *parts)

    def section(self, where, table):
        rows, command = table["rows"], table.get("command") or []
        head, lines, measured = table["columns"], rows, [table]
        each = any(isinstance(row, dict) for row in rows)
        if each:
            head = [*head, "measured"]
            lines = [[*row["cells"], f"{row['date']}, `{row['commit']}`"] for row in rows]
            measured = [{**table, **row} for row in rows]
        self.attributable(where, measured)
        if not command:
            self.faults.append(f"{where}: no command")
        if any(len(cells) != len(head) for cells in lines):
            self.faults.append(f"{where}: uneven rows")
        return paragraphs(
            f"## {table['title']}",
            f"Machine: {table.get('machine')}." if each else facts(table),
            "\n".join(f"    {line}" for line in command),
            wrapped(table.get("about", "")),
            "\n".join([table_row(head), f"|{'---|' * len(head)}", *map(table_row, lines)]),
        )

    def network(self, name, entry):
        self.attributable(f"zoo/{name}.json", occasions(entry))
        return {"name": name, "kind": (entry.get("about") or {}).get("kind"), **entry}

    def attributable(self, where, all_measured):
        lacking = dict.fromkeys(key for measured in all_measured for key in missing(measured))
        self.faults += [f"{where}: no {key}" for key in lacking]

    def check(self):
        for name, text in self.texts.items():
            path = RESULTS / name
            if not path.exists() or path.read_text() != text:
                self.faults.append(f"docs/results/{name} is not what its data give; run tools/results.py")

    def write(self):
        for name, text in self.texts.items():
            (RESULTS / name).write_text(text)


def loaded(folder):
    return {path.stem: json.loads(path.read_text()) for path in sorted((RESULTS / folder).glob("*.json"))}


def paragraphs(*texts):
    return "\n\n".join(filter(None, texts))


def wrapped(text):
    """Text in lines of 120 columns."""
    lines = [""]
    for word in text.split(" "):
        line = f"{lines[-1]} {word}".strip(" ")
        if len(line) <= 120:
            lines[-1] = line
        else:
            lines.append(word)
    return "\n".join(lines)


def facts(table):
    return f"Date: {table.get('date')}. Commit: `{table.get('commit')}`. Machine: {table.get('machine')}."


def index(data):
    lines = "\n".join(f"- [{page['title']}]({name}.md)" for name, page in data.items())
    return f"""# Results

Tables of measurements, rendered from `data/*.json` and `zoo/*.json` by `tools/results.py`; the test
`docs.results` holds the pages to the data. Each table says when it was measured, with which commit, on which machine
and by which command. `CIFAR` stands for a folder with CIFAR-10 in its binary layout.

{lines}
- [The zoo: torchvision's networks](zoo.md)"""


def main():
    pages = Pages()
    if "--check" in sys.argv[1:]:
        pages.check()
    else:
        pages.write()
    strays = sorted(path.name for path in RESULTS.glob("*.md") if path.name not in pages.texts)
    pages.faults += [f"docs/results/{name} has no data" for name in strays]
    for fault in pages.faults:
        print(f"results: {fault}", file=sys.stderr)
    return 1 if pages.faults else 0


if __name__ == "__main__":
    sys.exit(main())
