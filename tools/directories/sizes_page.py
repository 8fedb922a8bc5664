"""The table of docs/results/directories_sizes.md."""

from tables.measured import table

COMMAND = "tools/directories/sizes.py FOLDER"


def page(rows, load):
    """`rows`: what sizes.measured_directory says of each; `load`: of the machine before, processes per core."""
    busy = "" if load < 0.3 else f" The machine was busy with other work: {load:.1f} processes for each core."
    about = (
        "A quarter of every width of a Llama leaves (`--ratio 0.25 --no-verify`); from the command to the written directory. "
        "`apply` is the replay of the plan, without Python. `cp` copies the small directory, whose bytes both must write. "
        "Files of the network with 8 B parameters are sparse: reading them takes no disk. Memory is the largest of any "
        "process at once; files that it maps count, as far as they were read." + busy
    )
    columns = ["parameters", "type", "GB in", "GB out", "prune, s", "MB", "apply, s", "MB", "cp, s"]
    lines = [
        [
            *(row["name"], row["type"], f"{row['in'] / 1e9:.2f}", f"{row['out'] / 1e9:.2f}"),
            *(cell for step in ("prune", "apply") for cell in (f"{row[step][0]:.1f}", f"{row[step][1]:,.0f}")),
            f"{row['cp'][0]:.1f}",
        ]
        for row in rows
    ]
    return {
        "title": "Directories of large networks",
        "about": "Time and memory for directories of transformers, beside copying what they become.",
        "tables": [table("Time and memory", about, COMMAND, columns, lines)],
    }
