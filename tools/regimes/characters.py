"""nanoGPT's character model, the small configuration that its README trains on a processor
(github.com/karpathy/nanoGPT, README.md and config/train_shakespeare_char.py), cut to half of its parameters and to other shares.
"""

import gzip

import torch
from torch.nn import functional

from .counts import macs_of, parameters_of
from .depth import without_layers
from .gpt import Gpt, reset
from .training import cosine

BLOCK, BATCH, STEPS = 64, 12, 2000
MEASURED = 200  # batches of the validation part
FITTED = 1024  # windows of the training part that the cut may look at
# What leaves: layers, then width until this share of the parameters is left.
HALVES = {"width": (0, 0.5), "depth": (2, None), "both": (1, 0.5)}
OTHERS = {"width 75": (0, 0.75), "width 25": (0, 0.25)}
CRITERION = {"criterion": "taylor", "scope": "global"}  # the best of those tried on windows of the training part


class Text:
    """The characters of a file: nine tenths to train on, the rest to measure on."""

    def __init__(self, file, device):
        text = gzip.decompress(file.read_bytes()).decode()
        known = sorted(set(text))
        ids = torch.tensor([known.index(one) for one in text])
        self.tokens, self.device = len(known), device
        self.parts = ids.tensor_split([len(ids) * 9 // 10])

    def batch(self, seed, part=0, count=BATCH):
        """[count, BLOCK + 1] characters, the same ones for a seed."""
        generator, ids = torch.Generator().manual_seed(seed), self.parts[part]
        starts = torch.randint(len(ids) - BLOCK, (count, 1), generator=generator)
        return ids[starts + torch.arange(BLOCK + 1)].to(self.device)

    def loss(self, model):
        """Mean loss of a character on fixed batches of the validation part."""
        model.eval()
        with torch.no_grad():
            losses = [error(model, self.batch(seed, 1, 10 * BATCH)) for seed in range(MEASURED // 10)]
        return torch.stack(losses).mean().item()


def mismatch(answers, wanted):
    return functional.cross_entropy(answers.flatten(0, 1), wanted.flatten())


def error(model, batch):
    return mismatch(model(batch[:, :-1]), batch[:, 1:])


def taught(model, teacher, batch):
    """The mean of the loss and of the distance to the teacher's probabilities."""
    answers = model(batch[:, :-1]).flatten(0, 1)
    with torch.no_grad():
        wanted = teacher(batch[:, :-1]).flatten(0, 1).log_softmax(1)
    distance = functional.kl_div(answers.log_softmax(1), wanted, reduction="batchmean", log_target=True)
    return (functional.cross_entropy(answers, batch[:, 1:].flatten()) + distance) / 2


class Characters:
    """The networks of one seed."""

    def __init__(self, work, text, seed):
        self.work, self.text, self.seed = work, text, seed

    def run(self):
        self.dense()
        for ways in (HALVES, OTHERS):
            for way in ways:
                self.cut(way)
            for steps, run, start in ((STEPS // 10, 1, "fitted"), (STEPS, 2, "fitted"), (STEPS, 0, "nothing")):
                for way in ways:
                    self.further(way, steps, run, start)
        for way in HALVES:
            self.further(way, STEPS // 10, 1, "fitted", "dense")
        for way in HALVES:
            self.further(way, 2 * STEPS, 0, "nothing")

    def dense(self):
        def make():
            torch.manual_seed(self.seed)
            return self.trained("dense", Gpt(self.text.tokens).to(self.work.device), STEPS, 0)

        return self.work.once("dense", make)

    def cut(self, way):
        """Cut, by itself and with least squares."""
        self.work.once(f"{way}, raw", lambda: self.told(self.smaller(way, [])))

        def fitted():
            model = self.smaller(way, ["least-squares"])
            self.work.save(f"{way}, fitted", model)
            return self.told(model)

        self.work.once(f"{way}, fitted", fitted)

    def smaller(self, way, recover):
        import parsimony

        model, windows = self.work.load("dense"), self.text.batch(10**9 + self.seed, 0, FITTED)
        layers, share = {**HALVES, **OTHERS}[way]
        budget = f"params={int(parameters_of(model) * share)}" if share else None
        if layers:
            without_layers(model, layers, windows[:, :-1], [word for step in recover for word in ("--recover", step)])
        if budget:
            data = [(batch[:, :-1], batch[:, 1:]) for batch in windows.split(BATCH)]
            options = {"data": data, "samples": FITTED, "loss": mismatch, **CRITERION}
            parsimony.prune(model, data[0][0], budget=budget, **options, **({"recover": recover} if recover else {}))
        return model

    def further(self, way, steps, run, start, teacher=None):
        """Trains what was cut, or the same sizes from nothing."""
        name = f"{way}, {start}, {steps}" + (", taught" if teacher else "")

        def make():
            model = self.work.load(f"{way}, fitted")
            if start == "nothing":
                torch.manual_seed(self.seed)
                reset(model)
            return self.trained(name, model, steps, run, teacher and self.work.load(teacher).eval())

        return self.work.once(name, make)

    def trained(self, name, model, steps, run, teacher=None):
        """The recipe over so many steps; runs of different numbers see different batches."""

        def loss(model, step):
            batch = self.text.batch((self.seed * 10 + run) * 1_000_000 + step)
            return error(model, batch) if teacher is None else taught(model, teacher, batch)

        rate = lambda step: cosine(step, steps, 1e-3, 1e-4, steps // 20)
        took = self.work.train(name, model, adamw(model), steps, rate, loss)
        return {**self.told(model), "steps": steps, **took}

    def told(self, model):
        example = self.text.batch(0)[:1, :-1]
        return {"loss": self.text.loss(model), "parameters": parameters_of(model), "MACs": macs_of(model, example)}


def adamw(model):
    """AdamW as nanoGPT has it: matrices decay, vectors do not."""
    parts = [[one for one in model.parameters() if (one.dim() > 1) == matrices] for matrices in (True, False)]
    groups = [{"params": part, "weight_decay": decay} for part, decay in zip(parts, (0.1, 0.0))]
    return torch.optim.AdamW(groups, betas=(0.9, 0.99))
