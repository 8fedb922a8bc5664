"""Two trained networks, the ResNets for CIFAR-10 of He et al. (2016), section 4.2, and the recovery after any cut."""

import gzip

import torch
from torch import nn
from torch.nn import functional

WEIGHTS = {"resnet20": "resnet20-12fca82f.th", "resnet56": "resnet56-4bfd9763.th"}
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.side = (outputs - inputs) // 2  # channels of zeros on either side, where the image shrinks
        self.conv1 = nn.Conv2d(inputs, outputs, 3, 2 if self.side else 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        if self.side:
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.side, self.side))
        return functional.relu(y + x)


class ResNet(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        for stage, (inputs, outputs) in enumerate(((16, 16), (16, 32), (32, 64)), 1):
            rest = (Block(outputs, outputs) for _ in range(depth // 6 - 1))
            setattr(self, f"layer{stage}", nn.Sequential(Block(inputs, outputs), *rest))
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        return self.linear(self.layer3(self.layer2(self.layer1(x))).mean((2, 3)))


def weights(shared, name):
    state = torch.load(shared / "models/checkpoints" / WEIGHTS[name], map_location="cpu")["state_dict"]
    return {key.replace("module.", ""): tensor for key, tensor in state.items()}


def images(shared, part):
    """The images, normalised, and their labels; `part` as in the names of the files."""
    rows = gzip.decompress((shared / f"data/cifar10-{part}.bin.gz").read_bytes())
    rows = torch.frombuffer(bytearray(rows), dtype=torch.uint8).view(-1, 3073)
    mean, deviation = (torch.tensor(one).view(3, 1, 1) for one in (MEAN, DEVIATION))
    return (rows[:, 1:].reshape(-1, 3, 32, 32).float() / 255 - mean) / deviation, rows[:, 0].long()


@torch.no_grad()
def answers(model, pictures):
    model.eval()
    return torch.cat([model(part) for part in pictures.split(256)])


def accuracy(model, test):
    pictures, labels = test
    return (answers(model, pictures).argmax(1) == labels).float().mean().item()


def recover(model, pictures, wanted, steps, batch, rate):
    """Brings the outputs back to those of the dense network, without labels: SGD, a fixed number of steps, one seed."""
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, nesterov=True, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        chosen = torch.randperm(len(pictures), generator=generator)[:batch]
        model.train()
        optimizer.zero_grad(set_to_none=True)
        distance = functional.mse_loss(model(pictures[chosen]), wanted[chosen])
        distance.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
