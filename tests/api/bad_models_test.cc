// Models that are wrong, and models that a stranger made to do harm: an error that says where, or a
// plan; never a crash, and never a file.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

class BadModels : public ::testing::Test {
 protected:
  /// Prunes half of `model`; the file appears only if all went well.
  Pruning prune(const onnx::ModelProto& model) {
    const std::string in = folder_ / "in.onnx";
    std::ofstream(in, std::ios::binary) << model.SerializeAsString();
    return prune(in);
  }

  Pruning prune(const std::string& path) {
    onnx_io::ModelFile file(path);
    Graph graph = onnx_io::to_graph(file);
    Pruning pruning = plan_pruning(graph, from_shorthand({.ratio = 0.5}));
    onnx_io::OnnxEditor editor(file);
    apply_plan(pruning.plan, graph, pruning.analysis.probe, editor);
    file.write(out());
    return pruning;
  }

  /// What is wrong with the model; "" if nothing is.
  std::string complaint(const onnx::ModelProto& model) {
    try {
      prune(model);
    } catch (const ModelError& error) {
      EXPECT_FALSE(std::filesystem::exists(out()));
      return error.what();
    }
    return "";
  }

  /// Or in a file.
  bool ends_in_words(const onnx::ModelProto& model) {
    try {
      prune(model);
    } catch (const Error& error) {
      return !std::string(error.what()).empty();
    }
    return true;
  }

  std::string out() const { return folder_ / "out.onnx"; }

  TemporaryFolder folder_;
};

struct NamedDims {
  std::string name, dims;
};

onnx::ModelProto model_with(const std::string& text, const std::vector<NamedDims>& weights) {
  onnx::ModelProto model = model_of(text);
  for (const NamedDims& weight : weights) add_weight(model, weight.name, weight.dims);
  return model;
}

void add_integers(onnx::ModelProto& model, const std::string& name,
                  const std::vector<int64_t>& values) {
  onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) tensor.add_int64_data(value);
}

TEST_F(BadModels, WeightsThatDoNotFitNameNodeAndOperand) {
  EXPECT_EQ(complaint(model_with("g (float[1,3,8,8] x) => (float[1,4,8,8] y) "
                                 "{ a = Conv(x, w) y = Conv(a, v) }",
                                 {{"w", "8x3x1x1"}, {"v", "4x7x1x1"}})),
            "node \"y\": wrong dims: channels of \"a\": expected 7, found 8");
  EXPECT_EQ(complaint(model_with("g (float[1,3,8,8] x) => (float[1,4,8,8] y) { y = Conv(x, w) }",
                                 {{"w", "4x3x1"}})),
            "node \"y\": wrong dims: rank of \"x\": expected 3, found 4");
  EXPECT_EQ(complaint(model_with("g (float[1,12] x) => (float[1,4] y) "
                                 "{ a = Gemm(x, w) y = Gemm(a, v) }",
                                 {{"w", "12x8"}, {"v", "9x4"}})),
            "node \"y\": wrong dims: b[0] of \"v\": expected 8, found 9");
  EXPECT_EQ(complaint(model_with("g (float[1,3,8,8] x) => (float[1,8,8,8] y) "
                                 "{ a = Conv(x, w) y = BatchNormalization(a, s, s, s, s) }",
                                 {{"w", "8x3x1x1"}, {"s", "7"}})),
            "node \"y\": wrong dims: gamma[0] of \"s\": expected 8, found 7");
}

TEST_F(BadModels, WeightsThatAreNotNumbers) {
  onnx::ModelProto model =
      model_with("g (float[1,3,8,8] x) => (float[1,4,8,8] y) { a = Conv(x, w) y = Conv(a, v) }",
                 {{"w", "8x3x1x1"}, {"v", "4x8x1x1"}});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::string& raw = *model.mutable_graph()->mutable_initializer(0)->mutable_raw_data();
  raw.replace(7 * sizeof(float), sizeof(float), reinterpret_cast<const char*>(&nan), sizeof(float));
  EXPECT_EQ(complaint(model),
            "tensor \"w\": element 7 is not a number; channels with such weights cannot be ranked");
}

TEST_F(BadModels, DimensionsBeyondAllMeasure) {
  EXPECT_EQ(complaint(model_of("g (float[1099511627776,1099511627776] x) => (float[1] y) "
                               "{ y = Relu(x) }")),
            "tensor \"x\": wrong dims [1099511627776, 1099511627776]: dimensions are 0 or more and "
            "have at most 2^48 elements together");
  EXPECT_EQ(complaint(model_of("g (float[1,1099511627776] x) => (float[1] y) { y = Relu(x) }")),
            "");
}

/// Each row of `a` is a line of 2^23 indices of its own; together they would not fit in memory.
TEST_F(BadModels, ManyLongAxesCostNoMoreThanSome) {
  std::string text = "g (float[1,4] x) => (float[1,4] y) { a = MatMul(x, w)";
  const int kAxes = 100;
  for (int i = 0; i < kAxes; ++i) {
    const std::string n = std::to_string(i);
    text += " b" + n + " = Unsqueeze(a, last) c" + n + " = Expand(b" + n + ", long) d" + n +
            " = ReduceMean<axes=[2], keepdims=0>(c" + n + ")";
  }
  onnx::ModelProto model = model_with(text + " y = MatMul(d0, v) }", {{"w", "4x8"}, {"v", "8x4"}});
  add_integers(model, "last", {2});
  add_integers(model, "long", {1, 8, int64_t{1} << 23});
  const Pruning pruning = prune(model);
  ASSERT_EQ(pruning.analysis.coupling.groups.size(), 1U);
  EXPECT_EQ(pruning.analysis.coupling.groups[GroupId(0)].size, 8);
}

/// A hostile or sloppy file; found by the fuzzer of tests/fuzz/onnx_reader.cc.
TEST_F(BadModels, OperandsThatAreMissing) {
  EXPECT_NO_THROW(
      prune(model_with("g (float[1,4] x) => (float[1,8] y) "
                       "{ a = MatMul(x, w) y = ScatterND(a, i) }",
                       {{"w", "4x8"}, {"i", "1x1"}})));
  onnx::ModelProto nameless = model_of("g (float[1,4] x) => (float[1,4] y) { y = Relu(x) }");
  onnx::NodeProto& constant = *nameless.mutable_graph()->add_node();
  constant.set_op_type("Constant");
  constant.add_output("");
  onnx::AttributeProto& value = *constant.add_attribute();
  value.set_name("value_int");
  value.set_type(onnx::AttributeProto::INT);
  EXPECT_NO_THROW(prune(nameless));
}

TEST_F(BadModels, EmptyTensors) {
  const std::string empty = complaint(model_with(
      "g (float[1,4] x) => (float[1,8] y) { y = MatMul(x, w) }", {{"w", "16777216x0x33554432"}}));
  EXPECT_NE(empty.find("wrong dims [16777216, 0, 33554432]"), std::string::npos) << empty;
  onnx::ModelProto model =
      model_with("g (float[0,4] x) => (float[0,2,4] y) { a = MatMul(x, w) y = Reshape(a, s) }",
                 {{"w", "4x8"}});
  add_integers(model, "s", {0, 2, 4});
  EXPECT_NO_THROW(prune(model));
}

/// 2^63 and more of the first layer.
TEST_F(BadModels, MoreMacsThanCanBeCounted) {
  const Pruning pruning =
      prune(model_with("g (float[1,1,8388863,8388863] x) => (float[1,2,8388608,8388608] y) "
                       "{ a = Conv(x, w) y = Conv(a, v) }",
                       {{"w", "2x1x256x256"}, {"v", "2x2x1x1"}}));
  EXPECT_EQ(pruning.dense.macs, int64_t{1} << 48);  // the second one's
}

TEST_F(BadModels, SizesThatOverflow) {
  const int64_t least = std::numeric_limits<int64_t>::min();
  const auto reshaped = [&](const std::vector<int64_t>& shape) {
    onnx::ModelProto model =
        model_with("g (float[1,4] x) => (float[1,8] y) { a = MatMul(x, w) y = Reshape(a, s) }",
                   {{"w", "4x8"}});
    add_integers(model, "s", shape);
    return complaint(model);
  };
  EXPECT_NE(reshaped({least, 8}), "");
  EXPECT_NE(reshaped({-1, -1}), "");
  EXPECT_NE(reshaped({int64_t{1} << 40, int64_t{1} << 40, -1}), "");
  const auto conv = [&](const std::string& attributes) {
    return complaint(model_with(
        "g (float[1,3,8,8] x) => (float[1,4,8,8] y) { y = Conv<" + attributes + ">(x, w) }",
        {{"w", "4x3x1x1"}}));
  };
  const std::string most = std::to_string(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(
      conv("strides=[1," + most + "]"),
      "node \"y\": attribute \"strides\": expected numbers from 1 to 16777216, found " + most);
  EXPECT_NE(conv("pads=[0,0," + most + "," + most + "]"), "");
  EXPECT_NE(conv("dilations=[" + most + ",1]"), "");
  EXPECT_NE(conv("group=" + most), "");
}

/// The file declares a result of another rank than the operator gives it.
TEST_F(BadModels, DeclaredShapesThatAreNotTrue) {
  onnx::ModelProto model =
      model_with("g (float[1,4] x, int64[2] r) => (float[8] y) { a = MatMul(x, w) y = Tile(a, r) }",
                 {{"w", "4x8"}});
  EXPECT_NO_THROW(prune(model));
}

/// What is looked at index by index is bounded by what the file brings along.
TEST_F(BadModels, AxesOfMillionsForFewWeights) {
  const auto groups = [&](const std::string& size, const std::string& flat) {
    onnx::ModelProto model = model_with("g (float[1,3," + size + "] x) => (y) { a = Conv(x, w) " +
                                            flat + " y = ReduceSum<keepdims = 0>(f, axes) }",
                                        {{"w", "8x3x1x1"}});
    add_integers(model, "axes", {1});
    return prune(model).plan.groups.size();
  };
  const std::string alone = "f = Flatten(a)";
  EXPECT_EQ(groups("64,64", alone), 1U);
  EXPECT_EQ(groups("512,512", alone), 0U);
  const std::string joined = "b = Flatten(a) c = Flatten(x) f = Concat<axis = 1>(b, c)";
  EXPECT_EQ(groups("64,64", joined), 1U);
  EXPECT_EQ(groups("512,512", joined), 0U);
}

/// How many dimensions a result has hangs on how many channels there are.
TEST_F(BadModels, RanksThatAreMadeOfSizes) {
  const onnx::ModelProto model = model_with(
      "g (float[1,3,8,8] x) => (float[1,4,8,8] y) { a = Conv(x, w) y = Conv(a, v) "
      "s = Shape(v) o = ConstantOfShape<value = int64[1] {1}>(s) "
      "r = ConstantOfShape<value = int64[1] {1}>(o) }",
      {{"w", "8x3x1x1"}, {"v", "4x8x1x1"}});
  EXPECT_TRUE(prune(model).plan.groups.empty());
}

/// Bodies that hand back fewer values than their nodes have results, and take fewer than are given.
TEST_F(BadModels, BodiesThatAreTooShort) {
  for (const std::string body :
       {"y = If(p) <then_branch = t () => () { }, else_branch = e () => (float[1,8] v) { v = "
        "Relu(a) }>",
        "y = Loop(m, p, a) <body = b (int64 i, bool c) => (bool d) { d = Identity(c) }>",
        "y = Scan <num_scan_inputs = 1, body = b (float[1,8] s) => () { }>(a, x)",
        "y = Loop() <body = b () => () { }>"}) {
    EXPECT_TRUE(ends_in_words(
        model_with("g (float[1,4] x, bool p, int64 m) => (y) { a = MatMul(x, w) " + body + " }",
                   {{"w", "4x8"}})));
  }
}

/// Nodes of operators that libonnx knows and the table does not, which its inference would take for
/// granted: that there is a tensor, of a type that the operator takes.
TEST_F(BadModels, NodesThatDoNotFitLibonnxsSchema) {
  const std::string header = "<ir_version: 8, opset_import: [\"\" : 11, \"ai.onnx.ml\" : 2]> ";
  for (const std::string node :
       {"v = ai.onnx.ml.DictVectorizer <int64_vocabulary = [0, 1, 2, 3]> (x)",
        "v = ai.onnx.ml.CategoryMapper (x)", "v = ai.onnx.ml.CastMap (x)",
        "v = ai.onnx.ml.LabelEncoder <keys_floats = [1.5], values_int64s = [1]> ()",
        "v = ai.onnx.ml.LabelEncoder <keys_floats = [1.5], values_int64s = [1]> (x, x)",
        "v = ai.onnx.ml.LabelEncoder <keys_floats = 7> (x)",
        "v = ai.onnx.ml.LinearClassifier <coefficients = [1.0]> (x)",
        "u, v = ai.onnx.ml.LinearClassifier (x)", "u, v = ai.onnx.ml.SVMClassifier ()",
        "u, v = ai.onnx.ml.TreeEnsembleClassifier (x, x)", "v = ai.onnx.ml.ZipMap (x)",
        "v = ai.onnx.preview.training.Adam (x)", "v = ai.onnx.preview.training.Momentum (x, x)"}) {
    for (const std::string type : {"float[2,4] x", "bool[2,4] x", "float x", "float[2,4] x0"}) {
      SCOPED_TRACE(node + " with " + type);
      onnx::ModelProto model = model_with(
          header + "g (" + type + ") => (y) { " + node + " a = MatMul(v, w) y = MatMul(a, z) }",
          {{"w", "4x8"}, {"z", "8x3"}});
      EXPECT_TRUE(ends_in_words(model));
      onnx::TypeProto& of_map = *model.mutable_graph()->mutable_input(0)->mutable_type();
      of_map.mutable_map_type()->set_key_type(onnx::TensorProto::INT64);
      of_map.mutable_map_type()->mutable_value_type()->mutable_tensor_type()->set_elem_type(
          onnx::TensorProto::FLOAT);
      EXPECT_TRUE(ends_in_words(model));
    }
  }
}

/// The cases of ONNX's own operators: each is pruned, left whole, or refused in words.
TEST_F(BadModels, OnnxsOwnCasesEndInAFileOrInWords) {
  const std::filesystem::path cases = "/usr/share/libonnx-testdata/data";
  if (!std::filesystem::exists(cases)) GTEST_SKIP() << "libonnx-testdata is not installed";
  int read = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cases)) {
    if (entry.path().extension() != ".onnx") continue;
    SCOPED_TRACE(entry.path());
    try {
      prune(entry.path().string());
      ++read;
    } catch (const Error& error) {
      EXPECT_STRNE(error.what(), "");
    }
  }
  EXPECT_GE(read, 900);
}

TEST_F(BadModels, ListsOfDifferentLength) {
  onnx::ModelProto model = model_with(
      "g (float[1,4] x) => (float[1,8] y) { a = MatMul(x, w) y = Slice(a, starts, ends, axes) }",
      {{"w", "4x8"}});
  add_integers(model, "starts", {0, 0});
  add_integers(model, "ends", {1, 4});
  add_integers(model, "axes", {0});
  EXPECT_EQ(complaint(model),
            "node \"y\": attribute \"starts\": starts, ends, axes and steps differ in length");
}

/// Each stopped the program, took minutes or more memory than its size allows.
TEST_F(BadModels, WhatFuzzingFound) {
  const std::filesystem::path folder = PARSIMONY_SOURCE_DIR "/tests/fuzz/regressions/onnx_reader";
  const auto fits = [](const std::string& path) {
    try {
      infer(onnx_io::to_graph(onnx_io::ModelFile(path)));
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().filename());
    ++found;
    try {
      prune(entry.path().string());
    } catch (const Error&) {
      continue;
    }
    EXPECT_TRUE(fits(out()) || !fits(entry.path()));
  }
  EXPECT_GE(found, 5);
}

}  // namespace
}  // namespace parsimony::test
