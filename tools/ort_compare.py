#!/usr/bin/env python3
"""The independent oracle: does the small model compute what the original computes with the planned
slices set to zero? It shares no code with the library: own masking, ONNX Runtime.

exit: 0 exact, mixes, weak or finite; 1 mismatch, not finite, or an error among several models;
      2 usage; 3 the original cannot be run; 4 files
"""

import argparse
import dataclasses
import pathlib
import sys
from collections.abc import Callable

import environment  # noqa: F401
from oracle import faults, report
from oracle.compare import Job, Options, compare, smoke
from oracle.probes import DISTRIBUTIONS, parse_spec, read_spec_table

FINE = ("exact", "mixes", "weak", "finite")


def positive(kind):
    def read(text):
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError(f'"{text}": expected a number above 0')
        return value

    return read


def parsed():
    default = Options()
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="ort_compare.py ORIGINAL.onnx SMALL.onnx PLAN.json [options]\n"
        "       ort_compare.py --batch LIST.tsv [options]     rows of ORIGINAL, SMALL, PLAN, perhaps SPECs, D\n"
        "       ort_compare.py --run MODEL.onnx... [options]  does each run, and are its outputs finite?",
    )
    add = parser.add_argument
    add("files", nargs="*", help=argparse.SUPPRESS)
    add("--batch", metavar="LIST.tsv", help=argparse.SUPPRESS)
    add("--run", action="store_true", help=argparse.SUPPRESS)
    add("--input", metavar="SPEC", action="append", default=[],
        help="1x3x32x32, 2x8:int64, :int64=16000 (a scalar); once per argument, in order")  # fmt: skip
    add("--specs", metavar="FILE", type=read_spec_table, default={},
        help="a table of file name, tab, SPECs: used where no --input is given")  # fmt: skip
    add("--inputs", metavar="N", type=positive(int),
        help="random inputs to try (3, or 8 small ones); where the batch size is open, one more has "
        "another one")  # fmt: skip
    add("--seed", metavar="S", type=positive(int), default=default.seed,
        help="where the random numbers begin (%(default)s)")  # fmt: skip
    add("--distribution", choices=DISTRIBUTIONS, default=default.distribution,
        help="of float inputs (%(default)s)")  # fmt: skip
    add("--also", metavar="VALUE", action="append", default=[],
        help="compare an inner value that both models compute as well; may be repeated")  # fmt: skip
    add("--tolerance", metavar="T", type=positive(float),
        help="instead of 1e-4 (float32) or 1e-2 (float16); either is raised to 4 times the original's "
        "own noise")  # fmt: skip
    add("--threads", metavar="N", type=positive(int), default=default.threads,
        help="for ONNX Runtime (%(default)s)")  # fmt: skip
    add("--json", action="store_true", help="one JSON object per model, one line each")
    return parser, parser.parse_args()


def main(parser, asked):
    options = Options(**{f.name: getattr(asked, f.name) for f in dataclasses.fields(Options)})

    def specs_of(model, own=()):
        specs = own or asked.input or asked.specs.get(pathlib.Path(model).name, [])
        return [parse_spec(spec) for spec in specs]

    if asked.run:
        if not asked.files:
            parser.error("--run: expected at least one model")
        jobs = [Run({"model": model}, smoke, (model, specs_of(model), options)) for model in asked.files]
        return judge(jobs, asked.json, report.smoke_text)
    if asked.batch is not None:
        rows = pathlib.Path(asked.batch).read_text(encoding="utf-8").splitlines()
        rows = [row for row in rows if row.strip() and not row.startswith("#")]
        jobs = [comparison_of(asked.batch, row, specs_of, options) for row in rows]
        return judge(jobs, asked.json, report.row_text)
    if len(asked.files) != 3:
        parser.error("expected ORIGINAL.onnx SMALL.onnx PLAN.json")
    job = Job(*asked.files, specs_of(asked.files[0]))
    return judge([Run({}, compare, (job, options))], asked.json, report.comparison_text)


@dataclasses.dataclass
class Run:
    about: dict  # which one it is
    function: Callable
    arguments: tuple


def comparison_of(path, row, specs_of, options):
    files, specs, distribution = (cells := row.split("\t"))[:3], cells[3:4], cells[4:5]
    if len(files) < 3:
        raise faults.UsageFault(f'{path}: expected ORIGINAL, SMALL and PLAN between tabs, found "{row}"')
    if distribution:
        options = dataclasses.replace(options, distribution=distribution[0])
    job = Job(*files, specs_of(files[0], " ".join(specs).split()))
    return Run(dict(zip(("original", "small", "plan"), files)), compare, (job, options))


def judge(runs, as_json, text_of):
    """One bad file must not keep the others from being run."""
    results = []
    for run in runs:
        try:
            results.append(run.function(*run.arguments))
            text = text_of(results[-1])
        except faults.ANY as fault:
            if len(runs) == 1:
                raise
            results.append({**run.about, "verdict": "ERROR", "notes": [str(fault)]})
            text = f"ERROR  {run.about.get('small') or run.about['model']}: {fault}"
        print(report.as_json(results[-1]) if as_json else text, flush=True)
    if not as_json and len(results) > 1:
        print(report.summary_text(results))
    return faults.FINE if all(one["verdict"] in FINE for one in results) else faults.FAILED


if __name__ == "__main__":
    sys.exit(faults.exit_code("ort_compare.py", lambda: main(*parsed())))
