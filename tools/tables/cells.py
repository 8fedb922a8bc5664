"""What the tables of models and of the zoo have in common: cells made of a run's report."""

import re

# The file's own time, and the time of the proof, which runs the network.
NOT_OURS = ("read", "write", "prove")


def left(counts):
    """Share that is left, `25.9 %`; `–` where nothing was counted."""
    return f"{100 * counts['after'] / counts['before']:.1f} %" if counts and counts["before"] else "–"


def digits(x):
    """A difference or a tolerance, in two digits."""
    return "–" if x is None else "0" if x == 0 else re.sub(r"e([+-])0", r"e\1", f"{x:.1e}")


def significant(x, count):
    """A number in so many digits, trailing zeros included."""
    mantissa, exponent = f"{x:.{count - 1}e}".split("e")
    if -7 < int(exponent) < count:
        return f"{x:.{count - 1 - int(exponent)}f}"
    return f"{mantissa}e{int(exponent):+d}"


def milliseconds(seconds):
    return f"{1000 * seconds:.0f} ms"


def seconds_between(report):
    """Seconds of all stages between read and write but the proof."""
    return sum(time for stage, time in report["timings"].items() if stage not in NOT_OURS)


def is_proven(report):
    return bool(report["proof"]["ran"] and report["proof"].get("holds"))


def pruned_groups(report):
    return [group for group in report["groups"] if group["kept"] < group["size"]]


def reasons_of(report):
    """{reason, less the node that is its instance: the dimensions it pins}."""
    by = {}
    for kept in report["unpruned_dims"]:
        by.setdefault(re.sub(r" \([^()]*\)$", "", kept["reason"]), []).append(kept["axis"])
    return by


def table_row(cells):
    return f"| {' | '.join(map(str, cells))} |"
