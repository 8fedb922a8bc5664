"""Published checkpoints of ResNets for CIFAR-10, pruned with their ONNX files and alone, judged by
PyTorch on real images.

    cifar_test.py COMMAND DATA

The small network must be the masked dense one on every image, and the small ONNX file must hold the
small checkpoint's weights.
"""
import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    print("no torch for", sys.executable)
    sys.exit(77)

COMMAND, DATA = map(os.path.abspath, (sys.argv.pop(1), sys.argv.pop(1)))
NETWORKS = {20: "resnet20-12fca82f.th", 56: "resnet56-4bfd9763.th"}
IMAGES = 1017
torch.set_grad_enabled(False)


class Block(nn.Module):
    def __init__(self, into, between, width, pads):
        super().__init__()
        self.pads = pads  # channels before and behind, where the image shrinks
        self.conv1 = nn.Conv2d(into, between, 3, 2 if pads else 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(between)
        self.conv2 = nn.Conv2d(between, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.pads:
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, *self.pads))
        return F.relu(y + x)


class Net(nn.Module):
    """The ResNet with the widths of a state dict (He et al., 2016, section 4.2)."""

    def __init__(self, state, pads):
        super().__init__()
        self.conv1 = nn.Conv2d(3, len(state["bn1.weight"]), 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(len(state["bn1.weight"]))
        for stage in (1, 2, 3):
            blocks = []
            while f"layer{stage}.{len(blocks)}.conv1.weight" in state:
                name = f"layer{stage}.{len(blocks)}"
                between, into = state[name + ".conv1.weight"].shape[:2]
                padded = pads[stage - 2] if stage > 1 and not blocks else None
                blocks.append(Block(into, between, len(state[name + ".bn2.weight"]), padded))
            setattr(self, f"layer{stage}", nn.Sequential(*blocks))
        self.linear = nn.Linear(state["linear.weight"].shape[1], 10)
        self.load_state_dict(state)
        self.eval()

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x))))))
        return self.linear(x.mean((2, 3)))


def state_of(path):
    state = torch.load(path, map_location="cpu")["state_dict"]
    return {name.replace("module.", ""): tensor for name, tensor in state.items()}


def images():
    with gzip.open(f"{DATA}/data/cifar10-test-first1017.bin.gz") as file:
        rows = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).reshape(IMAGES, 3073)
    pixels = rows[:, 1:].reshape(-1, 3, 32, 32).float() / 255
    mean, std = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]]).reshape(2, 1, 3, 1, 1)
    return (pixels - mean) / std, rows[:, 0].long()


def masked(state, plan):
    """The state whose removed channels are zero."""
    state = {name: tensor.clone() for name, tensor in state.items()}
    for group in plan["groups"]:
        for part in group["slices"]:
            gone = sorted(set(range(part["size"])) - set(part["keep"]))
            if part["role"] != "with" and part["tensor"] in state:
                state[part["tensor"]].index_fill_(part["axis"], torch.tensor(gone), 0)
    return state


def pads_of(plan, before):
    """How many channels the shortcuts add after the plan."""
    changed = [e for e in plan["integers"] if e["what"] == "pads"]
    # [n, c, h, w] before, then behind.
    return [(entry["to"][1], entry["to"][5]) for entry in changed] or before


class Cifar(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        os.chdir(self.folder.name)
        self.images, self.labels = images()

    def tearDown(self):
        os.chdir("/")
        self.folder.cleanup()

    def run_command(self, *arguments):
        done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def judge(self, depth, state, small, plan):
        whole = [(8, 8), (16, 16)]
        reference = Net(masked(state, plan), whole)(self.images)
        found = Net(small, pads_of(plan, whole))(self.images)
        self.assertLess(small["conv1.weight"].shape[0], state["conv1.weight"].shape[0] + 1)
        difference = float((found - reference).abs().max() / reference.abs().max())
        self.assertLessEqual(difference, 1e-5)
        self.assertTrue(torch.equal(found.argmax(1), reference.argmax(1)))
        right = float((found.argmax(1) == self.labels).float().mean())
        print(f"ResNet-{depth}: {difference:.1e} from the masked dense network, {right:.1%} right")

    def check(self, depth):
        checkpoint = f"{DATA}/models/checkpoints/{NETWORKS[depth]}"
        onnx = f"{DATA}/models/onnx/resnet{depth}_cifar10.onnx"
        state = state_of(checkpoint)
        self.run_command("prune", onnx, "-o", "small.onnx", "--ratio", "0.5", "--plan", "p.json",
                         "--checkpoint", checkpoint, "--checkpoint-out", "small.th")
        with open("p.json") as file:
            with_onnx = json.load(file)
        proof = self.run_command("import", "small.onnx", "--checkpoint", "small.th", "-o", "d.onnx")
        self.assertIn("Proven", proof)
        self.run_command("prune", checkpoint, "-o", "alone.th", "--ratio", "0.5", "--plan", "a.json")
        with open("a.json") as file:
            alone = json.load(file)
        self.judge(depth, state, state_of("alone.th"), alone)
        # The exporter folded BatchNorm: of its plan the widths count, not the tensors.
        small = Net(state_of("small.th"), pads_of(with_onnx, [(8, 8), (16, 16)]))
        self.assertEqual(small(self.images[:2]).shape, (2, 10))

    def test_resnet20(self):
        self.check(20)

    def test_resnet56(self):
        self.check(56)


if __name__ == "__main__":
    unittest.main(verbosity=2)
