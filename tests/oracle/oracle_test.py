"""Tests of the oracle, tools/oracle: above all, that it does not believe everything."""

import gzip
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
from oracle.compare import Job, Options, compare, verdict_of  # noqa: E402
from oracle.faults import FileFault, Refusal, UsageFault  # noqa: E402
from oracle.model import Argument, Model, array_of  # noqa: E402
from oracle.plan import mask_model  # noqa: E402
from oracle.probes import candidates, draw, mixed, normal, parse_spec  # noqa: E402

FOLDER = tempfile.TemporaryDirectory(prefix="oracle-")
unittest.addModuleCleanup(FOLDER.cleanup)
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def write(content, ending=".onnx"):
    path = pathlib.Path(FOLDER.name) / f"{len(list(pathlib.Path(FOLDER.name).iterdir()))}{ending}"
    if isinstance(content, onnx.ModelProto):
        content = content.SerializeToString()
    elif isinstance(content, dict):
        content = json.dumps(content).encode()
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def network(nodes, inputs, outputs, ir_version=7, **weights):
    """inputs, outputs: {name: dims} of float32 or {name: (type, dims)}; weights: arrays or TensorProtos."""

    def arguments(given):
        for name, about in given.items():
            kind, dims = about if isinstance(about, tuple) else (FLOAT, about)
            yield helper.make_tensor_value_info(name, kind, dims)

    tensors = [
        one if isinstance(one, TensorProto) else numpy_helper.from_array(numpy.asarray(one), name)
        for name, one in weights.items()
    ]
    for tensor, name in zip(tensors, weights):
        tensor.name = name
    graph = helper.make_graph(nodes, "fixture", list(arguments(inputs)), list(arguments(outputs)), tensors)
    opset = [helper.make_opsetid("", 13)]
    return helper.make_model(graph, opset_imports=opset, ir_version=ir_version)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], **attributes)


def floats(*values):
    return numpy.array(values, numpy.float32)


def ramp(*shape, begin=1):
    """Values that are all different and none zero, so that a wrong cut shows."""
    count = int(numpy.prod(shape))
    signs = [1 if (i + begin) % 2 else -1 for i in range(count)]
    values = [sign * (0.3 + 0.07 * ((i * 5 + begin) % 11)) for i, sign in enumerate(signs)]
    return numpy.array(values, numpy.float32).reshape(shape)


def part(tensor, axis, role, size, keep):
    return {"tensor": tensor, "axis": axis, "role": role, "size": size, "keep": keep}


def plan_of(*slices, mixes=False, **more):
    groups = [{"id": "g", "mixes": mixes, "slices": list(slices)}]
    return {"parsimony_plan": 2, "groups": groups, **more}


def compared(original, small, plan, **options):
    return compare(Job(write(original), write(small), write(plan, ".json")), Options(**options))


# x[N, 3] -> w1[3, 4] + b1 -> activation -> w2[4, 2] -> y[N, 2]; the middle 4 are what is pruned.
ALL = [0, 1, 2, 3]
W1, B1, W2 = ramp(3, 4), ramp(4, begin=2), ramp(4, 2, begin=3)


def mlp(keep, activation="Relu", w2=W2, b1=B1):
    nodes = [
        node("MatMul", "x w1", "h"),
        node("Add", "h b1", "hb"),
        node(activation, "hb", "a"),
        node("MatMul", "a w2", "y"),
    ]
    return network(nodes, {"x": ["N", 3]}, {"y": ["N", 2]}, w1=W1[:, keep], b1=b1[keep], w2=w2[keep])


def mlp_plan(keep, **more):
    return plan_of(
        part("w1", 1, "out", 4, keep), part("b1", 0, "out", 4, keep), part("w2", 0, "in", 4, keep), **more
    )


def updates(*names):
    return [{"tensor": name, "reason": "test"} for name in names]


class Verdicts(unittest.TestCase):
    def test_a_rightly_pruned_network_is_exact(self):
        result = compared(mlp(ALL), mlp([0, 2]), mlp_plan([0, 2]))
        self.assertEqual(result["verdict"], "exact")
        self.assertLess(result["difference"], 1e-6)
        self.assertFalse(result["degenerate"])
        self.assertEqual(result["batches"], [1, 3])
        self.assertEqual((result["tensors"]["sliced"], result["tensors"]["as_planned"]), (3, 3))

    def test_other_channels_than_the_planned_ones_are_found(self):
        result = compared(mlp(ALL), mlp([0, 3]), mlp_plan([0, 2]))
        self.assertEqual(result["verdict"], "MISMATCH")
        self.assertIn('"w1" has other values', ";".join(result["notes"]))
        self.assertGreater(result["difference"], result["tolerance"])

    def test_outputs_are_compared_even_where_every_tensor_may_have_changed(self):
        plan = mlp_plan([0, 2], updates=updates("w1", "b1", "w2"))
        result = compared(mlp(ALL), mlp([0, 3]), plan)
        self.assertEqual((result["tensors"]["wrong"], result["verdict"]), ([], "MISMATCH"))

    def test_a_small_deviation_in_one_folded_tensor_is_found(self):
        w2 = W2.copy()
        w2[0, 0] *= 1.001
        result = compared(mlp(ALL), mlp([0, 2], w2=w2), mlp_plan([0, 2], updates=updates("w2")))
        self.assertEqual(result["verdict"], "MISMATCH")
        self.assertTrue(1e-4 < result["difference"] < 1e-2)

    def test_the_masked_original_itself_is_no_small_model(self):
        masked = Model(mlp(ALL))
        mask_model(masked, mlp_plan([0, 2]))
        result = compared(mlp(ALL), masked.proto, mlp_plan([0, 2]))
        self.assertEqual(result["verdict"], "MISMATCH")
        self.assertLessEqual(result["difference"], result["tolerance"], "outputs alone would have passed")

    def test_zero_is_not_absence(self):
        small = mlp([0, 2], "Sigmoid")
        self.assertEqual(compared(mlp(ALL, "Sigmoid"), small, mlp_plan([0, 2]))["verdict"], "exact")
        out_only = mlp_plan([0, 2])
        out_only["groups"][0]["slices"][2]["keep"] = ALL
        self.assertEqual(compared(mlp(ALL, "Sigmoid"), small, out_only)["verdict"], "MISMATCH")

    def test_a_small_model_that_does_not_run_is_a_mismatch(self):
        nodes = [node("MatMul", "x w1", "h"), node("MatMul", "h w2", "y")]
        broken = network(nodes, {"x": ["N", 3]}, {"y": ["N", 2]}, w1=ramp(3, 2), w2=ramp(3, 2))
        result = compared(mlp(ALL), broken, mlp_plan([0, 2]))
        self.assertEqual(result["verdict"], "MISMATCH")
        self.assertIn("does not run", ";".join(result["notes"]))

    def test_a_batch_size_written_into_the_small_model_is_found(self):
        def reshaped(*target):
            nodes = [node("Mul", "x w", "h"), node("Reshape", "h s", "y")]
            return network(nodes, {"x": ["N", 4]}, {"y": ["M", 2, 2]}, w=ramp(4), s=numpy.array(target))

        original = reshaped(-1, 2, 2)
        self.assertEqual(compared(original, original, plan_of())["verdict"], "exact")
        self.assertEqual(compared(original, reshaped(1, 2, 2), plan_of())["verdict"], "MISMATCH")

    def test_a_missing_output_and_another_shape_are_mismatches(self):
        def flat(output, *dims):
            nodes = [node("Reshape", "x s", output)]
            return network(nodes, {"x": [2, 2]}, {output: list(dims)}, s=numpy.array(dims))

        renamed = compared(flat("y", 4), flat("z", 4), plan_of())
        self.assertIn('output "y" is missing', ";".join(renamed["notes"]))
        reshaped = compared(flat("y", 4), flat("y", 4, 1), plan_of())
        self.assertIn("gives shape [4, 1], the original [4]", ";".join(reshaped["notes"]))
        self.assertEqual([renamed["verdict"], reshaped["verdict"]], ["MISMATCH", "MISMATCH"])

    def test_a_group_that_mixes_needs_only_finite_outputs_of_the_same_rank(self):
        folded = mlp_plan([0, 2], mixes=True, updates=updates("w1", "b1", "w2"))
        other = compared(mlp(ALL), mlp([0, 3]), folded)
        self.assertEqual(other["verdict"], "mixes")
        self.assertGreater(other["difference"], 1e-3, "the difference is still told")
        infinite = compared(mlp(ALL), mlp([0, 2], w2=numpy.full_like(W2, numpy.inf)), folded)
        self.assertEqual(infinite["verdict"], "NONFINITE")
        wrong = compared(mlp(ALL), mlp([0, 2, 3]), mlp_plan([0, 2], mixes=True))
        self.assertEqual(wrong["verdict"], "MISMATCH")

    def test_nan_is_told_and_whose_it_is(self):
        root = network([node("Sqrt", "x", "y")], {"x": [4, 2]}, {"y": [4, 2]})
        result = compared(root, root, plan_of())
        self.assertEqual(result["verdict"], "NONFINITE")
        self.assertIn("the original itself gives NaN", ";".join(result["notes"]))

    def test_agreement_of_zero_outputs_is_called_degenerate(self):
        dead = numpy.full_like(B1, -100)
        result = compared(mlp(ALL, b1=dead), mlp([0], b1=dead), mlp_plan([0]))
        self.assertEqual((result["verdict"], result["degenerate"]), ("exact", True))
        self.assertIn("is the same for every input", ";".join(result["notes"]))

    def test_what_only_rounding_excuses_is_no_proof(self):
        def verdict(difference, tolerance):
            outputs = [{"difference": difference, "tolerance": tolerance}]
            return verdict_of(False, None, outputs, {"wrong": []}, 1e-4)

        self.assertEqual(verdict(9e-5, 1e-4), "exact")
        self.assertEqual(verdict(9e-5, 2.8), "exact")
        self.assertEqual(verdict(0.04, 0.1), "exact")
        self.assertEqual(verdict(0.7, 2.8), "weak")
        self.assertEqual(verdict(3, 2.8), "MISMATCH")
        self.assertEqual(verdict(numpy.nan, 2.8), "MISMATCH")

    def test_texts_are_the_same_or_are_not(self):
        def labelled(*words):
            nodes = [node("ArgMax", "x", "c", axis=1, keepdims=0), node("Gather", "t c", "y")]
            outputs = {"y": (TensorProto.STRING, [2])}
            return network(nodes, {"x": [2, 2]}, outputs, t=numpy.array(words, object))

        self.assertEqual(compared(labelled("a", "b"), labelled("a", "b"), plan_of())["verdict"], "exact")
        other = compared(labelled("a", "b"), labelled("a", "c"), plan_of())
        self.assertEqual((other["verdict"], other["difference"]), ("MISMATCH", numpy.inf))
        self.assertEqual((other["outputs"][0]["expected"], other["outputs"][0]["found"]), ("b", "c"))

    def test_an_inner_value_can_be_compared_by_name(self):
        result = compared(mlp(ALL), mlp([0, 2]), mlp_plan([0, 2]), also=["hb"])
        self.assertEqual(result["verdict"], "MISMATCH", "the pruned value itself has another shape")
        with self.assertRaisesRegex(UsageFault, "both models must compute"):
            compared(mlp(ALL), mlp([0, 2]), mlp_plan([0, 2]), also=["none"])


class Choices(unittest.TestCase):
    def test_the_numbers_behind_a_class_index_are_compared(self):
        def classifier(scale):
            nodes = [node("MatMul", "x w", "l"), node("ArgMax", "l", "c", axis=1, keepdims=0)]
            w = scale * floats([1, 2], [3, 4])
            return network(nodes, {"x": ["N", 2]}, {"c": (INT64, ["N"])}, w=w)

        result = compared(classifier(1), classifier(numpy.float32(1.1)), plan_of())
        self.assertEqual(result["outputs"][0]["difference"], 0)
        self.assertEqual((result["outputs"][1]["name"], result["verdict"]), ("l", "MISMATCH"))

    def test_a_saturated_score_does_not_hide_a_difference(self):
        def scores(*w):
            nodes = [node("MatMul", "x w", "l"), node("Softmax", "l", "s", axis=1)]
            return network(nodes, {"x": [1, 2]}, {"s": [1, 2]}, w=floats(*w).reshape(2, 2))

        result = compared(scores(500, -500, 300, -700), scores(550, -550, 330, -770), plan_of())
        self.assertLess(result["outputs"][0]["difference"], result["tolerance"])
        self.assertEqual((result["outputs"][1]["name"], result["verdict"]), ("l", "MISMATCH"))

    @staticmethod
    def chooser(second=1.0, table=None):
        """The row of the table at the largest of three, of which two are equal.

        Beside it the shape of x goes through a float, as exporters write it: that is no choice.
        """
        nodes = [
            node("MatMul", "x w", "l"),
            node("ArgMax", "l", "c", axis=1, keepdims=0),
            node("Gather", "table c", "y"),
            node("Shape", "x", "s"),
            node("Cast", "s", "f", to=FLOAT),
            node("Cast", "f", "n", to=INT64),
        ]
        w = floats([1, second, 0.5], [2, 2 * second, 0.3])
        table = ramp(3, 2) if table is None else table
        return network(nodes, {"x": ["N", 2]}, {"y": ["N", 2], "n": (INT64, [2])}, w=w, table=table)

    def test_who_chooses_otherwise_in_the_last_bit_is_right_and_for_another_reason_is_not(self):
        def against(small):
            result = compared(self.chooser(), small, plan_of(updates=updates("w", "table")))
            return result, (result["verdict"], result["choices"])

        self.assertEqual(against(self.chooser())[1], ("exact", []))
        tie, verdict = against(self.chooser(1 + 2e-7))
        self.assertEqual(verdict, ("exact", ["l"]))
        self.assertIn('given the original\'s numbers ("l")', ";".join(tie["notes"]))
        self.assertTrue(any(one["name"] == "l" and one["difference"] > 0 for one in tie["outputs"]))
        self.assertEqual(against(self.chooser(1.001))[1], ("MISMATCH", []))
        behind = against(self.chooser(1 + 2e-7, ramp(3, 2, begin=2)))
        self.assertEqual(behind[0]["verdict"], "MISMATCH")


class Plans(unittest.TestCase):
    @staticmethod
    def block(there, w2=ramp(3, 3, begin=3)):
        """x[N, 3] -> w1 -> h; h + h·w2 -> s; s·w3 -> y[N, 3]."""
        nodes = [node("MatMul", "x w1", "h"), node("MatMul", "s w3" if there else "h w3", "y")]
        weights = {"w1": ramp(3, 3), "w3": ramp(3, 3, begin=2)}
        if there:
            nodes[1:1] = [node("MatMul", "h w2", "b"), node("Add", "b h", "s")]
            weights["w2"] = w2
        return network(nodes, {"x": ["N", 3]}, {"y": ["N", 3]}, **weights)

    def test_a_removed_block_adds_nothing(self):
        def verdict(plan):
            return compared(self.block(True), self.block(False), plan)["verdict"]

        self.assertEqual(verdict(plan_of(blocks=[{"add": "s", "kept_input": 1}])), "exact")
        self.assertEqual(verdict(plan_of(blocks=[{"add": "s", "kept_input": 0}])), "MISMATCH")
        self.assertEqual(verdict(plan_of()), "MISMATCH")
        with self.assertRaisesRegex(FileFault, 'block "h": the original has no Add'):
            verdict(plan_of(blocks=[{"add": "h", "kept_input": 0}]))
        with self.assertRaisesRegex(FileFault, r"blocks\[0\]: expected add"):
            verdict(plan_of(blocks=[{"add": "s"}]))

    def test_a_block_that_is_only_masked_is_no_removed_one(self):
        masked = self.block(True, numpy.zeros((3, 3), numpy.float32))
        result = compared(self.block(True), masked, plan_of(blocks=[{"add": "s", "kept_input": 1}]))
        self.assertEqual(result["verdict"], "MISMATCH")
        self.assertIn('"s" is still there', ";".join(result["notes"]))
        self.assertLessEqual(result["difference"], result["tolerance"], "outputs alone would have passed")

    @staticmethod
    def shared(first, second, b1, b2=None, through_identity=False, ir_version=7):
        """A vector shared by two additions: behind the first, channel 1 goes, behind the second, 0."""
        other = "b_2" if b2 else "b_same" if through_identity else "b"
        nodes = [
            *([node("Identity", "b", "b_same")] if through_identity else []),
            node("MatMul", "x w1", "h1"),
            node("Add", "h1 b", "a1"),
            node("MatMul", "a1 w2", "h2"),
            node("Add", f"h2 {other}", "a2"),
            node("MatMul", "a2 w3", "y"),
        ]
        widths = (2, len(b1), len(b2 or b1), 2)
        weights = {
            f"w{i + 1}": floats(*values).reshape(widths[i], widths[i + 1])
            for i, values in enumerate([*first, second])
        }
        vectors = {"b": floats(*b1)} | ({"b_2": floats(*b2)} if b2 else {})
        return network(nodes, {"x": [1, 2]}, {"y": [1, 2]}, ir_version, **vectors, **weights)

    SHARED = ([[1, 2, 3, 4], [5, 6, 7, 8]], [1, 2, 3, 4], [0.5, 0.7])

    @staticmethod
    def shared_plan(**copy):
        return plan_of(
            part("w1", 1, "out", 2, [0]),
            part("b", 0, "out", 2, [0]),
            part("w2", 0, "in", 2, [0]),
            part("w2", 1, "out", 2, [1]),
            part("b_2", 0, "out", 2, [1]),
            part("w3", 0, "in", 2, [1]),
            copies=[{"tensor": "b_2", "of": "b", "consumer": "a2", "input": 1, **copy}],
        )

    def test_a_copied_vector_is_masked_by_its_own_slices(self):
        # Until IR version 4 an initializer had to be listed among the graph's inputs; a copy is not.
        for how in ({}, {"through_identity": True}, {"ir_version": 3}):
            with self.subTest(**how):
                original = self.shared(*self.SHARED, **how)
                small = self.shared([[1, 3], [6]], [3, 4], [0.5], [0.7])
                self.assertEqual(compared(original, small, self.shared_plan())["verdict"], "exact")
                mixed_up = self.shared([[1, 3], [6]], [3, 4], [0.5], [0.5])
                self.assertEqual(compared(original, mixed_up, self.shared_plan())["verdict"], "MISMATCH")

    def test_a_copy_that_does_not_fit_the_original_is_refused(self):
        original = self.shared(*self.SHARED)
        for copy, message in (
            ({"consumer": "nowhere"}, 'no node with output "nowhere"'),
            ({"input": 0}, 'reads "h2", not "b"'),
            ({"tensor": "w3"}, "the name is taken"),
        ):
            with self.assertRaisesRegex(FileFault, message):
                compared(original, original, self.shared_plan(**copy))

    @staticmethod
    def scaled(keep, c):
        """The mlp with its middle times c."""
        nodes = [
            node("MatMul", "x w1", "h"),
            node("Mul", "h c", "s"),
            node("MatMul", "s w2", "m"),
            node("Mul", "m c", "y"),
        ]
        return network(nodes, {"x": [1, 3]}, {"y": [1, 2]}, w1=W1[:, keep], c=floats(c), w2=W2[keep])

    def test_scales_that_follow_are_in_the_reference_what_they_are_in_the_small_model(self):
        def verdict(*nodes):
            to = {"dtype": "float32", "dims": [1], "values": [0.7071]}
            scales = [{"node": name, "what": "operand 1", "input": 1, "to": to} for name in nodes]
            slices = (part("w1", 1, "out", 4, [0, 2]), part("w2", 0, "in", 4, [0, 2]))
            plan = plan_of(*slices, scales=scales)
            return compared(self.scaled(ALL, 0.5), self.scaled([0, 2], 0.7071), plan)["verdict"]

        self.assertEqual(verdict("s", "y"), "exact")
        self.assertEqual(verdict("s"), "MISMATCH")
        with self.assertRaisesRegex(FileFault, 'scale "operand 1" of "nowhere": the original has no node'):
            verdict("nowhere")

    def test_a_plan_that_does_not_fit_or_is_no_plan_is_refused_with_its_place(self):
        for plan, message in (
            (plan_of(part("w1", 1, "out", 5, [0])), r'"w1" of shape \[3, 4\]: found 4 along axis 1, the plan'),
            (plan_of(part("w9", 1, "out", 5, [0])), 'no initializer or Constant named "w9"'),
            (plan_of(part("w1", 1, "both", 4, [0])), r'groups\[0\].slices\[0\].role: found "both"'),
            (plan_of(part("w1", 1, "out", 4, [2, 1])), "keep: expected ascending indices below 4"),
            ({"groups": []}, "expected 1 or 2: is this a plan"),
        ):
            with self.assertRaisesRegex(FileFault, message):
                compared(mlp(ALL), mlp(ALL), plan)


class Masking(unittest.TestCase):
    def test_every_way_to_store_values_is_masked_alike(self):
        external = write(floats(9, 1, 2, 3).tobytes(), ".bin")
        far = TensorProto(data_type=FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", pathlib.Path(external).name), ("offset", "4"), ("length", "12")):
            far.external_data.add(key=key, value=value)
        kinds = {kind.lower(): getattr(TensorProto, kind) for kind in
                 "FLOAT FLOAT16 BFLOAT16 DOUBLE INT4 UINT4 INT8 INT64 UINT64".split()}  # fmt: skip
        tensors = {name: helper.make_tensor(name, kind, [3], [1, 2, 3]) for name, kind in kinds.items()}
        tensors |= {"raw": floats(1, 2, 3), "far": far}
        nodes = [
            node("Constant", "", "constant", value=numpy_helper.from_array(floats(1, 2, 3))),
            node("Constant", "", "list", value_floats=[1.0, 2.0, 3.0]),
            node("Constant", "", "ints", value_ints=[1, 2, 3]),
        ]
        edited = Model.read(write(network(nodes, {}, {}, **tensors)))
        names = [*tensors, "constant", "list", "ints"]
        mask_model(edited, plan_of(*(part(name, 0, "out", 3, [0, 2]) for name in names)))
        written = Model(onnx.load_from_string(edited.encode()))
        for name in names:
            self.assertEqual(array_of(written.tensor(name)).astype(int).tolist(), [1, 0, 3], name)

    def test_an_axis_within_is_masked_by_its_own_stride(self):
        edited = Model(network([], {}, {}, w=ramp(2, 3, 2)))
        mask_model(edited, plan_of(part("w", 1, "out", 3, [1])))
        self.assertEqual(numpy.flatnonzero(array_of(edited.tensor("w"))).tolist(), [2, 3, 8, 9])

    def test_the_elements_of_least_magnitude_become_zero(self):
        edited = Model(network([], {}, {}, w=floats(-1, 3, 1, -2)))
        mask_model(edited, plan_of(zeros=[{"tensor": "w", "smallest": 1}]))
        self.assertEqual(array_of(edited.tensor("w")).tolist(), [0, 3, 1, -2])

    def test_a_removed_quantized_value_is_its_zero_point(self):
        def quantized(columns, keep):
            nodes = [
                node("DequantizeLinear", "q s z", "w1"),
                node("MatMul", "x w1", "h"),
                node("MatMul", "h w2", "y"),
            ]
            q = numpy.array(columns, numpy.uint8).T
            w2 = floats(*([k + 1, k - 3] for k in keep))
            constants = {"s": numpy.float32(0.1), "z": numpy.uint8(128)}
            return network(nodes, {"x": [1, 2]}, {"y": [1, 2]}, q=q, w2=w2, **constants)

        original = quantized([[100, 140], [120, 160]], [0, 1])
        plan = plan_of(part("q", 1, "out", 2, [1]), part("w2", 0, "in", 2, [1]))
        self.assertEqual(compared(original, quantized([[120, 160]], [1]), plan)["verdict"], "exact")
        masked = Model(original)
        mask_model(masked, plan)
        self.assertEqual(array_of(masked.tensor("q")).tolist(), [[128, 120], [128, 160]])

    def test_names_inside_bodies_and_functions_begin_with_their_path(self):
        text = """<ir_version: 9, opset_import: ["": 17, "own": 1]>
            net (float[1,2] x, bool c) => (float[1,2] y) {
              h = If (c) <then_branch = t () => (float[1,2] o)
                            <float[2] w = {1, 2}> { o = Mul(x, w) },
                          else_branch = e () => (float[1,2] p) { p = Identity(x) }>
              y = own.Layer(h)
            }
            <domain: "own", opset_import: ["": 17]>
            Layer (a) => (b) { v = Constant <value = float[2] {3, 4}> ()
                               b = Mul(a, v) }"""
        edited = Model(onnx.parser.parse_model(text))
        names = ("h::then_branch::w", "y::Layer::v")
        mask_model(edited, plan_of(*(part(name, 0, "out", 2, [1]) for name in names)))
        self.assertEqual([array_of(edited.tensor(name)).tolist() for name in names], [[0, 2], [0, 4]])
        self.assertEqual([reader.op for reader, _ in edited.consumers("x")], ["Mul", "Identity"])


class Inputs(unittest.TestCase):
    def test_specs(self):
        self.assertEqual(parse_spec("1x3x32x32").shape, [1, 3, 32, 32])
        spec = parse_spec(":int64=16000")
        self.assertEqual((spec.shape, spec.type, spec.value), ([], "int64", 16000))
        for wrong in ("", "1x", "3:blob", "2=two", "a"):
            with self.assertRaisesRegex(UsageFault, "--input"):
                parse_spec(wrong)
        arguments = [Argument("a", "float32", ["N", 3, "H"]), Argument("b", "int64", ["H"])]
        first = next(candidates(arguments, [parse_spec("2x3x8")]))
        self.assertEqual([one.shape for one in first], [[2, 3, 8], [8]], "one name, one size")
        self.assertEqual(draw(first, 1)["b"].shape, (8,))
        for spec, message in (
            ("2x4x8", r"has shape \[N,3,H\], --input says \[2,4,8\]"),
            ("2x3x8:int64", "is float32, --input says int64"),
        ):
            with self.assertRaisesRegex(UsageFault, message):
                list(candidates(arguments, [parse_spec(spec)]))

    def test_random_numbers_are_the_same_for_a_seed_and_normal(self):
        drawn = normal(7, 20000)
        self.assertTrue(abs(drawn.mean()) < 0.03 and abs(drawn.var() - 1) < 0.05)
        self.assertTrue((drawn[:5] == normal(7, 5)).all())
        self.assertFalse((normal(mixed(7, 0), 5) == normal(mixed(7, 1), 5)).any())

    def test_sizes_are_tried_until_the_original_runs(self):
        def takes(size):
            return network([node("MatMul", "x w", "y")], {"x": ["N", "L"]}, {"y": ["N", 2]}, w=ramp(size, 2))

        result = compared(takes(160), takes(160), plan_of())
        self.assertEqual(result["inputs"][0]["shape"], [1, 160])
        with self.assertRaisesRegex(Refusal, "runs on no inputs tried; give --input"):
            compared(takes(161), takes(161), plan_of())


def command(name, *arguments):
    line = [sys.executable, TOOLS / f"{name}.py", *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class Commands(unittest.TestCase):
    def test_exit_codes_json_and_batch(self):
        original, right, wrong = (write(mlp(keep)) for keep in (ALL, [0, 2], [0, 3]))
        plan = write(mlp_plan([0, 2]), ".json")
        code, out, err = command("ort_compare", original, right, plan)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, "(?m)^exact: largest relative difference")
        code, out, err = command("ort_compare", original, wrong, plan, "--json")
        self.assertEqual((code, json.loads(out)["verdict"]), (1, "MISMATCH"), err)

        for expected, arguments in (
            (2, ()),
            (2, (original, right, plan, "--nonsense")),
            (2, (original, right, plan, "--input", "1x4")),
            (3, ("--run", write(network([node("Nothing", "x", "y")], {"x": [1]}, {"y": [1]})))),
            (4, (original, right, "none.json")),
            (4, ("none.onnx", right, plan)),
            (4, ("--run", write("nonsense"))),
        ):
            self.assertEqual(command("ort_compare", *arguments)[0], expected, arguments)

        fine = write("\t".join((original, right, plan, "2x3")), ".tsv")
        code, _, err = command("ort_compare", "--batch", fine)
        self.assertEqual(code, 0, err)
        rows = ((original, right, plan), (original, wrong, plan), (original, "none", plan))
        code, out, _ = command("ort_compare", "--batch", write("\n".join(map("\t".join, rows)), ".tsv"))
        self.assertEqual(code, 1)
        self.assertIn("3 models: 1 exact, 1 MISMATCH, 1 ERROR", out)

    def test_smoke_run_with_a_table_of_specs(self):
        path = write(mlp(ALL))
        table = write(f"{pathlib.Path(path).name}\t5x3\n", ".txt")
        code, out, err = command("ort_compare", "--run", path, "--specs", table, "--json")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["inputs"], [{"name": "x", "type": "float32", "shape": [5, 3]}])

    def test_accuracy_over_idx_files(self):
        def idx(dims, *values):
            return bytes([0, 0, 8, len(dims)]) + numpy.array(dims, ">u4").tobytes() + bytes(values)

        # The brighter of two pixels is the class; the third label is wrong.
        images = write(gzip.compress(idx([3, 1, 2], 9, 200, 255, 0, 10, 20)), ".gz")
        labels = write(idx([3], 1, 0, 0), ".idx")
        for batch in ("N", 1, 2):
            dims = [batch, 1, 1, 2]
            path = write(network([node("Identity", "x", "y")], {"x": dims}, {"y": dims}))
            result = command("ort_accuracy", path, images, labels, "--scale", "1/255")
            self.assertEqual(result, (0, "2/3 (66.7%)\n", ""))
        self.assertEqual(command("ort_accuracy", images, images, labels)[0], 4)
        self.assertEqual(command("ort_accuracy")[0], 2)


class Tokens(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        model = {"type": "WordLevel", "vocab": {"to": 1, "be": 2, "or": 3, "not": 4}, "unk_token": "[UNK]"}
        parts = {"normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"}}
        cls.tokenizer = write({"version": "1.0", **parts, "model": model}, ".json")
        cls.text = write("To be or not to be to not", ".txt")

    def test_windows_of_tokens_with_masks_and_the_next_tokens(self):
        import tensors

        out = f"{FOLDER.name}/out.safetensors"
        options = ("--length", 3, "--mask", "mask", "--labels", self.tokenizer, self.text, "-o", out)
        self.assertEqual(command("tokens", *options), (0, f"{out}: 2 windows of 3 tokens\n", ""))
        arrays = tensors.load(out)
        self.assertTrue(all(one.dtype == numpy.int64 for one in arrays.values()))
        found = {name: one.tolist() for name, one in arrays.items()}
        ids, labels = [[1, 2, 3], [4, 1, 2]], [[2, 3, 4], [1, 2, 1]]
        self.assertEqual(found, {"input_ids": ids, "mask": [[1, 1, 1], [1, 1, 1]], "labels": labels})

    def test_refusals_name_the_file(self):
        other = write("To be that", ".txt")
        for arguments, message in (
            (
                ("--length", 99, self.tokenizer, self.text),
                f"tokens: {self.text}: 8 tokens, expected at least 99\n",
            ),
            (("--length", 1, self.tokenizer, other), f"tokens: {other}: .*UNK"),
            ((self.text, self.text), f"tokens: {self.text}: expected value"),
            ((self.tokenizer, "none.txt"), "tokens: none.txt: no such file\n"),
        ):
            code, _, err = command("tokens", *arguments, "-o", "out.safetensors")
            self.assertEqual(code, 1)
            self.assertRegex(err, f"^{message}")
        self.assertEqual(command("tokens")[0], 2)


if __name__ == "__main__":
    unittest.main()
