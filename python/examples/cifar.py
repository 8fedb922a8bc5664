# Pruning inside a training loop, from the first epoch to the ONNX file.
#
# Each block marked `# %%` is a cell: editors open this file as a notebook. As a program:
#
#     python3 python/examples/cifar.py --data data_batch_1.bin --epochs 6
#
# Without --data it trains on noise with a pattern in it, to show the calls.

# %% Settings
import argparse
import gzip
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import parsimony

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=Path, help="a file of CIFAR-10's binary version, or its .gz")
parser.add_argument("--samples", type=int, default=2000)
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()))
settings = parser.parse_args()
torch.manual_seed(0)

# %% Data: images of 3x32x32 around zero, and labels
if settings.data is None:
    labels = torch.randint(0, 10, (settings.samples,))
    patterns = torch.randn(10, 3, 32, 32)
    images = patterns[labels] + torch.randn(settings.samples, 3, 32, 32)
else:
    content = settings.data.read_bytes()
    content = gzip.decompress(content) if settings.data.suffix == ".gz" else content
    records = torch.frombuffer(bytearray(content), dtype=torch.uint8).view(-1, 3073)
    records = records[: settings.samples]
    labels = records[:, 0].long()
    images = (records[:, 1:].view(-1, 3, 32, 32).float() / 255 - 0.47) / 0.25
batches = list(zip(images.split(64), labels.split(64)))
train, test = batches[: -len(batches) // 5 or None], batches[-max(len(batches) // 5, 1) :]


# %% A network
class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=2, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.blocks = nn.Sequential(Block(16, 32), Block(32, 64))
        self.fc = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.blocks(F.relu(self.stem(x))).mean((2, 3)))


# %% An ordinary training loop
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)


def train_epoch() -> None:
    model.train()
    for inputs, targets in train:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


def accuracy(network: nn.Module) -> float:
    network.eval()
    with torch.no_grad():
        hits = sum(int((network(x).argmax(1) == y).sum()) for x, y in test)
    return hits / sum(len(y) for _, y in test)


# %% Train, and prune on the way: same module, same optimizer, smaller layers
example = images[:1]
plans = []
for epoch in range(settings.epochs):
    train_epoch()
    print(f"epoch {epoch}: accuracy {accuracy(model):.3f}")
    if epoch in (1, 3):
        plan = parsimony.prune(
            model,
            example,
            ratio=0.3,
            criterion="taylor",
            data=train,
            loss=F.cross_entropy,
            samples=256,
        )
        parsimony.carry_over(optimizer, plan)
        plans.append(plan)
        print(plan)
        print(f"accuracy {accuracy(model):.3f} after the cut")

# %% Save: the weights as always, and beside them what was cut
torch.save(model.state_dict(), settings.out / "small.pth")
for i, plan in enumerate(plans):
    plan.save(settings.out / f"plan{i}.json")

# %% Load elsewhere: construct the network as it was, cut it, load the weights
again = Net()
for i in range(len(plans)):
    parsimony.apply(again, settings.out / f"plan{i}.json")
again.load_state_dict(torch.load(settings.out / "small.pth"))
print(f"loaded: accuracy {accuracy(again):.3f}")

# %% Deploy: ONNX, proven
parsimony.export_onnx(again, example, settings.out / "small.onnx", dynamic_batch=True)
print(f"{settings.out / 'small.onnx'}: {(settings.out / 'small.onnx').stat().st_size:,} bytes")
