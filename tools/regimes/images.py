"""Networks for CIFAR, trained by one recipe; the small ones are dense sisters, or cut from a large one and fine-tuned by
the same recipe with the large one as the teacher."""

import gzip
from typing import NamedTuple

import torch
from torch.nn import functional

from .counts import macs_of, parameters_of
from .networks import ResNet, mobilenet, vgg19
from .training import cosine

BATCH = 128
RATE, DECAY = 0.1, 5e-4  # SGD with Nesterov's momentum, down to 0 along half a cosine
TUNED = 0.02  # the rate that fine-tuning begins with
TEMPERATURE = 4.0
FITTED = 512  # images that least squares sees
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)


class Regime(NamedTuple):
    data: str
    measured: str  # how many test images
    epochs: int
    dense: dict  # what is trained: {name: makes it}
    cuts: dict  # {name: (the dense one, MACs left of it)}
    note: str = ""


REGIMES = {
    "narrow": Regime(
        "parts",
        "1,017",
        12,
        {"ResNet-20": lambda: ResNet(20), "ResNet-20, 11 wide": lambda: ResNet(20, width=11)},
        {"ResNet-20 cut to 11 wide": ("ResNet-20", 19_385_784)},
        "8,068 images to train on and few epochs, for two cores: no figure here is comparable with a published one, only the "
        "rows with each other. One accuracy of 70 % on so few images has a standard error of 1.4 points.",
    ),
    "sisters": Regime(
        "cifar10",
        "10,000",
        100,
        {f"ResNet-{depth}": lambda depth=depth: ResNet(depth) for depth in (20, 32, 44, 56)},
        {
            f"ResNet-56 cut to ResNet-{depth}": ("ResNet-56", macs)
            for depth, macs in ((20, 40_813_184), (32, 69_124_736), (44, 97_436_288))
        },
    ),
    "resnet56": Regime(
        "cifar10",
        "10,000",
        100,
        {"ResNet-56": lambda: ResNet(56)},
        {f"ResNet-56, {times} times fewer": ("ResNet-56", int(125_747_840 / times)) for times in (2.1, 2.5)},
    ),
    "vgg19": Regime(
        "cifar100",
        "10,000",
        100,
        {"VGG-19": lambda: vgg19(100)},
        {"VGG-19, 8.8 times fewer": ("VGG-19", int(398_182_400 / 8.8))},
    ),
    "mobilenet": Regime(
        "cifar10",
        "10,000",
        100,
        {"MobileNetV2": lambda: mobilenet(10), "MobileNetV2 ×0.5": lambda: mobilenet(10, 0.5)},
        {"MobileNetV2 cut to ×0.5": ("MobileNetV2", 27_969_024)},
    ),
}
FILES = {
    "parts": (1, ["cifar10-train-8068.bin.gz"], ["cifar10-test-first1017.bin.gz"]),
    "cifar10": (1, [f"data_batch_{part}.bin" for part in range(1, 6)], ["test_batch.bin"]),
    "cifar100": (2, ["train.bin"], ["test.bin"]),
}


class Images:
    """A data set in CIFAR's binary layout, plain or packed by gzip, on the device."""

    def __init__(self, folder, name, device):
        labels, *parts = FILES[name]
        read = [b"".join(map(content, (folder / file for file in files))) for files in parts]
        rows = [torch.frombuffer(bytearray(one), dtype=torch.uint8).view(-1, labels + 3072).to(device) for one in read]
        self.labels = [one[:, labels - 1].long() for one in rows]
        pixels = [one[:, labels:].view(-1, 3, 32, 32).float() / 255 for one in rows]
        mean, deviation = (torch.tensor(one, device=device).view(3, 1, 1) for one in (MEAN, DEVIATION))
        self.images = [(one - mean) / deviation for one in pixels]
        self.steps = len(self.labels[0]) // BATCH  # of an epoch

    def batch(self, seed, step):
        """The batch of a step: shuffled, moved by up to four pixels, mirrored or not."""
        epoch, place = divmod(step, self.steps)
        order = torch.randperm(len(self.labels[0]), generator=torch.Generator().manual_seed(seed * 10_000 + epoch))
        chosen = order[place * BATCH : (place + 1) * BATCH].to(self.labels[0].device)
        generator = torch.Generator().manual_seed(seed * 10_000_000 + step)
        return augmented(self.images[0][chosen], generator), self.labels[0][chosen]

    def accuracy(self, model):
        """Per cent of the test images."""
        model.eval()
        with torch.no_grad():
            parts = zip(self.images[1].split(500), self.labels[1].split(500))
            right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in parts)
        return 100 * right / len(self.labels[1])


def content(path):
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def augmented(images, generator):
    count, device = len(images), images.device
    moves = torch.randint(9, (2, count, 1), generator=generator) + torch.arange(32)
    moves[1] = torch.where(torch.rand(count, 1, generator=generator) < 0.5, moves[1], moves[1].flip(1))
    rows, columns = moves.to(device)
    every = torch.arange(count, device=device).view(-1, 1, 1)
    return (
        functional.pad(images, (4, 4, 4, 4))
        .permute(0, 2, 3, 1)[every, rows[:, :, None], columns[:, None]]
        .permute(0, 3, 1, 2)
    )


def half_taught(answers, labels, wanted):
    """The mean of the loss and of the distance to a teacher's answers."""
    soft = [(one / TEMPERATURE).log_softmax(1) for one in (answers, wanted)]
    distance = functional.kl_div(*soft, reduction="batchmean", log_target=True) * TEMPERATURE**2
    return (functional.cross_entropy(answers, labels) + distance) / 2


class Sisters:
    """The networks of one regime and seed."""

    def __init__(self, work, images, seed, regime):
        self.work, self.images, self.seed, self.regime = work, images, seed, regime

    def run(self):
        for name, make in self.regime.dense.items():
            self.dense(name, make)
        for name, (of, macs) in self.regime.cuts.items():
            self.cut(name, of, macs)

    def dense(self, name, make):
        def run():
            torch.manual_seed(self.seed)
            return self.trained(name, make().to(self.work.device), RATE)

        return self.work.once(name, run)

    def cut(self, name, of, macs):
        """Cut to so many MACs, by itself and with least squares, then fine-tuned."""
        import parsimony

        def cut(recovery):
            model = self.work.load(of)
            batch = [self.images.batch(self.seed + 5000, step)[0] for step in range(FITTED // BATCH)]
            options = {"recover": "least-squares", "data": batch, "samples": FITTED} if recovery else {}
            example = self.images.images[1][:BATCH]
            parsimony.prune(
                model, example, budget=f"macs={macs * BATCH}", criterion="group_norm", scope="isomorphic", **options
            )
            return model

        self.work.once(f"{name}, raw", lambda: self.told(cut(False)))

        def fitted():
            model = cut(True)
            self.work.save(f"{name}, fitted", model)
            return self.told(model)

        self.work.once(f"{name}, fitted", fitted)
        teacher = lambda: self.work.load(of).eval()
        start = lambda: self.work.load(f"{name}, fitted")
        self.work.once(name, lambda: self.trained(name, start(), TUNED, teacher()))

    def trained(self, name, model, rate, teacher=None):
        steps = self.regime.epochs * self.images.steps
        optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, nesterov=True, weight_decay=DECAY)
        half = torch.autocast(self.work.device, torch.bfloat16, enabled=self.work.device == "cuda")

        def loss(model, step):
            images, labels = self.images.batch(self.seed + (5000 if teacher else 0), step)
            with half:
                answers = model(images)
                with torch.no_grad():
                    wanted = teacher(images) if teacher else None
            if wanted is None:
                return functional.cross_entropy(answers.float(), labels)
            return half_taught(answers.float(), labels, wanted.float())

        rates = lambda step: cosine(step, steps, rate, 0.0, self.images.steps)
        took = self.work.train(name, model, optimizer, steps, rates, loss)
        return {**self.told(model), "epochs": self.regime.epochs, **took}

    def told(self, model):
        macs = macs_of(model, self.images.images[1][:1])
        return {"accuracy": self.images.accuracy(model), "parameters": parameters_of(model), "MACs": macs}
