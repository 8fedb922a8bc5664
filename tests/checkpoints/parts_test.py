"""Checkpoints whose weights lie there in parts, or under several names, or with an optimizer.

    parts_test.py COMMAND

What hangs on a weight is cut with it, so that the small checkpoint is the small network; what
cannot be told apart is refused.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

try:
    import torch
    from torch import nn
except ImportError:
    print("no torch for", sys.executable)
    sys.exit(77)

COMMAND = os.path.abspath(sys.argv.pop(1)) if __name__ == "__main__" else ""
warnings.simplefilter("ignore")
torch.set_num_threads(1)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_command(self, *words, code=0):
        done = subprocess.run([COMMAND, *words], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done

    def prune(self, net, saved, x, *words, code=0):
        """What of `saved` becomes when `net` is pruned by half."""
        net = net.eval()
        torch.jit.trace(net, x).save(self.path("net.pt"))
        torch.save(saved, self.path("a.pth"))
        shape = "x".join(str(size) for size in x.shape)
        self.done = self.run_command(
            "prune", "net.pt", "-o", "small.pt", "--input", shape, "--ratio", "0.5", "--no-verify",
            "--report", "report.json", "--plan", "p.json",
            "--checkpoint", "a.pth", "--checkpoint-out", "b.pth", *words, code=code)
        self.assertEqual(os.path.exists(self.path("b.pth")), code == 0)
        return torch.load(self.path("b.pth")) if code == 0 else None

    def matched(self):
        with open(self.path("report.json")) as file:
            rows = json.load(file)["checkpoint"]["tensors"]
        return {row["tensor"]: row["matched"] for row in rows}

    def small_weights(self):
        """Those of the small network, by name."""
        return torch.jit.load(self.path("small.pt")).state_dict()

    def kept(self):
        """By tensor and axis, what the plan keeps."""
        with open(self.path("p.json")) as file:
            groups = json.load(file)["groups"]
        return {(s["tensor"], s["axis"]): torch.tensor(s["keep"]) for g in groups for s in g["slices"]}

    def assert_close(self, got, expected, name=""):
        self.assertEqual(got.shape, expected.shape, name)
        self.assertLess((got - expected).abs().max().item(), 1e-5, name)


def shapes(state):
    return {name: tuple(value.shape) for name, value in state.items()}


class WhatHangsOnAWeight(Case):
    def mlp(self):
        return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    def test_factors_and_scales(self):
        net = self.mlp()
        state = net.state_dict()
        state["0.lora_A"], state["0.lora_B"] = torch.rand(2, 8), torch.rand(16, 2)
        state["2.lora_A.default.weight"] = torch.rand(3, 16)
        state["2.lora_B.default.weight"] = torch.rand(4, 3)
        state["0.weight_fake_quant.scale"] = torch.rand(16)
        state["0.weight_fake_quant.zero_point"] = torch.arange(16)
        state["0.activation_post_process.min_val"] = torch.rand(16)
        state["0.weight_fake_quant.eps"] = torch.rand(1)
        cut = self.prune(net, state, torch.rand(1, 8), "--strict")
        rows = self.kept()[("0.weight", 0)]
        for name in ("0.lora_B", "0.weight_fake_quant.scale", "0.weight_fake_quant.zero_point",
                     "0.activation_post_process.min_val"):
            self.assertTrue(torch.equal(cut[name], state[name][rows]), name)
        self.assertTrue(torch.equal(cut["2.lora_A.default.weight"],
                                    state["2.lora_A.default.weight"][:, rows]))
        for name in ("0.lora_A", "2.lora_B.default.weight", "0.weight_fake_quant.eps"):
            self.assertTrue(torch.equal(cut[name], state[name]), name)
        matched = self.matched()
        self.assertEqual(matched["0.weight"], "name")
        self.assertEqual(matched["0.lora_B"], "low-rank factor")

    def test_factors_of_convolutions(self):
        net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3))
        state = net.state_dict()
        state["0.lora_B.weight"] = torch.rand(8, 2, 1, 1)  # PEFT's
        state["2.lora_A.weight"] = torch.rand(2, 8, 3, 3)
        state["0.lora_B"] = torch.rand(24, 6)  # loralib's: three rows per output
        state["2.hada_w1_b.default"] = torch.rand(2, 72)  # LoHa's: nine columns per input
        state["0.lora_magnitude_vector.default.weight"] = torch.rand(1, 8, 1, 1)
        cut = self.prune(net, state, torch.rand(1, 3, 9, 9), "--strict")
        rows = self.kept()[("0.weight", 0)]
        self.assert_close(cut["0.lora_B.weight"], state["0.lora_B.weight"][rows])
        self.assert_close(cut["2.lora_A.weight"], state["2.lora_A.weight"][:, rows])
        self.assert_close(cut["0.lora_B"], state["0.lora_B"].view(8, 3, 6)[rows].view(-1, 6))
        self.assert_close(cut["2.hada_w1_b.default"],
                          state["2.hada_w1_b.default"].view(2, 8, 9)[:, rows].reshape(2, -1))
        self.assertEqual(tuple(cut["0.lora_magnitude_vector.default.weight"].shape), (1, 4, 1, 1))

    def test_adapters_of_peft(self):
        net = self.mlp()
        state = {}
        for name, value in net.state_dict().items():
            layer, part = name.split(".")
            if layer == "0":
                state["base_model.model.0.base_layer." + part] = value
            else:
                state["base_model.model.2.original_module." + part] = value * 0.5
                state["base_model.model.2.modules_to_save.default." + part] = value
        state["base_model.model.0.lora_A.default.weight"] = torch.rand(2, 8)
        state["base_model.model.0.lora_B.default.weight"] = torch.rand(16, 2)
        cut = self.prune(net, state, torch.rand(1, 8), "--strict")
        self.assertEqual(sorted(shapes(cut).values()), sorted([
            (8, 8), (8,), (4, 8), (4,), (4, 8), (4,), (2, 8), (8, 2)]))

    def test_what_is_unknown_is_listed(self):
        net = self.mlp()
        state = net.state_dict()
        state["0.temperature"] = torch.rand(16)
        state["1.temperature"] = torch.rand(16)  # in no module with a cut weight
        state["0.temperatures"] = torch.rand(7)  # of no size that was cut
        self.prune(net, state, torch.rand(1, 8))
        notes = [line for line in self.done.stdout.splitlines() if "note: " in line]
        self.assertEqual(len(notes), 1, notes)
        self.assertIn("0.temperature: it lies beside a cut weight", notes[0])
        for name in ("b.pth", "small.pt"):
            os.remove(self.path(name))
        self.prune(net, state, torch.rand(1, 8), "--strict", code=3)
        self.assertIn("0.temperature", self.done.stderr)
        self.assertFalse(os.path.exists(self.path("small.pt")))


class NormalisedWeights(Case):
    def nets(self):
        """The same layers twice: (module, normalise, remove, input)."""
        return [
            (nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 12), nn.ReLU(),
                           nn.Linear(12, 4)), torch.rand(1, 6)),
            (nn.Sequential(nn.Conv1d(4, 16, 3), nn.ReLU(), nn.ConvTranspose1d(16, 8, 4, 2),
                           nn.ReLU(), nn.Conv1d(8, 2, 1)), torch.rand(1, 4, 20)),
            (nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.ConvTranspose2d(8, 8, 3), nn.ReLU(),
                           nn.Conv2d(8, 3, 1)), torch.rand(1, 3, 8, 8)),
        ]

    def check(self, normalise, remove, rename=lambda name: name, scale=None):
        """The small checkpoint, loaded into the small normalised module, computes the small
        network's weights."""
        for net, x in self.nets():
            layers = [layer for layer in net if hasattr(layer, "weight")]
            for layer in layers:
                normalise(layer)
                if scale:
                    scale(layer)
            net(x)
            net.eval()
            net(x)
            state = {rename(name): value.clone() for name, value in net.state_dict().items()}
            for layer in layers:
                remove(layer)
            cut = self.prune(net, state, x, "--strict")
            small = self.small_weights()
            back = {rename(name): name for name in state}
            for i, layer in enumerate(net):
                if not hasattr(layer, "weight"):
                    continue
                weight = small[f"{i}.weight"]
                axis = 1 if isinstance(layer, (nn.ConvTranspose1d, nn.ConvTranspose2d)) else 0
                own = {key.split(".", 1)[1]: value for key, value in cut.items()
                       if key.startswith(f"{i}.")}
                self.assert_close(self.weight_of(own, axis), weight, f"{i} {shapes(cut)}")
            # And back: the small model takes the weights of the small checkpoint.
            self.run_command("import", "small.pt", "--checkpoint", "b.pth", "-o", "same.pt",
                             "--input", "x".join(map(str, x.shape)))
            same = torch.jit.load(self.path("same.pt")).state_dict()
            for name, value in small.items():
                self.assert_close(same[name], value, name)
            os.remove(self.path("b.pth"))

    def weight_of(self, own, axis):
        """As PyTorch computes it from the parts."""
        def part(*names):
            return next((own[name] for name in names if name in own), None)
        g, v = part("weight_g", "parametrizations.weight.original0"), part(
            "parametrizations.weight.original1")
        if g is not None:
            v = own["weight_v"] if v is None else v
            if g.dim() == 0:
                return g * v / v.norm()
            others = [d for d in range(v.dim()) if g.shape[d] == 1]
            return g * v / v.pow(2).sum(others, keepdim=True).sqrt()
        w = part("weight_orig", "parametrizations.weight.original")
        u, v = part("weight_u", "parametrizations.weight.0._u"), part(
            "weight_v", "parametrizations.weight.0._v")
        if u is None:
            return w * own["weight_mask"]
        matrix = w.transpose(0, axis).flatten(1) if axis else w.flatten(1)
        return w / torch.dot(u, matrix @ v)

    def test_weight_norm(self):
        def scale(layer):
            layer.weight_g.data.mul_(1.5)
        for dim in (0, 1, None):
            self.check(lambda layer: nn.utils.weight_norm(layer, dim=dim),
                       nn.utils.remove_weight_norm, scale=scale)

    def test_weight_norm_as_parametrization(self):
        def rename(name):
            return name.replace("weight_g", "parametrizations.weight.original0").replace(
                "weight_v", "parametrizations.weight.original1")
        self.check(nn.utils.weight_norm, nn.utils.remove_weight_norm, rename)

    def test_spectral_norm(self):
        self.check(nn.utils.spectral_norm, nn.utils.remove_spectral_norm)

    def test_spectral_norm_as_parametrization(self):
        from torch.nn.utils import parametrizations, parametrize
        self.check(parametrizations.spectral_norm,
                   lambda layer: parametrize.remove_parametrizations(layer, "weight"))

    def test_masks(self):
        from torch.nn.utils import prune
        self.check(lambda layer: prune.random_unstructured(layer, "weight", 0.3),
                   lambda layer: prune.remove(layer, "weight"))

    def test_a_known_network_in_parts(self):
        """Its checkpoint alone is enough, whatever its weights are computed from."""
        environment = {**os.environ, "XDG_DATA_HOME": self.folder}
        def run(*words):
            done = subprocess.run([COMMAND, *words], cwd=self.folder, env=environment,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 4)).eval()
        torch.jit.trace(net, torch.rand(1, 6)).save(self.path("net.pt"))
        run("know", "mine", "net.pt", "--input", "1x6")
        for normalise in (nn.utils.weight_norm, nn.utils.spectral_norm):
            other = nn.Sequential(normalise(nn.Linear(6, 12)), nn.ReLU(),
                                  normalise(nn.Linear(12, 4))).eval()
            state = {"module." + name: value for name, value in other.state_dict().items()}
            torch.save({"state_dict": state}, self.path("a.pth"))
            run("prune", "a.pth", "-o", "b.onnx", "--ratio", "0.5", "--checkpoint-out", "b.pth")
            run("import", "b.onnx", "--checkpoint", "b.pth", "-o", "c.onnx")
            cut = torch.load(self.path("b.pth"))["state_dict"]
            self.assertEqual(tuple(cut["module.0.bias"].shape), (6,))
            self.assertEqual({value.shape[0] for name, value in cut.items() if ".0." in name and
                              not name.endswith("0.weight_v")}, {6})

    def test_a_norm_of_factors_is_listed(self):
        net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 4))
        state = net.state_dict()
        state["2.lora_magnitude_vector"] = torch.rand(4)
        self.prune(net, state, torch.rand(1, 6))
        self.assertIn("2.lora_magnitude_vector: its norm runs over inputs", self.done.stdout)

    def test_a_norm_that_the_network_computes_stays(self):
        """Its inputs are zero in the masked network as well, and count in no norm."""
        net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.utils.weight_norm(nn.Linear(12, 4)))
        state = net.state_dict()
        cut = self.prune(net, state, torch.rand(1, 6), "--strict")
        self.assertTrue(torch.equal(cut["2.weight_g"], state["2.weight_g"]))
        small = self.small_weights()
        for name, value in cut.items():
            self.assertTrue(torch.equal(value, small[name]), name)


class Optimizers(Case):
    def mlp(self):
        return nn.Sequential(nn.Linear(16, 16, bias=False), nn.ReLU(),
                             nn.Linear(16, 16, bias=False), nn.ReLU(),
                             nn.Linear(16, 16, bias=False))

    def convnet(self):
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),
                             nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),
                             nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 8), nn.ReLU(),
                             nn.Linear(8, 3))

    def train(self, net, optimizer, x):
        net(x).pow(2).sum().backward()
        optimizer.step()

    def assert_follows(self, net, optimizer, dense, small, names):
        """Each state is cut by the indices of its parameter, which `names` lists in order."""
        kept = self.kept()
        for i, name in enumerate(names):
            for key, value in dense["state"].get(i, {}).items():
                if not torch.is_tensor(value) or value.numel() <= 1:
                    continue
                expected = value
                for axis in range(value.dim()):
                    if (name, axis) in kept:
                        expected = expected.index_select(axis, kept[(name, axis)])
                self.assertTrue(torch.equal(small["state"][i][key], expected), f"{name} {key}")

    def cut(self, net, optimizer, x, names, code=0, **more):
        self.train(net, optimizer, x)
        saved = {**more, "state_dict": net.state_dict(), "optimizer": optimizer.state_dict()}
        cut = self.prune(net, saved, x, "--strict", code=code)
        if code == 0:
            self.assert_follows(net, optimizer, saved["optimizer"], cut["optimizer"], names)
        return cut

    def test_the_copy_that_is_trained_gives_the_order(self):
        net = self.mlp()
        average = dict(reversed([(k, v.clone()) for k, v in net.state_dict().items()]))
        cut = self.cut(net, torch.optim.Adam(net.parameters()), torch.rand(1, 16),
                       ["0.weight", "2.weight", "4.weight"], ema=average)
        self.assertEqual(shapes(cut["ema"]), shapes(dict(reversed(cut["state_dict"].items()))))

    def test_groups_that_shapes_do_not_tell_apart_are_refused(self):
        net = self.mlp()
        optimizer = torch.optim.Adam([{"params": net[4].parameters()},
                                      {"params": [net[0].weight, net[2].weight]}])
        self.cut(net, optimizer, torch.rand(1, 16), [], code=3)
        self.assertIn("state_dict/0.weight", self.done.stderr)
        self.assertIn("state_dict/4.weight", self.done.stderr)

    def test_groups_in_another_order(self):
        net = self.convnet()
        optimizer = torch.optim.SGD([{"params": list(net[8:].parameters()), "lr": 0.1},
                                     {"params": net[:5].parameters()}], 0.01, momentum=0.9)
        names = [n for n, _ in net.named_parameters()]
        self.cut(net, optimizer, torch.rand(2, 3, 9, 9)[:2], names[8:] + names[:8])

    def test_the_module_has_the_order_where_names_are_sorted(self):
        """As safetensors sorts them: a bias comes before its weight, "a" before "z"."""
        net = nn.Sequential()
        for name in ("z", "m", "a"):
            net.add_module(name, nn.Linear(16, 16))
            net.add_module(name + "_relu", nn.ReLU())
        optimizer = torch.optim.Adam(net.parameters())
        x = torch.rand(1, 16)
        self.train(net, optimizer, x)
        saved = {"model": dict(sorted(net.state_dict().items())), "optimizer": optimizer.state_dict()}
        cut = self.prune(net, saved, x, "--strict")
        names = [name for name, _ in net.named_parameters()]
        self.assert_follows(net, None, saved["optimizer"], cut["optimizer"], names)

    def test_without_the_module_sorted_names_tell_no_order(self):
        for sizes, code in (([16, 16, 16, 16], 3), ([6, 16, 12, 4], 0)):
            parts = [part for i, o in zip(sizes, sizes[1:]) for part in (nn.Linear(i, o), nn.ReLU())]
            net = nn.Sequential(*parts)
            optimizer = torch.optim.Adam(net.parameters())
            x = torch.rand(1, sizes[0])
            self.train(net, optimizer, x)
            torch.onnx.export(net.eval(), x, self.path("net.onnx"), dynamo=False)
            saved = {"model": dict(sorted(net.state_dict().items())),
                     "optimizer": optimizer.state_dict()}
            torch.save(saved, self.path("sorted.pth"))
            done = self.run_command(
                "prune", "net.onnx", "-o", "small.onnx", "--ratio", "0.5", "--no-verify",
                "--checkpoint", "sorted.pth", "--checkpoint-out", "cut.pth", code=code)
            if code == 3:
                self.assertIn("may be", done.stderr)
                self.assertIn("model/0.weight", done.stderr)
                continue
            cut = torch.load(self.path("cut.pth"))
            for i, (name, _) in enumerate(net.named_parameters()):
                self.assertEqual(cut["optimizer"]["state"][i]["exp_avg"].shape, cut["model"][name].shape)

    def test_states_that_fit_nothing_are_named(self):
        net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 4))
        saved = {"model": net.state_dict(), "optimizer": {
            "state": {i: {"m": torch.zeros(12)} for i in range(4)},
            "param_groups": [{"lr": 0.1, "params": [0, 1, 2, 3]}]}}
        self.prune(net, saved, torch.rand(1, 6), code=3)
        self.assertIn('"optimizer/state/0/m"', self.done.stderr)

    def test_a_buffer_is_no_parameter(self):
        net = self.mlp()
        net[2].register_buffer("mask", torch.ones(6, 6))
        self.cut(net, torch.optim.Adam(net.parameters()), torch.rand(1, 16),
                 ["0.weight", "2.weight", "4.weight"])

    def test_frozen_parameters(self):
        """Two of three alike remain: which they are nothing says. Where shapes differ, they do."""
        net = self.mlp()
        net[0].requires_grad_(False)
        self.cut(net, torch.optim.Adam(net[2:].parameters()), torch.rand(1, 16), [], code=3)
        self.assertIn("may be", self.done.stderr)
        net = nn.Sequential(nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 10), nn.ReLU(),
                            nn.Linear(10, 4))
        net[0].requires_grad_(False)
        self.cut(net, torch.optim.Adam(net[2:].parameters()), torch.rand(1, 16),
                 ["2.weight", "2.bias", "4.weight", "4.bias"])

    def test_groups_by_kind(self):
        net = self.convnet()
        kinds = {"matrix": [], "gain": [], "bias": []}
        for name, parameter in net.named_parameters():
            kind = ("bias" if name.endswith("bias") else
                    "matrix" if parameter.dim() > 1 else "gain")
            kinds[kind].append(name)
        parameters = dict(net.named_parameters())
        for order in (("bias", "matrix", "gain"), ("matrix", "gain", "bias")):
            optimizer = torch.optim.SGD(
                [{"params": [parameters[name] for name in kinds[kind]]} for kind in order], 0.01,
                momentum=0.9)
            self.cut(net, optimizer, torch.rand(1, 3, 9, 9),
                     [name for kind in order for name in kinds[kind]])
            os.remove(self.path("b.pth"))

    def test_two_optimizers_share_the_parameters(self):
        net = self.convnet()
        names = [n for n, _ in net.named_parameters()]
        one = torch.optim.Adam(net[8:].parameters())
        two = torch.optim.SGD(net[:5].parameters(), 0.01, momentum=0.9)
        x = torch.rand(1, 3, 9, 9)
        net.eval()
        self.train(net, one, x)
        two.step()
        saved = {"state_dict": net.state_dict(),
                 "optimizer_states": [one.state_dict(), two.state_dict()]}
        cut = self.prune(net, saved, x, "--strict")
        for i, own in enumerate((names[8:], names[:8])):
            self.assert_follows(net, None, saved["optimizer_states"][i],
                                cut["optimizer_states"][i], own)

    def test_flattened_states(self):
        """As torch.distributed.checkpoint flattens them."""
        net = self.mlp()
        optimizer = torch.optim.Adam(net.parameters())
        self.train(net, optimizer, torch.rand(1, 16))
        names = ["0.weight", "2.weight", "4.weight"]
        flat = {f"state.{names[i]}.{key}": value
                for i, state in optimizer.state_dict()["state"].items()
                for key, value in state.items()}
        cut = self.prune(net, {"model": net.state_dict(), "optimizer": flat}, torch.rand(1, 16),
                         "--strict")
        for name in names:
            self.assertEqual(cut["optimizer"][f"state.{name}.exp_avg"].shape,
                             cut["model"][name].shape)

    def test_shadow_parameters(self):
        """A list with a tensor per parameter, and averages without the buffers."""
        net = self.convnet().eval()
        parameters = [p.detach() * 0.5 for p in net.parameters()]
        named = {n: p.detach() * 0.25 for n, p in net.named_parameters()}
        saved = {"model": net.state_dict(), "shadow_params": parameters, "averaged": named,
                 "scores": [torch.rand(8), torch.rand(8)]}
        cut = self.prune(net, saved, torch.rand(1, 3, 9, 9), "--strict")
        for (name, small), shadow in zip(cut["averaged"].items(), cut["shadow_params"]):
            self.assertEqual(small.shape, cut["model"][name].shape)
            self.assert_close(small, cut["model"][name] * 0.25)
            self.assert_close(shadow, cut["model"][name] * 0.5)
        self.assertEqual([tuple(t.shape) for t in cut["scores"]], [(8,), (8,)])

    def test_tied_weights_are_one_parameter(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(20, 12)
                self.up, self.down = nn.Linear(12, 24), nn.Linear(24, 12)
                self.head = nn.Linear(12, 20, bias=False)
                self.head.weight = self.embed.weight

            def forward(self, x):
                e = self.embed(x)
                return self.head(e + self.down(torch.relu(self.up(e))))

        net = Tied()
        optimizer = torch.optim.Adam(net.parameters())
        names = [n for n, _ in net.named_parameters()]
        x = torch.randint(20, (1, 5))
        self.train(net, optimizer, x)
        state = {k: v.clone() for k, v in net.state_dict().items()}
        for first in (True, False):  # the head before the embedding, too
            if not first:
                state = {"head.weight": state["head.weight"], **state}
            saved = {"model": state, "optimizer": optimizer.state_dict()}
            net.eval()
            torch.jit.trace(net, x).save(self.path("net.pt"))
            torch.save(saved, self.path("a.pth"))
            self.run_command("prune", "net.pt", "-o", "small.pt", "--input", "1x5:int64", "--ratio",
                             "0.5", "--no-verify", "--plan", "p.json", "--strict", "--checkpoint",
                             "a.pth", "--checkpoint-out", "b.pth")
            cut = torch.load(self.path("b.pth"))
            self.assertTrue(torch.equal(cut["model"]["head.weight"], cut["model"]["embed.weight"]))
            if first:
                self.assert_follows(net, None, saved["optimizer"], cut["optimizer"], names)


if __name__ == "__main__":
    unittest.main(verbosity=1)
