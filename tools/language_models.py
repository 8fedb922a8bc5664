#!/usr/bin/env python3
"""Measures docs/results/data/language_models.json: small language models trained on a text, pruned to
70 % of their multiply-adds in several ways, recovered without training, then trained for an epoch.

    tools/language_models.py [--models A,B] [--seeds 0,1] [--epochs N] build/release/bin/parsimony TEXT
      > docs/results/data/language_models.json
    tools/results.py
"""

import itertools
import pathlib
import tempfile

from tables.cells import left, significant
from tables.measured import as_data, table
from tables.runs import Command, parser_of

CUTS = {
    "all widths": [],
    "hidden units and heads": ["--granularity", "head", "--exclude", "tokens"],
}
TRAIN = "--batch 32 --optimizer adamw --lr 3e-3 --schedule cosine".split()
TUNE = "--epochs 1 --batch 32 --optimizer adamw --lr 1e-3 --schedule cosine".split()
PRUNE = "--budget macs=70% --input 1x128".split()


def parsed():
    parser = parser_of(__doc__)
    parser.add_argument("--models", default="gpt_tiny,llama_tiny")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--epochs", default="4")
    parser.add_argument("command", metavar="PARSIMONY")
    parser.add_argument("text", metavar="TEXT", type=pathlib.Path)
    return parser.parse_args()


class Bench:
    """Runs the command in a folder."""

    def __init__(self, asked, folder):
        self.asked, self.folder = asked, pathlib.Path(folder)
        self.run = Command(asked.command, folder).report
        self.data = ["--data", f"text:{asked.text}"]

    def at(self, name):
        return self.folder / f"{name}.pt"

    def perplexity(self, *arguments):
        """Trains, and says how surprised the network is by the text that it did not see."""
        return self.run(*arguments, *self.data)["accuracy"]["after"]["perplexity"]

    def evaluated(self, name):
        return self.perplexity("finetune", self.at(name), "-o", self.at("again"), "--epochs", "0")

    def rows(self, model, seed):
        seeded = ["--seed", seed]
        train = ["--model", model, "--epochs", self.asked.epochs, *TRAIN, *seeded]
        dense = self.perplexity("train", *train, "-o", self.at("dense"))

        def ratio(value):
            return f"{significant(value, 3)} ({significant(value / dense, 3)})"

        for cut, chosen in CUTS.items():
            prune = ["prune", self.at("dense"), *PRUNE, *chosen]
            self.run(*prune, "-o", self.at("cut"))
            plain = self.evaluated("cut")
            calibration = ["--calibration", self.data[1], "--samples", "512"]
            recover = ["--recover", "least-squares", *calibration]
            macs = self.run(*prune, "-o", self.at("fitted"), *recover)["macs"]
            fitted = self.evaluated("fitted")
            teacher = ["--teacher", self.at("dense"), "--distill", "0.5"]
            tune = [self.at("fitted"), "-o", self.at("tuned"), *TUNE, *seeded, *teacher]
            tuned = self.perplexity("finetune", *tune)
            costs = [significant(dense, 3), *map(ratio, (plain, fitted, tuned))]
            yield [model, seed, cut, left(macs), *costs]


def data(asked, rows):
    options = f"--models {asked.models} --seeds {asked.seeds} --epochs {asked.epochs}"
    return {
        "title": "Language models",
        "about": "What three tenths less cost a language model that predicts the next byte, and what comes back "
        "without training and with a single epoch. The text is the 1.1 MB of Shakespeare that is usual for such "
        "models; perplexity is of its last fifth, which neither training nor calibration saw.",
        "tables": [
            table(
                "70 % of the multiply-adds",
                f"In parentheses: times the dense perplexity. Epochs of training: {asked.epochs}. Recovered "
                "from 512 windows of 128 bytes, then trained for one epoch with the dense network as the teacher. "
                "After few epochs the dense network would improve with one more, too.",
                f"tools/language_models.py {options} build/release/bin/parsimony {asked.text.name}",
                "network|seed|what is pruned|MACs left|dense|cut|least squares|one epoch",
                rows,
            )
        ],
    }


def main():
    asked = parsed()
    with tempfile.TemporaryDirectory(prefix="parsimony-language-") as folder:
        bench = Bench(asked, folder)
        pairs = itertools.product(asked.models.split(","), asked.seeds.split(","))
        rows = [row for model, seed in pairs for row in bench.rows(model, seed)]
    print(as_data(data(asked, rows)))


if __name__ == "__main__":
    main()
