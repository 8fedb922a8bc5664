"""Checkpoints that PyTorch writes, cut by the command, and read by PyTorch again.

    torch_test.py COMMAND

A network is trained with Adam, saved with its moving average, scheduler and objects of its user's,
and pruned together with its checkpoint. The small network must be the masked dense one: its outputs,
and its training with the optimizer's cut states.
"""
import argparse
import copy
import enum
import json
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    print("no torch for", sys.executable)
    sys.exit(77)

COMMAND = os.path.abspath(sys.argv.pop(1)) if __name__ == "__main__" else ""
torch.manual_seed(0)
torch.set_num_threads(1)


class Stage(enum.Enum):
    FIT = 1


class Callback:
    def __init__(self):
        self.best = 0.5
        self.history = [1, 2, 3]


def net(a=16, b=12):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, a, 3, padding=1, bias=False), nn.BatchNorm2d(a), nn.ReLU(),
        nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(b, 5))


def small_net(state):
    return net(state["0.weight"].shape[0], state["3.weight"].shape[0])


def step(model, optimizer, batch):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(batch[0]), batch[1])
    loss.backward()
    optimizer.step()
    return loss.item()


def batches(count):
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(8, 3, 10, 10, generator=generator),
             torch.randint(0, 5, (8,), generator=generator)) for _ in range(count)]


def without(prefix, state):
    return {key[len(prefix):]: value for key, value in state.items()}


class Checkpoints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.model = net()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.model.train()
        for batch in batches(5):
            step(self.model, self.optimizer, batch)
        self.model.eval()

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_command(self, *words, code=0):
        environment = {**os.environ, "XDG_DATA_HOME": self.folder}
        done = subprocess.run([COMMAND, *words], cwd=self.folder, env=environment,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done

    def trace(self):
        traced = torch.jit.trace(self.model, torch.randn(1, 3, 10, 10))
        traced.save(self.path("net.pt"))

    def prune(self, *words, **options):
        return self.run_command("prune", "net.pt", "-o", "small.pt", "--input", "1x3x10x10",
                                "--ratio", "0.5", "--plan", "p.json", *words, **options)

    def compare_outputs(self, state):
        small = small_net(state)
        small.load_state_dict(state)
        small.eval()
        reference = torch.jit.load(self.path("small.pt"))
        x = torch.randn(4, 3, 10, 10)
        with torch.no_grad():
            difference = torch.cat([small(r[None]) - reference(r[None]) for r in x])
        self.assertLess(difference.abs().max().item(), 1e-5)
        return small

    def lightning(self):
        scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 10)
        state = self.model.state_dict()
        average = {key: value * 0.75 if value.is_floating_point() else value
                   for key, value in state.items()}
        return {
            "epoch": 7, "global_step": 123, "pytorch-lightning_version": "2.1.0",
            "state_dict": {"module." + key: value for key, value in state.items()},
            "ema": average,
            "optimizer_states": [self.optimizer.state_dict()],
            "lr_schedulers": [scheduler.state_dict()],
            "hyper_parameters": argparse.Namespace(lr=1e-3, stage=Stage.FIT),
            "callbacks": {"best": Callback()},
            "random": torch.get_rng_state(), "none": None, "big": 1 << 80, "tuple": (1, "é", b"x"),
        }

    def test_a_lightning_checkpoint_trains_on(self):
        self.trace()
        saved = self.lightning()
        torch.save(saved, self.path("last.ckpt"))
        self.prune("--checkpoint", "last.ckpt", "--checkpoint-out", "small.ckpt", "--strict")
        cut = torch.load(self.path("small.ckpt"), weights_only=False)
        state = without("module.", cut["state_dict"])
        self.assertEqual(tuple(state["0.weight"].shape), (8, 3, 3, 3))
        self.assertEqual(tuple(state["3.weight"].shape), (6, 8, 3, 3))
        small = self.compare_outputs(state)
        for key, value in cut["ema"].items():
            self.assertEqual(value.shape, state[key].shape)
            if value.is_floating_point():
                self.assertTrue(torch.equal(value, state[key] * 0.75))
        for key in ("epoch", "global_step", "lr_schedulers", "hyper_parameters", "none", "big",
                    "tuple"):
            self.assertEqual(pickle.dumps(cut[key]), pickle.dumps(saved[key]), key)
        self.assertEqual(cut["callbacks"]["best"].history, [1, 2, 3])
        self.assertTrue(torch.equal(cut["random"], saved["random"]))

        # The first step of the small network is that of the masked dense one.
        keep_a, keep_b = self.kept("0.weight", state), self.kept("3.weight", state)
        dense = copy.deepcopy(self.model)
        masked = torch.ones(16, dtype=torch.bool)
        masked[keep_a] = False
        with torch.no_grad():
            for module, removed in ((dense[0], masked), (dense[1], masked)):
                for parameter in module.parameters():
                    parameter[removed] = 0
            removed = torch.ones(12, dtype=torch.bool)
            removed[keep_b] = False
            for module in (dense[3], dense[4]):
                for parameter in module.parameters():
                    parameter[removed] = 0
        dense_optimizer = torch.optim.Adam(dense.parameters(), lr=1e-3)
        dense_optimizer.load_state_dict(saved["optimizer_states"][0])
        optimizer = torch.optim.Adam(small.parameters(), lr=1e-3)
        optimizer.load_state_dict(cut["optimizer_states"][0])
        small.eval()  # statistics of a batch would need those of removed channels
        dense.eval()
        first = batches(1)[0]
        step(small, optimizer, first)
        step(dense, dense_optimizer, first)
        pairs = {"0.weight": dense[0].weight[keep_a], "1.weight": dense[1].weight[keep_a],
                 "3.weight": dense[3].weight[keep_b][:, keep_a], "4.bias": dense[4].bias[keep_b],
                 "8.weight": dense[8].weight[:, keep_b], "8.bias": dense[8].bias}
        for name, expected in pairs.items():
            got = dict(small.named_parameters())[name]
            self.assertLess((got - expected).abs().max().item(), 1e-6, name)
        small.train()
        losses = [step(small, optimizer, batch) for batch in batches(10)]
        self.assertTrue(all(loss == loss for loss in losses))

    def kept(self, name, state):
        """The rows of the dense weight that the small one has."""
        dense, small = self.model.state_dict()[name], state[name]
        if name == "3.weight":
            dense = dense[:, self.kept("0.weight", state)]
        rows = [i for i in range(dense.shape[0])
                if any(torch.equal(dense[i], small[k]) for k in range(small.shape[0]))]
        self.assertEqual(len(rows), small.shape[0])
        return torch.tensor(rows)

    def test_every_protocol_and_format(self):
        self.trace()
        state = self.model.state_dict()
        for protocol in (2, 3, 4, 5):
            for is_zip in (True, False):
                if not is_zip and protocol > 2:
                    continue  # torch reads its own stream with protocol 2 alone
                torch.save(state, self.path("a.pth"), pickle_protocol=protocol,
                           _use_new_zipfile_serialization=is_zip)
                self.prune("--checkpoint", "a.pth", "--checkpoint-out", "b.pth", "--strict")
                self.compare_outputs(torch.load(self.path("b.pth"), weights_only=False))

    def test_optimizers(self):
        self.trace()
        for make in (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
                     lambda p: torch.optim.AdamW(p, amsgrad=True), torch.optim.RMSprop,
                     torch.optim.Adagrad):
            model = copy.deepcopy(self.model)
            matrices = [p for p in model.parameters() if p.dim() > 1]
            vectors = [p for p in model.parameters() if p.dim() == 1]
            for groups in (list(model.parameters()),
                           [{"params": matrices, "weight_decay": 0.1}, {"params": vectors}]):
                optimizer = make(groups)
                step(model, optimizer, batches(1)[0])
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()},
                           self.path("a.pth"))
                self.prune("--checkpoint", "a.pth", "--checkpoint-out", "b.pth", "--strict")
                cut = torch.load(self.path("b.pth"))
                small = small_net(cut["model"])
                small.load_state_dict(cut["model"])
                if len(groups) == 2:
                    groups = [{"params": [p for p in small.parameters() if p.dim() > 1],
                               "weight_decay": 0.1},
                              {"params": [p for p in small.parameters() if p.dim() == 1]}]
                else:
                    groups = list(small.parameters())
                optimizer = make(groups)
                optimizer.load_state_dict(cut["optimizer"])
                step(small, optimizer, batches(1)[0])

    def test_states_of_other_shapes(self):
        """Adafactor's rows and columns, and the masters of mixed precision."""
        self.trace()
        states = {}
        for i, parameter in enumerate(self.model.parameters()):
            states[i] = {"step": 3, "master": parameter.detach().clone()}
            if parameter.dim() >= 2:
                square = parameter.detach() ** 2
                states[i]["exp_avg_sq_row"] = square.mean(-1)
                states[i]["exp_avg_sq_col"] = square.mean(-2)
        group = {"lr": 1e-3, "params": list(states)}
        torch.save({"model": self.model.half().state_dict(),
                    "optimizer": {"state": states, "param_groups": [group]}}, self.path("a.pth"))
        self.prune("--checkpoint", "a.pth", "--checkpoint-out", "b.pth", "--strict")
        cut = torch.load(self.path("b.pth"))
        for state, parameter in zip(cut["optimizer"]["state"].values(),
                                    small_net(cut["model"]).parameters()):
            self.assertEqual(state["master"].shape, parameter.shape)
            self.assertEqual(state["step"], 3)
            if parameter.dim() >= 2:
                # Of the kept slices of the old moments, not of the small weights.
                self.assertEqual(state["exp_avg_sq_row"].shape, parameter.shape[:-1])
                self.assertEqual(state["exp_avg_sq_col"].shape,
                                 parameter.shape[:-2] + parameter.shape[-1:])
        self.assertEqual(cut["model"]["0.weight"].dtype, torch.float16)
        self.assertTrue(torch.equal(cut["model"]["0.weight"],
                                    cut["optimizer"]["state"][0]["master"].half()))

    def test_types_that_stay(self):
        self.trace()
        others = {
            "bfloat16": torch.randn(3, 4).bfloat16(), "complex": torch.randn(3, dtype=torch.cfloat),
            "quantised": torch.quantize_per_tensor(torch.randn(4, 3), 0.1, 10, torch.qint8),
            "channels": torch.quantize_per_channel(torch.randn(4, 3), torch.rand(4), torch.zeros(4), 0,
                                                   torch.qint8),
            "sparse": torch.eye(4).to_sparse(), "empty": torch.zeros(0, 3), "scalar": torch.tensor(2),
            "bool": torch.tensor([True, False]), "expanded": torch.ones(1).expand(5),
        }
        torch.save({"model": self.model.state_dict(), "others": others}, self.path("a.pth"))
        self.prune("--checkpoint", "a.pth", "--checkpoint-out", "b.pth", "--strict")
        cut = torch.load(self.path("b.pth"))
        self.compare_outputs(cut["model"])
        for name, expected in others.items():
            found = cut["others"][name]
            self.assertEqual(found.dtype, expected.dtype, name)
            dense = [t.dequantize() if t.is_quantized else t.to_dense() if t.is_sparse else t
                     for t in (found, expected)]
            self.assertTrue(torch.equal(*dense), name)

    def test_shards(self):
        self.trace()
        state = self.model.state_dict()
        names = list(state)
        os.mkdir(self.path("in"))
        os.mkdir(self.path("out"))
        shards = {"model-1.bin": names[:5], "model-2.bin": names[5:]}
        for shard, keys in shards.items():
            torch.save({key: state[key] for key in keys}, self.path("in/" + shard))
        total = sum(t.numel() * t.element_size() for t in state.values())
        with open(self.path("in/model.bin.index.json"), "w") as file:
            json.dump({"metadata": {"total_size": total},
                       "weight_map": {key: shard for shard, keys in shards.items() for key in keys}},
                      file)
        self.prune("--checkpoint", "in/model.bin.index.json", "--checkpoint-out",
                   "out/model.bin.index.json", "--strict")
        cut = {}
        for shard in shards:
            cut.update(torch.load(self.path("out/" + shard)))
        self.compare_outputs(cut)
        with open(self.path("out/model.bin.index.json")) as file:
            self.assertEqual(json.load(file)["metadata"]["total_size"],
                             sum(t.numel() * t.element_size() for t in cut.values()))

    def test_directories(self):
        """Of trainers: weights in shards, optimizer and other things in files of their own."""
        self.trace()
        state = self.model.state_dict()
        names = list(state)
        os.makedirs(self.path("in/logs"))
        torch.save({name: state[name] for name in names[:5]}, self.path("in/model-1.bin"))
        torch.save({name: state[name] for name in names[5:]}, self.path("in/model-2.bin"))
        index = {name: f"model-{1 + (i >= 5)}.bin" for i, name in enumerate(names)}
        torch.save(self.optimizer.state_dict(), self.path("in/optimizer.pt"))
        torch.save({"cpu": torch.get_rng_state()}, self.path("in/rng_state.pth"))
        for name, text in (("in/model.bin.index.json", json.dumps({"weight_map": index})),
                           ("in/trainer_state.json", "{}"), ("in/logs/a.txt", "text")):
            with open(self.path(name), "w") as file:
                file.write(text)
        listed = subprocess.run([COMMAND, "inspect", "in"], cwd=self.folder, capture_output=True, text=True)
        self.assertIn("exp_avg: float32 [16, 3, 3, 3]", listed.stdout, listed.stderr)
        self.prune("--checkpoint", "in", "--checkpoint-out", "out", "--strict")
        cut = {}
        for shard in ("model-1.bin", "model-2.bin"):
            cut.update(torch.load(self.path("out/" + shard)))
        small = self.compare_outputs(cut)
        optimizer = torch.optim.Adam(small.parameters(), lr=1e-3)
        optimizer.load_state_dict(torch.load(self.path("out/optimizer.pt")))
        for parameter in small.parameters():
            self.assertEqual(optimizer.state[parameter]["exp_avg"].shape, parameter.shape)
        for name in ("rng_state.pth", "trainer_state.json", "logs/a.txt"):
            with open(self.path("in/" + name), "rb") as a, open(self.path("out/" + name), "rb") as b:
                self.assertEqual(a.read(), b.read(), name)
        done = self.prune("--checkpoint", "in", "--checkpoint-out", "in", code=2)
        self.assertIn("--checkpoint-out is --checkpoint", done.stderr)

    def test_an_optimizer_whose_order_is_unknown(self):
        self.trace()
        shuffled = list(self.model.parameters())[::-1]
        optimizer = torch.optim.SGD(shuffled, 0.1, momentum=0.9)
        step(self.model, optimizer, batches(1)[0])
        torch.save({"model": self.model.state_dict(), "optimizer": optimizer.state_dict()},
                   self.path("a.pth"))
        done = self.prune("--checkpoint", "a.pth", "--checkpoint-out", "b.pth", code=3)
        self.assertIn("param_names", done.stderr)
        for name in ("b.pth", "small.pt"):
            self.assertFalse(os.path.exists(self.path(name)))

    def test_storages_shared_tied_and_strided(self):
        self.trace()
        state = self.model.state_dict()
        state["0.weight"] = state["0.weight"].contiguous(memory_format=torch.channels_last)
        flat = torch.cat([state["1.weight"], state["1.bias"]])
        state["1.weight"], state["1.bias"] = flat[:16], flat[16:]
        torch.save({"a": state, "b": state}, self.path("a.pth"))
        self.prune("--checkpoint", "a.pth", "--checkpoint-out", "b.pth", "--strict")
        cut = torch.load(self.path("b.pth"))
        self.compare_outputs(cut["a"])
        self.assertIs(cut["a"], cut["b"])
        self.assertTrue(cut["a"]["0.weight"].is_contiguous(memory_format=torch.channels_last))
        self.assertEqual(cut["a"]["1.weight"].storage().data_ptr(),
                         cut["a"]["1.bias"].storage().data_ptr())

    def test_a_pickled_module(self):
        self.trace()
        torch.save(self.model, self.path("a.pth"))
        self.prune("--checkpoint", "a.pth", "--checkpoint-out", "b.pth", "--strict")
        self.compare_outputs(torch.load(self.path("b.pth"), weights_only=False).state_dict())

    def test_nothing_in_a_pickle_runs(self):
        self.trace()
        mark = self.path("mark")

        class Evil:
            def __reduce__(self):
                return os.system, ("touch " + mark,)

        torch.save({"state": self.model.state_dict(), "evil": Evil()}, self.path("a.pth"))
        told = self.run_command("inspect", "a.pth").stdout
        self.assertIn("system", told.split("rejects it:")[1])
        self.prune("--checkpoint", "a.pth", "--checkpoint-out", "b.pth", "--strict")
        self.assertFalse(os.path.exists(mark))

    def test_a_checkpoint_of_another_network(self):
        self.trace()
        torch.save(net(20, 12).state_dict(), self.path("a.pth"))
        done = self.prune("--checkpoint", "a.pth", "--checkpoint-out", "b.pth", "--strict", code=3)
        self.assertIn("0.weight", done.stderr)
        self.assertFalse(os.path.exists(self.path("b.pth")))

    def verify(self, one, two, **options):
        """Do two files compute the same?"""
        self.run_command("prune", one, "-o", "same.onnx", "--ratio", "0", "--plan", "nothing.json")
        self.run_command("verify", one, two, "--plan", "nothing.json", **options)

    def know(self):
        self.trace()
        self.run_command("know", "mine", "net.pt", "--input", "1x3x10x10")
        self.assertIn("mine\n", self.run_command("know").stdout)

    def test_a_checkpoint_of_a_known_network_alone(self):
        self.know()
        other = net()
        other[8] = torch.nn.Linear(12, 7)  # another number of classes
        other.eval()
        state = {"module." + key: value for key, value in other.state_dict().items()}
        torch.save({"state_dict": state, "epoch": 3}, self.path("a.pth"))
        rows = json.loads(self.run_command("inspect", "a.pth", "--json").stdout)
        self.assertEqual(rows["network"], "mine")
        axes = {row["path"][-1]: row.get("prunable_axes") for row in rows["tensors"]}
        self.assertEqual(axes["module.3.weight"], [0, 1])
        self.assertEqual(axes["module.8.weight"], [1])
        self.assertIsNone(axes["module.8.bias"])
        told = self.run_command("prune", "a.pth", "-o", "b.pth", "--ratio", "0.5", "--plan", "p.json")
        self.assertIn("mine", told.stdout)
        cut = torch.load(self.path("b.pth"))
        self.assertEqual(cut["epoch"], 3)
        small = without("module.", cut["state_dict"])
        self.assertEqual(small["0.weight"].shape[0], 8)
        self.assertEqual(small["8.weight"].shape[0], 7)
        self.run_command("apply", "a.pth", "-o", "c.pth", "--plan", "p.json")
        with open(self.path("b.pth"), "rb") as one, open(self.path("c.pth"), "rb") as two:
            self.assertEqual(one.read(), two.read())
        self.assertIn("8.weight has a different shape", told.stdout)
        # As a model, too, which has the checkpoint's weights.
        self.run_command("prune", "a.pth", "-o", "b.onnx", "--ratio", "0.5")
        self.run_command("import", "b.onnx", "--checkpoint", "b.pth", "-o", "c.onnx")
        self.verify("b.onnx", "c.onnx")

    def test_shapes_that_a_known_network_does_not_have(self):
        """Names alone do not make a network: the graph must allow the shapes."""
        self.know()
        other = net()
        other[4] = torch.nn.BatchNorm2d(13)  # behind a convolution of 12 channels
        torch.save(other.state_dict(), self.path("a.pth"))
        self.assertNotIn("network", json.loads(self.run_command("inspect", "a.pth", "--json").stdout))
        done = self.run_command("prune", "a.pth", "-o", "b.pth", "--ratio", "0.5", code=3)
        self.assertIn("do not fit the network with these names, mine", done.stderr)

    def test_tables_of_indices(self):
        """A buffer that the graph has as a constant belongs to the network, unless its module has
        other shapes."""
        self.know()
        for name, code in (("8.index", 0), ("0.index", 0), ("8.gain", 3)):
            state = net().state_dict()
            state[name] = torch.arange(3) if name.endswith("index") else torch.ones(3)
            torch.save(state, self.path("a.pth"))
            self.run_command("prune", "a.pth", "-o", "b.pth", "--ratio", "0.5", code=code)
        other = net()
        other[8] = torch.nn.Linear(12, 7)
        torch.save({**other.state_dict(), "8.index": torch.arange(3)}, self.path("a.pth"))
        self.run_command("prune", "a.pth", "-o", "b.pth", "--ratio", "0.5", code=3)

    def test_a_checkpoint_of_an_unknown_network_alone(self):
        self.know()
        wider = torch.nn.Sequential(*net(), torch.nn.Linear(5, 5))
        for model in (wider, net()[:8]):  # more weights than the network, and fewer
            torch.save(model.state_dict(), self.path("a.pth"))
            done = self.run_command("prune", "a.pth", "-o", "b.pth", "--ratio", "0.5", code=3)
            self.assertIn("parsimony know NAME net.pt", done.stderr)
            self.assertIn("--checkpoint", done.stderr)
            self.assertFalse(os.path.exists(self.path("b.pth")))

    def test_an_old_export_is_pruned_by_the_weights_of_today(self):
        self.trace()
        for batch in batches(5):
            step(self.model, self.optimizer, batch)
        self.model.eval()
        torch.save(self.model.state_dict(), self.path("a.pth"))
        self.prune("--checkpoint", "a.pth", "--checkpoint-out", "b.pth", "--strict",
                   "--weights-from", "checkpoint")
        self.compare_outputs(torch.load(self.path("b.pth")))
        self.run_command("apply", "net.pt", "-o", "small.pt", "--plan", "p.json", "--checkpoint",
                         "a.pth", "--checkpoint-out", "c.pth", "--weights-from", "checkpoint")
        self.compare_outputs(torch.load(self.path("c.pth")))
        self.trace()
        before = self.kept_channels()
        self.prune()
        self.assertEqual(before, self.kept_channels())

    def kept_channels(self):
        with open(self.path("p.json")) as file:
            return json.load(file)["groups"]

    def test_trained_weights_return_to_an_onnx_file(self):
        """With normalisations folded into the convolutions, as exporters leave them."""
        x = torch.randn(1, 3, 10, 10)
        torch.onnx.export(self.model, x, self.path("net.onnx"), dynamo=False)
        torch.save(self.model.state_dict(), self.path("a.pth"))
        self.run_command("prune", "net.onnx", "-o", "small.onnx", "--ratio", "0.5",
                         "--checkpoint", "a.pth", "--checkpoint-out", "b.pth", "--strict")
        small = small_net(torch.load(self.path("b.pth")))
        small.load_state_dict(torch.load(self.path("b.pth")))
        for batch in batches(5):
            step(small, torch.optim.SGD(small.parameters(), 1e-2), batch)
        small.eval()
        torch.save(small.state_dict(), self.path("tuned.pth"))
        for words in ((), ("--before", "b.pth")):
            self.run_command("import", "small.onnx", "--checkpoint", "tuned.pth", "-o",
                             "deployed.onnx", *words)
        # PyTorch's own export of the tuned network computes the same.
        torch.onnx.export(small, x, self.path("expected.onnx"), dynamo=False)
        self.verify("expected.onnx", "deployed.onnx")
        self.verify("small.onnx", "deployed.onnx", code=1)
        done = self.run_command("import", "small.onnx", "--checkpoint", "a.pth", "-o", "no.onnx",
                                code=4)
        self.assertIn("has shape [5, 12], the weight [5, 6]", done.stderr)
        torch.save(net(4, 3).state_dict(), self.path("smaller.pth"))
        for other in ("a.pth", "smaller.pth"):
            done = self.run_command("import", "small.onnx", "--checkpoint", other, "--before",
                                    "b.pth", "-o", "no.onnx", code=4)
            self.assertIn("has shape", done.stderr)
        self.assertFalse(os.path.exists(self.path("no.onnx")))

    def test_constants_that_no_checkpoint_has(self):
        class Shifted(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = net()

            def forward(self, x):
                return self.inner(x - torch.tensor([0.1, 0.2, 0.3]).view(1, 3, 1, 1))

        self.model = Shifted().eval()
        torch.onnx.export(self.model, torch.randn(1, 3, 10, 10), self.path("net.onnx"), dynamo=False)
        torch.save(self.model.state_dict(), self.path("a.pth"))
        done = self.run_command("import", "net.onnx", "--checkpoint", "a.pth", "-o", "b.onnx", code=4)
        self.assertIn("--partial", done.stderr)
        done = self.run_command("import", "net.onnx", "--checkpoint", "a.pth", "-o", "b.onnx",
                                "--partial")
        self.assertIn("unchanged: ", done.stdout)
        self.verify("net.onnx", "b.onnx")


if __name__ == "__main__":
    unittest.main(verbosity=1)
