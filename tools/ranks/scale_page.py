"""The figures of scale.py as a page."""

import math
import re
import textwrap

from tables.cells import table_row


def percent(share):
    return f"{100 * share:.0f} %"


def signed(share):
    return f"{'−' if share < 0 else '+'}{percent(abs(share))}"


def ms(seconds):
    return f"{1000 * seconds:.1f}" if seconds < 0.1 else str(math.floor(1000 * seconds + 0.5))


def table(head, rows):
    return "\n".join(map(table_row, [head, ["---", *["---:"] * (len(head) - 1)], *rows]))


def wrapped(text):
    """Prose in lines of 120 columns; tables, formulas and headings as they are."""

    def block(each):
        if re.match(r"[|#]|    ", each):
            return each
        items = (" ".join(item.split()) for item in re.split(r"\n(?=- )", each))
        return "\n".join(filled(item, "  " if item.startswith("- ") else "") for item in items)

    def filled(item, indent):
        options = {"break_long_words": False, "break_on_hyphens": False}
        return textwrap.fill(item, 120, subsequent_indent=indent, **options)

    return "\n\n".join(map(block, re.split(r"\n\n+", text.strip()))) + "\n"


def row_of_link(link):
    return [
        f"{link['network']}, {link['bytes'] / 1e6:.1f} MB",
        link["delay_ms"],
        link["rate_mbit"],
        ms(link["seconds"]),
        f"{ms(link['least'])} – {ms(link['most'])}",
        ms(link["computed"]),
        signed(link["error"]),
        "fitted" if link["fitted"] else "held back",
    ]


def page(result):
    links, model, assumed = result["links"], result["model"], result["assumed"]
    head = ["network, gradients", "delay, ms", "Mbit/s", "measured", "from – to", "computed", "error", ""]
    fitted, held = result["errors"]["fitted"], result["errors"]["held_back"]
    on_held = f"{percent(held['median'])}, the largest {percent(held['most'])}" if held else "none was measured"
    byte = model["perByte"] * 1e9

    at = {(row["ranks"], row["gbit"]): row for row in result["many"]}
    counts, rates = (list(dict.fromkeys(of)) for of in zip(*at))
    figures = [[n, *(f"{ms(at[n, gbit]['dense'])} / {ms(at[n, gbit]['pruned'])}" for gbit in rates)] for n in counts]
    few, most = (counts[0], rates[0]), (counts[-1], rates[-1])
    saved = [percent(1 - at[where]["pruned"] / at[where]["dense"]) for where in (few, most)]

    return wrapped(f"""# What more ranks cost

A step of [training in several processes](../guide/processes.md) takes as long as its computation, and what the gradients
take beyond the backward pass that goes on meanwhile:

    step = compute + max(0, communication − overlap · backward)
    communication = latency · 2 (n − 1) · buckets + 2 (n − 1) / n · bytes / bandwidth

n is the number of ranks, latency the seconds of one message; the rest is a ring all-reduce. Backward is taken as two
thirds of compute.

## Two ranks, measured

Two network namespaces on one machine, joined by `tools/ranks/link.py`; both ranks and the link share its processor, one
thread each. The network `cnn` of the command, batches of 64, first dense, then with half of the channels of its
convolutions. Milliseconds of a step: the median of {min(link["steps"] for link in links)} steps or more, the least and
the most. Computed and error: the model, whose numbers come from the four corners of the grid alone; on those the median
error is {percent(fitted["median"])}, on links held back {on_held}.

{table(head, map(row_of_link, links))}

Compute, from the median of the forward passes: {ms(model["compute"]["dense"])} ms dense,
{ms(model["compute"]["pruned"])} ms pruned. Fitted: a message takes {model["rounds"]:.2f} times the delay of the link; a
byte costs {byte:.1f} ns beside the link's rate, which is the work of Gloo, of TCP and of the link's program;
{percent(model["overlap"])} of the backward pass hide communication. The last two are hardly told apart here, because
bytes and backward shrink alike; their sum is what the errors speak of. The formula was chosen with an earlier run of
these measurements at hand.

{result["date"]}, commit {result["commit"]}, {result["machine"]}. Again:
`tools/ranks/scale.py --page scale.md PARSIMONY > scale.json`, as root.

## Many ranks, computed

Nothing here is measured. Milliseconds that the gradients of a network with {assumed["parameters"] / 1e6:.1f} million
parameters (the size of ResNet-50) take, dense / pruned by half, if nothing is hidden by the backward pass. Assumed are
{assumed["latency"] * 1e6:.0f} µs for a message, buckets of {assumed["bucket"] // 2**20} MiB after a small first one, a
network that all ranks can load at once, and hosts that can fill it.

{table(["ranks", *(f"{gbit} Gbit/s" for gbit in rates)], figures)}

- Bytes do not grow with ranks (2 (n − 1) / n approaches 2); messages do. With {most[0]} ranks at {most[1]} Gbit/s,
  messages are most of the time.
- Half of the parameters save {saved[0]} with {few[0]} ranks at {few[1]} Gbit/s, and {saved[1]} with {most[0]} at
  {most[1]} Gbit/s, where fewer buckets mean fewer messages.
- What the backward pass hides has to be subtracted; on one core that the ranks and the link share, that is little.

## Limits

- One machine measured two ranks; that all-reduce follows the formula for more than two was not measured.
- Gloo sends through the processor. A byte costs each host what the memory and TCP cost; {byte:.1f} ns a byte, as
  measured here with both ranks and the link on one core, is a rate of {8 / byte:.1f} Gbit/s. A link that is faster than
  its hosts gives the hosts' rate.
- All ranks are taken to be equally fast; a step lasts as long as that of the slowest.
""")
