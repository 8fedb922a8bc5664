"""Where and when a measurement was made: what every table of docs/results says in its header."""

import datetime
import json
import os
import pathlib
import re
import subprocess

FORMS = {"date": r"\d{4}-\d\d-\d\d", "commit": r"[0-9a-f]{7,40}", "machine": r".*\S.*"}
LIST = re.compile(r'\[\n\s+"[^\[\]{}]*?\n\s+\]')


def measured():
    """{date, commit, machine} of a measurement made now with a build of this tree."""
    processors = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", processors)
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "commit": commit(),
        "machine": f"{model.group(1).strip() if model else 'unknown'}, {os.cpu_count()} cores",
    }


def table(title, about, command, columns, rows, **where):
    """A table of a page, measured now, or as `where` says; columns may be one text, `a|b`."""
    command = [command] if isinstance(command, str) else command
    columns = columns.split("|") if isinstance(columns, str) else columns
    head = {"title": title, "about": about, **measured(), **where}
    return {**head, "command": command, "columns": columns, "rows": rows}


def commit():
    """The commit of this tree; empty outside of a repository."""
    line = ["git", "rev-parse", "--short=7", "HEAD"]
    done = subprocess.run(line, cwd=pathlib.Path(__file__).parent, capture_output=True, text=True)
    return done.stdout.strip()


def missing(where):
    """What `where` lacks to be attributable."""
    return [key for key, form in FORMS.items() if not re.fullmatch(form, (where or {}).get(key) or "")]


def as_data(data):
    """JSON of a data file, each row on one line."""
    text = json.dumps(data, indent=1, ensure_ascii=False)
    return LIST.sub(lambda found: re.sub(r"\s*\n\s*", " ", found[0]).replace("[ ", "[", 1)[:-2] + "]", text)
